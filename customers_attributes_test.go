package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEmailsThroughAPI sends the agreed cases of e-mails (internal/contact/testdata/emails.jsonl)
// to everything that reads one.
func TestEmailsThroughAPI(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("internal/contact/testdata/emails.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, setup{}).served()
	patched := "/api/v1/customers/" + s.shop.customer("ana").String()
	answer := func(method, path, body string, valid bool, normalized string) {
		t.Helper()
		w := answerTo(s.api, newRequest(method, path, s.key, body))
		var got struct{ Email, Code, Field string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case valid && (w.Code >= 300 || got.Email != normalized):
			t.Errorf("%s %s %s: %d %s, want %s", method, path, body, w.Code, w.Body, normalized)
		case !valid && (w.Code != http.StatusBadRequest || got.Code != "email_or_phone_required" && got.Field != "email"):
			t.Errorf("%s %s %s: %d %s, want a fault of email", method, path, body, w.Code, w.Body)
		}
	}
	for line := range bytes.Lines(data) {
		var c struct {
			Input      string
			Valid      bool
			Normalized string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]string{"email": c.Input})
		s.shop.ok(err)
		answer("POST", "/api/v1/customers", string(body), c.Valid, c.Normalized)
		answer("GET", "/api/v1/customers/lookup?email="+url.QueryEscape(c.Input), "", c.Valid, c.Normalized)
		if !c.Valid && strings.Trim(c.Input, " \t\n\f\r") == "" {
			continue // a blank e-mail takes it away
		}
		if c.Valid { // of nobody else
			body = bytes.Replace(body, []byte("@"), []byte("p@"), 1)
			c.Normalized = strings.Replace(c.Normalized, "@", "p@", 1)
			if local, _, _ := strings.Cut(c.Normalized, "@"); len(local) > 64 || len(c.Normalized) > 254 {
				continue
			}
		}
		answer("PATCH", patched, string(body), c.Valid, c.Normalized)
	}
}

func TestBirthDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		want  birthDate
		valid bool
	}{
		{"1990-02-28", 19900228, true},
		{"2000-02-29", 20000229, true},
		{"0001-01-01", 10101, true},
		{"9999-12-31", 99991231, true},
		{"--05-14", 514, true},
		{"--02-29", 229, true},
		{"--12-31", 1231, true},
		{text: "--02-30"},
		{text: "--13-01"},
		{text: "--00-01"},
		{text: "--5-14"},
		{text: "--0514"},
		{text: "--05-14 "},
		{text: "--"},
		{text: "---05-14"},
		{text: "----05-14"},
		{text: "05-14"},
		{text: "--2000-05-14"},
		{text: ""},
		{text: "1900-02-29"},
		{text: "2023-02-29"},
		{text: "0000-01-01"},
		{text: "1990-13-01"},
		{text: "1990-00-01"},
		{text: "1990-01-00"},
		{text: "1990-1-1"},
		{text: "19900101"},
		{text: "90-01-01"},
		{text: "+1990-01-01"},
		{text: "1990-01-01T00:00"},
		{text: "1990-01-01 "},
		{text: "１９９０-01-01"},
	} {
		got, valid := parseBirthDate(test.text)
		if got != test.want || valid != test.valid {
			t.Errorf("%q: %d, %t", test.text, got, valid)
		}
		if valid && (got.String() != test.text || got.hasYear() && got.day().String() != test.text) {
			t.Errorf("%q is written %s and is day %s", test.text, got, got.day())
		}
	}
}

