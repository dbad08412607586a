package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each of these is a failure that users of other loyalty systems report, year
// after year. None may happen here.

func TestReturnedGoodsDoNotKeepPoints(t *testing.T) {
	t.Parallel()
	for _, negative := range []string{negativeClamp, negativeDebt} {
		s := newShop(t, setup{program: `"negativeBalance":"` + negative + `","rules":[` + onePer1 + `,
			{"key":"f","name":"f","points":7},{"key":"i","name":"i","perItem":3,"pendingDays":5},{"key":"x","name":"x","multiplier":2}]`})
		ana := s.customer("ana")
		coat := item{"COAT", dec("80"), dec("1")}
		now, later := s.buy(ana, "80", coat), s.buy(ana, "80", coat)
		s.wantStanding(ana, "334 6 340", "two coats")
		s.bring(now, "80", coat)
		s.wantStanding(ana, "167 3 170", "one returned before its last points have come")
		s.pass(6 * oneDay)
		s.bring(later, "80")
		s.wantStanding(ana, "0 0 0", "the other returned after they have")
	}
}

func TestPartialRefundsReverseNoMoreThanWasEarned(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + tenth + `]`})
	ana := s.customer("ana")
	purchase := s.buy(ana, "199") // 19 points
	s.add(ana, "100", 0)
	var reversed decimal
	for range 199 { // each alone would round to nothing, or up to a point
		reversed += s.bring(purchase, "1").Reversed
	}
	if reversed != purchase.Earned {
		t.Errorf("took back %s of %s", reversed, purchase.Earned)
	}
	s.wantStanding(ana, "100 0 100", "what was given for other reasons")
	_, err := s.tryBring(purchase, "0.0001")
	s.want(err, "return_exceeds_purchase")
}

func TestRetriesDoNotCreditTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`}).served()
	ana := s.shop.customer("ana")
	add := "/api/v1/points/customers/" + ana.String() + "/add"
	sale := fmt.Sprintf(`{"customerId":%q,"totalAmount":100,"externalId":"T-1"}`, ana)
	for _, test := range []struct {
		name, path, retryKey, body string
		retryStatus                int
	}{
		{"points", add, "k1", `{"amount":100}`, http.StatusCreated},
		{"sale with a key", "/api/v1/transactions", "k2", fmt.Sprintf(`{"customerId":%q,"totalAmount":100}`, ana), http.StatusCreated},
		{"sale with an externalId", "/api/v1/transactions", "", sale, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := s.shop.standing(ana).Balance
			wantOneApplied(t, 20, test.retryStatus, func() *httptest.ResponseRecorder { return s.post(test.path, test.retryKey, test.body) })
			if got := s.shop.standing(ana).Balance - before; got != dec("100") {
				t.Errorf("credited %s in all, want 100", got)
			}
			s.shop.pass(replayTime*time.Millisecond - time.Millisecond)
			if w := s.post(test.path, test.retryKey, test.body); !replayed(w) {
				t.Error("a retry within 24 hours was carried out")
			}
		})
	}
}

func TestNoDoubleSpend(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":60}]`})
	ana := s.customer("ana")
	s.add(ana, "40", s.clock.add(oneDay))
	s.add(ana, "60", 0)
	spent := make(chan decimal, 100)
	var wait sync.WaitGroup
	for i := range cap(spent) {
		wait.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = s.deduct(ana, "60")
			} else {
				_, err = do(s, func(t *txn) (*redemption, error) {
					return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
				})
			}
			switch codeOf(err) {
			case "":
				spent <- dec("60")
			case "insufficient_balance":
			default:
				t.Error(err)
			}
		})
	}
	wait.Wait()
	close(spent)
	if len(spent) != 1 {
		t.Errorf("60 of 100 points were spent %d times", len(spent))
	}
	s.wantStanding(ana, "40 0 100", "once")
}

