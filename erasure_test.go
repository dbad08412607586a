package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/fold"
)

// A bared is a shop in a file with a person who has a distinctive text in every field, and
// these texts.
type bared struct {
	servedShop *servedShop
	store      *boltStore
	path       string
	cust       id
	traces     []string // as the file might have them
	replies    []string // what the answers that were kept for retries say
}

// bare makes such a shop, in a file that has been written, checkpointed and rewritten.
func bare(t *testing.T) *bared {
	path := filepath.Join(t.TempDir(), "sello.db")
	store := testBolt(t, path, disk.Options{MemSize: 50_000, MemAge: 5 * time.Millisecond, Dense: denseTables, NoSync: true})
	s := newShopOn(t, store, "2026-03-02T10:00:00Z")
	s.apply(setup{
		program: `"rules": [{"key": "b", "name": "Base", "per": {"amount": 10, "points": 1}}, {"key": "c", "name": "Cumpleaños", "on": "Birthday", "points": 5}]`,
		also: `"rewards": [{"key": "r", "program": "club", "name": "Café", "pointsCost": 1},
			{"key": "v", "program": "club", "name": "Vale", "pointsCost": 1, "fulfilment": "Voucher"}]`,
	}.document())
	b := &bared{servedShop: s.served(), store: store, path: path}
	b.fill(0)
	b.live()
	b.fill(1)
	return b
}

// said posts a request under an Idempotency-Key, and keeps what it answers.
func (b *bared) said(path, body string) string {
	b.servedShop.shop.Helper()
	w := b.servedShop.post("/api/v1"+path, fmt.Sprint("key-", len(b.replies)), body)
	if w.Code >= 300 {
		b.servedShop.shop.Fatalf("%s %s\n%d %s", path, body, w.Code, w.Body)
	}
	b.replies = append(b.replies, path+"\n"+body)
	return w.Body.String()
}

// fill writes a lot about other customers, so that pages are split, merged and used again.
func (b *bared) fill(round int) {
	for i := range 150 {
		name := fmt.Sprintf("otra%d-%d", round, i)
		cust := b.servedShop.shop.customer(name)
		for range 3 {
			b.servedShop.shop.buy(cust, "20")
		}
		if w := b.request("PATCH", "/customers/"+cust.String(), `{"firstName": "`+strings.Repeat("Ana ", 1+i%20)+`"}`); w != http.StatusOK {
			b.servedShop.shop.Fatal(w)
		}
	}
	time.Sleep(20 * time.Millisecond) // for checkpoints
}

func (b *bared) request(method, path, body string) int {
	return answerTo(b.servedShop.api, newRequest(method, "/api/v1"+path, b.servedShop.key, body)).Code
}

