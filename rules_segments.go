package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What rules ask for: segments of customers, and the items and labels of sales.

// A profile is what segment rules look at: a customer at one moment, and its accounts as far as
// a rule asks for them.
type profile struct {
	t        *txn
	customer *customer
	own      *account // in its own program; nil until a rule asks
	whole    bool     // own is the account itself; else it has the head of the record alone
	err      error    // the first one of reading
}

func (p *profile) fail(err error) { p.err = cmp.Or(p.err, err) }

// head is the own account, perhaps with its figures alone.
func (p *profile) head() *account {
	if p.own == nil {
		a, err := p.t.points.head(p.customer, p.t.cfg.programNumber(p.customer.Program))
		p.fail(err)
		p.own = &a
	}
	return p.own
}

// account is the own account, with its lots.
func (p *profile) account() *account {
	if !p.whole {
		a, err := p.t.points.account(p.customer, p.t.cfg.programNumber(p.customer.Program))
		if err != nil {
			p.fail(err)
			return p.head()
		}
		p.own, p.whole = a, true
	}
	return p.own
}

// unknown stands for a number that a customer does not have. It differs from every number, and
// is neither more nor less.
const unknown = decimal(math.MinInt64)

// A segmentField is how a field of a segment rule is read, by one of the functions.
type segmentField struct {
	number func(*profile) decimal
	text   func(*profile) string
	flag   func(*profile) bool
	value  func(*profile) string // an attribute, as JSON; "" if the customer lacks it
	reads  int                   // what it costs beside the customer: readsHead, readsOther or readsLots
}

// What reading a field costs, in order.
const (
	readsHead  = 1 // of the own account's record
	readsOther = 2 // the head of another one
	readsLots  = 3 // the whole own account
)

// segmentFields are the fields that a segment rule may name, beside fields that begin with
// a prefix (contract §9, §23). A date is read as days before now, with fractions. A date that
// the customer lacks is further back than any number of days.
var segmentFields = map[string]segmentField{
	"totalSpent":        {number: func(p *profile) decimal { return p.customer.TotalSpent }},
	"transactionsCount": {number: func(p *profile) decimal { return decimalOf(int(p.customer.Purchases)) }},
	"lastTransactionAt": {number: func(p *profile) decimal { return p.daysSince(p.customer.LastSaleAt) }},
	"createdAt":         {number: func(p *profile) decimal { return p.daysSince(p.customer.CreatedAt) }},
	"birthMonth":        {number: (*profile).birthMonth},
	"balance":           {number: func(p *profile) decimal { return p.head().Balance }, reads: readsHead},
	"lifetimePoints":    {number: func(p *profile) decimal { return p.head().Lifetime }, reads: readsHead},
	"expiringWithin":    {number: (*profile).expiringWithin, reads: readsLots},
	"tier": {text: func(p *profile) string {
		current, _ := p.head().tier()
		return current.name()
	}, reads: readsHead},
	"email": {flag: func(p *profile) bool { return p.customer.Email != "" }},
	"phone": {flag: func(p *profile) bool { return p.customer.Phone != "" }},

	"marketing": {flag: func(p *profile) bool { return p.customer.Marketing.Answer == consentGiven }},
}

// What fields begin with that go on with the name of an attribute, or the key of a program.
const (
	attributeField = "attributes."
	pointsField    = "points:"
)

func segmentFieldOf(name string) (f segmentField, known bool) {
	if attribute, is := strings.CutPrefix(name, attributeField); is {
		return segmentField{value: func(p *profile) string { return p.attribute(attribute) }}, isAttributeName(attribute)
	}
	if program, is := strings.CutPrefix(name, pointsField); is {
		return segmentField{number: func(p *profile) decimal { return p.pointsIn(program) }, reads: readsOther}, true
	}
	f, known = segmentFields[name]
	return f, known
}

const millisPerDay = 24 * 60 * 60 * 1000

func (p *profile) daysSince(at instant) decimal {
	if at == 0 {
		return maxDecimal
	}
	return decimal(int64(p.t.now-at) * 10_000 / millisPerDay)
}

// birthMonth is 1 for January.
func (p *profile) birthMonth() decimal {
	if p.customer.BirthDate == 0 {
		return unknown
	}
	return decimalOf(int(p.customer.BirthDate.month()))
}

// expiringWithin is in how many of the organization's days the first of the points that are
// available in the own program expire or lapse: 0 if that is today.
func (p *profile) expiringWithin() decimal {
	first, err := p.t.points.expiringFrom(p.account(), p.t.now, 1)
	p.fail(err)
	if len(first) == 0 {
		return unknown
	}
	return decimalOf(int(p.t.dayOf(first[0].ExpiresAt) - p.t.dayOf(p.t.now)))
}

func (p *profile) pointsIn(key string) decimal {
	in := p.t.cfg.programKey(key)
	if in == nil {
		return unknown // the document's check lets none pass
	}
	if in.Number == p.customer.Program {
		return p.head().Balance
	}
	a, err := p.t.points.head(p.customer, in)
	p.fail(err)
	return a.Balance
}

