package main

import (
	"errors"
	"strings"
	"testing"
)

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
		{"tren verde sal", false, errPasswordShort, "14 characters"},
		{"tren verde", true, nil, "10 are enough with a second factor"},
		{"tren verd", true, errPasswordShort, "9 are not"},
		{strings.Repeat("ñu x", 32), false, errPasswordRepeats, "128 characters are not too long"},
		{strings.Repeat("ñu x", 32) + "y", false, errPasswordLong, "129 are"},
		{"tren\x00verde 7 salta", false, errPasswordText, "nobody types this"},
		{"tren\xffverde 7 salta", false, errPasswordText, "no text"},
		{"qwertyuiopasdfghjkl", false, errPasswordKeyboard, "two rows"},
		{"AnaGarcia2CafeLuna", false, errPasswordOwn, "own words"},
		{"contraseña segura", false, errPasswordUsual, "usual"},
		{"lealtad loyalty sello!", false, errPasswordUsual, "usual for sello"},
	} {
		if err := checkPassword(test.password, test.factor, own...); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%q: %v, want %v: %s", test.password, err, test.want, test.reason)
		}
	}
}
