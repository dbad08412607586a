package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// naiveFold folds by what a few letters are known to look like.
func naiveFold(s string) string {
	return strings.NewReplacer("á", "a", "ã", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n", "ç", "c", "ø", "o",
		"\u0301", "", "\u0303", "", "\u0308", "").Replace(strings.ToLower(s))
}

// naiveMatch tells whether a customer's name, e-mail or phone holds a needle.
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
		return false // nothing but marks
	}
	return strings.Contains(naiveFold(strings.TrimSpace(c.FirstName+" "+c.LastName)), folded) ||
		strings.Contains(naiveFold(c.Email), folded) ||
		strings.Contains(c.Phone, folded) ||
		digits != "" && !other && strings.Contains(c.Phone, digits)
}

// TestSearch searches random customers for needles of all lengths, cut out of
// their texts or not, and compares with looking at every customer in turn,
// before and after texts are filled in.
func TestSearch(t *testing.T) {
	letters := []rune("aabbcáÁéñÑüøZ19 @.-")
	text := func(rnd *rand.Rand, most int) string {
		runes := make([]rune, rnd.IntN(most+1))
		for i := range runes {
			runes[i] = pick(rnd, letters...)
		}
		s := strings.TrimSpace(string(runes))
		if rnd.IntN(6) == 0 {
			s += "n\u0303" // a letter and its mark apart
		}
		return s
	}
	histories(t, 25, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{})
		phone := func() string { return fmt.Sprintf("+5255%08d", rnd.IntN(100_000_000)) }
		for range 1 + rnd.IntN(30) {
			e := enrolment{FirstName: text(rnd, 6), LastName: text(rnd, 6)}
			if rnd.IntN(3) > 0 {
				e.Email = fmt.Sprintf("%s%d@b.mx", pick(rnd, "a", "ab", "ñ", "b-a"), rnd.IntN(1000))
			}
			if e.Email == "" || rnd.IntN(2) == 0 {
				e.Phone = phone()
			}
			must(s, func(t *txn) (any, error) {
				_, _, err := t.enrol(e)
				return nil, err
			})
		}
		customers := func() []*customer {
			return ask(s, func(t *txn) (all []*customer, err error) {
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
		check := func() {
			all := customers()
			needles := []string{"a", "+", "+52", "(55)", "5 5", "@b.mx", "nobody", "ã", "ñ", "Ñ", "\u0301", "55-", "--"}
			for range 40 {
				c := pick(rnd, all...)
				from := []rune(pick(rnd, c.FirstName+" "+c.LastName, c.Email, c.Phone, text(rnd, 8)))
				if len(from) == 0 {
					continue
				}
				at := rnd.IntN(len(from))
				needles = append(needles, string(from[at:min(len(from), at+1+rnd.IntN(8))]))
			}
			for _, needle := range needles {
				var want []uint64
				for _, c := range slices.Backward(all) {
					if naiveMatch(c, needle) {
						want = append(want, c.Number)
					}
				}
				p := page{1 + rnd.Uint64N(3), 1 + rnd.Uint64N(10)}
				var total uint64
				got := ask(s, func(t *txn) (numbers []uint64, err error) {
					list, n, err := t.searchCustomers(needle, p)
					for _, c := range list {
						numbers = append(numbers, c.Number)
					}
					total = n
					return numbers, err
				})
				from := min(p.skip(), uint64(len(want)))
				if part := want[from:min(from+p.limit, uint64(len(want)))]; !slices.Equal(got, part) || total != uint64(len(want)) {
					t.Fatalf("%q, page %+v: found %v of %d, want %v of %d", needle, p, got, total, part, len(want))
				}
			}
		}
		check()
		for _, c := range customers() {
			if rnd.IntN(2) == 0 {
				continue
			}
			e := enrolment{FirstName: text(rnd, 6), LastName: text(rnd, 6), Email: c.Email, Phone: c.Phone}
			if e.Phone == "" {
				e.Phone = phone()
			}
			must(s, func(t *txn) (any, error) {
				_, created, err := t.enrol(e)
				if created {
					return nil, fmt.Errorf("%+v was enrolled anew", e)
				}
				return nil, err
			})
		}
		check()
	})
}

// TestSearchBlocks crosses the size of a block of the index, and that at which
// a block's list becomes a bitmap.
func TestSearchBlocks(t *testing.T) {
	s := newShop(t, setup{})
	numbers := []uint64{1, 2, 200, 254, 255, 256, 257, 300, searchBlock - 1, searchBlock, searchBlock + 1, 3*searchBlock + 7}
	for n := uint64(400); n < 700; n++ {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	find := func(t *txn) ([]uint32, error) {
		found, err := t.withPrefix("abc")
		return found, err
	}
	_, err := do(s, func(t *txn) (any, error) {
		has := map[uint32]bool{}
		compare := func(when string) {
			found, err := find(t)
			s.ok(err)
			if len(found) != len(has) || !slices.IsSorted(found) {
				s.Fatalf("%s: found %d, want %d", when, len(found), len(has))
			}
			for _, n := range found {
				if !has[n] {
					s.Fatalf("%s: found %d", when, n)
				}
			}
		}
		for _, n := range numbers {
			s.ok(t.index("abc", n, true))
			has[uint32(n)] = true
			compare(fmt.Sprintf("with %d", n))
		}
		for _, n := range numbers {
			s.ok(t.index("abc", n, false))
			delete(has, uint32(n))
			compare(fmt.Sprintf("without %d", n))
		}
		if _, there, _ := t.Get(orgKey('g', t.org).text("abc").byte(0).u32(0)); there {
			s.Error("an empty block is kept")
		}
		return nil, nil
	})
	s.ok(err)
}

// TestFold shows what is alike to a search.
func TestFold(t *testing.T) {
	for _, test := range [][2]string{
		{"Núñez", "nunez"}, {"JOSÉ", "jose"}, {"Nu\u0301n\u0303ez", "nunez"}, {"ÀÂÄ", "aaa"}, {"Łódź", "lodz"}, {"Ørsted", "orsted"},
		{"ABC+123@x", "abc+123@x"}, {"Ψ", "ψ"}, {"東京", "東京"}, {"", ""}, {"\u0301", ""},
	} {
		if got := fold(test[0]); got != test[1] {
			t.Errorf("%q folds to %q, want %q", test[0], got, test[1])
		}
	}
}
