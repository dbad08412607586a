package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"sello/internal/throttle"
)

// What must hold of whole pages: that figures agree, that foreign ids are as unknown as those
// that there never were, and that what the navigation offers can be opened.

var (
	shownBalance  = regexp.MustCompile(`<div class="big">([^<]*?) <span`)
	shownMovement = regexp.MustCompile(`<td class="n[^"]*">([+−-][^<]*)</td>`)
)

// TestPanelBalance: after each of many random operations, by forms and by the API, the balance
// that the customer's page shows, the sum of the movements on its pages and the API's balance
// are the same.
// Panel check 38.
func TestPanelBalance(t *testing.T) {
	t.Parallel()
	skipShort(t)
	w := newFormWorld(t)
	rnd := rand.New(rand.NewPCG(20, 38))
	f := newFormat(t, "MX", "es", "MXN")
	page := w.filled("/panel/clientes/{customerId}")
	api := func(method, path, body string) *httptest.ResponseRecorder {
		return answerTo(w.panelShop.api, newRequest(method, "/api/v1"+w.filled(path), w.names["key"], w.filled(body)))
	}
	done := map[bool]int{}
	w.panelShop.panel.asked = throttle.Buckets[[32]byte, instant]{Burst: 1 << 20, Every: 1}
	many := repeats(200, 60, 0)
	for n := range many {
		amount := fmt.Sprintf("%d.%d", 1+rnd.IntN(300), rnd.IntN(10))
		step, byForm := rnd.IntN(5), rnd.IntN(2) == 0
		var answer *httptest.ResponseRecorder
		post := func(path string, pairs ...string) {
			fields := url.Values{}
			for i := 0; i < len(pairs); i += 2 {
				fields.Set(pairs[i], w.filled(pairs[i+1]))
			}
			answer = w.panelShop.post(roleOwner, w.filled(path), fields)
		}
		switch {
		case step == 0 && byForm:
			post("/panel/caja/{customerId}/venta", "totalAmount", amount)
		case step == 0:
			answer = api("POST", "/transactions", `{"customerId":"{customerId}","totalAmount":`+amount+`}`)
		case step == 1 && byForm:
			post("/panel/clientes/{customerId}/puntos/dar", "amount", amount, "comment", "Sí")
		case step == 1:
			answer = api("POST", "/points/customers/{customerId}/add", `{"amount":`+amount+`}`)
		case step == 2 && byForm:
			post("/panel/clientes/{customerId}/puntos/quitar", "amount", amount, "comment", "No")
		case step == 2:
			answer = api("POST", "/points/customers/{customerId}/deduct", `{"amount":`+amount+`}`)
		case step == 3 && byForm:
			post("/panel/caja/{customerId}/canje", "productId", "{productId}")
		case step == 3:
			answer = api("POST", "/rewards/redeem", `{"customerId":"{customerId}","productId":"{productId}"}`)
		case byForm:
			post("/panel/caja/{customerId}/venta/{transactionId}/deshacer", "totalAmount", "20")
		default:
			answer = api("POST", "/transactions", `{"customerId":"{customerId}","type":"Return","totalAmount":20,"originalTransactionId":"{transactionId}"}`)
		}
		if answer.Code < 400 {
			done[byForm]++
		} else if answer.Code >= 500 {
			t.Fatal(answer.Code, answer.Body)
		}
		w.checkBalance(f, page, api("GET", "/points/customers/{customerId}/balance", ""), fmt.Sprintf("operation %d", n))
	}
	if done[true] < many/4 || done[false] < many/4 {
		t.Errorf("%v operations succeeded", done)
	}
}

