package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sello/internal/disk"
)

// A testMachine is a machine whose clocks the test sets.
type testMachine struct {
	wall        time.Time
	up, slept   time.Duration // since the machine was started
	notAwake    bool          // no clock counts sleep
	synced      bool
	unsure      bool // the kernel does not say whether the clock is synchronized
	syncedAsked int
}

func (m *testMachine) read() reading { return reading{m.wall, m.up} }

func (m *testMachine) awake() (time.Duration, bool) { return m.up + m.slept, !m.notAwake }

func (m *testMachine) synchronized() (yes, known bool) {
	m.syncedAsked++
	return m.synced, !m.unsure
}

// pass lets time go on while the machine is awake, sleep while it is suspended.
func (m *testMachine) pass(d time.Duration)  { m.wall, m.up = m.wall.Add(d), m.up+d }
func (m *testMachine) sleep(d time.Duration) { m.wall, m.slept = m.wall.Add(d), m.slept+d }

// moment parses a moment in RFC 3339.
func moment(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const at, hour, day = instant(1_800_000_000_000), instant(3_600_000), instant(86_400_000)
	since := func(ran, passed time.Duration) clockFacts {
		return clockFacts{wall: at, latest: at, compared: true, ran: ran, passed: passed}
	}
	for _, c := range []struct {
		reason string
		facts  clockFacts
		want   verdict
	}{
		{"a new file", clockFacts{wall: at}, clockSafe},
		{"a new file in 1970", clockFacts{wall: 1000, born: at}, clockBehind},
		{"just before the program's own date", clockFacts{wall: at - 1, born: at}, clockBehind},
		{"at the program's own date", clockFacts{wall: at, born: at}, clockSafe},
		{"the last write was now", clockFacts{wall: at, latest: at}, clockSafe},
		{"an hour behind", clockFacts{wall: at, latest: at + hour}, clockSafe},
		{"more than an hour behind", clockFacts{wall: at, latest: at + hour + 1}, clockBehind},
		{"closed for 45 days", clockFacts{wall: at, latest: at - 45*day}, clockSafe},
		{"closed for longer", clockFacts{wall: at, latest: at - 45*day - 1}, clockAhead},
		{"ten years ahead at the start", clockFacts{wall: at, latest: at - 3650*day}, clockAhead},
		{"an hour more than has passed", since(3*time.Hour, 2*time.Hour), clockSafe},
		{"more than that", since(3*time.Hour+1, 2*time.Hour), clockAhead},
		{"a year that has passed", clockFacts{wall: at, latest: at - 365*day, compared: true, ran: 8760 * time.Hour, passed: 8760 * time.Hour}, clockSafe},
		{"set back, but not behind the last write", clockFacts{wall: at, latest: at - 5*hour, compared: true, ran: 0, passed: 3 * time.Hour}, clockSafe},
		{"behind, though it agrees with what has passed", clockFacts{wall: at, latest: at + 2*hour, compared: true}, clockBehind},
		{"an hour behind a database", clockFacts{wall: at, latest: at, ahead: time.Hour}, clockSafe},
		{"more than an hour behind it", clockFacts{wall: at, latest: at, ahead: time.Hour + 1}, clockBehind},
		{"an hour ahead of it", clockFacts{wall: at, latest: at, ahead: -time.Hour}, clockSafe},
		{"more than an hour ahead of it", clockFacts{wall: at, latest: at, ahead: -time.Hour - 1}, clockAhead},
	} {
		if got := c.facts.judge(); got != c.want {
			t.Errorf("%s: it is %s, want %s", c.reason, got, c.want)
		}
	}
}

// A clockEvent is something that happens to a machine, and the moment that a write then
// carries.
type clockEvent struct {
	what func(*testMachine, *wallClock)
	want string // the moment; if nothing may be written, - and the moment of a read
}

