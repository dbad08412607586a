package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sello/internal/blockset"
)

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
