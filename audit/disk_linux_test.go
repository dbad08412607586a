package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"sello/internal/disk/disktest"
	"sello/internal/processtest"
)

// Tests of a disk that fails: calls that write or sync get an error once, or for a while.
// The server's answers are compared with what it has stored.

var diskAll = flag.Bool("disk.all", false, "let every write and sync fail with every error")

// A counter is a shop's file with one customer, and the state of a client that adds points.
// The n-th addition is of n points and has its own Idempotency-Key.
type counter struct {
	*till
	key      string
	customer string

	asked  int            // additions that were sent
	stored map[int]string // the answers 201, by addition
	refuse int            // answers 503
	reads  int            // reads that succeeded after a 503
}

// newCounter makes the file.
func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{till: newTill(t), stored: map[int]string{}}
	c.db = filepath.Join(disktest.MemoryDir(t), "sello.db")
	c.ok("apply -", `{"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
		"profile":{"country":"MX"},"settings":{"timezone":"America/Mexico_City","currency":"MXN"}},
		"programs":[{"key":"club","name":"Club Luna"}]}`)
	c.key = c.newKey("cafe-luna", "-name POS -rate-limit 1000000")
	p := c.serve()
	c.customer = enrol(t, p.Base, c.key, "ana@example.com")
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.Log)
	}
	// Without unused pages at its end the file must grow soon.
	c.must(os.Truncate(c.db, int64(len(disktest.UsedPages(readFile(t, c.db))))))
	return c
}

func (c *counter) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// copy returns a counter with a copy of the file.
func (c *counter) copy(t *testing.T) *counter {
	t.Helper()
	n, s := *c, *c.till
	n.till, n.stored = &s, maps.Clone(c.stored)
	n.T, n.db = t, filepath.Join(disktest.MemoryDir(t), "sello.db")
	for _, name := range []string{"", "-journal1", "-journal2"} {
		if s, err := disktest.LoadSparse(c.db + name); err == nil {
			n.must(s.Save(n.db + name))
		}
	}
	return &n
}

func (c *counter) request(base string, n int) *http.Request {
	body := fmt.Sprintf(`{"amount":%d,"comment":"%s"}`, n, strings.Repeat("c", n*67%500))
	r, err := http.NewRequest(http.MethodPost, base+"/points/customers/"+c.customer+"/add", strings.NewReader(body))
	c.must(err)
	r.Header.Set("X-API-Key", c.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprint("k", n))
	return r
}

// send returns the answer to a request.
func (c *counter) send(r *http.Request) (res *http.Response, body string, err error) {
	if res, err = http.DefaultClient.Do(r); err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res, string(raw), err
}

// add sends the n-th addition until it is stored or patience is over. After each refusal a
// read must succeed. An error means that the server is gone.
func (c *counter) add(base string, n int, patience time.Duration) (stored bool, err error) {
	c.asked = max(c.asked, n)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		res, body, err := c.send(c.request(base, n))
		if err != nil {
			return false, err
		}
		switch res.StatusCode {
		case http.StatusCreated:
			c.stored[n] = body
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
	res, _, err := c.send(r)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("balance: %d", res.StatusCode)
	}
	return err
}

// settle serves the file without disk faults and returns what is wrong. A stored addition
// must be there once, and one that was refused or cut off at most once. After all are sent
// again each must be there once. Then the file must pass verify and bbolt's own check.
func (c *counter) settle() (faults []string) {
	c.Helper()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	p := c.serve()
	got := c.times(p.Base)
	for n := range c.asked {
		if n++; got[n] > 1 || c.stored[n] != "" && got[n] != 1 {
			fault("addition %d, stored: %v; it is there %d times", n, c.stored[n] != "", got[n])
		}
		res, body, err := c.send(c.request(p.Base, n))
		c.must(err)
		if res.StatusCode != http.StatusCreated || c.stored[n] != "" && c.stored[n] != body {
			fault("addition %d again: %d %s, want %s", n, res.StatusCode, body, c.stored[n])
		}
	}
	want := map[int]int{}
	for n := range c.asked {
		want[n+1] = 1
	}
	if got := c.times(p.Base); !maps.Equal(got, want) {
		fault("after the retries there are %v", got)
	}
	if code := p.Stop(); code != 0 {
		fault("exit code %d\n%s", code, p.Log)
	}
	if out, err := c.command("verify").CombinedOutput(); err != nil {
		fault("verify: %v\n%s", err, out)
	}
	if err := disktest.BoltFaults(c.db); err != nil {
		fault("bbolt: %v", err)
	}
	return faults
}

