package sheet

import (
	"strings"
	"testing"
)

// TestNumberCells reads numbers as they stand in files with each separator.
func TestNumberCells(t *testing.T) {
	t.Parallel()
	const twoWays = "?"
	for _, test := range []struct{ cell, comma, semicolon, tab, point, decimalComma string }{
		{"12", "12", "12", "12", "12", "12"},
		{"-12", "-12", "-12", "-12", "-12", "-12"},
		{" $ 12 ", "12", "12", "12", "12", "12"},
		{"12 €", "12", "12", "12", "12", "12"},
		{"-$12.50", "-12.50", "-12.50", "-12.50", "-12.50", "-12.50"},
		{"12.5", "12.5", "12.5", "12.5", "12.5", "12.5"},
		{"12,5", "12.5", "12.5", "12.5", "12.5", "12.5"},
		{"0,125", "0.125", "0.125", "0.125", "0.125", "0.125"},
		{"1.250", "1.250", twoWays, twoWays, "1.250", "1250"},
		{"1,250", twoWays, "1.250", twoWays, "1250", "1.250"},
		{"1,250.5", "1250.5", "1250.5", "1250.5", "1250.5", "1250.5"},
		{"1.250,5", "1250.5", "1250.5", "1250.5", "1250.5", "1250.5"},
		{"1,250,000", "1250000", "1250000", "1250000", "1250000", "1250000"},
		{"1.250.000,25", "1250000.25", "1250000.25", "1250000.25", "1250000.25", "1250000.25"},
		{"12.50.1", "12.50.1", "12.50.1", "12.50.1", "12.50.1", "12.50.1"},
		{"1,2,3", "1,2,3", "1,2,3", "1,2,3", "1,2,3", "1,2,3"},
		{"1e2", "1e2", "1e2", "1e2", "1e2", "1e2"},
		{"mil", "mil", "mil", "mil", "mil", "mil"},
		{"", "", "", "", "", ""},
	} {
		for _, as := range []struct {
			form NumberForm
			want string
		}{
			{NumberForm{',', 0, ""}, test.comma}, {NumberForm{';', 0, ""}, test.semicolon}, {NumberForm{'\t', 0, ""}, test.tab},
			{NumberForm{';', '.', ""}, test.point}, {NumberForm{',', ',', ""}, test.decimalComma},
		} {
			got, err := as.form.Plain(test.cell)
			if err == ErrNumber {
				got = twoWays
			}
			if got != as.want {
				t.Errorf("%q in %+v: %q, want %q", test.cell, as.form, got, as.want)
			}
		}
	}
}

// TestCurrencyCells: the sign and the code of a file's currency go off amounts, those of
// another one do not (contract §31).
func TestCurrencyCells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ currency, cells, want string }{
		{"BRL", "R$ 1.234,50|R$12|-R$ 12|R$ -12|BRL 12|12 brl|R$\u00a012,5|12", "1234.50|12|-12|-12|12|12|12.5|12"},
		{"PEN", "S/ 12.50|S/. 12.50|S/12|12.50 PEN|R$ 12", "12.50|12.50|12|12.50|R$ 12"},
		{"MXN", "$12.50 MXN|MX$ 12.50|MXN 12.50|mxn12.50|$12.50|US$ 12", "12.50|12.50|12.50|12.50|12.50|US$ 12"},
		{"USD", "US$ 1,234.50|U$S 12|USD$12|12 USD", "1234.50|12|12|12"},
		{"UYU", "$U 12|₡12", "12|₡12"},
		{"CRC", "₡12.50|12 ₡", "12.50|12"},
		{"JPY", "JPY 12|", "12|"},
		{"", "MXN 12", "MXN 12"},
	} {
		want := strings.Split(test.want, "|")
		for i, cell := range strings.Split(test.cells, "|") {
			if got, err := (NumberForm{',', 0, test.currency}).Plain(cell); err != nil || got != want[i] {
				t.Errorf("%q in %s: %q, want %q", cell, test.currency, got, want[i])
			}
		}
	}
}

