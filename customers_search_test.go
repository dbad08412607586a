package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"sello/internal/contact"
	"sello/internal/disk"
	"sello/internal/fold"
	"sello/internal/ngram"
)

// naiveFold folds as fold does, but knows only the characters of the tests.
func naiveFold(s string) string {
	plain := strings.NewReplacer("á", "a", "ã", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n", "ç", "c", "ø", "o",
		"\u0301", "", "\u0303", "", "\u0308", "", "\u00a0", " ", "\u2009", " ", "\t", " ", "’", "'", "–", "-", "ς", "σ", "ά", "α", "ё", "е")
	return strings.Join(strings.Fields(plain.Replace(strings.ToLower(s))), " ")
}

// naiveTexts are the folded name, e-mail and phone of a customer.
func naiveTexts(c *customer) []string {
	return []string{naiveFold(c.FirstName + " " + c.LastName), naiveFold(c.Email), c.Phone}
}

// naiveMatch reports whether a customer's texts match all words of a folded search.
func naiveMatch(texts, words []string) bool {
	if len(words) == 0 {
		return true
	}
	run := 0 // so many words are of digits
	for run < len(words) && strings.Trim(words[run], "0123456789+-().·/") == "" {
		run++
	}
	if run == 0 {
		return naiveHolds(texts, words[0]) && naiveMatch(texts, words[1:])
	}
	each := true
	for _, w := range words[:run] {
		each = each && (naiveHolds(texts, w) || naivePhone(texts[2], w))
	}
	return (each || naivePhone(texts[2], strings.Join(words[:run], " "))) && naiveMatch(texts, words[run:])
}

func naiveHolds(texts []string, word string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) })
}

// naivePhone reports whether text is the phone, or its digits part of it.
func naivePhone(phone, text string) bool {
	digits := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
	if digits == "" || phone == "" {
		return false
	}
	if strings.Contains(phone, digits) {
		return true
	}
	e164, ok := contact.Phone(text, "MX")
	return len(digits) >= 7 && ok && phone == e164
}

// A searchHistory is a shop whose customers are searched for.
type searchHistory struct {
	shop *shop
	rnd  *rand.Rand
}

// TestSearch searches random customers for needles of many lengths and words, from
// their texts and others, and compares the results with a scan of all customers. It
// does so before and after about half of the customers change.
func TestSearch(t *testing.T) {
	t.Parallel()
	histories(t, 25, func(t *testing.T, rnd *rand.Rand) {
		h := &searchHistory{newShop(t, setup{}), rnd}
		for range 1 + rnd.IntN(30) {
			h.enrol()
		}
		h.searchAll()
		for _, c := range h.customers() {
			if rnd.IntN(2) == 0 {
				h.change(c)
			}
		}
		h.searchAll()
	})
}

func (h *searchHistory) phone() string { return fmt.Sprintf("+5255%08d", h.rnd.IntN(100_000_000)) }

// text returns a random text of few letters, so that many texts are alike.
func (h *searchHistory) text(most int) string {
	letters := []rune("aabbcáÁéñÑüøZ19  @.-'’–\u00a0άςΣЁе")
	runes := make([]rune, h.rnd.IntN(most+1))
	for i := range runes {
		runes[i] = pick(h.rnd, letters...)
	}
	s := strings.TrimSpace(string(runes))
	if h.rnd.IntN(6) == 0 {
		s += "n\u0303" // a letter and a combining mark
	}
	return s
}

// enrol enrols a random customer and leaves up to 19 customers out of the index.
func (h *searchHistory) enrol() {
	rnd := h.rnd
	e := enrolment{FirstName: h.text(6), LastName: h.text(6)}
	if rnd.IntN(3) > 0 {
		e.Email = fmt.Sprintf("%s%d@b.mx", pick(rnd, "a", "ab", "ñ", "b-a"), rnd.IntN(1000))
	}
	if e.Email == "" || rnd.IntN(2) == 0 {
		e.Phone = h.phone()
	}
	waiting := rnd.Uint64N(20)
	must(h.shop, func(t *txn) (any, error) {
		c, _, err := t.customers.enrol(e)
		if err == nil && c.Number > waiting {
			err = t.search.indexUntil(c.Number - waiting)
		}
		return nil, err
	})
}

