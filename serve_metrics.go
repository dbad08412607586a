package main

import (
	"context"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sello/internal/cert"
	"sello/internal/disk"
	"sello/internal/gate"
	"sello/internal/host"
	"sello/internal/metrics"
	"sello/internal/wallclock"
)

// What -metrics serves: figures for Prometheus, on a listener of their own. They hold no
// key, id or name of anybody, and whoever reaches the listener may read them. What runs
// beside the API registers its figures in a method of meter.

type meter struct {
	*metrics.Registry
	commits *metrics.Histogram
}

const metricsPath = "/metrics"

// scrapePatience is how long the figures wait for a read of the store.
const scrapePatience = time.Second

// commitBounds are the buckets for commits and the waits for them: a flush takes 0.1 ms on a good
// disk, and seconds on a bad one.
var commitBounds = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// newMeter returns a meter with what is known before the file is open.
func newMeter() *meter {
	m := &meter{Registry: new(metrics.Registry)}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	b := newBuildInfo(info)
	one := func() float64 { return 1 }
	m.Gauge("sello_build_info", "The binary, in labels.", one, "version", b.Version, "revision", b.Revision, "goversion", b.Go)
	m.Gauge("sello_schema_version", "Schema of the files that this binary writes.", func() float64 { return schemaVersion })
	m.commits = m.Histogram("sello_store_commit_duration_seconds",
		"Time to store a group of writes: in a file, waiting for room in the memtable, appending to the journal and flushing it.", commitBounds)
	return m
}

func (m *meter) ofRequests(a *api) {
	var patterns []string
	for _, r := range a.routes() {
		patterns = append(patterns, r.pattern)
	}
	a.counts = newRequestCounts(m.Registry, patterns)
}

// ofConnections registers the connections of the public API.
func (m *meter) ofConnections(g *gate.Gate) {
	m.Gauge("sello_connections_open", "Open connections of the API.", func() float64 {
		open, _ := g.Counts()
		return float64(open)
	})
	m.Gauge("sello_connections_max", "Connections that may be open: -max-conns, or what the limit of open files leaves.",
		func() float64 { return float64(g.Most) })
	m.CounterFunc("sello_connections_refused_total", "Connections refused, since too many were open in all or from one source.", func() float64 {
		_, refused := g.Counts()
		return float64(refused)
	})
}

// ofStore registers the write queue, and whether the store takes writes. No update may be
// under way.
func (m *meter) ofStore(s openedStore, e *engine) {
	queue := s.writes()
	m.Gauge("sello_write_queue_depth", "Writes that wait for the writer.", func() float64 { return float64(len(queue.waiting)) })
	m.Gauge("sello_write_queue_max", "Writes that may wait; the next one is answered with 503.", func() float64 { return float64(cap(queue.waiting)) })
	queue.waits = m.Histogram("sello_write_queue_wait_seconds", "Time that a write waits for the writer. The commit follows.", commitBounds)
	m.Gauge("sello_store_writes_refused", "1 while the store takes no writes, for want of space or after a failure; else 0.",
		func() float64 { return zeroOne(e.store.refusing.Load()) })
	m.Gauge("sello_store_failed", "1 once it is not known any more what is on disk, and the server ends; else 0.",
		func() float64 { return zeroOne(queue.broken.Load()) })
}

// ofFile registers the files and the disk.
func (m *meter) ofFile(s *boltStore, space *host.Space) {
	var now disk.Stats
	m.Before(func() { now = s.file.Stats() })
	m.Gauge("sello_store_file_bytes", "Length of the files of the store.", func() float64 { return float64(now.FileBytes) }, "file", "data")
	m.Gauge("sello_store_file_bytes", "Length of the files of the store.", func() float64 { return float64(now.JournalFileBytes) }, "file", "journal")
	m.Gauge("sello_store_journal_bytes", "Writes in the journal that are not in the data file yet; a start after a crash replays them.",
		func() float64 { return float64(now.JournalBytes) })
	m.Gauge("sello_store_memtable_bytes", "Memory of the writes that are not in the data file yet.",
		func() float64 { return float64(now.MemtableBytes) })
	m.Gauge("sello_store_checkpoint_lag_seconds", "Age of the oldest write that is not in the data file yet; 0 if there is none.", func() float64 {
		if now.Oldest.IsZero() {
			return 0
		}
		return time.Since(now.Oldest).Seconds()
	})
	m.CounterFunc("sello_store_checkpoints_total", "Checkpoints completed.", func() float64 { return float64(now.Checkpoints) })
	told := func(bytes *atomic.Uint64) func() float64 {
		return func() float64 {
			if space.All.Load() == 0 {
				return math.NaN()
			}
			return float64(bytes.Load())
		}
	}
	m.Gauge("sello_disk_free_bytes", "Space left for this user on the disk of the data file.", told(&space.Free))
	m.Gauge("sello_disk_size_bytes", "Size of the disk of the data file.", told(&space.All))
}

