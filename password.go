package main

import (
	"crypto/subtle"
	"strings"
	"unicode/utf8"

	"sello/internal/password"
)

// Lengths of passwords in characters (NIST SP 800-63B-4 §3.1.1).
const (
	minPassword           = 15
	minPasswordWithFactor = 10 // with a second factor
	maxPassword           = 128
)

// A passwordHash is what is kept of a password (internal/password). The zero one is of no password.
type passwordHash struct {
	Iterations int
	Salt, Sum  []byte
	At         instant // when the password was set
}

func (h *passwordHash) fields(c *coder) {
	uintField(c, &h.Iterations)
	c.bytes(&h.Salt)
	c.bytes(&h.Sum)
	c.instant(&h.At)
}

// derive returns the sum of a password by the hash's salt and iterations.
func (h *passwordHash) derive(text string) ([]byte, error) {
	return password.Hash(text, h.Salt, h.Iterations)
}

func (h *passwordHash) matches(text string) (bool, error) {
	return password.Matches(text, h.Salt, h.Iterations, h.Sum)
}

// equal reports whether two hashes are of the same setting of a password.
func (h *passwordHash) equal(o *passwordHash) bool {
	return subtle.ConstantTimeCompare(h.Salt, o.Salt)&subtle.ConstantTimeCompare(h.Sum, o.Sum) == 1
}

var (
	errPasswordShort    = newPeopleError("password_short", "password", "La contraseña debe tener al menos 15 caracteres (10 con segundo factor)")
	errPasswordLong     = newPeopleError("password_long", "password", "La contraseña no puede superar los 128 caracteres")
	errPasswordText     = newPeopleError("password_text", "password", "La contraseña tiene caracteres de control")
	errPasswordRepeats  = newPeopleError("password_repeats", "password", "La contraseña repite lo mismo una y otra vez")
	errPasswordKeyboard = newPeopleError("password_keyboard", "password", "La contraseña sigue el orden del teclado o del abecedario")
	errPasswordOwn      = newPeopleError("password_own", "password", "La contraseña es tu nombre, tu email o el de la organización")
	errPasswordUsual    = newPeopleError("password_usual", "password", "La contraseña es de las más usadas")
)

var errPasswordWeak = [...]error{
	password.None: nil, password.Repeats: errPasswordRepeats, password.Keyboard: errPasswordKeyboard, password.Own: errPasswordOwn, password.Usual: errPasswordUsual,
}

// checkPassword returns why a new password is refused. own are texts with words that
// whoever knows the user would try.
func checkPassword(text string, withFactor bool, own ...string) error {
	least := minPassword
	if withFactor {
		least = minPasswordWithFactor
	}
	switch n := utf8.RuneCountInString(text); {
	case n < least:
		return errPasswordShort
	case n > maxPassword:
		return errPasswordLong
	case !utf8.ValidString(text) || strings.ContainsFunc(text, forbidden):
		return errPasswordText
	}
	return errPasswordWeak[password.WeaknessOf(text, own, "lealtad", "loyalty", "sello")]
}
