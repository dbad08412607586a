package main

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// handing is a shop with so many customers, of whom so many were born in March: they are the segment.
func handing(t *testing.T, n, march int, program string) (s *panelShop, page string, in []id) {
	s = newPanelShop(t, setup{at: "2026-04-02T10:00:00Z", also: marchSegment, program: program})
	of := newCrowd()
	s.shop.importing(importCustomers, n, func(i int) importRow { return bornIn(of, i, n, march) })
	segment := s.shop.config().Segments[0]
	in = ask(s.shop, func(t *txn) ([]id, error) {
		found, _, err := t.rules.members(segment, 0, n)
		return found, err
	})
	return s, "/panel/segmentos/" + segment.ID.String() + "/dar", in
}

// aGift are the fields of a form that gives points to everybody.
func aGift(amount string) url.Values {
	return typedIn(of("amount", amount, "category", "Campaign", "comment", "Aniversario"))
}

// asReviewed sends the form to be reviewed, and adds what its page showed.
func (s *panelShop) asReviewed(as role, page string, fields url.Values) url.Values {
	if found := digestForm.FindStringSubmatch(s.reviewedGift(as, page, fields)); found != nil {
		fields.Set(reviewedField, found[1])
	}
	return fields
}

// reviewedGift sends the form to be reviewed. It returns the main part of the page.
func (s *panelShop) reviewedGift(as role, page string, fields url.Values) string {
	fields.Set(reviewField, "1")
	w := s.post(as, page, fields)
	fields.Del(reviewField)
	return strings.ReplaceAll(mainOf(w.Body.String()), "\u00a0", " ")
}

// TestPanelHandout: points for everybody in a segment, from the count to what came of it.
func TestPanelHandout(t *testing.T) {
	t.Parallel()
	s, page, in := handing(t, 60, 6, "")
	c := &counter{&formWorld{s, map[string]string{}}, t}
	must(s.shop, func(t *txn) (any, error) {
		return t.customers.patch(in[1], customerPatch{Status: new(statusInactive)}, nil)
	})
	for _, r := range []role{roleCashier, roleViewer, roleDeveloper} {
		if w := s.open(r, page); w.Code != http.StatusForbidden {
			t.Errorf("the page for %s: %d", r, w.Code)
		}
	}
	c.page(page, "5 clientes recibirían los puntos.", "1 cliente inactivo no recibe nada.", "!Dar los puntos")
	c.page(strings.TrimSuffix(page, "dar")+"clientes", `href="`+page+`">Dar puntos a todos`)

	for _, wrong := range []struct{ field, value, said string }{
		{"amount", "0", "mayor"}, {"amount", "", "Puntos"}, {"amount", "-3", "mayor"}, {"amount", "x", "Puntos"}, {"comment", "", "Motivo"},
		{"amount", "90000000000", "Puntos"}, {"category", "Fee", "categor"}, {"expiresAt", "2026-04-01", "futura"},
	} {
		fields := aGift("10")
		fields.Set(wrong.field, wrong.value)
		if body := s.reviewedGift(roleOwner, page, fields); !strings.Contains(body, `class="faults"`) || strings.Contains(body, "Dar los puntos") {
			t.Errorf("%s=%s: %s", wrong.field, wrong.value, body)
		} else if !strings.Contains(body, wrong.said) {
			t.Errorf("%s=%s does not say %s: %s", wrong.field, wrong.value, wrong.said, body)
		}
	}

	fields := aGift("12.5")
	c.has("review", s.reviewedGift(roleManager, page, fields), "5 clientes, 62.5 Puntos en total", "Dar los puntos")
	if w := s.post(roleManager, page, fields); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "ya cambió") {
		t.Errorf("not reviewed: %d %s", w.Code, mainOf(w.Body.String()))
	}
	s.asReviewed(roleManager, page, fields)
	before := s.shop.entries()
	s.shop.pass(time.Hour)
	if w := s.post(roleManager, page, fields); !strings.Contains(w.Body.String(), "Confirma que eres tú") {
		t.Errorf("without the password: %d %s", w.Code, mainOf(w.Body.String()))
	}
	same(t, "the store without the password", handoutsIn(s.shop), handoutsOf(before))
	s.tokens[roleManager] = must(s.shop, func(t *txn) (string, error) {
		return t.people.startSession(s.users[roleManager], sessionFull, &arrival{})
	})
	fields.Set(tokenField, "TOKEN-OF-THE-GIFT")
	for range 2 { // a double click begins one
		if w := s.post(roleManager, page, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != page {
			t.Fatalf("confirmed: %d %s", w.Code, mainOf(w.Body.String()))
		}
	}
	c.page(page, "Se están dando puntos", "data-poll", "0 de 5", "!Revisar")
	other := aGift("1")
	if body := s.reviewedGift(roleOwner, page, other); !strings.Contains(body, "Ya se están dando puntos") {
		t.Errorf("another one: %s", body)
	}
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	c.page(page, "Puntos dados el", "5 clientes recibieron 12.5", "62.5", "1 cliente no podía recibirlos.", "!data-poll")
	for i, cust := range in {
		list := s.shop.ledger(cust)
		if i == 1 {
			if len(list) != 0 {
				t.Errorf("an inactive customer has %d movements", len(list))
			}
			continue
		}
		if m := list[len(list)-1]; len(list) != 1 || m.Amount != dec("12.5") || m.By.ID != s.users[roleManager] || m.Category != categoryCampaign || m.Comment != "Aniversario" {
			t.Errorf("customer %d: %d movements, the last %+v", i, len(list), m)
		}
	}
	if n := len(s.shop.feed(0, "points.added")); n != 5 {
		t.Errorf("%d events of points", n)
	}
	noted := slices.DeleteFunc(auditedSince(t, before, s.shop.entries()), func(e *auditEntry) bool { return e.Action != "segment.given" })
	if len(noted) != 1 || noted[0].By.ID != s.users[roleManager] {
		t.Fatalf("the audit log has %+v", noted)
	}
	c.page(auditPath, "Dio puntos a un segmento", "Marzo", "Puntos para cada uno", "62.5")
	s.shop.verified()
}

