package main

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Lots, in the order in which debits take from them, and the sums of the points that expire at one
// moment. The account's record holds a few of each; when there are more, each has an entry.

// A lot is what is left of one credit. A lot with nothing left is not kept.
type lot struct {
	Seq       uint64  // sequence of the credit's movement
	AvailFrom instant // 0 if it was available at once
	Expires   instant
	Left      decimal
}

func (l *lot) fields(c *coder) { l.fieldsAfter(&lot{}, c) }

// fieldsAfter keeps the moments as differences from the lot before, which are
// often zero.
func (l *lot) fieldsAfter(before *lot, c *coder) {
	c.uint(&l.Seq)
	c.instantAfter(before.AvailFrom, &l.AvailFrom)
	c.instantAfter(before.Expires, &l.Expires)
	c.decimal(&l.Left)
}

func lotsField(c *coder, list *[]lot) {
	before := &lot{}
	listField(c, list, func(l *lot, c *coder) {
		l.fieldsAfter(before, c)
		before = l
	})
}

// moment is what lots of a part are ordered by: their expiry if they are
// available (partLot), when they become available if pending (partPending).
func (l *lot) moment(part byte) instant {
	if part == partPending {
		return l.AvailFrom
	}
	return l.Expires
}

// lotsOf are the lots of a part in the account's own record.
func (a *account) lotsOf(part byte) *[]lot {
	if part == partPending {
		return &a.Waiting
	}
	return &a.Lots
}

func (a *account) findLot(part byte, l *lot) (i int, found bool) {
	return slices.BinarySearchFunc(*a.lotsOf(part), l, func(other lot, l *lot) int {
		return cmp.Or(cmp.Compare(other.moment(part), l.moment(part)), cmp.Compare(other.Seq, l.Seq))
	})
}

func (pt *pointsTxn) lotKey(a *account, part byte, l *lot) key {
	return pt.partKey(a, part).instant(l.moment(part)).u64(l.Seq)
}

