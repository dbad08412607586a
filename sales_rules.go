package main

import (
	"slices"
	"time"
)

// What a purchase leaves behind of the rules: counts, and at the end why it earned what it did.
//
// Rules look at counts: how often a customer used a rule on a day (maxPerCustomerPerDay) and in its
// life (maxPerCustomer, every), and what a rule gave of its budget.
//
//	c org cust 6 prog day rule → ruleUse
//	c org cust 10 prog rule    → ruleLife
//	C org prog rule            → ruleBudget
//
// A purchase says what it counts for (ruleCount), so that its returns give it back whatever the
// rules say by then.

// A ruleUse is how often one rule was used on one day.
type ruleUse struct{ Times uint64 }

// A ruleBudget is what a rule gave while it had a budget, less what returns took back.
type ruleBudget struct{ Used decimal }

// A ruleCount is what a purchase counts for with one rule.
type ruleCount struct {
	Rule  string // key
	For   ruleCountFor
	Given uint64 // it moved ruleLife.Given by so many purchases
}

// A ruleCountFor is a set of counts.
type ruleCountFor uint8

const (
	countsUse   ruleCountFor = 1 << iota // ruleLife.Uses
	countsTurn                           // ruleLife.Turns
	countsSpent                          // ruleBudget.Used, with what the rule gave
)

func (u *ruleUse) fields(c *coder)    { c.uint(&u.Times) }
func (l *ruleLife) fields(c *coder)   { c.uint(&l.Uses); c.uint(&l.Turns); c.uint(&l.Given) }
func (b *ruleBudget) fields(c *coder) { c.decimal(&b.Used) }
func (v *ruleCount) fields(c *coder)  { c.text(&v.Rule); byteField(c, &v.For); c.uint(&v.Given) }

// life is what a purchase counts for in its customer's life.
func (v *ruleCount) life() (l ruleLife) {
	if v.For&countsUse != 0 {
		l.Uses = 1
	}
	if v.For&countsTurn != 0 {
		l.Turns = 1
	}
	l.Given = v.Given
	return l
}

func (u ruleUse) plus(o ruleUse) ruleUse { return ruleUse{u.Times + o.Times} }

func (l ruleLife) plus(o ruleLife) ruleLife {
	return ruleLife{l.Uses + o.Uses, l.Turns + o.Turns, l.Given + o.Given}
}

// minus takes away what a purchase counted for. Nothing falls below 0.
func (l ruleLife) minus(o ruleLife) ruleLife {
	return ruleLife{l.Uses - min(l.Uses, o.Uses), l.Turns - min(l.Turns, o.Turns), l.Given - min(l.Given, o.Given)}
}

// countsFor is what a purchase counts for with a rule that gave something.
func (r *rule) countsFor() (f ruleCountFor) {
	if r.MaxPerCustomer > 0 {
		f |= countsUse
	}
	if r.Budget != nil {
		f |= countsSpent
	}
	return f
}

// ruleUses counts for the rules of an account's program. It remembers an error of the store.
type ruleUses struct {
	t   *txn
	a   *account
	at  instant // of the sale
	err error
}

// Uses are counted by the day of the sale. Sales may come late, so a sale drops only
// counts of days that no late sale can be of, counted back from its own.
const droppedAtOnce = 32 // old counts that one sale drops

// keptUseDays is for how many days before a sale its uses are kept.
func (u *ruleUses) keptUseDays() (day, error) {
	n, err := u.t.count()
	if err != nil {
		return 0, err
	}
	days := u.t.cfg.maxLateDays()
	if d := u.t.cfg.tickets(); d != nil {
		days = max(days, d.Days) // a claim is as late as its ticket
	}
	if n.Tickets > 0 { // whose days may have been others
		days = max(days, mostTicketDays)
	}
	return day(days) + 2, nil
}

func (u *ruleUses) day(r *rule) day { return r.dayOf(u.at.time().In(u.t.cfg.zone)) }

// dayOfUse is the day on which a purchase used a rule. sold is the configuration that it was sold
// under, nil for one from before that was kept.
func dayOfUse(sold *config, program uint32, ruleID id, at time.Time) day {
	if sold != nil {
		if p := sold.programNumber(program); p != nil {
			if i := slices.IndexFunc(p.Rules, func(r rule) bool { return p.ruleIDOf(r.Key) == ruleID }); i >= 0 {
				return p.Rules[i].dayOf(at)
			}
		}
	}
	return dayOn(at.Date())
}

