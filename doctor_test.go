package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/cert/certtest"
	"sello/internal/disk"
	"sello/internal/wallclock"
)

// doctor runs sello doctor. It checks that the exit code follows from what was found, and that
// no file was touched.
func (s *till) doctor(line string) map[string]diagnosis {
	s.Helper()
	before := s.contents()
	code, out, errs := s.run("doctor -json " + line)
	var report checkup
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		s.Fatalf("sello doctor %s: exit %d, %v\n%s%s", line, code, err, out, errs)
	}
	found := map[string]diagnosis{}
	wrong := 0
	for _, f := range report.Checks {
		if !f.OK {
			wrong++
		}
		if old, twice := found[f.Check]; !twice || old.OK {
			found[f.Check] = f
		}
	}
	if (code == 1) != (wrong > 0) || report.OK != (wrong == 0) || strings.Contains(errs, "por arreglar") != (wrong > 0) {
		s.Errorf("sello doctor %s: exit %d, %t, with %d faults: %s", line, code, report.OK, wrong, errs)
	}
	if after := s.contents(); !maps.Equal(after, before) {
		s.Errorf("sello doctor %s changed a file", line)
	}
	return found
}

// contents returns the content of each file in the till's directory.
func (s *till) contents() map[string][sha256.Size]byte {
	s.Helper()
	all := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		all[path] = [sha256.Size]byte(sum.Sum(nil))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// backedUpAt makes an empty file that is named as a backup of a moment.
func (s *till) backedUpAt(dir string, at time.Time) {
	s.Helper()
	if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
		s.Fatal(err)
	}
	s.file(filepath.Join(dir, "sello-"+at.UTC().Format(backupStamp)+".db"), "")
}

const hookedDocument = `{"webhooks":[{"key":"crm","url":"https://crm.example.com/","events":["*"]}],`

