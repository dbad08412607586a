package processtest

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

// NeedStrace skips the test if strace is missing or not permitted to trace.
func NeedStrace(t testing.TB) {
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

// A Syscall is a system call in the log of `strace -f -xx`. It took effect between the
// lines Start and End.
type Syscall struct {
	Start, End int     // lines; End is Unending if the call did not return
	At         float64 // seconds, with -ttt
	Call       string
	Args       []string
	Result     string // what follows " = "; "" if the call did not return

	begun string // the first line, if the log has the call on two
}

// Unending is the end of a call that did not return.
const Unending = math.MaxInt

// Failed reports whether the call returned an error.
func (s *Syscall) Failed() bool { return strings.HasPrefix(s.Result, "-1 ") }

// Injected reports whether strace made up the call's result.
func (s *Syscall) Injected() bool { return strings.HasSuffix(s.Result, "(INJECTED)") }

// Text returns an argument that is a string.
func (s *Syscall) Text(arg int) (string, error) {
	if arg >= len(s.Args) {
		return "", fmt.Errorf("strace: %s%q", s.Call, s.Args)
	}
	quoted, ok := strings.CutSuffix(s.Args[arg], `"`)
	if ok {
		quoted, ok = strings.CutPrefix(quoted, `"`)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(quoted, `\x`, ""))
	if !ok || err != nil {
		return "", fmt.Errorf("strace: %s: no whole string: %.100s", s.Call, s.Args[arg])
	}
	return string(b), nil
}

// Number returns an argument that is a number, or the result if arg is -1.
func (s *Syscall) Number(arg int) (int64, error) {
	text := s.Result
	if arg >= 0 && arg < len(s.Args) {
		text = s.Args[arg]
	}
	return strconv.ParseInt(text, 10, 64)
}

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(?:(\d+\.\d+) )?(.*)$`)
	traceResume = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	traceCall   = regexp.MustCompile(`^(\w+)\((.*)\) += (.*)$`)
	traceBegun  = regexp.MustCompile(`^(\w+)\((.*)$`)
)

// ReadTrace reads the log in a file and numbers its lines from first on. It returns the
// calls in the order in which they began, the number after the last line's, and, with
// -ttt, when the last thread ended.
func ReadTrace(t testing.TB, path string, first int) (calls []*Syscall, next int, ended float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if calls, next, ended, err = readTrace(f, first); err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	return calls, next, ended
}

func readTrace(r io.Reader, first int) (calls []*Syscall, next int, ended float64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	open := map[string]*Syscall{} // by thread
	for next = first; lines.Scan(); next++ {
		m := traceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, 0, 0, fmt.Errorf("strace: line %q", lines.Text())
		}
		thread, text := m[1], m[3]
		at, _ := strconv.ParseFloat(m[2], 64)
		begun, unfinished := strings.CutSuffix(text, " <unfinished ...>")
		resumed := traceResume.FindStringSubmatch(text)
		switch {
		case strings.HasPrefix(text, "+++ "):
			ended = at
		case strings.HasPrefix(text, "--- "): // a signal
		case strings.HasPrefix(text, "???"), strings.HasPrefix(text, "<... ???"): // a call whose thread was killed
		case unfinished:
			s, err := beginCall(begun)
			if err != nil {
				return nil, 0, 0, err
			}
			s.Start, s.At = next, at
			open[thread] = s
			calls = append(calls, s)
		case resumed != nil && open[thread] == nil: // it began before it was traced
		case resumed != nil:
			s := open[thread]
			delete(open, thread)
			if err := s.end(next, s.begun+resumed[2]); err != nil {
				return nil, 0, 0, err
			}
		default:
			s := &Syscall{Start: next, At: at}
			if err := s.end(next, text); err != nil {
				return nil, 0, 0, err
			}
			calls = append(calls, s)
		}
	}
	return calls, next, ended, lines.Err()
}

// beginCall reads the first of a call's two lines. The caller sets Start and At.
func beginCall(text string) (*Syscall, error) {
	m := traceBegun.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("strace: line %q", text)
	}
	return &Syscall{End: Unending, Call: m[1], Args: strings.Split(m[2], ", "), begun: text}, nil
}

// end reads the whole text of a call, which ended at the given line.
func (s *Syscall) end(line int, text string) error {
	m := traceCall.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("strace: call %.200q", text)
	}
	s.End, s.Call, s.Args, s.Result = line, m[1], strings.Split(m[2], ", "), m[3]
	if strings.HasPrefix(s.Result, "?") { // the thread was killed during the call
		s.End, s.Result = Unending, ""
	}
	return nil
}
