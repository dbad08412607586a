package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sello/internal/password"
)

// madeUpShop is a shop with the demo's year, or with fewer customers and days.
func madeUpShop(t *testing.T, seed uint64, customers, days int) *shop {
	s := newEmptyShop(t, "2025-11-23T18:00:00Z")
	s.apply(demoDocument)
	began := s.clock
	s.setClock("2026-11-24T18:00:00Z")
	_, err := write(t.Context(), s.engine, 1, began, func(in *txn) (any, error) {
		staff, err := addDemoStaff(in, passwordHash{Iterations: 1, Salt: make([]byte, password.SaltSize), Sum: make([]byte, password.HashSize)})
		if err == nil {
			err = makeUp(seed, customers, days, s.clock, in.cfg.zone, staff).write(in, func(float64) {})
		}
		return nil, err
	})
	s.ok(err)
	return s
}

// TestMadeUp makes the demo's year up: what lists, charts, tiers and the page of a person are to
// show is there and adds up. The same seed makes the same year, another one another.
func TestMadeUp(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	skipUnderRace(t)
	s := madeUpShop(t, 1, demoCustomers, demoDays)
	report := func(s *shop) *verification {
		r, err := s.verify()
		s.ok(err)
		if len(r.Problems) > 0 {
			t.Error(r.Problems)
		}
		return r
	}
	first := report(s)
	few := func(seed uint64) *verification { return report(madeUpShop(t, seed, 60, 90)) }
	once := few(1)
	if d := cmp.Diff(once, few(1)); d != "" {
		t.Errorf("the same seed (-first +second):\n%s", d)
	}
	if other := few(2); other.Movements == once.Movements && other.Sales == once.Sales {
		t.Errorf("another seed: %d sales again", other.Sales)
	}
	if first.Customers < 390 || first.Customers > 400 || first.Sales < 2700 || first.Sales > 3300 {
		t.Errorf("%d customers and %d sales", first.Customers, first.Sales)
	}
	undone, tiers, vouchers, birthdays := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	made := uint64(0) // redemptions that somebody made
	_, err := read(t.Context(), s.engine, 1, s.clock, func(in *txn) (any, error) {
		made = 0 // it may run again
		mayAll := func(what permission, by creator) {
			if m, err := in.people.teammate(by.ID); err != nil || m.Role.may(what) != grantAll {
				t.Errorf("%s by one who may not: %v", what, err)
			}
		}
		for n := uint64(1); n <= first.Sales; n++ {
			sold, err := in.sales.at(n)
			if err != nil {
				return nil, err
			}
			if sold.Type == typeReturn {
				name, err := in.people.nameOf(sold.By.ID)
				if err != nil {
					return nil, err
				}
				undone[name]++
				mayAll("transactions:return", sold.By)
			}
		}
		before := instant(0)
		for n := uint64(1); n <= first.Movements; n++ {
			m, err := in.points.movement(n)
			if err != nil {
				return nil, err
			}
			if m.CreatedAt > s.clock {
				t.Errorf("movement %d happens at %s", n, m.CreatedAt)
			}
			if m.Category != categoryExpiration { // which is noticed later
				if m.CreatedAt < before {
					t.Errorf("movement %d, of %s, comes after one of %s", n, m.CreatedAt, before)
				}
				before = m.CreatedAt
			}
			if m.Comment == "Cortesía" {
				mayAll("points:write", m.By)
			}
			if m.Comment == "Cumpleaños" {
				birthdays[in.dayOf(m.CreatedAt).String()[:7]]++
			}
		}
		for n := uint64(1); n <= first.Customers; n++ {
			c, err := in.customers.at(n)
			if err != nil {
				return nil, err
			}
			level, err := in.points.ownTier(c)
			if err != nil {
				return nil, err
			}
			tiers[level.Name]++
		}
		for n := uint64(1); n <= first.Redemptions; n++ {
			x, err := in.rewards.redemptionAt(n)
			if err != nil {
				return nil, err
			}
			vouchers[x.RewardName+" "+x.status(s.clock)]++
			if x.Gift == (gift{}) {
				made++
			}
		}
		return nil, nil
	})
	s.ok(err)
	if undone["Diego Salas"] < 2*undone["Rosa Méndez"] || undone["Rosa Méndez"] == 0 {
		t.Errorf("returns: %v", undone)
	}
	if tiers["Bronce"] < 300 || tiers["Plata"] < 5 || tiers["Oro"] < 1 {
		t.Errorf("tiers: %v", tiers)
	}
	for _, want := range []string{"Espresso Completed", "Vale de $50 Issued", "Vale de $50 Used", "Vale de $50 Expired", "Café de cortesía Issued", "Café de cortesía Used", "Café de cortesía Expired", "Bolsa de grano 500 g Completed"} {
		if vouchers[want] == 0 {
			t.Errorf("no %s in %v", want, vouchers)
		}
	}
	if len(birthdays) < 11 {
		t.Errorf("points of birthdays by month: %v", birthdays)
	}
	s.ok(s.engine.sweep(t.Context()))
	if n := ask(s, (*txn).count).Movements; n != first.Movements {
		t.Errorf("the first sweep makes %d movements", n-first.Movements)
	}
	logged := func(action string) uint64 {
		return ask(s, func(t *txn) (uint64, error) {
			_, total, err := t.audit.entries(auditFilter{to: never, action: action}, page{1, 1})
			return total, err
		})
	}
	if logged("customer.created") != first.Customers || logged("transaction.created")+logged("transaction.returned") != first.Sales ||
		logged("redemption.created") != made || made == first.Redemptions || logged("redemption.used") == 0 || logged("points.added") == 0 {
		t.Error("what people did is not in the audit log")
	}
	p := newPanelShopOn(s)
	for _, path := range []string{"/panel/clientes", "/panel/ventas", "/panel/canjes", "/panel/auditoria", "/panel/estadisticas", "/panel/estadisticas?from=2025-11-25&to=2026-11-24&groupBy=week"} {
		page := p.get("owner", path)
		if n := page.Body.Len(); page.Code != http.StatusOK || n > 40_000 {
			t.Errorf("%s: %d, %d bytes", path, page.Code, n)
		}
	}
}

