package main

import (
	"strings"
	"testing"
	"time"
)

func TestConsent(t *testing.T) {
	t.Parallel()
	none, yes, no := consent{}, consent{consentGiven, 10}, consent{consentRefused, 20}
	for _, test := range []struct {
		was  consent
		said consentAnswer
		want consent
	}{
		{none, consentUnknown, none},
		{none, consentGiven, consent{consentGiven, 30}},
		{yes, consentGiven, yes},
		{yes, consentRefused, consent{consentRefused, 30}},
		{no, consentUnknown, none},
	} {
		if got := test.was.said(test.said, 30); got != test.want {
			t.Errorf("%v, then %v: %v, want %v", test.was, test.said, got, test.want)
		}
	}
	for _, pair := range [][2]consent{{yes, no}, {no, yes}, {none, no}, {no, none}} {
		if got := pair[0].later(pair[1]); got != no {
			t.Errorf("the later of %v is %v", pair, got)
		}
	}
}

// TestConsentOfOnePerson: what was said last holds after a merge; an erasure leaves nothing, and the
// audit log says who said what.
func TestConsentOfOnePerson(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, eva := s.customer("ana"), s.customer("eva")
	say := func(cust id, a consentAnswer) {
		must(s, func(t *txn) (any, error) { return t.customers.patch(cust, customerPatch{Marketing: &a}, nil) })
		s.pass(time.Second)
	}
	said := func(cust id) consentAnswer {
		return ask(s, func(t *txn) (consentAnswer, error) {
			c, err := t.customers.get(cust)
			if err != nil {
				return 0, err
			}
			return c.Marketing.Answer, nil
		})
	}
	say(ana, consentRefused)
	say(eva, consentGiven)
	s.merged(ana, eva)
	if got := said(ana); got != consentGiven {
		t.Errorf("merged: %v", got)
	}
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana) })
	if got := said(ana); got != consentUnknown {
		t.Errorf("erased: %v", got)
	}
	s.verified()
}

// TestConsentImported: a column avisos takes yes and no as people write them, and a file of all
// columns can be read again.
func TestConsentImported(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("import customers " + s.file("c.csv", "correo;avisos\na@example.com;sí\nb@example.com;NO\nc@example.com;\n"))
	wrong := s.file("d.csv", "correo;avisos\nd@example.com;quizá\n")
	s.run("import customers " + wrong)
	if told := string(readFile(t, wrong+".errors.csv")); !strings.Contains(told, `avisos: ""quizá"": debe ser sí o no`) {
		t.Error(told)
	}
	exported := s.ok("export customers -full")
	for _, want := range []string{",true\n", ",false\n", ",Active,\n"} {
		if !strings.Contains(exported, want) {
			t.Errorf("no %q in %s", want, exported)
		}
	}
	to := newOpenTill(t)
	to.ok("import customers -ignore id,tier,balance,pending,expiring,status,enrolled " + to.file("full.csv", exported))
	if got := to.ok("export customers -full"); strings.Count(got, ",true\n") != 1 || strings.Count(got, ",false\n") != 1 {
		t.Errorf("moved: %s", got)
	}
}
