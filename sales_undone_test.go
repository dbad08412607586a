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

	"github.com/google/go-cmp/cmp"
)

const undoneRules = `"rules":[` + onePer1 + `,{"key":"first","name":"First","points":1000,"firstPurchase":true},
	{"key":"daily","name":"Daily","points":10000,"maxPerCustomerPerDay":1},{"key":"back","name":"Back","points":100000,"segments":["away"]}]`

const undoneSegment = `"segments":[{"key":"away","name":"Away","isActive":true,"rule":{"all":[
	{"field":"lastTransactionAt","op":">","value":10},{"field":"lastTransactionAt","op":"<","value":1000}]}}]`

// TestUndoneLimits: what limits count forgets a purchase that is returned whole.
func TestUndoneLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		do     func(s *shop, ana id)
		earned string // by a purchase of 1 then
	}{
		{"the first purchase", func(s *shop, ana id) {}, "11001"},
		{"one stands", func(s *shop, ana id) { s.buy(ana, "1500") }, "1"},
		{"it was undone", func(s *shop, ana id) { s.bring(s.buy(ana, "1500"), "1500") }, "11001"},
		{"a part of it is left", func(s *shop, ana id) { s.bring(s.buy(ana, "1500"), "1499.9999") }, "1"},
		{"two parts make it whole", func(s *shop, ana id) {
			bought := s.buy(ana, "1500")
			s.bring(bought, "1000")
			s.bring(bought, "500")
		}, "11001"},
		{"all its items came back", func(s *shop, ana id) {
			bought := s.buy(ana, "10", item{"A", dec("1"), dec("2")})
			s.bring(bought, "1", item{"A", dec("1"), dec("1")})
			s.bring(bought, "1", item{"A", dec("1"), dec("1")})
		}, "11001"},
		{"the second was undone", func(s *shop, ana id) {
			s.buy(ana, "5")
			s.bring(s.buy(ana, "7"), "7") // it was above the daily limit, and gives nothing back
		}, "1"},
		{"the first of two was undone", func(s *shop, ana id) {
			bought := s.buy(ana, "5")
			s.buy(ana, "7")
			s.bring(bought, "5")
		}, "10001"},
		{"that of yesterday was undone", func(s *shop, ana id) {
			bought := s.buy(ana, "5")
			s.pass(oneDay)
			s.buy(ana, "5")
			s.bring(bought, "5")
		}, "1"},
		{"a late one of yesterday was undone", func(s *shop, ana id) {
			s.buy(ana, "5")
			late, err := s.sell(newSale{Customer: ana, Total: dec("5"), OccurredAt: s.clock.add(-oneDay)})
			s.ok(err)
			s.bring(late, "5")
		}, "1"},
		{"a return without its purchase", func(s *shop, ana id) {
			s.buy(ana, "5")
			_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("5")})
			s.ok(err)
		}, "1"},
		{"its customer was merged since", func(s *shop, ana id) {
			twin := s.customer("twin")
			bought := s.buy(twin, "5")
			s.merged(ana, twin)
			_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("5"), Original: &bought.ID})
			s.ok(err)
		}, "11001"},
		{"it was undone before a merge", func(s *shop, ana id) {
			twin := s.customer("twin")
			s.bring(s.buy(twin, "5"), "5")
			s.merged(ana, twin)
		}, "11001"},
		{"one of two merged ones is left", func(s *shop, ana id) {
			twin := s.customer("twin")
			bought := s.buy(ana, "5")
			s.buy(twin, "5")
			s.merged(ana, twin)
			s.bring(bought, "5")
		}, "1"},
		{"the limit came after it", func(s *shop, ana id) {
			rules := `"default":true,"rules":[` + onePer1 + `,{"key":"first","name":"First","points":1000,"firstPurchase":true},{"key":"daily","name":"Daily","points":10000%s}]`
			s.apply(setup{program: fmt.Sprintf(rules, "")}.document())
			bought := s.buy(ana, "5")
			s.apply(setup{program: fmt.Sprintf(rules, `,"maxPerCustomerPerDay":1`)}.document())
			s.buy(ana, "5")
			s.bring(bought, "5")
		}, "1"},
		{"its rule went and came", func(s *shop, ana id) {
			bought := s.buy(ana, "5")
			s.apply(setup{program: `"default":true,"rules":[` + onePer1 + `]`}.document())
			s.bring(bought, "5")
			s.apply(setup{program: `"default":true,` + undoneRules, also: undoneSegment}.document())
		}, "11001"},
		{"the segment of who was away, by the purchase before", func(s *shop, ana id) {
			s.buy(ana, "5")
			s.pass(20 * oneDay)
			s.bring(s.buy(ana, "5"), "5")
		}, "110001"},
		{"nobody is away who never bought", func(s *shop, ana id) {
			s.bring(s.buy(ana, "5"), "5")
			s.pass(20 * oneDay)
		}, "11001"},
		{"a dry run gives nothing back", func(s *shop, ana id) {
			bought := s.buy(ana, "5")
			w := s.served().post("/api/v1/transactions?dryRun=true", "", fmt.Sprintf(`{"customerId":%q,"type":"Return","totalAmount":5,"originalTransactionId":%q}`, ana, bought.ID))
			if w.Code != http.StatusOK {
				s.Fatal(w.Body)
			}
		}, "1"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, setup{program: `"default":true,` + undoneRules, also: undoneSegment})
			ana := s.customer("ana")
			test.do(s, ana)
			same(t, test.reason, s.buy(ana, "1").Earned, dec(test.earned))
			s.verified()
		})
	}
}

