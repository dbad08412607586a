package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What a purchase earns: from the facts that rules look at to the points that each rule gives.

// facts is everything that earning rules look at (contract §9).
type facts struct {
	total    decimal
	items    []item
	excluded []string        // skus that no rule of the program counts
	at       time.Time       // in the organization's time zone
	tier     *tier           // before the sale
	segments func() []string // keys of the customer's segments, before the sale
	first    bool            // the customer's first purchase
	labels   saleLabels
	free     bool // points paid all of it, and rules count what is paid
	counts   ruleCounter
}

// A ruleCounter knows how often the customer used a rule, by its key, and the rest of its budget.
type ruleCounter interface {
	onDay(r *rule) int
	inLife(rule string) ruleLife
	budgetLeft(r *rule) decimal
}

// An award is what one rule gave.
type award struct {
	rule   *rule
	points decimal // 0 if it gives a reward
	missed bool    // the reward, which could not be given
}

// An earning is what a purchase gives.
type earning struct {
	awards []award   // in the order of the rules; rules that give neither points nor a reward are left out
	turns  []*rule   // rules with every that count this purchase
	lines  []decimal // the same points by item, to the ten-thousandth; nil without items

	unmet []conditionSet // in the order of the program's rules; empty for rules that are not for purchases
	steps earningSteps
}

// earningSteps are parts of what a purchase gives: the rest is what the rules say.
type earningSteps struct {
	Tier     decimal // by the multiplier of the customer's tier, before rounding; to the ten-thousandth
	Rounding decimal // to the program's decimals, and down to what a budget had left
}

func (e earning) total() (sum decimal) {
	for _, w := range e.awards {
		sum += w.points
	}
	return sum
}

// earn works out what a purchase gives. ok is false if the sum is beyond the
// range of points.
//
// `per` rules give in proportion to the amount (to what was paid for the matching
// items if they name skus), times the tier's multiplier. Multiplier rules then
// multiply what the `per` rules gave (for the matching items, if they name
// skus), one after the other. The sum of all is rounded once; each rule's
// part is the difference it makes to the rounded sum so far, so that the
// parts add up to it.
//
// Points that belong to no item, such as a rule's flat points, are shared out among
// the items by their amounts: a return by item takes back the item's share.
func (p *program) earn(f facts) (_ earning, ok bool) {
	e := earning{unmet: make([]conditionSet, len(p.Rules))}
	var gifts []*rule
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.isForPurchases() {
			continue
		}
		e.unmet[i] = r.unmet(&f)
		if r.Every > 0 && e.unmet[i].without(conditionEvery) == 0 {
			e.turns = append(e.turns, r)
		}
		if e.unmet[i] == 0 && r.Reward != "" {
			gifts = append(gifts, r)
		}
	}
	parts, weights := p.parts(f, e.unmet)
	var given decimal
	if e.awards, given, ok = p.awards(f, parts, gifts); !ok {
		return earning{}, false
	}
	e.steps = p.steps(f, &e, parts, given)
	e.lines = shareOut(given, weights, f.items)
	return e, true
}

// parts is what each rule gives if all its conditions are met; weights, by item, the last of no item.
func (p *program) parts(f facts, unmet []conditionSet) (parts, weights []fraction) {
	parts = make([]fraction, len(p.Rules))
	perLine := make([]fraction, len(f.items)+1) // by the per rules; the last belongs to no item
	weights = make([]fraction, len(f.items)+1)  // by the other rules
	added := make([]fraction, len(f.items)+1)
	for _, multiply := range []bool{false, true} { // what the per rules give, first
		for i := range p.Rules {
			if r := &p.Rules[i]; (r.Per == nil) == multiply && r.Reward == "" && r.isForPurchases() && unmet[i] == 0 {
				parts[i] = r.give(f, added, perLine, weights)
			}
		}
	}
	for i := range weights {
		weights[i] = weights[i].plus(perLine[i])
	}
	return parts, weights
}

// steps are the steps of an earning, which gave so much.
func (p *program) steps(f facts, e *earning, parts []fraction, given decimal) (s earningSteps) {
	exact := sumOf(parts)
	s.Rounding = given - exact
	if f.tier != nil && f.tier.Multiplier != nil && exact != 0 {
		f.tier = nil
		plain, _ := p.parts(f, e.unmet)
		s.Tier = exact - sumOf(plain)
	}
	return s
}

