package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// espresso is a voucher of which there is one.
const espresso = `"rewards":[{"key":"r","program":"club","name":"Espresso","pointsCost":60,"fulfilment":"Voucher","validDays":7,"stock":1}]`

// A voucherSale is a voucher and the purchase that it was used in.
type voucherSale struct {
	shop     *servedShop
	ana      id
	purchase *sale
	voucher  *redemption
}

// newVoucherSale makes a shop in which ana has paid 60 points for a voucher and used it in a
// purchase of 100, which earned 100 points.
func newVoucherSale(t *testing.T, with setup) *voucherSale {
	with.also = espresso
	s := newShop(t, with)
	v := &voucherSale{shop: s.served(), ana: s.customer("ana")}
	s.add(v.ana, "60", 0)
	var err error
	v.voucher, err = s.redeem(v.ana, "r")
	s.ok(err)
	v.purchase = s.buy(v.ana, "100")
	s.pass(time.Second)
	s.ok(s.useIn(v.voucher, v.purchase))
	s.pass(time.Second)
	return v
}

func (s *shop) useIn(x *redemption, sold *sale) error {
	_, err := do(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(x.Code, &sold.ID) })
	return err
}

func (v *voucherSale) returnOf(amount, more string) string {
	return fmt.Sprintf(`{"customerId":"%s","type":"Return","originalTransactionId":"%s","totalAmount":%s%s}`, v.ana, v.purchase.ID, amount, more)
}

// shown is the statuses of the redemptions of a sale, and that they are the voucher.
func (v *voucherSale) shown(sold map[string]any) string {
	v.shop.shop.Helper()
	list, ok := sold["redemptions"].([]any)
	if !ok {
		v.shop.shop.Fatalf("redemptions are %v", sold["redemptions"])
	}
	var told []string
	for _, one := range list {
		x := one.(map[string]any)
		status := fmt.Sprint(x["status"])
		same(v.shop.shop, "a redemption", x, map[string]any{"id": v.voucher.ID.String(), "code": v.voucher.Code, "rewardName": "Espresso", "status": status})
		told = append(told, status)
	}
	return strings.Join(told, " ")
}

