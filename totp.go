package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	rfc4648 "encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The second factor of a user is a code that changes every 30 seconds (RFC 6238: HMAC-SHA-1,
// 6 digits), or one of ten recovery codes, each good once. A code is accepted one step
// early or late, and only above the last step that was accepted, so that nobody can use it
// again who has seen it.

const (
	totpStep      = 30_000 // milliseconds
	totpDigits    = 6
	totpSecret    = 20 // bytes (RFC 4226 §4, R6)
	recoveryCodes = 10
	recoveryBytes = 10 // of random: 16 letters and digits
	codeTries     = 5  // of a half session
)

// A secondFactor is what is kept of one.
type secondFactor struct {
	Secret   []byte // as it is: codes are computed from it
	Since    instant
	LastStep int64    // of the code that was accepted last
	Recovery [][]byte // SHA-256 of the codes that are left
}

func (f *secondFactor) fields(c *coder) {
	c.bytes(&f.Secret)
	c.instant(&f.Since)
	intField(c, &f.LastStep)
	listField(c, &f.Recovery, func(hash *[]byte, c *coder) { c.bytes(hash) })
}

var (
	errCodeWrong   = newPeopleError("code_wrong", "factorCode", "El código no es correcto")
	errFactorThere = newPeopleError("factor_there", "", "Ya hay un segundo factor: primero quita el que hay")
	errFactorNone  = newPeopleError("factor_none", "", "No hay segundo factor")
)

// factorOf returns the second factor of a user; nil if there is none.
func factorOf(tx Tx, user id) (*secondFactor, error) {
	return get[secondFactor](tx, userKey(user, partFactor))
}

// lacksFactor reports whether a member has to set up a second factor before anything else:
// whoever runs the server, and the roles that an owner has named.
func lacksFactor(tx Tx, m *member, cfg *config) (bool, error) {
	if !m.user.Operator && !slices.Contains(cfg.Organization.Settings.SecondFactor, m.role) {
		return false, nil
	}
	f, err := factorOf(tx, m.user.ID)
	return f == nil, err
}

// hotp returns the code of a counter (RFC 4226 §5.3).
func hotp(secret []byte, counter uint64, digits int) string {
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

// stepOf returns the step at a moment whose code is given, above a last one; 0 if there is
// none.
func stepOf(secret []byte, code string, now instant, last int64) (step int64) {
	for at := int64(now)/totpStep - 1; at <= int64(now)/totpStep+1; at++ {
		if at > last && subtle.ConstantTimeCompare([]byte(hotp(secret, uint64(at), totpDigits)), []byte(code)) == 1 {
			step = at
		}
	}
	return step
}

// accept uses up a code, and reports whether it is one of the factor's.
func (f *secondFactor) accept(code string, now instant) bool {
	code = plainCode(code)
	if len(code) == totpDigits {
		step := stepOf(f.Secret, code, now, f.LastStep)
		if step > 0 {
			f.LastStep = step
		}
		return step > 0
	}
	hash := sha256.Sum256([]byte(code))
	at := -1
	for i, kept := range f.Recovery {
		if subtle.ConstantTimeCompare(hash[:], kept) == 1 {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	f.Recovery = slices.Delete(slices.Clone(f.Recovery), at, at+1)
	return true
}

// plainCode returns a code as it was made, however it was typed.
func plainCode(text string) string {
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

var codeBase32 = rfc4648.StdEncoding.WithPadding(rfc4648.NoPadding)

// inFours writes a text in groups of four.
func inFours(text string) string {
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for part := range slices.Chunk([]byte(text), 4) {
			if !yield(string(part)) {
				return
			}
		}
	}), "-")
}

// factorLink returns the address by which an app takes a secret.
func factorLink(secret, email string) string {
	v := url.Values{"secret": {secret}, "issuer": {"sello"}}
	return "otpauth://totp/sello:" + url.PathEscape(email) + "?" + v.Encode()
}

// addFactor gives a member a second factor whose secret it was shown, if the code is the
// secret's. The code counts as used. All other sessions of the user end, since they came in
// without. It returns the recovery codes, which cannot be shown again.
func (p *peopleTxn) addFactor(m *member, secret, code string) (recovery []string, err error) {
	raw, err := codeBase32.DecodeString(secret)
	if err != nil {
		return nil, err
	}
	if old, err := factorOf(p.t.Tx, m.user.ID); err != nil || old != nil {
		if err == nil {
			err = errFactorThere
		}
		return nil, err
	}
	f := &secondFactor{Secret: raw, Since: p.t.now}
	if len(plainCode(code)) != totpDigits || !f.accept(code, p.t.now) {
		return nil, errCodeWrong
	}
	if recovery, err = p.newRecovery(m.user.ID, f); err != nil {
		return nil, err
	}
	if _, err := p.endSessions(m.user.ID, 0, &m.hash); err != nil {
		return nil, err
	}
	return recovery, p.noteEverywhere(m.user.ID, auditUserChanged, []change{{"secondFactor", nil, true}})
}

// newRecovery stores a factor with new recovery codes.
func (p *peopleTxn) newRecovery(user id, f *secondFactor) (codes []string, err error) {
	f.Recovery = nil
	for range recoveryCodes {
		var random [recoveryBytes]byte
		p.t.bytes(random[:])
		code := codeBase32.EncodeToString(random[:])
		hash := sha256.Sum256([]byte(code))
		codes, f.Recovery = append(codes, inFours(code)), append(f.Recovery, hash[:])
	}
	return codes, p.saveFactor(user, f)
}

func (p *peopleTxn) saveFactor(user id, f *secondFactor) error {
	return p.t.put(userKey(user, partFactor), f)
}

// forgetFactor takes away a user's second factor, if there is one, and returns what changed
// for the audit log.
func (p *peopleTxn) forgetFactor(user id) ([]change, error) {
	f, err := factorOf(p.t.Tx, user)
	if err != nil || f == nil {
		return nil, err
	}
	return []change{{"secondFactor", true, nil}}, p.t.Delete(userKey(user, partFactor))
}
