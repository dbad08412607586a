package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/webhook"
)

// twoServers returns shops on two servers that share a database. The shops' clocks are apart.
func twoServers(t *testing.T, one, two Store, at string) (a, b *shop) {
	a, b = newShopOn(t, one, at), newShopOn(t, two, at)
	b.ids.Store(1 << 40) // other ids
	return a, b
}

// A beforeUpdates is a server on which something happens before each Update.
type beforeUpdates struct {
	*memServer
	first func()
}

func (s *beforeUpdates) Update(ctx context.Context, fn func(Tx) error) error {
	if s.first != nil {
		s.first()
	}
	return s.memServer.Update(ctx, fn)
}

// takeLease gives every lease: what two servers do under one must be right.
func (*beforeUpdates) takeLease(context.Context, string) (bool, error) { return true, nil }

// TestSweepsOfServers: what two servers do at the same moment is done once. Each time that one has
// seen what there is to do, the other one does all of it first.
func TestSweepsOfServers(t *testing.T) {
	t.Parallel()
	const rules = `"rules":[{"key":"day","name":"Feliz día","on":"Birthday","points":10}]`
	const voucher = `"rewards":[{"key":"v","program":"club","name":"V","pointsCost":1,"fulfilment":"Voucher","validDays":1,"effect":{"type":"Percent","percent":10}}]`
	tiered := setup{program: rules + `,"tiers":[{"name":"Base","threshold":0},{"name":"Oro","threshold":5}]`, also: voucher}
	type outcome struct {
		Told     map[string]int
		Events   int
		Balances []decimal
		Replays  int
		Sessions int
	}
	lived := func(both bool) outcome {
		stores := newSharedMem(2)
		one := &beforeUpdates{memServer: stores[0].(*memServer)}
		a, b := twoServers(t, one, &beforeUpdates{memServer: stores[1].(*memServer)}, "2026-03-02T10:00:00Z")
		a.apply(setup{program: rules, also: voucher}.document())
		var all []id
		for i := range 3 {
			all = append(all, must(a, func(t *txn) (id, error) {
				c, _, err := t.customers.enrol(enrolment{Email: fmt.Sprintf("c%d@example.com", i), BirthDate: 19900303})
				if err != nil {
					return id{}, err
				}
				return c.ID, nil
			}))
			a.add(all[i], "9", a.clock.add(10*oneDay))
			_, err := a.redeem(all[i], "v")
			a.ok(err)
			a.served().post("/api/v1/customers", fmt.Sprint("retry", i), fmt.Sprintf(`{"email":"r%d@example.com"}`, i))
		}
		a.person("ana@ejemplo.mx", roleOwner)
		a.apply(tiered.document()) // starts a recount
		keep := func(s *shop) {
			s.ok(s.engine.sweep(s.Context()))
			s.ok(s.engine.recount(s.Context()))
		}
		var o outcome
		for i := range 50 {
			a.pass(oneDay)
			b.clock = a.clock
			if both {
				one.first = func() {
					first := one.first
					one.first = nil // not before what the other one's own tests write
					keep(b)
					one.first = first
				}
			}
			keep(a)
			one.first = nil
			if i == 25 { // later the first ones are dropped
				o.Told = ask(a, countKinds)
			}
		}
		o.Events = ask(a, countKinds)[""]
		a.verified()
		b.verified()
		for _, c := range all {
			o.Balances = append(o.Balances, a.standing(c).Balance)
		}
		for _, e := range a.entries() {
			switch e.Key[0] {
			case 'i':
				o.Replays++
			case 'S':
				o.Sessions++
			}
		}
		return o
	}
	alone, together := lived(false), lived(true)
	if alone.Told["redemption.expired"] != 3 || alone.Replays != 0 || alone.Sessions != 0 {
		t.Errorf("one server: %+v", alone)
	}
	same(t, "what two servers do", together, alone)
}

// countKinds counts the events that are kept, by their type.
func countKinds(t *txn) (map[string]int, error) {
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	all := map[string]int{"": int(n.Events)}
	for e, err := range t.feed.from(1) {
		if err != nil {
			return nil, err
		}
		all[eventKinds[e.Kind].name]++
	}
	return all, nil
}

