package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// What holds on every page. The pages are those that links lead an owner to, so a new one is
// among them by itself.

// A look is how a page is shown.
type look struct {
	theme  string
	width  int64
	height int64
}

func (l look) String() string { return fmt.Sprintf("%s-%d", l.theme, l.width) }

var looks = []look{{"light", 1280, 800}, {"dark", 320, 568}, {"light", 320, 568}, {"dark", 1280, 800}}

// stocked is a shop in which every list has something, and its owner runs the server too. All
// tests that change nothing share it.
var stocked struct {
	once     sync.Once
	shop     *shop
	customer string
	sale     string
	joining  []view   // of codes at the till
	pages    []string // that an owner finds
}

// inStock returns that shop, as a test uses it.
func inStock(t *testing.T) *shop {
	t.Helper()
	stocked.once.Do(func() {
		s := launch(t, temp)
		stocked.shop = s
		s.stock()
	})
	if stocked.pages == nil {
		t.Fatal("there is no shop with everything: see the first test that wanted it")
	}
	return stocked.shop.of(t)
}

// stock fills a shop.
func (s *shop) stock() {
	customer := s.customer("María")
	stocked.customer = customer
	s.configure(func(document map[string]any) {
		document["webhooks"] = []any{map[string]any{"key": "crm", "url": "https://crm.example.com/sello", "events": []any{"transaction.created"}, "status": "Inactive"}}
	})
	var made struct{ ID string }
	s.api("POST", "/transactions", `{"customerId":"`+customer+`","totalAmount":5000,"externalId":"T-1","comment":"Dos líneas\nde comentario","items":[{"sku":"GRANO-500","price":300,"quantity":5}]}`, &made)
	stocked.sale = made.ID
	for i := range 24 {
		id := s.enrol("Cliente", fmt.Sprintf("Número %d", i), fmt.Sprintf("+5255100000%02d", i))
		if i < 21 {
			s.api("POST", "/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":%d.50}`, id, 90+10*i), nil)
		}
	}
	f := s.formOf("owner", "/panel/caja/"+customer, "/panel/caja/"+customer+"/canje")
	if a := s.post("owner", f); a.Status != http.StatusSeeOther {
		s.t.Fatalf("redemption: %d\n%s", a.Status, a.Body)
	}
	s.ticket("T-801", "")
	s.ticket("T-802", customer)
	s.api("POST", "/tickets/cancel", `{"ticket":"`+strings.TrimPrefix(s.ticket("T-803", ""), "/c/")+`"}`, nil)
	s.offerJoining()
	_, fresh := s.fillIn(asNew...)
	_, known := s.fillIn(asMaria...)
	stocked.joining = tillJoinViews(fresh, known)
	s.operate("owner")
	for _, role := range []string{"cashier", "manager", "viewer", "developer"} {
		s.token(role)
	}
	s.invite("admin")
	stocked.pages = s.look("owner").pages
}

// configure changes the configuration by the commands.
func (s *shop) configure(change func(document map[string]any)) {
	s.t.Helper()
	var document map[string]any
	s.command(&document, "export", "-org", "cafe-luna")
	change(document)
	text, err := json.Marshal(document)
	path := filepath.Join(filepath.Dir(s.db), "changed.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.command(nil, "apply", path)
}

// A view is a page as something leads to it.
type view struct {
	name string
	open func(*tab)
}

// views are all pages, and some with nothing on them or something wrong.
func views() (all []view) {
	till := "/panel/caja/" + stocked.customer
	all = []view{
		{"no amount", func(p *tab) {
			p.visit(till).fill(amountField, "muchos").load(func() { p.click(sellButton) })
		}},
		{"nobody at the till", func(p *tab) { p.visit("/panel/caja?q=nadie+de+aqu%C3%AD") }},
		{"no customer", func(p *tab) { p.visit("/panel/clientes?search=nadie+de+aqu%C3%AD") }},
		{"no page", func(p *tab) { p.visit("/panel/nada") }},
		{"card given", func(p *tab) { p.giveCard(stocked.customer) }},
	}
	all = append(all, stocked.joining...)
	for _, path := range stocked.pages {
		name, _, _ := strings.Cut(anID.ReplaceAllString(path, "ID"), "?")
		all = append(all, view{name, func(p *tab) { p.visit(path) }})
	}
	return all
}

// long asks for the long forms of tests.
func long() bool { return os.Getenv("SELLO_TEST_LONG") != "" }

// TestPages opens every page in the look that is its turn, so that each page and each look is
// seen; the long form opens it in all looks, and once more in each window of windows. On every
// page Tab stops once at each control, nothing is cut off, targets are large enough, axe finds
// nothing, the console stays empty, and no other host is talked to.
// Panel checks 18, 20, 21, 61, 62, 64, 65 and 67.
func TestPages(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	for i, one := range looks {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			p := s.of(t).as("owner", width(one.width, one.height), media("prefers-color-scheme", one.theme), withAxe)
			p.limit = 2 * time.Minute
			for j, v := range views() {
				if !long() && j%len(looks) != i {
					continue
				}
				t.Run(v.name, func(t *testing.T) {
					p.during(t, func() { p.panelPage(v, one) })
				})
			}
		})
	}
}

// panelPage opens a page of the panel and fails the test for what is wrong with it.
func (p *tab) panelPage(v view, one look) {
	p.t.Helper()
	v.open(p)
	p.walk()
	p.readable(v)
	p.resize(one.width, one.height)
	if long() {
		v.open(p)
	}
	p.eval(`document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
	p.targets()
	for _, wrong := range p.axe() {
		p.t.Error(wrong)
	}
}

// controls is a script that returns what Tab should stop at, in the order of the page: all
// controls that are shown, of radio buttons one of each group.
const controls = `Array.from(document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')).filter(e =>
	!e.disabled && e.type !== 'hidden' && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0 &&
	!(e.type === 'radio' && !e.checked && (document.querySelector('input[type=radio][name="' + e.name + '"]:checked') || document.querySelector('input[type=radio][name="' + e.name + '"]') !== e)))`

// A stop is where Tab has led.
type stop struct {
	Number  int // among the controls; -1: it is none
	What    string
	Outline float64 // pixels; 0: none
	Covered string  // what lies over its middle
	Date    bool    // has stops for day, month and year
}

// recordStops notes where the focus is whenever a key goes down.
const recordStops = `window.controls = ` + controls + `; window.stops = []
	addEventListener('keydown', () => {
		const e = document.activeElement, style = getComputedStyle(e), r = e.getBoundingClientRect()
		const over = document.elementFromPoint(Math.min(Math.max(r.x + r.width / 2, 0), innerWidth - 1), Math.min(Math.max(r.y + r.height / 2, 0), innerHeight - 1))
		const free = over === null || over === e || e.contains(over) || over.contains(e) || (e.labels && Array.from(e.labels).some(l => l.contains(over)))
		window.stops.push({number: window.controls.indexOf(e), what: e.outerHTML.slice(0, 120), outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
			covered: free ? '' : over.outerHTML.slice(0, 120), date: e.type === 'date' || e.type === 'datetime-local' || e.type === 'month'})
	}, true)
	document.activeElement.blur()
	window.controls[0].focus()
	window.controls.length + 8 * document.querySelectorAll('[type=date], [type=datetime-local], [type=month]').length`

// walk fails the test unless Tab stops once at each control, in the order of the page, with the
// focus to be seen and not under the header.
func (p *tab) walk() {
	p.t.Helper()
	var n, most int
	p.eval(recordStops, &most)
	var pressed sync.WaitGroup // all at once: the page needs no picture between two keys
	failed := make(chan error, most+1)
	for range most + 1 {
		pressed.Go(func() {
			failed <- p.try(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Tab", Code: "Tab", WindowsVirtualKeyCode: 9})
				return err
			}))
		})
	}
	pressed.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			p.t.Fatal(err)
		}
	}
	var stops []stop
	p.eval(`window.controls.length`, &n)
	p.eval(`window.stops`, &stops)
	if n < 3 {
		p.t.Errorf("%s has %d controls", p.address(), n)
	}
	next := 0
	for _, at := range stops {
		switch {
		case at.Number == next-1 && at.Date: // its next part
		case at.Number != next && next == n:
			return // past the last one
		case at.Number != next:
			p.t.Errorf("stop %d is control %d, %s", next, at.Number, at.What)
			return
		default:
			next++
		}
		if at.Outline < 3 {
			p.t.Errorf("the focus is not seen: %.0f pixels on %s", at.Outline, at.What)
		}
		if at.Covered != "" {
			p.t.Errorf("%s lies under %s", at.What, at.Covered)
		}
	}
	if next < n {
		p.t.Errorf("Tab stops at %d of %d controls", next, n)
	}
}

