package main

import (
	"maps"
	"slices"

	"sello/internal/blockset"
)

// Statistics are counters kept per program and day of the organization's
// calendar. They are written in the transaction of what they count. A year is a
// few hundred short records, however many sales it had.
//
//	y org prog day           → tally: what happened on the day
//	z org prog 'd' day block → which customers bought on the day (internal/blockset)
//	z org prog 'm' day block → which customers bought in the month that begins on the day
//	b org prog tier          → how many customers are in the tier now

// A tally is what happened on one day, or over a span of them.
type tally struct {
	NewCustomers  uint64
	GoneCustomers uint64 // who were hidden on the day
	Active        uint64 // customers who bought; of one day only: days cannot be added up
	Purchases     uint64
	Returns       uint64
	SalesAmount   decimal
	ReturnsAmount decimal

	// Customers hold what was issued less what was redeemed, expired and reversed.
	PointsIssued   decimal // all credits except what cancelled redemptions gave back and merges moved
	PointsRedeemed decimal // all debits except the two below and in merges, less what was given back
	PointsExpired  decimal
	PointsReversed decimal // by returns

	// What points paid of purchases, less what returns gave back of it.
	PointsPaid decimal
	AmountPaid decimal

	Claimed uint64 // purchases that are claimed tickets
}

// Tags of a tally's optional fields.
const (
	tallyPaid    = 1
	tallyClaimed = 2
)

func (s *tally) fields(c *coder) {
	for _, n := range []*uint64{&s.NewCustomers, &s.GoneCustomers, &s.Active, &s.Purchases, &s.Returns} {
		c.uint(n)
	}
	for _, v := range []*decimal{&s.SalesAmount, &s.ReturnsAmount, &s.PointsIssued, &s.PointsRedeemed, &s.PointsExpired, &s.PointsReversed} {
		c.decimal(v)
	}
	if c.optional(tallyPaid, s.PointsPaid != 0 || s.AmountPaid != 0) {
		c.decimal(&s.PointsPaid)
		c.decimal(&s.AmountPaid)
	}
	optionalField(c, tallyClaimed, &s.Claimed, (*coder).uint)
}

func (s *tally) add(o *tally) {
	s.NewCustomers += o.NewCustomers
	s.GoneCustomers += o.GoneCustomers
	s.Purchases += o.Purchases
	s.Returns += o.Returns
	s.SalesAmount += o.SalesAmount
	s.ReturnsAmount += o.ReturnsAmount
	s.PointsIssued += o.PointsIssued
	s.PointsRedeemed += o.PointsRedeemed
	s.PointsExpired += o.PointsExpired
	s.PointsReversed += o.PointsReversed
	s.PointsPaid += o.PointsPaid
	s.AmountPaid += o.AmountPaid
	s.Claimed += o.Claimed
}

// added is by how many customers, without hidden ones, there are more after the counted
// days. It wraps around below zero.
func (s *tally) added() uint64 { return s.NewCustomers - s.GoneCustomers }

// outstanding is by how much the counted days raised what customers hold.
func (s *tally) outstanding() decimal {
	return s.PointsIssued - s.PointsRedeemed - s.PointsExpired - s.PointsReversed
}

// A programDay names one tally.
type programDay struct {
	program uint32
	day     day
}

type dayTally struct {
	programDay
	tally tally
}

// A statsTxn is the statistics in a transaction.
type statsTxn struct {
	t       *txn
	tallies []dayTally // asked for so far
}

// tallyKey is the key of a tally. The next call of scratchKey or scratchOrgKey overwrites it.
func (st *statsTxn) tallyKey(d programDay) key {
	return st.t.scratchOrgKey('y').u32(d.program).day(d.day)
}

// tally returns the tally of a day, for reading and changing until another one is
// asked for. save writes it.
func (st *statsTxn) tally(program uint32, at instant) (*tally, error) {
	d := programDay{program, st.t.dayOf(at)}
	for i := range st.tallies {
		if st.tallies[i].programDay == d {
			return &st.tallies[i].tally, nil
		}
	}
	s, err := get[tally](st.t.Tx, st.tallyKey(d))
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = new(tally)
	}
	st.tallies = append(st.tallies, dayTally{d, *s})
	return &st.tallies[len(st.tallies)-1].tally, nil
}

func (st *statsTxn) save() error {
	for i := range st.tallies {
		d := &st.tallies[i]
		if err := st.t.put(st.tallyKey(d.programDay), &d.tally); err != nil {
			return err
		}
	}
	return nil
}

// Sets of customers who bought, by day and by month.
const (
	activeDay   = 'd'
	activeMonth = 'm'
)

