package main

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strconv"
)

// Unusual activity, and what one person or key did beside the others: what an owner would ask
// about. It is found in the records of the last 30 days, at most mostRecords sales and as many
// movements, so that the page costs no more in a large shop. The page says if there were more.
//
// It needs users:manage, as the team's pages do: it shows what members of the team did, and
// whoever manages the team can act on it.

const (
	activityDays = 30
	mostRecords  = 20_000
	manyADay     = 5  // sales of a customer in a day from which the page shows them
	activityRows = 20 // of each kind
)

const activityPath = "/panel/actividad"

func activityArea() panelArea {
	return panelArea{pages: []panelPage{{activityPath, usersManage, "activity", activityPage}}}
}

// An activity is what was found, at most activityRows of each kind; All says how many there were.
type activity struct {
	Busy    foundRows[busyDay]
	Givers  foundRows[giver]
	Selves  foundRows[selfServed]
	Returns foundRows[*sale]
	Claims  foundRows[busyDay]
	Few     foundRows[fewClaimers]
}

// foundRows are the first elements of a list, and the length of the whole list.
type foundRows[T any] struct {
	List []T
	All  int
}

func firstOf[T any](list []T) foundRows[T] {
	return foundRows[T]{list[:min(len(list), activityRows)], len(list)}
}

// A busyDay is a customer with many sales on a day.
type busyDay struct {
	Customer id
	Day      day
	Sales    int
	Amount   decimal
	By       []creator // who registered them, without repetition
}

// A giver gave points by hand in a program.
type giver struct {
	By        creator
	Program   uint32
	Points    decimal
	Times     int
	Most      decimal // at once
	Customers int
}

// A selfServed is a member of the team who moved the points of the customer with their own e-mail.
type selfServed struct {
	User, Customer id
	Times          int
	Points         decimal // gained
	Last           instant
}

func (r *activityRecords) unusual() activity {
	var returns []*sale
	for _, s := range r.sales {
		if s.Type == typeReturn && s.Previous == (id{}) {
			returns = append(returns, s)
		}
	}
	return activity{
		firstOf(r.busyDays(manyADay, isPurchase)), firstOf(r.givers()), firstOf(r.selfServed()), firstOf(returns),
		firstOf(r.claimDays()), firstOf(r.fewClaimers()),
	}
}

// busyDays are the days of customers with so many sales of a kind.
func (r *activityRecords) busyDays(many int, of func(*sale) bool) []busyDay {
	type place struct {
		customer id
		day      day
	}
	days := map[place]*busyDay{}
	for _, s := range r.sales {
		if !of(s) {
			continue
		}
		at := place{s.Customer, r.zone(s.CreatedAt)}
		if days[at] == nil {
			days[at] = &busyDay{Customer: s.Customer, Day: at.day}
		}
		d := days[at]
		d.Sales++
		d.Amount += s.Total
		if !slices.Contains(d.By, s.By) {
			d.By = append(d.By, s.By)
		}
	}
	list := slices.Collect(maps.Values(days))
	list = slices.DeleteFunc(list, func(d *busyDay) bool { return d.Sales < many })
	slices.SortFunc(list, func(a, b *busyDay) int {
		return cmp.Or(-cmp.Compare(a.Sales, b.Sales), -cmp.Compare(a.Day, b.Day), compareIDs(a.Customer, b.Customer))
	})
	return valuesOf(list)
}

func (r *activityRecords) givers() []giver {
	type place struct {
		by      creator
		program uint32
	}
	givers, customers := map[place]*giver{}, map[place]map[id]bool{}
	for _, m := range r.movements {
		if !r.isByHand(m) {
			continue
		}
		at := place{m.By, m.Program}
		if givers[at] == nil {
			givers[at], customers[at] = &giver{By: m.By, Program: m.Program}, map[id]bool{}
		}
		g := givers[at]
		g.Times++
		g.Points += m.Amount
		g.Most = max(g.Most, m.Amount)
		customers[at][m.Customer] = true
		g.Customers = len(customers[at])
	}
	list := slices.Collect(maps.Values(givers))
	slices.SortFunc(list, func(a, b *giver) int {
		return cmp.Or(-cmp.Compare(a.Points, b.Points), -cmp.Compare(a.Times, b.Times), compareIDs(a.By.ID, b.By.ID), cmp.Compare(a.By.Actor, b.By.Actor))
	})
	return valuesOf(list)
}