// targets fails the test unless whatever is pressed is at least 24 pixels wide and high, 44 at
// the till. A link within a sentence is exempt (WCAG 2.2, 2.5.8).
func (p *tab) targets() {
	p.t.Helper()
	var small []string
	p.eval(controls+`.flatMap(e => {
		if (e.matches('.skip, [tabindex="0"]')) return []
		const box = (e.type === 'checkbox' || e.type === 'radio') && e.closest('label') || e
		const r = box.getBoundingClientRect(), least = e.closest('.till') ? 44 : 24
		const inline = getComputedStyle(e).display === 'inline' && Array.from(e.parentElement.childNodes).some(n => n.nodeType === 3 && n.data.trim())
		return r.width + .5 >= least && r.height + .5 >= least || inline ? [] : [Math.round(r.width) + '×' + Math.round(r.height) + ' ' + e.outerHTML.slice(0, 120)]
	})`, &small)
	for _, what := range small {
		p.t.Errorf("too small: %s", what)
	}
}

// windows are of 1280 pixels, at 100, 200 and 400 %.
var windows = []struct{ percent, width, height int64 }{{100, 1280, 1024}, {200, 640, 512}, {400, 320, 256}}

// readable fails the test where in one of windows, or with the spacing of text that people may
// set (WCAG 2.2, 1.4.12), something is cut off, lies over another text, or needs sideways
// scrolling.
func (p *tab) readable(v view) {
	p.t.Helper()
	for _, zoom := range windows {
		p.resize(zoom.width, zoom.height)
		if long() {
			v.open(p)
		}
		for _, spaced := range []bool{false, true} {
			var wrong []string
			p.eval(unreadable(spaced), &wrong)
			for _, what := range wrong {
				p.t.Errorf("at %d%%, spaced %t: %s", zoom.percent, spaced, what)
			}
		}
	}
	p.eval(`document.adoptedStyleSheets = []; 0`, nil)
}