// live is the person's life.
func (b *bared) live() {
	b.said("/customers", `{"email": "Quetzaltepec.Zeliquantha@Ejemplo-Raro.example", "phoneNumber": "55 1357 9246", "firstName": "Žéliquañtha", "lastName": "Xóchiputzín",
		"externalId": "Clave-Rarísima-7", "birthDate": "1987-03-02", "attributes": {"mascótica": "Perroflautín", "edad": 38.4417}}`)
	c := must(b.servedShop.shop, func(t *txn) (*customer, error) { return t.customers.identify(kindPhone, "+525513579246") })
	b.cust = c.ID
	at := c.ID.String()
	b.said("/points/customers/"+at+"/add", `{"amount": 50, "comment": "Comentoso-Puntos Ñandutí"}`)
	b.said("/points/customers/"+at+"/deduct", `{"amount": 1, "comment": "Comentoso-Resta"}`)
	b.said("/transactions", `{"customerId": "`+at+`", "totalAmount": 500, "externalId": "T-1", "comment": "Comentoso-Venta", "labels": {"mesa": "Comentoso-Mesa"}}`)
	b.servedShop.post("/api/v1/transactions", "", `{"customerId": "`+at+`", "totalAmount": 500, "externalId": "T-1", "comment": "Comentoso-Venta", "labels": {"mesa": "Comentoso-Mesa"}}`) // again
	b.said("/transactions", `{"customerId": "`+at+`", "totalAmount": 100, "type": "Return", "externalId": "T-1", "comment": "Comentoso-Devolución"}`)
	b.servedShop.shop.swept() // birthday points
	rewards := ask(b.servedShop.shop, func(t *txn) ([]*reward, error) { return t.cfg.Rewards, nil })
	b.said("/rewards/redeem", `{"customerId": "`+at+`", "productId": "`+rewards[0].ID.String()+`", "comment": "Comentoso-Canje"}`)
	var given redemptionShape
	b.servedShop.shop.ok(json.Unmarshal([]byte(b.said("/rewards/redeem", `{"customerId": "`+at+`", "productId": "`+rewards[1].ID.String()+`", "comment": "Comentoso-Vale"}`)), &given))
	b.said("/rewards/redeem", `{"customerId": "`+at+`", "productId": "`+rewards[1].ID.String()+`", "comment": "Comentoso-Abierto"}`)
	b.said("/redemptions/use", `{"code": "`+given.Code+`"}`)
	for i := range 60 { // earlier values of the record
		name := fmt.Sprintf("Antesllamada%c%c", 'a'+i%7, 'a'+i%11)
		if code := b.request("PATCH", "/customers/"+at, fmt.Sprintf(`{"firstName": "%s", "lastName": "%s", "attributes": {"nota": "Notarial-%d"}}`, name, strings.Repeat("Xóchi", 1+i%9), i)); code != http.StatusOK {
			b.servedShop.shop.Fatal(code)
		}
		b.servedShop.shop.add(b.cust, "1", never)
	}
	b.request("PATCH", "/customers/"+at, `{"firstName": "Žéliquañtha", "lastName": "Xóchiputzín"}`)
	for _, text := range []string{
		"Quetzaltepec", "Zeliquantha", "Ejemplo-Raro", "5513579246", "1357 9246", "Žéliquañtha", "Xóchiputzín", "Xóchi", "Clave-Rarísima", "mascótica", "Perroflautín", "38.4417",
		"Comentoso", "Ñandutí", "Antesllamada", "Notarial",
	} {
		b.traces = append(b.traces, text, strings.ToLower(text), fold.Text(text))
	}
}

func (b *bared) erased() {
	b.servedShop.shop.Helper()
	if w := b.servedShop.post("/api/v1/customers/"+b.cust.String()+"/erase", "", `{"confirm": "ERASE"}`); w.Code != http.StatusOK {
		b.servedShop.shop.Fatal(w.Code, w.Body)
	}
}

// tracesIn lists the texts that are in a file.
func (b *bared) tracesIn(path string) (found []string) {
	content := readFile(b.servedShop.shop, path)
	for _, trace := range b.traces {
		if bytes.Contains(content, []byte(trace)) && !slices.Contains(found, trace) {
			found = append(found, trace)
		}
	}
	return found
}

// TestEraseLeavesNothing: a backup that is made after an erasure holds no byte of what was
// erased, however much was written since, and neither does the file once it is made anew.
// Before, both hold nearly all of it.
func TestEraseLeavesNothing(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, later := range []bool{false, true} {
		t.Run(fmt.Sprintf("later=%t", later), func(t *testing.T) {
			t.Parallel()
			b := bare(t)
			copied := b.path + ".copy"
			backup := func() []string {
				_, err := b.store.backup(t.Context(), copied)
				b.servedShop.shop.ok(err)
				return b.tracesIn(copied)
			}
			if found := backup(); len(found) < 12 {
				t.Errorf("this test shows nothing: a backup before the erasure has only %q", found)
			}
			b.erased()
			if later {
				b.fill(2)
			}
			if found := backup(); found != nil {
				t.Errorf("a backup after the erasure has %q", found)
			}
			b.servedShop.shop.verified()
			b.servedShop.shop.ok(b.store.leave())
			if !later && b.tracesIn(b.path) == nil {
				t.Error("this test shows nothing: the file itself has nothing of it")
			}
			file, err := disk.Open(b.path, disk.Options{MustExist: true, Dense: denseTables, NoSync: true})
			b.servedShop.shop.ok(err)
			_, err = file.Compact(t.Context())
			b.servedShop.shop.ok(err)
			if left := listDir(t, b.path); left != "sello.db sello.db.copy" {
				t.Errorf("beside the file there is %s", left)
			}
			if found := b.tracesIn(b.path); found != nil {
				t.Errorf("the file made anew has %q", found)
			}
			newShopOn(t, testBolt(t, b.path, disk.Options{MustExist: true, NoSync: true}), "2026-03-02T10:00:00Z").verified()
		})
	}
}