// TestYearlessBirthDate: a date without a year agrees with those of its day, lends nothing to one that
// has a year, and gets that of one.
func TestYearlessBirthDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		known, other, filled string
		agree                bool
	}{
		{"", "", "", true},
		{"", "--05-14", "--05-14", true},
		{"", "1990-05-14", "1990-05-14", true},
		{"--05-14", "", "--05-14", true},
		{"--05-14", "--05-14", "--05-14", true},
		{"--05-14", "--05-15", "--05-14", false},
		{"--05-14", "1990-05-14", "1990-05-14", true},
		{"--05-14", "1990-06-14", "--05-14", false},
		{"1990-05-14", "--05-14", "1990-05-14", true},
		{"1990-05-14", "--05-15", "1990-05-14", false},
		{"1990-05-14", "1990-05-14", "1990-05-14", true},
		{"1990-05-14", "1991-05-14", "1990-05-14", false},
		{"1992-02-29", "--02-28", "1992-02-29", false},
	} {
		known, _ := parseBirthDate(test.known)
		other, _ := parseBirthDate(test.other)
		if known.agrees(other) != test.agree || other.agrees(known) != test.agree {
			t.Errorf("%q and %q agree: %t", test.known, test.other, !test.agree)
		}
		if got := known.filledBy(other).String(); got != test.filled {
			t.Errorf("%q filled by %q is %q, want %q", test.known, test.other, got, test.filled)
		}
	}
}

// TestBirthdays counts the days of every year by hand.
func TestBirthdays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1990-01-01", "1990-12-31", "1992-02-28", "1992-02-29", "1992-03-01", "--02-29", "--12-31"} {
		b, _ := parseBirthDate(text)
		monthAndDay := text[len(text)-len("02-29"):]
		last := 2022 // the latest birthday so far
		for date := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC); date.Year() < 2033; date = date.AddDate(0, 0, 1) {
			tomorrow := date.AddDate(0, 0, 1)
			is := date.Format("01-02") == monthAndDay || monthAndDay == "02-29" && date.Format("01-02") == "02-28" && tomorrow.Day() == 1
			today := dayOn(date.Date())
			if is {
				last = date.Year()
			}
			if got := b.in(date.Year()) == today; got != is {
				t.Errorf("%s has a birthday on %s: %t", text, today, got)
			}
			if got := b.lastYear(today); got != last {
				t.Errorf("on %s the last birthday of %s was in %d, want %d", today, text, got, last)
			}
		}
	}
}

func TestMergeAttributes(t *testing.T) {
	t.Parallel()
	list := func(text string) (list []attribute) {
		for pair := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(pair, "=")
			list = append(list, attribute{name, value})
		}
		return list
	}
	for _, test := range []struct{ list, changes, want string }{
		{"", "", ""},
		{"a=1 b=2", "", "a=1 b=2"},
		{"", "b=2 a=1", "a=1 b=2"},
		{"a=1 c=3", "b=2 a=4", "a=4 b=2 c=3"},
		{"a=1 b=2", "a= c=", "b=2"},
	} {
		before, changes := list(test.list), list(test.changes)
		if got, want := mergeAttributes(before, changes), list(test.want); !slices.Equal(got, want) {
			t.Errorf("%q with %q is %v", test.list, test.changes, got)
		}
		if !slices.Equal(before, list(test.list)) || !slices.Equal(changes, list(test.changes)) {
			t.Errorf("%q with %q: one was changed", test.list, test.changes)
		}
	}
}

