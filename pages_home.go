package main

import (
	"slices"
	"strconv"
	"strings"
)

// The home page with the day's figures and what to look at, and the page of statistics.

func figureArea() panelArea {
	return panelArea{[]panelPage{
		{"/panel", anyone, "home", homePage},
		{"/panel/estadisticas", "statistics:read", "statistics", statisticsPage},
	}, []panelForm{fileForm("/panel/estadisticas/csv/{figure}", "statistics:read", "/panel/estadisticas", statisticsCSV)}}
}

type homeView struct {
	Undo     []undoRow // requests that the member can answer
	Today    todayView
	Tiles    []tile
	Charts   []*panelChart
	Lookouts []lookout
}

// A todayView is what happened today, in all and by who did it.
type todayView struct {
	Tiles []tile
	Rows  []workRow // nil where the member may not see all sales
	Cut   bool      // the rows are of the newest records only
}

// CutText says that the rows are of the newest records only.
func (d todayView) CutText(f *pageData) string {
	return f.T("work.cut", f.Count(mostRead), f.Count(mostRead))
}

// homePage is today, and the statistics of the last 30 days. It leads a member who may not see them
// to what that one is here for.
func homePage(v *panelRequest) (any, fillFunc) {
	if !v.may("statistics:read") {
		return v.firstPlace(), nil
	}
	view := &homeView{}
	return view, func(t *txn) (err error) {
		if view.Undo, err = undoRows(v, t); err != nil {
			return err
		}
		if len(view.Undo) > 0 { // the page has forms
			if to, ok := v.needToken(); !ok {
				v.leadsTo = to.to
				return nil
			}
		}
		if err := view.Today.today(v, t); err != nil {
			return err
		}
		g, err := v.figures(t)
		if err != nil {
			return err
		}
		view.Tiles = g.mainTiles()
		for i, path := range []string{withQuery("/panel/ventas", []pair{{"from", g.found.From}, {"to", g.found.To}}), "/panel/clientes", "/panel/estadisticas#deuda", "/panel/canjes"} {
			view.Tiles[i].Path = path
		}
		if err := view.otherTiles(v, t); err != nil {
			return err
		}
		if g.pays {
			paid := g.paidTile()
			paid.Path = "/panel/estadisticas#ventas"
			view.Tiles = append(view.Tiles, paid)
		}
		view.Charts = []*panelChart{g.sales(), g.tiers(t.cfg)}
		return view.lookouts(v, t)
	}
}

// today fills in the day's figures. Their sums are the figures of the statistics.
func (view *todayView) today(v *panelRequest, t *txn) error {
	now := dayOf(v.request.now, v.cfg.zone)
	span := []pair{{"from", now.String()}, {"to", now.String()}}
	found, err := resultOf[statisticsShape](t, v.ask(getStatistics, span...))
	if err != nil {
		return err
	}
	_, redeemed, err := t.rewards.findRedemptions(redemptionFilter{from: now.start(v.cfg.zone), to: v.request.now}, page{1, 1})
	if err != nil {
		return err
	}
	f, day := v.format(), found.Total
	sales := func(saleType string) string {
		return withQuery("/panel/ventas", append(slices.Clone(span), pair{"type", saleType}))
	}
	view.Tiles = []tile{
		{Name: tr(v.lang, "work.sales"), Value: f.Count(day.Purchases), Change: f.MoneyWithCode(day.SalesAmount), Path: sales(typePurchase)},
		{Name: tr(v.lang, "work.returns"), Value: f.Count(day.Returns), Change: f.MoneyWithCode(day.ReturnsAmount), Path: sales(typeReturn)},
		{Name: tr(v.lang, "work.redeems"), Value: f.Count(redeemed), Path: withQuery("/panel/canjes", span)},
	}
	var others []string
	for i, p := range t.cfg.Programs[:min(len(t.cfg.Programs), mostTiles+1)] {
		own := found // without a program its points are the default one's
		if !p.Default {
			if own, err = resultOf[statisticsShape](t, v.ask(getStatistics, append(slices.Clone(span), pair{"loyaltyProgramId", p.ID.String()})...)); err != nil {
				return err
			}
		}
		issued := own.Total.PointsIssued
		if i == 0 {
			view.Tiles = append(view.Tiles, tile{Name: tr(v.lang, "today.issued", p.Currency), Value: f.Number(issued)})
		} else {
			others = append(others, f.Points(issued, p.Currency))
		}
	}
	view.Tiles[len(view.Tiles)-1].Change = strings.Join(others, " · ")
	if v.member.mayAll("transactions:read") != nil {
		return nil
	}
	records, err := recentActivity(t, now.start(v.cfg.zone), mostRead, v.leavesOut)
	if err != nil {
		return err
	}
	view.Cut = !records.complete
	view.Rows, err = workRows(v, t, records.works(now.start(v.cfg.zone)))
	return err
}

