package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// marked is what a customer's record has: who wrote about what, by the first letters.
func (s *shop) marked(cust id) string {
	return ask(s, func(t *txn) (string, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return "", err
		}
		var all []string
		for _, w := range c.Written {
			all = append(all, string(w.Kind)+" "+t.dayOf(w.At).date().Format(time.DateOnly))
		}
		return strings.Join(all, "; "), nil
	})
}

func (s *shop) mark(cust id, kind noticeKind, wrote bool) {
	must(s, func(t *txn) (any, error) { return nil, t.customers.markWritten(cust, kind, id{1}, wrote) })
}

// TestMarkWritten: a mark is of one kind, replaces the one before, can be undone, and goes after 60
// days; a merge keeps the later one, an erasure none; clients of the API see no change.
func TestMarkWritten(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana, eva := s.customer("ana"), s.customer("eva")
	shown := func(cust id) (etag string, updated instant, events uint64) {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customers.get(cust)
			n, _ := t.count()
			etag, updated, events = c.etag(), c.UpdatedAt, n.Events+n.Audit
			return nil, err
		})
		return etag, updated, events
	}
	etag, updated, events := shown(ana)
	s.mark(ana, noticeBirthday, true)
	s.pass(oneDay)
	s.mark(ana, noticeExpiring, true)
	same(t, "two kinds", s.marked(ana), "birthday 2026-03-02; expiring 2026-03-03")
	s.pass(oneDay)
	s.mark(ana, noticeExpiring, true)
	s.mark(ana, noticeBirthday, false)
	s.mark(ana, noticeAlmost, false)
	same(t, "again, and undone", s.marked(ana), "expiring 2026-03-04")
	if e, u, n := shown(ana); e != etag || u != updated || n != events {
		t.Error("it is a change for clients", e, u, n)
	}
	s.pass(oneDay)
	s.mark(eva, noticeExpiring, true)
	s.mark(eva, noticeAlmost, true)
	must(s, func(t *txn) (any, error) { c, _, err := t.merges.merge(ana, eva); return c, err })
	same(t, "merged", s.marked(ana), "expiring 2026-03-05; almost 2026-03-05")
	same(t, "of the stub", s.marked(eva), "")
	s.pass(60*oneDay - time.Second)
	known := func() (ok bool) {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customers.get(ana)
			_, ok = writtenOf(c.Written, noticeExpiring, t.now)
			return nil, err
		})
		return ok
	}
	if !known() {
		t.Error("it is forgotten before 60 days")
	}
	s.pass(time.Second)
	if known() {
		t.Error("it is known after 60 days")
	}
	s.mark(ana, noticeBirthday, true)
	same(t, "what is old is not kept", s.marked(ana), "birthday 2026-05-04")
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana) })
	same(t, "erased", s.marked(ana), "")
	_, err := write(s.Context(), s.engine, s.org, s.clock, func(t *txn) (any, error) {
		return nil, t.customers.markWritten(ana, noticeBirthday, id{1}, true)
	})
	if err == nil {
		t.Error("an erased customer is marked")
	}
}

// TestNoticesMarked: the page's buttons mark who was written to and undo it, and the export of the
// person has it. What is no list or no customer of the organization is refused.
func TestNoticesMarked(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana := s.customer("ana")
	s.consents(ana, consentGiven)
	s.buy(ana, "100")
	s.pass(55 * 24 * time.Hour)
	d := newPanelShopOn(s)
	page := func() string { return mainOf(d.open(roleManager, noticesPath+"?que=mes").Body.String()) }
	if p := page(); !strings.Contains(p, "Ya le escribí") || strings.Contains(p, "Le escribió") {
		t.Error(p)
	}
	to := noticesPath + "/" + ana.String()
	if w := d.post(roleManager, to+"/escrito", url.Values{"que": {"mes"}}); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), noticesPath+"?que=mes") {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if p := page(); strings.Contains(p, "Ya le escribí") || !strings.Contains(p, "Le escribió Manager, el 26 abr 2026, 04:00") || !strings.Contains(p, "No le escribí") {
		t.Error(p)
	}
	if p := d.open(roleManager, noticesPath+"?que=casi").Body.String(); strings.Contains(p, "Le escribió") {
		t.Error("it is of another list too", mainOf(p))
	}
	export := ask(s, func(t *txn) (string, error) {
		c, err := t.customers.get(ana)
		if err != nil {
			return "", err
		}
		b, err := (&personExport{family: []*customer{c}}).head(t, nil)
		return string(b), err
	})
	if want := `"notices":[{"kind":"expiring","at":"2026-04-26T10:00:00.000Z","by":{"type":"User",`; !strings.Contains(export, want) {
		t.Error(export)
	}
	must(s, func(t *txn) (any, error) {
		return nil, t.people.removeMember(s.member(d.tokens[roleOwner]), d.users[roleManager])
	})
	if p := mainOf(d.open(roleOwner, noticesPath+"?que=mes").Body.String()); !strings.Contains(p, "Le escribió alguien que ya no es del equipo, el") {
		t.Error(p)
	}
	if d.post(roleOwner, to+"/quitar", url.Values{"que": {"mes"}}); s.marked(ana) != "" {
		t.Error(s.marked(ana))
	}
	if w := d.post(roleOwner, to+"/escrito", url.Values{"que": {"nada"}}); w.Code != http.StatusUnprocessableEntity || s.marked(ana) != "" {
		t.Error(w.Code, s.marked(ana))
	}
	if w := d.post(roleCashier, to+"/escrito", url.Values{"que": {"mes"}}); w.Code != http.StatusForbidden || s.marked(ana) != "" {
		t.Error(w.Code, s.marked(ana))
	}
	s.secondShop()
	var eva id
	s.in(2, func() { eva = s.customer("eva") })
	w := d.post(roleOwner, noticesPath+"/"+eva.String()+"/escrito", url.Values{"que": {"mes"}})
	s.in(2, func() {
		if w.Code < 400 || s.marked(eva) != "" {
			t.Error(w.Code, s.marked(eva))
		}
	})
}
