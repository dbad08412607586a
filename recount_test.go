package main

import (
	"fmt"
	"testing"
)

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
