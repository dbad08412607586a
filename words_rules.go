package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sello/internal/fold"
	"sello/internal/texts"
)

// Rules, segments and programs as sentences, and the reasons why a rule did or did not give
// something.

// A ruleWording writes such sentences in a language, with an organization's numbers and names.
type ruleWording struct {
	*format
	lang     texts.Language
	segments map[string]string // names by key
	rewards  map[string]string // the same
	programs map[string]string // the same
}

func (w *ruleWording) say(name string, args ...any) string { return tr(w.lang, name, args...) }

// wordingIn writes the rules of a configuration.
func wordingIn(cfg *config, f *format, lang texts.Language) *ruleWording {
	w := &ruleWording{f, lang, map[string]string{}, map[string]string{}, map[string]string{}}
	for _, p := range cfg.Programs {
		w.programs[p.Key] = p.Name
	}
	for _, r := range cfg.Rewards {
		w.rewards[r.Key] = r.Name
	}
	for _, s := range cfg.Segments {
		w.segments[s.Key] = s.Name
	}
	return w
}

// rule is a rule as a sentence: "Los martes, los puntos se duplican."
func (w *ruleWording) rule(r *rule) string {
	parts := w.conditions(r)
	parts = append(parts, w.effect(r))
	tail := w.limits(r)
	return capital(strings.Join(append([]string{strings.Join(parts, ", ")}, tail...), "; ")) + "."
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// conditions say when the rule holds. The items are told with the effect.
func (w *ruleWording) conditions(r *rule) (parts []string) {
	add := func(name string, args ...any) { parts = append(parts, w.say(name, args...)) }
	if len(r.Days) > 0 {
		add("rule.days", w.list(w.days(r.Days), "and"))
	}
	switch {
	case r.isOfNights():
		add("rule.nights", r.Hours.From, r.Hours.To)
	case r.Hours != nil:
		add("rule.hours", r.Hours.From, r.Hours.To)
	}
	switch {
	case r.From != "" && r.Until != "":
		add("rule.between", w.moment(r.From, false), w.moment(r.Until, true))
	case r.From != "":
		add("rule.from", w.moment(r.From, false))
	case r.Until != "":
		add("rule.until", w.moment(r.Until, true))
	}
	if len(r.Tiers) > 0 && r.On != onTier {
		add("rule.tiers", w.list(r.Tiers, "or"))
	}
	if len(r.Segments) > 0 {
		add("rule.segments", w.list(w.segmentNames(r.Segments), "or"))
	}
	if r.FirstPurchase {
		add("rule.first")
	}
	if r.MinAmount != nil {
		add("rule.amount", w.money(*r.MinAmount))
	}
	if r.MinQuantity != nil {
		add("rule.quantity", w.Number(*r.MinQuantity), w.list(r.SKUs, "or"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		add("rule.label", name, w.list(r.Labels[name], "or"))
	}
	if r.Every > 1 {
		add("rule.turn", w.Count(uint64(r.Every)))
	}
	return parts
}

// effect says what the rule gives.
func (w *ruleWording) effect(r *rule) string {
	items := w.list(r.SKUs, "or")
	with := func(name string, args ...any) string {
		if items != "" {
			return w.say(name+".items", append(args, items)...)
		}
		return w.say(name, args...)
	}
	switch {
	case r.On == onTier && len(r.Tiers) > 0:
		return w.say("rule.reward.Tiers", w.reward(r), w.list(r.Tiers, "or"))
	case r.Reward != "" && r.On != onPurchase && r.On != "":
		return w.say("rule.reward."+r.On, w.reward(r))
	case r.Reward != "":
		return with("rule.reward", w.reward(r))
	case r.Per != nil:
		return with("rule.per", w.points(r.Per.Points), w.money(r.Per.Amount))
	case r.PerItem != nil:
		return with("rule.perItem", w.points(*r.PerItem))
	case r.Multiplier != nil && *r.Multiplier == decimalOf(2):
		return with("rule.double")
	case r.Multiplier != nil && *r.Multiplier == decimalOf(3):
		return with("rule.triple")
	case r.Multiplier != nil:
		return with("rule.times", w.Number(*r.Multiplier))
	case r.Points != nil && (r.On == onSignup || r.On == onBirthday):
		return w.say("rule.points."+r.On, w.points(*r.Points))
	case r.Points != nil:
		return with("rule.points", w.points(*r.Points))
	}
	return ""
}

func (w *ruleWording) reward(r *rule) string {
	if name, ok := w.rewards[r.Reward]; ok {
		return name
	}
	return r.Reward
}

// limits say what the rule does not count, how often and how much it gives, and how its points live.
func (w *ruleWording) limits(r *rule) (parts []string) {
	if len(r.ExcludeSKUs) > 0 {
		parts = append(parts, w.say("rule.excluded", w.list(r.ExcludeSKUs, "or")))
	}
	if n := r.MaxPerCustomerPerDay; n > 0 {
		parts = append(parts, w.many("rule.daily", n))
	}
	if n := r.MaxPerCustomer; n > 0 {
		parts = append(parts, w.many("rule.customer", n))
	}
	if r.MaxPoints != nil {
		parts = append(parts, w.say("rule.most", w.points(*r.MaxPoints)))
	}
	if r.Budget != nil {
		parts = append(parts, w.say("rule.given", w.points(*r.Budget)))
	}
	if r.Category != "" {
		parts = append(parts, w.say("rule.noted", w.say("category."+r.Category)))
	}
	if r.PendingDays > 0 {
		parts = append(parts, w.say("rule.pending", w.many("span.days", r.PendingDays)))
	}
	if r.ExpiresInDays > 0 {
		parts = append(parts, w.say("rule.expires", w.many("span.days", r.ExpiresInDays)))
	}
	return parts
}

// money is an amount with its currency, without decimals that say nothing.
func (w *ruleWording) money(d decimal) string { return w.Number(d) + nbsp + w.currency }

func (w *ruleWording) points(d decimal) string { return counted(w.lang, "points", w.Number(d)) }

// many is a text with a number of things.
func (w *ruleWording) many(name string, n int, others ...any) string {
	return counted(w.lang, name, w.Count(uint64(n)), others...)
}

// list joins names: "a, b y c".
func (w *ruleWording) list(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := names[len(names)-1]
	join := w.say("list." + word)
	if w.lang.Code == "es" { // e before i, u before o
		switch first := strings.TrimPrefix(fold.Text(last), "h"); {
		case word == "and" && strings.HasPrefix(first, "i") && !strings.HasPrefix(first, "ie"):
			join = "e"
		case word == "or" && strings.HasPrefix(first, "o"):
			join = "u"
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + join + " " + last
}

var weekdays = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// days are the names of days, in the order of the week.
func (w *ruleWording) days(keys []string) (names []string) {
	for _, d := range weekdays {
		if slices.Contains(keys, d) {
			names = append(names, w.say("day."+d))
		}
	}
	return names
}

func (w *ruleWording) segmentNames(keys []string) (names []string) {
	for _, k := range keys {
		if name, ok := w.segments[k]; ok {
			k = name
		}
		names = append(names, k)
	}
	return names
}

// moment is a date of a document: the day alone, where it says no hour.
func (w *ruleWording) moment(text string, end bool) string {
	at, ok := parseMoment(text, w.zone, end)
	switch {
	case !ok:
		return text
	case len(text) == len("2006-01-02"):
		return w.Date(at)
	}
	return w.Moment(at)
}

// A reason is why a rule gave nothing.
type reason struct {
	code string // as the API has it (contract §22)
	text string // part of a sentence
}

// conditionCodes are the codes of conditions that are not met.
var conditionCodes = [conditions]string{
	conditionSKUs:     "ItemsNotMatched",
	conditionAmount:   "AmountTooLow",
	conditionTiers:    "TierNotMatched",
	conditionSegments: "SegmentNotMatched",
	conditionDays:     "DayNotMatched",
	conditionHours:    "HourNotMatched",
	conditionFirst:    "NotFirstPurchase",
	conditionDaily:    "DailyLimitReached",
	conditionDates:    "DateNotMatched",
	conditionLabels:   "LabelsNotMatched",
	conditionEvery:    "NotItsTurn",
	conditionLife:     "CustomerLimitReached",
	conditionBudget:   "BudgetSpent",
	conditionQuantity: "QuantityTooLow",
	conditionExcluded: "ItemsExcluded",
	conditionPaid:     "PaidWithPoints",
}

// Codes of other reasons. A reward that could not be given has the reward's own code.
const (
	reasonOccasion = "NotForPurchases"
	reasonImported = "NotByImport"
	reasonNoPoints = "NoPoints"
)

// reasons says why a rule gave a purchase nothing; none if it gave something.
func (w *ruleWording) reasons(r *ruleReasons) (list []reason) {
	switch {
	case r.applied():
		return nil
	case r.missed != "":
		return []reason{{r.missed, w.notGiven(r.missed)}}
	case !r.rule.isForPurchases():
		return []reason{{reasonOccasion, w.say("refusal.on." + r.rule.On)}}
	}
	for c := range conditions {
		// Which turn it would be is about purchases that meet the other conditions.
		if r.Conditions.has(c) && (c != conditionEvery || r.Conditions.without(c) == 0) {
			list = append(list, reason{conditionCodes[c], w.refusal(r, c)})
		}
	}
	switch {
	case len(list) > 0:
		return list
	case r.rule.Reward != "": // conditions are met, and nobody tried
		return []reason{{reasonImported, w.say("refusal.import")}}
	}
	return []reason{{reasonNoPoints, w.say("refusal.nothing")}}
}

// notGiven says why a reward could not be given.
func (w *ruleWording) notGiven(why string) string { return notGiven(w.lang, why) }

func notGiven(lang texts.Language, why string) string {
	name := "reason." + why
	if lang.Has(name + ".any") {
		name += ".any"
	}
	return tr(lang, name)
}

// refusal says why a rule does not run, by a condition that is not met.
func (w *ruleWording) refusal(why *ruleReasons, c condition) string {
	r := why.rule
	switch c {
	case conditionAmount:
		return w.say("refusal.amount", w.money(*r.MinAmount))
	case conditionSKUs:
		return w.say("refusal.skus", w.list(r.SKUs, "or"))
	case conditionExcluded:
		return w.say("refusal.excluded")
	case conditionPaid:
		return w.say("refusal.paid")
	case conditionQuantity:
		return w.say("refusal.quantity", w.Number(*r.MinQuantity), w.list(r.SKUs, "or"))
	case conditionLabels:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
			parts = append(parts, name+": "+w.list(r.Labels[name], "or"))
		}
		return w.say("refusal.label", w.list(parts, "and"))
	case conditionTiers:
		return w.say("refusal.tiers", w.list(r.Tiers, "or"), why.tier)
	case conditionSegments:
		return w.say("refusal.segments", w.list(w.segmentNames(r.Segments), "or"))
	case conditionDays:
		name, on := "refusal.days", r.dayOf(why.sold).date().Weekday()
		if on != why.sold.Weekday() {
			name = "refusal.nights"
		}
		return w.say(name, w.list(w.days(r.Days), "and"), w.say("day."+on.String()+".one"))
	case conditionHours:
		return w.say("refusal.hours", r.Hours.From, r.Hours.To, why.sold.Format("15:04"))
	case conditionDates:
		switch {
		case r.From != "" && r.Until != "":
			return w.say("refusal.between", w.moment(r.From, false), w.moment(r.Until, true))
		case r.From != "":
			return w.say("refusal.from", w.moment(r.From, false))
		}
		return w.say("refusal.until", w.moment(r.Until, true))
	case conditionFirst:
		return w.say("refusal.first")
	case conditionDaily:
		return w.say("refusal.daily", w.Count(uint64(r.MaxPerCustomerPerDay)))
	case conditionLife:
		return w.say("refusal.life", w.Count(uint64(r.MaxPerCustomer)))
	case conditionBudget:
		return w.say("refusal.budget", w.points(*r.Budget))
	}
	if why.Turn%uint64(max(r.Every, 1)) == 0 { // another use was returned since
		return w.say("refusal.given", w.Count(why.Turn))
	}
	return w.say("refusal.every", w.Count(why.Turn), w.Count(uint64(r.Every)))
}

// segment says who is in a segment.
func (w *ruleWording) segment(r *segmentRule) string { return capital(w.who(r, false)) + "." }

func (w *ruleWording) who(r *segmentRule, inner bool) string {
	group := func(rules []segmentRule, word string) string {
		var parts []string
		for i := range rules {
			parts = append(parts, w.who(&rules[i], len(rules) > 1))
		}
		text := strings.Join(parts, " "+w.say("list."+word)+" ")
		if inner && len(parts) > 1 {
			return "(" + text + ")"
		}
		return text
	}
	switch {
	case len(r.All) > 0:
		return group(r.All, "and")
	case len(r.Any) > 0:
		return group(r.Any, "or")
	case r.Not != nil:
		return w.say("who.not", w.who(r.Not, true))
	}
	return w.comparison(r)
}

func (w *ruleWording) comparison(r *segmentRule) string {
	field, _ := segmentFieldOf(r.Field)
	switch {
	case field.value != nil:
		return w.attribute(r)
	case r.Field == "birthMonth":
		return w.birthMonth(r)
	case field.number != nil:
		var d decimal
		json.Unmarshal(r.Value, &d) // it was checked
		value := w.Number(d)
		if r.Field == "totalSpent" {
			value = w.money(d)
		}
		name := "who." + r.Field
		if key, is := strings.CutPrefix(r.Field, pointsField); is {
			return w.say("who.points", w.say("op."+r.Op, value), cmp.Or(w.programs[key], key))
		}
		if value == "1" && w.lang.Has(name+".one") {
			name += ".one"
		}
		return w.say(name, w.say("op."+r.Op, value))
	case field.text != nil:
		var text string
		json.Unmarshal(r.Value, &text)
		if r.Op == "!=" {
			return w.say("who."+r.Field+".not", text)
		}
		return w.say("who."+r.Field, text)
	}
	var has bool
	json.Unmarshal(r.Value, &has)
	if has == (r.Op == "=") {
		return w.say("who." + r.Field)
	}
	return w.say("who." + r.Field + ".not")
}

func (w *ruleWording) attribute(r *segmentRule) string {
	name := strings.TrimPrefix(r.Field, attributeField)
	var value any
	json.Unmarshal(r.Value, &value) // it was checked
	text, _ := value.(string)
	switch is := value.(type) {
	case float64:
		var d decimal
		json.Unmarshal(r.Value, &d)
		return w.say("who.attribute.number", name, w.say("op."+r.Op, w.Number(d)))
	case bool:
		if text = w.say("who.attribute.no"); is {
			text = w.say("who.attribute.yes")
		}
	}
	if r.Op == "!=" {
		return w.say("who.attribute.not", name, text)
	}
	return w.say("who.attribute", name, text)
}

func (w *ruleWording) birthMonth(r *segmentRule) string {
	var d decimal
	json.Unmarshal(r.Value, &d)
	month := w.calendar().Months[min(max(d/decimalOne, 1), 12)-1]
	return w.say("who.birthMonth."+r.Op, month)
}

// program says how points of a program live: expiry, rounding, returns, tiers.
func (w *ruleWording) program(p *program) (list []string) {
	add := func(name string, args ...any) { list = append(list, w.say(name, args...)) }
	switch e := p.Expiry; {
	case e == nil:
		add("program.expiry.never")
	case e.Days > 0:
		add("program.expiry"+e.EndOf, w.many("span.days", e.Days))
	case e.Months > 0:
		add("program.expiry"+e.EndOf, w.many("span.months", e.Months))
	}
	if len(p.ExcludeSKUs) > 0 {
		add("program.excluded", w.list(p.ExcludeSKUs, "and"))
	}
	if months := p.inactiveMonths(); months > 0 {
		add("program.expiry.inactive", w.many("span.months", months))
	}
	if p.PointsDecimals == 0 {
		add("program.rounding.whole", w.say("program."+string(p.Rounding)))
	} else {
		list = append(list, w.many("program.rounding", p.PointsDecimals, w.say("program."+string(p.Rounding))))
	}
	if p.Returns == returnsKeep {
		add("program.returns.keep")
	} else {
		add("program.returns." + p.NegativeBalance)
	}
	if len(p.Tiers) > 0 {
		if metric := w.say("program." + p.TierBasis.Metric); p.TierBasis.Window == windowRolling {
			list = append(list, w.many("program.basis.Rolling", p.TierBasis.Months, metric))
		} else {
			add("program.basis."+p.TierBasis.Window, metric)
		}
	}
	if p.Join == joinAll {
		add("program.join.all")
	}
	return list
}

// payment says what points of a program pay, if they do.
func (w *ruleWording) payment(cfg *config, p *program) (list []string) {
	terms, ok := cfg.payTerms(p)
	if !ok {
		return nil
	}
	list = append(list, counted(w.lang, "program.pays", w.Number(terms.points), p.Currency.Of(terms.points), w.money(terms.amount), w.Number(terms.fewest()), w.Number(terms.percent), w.say("program.earnOn."+p.Payment.EarnOn)))
	if p.Payment.Step != 0 {
		list = append(list, w.say("program.pays.step", w.Number(terms.step)))
	}
	if len(p.Payment.ExcludeSKUs) > 0 {
		list = append(list, w.say("program.pays.excluded", w.list(p.Payment.ExcludeSKUs, "or")))
	}
	return list
}
