package main

import "slices"

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

// newSecret makes the secret of the customer with a number.
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