// change gives a customer another name, and a phone if there is none.
func (h *searchHistory) change(c *customer) {
	e := enrolment{FirstName: h.text(6), LastName: h.text(6), Email: c.Email, Phone: c.Phone}
	if e.Phone == "" {
		e.Phone = h.phone()
	}
	must(h.shop, func(t *txn) (any, error) {
		_, created, err := t.customers.enrol(e)
		if created {
			return nil, fmt.Errorf("%+v was enrolled anew", e)
		}
		return nil, err
	})
}

// customers returns all customers, by number.
func (h *searchHistory) customers() []*customer {
	return ask(h.shop, func(t *txn) (all []*customer, err error) {
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for number := range n.Customers {
			c, err := t.customers.at(number + 1)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		return all, nil
	})
}

// searchAll searches for parts of customers' texts, and for other needles.
func (h *searchHistory) searchAll() {
	rnd, all := h.rnd, h.customers()
	needles := []string{"a", "+", "+52", "(55)", "5 5", "@b.mx", "nobody", "ã", "ñ", "Ñ", "\u0301", "55-", "--"}
	part := func(c *customer) string {
		from := []rune(pick(rnd, c.FirstName+" "+c.LastName, c.Email, c.Phone, h.text(8), h.written(c.Phone)) + " ")
		at := rnd.IntN(len(from))
		return string(from[at:min(len(from), at+1+rnd.IntN(8))])
	}
	for range 40 {
		c := pick(rnd, all...)
		needle := part(c)
		for range rnd.IntN(4) {
			needle += pick(rnd, " ", "  ", "\u00a0", "\t", "") + part(c)
		}
		needles = append(needles, needle, h.written(c.Phone), part(c)+" "+h.written(c.Phone)+" "+part(c))
	}
	for _, needle := range needles {
		h.search(needle, all, page{1 + rnd.Uint64N(3), 1 + rnd.Uint64N(10)})
	}
}

// written returns a phone as people write it, or its digits in groups.
func (h *searchHistory) written(phone string) string {
	if phone == "" {
		return ""
	}
	rnd, n := h.rnd, strings.TrimPrefix(phone, "+52")
	at := 1 + rnd.IntN(len(n)-1)
	return pick(rnd, "", "", "044 ", "045", "01 ", "521", "+52 1 ", "(+52) ", "0052 1") + n[:at] + pick(rnd, " ", "-", ") ", "  ", " - ", "–") + n[at:]
}

// search compares a page of results with a scan of all customers.
func (h *searchHistory) search(needle string, all []*customer, p page) {
	var want []uint64
	words := strings.Fields(naiveFold(needle))
	for _, c := range slices.Backward(all) {
		if len(words) > 0 && naiveMatch(naiveTexts(c), words) {
			want = append(want, c.Number)
		}
	}
	var total uint64
	got := ask(h.shop, func(t *txn) (numbers []uint64, err error) {
		list, n, err := t.customers.search(needle, notHidden, p)
		for _, cust := range list {
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, c.Number)
		}
		total = n
		return numbers, err
	})
	from := min(p.skip(), uint64(len(want)))
	if part := want[from:min(from+p.limit, uint64(len(want)))]; !slices.Equal(got, part) || total != uint64(len(want)) {
		h.shop.Fatalf("%q, page %+v: found %v of %d, want %v of %d", needle, p, got, total, part, len(want))
	}
}

