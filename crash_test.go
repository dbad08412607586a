package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// Crashes: the real binary is killed while clients write to it, started again
// and audited, on one file over many cycles. Who sends the writes and who
// judges is the program in audit, in a process of its own.
//
// kill -9 takes the process, not the machine: what the operating system was
// given survives it, synced or not. So this shows what is lost between an
// answer and the write, and whether a file is understood in whatever state
// its writer left it; it says nothing of fsync.
//
// A seed gives each moment, kind of end and request again, not the machine's
// interleaving of them: what failed once may take some tries.

var (
	crashCycles  = flag.Int("crash.n", 20, "kill the server so many `times`")
	crashSeed    = flag.Uint64("crash.seed", 0, "seed of the tests that kill the server; 0: a new one")
	crashMutants = flag.Bool("crash.mutants", false, "also kill servers that were made to lose and to double writes")
)

// crashesOnOneFile is how many cycles share a file before the next begins with
// a new one, so that audits do not become longer and longer.
const crashesOnOneFile = 25

func TestCrash(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	ordinary := builtBinary(t, ".")
	often := alteredBinary(t, oftenCheckpoints...)
	var sum crashFigures
	for i, left := uint64(0), *crashCycles; left > 0; i, left = i+1, left-crashesOnOneFile {
		n := min(left, crashesOnOneFile)
		ok := t.Run(fmt.Sprintf("file%d", i+1), func(t *testing.T) {
			v := newVictim(t, seed+i, ordinary, often)
			defer func() {
				if t.Failed() {
					t.Logf("again: go test -run '^TestCrash$' -crash.n=%d -crash.seed=%d", n, seed+i)
				}
			}()
			for v.figures.Kills+v.figures.InStop < n {
				v.cycle()
			}
			v.audit("-all")
			v.wantStopped()
			sum.add(v.figures)
		})
		if !ok {
			break
		}
	}
	t.Logf("-crash.seed=%d: %+v", seed, sum)
	if !t.Failed() && *crashCycles >= 20 && (sum.InCheckpoint == 0 || sum.Unknown == 0 || sum.Applied == 0) {
		t.Error("the moments were too tame to show anything")
	}
}

// newCrashSeed returns the seed of a test that kills the real binary.
func newCrashSeed(t *testing.T) uint64 {
	if runtime.GOOS == "windows" {
		t.Skip("no signals here")
	}
	if raceDetector && *crashSeed == 0 {
		t.Skip("the race detector does not watch the binary that is killed")
	}
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000_000) + 1
	}
	t.Logf("-crash.seed=%d", seed)
	return seed
}

// oftenCheckpoints make of sello one that brings its journal into the file all
// the time, and keeps few retries in a slice, so that a moment of a test meets what else
// is a matter of half a minute.
var oftenCheckpoints = []alteration{
	{"internal/disk/checkpoint.go", "DefaultMemSize = 64 << 20 ", "DefaultMemSize = 48 << 10 "},
	{"internal/disk/checkpoint.go", "defaultMemAge  = 30 * time.Second ", "defaultMemAge  = 30 * time.Millisecond "},
	{"internal/disk/checkpoint.go", "checkpointStep = 512 ", "checkpointStep = 32 "},
	{"internal/disk/checkpoint.go", "lookPause      = 250 * ", "lookPause      = 5 * "},
	{"idempotency.go", "sliceNames = 1 << 15", "sliceNames = 1 << 5"},
}

// An alteration puts one text in the place of another, which a source file has once.
type alteration struct{ file, old, new string }

