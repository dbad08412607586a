package main

import (
	"embed"
	"net/http"
	"strings"
	"sync"

	"sello/internal/texts"
)

// The texts of the panel, in Spanish and English, are the tables panel/*.txt (internal/texts). The
// API's texts are Spanish alone (spec).

//go:embed panel/*.txt
var textFiles embed.FS

// allTexts are the texts of the panel, its errors included.
var allTexts = sync.OnceValue(func() texts.Table {
	all, err := texts.Read(textFiles, "panel/*.txt")
	if err != nil {
		panic(err) // the tables are part of the binary, which tests have read
	}
	return all
})

// tr is the text of a name, with its arguments. Tests open every page.
func tr(lang texts.Language, name string, args ...any) string { return lang.Text(name, args...) }

// counted is tr of a text with a number of things, which is its first argument. The text of
// one thing has a name that ends in ".one", and says the number itself.
func counted(lang texts.Language, name, n string, others ...any) string {
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
	return texts.Accepted(r.Header.Get("Accept-Language"))
}
