package main

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
)

// Checks of customers, one by one together with their stubs: the record and its indexes, the chains
// of sales, returns, vouchers, and what sales say of the points that they gave.

// customers checks the customers with from <= id < to. Zero means no bound on that side.
func (v *verifier) customers(from, to id) error {
	lo, hi := orgKey('c', v.txn.org), orgKey('c', v.txn.org).after()
	if from != (id{}) {
		lo = lo.id(from)
	}
	if to != (id{}) {
		hi = orgKey('c', v.txn.org).id(to)
	}
	for e, err := range v.txn.Scan(lo, hi, false) {
		if err != nil {
			return err
		}
		if len(e.Key) < 22 {
			v.stray(e.Key)
			continue
		}
		if err := v.customerRecord(e); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) customerRecord(e Entry) error {
	count := &v.have[tableRecords].entries
	*count++
	switch part := e.Key[21]; {
	case part == partCustomer && len(e.Key) == 22:
		c, err := decodeEntry[customer](e)
		if err != nil {
			return err
		}
		c.ID = id(e.Key[5:21])
		if n := v.run.progress.checked.Add(1); n%16 == 0 && v.run.told != nil {
			v.run.told()
		}
		return v.oneCustomer(c)
	case part == partRuleUse:
		v.want[tableRecords].entries++
		return v.ruleUse(e)
	case part == partRuleLife: // entries that should be there are looked up
		if !tableRuleLives.has(e.Key) {
			v.stray(e.Key)
		}
	case part == partHold:
		if v.want[tableRecords].entries++; !tableHoldsOf.has(e.Key) || len(e.Value) > 0 {
			v.stray(e.Key)
		}
	case part == partCard:
		v.want[tableRecords].entries++
		return v.cardOf(e)
	case part == partRedemptions && !v.run.careful[tableRedemptionsOf]:
		*count--
		if !tableRedemptionsOf.has(e.Key) || !v.addBlock(tableRedemptionsOf, e) {
			v.doubt(tableRedemptionsOf)
		}
	case part == partRewardUse && !v.run.careful[tableRewardUses]:
		*count--
		if len(e.Value) != 8 || uintIn(e.Value) == 0 {
			v.doubt(tableRewardUses)
			return nil
		}
		v.have[tableRewardUses].sum += uintIn(e.Value) * v.hash(e.Key, nil)
	}
	return nil
}

func (v *verifier) oneCustomer(c *customer) error {
	what := subject{kind: "cliente", id: c.ID}
	v.want[tableRecords].entries++
	if err := v.has(tableCustomers, v.txn.scratchOrgKey('l').byte('c').u64(c.Number), c.ID[:], what); err != nil {
		return err
	}
	var space [64]byte
	kept := appendRecord(space[:0], &identity{c.ID, c.Person})
	for kind, value := range c.identities() {
		if err := v.has(tableIdentities, identityKey(kind, value).u32(v.txn.org), kept, what); err != nil {
			return err
		}
	}
	if k := v.txn.customers.customerExternalKey(c); k != nil {
		if err := v.has(tableCustomersByExternalID, k, c.ID[:], what); err != nil {
			return err
		}
	}
	if k := v.txn.rules.birthdayKey(c); k != nil {
		if err := v.has(tableBirthdays, k, nil, what); err != nil {
			return err
		}
	}
	if err := v.memberCode(c, what); err != nil {
		return err
	}
	if letter := statusLetter(c.Status); letter != 0 {
		v.statusSet(letter).Add(c.Number)
	}
	if c.Status == statusErased && !c.isErased() {
		v.problem("%v: está eliminado, y su registro dice algo de él", what)
	}
	v.expectGrams(c)
	v.dayAt(c.Program, c.CreatedAt).NewCustomers++
	if c.hidden() {
		v.dayAt(c.Program, c.GoneAt).GoneCustomers++
	} else {
		equal(v, what, ": cuándo se ocultó", c.GoneAt, 0)
	}
	if c.MergedInto != (id{}) {
		return v.stub(c)
	}
	if c.Status == statusMerged {
		v.problem("%v: no dice con quién se fusionó", what)
	}
	return v.historyOf(c, what)
}

// manyCodes is how many customers' codes are checked.
const manyCodes = 1000

// memberCode checks that the code of a customer leads to it. What is damaged on the way is told
// where its table is checked.
func (v *verifier) memberCode(c *customer, what subject) error {
	if c.Number > manyCodes || c.hidden() || v.txn.cfg.codeSecret == nil {
		return nil
	}
	found, err := v.txn.customers.byMemberCode(textOr(v.txn.customers.memberCode(c), ""))
	if _, lost := errors.AsType[*apiError](err); lost || isDamaged(err) {
		return nil
	}
	if err == nil && (found == nil || found.ID != c.ID) {
		v.problem("%v: su código no lleva a él", what)
	}
	return err
}

// codeSecret checks that there is the secret of codes.
func (v *verifier) codeSecret() error {
	if v.txn.cfg.codeSecret == nil {
		v.problem("%v: falta el secreto de los códigos de sus clientes", subject{kind: v.txn.cfg.Organization.Slug})
	}
	return nil
}

// cardOf checks the entry that leads from a customer to its card.
func (v *verifier) cardOf(e Entry) error {
	hash, expires := cutCardLink(e.Value)
	if !tableCardOf.has(e.Key) || hash == nil {
		v.stray(e.Key)
		return nil
	}
	d, err := get[card](v.txn.Tx, cardKey(hash))
	what := subject{kind: "cliente", id: id(e.Key[5:])}
	switch {
	case err != nil:
	case d == nil || d.Org != v.txn.org || d.Customer != what.id:
		v.problem("%v: su tarjeta no existe, o es de otro", what)
	case d.Expires != expires:
		v.problem("%v: su tarjeta no vence cuando dice", what)
	}
	if isDamaged(err) { // told where cards are read
		return nil
	}
	return err
}

// cards checks the cards of all organizations: that each is of a customer who leads to it and is
// neither merged nor erased.
func (v *verifier) cards() error {
	return eachRecord(v, tableCards, tableCards.fixed(), func(e Entry, d *card) error {
		what := subject{kind: "tarjeta de", id: d.Customer}
		link, _, err := v.txn.Tx.Get(customerKey(d.Org, d.Customer, partCard))
		if err != nil {
			return err
		}
		if hash, _ := cutCardLink(link); !bytes.Equal(hash, e.Key[2:]) {
			v.problem("%v: su cliente no lleva a ella", what)
			return nil
		}
		c, err := get[customer](v.txn.Tx, customerKey(d.Org, d.Customer, partCustomer))
		if err == nil && (c == nil || c.hidden()) {
			v.problem("%v: no hay tal cliente, o ya no tiene tarjeta", what)
		}
		if isDamaged(err) { // told where customers are read
			return nil
		}
		return err
	})
}

// joinForgotten is how long after its end a pre-enrolment is there by mistake. A shop that was closed
// for weeks may sell again before its first sweep.
const joinForgotten instant = 31 * 24 * 60 * 60 * 1000

// joins checks the pre-enrolments of all organizations: that their code and their turn lead to them,
// and that none is kept for long.
func (v *verifier) joins(organizations uint32) error {
	latest := map[uint32]instant{}
	return eachRecord(v, tableJoins, tableJoins.fixed(), func(e Entry, p *preEnrolment) error {
		what, hash := subject{kind: "alta por terminar " + p.Code}, e.Key[2:]
		if p.Org == 0 || p.Org > organizations {
			v.problem("%v: no hay tal organización", what)
			return nil
		}
		last, known := latest[p.Org]
		if !known {
			n, err := get[counters](v.txn.Tx, orgKey('n', p.Org))
			if err != nil && !isDamaged(err) {
				return err
			}
			if n != nil {
				last = n.Latest
			}
			latest[p.Org] = last
		}
		if !isJoinCode(p.Code) || last > p.At+joinLife+joinForgotten {
			v.problem("%v: su código no es uno, o tendría que haberse borrado", what)
		}
		if err := v.has(tableJoinCodes, joinCodeKey(p.Org, p.Code), hash, what); err != nil {
			return err
		}
		return v.has(tableJoinTurns, joinTurnsKey(p.Org).u64(p.Seq), hash, what)
	})
}

func (v *verifier) historyOf(c *customer, what subject) error {
	family, err := v.family(c)
	if err != nil {
		return err
	}
	h, err := v.sales(family)
	if err != nil {
		return err
	}
	equal(v, what, ": total gastado", c.TotalSpent, h.spent)
	equal(v, what, ": compras", c.Purchases, h.purchases)
	equal(v, what, ": última compra", c.LastSaleAt, h.last)
	if err := v.readHolds(family); err != nil {
		return err
	}
	v.redeemed.begin(v.gathered.trail(c.ID, gatherRedemptions))
	for _, p := range v.txn.cfg.Programs {
		if err := v.accounts(family, p, h); err != nil {
			return err
		}
	}
	v.holdsEnded()
	for i := range h.all {
		v.salePoints(&h.all[i])
		v.paymentOf(&h.all[i])
		if err := v.reasons(h.all[i].sale); err != nil {
			return err
		}
	}
	if err := v.ruleLives(c, what); err != nil {
		return err
	}
	return v.usesKept(c, what)
}

// replayFamily reads the lots that the credits of a family made in a program.
func (v *verifier) replayFamily(family []*customer, p *program) (*familyReplay, error) {
	f := &familyReplay{lots: map[uint64]creditLot{}}
	for _, c := range family {
		a, err := v.txn.points.storedAccount(c, p)
		if err != nil {
			return nil, err
		}
		known := v.gathered.trail(c.ID, gatherMovements)
		list, err := v.movements(a, subject{"cuenta", c.ID, p.Key}, &known)
		if err != nil {
			return nil, err
		}
		for _, stored := range list {
			m, err := decodeRecord[movement](stored.record)
			if err != nil {
				return nil, atKey(v.txn.points.movementKey(stored.seq), err)
			}
			if m.Amount > 0 && m.Category != categoryMerge && m.Category != categoryRelease && !m.isGiveBack() {
				f.lots[stored.seq] = creditLot{lot{Seq: stored.seq, AvailFrom: m.AvailFrom, Expires: m.Expires}, m.Transaction}
			}
		}
	}
	return f, nil
}

// accounts replays the accounts of a customer and its stubs in a program. The customer's
// own comes last: it has what all have earned.
func (v *verifier) accounts(family []*customer, p *program, h *saleHistory) error {
	var joint *familyReplay
	if len(family) > 1 {
		var err error
		if joint, err = v.replayFamily(family, p); err != nil {
			return err
		}
	}
	for i := len(family) - 1; i >= 0; i-- {
		c := family[i]
		if len(family) > 1 {
			v.redeemed.begin(v.gathered.trail(c.ID, gatherRedemptions))
		}
		if err := v.account(c, p, h, v.gathered.trail(c.ID, gatherMovements), joint); err != nil {
			return err
		}
	}
	if joint != nil && joint.moved != 0 {
		v.problem("%v: sus fusiones mueven %v puntos de más", subject{"cliente", family[0].ID, p.Key}, joint.moved)
	}
	return nil
}

// readSales reads the sales of the chains of a customer and its stubs into v.history,
// and checks the chains.
func (v *verifier) readSales(family []*customer) error {
	h := &v.history
	h.begin()
	for _, c := range family {
		if err := v.readChain(c); err != nil {
			return err
		}
	}
	if len(h.all) == 0 {
		return nil
	}
	if len(family) > 1 {
		slices.SortFunc(h.all, func(a, b soldSale) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	if h.at == nil {
		h.at = map[id]int{}
	}
	for i := range h.all {
		h.at[h.all[i].ID] = i
	}
	return nil
}

func (v *verifier) readChain(c *customer) error {
	h := &v.history
	known, begin := v.gathered.trail(c.ID, gatherSales), len(h.all)
	for seq := c.Sales.last(); seq != 0 && uint64(len(h.all)-begin) <= c.Sales.N; {
		record, err := v.recordAt(&known, 't', seq)
		if err != nil {
			return err
		}
		s, err := decodeRecord[sale](record)
		if err != nil {
			return atKey(v.txn.sales.key(seq), err)
		}
		s.Seq = seq
		sold := soldSale{sale: s}
		if len(s.Others) > 0 {
			sold.other = make([]saleMovements, len(s.Others))
		}
		h.all = append(h.all, sold)
		seq = s.Link.Prev
	}
	slices.Reverse(h.all[begin:])
	var links chain
	var purchases uint64
	for i := range h.all[begin:] {
		s := h.all[begin+i].sale
		what := subject{kind: "venta", id: s.ID}
		equal(v, what, ": cliente", s.Customer, c.ID)
		equal(v, what, ": enlace", s.Link, links.append(s.Seq))
		v.want[tableSellers].add(v.seller(s.Seq, c.Number))
		if s.Type == typePurchase {
			purchases++
		}
	}
	what := subject{kind: "cliente", id: c.ID}
	equal(v, what, ": compras en total", c.PurchasesTotal, purchases)
	equalChains(v, what, ": cadena de ventas", &c.Sales, &links)
	v.countActive(c, h.all[begin:])
	return nil
}

// sales checks the sales of a customer and its stubs, and adds them up.
func (v *verifier) sales(family []*customer) (*saleHistory, error) {
	if err := v.readSales(family); err != nil {
		return nil, err
	}
	h := &v.history
	h.owner, h.erased = family[0].ID, family[0].Status == statusErased
	for i := range h.all {
		s := &h.all[i]
		what := subject{kind: "venta", id: s.ID}
		if h.erased && (s.Comment != "" || len(s.Labels) > 0) {
			v.problem("%v: tiene comentario o etiquetas, y su cliente está eliminado", what)
		}
		if len(s.Labels) > 0 && (s.Type != typePurchase || !s.Labels.areSound()) {
			v.problem("%v: tiene etiquetas que no puede tener", what)
		}
		v.want[tableSales].entries++
		v.dayAt(s.Program, s.CreatedAt).countSale(s.sale)
		if s.Payment != nil {
			v.dayAt(s.Payment.Program, s.CreatedAt).countPayment(s.sale)
		}
		if s.Type == typePurchase {
			h.spent += s.Total
			h.purchases++
			h.limited = h.limited || s.isLimited()
			h.counted = h.counted || s.isCounted()
			continue
		}
		h.spent -= s.Total
		if purchase := h.find(s.Previous); purchase != nil && purchase.Type == typePurchase && purchase.Seq < s.Seq {
			v.countReturn(h, purchase, s.sale)
			s.whole = purchase.again.whollyReturned()
		} else if s.Previous != (id{}) {
			v.problem("%v: su compra %s no es del cliente", what, s.Previous)
		}
	}
	for i := range h.all {
		s := &h.all[i]
		v.compareReturned(s)
		if s.stands() {
			h.last = max(h.last, s.CreatedAt)
		}
		if err := v.vouchersOf(h, s); err != nil {
			return nil, err
		}
		if err := v.giftsOf(h, s); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// giftsOf checks the vouchers that a purchase gave, and that a return names no others. The return of
// a whole purchase must name all that are not cancelled.
func (v *verifier) giftsOf(h *saleHistory, s *soldSale) error {
	what := subject{kind: "venta", id: s.ID}
	if s.Type != typePurchase {
		var of []givenVoucher
		if purchase := h.find(s.Previous); purchase != nil {
			of = purchase.Given
		}
		wrong := slices.ContainsFunc(s.Given, func(given givenVoucher) bool { return !slices.Contains(of, given) })
		for _, given := range of {
			if !s.whole || given.Redemption == 0 || slices.Contains(s.Given, given) {
				continue
			}
			x, err := get[redemption](v.txn.Tx, v.txn.rewards.redemptionKey(given.Redemption))
			if err != nil {
				return err
			}
			wrong = wrong || x == nil || x.CancelledAt == 0
		}
		if wrong {
			v.problem("%v: no son los vales que dio su compra", what)
		}
		return nil
	}
	for i, given := range s.Given {
		missed := given.Redemption == 0
		if missed != (given.Reason != "") || missed && given.Rule == (id{}) || s.shareIn(given.Program) == nil {
			v.problem("%v: no dice bien qué vale dio", what)
		}
		if missed {
			continue
		}
		x, err := get[redemption](v.txn.Tx, v.txn.rewards.redemptionKey(given.Redemption))
		switch {
		case err != nil:
			return err
		case x == nil || x.Gift.Sale != s.ID || x.Gift.Rule != given.Rule || slices.ContainsFunc(s.Given[:i], func(o givenVoucher) bool { return o.Redemption == given.Redemption }):
			v.problem("%v: no dio el vale que dice", what)
		case s.movedIn(x.Program) != nil:
			s.movedIn(x.Program).issued += x.Points
		}
		v.want[tableNoted].add(v.hashNumber(notedGift, given.Redemption))
	}
	return nil
}

// vouchersOf checks the vouchers that come back with a sale: a purchase names vouchers that
// say they were used in it, a return the vouchers that its purchase had by then.
func (v *verifier) vouchersOf(h *saleHistory, s *soldSale) error {
	if len(s.Vouchers) == 0 {
		return nil
	}
	what := subject{kind: "venta", id: s.ID}
	if s.Type != typePurchase {
		purchase := h.find(s.Previous)
		if purchase == nil || !s.whole || !slices.Equal(s.Vouchers, purchase.Vouchers[:min(len(s.Vouchers), len(purchase.Vouchers))]) {
			v.problem("%v: no son los canjes de su compra", what)
		}
		return nil
	}
	for i, seq := range s.Vouchers {
		x, err := get[redemption](v.txn.Tx, v.txn.rewards.redemptionKey(seq))
		switch {
		case err != nil:
			return err
		case x == nil || x.Sale != s.ID || slices.Contains(s.Vouchers[:i], seq):
			v.problem("%v: un canje no se usó en ella", what)
		}
		v.want[tableNoted].add(v.hashNumber(nil, seq))
	}
	return nil
}

// countReturn counts a return again, in a copy of its purchase.
func (v *verifier) countReturn(h *saleHistory, purchase *soldSale, s *sale) {
	if purchase.again == nil {
		purchase.again = purchase.unreturned()
	}
	again := purchase.again
	before := again.whollyReturned()
	if again.countReturn(s) != nil {
		v.problem("%v: devuelve más de lo comprado", subject{kind: "venta", id: s.ID})
	}
	for took := range s.shares {
		if from := again.shareIn(took.Program); from != nil {
			from.Reversed += took.Reversed
			from.Unearned += took.Unearned
		} else if took.Reversed != 0 || took.Unearned != 0 {
			v.problem("%v: devuelve en un programa en el que su compra no cuenta", subject{kind: "venta", id: s.ID})
		}
	}
	if !before && again.whollyReturned() {
		h.purchases--
	}
	v.countPaidBack(again, s)
}

// unreturned returns the purchase as it was before its returns.
func (s *sale) unreturned() *sale {
	fresh := *s
	fresh.Returned, fresh.ReturnedByAmount, fresh.Others = 0, 0, slices.Clone(s.Others)
	for kept := range fresh.shares {
		kept.Reversed, kept.Unearned = 0, 0
	}
	if s.Payment != nil {
		fresh.Payment = new(*s.Payment)
		fresh.Payment.BackPoints, fresh.Payment.BackAmount = 0, 0
	}
	fresh.Lines = slices.Clone(s.Lines)
	for i := range fresh.Lines {
		fresh.Lines[i].Returned = 0
	}
	return &fresh
}

// compareReturned compares a purchase with its returns, counted again.
func (v *verifier) compareReturned(s *soldSale) {
	if s.Type != typePurchase {
		return
	}
	what, again := subject{kind: "venta", id: s.ID}, s.again
	if again == nil {
		again = s.unreturned()
	}
	equal(v, what, ": devuelto", s.Returned, again.Returned)
	equal(v, what, ": devuelto por importe", s.ReturnedByAmount, again.ReturnedByAmount)
	if !slices.Equal(s.Lines, again.Lines) {
		v.differs(what, ": devuelto por artículo", s.Lines, again.Lines)
	}
	if y := s.Payment; y != nil {
		equal(v, what, ": puntos de su pago que volvieron", y.BackPoints, again.Payment.BackPoints)
		equal(v, what, ": importe de su pago que volvió", y.BackAmount, again.Payment.BackAmount)
	}
	for kept := range s.shares {
		from := again.shareIn(kept.Program)
		equal(v, what, ": puntos devueltos", kept.Reversed, from.Reversed)
		equal(v, what, ": puntos no ganados", kept.Unearned, from.Unearned)
		if kept.Unearned > kept.Earned || kept.Reversed > kept.Earned {
			v.problem("%v: se devolvió más de lo que hubo", what)
		}
	}
}

// countActive counts a customer as active on the days of its purchases and in their months.
func (v *verifier) countActive(c *customer, sales []soldSale) {
	days := v.history.bought[:0]
	for i := range sales {
		if s := sales[i].sale; s.Type == typePurchase {
			days = append(days, programDay{s.Program, v.txn.dayOf(s.CreatedAt)})
		}
	}
	v.history.bought = days
	slices.SortFunc(days, func(a, b programDay) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.day, b.day))
	})
	var last programDay // the month counted last
	for _, d := range slices.Compact(days) {
		v.day(d).Active++
		v.inSet(tableActive, v.txn.stats.activeKey(d.program, activeDay, d.day), c.Number)
		if month := (programDay{d.program, d.day.month()}); month != last {
			last = month
			v.inSet(tableActive, v.txn.stats.activeKey(d.program, activeMonth, month.day), c.Number)
		}
	}
}

func (v *verifier) salePoints(s *soldSale) {
	last := uint32(0)
	for kept := range s.shares {
		what := subject{kind: "venta", id: s.ID}
		if kept != &s.saleShare {
			p := v.txn.cfg.programNumber(kept.Program)
			if p == nil || kept.Program == s.Program || kept.Program == last {
				v.problem("%v: no puede contar en el programa %d", what, kept.Program)
				continue
			}
			what.more, last = p.Key, kept.Program
		}
		v.sharePoints(s.sale, kept, s.movedIn(kept.Program), what)
	}
}

// sharePoints is salePoints for one share.
func (v *verifier) sharePoints(s *sale, kept *saleShare, moved *saleMovements, what subject) {
	if moved.any {
		equal(v, what, ": saldo", kept.Balance, moved.balance-kept.ExpiredLate-moved.issued)
	}
	if kept.ExpiredLate < 0 || kept.ExpiredLate > moved.expired {
		v.problem("%v: no venció antes de registrarse lo que dice", what)
	}
	if s.Type != typePurchase {
		equal(v, what, ": puntos devueltos", kept.Reversed, -moved.points)
		return
	}
	var byRule decimal
	for _, r := range kept.Rules {
		byRule += r.Points
	}
	equal(v, what, ": puntos ganados", kept.Earned, moved.points)
	equal(v, what, ": puntos ganados por reglas", byRule, kept.Earned)
	if len(s.Lines) > 0 {
		var byLine decimal
		for i := range s.Lines {
			byLine += s.earnedBy(i, kept)
		}
		equal(v, what, ": puntos ganados por artículos", byLine, kept.Earned)
	}
	equal(v, what, ": puntos vencidos", kept.Expired, moved.expired)
	equal(v, what, ": puntos pendientes", kept.Pending, moved.pending)
	if !slices.Equal(kept.PendingLot, moved.lots) {
		v.differs(what, ": lotes pendientes", kept.PendingLot, moved.lots)
	}
}