// checkBalance compares what a customer's pages show with the API's balance.
func (w *formWorld) checkBalance(f *format, page string, api *httptest.ResponseRecorder, when string) {
	w.panelShop.shop.Helper()
	var told struct{ Balance decimal }
	w.panelShop.shop.ok(json.Unmarshal(api.Body.Bytes(), &told))
	sum := decimal(0)
	for at := page; at != ""; {
		answer := w.panelShop.get(roleOwner, at)
		body := html.UnescapeString(answer.Body.String())
		shown := shownBalance.FindStringSubmatch(body)
		if shown == nil {
			w.panelShop.shop.Fatalf("%s: no balance in\n%s", when, body)
		}
		if literal, _, _ := f.readAmount(shown[1]); !sameDecimal(literal, told.Balance) {
			w.panelShop.shop.Fatalf("%s: the page shows %s, the API tells %s", when, shown[1], told.Balance)
		}
		_, movements, _ := strings.Cut(body, "<h2>"+tr(speaking("es"), "customer.movements"))
		movements, _, _ = strings.Cut(movements, "</section>")
		for _, m := range shownMovement.FindAllStringSubmatch(movements, -1) {
			literal, _, _ := f.readAmount(strings.TrimPrefix(m[1], "+"))
			d, err := parseDecimal(literal)
			if err != nil {
				w.panelShop.shop.Fatalf("%s: a movement of %q", when, m[1])
			}
			sum += d
		}
		next := regexp.MustCompile(`href="([^"]*)"[^>]*rel="next"|rel="next"[^>]*href="([^"]*)"`).FindStringSubmatch(body)
		if at = ""; next != nil {
			at = next[1] + next[2]
		}
	}
	if sum != told.Balance {
		w.panelShop.shop.Fatalf("%s: the movements shown add up to %s, the API tells %s", when, sum, told.Balance)
	}
}

// TestPanelForeign: an id of another organization has the same answer as one that there never
// was, byte for byte, in every path, query and field.
// Panel check 42.
func TestPanelForeign(t *testing.T) {
	t.Parallel()
	skipShort(t)
	w := newFormWorld(t)
	w.haveTickets()
	theirs := w.elsewhere()
	made := map[string]string{}
	for name, value := range theirs {
		if name == "code" {
			made[name] = "ZZZZ-ZZZZ"
			continue
		}
		if made[name] = (id{0x01, 0x9c, 0xad, 0xfd, 0x89, 0, 0x7f, 0x94, 0xbd, byte(len(made)), 0x72, 0x6a, 0xe5, 0x5f, 0xb9, 0xac}).String(); name == "hook" {
			made[name] = "nada-777"
		}
		if value == w.names[name] {
			t.Fatalf("both have the same %s", name)
		}
	}
	made["luz"] = made["customerId"] // as theirs
	with := func(names map[string]string) *formWorld {
		all := map[string]string{}
		for name, own := range w.names {
			if all[name] = own; names[name] != "" {
				all[name] = names[name]
			}
		}
		return &formWorld{w.panelShop, all}
	}
	tokens := regexp.MustCompile(`TOKEN\d{11}`)
	plain := func(a *httptest.ResponseRecorder, names map[string]string) string {
		text := fmt.Sprint(a.Code, a.Header().Get("Location"), a.Body)
		for name, value := range names {
			if name == "luz" { // who is the customer
				continue
			}
			text = strings.ReplaceAll(text, value, "{"+name+"}")
		}
		return tokens.ReplaceAllString(text, "TOKEN")
	}
	n := 0
	compare := func(what string, foreign, absent string) {
		if n++; foreign != absent {
			t.Errorf("%s (-of another organization +made up):\n%s", what, diff.Diff(strings.Split(foreign, "\n"), strings.Split(absent, "\n")))
		}
	}
	a, b := with(theirs), with(made)
	for _, p := range panelPages() {
		w.panelShop.shop.pass(time.Second) // a session may send so many requests
		for _, query := range []string{"", "?search={customerId}&cliente={customerId}&customerId={customerId}&actor={userId}&subject={keyId}&key={keyId}&clave={keyId}&loyaltyProgramId={programId}&quien={userId}"} {
			if strings.Contains(p.path+query, "{") && !strings.Contains(p.path, "{token}") && p.template != "factor" {
				compare("GET "+p.path+query, plain(a.panelShop.open(roleOwner, a.filled(p.path+query)), theirs), plain(b.panelShop.open(roleOwner, b.filled(p.path+query)), made))
			}
		}
	}
	w.panelShop.shop.pass(time.Minute) // a session may send so many requests
	stamp := w.panelShop.stamp(roleOwner, "/panel/configuracion")
	for _, f := range panelForms() {
		g := goodForms[f.path]
		if !strings.Contains(f.path+strings.Join(g.post, ""), "{") || g.prepare != nil || strings.Contains(f.path, "{token}") || g.as != "" {
			continue
		}
		send := func(w *formWorld) *httptest.ResponseRecorder {
			fields := w.fields(&g)
			fields.Set(etagField, stamp)
			return w.panelShop.post(roleOwner, w.filled(f.path), fields)
		}
		before := w.panelShop.shop.entries()
		foreign := plain(send(a), theirs)
		if !sameEntries(before, w.panelShop.shop.entries()) && !slices.Contains([]string{"/panel/equipo/nuevo", "/panel/estadisticas/csv/{figure}"}, f.path) {
			t.Errorf("POST %s changes something of another organization: %s", f.path, foreign)
		}
		compare("POST "+f.path, foreign, plain(send(b), made))
	}
	if n < 60 {
		t.Errorf("%d answers were compared", n)
	}
}

