package sheet

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cells as spreadsheets write them: numbers with a decimal comma, dates by day, month
// and year, and texts that look like formulas.

// A NumberForm says how a file writes numbers.
type NumberForm struct {
	Separator rune   // of the cells
	Decimal   rune   // '.' or ',', where either may be meant; 0 if the user does not say
	Currency  string // ISO 4217, of amounts
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
func (f NumberForm) bare(amount string) string {
	amount = strings.Trim(trim(amount), "\u00a0\u202f")
	if f.Currency != "" {
		for _, sign := range append(currencySigns[f.Currency], f.Currency) {
			if start := len(amount) - len(sign); start >= 0 && strings.EqualFold(amount[:len(sign)], sign) {
				return strings.Trim(amount[len(sign):], signs)
			} else if start >= 0 && strings.EqualFold(amount[start:], sign) {
				return strings.Trim(amount[:start], signs)
			}
		}
	}
	return strings.Trim(amount, signs)
}

// What can be read in two ways.
var (
	ErrNumber = errors.New("a number can be read in two ways")
	ErrDate   = errors.New("a date can be read in two ways, since others of the file have the month first")
	ErrDashed = errors.New("a birthday can be read in two ways, since others of the file have the day first")
)

// Plain spells a number as JSON does, without thousands separators and currency sign. A cell
// that is no number stays as it is. ErrNumber: 1.250 and 1,250 may be one and a quarter, or one
// thousand two hundred and fifty.
func (f NumberForm) Plain(cell string) (string, error) {
	cell = strings.ReplaceAll(strings.TrimPrefix(trim(cell), "+"), "−", "-") // a minus sign is another character
	text := f.bare(cell)
	digits, negative := strings.CutPrefix(text, "-")
	if negative {
		digits = f.bare(digits)
		text = "-" + digits
	}
	point, comma := strings.Count(digits, "."), strings.Count(digits, ",")
	if point+comma == 0 || !numeric.MatchString(digits) {
		return text, nil
	}
	decimal, ok := f.decimalOf(digits, point, comma)
	if !ok {
		return cell, ErrNumber
	}
	thousands := "."
	if decimal == '.' {
		thousands = ","
	}
	whole, fraction, broken := strings.Cut(digits, string(decimal))
	if strings.Contains(whole, thousands) && !grouped.MatchString(whole) {
		return cell, nil
	}
	if text = strings.ReplaceAll(whole, thousands, ""); broken {
		text += "." + fraction
	}
	if negative {
		text = "-" + text
	}
	return text, nil
}

var (
	numeric = regexp.MustCompile(`^[0-9]+([.,][0-9]+)*$`)
	grouped = regexp.MustCompile(`^[0-9]{1,3}([.,][0-9]{3})+$`)
)

// decimalOf returns the decimal sign of a number with the given counts of points and commas. ok
// is false if the number can be read in two ways.
func (f NumberForm) decimalOf(digits string, point, comma int) (sign rune, ok bool) {
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
	if f.Decimal != 0 {
		return f.Decimal, true
	}
	// In a file whose cells are separated by commas the decimal sign is the point; in one with
	// semicolons it is the comma.
	return sign, f.Separator == ',' && sign == '.' || f.Separator == ';' && sign == ','
}

// Dates by day, month and year, or with the year first; a time may follow.
var (
	dayFirst  = regexp.MustCompile(`^([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4})(?:,? +(.+))?$`)
	yearFirst = regexp.MustCompile(`^([0-9]{4})[/.-]([0-9]{1,2})[/.-]([0-9]{1,2})(?: +(.+))?$`)
	timeOfDay = regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?(?: ?([AaPp])\.? ?[Mm]\.?)?(?: ?(UTC|GMT|Z|[+-][0-9]{2}:?[0-9]{2}))?$`)
)

// A DateOrder says which of two numbers before a year is the month.
type DateOrder string

// The orders of dates; Unordered if the user does not say.
const (
	Unordered DateOrder = ""
	DayMonth  DateOrder = "dmy"
	MonthDay  DateOrder = "mdy"
)

// A DateForm says how a file writes dates.
type DateForm struct {
	Order DateOrder // that the user says
	mixed bool      // some dates of the file can only have the month first

	dayDashed bool // some birthdays without a year, such as 14-05, can only have the day first
}

// Learn takes from a cell, of a birthday or of another date, what it tells of the file.
func (f *DateForm) Learn(cell string, birthday bool) {
	f.mixed = f.mixed || isMonthFirst(cell)
	m := yearlessPattern(cell)
	if !birthday || m == nil {
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
func (f DateForm) monthFirst(first, second string) (yes, ok bool) {
	if f.Order != Unordered || !f.mixed {
		return f.Order == MonthDay, true
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
	return dayFirst.FindStringSubmatch(PlainBlanks(cell))
}

// PlainBlanks trims a cell and replaces blanks that do not break a line by plain ones.
func PlainBlanks(cell string) string { return trim(unbroken.Replace(cell)) }

// trim drops white space from both ends of a text. Control characters other than newline and
// tab stay: they are for the caller to refuse.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) && (r == '\n' || r == '\t' || !unicode.IsControl(r))
	})
}

var unbroken = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// Plain spells a date of a spreadsheet as ISO 8601. A cell that is no such date stays as it
// is. A time of midnight is dropped: a spreadsheet adds it to a bare date. ErrDate comes with
// one of two readings.
func (f DateForm) Plain(cell string) (string, error) {
	text := PlainBlanks(cell)
	m := datePattern(text)
	if m == nil {
		return isoDate(cell, yearFirst.FindStringSubmatch(text)), nil
	}
	month, dayOfMonth := m[2], m[1]
	monthFirst, ok := f.monthFirst(m[1], m[2])
	if monthFirst {
		month, dayOfMonth = m[1], m[2]
	}
	text = isoDate(cell, []string{"", m[3], month, dayOfMonth, m[4]})
	if !ok {
		return text, ErrDate
	}
	return text, nil
}

// yearless matches a birthday without a year: 14/05, or 05-14. With a point it could be a number.
var yearless = regexp.MustCompile(`^([0-9]{1,2})([/-])([0-9]{1,2})$`)

// yearlessPattern returns the parts of a cell that yearless matches, or nil.
func yearlessPattern(cell string) []string {
	if cell = PlainBlanks(cell); len(cell) > len("05-14") {
		return nil
	}
	return yearless.FindStringSubmatch(cell)
}

// Birthday is Plain for a date of birth, whose year may be missing and then is "--". 14/05 has the
// order of the file's dates. 05-14 is as in ISO 8601, with the month first, unless the user says
// another order or that cannot be; if it cannot be in other cells, one that has two readings is
// ErrDashed.
func (f DateForm) Birthday(cell string) (string, error) {
	m := yearlessPattern(cell)
	if m == nil {
		text, err := f.Plain(cell)
		if err != nil {
			return cell, err
		}
		return text, nil
	}
	first, second := m[1], m[3]
	monthFirst, ok := f.monthFirst(first, second)
	err := ErrDate
	if m[2] == "-" && f.Order == Unordered {
		dayFirst := onlyMonthFirst(second, first)
		monthFirst, ok = !dayFirst, dayFirst || !f.dayDashed || onlyMonthFirst(first, second) || first == second
		err = ErrDashed
	}
	if ok {
		err = nil
	}
	if !monthFirst {
		first, second = second, first
	}
	return "--" + twoDigits(first) + "-" + twoDigits(second), err
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

// IsTime reports whether a cell is a time of day, such as 9:30, 21:30 or 9:30 p. m.
func IsTime(cell string) bool { return timeOfDay.MatchString(PlainBlanks(cell)) }

// WithTime adds a time of day to a date of ISO 8601; date if there is no such time.
func WithTime(date, clock string) string {
	return isoDate(date, yearFirst.FindStringSubmatch(date+" "+PlainBlanks(clock)))
}

// HasLostDigits reports whether a cell is a long number whose last digits a spreadsheet lost.
func HasLostDigits(cell string) bool { return powerOfTen.MatchString(trim(cell)) }

// powerOfTen matches a long number of which a spreadsheet kept only the first digits.
var powerOfTen = regexp.MustCompile(`^[0-9]([.,][0-9]+)?[Ee]\+[0-9]+$`)

// A person's name may be a formula, which a spreadsheet runs when it opens the
// file. The formula may send the rest of the sheet elsewhere, or start a program. So an
// export puts an apostrophe before such a cell, which marks it as text, and an import
// takes it away. A cell that has apostrophes before the formula gets one more, so that
// an import takes away only what an export has put there.

// plainNumber matches an amount or an E.164 phone number. It may begin with a sign
// but is no formula.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// IsFormula reports whether a spreadsheet may run a cell, or would without the
// apostrophes before it. The last four characters of its list are wide forms of the
// first four.
func IsFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	if strings.HasPrefix(cell, "\t") || strings.HasPrefix(cell, "\r") || strings.HasPrefix(cell, "\n") {
		return true
	}
	cell = strings.TrimSpace(cell)
	first, _ := utf8.DecodeRuneInString(cell)
	return strings.ContainsRune("=+-@＝＋－＠", first) && !plainNumber.MatchString(cell)
}

// notANumber matches digits that a spreadsheet would change by taking them for a number: it makes
// 12 of 0012, drops the + of a phone, and keeps only the first digits of a long number.
var notANumber = regexp.MustCompile(`^(0[0-9]+|\+[0-9]+|[0-9]{12,})$`)

// markedText matches digits after the apostrophes by which people and other systems mark a phone, a
// number or a date as text (contract §31).
var markedText = regexp.MustCompile(`^'+[+(-]?[0-9][0-9 ()./:+-]*$`)

// isMarked reports whether the first apostrophe of a cell only marks it as text.
func isMarked(cell string) bool { return IsFormula(cell) || markedText.MatchString(cell) }

// Guard marks as text the cells of a row that a spreadsheet would run or change.
func Guard(row []string) {
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

// Unguard takes away what Guard adds, and the like of it that others have put there.
func Unguard(row []string) {
	for i, cell := range row {
		switch {
		case strings.HasPrefix(cell, "="):
			if m := textFormula.FindStringSubmatch(cell); m != nil {
				row[i] = m[1]
			}
		case strings.HasPrefix(cell, "'") && isMarked(cell):
			row[i] = cell[1:]
		}
	}
}
