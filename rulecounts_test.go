package main

import "testing"

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
		{"by item, the part of the rule in what is taken back", `"rules":[{"key":"a","name":"a","skus":["A"],"budget":100,"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["B"],"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			items := []item{{"A", dec("30"), dec("1")}, {"B", dec("30"), dec("1")}}
			s.bring(s.buy(ana, "60", items...), "30", items[1])
		}, "15"},
		{"what a return does not take back stays", `"returns":"Keep","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.bring(s.buy(ana, "60"), "60")
		}, "60"},
		{"points that were spent come back to the budget", `"negativeBalance":"Clamp","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			sold := s.buy(ana, "60")
			_, err := s.deduct(ana, "60")
			s.ok(err)
			s.bring(sold, "60")
		}, "0"},
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