// elsewhere makes another organization, and returns its values of the world's names.
func (w *formWorld) elsewhere() map[string]string {
	w.panelShop.shop.Helper()
	ticketed := formSetup
	ticketed.settings = ticketSettings
	w.panelShop.shop.apply([]byte(strings.NewReplacer("cafe-luna", "tienda", `"crm"`, `"ajeno-7"`).Replace(string(ticketed.document()))))
	names := map[string]string{"hook": "ajeno-7"}
	w.panelShop.shop.in(2, func() {
		c := w.panelShop.shop.customer("eva")
		sold := w.panelShop.shop.buy(c, "5000")
		x, err := w.panelShop.shop.redeem(c, "vale")
		w.panelShop.shop.ok(err)
		k, _ := w.panelShop.shop.newKey(keyRequest{})
		w.panelShop.shop.invited("mia@example.com", roleCashier)
		user := w.panelShop.shop.person("leo@example.com", roleCashier)
		open := ask(w.panelShop.shop, func(t *txn) ([]*listedInvitation, error) { return t.people.invitations() })
		names["code"], names["ticketId"] = x.Code, w.panelShop.shop.ticket("R-1").ID.String()
		ask(w.panelShop.shop, func(t *txn) (any, error) {
			p := t.cfg.Programs[0]
			for name, value := range map[string]fmt.Stringer{
				"customerId": c, "luz": c, "transactionId": sold.ID, "redemptionId": x.ID, "keyId": k.ID, "userId": user, "invitationId": open[0].ID, "productId": t.cfg.Rewards[0].ID,
				"programId": p.ID, "ruleId": p.ruleID(&p.Rules[0]), "rewardId": t.cfg.Rewards[0].ID, "segmentId": t.cfg.Segments[0].ID,
			} {
				names[name] = value.String()
			}
			return nil, nil
		})
	})
	return names
}

var navLink = regexp.MustCompile(`<a href="(/panel[^"]*)"(?: aria-current="page")?>`)

