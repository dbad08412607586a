package main

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"

	"sello/internal/parallel"
)

// verify recomputes everything that follows from something else (balances
// and lots from the movements; totals, counters, lists and indexes from the
// records) and says what differs. It reads and changes nothing.
//
// Each record is asked for what must be there because of it. What must be in a
// table is added up, and so is what is in it (verify_tables.go): so tables are
// read in the order of their keys, by several goroutines, and no entry is
// looked up. Where the sums of a table differ, all is gone through once more,
// and what must be in that table is looked up entry by entry, to say what is
// missing or other than it should be.
//
//	verify.go            what is done in which order, and an organization as a whole
//	verify_tables.go     tables and what they hold, strays
//	verify_gather.go     what belongs to customers, brought together
//	verify_customers.go  customers, their sales and redemptions
//	verify_accounts.go   accounts: movements played again
//	verify_sales.go      lists, indexes and the log of sales; redemptions
//	verify_search.go     the search index
//	ledger.go            hashes of movements

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

// mostVerifiers bounds the goroutines of a verification: the records that it
// gathers are shared out among them.
const mostVerifiers = 8

// How many bytes of records a verification gathers at a time, and how much
// memory it has then, unless GOMEMLIMIT says otherwise. In a server others need
// theirs.
const (
	gatherRoom         = 112 << 20
	gatherRoomInServer = 24 << 20
	verifyMemory       = 216 << 20
)

// An effort is what a verification may take of the machine.
type effort struct {
	workers int // goroutines
	room    int // bytes, for the records that are gathered at a time
}

// verifyEffort is the effort of a verification that has the machine to itself; one
// in a server takes half of the processors.
func verifyEffort(inServer bool) effort {
	n, room := min(runtime.NumCPU(), runtime.GOMAXPROCS(0), mostVerifiers), gatherRoom
	if inServer {
		n, room = max(n/2, 1), gatherRoomInServer
	}
	return effort{workers: n, room: room}
}

// A verifyRun is one verification.
type verifyRun struct {
	effort
	engine  *engine
	now     instant
	earlier []ledgerState
	txs     []Tx // one for each goroutine
	seed    maphash.Seed
	secret  [2]uint64 // as seed, for hashGram
	careful tableSet  // whose entries are looked up one by one
	doubted tableSet  // whose sums differ
}

// verify also checks that the ledgers go on from where they were earlier.
func verify(tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return verifyWith(usualSizes(), tx, now, earlier)
}

func verifyWith(s sizes, tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	return verifyBy(verifyEffort(false), s, tx, now, earlier)
}

func verifyBy(most effort, s sizes, tx Tx, now instant, earlier []ledgerState) (*verification, error) {
	r := newVerifyRun(most, s, tx, now, earlier)
	for {
		report, err := r.pass()
		if err != nil || r.doubted == (tableSet{}) {
			return report, err
		}
		// None of them was looked up in this pass, so this comes to an end. Another
		// table may be doubted next: one that agreed with a table that was wrong.
		r.careful.join(&r.doubted)
		r.doubted = tableSet{}
	}
}

func newVerifyRun(most effort, s sizes, tx Tx, now instant, earlier []ledgerState) *verifyRun {
	r := &verifyRun{
		effort: most, engine: &engine{sizes: s}, now: now, earlier: earlier,
		txs: shares(tx, most.workers), seed: maphash.MakeSeed(), careful: alwaysCareful(),
	}
	r.workers = len(r.txs)
	r.secret = [2]uint64{maphash.Comparable(r.seed, 1), maphash.Comparable(r.seed, 2)}
	return r
}

