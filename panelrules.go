package main

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The program: rules as sentences, tiers, and how points live.

func programPages() []panelPage {
	const one = "/panel/programa/{programId}"
	return []panelPage{
		{"/panel/programa", "loyalty:read", "program", programPage},
		{one, "config:write", "program-edit", programEditPage},
		{one + "/nueva", "config:write", "rule", rulePage},
		{one + "/reglas/{ruleId}", "config:write", "rule", rulePage},
	}
}

func programForms() []panelForm {
	const one = "/panel/programa/{programId}"
	ruleMembers := []formMember{
		wordMember("name"), wordMember("on"), wordMember("reward"), partMember("per", figureMember("amount"), figureMember("points")), figureMember("perItem"), figureMember("points"), figureMember("multiplier"),
		figureMember("minAmount"), rowsMember("skus"), boxesMember("tiers"), boxesMember("segments"), boxesMember("days"), partMember("hours", wordMember("from"), wordMember("to")),
		wordMember("from"), wordMember("until"), {name: "firstPurchase", kind: checkMember}, figureMember("maxPerCustomerPerDay"), figureMember("pendingDays"), figureMember("expiresInDays"),
		rowsMember("excludeSkus"), figureMember("minQuantity"), askedLabelsMember, figureMember("maxPerCustomer"), figureMember("every"), figureMember("maxPoints"), figureMember("budget"), wordMember("category"),
	}
	members := []formMember{
		payTermsMember, rowsMember("excludeSkus"), wordMember("name"), currencyMember, figureMember("pointsDecimals"), wordMember("rounding"), wordMember("returns"), wordMember("negativeBalance"),
		partMember("expiry", figureMember("days"), figureMember("months"), wordMember("endOf"), figureMember("inactiveMonths")),
		partMember("tierBasis", wordMember("metric"), wordMember("window"), figureMember("months")),
		{name: "tiers", kind: madeMember, make: tierRows},
	}
	done := func(*panelRequest, string) string { return "/panel/programa?hecho=1" }
	return append(reviewedForms("program", []panelForm{
		{path: one, from: one, members: members, handle: editing(editProgram), done: done},
	}), reviewedForms("rule", []panelForm{
		{path: one + "/nueva", from: one + "/nueva", members: ruleMembers, handle: editing(editRule), done: done},
		{path: one + "/reglas/{ruleId}", from: one + "/reglas/{ruleId}", members: ruleMembers, handle: editing(editRule), done: done},
		{path: one + "/reglas/{ruleId}/quitar", from: one + "/reglas/{ruleId}", handle: editing(removeRule), done: done},
	})...)
}

// currencyMember is what points are called: a word, and another for one if that is not blank.
var currencyMember = formMember{name: "currency", kind: madeMember, make: func(v *panelRequest, name string) string {
	many, one := wordMember(name).make(v, name), trimBlanks(v.typedText(name+".one"))
	if many == "" || one == "" {
		return many
	}
	return string(appendObject(nil, []pair{{"one", string(appendJSONString(nil, one))}, {"many", many}}))
}}

// payTermsMember is what points pay; taken out if its figures are blank. The choice beside them
// always says something.
var payTermsMember = formMember{name: "payment", kind: madeMember, make: func(v *panelRequest, name string) string {
	figures := []formMember{figureMember("points"), figureMember("amount"), figureMember("minPoints"), figureMember("maxPercent"), figureMember("step")}
	blank := !slices.ContainsFunc(figures, func(m formMember) bool { return trimBlanks(v.typedText(name+"."+m.name)) != "" })
	literal := partMember(name, append(figures, rowsMember("excludeSkus"), wordMember("earnOn"))...).make(v, name)
	if literal != "" && blank {
		return "null"
	}
	return literal
}}

// wordingOf is how a page writes the rules of a configuration.
func wordingOf(v *panelRequest, cfg *config) *ruleWording { return wordingIn(cfg, v.format(), v.lang) }

