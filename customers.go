package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"sello/internal/fold"
	"sello/internal/membercode"
	"sello/internal/totp"
)

// Customers: an e-mail, a phone or an externalId leads to one customer of an organization. Enrolment
// makes a customer, or finds the one with the e-mail or phone and fills in what is missing. At the
// end, the codes that stand for customers.

// A customer is a person's membership of one organization. It holds only what
// this organization was told.
type customer struct {
	ID id // from the key

	path [4]uint64 // backs Sales.Path while it is short

	Number  uint64 // place in the organization's list
	Person  id     // the same in all memberships of one person, as enrolment found it; a PATCH leaves it. Never shown
	Program uint32 // number of the program the customer belongs to

	FirstName, LastName string
	Email, Phone        string // normalized; at least one is set
	Status              string
	CreatedAt           instant
	UpdatedAt           instant

	TotalSpent decimal // purchases less returns
	Purchases  uint64  // how many are not wholly returned
	LastSaleAt instant // of the last purchase that is not wholly returned; 0 without

	Sales          chain  // all sales, returns included
	PurchasesTotal uint64 // how many of Sales are purchases

	ExternalID   string // "" without; no other customer of the organization has it
	BirthDate    birthDate
	BirthdayFrom uint32 // the first year whose birthday counts, since the date was set
	BirthdayYear uint32 // the last year whose birthday points were given; 0: none
	Attributes   []attribute
	MergedInto   id      // the customer that a Merged one became part of
	GoneAt       instant // when a hidden one was hidden

	Marketing consent

	Secret sealSecret // of the answers that show the customer (customers_merged.go)

	Written []writtenNotice // who wrote to the customer by hand (customers_attributes.go)
}

// Statuses of customers. Merged and Erased customers are hidden: only their id finds
// them.
const (
	statusActive   = "Active"
	statusInactive = "Inactive"
	statusMerged   = "Merged"
	statusErased   = "Erased"
)

// customerStatuses are in the order that the file depends on.
var customerStatuses = []string{statusActive, statusInactive, statusMerged, statusErased}

func (c *customer) hidden() bool { return c.Status == statusMerged || c.Status == statusErased }

// Tags of a customer's optional fields.
const (
	customerExternalID   = 1
	customerBirthDate    = 2
	customerBirthdayFrom = 3
	customerBirthdayYear = 4
	customerAttributes   = 5
	customerMergedInto   = 6
	customerGoneAt       = 7
	customerSecret       = 8
	customerMarketing    = 9
	customerWritten      = 10
)

func (c *customer) fields(to *coder) {
	to.uint(&c.Number)
	to.id(&c.Person)
	uintField(to, &c.Program)
	to.text(&c.FirstName)
	to.text(&c.LastName)
	to.text(&c.Email)
	to.text(&c.Phone)
	to.word(customerStatuses, &c.Status)
	to.instant(&c.CreatedAt)
	to.instant(&c.UpdatedAt)
	to.decimal(&c.TotalSpent)
	to.uint(&c.Purchases)
	to.instant(&c.LastSaleAt)
	if to.reading {
		c.Sales.Path = c.path[:0]
	}
	c.Sales.fields(to)
	to.uint(&c.PurchasesTotal)
	optionalField(to, customerExternalID, &c.ExternalID, (*coder).text)
	optionalField(to, customerBirthDate, &c.BirthDate, uintField)
	optionalField(to, customerBirthdayFrom, &c.BirthdayFrom, uintField)
	optionalField(to, customerBirthdayYear, &c.BirthdayYear, uintField)
	optionalList(to, customerAttributes, &c.Attributes, (*attribute).fields)
	optionalField(to, customerMergedInto, &c.MergedInto, (*coder).id)
	optionalField(to, customerGoneAt, &c.GoneAt, (*coder).instant)
	if to.optional(customerSecret, c.Secret != (sealSecret{})) {
		to.id((*id)(&c.Secret))
	}
	if to.optional(customerMarketing, c.Marketing != (consent{})) {
		c.Marketing.fields(to)
	}
	optionalList(to, customerWritten, &c.Written, (*writtenNotice).fields)
}

// nameErased stands for the name of an erased customer.
const nameErased = "Cliente eliminado"

