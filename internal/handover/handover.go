// Package handover hands files to a command, one at a time: what takes them to another machine.
package handover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sello/internal/host"
)

const (
	limit    = time.Hour       // how long the command may take
	grace    = 3 * time.Second // between the signals that end it
	tailSize = 1 << 10         // bytes of its output that are kept: the last ones
)

const place = "{}" // stands for the file's path among the words of a command

// ErrEmpty refuses a command without words.
var ErrEmpty = errors.New("handover: no command")

// A Command is run for the newest file that it has not got yet, without a shell. A nil Command
// gets none.
type Command struct {
	args    []string    // the program first
	fresh   chan string // the newest file that the command has not got yet
	without []string    // names of environment variables
}

// Parse parses a command: the path of a program, or words that spaces separate. Where no word
// is {}, the file's path is the last argument. The command gets the environment of this process
// without some variables. What is wrong with the program is an *exec.Error.
func Parse(text string, without ...string) (*Command, error) {
	words := strings.Fields(text)
	if _, err := exec.LookPath(text); err == nil {
		words = []string{text}
	}
	if len(words) == 0 {
		return nil, ErrEmpty
	}
	path, err := exec.LookPath(words[0])
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &exec.Error{Name: words[0], Err: err}
	}
	if words[0] = path; !slices.Contains(words, place) {
		words = append(words, place)
	}
	return &Command{words, make(chan string, 1), without}, nil
}

// Hand leaves a file for the command, in place of one that waits. Only one goroutine may call it.
func (c *Command) Hand(file string) {
	if c == nil {
		return
	}
	select {
	case <-c.fresh:
	default:
	}
	c.fresh <- file
}

// Handed waits for the files that are left, until ctx ends.
func (c *Command) Handed(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case file := <-c.fresh:
				if !yield(file) {
					return
				}
			}
		}
	}
}

// Run runs the command for a file, and returns the end of its output. It ends the command when
// ctx ends or an hour is over.
func (c *Command) Run(ctx context.Context, file string) (output string, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := slices.Clone(c.args)
	for i, word := range args {
		if word == place {
			args[i] = file
		}
	}
	cmd, end := exec.CommandContext(limited, args[0], args[1:]...), new(tail)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(c.without, name)
	})
	cmd.Stdout, cmd.Stderr = end, end
	cmd.WaitDelay = grace
	killAll := host.EndGently(cmd)
	err = cmd.Run()
	switch {
	case limited.Err() != nil:
		killAll()
		if ctx.Err() == nil {
			err = fmt.Errorf("it took longer than %v", limit)
		}
	case errors.Is(err, exec.ErrWaitDelay):
		err = errors.New("it ended, and something that it started goes on")
	}
	return end.String(), err
}

// A tail keeps the end of what is written to it. One goroutine may write at a time.
type tail struct {
	text []byte
	cut  bool
}

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if n > tailSize {
		b, t.cut = b[n-tailSize:], true
	}
	if over := len(t.text) + len(b) - tailSize; over > 0 {
		t.text, t.cut = append(t.text[:0], t.text[over:]...), true
	}
	t.text = append(t.text, b...)
	return n, nil
}

func (t *tail) String() string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "")
	if t.cut {
		text = "… " + text
	}
	return text
}
