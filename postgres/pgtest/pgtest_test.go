package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asChild makes the test binary start servers, say where they are and be killed.
const asChild = "PGTEST_CHILD"

// sql runs SQL through a DSN, as a test's own driver would.
func sql(dsn, text string) (string, error) {
	h, err := house()
	if err != nil {
		return "", err
	}
	return h.psql(dsn, "", text)
}

func mustSQL(t *testing.T, dsn, text string) string {
	t.Helper()
	rows, err := sql(dsn, text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestDSN checks that each DSN is an empty schema of its own, and that schemas are dropped.
func TestDSN(t *testing.T) {
	var first string
	t.Run("first", func(t *testing.T) {
		first = DSN(t)
		mustSQL(t, first, "CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
		if got := mustSQL(t, first, "SELECT a, current_schema() FROM t"); !strings.HasPrefix(got, "7|sello_test_") {
			t.Errorf("rows %q", got)
		}
	})
	start := time.Now()
	for range 5 * batch {
		if dsn := DSN(t); dsn == first {
			t.Fatalf("%s twice", dsn)
		}
	}
	t.Logf("%v for each of %d", time.Since(start)/(5*batch), 5*batch)
	if got := mustSQL(t, DSN(t), "SELECT to_regclass('t') IS NULL, current_schema() IS NOT NULL"); got != "t|t" {
		t.Errorf("another test's schema holds a table: %s", got)
	}
	if got := mustSQL(t, first, "SELECT current_schema() IS NULL"); got != "t" {
		t.Error("the schema of a test that has ended is still there")
	}
	if got := mustSQL(t, first, "SELECT current_setting('fsync'), current_setting('synchronous_commit')"); got != "on|on" {
		t.Errorf("fsync and synchronous_commit: %s", got)
	}
}

// TestDSNElsewhere checks SELLO_TEST_POSTGRES, whose schemas are dropped when the process ends.
func TestDSNElsewhere(t *testing.T) {
	c := Start(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDSN$")
	cmd.Env = append(os.Environ(), "SELLO_TEST_POSTGRES="+c.DSN(), "PATH="+c.home.bin+":"+os.Getenv("PATH"))
	if err := finish(cmd); err != nil {
		t.Fatal(err)
	}
	c.await(t, "SELECT count(*) = 0 FROM pg_namespace WHERE nspname LIKE 'sello_test%'")
}

// TestGive checks that what a machine lacks skips a test, or fails it where a server must be.
func TestGive(t *testing.T) {
	for _, test := range []struct {
		must    string
		err     error
		skipped bool
	}{
		{"", missing("nothing here"), true},
		{"", fmt.Errorf("psql: %w", missing("nothing here")), true},
		{"", errors.New("a fault"), false},
		{"1", missing("nothing here"), false},
	} {
		t.Setenv("SELLO_TEST_POSTGRES_MUST", test.must)
		var told verdict
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { recover() }()
			give(&told, test.err)
		}()
		<-done
		if told.skipped != test.skipped || told.failed == test.skipped {
			t.Errorf("must %q, %v: %+v", test.must, test.err, told)
		}
	}
}

// A verdict is a testing.TB that only notes how it ends.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()      {}
func (v *verdict) Skip(...any)  { v.skipped = true; panic("skip") }
func (v *verdict) Fatal(...any) { v.failed = true; panic("fatal") }

// TestRestart checks that a cluster keeps what was stored over a crash, its port and settings too.
func TestRestart(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := Start(t, "work_mem=5MB")
	t.Logf("started in %v", time.Since(start))
	c.Exec("CREATE TABLE t (a int)")
	for i, mode := range []Mode{Immediate, Fast} {
		mustSQL(t, c.DSN(), fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
		start = time.Now()
		c.Restart(mode)
		t.Logf("restarted in %v", time.Since(start))
		if got, want := mustSQL(t, c.DSN(), "SELECT count(*), current_setting('work_mem') FROM t"), fmt.Sprintf("%d|5MB", i+1); got != want {
			t.Errorf("after restart: %s, want %s", got, want)
		}
	}
	c.Stop(Fast)
	if _, err := sql(c.DSN(), "SELECT 1"); err == nil {
		t.Error("a stopped server answers")
	}
	c.Startup()
	if v := c.Version(); v < 150000 {
		t.Errorf("version %d", v)
	}
	if !strings.Contains(c.Log(), "was not properly shut down") {
		t.Errorf("the log does not tell of the crash:\n%s", c.Log())
	}
}

// TestTerminate finds a session by its application_name and ends it.
func TestTerminate(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ended := make(chan error)
	go func() {
		_, err := sql(c.DSN()+"&application_name=it's", "SELECT pg_sleep(60)")
		ended <- err
	}()
	c.await(t, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%sleep(60)%' AND pid <> pg_backend_pid()")
	if pids := c.Backends("it's"); len(pids) != 1 {
		t.Errorf("sessions %v", pids)
	}
	if n := c.Terminate("application_name LIKE 'it%'"); n != 1 {
		t.Errorf("%d terminated", n)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminating connection") {
		t.Errorf("the session ends with %v", err)
	}
	if pids := c.Backends("it's"); pids != nil {
		t.Errorf("sessions %v", pids)
	}
}

// TestStandby fails over to both kinds of standby. A synchronous one has all that was stored; one
// that was detached before has not.
func TestStandby(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{true, false} {
		t.Run(fmt.Sprint("sync ", sync), func(t *testing.T) {
			t.Parallel()
			primary := Start(t)
			primary.Exec("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
			standby := primary.Standby(t, sync)
			standby.await(t, "SELECT count(*) = 1 FROM t")
			if !sync {
				standby.Detach()
			}
			primary.Exec("INSERT INTO t VALUES (2)")
			primary.Stop(Immediate)
			standby.Promote()
			want := "1"
			if sync {
				want = "2"
			}
			if got := mustSQL(t, primary.DSN(standby), "INSERT INTO t VALUES (3); SELECT count(*) - 1 FROM t"); got != want {
				t.Errorf("%s rows on the new primary, want %s", got, want)
			}
		})
	}
}

// TestPgBouncer runs a transaction through the pooler.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	c := Start(t)
	dsn := PgBouncer(t, c)
	if got := mustSQL(t, dsn, "CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (7); COMMIT; SELECT a FROM t"); got != "7" {
		t.Errorf("rows %q", got)
	}
	if n := c.Terminate("true"); n != 1 {
		t.Errorf("%d sessions in the pool", n)
	}
}

// TestKilled checks that no server outlives a process that is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(asChild) != "" {
		c := Start(t)
		shared, _ := common()
		PgBouncer(t, c)
		fmt.Printf("\n%s %d %d\n", c.home.dir, c.server.Process.Pid, shared.cluster.server.Process.Pid)
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	DSN(t) // or there is no server
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), asChild+"=1", "SELLO_TEST_POSTGRES=")
	out, err := cmd.CombinedOutput()
	var dir string
	var pids [2]int
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if _, scanned := fmt.Sscanf(lines[len(lines)-1], "%s %d %d", &dir, &pids[0], &pids[1]); err == nil || scanned != nil {
		t.Fatalf("%v, %v: %s", err, scanned, out)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) && !runs(pids[0], dir) && !runs(pids[1], dir) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v; %d runs: %t; %d runs: %t", dir, err, pids[0], runs(pids[0], dir), pids[1], runs(pids[1], dir))
		}
	}
}