// TestDoctor looks at a file without a server, with each fault.
func TestDoctor(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const day = 24 * time.Hour
	certificate := func(from, until time.Duration) func(*till) {
		return func(s *till) {
			now := time.Now()
			certtest.Issue(s.T, filepath.Join(s.dir, "c.pem"), filepath.Join(s.dir, "k.pem"), "x", now.Add(from), now.Add(until))
		}
	}
	const tls = "-tls-cert DIR/c.pem -tls-key DIR/k.pem"
	for _, test := range []struct {
		reason  string
		prepare func(*till)
		line    string
		check   string
		ok      bool
		text    string
	}{
		{"a file that is fine", nil, "", "file", true, "/sello.db: esquema 14, 1 organización; sello verify lo comprueba entero"},
		{"no file", nil, "-db DIR/none/sello.db", "file", false, "none/sello.db: no existe: sello apply hace uno; si ya hay, dilo con -db"},
		{"no data file", func(s *till) { os.Mkdir(s.dir+"/x", 0o700); s.file("x/sello.db", strings.Repeat("x", 9000)) }, "-db DIR/x/sello.db", "file", false, "/x/sello.db: no es un archivo de sello"},
		{"a file of a later schema", raiseSchema, "", "file", false, "sello.db: el archivo es del esquema 15"},
		{"the clock", nil, "", "clock", true, "fiable, "},
		{"no backups", nil, "-backup-every 0 -backup-dir=", "backups", false, "no hay copias programadas: sello serve las hace con -backup-every y -backup-dir"},
		{"a backup that is recent", nil, "", "backups", true, "/backups: la última es de 20"},
		{"no directory for backups", nil, "-backup-dir DIR/none", "backups", false, "none: no existe"},
		{"no backup in it", func(s *till) { os.Mkdir(s.dir+"/new", 0o700) }, "-backup-dir DIR/new", "backups", false, "/new: no hay ninguna; el servidor hace la primera"},
		{"a backup that is old", func(s *till) { s.backedUpAt("old", time.Now().Add(-3*time.Hour)) }, "-backup-dir DIR/old", "backups", false, ", y debería haber una cada 1h: el registro"},
		{"one that is late once", func(s *till) { s.backedUpAt("late", time.Now().Add(-90*time.Minute)) }, "-backup-dir DIR/late", "backups", true, "/late: la última es de 20"},
		{"no certificate", nil, "", "certificate", true, "no hay: la API va por HTTP"},
		{"no key", nil, "-tls-cert DIR/c.pem", "certificate", false, "-tls-cert y -tls-key van juntas"},
		{"no files of a certificate", nil, tls, "certificate", false, "c.pem: no existe"},
		{"a good certificate", certificate(-day, 90*day), tls, "certificate", true, "/c.pem: vence 20"},
		{"one that ends soon", certificate(-90*day, 13*day), tls, "certificate", false, ": pon uno nuevo en su lugar; no hace falta reiniciar"},
		{"an expired one", certificate(-90*day, -time.Hour), tls, "certificate", false, "/c.pem: venció 20"},
		{"one that is not valid yet", certificate(day, 90*day), tls, "certificate", false, "/c.pem: no vale hasta 20"},
		{"the panel is off on purpose", nil, "", "panel", true, "apagado con -panel off"},
		{"the panel is off for want of an address", nil, "-panel= -addr 0.0.0.0:0", "panel", false, "-panel https://… lo enciende"},
		{"the panel on the loopback", nil, "-panel= -addr 127.0.0.1:0", "panel", true, "http://127.0.0.1:0/panel"},
		{"a proxy that is not trusted", nil, "-panel https://puntos.example.mx", "panel", false, "-trusted-proxies no nombra"},
		{"a proxy that is", nil, "-panel https://puntos.example.mx -trusted-proxies 127.0.0.1", "panel", true, "https://puntos.example.mx/panel"},
		{"no webhooks", nil, "", "webhooks", true, "no hay"},
		{"a webhook without a secret", func(s *till) { s.ok("apply -", hookedDocument+string(demoDocument[1:])) }, "", "webhooks", false, "cafe-luna: crm sin secreto: sello webhook secret crm"},
		{"a webhook", func(s *till) { s.ok("apply -", hookedDocument+string(demoDocument[1:])); s.ok("webhook secret crm") }, "", "webhooks", true, "todos reciben: 1"},
		{"no server", nil, "", "server", true, "no está en marcha"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newTill(t)
			s.ok("apply -", string(demoDocument))
			s.backedUpAt("backups", time.Now())
			if test.prepare != nil {
				test.prepare(s)
			}
			line := strings.ReplaceAll("-panel off -backup-every 1h -backup-dir DIR/backups "+test.line, "DIR", s.dir)
			found := s.doctor(line)
			if got := found[test.check]; got.OK != test.ok || !strings.Contains(got.Text, test.text) {
				t.Errorf("%s %t: %s\nwant %t: %s", test.check, got.OK, got.Text, test.ok, test.text)
			}
			for name, f := range found {
				if name != test.check && name != "disk" && !f.OK {
					t.Errorf("%s is wrong, too: %s", name, f.Text)
				}
			}
			if _, told := found["clock"]; told != found["file"].OK {
				t.Errorf("of a file that opens: %t; the clock is told: %t", found["file"].OK, told)
			}
		})
	}
}

// raiseSchema makes the till's file one of a later schema.
func raiseSchema(s *till) {
	store, err := openBolt(s.env["SELLO_DB"], disk.Options{Dense: denseTables})
	if err == nil {
		err = errors.Join(store.Update(s.Context(), func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion+1) }), store.Close())
	}
	if err != nil {
		s.Fatal(err)
	}
}

