package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"sello/internal/blockset"
	"sello/internal/ngram"
)

// One verification (verifyRun), its parts on several goroutines (verifier), and what each part
// found (findings), which is joined in the end.

// maxProblems bounds the list of problems: a file that has more is no worse.
const maxProblems = 1000

// An effort is how much of the machine a verification may use.
type effort struct {
	workers int // goroutines
	room    int // bytes, for the records that are gathered at a time
}

// A verifyRun is one verification.
type verifyRun struct {
	effort
	engine  *engine
	now     instant
	earlier []ledgerState
	txs     []Tx // one for each goroutine
	seed    maphash.Seed
	secret  [2]uint64 // like seed, for hashGram
	careful tableSet  // tables whose entries are looked up one by one
	doubted tableSet  // tables whose sums differ

	progress *verifyProgress
	told     func() // is called now and then while progress changes; nil: nothing
}

// A verifyProgress says how far a verification has come. It is read while that goes on.
type verifyProgress struct {
	organizations atomic.Uint64 // how many there are; 0: the file itself is being checked
	organization  atomic.Uint64 // that is being checked, from 1
	customers     atomic.Uint64 // of that organization
	checked       atomic.Uint64 // of its customers
}

// done returns how much of the organizations is checked, of 1.
func (p *verifyProgress) done() float64 {
	part := float64(p.checked.Load()) / float64(max(p.customers.Load(), 1))
	return (float64(max(p.organization.Load(), 1)-1) + min(part, 1)) / float64(max(p.organizations.Load(), 1))
}

func (p *verifyProgress) begin(org uint32, customers uint64) {
	p.organization.Store(uint64(org))
	p.customers.Store(customers)
	p.checked.Store(0)
}

// findings are what a part of a verification has found.
type findings struct {
	problems   []string
	want, have [manySums]tableSum
	missed     [manySums]bool // an entry of the table was reported as missing
	doubted    tableSet

	ledger  ledgerState
	tallies map[programDay]*tally
	tiers   map[programName]uint64
	given   map[id]uint64 // redemptions that are not cancelled, by reward
	budgets map[programName]decimal
	status  map[byte]blockset.Set // customers by the letter of their status

	// Filled only if the tables that follow from them are looked up entry by entry.
	givenTo map[id]map[id]uint64        // redemptions that are not cancelled, by reward and customer
	blocks  map[string]*blockset.Bitmap // blocks of sets, by their keys
}

// A programName is a tier by its name, or a rule by its key.
type programName struct {
	program uint32
	name    string
}

func newFindings() *findings {
	return &findings{
		tallies: map[programDay]*tally{}, tiers: map[programName]uint64{}, given: map[id]uint64{}, budgets: map[programName]decimal{}, status: map[byte]blockset.Set{},
		givenTo: map[id]map[id]uint64{}, blocks: map[string]*blockset.Bitmap{},
	}
}

// join adds what another part has found, except its problems.
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
	for r, used := range o.budgets {
		f.budgets[r] += used
	}
	for reward, customers := range o.givenTo {
		f.givenTo[reward] = customers // only one part finds them
	}
	for letter, set := range o.status {
		for block, bits := range set {
			f.statusSet(letter).Join(block, bits[:])
		}
	}
	for k, bits := range o.blocks {
		kept := f.block(k)
		for i, b := range bits {
			kept[i] |= b
		}
	}
}

func (f *findings) day(d programDay) *tally {
	if f.tallies[d] == nil {
		f.tallies[d] = new(tally)
	}
	return f.tallies[d]
}

func (f *findings) statusSet(letter byte) blockset.Set {
	if f.status[letter] == nil {
		f.status[letter] = blockset.Set{}
	}
	return f.status[letter]
}

func (f *findings) block(k string) *blockset.Bitmap {
	if f.blocks[k] == nil {
		f.blocks[k] = new(blockset.Bitmap)
	}
	return f.blocks[k]
}

// A heldAgain is a hold as its record says, and what its movements add up to.
type heldAgain struct {
	*hold
	net      decimal   // set aside and not released
	captured decimal   // by movements
	begun    *movement // that set the points aside
	ended    *movement // the last Release
	taken    *movement // the Redemption
	last     uint64    // sequence of the last movement
	balance  decimal   // after it
	inSight  bool      // an account has it among its open ones
}

// A verifier works on a part of a verification, on one goroutine.
type verifier struct {
	txn *txn
	*findings
	run        *verifyRun
	recounting bool               // a recount is under way: what the tiers should be is not known yet
	inIndex    uint64             // customers whose texts are in the search index
	gathered   *gather            // records of the customers that are being checked; nil: none
	merges     *merges            // who was merged into whom
	someHolds  *bool              // whether the organization has any; nil: not looked for
	versions   map[uint64]*config // of the organization, that were read

	history  saleHistory
	holds    map[id]*heldAgain // of the customer; nil: it has none
	redeemed redeemed
	replayer replayer
	grams    gramSum
	space    []byte // buffer of hash
}

// txn returns a transaction of no organization.
func (r *verifyRun) txn(tx Tx, now instant) *txn {
	t := bareTxn(tx, 0, newMint(now, seed{}), creator{})
	t.sizes = &r.engine.sizes
	return t
}

func (r *verifyRun) verifier(t *txn, f *findings) *verifier {
	return &verifier{txn: t, findings: f, run: r}
}

// with returns a verifier for another goroutine, which works on another part.
func (v *verifier) with(worker int) *verifier {
	t := v.run.txn(v.run.txs[worker], v.txn.now)
	t.org, t.cfg = v.txn.org, v.txn.cfg
	w := v.run.verifier(t, newFindings())
	w.recounting, w.inIndex, w.gathered, w.merges = v.recounting, v.inIndex, v.gathered, v.merges
	return w
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.problems) < maxProblems {
		prefix := ""
		if v.txn.cfg != nil {
			prefix = v.txn.cfg.Organization.Slug + ": "
		}
		v.problems = append(v.problems, prefix+fmt.Sprintf(format, args...))
	}
}

