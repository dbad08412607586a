package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// A checker of linearizability, and the models of a customer and of a reward's stock.
//
// A history is what clients saw of each operation: when it was called, when it
// was answered, and the answer. It is linearizable if each operation can be given
// a moment between its call and its answer so that all get the same answers when
// they are carried out one by one at these moments.
//
// Customers do not depend on one another, so the history of each is checked by itself,
// and so is that of a reward's stock. A redemption is part of both. One that fails for
// lack of stock says nothing about the balance. One that fails for lack of points says
// that there was stock.

// An observation is an operation, as its client saw it.
type observation struct {
	kind       string // add, deduct, balance, movements, redeem, cancel or stock
	amount     int    // points; for redeem and cancel, what the reward costs
	redemption int    // which of the customer's redemptions cancel is about

	called, returned int64 // on one clock for all operations
	// The outcome is unknown: it was carried out once between called and returned, or
	// not at all.
	unknown bool

	code    string // 201, or "400 insufficient_balance"
	balance int    // the customer's, if the answer contains it
	count   int    // of movements, or of what is left in stock
}

// notOver stands in returned for an operation that may still take effect at any time.
const notOver = math.MaxInt64

func (o *observation) String() string {
	s := fmt.Sprintf("%6d-", o.called)
	if o.returned == notOver {
		s += "…     "
	} else {
		s += fmt.Sprintf("%-6d", o.returned)
	}
	s += " " + o.kind
	switch o.kind {
	case "add", "deduct":
		s += fmt.Sprint(" ", o.amount)
	case "cancel":
		s += fmt.Sprint(" #", o.redemption)
	}
	if o.unknown {
		return s + " => ?"
	}
	s += fmt.Sprint(" => ", o.code)
	if o.kind == "movements" || o.kind == "stock" {
		s += fmt.Sprintf(", %d there", o.count)
	}
	if o.kind != "stock" && !strings.HasPrefix(o.code, "409") {
		s += fmt.Sprintf(", balance %d", o.balance)
	}
	return s
}

// maxVisits bounds the search. An order that is not found by then counts as missing.
const maxVisits = 1_000_000

// linearizable returns nil if a history that begins in the state start is linearizable.
// step carries out an operation: it returns the state after it, and whether the operation
// fits there. One with an answer fits if the answer is right.
//
// It is Wing and Gong's search with Lowe's memory: depth first through the orders that the
// times permit, and never twice from the same state with the same operations done.
func linearizable[S comparable](history []*observation, start S, step func(S, *observation) (S, bool)) error {
	o := &orders[S]{
		history: slices.SortedFunc(slices.Values(history), func(a, b *observation) int { return cmp.Compare(a.called, b.called) }),
		step:    step, visited: map[considered[S]]bool{}, done: make([]byte, len(history)), after: start,
	}
	if o.search(start) {
		return nil
	}
	return o.failure(start)
}

// orders is a search for an order of a history.
type orders[S comparable] struct {
	history []*observation // sorted by called
	step    func(S, *observation) (S, bool)
	visited map[considered[S]]bool
	done    []byte         // 1 for each operation of history that is part of order
	order   []*observation // the order being tried
	longest []*observation // the longest order tried
	after   S              // the state after longest
}

type considered[S comparable] struct {
	done  string
	state S
}

// search reports whether there is an order for the operations not done, from state on.
func (o *orders[S]) search(state S) bool {
	if len(o.order) > len(o.longest) {
		o.longest, o.after = slices.Clone(o.order), state
	}
	deadline, latest, left := o.bounds()
	if !left {
		return true
	}
	v := considered[S]{string(o.done), state}
	if o.visited[v] || len(o.visited) > maxVisits {
		return false
	}
	o.visited[v] = true
	// Answered operations come first, so that an unknown one is done only where an
	// answer needs it.
	for _, unknown := range []bool{false, true} {
		for i, next := range o.history {
			if next.called > deadline {
				break
			}
			if o.done[i] == 1 || next.unknown != unknown || next.returned < latest {
				continue
			}
			after, ok := o.step(state, next)
			if !ok {
				continue
			}
			o.done[i] = 1
			o.order = append(o.order, next)
			if o.search(after) {
				return true
			}
			o.done[i] = 0
			o.order = o.order[:len(o.order)-1]
		}
	}
	return false
}

// bounds returns the bounds of the next operation. It was called by deadline, the first
// return of all operations that must still be done. It returned no earlier than latest,
// the last call of all operations that are done. left reports whether an operation must
// still be done.
func (o *orders[S]) bounds() (deadline, latest int64, left bool) {
	deadline, latest = notOver, -1
	for i, each := range o.history {
		switch {
		case o.done[i] == 1:
			latest = max(latest, each.called)
		case !each.unknown:
			deadline, left = min(deadline, each.returned), true
		}
	}
	return deadline, latest, left
}