// TestDoctorSees has the checks judge what a test cannot bring about.
func TestDoctorSees(t *testing.T) {
	t.Parallel()
	last := func(look func(*doctor)) string {
		d := &doctor{file: "/a.db", now: time.Now()}
		look(d)
		f := d.found[len(d.found)-1]
		return fmt.Sprintf("%s %t: %s", f.Check, f.OK, f.Text)
	}
	hook := func(l listedWebhook) func(*doctor) {
		l.Key, l.HasSecret, l.Sent = "crm", true, 5
		if l.Status == "" {
			l.Status = statusActive
		}
		return func(d *doctor) { d.webhooks([]string{"luna"}, map[string][]listedWebhook{"luna": {l}}) }
	}
	const gb = 1_000_000_000
	at := instant(1_790_000_000_000)
	for _, test := range []struct {
		look func(*doctor)
		want string
	}{
		{func(d *doctor) { d.clock(&clockReport{State: wallclock.Behind}) }, "clock false: atrasado: la API no escribe nada hasta que se corrija"},
		{func(d *doctor) { d.clock(&clockReport{State: wallclock.Ahead}) }, "clock false: adelantado: la API no escribe nada hasta que se corrija"},
		{func(d *doctor) { d.disk("/x", 10*gb, 40*gb) }, "disk true: /x: quedan 10.0 GB de 40.0 GB"},
		{func(d *doctor) { d.disk("/x", gb, 40*gb) }, "disk false: /x: quedan 1.0 GB de 40.0 GB: borra lo que sobre"},
		{hook(listedWebhook{Pending: 3, Oldest: at}), "webhooks true: todos reciben: 1"},
		{hook(listedWebhook{Paused: at, Why: "timeout"}), "webhooks false: luna: crm en pausa desde 2026-09-21T14:13Z"},
		{hook(listedWebhook{Failing: at, Next: at, Why: "timeout"}), "webhooks false: luna: crm falla desde 2026-09-21T14:13Z"},
		{hook(listedWebhook{Failing: at, webhookDoc: webhookDoc{Status: statusInactive}}), "webhooks true: todos reciben: 1"},
		{func(d *doctor) { d.unreadable(os.ErrPermission) }, "file false: /a.db: sin permiso; repite con el usuario del servidor"},
	} {
		if got := last(test.look); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Error(r.URL)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	ready := func(want string, fine bool, build buildInfo) {
		t.Helper()
		d := &doctor{now: time.Now(), settings: serverSettings{Addr: addr, Build: build}, served: true}
		if text, ok := d.ready(t.Context(), addr); ok != fine || !strings.Contains(text, want) {
			t.Errorf("%t: %s\nwant %t: %s", ok, text, fine, want)
		}
	}
	ready("responde en "+addr+", sello ", true, thisBuild())
	ready("reinícialo", false, buildInfo{Version: noVersion, Schema: 1})
	status = http.StatusServiceUnavailable
	ready("no está listo (HTTP 503)", false, thisBuild())
	// Without a server with this file, what listens at its address is told; it is a fault where the
	// address was given.
	listens := func(given bool, what, addr string) {
		t.Helper()
		d := &doctor{settings: serverSettings{Addr: addr}, listens: given}
		d.server(t.Context())
		want := fmt.Sprintf("no está en marcha con este archivo, y %s escucha en %s", what, addr)
		if given {
			want += ": detenlo, o usa otra -addr"
		}
		same(t, "what listens", d.found, []diagnosis{{"server", !given, want}})
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	listens(false, "otro programa", other.Listener.Addr().String())
	listens(true, "otro programa", other.Listener.Addr().String())
	sello, _ := newTill(t).start("serve -panel off")
	defer sello.stop()
	listens(false, "un sello con otro archivo", strings.TrimSuffix(strings.TrimPrefix(sello.base, "http://"), "/api/v1"))
	proxy := httptest.NewServer(http.RedirectHandler(sello.base+"/openapi.json", http.StatusFound))
	defer proxy.Close()
	listens(false, "otro programa", proxy.Listener.Addr().String())
	server.Close()
	ready("no responde en "+addr, false, thisBuild())
}

// TestBuildsDiffer: builds are of different sources where that is known.
func TestBuildsDiffer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b   buildInfo
		differ bool
		reason string
	}{
		{buildInfo{Version: noVersion}, buildInfo{Version: noVersion}, false, "go run, twice"},
		{buildInfo{Version: noVersion}, buildInfo{Version: noVersion, Schema: 1}, true, "which write other files"},
		{buildInfo{Version: noVersion}, buildInfo{Version: "v0.0.0-2026", Revision: "a"}, false, "go run beside go build"},
		{buildInfo{Version: noVersion, Revision: "a"}, buildInfo{Version: "v1.0.0", Revision: "a"}, false, "one commit by two names"},
		{buildInfo{Version: "v1.0.0", Revision: "a"}, buildInfo{Version: "v1.0.0"}, false, "go install, which tells no commit"},
		{buildInfo{Version: noVersion, Revision: "a"}, buildInfo{Version: noVersion, Revision: "b"}, true, "two commits"},
		{buildInfo{Revision: "a", Modified: true}, buildInfo{Revision: "a"}, true, "a commit, and what is made of it"},
		{buildInfo{Version: "v1.0.0"}, buildInfo{Version: "v1.0.1"}, true, "two versions"},
	} {
		if test.a.differs(test.b) != test.differ || test.b.differs(test.a) != test.differ {
			t.Errorf("%s: want %t", test.reason, test.differ)
		}
	}
}