// A subject is what a problem is about. It is put into words only if there is a problem.
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

func sortedIDs[V any](m map[id]V) []id { return slices.SortedFunc(maps.Keys(m), compareIDs) }

func compareIDs(a, b id) int { return bytes.Compare(a[:], b[:]) }

// A replayer plays an account's movements again, with no shortcut.
type replayer struct {
	v                *verifier
	account          *account
	what             subject
	keepsDays        bool // the program has a tier window, so days are counted
	balance, pending decimal
	earned           decimal
	opening          decimal
	chain            chain
	last             ledgerHash
	broken           bool        // the chain of hashes was already reported as broken
	lots             []creditLot // by sequence
	days             dayBases    // of the tier window
	stored           []storedMovement
	idle             idleAgain
	family           *familyReplay // nil for a customer without stubs
}

// A creditLot is a lot with the sale that its credit belongs to. AvailFrom is 0 once
// the lot is available.
type creditLot struct {
	lot
	sale id // none if it is zero
}

// A familyReplay is what the accounts of a family in one program add up to.
type familyReplay struct {
	earned decimal
	days   dayBases
	moved  decimal // by all movements of merges: pairs, which leave nothing
	idle   idleAgain
	lots   map[uint64]creditLot // by the sequence of their credit

	openings []decimal // of stubs
}

// merges says who was merged into whom.
type merges struct {
	stubs map[id][]id // by survivor
	into  map[id]id   // by stub
}

// owner is the customer to whom the records under an id belong.
func (m *merges) owner(cust id) id {
	if survivor, ok := m.into[cust]; ok {
		return survivor
	}
	return cust
}

// lot returns the lot of the credit at seq; nil if there is none.
func (r *replayer) lot(seq uint64) *creditLot {
	if i, found := r.findLot(seq); found {
		return &r.lots[i]
	}
	return nil
}

func (r *replayer) findLot(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(r.lots, seq, func(l creditLot, seq uint64) int { return cmp.Compare(l.Seq, seq) })
}

// keep adds a lot, or replaces the one of the same credit.
func (r *replayer) keep(l creditLot) {
	if i, found := r.findLot(l.Seq); found {
		r.lots[i] = l
	} else {
		r.lots = slices.Insert(r.lots, i, l)
	}
}

type storedMovement struct {
	seq    uint64
	record []byte
}

// A gramSum adds up where grams occur.
type gramSum struct {
	list  []ngram.At
	at    []ngram.Occurrence
	value []byte
	chars []ngram.At // single characters
}

// recordAt returns the record at seq, from the trail if it is there, else from the store.
func (v *verifier) recordAt(t *trail, letter byte, seq uint64) ([]byte, error) {
	if value := t.find(seq); value != nil {
		return value, nil
	}
	k := v.txn.scratchOrgKey(letter).u64(seq)
	value, ok, err := v.txn.Get(k)
	if err == nil && !ok {
		err = unreadable(k)
	}
	return value, err
}

func (v *verifier) stray(k []byte) { v.problem("entrada que no es de nada: %x", k) }

// eachRecord checks the records of a table whose keys begin with prefix, in key order. Other entries
// there are strays.
func eachRecord[T any, P recordPointer[T]](v *verifier, t table, prefix key, check func(Entry, *T) error) error {
	for e, err := range scan(v.txn.Tx, prefix, false) {
		if err != nil {
			return err
		}
		if v.have[t].entries++; !t.has(e.Key) {
			v.stray(e.Key)
			continue
		}
		record, err := decodeEntry[T, P](e)
		if err == nil {
			err = check(e, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) dayAt(program uint32, at instant) *tally {
	return v.day(programDay{program, v.txn.dayOf(at)})
}

func (v *verifier) hash(k, value []byte) uint64 {
	b := binary.LittleEndian.AppendUint16(v.space[:0], uint16(len(k)))
	v.space = append(append(b, k...), value...)
	return maphash.Bytes(v.run.seed, v.space)
}

// hashNumber is hash with a number as the value.
func (v *verifier) hashNumber(k []byte, n uint64) uint64 {
	var value [8]byte
	binary.LittleEndian.PutUint64(value[:], n)
	return v.hash(k, value[:])
}

// has notes that a table must have an entry. If the table is careful or compared
// byCount, it looks the entry up and reports one that is missing or different.
func (v *verifier) has(t table, k key, value []byte, what subject) error {
	v.want[t].add(v.hash(k, value))
	if !v.run.careful[t] && !t.is(byCount) {
		return nil
	}
	kept, ok, err := v.txn.Get(k)
	if err != nil {
		return err
	}
	if !ok || !bytes.Equal(kept, value) {
		v.missed[t] = true
		v.problem("%v: falta o difiere en %s", what, t.inWords())
	}
	return nil
}

// inSet says that a number must be in a set of a table.
func (v *verifier) inSet(t table, set key, number uint64) {
	v.inBlock(t, set.u32(uint32(number/blockset.Block)), number)
}

// inBlock says that a number must be in a set, in the block at k.
func (v *verifier) inBlock(t table, k key, number uint64) {
	if v.run.careful[t] {
		v.block(string(k))[number%blockset.Block/8] |= 1 << (number % 8)
		return
	}
	v.want[t].sum += v.hashNumber(k, number)
}

// doubt marks a table: the next pass looks up its entries one by one.
func (v *verifier) doubt(t table) { v.doubted[t] = true }
