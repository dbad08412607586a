package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What a shop notes about a customer: attributes and the birth date (contract §12), consent to
// notices (§23), and who wrote to the customer by hand (§31).

// An attribute is a value under a name of the shop's own.
type attribute struct {
	Name  string
	Value string // as JSON: a text, a number, true or false; "" in a change that drops the name
}

// Bounds of attributes; lengths are in characters.
const (
	maxAttributes    = 20
	maxAttributeName = 40
	maxAttributeText = 200 // also of a number as it is sent
)

func (a *attribute) fields(c *coder) { c.text(&a.Name); c.text(&a.Value) }

// isAttributeName reports whether an attribute may have a name. One with blanks at its ends may
// not.
func isAttributeName(name string) bool {
	length := utf8.RuneCountInString(name)
	return 0 < length && length <= maxAttributeName && trimBlanks(name) == name && !strings.ContainsFunc(name, forbidden)
}

// attributeNumber returns the one spelling of a JSON number: exact, and with an exponent only
// where JavaScript writes one. Unlike points and money it may have any number of decimals.
// It is refused if it is too long, or beyond what clients can read: the range of a double.
func attributeNumber(s string) (string, bool) {
	n, rest, ok := cutNumber(s)
	if !ok || rest != "" || len(s) > maxAttributeText {
		return "", false
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "", false
	}
	digits := strings.TrimLeft(n.whole+n.frac, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0", true
	}
	exponent, err := strconv.Atoi(cmp.Or(n.exponent, "0"))
	if err != nil {
		return "", false
	}
	point := len(digits) - len(n.frac) + exponent // how many of the digits stand before it
	switch zeros := point - len(significant); {
	case zeros >= 0 && point <= 21:
		s = significant + strings.Repeat("0", zeros)
	case zeros < 0 && point > 0:
		s = significant[:point] + "." + significant[point:]
	case -6 < point && point <= 0:
		s = "0." + strings.Repeat("0", -point) + significant
	default:
		s = significant[:1]
		if len(significant) > 1 {
			s += "." + significant[1:]
		}
		s += "e" + strconv.Itoa(point-1)
	}
	if n.negative {
		s = "-" + s
	}
	return s, true
}

