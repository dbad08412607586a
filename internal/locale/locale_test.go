package locale

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCLDR holds the styles of countries, the places of currencies and the names
// of months against CLDR's.
func TestCLDR(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/cldr.txt")
	if err != nil {
		t.Fatal(err)
	}
	signs := strings.NewReplacer("blank", NBSP, "-", "")
	countries := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case words[0] == "country":
			countries++
			grouping, _ := strconv.Atoi(words[4])
			want := Numbers{signs.Replace(words[2]), signs.Replace(words[3]), 3 + grouping, signs.Replace(words[5])}
			if got := *NumbersOf(words[1]); got != want {
				t.Errorf("%s: %+v, CLDR has %+v", words[1], got, want)
			}
			if got := strconv.Itoa(Places(words[6])); got != words[7] {
				t.Errorf("%s: %s places, CLDR has %s", words[6], got, words[7])
			}
		case words[0] == "short":
			if got := calendars[words[1]].shortMonths[:]; !slices.Equal(got, words[2:]) {
				t.Errorf("%s: %q, CLDR has %q", words[1], got, words[2:])
			}
		case words[0] == "long":
			if got := calendars[words[1]].Months[:]; !slices.Equal(got, words[2:]) {
				t.Errorf("%s: %q, CLDR has %q", words[1], got, words[2:])
			}
		}
	}
	if countries < 20 {
		t.Errorf("%d countries in testdata/cldr.txt", countries)
	}
}

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
		literal, both, ok := NumbersOf(c.country).Read(c.text, "MXN")
		got := literal
		if !ok {
			got = strings.Join(both, "|")
		}
		if got != c.want || ok != (c.want != "" && !strings.Contains(c.want, "|")) {
			t.Errorf("%s: %q in %s: %q, %v; want %q", c.reason, c.text, c.country, got, ok, c.want)
		}
	}
}
