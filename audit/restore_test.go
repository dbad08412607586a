package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"sello/internal/processtest"
)

// TestRestore copies a backup back after a kill -9, with the dead server's journal and
// socket still there.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", demoDocument(t))
	saved, ledger := filepath.Join(s.dir, "saved.db"), filepath.Join(s.dir, "ledger.json")
	key := s.newKey("cafe-luna", "-name POS")
	list := func(p *processtest.Process) string {
		t.Helper()
		_, body := ask(t, http.MethodGet, p.Base+"/customers", key, "")
		return body
	}
	p := s.serve()
	enrol(t, p.Base, key, "ana@example.com")
	s.ok("backup " + saved)
	then := list(p)
	writeFile(t, ledger, []byte(s.ok("verify -json")))
	enrol(t, p.Base, key, "eva@example.com")
	s.ok("verify -since " + ledger)
	p.Kill()

	copyFile(t, s.db, saved)
	p = s.serve()
	if now := list(p); now != then {
		t.Errorf("restored:\n%s\nwant\n%s", now, then)
	}
	enrol(t, p.Base, key, "rosa@example.com")
	if out := s.ok("verify -since " + ledger); !strings.Contains(out, "1 organización, 2 clientes, 2 movimientos") {
		t.Error(out)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log)
	}
	s.ok("verify")
}
