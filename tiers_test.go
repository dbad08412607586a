package main

import (
	"fmt"
	"testing"
	"time"
)

const threeTiers = `"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100},{"name":"Oro","threshold":500}],"rules":[` + onePer1 + `]`

// TestTierThresholds shows that a tier begins exactly at its threshold, for each of the
// three metrics, and that the sale reports the change of tier.
func TestTierThresholds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		metric string
		totals []string
		want   string
	}{
		{"no sale", "PointsEarned", nil, "Bronce"},
		{"a ten-thousandth below", "PointsEarned", []string{"99.9999"}, "Bronce"},
		{"met exactly", "PointsEarned", []string{"100"}, "Plata"},
		{"met exactly by parts that floats do not have", "PointsEarned", []string{"33.3", "33.3", "33.4"}, "Plata"},
		{"a ten-thousandth above", "PointsEarned", []string{"100.0001"}, "Plata"},
		{"a tier passed over", "PointsEarned", []string{"500"}, "Oro"},
		{"a ten-thousandth below the highest", "PointsEarned", []string{"100", "399.9999"}, "Plata"},
		{"amount spent, met exactly", "AmountSpent", []string{"99.9", "0.1"}, "Plata"},
		{"amount spent, below", "AmountSpent", []string{"99.9", "0.0999"}, "Bronce"},
		{"purchases, below", "Purchases", []string{"1000"}, "Bronce"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: `"pointsDecimals":4,"tierBasis":{"metric":"` + test.metric + `","window":"Lifetime"},` + threeTiers})
			ana := s.customer("ana")
			before := "Bronce"
			for _, total := range test.totals {
				sold := s.buy(ana, total)
				now := s.standing(ana).Tier
				told := fmt.Sprint(before, " to ", now)
				if before == now {
					told = " to "
				}
				if got := fmt.Sprint(sold.TierFrom, " to ", sold.TierTo); got != told {
					t.Errorf("the sale of %s tells of a change from %q, want %q", total, got, told)
				}
				before = now
			}
			s.wantTier(ana, test.want, test.reason)
		})
	}

	s := newShop(t, setup{program: `"tierBasis":{"metric":"Purchases","window":"Lifetime"},` + threeTiers})
	ana := s.customer("ana")
	for range 99 {
		s.buy(ana, "1")
	}
	s.wantTier(ana, "Bronce", "99 purchases")
	last := s.buy(ana, "1")
	s.wantTier(ana, "Plata", "100 purchases")
	s.bring(last, "0.5")
	s.wantTier(ana, "Plata", "a purchase counts until it is wholly returned")
	s.bring(last, "0.5")
	s.wantTier(ana, "Bronce", "it is wholly returned")
}

// TestTierNeverFallsForSpending spends points in every way there is, and lets the rest
// expire. The tier stays.
func TestTierNeverFallsForSpending(t *testing.T) {
	t.Parallel()
	for _, window := range []string{`"window":"Lifetime"`, `"window":"Rolling","months":12`} {
		s := newShop(t, setup{
			program: `"expiry":{"days":10},"tierBasis":{"metric":"PointsEarned",` + window + `},` + threeTiers,
			also:    `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":200}]`,
		})
		ana := s.customer("ana")
		s.buy(ana, "500")
		s.wantTier(ana, "Oro", "bought for 500")
		for _, category := range deductCategories {
			_, err := s.move(ana, &movement{Amount: -dec("10"), Category: category})
			s.ok(err)
			s.wantTier(ana, "Oro", "deducted as "+category)
		}
		x := must(s, func(t *txn) (*redemption, error) { return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil) })
		s.wantTier(ana, "Oro", "redeemed")
		must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(x.ID) })
		s.wantTier(ana, "Oro", "redeemed and cancelled")
		if s.standing(ana).Figure != dec("500") {
			t.Errorf("what was given back counts again: %s", s.standing(ana).Figure)
		}
		s.pass(11 * oneDay)
		s.swept()
		s.wantStanding(ana, "0 0 500", "all has expired")
		s.wantTier(ana, "Oro", "all has expired")
	}
}