func passes(d time.Duration) func(*testMachine, *wallClock) {
	return func(m *testMachine, _ *wallClock) { m.pass(d) }
}

func steps(d time.Duration) func(*testMachine, *wallClock) {
	return func(m *testMachine, _ *wallClock) { m.wall = m.wall.Add(d) }
}

func sleeps(d time.Duration) func(*testMachine, *wallClock) {
	return func(m *testMachine, _ *wallClock) { m.sleep(d) }
}

func isSynced(yes bool) func(*testMachine, *wallClock) {
	return func(m *testMachine, _ *wallClock) { m.synced = yes; m.pass(time.Second) }
}

func isAccepted(m *testMachine, c *wallClock) { c.accept(instantOf(m.wall)) }

func countsNoSleep(m *testMachine, _ *wallClock) { m.notAwake = true }

const oneYear = 8766 * time.Hour

// clockStories begin at noon on 2027-03-01, when the last write was an hour old.
var clockStories = []struct {
	name   string
	events []clockEvent
}{
	{"nothing is wrong", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {passes(time.Hour), "2027-03-01 13:00:00"}}},
	{"2036 and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(9 * oneYear), "-2027-03-01 12:00:00"}, {passes(time.Hour), "-2027-03-01 13:00:00"},
		{steps(-9 * oneYear), "2027-03-01 13:00:00"},
	}},
	{"1970 and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-57 * oneYear), "-2027-03-01 12:00:00"}, {passes(time.Minute), "-2027-03-01 12:01:00"},
		{steps(57 * oneYear), "2027-03-01 12:01:00"},
	}},
	{"1970 from the start", []clockEvent{
		{steps(-57 * oneYear), "-2027-03-01 11:00:00"}, {passes(time.Minute), "-2027-03-01 11:01:00"}, {steps(57 * oneYear), "2027-03-01 12:01:00"},
		{steps(61 * time.Minute), "-2027-03-01 12:01:00"},
	}},
	{"half an hour on and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(30 * time.Minute), "2027-03-01 12:30:00"}, {steps(-30 * time.Minute), "2027-03-01 12:30:00"},
		{passes(10 * time.Minute), "2027-03-01 12:40:00"}, {steps(30 * time.Minute), "2027-03-01 12:40:00"}, {passes(time.Minute), "2027-03-01 12:41:00"},
	}},
	{"an hour back, and a second more", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-time.Hour), "2027-03-01 12:00:00"}, {steps(-time.Second), "-2027-03-01 12:00:00"},
	}},
	{"jumps of less than a look would find", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-50 * time.Millisecond), "2027-03-01 12:00:00"}, {passes(time.Second), "2027-03-01 12:00:00.95"},
	}},
	{"a night's suspend", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {sleeps(9 * time.Hour), "2027-03-01 21:00:00"}}},
	{"a jump in a suspend", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {sleeps(9 * time.Hour), "2027-03-01 21:00:00"}, {steps(2 * time.Hour), "-2027-03-01 21:00:00"},
		{sleeps(time.Hour), "-2027-03-01 22:00:00"},
	}},
	{"two hours on, in two steps", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(time.Hour), "2027-03-01 13:00:00"}, {steps(time.Hour), "-2027-03-01 13:00:00"},
	}},
	{"closed for six weeks", []clockEvent{{steps(42 * 24 * time.Hour), "2027-04-12 12:00:00"}}},
	{"closed for 46 days, and accepted", []clockEvent{
		{steps(46 * 24 * time.Hour), "-2027-03-01 11:00:00"}, {passes(time.Hour), "-2027-03-01 12:00:00"}, {isAccepted, "2027-04-16 13:00:00"},
		{steps(9 * oneYear), "-2027-04-16 13:00:00"},
	}},
	{"closed for 46 days, and synchronized", []clockEvent{
		{steps(46 * 24 * time.Hour), "-2027-03-01 11:00:00"}, {isSynced(true), "2027-04-16 12:00:01"}, {isSynced(false), "2027-04-16 12:00:02"},
	}},
	{"set back and accepted", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-24 * time.Hour), "-2027-03-01 12:00:00"}, {isAccepted, "2027-02-28 12:00:00"},
		{steps(24 * time.Hour), "-2027-02-28 12:00:00"},
	}},
	{"1970, accepted", []clockEvent{{steps(-57 * oneYear), "-2027-03-01 11:00:00"}, {isAccepted, "1970-03-01 06:00:00"}, {passes(time.Hour), "1970-03-01 07:00:00"}}},
	{"synchronized in 2036", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {isSynced(true), "2027-03-01 12:00:01"}, {steps(9 * oneYear), "2036-02-29 18:00:01"}}},
	{"synchronized, and behind: latest has to be lowered first", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {isSynced(true), "2027-03-01 12:00:01"}, {steps(-24 * time.Hour), "-2027-03-01 12:00:01"}, {isAccepted, "2027-02-28 12:00:01"},
	}},
	{"set back by three hours to just before the last write", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"},
		{func(m *testMachine, c *wallClock) {
			m.pass(3 * time.Hour)
			c.now()
			m.wall = m.wall.Add(-190 * time.Minute)
		}, "2027-03-01 12:00:00"},
		{passes(5 * time.Minute), "2027-03-01 12:05:00"},
	}},
	{"no clock counts sleep", []clockEvent{
		{countsNoSleep, "2027-03-01 12:00:00"}, {sleeps(44 * 24 * time.Hour), "2027-04-14 12:00:00"}, {steps(46 * 24 * time.Hour), "-2027-04-14 12:00:00"},
	}},
}

