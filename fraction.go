package main

import (
	"cmp"
	"math/big"
	"math/bits"
)

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
