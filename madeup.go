package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sello/internal/fold"
)

// A made-up year of a café, so that whoever tries sello sees lists, charts, tiers and
// vouchers with something in them. Each thing is written by the domain, at the moment at which
// it is said to have happened: no figure is one that a shop could not have. What people do is
// what their roles may, and has its entry in the audit log, as in the panel.

// A madeUp is the customers of a shop and when they come. It is the same for the same seed
// and moments, but for ids and codes.
type madeUp struct {
	staff    []id // who is at the till by turns; the first and the last one are managers
	zone     *time.Location
	rand     *rand.Rand
	shoppers []shopper
	visits   []shopVisit // in order of time
	done     int         // how many of them are written
	swept    day         // what changes by itself is written up to its beginning
	tickets  int         // how many sales there were
	now      instant
	gap      time.Duration // between two visits, at least
}

// A shopper is a customer, and what to remember between two visits.
type shopper struct {
	enrolment
	habit
	usual   []menuItem  // that are mostly bought
	member  id          // of the customer; zero before the first visit
	bought  *sale       // last
	voucher *redemption // not used yet
}

// A habit is how often somebody comes, and how much is bought then at least.
type habit struct {
	share  int     // of 100 shoppers
	days   float64 // from one visit to the next, on average
	pieces int
}

var habits = []habit{
	{2, 4, 12}, // offices
	{2, 3, 2},
	{9, 10, 2},
	{35, 42, 1},
	{52, 130, 1},
}

// A shopVisit is when a shopper comes.
type shopVisit struct {
	at  instant
	who int // place in shoppers
}

type menuItem struct {
	sku   string
	price int
}

var menu = []menuItem{
	{"CAFE-AMERICANO", 42}, {"CAFE-LATTE", 58}, {"CAFE-CAPUCHINO", 56}, {"CAFE-ESPRESSO", 35}, {"CAFE-MOKA", 64},
	{"TE-CHAI", 55}, {"PAN-CONCHA", 24}, {"PAN-CUERNITO", 32}, {"PAN-DULCE", 22}, {"SANDWICH-JAMON", 89},
	{"PASTEL-ZANAHORIA", 68},
}

// beans are taken home now and then.
var beans = []menuItem{{"GRANO-500", 260}, {"GRANO-250", 145}}

// The first three are those that README looks for; nobody else is called like them.
var firstShoppers = []enrolment{
	{FirstName: "María", LastName: "García", Email: "maria@example.com", Phone: "+525512345678"},
	{FirstName: "José", LastName: "Núñez", Email: "jose@example.com"},
	{FirstName: "Ana", LastName: "López", Phone: "+523312345678"},
}

var (
	givenNames = strings.Fields(`Sofía Valentina Regina Camila Ximena Renata Fernanda Daniela Marisol Andrea Paola Gabriela Lucía Elena
		Isabel Carmen Rosa Patricia Verónica Adriana Santiago Mateo Sebastián Leonardo Emiliano Diego Daniel Alejandro Miguel Ángel
		Carlos Luis Jorge Fernando Ricardo Eduardo Roberto Andrés Pablo Héctor Raúl Óscar`)
	familyNames = strings.Fields(`Hernández Martínez González Rodríguez Pérez Sánchez Ramírez Cruz Flores Gómez Morales Vázquez Jiménez
		Reyes Díaz Torres Gutiérrez Ruiz Mendoza Aguilar Ortiz Castillo Romero Álvarez Méndez Chávez Rivera Juárez Ramos Domínguez
		Herrera Medina Castro Vargas Guzmán Velázquez Rojas Contreras Salazar Luna Ortega Guerrero Estrada Bautista Cortés Soto`)
)

// When the shop is open, by its clock, how far two visits are apart at least, and how many steps
// that is: all of one visit happens before the next. The shop of more than usualCustomers is faster.
const (
	opens          = 8 * time.Hour
	closes         = 20 * time.Hour
	visitGap       = 5 * time.Minute
	stepsInGap     = 10
	usualCustomers = 1000
)

