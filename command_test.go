package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"sello/internal/disk"
)

// TestProgressLine: where there is no terminal nothing is written of how far a command has come.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument)) // which fails if there is anything on standard error
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
}

// TestProgressOfOperations: each long operation says how far it has come, and comes to its end.
func TestProgressOfOperations(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	rows := []byte("email,phoneNumber\n")
	for i := range 300 {
		rows = fmt.Appendf(rows, "c%d@example.com,\n", i)
	}
	s.ok("import customers " + s.file("c.csv", string(rows)))
	c := &invocation{db: s.env["SELLO_DB"], environment: environment{stderr: new(bytes.Buffer)}}
	copied := filepath.Join(s.dir, "copy.db")
	for _, test := range []struct {
		name  string
		least float64
		run   func(ctx context.Context) error
	}{
		{"verify", 0.9, func(ctx context.Context) error { // its last customers are told together
			return c.withAdmin(ctx, false, func(call adminCaller) error { return call(ctx, "verify", verifyRequest{}, new(verification)) })
		}},
		{"backup", 0.95, func(ctx context.Context) error {
			return c.withAdmin(ctx, false, func(call adminCaller) error {
				return call(ctx, "backup", backupRequest{File: copied}, new(backedUp))
			})
		}},
		{"restore", 1, (&restored{From: copied, File: filepath.Join(s.dir, "restored.db")}).restore},
		{"compact", 1, func(ctx context.Context) error {
			store, err := openBolt(c.db, disk.Options{MustExist: true, Dense: denseTables})
			if err == nil {
				_, err = store.compact(ctx)
			}
			return err
		}},
	} {
		var done disk.Progress
		if err := test.run(disk.WithProgress(t.Context(), &done)); err != nil || done.Done() < test.least || done.Done() > 1 {
			t.Errorf("%s: %v, %v of 1 done", test.name, err, done.Done())
		}
	}
	read := &readPart{ReadSeeker: bytes.NewReader(rows)}
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{read}); err != nil || read.at != n {
		t.Errorf("%d of %d read, %v", read.at, n, err)
	}
	if at, err := read.Seek(5, io.SeekStart); err != nil || read.at != at || at != 5 {
		t.Errorf("%d, %v", read.at, err)
	}
}

