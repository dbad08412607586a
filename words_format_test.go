package main

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sello/internal/tz"
)

// formatCountries are the countries of every style of numbers.
var formatCountries = []string{"MX", "CO", "ES", "CR", "US", "BR", "DE", ""}

func newFormat(t testing.TB, country, language, currency string) *format {
	t.Helper()
	zone, err := tz.Load("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	now := instantOf(time.Date(2026, 11, 23, 18, 4, 31, 0, time.UTC))
	return &format{country: country, language: language, currency: currency, zone: zone, now: now}
}

func TestFormatNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ country, in, number, money string }{
		{"MX", "0", "0", "0.00"},
		{"MX", "999.9", "999.9", "999.90"},
		{"MX", "1234.5", "1,234.5", "1,234.50"},
		{"MX", "-1234.5", "-1,234.5", "-1,234.50"},
		{"MX", "-0.25", "-0.25", "-0.25"},
		{"MX", "1.234", "1.2340", "1.2340"},
		{"MX", "0.0001", "0.0001", "0.0001"},
		{"MX", "99999999999.9999", "99,999,999,999.9999", "99,999,999,999.9999"},
		{"CO", "1234567.5", "1.234.567,5", "1.234.567,50"},
		{"ES", "1234.5", "1234,5", "1234,50"},
		{"ES", "12345", "12.345", "12.345,00"},
		{"CR", "1234.5", "1\u00a0234,5", "1\u00a0234,50"},
		{"DE", "1234.5", "1,234.5", "1,234.50"},
	} {
		f := newFormat(t, c.country, "es", "MXN")
		d, err := parseDecimal(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if number, money := f.Number(d), f.Money(d); number != c.number || money != c.money {
			t.Errorf("%s in %s: %q and %q, want %q and %q", c.in, c.country, number, money, c.number, c.money)
		}
	}
	f := newFormat(t, "CL", "es", "CLP")
	if got := f.MoneyWithCode(decimalOf(1500)); got != "1.500\u00a0CLP" {
		t.Errorf("%q", got)
	}
	if got := f.Count(18_446_744_073_709_551_615); got != "18.446.744.073.709.551.615" {
		t.Errorf("%q", got)
	}
}

func TestFormatPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		country string
		rate    decimal
		want    string
	}{
		{"MX", 3800, "38%"},
		{"MX", 3825, "38.3%"},
		{"MX", -3825, "-38.3%"},
		{"ES", 3820, "38,2\u00a0%"},
		{"MX", 10_0000, "1,000%"},
		{"MX", maxDecimal, "99,999,999,900%"},
		{"MX", -maxDecimal, "-99,999,999,900%"},
	} {
		if got := newFormat(t, c.country, "es", "MXN").Percent(c.rate); got != c.want {
			t.Errorf("%v in %s: %q, want %q", c.rate, c.country, got, c.want)
		}
	}
}

func TestFormatMoments(t *testing.T) {
	t.Parallel()
	es, en := newFormat(t, "MX", "es", "MXN"), newFormat(t, "MX", "en", "MXN")
	at := instantOf(time.Date(2026, 2, 19, 5, 4, 31, 0, time.UTC)) // still the 18th there
	feb, old := dayOn(2026, 2, 18), dayOn(2024, 9, 1)
	for _, c := range []struct{ got, want string }{
		{es.Day(feb), "18 feb"}, {en.Day(feb), "18 Feb"},
		{es.Day(old), "1 sept 2024"}, {en.Day(old), "1 Sep 2024"},
		{es.DayAndYear(feb), "18 feb 2026"},
		{es.Days(feb, feb), "18 feb"}, {en.Days(feb-2, feb), "16–18 Feb"}, {es.Days(old, old+1), "1–2 sept 2024"},
		{es.Days(feb-20, feb), "29 ene – 18 feb"}, {es.Days(dayOn(2025, 12, 29), dayOn(2026, 1, 4)), "29 dic 2025 – 4 ene"},
		{es.Days(dayOn(2025, 2, 1), feb), "1 feb 2025 – 18 feb"},
		{es.LongDay(feb), "18 de febrero"}, {en.LongDay(feb), "18 February"},
		{es.LongDay(old), "1 de septiembre de 2024"}, {en.LongDay(old), "1 September 2024"},
		{es.BirthDate(19900514), "14 may 1990"}, {en.BirthDate(19900514), "14 May 1990"}, {es.BirthDate(514), "14 de mayo"}, {en.BirthDate(229), "29 February"},
		{es.Month(feb), "feb 2026"}, {en.Month(feb), "Feb 2026"},
		{es.Date(at), "18 feb 2026"}, {en.Date(at), "18 Feb 2026"},
		{es.Time(at), "23:04"}, {es.Seconds(at), "23:04:31"},
		{es.Moment(at), "18 feb 2026, 23:04"}, {en.Moment(at), "18 Feb 2026, 23:04"},
		{es.UTC(at), "2026-02-19T05:04:31.000Z"},
		{es.Date(0) + es.Time(0) + es.Seconds(never) + es.Moment(never) + es.UTC(0) + es.Ago(never), ""},
		{(&format{language: "fr", zone: time.UTC, now: at}).Day(feb), "18 feb"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestFormatAgo(t *testing.T) {
	t.Parallel()
	es, en := newFormat(t, "MX", "es", "MXN"), newFormat(t, "MX", "en", "MXN")
	const day = 24 * time.Hour
	for _, c := range []struct {
		before time.Duration
		es, en string
	}{
		{0, "ahora mismo", "just now"},
		{59 * time.Second, "ahora mismo", "just now"},
		{-59 * time.Second, "ahora mismo", "just now"},
		{time.Minute, "hace 1 min", "1 min ago"},
		{5*time.Minute + 59*time.Second, "hace 5 min", "5 min ago"},
		{time.Hour, "hace 1 h", "1 h ago"},
		{day - time.Second, "hace 23 h", "23 h ago"},
		{day, "hace 1 día", "1 day ago"},
		{29 * day, "hace 29 días", "29 days ago"},
		{30 * day, "hace 1 mes", "1 month ago"},
		{364 * day, "hace 12 meses", "12 months ago"},
		{365 * day, "hace 1 año", "1 year ago"},
		{-12 * day, "en 12 días", "in 12 days"},
		{-730 * day, "en 2 años", "in 2 years"},
	} {
		at := es.now.add(-c.before)
		if got := es.Ago(at); got != c.es {
			t.Errorf("%v before: %q, want %q", c.before, got, c.es)
		}
		if got := en.Ago(at); got != c.en {
			t.Errorf("%v before: %q, want %q", c.before, got, c.en)
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