// TestWallClock plays the stories. After each event it checks whether anything may be
// written, and which moment the write carries.
func TestWallClock(t *testing.T) {
	t.Parallel()
	for _, story := range clockStories {
		t.Run(story.name, func(t *testing.T) {
			m := &testMachine{wall: moment(t, "2027-03-01T12:00:00Z")}
			c := newWallClock(m)
			c.start(instantOf(moment(t, "2027-03-01T11:00:00Z")))
			for i, e := range story.events {
				e.what(m, c)
				const layout = "2006-01-02 15:04:05.999"
				at, err := c.forWriting()
				got := at.time().Format(layout)
				if err != nil {
					got = "-" + instantOf(c.now()).time().Format(layout)
				} else {
					c.wrote(at)
				}
				if got != e.want {
					t.Fatalf("event %d: a write carries %s, want %s", i+1, got, e.want)
				}
			}
		})
	}
}

// TestWallClockRandom checks that the moments of writes never step back unless latest was
// lowered, and that a safe clock is never behind the wall clock, nor ahead by more than
// clockSlack.
func TestWallClockRandom(t *testing.T) {
	t.Parallel()
	histories(t, 1000, func(t *testing.T, rnd *rand.Rand) {
		m := &testMachine{wall: moment(t, "2027-03-01T12:00:00Z"), notAwake: rnd.IntN(4) == 0}
		c := newWallClock(m)
		var latest instant
		if rnd.IntN(3) > 0 {
			latest = instantOf(m.wall.Add(-randomSpan(rnd)))
		}
		c.start(latest)
		for range 50 {
			m.meddle(rnd)
			if rnd.IntN(20) == 0 {
				latest = instantOf(m.wall)
				c.accept(latest)
				if !c.isSafe() {
					t.Fatalf("unsafe at %s, though it was accepted", m.wall)
				}
			}
			at, err := c.forWriting()
			if err != nil {
				continue
			}
			if at < latest {
				t.Fatalf("a write at %s comes after one at %s", at, latest)
			}
			if wall := instantOf(m.wall); at < wall || at > wall.add(clockSlack) {
				t.Fatalf("a write at %s, though the clock says %s and is safe", at, wall)
			}
			if rnd.IntN(3) > 0 {
				latest = at
				c.wrote(at)
			}
		}
	})
}