// sumOf adds up parts, to the ten-thousandth.
func sumOf(parts []fraction) decimal {
	var sum fraction
	for _, part := range parts {
		sum = sum.plus(part)
	}
	total, _ := sum.round(decimalPlaces, roundHalfUp) // in range: awards has seen to it
	return total
}

// give adds what a rule gives to the lines, and returns it. Multiplier rules change perLine.
// added is room for it.
func (r *rule) give(f facts, added, perLine, restLine []fraction) (part fraction) {
	to := restLine
	if r.Per != nil || r.Multiplier != nil {
		to = perLine
	}
	clear(added)
	r.lineParts(f, perLine, added)
	for _, points := range added {
		part = part.plus(points)
	}
	if most, limited := r.most(f); limited && part.minus(most.fraction()).sign() > 0 {
		scale := most.fraction().quo(part)
		for i := range added {
			added[i] = added[i].mul(scale)
		}
		part = most.fraction()
	}
	for i, points := range added {
		to[i] = to[i].plus(points)
	}
	return part
}

// lineParts sets what a rule gives for each item, were there no limit to its points; the last is
// what belongs to no item. perLine is what the `per` rules gave.
func (r *rule) lineParts(f facts, perLine, added []fraction) {
	last := len(f.items)
	switch {
	case r.Per != nil:
		rate := r.Per.Points.fraction().quo(r.Per.Amount.fraction())
		if f.tier != nil && f.tier.Multiplier != nil {
			rate = rate.mul(f.tier.Multiplier.fraction())
		}
		r.lineAmounts(f, added)
		for i, amount := range added {
			added[i] = amount.mul(rate)
		}
	case r.Multiplier != nil:
		more := (*r.Multiplier - decimalOf(1)).fraction()
		for i, points := range perLine {
			if i < last && r.matches(&f, i) || i == last && len(r.SKUs) == 0 {
				added[i] = points.mul(more)
			}
		}
	case r.PerItem != nil:
		for i, it := range f.items {
			if r.matches(&f, i) {
				added[i] = it.Quantity.fraction().mul(r.PerItem.fraction())
			}
		}
	case r.Points != nil:
		added[last] = r.Points.fraction()
		r.spread(f, added)
	}
}

// spread shares flat points out among the items that count, by their amounts, if others do not: a
// return of these takes nothing back.
func (r *rule) spread(f facts, added []fraction) {
	counts := 0
	for i := range f.items {
		if r.matches(&f, i) {
			counts++
		}
	}
	if counts == len(f.items) {
		return
	}
	amounts := make([]fraction, len(added))
	r.lineAmounts(f, amounts)
	amounts[len(f.items)] = fraction{}
	var sum fraction
	for _, amount := range amounts {
		sum = sum.plus(amount)
	}
	if sum.sign() == 0 {
		return
	}
	scale := r.Points.fraction().quo(sum)
	for i, amount := range amounts {
		added[i] = amount.mul(scale)
	}
}

// most is the most points that a rule may give in a sale; limited is false if there is no such
// number.
func (r *rule) most(f facts) (points decimal, limited bool) {
	if r.MaxPoints == nil && r.Budget == nil {
		return 0, false
	}
	points = maxDecimal
	if r.MaxPoints != nil {
		points = *r.MaxPoints
	}
	if r.Budget != nil {
		points = min(points, f.counts.budgetLeft(r))
	}
	return points, true
}

// awards rounds the sum of the rules' parts, which is given, and splits it among
// the rules. A rule with a limit gets no more by rounding. gifts are the rules that give a
// reward. ok is false if the sum is beyond the range of points.
func (p *program) awards(f facts, parts []fraction, gifts []*rule) (list []award, given decimal, ok bool) {
	var sum fraction
	for i, part := range parts {
		if len(gifts) > 0 && slices.Contains(gifts, &p.Rules[i]) {
			list = append(list, award{rule: &p.Rules[i]})
		}
		if sum = sum.plus(part); part.sign() == 0 {
			continue
		}
		total, ok := sum.round(p.PointsDecimals, p.Rounding)
		if !ok {
			return nil, 0, false
		}
		points := total - given
		if most, limited := p.Rules[i].most(f); limited {
			points = min(points, most)
		}
		if points != 0 {
			list = append(list, award{rule: &p.Rules[i], points: points})
			given += points
		}
	}
	return list, given, true
}

