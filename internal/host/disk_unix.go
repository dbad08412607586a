//go:build linux || darwin

package host

import "syscall"

// Disk returns how many bytes of the disk of a directory are free for this user, and how
// many it has. ok is false where the system does not tell.
func Disk(dir string) (free, size uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), true
}
