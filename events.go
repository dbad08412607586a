package main

import (
	"encoding/binary"
	"slices"
	"strings"
)

// The feed of events tells integrators what happened, in the order of writing and without
// gaps (contract §17). An event is written in the transaction of its effect. It refers to
// records, and shows them as they are when the feed is read; so it holds nothing personal, and
// erasing a customer leaves nothing in it.
//
//	F org seq → events of one transaction, by the sequence of the first: their moment and
//	            number, and the kind of each and what it refers to
//
// Sequences count from 1. The sweep drops events after keptEvents.

// keptEvents is for how long events are kept, in milliseconds.
const keptEvents = 30 * 24 * 60 * 60 * 1000

// manyEvents bounds the events of one record.
const manyEvents = 64

// An eventKind is what an event is about. The file depends on the numbers.
type eventKind byte

const (
	eventCustomerCreated eventKind = 1 + iota
	eventCustomerUpdated
	eventCustomerMerged
	eventCustomerErased
	eventPointsAdded
	eventPointsDeducted
	eventPointsAvailable
	eventPointsExpired
	eventPointsReversed
	eventPointsExpiring
	eventTransactionCreated
	eventRedemptionCreated
	eventRedemptionUsed
	eventRedemptionCancelled
	eventRedemptionExpired
	eventTierChanged
	eventConfigurationApplied
	eventPointsHeld
	eventPointsReleased
	eventTierExpiring
	eventCardIssued
	eventCardRevoked
	eventTicketCreated
	eventTicketClaimed
	eventTicketCancelled
	manyEventKinds
)

// eventKinds has each kind's type, as clients know it, and how many numbers its events
// refer to.
var eventKinds = [manyEventKinds]struct {
	name string
	refs int
}{
	eventCustomerCreated:      {"customer.created", 1},      // number of the customer
	eventCustomerUpdated:      {"customer.updated", 1},      // the same
	eventCustomerMerged:       {"customer.merged", 2},       // numbers of the merged one and the survivor
	eventCustomerErased:       {"customer.erased", 1},       // number of the customer
	eventPointsAdded:          {"points.added", 1},          // sequence of the movement
	eventPointsDeducted:       {"points.deducted", 1},       // the same
	eventPointsAvailable:      {"points.available", 3},      // sequence of the credit, number of the customer who has it, amount
	eventPointsExpired:        {"points.expired", 1},        // sequence of the movement
	eventPointsReversed:       {"points.reversed", 1},       // the same
	eventPointsExpiring:       {"points.expiring", 4},       // numbers of the customer and the program, expiry, amount
	eventTransactionCreated:   {"transaction.created", 1},   // sequence of the sale
	eventRedemptionCreated:    {"redemption.created", 1},    // sequence of the redemption
	eventRedemptionUsed:       {"redemption.used", 1},       // the same
	eventRedemptionCancelled:  {"redemption.cancelled", 1},  // the same
	eventRedemptionExpired:    {"redemption.expired", 1},    // the same
	eventTierChanged:          {"tier.changed", 2},          // numbers of the customer and the program; two texts: from, to
	eventConfigurationApplied: {"configuration.applied", 1}, // sequence of its first entry in the audit log
	eventPointsHeld:           {"points.held", 2},           // the hold's id, in two halves
	eventPointsReleased:       {"points.released", 2},       // the same
	eventTierExpiring:         {"tier.expiring", 3},         // numbers of the customer and the program, moment of the fall; two texts: from, to
	eventCardIssued:           {"customer.card_issued", 2},  // number of the customer, sequence of the entry in the audit log
	eventCardRevoked:          {"customer.card_revoked", 2}, // the same
	eventTicketCreated:        {"ticket.created", 2},        // the ticket's id, in two halves
	eventTicketClaimed:        {"ticket.claimed", 2},        // the same
	eventTicketCancelled:      {"ticket.cancelled", 2},      // the same
}

