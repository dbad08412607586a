package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// A diary is a log of requests and answers in the order of time, one line of JSON for
// each. An attempt is written before it is sent, an answer once all of it has come.
// A diary lasts over any number of the server's restarts.
type diary struct {
	mu    sync.Mutex
	file  *os.File
	lines int
	start *totals
	ops   []*operation // in the order of their first attempts
	byKey map[string]*operation
	// Successful ones, by customer.
	enrolments map[string]*operation

	feed *feed

	settled int // how many of ops the last check without faults covered
}

// A line has one member.
type line struct {
	Start   *totals  `json:"start,omitempty"` // the counts before the first write
	Try     *request `json:"try,omitempty"`
	Answer  *answer  `json:"answer,omitempty"`
	Settled bool     `json:"settled,omitempty"` // all lines so far were checked
	Events  []event  `json:"events,omitempty"`  // read from the feed
}

// A request is a POST.
type request struct {
	Key      string `json:"key"` // Idempotency-Key
	Kind     string `json:"kind"`
	Path     string `json:"path"`
	Body     string `json:"body"`
	Customer string `json:"customer,omitempty"` // whose points it moves; unknown for an enrolment
	Of       string `json:"of,omitempty"`       // the purchase to return or the redemption to cancel
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

// An answer is the server's answer to a request. If none came, none is written.
type answer struct {
	Key      string `json:"key"`
	Status   int    `json:"status"`
	Replayed bool   `json:"replayed,omitempty"`
	Body     string `json:"body"`
}

// An operation is a request and its outcome, if that is known.
type operation struct {
	request
	tried  int     // line of the first attempt
	told   int     // line of the first answer below 500, which settles the outcome
	answer *answer // that answer; nil: the request may or may not have been carried out
	body   object  // of the answer, if it is a success
}

func (o *operation) done() bool    { return o.answer != nil && o.answer.Status < 300 }
func (o *operation) refused() bool { return o.answer != nil && o.answer.Status >= 400 }

func (o *operation) String() string { return o.Kind + " " + o.Key }

// totals holds the counts that a check compares.
type totals struct {
	Customers   int            `json:"customers"`
	Sales       int            `json:"sales"`
	Redemptions int            `json:"redemptions"`
	Stock       map[string]int `json:"stock"` // of rewards that have one, by id
}

func openDiary(name string) (*diary, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	d := &diary{file: f, byKey: map[string]*operation{}, enrolments: map[string]*operation{}, feed: newFeed()}
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

// write adds a line. The operating system has it before write returns. That is
// enough, since only the server gets killed.
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

// take updates the diary's state with a line.
func (d *diary) take(l line) error {
	d.lines++
	switch {
	case l.Start != nil:
		d.start = l.Start
	case l.Events != nil:
		d.feed.add(l.Events)
	case l.Settled:
		d.settled = len(d.ops)
	case l.Try != nil:
		if d.byKey[l.Try.Key] != nil {
			return nil // a retry
		}
		o := &operation{request: *l.Try, tried: d.lines}
		d.ops = append(d.ops, o)
		d.byKey[o.Key] = o
	case l.Answer != nil:
		o := d.byKey[l.Answer.Key]
		if o == nil {
			return fmt.Errorf("an answer to nothing: %s", l.Answer.Key)
		}
		// A 5xx leaves the outcome unknown. The first other answer is final.
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