// pass goes through everything once.
func (r *verifyRun) pass() (*verification, error) {
	report := &verification{Problems: []string{}, Ledgers: []ledgerState{}}
	n, _, err := getUint(r.txs[0], newKey('o').byte('n'))
	if err != nil {
		return nil, err
	}
	report.Organizations = n
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

// findings are what a part of a verification has found.
type findings struct {
	problems   []string
	want, have [manyTables]tableSum
	missed     [manyTables]bool // an entry of it was told to be missing
	doubted    tableSet

	ledger  ledgerState
	tallies map[programDay]*tally
	tiers   map[programTier]uint64
	given   map[id]uint64 // standing redemptions by reward

	// Where the tables that follow are looked up entry by entry.
	givenTo map[id]map[id]uint64 // standing redemptions by reward and customer
	active  map[string]blockSet  // by the key of the set
}

type programTier struct {
	program uint32
	tier    string
}

func newFindings() *findings {
	return &findings{
		tallies: map[programDay]*tally{}, tiers: map[programTier]uint64{}, given: map[id]uint64{},
		givenTo: map[id]map[id]uint64{}, active: map[string]blockSet{},
	}
}

// join adds what another part has found, but for its problems.
func (f *findings) join(o *findings) {
	for t := range f.want {
		f.want[t].join(o.want[t])
		f.have[t].join(o.have[t])
		f.missed[t] = f.missed[t] || o.missed[t]
	}
	f.doubted.join(&o.doubted)
	for d, s := range o.tallies {
		kept := f.day(d)
		kept.add(s)
		kept.Active += s.Active
	}
	for t, n := range o.tiers {
		f.tiers[t] += n
	}
	for reward, n := range o.given {
		f.given[reward] += n
	}
	for reward, customers := range o.givenTo {
		f.givenTo[reward] = customers // one part alone finds them
	}
	for k, set := range o.active {
		for block, bits := range set {
			f.activeSet(k).join(block, bits[:])
		}
	}
}

func (f *findings) day(d programDay) *tally {
	if f.tallies[d] == nil {
		f.tallies[d] = new(tally)
	}
	return f.tallies[d]
}

func (f *findings) activeSet(k string) blockSet {
	if f.active[k] == nil {
		f.active[k] = blockSet{}
	}
	return f.active[k]
}

// A verifier works on a part of a verification, on one goroutine.
type verifier struct {
	*txn
	*findings
	run        *verifyRun
	recounting bool    // tiers are being counted anew: no telling yet what they should be
	inIndex    uint64  // customers whose texts are in the search index
	gathered   *gather // records of the customers that are looked at; nil: none

	history  saleHistory
	redeemed redeemed
	replayer replayer
	grams    gramSum
	space    []byte // of the last hash
}

// txn returns a transaction of no organization.
func (r *verifyRun) txn(tx Tx, now instant) *txn {
	t := &txn{Tx: tx, ids: mint{now: now}, sizes: &r.engine.sizes}
	t.mint = &t.ids
	return t
}

func (r *verifyRun) verifier(t *txn, f *findings) *verifier {
	return &verifier{txn: t, findings: f, run: r}
}

// with returns a verifier that works for another goroutine, on another part.
func (v *verifier) with(worker int) *verifier {
	t := v.run.txn(v.run.txs[worker], v.now)
	t.org, t.cfg = v.org, v.cfg
	w := v.run.verifier(t, newFindings())
	w.recounting, w.inIndex, w.gathered = v.recounting, v.inIndex, v.gathered
	return w
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.problems) < maxProblems {
		prefix := ""
		if v.cfg != nil {
			prefix = v.cfg.Organization.Slug + ": "
		}
		v.problems = append(v.problems, prefix+fmt.Sprintf(format, args...))
	}
}

// A subject is what a problem is told of. It is put into words only then.
type subject struct {
	kind string
	id   id     // none if it is zero
	more string // behind a slash
}

func (s subject) String() string {
	text := s.kind
	if s.id != (id{}) {
		text += " " + s.id.String()
	}
	if s.more != "" {
		text += "/" + s.more
	}
	return text
}

// equal reports a difference between what is kept and what it should be.
func equal[T comparable](v *verifier, what subject, field string, kept, should T) {
	if kept != should {
		v.differs(what, field, kept, should)
	}
}

func (v *verifier) differs(what subject, field string, kept, should any) {
	v.problem("%v%s: es %v y debería ser %v", what, field, kept, should)
}

func equalChains(v *verifier, what subject, field string, kept, should *chain) {
	if kept.N != should.N || !slices.Equal(kept.Path, should.Path) {
		v.differs(what, field, *kept, *should)
	}
}