var eventTypes = func() (list []string) {
	for _, k := range eventKinds[1:] {
		list = append(list, k.name)
	}
	return list
}()

type event struct {
	Seq      uint64
	At       instant // of its transaction
	Kind     eventKind
	Refs     [4]uint64
	From, To string // of tier.changed and tier.expiring
}

// matchesEvent reports whether a pattern names a type: all of it, or its first part and an
// asterisk, as in points.*.
func matchesEvent(pattern, name string) bool {
	group, isGroup := strings.CutSuffix(pattern, "*")
	return pattern == name || isGroup && strings.HasPrefix(name, group)
}

// isEventPattern reports whether a pattern names any type. "*" names them all.
func isEventPattern(pattern string) bool {
	group, isGroup := strings.CutSuffix(pattern, "*")
	return slices.ContainsFunc(eventTypes, func(name string) bool { return matchesEvent(pattern, name) }) &&
		(!isGroup || group == "" || strings.HasSuffix(group, "."))
}

type feedTxn struct {
	t       *txn
	pending pendingEvents
}

// pendingEvents are the events of a transaction that are not written yet.
type pendingEvents struct {
	at   instant
	many uint64
	text []byte // of each, as eventRecord has it
}

// copyFrom makes e a copy of o, in its own memory.
func (e *pendingEvents) copyFrom(o *pendingEvents) {
	e.at, e.many, e.text = o.at, o.many, append(e.text[:0], o.text...)
}

func (f *feedTxn) emit(kind eventKind, refs ...uint64) error {
	if f.pending.many == manyEvents || f.pending.at != f.t.began {
		if err := f.save(); err != nil {
			return err
		}
		f.pending.at = f.t.began
	}
	if f.pending.text == nil {
		f.pending.text = make([]byte, 0, 32)
	}
	f.pending.many++
	f.pending.text = append(f.pending.text, byte(kind))
	for _, ref := range refs {
		f.pending.text = binary.AppendUvarint(f.pending.text, ref)
	}
	return nil
}

// emitTier adds an event that has two tiers.
func (f *feedTxn) emitTier(kind eventKind, from, to string, refs ...uint64) error {
	if err := f.emit(kind, refs...); err != nil {
		return err
	}
	c := coder{reader: reader{b: f.pending.text}}
	c.text(&from)
	c.text(&to)
	f.pending.text = c.b
	return nil
}

// emitOf is emit of what has no number: the event names it by its id, in two halves.
func (f *feedTxn) emitOf(kind eventKind, u id) error {
	return f.emit(kind, uintIn(u[:8]), uintIn(u[8:]))
}

// of is the id of what an event of emitOf is about.
func (e *event) of() id { return id(key(nil).u64(e.Refs[0]).u64(e.Refs[1])) }

// save writes the events that the transaction holds.
func (f *feedTxn) save() error {
	if f.pending.many == 0 {
		return nil
	}
	n, err := f.t.count()
	if err != nil {
		return err
	}
	c := f.t.scratch()
	c.instant(&f.pending.at)
	c.uint(&f.pending.many)
	c.b = append(c.b, f.pending.text...)
	first := n.Events + 1
	n.Events += f.pending.many
	f.pending.many, f.pending.text = 0, f.pending.text[:0]
	return f.t.Put(f.t.scratchOrgKey('F').u64(first), c.b)
}

// An eventRecord is the events of one transaction, or some of them.
type eventRecord struct {
	At   instant
	List []event // without Seq and At
}

func (r *eventRecord) fields(c *coder) {
	c.instant(&r.At)
	listField(c, &r.List, (*event).fields)
}

func (e *event) fields(c *coder) {
	byteField(c, &e.Kind)
	if c.reading && (e.Kind == 0 || e.Kind >= manyEventKinds) {
		e.Kind = 0 // it has no references
		c.fail()
	}
	for i := range eventKinds[e.Kind].refs {
		c.uint(&e.Refs[i])
	}
	if e.Kind == eventTierChanged || e.Kind == eventTierExpiring {
		c.text(&e.From)
		c.text(&e.To)
	}
}

