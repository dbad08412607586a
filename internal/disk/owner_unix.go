//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// chown gives f the owner that another file has.
func chown(f *os.File, from fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	has, ok := now.Sys().(*syscall.Stat_t)
	want, known := from.Sys().(*syscall.Stat_t)
	if !ok || !known || has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