// TestEraseRetries: no answer that showed an erased customer is given again, and none of
// their requests is applied again.
func TestEraseRetries(t *testing.T) {
	t.Parallel()
	b := bare(t)
	again := func(want int) {
		t.Helper()
		for i, said := range b.replies {
			path, body, _ := strings.Cut(said, "\n")
			w := b.servedShop.post("/api/v1"+path, fmt.Sprint("key-", i), body)
			if w.Code/100 != want || want == 4 && !strings.Contains(w.Body.String(), `"customer_erased"`) {
				t.Errorf("%s\n%d %s", said, w.Code, w.Body)
			}
		}
	}
	again(2)
	b.erased()
	count := func() counters {
		return ask(b.servedShop.shop, func(t *txn) (counters, error) { n, err := t.count(); return *n, err })
	}
	before := count()
	again(4)
	if after := count(); after != before {
		t.Errorf("the retries wrote: %+v, before %+v", after, before)
	}
	// What else is said of the customer names nobody.
	for range 2 {
		if w := b.servedShop.post("/api/v1/customers/"+b.cust.String()+"/erase", "once more", `{"confirm": "ERASE"}`); w.Code != http.StatusOK {
			t.Error(w.Code, w.Body)
		}
	}
	b.servedShop.shop.verified()
}

// TestEraseOneOfTwo: an answer that shows several customers is gone once one of them is.
func TestEraseOneOfTwo(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		s := newShop(t, setup{})
		both := []id{s.customer("ana"), s.customer("eva")}
		k := retryKey{name: [16]byte{1}, request: [16]byte{1}}
		const answer = `{"of":"both"}`
		must(s, func(t *txn) (any, error) {
			t.seals.reveal(both[0])
			t.seals.reveal(both[1])
			t.seals.reveal(both[0])
			return nil, t.replays.keep([]retryKey{k}, http.StatusCreated, []byte(answer))
		})
		for _, e := range s.entries() {
			if bytes.Contains(e.Value, []byte("both")) {
				t.Errorf("the answer is readable in %x", e.Key)
			}
		}
		want := ""
		if gone < 2 {
			must(s, func(t *txn) (*customer, error) { return t.merges.erase(both[gone]) })
			want = "customer_erased"
		}
		r, err := do(s, func(t *txn) (*replay, error) { return t.replays.find(k) })
		s.want(err, want)
		if err == nil && string(r.Body) != answer {
			t.Errorf("the answer became %q", r.Body)
		}
	}
}

// TestEraseBreaksTotals: after an erasure statistics of what happened are as they were, and
// so are balances, the ledger and what `verify -since` compares.
func TestEraseBreaksTotals(t *testing.T) {
	skipRace(t)
	t.Parallel()
	b := bare(t)
	rest := b.servedShop.shop.customer("queda")
	b.servedShop.shop.buy(rest, "100")
	b.servedShop.shop.add(b.cust, "7", b.servedShop.shop.clock.add(oneDay))
	state := func() (statistics, standing, *verification) {
		s := ask(b.servedShop.shop, func(t *txn) (*statistics, error) {
			day := t.dayOf(t.now)
			return t.stats.answer(statsQuery{from: day - 30, to: day + 2, groupBy: groupDay})
		})
		found := *s
		report, err := b.servedShop.shop.verify()
		b.servedShop.shop.ok(err)
		return found, b.servedShop.shop.standing(b.cust), report
	}
	stats, had, ledger := state()
	b.erased()
	after, has, report := state()
	same(t, "the account", has, had)
	same(t, "the ledger", report.Ledgers[0].Digest, ledger.Ledgers[0].Digest)
	same(t, "the customers that verify counts", report.customersText(), fmt.Sprintf("%d clientes y 1 fusionado o eliminado", ledger.Customers-1))
	same(t, "periods", len(after.periods), len(stats.periods))
	for i, p := range after.periods {
		was := stats.periods[i]
		same(t, "what happened on "+p.from.String(), happened(p.tally), happened(was.tally))
		same(t, "active on "+p.from.String(), p.active, was.active)
		same(t, "outstanding on "+p.from.String(), p.outstanding, was.outstanding)
	}
	since, err := viewStore(t.Context(), b.store, func(tx Tx) (*verification, error) {
		return verifyWith(b.servedShop.shop.engine.sizes, tx, b.servedShop.shop.clock, ledger.Ledgers)
	})
	if err != nil || len(since.Problems) > 0 {
		t.Errorf("since before: %v, %v", since, err)
	}
	// Points live on: they expire and are spent by vouchers that are out there.
	b.servedShop.shop.pass(3 * oneDay)
	b.servedShop.shop.swept()
	if now := b.servedShop.shop.standing(b.cust).Balance; now != had.Balance-dec("7") {
		t.Errorf("balance %v, before %v", now, had.Balance)
	}
	b.servedShop.shop.verified()
}

