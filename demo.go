package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sello/internal/disk"
	"sello/internal/fold"
	"sello/internal/password"
)

// sello demo: a sample organization with a made-up year of a café, so that lists, charts, tiers and
// vouchers have something in them. Each thing is written by the domain, at the moment at which it is
// said to have happened: no figure is one that a shop could not have. What people do is what their
// roles may, and has its entry in the audit log, as in the panel.

func demoFlags(c *invocation) {
	serveFlags(c)
	jsonFlag(c)
	c.cardsBeside = true
	c.db = "sello-demo.db"
	c.set.Lookup("db").DefValue = c.db
}

// demoKeyDays is how many days a key that the demo prints is valid.
const demoKeyDays = 7

const (
	demoSlug     = "cafe-luna"
	demoOperator = "sello demo" // no user of a system has a name with a blank
)

// checkDemo refuses a file with an organization unless the sample is in it, made by the
// demo: any other may be real, and must not get a key.
func (c *invocation) checkDemo(ctx context.Context, s *service) error {
	e := s.api.engine
	organizations, err := viewStore(ctx, e.store, organizationCount)
	if err != nil || organizations == 0 {
		return err
	}
	org, err := viewStore(ctx, e.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, demoSlug) })
	if err != nil {
		return err
	}
	own := false
	if org != 0 {
		own, err = read(ctx, e, org, instantOf(e.now()), func(t *txn) (bool, error) {
			n, err := t.count()
			if err != nil || n.Audit == 0 {
				return false, err
			}
			made, err := t.audit.entry(1)
			return err == nil && made.By == creator{Type: byCommand, Actor: demoOperator}, err
		})
	}
	if err == nil && !own {
		err = adminErrorf("%s: tiene datos que no hizo sello demo: elige otro archivo con -db", c.dbName())
	}
	return err
}

// runDemo serves a sample organization. Each start prints a new key, since keys
// are stored only as hashes, and a new link into the panel. Earlier keys work until they expire.
func runDemo(ctx context.Context, c *invocation) error {
	ctx = withOperator(ctx, demoOperator)
	return c.serve(ctx, c.checkDemo, func(s *service) error {
		var madeUp disk.Progress
		d := &demo{engine: s.api.engine, admin: &admin{engine: s.api.engine}, tell: madeUp.Set}
		err := c.progress("inventando un año de ventas").During(madeUp.Done, func() error { return d.prepare(ctx) })
		if err != nil {
			return err
		}
		_, link := c.panelServed(s.listener.Addr())
		started, err := d.start(ctx, s.api.logins, link)
		if err != nil {
			return err
		}
		scheme := "http"
		if c.tlsCert != "" {
			scheme = "https"
		}
		started.Base = scheme + "://" + s.listener.Addr().String() + "/api/v1"
		started.File = c.fullPath()
		return c.print(started, started.tell)
	})
}

type demoStarted struct {
	panelEntry
	Key        string  `json:"key"`
	Base       string  `json:"base"`
	CustomerID id      `json:"customerId"`
	ExpiresAt  instant `json:"expiresAt"`
	File       string  `json:"file"`
}

func (d *demoStarted) tell(w io.Writer) {
	if d.Panel != "" {
		fmt.Fprintf(w, "Café Luna, con un año de ventas inventadas. Su panel, con la cuenta de %s:\n\n  %s\n\n", d.Email, d.Panel)
	}
	if d.Password != "" {
		fmt.Fprintf(w, "Si pide la contraseña: %s\n\n", d.Password)
	}
	fmt.Fprintf(w, `La API, en %[1]s, con una clave válida %[3]d días:

  export SELLO_KEY=%[2]s

  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/customers
  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/points/customers/%[4]s/balance
  curl -H "Authorization: Bearer $SELLO_KEY" -H "Content-Type: application/json" -d '{"customerId":"%[4]s","totalAmount":150}' %[1]s/transactions

Ctrl-C termina; los datos quedan en %[5]s
`, d.Base, d.Key, demoKeyDays, d.CustomerID, d.File)
}

// A demo is the sample organization of a file.
type demo struct {
	engine *engine
	admin  *admin
	tell   func(done float64) // how much of the year is made up, of 1
}

// What the sample has.
const (
	demoSeed      = 1
	demoCustomers = 400
	demoDays      = 365
)

// demoStaff are the people of the sample: an owner, who alone has a password, and then who is at
// the till, in the order of madeUp.staff.
var demoStaff = []struct {
	name, email string
	role        role
}{
	{"Elena Ortiz", "elena@example.com", roleOwner},
	{"Rosa Méndez", "rosa@example.com", roleManager},
	{"Lucía Vega", "lucia@example.com", roleCashier},
	{"Diego Salas", "diego@example.com", roleManager},
}