// TestTierWindow shows how a rolling window moves. A customer's tier is right without the
// sweep; the sweep brings the counts of customers by tier up to date.
func TestTierWindow(t *testing.T) {
	t.Parallel()
	const rolling = `"tierBasis":{"metric":"PointsEarned","window":"Rolling","months":1},` + threeTiers
	counts := func(s *shop) string {
		n := ask(s, func(t *txn) (list []uint64, err error) {
			for _, tier := range t.cfg.Programs[0].Tiers {
				n, _, err := getUint(t.Tx, t.stats.tierCountKey(t.cfg.Programs[0].Number, tier.Name))
				if err != nil {
					return nil, err
				}
				list = append(list, n)
			}
			return list, nil
		})
		return fmt.Sprint(n)
	}
	for _, test := range []struct {
		reason  string
		bought  string // when the customer buys for 100 points; Mexico City is at UTC-6
		last    string // the last moment at which they count
		besides string // when for 400 more, which still count after last; empty: never
	}{
		{"the same date a month later counts whole", "2026-03-02T18:00:00Z", "2026-04-03T05:59:59.999Z", ""},
		{"from the first moment of the date", "2026-03-02T06:00:00Z", "2026-04-03T05:59:59.999Z", ""},
		{"to its last", "2026-03-03T05:59:59Z", "2026-04-03T05:59:59.999Z", ""},
		{"the month may be too short for the date", "2026-01-31T18:00:00Z", "2026-03-01T05:59:59.999Z", ""},
		{"or not, in a leap year", "2028-01-29T18:00:00Z", "2028-03-01T05:59:59.999Z", ""},
		{"what was bought later stays", "2026-03-02T18:00:00Z", "2026-04-03T05:59:59.999Z", "2026-03-03T18:00:00Z"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{at: test.bought, program: rolling})
			ana := s.customer("ana")
			s.buy(ana, "100")
			before, after, countsBefore, countsAfter := "Plata", "Bronce", "[0 1 0]", "[1 0 0]"
			if test.besides != "" {
				s.setClock(test.besides)
				s.buy(ana, "400")
				before, after, countsBefore, countsAfter = "Oro", "Plata", "[0 0 1]", "[0 1 0]"
			}
			s.setClock(test.last)
			s.wantTier(ana, before, "the last moment of the window")
			s.swept()
			s.wantTier(ana, before, "the sweep of the last moment")
			if got := counts(s); got != countsBefore {
				t.Errorf("customers by tier are %s, want %s", got, countsBefore)
			}
			s.pass(time.Millisecond)
			s.wantTier(ana, after, "the window is over, no sweep has run")
			s.swept()
			s.wantTier(ana, after, "the sweep has run")
			if got := counts(s); got != countsAfter {
				t.Errorf("customers by tier are %s, want %s", got, countsAfter)
			}
			if next := s.buy(ana, "500"); next.TierFrom != after || next.TierTo != "Oro" {
				t.Errorf("the next sale tells of a change from %q to %q", next.TierFrom, next.TierTo)
			}
		})
	}
}

// TestTierOfReturn shows that a return lowers the tier's figure as of the day of its
// purchase.
func TestTierOfReturn(t *testing.T) {
	t.Parallel()
	for _, metric := range []string{metricPoints, metricSpent} {
		s := newShop(t, setup{program: `"tierBasis":{"metric":"` + metric + `","window":"Rolling","months":1},` + threeTiers})
		ana := s.customer("ana")
		old := s.buy(ana, "450")
		s.pass(20 * oneDay)
		s.buy(ana, "100")
		s.wantTier(ana, "Oro", "550 in the window")
		back := s.bring(old, "60")
		s.wantTier(ana, "Plata", "490 in the window")
		if back.TierFrom != "Oro" || back.TierTo != "Plata" {
			t.Errorf("the return tells of a change from %q to %q", back.TierFrom, back.TierTo)
		}
		s.pass(15 * oneDay)
		s.wantTier(ana, "Plata", "100 in the window: the old purchase and its return have left it together")
		s.bring(old, "390")
		s.wantTier(ana, "Plata", "the return of what has left the window changes nothing in it")
	}
}

