package main

import (
	"fmt"
	"net/http"
	"strings"
)

// The texts of the panel, in Spanish and English: one row for each, by a name that says
// where it stands. The API's texts are Spanish alone (spec).

// A panelText is one text in each language.
type panelText struct{ es, en string }

// panelTexts are all rows. Each file of the panel adds its own.
var panelTexts = map[string]panelText{}

// addTexts adds rows. It returns nothing of use: it is called where a package's variable is
// set, so that the rows stand beside what they are for.
func addTexts(rows map[string]panelText) bool {
	for name, row := range rows {
		if _, twice := panelTexts[name]; twice {
			panic("two texts " + name)
		}
		panelTexts[name] = row
	}
	return true
}

func hasText(name string) bool { _, ok := panelTexts[name]; return ok }

// tr is the text of a name, with its arguments. A name that nothing has panics; tests open
// every page.
func tr(lang, name string, args ...any) string {
	row, ok := panelTexts[name]
	if !ok {
		panic("no text " + name)
	}
	text := row.es
	if lang == "en" {
		text = row.en
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// counted is tr of a text with a number of things, which is its first argument. The text of
// one thing has a name that ends in ".one", and says the number itself.
func counted(lang, name, n string, others ...any) string {
	if n == "1" {
		return tr(lang, name+".one", others...)
	}
	return tr(lang, name, append([]any{n}, others...)...)
}

// languageOf is the language of a page: the member's choice, the organization's, or the
// browser's.
func languageOf(m *member, cfg *config, r *http.Request) string {
	if m != nil && m.user.Language != "" {
		return m.user.Language
	}
	if cfg != nil && strings.HasPrefix(cfg.Organization.Settings.Language, "en") {
		return "en"
	}
	if cfg != nil {
		return "es"
	}
	return acceptedLanguage(r)
}

// acceptedLanguage is the first language of Accept-Language that the panel has; "es" without.
func acceptedLanguage(r *http.Request) string {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		switch base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base {
		case "es", "en":
			return base
		}
	}
	return "es"
}

var _ = addTexts(map[string]panelText{
	"skip":           {"Ir al contenido", "Skip to content"},
	"nav":            {"Principal", "Main"},
	"nav.till":       {"Caja", "Till"},
	"nav.customers":  {"Clientes", "Customers"},
	"nav.sales":      {"Ventas", "Sales"},
	"role.owner":     {"Propietario", "Owner"},
	"role.admin":     {"Administrador", "Administrator"},
	"role.manager":   {"Encargado", "Manager"},
	"role.cashier":   {"Caja", "Cashier"},
	"role.viewer":    {"Consulta", "Viewer"},
	"role.developer": {"Desarrollador", "Developer"},
	"role.":          {"Sin organización", "No organization"},
	"out":            {"Salir", "Log out"},
	"account":        {"Mi cuenta", "My account"},
	"plain":          {"Esta dirección va sin cifrar: quien esté en la misma red puede leer lo que escribe.", "This address is not encrypted: whoever is in the same network can read what you type."},
	"error.title":    {"Error: %s", "Error: %s"},
	"error.summary":  {"Hay un problema", "There is a problem"},
	"saving":         {"Guardando…", "Saving…"},
	"list.found":     {"%s con este filtro", "%s with this filter"},
	"list.all":       {"%s en total", "%s in all"},
	"page.none":      {"No hay más páginas.", "There are no more pages."},
	"page":           {"Página %s de %s", "Page %s of %s"},
	"page.previous":  {"Anterior", "Previous"},
	"page.next":      {"Siguiente", "Next"},
	"search":         {"Buscar", "Search"},
	"all":            {"Todos", "All"},
	"required":       {"obligatorio", "required"},
	"none":           {"–", "–"},
})
