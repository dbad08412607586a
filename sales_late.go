package main

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// Sales that come late, and sales that a till sends again.
//
// With externalIds "Unique" a till that was offline can send its queue again, however late: a sale
// that it sent before is recognized by its values and not registered again (contract §14). The
// externalId of a purchase that was wholly returned is free (§19). This needs no records of its own:
// the index of externalIds finds a purchase, and the index of times a return, which has the
// externalId of its purchase.

// mostNamesakes is how many sales with one externalId are compared, newest first. More
// than one can only be from before the setting was Unique.
const mostNamesakes = 1000

// knownSale returns the sale that is sent again; nil if it is new. A purchase whose
// externalId is known with other values is external_id_conflict, and a purchase with the
// values of one that was wholly returned is external_id_undone.
func (sa *salesTxn) knownSale(in newSale) (*sale, error) {
	switch unique := sa.t.cfg.uniqueExternalIDs(); {
	case in.Type == typePurchase && in.ExternalID != "":
		if unique {
			return sa.knownPurchase(in)
		}
		return nil, sa.checkUndone(in)
	case unique && in.Type == typeReturn && in.OccurredAt != 0:
		return sa.knownReturn(in)
	}
	return nil, nil
}

// knownPurchase is knownSale for a purchase whose externalId is Unique. Purchases that stand
// come before wholly returned ones.
//
// A purchase with Again is new, unless it was registered so before and undone, too, and an
// offline queue sends it a second time. It is known by its moment: an undone purchase of the
// same moment that is not the first undone one was itself registered with Again.
func (sa *salesTxn) knownPurchase(in newSale) (*sale, error) {
	var standing, undone *sale // the newest that stands, and the newest undone one with the same values
	var then, again *sale      // the undone one of the same moment; the same one, once an older undone one is seen
	for known, err := range sa.purchasesCalled(in.ExternalID) {
		if err != nil {
			return nil, err
		}
		same, err := sa.isSame(known, in)
		switch {
		case err != nil:
			return nil, err
		case known.whollyReturned():
			if !same {
				continue
			}
			if undone, again = cmp.Or(undone, known), cmp.Or(again, then); known.CreatedAt == in.OccurredAt {
				then = known
			}
		case same:
			return known, nil
		case standing == nil:
			standing = known
		}
	}
	if standing == nil {
		if in.Again {
			undone = again
		}
		if undone != nil {
			return nil, errUndone(undone.ID)
		}
		return nil, nil
	}
	if err := sa.checkOccurred(in.OccurredAt); err != nil {
		return nil, err
	}
	if _, err := sa.t.customers.get(in.Customer); err != nil {
		return nil, err
	}
	return nil, newError(codeExternalIDConflict).on("externalId").with("transactionId", standing.ID)
}

// checkUndone refuses a purchase with the externalId and the values of one that was wholly
// returned, unless a purchase that stands has taken the externalId since. Without returns it
// reads nothing.
func (sa *salesTxn) checkUndone(in newSale) error {
	n, err := sa.t.count()
	if err != nil || n.Returns == 0 || in.Again {
		return err
	}
	for known, err := range sa.purchasesCalled(in.ExternalID) {
		if err != nil || !known.whollyReturned() {
			return err
		}
		if same, err := sa.isSame(known, in); err != nil {
			return err
		} else if same {
			return errUndone(known.ID)
		}
	}
	return nil
}

// purchasesCalled yields the purchases with an externalId, newest first.
func (sa *salesTxn) purchasesCalled(externalID string) iter.Seq2[*sale, error] {
	return func(yield func(*sale, error) bool) {
		for s, err := range sa.called(externalID) {
			if (err != nil || s.Type == typePurchase) && !yield(s, err) {
				return
			}
		}
	}
}

