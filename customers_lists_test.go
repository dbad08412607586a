package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/blockset"
)

// marchSegment is a segment of those who were born in March.
const marchSegment = `"segments":[{"key":"marzo","name":"Marzo","isActive":true,"rule":{"field":"birthMonth","op":"=","value":3}}]`

// bornIn is the i-th customer of n, of whom so many, evenly spread, were born in March, and the
// others in May.
func bornIn(of crowd, i, n, march int) importRow {
	row := of.customer(i)
	row.BirthDate = "1990-05-02"
	if i*march/n != (i+1)*march/n {
		row.BirthDate = "1990-03-02"
	}
	return row
}

// movesToMay changes when a customer was born: no longer in March.
func (s *shop) movesToMay(cust id) {
	s.Helper()
	must(s, func(t *txn) (any, error) {
		return t.customers.patch(cust, customerPatch{BirthDate: new(birthDate(19900502))}, nil)
	})
}

// walked follows a walk to its end. It returns the customers, and how many pages it took.
func (s *servedShop) walked(path string) (found []id, pages int) {
	for after := ""; ; pages++ {
		w := s.get(path + after)
		var page walkedCustomers
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			s.shop.Fatalf("%s%s: %d %s", path, after, w.Code, w.Body)
		}
		for _, item := range page.Data {
			found = append(found, item.ID)
		}
		if page.Next == nil {
			return found, pages + 1
		}
		after = *page.Next
	}
}

// TestWalks: a walk finds each customer of a segment once, in the order of the enrolment, whoever
// moves in and out of it meanwhile.
func TestWalks(t *testing.T) {
	t.Parallel()
	n, march := sized(100_000, 7000), sized(1234, 123)
	s := newShop(t, setup{at: "2026-04-02T10:00:00Z", also: marchSegment})
	of := newCrowd()
	s.importing(importCustomers, n, func(i int) importRow { return bornIn(of, i, n, march) })
	served := s.served()
	_, served.key = s.newKey(keyRequest{RateLimit: 10_000_000})
	members := "/api/v1/segments/" + s.config().Segments[0].ID.String() + "/customers?limit=100&after="

	stay := map[id]bool{}
	before, pages := served.walked(members)
	for _, cust := range before {
		stay[cust] = true
	}
	if len(before) != march || len(stay) != march || pages < n/walkedAtOnce {
		t.Fatalf("%d of %d in the segment, %d different ones, in %d pages", len(before), march, len(stay), pages)
	}
	moving := ask(s, func(t *txn) (list []id, err error) {
		for c, err := range t.customers.between(1, uint64(n)) {
			if err != nil {
				return nil, err
			}
			if c.Number%97 == 5 && !stay[c.ID] {
				list = append(list, c.ID)
			}
		}
		return list, nil
	})
	var done atomic.Bool
	var group sync.WaitGroup
	moves := make([]int, 4)
	for worker := range moves {
		group.Go(func() {
			for i := worker; !done.Load(); i += len(moves) {
				born := birthDate(19900302)
				if i/len(moving)%2 == 1 {
					born = 19900502
				}
				must(s, func(t *txn) (any, error) {
					return t.customers.patch(moving[i%len(moving)], customerPatch{BirthDate: &born}, nil)
				})
				moves[worker]++
			}
		})
	}
	for range 3 {
		found, _ := served.walked(members)
		seen := map[id]bool{}
		for _, cust := range found {
			if seen[cust] {
				t.Errorf("%s came twice", cust)
			}
			if seen[cust] = true; !stay[cust] && !slices.Contains(moving, cust) {
				t.Errorf("%s was never in the segment", cust)
			}
		}
		for cust := range stay {
			if !seen[cust] {
				t.Errorf("%s was missed", cust)
			}
		}
	}
	done.Store(true)
	group.Wait()
	if slices.Min(moves) == 0 {
		t.Errorf("nobody moved: %v", moves)
	}
}

