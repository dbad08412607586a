package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"sello/internal/membercode"
)

const (
	cardsHost = "club.test"
	cardsBase = "https://" + cardsHost
)

// A cardShop is a shop that serves cards to customers on a name of their own.
type cardShop struct {
	*servedShop
	shop *shop
}

func (s *shop) withCards() *cardShop { return s.served().withCards() }

func (s *servedShop) withCards() *cardShop {
	c := &cardShop{s, s.shop}
	site := newSite(c.api)
	site.host, c.api.site, c.api.engine.cardsAt = cardsHost, site, cardsBase
	return c
}

// visit opens a page of customers.
func (s *cardShop) visit(method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "Club.TEST:443"
	return answerTo(s.api, r)
}

// opened is a page that must be there.
func (s *cardShop) opened(path string) string {
	s.shop.Helper()
	w := s.visit("GET", path)
	if w.Code != http.StatusOK {
		s.shop.Fatalf("GET %s: %d\n%s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// replyOf is what the API answers.
func replyOf[T any](s *cardShop, path string) (v T) {
	s.shop.Helper()
	w := s.get("/api/v1" + path)
	if w.Code != http.StatusOK {
		s.shop.Fatalf("GET %s: %d\n%s", path, w.Code, w.Body)
	}
	s.shop.ok(json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

// TestSiteFigures compares every figure of the cards of 500 customers (seed 7) with what the API
// answers at the same moment.
func TestSiteFigures(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := madeUpShop(t, 7, 500, 200).withCards()
	people := ask(s.shop, func(t *txn) (list []id, err error) {
		for cust, err := range t.customers.ids(1, math.MaxInt64, false) {
			if err != nil {
				return nil, err
			}
			list = append(list, cust)
		}
		return list, nil
	})
	if len(people) < 490 {
		t.Fatalf("%d customers", len(people))
	}
	rewards, vouchers, missing := 0, 0, 0
	for _, cust := range people {
		c := replyOf[customerDetail](s, "/customers/"+cust.String())
		if c.Status == statusMerged || c.Status == statusErased {
			continue
		}
		path := "/t/" + s.shop.cardOrNone(cust)
		if c.Status != statusActive {
			continue
		}
		var card cardFigures
		s.shop.ok(json.Unmarshal([]byte(s.opened(path+".json")), &card))
		s.wantFigures(&card, &c)
		rewards, vouchers = rewards+len(card.Rewards), vouchers+len(card.Vouchers)
		for _, r := range card.Rewards {
			if r.Missing > 0 {
				missing++
			}
		}
		page := s.opened(path)
		for _, text := range []string{c.Programs[0].Balance.String(), *c.MemberCode} {
			if !strings.Contains(strings.ReplaceAll(page, ",", ""), text) {
				t.Errorf("%v: the page lacks %q", cust, text)
			}
		}
		s.opened(path + "/estado")
	}
	if rewards == missing || missing == 0 || vouchers == 0 {
		t.Errorf("%d rewards, points missing for %d, %d vouchers", rewards, missing, vouchers)
	}
}

// cardOrNone is the token of a new card; "" for a customer who cannot have one.
func (s *shop) cardOrNone(cust id) string {
	return must(s, func(t *txn) (string, error) {
		_, _, token, err := t.cards.issue(cust, 0)
		if codeOf(err) == "customer_inactive" {
			err = nil
		}
		return token, err
	})
}

// wantFigures compares a card with the answers of the API.
func (s *cardShop) wantFigures(card *cardFigures, c *customerDetail) {
	s.shop.Helper()
	same := func(what string, got, want any) {
		s.shop.Helper()
		if d := diff.Diff(fmt.Sprint(got), fmt.Sprint(want)); d != "" {
			s.shop.Errorf("%s of %v (-card +API):\n%s", what, c.ID, d)
		}
	}
	same("code", *card.MemberCode, *c.MemberCode)
	same("programs", len(card.Programs), len(c.Programs))
	var all []movementShape
	for i, p := range card.Programs {
		of := c.Programs[i]
		same("balance", []any{p.LoyaltyProgramID, p.Balance, p.PendingBalance, textOr(p.TierName, "")}, []any{of.LoyaltyProgramID, of.Balance, of.PendingBalance, textOr(of.TierName, "")})
		if p.TierProgress != nil {
			same("tier", fmt.Sprintf("%+v", deref(*p.TierProgress)), fmt.Sprintf("%+v", deref(*of.TierProgress)))
		}
		program := "?loyaltyProgramId=" + p.LoyaltyProgramID.String()
		b := replyOf[balance](s, "/points/customers/"+c.ID.String()+"/balance"+program)
		same("expiring", p.ExpiringPoints, b.ExpiringPoints[:min(len(b.ExpiringPoints), cardExpiring)])
		all = append(all, replyOf[listShape[movementShape]](s, "/points/customers/"+c.ID.String()+"/movements"+program+"&limit=100").Data...)
	}
	slices.SortStableFunc(all, func(a, b movementShape) int { return int(b.CreatedAt - a.CreatedAt) })
	same("movements", len(card.Movements), min(len(all), cardMovements))
	for i, m := range card.Movements {
		same("moment of a movement", m.CreatedAt, all[i].CreatedAt)
		if !slices.ContainsFunc(all, func(of movementShape) bool {
			return m.CreatedAt == of.CreatedAt && m.LoyaltyProgramID == of.LoyaltyProgramID && m.Type == of.Type && m.Category == of.Category && m.Amount == of.Amount
		}) {
			s.shop.Errorf("%v: no such movement: %+v", c.ID, m)
		}
	}
	open := replyOf[listShape[redemptionShape]](s, "/redemptions?status=Issued&customerId="+c.ID.String())
	same("vouchers", len(card.Vouchers), len(open.Data))
	for _, x := range card.Vouchers {
		if !slices.ContainsFunc(open.Data, func(r redemptionShape) bool { return r.Code == x.Code && r.ExpiresAt == x.ExpiresAt }) {
			s.shop.Errorf("the voucher %s is not open", x.Code)
		}
	}
	have := map[id]bool{}
	for _, r := range replyOf[listShape[rewardShape]](s, "/rewards?customerId="+c.ID.String()).Data {
		have[r.ID] = *r.Available
	}
	for _, r := range card.Rewards {
		same("reward "+r.Name, r.Missing == 0, have[r.ProductID])
	}
}

// deref is a tier's progress with what its pointers point to.
func deref(p tierProgress) []any {
	missing := decimal(-1)
	if p.Missing != nil {
		missing = *p.Missing
	}
	return []any{p.Metric, p.Value, textOr(p.NextTierName, ""), missing, p.FallsAt, textOr(p.FallsTo, "")}
}

// TestSiteGone: whatever opens no card gets one page, equal in bytes and headers.
func TestSiteGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).withCards()
	var first *httptest.ResponseRecorder
	for name, token := range s.goneTokens() {
		for _, path := range []string{"/t/" + token, "/t/" + token + "/estado", "/t/" + token + "?mes=2026-01"} {
			w := s.visit("GET", path)
			w.Header().Del("X-Request-Id")
			if first == nil {
				first = w
			}
			if w.Code != http.StatusNotFound || !bytes.Equal(w.Body.Bytes(), first.Body.Bytes()) || diff.Diff(w.Header(), first.Header()) != "" {
				t.Errorf("%s: %d\n%s\n%s", name, w.Code, w.Body, diff.Diff(w.Header(), first.Header()))
			}
		}
		w := s.visit("GET", "/t/"+token+".json")
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"code":"card_not_found","message":"Esta tarjeta ya no vale"`) || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s as JSON: %d %s", name, w.Code, w.Body)
		}
		s.shop.pass(2 * time.Minute) // or there were too many misses
	}
	for _, path := range []string{"/", "/t/", "/t", "/panel", "/panel/login", "/api/v1/customers", "/livez", "/docs", "/card-x.css", "/t/a/b", "/t/../panel"} {
		if w := s.visit("GET", path); w.Code != http.StatusNotFound || !bytes.Equal(w.Body.Bytes(), first.Body.Bytes()) {
			t.Errorf("GET %s of the customers' host: %d\n%s", path, w.Code, w.Body)
		}
	}
	if w := s.get("/t/" + strings.Repeat("A", tokenLength)); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "route_not_found") {
		t.Errorf("a card's path on the API's host: %d %s", w.Code, w.Body)
	}
}

// goneTokens are tokens that open nothing, for each reason there is.
func (s *cardShop) goneTokens() map[string]string {
	people := map[string]id{}
	for _, name := range []string{"expired", "revoked", "replaced", "erased", "merged", "survivor"} {
		people[name] = s.shop.customer(name)
	}
	tokens := map[string]string{"unknown": strings.Repeat("A", tokenLength), "short": "AAAA", "long": strings.Repeat("A", 300)}
	for name, cust := range people {
		tokens[name] = s.shop.card(cust, map[bool]int{true: 1}[name == "expired"]).token
	}
	good := tokens["survivor"]
	delete(tokens, "survivor")
	must(s.shop, func(t *txn) (any, error) { return t.cards.revoke(people["revoked"]) })
	s.shop.card(people["replaced"], 0)
	must(s.shop, func(t *txn) (any, error) { return t.merges.erase(people["erased"]) })
	s.shop.merged(people["survivor"], people["merged"])
	s.shop.pass(3 * oneDay)
	s.opened("/t/" + good)
	tokens["lower"] = strings.ToLower(good)
	return tokens
}

// TestSiteMisses: a source that guesses gets a page of its own, and a good card from there is shown.
func TestSiteMisses(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).withCards()
	good := "/t/" + s.shop.card(s.shop.customer("eva"), 0).token
	for i := range maxRefusals {
		if w := s.visit("GET", fmt.Sprint("/t/", i)); w.Code != http.StatusNotFound {
			t.Fatalf("miss %d: %d", i, w.Code)
		}
	}
	if w := s.visit("GET", "/t/one-more"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "Demasiados intentos") || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %v\n%s", w.Code, w.Header(), w.Body)
	}
	if w := s.visit("GET", "/t/one-more.json"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "rate_limit_source") {
		t.Errorf("one more as JSON: %d %s", w.Code, w.Body)
	}
	s.opened(good)
}

// TestSiteMethods: HEAD is as GET, and nothing else is taken.
func TestSiteMethods(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).withCards()
	path := "/t/" + s.shop.card(s.shop.customer("eva"), 0).token
	style := stylePath(nil)
	for _, at := range []string{path, path + "/estado", path + ".json", style} {
		get, head := s.visit("GET", at), s.visit("HEAD", at)
		if get.Code != http.StatusOK || head.Code != http.StatusOK || get.Header().Get("Content-Length") != head.Header().Get("Content-Length") {
			t.Errorf("%s: GET %d, HEAD %d %v", at, get.Code, head.Code, head.Header())
		}
		want := "no-store"
		if at == style {
			want = "public, max-age=31536000, immutable"
		}
		if got := get.Header().Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q", at, got)
		}
		for _, header := range siteHeaders {
			if got := get.Header().Get(header[0]); got != header[1] {
				t.Errorf("%s: %s is %q", at, header[0], got)
			}
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		w := s.visit(method, path)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

// anaSecreto is a person of whom a card shows the first name alone.
var anaSecreto = fmt.Sprintf(`{"first%[1]s":"Ana","last%[1]s":"Secreto","email":"ana.oculta@example.com","phoneNumber":"55 9999 8888","birth%[2]s":"1990-05-14"}`, "Name", "Date")

// TestSiteWords reads a card in both languages: numbers, days and words are the organization's, and
// nothing is there of the customer but the first name.
func TestSiteWords(t *testing.T) {
	t.Parallel()
	const program = `"currency":{"one":"Luna","many":"Lunas"},"expiry":{"days":30},"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":2000}],"rules":[` + onePer1 + `]`
	const also = `"rewards":[{"key":"cafe","program":"club","name":"Café & <pan>","pointsCost":40},{"key":"caro","program":"club","name":"Taza","pointsCost":5000}]`
	for lang, want := range map[string][]string{
		"es": {`lang="es"`, "Hola, Ana", "1,234", "Te faltan 766 Lunas para Plata", "1,234 Lunas vencen el 1 de abril", "Café &amp; &lt;pan&gt;", "Ya te alcanza", "Te faltan 3,766", "Muéstralo en caja", "2 de marzo"},
		"en": {`lang="en"`, "Hi, Ana", "1,234", "766 Lunas to go to Plata", "1,234 Lunas to use by 1 April", "Yours now", "3,766 to go", "Show it at the till", "2 March"},
	} {
		s := newShop(t, setup{program: program, also: also, settings: `"language":"` + lang + `"`}).withCards()
		w := s.post("/api/v1/customers", "", anaSecreto)
		var ana struct{ ID id }
		s.shop.ok(json.Unmarshal(w.Body.Bytes(), &ana))
		s.post("/api/v1/transactions", "", `{"customerId":"`+ana.ID.String()+`","totalAmount":1234,"comment":"comentario interno"}`)
		path := "/t/" + s.shop.card(ana.ID, 0).token
		page := s.opened(path)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s: the card lacks %q", lang, text)
			}
		}
		for _, of := range []string{page, s.opened(path + "/estado"), s.opened(path + ".json")} {
			for _, text := range []string{"Secreto", "oculta", "99998888", "9999 8888", "1990", "comentario"} {
				if strings.Contains(of, text) {
					t.Errorf("%s: it says %q", lang, text)
				}
			}
		}
		if len(page) > 30<<10 || strings.Contains(page, "<script") || strings.Contains(page, " style=") || strings.Contains(page, "http") {
			t.Errorf("%s: %d bytes, with a script, a style or something from elsewhere:\n%s", lang, len(page), page)
		}
	}
}

// TestSiteStatement: months from the enrolment on, and this one for any other text.
func TestSiteStatement(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2025-12-10T18:00:00Z", program: `"rules":[` + onePer1 + `]`}).withCards()
	eva := s.shop.customer("eva")
	for range 3 {
		s.shop.buy(eva, "10")
		s.shop.pass(31 * oneDay)
	}
	path := "/t/" + s.shop.card(eva, 0).token + "/estado"
	for month, want := range map[string]string{
		"": "marzo de 2026", "2026-03": "marzo de 2026", "2025-12": "diciembre de 2025", "2026-01": "enero de 2026", "2025-11": "marzo de 2026",
		"2026-04": "marzo de 2026", "hoy": "marzo de 2026", "2026-1": "marzo de 2026", "2026-01-01": "marzo de 2026", "%00": "marzo de 2026",
	} {
		page := s.opened(path + "?mes=" + month)
		if !strings.Contains(page, "Tu "+want) {
			t.Errorf("mes=%s: not %s", month, want)
		}
		if got := strings.Count(page, "&#43;10"); got != map[bool]int{true: 0, false: 1}[want == "marzo de 2026"] {
			t.Errorf("mes=%s: %d purchases", month, got)
		}
		if earlier, later := strings.Contains(page, "Mes anterior"), strings.Contains(page, "Mes siguiente"); earlier == (want == "diciembre de 2025") || later == (want == "marzo de 2026") {
			t.Errorf("mes=%s: earlier %t, later %t", month, earlier, later)
		}
	}
}

// TestSiteStyle: the stylesheet has the organization's colour, and another path has none.
func TestSiteStyle(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).withCards()
	plain, own := stylePath(nil), stylePath(ptr("#0E7C86"))
	if plain == own || !strings.Contains(s.opened(own), "#0e7c86") || strings.Contains(s.opened(plain), "#0e7c86") {
		t.Errorf("%s and %s", plain, own)
	}
	for _, path := range []string{strings.Replace(own, "0e7c86", "0E7C86", 1), strings.Replace(own, "0e7c86", "0e7c8", 1), "/card-.css", "/card-0e7c86.css", own + "x"} {
		if w := s.visit("GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// An interruptedStore runs a function once, after a View.
type interruptedStore struct {
	Store
	next func()
}

func (s *interruptedStore) View(ctx context.Context, fn func(Tx) error) error {
	err := s.Store.View(ctx, fn)
	if next := s.next; next != nil {
		s.next = nil
		next()
	}
	return err
}

// TestSiteEndsBetween ends a card between the look for it and the look at its customer.
func TestSiteEndsBetween(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*txn, id) error{
		"revoked":  func(t *txn, cust id) error { _, err := t.cards.revoke(cust); return err },
		"replaced": func(t *txn, cust id) error { _, _, _, err := t.cards.issue(cust, 0); return err },
		"erased":   func(t *txn, cust id) error { _, err := t.merges.erase(cust); return err },
	} {
		store := &interruptedStore{Store: newMemStore()}
		shop := newShopOn(t, store, "2026-03-02T10:00:00Z")
		shop.apply(setup{}.document())
		s, eva := shop.withCards(), shop.customer("eva")
		path := "/t/" + shop.card(eva, 0).token
		s.opened(path)
		ended := false
		store.next = func() {
			must(shop, func(t *txn) (any, error) { return nil, end(t, eva) })
			ended = true
		}
		if w := s.visit("GET", path); w.Code != http.StatusNotFound || !ended {
			t.Errorf("%s: %d, ended %t", name, w.Code, ended)
		}
		shop.verified()
	}
}

// sent posts a form of the site.
func (s *cardShop) sent(path, form string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Host = cardsHost
	return answerTo(s.api, r)
}

// TestSiteJoin goes from the form to the card: the page of the code asks for itself again until the
// counter has used it.
func TestSiteJoin(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"cards":{"join":true,"privacyUrl":"https://cafe.example/aviso"}`}).withCards()
	form := s.opened("/u/cafe-luna")
	for _, text := range []string{"Únete a Café Luna", `name="phoneNumber"`, `href="https://cafe.example/aviso"`, "Quiero recibir avisos"} {
		if !strings.Contains(form, text) {
			t.Errorf("the form lacks %q", text)
		}
	}
	w := s.sent("/u/cafe-luna", "firstName=Nora&phoneNumber=55+1234+9999&birthDate=1990-05-14&marketing=true")
	path := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(path, "/t/") || len(path) != 3+tokenLength {
		t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	page := s.opened(path)
	code := regexp.MustCompile(`J-[0-9A-Z]{4}-[0-9A-Z]{2}`).FindString(page)
	if code == "" || s.visit("GET", path).Header().Get("Refresh") != "15" || strings.Contains(page, "Nora") || !strings.Contains(page, "https://cafe.example/aviso") {
		t.Errorf("the page of the code:\n%s", page)
	}
	for _, other := range []string{path + ".json", path + "/estado"} {
		if w := s.visit("GET", other); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", other, w.Code)
		}
	}
	if w := s.post("/api/v1/customers", "", `{"joinCode":"`+code+`"}`); w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), `"hasCard":true`) || !strings.Contains(w.Body.String(), `"marketing":true`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if page = s.opened(path); !strings.Contains(page, "Hola, Nora") || s.visit("GET", path).Header().Get("Refresh") != "" {
		t.Errorf("the card:\n%s", page)
	}
}