// makeUp makes up the customers and visits of the days before now.
func makeUp(seed uint64, customers, days int, now instant, zone *time.Location, staff []id) *madeUp {
	r := rand.New(rand.NewPCG(seed, 0))
	h := &madeUp{staff: staff, zone: zone, rand: r, now: now, gap: visitGap}
	if customers > usualCustomers {
		h.gap = visitGap * usualCustomers / time.Duration(customers)
	}
	taken := map[time.Time]bool{}
	for i := range customers {
		who := h.newShopper(i)
		h.shoppers = append(h.shoppers, who)
		first := r.IntN(days + 1)
		if i < len(firstShoppers) {
			first = days - i
		}
		for ago := float64(first); ago >= 0; ago -= r.ExpFloat64() * who.days {
			if at := h.opening(now, int(ago), taken); at != 0 && at.add(h.gap) <= now {
				h.visits = append(h.visits, shopVisit{at, i})
			}
		}
	}
	slices.SortFunc(h.visits, func(a, b shopVisit) int { return cmp.Compare(a.at, b.at) })
	return h
}

// newShopper makes somebody up. Of 100 in a row, as many have a habit as its share says. Mail to
// example.com reaches nobody, and no phone in Mexico City begins with 0.
func (h *madeUp) newShopper(i int) shopper {
	r := h.rand
	var who shopper
	for share, at := (37*i+50)%100, 0; share >= 0; at++ {
		who.habit = habits[at]
		share -= who.share
	}
	for range 2 {
		who.usual = append(who.usual, menu[r.IntN(len(menu))])
	}
	if i < len(firstShoppers) {
		who.enrolment = firstShoppers[i]
		return who
	}
	if i%4 > 0 { // whom the till asked
		who.Marketing = answerOf(i%4 > 1)
	}
	given, family := givenNames[r.IntN(len(givenNames))], familyNames[r.IntN(len(familyNames))]
	who.FirstName, who.LastName = given, family+" "+familyNames[r.IntN(len(familyNames))]
	if r.IntN(5) > 0 {
		who.Phone = fmt.Sprintf("+52550%07d", 1000*i+r.IntN(1000))
	}
	if who.Phone == "" || r.IntN(3) > 0 {
		who.Email = fmt.Sprintf("%s.%s%d@example.com", fold.Text(given), fold.Text(family), i)
	}
	if r.IntN(5) < 3 {
		who.BirthDate, _ = parseBirthDate(fmt.Sprintf("%d-%02d-%02d", 1955+r.IntN(50), 1+r.IntN(12), 1+r.IntN(28)))
	}
	return who
}

// opening returns a moment some days ago at which nobody else comes, more often in the morning
// and at the end of the afternoon; 0 if the day is full.
func (h *madeUp) opening(now instant, ago int, taken map[time.Time]bool) instant {
	r := h.rand
	y, m, d := now.time().In(h.zone).AddDate(0, 0, -ago).Date()
	begin := time.Date(y, m, d, 0, 0, 0, 0, h.zone)
	for range 20 {
		peak := []time.Duration{9 * time.Hour, 9 * time.Hour, 14 * time.Hour, 18 * time.Hour}[r.IntN(4)]
		at := peak + time.Duration(r.NormFloat64()*float64(100*time.Minute))
		slot := begin.Add(at.Truncate(h.gap))
		if at < opens || at >= closes || taken[slot] {
			continue
		}
		taken[slot] = true
		return instantOf(slot.Add(time.Duration(r.IntN(60)) * h.gap / 300))
	}
	return 0
}

// write writes all visits into an organization that has nobody yet, and what becomes due
// meanwhile. It tells how much is done, of 1.
func (h *madeUp) write(t *txn, tell func(done float64)) error {
	for more := true; more; {
		var err error
		if more, err = h.writeSome(t, 1); err != nil {
			return err
		}
		if len(h.visits) > 0 {
			tell(float64(h.done) / float64(len(h.visits)))
		}
	}
	return nil
}

