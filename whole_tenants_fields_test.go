package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bases are requests with every field that their routes take.
var bases = []row{
	{text: `POST /api/v1/customers
{"email": "new@example.com", "phoneNumber": "+525512349999", "firstName": "Eva", "lastName": "Luz", "externalId": "E", "birthDate": "1990-03-14", "marketing": true, "attributes": {"a": 1}}`},
	{text: `PATCH /api/v1/customers/{customer}
{"email": "new@example.com", "phoneNumber": "+525512349999", "firstName": "Eva", "lastName": "Luz", "status": "Active", "externalId": "E", "birthDate": "1990-03-14", "marketing": true, "attributes": {"a": 1}}`},
	{text: `POST /api/v1/customers/{customer}/merge
{"from": "{inactive}"}`},
	{text: `POST /api/v1/customers/{customer}/erase
{"confirm": "ERASE"}`},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5, "category": "Campaign", "comment": "c", "loyaltyProgramId": "{club}", "expiresAt": "2027-01-01", "reference": "R"}`},
	{text: `POST /api/v1/points/customers/{customer}/deduct
{"amount": 5, "category": "Fee", "comment": "c", "loyaltyProgramId": "{club}", "reference": "R"}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "type": "Purchase", "items": [{"sku": "A", "price": 10, "quantity": 2}], "externalId": "E", "comment": "c", "occurredAt": "2026-11-19T10:00:00Z", "again": true}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "pay": {"points": 10}, "labels": {"pago": "efectivo"}}`},
	{text: `POST /api/v1/points/customers/{customer}/holds
{"amount": 5, "loyaltyProgramId": "{club}", "expiresInSeconds": 600, "comment": "c"}`},
	{text: `POST /api/v1/points/holds/{hold}/capture
{"amount": 1}`},
	{text: `POST /api/v1/points/holds/{hold}/release
{}`},
	{text: `POST /api/v1/points/batch
{"movements": [{"customerId": "{customer}", "type": "Credit", "amount": 5, "category": "Bonus", "comment": "c", "loyaltyProgramId": "{club}", "expiresAt": "2027-01-31", "reference": "R", "actor": "a"}]}`},
	{text: `POST /api/v1/transactions/batch
{"transactions": [{"customerId": "{customer}", "totalAmount": 20, "type": "Purchase", "externalId": "E", "comment": "c", "occurredAt": "2026-11-19T10:00:00Z", "actor": "a"}]}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 100, "type": "Return", "items": [{"sku": "A", "price": 100, "quantity": 1}], "comment": "c", "originalTransactionId": "{sale}", "restoreRedemptions": true}`},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{espresso}", "comment": "c", "expectedPoints": 1}`},
	{text: `POST /api/v1/redemptions/use
{"code": "{code}", "transactionId": "{sale}"}`},
	{text: `POST /api/v1/redemptions/{redemption}/cancel
{}`},
}

// hostile holds for each field a JSON value that changes the request's effects.
func (s *street) hostile(field string) string {
	id := func(kind string) string { return strconv.Quote(s.value(here, kind)) }
	values := map[string]string{
		"email": `"h@example.com"`, "phoneNumber": `"+525512348888"`, "firstName": `"H"`, "lastName": `"H"`,
		"amount": `7`, "category": `"Adjustment"`, "comment": `"h"`, "loyaltyProgramId": id("sellos"), "expiresAt": `"2028-01-01"`,
		"customerId": id("solo"), "totalAmount": `7`, "type": `"Return"`, "items": `[{"sku": "H", "price": 1, "quantity": 1}]`,
		"externalId": `"H"`, "originalTransactionId": id("return"), "productId": id("gorra"),
		"sku": `"H"`, "price": `7`, "quantity": `1.5`, "status": `"Inactive"`, "birthDate": `"1991-12-31"`, "attributes": `{"h": true}`, "marketing": `false`,
		"code": id("spare"), "transactionId": id("return"), "from": id("solo"), "confirm": `"no"`,
		"occurredAt": `"2026-11-18T10:00:00Z"`, "actor": `"h"`, "again": `"h"`, "restoreRedemptions": `"h"`, "expectedPoints": `7`, "expiresInSeconds": `700`, "reference": `"H"`, "pay": `{"points": 20}`, "labels": `{"h": "h"}`, "transactions": `[{"customerId": ` + id("solo") + `, "totalAmount": 7}]`,
		"movements": `[{"customerId": ` + id("solo") + `, "type": "Credit", "amount": 7, "loyaltyProgramId": ` + id("club") + `}]`,
	}
	if values[field] == "" {
		s.world.Fatalf("no hostile value of %s", field)
	}
	return values[field]
}

