// Package logline writes the lines of a log, many of them together.
package logline

import (
	"io"
	"sync"
	"time"
)

// A line waits for others for delay at most, and at most space bytes wait.
const (
	delay = 100 * time.Millisecond
	space = 64 << 10
)

// A Writer saves a busy server a system call per request. The first line of a
// request after a pause is written at once; those that follow wait and are written
// together. Any other line is written at once, after those that wait. A killed process
// loses at most delay of request lines. One that fails or stops loses none.
type Writer struct {
	out io.Writer

	mu      sync.Mutex
	lines   []byte      // waiting
	timer   *time.Timer // nil before the first line
	running bool        // whether timer is running
	closed  bool        // no line waits any more
}

// NewWriter returns a Writer that writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Add takes the line of a request.
func (w *Writer) Add(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line...)
	if !w.running || w.closed || len(w.lines) >= space {
		w.writeOut()
	}
	if !w.running && !w.closed {
		w.wait()
	}
}

func (w *Writer) wait() {
	if w.running = true; w.timer == nil {
		w.timer = time.AfterFunc(delay, w.expire)
	} else {
		w.timer.Reset(delay)
	}
}

// expire ends the pause, or writes the lines that wait and begins another.
func (w *Writer) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running = false; len(w.lines) > 0 {
		w.writeOut()
		w.wait()
	}
}

func (w *Writer) writeOut() {
	if len(w.lines) > 0 {
		w.out.Write(w.lines) // a failure could be reported nowhere
		w.lines = w.lines[:0]
	}
}

// Write writes a line that is not of a request, after those that wait.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line...)
	w.writeOut()
	return len(line), nil
}

// Flush writes the lines that wait.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeOut()
}

// Close writes the lines that wait. Later lines do not wait.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.writeOut()
}
