package panel

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A shop is a `sello demo` of the test's own: Café Luna, with three customers.
type shop struct {
	t      *testing.T
	Base   string // of this server, for requests without a browser
	Panel  string // the address of the panel; Base unless -panel said another
	Key    string
	entry  string            // the path of the link that logs the demo's owner in
	tokens map[string]string // of sessions, by role
	db     string
	binary string
	env    []string // beside that of the tests
	cmd    *exec.Cmd
	stderr *strings.Builder
	since  time.Time // when the shop was made
}

// newShop starts one. args are further flags.
func newShop(t *testing.T, args ...string) *shop {
	t.Helper()
	s := launch(t, t.TempDir(), args...)
	t.Cleanup(s.stop)
	return s
}

// launch starts one whose file is in dir. The caller stops it.
func launch(t *testing.T, dir string, args ...string) *shop {
	t.Helper()
	binary, err := buildSello()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, binary: binary, db: filepath.Join(dir, "demo.db"), tokens: map[string]string{}, since: time.Now()}
	s.start(args...)
	return s
}

// start starts the server, on an address of its choice unless args have one.
func (s *shop) start(args ...string) {
	s.t.Helper()
	s.stderr = &strings.Builder{}
	s.cmd = exec.Command(s.binary, append([]string{"demo", "-addr", "127.0.0.1:0", "-json", "-db", s.db}, args...)...)
	s.cmd.Stderr, s.cmd.Env = s.stderr, append(os.Environ(), s.env...)
	stdout, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err == nil {
		err = json.NewDecoder(stdout).Decode(s)
	}
	if err != nil {
		s.t.Fatalf("sello demo: %v\n%s", err, s.stderr)
	}
	s.Base = strings.TrimSuffix(s.Base, "/api/v1")
	if link, err := url.Parse(s.Panel); err == nil {
		s.entry = link.Path
	}
	s.Panel = s.Base
	if i := slices.Index(args, "-panel"); i >= 0 {
		s.Panel = args[i+1]
	}
}

// stop ends the server as an operator does.
func (s *shop) stop() {
	if err := s.ended(); err != nil {
		s.t.Errorf("sello demo: %v\n%s", err, s.stderr)
	}
}

func (s *shop) ended() error {
	if s.cmd == nil {
		return nil
	}
	s.cmd.Process.Signal(os.Interrupt)
	err := s.cmd.Wait()
	s.cmd = nil
	return err
}

// command runs a command of sello on the shop's file, and decodes what it prints.
func (s *shop) command(into any, args ...string) {
	s.t.Helper()
	var wrong strings.Builder
	cmd := exec.Command(s.binary, append(slices.Clone(args), "-db", s.db)...)
	cmd.Stderr = &wrong
	text, err := cmd.Output()
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		s.t.Fatalf("sello %v: %v\n%s%s", args, err, text, wrong.String())
	}
}

// kill ends the server as a power failure would.
func (s *shop) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

// of returns the shop as a subtest uses it.
func (s *shop) of(t *testing.T) *shop {
	one := *s
	one.t = t
	return &one
}

// token returns the token of a session of who has a role. Who was not there yet is invited,
// and joins without a browser: TestInvitation does so with one.
func (s *shop) token(role string) string {
	s.t.Helper()
	if s.tokens[role] == "" {
		s.tokens[role] = s.join(role, s.invite(role))
	}
	return s.tokens[role]
}

// password is that of everybody.
const password = "nueve gatos bajo la mesa verde"

// invite returns the path of an invitation for a role, and its e-mail is role@example.com.
func (s *shop) invite(role string) string {
	s.t.Helper()
	var invited struct{ Link string }
	s.command(&invited, "user", "invite", "-org", "cafe-luna", "-email", role+"@example.com", "-role", role, "-json")
	u, err := url.Parse(invited.Link)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Path
}

