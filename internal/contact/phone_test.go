package contact

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestPhone runs the agreed cases (testdata/phones.jsonl).
func TestPhone(t *testing.T) {
	data, err := os.ReadFile("testdata/phones.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(data) {
		var c struct {
			Country, Input string
			E164           string // "" when null
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if got, ok := Phone(c.Input, c.Country); got != c.E164 || ok != (c.E164 != "") {
			t.Errorf("Phone(%q, %q) = %q, %v; want %q", c.Input, c.Country, got, ok, c.E164)
		}
		cases++
	}
	if cases != 2000 {
		t.Errorf("ran %d cases, want 2000", cases)
	}
}

func TestPhoneReasons(t *testing.T) {
	for _, c := range []struct {
		reason         string
		country, input string
		want           string // "" when the number is refused
	}{
		{"national", "MX", "55 1234 5678", "+525512345678"},
		{"calling code without plus", "MX", "52 55 1234 5678", "+525512345678"},
		{"international prefix", "MX", "00 52 55 1234 5678", "+525512345678"},
		{"plus and international prefix", "MX", "+00 52 55 1234 5678", "+525512345678"},
		{"another country's number", "MX", "WhatsApp: +34 612 34 56 78", "+34612345678"},
		{"too few digits", "MX", "1234 5678", ""},
		{"a letter is not a digit", "MX", "55 l234 5678", ""},
		{"no such calling code", "MX", "+999 123 4567", ""},
		{"two numbers", "ES", "612 34 56 78 / 613 00 00 00", ""},
		{"too much text", "MX", strings.Repeat(" ", 250) + "5512345678", ""},

		{"retired mobile 1", "MX", "+52 1 55 1234 5678", "+525512345678"},
		{"retired mobile 1, no plus", "MX", "521 55 1234 5678", "+525512345678"},
		{"retired mobile 1, dialled from abroad", "US", "011 52 1 55 1234 5678", "+525512345678"},
		{"retired mobile 1 stands behind 52 only", "MX", "1 55 1234 5678", ""},
		{"retired 01", "MX", "01 55 1234 5678", "+525512345678"},
		{"retired 044", "MX", "044 55 1234 5678", "+525512345678"},
		{"retired 045", "MX", "045 55 1234 5678", "+525512345678"},
		{"retired prefixes stand first only", "MX", "+52 044 55 1234 5678", ""},
		{"retired prefix, nine digits", "MX", "044 55 1234 567", ""},

		{"unknown country", "", "55 1234 5678", ""},
		{"unknown country, but a plus", "", "+52 55 1234 5678", "+525512345678"},
		{"country codes are upper case", "mx", "55 1234 5678", ""},
		{"001 is no country", "001", "1234 5678", ""},
		{"code without a country", "MX", "+800 1234 5678", "+80012345678"},

		{"extension", "MX", "55 1234 5678 ext. 12", "+525512345678"},
		{"two extensions", "MX", "55 1234 5678 x12/x13", "+525512345678"},
		{"letters of a dial pad", "US", "1-800-FLOWERS", "+18003569377"},
		{"fewer than three letters are noise", "MX", "55 1234 5678 ok", "+525512345678"},
		{"full-width digits", "MX", "５５ １２３４ ５６７８", "+525512345678"},
		{"Arabic digits", "MX", "٥٥ ١٢٣٤ ٥٦٧٨", "+525512345678"},
		{"bytes that are no text", "MX", "55 1234 5678\xff", "+525512345678"},

		{"tel: URI with parameter", "US", "tel:+52-55-1234-5678;isub=12", "+525512345678"},
		{"phone-context with a code", "US", "tel:5512345678;phone-context=+52", "+525512345678"},
		{"phone-context with a domain", "MX", "tel:5512345678;phone-context=sello.example", "+525512345678"},
		{"phone-context without a value", "MX", "tel:5512345678;phone-context=", ""},

		{"trunk 0 and mobile 15 become 9", "AR", "0343 15 555 1212", "+5493435551212"},
		{"carrier code", "BR", "0 31 11 98765-4321", "+5511987654321"},
		{"number without area code", "TT", "628 1234", "+18686281234"},
		{"leading zero belongs to the number", "IT", "02 1234 5678", "+390212345678"},
		{"region of a shared code", "RU", "8 7172 123 456", "+77172123456"},
		{"after a code, no trunk prefix in a valid number", "BY", "+375 8104172968", "+3758104172968"},
	} {
		if got, ok := Phone(c.input, c.country); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: Phone(%q, %q) = %q, %v; want %q", c.reason, c.input, c.country, got, ok, c.want)
		}
	}
}

