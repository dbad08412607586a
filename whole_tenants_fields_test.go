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
	"time"
)

// bases are requests with every field that their routes take.
var bases = []row{
	{text: `POST /api/v1/customers
{"email": "new@example.com", "phoneNumber": "+525512349999", "firstName": "Eva", "lastName": "Luz", "externalId": "E", "birthDate": "1990-03-14", "marketing": true, "attributes": {"a": 1}}`},
	{text: `POST /api/v1/customers
{"joinCode": "{join}", "card": true, "externalId": "E"}`},
	{text: `PATCH /api/v1/customers/{customer}
{"email": "new@example.com", "phoneNumber": "+525512349999", "firstName": "Eva", "lastName": "Luz", "status": "Active", "externalId": "E", "birthDate": "1990-03-14", "marketing": true, "attributes": {"a": 1}}`},
	{text: `POST /api/v1/customers/{customer}/merge
{"from": "{inactive}"}`},
	{text: `POST /api/v1/customers/{customer}/card
{"expiresInDays": 30}`},
	{text: `POST /api/v1/customers/{customer}/card/revoke
{}`},
	{text: `POST /api/v1/customers/{customer}/erase
{"confirm": "ERASE"}`},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5, "category": "Campaign", "comment": "c", "loyaltyProgramId": "{club}", "expiresAt": "2027-01-01", "reference": "R"}`},
	{text: `POST /api/v1/points/customers/{customer}/deduct
{"amount": 5, "category": "Fee", "comment": "c", "loyaltyProgramId": "{club}", "reference": "R"}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "type": "Purchase", "items": [{"sku": "A", "price": 10, "quantity": 2}], "externalId": "E", "comment": "c", "occurredAt": "2026-11-19T10:00:00Z", "again": true}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "pay": {"points": 10}, "labels": {"pago": "efectivo"}, "proof": "x"}`},
	{text: `POST /api/v1/tickets
{"externalId": "K", "totalAmount": 20, "items": [{"sku": "A", "price": 10, "quantity": 2}], "comment": "c", "occurredAt": "2026-11-19T10:00:00Z", "labels": {"pago": "efectivo"}}`},
	{text: `POST /api/v1/tickets/claim
{"ticket": "{unclaimed}", "customerId": "{customer}", "pay": null}`},
	{text: `POST /api/v1/tickets/cancel
{"externalId": "{billed}"}`},
	{text: `POST /api/v1/tickets/cancel
{"ticket": "{unclaimed}"}`},
	{text: `POST /api/v1/points/customers/{customer}/holds
{"amount": 5, "loyaltyProgramId": "{club}", "expiresInSeconds": 600, "comment": "c", "proof": "x"}`},
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
{"customerId": "{customer}", "productId": "{espresso}", "comment": "c", "expectedPoints": 1, "proof": "x"}`},
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
		"occurredAt": `"2026-11-18T10:00:00Z"`, "actor": `"h"`, "again": `"h"`, "restoreRedemptions": `"h"`, "expectedPoints": `7`, "expiresInSeconds": `700`, "expiresInDays": `7`, "joinCode": `"J000000"`, "proof": `"` + strings.Repeat("x", 41) + `"`, "card": `"si"`, "ticket": id("signed"), "reference": `"H"`, "pay": `{"points": 20}`, "labels": `{"h": "h"}`, "transactions": `[{"customerId": ` + id("solo") + `, "totalAmount": 7}]`,
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

// keyChecks are the errors that refuse a key, in the order of contract §3.
var keyChecks = []string{
	"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_minute", "scope_required",
}

// A testKey is a key, the headers that send it and its faults. The first fault
// refuses it. Without faults, it is refused only where it lacks the route's scope.
type testKey struct {
	name    string
	headers []string
	faults  []string // of keyChecks, without the last
	scopes  []string // empty means all
	id      id       // zero if there is no such key
}

