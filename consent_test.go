package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	exported := s.ok("export customers")
	to := newOpenTill(t)
	to.ok("import customers " + to.file("c.csv", exported))
	if d := cmp.Diff(exported, to.ok("export customers")); d != "" || strings.Count(exported, ",true,20")+strings.Count(exported, ",false,20") != 2 {
		t.Errorf("answers and their moments, moved (-from +to):\n%s", d)
	}
}

// TestConsentWithdrawn: a no in a file is taken of a known customer, too, and words of other systems
// are answers (contract §31). A yes does not undo a no.
func TestConsentWithdrawn(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	said := func(name string) string {
		v := s.byEmail(name).Marketing
		return fmt.Sprint(v.Answer.text(), " ", v.At)
	}
	s.importCSV(t, "correo,avisos,fecha avisos\na@example.com,subscribed,2019-03-01\nb@example.com,TRUE,\nc@example.com,1,\nd@example.com,unsubscribed,2018-03-01\n")
	yes := said("b")
	s.pass(oneDay)
	if told := s.importCSV(t, "correo,avisos,fecha avisos\na@example.com,Unsubscribed,2020-03-01\nb@example.com,FALSE,2018-03-01\nc@example.com,,\nd@example.com,sí,\n"); told != "0 new, 4 known, 0 wrong" {
		t.Error(told)
	}
	now := s.clock.String()
	for name, want := range map[string]string{"a": "false 2020-03-01T06:00:00.000Z", "b": "false " + now, "c": yes, "d": "false 2018-03-01T06:00:00.000Z"} {
		if got := said(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if told := s.importCSV(t, "correo,avisos,fecha avisos\ne@example.com,no,2999-01-01\n"); !strings.Contains(told, "fecha avisos: \"2999-01-01\": no puede ser una fecha futura") {
		t.Error(told)
	}
	s.verified()
}