// TestPanelAddress shows which addresses of the panel are taken, and what follows from each.
// Panel check 5.
func TestPanelAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		given  string
		origin string
		secure bool
		plain  bool     // without TLS over a network
		hosts  []string // that are its own
		others []string
	}{
		{"https://Puntos.example.mx", "https://puntos.example.mx", true, false, []string{"puntos.example.mx"}, []string{"puntos.example.mx:8080", "evil.test", "", "x.puntos.example.mx"}},
		{"https://puntos.example.mx:443/", "https://puntos.example.mx", true, false, []string{"puntos.example.mx"}, []string{"127.0.0.1"}},
		{"https://puntos.example.mx:8443", "https://puntos.example.mx:8443", true, false, []string{"puntos.example.mx:8443"}, []string{"puntos.example.mx"}},
		{"http://192.168.1.10:8080", "http://192.168.1.10:8080", false, true, []string{"192.168.1.10:8080"}, []string{"192.168.1.10", "localhost:8080"}},
		{"http://tienda.test:80", "http://tienda.test", false, true, []string{"tienda.test"}, []string{"tienda.test:80"}},
		{"http://localhost:8080", "http://localhost:8080", false, false, []string{"localhost:8080"}, []string{"localhost", "127.0.0.1:8080"}},
		{"http://[fd00::1]:8080", "http://[fd00::1]:8080", false, true, []string{"[fd00::1]:8080"}, []string{"[fd00::2]:8080"}},
		{"", "", false, false, []string{"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "127.0.0.2"}, []string{"evil.test", "localhost.evil.test", "192.168.1.10", "", "0.0.0.0:8080"}},
	} {
		a, on, err := parsePanelAddress(test.given)
		if err != nil || !on || a.origin() != test.origin || a.isSecure() != test.secure || a.isPlain() != test.plain {
			t.Errorf("%q: %q, on %t, secure %t, plain %t, %v", test.given, a.origin(), on, a.isSecure(), a.isPlain(), err)
		}
		for _, host := range test.hosts {
			if !a.allows(host) {
				t.Errorf("%q refuses %q", test.given, host)
			}
		}
		for _, host := range test.others {
			if a.allows(host) {
				t.Errorf("%q allows %q", test.given, host)
			}
		}
		c := a.cookie("x")
		if want := map[bool]string{true: "__Host-sello", false: "sello"}[test.secure]; c.Name != want || c.Secure != test.secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" {
			t.Errorf("%q: the cookie is %v", test.given, c)
		}
	}
	if _, on, err := parsePanelAddress("off"); on || err != nil {
		t.Errorf("off is on: %v", err)
	}
	for _, given := range []string{
		"puntos.example.mx", "ftp://a.mx", "https://", "https://a.mx/panel", "https://a.mx?x", "https://a.mx?", "https://a.mx#x", "https://ana@a.mx",
		"https://a.mx:", "//a.mx", "https://a.mx:x", "https://tiendañ.mx", "on", "http://:8080",
	} {
		_, _, err := parsePanelAddress(given)
		if e, ok := errors.AsType[*usageError](err); !ok || !strings.HasPrefix(e.message, "-panel ") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestPanelServed shows where a server without -panel has one.
func TestPanelServed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, cert, listens, want string }{
		{"", "", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", "", "[::1]:8080", "http://[::1]:8080"},
		{"", "c.pem", "127.0.0.1:8443", "https://127.0.0.1:8443"},
		{"", "", "0.0.0.0:8080", ""},
		{"", "", "[::]:8080", ""},
		{"", "", "192.168.1.10:8080", ""},
		{"off", "", "127.0.0.1:8080", ""},
		{"https://a.mx", "", "0.0.0.0:8080", "https://a.mx"},
	} {
		c := &invocation{panel: test.given, tlsCert: test.cert, panelIdle: usualSessionLimits().idle, panelLongest: usualSessionLimits().longest}
		if err := c.checkPanel(); err != nil {
			t.Fatal(err)
		}
		at, err := net.ResolveTCPAddr("tcp", test.listens)
		if err != nil {
			t.Fatal(err)
		}
		if _, link := c.panelServed(at); link != test.want {
			t.Errorf("-panel %q, listening at %s: %q, want %q", test.given, test.listens, link, test.want)
		}
	}
}

// TestCardsFlags shows which addresses of cards are taken, and that each fault of them is one of the
// command line, on it or in the environment, and leaves no file.
func TestCardsFlags(t *testing.T) {
	t.Parallel()
	const nowhere = " -addr 256.0.0.1:1 " // a server that takes what it should refuse ends, too
	for line, want := range map[string]string{
		"-cards https://club.example.mx/t":                                      "-cards no lleva ruta, parámetros ni usuario: las tarjetas están siempre en /t/",
		"-cards https://club.example.mx?x=1":                                    "-cards no lleva ruta",
		"-cards https://ana@club.example.mx":                                    "-cards no lleva ruta",
		"-cards club.example.mx":                                                "-cards debe tener la forma https://club.example.mx",
		"-cards ftp://club.example.mx":                                          "-cards debe tener la forma",
		"-cards off":                                                            "-cards debe tener la forma",
		"-cards https://tarjetasñ.mx":                                           "-cards va en la forma xn--",
		"-panel https://puntos.example.mx -cards https://puntos.example.mx":     "-cards no puede tener el nombre del panel, puntos.example.mx",
		"-panel https://puntos.example.mx -cards https://PUNTOS.Example.mx":     "-cards no puede tener el nombre del panel",
		"-panel https://Puntos.example.mx -cards http://puntos.example.mx:8090": "-cards no puede tener el nombre del panel",
		"-panel https://p.mx:8443 -cards https://p.mx -cards-addr 127.0.0.1:0":  "-cards no puede tener el nombre del panel",
		"-panel http://[fd00::1]:8080 -cards http://[fd00::1]:8090":             "-cards no puede tener el nombre del panel",
		"-cards http://localhost:8090":                                          "-cards con el nombre de esta máquina, localhost, va con -cards-addr",
		"-cards https://LocalHost":                                              "-cards con el nombre de esta máquina",
		"-cards http://127.0.0.1:8090":                                          "-cards con el nombre de esta máquina, 127.0.0.1, va con -cards-addr",
		"-cards http://[::1]:8090":                                              "-cards con el nombre de esta máquina",
		"-cards-addr 127.0.0.1:8090":                                            "-cards-addr va con -cards",
	} {
		for _, name := range []string{"serve", "doctor"} {
			s := newTill(t)
			if code, _, errs := s.run(name + nowhere + line); code != 2 || !strings.Contains(errs, want) {
				t.Errorf("sello %s %s: exit %d, %s\nwant %s", name, line, code, errs, want)
			}
			s.unmade()
			for fields := strings.Fields(line); len(fields) > 0; fields = fields[2:] {
				s.env[variable(fields[0][1:])] = fields[1]
			}
			if code, _, errs := s.run(name + nowhere); code != 2 || !strings.Contains(errs, want) {
				t.Errorf("sello %s with %v: exit %d, %s\nwant %s", name, s.env, code, errs, want)
			}
			s.unmade()
		}
	}
	for _, test := range []struct{ panel, cards, addr, origin string }{
		{"", "https://club.example.mx", "", "https://club.example.mx"},
		{"https://puntos.example.mx", "https://Club.example.mx:443/", "", "https://club.example.mx"},
		{"off", "http://192.168.1.10:8090", "", "http://192.168.1.10:8090"},
		{"http://192.168.1.11:8080", "http://192.168.1.10:8090", "", "http://192.168.1.10:8090"},
		{"", "http://127.0.0.1:8090", "127.0.0.1:8090", "http://127.0.0.1:8090"},
		{"off", "", "", ""},
	} {
		c := &invocation{panel: test.panel, panelIdle: leastIdle, panelLongest: leastIdle, cards: test.cards, cardsAddr: test.addr}
		if err := errors.Join(c.checkPanel(), c.checkCards()); err != nil || c.cardsAt.origin() != test.origin {
			t.Errorf("-panel %q -cards %q -cards-addr %q: %q, %v", test.panel, test.cards, test.addr, c.cardsAt.origin(), err)
		}
	}
}

// unmade checks that there is no data file.
func (s *till) unmade() {
	s.Helper()
	if left := listDir(s.T, s.env["SELLO_DB"]); left != "" {
		s.Errorf("left behind: %s", left)
	}
}
