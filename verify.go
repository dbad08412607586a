package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// verify recomputes everything that follows from something else (balances
// and lots from the movements; totals, counters, lists and indexes from the
// records) and says what differs. It reads and changes nothing.
//
// Each record is asked for what must be there because of it, and what must be
// there is counted, table by table. Where all is found and a table has as
// many entries as were found, it has no others.

// A verification is what was looked at and what was wrong.
type verification struct {
	Organizations uint64   `json:"organizations"`
	Customers     uint64   `json:"customers"`
	Movements     uint64   `json:"movements"`
	Sales         uint64   `json:"sales"`
	Redemptions   uint64   `json:"redemptions"`
	Problems      []string `json:"problems"`

	Ledgers []ledgerState `json:"ledgers"`
}

// maxProblems bounds the list; a file that has more is as wrong.
const maxProblems = 1000

type verifier struct {
	*txn
	report *verification

	expected   map[string]uint64    // entries of a table, as whole is told
	given      map[id]map[id]uint64 // standing redemptions by reward and customer
	days       map[programDay]*tally
	active     map[string]blockSet // by the key of the set
	tiers      map[programTier]uint64
	recounting bool // tiers are being counted anew: no telling yet what they should be
}

type programTier struct {
	program uint32
	tier    string
}

// verify also checks that the ledgers go on from where they were earlier.
func verify(tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return verifyWith(usualSizes(), tx, now, earlier)
}

func verifyWith(s sizes, tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	report := &verification{Problems: []string{}, Ledgers: []ledgerState{}}
	n, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return nil, err
	}
	report.Organizations = n
	e := &engine{sizes: s}
	identities, dues, keys := uint64(0), uint64(0), uint64(0)
	for org := range uint32(n) {
		t, err := e.inTxn(tx, org+1, now, seed{})
		if err != nil {
			return nil, err
		}
		c, err := t.count()
		if err != nil {
			return nil, err
		}
		t.now = max(now, c.Latest) // the clock may have been set back since what is written
		v := &verifier{
			txn: t, report: report, expected: map[string]uint64{}, given: map[id]map[id]uint64{},
			days: map[programDay]*tally{}, active: map[string]blockSet{}, tiers: map[programTier]uint64{},
		}
		if _, v.recounting, err = getUint(tx, orgKey('q', t.org)); err != nil {
			return nil, err
		}
		if err := v.organization(); err != nil {
			return nil, err
		}
		if err := v.ledger(earlier); err != nil {
			return nil, err
		}
		identities += v.expected["identities"]
		dues += v.expected["due"]
		keys += v.expected["API keys"]
	}
	v := &verifier{txn: &txn{Tx: tx}, report: report}
	for _, e := range earlier {
		if !slices.ContainsFunc(report.Ledgers, func(l ledgerState) bool { return l.Organization == e.Organization }) {
			v.problem("%s: la organización no está", e.Organization)
		}
	}
	for _, table := range []struct {
		name   string
		prefix key
		want   uint64
	}{
		{"identities", newKey('p'), identities},
		{"due", newKey('d'), dues},
		{"API keys", newKey('a'), keys},
		{"slugs", newKey('o').byte('s'), n},
	} {
		if err := v.whole(table.name, table.prefix, table.want); err != nil {
			return nil, err
		}
	}
	return report, v.strays(uint32(n))
}

// strays looks for entries of a table or an organization that there is not.
func (v *verifier) strays(organizations uint32) error {
	for e, err := range v.Scan([]byte{0}, nil, false) {
		if err != nil {
			return err
		}
		k := e.Key
		var org []byte // the rest of the key from there on
		switch {
		case strings.IndexByte("vapdu", k[0]) >= 0, string(k) == "on", bytes.HasPrefix(k, []byte("os")):
			continue
		case bytes.HasPrefix(k, []byte("oc")):
			org = k[2:]
		case strings.IndexByte("cmtriIqknlTRwxsghejfyzb", k[0]) >= 0:
			org = k[1:]
		}
		if len(org) < 4 || uint32In(org)-1 >= organizations {
			v.problem("entrada que no es de nada: %x", k)
		}
	}
	return nil
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		prefix := ""
		if v.cfg != nil {
			prefix = v.cfg.Organization.Slug + ": "
		}
		v.report.Problems = append(v.report.Problems, prefix+fmt.Sprintf(format, args...))
	}
}

// equal reports a difference between what is kept and what it should be.
func equal[T comparable](v *verifier, what string, kept, should T) {
	if kept != should {
		v.problem("%s: es %v y debería ser %v", what, kept, should)
	}
}

