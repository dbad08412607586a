package main

import (
	"errors"
	"html/template"
	"net/http"
	"slices"
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

	MoreVouchers string // how many are not shown; "": all are
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
	found, err := v.find(token)
	if err != nil {
		return nil, err
	}
	if found.join != nil && !v.asJSON {
		return v.codePage(found.join)
	}
	var (
		figures *cardFigures
		claims  bool
	)
	page, err := v.opened(token, found.card, func(t *txn, c *customer) (err error) {
		figures, err = newCardFigures(t, c)
		claims = t.cfg.tickets() != nil
		return err
	})
	if err != nil {
		return nil, err
	}
	if claims && !v.asJSON {
		v.remember(token, found.card)
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
	if figures.digits != "" { // to the next ones
		page.Refresh = int((proofStep-v.request.now%proofStep)/1000) + 1
	}
	return &page.sitePage, nil
}

// cardCookie has the token of the card that a browser opened last.
const cardCookie = "sello_card"

// maxCookieAge is how long browsers keep a cookie at most, in seconds.
const maxCookieAge = 400 * 24 * 60 * 60

// remember gives the browser a cookie by which the page of a ticket knows the card.
func (v *siteRequest) remember(token string, d *card) {
	http.SetCookie(v.ResponseWriter, &http.Cookie{
		Name: cardCookie, Value: token, Path: "/c", MaxAge: int(min((d.Expires-v.request.now)/1000, maxCookieAge)),
		HttpOnly: true, Secure: strings.HasPrefix(v.api.engine.cardsAt, "https://"), SameSite: http.SameSiteLaxMode,
	})
}

// A shownPage is a page of an organization, and how it says things.
type shownPage struct {
	sitePage
	prose
	privacy string // the privacy notice; "": there is none
}

// A foundPage is what a token opens: one of them, or nothing.
type foundPage struct {
	card *card
	join *preEnrolment
}

// find looks for what a token opens. Both are looked for whatever is there: it takes as long.
func (v *siteRequest) find(token string) (foundPage, error) {
	return viewStore(v.context(), v.api.engine.store, func(tx Tx) (f foundPage, err error) {
		if f.join, err = joinByToken(tx, token, v.request.now); err == nil {
			f.card, err = cardByToken(tx, token, v.request.now)
		}
		return f, err
	})
}

// opened runs fn for the customer of the card that was found by a token, in one view of the store. It
// returns the page to fill in.
func (v *siteRequest) opened(token string, found *card, fn func(*txn, *customer) error) (*shownPage, error) {
	if found == nil {
		return nil, v.missed()
	}
	if err := v.beginWork(v.api.reading); err != nil {
		return nil, err
	}
	defer v.endWork()
	cfg, err := read(v.context(), v.api.engine, found.Org, v.request.now, func(t *txn) (*config, error) {
		d, err := cardByToken(t.Tx, token, t.now) // again: it may have ended meanwhile
		if err == nil && (d == nil || *d != *found) {
			err = newError(codeCardNotFound)
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
	if errors.Is(err, newError(codeCardNotFound)) {
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
		prose{f, language}, textOr(cfg.cards().PrivacyURL, ""),
	}
}

func (p *shownPage) cardView(f *cardFigures, statement string) *cardView {
	view := &cardView{FirstName: textOr(f.FirstName, ""), Code: textOr(f.MemberCode, ""), Statement: statement, Privacy: p.privacy, AsOf: p.moment(f.AsOf)}
	if view.Code != "" {
		text := membercode.Plain(view.Code)
		if f.digits != "" {
			text += "." + f.digits
			view.Digits = f.digits[:3] + nbsp + f.digits[3:]
		}
		view.QR = qrPicture(text, view.Code, qrPixels)
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
	if f.moreVouchers > 0 {
		view.MoreVouchers = p.Counted("site.vouchers.more", p.format.Int(f.moreVouchers))
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

// mostStatedHere is how many movements of a program the statement shows: the panel's and the API's
// have more.
const mostStatedHere = 200

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
	token := v.r.PathValue("token")
	found, err := v.find(token)
	if err != nil {
		return nil, err
	}
	page, err := v.opened(token, found.card, func(t *txn, c *customer) (err error) {
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
		few := s.movements[:min(len(s.movements), mostStatedHere)]
		warm(t.Tx, few, t.points.movementKey)
		for _, seq := range few {
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

// The page to join by, and what it leads to: the code of a pre-enrolment, until that is a card.

// A joinView is what the template of the form shows.
type joinView struct {
	Controls  []joinControl
	Marketing bool   // is ticked
	Privacy   string // the privacy notice; "": there is none
}

// A joinControl is a field of the form.
type joinControl struct{ Name, Label, Kind, Auto, Value, Fault string }

// joinControls are the fields, as POST /customers calls them.
var joinControls = []joinControl{
	{Name: "firstName", Label: "site.join.name", Kind: "text", Auto: "given-name"},
	{Name: "lastName", Label: "site.join.last", Kind: "text", Auto: "family-name"},
	{Name: "phoneNumber", Label: "site.join.phone", Kind: "tel", Auto: "tel"},
	{Name: "email", Label: "site.join.email", Kind: "email", Auto: "email"},
	{Name: "birthDate", Label: "site.join.birth", Kind: "date", Auto: "bday"},
}

// maxJoinForm bounds the form, in bytes.
const maxJoinForm = 8 << 10

// A source sends at most so many forms at once, and one more each two minutes, which is 60 in any
// hour: a shop's guests are one source.
const (
	mostJoinsOfSource         = 30
	joinEvery         instant = 2 * minuteMillis
)

// joinRefresh is after how many seconds the page of a code asks whether it is a card yet.
const joinRefresh = 15

// joinsAt finds the organization whose page to join by is asked for.
func (v *siteRequest) joinsAt() (*config, error) {
	slug := v.r.PathValue("slug")
	if !isSlug(slug) { // a store refuses a key that is too long
		return nil, newError(codeRouteNotFound)
	}
	org, err := viewStore(v.context(), v.api.engine.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, slug) })
	if err == nil && org == 0 {
		err = newError(codeRouteNotFound)
	}
	if err != nil {
		return nil, err
	}
	cfg, err := v.configOf(org)
	if err == nil && !cfg.cards().Join {
		err = newError(codeRouteNotFound)
	}
	if err == nil {
		v.organization = cfg.Organization.Slug
	}
	return cfg, err
}

// configOf is the configuration of an organization.
func (v *siteRequest) configOf(org uint32) (*config, error) {
	return read(v.context(), v.api.engine, org, v.request.now, func(t *txn) (*config, error) { return t.cfg, nil })
}

func (v *siteRequest) joinForm() (*sitePage, error) {
	cfg, err := v.joinsAt()
	if err != nil {
		return nil, err
	}
	return v.formOf(cfg, nil, nil), nil
}

// formOf is the form with what was typed, and its faults.
func (v *siteRequest) formOf(cfg *config, typed object, faults []*apiError) *sitePage {
	// Without a referrer a browser says that the form comes from nowhere; this address is no secret.
	v.Header()["Referrer-Policy"] = []string{"same-origin"}
	page := v.pageOf(cfg)
	view := &joinView{Controls: slices.Clone(joinControls), Privacy: textOr(cfg.cards().PrivacyURL, "")}
	_, view.Marketing = typed.get("marketing")
	for i := range view.Controls {
		c := &view.Controls[i]
		c.Value, _ = typed.get(c.Name)
		c.Label = page.sitePage.T(c.Label)
		for _, e := range faults {
			if e.field == c.Name || e.code == codeEmailOrPhoneRequired && c.Name == "phoneNumber" {
				c.Fault = faultText(page.Language, page.format, e)
			}
		}
	}
	page.template, page.View, page.Title = "join", view, page.sitePage.T("site.join.title", cfg.Organization.Name)
	return &page.sitePage
}

// join keeps a pre-enrolment, and leads to the page of its code. What it answers does not depend on
// whether anybody is known.
func (v *siteRequest) join() (*sitePage, error) {
	cfg, err := v.joinsAt()
	if err != nil {
		return nil, err
	}
	if v.request.now, err = v.api.engine.momentToWrite(); err != nil {
		return nil, err
	}
	if v.site.protect.Check(v.r) != nil { // a page elsewhere would use up what its reader's source may send
		return nil, newError(codeOtherOrigin)
	}
	typed, err := readForm(v.ResponseWriter, v.r, maxJoinForm)
	if err != nil {
		return nil, err
	}
	e, faults := v.enrolmentIn(cfg, typed)
	if len(faults) > 0 {
		v.status = http.StatusUnprocessableEntity
		return v.formOf(cfg, typed, faults), nil
	}
	if wait := v.site.joins.take(sourceAddress(v.r, v.api.trusted), v.request.now); wait > 0 {
		return nil, newError(codeJoinsMany).retryAfter(wait)
	}
	token, err := write(v.context(), v.api.engine, cfg.Number, v.request.now, func(t *txn) (string, error) {
		return t.cards.prepare(preEnrolment{
			FirstName: e.FirstName, LastName: e.LastName, Email: e.Email, Phone: e.Phone, BirthDate: e.BirthDate, Marketing: e.Marketing == consentGiven,
		})
	})
	if err != nil {
		return nil, err
	}
	v.Header()["Location"] = []string{"/t/" + token}
	v.status = http.StatusSeeOther
	v.send()
	return nil, nil
}

// enrolmentIn reads a form as POST /customers reads its body.
func (v *siteRequest) enrolmentIn(cfg *config, typed object) (enrolment, []*apiError) {
	var body object
	for _, c := range joinControls {
		if value, _ := typed.get(c.Name); trimBlanks(value) != "" {
			body = append(body, pair{c.Name, string(appendJSONString(nil, value))})
		}
	}
	if _, ticked := typed.get("marketing"); ticked {
		body = append(body, pair{"marketing", "true"})
	}
	req := v.request
	req.Request, req.caller, req.fields = v.r, caller{cfg: cfg}, newFields(body)
	req.fields.beStrict() // tells all faults at once
	e := req.enrolment()
	if req.fields.err == nil {
		return e, nil
	}
	if faults := req.fields.strict.faults; len(faults) > 0 {
		return e, faults
	}
	return e, []*apiError{publicError(req.fields.err)}
}

// codePage is the page of the code of a pre-enrolment.
func (v *siteRequest) codePage(p *preEnrolment) (*sitePage, error) {
	cfg, err := v.configOf(p.Org)
	if err != nil {
		return nil, err
	}
	page := v.pageOf(cfg)
	page.template, page.Title, page.Refresh = "card", page.sitePage.T("site.title"), joinRefresh
	page.View = &cardView{Join: membercode.Written(p.Code), Privacy: page.privacy, QR: qrPicture(p.Code, p.Code, qrPixels)}
	return &page.sitePage, nil
}