// TestUndoneTogether: a daily limit is given back in each program where the purchase counted.
func TestUndoneTogether(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true,"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":2}]},
		{"key":"two","name":"Two","join":"All","rules":[{"key":"b","name":"b","points":5},{"key":"a","name":"a","points":20,"maxPerCustomerPerDay":1}]`})
	ana := s.customer("ana")
	earned := func() string {
		sold := s.buy(ana, "1")
		return fmt.Sprint(sold.Earned, " ", sold.Others[0].Earned)
	}
	bought := s.buy(ana, "1")
	same(t, "the second", earned(), "1 5")
	same(t, "the third", earned(), "0 5")
	s.bring(bought, "1")
	same(t, "after the first was undone", earned(), "1 25")
	same(t, "and the next", earned(), "0 5")
	s.verified()
}

// TestUndoneLastSale: lastTransactionAt is that of the last purchase that stands.
func TestUndoneLastSale(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: undoneRules, also: undoneSegment})
	ana, twin := s.customer("ana"), s.customer("twin")
	served := s.served()
	last := func(reason string, want *sale) {
		t.Helper()
		var c struct{ LastTransactionAt *string }
		s.ok(json.Unmarshal(served.get("/api/v1/customers/"+ana.String()).Body.Bytes(), &c))
		switch {
		case want == nil && c.LastTransactionAt != nil:
			t.Errorf("%s: %s", reason, *c.LastTransactionAt)
		case want != nil && (c.LastTransactionAt == nil || *c.LastTransactionAt != want.CreatedAt.String()):
			t.Errorf("%s: not %s", reason, want.CreatedAt)
		}
		s.verified()
	}
	late := func(total string, days int) *sale {
		sold, err := s.sell(newSale{Customer: ana, Total: dec(total), OccurredAt: s.clock.add(-time.Duration(days) * oneDay)})
		s.ok(err)
		return sold
	}
	s.pass(oneDay)
	last("nothing", nil)
	first := s.buy(ana, "10")
	s.bring(first, "10")
	last("undone", nil)
	second := s.buy(ana, "10")
	s.pass(5 * oneDay)
	third, before := s.buy(ana, "10"), late("10", 2)
	earlier := late("10", 4)
	last("late ones are earlier", third)
	s.bring(earlier, "10")
	last("an earlier one is undone", third)
	s.bring(third, "4")
	last("a part of it is left", third)
	s.bring(third, "6")
	last("the late one is the last", before)
	s.bring(before, "10")
	last("that of before both", second)
	s.pass(oneDay)
	theirs := s.buy(twin, "10")
	s.pass(oneDay)
	fourth := s.buy(ana, "10")
	s.merged(ana, twin)
	last("of both", fourth)
	s.bring(fourth, "10")
	last("the twin's", theirs)
	_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("10"), Original: &theirs.ID})
	s.ok(err)
	last("of both, the own", second)
	s.bring(second, "10")
	last("none stands", nil)
}

// TestVerifySeesUndone: verify counts anew what limits count.
func TestVerifySeesUndone(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":5}]`})
	ana := s.customer("ana")
	bought := s.buy(ana, "1")
	s.pass(time.Second)
	s.buy(ana, "1")
	s.pass(time.Second)
	s.bring(s.buy(ana, "1"), "1")
	s.verified()
	all := s.entries()
	at := func(part byte) int {
		return slices.IndexFunc(all, func(e Entry) bool { return e.Key[0] == 'c' && len(e.Key) > 21 && e.Key[21] == part })
	}
	changed := func(reason string, i int, value []byte) {
		t.Helper()
		with := slices.Clone(all)
		if value == nil {
			with = slices.Delete(with, i, i+1)
		} else {
			with[i].Value = value
		}
		if !s.seen(with) {
			t.Errorf("%s is not seen", reason)
		}
	}
	for _, n := range []uint64{0, 1, 3} {
		changed(fmt.Sprint("a count of ", n), at(partRuleUse), appendRecord(nil, &ruleUse{n}))
	}
	changed("a count that is gone", at(partRuleUse), nil)
	c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(ana) })
	for _, last := range []instant{0, bought.CreatedAt, c.LastSaleAt.add(time.Second)} {
		wrong := *c
		wrong.LastSaleAt = last
		changed(fmt.Sprint("a last sale at ", last), at(partCustomer), appendRecord(nil, &wrong))
	}
	i := slices.IndexFunc(all, func(e Entry) bool {
		return bytes.Equal(e.Key, ask(s, func(t *txn) (key, error) { return t.sales.key(bought.Seq), nil }))
	})
	sold := ask(s, func(t *txn) (*sale, error) { return t.sales.at(bought.Seq) })
	sold.Limited = []uint64{1}
	changed("a limit of no rule", i, appendRecord(nil, sold))
}