// TestPanelNavigation: for each role all links of its navigation can be opened, and so can the
// links of the pages behind them.
// Panel check 51.
func TestPanelNavigation(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	w := newFormWorld(t)
	w.haveTickets()
	href := regexp.MustCompile(`href="(/panel[^"#]*)`)
	for _, as := range roles {
		first := w.panelShop.open(as, "/panel/cuenta").Body.String()
		nav, _, _ := strings.Cut(first, "</nav>")
		links := navLink.FindAllStringSubmatch(nav, -1)
		if len(links) < 2 {
			t.Errorf("%s: %d links", as, len(links))
		}
		opened := map[string]bool{}
		for _, link := range links {
			page := w.panelShop.open(as, html.UnescapeString(link[1]))
			if page.Code != http.StatusOK && !(page.Code == http.StatusSeeOther && strings.HasPrefix(page.Header().Get("Location"), link[1]+"/")) {
				t.Errorf("%s: %s is %d", as, link[1], page.Code)
			}
			for _, below := range href.FindAllStringSubmatch(page.Body.String(), -1) {
				path := html.UnescapeString(below[1])
				if opened[path] || strings.HasPrefix(path, panelAssetPrefix) || strings.HasPrefix(path, panelBrandPrefix) {
					continue
				}
				opened[path] = true
				if answer := w.panelShop.open(as, path); answer.Code >= 400 {
					t.Errorf("%s: %s, which %s links, is %d", as, path, link[1], answer.Code)
				}
			}
		}
	}
}

// TestPanelSimulatesSales: the simulator tells the points that a sale then earns, over the sales
// of the transcript of rules.
// Panel check 56.
func TestPanelSimulatesSales(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}},{"key":"lunes","name":"Lunes","multiplier":2,"days":["Monday"]},
		{"key":"grande","name":"Grande","points":50,"minAmount":500},{"key":"primera","name":"Primera","points":25,"firstPurchase":true},{"key":"a","name":"A","perItem":3,"skus":["A"]}]`})
	c := s.shop.customer("ana")
	gave := regexp.MustCompile(`<p class="soft small">([^<]+)</p></div><b class="n">\+([^<]+)</b>`)
	for _, amount := range []string{"9", "10", "99.5", "499.99", "500", "1234"} {
		for _, skus := range []string{"", "A", "B"} {
			query, fields := url.Values{"cliente": {c.String()}, "totalAmount": {amount}}, url.Values{"totalAmount": {amount}}
			if skus != "" {
				for name, value := range map[string]string{"items[0].sku": skus, "items[0].price": amount, "items[0].quantity": "1"} {
					query.Set(name, value)
					fields.Set(name, value)
				}
			}
			page := html.UnescapeString(s.get(roleViewer, "/panel/simulador?"+query.Encode()).Body.String())
			if answer := s.post(roleOwner, "/panel/caja/"+c.String()+"/venta", fields); answer.Code != http.StatusSeeOther {
				t.Fatal(answer.Code, answer.Body)
			}
			sold := ask(s.shop, func(t *txn) (saleShape, error) {
				n, err := t.count()
				if err != nil {
					return saleShape{}, err
				}
				sold, err := t.sales.at(n.Sales)
				if err != nil {
					return saleShape{}, err
				}
				return newSaleShape(t, sold)
			})
			f := newFormat(t, "MX", "es", "MXN")
			if want := `<div class="big">` + f.Number(sold.PointsEarned); !strings.Contains(page, want) {
				t.Errorf("%s of %q: want %s in\n%s", amount, skus, want, mainOf(page))
			}
			var told, applied []string
			for _, rule := range gave.FindAllStringSubmatch(page, -1) {
				told = append(told, rule[1]+" "+rule[2])
			}
			for _, rule := range sold.AppliedRules {
				applied = append(applied, rule.Name+" "+f.Number(rule.Points))
			}
			same(t, amount+" of "+skus+": the rules", told, applied)
		}
	}
}

var (
	checkRow     = regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \|([^|]*)\|([^|]*)\|([^|]*)\|$`)
	checkTest    = regexp.MustCompile("`(\\w+)`")
	checkNumbers = regexp.MustCompile(`Panel checks? ([\d, and]+)\.`)
)

