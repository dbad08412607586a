package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
