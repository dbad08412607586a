package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAllTogether plays random histories in which everything that changes a customer's
// points, sales and contact happens in one shop, by way of its API. What each part does by
// itself other tests compare with a model. This one requires what holds for any mixture:
// verify recomputes the whole file and finds no fault, nobody's points are more or less
// than their lots and movements, a merge neither makes nor loses points, a retry gets the
// first answer or none, a dry run says what is then done, and every list has as many
// elements as it says.
func TestAllTogether(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		m := newMixture(t, rnd)
		for range 1 + rnd.IntN(60) {
			m.wait()
			m.act()
			if rnd.IntN(12) == 0 {
				m.check()
			}
			if t.Failed() {
				break
			}
		}
		m.check()
		m.servedShop.shop.ok(m.servedShop.shop.engine.recount(t.Context()))
		m.check()
	})
}

// A mixture is a history of one shop.
type mixture struct {
	servedShop *servedShop
	t          *testing.T
	rnd        *rand.Rand
	doc        []programDoc
	also       string // members of the settings

	people      []id // all that were ever enrolled
	erased      bool // somebody was
	names       int
	sales       []string
	redemptions []redemptionShape
	sent        []sentPost
	posts       int
	log         []string
	told        bool // the log was shown
}

// A sentPost is a POST with an Idempotency-Key, and its answer.
type sentPost struct {
	path, key, body string
	code            int
	answer          string
	at              instant
}

