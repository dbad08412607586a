package main

import (
	"slices"
	"time"
)

// Why a purchase earned what it did (contract §22). At registration the sale keeps the version of
// the configuration, and in each share which conditions of which rule were not met. So an old sale
// is read and not computed again, whatever the rules say by now.

// A shareReasons says why a purchase earned what it did in a program.
type shareReasons struct {
	Tier  uint64 // place of the customer's tier before the sale, from 1; 0: none
	Steps earningSteps

	// Of each rule of the program, in the order of the configuration's version; nothing of rules that
	// are not for purchases. At the end those whose conditions were met are left out.
	Rules []unmetRule
}

// An unmetRule is the conditions of a rule that a purchase did not meet.
type unmetRule struct {
	Conditions conditionSet
	Turn       uint64 // with conditionEvery: which of the purchases that are counted it would have been
}

// fields begins with Tier and two bits: whether each of the Steps has points. The rules begin with
// a bit for each, of those that have conditions which were not met.
func (w *shareReasons) fields(c *coder) {
	head := w.Tier << 2
	for i, step := range []decimal{w.Steps.Tier, w.Steps.Rounding} {
		if step != 0 {
			head |= 1 << i
		}
	}
	c.uint(&head)
	w.Tier = head >> 2
	for i, step := range []*decimal{&w.Steps.Tier, &w.Steps.Rounding} {
		if head>>i&1 != 0 {
			c.decimal(step)
		}
	}
	for from, more := 0, uint64(1); more == 1; from += rulesInWord {
		word := uint64(0)
		for i := from; i < min(len(w.Rules), from+rulesInWord); i++ {
			if w.Rules[i].Conditions != 0 {
				word |= 2 << (i - from)
			}
		}
		if len(w.Rules) > from+rulesInWord {
			word |= 1
		}
		c.uint(&word)
		more = word & 1
		for i := from; c.reading && word>>1>>(i-from) != 0; i++ {
			w.Rules = append(w.Rules, make([]unmetRule, i+1-len(w.Rules))...)
			w.Rules[i].Conditions = conditionSet(word >> 1 >> (i - from) & 1)
		}
	}
	for i := range w.Rules {
		if w.Rules[i].Conditions != 0 {
			w.Rules[i].fields(c)
		}
	}
}

// rulesInWord is for how many rules a word says which have conditions that were not met; its last
// bit says whether another word follows.
const rulesInWord = 62

func (u *unmetRule) fields(c *coder) {
	uintField(c, &u.Conditions)
	if u.Conditions.has(conditionEvery) {
		c.uint(&u.Turn)
	}
}

// reasons are why a purchase earns what it does in an account.
func (p *affectedAccount) reasons() shareReasons {
	w := shareReasons{Steps: p.earned.steps}
	if p.before != nil {
		w.Tier = 1 + uint64(slices.IndexFunc(p.program.Tiers, func(t tier) bool { return t.Name == p.before.Name }))
	}
	for i, unmet := range p.earned.unmet {
		if unmet == 0 {
			continue
		}
		w.Rules = append(w.Rules, make([]unmetRule, i+1-len(w.Rules))...)
		w.Rules[i].Conditions = unmet
		if unmet.has(conditionEvery) {
			w.Rules[i].Turn = p.uses.turn(&p.program.Rules[i])
		}
	}
	return w
}

// fit reports whether reasons can be of a purchase in a program.
func (w *shareReasons) fit(p *program) bool {
	if w.Tier > uint64(len(p.Tiers)) || len(w.Rules) > len(p.Rules) {
		return false
	}
	for i, u := range w.Rules {
		r := &p.Rules[i]
		for c := range conditions {
			if u.Conditions.has(c) && !r.has(c) {
				return false
			}
		}
		if u.Conditions>>conditions != 0 || u.Conditions != 0 && !r.isForPurchases() {
			return false
		}
	}
	return true
}

// mostVersionsKept is how many versions of the configuration are kept at once by those who explain
// many sales.
const mostVersionsKept = 64

// A programReasons is why a purchase earned what it did in a program, as the configuration was.
type programReasons struct {
	program *program
	tier    *tier // before the sale; nil: none
	earned  decimal
	steps   earningSteps
	rules   []ruleReasons // in the order of the configuration
}

// A ruleReasons says what a rule gave a purchase, or why nothing.
type ruleReasons struct {
	rule   *rule
	id     id
	points decimal
	issued bool   // it gave a voucher
	missed string // why it gave none, though its conditions were met; else ""
	unmetRule
	sold time.Time // when the purchase happened, in the organization's time zone
	tier string    // before the sale; "": none
}

// applied reports whether the rule gave something.
func (w *ruleReasons) applied() bool { return w.points != 0 || w.issued }

// reasonsFor explains a purchase, with the configuration that it was sold under. Both are nil for a
// return, and for a sale from before reasons were kept.
func (sa *salesTxn) reasonsFor(s *sale) ([]programReasons, *config, error) {
	if s.Version == 0 {
		return nil, nil, nil
	}
	cfg, err := sa.configOf(s)
	if err != nil {
		return nil, nil, err
	}
	var list []programReasons
	for v := range s.shares {
		var p *program
		if cfg != nil {
			p = cfg.programNumber(v.Program)
		}
		if p == nil || !v.Reasons.fit(p) {
			return nil, nil, unreadable(sa.key(s.Seq))
		}
		why := programReasons{program: p, earned: v.Earned, steps: v.Reasons.Steps}
		if n := v.Reasons.Tier; n > 0 {
			why.tier = &p.Tiers[n-1]
		}
		for i := range p.Rules {
			r := ruleReasons{rule: &p.Rules[i], id: p.ruleID(&p.Rules[i]), sold: s.CreatedAt.time().In(cfg.zone), tier: why.tier.name()}
			if i < len(v.Reasons.Rules) {
				r.unmetRule = v.Reasons.Rules[i]
			}
			r.gaveIn(s, v)
			why.rules = append(why.rules, r)
		}
		list = append(list, why)
	}
	return list, cfg, nil
}

// configOf is the configuration that a purchase was sold under; nil if it is not kept.
func (sa *salesTxn) configOf(s *sale) (*config, error) {
	cfg, known := sa.versions[s.Version]
	if known || s.Version == 0 {
		return cfg, nil
	}
	cfg, err := configAt(sa.t, s.Version)
	if err != nil {
		return nil, err
	}
	if sa.versions == nil || len(sa.versions) >= mostVersionsKept {
		sa.versions = map[uint64]*config{}
	}
	sa.versions[s.Version] = cfg
	return cfg, nil
}

// gaveIn notes what the rule gave a purchase in a share.
func (w *ruleReasons) gaveIn(s *sale, v *saleShare) {
	for _, r := range v.Rules {
		if r.RuleID == w.id {
			w.points += r.Points
		}
	}
	for i := range s.Given {
		if g := &s.Given[i]; g.Program == v.Program && g.Rule == w.id {
			w.issued, w.missed = g.Redemption != 0, g.Reason
		}
	}
}
