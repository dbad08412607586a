// Peer is what sello is measured against on PostgreSQL (go run ./bench -postgres): a server for
// points with net/http and pgx as a good engineer writes it for this one job, with a row for each
// account and one transaction for each request. It leaves out what sello does besides: tiers,
// expiry, limits, the log of requests.
//
// It reads a setup from standard input, makes and fills its tables in the database that PEER_DSN
// names, prints its address, and serves until standard input ends.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	conns := flag.Int("conns", 16, "connections to the database")
	form := flag.String("form", inBatch, "how a transaction is sent: `trips`, one statement after another; batch, its statements at once; statement, as one statement")
	flag.Parse()
	if err := run(*conns, *form); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// The forms of a transaction.
const (
	inTrips     = "trips"
	inBatch     = "batch"
	inStatement = "statement"
)

// A setup is the data that the peer starts with. Where there are no customers, it is there already.
type setup struct {
	Key       string   `json:"key"`
	Customers []string `json:"customers"` // their ids
}

const tables = `
CREATE TABLE api_key (hash bytea PRIMARY KEY, organization uuid NOT NULL, revoked_at timestamptz);
CREATE TABLE account (
	organization uuid NOT NULL, customer uuid NOT NULL, balance bigint NOT NULL DEFAULT 0, lifetime bigint NOT NULL DEFAULT 0,
	updated_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (organization, customer)
) WITH (fillfactor = 70);
CREATE TABLE ledger (
	id uuid PRIMARY KEY, organization uuid NOT NULL, customer uuid NOT NULL, amount bigint NOT NULL, balance bigint NOT NULL,
	category text NOT NULL, comment text NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ledger_of_customer ON ledger (organization, customer, id);
CREATE TABLE idempotency (
	organization uuid NOT NULL, key text NOT NULL, request bytea NOT NULL, movement uuid NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (organization, key)
);
CREATE TABLE event (
	seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, organization uuid NOT NULL, kind text NOT NULL, movement uuid NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
);`

func run(conns int, form string) error {
	if form != inTrips && form != inBatch && form != inStatement {
		return fmt.Errorf("what is -form %q?", form)
	}
	ctx := context.Background()
	in := json.NewDecoder(os.Stdin)
	var made setup
	if err := in.Decode(&made); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(os.Getenv("PEER_DSN"))
	if err != nil {
		return err
	}
	config.MinConns, config.MaxConns = int32(conns), int32(conns)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	if len(made.Customers) > 0 {
		if err := fill(ctx, pool, made); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &server{pool: pool, form: form, keys: map[[32]byte]knownKey{}}
	fmt.Println(listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return (&http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
	}).Serve(listener)
}

func fill(ctx context.Context, pool *pgxpool.Pool, made setup) error {
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	organization := newID()
	hash := sha256.Sum256([]byte(made.Key))
	if _, err := pool.Exec(ctx, `INSERT INTO api_key (hash, organization) VALUES ($1, $2)`, hash[:], organization); err != nil {
		return err
	}
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"account"}, []string{"organization", "customer"},
		pgx.CopyFromSlice(len(made.Customers), func(i int) ([]any, error) {
			customer, err := parseID(made.Customers[i])
			return []any{organization, customer}, err
		}))
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

type server struct {
	pool *pgxpool.Pool
	form string

	mu   sync.Mutex
	keys map[[32]byte]knownKey
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/points/customers/{id}/balance", s.balance)
	mux.HandleFunc("POST /api/v1/points/customers/{id}/add", s.add)
	return mux
}

// A knownKey is a key that was looked up not long ago.
type knownKey struct {
	organization id
	until        time.Time
}

const keyTime = 30 * time.Second

// A problem is an answer that is no success.
type problem struct {
	status int
	code   string
}

func (p *problem) Error() string { return p.code }

var (
	unauthorized = &problem{401, "unauthorized"}
	notFound     = &problem{404, "not_found"}
	invalid      = &problem{400, "invalid_request"}
	keyReused    = &problem{422, "idempotency_key_reused"}
)

// caller returns the organization that a request's key is of.
func (s *server) caller(r *http.Request) (id, error) {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return id{}, unauthorized
	}
	hash := sha256.Sum256([]byte(key))
	s.mu.Lock()
	known := s.keys[hash]
	s.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.organization, nil
	}
	known.until = time.Now().Add(keyTime)
	err := s.pool.QueryRow(r.Context(), `SELECT organization FROM api_key WHERE hash = $1 AND revoked_at IS NULL`, hash[:]).Scan(&known.organization)
	if errors.Is(err, pgx.ErrNoRows) {
		return id{}, unauthorized
	} else if err != nil {
		return id{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[hash] = known
	return known.organization, nil
}

// addressed returns whose customer a request is about.
func (s *server) addressed(r *http.Request) (organization, customer id, err error) {
	if organization, err = s.caller(r); err != nil {
		return organization, customer, err
	}
	if customer, err = parseID(r.PathValue("id")); err != nil {
		err = notFound
	}
	return organization, customer, err
}

type balance struct {
	CustomerID     string    `json:"customerId"`
	Balance        int64     `json:"balance"`
	LifetimePoints int64     `json:"lifetimePoints"`
	AsOf           time.Time `json:"asOf"`
}

func (s *server) balance(w http.ResponseWriter, r *http.Request) {
	organization, customer, err := s.addressed(r)
	if err != nil {
		refuse(w, err)
		return
	}
	b := balance{CustomerID: customer.String(), AsOf: time.Now().UTC()}
	err = s.pool.QueryRow(r.Context(), `SELECT balance, lifetime FROM account WHERE organization = $1 AND customer = $2`, organization, customer).
		Scan(&b.Balance, &b.LifetimePoints)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, b)
}

