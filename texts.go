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

// panelTexts are texts by name. Each file of the panel has those of its pages.
type panelTexts map[string]panelText

// joinTexts puts texts together. Two of one name panic.
func joinTexts(parts ...panelTexts) panelTexts {
	all := panelTexts{}
	for _, texts := range parts {
		for name, text := range texts {
			if _, twice := all[name]; twice {
				panic("two texts " + name)
			}
			all[name] = text
		}
	}
	return all
}

// in returns the language that has a code.
func (t panelTexts) in(code string) language { return language{code, t} }

// A language is what a page is written in.
type language struct {
	code  string // "es" or "en"
	texts panelTexts
}

func (l language) String() string { return l.code }

func (l language) has(name string) bool { _, ok := l.texts[name]; return ok }

// tr is the text of a name, with its arguments. A name that nothing has panics; tests open
// every page.
func tr(lang language, name string, args ...any) string {
	row, ok := lang.texts[name]
	if !ok {
		panic("no text " + name)
	}
	text := row.es
	if lang.code == "en" {
		text = row.en
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// counted is tr of a text with a number of things, which is its first argument. The text of
// one thing has a name that ends in ".one", and says the number itself.
func counted(lang language, name, n string, others ...any) string {
	if n == "1" {
		return tr(lang, name+".one", others...)
	}
	return tr(lang, name, append([]any{n}, others...)...)
}

// languageOf is the code of a page's language: the member's choice, the organization's, or the
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

var commonTexts = panelTexts{
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
	"testing":        {"Pruebas: %s", "Sandbox: %s"},
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
	"filters":        {"Filtros", "Filters"},
	"required":       {"obligatorio", "required"},
	"none":           {"–", "–"},
}