func (st *statsTxn) activeKey(program uint32, span byte, d day) key {
	return orgKey('z', st.t.org).u32(program).byte(span).day(d)
}

func (d day) month() day {
	date := d.date()
	return dayOn(date.Year(), date.Month(), 1)
}

func (d day) monthEnd() day {
	date := d.date()
	return dayOn(date.Year(), date.Month()+1, 0)
}

func (st *statsTxn) countActive(c *customer, at instant) error {
	d := st.t.dayOf(at)
	first, err := putInSet(st.t.Tx, st.activeKey(c.Program, activeDay, d), c.Number, true)
	if err != nil || !first {
		return err
	}
	s, err := st.tally(c.Program, at)
	if err != nil {
		return err
	}
	s.Active++
	_, err = putInSet(st.t.Tx, st.activeKey(c.Program, activeMonth, d.month()), c.Number, true)
	return err
}

// Tiers.

func (st *statsTxn) tierCountKey(program uint32, tier string) key {
	return orgKey('b', st.t.org).u32(program).text(tier)
}

// moveTier moves a customer from one tier's count to another's; "" is no tier.
// Counts are kept by the tier's name, so that a program whose tiers changed can be
// counted anew customer by customer.
func (st *statsTxn) moveTier(program uint32, from, to string) error {
	if from == to {
		return nil
	}
	for _, step := range []struct {
		tier   string
		change int
	}{{from, -1}, {to, +1}} {
		if step.tier == "" {
			continue
		}
		if err := st.t.countAt(st.tierCountKey(program, step.tier), step.change); err != nil {
			return err
		}
	}
	return nil
}

// Statistics, as asked for.

// A statsQuery is a span of days, both ends included, and how to group it.
type statsQuery struct {
	from, to day
	groupBy  string // day, week or month
	program  *id    // nil: points of the default program, all else of all
}

const (
	groupDay   = "day"
	groupWeek  = "week"
	groupMonth = "month"
)

// maxStatsDays bounds the span: a century.
const maxStatsDays = maxDays

// A period is the statistics of one span.
type period struct {
	from, to    day
	tally       tally
	customers   uint64  // at its end, without hidden ones
	outstanding decimal // at its end
	active      uint64  // customers who bought in it
	tickets     uint64  // of purchases in it that are open now (sales_tickets.go)
}

type statistics struct {
	total   period
	periods []period
	tiers   []tierCount // now
}

// answer answers a query from the tallies. Points are of one program. So are customers and
// sales if the query names a program, unless every customer earns in it: then, as without a
// program, they are of the whole organization.
func (st *statsTxn) answer(q statsQuery) (*statistics, error) {
	points, people, tiers := st.t.cfg.defaultProgram(), st.t.cfg.Programs, st.t.cfg.Programs
	if q.program != nil {
		if points = st.t.cfg.program(*q.program); points == nil {
			return nil, newError(codeProgramNotFound)
		}
		if tiers = []*program{points}; points.Join != joinAll {
			people = tiers
		}
	}
	s := &statistics{total: period{from: q.from, to: q.to}, periods: splitDays(q)}
	for _, p := range st.t.cfg.Programs {
		if p != points && !slices.Contains(people, p) {
			continue
		}
		if err := st.addProgram(s, p, p == points, slices.Contains(people, p)); err != nil {
			return nil, err
		}
	}
	var err error
	if s.tiers, err = st.tierCounts(tiers); err != nil {
		return nil, err
	}
	s.total.customers += s.total.tally.added()
	s.total.outstanding += s.total.tally.outstanding()
	before := period{customers: s.total.customers - s.total.tally.added(), outstanding: s.total.outstanding - s.total.tally.outstanding()}
	for i := range s.periods {
		p := &s.periods[i]
		p.customers = before.customers + p.tally.added()
		p.outstanding = before.outstanding + p.tally.outstanding()
		before = *p
	}
	return s, nil
}

// only returns the part of a tally that counts points, the part that counts customers
// and sales, or both.
func (s *tally) only(points, people bool) *tally {
	var part tally
	if people {
		part = *s
		part.PointsIssued, part.PointsRedeemed, part.PointsExpired, part.PointsReversed = 0, 0, 0, 0
		part.PointsPaid, part.AmountPaid = 0, 0
	}
	if points {
		part.PointsIssued, part.PointsRedeemed = s.PointsIssued, s.PointsRedeemed
		part.PointsExpired, part.PointsReversed = s.PointsExpired, s.PointsReversed
		part.PointsPaid, part.AmountPaid = s.PointsPaid, s.AmountPaid
	}
	return &part
}

