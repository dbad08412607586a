package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// The page of a ticket (contract §26): what was bought, and a button by which whoever has the ticket adds
// it to a card. The browser that opened a card of the organization has it in a cookie; another one asks
// for a card's code, and its answer names nobody. Adding to somebody else's card is allowed: it gives
// points away.

// A claimView is what the template of a ticket shows.
type claimView struct {
	Amount, Date string
	State        string // why it cannot be claimed; "": it can
	Gives        string // what it would give the card, or gave it; "": nothing, or no card is known
	Card         string // the path of the card that the browser has; "": it has none
	Do           string // the button's text
	Code, Fault  string // what was typed, and what is wrong with it
	Join         string // the path of the page to join by; "": there is none
	Other        string // where another card's code is asked for; "": it is asked for here
	Until        string
}

// cookieCard is the token of the card that the browser has, and its customer if that is one of this
// organization; nil if there is none.
func (v *siteRequest) cookieCard(t *txn) (token string, c *customer, err error) {
	cookie, err := v.r.Cookie(cardCookie)
	if err != nil {
		return "", nil, nil
	}
	d, err := cardByToken(t.Tx, cookie.Value, t.now)
	if err != nil || d == nil || d.Org != t.org {
		return "", nil, err
	}
	c, err = t.customers.get(d.Customer)
	return cookie.Value, c, err
}

// ticketAsked is the ticket of the path, and whose it is; an error if it is nobody's.
func (v *siteRequest) ticketAsked() (text string, org uint32, err error) {
	text = v.r.PathValue("ticket")
	org, err = viewStore(v.context(), v.api.engine.store, func(tx Tx) (uint32, error) { return ticketOrganization(tx, text) })
	if err == nil && org == 0 {
		err = v.missed()
	}
	return text, org, err
}

// isNoTicket reports whether an error is about a text that is no ticket of the organization.
func isNoTicket(e *apiError) bool {
	return slices.Contains([]errorCode{codeTicketNotFound, codeTicketInvalid, codeTicketsDisabled, codeExternalIDConflict}, e.code)
}

// ticket shows a ticket.
func (v *siteRequest) ticket() (*sitePage, error) { return v.ticketPage("", "") }

// ticketPage shows a ticket, with the code that was typed and what is wrong with it.
func (v *siteRequest) ticketPage(code, fault string) (*sitePage, error) {
	text, org, err := v.ticketAsked()
	if err != nil {
		return nil, err
	}
	if err := v.beginWork(v.api.reading); err != nil {
		return nil, err
	}
	defer v.endWork()
	var shown *shownPage
	_, err = read(v.context(), v.api.engine, org, v.request.now, func(t *txn) (any, error) {
		x, err := t.tickets.find(text)
		if err != nil {
			return nil, err
		}
		shown = v.pageOf(t.cfg)
		shown.template = "ticket"
		shown.View, err = v.claimView(t, x, shown)
		return nil, err
	})
	if e, is := errors.AsType[*apiError](err); is && e.code.status < http.StatusInternalServerError { // it cannot be shown
		err = v.missed()
	}
	if err != nil {
		return nil, err
	}
	// Without a referrer a browser says that the form comes from nowhere; the ticket is no secret from its own
	// page.
	v.Header()["Referrer-Policy"] = []string{"same-origin"}
	view := shown.View.(*claimView)
	if view.Code = code; fault != "" {
		view.Fault = shown.sitePage.T(fault)
	}
	shown.Title = shown.sitePage.T("site.ticket.title")
	return &shown.sitePage, nil
}

// claimView is what is said of a ticket, to who has a card and to who has none.
func (v *siteRequest) claimView(t *txn, x *ticket, p *shownPage) (*claimView, error) {
	f := p.format
	view := &claimView{
		Amount: f.MoneyWithCode(x.Total), Date: f.LongDay(dayOf(x.OccurredAt, f.zone)),
		Until: f.LongDay(dayOf(x.Expires-1, f.zone)), Do: p.sitePage.T("site.ticket.do"),
	}
	token, c, err := v.cookieCard(t)
	if err != nil {
		return nil, err
	}
	asked := v.r.URL.Query()
	if c != nil && c.mustBeActive() != nil { // it takes nothing
		c = nil
	}
	if asked.Has(otherParam) {
		c = nil
	}
	if c != nil {
		view.Card = "/t/" + token
	}
	err = t.tickets.mustBeClaimable(x)
	e, refused := errors.AsType[*apiError](err)
	switch {
	case err != nil && !refused:
		return nil, err
	case refused && x.State == ticketClaimed && c != nil:
		return view, v.showClaimed(t, x, c, p, view)
	case refused:
		if view.State = ticketStateText(p, e); x.State == ticketClaimed && asked.Has(addedParam) {
			view.State = p.sitePage.T("site.ticket.added")
		}
		return view, nil
	case c == nil:
		if t.cfg.cards().Join {
			view.Join = "/u/" + t.cfg.Organization.Slug
		}
		return view, nil
	}
	view.Do = p.sitePage.T("site.ticket.add", textOr(orNull(c.FirstName), p.sitePage.T("site.ticket.mine")))
	t.rehearse()
	s, _, _, err := t.tickets.claim(ticketClaim{v.r.PathValue("ticket"), c.ID})
	if _, refused := errors.AsType[*apiError](err); refused { // another card may take it
		view.Card, view.Do, view.Fault = "", p.sitePage.T("site.ticket.do"), p.sitePage.T("site.ticket.limit")
		return view, nil
	}
	if err == nil {
		view.Other = withQuery(v.r.URL.EscapedPath(), []pair{{otherParam, "1"}})
		view.Gives = p.sitePage.T("site.ticket.gives", p.given(t, s))
	}
	return view, err
}

