package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	logs "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

// Chromium is started once. Each tab of the tests has a browser context of its own, which is
// what a person's browser is: cookies, cache and storage are not shared. A tab.beside shares
// them.

// patience is how long a page may take to load before a test gives up.
const patience = 30 * time.Second

var chromium struct {
	once  sync.Once
	ctx   context.Context
	close func()
	err   error
}

// startChromium starts the browser that all tests share. Names under .test are this machine:
// addresses that are not loopback to a browser, which trusts loopback more.
func startChromium(path string) (context.Context, error) {
	chromium.once.Do(func() {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"),
			chromedp.Flag("ignore-certificate-errors", true),
			chromedp.Flag("disable-features", "site-per-process,Translate,BlinkGenPropertyTrees,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LocalNetworkAccessChecks"),
			chromedp.WSURLReadTimeout(2*time.Minute),
		)
		allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		quiet := chromedp.WithErrorf(func(format string, args ...any) { // the protocol's package is older than Chromium
			if text := fmt.Sprintf(format, args...); !strings.Contains(text, "could not unmarshal event") {
				fmt.Fprintln(os.Stderr, text)
			}
		})
		ctx, closeBrowser := chromedp.NewContext(allocator, quiet)
		chromium.ctx, chromium.err = ctx, chromedp.Do(ctx)
		chromium.close = func() {
			closeBrowser()
			closeAllocator()
		}
	})
	return chromium.ctx, chromium.err
}

// A tab is a page of a browser. At its end the test fails if the page wrote to the console,
// asked for what the Content-Security-Policy forbids, or talked to another host.
type tab struct {
	t    *testing.T
	ctx  context.Context
	Base string // scheme, host and port that paths are of

	mu        sync.Mutex
	wrong     []string
	hosts     map[string]bool
	requests  []request
	loads     chan struct{}
	noScripts bool
	silent    bool          // the console is another test's matter
	limit     time.Duration // of one command; 0: patience

	status  int64 // of the last document
	headers map[string]string
}

// A request is one that the page made.
type request struct {
	id                network.RequestID
	Method, URL, Type string
	Bytes             float64 // of the response, as sent
	Cached            bool
}

// A setting changes a tab before it opens its first page.
type setting func(*tab)

func width(w, h int64) setting {
	return func(p *tab) {
		call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: w, Height: h, DeviceScaleFactor: 1})
	}
}

// media sets what style sheets ask for, such as prefers-color-scheme, dark.
func media(name, value string) setting {
	return func(p *tab) {
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
	}
}

