//go:build postgres

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/postgres"
	"sello/postgres/pgtest"
)

func openTestPostgres(t testing.TB, dsn string) *postgresStore {
	t.Helper()
	return openPostgresWith(t, dsn, postgres.Options{Create: true, Name: "sello"})
}

func openPostgresWith(t testing.TB, dsn string, options postgres.Options) *postgresStore {
	t.Helper()
	options.Parts = partition{}
	db, err := postgres.Open(t.Context(), dsn, options)
	if err != nil {
		t.Fatal(err)
	}
	s := newPostgresStore(db)
	s.setting, s.schema = isSetting[string], string(tableVersion.fixed())
	return s
}

func TestPostgresStore(t *testing.T) {
	testStore(t, func(t *testing.T) Store { return openTestPostgres(t, pgtest.DSN(t)) })
}

func TestPostgresRunTwice(t *testing.T) {
	testStore(t, func(t *testing.T) Store { return runTwice(openTestPostgres(t, pgtest.DSN(t))) })
}

// TestPostgresGolden plays every transcript on PostgreSQL, and compares the whole responses with
// those of the store in memory.
func TestPostgresGolden(t *testing.T) {
	playGolden(t, []goldenBackend{
		{"mem", func(*testing.T) Store { return newMemStore() }},
		{"postgres twice", func(t *testing.T) Store { return runTwice(openTestPostgres(t, pgtest.DSN(t))) }},
	})
}

