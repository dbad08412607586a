package main

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"
	"strconv"
)

// Movements, the lines of the ledger. A movement never changes once it is written, except that its
// comment can be erased.

// A use is what one movement took from, or gave back to, one lot.
type use struct {
	Seq     uint64 // sequence of the lot's credit
	Amount  decimal
	Expires instant
}

// A movement is one line of the ledger.
type movement struct {
	Seq uint64 // from the key

	Customer    id
	Program     uint32
	Category    string
	Amount      decimal // above zero: a credit; below: a debit
	Balance     decimal // after it
	Pending     decimal // after it
	Comment     string  // "" if it has none, or it was erased
	AvailFrom   instant // of a credit that was pending; else 0
	Expires     instant // of a credit; never if it does not expire
	Transaction id      // zero if not of a sale
	Redemption  id      // zero if not of a redemption
	CreatedAt   instant
	Link        link  // the account's chain
	Uses        []use // lots that a debit took from, that a refund gave back to, or that a Merge moved
	By          creator
	CommentHash ledgerHash // of a comment that it has or had; else zero
	Hash        ledgerHash // of the fields above, and of the movement before (model_ledger.go)

	CommentSalt commentSalt // of Comment; zero without

	Hold id // that the movement belongs to; zero: none

	Reference   string // no other movement of the organization has it; "" without
	ExpiryAsked bool   // who gave Reference asked for Expires
}

// A movement's record:
//
//	| fields | optional fields, each after its tag | 0 | salt (16) and comment, if it has one | Hash |
//
// Hash covers all through the 0, so a comment can be erased and the chain stays. One of
// the fields is the comment's hash, so a comment cannot be changed (hashComment).

// Tags of a movement's optional fields.
const (
	movementComment   = 1
	movementHold      = 2
	movementReference = 3
)

func (m *movement) fields(c *coder) {
	m.hashedFields(c)
	m.commentField(c)
	c.hash(&m.Hash)
}

func (m *movement) hashedFields(c *coder) {
	c.id(&m.Customer) // first, and then the link: customerIn and linkIn read no further
	m.Link.fields(c)
	uintField(c, &m.Program)
	c.word(allCategories, &m.Category)
	c.decimal(&m.Amount)
	c.decimal(&m.Balance)
	c.decimal(&m.Pending)
	c.instant(&m.AvailFrom)
	c.instant(&m.Expires)
	c.idOrNone(&m.Transaction)
	c.idOrNone(&m.Redemption)
	c.instant(&m.CreatedAt)
	listField(c, &m.Uses, (*use).fields)
	m.By.fields(c)
	optionalField(c, movementComment, &m.CommentHash, (*coder).hash)
	optionalField(c, movementHold, &m.Hold, (*coder).id)
	if c.optional(movementReference, m.Reference != "") {
		c.text(&m.Reference)
		c.bool(&m.ExpiryAsked)
	}
	c.end()
}

func (u *use) fields(c *coder) { c.uint(&u.Seq); c.decimal(&u.Amount); c.instant(&u.Expires) }

// hashed returns the part of a movement's record that Hash covers.
func (m *movement) hashed(record []byte) []byte {
	rest := len(m.Hash)
	if m.Comment != "" {
		rest += saltSize + len(m.Comment)
	}
	return record[:len(record)-rest]
}

// id is the movement's identifier. It is derived from the customer and Seq, so
// a record that keeps a movement's Seq, such as a lot, need not keep its id.
func (m *movement) id() id { return movementID(m.Customer, m.Seq) }

func movementID(cust id, seq uint64) id {
	return cust.derive("movement", strconv.FormatUint(seq, 10))
}

const (
	typeCredit = "Credit"
	typeDebit  = "Debit"
)

func (m *movement) movementType() string {
	if m.Amount < 0 {
		return typeDebit
	}
	return typeCredit
}

