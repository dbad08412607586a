package panel

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	amountField = "#c-totalAmount"
	sellButton  = "form[action$='/venta'] button"
	nextButton  = "a.primary[href='/panel/caja']"
)

// TestTillPhones: a phone leads to its customer, however it is typed, with and without
// scripts.
// Panel check 23.
func TestTillPhones(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	want := "/panel/caja/" + s.customer("María")
	for _, settings := range [][]setting{nil, {noScripts}} {
		p := s.as("cashier", settings...)
		for _, typed := range []string{"55 1234 5678", "+52 1 55 1234 5678", "5512345678", "55-1234-5678", "(55) 1234-5678", "+525512345678", " 5512345678 "} {
			p.visit("/panel/caja").load(func() { p.typed(typed + "\r") })
			if got, _, _ := strings.Cut(p.address(), "?"); got != want {
				t.Errorf("%q leads to %s, want %s", typed, got, want)
			}
		}
	}
}

// TestTillByKeyboard: a sale by keys alone: number ⏎ amount ⏎ ⏎ next number, in three pages
// and nothing in between, with and without scripts.
// Panel checks 20, 24 and 68.
func TestTillByKeyboard(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, settings := range [][]setting{nil, {noScripts}} {
		p := s.as("cashier", settings...)
		p.visit("/panel/caja")
		for n := range 2 {
			before := p.documents()
			p.load(func() { p.typed("5512345678\r") })
			p.load(func() { p.typed("150\r") })
			if got := p.documents() - before; got > 3 { // the customer's with its token, the result
				t.Errorf("%d pages are loaded from the empty field to the result", got)
			}
			if note := p.text("[role=status]"); !strings.Contains(note, "150.00") {
				t.Errorf("the result says %q", note)
			}
			if p.focus() != "a "+p.text(nextButton) {
				t.Errorf("the focus is on %s", p.focus())
			}
			if got, want := len(s.sales("limit=100&customerId="+s.customer("María"))), 1+2*i+n; got != want {
				t.Errorf("%d sales, want %d", got, want)
			}
			p.load(func() { p.typed("\r") })
			if p.focus() != "input#c-q" {
				t.Errorf("for the next customer, the focus is on %s", p.focus())
			}
		}
	}
}

// TestScannedCode: a member code leads to its customer, from a scanner that ends with Enter or
// with a tab; a tab after anything else goes to the button.
func TestScannedCode(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	maria := s.customer("María")
	var detail struct{ MemberCode string }
	s.api("GET", "/customers/"+maria, "", &detail)
	scanned := strings.ReplaceAll(detail.MemberCode, "-", "")
	p := s.as("manager")
	for page, want := range map[string]string{"/panel/caja": "/panel/caja/" + maria, "/panel/clientes": "/panel/clientes/" + maria} {
		for _, keys := range []string{scanned + "\r", scanned + "\t", strings.ToLower(detail.MemberCode) + "\t"} {
			p.visit(page)
			p.eval(`document.querySelector('input[type=search]').focus()`, nil)
			p.load(func() { p.typed(keys) })
			if got, _, _ := strings.Cut(p.address(), "?"); got != want {
				t.Errorf("%q leads to %s, want %s", keys, got, want)
			}
		}
	}
	for _, name := range []string{"maria", "margarita", "magdalena", "maria jose", scanned[:8]} {
		p.visit("/panel/caja").typed(name + "\t")
		if p.focus() != "button Buscar" {
			t.Errorf("after %s and a tab the focus is on %s", name, p.focus())
		}
	}
}

// documents counts the pages that the tab has asked for, without redirects.
func (p *tab) documents() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, r := range p.requests {
		if r.Type == "Document" && !seen[string(r.id)] {
			seen[string(r.id)] = true
			n++
		}
	}
	return n
}

// sell opens the till of a customer, types an amount and sends it by act.
func (p *tab) sell(customer, amount string, act func()) *tab {
	p.t.Helper()
	p.visit("/panel/caja/"+customer).fill(amountField, amount)
	return p.load(act)
}

// TestTillOnce: a double click, F5 on the result, and Back and again make one sale each.
// Panel check 25.
func TestTillOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	count := func() int { return len(s.sales("limit=100&customerId=" + customer)) }
	for _, scripts := range []bool{true, false} {
		for _, test := range []struct {
			name string
			do   func(*tab)
		}{
			{"double click", func(p *tab) {
				p.sell(customer, "150", func() {
					x, y := p.middle(sellButton)
					click := chromedp.MouseClickXY(x, y)
					p.do(click)
					p.try(click) // the page may have gone
				})
			}},
			{"reload", func(p *tab) {
				p.sell(customer, "150", func() { p.click(sellButton) })
				result := p.text("[role=status]")
				if p.reload().text("[role=status]") != result {
					t.Errorf("%q became %q", result, p.text("[role=status]"))
				}
			}},
			{"back and again", func(p *tab) {
				p.sell(customer, "150", func() { p.click(sellButton) })
				result := p.text("[role=status]")
				p.back().fill(amountField, "150").load(func() { p.click(sellButton) })
				if p.text("[role=status]") != result {
					t.Errorf("%q became %q", result, p.text("[role=status]"))
				}
			}},
		} {
			t.Run(fmt.Sprintf("%s, scripts %t", test.name, scripts), func(t *testing.T) {
				before := count()
				p := s.of(t).as("cashier")
				if !scripts {
					noScripts(p)
				}
				test.do(p)
				if !strings.Contains(p.text("[role=status]"), "150.00") {
					t.Errorf("the till says %q", p.text("main"))
				}
				if got := count() - before; got != 1 {
					t.Errorf("%d sales", got)
				}
			})
		}
	}
}

