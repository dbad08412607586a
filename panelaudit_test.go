package main

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestActionTexts: the audit page has words for all that the log can tell of.
func TestActionTexts(t *testing.T) {
	t.Parallel()
	actions := slices.Clone(auditActions)
	for _, f := range panelForms() {
		if f.action != "" {
			actions = append(actions, f.action)
		}
	}
	for _, action := range actions {
		if !hasText("action." + action) {
			t.Errorf("no text of %s", action)
		}
		if word, _, _ := strings.Cut(action, "."); word != "clock" && !hasText("about."+word) {
			t.Errorf("no text of what %s is about", action)
		}
	}
	for _, source := range auditSources {
		if !hasText("from." + source) {
			t.Errorf("no text of %s", source)
		}
	}
}

// auditedShop is a shop whose log has entries of each member, of keys and of commands.
func auditedShop(t *testing.T) *panelShop {
	s := newPanelShop(t, panelSetup)
	k, _ := s.shop.newKey(keyRequest{Name: "Caja", Scopes: []string{"points:write"}})
	ana := s.shop.customer("ana")
	for i := range 40 {
		r := roles[i%len(roles)]
		s.shop.pass(oneDay / 8)
		must(s.shop, func(t *txn) (any, error) {
			t.by = creator{Type: byUser, ID: s.users[r]}
			if i%7 == 3 {
				t.by = creator{Type: byKey, ID: k.ID, Actor: "caja-2/Luis"}
			}
			switch i % 3 {
			case 0:
				return nil, t.audited(auditKeyChanged, k.ID.String(), []change{{"rateLimit", i, i + 1}})
			case 1:
				return nil, t.audited(auditCustomerUpdated, ana.String(), unsaid("email"))
			}
			return nil, t.audited("points.added", ana.String(), nil)
		})
	}
	for _, r := range roles { // the first ones have ended
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) {
			return t.startSession(s.users[r], sessionFull, &arrival{})
		})
	}
	return s
}

// TestAuditShare: who may read the log in part gets its own entries, and those of keys if it
// manages keys: the same that going through the whole log finds, in pages too.
func TestAuditShare(t *testing.T) {
	t.Parallel()
	s := auditedShop(t)
	for _, r := range roles {
		m := &member{user: &user{ID: s.users[r]}, role: r}
		for _, f := range []auditFilter{{to: never}, {to: never, action: "points.added"}, {to: never, actor: "caja-2/Luis"}, {to: never, kind: auditKindChange}, {to: never, kind: auditKindSession}, {to: s.shop.clock - 2*86_400_000, from: s.shop.clock - 4*86_400_000}} {
			var want, got []uint64
			share := f
			share.within = m.auditShare()
			all := ask(s.shop, func(t *txn) ([]*auditEntry, error) {
				list, _, err := t.auditEntries(f, page{1, 1000})
				return list, err
			})
			for _, e := range all {
				if r.may("audit:read") == grantAll || e.By.ID == s.users[r] || r == roleDeveloper && strings.HasPrefix(e.Action, "key.") {
					want = append(want, e.Seq)
				}
			}
			total := uint64(1)
			for n := uint64(1); uint64(len(got)) < total; n++ {
				part := ask(s.shop, func(t *txn) ([]*auditEntry, error) {
					list, all, err := t.auditEntries(share, page{n, 3})
					total = all
					return list, err
				})
				if len(part) == 0 {
					break
				}
				for _, e := range part {
					got = append(got, e.Seq)
				}
			}
			if !slices.Equal(got, want) || total != uint64(len(want)) {
				t.Errorf("%s, %+v: %d of %d, want %d", r, f, got, total, want)
			}
		}
	}
}