// Categories of movements (spec: Points movement categories). Clients cannot
// give Expiration, Return, Merge, Hold and Release: only the system records them.
const (
	categoryExpiration = "Expiration"
	categoryReturn     = "Return"
	categoryMerge      = "Merge"   // moves a lot or a debt to another customer (merges.go)
	categoryHold       = "Hold"    // sets points aside (points_holds.go)
	categoryRelease    = "Release" // ends that
	categoryRefund     = "Refund"
	categoryBonus      = "Bonus"
	categoryPurchase   = "Purchase"
	categoryRedemption = "Redemption"
	categoryAdjustment = "Adjustment"
)

var (
	addCategories    = []string{"Purchase", "Bonus", "Referral", "Campaign", "Loyalty", "Refund", "Interest", "AdminBonus", "Adjustment"}
	deductCategories = []string{"Redemption", "Fee", "Penalty", "AdminDeduction", "Exchange", "Adjustment"}

	// The file depends on the order of allCategories: another one comes last.
	allCategories = slices.Concat(addCategories, deductCategories[:len(deductCategories)-1], []string{categoryExpiration, categoryReturn, categoryMerge, categoryHold, categoryRelease}) // Adjustment once
)

// isEarning reports whether a credit counts for lifetime points and tiers. All do
// except a Refund of what was spent, an Adjustment, which corrects a mistake, a
// Merge, whose points the other customer earned, and a Release of the customer's own.
func isEarning(category string) bool {
	switch category {
	case categoryRefund, categoryAdjustment, categoryMerge, categoryRelease:
		return false
	}
	return true
}

// earningCategories are the categories in which a rule can give its points.
func earningCategories() []string {
	return slices.DeleteFunc(slices.Clone(addCategories), func(c string) bool { return !isEarning(c) })
}

// isEarned reports whether a movement has what a purchase earned. The credit of what pays for a
// purchase and comes back names lots.
func (m *movement) isEarned() bool {
	return m.Amount > 0 && m.Transaction != (id{}) && len(m.Uses) == 0
}

// record appends a movement to the ledger and to its account's chain. The
// caller has already changed the account's balance.
func (pt *pointsTxn) record(a *account, m *movement) error {
	n, err := pt.t.count()
	if err != nil {
		return err
	}
	if m.Category == categoryRedemption && m.Amount < 0 {
		pt.redeemed(a, m.CreatedAt)
	}
	n.Movements++
	m.Seq = n.Movements
	m.Customer, m.Program, m.Balance, m.Pending = a.customer.ID, a.program.Number, a.Balance, a.Pending
	m.Link = a.Movements.append(m.Seq)
	s, err := pt.t.stats.tally(m.Program, m.CreatedAt)
	if err != nil {
		return err
	}
	s.countMovement(m)
	if m.By == (creator{}) {
		m.By = pt.t.by
	}
	if m.Category == categoryExpiration {
		m.By = creator{Type: bySystem} // whoever came upon it
	}
	pt.hashComment(m)
	c := pt.t.scratch()
	m.hashedFields(c)
	m.Hash = hashMovement(a.Hash, pt.t.org, m.Seq, c.b)
	a.Hash = m.Hash
	m.commentField(c)
	c.hash(&m.Hash)
	if err := pt.t.Put(pt.movementKey(m.Seq), c.b); err != nil {
		return err
	}
	if m.Reference != "" {
		if err := pt.t.Put(pt.referenceKey(m.Reference).u64(m.Seq), nil); err != nil {
			return err
		}
	}
	return pt.emitMovement(m)
}

// isDatedNow reports whether a movement has the moment at which it was written. Movements of
// sales, expiries and releases may have an earlier moment.
func (m *movement) isDatedNow() bool {
	return m.Transaction == (id{}) && m.Category != categoryExpiration && m.Category != categoryRelease
}

// writtenAt is when a movement was written; of an expiry or a release, when it happened.
func (m *movement) writtenAt() instant { return cmp.Or(m.Transaction.madeAt(), m.CreatedAt) }

// takenAt is when the points of a debit left the balance: of a capture, when they were held.
func (m *movement) takenAt() instant { return cmp.Or(m.Hold.madeAt(), m.writtenAt()) }

// isGiveBack reports whether a movement is a refund that returned points to their
// lots. Other refunds make a new lot.
func (m *movement) isGiveBack() bool { return m.Category == categoryRefund && len(m.Uses) > 0 }