func (u *ruleUses) dayKey(r *rule) key {
	return u.t.points.partKey(u.a, partRuleUse).day(u.day(r)).text(r.Key)
}

func (u *ruleUses) lifeKey(rule string) key {
	return u.t.points.partKey(u.a, partRuleLife).text(rule)
}

func budgetKey(org, program uint32, rule string) key {
	return orgKey('C', org).u32(program).text(rule)
}

// segmentsOf returns a function that lists the keys of the segments of the customer with an account
// in its own program.
func (u *ruleUses) segmentsOf(own *account) func() []string {
	return func() []string {
		in, err := u.t.rules.segmentsOf(own)
		if err != nil {
			u.err = err
		}
		return keysOf(in)
	}
}

// kept reads a count; a new one if there is none.
func kept[T any, P recordPointer[T]](u *ruleUses, k key) *T {
	n, err := get[T, P](u.t.Tx, k)
	if err != nil {
		u.err = err
	}
	if n == nil {
		n = new(T)
	}
	return n
}

func (u *ruleUses) onDay(r *rule) int           { return int(kept[ruleUse](u, u.dayKey(r)).Times) }
func (u *ruleUses) inLife(rule string) ruleLife { return *kept[ruleLife](u, u.lifeKey(rule)) }

// turn is which of the purchases that a rule with every counts the next one is; 0 for others.
func (u *ruleUses) turn(r *rule) uint64 {
	if r.Every == 0 {
		return 0
	}
	return u.inLife(r.Key).Turns + 1
}

// budgetLeft is a number that the program's points can have.
func (u *ruleUses) budgetLeft(r *rule) decimal {
	p := u.a.program
	left := max(*r.Budget-kept[ruleBudget](u, budgetKey(u.t.org, p.Number, r.Key)).Used, 0)
	return left - left%unit(p.PointsDecimals)
}

// add counts toward a daily limit that a rule gave points.
func (u *ruleUses) add(r *rule) error {
	if r.MaxPerCustomerPerDay == 0 {
		return nil
	}
	use := kept[ruleUse](u, u.dayKey(r))
	use.Times++
	if err := u.t.put(u.dayKey(r), use); err != nil {
		return err
	}
	return u.drop(u.day(r))
}

// drop deletes counts that are old on a day of use, at most droppedAtOnce at a time.
func (u *ruleUses) drop(on day) error {
	kept, err := u.keptUseDays()
	if err != nil {
		return err
	}
	days := u.t.points.partKey(u.a, partRuleUse)
	return deleteRange(u.t, days, slices.Clone(days).day(on-kept), droppedAtOnce)
}

// count counts a purchase in lives and budgets, and notes in its share for what it counts.
func (u *ruleUses) count(v *saleShare, e *earning) error {
	for _, r := range e.turns {
		v.Counts = append(v.Counts, ruleCount{Rule: r.Key, For: countsTurn})
	}
	for _, w := range e.awards {
		f := w.rule.countsFor()
		if w.missed || f == 0 && w.rule.Every == 0 {
			continue
		}
		i := slices.IndexFunc(v.Counts, func(n ruleCount) bool { return n.Rule == w.rule.Key })
		if i < 0 {
			i, v.Counts = len(v.Counts), append(v.Counts, ruleCount{Rule: w.rule.Key})
		}
		v.Counts[i].For |= f
		if w.rule.Every > 0 {
			l := u.inLife(w.rule.Key)
			v.Counts[i].Given = l.Turns + 1 - l.Given
		}
	}
	for _, n := range v.Counts {
		if err := u.changeLife(n, ruleLife.plus); err != nil {
			return err
		}
		if n.For&countsSpent != 0 {
			if err := u.spend(n.Rule, v.gave(u.a.program, n.Rule)); err != nil {
				return err
			}
		}
	}
	return u.err
}

func (v *saleShare) gave(p *program, rule string) decimal {
	ruleID := p.ruleIDOf(rule)
	for _, r := range v.Rules {
		if r.RuleID == ruleID {
			return r.Points
		}
	}
	return 0
}