func (r *activityRecords) selfServed() []selfServed {
	people := map[id]*selfServed{}
	for _, m := range r.movements {
		if m.By.Type != byUser || r.own[m.By.ID] != m.Customer || m.Category == categoryRelease { // which gains nothing
			continue
		}
		if people[m.By.ID] == nil {
			people[m.By.ID] = &selfServed{User: m.By.ID, Customer: m.Customer}
		}
		p := people[m.By.ID]
		p.Times++
		p.Points += max(m.Amount, 0)
		p.Last = max(p.Last, m.CreatedAt)
	}
	list := slices.Collect(maps.Values(people))
	slices.SortFunc(list, func(a, b *selfServed) int {
		return cmp.Or(-cmp.Compare(a.Times, b.Times), compareIDs(a.User, b.User))
	})
	return valuesOf(list)
}

// claimDays are the days of customers who claimed as many tickets as they may, or one fewer. Those of
// purchases that were undone do not count, as for the limit. Where that is one or two it is nothing unusual.
func (r *activityRecords) claimDays() []busyDay {
	if r.limit < 3 {
		return nil
	}
	return r.busyDays(r.limit-1, func(s *sale) bool { return isPurchase(s) && s.Source == sourceClaim && !s.whollyReturned() })
}

// staffCustomers are the customers who have the e-mail of a member of the team, by user.
func staffCustomers(t *txn) (map[id]id, error) {
	own := map[id]id{}
	team, err := t.people.team()
	if err != nil {
		return nil, err
	}
	for _, m := range team {
		c, err := t.customers.identify(kindEmail, m.Email)
		if err != nil {
			return nil, err
		}
		if c != nil {
			own[m.user.ID] = c.ID
		}
	}
	return own, nil
}

type activityView struct {
	Complete bool // all of the time was looked at
	Since    instant

	People  []workRow
	Busy    foundRows[busyRow]
	Givers  foundRows[giverRow]
	Selves  foundRows[selfRow]
	Returns foundRows[saleRow]

	Limit  int // tickets of a day that a customer may claim; 0: there are no tickets
	Claims foundRows[busyRow]
	Few    foundRows[fewRow]
}

type busyRow struct {
	busyDay
	Customer aboutItem
	Who      []string
}

type giverRow struct {
	giver
	Who, Path, Log string // Path is the page of what they did, Log where all of it is
	Currency       currencyName
}

type fewRow struct {
	fewClaimers
	Who, Path, Log string
	Claimers       []aboutItem
}

type selfRow struct {
	selfServed
	Who, Path, Log string
	Customer       aboutItem
}

func activityPage(v *panelRequest) (any, fillFunc) {
	view := &activityView{Since: (dayOf(v.request.now, v.cfg.zone) - activityDays + 1).start(v.cfg.zone)}
	return view, func(t *txn) error {
		records, err := recentActivity(t, view.Since, mostRecords, v.leavesOut)
		if err != nil {
			return err
		}
		if records.own, err = staffCustomers(t); err != nil {
			return err
		}
		if err := records.readTickets(t, v.leavesOut); err != nil {
			return err
		}
		view.Complete, view.Limit = records.complete, records.limit
		if view.People, err = workRows(v, t, records.works(view.Since)); err != nil {
			return err
		}
		return view.showActivity(v, t, records.unusual())
	}
}

func (view *activityView) showActivity(v *panelRequest, t *txn, a activity) (err error) {
	if view.Busy, err = busyRows(v, t, a.Busy); err != nil {
		return err
	}
	if view.Claims, err = busyRows(v, t, a.Claims); err != nil {
		return err
	}
	if view.Few, err = fewRows(v, t, a.Few); err != nil {
		return err
	}
	if view.Givers, err = shown(v, a.Givers, func(g giver) (row giverRow, err error) {
		row.giver, row.Currency = g, t.cfg.programNumber(g.Program).Currency
		row.Path = workPath(v, g.By)
		row.Who, row.Log, err = creatorName(v, t, g.By)
		return row, err
	}); err != nil {
		return err
	}
	if view.Selves, err = shown(v, a.Selves, func(s selfServed) (row selfRow, err error) {
		row.selfServed = s
		by := creator{Type: byUser, ID: s.User}
		row.Path = workPath(v, by)
		if row.Who, row.Log, err = creatorName(v, t, by); err == nil {
			row.Customer, err = customerLink(t, v.member, s.Customer)
		}
		return row, err
	}); err != nil {
		return err
	}
	view.Returns, err = returnRows(v, t, a.Returns)
	return err
}

