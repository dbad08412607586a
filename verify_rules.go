package main

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// How often rules were used, what is spent of their budgets, and why purchases earned what they
// did: all of it counted again from the purchases.

// limitUses counts the uses of daily limits from the customer's purchases.
func (v *verifier) limitUses(h *saleHistory) (u *limitUses, err error) {
	if u = &h.uses; u.by != nil {
		return u, nil
	}
	u.by, u.latest = map[limitedDay]usesRange{}, map[uint32]day{}
	for i := range h.all {
		s := &h.all[i]
		if s.Type != typePurchase {
			continue
		}
		at, stands := s.CreatedAt.time().In(v.txn.cfg.zone), s.stands()
		var sold *config
		if s.Version > 0 && s.isLimited() {
			if sold, err = v.version(s.Version); err != nil {
				return nil, err
			}
		}
		for kept := range s.shares {
			if slices.ContainsFunc(kept.Limited, func(j uint64) bool { return j >= uint64(len(kept.Rules)) }) {
				v.problem("%v: cuenta para el límite de una regla que no dio nada", subject{kind: "venta", id: s.ID})
			}
			for j, gave := range kept.Rules {
				on := dayOfUse(sold, kept.Program, gave.RuleID, at)
				k := limitedDay{kept.Program, on, gave.RuleID}
				n := u.by[k]
				if !slices.Contains(kept.Limited, uint64(j)) {
					n.most++
				} else {
					if u.latest[k.program] = max(u.latest[k.program], on); stands {
						n.least++
						n.most++
					}
				}
				u.by[k] = n
			}
		}
	}
	return u, nil
}

// neverDropped is for how many days before the latest use its program's uses are there: the
// fewest keptUseDays.
const neverDropped = 2

// ruleUse checks the count of a rule's uses on a day, which come after their customer.
func (v *verifier) ruleUse(e Entry) error {
	k, ok := v.limitedDayIn(e.Key)
	if !ok || v.history.owner != id(e.Key[5:21]) {
		v.stray(e.Key)
		return nil
	}
	use, err := decodeEntry[ruleUse](e)
	if err != nil {
		return err
	}
	u, err := v.limitUses(&v.history)
	if err != nil {
		return err
	}
	should := u.by[k]
	if k.day < u.latest[k.program]-neverDropped {
		should.least = min(should.least, 1)
	}
	if use.Times == 0 || use.Times < should.least || use.Times > should.most {
		v.differs(subject{kind: "cliente", id: v.history.owner}, ": usos de una regla en un día", use.Times, should.least)
	}
	return nil
}

// limitedDayIn is what the key of a count stands for.
func (v *verifier) limitedDayIn(k []byte) (d limitedDay, ok bool) {
	if len(k) < 30 {
		return d, false
	}
	d.program = binary.BigEndian.Uint32(k[22:])
	d.day = day(int32(binary.BigEndian.Uint32(k[26:]) ^ 1<<31))
	p := v.txn.cfg.programNumber(d.program)
	if p == nil {
		return d, false
	}
	d.rule = p.ruleIDOf(string(k[30:]))
	return d, true
}

// usesKept checks that no count is missing.
func (v *verifier) usesKept(c *customer, what subject) error {
	if !v.history.limited {
		return nil
	}
	have := map[limitedDay]bool{}
	for e, err := range scan(v.txn.Tx, customerKey(v.txn.org, c.ID, partRuleUse), false) {
		if err != nil {
			return err
		}
		if k, ok := v.limitedDayIn(e.Key); ok {
			have[k] = true
		}
	}
	u, err := v.limitUses(&v.history)
	if err != nil {
		return err
	}
	for k, n := range u.by {
		if n.least > 0 && k.day >= u.latest[k.program]-neverDropped && !have[k] {
			v.differs(what, ": usos de una regla en un día", 0, n.least)
		}
	}
	return nil
}

// ruleLives checks how often a customer used rules in all, and adds what its purchases count
// for in budgets.
func (v *verifier) ruleLives(c *customer, what subject) error {
	if !v.history.counted {
		return nil
	}
	lives := map[programName]ruleLife{}
	for i := range v.history.all {
		s := &v.history.all[i]
		for kept := range s.shares {
			p := v.txn.cfg.programNumber(kept.Program)
			for j, n := range kept.Counts {
				if n.For == 0 && n.Given == 0 || slices.ContainsFunc(kept.Counts[:j], func(o ruleCount) bool { return o.Rule == n.Rule }) {
					v.problem("%v: cuenta para una regla dos veces o para nada", subject{kind: "venta", id: s.ID})
				}
				given, r := kept.gave(p, n.Rule), programName{kept.Program, n.Rule}
				ran := slices.ContainsFunc(kept.Rules, func(r ruleShare) bool { return r.RuleID == p.ruleIDOf(n.Rule) })
				if (n.For&^countsTurn != 0 || n.Given != 0) && !ran || n.For&countsSpent != 0 && given == 0 {
					v.problem("%v: cuenta para una regla que no dio nada", subject{kind: "venta", id: s.ID})
				}
				if n.For&countsSpent != 0 {
					v.budgets[r] += given - kept.tookBack(given)
				}
				lives[r] = lives[r].plus(n.life())
				if !s.stands() && n.life() != (ruleLife{}) { // only what a used voucher holds
					if held, err := v.holdsUse(s.sale, p, n); err != nil {
						return err
					} else if !held {
						v.problem("%v: cuenta todavía para una regla", subject{kind: "venta", id: s.ID})
					}
				}
			}
		}
	}
	for _, r := range sortedNames(lives) {
		life := lives[r]
		if life == (ruleLife{}) {
			continue
		}
		k := customerKey(v.txn.org, c.ID, partRuleLife).u32(r.program).text(r.name)
		if err := v.has(tableRecords, k, appendRecord(nil, &life), what); err != nil {
			return err
		}
	}
	return nil
}

