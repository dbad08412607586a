package main

import (
	"embed"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"sello/internal/texts"
)

// A format writes numbers, money and moments as an organization's people do: numbers by
// its country, words by the language of the page, moments in its time zone. The
// conventions come from CLDR 48 (testdata/cldr.txt). Templates call its methods.
type format struct {
	country  string // ISO 3166, such as "MX"
	language string // "es" or "en"
	currency string // ISO 4217, such as "MXN"
	zone     *time.Location
	now      instant
}

// formatOf is how the people of an organization write, in a language. It knows no present moment.
func formatOf(cfg *config, language string) *format {
	o := &cfg.Organization
	return &format{country: o.Profile.Country, language: language, currency: o.Settings.Currency, zone: cfg.zone}
}

// nbsp keeps a number and what belongs to it on one line.
const nbsp = "\u00a0"

// A numberStyle says how a country writes numbers.
type numberStyle struct {
	decimal string
	group   string // between groups of three digits
	from    int    // the least digits before the decimal sign that are grouped
	percent string // before the percent sign
}

var (
	pointStyle = numberStyle{".", ",", 4, ""}
	commaStyle = numberStyle{",", ".", 4, ""}
	spainStyle = numberStyle{",", ".", 5, nbsp}
	ricaStyle  = numberStyle{",", nbsp, 4, ""}
)

// style returns how the country writes numbers in Spanish, Brazil in Portuguese. A
// country in neither list writes as Latin America does, 1,234.5.
func (f *format) style() *numberStyle {
	switch f.country {
	case "AR", "BO", "BR", "CL", "CO", "EC", "PY", "UY", "VE":
		return &commaStyle
	case "EA", "ES", "GQ", "IC":
		return &spainStyle
	case "CR":
		return &ricaStyle
	}
	return &pointStyle
}

// moneyPlaces returns how many decimal places an amount of money has at least.
func (f *format) moneyPlaces() int {
	switch f.currency {
	case "CLP", "COP", "JPY", "KRW", "PYG", "XAF", "XOF":
		return 0
	}
	return 2
}

// Number writes every digit of d: "1,234.5". Three decimal places become four, since
// people read 1.234 as one thousand and some, and readAmount asks what is meant.
func (f *format) Number(d decimal) string { return f.number(d, 0) }

// Points writes points with what their program calls them: "1 Sello", "1.5 Sellos".
func (f *format) Points(n decimal, unit currencyName) string { return f.Number(n) + " " + unit.Of(n) }

// Decimal is Number for a figure that may be missing: then it is "".
func (f *format) Decimal(d *decimal) string {
	if d == nil {
		return ""
	}
	return f.Number(*d)
}

// Money writes an amount without its currency, as for a table whose heading names it. A part
// of a unit has two places at least, even where the currency has none: "1.500,50".
func (f *format) Money(d decimal) string {
	places := f.moneyPlaces()
	if d%decimalOne != 0 {
		places = max(places, 2)
	}
	return f.number(d, places)
}

// MoneyWithCode writes an amount and the code of its currency: "1,234.50 MXN". Signs
// such as $ belong to many currencies.
func (f *format) MoneyWithCode(d decimal) string { return f.Money(d) + nbsp + f.currency }

// Currency returns the code of the currency.
func (f *format) Currency() string { return f.currency }

// Count writes a whole number.
func (f *format) Count(n uint64) string { return f.group(strconv.FormatUint(n, 10)) }

// Percent writes a rate, 1 being 100 %, rounded to one decimal place: "38.2%". A rate beyond
// ±mostRate is written as that bound.
func (f *format) Percent(rate decimal) string {
	rate = min(max(rate, -mostRate), mostRate)
	percent, _ := roundRat(big.NewRat(int64(rate)*100, decimalOne), 1, roundHalfUp) // in range, by mostRate
	return f.number(percent, 0) + f.style().percent + "%"
}

const mostRate = 999_999_999 * decimalOne

// number writes d with so many decimal places or more.
func (f *format) number(d decimal, places int) string {
	whole, fraction, _ := strings.Cut(d.String(), ".")
	if len(fraction) == 3 {
		places = max(places, 4)
	}
	for len(fraction) < places {
		fraction += "0"
	}
	whole, negative := strings.CutPrefix(whole, "-")
	text := f.group(whole)
	if fraction != "" {
		text += f.style().decimal + fraction
	}
	if negative {
		text = "-" + text
	}
	return text
}

