// Package nearest finds the name that was probably meant by one that nobody knows.
package nearest

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how many bytes a name may have that is compared.
const longest = 60

// Of returns the known name that was probably meant, or "". Letter case, blanks and
// punctuation do not matter. A long name may differ by up to three edits, a short one by one.
// Else one name must begin or end with the other, such as phone for phoneNumber; if that is
// so for two known names, Of returns "".
func Of(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	plain := plainName(name)
	best, fewest := "", math.MaxInt
	for _, k := range known {
		of := plainName(k)
		most := min(3, 1+len(of)/5, len(of)-1)
		if longer := utf8.RuneCountInString(plain) - len(of); longer < -most || longer > most {
			continue
		}
		n := Edits(plain, of)
		if n > most {
			continue
		}
		if n = n*longest + Edits(name, k); n < fewest { // among equals the nearest as it was sent
			best, fewest = k, n
		}
	}
	if best != "" {
		return best
	}
	const enough = 4 // letters; fewer say nothing
	for _, k := range known {
		long, short := plainName(k), plain
		if len(short) > len(long) {
			long, short = short, long
		}
		if len(short) < enough || !strings.HasPrefix(long, short) && !strings.HasSuffix(long, short) {
			continue
		}
		if best != "" {
			return ""
		}
		best = k
	}
	return best
}

// plainName returns the letters and digits of a name, in lower case.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Edits returns how many insertions, deletions, substitutions and swaps of neighbours make
// one text of the other (optimal string alignment).
func Edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}