// resize gives the page a window of another size.
func (p *tab) resize(w, h int64) {
	p.t.Helper()
	width(w, h)(p)
	var got [2]int64
	p.eval(fmt.Sprintf(`new Promise(done => {
		const until = Date.now() + 10000
		const look = () => innerWidth === %d && innerHeight === %d || Date.now() > until ? done([innerWidth, innerHeight]) : setTimeout(look, 5)
		look()
	})`, w, h), &got)
	if got != [2]int64{w, h} {
		p.t.Fatalf("the window is %v, not %d×%d", got, w, h)
	}
}

// unreadable is a script that returns which texts are cut off or lie over each other.
func unreadable(spaced bool) string {
	return `(() => {
		const wrong = []
		document.activeElement.blur()
		document.adoptedStyleSheets = []
		if (` + fmt.Sprint(spaced) + `) {
			const sheet = new CSSStyleSheet()
			sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }')
			document.adoptedStyleSheets = [sheet]
		}
		scrollTo(0, 0)
		const root = document.documentElement
		if (root.scrollWidth > root.clientWidth) wrong.push((root.scrollWidth - root.clientWidth) + ' pixels wider than the window')
		const cutting = new Map() // boxes, and whether they or one around them cuts off what is in them
		const cuts = box => {
			if (!box || box.tagName === 'MAIN') return false
			if (!cutting.has(box)) {
				const style = getComputedStyle(box)
				cutting.set(box, style.overflowX === 'hidden' && box.scrollWidth > box.clientWidth + 1 || style.overflowY === 'hidden' && box.scrollHeight > box.clientHeight + 1 || cuts(box.parentElement))
			}
			return cutting.get(box)
		}
		const texts = []
		const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
		for (let node; (node = walker.nextNode());) {
			const e = node.parentElement
			if (!node.data.trim() || !e.checkVisibility({visibilityProperty: true, opacityProperty: true}) || e.closest('option, .unseen, .hidden, svg')) continue
			if (cuts(e)) wrong.push('cut off: ' + node.data.trim().slice(0, 60))
			const range = document.createRange()
			range.selectNodeContents(node)
			for (const r of range.getClientRects()) texts.push({r, text: node.data.trim().slice(0, 40)})
		}
		texts.sort((a, b) => a.r.top - b.r.top)
		for (let i = 0; i < texts.length && wrong.length < 5; i++) {
			for (let j = i + 1; j < texts.length && texts[j].r.top < texts[i].r.bottom; j++) {
				const a = texts[i].r, b = texts[j].r
				const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
				if (wide > 2 && high > Math.min(a.height, b.height) / 2) wrong.push('one over the other: ' + texts[i].text + ' / ' + texts[j].text)
			}
		}
		return wrong.slice(0, 5)
	})()`
}

