package main

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// randomInt returns a random number, often one at which something overflows.
func randomInt(rnd *rand.Rand) int64 {
	n := pick(rnd, 0, 1, 2, 10, 10_000, math.MaxInt64, math.MaxInt64-1, math.MinInt64, math.MinInt64+1, 1<<31, 1<<32, 1<<62,
		int64(maxDecimal), rnd.Int64N(100), rnd.Int64N(1_000_000), rnd.Int64()>>rnd.IntN(40))
	return pick(rnd, n, -n)
}

func randomRat(rnd *rand.Rand) *big.Rat {
	den := randomInt(rnd)
	for den == 0 {
		den = randomInt(rnd)
	}
	r := new(big.Rat).SetFrac(big.NewInt(randomInt(rnd)), big.NewInt(den))
	if rnd.IntN(8) == 0 {
		r.Mul(r, r)
	}
	return r
}

// TestFraction compares fractions with math/big on random numbers of all sizes,
// up to both ends of int64.
func TestFraction(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	random := func() *big.Rat { return randomRat(rnd) }
	equal := func(what string, f fraction, want *big.Rat, of ...*big.Rat) {
		t.Helper()
		if f.rat().Cmp(want) != 0 || f.sign() != want.Sign() {
			t.Fatalf("%s of %v is %v, want %v", what, of, f.rat(), want)
		}
		if fits := want.Num().IsInt64() && want.Denom().IsInt64(); f.big == nil && (!fits || f.num != want.Num().Int64() || max(f.den, 1) != want.Denom().Int64()) {
			t.Fatalf("%s of %v is %d/%d, not in lowest terms", what, of, f.num, f.den)
		}
	}
	for range repeats(10_000, 5_000, 2_000) {
		a, b := random(), random()
		f, g := fractionOf(a), fractionOf(b)
		equal("the same", f, a, a)
		equal("sum", f.plus(g), new(big.Rat).Add(a, b), a, b)
		equal("difference", f.minus(g), new(big.Rat).Sub(a, b), a, b)
		equal("product", f.mul(g), new(big.Rat).Mul(a, b), a, b)
		if b.Sign() != 0 {
			equal("quotient", f.quo(g), new(big.Rat).Quo(a, b), a, b)
		}
		places, mode := rnd.IntN(5), pick(rnd, roundFloor, roundCeil, roundHalfUp, roundHalfEven)
		if pick(rnd, true, false) {
			a.Quo(a, big.NewRat(1<<40, 1)) // so that it is more often in range
			f = fractionOf(a)
		}
		got, ok1 := f.round(places, mode)
		want, ok2 := roundRat(a, places, mode)
		if got != want || ok1 != ok2 {
			t.Fatalf("%v to %d places, %s: %v, %t, want %v, %t", a, places, mode, got, ok1, want, ok2)
		}
	}
	for range repeats(5_000, 2_500, 1_000) { // halves and their neighbours
		f := fraction{}.plus(reduced(rnd.Int64N(4001)-2000, 1+rnd.Int64N(400)))
		for _, mode := range []rounding{roundFloor, roundCeil, roundHalfUp, roundHalfEven} {
			got, _ := f.round(0, mode)
			if want, _ := roundRat(f.rat(), 0, mode); got != want {
				t.Fatalf("%v, %s: %v, want %v", f.rat(), mode, got, want)
			}
		}
	}
	var zero fraction
	equal("zero", zero, new(big.Rat))
	equal("zero and zero", zero.plus(zero).mul(zero), new(big.Rat))
	equal("a decimal", dec("12.5").fraction(), big.NewRat(25, 2))
	mustPanic(t, "five places", func() { zero.round(5, roundFloor) })
}

func BenchmarkEarn(b *testing.B) {
	s := newBusyShop(b)
	cfg := ask(s.shop, func(t *txn) (*config, error) { return t.cfg, nil })
	f := facts{total: 920_0000, items: threeItems, at: s.shop.clock.time().In(cfg.zone), counts: noCounts{}}
	b.ReportAllocs()
	for b.Loop() {
		if e, ok := cfg.Programs[0].earn(f); !ok || len(e.awards) != 3 {
			b.Fatal(e, ok)
		}
	}
}
