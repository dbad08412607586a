package qr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A second implementation, which goes the other way: it reads a picture and shares neither
// tables nor functions with the encoder, but for the sizes of blocks.

// A grid is the modules of a picture, true where dark.
type grid [][]bool

var (
	svgWhole = regexp.MustCompile(`^<svg role="img" aria-label="([^"]*)" width="(\d+)" height="(\d+)" viewBox="0 0 (\d+) (\d+)" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h(\d+)v(\d+)h-(\d+)z"/><path fill="#000" d="([^"]*)"/></svg>$`)
	svgRun   = regexp.MustCompile(`^M(\d+) (\d+)h(\d+)v1h-(\d+)z$`)
)

// gridOf reads a picture, whose quiet zone it checks and leaves out.
func gridOf(svg string) (grid, error) {
	m := svgWhole.FindStringSubmatch(svg)
	if m == nil {
		return nil, fmt.Errorf("no such picture: %s", svg)
	}
	side, _ := strconv.Atoi(m[4])
	for _, same := range m[5:9] {
		if same != m[4] {
			return nil, fmt.Errorf("sides of %s and %s", m[4], same)
		}
	}
	g := make(grid, side-8)
	for i := range g {
		g[i] = make([]bool, side-8)
	}
	for run := range strings.SplitAfterSeq(m[9], "z") {
		if run == "" { // after the last one
			continue
		}
		r := svgRun.FindStringSubmatch(run)
		if r == nil || r[3] != r[4] {
			return nil, fmt.Errorf("no run: %.40s", run)
		}
		x, _ := strconv.Atoi(r[1])
		y, _ := strconv.Atoi(r[2])
		n, _ := strconv.Atoi(r[3])
		if x < 4 || y < 4 || x+n > side-4 || y >= side-4 {
			return nil, fmt.Errorf("%s is in the quiet zone", r[0])
		}
		for j := range n {
			if g[y-4][x-4+j] {
				return nil, fmt.Errorf("%s is drawn twice", r[0])
			}
			g[y-4][x-4+j] = true
		}
	}
	return g, nil
}

// formats are the words of format information of level M, by mask, and golay those of version
// information from 7 on, as annexes C and D list them.
var (
	formats = [8]int{0x5412, 0x5125, 0x5e7c, 0x5b4b, 0x45f9, 0x40ce, 0x4f97, 0x4aa0}
	golay   = [4]int{0x07c94, 0x085bc, 0x09a99, 0x0a4d3}
)

// bits reads modules as a number, the highest first.
func (g grid) bits(n int, at func(i int) (row, column int)) (value int) {
	for i := range n {
		row, column := at(i)
		value <<= 1
		if g[row][column] {
			value |= 1
		}
	}
	return value
}

// mask returns the mask pattern of both copies of format information.
func (g grid) mask() (int, error) {
	n := len(g)
	first := g.bits(15, func(i int) (int, int) { // along the finder pattern, past the timing patterns
		path := [15][2]int{{8, 0}, {8, 1}, {8, 2}, {8, 3}, {8, 4}, {8, 5}, {8, 7}, {8, 8}, {7, 8}, {5, 8}, {4, 8}, {3, 8}, {2, 8}, {1, 8}, {0, 8}}
		return path[i][0], path[i][1]
	})
	second := g.bits(15, func(i int) (int, int) {
		if i < 7 {
			return n - 1 - i, 8
		}
		return 8, n - 15 + i
	})
	for mask, word := range formats {
		if first == word && second == word {
			return mask, nil
		}
	}
	return 0, fmt.Errorf("format information %015b and %015b", first, second)
}

// fixed checks every module that is the same in all symbols of a size, and returns which
// modules hold no data.
func (g grid) fixed() (taken grid, err error) {
	n := len(g)
	number := (n - 17) / 4
	taken = make(grid, n)
	for i := range taken {
		taken[i] = make([]bool, n)
		taken[i][6], taken[i][8] = true, i < 9 || i >= n-8
	}
	pattern := func(row, column int, lines ...string) {
		for i, line := range lines {
			for j, want := range line {
				taken[row+i][column+j] = true
				if g[row+i][column+j] != (want == '#') {
					err = fmt.Errorf("version %d: row %d, column %d of a pattern is wrong", number, row+i, column+j)
				}
			}
		}
	}
	const side, ring = "#######.", "#.....#."
	const core, light = "#.###.#.", "........"
	pattern(0, 0, side, ring, core, core, core, ring, side, light)
	pattern(n-8, 0, light, side, ring, core, core, core, ring, side)
	pattern(0, n-8, ".#######", ".#.....#", ".#.###.#", ".#.###.#", ".#.###.#", ".#.....#", ".#######", light)
	pattern(n-8, 8, "#")
	for i := 8; i < n-8; i++ {
		pattern(6, i, "#."[i%2:i%2+1])
		pattern(i, 6, "#."[i%2:i%2+1])
	}
	middles := map[int][]int{1: nil, 7: {6, 22, n - 7}, 8: {6, 24, n - 7}, 9: {6, 26, n - 7}, 10: {6, 28, n - 7}}
	at, listed := middles[number]
	if !listed {
		at = []int{6, n - 7}
	}
	for _, row := range at {
		for _, column := range at {
			if row+column != 12 && row+column != n-1 || row == column && row != 6 {
				pattern(row-2, column-2, "#####", "#...#", "#.#.#", "#...#", "#####")
			}
		}
	}
	for j := range n {
		taken[8][j] = taken[8][j] || j < 9 || j >= n-8
	}
	if number >= 7 {
		below := g.bits(18, func(i int) (int, int) { return n - 9 - i%3, 5 - i/3 })
		beside := g.bits(18, func(i int) (int, int) { return 5 - i/3, n - 9 - i%3 })
		if below != golay[number-7] || beside != below {
			err = fmt.Errorf("version %d: version information %018b and %018b", number, below, beside)
		}
		for i := range 6 {
			for j := range 3 {
				taken[i][n-11+j], taken[n-11+j][i] = true, true
			}
		}
	}
	return taken, err
}