// randomSpan returns a span of time of any order of magnitude.
func randomSpan(rnd *rand.Rand) time.Duration {
	longest := pick(rnd, 10*time.Millisecond, time.Second, time.Hour, 3*oneDay, 100*oneDay, 20*365*oneDay)
	return time.Duration(rnd.Int64N(int64(longest)))
}

// meddle changes the machine's clocks at random.
func (m *testMachine) meddle(rnd *rand.Rand) {
	switch rnd.IntN(6) {
	case 0:
		m.sleep(randomSpan(rnd))
	case 1:
		m.wall = m.wall.Add(randomSpan(rnd))
	case 2:
		m.wall = m.wall.Add(-randomSpan(rnd))
	case 3:
		m.synced = rnd.IntN(4) == 0
	default:
		m.pass(randomSpan(rnd))
	}
	if y := m.wall.Year(); y < 1970 || y > 2090 { // keep to years that a kernel accepts
		m.wall = time.Date(1970+rnd.IntN(120), 1, 1, 0, 0, 0, 0, time.UTC)
	}
}

// TestWallClockCheap checks that the clock is looked at once a second, not for each
// request, and that the kernel is not asked whether a safe clock is synchronized.
func TestWallClockCheap(t *testing.T) {
	t.Parallel()
	m := &testMachine{wall: moment(t, "2027-03-01T12:00:00Z")}
	c := newWallClock(m)
	c.now()
	first := c.state.Load()
	for range 9 {
		m.pass(100 * time.Millisecond)
		c.now()
		if _, err := c.forWriting(); err != nil {
			t.Fatal(err)
		}
	}
	if c.state.Load() != first {
		t.Error("it was looked at within a second")
	}
	m.pass(100 * time.Millisecond)
	if c.now(); c.state.Load() == first {
		t.Error("it was not looked at for a second")
	}
	if m.syncedAsked > 0 {
		t.Error("the kernel was asked")
	}
}

// TestTwoServers runs two servers with different clocks on one store. Neither writes at a
// moment before the other's last write. A server that is more than an hour behind
// refuses.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2027-03-01T12:00:00Z"})
	ana := s.customer("ana")
	m := &testMachine{wall: s.clock.time()}
	slow := newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(slow.open(t.Context()))
	give := func() (movementShape, error) {
		now, err := slow.clock.forWriting()
		s.ok(err)
		return write(t.Context(), slow, s.org, now, func(t *txn) (movementShape, error) {
			if err := t.inTime(); err != nil {
				return movementShape{}, err
			}
			given, err := movePoints(t, ana, nil, &movement{Amount: decimalOf(1), Category: categoryBonus}, t.points.credit)
			if err != nil {
				return movementShape{}, err
			}
			return given, nil
		})
	}
	s.pass(time.Hour)
	s.add(ana, "1", never)
	given, err := give()
	s.ok(err)
	if given.CreatedAt != s.clock {
		t.Errorf("written at %s, after a write at %s", given.CreatedAt, s.clock)
	}
	s.pass(time.Hour)
	s.add(ana, "1", never)
	m.pass(time.Hour)
	_, err = give()
	s.ok(err)
	s.pass(time.Hour)
	s.add(ana, "1", never)
	_, err = give()
	s.want(err, "clock_unsafe")
}

