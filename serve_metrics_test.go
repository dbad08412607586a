package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/disk"
	"sello/internal/handover"
	"sello/internal/host"
)

// figuresOf returns the value of each series in a text, by its name with its labels.
func figuresOf(t testing.TB, text string) map[string]float64 {
	t.Helper()
	figures := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if _, twice := figures[line[:at]]; err != nil || twice {
			t.Fatalf("%q: %v, or told twice", line, err)
		}
		figures[line[:at]] = value
	}
	return figures
}

// metered is a shop whose requests are counted.
func (s *shop) metered() (*servedShop, *meter) {
	served, m := s.served(), newMeter()
	m.ofRequests(served.api)
	return served, m
}

// TestRequestCounts compares the counts with the requests that were sent: by route and
// status, by limit, and by the cause of a 503.
func TestRequestCounts(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true`})
	served, m := s.metered()
	ana := s.customer("ana").String()
	_, once := s.newKey(keyRequest{RateLimit: 1})
	_, daily := s.newKey(keyRequest{DailyLimit: 1})
	_, monthly := s.newKey(keyRequest{MonthlyLimit: 1})
	_, purse := s.newKey(keyRequest{MaxPointsPerDay: dec("1")})
	for _, key := range []string{served.key, once, once, daily, daily, monthly, monthly} {
		answerTo(served.api, newRequest("GET", "/api/v1/points/customers/"+ana+"/balance", key, ""))
	}
	answerTo(served.api, newRequest("HEAD", "/api/v1/points/customers/"+ana+"/balance", served.key, ""))
	answerTo(served.api, newRequest("POST", "/api/v1/points/customers/"+ana+"/add", purse, `{"amount":2}`))
	answerTo(served.api, newRequest("POST", "/api/v1/points/customers/"+ana+"/add", served.key, `{"amount":2}`))
	for range maxRefusals + 1 {
		answerTo(served.api, newRequest("GET", "/api/v1/customers", "sello_x", ""))
	}
	s.engine.store.refusing.Store(true)
	answerTo(served.api, newRequest("GET", "/readyz", "", ""))
	s.engine.store.refusing.Store(false)
	got := figuresOf(t, string(m.Text()))
	const balance, add, list = `route="/api/v1/points/customers/{customerId}/balance"`, `route="/api/v1/points/customers/{customerId}/add"`, `route="/api/v1/customers"`
	for series, want := range map[string]float64{
		`sello_http_requests_total{method="GET",` + balance + `,status="200"}`:            5,
		`sello_http_requests_total{method="GET",` + balance + `,status="429"}`:            3,
		`sello_http_requests_total{method="GET",` + balance + `,status="500"}`:            0,
		`sello_http_requests_total{method="POST",` + add + `,status="403"}`:               1,
		`sello_http_requests_total{method="POST",` + add + `,status="201"}`:               1,
		`sello_http_requests_total{method="GET",` + list + `,status="401"}`:               maxRefusals,
		`sello_http_requests_total{method="GET",route="/readyz",status="503"}`:            1,
		`sello_http_request_duration_seconds_count{method="GET",` + balance + `}`:         8,
		`sello_http_request_duration_seconds_bucket{method="POST",` + add + `,le="+Inf"}`: 2,
		`sello_limit_refusals_total{limit="minute"}`:                                      1,
		`sello_limit_refusals_total{limit="day"}`:                                         1,
		`sello_limit_refusals_total{limit="month"}`:                                       1,
		`sello_limit_refusals_total{limit="source"}`:                                      1,
		`sello_limit_refusals_total{limit="points_budget"}`:                               1,
		`sello_http_unavailable_total{cause="not_ready"}`:                                 1,
		`sello_http_unavailable_total{cause="store"}`:                                     0,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %v (%t), want %v", series, value, ok, want)
		}
	}
}

// TestCauses checks the cause of each 503.
func TestCauses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{errClockUnsafe(), "clock"},
		{fmt.Errorf("%w: 1024 updates are waiting", errBusy), "queue"},
		{fmt.Errorf("read: %w", errNoRoom), "room"},
		{errFailed, "store"},
		{seamError(fmt.Errorf("%w: no space", disk.ErrUnavailable)), "store"},
		{seamError(disk.ErrClosed), "stopping"},
		{newError(codeUnavailable), "not_ready"},
		{context.Canceled, "other"},
	} {
		code := publicError(test.err).code
		if got := unavailableCauses[causeOf(code, test.err)]; got != test.want || code.status != http.StatusServiceUnavailable {
			t.Errorf("%v: %s %d, want %s", test.err, got, code.status, test.want)
		}
	}
}

// TestMetricsBounded sends what clients should not. After the first requests of each
// kind there is no new series, however many come, and nothing that a client sent is told.
func TestMetricsBounded(t *testing.T) {
	t.Parallel()
	served, m := newShop(t, setup{program: `"default":true`}).metered()
	rnd := rand.New(rand.NewPCG(1, 1))
	const secret = "SECRETO"
	send := func(n int) {
		for range n {
			path := pick(rnd, "/", "/livez/", "/api/v1/customers/", "/api/v1/transactions/", "/api/v1/none/", "/metrics/") + secret + strconv.Itoa(rnd.Int())
			path += pick(rnd, "", "/balance", "?x="+secret, "%0a%22}")
			r := newRequest(pick(rnd, "GET", "POST", "PUT", secret, secret+strconv.Itoa(rnd.Int())), path, pick(rnd, "", served.key, secret), "")
			r.Header.Set("X-Request-Id", secret)
			r.Header.Set("X-Actor", secret)
			answerTo(served.api, r)
		}
	}
	send(500)
	before := figuresOf(t, string(m.Text()))
	send(500)
	text := string(m.Text())
	after := figuresOf(t, text)
	if !maps.EqualFunc(before, after, func(_, _ float64) bool { return true }) {
		t.Errorf("%d series became %d", len(before), len(after))
	}
	if strings.Contains(text, secret) || strings.Contains(text, served.key) || strings.Contains(text, "cafe-luna") || uuidForm.MatchString(text) {
		t.Error("the text tells what a client sent")
	}
	var counted float64
	for series, value := range after {
		if strings.HasPrefix(series, "sello_http_requests_total{") {
			counted += value
		}
	}
	if counted != 1000 {
		t.Errorf("%v of 1000 requests were counted", counted)
	}
}

var uuidForm = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`)

