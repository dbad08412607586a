package chart

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
)

// TestNiceAxis: an axis has all figures in it, at most 5 steps, each 1, 2 or 5 times a
// power of ten, and none to spare.
func TestNiceAxis(t *testing.T) {
	t.Parallel()
	const most = 999_999_999_999_999
	random := rand.New(rand.NewPCG(4, 2))
	round := regexp.MustCompile(`^(1|2|5)0*$`)
	for range 50_000 {
		low := Figure(random.Int64N(int64(most)>>random.IntN(49))) * Figure(random.IntN(3)-1)
		high := low + Figure(random.Int64N(int64(most)>>random.IntN(49)))
		whole := random.IntN(2) == 0
		a := niceAxis(low, high, whole)
		top := a.high
		switch {
		case a.low > low || top < high || a.tick(0) != a.low || a.tick(a.steps) != top:
			t.Fatalf("%v to %v: axis from %v to %v", low, high, a.low, top)
		case low-a.low >= a.step || top-high >= a.step && high > low:
			t.Fatalf("%v to %v: axis from %v to %v by %v has room to spare", low, high, a.low, top, a.step)
		case a.steps < 1 || a.steps > 5 || !round.MatchString(fmt.Sprint(int64(a.step))):
			t.Fatalf("%v to %v: %d steps of %v", low, high, a.steps, a.step)
		case whole && a.step%one != 0:
			t.Fatalf("%v to %v: whole numbers by %v", low, high, a.step)
		}
	}
}