// group separates groups of three digits.
func (f *format) group(digits string) string {
	style := f.style()
	if len(digits) < style.from {
		return digits
	}
	first := (len(digits)-1)%3 + 1
	text := digits[:first]
	for i := first; i < len(digits); i += 3 {
		text += style.group + digits[i:i+3]
	}
	return text
}

// A calendarText has the words of dates in one language.
type calendarText struct {
	months, shortMonths [12]string
	longDay             string // of day and month
	longYear            string // of that and the year
	now, ago, in        string
	units               [5][2]string // minute, hour, day, month, year: one, other
}

var calendarTexts = map[string]*calendarText{
	"es": {
		months:      [12]string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"},
		shortMonths: [12]string{"ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"},
		longDay:     "%d de %s", longYear: "%s de %d",
		now: "ahora mismo", ago: "hace %d %s", in: "en %d %s",
		units: [5][2]string{{"min", "min"}, {"h", "h"}, {"día", "días"}, {"mes", "meses"}, {"año", "años"}},
	},
	"en": {
		months:      [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		shortMonths: [12]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
		longDay:     "%d %s", longYear: "%s %d",
		now: "just now", ago: "%d %s ago", in: "in %d %s",
		units: [5][2]string{{"min", "min"}, {"h", "h"}, {"day", "days"}, {"month", "months"}, {"year", "years"}},
	},
}

// calendar returns the words of the page's language, Spanish where it has none.
func (f *format) calendar() *calendarText {
	if text, ok := calendarTexts[f.language]; ok {
		return text
	}
	return calendarTexts["es"]
}

// today is the day in the organization's zone.
func (f *format) today() day { return dayOf(f.now, f.zone) }

// Day writes a day: "18 feb", with the year if that is not this year's.
func (f *format) Day(d day) string {
	if d.date().Year() != f.today().date().Year() {
		return f.DayAndYear(d)
	}
	return f.shortDay(d)
}

// Days writes days that follow each other, with the month of both only once: "2–8 feb".
func (f *format) Days(from, to day) string {
	year, month, number := from.date().Date()
	if y, m, last := to.date().Date(); y == year && m == month {
		if last == number {
			return f.Day(to)
		}
		return fmt.Sprintf("%d–%s", number, f.Day(to))
	}
	return f.Day(from) + " – " + f.Day(to)
}

func (f *format) shortDay(d day) string {
	_, month, number := d.date().Date()
	return fmt.Sprintf("%d %s", number, f.calendar().shortMonths[month-1])
}

// DayAndYear writes a day: "18 feb 2026".
func (f *format) DayAndYear(d day) string {
	return fmt.Sprintf("%s %d", f.shortDay(d), d.date().Year())
}

// LongDay writes a day for a sentence: "18 de febrero", with the year if that is not
// this year's.
func (f *format) LongDay(d day) string {
	year, month, number := d.date().Date()
	text := fmt.Sprintf(f.calendar().longDay, number, f.calendar().months[month-1])
	if year != f.today().date().Year() {
		text = fmt.Sprintf(f.calendar().longYear, text, year)
	}
	return text
}

// BirthDate writes a date of birth: "18 feb 1990", or "18 de febrero" without a year.
func (f *format) BirthDate(b birthDate) string {
	if b.hasYear() {
		return f.DayAndYear(b.day())
	}
	return fmt.Sprintf(f.calendar().longDay, b.dayOfMonth(), f.calendar().months[b.month()-1])
}

// Month writes the month of a day: "feb 2026".
func (f *format) Month(d day) string {
	year, month, _ := d.date().Date()
	return fmt.Sprintf("%s %d", f.calendar().shortMonths[month-1], year)
}

// The methods below return "" for a moment that is absent, 0 or never.

// Date writes the day of a moment: "18 feb 2026".
func (f *format) Date(i instant) string {
	if i == 0 || i == never {
		return ""
	}
	return f.DayAndYear(dayOf(i, f.zone))
}

// Time writes the time of day: "12:04".
func (f *format) Time(i instant) string { return f.clock(i, "15:04") }

// Seconds writes the time of day to the second: "12:04:31".
func (f *format) Seconds(i instant) string { return f.clock(i, time.TimeOnly) }

func (f *format) clock(i instant, layout string) string {
	if i == 0 || i == never {
		return ""
	}
	return i.time().In(f.zone).Format(layout)
}

// Moment writes a moment to the minute: "18 feb 2026, 12:04".
func (f *format) Moment(i instant) string {
	if i == 0 || i == never {
		return ""
	}
	return f.Date(i) + ", " + f.Time(i)
}

// UTC writes a moment for the datetime of a <time>.
func (f *format) UTC(i instant) string {
	if i == 0 || i == never {
		return ""
	}
	return i.String()
}

// Ago writes how long ago a moment was or how far off it is: "hace 5 min", "en 12 días".
// It counts whole units, 30 days for a month and 365 for a year, and is to stand beside
// the moment itself.
func (f *format) Ago(i instant) string {
	if i == 0 || i == never {
		return ""
	}
	text := f.calendar()
	form, span := text.ago, f.now-i
	if span < 0 {
		form, span = text.in, -span
	}
	minutes := int(span / instant(time.Minute.Milliseconds()))
	if minutes == 0 {
		return text.now
	}
	const hour, day, month, year = 60, 24 * 60, 30 * 24 * 60, 365 * 24 * 60
	unit, n := 0, minutes
	for u, length := range []int{1, hour, day, month, year} {
		if minutes >= length {
			unit, n = u, minutes/length
		}
	}
	if n == 1 {
		return fmt.Sprintf(form, n, text.units[unit][0])
	}
	return fmt.Sprintf(form, n, text.units[unit][1])
}

// Int is a number of things; not below zero.
func (f *format) Int(n int) string { return f.Count(uint64(max(n, 0))) }

// CostOf is a figure of a form; "" for none.
func (f *format) CostOf(d decimal) string {
	if d == 0 {
		return ""
	}
	return f.Number(d)
}

// Millis writes how long a request took, to a tenth of a millisecond.
func (f *format) Millis(d decimal) string {
	const tenth = decimalOne / 10
	return f.Number((d + tenth/2) / tenth * tenth)
}

// PercentOf writes a part of a whole.
func (f *format) PercentOf(part, whole uint64) string {
	if whole == 0 {
		return ""
	}
	return f.Percent(decimal(float64(part) / float64(whole) * decimalOne))
}

// Bytes writes a length: "41.2 MB".
func (f *format) Bytes(n int64) string {
	units, unit, size := []string{"B", "kB", "MB", "GB", "TB"}, 0, float64(n)
	for size >= 999.5 && unit < len(units)-1 {
		size /= 1000
		unit++
	}
	tenths := math.Round(size * 10)
	if size >= 100 || unit == 0 {
		tenths = math.Round(size) * 10
	}
	return f.Number(decimal(tenths)*decimalOne/10) + nbsp + units[unit]
}

// FreeBytes is Bytes of what only counts up.
func (f *format) FreeBytes(n uint64) string { return f.Bytes(int64(min(n, math.MaxInt64))) }

// TimeNow is the time of day.
func (f *format) TimeNow() string { return f.Time(f.now) }

// IsToday reports whether a moment is of the organization's day.
func (f *format) IsToday(at instant) bool { return dayOf(at, f.zone) == dayOf(f.now, f.zone) }

// readAmount reads an amount as people type it. The literal is a JSON number for the
// API's reader of decimals, which finds what is wrong with -5, 0 or 1.23456. ok is false
// if the text is no number. It is false too if the text has two readings, and then both
// has them as literals: 1.500 may be one and a half, or one thousand five hundred. Where
// people write 1.500,00 it is the latter. Either reading, typed again, has one reading.
//
// Sources: one decimal sign followed by 1, 2 or 4 digits is a decimal sign in every
// country; so is one followed by 3 if the digits before it are no group. Blanks and the
// country's own sign between proper groups of three digits are separators of thousands.
// The sign of a currency and the organization's code of it may stand beside the number.
func (f *format) readAmount(text string) (literal string, both []string, ok bool) {
	digits, negative := f.bareAmount(text)
	sign := ""
	if negative {
		sign = "-"
	}
	thousands, grouped := ungroup(digits)
	whole, fraction, broken := splitAmount(digits)
	switch {
	case grouped && broken && !strings.Contains(digits, f.separator()):
		// Four places, so that it cannot be taken for a group again.
		return "", []string{sign + whole + "." + fraction + "0", sign + thousands}, false
	case grouped:
		return sign + thousands, nil, true
	case broken:
		return sign + whole + "." + fraction, nil, true
	}
	return "", nil, false
}

// separator is the sign that separates thousands where the country's decimal sign does
// not.
func (f *format) separator() string {
	if f.style().decimal == "." {
		return ","
	}
	return "."
}

// bareAmount takes away blanks, sign and currency around an amount, and makes all blanks
// in it one kind.
func (f *format) bareAmount(text string) (digits string, negative bool) {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r): // U+00A0, U+2009 and U+202F, which separate thousands, too
			return ' '
		case r == '−': // U+2212, the minus sign of typography
			return '-'
		}
		return r
	}, text)
	text = f.withoutCurrency(text)
	text, negative = strings.CutPrefix(text, "-")
	return f.withoutCurrency(text), negative
}

