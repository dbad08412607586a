package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKeyForm shows how keys are spelled, and that a typo is found without a
// look-up.
func TestKeyForm(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^sello_[0-9A-Za-z]{49}$`)
	ones, some := [32]byte{}, [32]byte{}
	for i := range ones {
		ones[i], some[i] = 0xff, byte(37*i+11)
	}
	for _, random := range [][32]byte{{}, {31: 1}, ones, some} {
		text := newAPIKey(random)
		if !form.MatchString(text) || !wellFormedKey(text) {
			t.Errorf("%x is spelled %q, which is not well formed", random, text)
		}
	}

	text := newAPIKey(some)
	refused := func(typo, reason string) {
		t.Helper()
		if typo != text && wellFormedKey(typo) {
			t.Errorf("%q is taken for a key: %s", typo, reason)
		}
	}
	for i := range text {
		for _, c := range []byte("0aZ") {
			typo := []byte(text)
			typo[i] = c
			refused(string(typo), "another character")
		}
		if i > 0 {
			typo := []byte(text)
			typo[i-1], typo[i] = typo[i], typo[i-1]
			refused(string(typo), "two characters swapped")
		}
		refused(text[:i]+text[i+1:], "a character left out")
		refused(text[:i]+"0"+text[i:], "a character too many")
	}
	refused(strings.ToUpper(text), "upper case")
	refused("", "nothing")
	refused("sello_", "the prefix alone")
	refused("sellö_"+text[6:], "not ASCII")
	refused(" "+text, "a space")
}

// TestSentKey shows where a request may carry its key.
func TestSentKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		headers string // name: value, one a line
		want    string // the key, or the code of an error
	}{
		{"nothing", "", "api_key_required"},
		{"Bearer", "Authorization: Bearer K", "K"},
		{"in any letter case", "Authorization: bEARER K", "K"},
		{"with spaces around", "Authorization:   Bearer   K  ", "K"},
		{"in its own header", "X-Api-Key: K", "K"},
		{"in its own header, with spaces around", "X-Api-Key:  K ", "K"},
		{"in both, alike", "Authorization: Bearer K\nX-Api-Key: K", "K"},
		{"in both, different", "Authorization: Bearer K\nX-Api-Key: L", "api_key_invalid"},
		{"Bearer twice", "Authorization: Bearer K\nAuthorization: Bearer K", "api_key_invalid"},
		{"its own header twice", "X-Api-Key: K\nX-Api-Key: K", "api_key_invalid"},
		{"another scheme", "Authorization: Basic SzpL", "api_key_required"},
		{"another scheme beside its own header", "Authorization: Basic SzpL\nX-Api-Key: K", "K"},
		{"a scheme that begins alike", "Authorization: BearerK", "api_key_required"},
		{"no scheme", "Authorization: K", "api_key_required"},
		{"Bearer of nothing", "Authorization: Bearer", "api_key_required"},
		{"Bearer of nothing beside its own header", "Authorization: Bearer \nX-Api-Key: K", "K"},
		{"an empty header", "X-Api-Key:", "api_key_required"},
	} {
		h := http.Header{}
		for line := range strings.Lines(test.headers) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			h.Add(name, value)
		}
		got, err := sentKey(h)
		if err != nil {
			got = err.code.name
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestSourceAddress shows which address counts as the source of a request.
func TestSourceAddress(t *testing.T) {
	t.Parallel()
	const proxies = "10.0.0.0/8, 192.0.2.1, fd00::/8"
	for _, test := range []struct {
		reason    string
		trusted   string
		peer      string
		forwarded []string // X-Forwarded-For, header by header
		want      string   // "" if it cannot be read
	}{
		{"the peer", "", "203.0.113.5:4711", nil, "203.0.113.5"},
		{"the peer, IPv6", "", "[2001:db8::1]:4711", nil, "2001:db8::1"},
		{"an IPv4-mapped peer is the IPv4 one", "", "[::ffff:203.0.113.5]:4711", nil, "203.0.113.5"},
		{"a zone does not count", "", "[fe80::1%eth0]:4711", nil, "fe80::1"},
		{"no proxy is trusted: what it forwards is not believed", "", "203.0.113.5:4711", []string{"198.51.100.7"}, "203.0.113.5"},
		{"the peer is not trusted", proxies, "203.0.113.5:4711", []string{"198.51.100.7"}, "203.0.113.5"},
		{"a trusted proxy forwards", proxies, "10.1.2.3:4711", []string{"198.51.100.7"}, "198.51.100.7"},
		{"an IPv4-mapped proxy is trusted", proxies, "[::ffff:10.1.2.3]:4711", []string{"198.51.100.7"}, "198.51.100.7"},
		{"an IPv6 proxy", proxies, "[fd00::3]:4711", []string{"2001:db8::7"}, "2001:db8::7"},
		{"a trusted proxy forwards nothing", proxies, "10.1.2.3:4711", nil, "10.1.2.3"},
		{"what the client wrote itself stands further left", proxies, "10.1.2.3:4711", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		{"several proxies", proxies, "10.1.2.3:4711", []string{"1.1.1.1, 198.51.100.7, 192.0.2.1, 10.9.9.9"}, "198.51.100.7"},
		{"several headers are one list", proxies, "10.1.2.3:4711", []string{"1.1.1.1", "198.51.100.7,192.0.2.1", "10.9.9.9"}, "198.51.100.7"},
		{"all are proxies: the first", proxies, "10.1.2.3:4711", []string{"10.7.7.7, 10.9.9.9"}, "10.7.7.7"},
		{"an IPv4-mapped hop", proxies, "10.1.2.3:4711", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"an IPv4-mapped proxy as a hop", proxies, "10.1.2.3:4711", []string{"198.51.100.7, ::ffff:10.9.9.9"}, "198.51.100.7"},
		{"a hop with a port", proxies, "10.1.2.3:4711", []string{"198.51.100.7:1234"}, "198.51.100.7"},
		{"an IPv6 hop with a port", proxies, "10.1.2.3:4711", []string{"[2001:db8::7]:1234"}, "2001:db8::7"},
		{"empty hops are passed over", proxies, "10.1.2.3:4711", []string{"198.51.100.7, , ,"}, "198.51.100.7"},
		{"spaces and tabs", proxies, "10.1.2.3:4711", []string{"\t198.51.100.7 \t"}, "198.51.100.7"},
		{"a hop that is no address", proxies, "10.1.2.3:4711", []string{"198.51.100.7, unknown"}, ""},
		{"left of an untrusted one it does not matter", proxies, "10.1.2.3:4711", []string{"unknown, 198.51.100.7"}, "198.51.100.7"},
		{"an obfuscated one", proxies, "10.1.2.3:4711", []string{"_hidden"}, ""},
		{"a name", proxies, "10.1.2.3:4711", []string{"localhost"}, ""},
		{"a peer that is no address", proxies, "@", nil, ""},
	} {
		trusted, err := parseNetworks(test.trusted)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{}}
		for _, value := range test.forwarded {
			r.Header.Add("X-Forwarded-For", value)
		}
		got := ""
		if a := sourceAddress(r, trusted); a.IsValid() {
			got = a.String()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestNetworks shows which sources a whitelist lets in.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		network string
		in, out []string
	}{
		{"203.0.113.5", []string{"203.0.113.5"}, []string{"203.0.113.4", "203.0.113.6", "::ffff:203.0.113.5%z"}},
		{"10.0.0.0/8", []string{"10.0.0.0", "10.255.255.255"}, []string{"9.255.255.255", "11.0.0.0", "::"}},
		{"10.1.2.3/8", []string{"10.9.9.9"}, []string{"11.1.2.3"}}, // bits beyond the mask do not count
		{"0.0.0.0/0", []string{"1.2.3.4"}, []string{"2001:db8::1"}},
		{"2001:db8::/32", []string{"2001:db8::1", "2001:db8:ffff::"}, []string{"2001:db9::", "1.2.3.4"}},
		{"2001:db8::1", []string{"2001:db8::1"}, []string{"2001:db8::2"}},
		{"::ffff:10.0.0.0/104", []string{"10.1.2.3"}, []string{"11.0.0.0"}},
		{"::ffff:203.0.113.5", []string{"203.0.113.5"}, []string{"203.0.113.6"}},
		{" 203.0.113.5 ", []string{"203.0.113.5"}, nil},
	} {
		n, err := parseNetwork(test.network)
		if err != nil {
			t.Errorf("%q: %v", test.network, err)
			continue
		}
		k := &apiKey{networks: []netip.Prefix{n}}
		for _, ip := range test.in {
			if !k.allowsSource(netip.MustParseAddr(ip)) {
				t.Errorf("%q does not let in %s", test.network, ip)
			}
		}
		for _, ip := range test.out {
			if k.allowsSource(netip.MustParseAddr(ip)) {
				t.Errorf("%q lets in %s", test.network, ip)
			}
		}
		if k.allowsSource(netip.Addr{}) {
			t.Errorf("%q lets in what cannot be read", test.network)
		}
	}
	for _, bad := range []string{"", "10", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "2001:db8::/129", "localhost", "10.0.0.256", "*"} {
		if n, err := parseNetwork(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, n)
		}
	}
	if k := (&apiKey{}); !k.allowsSource(netip.MustParseAddr("1.2.3.4")) || !k.allowsSource(netip.Addr{}) {
		t.Error("a key without a whitelist does not let everybody in")
	}
}

// TestAuthenticate shows what a key is refused for, and in which order.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	home, away := netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("198.51.100.7")
	for _, test := range []struct {
		reason  string
		expired bool
		revoked bool
		noPlan  bool
		source  netip.Addr
		want    string
	}{
		{"nothing is wrong", false, false, false, home, ""},
		{"a source that is not listed", false, false, false, away, "ip_not_allowed"},
		{"a source that cannot be read", false, false, false, netip.Addr{}, "ip_not_allowed"},
		{"the plan goes before the source", false, false, true, away, "plan_without_api"},
		{"the expiry goes before the plan", true, false, true, away, "api_key_expired"},
		{"the revocation goes before all", true, true, true, away, "api_key_invalid"},
	} {
		s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
		k, text := s.newKey(keyRequest{IPWhitelist: []string{"203.0.113.0/24"}, Expires: "2026-03-02T11:00:00Z"})
		if test.expired {
			s.pass(time.Hour)
		}
		if test.revoked {
			must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) })
		}
		if test.noPlan {
			s.apply(bytes.Replace(setup{}.document(), []byte(`"apiAccess":true`), []byte(`"apiAccess":false`), 1))
		}
		_, err := s.engine.authenticate(t.Context(), text, from(test.source), s.clock)
		if got := codeOf(err); got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}

	s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
	_, text := s.newKey(keyRequest{Expires: "2026-03-02T11:00:00Z"})
	s.pass(time.Hour - time.Millisecond)
	_, err := s.engine.authenticate(t.Context(), text, from(home), s.clock)
	s.want(err, "") // its last millisecond
	_, err = s.engine.authenticate(t.Context(), newAPIKey([32]byte{1}), from(home), s.clock)
	s.want(err, "api_key_invalid") // well formed, but nobody's
	_, err = s.engine.authenticate(t.Context(), text+"x", from(home), s.clock)
	s.want(err, "api_key_invalid")
}

// TestKeysAreNeverStale changes keys and configurations behind the caches of
// two engines on one store.
func TestKeysAreNeverStale(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	other := newEngine(s.engine.store, s.engine.now, s.engine.seed)
	k, text := s.newKey(keyRequest{})
	source := from(netip.MustParseAddr("203.0.113.5"))
	seen := func(reason, want string) {
		t.Helper()
		for i, e := range []*engine{s.engine, other, s.engine, other} {
			c, err := e.authenticate(t.Context(), text, source, s.clock)
			got := codeOf(err)
			if err == nil {
				got = fmt.Sprintf("%d %s", c.key.RateLimit, c.cfg.Organization.Name)
			}
			if got != want {
				t.Errorf("engine %d sees %q, want %q: %s", i%2+1, got, want, reason)
			}
		}
	}
	seen("as it was made", "300 Café Luna")
	for i := range 3 {
		must(s, func(t *txn) (any, error) {
			changed := *k
			changed.RateLimit = 400 + i
			return nil, t.keys.save(keyHash(text), &changed)
		})
		seen("the key was changed", fmt.Sprint(400+i, " Café Luna"))
	}
	s.apply(bytes.Replace(setup{}.document(), []byte("Café Luna"), []byte("Café Sol"), 1))
	seen("the organization has another name", "402 Café Sol")

	// A change that is rolled back must leave nothing in the caches, even if its
	// transaction has read what it wrote.
	for _, name := range []string{"Café Mar", "Café Sol", "Café Río"} {
		document := bytes.Replace(setup{}.document(), []byte("Café Luna"), []byte(name), 1)
		undone := fmt.Errorf("undone")
		err := s.engine.store.Update(t.Context(), func(tx Tx) error {
			if _, err := applyDocument(tx, document, newMint(s.clock, seed{}), creator{}, false); err != nil {
				return err
			}
			if _, err := s.engine.config(s.engine.store.version(), tx, s.org); err != nil {
				return err
			}
			return undone
		})
		if err != undone {
			t.Fatal(err)
		}
		seen(name+" was taken back", "402 Café Sol")
	}
	s.apply(bytes.Replace(setup{}.document(), []byte("Café Luna"), []byte("Café Mar"), 1))
	seen("another name after those that were taken back", "402 Café Mar")

	must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) })
	seen("revoked", "api_key_invalid")
}

// A lateBody is a request's body before which something else happens.
type lateBody struct {
	io.Reader
	before func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	return b.Reader.Read(p)
}

// TestKeyChangedMeanwhile: a request whose body comes slowly is refused if its key no longer
// admits it, and is held to the key's limits as they are now.
func TestKeyChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	c := s.counter()
	ana := s.customer("ana").String()
	change := func(field string, in keyRequest) func(k *apiKey) {
		return func(k *apiKey) {
			must(s, func(t *txn) (*apiKey, error) {
				return t.keys.change(keyChange{keyRequest: in, ID: k.ID.String(), Given: []string{field}})
			})
		}
	}
	for _, test := range []struct {
		reason    string
		meanwhile func(k *apiKey)
		want      string
	}{
		{"nothing", func(*apiKey) {}, ""},
		{"another key", func(*apiKey) { s.newKey(keyRequest{}) }, ""},
		{"revoked", func(k *apiKey) {
			must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) })
		}, "401 api_key_invalid"},
		{"expired", func(*apiKey) { s.pass(time.Hour) }, "401 api_key_expired"},
		{"without the scope", change("scopes", keyRequest{Scopes: []string{"points:read"}}), "403 scope_required"},
		{"from elsewhere", change("ipWhitelist", keyRequest{IPWhitelist: []string{"10.0.0.1"}}), "403 ip_not_allowed"},
		{"with a purse", change("maxPointsPerOperation", keyRequest{MaxPointsPerOperation: dec("4")}), "403 points_budget_exceeded"},
	} {
		for _, ask := range []struct{ path, body, made string }{
			{"points/customers/" + ana + "/add", `{"amount":5}`, "201"},
			{"transactions", `{"customerId":"` + ana + `","totalAmount":5}`, "201"},
			{"transactions?dryRun=true", `{"customerId":"` + ana + `","totalAmount":5}`, "200"},
		} {
			if strings.HasPrefix(ask.path, "transactions") && test.reason == "with a purse" {
				continue // which a sale does not need
			}
			k, text := s.newKey(keyRequest{Expires: s.clock.add(time.Hour).String()})
			r := httptest.NewRequest("POST", "/api/v1/"+ask.path, &lateBody{strings.NewReader(ask.body), func() { test.meanwhile(k) }})
			r.Header.Set("X-API-Key", text)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
			var answer struct{ Code string }
			s.ok(json.Unmarshal(w.Body.Bytes(), &answer))
			if got := strings.TrimSpace(fmt.Sprint(w.Code, " ", answer.Code)); got != cmp.Or(test.want, ask.made) {
				t.Errorf("%s, %s: got %s, want %s", test.reason, ask.path, got, cmp.Or(test.want, ask.made))
			}
		}
	}
}

// TestRoles holds the table of permissions against what each role is for: + is all, ~ is
// some.
// Panel check 51.
func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[role]string{
		roleOwner: "+audit:read +config:write +customers:edit +customers:erase +customers:find +customers:read +customers:write +data:export +data:import " +
			"+keys:manage +loyalty:read +points:write +redemptions:cancel +requests:read +rewards:read +rewards:write +segments:read +statistics:read +till " +
			"+transactions:read +transactions:return +transactions:write +users:manage +webhooks:manage",
		roleAdmin: "+audit:read +config:write +customers:edit +customers:erase +customers:find +customers:read +customers:write +data:export +data:import " +
			"+keys:manage +loyalty:read +points:write +redemptions:cancel +requests:read +rewards:read +rewards:write +segments:read +statistics:read +till " +
			"+transactions:read +transactions:return +transactions:write ~users:manage +webhooks:manage",
		roleManager: "~audit:read +customers:edit +customers:find +customers:read +customers:write +loyalty:read +points:write +redemptions:cancel " +
			"+rewards:read +rewards:write +segments:read +statistics:read +till +transactions:read +transactions:return +transactions:write",
		roleCashier: "~audit:read +customers:find ~customers:read +customers:write ~redemptions:cancel +rewards:read +rewards:write +till " +
			"~transactions:read ~transactions:return +transactions:write",
		roleViewer:    "~audit:read +customers:find +customers:read ~data:export +loyalty:read +rewards:read +segments:read +statistics:read +transactions:read",
		roleDeveloper: "~audit:read +keys:manage +requests:read +webhooks:manage",
	}
	for _, r := range append(roles, "", "boss") {
		var may []string
		for _, p := range slices.Sorted(maps.Keys(permissions)) {
			if g := r.may(p); g != grantNone {
				may = append(may, []string{"", "~", "+"}[g]+string(p))
			}
		}
		if got := strings.Join(may, " "); got != want[r] {
			t.Errorf("%s may\n%s, want\n%s", r, got, want[r])
		}
		if r.known() != (want[r] != "") {
			t.Errorf("%q is known: %t", r, r.known())
		}
	}
	if roleOwner.may("customers:sell") != grantNone {
		t.Error("an owner may what there is not")
	}
	for p, grants := range permissions {
		if len(grants) != len(roles) {
			t.Errorf("%s has %d grants", p, len(grants))
		}
	}
}

// TestMayManage tries every role on every change of every other one, and of its own.
func TestMayManage(t *testing.T) {
	t.Parallel()
	some := append([]role{""}, roles...)
	for _, by := range some {
		for _, from := range some {
			for _, to := range some {
				for _, self := range []bool{false, true} {
					if self && from != by {
						continue
					}
					err := by.mayManage(from, to, self)
					what := fmt.Sprintf("%q turns %q into %q, self %t: %v", by, from, to, self, err)
					if ok := err == nil; ok && by.may(usersManage) == grantNone {
						t.Error("not of those who manage:", what)
					} else if ok && by != roleOwner && (from == roleOwner || to == roleOwner) {
						t.Error("an owner is touched:", what)
					} else if ok && self && to != "" && !to.within(from) {
						t.Error("raised:", what)
					} else if !ok && by == roleOwner {
						t.Error("an owner may:", what)
					} else if !ok && by == roleAdmin && from != roleOwner && to != roleOwner {
						t.Error("an administrator may:", what)
					}
				}
			}
		}
	}
	// within orders some roles and not others.
	for _, test := range []struct {
		a, b role
		want bool
	}{
		{roleAdmin, roleOwner, true}, {roleOwner, roleAdmin, false}, {roleManager, roleAdmin, true}, {roleCashier, roleManager, true},
		{roleCashier, roleViewer, false}, {roleViewer, roleCashier, false}, {roleDeveloper, roleManager, false}, {roleDeveloper, roleAdmin, true},
	} {
		if got := test.a.within(test.b); got != test.want {
			t.Errorf("%s is within %s: %t", test.a, test.b, got)
		}
	}
	if err := roleAdmin.mayManage("", roleOwner, false); !errors.Is(err, errOwnersAlone) {
		t.Error(err)
	}
}