func (m *meter) ofDatabase(s wholeStore) {
	var now databaseFigures
	m.Before(func() { now = s.figures() })
	const help = "Groups of writes that were to be stored in the database. One is lost, and runs again, if another server has written since it began."
	m.CounterFunc("sello_database_turns_total", help, func() float64 { return float64(now.won) }, "result", "won")
	m.CounterFunc("sello_database_turns_total", help, func() float64 { return float64(now.lost) }, "result", "lost")
	m.CounterFunc("sello_database_reruns_total", "Writes that ran again because their group was lost.", func() float64 { return float64(s.writes().reruns.Load()) })
	m.CounterFunc("sello_database_trips_total", "Messages to the database, each with its answer.", func() float64 { return float64(now.trips) })
	m.CounterFunc("sello_database_commits_gone_total", "How often the database had lost commits that this server knew of.", func() float64 { return float64(now.gone) })
	m.Gauge("sello_database_head_age_seconds", "How long ago it was last known what all servers have written.", func() float64 { return time.Since(now.current).Seconds() })
	m.Gauge("sello_database_clock_ahead_seconds", "By how much, at the least, the database's clock is ahead of this machine's. Negative: behind.", func() float64 { return now.ahead.Seconds() })
	m.Gauge("sello_database_connections_used", "Connections to the database in use.", func() float64 { return float64(now.conns) })
	m.Gauge("sello_database_connections_room", "Connections that the database lets this server have, as far as is known: fewer than the most if it has refused some.", func() float64 { return float64(now.connsRoom) })
	m.Gauge("sello_database_connections_max", "Connections to the database that there may be at most: -pg-conns.", func() float64 { return float64(now.connsMax) })
}

// ofTime registers the clock, and how late the sweep is.
func (m *meter) ofTime(e *engine) {
	for _, verdict := range []wallclock.Verdict{wallclock.Safe, wallclock.Behind, wallclock.Ahead} {
		m.Gauge("sello_clock_state", "1 for what the machine's clock was found to be, 0 for the others. Clients write only while it is safe.", func() float64 {
			_, s := e.clock.Read()
			return zeroOne(s.Verdict == verdict)
		}, "state", strings.ToLower(string(verdict)))
	}
	m.Gauge("sello_sweep_lag_seconds", "How long ago the account was due that has waited longest for the sweep; 0 if none is due.", (&sweepLag{engine: e}).value)
}

// ofCertificate registers the end of the certificate that is served.
func (m *meter) ofCertificate(c *cert.Pair) {
	m.Gauge("sello_tls_certificate_expiry_timestamp_seconds", "When the certificate of -tls-cert ends, in seconds since 1970.",
		func() float64 { return float64(c.Look(time.Now()).Leaf.NotAfter.Unix()) })
}

// ofBackups registers the backups of -backup-every and the command of -backup-after, if
// there are any.
func (m *meter) ofBackups(p *backupPlan, state *backupState) {
	m.Gauge("sello_backup_scheduled", "1 if -backup-every makes backups; else 0.", func() float64 { return zeroOne(p.every > 0) })
	if p.every == 0 {
		return
	}
	var now backupFigures
	m.Before(func() { now = state.figures() })
	seconds := func(at *time.Time) func() float64 {
		return func() float64 {
			if at.IsZero() {
				return 0
			}
			return float64(at.Unix())
		}
	}
	m.Gauge("sello_backup_last_success_timestamp_seconds", "When the newest backup in -backup-dir was made, in seconds since 1970; 0 if there is none.",
		seconds(&now.Last))
	m.CounterFunc("sello_backup_failures_total", "Backups that failed.", func() float64 { return float64(now.Failures) })
	m.Gauge("sello_backup_interval_seconds", "Time between backups: -backup-every.", func() float64 { return p.every.Seconds() })
	if p.afterBackup == nil {
		return
	}
	m.Gauge("sello_backup_command_last_success_timestamp_seconds", "When the command of -backup-after last succeeded, in seconds since 1970; 0 if it has not yet.",
		seconds(&now.Sent))
	m.CounterFunc("sello_backup_command_failures_total", "Runs of the command of -backup-after that failed.", func() float64 { return float64(now.Unsent) })
}

func (m *meter) ofWebhooks(d *deliverer) {
	m.Gauge("sello_webhook_lag_seconds", "Age of the oldest event that a webhook has not got, paused ones aside; 0 if there is none.", func() float64 {
		_, lag := d.lateness()
		return lag.Seconds()
	})
	m.Gauge("sello_webhooks_paused", "Webhooks that were given up and wait for sello webhook resume.", func() float64 {
		paused, _ := d.lateness()
		return float64(paused)
	})
	const help = "Attempts to deliver an event to a webhook."
	m.CounterFunc("sello_webhook_deliveries_total", help, func() float64 { return float64(d.delivered.Load()) }, "result", "taken")
	m.CounterFunc("sello_webhook_deliveries_total", help, func() float64 { return float64(d.refused.Load()) }, "result", "refused")
}

func zeroOne(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// A sweepLag reads from the store, which may hang: then it is not known, and nobody reads
// again until that read has ended.
type sweepLag struct {
	engine  *engine
	reading atomic.Bool
}

func (l *sweepLag) value() float64 {
	if !l.reading.CompareAndSwap(false, true) {
		return math.NaN()
	}
	found := make(chan float64, 1)
	go func() { // a disk that hangs ignores a context
		defer l.reading.Store(false)
		now := instantOf(l.engine.now())
		since, due, err := l.engine.dueSince(context.Background(), now)
		switch {
		case err != nil:
			found <- math.NaN()
		case due:
			found <- max(now.sub(since), 0).Seconds()
		default:
			found <- 0
		}
	}()
	select {
	case seconds := <-found:
		return seconds
	case <-time.After(scrapePatience):
		return math.NaN()
	}
}

// ServeHTTP answers on metricsPath alone.
func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != metricsPath {
		http.Error(w, metricsPath+" is here, and nothing else", http.StatusNotFound)
		return
	}
	m.Registry.ServeHTTP(w, r)
}

// metricsAddress returns the address of -metrics to listen at. One without a host is the
// loopback's: a wider one has to be asked for.
func metricsAddress(text string) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return "", usageErrorf("-metrics debe tener la forma 127.0.0.1:9464, :9464 o 9464: %q", text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