type addition struct {
	Amount   int64  `json:"amount"`
	Category string `json:"category"`
	Comment  string `json:"comment"`
}

type movement struct {
	ID         string    `json:"id"`
	CustomerID string    `json:"customerId"`
	Type       string    `json:"type"`
	Category   string    `json:"category"`
	Amount     int64     `json:"amount"`
	Comment    string    `json:"comment"`
	Balance    int64     `json:"balance"`
	CreatedAt  time.Time `json:"createdAt"`
}

func (s *server) add(w http.ResponseWriter, r *http.Request) {
	organization, customer, err := s.addressed(r)
	if err != nil {
		refuse(w, err)
		return
	}
	name := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var in addition
	if err != nil || json.Unmarshal(body, &in) != nil || in.Amount <= 0 || name == "" {
		refuse(w, invalid)
		return
	}
	request := sha256.Sum256(append([]byte(r.URL.Path+"\n"), body...))
	m := movement{ID: newID().String(), CustomerID: customer.String(), Type: "Credit", Category: in.Category, Amount: in.Amount, Comment: in.Comment}
	err = s.store(r.Context(), organization, customer, name, request[:], &m)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "23505" && refused.TableName == "idempotency" {
		err = s.repeated(r.Context(), organization, name, request[:], &m)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusCreated, m)
}

// A step is one statement, which returns one row.
type step struct {
	sql  string
	args []any
	into []any
}

// atOnce is what the steps of store do.
const atOnce = `WITH changed AS (
	UPDATE account SET balance = balance + $3, lifetime = lifetime + $3, updated_at = now() WHERE organization = $1 AND customer = $2 RETURNING balance),
named AS (
	INSERT INTO idempotency (organization, key, request, movement) SELECT $1, $7, $8, $4 FROM changed),
told AS (
	INSERT INTO event (organization, kind, movement) SELECT $1, 'points.added', $4 FROM changed)
INSERT INTO ledger (id, organization, customer, amount, balance, category, comment) SELECT $4, $1, $2, $3, balance, $5, $6 FROM changed RETURNING balance, created_at`

// store does an addition in one transaction.
func (s *server) store(ctx context.Context, organization, customer id, name string, request []byte, m *movement) error {
	movement, _ := parseID(m.ID)
	var made bool
	steps := []step{
		{`INSERT INTO idempotency (organization, key, request, movement) SELECT $1, $3, $4, $5 FROM account WHERE organization = $1 AND customer = $2 RETURNING true`,
			[]any{organization, customer, name, request, movement}, []any{&made}},
		{`WITH changed AS (
	UPDATE account SET balance = balance + $3, lifetime = lifetime + $3, updated_at = now() WHERE organization = $1 AND customer = $2 RETURNING balance)
INSERT INTO ledger (id, organization, customer, amount, balance, category, comment) SELECT $4, $1, $2, $3, balance, $5, $6 FROM changed RETURNING balance, created_at`,
			[]any{organization, customer, m.Amount, movement, m.Category, m.Comment}, []any{&m.Balance, &m.CreatedAt}},
		{`INSERT INTO event (organization, kind, movement) SELECT organization, 'points.added', id FROM ledger WHERE id = $1 RETURNING true`,
			[]any{movement}, []any{&made}},
	}
	switch s.form {
	case inStatement:
		return s.pool.QueryRow(ctx, atOnce, organization, customer, m.Amount, movement, m.Category, m.Comment, name, request).Scan(&m.Balance, &m.CreatedAt)
	case inTrips:
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			for _, x := range steps {
				if err := tx.QueryRow(ctx, x.sql, x.args...).Scan(x.into...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	batch := &pgx.Batch{} // one transaction, sent at once
	for _, x := range steps {
		batch.Queue(x.sql, x.args...).QueryRow(func(row pgx.Row) error { return row.Scan(x.into...) })
	}
	return s.pool.SendBatch(ctx, batch).Close()
}

// repeated answers a request that was done before as it was then.
func (s *server) repeated(ctx context.Context, organization id, name string, request []byte, m *movement) error {
	var first []byte
	var movement id
	err := s.pool.QueryRow(ctx, `SELECT i.request, l.id, l.balance, l.created_at FROM idempotency i JOIN ledger l ON l.id = i.movement WHERE i.organization = $1 AND i.key = $2`,
		organization, name).Scan(&first, &movement, &m.Balance, &m.CreatedAt)
	if err == nil && !bytes.Equal(first, request) {
		err = keyReused
	}
	m.ID = movement.String()
	return err
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

func refuse(w http.ResponseWriter, err error) {
	p := &problem{http.StatusInternalServerError, "internal"}
	if errors.Is(err, pgx.ErrNoRows) {
		p = notFound
	} else if !errors.As(err, &p) {
		fmt.Fprintln(os.Stderr, "peer:", err)
	}
	answer(w, p.status, map[string]string{"error": p.code})
}

// An id is a UUID, a new one of version 7, so that rows made at about the same time are neighbours
// in the indexes.
type id [16]byte

func newID() (u id) {
	rand.Read(u[:])
	binary.BigEndian.PutUint64(u[:8], uint64(time.Now().UnixMilli())<<16|0x7000|uint64(u[6]&0x0f)<<8|uint64(u[7]))
	u[8] = u[8]&0x3f | 0x80
	return u
}

var errID = errors.New("no id")

func parseID(s string) (u id, err error) {
	if len(s) != 36 {
		return u, errID
	}
	_, err = hex.Decode(u[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return u, err
}

func (u id) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