// TestTillBackOtherAmount: Back, another amount, and again is no second sale either: the till
// says what is stored.
func TestTillBackOtherAmount(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	before := len(s.sales("limit=100"))
	p := s.as("cashier")
	p.sell(customer, "150", func() { p.click(sellButton) })
	p.back().fill(amountField, "160").load(func() { p.click(sellButton) })
	if p.status != http.StatusConflict || !p.has(".faults a[href*='/venta/']") {
		t.Errorf("%d: %s", p.status, p.text(".faults"))
	}
	if got := len(s.sales("limit=100")) - before; got != 1 {
		t.Errorf("%d sales", got)
	}
}

// TestTillTwoTabs: a tab that was duplicated has the same form; sent from both, it is one sale.
// Forms of tabs that were opened apart are two.
func TestTillTwoTabs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	before := len(s.sales("limit=100"))
	first := s.as("cashier")
	first.visit("/panel/caja/"+customer).fill(amountField, "150")
	same, other := first.beside(), first.beside()
	same.visit(first.address()).fill(amountField, "150")
	other.visit("/panel/caja/"+customer).fill(amountField, "150")
	for i, p := range []*tab{first, same, other} {
		p.load(func() { p.click(sellButton) })
		if got, want := len(s.sales("limit=100"))-before, []int{1, 1, 2}[i]; got != want || !strings.Contains(p.text("[role=status]"), "150.00") {
			t.Errorf("after tab %d: %d sales, want %d; it says %q", i, got, want, p.text("[role=status]"))
		}
	}
}

// A lossy is a proxy before a server, which can lose the answer to one POST.
type lossy struct {
	base   string
	target atomic.Pointer[url.URL]
	lose   atomic.Bool
	lost   chan struct{}
}

func newLossy(t *testing.T, target string) *lossy {
	l := &lossy{lost: make(chan struct{}, 1)}
	l.point(t, target)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(l.target.Load())
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == "POST" && l.lose.CompareAndSwap(true, false) {
				l.lost <- struct{}{}
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	}
	l.base = site(t, "127.0.0.1", proxy.ServeHTTP)
	return l
}

func (l *lossy) point(t *testing.T, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l.target.Store(u)
}

// TestTillKilled: the server is killed after the sale is stored and before its answer has
// reached the browser. The form, sent again to the new server, leads to the same sale.
// Panel check 26.
func TestTillKilled(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	before := len(s.sales("limit=100"))
	l := newLossy(t, s.Base)
	p := s.at(l.base, "cashier")
	p.silent = true // the browser's own page of a connection that broke
	p.visit("/panel/caja/"+customer).fill(amountField, "150")
	l.lose.Store(true)
	p.load(func() { p.click(sellButton) })
	<-l.lost
	s.kill()
	s.start()
	l.point(t, s.Base)
	if got := len(s.sales("limit=100")) - before; got != 1 {
		t.Fatalf("%d sales are stored", got)
	}
	p.reload()
	if !strings.Contains(p.text("[role=status]"), "150.00") {
		t.Errorf("%s: %s", p.address(), p.text("body"))
	}
	if got := len(s.sales("limit=100")) - before; got != 1 {
		t.Errorf("%d sales", got)
	}
}

// TestTillEnrol: an unknown phone leads to enrolment with the number filled in. One that is
// somebody's makes no second customer and shows whose it is, masked.
// Panel check 27.
func TestTillEnrol(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, before := s.as("cashier"), s.customers()
	p.visit("/panel/caja").load(func() { p.typed("55 8765 4321\r") })
	if p.focus() != "input#c-firstName" {
		t.Errorf("the focus is on %s", p.focus())
	}
	var typed string
	p.eval(`document.querySelector('#c-phoneNumber').value`, &typed)
	if typed != "55 8765 4321" {
		t.Errorf("the number is %q", typed)
	}
	p.fill("#c-firstName", "Eva").fill("#c-lastName", "Ríos").load(func() { p.click("form[action='/panel/caja/alta'] button") })
	if want := "/panel/caja/" + s.customer("Eva Ríos"); !strings.HasPrefix(p.address(), want) {
		t.Errorf("enrolment leads to %s", p.address())
	}
	p.visit("/panel/caja/alta").fill("#c-phoneNumber", "(55) 1234 5678").fill("#c-firstName", "Otra").fill("#c-lastName", "María").load(func() { p.click("form[action='/panel/caja/alta'] button") })
	if text := p.text("main"); !strings.Contains(text, "5678") || !strings.Contains(text, "María G") || strings.Contains(text, "+525512345678") {
		t.Errorf("it says %s", text)
	}
	if got := s.customers(); got != before+1 {
		t.Errorf("%d customers, and %d before", got, before)
	}
}

