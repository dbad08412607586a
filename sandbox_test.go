package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
)

// TestAddDuration: durations of ISO 8601 are read strictly, and counted by the calendar.
func TestAddDuration(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	from := instantOf(time.Date(2027, 1, 31, 10, 0, 0, 0, zone))
	for text, want := range map[string]string{
		"P90D": "2027-05-01T10:00", "P1M": "2027-02-28T10:00", "P1Y": "2028-01-31T10:00", "PT36H": "2027-02-01T22:00", "P1W": "2027-02-07T10:00",
		"P1Y2M3W4DT5H6M7.008S": "2028-04-25T15:06:07.008", "PT90M": "2027-01-31T11:30", "P0D": "2027-01-31T10:00", "PT0.5S": "2027-01-31T10:00:00.5",
		"P": "", "PT": "", "P1DT": "", "90D": "", "-P1D": "", "P-1D": "", "P1.5D": "", "p1d": "", "P1H": "", "PT1D": "", "P1D ": "", "P1D1Y": "", "PT1S1H": "", "P99999Y": "", "PT1,5S": "",
	} {
		got, ok := addDuration(from, text, zone)
		if ok != (want != "") {
			t.Errorf("%s: read %t", text, ok)
			continue
		}
		if at, _ := parseMoment(want, zone, false); ok && got != at {
			t.Errorf("%s: %s, want %s", text, got, at)
		}
	}
}

// A sandboxShop is a sandbox that was started by its command.
type sandboxShop struct {
	*running
	*sandboxStarted
}

func (s *till) sandbox(flags string) *sandboxShop {
	s.Helper()
	server, out := s.start("sandbox -json" + flags)
	started := new(sandboxStarted)
	if err := json.NewDecoder(out).Decode(started); err != nil {
		s.Fatal(err)
	}
	return &sandboxShop{server, started}
}

// ask sends a request and decodes its answer, which has a status.
func (s *sandboxShop) ask(want int, method, path, body string, answer any) {
	s.Helper()
	status, text := s.send(method, path, s.Key, body)
	if status != want {
		s.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, status, want, text)
	}
	if answer != nil {
		if err := json.Unmarshal([]byte(text), answer); err != nil {
			s.Fatalf("%s: %v", text, err)
		}
	}
}

// An apiFault is the body of an error.
type apiFault struct{ Code, Field, Message string }

// fails wants an error.
func (s *sandboxShop) fails(status int, path, body, code, field, message string) {
	s.Helper()
	var got apiFault
	s.ask(status, http.MethodPost, path, body, &got)
	if got.Code != code || got.Field != field || !strings.Contains(got.Message, message) {
		s.Errorf("%s %s: %+v, want %s of %q: %s", path, body, got, code, field, message)
	}
}

