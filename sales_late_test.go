package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// lateProgram has rules whose points depend on when a sale happens.
const lateProgram = `"expiry":{"days":20},"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":1},
	"rules":[` + onePer1 + `,{"key":"martes","name":"Martes","multiplier":2,"days":["Tuesday"]},
	{"key":"noche","name":"Noche","points":3,"hours":{"from":"20:00","to":"06:00"},"pendingDays":4},
	{"key":"breve","name":"Breve","points":5,"expiresInDays":6,"maxPerCustomerPerDay":1},
	{"key":"marzo","name":"Marzo","points":7,"until":"2026-03-10"}]`

// TestLateSales sells the same to two shops. One hears of the sales as they happen, the
// other of all of them weeks later and in any order. In the end both have the same.
func TestLateSales(t *testing.T) {
	t.Parallel()
	histories(t, 40, func(t *testing.T, rnd *rand.Rand) {
		program := strings.Replace(lateProgram, `"days":20`, `"days":`+fmt.Sprint(5+rnd.IntN(40)), 1)
		soon, late := newShop(t, setup{program: program}), newShop(t, setup{program: program})
		people := []string{"ana", "noe"}
		var queue []newSale
		var buyers []int
		for range 1 + rnd.IntN(12) {
			soon.pass(time.Duration(rnd.Int64N(int64(60 * time.Hour))))
			queue = append(queue, newSale{Total: decimalOf(1 + rnd.IntN(50)), Type: typePurchase, OccurredAt: soon.clock})
			buyers = append(buyers, rnd.IntN(len(people)))
		}
		began := late.clock
		customers := map[*shop][]id{}
		for _, s := range []*shop{soon, late} {
			s.clock = began
			for _, name := range people {
				customers[s] = append(customers[s], s.customer(name))
			}
		}
		for i, in := range queue {
			soon.clock, in.OccurredAt = in.OccurredAt, 0
			in.Customer = customers[soon][buyers[i]]
			_, err := soon.sell(in)
			soon.ok(err)
		}
		soon.clock = began.add(29 * oneDay)
		late.clock = soon.clock
		for _, i := range rnd.Perm(len(queue)) {
			in := queue[i]
			in.Customer = customers[late][buyers[i]]
			sold, err := late.sell(in)
			late.ok(err)
			if sold.CreatedAt != in.OccurredAt || sold.RegisteredAt != late.clock {
				t.Errorf("sold at %s, came at %s", sold.CreatedAt, sold.RegisteredAt)
			}
			if _, a := late.account(sold.Customer); sold.Balance != a.Balance {
				t.Errorf("the sale says that %s are left, the account %s", sold.Balance, a.Balance)
			}
		}
		for range 2 {
			for i := range people {
				same(t, people[i], late.standing(customers[late][i]), soon.standing(customers[soon][i]))
			}
			soon.swept()
			late.swept()
			same(t, "statistics", late.periods(began), soon.periods(began))
			soon.pass(30 * oneDay)
			late.pass(30 * oneDay)
		}
	})
}

func (s *shop) account(cust id) (*customer, *account) {
	s.Helper()
	type both struct {
		c *customer
		a *account
	}
	v := ask(s, func(t *txn) (both, error) {
		c, a, err := accountOf(t, cust)
		return both{c, a}, err
	})
	return v.c, v.a
}

// periods are the statistics of each day of 100 days.
func (s *shop) periods(from instant) []period {
	s.Helper()
	return ask(s, func(t *txn) ([]period, error) {
		first := t.dayOf(from)
		found, err := t.stats.answer(statsQuery{from: first, to: first + 100, groupBy: groupDay})
		if err != nil {
			return nil, err
		}
		return found.periods, nil
	})
}

// TestLateSaleTier: the tier is that of now, and the sale does not count in a window that
// it is too old for.
func TestLateSaleTier(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"maxLateDays":60`, program: `"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":1},
		"tiers":[{"name":"Bronce"},{"name":"Plata","threshold":100,"multiplier":2}],"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.buy(ana, "100")
	late, err := s.sell(newSale{Customer: ana, Total: dec("10"), OccurredAt: s.clock.add(-40 * oneDay)})
	s.ok(err)
	if late.Earned != dec("20") {
		t.Errorf("earned %s, want what Plata earns", late.Earned)
	}
	if got := s.standing(ana).Figure; got != dec("100") {
		t.Errorf("the window has %s", got)
	}
	s.wantStanding(ana, "120 0 120", "both")
}

// TestLateSaleMaximum: a rule's daily maximum is that of the day of the sale.
func TestLateSaleMaximum(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":1}]`})
	ana := s.customer("ana")
	s.pass(29 * oneDay)
	first := s.clock.add(-29 * oneDay)
	for i, at := range []instant{first, first, 0, 0, first, first.add(oneDay), 0} {
		s.pass(time.Second)
		sold, err := s.sell(newSale{Customer: ana, Total: dec("1"), OccurredAt: at})
		s.ok(err)
		if want := i == 0 || i == 2 || i == 5; want != (sold.Earned > 0) {
			t.Errorf("sale %d earned %s", i, sold.Earned)
		}
	}
}

// TestLateReturn: a return finds the purchase that was there at its moment.
func TestLateReturn(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	at := []instant{s.clock.add(-3 * oneDay), s.clock.add(-2 * oneDay), s.clock.add(-oneDay)}
	call := func(kind, externalID string, at instant) (*sale, error) {
		return s.sell(newSale{Customer: ana, Total: dec("5"), Type: kind, ExternalID: externalID, OccurredAt: at})
	}
	older, err := call(typePurchase, "T-1", at[0])
	s.ok(err)
	for _, externalID := range []string{"T-1", "T-2"} {
		_, err = call(typePurchase, externalID, at[2])
		s.ok(err)
	}
	_, err = call(typeReturn, "T-2", at[1])
	s.want(err, "occurred_at_invalid")
	back, err := call(typeReturn, "T-1", at[1])
	s.ok(err)
	if back.Previous != older.ID || back.CreatedAt != at[1] {
		t.Errorf("%+v is not a return of %s", back, older.ID)
	}
	s.wantStanding(ana, "10 0 10", "two are left")
}