// TestDateCells reads dates as spreadsheets write them.
func TestDateCells(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"2026-11-23": "2026-11-23", "23/11/2026": "2026-11-23", "3/1/2026": "2026-01-03", "23-11-2026": "2026-11-23", "23.11.2026": "2026-11-23",
		"2026/11/23": "2026-11-23", "23/11/2026 0:00": "2026-11-23", "2026-11-23 00:00:00": "2026-11-23",
		"23/11/2026 9:05": "2026-11-23T09:05:00", "23/11/2026, 18:30:15": "2026-11-23T18:30:15", "2026-11-23 18:30:15.250": "2026-11-23T18:30:15",
		"23/11/2026 06:30:00 p. m.": "2026-11-23T18:30:00", "23/11/2026 06:30\u00a0p.\u00a0m.": "2026-11-23T18:30:00", "23/11/2026 12:15 AM": "2026-11-23T00:15:00",
		"2026-11-23T10:00:00Z": "2026-11-23T10:00:00Z", "23/11/26": "23/11/26", "ayer": "ayer", "": "", "23/11/2026 13:00 PM": "23/11/2026 13:00 PM",
		"2026-11-01 09:50:26 +0200": "2026-11-01T09:50:26+0200", "2026-11-01 09:50:26 UTC": "2026-11-01T09:50:26Z", "2026-11-01 00:00:00 -03:00": "2026-11-01T00:00:00-03:00",
		"1/11/2026 9:50 p. m. GMT": "2026-11-01T21:50:00Z", "2026-11-01 09:50:26 CEST": "2026-11-01 09:50:26 CEST",
		"31/02/2026": "2026-02-31", // no day, and refused as such
	} {
		if got, err := (DateForm{}).Plain(cell); got != want || err != nil {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

// TestYearlessCells: birthdays without a year in the forms of contract §31, each as the file that it
// stands in has its dates.
func TestYearlessCells(t *testing.T) {
	t.Parallel()
	const twoWays = "?"
	for _, test := range []struct{ others, cell, unknown, dmy, mdy string }{
		{"", "--05-14", "--05-14", "--05-14", "--05-14"},
		{"", "05-14", "--05-14", "--14-05", "--05-14"},
		{"", "5-4", "--05-04", "--04-05", "--05-04"},
		{"", "14-05", "--05-14", "--05-14", "--14-05"},
		{"", "14/05", "--05-14", "--05-14", "--14-05"},
		{"", " 4/5 ", "--05-04", "--05-04", "--04-05"},
		{"", "13/13", "--13-13", "--13-13", "--13-13"},
		{"", "5.10", "5.10", "5.10", "5.10"},
		{"", "14/05/1990", "1990-05-14", "1990-05-14", "1990-14-05"},
		{"05/14", "05/14", "--05-14", "--14-05", "--05-14"},
		{"05/14", "14/05", "--05-14", "--05-14", "--14-05"},
		{"05/14", "04/05", twoWays, "--05-04", "--04-05"},
		{"05/14", "04/05/1990", twoWays, "1990-05-04", "1990-04-05"},
		{"05/14", "04-05", "--04-05", "--05-04", "--04-05"},
		{"05/14/1990", "04/05", twoWays, "--05-04", "--04-05"},
		{"14-05", "04-05", twoWays, "--05-04", "--04-05"},
		{"14-05", "05-14", "--05-14", "--14-05", "--05-14"},
		{"14-05", "05-05", "--05-05", "--05-05", "--05-05"},
		{"14-05", "04/05", "--05-04", "--05-04", "--04-05"},
	} {
		for order, want := range map[DateOrder]string{Unordered: test.unknown, DayMonth: test.dmy, MonthDay: test.mdy} {
			f := DateForm{Order: order}
			f.Learn(test.others, true)
			got, err := f.Birthday(test.cell)
			if err != nil {
				got = twoWays
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%q beside %q, order %q: %q, want %q", test.cell, test.others, order, got, want)
			}
		}
	}
	f := DateForm{}
	if f.Learn("05/14", false); f.mixed {
		t.Error("another column's cell tells the order of dates")
	}
}