// TestHostileNames: names made to break pages are texts, and no page is wider for them.
// Panel check 40.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.as("owner", width(320, 568))
	for i, name := range []string{`<img src=x onerror=alert(1)>`, "\u202eזדון\u202c <b>x</b>", strings.Repeat("W", 100), `"'><script>alert(1)</script>`, "{{.}} ${x} &amp;"} {
		id := s.enrol(name, "Prueba", fmt.Sprintf("+52551111110%d", i))
		s.api("POST", "/transactions", `{"customerId":"`+id+`","totalAmount":150}`, nil)
		for _, path := range []string{"/panel/clientes", "/panel/ventas", "/panel/clientes/" + id, "/panel/clientes/" + id + "/editar", "/panel/caja/" + id} {
			p.visit(path)
			p.fits()
			var shown bool
			p.eval(`document.body.innerText.includes(`+quoted(name)+`) || Array.from(document.querySelectorAll('input')).some(i => i.value === `+quoted(name)+`)`, &shown)
			if !shown {
				t.Errorf("%s does not show %q", path, name)
			}
			if p.has("main img, main script, main b:not(.note b, .tile b, .button b)") {
				t.Errorf("%s: %q has become markup", path, name)
			}
		}
	}
}

// TestWeight: a first visit takes at most four requests and 100 KB, a list of 20 has at most
// 40 KB of HTML, and a second visit fetches HTML only.
// Panel check 70.
func TestWeight(t *testing.T) {
	t.Parallel()
	p := inStock(t).as("owner")
	p.visit("/panel/clientes")
	var rows int
	p.eval(`document.querySelectorAll('tbody tr').length`, &rows)
	requests, bytes, document := p.weight()
	if rows != 20 || requests > 4 || bytes > 100_000 || document > 40_000 {
		t.Errorf("first visit: %d rows, %d requests, %.0f bytes; %.0f of HTML", rows, requests, bytes, document)
	}
	t.Logf("first visit: %d requests, %.0f bytes; %.0f of HTML", requests, bytes, document)
	p.mu.Lock()
	p.requests = nil
	p.mu.Unlock()
	p.visit("/panel/ventas")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.Type != "Document" && !r.Cached {
			t.Errorf("second visit: %s is fetched again", r.URL)
		}
	}
	if len(p.requests) < 3 {
		t.Errorf("only %v", p.requests)
	}
}

// weight returns how many requests went to the server, and their answers' bytes.
func (p *tab) weight() (requests int, bytes, document float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.Cached {
			continue
		}
		requests++
		bytes += r.Bytes
		if r.Type == "Document" {
			document = max(document, r.Bytes)
		}
	}
	return requests, bytes, document
}

// TestThemes: the system's theme is followed, and the one that a person chose is stronger.
func TestThemes(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	for _, system := range []string{"light", "dark"} {
		p := s.as("owner", media("prefers-color-scheme", system))
		p.visit("/panel/clientes")
		for _, chosen := range []string{"", "light", "dark"} {
			want := system
			if chosen != "" {
				want = chosen
			}
			var color string
			p.eval(`document.documentElement.dataset.theme = `+quoted(chosen)+`; if (!`+quoted(chosen)+`) delete document.documentElement.dataset.theme; getComputedStyle(document.body).backgroundColor`, &color)
			if got := map[string]string{"rgb(246, 245, 243)": "light", "rgb(21, 20, 19)": "dark"}[color]; got != want {
				t.Errorf("system %s, chosen %q: %s", system, chosen, color)
			}
		}
	}
}

// TestForcedColours: where a person's own few colours replace the page's, the place in the
// navigation, notes and buttons are still told apart by lines, and charts are seen.
// Panel check 63.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	p := s.as("owner", media("forced-colors", "active"))
	p.visit("/panel/clientes")
	var got struct{ Forced, Current, Button bool }
	p.eval(`({forced: matchMedia('(forced-colors: active)').matches,
		current: getComputedStyle(document.querySelector('.side [aria-current]')).outlineStyle !== 'none',
		button: parseFloat(getComputedStyle(document.querySelector('.button.primary')).borderTopWidth) >= 2})`, &got)
	if !got.Forced || !got.Current || !got.Button {
		t.Errorf("%+v", got)
	}
	p.visit("/panel/estadisticas")
	var marks, unseen int
	p.eval(`document.querySelectorAll('.bar, .line, .axis').length`, &marks)
	p.eval(`Array.from(document.querySelectorAll('.bar, .bar2, .line, .axis')).filter(e => {
		const style = getComputedStyle(e), card = getComputedStyle(e.closest('.card') || document.body).backgroundColor
		return (style.fill === 'none' || style.fill === card) && (style.stroke === 'none' || style.stroke === card)
	}).length`, &unseen)
	if marks < 10 || unseen > 0 {
		t.Errorf("of %d marks of charts %d are not seen", marks, unseen)
	}
}

// TestLanguage: each page says which language it is in.
// Panel check 66.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	for _, path := range stocked.pages {
		a, _ := s.follow("owner", path)
		if !strings.Contains(a.Body, `<html lang="es"`) {
			t.Errorf("%s: %.60s", path, a.Body)
		}
	}
}