// TestSandbox: what an integrator does in the first hour. Somebody is enrolled and buys, the clock goes
// on, and the answers say what lapsed and why the tier fell; each event has its moment and its number.
func TestSandbox(t *testing.T) {
	t.Parallel()
	s := newTill(t).sandbox(" -now 2026-11-24T10:00-06:00")
	if !strings.HasPrefix(s.Now.String(), "2026-11-24T16:00:0") || s.File != "" || s.Panel == "" {
		t.Errorf("started: %+v", s.sandboxStarted)
	}
	var clock clockShape
	s.ask(200, "GET", "/test/clock", "", &clock)
	if clock.Now < s.Now || clock.NextDue <= clock.Now {
		t.Errorf("the clock: %+v", clock)
	}
	var ana struct {
		ID             string
		CreatedAt      instant
		ExpiringPoints []struct{ ExpiresAt instant }
	}
	s.ask(201, "POST", "/customers", `{"phoneNumber":"55 8765 4321","firstName":"Ana"}`, &ana)
	var sale struct{ ID string }
	s.ask(201, "POST", "/transactions", `{"customerId":"`+ana.ID+`","totalAmount":20000}`, &sale)
	lapses := ana.ExpiringPoints[0].ExpiresAt
	var moved movedShape
	s.ask(200, "POST", "/test/clock", `{"advance":"P89D"}`, &moved)
	if moved.Events["points.expired"] != 0 || moved.Events["points.expiring"] != 1 || moved.NextDue > lapses {
		t.Errorf("89 days later: %+v", moved)
	}
	s.ask(200, "POST", "/test/clock", `{"advance":"P1D"}`, &moved)
	if moved.Events["points.expired"] != 1 || moved.FirstEvent == nil {
		t.Errorf("90 days later: %+v", moved)
	}
	var movements struct {
		Data []struct {
			Category  string
			Amount    float64
			CreatedAt instant
		}
	}
	s.ask(200, "GET", "/points/customers/"+ana.ID+"/movements?category=Expiration", "", &movements)
	if len(movements.Data) != 1 || movements.Data[0].CreatedAt != lapses || lapses != ana.CreatedAt+90*24*60*60*1000 {
		t.Errorf("welcome points of %s lapse at %s: %+v", ana.CreatedAt, lapses, movements.Data)
	}
	s.ask(200, "POST", "/test/clock", `{"advance":"P1Y"}`, &moved)
	if moved.Events["tier.expiring"] != 1 || moved.Events["tier.changed"] != 1 {
		t.Errorf("a year later: %+v", moved)
	}
	var feed struct {
		Data []struct {
			Sequence  uint64
			Type      string
			CreatedAt instant
		}
		Next uint64
	}
	s.ask(200, "GET", "/events?after=0&limit=100", "", &feed)
	if len(feed.Data) == 0 || feed.Next != *moved.LastEvent {
		t.Errorf("the feed: %d events up to %d, want %d", len(feed.Data), feed.Next, *moved.LastEvent)
	}
	for i, e := range feed.Data {
		if e.Sequence != feed.Data[0].Sequence+uint64(i) || i > 0 && e.CreatedAt < feed.Data[i-1].CreatedAt {
			t.Errorf("event %d: %+v", i, e)
		}
		if e.Type == "points.expiring" && e.CreatedAt != lapses-noticeTime && e.CreatedAt < lapses {
			t.Errorf("%s is of %s, and the points lapse at %s", e.Type, e.CreatedAt, lapses)
		}
	}
	s.ask(200, "GET", "/transactions/"+sale.ID+"?explain=true", "", nil)
	s.fails(400, "/test/clock", `{"now":"2026-11-24"}`, "clock_backwards", "now", "El reloj de pruebas solo avanza")
	s.fails(400, "/test/clock", `{"advance":"90 días"}`, "invalid_field", "advance", "P90D")
	s.fails(400, "/test/clock", `{"advance":"P11Y"}`, "invalid_field", "advance", "10 años")
	s.fails(400, "/test/clock", `{"now":"2060-01-01"}`, "invalid_field", "now", "10 años")
	s.fails(400, "/test/clock", `{"now":"mañana"}`, "invalid_field", "now", "ISO 8601")
	s.fails(400, "/test/clock", `{"now":"2030-01-01","advance":"P1D"}`, "invalid_field", "advance", "now")
	s.fails(400, "/test/clock", `{}`, "invalid_field", "advance", "requerido")
	s.fails(400, "/test/sales", `{"customers":10001}`, "invalid_field", "customers", "entre 1 y 10000")
	s.fails(400, "/test/sales", `{"days":0}`, "invalid_field", "days", "entre 1 y 366")
	s.fails(400, "/test/sales", `{"seed":1.5}`, "invalid_field", "seed", "entero")
	s.ask(200, "POST", "/test/reset", "", &clock)
	if !strings.HasPrefix(clock.Now.String(), "2026-11-24T16:00:0") {
		t.Errorf("after a reset it is %s", clock.Now)
	}
	if _, list := s.get("/customers", s.Key); !strings.Contains(list, `"total":0`) {
		t.Errorf("after a reset: %s", list)
	}
	s.ask(201, "POST", "/customers", `{"phoneNumber":"55 8765 4321"}`, nil)
}