// TestAttributeNumber: numbers are kept exactly, in one spelling. What is a decimal is
// spelled as decimals are.
func TestAttributeNumber(t *testing.T) {
	t.Parallel()
	long := "0." + strings.Repeat("123456789", 20)
	for text, want := range map[string]string{
		"0": "0", "-0.0": "0", "0e999999": "0", "2.50": "2.5", "1e2": "100", "19.432608": "19.432608", "-99.13320900": "-99.133209",
		"0.00001": "0.00001", "1e-6": "0.000001", "1e-7": "1e-7", "0.000000125": "1.25e-7", "-12.5E-9": "-1.25e-8",
		"123456789012345678901": "123456789012345678901", "1234567890123456789012": "1.234567890123456789012e21", "1E21": "1e21",
		"1e20": "100000000000000000000", "100000000000000000000.5": "100000000000000000000.5", "10000000000000000000000": "1e22",
		"1.7e308": "1.7e308", "1e-400": "1e-400", long: long,
		"1.8e308": "", "-1e309": "", "1e99999999999999999999": "", "1e-99999999999999999999": "", "0." + strings.Repeat("1", 199): "",
		"01": "", "+1": "", "1.": "", ".5": "", "1 ": "", "1e": "", "NaN": "", "": "",
	} {
		got, ok := attributeNumber(text)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", text, got, ok)
		}
		if again, ok := attributeNumber(got); ok && again != got {
			t.Errorf("%s became %s, then %s", text, got, again)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := decimal(rnd.Int64N(2*int64(maxDecimal)) - int64(maxDecimal))
		if got, ok := attributeNumber(d.String()); !ok || got != d.String() {
			t.Fatalf("%s: got %q, %v", d, got, ok)
		}
		f := math.Float64frombits(rnd.Uint64())
		if text := strconv.FormatFloat(f, 'e', -1, 64); !math.IsInf(f, 0) && !math.IsNaN(f) {
			got, ok := attributeNumber(text)
			if back, err := strconv.ParseFloat(got, 64); !ok || err != nil || back != f {
				t.Fatalf("%s: got %q, %v", text, got, ok)
			}
		}
	}
}

func TestConsent(t *testing.T) {
	t.Parallel()
	none, yes, no := consent{}, consent{consentGiven, 10}, consent{consentRefused, 20}
	for _, test := range []struct {
		was  consent
		said consentAnswer
		want consent
	}{
		{none, consentUnknown, none},
		{none, consentGiven, consent{consentGiven, 30}},
		{yes, consentGiven, yes},
		{yes, consentRefused, consent{consentRefused, 30}},
		{no, consentUnknown, none},
	} {
		if got := test.was.said(test.said, 30); got != test.want {
			t.Errorf("%v, then %v: %v, want %v", test.was, test.said, got, test.want)
		}
	}
	for _, pair := range [][2]consent{{yes, no}, {no, yes}, {none, no}, {no, none}} {
		if got := pair[0].later(pair[1]); got != no {
			t.Errorf("the later of %v is %v", pair, got)
		}
	}
}

// TestConsentOfOnePerson: what was said last holds after a merge; an erasure leaves nothing, and the
// audit log says who said what.
func TestConsentOfOnePerson(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, eva := s.customer("ana"), s.customer("eva")
	say := func(cust id, a consentAnswer) {
		must(s, func(t *txn) (any, error) { return t.customers.patch(cust, customerPatch{Marketing: &a}, nil) })
		s.pass(time.Second)
	}
	said := func(cust id) consentAnswer {
		return ask(s, func(t *txn) (consentAnswer, error) {
			c, err := t.customers.get(cust)
			if err != nil {
				return 0, err
			}
			return c.Marketing.Answer, nil
		})
	}
	say(ana, consentRefused)
	say(eva, consentGiven)
	s.merged(ana, eva)
	if got := said(ana); got != consentGiven {
		t.Errorf("merged: %v", got)
	}
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana) })
	if got := said(ana); got != consentUnknown {
		t.Errorf("erased: %v", got)
	}
	s.verified()
}

// TestConsentImported: a column avisos takes yes and no as people write them, and a file of all
// columns can be read again.
func TestConsentImported(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("import customers " + s.file("c.csv", "correo;avisos\na@example.com;sí\nb@example.com;NO\nc@example.com;\n"))
	wrong := s.file("d.csv", "correo;avisos\nd@example.com;quizá\n")
	s.run("import customers " + wrong)
	if told := string(readFile(t, wrong+".errors.csv")); !strings.Contains(told, `avisos: ""quizá"": debe ser sí o no`) {
		t.Error(told)
	}
	exported := s.ok("export customers")
	to := newOpenTill(t)
	to.ok("import customers " + to.file("c.csv", exported))
	if d := cmp.Diff(exported, to.ok("export customers")); d != "" || strings.Count(exported, ",true,20")+strings.Count(exported, ",false,20") != 2 {
		t.Errorf("answers and their moments, moved (-from +to):\n%s", d)
	}
}

