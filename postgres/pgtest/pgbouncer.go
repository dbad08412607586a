package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PgBouncer starts pgbouncer in front of a cluster, in transaction mode and otherwise as it comes,
// and returns a DSN that goes through it. It ends with the test.
func PgBouncer(t testing.TB, c *Cluster) string {
	t.Helper()
	program, err := c.home.program("pgbouncer")
	if err != nil {
		give(t, missing("pgbouncer is not here: `apt-get install pgbouncer` as root installs it"))
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(c.home.dir, fmt.Sprintf("pgbouncer%d", port))
	config, pid, log := base+".ini", base+".pid", base+".log"
	if err := os.WriteFile(config, fmt.Appendf(nil, `[databases]
postgres = host=%s port=%d user=postgres dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
pidfile = %s
logfile = %s
`, c.home.dir, c.port, port, pid, log), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.home.own(config); err != nil {
		t.Fatal(err)
	}
	cmd := c.home.command(program, "-q", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if said, _ := os.ReadFile(log); t.Failed() {
			t.Logf("log of pgbouncer:\n%s", said)
		}
		os.Remove(pid)
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return "postgres://postgres@" + address + "/postgres?sslmode=disable"
		}
		select {
		case <-ended:
			err = errors.New("pgbouncer has ended")
			deadline = time.Time{}
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
