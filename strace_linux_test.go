package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What strace tells of a process, and what it can do to it.

// needStrace skips the test where strace is missing or may not trace.
func needStrace(t testing.TB) {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace")
	}
	for _, how := range []string{"-f", "-fD"} {
		if out, err := exec.Command(path, how, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
			t.Skipf("strace may not trace: %v: %s", err, out)
		}
	}
}

// A syscallEntry is a system call in the log of `strace -f -xx`. It took effect
// between two lines of the log.
type syscallEntry struct {
	start, end int     // lines; end is unending if it did not return
	at         float64 // seconds, with -ttt
	thread     string
	call       string
	args       []string
	result     string // what follows " = "; "" if it did not return
}

const unending = math.MaxInt

// failed tells whether the call returned an error.
func (e *syscallEntry) failed() bool { return strings.HasPrefix(e.result, "-1 ") }

func (e *syscallEntry) injected() bool { return strings.HasSuffix(e.result, "(INJECTED)") }

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(?:(\d+\.\d+) )?(.*)$`)
	traceResume = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	traceCall   = regexp.MustCompile(`^(\w+)\((.*)\) += (.*)$`)
	traceBegun  = regexp.MustCompile(`^(\w+)\((.*)$`)
)

// readTrace reads a log. The first line has the number first; it returns the
// number after the last one. ended is when the last thread ended, with -ttt.
func readTrace(r io.Reader, first int) (list []*syscallEntry, next int, ended float64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	open := map[string]*syscallEntry{} // by thread
	texts := map[string]string{}       // how they begin
	for next = first; lines.Scan(); next++ {
		m := traceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, 0, 0, fmt.Errorf("strace: line %q", lines.Text())
		}
		thread, text := m[1], m[3]
		at, _ := strconv.ParseFloat(m[2], 64)
		switch begun, unfinished := strings.CutSuffix(text, " <unfinished ...>"); {
		case strings.HasPrefix(text, "+++ "):
			ended = at
		case strings.HasPrefix(text, "--- "): // a signal
		case strings.HasPrefix(text, "???"), strings.HasPrefix(text, "<... ???"): // a call whose thread was killed
		case unfinished:
			call := traceBegun.FindStringSubmatch(begun)
			if call == nil {
				return nil, 0, 0, fmt.Errorf("strace: line %q", lines.Text())
			}
			e := &syscallEntry{start: next, end: unending, at: at, thread: thread, call: call[1], args: strings.Split(call[2], ", ")}
			open[thread], texts[thread] = e, begun
			list = append(list, e)
		default:
			e := &syscallEntry{start: next, at: at, thread: thread}
			if m := traceResume.FindStringSubmatch(text); m != nil {
				if open[thread] == nil {
					continue // it began before it was traced
				}
				e, text = open[thread], texts[thread]+m[2]
				delete(open, thread)
			} else {
				list = append(list, e)
			}
			call := traceCall.FindStringSubmatch(text)
			if call == nil {
				return nil, 0, 0, fmt.Errorf("strace: call %.200q", text)
			}
			e.end, e.call, e.args, e.result = next, call[1], strings.Split(call[2], ", "), call[3]
			if strings.HasPrefix(e.result, "?") { // it was killed meanwhile
				e.end, e.result = unending, ""
			}
		}
	}
	return list, next, ended, lines.Err()
}

// text is a string among the arguments.
func (e *syscallEntry) text(arg int) (string, error) {
	if arg >= len(e.args) {
		return "", fmt.Errorf("strace: %s%q", e.call, e.args)
	}
	quoted, ok := strings.CutSuffix(e.args[arg], `"`)
	if ok {
		quoted, ok = strings.CutPrefix(quoted, `"`)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(quoted, `\x`, ""))
	if !ok || err != nil {
		return "", fmt.Errorf("strace: %s: no whole string: %.100s", e.call, e.args[arg])
	}
	return string(b), nil
}

// number is a number among the arguments, or the result if arg is -1.
func (e *syscallEntry) number(arg int) (int64, error) {
	text := e.result
	if arg >= 0 && arg < len(e.args) {
		text = e.args[arg]
	}
	return strconv.ParseInt(text, 10, 64)
}

// traceFile reads the log in a file.
func traceFile(t testing.TB, path string, first int) (list []*syscallEntry, next int, ended float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if list, next, ended, err = readTrace(f, first); err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	return list, next, ended
}
