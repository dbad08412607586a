package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestApplyAgain shows that applying an exported document changes nothing, and that
// a dry run reports what would change.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{"everything": []byte(everything), "demo": demoDocument, "little": setup{}.document()} {
		t.Run(name, func(t *testing.T) {
			s := newEmptyShop(t, "2026-03-02T10:00:00Z")
			empty := s.entries()
			dry, err := s.admin().apply(t.Context(), applyRequest{Document: document, DryRun: true})
			s.ok(err)
			same(t, "what is in the store after a dry run", s.entries(), empty)
			first := s.apply(document)
			if !first.Created || len(first.Changes) == 0 {
				t.Errorf("created is %t, %d changes", first.Created, len(first.Changes))
			}
			same(t, "what the dry run said would change", dry.Changes, first.Changes)
			before := s.entries()

			s.pass(oneDay)
			again := s.apply(document)
			if again.Created || len(again.Changes) > 0 {
				t.Errorf("applied again: created is %t, changes %v", again.Created, again.Changes)
			}
			same(t, "what is in the store after applying it again", s.entries(), before)

			exported := s.exportedDocument()
			if changes := s.apply(exported).Changes; len(changes) > 0 {
				t.Errorf("applied what was exported: changes %v", changes)
			}
			same(t, "what is in the store after applying what was exported", s.entries(), before)

			other := newEmptyShop(t, "2027-01-01T00:00:00Z")
			other.apply(exported)
			same(t, "what another shop exports of it", string(other.exportedDocument()), string(exported))
		})
	}
}

// exportedDocument returns the organization's document as `sello export` gives it.
func (s *shop) exportedDocument() []byte {
	d := ask(s, func(t *txn) (*document, error) { return t.cfg.document(), nil })
	raw, err := json.Marshal(d)
	s.ok(err)
	return raw
}

// identities returns the ids of the organization and its programs, rewards and segments.
func (s *shop) identities() map[string]id {
	s.Helper()
	cfg := s.config()
	all := map[string]id{"organization": cfg.ID}
	for _, p := range cfg.Programs {
		all["program "+p.Key] = p.ID
	}
	for _, r := range cfg.Rewards {
		all["reward "+r.Key] = r.ID
	}
	for _, g := range cfg.Segments {
		all["segment "+g.Key] = g.ID
	}
	return all
}

// edited lets a day pass, applies the document `everything` with the given texts
// replaced, and returns the changes.
func (s *shop) edited(pairs ...string) (told []string) {
	s.Helper()
	s.pass(oneDay)
	for _, c := range s.apply([]byte(strings.NewReplacer(pairs...).Replace(everything))).Changes {
		told = append(told, fmt.Sprintf("%s: %v → %v", c.Path, c.From, c.To))
	}
	return told
}

// TestApplyChanges shows how changes are reported, and that a thing with the same key
// keeps its id.
func TestApplyChanges(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply([]byte(everything))
	before := s.identities()
	same(t, "values that changed", s.edited(`"name":"Club Luna"`, `"name":"Club Sol"`, `"amount":10`, `"amount":12.5`, `"stock":10`, `"stock":null`), []string{
		"programs[club].name: Club Luna → Club Sol",
		"programs[club].rules[base].per.amount: 10 → 12.5",
		"rewards[taza].stock: 10 → <nil>",
	})
	same(t, "identities after values changed", s.identities(), before)
	same(t, "what was taken back", s.edited(), []string{
		"programs[club].name: Club Sol → Club Luna",
		"programs[club].rules[base].per.amount: 12.5 → 10",
		"rewards[taza].stock: <nil> → 10",
	})
	same(t, "a rule that was taken out", s.edited(`{"key":"doble","name":"Doble","multiplier":2},`, ""), []string{
		"programs[club].rules[doble].key: doble → <nil>",
		"programs[club].rules[doble].multiplier: 2 → <nil>",
		"programs[club].rules[doble].name: Doble → <nil>",
		"programs[club].rules[doble].on: Purchase → <nil>",
	})
	s.edited()
	same(t, "identities after a rule was taken out and put back", s.identities(), before)
	s.verified()
}