// movementKey is the key of a movement. The next call of scratchKey or scratchOrgKey
// overwrites it.
func (pt *pointsTxn) movementKey(seq uint64) key { return pt.t.scratchOrgKey('m').u64(seq) }

func (pt *pointsTxn) movement(seq uint64) (*movement, error) {
	k := pt.movementKey(seq)
	m, err := existing[movement](pt.t.Tx, k)
	if err != nil {
		return nil, err
	}
	m.Seq = seq
	if m.Comment != "" && m.CommentHash != m.commentHash() {
		return nil, unreadable(k)
	}
	return m, nil
}

// listMovements returns a page of an account's ledger, newest first, and how many
// movements there are. If keep is not nil, it chooses among them. Only what is
// written is listed: an expiry that is due appears at the latest with the sweep.
func (pt *pointsTxn) listMovements(c *customer, prog *program, p page, keep func(*movement) bool) ([]*movement, uint64, error) {
	a, err := pt.storedAccount(c, prog)
	if err != nil {
		return nil, 0, err
	}
	linkAt := func(seq uint64) (link, error) {
		m, err := pt.movement(seq)
		if err != nil {
			return link{}, err
		}
		return m.Link, nil
	}
	if keep == nil {
		first, last, ok := p.span(a.Movements.N)
		if !ok {
			return nil, a.Movements.N, nil
		}
		seq, err := a.Movements.seek(first, linkAt)
		if err != nil {
			return nil, 0, err
		}
		var list []*movement
		for n := first; n >= last; n-- {
			m, err := pt.movement(seq)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, m)
			seq = m.Link.Prev
		}
		return list, a.Movements.N, nil
	}
	var (
		list  []*movement
		total uint64
	)
	for m, err := range pt.chainFrom(a.Movements.last()) {
		if err != nil {
			return nil, 0, err
		}
		if keep(m) {
			if total >= p.skip() && uint64(len(list)) < p.limit {
				list = append(list, m)
			}
			total++
		}
	}
	return list, total, nil
}

// chainFrom yields the movement at seq and its predecessors in the chain, newest first.
func (pt *pointsTxn) chainFrom(seq uint64) iter.Seq2[*movement, error] {
	return chainFrom(seq, pt.movement, func(m *movement) uint64 { return m.Link.Prev })
}

// emitMovement adds the event of a movement to the feed. A Merge has none: nobody's points changed. A
// hold has events of its own.
func (pt *pointsTxn) emitMovement(m *movement) error {
	kind := eventPointsAdded
	switch {
	case m.Category == categoryMerge, m.Category == categoryHold, m.Category == categoryRelease:
		return nil
	case m.Category == categoryExpiration:
		kind = eventPointsExpired
	case m.Category == categoryReturn:
		kind = eventPointsReversed
	case m.Amount < 0:
		kind = eventPointsDeducted
	}
	return pt.t.feed.emit(kind, m.Seq)
}

func (s *tally) countMovement(m *movement) {
	switch {
	case m.Category == categoryMerge: // what one customer loses another one gets
	case m.Category == categoryHold, m.Category == categoryRelease: // the customer still has it
	case m.Category == categoryExpiration:
		s.PointsExpired -= m.Amount
	case m.Category == categoryReturn:
		s.PointsReversed -= m.Amount
	case m.Amount < 0 || m.isGiveBack():
		s.PointsRedeemed -= m.Amount
	default:
		s.PointsIssued += m.Amount
	}
}

// The comment of a movement can be erased, and the ledger never changes (contract §12). So
// the hash chain covers not the comment but its hash, which stays when the comment goes. The
// hash is salted in secret, so that nobody can tell an erased comment by guessing it.

const saltSize = 16

type commentSalt [saltSize]byte

// hashComment salts and hashes the comment of a movement that is about to be recorded.
func (pt *pointsTxn) hashComment(m *movement) {
	if m.Comment == "" {
		return
	}
	secret := pt.t.secret("comment", m.Seq)
	m.CommentSalt = commentSalt(secret[:saltSize])
	m.CommentHash = m.commentHash()
}

