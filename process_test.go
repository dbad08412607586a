package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Tests of what only a process can suffer (to be killed, to run out of disk,
// to be signalled) run the real binary, built once for all of them.

// builtBinaries are those that were built, by the folder of their main and how.
var builtBinaries struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

func TestMain(m *testing.M) {
	if ranPowerLoad() || ranSmallServer() {
		return
	}
	code := m.Run()
	os.RemoveAll(builtBinaries.dir) // "" is no file
	os.Exit(code)
}

// builtBinary returns the path of the binary of the main package in a folder of the
// module; "." is sello itself. Flags are for go build.
func builtBinary(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	name := strings.Join(append(flags, "./"+folder), " ")
	b := &builtBinaries
	b.Lock()
	defer b.Unlock()
	if path := b.paths[name]; path != "" {
		return path
	}
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "sello-built")
		if err != nil {
			t.Fatal(err)
		}
		b.dir, b.paths = dir, map[string]string{}
	}
	path := filepath.Join(b.dir, fmt.Sprintf("main%d.exe", len(b.paths)))
	if out, err := exec.Command("go", append([]string{"build", "-o", path}, strings.Fields(name)...)...).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	b.paths[name] = path
	return path
}

// A process is a running `sello serve`.
type process struct {
	*exec.Cmd
	base string // of the API's URLs
	log  *bytes.Buffer

	drained chan struct{}
	once    sync.Once
	err     error
}

// startProcess runs a command until it logs that it serves. The command's
// arguments are without the address. Whoever starts it need not end it. If it
// ends before it serves, that is returned with what it wrote.
func startProcess(t testing.TB, cmd *exec.Cmd) (*process, error) {
	t.Helper()
	cmd.Args = append(cmd.Args, "-addr", "127.0.0.1:0")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, log: new(bytes.Buffer), drained: make(chan struct{})}
	t.Cleanup(func() { p.kill() })
	lines := bufio.NewReader(pipe)
	for p.base == "" {
		text, err := lines.ReadString('\n')
		p.log.WriteString(text)
		if err != nil {
			close(p.drained)
			return nil, fmt.Errorf("%s: it ended: %w\n%s", cmd, p.wait(), p.log)
		}
		if m := addrLogged.FindStringSubmatch(text); m != nil {
			p.base = "http://" + m[1] + "/api/v1"
		}
	}
	go func() {
		defer close(p.drained)
		io.Copy(p.log, lines)
	}()
	return p, nil
}

// serveProcess runs `sello serve` on a file.
func serveProcess(t testing.TB, db string, args ...string) *process {
	t.Helper()
	p, err := startProcess(t, exec.Command(builtBinary(t, "."), append([]string{"serve", "-db", db}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wait waits for the process's end; its log is whole by then.
func (p *process) wait() error {
	p.once.Do(func() {
		<-p.drained
		p.err = p.Cmd.Wait()
	})
	return p.err
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.Process.Kill()
	p.wait()
}

// stop asks the process to end, waits, and returns its exit code.
func (p *process) stop() int {
	p.Process.Signal(syscall.SIGTERM)
	p.wait()
	return p.ProcessState.ExitCode()
}

// TestProcess: the binary serves, and ends as it should.
func TestProcess(t *testing.T) {
	p := serveProcess(t, filepath.Join(t.TempDir(), "sello.db"))
	res, err := http.Get(p.base[:len(p.base)-len("/api/v1")] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if code := p.stop(); res.StatusCode != http.StatusOK || code != 0 {
		t.Errorf("/readyz: %d, exit code %d\n%s", res.StatusCode, code, p.log)
	}
	if _, err := startProcess(t, exec.Command(builtBinary(t, "."), "serve", "-db", t.TempDir())); err == nil {
		t.Error("it serves a directory")
	}
}