// has looks for an entry that must be there and counts it to its table.
func (v *verifier) has(table string, k key, value []byte, what string) error {
	v.expected[table]++
	kept, ok, err := v.Get(k)
	if err != nil {
		return err
	}
	if !ok || !bytes.Equal(kept, value) {
		v.problem("%s: falta o difiere en %s", what, table)
	}
	return nil
}

// whole checks that a table has as many entries as were found in it.
func (v *verifier) whole(table string, prefix key, want uint64) error {
	var n uint64
	for _, err := range scan(v.Tx, prefix, false) {
		if err != nil {
			return err
		}
		n++
	}
	equal(v, "entradas de "+table, n, want)
	return nil
}

func numberValue(n uint64) []byte { return key(nil).u64(n) }

func (v *verifier) organization() error {
	slug := v.cfg.Organization.Slug
	if err := v.has("slugs", newKey('o').byte('s').text(slug), numberValue(uint64(v.org)), slug); err != nil {
		return err
	}
	if err := v.customers(); err != nil {
		return err
	}
	if err := v.allSales(); err != nil {
		return err
	}
	if err := v.redemptions(); err != nil {
		return err
	}
	if err := v.searchIndex(); err != nil {
		return err
	}
	if err := v.statistics(); err != nil {
		return err
	}
	if err := v.apiKeys(); err != nil {
		return err
	}
	n, err := v.count()
	if err != nil {
		return err
	}
	equal(v, "contador de clientes", n.Customers, v.expected["customers"])
	equal(v, "contador de movimientos", n.Movements, v.expected["movements"])
	equal(v, "contador de ventas", n.Sales, v.expected["sales of customers"])
	equal(v, "contador de compras", n.Purchases, v.expected["purchases"])
	equal(v, "contador de devoluciones", n.Returns, v.expected["returns"])
	equal(v, "contador de canjes", n.Redemptions, v.expected["redemptions"])
	v.report.Customers += n.Customers
	v.report.Movements += n.Movements
	v.report.Sales += n.Sales
	v.report.Redemptions += n.Redemptions
	list := orgKey('l', v.org)
	for _, table := range []struct {
		name   string
		prefix key
	}{
		{"movements", orgKey('m', v.org)},
		{"sales of customers", orgKey('t', v.org)},
		{"redemptions", orgKey('r', v.org)},
		{"customers", slices.Clone(list).byte('c')},
		{"purchases", slices.Clone(list).byte('p')},
		{"returns", slices.Clone(list).byte('r')},
		{"sales by id", orgKey('T', v.org)},
		{"redemptions by id", orgKey('R', v.org)},
		{"codes", orgKey('w', v.org)},
		{"externalIds", orgKey('x', v.org)},
		{"reward counts", orgKey('s', v.org)},
		{"search index", orgKey('g', v.org)},
		{"key list", orgKey('k', v.org)},
		{"sales by time", orgKey('h', v.org)},
		{"slots of time", orgKey('e', v.org)},
		{"sale log", orgKey('j', v.org)},
		{"customers' totals", orgKey('f', v.org)},
		{"tallies", orgKey('y', v.org)},
		{"active customers", orgKey('z', v.org)},
		{"tiers", orgKey('b', v.org)},
		{"customer records", orgKey('c', v.org)},
	} {
		if err := v.whole(table.name, table.prefix, v.expected[table.name]); err != nil {
			return err
		}
	}
	return nil
}

// customers checks every customer with its accounts.
func (v *verifier) customers() error {
	for e, err := range scan(v.Tx, orgKey('c', v.org), false) {
		if err != nil {
			return err
		}
		cust, part := id(e.Key[5:21]), e.Key[21]
		switch part {
		case partCustomer:
			c, err := v.customer(cust)
			if err != nil {
				return err
			}
			if err := v.oneCustomer(c); err != nil {
				return err
			}
		case partRuleUse:
			v.expected["customer records"]++ // follows from rules that may have changed since
		}
	}
	return nil
}

func (v *verifier) oneCustomer(c *customer) error {
	what := "cliente " + c.ID.String()
	v.expected["customer records"]++
	if err := v.has("customers", orgKey('l', v.org).byte('c').u64(c.Number), c.ID[:], what); err != nil {
		return err
	}
	for kind, value := range c.identities() {
		w := writer{b: []byte{recordVersion}}
		(&identity{c.ID, c.Person}).encode(&w)
		if err := v.has("identities", identityKey(kind, value).u32(v.org), w.b, what); err != nil {
			return err
		}
	}
	v.dayOf(c.Program, c.CreatedAt).NewCustomers++
	h, err := v.sales(c)
	if err != nil {
		return err
	}
	equal(v, what+": total gastado", c.TotalSpent, h.spent)
	equal(v, what+": compras", c.Purchases, h.purchases)
	equal(v, what+": compras en total", c.PurchasesTotal, h.purchasesTotal)
	equal(v, what+": última compra", c.LastSaleAt, h.last)
	equal(v, what+": cadena de ventas", fmt.Sprint(c.Sales), fmt.Sprint(h.chain))
	for _, p := range v.cfg.Programs {
		if err := v.account(c, p, h); err != nil {
			return err
		}
	}
	for _, s := range h.all {
		v.salePoints(s, h.moved[s.ID])
	}
	return nil
}

