//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import "syscall"

// canReserve reports whether the process has addresses for maps of these sizes,
// in bytes, at the same time.
func canReserve(sizes ...int) bool {
	for _, size := range sizes {
		b, err := syscall.Mmap(-1, 0, size, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			return false
		}
		defer syscall.Munmap(b)
	}
	return true
}