// times counts the movements of each amount.
func (c *counter) times(base string) map[int]int {
	c.Helper()
	list, err := newClient(base, c.key, 1).list("/points/customers/" + c.customer + "/movements?")
	c.must(err)
	got := map[int]int{}
	for _, m := range list {
		got[m.int("amount")]++
	}
	return got
}

// settled fails the test unless the file is settled without a fault.
func (c *counter) settled() {
	c.Helper()
	for _, fault := range c.settle() {
		c.Error(fault)
	}
}

// A diskFault is an error that system calls of a process get.
type diskFault struct {
	call  string
	errno string
	when  string // which of a thread's calls, in strace's notation
}

func (f diskFault) String() string { return f.call + " " + f.errno + " " + f.when }

// fatal reports whether the fault leaves it unknown what is stored.
func (f diskFault) fatal() bool {
	return f.call == "fsync" || f.call == "fdatasync" || f.errno == "EIO" || f.errno == "EROFS"
}

// A diskRun is the result of running a server whose calls failed.
type diskRun struct {
	places []string      // what the failed calls were for; see placeOf
	first  float64       // when the first of them failed, in Unix seconds
	took   time.Duration // from then to the server's end

	served   bool
	stopped  float64 // when it was told to stop, in Unix seconds
	unbidden bool    // it had ended by itself by then
	code     int     // its exit code
	log      string
}

// judge returns what the server did wrong after the fault, or "" if nothing.
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

// serveFaulty runs a server whose calls get the fault. With often it runs oftenBinary.
// After the server's end, hits reads which calls failed.
func (c *counter) serveFaulty(f diskFault, often bool) (p *processtest.Process, hits func(*diskRun), err error) {
	c.Helper()
	log := filepath.Join(filepath.Dir(c.db), "trace")
	binary := c.binary
	if often {
		binary = oftenBinary(c)
	}
	// With -D the process that is started is the server, not strace.
	args := []string{"-D", "-f", "-q", "-ttt", "-y", "-s", "0", "-o", log, "-e", "trace=" + f.call, "-e", "inject=" + f.call + ":error=" + f.errno + ":when=" + f.when}
	for _, path := range []string{c.db, c.db + "-journal1", c.db + "-journal2", filepath.Dir(c.db)} {
		args = append(args, "-P", path)
	}
	p, err = processtest.Start(c, exec.Command("strace", append(args, binary, "serve", "-db", c.db)...))
	return p, func(run *diskRun) {
		calls, _, ended := processtest.ReadTrace(c, log, 1)
		os.Remove(log)
		for _, call := range calls {
			if !call.Injected() {
				continue
			}
			if len(run.places) == 0 {
				run.first, run.took = call.At, time.Duration((ended-call.At)*1e9)
			}
			run.places = append(run.places, placeOf(call, c.db))
		}
	}, err
}