// TestApplyFigures: what sello apply shows of numbers are plain digits, however they were written
// (contract §31).
func TestApplyFigures(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	document := setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":0.0001,"points":1},"budget":1000000}]`,
		also: `"segments":[{"key":"rich","name":"Ricos","rule":{"field":"balance","op":">","value":1e6}},{"key":"all","name":"Todos","rule":{"field":"totalSpent","op":">","value":99999999999.9999}}]`}.document()
	var out applied
	s.ok(s.admin().direct(t.Context(), "apply", applyRequest{Document: document}, &out))
	var text strings.Builder
	showApplied(&text, &out)
	for _, line := range []string{".budget: 1000000\n", ".per.amount: 0.0001\n", "segments[rich].rule.value: 1000000\n", "segments[all].rule.value: 99999999999.9999\n"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %q in\n%s", line, text.String())
		}
	}
	var c change
	s.ok(json.Unmarshal([]byte(`{"from":123456789012.3456,"to":1000000}`), &c))
	same(t, "beyond a decimal", fmt.Sprintf("%v %v", c.From, c.To), "123456789012.3456 1000000")
}

// TestApplyLists: a list left out of the document stays as it was; a list in it
// replaces the old one.
func TestApplyLists(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply([]byte(everything))
	before := s.identities()
	var parts map[string]json.RawMessage
	s.ok(json.Unmarshal([]byte(everything), &parts))
	alone, err := json.Marshal(map[string]json.RawMessage{"organization": parts["organization"]})
	s.ok(err)
	if changes := s.apply(alone).Changes; len(changes) > 0 {
		t.Errorf("the organization alone changes %v", changes)
	}
	parts["rewards"] = json.RawMessage(`[]`)
	without, err := json.Marshal(parts)
	s.ok(err)
	s.apply(without)
	if _, ok := s.identities()["reward taza"]; ok {
		t.Error("an empty list of rewards leaves one")
	}
	s.apply([]byte(everything))
	same(t, "identities after a reward was taken out and put back", s.identities(), before)

	// What cannot be changed.
	parts["programs"] = json.RawMessage(`[{"key":"otro","name":"Otro","expiry":{"days":30}}]`)
	removed, err := json.Marshal(parts)
	s.ok(err)
	if _, err := s.admin().apply(t.Context(), applyRequest{Document: removed}); err == nil || !strings.Contains(err.Error(), `programs: falta "club"`) {
		t.Errorf("a program was taken out: %v", err)
	}
	s.verified()
}

// TestApplyTimes: a reward's UpdatedAt moves only when the reward itself changes.
func TestApplyTimes(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply([]byte(everything))
	times := func() string {
		return ask(s, func(t *txn) (string, error) {
			r := t.cfg.Rewards[0]
			return fmt.Sprint(r.CreatedAt < r.UpdatedAt, " ", r.UpdatedAt == s.clock), nil
		})
	}
	s.edited(`"name":"Taza"`, `"name":"Tazón"`)
	same(t, "created before it was updated, updated now", times(), "true true")
	s.edited(`"name":"Taza"`, `"name":"Tazón"`, `"name":"Grano"`, `"name":"Granos"`)
	same(t, "created before it was updated, updated now: another thing changed", times(), "true false")
	s.verified()
}

// TestApplyZone: the time zone cannot change once there are customers, since their
// days are counted in it.
func TestApplyZone(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply([]byte(everything))
	moved := strings.Replace(everything, "America/Mexico_City", "America/Bogota", 1)
	s.apply([]byte(moved))
	s.apply([]byte(everything))
	s.customer("ana")
	if _, err := s.admin().apply(t.Context(), applyRequest{Document: []byte(moved)}); err == nil || !strings.Contains(err.Error(), "organization.settings.timezone: ") {
		t.Errorf("the time zone of days that were counted was changed: %v", err)
	}
	s.verified()
}

// TestApplyKeepsCustomers changes everything about a program in which customers have
// points, and checks that their figures stay the same.
func TestApplyKeepsCustomers(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	t.Cleanup(s.verified)
	s.apply([]byte(everything))
	ana := s.customer("ana")
	s.add(ana, "1000", 0)
	s.buy(ana, "100", item{"A1", dec("100"), dec("3")})
	s.wantTier(ana, "Plata", "1000 points")
	before := s.standing(ana)
	s.apply([]byte(strings.NewReplacer(`"pointsDecimals":1`, `"pointsDecimals":0`, `"Floor"`, `"Ceil"`, `"months":12,"endOf":"Month"`, `"days":500`,
		`"Reverse"`, `"Keep"`, `"Clamp"`, `"Debt"`, `"Rolling","months":6`, `"Lifetime"`, `"amount":10`, `"amount":20`).Replace(everything)))
	same(t, "after a change of the program", s.standing(ana), before)
	s.apply([]byte(strings.Replace(everything, `"threshold":1000`, `"threshold":1100`, 1)))
	s.wantTier(ana, "Bronce", "the threshold is higher now")
}