// mostTiles bounds how many other programs than the first the home page shows.
const mostTiles = 3

// otherTiles adds what is owed in other programs, in each one's currency.
func (view *homeView) otherTiles(v *panelRequest, t *txn) error {
	own := t.cfg.defaultProgram()
	for _, p := range t.cfg.Programs {
		if p == own || len(view.Tiles) == 4+mostTiles {
			continue
		}
		program := pair{"loyaltyProgramId", p.ID.String()}
		g, err := v.figures(t, program)
		if err != nil || g.found == nil {
			return err
		}
		owed := g.amountTile("tile.owed", g.points, owedOf, false, 0)
		owed.Path = withQuery("/panel/estadisticas", []pair{program}) + "#deuda"
		view.Tiles = append(view.Tiles, owed)
	}
	return nil
}

// firstPlace leads to what the member is here for.
func (v *panelRequest) firstPlace() redirection {
	for _, place := range v.panel.places {
		if place.path != "/panel" && v.opens(place) {
			return redirection{place.path}
		}
	}
	return redirection{"/panel/cuenta"}
}

// askedFigures are figures as the page's query asks for them.
func (v *panelRequest) askedFigures(t *txn) (*figures, error) {
	return v.figures(t, v.params("from", "to", "groupBy", "loyaltyProgramId")...)
}

// figures asks for the statistics, of 30 days without a parameter, and for the statistics of as many
// days before. found is nil if a parameter has a fault.
func (v *panelRequest) figures(t *txn, asked ...pair) (*figures, error) {
	g := &figures{format: v.format(), lang: v.lang, points: t.cfg.defaultProgram().Currency.Many}
	found, err := resultOf[statisticsShape](t, v.ask(getStatistics, asked...))
	if err != nil || len(v.faults) > 0 {
		return g, err
	}
	g.found = &found
	p := t.cfg.defaultProgram()
	if found.LoyaltyProgramID != nil {
		p = t.cfg.program(*found.LoyaltyProgramID)
	}
	g.points, g.pays = p.Currency.Many, p.Payment != nil || found.Total.PointsPaid != 0 || found.Total.AmountPaid != 0
	g.query = withQuery("", asked)
	from, to := dayNamed(found.From), dayNamed(found.To)
	first := from - (to - from) - 1
	if first.date().Year() < 1 {
		return g, nil
	}
	program, _ := object(asked).get("loyaltyProgramId")
	before, err := resultOf[statisticsShape](t, v.ask(getStatistics, pair{"from", first.String()}, pair{"to", (from - 1).String()}, pair{"groupBy", groupMonth}, pair{"loyaltyProgramId", program}))
	g.before = &before
	return g, err
}

type statisticsView struct {
	From, To, GroupBy, Program string
	Tiles                      []tile
	Charts                     []*panelChart
}

func statisticsPage(v *panelRequest) (any, fillFunc) {
	view := &statisticsView{From: v.param("from"), To: v.param("to"), GroupBy: v.param("groupBy"), Program: v.param("loyaltyProgramId")}
	return view, func(t *txn) error {
		g, err := v.askedFigures(t)
		if err != nil || g.found == nil {
			return err
		}
		view.From, view.To, view.GroupBy = g.found.From, g.found.To, g.found.GroupBy
		view.Tiles = g.allTiles()
		view.Charts, err = g.charts(v, t)
		return err
	}
}