// TestUndoneExternalID: the externalId of a purchase that was returned whole is free.
func TestUndoneExternalID(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const sale, other, back = `"totalAmount":1500`, `"totalAmount":150`, `"type":"Return","totalAmount":1500`
	for _, test := range []struct {
		reason, setting string // "": both
		sent            []string
		want            string
	}{
		{"other values", "", []string{sale, back, other}, "201 201 201"},
		{"the same", "", []string{sale, back, sale}, "201 201 external_id_undone 1"},
		{"spelled in another way", "", []string{sale, back, `"totalAmount":1.5e3`}, "201 201 external_id_undone 1"},
		{"again", "", []string{sale, back, sale + `,"again":true`}, "201 201 201"},
		{"again is no reason to sell what stands", "Unique", []string{sale, sale + `,"again":true`}, "201 200 1"},
		{"not again", "", []string{sale, back, sale + `,"again":false`}, "201 201 external_id_undone 1"},
		{"a retry of that again", "", []string{sale, back, sale + `,"again":true`, sale + `,"again":true`}, "201 201 201 200 3"},
		{"again, undone again", "", []string{sale, back, sale + `,"again":true`, back, sale + `,"again":true`}, "201 201 201 201 201"},
		{"again, undone again, and not again", "Unique", []string{sale, back, sale + `,"again":true`, back, sale}, "201 201 201 201 external_id_undone 3"},
		{"the first one finds the one that stands", "Unique", []string{sale, back, sale + `,"again":true`, sale}, "201 201 201 200 3"},
		{"the first one was undone", "Free", []string{sale, back, sale + `,"again":true`, sale}, "201 201 201 external_id_undone 1"},
		{"a retry of the second", "", []string{sale, back, other, other}, "201 201 201 200 3"},
		{"the second stands", "Unique", []string{sale, back, other, sale}, "201 201 201 external_id_conflict 3"},
		{"the first bytes", "Free", []string{sale, back, other, sale}, "201 201 201 external_id_undone 1"},
		{"both undone, the second", "", []string{sale, back, other, `"type":"Return","totalAmount":150`, other}, "201 201 201 201 external_id_undone 3"},
		{"both undone, the first", "", []string{sale, back, other, `"type":"Return","totalAmount":150`, sale}, "201 201 201 201 external_id_undone 1"},
		{"a part of it is left", "Unique", []string{sale, `"type":"Return","totalAmount":1499`, sale}, "201 201 200 1"},
		{"a part is left, and other values", "Unique", []string{sale, `"type":"Return","totalAmount":1499`, other}, "201 201 external_id_conflict 1"},
		{"a part of it is left", "Free", []string{sale, `"type":"Return","totalAmount":1499`, sale, other}, "201 201 200 1 201"},
		{"a return finds the one that stands", "", []string{sale, back, other, `"type":"Return","totalAmount":150`, `"type":"Return","totalAmount":1`}, "201 201 201 201 return_exceeds_purchase"},
	} {
		for _, setting := range []string{"Unique", "Free"} {
			if test.setting != "" && test.setting != setting {
				continue
			}
			for _, way := range []string{"alone", "batch", "dry batch"} {
				t.Run(fmt.Sprint(test.reason, " ", setting, " ", way), func(t *testing.T) {
					t.Parallel()
					s := newShop(t, setup{program: undoneRules, also: undoneSegment, settings: `"externalIds":"` + setting + `"`}).served()
					ana := s.shop.customer("ana")
					var texts []string
					for _, members := range test.sent {
						texts = append(texts, fmt.Sprintf(`{"customerId":%q,"externalId":"T-1",%s}`, ana, members))
					}
					got := s.sendUndone(texts, way)
					want := test.want
					if way == "dry batch" { // which names no sales, and makes none
						want = strings.Join(slices.DeleteFunc(strings.Fields(want), func(w string) bool { return len(w) == 1 }), " ")
						want = strings.ReplaceAll(want, "201", "200")
					}
					same(t, test.reason, got, want)
					s.shop.verified()
				})
			}
		}
	}
}