// attribute is the value of an attribute as JSON, "" without.
func (p *profile) attribute(name string) string {
	for _, a := range p.customer.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// segmentOps are the comparisons. Texts and flags have only = and !=.
var segmentOps = map[string]func(int) bool{
	"=":  func(c int) bool { return c == 0 },
	"!=": func(c int) bool { return c != 0 },
	"<":  func(c int) bool { return c < 0 },
	"<=": func(c int) bool { return c <= 0 },
	">":  func(c int) bool { return c > 0 },
	">=": func(c int) bool { return c >= 0 },
}

// holds reports whether a profile meets the rule, which has passed the document's
// check.
func (r *segmentRule) holds(p *profile) bool {
	switch {
	case len(r.All) > 0:
		return !slices.ContainsFunc(r.All, func(s segmentRule) bool { return !s.holds(p) })
	case len(r.Any) > 0:
		return slices.ContainsFunc(r.Any, func(s segmentRule) bool { return s.holds(p) })
	case r.Not != nil:
		return !r.Not.holds(p)
	}
	order, known := r.compare(p)
	if !known {
		return r.Op == "!="
	}
	return segmentOps[r.Op](order)
}

// compare compares what a profile has with the rule's value. known is false if it has nothing
// that can be compared with it.
func (r *segmentRule) compare(p *profile) (order int, known bool) {
	field, _ := segmentFieldOf(r.Field)
	switch {
	case field.number != nil:
		var want decimal
		p.fail(json.Unmarshal(r.Value, &want))
		has := field.number(p)
		return cmp.Compare(has, want), has != unknown
	case field.text != nil:
		var want string
		p.fail(json.Unmarshal(r.Value, &want))
		return cmp.Compare(field.text(p), want), true
	case field.value != nil:
		return compareAttribute(field.value(p), string(r.Value))
	}
	var want bool
	p.fail(json.Unmarshal(r.Value, &want))
	if field.flag(p) == want {
		return 0, true
	}
	return 1, true
}

// compareAttribute compares an attribute with a value of a rule, both as JSON. They are
// comparable if both are texts, both numbers, or both true or false.
func compareAttribute(has, want string) (order int, comparable bool) {
	if has == "" || kindOfJSON(has) != kindOfJSON(want) {
		return 0, false
	}
	if kindOfJSON(has) != '0' { // one value may be spelled in several ways in a document
		var a, b any
		if json.Unmarshal([]byte(has), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
			return 0, false
		}
		if a == b {
			return 0, true
		}
		return 1, true
	}
	a, err := parseDecimal(has)
	b, _ := parseDecimal(want)
	if err != nil { // it has more digits than points and money, and is read as clients read it
		x, _ := strconv.ParseFloat(has, 64)
		y, _ := strconv.ParseFloat(want, 64)
		return cmp.Compare(x, y), true
	}
	return cmp.Compare(a, b), true
}

// kindOfJSON is '"' for a text, 't' for true or false, and '0' for a number.
func kindOfJSON(value string) byte {
	switch value[0] {
	case '"':
		return '"'
	case 't', 'f':
		return 't'
	}
	return '0'
}

// comparisons yields the comparisons that the rule consists of, by the path of each; path is that
// of the rule.
func (r *segmentRule) comparisons(path string) iter.Seq2[string, *segmentRule] {
	return func(yield func(string, *segmentRule) bool) { r.eachComparison(path, yield) }
}

func (r *segmentRule) eachComparison(path string, yield func(string, *segmentRule) bool) (more bool) {
	if r.Field != "" {
		return yield(path, r)
	}
	for i := range r.All {
		if !r.All[i].eachComparison(fmt.Sprintf("%s.all[%d]", path, i), yield) {
			return false
		}
	}
	for i := range r.Any {
		if !r.Any[i].eachComparison(fmt.Sprintf("%s.any[%d]", path, i), yield) {
			return false
		}
	}
	return r.Not == nil || r.Not.eachComparison(path+".not", yield)
}

// cheapFirst is the rule with what costs little to read before what costs more, for trying it on
// many customers.
func (r *segmentRule) cheapFirst() segmentRule {
	sorted := *r
	list := func(rules []segmentRule) []segmentRule {
		var all []segmentRule
		for i := range rules {
			all = append(all, rules[i].cheapFirst())
		}
		slices.SortStableFunc(all, func(a, b segmentRule) int { return a.reads() - b.reads() })
		return all
	}
	sorted.All, sorted.Any = list(r.All), list(r.Any)
	if r.Not != nil {
		sorted.Not = new(r.Not.cheapFirst())
	}
	return sorted
}

// reads is what the rule costs at most.
func (r *segmentRule) reads() (most int) {
	if r.Field != "" {
		field, _ := segmentFieldOf(r.Field)
		return field.reads
	}
	if r.Not != nil {
		return r.Not.reads()
	}
	for _, list := range [][]segmentRule{r.All, r.Any} {
		for i := range list {
			most = max(most, list[i].reads())
		}
	}
	return most
}

// segmentsOf are the active segments a customer is in, highest priority
// first; the account is that of its own program.
func (ru *rulesTxn) segmentsOf(a *account) ([]*segment, error) {
	p := &profile{t: ru.t, customer: a.customer, own: a, whole: true}
	var in []*segment
	for _, s := range ru.t.cfg.bySegmentPriority() {
		if s.IsActive && s.Rule.holds(p) {
			in = append(in, s)
		}
	}
	return in, p.err
}

// members returns a page of the customers in a segment. An inactive one has nobody.
func (ru *rulesTxn) members(s *segment, after uint64, limit int) (found []id, next uint64, err error) {
	if !s.IsActive {
		return nil, 0, nil
	}
	rule := s.Rule.cheapFirst()
	w := walk{after: after, limit: limit, member: func(c *customer) (bool, error) {
		p := &profile{t: ru.t, customer: c}
		in := rule.holds(p)
		return in, p.err
	}}
	if rule.reads() > 0 {
		w.warm = append(w.warm, func(u id) key { return ru.t.scratchKey(u, partAccount).u32(ru.t.cfg.defaultProgram().Number) })
	}
	return ru.t.customers.page(w)
}

// bySegmentPriority lists the segments, highest priority first, then by key.
func (c *config) bySegmentPriority() []*segment {
	return slices.SortedFunc(slices.Values(c.Segments), func(a, b *segment) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Key, b.Key))
	})
}

