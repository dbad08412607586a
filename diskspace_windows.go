package main

import (
	"syscall"
	"unsafe"
)

var getDiskFreeSpace = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// roomOn returns how many bytes of the disk of a directory are free for this user, and how
// many it has.
func roomOn(dir string) (free, all uint64, ok bool) {
	name, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, false
	}
	done, _, _ := getDiskFreeSpace.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&all)), 0)
	return free, all, done != 0
}
