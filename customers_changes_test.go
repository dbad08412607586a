package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestPhoneTypoMakesNoSecondMember is a known failure of other systems: a mistyped phone is
// never corrected, and the next visit makes a second member.
func TestPhoneTypoMakesNoSecondMember(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	enrol := func(phone string) id {
		return must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{FirstName: "Rosa", Phone: phone})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	rosa := enrol("+525580000001")
	s.buy(rosa, "80")
	must(s, func(t *txn) (*customer, error) {
		return t.customers.patch(rosa, customerPatch{Phone: new("+525580000002")}, nil)
	})
	if again := enrol("+525580000002"); again != rosa {
		t.Error("the corrected phone makes a second member")
	}
	s.wantStanding(rosa, "80 0 80", "her points are hers")
	owner := enrol("+525580000001")
	if owner == rosa {
		t.Error("the freed phone still leads to her")
	}
	_, err := do(s, func(t *txn) (*customer, error) {
		return t.customers.patch(owner, customerPatch{Phone: new("+525580000002")}, nil)
	})
	s.want(err, "identity_conflict")
}

// A modelCustomer is a customer as a tiny model has it.
type modelCustomer struct {
	id                                    id
	email, phone, first, external, status string
	birth                                 birthDate
	attributes                            map[string]string
}

func (m *modelCustomer) found(needle string) bool {
	return strings.Contains(m.first, needle) || strings.Contains(m.email, needle) || strings.Contains(m.phone, needle)
}

