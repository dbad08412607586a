package main

import (
	"cmp"
	"encoding/json"
	"slices"
)

// A profile is what segment rules look at: a customer's account in its own
// program at one moment.
type profile struct {
	*account
	now instant
}

// segmentFields are the fields a segment rule may name and how to read them
// (contract §9). A date is read as days before now, with fractions. A date that
// the customer lacks is further back than any number of days.
var segmentFields = map[string]struct {
	number func(profile) decimal
	text   func(profile) string
	flag   func(profile) bool
}{
	"totalSpent":        {number: func(p profile) decimal { return p.customer.TotalSpent }},
	"transactionsCount": {number: func(p profile) decimal { return decimalOf(int(p.customer.Purchases)) }},
	"lastTransactionAt": {number: func(p profile) decimal { return p.daysSince(p.customer.LastSaleAt) }},
	"createdAt":         {number: func(p profile) decimal { return p.daysSince(p.customer.CreatedAt) }},
	"balance":           {number: func(p profile) decimal { return p.Balance }},
	"lifetimePoints":    {number: func(p profile) decimal { return p.Lifetime }},
	"tier": {text: func(p profile) string {
		current, _ := p.tier()
		return current.name()
	}},
	"email": {flag: func(p profile) bool { return p.customer.Email != "" }},
	"phone": {flag: func(p profile) bool { return p.customer.Phone != "" }},
}

const millisPerDay = 24 * 60 * 60 * 1000

func (p profile) daysSince(at instant) decimal {
	if at == 0 {
		return maxDecimal
	}
	return decimal(int64(p.now-at) * 10_000 / millisPerDay)
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
func (r *segmentRule) holds(p profile) bool {
	switch {
	case len(r.All) > 0:
		return !slices.ContainsFunc(r.All, func(s segmentRule) bool { return !s.holds(p) })
	case len(r.Any) > 0:
		return slices.ContainsFunc(r.Any, func(s segmentRule) bool { return s.holds(p) })
	case r.Not != nil:
		return !r.Not.holds(p)
	}
	order, err := r.compare(p)
	return err == nil && segmentOps[r.Op](order)
}

func (r *segmentRule) compare(p profile) (int, error) {
	field := segmentFields[r.Field]
	switch {
	case field.number != nil:
		var want decimal
		err := json.Unmarshal(r.Value, &want)
		return cmp.Compare(field.number(p), want), err
	case field.text != nil:
		var want string
		err := json.Unmarshal(r.Value, &want)
		return cmp.Compare(field.text(p), want), err
	default:
		var want bool
		err := json.Unmarshal(r.Value, &want)
		if field.flag(p) == want {
			return 0, err
		}
		return 1, err
	}
}

// segmentsOf are the active segments a customer is in, highest priority
// first; the account is that of its own program.
func (ru *rulesTxn) segmentsOf(a *account) []*segment {
	p := profile{a, ru.t.now}
	var in []*segment
	for _, s := range ru.t.cfg.bySegmentPriority() {
		if s.IsActive && s.Rule.holds(p) {
			in = append(in, s)
		}
	}
	return in
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
