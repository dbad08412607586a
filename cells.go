package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cells as spreadsheets write them: numbers with a decimal comma, dates by day, month
// and year, and texts that look like formulas.

// A numberForm says how a file writes numbers.
type numberForm struct {
	separator rune // of the cells
	decimal   rune // '.' or ',', where either may be meant; 0 if the command line does not say

	currency string // ISO 4217, of the organization
}

// currencySigns are what people write before or after amounts of a currency beside its code and the
// signs that go off all of them. The longer stands before what it begins with.
var currencySigns = map[string][]string{
	"ARS": {"AR$"}, "BOB": {"Bs."}, "BRL": {"R$"}, "CLP": {"CLP$"}, "COP": {"COL$"}, "CRC": {"₡"}, "DOP": {"RD$"},
	"GBP": {"£"}, "GTQ": {"Q"}, "HNL": {"L"}, "MXN": {"MX$", "MEX$"}, "NIO": {"C$"}, "PAB": {"B/."}, "PEN": {"S/.", "S/"},
	"PYG": {"₲", "Gs."}, "USD": {"US$", "U$S", "USD$"}, "UYU": {"$U", "UY$"}, "VES": {"Bs."},
}

// signs go off all amounts, whatever the currency.
const signs = "$€ \u00a0\u202f"

// bare is an amount without the signs and the code of the currency at its ends.
func (f numberForm) bare(amount string) string {
	amount = strings.Trim(trimBlanks(amount), "\u00a0\u202f")
	if f.currency != "" {
		for _, sign := range append(currencySigns[f.currency], f.currency) {
			if start := len(amount) - len(sign); start >= 0 && strings.EqualFold(amount[:len(sign)], sign) {
				return strings.Trim(amount[len(sign):], signs)
			} else if start >= 0 && strings.EqualFold(amount[start:], sign) {
				return strings.Trim(amount[:start], signs)
			}
		}
	}
	return strings.Trim(amount, signs)
}

// plain spells a number as JSON does, without thousands separators and currency sign. A cell
// that is no number stays as it is. ok is false if the number can be read in two ways: 1.250
// and 1,250 may be one and a quarter, or one thousand two hundred and fifty.
func (f numberForm) plain(cell string) (text string, ok bool) {
	text = f.bare(cell)
	digits, negative := strings.CutPrefix(text, "-")
	if negative {
		digits = f.bare(digits)
		text = "-" + digits
	}
	point, comma := strings.Count(digits, "."), strings.Count(digits, ",")
	if point+comma == 0 || !numeric.MatchString(digits) {
		return text, true
	}
	decimal, ok := f.decimalOf(digits, point, comma)
	if !ok {
		return cell, false
	}
	thousands := "."
	if decimal == '.' {
		thousands = ","
	}
	whole, fraction, broken := strings.Cut(digits, string(decimal))
	if strings.Contains(whole, thousands) && !grouped.MatchString(whole) {
		return cell, true
	}
	if text = strings.ReplaceAll(whole, thousands, ""); broken {
		text += "." + fraction
	}
	if negative {
		text = "-" + text
	}
	return text, true
}

var (
	numeric = regexp.MustCompile(`^[0-9]+([.,][0-9]+)*$`)
	grouped = regexp.MustCompile(`^[0-9]{1,3}([.,][0-9]{3})+$`)
)

// decimalOf returns the decimal sign of a number with the given counts of points and commas. ok
// is false if the number can be read in two ways.
func (f numberForm) decimalOf(digits string, point, comma int) (sign rune, ok bool) {
	switch {
	case point > 0 && comma > 0 && strings.LastIndex(digits, ".") > strings.LastIndex(digits, ","), comma > 1:
		return '.', true
	case point > 0 && comma > 0, point > 1:
		return ',', true
	}
	sign = ','
	if point == 1 {
		sign = '.'
	}
	if !grouped.MatchString(digits) || digits[0] == '0' {
		return sign, true
	}
	if f.decimal != 0 {
		return f.decimal, true
	}
	// In a file whose cells are separated by commas the decimal sign is the point; in one with
	// semicolons it is the comma.
	return sign, f.separator == ',' && sign == '.' || f.separator == ';' && sign == ','
}

// inTwoWays is the fault of a number that plain cannot read.
const inTwoWays = "se puede leer de dos maneras; con -decimal coma o -decimal punto se decide"