// TestSearchBlocks compares searches with a scan of all customers. There are
// two blocks, in the long form three, sets long enough for a bitmap, and customers that are not in
// the index yet.
func TestSearchBlocks(t *testing.T) {
	t.Parallel()
	skipShort(t)
	skipUnderRace(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	tx := bareTestTxn(newOverlay(memTx{}), 1)
	tx.cfg, tx.counters = new(config), new(counters)
	tx.cfg.Organization.Profile.Country = "MX"
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	customers := uint64(sized(2, 1)*ngram.Block + 700)
	var all []*customer
	for number := uint64(1); number <= customers; number++ {
		c := &customer{
			ID: tx.id(), Number: number, FirstName: pick(rnd, "Ana", "Noé", "Li", "X"), LastName: pick(rnd, "", "Ana Núñez", "Banana"),
			Email: fmt.Sprintf("%s%d@b.mx", pick(rnd, "ana", "o", "nana.banana"), number), Phone: fmt.Sprintf("+5255%08d", rnd.IntN(100_000_000)),
		}
		if number%5000 == 0 {
			c.FirstName = "Rare Bird"
		}
		ok(tx.Put(orgKey('l', 1).byte('c').u64(number), c.ID[:]))
		ok(tx.customers.save(c))
		all = append(all, c)
		if number == 5000 || number == ngram.Block+1 || number == customers-30 {
			ok(tx.search.indexUntil(number))
		}
	}
	tx.counters.Customers = customers
	// A customer of a fully indexed block gets another name.
	before := all[76].searchTexts()
	all[76].FirstName, all[76].LastName, all[76].Phone = "Somebody", "Else", ""
	ok(tx.search.reindex(77, before, all[76].searchTexts()))
	var texts [][]string
	for _, c := range all {
		texts = append(texts, naiveTexts(c))
	}
	for _, needle := range []string{
		"a", "x", "na", "ana", "li", "rare bird", "re b", "banana", "nana.banana", "@b.mx", "b.mx", "77@", "o16384@b", "16385@b.m", "32767", "32768@",
		"+5255", "(55) 1", "1-", "55 12", "somebody", "ana nunez", "noe banana", "anaana", "ananas", "nunezana", "zz", "@", "mx+", "anana",
		"nunez noe", "nunez ana ana", "bird rare b.mx", "rare zz", "zz rare", "a b c", "a zz", "na an", "li a x", "noe 55 12", "55 12 noe", "bird 55 1 2",
		"044 " + all[4].Phone[3:], "+52 1 " + all[customers-5].Phone[3:7] + " " + all[customers-5].Phone[7:], "mx 045" + all[ngram.Block].Phone[3:],
		"zz 045" + all[ngram.Block].Phone[3:], "5 5", "5 5 5 5", "(5) - 5 -",
	} {
		var want []uint64
		words := strings.Fields(naiveFold(needle))
		for i, texts := range slices.Backward(texts) {
			if naiveMatch(texts, words) {
				want = append(want, uint64(i)+1)
			}
		}
		for _, p := range []page{{1, 20}, {3, 7}, {2, customers / 2}, {1, 1 << 20}} {
			got, total, err := tx.search.find(needle, notHidden, p)
			ok(err)
			from := min(p.skip(), uint64(len(want)))
			if part := want[from:min(from+p.limit, uint64(len(want)))]; !slices.Equal(got, part) || total != uint64(len(want)) {
				t.Fatalf("%q, page %+v: found %d of %d, want %d of %d", needle, p, len(got), total, len(part), len(want))
			}
		}
	}
}

// TestSearchRows shows through the API who is found by what people type.
func TestSearchRows(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	served, numbers := s.served(), map[string]string{}
	for i, body := range []string{
		`{"firstName":"Ana María","lastName":"López García","phoneNumber":"+525544332211"}`,
		`{"firstName":"Ana","lastName":"Martínez","phoneNumber":"+525577700201"}`,
		`{"firstName":"Ana","lastName":"Pérez","phoneNumber":"+525577700100","email":"ana55@b.mx"}`,
		`{"firstName":"Siobhán","lastName":"O’Brien-Smith","email":"o'brien@b.mx"}`,
		`{"firstName":"ΜΑΡΊΑ","lastName":"Παπαδόπουλος","email":"maria@b.gr"}`,
		`{"firstName":"Фёдор","lastName":"Толстой","email":"fedor@b.ru"}`,
		`{"firstName":"José\u00a0 Luis","lastName":"De la\tPeña","email":"jose@b.mx"}`,
		`{"firstName":"Zoe","lastName":"Vienna","phoneNumber":"+4312345678"}`,
		`{"firstName":"Zoe","lastName":"Longer","phoneNumber":"+43123456789"}`,
	} {
		var made struct{ ID string }
		if w := served.post("/api/v1/customers", "", body); w.Code != 201 || json.Unmarshal(w.Body.Bytes(), &made) != nil {
			t.Fatalf("customer %d: %s", i+1, w.Body)
		}
		numbers[made.ID] = fmt.Sprint(i + 1)
	}
	must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(2) }) // the others are read
	for _, place := range []string{"read", "in the index"} {
		for _, test := range []struct{ search, found, why string }{
			{"Martinez", "2", "without the accent"},
			{"MARTI\u0301NEZ", "2", "with a combining one"},
			{"ana lopez", "1", "a word of each name, one between them"},
			{"lopez ana", "1", "in the other order"},
			{"lópez ana maría garcía", "1", "all words"},
			{"ana lopez perez", "", "a word that nobody has beside the others"},
			{"ana", "3 2 1", "one word, newest first"},
			{"ana ana", "3 2 1", "the same word again"},
			{"ana b.mx", "3", "words in different fields"},
			{"opez arc", "1", "parts of words"},
			{"7770-0201", "2", "part of a phone"},
			{"7770 010", "3", "part of a phone with a blank"},
			{"7770 02", "2", "short parts too"},
			{"ana 7770 010", "3", "a name and part of a phone"},
			{"010 7770", "3", "digits that are part of it, but not together"},
			{"0202 7770", "", "one that is not"},
			{"044 55 4433 2211", "1", "a retired prefix"},
			{"045-55-4433-2211", "1", "another, with hyphens"},
			{"01 (55) 4433.2211", "1", "that of long distance"},
			{"5215544332211", "1", "the 1 of mobile phones"},
			{"+52 1 55 4433 2211", "1", "with the calling code"},
			{"+52\u00a01\u00a055\u00a04433\u20112211", "1", "with blanks and hyphens that do not break"},
			{"garcía 044 55 4433 2211 ana", "1", "a phone between words"},
			{"perez 044 55 4433 2211", "", "somebody else's phone"},
			{"044 55 4433", "", "digits that are neither part of a phone nor a phone"},
			{"+43 1 2345678", "9 8", "digits as they stand are part of a longer phone too"},
			{"0043 1 2345678", "8", "a phone is the whole phone"},
			{"O'Brien", "4", "a plain apostrophe"},
			{"O’Brien", "4", "a typographic one"},
			{"siobhan o´brien", "4", "an accent in its place"},
			{"brien‑smith", "4", "another hyphen"},
			{"brien–smith", "4", "a dash"},
			{"μαρια", "5", "Greek without tonos"},
			{"ΜΑΡΊΑ ΠΑΠΑΔΌΠΟΥΛΟΣ", "5", "capitals, also of a final sigma"},
			{"παπαδοπουλοσ", "5", "a sigma that is not final"},
			{"федор", "6", "е for ё"},
			{"ФЁДОР ТОЛСТОЙ", "6", "capitals"},
			{"толстои", "", "и is not й"},
			{"Толстои\u0306", "6", "but и with a breve is"},
			{"jose luis", "7", "a plain blank for two others"},
			{"luis\u00a0\u2003jose", "7", "blanks of other kinds"},
			{"la peña", "7", "a tab"},
			{"\u0301", "", "no letter at all"},
			{"ana \u200b", "3 2 1", "an invisible character"},
		} {
			var answer struct {
				Data []struct{ ID string }
				Meta struct{ Total int }
			}
			w := served.get("/api/v1/customers?search=" + url.QueryEscape(test.search))
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
				t.Fatalf("%q: %d, %v, %s", test.search, w.Code, err, w.Body)
			}
			var found []string
			for _, item := range answer.Data {
				found = append(found, numbers[item.ID])
			}
			if got := strings.Join(found, " "); got != test.found || answer.Meta.Total != len(found) {
				t.Errorf("%s, %q (%s): found %q of %d, want %q", place, test.search, test.why, got, answer.Meta.Total, test.found)
			}
		}
		must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(9) })
	}
}

