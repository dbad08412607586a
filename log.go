package main

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// appendLogLine appends the line that a request leaves in the log: JSON as a
// slog.JSONHandler writes it, without what is not known.
func (x *exchange) appendLogLine(b []byte, r *http.Request, ended time.Time) []byte {
	b = ended.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano)
	b = appendJSONString(append(b, `","level":"INFO","msg":"request","requestId":`...), x.requestID[0])
	b = append(append(b, `,"method":"`...), knownMethod(r.Method)...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(x.status), 10)
	b = decimal(ended.Sub(x.started).Microseconds() * (decimalOne / 1000)).append(append(b, `,"ms":`...))
	for _, known := range [...]struct{ name, value string }{ // nothing in them has to be escaped
		{`,"route":"`, x.route}, {`,"key":"`, x.key}, {`,"organization":"`, x.organization}, {`,"code":"`, x.code},
	} {
		if known.value != "" {
			b = append(append(append(b, known.name...), known.value...), '"')
		}
	}
	return append(b, '}', '\n')
}

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