func busyRows(v *panelRequest, t *txn, list foundRows[busyDay]) (foundRows[busyRow], error) {
	return shown(v, list, func(d busyDay) (row busyRow, err error) {
		row.busyDay = d
		for _, by := range d.By {
			who, _, err := creatorName(v, t, by)
			if err != nil {
				return row, err
			}
			row.Who = append(row.Who, who)
		}
		row.Customer, err = customerLink(t, v.member, d.Customer)
		return row, err
	})
}

func fewRows(v *panelRequest, t *txn, list foundRows[fewClaimers]) (foundRows[fewRow], error) {
	return shown(v, list, func(f fewClaimers) (row fewRow, err error) {
		row.fewClaimers, row.Path = f, workPath(v, f.By)
		if row.Who, row.Log, err = creatorName(v, t, f.By); err != nil {
			return row, err
		}
		for _, c := range f.Customers {
			link, err := customerLink(t, v.member, c)
			if err != nil {
				return row, err
			}
			row.Claimers = append(row.Claimers, link)
		}
		return row, nil
	})
}

func returnRows(v *panelRequest, t *txn, list foundRows[*sale]) (foundRows[saleRow], error) {
	return shown(v, list, func(s *sale) (saleRow, error) {
		shape, err := newSaleShape(t, s)
		return saleRow{saleShape: shape}, err
	})
}

func shown[T, R any](v *panelRequest, f foundRows[T], row func(T) (R, error)) (rows foundRows[R], err error) {
	rows.All = f.All
	rows.List, err = lines(v, f.List, row)
	return rows, err
}

// creatorName is who made a record, in words, and where the audit log has all of theirs.
func creatorName(v *panelRequest, t *txn, by creator) (name, log string, err error) {
	shape, err := newCreatedBy(t, by)
	if err != nil {
		return "", "", err
	}
	name, filter := actorOf(shape)
	if shape != nil && name == "" {
		name = tr(v.lang, "by."+shape.Type)
	}
	if filter != "" && v.member.mayAll("audit:read") == nil {
		log = withQuery(auditPath, []pair{{"actor", filter}, {"kind", everyKind}})
	}
	return name, log, err
}

// customerLink names a customer: the one that its records are of now.
func customerLink(t *txn, m *member, cust id) (a aboutItem, err error) {
	c, err := t.merges.owner(cust)
	if err != nil {
		return a, err
	}
	return aboutItem{c.name(), m.contact(c), "/panel/clientes/" + c.ID.String()}, nil
}

// What the template asks for.

func (v *activityView) ManyADay() uint64      { return manyADay }
func (v *activityView) FewestClaimed() uint64 { return fewestClaimed }

// CutText says that not all of the time was looked at.
func (v *activityView) CutText(f *pageData) string {
	return f.T("activity.cut", f.Count(mostRecords), f.Count(mostRecords))
}

func (v *activityView) SinceText(f *pageData) string {
	return f.T("activity.since", f.LongDay(dayOf(v.Since, f.zone)))
}

// Of says how much of the list is shown; "" if that is all.
func (r foundRows[T]) Of(f *pageData) string {
	if r.All <= activityRows {
		return ""
	}
	return f.T("activity.all", f.Count(activityRows), f.Int(r.All))
}

// What a person of the team, or an API key, did in the last days, beside all others. It needs
// users:manage, as unusual activity does.

func personArea() panelArea {
	return panelArea{pages: []panelPage{{personPath, usersManage, "work", personPage}, {keyWorkPath, usersManage, "work", personPage}}}
}

// personSpans are the days that the page can be of; the last one is what it begins with.
var personSpans = []string{"1", "7", "30"}

const spanParam = "dias"

// mostCustomers is how many customers each list of the page has.
const mostCustomers = 5