// addProgram adds one program's days: its points, its customers and sales, or both.
// Until statistics has finished, the total's customers and outstanding are the figures of
// before its first day.
func (st *statsTxn) addProgram(s *statistics, p *program, points, people bool) error {
	days := orgKey('y', st.t.org).u32(p.Number)
	place := 0
	for e, err := range st.t.Scan(days, slices.Clone(days).day(s.total.to+1), false) {
		if err != nil {
			return err
		}
		d := dayIn(e.Key[len(days):])
		whole, err := decodeEntry[tally](e)
		if err != nil {
			return err
		}
		tally := whole.only(points, people)
		if d < s.total.from {
			s.total.customers += tally.added()
			s.total.outstanding += tally.outstanding()
			continue
		}
		s.total.tally.add(tally)
		for s.periods[place].to < d {
			place++
		}
		s.periods[place].tally.add(tally)
		if s.periods[place].from == s.periods[place].to {
			s.periods[place].active += tally.Active
		}
	}
	if !people {
		return nil
	}
	return st.addActive(s, p)
}

func (st *statsTxn) addActive(s *statistics, p *program) error {
	total, err := st.activeIn(p, s.total.from, s.total.to)
	if err != nil {
		return err
	}
	s.total.active += total
	for i := range s.periods {
		if s.periods[i].from == s.periods[i].to {
			continue // counted with the tally of its day
		}
		active, err := st.activeIn(p, s.periods[i].from, s.periods[i].to)
		if err != nil {
			return err
		}
		s.periods[i].active += active
	}
	return nil
}

// activeIn is how many customers of a program bought on the days of a span:
// the union of the sets of its whole months and of its other days.
func (st *statsTxn) activeIn(p *program, from, to day) (uint64, error) {
	set := blockset.Set{}
	for d := from; d <= to; {
		lo, hi := st.activeKey(p.Number, activeDay, d), st.activeKey(p.Number, activeDay, min(d.monthEnd(), to)+1)
		if d == d.month() && d.monthEnd() <= to {
			lo, hi = st.activeKey(p.Number, activeMonth, d), st.activeKey(p.Number, activeMonth, d+1)
		}
		for e, err := range st.t.Scan(lo, hi, false) {
			if err != nil {
				return 0, err
			}
			set.Join(uint32In(e.Key[len(lo):]), e.Value)
		}
		d = d.monthEnd() + 1
	}
	return set.Count(), nil
}

// splitDays cuts a query's span into its periods. Weeks begin on Monday; the
// first and last period are cut off at the span's ends.
func splitDays(q statsQuery) []period {
	var periods []period
	for d := q.from; d <= q.to; {
		end := d
		date := d.date()
		switch q.groupBy {
		case groupWeek:
			end = d + day(6-(int(date.Weekday())+6)%7)
		case groupMonth:
			end = d.monthEnd()
		}
		end = min(end, q.to)
		periods = append(periods, period{from: d, to: end})
		d = end + 1
	}
	return periods
}

// tierCounts lists the tiers of programs, lowest first, with how many customers
// each has now, even if none.
func (st *statsTxn) tierCounts(programs []*program) ([]tierCount, error) {
	list := []tierCount{}
	for _, p := range programs {
		counted, err := st.countedTiers(p)
		if err != nil {
			return nil, err
		}
		for _, tier := range p.Tiers {
			list = append(list, tierCount{p.ID, tier.Name, counted[tier.Name]})
			delete(counted, tier.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(counted)) { // removed tiers not yet recounted
			list = append(list, tierCount{p.ID, name, counted[name]})
		}
	}
	return list, nil
}

// countedTiers is how many customers each tier of a program has. Where every customer
// earns, customers without a record there are in the lowest tier.
func (st *statsTxn) countedTiers(p *program) (map[string]uint64, error) {
	counted := map[string]uint64{}
	var sum uint64
	prefix := orgKey('b', st.t.org).u32(p.Number)
	for e, err := range scan(st.t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		counted[string(e.Key[len(prefix):])] = uintIn(e.Value)
		sum += uintIn(e.Value)
	}
	if p.Join != joinAll || len(p.Tiers) == 0 {
		return counted, nil
	}
	all, err := st.t.customers.countShown()
	if err != nil {
		return nil, err
	}
	counted[p.Tiers[0].Name] += all - min(sum, all)
	return counted, nil
}

type tierCount struct {
	LoyaltyProgramID id     `json:"loyaltyProgramId"`
	TierName         string `json:"tierName"`
	Customers        uint64 `json:"customers"`
}
