package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options of Open.
type Options struct {
	Conns    int           // most connections; 0 means 8, and 5 is the least. Some are kept for commits
	Fewer    Fewer         // told that the database gives fewer; nil: nobody is
	Values   int           // bytes of values that are kept; 0 means 16 MiB
	Parts    Partition     // nil means that all keys are of the common part
	Create   bool          // make the tables if there are none
	Standby  bool          // only read, also from a server that takes no writes, or as who may not write: a commit is an ErrReadOnly there
	Name     string        // application_name, if the connection string has none
	Patience time.Duration // how long to try while the database does not answer; 0 means 5 s
	Trip     time.Duration // how long one message and its answer may take; 0 means 10 s
}

// A Partition tells which part of the log the commits of a key belong to.
type Partition interface {
	// PartOf returns the part of a key.
	PartOf(key []byte) int32

	// PartOfRange returns the part of all keys with lo <= key < hi; ok is false if they may have
	// several. An empty hi means no upper end.
	PartOfRange(lo, hi []byte) (part int32, ok bool)
}

// undivided is a Partition with one part.
type undivided struct{}

func (undivided) PartOf([]byte) int32                   { return Common }
func (undivided) PartOfRange(_, _ []byte) (int32, bool) { return Common, true }

// Common is the part that Settings are told in. It has been there from the beginning.
const Common = 0

// A DB is a database that entries are kept in.
type DB struct {
	config   *pgconn.Config
	options  Options
	parts    Partition
	trip     time.Duration
	patience time.Duration // 0 while it is opened: who starts sello wants to know at once

	checked    atomic.Bool // the tables are there
	pooled     atomic.Bool // a pooler refuses settings of the session
	unprepared atomic.Bool // a pooler refuses prepared statements

	conns            conns
	readers, writers pool     // who uses them
	me               [16]byte // holder of leases
	chain            chain
	checks           headChecks
	closed           atomic.Bool
	trips            atomic.Uint64
}

// Open connects to the database that a connection string names, and checks that it is one of
// sello's.
func Open(ctx context.Context, dsn string, options Options) (*DB, error) {
	config, err := pgconn.ParseConfig(dsn)
	if file, is := errors.AsType[*fs.PathError](err); is { // of a certificate, say
		return nil, fmt.Errorf("%w: %w", ErrDSN, file)
	}
	if err != nil {
		return nil, ErrDSN // its text may have the password
	}
	trip := cmp.Or(options.Trip, tripTime)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = min(dialTime, trip)
	}
	if slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host || f.Port != config.Port }) &&
		config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if _, ok := config.RuntimeParams["application_name"]; !ok {
		config.RuntimeParams["application_name"] = options.Name
	}
	db := &DB{config: config, options: options, trip: trip}
	db.conns.init(db, max(cmp.Or(options.Conns, 8), connsForCommits+1))
	db.readers, db.writers = pool{&db.conns, true}, pool{&db.conns, false}
	rand.Read(db.me[:])
	if db.parts = options.Parts; db.parts == nil {
		db.parts = undivided{}
	}
	db.chain.init(cmp.Or(options.Values, 16<<20))
	if err := db.prepareTables(ctx); err != nil {
		db.Close()
		return nil, err
	}
	db.checked.Store(true)
	err = db.over(ctx, &db.writers, db.greet) // which has prepared nothing yet
	if err == nil && options.Create {
		err = db.conns.keepForCommits(ctx)
	}
	if err != nil {
		db.Close()
		return nil, openError(err)
	}
	db.patience = cmp.Or(options.Patience, 5*time.Second)
	return db, nil
}

// Close closes all connections. Snapshots must have ended.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return ErrClosed
	}
	db.conns.close()
	return nil
}

// pause waits before the nth try of something: some milliseconds, and up to 200 after many.
func pause(n int) {
	most := min(time.Duration(n+1)*20*time.Millisecond, 200*time.Millisecond)
	time.Sleep(time.Millisecond + mathrand.N(most))
}

// over takes connections until use succeeds over one, or fails for a reason that another try would
// not change, or the patience is over. use must be such that it can be done again.
func (db *DB) over(ctx context.Context, p *pool, use func(*conn) error) error {
	return db.with(ctx, p, func(c *conn) (bool, error) { return false, use(c) })
}

