package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestApplyOrder shows that another order of the same things is a change, and
// that a document that has been applied is none.
func TestApplyOrder(t *testing.T) {
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

// TestApplyPutBack shows that a reward and a segment that are taken out and
// put back are the same ones.
func TestApplyPutBack(t *testing.T) {
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

// TestApplyRules shows what a document is refused for that its rules and its
// program say only together.
func TestApplyRules(t *testing.T) {
	const told = "programs[0].rules[0]."
	for _, test := range []struct {
		program, rule string
		want          string // the path that is told, if it is refused
	}{
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":10`, "pendingDays"},
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":9`, ""},
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":10,"expiresInDays":11`, ""},
		{`"expiry":{"days":10,"endOf":"Month"}`, `"points":1,"pendingDays":10`, "pendingDays"},
		{`"expiry":{"months":1}`, `"points":1,"pendingDays":28`, "pendingDays"},
		{`"expiry":{"months":1}`, `"points":1,"pendingDays":27`, ""},
		{`"expiry":{"months":12}`, `"points":1,"pendingDays":365`, "pendingDays"},
		{`"expiry":{"months":12}`, `"points":1,"pendingDays":364`, ""},
		{`"expiry":null`, `"points":1,"pendingDays":1000`, ""},
		{`"expiry":{"days":10}`, `"on":"Signup","points":1,"pendingDays":10`, "pendingDays"},
		{`"pointsDecimals":1`, `"on":"Signup","points":1.25`, "points"},
		{`"pointsDecimals":2`, `"on":"Signup","points":1.25`, ""},
		{`"pointsDecimals":0`, `"points":1.25`, ""},
	} {
		doc := setup{program: test.program + `,"rules":[{"key":"a","name":"a",` + test.rule + `}]`}.document()
		_, problems := readDocument(doc)
		got := strings.Join(problems, "\n")
		if test.want == "" && got != "" || test.want != "" && !strings.HasPrefix(got, told+test.want+": ") {
			t.Errorf("%s %s: %q, want one of %q", test.program, test.rule, got, test.want)
		}
	}
}
