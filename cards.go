package main

import (
	"bytes"
	"encoding/base32"
)

// A card is a secret address that shows its customer what the customer has (contract §25). A
// customer has one card at most: a new one ends the one before. Of its token, which the address
// ends in, the store has only the hash; so an address is shown once, and nothing that is kept,
// logged or exported leads to a card.
//
//	Y 'c' hash(32)   → card, by the SHA-256 of its token
//	c org cust 11    → that hash
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
type cardsTxn struct{ t *txn }

// has reports whether a customer has a card that is good now.
func (ca *cardsTxn) has(c *customer) (bool, error) {
	hash, ok, err := ca.t.Get(ca.t.scratchKey(c.ID, partCard))
	if err != nil || !ok {
		return false, err
	}
	d, err := cardOf(ca.t.Tx, hash, ca.t.now)
	return d != nil, err
}

// issue gives a customer a card that is good for some days, to the end of the last of them, or,
// with 0, until it is revoked. The token is not kept and cannot be shown again.
func (ca *cardsTxn) issue(cust id, days int) (c *customer, d *card, token string, err error) {
	if c, err = ca.t.customers.get(cust); err == nil {
		err = c.mustBeActive()
	}
	if err == nil {
		_, err = ca.end(c)
	}
	if err != nil {
		return nil, nil, "", err
	}
	expires := never
	if days > 0 {
		expires = endOfDays(ca.t.now, days, ca.t.cfg.zone)
	}
	token = ca.newToken("card", c.Number)
	hash := tokenHash(token)
	d, err = ca.keep(c, hash[:], expires)
	return c, d, token, err
}

// newToken makes a token that nothing kept tells; number is one of its purpose alone.
func (ca *cardsTxn) newToken(purpose string, number uint64) string {
	secret := ca.t.secret(purpose, number)
	return base32.StdEncoding.EncodeToString(secret[:])[:tokenLength]
}

// keep stores a customer's card, and tells of it. The customer has no other one.
func (ca *cardsTxn) keep(c *customer, hash []byte, expires instant) (*card, error) {
	d := &card{Org: ca.t.org, Customer: c.ID, CreatedAt: ca.t.now, Expires: expires, By: ca.t.by}
	if err := ca.t.put(cardKey(hash), d); err != nil {
		return nil, err
	}
	if err := ca.t.Put(customerKey(ca.t.org, c.ID, partCard), hash); err != nil {
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
	hash, had, err := ca.t.Get(k)
	if err != nil || !had {
		return false, err
	}
	if err := ca.t.Delete(cardKey(bytes.Clone(hash))); err != nil {
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