func noScripts(p *tab) {
	p.noScripts = true
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// call sends a command of the protocol to a tab.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) (result R) {
	p.t.Helper()
	err := p.try(chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
		result, err = cdp.Call(ctx, target, command, params)
		return err
	}))
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// callBrowser sends one to the browser.
func callBrowser[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := cdp.Call(ctx, chromedp.FromContext(p.ctx).Browser, command, params)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// open makes a tab in a browser of its own. base is what paths are of.
func open(t *testing.T, base string, settings ...setting) *tab {
	t.Helper()
	parent, err := startChromium(findChromium(t))
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return newTab(t, parent, base, []chromedp.ContextOption{chromedp.WithNewBrowserContext()}, settings)
}

// beside opens another tab of the same browser.
func (p *tab) beside(settings ...setting) *tab {
	p.t.Helper()
	id := chromedp.FromContext(p.ctx).BrowserContextID
	return newTab(p.t, chromium.ctx, p.Base, []chromedp.ContextOption{chromedp.WithExistingBrowserContext(id)}, settings)
}

func newTab(t *testing.T, parent context.Context, base string, options []chromedp.ContextOption, settings []setting) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	p := &tab{t: t, ctx: ctx, Base: base, hosts: map[string]bool{}, loads: make(chan struct{}, 64)}
	t.Cleanup(func() {
		p.finish()
		cancel()
	})
	if err := chromedp.Listen(ctx, p.listen); err != nil { // which makes the tab
		t.Fatal(err)
	}
	call(p, logs.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	call(p, page.Enable, page.EnableParams{})
	call(p, runtime.Enable, cdp.Empty{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // as if each tab were in front
	for _, set := range settings {
		set(p)
	}
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, arg := range e.Args {
			words = append(words, string(arg.Value)+arg.Description)
		}
		p.wrong = append(p.wrong, "console: "+strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, "script: "+exception(e.ExceptionDetails))
	case *logs.EventEntryAdded:
		// Chromium itself logs each answer with an error's status.
		if !strings.HasPrefix(e.Entry.Text, "Failed to load resource: the server responded with a status of") {
			p.wrong = append(p.wrong, fmt.Sprintf("log: %s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "about" {
			p.hosts[u.Host] = true
			p.requests = append(p.requests, request{id: e.RequestID, Method: e.Request.Method, URL: e.Request.URL, Type: e.Type.String()})
		}
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && e.Response.MimeType != "" {
			p.status, p.headers = e.Response.Status, map[string]string{}
			for name, value := range e.Response.Headers {
				p.headers[strings.ToLower(name)] = fmt.Sprint(value)
			}
		}
		for i := range p.requests {
			if p.requests[i].id == e.RequestID && e.Response.FromDiskCache {
				p.requests[i].Cached = true
			}
		}
	case *network.EventRequestServedFromCache:
		for i := range p.requests {
			if p.requests[i].id == e.RequestID {
				p.requests[i].Cached = true
			}
		}
	case *network.EventLoadingFinished:
		for i := range p.requests {
			if p.requests[i].id == e.RequestID {
				p.requests[i].Bytes = e.EncodedDataLength
			}
		}
	case *page.EventLoadEventFired:
		p.loaded()
	case *page.EventFrameNavigated:
		// Without scripts a page that the browser kept is shown as it was, though it is under
		// no-store. panel.js would load it again.
		if e.Frame.ParentID == "" && e.Type == page.NavigationTypeBackForwardCacheRestore && p.noScripts {
			p.loaded()
		}
	}
}

func (p *tab) loaded() {
	select {
	case p.loads <- struct{}{}:
	default:
	}
}

func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Exception.Description
	}
	return e.Text
}

// finish fails the test for what went wrong on the way, and leaves a picture of where it
// ended.
func (p *tab) finish() {
	p.mu.Lock()
	wrong, hosts := p.wrong, p.hosts
	p.wrong, p.hosts = nil, map[string]bool{}
	p.mu.Unlock()
	if !p.silent {
		for _, text := range wrong {
			p.t.Error(text)
		}
		base, _ := url.Parse(p.Base)
		for host := range hosts {
			if base == nil || host != base.Host {
				p.t.Errorf("a page talked to %s", host)
			}
		}
	}
	if p.t.Failed() {
		p.picture(p.t.Name())
	}
}

// during lets a subtest use the tab: what goes wrong meanwhile is the subtest's.
func (p *tab) during(t *testing.T, do func()) {
	whole := p.t
	p.t = t
	defer func() {
		p.finish()
		p.t = whole
	}()
	do()
}

// picture saves what the tab shows to SELLO_SCREENSHOTS.
func (p *tab) picture(name string) {
	dir := os.Getenv("SELLO_SCREENSHOTS")
	if dir == "" || p.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("no picture: %v", err)
		return
	}
	path := filepath.Join(dir, regexp.MustCompile(`[^\w.-]+`).ReplaceAllString(name, "_")+".png")
	if err := os.WriteFile(path, png, 0o600); err != nil {
		p.t.Logf("no picture: %v", err)
		return
	}
	p.t.Logf("picture: %s", path)
}

func (p *tab) try(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, max(patience, p.limit))
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := p.try(steps...); err != nil {
		p.t.Fatal(err)
	}
}

// load does what leads to another page and waits until that is loaded.
func (p *tab) load(act func()) *tab {
	p.t.Helper()
	for len(p.loads) > 0 {
		<-p.loads
	}
	act()
	select {
	case <-p.loads:
	case <-time.After(max(patience, p.limit)):
		p.t.Fatalf("no page came of it; here is %s\n%.600s", p.address(), p.text("body"))
	}
	for range 200 { // autofocus follows the load event
		var focused bool
		p.eval(`!document.querySelector('[autofocus]') || document.activeElement !== document.body`, &focused)
		if focused {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return p
}

// visit opens a path, or another address.
func (p *tab) visit(path string) *tab {
	p.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = p.Base + path
	}
	return p.load(func() {
		if failed := call(p, page.Navigate, page.NavigateParams{URL: path}).ErrorText; failed != "" {
			p.t.Fatalf("%s: %s", path, failed)
		}
	})
}

// back is the browser's button.
func (p *tab) back() *tab {
	p.t.Helper()
	return p.load(func() {
		history := call(p, page.GetNavigationHistory, cdp.Empty{})
		if history.CurrentIndex == 0 {
			p.t.Fatalf("there is no page before %s", p.address())
		}
		call(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: history.Entries[history.CurrentIndex-1].ID})
	})
}