// TestPanelChecks holds docs/panel-checks.md and the comments of tests together: each of the 71
// checks is there once, and the tests that it names bear its number.
func TestPanelChecks(t *testing.T) {
	skipRace(t)
	t.Parallel()
	named, borne := map[string][]string{}, map[string][]string{}
	rows := checkRow.FindAllStringSubmatch(readText(t, "docs/panel-checks.md"), -1)
	if len(rows) != 71 {
		t.Errorf("%d checks, want 71", len(rows))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Fatalf("row %d is of check %s", i+1, row[1])
		}
		tests := 0
		for column, dir := range []string{".", "tools/panel", "bench"} {
			for _, m := range checkTest.FindAllStringSubmatch(row[2+column], -1) {
				named[dir+" "+m[1]] = append(named[dir+" "+m[1]], row[1])
				tests++
			}
		}
		if tests == 0 {
			t.Errorf("no test shows check %s", row[1])
		}
	}
	for files, dir := range map[string]string{"*_test.go": ".", "internal/*/*_test.go": ".", "tools/panel/*_test.go": "tools/panel", "bench/*.go": "bench"} {
		paths, err := filepath.Glob(files)
		if err != nil || len(paths) == 0 {
			t.Fatal(files, err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is {
					if m := checkNumbers.FindStringSubmatch(strings.ReplaceAll(f.Doc.Text(), "\n", " ")); m != nil {
						borne[dir+" "+f.Name.Name] = regexp.MustCompile(`\d+`).FindAllString(m[1], -1)
					}
				}
			}
		}
	}
	same(t, "the checks of tests, by their comments and in the table,", borne, named)
}

// apiAlone says why a POST or PATCH of the API has no form.
var apiAlone = map[string]string{
	"POST /api/v1/transactions/batch":                  "a till registers one sale at a time; a batch's items are registered as single sales are",
	"POST /api/v1/tickets/claim":                       "customers claim tickets on their own pages; a till that knows the customer registers the sale",
	"POST /api/v1/points/batch":                        "a form gives points to one customer; a batch's are given as single ones are",
	"POST /api/v1/points/customers/{customerId}/holds": "a web shop sets points aside for its orders; the panel shows that",
	"POST /api/v1/points/holds/{holdId}/capture":       "a web shop knows when its order ships",
}

// TestPanelEqualsAPI: what a form does leaves the same store as the API's request, or the
// command, that does the same: but for who did it, the sale's source, the audit log and what is
// kept for retries. Ids are the same, since both worlds draw them alike.
func TestPanelEqualsAPI(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	done := map[string]bool{}
	for _, f := range panelForms() {
		g := goodForms[f.path]
		method, rest, _ := strings.Cut(g.api, " ")
		path, body, _ := strings.Cut(rest, " ")
		if g.api != "" {
			done[method+" /api/v1"+patternName.ReplaceAllString(path, "{}")] = true
		}
		if g.api == "" && g.op == nil && !changesConfig(&f) && !g.stamped {
			if g.alone == "" {
				t.Errorf("%s: nothing to compare it with, and no reason", f.path)
			}
			continue
		}
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			byForm, other := newFormWorld(t), newFormWorld(t)
			same(t, "the worlds", leveled(byForm), leveled(other))
			byForm.panelShop.shop.ids.Store(1 << 20)
			other.panelShop.shop.ids.Store(1 << 20)
			byForm.sent(&f, &g)
			if g.api != "" && g.prepare != nil {
				g.prepare(other)
			}
			switch {
			case g.op != nil:
				other.panelShop.shop.ok(g.op(other, other.panelShop.shop.admin()))
			case g.api == "":
				other.panelShop.shop.apply(byForm.panelShop.shop.exportedDocument())
			default:
				w := answerTo(other.panelShop.api, newRequest(method, "/api/v1"+other.filled(path), other.names["key"], other.filled(body)))
				if w.Code != http.StatusOK && w.Code != http.StatusCreated {
					t.Fatalf("%s: %d %s", g.api, w.Code, w.Body)
				}
			}
			byForm.panelShop.shop.ok(byForm.panelShop.shop.engine.recount(t.Context())) // which a command does at once, and a server soon
			other.panelShop.shop.ok(other.panelShop.shop.engine.recount(t.Context()))
			same(t, "the store, by form and otherwise,", leveled(byForm), leveled(other))
		})
	}
	for _, r := range new(api).routes() {
		if method, _, _ := strings.Cut(r.pattern, " "); writes(method) && !done[patternName.ReplaceAllString(r.pattern, "{}")] && apiAlone[r.pattern] == "" {
			t.Errorf("%s: no form to compare it with, and no reason", r.pattern)
		}
	}
}

