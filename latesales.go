package main

import (
	"errors"
	"fmt"
	"sort"
)

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

// registeredBefore returns how many sales were registered before a moment.
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
