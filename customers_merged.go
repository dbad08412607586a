package main

import (
	"iter"
	"slices"
)

// After a merge, the survivor has the records of the customer who was merged, its stub (merges.go):
// mergesTxn finds the survivor and the stubs. At the end, the keys that seal stored answers until a
// customer in them is erased.

// A mergesTxn is merges and erasures in a transaction.
type mergesTxn struct {
	t         *txn
	found     *bool         // what any found; nil until it was asked
	answer    mergeAnswer   // the last one of wasMerged
	byContact map[string]id // stubs by the contact that they had; nil until stubOf was asked
}

// owner finds the customer whose records under an id are: that customer itself, or the one
// that it became part of. Any other id gives customer_not_found.
func (ms *mergesTxn) owner(cust id) (*customer, error) {
	c, err := ms.t.customers.get(cust)
	if err != nil || c.MergedInto == (id{}) {
		return c, err
	}
	return ms.t.customers.get(c.MergedInto)
}

// ownerID is the id of the owner. It reads nothing if it is the same anyway.
func (ms *mergesTxn) ownerID(cust id) (id, error) {
	if some, err := ms.any(); err != nil || !some {
		return cust, err
	}
	c, err := ms.owner(cust)
	if err != nil {
		return id{}, err
	}
	return c.ID, nil
}

// owns reports whether the records under an id are a customer's.
func (ms *mergesTxn) owns(c *customer, cust id) (bool, error) {
	if cust == c.ID {
		return true, nil
	}
	owner, err := ms.ownerID(cust)
	return owner == c.ID, err
}

// sameOwner reports whether the records under two ids are one customer's.
func (ms *mergesTxn) sameOwner(a, b id) (bool, error) {
	if a == b {
		return true, nil
	}
	owner, err := ms.ownerID(a)
	if err != nil {
		return false, err
	}
	other, err := ms.ownerID(b)
	return owner == other, err
}

// any reports whether any customer of the organization was merged.
func (ms *mergesTxn) any() (bool, error) {
	if ms.found == nil {
		found, err := hasAny(ms.t.Tx, orgKey('J', ms.t.org))
		if err != nil {
			return false, err
		}
		ms.found = &found
	}
	return *ms.found, nil
}

func (ms *mergesTxn) stubKey(survivor, stub uint64) key {
	return orgKey('J', ms.t.org).u64(survivor).u64(stub)
}

// A stubEntry is an entry of the table of merges.
type stubEntry struct {
	survivor, stub uint64 // their numbers
	id             id     // of the stub
}

func stubEntries(tx Tx, prefix key) iter.Seq2[stubEntry, error] {
	return func(yield func(stubEntry, error) bool) {
		for e, err := range scan(tx, prefix, false) {
			if err == nil && (len(e.Key) != 5+8+8 || len(e.Value) != 16) {
				err = unreadable(e.Key)
			}
			if err != nil {
				yield(stubEntry{}, err)
				return
			}
			if !yield(stubEntry{uintIn(e.Key[5:]), uintIn(e.Key[13:]), id(e.Value)}, nil) {
				return
			}
		}
	}
}

// stubOf finds the stub that had the e-mail, phone or externalId of an enrolment when it was
// merged; nil if there is none. It reads all stubs once in a transaction: only imports ask.
func (ms *mergesTxn) stubOf(e enrolment) (*customer, error) {
	if some, err := ms.any(); err != nil || !some {
		return nil, err
	}
	names := func(email, phone, externalID string) []string {
		return []string{"e" + email, "p" + phone, "x" + externalID}
	}
	if ms.byContact == nil {
		ms.byContact = map[string]id{}
		for entry, err := range stubEntries(ms.t.Tx, orgKey('J', ms.t.org)) {
			if err != nil {
				return nil, err
			}
			stub, err := ms.t.customers.listed(entry.id)
			if err != nil {
				return nil, err
			}
			for _, name := range names(stub.Email, stub.Phone, stub.ExternalID) {
				ms.byContact[name] = stub.ID
			}
		}
	}
	for _, name := range names(e.Email, e.Phone, e.ExternalID) {
		if cust, ok := ms.byContact[name]; ok && len(name) > 1 {
			return ms.t.customers.get(cust)
		}
	}
	return nil, nil
}

// family returns a customer and then its stubs. They are read, as the customer was.
func (ms *mergesTxn) family(c *customer) ([]*customer, error) {
	list := []*customer{c}
	if some, err := ms.any(); err != nil || !some {
		return list, err
	}
	for s, err := range stubEntries(ms.t.Tx, orgKey('J', ms.t.org).u64(c.Number)) {
		if err != nil {
			return nil, err
		}
		stub, err := ms.t.customers.listed(s.id)
		if err != nil {
			return nil, err
		}
		list = append(list, stub)
	}
	return list, nil
}