// leaseClock moves the clock of the leases with that of the bubble.
func leaseClock(ctx context.Context, db *memServer) {
	const step = 100 * time.Millisecond
	for tick := time.Tick(step); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			db.pass(step)
		}
	}
}

// A mortal server does not answer any more once it is dead.
type mortal struct {
	*memServer
	dead atomic.Bool
}

var errDead = errors.New("dead")

func (s *mortal) catchUp(ctx context.Context, _ ...int32) (context.Context, error) {
	if s.dead.Load() {
		return ctx, errDead
	}
	return s.memServer.catchUp(ctx)
}

func (s *mortal) View(ctx context.Context, fn func(Tx) error) error {
	if s.dead.Load() {
		return errDead
	}
	return s.memServer.View(ctx, fn)
}

func (s *mortal) Update(ctx context.Context, fn func(Tx) error) error {
	if s.dead.Load() {
		return errDead
	}
	return s.memServer.Update(ctx, fn)
}

func (s *mortal) takeLease(ctx context.Context, name string) (bool, error) {
	if s.dead.Load() {
		return false, errDead
	}
	return s.memServer.takeLease(ctx, name)
}

func (s *mortal) dropLease(ctx context.Context, name string) error {
	if s.dead.Load() {
		return errDead
	}
	return s.memServer.dropLease(ctx, name)
}

// hookedServers are hookedShop on two servers, with one receiver.
func hookedServers(t *testing.T, answer func(host string) (int, time.Duration)) (stores [2]*mortal, shops [2]*shop, hooks [2]*deliverer, r *receiver) {
	for i, s := range newSharedMem(2) {
		stores[i] = &mortal{memServer: s.(*memServer)}
	}
	shops[0], shops[1] = twoServers(t, stores[0], stores[1], "2000-01-01T00:00:00Z")
	r = &receiver{got: map[string][]got{}, answer: answer}
	for i, s := range shops {
		s.engine = newEngine(s.engine.store, time.Now, s.engine.seed)
		s.clock = instantOf(time.Now())
		hooks[i] = newDeliverer(s.engine, nil, slog.New(slog.DiscardHandler))
		hooks[i].client = &http.Client{Transport: r}
	}
	shops[0].apply(setup{also: withWebhooks}.document())
	_, err := shops[0].admin().newWebhookSecret(t.Context(), webhookRequest{"cafe-luna", "crm", 0})
	shops[0].ok(err)
	return stores, shops, hooks, r
}

// TestWebhookServers: of two servers one delivers, in order, what either writes. When it dies the
// other one goes on; only the event in flight may come twice. What an operator does on one server
// holds on the other.
func TestWebhookServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, shops, hooks, r := hookedServers(t, func(string) (int, time.Duration) { return 200, 30 * time.Millisecond })
		ctx, stop := context.WithCancel(t.Context())
		go leaseClock(ctx, stores[0].memServer)
		var ended sync.WaitGroup
		first, kill := context.WithCancel(ctx)
		ended.Go(func() { hooks[0].run(first) })
		time.Sleep(time.Second)
		shops[0].customer("first") // so that it takes the lease
		time.Sleep(time.Second)
		ended.Go(func() { hooks[1].run(ctx) })
		n := 0
		write := func(s *shop) {
			n++
			s.clock = instantOf(time.Now())
			s.customer(fmt.Sprint("c", n))
		}
		for i := range 100 {
			write(shops[i%2])
			time.Sleep(70 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		want := shops[1].wants("crm")
		same(t, "while both live", r.sequences("crm.example.com"), want)

		for range 100 { // it cannot deliver all of these in time
			write(shops[1])
		}
		time.Sleep(2 * time.Second)
		stores[0].dead.Store(true)
		time.Sleep(20 * time.Millisecond)
		kill()
		got := len(r.sequences("crm.example.com"))
		want = shops[1].wants("crm")
		if got <= 100 || got >= len(want) {
			t.Errorf("%d of %d events when it died", got, len(want))
		}
		time.Sleep(12 * time.Second)
		if now := len(r.sequences("crm.example.com")); now <= got {
			t.Error("nobody goes on after 12 seconds")
		}
		time.Sleep(10 * time.Second)
		all := r.sequences("crm.example.com")
		again := len(all) - len(want)
		if again < 0 || again > roundEvents { // of the round whose end was not stored
			t.Errorf("%d events came again", again)
		}
		if slices.Sort(all); !slices.Equal(slices.Compact(all), want) {
			t.Error("events are missing")
		}

		before := len(r.sequences("crm.example.com"))
		_, err := shops[1].admin().replayWebhook(ctx, webhookRequest{"cafe-luna", "crm", want[len(want)-3]})
		shops[1].ok(err)
		time.Sleep(5 * time.Second)
		same(t, "after a replay", r.sequences("crm.example.com")[before:], want[len(want)-3:])
		stop()
		ended.Wait()
		shops[1].verified()
		shops[0].engine.store.Close()
		shops[1].engine.store.Close()
	})
}

