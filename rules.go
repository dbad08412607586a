package main

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// facts is everything that earning rules look at (contract §9).
type facts struct {
	total    decimal
	items    []item
	at       time.Time       // in the organization's time zone
	tier     *tier           // before the sale
	segments func() []string // keys of the customer's segments, before the sale
	first    bool            // the customer's first purchase
	usedOn   func(rule string) int
}

// An award is what one rule gave.
type award struct {
	rule   *rule
	points decimal
}

// An earning is what a purchase gives.
type earning struct {
	awards []award   // in the order of the rules; rules that give nothing are left out
	lines  []decimal // the same points by item, to the ten-thousandth; nil without items
}

// total adds up the awards.
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
	parts := make([]fraction, len(p.Rules))
	perLine := make([]fraction, len(f.items)+1)  // by the per rules; the last belongs to no item
	restLine := make([]fraction, len(f.items)+1) // by the other rules
	p.earnPer(f, parts, perLine)
	p.earnRest(f, parts, perLine, restLine)
	awards, given, ok := p.awards(parts)
	if !ok {
		return earning{}, false
	}
	for i := range restLine {
		restLine[i] = restLine[i].plus(perLine[i])
	}
	return earning{awards, shareOut(given, restLine, f.items)}, true
}

// earnPer adds what the `per` rules give to the parts by rule and to perLine.
func (p *program) earnPer(f facts, parts, perLine []fraction) {
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Per == nil || !r.holds(&f) {
			continue
		}
		rate := r.Per.Points.fraction().quo(r.Per.Amount.fraction())
		if f.tier != nil && f.tier.Multiplier != nil {
			rate = rate.mul(f.tier.Multiplier.fraction())
		}
		for line, amount := range r.lineAmounts(f) {
			points := amount.mul(rate)
			perLine[line] = perLine[line].plus(points)
			parts[i] = parts[i].plus(points)
		}
	}
}

// earnRest adds what the other rules give. Multiplier rules change perLine.
func (p *program) earnRest(f facts, parts, perLine, restLine []fraction) {
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Per != nil || !r.holds(&f) {
			continue
		}
		switch {
		case r.Multiplier != nil:
			for line, points := range perLine {
				if len(r.SKUs) > 0 && (line == len(f.items) || !r.matches(f.items[line].SKU)) {
					continue
				}
				perLine[line] = points.mul(r.Multiplier.fraction())
				parts[i] = parts[i].plus(perLine[line]).minus(points)
			}
		case r.PerItem != nil:
			for line, it := range f.items {
				if r.matches(it.SKU) {
					points := it.Quantity.fraction().mul(r.PerItem.fraction())
					parts[i] = parts[i].plus(points)
					restLine[line] = restLine[line].plus(points)
				}
			}
		case r.Points != nil:
			parts[i] = r.Points.fraction()
			restLine[len(f.items)] = restLine[len(f.items)].plus(parts[i])
		}
	}
}

