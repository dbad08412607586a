package main

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestReadAmount: what people write for an amount, and which of it can be read in two ways.
// Panel check 32.
func TestReadAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, country, text string
		want                  string // the literal; two with a bar between them; "" for no number
	}{
		{"digits", "MX", "1500", "1500"},
		{"group and decimals", "MX", "1,500.50", "1500.50"},
		{"the same in Colombia", "CO", "1.500,50", "1500.50"},
		{"decimals by the other sign", "MX", "1500,5", "1500.5"},
		{"decimals by the other sign", "CO", "1500.5", "1500.5"},
		{"two decimals", "MX", "12,50", "12.50"},
		{"four decimals", "CO", "1.2345", "1.2345"},
		{"a group by the country's habit", "MX", "1,500", "1500"},
		{"a group by the country's habit", "CO", "1.500", "1500"},
		{"a group where the group is a blank", "CR", "1.500", "1500"},
		{"a group where four digits have none", "ES", "1.500", "1500"},
		{"decimals or a group", "MX", "1.500", "1.5000|1500"},
		{"decimals or a group", "CO", "1,500", "1.5000|1500"},
		{"decimals or a group", "CR", "123,456", "123.4560|123456"},
		{"decimals or a group, below zero", "MX", "-1.500", "-1.5000|-1500"},
		{"no group begins with 0", "MX", "0.500", "0.500"},
		{"no group begins with 0", "MX", "0,500", "0.500"},
		{"no group has four digits before it", "MX", "1500.500", "1500.500"},
		{"two groups cannot be decimals", "MX", "1.500.000", "1500000"},
		{"both signs leave no doubt", "CO", "1,500.500", "1500.500"},
		{"blanks as groups", "MX", "1 500 000,5", "1500000.5"},
		{"blanks that do not break", "CR", "1\u00a0500,5", "1500.5"},
		{"narrow blanks", "MX", "1\u202f500", "1500"},
		{"blanks around", "MX", "  150.00\t", "150.00"},
		{"a sign", "MX", "$150", "150"},
		{"a sign behind", "ES", "150 €", "150"},
		{"code of the currency", "MX", "mxn 150.5", "150.5"},
		{"code of the currency behind", "MX", "$1,500.00MXN", "1500.00"},
		{"zeros before", "MX", "007", "7"},
		{"no digit before the sign", "MX", ".5", "0.5"},
		{"zero", "MX", "0", "0"},
		{"zeros", "MX", "0000", "0"},

		{"left to the API: below zero", "MX", "-5", "-5"},
		{"left to the API: below zero", "MX", "-$5", "-5"},
		{"left to the API: below zero, as typography writes it", "MX", "$ −5", "-5"},
		{"left to the API: too precise", "MX", "1.23456", "1.23456"},
		{"left to the API: too large", "MX", "123456789012", "123456789012"},

		{"nothing", "MX", "", ""},
		{"a blank", "MX", " ", ""},
		{"only a sign", "MX", "-", ""},
		{"only a currency", "MX", "MXN", ""},
		{"an exponent", "MX", "1e3", ""},
		{"words", "MX", "quince", ""},
		{"another currency's code", "MX", "15 USD", ""},
		{"hexadecimal", "MX", "0x10", ""},
		{"two signs", "MX", "--5", ""},
		{"plus", "MX", "+5", ""},
		{"a sign at the end", "MX", "5.", ""},
		{"a group too short", "MX", "1,50,000", ""},
		{"a group too short at the end", "MX", "1,500,50", ""},
		{"a group that begins with 0", "MX", "0,500.25", ""},
		{"groups of two kinds", "MX", "1,500.000.000", ""},
		{"decimals before groups", "MX", "1.5,000", ""},
		{"digits of another script", "MX", "١٥", ""},
	} {
		f := newFormat(t, c.country, "es", "MXN")
		literal, both, ok := f.readAmount(c.text)
		got := literal
		if !ok {
			got = strings.Join(both, "|")
		}
		if got != c.want || ok != (c.want != "" && !strings.Contains(c.want, "|")) {
			t.Errorf("%s: %q in %s: %q, %v; want %q", c.reason, c.text, c.country, got, ok, c.want)
		}
	}
}

// TestReadAmountFaults: what a person may not give gets the fault of the API's reader.
// Panel check 32.
func TestReadAmountFaults(t *testing.T) {
	t.Parallel()
	f := newFormat(t, "MX", "es", "MXN")
	for text, want := range map[string]error{"1.23456": errTooPrecise, "123456789012": errTooLarge, "1.230000": nil} {
		literal, _, _ := f.readAmount(text)
		if _, err := parseDecimal(literal); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// TestReadWritten: whatever a format writes is read as the same decimal in that country.
func TestReadWritten(t *testing.T) {
	skipRace(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 5))
	for range repeats(20_000, 2_000, 1_000) {
		d := decimal(random.Int64N(int64(maxDecimal) >> random.IntN(48)))
		if random.IntN(4) == 0 {
			d = -d
		}
		if random.IntN(2) == 0 {
			d = d / decimalOne * decimalOne // whole
		}
		for _, country := range formatCountries {
			for _, currency := range []string{"MXN", "CLP"} {
				f := newFormat(t, country, "es", currency)
				for _, text := range []string{f.Number(d), f.Money(d), f.MoneyWithCode(d)} {
					literal, both, ok := f.readAmount(text)
					if !ok || !sameDecimal(literal, d) {
						t.Fatalf("%v in %s is written %q and read %q, %q", d, country, text, literal, both)
					}
				}
			}
		}
	}
}

func FuzzAmount(f *testing.F) {
	for _, text := range []string{"1500", "1,500.50", "1.500", "-1.500", "1 500,5", "$ 150 MXN", "1e3", "0.500", ".5", "1\u202f500", "٣", "MXN\u00a0"} {
		f.Add(byte(0), text)
	}
	f.Fuzz(func(t *testing.T, country byte, text string) {
		format := newFormat(t, formatCountries[int(country)%len(formatCountries)], "es", "MXN")
		if fault := amountFault(format, text); fault != "" {
			t.Errorf("%q in %q: %s", text, format.country, fault)
		}
	})
}

// amountFault returns what is wrong with how a text is read, or "".
func amountFault(f *format, text string) string {
	digits := func(s string) string {
		kept := strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return r
			}
			return -1
		}, s)
		return strings.TrimLeft(kept, "0")
	}
	literal, both, ok := f.readAmount(text)
	switch {
	case ok != (literal != ""):
		return "a literal, and not read"
	case ok && both != nil, both != nil && len(both) != 2:
		return "more than two readings"
	case ok && digits(literal) != digits(text):
		return "other digits: " + literal
	}
	if ok {
		both = []string{literal}
	}
	for _, reading := range both {
		d, err := parseDecimal(reading)
		if errors.Is(err, errNotNumber) {
			return "no JSON number: " + reading
		}
		if again, _, ok := f.readAmount(reading); len(both) == 2 && (!ok || again != reading) {
			return "still has two readings: " + reading
		}
		if again, _, ok := f.readAmount(f.Number(d)); err == nil && (!ok || !sameDecimal(again, d)) {
			return "is written and not read: " + f.Number(d)
		}
	}
	return ""
}

// sameDecimal reports whether a literal is the decimal d.
func sameDecimal(literal string, d decimal) bool {
	got, err := parseDecimal(literal)
	return err == nil && got == d
}
