package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// told compares the feed of a store that no event was dropped from with all that is in it:
// each movement, sale and redemption has one event of its making, and each change that a
// record tells of has one too.
func (s *shop) told(tx Tx, org uint32) (faults []string, err error) {
	t, err := s.engine.inTxn(tx, org, s.clock, seed{})
	if err != nil {
		return nil, err
	}
	n, err := t.count()
	if err != nil || n.Dropped > 0 {
		return nil, err
	}
	type about struct {
		kind eventKind
		ref  uint64
	}
	count := map[about]int{}
	next := uint64(1)
	for e, err := range t.feed.from(1) {
		if err != nil {
			return nil, err
		}
		if e.Seq != next {
			faults = append(faults, fmt.Sprintf("event %d instead of %d", e.Seq, next))
		}
		next++
		if e.Kind == eventPointsAdded || e.Kind >= eventTransactionCreated && e.Kind <= eventRedemptionExpired ||
			slices.Contains([]eventKind{eventPointsDeducted, eventPointsExpired, eventPointsReversed, eventCustomerCreated}, e.Kind) {
			count[about{e.Kind, e.Refs[0]}]++
		}
		if e.Kind == eventPointsHeld || e.Kind == eventPointsReleased {
			count[about{e.Kind, e.Refs[1]}]++
		}
	}
	want := map[about]int{}
	for seq := uint64(1); seq <= n.Customers; seq++ {
		want[about{eventCustomerCreated, seq}]++
	}
	for seq := uint64(1); seq <= n.Movements; seq++ {
		m, err := t.points.movement(seq)
		if err != nil {
			return nil, err
		}
		switch {
		case m.Category == categoryMerge, m.Category == categoryHold, m.Category == categoryRelease:
		case m.Category == categoryExpiration:
			want[about{eventPointsExpired, seq}]++
		case m.Category == categoryReturn:
			want[about{eventPointsReversed, seq}]++
		case m.Amount < 0:
			want[about{eventPointsDeducted, seq}]++
		default:
			want[about{eventPointsAdded, seq}]++
		}
	}
	for seq := uint64(1); seq <= n.Sales; seq++ {
		want[about{eventTransactionCreated, seq}]++
	}
	for seq := uint64(1); seq <= n.Redemptions; seq++ {
		x, err := t.rewards.redemptionAt(seq)
		if err != nil {
			return nil, err
		}
		want[about{eventRedemptionCreated, seq}]++
		if x.UsedAt != 0 {
			want[about{eventRedemptionUsed, seq}]++
		}
		if x.CancelledAt != 0 {
			want[about{eventRedemptionCancelled, seq}]++
		}
		_, due, err := t.Get(t.rewards.dueVoucherKey(x))
		if err != nil {
			return nil, err
		}
		if x.lapses() && x.Expires <= n.Latest && !due {
			want[about{eventRedemptionExpired, seq}]++
		}
	}
	for e, err := range scan(t.Tx, orgKey('O', t.org), false) {
		var h *hold
		if err == nil {
			h, err = decodeEntry[hold](e)
		}
		if err != nil {
			return nil, err
		}
		ref := uintIn(e.Key[5+8:])
		want[about{eventPointsHeld, ref}]++
		if h.State != holdHeld {
			want[about{eventPointsHeld + 1, ref}]++ // its end
		}
	}
	for a, n := range want {
		if count[a] != n {
			faults = append(faults, fmt.Sprintf("%s of %d: %d events", eventKinds[a.kind].name, a.ref, count[a]))
		}
		delete(count, a)
	}
	for a := range count {
		faults = append(faults, fmt.Sprintf("%s of %d, which is not there", eventKinds[a.kind].name, a.ref))
	}
	return faults, nil
}

