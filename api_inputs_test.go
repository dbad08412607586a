package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
)

// A sentSale is the members of a sale that a till sends.
type sentSale map[string]any

// text is the sale as JSON, its members in any order.
func (v sentSale) text(rnd *rand.Rand) string {
	var members []string
	for name, value := range v {
		text, _ := json.Marshal(value)
		members = append(members, fmt.Sprintf("%q: %s", name, text))
	}
	slices.Sort(members)
	rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ", ") + "}"
}

// batchOf is a body of POST /transactions/batch.
func batchOf(texts []string) string { return `{"transactions": [` + strings.Join(texts, ",") + `]}` }

// A sentResult is what came of a sale of a batch, or of one that was sent alone.
type sentResult struct {
	Status      int
	Transaction map[string]any
	Error       map[string]any
}

// sendBatch sends sales as one batch.
func (s *servedShop) sendBatch(texts []string) []sentResult {
	s.shop.Helper()
	w := s.post("/api/v1/transactions/batch", "", batchOf(texts))
	var answer struct{ Results []sentResult }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || len(answer.Results) != len(texts) {
		s.shop.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	return answer.Results
}

// sendOne sends a sale alone.
func (s *servedShop) sendOne(text string) (r sentResult) {
	s.shop.Helper()
	w := s.post("/api/v1/transactions", "", text)
	r.Status = w.Code
	into := &r.Transaction
	if w.Code >= 300 {
		into = &r.Error
	}
	s.shop.ok(json.Unmarshal(w.Body.Bytes(), into))
	return r
}

// queued makes a sale at random, such as a till may have kept; few are at fault.
func (s *servedShop) queued(rnd *rand.Rand, customers []id, last int) sentSale {
	number := last
	if rnd.IntN(4) == 0 {
		number = rnd.IntN(last + 1)
	}
	v := sentSale{
		"customerId": pick(rnd, customers...), "totalAmount": 1 + rnd.IntN(30), "externalId": fmt.Sprint("T-", number),
		"type": pick(rnd, typePurchase, typePurchase, typePurchase, typeReturn),
	}
	if rnd.IntN(2) == 0 {
		v["occurredAt"] = s.shop.clock.add(-time.Duration(rnd.Int64N(int64(pick(rnd, time.Hour, 20*oneDay, 40*oneDay)))))
	}
	if rnd.IntN(3) == 0 {
		v["items"] = []map[string]any{{"sku": pick(rnd, "A", "B"), "price": 2.5, "quantity": 1 + rnd.IntN(2)}}
	}
	switch rnd.IntN(20) {
	case 0:
		v["totalAmount"] = 0
	case 1:
		v["customerId"] = "nobody"
	case 2:
		delete(v, "externalId")
	}
	return v
}

// TestBatchEqualsSingles sends the same to two shops: to one each sale alone, to the other
// in batches. Answers, ledgers and statistics are equal but for ids.
func TestBatchEqualsSingles(t *testing.T) {
	t.Parallel()
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		with := setup{program: lateProgram, settings: `"externalIds":"` + pick(rnd, "Free", "Unique") + `"`}
		alone, together := newShop(t, with).served(), newShop(t, with).served()
		var customers [2][]id
		for i, s := range []*servedShop{alone, together} {
			customers[i] = []id{s.shop.customer("ana"), s.shop.customer("noe")}
		}
		for round := range 4 {
			var queue []sentSale
			for i := range 1 + rnd.IntN(40) {
				queue = append(queue, alone.queued(rnd, []id{{0}, {1}}, 100*round+i))
			}
			order := rnd.Uint64()
			texts := func(customers []id) (list []string) {
				same := rand.New(rand.NewPCG(order, 0))
				for _, v := range queue {
					if of, ok := v["customerId"].(id); ok {
						v = mapWith(v, "customerId", customers[of[0]])
					}
					list = append(list, v.text(same))
				}
				return list
			}
			var one []sentResult
			for _, text := range texts(customers[0]) {
				one = append(one, alone.sendOne(text))
			}
			many := together.sendBatch(texts(customers[1]))
			for i := range one {
				same(t, fmt.Sprint("sale ", i), many[i].withoutIDs(), one[i].withoutIDs())
			}
			for i := range customers[0] {
				same(t, "ledger", together.figures(customers[1][i]), alone.figures(customers[0][i]))
				same(t, "standing", together.shop.standing(customers[1][i]), alone.shop.standing(customers[0][i]))
			}
			same(t, "statistics", together.shop.periods(together.shop.clock.add(-50*oneDay)), alone.shop.periods(alone.shop.clock.add(-50*oneDay)))
			wait := time.Duration(rnd.Int64N(int64(10 * oneDay)))
			alone.shop.pass(wait)
			together.shop.pass(wait)
		}
	})
}

func mapWith(v sentSale, name string, value any) sentSale {
	changed := sentSale{name: value}
	for other, kept := range v {
		if other != name {
			changed[other] = kept
		}
	}
	return changed
}

// withoutIDs drops what differs from one shop to another.
func (r sentResult) withoutIDs() sentResult {
	for _, members := range []map[string]any{r.Transaction, r.Error} {
		for _, name := range []string{"id", "customerId", "originalTransactionId", "createdBy", "appliedRules", "requestId"} {
			delete(members, name)
		}
		if context, ok := members["context"].(map[string]any); ok {
			delete(context, "transactionId")
		}
	}
	return r
}