// inverted says of each mask pattern where it inverts, with x and y as the standard's j and i.
var inverted = [8]func(x, y int) bool{
	func(x, y int) bool { return (x^y)&1 == 0 },
	func(x, y int) bool { return y&1 == 0 },
	func(x, y int) bool { return x%3 == 0 },
	func(x, y int) bool { return (x+y)%3 == 0 },
	func(x, y int) bool { return (y>>1+x/3)&1 == 0 },
	func(x, y int) bool { return (x*y)%6 == 0 },
	func(x, y int) bool { return (x*y)%6 < 3 },
	func(x, y int) bool { return (x+y+x*y%3)&1 == 0 },
}

// decode returns the bytes of a picture, all of whose modules it checks.
func decode(svg string) ([]byte, error) {
	g, err := gridOf(svg)
	if err != nil {
		return nil, err
	}
	taken, err := g.fixed()
	if err != nil {
		return nil, err
	}
	mask, err := g.mask()
	if err != nil {
		return nil, err
	}
	n := len(g)
	var read []bool
	for k := range (n - 1) / 2 { // pairs of columns, from the right; odd ones downwards
		right := n - 1 - 2*k
		if right <= 6 {
			right--
		}
		for i := range n {
			y := i
			if k%2 == 0 {
				y = n - 1 - i
			}
			for _, x := range [2]int{right, right - 1} {
				if !taken[y][x] {
					read = append(read, g[y][x] != inverted[mask](x, y))
				}
			}
		}
	}
	v := versions[(n-17)/4-1]
	if rest := len(read) - 8*v.codewords; rest < 0 || rest > 7 {
		return nil, fmt.Errorf("%d modules for %d codewords", len(read), v.codewords)
	}
	words := make([]byte, v.codewords)
	for i := range 8 * len(words) {
		words[i/8] <<= 1
		if read[i] {
			words[i/8] |= 1
		}
	}
	data, err := corrected(v, words)
	if err != nil {
		return nil, err
	}
	return payload((n-17)/4, data)
}

// corrected takes the blocks apart and returns the data, if each block is a multiple of the
// generator polynomial: if it is 0 at all of its roots.
func corrected(v version, words []byte) (data []byte, err error) {
	length := v.codewords - v.blocks*v.check
	blocks := make([][]byte, v.blocks)
	for i := range words {
		block := i % v.blocks
		if full := length / v.blocks * v.blocks; i >= full && i < length { // the last blocks are longer
			block = v.blocks - length + i
		} else if i >= length {
			block = (i - length) % v.blocks
		}
		blocks[block] = append(blocks[block], words[i])
	}
	var power, log [256]int
	for i, x := 0, 1; i < 255; i++ {
		power[i], log[x] = x, i
		if x *= 2; x > 255 {
			x -= 256
			x ^= 0x1d
		}
	}
	for b, block := range blocks {
		for root := range v.check {
			sum := 0
			for _, word := range block { // Horner
				if sum > 0 {
					sum = power[(log[sum]+root)%255]
				}
				sum ^= int(word)
			}
			if sum != 0 {
				return nil, fmt.Errorf("block %d: syndrome %d is %d", b, root, sum)
			}
		}
		data = append(data, block[:len(block)-v.check]...)
	}
	return data, nil
}

// payload returns the bytes of data codewords, whose mode and padding it checks.
func payload(number int, data []byte) ([]byte, error) {
	bits := ""
	for _, word := range data {
		bits += fmt.Sprintf("%08b", word)
	}
	take := func(n int) (value int) {
		v, _ := strconv.ParseUint(bits[:n], 2, 16)
		bits = bits[n:]
		return int(v)
	}
	if mode := take(4); mode != 4 {
		return nil, fmt.Errorf("mode %04b", mode)
	}
	wide := 8
	if number > 9 {
		wide = 16
	}
	n := take(wide)
	if 8*n+4 > len(bits) {
		return nil, fmt.Errorf("%d bytes, with room for %d bits", n, len(bits))
	}
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(take(8))
	}
	if end := take(4); end != 0 {
		return nil, fmt.Errorf("terminator %04b", end)
	}
	for i := 0; bits != ""; i++ {
		if pad := take(8); pad != [2]int{0xec, 0x11}[i%2] {
			return nil, fmt.Errorf("pad codeword %d is %08b", i, pad)
		}
	}
	return bytes, nil
}

// shown returns the symbol of bytes as a picture that is read back.
func shown(t *testing.T, data []byte) (c *Code, svg string) {
	t.Helper()
	c, ok := Encode(data)
	if !ok {
		t.Fatalf("%d bytes do not fit", len(data))
	}
	svg = c.SVG("", 0)
	if got, err := decode(svg); err != nil || string(got) != string(data) {
		t.Fatalf("%q became %q: %v\n%s", data, got, err, svg)
	}
	return c, svg
}