// TestConsentWithdrawn: a no in a file is taken of a known customer, too, and words of other systems
// are answers (contract §31). A yes does not undo a no.
func TestConsentWithdrawn(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	said := func(name string) string {
		v := s.byEmail(name).Marketing
		return fmt.Sprint(v.Answer.text(), " ", v.At)
	}
	s.importCSV(t, "correo,avisos,fecha avisos\na@example.com,subscribed,2019-03-01\nb@example.com,TRUE,\nc@example.com,1,\nd@example.com,unsubscribed,2018-03-01\n")
	yes := said("b")
	s.pass(oneDay)
	if told := s.importCSV(t, "correo,avisos,fecha avisos\na@example.com,Unsubscribed,2020-03-01\nb@example.com,FALSE,2018-03-01\nc@example.com,,\nd@example.com,sí,\n"); told != "0 new, 4 known, 0 wrong" {
		t.Error(told)
	}
	now := s.clock.String()
	for name, want := range map[string]string{"a": "false 2020-03-01T06:00:00.000Z", "b": "false " + now, "c": yes, "d": "false 2018-03-01T06:00:00.000Z"} {
		if got := said(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if told := s.importCSV(t, "correo,avisos,fecha avisos\ne@example.com,no,2999-01-01\n"); !strings.Contains(told, "fecha avisos: \"2999-01-01\": no puede ser una fecha futura") {
		t.Error(told)
	}
	s.verified()
}

// marked is what a customer's record has: who wrote about what, by the first letters.
func (s *shop) marked(cust id) string {
	return ask(s, func(t *txn) (string, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return "", err
		}
		var all []string
		for _, w := range c.Written {
			all = append(all, string(w.Kind)+" "+t.dayOf(w.At).date().Format(time.DateOnly))
		}
		return strings.Join(all, "; "), nil
	})
}

func (s *shop) mark(cust id, kind noticeKind, wrote bool) {
	must(s, func(t *txn) (any, error) { return nil, t.customers.markWritten(cust, kind, id{1}, wrote) })
}

// TestMarkWritten: a mark is of one kind, replaces the one before, can be undone, and goes after 60
// days; a merge keeps the later one, an erasure none; clients of the API see no change.
func TestMarkWritten(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana, eva := s.customer("ana"), s.customer("eva")
	shown := func(cust id) (etag string, updated instant, events uint64) {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customers.get(cust)
			n, _ := t.count()
			etag, updated, events = c.etag(), c.UpdatedAt, n.Events+n.Audit
			return nil, err
		})
		return etag, updated, events
	}
	etag, updated, events := shown(ana)
	s.mark(ana, noticeBirthday, true)
	s.pass(oneDay)
	s.mark(ana, noticeExpiring, true)
	same(t, "two kinds", s.marked(ana), "birthday 2026-03-02; expiring 2026-03-03")
	s.pass(oneDay)
	s.mark(ana, noticeExpiring, true)
	s.mark(ana, noticeBirthday, false)
	s.mark(ana, noticeAlmost, false)
	same(t, "again, and undone", s.marked(ana), "expiring 2026-03-04")
	if e, u, n := shown(ana); e != etag || u != updated || n != events {
		t.Error("it is a change for clients", e, u, n)
	}
	s.pass(oneDay)
	s.mark(eva, noticeExpiring, true)
	s.mark(eva, noticeAlmost, true)
	must(s, func(t *txn) (any, error) { c, _, err := t.merges.merge(ana, eva); return c, err })
	same(t, "merged", s.marked(ana), "expiring 2026-03-05; almost 2026-03-05")
	same(t, "of the stub", s.marked(eva), "")
	s.pass(60*oneDay - time.Second)
	known := func() (ok bool) {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customers.get(ana)
			_, ok = writtenOf(c.Written, noticeExpiring, t.now)
			return nil, err
		})
		return ok
	}
	if !known() {
		t.Error("it is forgotten before 60 days")
	}
	s.pass(time.Second)
	if known() {
		t.Error("it is known after 60 days")
	}
	s.mark(ana, noticeBirthday, true)
	same(t, "what is old is not kept", s.marked(ana), "birthday 2026-05-04")
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana) })
	same(t, "erased", s.marked(ana), "")
	_, err := write(s.Context(), s.engine, s.org, s.clock, func(t *txn) (any, error) {
		return nil, t.customers.markWritten(ana, noticeBirthday, id{1}, true)
	})
	if err == nil {
		t.Error("an erased customer is marked")
	}
}

