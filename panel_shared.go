package main

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What the till and the pages of customers and sales share: enrolment, rows of sales, choices and
// filters, and why a purchase earned what it did.

// enrolNew is createCustomer for somebody who is not known by phone or e-mail: whoever types
// a known one means that customer, or has mistyped it, so it stores nothing and says whose
// each is (contract §19).
func enrolNew(r *request) action {
	e := r.enrolment()
	beside := path.Dir(r.URL.Path) + "/"
	return func(t *txn) (any, error) {
		var all []*apiError
		for _, of := range []struct {
			kind         byte
			value, field string
		}{{kindPhone, e.Phone, "phoneNumber"}, {kindEmail, e.Email, "email"}} {
			c, err := t.customers.identify(of.kind, of.value)
			if err != nil {
				return nil, err
			}
			if c != nil {
				to := pathOfCustomer(beside, r.user.role, c.ID.String())
				all = append(all, newError(codeContactKnown).on(of.field).with("whose", c.masked()).with("to", to))
			}
		}
		if len(all) > 0 {
			first := *all[0]
			first.all = all
			return nil, &first
		}
		return enrolledReply(t)(t.customers.enrol(e))
	}
}

// pathOfCustomer is the page of a customer beside others of a path: at the till for a role
// that may not see all about customers.
func pathOfCustomer(beside string, r role, cust string) string {
	if r.may("customers:read") != grantAll {
		beside = "/panel/caja/"
	}
	return beside + cust
}