// organization checks an organization and adds what it has to what all have.
func (r *verifyRun) organization(org uint32, report *verification, all *verifier) error {
	t, err := r.engine.inTxn(r.txs[0], org, r.now, seed{})
	if err != nil {
		return err
	}
	c, err := t.count()
	if err != nil {
		return err
	}
	t.now = max(r.now, c.Latest) // the clock may have been set back since what is written
	v := r.verifier(t, newFindings())
	if _, v.recounting, err = getUint(v.Tx, orgKey('q', v.org)); err != nil {
		return err
	}
	slug := v.cfg.Organization.Slug
	if err := v.has(tableSlugs, newKey('o').byte('s').text(slug), numberValue(uint64(v.org)), subject{kind: slug}); err != nil {
		return err
	}
	if v.inIndex, err = v.toIndex(); err != nil {
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
	n, err := v.count()
	if err != nil {
		return err
	}
	v.compareCounters(n)
	v.compareTables(tablesOfOne)
	v.problems = append(v.problems, ledger.problems...) // last: they are of what was known before
	report.Customers += n.Customers
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

// orders reads the tables of an organization, each in the order of its keys. It
// returns what was found of the ledger, and of the rest in a fixed order.
func (v *verifier) orders() (ledger *findings, rest []*findings, err error) {
	tasks := []func(*verifier) error{(*verifier).ledgerOf, (*verifier).allSales, (*verifier).redemptions, (*verifier).searchIndex}
	for _, t := range tablesOfOne {
		if tables[t].scanned {
			tasks = append(tasks, func(w *verifier) error { return w.scanTable(t, orgKey(tables[t].letter, w.org).text(tables[t].kind)) })
		}
	}
	found, err := v.inParallel(len(tasks), func(w *verifier, i int) error { return tasks[i](w) })
	if err != nil {
		return nil, nil, err
	}
	v.ledger = found[0].ledger
	return found[0], found[1:], nil
}

// inParallel calls fn for so many parts, each with a verifier of its own, and
// adds up what they find. It returns what each of them has found.
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
		{tableAPIKeys, newKey('a')},
		{tableSlugs, newKey('o').byte('s')},
	}
	_, err := r.verifier(r.txn(nil, r.now), all).inParallel(len(parts), func(w *verifier, i int) error {
		return w.scanTable(parts[i].table, parts[i].prefix)
	})
	return err
}

// follows checks what follows from the findings on all records.
func (v *verifier) follows() error {
	if err := v.rewards(); err != nil {
		return err
	}
	if err := v.statistics(); err != nil {
		return err
	}
	return v.apiKeys()
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
			if err := v.has(tableRecords, v.customerRewardKey(cust, rid), numberValue(customers[cust]), what); err != nil {
				return err
			}
		}
		if err := v.has(tableRewardCounts, v.rewardCountKey(rid), numberValue(v.given[rid]), what); err != nil {
			return err
		}
	}
	return nil
}

func sortedIDs[V any](m map[id]V) []id { return slices.SortedFunc(maps.Keys(m), compareIDs) }

func compareIDs(a, b id) int { return bytes.Compare(a[:], b[:]) }

func (v *verifier) statistics() error {
	days := slices.SortedFunc(maps.Keys(v.tallies), func(a, b programDay) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.day, b.day))
	})
	for _, d := range days {
		w := writer{b: []byte{recordVersion}}
		v.tallies[d].encode(&w)
		if err := v.has(tableTallies, v.tallyKey(d), w.b, subject{kind: "día " + d.day.String()}); err != nil {
			return err
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(v.active)) {
		set := v.active[prefix]
		for _, block := range slices.Sorted(maps.Keys(set)) {
			if err := v.has(tableActive, key(prefix).u32(block), fromBitmap(set[block]), subject{kind: "clientes activos"}); err != nil {
				return err
			}
		}
	}
	tiers := slices.SortedFunc(maps.Keys(v.tiers), func(a, b programTier) int {
		return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.tier, b.tier))
	})
	for _, t := range tiers {
		if t.tier == "" {
			continue
		}
		if err := v.has(tableTiers, v.tierCountKey(t.program, t.tier), numberValue(v.tiers[t]), subject{kind: "nivel " + t.tier}); err != nil {
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
		if len(e.Key) != 5+16 || len(e.Value) != 32 {
			v.stray(e.Key)
			continue
		}
		v.want[tableKeyList].entries++
		v.want[tableAPIKeys].entries++
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
