package main

import (
	"syscall"
	"time"
	"unsafe"
)

// A systemClock is the machine's own clock.
type systemClock struct{ start time.Time }

func newSystemClock() systemClock { return systemClock{time.Now()} }

func (m systemClock) read() reading {
	now := time.Now()
	return reading{now, now.Sub(m.start)}
}

// awake reads CLOCK_BOOTTIME. Go's own monotonic clock stands still in a suspend.
func (systemClock) awake() (time.Duration, bool) {
	const clockBoottime = 7
	var since syscall.Timespec
	_, _, fault := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&since)), 0)
	return time.Duration(since.Nano()), fault == 0
}

func (systemClock) synchronized() (yes, known bool) {
	const (
		unsynchronized = 0x40 // STA_UNSYNC
		timeError      = 5    // TIME_ERROR
	)
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	return err == nil && state != timeError && t.Status&unsynchronized == 0, err == nil
}
