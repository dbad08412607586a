package main

import (
	"slices"

	"sello/internal/membercode"
)

// Joining (contract §25): somebody fills in a form on their phone, and gets a code for the counter.
// What was filled in is a pre-enrolment, no customer: nobody has seen yet who that is, and a contact
// that is known is not told from one that is not. The code is used once, within a day; then the page
// that showed it is the customer's card.
//
//	Y 'p' hash(32)   → pre-enrolment, by the SHA-256 of its token
//	Y 'j' org code   → that hash
//	Y 'q' org seq    → that hash, in the order in which they came
type preEnrolment struct {
	Org  uint32
	Seq  uint64
	Code string
	At   instant

	FirstName, LastName, Email, Phone string // normalized

	BirthDate birthDate
	Marketing bool // wants notices
}

func (p *preEnrolment) fields(c *coder) {
	uintField(c, &p.Org)
	c.uint(&p.Seq)
	c.text(&p.Code)
	c.instant(&p.At)
	c.text(&p.FirstName)
	c.text(&p.LastName)
	c.text(&p.Email)
	c.text(&p.Phone)
	uintField(c, &p.BirthDate)
	c.bool(&p.Marketing)
}

// joinLetter begins the code of a pre-enrolment; joinSymbols come after it.
const (
	joinLetter  = 'J'
	joinSymbols = 6
)

// A pre-enrolment is of use for joinLife; the sweep drops it soon after. Of an organization those of
// the last mostJoins that came are kept: so nobody who sends many shuts the door to the next one.
const (
	joinLife  instant = 24 * 60 * 60 * 1000
	mostJoins         = 10_000
)

func joinKey(hash []byte) key              { return append(newKey('Y').byte('p'), hash...) }
func joinCodeKey(org uint32, c string) key { return newKey('Y').byte('j').u32(org).text(c) }
func joinTurnsKey(org uint32) key          { return newKey('Y').byte('q').u32(org) }

// isOld reports whether a pre-enrolment is of no use any more.
func (p *preEnrolment) isOld(now instant) bool { return now >= p.At+joinLife }

// joinByToken finds the pre-enrolment of a token; nil if it opens none.
func joinByToken(tx Tx, token string, now instant) (*preEnrolment, error) {
	hash := tokenHash(token)
	p, err := get[preEnrolment](tx, joinKey(hash[:]))
	if p != nil && p.isOld(now) {
		p = nil
	}
	return p, err
}

// isJoinCode reports whether a text is a code of a pre-enrolment, be it one that nobody has.
func isJoinCode(text string) bool {
	return membercode.IsRandom(membercode.Plain(text), joinLetter, joinSymbols)
}

// prepare keeps a pre-enrolment, which gets its code, and returns its token.
func (ca *cardsTxn) prepare(p preEnrolment) (token string, err error) {
	if p.Seq, err = ca.makeRoom(); err != nil {
		return "", err
	}
	p.Org, p.At, p.Code = ca.t.org, ca.t.now, ""
	for try := uint64(0); p.Code == ""; try++ {
		secret := ca.t.secret("join code", p.Seq<<8+try)
		code := membercode.Random(joinLetter, secret[:joinSymbols])
		_, taken, err := ca.t.Get(joinCodeKey(p.Org, code))
		if err != nil {
			return "", err
		}
		if !taken {
			p.Code = code
		}
	}
	token = ca.newToken("join", p.Seq)
	hash := tokenHash(token)
	for _, k := range []key{joinCodeKey(p.Org, p.Code), joinTurnsKey(p.Org).u64(p.Seq)} {
		if err := ca.t.Put(k, hash[:]); err != nil {
			return "", err
		}
	}
	return token, ca.t.put(joinKey(hash[:]), &p)
}

