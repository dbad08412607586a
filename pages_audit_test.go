package main

import (
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sello/internal/sheet"
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
				return nil, t.audit.note(auditKeyChanged, k.ID.String(), []change{{"rateLimit", i, i + 1}})
			case 1:
				return nil, t.audit.note(auditCustomerUpdated, ana.String(), unsaid("email"))
			}
			return nil, t.audit.note("points.added", ana.String(), nil)
		})
	}
	for _, r := range roles { // the first ones have ended
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) {
			return t.people.startSession(s.users[r], sessionFull, &arrival{})
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
				list, _, err := t.audit.entries(f, page{1, 1000})
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
					list, all, err := t.audit.entries(share, page{n, 3})
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
			return nil, t.audit.note(auditSessionStarted, s.users[roleOwner].String(), nil)
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
		{"", []string{change, count(auditKindChange), changeChoice, `name="kind" value="Change"`, `<a href="/panel/auditoria?kind=Session">Accesos</a>`}, []string{logIn, logInChoice}},
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
		file := s.file(roleOwner, auditPath+"/exportar"+query).Body.String()
		if got := [2]bool{strings.Contains(file, auditKeyChanged), strings.Contains(file, auditSessionStarted)}; got != has {
			t.Errorf("the file %q has changes and log-ins: %v, want %v", query, got, has)
		}
	}
}

// askAudit is what a filter chooses.
func askAudit(s *shop, f auditFilter) (list []*auditEntry, total uint64) {
	ask(s, func(t *txn) (any, error) {
		var err error
		list, total, err = t.audit.entries(f, page{1, 1000})
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
		return nil, t.audit.note(auditConfigurationApplied, "", []change{{"name", "-5", "+7"}, {"other", nil, "@x"}})
	})
	w := s.file(roleOwner, auditPath+"/exportar?kind=All")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
		t.Fatal(w.Code, w.Header())
	}
	text, marked := strings.CutPrefix(w.Body.String(), sheet.MarkUTF8)
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
	if w := s.file(roleOwner, auditPath+"/exportar?action="+auditConfigurationApplied+"&from=2026-03-05"); strings.Count(w.Body.String(), "\n") != 3 {
		t.Errorf("with a filter: %s", w.Body)
	}
	for _, r := range []role{roleManager, roleCashier, roleViewer, roleDeveloper} {
		if w := s.file(r, auditPath+"/exportar"); w.Code != http.StatusForbidden {
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
		{"a reward's status is not a customer's", change{"rewards[taza].status", nil, "Active"}, "Recompensa taza › Estado|ahora: Activa", "Reward taza › Status|now: Active"},
		{"a redemption's status", change{"status", redemptionIssued, redemptionCancelled}, "Estado|Por usar → pasa a Cancelado", "Status|To be used → becomes Cancelled"},
		{"a customer's status", change{"status", statusActive, statusInactive}, "Estado|Activo → pasa a Inactivo", "Status|Active → becomes Inactive"},
		{"a webhook's status", change{"webhooks[crm].status", statusActive, statusInactive}, "Webhook crm › Estado|Activo → pasa a Inactivo", "Webhook crm › Status|Active → becomes Inactive"},
		{"scopes", change{"scopes", nil, []string{"points:write", "customers:erase"}}, "Permisos|ahora: Puntos: escribir, Unir y borrar clientes", "Permissions|now: Points: write, Merge and erase customers"},
		{"an item that is called as a word", change{"programs[club].rules[base].skus[0]", nil, "Product"}, "Programa club › Regla base › Artículo|ahora: Product", "Program club › Rule base › Item|now: Product"},
		{"roles", change{"organization.settings.secondFactor[0]", nil, "owner"}, "Organización › Necesita segundo factor|ahora: Propietario", "Organization › Needs a second factor|now: Owner"},
		{"a comparison", change{"segments[vip].rule.all[0].not.op", "<=", ">"}, "Segmento vip › Condición › Se cumplen todas 0 › No se cumple › Es|como mucho → pasa a más de", "Segment vip › Condition › All of them 0 › Not › Is|at most → becomes more than"},
		{"an order", change{"programs[club].rules.order", keyOrder{"es", "b"}, keyOrder{"b", "es"}}, "Programa club › Regla › Orden|es, b → pasa a b, es", "Program club › Rule › Order|es, b → becomes b, es"},
		{"the slug", change{"organization.slug", "luna", "sol"}, "Organización › Identificador|luna → pasa a sol", "Organization › Identifier|luna → becomes sol"},
		{"a lost contact", change{"dropped.email", nil, nil}, "Se perdió › Email|cambió; lo que decía no se guarda aquí", "Lost › E-mail|changed; what it said is not kept here"},
		{"a theme", change{"theme", nil, "dark"}, "Tema|ahora: Oscuro", "Theme|now: Dark"},
		{"a number", change{"rateLimit", 1000, 20000}, "Solicitudes por minuto|1,000 → pasa a 20,000", "Requests a minute|1,000 → becomes 20,000"},
	} {
		must(s.shop, func(t *txn) (any, error) { return nil, t.audit.note(auditConfigurationApplied, "", []change{test.c}) })
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

// TestCreatorWords: there are words for each kind of who made a record.
func TestCreatorWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"es", "en"} {
		for _, kind := range creatorTypes {
			if !speaking(lang).Has("by." + kind) {
				t.Errorf("%s has no text of %s", lang, kind)
			}
		}
	}
}

