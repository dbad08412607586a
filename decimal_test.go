package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// decimalCases are texts, and the decimals or errors that they give.
var decimalCases = []struct {
	reason string
	in     string
	want   decimal
	err    error
}{
	{"zero", "0", 0, nil},
	{"minus zero is zero", "-0", 0, nil},
	{"minus zero with places", "-0.0000000", 0, nil},
	{"whole number", "100", 100_0000, nil},
	{"places", "12.5", 12_5000, nil},
	{"smallest", "0.0001", 1, nil},
	{"smallest below zero", "-0.0001", -1, nil},
	{"zeros at the end are not precision", "1.00000", 1_0000, nil},
	{"zeros inside are digits", "10203.0405", 10203_0405, nil},
	{"largest", "99999999999.9999", maxDecimal, nil},
	{"most negative", "-99999999999.9999", -maxDecimal, nil},
	{"largest with a zero more", "99999999999.99990", maxDecimal, nil},

	{"exponent", "1e2", 100_0000, nil},
	{"capital E and plus", "1E+2", 100_0000, nil},
	{"exponent of zero", "7e0", 7_0000, nil},
	{"zeros in the exponent", "1e-0004", 1, nil},
	{"fraction moved left", "1.2345e4", 12345_0000, nil},
	{"zeros moved right", "100000e-9", 1, nil},
	{"many places, few after the exponent", "0.00000000123e9", 1_2300, nil},
	{"largest, from an exponent", "999999999999999e-4", maxDecimal, nil},
	{"zero whatever the exponent", "0e999999999", 0, nil},
	{"zero whatever the exponent's size", "-0.0e-99999999999999999999999", 0, nil},

	{"five places", "0.00001", 0, errTooPrecise},
	{"five places, from an exponent", "1e-5", 0, errTooPrecise},
	{"one place too many beside zeros", "1.000010", 0, errTooPrecise},
	{"tiny", "1e-400000000", 0, errTooPrecise},
	{"exponent below int64", "1e-99999999999999999999999", 0, errTooPrecise},
	{"too precise wins over too large", "100000000000.00001", 0, errTooPrecise},

	{"first beyond the range", "100000000000", 0, errTooLarge},
	{"first below the range", "-100000000000", 0, errTooLarge},
	{"beyond, from an exponent", "1e11", 0, errTooLarge},
	{"what wraps int64 when scaled", "1844674407370955.1617", 0, errTooLarge},
	{"huge", "1e400000000", 0, errTooLarge},
	{"exponent above int64", "1e99999999999999999999999", 0, errTooLarge},

	{"empty", "", 0, errNotNumber},
	{"sign alone", "-", 0, errNotNumber},
	{"plus sign", "+1", 0, errNotNumber},
	{"leading zero", "01", 0, errNotNumber},
	{"leading zero, negative", "-01", 0, errNotNumber},
	{"no digit before the point", ".5", 0, errNotNumber},
	{"no digit after the point", "1.", 0, errNotNumber},
	{"no digit between point and exponent", "1.e1", 0, errNotNumber},
	{"exponent without digits", "1e", 0, errNotNumber},
	{"exponent with only a sign", "1e+", 0, errNotNumber},
	{"two exponents", "1e1e1", 0, errNotNumber},
	{"two points", "1.0.0", 0, errNotNumber},
	{"space before", " 1", 0, errNotNumber},
	{"space after", "1 ", 0, errNotNumber},
	{"grouping", "1_000", 0, errNotNumber},
	{"decimal comma", "1,5", 0, errNotNumber},
	{"hexadecimal", "0x10", 0, errNotNumber},
	{"not a number", "NaN", 0, errNotNumber},
	{"infinity", "-Infinity", 0, errNotNumber},
	{"a number in a string", `"5"`, 0, errNotNumber},
	{"digits of another script", "١", 0, errNotNumber},
	{"null", "null", 0, errNotNumber},
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for _, c := range decimalCases {
		if got, err := parseDecimal(c.in); got != c.want || err != c.err {
			t.Errorf("%s: parseDecimal(%q) = %d, %v; want %d, %v", c.reason, c.in, got, err, c.want, c.err)
		}
	}
}