type personView struct {
	Name, About string // About is what the person or the key is
	Key         bool
	Spans       []navItem
	Complete    bool // all of the time was looked at
	From        instant

	Out      []string // what stands out against the others, in words
	Tiles    []tile
	Served   []regularRow
	Favoured []favouredRow
	Returns  foundRows[saleRow]
	Hand     foundRows[handRow]
	Log      string // where all that they did is; "": the member may not see it
	Sales    string
}

func (v *personView) title(*pageData) string { return v.Name }

type regularRow struct {
	regular
	Customer aboutItem
}

type favouredRow struct {
	favoured
	Customer aboutItem
	Currency currencyName
}

type handRow struct {
	movementShape
	Customer aboutItem
	Currency currencyName
}

func personPage(v *panelRequest) (any, fillFunc) {
	by := creator{Type: byUser, ID: pathIDOf(v.r, "userId")}
	if v.r.PathValue(keyIDParam) != "" {
		by = creator{Type: byKey, ID: pathIDOf(v.r, keyIDParam)}
	}
	view := &personView{Key: by.Type == byKey, Sales: withQuery("/panel/ventas", []pair{{byParam, by.ID.String()}})}
	span := personSpans[len(personSpans)-1]
	if asked := v.param(spanParam); slices.Contains(personSpans, asked) {
		span = asked
	}
	for _, each := range personSpans {
		view.Spans = append(view.Spans, navItem{withQuery(v.r.URL.EscapedPath(), []pair{{spanParam, each}}), "person.span." + each, each == span})
	}
	days, _ := strconv.Atoi(span)
	since := (dayOf(v.request.now, v.cfg.zone) - day(days) + 1).start(v.cfg.zone)
	return view, func(t *txn) error {
		records, err := recentActivity(t, since, mostRead, v.leavesOut)
		if err != nil {
			return err
		}
		view.Complete, view.From = records.complete, records.from
		all := records.works(since)
		i := slices.IndexFunc(all, func(w work) bool { return w.By == by })
		if err := view.whose(v, t, by, i >= 0); err != nil {
			return err
		}
		own := work{By: by}
		if i >= 0 {
			own = all[i]
		}
		rest, others := othersOf(all, by)
		view.Tiles = prose{v.format(), v.lang}.workTiles(t.cfg, &own, &rest, others)
		if view.Out, err = v.standsOut(t, &own, &rest, others); err != nil {
			return err
		}
		return view.showWork(v, t, &own)
	}
}

// whose names who the page is of. Who is not in the team any more has a page while there is
// something to tell.
func (view *personView) whose(v *panelRequest, t *txn, by creator, did bool) (err error) {
	if view.Name, view.Log, err = creatorName(v, t, by); err != nil {
		return err
	}
	if by.Type == byKey {
		k, _, err := t.keys.own(by.ID.String(), "")
		if err != nil {
			return notKey(err)
		}
		view.About = "…" + k.Last4
		return nil
	}
	m, err := membershipIn(t.Tx, t.org, by.ID)
	switch {
	case err != nil:
		return err
	case m != nil:
		view.About = tr(v.lang, "role."+string(m.Role))
	case did:
		view.Name = tr(v.lang, "audit.gone")
	default:
		return panelFault(errNotMember)
	}
	return nil
}

// workTiles are the figures, each beside that of the others where it tells something.
func (p prose) workTiles(cfg *config, own, rest *work, others int) []tile {
	f := p.format
	back := tile{Name: p.T("work.returns"), Value: f.Count(uint64(own.Returns)), Change: f.MoneyWithCode(own.Back)}
	if share, ok := own.returned().share(); ok {
		back.Change += " · " + p.T("person.share", f.Percent(share))
		if theirs, ok := rest.returned().share(); ok {
			back.Change += p.T("person.share.others", f.Percent(theirs))
		}
	}
	if own.returned().standsOut(rest.returned()) {
		back.Class = "down"
	}
	tiles := []tile{
		{Name: p.T("work.sales"), Value: f.Count(uint64(own.Sales)), Change: f.MoneyWithCode(own.Amount)},
		back,
		{Name: p.T("work.redeems"), Value: f.Count(uint64(own.Redemptions))},
	}
	if own.Cancelled > 0 {
		tiles[2].Change = p.Counted("person.cancelled", f.Count(uint64(own.Cancelled)))
	}
	for i := range own.Hand {
		h := &own.Hand[i]
		each := tile{Name: p.T("person.given", cfg.programNumber(h.Program).Currency), Value: f.Number(h.Given), Change: p.T("person.taken", f.Count(uint64(h.Times)), f.Number(h.Taken))}
		if h.standsOut(rest.hand(h.Program), others) {
			each.Class = "down"
		}
		tiles = append(tiles, each)
	}
	if len(own.Hand) == 0 {
		tiles = append(tiles, tile{Name: p.T("work.hand"), Value: f.Count(0)})
	}
	return tiles
}

