package ring

import (
	"slices"
	"testing"
)

// TestLog checks that the log keeps the last entries of the keys that had one last, newest
// first, in bounded room.
func TestLog(t *testing.T) {
	t.Parallel()
	const keys, entries = 64, 1000
	l := New[uint32, int](keys, entries)
	for k := range uint32(keys + 2) {
		for n := range 3 {
			l.Add(k, int(k)*10+n)
		}
	}
	if len(l.rings) != keys || l.Of(0) != nil || l.Of(1) != nil || !slices.Equal(l.Of(2), []int{22, 21, 20}) {
		t.Errorf("%d keys have a log, the first ones %d, %d and %d", len(l.rings), l.Of(0), l.Of(1), l.Of(2))
	}
	for n := range entries + 5 {
		l.Add(7, 1000+n)
		list := l.Of(7)
		if want := min(n+4, entries); len(list) != want || list[0] != 1000+n || !slices.IsSortedFunc(list, func(a, b int) int { return b - a }) {
			t.Fatalf("after %d: %d entries, want %d", n+4, len(list), want)
		}
	}
	l.Add(100, 1) // in place of key 2, which has been idle longest
	if list := l.Of(100); l.Of(2) != nil || !slices.Equal(list, []int{1}) {
		t.Errorf("%d, and key 2 has %d", list, l.Of(2))
	}
}