// TestWebhookLeaseLost: a server that loses a lease while a receiver takes long ends its attempt.
// What it stores later neither goes back nor leaves out what the other one has not sent.
func TestWebhookLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		stores, shops, hooks, r := hookedServers(t, func(string) (int, time.Duration) {
			if slow.Load() {
				return 200, 9 * time.Second
			}
			return 200, time.Millisecond
		})
		ctx := t.Context()
		h := hookOf{1, "crm"}
		for i := range 5 {
			shops[0].customer(fmt.Sprint("c", i))
		}
		want := shops[0].wants("crm")
		state := func() *webhookState {
			return ask(shops[0], func(t *txn) (*webhookState, error) { return get[webhookState](t.Tx, webhookKey(1, "crm")) })
		}
		slow.Store(true)
		turn := hooks[0].turnOf(h)
		go func() {
			time.Sleep(time.Second)
			stores[0].leasing.Lock()
			stores[0].leases[turn.name] = memLease{1, stores[0].clock + time.Hour}
			stores[0].leasing.Unlock()
		}()
		began := time.Now()
		if wait, err := hooks[0].round(ctx, h, turn); wait != 0 || err != nil || time.Since(began) > 2*leaseRenewal {
			t.Errorf("waits %v, %v, after %v", wait, err, time.Since(began))
		}
		if wait, err := hooks[0].round(ctx, h, turn); wait != othersTurn || err != nil {
			t.Errorf("without its lease: waits %v, %v", wait, err)
		}
		if s := state(); s.Failing != 0 || s.Failed != 0 || s.Sent >= want[0] {
			t.Errorf("an attempt that the server ended counts: %+v", s)
		}
		slow.Store(false)
		late, err := hooks[0].look(ctx, h)
		shops[0].ok(err)
		if _, err := hooks[1].round(ctx, h, hooks[1].turnOf(h)); err != nil {
			t.Fatal(err)
		}
		same(t, "what came", r.sequences("crm.example.com"), want)
		after := state()
		for _, done := range []delivered{{upto: want[1]}, {want[0], &webhook.Outcome{Status: 500, Err: errors.New("late")}}, {upto: want[4] + 3}} {
			shops[0].ok(hooks[0].store(ctx, h, &late, done))
			same(t, "after a late server", state(), after)
		}
		for _, s := range shops {
			s.engine.store.Close()
		}
	})
}

