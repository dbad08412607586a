package main

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sello/internal/texts"
)

// Programs: rules as sentences, tiers, how points live, the forms of a program and a rule, and the
// simulator of a sale.

func programArea() panelArea {
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
	return panelArea{[]panelPage{
		{"/panel/programa", "loyalty:read", "program", programPage},
		{one, "config:write", "program-edit", withForms(programEditPage)},
		{one + "/nueva", "config:write", "rule", withForms(rulePage)},
		{one + "/reglas/{ruleId}", "config:write", "rule", withForms(rulePage)},
	}, append(reviewedForms("program", []panelForm{
		{path: one, from: one, members: members, handle: editing(editProgram), done: done},
	}), reviewedForms("rule", []panelForm{
		{path: one + "/nueva", from: one + "/nueva", members: ruleMembers, handle: editing(editRule), done: done},
		{path: one + "/reglas/{ruleId}", from: one + "/reglas/{ruleId}", members: ruleMembers, handle: editing(editRule), done: done},
		{path: one + "/reglas/{ruleId}/quitar", from: one + "/reglas/{ruleId}", handle: editing(removeRule), done: done},
	})...)}
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

type programEditView struct {
	Program programDoc
	Expiry  expiry
	Payment paymentDoc
	Stamp   string
}

func (v *programEditView) title(*pageData) string { return v.Program.Name }

func programEditPage(v *panelRequest) (any, fillFunc) {
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
	PerAmount, PerPoints  string // of a rule with per
	Hours                 hourRange
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

var ruleEffects = []string{"per", "perItem", "points", "multiplier", "reward", "Signup", "Birthday", "Tier"}

func (v *ruleView) Effects() []string { return ruleEffects }

func (v *ruleView) title(f *pageData) string { return f.newOr(v.New, "title.rule.new", v.Rule.Name) }

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
			if per := view.Rule.Per; per != nil {
				view.PerAmount, view.PerPoints = w.Number(per.Amount), w.Number(per.Points)
			}
			if view.Rule.Hours != nil {
				view.Hours = *view.Rule.Hours
			}
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
func (v *ruleView) chooseCategory(lang texts.Language) {
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

type tierControls struct{ Name, Threshold, Multiplier control }

// TierRows are the tiers of a program and two rows for more.
func (v *programEditView) TierRows(f *pageData) (rows []tierControls) {
	const more = 2
	tiers := v.Program.Tiers
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

// LabelText are the labels that the rule asks for, as labelLines reads them.
func (v *ruleView) LabelText() string {
	asked, rows := v.Rule.Labels, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		for _, value := range asked[name] {
			rows = append(rows, name+labelMark+value)
		}
	}
	return strings.Join(rows, "\n")
}

// The simulator: what a sale would earn, which rules would give it, and why the others would
// not. It registers the sale as the API does, and keeps nothing.

func simulatorArea() panelArea {
	return panelArea{pages: []panelPage{{"/panel/simulador", "loyalty:read", "simulator", simulatorPage}}}
}

var simulatorForm = panelForm{
	members: []formMember{{name: "customerId"}, {name: "totalAmount", kind: amountMember}, {name: "occurredAt"}, labelsMember, saleMembers[len(saleMembers)-1]},
	handle:  simulateSale,
}

// A simulation is what a sale would do, and why.
type simulation struct {
	sale saleShape
	why  []programReasons
}

func simulateSale(r *request) action {
	in := r.saleFields()
	return func(t *txn) (any, error) {
		s, c, err := t.sales.register(in)
		if err != nil {
			return nil, err
		}
		shape, err := newSaleShapeFor(t, s, c)
		if err != nil {
			return nil, err
		}
		why, _, err := t.sales.reasonsFor(s)
		return simulation{shape, why}, err
	}
}

type simulatorView struct {
	Query    string
	Hits     []tillHit
	Links    map[id]string // to the simulation with a hit
	Nobody   bool
	TooShort bool // the text, for a search by name
	Customer string
	Contact  string
	At       instant
	Done     bool
	Sale     saleShape
	Currency currencyName
	Why      whyView
}

func simulatorPage(v *panelRequest) (any, fillFunc) {
	view := &simulatorView{Query: trimBlanks(v.param("cliente"))}
	asked := v.param("totalAmount") != ""
	v.posted = slices.Clone(v.request.query.object)
	v.chooseReading()
	if view.Query == "" {
		return view, nil
	}
	found := &tillView{Query: view.Query, Asked: true}
	find := found.find(v)
	if u, is := parseID(view.Query); is {
		find = func(*txn) error { found.One = u; return nil }
	}
	return view, func(t *txn) error {
		if err := find(t); err != nil {
			return err
		}
		if found.One == (id{}) {
			view.TooShort = found.TooShort
			view.pick(v, found.Hits)
			return nil
		}
		v.posted = append(v.posted, pair{"customerId", found.One.String()})
		return view.simulate(v, t, asked)
	}
}

// pick offers the customers that a search found.
func (view *simulatorView) pick(v *panelRequest, hits []tillHit) {
	view.Hits, view.Links, view.Nobody = hits, map[id]string{}, len(hits) == 0 && len(v.faults) == 0
	for _, h := range hits {
		view.Links[h.ID] = withQuery("/panel/simulador", append(slices.Clip(v.posted), pair{"cliente", h.ID.String()}))
	}
}

// simulate rehearses the sale: at the moment that was asked for, if that is yet to come;
// else now, as a sale that comes late.
func (view *simulatorView) simulate(v *panelRequest, t *txn, asked bool) error {
	view.At = v.request.now
	if text, _ := v.posted.get("at"); text != "" {
		at, ok := parseTime(text, v.cfg.zone)
		switch {
		case !ok:
			v.faults = append(v.faults, invalidField("at", "debe ser una fecha ISO 8601"))
			asked = false
		case at <= v.request.now:
			v.posted = append(v.posted, pair{"occurredAt", text})
		}
		view.At = max(at, 1)
	}
	cust, _ := v.posted.get("customerId")
	u, _ := parseID(cust)
	act := func(*txn) (any, error) { return simulation{}, nil }
	if asked {
		if _, act = v.read(&simulatorForm); len(v.faults) > 0 {
			asked = false
		}
	}
	c, err := t.customers.get(u)
	if err != nil {
		return err
	}
	view.Customer, view.Contact, view.Currency = c.name(), v.member.contact(c), t.cfg.programNumber(c.Program).Currency
	if !asked {
		return nil
	}
	t.rehearse()
	t.now = max(view.At, t.now)
	t.began = t.now
	done, err := act(t)
	if err != nil {
		v.faults = append(v.faults, allFaults(err)...)
		return nil
	}
	s := done.(simulation)
	view.Done, view.Sale, view.Why = true, s.sale, newWhyView(wordingOf(v, t.cfg), s.why)
	return nil
}