// lots yields the account's lots of a part in order. The loop body must not change
// any: they may come from a Scan.
func (pt *pointsTxn) lots(a *account, part byte) iter.Seq2[*lot, error] {
	return func(yield func(*lot, error) bool) {
		if !a.LotsApart {
			for _, l := range slices.Clone(*a.lotsOf(part)) {
				if !yield(&l, nil) {
					return
				}
			}
			return
		}
		for e, err := range scan(pt.t.Tx, pt.partKey(a, part), false) {
			var l *lot
			if err == nil {
				l, err = decodeEntry[lot](e)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// lot returns the lot of a part that has place's moment and Seq; nil if nothing is
// left of it.
func (pt *pointsTxn) lot(a *account, part byte, place *lot) (*lot, error) {
	if a.LotsApart {
		return get[lot](pt.t.Tx, pt.lotKey(a, part, place))
	}
	i, found := a.findLot(part, place)
	if !found {
		return nil, nil
	}
	l := (*a.lotsOf(part))[i]
	return &l, nil
}

// lotOf returns the available lot that was used, empty if nothing is left of it.
func (pt *pointsTxn) lotOf(a *account, u use) (*lot, error) {
	place := &lot{Seq: u.Seq, Expires: u.Expires}
	l, err := pt.lot(a, partLot, place)
	if l == nil {
		l = place
	}
	return l, err
}

// keepLot writes a lot, or deletes it if nothing is left of it.
func (pt *pointsTxn) keepLot(a *account, part byte, l *lot) error {
	if a.LotsApart {
		k := pt.lotKey(a, part, l)
		if l.Left == 0 {
			return pt.t.Delete(k)
		}
		return pt.t.put(k, l)
	}
	list := a.lotsOf(part)
	i, found := a.findLot(part, l)
	switch {
	case l.Left == 0 && found:
		*list = slices.Delete(*list, i, i+1)
	case l.Left == 0:
	case found:
		(*list)[i] = *l
	default:
		*list = slices.Insert(*list, i, *l)
	}
	if len(a.Lots)+len(a.Waiting) <= pt.t.inline.lots {
		return nil
	}
	return pt.setLotsApart(a)
}

// setLotsApart gives each lot an entry of its own.
func (pt *pointsTxn) setLotsApart(a *account) error {
	for _, part := range []byte{partLot, partPending} {
		for _, l := range *a.lotsOf(part) {
			if err := pt.t.put(pt.lotKey(a, part, &l), &l); err != nil {
				return err
			}
		}
	}
	a.Sums = sumsOf(a.Lots)
	a.Lots, a.Waiting, a.LotsApart = nil, nil, true
	return pt.setSumsApart(a)
}

// sumsOf adds up by expiry what is left in lots; lots that never expire are left out.
func sumsOf(lots []lot) []expiring {
	list := make([]expiring, 0, len(lots))
	for _, l := range lots {
		if l.Expires == never {
			break // lots that never expire come last
		}
		if n := len(list); n > 0 && list[n-1].ExpiresAt == l.Expires {
			list[n-1].Amount += l.Left
		} else {
			list = append(list, expiring{l.Left, l.Expires})
		}
	}
	return list
}

// changeLot adds amount, which is negative to take, to an available lot and to
// the sum of its expiry.
func (pt *pointsTxn) changeLot(a *account, l *lot, amount decimal) error {
	left := amount // in all lots with the same expiry, after the change
	switch {
	case l.Expires == never:
	case a.LotsApart:
		var err error
		if left, err = pt.changeSum(a, l.Expires, amount); err != nil {
			return err
		}
	default:
		for _, other := range a.Lots {
			if other.Expires == l.Expires {
				left += other.Left
			}
		}
	}
	l.Left += amount
	if err := pt.keepLot(a, partLot, l); err != nil || l.Expires == never {
		return err
	}
	if left == 0 {
		a.notDueAt(l.Expires - noticeTime)
	} else {
		a.dueAt(noticeOf(l.Expires, a.Told))
	}
	return nil
}

// changeSum adds to the sum of the lots apart that expire at a moment, and
// returns the new sum.
func (pt *pointsTxn) changeSum(a *account, expires instant, amount decimal) (left decimal, err error) {
	if a.SumsApart {
		k := pt.partKey(a, partExpiring).instant(expires)
		sum, _, err := getUint(pt.t.Tx, k)
		if err != nil {
			return 0, err
		}
		left = decimal(sum) + amount
		return left, pt.t.putCount(k, uint64(left))
	}
	i, found := slices.BinarySearchFunc(a.Sums, expires, func(s expiring, at instant) int { return cmp.Compare(s.ExpiresAt, at) })
	if !found {
		a.Sums = slices.Insert(a.Sums, i, expiring{ExpiresAt: expires})
	}
	a.Sums[i].Amount += amount
	left = a.Sums[i].Amount
	if left == 0 {
		a.Sums = slices.Delete(a.Sums, i, i+1)
	}
	return left, pt.setSumsApart(a)
}

// setSumsApart gives each sum an entry of its own if there are many.
func (pt *pointsTxn) setSumsApart(a *account) error {
	if len(a.Sums) <= pt.t.inline.sums {
		return nil
	}
	for _, s := range a.Sums {
		if err := pt.t.putCount(pt.partKey(a, partExpiring).instant(s.ExpiresAt), uint64(s.Amount)); err != nil {
			return err
		}
	}
	a.Sums, a.SumsApart = nil, true
	return nil
}

func (pt *pointsTxn) changePending(a *account, l *lot, amount decimal) error {
	if l.Left += amount; l.Left == 0 {
		a.notDueAt(l.AvailFrom)
	} else {
		a.dueAt(l.AvailFrom)
	}
	return pt.keepLot(a, partPending, l)
}

// An expiring is how many points expire at one moment.
type expiring struct {
	Amount    decimal `json:"amount"`
	ExpiresAt instant `json:"expiresAt"`
}

func (v expiring) appendJSON(b []byte) []byte {
	b = v.Amount.append(append(b, `{"amount":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	return append(b, '}')
}

// maxExpiring bounds the list of expiring points (contract §7).
const maxExpiring = 100

// expiring lists the points that will expire or lapse, added up by moment, soonest first.
func (pt *pointsTxn) expiring(a *account) ([]expiring, error) {
	list, err := pt.expiringFrom(a, math.MinInt64, maxExpiring)
	if list == nil {
		list = []expiring{}
	}
	return list, err
}

// expiringFrom lists the first points, up to limit moments, that expire or lapse at a moment or
// later. When what is available lapses, that is all of it.
func (pt *pointsTxn) expiringFrom(a *account, from instant, limit int) (list []expiring, err error) {
	list, err = pt.sumsFrom(a, from, limit)
	end := a.lapses()
	if err != nil || end == never {
		return list, err
	}
	n, _ := slices.BinarySearchFunc(list, end, func(s expiring, at instant) int { return cmp.Compare(s.ExpiresAt, at) })
	list = slices.Clip(list[:n]) // others have it too
	if n == limit || from > end {
		return list, nil
	}
	before, err := pt.sumsFrom(a, math.MinInt64, math.MaxInt)
	left := a.Balance
	for _, s := range before {
		if s.ExpiresAt < end {
			left -= s.Amount
		}
	}
	if left > 0 {
		list = append(list, expiring{left, end})
	}
	return list, err
}

// sumsFrom is expiringFrom for what expires by its own life.
func (pt *pointsTxn) sumsFrom(a *account, from instant, limit int) (list []expiring, err error) {
	if !a.SumsApart {
		sums := a.Sums
		if !a.LotsApart {
			sums = sumsOf(a.Lots)
		}
		i, _ := slices.BinarySearchFunc(sums, from, func(s expiring, at instant) int { return cmp.Compare(s.ExpiresAt, at) })
		return sums[i:][:min(limit, len(sums)-i)], nil
	}
	return pt.sumsApart(a, from, limit)
}

// sumsApart is sumsFrom for sums that have entries of their own. It stands apart so that the other
// way, which every balance goes, allocates nothing for the loop.
func (pt *pointsTxn) sumsApart(a *account, from instant, limit int) (list []expiring, err error) {
	prefix := pt.partKey(a, partExpiring)
	for e, err := range pt.t.Scan(slices.Clone(prefix).instant(from), prefix.after(), false) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 8 {
			return nil, unreadable(e.Key)
		}
		list = append(list, expiring{decimal(uintIn(e.Value)), instantIn(e.Key[len(prefix):])})
		if len(list) == limit {
			break
		}
	}
	return list, nil
}

// creditID is the id of the credit at seq, whose lot a movement names. It was made by the
// movement's customer or by one that was merged into it.
func (pt *pointsTxn) creditID(m *movement, seq uint64) (id, error) {
	if merged, err := pt.t.merges.wasMerged(m.Customer); err != nil || !merged {
		return movementID(m.Customer, seq), err
	}
	credit, err := pt.movement(seq)
	if err != nil {
		return id{}, err
	}
	return credit.id(), nil
}
