package reference

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const small = `{"openapi":"3.1.0","info":{"title":"Tienda","version":"2","description":"Uno.\n\n## Zeta & co\n\n- a <b>\n- ` + "`c`" + `\n\n| x | y |\n|---|---|\n| 1 | **2** |"},
"security":[{"k":[]}],"tags":[{"name":"Ventas","description":"Dos."}],
"paths":{"/z/{id}":{"post":{"operationId":"sell","tags":["Ventas"],"summary":"Vende",
  "parameters":[{"$ref":"#/components/parameters/id"}],
  "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/In"},"example":{"b":1.50,"a":"it's"}}}},
  "responses":{"400":{"description":"Mal.","content":{"application/json":{"schema":{"properties":{"code":{"enum":["bad_one"]}}}}}},
    "201":{"description":"Bien.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/In"}}}}}}},
 "/a":{"get":{"operationId":"look","tags":["Ventas"],"summary":"Mira","security":[],"responses":{}}}},
"components":{"parameters":{"id":{"name":"id","in":"path","required":true,"schema":{"type":"string","maxLength":9}}},
 "schemas":{"In":{"type":"object","required":["b"],"properties":{"b":{"type":["number","null"],"description":"Cuánto."},"a":{"type":"array","items":{"enum":["x","y"]}}}}}}}`

var words = Words{Lang: "es", ListOf: "lista de", Or: "o", Required: "obligatorio", Optional: "puede faltar", AtMost: "como máximo", Characters: "caracteres"}

// TestPage checks what becomes of each part of a document.
func TestPage(t *testing.T) {
	p, err := New([]byte(small), words)
	if err != nil {
		t.Fatal(err)
	}
	page := string(p.For("https://x.mx"))
	for _, want := range []string{
		`<html lang="es">`, "<title>Tienda 2</title>", `<h2 id="zeta---co">Zeta &amp; co</h2>`, "<li>a &lt;b&gt;</li>", "<li><code>c</code></li>",
		"<th>x</th>", "<td><strong>2</strong></td>", "<p>Dos.</p>", `<li><a href="#sell">Vende</a><span class="route">POST /z/{id}</span></li>`, "<code>bad_one</code>", "Cuánto.",
		"curl -X POST https://x.mx/z/{id} \\\n  -H &#34;Authorization", "&#34;b&#34;: 1.50,\n  &#34;a&#34;: &#34;it&#39;\\&#39;&#39;s&#34;", "curl https://x.mx/a<",
		`<a href="#esquema-In">In</a>`, "number o null", "lista de <code>x</code>, <code>y</code>", "<code>b</code><small>obligatorio</small></td>", "<code>b</code></td>", "<code>a</code></td>", "<code>a</code><small>puede faltar</small></td>", "como máximo 9 caracteres",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Index(page, "Vende") > strings.Index(page, "Mira") || strings.Index(page, ">201<") > strings.Index(page, ">400<") {
		t.Error("routes in another order than the document's, or answers out of order")
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		id, err := url.PathUnescape(link[1])
		if err != nil || !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the link to #%s leads nowhere", link[1])
		}
	}
}

// TestPageRefused gives documents that cannot be read.
func TestPageRefused(t *testing.T) {
	for _, text := range []string{"", "{", `{"a":}`, `{"paths":{"x":{"$ref":"#/components/none"}}}`, `{"a":[{"$ref":"#/x"}]}`} {
		if _, err := New([]byte(text), words); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
