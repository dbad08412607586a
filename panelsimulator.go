package main

import (
	"slices"
)

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

// simulateSale registers a sale.
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

// A simulatorView is the form, and what came of it.
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
	find := v.find(found)
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
		return v.simulate(t, view, asked)
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
func (v *panelRequest) simulate(t *txn, view *simulatorView, asked bool) error {
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
	view.Customer, view.Contact, view.Currency = c.name(), v.contact(c), t.cfg.programNumber(c.Program).Currency
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
