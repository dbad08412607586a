package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
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
