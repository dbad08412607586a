package main

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAsOf plays random histories without late sales. What is foreseen for a moment is what the
// account is once a moved clock is there, and what is recalled of a moment is what the account
// was.
func TestAsOf(t *testing.T) {
	t.Parallel()
	skipShort(t)
	histories(t, 1000, func(t *testing.T, rnd *rand.Rand) {
		h := newHistory(t, rnd)
		h.noteWas()
		for range 1 + rnd.IntN(20) {
			before := h.shop.clock
			h.wait()
			h.foreseen(before)
			h.noteWas()
			if rnd.IntN(6) == 0 {
				h.shop.swept()
			}
			h.act()
			h.noteWas()
		}
		h.shop.pass(oneDay)
		h.shop.swept() // so that the ledger has what expired at the moment of a credit, too
		h.recalled()
	})
}

// was is what the account was at moments.
type was map[instant]standing

// noteWas notes what the account is.
func (h *history) noteWas() {
	if h.was == nil {
		h.was = was{}
	}
	now := h.shop.standing(h.cust)
	now.Tier, now.Figure = "", 0
	h.was[h.shop.clock] = now
}

// foreseen compares the account with what was foreseen at an earlier moment.
func (h *history) foreseen(before instant) {
	h.t.Helper()
	at := h.shop.clock
	h.shop.clock = before
	said := ask(h.shop, func(t *txn) (standing, error) {
		c, err := t.customers.get(h.cust)
		if err != nil {
			return standing{}, err
		}
		a, err := foresee(t, c, t.cfg.programNumber(c.Program), at)
		if err != nil {
			return standing{}, err
		}
		list, err := t.points.expiring(a)
		current, _ := a.tier()
		return standing{a.Balance, a.Pending, a.Lifetime, a.held(), list, a.figure(), current.name()}, err
	})
	h.shop.clock = at
	same(h.t, "foreseen for "+at.String(), said, h.shop.standing(h.cust))
}

// recalled compares what the account was with what is recalled of it, and of each movement the
// balance that it says.
func (h *history) recalled() {
	h.t.Helper()
	recallTo := func(at instant, ofDay bool) *accountAt {
		return ask(h.shop, func(t *txn) (*accountAt, error) {
			c, err := t.customers.get(h.cust)
			if err != nil {
				return nil, err
			}
			_, then, err := recall(t, c, t.cfg.programNumber(c.Program), at, ofDay)
			return then, err
		})
	}
	recallAt := func(at instant) *accountAt { return recallTo(at, false) }
	lapsed := map[instant]bool{} // where nothing else is dated
	for _, m := range h.shop.ledger(h.cust) {
		was, some := lapsed[m.CreatedAt]
		lapsed[m.CreatedAt] = m.Category == categoryExpiration && m.Uses[0].Expires >= m.CreatedAt && (was || !some)
	}
	for _, at := range slices.Sorted(maps.Keys(h.was)) {
		if was := h.was[at]; lapsed[at+1] {
			if got := recallTo(at+1, true); got.Balance+got.Pending != was.Balance+was.Pending || got.Held != was.Held {
				h.t.Errorf("before what lapsed at %s: %+v, was %+v", at+1, got.pointSums, was)
			}
		}
		want, got := h.was[at], recallAt(at)
		expiring := got.Expiring
		if expiring == nil && h.program.inactiveMonths() > 0 { // when they would have lapsed is not kept
			expiring = want.Expiring
		}
		same(h.t, "recalled of "+at.String(), standing{Balance: got.Balance, Pending: got.Pending, Lifetime: *got.Lifetime, Held: got.Held, Expiring: expiring}, want)
	}
	ledger := h.shop.ledger(h.cust)
	for i, m := range ledger {
		if i+1 < len(ledger) && ledger[i+1].CreatedAt == m.CreatedAt {
			continue
		}
		got := recallAt(m.CreatedAt)
		// A lapse comes before what becomes available at its moment.
		if got.Balance != m.Balance && !(m.Category == categoryExpiration && got.Balance+got.Pending == m.Balance+m.Pending) {
			h.t.Errorf("recalled of %s: balance %s, the movement has %s", m.CreatedAt, got.Balance, m.Balance)
		}
	}
	if before := recallAt(h.enrolled[0] - 1); !reflect.DeepEqual(before.pointSums, pointSums{}) || *before.Lifetime != 0 || len(before.Expiring) > 0 {
		h.t.Errorf("before the enrolment: %+v", before)
	}
}

