package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// A decimal is an amount of points or money in ten-thousandths, always exact
// and never beyond ±maxDecimal (contract §1). Decimals are compared with the
// operators of the language; the zero value is 0.
type decimal int64

const (
	decimalPlaces = 4
	decimalOne    = 10_000 // the decimal 1, in ten-thousandths

	// maxDecimal is 99 999 999 999.9999: fifteen digits, the most that a
	// client which reads numbers as float64 gets back unchanged.
	maxDecimal decimal = 999_999_999_999_999

	maxWholeDigits = 11 // of maxDecimal
)

var (
	errNotNumber  = errors.New("not a JSON number")
	errTooPrecise = errors.New("more than 4 decimal places")
	errTooLarge   = errors.New("beyond ±99999999999.9999")
)

// parseDecimal returns the value of the JSON number that s spells, with
// nothing before or after it. The value counts, not the spelling: 1.00000, 1e0
// and 10000e-4 are the decimal 1, and 0e999 is 0.
//
// The error is errNotNumber, errTooPrecise or errTooLarge; a number that has
// both faults is too precise. The time is proportional to the length of s,
// whatever its exponent.
func parseDecimal(s string) (decimal, error) {
	n, rest, ok := cutNumber(s)
	if !ok || rest != "" {
		return 0, errNotNumber
	}
	digits := strings.TrimLeft(n.whole+n.frac, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return 0, nil
	}
	// The last significant digit stands for 10 to the power of last. An exponent
	// beyond 32 bits becomes the nearest that fits. The number is refused all the
	// same: it would take two billion digits to bring it back into the range.
	last := int64(len(digits) - len(significant) - len(n.frac))
	if n.exponent != "" {
		exponent, _ := strconv.ParseInt(n.exponent, 10, 32)
		last += exponent
	}
	if last < -decimalPlaces {
		return 0, errTooPrecise
	}
	if int64(len(significant))+last > maxWholeDigits {
		return 0, errTooLarge
	}
	value, err := strconv.ParseInt(significant, 10, 64)
	if err != nil {
		return 0, err // not reached: at most 15 digits are left
	}
	for range last + decimalPlaces {
		value *= 10
	}
	if n.negative {
		value = -value
	}
	return decimal(value), nil
}

// A numeral is a JSON number taken apart: -12.50e+3 is {true, "12", "50", "+3"}.
type numeral struct {
	negative              bool
	whole, frac, exponent string
}

// cutNumber reads the JSON number (RFC 8259 §6) that s begins with and returns
// what follows it.
func cutNumber(s string) (n numeral, rest string, ok bool) {
	s, n.negative = strings.CutPrefix(s, "-")
	n.whole, s = cutDigits(s)
	if n.whole == "" || n.whole[0] == '0' && n.whole != "0" {
		return numeral{}, "", false
	}
	if after, found := strings.CutPrefix(s, "."); found {
		if n.frac, s = cutDigits(after); n.frac == "" {
			return numeral{}, "", false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		signed := s[1:]
		unsigned := signed
		if signed != "" && (signed[0] == '+' || signed[0] == '-') {
			unsigned = signed[1:]
		}
		digits, after := cutDigits(unsigned)
		if digits == "" {
			return numeral{}, "", false
		}
		n.exponent, s = signed[:len(signed)-len(after)], after
	}
	return n, s, true
}

// cutDigits splits s after the ASCII digits that it begins with.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// decimalOf returns the decimal of a whole number. It panics if n is beyond the
// range, so n must be a constant or a count, never what a client sent.
func decimalOf(n int) decimal {
	if limit := int64(maxDecimal / decimalOne); int64(n) > limit || int64(n) < -limit {
		panic(fmt.Sprintf("decimalOf(%d): %v", n, errTooLarge))
	}
	return decimal(n) * decimalOne
}

// add returns d+e; ok is false, and the sum 0, where it leaves the range.
func (d decimal) add(e decimal) (sum decimal, ok bool) {
	return inRange(d + e) // two decimals are far from the end of an int64
}

// sub returns d-e; ok is false, and the difference 0, where it leaves the range.
func (d decimal) sub(e decimal) (difference decimal, ok bool) {
	return inRange(d - e)
}

func inRange(d decimal) (decimal, bool) {
	if d < -maxDecimal || d > maxDecimal {
		return 0, false
	}
	return d, true
}

// String returns the shortest form without exponent: "100", "12.5", "-0.0001".
func (d decimal) String() string { return string(d.append(make([]byte, 0, 24))) }

func (d decimal) append(b []byte) []byte {
	u := uint64(d)
	if d < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/decimalOne, 10)
	if f := u % decimalOne; f != 0 {
		b = append(b, '.', byte('0'+f/1000), byte('0'+f/100%10), byte('0'+f/10%10), byte('0'+f%10))
		b = bytes.TrimRight(b, "0")
	}
	return b
}