// TestReindexLeavesNothing removes all texts of a customer: no index entry is left.
func TestReindexLeavesNothing(t *testing.T) {
	t.Parallel()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	texts := []string{"Ana Núñez", "ana5@b.mx", "+525512345678"}
	one := bareTestTxn(newOverlay(memTx{}), 1)
	ok(one.search.addGrams(0, appendGrams(nil, 5, texts)))
	ok(one.putUint(orgKey('g', 1), 5))
	ok(one.search.reindex(5, texts, []string{"", "", ""}))
	for e, err := range scan(one, append(orgKey('g', 1), 0), false) {
		ok(err)
		t.Fatalf("%q is still in the index", e.Key[9:])
	}
}

// A putCounter counts what is written.
type putCounter struct {
	Tx
	puts []string
}

func (c *putCounter) Put(key, value []byte) error {
	c.puts = append(c.puts, string(key))
	return c.Tx.Put(key, value)
}

// TestReindexWritesChanges: a new phone writes nothing of the name and the e-mail.
func TestReindexWritesChanges(t *testing.T) {
	t.Parallel()
	counted := &putCounter{Tx: newOverlay(memTx{})}
	one := bareTestTxn(counted, 1)
	texts := []string{"ana núñez", "ana5@b.mx", "+525512345678"}
	if err := errors.Join(one.search.addGrams(0, appendGrams(nil, 5, texts)), one.putUint(orgKey('g', 1), 5)); err != nil {
		t.Fatal(err)
	}
	all := len(counted.puts)
	counted.puts = nil
	if err := one.search.reindex(5, texts, []string{texts[0], texts[1], "+525512345679"}); err != nil {
		t.Fatal(err)
	}
	// 9, 679 and 79; that 8 has left the phone is a deletion
	if n := len(counted.puts); n != 3 {
		t.Errorf("%d of %d grams are written: %q", n, all, counted.puts)
	}
}

