package main

import (
	"cmp"
	"slices"

	"sello/internal/blockset"
)

// A merge makes two customers one (contract §12): all that the merged one has becomes the
// survivor's, in one transaction. The merged customer stays as a stub, whose MergedInto
// names the survivor. Its sales, redemptions and movements stay as they were written,
// under its id and its number. So the owner of a record is found by MergedInto (owner),
// and the lists of a survivor go over the records of its family: its own and its stubs'.
// Totals, lots and counts move to the survivor's records.
//
//	J org n n → the id of a stub, by its survivor's number and its own
//
// A survivor is never a stub: when it is merged itself, its stubs become stubs of the next one.
//
// A lot moves by two movements of category Merge, a debit and a credit. Uses of both name
// the lot by its origin, the credit that made it, and the lot keeps its origin's sequence:
// returns and cancellations find it in the survivor's account. A debt moves by a credit
// that pays it and a debit of as much.

// merge makes one customer part of another, and returns the survivor and the contact of the
// merged customer that the survivor did not get. Merging the same two again changes nothing.
func (ms *mergesTxn) merge(into, from id) (*customer, contactLeft, error) {
	if into == from && into != (id{}) {
		return nil, contactLeft{}, invalidField("from", "debe ser otro cliente")
	}
	c, err := ms.t.customers.get(into)
	if err != nil {
		return nil, contactLeft{}, err
	}
	gone, err := ms.t.customers.get(from)
	if err != nil {
		return nil, contactLeft{}, err
	}
	if err := c.mustBeShown(); err != nil {
		return nil, contactLeft{}, err
	}
	if gone.Status == statusMerged && gone.MergedInto == c.ID {
		return c, contactLeft{}, nil
	}
	if err := gone.mustBeShown(); err != nil {
		return nil, contactLeft{}, err
	}
	family, err := ms.family(gone)
	if err != nil {
		return nil, contactLeft{}, err
	}
	if err := ms.fewEnough(family); err != nil {
		return nil, contactLeft{}, err
	}
	return ms.mergeFamily(c, gone, family)
}

// mergeFamily merges a customer, with its stubs.
func (ms *mergesTxn) mergeFamily(c, gone *customer, family []*customer) (*customer, contactLeft, error) {
	var left contactLeft
	after, stub, err := c.mergedWith(gone, ms.t.dayOf(ms.t.now))
	if err != nil {
		return nil, left, err
	}
	if err := ms.t.customers.moveProfile(gone, stub); err != nil { // first, so that what it had is free
		return nil, left, err
	}
	if err := ms.t.customers.moveProfile(c, after); err != nil {
		return nil, left, err
	}
	if _, err := ms.t.cards.end(gone); err != nil {
		return nil, left, err
	}
	for _, p := range ms.t.cfg.Programs {
		if err := ms.mergeAccount(p, stub, after, family); err != nil {
			return nil, left, err
		}
	}
	if err := ms.moveStubs(after, stub, family[1:]); err != nil {
		return nil, left, err
	}
	if err := ms.moveCounts(stub.ID, after.ID); err != nil {
		return nil, left, err
	}
	for _, changed := range []*customer{stub, after} {
		if err := ms.t.customers.save(changed); err != nil {
			return nil, left, err
		}
	}
	if err := ms.t.feed.emit(eventCustomerMerged, stub.Number, after.Number); err != nil {
		return nil, left, err
	}
	left = after.lacks(gone)
	// The first change is the merged one's id (auditEntry.merged).
	changes := append([]change{{"from", nil, gone.ID}}, c.auditChanges(after)...)
	return after, left, ms.t.audit.note(auditCustomerMerged, after.ID.String(), append(changes, unsaid(left.fields()...)...))
}

// mergedWith returns the customer with what it gets from a merged one, and the merged one as a stub.
func (c *customer) mergedWith(gone *customer, today day) (*customer, *customer, error) {
	after := c.filledBy(enrolment{
		FirstName: gone.FirstName, LastName: gone.LastName, Email: gone.Email, Phone: gone.Phone,
		ExternalID: gone.ExternalID, Attributes: gone.Attributes,
	}, today)
	if after.BirthDate == 0 { // also the year from which it counts
		after.BirthDate, after.BirthdayFrom = gone.BirthDate, gone.BirthdayFrom
	}
	after.BirthDate = after.BirthDate.filledBy(gone.BirthDate) // the year alone, if that
	after.BirthdayYear = max(c.BirthdayYear, gone.BirthdayYear)
	after.Marketing = c.Marketing.later(gone.Marketing)
	after.Written = laterWritten(c.Written, gone.Written)
	var ok bool
	if after.TotalSpent, ok = c.TotalSpent.add(gone.TotalSpent); !ok {
		return nil, nil, newError(codeTooLarge).on("totalSpent")
	}
	after.Purchases += gone.Purchases
	after.LastSaleAt = max(c.LastSaleAt, gone.LastSaleAt)
	stub := *gone
	stub.Status, stub.MergedInto = statusMerged, c.ID
	stub.TotalSpent, stub.Purchases, stub.LastSaleAt, stub.Written = 0, 0, 0, nil
	return &after, &stub, nil
}