// MarshalJSON writes d as a JSON number, in the form of String.
func (d decimal) MarshalJSON() ([]byte, error) { return d.append(make([]byte, 0, 24)), nil }

// UnmarshalJSON reads what parseDecimal reads. As with the types of the
// standard library, null changes nothing.
func (d *decimal) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	v, err := parseDecimal(string(b))
	if err != nil {
		return fmt.Errorf("%.40s: %w", b, err)
	}
	*d = v
	return nil
}

// rat returns d for exact arithmetic, whose result roundRat makes a decimal again.
func (d decimal) rat() *big.Rat { return big.NewRat(int64(d), decimalOne) }

// A rounding says to which of its neighbours a number between two decimals is
// rounded, in the words of the configuration (contract §9).
type rounding string

const (
	roundFloor    rounding = "Floor"    // toward −∞
	roundCeil     rounding = "Ceil"     // toward +∞
	roundHalfUp   rounding = "HalfUp"   // to the nearest, halves away from zero
	roundHalfEven rounding = "HalfEven" // to the nearest, halves to the even digit
)

func (m rounding) valid() bool {
	switch m {
	case roundFloor, roundCeil, roundHalfUp, roundHalfEven:
		return true
	}
	return false
}

// roundRat returns r rounded to places decimal places; ok is false, and the
// decimal 0, where the result is beyond the range. It panics if places is not
// 0 to 4 or mode is not valid; checked configurations have neither fault.
func roundRat(r *big.Rat, places int, mode rounding) (d decimal, ok bool) {
	step := roundingStep(places, mode)

	// r lies floor steps and rest/denominator of a step above zero, with
	// 0 <= rest < denominator for a negative r too.
	denominator := r.Denom()
	floor := new(big.Int).Mul(r.Num(), big.NewInt(decimalOne/step))
	rest := new(big.Int)
	floor.DivMod(floor, denominator, rest)

	steps := floor
	if half := new(big.Int).Lsh(rest, 1).Cmp(denominator); mode.up(rest.Sign() > 0, half, r.Sign() > 0, floor.Bit(0) == 1) {
		steps.Add(floor, big.NewInt(1))
	}
	if limit := big.NewInt(int64(maxDecimal) / step); steps.CmpAbs(limit) > 0 {
		return 0, false
	}
	return decimal(steps.Int64() * step), true
}

// roundingStep returns the distance between two results of a rounding, in
// ten-thousandths.
func roundingStep(places int, mode rounding) int64 {
	if places < 0 || places > decimalPlaces || !mode.valid() {
		panic(fmt.Sprintf("rounding to %d places, %q", places, mode))
	}
	step := int64(1)
	for range decimalPlaces - places {
		step *= 10
	}
	return step
}

// up reports whether a number between two results becomes the upper one. rest
// says whether it is above the lower one at all, half how it compares to the
// middle, positive whether it is above zero, odd whether the lower one is odd.
func (m rounding) up(rest bool, half int, positive, odd bool) bool {
	switch m {
	case roundCeil:
		return rest
	case roundHalfUp:
		return half > 0 || half == 0 && positive
	case roundHalfEven:
		return half > 0 || half == 0 && odd
	}
	return false
}

// A fraction is an exact number for the arithmetic of earning rules, before
// anything is rounded: amounts are multiplied and shared out in proportion. It
// is a value; the zero fraction is 0.
//
// Nearly all fractions fit in two machine words. One that does not is a big.Rat,
// so that no result is ever out of range or inexact.
type fraction struct {
	num, den int64    // in lowest terms, den above zero; 0, 0 is 0
	big      *big.Rat // if not nil, the number; it is never changed, and num and den mean nothing
}

