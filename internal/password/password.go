// Package password is the hashes of passwords, and what of a password is guessed first:
// repetitions, runs on a keyboard, words of the user and usual ones in Spanish and English.
package password

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"unicode"
)

// Hashes are PBKDF2-HMAC-SHA256 (RFC 8018 §5.2), the only password hash in Go's library. Keep
// the number of iterations beside each hash, so that it can rise.
const (
	Iterations = 600_000 // OWASP's figure for this hash
	SaltSize   = 16      // bytes; FIPS mode wants no fewer
	HashSize   = 32      // bytes
)

// Hash returns the hash of a password. At Iterations it takes about 0.1 s of a processor.
func Hash(password string, salt []byte, iterations int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, iterations, HashSize)
}

// Matches reports whether a hash is of a password, in a time that does not tell how far it is.
func Matches(password string, salt []byte, iterations int, hash []byte) (bool, error) {
	sum, err := Hash(password, salt, iterations)
	return err == nil && subtle.ConstantTimeCompare(sum, hash) == 1, err
}

// A Weakness is what a password is mostly made of.
type Weakness int

// The weaknesses that are looked for, in order.
const (
	None     Weakness = iota
	Repeats           // the same again and again
	Keyboard          // runs along a keyboard or the alphabet
	Own               // words about the user
	Usual             // usual words
)

// leastGuesswork is how many characters of a password must be left without what is guessed
// first.
const leastGuesswork = 8

// WeaknessOf returns the first weakness of a password. own are texts with words that whoever
// knows the user would try, usual are words that are usual where the password is used, in
// lower case. No kinds of characters are asked for (NIST SP 800-63B-4 §3.1.1.2).
func WeaknessOf(password string, own []string, usual ...string) Weakness {
	left := plainWord(password)
	if left = WithoutRepeats(left); len(left) < leastGuesswork {
		return Repeats
	}
	if left = WithoutRuns(left); len(left) < leastGuesswork {
		return Keyboard
	}
	left = folded(left)
	if left = without(left, ownWords(own)); len(left) < leastGuesswork {
		return Own
	}
	words := slices.Clone(usualWords)
	for _, word := range usual {
		words = append(words, folded([]rune(word)))
	}
	if left = without(left, longestFirst(words)); len(left) < leastGuesswork {
		return Usual
	}
	return None
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

// WithoutRepeats returns what is left of a text that repeats one unit: the unit. A
// character that stands three times or more in a row stands once.
func WithoutRepeats(text []rune) []rune {
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

// WithoutRuns drops runs along a keyboard or the alphabet, in either direction.
func WithoutRuns(text []rune) (left []rune) {
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
	return longestFirst(words)
}

// longestFirst sorts words so that none is dropped in parts.
func longestFirst(words [][]rune) [][]rune {
	slices.SortStableFunc(words, func(a, b []rune) int { return len(b) - len(a) })
	return words
}