func newMixture(t *testing.T, rnd *rand.Rand) *mixture {
	begin := time.Date(2020+rnd.IntN(6), time.Month(1+rnd.IntN(12)), 1+rnd.IntN(28), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)
	s := newEmptyShop(t, begin.Format(time.RFC3339))
	t.Cleanup(s.verified)
	m := &mixture{t: t, rnd: rnd}
	t.Cleanup(func() {
		if !m.told && t.Failed() {
			m.told = true
			t.Log(strings.Join(m.log, "\n"))
		}
	})
	for i := range 2 + rnd.IntN(2) {
		d := *randomProgram(rnd)
		d.Key, d.Name, d.Default, d.Join = fmt.Sprint("p", i), fmt.Sprint("P", i), i == 0, pick(rnd, joinAll, joinDefault)
		if rnd.IntN(2) == 0 {
			d.Expiry = &expiry{Days: 5 + rnd.IntN(20)} // points of late sales have expired
		}
		for i := range d.Rules {
			d.Rules[i].PendingDays = min(d.Rules[i].PendingDays, 1+rnd.IntN(4))
		}
		d.Rules = append(d.Rules,
			rule{Key: "hi", Name: "Hi", On: onSignup, Points: ptr(randomPoints(rnd, &d, 20))},
			rule{Key: "day", Name: "Day", On: onBirthday, Points: ptr(randomPoints(rnd, &d, 20))},
			rule{Key: "few", Name: "Few", Points: ptr(randomPoints(rnd, &d, 10)), MaxPerCustomerPerDay: 1},
			rule{Key: "tea", Name: "Tea", SKUs: []string{"TEA"}, PerItem: ptr(randomPoints(rnd, &d, 3))},
			rule{Key: "lab", Name: "Lab", Labels: map[string][]string{"pay": {"cash", "card"}}, Points: ptr(randomPoints(rnd, &d, 10))},
			rule{Key: "gift", Name: "Gift", Every: 2 + rnd.IntN(3), Reward: pick(rnd, "v0", "v1")},
			rule{Key: "rise", Name: "Rise", On: onTier, Reward: "v1"})
		if rnd.IntN(2) == 0 {
			d.ExcludeSKUs = []string{"MUG"}
		}
		for i := range d.Rules {
			limitRandomly(rnd, &d, &d.Rules[i])
		}
		m.doc = append(m.doc, d)
	}
	m.servedShop = &servedShop{shop: s}
	m.apply()
	m.servedShop = s.served()
	if rnd.IntN(2) == 0 {
		m.servedShop.shop.engine.sizes.inline = inlineLimits{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
	}
	for range 2 {
		m.enrol()
	}
	return m
}

// limitRandomly gives some rules of purchases limits.
func limitRandomly(rnd *rand.Rand, d *programDoc, r *rule) {
	if r.On != "" && r.On != onPurchase || rnd.IntN(3) > 0 {
		return
	}
	switch rnd.IntN(5) {
	case 0:
		r.MaxPerCustomer = 1 + rnd.IntN(3)
	case 1:
		r.Every = 2 + rnd.IntN(3)
	case 2:
		r.ExcludeSKUs = []string{pick(rnd, "MUG", "T*")}
	case 3:
		if r.Reward == "" {
			r.Budget = ptr(randomPoints(rnd, d, 60))
		}
	case 4:
		if r.Reward == "" {
			r.MaxPoints = ptr(randomPoints(rnd, d, 8))
			r.Category = pick(rnd, "", "Campaign", "Bonus")
		}
	}
}

// apply applies the document.
func (m *mixture) apply() {
	m.also = pick(m.rnd, `"externalIds":"Free"`, `"externalIds":"Unique"`)
	programs, err := json.Marshal(m.doc)
	m.servedShop.shop.ok(err)
	doc := string(setup{settings: m.also, also: `"rewards":[
		{"key":"r0","program":"p0","name":"R0","pointsCost":2},
		{"key":"r1","program":"p1","name":"R1","pointsCost":1,"stock":9,"limitPerCustomer":3},
		{"key":"v0","program":"p0","name":"V0","pointsCost":3,"fulfilment":"Voucher","validDays":5,"limitPerCustomer":4},
		{"key":"v1","program":"p1","name":"V1","pointsCost":1,"fulfilment":"Voucher"},
		{"key":"auto","program":"p0","name":"Auto","pointsCost":25,"fulfilment":"Voucher","validDays":3,"autoIssue":true,"limitPerCustomer":6}],
		"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"totalSpent","op":">=","value":50}}]`}.document())
	start, end := strings.Index(doc, `"programs":`), strings.Index(doc, `,"rewards":`)
	m.servedShop.shop.apply([]byte(doc[:start] + `"programs":` + string(programs) + doc[end:]))
	m.note("applied %s %s", m.also, programs)
}

func (m *mixture) note(format string, args ...any) {
	m.log = append(m.log, m.servedShop.shop.clock.String()+" "+fmt.Sprintf(format, args...))
}

func (m *mixture) wait() {
	switch m.rnd.IntN(4) {
	case 0:
		m.servedShop.shop.pass(time.Duration(m.rnd.Int64N(int64(2 * time.Hour))))
	case 1:
		m.servedShop.shop.pass(time.Duration(m.rnd.Int64N(int64(2 * oneDay))))
	case 2:
		if m.rnd.IntN(4) == 0 {
			m.servedShop.shop.pass(time.Duration(m.rnd.Int64N(int64(60 * oneDay))))
		}
	}
}

// act does one deed.
func (m *mixture) act() {
	deeds := []func(){
		m.enrol, m.enrol, m.sell, m.sell, m.sell, m.sell, m.sell, m.bring, m.bring, m.bring, m.batch, m.batch, m.movePoints, m.movePoints,
		m.redeem, m.redeem, m.use, m.cancel, m.merge, m.merge, m.erase, m.patch, m.importCustomers, m.importSales, m.importPoints, m.sweepNow,
		m.change, m.restart, m.retry, m.retry,
	}
	deeds[m.rnd.IntN(len(deeds))]()
}

// send posts a request under a new Idempotency-Key, now and then without one.
func (m *mixture) send(path, body string) (int, string) {
	m.posts++
	p := sentPost{path: path, key: fmt.Sprint("k", m.posts), body: body, at: m.servedShop.shop.clock}
	if m.rnd.IntN(5) == 0 {
		p.key = ""
	}
	w := m.servedShop.post("/api/v1"+path, p.key, body)
	p.code, p.answer = w.Code, w.Body.String()
	m.note("POST %s %s\n\t%d %s", path, body, p.code, strings.TrimSpace(p.answer))
	if p.code >= 500 {
		m.t.Fatalf("POST %s %s: %d %s", path, body, p.code, p.answer)
	}
	if p.key != "" && p.code < 300 {
		m.sent = append(m.sent, p)
	}
	return p.code, p.answer
}

// rehearsed posts a dry run and then the same for real, which must do what the dry run said.
func (m *mixture) rehearsed(path, body string) (int, string) {
	dry := m.servedShop.post("/api/v1"+path+"?dryRun=true", "", body)
	code, answer := m.send(path, body)
	if (dry.Code < 300) != (code < 300) {
		m.t.Errorf("%s %s: the dry run said %d %s, then it was %d %s", path, body, dry.Code, dry.Body, code, answer)
	}
	if got, want := plain(answer), plain(dry.Body.String()); !reflect.DeepEqual(got, want) {
		same(m.t, "what was done, and the dry run of "+path+" "+body, got, want)
	}
	return code, answer
}

// plain reads an answer without what a dry run does not have.
func plain(answer string) any {
	var v any
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		return answer
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "requestId")
			delete(v, "transactionId") // of a conflict, perhaps with one of the same batch
			if _, isGiven := v["expiresAt"]; isGiven && v["rewardName"] != nil {
				delete(v, "id")
				delete(v, "code")
			}
			if _, isSale := v["totalAmount"]; isSale {
				delete(v, "id")
				delete(v, "originalTransactionId") // may be of the same batch
			}
			if v["status"] == 201.0 {
				v["status"] = 200.0
			}
			for _, e := range v {
				strip(e)
			}
		case []any:
			for _, e := range v {
				strip(e)
			}
		}
	}
	strip(v)
	return v
}

