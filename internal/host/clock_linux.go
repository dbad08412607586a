package host

import (
	"syscall"
	"time"
	"unsafe"
)

// Awake returns how long the machine has been up, with the time that it slept. It reads
// CLOCK_BOOTTIME: Go's own monotonic clock stands still in a suspend. ok is false where the
// system has no such clock.
func Awake() (up time.Duration, ok bool) {
	const clockBoottime = 7
	var since syscall.Timespec
	_, _, fault := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&since)), 0)
	return time.Duration(since.Nano()), fault == 0
}

// Synchronized reports whether the kernel says that the clock is kept by time servers.
// known is false where it does not tell.
func Synchronized() (yes, known bool) {
	const (
		unsynchronized = 0x40 // STA_UNSYNC
		timeError      = 5    // TIME_ERROR
	)
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	return err == nil && state != timeError && t.Status&unsynchronized == 0, err == nil
}
