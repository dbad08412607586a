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
	skipShort(t)
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
	begun     instant
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
		s.engine.sizes.inline = inlineLimits{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
	}
	h := &together{t: t, rnd: rnd, shop: s, begun: s.clock}
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
	d := *maybeIdle(h.rnd, randomProgram(h.rnd))
	d.Rules = slices.DeleteFunc(d.Rules, func(r rule) bool { return r.FirstPurchase }) // it looks at sales in all programs
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
			p.model = &model{zone: cfg.zone, enrolled: []instant{h.begun}}
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
		m, change := &movement{Category: categoryBonus, Amount: d.amount}, t.points.credit
		if kind == "deduct" {
			m.Category, change = categoryAdjustment, t.points.debit
		}
		return movePoints(t, p.cust, &p.program.ID, m, change)
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
		c, err := t.customers.get(cust)
		if err != nil {
			return standing{}, err
		}
		a, err := t.points.account(c, t.cfg.programNumber(program))
		if err != nil {
			return standing{}, err
		}
		list, err := t.points.expiring(a)
		current, _ := a.tier()
		return standing{a.Balance, a.Pending, a.Lifetime, a.held(), list, a.figure(), current.name()}, err
	})
}

// checkStatistics compares each program's statistics with its model.
func (h *together) checkStatistics() {
	for i, p := range h.programs {
		found := ask(h.shop, func(t *txn) (*statistics, error) {
			return t.stats.answer(statsQuery{from: dayOn(2015, 1, 1), to: dayOn(2036, 1, 1), groupBy: groupMonth, program: &p.program.ID})
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

// A stampCard is the members of two programs: points, and stamps for everybody.
const stampCard = `"default":true,"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}]},
	{"key":"stamps","name":"Stamps","join":"All","rules":[{"key":"coffee","name":"Coffee","skus":["COFFEE"],"perItem":1}]`

const freeCoffee = `"rewards":[{"key":"tenth","program":"stamps","name":"Tenth coffee","pointsCost":10}]`

// stamps returns the customer's figures in the second program: "balance pending lifetime".
func (s *shop) stamps(cust id) string {
	s.Helper()
	now := s.standingIn(cust, 2)
	return fmt.Sprint(now.Balance, " ", now.Pending, " ", now.Lifetime)
}

// TestStampsAndPointsMixedUp: stamps and points of a customer are never taken for each other.
func TestStampsAndPointsMixedUp(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: stampCard, also: freeCoffee})
	ana := s.customer("ana")
	tenth := func() error {
		_, err := do(s, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
		return err
	}
	first := s.buy(ana, "900", item{"COFFEE", dec("50"), dec("9")}, item{"BREAD", dec("450"), dec("1")})
	s.wantStanding(ana, "90 0 90", "points by amount")
	same(t, "stamps", s.stamps(ana), "9 0 9")
	s.want(tenth(), "insufficient_balance") // 90 points are no stamps
	s.want(func() error {
		_, err := do(s, func(t *txn) (any, error) {
			return movePoints(t, ana, nil, &movement{Amount: dec("1"), Category: categoryBonus}, t.points.credit)
		})
		return err
	}(), "program_required")
	s.buy(ana, "50", item{"COFFEE", dec("50"), dec("1")})
	s.ok(tenth())
	s.wantStanding(ana, "95 0 95", "a reward for stamps costs no points")
	same(t, "stamps", s.stamps(ana), "0 0 10")
	back := s.bring(first, "450", item{"BREAD", dec("450"), dec("1")})
	same(t, "what bread takes back", fmt.Sprint(back.Reversed, " ", back.Others[0].Reversed, " ", back.Others[0].Shortfall), "45 0 0")
	back = s.bring(first, "450", item{"COFFEE", dec("50"), dec("9")})
	same(t, "what coffee takes back", fmt.Sprint(back.Reversed, " ", back.Others[0].Reversed, " ", back.Others[0].Shortfall), "45 0 9")
	s.wantStanding(ana, "5 0 5", "missing stamps cost no points")
	same(t, "stamps", s.stamps(ana), "0 0 1")
}

// TestProgramForAllCosts: a program that everybody joins costs one transaction, as short
// with many customers as with few. Nothing is written for a customer until a sale.
func TestProgramForAllCosts(t *testing.T) {
	t.Parallel()
	before := setup{program: strings.Split(stampCard, "},\n")[0]}
	after := setup{program: stampCard, also: freeCoffee}.document()
	touched := map[int]int{}
	for _, customers := range []int{1, 300} {
		s := newShop(t, before)
		var all []id
		for i := range customers {
			all = append(all, s.customer(fmt.Sprint("c", i)))
		}
		s.buy(all[0], "100", item{"COFFEE", dec("10"), dec("10")})
		kept := s.entries()
		n, err := viewStore(t.Context(), s.engine.store, func(tx Tx) (int, error) {
			counted := &countedTx{Tx: newOverlay(tx)}
			_, err := applyDocument(counted, after, newMint(s.clock, seed{}), creator{}, false)
			return counted.keys(), err
		})
		s.ok(err)
		touched[customers] = n
		s.apply(after)
		ofCustomers := func(list memTx) (kept memTx) {
			for _, e := range list {
				if !strings.ContainsRune("ofABFn", rune(e.Key[0])) { // configuration and its versions, audit log, events, counters
					kept = append(kept, e)
				}
			}
			return kept
		}
		same(t, "what is written for customers", ofCustomers(s.entries()), ofCustomers(kept))
		same(t, "stamps", s.stamps(all[0]), "0 0 0")
		detail := ask(s, func(t *txn) (customerDetail, error) {
			c, err := t.customers.get(all[0])
			if err != nil {
				return customerDetail{}, err
			}
			return newCustomerDetail(t, c)
		})
		if len(detail.Programs) != 2 || detail.Programs[1].Balance != 0 {
			t.Errorf("programs %+v", detail.Programs)
		}
		s.buy(all[0], "10", item{"COFFEE", dec("10"), dec("1")})
		same(t, "stamps", s.stamps(all[0]), "1 0 1")
	}
	if touched[300] != touched[1] || touched[1] > 30 {
		t.Errorf("apply touched %d keys with 300 customers, and %d with one", touched[300], touched[1])
	}
}

// TestSaleWithoutShares: in an organization where no other program is for all, a purchase
// touches as many keys and allocates as much as where there is one program.
func TestSaleWithoutShares(t *testing.T) {
	touched, allocated := map[bool]int{}, map[bool]float64{}
	for _, two := range []bool{false, true} {
		program := strings.Split(stampCard, "},\n")[0]
		if two {
			program = strings.Replace(stampCard, `"join":"All"`, `"join":"Default"`, 1)
		}
		s := newShop(t, setup{program: program})
		ana := s.customer("ana")
		if sold := s.buy(ana, "100", item{"COFFEE", dec("10"), dec("10")}); sold.Others != nil {
			t.Errorf("the sale has other shares: %+v", sold.Others)
		}
		_, err := viewStore(t.Context(), s.engine.store, func(tx Tx) (any, error) {
			sell := func(tx Tx) {
				_, err := runTxn(s.engine, tx, s.org, s.clock, seed{}, func(t *txn) (any, error) {
					_, _, err := t.sales.register(newSale{Customer: ana, Type: typePurchase, Total: decimalOf(10)})
					return nil, err
				})
				s.ok(err)
			}
			counted := &countedTx{Tx: newOverlay(tx)}
			sell(counted)
			touched[two] = counted.keys()
			allocated[two] = testing.AllocsPerRun(20, func() { sell(newOverlay(tx)) })
			return nil, nil
		})
		s.ok(err)
	}
	if touched[true] != touched[false] || touched[true] > 30 {
		t.Errorf("touched %d keys, and %d with a program", touched[true], touched[false])
	}
	if allocated[true] > allocated[false] {
		t.Errorf("allocates %v, and %v with a program", allocated[true], allocated[false])
	}
	t.Logf("%v keys, %v allocations", touched, allocated)
}

// TestSignupTogether: sign-up rules of a program for all fire at enrolment and only then,
// birthday rules for every customer.
func TestSignupTogether(t *testing.T) {
	t.Parallel()
	const signup = `{"key":"hello","name":"Hello","on":"Signup","points":%d}`
	program := func(join string) string {
		return `"default":true,"rules":[` + fmt.Sprintf(signup, 5) + `]},{"key":"stamps","name":"Stamps","join":"` + join + `","rules":[` + fmt.Sprintf(signup, 2) +
			`,{"key":"day","name":"Birthday","on":"Birthday","points":3}]`
	}
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: program(joinDefault)})
	enrol := func(name string) id {
		return must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{Email: name + "@example.com", BirthDate: 19900304})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	early := enrol("early")
	s.apply(setup{program: program(joinAll)}.document())
	late := enrol("late")
	enrol("early")
	same(t, "stamps of the one who was there", s.stamps(early), "0 0 0")
	same(t, "stamps of the new one", s.stamps(late), "2 0 2")
	s.setClock("2026-03-04T20:00:00Z")
	s.swept()
	same(t, "stamps of the one who was there", s.stamps(early), "3 0 3")
	same(t, "stamps of the new one", s.stamps(late), "5 0 5")
	s.wantStanding(late, "5 0 5", "the own program has no birthday rule")
}

// TestRulesTogether: the rules of each program look at the customer as before the sale, and
// have their own tiers and daily limits. A return without a purchase takes back by the per
// rules of each, in its own way.
func TestRulesTogether(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{
		program: `"default":true,"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"maxPerCustomerPerDay":1}]},
			{"key":"other","name":"Other","join":"All","negativeBalance":"Debt","tierBasis":{"metric":"Purchases"},
			"tiers":[{"name":"New","threshold":0},{"name":"Old","threshold":2,"multiplier":2}],
			"rules":[{"key":"base","name":"Base","per":{"amount":1,"points":1},"maxPerCustomerPerDay":2},
			{"key":"first","name":"First","points":100,"firstPurchase":true},
			{"key":"fresh","name":"Fresh","points":1000,"segments":["fresh"]},
			{"key":"old","name":"Old","points":5000,"tiers":["Old"]}]`,
		also: `"segments":[{"key":"fresh","name":"Fresh","isActive":true,"rule":{"all":[{"field":"totalSpent","op":"=","value":0},{"field":"balance","op":"=","value":0}]}}]`,
	})
	ana := s.customer("ana")
	for i, want := range []string{"1 1110  ", "0 10 New Old", "0 5000  ", "0 5000  "} {
		sold := s.buy(ana, "10")
		v := sold.Others[0]
		same(t, fmt.Sprintf("purchase %d earned", i+1), fmt.Sprint(sold.Earned, " ", v.Earned, " ", v.TierFrom, " ", v.TierTo), want)
	}
	back, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("6000")})
	s.ok(err)
	v := back.Others[0]
	same(t, "a return of 600 takes back", fmt.Sprint(back.Reversed, " ", back.Shortfall, " ", v.Reversed, " ", v.Shortfall, " ", v.Balance), "1 599 12000 0 -880")
	s.verified()
}

// TestTiersTogether counts the customers in the tiers of a program for all: those without a
// record there are in the lowest one, and hidden ones in none.
func TestTiersTogether(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: stampCard + `,"tiers":[{"name":"New","threshold":0},{"name":"Old","threshold":2}]`})
	counts := func() string {
		t.Helper()
		return fmt.Sprint(ask(s, func(t *txn) ([]uint64, error) {
			list, err := t.stats.tierCounts(t.cfg.Programs[1:])
			return []uint64{list[0].Customers, list[1].Customers}, err
		}))
	}
	ana, eva := s.customer("ana"), s.customer("eva")
	same(t, "at first", counts(), "[2 0]")
	s.buy(ana, "1", item{"COFFEE", dec("1"), dec("1")})
	same(t, "a stamp", counts(), "[2 0]")
	s.buy(ana, "1", item{"COFFEE", dec("1"), dec("1")})
	same(t, "two stamps", counts(), "[1 1]")
	for i, cust := range []id{eva, ana} {
		must(s, func(t *txn) (any, error) {
			return t.merges.erase(cust)
		})
		same(t, "hidden", counts(), []string{"[0 1]", "[0 0]"}[i])
	}
}
