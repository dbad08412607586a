package qr

import "slices"

// A version is the size of a symbol. Its numbers are those of level M.
type version struct {
	codewords int   // of data and error correction (table 1)
	blocks    int   // that are corrected apart (table 9)
	check     int   // error correction codewords of each block (table 9)
	alignment []int // rows and columns of the centres of alignment patterns (annex E)
}

// versions are versions 1 to 10.
var versions = [...]version{
	{26, 1, 10, nil},
	{44, 1, 16, []int{6, 18}},
	{70, 1, 26, []int{6, 22}},
	{100, 2, 18, []int{6, 26}},
	{134, 2, 24, []int{6, 30}},
	{172, 4, 16, []int{6, 34}},
	{196, 4, 18, []int{6, 22, 38}},
	{242, 4, 22, []int{6, 24, 42}},
	{292, 5, 22, []int{6, 26, 46}},
	{346, 5, 26, []int{6, 28, 50}},
}

// data returns how many codewords are data.
func (v version) data() int { return v.codewords - v.blocks*v.check }

// countNibbles returns how many groups of 4 bits tell the number of bytes (table 3).
func countNibbles(number int) int {
	if number <= 9 {
		return 2
	}
	return 4
}

// capacity returns how many bytes a version holds (table 7). The mode takes 4 bits, and so
// does the terminator: the bytes between them always leave room for all of it.
func capacity(number int) int {
	return versions[number-1].data() - (4+4*countNibbles(number)+4)/8
}

// dataCodewords returns the data codewords of bytes (7.4.5, 7.4.9, 7.4.10).
func dataCodewords(number int, data []byte) []byte {
	const byteMode, terminator = 0b0100, 0 // table 2
	nibbles := []byte{byteMode}
	for i := countNibbles(number) - 1; i >= 0; i-- {
		nibbles = append(nibbles, byte(len(data)>>(4*i)&15))
	}
	for _, b := range data {
		nibbles = append(nibbles, b>>4, b&15)
	}
	nibbles = append(nibbles, terminator)
	words := make([]byte, 0, versions[number-1].data())
	for i := 0; i < len(nibbles); i += 2 {
		words = append(words, nibbles[i]<<4|nibbles[i+1])
	}
	for pad := byte(0b11101100); len(words) < cap(words); pad ^= 0b11101100 ^ 0b00010001 {
		words = append(words, pad)
	}
	return words
}

// message returns all codewords of a symbol: the data codewords in blocks, of which the
// last ones are longer if the blocks are not equal, then what corrects them. Both are
// interleaved (7.6).
func message(v version, data []byte) []byte {
	generator := generatorOf(v.check)
	var blocks, checks [][]byte
	for i := range v.blocks {
		n := len(data) / (v.blocks - i)
		blocks, checks = append(blocks, data[:n]), append(checks, remainder(data[:n], generator))
		data = data[n:]
	}
	return interleave(interleave(make([]byte, 0, v.codewords), blocks), checks)
}

// interleave appends the first codeword of each block, then the second, and so on. The last
// block is one of the longest.
func interleave(words []byte, blocks [][]byte) []byte {
	for i := range blocks[len(blocks)-1] {
		for _, block := range blocks {
			if i < len(block) {
				words = append(words, block[i])
			}
		}
	}
	return words
}

// multiply returns a product in the field GF(256) whose modulus is x⁸+x⁴+x³+x²+1 (7.5.2).
func multiply(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 > 0 {
			product ^= a
		}
		a = a<<1 ^ a>>7*0b00011101
	}
	return product
}

// generatorOf returns the generator polynomial of n error correction codewords:
// (x-1)(x-2)(x-4)…, from the highest power on (annex A).
func generatorOf(n int) []byte {
	g, root := []byte{1}, byte(1)
	for range n {
		product := append(g, 0) // by x
		for i := len(g) - 1; i >= 0; i-- {
			product[i+1] ^= multiply(g[i], root)
		}
		g, root = product, multiply(root, 2)
	}
	return g
}

// remainder returns the error correction codewords of a block: what is left of it, followed
// by as many zeros as there will be, after the division by the generator (7.5.2).
func remainder(block, generator []byte) []byte {
	rest := append(slices.Clone(block), make([]byte, len(generator)-1)...)
	for i := range block {
		factor := rest[i]
		for j, g := range generator {
			rest[i+j] ^= multiply(g, factor)
		}
	}
	return rest[len(block):]
}
