package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A line waits for others for lineDelay at most, and at most lineSpace bytes wait.
const (
	lineDelay = 100 * time.Millisecond
	lineSpace = 64 << 10
)

// A lineWriter saves a busy server a system call per request. The first line of a
// request after a pause is written at once; those that follow wait and are written
// together. Any other line is written at once, after those that wait. A killed process
// loses at most lineDelay of request lines. One that fails or stops loses none.
type lineWriter struct {
	out io.Writer

	mu      sync.Mutex
	lines   []byte      // waiting
	timer   *time.Timer // nil before the first line
	running bool        // whether timer is running
	closed  bool        // no line waits any more
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

// expire ends the pause, or writes the lines that wait and begins another.
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
		w.out.Write(w.lines) // a failure could be reported nowhere
		w.lines = w.lines[:0]
	}
}

// Write writes a line that is not of a request, after those that wait.
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

// close writes the lines that wait. Later lines do not wait.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.writeOut()
}

// knownMethod returns m if it is a standard method, and "other" for an invented one.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "other"
}

// base32 are the digits of rand.Text.
const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
