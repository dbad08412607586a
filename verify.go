package main

import (
	"cmp"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"

	"sello/internal/blockset"
	"sello/internal/parallel"
)

// verify recomputes everything that is derived from something else (balances
// and lots from the movements; totals, counters, lists and indexes from the
// records) and reports what differs. It only reads.
//
// Each record says which entries other tables must have because of it. The hashes of
// these entries are summed up for each table, and so are the hashes of the entries that
// the table has (verify_tables.go). So several goroutines read tables in key order, and
// no entry is looked up. If the two sums of a table differ, another pass goes through
// everything, looks up one by one each entry that the table must have, and reports the
// missing and different ones.

// A verification reports what was checked and what was wrong.
type verification struct {
	Organizations uint64   `json:"organizations"`
	Customers     uint64   `json:"customers"`
	Hidden        uint64   `json:"hiddenCustomers"` // merged and erased ones, not in Customers
	Movements     uint64   `json:"movements"`
	Sales         uint64   `json:"sales"`
	Redemptions   uint64   `json:"redemptions"`
	Problems      []string `json:"problems"`

	Ledgers []ledgerState `json:"ledgers"`
}

// mostVerifiers bounds the goroutines of a verification. The records that it
// gathers are shared out among them.
const mostVerifiers = 8

// A verification gathers gatherRoom bytes of records at a time. In a server it
// gathers less, because requests need memory too. verifyMemory limits the memory
// of the command, unless GOMEMLIMIT does.
const (
	gatherRoom         = 112 << 20
	gatherRoomInServer = 24 << 20
	verifyMemory       = 216 << 20
)

// verifyEffort returns the effort of a verification that has the machine to itself.
// One in a server takes half of the processors.
func verifyEffort(inServer bool) effort {
	n, room := min(runtime.NumCPU(), runtime.GOMAXPROCS(0), mostVerifiers), gatherRoom
	if inServer {
		n, room = max(n/2, 1), gatherRoomInServer
	}
	return effort{workers: n, room: room}
}

// verify checks everything, in as many passes as it takes.
func (r *verifyRun) verify() (*verification, error) {
	for {
		report, err := r.pass()
		if err != nil || r.doubted == (tableSet{}) {
			return report, err
		}
		// No doubted table was looked up in this pass, so each pass adds some to
		// careful and the loop ends. A table that agreed with a wrong one may be
		// doubted next.
		r.careful.join(&r.doubted)
		r.doubted = tableSet{}
	}
}

// newVerifyRun makes a run that also checks that the ledgers continue the earlier ones.
func newVerifyRun(most effort, s sizes, tx Tx, now instant, earlier []ledgerState) *verifyRun {
	r := &verifyRun{
		effort: most, engine: &engine{sizes: s}, now: now, earlier: earlier,
		txs: shares(tx, most.workers), seed: maphash.MakeSeed(),
		progress: new(verifyProgress),
	}
	r.workers = len(r.txs)
	for t := range r.careful { // looked up in every pass
		r.careful[t] = table(t).is(byEntry)
	}
	r.secret = [2]uint64{maphash.Comparable(r.seed, 1), maphash.Comparable(r.seed, 2)}
	return r
}

// pass checks everything once.
func (r *verifyRun) pass() (*verification, error) {
	report := &verification{Problems: []string{}, Ledgers: []ledgerState{}}
	n, err := organizationCount(r.txs[0])
	if err != nil {
		return nil, err
	}
	report.Organizations = n
	r.progress.organizations.Store(n)
	all := r.verifier(r.txn(r.txs[0], r.now), newFindings())
	for org := range uint32(n) {
		if err := r.organization(org+1, report, all); err != nil {
			return nil, err
		}
	}
	for _, e := range r.earlier {
		if !slices.ContainsFunc(report.Ledgers, func(l ledgerState) bool { return l.Organization == e.Organization }) {
			all.problem("%s: la organización no está", e.Organization)
		}
	}
	if err := r.sharedTables(all.findings); err != nil {
		return nil, err
	}
	if err := all.cards(); err != nil {
		return nil, err
	}
	if err := all.joins(uint32(n)); err != nil {
		return nil, err
	}
	if err := all.people(uint32(n)); err != nil {
		return nil, err
	}
	all.compareTables(tablesOfAll)
	r.doubted.join(&all.doubted)
	if err := all.strays(uint32(n)); err != nil {
		return nil, err
	}
	report.tell(all.findings)
	return report, nil
}