// prepare makes the sample, unless the file has it.
func (d *demo) prepare(ctx context.Context) error {
	now := instantOf(d.engine.now())
	began := instantOf(now.time().AddDate(0, 0, -demoDays-1))
	slugs, err := d.admin.organizations(ctx, struct{}{})
	if err != nil {
		return err
	}
	if len(slugs) == 0 {
		seed := d.engine.seed()
		if _, err := updateStore(ctx, d.engine.store, func(tx Tx) (*applied, error) {
			return applyDocument(tx, demoDocument, newMint(began, seed), byOperator(ctx), false)
		}); err != nil {
			return err
		}
	}
	org, err := d.admin.organization(ctx, demoSlug)
	if err != nil {
		return err
	}
	had, err := read(ctx, d.engine, org, now, (*txn).count)
	if err != nil || had.Customers > 0 {
		return err
	}
	owner, err := demoPassword(d.engine.seed(), began, password.Iterations)
	if err != nil {
		return err
	}
	_, err = write(ctx, d.engine, org, began, func(t *txn) (any, error) {
		t.by = byOperator(ctx)
		staff, err := addDemoStaff(t, owner)
		if err != nil {
			return nil, err
		}
		return nil, makeUp(demoSeed, demoCustomers, demoDays, now, t.cfg.zone, staff).write(t, d.tell)
	})
	return err
}

// addDemoStaff makes the people of the sample, and returns the ones at the till.
func addDemoStaff(t *txn, owner passwordHash) (atTill []id, err error) {
	for _, s := range demoStaff {
		u := &user{Email: s.email, Name: s.name, Password: owner, Org: t.org}
		if s.role != roleOwner {
			secret := t.secret("password of nobody", 0)
			u.Password.Sum = secret[:]
		}
		if err := t.people.addUser(u); err != nil {
			return nil, err
		}
		if err := t.people.addMember(u.ID, &membership{Role: s.role, Since: t.now, By: t.by}); err != nil {
			return nil, err
		}
		if err := t.audit.note(auditUserJoined, u.ID.String(), []change{{"role", nil, s.role}}); err != nil {
			return nil, err
		}
		if s.role != roleOwner {
			atTill = append(atTill, u.ID)
		}
	}
	return atTill, nil
}

// demoPassword makes a password from the salt of its hash, so that each start can tell it, unless the
// owner has set another.
func demoPassword(s seed, at instant, iterations int) (h passwordHash, err error) {
	h = passwordHash{Iterations: iterations, Salt: s[:password.SaltSize], At: at}
	h.Sum, err = h.derive(demoPasswordOf(&h))
	return h, err
}

func demoPasswordOf(h *passwordHash) string {
	sum := sha256.Sum256(append([]byte(demoOperator), h.Salt...))
	return fmt.Sprintf("%x-%x-%x-%x", sum[:2], sum[2:4], sum[4:6], sum[6:8])
}

// start makes what the person who started the demo needs: a key and, unless panel is "", a link into
// the panel at that address.
func (d *demo) start(ctx context.Context, l *logins, panel string) (*demoStarted, error) {
	now := d.engine.now()
	k, err := d.admin.createKey(ctx, keyRequest{Org: demoSlug, Name: "demo", Expires: now.AddDate(0, 0, demoKeyDays).Format(time.RFC3339)})
	if err != nil {
		return nil, err
	}
	org, err := d.admin.organization(ctx, demoSlug)
	if err != nil {
		return nil, err
	}
	started := &demoStarted{Key: k.Key, ExpiresAt: k.ExpiresAt}
	if started.CustomerID, err = read(ctx, d.engine, org, instantOf(now), func(t *txn) (id, error) {
		c, err := t.customers.at(1)
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	}); err == nil {
		started.panelEntry, err = enterPanel(ctx, d.engine, org, l, panel)
	}
	return started, err
}

// A panelEntry is how the sample's owner gets into the panel.
type panelEntry struct {
	Panel    string `json:"panel,omitempty"` // link that logs the owner in; "" where no panel is served, or the owner is gone
	Email    string `json:"email,omitempty"`
	Password string `json:"password,omitempty"` // "" if the owner has set another one
}

// enterPanel makes a link that logs the owner in to the panel at an address; "": there is none.
func enterPanel(ctx context.Context, e *engine, org uint32, l *logins, panel string) (entry panelEntry, err error) {
	owner, err := read(ctx, e, org, instantOf(e.now()), func(t *txn) (*user, error) {
		u, err := userByEmail(t.Tx, demoStaff[0].email)
		if err != nil || u == nil {
			return nil, err
		}
		m, err := t.people.teammate(u.ID)
		if errors.Is(err, errNotMember) || err == nil && !m.active() {
			return nil, nil
		}
		return u, err
	})
	if err != nil || owner == nil || panel == "" {
		return entry, err
	}
	s := e.seed()
	token := hex.EncodeToString(s[:])
	l.entry.Store(&entryLink{tokenHash(token), owner.ID, org})
	entry.Panel, entry.Email = invitationLink(panel, token), owner.Email
	if first, err := owner.Password.matches(demoPasswordOf(&owner.Password)); err != nil || !first {
		return entry, err
	}
	entry.Password = demoPasswordOf(&owner.Password)
	return entry, nil
}

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

// README looks for the first three; nobody else is called like them.
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

// thief is the person who undoes more sales than the others, and gives points to a friend.
func (h *madeUp) thief() id { return h.staff[len(h.staff)-1] }

// redeem lets a shopper have a reward now and then. A full stamp card redeems itself.
func (h *madeUp) redeem(t *txn, who *shopper) error {
	for _, reward := range t.cfg.Rewards {
		p := t.cfg.programKey(reward.Program)
		if reward.AutoIssue || p.Default && (h.rand.IntN(4) > 0 || who.voucher != nil) {
			continue
		}
		x, err := t.rewards.redeem(who.member, reward.ID, "", nil, givenProof{})
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