// shareOut splits given points among the items by weight. The last weight belongs
// to no item: the items share it by their amounts, or evenly if they cost nothing.
// The shares add up to what is given.
func shareOut(given decimal, weights []fraction, items []item) []decimal {
	if len(items) == 0 {
		return nil
	}
	if rest := weights[len(items)]; rest.sign() != 0 {
		amounts := make([]fraction, len(items))
		var total fraction
		for i, it := range items {
			amounts[i] = it.amount()
			total = total.plus(amounts[i])
		}
		if total.sign() == 0 {
			for i := range amounts {
				amounts[i] = wholeFraction(1)
			}
			total = wholeFraction(len(items))
		}
		for i, amount := range amounts {
			weights[i] = weights[i].plus(rest.mul(amount.quo(total)))
		}
	}
	var sum fraction
	for _, w := range weights[:len(items)] {
		sum = sum.plus(w)
	}
	shares := make([]decimal, len(items))
	if sum.sign() == 0 {
		return shares
	}
	scale := given.fraction().quo(sum)
	var upTo fraction
	before := decimal(0)
	for i := range items {
		upTo = upTo.plus(weights[i])
		end, _ := upTo.mul(scale).round(decimalPlaces, roundFloor)
		shares[i], before = end-before, end
	}
	return shares
}

// amount is what the item costs in all.
func (it item) amount() fraction { return it.Price.fraction().mul(it.Quantity.fraction()) }

// lineAmounts sets the amount that a `per` rule counts for each item. With skus only
// items that match have an amount: what they cost, or the part of the sale's total
// that was paid for them where all items cost more than that (contract §19). Without,
// what is left of the sale's total is shared out by the amounts of the items that are not
// excluded; if these are zero it is on the last line, which belongs to no item.
func (r *rule) lineAmounts(f facts, amounts []fraction) {
	var sum, matching fraction // of all items, and of the matching items
	for i, it := range f.items {
		amount := it.amount()
		sum = sum.plus(amount)
		if r.matches(&f, i) {
			amounts[i] = amount
			matching = matching.plus(amount)
		}
	}
	left := matching
	switch total := f.total.fraction(); {
	case len(r.SKUs) == 0:
		left = r.amountLeft(&f)
	case sum.minus(total).sign() > 0:
		left = matching.mul(total.quo(sum))
	}
	if matching.sign() == 0 {
		amounts[len(f.items)] = left
		return
	}
	scale := left.quo(matching)
	for i := range f.items {
		amounts[i] = amounts[i].mul(scale)
	}
}

// amountLeft is the sale's total less what was paid for items that are excluded. It is not below
// 0: all items together were paid with the total at most.
func (r *rule) amountLeft(f *facts) fraction {
	total := f.total.fraction()
	if len(r.ExcludeSKUs)+len(f.excluded) == 0 {
		return total
	}
	var sum, out fraction
	for _, it := range f.items {
		sum = sum.plus(it.amount())
		if r.excludes(f, it.SKU) {
			out = out.plus(it.amount())
		}
	}
	if sum.minus(total).sign() > 0 {
		out = out.mul(total.quo(sum))
	}
	return total.minus(out)
}

// excludes reports whether items with a sku neither count nor are counted.
func (r *rule) excludes(f *facts, sku string) bool {
	return matchesAny(r.ExcludeSKUs, sku) || matchesAny(f.excluded, sku)
}

// leavesNothing reports whether all items are excluded, and nothing else was paid.
func (r *rule) leavesNothing(f *facts) bool {
	return len(f.items) > 0 && !slices.ContainsFunc(f.items, func(it item) bool { return !r.excludes(f, it.SKU) }) && r.amountLeft(f).sign() <= 0
}

// matching adds up the quantities of the items that count for the rule.
func (r *rule) matching(f *facts) (sum fraction) {
	for i, it := range f.items {
		if r.matches(f, i) {
			sum = sum.plus(it.Quantity.fraction())
		}
	}
	return sum
}

// A condition is one that a purchase rule can have.
type condition int

// The file depends on the order: another one comes last. The sets of the first seven take a byte
// in the file, with the next seven two.
const (
	conditionSKUs condition = iota
	conditionAmount
	conditionTiers
	conditionSegments
	conditionDays
	conditionHours
	conditionFirst

	conditionDaily
	conditionDates
	conditionLabels
	conditionEvery // which counts the purchases that meet all others
	conditionLife
	conditionBudget
	conditionQuantity

	conditionExcluded
	conditionPaid // of all rules: points did not pay all of the purchase
	conditions    // how many there are
)

