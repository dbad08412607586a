package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// What people and API keys did in the last days, added up from the newest records: the file has
// no index by maker. A page reads a bounded number of records, and says so if there were more.

// activityRecords are the sales and movements that were read, newest first.
type activityRecords struct {
	sales     []*sale
	movements []*movement
	complete  bool            // no record of the time was left out
	from      instant         // no record since then was left out
	welcomes  map[uint64]bool // movements that sign-up rules made, by Seq
	own       map[id]id       // each team member's own customer, by user
	limit     int             // tickets of a day that a customer may claim; 0: there are no tickets
	tickets   map[id]*ticket  // of the claimed sales, by sale
	zone      func(instant) day
}

// isByHand reports whether somebody gave the points of a movement: no sale, redemption or rule did.
func (r *activityRecords) isByHand(m *movement) bool {
	return !r.welcomes[m.Seq] && m.Amount > 0 && m.Transaction == (id{}) && m.Redemption == (id{}) && m.Hold == (id{}) && m.By.ID != (id{}) &&
		m.Category != categoryMerge && m.Category != categoryRefund
}

// isTakenByHand reports whether somebody took the points of a movement.
func isTakenByHand(m *movement) bool {
	return m.Amount < 0 && m.Transaction == (id{}) && m.Redemption == (id{}) && m.Hold == (id{}) && m.By.ID != (id{}) &&
		m.Category != categoryMerge && m.Category != categoryReturn && m.Category != categoryExpiration
}

// A work is what one maker did since a moment.
type work struct {
	By             creator // without Actor: it is the work of all tills of a key
	Sales, Returns int
	Amount, Back   decimal // of the sales, and of the returns
	Redemptions    int
	Cancelled      int // redemptions, whoever made them
	Hand           []handPoints
	Served         []regular // customers, the one with most sales first
	Favoured       []favoured

	returns   []*sale
	byHand    []*movement
	customers map[id]*regular
	friends   map[friend]*favoured
}

// A friend is a customer who got points of a program by hand.
type friend struct {
	customer id
	program  uint32
}

// handPoints are points of a program that were given and taken by hand.
type handPoints struct {
	Program      uint32
	Given, Taken decimal
	Times        int // points were given
}

// A regular is a customer with the sales that one maker registered, and how many there were in all.
type regular struct {
	Customer   id
	Sales, All int
	Amount     decimal
}

// A favoured is a customer with the points of a program that one maker gave by hand.
type favoured struct {
	Customer id
	Program  uint32
	Points   decimal
	Times    int
}

// works adds up the records of what happened since a moment, by who made them: most sales first.
// Statistics go by the same moments, so both agree.
func (r *activityRecords) works(since instant) []work {
	all := map[creator]*work{}
	of := func(by creator) *work {
		if by.Actor = ""; by.Type == byClient { // customers are one, as imports are
			by.ID = id{}
		}
		if all[by] == nil {
			all[by] = &work{By: by, customers: map[id]*regular{}, friends: map[friend]*favoured{}}
		}
		return all[by]
	}
	bought := map[id]int{}
	for _, s := range r.sales {
		if s.CreatedAt < since {
			continue
		}
		of(s.By).sell(s)
		if s.Type == typePurchase {
			bought[s.Customer]++
		}
	}
	for _, m := range r.movements {
		if m.CreatedAt >= since {
			of(m.By).move(m, r.isByHand(m) || isTakenByHand(m))
		}
	}
	list := valuesOf(slices.Collect(maps.Values(all)))
	for i := range list {
		list[i].sort(bought)
	}
	list = slices.DeleteFunc(list, func(w work) bool { return w.idle() })
	slices.SortFunc(list, func(a, b work) int {
		return cmp.Or(-cmp.Compare(a.Sales, b.Sales), -cmp.Compare(len(a.byHand), len(b.byHand)), cmp.Compare(a.By.Type, b.By.Type), compareIDs(a.By.ID, b.By.ID))
	})
	return list
}

// idle reports whether the maker did nothing that a page shows. Pages do not show points that an
// import gave.
func (w *work) idle() bool {
	return w.Sales+w.Returns+w.Redemptions+w.Cancelled+len(w.byHand) == 0
}