// Dates by day, month and year, or with the year first; a time may follow.
var (
	dayFirst  = regexp.MustCompile(`^([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4})(?:,? +(.+))?$`)
	yearFirst = regexp.MustCompile(`^([0-9]{4})[/.-]([0-9]{1,2})[/.-]([0-9]{1,2})(?: +(.+))?$`)
	timeOfDay = regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?(?: ?([AaPp])\.? ?[Mm]\.?)?(?: ?(UTC|GMT|Z|[+-][0-9]{2}:?[0-9]{2}))?$`)
)

// A dateOrder says which of two numbers before a year is the month.
type dateOrder string

const (
	orderUnknown  dateOrder = ""
	orderDayMonth dateOrder = "dmy"
	orderMonthDay dateOrder = "mdy"
)

// A dateForm says how a file writes dates.
type dateForm struct {
	order dateOrder // that the command line says
	mixed bool      // some dates of the file can only have the month first

	dayDashed bool // some birthdays without a year, such as 14-05, can only have the day first
}

// learn takes from a cell of a column what it tells of the file.
func (f *dateForm) learn(column, cell string) {
	f.mixed = f.mixed || isMonthFirst(cell)
	m := yearlessPattern(cell)
	if column != "birthDate" || m == nil {
		return
	}
	switch m[2] {
	case "/":
		f.mixed = f.mixed || onlyMonthFirst(m[1], m[3])
	case "-":
		f.dayDashed = f.dayDashed || onlyMonthFirst(m[3], m[1])
	}
}

// monthFirst reports whether a date that begins with these numbers has the month first. ok
// is false if the date can be read in two ways. If nothing says otherwise, the day is first.
func (f dateForm) monthFirst(first, second string) (yes, ok bool) {
	if f.order != orderUnknown || !f.mixed {
		return f.order == orderMonthDay, true
	}
	a, _ := strconv.Atoi(first)
	b, _ := strconv.Atoi(second)
	return a <= 12 && b > 12, a > 12 || b > 12 || a == b
}

// isMonthFirst reports whether a cell is a date that can only have the month first.
func isMonthFirst(cell string) bool {
	m := datePattern(cell)
	return m != nil && onlyMonthFirst(m[1], m[2])
}

// onlyMonthFirst reports whether the first of two numbers can be a month, and the second but a day.
func onlyMonthFirst(first, second string) bool {
	a, _ := strconv.Atoi(first)
	b, _ := strconv.Atoi(second)
	return 1 <= a && a <= 12 && 12 < b && b <= 31
}

// datePattern returns the parts of a cell that dayFirst matches, or nil.
func datePattern(cell string) []string {
	if len(cell) < len("1/1/2000") {
		return nil
	}
	return dayFirst.FindStringSubmatch(plainBlanks(cell))
}

// plainBlanks replaces blanks that do not break a line by plain ones.
func plainBlanks(cell string) string { return trimBlanks(unbroken.Replace(cell)) }

var unbroken = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// dateInTwoWays is the fault of a date that plain cannot read.
const dateInTwoWays = "se puede leer de dos maneras, porque otras fechas del archivo llevan primero el mes; con -dates dmy o -dates mdy se decide"

// plain spells a date of a spreadsheet as ISO 8601. A cell that is no such date stays as it
// is. A time of midnight is dropped: a spreadsheet adds it to a bare date. ok is false if the
// date can be read in two ways.
func (f dateForm) plain(cell string) (text string, ok bool) {
	text = plainBlanks(cell)
	m := datePattern(text)
	if m == nil {
		return isoDate(cell, yearFirst.FindStringSubmatch(text)), true
	}
	monthFirst, ok := f.monthFirst(m[1], m[2])
	if monthFirst {
		return isoDate(cell, []string{"", m[3], m[1], m[2], m[4]}), ok
	}
	return isoDate(cell, []string{"", m[3], m[2], m[1], m[4]}), ok
}

// yearless matches a birthday without a year: 14/05, or 05-14. With a point it could be a number.
var yearless = regexp.MustCompile(`^([0-9]{1,2})([/-])([0-9]{1,2})$`)

// yearlessPattern returns the parts of a cell that yearless matches, or nil.
func yearlessPattern(cell string) []string {
	if cell = plainBlanks(cell); len(cell) > len("05-14") {
		return nil
	}
	return yearless.FindStringSubmatch(cell)
}

// dashedInTwoWays is the fault of a birthday that birthDate cannot read.
const dashedInTwoWays = "se puede leer de dos maneras, porque otros cumpleaños del archivo llevan primero el día; con -dates dmy o -dates mdy se decide"

// birthDate is plain for a date of birth, whose year may be missing. 14/05 has the order of the
// file's dates. 05-14 is as in ISO 8601, with the month first, unless the command line says another
// order or that cannot be; if it cannot be in other cells, one that has two readings is a fault.
func (f dateForm) birthDate(cell string) (text, fault string) {
	m := yearlessPattern(cell)
	if m == nil {
		if text, ok := f.plain(cell); ok {
			return text, ""
		}
		return cell, dateInTwoWays
	}
	first, second := m[1], m[3]
	monthFirst, ok := f.monthFirst(first, second)
	fault = dateInTwoWays
	if m[2] == "-" && f.order == orderUnknown {
		dayFirst := onlyMonthFirst(second, first)
		monthFirst, ok = !dayFirst, dayFirst || !f.dayDashed || onlyMonthFirst(first, second) || first == second
		fault = dashedInTwoWays
	}
	if ok {
		fault = ""
	}
	if !monthFirst {
		first, second = second, first
	}
	return noYear + twoDigits(first) + "-" + twoDigits(second), fault
}

// twoDigits is a number of one or two digits with a zero before it if it has but one.
func twoDigits(s string) string { return strings.Repeat("0", 2-len(s)) + s }

// isoDate spells the parts of a date, from the year to the time; cell if there are none.
func isoDate(cell string, m []string) string {
	if m == nil {
		return cell
	}
	year, month, day, clock := m[1], m[2], m[3], m[4]
	date := year + "-" + twoDigits(month) + "-" + twoDigits(day)
	if clock == "" {
		return date
	}
	if m = timeOfDay.FindStringSubmatch(clock); m == nil {
		return cell
	}
	hour, _ := strconv.Atoi(m[1])
	if m[4] != "" {
		if hour < 1 || hour > 12 {
			return cell
		}
		if hour %= 12; strings.EqualFold(m[4], "p") {
			hour += 12
		}
	}
	if m[3] == "" {
		m[3] = "00"
	}
	zone := strings.NewReplacer("UTC", "Z", "GMT", "Z").Replace(m[5])
	if hour == 0 && m[2] == "00" && m[3] == "00" && zone == "" {
		return date
	}
	return fmt.Sprintf("%sT%02d:%s:%s%s", date, hour, m[2], m[3], zone)
}

// powerOfTen matches a long number of which a spreadsheet kept only the first digits.
var powerOfTen = regexp.MustCompile(`^[0-9]([.,][0-9]+)?[Ee]\+[0-9]+$`)

// lostDigits is the fault of a phone or customer number whose last digits a spreadsheet lost.
const lostDigits = "la hoja de cálculo perdió cifras; la columna debe tener formato de texto"

// A customer's name may be a formula, which a spreadsheet runs when it opens the
// file. The formula may send the rest of the sheet elsewhere, or start a program. So an
// export puts an apostrophe before such a cell, which marks it as text, and an import
// takes it away. A cell that has apostrophes before the formula gets one more, so that
// an import takes away only what an export has put there.

// plainNumber matches an amount or an E.164 phone number. It may begin with a sign
// but is no formula.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// isFormula reports whether a spreadsheet may run a cell, or would without the
// apostrophes before it. The last four characters of its list are wide forms of the
// first four.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	if strings.HasPrefix(cell, "\t") || strings.HasPrefix(cell, "\r") || strings.HasPrefix(cell, "\n") {
		return true
	}
	cell = strings.TrimSpace(cell)
	first, _ := utf8.DecodeRuneInString(cell)
	return strings.ContainsRune("=+-@＝＋－＠", first) && !plainNumber.MatchString(cell)
}

// markUTF8 is the byte order mark by which a spreadsheet recognizes UTF-8. CSV that is
// written for one begins with it.
const markUTF8 = "\xef\xbb\xbf"

// notANumber matches digits that a spreadsheet would change by taking them for a number: it makes
// 12 of 0012, drops the + of a phone, and keeps only the first digits of a long number.
var notANumber = regexp.MustCompile(`^(0[0-9]+|\+[0-9]+|[0-9]{12,})$`)

// markedText matches digits after the apostrophes by which people and other systems mark a phone, a
// number or a date as text (contract §31).
var markedText = regexp.MustCompile(`^'+[+(-]?[0-9][0-9 ()./:+-]*$`)

// isMarked reports whether the first apostrophe of a cell only marks it as text.
func isMarked(cell string) bool { return isFormula(cell) || markedText.MatchString(cell) }

// guardCells marks as text the cells of a row that a spreadsheet would run or change.
func guardCells(row []string) {
	for i, cell := range row {
		if isMarked(cell) {
			row[i] = "'" + cell
		} else if notANumber.MatchString(cell) {
			row[i] = `="` + cell + `"`
		}
	}
}

// textFormula matches a formula that is a text, such as ="0012". People write it, too, so that
// a spreadsheet keeps the zeros.
var textFormula = regexp.MustCompile(`^="([^"]*)"$`)

// unguardCells takes away what guardCells adds, and the like of it that others have put there.
func unguardCells(row []string) {
	for i, cell := range row {
		if m := textFormula.FindStringSubmatch(cell); m != nil {
			row[i] = m[1]
		} else if isMarked(cell) {
			row[i] = strings.TrimPrefix(cell, "'")
		}
	}
}