// salePoints compares the points that a sale tells of with its movements.
func (v *verifier) salePoints(s *sale, moved saleMovements) {
	what := "venta " + s.ID.String()
	if moved.any {
		equal(v, what+": saldo", s.Balance, moved.balance)
	}
	if s.Type != typePurchase {
		equal(v, what+": puntos devueltos", s.Reversed, -moved.points)
		return
	}
	var byRule, byItem decimal
	for _, r := range s.Rules {
		byRule += r.Points
	}
	for _, l := range s.Lines {
		byItem += l.Points
	}
	equal(v, what+": puntos ganados", s.Earned, moved.points)
	equal(v, what+": puntos ganados por reglas", byRule, s.Earned)
	if len(s.Lines) > 0 {
		equal(v, what+": puntos ganados por artículos", byItem, s.Earned)
	}
	equal(v, what+": puntos vencidos", s.Expired, moved.expired)
	equal(v, what+": puntos pendientes", s.Pending, moved.pending)
	equal(v, what+": lotes pendientes", fmt.Sprint(s.PendingLot), fmt.Sprint(moved.lots))
}

// A saleHistory is what a customer's sales add up to.
type saleHistory struct {
	chain          chain
	spent          decimal
	purchases      uint64
	purchasesTotal uint64
	last           instant
	unearned       decimal
	all            map[id]*sale
	moved          map[id]saleMovements
}

// saleMovements are what a sale's movements add up to.
type saleMovements struct {
	any             bool
	points, pending decimal
	expired         decimal
	lots            []pendingRef
	balance         decimal // after the last
}

// chainOf lists where the records of a chain are, oldest first.
func chainOf(c chain, linkAt func(uint64) (link, error)) ([]uint64, error) {
	var seqs []uint64
	for seq := c.last(); seq != 0 && uint64(len(seqs)) <= c.N; {
		seqs = append(seqs, seq)
		l, err := linkAt(seq)
		if err != nil {
			return nil, err
		}
		seq = l.Prev
	}
	slices.Reverse(seqs)
	return seqs, nil
}

func (v *verifier) sales(c *customer) (*saleHistory, error) {
	h := &saleHistory{all: map[id]*sale{}, moved: map[id]saleMovements{}}
	seqs, err := chainOf(c.Sales, v.linkAt)
	if err != nil {
		return nil, err
	}
	replayed := map[id]*sale{} // purchases, with their returns counted again
	for _, seq := range seqs {
		s, err := v.saleAt(seq)
		if err != nil {
			return nil, err
		}
		what := "venta " + s.ID.String()
		equal(v, what+": cliente", s.Customer, c.ID)
		equal(v, what+": enlace", s.Link, h.chain.append(seq))
		h.all[s.ID] = s
		v.expected["sales of customers"]++
		v.dayOf(s.Program, s.CreatedAt).countSale(s)
		if s.Type == typePurchase {
			h.spent += s.Total
			h.purchases++
			h.purchasesTotal++
			h.last = max(h.last, s.CreatedAt)
			v.countActive(s.Program, c.Number, dayOf(s.CreatedAt, v.cfg.zone))
			fresh := *s
			fresh.Returned, fresh.ReturnedByAmount, fresh.Reversed, fresh.Unearned = 0, 0, 0, 0
			fresh.Lines = slices.Clone(s.Lines)
			for i := range fresh.Lines {
				fresh.Lines[i].Returned = 0
			}
			replayed[s.ID] = &fresh
			continue
		}
		h.spent -= s.Total
		h.unearned += s.Unearned
		if again := replayed[s.Previous]; again != nil {
			before := again.whollyReturned()
			if !again.countReturn(s) {
				v.problem("%s: devuelve más de lo comprado", what)
			}
			again.Reversed += s.Reversed
			again.Unearned += s.Unearned
			if !before && again.whollyReturned() {
				h.purchases--
			}
		} else if s.Previous != (id{}) {
			v.problem("%s: su compra %s no es del cliente", what, s.Previous)
		}
	}
	for saleID, again := range replayed {
		s, what := h.all[saleID], "venta "+saleID.String()
		equal(v, what+": devuelto", s.Returned, again.Returned)
		equal(v, what+": devuelto por importe", s.ReturnedByAmount, again.ReturnedByAmount)
		equal(v, what+": devuelto por artículo", fmt.Sprint(s.Lines), fmt.Sprint(again.Lines))
		equal(v, what+": puntos devueltos", s.Reversed, again.Reversed)
		equal(v, what+": puntos no ganados", s.Unearned, again.Unearned)
		if s.Unearned > s.Earned || s.Reversed > s.Earned {
			v.problem("%s: se devolvió más de lo que hubo", what)
		}
	}
	return h, nil
}

