package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// A disk that fails: every call that writes or syncs gets an error once, or for
// a while, and what the process says is held to what it stores.

var diskAll = flag.Bool("disk.all", false, "let every write and sync fail with every error")

// A counter is a shop's file with a customer, and what a client knows who adds
// points: the n-th time n of them, by a request with a key of its own.
type counter struct {
	testing.TB
	db       string
	key      string
	customer string

	asked  int
	stored map[int]string // answers
	refuse int            // answers 503
	reads  int            // that went on after one
}

// newCounter makes the file.
func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{TB: t, db: filepath.Join(disktest.MemoryDir(t), "sello.db"), stored: map[int]string{}}
	s, err := openBolt(c.db, disk.Options{NoSync: true, Dense: denseTables})
	c.must(err)
	e := newEngine(s, time.Now, cryptoSeed)
	c.must(e.open(t.Context()))
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	_, err = a.apply(t.Context(), applyRequest{Document: setup{}.document()})
	c.must(err)
	k, err := a.createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "POS", RateLimit: 1_000_000})
	c.must(err)
	c.key = k.Key
	person, err := write(t.Context(), e, 1, instantOf(time.Now()), func(t *txn) (id, error) {
		c, _, err := t.enrol(enrolment{FirstName: "Ana", Email: "ana@example.com"})
		return c.ID, err
	})
	c.must(err)
	c.customer = person.String()
	c.must(s.Close())
	// So that it must grow soon.
	pages := binary.NativeEndian.Uint64(disktest.NewerHeader(readFile(t, c.db))[56:])
	c.must(os.Truncate(c.db, int64(max(pages, 4))*disktest.PageSize))
	return c
}

func (c *counter) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// copy is the same, with a file of its own.
func (c *counter) copy(t *testing.T) *counter {
	t.Helper()
	n := *c
	n.TB, n.db, n.stored = t, filepath.Join(disktest.MemoryDir(t), "sello.db"), maps.Clone(c.stored)
	for _, name := range []string{"", "-journal1", "-journal2"} {
		if s, err := disktest.LoadSparse(c.db + name); err == nil {
			n.must(s.Save(n.db + name))
		}
	}
	return &n
}

func (c *counter) request(base string, n int) *http.Request {
	body := fmt.Sprintf(`{"amount":%d,"comment":"%s"}`, n, strings.Repeat("c", n*67%500))
	r := httptest.NewRequest(http.MethodPost, base+"/points/customers/"+c.customer+"/add", strings.NewReader(body))
	r.Header.Set("X-API-Key", c.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprint("k", n))
	r.RequestURI = ""
	return r
}

// add asks a server for the n-th addition until it is stored, as long as the
// server is there. Whenever it is refused, reads must go on.
func (c *counter) add(base string, n int, patience time.Duration) (stored bool, err error) {
	c.asked = max(c.asked, n)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.DefaultClient.Do(c.request(base, n))
		if err != nil {
			return false, err
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return false, err
		}
		switch res.StatusCode {
		case http.StatusCreated:
			c.stored[n] = string(body)
			return true, nil
		case http.StatusServiceUnavailable:
			if res.Header.Get("Retry-After") == "" {
				c.Errorf("503 without Retry-After")
			}
		default:
			c.Fatalf("addition %d: %d %s", n, res.StatusCode, body)
		}
		c.refuse++
		if err := c.read(base); err != nil {
			return false, err
		}
		c.reads++
		if time.Since(began) > patience {
			return false, nil
		}
	}
}

// read asks for the balance.
func (c *counter) read(base string) error {
	r, err := http.NewRequest(http.MethodGet, base+"/points/customers/"+c.customer+"/balance", nil)
	c.must(err)
	r.Header.Set("X-API-Key", c.key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("balance: %d", res.StatusCode)
	}
	return nil
}