// TestSandboxSales: made-up sales of the last days are the same for the same seed, and add up.
func TestSandboxSales(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newTill(t)
	file := filepath.Join(s.dir, "pruebas.db")
	shop := s.sandbox(" -now 2026-11-24T20:00-06:00 -db " + file)
	var first, again, other salesShape
	shop.ask(200, "POST", "/test/sales", `{"customers":40,"days":60,"seed":7}`, &first)
	shop.ask(200, "POST", "/test/sales", `{"customers":40,"days":60,"seed":7}`, &again)
	shop.ask(200, "POST", "/test/sales", `{"customers":40,"days":60,"seed":8}`, &other)
	if first.Sales == 0 || first.Customers > 40 || first.Sales != again.Sales || first.Customers != again.Customers || first.Sales == other.Sales {
		t.Errorf("sales: %+v, %+v, %+v", first, again, other)
	}
	shop.ask(200, "POST", "/test/clock", `{"advance":"P1Y"}`, nil)
	if code := shop.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, shop.log)
	}
	if out := s.ok("verify -db " + file); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	for line, want := range map[string]string{
		"serve -addr 127.0.0.1:0 -db " + file:                                 "es de sello sandbox, para pruebas",
		"restore " + file:                                                     "es de sello sandbox, para pruebas",
		"demo -addr 127.0.0.1:0 -db " + file:                                  "tiene datos que no hizo sello demo",
		"sandbox -addr 127.0.0.1:0 -now 2027-01-01 -db " + file:               "-document y -now son para un archivo nuevo",
		"sandbox -addr 127.0.0.1:0 -db postgres://localhost/sello":            "una base de datos es de una tienda",
		"sandbox -addr 127.0.0.1:0 -now ayer":                                 "-now no es una fecha",
		"sandbox -addr 127.0.0.1:0 -document " + s.file("no.json", `{"a":1}`): "a:",
	} {
		if code, _, errs := s.run(line); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
	to := &invocation{db: "postgres://127.0.0.1:1/sello"}
	if err := (&copied{}).toDatabase(t.Context(), &invocation{db: file}, to); err == nil || !strings.Contains(err.Error(), "es de sello sandbox, para pruebas") {
		t.Errorf("copied: %v", err)
	}
	next := s.sandbox(" -db " + file)
	if next.Key != shop.Key || !strings.HasPrefix(next.Now.String(), "2027-11-2") {
		t.Errorf("opened again: %+v", next.sandboxStarted)
	}
	next.ask(200, "POST", "/test/reset", "", nil)
	if _, list := next.get("/customers", shop.Key); !strings.Contains(list, `"total":0`) {
		t.Errorf("after a reset: %s", list)
	}
}

// TestSandboxLeavesShops: a file that no sandbox made is refused, and is as it was; and serve has none of
// the routes, nor the header.
func TestSandboxLeavesShops(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	for _, db := range []string{s.env["SELLO_DB"], unpackFile(t, "schema11")} { // the second one is not migrated either
		before := readFile(t, db)
		if code, _, errs := s.run("sandbox -addr 127.0.0.1:0 -db " + db); code != 1 || !strings.Contains(errs, "no es un archivo de sello sandbox") {
			t.Errorf("exit %d: %s", code, errs)
		}
		if !bytes.Equal(readFile(t, db), before) {
			t.Errorf("%s is not as it was", db)
		}
	}
	text, _ := s.key("-name caja")
	server, _ := s.start("serve")
	for _, path := range []string{"/test/clock", "/test/reset", "/test/sales"} {
		if status, body := server.send("POST", path, text, "{}"); status != 404 {
			t.Errorf("serve has %s: %d %s", path, status, body)
		}
	}
	res, err := http.Get(server.base + "/organization")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.Header.Get("Sello-Mode") != "" {
		t.Error("serve says Sello-Mode")
	}
}

// TestSandboxMode: every answer says Sello-Mode, errors and the panel's too, and pages say what time it is.
func TestSandboxMode(t *testing.T) {
	t.Parallel()
	s := newTill(t).sandbox(" -now 2026-11-24T10:00-06:00")
	root := strings.TrimSuffix(s.base, "/api/v1")
	for _, path := range []string{"/api/v1/customers", "/api/v1/nada", "/panel", "/panel/entrar", "/livez", "/docs"} {
		res, err := http.Get(root + path)
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.Header.Get("Sello-Mode") != "test" {
			t.Errorf("%s has no Sello-Mode", path)
		}
		if path == "/panel/entrar" && !strings.Contains(string(page), "Pruebas: 24 nov 2026, 10:0") && !strings.Contains(string(page), "Pruebas: 24 nov 2026, 16:0") {
			t.Errorf("%s does not say the time: %s", path, page)
		}
	}
	v := newVisitor(t)
	_, page := v.get(s.Panel)
	v.press(s.Panel, page)
	s.ask(200, "POST", "/test/clock", `{"advance":"P90D"}`, nil)
	if _, home := v.get(root + "/panel"); !strings.Contains(home, "Elena Ortiz") || !strings.Contains(home, "Pruebas: 22 feb 2027, 10:0") {
		t.Errorf("90 days later the home page is %.2000s", home)
	}
}