// TestCustomerChanges enrols and changes customers at random. What each of them is, and
// what every list, search and look-up finds, is compared with a model that has no index.
func TestCustomerChanges(t *testing.T) {
	t.Parallel()
	histories(t, 40, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{})
		var all []*modelCustomer // the oldest first
		email := func() string { return pick(rnd, "", "ana", "eva", "ivo", "uma") }
		phone := func() string { return pick(rnd, "", "+525580000001", "+525580000002", "+525580000003") }
		name := func() string { return pick(rnd, "", "Ana", "Eva", "Leo") }
		external := func() string { return pick(rnd, "", "C-1", "C-2", strings.Repeat("ñ", maxExternalID)) }
		birth := func() birthDate { return pick(rnd, birthDate(0), 19900228, 19920229, 20000102, 228, 102) }
		attributes := func() (list []attribute) {
			for _, name := range []string{"a", "b", "c"} {
				if rnd.IntN(4) == 0 {
					list = append(list, attribute{name, pick(rnd, "", "1", "true", `"x"`)})
				}
			}
			return list
		}
		owner := func(of func(*modelCustomer) string, value string) *modelCustomer {
			i := slices.IndexFunc(all, func(m *modelCustomer) bool { return value != "" && of(m) == value })
			if i < 0 {
				return nil
			}
			return all[i]
		}
		emailOf := func(m *modelCustomer) string { return m.email }
		phoneOf := func(m *modelCustomer) string { return m.phone }
		externalOf := func(m *modelCustomer) string { return m.external }
		withDomain := func(local string) string {
			if local == "" {
				return ""
			}
			return local + "@example.com"
		}
		enrol := func() {
			e := enrolment{Email: withDomain(email()), Phone: phone(), FirstName: name(), ExternalID: external(), BirthDate: birth(), Attributes: mergeAttributes(nil, attributes())}
			if e.Email == "" && e.Phone == "" {
				return
			}
			byEmail, byPhone := owner(emailOf, e.Email), owner(phoneOf, e.Phone)
			known := cmp.Or(byEmail, byPhone)
			want := ""
			switch other := owner(externalOf, e.ExternalID); {
			case byEmail != nil && byPhone != nil && byEmail != byPhone:
				want = "identity_conflict"
			case other != nil && other != known:
				want = "external_id_taken"
			}
			c, err := do(s, func(t *txn) (*customer, error) {
				c, _, err := t.customers.enrol(e)
				return c, err
			})
			if s.want(err, want); want != "" {
				return
			}
			if known == nil {
				known = &modelCustomer{id: c.ID, status: statusActive, attributes: map[string]string{}}
				all = append(all, known)
			}
			known.email, known.phone = cmp.Or(known.email, e.Email), cmp.Or(known.phone, e.Phone)
			known.first, known.external = cmp.Or(known.first, e.FirstName), cmp.Or(known.external, e.ExternalID)
			if known.birth == 0 || known.birth < 9999 && e.BirthDate%10000 == known.birth && e.BirthDate > 0 {
				known.birth = e.BirthDate
			}
			for _, a := range e.Attributes {
				if known.attributes[a.Name] == "" {
					known.attributes[a.Name] = a.Value
				}
			}
		}
		patch := func() {
			m := pick(rnd, all...)
			after := *m
			var p customerPatch
			maybe := func(to *string, value string) *string {
				if rnd.IntN(3) > 0 {
					return nil
				}
				*to = value
				return &value
			}
			p.Email = maybe(&after.email, withDomain(email()))
			p.Phone = maybe(&after.phone, phone())
			p.FirstName = maybe(&after.first, name())
			p.Status = maybe(&after.status, pick(rnd, statusActive, statusInactive))
			p.ExternalID = maybe(&after.external, external())
			if rnd.IntN(3) == 0 {
				after.birth = birth()
				p.BirthDate = &after.birth
			}
			p.ClearAttributes, p.Attributes = rnd.IntN(8) == 0, attributes()
			after.attributes = map[string]string{}
			if !p.ClearAttributes {
				maps.Copy(after.attributes, m.attributes)
			}
			for _, a := range p.Attributes {
				if after.attributes[a.Name] = a.Value; a.Value == "" {
					delete(after.attributes, a.Name)
				}
			}
			want := ""
			switch {
			case after.email == "" && after.phone == "":
				want = "email_or_phone_required"
			case owner(emailOf, after.email) != m && owner(emailOf, after.email) != nil, owner(phoneOf, after.phone) != m && owner(phoneOf, after.phone) != nil:
				want = "identity_conflict"
			case owner(externalOf, after.external) != m && owner(externalOf, after.external) != nil:
				want = "external_id_taken"
			}
			_, err := do(s, func(t *txn) (*customer, error) { return t.customers.patch(m.id, p, nil) })
			if s.want(err, want); want == "" {
				*m = after
			}
		}
		for range 40 {
			if len(all) == 0 || rnd.IntN(4) == 0 {
				enrol()
			} else {
				patch()
			}
			if len(all) > 3 && rnd.IntN(8) == 0 {
				must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(uint64(len(all) - 2)) })
			}
		}
		for _, m := range all {
			c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(m.id) })
			got := modelCustomer{c.ID, c.Email, c.Phone, c.FirstName, c.ExternalID, c.Status, c.BirthDate, map[string]string{}}
			for _, a := range c.Attributes {
				got.attributes[a.Name] = a.Value
			}
			same(t, "customer", fmt.Sprint(got), fmt.Sprint(*m))
		}
		for _, kind := range []byte{kindEmail, kindPhone} {
			for _, value := range []string{"ana@example.com", "eva@example.com", "+525580000001", "+525580000003"} {
				c := ask(s, func(t *txn) (*customer, error) { return t.customers.identify(kind, value) })
				of := map[byte]func(*modelCustomer) string{kindEmail: emailOf, kindPhone: phoneOf}[kind]
				if m := owner(of, value); (c == nil) != (m == nil) || c != nil && c.ID != m.id {
					t.Errorf("%s leads to %v, want %v", value, c, m)
				}
			}
		}
		for _, value := range []string{"C-1", "C-2", "C-3", strings.Repeat("ñ", maxExternalID)} {
			c := ask(s, func(t *txn) (*customer, error) { return t.customers.identifyExternal(value) })
			if m := owner(externalOf, value); (c == nil) != (m == nil) || c != nil && c.ID != m.id {
				t.Errorf("%s leads to %v, want %v", value, c, m)
			}
		}
		for _, status := range []string{"", statusActive, statusInactive} {
			for _, needle := range []string{"", "a", "example", "@", "558", "zz"} {
				var want []id
				for _, m := range slices.Backward(all) {
					folded := *m
					folded.first = strings.ToLower(m.first)
					if (status == "" || status == m.status) && (needle == "" || folded.found(needle)) {
						want = append(want, m.id)
					}
				}
				p := page{1 + rnd.Uint64N(2), 1 + rnd.Uint64N(4)}
				var total uint64
				got := ask(s, func(t *txn) (list []id, err error) {
					if needle == "" {
						list, total, err = t.customers.list(statusFilterOf(status), p)
					} else {
						list, total, err = t.customers.search(needle, statusFilterOf(status), p)
					}
					return list, err
				})
				from := min(p.skip(), uint64(len(want)))
				if part := want[from:min(from+p.limit, uint64(len(want)))]; !slices.Equal(got, part) || total != uint64(len(want)) {
					t.Errorf("%q with %q, page %+v: %v of %d, want %v of %d", status, needle, p, got, total, part, len(want))
				}
			}
		}
	})
}

