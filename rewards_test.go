package main

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func (s *shop) redeem(cust id, reward string) (*redemption, error) {
	return do(s, func(t *txn) (*redemption, error) {
		for _, r := range t.cfg.Rewards {
			if r.Key == reward {
				return t.rewards.redeem(cust, r.ID, "", nil, givenProof{})
			}
		}
		return nil, newError(codeRewardNotFound)
	})
}

func (s *shop) cancel(x *redemption) (*redemption, error) {
	return do(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(x.ID) })
}

// atOnce runs fn on n goroutines at once and counts the outcomes by code.
func atOnce(n int, fn func(i int) error) map[string]int {
	var (
		mu       sync.Mutex
		outcomes = map[string]int{}
		wait     sync.WaitGroup
	)
	for i := range n {
		wait.Go(func() {
			code := codeOf(fn(i))
			mu.Lock()
			defer mu.Unlock()
			outcomes[code]++
		})
	}
	wait.Wait()
	return outcomes
}

// TestRedeemAtOnce shows that parallel redemptions exceed neither stock nor limits.
func TestRedeemAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[
		{"key":"few","program":"club","name":"Few","pointsCost":10,"stock":10},
		{"key":"once","program":"club","name":"Once","pointsCost":10,"limitPerCustomer":3}]`})
	ana, eva := s.customer("ana"), s.customer("eva")
	s.add(ana, "100000", 0)
	s.add(eva, "100000", 0)

	var mu sync.Mutex
	var redeemed []*redemption
	same(t, "200 who want a reward with a stock of 10", atOnce(200, func(i int) error {
		x, err := s.redeem([]id{ana, eva}[i%2], "few")
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			redeemed = append(redeemed, x)
		}
		return err
	}), map[string]int{"": 10, "reward_out_of_stock": 190})
	codes := map[string]bool{}
	for _, x := range redeemed {
		codes[x.Code] = true
	}
	if len(codes) != 10 {
		t.Errorf("10 redemptions have %d codes", len(codes))
	}
	if a, b := s.standing(ana).Balance, s.standing(eva).Balance; a+b != dec("199900") {
		t.Errorf("%s and %s are left", a, b)
	}

	same(t, "100 cancellations of 5 redemptions", atOnce(100, func(i int) error {
		_, err := s.cancel(redeemed[i%5])
		return err
	}), map[string]int{"": 5, "redemption_not_cancellable": 95})
	same(t, "200 who want the 5 that came back", atOnce(200, func(i int) error {
		_, err := s.redeem([]id{ana, eva}[i%2], "few")
		return err
	}), map[string]int{"": 5, "reward_out_of_stock": 195})
	same(t, "100 of two customers who may have 3 each", atOnce(100, func(i int) error {
		_, err := s.redeem([]id{ana, eva}[i%2], "once")
		return err
	}), map[string]int{"": 6, "redemption_limit_reached": 94})
	if a, b := s.standing(ana).Balance, s.standing(eva).Balance; a+b != dec("199840") {
		t.Errorf("%s and %s are left", a, b)
	}
}

// TestUnavailable shows each reason why a reward is unavailable, and the error
// of redeeming it. The clock stands at 2026-03-02 10:00 UTC; the customer
// has 50 points and is in the lower tier.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	const vip = `"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"balance","op":">=","value":60}},
		{"key":"all","name":"All","isActive":true,"rule":{"field":"balance","op":">=","value":0}}]`
	for _, test := range []struct {
		reason  string
		reward  string
		reasons string
		code    string
	}{
		{"nothing speaks against it", `"pointsCost":50`, "", ""},
		{"it is inactive", `"pointsCost":50,"status":"Inactive"`, "Inactive", "reward_unavailable"},
		{"from now on", `"pointsCost":50,"validFrom":"2026-03-02T04:00:00"`, "", ""},
		{"from a moment later", `"pointsCost":50,"validFrom":"2026-03-02T04:00:01"`, "NotYetValid", "reward_unavailable"},
		{"to now", `"pointsCost":50,"validTo":"2026-03-02T10:00:00Z"`, "", ""},
		{"to a moment before", `"pointsCost":50,"validTo":"2026-03-02T09:59:59Z"`, "NoLongerValid", "reward_unavailable"},
		{"to the end of today", `"pointsCost":50,"validTo":"2026-03-02"`, "", ""},
		{"for its tier", `"pointsCost":50,"tiers":["Bronce"]`, "", ""},
		{"for another tier", `"pointsCost":50,"tiers":["Plata","Oro"]`, "TierRequired", "reward_unavailable"},
		{"for a segment it is in", `"pointsCost":50,"segments":["vip","all"]`, "", ""},
		{"for a segment it is not in", `"pointsCost":50,"segments":["vip"]`, "SegmentRequired", "reward_unavailable"},
		{"the last one", `"pointsCost":50,"stock":1`, "", ""},
		{"none is left", `"pointsCost":50,"stock":0`, "OutOfStock", "reward_out_of_stock"},
		{"a ten-thousandth too dear", `"pointsCost":50.0001`, "InsufficientBalance", "insufficient_balance"},
		{"everything at once", `"pointsCost":60,"status":"Inactive","validFrom":"2027-01-01","tiers":["Oro"],"segments":["vip"],"stock":0`,
			"Inactive NotYetValid TierRequired SegmentRequired OutOfStock InsufficientBalance", "reward_unavailable"},
		{"none is left, and it is too dear", `"pointsCost":60,"stock":0`, "OutOfStock InsufficientBalance", "reward_out_of_stock"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: threeTiers, also: `"rewards":[{"key":"r","program":"club","name":"R",` + test.reward + `}],` + vip})
			ana := s.customer("ana")
			s.add(ana, "50", 0)
			got := ask(s, func(t *txn) ([]string, error) {
				c, a, err := accountOf(t, ana)
				if err != nil {
					return nil, err
				}
				return t.rewards.unavailable(t.cfg.Rewards[0], c, a)
			})
			if got := strings.Join(got, " "); got != test.reasons {
				t.Errorf("reasons are %q, want %q", got, test.reasons)
			}
			_, err := s.redeem(ana, "r")
			s.want(err, test.code)
			if balance := s.standing(ana).Balance; (balance == 0) != (err == nil) || err != nil && balance != dec("50") {
				t.Errorf("%s points are left after %v", balance, err)
			}
		})
	}
}

// TestRedeemLimits shows the limits of one customer and of the stock, and how
// a cancellation gives both back.
func TestRedeemLimits(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":10,"stock":3,"limitPerCustomer":2}]`})
	ana, eva, noe := s.customer("ana"), s.customer("eva"), s.customer("noe")
	for _, cust := range []id{ana, eva, noe} {
		s.add(cust, "100", 0)
	}
	redeem := func(cust id, code string) *redemption {
		t.Helper()
		x, err := s.redeem(cust, "r")
		s.want(err, code)
		return x
	}
	first := redeem(ana, "")
	redeem(ana, "")
	redeem(ana, "redemption_limit_reached")
	redeem(eva, "")
	redeem(noe, "reward_out_of_stock")
	redeem(ana, "reward_out_of_stock") // is checked before the limit
	_, err := s.cancel(first)
	s.ok(err)
	redeem(ana, "")
	redeem(ana, "reward_out_of_stock")
	_, err = s.cancel(first)
	s.want(err, "redemption_not_cancellable")
	s.wantStanding(ana, "80 0 100", "two redemptions stand")

	_, err = do(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(id{1}) })
	s.want(err, "redemption_not_found")
	_, err = do(s, func(t *txn) (*redemption, error) { return t.rewards.redeem(ana, id{1}, "", nil, givenProof{}) })
	s.want(err, "reward_not_found")
	_, err = do(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(id{1}, t.cfg.Rewards[0].ID, "", nil, givenProof{})
	})
	s.want(err, "customer_not_found")
}