// TestNoticesMarked: the page's buttons mark who was written to and undo it, and the export of the
// person has it. What is no list or no customer of the organization is refused.
func TestNoticesMarked(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana := s.customer("ana")
	s.consents(ana, consentGiven)
	s.buy(ana, "100")
	s.pass(55 * 24 * time.Hour)
	d := newPanelShopOn(s)
	page := func() string { return mainOf(d.open(roleManager, noticesPath+"?que=mes").Body.String()) }
	if p := page(); !strings.Contains(p, "Ya le escribí") || strings.Contains(p, "Le escribió") {
		t.Error(p)
	}
	to := noticesPath + "/" + ana.String()
	if w := d.post(roleManager, to+"/escrito", url.Values{"que": {"mes"}}); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), noticesPath+"?que=mes") {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if p := page(); strings.Contains(p, "Ya le escribí") || !strings.Contains(p, "Le escribió Manager, el 26 abr 2026, 04:00") || !strings.Contains(p, "No le escribí") {
		t.Error(p)
	}
	if p := d.open(roleManager, noticesPath+"?que=casi").Body.String(); strings.Contains(p, "Le escribió") {
		t.Error("it is of another list too", mainOf(p))
	}
	export := ask(s, func(t *txn) (string, error) {
		c, err := t.customers.get(ana)
		if err != nil {
			return "", err
		}
		b, err := (&personExport{family: []*customer{c}}).head(t, nil)
		return string(b), err
	})
	if want := `"notices":[{"kind":"expiring","at":"2026-04-26T10:00:00.000Z","by":{"type":"User",`; !strings.Contains(export, want) {
		t.Error(export)
	}
	must(s, func(t *txn) (any, error) {
		return nil, t.people.removeMember(s.member(d.tokens[roleOwner]), d.users[roleManager])
	})
	if p := mainOf(d.open(roleOwner, noticesPath+"?que=mes").Body.String()); !strings.Contains(p, "Le escribió alguien que ya no es del equipo, el") {
		t.Error(p)
	}
	if d.post(roleOwner, to+"/quitar", url.Values{"que": {"mes"}}); s.marked(ana) != "" {
		t.Error(s.marked(ana))
	}
	if w := d.post(roleOwner, to+"/escrito", url.Values{"que": {"nada"}}); w.Code != http.StatusUnprocessableEntity || s.marked(ana) != "" {
		t.Error(w.Code, s.marked(ana))
	}
	if w := d.post(roleCashier, to+"/escrito", url.Values{"que": {"mes"}}); w.Code != http.StatusForbidden || s.marked(ana) != "" {
		t.Error(w.Code, s.marked(ana))
	}
	s.secondShop()
	var eva id
	s.in(2, func() { eva = s.customer("eva") })
	w := d.post(roleOwner, noticesPath+"/"+eva.String()+"/escrito", url.Values{"que": {"mes"}})
	s.in(2, func() {
		if w.Code < 400 || s.marked(eva) != "" {
			t.Error(w.Code, s.marked(eva))
		}
	})
}