// spellings are wrong names that a loose reader may take for the field's name.
func spellings(field string) []string {
	snake := regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(field, func(c string) string { return "_" + strings.ToLower(c) })
	list := []string{
		strings.ToUpper(field), strings.ToLower(field), strings.ToUpper(field[:1]) + field[1:], snake, strings.ReplaceAll(snake, "_", "-"),
		field[:len(field)-1] + strings.ToUpper(field[len(field)-1:]),
		strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(field), // encoding/json takes these for s and k
		" " + field, field + " ", field + "\x00", field + "[]", field + "[0]", "_" + field, "$" + field, "data." + field, "customer[" + field + "]",
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(v string) bool { return v == field })
}

// unasked are names that clients may try: all names in the API's answers, and names
// from other systems.
func unasked() []string {
	list := []string{
		"organizationId", "organization_id", "organization", "orgId", "org", "tenantId", "tenant", "slug", "plan", "scopes", "scope", "role", "isAdmin",
		"person", "personId", "userId", "number", "program", "seq", "now", "date", "timestamp", "deletedAt", "expired", "points", "multiplier",
		"earned", "reversed", "cost", "price", "discount", "shortfall", "dry_run", "dryRun", "_id", "_method", "__proto__", "constructor", "prototype",
		"Balance", "BALANCE", "Status", "STATUS", "ID", "Id", "Source", "CreatedAt", "created_at", "OrganizationID",
	}
	var doc apiDoc
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		panic(err)
	}
	for _, schema := range doc.Components.Schemas {
		for _, part := range append(schema.AllOf, schema) {
			list = append(list, slices.Collect(maps.Keys(part.Properties))...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// write spells an object as JSON.
func (o object) write() string {
	var parts []string
	for _, p := range o {
		name, _ := json.Marshal(p.name)
		parts = append(parts, string(name)+":"+p.value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(p pair) bool { return p.name == name })
}

// TestMassAssignment sends fields that no route takes, and fields that it takes under
// names that are not theirs. Answers and all that is stored stay the same.
func TestMassAssignment(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	s.wantAllFields()
	s.massAssignment(true, true).report()
	s.otherWays(append(spellings("loyaltyProgramId"), unasked()...)).report()
	s.otherWays(slices.Concat(spellings("customerId"), spellings("search"), spellings("dryRun"), spellings("explain"))).report()

	t.Run("control", func(t *testing.T) {
		skipUsual(t)
		defer func() { s.handler = s.world.api }()
		s.ownNames(t)
		s.looseReader(t)
		s.generousServer(t)
		s.looseParameters(t)
	})
}

// wantAllFields finds every field of every POST in the bases.
func (s *street) wantAllFields() {
	covered := map[string]object{}
	for i := range bases {
		q, members := s.base(i)
		pattern := s.patternOf(q)
		if got := s.ask(q); got.status >= 300 {
			s.world.Errorf("%s\n%s", bases[i].text, got.body)
		}
		covered[pattern] = append(covered[pattern], members...)
	}
	for _, r := range s.routes {
		if !strings.HasPrefix(r.pattern, "POST") && !strings.HasPrefix(r.pattern, "PATCH") {
			continue
		}
		members, ok := covered[r.pattern]
		if !ok {
			s.world.Error("no request for ", r.pattern)
		}
		for _, name := range documentedInputs()[r.pattern] {
			if _, ok := members.get(name); !ok && !slices.Contains([]string{"Idempotency-Key", "If-Match", "X-Actor", "Prefer", "dryRun", "explain"}, name) {
				s.world.Errorf("no request for %s has %s", r.pattern, name)
			}
		}
	}
}

// ownNames sends each hostile value by the field's own name, which the route takes.
func (s *street) ownNames(t *testing.T) {
	for i := range bases {
		q, members := s.base(i)
		base := s.ask(q)
		for n, p := range members {
			with := slices.Clone(members)
			with[n].value = s.hostile(p.name)
			if strings.Contains(q.body, `"Return"`) && p.name == "type" {
				with[n].value = `"Purchase"`
			}
			q.body = with.write()
			if got := s.ask(q); len(answerFlaws(base, got)) == 0 && len(s.effects(base, got)) == 0 {
				t.Errorf("%s\n%s: its hostile value changes nothing", bases[i].text, p.name)
			}
		}
	}
}

// looseReader is a server that takes names in any letter case.
func (s *street) looseReader(t *testing.T) {
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, pattern := s.world.api.mux.Handler(r)
		if members, fault := parseObject(body); fault == nil {
			body = []byte(loose(members, documentedInputs()[pattern]).write())
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		s.world.api.ServeHTTP(w, r)
	})
	m := s.massAssignment(true, false)
	for i := range bases {
		_, members := s.base(i)
		for _, p := range members {
			for _, name := range spellings(p.name) {
				loosely := strings.EqualFold(name, p.name) && !(p.name == "type" && strings.Contains(bases[i].text, `"Return"`))
				if cell := massCell(i, "also", name); loosely && !m.has(cell, flawStatus, flawBody, flawStored) {
					t.Errorf("a loose reader: nothing was found in %s", cell)
				}
			}
		}
	}
}

// generousServer is a server that takes fields it should not: it shows them,
// and writes to the other organization if the body has an organizationId.
func (s *street) generousServer(t *testing.T) {
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		given, _ := parseObject(body)
		_, pattern := s.world.api.mux.Handler(r)
		spoilt := answerTo(s.world.api, r)
		maps.Copy(w.Header(), spoilt.Header())
		w.WriteHeader(spoilt.Code)
		shown, _ := parseObject(spoilt.Body.Bytes())
		for i, p := range shown {
			if value, ok := given.get(p.name); ok && !slices.Contains(documentedInputs()[pattern], p.name) {
				shown[i].value = value
			}
		}
		if _, ok := given.get("organizationId"); ok {
			s.touch(2)
		}
		if _, ok := given.get("points"); ok {
			s.touch(1)
		}
		io.WriteString(w, shown.write()+"\n")
	})
	m := s.massAssignment(false, true)
	for i := range bases {
		q, _ := s.base(i)
		shown, _ := parseObject([]byte(s.ask(q).body))
		for _, p := range shown {
			if cell := massCell(i, "unasked", p.name); !slices.Contains(documentedInputs()[s.patternOf(q)], p.name) && !m.has(cell, flawBody) {
				t.Errorf("a generous server: nothing was found in %s", cell)
			}
		}
		if cell := massCell(i, "unasked", "organizationId"); !m.has(cell, flawOthers) {
			t.Errorf("writing to the other: nothing was found in %s", cell)
		}
		if cell := massCell(i, "unasked", "points"); !m.has(cell, flawStored) {
			t.Errorf("writing to the caller's: nothing was found in %s", cell)
		}
	}
}

// looseParameters is a server that takes the organization from a header, and a
// parameter in any letter case.
func (s *street) looseParameters(t *testing.T) {
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Organization-Id") != "" {
			r.Header.Set("Authorization", "Bearer "+s.world.names["key."+there])
		}
		r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "CUSTOMERID=", "customerId=", 1)
		s.world.api.ServeHTTP(w, r)
	})
	m := s.otherWays(spellings("customerId"))
	for _, r := range s.routes {
		if r.scope != "" && !m.has(r.pattern+", X-Organization-Id") {
			t.Errorf("another's number: nothing was found in %s", r.pattern)
		}
	}
	if !m.has("GET /api/v1/transactions, CUSTOMERID") || !m.has("GET /api/v1/rewards, CUSTOMERID") {
		t.Error("a loose reader of parameters: nothing was found")
	}
}

