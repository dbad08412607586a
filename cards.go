package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"

	"sello/internal/throttle"
	"sello/internal/totp"
)

// A card is a secret address that shows its customer what the customer has (contract §25). A
// customer has one card at most: a new one ends the one before. Of its token, which the address
// ends in, the store has only the hash; so an address is shown once, and nothing that is kept,
// logged or exported leads to a card.
//
//	Y 'c' hash(32)   → card, by the SHA-256 of its token
//	c org cust 11    → that hash, and when the card expires u64
type card struct {
	Org       uint32
	Customer  id
	CreatedAt instant
	Expires   instant // never: it does not
	By        creator
}

func (d *card) fields(c *coder) {
	uintField(c, &d.Org)
	c.id(&d.Customer)
	c.instant(&d.CreatedAt)
	c.instant(&d.Expires)
	d.By.fields(c)
}

// tokenLength is how many symbols a card's token has: 130 random bits in base 32.
const tokenLength = 26

// maxCardDays is for how many days a card may be good at most.
const maxCardDays = 3650

func cardKey(hash []byte) key { return append(newKey('Y').byte('c'), hash...) }

// cardOf reads the card with a hash; nil if there is none, or it has expired.
func cardOf(tx Tx, hash []byte, now instant) (*card, error) {
	d, err := get[card](tx, cardKey(hash))
	if d != nil && d.Expires <= now {
		d = nil
	}
	return d, err
}

// cardByToken finds the card of a token; nil if it opens none. One of another length is looked for
// like any other, and takes as long.
func cardByToken(tx Tx, token string, now instant) (*card, error) {
	hash := tokenHash(token)
	return cardOf(tx, hash[:], now)
}

// A cardsTxn is cards in a transaction.
type cardsTxn struct {
	t     *txn
	wrong *throttle.Strikes[id, instant] // wrong digits, by customer; the engine's
	at    string                         // what addresses begin with (engine.cardsAt)
}

// has reports whether a customer has a card that is good now.
func (ca *cardsTxn) has(c *customer) (bool, error) {
	hash, err := ca.hashOf(c.ID)
	return hash != nil, err
}

// hashOf returns the hash of a customer's card that is good now; nil if there is none. It reads nothing
// of the part that all organizations share, so that those who spend do not wait for each other.
func (ca *cardsTxn) hashOf(cust id) ([]byte, error) {
	value, _, err := ca.t.Get(ca.t.scratchKey(cust, partCard))
	if hash, expires := cutCardLink(value); err == nil && expires > ca.t.now {
		return bytes.Clone(hash), nil
	}
	return nil, err
}

// cutCardLink takes apart what leads from a customer to its card; nil and 0 if it is none.
func cutCardLink(value []byte) (hash []byte, expires instant) {
	if len(value) != sha256.Size+8 {
		return nil, 0
	}
	return value[:sha256.Size], instant(binary.BigEndian.Uint64(value[sha256.Size:]))
}

// issue gives a customer a card that is good for some days, to the end of the last of them, or,
// with 0, until it is revoked. The token is not kept and cannot be shown again.
func (ca *cardsTxn) issue(cust id, days int) (c *customer, d *card, token string, err error) {
	if c, err = ca.t.customers.get(cust); err != nil {
		return nil, nil, "", err
	}
	expires := never
	if days > 0 {
		expires = endOfDays(ca.t.now, days, ca.t.cfg.zone)
	}
	token = ca.newToken("card", c.Number)
	hash := tokenHash(token)
	d, err = ca.give(c, hash[:], expires)
	return c, d, token, err
}

// newToken makes a token that nothing kept tells; number is one of its purpose alone.
func (ca *cardsTxn) newToken(purpose string, number uint64) string {
	secret := ca.t.secret(purpose, number)
	return base32.StdEncoding.EncodeToString(secret[:])[:tokenLength]
}

// give makes the token with a hash that of a customer's card, in place of the one before, and tells of
// it.
func (ca *cardsTxn) give(c *customer, hash []byte, expires instant) (*card, error) {
	if err := c.mustBeActive(); err != nil {
		return nil, err
	}
	if _, err := ca.end(c); err != nil {
		return nil, err
	}
	d := &card{Org: ca.t.org, Customer: c.ID, CreatedAt: ca.t.now, Expires: expires, By: ca.t.by}
	if err := ca.t.put(cardKey(hash), d); err != nil {
		return nil, err
	}
	link := binary.BigEndian.AppendUint64(bytes.Clone(hash), uint64(expires))
	if err := ca.t.Put(customerKey(ca.t.org, c.ID, partCard), link); err != nil {
		return nil, err
	}
	return d, ca.tell(c, auditCardIssued, eventCardIssued)
}