// tell adds problems to the report.
func (report *verification) tell(f *findings) {
	room := maxProblems - len(report.Problems)
	report.Problems = append(report.Problems, f.problems[:min(room, len(f.problems))]...)
}

// organization checks an organization and adds its part of the shared tables to all.
func (r *verifyRun) organization(org uint32, report *verification, all *verifier) error {
	t, err := r.engine.inTxn(r.txs[0], org, r.now, seed{})
	if err != nil {
		return err
	}
	c, err := t.count()
	if err != nil {
		return err
	}
	r.progress.begin(org, c.Customers)
	t.now = max(r.now, c.Latest) // the clock may have been set back since the last write
	v := r.verifier(t, newFindings())
	if _, v.recounting, err = getUint(v.txn.Tx, orgKey('q', v.txn.org)); err != nil {
		return err
	}
	slug := v.txn.cfg.Organization.Slug
	if err := v.has(tableSlugs, newKey('o').byte('s').text(slug), numberValue(uint64(v.txn.org)), subject{kind: slug}); err != nil {
		return err
	}
	if v.inIndex, err = v.toIndex(); err != nil {
		return err
	}
	if v.merges, err = v.readMerges(); err != nil {
		return err
	}
	ledger, rest, err := v.orders()
	if err != nil {
		return err
	}
	if err := v.allCustomers(); err != nil {
		return err
	}
	for _, f := range rest {
		v.problems = append(v.problems, f.problems...)
	}
	if err := v.follows(); err != nil {
		return err
	}
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	v.compareCounters(n)
	v.compareTables(tablesOfOne)
	v.problems = append(v.problems, ledger.problems...) // last: they compare with an earlier verification
	hidden := v.hidden()
	report.Customers += n.Customers - min(hidden, n.Customers)
	report.Hidden += hidden
	report.Movements += n.Movements
	report.Sales += n.Sales
	report.Redemptions += n.Redemptions
	report.Ledgers = append(report.Ledgers, v.ledger)
	report.tell(v.findings)
	for _, t := range tablesOfAll {
		all.want[t].join(v.want[t])
	}
	r.doubted.join(&v.doubted)
	return nil
}

// orders reads the tables of an organization, each in key order. It returns the
// findings on the ledger, and the findings on the rest in a fixed order.
func (v *verifier) orders() (ledger *findings, rest []*findings, err error) {
	tasks := []func(*verifier) error{(*verifier).ledgerOf, (*verifier).auditLog, (*verifier).eventFeed, (*verifier).allSales, (*verifier).tickets, (*verifier).redemptions, (*verifier).searchIndex, (*verifier).configVersions}
	for _, t := range tablesOfOne {
		if t.is(scanned) {
			tasks = append(tasks, func(w *verifier) error { return w.scanTable(t, t.in(w.txn.org)) })
		}
	}
	found, err := v.inParallel(len(tasks), func(w *verifier, i int) error { return tasks[i](w) })
	if err != nil {
		return nil, nil, err
	}
	v.ledger = found[0].ledger
	v.ledger.AuditEntries, v.ledger.AuditDigest = found[1].ledger.AuditEntries, found[1].ledger.AuditDigest
	return found[0], found[1:], nil
}