// TestAuditPage: the page names who, what and about what, links to what may be opened, and
// shows nobody more than their share.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	s := auditedShop(t)
	ana := s.shop.customer("ana")
	for _, test := range []struct {
		as         role
		path       string
		has, hasNo []string
	}{
		{roleOwner, auditPath, []string{"test · caja-2/Luis", "Cambió una clave de API", "Cashier", "por la API", "/panel/clientes/" + ana.String(), "<del>39</del>", "<ins>40</ins>", "no se guarda aquí", "/exportar"}, nil},
		{roleOwner, auditPath + "?actor=" + url.QueryEscape("caja-2/Luis"), []string{"caja-2/Luis"}, []string{"<td>Cashier", "<td>Owner"}},
		{roleOwner, auditPath + "?action=nothing.done", []string{"Ninguna entrada coincide"}, []string{"<tbody>"}},
		{roleOwner, auditPath + "?from=ayer", []string{`role="alert"`}, []string{"<tbody>"}},
		{roleCashier, auditPath, []string{"lo que hiciste tú"}, []string{"caja-2/Luis", "<td>Owner", "/exportar", "/panel/desarrollo"}},
		{roleDeveloper, auditPath, []string{"Cambió una clave de API", "y lo que se hizo con las claves"}, []string{"/panel/clientes", ">ana<"}},
	} {
		w := s.open(test.as, test.path)
		body := mainOf(w.Body.String())
		for _, text := range test.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s as %s has no %q:\n%s", test.path, test.as, text, body)
			}
		}
		for _, text := range test.hasNo {
			if strings.Contains(body, text) {
				t.Errorf("%s as %s has %q:\n%s", test.path, test.as, text, body)
			}
		}
	}
}

// TestAuditKinds: the page shows changes; log-ins and everything are one link away, each with
// its own count, pages, choices and file. An action of a log-in leads to them.
func TestAuditKinds(t *testing.T) {
	t.Parallel()
	s := auditedShop(t)
	for range 45 {
		must(s.shop, func(t *txn) (any, error) {
			t.by = creator{Type: byUser, ID: s.users[roleOwner]}
			return nil, t.audited(auditSessionStarted, s.users[roleOwner].String(), nil)
		})
	}
	count := func(kind string) string {
		_, total := askAudit(s.shop, auditFilter{to: never, kind: kind})
		return "<b>" + newFormat(t, "MX", "es", "MXN").Count(total) + "</b>"
	}
	const logIn, change, logInChoice, changeChoice = "<td>Entró al panel", "<td>Cambió una clave de API", `value="session.started"`, `value="key.changed"`
	for _, test := range []struct {
		query      string
		has, hasNo []string
	}{
		{"", []string{change, count(auditKindChange), changeChoice, `exportar?kind=Change"`, `<a href="/panel/auditoria?kind=Session">Accesos</a>`}, []string{logIn, logInChoice}},
		{"?kind=Session", []string{logIn, count(auditKindSession), logInChoice, "Página 1 de 3", "kind=Session&amp;page=2", `name="kind" value="Session"`}, []string{change, changeChoice}},
		{"?kind=Session&page=3", []string{logIn, "Página 3 de 3"}, []string{change}},
		{"?kind=All", []string{logIn, count(""), logInChoice, changeChoice}, nil},
		{"?kind=All&page=2", []string{logIn}, nil},
		{"?action=session.started", []string{logIn, `aria-current="true">Accesos`, `href="/panel/auditoria?kind=Change"`, `href="/panel/auditoria?action=session.started&amp;kind=All"`}, nil},
		{"?action=key.changed&actor=x", []string{`aria-current="true">Cambios`, `href="/panel/auditoria?actor=x&amp;kind=Session"`}, nil},
		{"?kind=Other", []string{`role="alert"`}, []string{"<tbody>"}},
	} {
		body := mainOf(s.open(roleOwner, auditPath+test.query).Body.String())
		for _, text := range test.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s has no %q:\n%s", test.query, text, body)
			}
		}
		for _, text := range test.hasNo {
			if strings.Contains(body, text) {
				t.Errorf("%s has %q:\n%s", test.query, text, body)
			}
		}
	}
	for query, has := range map[string][2]bool{"": {true, false}, "?kind=Session": {false, true}, "?kind=All": {true, true}} {
		file := s.get(roleOwner, auditPath+"/exportar"+query).Body.String()
		if got := [2]bool{strings.Contains(file, auditKeyChanged), strings.Contains(file, auditSessionStarted)}; got != has {
			t.Errorf("the file %q has changes and log-ins: %v, want %v", query, got, has)
		}
	}
}

// askAudit is what a filter chooses.
func askAudit(s *shop, f auditFilter) (list []*auditEntry, total uint64) {
	ask(s, func(t *txn) (any, error) {
		var err error
		list, total, err = t.auditEntries(f, page{1, 1000})
		return nil, err
	})
	return list, total
}