// account replays an account's movements and compares what they lead to.
func (v *verifier) account(c *customer, p *program, h *saleHistory) error {
	a, err := v.storedAccount(c, p)
	if err != nil {
		return err
	}
	_, kept, err := v.Get(v.accountKey(a.customer, a.program))
	if err != nil {
		return err
	}
	if kept {
		v.expected["customer records"]++
	}
	what := fmt.Sprintf("cuenta %s/%s", c.ID, p.Key)
	seqs, err := chainOf(a.Movements, func(seq uint64) (link, error) {
		m, err := v.movement(seq)
		if err != nil {
			return link{}, fmt.Errorf("%s: movimiento %d: %w", what, seq, err)
		}
		return m.Link, nil
	})
	if err != nil {
		return err
	}
	r := replayer{v: v, what: what, lots: map[uint64]*lot{}}
	var movements chain
	var earned decimal
	var last ledgerHash
	broken := false
	sales := map[uint64]id{} // what each credit of a sale belongs to
	if c.Program == p.Number {
		earned = -h.unearned
		if kept {
			v.tiers[programTier{p.Number, a.Tier}]++
			if current, _ := a.tier(); !v.recounting {
				equal(v, what+": nivel", a.Tier, current.name())
			}
		} else {
			v.problem("%s: falta", what)
		}
	}
	for _, seq := range seqs {
		m, err := v.movement(seq)
		if err != nil {
			return err
		}
		v.expected["movements"]++
		name := m.id().String()
		v.dayOf(m.Program, m.CreatedAt).countMovement(m)
		if m.Customer != c.ID || m.Program != p.Number {
			v.problem("%s: el movimiento %s no es suyo", what, name)
		}
		equal(v, what+": enlace de "+name, m.Link, movements.append(seq))
		record, _, err := v.Get(v.movementKey(seq))
		if err != nil {
			return err
		}
		if !broken && m.Hash != hashMovement(last, v.org, seq, record[:len(record)-len(m.Hash)]) {
			v.problem("%s: el movimiento %s (%d) no es el que se escribió, o no lo es el anterior", what, name, seq)
			broken = true
		}
		last = m.Hash
		r.play(m, name)
		if m.Transaction != (id{}) {
			h.countMovement(v, m)
			sales[seq] = m.Transaction
		}
		gone, err := v.expiredWith(m)
		if err != nil {
			return err
		}
		for _, u := range gone {
			if sold, ok := sales[u.Seq]; ok {
				moved := h.moved[sold]
				moved.expired += u.Amount
				h.moved[sold] = moved
			}
		}
		if m.Amount > 0 && isEarning(m.Category) {
			earned += m.Amount
		}
	}
	if err := r.compare(a); err != nil {
		return err
	}
	equal(v, what+": cadena de movimientos", fmt.Sprint(a.Movements), fmt.Sprint(movements))
	if a.Hash != last {
		v.problem("%s: su último movimiento no es el que se anotó en ella", what)
	}
	equal(v, what+": puntos ganados", a.Lifetime, earned)
	if err := v.window(a, what); err != nil {
		return err
	}
	due, err := v.firstDue(a)
	if err != nil {
		return err
	}
	if !v.recounting {
		equal(v, what+": vencimiento", a.Due, due)
	}
	if a.Due != never {
		return v.has("due", v.dueKey(a, a.Due), nil, what)
	}
	return nil
}

// expiredWith is what a movement says has expired of lots: an Expiration, or
// the debit of a redemption that was cancelled when it was too late for some.
func (v *verifier) expiredWith(m *movement) ([]use, error) {
	if m.Category == categoryExpiration {
		return m.Uses, nil
	}
	if m.Redemption == (id{}) || m.Amount > 0 {
		return nil, nil
	}
	x, err := v.redemption(m.Redemption)
	if err != nil || x.CancelledAt == 0 {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(m.Uses), func(u use) bool { return u.Expires > x.CancelledAt }), nil
}