func TestExpiryDoesNotEatPointsAlreadySpent(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	tomorrow := s.clock.add(oneDay)
	s.add(ana, "30", 0)
	s.add(ana, "100", tomorrow)
	s.add(ana, "20", tomorrow.add(oneDay))
	spent, err := s.deduct(ana, "90")
	s.ok(err)
	if len(spent.Lots) != 1 || spent.Lots[0].Amount != dec("90") || spent.Lots[0].ExpiresAt != tomorrow {
		t.Errorf("did not spend what expires first: %+v", spent.Lots)
	}
	s.clock = tomorrow - 1
	s.wantStanding(ana, "60 0 150", "nothing has expired")
	s.clock = tomorrow
	s.wantStanding(ana, "50 0 150", "10 that were not spent have expired, no sweep has run")
	s.swept()
	s.wantStanding(ana, "50 0 150", "the sweep has run")
	ledger := s.ledger(ana)
	last := ledger[len(ledger)-1]
	if last.Category != categoryExpiration || last.Amount != dec("-10") || last.CreatedAt != tomorrow {
		t.Errorf("the ledger has %s of %s at %s", last.Category, last.Amount, last.CreatedAt)
	}
	s.pass(2 * oneDay)
	s.wantStanding(ana, "30 0 150", "what never expires is left")
}

func TestTierDoesNotDropBecausePointsWereSpent(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: threeTiers})
	ana := s.customer("ana")
	s.buy(ana, "100")
	_, err := s.deduct(ana, "100")
	s.ok(err)
	s.wantTier(ana, "Plata", "all points were spent")
	s.buy(ana, "400")
	s.wantTier(ana, "Oro", "500 were earned, 400 are left")
}

func TestTierAtItsThreshold(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"pointsDecimals":4,` + threeTiers})
	ana := s.customer("ana")
	s.buy(ana, "99.9999")
	s.wantTier(ana, "Bronce", "a ten-thousandth is missing")
	if sold := s.buy(ana, "0.0001"); sold.TierTo != "Plata" {
		t.Errorf("the sale that meets the threshold tells of tier %q", sold.TierTo)
	}
	s.wantTier(ana, "Plata", "exactly 100")
}

func TestNoFloatNoiseInTotals(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newShop(t, setup{program: `"pointsDecimals":2,"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.buy(ana, "0.1")
	s.buy(ana, "0.2")
	detail := func() string {
		d := ask(s, func(t *txn) (customerDetail, error) {
			c, err := t.customers.get(ana)
			if err != nil {
				return customerDetail{}, err
			}
			return newCustomerDetail(t, c)
		})
		text, err := json.Marshal(map[string]decimal{"balance": d.Balance, "spent": d.TotalSpent})
		s.ok(err)
		return string(text)
	}
	if got, want := detail(), `{"balance":0.3,"spent":0.3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range 997 {
		s.buy(ana, "0.1")
	}
	s.buy(ana, "99999999.99")
	if got, want := detail(), `{"balance":100000099.99,"spent":100000099.99}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDeductThatSucceedsTakesThePoints(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"p","name":"p","points":50,"pendingDays":1}]`})
	ana := s.customer("ana")
	for _, amount := range []string{"10", "0.0001", "25.5"} {
		s.add(ana, amount, 0)
	}
	s.add(ana, "5", s.clock.add(time.Hour))
	for _, amount := range []string{"0.0001", "5", "12", "23.5"} {
		before := s.standing(ana).Balance
		done, err := s.deduct(ana, amount)
		s.ok(err)
		var lots decimal
		for _, l := range done.Lots {
			lots += l.Amount
		}
		after := s.standing(ana).Balance
		if done.Amount != dec(amount) || lots != dec(amount) || done.Balance != after || before-after != dec(amount) {
			t.Errorf("deducted %s: said %s from lots of %s, balance %s; it went from %s to %s", amount, done.Amount, lots, done.Balance, before, after)
		}
	}

	s.wantStanding(ana, "0 0 40.5001", "all was spent")
	refused := func(reason string) {
		t.Helper()
		ledger, before := len(s.ledger(ana)), s.standing(ana)
		_, err := s.deduct(ana, "0.0001")
		if codeOf(err) != "insufficient_balance" {
			t.Errorf("got %v, want insufficient_balance: %s", err, reason)
		}
		same(t, "after a refusal: "+reason, s.standing(ana), before)
		if now := len(s.ledger(ana)); now != ledger {
			t.Errorf("a refusal left %d movements: %s", now-ledger, reason)
		}
	}
	refused("nothing is there")
	s.buy(ana, "1")
	refused("what is there is pending")
	s.add(ana, "5", s.clock.add(time.Hour))
	s.pass(time.Hour)
	refused("what was there has expired")
}

// TestPhoneTypoMakesASecondMember: a mistyped phone is corrected, and the right one then
// finds the member that is there. If a till has enrolled the person anew meanwhile, the
// correction says as whom.
func TestPhoneTypoMakesASecondMember(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"hi","name":"hi","on":"Signup","points":50}]`})
	c := s.counter()
	_, key := s.newKey(keyRequest{})
	visit := func(phone string) (status int, member any) {
		status, answer := c.ask(key, "POST", "/customers", `{"phoneNumber":"`+phone+`","firstName":"Rosa"}`)
		return status, answer["id"]
	}
	correct := func(member any, phone string) (int, map[string]any) {
		return c.ask(key, "PATCH", "/customers/"+member.(string), `{"phoneNumber":"`+phone+`"}`)
	}
	_, rosa := visit("55 8000 0001")
	if status, answer := correct(rosa, "55 8000 0002"); status != http.StatusOK || answer["phoneNumber"] != "+525580000002" {
		t.Fatal(status, answer)
	}
	for _, spelled := range []string{"5580000002", "+52 1 55 8000 0002", "044 55 8000 0002"} {
		if status, member := visit(spelled); status != http.StatusOK || member != rosa {
			t.Errorf("%s: %d, %v is another member than %v", spelled, status, member, rosa)
		}
	}
	if _, answer := c.ask(key, "GET", "/customers/lookup?phone=5580000002", ""); answer["id"] != rosa || answer["balance"] != 50.0 {
		t.Errorf("looked up: %v", answer)
	}
	if status, other := visit("55 8000 0001"); status != http.StatusCreated || other == rosa {
		t.Errorf("whose number it was: %d, %v", status, other)
	}

	_, second := visit("55 8000 0003") // the till was quicker than the correction
	status, answer := correct(rosa, "55 8000 0003")
	context, _ := answer["context"].(map[string]any)
	if status != http.StatusConflict || answer["code"] != "identity_conflict" || answer["field"] != "phoneNumber" || context["customerId"] != second {
		t.Errorf("the number of %v: %d %v", second, status, answer)
	}
}