// inParallel calls fn for parts 0 to n-1, with one verifier for each goroutine, and
// adds up their findings. It returns the findings of each part.
func (v *verifier) inParallel(n int, fn func(w *verifier, part int) error) ([]*findings, error) {
	found := make([]*findings, n)
	free := make([]*verifier, v.run.workers)
	err := parallel.Do(v.run.workers, n, func(worker, part int) error {
		if free[worker] == nil {
			free[worker] = v.with(worker)
		}
		w := free[worker]
		w.findings = newFindings()
		found[part] = w.findings
		return fn(w, part)
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		v.join(f)
	}
	return found, nil
}

// sharedTables reads the tables that all organizations share.
func (r *verifyRun) sharedTables(all *findings) error {
	parts := []struct {
		table  table
		prefix key
	}{
		{tableIdentities, newKey('p').byte(kindEmail)},
		{tableIdentities, newKey('p').byte(kindPhone)},
		{tableDue, newKey('d')},
		{tableDueVouchers, newKey('W')},
		{tableAPIKeys, newKey('a')},
		{tableSlugs, newKey('o').byte('s')},
		{tableEmails, newKey('N')},
		{tableInvitationList, newKey('L')},
		{tableJoinCodes, tableJoinCodes.fixed()},
		{tableJoinTurns, tableJoinTurns.fixed()},
		{tableTicketCodes, tableTicketCodes.fixed()},
		{tableTicketSigners, tableTicketSigners.fixed()},
	}
	_, err := r.verifier(r.txn(nil, r.now), all).inParallel(len(parts), func(w *verifier, i int) error {
		return w.scanTable(parts[i].table, parts[i].prefix)
	})
	return err
}

// follows checks what follows from the findings on all records.
func (v *verifier) follows() error {
	for _, check := range []func(*verifier) error{
		(*verifier).ruleBudgets, (*verifier).rewards, (*verifier).statistics, (*verifier).sets, (*verifier).statuses,
		(*verifier).birthdayTurn, (*verifier).handout, (*verifier).undoRequests, (*verifier).strayParts, (*verifier).apiKeys, (*verifier).codeSecret,
	} {
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// sets checks the sets whose blocks are looked up one by one.
func (v *verifier) sets() error {
	for _, k := range slices.Sorted(maps.Keys(v.blocks)) {
		t, _ := tableOf([]byte(k))
		what := subject{kind: t.inWords()}
		if t == tableRedemptionsOf {
			t = tableRecords
		}
		if err := v.has(t, key(k), v.blocks[k].Encode(), what); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) compareCounters(n *counters) {
	for _, c := range []struct {
		name string
		kept uint64
		of   table
	}{
		{"clientes", n.Customers, tableCustomers},
		{"movimientos", n.Movements, tableMovements},
		{"ventas", n.Sales, tableSales},
		{"compras", n.Purchases, tablePurchases},
		{"devoluciones", n.Returns, tableReturns},
		{"canjes", n.Redemptions, tableRedemptions},
		{"auditoría", n.Audit, tableAudit},
	} {
		equal(v, subject{kind: "contador de " + c.name}, "", c.kept, v.want[c.of].entries)
	}
}

// rewards checks how often rewards were redeemed, by all and by each customer.
func (v *verifier) rewards() error {
	for _, rid := range sortedIDs(v.given) {
		what := subject{kind: "recompensa", id: rid}
		customers := v.givenTo[rid]
		for _, cust := range sortedIDs(customers) {
			if err := v.has(tableRecords, v.txn.rewards.customerRewardKey(cust, rid), numberValue(customers[cust]), what); err != nil {
				return err
			}
		}
		if err := v.has(tableRewardCounts, v.txn.rewards.countKey(rid), numberValue(v.given[rid]), what); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) statistics() error {
	days := slices.SortedFunc(maps.Keys(v.tallies), func(a, b programDay) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.day, b.day))
	})
	for _, d := range days {
		if err := v.has(tableTallies, v.txn.stats.tallyKey(d), appendRecord(nil, v.tallies[d]), subject{kind: "día " + d.day.String()}); err != nil {
			return err
		}
	}
	for _, t := range sortedNames(v.tiers) {
		if t.name == "" {
			continue
		}
		if err := v.has(tableTiers, v.txn.stats.tierCountKey(t.program, t.name), numberValue(v.tiers[t]), subject{kind: "nivel " + t.name}); err != nil {
			return err
		}
	}
	return nil
}

// statuses looks up the sets of customers by status, and their counts.
func (v *verifier) statuses() error {
	what := subject{kind: "clientes por estado"}
	for _, letter := range slices.Sorted(maps.Keys(v.status)) {
		set, counts := v.status[letter], map[uint32]uint64{}
		for _, block := range slices.Sorted(maps.Keys(set)) {
			if err := v.has(tableStatuses, v.txn.customers.statusKey(letter).u32(block), set[block].Encode(), what); err != nil {
				return err
			}
			counts[block*blockset.Block/statusGroup] += set[block].Count()
		}
		for _, group := range slices.Sorted(maps.Keys(counts)) {
			if err := v.has(tableStatusCounts, v.txn.customers.statusCountKey(letter, group), numberValue(counts[group]), what); err != nil {
				return err
			}
		}
	}
	return nil
}

// hidden counts the records of merged and erased customers.
func (v *verifier) hidden() (n uint64) {
	for _, status := range []string{statusMerged, statusErased} {
		n += v.status[statusLetter(status)].Count()
	}
	return n
}

// birthdayTurn checks that there is one where there are Birthday rules, and only there.
func (v *verifier) birthdayTurn() error {
	k := orgKey('D', v.txn.org)
	value, ok, err := v.txn.Get(k)
	if err != nil {
		return err
	}
	switch wanted := v.txn.cfg.hasBirthdays(); {
	case wanted && !ok:
		v.problem("próximos cumpleaños: faltan")
	case ok && !wanted:
		v.problem("próximos cumpleaños: sobran, no hay reglas de cumpleaños")
	}
	if ok {
		if _, err := decodeEntry[birthdayTurn](Entry{Key: k, Value: value}); err != nil {
			return err
		}
		v.want[tableBirthdays].add(v.hash(k, value))
	}
	return nil
}

// handout checks that points for a segment are of a program that there is, and that no more
// customers got them than were looked at.
func (v *verifier) handout() error {
	h, err := handoutIn(v.txn.Tx, v.txn.org)
	if err != nil || h == nil {
		return err
	}
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	if v.txn.cfg.programNumber(h.Program) == nil || h.Points <= 0 || h.Given+h.Left > n.Customers || h.After > n.Customers {
		v.problem("puntos para un segmento: no puede ser lo que dice")
	}
	return nil
}

// apiKeys checks the list of API keys, and the purses of keys and members.
func (v *verifier) apiKeys() error {
	purses := map[id]bool{}
	for e, err := range scan(v.txn.Tx, orgKey('k', v.txn.org), false) {
		if err != nil {
			return err
		}
		if len(e.Key) != 5+16 || len(e.Value) != 32 {
			v.stray(e.Key)
			continue
		}
		v.want[tableKeyList].entries++
		v.want[tableAPIKeys].entries++
		k, err := keyByHash(v.txn.Tx, [32]byte(e.Value))
		if err != nil {
			return err
		}
		if k == nil || k.ID != id(e.Key[5:]) || k.Org != v.txn.org {
			v.problem("API key %s: falta o difiere", id(e.Key[5:]))
			continue
		}
		purses[k.purse()] = true
		if err := v.signs(k); err != nil {
			return err
		}
	}
	return v.purses(purses)
}

// signs checks that the number under which a key signs tickets is the key's.
func (v *verifier) signs(k *apiKey) error {
	if k.TicketNumber == 0 {
		return nil
	}
	v.want[tableTicketSigners].entries++
	signer, err := get[ticketSigner](v.txn.Tx, ticketSignerKey(k.TicketNumber))
	if err == nil && (signer == nil || signer.Org != k.Org || signer.Key != k.ID) {
		v.problem("API key %s: el número con que firma tickets no es suyo", k.ID)
	}
	return err
}

// purses checks the purses of keys and members; of is what keys have.
func (v *verifier) purses(of map[id]bool) error {
	members := orgKey('M', v.txn.org)
	for e, err := range scan(v.txn.Tx, members, false) {
		if err != nil {
			return err
		}
		if tableMemberships.has(e.Key) {
			of[id(e.Key[len(members):])] = true
		}
	}
	for e, err := range scan(v.txn.Tx, orgKey('P', v.txn.org), false) {
		if err != nil {
			return err
		}
		if !tablePurses.has(e.Key) || !of[id(e.Key[5:21])] {
			v.stray(e.Key)
			continue
		}
		p, err := decodeEntry[purse](e)
		if err != nil {
			return err
		}
		if p.Given <= 0 || p.Given > maxDecimal {
			v.problem("%s: dio %v puntos a mano en un día", id(e.Key[5:21]), p.Given)
		}
	}
	return nil
}

// A round is a group of customers whose records are gathered together, in several spans.
type round []id // where each span begins, and where the last one ends

// partsOfRound is how many spans of customers a round has for each goroutine.
const partsOfRound = 4

// rounds divides the customers into rounds whose records should fit in the room.
func (v *verifier) rounds() ([]round, error) {
	n, err := v.txn.count()
	if err != nil {
		return nil, err
	}
	bytes := n.Movements*gatherBytes[gatherMovements] + n.Sales*gatherBytes[gatherSales] + n.Redemptions*gatherBytes[gatherRedemptions]
	const few = 256 // fewer customers are not worth a span
	inRound := min(uint64(partsOfRound*v.run.workers), n.Customers/few+1)
	spans := (min(bytes, 1<<36)/uint64(max(v.run.room, 1)) + 1) * inRound
	begins := []id{{}}
	for i := uint64(1); i < min(spans, n.Customers); i++ {
		value, _, err := v.txn.Get(v.txn.scratchOrgKey('l').byte('c').u64(n.Customers * i / spans))
		if err != nil {
			return nil, err
		}
		if len(value) == 16 { // else the span before it becomes longer
			begins = append(begins, id(value))
		}
	}
	slices.SortFunc(begins, compareIDs)
	begins = slices.Compact(begins)
	var list []round
	for chunk := range slices.Chunk(begins, int(inRound)) {
		list = append(list, append(round(nil), chunk...))
	}
	for i := range list {
		var end id
		if i+1 < len(list) {
			end = list[i+1][0]
		}
		list[i] = append(list[i], end)
	}
	return list, nil
}

// allCustomers checks every customer, round by round.
func (v *verifier) allCustomers() error {
	rounds, err := v.rounds()
	if err != nil {
		return err
	}
	v.gathered = &gather{parts: make([]gatherPart, v.run.workers), expected: v.run.room / v.run.workers * 2 / 3}
	if len(rounds) == 1 {
		v.gathered.expected = 0 // much less may be enough
	}
	for _, r := range rounds {
		v.gathered.from, v.gathered.to = r[0], r[len(r)-1]
		_, err := v.inParallel(v.run.workers, func(w *verifier, part int) error {
			return w.fill(w.gathered, part, v.run.workers)
		})
		if err != nil {
			return err
		}
		found, err := v.inParallel(len(r)-1, func(w *verifier, i int) error { return w.customers(r[i], r[i+1]) })
		if err != nil {
			return err
		}
		for _, f := range found {
			v.problems = append(v.problems, f.problems...)
		}
	}
	v.gathered = nil
	return nil
}

// fill gathers the records of one part, until its room is full.
func (v *verifier) fill(g *gather, part, of int) error {
	p := &g.parts[part]
	p.bytes, p.records = p.bytes[:0], p.records[:0]
	if p.newest == nil {
		p.bytes, p.newest = make([]byte, 0, g.expected), map[id][gatherKinds]int32{}
	}
	clear(p.newest)
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	room := v.run.room / of
	for kind, table := range [gatherKinds]struct {
		letter byte
		last   uint64
	}{{'m', n.Movements}, {'t', n.Sales}, {'r', n.Redemptions}} {
		from, to := orgKey(table.letter, v.txn.org), orgKey(table.letter, v.txn.org).after()
		if part > 0 {
			from = from.u64(table.last/uint64(of)*uint64(part) + 1)
		}
		if part < of-1 {
			to = orgKey(table.letter, v.txn.org).u64(table.last/uint64(of)*uint64(part+1) + 1)
		}
		for e, err := range v.txn.Scan(from, to, false) {
			if err != nil {
				return err
			}
			cust, err := customerIn(e.Value)
			if err != nil {
				return atKey(e.Key, err)
			}
			if len(e.Key) != 13 || !g.has(cust) {
				continue
			}
			if len(p.bytes)+recordSize*len(p.records)+len(e.Value) > room {
				return nil
			}
			p.add(kind, cust, uintIn(e.Key[5:]), e.Value)
		}
	}
	return nil
}