// TestSandboxReference: the reference of a sandbox, and of no other server, has its own routes.
func TestSandboxReference(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
		Tags  []any
	}
	made := referenceFrom(sandboxOpenAPI())
	if err := json.Unmarshal(made.compact, &doc); err != nil {
		t.Fatal(err)
	}
	page := string(made.page.For("http://h"))
	for _, r := range new(sandbox).routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if op, _ := doc.Paths[path][strings.ToLower(method)].(map[string]any); op == nil || op["x-scope"] != r.scope {
			t.Errorf("%s: %v", r.pattern, op)
		}
		if !strings.Contains(page, path) || bytes.Contains(theReference().compact, []byte(path)) {
			t.Errorf("%s is not on the page, or on that of other servers", path)
		}
	}
	s := newTill(t).sandbox("")
	if status, text := s.send("GET", "/openapi.json", "", ""); status != 200 || !strings.Contains(text, `"/api/v1/test/clock"`) || !strings.Contains(text, s.Base[:len(s.Base)-len("/api/v1")]) {
		t.Errorf("%d %.300s", status, text)
	}
}

// TestSandboxStarts: -json is one line, and the clock begins in the years that it can show.
func TestSandboxStarts(t *testing.T) {
	t.Parallel()
	server, out := newTill(t).start("sandbox -json -now 1970-01-02")
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if started := new(sandboxStarted); err != nil || json.Unmarshal(line, started) != nil || !strings.HasPrefix(started.Now.String(), "1970-01-02") {
		t.Errorf("%s %v", line, err)
	}
	server.stop()
	for _, year := range []string{"1969-12-31", "9991-01-01"} {
		_, _, err := (&invocation{startAt: year}).sandboxInput()
		if err == nil || !strings.Contains(err.Error(), "entre 1970 y 9990") {
			t.Errorf("%s: %v", year, err)
		}
	}
}

// TestSandboxMigrated: a sandbox of before codes has them once it is migrated, and the same ones after
// a reset.
func TestSandboxMigrated(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	db := filepath.Join(s.dir, "box.db")
	s.sandbox(" -db " + db).stop()
	store, err := openBolt(db, disk.Options{Dense: denseTables})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), func(tx Tx) error {
		secret := codeSecretKey(1)
		return errors.Join(tx.Delete(secret), tx.Delete(append(tableSandbox.fixed(), secret...)), putUint(tx, newKey('v'), 13))
	})
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	box := s.sandbox(" -db " + db)
	codes := map[string]bool{}
	for range 2 {
		var ana struct{ MemberCode string }
		box.ask(201, "POST", "/customers", `{"email":"ana@example.com"}`, &ana)
		codes[ana.MemberCode] = true
		box.ask(200, "POST", "/test/reset", "{}", nil)
	}
	if len(codes) != 1 || codes[""] {
		t.Errorf("the first customer's codes are %v", codes)
	}
}

// TestSandboxErases: what deletes everything needs a key that may erase.
func TestSandboxErases(t *testing.T) {
	t.Parallel()
	for _, r := range new(sandbox).routes() {
		erases := strings.HasSuffix(r.pattern, "/reset") || strings.HasSuffix(r.pattern, "/sales")
		if want := map[bool]string{true: "customers:erase", false: "organization:read"}[erases]; r.scope != want {
			t.Errorf("%s needs %s, want %s", r.pattern, r.scope, want)
		}
	}
}

// TestSandboxZone: before a log-in the page names the zone of the time that it shows.
func TestSandboxZone(t *testing.T) {
	t.Parallel()
	at := instantOf(time.Date(2026, 11, 24, 16, 0, 0, 0, time.UTC))
	r := &panelRequest{exchange: &exchange{api: &api{mode: testMode}, request: request{now: at}}, lang: speaking("es")}
	said := prose{r.format(), r.lang}
	f := &pageData{format: said.format, prose: said, request: r}
	f.now = at
	same(t, "before a log-in", f.Testing(), "Pruebas: 24 nov 2026, 16:00 (UTC)")
}

// TestSandboxWebhook: a receiver on this machine gets what the clock brings, signed with the secret that
// was printed.
func TestSandboxWebhook(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if sent, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64); time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
			t.Errorf("sent at %d by the clock that was moved", sent) // a receiver refuses it
		}
		got <- string(body)
	}))
	defer receiver.Close()
	s := newTill(t)
	hooked := strings.Replace(string(demoDocument), "{", `{"webhooks":[{"key":"crm","url":"`+receiver.URL+`","events":["points.expired"]}],`, 1)
	shop := s.sandbox(" -document " + s.file("luna.json", hooked))
	if len(shop.Webhooks) != 1 || !strings.HasPrefix(shop.Webhooks[0].Secret, "whsec_") {
		t.Fatalf("printed: %+v", shop.sandboxStarted)
	}
	shop.ask(201, "POST", "/customers", `{"phoneNumber":"55 8765 4321"}`, nil)
	shop.ask(200, "POST", "/test/clock", `{"advance":"P90DT1S"}`, nil)
	select {
	case body := <-got:
		if !strings.Contains(body, `"type":"points.expired"`) {
			t.Error(body)
		}
	case <-time.After(30 * time.Second):
		t.Error("nothing came")
	}
}