// feed returns the events after a sequence, as a client gets them.
func (s *shop) feed(after uint64, types ...string) (list []eventShape) {
	s.Helper()
	return ask(s, func(t *txn) ([]eventShape, error) {
		found, next, err := t.feed.page(eventsAfter{after: after, given: true, types: types, limit: 100})
		if err != nil {
			return nil, err
		}
		shown, err := newEventList(t, found, next)
		for _, e := range shown.Data {
			if got, want := reflect.TypeOf(e.Data), eventDataTypes[e.Type]; got != want {
				s.Errorf("%s: data is %v, and openapi.json describes %v", e.Type, got, want)
			}
		}
		return shown.Data, err
	})
}

// TestNotices adds and takes points at random and lets time pass. What expires is announced
// once, 7 days before, with what is left of it then.
func TestNotices(t *testing.T) {
	t.Parallel()
	for i := range repeats(60, 20, 10) {
		rnd := rand.New(rand.NewPCG(uint64(i), 19))
		s := newShop(t, setup{})
		s.engine.sizes.inline = pick(rnd, inlineLimits{2, 2, 2}, inlineLimits{4, 1, 1}, usualInline())
		c := s.customer("ana")
		for range 25 {
			s.pass(time.Duration(rnd.IntN(200)) * time.Hour)
			before := ask(s, func(t *txn) (*counters, error) { return t.count() }).Events
			earlier := ask(s, func(t *txn) (instant, error) {
				n, err := t.count()
				return n.Latest, err
			})
			had := ask(s, func(t *txn) ([]expiring, error) {
				c, err := t.customers.get(c)
				if err != nil {
					return nil, err
				}
				a, err := t.points.storedAccount(c, t.cfg.Programs[0])
				if err != nil {
					return nil, err
				}
				return t.points.expiring(a)
			})
			var want []string
			for _, e := range had {
				if at := e.ExpiresAt - noticeTime; earlier < at && at <= s.clock && e.ExpiresAt > s.clock {
					want = append(want, fmt.Sprint(e.Amount, " ", e.ExpiresAt))
				}
			}
			if rnd.IntN(2) == 0 { // else whatever comes next does it
				s.swept()
			}
			amount := fmt.Sprint(1 + rnd.IntN(20))
			if rnd.IntN(3) > 0 {
				s.add(c, amount, s.clock.add(time.Duration(1+rnd.IntN(30*24))*time.Hour))
			} else {
				s.deduct(c, amount) // there may be too few
			}
			s.swept()
			var got []string
			for _, e := range s.feed(before, "points.expiring") {
				v := e.Data.(expiringEvent)
				got = append(got, fmt.Sprint(v.Amount, " ", v.ExpiresAt))
			}
			same(t, fmt.Sprintf("history %d: announced", i), got, want)
		}
	}
}