// mergeAttributes returns a list with changes applied, sorted by name. It modifies
// neither list.
func mergeAttributes(list, changes []attribute) []attribute {
	merged := slices.DeleteFunc(slices.Clone(list), func(a attribute) bool {
		return slices.ContainsFunc(changes, func(c attribute) bool { return c.Name == a.Name })
	})
	merged = slices.DeleteFunc(append(merged, changes...), func(a attribute) bool { return a.Value == "" })
	slices.SortFunc(merged, func(a, b attribute) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

func checkAttributes(list []attribute) error {
	if len(list) > maxAttributes {
		return newError(codeAttributesInvalid).on("attributes")
	}
	return nil
}

// A birthDate is a date as the number of its digits: 19900229, or 229 where the year is not
// known. Zero is none.
type birthDate uint32

// noYear stands in the text of a date of birth where the year would (contract §31), as in ISO 8601
// and vCard.
const noYear = "--"

// parseBirthDate reads a date as contract §12 has it: AAAA-MM-DD, a real day, or --MM-DD, a day of
// some year.
func parseBirthDate(text string) (birthDate, bool) {
	if monthAndDay, yearless := strings.CutPrefix(text, noYear); yearless {
		date, err := time.Parse(time.DateOnly, "2000-"+monthAndDay) // which has a 29 February
		if err != nil {
			return 0, false
		}
		return birthDate(int(date.Month())*100 + date.Day()), true
	}
	date, err := time.Parse(time.DateOnly, text)
	if err != nil || date.Year() < 1 {
		return 0, false
	}
	year, month, d := date.Date()
	return birthDate(year*10000 + int(month)*100 + d), true
}

// String is "" for none.
func (b birthDate) String() string {
	if b == 0 {
		return ""
	}
	if !b.hasYear() {
		return fmt.Sprintf(noYear+"%02d-%02d", b.month(), b.dayOfMonth())
	}
	return fmt.Sprintf("%04d-%02d-%02d", b.year(), b.month(), b.dayOfMonth())
}

func (b birthDate) year() int         { return int(b / 10000) }
func (b birthDate) month() time.Month { return time.Month(b / 100 % 100) }
func (b birthDate) dayOfMonth() int   { return int(b % 100) }

// hasYear is also false of none.
func (b birthDate) hasYear() bool { return b.year() > 0 }

// day is the date itself, of one with a year.
func (b birthDate) day() day { return dayOn(b.year(), b.month(), b.dayOfMonth()) }

// after reports whether a date is after a day. Without a year it never is.
func (b birthDate) after(today day) bool { return b.hasYear() && b.day() > today }

// agrees reports whether two dates may be of one person: one is none, or they differ in nothing but
// that one of them has no year.
func (b birthDate) agrees(other birthDate) bool {
	return b == 0 || other == 0 || b == other || b%10000 == other%10000 && b.hasYear() != other.hasYear()
}

// filledBy is the date with what another one adds: all to none, and the year to one that lacks it.
func (b birthDate) filledBy(other birthDate) birthDate {
	if b == 0 || b.agrees(other) && other.hasYear() {
		return other
	}
	return b
}

// in is the birthday in a year. A birthday on 29 February falls on the 28th of other years.
func (b birthDate) in(year int) day {
	return min(dayOn(year, b.month(), b.dayOfMonth()), dayOn(year, b.month()+1, 0))
}

// lastYear is the year of the latest birthday up to a day.
func (b birthDate) lastYear(today day) int {
	year := today.date().Year()
	if b.in(year) > today {
		year--
	}
	return year
}

// Whether customers want notices, such as that points expire soon (contract §23). The API calls it
// marketing: true, false, or null as long as nobody asked. Sello sends nothing; the panel lists only
// customers who said yes.

// A consent is what a customer said, and when.
type consent struct {
	Answer consentAnswer
	At     instant // 0 without an answer
}

// A consentAnswer is a byte in the file.
type consentAnswer uint8

const (
	consentUnknown consentAnswer = iota
	consentGiven
	consentRefused
)

func (v *consent) fields(c *coder) { byteField(c, &v.Answer); c.instant(&v.At) }

// said is the consent after an answer at a moment. The same answer again keeps the first moment.
func (v consent) said(a consentAnswer, at instant) consent {
	switch a {
	case v.Answer:
		return v
	case consentUnknown:
		return consent{}
	}
	return consent{a, at}
}

// later is the one of two consents of one person that was said later.
func (v consent) later(o consent) consent {
	if o.At > v.At {
		return o
	}
	return v
}

// orNull is the answer as the API has it.
func (a consentAnswer) orNull() *bool {
	if a == consentUnknown {
		return nil
	}
	return new(a == consentGiven)
}

// text is the answer in a file of customers; "" without one.
func (a consentAnswer) text() string {
	switch a {
	case consentGiven:
		return "true"
	case consentRefused:
		return "false"
	}
	return ""
}

// answerOf is a yes or a no.
func answerOf(yes bool) consentAnswer {
	if yes {
		return consentGiven
	}
	return consentRefused
}

// Who wrote to a customer by hand, and about what (contract §31): the panel's Avisos marks it, so that
// two of the team do not write the same. The customer's record has the last time of each kind. The
// mark is no change of the customer: of the API only the export of all that is kept about a person
// shows it, and it leaves no event and no entry in the audit log, which would keep it for longer.

// A writtenNotice says that a member of the team wrote to a customer.
type writtenNotice struct {
	Kind noticeKind
	At   instant
	User id
}

// noticeKinds are in the order that the file depends on.
var noticeKinds = []string{string(noticeExpiring), string(noticeBirthday), string(noticeAlmost)}

func (w *writtenNotice) fields(c *coder) {
	c.word(noticeKinds, (*string)(&w.Kind))
	c.instant(&w.At)
	c.id(&w.User)
}

// writtenTime is how long a note of having written is kept, in milliseconds: 60 days.
const writtenTime = 60 * 24 * 60 * 60 * 1000

// isOld reports whether the note counts no more.
func (w *writtenNotice) isOld(now instant) bool { return w.At <= now-writtenTime }

// writtenOf is the note about a kind of notice; ok is false without one.
func writtenOf(list []writtenNotice, kind noticeKind, now instant) (w writtenNotice, ok bool) {
	i := slices.IndexFunc(list, func(w writtenNotice) bool { return w.Kind == kind && !w.isOld(now) })
	if i < 0 {
		return w, false
	}
	return list[i], true
}

// laterWritten joins the lists of two customers: the later one of each kind.
func laterWritten(a, b []writtenNotice) (list []writtenNotice) {
	for _, kind := range noticeKinds {
		var last writtenNotice
		for _, w := range slices.Concat(a, b) {
			if string(w.Kind) == kind && w.At > last.At {
				last = w
			}
		}
		if last.At > 0 {
			list = append(list, last)
		}
	}
	return list
}
