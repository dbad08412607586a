package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Cluster is a PostgreSQL server with its data. Its methods fail the test that started it, so
// they are called from that test's goroutine.
type Cluster struct {
	t        testing.TB // nil for the shared one and that of Serve
	home     *home
	dir      string
	port     int
	settings []string

	server *exec.Cmd
	ended  chan struct{} // closed when server has ended
}

// A Mode is how a server is stopped.
type Mode syscall.Signal

const (
	// Fast ends all sessions, writes a checkpoint and waits for standbys.
	Fast = Mode(syscall.SIGINT)
	// Immediate is a crash: the next start recovers from the write-ahead log.
	Immediate = Mode(syscall.SIGQUIT)
)

// defaults are the settings of every cluster. fsync and synchronous_commit stay on, as in
// production. Several clusters run side by side in 4 GiB, and tests open many connections.
// After a crash a start syncs all files, which takes a second more one by one.
var defaults = []string{
	"listen_addresses=127.0.0.1",
	"shared_buffers=32MB",
	"max_connections=300",
	"log_line_prefix=%m [%p] %a ",
}

func init() {
	if runtime.GOOS == "linux" {
		defaults = append(defaults, "recovery_init_sync_method=syncfs")
	}
}

// Start starts a cluster that ends with the test. Settings are lines of postgresql.conf,
// name=value. The test's log shows the server's if the test fails.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	h, err := house()
	if err != nil {
		give(t, err)
	}
	dir := h.newDir()
	if err := h.copyTemplate(dir); err != nil {
		t.Fatal(err)
	}
	return begin(t, h, dir, settings)
}

// newDir names the folder of another cluster.
func (h *home) newDir() string {
	return filepath.Join(h.dir, strconv.Itoa(int(h.clusters.Add(1))))
}

func (h *home) copyTemplate(dir string) error {
	return finish(h.command("cp", "-R", h.template(), dir))
}

// begin starts the server of a folder and has it end with the test.
func begin(t testing.TB, h *home, dir string, settings []string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, home: h, dir: dir, settings: settings}
	t.Cleanup(func() {
		if c.running() {
			c.Stop(Immediate)
		}
		if t.Failed() {
			t.Logf("log of the server on port %d:\n%s", c.port, c.Log())
		}
		os.RemoveAll(dir)
		os.Remove(c.logFile())
	})
	if err := c.launchAnywhere(); err != nil {
		t.Fatal(err)
	}
	return c
}

// launchAnywhere starts the server on a free port, which it keeps from then on. Another process
// may be quicker to take the port.
func (c *Cluster) launchAnywhere() error {
	var err error
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.launch(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

// freePort finds a port below those that systems give to outgoing connections: one of them could
// take the port while the server is stopped.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + rand.IntN(15000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// launch starts the server and returns once it takes connections.
func (c *Cluster) launch() error {
	args := []string{"-D", c.dir, "-k", c.home.dir, "-p", strconv.Itoa(c.port)}
	for _, setting := range slices.Concat(defaults, c.settings) {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.server = c.home.command(filepath.Join(c.home.bin, "postgres"), args...)
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	go func() {
		c.server.Wait()
		close(c.ended)
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if c.ready() {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("the server does not start:\n%s", c.Log())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server takes no connections within a minute:\n%s", c.Log())
}

// ready reports whether the server takes connections, which it writes into the eighth line of its
// PID file.
func (c *Cluster) ready() bool {
	b, _ := os.ReadFile(filepath.Join(c.dir, "postmaster.pid"))
	lines := strings.Split(string(b), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(c.server.Process.Pid) && strings.TrimSpace(lines[7]) == "ready"
}

func (c *Cluster) running() bool {
	if c.ended == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// Stop stops the server and returns when it has ended.
func (c *Cluster) Stop(mode Mode) {
	c.t.Helper()
	if err := c.server.Process.Signal(syscall.Signal(mode)); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		c.server.Process.Kill()
		c.t.Fatal("the server does not stop within a minute")
	}
}

// Startup starts the server again, on the port it had.
func (c *Cluster) Startup() {
	c.t.Helper()
	if err := c.launch(); err != nil {
		c.t.Fatal(err)
	}
}

// Restart stops the server and starts it again.
func (c *Cluster) Restart(mode Mode) {
	c.t.Helper()
	c.Stop(mode)
	c.Startup()
}

// Port is the port of 127.0.0.1 that the server listens on.
func (c *Cluster) Port() int { return c.port }

// DSN names the database postgres of the cluster, over TCP with a password. With others, which are
// standbys, it names all of them, and drivers look for the one that takes writes.
func (c *Cluster) DSN(others ...*Cluster) string {
	hosts := fmt.Sprintf("127.0.0.1:%d", c.port)
	for _, o := range others {
		hosts += fmt.Sprintf(",127.0.0.1:%d", o.port)
	}
	dsn := fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", c.home.password, hosts)
	if len(others) > 0 {
		dsn += "&target_session_attrs=read-write"
	}
	return dsn
}

// socket is the connection string of the socket in the home.
func (c *Cluster) socket() string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", c.home.dir, c.port)
}

// Query runs SQL with psql and returns the rows, columns between bars.
func (c *Cluster) Query(sql string) string {
	c.t.Helper()
	rows, err := c.Ask(sql)
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

// Exec runs SQL with psql, each statement in a transaction of its own.
func (c *Cluster) Exec(sql string) {
	c.t.Helper()
	c.Query(sql)
}

// Set changes settings that need no restart, name = value as ALTER SYSTEM wants them.
func (c *Cluster) Set(settings ...string) {
	c.t.Helper()
	var sql strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&sql, "ALTER SYSTEM SET %s;\n", s)
	}
	c.Exec(sql.String() + "SELECT pg_reload_conf()")
}

// Version is the server's version: 150018 is 15.18.
func (c *Cluster) Version() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.Query("SHOW server_version_num"))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// Backends lists the process ids of the sessions with an application_name.
func (c *Cluster) Backends(application string) []int {
	c.t.Helper()
	var pids []int
	for line := range strings.Lines(c.Query("SELECT pid FROM pg_stat_activity WHERE application_name = '" + strings.ReplaceAll(application, "'", "''") + "' ORDER BY 1")) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			c.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// Terminate ends the clients' sessions that a condition on pg_stat_activity holds for, and returns
// how many there were.
func (c *Cluster) Terminate(where string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.Query(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND (` + where + ")"))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *Cluster) logFile() string { return c.dir + ".log" }

// Log is the end of the server's log.
func (c *Cluster) Log() string {
	b, err := c.logSince(0)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// logSince reads the server's log from an offset, at most the last 16 KiB.
func (c *Cluster) logSince(offset int64) ([]byte, error) {
	f, err := os.Open(c.logFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if start := max(offset, end-16<<10); start < end {
		offset = start
	} else {
		return nil, nil
	}
	b, err := io.ReadAll(io.NewSectionReader(f, offset, end-offset))
	return bytes.TrimSpace(b), err
}