// person is a random customer, perhaps one that is gone.
func (m *mixture) person() id { return pick(m.rnd, m.people...) }

func (m *mixture) enrol() {
	m.names++
	n := m.names
	if m.rnd.IntN(4) == 0 {
		n = 1 + m.rnd.IntN(n) // who is there, or was
	}
	body := fmt.Sprintf(`{"firstName":"N%d","email":"n%d@example.com"%s}`, n, n,
		pick(m.rnd, "", fmt.Sprintf(`,"phoneNumber":"55 1000 %04d"`, n), fmt.Sprintf(`,"externalId":"C%d"`, n), m.birthDate()))
	if code, answer := m.send("/customers", body); code < 300 {
		m.met(answer)
	}
}

func (m *mixture) birthDate() string {
	return fmt.Sprintf(`,"birthDate":"1990-%s"`, m.servedShop.shop.clock.add(time.Duration(m.rnd.IntN(20)-5)*oneDay).time().Format("01-02"))
}

// met notes the customer that an answer shows.
func (m *mixture) met(answer string) {
	var c struct{ ID id }
	m.servedShop.shop.ok(json.Unmarshal([]byte(answer), &c))
	if !slices.Contains(m.people, c.ID) {
		m.people = append(m.people, c.ID)
	}
}

// saleBody is the body of a random sale, with a randomly chosen part of the optional fields.
func (m *mixture) saleBody(kind string, more string) string {
	total := 1 + m.rnd.IntN(40)
	body := fmt.Sprintf(`{"customerId":"%s","type":"%s","totalAmount":%d%s`, m.person(), kind, total, more)
	if m.rnd.IntN(2) == 0 {
		body += fmt.Sprintf(`,"items":[{"sku":"TEA","price":1,"quantity":%d},{"sku":"MUG","price":%d,"quantity":1}]`, 1+m.rnd.IntN(3), total)
	}
	if m.rnd.IntN(3) == 0 {
		body += fmt.Sprintf(`,"occurredAt":"%s"`, m.servedShop.shop.clock.add(-time.Duration(m.rnd.Int64N(int64(20*oneDay)))))
	}
	if m.rnd.IntN(2) == 0 {
		body += fmt.Sprintf(`,"externalId":"E%d"`, m.rnd.IntN(12))
	}
	if m.rnd.IntN(4) == 0 {
		body += `,"comment":"hola"`
	}
	if kind == typePurchase && m.rnd.IntN(3) == 0 {
		body += fmt.Sprintf(`,"labels":{"pay":"%s"}`, pick(m.rnd, "cash", "Card", "chip"))
	}
	return body + "}"
}

func (m *mixture) sell() { m.sold(m.rehearsed("/transactions", m.saleBody(typePurchase, ""))) }

// bring returns something: of a purchase, of an externalId, or of nothing known.
func (m *mixture) bring() {
	m.sold(m.rehearsed("/transactions", m.returnBody()))
}

func (m *mixture) returnBody() string {
	if len(m.sales) == 0 || m.rnd.IntN(4) == 0 {
		return m.saleBody(typeReturn, "")
	}
	var of struct {
		ID, CustomerID id
		TotalAmount    decimal
		Items          []item
		ExternalID     *string
	}
	m.read("/transactions/"+pick(m.rnd, m.sales...), &of)
	total := max(1, of.TotalAmount/decimal(1+m.rnd.IntN(3)))
	body := fmt.Sprintf(`{"customerId":"%s","type":"Return","totalAmount":%s`, of.CustomerID, total)
	if len(of.Items) > 0 && m.rnd.IntN(2) == 0 {
		body += `,"items":[{"sku":"TEA","price":1,"quantity":1}]`
	}
	if of.ExternalID != nil && m.rnd.IntN(2) == 0 {
		body += fmt.Sprintf(`,"externalId":"%s"`, *of.ExternalID)
	} else {
		body += fmt.Sprintf(`,"originalTransactionId":"%s"`, of.ID)
	}
	if m.rnd.IntN(3) == 0 {
		body += fmt.Sprintf(`,"occurredAt":"%s"`, m.servedShop.shop.clock.add(-time.Duration(m.rnd.Int64N(int64(10*oneDay)))))
	}
	if m.rnd.IntN(3) == 0 {
		body += `,"restoreRedemptions":true`
	}
	return body + "}"
}