// madeUpTotal matches a list of the demo's customers: the newest may come later today.
var madeUpTotal = regexp.MustCompile(`"total":(39\d|400),`)

// A visitor is a browser without a page.
type visitor struct {
	*testing.T
	http.Client
}

func newVisitor(t *testing.T) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, http.Client{Jar: jar}}
}

func (v *visitor) get(address string) (int, string) {
	v.Helper()
	return v.done(v.Get(address))
}

// press sends the first form of a page, with what it has.
func (v *visitor) press(address, page string) (int, string) {
	v.Helper()
	form := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		form.Set(m[1], m[2])
	}
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
	return v.done(v.Do(req))
}

func (v *visitor) done(res *http.Response, err error) (int, string) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// demo starts the demo and returns what it printed.
func (s *till) demo(flags string) (*running, *demoStarted) {
	s.Helper()
	server, out := s.start("demo -json" + flags)
	started := new(demoStarted)
	if err := json.NewDecoder(out).Decode(started); err != nil {
		s.Fatal(err)
	}
	return server, started
}

// TestDemoLink: the link that the demo prints logs its owner in when its button is pressed, as
// often as wanted, until the demo ends; not an owner who is out.
func TestDemoLink(t *testing.T) {
	skipShort(t)
	s := newTill(t)
	server, started := s.demo("")
	if started.Password == "" || started.Email != "elena@example.com" || started.File != s.env["SELLO_DB"] {
		t.Errorf("printed: %+v", started)
	}
	home := strings.TrimSuffix(server.base, "/api/v1") + "/panel"
	enters := func(link, reason string, want int) {
		t.Helper()
		v := newVisitor(t)
		if code, page := v.get(link); code == http.StatusOK {
			if _, closed := v.get(home); strings.Contains(closed, "Elena Ortiz") {
				t.Errorf("%s: looking at the link logs in", reason)
			}
			v.press(link, page)
		} else if code != want {
			t.Errorf("%s: the link is %d", reason, code)
		}
		if _, page := v.get(home); strings.Contains(page, "Elena Ortiz") != (want == http.StatusOK) {
			t.Errorf("%s: want %d, and the home page is %.200s", reason, want, page)
		}
	}
	enters(started.Panel, "the first time", http.StatusOK)
	enters(started.Panel, "again", http.StatusOK)
	enters(started.Panel[:len(started.Panel)-1], "cut off", http.StatusNotFound)
	server.stop()
	again, next := s.demo("")
	home = strings.TrimSuffix(again.base, "/api/v1") + "/panel"
	_, old, _ := strings.Cut(started.Panel, "/panel/")
	enters(home+"/"+old, "of the demo before", http.StatusNotFound)
	enters(next.Panel, "of the demo now", http.StatusOK)
	if next.Password != started.Password {
		t.Errorf("the password was %s and is %s", started.Password, next.Password)
	}
	again.stop()
	if _, off := s.demo(" -panel off"); off.Panel != "" || off.Password != "" {
		t.Errorf("without a panel: %+v", off)
	}
}

// TestSamples: what -sample writes can be applied and imported as it stands.
func TestSamples(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply " + s.file("cafe.json", s.ok("apply -sample")))
	for _, test := range []struct{ kind, want string }{
		{"customers", "3 filas: 3 nuevos, 0 que ya estaban, 0 con errores\n2 saldos iniciales: 205 puntos en total"},
		{"sales", "4 filas: 3 nuevas, 0 que ya estaban, 0 con errores"},
		{"points", "3 filas: 3 nuevos, 0 que ya estaban, 0 con errores"},
		{"points -dry-run", "3 filas: 0 nuevos, 3 que ya estaban, 0 con errores"},
	} {
		sample := s.file("sample.csv", s.ok("import "+test.kind+" -sample"))
		if out := s.ok("import " + test.kind + " " + sample); !strings.Contains(out, test.want) {
			t.Errorf("%s: %s", test.kind, out)
		}
	}
	if code, _, errs := s.run("apply -sample cafe.json"); code != 2 {
		t.Errorf("exit %d: %s", code, errs)
	}
}