// withoutCurrency takes away one sign or code of a currency at either end.
func (f *format) withoutCurrency(text string) string {
	text = strings.TrimSpace(text)
	if first, size := utf8.DecodeRuneInString(text); unicode.Is(unicode.Sc, first) {
		text = text[size:]
	} else if last, size := utf8.DecodeLastRuneInString(text); unicode.Is(unicode.Sc, last) {
		text = text[:len(text)-size]
	}
	if n := len(f.currency); n > 0 && len(text) > n {
		if strings.EqualFold(text[:n], f.currency) {
			text = text[n:]
		} else if strings.EqualFold(text[len(text)-n:], f.currency) {
			text = text[:len(text)-n]
		}
	}
	return strings.TrimSpace(text)
}

var (
	plainDigits   = regexp.MustCompile(`^[0-9]+$`)
	groupedDigits = regexp.MustCompile(`^[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+|(?:,[0-9]{3})+|(?: [0-9]{3})+)$`)
	withoutGroups = strings.NewReplacer(".", "", ",", "", " ", "")
)

// ungroup returns the digits of a whole number, with or without separators of thousands.
func ungroup(text string) (digits string, ok bool) {
	if groupedDigits.MatchString(text) {
		return withoutGroups.Replace(text), true
	}
	if !plainDigits.MatchString(text) {
		return "", false
	}
	if digits = strings.TrimLeft(text, "0"); digits == "" {
		return "0", true
	}
	return digits, true
}