// standsOut says in words what is at least twice as much as the others do, and who gets the
// points that are given by hand.
func (v *panelRequest) standsOut(t *txn, own, rest *work, others int) (out []string, err error) {
	f := v.format()
	say := func(name string, args ...any) { out = append(out, tr(v.lang, name, args...)) }
	if mine, theirs := own.returned(), rest.returned(); mine.standsOut(theirs) {
		one, ok := mine.share()
		all, _ := theirs.share()
		if ok {
			say("person.out.returned", f.Percent(one), f.Percent(all))
		} else {
			say("person.out.returns", f.Count(uint64(mine.times)))
		}
	}
	if mine, theirs := own.cancelled(), rest.cancelled(); mine.standsOut(theirs) {
		say("person.out.cancelled", f.Count(uint64(mine.times)), f.Count(uint64(mine.of)), f.Count(uint64(theirs.times)), f.Count(uint64(theirs.of)))
	}
	for i := range own.Hand {
		h := &own.Hand[i]
		currency, given := t.cfg.programNumber(h.Program).Currency, rest.hand(h.Program).Given
		switch {
		case !h.standsOut(rest.hand(h.Program), others):
		case given == 0:
			say("person.out.alone", f.Number(h.Given), currency.Of(h.Given))
		default:
			average, _ := roundRat(new(big.Rat).Quo(given.rat(), decimalOf(others).rat()), 1, roundHalfUp) // not above what all gave
			say("person.out.given", f.Number(h.Given), currency.Of(h.Given), f.Number(average))
		}
	}
	for i := range own.Favoured[:min(len(own.Favoured), mostCustomers)] {
		c := &own.Favoured[i]
		if h := own.hand(c.Program); c.standsOut(h) {
			customer, err := customerLink(t, v.member, c.Customer)
			if err != nil && v.leavesOut(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			say("person.out.friend", f.Number(c.Points), f.Number(h.Given), t.cfg.programNumber(c.Program).Currency.Of(h.Given), customer.Name, f.Count(uint64(c.Times)))
		}
	}
	return out, nil
}

func (view *personView) showWork(v *panelRequest, t *txn, own *work) (err error) {
	if view.Served, err = lines(v, own.Served[:min(len(own.Served), mostCustomers)], func(c regular) (row regularRow, err error) {
		row.regular = c
		row.Customer, err = customerLink(t, v.member, c.Customer)
		return row, err
	}); err != nil {
		return err
	}
	if view.Favoured, err = lines(v, own.Favoured[:min(len(own.Favoured), mostCustomers)], func(c favoured) (row favouredRow, err error) {
		row.favoured, row.Currency = c, t.cfg.programNumber(c.Program).Currency
		row.Customer, err = customerLink(t, v.member, c.Customer)
		return row, err
	}); err != nil {
		return err
	}
	if view.Returns, err = returnRows(v, t, firstOf(own.returns)); err != nil {
		return err
	}
	view.Hand, err = shown(v, firstOf(own.byHand), func(m *movement) (row handRow, err error) {
		row.Currency = t.cfg.programNumber(m.Program).Currency
		if row.movementShape, err = newMovementShape(t, m); err == nil {
			row.Customer, err = customerLink(t, v.member, m.Customer)
		}
		return row, err
	})
	return err
}

// CutText says that not all of the time was looked at.
func (v *personView) CutText(f *pageData) string {
	return f.T("person.cut", f.Count(mostRead), f.Count(mostRead), f.LongDay(dayOf(v.From, f.zone)))
}

// OfAll is how many of a customer's sales somebody registered.
func (r regularRow) OfAll(f *pageData) string {
	return f.T("figure.of", f.Int(r.Sales), f.Int(r.All))
}