// TestSearchDamaged cuts an index entry short. Searches that read it and writes
// that would change it get errRecord, and the entry stays as it is.
func TestSearchDamaged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(1) })
	set := func(gram string, value []byte) (before []byte) {
		return must(s, func(t *txn) ([]byte, error) {
			before, ok, err := t.Get(t.search.gramKey(0, gram))
			if !ok {
				err = errors.Join(err, errors.New("no such entry"))
			}
			before = slices.Clone(before)
			if value == nil {
				value = before[:len(before)-1]
			}
			return before, errors.Join(err, t.Put(t.search.gramKey(0, gram), value))
		})
	}
	for _, gram := range []string{"a", "ana", "na\x01"} { // the new name removes the last one
		whole := set(gram, nil)
		s.customer("ana" + fmt.Sprint(len(gram)) + gram[:1])
		for what, fn := range map[string]func(*txn) error{
			"a search": func(t *txn) error {
				_, _, err := t.customers.search(gram[:min(len(gram), 2)], notHidden, page{1, 20})
				return err
			},
			"more customers": func(t *txn) error {
				n, err := t.count()
				return errors.Join(err, t.search.indexUntil(n.Customers))
			},
			"another name": func(t *txn) error {
				c, err := t.customers.get(ana)
				return errors.Join(err, t.search.reindex(c.Number, c.searchTexts(), []string{"bel", c.Email, c.Phone}))
			},
		} {
			if what == "more customers" && gram == "na\x01" {
				continue // new customers do not have this gram
			}
			if _, err := do(s, func(t *txn) (any, error) { return nil, fn(t) }); !errors.Is(err, errRecord) {
				t.Errorf("%q is damaged, %s: %v", gram, what, err)
			}
		}
		set(gram, whole)
	}
}