// TestPostgresCopy moves a file to a database and back. Whatever is refused or interrupted leaves
// nothing behind.
func TestPostgresCopy(t *testing.T) {
	s := newTill(t)
	s.ok("apply " + s.file("luna.json", string(demoDocument)))
	customers := "externalId,email,phoneNumber,points\n"
	for i := range 300 {
		customers += fmt.Sprintf("c%d,c%d@example.com,,%d\n", i, i, i)
	}
	s.ok("import customers "+s.file("c.csv", customers), "")
	cluster := pgtest.Start(t)
	address, back := cluster.DSN(), filepath.Join(s.dir, "back.db")
	refused := func(line, want string) {
		t.Helper()
		if code, _, errs := s.run(line); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("sello %s: exit %d, %q; want %q", line, code, errs, want)
		}
	}
	copyIt := func(from, to string) (done copied) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.ok("copy -json -from "+from+" -to "+to)), &done); err != nil {
			t.Fatal(err)
		}
		return done
	}
	refused("verify -db "+address, "la base de datos no tiene las tablas de sello")
	refused("copy -from "+address+" -to "+back, "la base de datos no tiene las tablas de sello")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ended, []string{"copy", "-to", address}, environment{s.getenv, s.names, strings.NewReader(""), &out, &errs}); code != 1 {
		t.Errorf("interrupted: exit %d, %s", code, &errs)
	}

	there := copyIt(s.env["SELLO_DB"], address)
	if there.Entries < 300 || there.Verified.Customers != 300 || there.To != mustName(t, address) {
		t.Errorf("%+v", there)
	}
	refused("copy -to "+address, "ya tiene datos de sello")
	again := copyIt(address, back)
	if again.Entries != there.Entries || again.Digest != there.Digest {
		t.Errorf("there %+v, and back %+v", there, again)
	}
	refused("copy -from "+address+" -to "+back, "ya existe y no se reemplaza")
	if text := s.ok("verify -db " + back); !strings.HasSuffix(text, "todo cuadra\n") {
		t.Error(text)
	}

	// What the commands do there, they do as in a file.
	key := strings.Fields(s.ok("key create -name x -db " + address))
	backup := filepath.Join(s.dir, "backup.db")
	if text := s.ok("backup -db " + address + " " + backup); !strings.Contains(text, "comprobada") {
		t.Error(text)
	}
	for _, db := range []string{address, backup} {
		if text := s.ok("key list -db " + db); !strings.Contains(text, key[0][len(key[0])-4:]) {
			t.Errorf("%s: %s", db, text)
		}
	}

	s.env["SELLO_BACKUP_EVERY"], s.env["SELLO_BACKUP_DIR"], s.env["SELLO_BACKUP_KEEP"] = "1h", "/nothing", "3" // as a unit sets them
	server, _ := s.start("serve -metrics 127.0.0.1:0 -db " + address)
	if !strings.Contains(server.log.String(), `"msg":"no scheduled backups","unused":["SELLO_BACKUP_EVERY","SELLO_BACKUP_DIR","SELLO_BACKUP_KEEP"]`) {
		t.Errorf("the log does not tell whose backups are: %s", server.log)
	}
	if !strings.Contains(server.log.String(), `"msg":"database","postgres":"`) || !strings.Contains(server.log.String(), `"tls":""`) {
		t.Errorf("the log does not tell of the database: %s", server.log)
	}
	s.env["SELLO_DB"] = address
	// Commands do not need its help. It knows what they did in its next request.
	second, _ := s.start("serve -db " + address)
	for _, r := range []*running{server, second} {
		text, id := s.key("-name y")
		r.wantStatus(http.StatusOK, "/rewards", text, "a key that a command has made")
		s.ok("key revoke " + id)
		r.wantStatus(http.StatusUnauthorized, "/rewards", text, "a key that a command has revoked")
	}
	s.ok("import customers " + s.file("more.csv", customers+"d,d@example.com,,1\n"))
	for _, line := range []string{"apply " + s.file("luna.json", string(demoDocument)), "user list", "audit", "webhook list", "export", "verify"} {
		s.ok(line)
	}
	refused("copy -to "+filepath.Join(s.dir, "other.db"), "la usa un servidor: detén todos")
	// As if a standby had been promoted that lacked the last commits.
	server.wantStatus(http.StatusUnauthorized, "/rewards", "sello_x", "a key that nobody has")
	cluster.Exec("DELETE FROM sello_log WHERE n > (SELECT max(n) - 3 FROM sello_log)")
	server.wantStatus(http.StatusUnauthorized, "/rewards", "sello_x", "a key that nobody has")
	if res, err := http.Get("http://" + server.metrics + metricsPath); err != nil {
		t.Error(err)
	} else if text, err := io.ReadAll(res.Body); res.Body.Close() != nil || err != nil || figuresOf(t, string(text))["sello_database_commits_gone_total"] != 1 {
		t.Errorf("%s, %v", text, err)
	}
	if code := second.stop(); code != 0 {
		t.Errorf("the second server ended with %d: %s", code, second.log)
	}
	if code := server.stop(); code != 0 {
		t.Errorf("the server ended with %d: %s", code, server.log)
	}
	if !strings.Contains(server.log.String(), `"level":"ERROR","msg":"commits are gone"`) {
		t.Errorf("the log does not tell of lost commits: %s", server.log)
	}
	if strings.Contains(server.log.String(), "sello_test_") || !strings.Contains(server.log.String(), mustName(t, address)) {
		t.Errorf("the log has the address, or not its name: %s", server.log)
	}
}

// TestPostgresUnknownHost: where an address has a password and its host is not found, that may be the
// password's end, and no command shows it.
func TestPostgresUnknownHost(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	for _, end := range []string{"/db", "", ":5432/db"} {
		address := "postgres://ana:p@ss.invalid" + end
		for _, line := range []string{"verify -db " + address, "key list -db " + address, "doctor -db " + address, "serve -addr 127.0.0.1:0 -db " + address,
			"copy -to " + s.dir + "/x.db -from " + address, "copy -from " + s.dir + "/x.db -to " + address} {
			if code, out, errs := s.run(line); code == 0 || strings.Contains(out+errs, "ss.invalid") {
				t.Errorf("sello %s: exit %d, %s%s", line, code, out, errs)
			}
		}
	}
	if _, _, errs := s.run("verify -db postgres://ana:p@ss.invalid/db"); !strings.Contains(errs, "postgres://…: no se encuentra ninguna máquina") {
		t.Errorf("with a password: %s", errs)
	}
	if _, _, errs := s.run("verify -db postgres://ana@typo.invalid/db"); !strings.Contains(errs, "postgres://typo.invalid/db: no se encuentra") {
		t.Errorf("without a password: %s", errs)
	}
}