// TestParseDecimalLong checks that a text as long as a body takes less than a second.
func TestParseDecimalLong(t *testing.T) {
	const n = 1 << 20
	zeros, nines := strings.Repeat("0", n), strings.Repeat("9", n)
	for _, c := range []struct {
		reason string
		in     string
		want   decimal
		err    error
	}{
		{"zeros after the point", "5." + zeros, 5_0000, nil},
		{"zeros that the exponent takes away", "5" + zeros + fmt.Sprintf("e-%d", n), 5_0000, nil},
		{"zeros that the exponent jumps over", "0." + zeros + fmt.Sprintf("5e%d", n+1), 5_0000, nil},
		{"zeros in the exponent", "5e-" + zeros + "1", 5000, nil},
		{"large", nines, 0, errTooLarge},
		{"precise", "0." + nines, 0, errTooPrecise},
		{"large exponent", "1e" + nines, 0, errTooLarge},
		{"small exponent", "1e-" + nines, 0, errTooPrecise},
		{"bad at the very end", nines + "x", 0, errNotNumber},
	} {
		start := time.Now()
		got, err := parseDecimal(c.in)
		if got != c.want || err != c.err {
			t.Errorf("%s: got %d, %v; want %d, %v", c.reason, got, err, c.want, c.err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: took %v", c.reason, took)
		}
	}
}

func TestDecimalString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   decimal
		want string
	}{
		{0, "0"},
		{1, "0.0001"},
		{-1, "-0.0001"},
		{10, "0.001"},
		{-5000, "-0.5"},
		{1_0000, "1"},
		{100_0000, "100"},
		{12_5000, "12.5"},
		{1_0203, "1.0203"},
		{maxDecimal, "99999999999.9999"},
		{-maxDecimal, "-99999999999.9999"},
	} {
		if got := c.in.String(); got != c.want {
			t.Errorf("decimal(%d).String() = %q, want %q", int64(c.in), got, c.want)
		}
	}
	if got := string(decimal(2_5000).append([]byte("x="))); got != "x=2.5" {
		t.Errorf("append gave %q", got)
	}
}