// TestHouseOfServers: of two servers one keeps house, until it ends. Each looks at the store
// each second, is not ready while that fails, and says so once.
func TestHouseOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, shops, _, _ := hookedServers(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		go leaseClock(ctx, stores[0].memServer)
		var apis [2]*api
		var log strings.Builder
		var ended [2]chan struct{}
		var ends [2]context.CancelFunc
		for i, s := range shops {
			apis[i] = newAPIOf(s.engine)
			ended[i] = make(chan struct{})
			var each context.Context
			each, ends[i] = context.WithCancel(ctx)
			if i == 1 {
				apis[i].log = slog.New(slog.NewTextHandler(&log, nil))
			}
			go func() { apis[i].keepHouse(each); close(ended[i]) }()
			time.Sleep(time.Second)
		}
		expires := func() int {
			s := shops[0]
			s.clock = instantOf(time.Now())
			c := s.customer(fmt.Sprint("c", s.clock))
			s.add(c, "5", s.clock.add(time.Second))
			time.Sleep(2*sweepInterval + time.Second)
			return ask(s, countKinds)["points.expired"]
		}
		if n := expires(); n != 1 {
			t.Errorf("%d events", n)
		}
		if holder := stores[0].holder("house"); holder != 0 {
			t.Errorf("server %d keeps house", holder)
		}
		ends[0]()
		<-ended[0]
		if stores[0].holder("house") >= 0 {
			t.Error("a server that ends keeps the lease")
		}
		if n := expires(); n != 2 || stores[0].holder("house") != 1 {
			t.Errorf("%d events after the other server went on", n)
		}
		ready := func(want int) {
			t.Helper()
			if got := answerTo(apis[1], newRequest("GET", "/readyz", "", "")).Code; got != want {
				t.Errorf("ready: %d, want %d", got, want)
			}
		}
		ready(http.StatusOK)
		for i := range 2 {
			stores[1].dead.Store(true)
			time.Sleep(30 * time.Second)
			ready(http.StatusServiceUnavailable)
			synctest.Wait()
			if n := strings.Count(log.String(), "task="); n != i+1 || strings.Count(log.String(), "task=store") != n {
				t.Errorf("logged: %s", log.String())
			}
			stores[1].dead.Store(false)
			time.Sleep(flushInterval + time.Millisecond)
			ready(http.StatusOK)
		}
		synctest.Wait()
		log.Reset()
		for _, ahead := range []time.Duration{time.Second, 1100 * time.Millisecond, -time.Hour} {
			stores[1].ahead.Store(int64(ahead))
			time.Sleep(30 * time.Second)
			ready(http.StatusOK)
			stores[1].ahead.Store(0)
			time.Sleep(flushInterval + time.Millisecond)
		}
		synctest.Wait()
		if text := log.String(); strings.Count(text, "task=") != 2 || !strings.Contains(text, "off this machine's by 1.1s") || !strings.Contains(text, "by -1h0m0s") {
			t.Errorf("logged: %s", text)
		}
		stop()
		<-ended[1]
		for _, s := range shops {
			s.engine.store.Close()
		}
	})
}

// A frozenServer is a server on which a context of catchUp sees the state of then.
type frozenServer struct{ *memServer }

type frozenState struct{}

func (s *frozenServer) catchUp(ctx context.Context, _ ...int32) (context.Context, error) {
	ctx, err := s.memServer.catchUp(ctx)
	if err == nil {
		err = s.memServer.View(ctx, func(tx Tx) error {
			ctx = context.WithValue(ctx, frozenState{}, tx)
			return nil
		})
	}
	return ctx, err
}

func (s *frozenServer) View(ctx context.Context, fn func(Tx) error) error {
	if tx, is := ctx.Value(frozenState{}).(Tx); is {
		return fn(tx)
	}
	return s.memServer.View(ctx, fn)
}

// TestEventsOfServers: who waits for events on one server gets those that another one writes.
func TestEventsOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := newSharedMem(2)
		a, b := twoServers(t, stores[0], &frozenServer{stores[1].(*memServer)}, "2026-03-02T10:00:00Z")
		a.apply(setup{}.document())
		c := a.customer("ana")
		served := b.served()
		answer := make(chan *httptest.ResponseRecorder, 1)
		last := len(a.feed(0))
		go func() { answer <- served.get(fmt.Sprintf("/api/v1/events?after=%d&wait=20", last)) }()
		time.Sleep(3500 * time.Millisecond)
		began := time.Now()
		a.add(c, "5", never)
		r := <-answer
		var list struct{ Data []struct{ Type string } }
		a.ok(json.Unmarshal(r.Body.Bytes(), &list))
		if len(list.Data) != 1 || time.Since(began) > eventsPoll {
			t.Errorf("after %v: %s", time.Since(began), r.Body)
		}
		for _, s := range stores {
			s.Close()
		}
	})
}