// TestSaleRedemptions: a used voucher comes back once its purchase is returned whole, with
// the return that says so or afterwards.
func TestSaleRedemptions(t *testing.T) {
	t.Parallel()
	const restore = `,"restoreRedemptions":true`
	for _, test := range []struct {
		reason  string
		returns []string // amount and the rest of the body; dry: of a dry run
		told    string   // what the returns show
		sale    string   // what the purchase shows then
		cancel  string   // its error
		balance string
	}{
		{"nothing came back", nil, "", "Used", "redemption_not_cancellable", "100 0 160"},
		{"a part came back", []string{"40"}, "-", "Used", "redemption_not_cancellable", "60 0 120"},
		{"all came back", []string{"100"}, "Used", "Used", "", "60 0 60"},
		{"all came back in parts", []string{"40", "60"}, "- Used", "Used", "", "60 0 60"},
		{"with the return", []string{"100" + restore}, "Cancelled", "Cancelled", "redemption_not_cancellable", "60 0 60"},
		{"with the last return", []string{"40" + restore, "60" + restore}, "- Cancelled", "Cancelled", "redemption_not_cancellable", "60 0 60"},
		{"the return says no", []string{`100,"restoreRedemptions":false`}, "Used", "Used", "", "60 0 60"},
		{"a part alone", []string{"40" + restore}, "-", "Used", "redemption_not_cancellable", "60 0 120"},
		{"in a dry run", []string{"dry 100" + restore}, "Cancelled", "Used", "redemption_not_cancellable", "100 0 160"},
		{"a dry run of the return alone", []string{"dry 100"}, "Used", "Used", "redemption_not_cancellable", "100 0 160"},
		{"more than was left", []string{"40", "61" + restore}, "- return_exceeds_purchase", "Used", "redemption_not_cancellable", "60 0 120"},
	} {
		for _, way := range []string{"alone", "batch"} {
			t.Run(test.reason+" "+way, func(t *testing.T) {
				v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`})
				s := v.shop.shop
				var told []string
				for _, r := range test.returns {
					amount, dry := strings.CutPrefix(r, "dry ")
					got := v.send(v.returnOf(amount, ""), way, dry)
					said := "-"
					if got.Error != nil {
						said = fmt.Sprint(got.Error["code"])
					} else if now := v.shown(got.Transaction); now != "" {
						said = now
					}
					told = append(told, said)
					if !dry && got.Error == nil {
						same(t, "the return, read", v.shown(v.read(got.Transaction["id"].(string))), strings.Trim(said, "-"))
					}
					s.pass(time.Second)
				}
				same(t, "returns", strings.Join(told, " "), test.told)
				same(t, "the purchase", v.shown(v.read(v.purchase.ID.String())), test.sale)
				cancelled, err := s.cancel(v.voucher)
				if s.want(err, test.cancel); err == nil {
					same(t, "status", cancelled.status(s.clock), redemptionCancelled)
					same(t, "the purchase then", v.shown(v.read(v.purchase.ID.String())), redemptionCancelled)
				}
				if test.cancel == "" {
					_, err := s.cancel(v.voucher)
					s.want(err, "redemption_not_cancellable")
				}
				s.wantStanding(v.ana, test.balance, test.reason)
				back := s.statusOf(v.voucher) == redemptionCancelled
				_, err = s.redeem(v.ana, "r")
				s.want(err, map[bool]string{true: "", false: "reward_out_of_stock"}[back])
			})
		}
	}
}

func (v *voucherSale) send(body, way string, dry bool) sentResult {
	path, query := "/api/v1/transactions", ""
	if dry {
		query = "?dryRun=true"
	}
	if way == "batch" {
		var answer struct{ Results []sentResult }
		v.shop.shop.ok(json.Unmarshal(v.shop.post(path+"/batch"+query, "", batchOf([]string{body})).Body.Bytes(), &answer))
		return answer.Results[0]
	}
	w := v.shop.post(path+query, "", body)
	r := sentResult{Status: w.Code}
	into := &r.Transaction
	if w.Code >= 300 {
		into = &r.Error
	}
	v.shop.shop.ok(json.Unmarshal(w.Body.Bytes(), into))
	return r
}

func (v *voucherSale) read(saleID string) (sold map[string]any) {
	v.shop.shop.ok(json.Unmarshal(v.shop.get("/api/v1/transactions/"+saleID).Body.Bytes(), &sold))
	return sold
}

// TestRestoreFirst: the voucher's points come back before the return takes its own, which
// had been spent.
func TestRestoreFirst(t *testing.T) {
	t.Parallel()
	v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`})
	s := v.shop.shop
	_, err := s.deduct(v.ana, "80")
	s.ok(err)
	got := v.send(v.returnOf("100", `,"restoreRedemptions":true`), "alone", false)
	same(t, "shortfall, balance", fmt.Sprint(got.Transaction["pointsShortfall"], got.Transaction["balance"]), "20 0")
	s.wantStanding(v.ana, "0 0 60", "20 and 60 of 100 were there")
}

// TestRestoreExpired: what expired meanwhile stays expired, and a voucher whose time has
// passed since it was used comes back all the same.
func TestRestoreExpired(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", `,"restoreRedemptions":true`} {
		v := newVoucherSale(t, setup{program: `"expiry":{"days":5},"rules":[` + onePer1 + `]`})
		s := v.shop.shop
		s.pass(20 * oneDay)
		v.send(v.returnOf("100", more), "alone", false)
		if more == "" {
			_, err := s.cancel(v.voucher)
			s.ok(err)
		}
		same(t, "status", s.statusOf(v.voucher), redemptionCancelled)
		s.wantStanding(v.ana, "0 0 60", "its points had expired")
	}
}

// TestRestoreMerged: the voucher of one customer comes back with the sale of another, once
// they are one.
func TestRestoreMerged(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", `,"restoreRedemptions":true`} {
		s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, also: espresso})
		v := &voucherSale{shop: s.served(), ana: s.customer("ana")}
		eva := s.customer("eva")
		s.add(eva, "60", 0)
		var err error
		v.voucher, err = s.redeem(eva, "r")
		s.ok(err)
		v.purchase = s.buy(v.ana, "100")
		s.want(s.useIn(v.voucher, v.purchase), "transaction_not_found")
		must(s, func(t *txn) (bool, error) { _, _, err := t.merges.merge(v.ana, eva); return true, err })
		s.ok(s.useIn(v.voucher, v.purchase))
		s.verified()
		v.send(v.returnOf("100", more), "alone", false)
		if more == "" {
			_, err := s.cancel(v.voucher)
			s.ok(err)
		}
		same(t, "the purchase", v.shown(v.read(v.purchase.ID.String())), redemptionCancelled)
		s.wantStanding(v.ana, "60 0 60", "eva's points")
		w := v.shop.get("/api/v1/customers/" + v.ana.String() + "/export")
		if w.Code == http.StatusOK && !strings.Contains(w.Body.String(), `"redemptions":[{"id":"`+v.voucher.ID.String()) {
			t.Errorf("exported: %s", w.Body)
		}
	}
}

// TestRestoreScope: whoever cancels redemptions with a return may cancel them.
func TestRestoreScope(t *testing.T) {
	t.Parallel()
	v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`})
	_, v.shop.key = v.shop.shop.newKey(keyRequest{Scopes: []string{"transactions:write", "transactions:read"}})
	for _, way := range []string{"alone", "batch"} {
		got := v.send(v.returnOf("100", `,"restoreRedemptions":true`), way, false)
		same(t, way, fmt.Sprint(got.Status, " ", got.Error["code"]), "403 scope_required")
	}
	same(t, "without it", v.shown(v.send(v.returnOf("100", `,"restoreRedemptions":false`), "alone", false).Transaction), redemptionUsed)
}

// TestRestoreAgain: a return that is sent again is the same one with the field and without,
// and cancels nothing more.
func TestRestoreAgain(t *testing.T) {
	t.Parallel()
	v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`, settings: `"externalIds":"Unique"`})
	at := `,"occurredAt":"` + v.shop.shop.clock.String() + `"`
	first := v.send(v.returnOf("100", at), "alone", false)
	again := v.send(v.returnOf("100", at+`,"restoreRedemptions":true`), "alone", false)
	same(t, "statuses", []int{first.Status, again.Status}, []int{201, 200})
	same(t, "the same return", again.Transaction, first.Transaction)
	same(t, "the voucher", v.shop.shop.statusOf(v.voucher), redemptionUsed)
}