// writeSome is write for so many visits at most. It reports whether there are more.
func (h *madeUp) writeSome(t *txn, most int) (more bool, err error) {
	if h.swept == 0 {
		h.swept = dayOf(t.now, h.zone)
	}
	for ; h.done < len(h.visits) && most > 0; most-- {
		v := h.visits[h.done]
		for ; (h.swept + 1).start(h.zone) <= v.at; h.swept++ {
			if err := sweepAt(t, (h.swept + 1).start(h.zone)); err != nil {
				return false, err
			}
		}
		if err := h.visit(t, v); err != nil {
			return false, err
		}
		h.done++
	}
	if h.done < len(h.visits) {
		return true, nil
	}
	return false, sweepAt(t, h.now)
}

// sweepAt does what the server's sweep would at a moment.
func sweepAt(t *txn, at instant) error {
	setNow(t, at)
	t.by = creator{Type: bySystem}
	for _, d := range dueTables() {
		list, err := dueKeys(t, d.of, at, math.MaxInt)
		if err != nil {
			return err
		}
		for _, k := range list {
			if uint32In(k[dueOrg:]) != t.org {
				continue
			}
			if err := t.Delete(k); err != nil {
				return err
			}
			if _, err := d.change(t, k); err != nil {
				return err
			}
		}
	}
	_, err := t.rules.giveBirthdays(math.MaxInt)
	return err
}

// visit lets a shopper come: enrol, perhaps bring something back, buy, redeem.
func (h *madeUp) visit(t *txn, v shopVisit) error {
	r, who := h.rand, &h.shoppers[v.who]
	t.by = creator{Type: byUser, ID: h.atTill(v.at)}
	setNow(t, v.at)
	if who.member == (id{}) {
		c, _, err := t.customers.enrol(who.enrolment)
		if err != nil {
			return err
		}
		who.member = c.ID
		if err := t.audit.note("customer.created", c.ID.String(), nil); err != nil {
			return err
		}
	}
	setNow(t, t.now.add(h.gap/stepsInGap))
	returns := t.by.ID == h.staff[0] || t.by.ID == h.thief() // a cashier may not
	if returns && who.bought != nil && r.IntN(80) == 0 {
		if err := h.bringBack(t, who); err != nil {
			return err
		}
	}
	setNow(t, t.now.add(h.gap/stepsInGap))
	s, err := h.sell(t, who)
	if err != nil {
		return err
	}
	setNow(t, t.now.add(h.gap/stepsInGap))
	if err := h.redeem(t, who); err != nil {
		return err
	}
	mistakes := 100 // one of so many is undone at once
	if t.by.ID == h.thief() {
		mistakes = 10
		if err := h.favour(t); err != nil {
			return err
		}
	}
	who.bought = s
	if !returns || r.IntN(mistakes) > 0 {
		return nil
	}
	setNow(t, t.now.add(h.gap/stepsInGap))
	return who.giveBack(t, s.Total, s.Items)
}

// atTill is who works then: mornings and afternoons, another order each day.
func (h *madeUp) atTill(at instant) id {
	local := at.time().In(h.zone)
	turn := local.YearDay()
	if local.Hour() >= 14 {
		turn++
	}
	return h.staff[turn%len(h.staff)]
}

