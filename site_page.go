package main

import (
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"sello/internal/membercode"
)

// The pages of customers, in words: a card, and the statement of a month. Numbers, days and the
// language are the organization's.

// A cardView is what the template of a card shows.
type cardView struct {
	FirstName string
	Code      string
	QR        template.HTML
	Digits    string // that prove who shows the card; "": none are asked for
	Join      string // the code of a pre-enrolment; "": it is a card
	Programs  []cardProgramView
	Vouchers  []cardVoucherView
	Rewards   []cardRewardView
	Movements []cardMovementView
	Statement string
	Privacy   string
	AsOf      string
}

type cardProgramView struct {
	Name, Balance, Unit, Pending, Tier, Missing, Falls, StampsText string

	Percent  int // of the way to the next tier; -1: there is none
	Stamps   []bool
	Expiring []cardExpiry
}

// A cardExpiry says when points expire, and whether that is soon.
type cardExpiry struct {
	Text string
	Soon bool
}

type cardVoucherView struct {
	Name, Code, Until string

	QR template.HTML
}

type cardRewardView struct{ Name, Cost, Missing string }

type cardMovementView struct {
	UTC, Date, Name, Detail, Amount, Unit string

	Minus bool
}

// qrPixels is how wide the picture of a code may be: what a screen of 320 pixels leaves.
const qrPixels = 264

