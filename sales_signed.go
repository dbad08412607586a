package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A till without a network makes a ticket by itself (contract §26): a text that says what was bought, and
// a MAC that only who has the secret of an API key can make. The text has six parts with dots between:
//
//	1 . number of the key . externalId, base64url . amount × 10,000 . Unix seconds . MAC, base64url
//
// The MAC is the first 16 bytes of HMAC-SHA-256, with the secret's text as the key, over the text before
// the last dot. A number is of one key in the whole file and never given again; a rotation of the key
// hands it on.
//
//	Y 'n' signer u16 → whose the number is, and when its earlier secrets end
//
// Secrets are made from the organization's (engine.go), the number and how many there were before: so
// they are not stored.
type ticketSigner struct {
	Org  uint32
	Key  id
	Ends []uint64 // moments when the secrets before the one of now end, oldest first
}

func (d *ticketSigner) fields(c *coder) {
	uintField(c, &d.Org)
	c.id(&d.Key)
	c.uints(&d.Ends)
}

func ticketSignerKey(number uint16) key {
	return binary.BigEndian.AppendUint16(newKey('Y').byte('n'), number)
}

const (
	signedVersion      = "1"
	signedMAC          = 16   // bytes
	maxSignedText      = 1500 // bytes
	ticketSecretPrefix = "tks_"
	ticketSecretBytes  = 24
)

// ticketSecret is a secret of a number, as a till is given it: the one that came after so many others.
func (c *config) ticketSecret(number uint16, before int) string {
	mac := hmac.New(sha256.New, c.codeSecret)
	mac.Write([]byte("ticket secret"))
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(nil, number), uint64(before)))
	return ticketSecretPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:ticketSecretBytes])
}

// newSecret makes another secret of a key, which gets a number if it has none, and returns how many it has
// had. The caller saves the key.
func (ti *ticketsTxn) newSecret(k *apiKey) (secrets int, secret string, err error) {
	signer := &ticketSigner{Org: ti.t.org, Key: k.ID}
	if k.TicketNumber == 0 {
		k.TicketNumber, err = ti.nextNumber()
	} else if signer, err = existing[ticketSigner](ti.t.Tx, ticketSignerKey(k.TicketNumber)); err == nil {
		signer.Ends = append(signer.Ends, uint64(endOfDays(ti.t.now, ti.t.cfg.tickets().Days, ti.t.cfg.zone)))
	}
	if err != nil {
		return 0, "", err
	}
	before := len(signer.Ends)
	return before + 1, ti.t.cfg.ticketSecret(k.TicketNumber, before), ti.t.put(ticketSignerKey(k.TicketNumber), signer)
}

// nextNumber returns a number that no key has had.
func (ti *ticketsTxn) nextNumber() (uint16, error) {
	all := tableTicketSigners.fixed()
	for e, err := range scan(ti.t.Tx, all, true) {
		if err != nil {
			return 0, err
		}
		last := binary.BigEndian.Uint16(e.Key[len(all):])
		if last == 1<<16-1 {
			return 0, operatorErrorf("", "este archivo ya dio los %d números con que se firman tickets", last)
		}
		return last + 1, nil
	}
	return 1, nil
}

// handOn makes a key sign in the place of the one that it was rotated from.
func (ti *ticketsTxn) handOn(k *apiKey) error {
	if k.TicketNumber == 0 {
		return nil
	}
	signer, err := existing[ticketSigner](ti.t.Tx, ticketSignerKey(k.TicketNumber))
	if err != nil {
		return err
	}
	signer.Key = k.ID
	return ti.t.put(ticketSignerKey(k.TicketNumber), signer)
}

// ticketMAC is the last part of a signed text, of the text before the last dot.
func ticketMAC(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:signedMAC])
}

// A signedTicket is what a signed text says.
type signedTicket struct {
	number     uint16
	externalID string
	total      decimal
	at         instant
	text, mac  string // what is signed, and the MAC
}

