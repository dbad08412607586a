package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a server that this program has started: sello, the bound or the peer.
type process struct {
	cmd   *exec.Cmd
	pid   int
	addr  string
	file  string    // sello's data; "" for a database and for the others
	stdin io.Closer // of the bound and the peer; closing it ends them

	mu     sync.Mutex
	tail   []byte // the end of its log, shown if it ends by itself
	failed string // the first error in its log
	ended  chan struct{}
	reason error // how it ended; read this and wrote only after ended is closed
	wrote  int64 // the result of written at the end; 0 if not known
}

// drainPause is how long the log of a server stays in its pipe between two reads.
// Reading line by line would cost more CPU than the server spends on writing.
const drainPause = 5 * time.Millisecond

// startSello serves a file, or a database.
func startSello(ctx context.Context, binary, db string, flags ...string) (*process, error) {
	cmd := exec.Command(binary, append([]string{"serve", "-addr", "127.0.0.1:0"}, flags...)...)
	cmd.Env = environment(db)
	file := db
	if strings.HasPrefix(db, "postgres://") {
		file = ""
	}
	return start(ctx, cmd, file, cmd.StderrPipe, func(line []byte) string {
		var l struct{ Msg, Addr string }
		if json.Unmarshal(line, &l) != nil || l.Msg != "serving" {
			return ""
		}
		return l.Addr
	})
}

// environment returns this process's environment, with what -db is to name in place of the
// variables that set flags of sello. So a password does not become part of the command line.
func environment(db string) []string {
	list := []string{"SELLO_DB=" + db}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SELLO_") {
			list = append(list, v)
		}
	}
	return list
}

// start starts a server and returns once the server has printed its address.
func start(ctx context.Context, cmd *exec.Cmd, file string, output func() (io.ReadCloser, error), address func(line []byte) string) (*process, error) {
	p := &process{cmd: cmd, file: file, ended: make(chan struct{})}
	out, err := output()
	if err != nil {
		return nil, err
	}
	growPipe(out)
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	found := make(chan string, 1)
	go func() {
		p.readLog(out, address, found)
		p.wrote, _ = p.written()
		p.reason = cmd.Wait()
		close(p.ended)
	}()
	select {
	case p.addr = <-found:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s: %v: %s", cmd, p.reason, p.lastWords())
	case <-ctx.Done():
		p.kill()
		return nil, context.Cause(ctx)
	}
}

// readLog sends the address in the log to found and then reads on. remember keeps the
// log's end.
func (p *process) readLog(out io.Reader, address func([]byte) string, found chan<- string) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		p.remember(line)
		if err != nil {
			return
		}
		if a := address(bytes.TrimSpace(line)); a != "" {
			found <- a
			break
		}
	}
	for buf := make([]byte, 1<<20); ; {
		n, err := in.Read(buf)
		p.remember(buf[:n])
		if err != nil {
			return
		}
		time.Sleep(drainPause)
	}
}

func (p *process) remember(text []byte) {
	const most = 4 << 10
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := bytes.Index(text, []byte(`"level":"ERROR"`)); at >= 0 && p.failed == "" {
		begin := bytes.LastIndexByte(text[:at], '\n') + 1
		line, _, _ := bytes.Cut(text[begin:], []byte("\n"))
		p.failed = string(line)
	}
	text = text[max(0, len(text)-most):]
	p.tail = append(p.tail, text...)
	p.tail = append(p.tail[:0], p.tail[max(0, len(p.tail)-most):]...)
}

// lastWords returns the last lines of the log that are not about requests.
func (p *process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for line := range strings.Lines(string(p.tail)) {
		if !strings.Contains(line, `"msg":"request"`) {
			words = append(words, strings.TrimSpace(line))
		}
	}
	return strings.Join(words[max(0, len(words)-10):], "\n")
}

// fault returns an error if the server has ended by itself.
func (p *process) fault() error {
	wait := time.After(100 * time.Millisecond) // a connection breaks before its server has ended
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %v: %s", p.cmd.Path, p.reason, p.lastWords())
	case <-wait:
		return nil
	}
}

// stopTimeout is how long a server may take to stop.
const stopTimeout = 2 * time.Minute

// stop ends the server as a supervisor does, and waits until it has ended.
func (p *process) stop() error {
	if err := p.fault(); err != nil {
		return err
	}
	if p.stdin != nil {
		p.stdin.Close()
	} else if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil { // this system has no signals
		p.kill()
		return nil
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("%s did not stop in %v", p.cmd.Path, stopTimeout)
	}
	if p.reason != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, p.reason, p.lastWords())
	}
	if p.failed != "" { // an error that no client saw
		return fmt.Errorf("%s logged: %s", p.cmd.Path, p.failed)
	}
	return nil
}

// kill ends the server at once.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// A server is quiet once it takes less than quietShare of a CPU in each of two
// quietSpans. settle waits at most quietLimit for that.
const (
	quietShare = 0.03
	quietSpan  = 100 * time.Millisecond
	quietLimit = 30 * time.Second
)

// settle waits until the server has finished its deferred work, so that the work takes
// no time from the next measurement. It returns how long the server was busy.
func (p *process) settle(ctx context.Context) time.Duration {
	begin := time.Now()
	before, err := p.cpu()
	if err != nil { // CPU time is unknown here: wait for a fixed time
		wait(ctx, 2*time.Second)
		return 0
	}
	var busy time.Duration
	for calm := 0; calm < 2 && time.Since(begin) < quietLimit && ctx.Err() == nil; {
		wait(ctx, quietSpan)
		now, err := p.cpu()
		if err != nil {
			break
		}
		if calm++; now-before >= time.Duration(quietShare*float64(quietSpan)) {
			calm, busy = 0, time.Since(begin)
		}
		before = now
	}
	return busy
}