func handoutsOf(all memTx) (list []string) {
	for e, err := range scan(all, newKey('Q'), false) {
		list = append(list, string(e.Value), errText(err))
	}
	return list
}

func handoutsIn(s *shop) []string { return handoutsOf(s.entries()) }

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func (s *panelShop) engine() *engine { return s.shop.engine }

// TestPanelHandoutNobody: a segment without customers, and one that is inactive.
func TestPanelHandoutNobody(t *testing.T) {
	t.Parallel()
	s, page, _ := handing(t, 10, 0, "")
	c := &counter{&formWorld{s, map[string]string{}}, t}
	c.page(page, "no hay nadie que pueda recibir puntos", "!Revisar")
	if body := s.reviewedGift(roleOwner, page, aGift("1")); !strings.Contains(body, "no hay nadie") {
		t.Error(body)
	}
	s.shop.apply([]byte(strings.Replace(string(s.shop.exportedDocument()), `"isActive":true,"rule"`, `"isActive":false,"rule"`, 1)))
	c.page(page, "El segmento está inactivo", "!Revisar")
	if w := s.open(roleOwner, strings.Replace(page, page[len("/panel/segmentos/"):len(page)-4], "0195a000-0000-7000-8000-000000000000", 1)); w.Code != http.StatusNotFound {
		t.Errorf("no segment: %d", w.Code)
	}
}

// TestPanelHandoutLimit: a member with a limit a day gives a segment no more than that, and what
// is refused gives nobody anything.
func TestPanelHandoutLimit(t *testing.T) {
	t.Parallel()
	s, page, in := handing(t, 20, 4, "")
	must(s.shop, func(t *txn) (any, error) {
		return nil, t.keys.limitPoints(s.shop.member(s.tokens[roleOwner]), s.users[roleManager], dec("100"))
	})
	if body := s.reviewedGift(roleManager, page, aGift("25.01")); !strings.Contains(body, "Puntos que puedes dar a mano al día: 100") {
		t.Error(body)
	}
	if w := s.post(roleManager, page, s.asReviewed(roleManager, page, aGift("25.01"))); w.Code != http.StatusForbidden || len(handoutsIn(s.shop)) > 0 {
		t.Errorf("above the limit: %d", w.Code)
	}
	if w := s.post(roleManager, page, s.asReviewed(roleManager, page, aGift("25"))); w.Code != http.StatusSeeOther {
		t.Fatalf("within the limit: %d %s", w.Code, w.Body)
	}
	// Who comes into the segment meanwhile is beyond the limit.
	must(s.shop, func(t *txn) (any, error) {
		h, err := handoutIn(t.Tx, t.org)
		if err == nil {
			h.Counted--
			err = t.put(orgKey('Q', t.org), h)
		}
		return nil, err
	})
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	for i, cust := range in {
		if got, want := len(s.shop.ledger(cust)), min(1, len(in)-1-i); got != want {
			t.Errorf("customer %d has %d movements, want %d", i, got, want)
		}
	}
	s.shop.verified()
}

