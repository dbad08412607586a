package main

import "time"

// A cluster is a PostgreSQL server that this program has started.
type cluster struct {
	pid  int // of the process whose children serve the sessions
	dsn  func(database string) string
	ask  func(sql string) (string, error) // in the database postgres
	stop func() error
}

// clusterSettings are those of both sello's and the peer's data: a small server's, on which a
// commit is on the disk once it is acknowledged. Checkpoints are made before a measurement, not
// during one.
var clusterSettings = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=30min",
}

// cpu returns the CPU time of the cluster, of sessions that have ended too. Without a cluster it
// is 0.
func (c *cluster) cpu() (time.Duration, error) {
	if c == nil {
		return 0, nil
	}
	return familyCPU(c.pid)
}
