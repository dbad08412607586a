package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// known are enrolments with contact data that either the other organization or
// nobody knows already.
var known = []string{
	`{"email": "{email}"}`,
	`{"phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone2}"}`, // two customers of the other organization
	`{"email": "{email}", "firstName": "Eva", "lastName": "Luz"}`,
	`{"email": "new@example.com", "phoneNumber": "{phone2}", "firstName": "Eva"}`,
	`{"email": "{email}", "phoneNumber": "+525512349999"}`,
	`{"email": "beto@example.com", "phoneNumber": "{phone}"}`, // a customer of the caller's, who gets the phone
}

// afterwards are the later requests whose answers could show that somebody else
// knows a new customer.
var afterwards = []string{
	`POST /api/v1/customers
{"email": "{email}"}`,
	`POST /api/v1/customers
{"phoneNumber": "{phone}"}`,
	`GET /api/v1/customers/lookup?email={email}`,
	`GET /api/v1/customers/lookup?phone={phone}`,
	`GET /api/v1/customers/lookup?phone={phone2}`,
	`GET /api/v1/customers/{new}`,
	`PATCH /api/v1/customers/{new}
{"phoneNumber": "{phone2}"}`,
	`GET /api/v1/customers/{new}`,
	`GET /api/v1/customers`,
	`GET /api/v1/customers?search={email}`,
	`GET /api/v1/customers?search={phone}`,
	`GET /api/v1/customers?search={name}`,
	`GET /api/v1/customers?search=Sola`,
	`POST /api/v1/transactions
{"customerId": "{new}", "totalAmount": 200, "externalId": "N"}`,
	`POST /api/v1/transactions
{"customerId": "{new}", "totalAmount": 10, "type": "Return", "externalId": "S-{name}"}`,
	`POST /api/v1/points/customers/{new}/add
{"amount": 5, "loyaltyProgramId": "{club}"}`,
	`POST /api/v1/rewards/redeem
{"customerId": "{new}", "productId": "{espresso}"}`,
	`GET /api/v1/points/customers/{new}/balance`,
	`GET /api/v1/points/customers/{new}/movements`,
	`GET /api/v1/transactions?customerId={new}`,
	`GET /api/v1/transactions?search={email}`,
	`GET /api/v1/transactions?search={phone}`,
	`GET /api/v1/redemptions`,
	`GET /api/v1/redemptions?customerId={new}`,
	`GET /api/v1/rewards?customerId={new}`,
	`GET /api/v1/statistics`,
}

// TestKnownElsewhere enrols somebody whom the other organization knows and
// somebody whom nobody knows. All answers from then on are the same.
func TestKnownElsewhere(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	s.knownElsewhere().report()
	s.world.verify()

	t.Run("control", func(t *testing.T) {
		for _, fault := range []struct {
			name  string
			flaws []string
			wrong func(w *httptest.ResponseRecorder)
		}{
			{"200 for a person that there is", []string{flawStatus}, func(w *httptest.ResponseRecorder) { w.Code = 200 }},
			{"a header", []string{flawHeader}, func(w *httptest.ResponseRecorder) { w.Header().Set("X-Linked", "1") }},
			{"the name that another organization was told", []string{flawBody, flawLeak}, func(w *httptest.ResponseRecorder) {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), `"lastName":null`, `"lastName":"oeste"`, 1))
			}},
			{"when another organization was told", []string{flawBody}, func(w *httptest.ResponseRecorder) {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), "T10:00:00", "T09:00:00", 1))
			}},
			{"writing to the other", []string{flawOthers}, func(*httptest.ResponseRecorder) { s.touch(2) }},
		} {
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next := http.Handler(s.world.api)
				if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/customers") {
					next = s.spoil(fault.wrong)
				}
				next.ServeHTTP(w, r)
			})
			m := s.knownElsewhere()
			if first := known[0] + "\nPOST /api/v1/customers"; !m.has(first, fault.flaws...) {
				t.Errorf("%s: nothing was found: %v", fault.name, m.flaws[first])
			}
		}

		// The server treats the other organization's customers as the caller's.
		s.handler = newAPIOf(s.leaky())
		if m := s.knownElsewhere(); !m.has(known[0]+"\nPOST /api/v1/customers", flawStatus) || !m.has(known[0]+"\nPOST /api/v1/customers", flawLeak) {
			t.Error("identities under another's keys: nothing was found")
		}
		s.handler = s.world.api
	})
}

func (s *street) knownElsewhere() *matrix {
	m := s.newMatrix()
	for _, body := range known {
		wanted := s.enrolled(body, nowhere)
		for n, got := range s.enrolled(body, there) {
			for _, kind := range []string{"email", "phone", "phone2", "name"} {
				got.result.body = strings.ReplaceAll(got.result.body, s.value(there, kind), s.value(nowhere, kind))
			}
			for _, r := range []result{wanted[n].result, got.result} {
				maskTag(r.header)
			}
			m.cells++
			name := body + "\n" + got.name
			m.note(name, wanted[n].result, got.result, answerFlaws(wanted[n].result, got.result)...)
			if m.leaks(got.step, got.result) {
				m.note(name, wanted[n].result, got.result, flawLeak)
			}
			if slices.ContainsFunc(changed(m.begin, got.state), m.isOthers) {
				m.note(name, wanted[n].result, got.result, flawOthers)
			}
		}
	}
	return m
}

// An exchanged is one request of a conversation and its result.
type exchanged struct {
	step
	result
	name string
}

// enrolled enrols a customer with an organization's contact data and then sends
// the requests of afterwards.
func (s *street) enrolled(body, org string) (list []exchanged) {
	s.past.state.Store(&s.begin)
	var created struct{ ID string }
	for n, text := range append([]string{"POST /api/v1/customers\n" + body}, afterwards...) {
		r := row{text: text}
		var values []string
		for _, p := range r.places() {
			switch p.kind {
			case "new":
				values = append(values, created.ID)
			case "club", "espresso":
				values = append(values, s.value(here, p.kind))
			default:
				values = append(values, s.value(org, p.kind))
			}
		}
		q := r.fill(values)
		s.world.seed, s.world.seeds = text, 0
		got := s.then(q)
		if n == 0 {
			s.world.must(json.Unmarshal([]byte(got.body), &created))
			text, _, _ = strings.Cut(text, "\n")
		}
		list = append(list, exchanged{q, got, text})
	}
	return list
}