// settle opens the file without faults. What was stored is there once, what was
// refused or cut off at most once, and after a retry of everything everything
// is there once. And the file passes the audit. It returns what is otherwise.
func (c *counter) settle() (faults []string) {
	c.Helper()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	s, err := openBolt(c.db, disk.Options{NoSync: true, Dense: denseTables})
	c.must(err)
	defer func() { c.must(errors.Join(s.Close(), boltFaults(c.db))) }()
	e := newEngine(s, time.Now, cryptoSeed)
	c.must(e.open(c.Context()))
	handler := newAPI(e, nil, slog.New(slog.DiscardHandler))
	serve := func(r *http.Request) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	times := func() map[int]int {
		got := map[int]int{}
		for page := 1; ; page++ {
			r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/v1/points/customers/%s/movements?limit=100&page=%d", c.customer, page), nil)
			r.Header.Set("X-API-Key", c.key)
			code, body := serve(r)
			var list struct {
				Data []struct{ Amount int }
				Meta struct{ HasNextPage bool }
			}
			if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
				c.Fatalf("movements: %d %s", code, body)
			}
			for _, m := range list.Data {
				got[m.Amount]++
			}
			if !list.Meta.HasNextPage {
				return got
			}
		}
	}
	got := times()
	for n := range c.asked {
		if n++; got[n] > 1 || c.stored[n] != "" && got[n] != 1 {
			fault("addition %d, stored: %v; it is there %d times", n, c.stored[n] != "", got[n])
		}
		code, body := serve(c.request("/api/v1", n))
		if code != http.StatusCreated || c.stored[n] != "" && c.stored[n] != body {
			fault("addition %d again: %d %s, want %s", n, code, body, c.stored[n])
		}
	}
	want := map[int]int{}
	for n := range c.asked {
		want[n+1] = 1
	}
	if got := times(); !maps.Equal(got, want) {
		fault("after the retries there are %v", got)
	}
	report, err := view(c.Context(), s, func(tx Tx) (*verification, error) { return verify(tx, instantOf(time.Now()), nil) })
	c.must(err)
	return append(faults, report.Problems...)
}

// settled fails the test unless the file is settled without a fault.
func (c *counter) settled() {
	c.Helper()
	for _, fault := range c.settle() {
		c.Error(fault)
	}
}

// A diskFault is an error that a call of a process gets.
type diskFault struct {
	call  string
	errno string
	when  string // which of a thread's calls, as strace has it
}

func (f diskFault) String() string { return f.call + " " + f.errno + " " + f.when }

// fatal tells whether nobody knows what is stored after it.
func (f diskFault) fatal() bool {
	return f.call == "fsync" || f.call == "fdatasync" || f.errno == "EIO" || f.errno == "EROFS"
}

// A diskRun is what became of a server whose calls failed.
type diskRun struct {
	places []string      // where it was hit
	first  float64       // when, in seconds
	took   time.Duration // from there to the end

	served   bool
	stopped  float64 // when it was asked to, in seconds
	unbidden bool    // it had ended by then
	code     int     // of its exit
	log      string
}

// judge says what is wrong with what became of a server that got the fault; ""
// if nothing is.
func (f diskFault) judge(run diskRun) string {
	failures := strings.Count(run.log, `"msg":"store failed"`)
	said := strings.HasPrefix(run.log, "sello: ") || strings.Contains(run.log, "\nsello: ")
	switch {
	case len(run.places) == 0:
		if run.unbidden || run.code != 0 {
			return "it ended, and nothing was hit"
		}
	case !run.served:
		if run.code != 1 || !said {
			return "it does not say why it does not start"
		}
	case run.first > run.stopped:
		if f.fatal() && (run.code != 1 || !said) {
			return "it stopped as if all were well"
		}
	case f.fatal() && !run.unbidden:
		return "it goes on"
	case f.fatal() && (run.code != 1 || failures != 1):
		return "it does not fail, or does not say so once"
	case f.fatal() && run.took > 5*time.Second:
		return "it takes too long to exit"
	case !f.fatal() && (run.unbidden || failures > 0):
		return "it ended"
	}
	return ""
}

// serveFaulty runs a server that gets a fault. small says that its memtables are.
// hits reads what was hit, after its end.
func (c *counter) serveFaulty(f diskFault, small bool) (p *process, hits func(*diskRun), err error) {
	c.Helper()
	log := filepath.Join(filepath.Dir(c.db), "trace")
	binary, env := builtBinary(c, "."), os.Environ()
	if small {
		binary, env = testBinary(c), append(env, "SELLO_MEMTABLE=16384")
	}
	// With -D the process is the server, and not strace.
	args := []string{"-D", "-f", "-q", "-ttt", "-y", "-s", "0", "-o", log, "-e", "trace=" + f.call, "-e", "inject=" + f.call + ":error=" + f.errno + ":when=" + f.when}
	for _, path := range []string{c.db, c.db + "-journal1", c.db + "-journal2", filepath.Dir(c.db)} {
		args = append(args, "-P", path)
	}
	cmd := exec.Command("strace", append(args, binary, "serve", "-db", c.db)...)
	cmd.Env = env
	p, err = startProcess(c, cmd)
	return p, func(run *diskRun) {
		list, _, ended := traceFile(c, log, 1)
		os.Remove(log)
		for _, e := range list {
			if !e.injected() {
				continue
			}
			if len(run.places) == 0 {
				run.first, run.took = e.at, time.Duration((ended-e.at)*1e9)
			}
			run.places = append(run.places, placeOf(e, c.db))
		}
	}, err
}