// A contactLeft is contact of a merged customer that its survivor did not get.
type contactLeft struct{ Email, Phone, ExternalID string }

// lacks returns what contact of another customer this one does not have.
func (c *customer) lacks(gone *customer) (left contactLeft) {
	for _, f := range []struct {
		to        *string
		own, gone string
	}{{&left.Email, c.Email, gone.Email}, {&left.Phone, c.Phone, gone.Phone}, {&left.ExternalID, c.ExternalID, gone.ExternalID}} {
		if f.gone != f.own {
			*f.to = f.gone
		}
	}
	return left
}

// fields names what is left, for the audit log.
func (l contactLeft) fields() (names []string) {
	for _, f := range []struct{ name, value string }{{"email", l.Email}, {"phoneNumber", l.Phone}, {"externalId", l.ExternalID}} {
		if f.value != "" {
			names = append(names, "dropped."+f.name)
		}
	}
	return names
}

// fewEnough returns merge_too_large if a customer and its stubs have too many records for
// one transaction: sales, redemptions, movements and the stubs themselves.
func (ms *mergesTxn) fewEnough(family []*customer) error {
	n := uint64(len(family) - 1)
	for _, c := range family {
		n += c.Sales.N
		for _, p := range ms.t.cfg.Programs {
			a, err := ms.t.points.storedAccount(c, p)
			if err != nil {
				return err
			}
			n += a.Movements.N
		}
		for e, err := range scan(ms.t.Tx, ms.t.rewards.redemptionsOfKey(c.ID), false) {
			if err != nil {
				return err
			}
			n += blockset.Decode(e.Value).Count()
		}
		if n > ms.t.merged {
			return newError(codeMergeTooLarge)
		}
	}
	return nil
}

// mergeAccount moves what a merged customer has in a program to its survivor. family is
// the merged customer and its stubs.
func (ms *mergesTxn) mergeAccount(p *program, stub, into *customer, family []*customer) error {
	from, err := ms.t.points.account(stub, p)
	if err != nil || !from.kept && p.Number != into.Program {
		return err
	}
	to, err := ms.t.points.account(into, p)
	if err != nil {
		return err
	}
	if err := ms.moveFigures(from, to, family); err != nil {
		return err
	}
	to.joinIdle(from)
	if err := ms.moveLots(from, to); err != nil {
		return err
	}
	if err := ms.t.points.moveHolds(from, to); err != nil {
		return err
	}
	if from.kept {
		if err := ms.t.points.saveAccount(from); err != nil {
			return err
		}
	}
	return ms.t.points.saveAccount(to)
}

// moveFigures moves an account's figures besides lots: what it has earned, what tiers are
// measured by, and what came from another system.
func (ms *mergesTxn) moveFigures(from, to *account, family []*customer) error {
	keepsDays := to.program.TierBasis.keepsDays()
	var days dayBases
	if keepsDays || !to.isOwn() {
		var err error
		if days, err = ms.t.recount.daysOf(family, to.program); err != nil {
			return err
		}
	}
	var ok bool
	for _, d := range days {
		if to.isOwn() {
			break // the customer has the sum
		}
		if to.Spent, ok = to.Spent.add(d.Basis.Spent); !ok {
			return newError(codeTooLarge).on("totalSpent")
		}
		to.Purchases += uint64(d.Basis.Purchases)
	}
	if to.Lifetime, ok = to.Lifetime.add(from.Lifetime); !ok {
		return newError(codeTooLarge).on("lifetimePoints")
	}
	days.addHistoric(from)
	if err := ms.t.points.clearWindow(from); err != nil {
		return err
	}
	for _, d := range days {
		if !keepsDays {
			break
		}
		if err := ms.t.points.addBasisOn(to, d.Day, d.Basis); err != nil {
			return err
		}
	}
	to.Opening, to.Historic = cmp.Or(to.Opening, from.Opening), slices.Concat(to.Historic, from.Historic)
	from.Lifetime, from.Spent, from.Purchases, from.Opening, from.Historic = 0, 0, 0, 0, nil
	return nil
}

// moveLots moves an account's lots, or its debt, to another account.
func (ms *mergesTxn) moveLots(from, to *account) error {
	for _, part := range []byte{partLot, partPending} {
		var list []*lot
		for l, err := range ms.t.points.lots(from, part) {
			if err != nil {
				return err
			}
			list = append(list, l)
		}
		for _, l := range list {
			if err := ms.moveLot(from, to, part, l); err != nil {
				return err
			}
		}
	}
	if from.Balance < 0 {
		return ms.moveDebt(from, to)
	}
	return nil
}

