package disktest

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unpack puts the gzipped files of a directory into a new directory, under their names
// without .gz.
func Unpack(t testing.TB, from string) (dir string) {
	t.Helper()
	packed, err := filepath.Glob(filepath.Join(from, "*.gz"))
	if err != nil || len(packed) == 0 {
		t.Fatalf("%s: %d files, %v", from, len(packed), err)
	}
	dir = t.TempDir()
	for _, name := range packed {
		if err := unpack(name, filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".gz"))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func unpack(packed, name string) error {
	f, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o600)
}
