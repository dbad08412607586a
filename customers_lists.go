package main

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"sello/internal/blockset"
	"sello/internal/ngram"
)

// Customers by status. For each status other than Active there is a set of customers'
// numbers (internal/blockset), with a count for each group of 65,536 customers. All other customers
// are Active. A page of a list by status costs a scan of the counts and of a few groups.
//
//	K org 0 status block → set of customers
//	K org 1 status group → how many there are in the group

const statusGroup = 1 << 16

// statusLetter stands for a status in keys; 0 for one without a set.
func statusLetter(status string) byte {
	switch status {
	case statusInactive, statusMerged, statusErased:
		return status[0]
	}
	return 0
}

func (cu *customersTxn) statusKey(letter byte) key { return orgKey('K', cu.t.org).byte(0).byte(letter) }

func (cu *customersTxn) statusCountKey(letter byte, group uint32) key {
	return orgKey('K', cu.t.org).byte(1).byte(letter).u32(group)
}

func (cu *customersTxn) moveStatus(number uint64, from, to string) error {
	if from == to {
		return nil
	}
	if err := cu.putStatus(statusLetter(from), number, false); err != nil {
		return err
	}
	return cu.putStatus(statusLetter(to), number, true)
}

func (cu *customersTxn) putStatus(letter byte, number uint64, member bool) error {
	if letter == 0 {
		return nil
	}
	changed, err := putInSet(cu.t, cu.statusKey(letter), number, member)
	if err != nil || !changed {
		return err
	}
	change := +1
	if !member {
		change = -1
	}
	return cu.t.countAt(cu.statusCountKey(letter, uint32(number/statusGroup)), change)
}

// A statusFilter selects the customers in the sets of its letters or, if others is set, the
// customers in none of these sets.
type statusFilter struct {
	letters string
	others  bool
}

// The filters of lists.
var (
	notHidden    = statusFilter{"ME", true}
	onlyActive   = statusFilter{"IME", true}
	onlyInactive = statusFilter{"I", false}
)

// statusFilterOf is the filter of a status; "" stands for all that are not hidden.
func statusFilterOf(status string) statusFilter {
	switch status {
	case statusActive:
		return onlyActive
	case statusInactive:
		return onlyInactive
	}
	return notHidden
}

// groupSizes returns how many of the first n customers pass a filter, by group. It is nil
// if all do.
func (cu *customersTxn) groupSizes(f statusFilter, n uint64) ([]uint64, error) {
	var sizes []uint64
	begin := func() {
		sizes = make([]uint64, n/statusGroup+1)
		for group := range sizes {
			if first := uint64(group) * statusGroup; f.others {
				sizes[group] = min(n+1, first+statusGroup) - max(first, 1)
			}
		}
	}
	if !f.others {
		begin()
	}
	prefix := orgKey('K', cu.t.org).byte(1)
	for e, err := range scan(cu.t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		if len(e.Key) != len(prefix)+5 || len(e.Value) != 8 {
			return nil, unreadable(e.Key)
		}
		letter, group := e.Key[len(prefix)], uint64(uint32In(e.Key[len(prefix)+1:]))
		if !slices.Contains([]byte(f.letters), letter) || group > n/statusGroup {
			continue
		}
		if sizes == nil {
			begin()
		}
		if f.others {
			sizes[group] -= min(uintIn(e.Value), sizes[group])
		} else {
			sizes[group] += uintIn(e.Value)
		}
	}
	return sizes, nil
}

func (cu *customersTxn) countShown() (total uint64, err error) {
	n, err := cu.t.count()
	if err != nil {
		return 0, err
	}
	sizes, err := cu.groupSizes(notHidden, n.Customers)
	if sizes == nil {
		return n.Customers, err
	}
	for _, size := range sizes {
		total += size
	}
	return total, err
}

// filtered returns which of the n customers from first on pass a filter. In the set they
// count from 0. Both first and n are multiples of blockset.Block.
func (cu *customersTxn) filtered(f statusFilter, first, n uint64) (customerSet, error) {
	set := make(customerSet, n/64)
	for _, letter := range []byte(f.letters) {
		sets := cu.statusKey(letter)
		lo, hi := slices.Clone(sets).u32(uint32(first/blockset.Block)), slices.Clone(sets).u32(uint32((first+n)/blockset.Block))
		for e, err := range cu.t.Scan(lo, hi, false) {
			if err != nil {
				return nil, err
			}
			if len(e.Key) != len(lo) || !blockset.Valid(e.Value) {
				return nil, unreadable(e.Key)
			}
			bits := blockset.Decode(e.Value)
			words := set[(uint64(uint32In(e.Key[len(sets):]))*blockset.Block-first)/64:]
			for i := range blockset.Block / 64 {
				words[i] |= binary.LittleEndian.Uint64(bits[8*i:])
			}
		}
	}
	if f.others {
		for i := range set {
			set[i] = ^set[i]
		}
	}
	return set, nil
}

