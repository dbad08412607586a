package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sello/internal/processtest"
)

// Tests of a wrong clock, with a binary whose wall clock a test can set.

// A clockTill runs commands and a server whose wall clock the test sets.
type clockTill struct {
	*till
	key    string
	server *processtest.Process
}

func newClockTill(t *testing.T, build func(testing.TB) string) *clockTill {
	t.Helper()
	s := &clockTill{till: newTill(t)}
	s.binary = build(t)
	s.env = []string{"SELLO_TEST_CLOCK=" + s.setting()}
	s.set(0, false)
	s.ok("apply -", demoDocument(t))
	s.key = s.newKey("cafe-luna", "-name till")
	return s
}

// set sets how far the wall clock is ahead, and whether the kernel calls it synchronized.
func (s *clockTill) set(offset time.Duration, synchronized bool) {
	s.Helper()
	file := s.setting()
	text := fmt.Sprintf(`{"offset": %q, "synchronized": %t}`, offset, synchronized)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.Fatal(err)
	}
}

func (s *clockTill) setting() string { return filepath.Join(s.dir, "clock.json") }

func (s *clockTill) start() {
	s.Helper()
	s.server = s.serve()
}

func (s *clockTill) stop() {
	s.Helper()
	if code := s.server.Stop(); code != 0 {
		s.Fatalf("exit code %d\n%s", code, s.server.Log)
	}
}

// send makes a request, checks the answer's status and code, and returns its members.
func (s *clockTill) send(method, path, body, want string) object {
	s.Helper()
	status, text := ask(s, method, s.server.Base+path, s.key, body)
	answer, err := parseObject([]byte(text))
	if err != nil {
		s.Fatal(err)
	}
	got := strconv.Itoa(status)
	if status >= 400 {
		got += " " + answer.text("code")
	}
	if got != want {
		s.Fatalf("%s %s: %s, want %s\n%s\n%s", method, path, got, want, text, s.server.Log)
	}
	return answer
}

// wantReady waits until /readyz answers 200.
func (s *clockTill) wantReady() {
	s.Helper()
	for range 600 {
		res, err := http.Get(strings.TrimSuffix(s.server.Base, "/api/v1") + "/readyz")
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Fatalf("not ready\n%s", s.server.Log)
}

// wantClock checks the state that `sello clock` reports.
func (s *clockTill) wantClock(want string) {
	s.Helper()
	report, err := parseObject([]byte(s.ok("clock -json")))
	if err != nil || report.text("state") != want {
		s.Fatalf("sello clock: %v, %v, want %s", report, err, want)
	}
}

// wantAccount checks a customer's balance and how many movements there are.
func (s *clockTill) wantAccount(points string, balance, movements int) {
	s.Helper()
	if got := s.send("GET", points+"/balance", "", "200").int("balance"); got != balance {
		s.Fatalf("balance %d, want %d", got, balance)
	}
	meta, _ := s.send("GET", points+"/movements", "", "200")["meta"].(map[string]any)
	if got := object(meta).int("total"); got != movements {
		s.Fatalf("%d movements, want %d", got, movements)
	}
}

func TestWrongClock(t *testing.T) {
	t.Parallel()
	s := newClockTill(t, oftenBinary)
	const (
		year   = 8766 * time.Hour
		unsafe = "503 clock_unsafe"
	)
	s.start()
	ana := s.send("POST", "/customers", `{"email":"ana@example.com"}`, "201").text("id")
	points := "/points/customers/" + ana
	want := func(balance, movements int) {
		t.Helper()
		s.wantAccount(points, balance, movements)
	}
	want(50, 1) // the welcome points, which last 90 days

	s.set(10*year, false)
	s.send("POST", points+"/add", `{"amount":10}`, unsafe)
	s.wantClock("Ahead")
	want(50, 1)
	s.set(0, false)
	s.send("POST", points+"/add", `{"amount":10}`, "201")
	s.wantClock("Safe")
	want(60, 2)
	s.stop()
	for _, line := range []string{`"msg":"clock unsafe`, `"msg":"clock safe`} {
		if n := bytes.Count(s.server.Log.Bytes(), []byte(line)); n != 1 {
			t.Errorf("%d lines %s\n%s", n, line, s.server.Log)
		}
	}

	for _, since := range []time.Duration{time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Since(time.Unix(0, 0))} {
		s.set(-since, false)
		s.start()
		s.send("POST", "/customers", `{"email":"nueva@example.com"}`, unsafe)
		s.wantClock("Behind")
		want(60, 2)
		s.stop()
	}

	s.set(46*24*time.Hour, false) // the shop was closed for 46 days
	s.start()
	s.send("POST", points+"/add", `{"amount":1}`, unsafe)
	s.ok("clock accept")
	s.send("POST", points+"/add", `{"amount":1}`, "201")
	s.stop()
	s.ok("verify")

	s.set(0, false) // the accepted clock was wrong after all
	s.start()
	s.send("POST", points+"/add", `{"amount":1}`, unsafe)
	s.set(0, true)
	s.wantReady()
	s.send("POST", points+"/add", `{"amount":1}`, "201")
	want(62, 4)
	s.stop()
	s.ok("verify")
}

// TestOrdinaryClock checks that the ordinary binary uses only the machine's clock.
func TestOrdinaryClock(t *testing.T) {
	t.Parallel()
	s := newClockTill(t, builtBinary)
	s.set(-10*8766*time.Hour, false)
	s.start()
	s.send("POST", "/customers", `{"email":"ana@example.com"}`, "201")
	s.stop()
	for binary, want := range map[string]bool{builtBinary(t): false, oftenBinary(t): true} {
		if got := bytes.Contains(readFile(t, binary), []byte("SELLO_TEST_CLOCK")); got != want {
			t.Errorf("%s knows the variable: %t", binary, got)
		}
	}
}
