//go:build postgres

package main

import (
	"encoding/binary"
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
