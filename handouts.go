package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A handout gives the same points to every customer in a segment (contract §23). The panel starts
// one, and a task of the server gives the points in bounded transactions, in the order of the
// customers' enrolment. How far it has come is stored with what was given: after a stop the task
// goes on by itself, and nobody gets points twice. An organization has one handout under way at a
// time, and keeps the last one:
//
//	Q org → handout
//
// Each movement has a reference made of the handout's id and the customer's. A customer who leaves
// the segment before its turn gets nothing; one who enters it meanwhile may or may not get points.

const (
	handoutBatch = 50 // customers that one transaction gives points to
	handoutTurn  = 20 // transactions before the task lets others of the server go on
)

// A handout is points for everybody in a segment, and how far it has come.
type handout struct {
	ID, Segment id
	Program     uint32
	Points      decimal // for each customer
	Category    string
	Comment     string
	Expires     instant // 0: as the program says
	By          creator
	Began       instant
	Ended       instant // 0: it is under way
	Counted     uint64  // customers when it began, whose points its maker's purse has
	Given       uint64  // customers who got points
	Left        uint64  // customers who could not get any: inactive ones, and all beyond a limit
	After       uint64  // number of the last customer that was looked at
}

func (h *handout) fields(c *coder) {
	c.id(&h.ID)
	c.id(&h.Segment)
	uintField(c, &h.Program)
	c.decimal(&h.Points)
	c.text(&h.Category)
	c.text(&h.Comment)
	c.instant(&h.Expires)
	h.By.fields(c)
	c.instant(&h.Began)
	c.instant(&h.Ended)
	for _, v := range []*uint64{&h.Counted, &h.Given, &h.Left, &h.After} {
		c.uint(v)
	}
}

// times is the points of so many customers. ok is false beyond the range of points.
func (h *handout) times(customers uint64) (sum decimal, ok bool) {
	if customers > uint64(maxDecimal/h.Points) {
		return 0, false
	}
	return h.Points * decimal(customers), true
}

// asked is the movement of one customer.
func (h *handout) asked(cust id, p *program) *askedMovement {
	return &askedMovement{
		customer: cust, program: &p.ID, amount: h.Points, category: h.Category, comment: h.Comment, expires: h.Expires,
		reference: h.ID.String() + "/" + cust.String(),
	}
}

// handoutIn is the last handout of an organization; nil: there was none.
func handoutIn(tx Tx, org uint32) (*handout, error) { return get[handout](tx, orgKey('Q', org)) }

// Errors that only the panel has.
var (
	codeHandoutUnderWay = errorCode{"handout_under_way", http.StatusConflict, ""}
	codeHandoutEmpty    = errorCode{"handout_empty", http.StatusConflict, ""}
)

// beginHandout starts a handout for the transaction's creator, whose purse counts its whole sum at
// once: the sum is refused before anybody gets anything. What is not given in the end, since
// customers left the segment, stays counted.
func beginHandout(t *txn, h handout) (*handout, error) {
	last, err := handoutIn(t.Tx, t.org)
	if err != nil {
		return nil, err
	}
	if last != nil && last.Ended == 0 {
		return nil, newError(codeHandoutUnderWay)
	}
	if h.Counted == 0 {
		return nil, newError(codeHandoutEmpty)
	}
	sum, ok := h.times(h.Counted)
	if !ok {
		return nil, newError(codeTooLarge).on("amount")
	}
	b, err := t.keys.budget()
	if err == nil {
		err = t.keys.spend(b, sum)
	}
	if err != nil {
		return nil, err
	}
	h.ID, h.By, h.Began = t.id(), t.by, t.now
	return &h, t.put(orgKey('Q', t.org), &h)
}

// askForHandouts has the task of handouts begin soon.
func (e *engine) askForHandouts() {
	select {
	case e.handouts <- struct{}{}:
	default: // it will
	}
}

