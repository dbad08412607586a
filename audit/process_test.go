package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sello/internal/processtest"
)

// TestProcess checks that the binary serves, stops with exit code 0, and does not serve a
// directory.
func TestProcess(t *testing.T) {
	binary := builtBinary(t)
	p, err := processtest.Start(t, exec.Command(binary, "serve", "-db", filepath.Join(t.TempDir(), "sello.db")))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(strings.TrimSuffix(p.Base, "/api/v1") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if code := p.Stop(); res.StatusCode != http.StatusOK || code != 0 {
		t.Errorf("/readyz: %d, exit code %d\n%s", res.StatusCode, code, p.Log)
	}
	if _, err := processtest.Start(t, exec.Command(binary, "serve", "-db", t.TempDir())); err == nil {
		t.Error("it serves a directory")
	}
}