// TestStaffRaisesOwnPoints: who gives points by hand gives no more than the purse of the
// key has, is named in what is given, and cannot widen the purse.
func TestStaffRaisesOwnPoints(t *testing.T) {
	s := newShop(t, setup{})
	c := s.counter()
	luis := s.customer("luis")
	k, text := s.newKey(keyRequest{Scopes: []string{"points:read", "points:write"}, MaxPointsPerOperation: dec("100"), MaxPointsPerDay: dec("150")})
	add := func(amount, actor string) (int, map[string]any) {
		return c.ask(text, "POST", "/points/customers/"+luis.String()+"/add", `{"amount":`+amount+`,"category":"AdminBonus"}`, "X-Actor", actor)
	}
	if status, answer := add("800", "caja-2/Luis"); status != http.StatusForbidden || answer["code"] != "points_budget_exceeded" {
		t.Errorf("800 points at once: %d %v", status, answer)
	}
	status, answer := add("100", "caja-2/Luis")
	by, _ := answer["createdBy"].(map[string]any)
	if status != http.StatusCreated || by["type"] != "Key" || by["id"] != k.ID.String() || by["actor"] != "caja-2/Luis" {
		t.Errorf("100 points: %d %v", status, answer)
	}
	for range 20 { // bit by bit
		add("7.5", "caja-2/otro")
	}
	s.wantStanding(luis, "145 0 145", "no bit more than the day's 150 allow")
	if status, _ := c.ask(text, "GET", "/audit", ""); status != http.StatusForbidden {
		t.Errorf("the audit log for a key without its scope: %d", status)
	}
	must(s, func(t *txn) (*apiKey, error) {
		t.by = creator{Type: byCommand, Actor: "root"}
		return t.keys.change(keyChange{keyRequest{}, k.ID.String(), []string{"maxPointsPerDay"}})
	})
	if got := s.audited(auditFilter{subject: k.ID.String(), actor: "root"}); len(got) != 1 || !strings.Contains(got[0], `"maxPointsPerDay","before":150,"after":null`) {
		t.Errorf("a wider purse leaves a trace: %s", got)
	}
}

