package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// provenForms are the forms that need the password to have been given lately.
var provenForms = []string{
	"/panel/auditoria/exportar", "/panel/configuracion", "/panel/configuracion/documento",
	"/panel/cuenta/segundo-factor", "/panel/cuenta/segundo-factor/codigos", "/panel/cuenta/segundo-factor/quitar",
	"/panel/desarrollo/claves/nueva", "/panel/desarrollo/claves/{keyId}/cambiar", "/panel/desarrollo/claves/{keyId}/renovar", "/panel/desarrollo/claves/{keyId}/revocar",
	"/panel/desarrollo/webhooks/nuevo", "/panel/desarrollo/webhooks/{hook}/cambiar", "/panel/desarrollo/webhooks/{hook}/quitar", "/panel/desarrollo/webhooks/{hook}/repetir", "/panel/desarrollo/webhooks/{hook}/secreto",
	"/panel/equipo/invitaciones/{invitationId}/retirar", "/panel/equipo/nuevo", "/panel/equipo/segundo-factor", "/panel/equipo/{userId}/enlace", "/panel/equipo/{userId}/habilitar",
	"/panel/equipo/{userId}/inhabilitar", "/panel/equipo/{userId}/limite", "/panel/equipo/{userId}/quitar", "/panel/equipo/{userId}/rol", "/panel/equipo/{userId}/sesiones",
	"/panel/estadisticas/csv/{figure}", "/panel/operador/copias", "/panel/operador/verificacion",
	"/panel/programa/{programId}", "/panel/programa/{programId}/nueva", "/panel/programa/{programId}/reglas/{ruleId}", "/panel/programa/{programId}/reglas/{ruleId}/quitar",
	"/panel/recompensas/nueva", "/panel/recompensas/{rewardId}",
	"/panel/segmentos/nuevo", "/panel/segmentos/{segmentId}", "/panel/segmentos/{segmentId}/clientes/csv", "/panel/segmentos/{segmentId}/dar", "/panel/segmentos/{segmentId}/quitar",
}

// TestPanelProvenForms: those forms say so, and no others.
func TestPanelProvenForms(t *testing.T) {
	t.Parallel()
	var found []string
	for _, f := range panelForms() {
		if f.proof {
			found = append(found, f.path)
		}
	}
	slices.Sort(found)
	same(t, "the forms that need a proof", found, provenForms)
}

// A provingShop has an owner, ana, whose browser gave the password more than ten minutes ago.
type provingShop struct {
	*browser
}

func newProvingShop(t *testing.T) *provingShop {
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	p := &provingShop{browser: s.browser()}
	_, p.cookies["sello"] = s.shop.enters("ana@ejemplo.mx")
	s.shop.pass(proofHolds)
	return p
}

func (p *provingShop) post(path string, fields url.Values) *httptest.ResponseRecorder {
	fields.Set(orgField, "cafe-luna")
	if fields.Get(tokenField) == "" {
		fields.Set(tokenField, p.panelShop.panel.random())
	}
	return p.send("POST", path, fields)
}

// prove gives the password to the page that asks for it, once wrongly.
func (p *provingShop) prove(page string) *httptest.ResponseRecorder {
	p.panelShop.shop.Helper()
	fields := hidden(page)
	fields.Set("password", "mal")
	page = p.want(http.StatusUnprocessableEntity, "", p.send("POST", provePath, fields), "no es correcta")
	fields = hidden(page)
	fields.Set("password", testPassword)
	return p.send("POST", provePath, fields)
}

