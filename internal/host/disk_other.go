//go:build !linux && !darwin && !windows

package host

// Disk tells nothing here.
func Disk(dir string) (free, size uint64, ok bool) { return 0, 0, false }