// alteredBinary builds sello with changes to its source, which stays as it is.
func alteredBinary(t *testing.T, changes ...alteration) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, a := range changes {
		source, err := filepath.Abs(a.file)
		if err != nil {
			t.Fatal(err)
		}
		altered := replace[source]
		if altered == "" {
			altered = filepath.Join(dir, strings.ReplaceAll(a.file, "/", "-"))
			replace[source] = altered
			copyFile(t, altered, source)
		}
		text, err := os.ReadFile(altered)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), a.old); n != 1 {
			t.Fatalf("%s has %d times: %s", a.file, n, a.old)
		}
		if err := os.WriteFile(altered, []byte(strings.Replace(string(text), a.old, a.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "altered.exe")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", name, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A victim is a server that is killed again and again, with the file it
// serves and what the auditor knows of it.
type victim struct {
	*till
	rng      *rand.Rand
	binaries []string // one of which each start takes
	key      string
	diary    string   // of the auditor
	server   *process // the one that runs
	starting time.Duration
	figures  crashFigures
}

// crashFigures count what was seen.
type crashFigures struct {
	Kills, InStop, InStart, Stops int // ends: under load, while it stopped, while it started; and stops without a kill
	InCheckpoint                  int // kills that left a checkpoint half done
	Writes, Unknown, Applied      int // sent; of them without an answer; of them carried out nevertheless
	Refused, Retried              int
}

func (f *crashFigures) add(g crashFigures) {
	f.Kills += g.Kills
	f.InStop += g.InStop
	f.InStart += g.InStart
	f.Stops += g.Stops
	f.InCheckpoint += g.InCheckpoint
	f.Writes += g.Writes
	f.Unknown += g.Unknown
	f.Applied += g.Applied
	f.Refused += g.Refused
	f.Retried += g.Retried
}

// victimDocument is a shop in which every kind of write moves points: by
// fractions, at once, and by tiers that change under way.
const victimDocument = `{"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
	"profile":{"country":"MX"},"settings":{"timezone":"America/Mexico_City","currency":"MXN"}},
	"programs":[{"key":"club","name":"Club Luna","default":true,"pointsDecimals":2,
		"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":300,"multiplier":1.5}],
		"rules":[{"key":"base","name":"base","per":{"amount":10,"points":1}},
			{"key":"grano","name":"grano","skus":["GRANO-*"],"perItem":5},
			{"key":"bienvenida","name":"Bienvenida","on":"Signup","points":50,"expiresInDays":90}]}],
	"rewards":[{"key":"espresso","program":"club","name":"Espresso","pointsCost":20},
		{"key":"bolsa","program":"club","name":"Bolsa","pointsCost":35.5,"stock":1000000}]}`

func newVictim(t *testing.T, seed uint64, binaries ...string) *victim {
	t.Helper()
	v := &victim{till: newTill(t), rng: rand.New(rand.NewPCG(seed, 0)), binaries: binaries}
	v.ok("apply -", victimDocument)
	v.key, _ = v.till.key("-name auditor -rate-limit 1000000000")
	v.diary = filepath.Join(v.dir, "diary.jsonl")
	v.start()
	return v
}

func (v *victim) db() string { return v.env["SELLO_DB"] }

func (v *victim) binary() string { return v.binaries[v.rng.IntN(len(v.binaries))] }

func (v *victim) start() {
	v.Helper()
	began := time.Now()
	var err error
	if v.server, err = startProcess(v.T, exec.Command(v.binary(), "serve", "-db", v.db())); err != nil {
		v.Fatal(err)
	}
	v.starting = time.Since(began)
}

// cycle loads the server, ends it in one way or another, and audits the next.
func (v *victim) cycle() {
	v.Helper()
	load := v.load()
	u := v.rng.Float64()
	time.Sleep(time.Duration(u * u * u * float64(150*time.Millisecond)))
	v.end()
	if out, err := load(); err != nil {
		v.Fatalf("the load: %v\n%s", err, out)
	}
	for range max(v.rng.IntN(4)-1, 0) {
		v.killStarting()
	}
	v.start()
	v.audit()
}

// load begins to write and returns once a first answer has come. The returned
// function waits for the end, which is the server's.
func (v *victim) load(args ...string) (wait func() (out string, err error)) {
	v.Helper()
	cmd := v.auditor("load", append([]string{"-seed", fmt.Sprint(v.rng.Uint64())}, args...)...)
	var rest bytes.Buffer
	cmd.Stderr = &rest
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		v.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	wait = func() (string, error) {
		err := cmd.Wait()
		return rest.String(), err
	}
	if err != nil {
		out, waitErr := wait()
		v.server.kill()
		v.Fatalf("the load: %q %v %v\n%s\n%s", line, err, waitErr, out, v.server.log)
	}
	return wait
}

func (v *victim) auditor(role string, args ...string) *exec.Cmd {
	return exec.Command(builtBinary(v.T, "audit"), append([]string{role, "-url", v.server.base, "-key", v.key, "-log", v.diary}, args...)...)
}

// end ends the server under its load.
func (v *victim) end() {
	v.Helper()
	switch n := v.rng.IntN(10); {
	case n < 6:
		v.figures.Kills++
		v.server.kill()
		v.look()
	case n < 9: // while it stops: it brings the journal into the file then
		v.server.Process.Signal(syscall.SIGTERM)
		time.Sleep(time.Duration(v.rng.Int64N(int64(30 * time.Millisecond))))
		if v.server.kill(); v.server.ProcessState.ExitCode() == 0 {
			v.figures.Stops++ // too late
			return
		}
		v.figures.InStop++
		v.look()
	default:
		v.wantStopped()
	}
}

// look counts whether the kill came in a checkpoint: then both files of the
// journal hold what the data file lacks, or has a part of.
func (v *victim) look() {
	v.Helper()
	db, err := bolt.Open(v.db(), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		v.Fatal(err)
	}
	defer db.Close()
	var first uint64
	err = db.View(func(tx *bolt.Tx) error {
		// Checksum, 4 bytes, file, 16, life, 16, then the generation that the file lacks first.
		state := tx.Bucket([]byte("journal")).Get([]byte("s"))
		first = binary.BigEndian.Uint64(state[36:])
		return nil
	})
	if err != nil {
		v.Fatal(err)
	}
	if first == 0 {
		return // it had stopped, or not written
	}
	if newest, err := disktest.NewestGeneration(disk.JournalNames(v.db())); err != nil {
		v.Fatal(err)
	} else if newest.Number > first {
		v.figures.InCheckpoint++
	}
}

// wantStopped stops the server, which is to leave a file that is whole by
// itself and adds up.
func (v *victim) wantStopped() {
	v.Helper()
	v.figures.Stops++
	if code := v.server.stop(); code != 0 {
		v.Fatalf("stopped with exit code %d\n%s", code, tail(v.server.log.String()))
	}
	for _, name := range disk.JournalNames(v.db()) {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			v.Errorf("after a stop: %s: %v", name, err)
		}
	}
	out, err := exec.Command(builtBinary(v.T, "."), "verify", "-db", v.db()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "todo cuadra") {
		v.Fatalf("sello verify: %v\n%s", err, out)
	}
}

// killStarting starts the server and kills it before it serves, most of the time.
func (v *victim) killStarting() {
	v.Helper()
	v.figures.InStart++
	cmd := exec.Command(v.binary(), "serve", "-db", v.db(), "-addr", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	time.Sleep(time.Duration(v.rng.Float64() * float64(v.starting)))
	cmd.Process.Kill()
	cmd.Wait()
}

// audit has the auditor check the server, which must be found without fault.
func (v *victim) audit(args ...string) {
	v.Helper()
	out, err := v.auditor("check", args...).CombinedOutput()
	if err != nil {
		v.server.kill() // its log is whole then
		v.Fatalf("the audit: %v\n%s\nthe server:\n%s", err, out, tail(v.server.log.String()))
	}
	var all int
	var f crashFigures
	if _, err := fmt.Sscanf(string(out), "writes %d new %d unknown %d applied %d refused %d retried %d", &all, &f.Writes, &f.Unknown, &f.Applied, &f.Refused, &f.Retried); err != nil {
		v.Fatalf("the audit: %v\n%s", err, out)
	}
	v.figures.add(f)
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-2000):] }