// TestSessionsOfServers: a session that is used on one server goes on on the other, and when it
// was last seen never goes back. Each server tells the log-ins that it refused.
func TestSessionsOfServers(t *testing.T) {
	t.Parallel()
	stores := newSharedMem(2)
	a, b := twoServers(t, stores[0], stores[1], "2026-03-02T10:00:00Z")
	a.apply(setup{}.document())
	ana := a.person("ana@ejemplo.mx", roleOwner)
	m, token := a.enters("ana@ejemplo.mx")
	for _, s := range []*shop{a, b} {
		s.engine.sessionLimits.idle = leastIdle
	}
	flush := func(s *shop) { s.ok(s.engine.sessionLimits.seen.flush(s.Context(), s.engine.store, s.clock, false)) }
	began := a.clock
	for b.clock.sub(began) < time.Hour { // used on b alone
		for _, d := range []time.Duration{seenEvery - time.Second, time.Second} { // at the last moment before it is stored
			a.pass(d)
			b.clock = a.clock
			if d > time.Second {
				b.engine.sessionLimits.seen.see(m, b.clock)
			}
			if a.member(token) == nil {
				t.Fatalf("ended after %v, before it was stored", a.clock.sub(began))
			}
			flush(b)
		}
		if a.pass(leastIdle - seenEvery - time.Second); a.member(token) == nil {
			t.Fatalf("ended after %v", a.clock.sub(began))
		}
		b.clock = a.clock
		a.ok(a.engine.sweep(a.Context()))
	}
	a.engine.sessionLimits.seen.see(m, a.clock)
	b.pass(30 * time.Second)
	b.engine.sessionLimits.seen.see(m, b.clock)
	for _, s := range []*shop{b, a} {
		s.ok(s.engine.sessionLimits.seen.flush(s.Context(), s.engine.store, s.clock, true))
	}
	got := ask(a, func(t *txn) (*session, error) { return get[session](t.Tx, sessionKey(m.hash)) })
	same(t, "seen", got.SeenAt, b.clock)

	must(b, func(t *txn) (any, error) { return nil, t.people.logOut(m) })
	if a.member(token) != nil {
		t.Error("a session that ended on another server goes on")
	}
	tries := 0
	for _, s := range []*shop{a, b} {
		l := s.logins()
		for range 3 {
			l.noteRefused(&claim{user: &user{ID: ana}})
		}
		s.ok(l.flush(s.Context(), s.clock, false))
	}
	for _, line := range a.audited(auditFilter{}) {
		var changes []struct{ After int }
		if _, list, is := strings.Cut(line, auditSessionRefused+" "); is {
			a.ok(json.Unmarshal([]byte(list), &changes))
			tries += changes[0].After
		}
	}
	same(t, "refused log-ins", tries, 6)
}

// TestRetriesOfServers: each server knows of the names of retries that it has written itself, and
// looks in the store for those of others.
func TestRetriesOfServers(t *testing.T) {
	t.Parallel()
	shops := newServers(t, setup{program: `"default":true`})
	first := shops[0].served()
	servers := [2]*servedShop{first, {shops[1], newAPIOf(shops[1].engine), first.key}}
	path := "/api/v1/points/customers/" + shops[0].customer("ana").String() + "/add"
	rnd := rand.New(rand.NewPCG(1, 1))
	for range sliceNames/1000 + 1 { // the slice that follows a full one is known
		names := make([][16]byte, 1000)
		for i := range names {
			names[i] = randomName(rnd)
		}
		shops[0].ok(shops[0].keepNames(nil, names...))
	}
	if shops[0].engine.slices.fillingNames(shops[0].org, lastSlice(shops[0])) == nil {
		t.Fatal("no names are known")
	}
	for i := range 20 {
		one, other := servers[i%2], servers[(i+1)%2]
		own, name := fmt.Sprint("own-", i), fmt.Sprint("name-", i)
		if w := other.post(path, own, `{"amount":1}`); w.Code != http.StatusCreated {
			t.Fatal(w.Code, w.Body)
		}
		answer := one.post(path, name, `{"amount":1}`).Body.String()
		if w := other.post(path, name, `{"amount":1}`); w.Body.String() != answer || w.Header().Get("Idempotency-Replayed") != "true" {
			t.Fatalf("%d: %d %s, want %s", i, w.Code, w.Body, answer)
		}
	}
}

