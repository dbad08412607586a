package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// asked is what the till's field leads to: the path of a page without its token, or the names
// in the list of hits and what the page says.
func (s *panelShop) asked(as role, query string) string {
	w := s.get(as, "/panel/caja?q="+url.QueryEscape(query))
	if to := w.Header().Get("Location"); to != "" {
		at, err := url.Parse(to)
		s.shop.ok(err)
		q := at.Query()
		q.Del(tokenParam)
		at.RawQuery = q.Encode()
		return at.String()
	}
	return fmt.Sprint(w.Code, " ", mainOf(w.Body.String()))
}

// TestTillField: what people type into the till's one field, and what it leads to.
func TestTillField(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	people := map[string]string{}
	enrol := func(name string, e enrolment) id {
		return must(s.shop, func(t *txn) (id, error) {
			c, _, err := t.enrol(e)
			if err == nil {
				people["/panel/caja/"+c.ID.String()] = name
			}
			return c.ID, err
		})
	}
	for i, name := range []string{"Eva Martinez", "Luz Gonzalez", "Fernando Ruiz", "Sol Sánchez", "Leo Álvarez", "Mar Jiménez", "Pia Luna"} {
		enrol(name, enrolment{FirstName: name, Phone: fmt.Sprintf("+52551000000%d", i)})
	}
	enrol("ana lopez", enrolment{FirstName: "Ana María", LastName: "López García", Email: "ana@x.mx", Phone: "+525577700201"})
	card := enrol("card", enrolment{FirstName: "Rosa", LastName: "Diez", ExternalID: "AB123456", Email: "rosa@diez.mx"})
	enrol("dialled", enrolment{FirstName: "Otilia", Phone: "+522225512345"})
	enrol("its card", enrolment{FirstName: "Nadia", ExternalID: "ABC5512345", Email: "nadia@x.mx"})
	enrol("whole", enrolment{FirstName: "Bo", Phone: "+525544332211"})
	enrol("diana", enrolment{FirstName: "Diana", Email: "mariana@y.mx"})
	_, err := s.shop.sell(newSale{Customer: card, Total: dec("5000")})
	s.shop.ok(err)
	x, err := s.shop.redeem(card, "vale")
	s.shop.ok(err)
	people["/panel/caja/"+card.String()+"/canje/"+x.ID.String()+"?"+scannedParam+"=1"] = "the voucher"
	enrolled := func(name, value string) string { return withQuery(enrolPath, []pair{{name, value}}) }
	for _, test := range []struct{ reason, query, want string }{
		{"8 letters, as a code has", "Martinez", "Eva Martinez"},
		{"the same", "Gonzalez", "Luz Gonzalez"},
		{"the same", "Fernando", "Fernando Ruiz"},
		{"8 bytes in 7 letters and 8 letters in 9 bytes", "Sánchez", "Sol Sánchez"},
		{"the same", "Álvarez", "Leo Álvarez"},
		{"the same", "Jiménez", "Mar Jiménez"},
		{"8 with a blank", "pia luna", "Pia Luna"},
		{"8 characters with an @", "ana@x.mx", "ana lopez"},
		{"an e-mail in other letters", "ANA@X.MX", "ana lopez"},
		{"an externalId of 8", "AB123456", "card"},
		{"a phone's part, dashed as a code", "7770-0201", "ana lopez"},
		{"a phone's part of 8 characters", "7770 020", "ana lopez"},
		{"words in any order", "lopez ana", "ana lopez"},
		{"words of the name", "ana garcia", "ana lopez"},
		{"a retired prefix", "044 55 4433 2211", "whole"},
		{"another one", "5215544332211", "whole"},
		{"letters that could spell a phone are a number first", "ABC5512345", "its card"},
		{"a code", x.Code, "the voucher"},
		{"a code in small letters without its dash", strings.ToLower(strings.ReplaceAll(x.Code, "-", "")), "the voucher"},
		{"a code with a blank", strings.ReplaceAll(x.Code, "-", " "), "the voucher"},
		{"an unknown phone", "55 8765 4321", enrolled("phone", "55 8765 4321")},
		{"an unknown e-mail", "eva@z.mx", enrolled("email", "eva@z.mx")},
		{"an e-mail within somebody else's is not theirs", "ana@y.mx", "200 mariana"},
		{"11 digits", "55 8765 43210", "200 No es un teléfono completo y válido (tiene 11 cifras)"},
		{"no e-mail", "eva@z", "200 No es un email válido"},
		{"3 letters in 4 bytes", "Iñé", "200 hacen falta 4 letras"},
		{"nobody", "Zacarías", "200 No hay nadie con Zacarías"},
	} {
		got := s.asked(roleCashier, test.query)
		if name, is := people[got]; is {
			got = name
		}
		if says, is := strings.CutPrefix(test.want, "200 "); is {
			if says == "mariana" {
				says = "Diana"
			}
			if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, says) {
				t.Errorf("%s: %q leads to %s, want %q", test.reason, test.query, got, says)
			}
		} else if got != test.want {
			t.Errorf("%s: %q leads to %s, want %s", test.reason, test.query, got, test.want)
		}
	}
	if w := s.open(roleCashier, enrolled("phone", "55 8765 4321")); !strings.Contains(w.Body.String(), `name="firstName" value="" autocomplete="off" type="text" autofocus`) || !strings.Contains(w.Body.String(), `value="55 8765 4321"`) {
		t.Error(mainOf(w.Body.String()))
	}
}

// TestTillManyHits: a search that finds many says how many, and leads to the others.
func TestTillManyHits(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for i := range 12 {
		must(s.shop, func(t *txn) (id, error) {
			c, _, err := t.enrol(enrolment{FirstName: fmt.Sprint("Ana ", i), LastName: "García", Email: fmt.Sprintf("a%d@x.mx", i)})
			return c.ID, err
		})
	}
	for as, list := range map[role]bool{roleCashier: false, roleManager: true} {
		seen := map[string]bool{}
		path := "/panel/caja?q=garcia"
		for pages := 1; path != ""; pages++ {
			w := s.get(as, path)
			body := mainOf(w.Body.String())
			if w.Code != http.StatusOK || !strings.Contains(body, "Hay 12.") || strings.Contains(body, `href="/panel/clientes?search=garcia&amp;status=Active"`) != list || pages > 3 {
				t.Fatalf("%s, page %d: %d\n%s", as, pages, w.Code, body)
			}
			for _, part := range strings.Split(body, `<b>`)[1:] {
				name, _, _ := strings.Cut(part, "</b>")
				seen[name] = true
			}
			path = ""
			if i := strings.Index(body, `rel="next"`); i >= 0 {
				before := body[:i]
				path = strings.ReplaceAll(strings.TrimSuffix(before[strings.LastIndex(before, `href="`)+6:], `" `), "&amp;", "&")
			}
		}
		if len(seen) != 12 {
			t.Errorf("%s: %d customers on all pages", as, len(seen))
		}
	}
}
