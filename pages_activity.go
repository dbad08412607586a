package main

import (
	"cmp"
	"maps"
	"slices"
)

// Unusual activity: what an owner would ask about. It is found in the records of the last 30
// days, at most mostRecords sales and as many movements, so that the page costs no more in a
// large shop. The page says so if there were more.
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

// unusual returns the unusual activity in the records.
func (r *activityRecords) unusual() activity {
	var returns []*sale
	for _, s := range r.sales {
		if s.Type == typeReturn && s.Previous == (id{}) {
			returns = append(returns, s)
		}
	}
	return activity{firstOf(r.busyDays()), firstOf(r.givers()), firstOf(r.selfServed()), firstOf(returns)}
}

func (r *activityRecords) busyDays() []busyDay {
	type place struct {
		customer id
		day      day
	}
	days := map[place]*busyDay{}
	for _, s := range r.sales {
		if s.Type != typePurchase {
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
	list = slices.DeleteFunc(list, func(d *busyDay) bool { return d.Sales < manyADay })
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

// An activityView is the page.
type activityView struct {
	Complete bool // all of the time was looked at
	Since    instant

	People  []workRow
	Busy    foundRows[busyRow]
	Givers  foundRows[giverRow]
	Selves  foundRows[selfRow]
	Returns foundRows[saleRow]
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
		view.Complete = records.complete
		if view.People, err = v.workRows(t, records.works(view.Since)); err != nil {
			return err
		}
		return v.showActivity(view, &actorNames{t}, records.unusual())
	}
}

func (v *panelRequest) showActivity(view *activityView, names *actorNames, a activity) (err error) {
	if view.Busy, err = shown(v, a.Busy, func(d busyDay) (row busyRow, err error) {
		row.busyDay = d
		for _, by := range d.By {
			who, _, err := v.creatorName(names, by)
			if err != nil {
				return row, err
			}
			row.Who = append(row.Who, who)
		}
		row.Customer, err = v.customerItem(names.txn, d.Customer)
		return row, err
	}); err != nil {
		return err
	}
	if view.Givers, err = shown(v, a.Givers, func(g giver) (row giverRow, err error) {
		row.giver, row.Currency = g, names.txn.cfg.programNumber(g.Program).Currency
		row.Path = v.workPath(g.By)
		row.Who, row.Log, err = v.creatorName(names, g.By)
		return row, err
	}); err != nil {
		return err
	}
	if view.Selves, err = shown(v, a.Selves, func(s selfServed) (row selfRow, err error) {
		row.selfServed = s
		by := creator{Type: byUser, ID: s.User}
		row.Path = v.workPath(by)
		if row.Who, row.Log, err = v.creatorName(names, by); err == nil {
			row.Customer, err = v.customerItem(names.txn, s.Customer)
		}
		return row, err
	}); err != nil {
		return err
	}
	view.Returns, err = shown(v, a.Returns, func(s *sale) (saleRow, error) {
		shape, err := newSaleShape(names.txn, s)
		return saleRow{saleShape: shape}, err
	})
	return err
}

// shown makes the rows of a page.
func shown[T, R any](v *panelRequest, f foundRows[T], row func(T) (R, error)) (rows foundRows[R], err error) {
	rows.All = f.All
	rows.List, err = lines(v, f.List, row)
	return rows, err
}

// creatorName is who made a record, in words, and where the audit log has all of theirs.
func (v *panelRequest) creatorName(names *actorNames, by creator) (name, log string, err error) {
	shape, err := newCreatedBy(names.txn, by)
	if err != nil {
		return "", "", err
	}
	name, filter := actorOf(shape)
	if shape != nil && name == "" {
		name = tr(v.lang, "by."+shape.Type)
	}
	if filter != "" && v.mayAll("audit:read") == nil {
		log = withQuery(auditPath, []pair{{"actor", filter}, {"kind", everyKind}})
	}
	return name, log, err
}

// customerItem names a customer: the one that its records are of now.
func (v *panelRequest) customerItem(t *txn, cust id) (a aboutItem, err error) {
	c, err := t.merges.owner(cust)
	if err != nil {
		return a, err
	}
	return aboutItem{c.name(), v.contact(c), "/panel/clientes/" + c.ID.String()}, nil
}

// What the template asks for.

// ManyADay is how many sales of a day are many.
func (v *activityView) ManyADay() uint64 { return manyADay }

// CutText says that not all of the time was looked at.
func (v *activityView) CutText(f *pageData) string {
	return f.T("activity.cut", f.Count(mostRecords), f.Count(mostRecords))
}

// SinceText says since when was looked.
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
