package main

import (
	"slices"
	"strings"
)

// Why a purchase earned what it did: by rules that gave something, and not by the others. The
// simulator and the pages of a sale show it.

// A whyView is what each rule says to a purchase.
type whyView struct {
	Rows  []whyRow
	Steps []string // how the points add up, for each program
}

// A whyRow is a rule.
type whyRow struct {
	Name, Sentence, Program string
	Points                  decimal
	Voucher                 bool     // it gives one
	Why                     []string // it gives nothing; empty if it gives some
}

// why says why a purchase earned what it did, by the rules that it was sold under; nil if that
// is not kept.
func (v *panelRequest) why(t *txn, s *sale) (*whyView, error) {
	list, cfg, err := t.sales.reasonsFor(s)
	if err != nil || list == nil {
		return nil, err
	}
	return new(newWhyView(wordingIn(cfg, formatOf(cfg, v.lang.Code), v.lang), list)), nil
}

// newWhyView puts the reasons of a purchase into words.
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

// signed is a number with its sign.
func (w *ruleWording) signed(d decimal) string {
	if d < 0 {
		return "−" + w.Number(-d)
	}
	return "+" + w.Number(d)
}

// whyRows are for the templates "gave" and "silent".
type whyRows struct {
	Page *pageData
	Rows []whyRow
}

func (f *pageData) WhyRows(rows []whyRow) whyRows { return whyRows{f, rows} }

// A whyWhole is for the template "why".
type whyWhole struct {
	Page *pageData
	Why  *whyView
}

func (f *pageData) WhyWhole(why *whyView) whyWhole { return whyWhole{f, why} }

// Gave are the rules that give something, Silent the others.
func (view *whyView) Gave() []whyRow {
	return slices.DeleteFunc(slices.Clone(view.Rows), func(r whyRow) bool { return len(r.Why) > 0 })
}

func (view *whyView) Silent() []whyRow {
	return slices.DeleteFunc(slices.Clone(view.Rows), func(r whyRow) bool { return len(r.Why) == 0 })
}
