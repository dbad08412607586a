package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// apiAlone says why a POST or PATCH of the API has no form.
var apiAlone = map[string]string{
	"POST /api/v1/transactions/batch":                  "a till registers one sale at a time; a batch's items are registered as single sales are",
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