// TestAuditExport: the file has a line for each change, and no cell that a spreadsheet runs.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	s := auditedShop(t)
	must(s.shop, func(t *txn) (any, error) {
		t.by = creator{Type: byCommand, Actor: "=1+2"}
		return nil, t.audited(auditConfigurationApplied, "", []change{{"name", "-5", "+7"}, {"other", nil, "@x"}})
	})
	w := s.get(roleOwner, auditPath+"/exportar?kind=All")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
		t.Fatal(w.Code, w.Header())
	}
	text, marked := strings.CutPrefix(w.Body.String(), markUTF8)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if !marked {
		t.Error("no byte order mark")
	}
	if err != nil {
		t.Fatal(err)
	}
	entries := ask(s.shop, (*txn).count).Audit
	if want := entries + 2; uint64(len(rows)) < entries || rows[1][5] != "'=1+2" || rows[1][9] != "name" || rows[2][9] != "other" || uint64(len(rows)) < want {
		t.Errorf("%d entries, %d rows: %q", entries, len(rows), rows[:3])
	}
	if w := s.get(roleOwner, auditPath+"/exportar?action="+auditConfigurationApplied+"&from=2026-03-05"); strings.Count(w.Body.String(), "\n") != 3 {
		t.Errorf("with a filter: %s", w.Body)
	}
	for _, r := range []role{roleManager, roleCashier, roleViewer, roleDeveloper} {
		if w := s.get(r, auditPath+"/exportar"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", r, w.Code)
		}
	}
}

// TestAuditValues: values are those of the panel's forms, in the reader's language; what has
// no value before or after reads as set or removed.
func TestAuditValues(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, test := range []struct {
		reason string
		c      change
		es, en string
	}{
		{"a box", change{"organization.plan.apiAccess", nil, true}, "Organización › Acceso a la API|ahora: sí", "Organization › API access|now: yes"},
		{"a box, taken off", change{"organization.settings.cashierReturns", true, false}, "Organización › La caja puede devolver|sí → pasa a no", "Organization › Cashiers may return|yes → becomes no"},
		{"a choice", change{"rewards[taza].status", "Active", "Inactive"}, "Recompensa taza › Estado|Activa → pasa a Archivada", "Reward taza › Status|Active → becomes Archived"},
		{"money", change{"programs[club].rules[base].minAmount", nil, dec("1500")}, "Programa club › Regla base › Desde un importe de|ahora: 1,500.00\u00a0MXN", "Program club › Rule base › From an amount of|now: 1,500.00\u00a0MXN"},
		{"a day", change{"rewards[taza].validTo", "2026-12-31", nil}, "Recompensa taza › Vale hasta|31 dic 2026 se quitó", "Reward taza › Valid until|31 Dec 2026 was removed"},
		{"a role", change{"role", "cashier", "manager"}, "Rol|Caja → pasa a Encargado", "Role|Cashier → becomes Manager"},
		{"a name that is a word too", change{"rewards[taza].name", nil, "Month"}, "Recompensa taza › Nombre|ahora: Month", "Reward taza › Name|now: Month"},
		{"a number", change{"rateLimit", 1000, 20000}, "Solicitudes por minuto|1,000 → pasa a 20,000", "Requests a minute|1,000 → becomes 20,000"},
	} {
		must(s.shop, func(t *txn) (any, error) { return nil, t.audited(auditConfigurationApplied, "", []change{test.c}) })
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			s.speaks(roleOwner, lang)
			body := mainOf(s.open(roleOwner, auditPath).Body.String())
			_, line, _ := strings.Cut(body, `<li class="changed"><span>`)
			line, _, _ = strings.Cut(line, "</li>")
			label, value, _ := strings.Cut(line, "</span>")
			got := label + "|" + strings.Join(strings.Fields(regexp.MustCompile("<[^>]*>").ReplaceAllString(strings.ReplaceAll(value, "</span><span", "</span> <span"), "")), " ")
			if strings.ReplaceAll(got, "\u00a0", " ") != strings.ReplaceAll(want, "\u00a0", " ") {
				t.Errorf("%s: %q, want %q", test.reason, got, want)
			}
		}
	}
}