// "late sale gets today's rules": a sale of Tuesday that is sent on Wednesday gets
// Tuesday's double.
func TestLateSaleDoesNotGetTodaysRules(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-04T15:00:00Z", program: `"rules":[` + onePer1 + `,
		{"key":"martes","name":"Martes doble","multiplier":2,"days":["Tuesday"]}]`}).served() // a Wednesday
	ana := s.shop.customer("ana")
	for _, test := range []struct {
		at, figures, reason string
	}{
		{`"2026-03-03T23:59:59.999"`, "200 0 200", "the last of Tuesday"},
		{`"2026-03-04T05:59:59Z"`, "400 0 400", "Tuesday by the shop's clock"},
		{`"2026-03-04T00:00"`, "500 0 500", "Wednesday"},
		{`null`, "600 0 600", "now"},
	} {
		w := s.post("/api/v1/transactions", "", fmt.Sprintf(`{"customerId":%q,"totalAmount":100,"occurredAt":%s}`, ana, test.at))
		if w.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", test.reason, w.Code, w.Body)
		}
		s.shop.wantStanding(ana, test.figures, test.reason)
	}
}

// "offline queue doubles": a till sends its queue again two days later, from a program
// that spells JSON in another way. Nothing is added.
func TestOfflineQueueDoesNotDouble(t *testing.T) {
	t.Parallel()
	skipShort(t)
	queued := sized(10_000, 1_000)
	store := newMemStore()
	t.Cleanup(func() { store.Close() })
	shop := newShopOn(t, store, "2026-03-02T10:00:00Z")
	shop.apply(setup{program: lateProgram, settings: `"externalIds":"Unique"`}.document())
	t.Cleanup(shop.verified)
	s, rnd := shop.served(), rand.New(rand.NewPCG(18, 14))
	customers := []id{s.shop.customer("ana"), s.shop.customer("noe"), s.shop.customer("eva")}
	began := s.shop.clock.add(-10 * oneDay)
	var queue []sentSale
	for i := range queued {
		at := began.add(time.Duration(i) * time.Minute)
		v := sentSale{"customerId": customers[i%3], "totalAmount": 50, "externalId": fmt.Sprint("T-", i), "occurredAt": at,
			"items": []map[string]any{{"sku": "A", "price": 12.5, "quantity": 4}}}
		if i%10 == 9 { // what was sold before comes back
			v["externalId"], v["customerId"], v["type"] = fmt.Sprint("T-", i-1), customers[(i-1)%3], typeReturn
		}
		queue = append(queue, v)
	}
	send := func(status int) {
		for part := range slices.Chunk(queue, maxBatch) {
			var texts []string
			for _, v := range part {
				texts = append(texts, v.text(rnd))
			}
			for i, r := range s.sendBatch(texts) {
				want := status
				if number, _ := strings.CutPrefix(fmt.Sprint(part[i]["externalId"]), "T-"); status == http.StatusOK && part[i]["type"] == nil && strings.HasSuffix(number, "8") {
					want = http.StatusConflict // it was returned whole since: external_id_undone
				}
				if r.Status != want {
					t.Fatalf("sale %s: %+v, want %d", texts[i], r, want)
				}
			}
		}
	}
	send(http.StatusCreated)
	s.shop.pass(2 * oneDay)
	s.shop.swept()
	before := s.shop.entries()
	send(http.StatusOK)
	same(t, "the whole store", s.shop.entries(), before)
}

// TestMergeLosesHistory: nothing that a customer had is gone when it turns out to be another
// one.
func TestMergeLosesHistory(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{
		program: `"default":true,"rules":[` + onePer1 + `,{"key":"late","name":"Late","points":7,"pendingDays":9,"firstPurchase":true}],
			"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}]},{"key":"two","name":"Two"`,
		also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":10,"limitPerCustomer":1}]`,
	})
	ana, twin := s.customer("ana"), s.customer("twin")
	s.buy(ana, "40")
	s.pass(oneDay)
	s.buy(twin, "60")
	s.pass(oneDay)
	last := s.buy(twin, "5").CreatedAt
	must(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(twin, t.cfg.Rewards[0].ID, "", nil, givenProof{})
	})
	must(s, func(t *txn) (any, error) {
		return movePoints(t, twin, &t.cfg.Programs[1].ID, &movement{Amount: dec("3"), Category: categoryBonus}, t.points.credit)
	})
	s.pass(oneDay)
	s.merged(ana, twin)
	s.wantStanding(ana, "95 14 119", "what both had, also what is still to come")
	if tier := s.standing(ana).Tier; tier != "Plata" {
		t.Errorf("both together earned enough for Plata, and the tier is %s", tier)
	}
	d := ask(s, func(t *txn) (customerDetail, error) {
		c, err := t.customers.get(ana)
		if err != nil {
			return customerDetail{}, err
		}
		return newCustomerDetail(t, c)
	})
	if d.TotalSpent != dec("105") || d.TransactionsCount != 3 || d.LastTransactionAt != last || len(d.Programs) != 2 || d.Programs[1].Balance != dec("3") {
		t.Errorf("the detail has %+v", d)
	}
	list := ask(s, func(t *txn) ([]*sale, error) {
		list, _, err := t.saleLists.find(saleFilter{customer: &ana, to: never}, page{1, 10})
		return list, err
	})
	if len(list) != 3 {
		t.Errorf("%d sales, want 3", len(list))
	}
	_, err := do(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
	})
	s.want(err, "redemption_limit_reached")
	if got := s.buy(ana, "1").Earned; got != dec("1") {
		t.Errorf("a purchase earned %s: it is not the first", got)
	}
	if old := s.ledger(twin); old[0].Amount != dec("60") {
		t.Errorf("the ledger of the other one begins with %+v", old[0])
	}
	s.pass(10 * oneDay)
	s.wantStanding(ana, "110 0 120", "what was to come has come")
	eva := s.customer("eva")
	s.merged(eva, ana)
	if got := s.buy(eva, "1").Earned; got != dec("1") {
		t.Errorf("a purchase earned %s: it is the first of this id alone", got)
	}
}

