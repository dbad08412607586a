package main

import (
	"context"
	"sync"

	"sello/internal/gate"
)

// What the panel knows of the server that it runs in, and what it may start there.

// Actions of the audit log, of the organization that the operator is in.
const (
	auditVerifyStarted = "verify.started"
)

// A panelServer is what serve.go gives the panel. The figures are those of -metrics, from the
// same sources.
type panelServer struct {
	store    openedStore
	gate     *gate.Gate
	space    *diskSpace // of the file
	hooks    *deliverer
	plan     *backupPlan // nil for a database, which PostgreSQL backs up
	build    buildInfo
	started  instant
	address  string         // that it listens at
	name     string         // of the file, with its whole path, or of the database
	sweepLag func() float64 // in seconds; NaN if it is not known

	check      func(context.Context, verifyRequest, *verifyProgress) (*verification, error)
	background func(func(context.Context)) // runs work until the server stops, which ends its context

	copying  panelTask[struct{}, *backedUp]
	checking panelTask[verifyProgress, *verification]
}

// A panelTask is work that may outlast a request, such as a backup. It runs in the background, once
// at a time, and ends with the server. The result of its last run is kept in memory until the next
// run ends, or the process.
type panelTask[P, R any] struct {
	mu      sync.Mutex
	running taskRun[P, R]
	last    taskRun[P, R]
}

// A taskRun is one run of a task; without Progress it is none.
type taskRun[P, R any] struct {
	Progress     *P
	Began, Ended instant
	Result       R
	Err          error
}

// begin claims the task. ok is false if it runs already.
func (k *panelTask[P, R]) begin(now instant) (progress *P, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running.Progress != nil {
		return nil, false
	}
	k.running = taskRun[P, R]{Progress: new(P), Began: now}
	return k.running.Progress, true
}

// end gives the claim back, with the result of the run.
func (k *panelTask[P, R]) end(now instant, result R, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.running = k.running, taskRun[P, R]{}
	k.last.Ended, k.last.Result, k.last.Err = now, result, err
}

// drop gives the claim back: nothing was done.
func (k *panelTask[P, R]) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = taskRun[P, R]{}
}

// runs returns the run that is under way, and the last one that ended; each without a
// progress if there is none.
func (k *panelTask[P, R]) runs() (running, last taskRun[P, R]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running, k.last
}