// failure describes the longest order that was found, and the operations not in it.
func (o *orders[S]) failure(start S) error {
	var text strings.Builder
	if len(o.visited) > maxVisits {
		fmt.Fprintln(&text, "there are too many orders to try them all.")
	}
	fmt.Fprintf(&text, "no order was found that explains the answers. From %+v it gets as far as %+v by\n", start, o.after)
	for _, each := range o.longest {
		fmt.Fprintln(&text, each)
	}
	fmt.Fprintln(&text, "which leaves")
	for _, each := range o.history {
		if !slices.Contains(o.longest, each) {
			fmt.Fprintln(&text, each)
		}
	}
	return errors.New(text.String())
}

// An accountState is a customer's account, as far as the operations see it.
type accountState struct {
	Balance, Movements int
	Cancelled          uint64 // a bit for each redemption
}

// step carries out an operation on the account.
func (s accountState) step(o *observation) (accountState, bool) {
	code, next := "200", s
	switch o.kind {
	case "add":
		code = "201"
		next.Balance += o.amount
	case "deduct", "redeem":
		if code = "201"; s.Balance < o.amount {
			code = "400 insufficient_balance"
			break
		}
		next.Balance -= o.amount
	case "cancel":
		if next.Cancelled |= 1 << o.redemption; next.Cancelled == s.Cancelled {
			code = "409 redemption_not_cancellable"
			break
		}
		next.Balance += o.amount
	}
	if next.Balance != s.Balance {
		next.Movements++
	}
	switch {
	case o.unknown:
		return next, true
	case o.kind == "redeem" && o.code == "409 reward_out_of_stock":
		return s, true
	case o.code != code || o.kind == "movements" && o.count != next.Movements:
		return s, false
	}
	return next, strings.HasPrefix(code, "409") || o.balance == next.Balance
}

// stepStock carries out an operation on the stock. It does not tell redemptions apart:
// two unanswered cancellations of the same redemption may both count.
func stepStock(stock int, o *observation) (int, bool) {
	switch {
	case o.kind == "stock":
		return stock, o.count == stock
	case o.kind == "redeem" && (o.unknown || o.code == "201"):
		return stock - 1, stock > 0
	case o.kind == "redeem" && o.code == "409 reward_out_of_stock":
		return stock, stock == 0
	case o.kind == "redeem": // the stock is checked before the balance
		return stock, stock > 0
	case o.kind == "cancel" && (o.unknown || o.code == "200"):
		return stock + 1, true
	}
	return stock, true
}

