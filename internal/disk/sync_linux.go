package disk

import (
	"os"
	"syscall"
)

// fdatasync flushes a file's data, and only the metadata needed to read them.
func fdatasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