// TestWalkBounds: a page that looks at as many customers as it may and finds nobody has a next.
// A walk of all leaves out the hidden, and takes those who enrol meanwhile.
func TestWalkBounds(t *testing.T) {
	t.Parallel()
	const n = walkedAtOnce + 700
	s := newShop(t, setup{at: "2026-04-02T10:00:00Z", also: marchSegment})
	of := newCrowd()
	s.importing(importCustomers, n, func(i int) importRow {
		row := of.customer(i)
		if i == n-1 {
			row.BirthDate = "1990-03-02"
		}
		return row
	})
	cust := s.config().Segments[0]
	members := func(after uint64) ([]id, uint64) {
		var next uint64
		found := ask(s, func(t *txn) (found []id, err error) {
			found, next, err = t.rules.members(cust, after, 10)
			return found, err
		})
		return found, next
	}
	if found, next := members(0); len(found) != 0 || next != walkedAtOnce {
		t.Errorf("the first page: %d found, next %d", len(found), next)
	}
	if found, next := members(walkedAtOnce); len(found) != 1 || next != 0 {
		t.Errorf("the last page: %d found, next %d", len(found), next)
	}

	served := s.served()
	must(s, func(t *txn) (any, error) {
		gone, err := t.customers.idAt(7)
		if err != nil {
			return nil, err
		}
		_, err = t.merges.erase(gone)
		return nil, err
	})
	all, _ := served.walked("/api/v1/customers?limit=100&after=")
	want := ask(s, func(t *txn) (list []id, err error) {
		for c, err := range t.customers.between(1, n) {
			if err != nil {
				return nil, err
			}
			if !c.hidden() {
				list = append(list, c.ID)
			}
		}
		return list, nil
	})
	if !slices.Equal(all, want) || len(all) != n-1 {
		t.Errorf("a walk of all has %d customers, want %d", len(all), len(want))
	}
	s.pass(time.Hour)
	ana := s.customer("ana")
	since := "&updatedSince=" + s.clock.String()
	if found, _ := served.walked("/api/v1/customers?limit=100" + since + "&after="); !slices.Equal(found, []id{ana}) {
		t.Errorf("changed since: %v, want %s", found, ana)
	}
}

// TestWalkReads: what a rule does not ask for is not read.
func TestWalkReads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		reads int
	}{
		{`{"field":"birthMonth","op":"=","value":3}`, 0},
		{`{"any":[{"field":"phone","op":"=","value":true},{"field":"attributes.a","op":"=","value":1}]}`, 0},
		{`{"not":{"field":"tier","op":"=","value":"Oro"}}`, readsHead},
		{`{"all":[{"field":"balance","op":">","value":3},{"field":"points:b","op":">","value":1}]}`, readsOther},
		{`{"any":[{"field":"expiringWithin","op":"<","value":3},{"field":"email","op":"=","value":true}]}`, readsLots},
	} {
		var rule segmentRule
		if err := json.Unmarshal([]byte(test.rule), &rule); err != nil {
			t.Fatal(err)
		}
		if got := rule.reads(); got != test.reads {
			t.Errorf("%s reads %d, want %d", test.rule, got, test.reads)
		}
	}
	var rule segmentRule
	if err := json.Unmarshal([]byte(`{"all":[{"field":"expiringWithin","op":"<","value":3},{"field":"tier","op":"=","value":"a"},{"any":[{"field":"balance","op":"=","value":1},{"field":"email","op":"=","value":true}]},{"field":"phone","op":"=","value":true}]}`), &rule); err != nil {
		t.Fatal(err)
	}
	var order []string
	sorted := rule.cheapFirst()
	for _, r := range sorted.comparisons("") {
		order = append(order, r.Field)
	}
	if want := []string{"phone", "tier", "email", "balance", "expiringWithin"}; !slices.Equal(order, want) {
		t.Errorf("the cheap first: %v, want %v", order, want)
	}
}