// sold notes the sale that an answer shows.
func (m *mixture) sold(code int, answer string) {
	var s struct{ ID, Type string }
	if code >= 300 {
		return
	}
	m.servedShop.shop.ok(json.Unmarshal([]byte(answer), &s))
	if s.Type == typePurchase && !slices.Contains(m.sales, s.ID) {
		m.sales = append(m.sales, s.ID)
	}
}

// batch sends several sales, some wrong and some twice, and sometimes all of them again.
func (m *mixture) batch() {
	var rows []string
	for range 1 + m.rnd.IntN(6) {
		switch m.rnd.IntN(7) {
		case 0:
			rows = append(rows, pick(m.rnd, `{}`, `{"customerId":"x","totalAmount":1}`, `{"customerId":"`+m.person().String()+`","totalAmount":-1}`, `7`,
				`{"customerId":"`+m.person().String()+`","totalAmount":1,"occurredAt":"2001-01-01T00:00:00Z"}`))
		case 1:
			rows = append(rows, m.returnBody())
		case 2:
			if len(rows) > 0 {
				rows = append(rows, pick(m.rnd, rows...))
			}
		default:
			rows = append(rows, m.saleBody(typePurchase, ""))
		}
	}
	if len(rows) == 0 {
		return
	}
	body := `{"transactions":[` + strings.Join(rows, ",") + `]}`
	for range 1 + m.rnd.IntN(2) {
		code, answer := m.rehearsed("/transactions/batch", body)
		if code != http.StatusOK {
			m.t.Fatalf("batch: %d %s", code, answer)
		}
		var done struct {
			Results []struct {
				Status      int
				Transaction json.RawMessage
			}
		}
		m.servedShop.shop.ok(json.Unmarshal([]byte(answer), &done))
		for _, r := range done.Results {
			m.sold(r.Status, string(r.Transaction))
		}
	}
}

func (m *mixture) program() *program {
	return pick(m.rnd, ask(m.servedShop.shop, func(t *txn) ([]*program, error) { return t.cfg.Programs, nil })...)
}

func (m *mixture) movePoints() {
	body := fmt.Sprintf(`{"amount":%d,"loyaltyProgramId":"%s","comment":"c"`, 1+m.rnd.IntN(30), m.program().ID)
	verb := pick(m.rnd, "add", "add", "deduct")
	if m.rnd.IntN(3) == 0 {
		body += fmt.Sprintf(`,"reference":"P%d-0"`, m.posts-m.rnd.IntN(3))
	}
	if verb == "add" && m.rnd.IntN(2) == 0 {
		body += fmt.Sprintf(`,"expiresAt":"%s"`, m.servedShop.shop.clock.add(time.Duration(1+m.rnd.Int64N(int64(30*oneDay)))))
	}
	m.send("/points/customers/"+m.person().String()+"/"+verb, body+"}")
}

func (m *mixture) redeem() {
	reward := pick(m.rnd, ask(m.servedShop.shop, func(t *txn) ([]*reward, error) { return t.cfg.Rewards, nil })...)
	code, answer := m.send("/rewards/redeem", fmt.Sprintf(`{"customerId":"%s","productId":"%s","comment":"c"}`, m.person(), reward.ID))
	if code < 300 {
		var x redemptionShape
		m.servedShop.shop.ok(json.Unmarshal([]byte(answer), &x))
		m.redemptions = append(m.redemptions, x)
	}
}

func (m *mixture) use() {
	if len(m.redemptions) > 0 {
		of := ""
		if len(m.sales) > 0 && m.rnd.IntN(2) == 0 {
			of = `,"transactionId":"` + pick(m.rnd, m.sales...) + `"`
		}
		m.send("/redemptions/use", `{"code":"`+pick(m.rnd, m.redemptions...).Code+`"`+of+`}`)
	}
}

func (m *mixture) cancel() {
	if len(m.redemptions) > 0 {
		m.send("/redemptions/"+pick(m.rnd, m.redemptions...).ID.String()+"/cancel", "{}")
	}
}

