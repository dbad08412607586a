// Package processtest runs a server as a process for tests. It starts the server,
// waits until it serves, ends it, and reads what strace recorded of it.
package processtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
)

// A Process is a running `sello serve`.
type Process struct {
	*exec.Cmd
	Base string        // what the API's URLs begin with
	Log  *bytes.Buffer // standard error; complete after Wait

	drained chan struct{}
	once    sync.Once
	err     error
}

var addrLogged = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)

// Start starts a server on a free port and waits until it logs that it serves. It adds
// -addr to the command's arguments. The process is killed when the test ends, if it
// still runs. If it ends before it serves, the error contains its log.
func Start(t testing.TB, cmd *exec.Cmd) (*Process, error) {
	t.Helper()
	cmd.Args = append(cmd.Args, "-addr", "127.0.0.1:0")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{Cmd: cmd, Log: new(bytes.Buffer), drained: make(chan struct{})}
	t.Cleanup(p.Kill)
	lines := bufio.NewReader(pipe)
	for p.Base == "" {
		text, err := lines.ReadString('\n')
		p.Log.WriteString(text)
		if err != nil {
			close(p.drained)
			return nil, fmt.Errorf("%s: it ended: %w\n%s", cmd, p.Wait(), p.Log)
		}
		if m := addrLogged.FindStringSubmatch(text); m != nil {
			p.Base = "http://" + m[1] + "/api/v1"
		}
	}
	go func() {
		defer close(p.drained)
		io.Copy(p.Log, lines)
	}()
	return p, nil
}

// Wait waits until the process has ended.
func (p *Process) Wait() error {
	p.once.Do(func() {
		<-p.drained
		p.err = p.Cmd.Wait()
	})
	return p.err
}

// Kill ends the process as kill -9 does, and waits.
func (p *Process) Kill() {
	p.Process.Kill()
	p.Wait()
}

// Stop asks the process to end, waits, and returns its exit code.
func (p *Process) Stop() int {
	p.Process.Signal(syscall.SIGTERM)
	p.Wait()
	return p.ProcessState.ExitCode()
}