// TestSiteJoinTells: what is answered to a form does not depend on whether anybody is known, and
// faults are told as POST /customers tells them.
func TestSiteJoinTells(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"cards":{"join":true}`}).withCards()
	must(s.shop, func(t *txn) (any, error) {
		_, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Phone: "+525512349999"})
		return nil, err
	})
	var answers []string
	for _, phone := range []string{"55+1234+9999", "55+1234+9998"} {
		w := s.sent("/u/cafe-luna", "phoneNumber="+phone)
		w.Header().Del("X-Request-Id")
		page := s.opened(w.Header().Get("Location"))
		w.Header().Del("Location")
		page = regexp.MustCompile(`J-?[0-9A-Z]{4}-?[0-9A-Z]{2}|d="[^"]*"`).ReplaceAllString(page, "")
		answers = append(answers, fmt.Sprint(w.Code, w.Header(), w.Body, page))
	}
	if answers[0] != answers[1] {
		t.Errorf("known and unknown (-known +unknown):\n%s", diff.Diff(answers[0], answers[1]))
	}
	for form, fault := range map[string]string{
		"": "Hace falta un teléfono o un email", "firstName=Ana": "Hace falta un teléfono o un email", "phoneNumber=123": "no es válido", "email=malo": "El email no es válido",
		"phoneNumber=55+1234+9999&birthDate=2999-01-01": "no futura", "firstName=" + strings.Repeat("a", 101) + "&phoneNumber=55+1234+9999": "100 caracteres",
	} {
		w := s.sent("/u/cafe-luna", form)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), fault) || !strings.Contains(w.Body.String(), `class="fault"`) {
			t.Errorf("%s: %d, no %q\n%s", form, w.Code, fault, w.Body)
		}
	}
	if w := s.visit("POST", "/u/cafe-luna"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("no form: %d", w.Code)
	}
	if w := s.visit("GET", "/u/"+strings.Repeat("a", 3000)); w.Code != http.StatusNotFound {
		t.Errorf("a long name: %d", w.Code)
	}
	// A browser that is told to name no referrer says that a form comes from "null".
	if w := s.visit("GET", "/u/cafe-luna"); w.Header().Get("Referrer-Policy") != "same-origin" || strings.Contains(w.Body.String(), "referrer") {
		t.Errorf("the form is sent without its origin: %v\n%s", w.Header(), w.Body)
	}
	if w := s.sent("/u/cafe-luna", "phoneNumber="+strings.Repeat("5", maxJoinForm)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long form: %d", w.Code)
	}
}