// leveled is the store of a world without what differs by who writes: creators, sources and
// the hashes that depend on them; and without the audit log, what each key and member has used of
// its limits, and what is kept for retries.
func leveled(w *formWorld) map[string]string {
	w.panelShop.shop.Helper()
	list := map[string]string{}
	for _, e := range w.panelShop.shop.entries() {
		if strings.IndexByte("ABiIuP", e.Key[0]) >= 0 {
			continue
		}
		shown, err := levelEntry(e)
		w.panelShop.shop.ok(err)
		list[fmt.Sprintf("%q", e.Key)] = shown
	}
	return list
}

func levelEntry(e Entry) (string, error) {
	switch {
	case e.Key[0] == 'm':
		return levelAs(e, func(m *movement) { m.By, m.Hash = creator{}, ledgerHash{} })
	case e.Key[0] == 't':
		return levelAs(e, func(s *sale) { s.By, s.Source = creator{}, "" })
	case e.Key[0] == 'r':
		return levelAs(e, func(x *redemption) { x.By, x.UsedBy = creator{}, creator{} })
	case e.Key[0] == 'f':
		return levelAs(e, func(v *configVersion) { v.By, v.AuditSeq = creator{}, 0 })
	case tableTickets.has(e.Key):
		return levelAs(e, func(x *ticket) { x.By, x.ClosedBy = creator{}, creator{} })
	case tableCards.has(e.Key):
		return levelAs(e, func(d *card) { d.By = creator{} })
	case e.Key[0] == 'n':
		return levelAs(e, func(n *counters) { n.Audit, n.Replays = 0, 0 })
	case e.Key[0] == 'c' && len(e.Key) == 1+4+16+1+4 && e.Key[21] == partAccount:
		return levelAs(e, func(a *account) { a.Hash = ledgerHash{} })
	}
	return fmt.Sprintf("%q", e.Value), nil
}

func levelAs[T any, P recordPointer[T]](e Entry, level func(*T)) (string, error) {
	r, err := decodeEntry[T, P](e)
	if err != nil {
		return "", err
	}
	level(r)
	return fmt.Sprintf("%+v", *r), nil
}

// TestPanelSaleSource: a sale at the till says that it came by the panel, and by whom; what a
// form says of it does not count.
// Panel check 31.
func TestPanelSaleSource(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	c := s.shop.customer("ana")
	if w := s.post(roleOwner, "/panel/caja/"+c.String()+"/venta", url.Values{"totalAmount": {"100"}, "source": {"Api"}}); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	sold := ask(s.shop, func(t *txn) (*sale, error) { return t.sales.at(1) })
	if sold.Source != "Dashboard" || sold.By.Type != byUser || sold.By.ID != s.users[roleOwner] {
		t.Errorf("source %s, by %+v", sold.Source, sold.By)
	}
	_, key := s.shop.newKey(keyRequest{})
	if told := answerTo(s.api, newRequest("GET", "/api/v1/transactions/"+sold.ID.String(), key, "")).Body.String(); !strings.Contains(told, `"source":"Dashboard"`) {
		t.Errorf("the API tells %s", told)
	}
}

