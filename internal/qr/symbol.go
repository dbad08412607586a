package qr

import "math/bits"

// A Code is a symbol, without the quiet zone around it.
type Code struct {
	size    int      // modules in a row, and rows
	modules []module // row by row
}

// A module is a cell of a symbol.
type module struct {
	dark     bool
	function bool // of a function pattern, or of format or version information
}

// Encode returns the smallest symbol that holds data, or false if data has more than 213
// bytes.
func Encode(data []byte) (c *Code, ok bool) {
	for number := 1; number <= len(versions); number++ {
		if len(data) <= capacity(number) {
			c := newSymbol(number)
			c.place(message(versions[number-1], dataCodewords(number, data)))
			return c.bestMasked(), true
		}
	}
	return nil, false
}

func (c *Code) at(row, column int) *module { return &c.modules[row*c.size+column] }

// set sets a module that is no data.
func (c *Code) set(row, column int, dark bool) { *c.at(row, column) = module{dark, true} }

// newSymbol returns a symbol with its function patterns (6.3), version information, and
// format information that masked replaces.
func newSymbol(number int) *Code {
	size := 17 + 4*number
	c := &Code{size: size, modules: make([]module, size*size)}
	for _, at := range [][2]int{{3, 3}, {3, size - 4}, {size - 4, 3}} {
		c.square(at[0], at[1], 4, 0b01011) // finder pattern and separator
	}
	alignment := versions[number-1].alignment
	for _, row := range alignment {
		for _, column := range alignment {
			if !c.at(row, column).function { // there is a finder pattern
				c.square(row, column, 2, 0b101)
			}
		}
	}
	for i := 8; i < size-8; i++ { // timing patterns
		c.set(6, i, i%2 == 0)
		c.set(i, 6, i%2 == 0)
	}
	c.writeFormat(0)
	if number >= 7 {
		c.writeVersion(number)
	}
	return c
}

// square draws squares around each other, as far as they are inside the symbol. Bit i of
// dark is for the one whose modules are i away from the centre.
func (c *Code) square(row, column, radius, dark int) {
	for i := max(0, row-radius); i <= min(c.size-1, row+radius); i++ {
		for j := max(0, column-radius); j <= min(c.size-1, column+radius); j++ {
			away := max(i-row, row-i, j-column, column-j)
			c.set(i, j, dark>>away&1 > 0)
		}
	}
}

// Polynomials of the codes that protect format and version information (annexes C and D).
const (
	formatGenerator  = 0b101_0011_0111
	versionGenerator = 0b1_1111_0010_0101
	formatMask       = 0b101_0100_0001_0010 // lest all be light
	levelM           = 0b00                 // table 12
)

// protected returns a value and, below it, the remainder of its division by a generator.
func protected(value, generator uint) uint {
	n := bits.Len(generator) - 1
	rest := value << n
	for bits.Len(rest) > n {
		rest ^= generator << (bits.Len(rest) - n - 1)
	}
	return value<<n | rest
}

// formatOf returns format information (7.9).
func formatOf(mask int) uint { return protected(levelM<<3|uint(mask), formatGenerator) ^ formatMask }

// writeFormat writes format information twice, and the module that is always dark (7.9.1).
func (c *Code) writeFormat(mask int) {
	format, last := formatOf(mask), c.size-1
	for i := range 15 {
		dark := format>>i&1 > 0
		switch {
		case i < 6:
			c.set(i, 8, dark)
		case i < 8:
			c.set(i+1, 8, dark) // past the timing pattern
		case i == 8:
			c.set(8, 7, dark)
		default:
			c.set(8, 14-i, dark)
		}
		if i < 8 {
			c.set(8, last-i, dark)
		} else {
			c.set(last-14+i, 8, dark)
		}
	}
	c.set(last-7, 8, true)
}

// writeVersion writes version information twice (7.10).
func (c *Code) writeVersion(number int) {
	v := protected(uint(number), versionGenerator)
	for i := range 18 {
		far, near := c.size-11+i%3, i/3
		c.set(far, near, v>>i&1 > 0)
		c.set(near, far, v>>i&1 > 0)
	}
}

// place writes codewords into the modules that are free: in pairs of columns from the right,
// up and down in turn (7.7.3). Modules that are left stay light.
func (c *Code) place(words []byte) {
	n, up := 0, true
	for right := c.size - 1; right > 0; right -= 2 {
		if right == 6 { // the column of the timing pattern
			right--
		}
		for i := range c.size {
			row := i
			if up {
				row = c.size - 1 - i
			}
			for column := right; column >= right-1; column-- {
				if m := c.at(row, column); !m.function && n < 8*len(words) {
					m.dark = words[n/8]>>(7-n%8)&1 > 0
					n++
				}
			}
		}
		up = !up
	}
}