// A sharedMem is a memStore that several servers share, as they would share a database.
type sharedMem struct {
	store   Store
	mu      sync.RWMutex // locked while an Update runs, read-locked while a View takes its state
	commits []sharedCommits
	parts   map[int32]bool // that anybody has written to; changed while an Update runs
	open    int            // servers that are not closed

	leasing sync.Mutex
	leases  map[string]memLease
	clock   time.Duration // of the leases
}

// sharedCommits counts what one server has committed.
type sharedCommits struct{ all, ofSettings int }

type memLease struct {
	server int
	until  time.Duration
}

// A memServer is one server's Store of a sharedMem.
type memServer struct {
	*sharedMem
	server  int
	others  func(part int32, settings bool)
	failure chan error   // of giveUp
	ahead   atomic.Int64 // of clockAhead
	looking sync.Mutex
	seen    sharedCommits // of all other servers
	closed  bool          // guarded by sharedMem.mu
}

// newSharedMem returns the stores of n servers that share one database. Each is a sharedStore,
// and a *memServer.
func newSharedMem(n int) []Store {
	db := &sharedMem{store: newMemStore(), commits: make([]sharedCommits, n), parts: map[int32]bool{}, open: n, leases: map[string]memLease{}}
	var list []Store
	for i := range n {
		list = append(list, &memServer{sharedMem: db, server: i, others: func(int32, bool) {}, failure: make(chan error, 9)})
	}
	return list
}

func (s *memServer) onOthers(others func(part int32, settings bool)) { s.others = others }

func (s *memServer) clockAhead() time.Duration { return time.Duration(s.ahead.Load()) }

func (s *memServer) giveUp(err error) { s.failure <- err }

var _, _, _ sharedStore = (*memServer)(nil), (*mortal)(nil), (*frozenServer)(nil)