// TestPanelProvesForms: a form that needs the password and comes without changes nothing. What
// was typed is kept, and is stored once when the password is given.
func TestPanelProvesForms(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	key := url.Values{"name": {"Caja 2"}, accessField: {accessAll}, expiresField: {expiresNever}}
	before := p.panelShop.shop.entries()
	page := p.want(http.StatusForbidden, "", p.post(keysPath+"/nueva", key), "contraseña otra vez", `autocomplete="username" value="ana@ejemplo.mx"`)
	same(t, "the store before the password", p.panelShop.shop.entries(), before)
	key.Set(tokenField, hidden(page).Get(keptField+tokenField))
	p.want(http.StatusOK, "", p.prove(page), "Caja 2")
	same(t, "the log", p.panelShop.shop.audited(auditFilter{action: auditSessionProved}), []string{"User  session.proved []"})

	p.panelShop.shop.pass(proofHolds)
	w := p.send("POST", keysPath+"/nueva", key) // it was stored: where it led can be seen
	if w.Code != http.StatusSeeOther {
		t.Errorf("sent again: %d", w.Code)
	}
	if n := len(ask(p.panelShop.shop, func(t *txn) ([]*apiKey, error) { return t.keys.list() })); n != 1 {
		t.Errorf("%d keys", n)
	}

	// A fault is told before the password is asked for, and what was typed stays.
	delete(key, "name")
	key.Del(tokenField)
	key.Set("rateLimit", "77")
	p.want(http.StatusUnprocessableEntity, "", p.post(keysPath+"/nueva", key), `value="77"`)
}

// TestPanelProvesRepeats: what sends events of the past once more, or shows a secret, needs the
// password.
func TestPanelProvesRepeats(t *testing.T) {
	t.Parallel()
	for _, f := range webhookArea().forms {
		if _, what, _ := strings.Cut(f.path, "{hook}"); (what == "/repetir" || what == "/secreto") != f.proof {
			t.Errorf("%s: the password is asked for: %v", f.path, f.proof)
		}
	}
}

// TestPanelProvesConfig: a change of the configuration is reviewed without the password, and
// applied with it.
func TestPanelProvesConfig(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	path := "/panel/recompensas/" + p.panelShop.shop.config().Rewards[0].ID.String()
	page := p.want(http.StatusOK, "", p.send("GET", path+"?f=TOKEN0123456789A", nil))
	change := url.Values{etagField: {hidden(page).Get(etagField)}, "pointsCost": {"90"}}
	page = p.want(http.StatusOK, "", p.post(path, change), "Esto va a cambiar")
	change.Set(reviewedField, digestForm.FindStringSubmatch(page)[1])
	before := string(p.panelShop.shop.exportedDocument())
	page = p.want(http.StatusForbidden, "", p.post(path, change))
	same(t, "the document before the password", string(p.panelShop.shop.exportedDocument()), before)
	if w := p.prove(page); w.Code != http.StatusSeeOther || p.panelShop.shop.config().Rewards[0].PointsCost != decimalOf(90) {
		t.Errorf("%d, it costs %v", w.Code, p.panelShop.shop.config().Rewards[0].PointsCost)
	}
}

// TestPanelProvesPages: pages with forms to fill in, and files, ask for the password before
// they are shown.
func TestPanelProvesPages(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	confirm := func(path string) string { return withQuery(provePath, []pair{{"ir", path}}) }
	key := must(p.panelShop.shop, func(t *txn) (string, error) {
		k, _, err := t.keys.create(keyRequest{Name: "Caja"})
		return k.ID.String(), err
	})
	for _, path := range []string{
		keysPath + "/nueva", keysPath + "/" + key + "/cambiar", keysPath + "/" + key + "/renovar", keysPath + "/" + key + "/revocar",
		"/panel/equipo/nuevo", "/panel/equipo/" + p.panelShop.users[roleCashier].String(), "/panel/cuenta/segundo-factor",
	} {
		p.want(http.StatusSeeOther, confirm(path), p.send("GET", path, nil))
	}
	for file, want := range map[string]string{auditPath + "/exportar?action=key.created": "key.created,", "/panel/estadisticas/csv/ventas?groupBy=week": "semana,"} {
		path, query, _ := strings.Cut(file, "?")
		fields, _ := url.ParseQuery(query)
		page := p.want(http.StatusForbidden, "", p.post(path, fields), "contraseña otra vez")
		page = p.want(http.StatusOK, "", p.prove(page), `<form method="post" action="`+path+`" data-again>`, "Descargar")
		if w := p.send("POST", path, hidden(page)); w.Code != http.StatusOK || w.Header().Get("Content-Disposition") == "" || !strings.Contains(strings.ToLower(w.Body.String()), want) {
			t.Errorf("%s: %d %s", file, w.Code, w.Body)
		}
		p.want(http.StatusSeeOther, "/panel/equipo/nuevo", p.send("GET", confirm("/panel/equipo/nuevo"), nil)) // it is proved
		p.panelShop.shop.pass(proofHolds)
	}
}