func (h *saleHistory) countMovement(v *verifier, m *movement) {
	if s := h.all[m.Transaction]; s == nil || s.Program != m.Program {
		v.problem("movimiento %s: su venta %s no es del cliente", m.id(), m.Transaction)
		return
	}
	moved := h.moved[m.Transaction]
	moved.any, moved.balance = true, m.Balance
	moved.points += m.Amount
	if m.AvailFrom > 0 {
		moved.pending += m.Amount
		moved.lots = append(moved.lots, pendingRef{m.Seq, m.AvailFrom})
	}
	h.moved[m.Transaction] = moved
}

// window compares the days of the rolling tier window.
func (v *verifier) window(a *account, what string) error {
	var days map[day]basis
	if a.program.TierBasis.Window == windowRolling {
		var err error
		if days, err = v.basisDays(a); err != nil {
			return err
		}
	}
	var sum basis
	last := day(math.MinInt32)
	for kept, err := range v.txn.days(a) {
		if err != nil {
			return err
		}
		if a.DaysApart {
			v.expected["customer records"]++
		}
		if v.recounting {
			continue
		}
		d := kept.Day
		if d <= last {
			v.problem("%s: los días del nivel no están en orden", what)
		}
		last = d
		if v.leaves(a, d) > v.now { // one that has left may wait for the sweep
			equal(v, fmt.Sprintf("%s: base del día %d", what, d), kept.Basis, days[d])
		}
		delete(days, d)
		sum = sum.plus(kept.Basis)
	}
	if v.recounting {
		return nil
	}
	v.atMost(what, "días del nivel", len(a.Days), v.few.days)
	equal(v, what+": base del nivel", a.Window, sum)
	for d, b := range days {
		if b != (basis{}) && v.leaves(a, d) > v.now {
			v.problem("%s: falta la base del día %d", what, d)
		}
	}
	return nil
}

// atMost checks that an account's own record holds no more than it should.
func (v *verifier) atMost(account, what string, n, most int) {
	if n > most {
		v.problem("%s: %d %s en su registro, más de %d", account, n, what, most)
	}
}

// A replayer plays an account's movements again, with no shortcut.
type replayer struct {
	v                *verifier
	what             string
	balance, pending decimal
	lots             map[uint64]*lot // by sequence; AvailFrom is 0 once available
}

// mature makes the next pending lot available; false if there is none.
func (r *replayer) mature(may func(*lot) bool) bool {
	var next *lot
	for _, l := range r.lots {
		if l.AvailFrom == 0 || !may(l) {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(l.AvailFrom, next.AvailFrom), cmp.Compare(l.Seq, next.Seq)) < 0 {
			next = l
		}
	}
	if next == nil {
		return false
	}
	debt := min(max(-r.balance, 0), next.Left)
	r.pending -= next.Left
	r.balance += next.Left
	next.Left -= debt
	next.AvailFrom = 0
	return true
}

// pendingBefore is what was pending before a movement, as it tells itself. Only
// a return takes from what is pending.
func (r *replayer) pendingBefore(m *movement) decimal {
	before := m.Pending
	if m.AvailFrom > 0 {
		before -= m.Amount
	}
	for _, u := range m.Uses {
		if l := r.lots[u.Seq]; m.Category == categoryReturn && l != nil && l.AvailFrom != 0 {
			before += u.Amount
		}
	}
	return before
}

func (r *replayer) play(m *movement, name string) {
	// Becoming available is no movement; what is pending tells that it was.
	for r.pending != r.pendingBefore(m) && r.mature(func(*lot) bool { return true }) {
	}
	switch {
	case m.Amount > 0 && m.Category == categoryRefund && len(m.Uses) > 0:
		for _, u := range m.Uses {
			left := u.Amount - min(max(-r.balance, 0), u.Amount)
			r.balance += u.Amount
			if l := r.lots[u.Seq]; l == nil || l.Expires != u.Expires {
				r.v.problem("%s: %s devuelve a un lote que no existe", r.what, name)
				continue
			}
			r.lots[u.Seq].Left += left
		}
	case m.Amount > 0:
		l := &lot{Seq: m.Seq, AvailFrom: m.AvailFrom, Expires: m.Expires, Left: m.Amount}
		r.lots[m.Seq] = l
		if m.AvailFrom > 0 {
			r.pending += m.Amount
		} else {
			l.Left -= min(max(-r.balance, 0), m.Amount)
			r.balance += m.Amount
		}
	default:
		rest := -m.Amount
		for _, u := range m.Uses {
			l := r.lots[u.Seq]
			if l == nil || l.Left < u.Amount || l.Expires != u.Expires {
				r.v.problem("%s: %s toma de un lote que no lo tiene", r.what, name)
				continue
			}
			l.Left -= u.Amount
			if rest -= u.Amount; l.AvailFrom != 0 {
				r.pending -= u.Amount
			} else {
				r.balance -= u.Amount
			}
		}
		if r.balance -= rest; rest < 0 || rest > 0 && m.Category != categoryReturn {
			r.v.problem("%s: los lotes de %s no suman su importe", r.what, name)
		}
	}
	equal(r.v, r.what+": saldo tras "+name, m.Balance, r.balance)
	equal(r.v, r.what+": saldo pendiente tras "+name, m.Pending, r.pending)
}

