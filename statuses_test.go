package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStatusGroups lists customers of several groups, as many Active as not or only a few
// of either, and compares with looking at every number.
func TestStatusGroups(t *testing.T) {
	t.Parallel()
	long(t)
	const customers = 2*statusGroup + 700
	rnd := rand.New(rand.NewPCG(1, 1))
	tx := &txn{Tx: newOverlay(memTx{}), mint: newMint(0, seed{}), org: 1, held: held{counters: &counters{Customers: customers}}}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids [customers + 1]id
	for number := range uint64(customers) {
		ids[number+1] = tx.id()
		ok(tx.Put(orgKey('l', 1).byte('c').u64(number+1), ids[number+1][:]))
	}
	statuses := make([]string, customers+1)
	for number := range statuses {
		statuses[number] = statusActive
	}
	change := func(number int, to string) {
		ok(tx.moveStatus(uint64(number), statuses[number], to))
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
				got, n, err := tx.listCustomers(f.filter, p)
				ok(err)
				from := min(p.skip(), total)
				if part := want[from:min(from+p.limit, total)]; !slices.Equal(got, part) || n != total {
					t.Fatalf("%s, %v, page %+v: %d of %d, want %d of %d", when, f.filter, p, len(got), n, len(part), total)
				}
			}
		}
	}
	check("all are active")
	for _, number := range []int{1, 63, 64, setBlock - 1, setBlock, statusGroup - 1, statusGroup, statusGroup + 1, 2 * statusGroup, customers} {
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

// TestIndexStatuses makes the sets of a file of schema 4, in steps that may be repeated.
func TestIndexStatuses(t *testing.T) {
	t.Parallel()
	path := unpackFile(t, "schema4")
	e, store := heldEngine(t, path)
	defer store.Close()
	_, err := e.migrate(t.Context(), nil)
	if err == nil {
		err = e.open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	do := func(fn func(*txn) error) {
		t.Helper()
		if _, err := write(t.Context(), e, 1, instantOf(fileMoment), func(tx *txn) (any, error) { return nil, fn(tx) }); err != nil {
			t.Fatal(err)
		}
	}
	var customers, inactive uint64
	do(func(tx *txn) error {
		n, err := tx.count()
		if err != nil {
			return err
		}
		customers, inactive = n.Customers, 0
		for number := uint64(1); number <= customers; number += 3 { // as a later sello would have left them
			c, err := tx.customerAt(number)
			if err != nil {
				return err
			}
			c.Status = statusInactive
			if err := tx.saveCustomer(c); err != nil {
				return err
			}
			inactive++
		}
		return nil
	})
	problems := func() string {
		a := &admin{engine: e, flush: flushOf(newAPI(e, nil, e.log))}
		v, err := a.verify(t.Context(), verifyRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(v.Problems)
	}
	if problems() == "[]" {
		t.Error("verify does not miss the sets")
	}
	for range 2 { // a kill may repeat a step
		if err := e.indexOldStatuses(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if told := problems(); told != "[]" {
		t.Error(told)
	}
	var total uint64
	_, err = read(t.Context(), e, 1, instantOf(fileMoment), func(tx *txn) (list []id, err error) {
		list, total, err = tx.listCustomers(onlyInactive, page{1, 1})
		return list, err
	})
	if err != nil || total != inactive {
		t.Errorf("%d inactive customers, %v; want %d", total, err, inactive)
	}
}
