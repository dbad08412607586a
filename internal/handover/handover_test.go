package handover

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// commandOf parses a command.
func commandOf(t *testing.T, text string, without ...string) *Command {
	t.Helper()
	c, err := Parse(text, without...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// script writes a program for the shell and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	path := filepath.Join(t.TempDir(), "hand over.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRun runs commands, and checks what they get.
func TestRun(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/nowhere")
	program := script(t, `printf '%s|' "$@" "${NOTIFY_SOCKET:-none}"`)
	link := filepath.Join(t.TempDir(), "after") // a path without a space
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		program:                      "/b/copia 1.db|none|",
		link + ` -v  "x  $HOME`:      `-v|"x|$HOME|/b/copia 1.db|none|`,
		link + " copy {} remote:x/*": "copy|/b/copia 1.db|remote:x/*|none|",
	} {
		if got, err := commandOf(t, text, "NOTIFY_SOCKET").Run(t.Context(), "/b/copia 1.db"); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := commandOf(t, program).Run(t.Context(), "x"); got != "x|/nowhere|" || err != nil {
		t.Errorf("with the whole environment: %s, %v", got, err)
	}
	if _, err := Parse(" "); err != ErrEmpty {
		t.Error(err)
	}
}

// TestRunFails: of a command that fails, writes a lot or goes on, the end of its output is told.
func TestRunFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a command that goes on")
	}
	for text, want := range map[string]struct{ output, err string }{
		"echo sent; echo no such host >&2; exit 3": {"sent\nno such host", "exit status 3"},
		"yes tell | head -c 9000000; exit 1":       {"… ", "exit status 1"},
		"sleep 100 &":                              {"", "it ended, and something that it started goes on"},
	} {
		output, err := commandOf(t, script(t, text)).Run(t.Context(), "x")
		if err == nil || err.Error() != want.err || !strings.HasPrefix(output, want.output) || len(output) > tailSize+len("… ") {
			t.Errorf("%s: %q, %v", text, output, err)
		}
	}
}

// TestStops: a command that hangs ends with ctx, with what it started, and keeps no later file
// from being handed over. Of those that wait it gets the newest.
func TestStops(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a command that hangs")
	}
	begun := filepath.Join(t.TempDir(), "begun")
	c := commandOf(t, script(t, `echo "$1" >> `+begun+`; trap '' TERM; sleep 100 & sleep 100; sleep 100`))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		var err error
		for file := range c.Handed(ctx) {
			_, err = c.Run(ctx, file)
		}
		ended <- err
	}()
	for _, file := range []string{"1", "2", "3"} { // none of these calls waits
		c.Hand(file)
		for file == "1" {
			if text, _ := os.ReadFile(begun); len(text) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	got := <-c.fresh
	if text, err := os.ReadFile(begun); got != "3" || string(text) != "1\n" {
		t.Errorf("%s waits, begun: %s, %v", got, text, err)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("no error of a command that was ended")
	}
	(*Command)(nil).Hand("4")
}