func (w *work) sell(s *sale) {
	if s.Type == typeReturn {
		w.Returns++
		w.Back += s.Total
		w.returns = append(w.returns, s)
		return
	}
	w.Sales++
	w.Amount += s.Total
	c := w.customers[s.Customer]
	if c == nil {
		c = &regular{Customer: s.Customer}
		w.customers[s.Customer] = c
	}
	c.Sales++
	c.Amount += s.Total
}

// move counts a movement that is no sale's.
func (w *work) move(m *movement, byHand bool) {
	switch {
	case m.Redemption != (id{}) && m.Amount < 0:
		w.Redemptions++
	case m.Redemption != (id{}) && m.isGiveBack():
		w.Cancelled++
	case byHand:
		w.byHand = append(w.byHand, m)
		h := w.hand(m.Program)
		if m.Amount < 0 {
			h.Taken -= m.Amount
			return
		}
		h.Given += m.Amount
		h.Times++
		at := friend{m.Customer, m.Program}
		if w.friends[at] == nil {
			w.friends[at] = &favoured{Customer: m.Customer, Program: m.Program}
		}
		w.friends[at].Points += m.Amount
		w.friends[at].Times++
	}
}

// hand returns the program's element of Hand, and adds it if there is none.
func (w *work) hand(program uint32) *handPoints {
	i := slices.IndexFunc(w.Hand, func(h handPoints) bool { return h.Program == program })
	if i < 0 {
		i = len(w.Hand)
		w.Hand = append(w.Hand, handPoints{Program: program})
	}
	return &w.Hand[i]
}

// sort fills Served and Favoured, the largest first, and sorts Hand by program. bought is how many
// purchases each customer made, whoever registered them.
func (w *work) sort(bought map[id]int) {
	w.Served, w.Favoured = valuesOf(slices.Collect(maps.Values(w.customers))), valuesOf(slices.Collect(maps.Values(w.friends)))
	for i := range w.Served {
		w.Served[i].All = bought[w.Served[i].Customer]
	}
	slices.SortFunc(w.Served, func(a, b regular) int {
		return cmp.Or(-cmp.Compare(a.Sales, b.Sales), -cmp.Compare(a.Amount, b.Amount), compareIDs(a.Customer, b.Customer))
	})
	slices.SortFunc(w.Favoured, func(a, b favoured) int {
		return cmp.Or(-cmp.Compare(a.Points, b.Points), compareIDs(a.Customer, b.Customer), cmp.Compare(a.Program, b.Program))
	})
	slices.SortFunc(w.Hand, func(a, b handPoints) int { return cmp.Compare(a.Program, b.Program) })
}

func valuesOf[T any](list []*T) (values []T) {
	for _, v := range list {
		values = append(values, *v)
	}
	return values
}

// recentActivity reads the records since a moment, at most so many of each kind.
func recentActivity(t *txn, since instant, most int, skip func(error) bool) (*activityRecords, error) {
	r := &activityRecords{zone: t.dayOf}
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	r.from = since
	var allSales, allMovements bool
	if r.sales, allSales, err = newest(n.Sales, most, t.sales.at, skip, func(s *sale) (bool, error) { return s.RegisteredAt >= since, nil }); err != nil {
		return nil, err
	}
	if !allSales && most > 0 {
		r.from = max(r.from, r.sales[most-1].RegisteredAt)
	}
	if r.movements, allMovements, err = newest(n.Movements, most, t.points.movement, skip, func(m *movement) (bool, error) { return writtenSince(t, m, since) }); err != nil {
		return nil, err
	}
	if !allMovements && most > 0 {
		r.from = max(r.from, r.movements[most-1].CreatedAt)
	}
	r.complete = allSales && allMovements
	r.welcomes = map[uint64]bool{}
	for _, m := range r.movements {
		is, err := isWelcome(t, m)
		if err != nil && !skip(err) {
			return nil, err
		}
		if is {
			r.welcomes[m.Seq] = true
		}
	}
	return r, nil
}

// A fewClaimers is somebody who makes tickets, most of which one or two customers claim.
type fewClaimers struct {
	By        creator // without Actor
	Claimed   int
	Most      int  // of them, by those customers
	Customers []id // the one who claimed most first
}

// fewestClaimed is of how many claimed tickets the page says that few claim them.
const fewestClaimed = 10

func isPurchase(s *sale) bool { return s.Type == typePurchase }