// TestPhonePlans compiles every expression of the table and checks that no plan
// lacks what Phone relies on.
func TestPhonePlans(t *testing.T) {
	plans := phonePlans()
	if len(plans.byRegion) < 240 || len(plans.byCode) < 210 {
		t.Fatalf("%d regions, %d calling codes: the table is not whole", len(plans.byRegion), len(plans.byCode))
	}
	for code, regions := range plans.byCode {
		for _, p := range regions {
			p.plan()
			p.numbers()
			for _, optional := range []lazyRegexp{p.trunk, p.leading, p.idd} {
				if optional != nil {
					optional()
				}
			}
			if p.region == "" || p.lengths == 0 || p.idd == nil && p.region != "001" {
				t.Errorf("+%s %q: incomplete plan", code, p.region)
			}
		}
	}
}

func TestDigitValue(t *testing.T) {
	for _, digits := range unicode.Nd.R16 {
		for c := digits.Lo; c <= digits.Hi; c++ {
			if got, want := digitValue(rune(c)), byte(c-digits.Lo)%10; got != want {
				t.Errorf("digitValue(%U) = %d, want %d", c, got, want)
			}
		}
	}
}

// FuzzPhone checks that no input panics, that a result has the form of E.164, and
// that it is its own normal form in every country.
func FuzzPhone(f *testing.F) {
	for _, seed := range []struct{ country, input string }{
		{"MX", "+52 1 55 1234 5678"},
		{"MX", "045 55 1234 5678"},
		{"AR", "0343 15 555 1212"},
		{"BY", "80 810 4172968"},
		{"JP", "0 003768 527522740"},
		{"US", "1-800-FLOWERS x12/x13"},
		{"US", "tel:5512345678;phone-context=+52;x=y"},
		{"SM", "886377;isub=1"},
		{"", "+00＋٥٥\xff"},
	} {
		f.Add(seed.country, seed.input)
	}
	f.Fuzz(func(t *testing.T, country, input string) {
		number, ok := Phone(input, country)
		if !ok {
			if number != "" {
				t.Errorf("Phone(%q, %q) refused and returned %q", input, country, number)
			}
			return
		}
		if !strings.HasPrefix(number, "+") || strings.Trim(number[1:], "0123456789") != "" {
			t.Errorf("Phone(%q, %q) = %q, not E.164", input, country, number)
		}
		for _, again := range []string{country, "", "AR", "BR", "BY", "GG", "JP", "MX", "US"} {
			if got, ok := Phone(number, again); !ok || got != number {
				t.Errorf("Phone(%q, %q) = %q, and in %q that is %q, %v", input, country, number, again, got, ok)
			}
		}
	})
}

// BenchmarkPhone compares with the bound: matching the national number alone.
func BenchmarkPhone(b *testing.B) {
	for _, c := range []struct{ country, input, national string }{
		{"MX", "044 55 1234 5678", "5512345678"},
		{"US", "(415) 555-2671 ext. 12", "4155552671"},
		{"DE", "+49 1512 3456789", "15123456789"},
	} {
		b.Run(c.country, func(b *testing.B) {
			home := phonePlans().byRegion[c.country]
			home.valid(c.national) // compiles
			const rounds = 10_000
			start := time.Now()
			for range rounds {
				home.valid(c.national)
			}
			bound := float64(time.Since(start).Nanoseconds()) / rounds
			b.ReportAllocs()
			for b.Loop() {
				Phone(c.input, c.country)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/bound, "x-bound")
		})
	}
}

// TestPlainNumber compares the short cut for plain numbers with the search.
func TestPlainNumber(t *testing.T) {
	for _, text := range []string{"", "+", "1", "12", "123", "+12", "+123", "++123", "1+23", "123 ", "12x", "１２３", strings.Repeat("7", 250), "+" + strings.Repeat("0", 249)} {
		if isPlainNumber(text) && searchPhone(text) != text {
			t.Errorf("%q: the search finds %q", text, searchPhone(text))
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	plain := 0
	for range 20_000 {
		b := make([]byte, rnd.IntN(20))
		for i := range b {
			b[i] = "+0123456789"[rnd.IntN(11)]
			if i > 0 && rnd.IntN(8) > 0 {
				b[i] = byte('0' + rnd.IntN(10))
			}
		}
		if text := string(b); isPlainNumber(text) {
			plain++
			if got := searchPhone(text); got != text {
				t.Fatalf("%q: the search finds %q", text, got)
			}
		}
	}
	if plain < 1000 {
		t.Errorf("only %d plain numbers", plain)
	}
}
