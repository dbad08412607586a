package main

import (
	"io"
	"sync"
	"time"
)

// lineDelay is how long a line may wait for others, and lineSpace how many
// bytes of them do.
const (
	lineDelay = 100 * time.Millisecond
	lineSpace = 64 << 10
)

// A lineWriter spares a busy server a system call for each request. The line
// of a request after a pause goes out at once; those that follow it wait for
// one another. All else that is logged goes out at once, after them. So a
// process that is killed loses lineDelay of lines of requests at most, and one
// that fails or stops, none.
type lineWriter struct {
	out io.Writer

	mu      sync.Mutex
	lines   []byte      // that wait
	timer   *time.Timer // nil before the first line
	running bool        // timer
	closed  bool        // nothing waits any more
}

// add takes the line of a request.
func (w *lineWriter) add(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line...)
	if !w.running || w.closed || len(w.lines) >= lineSpace {
		w.writeOut()
	}
	if !w.running && !w.closed {
		w.wait()
	}
}

func (w *lineWriter) wait() {
	if w.running = true; w.timer == nil {
		w.timer = time.AfterFunc(lineDelay, w.expire)
	} else {
		w.timer.Reset(lineDelay)
	}
}

// expire ends a pause, or a wait of lines.
func (w *lineWriter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running = false; len(w.lines) > 0 {
		w.writeOut()
		w.wait()
	}
}

func (w *lineWriter) writeOut() {
	if len(w.lines) > 0 {
		w.out.Write(w.lines) // there is nowhere to report that it failed
		w.lines = w.lines[:0]
	}
}

// Write takes a line of anything else.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line...)
	w.writeOut()
	return len(line), nil
}

// flush writes the lines that wait.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeOut()
}

// close is flush, after which no line waits.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.writeOut()
}