// TestHiddenCustomers: a customer that was erased is found by its id alone. What it was
// found by is free. TestMergeContact does the same for one that was merged.
func TestHiddenCustomers(t *testing.T) {
	t.Parallel()
	for _, status := range []string{statusErased} {
		s := newShop(t, setup{})
		first := enrolment{FirstName: "Ana", Email: "ana@example.com", Phone: "+525580000001", ExternalID: "C-1", BirthDate: 19900503}
		ana := must(s, func(t *txn) (*customer, error) {
			c, _, err := t.customers.enrol(first)
			if err == nil {
				err = t.search.indexUntil(1)
			}
			return c, err
		})
		eva := s.customer("eva")
		must(s, func(t *txn) (any, error) {
			c, err := t.customers.get(ana.ID)
			if err != nil {
				return nil, err
			}
			if status == statusErased {
				return t.merges.erase(c.ID)
			}
			hidden := *c
			hidden.Status = status
			if err := t.customers.change(c, &hidden); err != nil {
				return nil, err
			}
			a, err := t.points.account(&hidden, t.cfg.Programs[0])
			if err != nil {
				return nil, err
			}
			return nil, t.points.saveAccount(a) // which no tier counts
		})
		s.verified()
		for _, f := range []statusFilter{notHidden, onlyActive, onlyInactive} {
			var total uint64
			list := ask(s, func(t *txn) (list []id, err error) {
				list, total, err = t.customers.list(f, page{1, 10})
				return list, err
			})
			want := []id{eva}
			if f == onlyInactive {
				want = nil
			}
			if !slices.Equal(list, want) || total != uint64(len(want)) {
				t.Errorf("%s, %v: %v of %d", status, f, list, total)
			}
		}
		for _, needle := range []string{"ana@", "An", "5580000001"} {
			if found := ask(s, func(t *txn) ([]id, error) {
				list, _, err := t.customers.search(needle, notHidden, page{1, 10})
				return list, err
			}); len(found) > 0 {
				t.Errorf("%s: %s finds %v", status, needle, found)
			}
		}
		if rows := ask(s, func(t *txn) (*exportPage, error) { return exportRows(t, exportRequest{Kind: importCustomers}) }).Rows; len(rows) != 1 {
			t.Errorf("%s: the export has %v", status, rows)
		}
		if c := ask(s, func(t *txn) (*customer, error) { return t.customers.identifyExternal("C-1") }); c != nil {
			t.Errorf("%s: its externalId leads to it", status)
		}
		again := must(s, func(t *txn) (*customer, error) {
			c, created, err := t.customers.enrol(first)
			if err == nil && !created {
				err = fmt.Errorf("%s is enrolled", c.ID)
			}
			return c, err
		})
		if c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(ana.ID) }); c.Status != status || again.ID == ana.ID {
			t.Errorf("%s: %v", status, c)
		}
	}
}

// TestPatchRace: of many changes that were made of one state of a customer, one succeeds.
func TestPatchRace(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	_, key := s.newKey(keyRequest{Name: "race", RateLimit: 1000})
	handler := newAPI(s.engine, nil, slog.New(slog.DiscardHandler))
	send := func(method, tag, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/api/v1/customers/"+ana.String(), strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		if tag != "" {
			r.Header.Set("If-Match", tag)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	tag := send("GET", "", "").Result().Header.Get("ETag")
	const tills = 20
	var wait sync.WaitGroup
	statuses := make([]int, tills)
	for i := range tills {
		wait.Go(func() { statuses[i] = send("PATCH", tag, fmt.Sprintf(`{"lastName": "Till %d"}`, i)).Code })
	}
	wait.Wait()
	slices.Sort(statuses)
	if statuses[0] != http.StatusOK || statuses[1] != http.StatusPreconditionFailed || statuses[tills-1] != http.StatusPreconditionFailed {
		t.Errorf("statuses %v", statuses)
	}
}