func eventKey(org uint32, seq uint64) key { return orgKey('F', org).u64(seq) }

func eventsIn(e Entry) ([]event, error) {
	r, err := decodeEntry[eventRecord](e)
	if err != nil {
		return nil, err
	}
	for i := range r.List {
		r.List[i].Seq, r.List[i].At = uintIn(e.Key[5:])+uint64(i), r.At
	}
	return r.List, nil
}

// mostSkipped is how many events of other types one request passes over.
const mostSkipped = 10_000

type eventsAfter struct {
	after uint64
	given bool     // else from the oldest event on
	types []string // patterns; none: all
	limit int
}

func (q *eventsAfter) wants(k eventKind) bool {
	return len(q.types) == 0 || slices.ContainsFunc(q.types, func(p string) bool { return matchesEvent(p, eventKinds[k].name) })
}

// eventsToCome is the message of events_gone for a reader that is ahead of the feed, as after
// a restore.
const eventsToCome = "after es posterior al último evento: los siguientes todavía no existen"

// page returns events, oldest first, and the sequence to go on after. If some after
// q.after are no longer kept, or that is beyond the last one, the error is events_gone.
func (f *feedTxn) page(q eventsAfter) (list []event, next uint64, err error) {
	n, err := f.t.count()
	if err != nil {
		return nil, 0, err
	}
	next = q.after
	if !q.given {
		next = n.Dropped
	}
	if next < n.Dropped || next > n.Events {
		gone := newError(codeEventsGone).with("first", n.Dropped+1).with("last", n.Events)
		if next > n.Events {
			gone.message = eventsToCome
		}
		return nil, 0, gone
	}
	looked := next + mostSkipped
	for e, err := range f.from(next + 1) {
		if err != nil {
			return nil, 0, err
		}
		if e.Seq > looked && len(q.types) > 0 {
			break
		}
		next = e.Seq
		if q.wants(e.Kind) {
			if list = append(list, e); len(list) == q.limit {
				break
			}
		}
	}
	return list, next, nil
}

func (f *feedTxn) from(seq uint64) func(yield func(event, error) bool) {
	return func(yield func(event, error) bool) {
		from := eventKey(f.t.org, seq)
		for e, err := range f.t.Scan(orgKey('F', f.t.org), eventKey(f.t.org, seq+1), true) { // the record that has seq may begin before it
			if err != nil {
				yield(event{}, err)
				return
			}
			from = slices.Clone(e.Key)
			break
		}
		for e, err := range f.t.Scan(from, orgKey('F', f.t.org).after(), false) {
			var list []event
			if err == nil {
				list, err = eventsIn(e)
			}
			if err != nil {
				yield(event{}, err)
				return
			}
			for _, one := range list {
				if one.Seq >= seq && !yield(one, nil) {
					return
				}
			}
		}
	}
}

// oldEvents returns the first entries of events, up to limit, that are kept no longer, and
// the sequence of their last event.
func oldEvents(tx Tx, org uint32, now instant, limit int) (list []key, last uint64, err error) {
	for e, err := range scan(tx, orgKey('F', org), false) {
		if err != nil {
			return nil, 0, err
		}
		r, err := decodeEntry[eventRecord](e)
		if err != nil {
			return nil, 0, err
		}
		if r.At > now-keptEvents {
			break
		}
		last = uintIn(e.Key[5:]) + uint64(len(r.List)) - 1
		if list = append(list, slices.Clone(e.Key)); len(list) == limit {
			break
		}
	}
	return list, last, nil
}

// dropEvents drops the first events that are kept no longer, of so many entries at most.
func dropEvents(tx Tx, org uint32, now instant, limit int) error {
	list, last, err := oldEvents(tx, org, now, limit)
	if err != nil || len(list) == 0 {
		return err
	}
	for _, k := range list {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return changeCounters(tx, org, func(n *counters) error {
		n.Dropped = last
		return nil
	})
}