func (h *madeUp) sell(t *txn, who *shopper) (*sale, error) {
	r := h.rand
	bought := []menuItem{who.usual[r.IntN(len(who.usual))]}
	for len(bought) < who.pieces || r.IntN(2) == 0 {
		bought = append(bought, menu[r.IntN(len(menu))])
	}
	if r.IntN(9) == 0 {
		bought = append(bought, beans[r.IntN(len(beans))])
	}
	h.tickets++
	in := newSale{Customer: who.member, Type: typePurchase, Source: sourcePanel, ExternalID: fmt.Sprintf("A-%05d", h.tickets)}
	total := 0
	for _, m := range bought {
		total += m.price
		if at := slices.IndexFunc(in.Items, func(i item) bool { return i.SKU == m.sku }); at >= 0 {
			in.Items[at].Quantity += decimalOne
			continue
		}
		in.Items = append(in.Items, item{m.sku, decimalOf(m.price), decimalOne})
	}
	in.Total = decimalOf(total)
	if who.voucher != nil && who.voucher.Expires <= t.now {
		who.voucher = nil
	}
	x := who.voucher
	who.voucher = nil
	if x != nil { // its purchase may have been returned
		var err error
		if x, err = t.rewards.redemption(x.ID); err != nil {
			return nil, err
		}
	}
	if x == nil || x.status(t.now) != redemptionIssued {
		s, err := registerAt(t, in, "transaction.created")
		if err == nil && len(s.Given) > 0 {
			who.voucher, err = t.rewards.redemptionAt(s.Given[0].Redemption)
		}
		return s, err
	}
	if off := x.Effect.Amount; in.Total > off {
		in.Total -= off
	}
	s, err := registerAt(t, in, "transaction.created")
	if err == nil {
		_, err = t.rewards.useCode(x.Code, &s.ID)
	}
	if err == nil {
		err = t.audit.note("redemption.used", x.ID.String(), nil)
	}
	return s, err
}

// registerAt is sales.register with the entry in the audit log.
func registerAt(t *txn, in newSale, action string) (*sale, error) {
	s, _, err := t.sales.register(in)
	if err != nil {
		return nil, err
	}
	return s, t.audit.note(action, s.ID.String(), nil)
}

// bringBack returns a piece of what a shopper bought last.
func (h *madeUp) bringBack(t *txn, who *shopper) error {
	i := who.bought.Items[0]
	i.Quantity = decimalOne
	return who.giveBack(t, min(i.Price, who.bought.Total), []item{i})
}

// giveBack returns something of what was bought last, which nothing else is returned of.
func (who *shopper) giveBack(t *txn, total decimal, items []item) error {
	s := who.bought
	who.bought = nil
	_, err := registerAt(t, newSale{Customer: who.member, Type: typeReturn, Total: total, Items: items, Original: &s.ID, Source: sourcePanel}, "transaction.returned")
	return err
}

// thief is who undoes more sales than the others, and gives points to a friend.
func (h *madeUp) thief() id { return h.staff[len(h.staff)-1] }

// redeem lets a shopper have a reward now and then. A full stamp card redeems itself.
func (h *madeUp) redeem(t *txn, who *shopper) error {
	for _, reward := range t.cfg.Rewards {
		p := t.cfg.programKey(reward.Program)
		if reward.AutoIssue || p.Default && (h.rand.IntN(4) > 0 || who.voucher != nil) {
			continue
		}
		x, err := t.rewards.redeem(who.member, reward.ID, "", nil)
		if _, refused := errors.AsType[*apiError](err); refused {
			continue
		}
		if err == nil {
			err = t.audit.note("redemption.created", x.ID.String(), nil)
		}
		if err != nil {
			return err
		}
		if x.status(t.now) == redemptionIssued {
			who.voucher = x
		}
	}
	return nil
}

// favour lets the last of the staff give points to the same customer now and then.
func (h *madeUp) favour(t *txn) error {
	friend := &h.shoppers[min(10, len(h.shoppers)-1)]
	if friend.member == (id{}) || h.rand.IntN(20) > 0 {
		return nil
	}
	given, err := movePoints(t, friend.member, &t.cfg.defaultProgram().ID, &movement{Category: categoryBonus, Amount: decimalOf(60), Comment: "Cortesía"}, t.keys.give)
	if err != nil {
		return err
	}
	return t.audit.note("points.added", friend.member.String(), movedBy(given))
}
