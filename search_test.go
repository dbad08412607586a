package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// naiveFold folds as fold does, but knows only a few letters.
func naiveFold(s string) string {
	return strings.NewReplacer("á", "a", "ã", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n", "ç", "c", "ø", "o",
		"\u0301", "", "\u0303", "", "\u0308", "").Replace(strings.ToLower(s))
}

// naiveMatch reports whether a customer's name, e-mail or phone holds a needle.
func naiveMatch(c *customer, needle string) bool {
	folded := naiveFold(needle)
	digits, other := "", false
	for _, r := range needle {
		switch {
		case unicode.IsDigit(r):
			digits += string(r)
		case !strings.ContainsRune("+-().·/ ", r):
			other = true
		}
	}
	if folded == "" {
		return false // only combining marks
	}
	return strings.Contains(naiveFold(strings.TrimSpace(c.FirstName+" "+c.LastName)), folded) ||
		strings.Contains(naiveFold(c.Email), folded) ||
		strings.Contains(c.Phone, folded) ||
		digits != "" && !other && strings.Contains(c.Phone, digits)
}

// A searchHistory is a shop whose customers are searched for.
type searchHistory struct {
	shop *shop
	rnd  *rand.Rand
}

// TestSearch searches random customers for needles of many lengths, from their
// texts and others, and compares the results with a scan of all customers. It
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
	letters := []rune("aabbcáÁéñÑüøZ19 @.-")
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
		c, _, err := t.enrol(e)
		if err == nil && c.Number > waiting {
			err = t.indexUntil(c.Number - waiting)
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
		_, created, err := t.enrol(e)
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
			c, err := t.customerAt(number + 1)
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
	for range 40 {
		c := pick(rnd, all...)
		from := []rune(pick(rnd, c.FirstName+" "+c.LastName, c.Email, c.Phone, h.text(8)))
		if len(from) == 0 {
			continue
		}
		at := rnd.IntN(len(from))
		needles = append(needles, string(from[at:min(len(from), at+1+rnd.IntN(8))]))
	}
	for _, needle := range needles {
		h.search(needle, all, page{1 + rnd.Uint64N(3), 1 + rnd.Uint64N(10)})
	}
}