// runs reports whether a process is there whose command line names dir.
func runs(pid int, dir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(line), dir)
}

// A backend stands for PostgreSQL behind a proxy: it notes the messages that come and answers
// each Sync and Query.
type backend struct {
	listener net.Listener
	came     chan string // the kinds of messages of one connection, as it ends, and how it ends
}

func newBackend(t *testing.T) *backend {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	b := &backend{listener, make(chan string, 10)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *backend) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	io.ReadFull(r, make([]byte, 8))
	conn.Write(frame('Z', "I"))
	var kinds []byte
	for {
		head, err := r.Peek(1)
		if err != nil {
			b.came <- string(kinds)
			return
		}
		kinds = append(kinds, head[0])
		message, err := readMessage(r)
		if err != nil {
			b.came <- string(kinds) + " half"
			return
		}
		if message[0] == 'S' || message[0] == 'Q' {
			conn.Write(append(frame('C', "DONE\x00"), frame('Z', "I")...))
		}
	}
}

func frame(kind byte, body string) []byte {
	n := len(body) + 4
	return append([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// frames makes messages: Q text, P name text, B name, and single letters.
func frames(words ...string) []byte {
	var all []byte
	for _, word := range words {
		kind, rest, _ := strings.Cut(word, " ")
		switch kind {
		case "Q":
			all = append(all, frame('Q', rest+"\x00")...)
		case "P":
			name, text, _ := strings.Cut(rest, " ")
			all = append(all, frame('P', name+"\x00"+text+"\x00\x00\x00")...)
		case "B":
			all = append(all, frame('B', "\x00"+rest+"\x00\x00\x00\x00\x00\x00\x00")...)
		default:
			all = append(all, frame(kind[0], "")...)
		}
	}
	return all
}

var (
	simple   = frames("Q insert", "Q commit")
	unnamed  = frames("P  begin", "B ", "E", "P  insert", "B ", "E", "P  Commit", "B ", "E", "S")
	prepared = frames("P c commit", "D", "S", "P i insert", "S", "B i", "E", "B c", "E", "S")
)

// TestProxyFaults cuts hand-made streams at each point.
func TestProxyFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		stream []byte
		fault  Fault
		server string // what reaches the server; "": the connection stays
		ready  int    // how many answers reach the client, with that to its start
		client error  // how the client's connection ends; nil: it stays
	}{
		{"simple, none", simple, Fault{}, "", 3, nil},
		{"simple, delay", simple, Fault{Delay: 50 * time.Millisecond}, "", 3, nil},
		{"simple, before", simple, Fault{At: Before}, "Q", -1, syscall.ECONNRESET},
		{"simple, before, FIN", simple, Fault{At: Before, End: Close}, "Q", -1, io.EOF},
		{"simple, before, hole", simple, Fault{At: Before, End: Hole}, "", -1, nil},
		{"simple, inside", simple, Fault{At: Inside}, "QQ half", -1, syscall.ECONNRESET},
		{"simple, sent", simple, Fault{At: Sent}, "QQ", -1, syscall.ECONNRESET},
		{"simple, after", simple, Fault{At: After}, "QQ", -1, syscall.ECONNRESET},
		{"unnamed, none", unnamed, Fault{}, "", 2, nil},
		{"unnamed, before", unnamed, Fault{At: Before}, "PBEPBEP", 1, syscall.ECONNRESET},
		{"unnamed, inside", unnamed, Fault{At: Inside, End: Close}, "PBEPBEPB half", 1, io.EOF},
		{"unnamed, sent", unnamed, Fault{At: Sent, End: Close}, "PBEPBEPBES", 1, io.EOF},
		{"unnamed, after", unnamed, Fault{At: After}, "PBEPBEPBES", 1, syscall.ECONNRESET},
		{"unnamed, after, hole", unnamed, Fault{At: After, End: Hole}, "", 1, nil},
		{"prepared, none", prepared, Fault{}, "", 4, nil},
		{"prepared, before", prepared, Fault{At: Before}, "PDSPSBE", -1, syscall.ECONNRESET},
		{"prepared, after", prepared, Fault{At: After, End: Close}, "PDSPSBEBES", -1, io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			p := NewProxy(t, "postgres://u@"+b.listener.Addr().String()+"/d", func(int) Fault { return test.fault })
			client, err := net.Dial("tcp", p.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			client.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}) // SSLRequest
			if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			client.Write([]byte{0, 0, 0, 8, 0, 3, 0, 0}) // protocol 3.0
			ready := 0
			r := bufio.NewReader(client)
			if _, err := readMessage(r); err == nil {
				ready++
			}
			// What is to come may take its time on a busy machine. What is not to come is waited for a moment.
			const moment = 200 * time.Millisecond
			patience := func(comes bool) time.Duration {
				if comes {
					return 20 * time.Second
				}
				return moment
			}
			start := time.Now()
			client.Write(test.stream)
			for err == nil {
				client.SetReadDeadline(time.Now().Add(patience(test.client != nil || ready < test.ready)))
				var message []byte
				if message, err = readMessage(r); err == nil && message[0] == 'Z' {
					ready++
					if took := time.Since(start); test.ready == ready && took < test.fault.Delay {
						t.Errorf("answered after %v", took)
					}
				}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil
			}
			if !errors.Is(err, test.client) {
				t.Errorf("the client's connection ends with %v, want %v", err, test.client)
			}
			if test.ready >= 0 && ready != test.ready {
				t.Errorf("%d answers, want %d", ready, test.ready)
			}
			var server string
			select {
			case server = <-b.came:
			case <-time.After(patience(test.server != "")):
			}
			if server != test.server {
				t.Errorf("the server got %q, want %q", server, test.server)
			}
			if n := p.Commits(); n != 1 {
				t.Errorf("%d commits", n)
			}
		})
	}
}