// BenchmarkMembers walks a segment of 1,234 customers while points are added, and reports how long
// a page takes, and an add alone and beside it. -bench.customers says how many customers there are.
func BenchmarkMembers(b *testing.B) {
	n := *benchCustomers
	for _, field := range []string{`{"field":"birthMonth","op":"=","value":3}`, `{"all":[{"field":"balance","op":">=","value":0},{"field":"expiringWithin","op":"!=","value":0},{"field":"birthMonth","op":"=","value":3}]}`} {
		b.Run(fmt.Sprint(len(field)), func(b *testing.B) {
			s := newEmptyCrowd(b, b.TempDir()+"/members.db")
			s.apply(setup{also: `"segments":[{"key":"marzo","name":"Marzo","isActive":true,"rule":` + field + `}]`}.document())
			of := newCrowd()
			s.importing(importCustomers, n, func(i int) importRow {
				row := bornIn(of, i, n, min(1234, n))
				row.Points = "10"
				return row
			})
			served := s.served()
			_, served.key = s.newKey(keyRequest{RateLimit: 1e9})
			members := "/api/v1/segments/" + s.config().Segments[0].ID.String() + "/customers?limit=100&after="
			adding := ask(s, func(t *txn) (id, error) { return t.customers.idAt(1) })
			add := func() time.Duration {
				begun := time.Now()
				if w := served.post("/api/v1/points/customers/"+adding.String()+"/add", "", `{"amount":1}`); w.Code != http.StatusCreated {
					b.Error(w.Body)
				}
				return time.Since(begun)
			}
			var alone, beside, pages []time.Duration
			for range 2000 {
				alone = append(alone, add())
				time.Sleep(time.Millisecond)
			}
			var done atomic.Bool
			var group sync.WaitGroup
			group.Go(func() {
				for !done.Load() {
					beside = append(beside, add())
					time.Sleep(time.Millisecond)
				}
			})
			for b.Loop() {
				for after := ""; ; {
					begun := time.Now()
					w := served.get(members + after)
					pages = append(pages, time.Since(begun))
					var page walkedCustomers
					if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
						b.Fatal(err)
					}
					if page.Next == nil {
						break
					}
					after = *page.Next
				}
			}
			done.Store(true)
			group.Wait()
			for name, times := range map[string][]time.Duration{"page": pages, "add-alone": alone, "add-beside": beside} {
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2])/1e6, name+"-p50-ms")
				b.ReportMetric(float64(times[len(times)*99/100])/1e6, name+"-p99-ms")
			}
		})
	}
}

// TestStatusGroups lists customers of several groups, as many Active as not or only a few
// of either, and compares with looking at every number.
func TestStatusGroups(t *testing.T) {
	t.Parallel()
	skipShort(t)
	customers := sized(2, 1)*statusGroup + 700
	rnd := rand.New(rand.NewPCG(1, 1))
	tx := bareTestTxn(newOverlay(memTx{}), 1)
	tx.counters = &counters{Customers: uint64(customers)}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := make([]id, customers+1)
	for number := range uint64(customers) {
		ids[number+1] = tx.id()
		ok(tx.Put(orgKey('l', 1).byte('c').u64(number+1), ids[number+1][:]))
	}
	statuses := make([]string, customers+1)
	for number := range statuses {
		statuses[number] = statusActive
	}
	change := func(number int, to string) {
		ok(tx.customers.moveStatus(uint64(number), statuses[number], to))
		statuses[number] = to
	}
	check := func(when string) {
		for _, f := range []struct {
			filter statusFilter
			passes []string
		}{
			{notHidden, []string{statusActive, statusInactive}}, {onlyActive, []string{statusActive}}, {onlyInactive, []string{statusInactive}},
		} {
			var want []id
			for number := customers; number > 0; number-- {
				if slices.Contains(f.passes, statuses[number]) {
					want = append(want, ids[number])
				}
			}
			total := uint64(len(want))
			for _, p := range []page{{1, 20}, {2, 100}, {total/20 + 1, 20}, {max(total/20, 1), 20}, {total/40 + 1, 20}, {1 << 40, 100}, {statusGroup/100 + 1, 100}} {
				got, n, err := tx.customers.list(f.filter, p)
				ok(err)
				from := min(p.skip(), total)
				if part := want[from:min(from+p.limit, total)]; !slices.Equal(got, part) || n != total {
					t.Fatalf("%s, %v, page %+v: %d of %d, want %d of %d", when, f.filter, p, len(got), n, len(part), total)
				}
			}
		}
	}
	check("all are active")
	for _, number := range []int{1, 63, 64, blockset.Block - 1, blockset.Block, statusGroup - 1, statusGroup, statusGroup + 1, customers - 700, customers} {
		change(number, statusInactive)
		change(min(number-number%2+3, customers-1), statusMerged)
	}
	check("some are not")
	for range customers / 2 {
		change(1+rnd.IntN(customers), pick(rnd, statusActive, statusInactive, statusMerged, statusErased))
	}
	check("half are")
	for number := range customers {
		if number%50_000 > 3 {
			change(number+1, statusInactive)
		}
	}
	check("few are")
	for number := range customers {
		change(number+1, statusErased)
	}
	check("none are")
	for number := range customers {
		change(number+1, statusActive)
	}
	for e, err := range scan(tx, orgKey('K', 1), false) {
		ok(err)
		t.Fatalf("all are active, and there is %x", e.Key)
	}
}