// TestScrapeWhileServing reads the figures while requests are answered.
func TestScrapeWhileServing(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true`})
	served, m := s.metered()
	m.ofTime(s.engine)
	ana := s.customer("ana").String()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				answerTo(served.api, newRequest("POST", "/api/v1/points/customers/"+ana+"/add", served.key, `{"amount":1}`))
			}
		})
	}
	all.Go(func() {
		for range 50 {
			m.Text()
		}
	})
	all.Wait()
	got := figuresOf(t, string(m.Text()))
	if n := got[`sello_http_requests_total{method="POST",route="/api/v1/points/customers/{customerId}/add",status="201"}`]; n != 200 {
		t.Errorf("%v of 200 requests were counted", n)
	}
}

// TestStoreFigures checks the figures of a file that takes writes, and that they are
// still told when it has failed.
func TestStoreFigures(t *testing.T) {
	t.Parallel()
	m := newMeter()
	store, err := openBolt(filepath.Join(t.TempDir(), "a.db"), disk.Options{NoSync: true, ShortMap: true, Committed: m.commits.Observe})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e := newEngine(store, time.Now, cryptoSeed)
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.ofStore(store, e)
	space := new(host.Space)
	m.ofFile(store, space)
	m.ofTime(e)
	m.ofConnections(newGate(nil, 10, 10, nil, nil, slog.New(slog.DiscardHandler)))
	if text := string(m.Text()); strings.Contains(text, "sello_disk_") {
		t.Error("figures of a disk that was not looked at")
	}
	space.Note(1<<40, 1<<41, "", slog.New(slog.DiscardHandler))
	before := m.commits.Count()
	for range 3 {
		if err := e.store.Update(t.Context(), func(tx Tx) error { return tx.Put(newKey('v').byte('x'), []byte("1")) }); err != nil {
			t.Fatal(err)
		}
	}
	got := figuresOf(t, string(m.Text()))
	if n := m.commits.Count() - before; n != 3 || got["sello_write_queue_wait_seconds_count"] != 3 {
		t.Errorf("%d commits and %v waits of 3 writes", n, got["sello_write_queue_wait_seconds_count"])
	}
	for _, series := range []string{
		`sello_store_file_bytes{file="data"}`, `sello_store_file_bytes{file="journal"}`, "sello_store_journal_bytes", "sello_store_memtable_bytes",
		"sello_store_checkpoint_lag_seconds", "sello_connections_max", "sello_write_queue_max", `sello_clock_state{state="safe"}`, "sello_schema_version", "sello_disk_free_bytes", "sello_disk_size_bytes",
	} {
		if got[series] <= 0 {
			t.Errorf("%s is %v", series, got[series])
		}
	}
	store.queue.fail(errors.New("an I/O error"))
	if err := e.store.Update(t.Context(), func(tx Tx) error { return tx.Put(newKey('v').byte('x'), nil) }); !errors.Is(err, errUnavailable) {
		t.Error(err)
	}
	got = figuresOf(t, string(m.Text()))
	for series, want := range map[string]float64{"sello_store_failed": 1, "sello_store_writes_refused": 1, "sello_sweep_lag_seconds": 0} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("failed: %s is %v (%t), want %v", series, value, ok, want)
		}
	}
}

// TestSweepLag lets points expire before the sweep runs.
func TestSweepLag(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true`})
	lag := &sweepLag{engine: s.engine}
	want := func(seconds float64, reason string) {
		t.Helper()
		if got := lag.value(); got != seconds {
			t.Errorf("%s: %v seconds, want %v", reason, got, seconds)
		}
	}
	s.add(s.customer("ana"), "5", s.clock.add(time.Hour))
	want(0, "nothing is due")
	s.pass(time.Hour + 90*time.Second)
	want(90, "due for a minute and a half")
	s.swept()
	want(0, "settled")
}