// with is over for a use that may keep its connection, which it gives back later.
func (db *DB) with(ctx context.Context, p *pool, use func(*conn) (keep bool, err error)) error {
	began := time.Now()
	for n := 0; ; n++ {
		c, err := p.take(ctx)
		if err == nil {
			var keep bool
			if keep, err = use(c); !keep {
				p.give(c, err)
			}
		} else if errors.Is(err, errFull) || ctx.Err() != nil {
			return err
		}
		switch outcomeOf(err) {
		case stored:
			return nil
		case unprepared:
			db.unprepared.Store(true)
		case redial, elsewhere, again:
			if db.onlyReads(err) {
				return fmt.Errorf("%w: %w", ErrReadOnly, err)
			}
			db.free(err)
			if time.Since(began) > db.patience {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			pause(n)
		case refused:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		default:
			return usedError(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// onlyReads reports whether err says that the server takes no writes, to who does not ask for another one.
func (db *DB) onlyReads(err error) bool { return db.options.Standby && outcomeOf(err) == elsewhere }

// free is for an err which says that something was locked for long. It ends the sessions that have
// locked a row of the log, or all of it, or a lease, and have waited for 5 seconds for the rest of
// their message: their server has stopped, or something on the way has lost the rest and keeps the
// connection. Else they would hold up everybody for ever. PostgreSQL's own limits begin where a
// message ends.
func (db *DB) free(err error) {
	if sqlState(err) != "55P03" {
		return
	}
	if c, err := db.writers.take(context.Background()); err == nil {
		db.writers.give(c, c.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name <> '`+holding+`'
	AND wait_event = 'ClientRead' AND state_change < now() - interval '5s'
	AND pid IN (SELECT pid FROM pg_locks WHERE (mode = 'RowExclusiveLock' AND backend_xid IS NOT NULL OR mode = 'ShareRowExclusiveLock') AND granted
		AND relation IN ('sello_log'::regclass, 'sello_lease'::regclass) OR locktype = 'advisory' AND classid = 'sello_log'::regclass AND granted)`))
	}
}

// holding is the application_name of a session that may hold the turn for as long as it likes.
const holding = "sello holds the turn"

// write carries out statements in a transaction, and returns the rows of each. Like a commit it
// does not wait for others for long. It must be such that it can be done again.
func (db *DB) write(ctx context.Context, add func(*trip)) (rows [][]row, err error) {
	err = db.over(ctx, &db.writers, func(c *conn) error {
		t := c.trip().add(sqlBegin).add(sqlPatience)
		add(t)
		results, err := t.add(sqlCommit).run()
		if err != nil {
			c.rollback()
			return err
		}
		if c.warned {
			return fmt.Errorf("%w: %w", ErrUnavailable, errCanceled)
		}
		rows = results[2 : len(results)-1]
		return nil
	})
	return rows, err
}

// errCanceled says that a commit was stored here, but that the wait for a standby was canceled.
var errCanceled = errors.New("the wait for a standby was canceled")

// TakeLease takes a lease or makes it last for another 10 seconds. It returns false if somebody
// else has it.
func (db *DB) TakeLease(ctx context.Context, name string) (mine bool, err error) {
	rows, err := db.write(ctx, func(t *trip) { t.add(sqlTakeLease, []byte(name), db.me[:]) })
	return err == nil && len(rows[0]) == 1, err
}

// Leased reports whether somebody has a lease whose name begins with a prefix.
func (db *DB) Leased(ctx context.Context, prefix string) (leased bool, err error) {
	err = db.over(ctx, &db.readers, func(c *conn) error {
		rows, err := c.trip().add(sqlLeased, []byte(prefix)).run()
		leased = err == nil && len(rows[0]) == 1
		return err
	})
	return leased, err
}

// DropLease gives a lease back.
func (db *DB) DropLease(ctx context.Context, name string) error {
	_, err := db.write(ctx, func(t *trip) { t.add(sqlDropLease, []byte(name), db.me[:]) })
	return err
}

// partsOf returns the part of a range of keys; nil if it may have several.
func (db *DB) partsOf(lo, hi []byte) []int32 {
	if n, one := db.parts.PartOfRange(lo, hi); one {
		return []int32{n}
	}
	return nil
}
