package qr

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLimits: each version takes as many bytes as table 7 says, and one more is the next
// version's.
func TestLimits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	least := 0
	for i, most := range []int{14, 26, 42, 62, 84, 106, 122, 152, 180, 213} {
		for _, n := range []int{least, (least + most) / 2, most} {
			for _, data := range [][]byte{random(n), make([]byte, n), bytes.Repeat([]byte{0xff}, n)} {
				if c, _ := shown(t, data); c.size != 21+4*i {
					t.Errorf("%d bytes have %d modules, want %d", n, c.size, 21+4*i)
				}
			}
		}
		least = most + 1
	}
	for _, n := range []int{least, 300, 1 << 16} {
		if c, ok := Encode(make([]byte, n)); ok || c != nil {
			t.Errorf("%d bytes fit", n)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("otpauth://totp/a:b@example.com?issuer=a&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"))
	f.Add(bytes.Repeat([]byte{0xec, 0x11}, 106))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, ok := Encode(data); ok != (len(data) <= 213) {
			t.Fatalf("%d bytes: %v", len(data), ok)
		} else if ok {
			shown(t, data)
		}
	})
}

// TestDecoder: the tests' decoder sees it when any one module is another.
func TestDecoder(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	for _, n := range []int{14, 152} { // versions 1 and 8, which has version information and blocks of two sizes
		c, _ := shown(t, bytes.Repeat([]byte{'x'}, n))
		unseen := 0
		for i := range c.modules {
			c.modules[i].dark = !c.modules[i].dark
			if got, err := decode(c.SVG("", 0)); err == nil && len(got) == n {
				unseen++
			}
			c.modules[i].dark = !c.modules[i].dark
		}
		if unseen != 0 {
			t.Errorf("%d bytes: %d modules can be changed unseen", n, unseen)
		}
	}
}

// TestRemainder has examples that others published.
func TestRemainder(t *testing.T) {
	for _, test := range []struct {
		reason       string
		data, checks []byte
	}{
		{"ISO/IEC 18004 annex I: 01234567, 1-M", []byte{0x10, 0x20, 0x0c, 0x56, 0x61, 0x80, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11},
			[]byte{0xa5, 0x24, 0xd4, 0xc1, 0xed, 0x36, 0xc7, 0x87, 0x2c, 0x55}},
		{"thonky.com: HELLO WORLD, 1-M", []byte{32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17},
			[]byte{196, 35, 39, 119, 235, 215, 231, 226, 93, 23}},
	} {
		if got := remainder(test.data, generatorOf(len(test.checks))); !bytes.Equal(got, test.checks) {
			t.Errorf("%s: %v, want %v", test.reason, got, test.checks)
		}
	}
}