// compare holds the replayed account against the kept one.
func (r *replayer) compare(a *account) error {
	v := r.v
	// What became available since the last movement is known by its place. When that was
	// is not asked: the clock may have been wrong.
	pending := map[uint64]bool{}
	for l, err := range v.lots(a, partPending) {
		if err != nil {
			return err
		}
		pending[l.Seq] = true
	}
	for r.mature(func(l *lot) bool { return !pending[l.Seq] }) {
	}
	equal(v, r.what+": saldo", a.Balance, r.balance)
	equal(v, r.what+": saldo pendiente", a.Pending, r.pending)
	sums, there := map[instant]decimal{}, map[byte]int{}
	for _, seq := range slices.Sorted(maps.Keys(r.lots)) {
		l := r.lots[seq]
		if l.Left == 0 {
			continue
		}
		part := byte(partLot)
		if l.AvailFrom != 0 {
			part = partPending
		} else if l.Expires != never {
			sums[l.Expires] += l.Left
		}
		there[part]++
		if a.LotsApart {
			v.expected["customer records"]++
		}
		stored, err := v.lot(a, part, l)
		if err != nil {
			return err
		}
		if stored == nil {
			v.problem("%s: falta el lote %d", r.what, seq)
			continue
		}
		if l.AvailFrom == 0 {
			stored.AvailFrom = 0 // it no longer matters when it became available
		}
		equal(v, fmt.Sprintf("%s: lote %d", r.what, seq), *stored, *l)
	}
	if !a.LotsApart {
		equal(v, r.what+": lotes en su registro", len(a.Lots), there[partLot])
		equal(v, r.what+": lotes pendientes en su registro", len(a.Waiting), there[partPending])
		v.atMost(r.what, "lotes", len(a.Lots)+len(a.Waiting), v.few.lots)
		return nil
	}
	if !a.SumsApart {
		v.atMost(r.what, "vencimientos", len(a.Sums), v.few.sums)
		equal(v, r.what+": vencimientos", len(a.Sums), len(sums))
		last := instant(math.MinInt64)
		for _, s := range a.Sums {
			equal(v, r.what+": suma que vence "+s.ExpiresAt.String(), s.Amount, sums[s.ExpiresAt])
			if s.ExpiresAt <= last {
				v.problem("%s: los vencimientos no están en orden", r.what)
			}
			last = s.ExpiresAt
		}
		return nil
	}
	equal(v, r.what+": vencimientos en su registro", len(a.Sums), 0)
	for expires, sum := range sums {
		if err := v.has("customer records", v.key(a, partExpiring).instant(expires), numberValue(uint64(sum)), r.what); err != nil {
			return err
		}
	}
	return nil
}

// allSales checks the lists and indexes of sales, in the order of the
// sequence.
func (v *verifier) allSales() error {
	logged, err := v.newLogCheck()
	if err != nil {
		return err
	}
	for e, err := range scan(v.Tx, orgKey('t', v.org), false) {
		if err != nil {
			return err
		}
		s, err := decodeRecord[sale](e.Value)
		if err != nil {
			return err
		}
		seq := uintIn(e.Key[5:])
		what := "venta " + s.ID.String()
		if err := v.has("sales by id", orgKey('T', v.org).id(s.ID), numberValue(seq), what); err != nil {
			return err
		}
		table, kind := "purchases", byte(kindPurchase)
		if s.Type == typeReturn {
			table, kind = "returns", kindReturn
		}
		c, err := v.customer(s.Customer)
		if err != nil {
			return err
		}
		if err := logged.take(seq, c.Number, s); err != nil {
			return err
		}
		if err := v.has("sales by time", orgKey('h', v.org).instant(s.CreatedAt).u64(seq), key{kind}.u32(uint32(c.Number)), what); err != nil {
			return err
		}
		place := orgKey('l', v.org).byte(kind).u64(v.expected[table] + 1)
		if err := v.has(table, place, numberValue(seq), what); err != nil {
			return err
		}
		if s.ExternalID != "" {
			if err := v.has("externalIds", v.externalKey(s.ExternalID).u64(seq), nil, what); err != nil {
				return err
			}
		}
	}
	return logged.end()
}