func testBinary(t testing.TB) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// placeOf says what a call does for the store.
func placeOf(e *syscallEntry, db string) string {
	what := e.args[0]
	if e.call == "openat" {
		what = e.args[1]
	}
	file := "directory"
	switch {
	case strings.Contains(what, "-journal"):
		file = "journal"
	case strings.Contains(what, filepath.Base(db)):
		file = "file"
	}
	place := e.call + " " + file
	if e.call != "pwrite64" {
		return place
	}
	size, _ := e.number(2)
	at, _ := e.number(3)
	switch {
	case file == "file" && at < 2*disktest.PageSize:
		place += " header"
	case file == "file":
		place += " page"
	case at == 0:
		place += " beginning"
	case size > 64<<10:
		place += " growth"
	}
	return place
}

// run lets a fault meet a server and a client who adds so many times.
func (c *counter) run(f diskFault, small bool, additions int) (run diskRun) {
	c.Helper()
	p, hits, err := c.serveFaulty(f, small)
	run.served = err == nil
	run.code = 1
	if run.served {
		for range additions {
			if _, err := c.add(p.base, c.asked+1, 5*time.Second); err != nil {
				run.unbidden = true
				break
			}
		}
		if !run.unbidden && f.fatal() { // it may have been hit when the client had its last answer
			time.Sleep(20 * time.Millisecond)
			res, err := http.Get(p.base + "/livez")
			if run.unbidden = err != nil; err == nil {
				res.Body.Close()
			}
		}
		run.stopped = float64(time.Now().UnixMicro()) / 1e6
		if run.unbidden {
			late := time.AfterFunc(10*time.Second, p.kill)
			p.wait()
			late.Stop()
			run.code = p.ProcessState.ExitCode()
		} else {
			run.code = p.stop()
		}
		run.log = p.log.String()
	} else if _, out, ended := strings.Cut(err.Error(), "it ended: exit status 1\n"); ended {
		run.log = out
	} else {
		run.code, run.log = -1, err.Error()
	}
	hits(&run)
	return run
}

// TestDiskErrors lets calls fail. After an error that leaves open what is stored
// the process exits by itself; where there is no space it goes on reading, and
// writes again when there is.
func TestDiskErrors(t *testing.T) {
	needStrace(t)
	fresh := newCounter(t)
	killed := fresh.copy(t)
	p := serveProcess(t, killed.db)
	for n := range 5 {
		if stored, err := killed.add(p.base, n+1, 0); !stored {
			t.Fatal(err)
		}
	}
	p.kill()
	type place struct{ where, errno string }
	hits := map[place]int{}
	var longest time.Duration
	refused := 0
	try := func(t *testing.T, from *counter, f diskFault, small bool, additions int) diskRun {
		c := from.copy(t)
		run := c.run(f, small, additions)
		if fault := f.judge(run); fault != "" {
			t.Errorf("%v at %v: %s; exit code %d:\n%s", f, run.places, fault, run.code, run.log)
		}
		c.settled()
		for _, where := range run.places {
			hits[place{where, f.errno}]++
		}
		refused += c.refuse
		if f.fatal() && run.served {
			longest = max(longest, run.took)
		}
		return run
	}
	defer func() {
		t.Logf("%d answers 503; longest time to exit %v", refused, longest)
		for _, h := range slices.SortedFunc(maps.Keys(hits), func(a, b place) int { return strings.Compare(a.where+a.errno, b.where+b.errno) }) {
			t.Logf("%6d  %s %s", hits[h], h.where, h.errno)
		}
	}()
	if !*diskAll {
		for _, test := range []struct {
			from  *counter
			fault diskFault
			small bool
		}{
			{fresh, diskFault{"pwrite64", "EIO", "2"}, false},
			{fresh, diskFault{"pwrite64", "ENOSPC", "1..3"}, false},
			{fresh, diskFault{"ftruncate", "EFBIG", "1..2"}, true},
			{fresh, diskFault{"openat", "EIO", "3"}, false},
			{killed, diskFault{"fdatasync", "EIO", "3"}, false},
			{killed, diskFault{"pwrite64", "EROFS", "3"}, true},
			{killed, diskFault{"pwrite64", "ENOSPC", "4..9"}, true},
		} {
			run := try(t, test.from, test.fault, test.small, 20)
			if !run.served || len(run.places) == 0 || run.first > run.stopped {
				continue
			}
			// The control: what is right after one fault is wrong after another.
			other := diskFault{test.fault.call, "EIO", ""}
			if test.fault.fatal() {
				other = diskFault{"pwrite64", "ENOSPC", ""}
			}
			if other.judge(run) == "" {
				t.Errorf("%v: it would be right for %v too", test.fault, other)
			}
		}
		return
	}
	for _, from := range []*counter{fresh, killed} {
		for _, small := range []bool{false, true} {
			additions := 12
			if small {
				additions = 60
			}
			for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "openat"} {
				for _, errno := range []string{"EIO", "ENOSPC", "EFBIG", "EROFS"} {
					for k, missed := 1, 0; missed < 2 && k < 40; k++ {
						f := diskFault{call, errno, fmt.Sprint(k)}
						if !f.fatal() {
							f.when = fmt.Sprintf("%d..%d", k, k+k%3)
						}
						t.Run(f.String(), func(t *testing.T) {
							if len(try(t, from, f, small, additions).places) == 0 {
								missed++
							}
						})
					}
				}
			}
		}
	}
}