// TestAuditWords: the page has words for each field of a document and each that the domain
// tells the audit log of, and for each word that a field of a document may have.
func TestAuditWords(t *testing.T) {
	skipRace(t)
	t.Parallel()
	format := newFormat(t, "MX", "es", "MXN")
	frames := []prose{{format, speaking("es")}, {format, speaking("en")}}
	labelled := func(action, field string) {
		label := frames[0].fieldName(action, field)
		for _, step := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(field, ""), -1) {
			if regexp.MustCompile(`(^|› )` + step + `( |$)`).MatchString(label) {
				t.Errorf("%s: %q", field, label)
			}
		}
	}
	fields, words := 0, 0
	schema := readDocumentSchema(t)
	var walk func(at jsonSchema, path string)
	walk = func(at jsonSchema, path string) {
		at = schema.follow(at)
		if strings.Count(path, ".all[")+strings.Count(path, ".any[")+strings.Count(path, ".not") > 2 {
			return // conditions within conditions
		}
		members, _ := at["properties"].(map[string]any)
		for name, member := range members {
			walk(member.(map[string]any), strings.TrimPrefix(path+"."+name, "."))
		}
		if items, is := at["items"].(map[string]any); is {
			walk(items, path+"[x]")
		}
		if members != nil || at["items"] != nil || path == "$schema" {
			return
		}
		labelled(auditConfigurationApplied, path)
		fields++
		values, _ := at["enum"].([]any)
		if kinds := fmt.Sprint(at["type"]); strings.Contains(kinds, "boolean") {
			values = append(values, true, false)
		}
		for _, value := range values {
			words++
			raw, err := jsonTextOf(value)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				if text := f.auditValue(path, raw); text == "" || f.Lang.Code == "es" && text == strings.Trim(string(raw), `"`) {
					t.Errorf("%s in %s: %s is %q", path, f.Lang, raw, text)
				}
			}
		}
	}
	walk(schema, "")
	if fields < 80 || words < 50 {
		t.Errorf("%d fields and %d words: the schema is read wrongly", fields, words)
	}
	told := toldFields(t)
	if len(told) < 30 {
		t.Errorf("%q: the sources are read wrongly", told)
	}
	for _, field := range told {
		labelled("", field)
	}
	for _, scope := range scopes {
		if text := frames[0].auditText("scopes", scope); strings.Contains(text, ":") && !strings.Contains(text, ": ") {
			t.Errorf("%s is %q", scope, text)
		}
	}
}

// toldFields are the names of fields that the domain tells the audit log of: those of changes
// that are written out, and what unsaid is given.
func toldFields(t *testing.T) (names []string) {
	c := &customer{}
	after := &customer{FirstName: "x", LastName: "x", Email: "x", Phone: "x", ExternalID: "x", BirthDate: 1, Attributes: make([]attribute, 1), Status: "x"}
	for _, told := range c.auditChanges(after) {
		names = append(names, told.Path)
	}
	names = append(names, contactLeft{Email: "x", Phone: "x", ExternalID: "x"}.fields()...)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := func(list []ast.Expr) {
		for _, e := range list {
			if lit, is := e.(*ast.BasicLit); is && lit.Kind == token.STRING {
				names = append(names, strings.Trim(lit.Value, `"`))
			}
		}
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if of, is := n.Type.(*ast.Ident); is && of.Name == "change" && len(n.Elts) > 0 {
					name(n.Elts[:1])
				}
				if of, is := n.Type.(*ast.ArrayType); is && fmt.Sprint(of.Elt) == "change" {
					for _, e := range n.Elts {
						if one, is := e.(*ast.CompositeLit); is {
							name(one.Elts[:1])
						}
					}
				}
			case *ast.CallExpr:
				if fmt.Sprint(n.Fun) == "unsaid" {
					name(n.Args)
				}
			}
			return true
		})
	}
	return names
}
