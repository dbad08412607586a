package main

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// TestPasswordVectors holds derive against published vectors of PBKDF2-HMAC-SHA256: those of
// RFC 7914 §11, and those of RFC 6070 recomputed for SHA-256, as they are widely published.
func TestPasswordVectors(t *testing.T) {
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
		h := passwordHash{Iterations: test.iterations, Salt: []byte(test.salt)}
		sum, err := h.derive(test.password)
		if got := hex.EncodeToString(sum); err != nil || got != test.want {
			t.Errorf("%q, %q, %d: %s (%v), want %s", test.password, test.salt, test.iterations, got, err, test.want)
		}
		h.Sum = sum
		if ok, err := h.matches(test.password); !ok || err != nil {
			t.Errorf("%q does not match itself: %v", test.password, err)
		}
		if ok, _ := h.matches(test.password + "x"); ok {
			t.Errorf("%q matches another", test.password)
		}
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	own := []string{"ana.garcia", "ejemplo.mx", "Ana García", "cafe-luna", "Café Luna"}
	for _, test := range []struct {
		password string
		factor   bool
		want     error
		reason   string
	}{
		{"tren verde 7 salta", false, nil, "some words that do not belong together"},
		{"Ñandú salta muros", false, nil, "of any language"},
		{"крокодил гена поёт", false, nil, "or script"},
		{"¿Dónde está mi llave?", false, nil, "with signs"},
		{"tren verde sal", false, errPasswordShort, "14 characters"},
		{"tren verde", true, nil, "10 are enough with a second factor"},
		{"tren verd", true, errPasswordShort, "9 are not"},
		{strings.Repeat("ñu x", 32), false, errPasswordRepeats, "128 characters are not too long"},
		{strings.Repeat("ñu x", 32) + "y", false, errPasswordLong, "129 are"},
		{"tren\x00verde 7 salta", false, errPasswordText, "nobody types this"},
		{"tren\xffverde 7 salta", false, errPasswordText, "no text"},
		{"aaaaaaaaaaaaaaaaaaaa", false, errPasswordRepeats, "one character"},
		{"abc123abc123abc123abc", false, errPasswordRepeats, "a unit"},
		{"solsolsolsolsolsolsol", false, errPasswordRepeats, "a short unit"},
		{"qwertyuiopasdfghjkl", false, errPasswordKeyboard, "two rows"},
		{"1234567890123456", false, errPasswordKeyboard, "digits"},
		{"zyxwvutsrqponmlkji", false, errPasswordKeyboard, "backwards"},
		{"1qaz2wsx3edc4rfv", false, errPasswordKeyboard, "columns"},
		{"abcdefghijklmnñop", false, errPasswordKeyboard, "the alphabet, but for a letter"},
		{"AnaGarcia2CafeLuna", false, errPasswordOwn, "own words"},
		{"ana.garcia@ejemplo.mx", false, errPasswordOwn, "the e-mail"},
		{"C4fé-Lun4-ana-99", false, errPasswordOwn, "with digits for letters"},
		{"contraseña segura", false, errPasswordUsual, "usual"},
		{"Password12345678!", false, errPasswordUsual, "usual, and a run"},
		{"p4$$w0rd p4$$w0rd x", false, errPasswordUsual, "signs for letters"},
		{"te amo mi princesa", false, errPasswordUsual, ""},
		{"correct horse battery staple", false, errPasswordUsual, "everybody knows it"},
		{"ilovemexicomexico", false, errPasswordUsual, ""},
		{"bienvenidos2026!!", false, errPasswordUsual, ""},
	} {
		if err := checkPassword(test.password, test.factor, own...); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%q: %v, want %v: %s", test.password, err, test.want, test.reason)
		}
	}
	if n := len(usualPasswords); n < 200 {
		t.Errorf("%d usual words", n)
	}
}
