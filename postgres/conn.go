package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How long things may take before their connection is given up.
const (
	dialTime = 5 * time.Second  // connecting, for each address
	tripTime = 10 * time.Second // one message and its answer, unless Options say so
)

// errSilent says that the database did not answer in time.
var errSilent = errors.New("postgres: no answer in time")

// A conn is one connection. It is used by one goroutine at a time.
type conn struct {
	db       *DB
	pg       *pgconn.PgConn
	prepared bool      // it has the prepared statements that only read
	commits  bool      // it has those that write to the log, too
	epoch    uint64    // of the connections, when it was made
	reads    bool      // a reader has it
	since    time.Time // it was given back
	warned   bool      // the database has warned since the last trip began
	over     bool      // it is in a transaction that only read and is of no use any more: the next trip ends it
}

// hints are settings that only make a session better. A pooler refuses them: its connections are
// others' too.
var hints = map[string]string{
	// Each statement finds what it wants by the primary key, whatever its parameters are: a plan is
	// made once. While a table is new, PostgreSQL takes it for tiny, and would keep to a plan that
	// reads all of it.
	"enable_seqscan":  "off",
	"plan_cache_mode": "force_generic_plan",
	"jit":             "off",

	// Of a dead server, what it has locked is freed soon.
	"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3",
	"tcp_user_timeout": "10000",
}

// dial opens a connection. It fails with an error of openError.
func (db *DB) dial(ctx context.Context) (*conn, error) {
	if db.pooled.Load() {
		return db.dialWith(ctx, nil)
	}
	c, err := db.dialWith(ctx, hints)
	if isFull(err) {
		return nil, err
	}
	switch sqlState(err) {
	case "08P01", "22023", "42704": // unknown or forbidden parameters
		if c, err = db.dialWith(ctx, nil); err == nil {
			db.pooled.Store(true)
		}
	}
	return c, err
}

func (db *DB) dialWith(ctx context.Context, params map[string]string) (*conn, error) {
	config := db.config.Copy()
	for name, value := range params {
		if _, chosen := config.RuntimeParams[name]; !chosen {
			config.RuntimeParams[name] = value
		}
	}
	c := &conn{db: db}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "01000" {
			c.warned = true
		}
	}
	// pgconn cancels what runs over a connection that it gives up. A COMMIT that waits for a standby
	// would end by that as if it were done.
	var connected atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errors.ErrUnsupported
		}
		return dial(ctx, network, address)
	}
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", errSilent, err)
		}
		return nil, openError(err)
	}
	connected.Store(true)
	c.pg = pg
	if err := db.greet(c); err != nil {
		c.close()
		return nil, openError(err)
	}
	return c, nil
}

// greet checks the server behind a new connection, and prepares the statements that only read.
func (db *DB) greet(c *conn) error {
	version := c.pg.ParameterStatus("server_version") // as 15.18 (Debian …), or 17devel
	major := 0
	for _, digit := range version {
		if digit < '0' || digit > '9' {
			break
		}
		major = 10*major + int(digit-'0')
	}
	if major < 15 {
		return fmt.Errorf("%w: %s", ErrOld, version)
	}
	if c.prepared || db.unprepared.Load() || !db.checked.Load() {
		return nil
	}
	err := c.prepare(false)
	if err == nil {
		c.prepared = true
	} else if outcomeOf(err) == unprepared {
		db.unprepared.Store(true)
		return nil
	}
	return err
}

