// Package totp is codes that change every 30 seconds (RFC 6238: HMAC-SHA-1, 6 digits), and the
// texts in which people and apps are given their secrets.
package totp

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	Step   = 30_000 // milliseconds that a code lasts
	Digits = 6
	Secret = 20 // bytes of a secret (RFC 4226 §4, R6)
)

// Base32 is what secrets are written in.
var Base32 = base32.StdEncoding.WithPadding(base32.NoPadding)

// HOTP returns the code of a counter (RFC 4226 §5.3).
func HOTP(secret []byte, counter uint64, digits int) string {
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, counter))
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	most := uint32(1)
	for range digits {
		most *= 10
	}
	return fmt.Sprintf("%0*d", digits, n%most)
}

// Code returns the code at a moment, in Unix milliseconds.
func Code(secret []byte, now int64) string { return HOTP(secret, uint64(now/Step), Digits) }

// Find returns the step at a moment whose code is given, one step early or late, above a last
// one; 0 if there is none.
func Find(secret []byte, code string, now, last int64) (step int64) {
	for at := now/Step - 1; at <= now/Step+1; at++ {
		if at > last && subtle.ConstantTimeCompare([]byte(HOTP(secret, uint64(at), Digits)), []byte(code)) == 1 {
			step = at
		}
	}
	return step
}

// Plain returns a code or a secret as it was made, however it was typed.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return -1
	}, text)
}

// InFours writes a text in groups of four.
func InFours(text string) string {
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for part := range slices.Chunk([]byte(text), 4) {
			if !yield(string(part)) {
				return
			}
		}
	}), "-")
}

// Link returns the address by which an app takes the secret of an account.
func Link(issuer, account, secret string) string {
	v := url.Values{"secret": {secret}, "issuer": {issuer}}
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(account) + "?" + v.Encode()
}