// base is a request of bases and the members of its body.
func (s *street) base(i int) (step, object) {
	var values []string
	for _, p := range bases[i].places() {
		values = append(values, s.value(here, p.kind))
	}
	q := bases[i].fill(values)
	members, fault := parseObject([]byte(q.body))
	if fault != nil {
		s.world.Fatalf("%s is no object", q.body)
	}
	return q, members
}

func massCell(base int, how, name string) string {
	return fmt.Sprintf("%s\n%s %q", bases[base].text, how, name)
}

// effects returns the entries that differ between the stores after two requests,
// without those of idempotency keys.
func (s *street) effects(a, b result) []Entry {
	return slices.DeleteFunc(changed(a.state, b.state), func(e Entry) bool { return e.Key[0] == 'i' || e.Key[0] == 'I' })
}

// massAssignment sends each base with names that it does not take: with alike,
// spellings of its own names; with others, the unasked names.
func (s *street) massAssignment(alike, others bool) *matrix {
	m := s.newMatrix()
	for i := range bases {
		q, members := m.base(i)
		send := func(o object) result {
			q.body = o.write()
			return m.ask(q)
		}
		check := func(name string, want, got result) {
			m.cells++
			m.note(name, want, got, answerFlaws(want, got)...)
			if effects := m.effects(want, got); slices.ContainsFunc(effects, m.isOthers) {
				m.note(name, want, got, flawOthers)
			} else if len(effects) > 0 {
				m.note(name, want, got, flawStored)
			}
		}
		base := send(members)
		for n, p := range members {
			if !alike {
				break
			}
			without := send(members.without(p.name))
			for _, name := range spellings(p.name) {
				other := pair{name, m.hostile(p.name)}
				check(massCell(i, "also", name), base, send(append(slices.Clone(members), other)))
				check(massCell(i, "before", name), base, send(append(object{other}, members...)))
				check(massCell(i, "instead", name), without, send(slices.Insert(members.without(p.name), n, other)))
			}
			if p.name == "items" || p.name == "transactions" || p.name == "movements" {
				m.massItems(i, p.name, members, base, check, send)
			}
		}
		if !others {
			continue
		}
		inputs := documentedInputs()[m.patternOf(q)]
		everything := slices.Clone(members)
		for _, name := range unasked() {
			if _, ok := members.get(name); ok || slices.Contains(inputs, name) && name != "dryRun" {
				continue
			}
			for _, value := range []string{"999999", strconv.Quote(m.value(there, "customer")), `{"id": [true]}`} {
				check(massCell(i, "unasked", name), base, send(append(slices.Clone(members), pair{name, value})))
			}
			everything = append(everything, pair{name, "999999"})
		}
		check(massCell(i, "all that is", "unasked"), base, send(everything))
	}
	return m
}