// showClaimed says what a ticket gave the card that the browser has; of another's it says that alone.
func (v *siteRequest) showClaimed(t *txn, x *ticket, c *customer, p *shownPage, view *claimView) error {
	s, err := t.tickets.claimedBy(x, c)
	if err != nil {
		return err
	}
	if view.State = p.sitePage.T("site.ticket.claimed"); s != nil {
		view.State, view.Gives = p.sitePage.T("site.ticket.done"), p.given(t, s)
	}
	return nil
}

// given is what a sale gives in all programs, as in 15 Lunas + 1 sello.
func (p *shownPage) given(t *txn, s *sale) string {
	var parts []string
	for v := range s.shares {
		if in := t.cfg.programNumber(v.Program); v.Earned != 0 || len(parts) == 0 && v.Program == s.Program {
			parts = append(parts, p.format.Points(v.Earned, in.Currency))
		}
	}
	return strings.Join(parts, " + ")
}

// ticketStateText says why a ticket cannot be claimed.
func ticketStateText(p *shownPage, e *apiError) string {
	switch e.code {
	case codeTicketClaimed:
		return p.sitePage.T("site.ticket.claimed")
	case codeTicketExpired:
		return p.sitePage.T("site.ticket.expired")
	case codeTicketLimitReached:
		return p.sitePage.T("site.ticket.limit")
	case codeTicketRegistered:
		return p.sitePage.T("site.ticket.registered")
	}
	return p.sitePage.T("site.ticket.none")
}

// A page with addedParam follows on one where a code was typed, and one with otherParam asks for a code
// although the browser has a card.
const (
	addedParam = "sumado"
	otherParam = "otra"
)

// maxClaimForm bounds the form, in bytes.
const maxClaimForm = 1 << 10

// claimTicket claims a ticket for the card of the code that was typed, or of the cookie, and shows the
// ticket again.
func (v *siteRequest) claimTicket() (*sitePage, error) {
	text, org, err := v.ticketAsked()
	if err != nil {
		return nil, err
	}
	if v.request.now, err = v.api.engine.momentToWrite(); err != nil {
		return nil, err
	}
	if v.site.protect.Check(v.r) != nil || v.r.Header.Get("Sec-Fetch-Site") == "" && len(v.r.Header.Values("Origin")) == 0 {
		return nil, newError(codeOtherOrigin)
	}
	typed, err := readForm(v.ResponseWriter, v.r, maxClaimForm)
	if err != nil {
		return nil, err
	}
	code, _ := typed.get("code")
	_, err = write(v.context(), v.api.engine, org, v.request.now, func(t *txn) (any, error) {
		c, err := v.claimant(t, code)
		if err != nil {
			return nil, err
		}
		t.by = creator{Type: byClient, ID: c.ID}
		_, _, _, err = t.tickets.claim(ticketClaim{text, c.ID})
		return nil, err
	})
	e, refused := errors.AsType[*apiError](err)
	switch {
	case err != nil && !refused:
		return nil, err
	case refused && isNoTicket(e):
		return nil, v.missed()
	case refused && (e.code == codeCustomerNotFound || e.code == codeCustomerInactive):
		if err := v.missed(); !errors.Is(err, newError(codeCardNotFound)) { // codes are not guessed
			return nil, err
		}
		v.status = http.StatusUnprocessableEntity
		return v.ticketPage(code, "site.ticket.code.wrong")
	case refused && e.code == codeTicketLimitReached && code != "":
		v.status = http.StatusUnprocessableEntity
		return v.ticketPage(code, "site.ticket.limit")
	}
	path := v.r.URL.EscapedPath() // which says what became of it
	if err == nil && code != "" {
		path = withQuery(path, []pair{{addedParam, "1"}})
	}
	v.Header()["Location"] = []string{path}
	v.status = http.StatusSeeOther
	v.send()
	return nil, nil
}

// claimant finds whose card gets a ticket: of the code that was typed, or of the cookie.
func (v *siteRequest) claimant(t *txn, code string) (c *customer, err error) {
	if trimBlanks(code) != "" {
		c, err = t.customers.byMemberCode(code)
	} else {
		_, c, err = v.cookieCard(t)
	}
	if err == nil && c == nil {
		err = newError(codeCustomerNotFound)
	}
	return c, err
}

// newSite makes the pages.
func newSite(a *api) *site {
	s := &site{api: a, joins: newSourceLimits(mostJoinsOfSource, joinEvery), mux: http.NewServeMux()}
	s.page("GET /t/{token}", (*siteRequest).card)
	s.page("GET /u/{slug}", (*siteRequest).joinForm)
	s.page("POST /u/{slug}", (*siteRequest).join)
	s.page("GET /c/{ticket}", (*siteRequest).ticket)
	s.page("POST /c/{ticket}", (*siteRequest).claimTicket)
	s.page("GET /t/{token}/estado", (*siteRequest).statement)
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).fail(newError(codeRouteNotFound)) })
	return s
}
