package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rules, segments and programs as sentences.

// A ruleWording writes them in a language, with an organization's numbers and names.
type ruleWording struct {
	*format
	lang     language
	segments map[string]string // names by key
	rewards  map[string]string // the same
	programs map[string]string // the same
}

func (w *ruleWording) say(name string, args ...any) string { return tr(w.lang, name, args...) }

// wordingIn writes the rules of a configuration.
func wordingIn(cfg *config, f *format, lang language) *ruleWording {
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

// reward is the name of the reward that a rule gives.
func (w *ruleWording) reward(r *rule) string {
	if name, ok := w.rewards[r.Reward]; ok {
		return name
	}
	return r.Reward
}

// limits say what the rule does not count, how often it gives and how much, and how its points live.
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
	if w.lang.code == "es" { // e before i, u before o
		switch first := strings.TrimPrefix(fold(last), "h"); {
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

// Codes of other reasons. Those of rewards that could not be given are those of rewards.
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

func notGiven(lang language, why string) string {
	name := "reason." + why
	if lang.has(name + ".any") {
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
	if why.Turn%uint64(max(r.Every, 1)) == 0 { // of which another one was returned since
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

// comparison is one comparison of a customer's field.
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
		if value == "1" && w.lang.has(name+".one") {
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

// attribute is a comparison of an attribute.
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

// birthMonth is a comparison of the month of birth.
func (w *ruleWording) birthMonth(r *segmentRule) string {
	var d decimal
	json.Unmarshal(r.Value, &d)
	month := w.calendar().months[min(max(d/decimalOne, 1), 12)-1]
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

var ruleTexts = panelTexts{
	"points":                    {"%s puntos", "%s points"},
	"points.one":                {"1 punto", "1 point"},
	"span.days":                 {"%s días", "%s days"},
	"span.days.one":             {"1 día", "1 day"},
	"span.months":               {"%s meses", "%s months"},
	"span.months.one":           {"1 mes", "1 month"},
	"list.and":                  {"y", "and"},
	"list.or":                   {"o", "or"},
	"day.Monday":                {"lunes", "Mondays"},
	"day.Tuesday":               {"martes", "Tuesdays"},
	"day.Wednesday":             {"miércoles", "Wednesdays"},
	"day.Thursday":              {"jueves", "Thursdays"},
	"day.Friday":                {"viernes", "Fridays"},
	"day.Saturday":              {"sábados", "Saturdays"},
	"day.Sunday":                {"domingos", "Sundays"},
	"day.Monday.one":            {"lunes", "Monday"},
	"day.Tuesday.one":           {"martes", "Tuesday"},
	"day.Wednesday.one":         {"miércoles", "Wednesday"},
	"day.Thursday.one":          {"jueves", "Thursday"},
	"day.Friday.one":            {"viernes", "Friday"},
	"day.Saturday.one":          {"sábado", "Saturday"},
	"day.Sunday.one":            {"domingo", "Sunday"},
	"rule.days":                 {"los %s", "on %s"},
	"rule.hours":                {"de %s a %s", "from %s to %s"},
	"rule.nights":               {"de %s a %s del día siguiente", "from %s to %s the next day"},
	"rule.between":              {"del %s al %s", "between %s and %s"},
	"rule.from":                 {"desde el %s", "since %s"},
	"rule.until":                {"hasta el %s", "until %s"},
	"rule.tiers":                {"para clientes %s", "for %s customers"},
	"rule.segments":             {"para el segmento %s", "for the segment %s"},
	"rule.first":                {"en la primera compra", "on the first purchase"},
	"rule.amount":               {"en compras desde %s", "on purchases from %s"},
	"rule.per":                  {"%s por cada %s de compra", "%s for each %s spent"},
	"rule.per.items":            {"%s por cada %s en %s", "%s for each %s spent on %s"},
	"rule.perItem":              {"%s por cada artículo", "%s for each item"},
	"rule.perItem.items":        {"%s por cada artículo %s", "%s for each item %s"},
	"rule.points":               {"%s por compra", "%s for a purchase"},
	"rule.points.items":         {"%s por una compra con %s", "%s for a purchase with %s"},
	"rule.reward":               {"un vale de «%s» por compra", "a voucher for “%s” for a purchase"},
	"rule.reward.items":         {"un vale de «%s» por una compra con %s", "a voucher for “%s” for a purchase with %s"},
	"rule.reward.Signup":        {"un vale de «%s» al darse de alta", "a voucher for “%s” for enrolling"},
	"rule.reward.Birthday":      {"un vale de «%s» en su cumpleaños", "a voucher for “%s” on the birthday"},
	"rule.reward.Tier":          {"un vale de «%s» al subir de nivel", "a voucher for “%s” for reaching a tier"},
	"rule.reward.Tiers":         {"un vale de «%s» al llegar a %s", "a voucher for “%s” for reaching %s"},
	"rule.points.Signup":        {"%s al darse de alta", "%s for enrolling"},
	"rule.points.Birthday":      {"%s en su cumpleaños", "%s on the birthday"},
	"rule.double":               {"los puntos se duplican", "points are doubled"},
	"rule.double.items":         {"los puntos de %s se duplican", "points of %s are doubled"},
	"rule.triple":               {"los puntos se triplican", "points are tripled"},
	"rule.triple.items":         {"los puntos de %s se triplican", "points of %s are tripled"},
	"rule.times":                {"los puntos se multiplican por %s", "points are multiplied by %s"},
	"rule.times.items":          {"los puntos se multiplican por %s en %s", "points are multiplied by %s on %s"},
	"rule.daily":                {"como máximo %s veces al día por cliente", "at most %s times a day for each customer"},
	"rule.daily.one":            {"una vez al día por cliente", "once a day for each customer"},
	"rule.quantity":             {"si lleva al menos %s de %s", "with at least %s of %s"},
	"rule.label":                {"si la venta dice %s: %s", "where the sale says %s: %s"},
	"rule.turn":                 {"una de cada %s compras", "on one purchase in %s"},
	"rule.excluded":             {"sin contar %s", "not counting %s"},
	"rule.customer":             {"como máximo %s veces por cliente", "at most %s times for each customer"},
	"rule.customer.one":         {"una sola vez por cliente", "only once for each customer"},
	"rule.most":                 {"como máximo %s por compra", "at most %s for a purchase"},
	"rule.given":                {"hasta %s en total", "up to %s in all"},
	"rule.noted":                {"se anotan como «%s»", "they are noted as “%s”"},
	"rule.pending":              {"se pueden usar después de %s", "they can be used after %s"},
	"rule.expires":              {"vencen después de %s", "they expire after %s"},
	"refusal.on.Signup":         {"es de alta, no de compra", "it is for enrolling, not for a purchase"},
	"refusal.on.Birthday":       {"es de cumpleaños, no de compra", "it is for birthdays, not for a purchase"},
	"refusal.on.Tier":           {"es por subir de nivel, no de compra", "it is for reaching a tier, not for a purchase"},
	"refusal.amount":            {"la compra no llega a %s", "the purchase is below %s"},
	"refusal.skus":              {"ningún artículo es %s", "no item is %s"},
	"refusal.tiers":             {"solo para clientes %s; era %s", "only for %s customers; this was a %s one"},
	"refusal.segments":          {"solo para el segmento %s", "only for the segment %s"},
	"refusal.days":              {"solo los %s; la venta fue en %s", "only on %s; the sale was on a %s"},
	"refusal.nights":            {"solo los %s; la venta, pasada la medianoche, cuenta en %s", "only on %s; the sale, after midnight, counts as on a %s"},
	"refusal.hours":             {"solo de %s a %s; la venta fue a las %s", "only from %s to %s; the sale was at %s"},
	"refusal.between":           {"solo del %s al %s", "only between %s and %s"},
	"refusal.from":              {"empieza el %s", "it begins on %s"},
	"refusal.until":             {"terminó el %s", "it ended on %s"},
	"refusal.first":             {"no es la primera compra", "it is not the first purchase"},
	"refusal.paid":              {"la venta se pagó entera con puntos", "all of the sale was paid with points"},
	"refusal.excluded":          {"todos sus artículos están excluidos", "all of its items are left out"},
	"refusal.quantity":          {"no lleva %s de %s", "it does not have %s of %s"},
	"refusal.label":             {"la venta no dice %s", "the sale does not say %s"},
	"refusal.life":              {"el cliente ya la usó las veces que puede: %s", "the customer has used it as often as possible: %s"},
	"refusal.budget":            {"su presupuesto ya se dio: %s", "its budget has been given: %s"},
	"refusal.given":             {"ya dio por la compra %s", "it has given for purchase %s already"},
	"refusal.every":             {"sería la compra %s, y da en una de cada %s", "it would be purchase %s, and it gives on one in %s"},
	"refusal.nothing":           {"se cumple, pero no suma ningún punto", "it holds, but adds up to no point"},
	"refusal.import":            {"una importación no da vales", "an import gives no vouchers"},
	"refusal.daily":             {"ya se usó las veces de ese día: %s", "it was used as often as it may on that day: %s"},
	"who.not":                   {"no es cierto que %s", "is not one who %s"},
	"who.totalSpent":            {"ha gastado %s", "has spent %s"},
	"who.transactionsCount":     {"ha comprado %s veces", "has bought %s times"},
	"who.transactionsCount.one": {"ha comprado %s vez", "has bought %s time"},
	"who.lastTransactionAt":     {"compró por última vez hace %s días", "bought last %s days ago"},
	"who.lastTransactionAt.one": {"compró por última vez hace %s día", "bought last %s day ago"},
	"who.createdAt":             {"se dio de alta hace %s días", "enrolled %s days ago"},
	"who.createdAt.one":         {"se dio de alta hace %s día", "enrolled %s day ago"},
	"who.balance":               {"tiene un saldo de %s", "has a balance of %s"},
	"who.lifetimePoints":        {"ha ganado %s puntos en total", "has earned %s points in all"},
	"who.lifetimePoints.one":    {"ha ganado %s punto en total", "has earned %s point in all"},
	"who.tier":                  {"es cliente %s", "is a %s customer"},
	"who.tier.not":              {"no es cliente %s", "is no %s customer"},
	"who.email":                 {"tiene email", "has an e-mail"},
	"who.email.not":             {"no tiene email", "has no e-mail"},
	"who.birthMonth.=":          {"nació en %s", "was born in %s"},
	"who.birthMonth.!=":         {"no nació en %s", "was not born in %s"},
	"who.birthMonth.<":          {"nació antes de %s, de enero en adelante", "was born before %s, from January on"},
	"who.birthMonth.<=":         {"nació entre enero y %s", "was born between January and %s"},
	"who.birthMonth.>":          {"nació después de %s, hasta diciembre", "was born after %s, until December"},
	"who.birthMonth.>=":         {"nació entre %s y diciembre", "was born between %s and December"},
	"who.expiringWithin":        {"tiene puntos, y los primeros vencen en %s días", "has points, of which the first expire in %s days"},
	"who.expiringWithin.one":    {"tiene puntos, y los primeros vencen en %s día", "has points, of which the first expire in %s day"},
	"who.points":                {"tiene un saldo de %s en %s", "has a balance of %s in %s"},
	"who.attribute":             {"su atributo «%s» es «%s»", "has the attribute “%s” at “%s”"},
	"who.attribute.not":         {"su atributo «%s» no es «%s»", "does not have the attribute “%s” at “%s”"},
	"who.attribute.number":      {"su atributo «%s» es %s", "has the attribute “%s” at %s"},
	"who.attribute.yes":         {"sí", "yes"},
	"who.attribute.no":          {"no", "no"},
	"who.marketing":             {"quiere avisos", "wants notices"},
	"who.marketing.not":         {"no ha dicho que quiera avisos", "has not said to want notices"},
	"who.phone":                 {"tiene teléfono", "has a phone"},
	"who.phone.not":             {"no tiene teléfono", "has no phone"},
	"op.=":                      {"exactamente %s", "exactly %s"},
	"op.!=":                     {"distinto de %s", "other than %s"},
	"op.<":                      {"menos de %s", "less than %s"},
	"op.<=":                     {"como mucho %s", "at most %s"},
	"op.>":                      {"más de %s", "more than %s"},
	"op.>=":                     {"al menos %s", "at least %s"},
	"program.expiry":            {"Los puntos vencen después de %s.", "Points expire after %s."},
	"program.expiryMonth":       {"Los puntos vencen después de %s, al final del mes.", "Points expire after %s, at the end of the month."},
	"program.expiry.inactive":   {"Los puntos vencen después de %s sin comprar ni canjear.", "Points expire after %s without a purchase or a redemption."},
	"program.expiry.never":      {"Los puntos no vencen.", "Points do not expire."},
	"program.excluded":          {"Ninguna regla cuenta %s.", "No rule counts %s."},
	"program.rounding":          {"Se dan con %s decimales, redondeados %s.", "They are given with %s decimals, rounded %s."},
	"program.rounding.one":      {"Se dan con 1 decimal, redondeados %s.", "They are given with 1 decimal, rounded %s."},
	"program.rounding.whole":    {"Se dan puntos enteros, redondeados %s.", "They are given whole, rounded %s."},
	"program.Floor":             {"hacia abajo", "down"},
	"program.Ceil":              {"hacia arriba", "up"},
	"program.HalfUp":            {"al más cercano", "to the nearest"},
	"program.HalfEven":          {"al más cercano, y la mitad al par", "to the nearest, halves to even"},
	"program.returns.keep":      {"Una devolución no retira los puntos de la compra.", "A return takes back no points of its purchase."},
	"program.returns.Clamp":     {"Una devolución retira los puntos que dio la compra; los que ya se gastaron se perdonan.", "A return takes back the points of its purchase; those that were spent are forgiven."},
	"program.returns.Debt":      {"Una devolución retira los puntos que dio la compra; los que ya se gastaron se deben.", "A return takes back the points of its purchase; those that were spent are owed."},
	"program.basis.Lifetime":    {"El nivel depende de %s desde siempre.", "The tier follows from %s, of all time."},
	"program.basis.Rolling":     {"El nivel depende de %[2]s en los últimos %[1]s meses.", "The tier follows from %[2]s in the last %[1]s months."},
	"program.basis.Rolling.one": {"El nivel depende de %s en el último mes.", "The tier follows from %s in the last month."},
	"program.PointsEarned":      {"los puntos ganados", "the points earned"},
	"program.AmountSpent":       {"lo gastado", "the amount spent"},
	"program.Purchases":         {"las compras", "the number of purchases"},
	"program.pays":              {"%s %s valen %s: pagan desde %s y hasta el %s\u00a0%% de una venta; para las reglas cuenta %s.", "%s %s are worth %s: they pay from %s on, and up to %s%% of a sale; rules count %s."},
	"program.pays.one":          {"1 %s vale %s: pagan desde %s y hasta el %s\u00a0%% de una venta; para las reglas cuenta %s.", "1 %s is worth %s: they pay from %s on, and up to %s%% of a sale; rules count %s."},
	"program.pays.excluded":     {"No se pagan con puntos: %s.", "Not paid for with points: %s."},
	"program.pays.step":         {"Para pagar se usan en múltiplos de %s.", "For paying they come in steps of %s."},
	"program.earnOn.Paid":       {"lo que se paga en dinero", "what is paid with money"},
	"program.earnOn.Total":      {"el total", "the total"},
	"program.join.all":          {"Todos los clientes ganan en él, además de en su propio programa.", "All customers earn in it, besides their own program."},

	"program.basis.CalendarYear": {"El nivel depende de %s en el año, y vale hasta el 31 de diciembre del siguiente.", "The tier follows from %s in the year, and holds to 31 December of the next."},
}

// reasonTexts say why a reward cannot be redeemed or given.
var reasonTexts = panelTexts{
	"reason.CustomerInactive":        {"el cliente no está activo", "the customer is not active"},
	"reason.Inactive":                {"no está activa", "it is not active"},
	"reason.NotYetValid":             {"todavía no vale", "it is not valid yet"},
	"reason.NoLongerValid":           {"ya no vale", "it is no longer valid"},
	"reason.TierRequired":            {"solo para %s", "only for %s"},
	"reason.TierRequired.any":        {"solo para otro nivel", "only for another tier"},
	"reason.SegmentRequired":         {"solo para otro grupo de clientes", "only for another group of customers"},
	"reason.OutOfStock":              {"se agotó", "out of stock"},
	"reason.LimitReached":            {"ya la canjeó las veces que puede", "redeemed as often as allowed"},
	"reason.InsufficientBalance":     {"le faltan %s %s", "%s %s missing"},
	"reason.InsufficientBalance.any": {"le faltan puntos", "points are missing"},
	"reason.InsufficientBalance.one": {"le falta 1 %s", "1 %s missing"},
}