// claims are the sales that customers claimed.
func (r *activityRecords) claims() (list []*sale) {
	for _, s := range r.sales {
		if isPurchase(s) && s.Source == sourceClaim {
			list = append(list, s)
		}
	}
	return list
}

// readTickets reads the tickets of the claimed sales, where there are tickets.
func (r *activityRecords) readTickets(t *txn, skip func(error) bool) (err error) {
	if t.cfg.tickets() == nil {
		return nil
	}
	r.limit = t.cfg.tickets().MaxPerCustomerPerDay
	r.tickets, err = t.tickets.ofClaims(r.claims(), skip)
	return err
}

// fewClaimers are those whose tickets few claim, who made most of them first.
func (r *activityRecords) fewClaimers() (list []fewClaimers) {
	claimed := map[creator]map[id]int{}
	for _, s := range r.claims() {
		x := r.tickets[s.ID]
		if x == nil {
			continue
		}
		by := x.By
		by.Actor = ""
		if claimed[by] == nil {
			claimed[by] = map[id]int{}
		}
		claimed[by][s.Customer]++
	}
	for by, times := range claimed {
		f := fewClaimers{By: by, Customers: slices.SortedFunc(maps.Keys(times), func(a, b id) int {
			return cmp.Or(-cmp.Compare(times[a], times[b]), compareIDs(a, b))
		})}
		for _, n := range times {
			f.Claimed += n
		}
		for i, c := range f.Customers[:min(2, len(f.Customers))] {
			if f.Most += times[c]; 2*f.Most > f.Claimed {
				f.Customers = f.Customers[:i+1]
				break
			}
		}
		if f.Claimed >= fewestClaimed && 2*f.Most > f.Claimed {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b fewClaimers) int {
		return cmp.Or(-cmp.Compare(a.Claimed, b.Claimed), compareIDs(a.By.ID, b.By.ID))
	})
	return list
}

// isWelcome reports whether sign-up rules gave the points of a movement. Such a movement is one of
// the account's first, and was made at the moment of the enrolment.
func isWelcome(t *txn, m *movement) (bool, error) {
	var rules uint64
	fits := false
	for _, r := range t.cfg.programNumber(m.Program).Rules {
		if r.On == onSignup {
			rules++
			fits = fits || m.Category == r.category()
		}
	}
	if !fits || m.Link.N > rules {
		return false, nil
	}
	c, err := t.customers.byID(m.Customer)
	return c != nil && c.CreatedAt == m.CreatedAt, err
}

// writtenSince reports whether a movement may have been written since a moment. The movements of
// late sales, expiries of points and holds, and imports can have a CreatedAt earlier than when they were written.
func writtenSince(t *txn, m *movement, since instant) (bool, error) {
	switch {
	case m.CreatedAt >= since, m.Category == categoryExpiration, m.Category == categoryRelease, m.By.Type == byImport:
		return true, nil
	case m.Transaction == (id{}):
		return false, nil
	}
	s, err := t.sales.get(m.Transaction)
	return err == nil && s.RegisteredAt >= since, err
}

// newest reads up to most records, from the last one back, until one is not recent. all is false if
// there are more recent ones. A record whose error skip takes is left out.
func newest[T any](last uint64, most int, at func(seq uint64) (T, error), skip func(error) bool, recent func(T) (bool, error)) (list []T, all bool, err error) {
	var turn pacer
	for seq := last; seq > 0; seq-- {
		one, err := at(seq)
		is := false
		if err == nil {
			is, err = recent(one)
		}
		if err != nil && skip(err) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if !is { // nor are earlier ones
			break
		}
		if len(list) == most {
			return list, false, nil
		}
		list = append(list, one)
		turn.pause()
	}
	return list, true, nil
}

// Comparison with the others.

// How often something must have been done before it can stand out. Points are seldom given by hand.
const (
	fewTimes = 3
	fewGifts = 2
)

// othersOf adds up what all people and keys except one did, and returns how many they are.
func othersOf(all []work, but creator) (rest work, n int) {
	for _, w := range all {
		if w.By == but || w.By.Type != byUser && w.By.Type != byKey {
			continue
		}
		n++
		rest.Sales += w.Sales
		rest.Returns += w.Returns
		rest.Redemptions += w.Redemptions
		rest.Cancelled += w.Cancelled
		for _, h := range w.Hand {
			rest.hand(h.Program).Given += h.Given
		}
	}
	return rest, n
}

