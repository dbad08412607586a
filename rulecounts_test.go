package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRuleLives: what a customer used in a life comes back with purchases that are returned whole,
// and adds up in a merge.
func TestRuleLives(t *testing.T) {
	t.Parallel()
	const rules = `"rules":[{"key":"once","name":"once","points":100,"maxPerCustomer":1},{"key":"third","name":"third","points":10,"every":3}]`
	s := newShop(t, setup{program: rules})
	ana := s.customer("ana")
	buys := func(cust id, want string) *sale {
		t.Helper()
		sold := s.buy(cust, "10")
		if got := sold.Earned.String(); got != want {
			t.Errorf("purchase %d: %s points, want %s", sold.Seq, got, want)
		}
		return sold
	}
	first := buys(ana, "100")
	buys(ana, "0")
	third := buys(ana, "10")
	s.bring(first, "5")
	buys(ana, "0") // a purchase that is returned in part stands
	s.bring(first, "5")
	buys(ana, "100") // the only use came back, and four purchases stand
	buys(ana, "0")   // the fifth
	buys(ana, "10")  // the sixth
	s.bring(third, "10")
	buys(ana, "10") // the sixth again: one of the two that were given came back
	last := buys(ana, "0")
	s.bring(last, "10")
	s.verified()

	// A purchase that was not given for comes back: the next one is the third again, and that
	// was given for.
	eva := s.customer("eva")
	buys(eva, "100")
	gone := buys(eva, "0")
	buys(eva, "10")
	s.bring(gone, "10")
	buys(eva, "0")
	buys(eva, "0")
	buys(eva, "0")
	buys(eva, "10") // the sixth

	luz, sol := s.customer("luz"), s.customer("sol")
	buys(luz, "100")
	buys(sol, "100")
	s.merged(luz, sol)
	s.verified()
	buys(luz, "10") // the third of both
	buys(luz, "0")
}

// TestNights: with days and hours that pass midnight, what is after midnight is of the day before,
// for the days and for the daily limit, also where the clocks change.
func TestNights(t *testing.T) {
	t.Parallel()
	const fridays = `"days":["Friday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`
	for _, test := range []struct {
		reason, zone, rule string
		want               []string // a local moment and what it earns
	}{
		{"round midnight", "Europe/Madrid", fridays, []string{"2026-03-06T01:00 0", "2026-03-06T21:59 0", "2026-03-06T22:00 1", "2026-03-06T23:59 0",
			"2026-03-07T00:00 0", "2026-03-07T22:00 0", "2026-03-13T23:59 1", "2026-03-14T00:00 0", "2026-03-21T00:00 1", "2026-03-21T01:59 0", "2026-03-28T02:00 0"}},
		{"two nights running", "Europe/Madrid", `"days":["Friday","Saturday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`,
			[]string{"2026-03-06T23:00 1", "2026-03-07T01:00 0", "2026-03-07T22:00 1", "2026-03-08T01:00 0"}},
		{"hours that end at midnight", "Europe/Madrid", `"days":["Friday"],"hours":{"from":"22:00","to":"00:00"}`, []string{"2026-03-06T23:59 1", "2026-03-07T00:00 0"}},
		{"without days a day ends at midnight", "Europe/Madrid", `"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`,
			[]string{"2026-03-06T23:59 1", "2026-03-07T00:00 1", "2026-03-07T01:00 0"}},
		{"an hour is left out: 02:00 is 03:00", "Europe/Madrid", `"days":["Saturday"],"hours":{"from":"22:00","to":"03:00"}`,
			[]string{"2026-03-28T23:00 1", "2026-03-29T01:59 1", "2026-03-29T03:00 0"}},
		{"an hour comes twice, at 03:00", "Europe/Madrid", `"days":["Saturday"],"hours":{"from":"22:00","to":"03:00"},"maxPerCustomerPerDay":2`,
			[]string{"2026-10-24T23:00 1", "2026-10-25T02:30:00+02:00 1", "2026-10-25T02:30:00+01:00 0", "2026-10-25T03:00 0"}},
		{"midnight comes twice", "America/Havana", fridays, []string{"2026-10-30T23:30 1", "2026-10-31T00:30 0"}},
		{"midnight comes twice, on Sunday", "America/Havana", `"days":["Saturday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":2`,
			[]string{"2026-10-31T23:30 1", "2026-11-01T00:30:00-04:00 1", "2026-11-01T00:30:00-05:00 0", "2026-11-01T02:00 0"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{zone: test.zone, program: `"rules":[{"key":"a","name":"a","points":1,` + test.rule + `}]`})
			zone, ana := must(s, func(t *txn) (*time.Location, error) { return t.cfg.zone, nil }), s.customer("ana")
			var given []*sale
			for _, w := range test.want {
				at, want, _ := strings.Cut(w, " ")
				s.clock, _ = parseTime(at, zone)
				sold := s.buy(ana, "1")
				if got := sold.Earned.String(); got != want {
					t.Errorf("%s: %s points, want %s", at, got, want)
				}
				given = append(given, sold)
			}
			s.verified()
			s.apply(setup{zone: test.zone, program: `"rules":[{"key":"a","name":"a","points":1}]`}.document())
			for _, sold := range given { // by the rule that it was sold under
				s.bring(sold, "1")
			}
		})
	}
}