// TestEventsOfPending: points that wait are told of when they come and when they are there.
func TestEventsOfPending(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"pendingDays":3}]`})
	c := s.customer("ana")
	before := uint64(len(s.feed(0)))
	s.buy(c, "100")
	s.pass(4 * oneDay)
	s.swept()
	var got []string
	for _, e := range s.feed(before) {
		got = append(got, e.Type)
		if v, ok := e.Data.(availableEvent); ok && (v.CustomerID != c || v.Amount != dec("10")) {
			t.Errorf("%+v", v)
		}
	}
	same(t, "events", got, []string{"points.added", "transaction.created", "points.available"})
}

// TestEventsInParts reads the feed in parts of every size, with and without a type, while it
// grows: nothing is missed and nothing comes twice.
func TestEventsInParts(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	var all []id
	for i := range 30 {
		all = append(all, s.customer(fmt.Sprint("c", i)))
	}
	grow := func() {
		must(s, func(t *txn) (any, error) { // many events of one transaction take several records
			for i := range 3 * manyEvents / 2 {
				if _, err := movePoints(t, all[i%len(all)], nil, &movement{Category: categoryBonus, Amount: decimalOf(1)}, t.points.credit); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	}
	for limit := 1; limit <= 100; limit += 9 {
		for _, types := range [][]string{nil, {"points.*"}, {"customer.created"}} {
			var got []uint64
			next := uint64(0)
			for range 2 {
				grow()
				for more := true; more; {
					more = ask(s, func(t *txn) (bool, error) {
						list, after, err := t.feed.page(eventsAfter{after: next, given: true, types: types, limit: limit})
						for _, e := range list {
							got = append(got, e.Seq)
						}
						next = after
						return len(list) > 0, err
					})
				}
			}
			var want []uint64
			for e, err := range ask(s, func(t *txn) (func(func(event, error) bool), error) { return t.feed.from(1), nil }) {
				s.ok(err)
				q := eventsAfter{types: types}
				if q.wants(e.Kind) {
					want = append(want, e.Seq)
				}
			}
			same(t, fmt.Sprint("limit ", limit, " of ", types), got, want)
		}
	}
}

// TestEventsWait waits for events over HTTP: until one comes, the time is up or the server
// stops. Events of another organization end no wait.
func TestEventsWait(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	c := s.customer("ana")
	served := s.served()
	a, key := served.api, served.key
	last := s.feed(0)[len(s.feed(0))-1].Sequence
	wait := func(target string) (answer chan *httptest.ResponseRecorder) {
		answer = make(chan *httptest.ResponseRecorder, 1)
		go func() { answer <- answerTo(a, newRequest("GET", target, key, "")) }()
		return answer
	}
	events := func(r *httptest.ResponseRecorder) (types []string, next uint64) {
		var l struct {
			Data []struct{ Type string }
			Next uint64
		}
		if err := json.Unmarshal(r.Body.Bytes(), &l); err != nil || r.Code != http.StatusOK {
			t.Fatal(r.Code, r.Body)
		}
		for _, e := range l.Data {
			types = append(types, e.Type)
		}
		return types, l.Next
	}
	first := wait(fmt.Sprintf("/api/v1/events?after=%d&wait=20", last))
	select {
	case r := <-first:
		t.Fatal("answered at once: ", r.Body)
	case <-time.After(20 * time.Millisecond):
	}
	must(s, func(t *txn) (any, error) {
		return movePoints(t, c, nil, &movement{Category: categoryBonus, Amount: decimalOf(1)}, t.points.credit)
	})
	types, next := events(<-first)
	same(t, "types", types, []string{"points.added"})
	same(t, "next", next, last+1)

	types, next = events(<-wait(fmt.Sprintf("/api/v1/events?after=%d&wait=1&type=customer.*", last))) // passes over one
	same(t, "events of another type", types, []string(nil))
	same(t, "next", next, last+1)

	stopped := wait(fmt.Sprintf("/api/v1/events?after=%d&wait=20", next))
	time.Sleep(20 * time.Millisecond)
	close(a.stopping)
	if types, _ := events(<-stopped); types != nil {
		t.Error(types)
	}
}

// TestEventsDropped: events are kept for 30 days, and the numbers go on.
func TestEventsDropped(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	c := s.customer("ana")
	was := uint64(len(s.feed(0)))
	s.pass(29 * oneDay)
	s.buy(c, "10")
	s.pass(2 * oneDay)
	s.swept()
	s.verified()
	get := func(q eventsAfter) ([]event, uint64, error) {
		q.limit = 100
		type page struct {
			list []event
			next uint64
		}
		p, err := read(s.Context(), s.engine, s.org, s.clock, func(t *txn) (page, error) {
			list, next, err := t.feed.page(q)
			return page{list, next}, err
		})
		return p.list, p.next, err
	}
	_, _, err := get(eventsAfter{after: was - 1, given: true})
	s.want(err, "events_gone")
	if got := publicError(err).message; got != codeEventsGone.message {
		t.Errorf("of events that are dropped: %s", got)
	}
	list, next, err := get(eventsAfter{after: was, given: true})
	s.ok(err)
	if len(list) == 0 || list[0].Seq != was+1 {
		t.Errorf("%v", list)
	}
	begun, _, err := get(eventsAfter{})
	s.ok(err)
	same(t, "from the first that is kept on", begun, list)
	if _, again, err := get(eventsAfter{after: next, given: true}); err != nil || again != next {
		t.Error(again, err)
	}
	_, _, err = get(eventsAfter{after: next + 1, given: true})
	s.want(err, "events_gone")
	if got := publicError(err).message; got != eventsToCome {
		t.Errorf("of events that do not exist yet: %s", got)
	}
}

// TestEventPatterns: what names types of events.
func TestEventPatterns(t *testing.T) {
	for pattern, want := range map[string]int{
		"*": len(eventTypes), "points.*": 8, "points.added": 1, "customer.*": 6, "points*": 0, "points.a*": 0, "points": 0, "": 0, "**": 0, ".*": 0, "points.*.*": 0,
	} {
		n := 0
		if isEventPattern(pattern) {
			for _, name := range eventTypes {
				if matchesEvent(pattern, name) {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("%q names %d types, not %d", pattern, n, want)
		}
	}
}

// TestVerifySeesFeed: verify names what is wrong with the feed.
func TestVerifySeesFeed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *txn, last uint64) error
		want  string
	}{
		"a hole":         {func(t *txn, last uint64) error { return t.Delete(eventKey(1, 2)) }, "tras el 1 está el 3"},
		"the first gone": {func(t *txn, last uint64) error { return t.Delete(eventKey(1, 1)) }, "tras el 0 está el 2"},
		"the last gone":  {func(t *txn, last uint64) error { return t.Delete(eventKey(1, last)) }, "contador de eventos"},
		"of nobody": {func(t *txn, last uint64) error {
			return put(t.Tx, eventKey(1, last), &eventRecord{1, []event{{Kind: eventCustomerErased, Refs: [4]uint64{99}}}})
		}, "de algo que no existe"},
	} {
		s := newEmptyShop(t, "2026-03-02T10:00:00Z")
		s.apply(setup{}.document())
		s.customer("ana")
		s.customer("eva")
		last := uint64(len(s.feed(0)))
		s.ok(s.engine.store.Update(context.Background(), func(tx Tx) error { return test.spoil(bareTestTxn(tx, 1), last) }))
		report, err := s.verify()
		s.ok(err)
		if !strings.Contains(strings.Join(report.Problems, "\n"), test.want) {
			t.Errorf("%s: %q", name, report.Problems)
		}
	}
}

// TestNoticesOnce: points that were announced are not announced again when an old sale, late or
// imported, makes their account due before that.
func TestNoticesOnce(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]func(s *shop, ana id){
		"late": func(s *shop, ana id) {
			_, err := s.sell(newSale{Customer: ana, Total: dec("7"), OccurredAt: s.clock.add(-20 * oneDay)})
			s.ok(err)
		},
		"imported": func(s *shop, _ id) {
			s.importText(t, "A,2025-02-05T18:00:00Z,ana@example.com,,Purchase,7,,,,", "B,2026-02-20T18:00:00Z,ana@example.com,,Purchase,8,,,,")
		},
		"imported, of the same days": func(s *shop, _ id) {
			s.importText(t, "A,2025-02-05T18:00:00Z,ana@example.com,,Purchase,7,,,,", "B,2026-03-02T18:00:00Z,ana@example.com,,Purchase,8,,,,")
		},
	} {
		s := newShop(t, setup{program: `"expiry":{"days":10},"rules":[` + onePer1 + `]`})
		ana := s.customer("ana")
		s.buy(ana, "50")
		s.pass(5 * oneDay)
		s.swept()
		if n := len(s.feed(0, "points.expiring")); n != 1 {
			t.Fatalf("announced %d times", n)
		}
		s.pass(time.Hour)
		old(s, ana)
		s.swept()
		s.pass(time.Hour)
		s.swept()
		if n := len(s.feed(0, "points.expiring")); n != 1 {
			t.Errorf("%s: announced %d times", name, n)
		}
	}
}

// TestNoticesAfterImport: an import between a notice and the sweep loses nothing.
func TestNoticesAfterImport(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"expiry":{"days":10},"rules":[` + onePer1 + `]`})
	s.buy(s.customer("ana"), "50")
	s.pass(5 * oneDay)
	s.importText(t, "A,2025-02-05T18:00:00Z,ana@example.com,,Purchase,7,,,,", "A,2026-03-02T18:00:00Z,ana@example.com,,Return,7,,,,")
	s.swept()
	if n := len(s.feed(0, "points.expiring")); n != 1 {
		t.Errorf("announced %d times", n)
	}
}

