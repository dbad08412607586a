package main

import "slices"

// Why purchases earned what they did: the reasons that they keep are computed again, with the
// configuration that they were sold under.

// version is the configuration that a version is; nil if there is none that can be read, which
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

// reasons checks why a purchase earned what it did.
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
