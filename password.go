package main

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Passwords of users are kept as PBKDF2-HMAC-SHA256 (RFC 8018 §5.2), the only password hash
// in Go's library. The number of iterations stands beside each hash, so that it can rise.
const (
	passwordIterations = 600_000 // OWASP's figure for this hash
	passwordSalt       = 16      // bytes; FIPS mode wants no fewer
	passwordSum        = 32      // bytes
)

// Lengths of passwords in characters (NIST SP 800-63B-4 §3.1.1).
const (
	minPassword           = 15
	minPasswordWithFactor = 10 // with a second factor
	maxPassword           = 128
)

// A passwordHash is what is kept of a password. The zero one is of no password.
type passwordHash struct {
	Iterations int
	Salt, Sum  []byte
	At         instant // when the password was set
}

func (h *passwordHash) fields(c *coder) {
	uintField(c, &h.Iterations)
	c.bytes(&h.Salt)
	c.bytes(&h.Sum)
	c.instant(&h.At)
}

// derive returns the sum of a password by the hash's salt and iterations. It takes about
// 0.1 s of a processor.
func (h *passwordHash) derive(password string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, h.Salt, h.Iterations, passwordSum)
}

// matches reports whether the hash is of a password, in a time that does not tell how far
// it is.
func (h *passwordHash) matches(password string) (bool, error) {
	sum, err := h.derive(password)
	return err == nil && subtle.ConstantTimeCompare(sum, h.Sum) == 1, err
}

// equal reports whether two hashes are of the same setting of a password.
func (h *passwordHash) equal(o *passwordHash) bool {
	return subtle.ConstantTimeCompare(h.Salt, o.Salt)&subtle.ConstantTimeCompare(h.Sum, o.Sum) == 1
}

var (
	errPasswordShort    = newPeopleError("password_short", "password", "La contraseña debe tener al menos 15 caracteres (10 con segundo factor)")
	errPasswordLong     = newPeopleError("password_long", "password", "La contraseña no puede superar los 128 caracteres")
	errPasswordText     = newPeopleError("password_text", "password", "La contraseña tiene caracteres de control")
	errPasswordRepeats  = newPeopleError("password_repeats", "password", "La contraseña repite lo mismo una y otra vez")
	errPasswordKeyboard = newPeopleError("password_keyboard", "password", "La contraseña sigue el orden del teclado o del abecedario")
	errPasswordOwn      = newPeopleError("password_own", "password", "La contraseña es tu nombre, tu email o el de la organización")
	errPasswordUsual    = newPeopleError("password_usual", "password", "La contraseña es de las más usadas")
)

// leastGuesswork is how many characters of a password must be left without what is guessed
// first: repetitions, runs on a keyboard, the user's own words and usual ones.
const leastGuesswork = 8

// checkPassword returns why a new password is refused. own are texts with words that
// whoever knows the user would try. No kinds of characters are asked for
// (NIST SP 800-63B-4 §3.1.1.2).
func checkPassword(password string, withFactor bool, own ...string) error {
	least := minPassword
	if withFactor {
		least = minPasswordWithFactor
	}
	switch n := utf8.RuneCountInString(password); {
	case n < least:
		return errPasswordShort
	case n > maxPassword:
		return errPasswordLong
	case !utf8.ValidString(password) || strings.ContainsFunc(password, forbidden):
		return errPasswordText
	}
	left := plainWord(password)
	if left = withoutRepeats(left); len(left) < leastGuesswork {
		return errPasswordRepeats
	}
	if left = withoutRuns(left); len(left) < leastGuesswork {
		return errPasswordKeyboard
	}
	left = folded(left)
	if left = without(left, ownWords(own)); len(left) < leastGuesswork {
		return errPasswordOwn
	}
	if left = without(left, usualPasswords); len(left) < leastGuesswork {
		return errPasswordUsual
	}
	return nil
}

// accents are letters that people write without their accents, and digits and signs that
// they write for letters.
var accents = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n", "@", "a", "$", "s", "0", "o", "1", "i", "3", "e", "4", "a", "5", "s")

// folded returns a word with plain letters for all of these. It has as many characters.
func folded(word []rune) []rune { return []rune(accents.Replace(string(word))) }

// plainWord returns the letters and digits of a text in lower case, with the signs that stand
// for letters and all that is of other scripts.
func plainWord(text string) []rune {
	letters := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '@' || r == '$':
			return r
		case r > unicode.MaxLatin1:
			return r
		}
		return -1
	}, strings.ToLower(text))
	return []rune(letters)
}

// withoutRepeats returns what is left of a text that repeats one unit: the unit. A
// character that stands three times or more in a row stands once.
func withoutRepeats(text []rune) []rune {
	for period := 1; period <= len(text)/2; period++ {
		if slices.Equal(text[period:], text[:len(text)-period]) {
			return text[:period]
		}
	}
	var left []rune
	for i, r := range text {
		if i < 2 || r != text[i-1] || r != text[i-2] {
			left = append(left, r)
		}
	}
	return left
}

// keyboardRows are what people run along.
var keyboardRows = [][]rune{
	[]rune("qwertyuiop"), []rune("asdfghjklñ"), []rune("asdfghjkl;"), []rune("zxcvbnm"), []rune("01234567890"), []rune("abcdefghijklmnopqrstuvwxyz"),
	[]rune("1qaz2wsx3edc4rfv5tgb6yhn7ujm"), []rune("qazwsxedcrfvtgbyhnujm"),
}

// shortestRun is how many neighbours in a row are a run.
const shortestRun = 4

// withoutRuns drops runs along a keyboard or the alphabet, in either direction.
func withoutRuns(text []rune) (left []rune) {
	for len(text) > 0 {
		n := 1
		for _, row := range keyboardRows {
			n = max(n, runAlong(row, text, 1), runAlong(row, text, -1))
		}
		if n < shortestRun {
			left, n = append(left, text[0]), 1
		}
		text = text[n:]
	}
	return left
}

// runAlong returns how many characters at the start of a text follow each other in a row.
func runAlong(row, text []rune, step int) (longest int) {
	for at, r := range row {
		if r != text[0] {
			continue
		}
		n := 1
		for next := at + step; n < len(text) && next >= 0 && next < len(row) && row[next] == text[n]; next += step {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// without drops each of some words wherever it stands in a text.
func without(text []rune, words [][]rune) []rune {
	for _, word := range words {
		for i := 0; i+len(word) <= len(text); {
			if slices.Equal(text[i:i+len(word)], word) {
				text = slices.Concat(text[:i], text[i+len(word):])
				continue
			}
			i++
		}
	}
	return text
}

// ownWords returns the words of texts about a user, and all of each text as one word. Words
// below three characters do not count.
func ownWords(texts []string) (words [][]rune) {
	for _, text := range texts {
		parts := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		for _, part := range append(parts, text) {
			if word := folded(plainWord(part)); len(word) >= 3 {
				words = append(words, word)
			}
		}
	}
	slices.SortStableFunc(words, longerFirst)
	return words
}

func longerFirst(a, b []rune) int { return len(b) - len(a) }