// meanwhile is what somebody else does between the review of a form and its confirmation, so that
// the form would do something else than its page showed. What changes the configuration has nothing
// here: another document is applied.
var meanwhile = map[string]func(w *formWorld){
	"/panel/clientes/{customerId}/puntos/dar":    func(w *formWorld) { w.panelShop.shop.add(w.id("customerId"), "1", 0) },
	"/panel/clientes/{customerId}/puntos/quitar": func(w *formWorld) { w.panelShop.shop.add(w.id("customerId"), "1", 0) },
	"/panel/clientes/{customerId}/unir":          func(w *formWorld) { w.panelShop.shop.buy(w.id("luz"), "10") },
	"/panel/ventas/{transactionId}/devolucion":   func(w *formWorld) { w.panelShop.shop.deduct(w.id("customerId"), "399") },
	handoutPath: func(w *formWorld) { w.panelShop.shop.customer("eva") },
}

func (w *formWorld) id(name string) id {
	u, ok := parseID(w.names[name])
	if !ok {
		w.panelShop.shop.Fatal(name)
	}
	return u
}

// TestConfirmed: every form that is reviewed does what its page showed, or nothing (contract §31):
// if a field was changed since, or the store, its page shows what it would do now.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range panelForms() {
		if f.shows == nil && !isReviewed(&f) {
			continue
		}
		n++
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			w, g := newFormWorld(t), goodForms[f.path]
			s, path := w.panelShop, w.filled(f.path)
			review := func(fields url.Values) (*httptest.ResponseRecorder, url.Values) {
				fields.Del(reviewedField)
				return s.reviewed("/panel/configuracion", path, fields)
			}
			refused := func(what string, fields url.Values) *httptest.ResponseRecorder {
				t.Helper()
				before := s.shop.entries()
				answer := s.post(roleOwner, path, fields)
				if answer.Code == http.StatusSeeOther || !reflect.DeepEqual(before, s.shop.entries()) {
					t.Fatalf("%s: %d, and the store has changed: %v", what, answer.Code, !reflect.DeepEqual(before, s.shop.entries()))
				}
				return answer
			}
			done := func(what string, fields url.Values) {
				t.Helper()
				if answer := s.post(roleOwner, path, fields); answer.Code != http.StatusSeeOther {
					t.Fatalf("%s: %d %s", what, answer.Code, mainOf(answer.Body.String()))
				}
			}
			// A field is changed.
			_, fields := review(w.fields(&g))
			if fields.Get(reviewedField) == "" {
				t.Fatal("the page of the review has no", reviewedField)
			}
			reviewed := fields.Get(reviewedField)
			for i := 0; i < len(g.post); i += 2 {
				name, value := g.post[i], fields.Get(g.post[i])
				fields.Set(name, strings.Replace(value, "1", "2", 1)+"0")
				refused("changed "+name, fields)
				fields.Del(name)
				refused("without "+name, fields)
				fields.Set(name, value)
			}
			fields.Set("comment", fields.Get("comment")+" y más")
			if answer := refused("another reason", fields); f.shows != nil && (answer.Code != http.StatusConflict || !strings.Contains(answer.Body.String(), "ya cambió")) {
				t.Errorf("another reason: %d %s", answer.Code, mainOf(answer.Body.String()))
			}
			// The store is changed.
			fields = w.fields(&g)
			_, fields = review(fields)
			if fields.Get(reviewedField) != reviewed {
				t.Error("two reviews of the same differ")
			}
			change := meanwhile[f.path]
			if change == nil {
				s.shop.apply([]byte(strings.Replace(string(s.shop.exportedDocument()), `"name":"Vale de $50"`, `"name":"Vale"`, 1)))
			} else {
				change(w)
			}
			answer := refused("another store", fields)
			if f.shows == nil {
				return
			}
			found := digestForm.FindStringSubmatch(answer.Body.String())
			if found == nil || answer.Code != http.StatusConflict {
				t.Fatalf("another store: %d %s", answer.Code, mainOf(answer.Body.String()))
			}
			fields.Set(reviewedField, found[1])
			fields.Set(tokenField, s.panel.random())
			done("as it was shown then", fields)
			s.shop.verified()
		})
	}
	if n != len(meanwhile)+14 {
		t.Errorf("%d forms are reviewed", n)
	}
}