// TestDoctorServed looks at a running server: its settings count, not those of the command.
func TestDoctorServed(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.backedUpAt("backups", time.Now())
	certFile, keyFile := filepath.Join(s.dir, "c.pem"), filepath.Join(s.dir, "k.pem")
	certtest.Issue(t, certFile, keyFile, "x", time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour))
	r, _ := s.start("serve -backup-every 1h -backup-dir " + s.dir + "/backups -tls-cert " + certFile + " -tls-key " + keyFile)
	addr := strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1")
	code, out, errs := s.run("doctor -addr 0.0.0.0:1 -backup-every 5m -backup-dir " + s.dir)
	var names []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if names = append(names, fields[0]); fields[1] != "ok" && fields[0] != "disco" {
			t.Error(line)
		}
	}
	want := []string{"archivo", "reloj", "disco", "disco", "copias", "certificado", "panel", "webhooks", "servidor"}
	if !slices.Equal(names, want) || strings.Contains(errs, "por arreglar") != (code == 1) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{s.dir + "/backups: la última es de 20", certFile + ": vence 20", "https://" + addr + "/panel", "responde en " + addr + ", sello "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	r.stop()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.env["SELLO_ADDR"], s.env["SELLO_PANEL"] = taken.Addr().String(), "off"
	if got := s.doctor("")["server"]; got.OK || !strings.Contains(got.Text, "otro programa escucha en "+taken.Addr().String()) {
		t.Errorf("%+v", got)
	}
	for line, want := range map[string]string{"doctor x": "no lleva argumentos", "doctor -panel puntos": "-panel debe tener la forma", "doctor -addr x": "-addr debe tener la forma"} {
		if code, _, errs := s.run(line); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("sello %s: exit %d, %s", line, code, errs)
		}
	}
}

// TestDoctorCards: cards are told where there are some, without a server and with one, and are
// wrong where others in the network can read their addresses.
func TestDoctorCards(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	for _, test := range []struct {
		flags, text string
		ok          bool
	}{
		{"", "", false},
		{"-cards https://club.example.mx", "https://club.example.mx", true},
		{"-cards http://127.0.0.1:8090 -cards-addr 127.0.0.1:0", "http://127.0.0.1:8090", true},
		{"-cards http://192.168.1.10:8090", "http://192.168.1.10:8090: va sin cifrar, y quien esté en la misma red puede leer la dirección de una tarjeta; ponle https", false},
		{"-cards http://club.example.mx", "http://club.example.mx: va sin cifrar", false},
	} {
		look := func(of string, found map[string]diagnosis) {
			t.Helper()
			got, told := found["cards"]
			if told != (test.text != "") || got.OK != test.ok || !strings.HasPrefix(got.Text, test.text) {
				t.Errorf("%q, %s: told %t, %t %s", test.flags, of, told, got.OK, got.Text)
			}
		}
		look("without a server", s.doctor(test.flags))
		r, _ := s.start("serve " + test.flags)
		code, out, _ := s.run("doctor -cards https://otro.example.mx") // the server's count
		if line := cardsLine.FindString(out); (line != "") != (test.text != "") || !strings.Contains(line, test.text) || strings.Contains(line, " mal ") && code != 1 {
			t.Errorf("%q, with a server: exit %d\n%s", test.flags, code, out)
		}
		r.stop()
	}
}

// cardsLine is the line of cards in what sello doctor writes.
var cardsLine = regexp.MustCompile(`(?m)^tarjetas .*$`)