// TestReadyAsWrites: a server whose clock is not that of the database says of itself that it is ready
// just where it writes: up to an hour, or if the kernel says that its clock is right.
func TestReadyAsWrites(t *testing.T) {
	t.Parallel()
	s := newServers(t, setup{at: "2027-03-01T12:00:00Z"})[1]
	store := s.engine.store.shared.(*memServer)
	m := &testMachine{wall: s.clock.time()}
	s.engine = newEngineBy(newWallClock(m), store, s.engine.seed)
	s.ok(s.engine.open(t.Context()))
	served := s.served()
	for _, test := range []struct {
		ahead  time.Duration
		synced bool
		safe   bool
	}{
		{0, false, true}, {90 * time.Second, false, true}, {-90 * time.Second, false, true}, {-time.Hour, false, true},
		{61 * time.Minute, false, false}, {-61 * time.Minute, false, false}, {-61 * time.Minute, true, true}, {0, false, true},
	} {
		store.ahead.Store(int64(test.ahead))
		m.synced = test.synced
		m.pass(time.Minute)
		s.engine.store.keepUp(t.Context())
		want := [2]int{http.StatusOK, http.StatusCreated}
		if !test.safe {
			want = [2]int{http.StatusServiceUnavailable, http.StatusServiceUnavailable}
		}
		ready, wrote := served.get("/readyz"), served.post("/api/v1/customers", "", fmt.Sprintf(`{"email":"c%d@example.com"}`, m.up/time.Minute))
		if got := [2]int{ready.Code, wrote.Code}; got != want {
			t.Errorf("%v ahead: ready and a write: %d, want %d: %s, %s", test.ahead, got, want, ready.Body, wrote.Body)
		}
		for _, w := range []*httptest.ResponseRecorder{ready, wrote} {
			if !test.safe && !strings.Contains(w.Body.String(), `"clock_unsafe"`) {
				t.Errorf("%v ahead: %s", test.ahead, w.Body)
			}
		}
	}
}

// TestUnsafeWaits checks that no background task writes while the clock is unsafe, and
// that commands of an operator do.
func TestUnsafeWaits(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2027-03-01T12:00:00Z", program: `"expiry":{"days":30}`})
	ana := s.customer("ana")
	s.add(ana, "50", 0)
	m := &testMachine{wall: s.clock.time()}
	s.engine = newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(s.engine.open(t.Context()))
	m.pass(time.Minute)
	s.engine.now()
	before := stored(t, s.engine.store)
	m.wall = m.wall.AddDate(9, 0, 0)
	s.swept()
	s.ok(s.engine.recount(t.Context()))
	s.ok(s.engine.correctClock(t.Context()))
	same(t, "the store", stored(t, s.engine.store), before)

	k, err := s.admin().createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "till"})
	s.ok(err)
	if want := s.clock.add(time.Minute); k.CreatedAt != want {
		t.Errorf("a key is made at %s, want %s", k.CreatedAt, want)
	}
	s.apply(setup{program: `"tiers":[{"name":"Oro","threshold":0}]`}.document()) // all are counted anew
	s.wantTier(ana, "Oro", "the command counts them")
	s.wantStanding(ana, "50 0 50", "nothing has expired")
}

// TestDamagedLatest checks that a store whose latest moment cannot be read is opened.
func TestDamagedLatest(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	damaged := wrappedStore{Store: s.engine.store, view: func(tx Tx) Tx {
		return brokenTx{Tx: tx, scan: func(lo []byte) error {
			if lo[0] == 'n' { // counters
				return errCorrupt
			}
			return nil
		}}
	}}
	s.ok(newEngineBy(newWallClock(&testMachine{wall: s.clock.time()}), damaged, s.engine.seed).open(t.Context()))
}