// A logCheck makes the tables of salelog.go anew.
type logCheck struct {
	*verifier
	sales uint64 // all there are

	customers uint64 // all there are
	slots     map[string]*typeCount
	open      [][]byte // packs, each as it was written last
	part      logPart  // the block that is not full yet
	zones     []byte   // of the group that is not full yet
	chapter   chapter  // the last one that has ended
	highest   uint64   // number of a customer so far
	counts    totals   // so far
}

func (v *verifier) newLogCheck() (*logCheck, error) {
	n, err := v.count()
	if err != nil {
		return nil, err
	}
	return &logCheck{verifier: v, sales: n.Sales, customers: n.Customers, slots: map[string]*typeCount{}, open: make([][]byte, v.log.block/logPack)}, nil
}

// take counts a sale; they come in order.
func (l *logCheck) take(seq, number uint64, s *sale) error {
	if number == 0 || number > l.customers {
		l.problem("venta %s: no hay un cliente con el número %d", s.ID, number)
		return nil
	}
	purchase := s.Type == typePurchase
	for level := range slotLevels {
		k := string(l.slotKey(level, s.CreatedAt))
		if l.slots[k] == nil {
			l.slots[k] = new(typeCount)
		}
		l.slots[k].count(purchase)
	}
	entry := appendLogged(nil, loggedSale{number, s.CreatedAt, purchase})
	pack := &l.open[l.part.sales()/logPack]
	if l.part.sales()%logPack == 0 {
		*pack = (*pack)[:0]
	}
	*pack = append(*pack, entry...)
	l.part.words, l.part.moments = append(l.part.words, entry[:logWord]...), append(l.part.moments, entry[logWord:]...)
	if l.part.sales() == l.log.block {
		if err := l.endBlock(); err != nil {
			return err
		}
	}
	if l.highest < number {
		l.highest = number
		most := (number/l.log.customers + 1) * l.log.customers
		l.counts = append(l.counts, make(totals, 2*most-uint64(len(l.counts)))...)
	}
	at := 2 * number
	if !purchase {
		at++
	}
	if l.counts[at]++; seq == l.chapter.next(&l.log) {
		l.chapter = chapter{seq, l.highest}
		return l.endChapter()
	}
	return nil
}

func (l *logCheck) endBlock() error {
	block := l.part.after / l.log.block
	if err := l.has("sale log", l.logKey(logWords, block), l.part.words, "ventas"); err != nil {
		return err
	}
	if err := l.has("sale log", l.logKey(logMoments, block), l.part.moments, "ventas"); err != nil {
		return err
	}
	l.zones = appendZone(l.zones, l.part.moments)
	l.part = logPart{l.part.after + l.log.block, l.part.words[:0], l.part.moments[:0]}
	if block%zoneGroup == zoneGroup-1 {
		return l.endGroup(block)
	}
	return nil
}

// endGroup checks the group of zones that a block is the last of.
func (l *logCheck) endGroup(block uint64) error {
	err := l.has("sale log", l.logKey(logZones, block/zoneGroup), l.zones, "ventas")
	l.zones = l.zones[:0]
	return err
}

func (l *logCheck) endChapter() error {
	if err := l.has("customers' totals", l.chapterKey(l.chapter.end), numberValue(l.highest), "ventas"); err != nil {
		return err
	}
	for block := range l.chapter.blocks(&l.log) {
		counts := l.counts[2*block*l.log.customers:][:2*l.log.customers]
		value := counts.encode()
		if len(value) == 0 || l.chapter.counted(&l.log, block) > l.sales {
			continue
		}
		if err := l.has("customers' totals", l.totalsKey(l.chapter.end, block), value, "ventas"); err != nil {
			return err
		}
	}
	return nil
}