// Benchmarks of lists, searches and imports. Each search and list reports its time as
// a multiple of the time to read one customer of the same store.

var (
	benchCustomers = flag.Int("bench.customers", 20_000, "so many customers in benchmarks of lists")
	benchSales     = flag.Int("bench.sales", 20_000, "and so many sales")
	benchStore     = flag.String("bench.store", "", "keep the benchmarks' store in this file")
)

// A crowd makes customers and sales like those of a shop, the same ones each time.
type crowd struct{ rnd *rand.Rand }

func newCrowd() crowd { return crowd{rand.New(rand.NewPCG(1, 1))} }

var (
	crowdFirst = []string{"María", "José", "Guadalupe", "Juan", "Luis", "Ana", "Carlos", "Sofía", "Miguel", "Lucía", "Jorge", "Elena",
		"Ricardo", "Fernanda", "Andrés", "Valeria", "Raúl", "Ximena", "Óscar", "Paola", "Iván", "Renata", "Hugo", "Diana", "Tomás", "Noemí"}
	crowdLast = []string{"Hernández", "García", "Martínez", "López", "González", "Pérez", "Rodríguez", "Sánchez", "Ramírez", "Cruz", "Flores",
		"Gómez", "Morales", "Vázquez", "Jiménez", "Reyes", "Díaz", "Torres", "Gutiérrez", "Ruiz", "Mendoza", "Aguilar", "Ortiz", "Castillo",
		"Núñez", "Ibarra", "Zepeda", "Quintero", "Yáñez", "Xicoténcatl"}
	crowdMail = []string{"gmail.com", "gmail.com", "gmail.com", "hotmail.com", "outlook.com", "yahoo.com.mx", "empresa.mx"}
)

// customer returns the i-th customer. One in a thousand is called Villalobos.
func (c crowd) customer(i int) importRow {
	first, last := crowdFirst[c.rnd.IntN(len(crowdFirst))], crowdLast[c.rnd.IntN(len(crowdLast))]
	if i%1000 == 500 {
		last = "Villalobos"
	}
	return importRow{
		FirstName: first, LastName: last + " " + crowdLast[c.rnd.IntN(len(crowdLast))],
		Email: fmt.Sprintf("%s.%s%d@%s", fold.Text(first), fold.Text(last), i, crowdMail[c.rnd.IntN(len(crowdMail))]),
		Phone: crowdPhone(i),
	}
}

func crowdPhone(i int) string { return fmt.Sprintf("+5255%08d", (i*7919+12345)%100_000_000) }

// importing runs an import of n rows in batches.
func (s *shop) importing(kind string, n int, row func(int) importRow) {
	for i := 0; i < n; {
		in := importRequest{Org: "cafe-luna", Kind: kind, Import: "bench"}
		for ; i < n && len(in.Rows) < importBatch; i++ {
			in.Rows = append(in.Rows, row(i))
		}
		outcomes, err := s.admin().importRows(s.Context(), in)
		s.ok(err)
		for _, o := range outcomes {
			if !o.Added {
				s.Fatal(o)
			}
		}
	}
	_, err := s.admin().importDone(s.Context(), importEnd{Org: "cafe-luna", Import: "bench"})
	s.ok(err)
}

// newEmptyCrowd opens a shop in the file at path. A new file has no customers.
func newEmptyCrowd(b *testing.B, path string) *shop {
	_, missing := os.Stat(path)
	store, err := openBolt(path, disk.Options{NoSync: true, Dense: denseTables})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	s := &shop{TB: b, org: 1}
	s.setClock("2027-01-02T18:00:00Z")
	s.engine = newEngine(store, func() time.Time { return s.clock.time() }, cryptoSeed)
	s.ok(s.engine.open(b.Context()))
	if missing != nil {
		s.apply(setup{}.document())
	}
	return s
}

