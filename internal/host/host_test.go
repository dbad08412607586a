package host

import (
	"runtime"
	"testing"
	"time"
)

// TestDisk asks the system.
func TestDisk(t *testing.T) {
	free, size, ok := Disk(t.TempDir())
	known := runtime.GOOS == "linux" || runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	if ok != known || known && (free == 0 || free > size) {
		t.Errorf("%d of %d, %t", free, size, ok)
	}
	if _, _, ok := Disk("/no/such/directory"); ok {
		t.Error("of no directory")
	}
}

// TestAwake: the clock goes on, and is not the wall clock's.
func TestAwake(t *testing.T) {
	first, ok := Awake()
	if ok != (runtime.GOOS == "linux") {
		t.Error(ok)
	}
	time.Sleep(time.Millisecond)
	if second, _ := Awake(); ok && (second < first+time.Millisecond || second > 100*365*24*time.Hour) {
		t.Error(first, second)
	}
}