// makeRoom drops the pre-enrolments before the last mostJoins, the next one counted, and returns its
// number.
func (ca *cardsTxn) makeRoom() (next uint64, err error) {
	turns := joinTurnsKey(ca.t.org)
	for e, err := range scan(ca.t.Tx, turns, true) {
		if err != nil {
			return 0, err
		}
		next = uintIn(e.Key[len(turns):])
		break
	}
	if next++; next <= mostJoins {
		return next, nil
	}
	var old [][]byte
	for e, err := range ca.t.Scan(turns, slices.Clone(turns).u64(next-mostJoins+1), false) {
		if err != nil {
			return 0, err
		}
		old = append(old, slices.Clone(e.Value))
	}
	for _, hash := range old {
		if err := dropJoin(ca.t.Tx, hash); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// dropJoin deletes the pre-enrolment with a hash, if there is one.
func dropJoin(tx Tx, hash []byte) error {
	p, err := get[preEnrolment](tx, joinKey(hash))
	if err != nil || p == nil {
		return err
	}
	for _, k := range []key{joinKey(hash), joinCodeKey(p.Org, p.Code), joinTurnsKey(p.Org).u64(p.Seq)} {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// joining finds the pre-enrolment with a code as people write it; join_code_not_found if there is
// none, or it is too old.
func (ca *cardsTxn) joining(code string) (p *preEnrolment, hash []byte, err error) {
	if isJoinCode(code) {
		if hash, _, err = ca.t.Get(joinCodeKey(ca.t.org, membercode.Plain(code))); err == nil && hash != nil {
			hash = slices.Clone(hash)
			p, err = get[preEnrolment](ca.t.Tx, joinKey(hash))
		}
	}
	if err == nil && (p == nil || p.isOld(ca.t.now)) {
		err = newError(codeJoinCodeNotFound)
	}
	return p, hash, err
}

// enrolment is what a pre-enrolment says about a customer, as of when it was sent.
func (p *preEnrolment) enrolment() enrolment {
	e := enrolment{FirstName: p.FirstName, LastName: p.LastName, Email: p.Email, Phone: p.Phone, BirthDate: p.BirthDate}
	if p.Marketing {
		e.Marketing, e.MarketingAt = consentGiven, p.At
	}
	return e
}

// A joinRequest is the use of a pre-enrolment at the counter.
type joinRequest struct {
	Code string
	Here bool // who enrols has seen that the person is the known customer

	// Shown is the id of the known customer whom who enrols was shown, "" if there was none; nil: nothing
	// was shown.
	Shown *string

	ExternalID string
	Attributes []attribute
}

// join enrols who filled in a pre-enrolment, whose page becomes the customer's card. A customer
// who has the contact already gets nothing of that, neither what the form says nor the card, unless the
// person is there: anybody can type somebody else's phone. The code is used up.
func (ca *cardsTxn) join(in joinRequest) (c *customer, created bool, err error) {
	p, hash, err := ca.joining(in.Code)
	if err != nil {
		return nil, false, err
	}
	e := p.enrolment()
	known, err := ca.t.customers.enrolled(e)
	if err != nil {
		return nil, false, err
	}
	shown := ""
	if known != nil {
		shown = known.ID.String()
	}
	if in.Shown != nil && *in.Shown != shown {
		return nil, false, newError(codePreconditionFailed)
	}
	if known != nil && !in.Here {
		return known, false, dropJoin(ca.t.Tx, hash)
	}
	e.ExternalID, e.Attributes = in.ExternalID, in.Attributes
	if c, err = ca.t.customers.enrolAs(known, e); err == nil {
		err = dropJoin(ca.t.Tx, hash)
	}
	if err == nil {
		_, err = ca.give(c, hash, never)
	}
	return c, known == nil, err
}

// forgetJoins drops the pre-enrolments that have a contact of any of some customers.
func (ca *cardsTxn) forgetJoins(family []*customer) error {
	contacts := map[string]bool{}
	for _, c := range family {
		contacts[c.Email], contacts[c.Phone] = true, true
	}
	if delete(contacts, ""); len(contacts) == 0 {
		return nil
	}
	hashes, err := keyValues(ca.t.Tx, joinTurnsKey(ca.t.org))
	if err != nil {
		return err
	}
	for some := range slices.Chunk(hashes, readAtOnce) {
		warm(ca.t.Tx, some, func(hash []byte) key { return joinKey(hash) })
		for _, hash := range some {
			p, err := get[preEnrolment](ca.t.Tx, joinKey(hash))
			if err == nil && p != nil && (contacts[p.Email] || contacts[p.Phone]) {
				err = dropJoin(ca.t.Tx, hash)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// keyValues are the values of the entries whose keys begin with prefix.
func keyValues(tx Tx, prefix key) (list [][]byte, err error) {
	for e, err := range scan(tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		list = append(list, slices.Clone(e.Value))
	}
	return list, nil
}
