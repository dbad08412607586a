package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sello/internal/processtest"
)

// Random histories that go on across kill -9.

// A killable is a recorder with a server process that can be killed.
type killable struct {
	*recorder
	till   *till
	key    string
	server *processtest.Process
	wires  *wires
}

func newKillable(t *testing.T) *killable {
	t.Helper()
	k := &killable{till: newTill(t)}
	k.till.ok("apply -", string(rushShop.document()))
	k.key, _ = k.till.key("-name prisa -rate-limit 10000000")
	k.start()
	for _, reward := range k.wires.get("/rewards").told().Data {
		if reward.Name == "Cara" {
			k.recorder = newRecorder(reward.ID)
		}
	}
	for i := range linearCustomers {
		c := k.wires.post("/customers", fmt.Sprintf(`{"email":"cliente%d@example.com"}`, i)).told()
		k.customers = append(k.customers, c.ID)
	}
	return k
}

func (k *killable) file() string { return k.till.env["SELLO_DB"] }

func (k *killable) start() {
	k.till.Helper()
	var err error
	if k.server, err = processtest.Start(k.till, selloCommand(k.till, "serve", "-db", k.file())); err != nil {
		k.till.Fatal(err)
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(k.server.Base, "http://"), "/api/v1")
	k.wires = newWires(addr, k.key, linearClients)
}

func (k *killable) kill() {
	k.server.Kill()
	k.wires.close()
	k.died()
}

// playUntilKilled plays, and kills the server just before the operation numbered after.
func (k *killable) playUntilKilled(rnd *rand.Rand, after int64) {
	var sent atomic.Int64
	k.beforeSend = func() {
		if sent.Add(1) == after {
			k.server.Process.Kill()
		}
	}
	k.play(k.wires, rnd, linearEach)
	k.beforeSend = nil
	k.kill()
}

// TestLinearKill plays histories across kill -9. An answered operation survives. An
// unanswered one was done once or not at all, and takes no effect after the kill unless
// it is sent again.
func TestLinearKill(t *testing.T) {
	linearSeeds(t, max(*linearMany/12, 1), 1, func(t *testing.T) func(*rand.Rand) error {
		return newKillable(t).playAcrossKills
	})
}

func (k *killable) playAcrossKills(rnd *rand.Rand) error {
	lost := 0
	for range 3 {
		k.playUntilKilled(rnd, int64(linearClients+rnd.IntN(30)))
		lost += len(k.unanswered)
		k.start()
		k.retry(k.wires, rnd)
	}
	k.play(k.wires, rnd, linearEach/3)
	k.settle(k.wires)
	if code := k.server.Stop(); code != 0 {
		k.till.Errorf("exit code %d\n%s", code, k.server.Log)
	}
	k.wires.close()
	k.till.ok("verify")
	k.till.Logf("%d requests were not answered; of %d sent again %d had been carried out", lost, k.again, k.replayed)
	if lost == 0 {
		k.till.Error("nobody noticed that the server was killed")
	}
	return k.check()
}

// TestLinearKillControl checks that histories notice a change that is made again after a
// kill, and a file that is replaced by an earlier copy.
func TestLinearKillControl(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		k := newKillable(t)
		for _, retryKey := range []string{"k-1", ""} {
			add := k.attempt("add", 0, 10, 0)
			add.retryKey = retryKey
			k.send(k.wires, add)
			k.kill()
			k.start()
			k.send(k.wires, add)
			k.settle(k.wires)
			if err := k.check(); (err == nil) != (retryKey != "") {
				t.Errorf("sent again with the Idempotency-Key %q: %v", retryKey, err)
			}
		}
		k.kill()
	})
	t.Run("set back", func(t *testing.T) {
		k := newKillable(t)
		k.play(k.wires, rand.New(rand.NewPCG(1, 0)), 2)
		k.kill()
		copied := copyFiles(t, k.file())
		k.start()
		k.send(k.wires, k.attempt("add", 0, 10, 0))
		k.kill()
		if err := k.check(); err != nil {
			t.Fatal(err)
		}
		for path := range copyFiles(t, k.file()) {
			os.Remove(path)
		}
		for path, content := range copied {
			writeFile(t, path, content)
		}
		k.start()
		k.settle(k.wires)
		if err := k.check(); err == nil {
			t.Error("not noticed: an older file, with its journals")
		}
		k.kill()
	})
}

// copyFiles reads a file and its two journals, whose names begin with its name.
func copyFiles(t *testing.T, path string) map[string][]byte {
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			found[name] = readFile(t, name)
		}
	}
	if len(found) != 3 {
		t.Fatalf("%q are not a file and two journals", slices.Collect(maps.Keys(found)))
	}
	return found
}
