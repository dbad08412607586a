package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/host"
	"sello/internal/totp"
)

// An operatedShop is a shop with the panel on a file, in a server that does not listen. Its
// owner is its operator.
type operatedShop struct {
	panelShop *panelShop
	dir       string
	work      sync.WaitGroup // of tasks
	stop      func()         // ends them
}

func newOperatedShop(t *testing.T) *operatedShop {
	dir := t.TempDir()
	store := testBolt(t, filepath.Join(dir, "sello.db"), disk.Options{})
	base := newShopOn(t, store, "2026-03-02T10:00:00Z")
	base.apply(panelSetup.document())
	t.Cleanup(base.verified)
	s := &operatedShop{panelShop: newPanelShopOn(base), dir: filepath.Join(dir, "copias")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); stop(); s.work.Wait() })
	log := slog.New(slog.DiscardHandler)
	s.panelShop.panel.server = &panelServer{
		store: store, gate: newGate(l.(*net.TCPListener), 10, 10, nil, nil, log), space: new(host.Space), hooks: newDeliverer(s.panelShop.shop.engine, nil, log),
		plan:  &backupPlan{dir: s.dir, name: "sello-", make: store.backup, now: s.panelShop.shop.engine.now, log: log, state: new(backupState)},
		build: thisBuild(), started: s.panelShop.shop.clock, sweepLag: func() float64 { return math.NaN() },
		check:      (&admin{engine: s.panelShop.shop.engine, flush: func(context.Context) error { return nil }, inServer: true}).verifyTelling,
		background: func(work func(context.Context)) { s.work.Go(func() { work(ctx) }) },
	}
	s.panelShop.operates(roleOwner)
	return s
}

// operates makes a user of the shop an operator, with the second factor that this needs.
func (s *panelShop) operates(as role) {
	s.shop.Helper()
	must(s.shop, func(t *txn) (any, error) {
		u, err := userByID(t.Tx, s.users[as])
		if err != nil {
			return nil, err
		}
		if err := t.people.saveFactor(u.ID, &secondFactor{Secret: make([]byte, totp.Secret), Since: t.now}); err != nil {
			return nil, err
		}
		return nil, t.people.setOperator(u, true)
	})
}

const backupsPath, verifyPath = operatorPath + "/copias", operatorPath + "/verificacion"

