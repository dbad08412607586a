package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// An undoShop is a shop whose cashier asks to undo. When the test ends, the store is verified.
type undoShop struct {
	*panelShop
	ana id
}

func newUndoShop(t *testing.T) *undoShop {
	s := &undoShop{panelShop: newPanelShop(t, panelSetup)}
	s.ana = s.shop.customer("ana")
	s.shop.add(s.ana, "1000", 0)
	return s
}

// sold makes a sale of Ana at the till and returns its page; redeemed makes a redemption.
func (s *undoShop) sold(as role, amount string) string {
	path, _, _ := strings.Cut(s.led(as, "/panel/caja/"+s.ana.String()+"/venta", "totalAmount", amount), "?")
	return path
}

func (s *undoShop) redeemed(as role) string {
	path, _, _ := strings.Cut(s.led(as, "/panel/caja/"+s.ana.String()+"/canje", "productId", s.shop.config().Rewards[0].ID.String()), "?")
	return path
}

// lastOf is the id at the end of a path.
func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// later passes time in which sessions end, and logs everybody in again.
func (s *undoShop) later(d time.Duration) {
	s.shop.pass(d)
	for _, r := range roles {
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) {
			return t.people.startSession(s.users[r], sessionFull, &arrival{})
		})
	}
}

func (s *undoShop) kept() int {
	return len(ask(s.shop, func(t *txn) ([]*undoRequest, error) { return t.sales.undoRequests() }))
}

// refuses sends a form that must change nothing.
func (s *undoShop) refuses(reason string, as role, path string, status int, fields url.Values) string {
	s.shop.Helper()
	stored := s.shop.entries()
	w := s.post(as, path, fields)
	if w.Code != status {
		s.shop.Errorf("%s: %d, want %d\n%s", reason, w.Code, status, mainOf(w.Body.String()))
	}
	same(s.shop, reason+": the store", s.shop.entries(), stored)
	return w.Body.String()
}

// actions are those of the audit log about a subject, the oldest first.
func (s *undoShop) actions(subject string) (list []string) {
	entries, _ := askAudit(s.shop, auditFilter{subject: subject, to: math.MaxInt64})
	for _, e := range slices.Backward(entries) {
		list = append(list, e.Action)
	}
	return list
}

// TestUndoRequest: a cashier asks to undo a sale and a redemption, somebody in charge sees both with
// their figures and undoes them by the ordinary forms, and the requests are gone.
func TestUndoRequest(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	page := func(as role, path string) string { return s.open(as, path).Body.String() }
	s.wants("before", page(roleManager, "/panel"), "!Piden deshacer")
	sale, redemption := s.sold(roleCashier, "1234.5"), s.redeemed(roleCashier)
	s.wants("the sale", page(roleCashier, sale), "Pídele a un encargado: Manager", `action="`+sale+`/pedir"`, "Pedir que se deshaga")
	s.wants("a redemption that the cashier may cancel", page(roleCashier, redemption), "Deshacer", "!/pedir")
	s.shop.pass(11 * time.Minute)
	s.wants("one that is older", page(roleCashier, redemption), `action="`+redemption+`/pedir"`)
	s.wants("who may undo it", page(roleManager, sale), "/deshacer", "!/pedir")

	long := s.refuses("a long reason", roleCashier, sale+"/pedir", http.StatusUnprocessableEntity, url.Values{"reason": {strings.Repeat("ñ", maxUndoReason+1)}})
	s.wants("a long reason", long, `name="reason" value="ñ`, `action="`+sale+`/pedir"`)
	s.led(roleCashier, sale+"/pedir", "reason", "Era <de> Luz")
	s.led(roleCashier, redemption+"/pedir")
	asked := page(roleCashier, sale)
	s.wants("asked", asked, "Pedido a un encargado a las 04:11", "!/pedir", "!¿Te equivocaste?")
	s.shop.pass(time.Minute)
	s.led(roleCashier, sale+"/pedir", "reason", "Otra vez")
	if n := s.kept(); n != 2 {
		t.Errorf("%d requests", n)
	}
	s.wants("asked twice", page(roleCashier, sale), "Pedido a un encargado a las 04:11")
	s.later(24 * time.Hour)
	s.wants("on the day after", page(roleCashier, sale), "Pedido a un encargado el 2 mar 2026, 04:11")
	same(t, "the log of the sale", s.actions(lastOf(sale)), []string{"transaction.created", "transaction.asked"})

	returning, cancelling := "/panel/ventas/"+lastOf(sale)+"/devolucion", "/panel/canjes/"+lastOf(redemption)
	for _, as := range []role{roleManager, roleAdmin, roleOwner} {
		s.wants(string(as), page(as, "/panel"), "Piden deshacer", "Cashier", "Venta de 1,234.50 MXN", "ana", "Era &lt;de&gt; Luz", "!Otra vez", "Espresso · −80 Lunas",
			`href="`+returning+`">Ver y deshacer`, `href="`+cancelling+`">Ver y deshacer`)
	}
	s.wants("a viewer", page(roleViewer, "/panel"), "!Piden deshacer")
	s.wants("the review", page(roleManager, returning), "1,234.50")

	s.led(roleManager, returning, "customerId", s.ana.String(), "totalAmount", "234.5")
	s.wants("returned in part", page(roleManager, "/panel"), "Venta de 1,000.00 MXN")
	s.led(roleManager, returning, "customerId", s.ana.String(), "totalAmount", "1000")
	s.wants("returned", page(roleManager, "/panel"), "!Venta de", "Espresso")
	s.led(roleManager, cancelling+"/cancelar")
	s.wants("cancelled", page(roleManager, "/panel"), "!Piden deshacer")
	if n := s.kept(); n != 0 {
		t.Errorf("%d requests are kept", n)
	}
}