// look tells of what others have committed. The caller has locked mu, at least for reading: it
// sees just what this tells of.
func (s *memServer) look() error {
	if s.closed {
		return errClosed
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	var now sharedCommits
	for i, c := range s.commits {
		if i != s.server {
			now.all += c.all
			now.ofSettings += c.ofSettings
		}
	}
	if before := s.seen; now != before {
		s.seen = now
		for part := range s.parts {
			s.others(part, now.ofSettings != before.ofSettings)
		}
	}
	return nil
}

func (s *memServer) catchUp(ctx context.Context, _ ...int32) (context.Context, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return ctx, s.look()
}

func (s *memServer) View(ctx context.Context, fn func(Tx) error) error {
	s.mu.RLock()
	unlock := sync.OnceFunc(s.mu.RUnlock) // a View holds up no Update
	defer unlock()
	if err := s.look(); err != nil {
		return err
	}
	return s.store.View(ctx, func(tx Tx) error {
		unlock()
		return fn(tx)
	})
}

func (s *memServer) Update(ctx context.Context, fn func(Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.look(); err != nil {
		return err
	}
	wrote, err := updateStore(ctx, s.store, func(tx Tx) (sharedCommits, error) {
		used := &partedTx{Tx: tx, used: map[int32]bool{}}
		noted := &notedTx{Tx: used, parts: s.parts}
		err := fn(noted)
		if used.check(); len(used.organizations()) > 1 {
			panic(fmt.Sprintf("an Update of one of several servers uses the organizations %v", used.organizations()))
		}
		return noted.wrote, err
	})
	s.commits[s.server].all += min(wrote.all, 1)
	s.commits[s.server].ofSettings += min(wrote.ofSettings, 1)
	return err
}

// Close closes this server's store, and the database after the last one's.
func (s *memServer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.open--; s.open > 0 {
		return nil
	}
	return s.store.Close()
}

func (s *memServer) takeLease(_ context.Context, name string) (bool, error) {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if l, ok := s.leases[name]; ok && l.server != s.server && l.until > s.clock {
		return false, nil
	}
	s.leases[name] = memLease{s.server, s.clock + 10*time.Second}
	return true, nil
}

// holder is the server that has taken a lease; -1 if it was given back, or never taken.
func (s *sharedMem) holder(name string) int {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if l, is := s.leases[name]; is {
		return l.server
	}
	return -1
}

func (s *memServer) dropLease(_ context.Context, name string) error {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if s.leases[name].server == s.server {
		delete(s.leases, name)
	}
	return nil
}

// pass moves the clock of the leases of all servers.
func (s *memServer) pass(d time.Duration) {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	s.clock += d
}

// A notedTx counts what is written.
type notedTx struct {
	Tx
	wrote sharedCommits
	parts map[int32]bool
}

func (t *notedTx) note(key []byte) {
	t.parts[partition{}.PartOf(key)] = true
	t.wrote.all++
	if isSetting(key) {
		t.wrote.ofSettings++
	}
}

func (t *notedTx) Put(key, value []byte) error {
	t.note(key)
	return t.Tx.Put(key, value)
}

func (t *notedTx) Delete(key []byte) error {
	t.note(key)
	return t.Tx.Delete(key)
}

// TestSharedMem: a server hears of what another one wrote before it sees it, and of its own
// writes never. Leases are one server's, and end.
func TestSharedMem(t *testing.T) {
	t.Parallel()
	ctx, stores := t.Context(), newSharedMem(2)
	a, b := stores[0].(*memServer), stores[1].(*memServer)
	var heard []bool
	a.onOthers(func(_ int32, settings bool) { heard = append(heard, settings) })
	expect := func(reason string, want ...bool) {
		t.Helper()
		if len(heard) != len(want) || len(want) > 0 && heard[0] != want[0] {
			t.Errorf("%s: heard %v, want %v", reason, heard, want)
		}
		heard = nil
	}
	put := func(s Store, key string) {
		t.Helper()
		if err := s.Update(ctx, func(tx Tx) error { return tx.Put([]byte(key), nil) }); err != nil {
			t.Fatal(err)
		}
	}
	setting := settingLetters[:1]
	put(a, setting)
	put(b, "\x00")
	put(b, setting)
	put(b, "\x00")
	expect("before a looks")
	for range 2 { // the second time there is nothing new
		if err := a.View(ctx, func(tx Tx) error {
			_, ok, err := tx.Get([]byte("\x00"))
			if !ok {
				t.Error("what b wrote is not there")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	expect("a View", true)
	put(b, "\x00")
	if _, err := a.catchUp(ctx); err != nil {
		t.Fatal(err)
	}
	expect("catchUp", false)
	put(b, setting)
	put(a, "\x00")
	expect("an Update", true)

	take := func(s *memServer, want bool) {
		t.Helper()
		if mine, err := s.takeLease(ctx, "x"); mine != want || err != nil {
			t.Errorf("server %d takes a lease: %t, %v", s.server, mine, err)
		}
	}
	take(a, true)
	take(b, false)
	b.dropLease(ctx, "x")
	a.pass(9 * time.Second)
	take(a, true)
	a.pass(9 * time.Second)
	take(b, false)
	a.pass(time.Second)
	take(b, true)
	b.dropLease(ctx, "x")
	take(a, true)
	if a.Close(); a.View(ctx, nil) != errClosed {
		t.Error("a closed store reads")
	}
	put(b, "\x00")
	b.Close()
}

// TestCardsServers: a card that one server gives or ends, another one opens or refuses at once.
func TestCardsServers(t *testing.T) {
	t.Parallel()
	shops := newServers(t, setup{})
	one := shops[0].served()
	servers := [2]*cardShop{one.withCards(), (&servedShop{shops[1], newAPIOf(shops[1].engine), one.key}).withCards()}
	path := "/api/v1/customers/" + shops[0].customer("ana").String() + "/card"
	issue := func(s *cardShop) string {
		t.Helper()
		w := s.post(path, "", "")
		var made struct{ URL string }
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return strings.TrimPrefix(made.URL, cardsBase)
	}
	for i := range 10 {
		here, there := servers[i%2], servers[(i+1)%2]
		card := issue(here)
		there.opened(card)
		next := issue(there)
		if w := here.visit("GET", card); w.Code != http.StatusNotFound {
			t.Errorf("%d: replaced on the other: %d", i, w.Code)
		}
		here.opened(next)
		there.opened(next)
		if w := here.post(path+"/revoke", "", ""); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w := there.visit("GET", next); w.Code != http.StatusNotFound {
			t.Errorf("%d: revoked on the other: %d", i, w.Code)
		}
	}
}