// newCrowdedShop opens a shop in a file, with customers and a year of sales.
func newCrowdedShop(b *testing.B) *shop {
	path := *benchStore
	if path == "" {
		path = filepath.Join(b.TempDir(), "crowd.db")
	}
	s := newEmptyCrowd(b, path)
	n := ask(s, func(t *txn) (*counters, error) { return t.count() })
	of := newCrowd()
	if n.Customers == 0 {
		s.importing(importCustomers, *benchCustomers, of.customer)
		s.importing(importSales, *benchSales, of.sale)
	}
	return s
}

// sale returns the i-th sale of a year. One in fifty is a return.
func (c crowd) sale(i int) importRow {
	year := 365 * oneDay / time.Duration(*benchSales)
	row := importRow{
		ExternalID: fmt.Sprintf("T-%d", i), Type: typePurchase, Total: fmt.Sprint(10 + c.rnd.IntN(990)),
		CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * year).Format(layoutMillis),
		Phone:     crowdPhone(c.rnd.IntN(*benchCustomers)),
		Items:     []importItem{{"BAG", "1", "10"}, {"CUP", "2", "5"}},
	}
	if i%50 == 7 {
		row.Type = typeReturn
	}
	return row
}

// measured runs fn and reports its time as a multiple of reading one customer.
func (s *shop) measured(b *testing.B, fn func(*txn) error) {
	read := func(fn func(*txn) error) {
		ask(s, func(t *txn) (any, error) { return nil, fn(t) })
	}
	cust := ask(s, func(t *txn) (*customer, error) { return t.customers.at(uint64(*benchCustomers / 2)) })
	one := timeOf(b, 2000, func() {
		read(func(t *txn) error {
			c, err := t.customers.get(cust.ID)
			if err != nil {
				return err
			}
			d, err := newCustomerDetail(t, c)
			if err == nil {
				_, err = json.Marshal(d)
			}
			return err
		})
	})
	b.ReportAllocs()
	for b.Loop() {
		read(fn)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(one), "×get")
}

func BenchmarkSearch(b *testing.B) {
	s := newCrowdedShop(b)
	for _, test := range []struct{ name, needle string }{
		{"one", fmt.Sprintf("%d@", *benchCustomers-7)},
		{"phone", crowdPhone(*benchCustomers / 3)[3:]},
		{"spelled phone", "(55) " + crowdPhone(*benchCustomers / 3)[5:9] + "-" + crowdPhone(*benchCustomers / 3)[9:]},
		{"thousandth", "villalobos"},
		{"none", "qwertz"},
		{"none of common grams", "garciaperez"},
		{"3 characters", "mar"},
		{"4 characters", "garc"},
		{"everybody", "@"},
		{"domain", "gmail"},
		{"2 characters", "an"},
		{"whole e-mail", "fernanda.hernandez1234@hotmail.com"},
		{"3 words", "maria garcia lopez"},
		{"3 words, one rare", "maria garcia villalobos"},
		{"3 words, nobody has one", "maria garcia qwertz"},
		{"phone with retired prefix", "044 " + crowdPhone(*benchCustomers / 3)[3:5] + " " + crowdPhone(*benchCustomers / 3)[5:9] + " " + crowdPhone(*benchCustomers / 3)[9:]},
	} {
		b.Run(test.name, func(b *testing.B) {
			var total uint64
			s.measured(b, func(t *txn) (err error) {
				_, total, err = t.customers.search(test.needle, notHidden, page{1, 20})
				return err
			})
			b.ReportMetric(float64(total), "found")
			spent := float64(b.Elapsed()) / float64(b.N)
			if words := strings.Fields(test.needle); strings.HasPrefix(test.name, "3 words") {
				one := timeOf(b, 300, func() {
					for _, word := range words {
						ask(s, func(t *txn) (id []id, err error) {
							id, _, err = t.customers.search(word, notHidden, page{1, 20})
							return id, err
						})
					}
				}) / time.Duration(len(words))
				b.ReportMetric(spent/float64(one), "×word")
			}
		})
	}
}

