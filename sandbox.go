package main

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/wallclock"
)

// A sandbox serves an organization to try out (contract §24), with a clock that is moved by hand and
// with routes of its own (sandbox_serve.go). Its store is marked as a sandbox's (schema.go). The
// organization begins a year before the clock, so that sales of a year can be made up.

const (
	sandboxOperator = "sello sandbox" // no user of a system has a name with a blank
	sandboxDays     = 366             // of made-up sales, at most
	sandboxSessions = 100 * 365 * 24 * time.Hour
	sandboxRate     = 1_000_000 // requests per minute
	sandboxHashing  = 1000      // iterations: its password is printed
)

// A sandbox is a sandbox while it is served.
type sandbox struct {
	engine  *engine
	machine *movedMachine
	mark    sandboxMark
	moving  sync.Mutex   // held to move the clock, or to make the organization anew
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

// furnish makes what an organization to try out has. It returns the key's text.
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

// entriesBut lists all entries except the entries of one letter.
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

// enter waits while the organization is made anew. Requests that only read, which may wait for
// events, and requests to the sandbox's own routes do not.
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

// The clock of a sandbox (contract §24). It ticks as the machine's does, and can be set forward.
// Then everything that changes by itself meanwhile does so in the order of its moments, each as of
// its own: points expire, vouchers lapse, tiers fall and birthdays are given as if the server had
// run for so long.

// A movedMachine is a machine whose wall clock can be set. The zero one is not ready for use.
type movedMachine struct {
	began time.Time // by the machine's own clock
	last  atomic.Pointer[clockSet]
}

// A clockSet says what moment it was, and how long the machine had run then.
type clockSet struct {
	at    instant
	after time.Duration
}

func newMovedMachine(at instant) *movedMachine {
	m := &movedMachine{began: time.Now()}
	m.set(at)
	return m
}

func (m *movedMachine) set(at instant) { m.last.Store(&clockSet{at, time.Since(m.began)}) }

// reach sets the clock to a moment, unless it is later already.
func (m *movedMachine) reach(at instant) {
	if instantOf(m.Read().Wall) < at {
		m.set(at)
	}
}

func (m *movedMachine) Read() wallclock.Reading {
	s, even := m.last.Load(), time.Since(m.began)
	return wallclock.Reading{Wall: s.at.time().Add(even - s.after), Even: even}
}

func (m *movedMachine) Awake() (time.Duration, bool) { return 0, false }

// synchronized makes the wall clock right, however far it jumps (internal/wallclock).
func (m *movedMachine) Synchronized() (yes, known bool) { return true, true }

// passBatch is how many things that are due one transaction does, or a few more.
const passBatch = 500

func (e *engine) passTime(ctx context.Context, m *movedMachine, to instant) error {
	for done := false; !done; {
		now, s := instantOf(e.now()), e.seed()
		p, err := updateStore(ctx, e.store, func(tx Tx) (passed, error) { return e.pass(tx, now, to, s) })
		if err != nil {
			return err
		}
		m.reach(p.at)
		e.clock.Wrote(p.at)
		done = p.done
	}
	return e.sweep(ctx) // what is too old to be kept
}

// passed is how far time has passed in one transaction.
type passed struct {
	at   instant
	done bool // nothing else is due by then
}

// pass does the next things that become due up to a moment. What was due before now happens now.
func (e *engine) pass(tx Tx, now, to instant, s seed) (p passed, err error) {
	each, err := e.newOrgTxns(tx, now, s)
	if err != nil {
		return p, err
	}
	from := instant(0)
	for left := passBatch; left > 0; {
		next, err := e.nextDue(tx, from, each.now)
		if err != nil {
			return p, err
		}
		if next > to {
			return passed{to, true}, each.commit()
		}
		if err := each.goOn(max(next, each.now)); err != nil {
			return p, err
		}
		n, err := e.passMoment(each, from, left)
		if err != nil {
			return p, err
		}
		left, from = left-n-1, next
	}
	return passed{at: each.now}, each.commit()
}

// passMoment does what is due at the moment of the transactions, up to most entries of each table.
// What was due before from is done.
func (e *engine) passMoment(each *orgTxns, from instant, most int) (n int, err error) {
	for _, d := range dueTables() {
		var list []key
		for entry, err := range each.tx.Scan(d.of.fixed().instant(from), d.of.fixed().instant(each.now+1), false) {
			if err != nil {
				return n, err
			}
			if list = append(list, slices.Clone(entry.Key)); len(list) == most {
				break
			}
		}
		n += len(list)
		for _, k := range list {
			if _, err := each.change(d, k); err != nil {
				return n, err
			}
		}
		if len(list) == most {
			return n, nil // the rest of the moment comes first
		}
	}
	at, err := e.birthdaysDue(each.tx, each.now)
	if err != nil || at.org == 0 {
		return n, err
	}
	t, err := each.of(at.org)
	if err == nil {
		_, err = t.rules.giveBirthdays(most)
	}
	return n + 8, err
}

// birthdaysDue returns the organization whose birthdays are due, if there is one, and when the next
// ones are.
func (e *engine) birthdaysDue(tx Tx, now instant) (birthdaysAt, error) {
	at := e.nextBirthdays(e.store.version(), tx, birthdaysAt{until: never}, now)
	return at, at.err
}

// nextDue is the first moment at which something changes by itself that is not done yet; never if
// nothing does. What is due already has the moment from or later.
func (e *engine) nextDue(tx Tx, from, now instant) (next instant, err error) {
	at, err := e.birthdaysDue(tx, now)
	if err != nil {
		return 0, err
	}
	if next = at.until; at.org != 0 {
		next = now
	}
	for _, d := range dueTables() {
		for entry, err := range tx.Scan(d.of.fixed().instant(from), d.of.fixed().instant(next), false) {
			if err != nil {
				return 0, err
			}
			next = instantIn(entry.Key[1:])
			break
		}
	}
	return next, nil
}

// goOn moves the transactions to a later moment, as if they had ended and new ones had begun.
func (o *orgTxns) goOn(at instant) error {
	if at == o.now {
		return nil
	}
	o.now = at
	for _, t := range o.txns {
		if err := t.commit(); err != nil {
			return err
		}
		new(held).moveTo(t)
		setNow(t, max(at, t.now))
	}
	return nil
}

// durationForm is a duration of ISO 8601 in whole numbers, but for its seconds.
var durationForm = regexp.MustCompile(`^P(?:(\d{1,4})Y)?(?:(\d{1,4})M)?(?:(\d{1,4})W)?(?:(\d{1,5})D)?(T(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,9})(?:\.(\d{1,3}))?S)?)?$`)

// addDuration returns the moment that comes a duration of ISO 8601, such as P1M or PT36H, after
// another one. Years, months, weeks and days are the calendar's in a time zone: P1M after 31
// January is 28 February. ok is false if text is no duration.
func addDuration(at instant, text string, zone *time.Location) (then instant, ok bool) {
	m := durationForm.FindStringSubmatch(text)
	if m == nil || text == "P" || m[5] == "T" {
		return 0, false
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(m[i]) // "" is 0
		return v
	}
	t := addMonths(at.time().In(zone), 12*n(1)+n(2)).AddDate(0, 0, 7*n(3)+n(4))
	millis, _ := strconv.Atoi((m[9] + "000")[:3])
	clock := time.Duration(n(6))*time.Hour + time.Duration(n(7))*time.Minute + time.Duration(n(8))*time.Second + time.Duration(millis)*time.Millisecond
	return instantOf(t.Add(clock)), true
}
