package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTableIsCurrent checks that the committed table is what this module
// writes.
func TestTableIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../internal/contact/phonedata.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, table()) {
		t.Error("phonedata.txt differs from the generator's output: run go generate ./...")
	}
}