// sendUndone sends sales and lists what came of each, with the place of the sale that is named.
func (s *servedShop) sendUndone(texts []string, way string) string {
	var results []sentResult
	switch way {
	case "alone":
		for _, text := range texts {
			results = append(results, s.sendOne(text))
			s.shop.pass(1000)
		}
	case "batch":
		results = s.sendBatch(texts)
	default:
		w := s.post("/api/v1/transactions/batch?dryRun=true", "", batchOf(texts))
		var answer struct{ Results []sentResult }
		s.shop.ok(json.Unmarshal(w.Body.Bytes(), &answer))
		results = answer.Results
	}
	var told []string
	var ids []any
	for _, r := range results {
		said, named := fmt.Sprint(r.Status), r.Transaction["id"]
		if r.Error != nil {
			said, named = fmt.Sprint(r.Error["code"]), nil
			if context, ok := r.Error["context"].(map[string]any); ok {
				named = context["transactionId"]
			}
		}
		ids = append(ids, named)
		told = append(told, said)
		if at := slices.Index(ids, named); named != nil && at >= 0 && at < len(ids)-1 && way != "dry batch" {
			told = append(told, fmt.Sprint(at+1))
		}
	}
	return strings.Join(told, " ")
}

// TestUndoneQueue: a queue of a till that was offline, with a sale that was undone, registered
// again and undone again, may be sent as often as one likes. The moment of that sale tells it
// from another one that is registered again.
func TestUndoneQueue(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, settings: `"externalIds":"Unique"`}).served()
	ana := s.shop.customer("ana")
	begin := s.shop.clock.add(-time.Hour)
	row := func(minute time.Duration, members string) string {
		return fmt.Sprintf(`{"customerId":%q,"externalId":"T-1","occurredAt":%q,%s}`, ana, begin.add(minute*time.Minute), members)
	}
	const sale, again, back = `"totalAmount":100`, `"totalAmount":100,"again":true`, `"type":"Return","totalAmount":100`
	queue := []string{row(0, sale), row(1, back), row(0, again), row(2, back), row(3, again), row(4, back)}
	for i, want := range []string{"201 201 201 201 201 201", "external_id_undone 200 external_id_undone 200 external_id_undone 200"} {
		for range i + 1 {
			var told []string
			for _, r := range s.sendBatch(queue) {
				said := fmt.Sprint(r.Status)
				if r.Error != nil {
					said = fmt.Sprint(r.Error["code"])
				}
				told = append(told, said)
			}
			same(t, "the queue", strings.Join(told, " "), want)
			s.shop.wantStanding(ana, "0 0 0", "all is undone")
		}
	}
	same(t, "another one, again", s.sendBatch([]string{row(5, again)})[0].Status, http.StatusCreated)
	same(t, "and that one", s.sendBatch([]string{row(5, again)})[0].Status, http.StatusOK)
}

