//go:build postgres

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/postgres"
	"sello/postgres/pgtest"
)

// audited runs clients while something happens to the database, and fails if the audit finds
// anything wrong afterwards. The long form does so for many seeds.
func audited(t *testing.T, prepare func(t *testing.T, seed uint64) (f *faultyFloor, disturb func(*rand.Rand))) {
	for range sized(20, 1) {
		seed := rand.Uint64N(1_000_000)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f, disturb := prepare(t, seed)
			if faults := f.run(seed, 3*time.Second, 12, disturb); len(faults) > 0 {
				t.Errorf("%q", faults)
			}
		})
	}
}

// happensOnce returns a disturbance that happens at the first call alone.
func happensOnce(happen func()) func(*rand.Rand) {
	var o sync.Once
	return func(*rand.Rand) { o.Do(happen) }
}

// threeServers returns the stores of three servers on one database, each behind a proxy.
func threeServers(t *testing.T, dsn string, options postgres.Options) (stores []Store, proxies []*pgtest.Proxy) {
	options.Create, options.Name = true, "sello"
	for range 3 {
		p := pgtest.NewProxy(t, dsn, nil)
		stores, proxies = append(stores, openPostgresWith(t, p.DSN(), options)), append(proxies, p)
	}
	return stores, proxies
}

// threeAt returns the stores of three servers on one database.
func threeAt(t *testing.T, dsn string) (stores []Store) {
	for range 3 {
		stores = append(stores, openTestPostgres(t, dsn))
	}
	return stores
}

// until waits until something is so, while clients work.
func (f *faultyFloor) until(what string, is func() bool) {
	f.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Errorf("not within 30 s: %s", what)
			return
		}
	}
}

// adds waits until so many more were answered.
func (f *faultyFloor) adds(n int64) {
	f.Helper()
	from := f.answered.Load()
	f.until("adds are answered", func() bool { return f.answered.Load() >= from+n })
}

// refusals waits until so many more adds were answered with 503.
func (f *faultyFloor) refusals(n int64) {
	f.Helper()
	from := f.unavailable.Load()
	f.until("adds are refused", func() bool { return f.unavailable.Load() >= from+n })
}

// read reads a balance from a server and returns the status.
func (f *faultyFloor) read(server int) int {
	code, _ := f.send(server, f.keyOf(0), "GET", "/points/customers/"+f.people[0]+"/balance", "", "")
	return code
}

// TestPostgresFailover kills the primary and promotes a synchronous standby. The servers find it by
// themselves. No add is lost, and none is done twice.
func TestPostgresFailover(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		primary := pgtest.Start(t)
		standby := primary.Standby(t, true)
		both, _, _ := strings.Cut(primary.DSN(standby), "&") // what to look for among them, sello knows
		f := newFloorOf(t, primary, threeAt(t, both))
		return f, happensOnce(func() {
			primary.Stop(pgtest.Immediate)
			standby.Promote()
			f.adds(50)
		})
	})
}

// TestPostgresFailoverControl: a standby is promoted that lacks what was acknowledged, and the same
// audit notices.
func TestPostgresFailoverControl(t *testing.T) {
	const seed = 1
	primary := pgtest.Start(t)
	standby := primary.Standby(t, false)
	f := newFloorOf(t, primary, threeAt(t, primary.DSN(standby)))
	faults := f.run(seed, 3*time.Second, 12, happensOnce(func() {
		standby.Detach()
		f.adds(100)
		primary.Stop(pgtest.Immediate)
		standby.Promote()
		f.adds(50)
	}))
	t.Logf("%q", faults)
	if len(faults) == 0 {
		t.Error("adds that a failover took back were not noticed")
	}
	gone := uint64(0)
	for _, s := range f.stores {
		gone += s.(wholeStore).figures().gone
	}
	if gone == 0 {
		t.Error("no server has said that commits are gone")
	}
}

// A smallDisk is a folder whose file system has little room.
type smallDisk struct {
	*testing.T
	dir string
}

func newSmallDisk(t *testing.T, size string) *smallDisk {
	dir, err := os.MkdirTemp("", "sellodisk") // the database's user may not enter those of t
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be mounted here, root can do so on Linux: %v %s", err, said)
	}
	d := &smallDisk{t, dir}
	t.Cleanup(func() { d.command("umount", dir) })
	return d
}

func (d *smallDisk) command(name string, args ...string) {
	d.Helper()
	if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.Errorf("%s: %v %s", name, err, said)
	}
}

func (d *smallDisk) filler() string { return filepath.Join(d.dir, "filler") }

// fill takes all the room that is left.
func (d *smallDisk) fill() {
	f, err := os.Create(d.filler())
	if err != nil {
		d.Error(err)
		return
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10} {
		for piece := make([]byte, size); err == nil; {
			_, err = f.Write(piece)
		}
		err = nil
	}
}

// free gives it back.
func (d *smallDisk) free() {
	if err := os.Remove(d.filler()); err != nil {
		d.Error(err)
	}
}