func (l *logCheck) end() error {
	for i, pack := range l.open {
		if len(pack) == 0 {
			continue
		}
		if err := l.has("sale log", l.logKey(logOpen, uint64(i)), pack, "ventas"); err != nil {
			return err
		}
	}
	if len(l.zones) > 0 {
		if err := l.endGroup(l.part.after/l.log.block - 1); err != nil {
			return err
		}
	}
	for k, n := range l.slots {
		w := writer{b: []byte{recordVersion}}
		n.encode(&w)
		if err := l.has("slots of time", key(k), w.b, "ventas"); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) redemptions() error {
	for e, err := range scan(v.Tx, orgKey('r', v.org), false) {
		if err != nil {
			return err
		}
		x, err := decodeRecord[redemption](e.Value)
		if err != nil {
			return err
		}
		seq := numberValue(uintIn(e.Key[5:]))
		what := "canje " + x.ID.String()
		v.expected["redemptions"]++
		if err := v.has("redemptions by id", orgKey('R', v.org).id(x.ID), seq, what); err != nil {
			return err
		}
		if err := v.has("codes", orgKey('w', v.org).text(x.Code), seq, what); err != nil {
			return err
		}
		debit, err := v.movement(x.Movement)
		if err != nil {
			return err
		}
		equal(v, what+": puntos", -debit.Amount, x.Points)
		equal(v, what+": movimiento", debit.Redemption, x.ID)
		if x.Customer != debit.Customer || x.Program != debit.Program || x.CreatedAt != debit.CreatedAt {
			v.problem("%s: difiere de su movimiento", what)
		}
		if x.CancelledAt == 0 {
			equal(v, what+": saldo", x.Balance, debit.Balance)
			if v.given[x.Reward] == nil {
				v.given[x.Reward] = map[id]uint64{}
			}
			v.given[x.Reward][x.Customer]++
		}
	}
	for rid, customers := range v.given {
		var total uint64
		for cust, n := range customers {
			total += n
			k := v.customerRewardKey(cust, rid)
			if err := v.has("customer records", k, numberValue(n), "recompensa "+rid.String()); err != nil {
				return err
			}
		}
		if err := v.has("reward counts", v.rewardCountKey(rid), numberValue(total), "recompensa "+rid.String()); err != nil {
			return err
		}
	}
	return nil
}

// searchIndex checks what the index has of each block.
func (v *verifier) searchIndex() error {
	n, err := v.count()
	if err != nil {
		return err
	}
	done, err := v.indexed()
	if err != nil || n.Customers < importIndexed && done == 0 {
		return err
	}
	if done > n.Customers || n.Customers-done >= importIndexed {
		v.problem("búsqueda: hay %d clientes en el índice", done)
		return nil
	}
	v.expected["search index"]++
	for from := uint64(1); from <= done; {
		block := from / gramBlock
		var list []gramAt
		for ; from <= done && from/gramBlock == block; from++ {
			c, err := v.customerAt(from)
			if err != nil {
				return err
			}
			list = appendGrams(list, c.Number, c.searchTexts())
		}
		slices.SortFunc(list, compareGrams)
		list = slices.Compact(list)
		for len(list) > 0 {
			g := list[0].gram
			var at []occurrence
			for ; len(list) > 0 && list[0].gram == g; list = list[1:] {
				at = append(at, list[0].at)
			}
			if err := v.has("search index", v.gramKey(uint32(block), g.String()), encodeOccurrences(nil, at), fmt.Sprintf("búsqueda %q", g)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dayOf is the tally of a day as the records make it.
func (v *verifier) dayOf(program uint32, at instant) *tally {
	d := programDay{program, dayOf(at, v.cfg.zone)}
	if v.days[d] == nil {
		v.days[d] = new(tally)
	}
	return v.days[d]
}

// countActive puts a customer among those who bought on a day and in its
// month.
func (v *verifier) countActive(program uint32, number uint64, d day) {
	for _, set := range []key{v.activeKey(program, activeDay, d), v.activeKey(program, activeMonth, d.month())} {
		if v.active[string(set)] == nil {
			v.active[string(set)] = blockSet{}
		}
		v.active[string(set)].add(number)
	}
}

func (v *verifier) statistics() error {
	for k, set := range v.active {
		if span := len(orgKey('z', 0)) + 4; k[span] == activeDay {
			d := programDay{uint32In([]byte(k[span-4:])), dayIn([]byte(k[span+1:]))}
			v.days[d].Active = set.count()
		}
	}
	for d, s := range v.days {
		w := writer{b: []byte{recordVersion}}
		s.encode(&w)
		if err := v.has("tallies", v.tallyKey(d), w.b, "día "+d.day.String()); err != nil {
			return err
		}
	}
	for prefix, set := range v.active {
		for block, bits := range set {
			if err := v.has("active customers", key(prefix).u32(block), fromBitmap(bits), "clientes activos"); err != nil {
				return err
			}
		}
	}
	for t, n := range v.tiers {
		if t.tier == "" {
			continue
		}
		if err := v.has("tiers", v.tierCountKey(t.program, t.tier), numberValue(n), "nivel "+t.tier); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) apiKeys() error {
	for e, err := range scan(v.Tx, orgKey('k', v.org), false) {
		if err != nil {
			return err
		}
		v.expected["key list"]++
		v.expected["API keys"]++
		k, err := keyByHash(v.Tx, [32]byte(e.Value))
		if err != nil {
			return err
		}
		if k == nil || k.ID != id(e.Key[5:]) || k.Org != v.org {
			v.problem("API key %s: falta o difiere", id(e.Key[5:]))
		}
	}
	return nil
}
