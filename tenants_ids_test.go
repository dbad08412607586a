package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestForeignIDs fills the places of every row with values that are the other
// organization's, unknown or malformed. It fills one place at a time, and all at once.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	s.wire = true
	s.foreignIDs(true, everyRow).report()
	s.wire = false

	places := 0
	for i := range rows {
		places += len(rows[i].places())
	}
	t.Logf("%d rows, %d places", len(rows), places)
	t.Run("control", s.foreignControls)
}

// everyRow chooses all rows. someRows chooses a quarter of them, another one for each fault:
// with -histories 4 and more, it chooses all.
func everyRow(int) bool { return true }

func someRows(fault int) func(int) bool {
	return func(row int) bool { return *moreHistories >= 4 || row%4 == fault%4 }
}

// foreignControls puts one fault after the other into the server. foreignIDs must find
// each, in every place that names something of the other organization.
func (s *street) foreignControls(t *testing.T) {
	skipUsual(t)
	spoil := s.spoil
	for nth, fault := range []struct {
		name  string
		flaws []string // one of these must be found; nil: any
		ids   bool     // only in places for ids
		wrong http.Handler
	}{
		{"whose it is does not matter", nil, false, s.swap()},
		{"counted against the other's limits", []string{flawLimits}, true, s.swap()},
		{"forbidden", []string{flawStatus}, true, spoil(func(w *httptest.ResponseRecorder) { w.Code = 403 })},
		{"a header", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Owner", "other") })},
		{"a header's value", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header()["X-RateLimit-Remaining"] = []string{"298"} })},
		{"a header less", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header().Del("Cache-Control") })},
		{"a body", []string{flawBody}, true, spoil(func(w *httptest.ResponseRecorder) { w.Body.WriteByte(' ') })},
		{"the other's name", []string{flawLeak}, false, spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Request-Id", s.world.names[there]) })},
		{"writing to the other", []string{flawOthers}, true, spoil(func(*httptest.ResponseRecorder) { s.touch(2) })},
		{"writing to the caller's", []string{flawStored}, true, spoil(func(*httptest.ResponseRecorder) { s.touch(1) })},
		{"writing to what all share", []string{flawOthers}, true, spoil(func(*httptest.ResponseRecorder) {
			s.world.must(s.past.Update(s.world.Context(), func(tx Tx) error { return tx.Put(newKey('v'), nil) }))
		})},
	} {
		s.handler = fault.wrong
		chosen := someRows(nth)
		m := s.foreignIDs(false, chosen)
		for i := range rows {
			if !chosen(i) {
				continue
			}
			for n, p := range rows[i].places() {
				if fault.ids && notFound[p.kind] == "" || rows[i].fields && fault.flaws == nil && p.inPath {
					continue
				}
				if cell := cellName(i, n, p, there); !m.has(cell, fault.flaws...) {
					t.Errorf("%s: nothing was found in %s: %v", fault.name, cell, m.flaws[cell])
				}
			}
		}
	}

	// The store finds the other organization's records under the caller's keys.
	s.handler = newAPIOf(s.leaky())
	m := s.foreignIDs(false, everyRow)
	for _, text := range []string{
		"GET /api/v1/customers/{customer}", "POST /api/v1/points/customers/{customer}/add", "GET /api/v1/transactions/{sale}",
		"GET /api/v1/redemptions/{redemption}", "GET /api/v1/customers/lookup?email={email}", "GET /api/v1/transactions?customerId={customer}",
	} {
		i := slices.IndexFunc(rows, func(r row) bool { return strings.HasPrefix(r.text, text) })
		if cell := cellName(i, 0, rows[i].places()[0], there); !m.has(cell) {
			t.Errorf("records under another's keys: nothing was found in %s", cell)
		}
	}
	s.handler = s.world.api
}

func cellName(row, n int, p place, what string) string {
	return fmt.Sprintf("%s\nplace %d {%s}: %s", rows[row].text, n+1, p.kind, what)
}

// foreignIDs checks the chosen rows. If thorough, it also tries other ids, malformed ones and
// HEAD.
func (s *street) foreignIDs(thorough bool, chosen func(row int) bool) *matrix {
	m := s.newMatrix()
	for i := range rows {
		if !chosen(i) {
			continue
		}
		(&foreignRow{m, i, ""}).check(thorough)
		if thorough && strings.HasPrefix(rows[i].text, "GET") {
			(&foreignRow{m, i, "HEAD"}).check(false)
		}
	}
	return m
}

// A foreignRow sends one row with values of others in its places.
type foreignRow struct {
	*matrix
	row    int
	method string // in place of the row's own, unless it is ""
}