// TestPanelHandoutResumed: a server stops in the middle; the next one goes on, and nobody gets the
// points twice, even if the place where it stopped is lost. Who has left the segment gets nothing.
func TestPanelHandoutResumed(t *testing.T) {
	t.Parallel()
	const march = handoutTurn*handoutBatch + 120
	s, page, in := handing(t, march+300, march, "")
	if w := s.post(roleOwner, page, s.asReviewed(roleOwner, page, aGift("3"))); w.Code != http.StatusSeeOther {
		t.Fatalf("confirmed: %d %s", w.Code, w.Body)
	}
	given := func() (n, most int) {
		for _, cust := range in {
			m := len(s.shop.ledger(cust))
			n, most = n+m, max(most, m)
		}
		return n, most
	}
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	if n, most := given(); n != handoutTurn*handoutBatch || most != 1 {
		t.Fatalf("one turn gave %d, %d to one", n, most)
	}
	s.shop.verified()
	left := in[march-1]
	s.shop.movesToMay(left)
	must(s.shop, func(t *txn) (any, error) {
		h, err := handoutIn(t.Tx, t.org)
		if err == nil {
			h.After, h.Given = 0, 0
			err = t.put(orgKey('Q', t.org), h)
		}
		return nil, err
	})
	next := newShopOn(t, s.engine().store.Store, "2026-04-02T10:01:00Z")
	next.ids.Add(1 << 32)
	for range 2 {
		next.ok(next.engine.giveHandouts(t.Context()))
	}
	if n, most := given(); n != march-1 || most != 1 || len(s.shop.ledger(left)) != 0 {
		t.Errorf("both gave %d of %d, %d to one", n, march-1, most)
	}
	s.shop.verified()
}

// halfHanded is a shop whose owner gives everybody in a segment 3 points, after one turn: 120 are to
// get them still.
func halfHanded(t *testing.T) (*panelShop, []id) {
	t.Helper()
	const march = handoutTurn*handoutBatch + 120
	s, page, in := handing(t, march, march, "")
	if w := s.post(roleOwner, page, s.asReviewed(roleOwner, page, aGift("3"))); w.Code != http.StatusSeeOther {
		t.Fatalf("confirmed: %d %s", w.Code, w.Body)
	}
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	return s, in
}

// TestPanelHandoutMerged: a customer who has got the points becomes part of one whose turn is still to
// come, who does not get them again.
func TestPanelHandoutMerged(t *testing.T) {
	t.Parallel()
	s, in := halfHanded(t)
	late := in[len(in)-1]
	s.shop.merged(late, in[0])
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	if got := s.shop.standing(late).Balance; got != decimalOf(3) {
		t.Errorf("it has %v", got)
	}
	s.shop.verified()
}

// TestPanelHandoutWithoutSegment: where the segment becomes inactive meanwhile, the page says how many
// got nothing.
func TestPanelHandoutWithoutSegment(t *testing.T) {
	t.Parallel()
	s, _ := halfHanded(t)
	s.shop.apply(bytes.Replace(s.shop.exportedDocument(), []byte(`"isActive":true`), []byte(`"isActive":false`), 1))
	s.shop.ok(s.engine().giveHandouts(t.Context()))
	h := ask(s.shop, func(t *txn) (*handout, error) { return handoutIn(t.Tx, t.org) })
	if h.Ended == 0 || h.Given != handoutTurn*handoutBatch || h.Left != 120 {
		t.Errorf("%+v", h)
	}
}