// readSigned takes a signed text apart, whoever signed it; false if it is none.
func readSigned(text string) (x signedTicket, ok bool) {
	parts := strings.Split(text, ".")
	if len(text) > maxSignedText || len(parts) != 6 || parts[0] != signedVersion {
		return x, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return x, false
	}
	external, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return x, false
	}
	amount, err := strconv.ParseUint(parts[3], 10, 63)
	if err != nil {
		return x, false
	}
	seconds, err := strconv.ParseUint(parts[4], 10, 40)
	if err != nil {
		return x, false
	}
	x = signedTicket{
		number: uint16(number), externalID: string(external), total: decimal(amount), at: instant(seconds) * 1000,
		text: strings.Join(parts[:5], "."), mac: parts[5],
	}
	named := x.externalID != "" && x.externalID == trimBlanks(x.externalID) && utf8.ValidString(x.externalID) &&
		utf8.RuneCountInString(x.externalID) <= maxExternalID && !strings.ContainsFunc(x.externalID, forbidden)
	return x, named && x.total > 0 && x.total <= maxDecimal
}

// signed returns the ticket that a signed text is: the one that is kept, or one without an id. A text
// that no key of the organization signed, or one from the future, is ticket_invalid.
func (ti *ticketsTxn) signed(in signedTicket) (*ticket, error) {
	invalid := newError(codeTicketInvalid).on("ticket")
	signer, err := get[ticketSigner](ti.t.Tx, ticketSignerKey(in.number))
	if err != nil {
		return nil, err
	}
	if signer == nil || signer.Org != ti.t.org || !ti.isSigned(in, signer) || in.at > ti.t.now+aheadSlack {
		return nil, invalid
	}
	k, err := keyWithID(ti.t.Tx, ti.t.org, signer.Key)
	if err != nil {
		return nil, err
	}
	ended := k == nil || k.RevokedAt != 0 || k.ExpiresAt != 0 && k.ExpiresAt <= ti.t.now
	known, err := ti.called(in.externalID)
	switch {
	case err != nil:
		return nil, err
	case ended && (known == nil || known.State == ticketOpen): // who has its secret can date back
		return nil, invalid
	case known != nil && known.Total != in.total:
		if err := ti.mustBeClaimable(known); err != nil {
			return nil, err
		}
		return nil, newError(codeExternalIDConflict).on("ticket").with("ticketId", known.ID)
	case known != nil:
		return known, nil
	}
	x := &ticket{
		By: creator{Type: byKey, ID: signer.Key}, State: ticketOpen, ExternalID: in.externalID, Total: in.total,
		OccurredAt: max(min(in.at, ti.t.now), 1),
	}
	x.Expires = ti.expiryOf(x)
	return x, nil
}

// ticketOrganization is whose a ticket is, by its code or as it was signed, whoever signed it; 0 if it is
// nobody's.
func ticketOrganization(tx Tx, text string) (uint32, error) {
	in, is := readSigned(text)
	if !is {
		org, _, err := ticketByCode(tx, text)
		return org, err
	}
	signer, err := get[ticketSigner](tx, ticketSignerKey(in.number))
	if err != nil || signer == nil {
		return 0, err
	}
	return signer.Org, nil
}

// mustBeUnsold refuses a signed ticket that the store has not seen if its purchase was registered and
// undone, or brought back without having been registered, or if such a ticket may have been dropped. It does
// not go by the till's clock.
func (ti *ticketsTxn) mustBeUnsold(x *ticket) error {
	n, err := ti.t.count()
	if err != nil {
		return err
	}
	if x.OccurredAt < n.TicketsDropped {
		return newError(codeTicketExpired)
	}
	for s, err := range ti.t.sales.called(x.ExternalID) {
		switch {
		case err != nil:
			return err
		case s.Type == typeReturn && s.Previous == id{}:
			return newError(codeTicketCancelled)
		case s.Type == typePurchase && s.Total == x.Total:
			return newError(codeTicketRegistered).with("transactionId", s.ID)
		}
	}
	return nil
}

// isSigned reports whether a ticket's MAC is of the signer's secret, or of one before that is still good.
func (ti *ticketsTxn) isSigned(in signedTicket, signer *ticketSigner) bool {
	if ti.t.cfg.codeSecret == nil { // lost: anybody could make the secrets
		return false
	}
	for before := len(signer.Ends); before >= 0; before-- {
		if before < len(signer.Ends) && instant(signer.Ends[before]) <= ti.t.now {
			continue
		}
		if hmac.Equal([]byte(in.mac), []byte(ticketMAC(ti.t.cfg.ticketSecret(in.number, before), in.text))) {
			return true
		}
	}
	return false
}