// idsOf returns the ids under which the records of a customer are; none for a stub.
func (ms *mergesTxn) idsOf(cust id) ([]id, error) {
	c, err := ms.t.customers.get(cust)
	if err != nil || c.MergedInto != (id{}) {
		return nil, err
	}
	family, err := ms.family(c)
	if err != nil {
		return nil, err
	}
	ids := make([]id, len(family))
	for i, member := range family {
		ids[i] = member.ID
	}
	return ids, nil
}

// withStubs adds to a set of customers their stubs.
func (ms *mergesTxn) withStubs(set customerSet) (customerSet, error) {
	if some, err := ms.any(); err != nil || !some {
		return set, err
	}
	for s, err := range stubEntries(ms.t.Tx, orgKey('J', ms.t.org)) {
		if err != nil {
			return nil, err
		}
		if set.has(s.survivor) {
			set.add(s.stub)
		}
	}
	return set, nil
}

// A mergeAnswer is an answer of wasMerged; cust is zero before the first.
type mergeAnswer struct {
	cust   id
	merged bool
}

// wasMerged reports whether a customer is a stub or has one. It keeps the last answer, since
// a list of movements is of one customer.
func (ms *mergesTxn) wasMerged(cust id) (bool, error) {
	if some, err := ms.any(); err != nil || !some || ms.answer.cust == cust {
		return ms.answer.merged && some, err
	}
	c, err := ms.t.customers.get(cust)
	if err != nil {
		return false, err
	}
	family, err := ms.family(c)
	if err != nil {
		return false, err
	}
	ms.answer.cust, ms.answer.merged = cust, c.MergedInto != (id{}) || len(family) > 1
	return ms.answer.merged, nil
}

// The answers that are kept for retries show customers: their names, contact and comments.
// Such an answer is sealed: encrypted with a key that follows from a secret of each
// customer that it shows. Erasing a customer forgets the secret. So all answers that show
// it become unreadable at once, and none has to be looked for.
//
// A customer gets its secret when it is enrolled. The key is of AES-128 in counter mode,
// and of one answer alone: it is made of the secrets in the order of Customers, and of the
// replay's number, moment and request. The store's checksum notices damage.

// A sealSecret is what a customer's answers are sealed with. It is zero after an erasure.
type sealSecret [16]byte

// A sealsTxn is what a transaction knows of the customers that its answer shows.
type sealsTxn struct {
	t       *txn
	shown   []id          // customers that the answer shows
	backing [1]id         // backs shown while it is short
	last    shownCustomer // the last customer that was read or written
}

func (sl *sealsTxn) newSecret(number uint64) sealSecret {
	secret := sl.t.secret("answers", number)
	return sealSecret(secret[:])
}

// A shownCustomer is what is known of a customer that the transaction has read.
type shownCustomer struct {
	id     id
	number uint64
	erased bool
	secret sealSecret
}

// reveal notes that the answer shows something of a customer. Whatever makes an answer's
// shape calls it.
func (sl *sealsTxn) reveal(cust id) {
	if sl.t.readOnly || slices.Contains(sl.shown, cust) {
		return
	}
	if sl.shown == nil {
		sl.shown = sl.backing[:0]
	}
	sl.shown = append(sl.shown, cust)
}

// separately makes one part of an answer. What it keeps is sealed for what it shows itself,
// not for what the parts before show.
func (sl *sealsTxn) separately(part func() error) error {
	all := slices.Clone(sl.shown)
	sl.shown = nil
	err := part()
	for _, cust := range sl.shown {
		if !slices.Contains(all, cust) {
			all = append(all, cust)
		}
	}
	sl.shown = all
	return err
}

// remember keeps what seal wants to know of a customer, so that it need not read it again.
func (sl *sealsTxn) remember(c *customer) {
	sl.last = shownCustomer{c.ID, c.Number, c.Status == statusErased, c.Secret}
}

// sealing returns what answers that show a customer are sealed with.
func (sl *sealsTxn) sealing(cust id) (shownCustomer, error) {
	if sl.last.id == cust {
		return sl.last, nil
	}
	c, err := sl.t.customers.get(cust) // which calls remember
	if err == nil && c.Status != statusErased && c.Secret == (sealSecret{}) {
		err = unreadable(customerKey(sl.t.org, cust, partCustomer))
	}
	return sl.last, err
}