func (s *operatedShop) main(path string) string {
	s.panelShop.shop.Helper()
	w := s.panelShop.open(roleOwner, path)
	if w.Code != http.StatusOK {
		s.panelShop.shop.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return mainOf(w.Body.String())
}

// TestOperatorDatabase: on a database the pages show its name, and neither files nor backups.
func TestOperatorDatabase(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	server := s.panelShop.panel.server
	fileOnly := []string{"Libre en el disco", "<dt>Diario</dt>", "<dt>Archivo</dt>", "No hay copias programadas", backupsPath}
	page := s.main(operatorPath)
	for _, text := range fileOnly {
		if !strings.Contains(page, text) {
			t.Errorf("a file's page has no %q", text)
		}
	}
	server.store, server.plan, server.name = newMemStore(), nil, "postgres://db:5432/sello"
	page = s.main(operatorPath)
	for _, text := range fileOnly {
		if strings.Contains(page, text) {
			t.Errorf("a database's page has %q", text)
		}
	}
	if !strings.Contains(page, "<dt>Base de datos</dt><dd>postgres://db:5432/sello</dd>") {
		t.Errorf("no name of the database in\n%s", page)
	}
	if w := s.panelShop.get(roleOwner, backupsPath); w.Code != http.StatusNotFound {
		t.Errorf("the page of backups: %d", w.Code)
	}
}

// TestOperatorAlone: the pages are for users with the flag, whatever their role.
func TestOperatorAlone(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	for _, page := range operatorArea().pages {
		if page.template == "" {
			continue
		}
		if w := s.panelShop.get(roleOwner, page.path); w.Code != http.StatusOK {
			t.Errorf("%s: %d", page.path, w.Code)
		}
		for _, r := range roles[1:] {
			if w := s.panelShop.get(r, page.path); w.Code != http.StatusForbidden {
				t.Errorf("%s as %s: %d", page.path, r, w.Code)
			}
		}
	}
	for _, f := range operatorArea().forms {
		if w := s.panelShop.post(roleAdmin, f.path, url.Values{}); w.Code != http.StatusForbidden {
			t.Errorf("POST %s: %d", f.path, w.Code)
		}
	}
	if nav := s.panelShop.get(roleOwner, auditPath).Body.String(); !strings.Contains(nav, `href="`+operatorPath+`"`) {
		t.Error("the operator's navigation has no server")
	}
	if nav := s.panelShop.get(roleAdmin, auditPath).Body.String(); strings.Contains(nav, operatorPath) {
		t.Error("an administrator's navigation has the server")
	}
}

// TestOperatorBackup: a backup is made once, is listed with its size, is a good file, and
// leaves one entry in the audit log; a directory that cannot be written is said with its cause.
// Panel check 57.
func TestOperatorBackup(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	s.panelShop.shop.customer("ana")
	if body := s.main(backupsPath); !strings.Contains(body, "Todavía no hay ninguna copia") {
		t.Error(body)
	}
	entries := ask(s.panelShop.shop, (*txn).count).Audit
	w := s.panelShop.post(roleOwner, backupsPath, url.Values{})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != backupsPath {
		t.Fatal(w.Code, w.Body)
	}
	s.work.Wait()
	if n := ask(s.panelShop.shop, (*txn).count).Audit; n != entries+1 {
		t.Errorf("%d entries in the audit log, want %d", n, entries+1)
	}
	if log := s.main(auditPath); !strings.Contains(log, "Pidió una copia del archivo") {
		t.Error(log)
	}
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.db"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	info, err := os.Stat(files[0])
	s.panelShop.shop.ok(err)
	said := prose{&format{country: "MX", zone: time.UTC}, speaking("es")}
	f := &pageData{format: said.format, prose: said}
	body := s.main(backupsPath)
	for _, text := range []string{filepath.Base(files[0]), f.Bytes(info.Size()), "Copia hecha y comprobada"} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q: %s", text, body)
		}
	}
	till := newTill(t)
	till.env["SELLO_DB"] = files[0]
	if out := till.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	s.panelShop.panel.server.plan.dir = filepath.Join(s.dir, "nada")
	s.panelShop.post(roleOwner, backupsPath, url.Values{})
	s.work.Wait()
	body = s.main(backupsPath)
	if !strings.Contains(body, "No se pudo hacer la copia") || !strings.Contains(body, "no existe") || !strings.Contains(body, "No se puede leer") {
		t.Error(body)
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 { // who may write anywhere
		return
	}
	s.panelShop.shop.ok(os.Chmod(s.dir, 0o500))
	defer os.Chmod(s.dir, 0o700)
	s.panelShop.panel.server.plan.dir = s.dir
	s.panelShop.shop.pass(time.Minute)
	s.panelShop.post(roleOwner, backupsPath, url.Values{})
	s.work.Wait()
	if body := s.main(backupsPath); !strings.Contains(body, "No se pudo hacer la copia") || !strings.Contains(body, "permiso") {
		t.Error(body)
	}
}