// join accepts an invitation.
func (s *shop) join(role, link string) (token string) {
	s.t.Helper()
	page, at := s.follow("", link)
	if page.Status == http.StatusNotFound {
		s.t.Skip("the panel has no page of invitations: nobody can log in")
	}
	f := formsOf(at, page.Body)
	if len(f) != 1 {
		s.t.Fatalf("%s: %d, %d forms\n%s", at, page.Status, len(f), page.Body)
	}
	for name := range f[0].fields {
		switch {
		case strings.Contains(strings.ToLower(name), "password"):
			f[0].fields.Set(name, password)
		case name == "name":
			f[0].fields.Set(name, "Ana "+role)
		}
	}
	a := s.post("", f[0])
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == cookieName(s.Panel) {
			return c.Value
		}
	}
	s.t.Fatalf("%s: %d, no session\n%s", at, a.Status, a.Body)
	return ""
}

// as opens a tab that is logged in with a role.
func (s *shop) as(role string, settings ...setting) *tab {
	s.t.Helper()
	return s.at(s.Panel, role, settings...)
}

// at is the same at another address of the panel.
func (s *shop) at(base, role string, settings ...setting) *tab {
	s.t.Helper()
	token := s.token(role)
	p := open(s.t, base, settings...)
	p.setCookie(cookieName(base), token)
	return p
}

func cookieName(base string) string {
	if strings.HasPrefix(base, "https:") {
		return "__Host-sello"
	}
	return "sello"
}

// An answer is a response to a request without a browser.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

