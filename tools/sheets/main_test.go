package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const stored = "../../testdata/sheets"

// TestStored checks that the stored files are those that this program writes.
func TestStored(t *testing.T) {
	t.Parallel()
	for name, text := range imitated() {
		compare(t, name, text)
	}
}

// TestLibreOffice lets LibreOffice make its files anew.
func TestLibreOffice(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: LibreOffice takes seconds")
	}
	dir := t.TempDir()
	err := libreOffice(dir)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("soffice is not installed (Debian: libreoffice-calc): the stored files of LibreOffice are not made anew")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conversions {
		text, err := os.ReadFile(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, c.name, text)
	}
}

func compare(t *testing.T, name string, text []byte) {
	t.Helper()
	kept, err := os.ReadFile(filepath.Join(stored, name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, text) {
		t.Errorf("%s is not what the program writes; go run -C tools/sheets . ../../testdata/sheets", name)
	}
}