// TestRegisteredNeverFalls: after the clock was set back, what comes is registered with
// what came last.
func TestRegisteredNeverFalls(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	ahead := s.buy(ana, "1").RegisteredAt
	s.pass(-10 * oneDay)
	sold := s.buy(ana, "1")
	if sold.CreatedAt != s.clock || sold.RegisteredAt != ahead {
		t.Errorf("happened at %s, came at %s", sold.CreatedAt, sold.RegisteredAt)
	}
	s.pass(20 * oneDay)
	if sold := s.buy(ana, "1"); sold.RegisteredAt != s.clock {
		t.Errorf("came at %s", sold.RegisteredAt)
	}
}

// TestImportRegisters: an imported sale is of its date, and came with the import.
func TestImportRegisters(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	s.customer("ana")
	s.importText(t, "A,2025-02-05T18:00:00Z,ana@example.com,,Purchase,1,,,,", "B,2024-02-05T18:00:00Z,ana@example.com,,Purchase,1,,,,")
	s.pass(oneDay)
	s.importText(t, "C,2025-12-05T18:00:00Z,ana@example.com,,Purchase,1,,,,")
	found := ask(s, func(t *txn) ([]*sale, error) {
		list, total, err := t.saleLists.find(saleFilter{to: never, registeredFrom: s.clock}, page{1, 10})
		if total != 1 {
			err = fmt.Errorf("%d sales, %w", total, err)
		}
		return list, err
	})
	if found[0].ExternalID != "C" || found[0].RegisteredAt != s.clock {
		t.Errorf("found %+v", found[0])
	}
}

// TestImportUnique: where externalIds are unique, a row is known by its values.
func TestImportUnique(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"externalIds":"Unique"`, program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.customer("noe")
	_, err := s.sell(newSale{Customer: ana, Total: dec("9"), ExternalID: "A", Items: []item{{"X", dec("3"), dec("3")}}})
	s.ok(err)
	for i, test := range []struct{ row, want string }{
		{"A,2026-02-05T18:00:00Z,ana@example.com,,Purchase,9.00,X,3,3,", "0 new, 1 known"},
		{"A,2026-02-05T18:00:00Z,ana@example.com,,Purchase,9,X,1,9,", "otros datos"},
		{"A,2026-02-05T18:00:00Z,noe@example.com,,Purchase,9,X,3,3,", "otros datos"},
		{"B,2026-02-05T18:00:00Z,ana@example.com,,Purchase,9,X,3,3,", "1 new"},
		{"B,2026-02-06T18:00:00Z,ana@example.com,,Purchase,9,X,3,3,", "1 known"},
		{"B,2026-02-06T18:00:00Z,ana@example.com,,Return,9,X,3,3,", "1 new"},
		{"B,2026-02-06T18:00:00Z,ana@example.com,,Return,9,X,3,3,", "1 known"},
	} {
		if got := s.importText(t, test.row); !strings.Contains(got, test.want) {
			t.Errorf("row %d: %s, want %s", i, got, test.want)
		}
	}
	s.wantStanding(ana, "9 0 9", "A, and B that came back")
}

// TestLateSaleAndDebt: points of a late sale that had expired when it came pay no debt, and
// those that had not do.
func TestLateSaleAndDebt(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true,"negativeBalance":"Debt","expiry":{"days":7},"rules":[` + onePer1 + `,
		{"key":"long","name":"Long","points":30,"expiresInDays":90,"minAmount":100}]`})
	ana := s.customer("ana")
	bought := s.buy(ana, "60")
	must(s, func(t *txn) (any, error) {
		return movePoints(t, ana, nil, &movement{Amount: dec("60"), Category: "Fee"}, t.points.debit)
	})
	_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("60"), Original: &bought.ID})
	s.ok(err)
	s.wantStanding(ana, "-60 0 0", "a debt")
	late, err := s.sell(newSale{Type: typePurchase, Customer: ana, Total: dec("100"), OccurredAt: s.clock.add(-20 * oneDay)})
	s.ok(err)
	same(t, "expired late", late.ExpiredLate, dec("100"))
	s.wantStanding(ana, "-30 0 130", "what expired paid nothing")
	s.verified()
	s.buy(ana, "31")
	s.wantStanding(ana, "1 0 161", "what was bought today paid the rest")
	s.verified()
}

// TestUniqueReturnsApart: a return of no purchase is another one than that of a purchase, though
// both happened at one moment.
func TestUniqueReturnsApart(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: lateProgram, settings: `"externalIds":"Unique"`})
	ana := s.customer("ana")
	bought := s.buy(ana, "10")
	s.pass(oneDay)
	at := s.clock.add(-1000)
	back := func(original *id) *sale {
		in := newSale{Type: typeReturn, Customer: ana, Total: dec("2"), Original: original, OccurredAt: at}
		known := ask(s, func(t *txn) (*sale, error) { return t.sales.knownSale(in) })
		if known != nil {
			return known
		}
		made, err := s.sell(in)
		s.ok(err)
		return made
	}
	linked, alone := back(&bought.ID), back(nil)
	if linked.ID == alone.ID || back(nil).ID != alone.ID || back(&bought.ID).ID != linked.ID {
		t.Error("a return is taken for another one")
	}
}