// TestMostVouchers: a purchase takes so many vouchers, and one more changes nothing.
func TestMostVouchers(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "100", 0)
	purchase := s.buy(ana, "10")
	for range mostVouchers {
		x, err := s.redeem(ana, "ever")
		s.ok(err)
		s.ok(s.useIn(x, purchase))
	}
	x, err := s.redeem(ana, "ever")
	s.ok(err)
	before := s.entries()
	s.want(s.useIn(x, purchase), "too_many_redemptions")
	same(t, "entries", s.entries(), before)
	s.ok(s.useIn(x, s.buy(ana, "10")))
	back, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("10"), Original: &purchase.ID, Restore: true})
	s.ok(err)
	same(t, "of the return", len(back.Vouchers), mostVouchers)
	s.wantStanding(ana, "99 0 100", "all but one came back")
}

// TestVerifySeesSaleRedemptions: verify compares what sales and redemptions say of each other.
func TestVerifySeesSaleRedemptions(t *testing.T) {
	t.Parallel()
	v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`})
	s := v.shop.shop
	other := s.buy(v.ana, "10")
	back := s.bring(v.purchase, "100")
	s.verified()
	all := s.entries()
	seen := func(reason string, want bool, k key, record fielded) {
		t.Helper()
		with := slices.Clone(all)
		with[slices.IndexFunc(all, func(e Entry) bool { return bytes.Equal(e.Key, k) })].Value = appendRecord(nil, record)
		if s.seen(with) != want {
			t.Errorf("%s: seen is %v", reason, !want)
		}
	}
	keyOf := func(seq uint64) key { return ask(s, func(t *txn) (key, error) { return t.sales.key(seq), nil }) }
	sold := func(seq uint64, vouchers ...uint64) *sale {
		one := ask(s, func(t *txn) (*sale, error) { return t.sales.at(seq) })
		one.Vouchers = vouchers
		return one
	}
	seq := v.voucher.Seq
	seen("nothing changed", false, keyOf(v.purchase.Seq), sold(v.purchase.Seq, seq))
	seen("the purchase lost it", true, keyOf(v.purchase.Seq), sold(v.purchase.Seq))
	seen("the purchase has it twice", true, keyOf(v.purchase.Seq), sold(v.purchase.Seq, seq, seq))
	seen("the purchase has one that is not", true, keyOf(v.purchase.Seq), sold(v.purchase.Seq, seq, seq+1))
	seen("another purchase has it", true, keyOf(other.Seq), sold(other.Seq, seq))
	seen("the return has another", true, keyOf(back.Seq), sold(back.Seq, seq+1))
	seen("the return has more", true, keyOf(back.Seq), sold(back.Seq, seq, seq))

	x := ask(s, func(t *txn) (*redemption, error) { return t.rewards.redemptionAt(seq) })
	k := ask(s, func(t *txn) (key, error) { return t.rewards.redemptionKey(seq), nil })
	for reason, change := range map[string]func(*redemption){
		"of another sale": func(x *redemption) { x.Sale = other.ID },
		"of no sale":      func(x *redemption) { x.Sale = id{} },
	} {
		wrong := *x
		change(&wrong)
		seen(reason, true, k, &wrong)
	}
	_, err := s.cancel(v.voucher)
	s.ok(err)
	all = s.entries()
	whole := sold(v.purchase.Seq, seq)
	whole.Returned = 0
	seen("cancelled, and the purchase stands", true, keyOf(v.purchase.Seq), whole)
}

// TestVerifySeesCancelledUse: a voucher that was used in a purchase that stands cannot have
// been cancelled.
func TestVerifySeesCancelledUse(t *testing.T) {
	t.Parallel()
	v := newVoucherSale(t, setup{program: `"rules":[` + onePer1 + `]`})
	s := v.shop.shop
	must(s, func(t *txn) (bool, error) {
		x, err := t.rewards.redemption(v.voucher.ID)
		if err != nil {
			return false, err
		}
		c, err := t.customers.get(v.ana)
		if err != nil {
			return false, err
		}
		return true, t.rewards.undoRedemption(c, x)
	})
	report, err := s.verify()
	s.ok(err)
	if !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, "no se devolvió completa") }) {
		t.Errorf("%q", report.Problems)
	}
	s.bring(v.purchase, "100")
	s.verified()
}