// called yields the sales with an externalId, newest first, of which the newest mostNamesakes are looked at.
func (sa *salesTxn) called(externalID string) iter.Seq2[*sale, error] {
	prefix, looked := sa.externalKey(externalID), 0
	return func(yield func(*sale, error) bool) {
		for e, err := range scan(sa.t.Tx, prefix, true) {
			if looked++; err == nil && looked > mostNamesakes {
				return
			}
			var s *sale
			if err == nil {
				s, err = sa.at(uintIn(e.Key[len(prefix):]))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if s.ExternalID == externalID && !yield(s, nil) {
				return
			}
		}
	}
}

// knownReturn returns the return that is sent again; nil if it is new. A return that was sent as
// of a later moment than it came has an earlier CreatedAt.
func (sa *salesTxn) knownReturn(in newSale) (*sale, error) {
	prefix := orgKey('h', sa.t.org)
	first := slices.Clone(prefix).instant(in.OccurredAt - aheadSlack)
	for e, err := range sa.t.Scan(first, slices.Clone(prefix).instant(in.OccurredAt).after(), true) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 5 {
			return nil, unreadable(e.Key)
		}
		if e.Value[0] != kindReturn {
			continue
		}
		s, err := sa.at(uintIn(e.Key[len(prefix)+8:]))
		if err != nil {
			return nil, err
		}
		if cmp.Or(s.OccurredAt, s.CreatedAt) != in.OccurredAt || !s.isOfPurchase(in) {
			continue
		}
		if same, err := sa.isSame(s, in); same || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// isOfPurchase reports whether a return is of the purchase that in names.
func (s *sale) isOfPurchase(in newSale) bool {
	if in.Original != nil {
		return s.Previous == *in.Original
	}
	if in.ExternalID == "" {
		return s.ExternalID == "" && s.Previous == (id{}) // of none
	}
	return s.ExternalID == in.ExternalID
}

// isSame reports whether a sale has the customer, amount, items and payment of in.
func (sa *salesTxn) isSame(s *sale, in newSale) (bool, error) {
	if s.Total != in.Total || !slices.Equal(s.Items, in.Items) {
		return false, nil
	}
	if s.Type == typePurchase {
		if same, err := sa.isPaidAs(s, in.Pay); err != nil || !same {
			return false, err
		}
	}
	return sa.t.merges.sameOwner(s.Customer, in.Customer)
}

// A sale may come later than it happened: from a till that was offline, or by an import
// (contract §14). CreatedAt is when it happened. Rules, expiry and statistics go by it,
// and the movements of the sale carry it. RegisteredAt is when the sale came. The account
// does not go back in time: the sale finds the tier, the segments and, for a return, the lots
// of now.
//
// RegisteredAt never falls from one sale to the next, so a binary search finds the sales
// registered from a moment on. If the clock was set back, each sale gets the RegisteredAt of the
// sale before, until the clock has caught up.

// aheadSlack is how far ahead of the server a till's clock may be. A sale that is ahead by up to
// aheadSlack happens now.
const aheadSlack = 5 * 60 * 1000 // milliseconds

// checkOccurred refuses a sale that happened too long ago or is yet to happen; 0 is now.
func (sa *salesTxn) checkOccurred(at instant) error {
	if at == 0 {
		return nil
	}
	oldest := instantOf(sa.t.now.time().In(sa.t.cfg.zone).AddDate(0, 0, -sa.t.cfg.maxLateDays()))
	if at < oldest || at > sa.t.now+aheadSlack {
		return errOccurredAt(sa.t.cfg)
	}
	return nil
}

func errOccurredAt(cfg *config) *apiError {
	e := newError(codeOccurredAtInvalid).on("occurredAt")
	switch days := cfg.maxLateDays(); days {
	case usualLateDays:
	case 1:
		e.message = "occurredAt no puede ser futura ni anterior a 1 día"
	default:
		e.message = fmt.Sprintf("occurredAt no puede ser futura ni anterior a %d días", days)
	}
	return e
}

func errBeforePurchase() *apiError {
	e := newError(codeOccurredAtInvalid).on("occurredAt")
	e.message = "occurredAt no puede ser anterior a la compra"
	return e
}

// expireLate expires the points of a late sale that have expired by now, each at its own moment.
// It returns the sale after that.
func (sa *salesTxn) expireLate(list []affectedAccount, s *sale) (*sale, error) {
	for _, p := range list {
		if p.Due > sa.t.now {
			continue
		}
		if err := sa.t.points.settle(p.account); err != nil {
			return nil, err
		}
	}
	s, err := sa.at(s.Seq)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		v := s.shareIn(p.program.Number)
		v.ExpiredLate, v.Balance = v.Balance-p.Balance, p.Balance
	}
	return s, sa.save(s)
}

func (sa *salesTxn) registeredBefore(at instant) (uint64, error) {
	if at <= 0 {
		return 0, nil
	}
	n, err := sa.t.count()
	if err != nil {
		return 0, err
	}
	if n.Registered < at {
		return n.Sales, nil
	}
	return searchNumber(n.Sales, func(seq uint64) (bool, error) {
		s, err := sa.at(seq)
		return err == nil && s.RegisteredAt >= at, err
	})
}

// searchNumber returns how many of the numbers from 1 to n come before the first for which in is
// true. in has to be true for all numbers after it.
func searchNumber(n uint64, in func(uint64) (bool, error)) (before uint64, err error) {
	i := sort.Search(int(n), func(i int) bool {
		found, fault := in(uint64(i) + 1)
		err = errors.Join(err, fault)
		return found
	})
	return uint64(i), err
}
