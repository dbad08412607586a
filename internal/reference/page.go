package reference

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

// Words are the page's own words, in the document's language.
type Words struct {
	Lang                                                                              string // as in <html lang>
	Fields, Parameters, Body, Answers, Name, Type, About, Required, Optional, Schemas string
	Contents, Example, Codes, Or, ListOf, AtMost, AtLeast, Above, Default, Characters string
}

// A Page is an OpenAPI document as HTML.
type Page struct{ text, part []byte }

// base stands in the page for the URL of the server.
const base = "https://base.invalid"

// For returns the page with curl lines for the server at a URL such as
// https://example.com.
func (p *Page) For(url string) []byte { return named(p.text, url) }

// PartFor returns what the page has below its title, after the contents, to be a part of
// another page, which has the style.
func (p *Page) PartFor(url string) template.HTML { return template.HTML(named(p.part, url)) }

func named(text []byte, url string) []byte {
	return bytes.ReplaceAll(text, []byte(base), []byte(template.HTMLEscapeString(url)))
}

// New makes the page of an OpenAPI document in JSON.
func New(openAPI []byte, w Words) (*Page, error) {
	v, err := parse(openAPI)
	if err != nil {
		return nil, err
	}
	o, _ := v.(object)
	d := document{o}
	if err := d.check(o); err != nil {
		return nil, err
	}
	m := &maker{d, w}
	tmpl, err := template.New("page").Funcs(template.FuncMap{"slug": slug, "table": newTable, "schema": newSchemaTable}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var text, part bytes.Buffer
	view := m.view()
	if err := tmpl.Execute(&text, view); err != nil {
		return nil, err
	}
	if err := tmpl.ExecuteTemplate(&part, "part", view); err != nil {
		return nil, err
	}
	return &Page{text.Bytes(), part.Bytes()}, nil
}

// A maker turns a document into what the template shows.
type maker struct {
	document
	words Words
}

type pageView struct {
	Words          Words
	Title, Version string
	Intro          template.HTML
	Sections       []string // headings of Intro
	Tags           []tagView
	Schemas        []schemaView
}

type tagView struct {
	Name, ID   string
	About      template.HTML
	Operations []operationView
}

type operationView struct {
	ID, Method, Path, Summary string
	About                     template.HTML
	Parameters                []fieldView
	BodyName                  string
	Body                      []fieldView
	Examples                  []exampleView
	Answers                   []answerView
}

type fieldView struct {
	Name, In    string
	Type        template.HTML
	About       template.HTML
	Required    bool
	Constraints string
}

// A tableView is a table of fields, with its caption. What a client sends is marked where it
// must be there, and a schema where it may be absent: most fields of answers always are.
type tableView struct {
	Caption string
	Fields  []fieldView
	Words   Words
	Schema  bool
}

func newTable(caption string, fields []fieldView, w Words) tableView {
	return tableView{caption, fields, w, false}
}

func newSchemaTable(caption string, fields []fieldView, w Words) tableView {
	return tableView{caption, fields, w, true}
}

type exampleView struct{ Title, Text string }

type answerView struct {
	Status   string
	Good     bool
	About    template.HTML
	Schema   template.HTML
	Codes    []string
	Examples []exampleView
}

type schemaView struct {
	Name, ID string
	About    template.HTML
	Fields   []fieldView
	Type     template.HTML
}

func (m *maker) view() pageView {
	info := m.object.object("info")
	v := pageView{
		Words: m.words, Title: info.text("title"), Version: info.text("version"),
		Intro: blocks(info.text("description"), "h2"),
	}
	for line := range strings.Lines(info.text("description")) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			v.Sections = append(v.Sections, title)
		}
	}
	for _, tag := range m.list("tags") {
		o, _ := tag.(object)
		name := o.text("name")
		v.Tags = append(v.Tags, tagView{name, slug(name), blocks(o.text("description"), "h4"), m.operations(name)})
	}
	for _, s := range m.object.object("components").object("schemas") {
		o, _ := s.Value.(object)
		v.Schemas = append(v.Schemas, schemaView{s.Name, schemaID(s.Name), blocks(o.text("description"), "h4"), m.fields(o), m.typeOf(o)})
	}
	return v
}

func schemaID(name string) string { return "esquema-" + name }

// operations returns those of a tag, in the document's order.
func (m *maker) operations(tag string) (list []operationView) {
	for _, path := range m.object.object("paths") {
		methods, _ := path.Value.(object)
		for _, method := range methods {
			o, _ := method.Value.(object)
			if slices.Contains(o.list("tags"), any(tag)) {
				list = append(list, m.operation(path.Name, strings.ToUpper(method.Name), o))
			}
		}
	}
	return list
}