// TestSweepLagHung asks for the lag while the store does not answer.
func TestSweepLagHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung := hungStore{newMemStore(), make(chan struct{})}
		defer hung.Store.Close()
		lag := &sweepLag{engine: newEngine(hung, time.Now, cryptoSeed)}
		began := time.Now()
		if got := lag.value(); !math.IsNaN(got) || time.Since(began) != scrapePatience {
			t.Errorf("%v after %s", got, time.Since(began))
		}
		if got := lag.value(); !math.IsNaN(got) || time.Since(began) != scrapePatience {
			t.Errorf("again: %v after %s", got, time.Since(began))
		}
		close(hung.release)
		synctest.Wait()
		began = time.Now()
		if lag.value(); lag.reading.Load() || time.Since(began) != 0 {
			t.Errorf("the store has answered, and it took %s", time.Since(began))
		}
	})
}

// TestBackupFigures checks what is told of backups and of the command that gets them.
func TestBackupFigures(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	state := new(backupState)
	told := func(plan *backupPlan) map[string]float64 {
		m := newMeter()
		m.ofBackups(plan, state)
		figures := figuresOf(t, string(m.Text()))
		maps.DeleteFunc(figures, func(name string, _ float64) bool { return !strings.HasPrefix(name, "sello_backup_") })
		return figures
	}
	want := func(reason string, got, want map[string]float64) {
		t.Helper()
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
	plan := &backupPlan{every: time.Hour}
	want("no backups", told(&backupPlan{}), map[string]float64{"sello_backup_scheduled": 0})
	want("none yet", told(plan), map[string]float64{
		"sello_backup_scheduled": 1, "sello_backup_last_success_timestamp_seconds": 0, "sello_backup_failures_total": 0, "sello_backup_interval_seconds": 3600,
	})
	state.made(at, nil)
	state.made(at.Add(time.Hour), errTest)
	state.passedOn(at.Add(time.Minute), nil)
	state.passedOn(at.Add(time.Hour), errTest)
	plan.afterBackup = new(handover.Command)
	want("one, and one that failed", told(plan), map[string]float64{
		"sello_backup_scheduled": 1, "sello_backup_last_success_timestamp_seconds": 1_800_000_000, "sello_backup_failures_total": 1, "sello_backup_interval_seconds": 3600,
		"sello_backup_command_last_success_timestamp_seconds": 1_800_000_060, "sello_backup_command_failures_total": 1,
	})
}

// TestMetricsAddress checks which addresses -metrics takes, and where it then listens.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "0": "127.0.0.1:0", "localhost:1": "localhost:1", "0.0.0.0:9464": "0.0.0.0:9464",
		"[::1]:9464": "[::1]:9464", "[::]:9464": "[::]:9464", "10.0.0.7:9464": "10.0.0.7:9464",
		"localhost": "", "9464/metrics": "", "http://127.0.0.1:9464": "", "127.0.0.1:": "", ":http": "", "70000": "", "::1": "",
	} {
		got, err := metricsAddress(text)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestMetricsServed asks a server's listener of -metrics for what is there and what is
// not, and checks that the API has no such route and that the listener ends with the server.
func TestMetricsServed(t *testing.T) {
	skipQuick(t)
	s := newTill(t)
	s.env["SELLO_METRICS"] = ":0"
	server, out := s.start("demo -json -log-requests=off -log-level warn -log-level info")
	var started demoStarted
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		t.Fatal(err)
	}
	addr := server.metrics
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Fatalf("the figures are at %q", addr)
	}
	server.wantStatus(http.StatusOK, "/customers", started.Key, "to be counted")
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404}, {"HEAD", "/", 404}, {"GET", "/metrics/", 404},
		{"GET", "//metrics", 404}, {"GET", "/debug/pprof/", 404}, {"GET", "/api/v1/customers", 404}, {"OPTIONS", "/", 404},
	} {
		req, _ := http.NewRequest(test.method, "http://"+addr+test.path, nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != test.status {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, res.StatusCode, test.status)
		}
		const counted = `sello_http_requests_total{method="GET",route="/api/v1/customers",status="200"} 1`
		if test.method == "GET" && test.status == 200 && !strings.Contains(string(body), counted) {
			t.Errorf("%s is not in\n%s", counted, body)
		}
	}
	server.wantStatus(http.StatusNotFound, "/../../metrics", "", "not on the API's port")
	if code := server.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		conn.Close()
		t.Error("the listener of -metrics is open after the server's end")
	}
	if strings.Contains(server.log.String(), `"msg":"request"`) {
		t.Errorf("lines of requests in spite of -log-requests=off: %s", server.log)
	}
}

// TestMetricsTaken checks that a server does not start without the listener that it was
// asked for.
func TestMetricsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newTill(t)
	if code, _, errs := s.run("serve -addr 127.0.0.1:0 -metrics " + taken.Addr().String()); code != 1 || !strings.Contains(errs, "no se puede escuchar en "+taken.Addr().String()) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// BenchmarkRequestCounts is what -metrics adds to each request: all processors count in one
// route.
func BenchmarkRequestCounts(b *testing.B) {
	a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
	newMeter().ofRequests(a)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			a.counts.answered(8, http.MethodGet, http.StatusOK, 200*time.Microsecond)
		}
	})
}

// BenchmarkScrape is one reading of all figures of the API.
func BenchmarkScrape(b *testing.B) {
	a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
	m := newMeter()
	m.ofRequests(a)
	m.Runtime()
	m.Process()
	for i := range a.routes() {
		a.counts.answered(i, http.MethodGet, http.StatusOK, time.Millisecond)
	}
	for b.Loop() {
		m.Text()
	}
}