// BenchmarkClock measures what judging the clock costs a request. It compares a handler
// with a clock that is judged and one with a clock that is believed.
func BenchmarkClock(b *testing.B) {
	for _, test := range []struct{ name, method, path, body string }{
		{"get", "GET", "/api/v1/points/customers/CUSTOMER/balance", ""},
		{"post", "POST", "/api/v1/points/customers/CUSTOMER/add", `{"amount":1}`},
	} {
		for _, clock := range []struct {
			name string
			make func() *wallClock
		}{
			{"believed", func() *wallClock { return heldClock(time.Now) }},
			{"judged", func() *wallClock { return newWallClock(newSystemClock()) }},
		} {
			b.Run(test.name+"/"+clock.name, func(b *testing.B) {
				store, err := openBolt(filepath.Join(b.TempDir(), "clock.db"), disk.Options{NoSync: true, Dense: denseTables})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				s := &shop{TB: b, org: 1, clock: instantOf(time.Now())}
				s.engine = newEngineBy(clock.make(), store, cryptoSeed)
				s.ok(s.engine.open(b.Context()))
				s.apply(setup{}.document())
				cust := s.customer("ana")
				key := must(s, func(t *txn) (string, error) {
					_, text, err := t.keys.create(keyRequest{Name: "bench", RateLimit: 1 << 30})
					return text, err
				})
				handler := newAPIOf(s.engine)
				path := strings.Replace(test.path, "CUSTOMER", cust.String(), 1)
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest(test.method, path, strings.NewReader(test.body))
					r.Header.Set("Authorization", "Bearer "+key)
					if test.body != "" {
						r.Header.Set("Content-Type", "application/json")
					}
					w := httptest.NewRecorder()
					if handler.ServeHTTP(w, r); w.Code >= 300 {
						b.Fatal(w.Code, w.Body)
					}
				}
			})
		}
	}
	b.Run("now", func(b *testing.B) {
		c := newWallClock(newSystemClock())
		for b.Loop() {
			c.now()
		}
	})
	b.Run("look", func(b *testing.B) {
		c := newWallClock(newSystemClock())
		for b.Loop() {
			c.state.Store(nil)
			c.now()
		}
	})
}

