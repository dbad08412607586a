package disk

import (
	"os"
	"syscall"
)

// fdatasync flushes a file's data, and of what is known about the file only
// what it takes to read them.
func fdatasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