// TestPostgresReaders: where nothing can be written, on a standby, as a user who may only read and in
// a session that is to be so, commands that read do all that they do, and say what the audit log was
// not told. The others say why not.
func TestPostgresReaders(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	s := newTill(t)
	s.env["SELLO_DB"] = cluster.DSN()
	document := s.file("luna.json", string(demoDocument))
	s.ok("apply " + document)
	customers := s.file("c.csv", "email,points\na@example.com,5\n")
	s.ok("import customers " + customers)
	key := strings.Fields(s.ok("key list"))
	cluster.Exec("CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
	reader, err := url.Parse(cluster.DSN())
	if err != nil {
		t.Fatal(err)
	}
	reader.User = url.UserPassword("reader", "reader")
	const readOnly, forbidden = "la base de datos no admite escrituras", "le falta permiso"
	for name, test := range map[string]struct{ address, why string }{
		"reader":   {reader.String(), forbidden},
		"standby":  {cluster.Standby(t, false).DSN(), readOnly},
		"readOnly": {cluster.DSN() + "&default_transaction_read_only=on", readOnly},
	} {
		s.env["SELLO_DB"] = test.address
		backup := filepath.Join(s.dir, name+".db")
		for _, line := range []string{"verify", "export", "export customers", "export sales", "export movements", "export redemptions", "audit", "key list",
			"webhook list", "user list", "clock", "apply -dry-run " + document, "import customers -dry-run " + customers, "backup " + backup,
			"copy -from " + test.address + " -to " + filepath.Join(s.dir, name+"-copy.db"), "verify -db " + backup} {
			began := time.Now()
			code, _, errs := s.run(line)
			told := strings.HasPrefix(line, "export") || strings.HasPrefix(line, "backup")
			if code != 0 || strings.Contains(errs, "not in the audit log") != told {
				t.Errorf("%s: sello %s: exit %d: %s", name, line, code, errs)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("%s: sello %s took %v", name, line, took)
			}
		}
		if code, out, errs := s.run("doctor"); !strings.Contains(out, "reloj") || strings.Contains(out+errs, test.why) {
			t.Errorf("%s: sello doctor: exit %d, %s%s", name, code, out, errs)
		}
		for _, line := range []string{"serve -addr 127.0.0.1:0", "apply " + document, "import customers " + customers, "key create -name x", "key revoke " + key[len(key)-1],
			"user invite -email b@example.com -role owner -panel http://127.0.0.1", "user logout -all", "webhook replay crm -from 1", "clock accept", "migrate",
			"copy -from " + backup + " -to " + test.address} {
			if code, out, errs := s.run(line); code != 1 || !strings.Contains(errs, test.why) {
				t.Errorf("%s: sello %s: exit %d: %s%s", name, line, code, out, errs)
			}
		}
	}
}

func mustName(t *testing.T, address string) string {
	t.Helper()
	name, ok := databaseName(address)
	if !ok {
		t.Fatal(address)
	}
	return name
}

// TestPostgresWords: what a person reads of errors of a database.
func TestPostgresWords(t *testing.T) {
	t.Parallel()
	cause := errors.New("ERROR: out of order (SQLSTATE 99999)")
	for _, test := range []struct {
		err  error
		want string
	}{
		{databaseError(fmt.Errorf("%w: %v", postgres.ErrUnknown, fmt.Errorf("%w: %w", postgres.ErrUnavailable, cause))),
			"no se sabe si se guardó: mira qué hay antes de repetirlo: ERROR: out of order (SQLSTATE 99999)"},
		{databaseError(fmt.Errorf("%w: %w", postgres.ErrUnavailable, cause)), "la base de datos no responde ahora como debe: ERROR: out of order (SQLSTATE 99999)"},
		{databaseError(fmt.Errorf("%w: %w", postgres.ErrForbidden, cause)), "a ese usuario le falta permiso para hacer las tablas de sello, o para usarlas"},
		{openingError(fmt.Errorf("%w: %w", postgres.ErrUnavailable, cause)), "PostgreSQL no admite conexiones ahora: no le quedan, está arrancando o se está deteniendo"},
		{openingError(fmt.Errorf("%w: %w", postgres.ErrNoTLS, cause)), "ese servidor de PostgreSQL no tiene TLS, y sslmode lo exige: actívalo ahí (ssl = on), o quita sslmode si la red es de confianza"},
		{openingError(fmt.Errorf("%w: %w", postgres.ErrDSN, &fs.PathError{Op: "open", Path: "/ca.pem", Err: fs.ErrNotExist})), "no se puede leer un archivo que nombra la dirección: /ca.pem"},
	} {
		if got := inWords(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestPostgresTold: the log tells what the database is, and again once that has changed.
func TestPostgresTold(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	s := openTestPostgres(t, cluster.DSN())
	defer s.Close()
	var log bytes.Buffer
	tell := func() string {
		log.Reset()
		s.tell(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		return log.String()
	}
	if text := tell(); !strings.Contains(text, "synchronousCommit=on") || strings.Contains(text, "can be lost") {
		t.Errorf("told: %s", text)
	}
	if text := tell(); text != "" {
		t.Errorf("told again: %s", text)
	}
	cluster.Set("synchronous_commit = off")
	for range 1000 { // sessions notice it some time later
		if text := tell(); strings.Contains(text, "synchronousCommit=off") && strings.Contains(text, "can be lost") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a change is not told")
}

// servers returns the stores of n servers on one new database.
func servers(t *testing.T, n int) (list []Store) {
	dsn := pgtest.DSN(t)
	for range n {
		list = append(list, openTestPostgres(t, dsn))
	}
	return list
}

// TestPostgresServers has three servers answer concurrent clients by turns: whatever they do at
// once is answered as if it had been done one by one, by one server.
func TestPostgresServers(t *testing.T) {
	t.Run("rush", func(t *testing.T) {
		three := servers(t, 3)
		r := newRush(t, three[0], rushSize(), 1, three[1:]...)
		for _, rushed := range rushes {
			if rushed.flaw == twoCounters { // each server counts its own minute
				continue
			}
			if err := rushed.run(r); err != nil {
				t.Errorf("%s: %v", rushed.name, err)
			}
		}
		r.ok(r.verified())
	})
	t.Run("linear", func(t *testing.T) {
		linearSeeds(t, *linearMany, 6, func(t *testing.T) func(*rand.Rand) error {
			three := servers(t, 3)
			r := newRush(t, three[0], 0, 1, three[1:]...)
			return func(rnd *rand.Rand) error {
				return errors.Join(r.record(rnd, pick(rnd, "", "", "with a key")), r.verified())
			}
		})
	})
}

// A floor is several servers on one database, each with its API and its commands.
type floor struct {
	*testing.T
	admins []*admin
	apis   []*api
	stores []Store
	clock  atomic.Int64 // milliseconds
}

func newFloor(t *testing.T, stores []Store) *floor {
	f := &floor{T: t, stores: stores}
	f.clock.Store(time.Now().UnixMilli())
	for i, s := range stores {
		e := newEngine(s, func() time.Time { return time.UnixMilli(f.clock.Load()) }, cryptoSeed)
		f.ok(e.open(t.Context()))
		a := &admin{engine: e, flush: func(context.Context) error { return nil }}
		if i == 0 {
			_, err := a.apply(t.Context(), applyRequest{Document: rushShop.document()})
			f.ok(err)
		}
		f.admins, f.apis = append(f.admins, a), append(f.apis, newAPIOf(e))
		t.Cleanup(func() { s.Close() })
	}
	return f
}

func (f *floor) ok(err error) {
	if err != nil {
		f.Helper()
		f.Fatal(err)
	}
}

// send sends a request to one of the servers and returns its status and body.
func (f *floor) send(server int, key, method, path, retry, body string) (int, string) {
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if retry != "" {
		r.Header.Set("Idempotency-Key", retry)
	}
	w := httptest.NewRecorder()
	f.apis[server].ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// keys makes keys on one server and uses them on another at once, and revokes them on one and
// uses them on another in the next request. It returns what went wrong.
func (f *floor) keys() (faults []string) {
	const org = "cafe-luna"
	for i := range 12 {
		maker, user, other := i%len(f.apis), (i+1)%len(f.apis), (i+2)%len(f.apis)
		k, err := f.admins[maker].createKey(f.Context(), keyRequest{Org: org, Name: "x", RateLimit: 1000})
		f.ok(err)
		for _, server := range []int{user, other, user} {
			if code, body := f.send(server, k.Key, "GET", "/rewards", "", ""); code != 200 {
				faults = append(faults, fmt.Sprintf("a key made on %d is on %d: %d %s", maker, server, code, body))
			}
		}
		_, err = f.admins[other].revokeKey(f.Context(), revokeRequest{Org: org, ID: k.ID.String()})
		f.ok(err)
		for _, server := range []int{user, maker} {
			if code, body := f.send(server, k.Key, "GET", "/rewards", "", ""); code != 401 {
				faults = append(faults, fmt.Sprintf("a key revoked on %d is on %d: %d %s", other, server, code, body))
			}
		}
	}
	return faults
}

// deafStore is a store whose server is not told of what others write.
type deafStore struct{ Store }

// TestPostgresKeys: what one server knows of keys, all know in the next request.
func TestPostgresKeys(t *testing.T) {
	if faults := newFloor(t, servers(t, 3)).keys(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	deaf := servers(t, 3)
	for i := range deaf {
		deaf[i] = deafStore{deaf[i]}
	}
	if faults := newFloor(t, deaf).keys(); len(faults) == 0 {
		t.Error("servers that are not told of each other were not noticed")
	}
}

// TestPostgresRetries sends one request with one Idempotency-Key to all servers at once, again and
// again: it is done once, and all get the same answer.
func TestPostgresRetries(t *testing.T) {
	f := newFloor(t, servers(t, 3))
	k, err := f.admins[0].createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "x", RateLimit: 100_000})
	f.ok(err)
	_, body := f.send(0, k.Key, "POST", "/customers", "", `{"email":"ana@example.com"}`)
	var ana struct{ ID string }
	f.ok(json.Unmarshal([]byte(body), &ana))
	const rounds = 60
	for round := range rounds {
		var wait sync.WaitGroup
		var answers [9]string
		for i := range answers {
			wait.Go(func() {
				code, body := f.send(i%3, k.Key, "POST", "/points/customers/"+ana.ID+"/add", fmt.Sprint("again-", round), `{"amount":1}`)
				answers[i] = fmt.Sprint(code, body)
			})
		}
		wait.Wait()
		for _, a := range answers {
			if a != answers[0] || !strings.HasPrefix(a, "200") && !strings.HasPrefix(a, "201") {
				t.Fatalf("round %d: %q", round, answers)
			}
		}
	}
	_, body = f.send(1, k.Key, "GET", "/points/customers/"+ana.ID+"/balance", "", "")
	var b struct{ Balance int }
	f.ok(json.Unmarshal([]byte(body), &b))
	if b.Balance < rounds || b.Balance > rounds+100 { // and the points of the welcome
		t.Errorf("%s", body)
	}
	report, err := f.admins[2].verify(t.Context(), verifyRequest{})
	if err != nil || len(report.Problems) > 0 || report.Movements > rounds+2 {
		t.Errorf("%+v, %v", report, err)
	}
	m := newMeter()
	m.ofDatabase(f.stores[1].(*postgresStore))
	got := figuresOf(t, string(m.Text()))
	for _, series := range []string{`turns_total{result="won"}`, `turns_total{result="lost"}`, "reruns_total", "trips_total", "head_age_seconds", "connections_max", "connections_room"} {
		if got["sello_database_"+series] <= 0 {
			t.Errorf("%s is %v", series, got["sello_database_"+series])
		}
	}
	manual, err := os.ReadFile("docs/postgresql.md")
	f.ok(err)
	for series := range got {
		name, _, _ := strings.Cut(series, "{")
		if strings.HasPrefix(name, "sello_database_") && !bytes.Contains(manual, []byte("`"+name+"`")) {
			t.Errorf("docs/postgresql.md does not tell of %s", name)
		}
	}
	if ahead := got["sello_database_clock_ahead_seconds"]; ahead != 0 {
		t.Errorf("a database on this machine is ahead of it by %v", ahead)
	}
}

// TestPostgresFewConnections: where the role may have 6 connections and the server would have 32, many
// clients who read and add at once get no 503, and the figures tell how many the server does with.
func TestPostgresFewConnections(t *testing.T) {
	cluster := pgtest.Start(t)
	cluster.Exec("CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 6; CREATE SCHEMA few AUTHORIZATION few")
	s := openPostgresWith(t, fmt.Sprintf("postgres://few:few@127.0.0.1:%d/postgres?sslmode=disable", cluster.Port()), postgres.Options{Conns: 32, Create: true})
	f := newFloor(t, []Store{s})
	k, err := f.admins[0].createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "x", RateLimit: 100_000})
	f.ok(err)
	room := func() (room, most float64) {
		m := newMeter()
		m.ofDatabase(s)
		got := figuresOf(t, string(m.Text()))
		if used := got["sello_database_connections_used"]; used > 6 {
			t.Errorf("%v connections are used", used)
		}
		return got["sello_database_connections_room"], got["sello_database_connections_max"]
	}
	if room, most := room(); room != 32 || most != 32 {
		t.Errorf("before anything was refused there is room for %v of %v", room, most)
	}
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			code, body := f.send(0, k.Key, "POST", "/customers", "", fmt.Sprintf(`{"email":"ana%d@example.com"}`, i))
			var ana struct{ ID string }
			if err := json.Unmarshal([]byte(body), &ana); err != nil || code != http.StatusCreated {
				t.Errorf("%d %s", code, body)
				return
			}
			for range sized(20, 5) {
				for _, r := range [][3]string{{"GET", "/points/customers/" + ana.ID + "/balance"}, {"GET", "/customers?limit=20&search=ana"}, {"POST", "/points/customers/" + ana.ID + "/add", `{"amount":1}`}} {
					if code, body := f.send(0, k.Key, r[0], r[1], "", r[2]); code >= 300 {
						t.Errorf("%s %s: %d %s", r[0], r[1], code, body)
					}
				}
			}
		})
	}
	clients.Wait()
	if room, most := room(); room < 1 || room > 6 || most != 32 {
		t.Errorf("a role that may have 6 connections: room for %v of %v", room, most)
	}
}

// TestPostgresPages: a page of a list is read in a few messages, however many records it shows, also
// by a server that has read none of them before.
func TestPostgresPages(t *testing.T) {
	f := newFloor(t, servers(t, 2))
	k, err := f.admins[0].createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "x", RateLimit: 100_000})
	f.ok(err)
	for i := range 40 {
		_, body := f.send(0, k.Key, "POST", "/customers", "", fmt.Sprintf(`{"email":"ana%d@example.com","firstName":"Ana"}`, i))
		var ana struct{ ID string }
		f.ok(json.Unmarshal([]byte(body), &ana))
		if code, body := f.send(0, k.Key, "POST", "/transactions", "", `{"customerId":"`+ana.ID+`","totalAmount":50}`); code != 201 {
			t.Fatal(code, body)
		}
	}
	f.send(1, k.Key, "GET", "/segments", "", "") // it knows the key then
	for _, test := range []struct {
		path string
		most uint64
	}{
		{"/customers?limit=40", 8}, {"/customers?search=ana&limit=40", 9}, {"/transactions?limit=40", 8},
		{"/transactions?type=Purchase&limit=40", 9}, {"/audit?limit=40", 8}, {"/events?limit=40", 10},
	} {
		path, most := test.path, test.most
		stats := func() uint64 { return f.stores[1].(*postgresStore).db.Stats().Trips }
		before := stats()
		code, body := f.send(1, k.Key, "GET", path, "", "")
		if n := stats() - before; n > most || code != 200 || len(body) < 200 {
			t.Errorf("GET %s: %d messages, want %d at most; %d %.200s", path, n, most, code, body)
		}
	}
}