// name is the full name, or else the e-mail, or else the phone (contract §7).
func (c *customer) name() string {
	if c.Status == statusErased {
		return nameErased
	}
	return cmp.Or(strings.TrimSpace(c.FirstName+" "+c.LastName), c.Email, c.Phone)
}

// shortName is the first name and the initial of the next one, for reports that leave the
// shop: "Ana R…".
func (c *customer) shortName() string {
	words := strings.Fields(c.FirstName)
	rest := strings.Fields(c.LastName)
	if len(words) > 0 {
		words, rest = words[:1], append(rest, words[1:]...)
	}
	if len(rest) > 0 {
		initial, _ := utf8.DecodeRuneInString(rest[0])
		words = append(words, string(initial)+"…")
	}
	return strings.Join(words, " ")
}

// A customersTxn is customers, their indexes and lists in a transaction.
type customersTxn struct{ t *txn }

// get finds a customer of this organization. Any other id gives
// customer_not_found: another organization's, or a malformed one (the zero id).
func (cu *customersTxn) get(cust id) (*customer, error) {
	c, err := cu.byID(cust)
	if err == nil && c == nil {
		err = newError(codeCustomerNotFound)
	}
	return c, err
}

// activeOwner finds a customer as owner does, and refuses an inactive one.
func (cu *customersTxn) activeOwner(cust id) (*customer, error) {
	c, err := cu.t.merges.owner(cust)
	if err == nil {
		err = c.mustBeActive()
	}
	return c, err
}

// mustBeActive returns customer_inactive unless points, sales and redemptions of the
// customer may be written.
func (c *customer) mustBeActive() error {
	if err := c.mustBeShown(); err != nil {
		return err
	}
	if c.Status != statusActive {
		return newError(codeCustomerInactive)
	}
	return nil
}

// mustBeShown returns customer_merged or customer_erased for a hidden customer, which
// cannot be written to.
func (c *customer) mustBeShown() error {
	switch c.Status {
	case statusMerged:
		return newError(codeCustomerMerged).with("mergedInto", c.MergedInto)
	case statusErased:
		return newError(codeCustomerErased)
	}
	return nil
}

// byID finds a customer of this organization; nil if there is none.
func (cu *customersTxn) byID(cust id) (*customer, error) {
	c, err := get[customer](cu.t.Tx, cu.t.scratchKey(cust, partCustomer))
	if c != nil {
		c.ID = cust
		cu.t.seals.remember(c)
	}
	return c, err
}

func (cu *customersTxn) save(c *customer) error {
	cu.t.seals.remember(c)
	return cu.t.put(customerKey(cu.t.org, c.ID, partCustomer), c)
}

// An identity is what an e-mail or a phone leads to in one organization.
type identity struct{ customer, person id }

func (i *identity) fields(c *coder) { c.id(&i.customer); c.id(&i.person) }

const (
	kindEmail = 'e'
	kindPhone = 'p'
)

func identityKey(kind byte, value string) key {
	return newKey('p').byte(kind).text(value).byte(0)
}

// identify finds this organization's customer by e-mail or phone; nil if value
// is empty or unknown.
func (cu *customersTxn) identify(kind byte, value string) (*customer, error) {
	if value == "" {
		return nil, nil
	}
	i, err := get[identity](cu.t.Tx, identityKey(kind, value).u32(cu.t.org))
	if err != nil || i == nil {
		return nil, err
	}
	return cu.byID(i.customer)
}

// knownPerson finds the person that another organization knows by the e-mail or,
// failing that, by the phone.
func (cu *customersTxn) knownPerson(e enrolment) (person id, known bool, err error) {
	if cu.t.cfg.alone {
		return id{}, false, nil
	}
	person, known, err = cu.personOf(kindEmail, e.Email)
	if err == nil && !known {
		person, known, err = cu.personOf(kindPhone, e.Phone)
	}
	return person, known, err
}

// personOf finds the person that any organization knows by an e-mail or phone.
func (cu *customersTxn) personOf(kind byte, value string) (id, bool, error) {
	if value == "" {
		return id{}, false, nil
	}
	for e, err := range scan(cu.t.Tx, identityKey(kind, value), false) {
		if err != nil {
			return id{}, false, err
		}
		i, err := decodeEntry[identity](e)
		if err != nil {
			return id{}, false, err
		}
		return i.person, true, nil
	}
	return id{}, false, nil
}