func (d decimal) fraction() fraction { return reduced(int64(d), decimalOne) }

func wholeFraction(n int) fraction { return fraction{num: int64(n), den: 1} }

// words returns the fraction as two numbers; ok is false where they do not fit.
func (f fraction) words() (num, den int64, ok bool) { return f.num, max(f.den, 1), f.big == nil }

func (f fraction) rat() *big.Rat {
	if f.big != nil {
		return f.big
	}
	return big.NewRat(f.num, max(f.den, 1))
}

func fractionOf(r *big.Rat) fraction {
	if r.Num().IsInt64() && r.Denom().IsInt64() {
		return fraction{num: r.Num().Int64(), den: r.Denom().Int64()}
	}
	return fraction{big: r}
}

func (f fraction) sign() int {
	if f.big != nil {
		return f.big.Sign()
	}
	return cmp.Compare(f.num, 0)
}

func (f fraction) plus(g fraction) fraction {
	a, b, ok1 := f.words()
	c, d, ok2 := g.words()
	if ok1 && ok2 {
		// a/b + c/d = (a·d' + c·b') / (b·d'), where b' and d' are b and d
		// divided by their greatest common divisor.
		shared := gcd(b, d)
		b1, d1 := b/shared, d/shared
		left, ok1 := times(a, d1)
		right, ok2 := times(c, b1)
		den, ok3 := times(b, d1)
		if sum := left + right; ok1 && ok2 && ok3 && (left^sum)&(right^sum) >= 0 {
			return reduced(sum, den)
		}
	}
	return fractionOf(new(big.Rat).Add(f.rat(), g.rat()))
}

func (f fraction) minus(g fraction) fraction { return f.plus(g.mul(wholeFraction(-1))) }

func (f fraction) mul(g fraction) fraction {
	a, b, ok1 := f.words()
	c, d, ok2 := g.words()
	if ok1 && ok2 {
		across, back := gcd(a, d), gcd(c, b)
		num, ok1 := times(a/across, c/back)
		den, ok2 := times(b/back, d/across)
		if ok1 && ok2 {
			return fraction{num: num, den: den}
		}
	}
	return fractionOf(new(big.Rat).Mul(f.rat(), g.rat()))
}

// quo divides by g, which is not zero.
func (f fraction) quo(g fraction) fraction {
	if c, d, ok := g.words(); ok && c > 0 {
		return f.mul(fraction{num: d, den: c})
	}
	return fractionOf(new(big.Rat).Quo(f.rat(), g.rat()))
}

// round is roundRat, without big numbers where none are needed.
func (f fraction) round(places int, mode rounding) (decimal, bool) {
	step := roundingStep(places, mode)
	num, den, ok1 := f.words()
	scaled, ok2 := times(num, decimalOne/step)
	if !ok1 || !ok2 {
		return roundRat(f.rat(), places, mode)
	}
	steps, rest := scaled/den, scaled%den
	if rest < 0 {
		steps, rest = steps-1, rest+den
	}
	if half := cmp.Compare(2*uint64(rest), uint64(den)); mode.up(rest > 0, half, num > 0, steps&1 != 0) {
		steps++
	}
	if limit := int64(maxDecimal) / step; steps > limit || steps < -limit {
		return 0, false
	}
	return decimal(steps * step), true
}

// reduced returns num/den in lowest terms; den must be above zero.
func reduced(num, den int64) fraction {
	shared := gcd(num, den)
	return fraction{num: num / shared, den: den / shared}
}

// gcd returns the greatest number that divides both; b must be above zero.
func gcd(a, b int64) int64 {
	if b == 1 {
		return 1
	}
	x, y := uint64(max(a, -a)), uint64(b) // right for the least int64 too
	for x != 0 {
		x, y = y%x, x
	}
	return int64(y)
}

// times multiplies; ok is false where the product does not fit. The least
// int64 counts as not fitting, so that every number can be negated.
func times(a, b int64) (product int64, ok bool) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if hi != 0 || lo>>63 != 0 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}
