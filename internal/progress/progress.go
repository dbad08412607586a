// Package progress shows in one line of a terminal how far something long has come.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// pause is how long a line stands before the next one takes its place.
const pause = 250 * time.Millisecond

// A Line shows how far something has come.
type Line struct {
	out        io.Writer // nil: show nothing
	what, left string
	started    time.Time
	width      int // of what stands there, in characters
}

// New returns a line for what is being done, which shows something if out is a terminal. The word
// left stands before the time that the rest takes.
func New(out io.Writer, what, left string) *Line {
	l := &Line{what: what, left: left, started: time.Now()}
	if isTerminal(out) {
		l.out = out
	}
	return l
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

// During runs fn, and meanwhile shows how much of it is done, of 1. In the end the line is
// empty again.
func (l *Line) During(done func() float64, fn func() error) error {
	if l.out == nil {
		return fn()
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.show(l.text(done(), time.Since(l.started)))
			case <-stop:
				l.show("")
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
func (l *Line) text(done float64, took time.Duration) string {
	if done == 0 {
		return l.what + ": " + Time(took)
	}
	text := fmt.Sprintf("%s: %.0f %%", l.what, 100*done)
	if took < 2*time.Second || done < 0.005 || done >= 1 {
		return text
	}
	return text + ", " + l.left + " " + Time(time.Duration(float64(took)*(1-done)/done))
}

// show puts a text in the place of the one before.
func (l *Line) show(text string) {
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(l.out, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-width)))
	if l.width = width; text == "" {
		fmt.Fprint(l.out, "\r")
	}
}

// Time says how long something takes, with the precision that somebody who waits needs.
func Time(d time.Duration) string {
	switch {
	case d <= 99*time.Second:
		return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
	case d <= 99*time.Minute:
		return fmt.Sprintf("%d min", (d+time.Minute/2)/time.Minute)
	}
	return fmt.Sprintf("%d h", (d+time.Hour/2)/time.Hour)
}