// refused returns the error that refuses the key on a route with this scope, or "".
func (k *testKey) refused(scope string) string {
	if scope == "" {
		return "" // the route needs no key
	}
	lacks := func(one string) bool { return !slices.Contains(k.scopes, one) }
	for _, code := range keyChecks {
		if slices.Contains(k.faults, code) || code == "scope_required" && len(k.scopes) > 0 && slices.ContainsFunc(strings.Fields(scope), lacks) {
			return code
		}
	}
	return ""
}

// testKeys makes keys with each set of faults, with each scope alone and with all
// scopes but one. It adds texts that are no key.
func (s *street) testKeys() (list []*testKey) {
	s.past.state.Store(&s.begin)
	s.world.seed, s.world.seeds = "keys", 0
	for set := range 1 << 5 {
		var faults []string
		for i, code := range keyChecks[1:6] {
			if set>>i&1 == 1 {
				faults = append(faults, code)
			}
		}
		list = append(list,
			s.testKey(fmt.Sprint(faults), faults, nil),
			s.testKey(fmt.Sprint(faults, " and scope"), faults, []string{"organization:read"}),
			s.testKey(fmt.Sprint(faults, " and another scope"), faults, []string{"segments:read"}))
	}
	for _, scope := range scopes {
		others := slices.DeleteFunc(slices.Clone(scopes), func(other string) bool { return other == scope })
		list = append(list, s.testKey(scope, nil, []string{scope}), s.testKey("all but "+scope, nil, others))
	}
	s.world.direct("change " + planOff + " organization.plan.apiAccess = false")
	s.world.clock = s.world.clock.Add(2 * time.Second)
	s.begin = *s.past.state.Load()
	return append(list, s.otherTexts(list[0].id.String())...)
}

// testKey makes a key with these faults and scopes. It sends X-Forwarded-For, which
// the server must not trust.
func (s *street) testKey(name string, faults, scopes []string) *testKey {
	in := keyRequest{Org: here, Name: "test", Scopes: scopes}
	if slices.Contains(faults, "plan_without_api") {
		in.Org = planOff
	}
	if slices.Contains(faults, "api_key_expired") {
		in.Expires = instantOf(s.world.clock.Add(time.Second)).String()
	}
	if slices.Contains(faults, "ip_not_allowed") {
		in.IPWhitelist = []string{"192.0.2.1", "2001:db8::/32"}
	}
	if slices.Contains(faults, "rate_limit_minute") {
		in.RateLimit = 1
	}
	k, err := s.world.admin.createKey(s.world.Context(), in)
	s.world.must(err)
	if slices.Contains(faults, "api_key_invalid") {
		_, err := s.world.admin.revokeKey(s.world.Context(), revokeRequest{in.Org, k.ID.String()})
		s.world.must(err)
	}
	return &testKey{name, []string{"Authorization: Bearer " + k.Key, "X-Forwarded-For: 192.0.2.1"}, faults, scopes, k.ID}
}