// card shows a card, or its figures.
func (v *siteRequest) card() (*sitePage, error) {
	token := v.r.PathValue("token")
	if plain, is := strings.CutSuffix(token, ".json"); is {
		token, v.asJSON = plain, true
		v.exchange.route += ".json"
		v.Header()["Access-Control-Allow-Origin"] = []string{"*"}
	}
	var figures *cardFigures
	page, err := v.opened(token, func(t *txn, c *customer) (err error) {
		figures, err = newCardFigures(t, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if v.asJSON {
		v.Header()["Content-Type"] = jsonType
		if v.body, err = encode(figures); err == nil {
			v.status = http.StatusOK
			v.send()
		}
		return nil, err
	}
	page.template, page.Title = "card", page.sitePage.T("site.title")
	page.View = page.cardView(figures, v.r.URL.Path+"/estado")
	return &page.sitePage, nil
}

// A shownPage is a page of an organization, and how it says things.
type shownPage struct {
	sitePage
	prose
}

// opened finds the card of a token and runs fn for its customer, in one view of the store. It
// returns the page to fill in.
func (v *siteRequest) opened(token string, fn func(*txn, *customer) error) (*shownPage, error) {
	e := v.api.engine
	found, err := viewStore(v.context(), e.store, func(tx Tx) (*card, error) { return cardByToken(tx, token, v.request.now) })
	if err == nil && found == nil {
		err = v.missed()
	}
	if err == nil {
		err = v.beginWork(v.api.reading)
	}
	if err != nil {
		return nil, err
	}
	defer v.endWork()
	cfg, err := read(v.context(), e, found.Org, v.request.now, func(t *txn) (*config, error) {
		d, err := cardByToken(t.Tx, token, t.now) // again: it may have ended meanwhile
		if err == nil && (d == nil || *d != *found) {
			err = newError(errNoCard)
		}
		if err != nil {
			return nil, err
		}
		c, err := t.customers.get(d.Customer)
		if err == nil {
			err = fn(t, c)
		}
		return t.cfg, err
	})
	if errors.Is(err, newError(errNoCard)) {
		err = v.missed()
	}
	if err != nil {
		return nil, err
	}
	return v.pageOf(cfg), nil
}

// pageOf is a page of an organization, without its view.
func (v *siteRequest) pageOf(cfg *config) *shownPage {
	code := "es"
	if strings.HasPrefix(cfg.Organization.Settings.Language, "en") {
		code = "en"
	}
	v.organization = cfg.Organization.Slug
	f := formatOf(cfg, code)
	f.now = v.request.now
	language := allTexts().In(code)
	return &shownPage{
		sitePage{Language: language, CSS: stylePath(cfg.Organization.Profile.PrimaryColor), Org: cfg.Organization.Name},
		prose{f, language},
	}
}

func (p *shownPage) cardView(f *cardFigures, statement string) *cardView {
	view := &cardView{FirstName: textOr(f.FirstName, ""), Code: textOr(f.MemberCode, ""), Statement: statement, AsOf: p.moment(f.AsOf)}
	if view.Code != "" {
		view.QR = qrPicture(membercode.Plain(view.Code), view.Code, qrPixels)
	}
	for i := range f.Programs {
		view.Programs = append(view.Programs, p.programView(&f.Programs[i], len(f.Programs) > 1))
	}
	for _, x := range f.Vouchers {
		shown := cardVoucherView{Name: x.RewardName, Code: x.Code, QR: qrPicture(x.Code, x.Code, qrPixels)}
		if x.ExpiresAt != never {
			shown.Until = tr(p.Language, "site.voucher.until", p.format.LongDay(dayOf(x.ExpiresAt, p.format.zone)))
		}
		view.Vouchers = append(view.Vouchers, shown)
	}
	for _, r := range f.Rewards {
		shown := cardRewardView{Name: r.Name, Cost: p.format.Points(r.PointsCost, r.currency)}
		if r.Missing > 0 {
			shown.Missing = p.Counted("site.missing", p.format.Number(r.Missing))
		}
		view.Rewards = append(view.Rewards, shown)
	}
	for _, m := range f.Movements {
		view.Movements = append(view.Movements, p.movementView(&m))
	}
	return view
}

// moment is a day and the time, for a sentence.
func (p *shownPage) moment(at instant) string {
	return p.format.LongDay(dayOf(at, p.format.zone)) + ", " + p.format.Time(at)
}

func (p *shownPage) programView(c *cardProgram, named bool) cardProgramView {
	f := p.format
	view := cardProgramView{Balance: f.Number(c.Balance), Unit: c.currency.Of(c.Balance), Tier: textOr(c.TierName, ""), Percent: -1}
	if named {
		view.Name = c.Name
	}
	if c.PendingBalance != 0 {
		view.Pending = tr(p.Language, "site.pending", f.Points(c.PendingBalance, c.currency))
	}
	if to := c.TierProgress; to != nil {
		if to.Missing != nil && to.NextTierName != nil {
			view.Missing = p.missing(to, c.currency)
			view.Percent = percentOfWay(to.Value, *to.Missing)
		}
		if to.FallsTo != nil {
			view.Falls = tr(p.Language, "site.falls", view.Tier, f.LongDay(dayOf(to.FallsAt, f.zone)))
		}
	}
	if s := c.Stamps; s != nil {
		view.StampsText = tr(p.Language, "site.stamps", f.Int(s.Filled), f.Points(decimal(s.Of)*decimalOne, c.currency))
		for i := range s.Of {
			view.Stamps = append(view.Stamps, i < s.Filled)
		}
	}
	for _, e := range c.ExpiringPoints {
		text := p.Counted("site.expiring", f.Number(e.Amount), c.currency.Of(e.Amount), f.LongDay(dayOf(e.ExpiresAt, f.zone)))
		view.Expiring = append(view.Expiring, cardExpiry{text, e.ExpiresAt <= f.now+soon})
	}
	return view
}

// missing says what is missing for the next tier, which is measured by points, money or purchases.
func (p *shownPage) missing(to *tierProgress, unit currencyName) string {
	switch n := *to.Missing; to.Metric {
	case metricPoints:
		return p.Counted("site.tier.points", p.format.Number(n), unit.Of(n), *to.NextTierName)
	case metricPurchases:
		return p.Counted("site.tier.purchases", p.format.Number(n), *to.NextTierName)
	default:
		return tr(p.Language, "site.tier.spent", p.format.MoneyWithCode(n), *to.NextTierName)
	}
}

// percentOfWay is how much of a way is done, in whole percents: 100 only at its end.
func percentOfWay(done, missing decimal) int {
	if done <= 0 || done+missing <= 0 {
		return 0
	}
	return int(float64(done) / float64(done+missing) * 100)
}

func (p *shownPage) movementView(m *cardMovement) cardMovementView {
	view := cardMovementView{
		UTC: p.format.UTC(m.CreatedAt), Date: p.format.LongDay(dayOf(m.CreatedAt, p.format.zone)), Name: p.MovementName(m.shape), Detail: textOr(m.Name, ""),
		Amount: "+" + p.format.Number(m.Amount), Unit: m.currency.Of(m.Amount), Minus: m.Type == typeDebit,
	}
	if view.Minus {
		view.Amount = "−" + p.format.Number(m.Amount)
	}
	if m.Category == categoryRedemption && view.Detail != "" { // the reward says it
		view.Name, view.Detail = view.Detail, ""
	}
	return view
}

// The statement of a month, of all programs that a card shows, to read and to print.

// A cardStatementView is what the template of a statement shows.
type cardStatementView struct {
	FirstName, Month, Back string

	Previous, Next string // the pages of the months beside it; "": there is none
	Programs       []statedProgramView
}

type statedProgramView struct {
	Name, Opening, Closing string

	Movements []cardMovementView
	More      string // how many are not shown; "": all are
}

// monthParam is the parameter of a statement's month.
const monthParam = "mes"

// A statedProgram is what a statement says of one program.
type statedProgram struct {
	*statement
	shown []cardMovement
}

// statement shows the statement of a month from the customer's enrolment on. Without such a month
// it is that of this one.
func (v *siteRequest) statement() (*sitePage, error) {
	var (
		list         []statedProgram
		first, month string
		name         string
	)
	page, err := v.opened(v.r.PathValue("token"), func(t *txn, c *customer) (err error) {
		first, month, name = monthText(c.CreatedAt, t.cfg.zone), v.r.URL.Query().Get(monthParam), c.FirstName
		if _, _, ok := monthOf(month, t.cfg.zone); !ok || month < first || month > monthText(t.now, t.cfg.zone) {
			month = monthText(t.now, t.cfg.zone)
		}
		list, err = statedOf(t, c, month)
		return err
	})
	if err != nil {
		return nil, err
	}
	path := v.r.URL.Path
	at, _ := time.Parse(monthForm, month)
	view := &cardStatementView{FirstName: name, Month: page.format.calendar().LongMonth(at), Back: path[:len(path)-len("/estado")]}
	if before := at.AddDate(0, -1, 0).Format(monthForm); before >= first {
		view.Previous = withQuery(path, []pair{{monthParam, before}})
	}
	if after := at.AddDate(0, 1, 0).Format(monthForm); after <= monthText(v.request.now, page.format.zone) {
		view.Next = withQuery(path, []pair{{monthParam, after}})
	}
	for _, s := range list {
		view.Programs = append(view.Programs, page.statedView(&s, len(list) > 1))
	}
	page.template, page.View = "statement", view
	page.Title = page.sitePage.T("site.statement.title", view.Month)
	return &page.sitePage, nil
}

// monthText is the month of a moment, as in 2026-11.
func monthText(at instant, zone *time.Location) string {
	return dayOf(at, zone).date().Format(monthForm)
}

func statedOf(t *txn, c *customer, month string) (list []statedProgram, err error) {
	d, err := newCustomerDetail(t, c)
	if err != nil {
		return nil, err
	}
	for _, in := range d.Programs {
		s, err := newStatement(t, c, t.cfg.program(in.LoyaltyProgramID), month)
		if err != nil {
			return nil, err
		}
		one := statedProgram{statement: s}
		for _, seq := range s.movements[:min(len(s.movements), mostStated)] {
			m, err := t.points.movement(seq)
			if err != nil {
				return nil, err
			}
			shown, err := newCardMovement(t, m, s.program)
			if err != nil {
				return nil, err
			}
			one.shown = append(one.shown, shown)
		}
		list = append(list, one)
	}
	return list, nil
}

func (p *shownPage) statedView(s *statedProgram, named bool) statedProgramView {
	unit := s.program.Currency
	view := statedProgramView{Opening: p.format.Points(s.opening.Balance, unit), Closing: p.format.Points(s.closing.Balance, unit)}
	if named {
		view.Name = s.program.Name
	}
	for _, m := range s.shown {
		view.Movements = append(view.Movements, p.movementView(&m))
	}
	if more := len(s.movements) - len(s.shown); more > 0 {
		view.More = p.format.Int(more)
	}
	return view
}

// newSite makes the pages.
func newSite(a *api) *site {
	s := &site{api: a, mux: http.NewServeMux()}
	s.page("GET /t/{token}", (*siteRequest).card)
	s.page("GET /t/{token}/estado", (*siteRequest).statement)
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).fail(newError(codeRouteNotFound)) })
	return s
}
