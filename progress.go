package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"sello/internal/disk"
)

// How far a long command has come, in one line of a terminal.

// progressPause is how long a line stands before the next one takes its place.
const progressPause = 250 * time.Millisecond

// A progressLine shows how far something has come, where standard error is a terminal.
type progressLine struct {
	out     io.Writer // nil: show nothing
	what    string    // is being done
	started time.Time
	width   int // of what stands there, in characters
}

func (c *invocation) progress(what string) *progressLine {
	p := &progressLine{what: what, started: time.Now()}
	if isTerminal(c.stderr) {
		p.out = c.stderr
	}
	return p
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// telling runs fn with a context in which the operations of this process say how far they have
// come, and shows that.
func (c *invocation) telling(ctx context.Context, what string, fn func(context.Context) error) error {
	var done disk.Progress
	return c.progress(what).during(done.Done, func() error { return fn(disk.WithProgress(ctx, &done)) })
}

// during runs fn, and meanwhile shows how much of it is done, of 1. In the end the line is
// empty again.
func (p *progressLine) during(done func() float64, fn func() error) error {
	if p.out == nil {
		return fn()
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(progressPause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(p.text(done(), time.Since(p.started)))
			case <-stop:
				p.show("")
				return
			}
		}
	}()
	defer func() { // also if fn panics
		close(stop)
		<-stopped
	}()
	return fn()
}

// text says how much is done, and how long the rest takes if it goes on as before, which says
// nothing in the first seconds. While nothing is known to be done, as of what a server does, it
// says how long that has taken.
func (p *progressLine) text(done float64, took time.Duration) string {
	if done == 0 {
		return p.what + ": " + timeText(took)
	}
	text := fmt.Sprintf("%s: %.0f %%", p.what, 100*done)
	if took < 2*time.Second || done < 0.005 || done >= 1 {
		return text
	}
	return text + ", faltan " + timeText(time.Duration(float64(took)*(1-done)/done))
}

// show puts a text in the place of the one before.
func (p *progressLine) show(text string) {
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-width)))
	if p.width = width; text == "" {
		fmt.Fprint(p.out, "\r")
	}
}