// held is what customers have in each program, and in all their totals.
func (m *mixture) held(people ...id) map[string]decimal {
	sum := map[string]decimal{}
	for _, cust := range people {
		var d customerDetail
		m.read("/customers/"+cust.String(), &d)
		for _, p := range d.Programs {
			sum["points "+p.LoyaltyProgramID.String()] += p.Balance + p.PendingBalance
			sum["pending "+p.LoyaltyProgramID.String()] += p.PendingBalance
			sum["lifetime "+p.LoyaltyProgramID.String()] += p.LifetimePoints
		}
		sum["spent"] += d.TotalSpent
		sum["sales"] += decimalOf(int(d.TransactionsCount))
	}
	maps.DeleteFunc(sum, func(_ string, d decimal) bool { return d == 0 })
	return sum
}

// autoIssued is what vouchers cost that redeemed themselves, by what held calls it.
func (m *mixture) autoIssued() map[string]decimal {
	return ask(m.servedShop.shop, func(t *txn) (map[string]decimal, error) {
		sum := map[string]decimal{}
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for seq := range n.Redemptions {
			x, err := t.rewards.redemptionAt(seq + 1)
			if err != nil {
				return nil, err
			}
			if x.Gift.Auto {
				sum["points "+t.cfg.programNumber(x.Program).ID.String()] += x.Points
			}
		}
		return sum, nil
	})
}

// heldBefore is held, and what vouchers cost that redeemed themselves since.
func (m *mixture) heldBefore(issued map[string]decimal, people ...id) map[string]decimal {
	sum := m.held(people...)
	for of, points := range m.autoIssued() {
		if points -= issued[of]; points > 0 {
			sum[of] += points
		}
	}
	return sum
}

// merge merges two customers. Both together have the same before and after.
func (m *mixture) merge() {
	into, from := m.person(), m.person()
	if into == from {
		return
	}
	before, issued := m.held(into, from), m.autoIssued()
	if code, _ := m.rehearsed("/customers/"+into.String()+"/merge", `{"from":"`+from.String()+`"}`); code < 300 {
		same(m.t, "what both have", m.heldBefore(issued, into), before)
		if left := m.held(from); len(left) > 0 {
			m.t.Errorf("%s was merged and still has %v", from, left)
		}
	}
}

func (m *mixture) erase() {
	if m.rnd.IntN(2) == 0 {
		cust := m.person()
		before, issued := m.held(cust), m.autoIssued()
		if code, _ := m.send("/customers/"+cust.String()+"/erase", `{"confirm":"ERASE"}`); code < 300 {
			m.erased = true
			same(m.t, "what an erased customer has", m.heldBefore(issued, cust), before)
		}
	}
}

func (m *mixture) patch() {
	n := 1 + m.rnd.IntN(m.names+1)
	body := `{"firstName":"Otra"` + pick(m.rnd, `,"status":"Inactive"`, `,"status":"Active"`, `,"status":"Active"`, m.birthDate(), `,"birthDate":null`,
		fmt.Sprintf(`,"email":"n%d@example.com"`, n), fmt.Sprintf(`,"phoneNumber":"55 1000 %04d"`, n), fmt.Sprintf(`,"externalId":"C%d"`, n), `,"externalId":null`,
		`,"attributes":{"a":1}`) + "}"
	path := "/customers/" + m.person().String()
	w := answerTo(m.servedShop.api, newRequest("PATCH", "/api/v1"+path, m.servedShop.key, body))
	m.note("PATCH %s %s\n\t%d %s", path, body, w.Code, strings.TrimSpace(w.Body.String()))
	if w.Code >= 500 {
		m.t.Fatal(path, body, w.Code, w.Body)
	}
}

// importCustomers imports rows twice: the second time nothing is new.
func (m *mixture) importCustomers() {
	in := importRequest{Org: "cafe-luna", Kind: importCustomers, Program: pick(m.rnd, "", "p0", "p1"), NoWelcome: m.rnd.IntN(2) == 0}
	seen := map[int]bool{}
	for range 1 + m.rnd.IntN(4) {
		m.names++
		n := pick(m.rnd, m.names, 1+m.rnd.IntN(m.names))
		if seen[n] {
			continue // two rows of one customer contradict each other
		}
		seen[n] = true
		row := importRow{FirstName: fmt.Sprint("N", n), Email: fmt.Sprintf("n%d@example.com", n)}
		if m.rnd.IntN(2) == 0 {
			row.Points = strconv.Itoa(m.rnd.IntN(50))
			row.Expires = pick(m.rnd, "", "nunca", m.servedShop.shop.clock.add(time.Duration(1+m.rnd.IntN(40))*oneDay).time().Format(time.DateOnly))
		}
		row.Historic = pick(m.rnd, "", "", strconv.Itoa(m.rnd.IntN(200)))
		row.CreatedAt = pick(m.rnd, "", m.servedShop.shop.clock.add(-400*oneDay).String())
		in.Rows = append(in.Rows, row)
	}
	m.imported(in)
	for _, row := range in.Rows {
		if c := ask(m.servedShop.shop, func(t *txn) (*customer, error) { return t.customers.identify(kindEmail, row.Email) }); c != nil && !slices.Contains(m.people, c.ID) {
			m.people = append(m.people, c.ID)
		}
	}
}

