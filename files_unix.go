//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles returns how many files and connections the process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// makePrivate sets the mode of a socket that has no name yet to 0600, where the
// system can.
func makePrivate(fd uintptr) { syscall.Fchmod(int(fd), 0o600) }
