package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a wrong clock does to the real binary, of a build whose wall clock a test
// can set (machine_clocktest.go).

// A clockTill runs commands and servers by a clock of its own.
type clockTill struct {
	*testing.T
	binary, dir string
	key         string
	server      *process
}

func newClockTill(t *testing.T, flags ...string) *clockTill {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	s := &clockTill{T: t, binary: builtBinary(t, ".", flags...), dir: t.TempDir()}
	s.set(0, false)
	if err := os.WriteFile(filepath.Join(s.dir, "demo.json"), demoDocument, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("apply", filepath.Join(s.dir, "demo.json"))
	var made createdKey
	if err := json.Unmarshal([]byte(s.run("key", "create", "-org", "cafe-luna", "-name", "till", "-json")), &made); err != nil {
		t.Fatal(err)
	}
	s.key = made.Key
	return s
}

// set sets by how much the machine's clock is ahead, and what its kernel says.
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

func (s *clockTill) command(args ...string) *exec.Cmd {
	c := exec.Command(s.binary, args...)
	c.Env = append(os.Environ(), "SELLO_CLOCKTEST="+s.setting(), "SELLO_DB="+filepath.Join(s.dir, "sello.db"))
	return c
}

// run runs a command that must succeed.
func (s *clockTill) run(args ...string) string {
	s.Helper()
	out, err := s.command(args...).Output()
	if err != nil {
		s.Fatalf("sello %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *clockTill) start() {
	s.Helper()
	p, err := startProcess(s, s.command("serve"))
	if err != nil {
		s.Fatal(err)
	}
	s.server = p
}

func (s *clockTill) stop() {
	s.Helper()
	if code := s.server.stop(); code != 0 {
		s.Fatalf("exit code %d\n%s", code, s.server.log)
	}
}

// send makes a request, checks how it was answered, and returns the answer.
func (s *clockTill) send(method, path, body, want string) (answer struct {
	ID      id
	Balance decimal
	Meta    listMeta
}) {
	s.Helper()
	req, err := http.NewRequest(method, s.server.base+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	var e errorBody
	json.Unmarshal(raw, &e)
	if got := strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", e.Code)); got != want {
		s.Fatalf("%s %s: %s, want %s\n%s\n%s", method, path, got, want, raw, s.server.log)
	}
	if res.StatusCode < 300 {
		if err := json.Unmarshal(raw, &answer); err != nil {
			s.Fatal(err)
		}
	}
	return answer
}

// wantReady waits until /readyz says so.
func (s *clockTill) wantReady() {
	s.Helper()
	for range 600 {
		res, err := http.Get(strings.TrimSuffix(s.server.base, "/api/v1") + "/readyz")
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Fatalf("not ready\n%s", s.server.log)
}

// wantClock checks what `sello clock` thinks.
func (s *clockTill) wantClock(want verdict) {
	s.Helper()
	var report clockReport
	if err := json.Unmarshal([]byte(s.run("clock", "-json")), &report); err != nil {
		s.Fatal(err)
	}
	if report.State != want {
		s.Fatalf("sello clock: %+v, want %s", report, want)
	}
}

func TestWrongClock(t *testing.T) {
	t.Parallel()
	s := newClockTill(t, "-tags=clocktest")
	const (
		year   = 8766 * time.Hour
		unsafe = "503 clock_unsafe"
	)
	s.start()
	ana := s.send("POST", "/customers", `{"email":"ana@example.com"}`, "201").ID.String()
	points := "/points/customers/" + ana
	want := func(balance string, movements uint64) {
		t.Helper()
		if got := s.send("GET", points+"/balance", "", "200").Balance; got != dec(balance) {
			t.Fatalf("balance %s, want %s", got, balance)
		}
		if got := s.send("GET", points+"/movements", "", "200").Meta.Total; got != movements {
			t.Fatalf("%d movements, want %d", got, movements)
		}
	}
	want("50", 1) // of the welcome, for 90 days

	s.set(10*year, false)
	s.send("POST", points+"/add", `{"amount":10}`, unsafe)
	s.wantClock(clockAhead)
	want("50", 1)
	s.set(0, false)
	s.send("POST", points+"/add", `{"amount":10}`, "201")
	s.wantClock(clockSafe)
	want("60", 2)
	s.stop()
	for _, line := range []string{`"msg":"clock unsafe`, `"msg":"clock safe`} {
		if n := bytes.Count(s.server.log.Bytes(), []byte(line)); n != 1 {
			t.Errorf("%d lines %s\n%s", n, line, s.server.log)
		}
	}

	for _, since := range []time.Duration{time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Since(time.Unix(0, 0))} {
		s.set(-since, false)
		s.start()
		s.send("POST", "/customers", `{"email":"nueva@example.com"}`, unsafe)
		s.wantClock(clockBehind)
		want("60", 2)
		s.stop()
	}

	s.set(46*24*time.Hour, false) // closed for so long
	s.start()
	s.send("POST", points+"/add", `{"amount":1}`, unsafe)
	s.run("clock", "accept")
	s.send("POST", points+"/add", `{"amount":1}`, "201")
	s.stop()
	s.run("verify")

	s.set(0, false) // that was wrong after all
	s.start()
	s.send("POST", points+"/add", `{"amount":1}`, unsafe)
	s.set(0, true)
	s.wantReady()
	s.send("POST", points+"/add", `{"amount":1}`, "201")
	want("62", 4)
	s.stop()
	s.run("verify")
}

// TestOrdinaryClock: the ordinary binary goes by no clock but the machine's.
func TestOrdinaryClock(t *testing.T) {
	t.Parallel()
	s := newClockTill(t)
	s.set(-10*8766*time.Hour, false)
	s.start()
	s.send("POST", "/customers", `{"email":"ana@example.com"}`, "201")
	s.stop()
	for flags, want := range map[string]bool{"": false, "-tags=clocktest": true} {
		raw, err := os.ReadFile(builtBinary(t, ".", strings.Fields(flags)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(raw, []byte("SELLO_CLOCKTEST")); got != want {
			t.Errorf("built with %q, it knows the variable: %t", flags, got)
		}
	}
}