// send sends the row with a value in each place.
func (f *foreignRow) send(values []string) (step, result) {
	q := rows[f.row].fill(values)
	q.method = cmp.Or(f.method, q.method)
	return q, f.ask(q)
}

// sendOf is send with values of organizations; of returns the organization for each
// place.
func (f *foreignRow) sendOf(of func(int, place) string) (step, result) {
	return f.send(f.values(f.row, of))
}

func (f *foreignRow) check(thorough bool) {
	r := &rows[f.row]
	q, own := f.sendOf(all(here))
	f.foreignCell(r.text+f.method+": own", q, own, own)
	var e errorBody
	if own.status >= 400 {
		json.Unmarshal([]byte(own.body), &e)
	}
	if own.status != r.want || f.method == "" && e.Code != r.code {
		f.note(r.text+f.method+": own", result{status: r.want, body: r.code}, own, flawStatus)
	}
	for n, p := range r.places() {
		want := f.place(n, p, own)
		if thorough && notFound[p.kind] != "" {
			f.otherIDs(n, p, want)
			f.malformed(n, p, want)
		}
	}
	f.everywhere()
}

// place puts an unknown value and one of the other organization into one place. It
// returns the expected answer.
func (f *foreignRow) place(n int, p place, own result) (want result) {
	code := notFound[p.kind]
	q, unknown := f.sendOf(only(n, nowhere))
	want = unknown
	switch {
	case p.kind == "retry" || rows[f.row].fields:
		want = own
	case rows[f.row].within:
		if !strings.Contains(unknown.body, `"error":{"statusCode":404,"code":"`+code+`"`) {
			f.note(cellName(f.row, n, p, nowhere), result{body: code}, unknown, flawBody)
		}
	case code != "":
		want = f.refusal(code, "")
		if f.method != "" {
			want.body = unknown.body
		}
	}
	f.foreignCell(cellName(f.row, n, p, nowhere+f.method), q, want, unknown)

	q, foreign := f.sendOf(only(n, there))
	if code == "" {
		foreign = f.renamed(foreign, p.kind)
	}
	f.foreignCell(cellName(f.row, n, p, there+f.method), q, want, foreign)
	return want
}

// with sends the row with a value in one place. what names the cell.
func (f *foreignRow) with(n int, p place, what, value string, want result) {
	values := f.values(f.row, all(here))
	values[n] = value
	q, got := f.send(values)
	f.foreignCell(cellName(f.row, n, p, what+f.method), q, want, got)
}

// otherIDs tries the other organization's ids of every kind, own ids of other kinds, and
// ids that differ in one bit.
func (f *foreignRow) otherIDs(n int, p place, want result) {
	for kind, theirs := range notFound {
		f.with(n, p, there+"'s "+kind, f.value(there, kind), want)
		if notFound[p.kind] != theirs {
			f.with(n, p, "own "+kind, f.value(here, kind), want)
		}
	}
	flipped, _ := parseID(f.value(there, p.kind))
	for bit := 0; bit < 128; bit += 9 {
		other := flipped
		other[bit/8] ^= 1 << (bit % 8)
		f.with(n, p, fmt.Sprint("bit ", bit), other.String(), want)
	}
}

func (f *foreignRow) malformed(n int, p place, want result) {
	for _, bad := range malformations {
		want := want
		if bad.noRoute && p.inPath {
			want = f.refusal("route_not_found", "")
		}
		for _, org := range []string{nowhere, there, here} {
			if bad.spaces && org == here && !p.inPath {
				continue // texts are trimmed (contract §1)
			}
			f.with(n, p, org+", "+bad.name, bad.spell(f.value(org, p.kind)), want)
		}
	}
}

// everywhere fills all places at once, first with unknown values, then with foreign ones.
func (f *foreignRow) everywhere() {
	r, places := &rows[f.row], rows[f.row].places()
	if len(places) == 0 {
		return
	}
	name := r.text + f.method + ": all "
	q, unknown := f.sendOf(all(nowhere))
	f.foreignCell(name+nowhere, q, unknown, unknown)
	if !r.fields && !r.within && slices.ContainsFunc(places, func(p place) bool { return notFound[p.kind] != "" }) && unknown.status != http.StatusNotFound {
		f.note(name+nowhere, result{status: http.StatusNotFound}, unknown, flawStatus)
	}
	q, foreign := f.sendOf(all(there))
	for _, p := range places {
		if notFound[p.kind] == "" {
			foreign = f.renamed(foreign, p.kind)
		}
	}
	f.foreignCell(name+there, q, unknown, foreign)
}

