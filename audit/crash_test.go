package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sello/internal/processtest"
)

// Tests of crashes: the binary is killed while clients write to it, started again and
// audited, on one file over many cycles. The auditor sends the writes and checks the data,
// in a process of its own.
//
// kill -9 ends the process, not the machine: all that was written to files survives,
// synced or not. So these tests find writes that are answered before they are written, and
// files that cannot be read after a kill at some moment. They say nothing about fsync.
//
// A seed repeats the moments, the kinds of end and the requests, but not how the machine
// interleaves them. A failure may take several runs to come again.

var (
	crashCycles  = flag.Int("crash.n", 0, "kill the server so many `times`; 0: a few")
	crashSeed    = flag.Uint64("crash.seed", 0, "seed of the tests that kill the server; 0: a new one")
	crashMutants = flag.Bool("crash.mutants", false, "also kill servers that were made to lose and to double writes")
)

const (
	// fewCrashes is how many crashes TestCrash makes without -crash.n; its quick form makes
	// a third of them. While they are tame it makes more, up to enoughCrashes.
	fewCrashes, enoughCrashes = 12, 20
	// crashesOnOneFile bounds the cycles on one file, since audits take longer as it grows.
	crashesOnOneFile = 25
)

func TestCrash(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	ordinary, often := builtBinary(t), oftenBinary(t)
	left, enough := *crashCycles, *crashCycles
	switch {
	case left == 0 && processtest.Long():
		left, enough = fewCrashes, enoughCrashes
	case left == 0:
		left, enough = fewCrashes/3, enoughCrashes
	}
	var sum crashFigures
	for i := uint64(0); left > 0; i, left = i+1, left-crashesOnOneFile {
		n := min(left, crashesOnOneFile)
		ok := t.Run(fmt.Sprintf("file%d", i+1), func(t *testing.T) {
			v := newVictim(t, seed+i, ordinary, often)
			defer func() {
				if t.Failed() {
					t.Logf("again: go test ./audit -run '^TestCrash$' -crash.n=%d -crash.seed=%d", max(n, v.figures.crashes()), seed+i)
				}
			}()
			for v.figures.crashes() < n || v.figures.tame() && *crashCycles == 0 && v.figures.crashes() < enough {
				v.cycle()
			}
			v.audit("-all")
			v.wantStopped()
			sum.add(v.figures)
		})
		if !ok {
			break
		}
	}
	t.Logf("-crash.seed=%d: %+v", seed, sum)
	if !t.Failed() && sum.crashes() >= enoughCrashes && sum.tame() {
		t.Error("the moments were too tame to show anything")
	}
}

// newCrashSeed returns the seed of a test that kills the binary.
func newCrashSeed(t *testing.T) uint64 {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no signals here")
	}
	needBinary(t)
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000_000) + 1
	}
	t.Logf("-crash.seed=%d", seed)
	return seed
}

// crashMutations change the source so that a kill at the wrong moment loses or doubles
// writes. want is what the auditor must say.
var crashMutations = []struct {
	name    string
	changes []alteration
	want    string
}{
	{"it answers one batch before that is written", []alteration{
		{"internal/disk/journal.go", "\tsync  bool\n", "\tsync  bool\n\theld  []ordered.Change\n"},
		{"internal/disk/journal.go", "\tb := append(j.buf[:0], make([]byte, recordHeader)...)\n", `
			changes, j.held = j.held, append([]ordered.Change(nil), changes...)
			for i, c := range j.held {
				if c.Value != nil {
					j.held[i].Value = append([]byte{}, c.Value...)
				}
			}
			b := append(j.buf[:0], make([]byte, recordHeader)...)
		`},
	}, "and is there 0 times"},
	{"it keeps the answer in another transaction than the effect", []alteration{
		{"request.go", "return posted{status, body, isRepeated(v), tagOf(v), v}, t.replays.keep(retries, status, body)\n", `return posted{status, body, isRepeated(v), "", v}, nil
		`},
		{"request.go", "return runOnce(t, req.retries, act)\n\t})\n", `return runOnce(t, req.retries, act)
			})
			if err == nil && !given.replayed {
				_, err = write(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (posted, error) {
					return given, t.replays.keep(req.retries, given.status, given.body)
				})
			}
		`},
	}, "a retry says that it is a replay: false"},
}

func TestCrashMutants(t *testing.T) {
	if !*crashMutants {
		t.Skip("without -crash.mutants")
	}
	seed := newCrashSeed(t)
	for _, mutant := range crashMutations {
		t.Run(mutant.name, func(t *testing.T) {
			v := newVictim(t, seed, alteredBinary(t, mutant.changes...))
			for kills := 1; ; kills++ {
				load := v.load()
				time.Sleep(time.Duration(v.rng.Int64N(int64(100 * time.Millisecond))))
				v.server.Kill()
				if out, err := load(); err != nil {
					t.Fatal(err, out)
				}
				v.start()
				out, err := v.auditor("check").CombinedOutput()
				if err != nil && strings.Contains(string(out), mutant.want) {
					t.Logf("found after %d kills:\n%s", kills, out)
					return
				}
				if kills == 20 {
					t.Fatalf("not found by %d kills: %v\n%s", kills, err, out)
				}
			}
		})
	}
}

// TestCrashMutations checks that the source still has the texts that the mutants replace.
func TestCrashMutations(t *testing.T) {
	for _, mutant := range crashMutations {
		if err := writeOverlay(filepath.Join(t.TempDir(), "overlay"), mutant.changes); err != nil {
			t.Errorf("%s: %v", mutant.name, err)
		}
	}
}
