package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/ordered/orderedtest"
	"sello/internal/totp"
)

// Negative controls: the store has entries of every kind. The tests remove each
// entry in turn, copy it to a key where it does not belong, or change it field by
// field. verify must report each fault.

// newRichShop is a shop with entries in every table.
func newRichShop(t *testing.T) *shop {
	s := newShop(t, setup{
		settings: ticketSettings,
		program: `"default":true,"payment":{"points":2,"amount":1},"expiry":{"days":60,"inactiveMonths":12},"negativeBalance":"Debt","tierBasis":{"metric":"PointsEarned","window":"Rolling","months":2},
			"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}],
			"rules":[` + onePer1 + `,{"key":"late","name":"late","perItem":5,"pendingDays":20,"maxPerCustomerPerDay":3},
			{"key":"life","name":"life","labels":{"campaign":["life"]},"points":3,"maxPerCustomer":9,"budget":14},
			{"key":"pair","name":"pair","labels":{"campaign":["life"]},"points":2,"every":2,"category":"Campaign"},
			{"key":"hello","name":"hello","on":"Signup","points":10},
			{"key":"day","name":"day","on":"Birthday","points":7}]},{"key":"two","name":"Two","join":"All",
			"expiry":{"days":30},"tierBasis":{"metric":"AmountSpent"},"tiers":[{"name":"Uno","threshold":0},{"name":"Dos","threshold":60}],
			"rules":[{"key":"stamp","name":"stamp","perItem":1},{"key":"late","name":"late","perItem":2,"pendingDays":10,"maxPerCustomerPerDay":1},
			{"key":"life","name":"life","labels":{"campaign":["life"]},"points":2,"budget":50},
			{"key":"card","name":"card","labels":{"campaign":["card"]},"points":400},
			{"key":"few","name":"few","labels":{"campaign":["card"]},"every":2,"reward":"few"},{"key":"high","name":"high","on":"Tier","reward":"v"},
			{"key":"hi","name":"hi","on":"Signup","points":1}]`,
		also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":30,"stock":9},
			{"key":"v","program":"club","name":"V","pointsCost":1,"fulfilment":"Voucher","validDays":300,"effect":{"type":"Percent","percent":10}},
			{"key":"few","program":"club","name":"Few","pointsCost":1,"fulfilment":"Voucher","stock":1},
			{"key":"card","program":"two","name":"Card","pointsCost":1000,"fulfilment":"Voucher","autoIssue":true}],
			"segments":[{"key":"all","name":"All","isActive":true,"rule":{"field":"email","op":"=","value":true}}],
			"webhooks":[{"key":"crm","url":"https://crm.example.com/","events":["*"]}]`,
	})
	other := setup{program: `"rules":[` + onePer1 + `]`}.document()
	s.apply(bytes.Replace(other, []byte("cafe-luna"), []byte("tienda"), 1))

	bag := item{"BAG", dec("40"), dec("2")}
	ana, eva := s.customer("ana"), s.customer("eva")
	must(s, func(t *txn) (any, error) {
		_, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Email: "ana@example.com", Phone: "+525512345678"})
		return nil, err
	})
	must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(1) })
	must(s, func(t *txn) (any, error) {
		iris, _, err := t.customers.enrol(enrolment{
			Email: "iris@example.com", ExternalID: "C-1", BirthDate: 19920229, Attributes: []attribute{{"size", `"M"`}, {"vip", "true"}},
		})
		if err != nil {
			return nil, err
		}
		return t.customers.patch(iris.ID, customerPatch{Status: new(statusInactive)}, nil)
	})
	first := s.buy(ana, "100", bag)
	_, err := s.sell(newSale{Customer: ana, Total: dec("50"), ExternalID: "T-1"})
	s.ok(err)
	s.pass(oneDay)
	s.bring(first, "40", item{"BAG", dec("40"), dec("1")})
	s.bring(first, "10")
	_, err = s.sell(newSale{Type: typeReturn, Customer: eva, Total: dec("5")})
	s.ok(err)
	redeemed := must(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
	})
	cancelled := must(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "uno", nil, givenProof{})
	})
	must(s, func(t *txn) (any, error) {
		two := t.cfg.Programs[1].ID
		if _, err := t.rewards.cancel(cancelled.ID); err != nil {
			return nil, err
		}
		_, err := movePoints(t, redeemed.Customer, &two, &movement{Amount: dec("25"), Category: categoryBonus, Reference: "R-1"}, t.points.credit)
		return nil, err
	})
	for i := range 3 { // one used, one used in a sale, one still open
		x := must(s, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(ana, t.cfg.Rewards[1].ID, "", nil, givenProof{})
		})
		if i < 2 {
			must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(x.Code, []*id{nil, &first.ID}[i]) })
		}
	}
	s.pass(61 * oneDay)
	s.swept()
	s.buy(ana, "70", bag)
	s.pass(25 * oneDay)
	s.buy(eva, "30", bag)
	s.swept()

	twin, sol := s.customer("twin"), s.customer("sol")
	s.buy(sol, "3")
	brought := s.buy(twin, "40", bag)
	gone := must(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(twin, t.cfg.Rewards[0].ID, "", nil, givenProof{})
	})
	must(s, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(twin, t.cfg.Rewards[1].ID, "", nil, givenProof{})
	})
	s.merged(sol, twin)
	_, err = s.sell(newSale{Type: typeReturn, Customer: sol, Total: dec("40"), Original: &brought.ID, Items: []item{{"BAG", dec("40"), dec("1")}}})
	s.ok(err)
	must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(gone.ID) })

	rosa := s.customer("rosa")
	for range usualInline().sums + 1 { // more sums than an account's own record holds
		s.buy(rosa, "2")
		s.pass(oneDay)
	}
	s.buy(rosa, "2", bag)
	for range logBlock { // more than a block of the log
		s.buy(rosa, "2")
	}
	s.importCSV(t, "correo,puntos,puntos históricos\nnoa@example.com,20,30\n")
	s.usePayments()
	s.useRules()
	s.useGifts()
	s.useKey()
	s.usePanel()
	s.card(rosa, 90)
	s.useTickets(rosa)
	s.joining(preEnrolment{FirstName: "Sol", LastName: "Vega", Email: "sol@example.com", Phone: "+525587654321", BirthDate: 19900514, Marketing: true})
	return s
}

// useTickets brings tickets to each of their ends, and has a till that signs some.
func (s *shop) useTickets(cust id) {
	s.Helper()
	k, _ := s.newKey(keyRequest{})
	s.signs(k, false)
	till := s.signs(k, true)
	made, err := s.tryTicket(newTicket{
		ExternalID: "K-1", Total: dec("10"), Items: []item{{"BAG", dec("10"), dec("1")}}, Labels: saleLabels{{"pago", "efectivo"}}, Comment: "mostrador",
	})
	s.ok(err)
	s.claimed(made.Code, cust)
	s.claimed(till.ticket("K-2", "20", s.clock), cust)
	s.ok(s.cancelTicket(ticketCancel{Ticket: s.ticket("K-3").Code}))
	s.ticket("K-4")
	_, err = s.sell(newSale{Customer: cust, Total: dec("3"), ExternalID: "K-4"})
	s.ok(err)
	s.ticket("K-5")
}

// usePayments pays with points, of which some expire before they come back, and holds points in
// each way that a hold can end.
func (s *shop) usePayments() {
	s.Helper()
	paz, mar := s.customer("paz"), s.customer("mar")
	s.add(paz, "30", s.clock.add(oneDay))
	s.add(paz, "500", s.clock.add(40*oneDay))
	s.add(mar, "500", never)
	whole, part := s.hold(paz, "20", mostHold, "pedido"), s.hold(paz, "40", mostHold, "pedido")
	must(s, func(t *txn) (any, error) { return t.points.capture(part, dec("15")) })
	sold, err := s.sell(newSale{Customer: paz, Total: dec("60"), Pay: &newPayment{Points: dec("50")}, Labels: saleLabels{{"pago", "efectivo"}}})
	s.ok(err)
	_, err = s.sell(newSale{Customer: paz, Total: dec("60"), Pay: &newPayment{Hold: &whole, Points: dec("8")}})
	s.ok(err)
	s.hold(paz, "10", leastHold, "pedido")
	s.bring(sold, "20")
	s.pass(2 * oneDay)
	s.swept()
	s.bring(sold, "40")
	released := s.hold(paz, "25", mostHold, "pedido")
	must(s, func(t *txn) (any, error) { return t.points.release(released) })
	s.hold(mar, "100", mostHold, "pedido")
	s.merged(paz, mar)
	s.hold(paz, "5", mostHold, "pedido")
}

// useRules makes purchases that count in lives and budgets of rules, of which some come back.
func (s *shop) useRules() {
	s.Helper()
	luz, sal := s.customer("luz"), s.customer("sal")
	var sold []*sale
	for _, cust := range []id{luz, luz, sal, sal, sal} {
		x, err := s.sell(newSale{Customer: cust, Total: dec("4"), Labels: saleLabels{{"campaign", "life"}}})
		s.ok(err)
		sold = append(sold, x)
	}
	s.bring(sold[0], "4")
	s.bring(sold[3], "1")
	s.merged(luz, sal)
}

// useGifts makes purchases that give vouchers, of which one is used, one is cancelled by a return and
// one could not be given.
func (s *shop) useGifts() {
	s.Helper()
	gil := s.customer("gil")
	var sold []*sale
	for range 6 {
		x, err := s.sell(newSale{Customer: gil, Total: dec("4"), Labels: saleLabels{{"campaign", "card"}}})
		s.ok(err)
		sold = append(sold, x)
	}
	must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(s.code(t, sold[2]), nil) })
	s.bring(sold[2], "4")
	s.bring(sold[5], "4")
}

// usePanel makes users with all that they can have.
func (s *shop) usePanel() {
	s.Helper()
	ana := s.person("ana@ejemplo.mx", roleOwner)
	s.in(2, func() {
		_, err := s.logins().accept(s.Context(), &acceptance{Token: s.invited("ana@ejemplo.mx", roleCashier), Password: testPassword}, s.clock)
		s.ok(err)
	})
	s.invited("eva@ejemplo.mx", roleViewer)
	must(s, func(t *txn) (any, error) {
		u, err := userByID(t.Tx, ana)
		if err != nil {
			return nil, err
		}
		if _, err := t.people.newRecovery(ana, &secondFactor{Secret: bytes.Repeat([]byte{7}, totp.Secret), Since: t.now, LastStep: 1}); err != nil {
			return nil, err
		}
		_, _, err = t.people.resetUser(u, true)
		return nil, err
	})
	must(s, func(t *txn) (any, error) {
		t.by = creator{Type: byUser, ID: ana}
		return beginHandout(t, handout{Segment: t.cfg.Segments[0].ID, Program: 1, Points: dec("2"), Category: categoryCampaign, Comment: "aniversario", Counted: 1})
	})
	s.ok(s.engine.giveHandouts(s.Context()))
	must(s, func(t *txn) (any, error) {
		t.by = creator{Type: byUser, ID: ana}
		eva, _, err := t.customers.enrol(enrolment{FirstName: "Eva", Email: "asked@example.com"})
		if err != nil {
			return nil, err
		}
		sold, _, err := t.sales.register(newSale{Customer: eva.ID, Type: typePurchase, Total: dec("9"), Source: sourceAPI})
		if err != nil {
			return nil, err
		}
		return nil, t.rewards.askToUndo(sold.ID, false, eva.ID, "Era de otra")
	})
}

// useKey stores a response for retries, and counts a request by a new API key.
func (s *shop) useKey() {
	s.Helper()
	k := must(s, func(t *txn) (*apiKey, error) {
		if err := t.replays.keep([]retryKey{{name: [16]byte{1}, request: [16]byte{2}}}, 201, []byte("{}")); err != nil {
			return nil, err
		}
		k, _, err := t.keys.create(keyRequest{Name: "test", DailyLimit: 10, MaxPointsPerDay: dec("5")})
		if err == nil {
			err = t.keys.spend(k.budget(), dec("2"))
		}
		return k, err
	})
	l := newLimiter()
	err := l.take(s.Context(), s.engine.store, k, s.clock, new(allowance))
	s.ok(err)
	s.ok(l.flush(s.Context(), s.engine.store))
}

// seen reports whether verify finds a fault in the entries.
func (s *shop) seen(all memTx) bool {
	report, err := verifyWith(s.engine.sizes, all, s.clock, nil)
	return err != nil || len(report.Problems) > 0
}

// tableName returns a short name for a key's table: the table's letter, then the part
// of the key that distinguishes tables with the same letter.
func tableName(k []byte) string {
	switch k[0] {
	case 'o', 'l', 'G':
		i := 1
		if k[0] != 'o' {
			i = 5
		}
		return fmt.Sprintf("%c%c", k[0], k[i])
	case 'U':
		return fmt.Sprintf("U%d", k[17])
	case 'c':
		return fmt.Sprintf("c%d", k[21])
	case 'I':
		if len(k) > 5 {
			return "I1"
		}
	}
	return string(k[0])
}

// unseen lists the tables whose entries verify cannot check, and why.
var unseen = map[string]string{
	"v":  "is checked when a file is opened",
	"i":  "what was answered is told nowhere else",
	"I":  "what was answered is told nowhere else",
	"I1": "what was answered is told nowhere else",
	"u":  "requests are counted nowhere else",
	"P":  "what a purse gave is counted nowhere else",
	"q":  "is there while customers are counted anew",
	"U1": "who has a second factor is told nowhere else",
	"U4": "what users logged in with is told nowhere else",
}

// TestVerifyTables checks that the shop has entries in every table, and that each
// entry belongs to exactly one table.
func TestVerifyTables(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	have := map[table]bool{}
	for _, e := range s.entries() {
		found, ok := tableOf(e.Key)
		if !ok {
			t.Errorf("entry %x has the shape of no table", e.Key)
		}
		for other := found + 1; other < manyTables; other++ {
			if other.has(e.Key) {
				t.Errorf("entry %x has the shapes of %q and %q", e.Key, tables[found].shape, tables[other].shape)
			}
		}
		have[found] = true
	}
	sometimes := []table{tableRecounts, tableWriter, tableSandbox, tableSandboxStart} // while customers are recounted; of a build with a version; of a sandbox
	for at, declared := range tables {
		if !have[table(at)] && !slices.Contains(sometimes, table(at)) {
			t.Errorf("no entry of table %q", declared.shape)
		}
	}
}

// entryStep returns 1 in the long form, so that a test takes every entry, else every fifth, or
// with -short one of 20.
func entryStep() int {
	switch {
	case testing.Short():
		return 20
	case orderedtest.Long():
		return 1
	}
	return 5
}

// someEntries returns the indexes of every step-th entry and of each table's first.
func someEntries(all memTx, step int) (places []int) {
	for i, e := range all {
		if i%step == 0 || tableName(all[i-1].Key) != tableName(e.Key) {
			places = append(places, i)
		}
	}
	return places
}

func TestVerifySeesMissing(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	all := s.entries()
	for _, i := range someEntries(all, entryStep()) {
		e := all[i]
		table := tableName(e.Key)
		if n, err := decodeRecord[counters](e.Value); table == "n" && err == nil && *n == (counters{Latest: n.Latest}) {
			continue // nothing is counted yet, so a missing entry is no fault
		}
		if table == "Q" {
			continue // an organization that never gave points to a whole segment has none
		}
		if table == "Gu" {
			continue // what was declined leaves no request
		}
		if got := s.seen(slices.Delete(slices.Clone(all), i, i+1)); got != (unseen[table] == "") {
			t.Errorf("entry %x of table %s is missing: seen is %t", e.Key, table, got)
		}
	}
}

func TestVerifySeesStrays(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	all := s.entries()
	for _, i := range someEntries(all, entryStep()) {
		e := all[i]
		table := tableName(e.Key)
		if table == "v" {
			continue
		}
		// The next key, and the same key in an organization that does not exist.
		neighbour := bytes.Clone(e.Key)
		neighbour[len(neighbour)-1]++
		strays := []key{neighbour}
		if of, _ := tableOf(e.Key); of.org() == 1 {
			strays = append(strays, append(orgKey(e.Key[0], 77), e.Key[5:]...))
		}
		for _, stray := range strays {
			place, there := all.find(stray)
			if there || unseen[table] != "" && unseen[tableName(stray)] != "" {
				continue
			}
			if !s.seen(slices.Insert(slices.Clone(all), place, Entry{Key: stray, Value: e.Value})) {
				t.Errorf("entry %x of table %s has a stray neighbour %x, not seen", e.Key, table, stray)
			}
		}
	}
	for _, stray := range []key{newKey('!'), newKey('q').u32(77), newKey('o').byte('r').u32(1)} {
		place, _ := all.find(stray)
		if !s.seen(slices.Insert(slices.Clone(all), place, Entry{Key: stray, Value: numberValue(1)})) {
			t.Errorf("stray entry %x, not seen", stray)
		}
	}
}

// TestVerifySeesParts: entries under letters that several tables share, purses and vouchers
// are checked as well.
func TestVerifySeesParts(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	all := s.entries()
	with := func(k key, value []byte) memTx {
		place, there := all.find(k)
		changed := slices.Clone(all)
		if there {
			changed[place].Value = value
			return changed
		}
		return slices.Insert(changed, place, Entry{Key: k, Value: value})
	}
	record := func(v fielded) []byte { return appendRecord(nil, v) }
	for letter, part := range map[byte]byte{'G': 'z', 'l': 'z', 'K': 7} {
		if k := orgKey(letter, 1).byte(part).u64(1); !s.seen(with(k, numberValue(1))) {
			t.Errorf("%x is not seen", k)
		}
	}
	for _, e := range all {
		switch e.Key[0] {
		case 'P':
			if !s.seen(with(e.Key, []byte{9})) || !s.seen(with(e.Key, record(&purse{-1}))) {
				t.Errorf("%x: a damaged purse is not seen", e.Key)
			}
			if k := append(orgKey('P', 1).id(id{1}), e.Key[21:]...); !s.seen(with(k, e.Value)) {
				t.Errorf("%x: the purse of no key is not seen", k)
			}
		case 'r':
			x, err := decodeEntry[redemption](e)
			s.ok(err)
			if x.CancelledAt != 0 {
				x.Expires = x.CancelledAt
				if !s.seen(with(e.Key, record(x))) {
					t.Errorf("redemption %s, cancelled after it expired, is not seen", x.ID)
				}
			}
		}
	}
}

// told lists the fields whose values are stored nowhere else: verify cannot detect
// a change of them.
var told = map[string]string{
	"c0.CreatedAt":           "told once; only its day is counted",
	"c0.UpdatedAt":           "told once",
	"c0.Attributes":          "told once",
	"c0.Attributes one more": "told once",
	"c0.Attributes one less": "told once",
	"c0.Attributes.Name":     "told once",
	"c0.Attributes.Value":    "told once",
	"c0.BirthdayFrom":        "when the date was set is told nowhere else",
	"c0.BirthdayYear":        "birthday points are told apart from others by nothing",
	"c0.Marketing.Answer":    "told once",
	"c0.Marketing.At":        "told once",
	"c0.Written one more":    "told once",
	"c0.Secret":              "answers are sealed with it, and opening one is not checked",
	"c1.Lots.AvailFrom":      "does not matter once the lot is available",
	"c2.AvailFrom":           "does not matter once the lot is available",
	"n.Latest":               "when something was written last is told nowhere else",
	"n.Replays":              "what was answered is told nowhere else",
	"r.Comment":              "told once",
	"r.RewardName":           "the reward may have another name by now",
	"r.UsedBy.Type":          "told once",
	"r.UsedBy.ID":            "told once",
	"r.UsedBy.Actor":         "told once",
	"t.Comment":              "told once",
	"t.Labels one less":      "told once",
	"t.Labels.Name":          "told once",
	"t.Labels.Value":         "told once",
	"t.Source":               "told once",
	"t.Rules one more":       "a rule that gave nothing changes no sum",
	"t.Shortfall":            "what was not there left no trace",

	"Gu.At":                  "told once; never before what it asks to undo",
	"Gu.By.Actor":            "told once",
	"Gu.By.Type":             "told once",
	"Gu.Reason":              "told once",
	"M.By.Actor":             "told once",
	"M.By.ID":                "told once",
	"M.By.Type":              "told once",
	"M.Disabled":             "told once",
	"M.MaxPointsPerDay":      "told once",
	"M.Since":                "told once",
	"S.Agent":                "told once",
	"S.CreatedAt":            "told once",
	"S.LockedAt":             "told once",
	"S.PIN.Iterations":       "told once",
	"S.ProvedAt":             "told once",
	"S.SeenAt":               "told once",
	"S.Source":               "told once",
	"S.Tries":                "told once",
	"U0.CreatedAt":           "told once",
	"U0.Disabled":            "told once",
	"U0.Locked":              "told once",
	"U0.LoggedInAt":          "told once",
	"U0.Name":                "told once",
	"U0.Operator":            "told once",
	"U0.Password.At":         "told once",
	"U0.Password.Iterations": "told once",
	"V.By.Actor":             "told once",
	"V.By.ID":                "told once",
	"V.By.Type":              "told once",
	"V.CreatedAt":            "told once",
	"V.Email":                "told once",
	"V.Expires":              "told once",
	"V.NoFactor":             "told once",
	"V.Spent":                "told once",
	"S.Kind":                 "told once",
	"S.Org":                  "the user may be in both",
	"U0.Org":                 "told once",

	"n.TicketsDropped": "told once",

	"Gk.By.Actor":  "told once",
	"Gk.By.ID":     "told once",
	"Gk.By.Type":   "told once",
	"Gk.ClosedAt":  "told once",
	"Gk.CreatedAt": "told once",

	"ok.value": "no record tells what a code was made with",

	"H.value": "how its receiver took what it got is told nowhere else",

	"t.Others.Rules one more":         "a rule that gave nothing changes no sum",
	"t.Others.Reasons.Rules one less": "what a budget had left is not kept",
	"t.Others.Shortfall":              "what was not there left no trace",
}

func TestVerifySeesChanges(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	all := s.entries()
	kinds := map[string]func([]byte) mutable{
		"c0": mutations[customer], "c1": mutations[account], "c2": mutations[lot], "c3": mutations[lot], "c5": mutations[basis], "c6": mutations[ruleUse], "c10": mutations[ruleLife],
		"C": mutations[ruleBudget], "f": mutations[configVersion],
		"m": mutations[movement], "t": mutations[sale], "r": mutations[redemption], "O": mutations[hold], "i": mutations[replay], "I": mutations[replaySlices], "u": mutations[savedUsage],
		"p": mutations[identity], "n": mutations[counters], "e": mutations[typeCount], "y": mutations[tally],
		"A": mutations[auditEntry], "P": mutations[purse], "Gu": mutations[undoRequest],
		"U0": mutations[user], "U1": mutations[secondFactor], "U4": mutations[device], "M": mutations[membership], "S": mutations[session], "V": mutations[invitation], "Gk": mutations[ticket], "Yn": mutations[ticketSigner], "Yc": mutations[card], "Yp": mutations[preEnrolment],
	}
	caught, tried := map[string]bool{}, map[string]int{} // by field: was any change of it seen, of how many?
	most := sized(1<<20, 12)
	for i, e := range all {
		table := tableName(e.Key)
		fields := mutable{"value": append(bytes.Clone(e.Value[:max(len(e.Value)-1, 0)]), 77)}
		if kinds[table] != nil {
			fields = kinds[table](e.Value)
		}
		for field, changed := range fields {
			name := table + "." + field
			if caught[name] || tried[name] >= most {
				continue
			}
			tried[name]++
			with := slices.Clone(all)
			with[i].Value = changed
			caught[name] = s.seen(with)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(caught)) {
		table, _, _ := strings.Cut(name, ".")
		if excused := told[name] + unseen[table]; caught[name] != (excused == "") {
			t.Errorf("changes of %s: seen is %t", name, caught[name])
		}
	}
}

// mutable maps each field's name to the encoded record with only that field changed.
type mutable map[string][]byte

// mutations returns the record with each of its fields changed in turn.
func mutations[T any, P recordPointer[T]](value []byte) mutable {
	changed := mutable{}
	record, err := decodeRecord[T, P](value)
	if err != nil {
		panic(err)
	}
	fields := len(leaves(reflect.ValueOf(record).Elem(), ""))
	for i := range fields {
		fresh, _ := decodeRecord[T, P](value)
		leaf := leaves(reflect.ValueOf(fresh).Elem(), "")[i]
		leaf.change()
		if record := appendRecord(nil, P(fresh)); !bytes.Equal(record, value) { // otherwise the value does not store the field
			changed[leaf.name] = record
		}
	}
	return changed
}

type leaf struct {
	name   string
	change func()
}

// leaves returns the fields of a struct. It descends into nested structs and into the
// first element of each list.
func leaves(v reflect.Value, name string) []leaf {
	switch v.Kind() {
	case reflect.Struct:
		var all []leaf
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Anonymous {
				all = append(all, leaves(v.Field(i), name)...)
			} else if f.IsExported() {
				all = append(all, leaves(v.Field(i), strings.TrimPrefix(name+"."+f.Name, "."))...)
			}
		}
		return all
	case reflect.Pointer:
		if v.IsNil() {
			return []leaf{{name, func() { v.Set(reflect.New(v.Type().Elem())) }}}
		}
		return leaves(v.Elem(), name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return []leaf{{name, func() { v.SetBytes(append(bytes.Clone(v.Bytes()), 'x')) }}}
		}
		all := []leaf{{name + " one more", func() { v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem()))) }}}
		if v.Len() > 0 {
			all = append(all, leaf{name + " one less", func() { v.Set(v.Slice(0, v.Len()-1)) }})
			all = append(all, leaves(v.Index(0), name)...)
		}
		return all
	case reflect.Array:
		return []leaf{{name, func() { v.Index(v.Len() - 1).SetUint(v.Index(v.Len()-1).Uint() ^ 1) }}}
	case reflect.String:
		return []leaf{{name, func() { v.SetString(otherText(name, v.String())) }}}
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		return []leaf{{name, func() { v.SetUint(v.Uint() + 1) }}}
	case reflect.Int64, reflect.Int32, reflect.Int:
		return []leaf{{name, func() { v.SetInt(v.Int() + 1) }}}
	case reflect.Bool:
		return []leaf{{name, func() { v.SetBool(!v.Bool()) }}}
	}
	panic("no way to change " + name)
}

// otherText returns another text for a field, or another word where a record has a byte for
// each.
func otherText(field, text string) string {
	words := map[string][]string{
		"By.Type": creatorTypes, "UsedBy.Type": creatorTypes, "Category": allCategories, "Type": saleTypes, "Source": saleSources, "Status": customerStatuses,
		"State": holdStates, "ClosedBy.Type": creatorTypes,
	}[field]
	if slices.Contains(ticketStates, text) {
		words = ticketStates
	}
	if i := slices.Index(words, text); i >= 0 || text == "" && words != nil {
		return words[(i+1)%len(words)]
	}
	return text + "x"
}

// TestVerifyImpossibleNumber checks that verify reports an impossible customer number
// and sizes nothing by a number that it has not checked.
func TestVerifyImpossibleNumber(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	for _, number := range []uint64{0, 1 << 40} {
		all := slices.Clone(s.entries())
		i := slices.IndexFunc(all, func(e Entry) bool { return tableName(e.Key) == "c0" })
		c, err := decodeRecord[customer](all[i].Value)
		s.ok(err)
		c.Number = number
		all[i].Value = appendRecord(nil, c)
		if !s.seen(all) {
			t.Errorf("number %d is not seen", number)
		}
	}
}

// TestVerifyFull checks that verify runs even if an unavailable store keeps usage from
// being written. verify returns any other error from writing usage.
func TestVerifyFull(t *testing.T) {
	t.Parallel()
	e := newEngine(newMemStore(), time.Now, cryptoSeed)
	defer e.store.Close()
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{fmt.Errorf("%w: disk full", errUnavailable), errCorrupt} {
		a := &admin{engine: e, flush: func(context.Context) error { return cause }}
		report, err := a.verify(t.Context(), verifyRequest{})
		if told := errors.Is(err, errCorrupt); told != (cause == errCorrupt) || !told && (err != nil || len(report.Problems) > 0) {
			t.Errorf("%v: %v, %v", cause, report, err)
		}
	}
}

func verify(tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return verifyWith(usualSizes(), tx, now, earlier)
}

func verifyWith(s sizes, tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return verifyBy(verifyEffort(false), s, tx, now, earlier)
}

func verifyBy(most effort, s sizes, tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return newVerifyRun(most, s, tx, now, earlier).verify()
}
