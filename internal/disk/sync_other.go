//go:build !linux

package disk

import "os"

func fdatasync(f *os.File) error { return f.Sync() }