// TestSiteJoinMany: after 30 forms at once a source is told to come later; other sources are not.
func TestSiteJoinMany(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"cards":{"join":true}`}).withCards()
	for i := range mostJoinsOfSource {
		if w := s.sent("/u/cafe-luna", fmt.Sprintf("phoneNumber=55+1234+%04d", i)); w.Code != http.StatusSeeOther {
			t.Fatalf("form %d: %d", i, w.Code)
		}
	}
	if w := s.sent("/u/cafe-luna", "phoneNumber=55+1234+9999"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "Inténtalo más tarde") {
		t.Errorf("one more: %d\n%s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/u/cafe-luna", strings.NewReader("phoneNumber=55+1234+9999"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Host, r.RemoteAddr = cardsHost, "198.51.100.7:1234"
	if w := answerTo(s.api, r); w.Code != http.StatusSeeOther {
		t.Errorf("another source: %d", w.Code)
	}
}

// TestSiteJoinOff: without the setting, and of no organization, there is no page to join by.
func TestSiteJoinOff(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).withCards()
	gone := s.visit("GET", "/t/nada").Body.String()
	for _, path := range []string{"/u/cafe-luna", "/u/otra", "/u/", "/u"} {
		if w := s.visit("GET", path); w.Code != http.StatusNotFound || w.Body.String() != gone {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
	if w := s.sent("/u/cafe-luna", "phoneNumber=55+1234+9999"); w.Code != http.StatusNotFound {
		t.Errorf("POST: %d", w.Code)
	}
}

// posted sends a form of customers from its own page, with a cookie.
func (s *cardShop) posted(path, form, cookie string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(form))
	r.Host = cardsHost
	for _, h := range [][2]string{{"Content-Type", "application/x-www-form-urlencoded"}, {"Origin", cardsBase}, {"Sec-Fetch-Site", "same-origin"}, {"Cookie", cookie}} {
		r.Header.Set(h[0], h[1])
	}
	return answerTo(s.api, r)
}

// TestSiteTicket: a browser that has opened a card adds a ticket to it with a button; another one by the
// card's code, and is told of nobody. What became of a ticket is said of each.
func TestSiteTicket(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"cards":{"join":true},` + ticketSettings, program: `"currency":"Lunas","rules":[` + onePer1 + `]`}).withCards()
	ana, eva := s.shop.customer("Ana"), s.shop.customer("Eva")
	codeOf := func(cust id) string {
		return ask(s.shop, func(t *txn) (string, error) {
			c, err := t.customers.get(cust)
			return *t.customers.memberCode(c), err
		})
	}
	code := codeOf(eva)
	card := s.shop.card(ana, 0)
	opened := s.visit("GET", "/t/"+card.token)
	set := opened.Header().Get("Set-Cookie")
	if want := "sello_card=" + card.token + "; Path=/c; Max-Age=34560000; HttpOnly; Secure; SameSite=Lax"; set != want {
		t.Errorf("the cookie is %q, want %q", set, want)
	}
	cookie, _, _ := strings.Cut(set, ";")
	open := func(path, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = cardsHost
		r.Header.Set("Cookie", cookie)
		return answerTo(s.api, r)
	}
	shows := func(why string, w *httptest.ResponseRecorder, status int, wants ...string) {
		t.Helper()
		if w.Code != status {
			t.Errorf("%s: %d, want %d", why, w.Code, status)
		}
		body := strings.ReplaceAll(w.Body.String(), nbsp, " ")
		for _, want := range wants {
			if text, not := strings.CutPrefix(want, "!"); strings.Contains(body, text) == not {
				t.Errorf("%s: %q\n%s", why, want, body)
			}
		}
	}

	first := "/c/" + membercode.Written(s.shop.ticket("A-1").Code)
	shows("with a card", open(first, cookie), http.StatusOK, "100.00", "Te da 100 Lunas", "Sumar a la tarjeta de Ana", "!name=\"code\"", "!Eva")
	shows("for another one", open(first+"?otra=1", cookie), http.StatusOK, `name="code"`, "!Ana")
	shows("without one", open(first, ""), http.StatusOK, "100.00", "!Te da", "!Ana", `name="code"`, `href="/u/cafe-luna"`)
	if w := s.posted(first, "", cookie); w.Code != http.StatusSeeOther || w.Header().Get("Location") != first {
		t.Errorf("added: %d to %q", w.Code, w.Header().Get("Location"))
	}
	s.shop.wantStanding(ana, "100 0 100", "added")
	shows("added", open(first, cookie), http.StatusOK, "Ya está en tu tarjeta", "+100 Lunas", `href="/t/`+card.token+`"`)
	shows("seen by another", open(first, ""), http.StatusOK, "Este ticket ya se sumó a una tarjeta", "!Ana", "!Lunas", "!<form")
	made := ask(s.shop, func(t *txn) (creator, error) {
		x, err := t.tickets.called("A-1")
		return x.ClosedBy, err
	})
	if made != (creator{Type: byClient, ID: ana}) {
		t.Errorf("added by %+v", made)
	}

	second := "/c/" + s.shop.ticket("A-2").Code
	shows("a wrong code", s.posted(second, "code=M-0000-0000", ""), http.StatusUnprocessableEntity, "no es de ninguna tarjeta", `value="M-0000-0000"`)
	w := s.posted(second, "code="+strings.ToLower(code), "")
	if w.Code != http.StatusSeeOther || strings.Contains(w.Body.String(), "Eva") {
		t.Errorf("by code: %d %s", w.Code, w.Body)
	}
	shows("added by code", open(w.Header().Get("Location"), ""), http.StatusOK, "¡Listo!", "!Eva", "!Lunas")
	s.shop.wantStanding(eva, "100 0 100", "by code")
	shows("no card and no code", s.posted("/c/"+s.shop.ticket("A-3").Code, "", ""), http.StatusUnprocessableEntity, "no es de ninguna tarjeta")
	for _, id := range []string{"A-4", "A-5"} {
		s.posted("/c/"+s.shop.ticket(id).Code, "", cookie)
	}
	full := "/c/" + s.shop.ticket("A-6").Code
	shows("one too many", open(full, cookie), http.StatusOK, "todos los tickets que se pueden", `name="code"`)
	shows("one too many, by code", s.posted(full, "code="+codeOf(ana), ""), http.StatusUnprocessableEntity, "todos los tickets que se pueden", `name="code"`)

	for why, w := range map[string]*httptest.ResponseRecorder{
		"nobody's": s.visit("GET", "/c/T-0000-0000-00"), "no code": s.visit("GET", "/c/hola"), "no signature": s.visit("GET", "/c/1.1.QQ.10000.1.xxxx"),
	} {
		if gone := s.visit("GET", "/c/x"); w.Code != http.StatusNotFound || w.Body.String() != gone.Body.String() || !strings.Contains(w.Body.String(), "Este ticket no vale") {
			t.Errorf("%s: %d %s", why, w.Code, w.Body)
		}
	}
	for range 2 {
		if w := s.posted("/c/1.1.QQ.10000.1.xxxx", "", cookie); w.Code != http.StatusNotFound {
			t.Errorf("a forged one: %d", w.Code)
		}
	}
	for _, origin := range []string{"https://elsewhere.test", ""} {
		r := httptest.NewRequest("POST", second, strings.NewReader(""))
		r.Host = cardsHost
		if r.Header.Set("Cookie", cookie); origin != "" {
			r.Header.Set("Origin", origin)
		}
		if w := answerTo(s.api, r); w.Code != http.StatusForbidden {
			t.Errorf("a form from %q: %d", origin, w.Code)
		}
	}
	must(s.shop, func(t *txn) (any, error) {
		return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
	})
	shows("with the card of somebody inactive", open(full, cookie), http.StatusOK, `name="code"`, "!Ana")
	s.shop.pass(32 * oneDay)
	shows("late", open(full, cookie), http.StatusOK, "Este ticket venció", "!<button")
}

