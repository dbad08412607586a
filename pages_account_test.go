package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"sello/internal/totp"
)

// factorOn is the secret of the second factor that a page offers.
func factorOn(page string) string {
	m := regexp.MustCompile(`<dd><code>([A-Z2-7-]+)<`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "-", "")
}

// shownCode is the code that an app makes of it.
func (b *browser) shownCode(page string) string {
	b.panelShop.shop.Helper()
	raw, err := totp.Base32.DecodeString(factorOn(page))
	b.panelShop.shop.ok(err)
	return totp.Code(raw, int64(b.panelShop.shop.clock))
}

// addsFactor sets up a second factor as a member's browser does.
func (b *browser) addsFactor() {
	b.panelShop.shop.Helper()
	page := b.want(http.StatusOK, "", b.send("GET", factorPath+"?f=TOKEN0123456789A", nil))
	fields := hidden(page)
	fields.Set("factorCode", b.shownCode(page))
	b.want(http.StatusOK, "", b.send("POST", factorPath, fields), "Códigos de recuperación")
}

// TestPanelFactorLong: an address that is too long for a QR code is shown without one.
func TestPanelFactorLong(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	for _, test := range []struct {
		email string
		shown bool
	}{
		{strings.Repeat("a", 64) + "@" + strings.Repeat("b", 60) + ".ejemplo.mx", true}, // 136 bytes
		{strings.Repeat("a", 64) + "@" + strings.Repeat("b", 63) + ".ejemplo.mx", true}, // 139: the address has 213
		{strings.Repeat("c", 64) + "@" + strings.Repeat("b", 63) + ".ejemplos.mx", false},
	} {
		s.shop.person(test.email, roleOwner)
		_, token := s.shop.enters(test.email)
		b := s.browser()
		b.cookies["sello"] = token
		page := b.want(http.StatusOK, "", b.send("GET", factorPath+"?f=TOKEN0123456789A", nil), `href="otpauth://totp/`)
		if shown := strings.Contains(page, `aria-label="Código QR con la clave"`); shown != test.shown || factorOn(page) == "" {
			t.Errorf("%d bytes: QR code %v", len(test.email), shown)
		}
		if told := strings.Contains(page, "Escanea este código"); told != test.shown || strings.Contains(page, "Escribe esta clave") == told {
			t.Errorf("%d bytes: what to do does not fit\n%s", len(test.email), page)
		}
	}
}