// TestApplyLarge applies a document with more members than a request may have.
func TestApplyLarge(t *testing.T) {
	t.Parallel()
	skus := make([]string, maxMembers)
	for i := range skus {
		skus[i] = strconv.Quote(fmt.Sprintf("SKU-%d", i))
	}
	s := newShop(t, setup{program: `"rules":[{"key":"many","name":"Many","perItem":1,"skus":[` + strings.Join(skus, ",") + `]}]`})
	if got := len(ask(s, func(t *txn) ([]string, error) { return t.cfg.Programs[0].Rules[0].SKUs, nil })); got != len(skus) {
		t.Errorf("%d skus", got)
	}
}

// TestApplyOrder shows that reordering the same things is a change, and that applying
// the same document again is not.
func TestApplyOrder(t *testing.T) {
	t.Parallel()
	with := func(rules, rewards, segments string) []byte {
		rule, reward, segment := map[string]string{}, map[string]string{}, map[string]string{}
		for _, k := range []string{"a", "b", "c"} {
			rule[k] = fmt.Sprintf(`{"key":%q,"name":"R","points":1}`, k)
			reward[k] = fmt.Sprintf(`{"key":%q,"name":"P","program":"club","pointsCost":1}`, k)
			segment[k] = fmt.Sprintf(`{"key":%q,"name":"S","rule":{"field":"balance","op":">","value": 1.0}}`, k)
		}
		list := func(of map[string]string, keys string) string {
			var parts []string
			for _, k := range strings.Fields(keys) {
				parts = append(parts, of[k])
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		return setup{program: `"rules":` + list(rule, rules), also: `"rewards":` + list(reward, rewards) + `,"segments":` + list(segment, segments)}.document()
	}
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply(with("a b", "a b", "a b"))
	for _, test := range []struct {
		rules, rewards, segments string
		want                     string
	}{
		{"a b", "a b", "a b", "[]"},
		{"b a", "a b", "a b", "[{programs[club].rules.order a, b b, a}]"},
		{"b a", "a b", "a b", "[]"},
		{"b a", "b a", "b a", "[{rewards.order a, b b, a} {segments.order a, b b, a}]"},
		{"b a", "b a", "b a", "[]"},
	} {
		done := s.apply(with(test.rules, test.rewards, test.segments))
		if got := fmt.Sprint(done.Changes); got != test.want {
			t.Errorf("%+v: changes are %s", test, got)
		}
		var got []string
		for _, r := range s.config().Programs[0].Rules {
			got = append(got, r.Key)
		}
		if strings.Join(got, " ") != test.rules {
			t.Errorf("rules are in the order %s, want %s", got, test.rules)
		}
	}
	for _, c := range s.apply(with("b c a", "b a", "b a")).Changes {
		if strings.Contains(c.Path, "order") {
			t.Errorf("a rule between two is told as %v", c)
		}
	}
}

func (s *shop) config() *config {
	return ask(s, func(t *txn) (*config, error) { return t.cfg, nil })
}

// TestApplyPutBack shows that a reward and a segment keep their ids when they are
// taken out and put back.
func TestApplyPutBack(t *testing.T) {
	t.Parallel()
	const (
		rewards  = `"rewards":[{"key":"cafe","name":"Café","program":"club","pointsCost":1,"stock":1}]`
		segments = `"segments":[{"key":"rich","name":"Ricos","rule":{"field":"balance","op":">","value":1}}]`
	)
	s := newShop(t, setup{also: rewards + "," + segments})
	before := s.config()
	s.apply(setup{also: `"rewards":[],"segments":[]`}.document())
	if gone := s.config(); len(gone.Rewards)+len(gone.Segments) != 0 {
		t.Fatal("nothing was taken out")
	}
	s.pass(oneDay)
	s.apply(setup{also: rewards + "," + segments}.document())
	after := s.config()
	if before.Rewards[0].ID != after.Rewards[0].ID || before.Segments[0].ID != after.Segments[0].ID {
		t.Error("what was put back has another id")
	}
	if after.Rewards[0].ID == after.Segments[0].ID {
		t.Error("a reward and a segment have the same id")
	}
}
