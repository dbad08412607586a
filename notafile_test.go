package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sello/internal/disk/disktest"
)

// TestNotAFile checks that commands refuse what is no file of sello's, or cannot be
// opened. They say so in one line and do not touch it.
func TestNotAFile(t *testing.T) {
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	ours := readFile(t, s.env["SELLO_DB"])
	random := make([]byte, 50_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	padded := func(start string) []byte { return append([]byte(start), make([]byte, 40_000)...) }
	document, customers := s.file("luna.json", string(demoDocument)), s.file("c.csv", "email,phoneNumber\nana@example.com,\n")
	for _, test := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"empty", holdingBytes(nil), "el archivo está vacío"},
		{"one byte", holdingBytes([]byte("S")), "no es un archivo de sello"},
		{"SQLite", holdingBytes(padded("SQLite format 3\x00\x10\x00\x01\x01\x00")), "no es un archivo de sello"},
		{"ZIP", holdingBytes(padded("PK\x03\x04\x14\x00")), "no es un archivo de sello"},
		{"text", holdingBytes(bytes.Repeat([]byte("fecha,importe\r\n2026-01-01,10\r\n"), 1000)), "no es un archivo de sello"},
		{"JSON", holdingBytes(demoDocument), "no es un archivo de sello"},
		{"random", holdingBytes(random), "no es un archivo de sello"},
		{"zeros", holdingBytes(make([]byte, 50_000)), "no es un archivo de sello"},
		{"shorter than its pages", holdingBytes(disktest.UsedPages(ours)[:len(disktest.UsedPages(ours))-1]), "archivo truncado"},
		{"its first page", holdingBytes(ours[:disktest.PageSize]), "archivo truncado"},
		{"half of its first page", holdingBytes(ours[:disktest.PageSize/2]), "archivo truncado"},
		{"its headers swapped", holdingBytes(slices.Concat(ours[100:], ours[:100])), "no es un archivo de sello"},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }, "es un directorio"},
		{"loop of links", func(path string) error { return os.Symlink(filepath.Base(path), path) }, "demasiados enlaces simbólicos"},
		{"device", func(path string) error { return os.Symlink(os.DevNull, path) }, "no es un archivo regular"},
		{"no permission", func(path string) error { return os.WriteFile(path, ours, 0) }, "sin permiso"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "no permission" && os.Geteuid() <= 0 {
				t.Skip("root, or Windows, may read it all the same")
			}
			s := newTill(t)
			path := s.env["SELLO_DB"]
			if err := test.make(path); err != nil {
				t.Skip(err) // Windows may refuse to make links
			}
			s.refusesFile(document, customers, test.want)
		})
	}
}

// refusesFile runs commands on the till's file. Each must fail with an error that contains
// want, and leave the file as it is.
func (s *till) refusesFile(document, customers, want string) {
	s.Helper()
	path := s.env["SELLO_DB"]
	before, _ := os.ReadFile(path)
	for _, line := range []string{
		"serve -addr 127.0.0.1:0", "demo -addr 127.0.0.1:0 -db " + path, "verify", "verify -json", "export -org cafe-luna", "export customers",
		"apply " + document, "apply -dry-run " + document, "key list -org cafe-luna", "key create -org cafe-luna -name x",
		"key revoke -org cafe-luna 01a1f94d-3553-7001-b786-2a39172ca160", "import customers " + customers,
	} {
		code, out, errs := s.run(line)
		if strings.HasSuffix(line, "-json") {
			var told failure
			if err := json.Unmarshal([]byte(out), &told); err != nil || errs != "sello: "+told.Error+"\n" {
				s.Errorf("sello %s: %q, %q, %v", line, out, errs, err)
			}
			out = ""
		}
		if code != 1 || out != "" || !strings.Contains(errs, want) || faultIn(code, errs) != "" {
			s.Errorf("sello %s: %s: exit %d, %q, %q", line, faultIn(code, errs), code, out, errs)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		s.Error("it was changed")
	}
	if left, _ := filepath.Glob(path + "?*"); left != nil {
		s.Errorf("there is now %s", left)
	}
}

// holdingBytes returns a function that makes a file of some bytes.
func holdingBytes(b []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path, b, 0o600) }
}