// reload is F5; after a POST the browser sends it again.
func (p *tab) reload() *tab {
	p.t.Helper()
	return p.load(func() { call(p, page.Reload, page.ReloadParams{}) })
}

// eval runs a script in the page and decodes what it returns. The protocol does so also
// where the page's own scripts are off and whatever its Content-Security-Policy says.
func (p *tab) eval(script string, into any) {
	p.t.Helper()
	result := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ReturnByValue: yes, AwaitPromise: yes, UserGesture: yes})
	if result.ExceptionDetails != nil {
		p.t.Fatalf("%s in %.200s", exception(result.ExceptionDetails), script)
	}
	if into != nil && len(result.Result.Value) > 0 {
		if err := json.Unmarshal(result.Result.Value, into); err != nil {
			p.t.Fatalf("%.200s: %v", script, err)
		}
	}
}

// text returns what an element shows; "" if there is none.
func (p *tab) text(selector string) (text string) {
	p.t.Helper()
	p.eval(`(document.querySelector(`+quoted(selector)+`) || {innerText: ''}).innerText`, &text)
	return text
}

func (p *tab) has(selector string) bool {
	p.t.Helper()
	var n int
	p.eval(`document.querySelectorAll(`+quoted(selector)+`).length`, &n)
	return n > 0
}

// address returns the address of the page, without the host.
func (p *tab) address() (address string) {
	p.t.Helper()
	p.eval(`location.pathname + location.search`, &address)
	return address
}

// focus returns what has the focus: its tag and id, or its text.
func (p *tab) focus() (focus string) {
	p.t.Helper()
	p.eval(`(e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : ' ' + (e.innerText || '').trim()))(document.activeElement)`, &focus)
	return focus
}

// fill types into a field in place of what is there.
func (p *tab) fill(selector, text string) *tab {
	p.t.Helper()
	var found bool
	p.eval(`(e => { if (!e) return false; for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true; e.focus(); e.select(); return document.activeElement === e })(document.querySelector(`+quoted(selector)+`))`, &found)
	if !found {
		p.t.Fatalf("%s has no field %s", p.address(), selector)
	}
	call(p, input.InsertText, input.InsertTextParams{Text: text})
	return p
}

// typed types where the focus is; "\r" is Enter, "\t" Tab.
func (p *tab) typed(keys string) *tab {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
	return p
}

// click clicks into the middle of an element, as a mouse does: what covers it gets the click.
func (p *tab) click(selector string) *tab {
	p.t.Helper()
	x, y := p.middle(selector)
	p.do(chromedp.MouseClickXY(x, y))
	return p
}

// middle scrolls to an element and returns where its middle is in the window.
func (p *tab) middle(selector string) (x, y float64) {
	p.t.Helper()
	var middle []float64
	p.eval(`(e => { if (!e) return []; e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(document.querySelector(`+quoted(selector)+`))`, &middle)
	if len(middle) != 2 {
		p.t.Fatalf("%s has no %s\n%.600s", p.address(), selector, p.text("body"))
	}
	return middle[0], middle[1]
}

// cookies returns the browser's cookies.
func (p *tab) cookies() []*network.Cookie {
	p.t.Helper()
	return callBrowser(p, storage.GetCookies, storage.GetCookiesParams{BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID}).Cookies
}

// setCookie gives the browser a cookie of the tab's host.
func (p *tab) setCookie(name, value string) {
	p.t.Helper()
	p.setCookieOf(p.Base, name, value)
}

func (p *tab) setCookieOf(base, name, value string) {
	p.t.Helper()
	call(p, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: base, Path: "/", HTTPOnly: yes, Secure: ptr(strings.HasPrefix(base, "https:")), SameSite: network.CookieSameSiteLax})
}

// wrongs returns what went wrong so far.
func (p *tab) wrongs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.wrong)
}

func ptr[T any](v T) *T { return &v }

var yes = ptr(true)

// quoted returns a text as a literal of JavaScript.
func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// findChromium returns the path of Chromium. Debian's build without a window takes half the time;
// the long form uses the whole browser.
func findChromium(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil && !long() {
		return path
	}
	return need(t, "chromium", "chromium or chromium-headless-shell")
}

// need returns the path of a program, and skips the test where it is missing.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed (Debian: %s)", program, debian)
	}
	return path
}