func keysOf(segments []*segment) []string {
	keys := make([]string, len(segments))
	for i, s := range segments {
		keys[i] = s.Key
	}
	return keys
}

// Labels of sales: what a till says of a sale, as how it was paid (contract §21).

// A label is a text under a name of the till's own: pago, efectivo.
type label struct{ Name, Value string }

// Bounds of a sale's labels; lengths are in characters.
const (
	maxLabels     = 10
	maxLabelName  = 40
	maxLabelValue = 100
)

// labelMark stands between name and value where the panel shows labels.
const labelMark = ": "

func (l *label) fields(c *coder) { c.text(&l.Name); c.text(&l.Value) }

// isSound reports whether name and value are there, within their bounds and without control
// characters, trimmed.
func (l label) isSound() bool {
	return isLabelText(l.Name, maxLabelName) && isLabelText(l.Value, maxLabelValue)
}

func isLabelText(text string, most int) bool {
	return text != "" && utf8.RuneCountInString(text) <= most && trimBlanks(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return forbidden(r) || unicode.IsControl(r) })
}

// saleLabels are the labels of a sale, in the order of their names. In JSON they are an object.
type saleLabels []label

// newSaleLabels returns labels as a sale keeps them. A label that is not sound, one too many, and a
// name that is there twice once it is trimmed are labels_invalid.
func newSaleLabels(list ...label) (saleLabels, error) {
	kept := make(saleLabels, len(list))
	for i, l := range list {
		kept[i] = label{trimBlanks(l.Name), trimBlanks(l.Value)}
	}
	slices.SortFunc(kept, func(a, b label) int { return cmp.Compare(a.Name, b.Name) })
	distinct := slices.CompactFunc(slices.Clone(kept), func(a, b label) bool { return a.Name == b.Name })
	if len(kept) > maxLabels || len(distinct) < len(kept) || slices.ContainsFunc(kept, func(l label) bool { return !l.isSound() }) {
		return nil, newError(codeLabelsInvalid).on("labels")
	}
	return kept, nil
}

// labelsIn returns the labels that a JSON object tells. A value that is no text is labels_invalid.
func labelsIn(members object) (saleLabels, error) {
	list := make([]label, len(members))
	for i, m := range members {
		text, _, _ := cutString(m.value) // "", which is not sound, if it is no text
		list[i] = label{m.name, text}
	}
	return newSaleLabels(list...)
}

// areSound reports whether newSaleLabels could have made these labels.
func (v saleLabels) areSound() bool {
	kept, err := newSaleLabels(v...)
	return err == nil && slices.Equal(kept, v)
}

func (v saleLabels) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, l := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(append(appendJSONString(b, l.Name), ':'), l.Value)
	}
	return append(b, '}')
}

func (v saleLabels) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

// meet reports whether the labels have one of the values asked for under each of the names. Letter
// case does not matter.
func (v saleLabels) meet(asked map[string][]string) bool {
	for name, values := range asked {
		if !slices.ContainsFunc(v, func(l label) bool {
			return strings.EqualFold(l.Name, name) && slices.ContainsFunc(values, func(value string) bool { return strings.EqualFold(l.Value, value) })
		}) {
			return false
		}
	}
	return true
}

// An item is one line of a sale.
type item struct {
	SKU      string  `json:"sku"`
	Price    decimal `json:"price"` // of one
	Quantity decimal `json:"quantity"`
}

func (v item) appendJSON(b []byte) []byte {
	b = appendJSONString(append(b, `{"sku":`...), v.SKU)
	b = v.Price.append(append(b, `,"price":`...))
	b = v.Quantity.append(append(b, `,"quantity":`...))
	return append(b, '}')
}