func TestDecimalJSON(t *testing.T) {
	t.Parallel()
	type record struct {
		A decimal
		B *decimal
		C []decimal
	}
	in := `{"A":-12.5,"B":null,"C":[0,100,0.0001]}`
	var r record
	if err := json.Unmarshal([]byte(in), &r); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(r); err != nil || string(out) != in {
		t.Errorf("got %s, %v; want %s", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"A":null}`), &r); err != nil || r.A != -12_5000 {
		t.Errorf("null made A %v, %v; want no change", r.A, err)
	}
	for _, c := range []struct {
		reason string
		in     string
		err    error
	}{
		{"a string is no number", `"5"`, errNotNumber},
		{"an object is no number", `{}`, errNotNumber},
		{"too precise", `0.00001`, errTooPrecise},
		{"too large", `1e99`, errTooLarge},
	} {
		d := decimal(7)
		if err := json.Unmarshal([]byte(c.in), &d); !errors.Is(err, c.err) || d != 7 {
			t.Errorf("%s: error %v, value %v; want %v and no change", c.reason, err, d, c.err)
		}
	}
}

func TestDecimalArithmetic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason    string
		d, e      decimal
		sum, diff decimal
		sumOK     bool
		diffOK    bool
	}{
		{"plain", 1_5000, 2_7500, 4_2500, -1_2500, true, true},
		{"up to the limit", maxDecimal - 1, 1, maxDecimal, maxDecimal - 2, true, true},
		{"down to the limit", 1 - maxDecimal, 1, 2 - maxDecimal, -maxDecimal, true, true},
		{"over the limit", maxDecimal, 1, 0, maxDecimal - 1, false, true},
		{"under the limit", -maxDecimal, 1, 1 - maxDecimal, 0, true, false},
		{"twice the limit", maxDecimal, maxDecimal, 0, 0, false, true},
		{"opposite limits", -maxDecimal, maxDecimal, 0, 0, true, false},
	} {
		if got, ok := c.d.add(c.e); got != c.sum || ok != c.sumOK {
			t.Errorf("%s: %v+%v = %v, %v", c.reason, c.d, c.e, got, ok)
		}
		if got, ok := c.d.sub(c.e); got != c.diff || ok != c.diffOK {
			t.Errorf("%s: %v-%v = %v, %v", c.reason, c.d, c.e, got, ok)
		}
	}
	if got := decimalOf(-99_999); got != -99_999_0000 {
		t.Errorf("decimalOf gave %v", got)
	}
	if beyond := int64(maxDecimal/decimalOne) + 1; strconv.IntSize == 64 { // an int of 32 bits is always in range
		if got := decimalOf(int(1 - beyond)); got.String() != "-99999999999" {
			t.Errorf("decimalOf gave %v", got)
		}
		mustPanic(t, "a number beyond the range", func() { decimalOf(int(beyond)) })
		mustPanic(t, "a number below the range", func() { decimalOf(int(-beyond)) })
	}
}

func mustPanic(t *testing.T, reason string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", reason)
		}
	}()
	f()
}

func TestRoundRat(t *testing.T) {
	t.Parallel()
	// Each row has the results of the four modes in the order of their declaration;
	// "" is a result out of range.
	for _, c := range []struct {
		reason                string
		in                    string
		places                int
		floor, ceil, up, even string
	}{
		{"whole", "7", 0, "7", "7", "7", "7"},
		{"below a half", "2.4", 0, "2", "3", "2", "2"},
		{"above a half", "2.6", 0, "2", "3", "3", "3"},
		{"half over an even digit", "2.5", 0, "2", "3", "3", "2"},
		{"half over an odd digit", "3.5", 0, "3", "4", "4", "4"},
		{"negative half over an even digit", "-2.5", 0, "-3", "-2", "-3", "-2"},
		{"negative half over an odd digit", "-3.5", 0, "-4", "-3", "-4", "-4"},
		{"half below one", "1/2", 0, "0", "1", "1", "0"},
		{"negative half below one", "-1/2", 0, "-1", "0", "-1", "0"},
		{"a hair above a half", "5000000000000000000001/10000000000000000000000", 0, "0", "1", "1", "1"},
		{"a third", "1/3", 2, "0.33", "0.34", "0.33", "0.33"},
		{"two thirds below zero", "-2/3", 4, "-0.6667", "-0.6666", "-0.6667", "-0.6667"},
		{"half of the last place", "0.00005", 4, "0", "0.0001", "0.0001", "0"},
		{"three places", "1.0005", 3, "1", "1.001", "1.001", "1"},
		{"one place", "-0.05", 1, "-0.1", "0", "-0.1", "0"},
		{"exact at the limit", "99999999999.9999", 4, "99999999999.9999", "99999999999.9999", "99999999999.9999", "99999999999.9999"},
		{"up over the limit", "99999999999.9999", 3, "99999999999.999", "", "", ""},
		{"down under the limit", "-99999999999.99991", 4, "", "-99999999999.9999", "-99999999999.9999", "-99999999999.9999"},
		{"far beyond int64", "1e40", 0, "", "", "", ""},
		{"what wraps int64", "-1844674407370955.1616", 4, "", "", "", ""},
	} {
		r, ok := new(big.Rat).SetString(c.in)
		if !ok {
			t.Fatalf("%s: bad row %q", c.reason, c.in)
		}
		before := r.String()
		for _, m := range []struct {
			mode rounding
			want string
		}{{roundFloor, c.floor}, {roundCeil, c.ceil}, {roundHalfUp, c.up}, {roundHalfEven, c.even}} {
			got, ok := roundRat(r, c.places, m.mode)
			if ok != (m.want != "") || ok && got.String() != m.want || !ok && got != 0 {
				t.Errorf("%s: %s of %s to %d places = %v, %v; want %q", c.reason, m.mode, c.in, c.places, got, ok, m.want)
			}
		}
		if r.String() != before {
			t.Errorf("%s: roundRat changed its argument", c.reason)
		}
	}
	if got, ok := roundRat(new(big.Rat), 0, roundHalfUp); got != 0 || !ok {
		t.Errorf("the zero Rat became %v, %v", got, ok)
	}
	mustPanic(t, "five places", func() { roundRat(new(big.Rat), 5, roundFloor) })
	mustPanic(t, "places below zero", func() { roundRat(new(big.Rat), -1, roundFloor) })
	mustPanic(t, "unknown mode", func() { roundRat(new(big.Rat), 0, "Nearest") })
	if rounding("floor").valid() || rounding("").valid() || !roundHalfEven.valid() {
		t.Error("valid does not know the modes")
	}
}

// TestRoundRatProperties checks the definition of each mode on random fractions.
func TestRoundRatProperties(t *testing.T) {
	skipRace(t)
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		r := big.NewRat(rnd.Int64N(2_000_001)-1_000_000, 1+rnd.Int64N(400))
		places := rnd.IntN(5)
		step := big.NewRat(int64(math.Pow10(decimalPlaces-places)), decimalOne)
		round := func(mode rounding) *big.Rat {
			d, ok := roundRat(r, places, mode)
			if !ok {
				t.Fatalf("%v to %d places, %s: refused", r, places, mode)
			}
			if q := new(big.Rat).Quo(d.rat(), step); !q.IsInt() {
				t.Fatalf("%v to %d places, %s: %v has more", r, places, mode, d)
			}
			return d.rat()
		}
		check := func(ok bool, what string) {
			if !ok {
				t.Fatalf("%v to %d places: %s", r, places, what)
			}
		}
		floor, ceil, up, even := round(roundFloor), round(roundCeil), round(roundHalfUp), round(roundHalfEven)
		distance := func(a *big.Rat) *big.Rat { a = new(big.Rat).Sub(a, r); return a.Abs(a) }

		check(floor.Cmp(r) <= 0 && distance(floor).Cmp(step) < 0, "Floor is not the neighbour below")
		check(ceil.Cmp(r) >= 0 && distance(ceil).Cmp(step) < 0, "Ceil is not the neighbour above")
		switch distance(floor).Cmp(distance(ceil)) {
		case -1:
			check(up.Cmp(floor) == 0 && even.Cmp(floor) == 0, "the nearest is below")
		case 1:
			check(up.Cmp(ceil) == 0 && even.Cmp(ceil) == 0, "the nearest is above")
		default:
			check(up.Cmp(floor) == 0 || up.Cmp(ceil) == 0, "HalfUp is no neighbour")
			check(distance(new(big.Rat)).Cmp(new(big.Rat).Abs(up)) <= 0, "HalfUp is not the one away from zero")
			q := new(big.Rat).Quo(even, step)
			check(q.Num().Bit(0) == 0 || floor.Cmp(ceil) == 0, "HalfEven is odd")
		}
	}
}

// FuzzDecimal compares parseDecimal with encoding/json on whether a text is a number
// and with math/big on the number's value.
func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{
		"0", "-0", "1e2", "1.00000", "12.5", "-0.0001", "99999999999.9999", "100000000000", "1e-5", "0e999",
		"1e-400000000", "01", "1.", ".5", "+1", " 1", `"5"`, "null", "{}", "1e+", "123456789e-12", "1000000e-10",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDecimal(s)
		isNumber := json.Valid([]byte(s)) && strings.Trim(s, "0123456789+-.eE") == ""
		if isNumber != (err != errNotNumber) {
			t.Fatalf("parseDecimal(%q): %v", s, err)
		}
		if err != nil && d != 0 {
			t.Fatalf("parseDecimal(%q) = %v with error %v", s, d, err)
		}
		if err == nil {
			if again, err := parseDecimal(d.String()); again != d || err != nil {
				t.Fatalf("parseDecimal(%q) = %v, which reads as %v, %v", s, d, again, err)
			}
		}
		if _, exponent, _ := strings.Cut(strings.ToLower(s), "e"); !isNumber || len(exponent) > 4 {
			return // math/big would compute the power, however large
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("math/big cannot read %q", s)
		}
		units := new(big.Rat).Mul(want, big.NewRat(decimalOne, 1))
		switch {
		case !units.IsInt():
			ok = err == errTooPrecise
		case units.Num().CmpAbs(big.NewInt(int64(maxDecimal))) > 0:
			ok = err == errTooLarge
		default:
			ok = err == nil && d.rat().Cmp(want) == 0
		}
		if !ok {
			t.Fatalf("parseDecimal(%q) = %v, %v; want %v", s, d, err, want)
		}
	})
}

func BenchmarkParseDecimal(b *testing.B) {
	for b.Loop() {
		if _, err := parseDecimal("1234.5"); err != nil {
			b.Fatal(err)
		}
	}
}

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