func (m *mixture) importSales() {
	in := importRequest{Org: "cafe-luna", Kind: importSales}
	for i := range 1 + m.rnd.IntN(4) {
		n := 1 + m.rnd.IntN(m.names)
		row := importRow{
			ExternalID: fmt.Sprintf("I%d-%d", m.posts, m.rnd.IntN(i+1)), Email: fmt.Sprintf("n%d@example.com", n), Total: strconv.Itoa(1 + m.rnd.IntN(30)),
			CreatedAt: m.servedShop.shop.clock.add(-time.Duration(m.rnd.Int64N(int64(500 * oneDay)))).String(), Type: pick(m.rnd, typePurchase, typePurchase, typeReturn),
		}
		in.Rows = append(in.Rows, row)
	}
	m.posts++
	m.imported(in)
}

// importPoints gives or takes points by references, some of which were used before.
func (m *mixture) importPoints() {
	in := importRequest{Org: "cafe-luna", Kind: importPoints, Program: pick(m.rnd, "", "p0", "p1")}
	for i := range 1 + m.rnd.IntN(4) {
		in.Rows = append(in.Rows, importRow{
			Reference: fmt.Sprintf("P%d-%d", m.posts-m.rnd.IntN(2), i), Email: fmt.Sprintf("n%d@example.com", 1+m.rnd.IntN(m.names)),
			Points: pick(m.rnd, "5", "7.5", "-3", "-40"), Comment: pick(m.rnd, "", "c"),
		})
	}
	m.posts++
	m.imported(in)
}

func (m *mixture) imported(in importRequest) {
	in.Import = fmt.Sprint("i", len(m.log))
	var first []importOutcome
	for range 2 {
		done, err := m.servedShop.shop.admin().importRows(m.t.Context(), in)
		m.servedShop.shop.ok(err)
		m.note("import %+v\n\t%+v", in, done)
		for i, o := range first {
			if len(o.Faults) == 0 && (done[i].Added || done[i].Opening != 0 || len(done[i].Faults) > 0) {
				m.t.Errorf("again, row %d of %+v: %+v", i, in, done[i])
			}
		}
		first = done
	}
	_, err := m.servedShop.shop.admin().importDone(m.t.Context(), importEnd{Org: in.Org, Import: in.Import})
	m.servedShop.shop.ok(err)
}

func (m *mixture) sweepNow() {
	m.note("sweep")
	m.servedShop.shop.swept()
}

// change applies a changed document, or the program for newcomers.
func (m *mixture) change() {
	p := &m.doc[m.rnd.IntN(len(m.doc))]
	switch m.rnd.IntN(6) {
	case 0:
		p.Join = pick(m.rnd, joinAll, joinDefault)
	case 1:
		p.TierBasis = tierBasis{Metric: pick(m.rnd, metricPoints, metricSpent, metricPurchases), Window: windowLifetime}
	case 2:
		p.TierBasis = tierBasis{Metric: pick(m.rnd, metricPoints, metricSpent, metricPurchases), Window: windowRolling, Months: 1 + m.rnd.IntN(3)}
	case 3:
		p.NegativeBalance = pick(m.rnd, negativeClamp, negativeDebt)
	case 4:
		for i := range m.doc {
			m.doc[i].Default = false
		}
		p.Default = true
	case 5:
		p.Expiry = &expiry{Days: 5 + m.rnd.IntN(20)}
	case 6:
		p.TierBasis = tierBasis{Metric: pick(m.rnd, metricPoints, metricSpent, metricPurchases), Window: windowCalendarYear}
	}
	m.apply()
}

// restart makes a new engine, whose only state is the store.
func (m *mixture) restart() {
	m.note("restart")
	sizes := m.servedShop.shop.engine.sizes
	m.servedShop.shop.engine = newEngine(m.servedShop.shop.engine.store.Store, func() time.Time { return m.servedShop.shop.clock.time() }, m.servedShop.shop.engine.seed)
	m.servedShop.shop.engine.sizes = sizes
	m.servedShop.shop.ok(m.servedShop.shop.engine.open(m.t.Context()))
	m.servedShop.api = newAPIOf(m.servedShop.shop.engine)
}