// A conditionSet is a set of conditions.
type conditionSet uint32

func (s conditionSet) has(c condition) bool             { return s>>c&1 != 0 }
func (s conditionSet) with(c condition) conditionSet    { return s | 1<<c }
func (s conditionSet) without(c condition) conditionSet { return s &^ (1 << c) }

// isForPurchases reports whether purchases run the rule; else another occasion does.
func (r *rule) isForPurchases() bool { return r.On == onPurchase || r.On == "" }

// has reports whether the rule has a condition. A program's own excluded skus are one of each rule.
func (r *rule) has(c condition) bool {
	switch c {
	case conditionSKUs:
		return len(r.SKUs) > 0
	case conditionAmount:
		return r.MinAmount != nil
	case conditionTiers:
		return len(r.Tiers) > 0
	case conditionSegments:
		return len(r.Segments) > 0
	case conditionDays:
		return len(r.Days) > 0
	case conditionHours:
		return r.Hours != nil
	case conditionFirst:
		return r.FirstPurchase
	case conditionDaily:
		return r.MaxPerCustomerPerDay > 0
	case conditionDates:
		return r.From != "" || r.Until != ""
	case conditionLabels:
		return len(r.Labels) > 0
	case conditionEvery:
		return r.Every > 0
	case conditionLife:
		return r.MaxPerCustomer > 0
	case conditionBudget:
		return r.Budget != nil
	case conditionQuantity:
		return r.MinQuantity != nil
	}
	return c == conditionExcluded || c == conditionPaid
}

func (r *rule) meets(c condition, f *facts) bool {
	switch c {
	case conditionSKUs:
		return slices.ContainsFunc(f.items, func(it item) bool { return matchesAny(r.SKUs, it.SKU) && !r.excludes(f, it.SKU) })
	case conditionAmount:
		return r.amountLeft(f).minus(r.MinAmount.fraction()).sign() >= 0
	case conditionTiers:
		return slices.Contains(r.Tiers, f.tier.name())
	case conditionSegments:
		return overlap(r.Segments, f.segments())
	case conditionDays:
		return r.isOnDays(f.at)
	case conditionHours:
		return r.Hours.contains(f.at.Format("15:04"))
	case conditionFirst:
		return f.first
	case conditionDaily:
		return f.counts.onDay(r) < r.MaxPerCustomerPerDay
	case conditionDates:
		return r.inForce(f.at)
	case conditionLabels:
		return f.labels.meet(r.Labels)
	case conditionEvery:
		return f.counts.inLife(r.Key).isTurn(r.Every)
	case conditionLife:
		return f.counts.inLife(r.Key).Uses < uint64(r.MaxPerCustomer)
	case conditionBudget:
		return f.counts.budgetLeft(r) > 0
	case conditionQuantity:
		return r.matching(f).minus(r.MinQuantity.fraction()).sign() >= 0
	case conditionPaid:
		return !f.free
	case conditionExcluded:
		return len(r.ExcludeSKUs)+len(f.excluded) == 0 || !r.leavesNothing(f)
	}
	return false
}

func (r *rule) unmet(f *facts) (s conditionSet) {
	for c := range conditions {
		if r.has(c) && !r.meets(c, f) {
			s = s.with(c)
		}
	}
	return s
}

// A ruleLife is how often a customer used a rule in all, with purchases that are not wholly
// returned.
type ruleLife struct {
	Uses  uint64 // with maxPerCustomer: it gave points
	Turns uint64 // with every: purchases that met the other conditions
	Given uint64 // with every: of how many of these purchases it has given the last
}

// isTurn reports whether the customer's next purchase that meets the other conditions is the 10th,
// 20th … if every is 10, and has not been given for: others may have been returned since.
func (l ruleLife) isTurn(every int) bool {
	turn := l.Turns + 1
	return turn%uint64(every) == 0 && turn > l.Given
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// category is that of the movements with what the rule gives: Bonus for sign-ups and birthdays,
// and else Purchase, if the rule does not say.
func (r *rule) category() string {
	if r.On == onSignup || r.On == onBirthday {
		return cmp.Or(r.Category, categoryBonus)
	}
	return cmp.Or(r.Category, categoryPurchase)
}

// inForce reports whether at lies between From and Until. The document's check has
// made sure that both can be read.
func (r *rule) inForce(at time.Time) bool {
	return within(instantOf(at), r.From, r.Until, at.Location())
}

// within reports whether a moment lies in a span of dates as a document writes
// them; "" is open. A last date without a time counts as a whole day.
func within(at instant, from, until string, zone *time.Location) bool {
	if from != "" {
		if start, ok := parseMoment(from, zone, false); ok && at < start {
			return false
		}
	}
	if until == "" {
		return true
	}
	end, ok := parseMoment(until, zone, true)
	return !ok || at <= end
}

// matches reports whether an item of a sale counts for the rule. Every item that is not excluded
// does if the rule has no skus.
func (r *rule) matches(f *facts, i int) bool {
	sku := f.items[i].SKU
	return (len(r.SKUs) == 0 || matchesAny(r.SKUs, sku)) && !r.excludes(f, sku)
}

func matchesAny(patterns []string, sku string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchSKU(pattern, sku) })
}