// identities yields the customer's e-mail and phone, as far as it has them. A
// hidden customer has none.
func (c *customer) identities() func(yield func(byte, string) bool) {
	return func(yield func(byte, string) bool) {
		for _, kind := range []byte{kindEmail, kindPhone} {
			if value := c.identity(kind); value != "" && !yield(kind, value) {
				return
			}
		}
	}
}

// identity is the customer's e-mail or phone; "" if it has none or is hidden.
func (c *customer) identity(kind byte) string {
	switch {
	case c.hidden():
		return ""
	case kind == kindEmail:
		return c.Email
	}
	return c.Phone
}

// An enrolment is what a caller says about a customer. Its texts are normalized.
type enrolment struct {
	FirstName, LastName, Email, Phone string

	ExternalID string
	BirthDate  birthDate
	Attributes []attribute
	Marketing  consentAnswer

	MarketingAt instant // when that was said; 0: now
	Withdrawn   bool    // a refusal replaces a yes, as none of an import is dropped (contract §31)

	Since instant // of a new customer that was enrolled elsewhere before; else 0
}

// enrol makes a customer of this organization, or finds the existing one and
// fills in what it lacks. If another organization knows the person, the new
// customer gets the same Person, which is never shown (spec: POST /customers;
// contract §7). Person does not follow a PATCH: a corrected phone makes nobody another
// person, and links nobody to a person whom another organization knows by the phone.
func (cu *customersTxn) enrol(e enrolment) (c *customer, created bool, err error) {
	known, err := cu.enrolled(e)
	if err != nil {
		return nil, false, err
	}
	c, err = cu.enrolAs(known, e)
	return c, known == nil, err
}

// enrolled finds the customer that has the e-mail or the phone of an enrolment; nil if
// there is none. Two customers are identity_conflict.
func (cu *customersTxn) enrolled(e enrolment) (*customer, error) {
	byEmail, err := cu.identify(kindEmail, e.Email)
	if err != nil {
		return nil, err
	}
	byPhone, err := cu.identify(kindPhone, e.Phone)
	if err != nil {
		return nil, err
	}
	if byEmail != nil && byPhone != nil && byEmail.ID != byPhone.ID {
		return nil, newError(codeIdentityConflict)
	}
	if byEmail != nil {
		return byEmail, nil
	}
	return byPhone, nil
}

// enrolAs is enrol for the customer that enrolled has found, or nil.
func (cu *customersTxn) enrolAs(known *customer, e enrolment) (*customer, error) {
	var own id
	if known != nil {
		own = known.ID
	}
	if err := cu.externalIDFree(e.ExternalID, own); err != nil {
		return nil, err
	}
	if known != nil {
		return known, cu.fillIn(known, e)
	}
	return cu.newCustomer(e)
}

// A doubt is a reason why an enrolment may be of somebody else than the customer that its
// e-mail or phone leads to (contract §19), the lesser first.
type doubt int

const (
	noDoubt      doubt = iota
	otherName          // one contact is the same, the other one is missing, and the name is another
	otherContact       // the other contact is another
)

// doubtOf compares a customer with an enrolment. An empty contact or name differs from none.
func (c *customer) doubtOf(e enrolment) doubt {
	sameEmail, samePhone := e.Email != "" && e.Email == c.Email, e.Phone != "" && e.Phone == c.Phone
	name := func(first, last string) string { return strings.Join(strings.Fields(fold.Text(first+" "+last)), " ") }
	theirs, ours := name(e.FirstName, e.LastName), ""
	if theirs != "" {
		ours = name(c.FirstName, c.LastName)
	}
	switch {
	case sameEmail && samePhone:
		return noDoubt
	case !sameEmail && (!samePhone || e.Email != "" && c.Email != ""), !samePhone && e.Phone != "" && c.Phone != "":
		return otherContact
	case ours != "" && theirs != ours:
		return otherName
	}
	return noDoubt
}

// doubt is doubtOf for a customer and its stubs, the customers who became part of it: an
// enrolment may be of any of them.
func (cu *customersTxn) doubt(c *customer, e enrolment) (doubt, error) {
	least := c.doubtOf(e)
	if least == noDoubt {
		return noDoubt, nil
	}
	all, err := cu.t.merges.family(c)
	for _, part := range all {
		least = min(least, part.doubtOf(e))
	}
	return least, err
}