// retry sends a request again.
func (m *mixture) retry() {
	if len(m.sent) == 0 {
		return
	}
	p := m.sent[m.rnd.IntN(len(m.sent))]
	if p.at.add(oneDay-time.Second) < m.servedShop.shop.clock {
		return
	}
	w := m.servedShop.post("/api/v1"+p.path, p.key, p.body)
	m.note("again %s %s %s\n\t%d %s", p.key, p.path, p.body, w.Code, strings.TrimSpace(w.Body.String()))
	gone := m.erased && strings.Contains(w.Body.String(), `"customer_erased"`) && w.Code == http.StatusConflict
	if !gone && w.Body.String() != p.answer {
		m.t.Errorf("%s %s again: %d %s\nat first %s", p.path, p.body, w.Code, w.Body, p.answer)
	}
}

// What must hold at any time in TestAllTogether.

// read gets an answer.
func (m *mixture) read(path string, v any) {
	m.t.Helper()
	w := m.servedShop.get("/api/v1" + path)
	if w.Code != http.StatusOK {
		m.t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	m.servedShop.shop.ok(json.Unmarshal(w.Body.Bytes(), v))
}

// listed reads all pages of a list, which must have as many elements as they say.
func (m *mixture) listed(path string, filter url.Values) (all []map[string]any) {
	m.t.Helper()
	query := url.Values{"limit": {strconv.Itoa(1 + m.rnd.IntN(40))}}
	maps.Copy(query, filter)
	for page := 1; ; page++ {
		query.Set("page", strconv.Itoa(page))
		var l listShape[map[string]any]
		m.read(path+"?"+query.Encode(), &l)
		all = append(all, l.Data...)
		if l.Meta.HasNextPage {
			continue
		}
		if uint64(len(all)) != l.Meta.Total {
			m.t.Errorf("%s %v has %d elements and says %d", path, filter, len(all), l.Meta.Total)
		}
		return all
	}
}

// check checks all that must hold at any time.
func (m *mixture) check() {
	m.note("check")
	for _, cust := range m.people {
		m.checkLots(cust)
	}
	m.checkSales()
	m.checkRedemptions()
	m.checkCustomers()
	m.servedShop.shop.verified()
	if m.rnd.IntN(2) == 0 {
		m.servedShop.shop.swept()
		m.servedShop.shop.verified()
		for _, cust := range m.people {
			m.checkMovements(cust)
		}
	}
}

// checkLots compares a customer's balances with the lots.
func (m *mixture) checkLots(cust id) {
	ask(m.servedShop.shop, func(t *txn) (any, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		for _, p := range t.cfg.Programs {
			a, err := t.points.account(c, p)
			if err != nil {
				return nil, err
			}
			sum := map[byte]decimal{}
			for _, part := range []byte{partLot, partPending} {
				for l, err := range t.points.lots(a, part) {
					if err != nil {
						return nil, err
					}
					sum[part] += l.Left
				}
			}
			if sum[partLot] != max(a.Balance, 0) || sum[partPending] != a.Pending {
				m.t.Errorf("%s in %s has %s and %s pending, lots of %s and %s", cust, p.Key, a.Balance, a.Pending, sum[partLot], sum[partPending])
			}
		}
		return nil, nil
	})
}

// checkMovements compares a customer's balances, of which all is written down, with the
// sum of movements.
func (m *mixture) checkMovements(cust id) {
	var d customerDetail
	m.read("/customers/"+cust.String(), &d)
	for _, p := range d.Programs {
		sum := 0.0
		path := "/points/customers/" + cust.String() + "/movements"
		all := m.listed(path, url.Values{"loyaltyProgramId": {p.LoyaltyProgramID.String()}})
		for _, v := range all {
			if sign := v["amount"].(float64); v["type"] == typeCredit {
				sum += sign
			} else {
				sum -= sign
			}
		}
		if got := fmt.Sprintf("%.4f", sum); dec(got) != p.Balance+p.PendingBalance {
			m.t.Errorf("%s has %s and %s pending, movements of %s", cust, p.Balance, p.PendingBalance, got)
		}
		m.filtered(path, all, url.Values{"loyaltyProgramId": {p.LoyaltyProgramID.String()}, "type": {typeCredit}}, func(v map[string]any) bool { return v["type"] == typeCredit })
	}
}

// filtered compares a list under a filter with the elements of the whole one that it keeps.
func (m *mixture) filtered(path string, all []map[string]any, filter url.Values, keep func(map[string]any) bool) {
	m.t.Helper()
	ids := func(l []map[string]any) (ids []any) {
		for _, v := range l {
			ids = append(ids, v["id"])
		}
		return ids
	}
	want := slices.DeleteFunc(slices.Clone(all), func(v map[string]any) bool { return !keep(v) })
	got := m.listed(path, filter)
	if filter.Has("to") { // newest first by another date than the whole list
		for _, l := range [][]map[string]any{got, want} {
			slices.SortFunc(l, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
		}
	}
	if got, want := ids(got), ids(want); !slices.Equal(got, want) {
		m.t.Errorf("%s %v: %v\nwant %v", path, filter, got, want)
	}
}

func (m *mixture) checkSales() {
	all := m.listed("/transactions", nil)
	is := func(name string, value string) func(map[string]any) bool {
		return func(v map[string]any) bool { return v[name] == value }
	}
	for _, cust := range m.people {
		m.filtered("/transactions", all, url.Values{"customerId": {cust.String()}}, is("customerId", cust.String()))
		m.filtered("/transactions", all, url.Values{"customerId": {cust.String()}, "type": {typePurchase}},
			func(v map[string]any) bool { return v["customerId"] == cust.String() && v["type"] == typePurchase })
	}
	m.filtered("/transactions", all, url.Values{"type": {typeReturn}}, is("type", typeReturn))
	code := fmt.Sprint("E", m.rnd.IntN(12))
	m.filtered("/transactions", all, url.Values{"externalId": {code}}, is("externalId", code))
	from, to := m.servedShop.shop.clock.add(-20*oneDay).String(), m.servedShop.shop.clock.add(-3*oneDay).String()
	m.filtered("/transactions", all, url.Values{"from": {from}, "to": {to}},
		func(v map[string]any) bool { at := v["createdAt"].(string); return from <= at && at <= to })
	m.filtered("/transactions", all, url.Values{"registeredFrom": {to}, "to": {to}, "type": {typePurchase}},
		func(v map[string]any) bool {
			return v["registeredAt"].(string) >= to && v["createdAt"].(string) <= to && v["type"] == typePurchase
		})
	m.filtered("/transactions", all, url.Values{"search": {"n1"}}, func(v map[string]any) bool {
		mail, _ := v["customerEmail"].(string)
		return strings.Contains(strings.ToLower(v["customerName"].(string)), "n1") || strings.Contains(mail, "n1")
	})
	for _, v := range pick(m.rnd, all, nil) {
		var one map[string]any
		m.read("/transactions/"+v["id"].(string), &one)
		same(m.t, "a sale, and in the list", one, v)
	}
}

func (m *mixture) checkRedemptions() {
	all := m.listed("/redemptions", nil)
	for _, cust := range m.people {
		m.filtered("/redemptions", all, url.Values{"customerId": {cust.String()}}, func(v map[string]any) bool { return v["customerId"] == cust.String() })
	}
	for _, status := range redemptionStatuses {
		m.filtered("/redemptions", all, url.Values{"status": {status}}, func(v map[string]any) bool { return v["status"] == status })
	}
}

func (m *mixture) checkCustomers() {
	all := m.listed("/customers", nil)
	shown := map[string]bool{}
	for _, v := range all {
		shown[v["id"].(string)] = true
	}
	searched := func(v map[string]any) bool {
		var d customerDetail
		m.read("/customers/"+v["id"].(string), &d)
		mail := ""
		if d.Email != nil {
			mail = *d.Email
		}
		return strings.Contains(strings.ToLower(d.Name)+" "+mail, "n1")
	}
	m.filtered("/customers", all, url.Values{"search": {"n1"}}, searched)
	for _, status := range []string{statusActive, statusInactive} {
		m.filtered("/customers", all, url.Values{"status": {status}}, func(v map[string]any) bool { return v["status"] == status })
	}
	for _, cust := range m.people {
		var d customerDetail
		m.read("/customers/"+cust.String(), &d)
		if hidden := d.Status == statusMerged || d.Status == statusErased; hidden == shown[cust.String()] {
			m.t.Errorf("%s is %s, and listed: %t", cust, d.Status, shown[cust.String()])
		}
		var kept struct{ Transactions, Redemptions []map[string]any }
		m.read("/customers/"+cust.String()+"/export", &kept)
	}
	var s statisticsShape
	m.read("/statistics?from=2018-01-01&to="+m.servedShop.shop.clock.time().Format(time.DateOnly)+"&groupBy=month", &s)
	if s.Total.Customers != uint64(len(all)) {
		m.t.Errorf("%d customers in the statistics, %d in the list", s.Total.Customers, len(all))
	}
}
