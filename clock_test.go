package main

import (
	"bytes"
	"testing"
)

// TestMint checks that the ids of one operation are UUIDv7 of its moment in
// ascending order. The same moment and seed give the same ids, another seed others.
func TestMint(t *testing.T) {
	t.Parallel()
	const moment, many = instant(0x0190_1234_5678), 5000
	for n := range byte(20) {
		m, again := newMint(moment, seed{n}), newMint(moment, seed{n})
		var first, last id
		for i := range many {
			u := m.id()
			if u != again.id() {
				t.Fatalf("seed %d: id %d is another one the second time", n, i)
			}
			if u[6]>>4 != 7 || u[8]>>6 != 2 || !bytes.Equal(u[:6], []byte{0x01, 0x90, 0x12, 0x34, 0x56, 0x78}) {
				t.Fatalf("seed %d: id %d is %s", n, i, u)
			}
			if bytes.Compare(u[:], last[:]) <= 0 {
				t.Fatalf("seed %d: id %d is %s, after %s", n, i, u, last)
			}
			if last = u; i == 0 {
				first = u
			}
		}
		if other := newMint(moment, seed{n + 100}).id(); bytes.Equal(first[:10], other[:10]) {
			t.Errorf("seeds %d and %d give neighbouring ids", n, n+100)
		}
	}
}