// TestPostgresFullDisk: while there is no room for the tables, adds are refused and balances are
// read. Once there is, the servers go on by themselves.
func TestPostgresFullDisk(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		disk := newSmallDisk(t, "64m")
		cluster := pgtest.Start(t)
		disk.command("chown", "--reference="+cluster.Query("SHOW data_directory"), disk.dir)
		cluster.Exec("CREATE TABLESPACE small LOCATION '" + disk.dir + "'")
		cluster.Set("default_tablespace = 'small'")
		f := newFloorOf(t, cluster, threeAt(t, cluster.DSN()))
		return f, happensOnce(func() {
			disk.fill()
			f.refusals(50)
			for server := range 3 {
				if code := f.read(server); code != 200 {
					f.Errorf("a balance is %d while the disk is full", code)
				}
			}
			before := cluster.Query("SELECT max(n) FROM sello_log")
			f.refusals(50)
			if after := cluster.Query("SELECT max(n) FROM sello_log"); after != before {
				f.Errorf("commit %s follows %s on a full disk", after, before)
			}
			disk.free()
			f.adds(50)
		})
	})
}

// TestPostgresFullLog: where there is no room for the write-ahead log, PostgreSQL ends, and does not
// start either. Once there is room, and it was started, the servers go on by themselves.
func TestPostgresFullLog(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		disk := newSmallDisk(t, "96m")
		cluster := pgtest.Start(t, "max_wal_size=32MB", "min_wal_size=32MB")
		data := cluster.Query("SHOW data_directory")
		cluster.Stop(pgtest.Fast)
		wal := filepath.Join(data, "pg_wal")
		disk.command("mv", wal, disk.dir)
		if err := os.Symlink(filepath.Join(disk.dir, "pg_wal"), wal); err != nil {
			t.Fatal(err)
		}
		cluster.Startup()
		f := newFloorOf(t, cluster, threeAt(t, cluster.DSN()))
		return f, happensOnce(func() {
			disk.fill()
			f.until("the database crashes", func() bool {
				_, err := cluster.Ask("SELECT pg_switch_wal()")
				return err != nil
			})
			f.refusals(1)
			disk.free()
			f.until("the database runs", func() bool {
				if _, err := os.Stat(filepath.Join(data, "postmaster.pid")); errors.Is(err, fs.ErrNotExist) {
					cluster.Startup()
				}
				_, err := cluster.Ask("SELECT 1")
				return err == nil
			})
			f.adds(50)
		})
	})
}

// eat takes connections, each until it is asked for a password, as fast as it can. It gives them
// back when stop is closed.
func eat(port int, stop <-chan bool) {
	hello := []byte("\x00\x00\x00\x00\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00")
	binary.BigEndian.PutUint32(hello, uint32(len(hello)))
	for {
		select {
		case <-stop:
			return
		default:
		}
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		var answer [1]byte
		conn.Write(hello)
		if conn.Read(answer[:]); answer[0] == 'R' {
			defer conn.Close()
			continue
		}
		conn.Close() // too many clients
		time.Sleep(time.Millisecond)
	}
}

// TestPostgresTooManyConnections: others have taken all connections that the database lets have.
func TestPostgresTooManyConnections(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		cluster := pgtest.Start(t, "max_connections=30", "superuser_reserved_connections=0")
		stores, proxies := threeServers(t, cluster.DSN(), postgres.Options{})
		f := newFloorOf(t, cluster, stores)
		return f, happensOnce(func() {
			stop := make(chan bool)
			var eaters sync.WaitGroup
			for range 4 {
				eaters.Go(func() { eat(cluster.Port(), stop) })
			}
			for range 10 {
				for _, p := range proxies {
					p.Cut()
				}
				time.Sleep(50 * time.Millisecond)
			}
			f.refusals(50)
			close(stop)
			eaters.Wait()
			f.adds(50)
		})
	})
}

// TestPostgresPooler disturbs three servers behind PgBouncer: their connections to it are cut
// around COMMITs, and its own are ended.
func TestPostgresPooler(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		cluster := pgtest.Start(t)
		f := newFloorOf(t, cluster, faultyStores(t, seed, pgtest.PgBouncer(t, cluster)))
		return f, func(*rand.Rand) { cluster.Terminate("true") }
	})
}

// TestPostgresBlackHole cuts one server after another off without a word. The others go on, and the
// one that is cut off says in time that it cannot answer.
func TestPostgresBlackHole(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		cluster := pgtest.Start(t)
		stores, proxies := threeServers(t, cluster.DSN(), postgres.Options{Trip: 500 * time.Millisecond, Patience: time.Second})
		f := newFloorOf(t, cluster, stores)
		return f, func(rnd *rand.Rand) {
			server := rnd.IntN(3)
			proxies[server].Freeze()
			began := time.Now()
			if code := f.read(server); code != 503 {
				f.Errorf("a server that is cut off answers %d", code)
			}
			if took := time.Since(began); took > 4*time.Second {
				f.Errorf("a server that is cut off says so after %v", took)
			}
			f.adds(10)
			proxies[server].Thaw()
			f.until("the server answers again", func() bool { return f.read(server) == 200 })
		}
	})
}

// TestPostgresDelay puts 50 ms between the servers and the database.
func TestPostgresDelay(t *testing.T) {
	audited(t, func(t *testing.T, seed uint64) (*faultyFloor, func(*rand.Rand)) {
		cluster := pgtest.Start(t)
		stores, proxies := threeServers(t, cluster.DSN(), postgres.Options{})
		f := newFloorOf(t, cluster, stores)
		delay := func(d time.Duration) {
			for _, p := range proxies {
				p.Latency(d)
			}
		}
		return f, func(*rand.Rand) {
			delay(50 * time.Millisecond)
			f.adds(20)
			delay(0)
		}
	})
}

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