// otherTexts returns headers without a key, headers with an invalid key, and
// headers that send a good key in other ways.
func (s *street) otherTexts(keyID string) (list []*testKey) {
	text := s.world.names["key."+here]
	digits := text[len(keyPrefix):]
	sum := digits[keyRandom:]
	other := byte('0')
	if sum[0] == other {
		other++
	}
	for name, headers := range map[string][]string{
		"no key":            nil,
		"an empty key":      {"X-API-Key: "},
		"another scheme":    {"Authorization: Basic " + text},
		"a scheme alone":    {"Authorization: Bearer"},
		"no scheme":         {"Authorization: " + text},
		"a cookie":          {"Cookie: api_key=" + text},
		"a header of a kin": {"X-Auth-Token: " + text, "Api-Key: " + text, "Proxy-Authorization: Bearer " + text},
	} {
		list = append(list, &testKey{name: name, headers: headers, faults: keyChecks[:1]})
	}
	for name, sent := range map[string]string{
		"unknown":          newAPIKey([32]byte{1}),
		"a wrong sum":      keyPrefix + digits[:keyRandom] + string(other) + sum[1:],
		"a wrong digit":    keyPrefix + "!" + digits[1:],
		"too short":        text[:len(text)-1],
		"too long":         text + "0",
		"without a sum":    text[:len(text)-keyChecksum],
		"without a prefix": digits,
		"another prefix":   "luna_" + digits,
		"upper case":       strings.ToUpper(text),
		"twice":            text + "," + text,
		"two":              text + " " + text,
		"the key's id":     keyID,
		"an organization":  s.world.names[here],
		"a slug":           here,
		"a hash":           fmt.Sprintf("%x", keyHash(text)),
		"long":             strings.Repeat(text, 100),
		"not ASCII":        strings.Replace(text, "_", "＿", 1),
	} {
		list = append(list,
			&testKey{name: name, headers: []string{"Authorization: Bearer " + sent}, faults: keyChecks[1:2]},
			&testKey{name: name + ", X-API-Key", headers: []string{"X-API-Key: " + sent}, faults: keyChecks[1:2]})
	}
	theirs := s.world.names["key."+there]
	return append(list,
		&testKey{name: "two organizations' keys", headers: []string{"Authorization: Bearer " + text, "X-API-Key: " + theirs}, faults: keyChecks[1:2]},
		&testKey{name: "X-API-Key", headers: []string{"X-API-Key: " + text}},
		&testKey{name: "in both headers", headers: []string{"Authorization: bearer " + text, "X-API-Key: " + text}})
}

// TestTenantKeys sends a row of each route under every key: with the caller's own,
// the other organization's, unknown and malformed ids, and with headers and a body
// that are wrong. A refused key gets the same refusal for every request, for the
// reason that comes first in contract §3.
func TestTenantKeys(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	keys := s.testKeys()
	list := map[string]int{} // the row of each route that has the most places
	for i := range rows {
		pattern := s.routeOf(i).pattern
		if other, ok := list[pattern]; !ok || len(rows[i].places()) > len(rows[other].places()) {
			list[pattern] = i
		}
	}
	few := slices.Sorted(maps.Values(list))
	m := s.newMatrix()
	for _, i := range few {
		m.keyRow(i, keys, "")
	}
	m.report()
	t.Logf("%d routes, %d keys", len(few), len(keys))
	t.Run("control", func(t *testing.T) { s.keyControls(t, keys, few) })
}

// keyControls puts faults into the server and expects flaws in each key's cells.
func (s *street) keyControls(t *testing.T, keys []*testKey, few []int) {
	skipUsual(t)
	for _, code := range keyChecks {
		// The server overlooks this fault of the key.
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, pattern := s.world.api.mux.Handler(r)
			if s.sending.refused(s.scopeOf(pattern)) == code {
				r.Header.Del("X-Api-Key")
				r.Header.Set("Authorization", "Bearer "+s.world.names["key."+here])
			}
			s.world.api.ServeHTTP(w, r)
		})
		s.wantKeyFlaws("overlooking "+code, keys, few, "own", func(refused string) bool { return refused == code })
	}

	// The server looks for the named data before it checks the key.
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.world.api.ServeHTTP(w, r)
	})
	var named []int
	for _, i := range few {
		if len(rows[i].places()) > 0 {
			named = append(named, i)
		}
	}
	s.wantKeyFlaws("existence first", keys, named, there, func(refused string) bool { return refused != "" })

	// Another organization's key reaches that organization's data.
	s.handler = s.world.api
	stranger := &testKey{name: "stranger", headers: []string{"Authorization: Bearer " + s.world.names["key."+there]}}
	m := s.newMatrix()
	for _, i := range named {
		m.keyRow(i, []*testKey{stranger}, there)
		if cell := keyCell(i, stranger, there); notFound[rows[i].places()[0].kind] != "" && !m.has(cell) {
			t.Error("a stranger's key: nothing was found in ", cell)
		}
	}
}

