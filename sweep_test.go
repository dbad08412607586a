package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sello/internal/disk"
	"sello/internal/wallclock"
	"sello/internal/wallclock/wallclocktest"
)

// TestSweepStrays adds due entries that belong to no account. verify reports each. The
// sweep removes them, logs them once and settles all other accounts.
func TestSweepStrays(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"expiry":{"days":30}`})
	var log bytes.Buffer
	s.engine.log = slog.New(slog.NewTextHandler(&log, nil))
	ana, eva := s.customer("ana"), s.customer("eva")
	s.add(ana, "5", 0)
	s.pass(oneDay)
	s.add(eva, "7", 0)

	due := func() key { return newKey('d').instant(s.clock) } // before any of the shop's own entries
	strays := []key{
		due().u32(77).id(ana).u32(1), due().u32(0).id(ana).u32(1), due().u32(s.org).id(id{1}).u32(1), due().u32(s.org).id(ana).u32(77),
		due(), newKey('d'), due().u32(s.org).id(ana).u32(1).byte(0),
	}
	for _, stray := range strays {
		put := func(do func(Tx) error) {
			_, err := updateStore(t.Context(), s.engine.store, func(tx Tx) (any, error) { return nil, do(tx) })
			s.ok(err)
		}
		put(func(tx Tx) error { return tx.Put(stray, nil) })
		if report, err := s.verify(); err != nil || len(report.Problems) == 0 {
			t.Errorf("%x: verify tells nothing of it (%v)", stray, err)
		}
		put(func(tx Tx) error { return tx.Delete(stray) })
	}
	_, err := updateStore(t.Context(), s.engine.store, func(tx Tx) (any, error) {
		for _, stray := range strays {
			if err := tx.Put(stray, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	s.ok(err)

	s.pass(31 * oneDay)
	s.swept()
	for _, cust := range []id{ana, eva} {
		if all := s.ledger(cust); len(all) != 2 || all[0].Category != categoryExpiration && all[1].Category != categoryExpiration {
			t.Errorf("%s: what has expired is not in the ledger: %v", cust, all)
		}
	}
	s.verified()
	for _, stray := range strays {
		if n := strings.Count(log.String(), hex.EncodeToString(stray)); n == 0 {
			t.Errorf("%x: the log does not tell of it:\n%s", stray, &log)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	log.Reset()
	s.swept()
	if log.Len() > 0 {
		t.Errorf("another sweep says %s", &log)
	}
}

// TestSweepBatches has more accounts due, of two organizations, than one transaction of
// the sweep takes. The sweep settles all and leaves nothing due.
func TestSweepBatches(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"expiry":{"days":1}`})
	s.apply(bytes.Replace(setup{program: `"expiry":{"days":1}`}.document(), []byte("cafe-luna"), []byte("tienda"), 1))
	var customers []id
	for i := range 3 * sweepBatch {
		s.org = 1 + uint32(i%2)
		cust := s.customer(fmt.Sprint("c", i))
		s.add(cust, "10", 0)
		customers = append(customers, cust)
	}
	s.pass(oneDay)
	s.swept()
	for i, cust := range customers {
		s.org = 1 + uint32(i%2)
		if ledger := s.ledger(cust); len(ledger) != 2 || ledger[1].Category != categoryExpiration || ledger[1].CreatedAt != s.clock {
			t.Fatalf("customer %d has %d movements", i, len(ledger))
		}
	}
	for _, e := range s.entries() {
		if e.Key[0] == 'd' {
			t.Fatalf("still due: %x", e.Key)
		}
	}
	before := s.entries()
	s.swept()
	same(t, "what is in the store after another sweep", s.entries(), before)
}

