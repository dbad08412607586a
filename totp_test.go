package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestTOTPVectors holds codes against those of RFC 6238, appendix B (SHA-1, 8 digits), and of
// RFC 4226, appendix D (6 digits).
func TestTOTPVectors(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for seconds, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := hotp(secret, uint64(seconds*1000/totpStep), 8); got != want {
			t.Errorf("at %d: %s, want %s", seconds, got, want)
		}
	}
	for i, want := range strings.Fields("755224 287082 359152 969429 338314 254676 287922 162583 399871 520489") {
		if got := hotp(secret, uint64(i), totpDigits); got != want {
			t.Errorf("counter %d: %s, want %s", i, got, want)
		}
	}
}

// TestSecondFactor: a code is good one step early or late, once, and no earlier one after it;
// a recovery code once.
// Panel check 9.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	const now, step = instant(1_800_000_000_000), int64(1_800_000_000_000 / totpStep)
	secret := []byte("12345678901234567890")
	code := func(at int64) string { return hotp(secret, uint64(at), totpDigits) }
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
	if link := factorLink("ABCD", "a&b@ejemplo.mx"); link != "otpauth://totp/sello:a&b@ejemplo.mx?issuer=sello&secret=ABCD" {
		t.Error(link)
	}
	if f.accept("", now) || f.accept(fmt.Sprint(step), now) {
		t.Error("no code is accepted")
	}
}