// tookBack is how much of the points that a rule gave a purchase its returns so far took back for
// certain. Nobody knows which rule's points they were, so the points of other rules count first.
func (v *saleShare) tookBack(given decimal) decimal {
	return max(given-(v.Earned-v.Reversed), 0)
}

// giveBackBudgets gives back to budgets what a return of a purchase took back, whose share's
// Reversed was before.
func (u *ruleUses) giveBackBudgets(v *saleShare, before decimal) error {
	was := saleShare{Earned: v.Earned, Reversed: before}
	for _, n := range v.Counts {
		if n.For&countsSpent == 0 {
			continue
		}
		given := v.gave(u.a.program, n.Rule)
		if err := u.spend(n.Rule, was.tookBack(given)-v.tookBack(given)); err != nil {
			return err
		}
	}
	return u.err
}

// giveBackLives takes a purchase that is wholly returned out of the customer's life, and notes what
// it still counts for: a rule whose voucher stays was used.
func (u *ruleUses) giveBackLives(v *saleShare, stays func(rule string) (bool, error)) error {
	for i := range v.Counts {
		n := &v.Counts[i]
		back := *n
		if kept, err := stays(n.Rule); err != nil {
			return err
		} else if kept {
			back.For, back.Given = back.For&countsTurn, 0
		}
		if err := u.changeLife(back, ruleLife.minus); err != nil {
			return err
		}
		n.For &^= back.For &^ countsSpent
		n.Given -= back.Given
	}
	v.Counts = slices.DeleteFunc(v.Counts, func(n ruleCount) bool { return n.For == 0 && n.Given == 0 })
	return u.err
}

// changeLife changes the customer's life by what a purchase counts for.
func (u *ruleUses) changeLife(n ruleCount, change func(ruleLife, ruleLife) ruleLife) error {
	by := n.life()
	if by == (ruleLife{}) {
		return nil
	}
	k := u.lifeKey(n.Rule)
	l := change(u.inLife(n.Rule), by)
	return putCount(u.t, k, &l, l == ruleLife{})
}

// spend adds points to what a rule gave of its budget.
func (u *ruleUses) spend(rule string, points decimal) error {
	if points == 0 {
		return nil
	}
	k := budgetKey(u.t.org, u.a.program.Number, rule)
	b := kept[ruleBudget](u, k)
	var ok bool
	if b.Used, ok = b.Used.add(points); !ok {
		return newError(codeTooLarge).on("totalAmount")
	}
	b.Used = max(b.Used, 0)
	return putCount(u.t, k, b, b.Used == 0)
}

func putCount(t *txn, k key, n fielded, none bool) error {
	if none {
		return t.Delete(k)
	}
	return t.put(k, n)
}

func (sa *salesTxn) budgetUsed(p *program, r *rule) (decimal, error) {
	return budgetUsed(sa.t.Tx, sa.t.org, p.Number, r.Key)
}

func budgetUsed(tx Tx, org, program uint32, rule string) (decimal, error) {
	b, err := get[ruleBudget](tx, budgetKey(org, program, rule))
	if b == nil || err != nil {
		return 0, err
	}
	return b.Used, nil
}

// Why a purchase earned what it did (contract §22). At registration the sale keeps the version of
// the configuration, and in each share the conditions of each rule that were not met. So the reasons
// of an old sale are read and not computed again, whatever the rules say by now.

// A shareReasons says why a purchase earned what it did in a program.
type shareReasons struct {
	Tier  uint64 // place of the customer's tier before the sale, from 1; 0: none
	Steps earningSteps

	// Of each rule of the program, in the order of the configuration's version; nothing of rules that
	// are not for purchases. At the end, rules whose conditions were met are left out.
	Rules []unmetRule
}

// An unmetRule is the conditions of a rule that a purchase did not meet.
type unmetRule struct {
	Conditions conditionSet
	Turn       uint64 // with conditionEvery: which of the purchases that are counted it would have been
}

// fields begins with Tier and two bits: whether each of the Steps has points. The rules begin with
// a bit for each: whether a condition of the rule was not met.
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

// mostVersionsKept is how many versions of the configuration are kept at once while many sales are
// explained.
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