// A frequency compares two counts of a maker: returns with sales, or cancellations with redemptions.
type frequency struct{ times, of int }

func (w *work) returned() frequency  { return frequency{w.Returns, w.Sales} }
func (w *work) cancelled() frequency { return frequency{w.Cancelled, w.Redemptions} }

// standsOut reports whether something was done at least fewTimes, and at least twice as often as
// the others did it. Without any sale or redemption of the others there is nothing to compare.
func (f frequency) standsOut(others frequency) bool {
	return f.times >= fewTimes && others.of > 0 && f.times*others.of >= 2*others.times*f.of
}

func (f frequency) share() (decimal, bool) { return ratio(decimalOf(f.times), decimalOf(f.of)) }

// standsOut reports whether the points given are at least twice the average of n others.
func (h *handPoints) standsOut(others *handPoints, n int) bool {
	return n > 0 && h.Times >= fewGifts && h.Given/2 >= others.Given/decimal(n)
}

// standsOut reports whether returns, cancellations or points given stand out against rest, the
// work of n others.
func (w *work) standsOut(rest *work, n int) bool {
	return w.returned().standsOut(rest.returned()) || w.cancelled().standsOut(rest.cancelled()) ||
		slices.ContainsFunc(w.Hand, func(h handPoints) bool { return h.standsOut(rest.hand(h.Program), n) })
}

// standsOut reports whether the customer got at least half of the points that the maker gave, in
// at least fewGifts gifts.
func (c *favoured) standsOut(of *handPoints) bool {
	return c.Times >= fewGifts && c.Points >= of.Given/2
}

// Rows of work.

// mostRead is how many sales, and how many movements, the home page and the page of a person read.
const mostRead = 5000

type workRow struct {
	work
	By   *createdBy
	Path string // where more of it is; "": nowhere
	Out  bool   // it stands out against the others
	Gave string // points by hand, in words
}

// workRows are the rows of all who did something since a moment.
func workRows(v *panelRequest, t *txn, list []work) (rows []workRow, err error) {
	f := v.format()
	return lines(v, list, func(w work) (row workRow, err error) {
		row = workRow{work: w, Path: workPath(v, w.By), Gave: f.handWords(t.cfg, w.Hand)}
		rest, others := othersOf(list, w.By)
		row.Out = w.standsOut(&rest, others)
		row.By, err = newCreatedBy(t, w.By)
		return row, err
	})
}

const (
	personPath  = "/panel/equipo/{userId}/actividad"
	keyWorkPath = keyPath + "/actividad"
)

// workPath is the page that shows what somebody did: their activity, or the list of their sales.
func workPath(v *panelRequest, by creator) string {
	switch {
	case by.Type == byUser && v.may(usersManage):
		return strings.Replace(personPath, "{userId}", by.ID.String(), 1)
	case by.Type == byKey && v.may(usersManage) && v.hasPlace(keyWorkPath):
		return strings.Replace(keyWorkPath, "{"+keyIDParam+"}", by.ID.String(), 1)
	case by.Type == byImport:
		return withQuery("/panel/ventas", []pair{{byParam, importMaker}})
	case by.ID != (id{}):
		return withQuery("/panel/ventas", []pair{{byParam, by.ID.String()}})
	}
	return ""
}

// A workTable is a table of what people did, for the template "works".
type workTable struct {
	Page *pageData
	Name string
	Rows []workRow
}

func (f *pageData) WorkTable(name string, rows []workRow) workTable {
	return workTable{f, f.T(name), rows}
}

// ReturnShare is the number of returns, and their share of the sales.
func (r workRow) ReturnShare(f *pageData) string {
	share, ok := r.returned().share()
	if !ok || r.Returns == 0 {
		return f.Int(r.Returns)
	}
	return f.Int(r.Returns) + " · " + f.Percent(share)
}

// handWords are the points that were given and taken by hand, each with its currency.
func (f *format) handWords(cfg *config, list []handPoints) string {
	var words []string
	for _, h := range list {
		currency := cfg.programNumber(h.Program).Currency
		if h.Given != 0 {
			words = append(words, f.Points(h.Given, currency))
		}
		if h.Taken != 0 {
			words = append(words, "−"+f.Points(h.Taken, currency))
		}
	}
	return strings.Join(words, ", ")
}
