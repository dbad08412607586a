package orderedtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// What the flags -history and -histories say.
var (
	ReplayHistory = flag.Uint64("history", 0, "run only the random history with this number")
	MoreHistories = flag.Int("histories", 1, "run so many times the usual number of random histories")
)

// Histories runs fn with n sources of randomness, in parallel blocks. Each history has
// a number. A failure reports it, and -history runs that history again. With -short there are a
// fifth of n.
func Histories(t *testing.T, n int, fn func(t *testing.T, rnd *rand.Rand)) {
	const block = 10
	run := func(t *testing.T, number uint64) {
		defer func() {
			if t.Failed() {
				t.Logf("this was history %d: go test -run '^%s$' -history %[1]d", number, strings.Split(t.Name(), "/")[0])
			}
		}()
		fn(t, rand.New(rand.NewPCG(number, 0)))
	}
	if *ReplayHistory != 0 {
		run(t, *ReplayHistory)
		return
	}
	if testing.Short() {
		n = (n + 4) / 5
	}
	last := uint64(n * *MoreHistories)
	for first := uint64(1); first <= last; first += block {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			t.Parallel()
			for number := first; number < first+block && number <= last && !t.Failed(); number++ {
				run(t, number)
			}
		})
	}
}