// TestPanelMembers: the customers in a segment by pages, of which one that is short says so, and
// as a file.
func TestPanelMembers(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{at: "2026-04-02T10:00:00Z", also: marchSegment})
	const n = walkedAtOnce + 100
	of := newCrowd()
	s.shop.importing(importCustomers, n, func(i int) importRow { return bornIn(of, i, n, n/100) })
	base := "/panel/segmentos/" + s.shop.config().Segments[0].ID.String() + "/clientes"
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	var rows []int
	for path := base; path != ""; {
		body := s.open(roleViewer, path).Body.String()
		rows = append(rows, strings.Count(body, `<tr><td><a href="/panel/clientes/`))
		short := strings.Contains(body, "Todavía quedan clientes por mirar")
		found := next.FindStringSubmatch(body)
		if path = ""; found != nil {
			path = found[1]
		}
		if want := found != nil && rows[len(rows)-1] < defaultLimit; short != want {
			t.Errorf("page %d says that there are more to look at: %t, want %t", len(rows), short, want)
		}
		if len(rows) > 5 {
			break
		}
	}
	if len(rows) != 2 || rows[0] != defaultLimit || rows[1] != 1 {
		t.Errorf("the pages have %v customers", rows)
	}
	if w := s.open(roleOwner, base+"?after=x"); !strings.Contains(w.Body.String(), "debe ser el next de una respuesta, o estar vacío") {
		t.Errorf("a wrong cursor: %d %s", w.Code, w.Body)
	}
	file := s.file(roleOwner, base+"/csv")
	if lines := strings.Count(file.Body.String(), "\n"); file.Code != http.StatusOK || lines != 1+n/100 || !strings.Contains(file.Header().Get("Content-Disposition"), "marzo.csv") {
		t.Errorf("the file: %d, %d lines, %v", file.Code, lines, file.Header())
	}
	for _, r := range []role{roleCashier, roleManager, roleViewer} {
		if w := s.file(r, base+"/csv"); w.Code != http.StatusForbidden {
			t.Errorf("the file for %s: %d", r, w.Code)
		}
	}
	if w := s.open(roleCashier, base); w.Code != http.StatusForbidden {
		t.Errorf("the list for a cashier: %d", w.Code)
	}
}

func typedIn(pairs []string) url.Values {
	fields := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		fields.Set(pairs[i], pairs[i+1])
	}
	return fields
}

// TestPanelSegmentFields: the form of a segment has every field that a comparison may name.
func TestPanelSegmentFields(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"default":true},{"key":"sellos","name":"Sellos"`})
	form := "/panel/segmentos/nuevo"
	fields := of("name", "Varios", "isActive", "1", "join", "all",
		"rows[0].field", "attributes", "rows[0].attribute", "talla", "rows[0].op", "=", "rows[0].value", "M",
		"rows[1].field", "attributes", "rows[1].attribute", "hijos", "rows[1].op", ">=", "rows[1].value", "1,000",
		"rows[2].field", "attributes", "rows[2].attribute", "vegana", "rows[2].op", "=", "rows[2].value", "Sí",
		"rows[3].field", "points:sellos", "rows[3].op", ">", "rows[3].value", "3",
		"rows[4].field", "birthMonth", "rows[4].op", "=", "rows[4].value", "3",
		"rows[5].field", "expiringWithin", "rows[5].op", "<=", "rows[5].value", "30")
	s.changeConfig(form, form, typedIn(fields))
	const want = `{"all":[{"field":"attributes.talla","op":"=","value":"M"},{"field":"attributes.hijos","op":">=","value":1000},{"field":"attributes.vegana","op":"=","value":true},` +
		`{"field":"points:sellos","op":">","value":3},{"field":"birthMonth","op":"=","value":3},{"field":"expiringWithin","op":"<=","value":30}]}`
	if doc := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<").Replace(string(s.shop.exportedDocument())); !strings.Contains(doc, want) {
		t.Errorf("the document has no %s: %s", want, doc)
	}
	segment := "/panel/segmentos/" + s.shop.config().Segments[0].ID.String()
	s.changeConfig(segment, segment, typedIn(of("priority", "3", "isActive", "1")))
	body := s.open(roleOwner, segment).Body.String()
	for _, shown := range []string{`name="rows[0].attribute" value="talla"`, `name="rows[1].value" value="1,000"`, `name="rows[2].value" value="sí"`, `<option value="points:sellos" selected>Saldo en Sellos`} {
		if !strings.Contains(body, shown) {
			t.Errorf("the form does not show %s", shown)
		}
	}
}
