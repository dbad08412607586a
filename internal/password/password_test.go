package password

import (
	"encoding/hex"
	"strings"
	"testing"
)

// TestVectors holds Hash against published vectors of PBKDF2-HMAC-SHA256: those of
// RFC 7914 §11, and those of RFC 6070 recomputed for SHA-256, as they are widely published.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		password, salt string
		iterations     int
		want           string // the first bytes
	}{
		{"passwd", "salt", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"},
		{"Password", "NaCl", 80000, "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"},
		{"password", "salt", 1, "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b"},
		{"password", "salt", 2, "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43"},
		{"password", "salt", 4096, "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"},
		{"passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, "348c89dbcbd32b2f32d814b8116e84cf2b17347ebc1800181c4e2a1fb8dd53e1"},
	} {
		salt := []byte(test.salt)
		sum, err := Hash(test.password, salt, test.iterations)
		if got := hex.EncodeToString(sum); err != nil || got != test.want {
			t.Errorf("%q, %q, %d: %s (%v), want %s", test.password, test.salt, test.iterations, got, err, test.want)
		}
		if ok, err := Matches(test.password, salt, test.iterations, sum); !ok || err != nil {
			t.Errorf("%q does not match itself: %v", test.password, err)
		}
		if ok, _ := Matches(test.password+"x", salt, test.iterations, sum); ok {
			t.Errorf("%q matches another", test.password)
		}
	}
}

func TestWeaknessOf(t *testing.T) {
	t.Parallel()
	own := []string{"ana.garcia", "ejemplo.mx", "Ana García", "cafe-luna", "Café Luna"}
	for _, test := range []struct {
		password string
		want     Weakness
		reason   string
	}{
		{"tren verde 7 salta", None, "some words that do not belong together"},
		{"Ñandú salta muros", None, "of any language"},
		{"крокодил гена поёт", None, "or script"},
		{"¿Dónde está mi llave?", None, "with signs"},
		{strings.Repeat("ñu x", 32), Repeats, "128 characters are not too long"},
		{"aaaaaaaaaaaaaaaaaaaa", Repeats, "one character"},
		{"abc123abc123abc123abc", Repeats, "a unit"},
		{"solsolsolsolsolsolsol", Repeats, "a short unit"},
		{"qwertyuiopasdfghjkl", Keyboard, "two rows"},
		{"1234567890123456", Keyboard, "digits"},
		{"zyxwvutsrqponmlkji", Keyboard, "backwards"},
		{"1qaz2wsx3edc4rfv", Keyboard, "columns"},
		{"abcdefghijklmnñop", Keyboard, "the alphabet, but for a letter"},
		{"AnaGarcia2CafeLuna", Own, "own words"},
		{"ana.garcia@ejemplo.mx", Own, "the e-mail"},
		{"C4fé-Lun4-ana-99", Own, "with digits for letters"},
		{"contraseña segura", Usual, "usual"},
		{"Password12345678!", Usual, "usual, and a run"},
		{"p4$$w0rd p4$$w0rd x", Usual, "signs for letters"},
		{"te amo mi princesa", Usual, ""},
		{"correct horse battery staple", Usual, "everybody knows it"},
		{"ilovemexicomexico", Usual, ""},
		{"bienvenidos2026!!", Usual, ""},
		{"marcianito 100%", None, "usual nowhere else"},
	} {
		if got := WeaknessOf(test.password, own); got != test.want {
			t.Errorf("%q: %d, want %d: %s", test.password, got, test.want, test.reason)
		}
	}
	if got := WeaknessOf("marcianito 100%", own, "marcianito"); got != Usual {
		t.Errorf("with a usual word: %d", got)
	}
	if n := len(usualWords); n < 200 {
		t.Errorf("%d usual words", n)
	}
}