// charts are the charts that the member may see.
func (g *figures) charts(v *panelRequest, t *txn) ([]*panelChart, error) {
	list := []*panelChart{g.sales(), g.movedPoints(), g.owed(), g.customers(), g.tiers(t.cfg)}
	if !v.may("keys:manage") || t.keys.planHasKeys() != nil {
		return list, nil
	}
	keys, err := t.keys.list()
	if err != nil {
		return nil, err
	}
	var used []keyUse
	for _, k := range keys {
		if !k.state(t.now).live() {
			continue
		}
		u, err := t.keys.used(k.ID)
		if err != nil {
			return nil, err
		}
		used = append(used, keyUse{k.Name, "figure.today", u.InDay, k.DailyLimit}, keyUse{k.Name, "figure.month", u.InMonth, k.MonthlyLimit})
	}
	return append(list, g.keys(used)), nil
}

func statisticsCSV(v *panelRequest) (*download, fillFunc) {
	file := &download{media: "text/csv; charset=utf-8", data: "statistics"}
	return file, func(t *txn) error {
		g, err := v.askedFigures(t)
		switch {
		case err != nil:
			return err
		case g.found == nil:
			return v.faults[0]
		}
		charts, err := g.charts(v, t)
		if err != nil {
			return err
		}
		for _, c := range charts {
			if c.ID == v.r.PathValue("figure") {
				file.name = strings.Join([]string{c.ID, g.found.From, g.found.To}, "-") + ".csv"
				file.body, err = c.Table.csv()
				return err
			}
		}
		return newError(codeRouteNotFound)
	}
}

// Programs are the programs that statistics can be of, if there are several.
func (f *pageData) Programs() []choiceItem {
	list := programChoices(f.request.cfg)
	if len(list) > 0 {
		list = slices.Insert(list, 0, choiceItem{"", f.T("all")})
	}
	return list
}

// What to look at.

// A lookout is something that needs attention.
type lookout struct {
	Kind, Text, More string // Kind is the name of a text
	Path             string // where something can be done about it
}

// lookouts are rewards that run out and keys that expire, as far as the member may see
// them.
func (view *homeView) lookouts(v *panelRequest, t *txn) error {
	f := v.format()
	for page := 1; ; page++ {
		found, err := resultOf[listShape[rewardShape]](t, v.ask(listRewards, pair{"status", statusActive}, pair{"limit", "100"}, pair{"page", strconv.Itoa(page)}))
		if err != nil {
			return err
		}
		for _, r := range found.Data {
			if r.Stock == nil || *r.Stock >= fewLeft {
				continue
			}
			text := counted(v.lang, "look.stock", strconv.Itoa(*r.Stock), r.Name)
			if *r.Stock == 0 {
				text = tr(v.lang, "look.gone", r.Name)
			}
			item := lookout{Kind: "look.kind.stock", Text: text, Path: "/panel/recompensas"}
			if v.may("config:write") {
				item.Path += "/" + r.ID.String()
			}
			view.Lookouts = append(view.Lookouts, item)
		}
		if !found.Meta.HasNextPage {
			break
		}
	}
	if !v.may("keys:manage") || t.keys.planHasKeys() != nil {
		return nil
	}
	keys, err := t.keys.list()
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.state(t.now) != keyExpiring {
			continue
		}
		item := lookout{Kind: "look.kind.key", Text: tr(v.lang, "look.key", k.Name, f.Ago(k.ExpiresAt)), More: tr(v.lang, "look.unused"), Path: keysPath + "/" + k.ID.String()}
		used, err := lastUsed(t.Tx, k.ID)
		if err != nil {
			return err
		}
		if used != 0 {
			item.More = tr(v.lang, "look.used", f.Ago(used))
		}
		view.Lookouts = append(view.Lookouts, item)
	}
	return nil
}

// Named is a date of the API in words.
func (f *format) Named(date string) string { return f.LongDay(dayNamed(date)) }
