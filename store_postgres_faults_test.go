//go:build postgres

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/postgres/pgtest"
)

// Adders are clients of three servers that add points until each add was answered.
type adders struct {
	*testing.T
	send    func(server int, key, method, path, retry, body string) (status int, answer string) // 503: none
	verify  func() error
	keys    []string // of the people's organizations, by turns
	people  []string // ids
	welcome int      // points that each begins with
	keyless bool     // each request has an Idempotency-Key of its own, also one that is sent again

	answered, unavailable atomic.Int64
	silence               silence
}

// A silence is how long no add was answered, at most.
type silence struct {
	mu      sync.Mutex
	last    time.Time // when one was
	longest time.Duration
}

func (s *silence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.longest = max(s.longest, now.Sub(s.last))
	}
	s.last = now
}

const addedPeople = 4

func newAdders(t *testing.T, keys []string, send func(server int, key, method, path, retry, body string) (int, string), verify func() error) *adders {
	a := &adders{T: t, keys: keys, send: send, verify: verify}
	for i := range addedPeople {
		var c struct {
			ID      string
			Balance int
		}
		_, body := send(i%3, a.keyOf(i), "POST", "/customers", "", fmt.Sprintf(`{"email":"c%d@example.com"}`, i))
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		a.people, a.welcome = append(a.people, c.ID), c.Balance
	}
	return a
}

func (a *adders) keyOf(person int) string { return a.keys[person%len(a.keys)] }

// work adds one point after another until stop is closed, each by a request with a key of its own
// that is sent to any of the servers until it is answered. It returns how many were.
func (a *adders) work(client int, rnd *rand.Rand, stop <-chan bool) (added [addedPeople]int) {
	for i := 0; ; i++ {
		person := rnd.IntN(addedPeople)
		for try := 0; ; try++ {
			retry := fmt.Sprintf("%d-%d", client, i)
			if a.keyless {
				retry = fmt.Sprintf("%s-%d", retry, try)
			}
			code, body := a.send(rnd.IntN(3), a.keyOf(person), "POST", "/points/customers/"+a.people[person]+"/add", retry, `{"amount":1}`)
			if code == 200 || code == 201 {
				added[person]++
				a.answered.Add(1)
				a.silence.end()
				break
			}
			if code != 503 || try > 1000 {
				a.Errorf("%d %s", code, body)
				return added
			}
			a.unavailable.Add(1)
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
		}
		select {
		case <-stop:
			return added
		default:
		}
	}
}

// run runs clients while disturb does something to the database or the servers again and again, for
// a while. It returns what is wrong afterwards.
func (a *adders) run(seed uint64, length time.Duration, clients int, disturb func(*rand.Rand)) (faults []string) {
	stop := make(chan bool)
	var wait sync.WaitGroup
	added := make([][addedPeople]int, clients)
	for client := range clients {
		wait.Go(func() { added[client] = a.work(client, rand.New(rand.NewPCG(seed, uint64(100+client))), stop) })
	}
	rnd := rand.New(rand.NewPCG(seed, 99))
	for end := time.Now().Add(length); time.Now().Before(end); {
		time.Sleep(time.Duration(200+rnd.IntN(600)) * time.Millisecond)
		disturb(rnd)
	}
	close(stop)
	wait.Wait()
	total := 0
	for person, id := range a.people {
		want := a.welcome
		for client := range clients {
			want += added[client][person]
			total += added[client][person]
		}
		var b struct{ Balance int }
		_, body := a.send(person%3, a.keyOf(person), "GET", "/points/customers/"+id+"/balance", "", "")
		if err := json.Unmarshal([]byte(body), &b); err != nil || b.Balance != want {
			faults = append(faults, fmt.Sprintf("%d adds were answered, %s", want, strings.Join(strings.Fields(body), "")))
		}
	}
	if err := a.verify(); err != nil {
		faults = append(faults, err.Error())
	}
	a.Logf("seed %d: %d adds in %v, %d answers were 503, at most %v without an add", seed, total, length, a.unavailable.Load(), a.silence.longest.Round(time.Millisecond))
	if total < 50 {
		faults = append(faults, "too few adds to tell")
	}
	return faults
}

