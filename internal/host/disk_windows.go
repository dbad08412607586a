package host

import (
	"syscall"
	"unsafe"
)

var getDiskFreeSpace = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// Disk returns how many bytes of the disk of a directory are free for this user, and how
// many it has. ok is false where the system does not tell.
func Disk(dir string) (free, size uint64, ok bool) {
	name, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, false
	}
	done, _, _ := getDiskFreeSpace.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&size)), 0)
	return free, size, done != 0
}
