package logline

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWriter shows which lines wait, and for how long.
func TestWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := NewWriter(&out)
		want := func(reason, text string) {
			t.Helper()
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if got := strings.ReplaceAll(out.String(), "\n", " "); got != text {
				t.Errorf("%s: got %q, want %q", reason, got, text)
			}
		}
		w.Add([]byte("a\n"))
		want("the first goes out at once", "a ")
		w.Add([]byte("b\n"))
		w.Add([]byte("c\n"))
		time.Sleep(delay - 1)
		want("those that follow wait", "a ")
		time.Sleep(time.Nanosecond)
		want("not for long", "a b c ")
		w.Add([]byte("d\n"))
		w.Write([]byte("failed\n"))
		want("anything else takes along what waits", "a b c d failed ")
		time.Sleep(2 * delay)
		w.Add([]byte("e\n"))
		want("after a pause", "a b c d failed e ")
		w.Add([]byte("f\n"))
		w.Flush()
		want("flushed", "a b c d failed e f ")
		w.Add([]byte("g\n"))
		w.Close()
		w.Add([]byte("h\n"))
		want("closed", "a b c d failed e f g h ")
	})

	var out bytes.Buffer
	w := NewWriter(&out)
	defer w.Close()
	line := []byte(strings.Repeat("x", 1000) + "\n")
	for range 1000 {
		w.Add(line)
		if len(w.lines) > space {
			t.Fatalf("%d bytes wait", len(w.lines))
		}
	}
}