// moveLot moves a lot. An available lot pays a debt of its new account first.
func (ms *mergesTxn) moveLot(from, to *account, part byte, l *lot) error {
	if _, ok := to.all().add(l.Left); !ok {
		return newError(codeTooLarge).on("balance")
	}
	moved, left := *l, l.Left
	moved.Left = 0
	debit := &movement{Category: categoryMerge, Amount: -left, CreatedAt: ms.t.now, Uses: []use{{l.Seq, left, l.Expires}}}
	credit := &movement{Category: categoryMerge, Amount: left, CreatedAt: ms.t.now, Expires: l.Expires, Uses: debit.Uses}
	if part == partPending {
		credit.AvailFrom = l.AvailFrom
		from.Pending -= left
		to.Pending += left
		return ms.recordMerge(from, debit, to, credit, func() error { return ms.t.points.changePending(from, l, -left) },
			func() error { return ms.t.points.changePending(to, &moved, left) })
	}
	paid := min(max(-to.Balance, 0), left)
	from.Balance -= left
	to.Balance += left
	to.rose = true
	ms.t.points.renew(to, ms.t.now)
	return ms.recordMerge(from, debit, to, credit, func() error { return ms.t.points.changeLot(from, l, -left) },
		func() error { return ms.t.points.changeLot(to, &moved, left-paid) })
}

// moveDebt moves a debt, which lots of its new account pay as far as they reach.
func (ms *mergesTxn) moveDebt(from, to *account) error {
	debt := -from.Balance
	if _, ok := to.Balance.sub(debt); !ok {
		return newError(codeTooLarge).on("balance")
	}
	uses, err := ms.t.points.consume(to, min(debt, max(to.Balance, 0)))
	if err != nil {
		return err
	}
	from.Balance, to.Balance = 0, to.Balance-debt
	debit := &movement{Category: categoryMerge, Amount: -debt, CreatedAt: ms.t.now, Uses: uses}
	credit := &movement{Category: categoryMerge, Amount: debt, CreatedAt: ms.t.now, Expires: never}
	return ms.recordMerge(to, debit, from, credit)
}

// recordMerge records a debit and the credit that belongs to it, after changes of lots.
func (ms *mergesTxn) recordMerge(debited *account, debit *movement, credited *account, credit *movement, changes ...func() error) error {
	for _, change := range changes {
		if err := change(); err != nil {
			return err
		}
	}
	if err := ms.t.points.record(debited, debit); err != nil {
		return err
	}
	return ms.t.points.record(credited, credit)
}

// moveStubs makes a customer who is now a stub, and the stubs that it had, stubs of its survivor.
func (ms *mergesTxn) moveStubs(into, stub *customer, had []*customer) error {
	for _, s := range had {
		if err := ms.t.customers.rekey(ms.stubKey(stub.Number, s.Number), ms.stubKey(into.Number, s.Number), s.ID[:]); err != nil {
			return err
		}
		s.MergedInto = into.ID
		if err := ms.t.customers.save(s); err != nil {
			return err
		}
	}
	ms.found, ms.answer = new(true), mergeAnswer{}
	return ms.t.Put(ms.stubKey(into.Number, stub.Number), stub.ID[:])
}

// moveCounts adds a customer's uses of rules and of rewards to another customer's.
func (ms *mergesTxn) moveCounts(from, to id) error {
	for _, part := range []byte{partRuleUse, partRewardUse, partRuleLife} {
		prefix := customerKey(ms.t.org, from, part)
		var list []Entry
		for e, err := range scan(ms.t.Tx, prefix, false) {
			if err != nil {
				return err
			}
			list = append(list, Entry{Key: slices.Clone(e.Key), Value: slices.Clone(e.Value)})
		}
		for _, e := range list {
			own := append(customerKey(ms.t.org, to, part), e.Key[len(prefix):]...)
			if err := ms.addCount(part, e, own); err != nil {
				return err
			}
			if err := ms.t.Delete(e.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCount adds the count of an entry to the count at k.
func (ms *mergesTxn) addCount(part byte, e Entry, k key) error {
	if part == partRewardUse {
		if len(e.Value) != 8 {
			return unreadable(e.Key)
		}
		n, _, err := getUint(ms.t.Tx, k)
		if err != nil {
			return err
		}
		return ms.t.putUint(k, n+uintIn(e.Value))
	}
	if part == partRuleLife {
		return addRecord(ms.t, e, k, ruleLife.plus)
	}
	return addRecord(ms.t, e, k, ruleUse.plus)
}

// addRecord adds the record of an entry to the record at k, if there is one.
func addRecord[T any, P recordPointer[T]](t *txn, e Entry, k key, plus func(more, own T) T) error {
	more, err := decodeEntry[T, P](e)
	if err != nil {
		return err
	}
	own, err := get[T, P](t.Tx, k)
	if err != nil {
		return err
	}
	if own != nil {
		*more = plus(*more, *own)
	}
	return t.put(k, P(more))
}