// splitAmount splits a number at its decimal sign, whichever of the two it is.
func splitAmount(text string) (whole, fraction string, ok bool) {
	at := strings.LastIndexAny(text, ".,")
	if at < 0 {
		return "", "", false
	}
	before, sign, fraction := text[:at], text[at:at+1], text[at+1:]
	if strings.Contains(before, sign) || !plainDigits.MatchString(fraction) {
		return "", "", false
	}
	if before == "" { // .5
		return "0", fraction, true
	}
	whole, ok = ungroup(before)
	return whole, fraction, ok
}

// The texts of the panel, in Spanish and English, are the tables panel/*.txt (internal/texts). The
// API's texts are Spanish alone (spec).

//go:embed panel/*.txt
var textFiles embed.FS

// allTexts are the texts of the panel, its errors included.
var allTexts = sync.OnceValue(func() texts.Table {
	all, err := texts.Read(textFiles, "panel/*.txt")
	if err != nil {
		panic(err) // the tables are part of the binary, which tests have read
	}
	return all
})

// tr is the text of a name, with its arguments. Tests open every page.
func tr(lang texts.Language, name string, args ...any) string { return lang.Text(name, args...) }

// counted is tr of a text with a number of things, which is its first argument. The text of
// one thing has a name that ends in ".one", and says the number itself.
func counted(lang texts.Language, name, n string, others ...any) string {
	if n == "1" {
		return tr(lang, name+".one", others...)
	}
	return tr(lang, name, append([]any{n}, others...)...)
}

// languageOf is the code of a page's language: the member's choice, the organization's, or the
// browser's.
func languageOf(m *member, cfg *config, r *http.Request) string {
	if m != nil && m.user.Language != "" {
		return m.user.Language
	}
	if cfg != nil && strings.HasPrefix(cfg.Organization.Settings.Language, "en") {
		return "en"
	}
	if cfg != nil {
		return "es"
	}
	return texts.Accepted(r.Header.Get("Accept-Language"))
}
