package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestProgramsTogether plays random histories on a customer of several programs, and on one
// model for each program. A purchase goes to the models of the programs in which the
// customer earns at that time, a return to those its purchase went to. After each step
// every account must have the standing of its model.
func TestProgramsTogether(t *testing.T) {
	t.Parallel()
	histories(t, 300, func(t *testing.T, rnd *rand.Rand) {
		h := newTogether(t, rnd)
		for range 1 + rnd.IntN(20) {
			h.turn().wait()
			h.compare("after waiting")
			if rnd.IntN(6) == 0 {
				h.shop.swept()
				h.compare("after the sweep")
			}
			h.compare("after " + h.act())
		}
		h.shop.verified()
		h.shop.swept()
		h.checkStatistics()
	})
}

// together is a history of one customer in several programs.
type together struct {
	t         *testing.T
	rnd       *rand.Rand
	shop      *shop
	documents []programDoc
	programs  []*history
	sold      []soldTogether
}

// A soldTogether is a purchase, with the deed that it is in the model of each program in
// which it counted.
type soldTogether struct {
	sale  *sale
	deeds map[int]int
}

func newTogether(t *testing.T, rnd *rand.Rand) *together {
	begin := time.Date(2016+rnd.IntN(12), time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)
	s := newEmptyShop(t, begin.Format(time.RFC3339))
	t.Cleanup(s.verified)
	if rnd.IntN(2) == 0 {
		s.engine.sizes.few = fewSizes{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
	}
	h := &together{t: t, rnd: rnd, shop: s}
	for range 1 + rnd.IntN(2) {
		h.addProgram()
	}
	h.apply()
	h.apply() // of the same
	cust := s.customer("ana")
	for _, p := range h.programs {
		p.cust = cust
	}
	return h
}

// addProgram adds a program to the document. The first one is the customer's own.
func (h *together) addProgram() {
	d := *randomProgram(h.rnd)
	n := len(h.documents)
	d.Key, d.Name, d.Default = fmt.Sprint("p", n), fmt.Sprint("P", n), n == 0
	d.Join = pick(h.rnd, joinAll, joinAll, joinDefault)
	h.documents = append(h.documents, d)
	added := &history{t: h.t, rnd: h.rnd, shop: h.shop, sales: map[int]*sale{}, redemptions: map[int]id{}}
	if n > 0 {
		added.cust = h.programs[0].cust
	}
	h.programs = append(h.programs, added)
}

// apply applies the document, and gives the models the programs that follow from it.
func (h *together) apply() {
	members, err := json.Marshal(h.documents)
	h.shop.ok(err)
	doc := string(setup{zone: "America/Mexico_City"}.document())
	doc = doc[:strings.Index(doc, `"programs":`)] + `"programs":` + string(members) + "}"
	h.shop.apply([]byte(doc))
	cfg := ask(h.shop, func(t *txn) (*config, error) { return t.cfg, nil })
	for i, p := range h.programs {
		if p.model == nil {
			p.model = &model{zone: cfg.zone}
		}
		p.program = cfg.Programs[i]
	}
}

// earning lists the programs in which the customer earns now.
func (h *together) earning() (list []int) {
	for i := range h.documents {
		if i == 0 || h.documents[i].Join == joinAll {
			list = append(list, i)
		}
	}
	return list
}

func (h *together) turn() *history { return pick(h.rnd, h.programs...) }

// act does one deed and says which.
func (h *together) act() string {
	switch kind := pick(h.rnd, "add", "deduct", "buy", "buy", "buy", "return", "return", "join", "program"); {
	case kind == "add" || kind == "deduct":
		h.move(kind, h.rnd.IntN(len(h.programs)))
		return kind
	case kind == "buy":
		h.buy()
		return kind
	case kind == "return" && len(h.sold) > 0:
		h.bring()
		return kind
	case kind == "join" && h.rnd.IntN(2) == 0:
		p := &h.documents[h.rnd.IntN(len(h.documents))]
		p.Join = pick(h.rnd, joinAll, joinDefault)
		h.apply()
		return kind
	case kind == "program" && len(h.documents) < 4:
		h.addProgram()
		h.apply()
		return kind
	}
	return "nothing"
}

// move adds points to one program, or deducts some there.
func (h *together) move(kind string, i int) {
	p := h.programs[i]
	d := deed{kind: kind, at: h.shop.clock, amount: p.points(60), earning: true, expires: p.program.Expiry.endOfLife(h.shop.clock, p.zone)}
	_, err := do(h.shop, func(t *txn) (any, error) {
		m, change := &movement{Category: categoryBonus, Amount: d.amount}, t.credit
		if kind == "deduct" {
			m.Category, change = categoryAdjustment, t.debit
		}
		return t.movePoints(p.cust, &p.program.ID, m, change)
	})
	p.done = append(p.done, d)
	h.shop.want(err, p.play(h.shop.clock).err)
}

func (h *together) buy() {
	amount := decimal(1 + h.rnd.IntN(int(decimalOf(100))))
	sold := h.shop.buy(h.programs[0].cust, amount.String())
	made := soldTogether{sale: sold, deeds: map[int]int{}}
	var counted []uint32
	for _, i := range h.earning() {
		p := h.programs[i]
		d := deed{kind: "buy", at: h.shop.clock, amount: amount}
		d.lateFrom, d.lateEnd = p.late(d.at)
		made.deeds[i] = len(p.done)
		p.done = append(p.done, d)
		counted = append(counted, p.program.Number)
		earned := p.play(h.shop.clock).bought[made.deeds[i]].earned
		if v := sold.shareIn(p.program.Number); v == nil || v.Earned != earned {
			h.t.Fatalf("the sale's share in %s is %+v, and the model earned %s", p.program.Key, v, earned)
		}
	}
	var kept []uint32
	for v := range sold.shares {
		kept = append(kept, v.Program)
	}
	same(h.t, "programs in which the sale counts, the own one first", kept, counted)
	h.sold = append(h.sold, made)
}

func (h *together) bring() {
	made := pick(h.rnd, h.sold...)
	b := h.programs[0].play(h.shop.clock).bought[made.deeds[0]]
	amount := max(pick(h.rnd, b.total-b.returned, 1+b.total/3, decimal(1+h.rnd.Int64N(int64(b.total)+1))), 1)
	var before = map[int]decimal{}
	for i, of := range made.deeds {
		before[i] = h.programs[i].play(h.shop.clock).bought[of].reversed
	}
	sold, err := h.shop.sell(newSale{Type: typeReturn, Customer: h.programs[0].cust, Total: amount, Original: &made.sale.ID})
	for _, i := range slices.Sorted(maps.Keys(made.deeds)) {
		p := h.programs[i]
		p.done = append(p.done, deed{kind: "return", at: h.shop.clock, amount: amount, of: made.deeds[i]})
		after := p.play(h.shop.clock)
		h.shop.want(err, after.err)
		if err != nil {
			continue
		}
		if v := sold.shareIn(p.program.Number); v == nil || v.Reversed != after.bought[made.deeds[i]].reversed-before[i] {
			h.t.Fatalf("the return's share in %s is %+v", p.program.Key, v)
		}
	}
}

// late returns when the second lot of a purchase becomes available and expires.
func (h *history) late(at instant) (from, end instant) {
	if len(h.program.Rules) < 2 {
		return 0, 0
	}
	rule, local := h.program.Rules[1], at.time().In(h.zone)
	end = h.program.Expiry.endOfLife(at, h.zone)
	if rule.ExpiresInDays > 0 {
		end = instantOf(local.AddDate(0, 0, rule.ExpiresInDays))
	}
	return instantOf(local.AddDate(0, 0, rule.PendingDays)), end
}

func (h *together) compare(when string) {
	h.t.Helper()
	for _, p := range h.programs {
		what := fmt.Sprintf("%s in %s (step %d, %s)", when, p.program.Key, len(p.done), h.shop.clock)
		same(h.t, what, h.shop.standingIn(p.cust, p.program.Number), p.play(h.shop.clock).standing())
	}
}

// standingIn is standing in another program than the customer's own.
func (s *shop) standingIn(cust id, program uint32) standing {
	s.Helper()
	return ask(s, func(t *txn) (standing, error) {
		c, err := t.customer(cust)
		if err != nil {
			return standing{}, err
		}
		a, err := t.account(c, t.cfg.programNumber(program))
		if err != nil {
			return standing{}, err
		}
		list, err := t.expiring(a)
		current, _ := a.tier()
		return standing{a.Balance, a.Pending, a.Lifetime, list, a.figure(), current.name()}, err
	})
}

// checkStatistics compares each program's statistics with its model.
func (h *together) checkStatistics() {
	for i, p := range h.programs {
		found := ask(h.shop, func(t *txn) (*statistics, error) {
			return t.statistics(statsQuery{from: dayOn(2015, 1, 1), to: dayOn(2036, 1, 1), groupBy: groupMonth, program: &p.program.ID})
		})
		played := p.play(h.shop.clock)
		played.moved.PointsExpired = played.expired()
		same(h.t, "points of "+p.program.Key, *found.total.tally.only(true, false), played.moved)
		sales, tier := uint64(0), ""
		if i == 0 || p.program.Join == joinAll {
			sales, tier = uint64(len(h.sold)), played.standing().Tier
		}
		if got := found.total.tally.Purchases; got != sales {
			h.t.Errorf("%d purchases in %s, want %d", got, p.program.Key, sales)
		}
		for _, counted := range found.tiers {
			if want := counted.TierName == tier; counted.Customers > 1 || (counted.Customers == 1) != want {
				h.t.Errorf("%d customers in tier %s of %s, and the customer is in %q", counted.Customers, counted.TierName, p.program.Key, tier)
			}
		}
	}
}