// TestAsOfFullCard foresees that pending points fill a card, as the sweep finds it later.
func TestAsOfFullCard(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{
		program: `"expiry":{"days":90},"rules":[{"key":"stamp","name":"Stamp","perItem":1,"pendingDays":10}]`,
		also:    `"rewards":[{"key":"card","program":"club","name":"Card","pointsCost":3,"fulfilment":"Voucher","autoIssue":true}]`,
	})
	h := &history{t: t, shop: s, cust: s.customer("ana")}
	for range 2 {
		s.buy(h.cust, "10", item{"A", dec("5"), dec("2")})
	}
	at := s.clock.add(11 * oneDay)
	said := ask(s, func(t *txn) (decimal, error) {
		c, err := t.customers.get(h.cust)
		if err != nil {
			return 0, err
		}
		a, err := foresee(t, c, t.cfg.programNumber(c.Program), at)
		if err != nil {
			return 0, err
		}
		return a.Balance, nil
	})
	s.clock = at
	s.swept()
	if now := s.standing(h.cust); said != now.Balance || said != decimalOne {
		t.Errorf("foreseen %s, became %s", said, now.Balance)
	}
}

// TestAsOfLateDebit: a late return is dated before the points that it took back, which were pending
// then. Once these are available the past is what it was.
func TestAsOfLateDebit(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"A","per":{"amount":1,"points":1},"pendingDays":4}]`})
	ana := s.customer("ana")
	s.buy(ana, "10")
	s.pass(5 * oneDay)
	_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("4"), OccurredAt: s.clock.add(-6 * oneDay)})
	s.ok(err)
	s.pass(time.Hour)
	then := ask(s, func(t *txn) (*accountAt, error) {
		c, err := t.customers.get(ana)
		if err != nil {
			return nil, err
		}
		_, then, err := recall(t, c, t.cfg.programNumber(c.Program), s.clock-1, false)
		return then, err
	})
	same(t, "an hour ago", then.pointSums, pointSums{Balance: decimalOf(6)})
	s.pass(40 * oneDay)
	raw := s.stated(ana, "2026-03")
	s.isLedgers(raw, 0)
	if !strings.Contains(string(raw), `"closing":{"balance":6,"pendingBalance":0,`) {
		t.Errorf("%s", raw)
	}
}

// TestAsOfDay: points that lapse at the end of a day are in what a date shows of it, be it past, now
// or yet to come, and are gone a millisecond later. The day before the first movement has zeros.
func TestAsOfDay(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	lapses := dayOn(2026, 3, 20).end(s.config().zone)
	s.pass(oneDay)
	s.add(ana, "100", lapses)
	s.add(ana, "7", never)
	handler, key := newAPIOf(s.engine), must(s, func(t *txn) (string, error) { _, text, err := t.keys.create(keyRequest{Name: "k"}); return text, err })
	for _, now := range []instant{s.clock, lapses - 1, lapses, lapses + 1, lapses.add(oneDay)} {
		s.clock = now
		for day, want := range map[string]string{
			"2026-03-01":               `"balance":0,`,
			"2026-03-19":               `"balance":107,`,
			"2026-03-20":               `"balance":107,`,
			"2026-03-20T23:59:59.999":  `"balance":7,`,
			"2026-03-21T05:59:59.998Z": `"balance":107,`,
			"2026-03-21":               `"balance":7,`,
		} {
			body := answerTo(handler, newRequest("GET", "/api/v1/points/customers/"+ana.String()+"/balance?asOf="+day, key, "")).Body.String()
			if !strings.Contains(body, want) || day == "2026-03-20" && !strings.Contains(body, `"expiringPoints":[{"amount":100,"expiresAt":"2026-03-21T05:59:59.999Z"}],"asOf":"2026-03-21T05:59:59.999Z"`) ||
				day == "2026-03-01" && !strings.Contains(body, `"pendingBalance":0,"lifetimePoints":0,"expiringPoints":[],`) {
				t.Errorf("at %s, asOf %s: %s", now, day, body)
			}
		}
	}
}