// send sends a request, with a role's cookie unless role is "". It follows no redirect.
func (s *shop) send(role, method, path string, form url.Values, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.Base+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	u, _ := url.Parse(s.Panel)
	r.Host = u.Host
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if role != "" {
		r.AddCookie(&http.Cookie{Name: cookieName(s.Panel), Value: s.token(role)})
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.answerTo(r)
}

func (s *shop) answerTo(r *http.Request) answer {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// api sends a request of the API and decodes its answer.
func (s *shop) api(method, path, body string, into any) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.Base+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a := s.answerTo(r)
	if a.Status >= 300 {
		err = errors.New(a.Body)
	} else if into != nil {
		err = json.Unmarshal([]byte(a.Body), into)
	}
	if err != nil {
		s.t.Fatalf("%s %s: %d %v", method, path, a.Status, err)
	}
}

// A listed is a list of the API.
type listed[T any] struct{ Data []T }

// A sale as the API lists it.
type sale struct {
	ID, CustomerID, Source, Type, ExternalID string
	TotalAmount                              float64
}

// sales lists those since the shop was made: the demo's year lies before.
func (s *shop) sales(query string) []sale {
	s.t.Helper()
	var list listed[sale]
	s.api("GET", "/transactions?from="+s.since.UTC().Format("2006-01-02T15:04:05.000Z")+"&"+query, "", &list)
	return list.Data
}

// customers returns how many there are.
func (s *shop) customers() int {
	s.t.Helper()
	var list struct{ Meta struct{ Total int } }
	s.api("GET", "/customers", "", &list)
	return list.Meta.Total
}

// customer returns the id of the customer that a search finds.
func (s *shop) customer(search string) string {
	s.t.Helper()
	var list listed[struct{ ID string }]
	s.api("GET", "/customers?search="+url.QueryEscape(search), "", &list)
	if len(list.Data) != 1 {
		s.t.Fatalf("%d customers are found by %s", len(list.Data), search)
	}
	return list.Data[0].ID
}

// enrol makes a customer by the API and returns the id.
func (s *shop) enrol(firstName, lastName, phone string) string {
	s.t.Helper()
	body, _ := json.Marshal(map[string]string{"firstName": firstName, "lastName": lastName, "phoneNumber": phone})
	var made struct{ ID string }
	s.api("POST", "/customers", string(body), &made)
	return made.ID
}

// store returns what the API tells of the store, to see whether something changed it.
func (s *shop) store() string {
	s.t.Helper()
	var all strings.Builder
	for _, path := range []string{"/customers", "/transactions", "/redemptions"} {
		r, _ := http.NewRequest("GET", s.Base+"/api/v1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+s.Key)
		all.WriteString(s.answerTo(r).Body)
	}
	var document json.RawMessage
	s.command(&document, "export", "-org", "cafe-luna")
	return all.String() + string(document)
}

// A form of a page: where it goes, and the fields that it has when the page is opened.
type form struct {
	page, path string
	fields     url.Values
}

// A survey is every page of the panel that links lead a role to, one for each kind of page,
// and the forms of them that change something.
type survey struct {
	pages []string
	forms []form
}

var (
	pageLink   = regexp.MustCompile(`href="(/panel[^"]*)"`)
	postForm   = regexp.MustCompile(`(?s)<form[^>]* method="post"[^>]*>.*?</form>`)
	formAction = regexp.MustCompile(`<(?:form[^>]* |button[^>]* form)action="([^"]*)"`)
	formField  = regexp.MustCompile(`<input[^>]*? name="([^"]*)"(?:[^>]*? value="([^"]*)")?`)
	anID       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}|\d+`)
)

// look follows the links from the first page on. It opens nothing else: what no link leads to
// is not there for people.
func (s *shop) look(role string) (found survey) {
	s.t.Helper()
	seen := map[string]bool{}
	waiting := []string{"/panel"}
	known := map[string]bool{}
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		path, _, _ = strings.Cut(path, "#")
		kind := anID.ReplaceAllString(strings.Split(path, "?")[0], "*")
		if seen[kind] || strings.HasPrefix(path, "/panel/s/") || strings.HasPrefix(path, "/panel/marca/") {
			continue
		}
		seen[kind] = true
		a, at := s.follow(role, path)
		if a.Status != http.StatusOK {
			s.t.Errorf("a link leads %s to %s: %d", role, path, a.Status)
			continue
		}
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			continue
		}
		found.pages = append(found.pages, at)
		for _, f := range formsOf(at, a.Body) {
			if kind := anID.ReplaceAllString(f.path, "*"); !known[kind] {
				known[kind] = true
				found.forms = append(found.forms, f)
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(a.Body, -1) {
			waiting = append(waiting, unescape(m[1]))
		}
	}
	slices.SortFunc(found.forms, func(a, b form) int { return strings.Compare(a.path, b.path) })
	if len(found.pages) < 3 {
		s.t.Errorf("%s finds only %v", role, found.pages)
	}
	return found
}

// formsOf returns the forms of a page that change something.
func formsOf(at, body string) (forms []form) {
	for _, m := range postForm.FindAllString(body, -1) {
		f := form{page: at, path: at, fields: url.Values{}}
		if action := formAction.FindStringSubmatch(m); action != nil {
			f.path = unescape(action[1])
		}
		for _, field := range formField.FindAllStringSubmatch(m, -1) {
			f.fields.Set(unescape(field[1]), unescape(field[2]))
		}
		forms = append(forms, f)
	}
	return forms
}

// follow opens a page, and those that it leads to.
func (s *shop) follow(role, path string) (a answer, at string) {
	s.t.Helper()
	for range 5 {
		a = s.send(role, "GET", path, nil)
		if a.Status != http.StatusSeeOther {
			return a, path
		}
		path = a.Header.Get("Location")
	}
	s.t.Fatalf("%s leads around", path)
	return a, path
}

func unescape(text string) string {
	return strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">").Replace(text)
}

// formOf opens a page and returns its form that is sent to a path.
func (s *shop) formOf(role, page, path string) form {
	s.t.Helper()
	a, at := s.follow(role, page)
	for _, f := range formsOf(at, a.Body) {
		if f.path == path {
			return f
		}
	}
	s.t.Fatalf("%s has no form for %s\n%s", at, path, a.Body)
	return form{}
}

// with returns the form with other fields.
func (f form) with(pairs ...string) form {
	fields := url.Values{}
	for name, value := range f.fields {
		fields[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		fields.Set(pairs[i], pairs[i+1])
	}
	f.fields = fields
	return f
}

// saleForm is the till's form of a customer, with an amount.
func (s *shop) saleForm(role, customer, amount string) form {
	s.t.Helper()
	path := "/panel/caja/" + customer
	return s.formOf(role, path, path+"/venta").with("totalAmount", amount)
}

// post sends a form as a browser does, but for the headers that are given.
func (s *shop) post(role string, f form, headers ...string) answer {
	s.t.Helper()
	if len(headers) == 0 {
		headers = []string{"Origin", s.Panel, "Sec-Fetch-Site", "same-origin"}
	}
	return s.send(role, "POST", f.path, f.fields, headers...)
}