// matchSKU reports whether a sku matches a pattern, in which `*` stands for any run of
// characters. Letter case and blanks around the pattern do not matter (contract §19); a sku
// is stored without such blanks. It takes time in proportion to the product of the lengths
// at most, and allocates nothing.
func matchSKU(pattern, sku string) bool {
	pattern = trimBlanks(pattern)
	after, from := "", "" // the pattern after the last star, and the sku where that began to be tried
	starred := false
	for sku != "" {
		p, size := utf8.DecodeRuneInString(pattern)
		s, length := utf8.DecodeRuneInString(sku)
		switch {
		case p == '*':
			pattern = pattern[1:]
			after, from, starred = pattern, sku, true
		case size > 0 && caseless(p) == caseless(s):
			pattern, sku = pattern[size:], sku[length:]
		case starred:
			_, length = utf8.DecodeRuneInString(from)
			from = from[length:]
			pattern, sku = after, from
		default:
			return false
		}
	}
	return strings.Trim(pattern, "*") == ""
}

// sameSKU reports whether two skus are the same, as matchSKU compares them.
func sameSKU(a, b string) bool { return strings.EqualFold(trimBlanks(a), trimBlanks(b)) }

// caseless is the least of the letters that differ from r in case alone: two letters have
// the same one exactly if strings.EqualFold takes them as equal.
func caseless(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// A rulesTxn is what rules give in a transaction, apart from sales.
type rulesTxn struct{ t *txn }

// openAccounts makes the account of a new customer in its own program, and in others
// that give points to everybody where sign-up rules give some.
func (ru *rulesTxn) openAccounts(c *customer) error {
	if err := ru.openAccount(c, ru.t.cfg.programNumber(c.Program)); err != nil {
		return err
	}
	for _, p := range ru.t.cfg.all {
		if p.Number == c.Program || !slices.ContainsFunc(p.Rules, ru.givesAtSignup) {
			continue
		}
		if err := ru.openAccount(c, p); err != nil {
			return err
		}
	}
	return nil
}

// givesAtSignup reports whether a rule gives something to customers who enrol now.
func (ru *rulesTxn) givesAtSignup(r rule) bool {
	return r.On == onSignup && !ru.t.noWelcome && r.inForce(ru.t.now.time().In(ru.t.cfg.zone))
}

// openAccount makes an account of a new customer, with what the sign-up rules of the
// program give.
func (ru *rulesTxn) openAccount(c *customer, p *program) error {
	a, err := ru.t.points.account(c, p)
	if err != nil {
		return err
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if !ru.givesAtSignup(*r) || r.Points == nil {
			continue
		}
		if err := ru.credit(a, r); err != nil {
			return err
		}
	}
	if err := ru.t.points.saveAccount(a); err != nil {
		return err
	}
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Reward != "" && ru.givesAtSignup(*r) && !ru.t.importing {
			if _, err := ru.t.giver.give(a, r, id{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// credit gives the points of a rule that is not for purchases.
func (ru *rulesTxn) credit(a *account, r *rule) error {
	return ru.t.points.credit(a, &movement{
		Category: r.category(), Amount: *r.Points, Comment: r.Name,
		AvailFrom: ru.inDays(ru.t.now, r.PendingDays), Expires: ru.inDays(ru.t.now, r.ExpiresInDays),
	})
}

// inDays is the same time of day, so many days after a moment by the organization's
// calendar. For no days it is 0, which stands for "at once" or "by the program's
// expiry".
func (ru *rulesTxn) inDays(from instant, days int) instant {
	if days == 0 {
		return 0
	}
	return instantOf(from.time().In(ru.t.cfg.zone).AddDate(0, 0, days))
}