func BenchmarkTransactionsSearch(b *testing.B) {
	s := newCrowdedShop(b)
	cust := ask(s, func(t *txn) (id, error) {
		c, err := t.customers.at(uint64(*benchCustomers / 3))
		return c.ID, err
	})
	day := func(month time.Month, d int) instant {
		return instantOf(time.Date(2026, month, d, 7, 31, 17, 0, time.UTC))
	}
	for _, test := range []struct {
		name   string
		filter saleFilter
	}{
		{"all", saleFilter{}},
		{"returns", saleFilter{saleType: typeReturn}},
		{"all, by date", saleFilter{byDate: true}},
		{"returns, by date", saleFilter{byDate: true, saleType: typeReturn}},
		{"search for one, by date", saleFilter{byDate: true, search: crowdPhone(*benchCustomers / 3)[3:]}},
		{"customer", saleFilter{customer: &cust}},
		{"customer's returns", saleFilter{customer: &cust, saleType: typeReturn}},
		{"externalId", saleFilter{externalID: "T-77"}},
		{"no such externalId", saleFilter{externalID: "nothing"}},
		{"search for one", saleFilter{search: crowdPhone(*benchCustomers / 3)[3:]}},
		{"search for one in thousand", saleFilter{search: "villalobos"}},
		{"search for one in thousand, returns", saleFilter{search: "villalobos", saleType: typeReturn}},
		{"search for tenth", saleFilter{search: "mar"}},
		{"search for everybody", saleFilter{search: "@"}},
		{"search for nobody", saleFilter{search: "qwertz"}},
		{"day", saleFilter{from: day(2, 3), to: day(2, 4)}},
		{"most of year", saleFilter{from: day(1, 3), to: day(12, 4)}},
		{"most of year, returns", saleFilter{from: day(1, 3), to: day(12, 4), saleType: typeReturn}},
		{"empty span", saleFilter{from: day(2, 3), to: day(2, 3)}},
		{"day, search for one in thousand", saleFilter{from: day(2, 3), to: day(2, 4), search: "villalobos"}},
		{"day, search for tenth", saleFilter{from: day(2, 3), to: day(2, 4), search: "mar"}},
		{"most of year, search for one in thousand", saleFilter{from: day(1, 3), to: day(12, 4), search: "villalobos"}},
		{"most of year, search for tenth", saleFilter{from: day(1, 3), to: day(12, 4), search: "mar"}},
		{"most of year, search for everybody", saleFilter{from: day(1, 3), to: day(12, 4), search: "@"}},
		{"most of year, search for one in thousand, returns", saleFilter{from: day(1, 3), to: day(12, 4), search: "villalobos", saleType: typeReturn}},
	} {
		if !test.filter.dated() || test.filter.to == 0 {
			test.filter.to = never
		}
		b.Run(test.name, func(b *testing.B) {
			var total uint64
			s.measured(b, func(t *txn) error {
				list, n, err := t.saleLists.find(test.filter, page{1, 20})
				if err != nil {
					return err
				}
				total = n
				for _, sold := range list {
					if _, err := newSaleShape(t, sold); err != nil {
						return err
					}
				}
				return nil
			})
			b.ReportMetric(float64(total), "found")
		})
	}
}

func BenchmarkCustomersPage(b *testing.B) {
	s := newCrowdedShop(b)
	pages := uint64(*benchCustomers / 20)
	for _, number := range []uint64{1, pages / 2, pages} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			var items []customerItem
			s.measured(b, func(t *txn) error {
				list, _, err := t.customers.list(notHidden, page{number, 20})
				if err == nil {
					items, err = newCustomerItems(t, list)
				}
				return err
			})
			spent := float64(b.Elapsed()) / float64(b.N)
			encoding := timeOf(b, 1000, func() {
				if _, err := json.Marshal(items); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(spent/float64(encoding), "×encoding")
		})
	}
}
