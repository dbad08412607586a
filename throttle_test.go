package main

import (
	"testing"
	"time"
)

// TestAccountLimits shows how long an account has to wait.
func TestAccountLimits(t *testing.T) {
	t.Parallel()
	now := instant(1_800_000_000_000)
	var l accountLimits
	ana, eva := [32]byte{1}, [32]byte{2}
	for n := range lockTries {
		want := time.Duration(0)
		if n >= freeTries {
			want = min(time.Duration(1<<min(n-freeTries, 20))*time.Second, 900*time.Second)
		}
		if want > 0 {
			if wait, locked := l.try(ana, now); wait != want || locked {
				t.Fatalf("after %d: wait %v, locked %t, want %v", n, wait, locked, want)
			}
			now = now.add(want - time.Millisecond)
			if wait, _ := l.try(ana, now); wait != time.Millisecond {
				t.Fatalf("a moment before the end after %d: wait %v", n, wait)
			}
			now++
		}
		if wait, locked := l.try(ana, now); wait != 0 || locked || l.count(ana) != n+1 {
			t.Fatalf("try %d: wait %v, locked %t, count %d", n+1, wait, locked, l.count(ana))
		}
	}
	if _, locked := l.try(ana, now.add(time.Hour)); !locked {
		t.Error("no lock")
	}
	if wait, locked := l.try(eva, now); wait != 0 || locked {
		t.Error("another account has to wait")
	}
	l.pass(ana)
	if _, locked := l.try(ana, now); locked || l.count(ana) != 1 {
		t.Error("locked after a success")
	}
	l.giveBack(ana)
	if l.count(ana) != 0 {
		t.Error("what was given back counts")
	}
	for range freeTries + 3 {
		l.try(eva, now)
		now = now.add(time.Hour)
	}
	if wait, _ := l.try(eva, now.add(-24*time.Hour)); wait != 0 {
		t.Errorf("the clock was set back: wait %v", wait)
	}
}

// TestLoginSources: a source may try 20 passwords at once, and one more each 10 seconds.
func TestLoginSources(t *testing.T) {
	t.Parallel()
	l := newLogins(newShop(t, setup{}).engine)
	now := instant(1_800_000_000_000)
	from := arrival{Source: homeAddress}
	for n := range loginBurst {
		if err := l.fromSource(&from, false, now); err != nil {
			t.Fatalf("try %d: %v", n, err)
		}
	}
	wantWait(t, l.fromSource(&from, false, now), 10*time.Second)
	wantWait(t, l.fromSource(&from, false, now.add(9*time.Second)), time.Second)
	if err := l.fromSource(&from, false, now.add(10*time.Second)); err != nil {
		t.Error(err)
	}
	wantWait(t, l.fromSource(&from, false, now.add(10*time.Second)), 10*time.Second)
}
