package main

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sello/internal/contact"
	"sello/internal/membercode"
)

// codeOf is a customer's code; "" once erased.
func (s *shop) codeOf(cust id) string {
	return textOr(ask(s, func(t *txn) (*string, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		return t.customers.memberCode(c), nil
	}), "")
}

// coded is whom a code leads to; zero if to nobody.
func (s *shop) coded(text string) id {
	return ask(s, func(t *txn) (id, error) {
		c, err := t.customers.byMemberCode(text)
		if c == nil {
			return id{}, err
		}
		return c.ID, err
	})
}

// TestMemberCodes follows codes through what happens to customers.
func TestMemberCodes(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	eva, luz, noe, sol := s.customer("eva"), s.customer("luz"), s.customer("noe"), s.customer("sol")
	codes := map[id]string{}
	for _, cust := range []id{eva, luz, noe, sol} {
		codes[cust] = s.codeOf(cust)
		if got := s.coded(strings.ToLower(codes[cust])); got != cust {
			t.Errorf("%s leads to %v, not %v", codes[cust], got, cust)
		}
	}
	s.merged(eva, luz)
	must(s, func(t *txn) (any, error) { return t.merges.erase(noe) })
	must(s, func(t *txn) (any, error) {
		return t.customers.patch(sol, customerPatch{Status: new(statusInactive)}, nil)
	})
	for cust, want := range map[id]id{eva: eva, luz: eva, noe: {}, sol: sol} {
		if got := s.coded(codes[cust]); got != want {
			t.Errorf("%s leads to %v, not %v", codes[cust], got, want)
		}
	}
	if s.codeOf(luz) != codes[luz] || s.codeOf(noe) != "" {
		t.Errorf("the codes of one merged and one erased: %q, %q", s.codeOf(luz), s.codeOf(noe))
	}
	must(s, func(t *txn) (any, error) { return t.merges.erase(eva) })
	if got := s.coded(codes[luz]); got != (id{}) {
		t.Errorf("the code of one merged into one erased leads to %v", got)
	}
	all := ask(s, func(t *txn) (membercode.Kind, error) { return t.cfg.memberCodes(), nil })
	for _, number := range []uint64{0, 5, membercode.Limit - 1} {
		if got := s.coded(all.Code(number)); got != (id{}) {
			t.Errorf("the code of %d leads to %v", number, got)
		}
	}
	s.verified()
}

// TestCodesApart: organizations have unlike codes, and one that no customer is in yet has its
// secret all the same.
func TestCodesApart(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	first := s.codeOf(s.customer("eva"))
	s.apply([]byte(strings.Replace(string(setup{}.document()), "cafe-luna", "te-sol", 1)))
	s.verified()
	s.org = 2
	second := s.customer("eva")
	if s.codeOf(second) == first {
		t.Errorf("both first customers have %s", first)
	}
	if got := s.coded(first); got != (id{}) {
		t.Errorf("the other organization's code leads to %v", got)
	}
	secret := codeSecretKey(2)
	value := s.swap(secret, nil)
	if report, err := s.verify(); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "te-sol: falta el secreto") {
		t.Errorf("without the secret: %+v, %v", report, err)
	}
	if code := s.codeOf(second); code != "" || s.coded(first) != (id{}) {
		t.Errorf("without the secret %s is a code", code)
	}
	s.swap(secret, value)
}

// swap sets a key to a value, nil to delete it, as something else than sello would, and returns the
// value that it had.
func (s *shop) swap(k key, value []byte) (old []byte) {
	s.ok(s.engine.store.Update(s.Context(), func(tx Tx) error {
		v, _, err := tx.Get(k)
		old = bytes.Clone(v)
		if value == nil {
			return cmp.Or(err, tx.Delete(k))
		}
		return cmp.Or(err, tx.Put(k, value))
	}))
	return old
}

// TestMemberCodeInPanel: the fields of the till and of the list of customers take a code; what
// leads to nobody is searched as text.
func TestMemberCodeInPanel(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	eva := s.shop.customer("eva")
	code := s.shop.codeOf(eva)
	nobody := ask(s.shop, func(t *txn) (string, error) {
		return t.cfg.memberCodes().Code(99), nil
	})
	card := must(s.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Marga", ExternalID: code})
		return c.ID, err
	})
	if got := s.asked(roleCashier, " "+code+"\t"); got != "/panel/caja/"+card.String() {
		t.Errorf("a code that is another customer's externalId leads to %s", got)
	}
	must(s.shop, func(t *txn) (any, error) { return t.merges.erase(card) })
	if got := s.asked(roleCashier, " "+strings.ToLower(code)+"\t"); got != "/panel/caja/"+eva.String() {
		t.Errorf("the till goes to %s", got)
	}
	if got := s.asked(roleCashier, nobody); !strings.HasPrefix(got, "200 ") {
		t.Errorf("a code that leads to nobody: %s", got)
	}
	w := s.get(roleOwner, "/panel/clientes?search="+code)
	if to, _, _ := strings.Cut(w.Header().Get("Location"), "?"); w.Code != http.StatusSeeOther || to != "/panel/clientes/"+eva.String() {
		t.Errorf("the list goes to %d %s", w.Code, to)
	}
	if w := s.get(roleOwner, "/panel/clientes?search="+nobody); w.Code != http.StatusOK {
		t.Errorf("a code that leads to nobody: %d", w.Code)
	}
	for _, as := range []role{roleCashier, roleDeveloper} {
		if w := s.get(as, "/panel/clientes?search="+code); w.Code == http.StatusSeeOther {
			t.Errorf("a %s may not see the list, and goes to a customer", as)
		}
	}
	if w := s.get(roleDeveloper, "/panel/caja?q="+code); w.Code == http.StatusSeeOther {
		t.Error("a developer may not use the till, and goes to a customer")
	}
}

// TestCodeBeforePhone: where numbers are short, the letters of some codes spell one. The code is
// surer.
func TestCodeBeforePhone(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	s.shop.apply(bytes.Replace(setup{}.document(), []byte(`"country":"MX"`), []byte(`"country":"GT"`), 1))
	phone := ""
	for n := 0; phone == ""; n++ {
		cust := s.shop.customer(fmt.Sprint("eva", n))
		code := s.shop.codeOf(cust)
		if phone, _ = contact.Phone(code, "GT"); phone == "" {
			continue
		}
		must(s.shop, func(t *txn) (any, error) {
			_, _, err := t.customers.enrol(enrolment{FirstName: "Otra", Phone: phone})
			return nil, err
		})
		if got := s.asked(roleCashier, code); got != "/panel/caja/"+cust.String() {
			t.Errorf("%s, which spells %s, leads to %s", code, phone, got)
		}
	}
}