// TestLinearizable checks small histories that can be judged by eye. Each is of one
// customer who begins with 100 points, or of a stock that begins with 1.
func TestLinearizable(t *testing.T) {
	type history = []*observation
	// op returns an answered operation, called at from and returned at to.
	op := func(kind string, amount int, from, to int64, code string, balance int) *observation {
		return &observation{kind: kind, amount: amount, called: from, returned: to, code: code, balance: balance}
	}
	lost := func(kind string, amount int, from, to int64) *observation {
		return &observation{kind: kind, amount: amount, called: from, returned: to, unknown: true}
	}
	cancel := func(redemption int, from, to int64, code string, balance int) *observation {
		return &observation{kind: "cancel", amount: 60, redemption: redemption, called: from, returned: to, code: code, balance: balance}
	}
	count := func(kind string, from, to int64, count, balance int) *observation {
		return &observation{kind: kind, called: from, returned: to, code: "200", count: count, balance: balance}
	}
	const poor, none, again = "400 insufficient_balance", "409 reward_out_of_stock", "409 redemption_not_cancellable"
	for _, test := range []struct {
		reason  string
		right   bool
		history history
	}{
		{"nothing", true, nil},
		{"one after another", true, history{op("deduct", 60, 1, 2, "201", 40), op("deduct", 60, 3, 4, poor, 40), op("add", 20, 5, 6, "201", 60), op("deduct", 60, 7, 8, "201", 0)}},
		{"spent twice", false, history{op("deduct", 60, 1, 3, "201", 40), op("deduct", 60, 2, 4, "201", 40)}},
		{"the second as if it had been first", false, history{op("deduct", 10, 1, 2, "201", 80), op("deduct", 10, 3, 4, "201", 90)}},
		{"the same, at once", true, history{op("deduct", 10, 1, 3, "201", 80), op("deduct", 10, 2, 4, "201", 90)}},
		{"refused though there was enough", false, history{op("deduct", 60, 1, 2, poor, 100)}},
		{"refused with a figure that never was", false, history{op("deduct", 150, 1, 3, poor, 90), op("add", 20, 2, 4, "201", 120)}},
		{"granted before what it needs was there", false, history{op("deduct", 150, 1, 2, "201", 0), op("add", 50, 3, 4, "201", 150)}},
		{"granted while what it needs was coming", true, history{op("deduct", 150, 1, 4, "201", 0), op("add", 50, 2, 3, "201", 150)}},
		{"a stale read", false, history{op("add", 10, 1, 2, "201", 110), op("balance", 0, 3, 4, "200", 100)}},
		{"a read of what is being written, or not yet", true, history{op("add", 10, 1, 6, "201", 110), op("balance", 0, 2, 3, "200", 100), op("balance", 0, 4, 5, "200", 110)}},
		{"a read of it, and then not any more", false, history{op("add", 10, 1, 6, "201", 110), op("balance", 0, 2, 3, "200", 110), op("balance", 0, 4, 5, "200", 100)}},
		{"a read before the write was called", false, history{op("balance", 0, 1, 2, "200", 110), op("add", 10, 3, 4, "201", 110)}},
		{"applied twice", false, history{op("add", 10, 1, 2, "201", 110), op("balance", 0, 3, 4, "200", 120)}},
		{"lost", false, history{op("add", 10, 1, 2, "201", 110), op("add", 10, 3, 4, "201", 110)}},
		{"movements as many as there were changes", true, history{op("add", 10, 1, 2, "201", 110), count("movements", 3, 4, 2, 110)}},
		{"a movement too many", false, history{op("add", 10, 1, 2, "201", 110), count("movements", 3, 4, 3, 110)}},
		{"a movement whose balance is not there yet", false, history{op("add", 10, 1, 4, "201", 110), count("movements", 2, 3, 2, 100)}},
		{"without an answer, and done", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 110)}},
		{"without an answer, and not done", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 100)}},
		{"without an answer, and done late", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 100), op("balance", 0, 4, 5, "200", 110)}},
		{"without an answer, and done twice", false, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 120)}},
		{"without an answer, done and undone", false, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 110), op("balance", 0, 4, 5, "200", 100)}},
		{"without an answer, and seen before its call", false, history{op("balance", 0, 1, 2, "200", 110), lost("add", 10, 3, notOver)}},
		{"without an answer, and of no use where there is too little", true, history{lost("deduct", 150, 1, notOver), op("balance", 0, 2, 3, "200", 100)}},
		{"of a process that had died before it was done", false, history{lost("add", 10, 1, 4), op("balance", 0, 5, 6, "200", 100), op("balance", 0, 7, 8, "200", 110)}},
		{"of a process that died, and done before", true, history{lost("add", 10, 1, 4), op("balance", 0, 5, 6, "200", 110), op("balance", 0, 7, 8, "200", 110)}},
		{"redeemed and cancelled", true, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 4, "200", 100), cancel(0, 5, 6, again, 0)}},
		{"cancelled twice", false, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 5, "200", 100), cancel(0, 4, 6, "200", 160)}},
		{"cancelled not even once", false, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 4, again, 0)}},
		{"no stock costs no points", true, history{op("redeem", 60, 1, 2, none, 0), op("balance", 0, 3, 4, "200", 100)}},

		{"the last one of the stock", true, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, none, 0), count("stock", 7, 8, 0, 0)}},
		{"the last one, given twice", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 5, "201", 40), op("redeem", 60, 4, 6, "201", 40)}},
		{"out of stock though one was left", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, none, 0)}},
		{"given again what was given back", true, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), cancel(0, 5, 8, "200", 100), op("redeem", 60, 6, 7, "201", 40)}},
		{"given before it was given back", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, "201", 40), cancel(0, 7, 8, "200", 100)}},
		{"too poor, and nothing there", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, poor, 40)}},
		{"perhaps given, so perhaps none left", true, history{count("stock", 1, 2, 1, 0), lost("redeem", 60, 3, notOver), op("redeem", 60, 4, 5, none, 0)}},
	} {
		var err error
		if len(test.history) > 0 && test.history[0].kind == "stock" {
			err = linearizable(test.history, 1, stepStock)
		} else {
			err = linearizable(test.history, accountState{Balance: 100, Movements: 1}, accountState.step)
		}
		if (err == nil) != test.right {
			t.Errorf("%s: found right: %t\n%v", test.reason, err == nil, err)
		}
	}
}