// TestCancelGivesBack shows that points go back to the lots they came from.
func TestCancelGivesBack(t *testing.T) {
	t.Parallel()
	const reward = `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":60}]`
	s := newShop(t, setup{also: reward})
	ana := s.customer("ana")
	soon, later := s.clock.add(oneDay), s.clock.add(2*oneDay)
	s.add(ana, "20", soon)
	s.add(ana, "30", later)
	s.add(ana, "50", 0)
	redeemed, err := s.redeem(ana, "r")
	s.ok(err)
	s.wantStanding(ana, "40 0 100", "20 and 30 that expire and 10 that do not were taken")
	spent := s.standing(ana)
	cancelled, err := s.cancel(redeemed)
	s.ok(err)
	s.wantStanding(ana, "100 0 100", "all came back, and counts as earned only once")
	same(t, "what expires again", s.standing(ana).Expiring, []expiring{{dec("20"), soon}, {dec("30"), later}})
	if cancelled.Balance != dec("100") || cancelled.status(s.clock) != redemptionCancelled || cancelled.CancelledAt != s.clock {
		t.Errorf("cancelled: %+v", cancelled)
	}

	redeemed, err = s.redeem(ana, "r")
	s.ok(err)
	s.clock = soon
	s.wantStanding(ana, "40 0 100", "what was spent cannot expire")
	same(t, "the moment at which the 20 would have expired", s.standing(ana), spent)
	cancelled, err = s.cancel(redeemed)
	s.ok(err)
	s.wantStanding(ana, "80 0 100", "the 20 have expired meanwhile")
	same(t, "the 30 expire as before", s.standing(ana).Expiring, []expiring{{dec("30"), later}})
	ledger := s.ledger(ana)
	if last := ledger[len(ledger)-1]; last.Category != categoryRefund || last.Amount != dec("40") || last.Redemption != redeemed.ID {
		t.Errorf("the ledger has %s of %s", last.Category, last.Amount)
	}
	if cancelled.Points != dec("60") {
		t.Errorf("the redemption cost %s, want 60", cancelled.Points)
	}

	redeemed, err = s.redeem(ana, "r")
	s.ok(err)
	s.clock = later
	movements := len(s.ledger(ana))
	_, err = s.cancel(redeemed)
	s.ok(err)
	s.wantStanding(ana, "50 0 100", "30 of 60 have expired")
	if got := len(s.ledger(ana)) - movements; got != 1 {
		t.Errorf("%d movements, want one", got)
	}
}

