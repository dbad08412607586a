package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestRefold makes an index of several blocks anew that an earlier fold made, also when
// a kill leaves the first block done. The result is the index of new customers, and
// nothing is written again.
func TestRefold(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply(setup{}.document())
	const customers = gramBlock + 100
	must(s, func(t *txn) (any, error) {
		for number := uint64(1); number <= customers; number++ {
			c := &customer{ID: t.id(), Number: number, FirstName: "Фёдор\u00a0", LastName: "O’Brien", Email: fmt.Sprintf("a%d@b.mx", number)}
			if err := errors.Join(t.Put(orgKey('l', t.org).byte('c').u64(number), c.ID[:]), t.saveCustomer(c)); err != nil {
				return nil, err
			}
		}
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		n.Customers = customers
		return nil, t.indexUntil(customers - 36)
	})
	fresh := s.entries()
	refold := func() int {
		store := s.engine.store.Store
		counted := &updateCounter{Store: store}
		s.engine.store.Store = counted
		defer func() { s.engine.store.Store = store }()
		s.ok(s.engine.refoldIndex(t.Context(), 1))
		return counted.updates
	}
	if n := refold(); n != 0 {
		t.Errorf("an index that is right is written to in %d transactions", n)
	}
	spoil := func(block uint64) { // as a fold that leaves ё, ’ and blanks made it
		must(s, func(t *txn) (any, error) {
			gone := t.gramKey(uint32(block), "")
			err := deleteAll(t, gone)
			var list []gramAt
			for number := max(1, block*gramBlock); number <= min(customers-36, (block+1)*gramBlock-1); number++ {
				list = appendGrams(list, number, []string{"фёдор\u00a0 o’brien", fmt.Sprintf("a%d@b.mx", number), ""})
			}
			return nil, errors.Join(err, t.addGrams(uint32(block), list))
		})
	}
	for _, test := range []struct {
		why    string
		blocks []uint64
	}{{"all old", []uint64{0, 1}}, {"a kill came after the first block", []uint64{1}}, {"only the first", []uint64{0}}} {
		for _, block := range test.blocks {
			spoil(block)
		}
		if n := refold(); n != len(test.blocks) {
			t.Errorf("%s: %d transactions, want %d", test.why, n, len(test.blocks))
		}
		same(t, test.why, s.entries(), fresh)
	}
}

// An updateCounter counts the transactions that write.
type updateCounter struct {
	Store
	updates int
}

func (c *updateCounter) Update(ctx context.Context, fn func(Tx) error) error {
	c.updates++
	return c.Store.Update(ctx, fn)
}

func deleteAll(t *txn, prefix key) error {
	var keys [][]byte
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return err
		}
		keys = append(keys, slices.Clone(e.Key))
	}
	for _, k := range keys {
		if err := t.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