// TestUndoDeclined: who may undo can decline, once; then the cashier may ask again.
func TestUndoDeclined(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	sale := s.sold(roleCashier, "100")
	decline := "/panel/ventas/" + lastOf(sale) + "/no-deshacer"
	s.led(roleCashier, sale+"/pedir")
	for _, as := range []role{roleCashier, roleViewer, roleDeveloper} {
		s.refuses(string(as)+" declines", as, decline, http.StatusForbidden, url.Values{})
	}
	s.speaks(roleManager, "en")
	s.wants("in English", s.open(roleManager, "/panel").Body.String(), "Asked to undo", "Sale of 100.00 MXN", "See and undo", "Not necessary")
	for range 2 { // the second one came from another tab
		if to := s.led(roleManager, decline); to != "/panel" {
			t.Error(to)
		}
	}
	s.wants("declined", s.open(roleManager, "/panel").Body.String(), "!Asked to undo")
	s.wants("the cashier's page", s.open(roleCashier, sale).Body.String(), "/pedir")
	s.led(roleCashier, sale+"/pedir")
	same(t, "the log", s.actions(lastOf(sale)), []string{"transaction.created", "transaction.asked", "transaction.declined", "transaction.asked"})
}

// TestUndoRefused: who may not ask, and for what.
func TestUndoRefused(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	luz := s.shop.customer("luz")
	own, others, redemption := s.sold(roleCashier, "100"), s.sold(roleManager, "100"), s.redeemed(roleManager)
	s.wants("another's", s.open(roleCashier, others).Body.String(), "Pídele a un encargado", "!/pedir")
	returned := s.sold(roleCashier, "50")
	back, _, _ := strings.Cut(s.led(roleManager, returned+"/deshacer", "totalAmount", "50"), "?")
	at := func(cust id, of string) string { return "/panel/caja/" + cust.String() + of }
	for _, test := range []struct {
		reason string
		as     role
		path   string
		status int
	}{
		{"a viewer", roleViewer, own, http.StatusForbidden},
		{"another's sale", roleCashier, others, http.StatusForbidden},
		{"another's redemption", roleCashier, redemption, http.StatusForbidden},
		{"one that came back", roleCashier, returned, http.StatusForbidden},
		{"a return", roleManager, back, http.StatusForbidden},
		{"another customer's", roleCashier, at(luz, "/venta/"+lastOf(own)), http.StatusNotFound},
		{"a redemption as a sale", roleCashier, at(s.ana, "/venta/"+lastOf(redemption)), http.StatusNotFound},
		{"none", roleCashier, at(s.ana, "/canje/"+id{9}.String()), http.StatusNotFound},
	} {
		s.refuses(test.reason, test.as, test.path+"/pedir", test.status, url.Values{})
	}
	s.refuses("to decline none", roleManager, "/panel/canjes/"+lastOf(own)+"/no-deshacer", http.StatusNotFound, url.Values{})
	s.later(24 * time.Hour)
	s.refuses("a sale of yesterday", roleCashier, own+"/pedir", http.StatusForbidden, url.Values{})
}

// TestUndoForgotten: a request goes with its customer, stays with one who was merged, and is no
// longer shown after 7 days.
func TestUndoForgotten(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	luz := s.shop.customer("luz")
	s.led(roleCashier, s.sold(roleCashier, "100")+"/pedir", "reason", "Era de Luz")
	s.shop.merged(luz, s.ana)
	s.wants("merged", s.open(roleManager, "/panel").Body.String(), "Venta de 100.00 MXN</b> luz", "Era de Luz")
	s.later(undoRequestTime*time.Millisecond - time.Millisecond)
	s.wants("almost 7 days", s.open(roleManager, "/panel").Body.String(), "Piden deshacer")
	s.shop.pass(time.Millisecond)
	s.wants("7 days", s.open(roleManager, "/panel").Body.String(), "!Piden deshacer")
	if n := s.kept(); n != 1 {
		t.Fatalf("%d requests are kept", n)
	}
	s.ana = luz
	s.led(roleCashier, s.sold(roleCashier, "70")+"/pedir", "reason", "Otro")
	if n := s.kept(); n != 1 {
		t.Errorf("%d requests are kept: the old one makes room", n)
	}
	must(s.shop, func(t *txn) (*customer, error) { return t.merges.erase(luz) })
	if n := s.kept(); n != 0 {
		t.Errorf("%d requests of an erased customer are kept", n)
	}
	s.wants("erased", s.open(roleManager, "/panel").Body.String(), "!Piden deshacer")
}

