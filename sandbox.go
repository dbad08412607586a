package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A sandbox serves an organization to try out, with a clock that is moved by hand (testclock.go) and
// routes that only it has (sandbox_serve.go); contract §24. Its store says that it is one
// (sandboxmark.go). The organization begins a year before the clock, so that sales of a year can be
// made up.

const (
	sandboxOperator = "sello sandbox" // no user of a system has a name with a blank
	sandboxDays     = 366             // of made-up sales, at most
	sandboxSessions = 100 * 365 * 24 * time.Hour
	sandboxRate     = 1_000_000 // requests per minute
	sandboxHashing  = 1000      // iterations: its password is printed
)

// A sandbox is one that is served.
type sandbox struct {
	engine  *engine
	machine *movedMachine
	mark    sandboxMark
	moving  sync.Mutex   // one at a time moves the clock, or makes the organization anew
	writing sync.RWMutex // held by requests that may write, and to begin anew: none of them is of a time from before
}

// open makes the organization of a new store, or goes on with the one that a sandbox left.
func (s *sandbox) open(ctx context.Context, c *invocation, document []byte) error {
	mark, err := viewStore(ctx, s.engine.store, readMark)
	if err != nil {
		return err
	}
	if mark == nil {
		return cmp.Or(s.found(ctx, c, document), s.engine.sweep(ctx))
	}
	if c.document != "" || c.startAt != "" {
		return usageErrorf("-document y -now son para un archivo nuevo; %s sigue donde estaba", c.dbName())
	}
	latest, err := viewStore(ctx, s.engine.store, latestWritten)
	s.mark = *mark
	s.machine.set(max(latest, mark.Start))
	s.engine.clock.Start(latest)
	return cmp.Or(err, s.engine.sweep(ctx))
}

// found makes the organization of a document, its people, an API key with all scopes and the secrets
// of its webhooks, and keeps all of it for a reset.
func (s *sandbox) found(ctx context.Context, c *invocation, document []byte) error {
	e := s.engine
	s.mark.Start = instantOf(e.now())
	began := instantOf(s.mark.Start.time().AddDate(0, 0, -sandboxDays-1))
	first, second := e.seed(), e.seed()
	owner, err := demoPassword(e.seed(), began, sandboxHashing)
	if err != nil {
		return err
	}
	s.mark.Key, err = updateStore(ctx, e.store, func(tx Tx) (string, error) {
		if n, err := organizationCount(tx); err != nil || n > 0 {
			return "", cmp.Or(err, c.errNotSandbox())
		}
		if _, err := applyDocument(tx, document, newMint(began, first), byOperator(ctx), false); err != nil {
			return "", err
		}
		t, err := e.inTxn(tx, 1, began, second)
		if err != nil {
			return "", err
		}
		t.by = byOperator(ctx)
		text, err := s.furnish(t, owner)
		if err == nil {
			err = t.commit()
		}
		if err == nil {
			err = keepFounded(tx)
		}
		if err != nil {
			return "", err
		}
		return text, (&sandboxMark{s.mark.Start, text}).put(tx)
	})
	return err
}

// furnish makes what an organization has that is tried out. It returns the key's text.
func (s *sandbox) furnish(t *txn, owner passwordHash) (key string, err error) {
	if _, err := addDemoStaff(t, owner); err != nil {
		return "", err
	}
	for _, w := range t.cfg.Webhooks {
		if _, err := t.webhooks.newSecret(w.Key); err != nil {
			return "", err
		}
	}
	_, key, err = t.keys.create(keyRequest{Name: "sandbox", RateLimit: sandboxRate})
	return key, err
}

// keepFounded keeps what the store has for a reset.
func keepFounded(tx Tx) error {
	all, err := entriesBut(tx, 'v')
	for _, e := range all {
		if err := tx.Put(append(tableSandbox.fixed(), e.Key...), e.Value); err != nil {
			return err
		}
	}
	return err
}

// entriesBut lists all entries but those of one letter.
func entriesBut(tx Tx, letter byte) (list []Entry, err error) {
	for e, err := range tx.Scan([]byte{0}, nil, false) {
		if err != nil {
			return nil, err
		}
		if e.Key[0] != letter {
			list = append(list, Entry{Key: slices.Clone(e.Key), Value: slices.Clone(e.Value)})
		}
	}
	return list, nil
}

// enter waits while the organization is made anew. Requests that only read, such as those that wait
// for events, and those of the sandbox itself do not.
func (s *sandbox) enter(r *http.Request) (leave func()) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || strings.HasPrefix(r.URL.Path, "/api/v1/test/") {
		return func() {}
	}
	s.writing.RLock()
	return s.writing.RUnlock
}

// beginAgain makes everything as it was when the organization began. The caller holds s.writing.
func (s *sandbox) beginAgain(ctx context.Context) error {
	e := s.engine
	err := e.store.Update(ctx, func(tx Tx) error {
		all, err := entriesBut(tx, 'v')
		if err != nil {
			return err
		}
		for _, entry := range all {
			if err := tx.Delete(entry.Key); err != nil {
				return err
			}
		}
		kept := tableSandbox.fixed()
		for entry, err := range scan(tx, kept, false) {
			if err != nil {
				return err
			}
			if k := entry.Key[len(kept):]; len(k) > 0 {
				if err := tx.Put(k, entry.Value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	e.store.othersWrote(partition{}.PartOf(orgKey('n', 1)), true)
	e.noBirthdayUntil.Store(nil)
	return err
}

// reset is beginAgain with the clock set back.
func (s *sandbox) reset(ctx context.Context) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.beginAgain(ctx); err != nil {
		return err
	}
	s.machine.set(s.mark.Start)
	latest, err := viewStore(ctx, s.engine.store, latestWritten)
	s.engine.clock.Start(latest)
	return cmp.Or(err, s.engine.sweep(ctx))
}

// visitsBatch is how many visits of made-up customers one transaction has.
const visitsBatch = 1000

// makeSales makes the organization anew, with made-up customers who have come on the days before now.
func (s *sandbox) makeSales(ctx context.Context, seed uint64, customers, days int) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	e, now := s.engine, instantOf(s.engine.now())
	if err := s.beginAgain(ctx); err != nil {
		return err
	}
	defer e.endImport(ctx, sandboxOperator)
	e.holdSweep(ctx, sandboxOperator)
	h, err := read(ctx, e, 1, now, func(t *txn) (*madeUp, error) {
		var staff []id
		for _, who := range demoStaff[1:] {
			u, err := userByEmail(t.Tx, who.email)
			if err != nil {
				return nil, err
			}
			staff = append(staff, u.ID)
		}
		return makeUp(seed, customers, days, now, t.cfg.zone, staff), nil
	})
	if err != nil {
		return err
	}
	began := instantOf(now.time().AddDate(0, 0, -days-1))
	for more := true; more; {
		e.holdSweep(ctx, sandboxOperator)
		if more, err = write(ctx, e, 1, began, func(t *txn) (bool, error) { return h.writeSome(t, visitsBatch) }); err != nil {
			return err
		}
	}
	return nil
}