// awards rounds the sum of the rules' parts, which is given, and splits it among
// the rules. ok is false if the sum is beyond the range of points.
func (p *program) awards(parts []fraction) (list []award, given decimal, ok bool) {
	var sum fraction
	for i, part := range parts {
		sum = sum.plus(part)
		total, ok := sum.round(p.PointsDecimals, p.Rounding)
		if !ok {
			return nil, 0, false
		}
		if points := total - given; points != 0 {
			list = append(list, award{&p.Rules[i], points})
			given = total
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

// lineAmounts is the amount that a `per` rule counts for each item. With skus only
// items that match have an amount: what they cost, or the part of the sale's total
// that was paid for them where all items cost more than that (contract §19). Without,
// the sale's total is shared out by the items' amounts; if these are zero it is on the
// last line, which belongs to no item.
func (r *rule) lineAmounts(f facts) []fraction {
	amounts := make([]fraction, len(f.items)+1)
	total := f.total.fraction()
	var sum fraction // of all items
	for i, it := range f.items {
		amount := it.amount()
		sum = sum.plus(amount)
		if r.matches(it.SKU) {
			amounts[i] = amount
		}
	}
	if len(r.SKUs) > 0 && sum.minus(total).sign() <= 0 {
		return amounts
	}
	if sum.sign() == 0 {
		amounts[len(f.items)] = total
		return amounts
	}
	scale := total.quo(sum)
	for i := range amounts {
		amounts[i] = amounts[i].mul(scale)
	}
	return amounts
}

// A condition is one that a purchase rule can have.
type condition int

// They are in the order in which they are tested: those that read the store come last.
const (
	conditionOn condition = iota
	conditionAmount
	conditionSKUs
	conditionTiers
	conditionSegments
	conditionDays
	conditionHours
	conditionDates
	conditionFirst
	conditionDaily
	conditions // how many there are
)

// meets reports whether a purchase meets a condition of a rule; one that the rule has not
// is met.
func (r *rule) meets(c condition, f *facts) bool {
	switch c {
	case conditionOn:
		return r.On != onSignup && r.On != onBirthday
	case conditionAmount:
		return r.MinAmount == nil || f.total >= *r.MinAmount
	case conditionSKUs:
		return len(r.SKUs) == 0 || slices.ContainsFunc(f.items, func(it item) bool { return r.matches(it.SKU) })
	case conditionTiers:
		return len(r.Tiers) == 0 || slices.Contains(r.Tiers, f.tier.name())
	case conditionSegments:
		return len(r.Segments) == 0 || overlap(r.Segments, f.segments())
	case conditionDays:
		return len(r.Days) == 0 || slices.Contains(r.Days, f.at.Weekday().String())
	case conditionHours:
		return r.Hours == nil || r.Hours.contains(f.at.Format("15:04"))
	case conditionDates:
		return r.inForce(f.at)
	case conditionFirst:
		return !r.FirstPurchase || f.first
	case conditionDaily:
		return r.MaxPerCustomerPerDay == 0 || f.usedOn(r.Key) < r.MaxPerCustomerPerDay
	}
	return false
}

// holds reports whether all conditions of a purchase rule are met.
func (r *rule) holds(f *facts) bool {
	for c := range conditions {
		if !r.meets(c, f) {
			return false
		}
	}
	return true
}

// unmet lists the conditions that a purchase does not meet.
func (r *rule) unmet(f *facts) (list []condition) {
	for c := range conditions {
		if !r.meets(c, f) {
			list = append(list, c)
		}
	}
	return list
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

const (
	onPurchase = "Purchase"
	onSignup   = "Signup"
	onBirthday = "Birthday"
)

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

func (h *hourRange) contains(clock string) bool {
	if h.From <= h.To {
		return h.From <= clock && clock < h.To
	}
	return h.From <= clock || clock < h.To
}

// matches reports whether an item counts for the rule. Every item does if the rule
// has no skus.
func (r *rule) matches(sku string) bool {
	return len(r.SKUs) == 0 || slices.ContainsFunc(r.SKUs, func(pattern string) bool { return matchSKU(pattern, sku) })
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

// givesAtSignup reports whether a rule gives points to those who enrol now.
func (ru *rulesTxn) givesAtSignup(r rule) bool {
	return r.On == onSignup && !ru.t.noWelcome && r.Points != nil && r.inForce(ru.t.now.time().In(ru.t.cfg.zone))
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
		if !ru.givesAtSignup(*r) {
			continue
		}
		err := ru.t.points.credit(a, &movement{
			Category: categoryBonus, Amount: *r.Points, Comment: r.Name,
			AvailFrom: ru.inDays(ru.t.now, r.PendingDays), Expires: ru.inDays(ru.t.now, r.ExpiresInDays),
		})
		if err != nil {
			return err
		}
	}
	return ru.t.points.saveAccount(a)
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
