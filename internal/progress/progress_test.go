package progress

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
	"time"
)

// TestText: the time left is told once it is known.
func TestText(t *testing.T) {
	l := &Line{what: "importando", left: "faltan"}
	for _, test := range []struct {
		done float64
		took time.Duration
		want string
	}{
		{0, 7 * time.Second, "importando: 7 s"},
		{0.5, time.Second, "importando: 50 %"},
		{0.5, 10 * time.Second, "importando: 50 %, faltan 10 s"},
		{0.25, 2 * time.Minute, "importando: 25 %, faltan 6 min"},
		{0.001, time.Hour, "importando: 0 %"},
		{0.01, 5 * time.Minute, "importando: 1 %, faltan 8 h"},
		{1, time.Minute, "importando: 100 %"},
	} {
		if got := l.text(test.done, test.took); got != test.want {
			t.Errorf("%v after %s: %q, want %q", test.done, test.took, got, test.want)
		}
	}
}

// TestLine: the line is made anew in its place and is empty in the end, whatever becomes of the
// work. Where there is no terminal nothing is written.
func TestLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &Line{out: &out, what: "x", started: time.Now()}
	failed, asked := errors.New("x"), make(chan struct{}, 100)
	done := func() float64 {
		asked <- struct{}{}
		return 0.5
	}
	err := l.During(done, func() error {
		<-asked
		<-asked
		return failed
	})
	if err != failed || !regexp.MustCompile(`^(\rx: 50 %){2,}\r {7}\r$`).MatchString(out.String()) {
		t.Errorf("%v, %q", err, &out)
	}
	quiet := New(&out, "x", "left")
	if err := quiet.During(func() float64 { panic("asked") }, func() error { return failed }); err != failed || quiet.out != nil {
		t.Error(err)
	}
}