// masked says who a customer is to somebody who may not see contacts: the first name, the
// next one's initial, and the ends of the contacts.
func (c *customer) masked() string {
	withoutPhone := *c
	withoutPhone.Phone = ""
	parts := []string{c.shortName(), maskedContact(c)}
	if c.Phone != "" {
		parts = append(parts, maskedContact(&withoutPhone))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// maskedContact is the end of a customer's phone, or the beginning of the e-mail.
func maskedContact(c *customer) string {
	switch {
	case len(c.Phone) > 4:
		return "···· " + c.Phone[len(c.Phone)-4:]
	case c.Email != "":
		name, _, _ := strings.Cut(c.Email, "@")
		r, _ := utf8.DecodeRuneInString(name)
		return string(r) + "…@…"
	}
	return ""
}

// contact is how to reach a customer, but for what stands for a name: masked for a member who may not
// see all customers.
func (m *member) contact(c *customer) string {
	other := *c
	switch c.name() {
	case c.Email:
		other.Email = ""
	case c.Phone:
		other.Phone = ""
	}
	if m.mayAll("customers:read") != nil {
		return maskedContact(&other)
	}
	return cmp.Or(other.Phone, other.Email)
}

// typed is a number that was typed; 0 if nothing was. ok is false if the text is no number, or
// has two readings.
func (v *panelRequest) typed(name string) (d decimal, ok bool) {
	text := trimBlanks(v.typedText(name))
	if text == "" {
		return 0, true
	}
	literal, _, _ := v.format().readAmount(text)
	d, err := parseDecimal(literal)
	return d, err == nil
}

type saleRow struct {
	saleShape
	Back string // the name of the text that says how much of it was returned; "": nothing
	Also string // what it did in other programs
}

func saleRows(t *txn, f *format, list []saleShape) (rows []saleRow, err error) {
	for _, shape := range list {
		row := saleRow{saleShape: shape}
		if shape.Type == typePurchase {
			s, err := t.sales.get(*shape.ID)
			if err != nil {
				return nil, err
			}
			row.Back = s.back()
		}
		var also []string
		for _, share := range sharesOf(t.cfg, &shape)[1:] {
			sign, n := "", share.moved(shape.Type)
			if n < 0 {
				sign, n = "−", -n
			}
			if n != 0 {
				also = append(also, sign+f.Points(n, share.Currency))
			}
		}
		row.Also = strings.Join(also, " · ")
		rows = append(rows, row)
	}
	return rows, nil
}

const backWhole = "sale.back.whole"

// back is the name of the text that says how much of a purchase was returned; "" if nothing was.
func (s *sale) back() string {
	switch {
	case s.Type != typePurchase || s.Returned == 0 && !s.whollyReturned():
		return ""
	case s.whollyReturned():
		return backWhole
	}
	return "sale.back.part"
}

// A saleShareView is what a sale did in one program.
type saleShareView struct {
	saleProgram
	Currency currencyName
}

// moved is what a sale of a type added, or took back (below 0).
func (v saleShareView) moved(saleType string) decimal {
	if saleType == typeReturn {
		return -v.PointsReversed
	}
	return v.PointsEarned
}

// sharesOf is what a sale did in each program, the customer's own first.
func sharesOf(cfg *config, s *saleShape) (list []saleShareView) {
	for _, p := range append([]saleProgram{s.Programs.Own}, s.Programs.Others...) {
		list = append(list, saleShareView{p, cfg.program(p.LoyaltyProgramID).Currency})
	}
	return list
}

// mostMakers bounds the choice of who made records.
const mostMakers = 200

// makerChoices lists who makes records: the team, and then the keys. The first one is anybody.
func makerChoices(t *txn) (items []choiceItem, err error) {
	team, err := t.people.team()
	if err != nil {
		return nil, err
	}
	items = []choiceItem{{}}
	for _, m := range team {
		items = append(items, choiceItem{m.user.ID.String(), m.Name})
	}
	keys, err := t.keys.list()
	for _, k := range keys {
		items = append(items, choiceItem{k.ID.String(), k.Name + " …" + k.Last4})
	}
	return items[:min(len(items), mostMakers)], err
}

// programChoices are the programs by their ids, if there are several.
func programChoices(cfg *config) (items []choiceItem) {
	for _, p := range cfg.Programs {
		if len(cfg.Programs) > 1 {
			items = append(items, choiceItem{p.ID.String(), p.Name})
		}
	}
	return items
}

// withChoice adds a value that is chosen already, unless it is among the choices.
func withChoice(items []choiceItem, value string) []choiceItem {
	if slices.ContainsFunc(items, func(c choiceItem) bool { return c.Value == value }) {
		return items
	}
	return append(items, choiceItem{value, value})
}

type choiceItem struct{ Value, Text string }

// Choices are values with their texts, whose names begin alike. The first choice is none of them
// if there is a text for that.
func (f prose) Choices(none, texts string, values ...string) (list []choiceItem) {
	if none != "" {
		list = append(list, choiceItem{"", f.T(none)})
	}
	for _, value := range values {
		list = append(list, choiceItem{value, f.T(texts + value)})
	}
	return list
}

// Select is the control of a choice, with what was typed or the given value.
func (f *pageData) Select(name, label, value string, items []choiceItem) control {
	c := f.Field(name, label, "select", value)
	for _, item := range items {
		c.Options = append(c.Options, optionView{item.Value, item.Text, item.Value == c.Value})
	}
	return c
}

// A filterView is what narrows a list, in the template "filters": folded on a phone, where one line
// says what is set.
type filterView struct {
	Name, Set string // Set is "" if nothing is
	Open      bool   // one of them is wrong
	Fields    []control
}

// Filters are the controls that narrow a list, without choices that offer nothing.
func (f prose) Filters(fields ...control) filterView {
	fields = slices.DeleteFunc(fields, func(c control) bool { return c.Kind == "select" && len(c.Options) == 0 })
	view := filterView{Name: f.T("filters"), Fields: fields}
	var set []string
	for _, c := range view.Fields {
		view.Open = view.Open || c.Fault != ""
		if c.Value != "" {
			set = append(set, c.Label+": "+f.chosen(c))
		}
	}
	view.Set = strings.Join(set, " · ")
	return view
}

// chosen is what a control is set to, as a person reads it.
func (f prose) chosen(c control) string {
	for _, o := range c.Options {
		if o.Chosen {
			return o.Text
		}
	}
	if date, err := time.Parse(time.DateOnly, c.Value); err == nil && c.Kind == "date" {
		return f.format.DayAndYear(dayOn(date.Date()))
	}
	return c.Value
}

// People are the choices of who made something.
func (f prose) People(items []choiceItem) []choiceItem {
	items = slices.Clone(items)
	items[0].Text = f.T("all")
	return items
}

// Why a purchase earned what it did: by rules that gave something, and not by the others. The
// simulator and the pages of a sale show it.

// A whyView is what each rule says to a purchase.
type whyView struct {
	Rows  []whyRow
	Steps []string // how the points add up, for each program
}

type whyRow struct {
	Name, Sentence, Program string
	Points                  decimal
	Voucher                 bool     // it gives one
	Why                     []string // it gives nothing; empty if it gives some
}

// whyEarned says why a purchase earned what it did, by the rules that it was sold under; nil if that
// is not kept.
func whyEarned(v *panelRequest, t *txn, s *sale) (*whyView, error) {
	list, cfg, err := t.sales.reasonsFor(s)
	if err != nil || list == nil {
		return nil, err
	}
	return new(newWhyView(wordingIn(cfg, formatOf(cfg, v.lang.Code), v.lang), list)), nil
}

func newWhyView(w *ruleWording, list []programReasons) (view whyView) {
	for _, p := range list {
		name := ""
		if len(list) > 1 {
			name = p.program.Name
		}
		for i := range p.rules {
			r := &p.rules[i]
			row := whyRow{Name: r.rule.Name, Sentence: w.rule(r.rule), Program: name, Points: r.points, Voucher: r.issued}
			for _, why := range w.reasons(r) {
				row.Why = append(row.Why, why.text)
			}
			view.Rows = append(view.Rows, row)
		}
		if text := w.steps(&p); text != "" {
			if name != "" {
				text = name + ": " + text
			}
			view.Steps = append(view.Steps, text)
		}
	}
	return view
}

// steps says how what a purchase earned adds up; "" if the rules say it all.
func (w *ruleWording) steps(p *programReasons) string {
	if p.steps == (earningSteps{}) {
		return ""
	}
	parts := []string{w.say("why.rules", w.Number(p.earned-p.steps.Tier-p.steps.Rounding))}
	if p.steps.Tier != 0 {
		parts = append(parts, w.say("why.tier", w.signed(p.steps.Tier), p.tier.Name, w.Number(*p.tier.Multiplier)))
	}
	if p.steps.Rounding != 0 {
		name := "why.rounding"
		if slices.ContainsFunc(p.rules, func(r ruleReasons) bool { return r.applied() && r.rule.Budget != nil }) {
			name = "why.budget"
		}
		parts = append(parts, w.say(name, w.signed(p.steps.Rounding)))
	}
	return strings.Join(parts, ", ") + " = " + w.Number(p.earned)
}

func (w *ruleWording) signed(d decimal) string {
	if d < 0 {
		return "−" + w.Number(-d)
	}
	return "+" + w.Number(d)
}

// Gave are the rules that give something, Silent the others.
func (view *whyView) Gave() []whyRow {
	return slices.DeleteFunc(slices.Clone(view.Rows), func(r whyRow) bool { return len(r.Why) > 0 })
}

func (view *whyView) Silent() []whyRow {
	return slices.DeleteFunc(slices.Clone(view.Rows), func(r whyRow) bool { return len(r.Why) == 0 })
}
