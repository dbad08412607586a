package main

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Of several servers on one database, one does what all could do: the sweep, and the deliveries of
// each webhook. It has the lease of a name. Two may think so at once, as when one of them slept
// longer than a lease lasts. So what is done under a lease looks in its transaction at what it
// acts upon, and is right whoever does it.

// A server has a lease of its own from its start to its last write.
const serverLeases = "server/" // and its machine and address

// unserved returns errDatabaseServed if a server uses the database. One that was killed counts for
// some seconds.
func unserved(ctx context.Context, database wholeStore) error {
	served, err := database.leased(ctx, serverLeases)
	if served {
		err = errDatabaseServed
	}
	return err
}

// leaseRenewal is how often who works under a lease makes it last longer.
const leaseRenewal = 3 * time.Second

// A lease is what this process knows of the lease of a name.
type lease struct {
	store *watchedStore
	name  string

	mu    sync.Mutex
	taken time.Time // when it was asked for and got; zero: it is not this process's
}

// held reports whether this process has the lease. It takes one that nobody has, and makes one
// that was taken leaseRenewal ago last longer. If the store does not say, it has none: what it
// did could not be stored either.
func (l *lease) held(ctx context.Context) bool {
	if l.store.shared == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := time.Now()
	if asked.Sub(l.taken) < leaseRenewal {
		return true
	}
	within, cancel := context.WithTimeout(ctx, leaseRenewal)
	defer cancel()
	if l.taken = (time.Time{}); l.store.mine(within, l.name) {
		l.taken = asked
	}
	return !l.taken.IsZero()
}

// show takes the lease, and makes it last longer until hide, which gives it back.
func (l *lease) show() (hide func(context.Context)) {
	if l.store.shared == nil {
		return func(context.Context) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		take := func() { l.held(context.Background()) } // one that was cut short could not be given back
		take()
		every(ctx, leaseRenewal, take)
	})
	return func(last context.Context) {
		stop()
		ended.Wait()
		l.drop(last)
	}
}

// during runs work with a context that ends once the lease is lost. The caller holds it.
func (l *lease) during(ctx context.Context, work func(context.Context)) {
	if l.store.shared == nil {
		work(ctx)
		return
	}
	ctx, lose := context.WithCancel(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		every(ctx, leaseRenewal, func() {
			if !l.held(ctx) {
				lose()
			}
		})
	})
	defer renewal.Wait()
	defer lose()
	work(ctx)
}

// drop gives the lease back, so that another process need not wait for its end.
func (l *lease) drop(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken.IsZero() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewal)
		defer cancel()
		l.store.shared.dropLease(last, l.name) // else it ends by itself
		l.taken = time.Time{}
	}
}

// imports are the imports under way in this process, and until when the sweep waits for the next
// batch of each.
type imports struct {
	mu    sync.Mutex
	until map[string]instant
}

func (i *imports) wait(name string, until instant) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.until == nil {
		i.until = map[string]instant{}
	}
	i.until[name] = until
}

func (i *imports) end(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.until, name)
}

// underWay reports whether the next batch of any import is awaited.
func (i *imports) underWay(now instant) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.until, func(_ string, until instant) bool { return until <= now })
	return len(i.until) > 0
}
