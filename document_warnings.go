package main

import (
	"slices"
	"strings"
	"time"

	"sello/internal/tz"
)

// Warnings are about a document that is valid but may not do what was meant: some of its rules can
// never fire, or tills will have to send more fields than before.

// warnings lists the warnings about a configuration that is applied at now.
func warnings(tx Tx, old, next *config, now instant) (list []problem, err error) {
	if len(old.Programs) == 1 && len(next.Programs) > 1 {
		list = append(list, problem{"", sentenceOf("con más de un programa, add y deduct necesitan loyaltyProgramId: las cajas que no lo envíen recibirán 400 program_required")})
	}
	zone, err := tz.Load(next.Organization.Settings.Timezone)
	if err != nil {
		return nil, err
	}
	for _, p := range next.Programs {
		ck := ruleChecker{tx, next, p, now, zone, true}
		if !p.Default && p.Join != joinAll {
			if ck.peopled, err = hasMembers(tx, next.Number, p.Number); err != nil {
				return nil, err
			}
		}
		for i := range p.Rules {
			found, err := ck.warnings(&p.Rules[i])
			if err != nil {
				return nil, err
			}
			for _, w := range found {
				list = append(list, problem{"programs[" + p.Key + "].rules[" + p.Rules[i].Key + "]", w})
			}
		}
		excluded := p.ExcludeSKUs
		if p.Payment != nil {
			excluded = slices.Concat(excluded, p.Payment.ExcludeSKUs)
		}
		if at := slices.IndexFunc(excluded, negated); at >= 0 {
			list = append(list, problem{"programs[" + p.Key + "]", noNegation(excluded[at])})
		}
	}
	if c := next.cards(); c.Join && c.PrivacyURL == nil {
		list = append(list, problem{"organization.settings.cards", sentenceOf("con join y sin privacyUrl, quien se da de alta no ve ningún aviso de privacidad")})
	}
	for _, s := range next.Segments {
		for _, r := range s.Rule.comparisons("") {
			if r.Field == "expiringWithin" && !slices.ContainsFunc(next.Programs, (*program).expires) {
				list = append(list, problem{"segments[" + s.Key + "]", sentenceOf("con expiringWithin no estará casi nadie: en ningún programa vencen los puntos, salvo los que se dan con expiresAt")})
				break
			}
		}
	}
	for _, r := range next.Rewards {
		if r.AutoIssue && r.Fulfilment != fulfilVoucher {
			list = append(list, problem{"rewards[" + r.Key + "]", sentenceOf("con fulfilment: %s no se canjea sola: autoIssue vale con %s", r.Fulfilment, fulfilVoucher)})
		}
	}
	return list, nil
}

// expires reports whether points of the program expire or lapse by themselves.
func (p *program) expires() bool {
	return p.Expiry != nil || p.inactiveMonths() > 0 || slices.ContainsFunc(p.Rules, func(r rule) bool { return r.ExpiresInDays > 0 })
}

