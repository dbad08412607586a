package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Standby starts a server that follows c, and returns once it does. With sync, commits on c wait
// until the standby has stored them, also while it is away.
func (c *Cluster) Standby(t testing.TB, sync bool) *Cluster {
	t.Helper()
	dir := c.home.newDir()
	name := "standby" + filepath.Base(dir)
	err := c.home.run("pg_basebackup", "-D", dir, "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-d", c.socket()+" application_name="+name)
	if err != nil {
		give(t, err)
	}
	// A standby that is promoted must not wait for the one that it was itself, whose name c may
	// have handed down.
	alone, err := os.OpenFile(filepath.Join(dir, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.WriteString("synchronous_standby_names = ''\n"); err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	s := begin(t, c.home, dir, c.settings)
	state := "async"
	if sync {
		state = "sync"
		c.Set("synchronous_standby_names = '" + name + "'")
	}
	c.await(t, fmt.Sprintf(`SELECT count(*) = 1 FROM pg_stat_replication
		WHERE application_name = '%s' AND state = 'streaming' AND sync_state = '%s'`, name, state))
	return s
}

// Detach makes a standby stop following its primary, so that it misses what is stored from then on.
func (c *Cluster) Detach() {
	c.t.Helper()
	c.Set("primary_conninfo = ''")
	c.await(c.t, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")
}

// Promote makes a standby a primary, and returns when it takes writes.
func (c *Cluster) Promote() {
	c.t.Helper()
	if c.Query("SELECT pg_promote()") != "t" {
		c.t.Fatal("the standby is not promoted within a minute")
	}
	c.await(c.t, "SELECT NOT pg_is_in_recovery()")
}

// await asks until the answer is true.
func (c *Cluster) await(t testing.TB, question string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); c.Query(question) != "t"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", question)
		}
	}
}
