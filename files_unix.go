//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles is how many files and connections the process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// makePrivate gives a socket that has no name yet the mode 0600, where that can
// be done.
func makePrivate(fd uintptr) { syscall.Fchmod(int(fd), 0o600) }