// TestEventsPassedOver: a request passes over so many events of other types and no more, also
// after it found one, and waits for none while there are others to pass over.
func TestEventsPassedOver(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	must(s, func(t *txn) (any, error) {
		for range mostSkipped + 100 {
			if err := t.feed.emit(eventCustomerUpdated, 1); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	next := ask(s, func(t *txn) (uint64, error) {
		list, next, err := t.feed.page(eventsAfter{given: true, types: []string{"customer.created"}, limit: 100})
		if len(list) != 1 {
			err = fmt.Errorf("%d events", len(list))
		}
		return next, err
	})
	same(t, "next", next, uint64(mostSkipped))
	began := time.Now()
	r := s.served().get("/api/v1/events?after=0&type=points.*&wait=20")
	if want := fmt.Sprintf(`"next":%d`, mostSkipped); !strings.Contains(r.Body.String(), want) || time.Since(began) > 15*time.Second {
		t.Errorf("after %v: %s", time.Since(began), r.Body)
	}
}

// TestEventsWaitShowsNow: what a request has waited for is shown as it is when it comes.
func TestEventsWaitShowsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := hookedShop(t, nil)
		s.apply(setup{also: `"rewards":[{"key":"v","program":"club","name":"V","pointsCost":1,"fulfilment":"Voucher","validDays":1,"effect":{"type":"Percent","percent":10}}]`}.document())
		ana := s.customer("ana")
		s.add(ana, "5", never)
		x, err := s.redeem(ana, "v")
		s.ok(err)
		served := s.served()
		time.Sleep(x.Expires.sub(s.clock) - 5*time.Second)
		answer := make(chan *httptest.ResponseRecorder, 1)
		last := len(s.feed(0))
		go func() { answer <- served.get(fmt.Sprintf("/api/v1/events?after=%d&wait=20", last)) }()
		time.Sleep(6 * time.Second)
		s.ok(s.engine.sweep(t.Context()))
		if body := (<-answer).Body.String(); !strings.Contains(body, "redemption.expired") || !strings.Contains(body, `"status":"Expired"`) {
			t.Error(body)
		}
		s.engine.store.Close()
	})
}