// askedLabelsMember is the labels that a rule asks for, one on each line: pago: efectivo. Lines with
// one name are values of it.
var askedLabelsMember = formMember{name: "labels", kind: madeMember, make: blankOr(func(_ *panelRequest, _, text string) string {
	asked := map[string][]string{}
	for l := range labelLines(text) {
		asked[l.Name] = append(asked[l.Name], l.Value)
	}
	literal, _ := json.Marshal(asked) // texts can be written
	return string(literal)
})}

// labelsMember is a sale's labels, one on each line.
var labelsMember = formMember{name: "labels", kind: madeMember, make: blankOr(func(_ *panelRequest, _, text string) string {
	var body []pair
	for l := range labelLines(text) {
		body = append(body, pair{l.Name, string(appendJSONString(nil, l.Value))})
	}
	return string(appendObject(nil, body))
})}

// labelLines yields the labels of a text with one on each line.
func labelLines(text string) iter.Seq[label] {
	return func(yield func(label) bool) {
		for row := range strings.SplitSeq(text, "\n") {
			if row = trimBlanks(row); row == "" {
				continue
			}
			name, value, ok := strings.Cut(row, labelMark)
			if !ok {
				name, value, _ = strings.Cut(row, ":")
			}
			if !yield(label{trimBlanks(name), trimBlanks(value)}) {
				return
			}
		}
	}
}

// LabelLines are the labels that a rule asks for, as labelLines reads them.
func (f *pageData) LabelLines(asked map[string][]string) string {
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		for _, value := range asked[name] {
			rows = append(rows, name+labelMark+value)
		}
	}
	return f.Lines(rows)
}

// tierRows are the rows of tiers; null, if all are blank.
func tierRows(v *panelRequest, name string) string {
	rows := v.list(formMember{name: name, of: []formMember{{name: "name"}, {name: "threshold", kind: amountMember}, {name: "multiplier", kind: amountMember}}})
	if rows == "" {
		return "null"
	}
	return rows
}

// programIn finds the program of a request's path, and its part of a document.
func programIn(t *txn, r *request, tree docTree) (p *program, part docTree, at string, err error) {
	if p, err = t.program(r.pathID("programId")); err != nil {
		return nil, nil, "", err
	}
	list := listIn(tree, "programs")
	i := keyed(list, p.Key)
	return p, list[i].(docTree), "programs[" + strconv.Itoa(i) + "]", nil
}

func editProgram(t *txn, r *request, tree, fields docTree) (docPlace, error) {
	_, part, at, err := programIn(t, r, tree)
	if err == nil {
		layOver(part, fields)
	}
	return docPlace{path: at, labels: "program", controls: strings.NewReplacer("currency.many", "currency")}, err
}

// editRule lays the form of a rule over a document: one that is there, or a new one.
func editRule(t *txn, r *request, tree, fields docTree) (docPlace, error) {
	p, part, at, err := programIn(t, r, tree)
	if err != nil {
		return docPlace{}, err
	}
	rules := listIn(part, "rules")
	i := len(rules)
	if r.PathValue("ruleId") == "" {
		name, _ := fields["name"].(string)
		rules = append(rules, docTree{"key": keyFor(name, rules)})
	} else if i, err = ruleIn(p, r.pathID("ruleId")); err != nil {
		return docPlace{}, err
	}
	if _, typed := fields["labels"]; typed {
		delete(rules[i].(docTree), "labels") // the form has all of them
	}
	layOver(rules[i].(docTree), fields)
	part["rules"] = rules
	return docPlace{path: at + ".rules[" + strconv.Itoa(i) + "]", labels: "rule"}, nil
}

func removeRule(t *txn, r *request, tree, _ docTree) (docPlace, error) {
	p, part, at, err := programIn(t, r, tree)
	if err != nil {
		return docPlace{}, err
	}
	i, err := ruleIn(p, r.pathID("ruleId"))
	if err == nil {
		part["rules"] = slices.Delete(listIn(part, "rules"), i, i+1)
	}
	return docPlace{path: at}, err
}

// ruleIn is the index of a program's rule with an id.
func ruleIn(p *program, u id) (int, error) {
	i := slices.IndexFunc(p.Rules, func(r rule) bool { return p.ruleID(&r) == u })
	if i < 0 {
		return 0, newError(codeRouteNotFound)
	}
	return i, nil
}