// unsalted lists entries without what is random in them, the salts of comments and the hashes that
// follow from these, and events one by one, however many a transaction had.
func unsalted(s *shop, entries memTx) (list []string) {
	s.Helper()
	for _, e := range entries {
		value := string(e.Value)
		switch of, _ := tableOf(e.Key); of {
		case tableMovements:
			m, err := decodeRecord[movement](e.Value)
			s.ok(err)
			m.CommentHash, m.CommentSalt, m.Hash = ledgerHash{}, commentSalt{}, ledgerHash{}
			value = fmt.Sprintf("%+v", m)
		case tableAccounts:
			a, err := decodeRecord[account](e.Value)
			s.ok(err)
			a.Hash = ledgerHash{}
			value = string(appendRecord(nil, a))
		case tableEvents:
			told, err := eventsIn(Entry{Key: e.Key, Value: e.Value})
			s.ok(err)
			for _, one := range told {
				list = append(list, fmt.Sprintf("%+v", one))
			}
			continue
		}
		list = append(list, fmt.Sprintf("%x %x", e.Key, value))
	}
	return list
}

// TestPassTime: time that passes by the clock leaves the same records as a server that sweeps at each
// moment. SELLO_TEST_LONG=1 also measures a year of 10,000 customers.
func TestPassTime(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	skipUnderRace(t)
	begin := func(customers int) (*shop, *movedMachine) {
		s := madeUpShop(t, 1, customers, 200)
		s.engine.keepsEvents = true
		m := newMovedMachine(s.clock)
		s.engine.clock.Machine = m
		return s, m
	}
	s, m := begin(40)
	to := s.clock.add(300 * 24 * time.Hour)
	s.ok(s.engine.passTime(t.Context(), m, to))
	moved := s.entries()
	if got := instantOf(m.Read().Wall); got < to {
		t.Errorf("it is %s, want %s", got, to)
	}
	step, stepped := begin(40)
	for at := instant(0); at < to; {
		next, err := viewStore(t.Context(), step.engine.store, func(tx Tx) (instant, error) { return step.engine.nextDue(tx, 0, step.clock) })
		s.ok(err)
		at = min(max(next, step.clock), to)
		step.clock = at
		stepped.reach(at)
		s.ok(step.engine.sweepBy(context.Background(), func() (instant, error) { return at, nil }))
	}
	same(t, "what time brings, and what sweeps at each moment do", strings.Join(unsalted(s, moved), "\n"), strings.Join(unsalted(step, step.entries()), "\n"))
	if os.Getenv("SELLO_TEST_LONG") == "" {
		return
	}
	shop := newTill(t).sandbox(" -now 2026-11-24T10:00-06:00 -log-requests off")
	shop.ask(200, "POST", "/test/sales", `{"customers":10000,"days":366}`, nil)
	var result movedShape
	began := time.Now()
	shop.ask(200, "POST", "/test/clock", `{"advance":"P1Y"}`, &result)
	t.Logf("a year of 10,000 customers: %v, %v", time.Since(began), result.Events)
}

// TestSandboxResetsAmongWrites: while others write, a reset sets the clock back, and writes go on.
func TestSandboxResetsAmongWrites(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newTill(t).sandbox(" -now 2026-11-24T10:00-06:00 -log-requests off")
	done := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if status, body := s.send("POST", "/customers", s.Key, fmt.Sprintf(`{"email":"c%d-%d@example.com"}`, i, n)); status != 201 && status != 200 {
					t.Errorf("%d %s", status, body)
					return
				}
			}
		})
	}
	for range 8 {
		var now clockShape
		s.ask(200, "POST", "/test/clock", `{"advance":"P90D"}`, nil)
		s.ask(200, "POST", "/test/reset", `{}`, &now)
		if got := now.Now.time(); got.Year() != 2026 {
			t.Errorf("after a reset it is %v", got)
		}
	}
	close(done)
	writers.Wait()
}