// TestTierCalendarYear shows until when a tier holds that was reached in a calendar year, with no
// write in between, and what is missing to the next one. Rows are what a customer does, in order.
func TestTierCalendarYear(t *testing.T) {
	t.Parallel()
	const program = `"returns":"Reverse","negativeBalance":"Debt","tierBasis":{"metric":"PointsEarned","window":"CalendarYear"},` + threeTiers
	type step struct {
		at     string // local time
		buys   string
		brings string // of the first purchase
		late   string // local time at which the purchase happened, if not at
		want   string // tier, and what is missing to the next
	}
	for _, test := range []struct {
		reason string
		steps  []step
	}{
		{"holds to 31 December of the next year", []step{
			{at: "2025-01-01T00:00:00", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
		{"also what was reached in the year's last moment", []step{
			{at: "2025-12-31T23:59:59.999", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
		{"a year later for the first moment of the next", []step{
			{at: "2026-01-01T00:00:00", buys: "500", want: "Oro"},
			{at: "2027-12-31T23:59:59.999", want: "Oro"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"earned anew", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", buys: "500", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Oro"},
			{at: "2027-12-31T23:59:59.999", want: "Oro"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"earned anew in part", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-06-01T12:00:00", buys: "120", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Plata 500"}}},
		{"two years are not added up, and the next tier is of this year alone", []step{
			{at: "2025-06-01T12:00:00", buys: "400", want: "Plata 100"},
			{at: "2026-01-01T00:00:00", want: "Plata 500"},
			{at: "2026-06-01T12:00:00", buys: "300", want: "Plata 200"},
			{at: "2026-07-01T12:00:00", buys: "200", want: "Oro"}}},
		{"several years without a look", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2031-06-01T12:00:00", buys: "100", want: "Plata 400"}}},
		{"a return takes away from the year of its purchase", []step{
			{at: "2025-12-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-01-10T12:00:00", buys: "150", want: "Oro"},
			{at: "2026-01-11T12:00:00", brings: "100", want: "Plata 350"},
			{at: "2026-01-12T12:00:00", brings: "400", want: "Plata 350"},
			{at: "2027-12-31T23:59:59.999", want: "Plata 500"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"a return of what no longer counts changes nothing", []step{
			{at: "2025-12-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2027-01-10T12:00:00", buys: "100", want: "Plata 400"},
			{at: "2027-01-11T12:00:00", brings: "500", want: "Plata 400"}}},
		{"a sale that comes late counts in the year in which it happened", []step{
			{at: "2025-12-01T12:00:00", buys: "300", want: "Plata 200"},
			{at: "2026-01-10T12:00:00", buys: "200", late: "2025-12-31T23:59:59.999", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
	} {
		for _, zone := range []string{"America/Mexico_City", "Asia/Tokyo", "Pacific/Kiritimati", "America/Sao_Paulo"} {
			t.Run(test.reason+" in "+zone, func(t *testing.T) {
				place, err := time.LoadLocation(zone)
				if err != nil {
					t.Fatal(err)
				}
				moment := func(local string) instant {
					at, err := time.ParseInLocation("2006-01-02T15:04:05", local, place)
					if err != nil {
						t.Fatal(err)
					}
					return instantOf(at)
				}
				s := newShop(t, setup{at: "2024-12-30T00:00:00Z", zone: zone, settings: `"maxLateDays":60`, program: program})
				ana := s.customer("ana")
				var first *sale
				for _, step := range test.steps {
					s.clock = moment(step.at)
					switch {
					case step.buys != "":
						in := newSale{Customer: ana, Total: dec(step.buys)}
						if step.late != "" {
							in.OccurredAt = moment(step.late)
						}
						sold, err := s.sell(in)
						s.ok(err)
						if first == nil {
							first = sold
						}
					case step.brings != "":
						s.bring(first, step.brings)
					}
					for _, when := range []string{"before", "after"} {
						got := ask(s, func(t *txn) (string, error) {
							c, err := t.customers.get(ana)
							if err != nil {
								return "", err
							}
							d, err := newCustomerDetail(t, c)
							if err != nil {
								return "", err
							}
							if d.PointsToNextTier == nil {
								return *d.TierName, nil
							}
							return fmt.Sprint(*d.TierName, " ", *d.PointsToNextTier), nil
						})
						if got != step.want {
							t.Fatalf("%s the sweep of %s: %s, want %s", when, step.at, got, step.want)
						}
						if when == "before" {
							s.verified()
							s.swept()
						}
					}
					s.verified()
				}
			})
		}
	}
}

// TestTiersChanged shows that applying a document with other tiers or another basis gives
// every customer the tier that it now belongs to.
func TestTiersChanged(t *testing.T) {
	t.Parallel()
	with := func(basis, tiers string) setup {
		return setup{program: `"tierBasis":` + basis + `,"tiers":[` + tiers + `],"rules":[` + tenth + `]`}
	}
	lifetime := `{"metric":"PointsEarned","window":"Lifetime"}`
	two := `{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}`
	s := newShop(t, with(lifetime, two))
	var customers []id
	for i := range 70 { // more than one batch
		cust := s.customer(fmt.Sprint("c", i))
		customers = append(customers, cust)
		returned := s.buy(cust, fmt.Sprint(1000+i)) // 100 points
		s.pass(oneDay)
		s.buy(cust, "500") // 50 points
		s.bring(returned, "500")
	}
	for _, test := range []struct {
		reason, basis, tiers string
		first, last          string // tiers of the first and the last customer, 70 days apart
	}{
		{"as it was", lifetime, two, "Plata", "Plata"},
		{"another threshold", lifetime, `{"name":"Bronce","threshold":0},{"name":"Plata","threshold":104}`, "Bronce", "Plata"},
		{"other names", lifetime, `{"name":"A","threshold":0},{"name":"B","threshold":104}`, "A", "B"},
		{"a rolling window", `{"metric":"PointsEarned","window":"Rolling","months":1}`, two, "Bronce", "Plata"},
		{"a longer one", `{"metric":"PointsEarned","window":"Rolling","months":12}`, two, "Plata", "Plata"},
		{"another metric", `{"metric":"AmountSpent","window":"Rolling","months":1}`, `{"name":"A","threshold":0},{"name":"B","threshold":1040}`, "A", "B"},
		{"purchases", `{"metric":"Purchases","window":"Lifetime"}`, `{"name":"A","threshold":0},{"name":"B","threshold":2}`, "B", "B"},
		{"calendar years", `{"metric":"AmountSpent","window":"CalendarYear"}`, `{"name":"A","threshold":0},{"name":"B","threshold":1035}`, "A", "B"},
		{"no tiers", lifetime, ``, "", ""},
		{"back again", lifetime, two, "Plata", "Plata"},
	} {
		s.apply(with(test.basis, test.tiers).document())
		s.wantTier(customers[0], test.first, test.reason)
		s.wantTier(customers[69], test.last, test.reason)
		s.verified()
	}
}
