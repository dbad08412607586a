//go:build linux || darwin

package main

import "syscall"

// roomOn returns how many bytes of the disk of a directory are free for this user, and how
// many it has.
func roomOn(dir string) (free, all uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), true
}