// figures are the customer's movements without ids.
func (s *servedShop) figures(cust id) (list []string) {
	s.shop.Helper()
	for _, m := range s.shop.ledger(cust) {
		list = append(list, fmt.Sprint(m.Category, m.Amount, m.Balance, m.Pending, m.AvailFrom, m.Expires, m.CreatedAt, m.By.Actor))
	}
	return list
}

// TestBatchTwins sends a queue from many tills at once: it is registered once.
func TestBatchTwins(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, settings: `"externalIds":"Unique"`}).served()
	ana := s.shop.customer("ana")
	rnd := rand.New(rand.NewPCG(1, 1))
	var bodies []string
	for range 16 {
		var texts []string
		for i := range 10 {
			texts = append(texts, sentSale{"customerId": ana, "totalAmount": 1, "externalId": strconv.Itoa(i)}.text(rnd))
		}
		bodies = append(bodies, batchOf(texts))
	}
	var wait sync.WaitGroup
	for _, body := range bodies {
		wait.Go(func() {
			if w := s.post("/api/v1/transactions/batch", "", body); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "error") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wait.Wait()
	s.shop.wantStanding(ana, "10 0 10", "each sale once")
}

// TestBatchLong: a batch of long sales has more members than another body may have, and
// no more than 1 MiB.
func TestBatchLong(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`}).served()
	ana := s.shop.customer("ana")
	items := strings.TrimSuffix(strings.Repeat(`{"sku":"A","price":1,"quantity":1},`, 200), ",")
	text := fmt.Sprintf(`{"customerId":%q,"totalAmount":1,"items":[%s]}`, ana, items)
	for i, r := range s.sendBatch(slices.Repeat([]string{text}, 100)) {
		if r.Status != http.StatusCreated {
			t.Fatalf("sale %d: %+v", i, r)
		}
	}
	if w := s.post("/api/v1/transactions/batch", "", batchOf(slices.Repeat([]string{text}, 99))+strings.Repeat(" ", maxBody)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("more than 1 MiB: %d", w.Code)
	}
	many := fmt.Sprintf(`{"customerId":%q,"totalAmount":1,"x":[%s]}`, ana, strings.TrimSuffix(strings.Repeat("0,", maxBatchMembers), ","))
	if w := s.post("/api/v1/transactions/batch", "", batchOf([]string{many})); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "invalid_json") {
		t.Errorf("too many members: %d", w.Code)
	}
}

// BenchmarkBatch registers sales on a file, each flushed to the disk before its answer:
// alone, one after the other, and in batches of 100. ×singles is how many times the sales
// a second of the former the latter reach. Less than 3 is a failure.
func BenchmarkBatch(b *testing.B) {
	store, err := openBolt(filepath.Join(b.TempDir(), "store"), disk.Options{Dense: denseTables})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	s := newShopOn(b, store, "2026-03-10T18:00:00Z") // a Tuesday
	s.apply(setup{program: busyPrograms, settings: `"externalIds":"Unique"`}.document())
	till := s.served()
	customers := []id{}
	for i := range 100 {
		customers = append(customers, s.customer(fmt.Sprint("c", i)))
	}
	sent := 0
	next := func(n int) (texts []string) {
		for range n {
			sent++
			texts = append(texts, fmt.Sprintf(`{"customerId":%q,"totalAmount":920,"externalId":"T-%d","occurredAt":"2026-03-10T11:00:00-06:00",`+
				`"items":[{"sku":"CAFE-250","price":185,"quantity":1},{"sku":"GRANO-500","price":320,"quantity":2},{"sku":"TAZA","price":95,"quantity":1}]}`,
				customers[sent%len(customers)], sent))
		}
		return texts
	}
	check := func(w *httptest.ResponseRecorder, want int) {
		if w.Code != want {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	var alone, together time.Duration
	for b.Loop() {
		s.pass(time.Minute) // for the limit of the key
		texts := next(100)
		began := time.Now()
		for _, text := range texts {
			check(till.post("/api/v1/transactions", "", text), http.StatusCreated)
		}
		alone += time.Since(began)
		body := batchOf(next(100))
		began = time.Now()
		check(till.post("/api/v1/transactions/batch", "", body), http.StatusOK)
		together += time.Since(began)
	}
	ratio := float64(alone) / float64(together)
	b.ReportMetric(ratio, "×singles")
	b.ReportMetric(100*float64(b.N)/together.Seconds(), "sales/s")
	if ratio < 3 {
		b.Errorf("a batch of 100 stores at %.1f × the rate of singles, less than 3 ×", ratio)
	}
}

// TestBatchRehearsal: a dry run of a batch takes a sale that is in it twice for one, as the
// batch itself does.
func TestBatchRehearsal(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"Free", "Unique"} {
		s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, settings: `"externalIds":"` + mode + `"`}).served()
		ana := s.shop.customer("ana")
		row := `{"customerId":"` + ana.String() + `","totalAmount":7,"externalId":"T-1"}`
		for _, path := range []string{"/api/v1/transactions/batch?dryRun=true", "/api/v1/transactions/batch"} {
			var got struct{ Results []sentResult }
			s.shop.ok(json.Unmarshal(s.post(path, "", batchOf([]string{row, row})).Body.Bytes(), &got))
			for i, r := range got.Results {
				if balance := fmt.Sprint(r.Transaction["balance"]); balance != "7" {
					t.Errorf("%s %s: after row %d the balance is %s", mode, path, i, balance)
				}
			}
		}
		s.shop.wantStanding(ana, "7 0 7", "one sale")
	}
}