// revoke ends a customer's card, if there is one.
func (ca *cardsTxn) revoke(cust id) (*customer, error) {
	c, err := ca.t.customers.get(cust)
	if err == nil {
		err = c.mustBeShown()
	}
	if err != nil {
		return nil, err
	}
	if had, err := ca.end(c); err != nil || !had {
		return c, err
	}
	return c, ca.tell(c, auditCardRevoked, eventCardRevoked)
}

// end deletes a customer's card, and reports whether there was one.
func (ca *cardsTxn) end(c *customer) (had bool, err error) {
	k := customerKey(ca.t.org, c.ID, partCard)
	link, had, err := ca.t.Get(k)
	if err != nil || !had {
		return false, err
	}
	hash, _ := cutCardLink(link)
	if err := ca.t.Delete(cardKey(hash)); err != nil {
		return false, err
	}
	return true, ca.t.Delete(k)
}

// tell writes the entry of the audit log, and the event, which refers to that entry.
func (ca *cardsTxn) tell(c *customer, action string, kind eventKind) error {
	if err := ca.t.audit.note(action, c.ID.String(), nil); err != nil {
		return err
	}
	n, err := ca.t.count()
	if err != nil {
		return err
	}
	return ca.t.feed.emit(kind, c.Number, n.Audit)
}

// Proof that the customer is there (contract §25): the page of a card shows six digits, which change
// every proofStep. They are HOTP's (RFC 4226), with a key made of the organization's secret and of
// the card's hash: so nothing is stored for them, and another card ends them.

// proofStep is how long digits last, in milliseconds; those before them are good for as long again.
const proofStep instant = 120_000

// digits are those of the card with a hash, of a step.
func (c *config) digits(hash []byte, step instant) string {
	mac := hmac.New(sha256.New, c.codeSecret)
	mac.Write([]byte("card digits"))
	mac.Write(hash)
	return totp.HOTP(mac.Sum(nil), uint64(step), totp.Digits)
}

// digitsOf are the digits of a customer's card now.
func (ca *cardsTxn) digitsOf(c *customer) (string, error) {
	hash, err := ca.hashOf(c.ID)
	return ca.t.cfg.digits(hash, ca.t.now/proofStep), err
}

// A givenProof is what a request says to prove that a customer is there.
type givenProof struct {
	Text   string // the code and the digits, as they were scanned or typed
	Waived string // why somebody who may waive it did; "": nobody did
}

// prove refuses what takes points of a customer, unless so few need no proof or the one given is good.
// Who tries wrong digits too often is refused with good ones too, for a while.
func (ca *cardsTxn) prove(c *customer, points decimal, given givenProof) error {
	t, d := ca.t, ca.t.cfg.cards()
	switch by := t.by.Type; {
	case d.Proof != proofSpending || points < d.ProofFrom || points == 0 || t.rehearsing:
		return nil
	case by != byKey && by != byUser, t.byKey != nil && t.byKey.NoProof:
		return nil
	case given.Waived != "":
		return t.audit.note(auditProofWaived, c.ID.String(), []change{{"points", nil, points}, {"reason", nil, given.Waived}})
	case given.Text == "":
		return newError(codeProofRequired).on("proof")
	}
	h := fnv.New64a()
	h.Write(t.seed[:])
	h.Write([]byte(given.Text))
	mark := h.Sum64()
	if wait := ca.wrong.Wait(c.ID, t.now, mark); wait > 0 {
		return newError(codeProofLocked).on("proof").retryAfter(wait)
	}
	good, err := ca.isProof(c, given.Text)
	if err == nil && !good {
		ca.wrong.Add(c.ID, t.now, mark)
		err = newError(codeProofInvalid).on("proof")
	}
	return err
}

// isProof reports whether a text is a customer's code with the digits that the card shows now, or
// showed just before.
func (ca *cardsTxn) isProof(c *customer, text string) (bool, error) {
	code, digits := cutProof(text)
	owner, err := ca.t.customers.byMemberCode(code)
	if err != nil || owner == nil || owner.ID != c.ID || digits == "" {
		return false, err
	}
	hash, err := ca.hashOf(c.ID)
	if err != nil || hash == nil {
		return false, err
	}
	step := ca.t.now / proofStep
	current := subtle.ConstantTimeCompare([]byte(digits), []byte(ca.t.cfg.digits(hash, step)))
	before := subtle.ConstantTimeCompare([]byte(digits), []byte(ca.t.cfg.digits(hash, step-1)))
	return current|before == 1, nil
}
