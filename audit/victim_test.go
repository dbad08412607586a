package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
	"sello/internal/processtest"
)

// A victim is a server that is killed again and again, with the file it serves and what
// the auditor knows of it.
type victim struct {
	*till
	rng      *rand.Rand
	binaries []string // each start takes one at random
	key      string
	diary    string               // the auditor's file
	server   *processtest.Process // the newest
	starting time.Duration        // how long the last start took
	figures  crashFigures
}

// crashFigures count what was seen.
type crashFigures struct {
	Kills, InStop, InStart, Stops int // kills under load, in a stop, in a start; stops without a kill
	InCheckpoint                  int // kills that left a checkpoint half done
	Writes, Unknown, Applied      int // sent; those without an answer; those of them applied
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

func (f *crashFigures) crashes() int { return f.Kills + f.InStop }

// tame reports whether the crashes missed one of: a checkpoint, a write without an answer,
// such a write that was applied.
func (f *crashFigures) tame() bool { return f.InCheckpoint == 0 || f.Unknown == 0 || f.Applied == 0 }

// victimDocument is a shop in which every kind of write moves points: enrolments too, by
// fractions of a point, and with tiers that customers change on the way.
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
	v.key = v.newKey("cafe-luna", "-name auditor -rate-limit 1000000000")
	v.diary = filepath.Join(v.dir, "diary.jsonl")
	v.start()
	return v
}

// serveCommand returns a command that serves the file with one of the binaries.
func (v *victim) serveCommand(args ...string) *exec.Cmd {
	cmd := v.command(append([]string{"serve"}, args...)...)
	cmd.Path = v.binaries[v.rng.IntN(len(v.binaries))]
	return cmd
}

func (v *victim) start() {
	v.Helper()
	began := time.Now()
	var err error
	if v.server, err = processtest.Start(v.T, v.serveCommand()); err != nil {
		v.Fatal(err)
	}
	v.starting = time.Since(began)
}

// cycle puts load on the server, ends it in a random way, and audits the next.
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

// load starts to write and returns after the first answer. The returned function waits
// until the load has ended, with the server or by itself.
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
		v.server.Kill()
		v.Fatalf("the load: %q %v %v\n%s\n%s", line, err, waitErr, out, v.server.Log)
	}
	return wait
}

// auditor returns a command that runs the auditor.
func (v *victim) auditor(role string, args ...string) *exec.Cmd {
	v.Helper()
	path, err := os.Executable()
	if err != nil {
		v.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{role, "-url", v.server.Base, "-key", v.key, "-log", v.diary}, args...)...)
	cmd.Env = append(os.Environ(), runsAuditor+"=1")
	return cmd
}

// end ends the server under its load.
func (v *victim) end() {
	v.Helper()
	switch n := v.rng.IntN(10); {
	case n < 6:
		v.figures.Kills++
		v.server.Kill()
		v.look()
	case n < 9: // kill it in a stop, while it writes the journal into the file
		v.server.Process.Signal(syscall.SIGTERM)
		time.Sleep(time.Duration(v.rng.Int64N(int64(30 * time.Millisecond))))
		if v.server.Kill(); v.server.ProcessState.ExitCode() == 0 {
			v.figures.Stops++ // it had stopped before the kill
			return
		}
		v.figures.InStop++
		v.look()
	default:
		v.wantStopped()
	}
}

// look counts a kill that came in a checkpoint. Then the data file lacks more than one
// generation of the journal, or has only a part of one.
func (v *victim) look() {
	v.Helper()
	db, err := bolt.Open(v.db, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		v.Fatal(err)
	}
	defer db.Close()
	var first uint64
	err = db.View(func(tx *bolt.Tx) error {
		// | checksum, 4 | file, 16 | life, 16 | first generation that the file lacks, 8 | …
		state := tx.Bucket([]byte("journal")).Get([]byte("s"))
		first = binary.BigEndian.Uint64(state[36:])
		return nil
	})
	if err != nil {
		v.Fatal(err)
	}
	if first == 0 {
		return // the server had stopped, or not written
	}
	if newest, err := disktest.NewestGeneration(disk.JournalNames(v.db)); err != nil {
		v.Fatal(err)
	} else if newest.Number > first {
		v.figures.InCheckpoint++
	}
}

// wantStopped stops the server. It must leave no journal, and a file that verify accepts.
func (v *victim) wantStopped() {
	v.Helper()
	v.figures.Stops++
	if code := v.server.Stop(); code != 0 {
		v.Fatalf("stopped with exit code %d\n%s", code, tail(v.server.Log.String()))
	}
	for _, name := range disk.JournalNames(v.db) {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			v.Errorf("after a stop: %s: %v", name, err)
		}
	}
	if out := v.ok("verify"); !strings.Contains(out, "todo cuadra") {
		v.Fatalf("sello verify: %s", out)
	}
}

// killStarting starts the server and kills it, most of the time before it serves.
func (v *victim) killStarting() {
	v.Helper()
	v.figures.InStart++
	cmd := v.serveCommand("-addr", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	time.Sleep(time.Duration(v.rng.Float64() * float64(v.starting)))
	cmd.Process.Kill()
	cmd.Wait()
}

// audit runs the auditor's check of the server, which must find no fault.
func (v *victim) audit(args ...string) {
	v.Helper()
	out, err := v.auditor("check", args...).CombinedOutput()
	if err != nil {
		v.server.Kill() // so that its log is complete
		v.Fatalf("the audit: %v\n%s\nthe server:\n%s", err, out, tail(v.server.Log.String()))
	}
	var all int
	var f crashFigures
	if _, err := fmt.Sscanf(string(out), "writes %d new %d unknown %d applied %d refused %d retried %d", &all, &f.Writes, &f.Unknown, &f.Applied, &f.Refused, &f.Retried); err != nil {
		v.Fatalf("the audit: %v\n%s", err, out)
	}
	v.figures.add(f)
}

// tail returns the last 2,000 bytes of a log.
func tail(log string) string { return log[max(0, len(log)-2000):] }