// giveHandouts goes on with the handouts of all organizations, for one turn. While the clock is
// unsafe it does nothing. A damaged organization does not hold up the others.
func (e *engine) giveHandouts(ctx context.Context) error {
	orgs, err := viewStore(ctx, e.store, func(tx Tx) (list []uint32, err error) {
		for entry, err := range scan(tx, newKey('Q'), false) {
			if err != nil {
				return nil, err
			}
			h, err := decodeEntry[handout](entry)
			if err != nil || h.Ended == 0 { // an unreadable one is told of below
				list = append(list, uint32In(entry.Key[1:]))
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	var damaged error
	for _, org := range orgs {
		more, err := e.giveHandout(ctx, org)
		if err = unlessUnsafe(err); err != nil && !isDamaged(err) {
			return errors.Join(damaged, err)
		}
		if err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("points for a segment of organization %d: %w", org, err))
		}
		if more {
			e.askForHandouts()
		}
	}
	return damaged
}

// giveHandout makes the next steps of an organization's handout. It reports whether there are more.
func (e *engine) giveHandout(ctx context.Context, org uint32) (more bool, err error) {
	for range handoutTurn {
		now, err := e.momentToWrite()
		if err != nil {
			return false, err
		}
		step, err := read(ctx, e, org, now, nextOfHandout)
		if err != nil {
			return false, err
		}
		more, err := write(ctx, e, org, now, func(t *txn) (bool, error) {
			if err := t.inTime(); err != nil {
				return false, err
			}
			return step.give(t)
		})
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// A handoutStep is the customers to whom one transaction of a handout gives points.
type handoutStep struct {
	of          id // the handout
	after, next uint64
	customers   []id
}

// nextOfHandout finds the next customers in the segment. It reads, so that the transaction
// that gives them points is short.
func nextOfHandout(t *txn) (step handoutStep, err error) {
	h, err := handoutIn(t.Tx, t.org)
	if err != nil || h == nil {
		return step, err
	}
	step.of, step.after = h.ID, h.After
	if s := t.cfg.segment(h.Segment); s != nil {
		step.customers, step.next, err = t.rules.members(s, h.After, handoutBatch)
	}
	return step, err
}

// give gives the customers of a step their points, unless the handout has meanwhile gone on. It
// reports whether there is more to give.
func (step *handoutStep) give(t *txn) (more bool, err error) {
	h, err := handoutIn(t.Tx, t.org)
	if err != nil || h == nil || h.Ended != 0 || h.ID != step.of {
		return false, err
	}
	if h.After != step.after {
		return true, nil
	}
	t.by = h.By
	s, p := t.cfg.segment(h.Segment), t.cfg.programNumber(h.Program)
	if s != nil && s.IsActive && p != nil {
		var turn pacer
		for _, cust := range step.customers {
			if err := h.giveTo(t, cust, s, p); err != nil {
				return false, err
			}
			turn.pause()
		}
	} else if h.Counted > h.Given+h.Left { // the segment is gone, or inactive: nobody else is in it
		h.Left = h.Counted - h.Given
	}
	if h.After = step.next; step.next == 0 {
		h.Ended = t.now
		if err := h.audit(t); err != nil {
			return false, err
		}
	}
	return h.Ended == 0, t.put(orgKey('Q', t.org), h)
}

// audit notes what a handout gave in all.
func (h *handout) audit(t *txn) error {
	sum, _ := h.times(h.Given)
	list := []change{{"amount", nil, h.Points}, {"customers", nil, h.Given}, {"total", nil, sum}, {"category", nil, h.Category}}
	if p := t.cfg.programNumber(h.Program); p != nil && len(t.cfg.Programs) > 1 {
		list = append(list, change{"program", nil, p.Key})
	}
	return t.audit.note(auditSegmentGiven, h.Segment.String(), list)
}

// giveTo gives one customer its points, and counts it.
func (h *handout) giveTo(t *txn, cust id, s *segment, p *program) error {
	c, err := t.customers.byID(cust)
	if err != nil || c == nil || c.hidden() {
		return err
	}
	still := &profile{t: t, customer: c}
	if in := s.Rule.holds(still); !in || still.err != nil {
		return still.err
	}
	given, err := h.credit(t, c, p)
	if given {
		h.Given++
	} else if err == nil {
		h.Left++
	}
	return err
}

// credit reports whether the customer has the points of the handout. It gives none to a customer who
// is not active, who would have more points than there can be, or who is beyond the number counted.
func (h *handout) credit(t *txn, c *customer, p *program) (given bool, err error) {
	family, err := t.merges.idsOf(c.ID)
	if err != nil {
		return false, err
	}
	for _, cust := range family { // who got them may have become part of the customer since
		m, err := t.points.known(h.asked(cust, p))
		if errors.Is(err, newError(codeReferenceConflict)) {
			return false, nil
		}
		if m != nil || err != nil {
			return m != nil, err
		}
	}
	in := h.asked(c.ID, p)
	if c.Status != statusActive || h.Expires != 0 && h.Expires <= t.now || h.Given >= h.Counted {
		return false, nil
	}
	a, err := t.points.account(c, p)
	if err != nil || !a.takes(h.Points) {
		return false, err
	}
	if err := t.points.credit(a, in.movement()); err != nil {
		return false, err
	}
	return true, t.points.saveAccount(a)
}

// countKept is how long a count of a segment is good.
const countKept = 10 * time.Minute

// segmentCounts are how many customers segments have, as they were counted lately. A large
// segment is counted by several requests: each goes on where the last one ended.
type segmentCounts struct {
	mu sync.Mutex
	of map[countOf]segmentCount
}

// A countOf is a segment as a configuration has it.
type countOf struct {
	org     uint32
	version uint64
	segment id
}

// A segmentCount is a count that may not have ended.
type segmentCount struct {
	Active, Inactive uint64 // customers, by whether they can get points
	Looked, All      uint64 // customers of the organization that were looked at
	Done             bool
	began            instant
}

// found returns a count that is still good; a new one if there is none.
func (k *segmentCounts) found(of countOf, now instant) segmentCount {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, c := range k.of {
		if now < c.began || now >= c.began.add(countKept) {
			delete(k.of, key)
		}
	}
	if c, has := k.of[of]; has {
		return c
	}
	return segmentCount{began: now}
}

func (k *segmentCounts) keep(of countOf, c segmentCount) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[countOf]segmentCount{}
	}
	k.of[of] = c
}

// goOn looks at the next customers.
func (c *segmentCount) goOn(t *txn, s *segment) error {
	n, err := t.count()
	if err != nil {
		return err
	}
	found, next, err := t.rules.members(s, c.Looked, walkedAtOnce)
	if err != nil {
		return err
	}
	for _, cust := range found {
		one, err := t.customers.byID(cust)
		switch {
		case err != nil:
			return err
		case one != nil && one.Status == statusActive:
			c.Active++
		default:
			c.Inactive++
		}
	}
	c.Looked, c.All, c.Done = next, n.Customers, next == 0
	return nil
}
