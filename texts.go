package main

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The texts of the panel, in Spanish and English, are the tables panel/*.txt: each line is a name that
// says where the text stands, the Spanish and the English text, with tabs between them, in the order of
// the names. A text is as in a Go string; a % begins a place for an argument, %% is the sign. The
// API's texts are Spanish alone (spec).

// A panelText is one text in each language.
type panelText struct{ es, en string }

// panelTexts are texts by name.
type panelTexts map[string]panelText

//go:embed panel/*.txt
var textFiles embed.FS

// allTexts are the texts of the panel, its errors included.
var allTexts = sync.OnceValue(func() panelTexts {
	all, err := readTexts(textFiles)
	if err != nil {
		panic(err) // the tables are part of the binary, which tests have read
	}
	return all
})

// readTexts reads all tables. An error says the file, the line and the column.
func readTexts(files fs.FS) (panelTexts, error) {
	all := panelTexts{}
	paths, err := fs.Glob(files, "panel/*.txt")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		table, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		if column, line, why := all.add(string(table)); why != "" {
			return nil, fmt.Errorf("%s:%d:%d: %s", path, line, column, why)
		}
	}
	return all, nil
}

// add adds the rows of a table. why says what is wrong at a column of a line, both from 1 on.
func (t panelTexts) add(table string) (column, line int, why string) {
	before := ""
	for row := range strings.Lines(table) {
		line++
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		name := cells[0]
		if len(cells) != 3 || !strings.HasSuffix(row, "\n") {
			return 1, line, "a row is a name and two texts, with tabs between them"
		}
		if _, twice := t[name]; twice || name <= before {
			return 1, line, name + " is not in order, or is there twice"
		}
		column = len(name) + 2
		for i, text := range cells[1:] {
			read, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
			if err != nil || text == "" {
				return column, line, "not a text"
			}
			cells[1+i], column = read, column+len(text)+1
		}
		t[name], before = panelText{cells[1], cells[2]}, name
	}
	return 0, 0, ""
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
