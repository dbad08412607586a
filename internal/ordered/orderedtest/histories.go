package orderedtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sello/internal/processtest"
)

// What the flags -history and -histories say.
var (
	ReplayHistory = flag.Uint64("history", 0, "run only the random history with this number")
	MoreHistories = flag.Int("histories", 1, "run so many `times` the histories of the long form; 1: of the quick form, if SELLO_TEST_LONG is not set; not with -short")
)

// Long reports whether random tests run in their long forms.
func Long() bool { return processtest.Long() || *MoreHistories > 1 }

// Rounds returns how often a random test tries something: in its long form, usually, and with
// -short.
func Rounds(long, usual, short int) int {
	switch {
	case testing.Short():
		return short
	case Long():
		return long * *MoreHistories
	}
	return usual
}

// Sized returns a size, a step or a choice that the long form has larger; -histories does not
// multiply it.
func Sized(long, usual int) int {
	if Long() {
		return long
	}
	return usual
}

// Histories runs fn with n sources of randomness, in parallel blocks. Each history has
// a number. A failure reports it, and -history runs that history again. The quick form has an
// eighth of n, at least 5, and with -short there is a tenth.
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
	last := uint64(Rounds(n, max((n+7)/8, min(n, 5)), (n+9)/10))
	for first := uint64(1); first <= last; first += block {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			t.Parallel()
			for number := first; number < first+block && number <= last && !t.Failed(); number++ {
				run(t, number)
			}
		})
	}
}