// search compares a page of results with a scan of all customers.
func (h *searchHistory) search(needle string, all []*customer, p page) {
	var want []uint64
	for _, c := range slices.Backward(all) {
		if naiveMatch(c, needle) {
			want = append(want, c.Number)
		}
	}
	var total uint64
	got := ask(h.shop, func(t *txn) (numbers []uint64, err error) {
		list, n, err := t.searchCustomers(needle, notHidden, p)
		for _, cust := range list {
			c, err := t.customer(cust)
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
// several blocks, sets long enough for a bitmap, and customers that are not in
// the index yet.
func TestSearchBlocks(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	tx := &txn{Tx: newOverlay(memTx{}), mint: newMint(0, seed{}), org: 1, held: held{counters: new(counters)}}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const customers = 2*gramBlock + 700
	var all [][]string // texts of each customer
	for number := uint64(1); number <= customers; number++ {
		c := &customer{
			ID: tx.id(), Number: number, FirstName: pick(rnd, "Ana", "Noé", "Li", "X"), LastName: pick(rnd, "", "Ana Núñez", "Banana"),
			Email: fmt.Sprintf("%s%d@b.mx", pick(rnd, "ana", "o", "nana.banana"), number), Phone: fmt.Sprintf("+5255%08d", rnd.IntN(100_000_000)),
		}
		if number%5000 == 0 {
			c.FirstName = "Rare Bird"
		}
		ok(tx.Put(orgKey('l', 1).byte('c').u64(number), c.ID[:]))
		ok(tx.saveCustomer(c))
		all = append(all, c.searchTexts())
		if number == 5000 || number == gramBlock+1 || number == customers-30 {
			ok(tx.indexUntil(number))
		}
	}
	tx.counters.Customers = customers
	// A customer of a fully indexed block gets another name.
	ok(tx.reindex(77, all[76], []string{"somebody else", all[76][1], ""}))
	all[76] = []string{"somebody else", all[76][1], ""}
	for _, needle := range []string{
		"a", "x", "na", "ana", "li", "rare bird", "re b", "banana", "nana.banana", "@b.mx", "b.mx", "77@", "o16384@b", "16385@b.m", "32767", "32768@",
		"+5255", "(55) 1", "1-", "55 12", "somebody", "ana nunez", "noe banana", "anaana", "ananas", "nunezana", "zz", "@", "mx+", "anana",
	} {
		n := newNeedle(needle)
		var want []uint64
		for i, texts := range slices.Backward(all) {
			if n.in(texts) {
				want = append(want, uint64(i)+1)
			}
		}
		for _, p := range []page{{1, 20}, {3, 7}, {2, 20_000}, {1, 1 << 20}} {
			got, total, err := tx.search(needle, notHidden, p)
			ok(err)
			from := min(p.skip(), uint64(len(want)))
			if part := want[from:min(from+p.limit, uint64(len(want)))]; !slices.Equal(got, part) || total != uint64(len(want)) {
				t.Fatalf("%q, page %+v: found %d of %d, want %d of %d", needle, p, len(got), total, len(part), len(want))
			}
		}
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
	one := &txn{Tx: newOverlay(memTx{}), org: 1}
	ok(one.addGrams(0, appendGrams(nil, 5, texts)))
	ok(one.putUint(orgKey('g', 1), 5))
	ok(one.reindex(5, texts, []string{"", "", ""}))
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
	one := &txn{Tx: counted, org: 1}
	texts := []string{"ana núñez", "ana5@b.mx", "+525512345678"}
	if err := errors.Join(one.addGrams(0, appendGrams(nil, 5, texts)), one.putUint(orgKey('g', 1), 5)); err != nil {
		t.Fatal(err)
	}
	all := len(counted.puts)
	counted.puts = nil
	if err := one.reindex(5, texts, []string{texts[0], texts[1], "+525512345679"}); err != nil {
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
	must(s, func(t *txn) (any, error) { return nil, t.indexUntil(1) })
	set := func(gram string, value []byte) (before []byte) {
		return must(s, func(t *txn) ([]byte, error) {
			before, ok, err := t.Get(t.gramKey(0, gram))
			if !ok {
				err = errors.Join(err, errors.New("no such entry"))
			}
			before = slices.Clone(before)
			if value == nil {
				value = before[:len(before)-1]
			}
			return before, errors.Join(err, t.Put(t.gramKey(0, gram), value))
		})
	}
	for _, gram := range []string{"a", "ana", "na\x01"} { // the new name removes the last one
		whole := set(gram, nil)
		s.customer("ana" + fmt.Sprint(len(gram)) + gram[:1])
		for what, fn := range map[string]func(*txn) error{
			"a search": func(t *txn) error {
				_, _, err := t.searchCustomers(gram[:min(len(gram), 2)], notHidden, page{1, 20})
				return err
			},
			"more customers": func(t *txn) error {
				n, err := t.count()
				return errors.Join(err, t.indexUntil(n.Customers))
			},
			"another name": func(t *txn) error {
				c, err := t.customer(ana)
				return errors.Join(err, t.reindex(c.Number, c.searchTexts(), []string{"bel", c.Email, c.Phone}))
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

// TestFold shows which texts a search treats as equal.
func TestFold(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{
		{"Núñez", "nunez"}, {"JOSÉ", "jose"}, {"Nu\u0301n\u0303ez", "nunez"}, {"ÀÂÄ", "aaa"}, {"Łódź", "lodz"}, {"Ørsted", "orsted"},
		{"ABC+123@x", "abc+123@x"}, {"Ψ", "ψ"}, {"東京", "東京"}, {"", ""}, {"\u0301", ""},
	} {
		if got := fold(test[0]); got != test[1] {
			t.Errorf("%q folds to %q, want %q", test[0], got, test[1])
		}
	}
}