// TestRuleLivesChanged: a rule that is gone, or has other limits by then.
func TestRuleLivesChanged(t *testing.T) {
	t.Parallel()
	const limited = `"rules":[{"key":"a","name":"a","points":10,"maxPerCustomer":1,"budget":25}]`
	s := newShop(t, setup{program: limited})
	ana, eva := s.customer("ana"), s.customer("eva")
	first := s.buy(ana, "1")
	s.apply(setup{program: `"rules":[{"key":"a","name":"a","points":10}]`}.document())
	second := s.buy(ana, "1")
	s.apply(setup{program: `"rules":[{"key":"b","name":"b","points":1}]`}.document())
	s.bring(first, "1")
	s.verified()
	s.apply(setup{program: limited}.document())
	s.bring(second, "1") // which counted for nothing
	third := s.buy(ana, "1")
	if third.Earned != decimalOf(10) {
		t.Errorf("%s points after the use came back", third.Earned)
	}
	if got := s.buy(ana, "1").Earned; got != 0 {
		t.Errorf("%s points for a second use", got)
	}
	if got := s.buy(eva, "1").Earned + s.buy(s.customer("sol"), "1").Earned; got != decimalOf(15) {
		t.Errorf("%s points of a budget of 25 after 10, want 15", got)
	}
	s.verified()
}

// TestBudgetOfOtherDecimals: what is left of a budget is given as points that the program has.
func TestBudgetOfOtherDecimals(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"pointsDecimals":1,"rounding":"Ceil","rules":[{"key":"a","name":"a","budget":1.5,"per":{"amount":1,"points":1}}]`})
	ana := s.customer("ana")
	s.buy(ana, "0.3")
	s.apply(setup{program: `"pointsDecimals":0,"rounding":"Ceil","rules":[{"key":"a","name":"a","budget":2,"per":{"amount":1,"points":1}}]`}.document())
	if got := s.buy(ana, "5").Earned; got != decimalOf(1) {
		t.Errorf("%s of the 1.7 that are left, want 1", got)
	}
}

// TestEveryChanges: another number of purchases begins with what was given for.
func TestEveryChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before, buys, after int
		gave                string // the points of the next purchases
	}{
		{5, 25, 10, "00001000000000100000"},
		{10, 29, 5, "10000100001000010000"},
		{10, 29, 7, "00000100000010000001"},
	} {
		s := newShop(t, setup{program: fmt.Sprintf(`"rules":[{"key":"a","name":"a","points":1,"every":%d}]`, test.before)})
		ana := s.customer("ana")
		for range test.buys {
			s.buy(ana, "1")
		}
		s.apply(setup{program: fmt.Sprintf(`"rules":[{"key":"a","name":"a","points":1,"every":%d}]`, test.after)}.document())
		got := ""
		for range test.gave {
			got += s.buy(ana, "1").Earned.String()
		}
		if got != test.gave {
			t.Errorf("%d after %d of every %d: %s, want %s", test.after, test.buys, test.before, got, test.gave)
		}
	}
}

// TestFlatPointsComeBack: flat points are those of the items that a rule is about.
func TestFlatPointsComeBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","skus":["CAFE"],"minQuantity":3,"points":100}]`})
	ana := s.customer("ana")
	items := []item{{"CAFE", dec("10"), dec("3")}, {"TV", dec("10000"), dec("1")}}
	sold := s.buy(ana, "10030", items...)
	if got := s.bring(sold, "10000", items[1]).Reversed; got != 0 {
		t.Errorf("the television takes back %s", got)
	}
	if got := s.bring(sold, "10", item{"CAFE", dec("10"), dec("1")}).Reversed; got != decimalOf(33) {
		t.Errorf("a coffee of three takes back %s", got)
	}
}