// TestPostgresFewMessages: a server that has read none of the sales before searches and filters them in a
// few messages, however many customers and sales it reads. A verification reads the same.
func TestPostgresFewMessages(t *testing.T) {
	const customers, sales = 60, 240
	dsn := pgtest.DSN(t)
	f := newFloor(t, []Store{openTestPostgres(t, dsn)})
	k, err := f.admins[0].createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "x", RateLimit: 100_000})
	f.ok(err)
	var ids []string
	for i := range customers {
		_, body := f.send(0, k.Key, "POST", "/customers", "", fmt.Sprintf(`{"email":"ana%d@example.com","firstName":"Ana"}`, i))
		var ana struct{ ID string }
		f.ok(json.Unmarshal([]byte(body), &ana))
		ids = append(ids, ana.ID)
	}
	for i := range sales {
		of := ids[i%customers]
		if i >= sales/2 { // a long chain
			of = ids[0]
		}
		if code, body := f.send(0, k.Key, "POST", "/transactions", "", `{"customerId":"`+of+`","totalAmount":50}`); code != 201 {
			t.Fatal(code, body)
		}
	}
	for _, test := range []struct {
		path        string
		total, most uint64
	}{
		{"search=ana", sales, 36}, {"search=ana&from=2000-01-01", sales, 36}, {"search=ana5&type=Purchase&limit=50", 22, 24},
		{"customerId=" + ids[0], 122, 18}, {"customerId=" + ids[0] + "&limit=100", 122, 30}, {"customerId=" + ids[0] + "&from=2000-01-01", 122, 30},
	} {
		store := openTestPostgres(t, dsn)
		e := newEngine(store, f.admins[0].engine.now, cryptoSeed)
		f.ok(e.open(t.Context()))
		f.apis = append(f.apis[:1], newAPIOf(e))
		f.send(1, k.Key, "GET", "/segments", "", "") // it knows the key then
		before := store.db.Stats().Trips
		code, body := f.send(1, k.Key, "GET", "/transactions?"+test.path, "", "")
		var list struct{ Meta struct{ Total uint64 } }
		f.ok(json.Unmarshal([]byte(body), &list))
		if n := store.db.Stats().Trips - before; n > test.most || code != 200 || list.Meta.Total != test.total {
			t.Errorf("GET %s: %d messages, want %d at most; %d, %d sales", test.path, n, test.most, code, list.Meta.Total)
		}
		f.ok(store.Close())
	}
	report, err := f.admins[0].verify(t.Context(), verifyRequest{})
	f.ok(err)
	if len(report.Problems) > 0 || report.Sales != sales {
		t.Errorf("%+v", report)
	}
}

// TestPostgresSchema: who changes the schema has seen, or stops, whatever others write anywhere: their
// updates run again after it. Other common keys stop nobody.
func TestPostgresSchema(t *testing.T) {
	stores := servers(t, 2)
	put := func(server int, k key) (runs int) {
		t.Helper()
		if err := stores[server].Update(t.Context(), func(tx Tx) error {
			runs++
			return tx.Put(k, []byte{1})
		}); err != nil {
			t.Fatal(err)
		}
		return runs
	}
	put(0, orgKey('n', 1))
	for _, test := range []struct {
		key  key
		runs int
	}{{newKey('u').id(id{}), 1}, {newKey('v'), 2}, {orgKey('n', 2), 1}, {orgKey('n', 1), 2}} {
		put(1, test.key)
		if runs := put(0, orgKey('n', 1)); runs != test.runs {
			t.Errorf("after a write of %q by another server an update ran %d times, want %d", test.key, runs, test.runs)
		}
	}
}
