package blockset

import (
	"math/rand/v2"
	"testing"
)

// TestChange puts numbers into a block and takes them out, until it is nearly full,
// then nearly empty, and compares with a bitmap.
func TestChange(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	var value []byte
	var bits Bitmap
	for _, likely := range []float64{0.9, 0.1, 0.6, 0} { // the share of numbers put in; the others are taken out
		for range 5000 {
			offset, member := rnd.Uint64N(Block), rnd.Float64() < likely
			if likely == 0.6 {
				offset %= 420 // about the size at which the form changes
			}
			had := bits[offset/8]&(1<<(offset%8)) != 0
			var changed bool
			if value, changed = Change(value, offset, member); changed != (had != member) {
				t.Fatalf("%d in is %t, was %t: changed is %t", offset, member, had, changed)
			}
			if changed {
				bits[offset/8] ^= 1 << (offset % 8)
			}
			if string(value) != string(bits.Encode()) {
				t.Fatalf("after %d: %x, want %x", offset, value, bits.Encode())
			}
		}
	}
}