// fillIn adds what an enrolment says and the customer lacks. It overwrites nothing.
func (cu *customersTxn) fillIn(c *customer, e enrolment) error {
	after := c.filledBy(e, cu.t.dayOf(cu.t.now))
	if c.Marketing.Answer == consentUnknown || e.Withdrawn && e.Marketing == consentRefused {
		after.Marketing = c.Marketing.said(e.Marketing, e.saidAt(c.Marketing, cu.t.now))
	}
	err := cu.change(c, &after)
	*c = after
	return err
}

// saidAt is when an enrolment's answer was given: now, unless it tells a moment after the answer
// before.
func (e enrolment) saidAt(before consent, now instant) instant {
	if e.MarketingAt > before.At {
		return e.MarketingAt
	}
	return now
}

// filledBy returns the customer with what it lacks.
func (c *customer) filledBy(e enrolment, today day) customer {
	after := *c
	after.FirstName = cmp.Or(c.FirstName, e.FirstName)
	after.LastName = cmp.Or(c.LastName, e.LastName)
	after.Email = cmp.Or(c.Email, e.Email)
	after.Phone = cmp.Or(c.Phone, e.Phone)
	after.ExternalID = cmp.Or(c.ExternalID, e.ExternalID)
	after.setBirthDate(c.BirthDate.filledBy(e.BirthDate), today)
	if all := mergeAttributes(e.Attributes, c.Attributes); checkAttributes(all) == nil {
		after.Attributes = all
	}
	return after
}

func (cu *customersTxn) newCustomer(e enrolment) (*customer, error) {
	n, err := cu.t.count()
	if err != nil {
		return nil, err
	}
	n.Customers++
	p := cu.t.cfg.defaultProgram()
	c := &customer{
		ID: cu.t.id(), Number: n.Customers, Program: p.Number,
		FirstName: e.FirstName, LastName: e.LastName, Email: e.Email, Phone: e.Phone,
		Status: statusActive, CreatedAt: cmp.Or(e.Since, cu.t.now), UpdatedAt: cu.t.now,
		ExternalID: e.ExternalID, Attributes: e.Attributes, Marketing: consent{}.said(e.Marketing, e.saidAt(consent{}, cu.t.now)),
	}
	c.Secret = cu.t.seals.newSecret(c.Number)
	c.setBirthDate(e.BirthDate, cu.t.dayOf(cu.t.now))
	person, known, err := cu.knownPerson(e)
	if err != nil {
		return nil, err
	}
	c.Person = cu.t.id() // always made, so that later ids do not reveal whether the person is known
	if known {
		c.Person = person
	}
	if err := cu.moveIndexes(new(customer), c); err != nil {
		return nil, err
	}
	if err := cu.t.Put(cu.listKey(c.Number), c.ID[:]); err != nil {
		return nil, err
	}
	if err := cu.save(c); err != nil {
		return nil, err
	}
	if c.Number%gramGroup == 0 && !cu.t.importing {
		if err := cu.t.search.indexUntil(c.Number); err != nil {
			return nil, err
		}
	}
	s, err := cu.t.stats.tally(p.Number, c.CreatedAt)
	if err != nil {
		return nil, err
	}
	s.NewCustomers++
	if err := cu.t.feed.emit(eventCustomerCreated, c.Number); err != nil {
		return nil, err
	}
	return c, cu.t.rules.openAccounts(c)
}

func (cu *customersTxn) at(number uint64) (*customer, error) {
	cust, err := cu.idAt(number)
	if err != nil {
		return nil, err
	}
	return cu.listed(cust)
}

func (cu *customersTxn) listKey(number uint64) key {
	return orgKey('l', cu.t.org).byte('c').u64(number)
}