// TestUndoneForAnother: the externalId is free for another customer too, and a key's first
// answer stays.
func TestUndoneForAnother(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"Unique", "Free"} {
		s := newShop(t, setup{program: undoneRules, also: undoneSegment, settings: `"externalIds":"` + setting + `"`}).served()
		ana, eva := s.shop.customer("ana"), s.shop.customer("eva")
		sale := func(cust id, kind string) string {
			return fmt.Sprintf(`{"customerId":%q,"externalId":"T-1","totalAmount":1500,"type":%q}`, cust, kind)
		}
		first := s.post("/api/v1/transactions", "key", sale(ana, typePurchase))
		for i, text := range []string{sale(ana, typeReturn), sale(eva, typePurchase)} {
			if w := s.post("/api/v1/transactions", "", text); w.Code != http.StatusCreated {
				t.Errorf("%s %d: %d %s", setting, i, w.Code, w.Body)
			}
		}
		if w := s.post("/api/v1/transactions", "key", sale(ana, typePurchase)); w.Code != http.StatusCreated || w.Body.String() != first.Body.String() {
			t.Errorf("%s: the key: %d %s", setting, w.Code, w.Body)
		}
		s.shop.verified()
	}
}

// TestUndoneImport: a file that is imported again does not register an undone sale again, and
// another sale may have its externalId.
func TestUndoneImport(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"Unique", "Free"} {
		s := newShop(t, setup{program: undoneRules, also: undoneSegment, settings: `"externalIds":"` + setting + `"`})
		ana := s.customer("ana")
		s.customer("eva")
		row := func(name, total, at string) importRow {
			return importRow{ExternalID: "T-1", CreatedAt: at, Email: name + "@example.com", Type: typePurchase, Total: total}
		}
		day := s.clock.add(-40 * oneDay).String()
		for i, test := range []struct {
			row  importRow
			undo string // then
			want importOutcome
		}{
			{row("ana", "10", day), "10", importOutcome{Added: true}},
			{row("ana", "10", day), "", importOutcome{}},
			{row("eva", "10", day), "", importOutcome{Faults: []rowFault{{Field: "externalId", Text: "externalId ya se registró con otros datos"}}}},
			{row("ana", "11", day), "", importOutcome{Added: true}},
			{row("ana", "10", day), "", importOutcome{}},
			{row("ana", "11", day), "", importOutcome{}},
			{row("ana", "12", day), "", importOutcome{Faults: []rowFault{{Field: "externalId", Text: "externalId ya se registró con otros datos"}}}},
		} {
			got, err := s.admin().importRows(s.Context(), importRequest{Org: "cafe-luna", Kind: importSales, Import: "i", Rows: []importRow{test.row}})
			s.ok(err)
			if d := cmp.Diff(test.want, got[0]); d != "" {
				t.Errorf("%s %d: %s", setting, i, d)
			}
			if test.undo != "" {
				_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec(test.undo), ExternalID: "T-1"})
				s.ok(err)
			}
		}
		s.verified()
	}
}