// list returns a page of the customers that pass a filter, newest first, and
// how many there are.
func (cu *customersTxn) list(f statusFilter, p page) ([]id, uint64, error) {
	n, err := cu.t.count()
	if err != nil {
		return nil, 0, err
	}
	sizes, err := cu.groupSizes(f, n.Customers)
	if err != nil {
		return nil, 0, err
	}
	if sizes == nil {
		return cu.listAll(n.Customers, p)
	}
	var total uint64
	for _, size := range sizes {
		total += size
	}
	var page []uint64
	skip := p.skip()
pages:
	for group, size := range slices.Backward(sizes) {
		if skip >= size {
			skip -= size
			continue
		}
		found, err := cu.filtered(f, uint64(group)*statusGroup, statusGroup)
		if err != nil {
			return nil, 0, err
		}
		for number := range found.backward() {
			number += uint64(group) * statusGroup
			if number == 0 || number > n.Customers {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			if page = append(page, number); uint64(len(page)) == p.limit {
				break pages
			}
		}
	}
	list, err := cu.idsAt(page)
	return list, total, err
}

// listAll is list if all n customers pass.
func (cu *customersTxn) listAll(n uint64, p page) ([]id, uint64, error) {
	first, last, ok := p.span(n)
	if !ok {
		return nil, n, nil
	}
	page := make([]id, 0, first-last+1)
	for cust, err := range cu.ids(last, first, true) {
		if err != nil {
			return nil, 0, err
		}
		page = append(page, cust)
	}
	return page, n, nil
}

// search returns a page of the customers that a search finds and that pass a
// filter, newest first, and how many there are.
func (cu *customersTxn) search(needle string, f statusFilter, p page) ([]id, uint64, error) {
	found, total, err := cu.t.search.find(needle, f, p)
	if err != nil {
		return nil, 0, err
	}
	page, err := cu.idsAt(found)
	return page, total, err
}

// keep removes the customers that do not pass a filter from a block of a search.
func (cu *customersTxn) keep(f statusFilter, block uint64, found *ngram.Found) error {
	if f == notHidden {
		return nil // a search finds no hidden ones
	}
	set, err := cu.filtered(f, block*ngram.Block, ngram.Block)
	if err != nil {
		return err
	}
	for i := range found {
		found[i] &= set[i]
	}
	return nil
}

// Walks are customers in the order of their enrolment, which is the order of their numbers (contract
// §23). A page of a walk says where the next one begins, so that nobody comes twice, and nobody
// who is in the walk from its beginning to its end is missed, whatever changes between two pages.
// A page looks at a bounded number of customers, however few of them it takes.

// walkedAtOnce is how many customers a page looks at.
const walkedAtOnce = 2000

// A walk says where a page begins, and whom it takes: nobody who is hidden.
type walk struct {
	after  uint64 // number of the last customer that was looked at; 0: none
	limit  int
	status string                        // "": any
	since  instant                       // of the last change
	member func(*customer) (bool, error) // nil: takes all
	warm   []func(id) key                // of what member reads beside the customer
}

// page returns the customers of a page, and the after of the next one; 0 at the end of all
// customers.
func (cu *customersTxn) page(w walk) (found []id, next uint64, err error) {
	n, err := cu.t.count()
	if err != nil || w.after >= n.Customers {
		return nil, 0, err
	}
	var (
		c    customer
		turn pacer
		list = make([]id, 0, readAtOnce)
		keys = append([]func(id) key{func(u id) key { return cu.t.scratchKey(u, partCustomer) }}, w.warm...)
		last = min(w.after+walkedAtOnce, n.Customers)
	)
	for first := w.after + 1; first <= last; first += readAtOnce {
		list = list[:0]
		for cust, err := range cu.ids(first, min(first+readAtOnce-1, last), false) {
			if err != nil {
				return nil, 0, err
			}
			list = append(list, cust)
		}
		warm(cu.t.Tx, list, keys...)
		for _, cust := range list {
			if err := cu.read(cust, &c); err != nil {
				return nil, 0, err
			}
			taken, err := w.takes(&c)
			if err != nil {
				return nil, 0, err
			}
			if taken {
				found = append(found, cust)
			}
			if len(found) == w.limit {
				last = c.Number
				break
			}
			turn.pause()
		}
	}
	if last < n.Customers {
		next = last
	}
	return found, next, nil
}

func (w *walk) takes(c *customer) (bool, error) {
	switch {
	case c.hidden(), w.status != "" && c.Status != w.status, c.UpdatedAt < w.since:
		return false, nil
	case w.member == nil:
		return true, nil
	}
	return w.member(c)
}

// A cursor is the after of a walk as clients get it: opaque, so that it may become another one.
// Its first byte is its version.

const cursorVersion = 1

// cursorOf is null for the end of a walk.
func cursorOf(after uint64) *string {
	if after == 0 {
		return nil
	}
	return new(base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{cursorVersion}, after)))
}

// parseCursor reads a cursor; "" is where a walk begins.
func parseCursor(text string) (after uint64, ok bool) {
	if text == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 1+8 || b[0] != cursorVersion || base64.RawURLEncoding.EncodeToString(b) != text {
		return 0, false
	}
	after = binary.BigEndian.Uint64(b[1:])
	return after, after > 0
}
