package main

import (
	"fmt"
	"strings"
	"testing"

	"sello/internal/totp"
)

// TestSecondFactor: a code is good one step early or late, once, and no earlier one after it;
// a recovery code once.
// Panel check 9.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	const now, step = instant(1_800_000_000_000), int64(1_800_000_000_000 / totp.Step)
	secret := []byte("12345678901234567890")
	code := func(at int64) string { return totp.Code(secret, at*totp.Step) }
	f := &secondFactor{Secret: secret}
	for _, test := range []struct {
		at   int64
		want bool
		why  string
	}{
		{-2, false, "too late"}, {-1, true, "one step late"}, {-1, false, "used"}, {0, true, "now"}, {-1, false, "before the last"}, {0, false, "used"},
		{2, false, "too early"}, {1, true, "one step early"}, {1, false, "used"}, {0, false, "before the last"},
	} {
		if got := f.accept(code(step+test.at), now); got != test.want {
			t.Errorf("step %d: %t: %s", test.at, got, test.why)
		}
	}
	if got := (&secondFactor{Secret: secret}).accept(" "+code(step)[:3]+" "+code(step)[3:], now); !got {
		t.Error("a code with blanks is refused")
	}
	s := newShop(t, setup{})
	u := s.person("ana@ejemplo.mx", roleOwner)
	codes := must(s, func(t *txn) ([]string, error) {
		return t.people.newRecovery(u, &secondFactor{Secret: secret, LastStep: 1})
	})
	if len(codes) != recoveryCodes || len(codes[0]) != len("ABCD-EFGH-IJKL-MNOP") {
		t.Fatal(codes)
	}
	f = ask(s, func(t *txn) (*secondFactor, error) { return factorOf(t.Tx, u) })
	for i, c := range codes {
		if !f.accept(strings.ToLower(strings.ReplaceAll(c, "-", " ")), now) || f.accept(c, now) || len(f.Recovery) != recoveryCodes-1-i {
			t.Errorf("recovery code %d is not good once; %d left", i, len(f.Recovery))
		}
	}
	if f.accept("", now) || f.accept(fmt.Sprint(step), now) {
		t.Error("no code is accepted")
	}
}