// A faultyFloor is three servers on one database to which something happens, and their clients.
type faultyFloor struct {
	*adders
	cluster *pgtest.Cluster
	stores  []Store
}

func newFaultyFloor(t *testing.T, seed uint64, settings ...string) *faultyFloor {
	cluster := pgtest.Start(t, settings...)
	return newFloorOf(t, cluster, faultyStores(t, seed, cluster.DSN()))
}

// faultyStores returns the stores of three servers on one database, each behind a proxy that cuts
// its connections around their COMMITs.
func faultyStores(t *testing.T, seed uint64, dsn string) (stores []Store) {
	for i := range 3 {
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		proxy := pgtest.NewProxy(t, dsn, func(commit int) pgtest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if commit < 50 || rnd.IntN(25) > 0 { // the first ones open the store
				return pgtest.Fault{}
			}
			at := []pgtest.Point{pgtest.Before, pgtest.Inside, pgtest.Sent, pgtest.After}[rnd.IntN(4)]
			end := []pgtest.End{pgtest.Reset, pgtest.Close}[rnd.IntN(2)]
			return pgtest.Fault{At: at, End: end, Delay: time.Duration(rnd.IntN(20)) * time.Millisecond}
		})
		stores = append(stores, openTestPostgres(t, proxy.DSN()))
	}
	return stores
}

func newFloorOf(t *testing.T, cluster *pgtest.Cluster, stores []Store) *faultyFloor {
	f := newFloor(t, stores)
	var keys []string
	for _, org := range []string{"cafe-luna", "cafe-sol", "cafe-mar"} { // commits are of one or several
		document := bytes.ReplaceAll(rushShop.document(), []byte("cafe-luna"), []byte(org))
		_, err := f.admins[0].apply(t.Context(), applyRequest{Document: document})
		f.ok(err)
		k, err := f.admins[0].createKey(t.Context(), keyRequest{Org: org, Name: "x", RateLimit: 10_000_000})
		f.ok(err)
		keys = append(keys, k.Key)
	}
	return &faultyFloor{newAdders(t, keys, f.send, func() error {
		report, err := f.admins[1].verify(t.Context(), verifyRequest{})
		if err == nil && len(report.Problems) > 0 {
			err = fmt.Errorf("%q", report.Problems)
		}
		return err
	}), cluster, stores}
}

// TestPostgresFaults disturbs three servers while they work: connections are cut before, in and
// after their COMMITs, backends are ended, the database is stopped and crashes. No add is lost, and
// none is done twice.
func TestPostgresFaults(t *testing.T) {
	seed := rand.Uint64N(1_000_000)
	f := newFaultyFloor(t, seed)
	faults := f.run(seed, time.Duration(sized(600, 4))*time.Second, 12, func(rnd *rand.Rand) {
		switch rnd.IntN(4) {
		case 0:
			f.cluster.Restart(pgtest.Immediate)
		case 1:
			f.cluster.Restart(pgtest.Fast)
		default:
			f.cluster.Terminate("application_name = 'sello'")
		}
	})
	if len(faults) > 0 {
		t.Errorf("seed %d: %q", seed, faults)
	}
}

// TestPostgresFaultsControl: a database that acknowledges commits before they are on disk loses
// some when it crashes, and the same test notices.
func TestPostgresFaultsControl(t *testing.T) {
	for seed := uint64(1); seed < 6; seed++ {
		f := newFaultyFloor(t, seed, "synchronous_commit=off", "wal_writer_delay=10s")
		if len(f.run(seed, 3*time.Second, 12, func(*rand.Rand) { f.cluster.Restart(pgtest.Immediate) })) > 0 {
			return
		}
	}
	t.Error("commits that a crash took back were not noticed")
}