func (m *maker) operation(path, method string, o object) operationView {
	v := operationView{
		ID: o.text("operationId"), Method: method, Path: path, Summary: o.text("summary"), About: blocks(o.text("description"), "h4"),
	}
	for _, p := range o.list("parameters") {
		p, _ := m.resolved(p)
		schema, _ := m.resolved(p.get("schema"))
		v.Parameters = append(v.Parameters, fieldView{
			p.text("name"), p.text("in"), m.typeOf(schema), inline(p.text("description")), p.get("required") == true, m.constraints(schema),
		})
	}
	content := o.object("requestBody").object("content").object("application/json")
	var bodies []exampleView
	if len(content) > 0 {
		var body object
		body, v.BodyName = m.resolved(content.get("schema"))
		v.Body = m.fields(body)
		bodies = examplesOf(content)
	}
	if len(bodies) == 0 {
		bodies = []exampleView{{}}
	}
	for _, body := range bodies {
		v.Examples = append(v.Examples, exampleView{body.Title, curl(method, path, body.Text, m.asksForKey(o))})
	}
	for _, answer := range o.object("responses") {
		v.Answers = append(v.Answers, m.answer(answer))
	}
	slices.SortStableFunc(v.Answers, func(a, b answerView) int { return strings.Compare(a.Status, b.Status) })
	return v
}

// asksForKey reports whether an operation has a security requirement, of its own or the
// document's.
func (m *maker) asksForKey(o object) bool {
	if o.get("security") == nil {
		o = m.object
	}
	return len(o.list("security")) > 0
}

// curl is a command line for an operation. Parts of the path in braces stay, for people to
// fill in.
func curl(method, path, body string, withKey bool) string {
	var b strings.Builder
	b.WriteString("curl")
	if method != "GET" {
		b.WriteString(" -X " + method)
	}
	fmt.Fprintf(&b, " %s%s", base, path)
	if withKey {
		b.WriteString(" \\\n  -H \"Authorization: Bearer $SELLO_KEY\"")
	}
	if body != "" {
		b.WriteString(" \\\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(body, "'", `'\''`) + "'")
	}
	return b.String()
}

func examplesOf(content object) (list []exampleView) {
	if v := content.get("example"); v != nil {
		list = append(list, exampleView{"", indented(v)})
	}
	for _, e := range content.object("examples") {
		o, _ := e.Value.(object)
		list = append(list, exampleView{o.text("summary"), indented(o.get("value"))})
	}
	return list
}

func (m *maker) answer(of member) answerView {
	o, _ := m.resolved(of.Value)
	content := o.object("content").object("application/json")
	v := answerView{Status: of.Name, Good: of.Name < "300", About: inline(o.text("description")), Examples: examplesOf(content)}
	schema, _ := content.get("schema").(object)
	if schema == nil {
		return v
	}
	for _, code := range schema.object("properties").object("code").list("enum") {
		if code, ok := code.(string); ok {
			v.Codes = append(v.Codes, code)
		}
	}
	if v.Good {
		v.Schema = m.typeOf(schema)
	}
	return v
}

// fields lists the members of an object schema.
func (m *maker) fields(schema object) (list []fieldView) {
	required := schema.list("required")
	for _, p := range schema.object("properties") {
		own, _ := p.Value.(object)
		resolved, name := m.resolved(own)
		about := own.text("description")
		if name == "" {
			about = resolved.text("description")
		}
		list = append(list, fieldView{
			Name: p.Name, Type: m.typeOf(own), About: inline(about),
			Required: slices.Contains(required, any(p.Name)), Constraints: m.constraints(own),
		})
	}
	return list
}

// typeOf says in a few words what values a schema has; a named schema is a link.
func (m *maker) typeOf(schema object) template.HTML {
	if ref := schema.text("$ref"); ref != "" {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		if strings.HasPrefix(ref, "#/components/schemas/") {
			return template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, template.HTMLEscapeString(schemaID(name)), template.HTMLEscapeString(name)))
		}
		schema, _ = m.resolved(schema)
	}
	if any := schema.list("oneOf"); any != nil {
		var names []string
		for _, s := range any {
			o, _ := s.(object)
			names = append(names, string(m.typeOf(o)))
		}
		return template.HTML(strings.Join(names, " "+template.HTMLEscapeString(m.words.Or)+" "))
	}
	if values := schema.list("enum"); values != nil {
		var names []string
		for _, v := range values {
			names = append(names, "<code>"+template.HTMLEscapeString(strings.Trim(indented(v), `"`))+"</code>")
		}
		return template.HTML(strings.Join(names, ", "))
	}
	if items, ok := schema.get("items").(object); ok {
		return template.HTML(template.HTMLEscapeString(m.words.ListOf) + " " + string(m.typeOf(items)))
	}
	var names []string
	switch t := schema.get("type").(type) {
	case string:
		names = []string{t}
	case []any:
		for _, v := range t {
			names = append(names, fmt.Sprint(v))
		}
	}
	text := strings.Join(names, " "+m.words.Or+" ")
	if format := schema.text("format"); format != "" {
		text += " (" + format + ")"
	}
	return template.HTML(template.HTMLEscapeString(text))
}

// constraints says what bounds a schema sets.
func (m *maker) constraints(schema object) string {
	var parts []string
	for _, c := range []struct{ name, words string }{
		{"default", m.words.Default}, {"exclusiveMinimum", m.words.Above}, {"minimum", m.words.AtLeast}, {"maximum", m.words.AtMost},
		{"minLength", m.words.AtLeast}, {"maxLength", m.words.AtMost}, {"maxItems", m.words.AtMost}, {"maxProperties", m.words.AtMost},
	} {
		if v := schema.get(c.name); v != nil {
			unit := map[string]string{"minLength": " " + m.words.Characters, "maxLength": " " + m.words.Characters}[c.name]
			parts = append(parts, c.words+" "+strings.Trim(indented(v), `"`)+unit)
		}
	}
	return strings.Join(parts, "; ")
}