// wantKeyFlaws sends the keys whose refusal counts. It fails the test for each of
// their cells without a flaw.
func (s *street) wantKeyFlaws(fault string, keys []*testKey, rows []int, variant string, counts func(refused string) bool) {
	s.world.Helper()
	m, n := s.newMatrix(), 0
	for _, i := range rows {
		scope := s.routeOf(i).scope
		refused := slices.DeleteFunc(slices.Clone(keys), func(k *testKey) bool { return !counts(k.refused(scope)) })
		m.keyRow(i, refused, variant)
		for _, k := range refused {
			n++
			if cell := keyCell(i, k, variant); !m.has(cell) {
				s.world.Errorf("%s: nothing was found in %s", fault, cell)
			}
		}
	}
	if n == 0 {
		s.world.Errorf("%s: nothing was looked at", fault)
	}
}

func keyCell(row int, k *testKey, variant string) string {
	return fmt.Sprintf("%s\n%s, key: %s", rows[row].text, variant, k.name)
}

// keyRow sends a row under each of the keys, in all variants or in only one.
func (m *matrix) keyRow(i int, keys []*testKey, only string) {
	scope := m.routeOf(i).scope
	variants := map[string]step{"own": rows[i].fill(m.values(i, all(here)))}
	if len(rows[i].places()) > 0 {
		for _, org := range []string{there, nowhere} {
			variants[org] = rows[i].fill(m.values(i, all(org)))
		}
		malformed := m.values(i, all(here))
		for n, p := range rows[i].places() {
			if notFound[p.kind] != "" {
				malformed[n] = "x"
			}
		}
		variants["malformed"] = rows[i].fill(malformed)
	}
	if strings.HasPrefix(rows[i].text, "POST") || strings.HasPrefix(rows[i].text, "PATCH") {
		wrong := variants[there]
		wrong.headers, wrong.body = []string{"Content-Type: text/plain", "Idempotency-Key: "}, "{"
		variants["wrong"] = wrong
	}
	for variant, q := range variants {
		if only != "" && variant != only {
			continue
		}
		m.sending = new(testKey)
		base := m.ask(q)
		for _, k := range keys {
			want := base
			switch code := k.refused(scope); code {
			case "":
			case "scope_required":
				fields := strings.Fields(scope)
				want = m.refusal(code, fields[slices.IndexFunc(fields, func(one string) bool { return !slices.Contains(k.scopes, one) })])
			case "rate_limit_minute":
				want = m.limited()
			default:
				want = m.refusal(code, "")
			}
			q := q
			q.key, q.headers = "nobody", slices.Concat(q.headers, k.headers)
			m.sending = k
			if slices.Contains(k.faults, "rate_limit_minute") {
				m.spent = k.id
			}
			got := m.ask(q)
			got.body = strings.ReplaceAll(got.body, asMaker(k.id, "test"), asMaker(m.world.keys[here], here))
			m.cell(keyCell(i, k, variant), q, want, got)
			m.spent = id{}
		}
	}
}

// asMaker returns the JSON by which a record names the key that made it.
func asMaker(key id, name string) string {
	return fmt.Sprintf(`"type":"Key","id":%q,"name":%q`, key, name)
}

// limited returns the refusal of a key that has just used its one request a minute.
func (s *street) limited() result {
	want := s.refusal("rate_limit_minute", "")
	want.body = strings.Replace(want.body, "}", fmt.Sprintf(`,"context":{"limit":1,"resetAt":%q,"window":"minute"}}`, instantOf(s.world.clock.Add(time.Minute))), 1)
	maps.Copy(want.header, http.Header{
		"Ratelimit-Policy": {`"minute";q=1;w=60`}, "Ratelimit": {`"minute";r=0;t=60`}, "X-Ratelimit-Limit": {"1"},
		"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"60"}, "Retry-After": {"60"},
	})
	return want
}