// TestRefundAfterMerge: what was bought and redeemed before a merge can be given back after
// it, and takes or gives the points that it gave or took.
func TestRefundAfterMerge(t *testing.T) {
	t.Parallel()
	for _, negative := range []string{negativeClamp, negativeDebt} {
		s := newShop(t, setup{
			program: `"negativeBalance":"` + negative + `","expiry":{"days":30},"rules":[` + onePer1 + `,{"key":"late","name":"Late","points":7,"pendingDays":9}]`,
			also:    `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":20}]`,
		})
		ana, twin := s.customer("ana"), s.customer("twin")
		bought := s.buy(twin, "50")
		named, err := s.sell(newSale{Customer: twin, Total: dec("30"), ExternalID: "T-1"})
		s.ok(err)
		redeemed := must(s, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(twin, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
		s.merged(ana, twin)
		s.wantStanding(ana, "60 14 94", "what there was")
		bring := func(total string, original *id, externalID string) (*sale, error) {
			return s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec(total), Original: original, ExternalID: externalID})
		}
		back, err := bring("50", &bought.ID, "")
		s.ok(err)
		if back.Reversed != dec("57") {
			t.Errorf("%s: %s points taken back, want 57", negative, back.Reversed)
		}
		s.wantStanding(ana, "10 7 37", "a purchase returned")
		must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(redeemed.ID) })
		s.wantStanding(ana, "30 7 37", "a reward cancelled")
		back, err = bring("30", nil, "T-1")
		s.ok(err)
		if back.Previous != named.ID {
			t.Errorf("%s: the return by its externalId belongs to %s", negative, back.Previous)
		}
		s.wantStanding(ana, "0 0 0", "the other purchase returned")
		_, err = bring("1", &bought.ID, "")
		s.want(err, "return_exceeds_purchase")
		_, err = s.sell(newSale{Type: typeReturn, Customer: twin, Total: dec("1"), Original: &bought.ID})
		s.want(err, "customer_merged")
	}
}