// TestCancelOfExpired cancels a redemption whose points have all expired: only
// the stock comes back.
func TestCancelOfExpired(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":60,"stock":1}]`})
	ana := s.customer("ana")
	s.add(ana, "60", s.clock.add(oneDay))
	redeemed, err := s.redeem(ana, "r")
	s.ok(err)
	s.pass(oneDay)
	_, err = s.cancel(redeemed)
	s.ok(err)
	s.wantStanding(ana, "0 0 60", "all had expired")
	s.add(ana, "60", 0)
	_, err = s.redeem(ana, "r")
	s.ok(err)
}

// TestCancelPaysDebt shows that points given back pay a debt first.
func TestCancelPaysDebt(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"negativeBalance":"Debt","expiry":{"days":30},"rules":[` + onePer1 + `]`,
		also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":80}]`})
	ana := s.customer("ana")
	purchase := s.buy(ana, "100")
	redeemed, err := s.redeem(ana, "r")
	s.ok(err)
	s.bring(purchase, "60")
	s.wantStanding(ana, "-40 0 40", "60 of 20 were taken back")
	_, err = s.cancel(redeemed)
	s.ok(err)
	s.wantStanding(ana, "40 0 40", "80 came back")
	if e := s.standing(ana).Expiring; len(e) != 1 || e[0].Amount != dec("40") {
		t.Errorf("expiring are %v, want 40", e)
	}
	s.pass(31 * oneDay)
	s.wantStanding(ana, "0 0 40", "the rest has expired")
}

// TestInactiveCustomer shows that no write changes an inactive customer's points.
func TestInactiveCustomer(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":10}]`})
	ana := s.customer("ana")
	s.buy(ana, "100") // its return is taken (TestReturnOfInactive)
	redeemed, err := s.redeem(ana, "r")
	s.ok(err)
	must(s, func(t *txn) (*customer, error) {
		return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
	})
	for name, try := range map[string]func() error{
		"add":      func() error { _, err := s.move(ana, &movement{Amount: dec("1"), Category: categoryBonus}); return err },
		"deduct":   func() error { _, err := s.deduct(ana, "1"); return err },
		"redeem":   func() error { _, err := s.redeem(ana, "r"); return err },
		"cancel":   func() error { _, err := s.cancel(redeemed); return err },
		"purchase": func() error { _, err := s.sell(newSale{Customer: ana, Total: dec("1")}); return err },
	} {
		if got := codeOf(try()); got != "customer_inactive" {
			t.Errorf("%s: got %q, want customer_inactive", name, got)
		}
	}
	s.wantStanding(ana, "90 0 100", "reading works")
}

// TestCodes shows the form of redemption codes, and that a code in use is not
// given again.
func TestCodes(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	form := regexp.MustCompile(`^[ACDEFGHJKMNPQRTUWXY34679]{4}-[ACDEFGHJKMNPQRTUWXY34679]{4}$`)
	letters := map[rune]int{}
	for i := range 200 {
		code := ask(s, func(t *txn) (string, error) {
			t.mint = newMint(t.now, seed{byte(i), 1})
			return t.rewards.newCode()
		})
		if !form.MatchString(code) {
			t.Fatalf("code %q", code)
		}
		for _, r := range code {
			letters[r]++
		}
	}
	if len(letters) != len(codeLetters)+1 {
		t.Errorf("%d different characters in 200 codes: %v", len(letters), letters)
	}

	same := func(t *txn) (string, error) {
		t.mint = newMint(t.now, seed{7})
		return t.rewards.newCode()
	}
	first := ask(s, same)
	second, err := do(s, func(t *txn) (string, error) {
		if err := putUint(t.Tx, orgKey('w', t.org).text(first), 1); err != nil {
			return "", err
		}
		code, err := same(t)
		if err != nil {
			return "", err
		}
		return code, t.Delete(orgKey('w', t.org).text(first))
	})
	s.ok(err)
	if second == first || !form.MatchString(second) {
		t.Errorf("%q is taken; got %q", first, second)
	}
}

// TestRedemptionList shows pages of redemptions, newest first.
func TestRedemptionList(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":1}]`})
	ana := s.customer("ana")
	s.add(ana, "100", 0)
	var want []string
	for range 7 {
		x, err := s.redeem(ana, "r")
		s.ok(err)
		want = append([]string{x.Code}, want...)
		s.pass(time.Second)
	}
	for number, part := range map[uint64][]string{1: want[:3], 2: want[3:6], 3: want[6:], 4: nil} {
		var codes []string
		total := ask(s, func(t *txn) (uint64, error) {
			list, total, err := t.rewards.findRedemptions(redemptionFilter{to: never}, page{number, 3})
			codes = nil
			for _, x := range list {
				codes = append(codes, x.Code)
			}
			return total, err
		})
		same(t, fmt.Sprint("page ", number), codes, part)
		same(t, "total", total, uint64(7))
	}
}
