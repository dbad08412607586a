package membercode

import (
	"math/rand/v2"
	"strings"
	"testing"
)

var members = Kind{'M', []byte("a secret of thirty-two bytes ...")}

// TestCodes makes codes of the ends, the first numbers and random ones: distinct, and back.
func TestCodes(t *testing.T) {
	const seed = 54
	r := rand.New(rand.NewPCG(seed, 0))
	numbers := map[uint64]bool{0: true, Limit - 1: true}
	for n := range uint64(5000) {
		numbers[n], numbers[r.Uint64N(Limit)] = true, true
	}
	codes := map[string]bool{}
	for n := range numbers {
		code := members.Code(n)
		codes[code] = true
		if back, ok := members.Number(Plain(strings.ToLower(Written(code)))); back != n || !ok {
			t.Errorf("%d: %s leads to %d, %t", n, code, back, ok)
		}
	}
	if len(codes) != len(numbers) {
		t.Errorf("%d numbers have %d codes", len(numbers), len(codes))
	}
}

// TestCodesScattered counts how often each symbol stands at each place of the codes of numbers in
// a row: about a thousand times, and at most 6 standard deviations of 31 from it.
func TestCodesScattered(t *testing.T) {
	const each = 1000
	var times [symbols]map[byte]int
	for i := range times {
		times[i] = map[byte]int{}
	}
	for n := range uint64(each * len(alphabet)) {
		code := members.Code(n)
		for i := range times {
			times[i][code[1+i]]++
		}
	}
	for i := range times {
		for _, symbol := range []byte(alphabet) {
			if n := times[i][symbol]; n < each-6*31 || n > each+6*31 {
				t.Errorf("place %d has %c %d times", i, symbol, n)
			}
		}
	}
}

// TestFixedCodes holds codes that are printed on cards: they never change.
func TestFixedCodes(t *testing.T) {
	for n, want := range map[uint64]string{
		1: "M-1X6X-JQ69", 1_000_000: "M-WQ07-PEEX", Limit - 1: "M-X1JF-SWTD",
	} {
		if got := Written(members.Code(n)); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}

// TestEverySlip proves for all codes that one wrong symbol, or two unlike neighbours swapped,
// make no code: the sum is linear, so such a slip adds to it what it adds to nothing.
func TestEverySlip(t *testing.T) {
	for change := byte(1); change < 1<<symbolBits; change++ {
		for i := range symbols {
			var slip [symbols]byte
			slip[i] = change
			if sum(slip[:]) == 0 {
				t.Errorf("symbol %d wrong by %05b is not noticed", i, change)
			}
			if i++; i < symbols {
				slip[i] = change
				if sum(slip[:]) == 0 {
					t.Errorf("symbols %d and %d, unlike by %05b, swapped: not noticed", i-1, i, change)
				}
			}
		}
	}
	for a := range byte(1 << symbolBits) {
		for b := range byte(1 << symbolBits) {
			if timesX(a^b) != timesX(a)^timesX(b) {
				t.Fatal("the sum is not linear")
			}
		}
	}
}

// TestSlipsOfCodes tries all single changes and swaps of a hundred codes.
func TestSlipsOfCodes(t *testing.T) {
	const seed = 25
	r := rand.New(rand.NewPCG(seed, 0))
	refused := func(code []byte) {
		if n, ok := members.Number(string(code)); ok {
			t.Errorf("%s is taken for %d", code, n)
		}
	}
	for range 100 {
		code := []byte(members.Code(r.Uint64N(Limit)))
		for i := 1; i < Len; i++ {
			right := code[i]
			for _, wrong := range []byte(alphabet) {
				if code[i] = wrong; wrong != right {
					refused(code)
				}
			}
			code[i] = right
			if i > 1 && code[i-1] != right {
				code[i-1], code[i] = right, code[i-1]
				refused(code)
				code[i-1], code[i] = code[i], right
			}
		}
	}
}

func TestNoCode(t *testing.T) {
	code := members.Code(7)
	for _, text := range []string{"", code[1:], code + "0", "R" + code[1:], "m" + code[1:], strings.Replace(code, code[3:4], "U", 1),
		Plain(code + "ñ"), "M\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if n, ok := members.Number(text); ok {
			t.Errorf("%q is taken for %d", text, n)
		}
	}
	for _, others := range []Kind{{'M', []byte("another secret")}, {'R', members.Secret}} {
		if n, ok := others.Number(code); ok && n == 7 {
			t.Errorf("%c: the code leads to its owner", others.Letter)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"M-7K3Q-M4TX":     "M7K3QM4TX",
		" m7k3q m4tx\t":   "M7K3QM4TX",
		"m-oiol-ilxx":     "M010111XX",
		"M‐7K3Q":          "M‐7K3Q", // a dash that no keyboard has
		"M7K3Q.M4TX":      "M7K3Q.M4TX",
		"J-4K7Q-X2":       "J4K7QX2",
		"\u00a0M-7K3Q ":   "M7K3Q",
		"correo@ejem.com": "C0RRE0@EJEM.C0M",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is read as %q, not %q", text, got, want)
		}
	}
	for code, want := range map[string]string{"M7K3QM4TX": "M-7K3Q-M4TX", "J4K7QX2": "J-4K7Q-X2", "T7K3QM4TX9Q": "T-7K3Q-M4TX-9Q", "": "", "M": "M"} {
		if got := Written(code); got != want {
			t.Errorf("%s is written %s, not %s", code, got, want)
		}
	}
}

func TestRandom(t *testing.T) {
	code := Random('J', []byte{0, 31, 32, 255, 10, 26})
	if code != "J0Z0ZAT" || !IsRandom(code, 'J', 6) {
		t.Error(code)
	}
	for _, no := range []string{"", "J0Z0ZA", "J0Z0ZATT", "T0Z0ZAT", "J0Z0UAT", "JU0Z0ZA", "J0Z0ZAU"} {
		if IsRandom(no, 'J', 6) {
			t.Errorf("%q is taken for a code", no)
		}
	}
}

func BenchmarkCode(b *testing.B) {
	for n := uint64(0); b.Loop(); n++ {
		members.Code(n)
	}
}