// holdsUse reports whether a wholly returned purchase still counts as a use of a rule, since the
// voucher that the rule gave was used.
func (v *verifier) holdsUse(s *sale, p *program, n ruleCount) (bool, error) {
	i := slices.IndexFunc(s.Given, func(g givenVoucher) bool { return g.Program == p.Number && g.Rule == p.ruleIDOf(n.Rule) })
	if i < 0 || n.For&countsTurn != 0 || s.Given[i].Redemption == 0 {
		return false, nil
	}
	x, err := get[redemption](v.txn.Tx, v.txn.rewards.redemptionKey(s.Given[i].Redemption))
	return x != nil, err
}

func (v *verifier) ruleBudgets() error {
	for _, r := range sortedNames(v.budgets) {
		used := ruleBudget{v.budgets[r]}
		if used == (ruleBudget{}) {
			continue
		}
		what := subject{kind: "regla " + r.name}
		if err := v.has(tableRuleBudgets, budgetKey(v.txn.org, r.program, r.name), appendRecord(nil, &used), what); err != nil {
			return err
		}
	}
	return nil
}

func sortedNames[T any](of map[programName]T) []programName {
	return slices.SortedFunc(maps.Keys(of), func(a, b programName) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.name, b.name))
	})
}

// Why purchases earned what they did: the reasons that they keep are computed again, with the
// configuration that they were sold under.

// version is the configuration with a version's number; nil if it cannot be read, which
// configVersions tells of.
func (v *verifier) version(number uint64) (*config, error) {
	if cfg, ok := v.versions[number]; ok {
		return cfg, nil
	}
	kept, err := versionAt(v.txn.Tx, v.txn.org, number)
	if err != nil {
		return nil, err
	}
	var cfg *config
	if kept != nil {
		cfg, _ = kept.config()
	}
	if v.versions == nil || len(v.versions) >= mostVersionsKept {
		v.versions = map[uint64]*config{}
	}
	v.versions[number] = cfg
	return cfg, nil
}

func (v *verifier) reasons(s *sale) error {
	if s.Version == 0 || s.Type != typePurchase {
		return nil
	}
	what := subject{kind: "venta", id: s.ID}
	cfg, err := v.version(s.Version)
	if err != nil {
		return err
	}
	if cfg == nil {
		v.problem("%v: no hay versión %d de la configuración", what, s.Version)
		return nil
	}
	total := s.Total
	if s.Payment != nil {
		if p := cfg.programNumber(s.Payment.Program); p != nil && p.Payment != nil && p.Payment.EarnOn == earnOnPaid {
			total = s.due()
		}
	}
	for kept := range s.shares {
		if p := cfg.programNumber(kept.Program); p == nil || !p.explains(s, kept, total) {
			v.problem("%v: sus razones no dan lo que ganó", what)
		}
	}
	return nil
}

// explains reports whether the reasons that a share keeps give what the purchase earned, if the rules
// of the program counted a total. What a budget had left nobody knows: of rules with one only that
// they ran.
func (p *program) explains(s *sale, kept *saleShare, total decimal) bool {
	w := &kept.Reasons
	if !w.fit(p) {
		return false
	}
	f := facts{total: total, items: s.Items, excluded: p.ExcludeSKUs, labels: s.Labels, counts: unusedRules{}}
	if w.Tier > 0 {
		f.tier = &p.Tiers[w.Tier-1]
	}
	if kept.TierFrom != kept.TierTo && kept.TierFrom != f.tier.name() {
		return false
	}
	e, budgets := earning{unmet: make([]conditionSet, len(p.Rules))}, false
	for i := range p.Rules {
		r := &p.Rules[i]
		if i < len(w.Rules) {
			e.unmet[i] = w.Rules[i].Conditions
		}
		budgets = budgets || e.unmet[i] == 0 && r.isForPurchases() && r.Budget != nil
		ran := slices.ContainsFunc(kept.Rules, func(x ruleShare) bool { return x.RuleID == p.ruleID(r) })
		if ran && (e.unmet[i] != 0 || !r.isForPurchases()) {
			return false
		}
	}
	if budgets {
		return true
	}
	parts, _ := p.parts(f, e.unmet)
	awards, given, ok := p.awards(f, parts, nil)
	var again []ruleShare
	for _, a := range awards {
		again = append(again, ruleShare{RuleID: p.ruleID(a.rule), Name: a.rule.Name, Points: a.points})
	}
	points := slices.DeleteFunc(slices.Clone(kept.Rules), func(x ruleShare) bool { return x.Points == 0 })
	return ok && slices.Equal(again, points) && w.Steps == p.steps(f, &e, parts, given)
}