// commentHash is what CommentHash has to be while the comment is there.
func (m *movement) commentHash() ledgerHash {
	var room [256]byte
	return sha256.Sum256(append(append(room[:0], m.CommentSalt[:]...), m.Comment...))
}

// commentField is the comment in a movement's record: all that is left before the Hash.
func (m *movement) commentField(c *coder) {
	if c.reading && len(c.b) <= len(m.Hash) || !c.reading && m.Comment == "" {
		return
	}
	if c.fixed(m.CommentSalt[:]); !c.reading {
		c.b = append(c.b, m.Comment...)
	} else if m.Comment = c.textOf(uint64(max(len(c.b)-len(m.Hash), 0))); m.Comment == "" {
		c.fail()
	}
}

// eraseComment takes away the comment, and the salt that would let somebody guess it.
func (m *movement) eraseComment() { m.Comment, m.CommentSalt = "", commentSalt{} }

// Points that are given once, however often they are asked for: what customers carry over from
// another system, and movements with a reference.
//
// Customers carry over an opening balance and historic points (contract §10). An account takes each
// once, ever, so that a file can be imported again.

// A carriedOver is what one customer carries over into one program.
type carriedOver struct {
	program  *program
	points   *decimal // the opening balance; nil if none is told
	expires  instant  // of the opening balance; 0: by the program's policy
	historic *decimal // points earned before; nil if none are told
}

func (b *carriedOver) any() bool {
	return b.points != nil && *b.points != 0 || b.historic != nil && *b.historic != 0
}

// commentOpening is the comment of the movement that gives an opening balance.
const commentOpening = "Saldo inicial"

// A historicPoints is points that were earned in another system. They are in an
// account's Lifetime without a movement. In a tier window they count on Day, the
// day that they came, since nobody knows when they were earned.
type historicPoints struct {
	Day    day
	Points decimal
}

func (h *historicPoints) fields(c *coder) { intField(c, &h.Day); c.decimal(&h.Points) }

// hasHistoric reports whether the account was given these points: by one import, or in all by
// the imports of two customers who were merged.
func (a *account) hasHistoric(points decimal) bool {
	return points == a.historic() || slices.ContainsFunc(a.Historic, func(h historicPoints) bool { return h.Points == points })
}

func (a *account) historic() (sum decimal) {
	for _, h := range a.Historic {
		sum += h.Points
	}
	return sum
}

// isOpening reports whether a movement gave an opening balance.
func (m *movement) isOpening() bool {
	return m.Category == categoryAdjustment && m.By.Type == byImport && m.Reference == "" // points of an imported file have one
}

// carryOver gives an account the points that a customer carries over. It gives nothing that
// the account was given before; different figures are an error. It returns the opening balance
// that it gave.
func (pt *pointsTxn) carryOver(c *customer, b carriedOver) (given decimal, err error) {
	if b.points == nil && b.historic == nil {
		return 0, nil
	}
	a, err := pt.account(c, b.program)
	if err != nil {
		return 0, err
	}
	var points, historic decimal // still to be given
	if b.points != nil && *b.points != a.Opening {
		points = *b.points
		if a.Opening != 0 {
			return 0, invalidField("points", "el cliente ya tiene un saldo inicial de %s", a.Opening)
		}
	}
	if b.historic != nil && !a.hasHistoric(*b.historic) {
		historic = *b.historic
		if len(a.Historic) > 0 {
			return 0, invalidField("historicPoints", "el cliente ya tiene puntos históricos: %s", a.historic())
		}
	}
	if points == 0 && historic == 0 {
		return 0, nil
	}
	if err := c.mustBeActive(); err != nil {
		return 0, err
	}
	if err := pt.open(a, points, b.expires); err != nil {
		return 0, err
	}
	if err := pt.addHistoric(a, historic); err != nil {
		return 0, err
	}
	return points, pt.saveAccount(a)
}