// TestSiteTimes: the time of an answer does not tell why an address opens nothing. It opens tokens
// of each kind in turn, in an order at random (seed 12). To read a card that has expired takes a
// little more, which tells nothing to who has its token.
func TestSiteTimes(t *testing.T) {
	skipUsual(t)
	s := newShop(t, setup{}).withCards()
	luz := s.shop.customer("luz")
	unknown, expired, revoked := strings.Repeat("A", tokenLength), s.shop.card(s.shop.customer("eva"), 1).token, s.shop.card(luz, 0).token
	must(s.shop, func(t *txn) (any, error) { return t.cards.revoke(luz) })
	s.shop.pass(3 * oneDay)
	kinds := []timedToken{{name: "unknown", token: unknown}, {name: "expired", token: expired}, {name: "revoked", token: revoked}, {name: "short", token: unknown[1:]}}
	const rounds, first = 2000, 200 // the first are not counted
	rnd := rand.New(rand.NewPCG(12, 0))
	for round := range rounds + first {
		s.api.refused = newSourceLimits(maxRefusals, refusalEvery)
		for _, i := range rnd.Perm(len(kinds)) {
			began := time.Now()
			w := s.visit("GET", "/t/"+kinds[i].token)
			if took := time.Since(began); round >= first {
				kinds[i].took = append(kinds[i].took, took.Seconds())
			}
			if w.Code != http.StatusNotFound {
				t.Fatalf("%s: %d", kinds[i].name, w.Code)
			}
		}
	}
	for i := range kinds {
		slices.Sort(kinds[i].took)
		t.Logf("%s: %.2f µs", kinds[i].name, kinds[i].took[rounds/2]*1e6)
	}
	for i := range kinds {
		for j := range i {
			z := apart(kinds[i].took, kinds[j].took)
			t.Logf("%s and %s: z = %.1f", kinds[i].name, kinds[j].name, z)
			if kinds[i].name == "expired" || kinds[j].name == "expired" {
				if d := kinds[i].took[rounds/2] - kinds[j].took[rounds/2]; math.Abs(d) > 10e-6 {
					t.Errorf("%s and %s are apart: %.1f µs", kinds[i].name, kinds[j].name, d*1e6)
				}
			} else if math.Abs(z) >= 3 {
				t.Errorf("%s and %s are apart: z = %.1f", kinds[i].name, kinds[j].name, z)
			}
		}
	}
}