// TestPanelFactorRequired: whoever runs the server, and whose role an owner has named, sets up
// a second factor before any other page or form, but for the account and the log-out.
func TestPanelFactorRequired(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	c := s.shop.customer("luz")
	form := func(page string, more ...string) url.Values {
		fields := url.Values{orgField: {"cafe-luna"}, tokenField: {s.panel.random()}, etagField: {s.stamp(roleOwner, page)}}
		for i := 0; i < len(more); i += 2 {
			fields.Set(more[i], more[i+1])
		}
		return fields
	}
	entries := len(s.shop.audited(auditFilter{}))
	if w := s.post(roleAdmin, "/panel/equipo/segundo-factor", form("/panel/equipo", "secondFactor[3]", "cashier")); w.Code != http.StatusForbidden {
		t.Errorf("an administrator names roles: %d", w.Code)
	}
	if body := s.open(roleAdmin, "/panel/equipo").Body.String(); strings.Contains(body, "/panel/equipo/segundo-factor") {
		t.Error("an administrator sees the form")
	}
	document := strings.Replace(string(s.shop.exportedDocument()), `"currency"`, `"secondFactor":["cashier"],"currency"`, 1)
	fields := form("/panel/equipo", "document", document)
	fields.Set(reviewedField, postedDigest(object{{etagField, fields.Get(etagField)}, {"document", document}}))
	if w := s.post(roleAdmin, "/panel/configuracion/documento", fields); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "solo lo cambia un propietario") {
		t.Errorf("an administrator's document names roles: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
	if n := len(s.shop.audited(auditFilter{})); n != entries {
		t.Errorf("%d entries", n-entries)
	}
	if w := s.post(roleOwner, "/panel/equipo/segundo-factor", form("/panel/equipo", "secondFactor[3]", "cashier")); w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	log := s.shop.audited(auditFilter{})
	if len(log) != entries+1 || !strings.Contains(log[len(log)-1], `secondFactor`) {
		t.Errorf("%d entries, the last %s", len(log)-entries, log[len(log)-1])
	}

	s.shop.person("sol@ejemplo.mx", roleCashier)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	must(s.shop, func(t *txn) (any, error) {
		u, err := userByEmail(t.Tx, "ana@ejemplo.mx")
		if err != nil {
			return nil, err
		}
		return nil, t.people.setOperator(u, true)
	})
	for email, own := range map[string]string{"sol@ejemplo.mx": "/panel/caja", "ana@ejemplo.mx": operatorPath} {
		b := s.browser()
		_, b.cookies["sello"] = s.shop.enters(email)
		sales := ask(s.shop, (*txn).count).Sales
		for _, path := range []string{"/panel", own, "/panel/ventas", "/panel/equipo"} {
			b.want(http.StatusSeeOther, factorPath, b.send("GET", path, nil))
		}
		sale := url.Values{orgField: {"cafe-luna"}, tokenField: {s.panel.random()}, "totalAmount": {"100"}}
		b.want(http.StatusSeeOther, factorPath, b.send("POST", "/panel/caja/"+c.String()+"/venta", sale))
		if n := ask(s.shop, (*txn).count).Sales; n != sales {
			t.Errorf("%s: %d sales more", email, n-sales)
		}
		for _, path := range []string{"/panel/cuenta", "/panel/cuenta/sesiones"} {
			if body := b.want(http.StatusOK, "", b.send("GET", path+"?f=TOKEN0123456789A", nil)); strings.Contains(body, `href="/panel/caja"`) {
				t.Errorf("%s: %s leads on", email, path)
			}
		}
		b.want(http.StatusOK, "", b.send("GET", factorPath+"?f=TOKEN0123456789A", nil), "necesita un segundo factor")
		b.addsFactor()
		if w := b.send("GET", own, nil); w.Code == http.StatusSeeOther {
			t.Errorf("%s: with a second factor: %d", email, w.Code)
		}
	}
	b := s.browser()
	s.shop.person("mar@ejemplo.mx", roleCashier)
	_, b.cookies["sello"] = s.shop.enters("mar@ejemplo.mx")
	b.want(http.StatusSeeOther, "/panel", b.send("POST", "/panel/salir", url.Values{orgField: {"cafe-luna"}}))
}

// TestPanelKeysLeft: the team's page names the active keys that somebody made who has left.
func TestPanelKeysLeft(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	made := func(as role, name string) {
		w := s.post(as, keysPath+"/nueva", url.Values{"name": {name}, accessField: {accessAll}, expiresField: {expiresNever}})
		if w.Code != http.StatusOK {
			t.Fatalf("%d\n%s", w.Code, mainOf(w.Body.String()))
		}
	}
	made(roleDeveloper, "Tienda en línea")
	made(roleOwner, "Caja 1")
	if page := s.open(roleOwner, "/panel/equipo").Body.String(); strings.Contains(page, "Tienda en línea") {
		t.Error("a key of who is there is named")
	}
	if w := s.post(roleOwner, "/panel/equipo/"+s.users[roleDeveloper].String()+"/quitar", url.Values{}); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, mainOf(w.Body.String()))
	}
	page := s.open(roleAdmin, "/panel/equipo").Body.String()
	if _, list, _ := strings.Cut(page, "API keys de quien ya no está"); !strings.Contains(list, "Tienda en línea") || strings.Contains(list, "Caja 1") {
		t.Errorf("the page says\n%s", mainOf(page))
	}
}
