package main

import (
	"testing"
	"time"
)

// TestReplaysAreDropped keeps an answer for a day and, once no retry can ask
// for it, drops it with the sweep.
func TestReplaysAreDropped(t *testing.T) {
	s := newShop(t, setup{})
	k := retryKey{name: [16]byte{1}, request: [16]byte{2}}
	must(s, func(t *txn) (any, error) { return nil, t.keepReplay(k, 201, []byte("{}\n")) })
	kept := func() (n int) {
		for _, e := range s.entries() {
			if e.Key[0] == 'i' {
				n++
			}
		}
		return n
	}
	found := func() bool {
		return ask(s, func(t *txn) (bool, error) {
			r, err := t.replay(k)
			return r != nil, err
		})
	}
	s.pass(oneDay - time.Millisecond)
	s.swept()
	if !found() || kept() != 1 {
		t.Errorf("within a day: found %v, %d kept", found(), kept())
	}
	s.pass(time.Millisecond)
	if found() {
		t.Error("found after a day")
	}
	s.pass(oneDay)
	s.swept()
	if kept() != 0 {
		t.Error("not dropped")
	}
}