// TestUndoInactive: who became inactive can return a purchase, so that it can be asked for.
func TestUndoInactive(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	sale, redeemed := s.sold(roleCashier, "100"), s.redeemed(roleCashier)
	must(s.shop, func(t *txn) (*customer, error) {
		return t.customers.patch(s.ana, customerPatch{Status: new(statusInactive)}, nil)
	})
	s.wants("a redemption of an inactive customer", s.open(roleCashier, redeemed).Body.String(), "!/pedir")
	s.led(roleCashier, sale+"/pedir", "reason", "Era de otro")
	s.wants("an inactive customer", s.open(roleManager, "/panel").Body.String(), "Venta de 100.00 MXN")
	export := ask(s.shop, func(t *txn) (string, error) {
		c, err := t.customers.get(s.ana)
		if err != nil {
			return "", err
		}
		b, err := (&personExport{family: []*customer{c}}).head(t, nil)
		return string(b), err
	})
	s.wants("the customer's export", export, `"undoRequests":[{"transactionId":"`+lastOf(sale)+`","reason":"Era de otro","at":"`)
	s.wants("the return", s.open(roleManager, "/panel/ventas/"+lastOf(sale)+"/devolucion").Body.String(), "Cashier pidió deshacerlo el", "Era de otro")
	s.led(roleManager, sale+"/deshacer", "totalAmount", "100")
}

// TestUndoDamaged: a request that cannot be read takes nothing else off the home page.
func TestUndoDamaged(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	broken, whole := s.sold(roleCashier, "100"), s.sold(roleCashier, "70")
	s.led(roleCashier, broken+"/pedir")
	s.led(roleCashier, whole+"/pedir", "reason", "Era de Luz")
	u, _ := parseID(lastOf(broken))
	store := func(value []byte) []byte {
		return must(s.shop, func(t *txn) ([]byte, error) {
			k := t.sales.undoRequestKey(u)
			was, _, err := t.Get(k)
			return bytes.Clone(was), errors.Join(err, t.Put(k, value))
		})
	}
	was := store([]byte{0xff})
	s.wants("a damaged request", s.open(roleManager, "/panel").Body.String(), "Venta de 70.00 MXN", "Era de Luz", "!100.00")
	store(was)
}

// TestUndoMany: no more than mostUndoRequests stand at once.
func TestUndoMany(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	last := must(s.shop, func(t *txn) (id, error) {
		t.by = creator{Type: byUser, ID: s.users[roleCashier]}
		for n := range mostUndoRequests + 1 {
			sold, _, err := t.sales.register(newSale{Customer: s.ana, Type: typePurchase, Total: dec(fmt.Sprint(n + 1)), Source: sourceAPI})
			if err != nil || n == mostUndoRequests {
				return sold.ID, err
			}
			if err := t.rewards.askToUndo(sold.ID, false, s.ana, ""); err != nil {
				return id{}, err
			}
		}
		return id{}, nil
	})
	path := "/panel/caja/" + s.ana.String() + "/venta/" + last.String() + "/pedir"
	s.wants("full", s.refuses("full", roleCashier, path, http.StatusConflict, url.Values{}), "demasiadas peticiones de deshacer")
	first := ask(s.shop, func(t *txn) ([]*undoRequest, error) { return t.sales.undoRequests() })[0]
	s.led(roleManager, "/panel/ventas/"+first.Subject.String()+"/no-deshacer")
	s.led(roleCashier, path)
}

// TestUndoVerified: a request that cannot be is told by verify.
func TestUndoVerified(t *testing.T) {
	t.Parallel()
	s := newUndoShop(t)
	sale := s.sold(roleCashier, "100")
	s.led(roleCashier, sale+"/pedir")
	u, _ := parseID(lastOf(sale))
	change := func(edit func(*undoRequest)) {
		must(s.shop, func(t *txn) (any, error) {
			r, err := t.sales.undoRequest(u)
			if err == nil {
				edit(r)
				err = t.put(t.sales.undoRequestKey(u), r)
			}
			return nil, err
		})
	}
	for reason, edit := range map[string]func(*undoRequest){
		"another customer": func(r *undoRequest) { r.Customer = id{9} }, "a redemption": func(r *undoRequest) { r.Redemption = true },
		"somebody else": func(r *undoRequest) { r.By.ID = s.users[roleOwner] }, "before the sale": func(r *undoRequest) { r.At -= 1000 },
	} {
		var was undoRequest
		change(func(r *undoRequest) { was = *r; edit(r) })
		found, err := s.shop.verify()
		s.shop.ok(err)
		if text := strings.Join(found.Problems, "\n"); text != "cafe-luna: petición de deshacer "+lastOf(sale)+": no puede ser lo que dice" {
			t.Errorf("%s: %q", reason, text)
		}
		change(func(r *undoRequest) { *r = was })
	}
}