// prepare prepares the statements that write to the log, or all others. Who has locked the log keeps
// others from preparing the former, so that those who only read must do without.
func (c *conn) prepare(ofLog bool) error {
	if c.over {
		if _, err := c.trip().run(); err != nil {
			return err
		}
	}
	c.startTrip(c.db.trip)
	alone := ofLog && c.pg.TxStatus() == 'I' // else the transaction that it is for has its own patience
	p := c.pg.StartPipeline(context.Background())
	if alone {
		p.SendQueryParams(sqlBegin.text, nil, nil, nil, nil)
		p.SendQueryParams(sqlPatience.text, nil, nil, nil, nil)
	}
	for _, s := range statements {
		if s.ofLog == ofLog {
			p.SendPrepare(s.name, s.text, s.params)
		}
	}
	if alone {
		p.SendQueryParams(sqlRollback.text, nil, nil, nil, nil) // they stay
	}
	err := p.Sync()
	for err == nil {
		var result any
		if result, err = p.GetResults(); err == nil {
			switch result := result.(type) {
			case *pgconn.PipelineSync:
				return p.Close()
			case *pgconn.ResultReader:
				_, err = result.Close()
			}
		}
	}
	err = errors.Join(err, p.Close())
	if alone {
		c.rollback()
	}
	return err
}

// An unsent is an error of before a message was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// close ends the connection at once.
func (c *conn) close() {
	c.pg.Conn().SetDeadline(time.Now())
	ended, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	c.pg.Close(ended)
}

// idle reports whether the connection can serve somebody else: it is open, and in no transaction but
// one that is over.
func (c *conn) idle() bool {
	return !c.pg.IsClosed() && (c.pg.TxStatus() == 'I' || c.over && c.pg.TxStatus() == 'T')
}

// A trip is statements that are sent in one message, and answered together. An error ends it:
// what follows is not carried out.
type trip struct {
	conn  *conn
	batch pgconn.Batch
	ofLog bool // it has prepared statements that write to the log
	ends  bool // its first statement ends what is over
}

func (c *conn) trip() *trip {
	t := &trip{conn: c}
	if c.over {
		t.ends = true
		t.add(sqlRollback)
	}
	return t
}

var inBinary = []int16{1} // all parameters, and all results, are in binary format

func (t *trip) add(s *statement, params ...[]byte) *trip {
	if t.conn.prepared && !t.conn.db.unprepared.Load() {
		t.batch.ExecPrepared(s.name, params, inBinary, inBinary)
		t.ofLog = t.ofLog || s.ofLog
	} else {
		t.batch.ExecParams(s.text, params, s.params, inBinary, inBinary)
	}
	return t
}

// A row is the columns of a row; nil is null.
type row = [][]byte

// run makes the trip and returns the rows of each statement. They stay valid.
func (t *trip) run() ([][]row, error) { return t.runFor(t.conn.db.trip) }

func (t *trip) runFor(limit time.Duration) ([][]row, error) {
	c := t.conn
	if t.ofLog && !c.commits {
		if err := c.prepare(true); err != nil {
			return nil, unsent{err}
		}
		c.commits = true
	}
	c.db.trips.Add(1)
	c.startTrip(limit)
	var list [][]row
	results := c.pg.ExecBatch(context.Background(), &t.batch)
	for results.NextResult() {
		reader := results.ResultReader()
		var rows []row
		for reader.NextRow() {
			rows = append(rows, copyRow(reader.Values()))
		}
		if _, err := reader.Close(); err != nil {
			break // Close of all returns it too
		}
		list = append(list, rows)
	}
	if t.ends && len(list) > 0 {
		c.over, list = false, list[1:]
	}
	return list, results.Close()
}

// startTrip gives the next message and its answer so much time.
func (c *conn) startTrip(limit time.Duration) {
	c.warned = false
	c.pg.Conn().SetDeadline(time.Now().Add(limit))
}

// rollback ends a transaction that has failed, if the connection is still of use.
func (c *conn) rollback() {
	if !c.pg.IsClosed() && c.pg.TxStatus() != 'I' {
		c.trip().add(sqlRollback).run()
	}
}

// copyRow copies the columns of a row, with one allocation for all of them.
func copyRow(values [][]byte) row {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	kept, r := make([]byte, 0, size), make(row, len(values))
	for i, v := range values {
		if v != nil {
			from := len(kept)
			kept = append(kept, v...)
			r[i] = kept[from:len(kept):len(kept)]
		}
	}
	return r
}