// TestOperatorVerify: a verification runs beside sales, one at a time, shows how far it has
// come and then what it found; one that the server's stop ends is said to have failed.
// Panel check 58.
func TestOperatorVerify(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	c := s.panelShop.shop.customer("ana")
	begun, goOn := make(chan struct{}), make(chan struct{})
	check := s.panelShop.panel.server.check
	s.panelShop.panel.server.check = func(ctx context.Context, in verifyRequest, p *verifyProgress) (*verification, error) {
		begun <- struct{}{}
		select {
		case <-goOn:
			return check(ctx, in, p)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	entries := ask(s.panelShop.shop, (*txn).count).Audit
	s.panelShop.post(roleOwner, verifyPath, url.Values{})
	<-begun
	s.panelShop.post(roleOwner, verifyPath, url.Values{}) // does nothing: one is under way
	body := s.main(verifyPath)
	if !strings.Contains(body, "data-poll") || !strings.Contains(body, "<progress") || !strings.Contains(body, "Actualizar") || strings.Contains(body, "<form") {
		t.Error(body)
	}
	s.panelShop.shop.buy(c, "100")
	close(goOn)
	s.work.Wait()
	if n := ask(s.panelShop.shop, (*txn).count).Audit; n != entries+1 {
		t.Errorf("%d entries in the audit log, want %d", n, entries+1)
	}
	body = s.main(verifyPath)
	if strings.Contains(body, "data-poll") || !strings.Contains(body, "Todo cuadra") || !strings.Contains(body, verifyPath+"/huellas") {
		t.Error(body)
	}
	if log := s.main(auditPath); !strings.Contains(log, "Pidió verificar el archivo") {
		t.Error(log)
	}
	var out verification
	w := s.panelShop.get(roleOwner, verifyPath+"/huellas")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Ledgers) != 1 || out.Ledgers[0].Movements != 1 {
		t.Errorf("%v %s", err, w.Body)
	}
	goOn = make(chan struct{})
	s.panelShop.post(roleOwner, verifyPath, url.Values{})
	<-begun
	s.stop()
	s.work.Wait()
	if _, last := s.panelShop.panel.server.checking.runs(); !errors.Is(last.Err, context.Canceled) {
		t.Error(last.Err)
	}
	if body := s.main(verifyPath); !strings.Contains(body, "No se pudo completar") {
		t.Error(body)
	}
}

// TestOperatorProblems: of what a verification finds wrong the page has numbers alone.
func TestOperatorProblems(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	s.panelShop.panel.server.check = func(context.Context, verifyRequest, *verifyProgress) (*verification, error) {
		return &verification{
			Problems: []string{"cafe-luna: ana@example.com falta", "entrada que no es de nada: 6e61", "cafe-luna: otra"},
			Ledgers:  []ledgerState{{Organization: "cafe-luna"}},
		}, nil
	}
	s.panelShop.post(roleOwner, verifyPath, url.Values{})
	s.work.Wait()
	body := s.main(verifyPath)
	if !strings.Contains(body, "<dt>cafe-luna</dt><dd>2</dd></div><div><dt>del archivo</dt><dd>1</dd>") || strings.Contains(body, "ana@") || strings.Contains(body, "6e61") {
		t.Error(body)
	}
}

// TestOperatorSeesNoCustomers: no page of the operator's has a customer's name, phone or e-mail.
// Panel check 59.
func TestOperatorSeesNoCustomers(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	c := must(s.panelShop.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Xochitlquetzal", LastName: "Zempoaltecatl", Email: "xochi@zempo.example", Phone: "+525598761234"})
		return c.ID, err
	})
	s.panelShop.shop.buy(c, "100")
	for _, path := range []string{backupsPath, verifyPath} {
		s.panelShop.post(roleOwner, path, url.Values{})
		s.work.Wait()
	}
	secrets := regexp.MustCompile(`(?i)xochi|zempo|5598761234|` + c.String())
	for _, page := range operatorArea().pages {
		body := s.panelShop.get(roleOwner, page.path).Body.String()
		if found := secrets.FindString(body); found != "" {
			t.Errorf("%s has %q", page.path, found)
		}
	}
	if body := s.main(operatorPath + "/organizaciones"); !strings.Contains(body, "cafe-luna") {
		t.Error(body)
	}
	if body := s.main(operatorPath + "/usuarios"); !strings.Contains(body, "owner@example.com") || !strings.Contains(body, "operador") {
		t.Error(body)
	}
}

// TestUsersAfter: pages of users go through all of them, in order, each once.
func TestUsersAfter(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for most := 1; most <= len(roles)+1; most++ {
		var got []string
		for after := ""; ; {
			list := ask(s.shop, func(t *txn) ([]*user, error) { return usersAfter(t.Tx, after, most) })
			for _, u := range list {
				got = append(got, u.Email)
			}
			if len(list) < most {
				break
			}
			after = got[len(got)-1]
		}
		if want := "admin@example.com cashier@example.com developer@example.com manager@example.com owner@example.com viewer@example.com"; strings.Join(got, " ") != want {
			t.Errorf("%d at a time: %s", most, got)
		}
	}
}

// TestSizes writes lengths and spans of time for people.
func TestSizes(t *testing.T) {
	t.Parallel()
	said := prose{&format{country: "MX", zone: time.UTC}, speaking("es")}
	f := &pageData{format: said.format, prose: said}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 1549: "1.5 kB", 99_960: "100 kB", 999_499: "999 kB", 999_500: "1 MB", 41_230_000: "41.2 MB", 2_500_000_000: "2.5 GB"} {
		if got := strings.ReplaceAll(f.Bytes(n), nbsp, " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for seconds, want := range map[float64]string{0: "0 s", 0.04: "0.1 s", 5: "5 s", 60: "1 min", 95: "1 min 35 s", 3600: "1 h", 5400: "1 h 30 min", 86400: "1 d", 97200: "1 d 3 h", 86700: "1 d"} {
		if got := strings.ReplaceAll(f.Span(seconds), nbsp, " "); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
}

// TestOperatorProves: a backup and a verification need the password to have been given lately.
func TestOperatorProves(t *testing.T) {
	t.Parallel()
	s := newOperatedShop(t)
	s.panelShop.shop.pass(proofHolds)
	before := s.panelShop.shop.entries()
	for _, path := range []string{backupsPath, verifyPath} {
		w := s.panelShop.post(roleOwner, path, url.Values{})
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), provePath) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	same(t, "the store", s.panelShop.shop.entries(), before)
	plan := s.panelShop.panel.server.plan
	if made, err := plan.copies().Made(plan.now()); err != nil || len(made) > 0 {
		t.Errorf("%d backups, %v", len(made), err)
	}
}