func (cu *customersTxn) idsAt(numbers []uint64) ([]id, error) {
	warm(cu.t.Tx, numbers, cu.listKey)
	list := make([]id, len(numbers))
	for i, number := range numbers {
		var err error
		if list[i], err = cu.idAt(number); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (cu *customersTxn) idAt(number uint64) (id, error) {
	k := cu.listKey(number)
	value, ok, err := cu.t.Get(k)
	if err == nil && (!ok || len(value) != 16) {
		err = unreadable(k)
	}
	if err != nil {
		return id{}, err
	}
	return id(value), nil
}

// listed is byID for an id from the list. A missing record is an error.
func (cu *customersTxn) listed(cust id) (*customer, error) {
	c := new(customer)
	return c, cu.read(cust, c)
}

// read is listed for many in turn: it reads into c. Only the texts of the customer that c
// held before stay valid.
func (cu *customersTxn) read(cust id, c *customer) error {
	k := cu.t.scratchKey(cust, partCustomer)
	record, ok, err := cu.t.Get(k)
	if err == nil && !ok {
		err = unreadable(k)
	}
	if err != nil {
		return err
	}
	*c = customer{ID: cust}
	return atKey(k, decodeInto(record, c))
}

func (cu *customersTxn) between(first, last uint64) iter.Seq2[*customer, error] {
	return func(yield func(*customer, error) bool) {
		var list []id
		read := func() bool {
			warm(cu.t.Tx, list, func(u id) key { return cu.t.scratchKey(u, partCustomer) })
			for _, cust := range list {
				if c, err := cu.listed(cust); !yield(c, err) || err != nil {
					return false
				}
			}
			list = list[:0]
			return true
		}
		for cust, err := range cu.ids(first, last, false) {
			if err != nil {
				yield(nil, err)
				return
			}
			if list = append(list, cust); len(list) == readAtOnce && !read() {
				return
			}
		}
		read()
	}
}

// readAtOnce is how many customers between reads at once, where that is faster.
const readAtOnce = 64

func (cu *customersTxn) ids(first, last uint64, reverse bool) iter.Seq2[id, error] {
	return func(yield func(id, error) bool) {
		list := orgKey('l', cu.t.org).byte('c')
		for e, err := range cu.t.Scan(slices.Clone(list).u64(first), slices.Clone(list).u64(last+1), reverse) {
			if err == nil && len(e.Value) != 16 {
				err = unreadable(e.Key)
			}
			if err != nil {
				yield(id{}, err)
				return
			}
			if !yield(id(e.Value), nil) {
				return
			}
		}
	}
}

// Codes that people read out and that cards show (contract §25). A customer's code is made of
// the customer's number in the organization's list, with a secret of the organization that never
// changes (engine.go). So there is no table of codes, and one that was printed is good for ever.

// A member code stands for the customer who shows it.
const memberLetter = 'M'

// isMemberCode reports whether a text is the code of a customer, be it one that nobody has. The digits
// that a card may show after it do not count.
func isMemberCode(text string) bool {
	code, _ := cutProof(text)
	return membercode.IsCode(memberLetter, membercode.Plain(code))
}

// memberCodes are the codes of an organization's customers.
func (c *config) memberCodes() membercode.Kind {
	mac := hmac.New(sha256.New, c.codeSecret)
	mac.Write([]byte("member code")) // other kinds of codes have secrets of their own
	return membercode.Kind{Letter: memberLetter, Secret: mac.Sum(nil)}
}

// memberCode is a customer's code; nil once erased.
func (cu *customersTxn) memberCode(c *customer) *string {
	if c.Status == statusErased || cu.t.cfg.codeSecret == nil {
		return nil
	}
	return new(membercode.Written(cu.t.cfg.memberCodes().Code(c.Number)))
}

// byMemberCode finds the customer that a text is the code of: of a merged one the survivor; nil
// if there is none, or they were erased.
func (cu *customersTxn) byMemberCode(text string) (*customer, error) {
	if cu.t.cfg.codeSecret == nil {
		return nil, nil
	}
	code, _ := cutProof(text)
	number, ok := cu.t.cfg.memberCodes().Number(membercode.Plain(code))
	if !ok {
		return nil, nil
	}
	n, err := cu.t.count()
	if err != nil || number == 0 || number > n.Customers {
		return nil, err
	}
	cust, err := cu.idAt(number)
	if err != nil {
		return nil, err
	}
	c, err := cu.t.merges.owner(cust)
	if err != nil || c.Status == statusErased {
		return nil, err
	}
	return c, nil
}

// cutProof takes a scanned text apart: the member code, and the digits after it; the text and "" if it
// is none.
func cutProof(text string) (code, digits string) {
	plain := strings.ReplaceAll(membercode.Plain(text), ".", "")
	if len(plain) != membercode.Len+totp.Digits {
		return text, ""
	}
	code, digits = plain[:membercode.Len], plain[membercode.Len:]
	if !membercode.IsCode(memberLetter, code) || strings.Trim(digits, "0123456789") != "" {
		return text, ""
	}
	return code, digits
}