// TestProxy puts the proxy in front of PostgreSQL: what each fault leaves stored.
func TestProxy(t *testing.T) {
	t.Parallel()
	c := Start(t)
	c.Exec("CREATE TABLE t (a int)")
	faults := []Fault{{}, {At: Before}, {At: Inside}, {At: Sent}, {At: After}, {At: After, End: Close}}
	p := NewProxy(t, c.DSN(), func(commit int) Fault { return faults[commit-1] })
	for i, fault := range faults {
		_, err := sql(p.DSN(), fmt.Sprintf("BEGIN; INSERT INTO t VALUES (%d); COMMIT", i+1))
		if (err == nil) != (fault.At == Nowhere) {
			t.Errorf("%+v: %v", fault, err)
		}
	}
	c.await(t, "SELECT string_agg(a::text, ' ' ORDER BY a) = '1 4 5 6' FROM t")
	if p.Commits() != len(faults) {
		t.Errorf("%d commits", p.Commits())
	}

	p.Latency(50 * time.Millisecond)
	start := time.Now()
	mustSQL(t, p.DSN(), "SELECT 1")
	if took := time.Since(start); took < 100*time.Millisecond { // log-in, statement
		t.Errorf("with latency: %v", took)
	}
	p.Latency(0)

	p.Freeze()
	ended := make(chan error)
	go func() {
		_, err := sql(p.DSN(), "SELECT 1")
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("through a frozen proxy: %v", err)
	case <-time.After(200 * time.Millisecond):
		p.Thaw()
		if err := <-ended; err != nil {
			t.Errorf("thawed: %v", err)
		}
	}

	go func() {
		_, err := sql(p.DSN(), "SELECT pg_sleep(60)")
		ended <- err
	}()
	c.await(t, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%sleep(60)%' AND pid <> pg_backend_pid()")
	p.Cut()
	if err := <-ended; err == nil {
		t.Error("a connection lives that was cut")
	}
}

// TestPrograms checks the order of folders: PATH, then versions as numbers.
func TestPrograms(t *testing.T) {
	t.Setenv("PATH", filepath.Join("a", "b"))
	if dirs := programDirs(); dirs[0] != filepath.Join("a", "b") {
		t.Errorf("folders %q", dirs)
	}
}
