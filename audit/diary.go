package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// A diary is what was sent and what was answered, in the order in which that
// happened: one line of JSON for each, an attempt's before it is sent, an
// answer's when all of it has come. It may outlive the server by any number
// of restarts.
type diary struct {
	mu    sync.Mutex
	file  *os.File
	lines int
	start *totals
	ops   []*operation // in the order of their first attempts
	byKey map[string]*operation
	// Those that were answered, by customer.
	enrolments map[string]*operation

	settled int // operations that the last clean check knew
}

// A line has one member.
type line struct {
	Start   *totals  `json:"start,omitempty"` // what was there before the first write
	Try     *request `json:"try,omitempty"`
	Answer  *answer  `json:"answer,omitempty"`
	Settled bool     `json:"settled,omitempty"` // all so far was checked
}

// A request is a POST.
type request struct {
	Key      string `json:"key"` // Idempotency-Key
	Kind     string `json:"kind"`
	Path     string `json:"path"`
	Body     string `json:"body"`
	Customer string `json:"customer,omitempty"` // whose points it moves; not known of an enrolment
	Of       string `json:"of,omitempty"`       // the purchase that is returned, the redemption that is cancelled
}

// Kinds of requests.
const (
	kindEnrol  = "enrol"
	kindAdd    = "add"
	kindDeduct = "deduct"
	kindSale   = "sale"
	kindReturn = "return"
	kindRedeem = "redeem"
	kindCancel = "cancel"
)

// An answer is what came back to a request; no answer is written where none
// came.
type answer struct {
	Key      string `json:"key"`
	Status   int    `json:"status"`
	Replayed bool   `json:"replayed,omitempty"`
	Body     string `json:"body"`
}

// An operation is a request with what is known of its outcome.
type operation struct {
	request
	tried  int     // line of the first attempt
	told   int     // line of the first answer that says what became of it
	answer *answer // that one; nil: it may or may not have been carried out
	body   object  // of the answer
}

func (o *operation) done() bool    { return o.answer != nil && o.answer.Status < 300 }
func (o *operation) refused() bool { return o.answer != nil && o.answer.Status >= 400 }

func (o *operation) String() string { return o.Kind + " " + o.Key }

// totals are how much there is of what is counted.
type totals struct {
	Customers   int            `json:"customers"`
	Sales       int            `json:"sales"`
	Redemptions int            `json:"redemptions"`
	Stock       map[string]int `json:"stock"` // of rewards that have one
}

func openDiary(name string) (*diary, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	d := &diary{file: f, byKey: map[string]*operation{}, enrolments: map[string]*operation{}}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	for raw := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, d.lines+1, err)
		}
		if err := d.take(l); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, d.lines, err)
		}
	}
	return d, nil
}

func (d *diary) Close() error { return d.file.Close() }

// write adds a line. It is with the operating system before write returns,
// which is enough: it is the server that gets killed.
func (d *diary) write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.Write(append(raw, '\n')); err != nil {
		return err
	}
	return d.take(l)
}

// take counts a line in.
func (d *diary) take(l line) error {
	d.lines++
	switch {
	case l.Start != nil:
		d.start = l.Start
	case l.Settled:
		d.settled = len(d.ops)
	case l.Try != nil:
		if d.byKey[l.Try.Key] != nil {
			return nil // again
		}
		o := &operation{request: *l.Try, tried: d.lines}
		d.ops = append(d.ops, o)
		d.byKey[o.Key] = o
	case l.Answer != nil:
		o := d.byKey[l.Answer.Key]
		if o == nil {
			return fmt.Errorf("an answer to nothing: %s", l.Answer.Key)
		}
		// After a 5xx nobody knows, and after a 2xx nothing changes any more.
		if l.Answer.Status >= 500 || o.answer != nil {
			return nil
		}
		o.answer, o.told = l.Answer, d.lines
		if o.done() {
			var err error
			if o.body, err = parseObject([]byte(l.Answer.Body)); err != nil {
				return err
			}
			if o.Kind == kindEnrol {
				o.Customer = o.body.text("id")
				d.enrolments[o.Customer] = o
			}
		}
	}
	return nil
}
