package pgtest

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// Serve is Start for a program that is no test. The server ends with stop, or with the process.
// Of the cluster's methods only Port, DSN, PID, Ask and Log may be used: the others fail a test.
func Serve(settings ...string) (c *Cluster, stop func() error, err error) {
	h, err := house()
	if err != nil {
		return nil, nil, err
	}
	c = &Cluster{home: h, dir: h.newDir(), settings: settings}
	if err = h.copyTemplate(c.dir); err == nil {
		err = c.launchAnywhere()
	}
	if err != nil {
		return nil, nil, err
	}
	return c, sync.OnceValue(func() error {
		err := c.server.Process.Signal(syscall.Signal(Immediate))
		select {
		case <-c.ended:
		case <-time.After(time.Minute):
			err = errors.Join(err, c.server.Process.Kill())
		}
		return errors.Join(err, os.RemoveAll(c.dir))
	}), nil
}

// PID is the process of the server. The processes of its sessions are that one's children.
func (c *Cluster) PID() int { return c.server.Process.Pid }

// Ask is Query with an error in place of a test that fails.
func (c *Cluster) Ask(sql string) (string, error) { return c.home.psql(c.socket(), "", sql) }
