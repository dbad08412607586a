package main

import (
	"embed"
	"math"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"sello/internal/locale"
	"sello/internal/texts"
)

// A format writes numbers, money and moments as an organization's people do: numbers by
// its country, words by the language of the page, moments in its time zone.
// Templates call its methods.
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

const nbsp = locale.NBSP

func (f *format) numbers() *locale.Numbers   { return locale.NumbersOf(f.country) }
func (f *format) calendar() *locale.Calendar { return locale.CalendarOf(f.language) }

// Number writes every digit of d: "1,234.5".
func (f *format) Number(d decimal) string { return f.numbers().Write(d.String(), 0) }

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
	places := locale.Places(f.currency)
	if d%decimalOne != 0 {
		places = max(places, 2)
	}
	return f.numbers().Write(d.String(), places)
}

// MoneyWithCode writes an amount and the code of its currency: "1,234.50 MXN". Signs
// such as $ belong to many currencies.
func (f *format) MoneyWithCode(d decimal) string { return f.Money(d) + nbsp + f.currency }

func (f *format) Currency() string { return f.currency }

func (f *format) Count(n uint64) string { return f.numbers().Group(strconv.FormatUint(n, 10)) }

// Percent writes a rate, 1 being 100 %, rounded to one decimal place: "38.2%". A rate beyond
// ±mostRate is written as that bound.
func (f *format) Percent(rate decimal) string {
	rate = min(max(rate, -mostRate), mostRate)
	percent, _ := roundRat(big.NewRat(int64(rate)*100, decimalOne), 1, roundHalfUp) // in range, by mostRate
	return f.Number(percent) + f.numbers().Percent + "%"
}

const mostRate = 999_999_999 * decimalOne

// today is the day in the organization's zone.
func (f *format) today() day { return dayOf(f.now, f.zone) }

// year is that of today, which days leave out.
func (f *format) year() int { return f.today().date().Year() }

// Day writes a day: "18 feb", with the year if that is not this year's.
func (f *format) Day(d day) string { return f.calendar().Day(d.date(), f.year()) }

// Days writes days that follow each other, with the month of both only once: "2–8 feb".
func (f *format) Days(from, to day) string {
	return f.calendar().Days(from.date(), to.date(), f.year())
}

// DayAndYear writes a day: "18 feb 2026".
func (f *format) DayAndYear(d day) string { return f.calendar().DayAndYear(d.date()) }

// LongDay writes a day for a sentence: "18 de febrero", with the year if that is not
// this year's.
func (f *format) LongDay(d day) string { return f.calendar().LongDay(d.date(), f.year()) }

// BirthDate writes a date of birth: "18 feb 1990", or "18 de febrero" without a year.
func (f *format) BirthDate(b birthDate) string {
	if b.hasYear() {
		return f.DayAndYear(b.day())
	}
	return f.calendar().DayOfYear(b.dayOfMonth(), b.month())
}

// Month writes the month of a day: "feb 2026".
func (f *format) Month(d day) string { return f.calendar().Month(d.date()) }

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
// It is to stand beside the moment itself.
func (f *format) Ago(i instant) string {
	if i == 0 || i == never {
		return ""
	}
	return f.calendar().Ago(int((f.now - i) / instant(time.Minute.Milliseconds())))
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

func (f *format) TimeNow() string { return f.Time(f.now) }

// IsToday reports whether a moment is of the organization's day.
func (f *format) IsToday(at instant) bool { return dayOf(at, f.zone) == dayOf(f.now, f.zone) }

// readAmount reads an amount as the organization's people type it (locale.Numbers.Read).
func (f *format) readAmount(text string) (literal string, both []string, ok bool) {
	return f.numbers().Read(text, f.currency)
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
