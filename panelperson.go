package main

import (
	"math/big"
	"slices"
	"strconv"
)

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

// A personView is the page.
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
		if err := v.whose(t, view, by, i >= 0); err != nil {
			return err
		}
		own := work{By: by}
		if i >= 0 {
			own = all[i]
		}
		rest, others := othersOf(all, by)
		view.Tiles = v.workTiles(t.cfg, &own, &rest, others)
		if view.Out, err = v.standsOut(t, &own, &rest, others); err != nil {
			return err
		}
		return v.showWork(t, view, &own)
	}
}

// whose names who the page is of. Who is not in the team any more has a page while there is
// something to tell.
func (v *panelRequest) whose(t *txn, view *personView, by creator, did bool) (err error) {
	if view.Name, view.Log, err = v.creatorName(&actorNames{t}, by); err != nil {
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
func (v *panelRequest) workTiles(cfg *config, own, rest *work, others int) []tile {
	f := v.format()
	back := tile{Name: tr(v.lang, "work.returns"), Value: f.Count(uint64(own.Returns)), Change: f.MoneyWithCode(own.Back)}
	if share, ok := own.returned().share(); ok {
		back.Change += " · " + tr(v.lang, "person.share", f.Percent(share))
		if theirs, ok := rest.returned().share(); ok {
			back.Change += tr(v.lang, "person.share.others", f.Percent(theirs))
		}
	}
	if own.returned().standsOut(rest.returned()) {
		back.Class = "down"
	}
	tiles := []tile{
		{Name: tr(v.lang, "work.sales"), Value: f.Count(uint64(own.Sales)), Change: f.MoneyWithCode(own.Amount)},
		back,
		{Name: tr(v.lang, "work.redeems"), Value: f.Count(uint64(own.Redemptions))},
	}
	if own.Cancelled > 0 {
		tiles[2].Change = counted(v.lang, "person.cancelled", f.Count(uint64(own.Cancelled)))
	}
	for i := range own.Hand {
		h := &own.Hand[i]
		each := tile{Name: tr(v.lang, "person.given", cfg.programNumber(h.Program).Currency), Value: f.Number(h.Given), Change: tr(v.lang, "person.taken", f.Count(uint64(h.Times)), f.Number(h.Taken))}
		if h.standsOut(rest.hand(h.Program), others) {
			each.Class = "down"
		}
		tiles = append(tiles, each)
	}
	if len(own.Hand) == 0 {
		tiles = append(tiles, tile{Name: tr(v.lang, "work.hand"), Value: f.Count(0)})
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
			customer, err := v.customerItem(t, c.Customer)
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

// showWork fills in the lists.
func (v *panelRequest) showWork(t *txn, view *personView, own *work) (err error) {
	if view.Served, err = lines(v, own.Served[:min(len(own.Served), mostCustomers)], func(c regular) (row regularRow, err error) {
		row.regular = c
		row.Customer, err = v.customerItem(t, c.Customer)
		return row, err
	}); err != nil {
		return err
	}
	if view.Favoured, err = lines(v, own.Favoured[:min(len(own.Favoured), mostCustomers)], func(c favoured) (row favouredRow, err error) {
		row.favoured, row.Currency = c, t.cfg.programNumber(c.Program).Currency
		row.Customer, err = v.customerItem(t, c.Customer)
		return row, err
	}); err != nil {
		return err
	}
	if view.Returns, err = shown(v, firstOf(own.returns), func(s *sale) (saleRow, error) {
		shape, err := newSaleShape(t, s)
		return saleRow{saleShape: shape}, err
	}); err != nil {
		return err
	}
	view.Hand, err = shown(v, firstOf(own.byHand), func(m *movement) (row handRow, err error) {
		row.Currency = t.cfg.programNumber(m.Program).Currency
		if row.movementShape, err = newMovementShape(t, m); err == nil {
			row.Customer, err = v.customerItem(t, m.Customer)
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
