package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rules that hold for everybody and for nobody.
const (
	ruleYes = `{"field":"balance","op":">=","value":-99999999999}`
	ruleNo  = `{"field":"balance","op":">","value":99999999999}`
)

// segmentCases are rules of segments, and for which of two customers each holds.
var segmentCases = []struct {
	rule     string
	ana      bool
	stranger bool // with a phone and nothing else
}{
	{`{"field":"totalSpent","op":"=","value":100}`, true, false},
	{`{"field":"totalSpent","op":"!=","value":100}`, false, true},
	{`{"field":"totalSpent","op":"<","value":100}`, false, true},
	{`{"field":"totalSpent","op":"<=","value":100}`, true, true},
	{`{"field":"totalSpent","op":">","value":100}`, false, false},
	{`{"field":"totalSpent","op":">","value":99.9999}`, true, false},
	{`{"field":"totalSpent","op":">=","value":100}`, true, false},
	{`{"field":"totalSpent","op":">=","value":100.0001}`, false, false},
	{`{"field":"transactionsCount","op":"=","value":1}`, true, false},
	{`{"field":"transactionsCount","op":"=","value":0}`, false, true},
	{`{"field":"balance","op":"=","value":60}`, true, false},
	{`{"field":"lifetimePoints","op":"=","value":100}`, true, false},
	{`{"field":"createdAt","op":"=","value":10}`, true, false},
	{`{"field":"createdAt","op":"<","value":10}`, false, true},
	{`{"field":"lastTransactionAt","op":"<=","value":5.5}`, true, false},
	{`{"field":"lastTransactionAt","op":"<","value":5.5}`, false, false},
	{`{"field":"lastTransactionAt","op":">","value":36500}`, false, true}, // never is longer ago than anything
	{`{"field":"tier","op":"=","value":"Plata"}`, true, false},
	{`{"field":"tier","op":"!=","value":"Plata"}`, false, true},
	{`{"field":"tier","op":"=","value":"plata"}`, false, false},
	{`{"field":"email","op":"=","value":true}`, true, false},
	{`{"field":"email","op":"!=","value":true}`, false, true},
	{`{"field":"email","op":"=","value":false}`, false, true},
	{`{"field":"phone","op":"=","value":true}`, false, true},
	{`{"all":[` + ruleYes + `]}`, true, true},
	{`{"all":[` + ruleYes + `,` + ruleYes + `]}`, true, true},
	{`{"all":[` + ruleYes + `,` + ruleNo + `]}`, false, false},
	{`{"any":[` + ruleNo + `,` + ruleYes + `]}`, true, true},
	{`{"any":[` + ruleNo + `,` + ruleNo + `]}`, false, false},
	{`{"not":` + ruleNo + `}`, true, true},
	{`{"not":{"not":` + ruleNo + `}}`, false, false},
	{`{"all":[{"any":[` + ruleNo + `,{"field":"email","op":"=","value":true}]},{"not":` + ruleNo + `}]}`, true, false},
}

// TestSegmentRules shows every field and operator of a segment's rule, and how rules
// combine. Ana has an e-mail and no phone, and was enrolled ten days ago. Five and a half
// days ago she bought for 100. That earned 100 points, of which 40 are spent.
func TestSegmentRules(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}],"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.pass(4*oneDay + 12*time.Hour)
	s.buy(ana, "100")
	_, err := s.deduct(ana, "40")
	s.ok(err)
	s.pass(5*oneDay + 12*time.Hour)
	stranger := must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{Phone: "+525512345678"})
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	})
	for _, test := range segmentCases {
		var rule segmentRule
		if err := json.Unmarshal([]byte(test.rule), &rule); err != nil {
			t.Fatal(err)
		}
		ck := new(checker)
		if ck.segmentRule("rule", &rule, 0); len(ck.problems) > 0 {
			t.Errorf("%s is refused: %v", test.rule, ck.problems)
		}
		for cust, want := range map[id]bool{ana: test.ana, stranger: test.stranger} {
			got := ask(s, func(t *txn) (bool, error) {
				_, a, err := accountOf(t, cust)
				return err == nil && rule.holds(profile{account: a, now: t.now}), err
			})
			if got != want {
				t.Errorf("%s holds for ana %t and the stranger %t: got %t for one of them", test.rule, test.ana, test.stranger, got)
			}
		}
	}
}

// TestSegmentOrder shows that a customer's segments come highest priority first, without
// inactive ones.
func TestSegmentOrder(t *testing.T) {
	t.Parallel()
	const all = `"rule":{"field":"email","op":"=","value":true}}`
	s := newShop(t, setup{also: `"segments":[
		{"key":"low","name":"Low","priority":-1,"isActive":true,` + all + `,
		{"key":"b","name":"B","priority":5,"isActive":true,` + all + `,
		{"key":"off","name":"Off","priority":99,"isActive":false,` + all + `,
		{"key":"a","name":"A","priority":5,"isActive":true,` + all + `,
		{"key":"high","name":"High","priority":10,"isActive":true,` + all + `,
		{"key":"other","name":"Other","priority":20,"isActive":true,"rule":{"field":"email","op":"=","value":false}}]`})
	ana := s.customer("ana")
	keys := ask(s, func(t *txn) ([]string, error) {
		_, a, err := accountOf(t, ana)
		return keysOf(t.rules.segmentsOf(a)), err
	})
	if !slices.Equal(keys, []string{"high", "a", "b", "low"}) {
		t.Errorf("got %s, want high a b low", strings.Join(keys, " "))
	}
}