// happened is a tally without the counts of customers.
func happened(s tally) tally {
	s.NewCustomers, s.GoneCustomers, s.Active = 0, 0, 0
	return s
}

// TestEraseMisuse: what can be wrong with it.
func TestEraseMisuse(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	first := must(s, func(t *txn) (*customer, error) { return t.merges.erase(ana) })
	s.pass(oneDay)
	again := must(s, func(t *txn) (*customer, error) { return t.merges.erase(ana) })
	if !first.isErased() || again.UpdatedAt != first.UpdatedAt {
		t.Errorf("erasing again changed something: %+v, before %+v", again, first)
	}
	if n := ask(s, func(t *txn) (*counters, error) { return t.count() }); n.Audit != 2 { // and the configuration
		t.Errorf("the audit log has %d entries", n.Audit)
	}
	_, err := do(s, func(t *txn) (*customer, error) { return t.merges.erase(id{1}) })
	s.want(err, "customer_not_found")
	if other := s.customer("ana"); other == ana {
		t.Error("she is back")
	}
}

// TestCommentChanged: a comment that is not the one that was written is not shown.
func TestCommentChanged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	_, err := s.move(ana, &movement{Amount: dec("5"), Category: categoryBonus, Comment: "un regalo"})
	s.ok(err)
	changed := slices.Clone(s.entries())
	at, _ := changed.find(orgKey('m', s.org).u64(1))
	changed[at].Value = bytes.Replace(changed[at].Value, []byte("regalo"), []byte("REGALO"), 1)
	_, err = runTxn(s.engine, changed, s.org, s.clock, seed{}, func(t *txn) (*movement, error) { return t.points.movement(1) })
	if !errors.Is(err, errRecord) {
		t.Errorf("%v", err)
	}
	if !s.seen(changed) {
		t.Error("verify does not see it")
	}
}

// TestEraseVerified: verify tells what is left of an erased customer.
func TestEraseVerified(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	sold, err := s.sell(newSale{Customer: ana, Total: dec("5"), Comment: "para llevar", Labels: saleLabels{{"mesa", "de Ana"}}})
	s.ok(err)
	_, err = s.move(ana, &movement{Amount: dec("5"), Category: categoryBonus, Comment: "un regalo"})
	s.ok(err)
	before := s.entries()
	must(s, func(t *txn) (*customer, error) { return t.merges.erase(ana) })
	after := s.entries()
	if s.seen(after) {
		t.Fatal("verify finds a fault in a shop with an erased customer")
	}
	c := must(s, func(t *txn) (*customer, error) { return t.customers.get(ana) })
	replaced := func(k, value []byte) memTx {
		with := slices.Clone(after)
		place, _ := with.find(k)
		with[place].Value = value
		return with
	}
	put := func(k key, v fielded) memTx { return replaced(k, appendRecord(nil, v)) }
	kept, _, err := before.Get(orgKey('m', s.org).u64(1))
	s.ok(err)
	bare, err := decodeRecord[movement](kept)
	s.ok(err)
	bare.CommentHash = ledgerHash{}
	named, linked, secret, marked := *c, *c, *c, *c
	named.FirstName, linked.Person, secret.Secret, marked.Status = "Ana", id{1}, sealSecret{1}, statusActive
	k := customerKey(s.org, ana, partCustomer)
	seq := sold.Seq
	commented := must(s, func(t *txn) (*sale, error) { return t.sales.at(seq) })
	labelled := *commented
	commented.Comment, labelled.Labels = "para llevar", saleLabels{{"mesa", "de Ana"}}
	for what, with := range map[string]memTx{
		"a name":                           put(k, &named),
		"a link to the person":             put(k, &linked),
		"the secret":                       put(k, &secret),
		"another status":                   put(k, &marked),
		"a sale's comment":                 put(orgKey('t', s.org).u64(seq), commented),
		"a sale's labels":                  put(orgKey('t', s.org).u64(seq), &labelled),
		"a movement's comment":             replaced(orgKey('m', s.org).u64(1), kept),
		"a movement as if it had had none": put(orgKey('m', s.org).u64(1), bare),
	} {
		if !s.seen(with) {
			t.Errorf("%s: not seen", what)
		}
	}
}