// placeOf names a call and what it is on, such as a header or a page of the file.
func placeOf(s *processtest.Syscall, db string) string {
	what := s.Args[0]
	if s.Call == "openat" {
		what = s.Args[1]
	}
	file := "directory"
	switch {
	case strings.Contains(what, "-journal"):
		file = "journal"
	case strings.Contains(what, filepath.Base(db)):
		file = "file"
	}
	place := s.Call + " " + file
	if s.Call != "pwrite64" {
		return place
	}
	size, _ := s.Number(2)
	at, _ := s.Number(3)
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

// run makes additions with a server whose calls get the fault.
func (c *counter) run(f diskFault, often bool, additions int) (run diskRun) {
	c.Helper()
	p, hits, err := c.serveFaulty(f, often)
	run.served = err == nil
	run.code = 1
	if run.served {
		for range additions {
			if _, err := c.add(p.Base, c.asked+1, 5*time.Second); err != nil {
				run.unbidden = true
				break
			}
		}
		if !run.unbidden && f.fatal() { // the fault may have come after the last answer
			time.Sleep(20 * time.Millisecond)
			res, err := http.Get(p.Base + "/livez")
			if run.unbidden = err != nil; err == nil {
				res.Body.Close()
			}
		}
		run.stopped = float64(time.Now().UnixMicro()) / 1e6
		if run.unbidden {
			late := time.AfterFunc(10*time.Second, p.Kill)
			p.Wait()
			late.Stop()
			run.code = p.ProcessState.ExitCode()
		} else {
			run.code = p.Stop()
		}
		run.log = p.Log.String()
	} else if _, out, ended := strings.Cut(err.Error(), "it ended: exit status 1\n"); ended {
		run.log = out
	} else {
		run.code, run.log = -1, err.Error()
	}
	hits(&run)
	return run
}

// A diskSum sums up many runs.
type diskSum struct {
	hits    map[string]int // failed calls, by place and error
	longest time.Duration  // from a fatal fault to the exit
	refused int            // answers 503
}

// try runs a fault on a copy of a counter's file, judges the run and settles the file.
func (sum *diskSum) try(t *testing.T, from *counter, f diskFault, often bool, additions int) diskRun {
	t.Helper()
	c := from.copy(t)
	run := c.run(f, often, additions)
	if fault := f.judge(run); fault != "" {
		t.Errorf("%v at %v: %s; exit code %d:\n%s", f, run.places, fault, run.code, run.log)
	}
	c.settled()
	for _, where := range run.places {
		sum.hits[where+" "+f.errno]++
	}
	sum.refused += c.refuse
	if f.fatal() && run.served {
		sum.longest = max(sum.longest, run.took)
	}
	return run
}

func (sum *diskSum) log(t *testing.T) {
	t.Logf("%d answers 503; longest time to exit %v", sum.refused, sum.longest)
	for _, hit := range slices.Sorted(maps.Keys(sum.hits)) {
		t.Logf("%6d  %s", sum.hits[hit], hit)
	}
}

// How many additions a run makes. After manyAdditions oftenBinary has been in a checkpoint.
const someAdditions, manyAdditions = 20, 60

// TestDiskErrors lets calls fail. After a fatal error the process must exit by itself.
// Without space it must go on serving reads, and write again when there is space.
func TestDiskErrors(t *testing.T) {
	t.Parallel()
	processtest.NeedStrace(t)
	fresh := newCounter(t)
	killed := fresh.copy(t)
	p := killed.serve()
	for n := range 5 {
		if stored, err := killed.add(p.Base, n+1, 0); !stored {
			t.Fatal(err)
		}
	}
	p.Kill()
	sum := &diskSum{hits: map[string]int{}}
	defer sum.log(t)
	if *diskAll {
		sum.tryAll(t, fresh, killed)
		return
	}
	judged := 0
	for _, test := range []struct {
		from      *counter
		fault     diskFault
		often     bool
		additions int
	}{
		{fresh, diskFault{"pwrite64", "EIO", "2"}, false, someAdditions},
		{fresh, diskFault{"pwrite64", "ENOSPC", "1..3"}, false, someAdditions},
		{fresh, diskFault{"ftruncate", "EFBIG", "1..2"}, true, manyAdditions},
		{fresh, diskFault{"openat", "EIO", "3"}, false, someAdditions},
		{killed, diskFault{"fdatasync", "EIO", "3"}, false, someAdditions},
		{killed, diskFault{"pwrite64", "EROFS", "3"}, true, manyAdditions},
		{killed, diskFault{"pwrite64", "ENOSPC", "4..9"}, true, manyAdditions},
	} {
		run := sum.try(t, test.from, test.fault, test.often, test.additions)
		if !run.served || len(run.places) == 0 || run.first > run.stopped {
			continue
		}
		judged++
		// The control: the same run must be wrong for a fault of the other kind.
		other := diskFault{test.fault.call, "EIO", ""}
		if test.fault.fatal() {
			other = diskFault{"pwrite64", "ENOSPC", ""}
		}
		if other.judge(run) == "" {
			t.Errorf("%v: it would be right for %v too", test.fault, other)
		}
	}
	if judged == 0 {
		t.Error("no fault has met a server that served")
	}
}

// tryAll lets the first calls of each kind fail, one after the other, with every error.
func (sum *diskSum) tryAll(t *testing.T, from ...*counter) {
	for _, from := range from {
		for _, often := range []bool{false, true} {
			additions := 12
			if often {
				additions = manyAdditions
			}
			for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "openat"} {
				for _, errno := range []string{"EIO", "ENOSPC", "EFBIG", "EROFS"} {
					for k, missed := 1, 0; missed < 2 && k < 40; k++ {
						f := diskFault{call, errno, fmt.Sprint(k)}
						if !f.fatal() {
							f.when = fmt.Sprintf("%d..%d", k, k+k%3)
						}
						t.Run(f.String(), func(t *testing.T) {
							if len(sum.try(t, from, f, often, additions).places) == 0 {
								missed++
							}
						})
					}
				}
			}
		}
	}
}

