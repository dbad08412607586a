package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

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