// TestGenerator: annex A lists the powers of 2 that are the factors.
func TestGenerator(t *testing.T) {
	for n, powers := range map[int][]int{
		7:  {0, 87, 229, 146, 149, 238, 102, 21},
		10: {0, 251, 67, 46, 61, 118, 70, 64, 94, 32, 45},
	} {
		var want []byte
		for _, power := range powers {
			x := byte(1)
			for range power {
				x = multiply(x, 2)
			}
			want = append(want, x)
		}
		if got := generatorOf(n); !bytes.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

// TestProtected has the examples of annexes C and D.
func TestProtected(t *testing.T) {
	if got := formatOf(0b101); got != 0b100000011001110 {
		t.Errorf("level M, mask 101: %015b", got)
	}
	if got := protected(7, versionGenerator); got != 0b000111110010010100 {
		t.Errorf("version 7: %018b", got)
	}
}

// drawn returns a symbol of lines of which # is dark.
func drawn(lines ...string) *Code {
	c := &Code{size: len(lines)}
	for _, line := range lines {
		for _, r := range line {
			c.modules = append(c.modules, module{dark: r == '#'})
		}
	}
	return c
}

func TestPenalty(t *testing.T) {
	square := func(n int, at func(i, j int) bool) *Code {
		c := &Code{size: n}
		for i := range n {
			for j := range n {
				c.modules = append(c.modules, module{dark: at(i, j)})
			}
		}
		return c
	}
	for _, test := range []struct {
		reason string
		code   *Code
		want   int
	}{
		{"nothing is wrong with a chessboard", square(20, func(i, j int) bool { return (i+j)%2 == 0 }), 0},
		{"42 runs of 21 modules, 400 blocks, no dark module", square(21, func(i, j int) bool { return false }), 42*(3+16) + 400*3 + 100},
		{"the same in black", square(21, func(i, j int) bool { return true }), 42*(3+16) + 400*3 + 100},
		{"columns: 20 runs of 20", square(20, func(i, j int) bool { return j%2 == 0 }), 20 * (3 + 15)},
		{"two blocks, 15 of 25 are dark", drawn("#.#.#", ".###.", "####.", ".#.#.", "#.#.#"), 2*3 + 20},
		{"40 % are dark", square(20, func(i, j int) bool { return (i+2*j)%5 < 2 }), 20},
		{"60 % are dark", square(20, func(i, j int) bool { return (i+2*j)%5 >= 2 }), 20},
		{"45.5 % are dark", square(11, func(i, j int) bool { k := (i + j) % 11; return k < 10 && k%2 == 0 }), 0},
	} {
		if got := test.code.penalty(); got != test.want {
			t.Errorf("%s: %d, want %d", test.reason, got, test.want)
		}
	}
}

func TestFinders(t *testing.T) {
	for _, test := range []struct {
		line string
		want int
		why  string
	}{
		{"####.#.###.#....##", 40, "four light modules after it"},
		{"##....#.###.#.##", 40, "before it"},
		{"#....#.###.#....#", 40, "on both sides, which counts once"},
		{"##.#.###.#.##", 0, "on no side"},
		{"##...#.###.#...##", 0, "three are too few"},
		{"#.###.#.###.#", 80, "two, each at an edge, where the quiet zone is"},
		{"#....#.####.#....#", 0, "1:1:4:1:1"},
		{"#....#.##.#....#", 0, "1:1:2:1:1"},
	} {
		line := make([]bool, len(test.line))
		for i := range line {
			line[i] = test.line[i] == '#'
		}
		if got := finders(line); got != test.want {
			t.Errorf("%s (%s): %d, want %d", test.line, test.why, got, test.want)
		}
	}
}

// TestEncode has a symbol as ZXing draws it.
func TestEncode(t *testing.T) {
	want := drawn(
		"#######..##...#######",
		"#.....#..#..#.#.....#",
		"#.###.#.#...#.#.###.#",
		"#.###.#.####..#.###.#",
		"#.###.#.#.#.#.#.###.#",
		"#.....#.#.##..#.....#",
		"#######.#.#.#.#######",
		"........###..........",
		"#.#####..#.#..#####..",
		"#.#......##.#..##.###",
		".#....#.#.#.#..#.#.#.",
		".#.#.#.##...#...####.",
		"###.#.#..#######....#",
		"........##.#...###..#",
		"#######...#.##...#.#.",
		"#.....#.#...#.....##.",
		"#.###.#.###.###....##",
		"#.###.#.##.#..####...",
		"#.###.#.##..#....#...",
		"#.....#.....#....##..",
		"#######.###.#####..#.",
	)
	got, _ := shown(t, []byte("iso/iec 18004"))
	if got.SVG("", 0) != want.SVG("", 0) {
		t.Errorf("%s\nwant %s", got.SVG("", 0), want.SVG("", 0))
	}
}

// TestMasks: of the eight symbols the one with the least penalty is taken, all can be read,
// and each mask pattern is taken for something.
func TestMasks(t *testing.T) {
	var taken [8]int
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		data := fmt.Appendf(nil, "%016x", rnd.Uint64())
		c, _ := shown(t, data)
		number := (c.size - 17) / 4
		base := newSymbol(number)
		base.place(message(versions[number-1], dataCodewords(number, data)))
		var penalties []int
		for mask := range 8 {
			m := base.masked(mask)
			if got, err := decode(m.SVG("", 0)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("mask %d: %q %v", mask, got, err)
			}
			penalties = append(penalties, m.penalty())
		}
		g, _ := gridOf(c.SVG("", 0))
		mask, _ := g.mask()
		if penalties[mask] != slices.Min(penalties) {
			t.Errorf("%s: mask %d of %v", data, mask, penalties)
		}
		taken[mask]++
	}
	if slices.Contains(taken[:], 0) {
		t.Errorf("masks are taken %v times", taken)
	}
}

// TestSVG: the picture is as large as asked, and its label is text.
func TestSVG(t *testing.T) {
	for _, test := range []struct{ bytes, most, want int }{
		{0, 240, 8 * 29}, {84, 240, 5 * 45}, {213, 240, 3 * 65}, {213, 65, 65}, {213, 0, 65},
	} {
		c, _ := Encode(make([]byte, test.bytes))
		if svg := c.SVG(`a<b>"c"&d`, test.most); !strings.HasPrefix(svg, fmt.Sprintf(`<svg role="img" aria-label="a&lt;b&gt;&#34;c&#34;&amp;d" width="%d" height="%[1]d" `, test.want)) {
			t.Errorf("%d bytes, %d pixels: %.120s", test.bytes, test.most, svg)
		}
	}
}
