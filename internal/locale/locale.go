// Package locale writes numbers as a country does, and dates in the words of a language. It
// reads amounts as people type them. The conventions are those of CLDR 48 (testdata/cldr.txt).
package locale

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NBSP keeps a number and what belongs to it on one line.
const NBSP = "\u00a0"

// Numbers says how a country writes numbers.
type Numbers struct {
	decimal string
	group   string // between groups of three digits
	from    int    // the least digits before the decimal sign that are grouped
	Percent string // before the percent sign
}

var (
	pointStyle = Numbers{".", ",", 4, ""}
	commaStyle = Numbers{",", ".", 4, ""}
	spainStyle = Numbers{",", ".", 5, NBSP}
	ricaStyle  = Numbers{",", NBSP, 4, ""}
)

// NumbersOf returns how a country (ISO 3166, such as "MX") writes numbers in Spanish, Brazil in
// Portuguese. A country in neither list writes as Latin America does, 1,234.5.
func NumbersOf(country string) *Numbers {
	switch country {
	case "AR", "BO", "BR", "CL", "CO", "EC", "PY", "UY", "VE":
		return &commaStyle
	case "EA", "ES", "GQ", "IC":
		return &spainStyle
	case "CR":
		return &ricaStyle
	}
	return &pointStyle
}

// Places returns how many decimal places an amount of money has at least, in a currency (ISO
// 4217, such as "MXN").
func Places(currency string) int {
	switch currency {
	case "CLP", "COP", "JPY", "KRW", "PYG", "XAF", "XOF":
		return 0
	}
	return 2
}

// Write writes a number, such as "-1234.5", with so many decimal places or more. Three places
// become four, since people read 1.234 as one thousand and some, and Read asks what is meant.
func (s *Numbers) Write(number string, places int) string {
	whole, fraction, _ := strings.Cut(number, ".")
	if len(fraction) == 3 {
		places = max(places, 4)
	}
	for len(fraction) < places {
		fraction += "0"
	}
	whole, negative := strings.CutPrefix(whole, "-")
	text := s.Group(whole)
	if fraction != "" {
		text += s.decimal + fraction
	}
	if negative {
		text = "-" + text
	}
	return text
}

// Group separates groups of three digits.
func (s *Numbers) Group(digits string) string {
	if len(digits) < s.from {
		return digits
	}
	first := (len(digits)-1)%3 + 1
	text := digits[:first]
	for i := first; i < len(digits); i += 3 {
		text += s.group + digits[i:i+3]
	}
	return text
}

// Read reads an amount as people type it. The literal is a JSON number, so that a reader of
// those finds what is wrong with -5, 0 or 1.23456. ok is false if the text is no number. It
// is false too if the text has two readings, and then both
// has them as literals: 1.500 may be one and a half, or one thousand five hundred. Where
// people write 1.500,00 it is the latter. Either reading, typed again, has one reading.
//
// Sources: one decimal sign followed by 1, 2 or 4 digits is a decimal sign in every
// country; so is one followed by 3 if the digits before it are no group. Blanks and the
// country's own sign between proper groups of three digits are separators of thousands.
// The sign of a currency and the code of the one that is meant may stand beside the number.
func (s *Numbers) Read(text, currency string) (literal string, both []string, ok bool) {
	digits, negative := bareAmount(text, currency)
	sign := ""
	if negative {
		sign = "-"
	}
	thousands, grouped := ungroup(digits)
	whole, fraction, broken := splitAmount(digits)
	switch {
	case grouped && broken && !strings.Contains(digits, s.separator()):
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
func (s *Numbers) separator() string {
	if s.decimal == "." {
		return ","
	}
	return "."
}

// bareAmount takes away blanks, sign and currency around an amount, and makes all blanks
// in it one kind.
func bareAmount(text, currency string) (digits string, negative bool) {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r): // U+00A0, U+2009 and U+202F, which separate thousands, too
			return ' '
		case r == '−': // U+2212, the minus sign of typography
			return '-'
		}
		return r
	}, text)
	text, negative = strings.CutPrefix(withoutCurrency(text, currency), "-")
	return withoutCurrency(text, currency), negative
}

// withoutCurrency takes away one sign or code of a currency at either end.
func withoutCurrency(text, currency string) string {
	text = strings.TrimSpace(text)
	if first, size := utf8.DecodeRuneInString(text); unicode.Is(unicode.Sc, first) {
		text = text[size:]
	} else if last, size := utf8.DecodeLastRuneInString(text); unicode.Is(unicode.Sc, last) {
		text = text[:len(text)-size]
	}
	if n := len(currency); n > 0 && len(text) > n {
		if strings.EqualFold(text[:n], currency) {
			text = text[n:]
		} else if strings.EqualFold(text[len(text)-n:], currency) {
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