// TestDiskLimit has no more than a process may write to a file, which cuts
// writes short, and then more again. It needs no strace.
func TestDiskLimit(t *testing.T) {
	c := newCounter(t)
	p := serveProcess(t, c.db)
	limit := func(bytes uint64) {
		t.Helper()
		l := syscall.Rlimit{Cur: bytes, Max: 1<<64 - 1}
		var old syscall.Rlimit
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.Process.Pid), syscall.RLIMIT_FSIZE,
			uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&old)), 0, 0); errno != 0 {
			t.Skip(errno)
		}
	}
	n := 0
	fill := func(refused bool) {
		t.Helper()
		for range 200 {
			n++
			stored, err := c.add(p.base, n, 0)
			if err != nil {
				t.Fatalf("addition %d: %v\n%s", n, err, p.log)
			}
			if !stored {
				if !refused {
					t.Fatalf("addition %d is refused", n)
				}
				n--
				return
			}
			if n%10 == 0 && !refused {
				return
			}
		}
		t.Fatal("no limit was met")
	}
	fill(false)
	ready := func() bool {
		res, err := http.Get(strings.TrimSuffix(p.base, "/api/v1") + "/readyz")
		c.must(err)
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	for i := range 4 {
		limit(uint64(60_000 + 7001*i))
		fill(true)
		if ready() {
			t.Error("it refuses writes, and is ready")
		}
		limit(1<<64 - 1)
		if i%2 == 0 {
			for !ready() { // without a write of a client's
				time.Sleep(20 * time.Millisecond)
			}
		}
		fill(false)
		if !ready() {
			t.Error("it takes writes, and is not ready")
		}
	}
	if c.refuse == 0 || c.reads != c.refuse {
		t.Errorf("%d answers 503, %d reads after them", c.refuse, c.reads)
	}
	p.kill()
	c.settled()
}

// TestDiskControl: an addition that is not there though it was answered, and one
// that is there twice, are noticed.
func TestDiskControl(t *testing.T) {
	c := newCounter(t)
	p := serveProcess(t, c.db)
	for n := range 3 {
		if stored, err := c.add(p.base, n+1, 0); !stored {
			t.Fatal(err)
		}
	}
	p.kill()
	lost := c.copy(t)
	lost.asked, lost.stored[4] = 4, "{}"
	if faults := lost.settle(); len(faults) == 0 {
		t.Error("an addition that was lost is not missed")
	}
	twice := c.copy(t)
	p = serveProcess(t, twice.db)
	r := twice.request(p.base, 3)
	r.Header.Set("Idempotency-Key", "another")
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res, err)
	}
	res.Body.Close()
	p.kill()
	if faults := twice.settle(); len(faults) == 0 {
		t.Error("an addition that was made twice is not noticed")
	}
	c.settled()
}

// TestDiskBackupName: where a backup is in place and only its name may be lost, the
// command says so.
func TestDiskBackupName(t *testing.T) {
	needStrace(t)
	c := newCounter(t)
	dir := filepath.Join(filepath.Dir(c.db), "backups")
	c.must(os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "copy.db")
	out, err := exec.Command("strace", "-f", "-q", "-o", os.DevNull, "-P", dir, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO",
		builtBinary(t, "."), "backup", "-db", c.db, path).CombinedOutput()
	want := "sello: " + path + ": la copia está ahí, pero no se pudo asegurar su nombre en el disco: el disco no se puede leer o escribir\n"
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || string(out) != want {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
	c.db = path
	c.settled()
}