// TestBudgets: what is left of a budget after purchases and returns, to the point.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, program string
		run             func(s *shop, ana id)
		used            string
	}{
		{"a return in part refills its part", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.bring(s.buy(ana, "60"), "20")
		}, "40"},
		{"the other items of a purchase come back: what the rule gave stands", `"rules":[{"key":"a","name":"a","skus":["A"],"budget":100,"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["B"],"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			for range 5 {
				items := []item{{"A", dec("100"), dec("1")}, {"B", dec("10000"), dec("1")}}
				s.bring(s.buy(ana, "10100", items...), "10000", items[1])
			}
			if got := s.standing(ana).Balance; got != decimalOf(100) {
				s.Errorf("a balance of %s by a budget of 100", got)
			}
		}, "100"},
		{"a whole return refills all", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.buy(ana, "30")
			s.bring(s.buy(ana, "60"), "60")
		}, "30"},
		{"parts add up to all of it", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":3,"points":1}},{"key":"b","name":"b","per":{"amount":7,"points":1}}]`, func(s *shop, ana id) {
			sold := s.buy(ana, "100")
			for range 10 {
				s.bring(sold, "10")
			}
		}, "0"},
		{"what a return takes back may be of another rule", `"rules":[{"key":"a","name":"a","skus":["A"],"budget":100,"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["B"],"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			items := []item{{"A", dec("30"), dec("1")}, {"B", dec("30"), dec("1")}}
			s.bring(s.buy(ana, "60", items...), "30", items[1])
		}, "30"},
		{"what a return does not take back stays", `"returns":"Keep","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.bring(s.buy(ana, "60"), "60")
		}, "60"},
		{"points that were spent do not come back to the budget", `"negativeBalance":"Clamp","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			sold := s.buy(ana, "60")
			_, err := s.deduct(ana, "60")
			s.ok(err)
			s.bring(sold, "60")
		}, "60"},
		{"a return that belongs to no purchase refills nothing", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.buy(ana, "60")
			_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("10")})
			s.ok(err)
		}, "60"},
		{"ten-thousandths", `"pointsDecimals":4,"rules":[{"key":"a","name":"a","budget":0.0002,"per":{"amount":1,"points":0.0003}}]`, func(s *shop, ana id) {
			s.buy(ana, "1")
			s.buy(ana, "1")
		}, "0.0002"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, setup{program: test.program})
			ana := s.customer("ana")
			test.run(s, ana)
			used := ask(s, func(t *txn) (decimal, error) {
				return t.sales.budgetUsed(t.cfg.Programs[0], &t.cfg.Programs[0].Rules[0])
			})
			if used.String() != test.used {
				t.Errorf("used %s, want %s", used, test.used)
			}
			s.verified()
		})
	}
}