// moment parses a moment in RFC 3339.
func moment(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestTwoServers runs two servers with different clocks on one store. Neither writes at a
// moment before the other's last write. A server that is more than an hour behind
// refuses.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2027-03-01T12:00:00Z"})
	ana := s.customer("ana")
	m := &wallclocktest.Machine{Wall: s.clock.time()}
	slow := newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(slow.open(t.Context()))
	give := func() (movementShape, error) {
		now, err := slow.momentToWrite()
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
	m.Pass(time.Hour)
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
	m := &wallclocktest.Machine{Wall: s.clock.time()}
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
		m.Synced = test.synced
		m.Pass(time.Minute)
		s.engine.store.keepUp(t.Context())
		want := [2]int{http.StatusOK, http.StatusCreated}
		if !test.safe {
			want = [2]int{http.StatusServiceUnavailable, http.StatusServiceUnavailable}
		}
		ready, wrote := served.get("/readyz"), served.post("/api/v1/customers", "", fmt.Sprintf(`{"email":"c%d@example.com"}`, m.Up/time.Minute))
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
	m := &wallclocktest.Machine{Wall: s.clock.time()}
	s.engine = newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(s.engine.open(t.Context()))
	m.Pass(time.Minute)
	s.engine.now()
	before := stored(t, s.engine.store)
	m.Wall = m.Wall.AddDate(9, 0, 0)
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
	s.ok(newEngineBy(newWallClock(&wallclocktest.Machine{Wall: s.clock.time()}), damaged, s.engine.seed).open(t.Context()))
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
			{"judged", func() *wallClock { return newWallClock(wallclock.System()) }},
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
		c := newWallClock(wallclock.System())
		for b.Loop() {
			c.Now()
		}
	})
	b.Run("look", func(b *testing.B) {
		c := newWallClock(wallclock.System())
		for b.Loop() {
			c.Start(instant(0))
			c.Now()
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
		m := &wallclocktest.Machine{Wall: s.clock.time(), NotAwake: rnd.IntN(4) == 0}
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
				s.clock = instantOf(m.Wall.Add(wallclocktest.RandomSpan(rnd)).Add(-wallclocktest.RandomSpan(rnd)))
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
	machine     *wallclocktest.Machine
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
	h.machine.Meddle(rnd)
	if rnd.IntN(3) == 0 {
		h.shop.ok(h.shop.engine.correctClock(h.shop.Context()))
	}
	now, err := h.shop.engine.momentToWrite()
	if err != nil && rnd.IntN(2) == 0 {
		now, err = h.shop.engine.commandTime()
	}
	if err != nil && rnd.IntN(2) == 0 {
		_, err = h.shop.admin().acceptClock(h.shop.Context(), struct{}{})
		h.shop.ok(err)
		h.did = append(h.did, fmt.Sprint("accept ", h.machine.Wall))
		now, err = h.shop.engine.momentToWrite()
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
			given.AvailFrom = h.shop.clock.add(wallclocktest.RandomSpan(rnd))
		}
		if rnd.IntN(2) == 0 {
			given.Expires = max(given.AvailFrom, h.shop.clock).add(time.Second + wallclocktest.RandomSpan(rnd))
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
		x, err := do(h.shop, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(cust, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
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
		(&clockReport{Wall: wall, Now: now, Latest: wall, State: wallclock.Safe}).show(&out)
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
	return &wallClock{Machine: heldMachine(now), Trusted: true}
}

type heldMachine func() time.Time

func (m heldMachine) Read() wallclock.Reading         { return wallclock.Reading{Wall: m()} }
func (m heldMachine) Awake() (time.Duration, bool)    { return 0, false }
func (m heldMachine) Synchronized() (yes, known bool) { return false, false }

// TestRecountOnTouch changes the basis of the tiers. A read or a sale before
// the recount runs already counts its customer anew and uses the right tier.
func TestRecountOnTouch(t *testing.T) {
	t.Parallel()
	const program = `"tierBasis":{"metric":"PointsEarned","window":%q%s},
		"tiers":[{"name":"B","threshold":0},{"name":"P","threshold":100,"multiplier":2}],
		"rules":[{"key":"base","name":"Base","per":{"amount":1,"points":1}}]`
	lifetime := setup{program: fmt.Sprintf(program, "Lifetime", "")}
	rolling := setup{program: fmt.Sprintf(program, "Rolling", `,"months":3`)}
	s := newShop(t, lifetime)
	var customers []id
	for i := range 2*recountBatch + 5 {
		c := s.customer(fmt.Sprintf("c%d", i))
		s.buy(c, "150")
		customers = append(customers, c)
	}
	now, made := s.clock, s.engine.seed()
	if err := s.engine.store.Update(t.Context(), func(tx Tx) error {
		_, err := applyDocument(tx, rolling.document(), newMint(now, made), creator{}, false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	last := customers[len(customers)-1]
	s.wantTier(last, "P", "the window holds what the lifetime did")
	if sold := s.buy(last, "100"); sold.Earned != dec("200") || sold.TierFrom != sold.TierTo {
		t.Errorf("a sale before the recount earned %s (tier %q to %q), want 200", sold.Earned, sold.TierFrom, sold.TierTo)
	}
	s.verified()
	s.ok(s.engine.recount(t.Context()))
	s.verified()
	for _, c := range customers {
		s.wantTier(c, "P", "counted anew")
	}
	if ask(s, func(t *txn) (bool, error) { return t.cfg.Recount, nil }) {
		t.Error("the recount has not ended")
	}
	s.pass(100 * oneDay)
	s.wantTier(last, "B", "the window has passed")
	s.swept()
}

// TestManyLotsExpire settles an account whose many lots expired one by one.
// The calls of the store grow in proportion to the lots: four times the lots
// take at most five times the calls.
func TestManyLotsExpire(t *testing.T) {
	t.Parallel()
	calls := func(lots int) int {
		s := newShop(t, setup{})
		c := s.customer("ana")
		must(s, func(x *txn) (any, error) {
			_, a, err := accountOf(x, c)
			if err != nil {
				return nil, err
			}
			for i := range lots {
				m := &movement{Category: categoryBonus, Amount: dec("1"), Expires: x.now.add(oneDay) + instant(i)}
				if err := x.points.credit(a, m); err != nil {
					return nil, err
				}
			}
			return nil, x.points.saveAccount(a)
		})
		s.pass(2 * oneDay)
		var n int
		ask(s, func(x *txn) (any, error) {
			counted := &countedTx{Tx: newOverlay(x.Tx)}
			x.Tx, x.readOnly = counted, false
			_, a, err := accountOf(x, c)
			n = counted.keys()
			if err == nil && a.Balance != 0 {
				t.Errorf("balance %s after all has expired", a.Balance)
			}
			return nil, err
		})
		s.swept()
		s.wantStanding(c, fmt.Sprintf("0 0 %d", lots), "swept")
		return n
	}
	few, many := calls(500), calls(2000)
	if many > 5*few {
		t.Errorf("500 lots took %d calls of the store, 2000 took %d", few, many)
	}
}