// A programView is all programs in words.
type programView struct {
	Programs []programWords
	Done     bool
}

type programWords struct {
	ID       id
	Name     string
	Currency currencyName
	Default  bool
	Rules    []ruleWords
	Facts    []string
	Tiers    []tier
	Metric   string
}

type ruleWords struct {
	ID       id
	Name     string
	Sentence string
	Warning  string // why it can never fire
}

func programPage(v *panelRequest) (any, fillFunc) {
	view := &programView{Done: v.param("hecho") != ""}
	return view, func(t *txn) error {
		w := wordingOf(v, t.cfg)
		for _, p := range t.cfg.Programs {
			words := programWords{ID: p.ID, Name: p.Name, Currency: p.Currency, Default: p.Default && len(t.cfg.Programs) > 1, Facts: append(w.program(p), w.payment(t.cfg, p)...), Tiers: p.Tiers, Metric: p.TierBasis.Metric}
			ck := ruleChecker{t.Tx, t.cfg, p, t.now, t.cfg.zone, true}
			for i := range p.Rules {
				r := &p.Rules[i]
				why := ck.neverFires(r)
				if why.format == "" {
					var err error
					if why, err = ck.budgetSpent(r); err != nil {
						return err
					}
				}
				words.Rules = append(words.Rules, ruleWords{p.ruleID(r), r.Name, w.rule(r), sentenceText(v.lang, why)})
			}
			view.Programs = append(view.Programs, words)
		}
		return nil
	}
}

// A programEditView is the form of a program.
type programEditView struct {
	Program programDoc
	Expiry  expiry
	Payment paymentDoc
	Stamp   string
}

func (v *programEditView) title(*pageData) string { return v.Program.Name }

func programEditPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &programEditView{}
	return view, func(t *txn) error {
		p, err := t.program(pathIDOf(v.r, "programId"))
		if err != nil {
			return err
		}
		if view.Program = p.programDoc; p.Expiry != nil {
			view.Expiry = *p.Expiry
		}
		if p.Payment != nil {
			view.Payment = *p.Payment
		}
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// A ruleView is the form of a rule. Effect says what it gives: there is a form for each.
type ruleView struct {
	Rule                  rule
	Effect                string // "" while it is to be chosen
	Program               string // its name
	Sentence              string
	New, Removing         bool
	ProgramID             string
	Stamp                 string
	Days, Tiers, Segments []choiceItem
	Rewards               []choiceItem
	Conditions            bool   // it is about purchases
	GivesPoints           bool   // it may
	GivesReward           bool   // it may
	BudgetUsed            string // "" without
	Category              string // "" for the usual one
	Categories            []choiceItem
}

// ruleEffects are the effects that a new rule can have.
var ruleEffects = []string{"per", "perItem", "points", "multiplier", "reward", "Signup", "Birthday", "Tier"}

func (v *ruleView) title(f *pageData) string {
	if v.New {
		return f.T("title.rule.new")
	}
	return v.Rule.Name
}

func (r *rule) effectName() string {
	switch {
	case r.On == onSignup || r.On == onBirthday || r.On == onTier:
		return r.On
	case r.Reward != "":
		return "reward"
	case r.Per != nil:
		return "per"
	case r.PerItem != nil:
		return "perItem"
	case r.Multiplier != nil:
		return "multiplier"
	}
	return "points"
}

func rulePage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &ruleView{New: v.r.PathValue("ruleId") == "", ProgramID: v.r.PathValue("programId")}
	if asked, _ := v.posted.get("effect"); slices.Contains(ruleEffects, asked) {
		view.Effect = asked
	} else if asked = v.param("efecto"); slices.Contains(ruleEffects, asked) {
		view.Effect = asked
	}
	view.Removing = v.posted != nil && v.route != v.page.path && !view.New
	return view, func(t *txn) error {
		p, err := t.program(pathIDOf(v.r, "programId"))
		if err != nil {
			return err
		}
		w := wordingOf(v, t.cfg)
		if view.Program = p.Name; !view.New {
			i, err := ruleIn(p, pathIDOf(v.r, "ruleId"))
			if err != nil {
				return err
			}
			view.Rule = p.Rules[i]
			view.Effect, view.Sentence = view.Rule.effectName(), w.rule(&view.Rule)
			if view.Rule.Budget != nil {
				used, err := t.sales.budgetUsed(p, &view.Rule)
				if err != nil {
					return err
				}
				view.BudgetUsed = w.points(used)
			}
		}
		view.chooseCategory(v.lang)
		view.Conditions = view.Effect != onSignup && view.Effect != onBirthday && view.Effect != onTier
		view.GivesPoints = view.Effect != "reward" && view.Effect != onTier
		view.GivesReward = !view.GivesPoints || !view.Conditions
		view.Rewards = []choiceItem{{"", tr(v.lang, "rule.reward.none")}}
		for _, r := range t.cfg.byCost() {
			if r.Fulfilment == fulfilVoucher {
				view.Rewards = append(view.Rewards, choiceItem{r.Key, r.Name})
			}
		}
		for _, d := range weekdays {
			view.Days = append(view.Days, choiceItem{d, capital(w.say("day." + d))})
		}
		for _, tier := range p.Tiers {
			view.Tiers = append(view.Tiers, choiceItem{tier.Name, tier.Name})
		}
		view.Segments = segmentChoices(t.cfg)
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// chooseCategory offers the categories that points of the rule can have, the usual one first.
func (v *ruleView) chooseCategory(lang language) {
	usual := rule{On: v.Rule.On}
	if v.Effect == onSignup || v.Effect == onBirthday {
		usual.On = v.Effect
	}
	v.Categories = []choiceItem{{"", tr(lang, "category."+usual.category())}}
	for _, c := range earningCategories() {
		if c != usual.category() {
			v.Categories = append(v.Categories, choiceItem{c, tr(lang, "category."+c)})
		}
	}
	if v.Category = v.Rule.Category; v.Category == usual.category() {
		v.Categories[0].Value = v.Category // as the document says it
	}
}

// Effects are the effects that a new rule can have.
func (f *pageData) Effects() []string { return ruleEffects }

// PerAmount and PerPoints are the figures of a `per` rule for its controls.
func (f *pageData) PerAmount(r rule) string {
	if r.Per == nil {
		return ""
	}
	return f.Number(r.Per.Amount)
}

func (f *pageData) PerPoints(r rule) string {
	if r.Per == nil {
		return ""
	}
	return f.Number(r.Per.Points)
}

// HourFrom and HourTo are the hours of a rule for its controls.
func (f *pageData) HourFrom(r rule) string {
	if r.Hours == nil {
		return ""
	}
	return r.Hours.From
}

func (f *pageData) HourTo(r rule) string {
	if r.Hours == nil {
		return ""
	}
	return r.Hours.To
}

// Lines are texts for a control with one on each line.
func (f *pageData) Lines(texts []string) string { return strings.Join(texts, "\n") }

// A tierControls is a row of the form of tiers.
type tierControls struct{ Name, Threshold, Multiplier control }

// TierRows are the tiers of a program and two rows for more.
func (f *pageData) TierRows(tiers []tier) (rows []tierControls) {
	const more = 2
	for i := range len(tiers) + more {
		var row tier
		threshold := ""
		if i < len(tiers) {
			row = tiers[i]
			threshold = f.Number(row.Threshold)
		}
		at := "tiers[" + strconv.Itoa(i) + "]."
		rows = append(rows, tierControls{f.Field(at+"name", "program.tiers.name", "text", row.Name),
			f.Field(at+"threshold", "program.tiers.threshold", "decimal", threshold), f.Field(at+"multiplier", "program.tiers.multiplier", "decimal", f.Decimal(row.Multiplier))})
	}
	return rows
}

var programTexts = panelTexts{
	"nav.program":                    {"Programa", "Program"},
	"title.program":                  {"Programa", "Program"},
	"title.program-edit":             {"Programa", "Program"},
	"title.rule":                     {"Regla", "Rule"},
	"title.rule.new":                 {"Nueva regla", "New rule"},
	"program.about":                  {"Qué da puntos, y cómo viven.", "What gives points, and how they live."},
	"program.rules.none":             {"Ninguna regla da puntos todavía. Empieza por cuánto vale una compra.", "No rule gives points yet. Begin with what a purchase is worth."},
	"program.rules.new":              {"Nueva regla", "New rule"},
	"program.tiers":                  {"Niveles", "Tiers"},
	"program.tiers.none":             {"Sin niveles.", "No tiers."},
	"program.tiers.from":             {"Desde", "From"},
	"program.tiers.times":            {"Puntos por compra", "Points for purchases"},
	"program.life":                   {"Cómo viven los puntos", "How points live"},
	"program.edit":                   {"Editar programa y niveles", "Edit program and tiers"},
	"program.simulate":               {"Simular una venta", "Simulate a sale"},
	"program.new":                    {"de los clientes nuevos", "that of new customers"},
	"program.never":                  {"Nunca dará puntos: %s", "It will never give points: %s"},
	"program.name":                   {"Nombre", "Name"},
	"program.currency":               {"Cómo se llaman los puntos", "What points are called"},
	"program.currency.one":           {"Una unidad se llama", "One of them is called"},
	"program.currency.one.hint":      {"Como Sello, si se llaman Sellos; en blanco, la misma palabra", "Such as Stamp, if they are Stamps; blank for the same word"},
	"program.pointsDecimals":         {"Decimales de los puntos", "Decimals of points"},
	"program.pointsDecimals.hint":    {"De 0 a 4", "0 to 4"},
	"program.rounding.field":         {"Redondeo", "Rounding"},
	"program.returns":                {"Una devolución", "A return"},
	"program.negativeBalance":        {"Si los puntos ya se gastaron", "If points were spent"},
	"program.expiry.days":            {"Vencen a los días", "Expire after days"},
	"program.expiry.days.hint":       {"O días, o meses; en blanco los dos, nunca", "Either days or months; both blank for never"},
	"program.expiry.months":          {"Vencen a los meses", "Expire after months"},
	"program.expiry.endOf":           {"Y entonces", "And then"},
	"program.tierBasis.metric":       {"El nivel depende de", "The tier follows from"},
	"program.tierBasis.window":       {"Se cuenta", "Counted"},
	"program.tierBasis.months":       {"Cuántos meses", "How many months"},
	"program.tierBasis.months.hint":  {"Solo con los últimos meses", "Only with the last months"},
	"program.tiers.name":             {"Nivel", "Tier"},
	"program.tiers.threshold":        {"Desde", "From"},
	"program.tiers.multiplier":       {"Multiplica por", "Multiplies by"},
	"program.tiers.hint":             {"De menor a mayor; el primero empieza en 0. Deja una fila en blanco para quitarla.", "Lowest first; the first begins at 0. Leave a row blank to take it out."},
	"word.Floor":                     {"Hacia abajo", "Down"},
	"word.Ceil":                      {"Hacia arriba", "Up"},
	"word.HalfUp":                    {"Al más cercano", "To the nearest"},
	"word.HalfEven":                  {"Al más cercano, la mitad al par", "To the nearest, halves to even"},
	"word.Reverse":                   {"Retira los puntos de la compra", "Takes back the points of its purchase"},
	"word.Keep":                      {"Deja los puntos", "Leaves the points"},
	"word.Clamp":                     {"Se perdonan", "They are forgiven"},
	"word.Debt":                      {"Se deben", "They are owed"},
	"word.Month":                     {"Hasta el final de ese mes", "To the end of that month"},
	"word.PointsEarned":              {"Los puntos ganados", "The points earned"},
	"word.AmountSpent":               {"Lo gastado", "The amount spent"},
	"word.Purchases":                 {"Las compras", "The purchases"},
	"word.Lifetime":                  {"Desde siempre", "Of all time"},
	"word.Rolling":                   {"En los últimos meses", "In the last months"},
	"word.CalendarYear":              {"Por año: lo alcanzado vale hasta el fin del siguiente", "By year: what is reached holds to the end of the next"},
	"word.Signup":                    {"Al darse de alta", "For enrolling"},
	"word.Birthday":                  {"En su cumpleaños", "On the birthday"},
	"word.Monday":                    {"lunes", "Monday"},
	"word.Tuesday":                   {"martes", "Tuesday"},
	"word.Wednesday":                 {"miércoles", "Wednesday"},
	"word.Thursday":                  {"jueves", "Thursday"},
	"word.Friday":                    {"viernes", "Friday"},
	"word.Saturday":                  {"sábado", "Saturday"},
	"word.Sunday":                    {"domingo", "Sunday"},
	"rule.choose":                    {"¿Qué da la regla?", "What does the rule give?"},
	"rule.effect.per":                {"Puntos por importe", "Points by amount"},
	"rule.effect.per.about":          {"1 punto por cada 10 de compra", "1 point for each 10 spent"},
	"rule.effect.perItem":            {"Puntos por artículo", "Points by item"},
	"rule.effect.perItem.about":      {"5 puntos por cada bolsa de grano", "5 points for each bag of beans"},
	"rule.effect.points":             {"Puntos fijos", "Fixed points"},
	"rule.effect.points.about":       {"20 puntos en la primera compra", "20 points on the first purchase"},
	"rule.effect.multiplier":         {"Multiplicador", "Multiplier"},
	"rule.effect.multiplier.about":   {"Los martes, el doble", "Double on Tuesdays"},
	"rule.effect.Signup":             {"Bienvenida", "Welcome"},
	"rule.effect.Signup.about":       {"50 puntos al darse de alta", "50 points for enrolling"},
	"rule.effect.Birthday":           {"Cumpleaños", "Birthday"},
	"rule.effect.reward":             {"Un vale", "A voucher"},
	"rule.effect.reward.about":       {"Un café en cada décima compra", "A coffee on every tenth purchase"},
	"rule.effect.Tier":               {"Subir de nivel", "Reaching a tier"},
	"rule.effect.Tier.about":         {"Un vale al llegar a Oro", "A voucher for reaching Gold"},
	"rule.reward.field":              {"Recompensa, como vale", "Reward, as a voucher"},
	"rule.reward.none":               {"Ninguna", "None"},
	"rule.effect.Birthday.about":     {"100 puntos en su cumpleaños", "100 points on the birthday"},
	"rule.gives":                     {"Qué da", "What it gives"},
	"rule.when":                      {"Cuándo vale", "When it holds"},
	"rule.when.about":                {"Todo lo que pongas se tiene que cumplir; lo que dejes en blanco no cuenta.", "All that you state must hold; what is blank does not count."},
	"rule.life":                      {"Cómo viven sus puntos", "How its points live"},
	"rule.remove":                    {"Quitar la regla", "Remove the rule"},
	"rule.removing":                  {"Deja de dar puntos desde ahora. Los que ya dio se quedan.", "It gives no more points from now on. Those it gave stay."},
	"rule.name":                      {"Nombre", "Name"},
	"rule.name.hint":                 {"Se ve en cada venta que da puntos por ella", "Shown with every sale that it gives points for"},
	"rule.per.points":                {"Puntos", "Points"},
	"rule.per.amount":                {"Por cada", "For each"},
	"rule.points.field":              {"Puntos", "Points"},
	"rule.multiplier":                {"Multiplica los puntos por", "Multiplies points by"},
	"rule.minAmount":                 {"Compras desde", "Purchases from"},
	"rule.skus":                      {"Artículos", "Items"},
	"rule.skus.hint":                 {"Un código por línea; * vale por cualquier cosa", "One SKU on each line; * stands for anything"},
	"rule.tiers.field":               {"Niveles", "Tiers"},
	"rule.segments.field":            {"Segmentos", "Segments"},
	"rule.days.field":                {"Días", "Days"},
	"rule.hours.from":                {"Desde la hora", "From the hour"},
	"rule.hours.from.hint":           {"Como 08:30", "As 08:30"},
	"rule.hours.to":                  {"Hasta la hora", "To the hour"},
	"rule.hours.to.hint":             {"Sin incluirla", "Not included"},
	"rule.from.field":                {"Desde el día", "From the day"},
	"rule.from.field.hint":           {"AAAA-MM-DD", "YYYY-MM-DD"},
	"rule.until.field":               {"Hasta el día", "Until the day"},
	"rule.until.field.hint":          {"Ese día incluido", "That day included"},
	"rule.firstPurchase":             {"Solo la primera compra", "Only the first purchase"},
	"rule.maxPerCustomerPerDay":      {"Veces al día por cliente", "Times a day for each customer"},
	"rule.maxPerCustomerPerDay.hint": {"En blanco, todas", "Blank for all of them"},
	"rule.excludeSkus":               {"Sin contar estos artículos", "Not counting these items"},
	"rule.excludeSkus.hint":          {"Un código por línea, como TABACO-*", "One SKU on each line, as TABACO-*"},
	"rule.minQuantity":               {"Al menos tantos de ellos", "At least so many of them"},
	"rule.minQuantity.hint":          {"De los artículos de arriba", "Of the items above"},
	"rule.labels":                    {"Etiquetas de la venta", "Labels of the sale"},
	"rule.labels.hint":               {"Una por línea, como pago: efectivo; con el mismo nombre vale cualquiera", "One on each line, as pago: efectivo; of those with one name any will do"},
	"rule.maxPerCustomer":            {"Veces en total por cliente", "Times in all for each customer"},
	"rule.maxPerCustomer.hint":       {"En blanco, todas", "Blank for all of them"},
	"rule.every":                     {"Una de cada tantas compras", "One purchase in so many"},
	"rule.every.hint":                {"En blanco, todas", "Blank for all of them"},
	"rule.limits":                    {"Cuánto puede dar", "How much it may give"},
	"rule.maxPoints":                 {"Puntos por compra, a lo más", "Points for a purchase, at most"},
	"rule.budget":                    {"Presupuesto en puntos", "Budget of points"},
	"rule.budget.hint":               {"Al agotarse ya no da; en blanco, sin fin", "Once it is spent it gives no more; blank for no end"},
	"rule.budget.used":               {"De su presupuesto se ha dado: %s.", "Given of its budget so far: %s."},
	"rule.category":                  {"Se anotan como", "Noted as"},
	"rule.pendingDays":               {"Se pueden usar a los días", "Can be used after days"},
	"rule.pendingDays.hint":          {"En blanco, en el acto", "Blank for at once"},
	"rule.expiresInDays":             {"Vencen a los días", "Expire after days"},
	"rule.expiresInDays.hint":        {"En blanco, como los demás del programa", "Blank for as the others of the program"},

	"program.excludeSkus":              {"Artículos que ninguna regla cuenta", "Items that no rule counts"},
	"program.excludeSkus.hint":         {"Un código por línea, como TABACO-*", "One SKU on each line, as TABACO-*"},
	"program.payment":                  {"Pagar con puntos", "Paying with points"},
	"program.payment.about":            {"Qué parte de una venta pagan los puntos en la caja. En blanco las cifras, no pagan nada.", "What part of a sale points pay at the till. With blank figures they pay nothing."},
	"program.payment.points":           {"Tantos puntos", "So many points"},
	"program.payment.amount":           {"Valen", "Are worth"},
	"program.payment.minPoints":        {"Al menos", "At least"},
	"program.payment.minPoints.hint":   {"Puntos; en blanco, sin mínimo", "Points; blank for no minimum"},
	"program.payment.maxPercent":       {"Hasta, % de la venta", "Up to, % of the sale"},
	"program.payment.maxPercent.hint":  {"En blanco, toda", "Blank for all of it"},
	"program.payment.step":             {"En múltiplos de", "In steps of"},
	"program.payment.step.hint":        {"Puntos; en blanco, cualquier cantidad", "Points; blank for any number"},
	"program.payment.excludeSkus":      {"No pagan estos artículos", "They do not pay for these items"},
	"program.payment.excludeSkus.hint": {"Un código por línea, como TABACO-*", "One SKU on each line, as TABACO-*"},
	"program.payment.earnOn":           {"Las reglas cuentan", "Rules count"},

	"program.expiry.inactiveMonths":      {"Vencen sin comprar ni canjear (meses)", "Expire without purchase or redemption (months)"},
	"program.expiry.inactiveMonths.hint": {"Todo lo disponible; en blanco, nunca", "All that is available; blank for never"},
}
