package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sello/internal/processtest"
)

// TestCompactKilled kills `sello compact` at moments spread over the time that it takes.
// The file is always whole: the old one, perhaps with its journal, or the new one.
func TestCompactKilled(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", demoDocument(t))
	rows := []byte("firstName,email,phoneNumber\n")
	for i := range 4000 {
		rows = fmt.Appendf(rows, "Ana %d,ana%d@example.com,\n", i, i)
	}
	csv, ledger := filepath.Join(s.dir, "rows.csv"), filepath.Join(s.dir, "ledger.json")
	writeFile(t, csv, rows)
	s.ok("import customers " + csv)
	key := s.newKey("cafe-luna", "-name POS")
	p := s.serve()
	gone := enrol(t, p.Base, key, "quetzaltepec@example.com")
	if status, text := ask(t, http.MethodPost, p.Base+"/customers/"+gone+"/erase", key, `{"confirm": "ERASE"}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	writeFile(t, ledger, []byte(s.ok("verify -json")))
	s.compactServed()
	p.Kill() // its journal stays
	want := s.files()

	started := time.Now()
	s.ok("compact")
	took := time.Since(started)
	s.checkCompacted(ledger)
	kills := 6
	if processtest.Long() {
		kills = 16
	}
	killed := 0
	for i := range kills {
		for name, content := range want {
			writeFile(t, filepath.Join(s.dir, name), content)
		}
		cmd := s.command("compact")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took * time.Duration(5*i) / time.Duration(4*(kills-1))) // on past the end
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
		s.ok("verify -since " + ledger)
	}
	if killed < kills/3 {
		t.Errorf("only %d of %d were killed before they were done", killed, kills)
	}
	s.ok("compact")
	s.checkCompacted(ledger)
	p = s.serve()
	enrol(t, p.Base, key, "rosa@example.com")
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log)
	}
}

// compactServed checks that a file that is served is left alone.
func (s *till) compactServed() {
	s.Helper()
	out, err := s.command("compact").CombinedOutput()
	if err == nil || !strings.Contains(string(out), s.db+": un servidor lo tiene abierto: detenlo") {
		s.Errorf("beside a server: %v\n%s", err, out)
	}
}

// files returns the data file and what belongs to it.
func (s *till) files() map[string][]byte {
	s.Helper()
	all := map[string][]byte{}
	list, err := filepath.Glob(s.db + "*")
	if err != nil {
		s.Fatal(err)
	}
	for _, path := range list {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			all[filepath.Base(path)] = readFile(s.T, path)
		}
	}
	return all
}

// checkCompacted checks the file after a compact that was not interrupted.
func (s *till) checkCompacted(ledger string) {
	s.Helper()
	for name, content := range s.files() {
		if name != filepath.Base(s.db) {
			s.Errorf("%s is left", name)
		}
		if bytes.Contains(content, []byte("quetzaltepec")) {
			s.Errorf("%s has what was erased", name)
		}
	}
	s.ok("verify -since " + ledger)
	var done struct{ Before, After, Entries int64 }
	if err := json.Unmarshal([]byte(s.ok("compact -json")), &done); err != nil || done.After == 0 || done.After > done.Before || done.Entries < 4000 {
		s.Errorf("again: %+v, %v", done, err)
	}
}
