package locale

import (
	"fmt"
	"time"
)

// A Calendar has the words of dates in one language.
type Calendar struct {
	Months       [12]string
	shortMonths  [12]string
	longDay      string // of day and month
	longYear     string // of that and the year
	now, ago, in string
	units        [5][2]string // minute, hour, day, month, year: one, other
}

var calendars = map[string]*Calendar{
	"es": {
		Months:      [12]string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"},
		shortMonths: [12]string{"ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"},
		longDay:     "%d de %s", longYear: "%s de %d",
		now: "ahora mismo", ago: "hace %d %s", in: "en %d %s",
		units: [5][2]string{{"min", "min"}, {"h", "h"}, {"día", "días"}, {"mes", "meses"}, {"año", "años"}},
	},
	"en": {
		Months:      [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		shortMonths: [12]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
		longDay:     "%d %s", longYear: "%s %d",
		now: "just now", ago: "%d %s ago", in: "in %d %s",
		units: [5][2]string{{"min", "min"}, {"h", "h"}, {"day", "days"}, {"month", "months"}, {"year", "years"}},
	},
}

// CalendarOf returns the words of a language, such as "es"; those of Spanish where it has none.
func CalendarOf(language string) *Calendar {
	if c, ok := calendars[language]; ok {
		return c
	}
	return calendars["es"]
}

// Day writes a day: "18 feb", with the year if that is not this one.
func (c *Calendar) Day(d time.Time, this int) string {
	if d.Year() != this {
		return c.DayAndYear(d)
	}
	return fmt.Sprintf("%d %s", d.Day(), c.shortMonths[d.Month()-1])
}

// Days writes days that follow each other, with the month of both only once: "2–8 feb".
func (c *Calendar) Days(from, to time.Time, this int) string {
	if from.Year() != to.Year() || from.Month() != to.Month() {
		return c.Day(from, this) + " – " + c.Day(to, this)
	}
	if from.Day() == to.Day() {
		return c.Day(to, this)
	}
	return fmt.Sprintf("%d–%s", from.Day(), c.Day(to, this))
}

// DayAndYear writes a day: "18 feb 2026".
func (c *Calendar) DayAndYear(d time.Time) string {
	return fmt.Sprintf("%s %d", c.Day(d, d.Year()), d.Year())
}

// LongDay writes a day for a sentence: "18 de febrero", with the year if that is not this one.
func (c *Calendar) LongDay(d time.Time, this int) string {
	text := c.DayOfYear(d.Day(), d.Month())
	if d.Year() != this {
		text = fmt.Sprintf(c.longYear, text, d.Year())
	}
	return text
}

// DayOfYear writes a day without its year: "18 de febrero".
func (c *Calendar) DayOfYear(day int, month time.Month) string {
	return fmt.Sprintf(c.longDay, day, c.Months[month-1])
}

// Month writes the month of a day: "feb 2026".
func (c *Calendar) Month(d time.Time) string {
	return fmt.Sprintf("%s %d", c.shortMonths[d.Month()-1], d.Year())
}

// LongMonth writes the month of a day for a sentence: "febrero de 2026".
func (c *Calendar) LongMonth(d time.Time) string {
	return fmt.Sprintf(c.longYear, c.Months[d.Month()-1], d.Year())
}

// Ago writes how many minutes ago something was, or below 0 how far off it is: "hace 5 min", "en
// 12 días". It counts whole units, 30 days for a month and 365 for a year.
func (c *Calendar) Ago(minutes int) string {
	form := c.ago
	if minutes < 0 {
		form, minutes = c.in, -minutes
	}
	if minutes == 0 {
		return c.now
	}
	const hour, day, month, year = 60, 24 * 60, 30 * 24 * 60, 365 * 24 * 60
	unit, n := 0, minutes
	for u, length := range []int{1, hour, day, month, year} {
		if minutes >= length {
			unit, n = u, minutes/length
		}
	}
	if n == 1 {
		return fmt.Sprintf(form, n, c.units[unit][0])
	}
	return fmt.Sprintf(form, n, c.units[unit][1])
}