// TestSweepsAtOnce: the sweep of a command may run beside that of the server.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	now := s.clock
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if err := s.engine.dropEvents(t.Context(), func() (instant, error) { return now, nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestTimeStepsBack: after time stepped back, what was told of comes again, and nothing is wrong
// until then.
func TestTimeStepsBack(t *testing.T) {
	t.Parallel()
	for _, one := range []string{"points", "voucher"} {
		s := newEmptyShop(t, "2026-03-02T10:00:00Z")
		s.apply(setup{
			program: `"expiry":{"days":20}`,
			also:    `"rewards":[{"key":"v","program":"club","name":"V","pointsCost":1,"fulfilment":"Voucher","validDays":3,"effect":{"type":"Percent","percent":10}}]`,
		}.document())
		ana, kind := s.customer("ana"), "points.expiring"
		s.add(ana, "50", 0)
		if one == "voucher" {
			kind = "redemption.expired"
			_, err := s.redeem(ana, "v")
			s.ok(err)
		}
		s.pass(15 * oneDay)
		s.swept()
		s.pass(-14 * oneDay)
		s.ok(s.engine.acceptClock(s.Context(), creator{Type: bySystem}))
		s.ok(s.engine.recount(s.Context()))
		report, err := s.verify()
		s.ok(err)
		same(t, "problems with "+one, report.Problems, []string{})
		s.pass(14 * oneDay)
		s.swept()
		if n := len(s.feed(0, kind)); n != 2 {
			t.Errorf("%s: told %d times", kind, n)
		}
	}
}