// TestClockHistories plays random histories of customers while the clock jumps anywhere
// and back. Then verify finds no problem, as of any moment.
func TestClockHistories(t *testing.T) {
	t.Parallel()
	histories(t, 100, func(t *testing.T, rnd *rand.Rand) {
		doc := randomProgram(rnd)
		s := newShop(t, setup{zone: pick(rnd, "America/Mexico_City", "UTC"), at: "2027-03-01T12:00:00Z", program: programMembers(doc),
			also: `"rewards":[{"key":"small","program":"club","name":"Small","pointsCost":3}]`})
		m := &testMachine{wall: s.clock.time(), notAwake: rnd.IntN(4) == 0}
		store, newSeed := s.engine.store, s.engine.seed
		restart := func() {
			s.engine = newEngineBy(newWallClock(m), store, newSeed)
			if rnd.IntN(2) == 0 {
				s.engine.sizes.inline = inlineLimits{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
			}
			s.ok(s.engine.open(s.Context()))
		}
		restart()
		inline := s.engine.sizes.inline
		h := &clockHistory{shop: s, machine: m, rnd: rnd, cust: []id{}}
		for range 60 {
			h.act()
			if rnd.IntN(15) == 0 {
				restart()
				s.engine.sizes.inline = inline
			}
		}
		for range 5 {
			s.clock = instantOf(time.Date(1970+rnd.IntN(120), 1, 1, 0, 0, 0, 0, time.UTC))
			if rnd.IntN(2) == 0 {
				s.clock = instantOf(m.wall.Add(randomSpan(rnd)).Add(-randomSpan(rnd)))
			}
			s.verified()
		}
		if t.Failed() {
			for i, did := range h.did {
				t.Log(i, did)
			}
		}
	})
}

type clockHistory struct {
	shop        *shop
	machine     *testMachine
	rnd         *rand.Rand
	cust        []id
	sales       []*sale
	redemptions []id
	did         []string
}

// act changes the machine's clock. Then, if it gets a moment for a write, it does
// something to a customer.
func (h *clockHistory) act() {
	rnd := h.rnd
	h.machine.meddle(rnd)
	if rnd.IntN(3) == 0 {
		h.shop.ok(h.shop.engine.correctClock(h.shop.Context()))
	}
	now, err := h.shop.engine.clock.forWriting()
	if err != nil && rnd.IntN(2) == 0 {
		now, err = h.shop.engine.commandTime()
	}
	if err != nil && rnd.IntN(2) == 0 {
		_, err = h.shop.admin().acceptClock(h.shop.Context(), struct{}{})
		h.shop.ok(err)
		h.did = append(h.did, fmt.Sprint("accept ", h.machine.wall))
		now, err = h.shop.engine.clock.forWriting()
	}
	if err != nil {
		return
	}
	h.shop.clock = now
	kind := pick(rnd, "enrol", "add", "add", "deduct", "buy", "buy", "return", "redeem", "cancel", "sweep", "recount")
	h.did = append(h.did, fmt.Sprint(kind, " ", now))
	if len(h.cust) == 0 {
		kind = "enrol"
	}
	h.do(kind)
}

func (h *clockHistory) do(kind string) {
	rnd, points := h.rnd, decimalOf(1+h.rnd.IntN(30))
	var cust id
	if len(h.cust) > 0 {
		cust = pick(rnd, h.cust...)
	}
	switch kind {
	case "enrol":
		h.cust = append(h.cust, h.shop.customer(fmt.Sprint("c", len(h.cust))))
	case "add":
		given := &movement{Category: pick(rnd, addCategories...), Amount: points}
		if rnd.IntN(3) == 0 {
			given.AvailFrom = h.shop.clock.add(randomSpan(rnd))
		}
		if rnd.IntN(2) == 0 {
			given.Expires = max(given.AvailFrom, h.shop.clock).add(time.Second + randomSpan(rnd))
		}
		h.shop.move(cust, given)
	case "deduct":
		h.shop.move(cust, &movement{Category: categoryAdjustment, Amount: -points})
	case "buy":
		if sold, err := h.shop.sell(newSale{Customer: cust, Total: points}); err == nil {
			h.sales = append(h.sales, sold)
		}
	case "return":
		if len(h.sales) > 0 {
			h.shop.tryBring(pick(rnd, h.sales...), points.String())
		}
	case "redeem":
		x, err := do(h.shop, func(t *txn) (*redemption, error) { return t.rewards.redeem(cust, t.cfg.Rewards[0].ID, "", nil) })
		if err == nil {
			h.redemptions = append(h.redemptions, x.ID)
		}
	case "cancel":
		if len(h.redemptions) > 0 {
			x := pick(rnd, h.redemptions...)
			do(h.shop, func(t *txn) (*redemption, error) { return t.rewards.cancel(x) })
		}
	case "sweep":
		h.shop.swept()
	case "recount":
		h.shop.ok(h.shop.engine.recount(h.shop.Context()))
	}
}

// TestClockReport: the values stand below each other, whichever lines there are.
func TestClockReport(t *testing.T) {
	t.Parallel()
	const wall = instant(1_800_000_000_000)
	for _, now := range []instant{wall, wall + 1} {
		var out strings.Builder
		(&clockReport{Wall: wall, Now: now, Latest: wall, State: clockSafe}).show(&out)
		columns := map[int]bool{}
		for line := range strings.Lines(out.String()) {
			label, value, _ := strings.Cut(line, ":")
			columns[utf8.RuneCountInString(label)+len(value)-len(strings.TrimLeft(value, " "))] = true
		}
		if len(columns) != 1 || strings.Contains(out.String(), "se sigue") != (now != wall) {
			t.Errorf("not in one column:\n%s", &out)
		}
	}
}

// heldClock returns the clock of a caller that keeps time itself. It is trusted,
// wherever it goes.
func heldClock(now func() time.Time) *wallClock {
	return &wallClock{machine: heldMachine(now), trusted: true}
}

type heldMachine func() time.Time

func (m heldMachine) read() reading                   { return reading{wall: m()} }
func (m heldMachine) awake() (time.Duration, bool)    { return 0, false }
func (m heldMachine) synchronized() (yes, known bool) { return false, false }