// hasMembers reports whether any customer was enrolled in a program. It reads a record of
// each day of the program's statistics at most.
func hasMembers(tx Tx, org, program uint32) (bool, error) {
	for e, err := range scan(tx, orgKey('y', org).u32(program), false) {
		if err != nil {
			return false, err
		}
		counted, err := decodeEntry[tally](e)
		if err != nil || counted.NewCustomers > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// A ruleChecker finds rules of a program that can never fire from now on.
type ruleChecker struct {
	tx      Tx
	cfg     *config
	program *program
	now     instant
	zone    *time.Location
	peopled bool // there may be customers who earn in the program
}

func (ck *ruleChecker) warnings(r *rule) (list []sentence, err error) {
	if reason := ck.neverFires(r); reason.format != "" {
		list = append(list, sentenceOf("nunca dará puntos: %s", reason))
	} else if r.FirstPurchase && ck.program.Returns == returnsKeep { // a purchase that was undone is none (contract §19)
		list = append(list, sentenceOf("con returns: Keep, quien devuelve su primera compra y compra otra vez vuelve a recibir los puntos"))
	}
	if (r.MaxPerCustomer > 0 || r.Every > 0) && ck.program.Returns == returnsKeep {
		list = append(list, sentenceOf("con returns: Keep, quien devuelve una compra entera y compra otra vez vuelve a recibir lo que da"))
	}
	if spent, err := ck.budgetSpent(r); err != nil {
		return nil, err
	} else if spent.format != "" {
		list = append(list, spent)
	}
	if r.Every > 0 && r.MaxPerCustomer == 1 {
		list = append(list, sentenceOf("con every y maxPerCustomer: 1 da una sola vez a cada cliente, en su compra %d", r.Every))
	}
	for _, patterns := range [][]string{r.SKUs, r.ExcludeSKUs} {
		if at := slices.IndexFunc(patterns, negated); at >= 0 {
			list = append(list, noNegation(patterns[at]))
		}
	}
	return list, nil
}

// noNegation is about a pattern that begins with !.
func noNegation(pattern string) sentence {
	return sentenceOf("%q no excluye artículos: solo vale para los que empiezan así, con !; para excluir está excludeSkus", pattern)
}

// budgetSpent says that a rule has given its budget; nothing if it has not.
func (ck *ruleChecker) budgetSpent(r *rule) (sentence, error) {
	if r.Budget == nil {
		return sentence{}, nil
	}
	used, err := budgetUsed(ck.tx, ck.cfg.Number, ck.program.Number, r.Key)
	if err != nil || used < *r.Budget {
		return sentence{}, err
	}
	return sentenceOf("ya dio los %s puntos de su presupuesto: no da más, salvo lo que retire una devolución", *r.Budget), nil
}

// neverFires says why a rule can never fire; nothing if it can.
func (ck *ruleChecker) neverFires(r *rule) sentence {
	until, ends := parseMoment(r.Until, ck.zone, true)
	inactive := func(key string) bool { return !ck.cfg.segmentKey(key).IsActive }
	switch {
	case !ck.peopled:
		return sentenceOf("ningún cliente gana en este programa, que no es default ni tiene join: All")
	case r.On == onSignup && !ck.program.Default && ck.program.Join != joinAll:
		return sentenceOf("nadie se da de alta en este programa, que no es default ni tiene join: All")
	case ends && until < ck.now:
		return sentenceOf("until ya pasó")
	case len(r.Segments) > 0 && !slices.ContainsFunc(r.Segments, func(k string) bool { return !inactive(k) }):
		return sentenceOf("sus segmentos están inactivos")
	case len(r.SKUs) > 0 && !slices.ContainsFunc(r.SKUs, canMatch):
		return sentenceOf("sus skus están en blanco o tienen caracteres de control")
	case !ck.hasTime(r):
		return sentenceOf("entre from y until no caen sus days y hours")
	case r.FirstPurchase && ck.program.TierBasis.Metric != metricPoints && len(r.Tiers) > 0 && !slices.Contains(r.Tiers, ck.program.Tiers[0].Name):
		return sentenceOf("antes de la primera compra nadie está en sus niveles")
	case r.Multiplier != nil:
		return ck.neverMultiplies(r)
	case r.Reward != "" && !ck.isActiveReward(r.Reward):
		return sentenceOf("su recompensa está inactiva")
	case r.On == onTier && (len(ck.program.Tiers) < 2 || slices.Equal(r.Tiers, []string{ck.program.Tiers[0].Name})):
		return sentenceOf("nadie sube a esos niveles")
	}
	return sentence{}
}

func (ck *ruleChecker) isActiveReward(key string) bool {
	r := ck.cfg.rewardKey(key)
	return r != nil && r.Status == statusActive
}

// canMatch reports whether a pattern can match a sku, which has a character, and no control
// characters.
func canMatch(pattern string) bool {
	return trimBlanks(pattern) != "" && !strings.ContainsFunc(pattern, forbidden)
}

// negated reports whether a pattern begins as if it were to leave skus out. Nothing does: the
// sign is a character like others.
func negated(pattern string) bool { return strings.HasPrefix(trimBlanks(pattern), "!") }

// hasTime reports whether a rule's days and hours occur between its From, or now, and its
// Until. Everything occurs in a span of more than a week.
func (ck *ruleChecker) hasTime(r *rule) bool {
	until, ends := parseMoment(r.Until, ck.zone, true)
	if !ends || len(r.Days) == 0 && r.Hours == nil {
		return true
	}
	from, begins := parseMoment(r.From, ck.zone, false)
	if from = max(from, ck.now); !begins {
		from = ck.now
	}
	if until-from > 8*millisPerDay {
		return true
	}
	for at := from; at <= until; at = at.add(time.Minute) {
		local := at.time().In(ck.zone)
		if (len(r.Days) == 0 || r.isOnDays(local)) && (r.Hours == nil || r.Hours.contains(local.Format("15:04"))) {
			return true
		}
	}
	return false
}

// neverMultiplies says why a multiplier can never change anything: it multiplies what
// `per` rules give at the same time to the same customer.
func (ck *ruleChecker) neverMultiplies(m *rule) sentence {
	if *m.Multiplier == decimalOf(1) {
		return sentenceOf("multiplica por 1")
	}
	found := false
	for i := range ck.program.Rules {
		r := &ck.program.Rules[i]
		if r.Per == nil {
			continue
		}
		if found = true; ck.together(m, r) {
			return sentence{}
		}
	}
	if !found {
		return sentenceOf("multiplica lo que dan las reglas per, y no hay ninguna")
	}
	return sentenceOf("multiplica lo que dan las reglas per, y ninguna vale a la vez")
}

// together reports whether two rules may hold for the same sale.
func (ck *ruleChecker) together(a, b *rule) bool {
	from := func(r *rule) instant { at, _ := parseMoment(r.From, ck.zone, false); return at }
	until := func(r *rule) instant {
		if at, ok := parseMoment(r.Until, ck.zone, true); ok {
			return at
		}
		return never
	}
	share := func(x, y []string) bool { return len(x) == 0 || len(y) == 0 || overlap(x, y) }
	starred := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") })
	}
	return share(a.datesOfDays(), b.datesOfDays()) && share(a.Tiers, b.Tiers) && until(b) >= ck.now &&
		max(from(a), from(b)) <= min(until(a), until(b)) &&
		(starred(a.SKUs) || starred(b.SKUs) || len(a.SKUs) == 0 || len(b.SKUs) == 0 || overlapSKUs(a.SKUs, b.SKUs))
}

func overlapSKUs(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return sameSKU(x, y) })
	})
}