// A timedToken is a token of a kind, and how long its answers took, in seconds.
type timedToken struct {
	name, token string
	took        []float64
}

// apart is how many standard errors the means of two sorted samples are apart. The slowest tenth of
// each is left out, which waited for the garbage collector or for other processes.
func apart(a, b []float64) float64 {
	mean := func(all []float64) (m, variance float64) {
		all = all[:len(all)*9/10]
		for _, x := range all {
			m += x / float64(len(all))
		}
		for _, x := range all {
			variance += (x - m) * (x - m) / float64(len(all)-1)
		}
		return m, variance / float64(len(all))
	}
	m, v := mean(a)
	n, w := mean(b)
	return (m - n) / math.Sqrt(v+w)
}

// TestSiteJoinTimes: the time of an answer to a form does not tell whether anybody has its contact. It
// sends forms with both, each pair in an order at random (seed 13).
func TestSiteJoinTimes(t *testing.T) {
	skipUsual(t)
	s := newShop(t, setup{settings: `"cards":{"join":true}`}).withCards()
	must(s.shop, func(t *txn) (any, error) {
		_, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Phone: "+525512349999"})
		return nil, err
	})
	kinds := []timedForm{{name: "known", form: "firstName=Ana&phoneNumber=55+1234+9999"}, {name: "unknown", form: "firstName=Ana&phoneNumber=55+1234+9998"}}
	const rounds, first = 2000, 200 // the first are not counted
	rnd := rand.New(rand.NewPCG(13, 0))
	for round := range rounds + first {
		s.api.site.(*site).joins = newSourceLimits(mostJoinsOfSource, joinEvery)
		for _, i := range rnd.Perm(len(kinds)) {
			began := time.Now()
			w := s.sent("/u/cafe-luna", kinds[i].form)
			if took := time.Since(began); round >= first {
				kinds[i].took = append(kinds[i].took, took.Seconds())
			}
			if w.Code != http.StatusSeeOther {
				t.Fatalf("%s: %d\n%s", kinds[i].name, w.Code, w.Body)
			}
		}
	}
	for i := range kinds {
		slices.Sort(kinds[i].took)
		t.Logf("%s: %.2f µs", kinds[i].name, kinds[i].took[rounds/2]*1e6)
	}
	z := apart(kinds[0].took, kinds[1].took)
	t.Logf("z = %.1f", z)
	if math.Abs(z) >= 3 {
		t.Errorf("known and unknown are apart: z = %.1f", z)
	}
}

// A timedForm is a form of a kind, and how long its answers took, in seconds.
type timedForm struct {
	name, form string
	took       []float64
}
