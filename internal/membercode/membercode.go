// Package membercode is codes that people read out, type and scan: a letter, which says what
// kind it is, and symbols of Crockford's base 32, which has no I, L, O and U.
//
// A kind of codes numbers something: each number has one code, which only who has the kind's
// secret can tell from the number, or the number from it. So codes need no table, and tell
// nobody how many there are.
package membercode

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strings"
)

const (
	// Limit is the first number that has no code.
	Limit = 1 << (leftBits + rightBits)

	// Len is the length of a code, its letter included.
	Len = 1 + symbols

	leftBits, rightBits = 17, 18
	rounds              = 8
	symbols             = (leftBits+rightBits)/symbolBits + 1 // the last one checks the others
	symbolBits          = 5
	alphabet            = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// A Kind of codes has a letter and a secret of its own.
type Kind struct {
	Letter byte
	Secret []byte
}

// Code returns the code of a number below Limit.
func (k Kind) Code(number uint64) string {
	n := k.permute(number)
	code := [Len]byte{k.Letter}
	values := code[1:]
	for i := range symbols - 1 {
		values[i] = byte(n >> (symbolBits * (symbols - 2 - i)) & (1<<symbolBits - 1))
	}
	values[symbols-1] = checkOf(values)
	for i, v := range values {
		values[i] = alphabet[v]
	}
	return string(code[:])
}

// Number returns the number of a code as Plain returns it; false if it is no code.
func (k Kind) Number(code string) (number uint64, ok bool) {
	permuted, ok := read(k.Letter, code)
	if !ok {
		return 0, false
	}
	return k.restore(permuted), true
}

// IsCode reports whether a text, as Plain returns it, is a code with the letter, whatever the
// secret. Each wrong symbol, and two unlike neighbours that were swapped, are noticed.
func IsCode(letter byte, code string) bool {
	_, ok := read(letter, code)
	return ok
}

// read returns the permuted number of a code.
func read(letter byte, code string) (n uint64, ok bool) {
	if len(code) != Len || code[0] != letter {
		return 0, false
	}
	var values [symbols]byte
	for i := range values {
		at := strings.IndexByte(alphabet, code[1+i])
		if at < 0 {
			return 0, false
		}
		values[i] = byte(at)
		n = n<<symbolBits | uint64(at)
	}
	return n >> symbolBits, sum(values[:]) == 0
}

// The permutation of numbers is a Feistel network of two unlike halves: by turns one of them is
// changed by what the secret makes of the other, so that the same rounds from the end undo it.

func (k Kind) permute(number uint64) uint64 {
	f := k.network(number)
	for round := range byte(rounds) {
		f.mix(round)
	}
	return f.number()
}

func (k Kind) restore(number uint64) uint64 {
	f := k.network(number)
	for round := byte(rounds); round > 0; round-- {
		f.mix(round - 1)
	}
	return f.number()
}

type network struct {
	mac         hash.Hash
	left, right uint64
}

func (k Kind) network(number uint64) *network {
	return &network{hmac.New(sha256.New, k.Secret), number >> rightBits, number & (1<<rightBits - 1)}
}

func (f *network) number() uint64 { return f.left<<rightBits | f.right }

func (f *network) mix(round byte) {
	if round%2 == 0 {
		f.left ^= f.scramble(round, f.right) & (1<<leftBits - 1)
	} else {
		f.right ^= f.scramble(round, f.left) & (1<<rightBits - 1)
	}
}

func (f *network) scramble(round byte, half uint64) uint64 {
	f.mac.Reset()
	f.mac.Write(binary.BigEndian.AppendUint64([]byte{round}, half))
	return binary.BigEndian.Uint64(f.mac.Sum(nil))
}

// A symbol is an element of the field of 32: a polynomial over two elements, of which bit i is
// the factor of xⁱ, modulo x⁵+x²+1. The sum over i of xⁱ·symbolᵢ is zero in each code. The xⁱ of
// all places are unlike, so a wrong symbol or two unlike ones in each other's places change the sum.

// sum returns the sum of all symbols, the last one being the last place's.
func sum(values []byte) (s byte) {
	for i := len(values) - 1; i >= 0; i-- {
		s = timesX(s) ^ values[i]
	}
	return s
}

// checkOf returns the last symbol, of which the sum is zero, of those before it.
func checkOf(values []byte) byte {
	check := sum(values[:symbols-1])
	for range 1<<symbolBits - 1 - (symbols - 1) { // x³¹ is 1
		check = timesX(check)
	}
	return check
}

func timesX(v byte) byte {
	const modulus = 1<<5 | 1<<2 | 1
	if v <<= 1; v>>symbolBits != 0 {
		v ^= modulus
	}
	return v
}

// Plain returns a code as it was made, however it was typed: letter case, blanks and dashes do
// not count, O is read as 0, I and L as 1. Everything else stays, and makes it no code.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			r -= 'a' - 'A'
		case r == '-' || r == ' ' || r == '\t' || r == '\u00a0':
			return -1
		}
		switch r {
		case 'O':
			return '0'
		case 'I', 'L':
			return '1'
		}
		return r
	}, text)
}

// Written returns a plain code as people read it: M-7K3Q-M4T2.
func Written(code string) string {
	var b strings.Builder
	for i := range len(code) {
		if i%4 == 1 {
			b.WriteByte('-')
		}
		b.WriteByte(code[i])
	}
	return b.String()
}

// Random returns a code whose symbols are random: one for each byte of seed, which is random.
func Random(letter byte, seed []byte) string {
	code := []byte{letter}
	for _, b := range seed {
		code = append(code, alphabet[b%byte(len(alphabet))])
	}
	return string(code)
}

// IsRandom reports whether a plain code is one that Random may return for a seed of n bytes.
func IsRandom(code string, letter byte, n int) bool {
	return len(code) == 1+n && code[0] == letter && strings.Trim(code[1:], alphabet) == ""
}
