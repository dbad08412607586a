package localcall

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestCall: a call says who calls and what, and its reply is a result or an error. A server that
// has ended is not reached, and says so in the middle of a call.
func TestCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	if Reach(file) != nil {
		t.Fatal("no server is reached")
	}
	l, err := Listen(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{}
	s.Handler = Handler(func(ctx context.Context, user, name string, in []byte) (answer Reply, known bool) {
		switch name {
		case "a/echo":
			answer.Result, _ = json.Marshal(user + string(in))
		case "refuse":
			answer = Reply{Error: "no <b>", Code: "usage"}
		case "end":
			s.Close()
		default:
			return answer, false
		}
		return answer, true
	})
	go s.Serve(l)
	c := Reach(file)
	if c == nil {
		t.Fatal("the server is not reached")
	}
	for name, want := range map[string]Reply{"a/echo": {Result: json.RawMessage(`"ana{\"n\":1}"`)}, "refuse": {Error: "no <b>", Code: "usage"}} {
		got, err := c.Call(t.Context(), "ana", name, map[string]int{"n": 1})
		if err != nil || string(got.Result) != string(want.Result) || got.Error != want.Error || got.Code != want.Code {
			t.Errorf("%s: %s %q %q, %v", name, got.Result, got.Error, got.Code, err)
		}
	}
	if _, err := c.Call(t.Context(), "ana", "other", nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown operation: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(gone, "ana", "a/echo", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is given up: %v", err)
	}
	if _, err := c.Call(t.Context(), "ana", "end", nil); !errors.Is(err, ErrEnded) {
		t.Errorf("the server ends: %v", err)
	}
	if Reach(file) != nil {
		t.Error("an ended server is reached")
	}
}

// TestPath: a long path is replaced by one in the user's directory, and without that one nobody
// can listen.
func TestPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have the directory elsewhere")
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("a", 100))
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	p, err := Path(long)
	if err != nil || filepath.Dir(p) != filepath.Join(home, "sello") {
		t.Errorf("%s, %v", p, err)
	}
	os.Unsetenv("XDG_CACHE_HOME")
	t.Setenv("HOME", "")
	_, err = Listen(long)
	if e, ok := errors.AsType[*TooLongError](err); !ok || e.Path != long+".sock" {
		t.Errorf("no directory: %v", err)
	}
	if Reach(long) != nil {
		t.Error("no directory, and a server is reached")
	}
}