// massItems does the same inside the items of a sale, or the sales of a batch.
func (m *matrix) massItems(i int, list string, members object, base result, check func(string, result, result), send func(object) result) {
	items, _ := members.get(list)
	inner, _ := parseObject([]byte(items[1 : len(items)-1]))
	with := func(o object) object {
		other := slices.Clone(members)
		at := slices.IndexFunc(other, func(p pair) bool { return p.name == list })
		other[at].value = "[" + o.write() + "]"
		return other
	}
	for _, p := range inner {
		without := send(with(inner.without(p.name)))
		for _, name := range spellings(p.name) {
			other := pair{name, m.hostile(p.name)}
			check(massCell(i, "in items also", name), base, send(with(append(slices.Clone(inner), other))))
			check(massCell(i, "in items instead", name), without, send(with(append(inner.without(p.name), other))))
		}
	}
	for _, name := range []string{"id", "points", "returned", "discount", "total", "amount", "customerId", "createdAt", "registeredAt", "createdBy"} {
		if _, ok := inner.get(name); ok {
			continue
		}
		check(massCell(i, "in items", name), base, send(with(append(slices.Clone(inner), pair{name, "999"}))))
	}
}

// loose renames members to the fields they match in any letter case, as
// encoding/json does. Of several members for a field, the last one wins.
func loose(members object, fields []string) (read object) {
	for _, p := range members {
		for _, field := range fields {
			if strings.EqualFold(p.name, field) {
				p.name = field
			}
		}
		read = append(read.without(p.name), p)
	}
	return read
}

// otherWays sends parameters and headers that no route takes.
func (s *street) otherWays(parameters []string) *matrix {
	m := s.newMatrix()
	seen := map[string]bool{}
	for i := range rows {
		r := s.routeOf(i)
		if seen[r.pattern] || rows[i].want >= 300 {
			continue
		}
		seen[r.pattern] = true
		q := rows[i].fill(s.values(i, all(here)))
		q.headers = nil // no Idempotency-Key: it would make the target part of what is stored
		base := s.ask(q)
		check := func(name string, q step) {
			m.cells++
			got := m.ask(q)
			name = r.pattern + ", " + name
			m.note(name, base, got, answerFlaws(base, got)...)
			if len(changed(base.state, got.state)) > 0 {
				m.note(name, base, got, flawStored)
			}
		}
		for _, name := range parameters {
			if slices.Contains(documentedInputs()[r.pattern], name) && (q.method == "GET" || name == "explain") || r.scope == "" ||
				name == "dryRun" && writes(q.method) { // refused where there is none (TestDryRuns)
				continue
			}
			other := q
			separator := "?"
			if strings.Contains(q.target, "?") {
				separator = "&"
			}
			other.target += separator + url.QueryEscape(name) + "=" + m.value(there, "customer")
			check(name, other)
		}
		for name, value := range map[string]string{
			"X-Organization-Id": m.world.names[there], "X-Organization": there, "X-Org-Id": "2", "X-Tenant-Id": m.world.names[there], "Organization": there,
			"X-Forwarded-Host": there + ".example.com", "X-Forwarded-User": there, "X-Original-Url": "/api/v1/customers/" + m.value(there, "customer"),
			"X-Rewrite-Url": "/api/v1/customers/" + m.value(there, "customer"), "X-Http-Method-Override": "GET", "X-Method-Override": "DELETE",
			"X-Customer-Id": m.value(there, "customer"), "Cookie": "org=" + there + "; key=" + m.world.names["key."+there], "Forwarded": "host=" + there,
			"X-User-Id": m.value(there, "customer"), "X-Scopes": "admin", "Origin": "https://" + there + ".example.com",
		} {
			other := q
			other.headers = []string{name + ": " + value}
			check(name, other)
		}
	}
	return m
}
