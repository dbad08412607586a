package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"sello/internal/disk"
)

// TestProgressText: the time left is told once it is known.
func TestProgressText(t *testing.T) {
	p := &progressLine{what: "importando"}
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
		if got := p.text(test.done, test.took); got != test.want {
			t.Errorf("%v after %s: %q, want %q", test.done, test.took, got, test.want)
		}
	}
}

// TestProgressLine: the line is made anew in its place and is empty in the end, whatever
// becomes of the work. Where there is no terminal nothing is written.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &progressLine{out: &out, what: "x", started: time.Now()}
	failed, asked := errors.New("x"), make(chan struct{}, 100)
	done := func() float64 {
		asked <- struct{}{}
		return 0.5
	}
	err := p.during(done, func() error {
		<-asked
		<-asked
		return failed
	})
	if err != failed || !regexp.MustCompile(`^(\rx: 50 %){2,}\r {7}\r$`).MatchString(out.String()) {
		t.Errorf("%v, %q", err, &out)
	}
	s := newTill(t)
	s.ok("apply -", string(demoDocument)) // which fails if there is anything on standard error
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
	quiet := (&invocation{environment: environment{stderr: &out}}).progress("x")
	if err := quiet.during(func() float64 { panic("asked") }, func() error { return failed }); err != failed || quiet.out != nil {
		t.Error(err)
	}
}

// TestProgressOfOperations: each long operation says how far it has come, and comes to its end.
func TestProgressOfOperations(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	rows := []byte("email,phoneNumber\n")
	for i := range 300 {
		rows = fmt.Appendf(rows, "c%d@example.com,\n", i)
	}
	s.ok("import customers " + s.file("c.csv", string(rows)))
	c := &invocation{db: s.env["SELLO_DB"], environment: environment{stderr: new(bytes.Buffer)}}
	copied := filepath.Join(s.dir, "copy.db")
	for _, test := range []struct {
		name  string
		least float64
		run   func(ctx context.Context) error
	}{
		{"verify", 0.9, func(ctx context.Context) error { // its last customers are told together
			return c.withAdmin(ctx, false, func(call adminCaller) error { return call(ctx, "verify", verifyRequest{}, new(verification)) })
		}},
		{"backup", 0.95, func(ctx context.Context) error {
			return c.withAdmin(ctx, false, func(call adminCaller) error {
				return call(ctx, "backup", backupRequest{File: copied}, new(backedUp))
			})
		}},
		{"restore", 1, (&restored{From: copied, File: filepath.Join(s.dir, "restored.db")}).restore},
		{"compact", 1, func(ctx context.Context) error {
			store, err := openBolt(c.db, disk.Options{MustExist: true, Dense: denseTables})
			if err == nil {
				_, err = store.compact(ctx)
			}
			return err
		}},
	} {
		var done disk.Progress
		if err := test.run(disk.WithProgress(t.Context(), &done)); err != nil || done.Done() < test.least || done.Done() > 1 {
			t.Errorf("%s: %v, %v of 1 done", test.name, err, done.Done())
		}
	}
	read := &readPart{ReadSeeker: bytes.NewReader(rows)}
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{read}); err != nil || read.at != n {
		t.Errorf("%d of %d read, %v", read.at, n, err)
	}
	if at, err := read.Seek(5, io.SeekStart); err != nil || read.at != at || at != 5 {
		t.Errorf("%d, %v", read.at, err)
	}
}