// TestTillVoucher: the code of a redemption is there in full, large, and can be selected.
// Panel check 29.
func TestTillVoucher(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	s.api("POST", "/transactions", `{"customerId":"`+customer+`","totalAmount":5000}`, nil)
	p := s.as("cashier")
	p.visit("/panel/caja/" + customer).load(func() { p.click("form[action$='/canje'] button") })
	var list listed[struct{ Code string }]
	s.api("GET", "/redemptions?customerId="+customer, "", &list)
	if len(list.Data) != 1 {
		t.Fatalf("%d redemptions", len(list.Data))
	}
	code := list.Data[0].Code
	var got struct {
		Text, Selected string
		Size           float64
	}
	p.eval(`(e => { getSelection().selectAllChildren(e); return {text: e.innerText, selected: getSelection().toString(), size: parseFloat(getComputedStyle(e).fontSize)} })(document.querySelector('.code strong'))`, &got)
	if got.Text != code || got.Selected != code || got.Size < 24 {
		t.Errorf("%+v, want %s", got, code)
	}
}

// TestTillSmall: on the smallest screen the till's two pages need no sideways scrolling, and
// the amount and its button are in view together.
// Panel check 33.
func TestTillSmall(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.as("cashier", width(320, 568))
	p.visit("/panel/caja")
	p.fits()
	eva, sol := s.enrol("Eva", "Ríos", "+525587650001"), s.enrol("María de la Soledad", "Ríos", "+525587650002")
	s.api("POST", "/transactions", `{"customerId":"`+sol+`","totalAmount":12345,"items":[{"sku":"CAFE-1","price":100,"quantity":123}]}`, nil)
	for _, customer := range []string{eva, sol} {
		p.visit("/panel/caja/" + customer)
		p.fits()
		if stamps := strings.Contains(p.text("main"), "23 Sellos"); stamps != (customer == sol) {
			t.Errorf("the customer has stamps: %t\n%s", stamps, p.text("main"))
		}
		for _, selector := range []string{amountField, sellButton} {
			if top, bottom := p.edges(selector); top < 0 || bottom > 568 {
				t.Errorf("%s goes from %.0f to %.0f", selector, top, bottom)
			}
		}
	}
	p.sell(sol, "2345.50", func() { p.click(sellButton) }).fits()
	var lines float64
	p.eval(`(e => { const r = document.createRange(); r.selectNode(e); return new Set(Array.from(r.getClientRects()).map(one => one.top)).size })(document.querySelector('.due strong').firstChild)`, &lines)
	if lines != 1 {
		t.Errorf("the amount is on %.0f lines", lines)
	}
}

// edges returns where an element begins and ends, from the window's top.
func (p *tab) edges(selector string) (top, bottom float64) {
	p.t.Helper()
	var rect struct{ Top, Bottom float64 }
	p.eval(`(r => ({top: r.top, bottom: r.bottom}))(document.querySelector(`+quoted(selector)+`).getBoundingClientRect())`, &rect)
	return rect.Top, rect.Bottom
}

// fits fails the test where the page is wider than the window.
func (p *tab) fits() {
	p.t.Helper()
	var beyond float64
	p.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &beyond)
	if beyond > 0 {
		p.t.Errorf("%s is %.0f pixels wider than the window", p.address(), beyond)
	}
}

// TestTillPlainHTTP: on the plain HTTP of a shop's own network, where browsers send no
// Sec-Fetch-Site, own forms work and those of others do not.
// Panel check 14.
func TestTillPlainHTTP(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	base := "http://tienda.test:" + port
	s := newShop(t, "-addr", "127.0.0.1:"+port, "-panel", base)
	customer := s.customer("María")
	before := len(s.sales("limit=100"))
	p := s.at(base, "cashier")
	p.sell(customer, "150", func() { p.click(sellButton) })
	if got := len(s.sales("limit=100")) - before; got != 1 || p.status != http.StatusOK {
		t.Errorf("own form: %d, %d sales", p.status, got)
	}
	if !strings.Contains(p.text("body"), "sin cifrar") {
		t.Error("no page says that the connection is not protected")
	}
	f := form{path: "/panel/caja/" + customer + "/venta", fields: url.Values{"_org": {"cafe-luna"}, "_token": {"AAAAAAAAAAAAAAAA"}, "totalAmount": {"150"}}}
	other := open(t, site(t, "otra.tienda.test", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><form method="post" action="%s%s">`, base, f.path)
		for name := range f.fields {
			fmt.Fprintf(w, `<input name="%s" value="%s">`, name, f.fields.Get(name))
		}
		fmt.Fprint(w, `<button>x</button></form>`)
	}))
	other.silent = true
	other.setCookieOf(base, cookieName(base), s.token("cashier"))
	other.visit("/").load(func() { other.click("button") })
	if got := len(s.sales("limit=100")) - before; got != 1 || other.status != http.StatusForbidden {
		t.Errorf("another origin's form: %d, %d sales", other.status, got)
	}
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