// renamed returns an answer as it would be for an unknown value: it replaces the other
// organization's value, which an answer may repeat.
func (s *street) renamed(got result, kind string) result {
	if kind != "retry" {
		got.body = strings.ReplaceAll(got.body, s.value(there, kind), s.value(nowhere, kind))
	}
	return got
}

// malformations are spellings that no id has (contract §1).
var malformations = []struct {
	name    string
	noRoute bool // in a path it leads to no route
	spaces  bool
	spell   func(string) string
}{
	{name: "upper case", spell: strings.ToUpper},
	{name: "in braces", spell: func(u string) string { return "{" + u + "}" }},
	{name: "without dashes", spell: func(u string) string { return strings.ReplaceAll(u, "-", "") }},
	{name: "as a URN", spell: func(u string) string { return "urn:uuid:" + u }},
	{name: "cut short", spell: func(u string) string { return u[:35] }},
	{name: "one digit more", spell: func(u string) string { return u + "0" }},
	{name: "twice", spell: func(u string) string { return u + "," + u }},
	{name: "NUL behind", spell: func(u string) string { return u + "\x00" }},
	{name: "another path", spell: func(u string) string { return u + "/x" }},
	{name: "quoted", spell: func(u string) string { return `"` + u + `"` }},
	{name: "SQL", spell: func(u string) string { return u + "' OR '1'='1" }},
	{name: "a star", spell: func(string) string { return "*" }},
	{name: "a word", spell: func(string) string { return "null" }},
	{name: "a number", spell: func(string) string { return "0" }},
	{name: "the zero id", spell: func(string) string { return "00000000-0000-0000-0000-000000000000" }},
	{name: "not ASCII", spell: func(u string) string { return strings.ReplaceAll(u, "0", "０") + "ñ" }},
	{name: "long", spell: func(u string) string { return strings.Repeat(u, 20) }},
	{name: "spaces", spaces: true, spell: func(u string) string { return " " + u + " " }},
	{name: "a folder up", noRoute: true, spell: func(u string) string { return "../" + u }},
	{name: "a slash behind", noRoute: true, spell: func(u string) string { return u + "/" }},
}

// foreign reports whether a request names something of the other organization.
func (s *street) foreign(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	asked, _ := url.QueryUnescape(r.URL.RequestURI())
	asked += string(body) + r.Header.Get("Idempotency-Key")
	for name, value := range s.world.names {
		if strings.HasPrefix(name, there+".") && strings.Contains(asked, value) {
			return true
		}
	}
	return strings.Contains(asked, there) || strings.Contains(asked, s.value(there, "phone")[1:]) || strings.Contains(asked, s.value(there, "phone2")[1:])
}

// swap returns a faulty server: it serves a request that names something of the other
// organization as that organization's own.
func (s *street) swap() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			r.Header.Set("Authorization", "Bearer "+s.world.names["key."+there])
		}
		s.world.api.ServeHTTP(w, r)
	})
}

// spoil returns a faulty server: it changes the answer to a request that names something
// of the other organization.
func (s *street) spoil(change func(*httptest.ResponseRecorder)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoilt := httptest.NewRecorder()
		foreign := s.foreign(r)
		s.world.api.ServeHTTP(spoilt, r)
		if foreign {
			change(spoilt)
		}
		maps.Copy(w.Header(), spoilt.Header())
		w.WriteHeader(spoilt.Code)
		w.Write(spoilt.Body.Bytes())
	})
}

// touch appends a byte to an organization's counters.
func (s *street) touch(org uint32) {
	s.world.must(s.past.Update(s.world.Context(), func(tx Tx) error {
		value, _, err := tx.Get(orgKey('n', org))
		if err != nil {
			return err
		}
		return tx.Put(orgKey('n', org), append(slices.Clone(value), 0))
	}))
}

// A leakyTx returns the second organization's value for a key of the first that has none.
type leakyTx struct{ Tx }

func (t leakyTx) Get(k []byte) ([]byte, bool, error) {
	value, ok, err := t.Tx.Get(k)
	if org, problem := owner(Entry{Key: k}); err == nil && !ok && problem == nil && org == 1 {
		k = slices.Clone(k)
		at := 1
		if k[0] == 'p' {
			at = len(k) - 4
		}
		binary.BigEndian.PutUint32(k[at:], 2)
		return t.Tx.Get(k)
	}
	return value, ok, err
}

// leaky returns an engine on a store whose transactions are leakyTx.
func (s *street) leaky() *engine {
	leak := func(tx Tx) Tx { return leakyTx{tx} }
	return newEngine(wrappedStore{s.past, leak, leak}, func() time.Time { return s.world.clock }, func() seed {
		s.world.seeds++
		return seed{byte(s.world.seeds)}
	})
}