// limitFiles sets how large a file a process may write.
func limitFiles(t *testing.T, p *processtest.Process, bytes uint64) {
	t.Helper()
	l := syscall.Rlimit{Cur: bytes, Max: 1<<64 - 1}
	var old syscall.Rlimit
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.Process.Pid), syscall.RLIMIT_FSIZE,
		uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&old)), 0, 0); errno != 0 {
		t.Skip(errno)
	}
}

// fill makes additions from the n-th on and returns the number of the next. With refused it
// stops at the first that is refused. Otherwise none may be refused, and it stops after a
// multiple of ten.
func (c *counter) fill(p *processtest.Process, n int, refused bool) (next int) {
	c.Helper()
	for range 200 {
		stored, err := c.add(p.Base, n, 0)
		if err != nil {
			c.Fatalf("addition %d: %v\n%s", n, err, p.Log)
		}
		if !stored {
			if !refused {
				c.Fatalf("addition %d is refused", n)
			}
			return n
		}
		if n++; n%10 == 1 && !refused {
			return n
		}
	}
	c.Fatal("no limit was met")
	return n
}

// TestDiskLimit lowers and raises the limit on the size of the server's files. The limit
// cuts writes short. The test needs no strace.
func TestDiskLimit(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	p := c.serve()
	n := c.fill(p, 1, false)
	ready := func() bool {
		res, err := http.Get(strings.TrimSuffix(p.Base, "/api/v1") + "/readyz")
		c.must(err)
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	for i := range 4 {
		limitFiles(t, p, uint64(60_000+7001*i))
		n = c.fill(p, n, true)
		if ready() {
			t.Error("it refuses writes, and is ready")
		}
		limitFiles(t, p, 1<<64-1)
		if i%2 == 0 {
			for !ready() { // no write of a client is needed
				time.Sleep(20 * time.Millisecond)
			}
		}
		n = c.fill(p, n, false)
		if !ready() {
			t.Error("it takes writes, and is not ready")
		}
	}
	if c.refuse == 0 || c.reads != c.refuse {
		t.Errorf("%d answers 503, %d reads after them", c.refuse, c.reads)
	}
	p.Kill()
	c.settled()
}

// TestDiskControl checks that settle finds an addition that was answered but is missing,
// and one that is there twice.
func TestDiskControl(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	p := c.serve()
	for n := range 3 {
		if stored, err := c.add(p.Base, n+1, 0); !stored {
			t.Fatal(err)
		}
	}
	p.Kill()
	lost := c.copy(t)
	lost.asked, lost.stored[4] = 4, "{}"
	if faults := lost.settle(); len(faults) == 0 {
		t.Error("an addition that was lost is not missed")
	}
	twice := c.copy(t)
	p = twice.serve()
	r := twice.request(p.Base, 3)
	r.Header.Set("Idempotency-Key", "another")
	if res, _, err := c.send(r); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res, err)
	}
	p.Kill()
	if faults := twice.settle(); len(faults) == 0 {
		t.Error("an addition that was made twice is not noticed")
	}
	c.settled()
}

// TestDiskBackupName checks what the command says if a backup is written but the sync of its
// directory fails, so that its name may be lost.
func TestDiskBackupName(t *testing.T) {
	t.Parallel()
	processtest.NeedStrace(t)
	c := newCounter(t)
	dir := filepath.Join(filepath.Dir(c.db), "backups")
	c.must(os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "copy.db")
	out, err := exec.Command("strace", "-f", "-q", "-o", os.DevNull, "-P", dir, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO",
		c.binary, "backup", "-db", c.db, path).CombinedOutput()
	want := "sello: " + path + ": la copia está ahí, pero no se pudo asegurar su nombre en el disco: el disco no se puede leer o escribir\n"
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || string(out) != want {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
	c.db = path
	c.settled()
}