// open credits an opening balance, if it is not 0.
func (pt *pointsTxn) open(a *account, points decimal, expires instant) error {
	if points == 0 {
		return nil
	}
	if expires != 0 && expires <= pt.t.now {
		return invalidField("expiresAt", "debe ser una fecha futura")
	}
	a.Opening = points
	return pt.credit(a, &movement{Category: categoryAdjustment, Amount: points, Comment: commentOpening, Expires: expires})
}

// addHistoric counts historic points for the lifetime and the tier.
func (pt *pointsTxn) addHistoric(a *account, points decimal) error {
	if points == 0 {
		return nil
	}
	var ok bool
	if a.Lifetime, ok = a.Lifetime.add(points); !ok {
		return newError(codeTooLarge).on("historicPoints")
	}
	a.Historic = append(a.Historic, historicPoints{pt.t.dayOf(pt.t.now), points})
	return pt.addBasis(a, pt.t.now, basis{Points: points})
}

// A movement that a client asks for may have a reference, which no other movement of the
// organization ever has: points that are asked for again under it are not moved again
// (contract §23). The reference is a part of the movement that its hash covers: it stays
// when a customer is erased, so nothing personal belongs in it.

// maxReference is how many characters a reference has at most.
const maxReference = 100

// referenceKey is the prefix of the entry of the movement with a reference. It holds a hash,
// to stay short; the caller compares the reference of each movement it finds.
func (pt *pointsTxn) referenceKey(reference string) key {
	h := sha256.Sum256([]byte(reference))
	return append(orgKey('X', pt.t.org), h[:16]...)
}

// referenced returns the movement with a reference; nil if there is none.
func (pt *pointsTxn) referenced(reference string) (*movement, error) {
	prefix := pt.referenceKey(reference)
	for e, err := range scan(pt.t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		m, err := pt.movement(uintIn(e.Key[len(prefix):]))
		if err != nil || m.Reference == reference {
			return m, err
		}
	}
	return nil, nil
}

// An askedMovement is what a caller says of points to give or to take.
type askedMovement struct {
	customer id
	program  *id // nil: the only one
	debit    bool
	amount   decimal // above zero
	category string
	comment  string
	expires  instant // of a credit; 0: as its program says

	reference string // "" without
	late      error  // a fault that it did not have, perhaps, when it first came
}

// movement returns a movement that has not been made.
func (in *askedMovement) movement() *movement {
	return &movement{
		Amount: in.amount, Category: in.category, Comment: in.comment, Expires: in.expires,
		Reference: in.reference, ExpiryAsked: in.reference != "" && in.expires != 0,
	}
}

// customerIn returns a customer and a program; nil: the organization's first one.
func (pt *pointsTxn) customerIn(cust id, of *id) (*customer, *program, error) {
	c, err := pt.t.customers.get(cust)
	if err != nil || of == nil {
		return c, pt.t.cfg.Programs[0], err
	}
	p, err := pt.t.program(*of)
	return c, p, err
}

// known returns the movement that has the reference; nil if none has. It fails unless that
// movement was asked for with the same customer, direction, amount, category, comment, program
// and expiry. Movements of a customer who was merged are the survivor's; an erased comment may
// have been any; and a caller who names no program may mean any, since the organization may have had
// one program then.
func (pt *pointsTxn) known(in *askedMovement) (*movement, error) {
	m, err := pt.referenced(in.reference)
	if m == nil || err != nil {
		return nil, err
	}
	_, p, err := pt.customerIn(in.customer, in.program)
	if err != nil {
		return nil, err
	}
	same, err := pt.t.merges.sameOwner(m.Customer, in.customer)
	if err != nil {
		return nil, err
	}
	amount := in.amount
	if in.debit {
		amount = -amount
	}
	erased := m.Comment == "" && m.CommentHash != (ledgerHash{})
	switch {
	case !same, m.Amount != amount, m.Category != in.category,
		m.Comment != in.comment && !erased,
		in.program != nil && m.Program != p.Number,
		m.ExpiryAsked != (in.expires != 0), m.ExpiryAsked && m.Expires != in.expires:
		return nil, newError(codeReferenceConflict).on("reference").with("movementId", m.id())
	}
	return m, nil
}
