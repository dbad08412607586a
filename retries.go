package main

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"sello/internal/pack"
)

// A replay is the first answer to a POST. It is kept so that a retry gets the same
// bytes again and changes nothing (contract §6). It is written in the transaction of
// the POST.
//
// An organization's replays are numbered and stored in the order they come. Their names
// are random. Every POST looks a name up, and most of the time there is none. So the
// names lie in slices of some hours and some ten thousand names each. Only the newest
// slice is written to, which keeps writes close together, and a slice that is too old
// is dropped as a whole. Filters rule out most names without a look into the slices
// (retries_filter.go).
//
// An answer that names customers is sealed (customers_merged.go): erasing one of them makes it
// unreadable.
//
//	i org number         → replay
//	I org                → the slices
//	I org first name(16) → number minus first, as a varint; first(8) is the slice's first number
type replay struct {
	CreatedAt instant
	Request   [16]byte // digest of the request, which a retry must match
	Status    int
	Body      []byte

	Customers []uint64      // numbers of the customers that the answer shows; if any, it is sealed
	sealed    []byte        // the packed body as it was read, sealed
	stream    cipher.Stream // that fields seals Body with; nil: it writes sealed
}

func (r *replay) fields(c *coder) {
	c.instant(&r.CreatedAt)
	c.id((*id)(&r.Request))
	uintField(c, &r.Status)
	c.uints(&r.Customers)
	if sealed := len(r.Customers) > 0; c.reading {
		r.readBody(&c.reader, sealed)
	} else {
		c.b = r.appendBody(c.b, sealed)
	}
}

func (r *replay) appendBody(b []byte, sealed bool) []byte {
	if sealed && r.stream == nil {
		return append(b, r.sealed...)
	}
	start := len(b)
	if b = packedWords.Pack(b, r.Body); r.stream != nil {
		r.stream.XORKeyStream(b[start:], b[start:])
	}
	return b
}

func (r *replay) readBody(from *reader, sealed bool) {
	packed := from.take(uint64(len(from.b)))
	if sealed {
		r.sealed = slices.Clone(packed)
		return
	}
	var err error
	if r.Body, err = packedWords.Unpack(packed); err != nil {
		from.fail()
	}
}

const (
	replayTime = 24 * 3600 * 1000 // milliseconds

	// A slice takes the replays of sliceTime, but no more than sliceNames or a
	// sixty-fourth of all that are kept, whichever is more.
	sliceTime  = 6 * 3600 * 1000
	sliceNames = 1 << 15
)

// isFresh reports whether a replay still answers. One from far ahead was written while
// the clock was wrong.
func isFresh(at, now instant) bool { return now-replayTime < at && at < now+replayTime }

// A replaySlice holds the names of the replays numbered from First up to the next
// slice's First.
type replaySlice struct {
	First uint64
	Began instant
}

// isOpen reports whether now falls into the time of the slice.
func (s replaySlice) isOpen(now instant) bool {
	return s.Began-sliceTime < now && now < s.Began+sliceTime
}

// isStale reports whether nothing in the slice can be fresh.
func (s replaySlice) isStale(now instant) bool {
	return s.Began+sliceTime+replayTime <= now || now+sliceTime+replayTime <= s.Began
}

type replaysTxn struct {
	t      *txn
	filter *replayFilter // nil: none
	slices *knownSlices
	known  *replaySlices // nil until asked for
}

// The next call of scratchKey or scratchOrgKey overwrites the keys of nameKey and replayKey.

func (rep *replaysTxn) nameKey(s replaySlice, name [16]byte) key {
	return rep.t.scratchOrgKey('I').u64(s.First).id(id(name))
}

func (rep *replaysTxn) replayKey(number uint64) key { return rep.t.scratchOrgKey('i').u64(number) }

// replaySlices are the slices of one organization, oldest first.
type replaySlices struct{ List []replaySlice }

func (l *replaySlices) fields(c *coder) { listField(c, &l.List, (*replaySlice).fields) }

func (s *replaySlice) fields(c *coder) { c.uint(&s.First); c.instant(&s.Began) }

// list returns the organization's slices. open may add to them.
func (rep *replaysTxn) list() (l *replaySlices, err error) {
	if rep.known == nil {
		rep.known, err = rep.slices.of(rep.t.Tx, rep.t.org)
	}
	return rep.known, err
}

// replayFilter returns the organization's filter; nil if there is none.
func (e *engine) replayFilter(org uint32) *replayFilter {
	if all := e.filters.Load(); all != nil {
		return (*all)[org]
	}
	return nil
}

// A knownSlices caches the slices of organizations, which every POST needs and few
// change. It also has the names of slices that are being filled; for these, all updates
// of a store must share one knownSlices.
type knownSlices struct {
	byOrg   sync.Map                                    // uint32 → readSlices
	filling [fillingSlices]atomic.Pointer[fillingSlice] // by organization modulo fillingSlices
	others  othersWrites
}

// A readSlices is a record and its decoded list. Neither is changed.
type readSlices struct {
	record []byte
	list   []replaySlice
}

// of returns an organization's slices. The caller may append to the list, but must not
// change what is in it.
func (s *knownSlices) of(tx Tx, org uint32) (*replaySlices, error) {
	k := slicesKey(org)
	record, ok, err := tx.Get(k)
	if err != nil || !ok {
		return new(replaySlices), err
	}
	if known, ok := s.byOrg.Load(org); ok && bytes.Equal(known.(readSlices).record, record) {
		return &replaySlices{slices.Clip(known.(readSlices).list)}, nil
	}
	l, err := decodeEntry[replaySlices](Entry{Key: k, Value: record})
	if err != nil {
		return nil, err
	}
	s.byOrg.Store(org, readSlices{bytes.Clone(record), l.List})
	return &replaySlices{slices.Clip(l.List)}, nil
}

// full returns how many replays fill a slice.
func (l *replaySlices) full(next uint64) uint64 {
	return max(sliceNames, (next-l.List[0].First)/64)
}

// open returns the slice that takes the replay numbered next. A new slice is appended
// to the list.
func (l *replaySlices) open(next uint64, now instant) (s replaySlice, isNew bool) {
	if n := len(l.List); n > 0 {
		s = l.List[n-1]
		if s.isOpen(now) && next-s.First < l.full(next) {
			return s, false
		}
	}
	s = replaySlice{next, now}
	l.List = append(l.List, s)
	return s, true
}

// A retryKey is the name that a replay is kept under, the request that it answers, and
// the status of a repeated answer: 0 for the status of the first.
type retryKey struct {
	name, request [16]byte
	status        int
	again         bool // a purchase that may follow one that was wholly returned
}

// idempotencyKey is the retryKey of an Idempotency-Key header sent with a
// request.
func idempotencyKey(header string, r *http.Request, body []byte) retryKey {
	return retryKey{
		name:    digest([]byte("key"), []byte(header)),
		request: digest([]byte(r.Method), []byte(r.URL.RequestURI()), body),
	}
}

// externalRetryKey is the retryKey of a purchase sent again with the same externalId
// and body. Another body makes another name, so it is never taken for a retry and never
// hides one.
func externalRetryKey(externalID string, body []byte) retryKey {
	name := digest([]byte("sale"), []byte(externalID), body)
	return retryKey{name: name, request: name, status: http.StatusOK}
}

// digest hashes parts with their lengths, so that different lists hash differently.
func digest(parts ...[]byte) [16]byte {
	h := sha256.New()
	var room [sha256.Size]byte
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(room[:0], uint64(len(p))))
		h.Write(p)
	}
	return [16]byte(h.Sum(room[:0]))
}

// find returns the answer of the last 24 hours kept under the key, nil if there is
// none. It fails with idempotency_key_reused if that answer was to another request, and
// with customer_erased if it named a customer who was erased since.
func (rep *replaysTxn) find(k retryKey) (*replay, error) {
	l, err := rep.list()
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(l.List) {
		if f := rep.filter; f != nil && s.First < f.until && f.words.lacks(k.name) {
			break
		}
		if names := rep.slices.fillingNames(rep.t.org, s.First); names != nil && names.lacks(k.name) {
			continue
		}
		value, ok, err := rep.t.Get(rep.nameKey(s, k.name))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		rest := reader{b: value}
		place := rest.uint()
		r, err := get[replay](rep.t.Tx, rep.replayKey(s.First+place))
		if err := cmp.Or(err, atKey(rep.nameKey(s, k.name), rest.done())); err != nil {
			return nil, err
		}
		if r == nil || !isFresh(r.CreatedAt, rep.t.now) {
			continue
		}
		if k.request != k.name && k.request != r.Request {
			return nil, newError(codeIdempotencyKeyReused)
		}
		return r, rep.unseal(r, s.First+place)
	}
	return nil, nil
}

// first returns the index of the first key that has a replay, and the replay or nil.
// A purchase that was wholly returned since is external_id_undone.
func (rep *replaysTxn) first(keys []retryKey) (int, *replay, error) {
	for i, k := range keys {
		r, err := rep.find(k)
		if err != nil {
			return i, nil, err
		}
		if r == nil {
			continue
		}
		if k.status != 0 { // it is found by its externalId
			if may, err := rep.t.sales.mayReplay(r, k.again); err != nil {
				return i, nil, err
			} else if !may {
				continue
			}
		}
		return i, r, nil
	}
	return 0, nil, nil
}

// keep stores an answer under all keys. It stores the request of the first alone,
// since no other key has a request to compare. The answer names the customers that the
// transaction has shown.
func (rep *replaysTxn) keep(keys []retryKey, status int, body []byte) error {
	if len(keys) == 0 {
		return nil
	}
	n, err := rep.t.count()
	if err != nil {
		return err
	}
	l, err := rep.list()
	if err != nil {
		return err
	}
	n.Replays++
	s, isNew := l.open(n.Replays, rep.t.now)
	if isNew {
		if err := rep.t.put(orgKey('I', rep.t.org), l); err != nil {
			return err
		}
		if last := len(l.List) - 1; last > 0 && l.List[last-1].isOpen(rep.t.now) { // that one is full
			rep.slices.beginFilling(rep.t.org, s.First, l.full(n.Replays))
		}
	}
	filling := rep.slices.fillingNames(rep.t.org, s.First)
	for _, k := range keys {
		if filling != nil {
			filling.add(k.name[:])
		}
		rep.t.buf.b = binary.AppendUvarint(rep.t.buf.b[:0], n.Replays-s.First)
		if err := rep.t.Put(rep.nameKey(s, k.name), rep.t.buf.b); err != nil {
			return err
		}
	}
	r := &replay{CreatedAt: rep.t.now, Request: keys[0].request, Status: status, Body: body}
	if err := rep.seal(r, n.Replays); err != nil {
		return err
	}
	return rep.t.put(rep.replayKey(n.Replays), r)
}

// A staleSlice is one that no retry can use any more.
type staleSlice struct {
	org   uint32
	all   *replaySlices
	place int // index in all
}

// findStaleSlice returns the first stale slice of all organizations, or nil. An organization
// that is damaged is told only if the others have none.
func findStaleSlice(tx Tx, known *knownSlices, now instant) (*staleSlice, error) {
	n, err := organizationCount(tx)
	if err != nil {
		return nil, err
	}
	var damaged error
	for org := range withSlices(tx, n) {
		s, err := known.stale(tx, org, now)
		if isDamaged(err) {
			damaged = err
		} else if err != nil || s != nil {
			return s, err
		}
	}
	return nil, damaged
}

// orgsAtOnce is how many organizations are looked into at once, where that is faster.
const orgsAtOnce = 256

// withSlices yields the numbers of the first n organizations. The caller reads the slices of each.
func withSlices(tx Tx, n uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var some []uint32
		for org := uint32(1); uint64(org) <= n; org++ {
			if some = append(some, org); len(some) < orgsAtOnce && uint64(org) < n {
				continue
			}
			warm(tx, some, slicesKey)
			for _, one := range some {
				if !yield(one) {
					return
				}
			}
			some = some[:0]
		}
	}
}

func slicesKey(org uint32) key { return orgKey('I', org) }

// stale returns the first stale slice of an organization, or nil.
func (s *knownSlices) stale(tx Tx, org uint32, now instant) (*staleSlice, error) {
	l, err := s.of(tx, org)
	if err != nil {
		return nil, err
	}
	if place := slices.IndexFunc(l.List, func(s replaySlice) bool { return s.isStale(now) }); place >= 0 {
		return &staleSlice{org, l, place}, nil
	}
	return nil, nil
}

// drop deletes up to limit entries of the slice, its names first, and then the slice
// itself if no entries are left.
func (s *staleSlice) drop(tx Tx, limit int) error {
	first, end := s.all.List[s.place].First, orgKey('i', s.org).after()
	if s.place+1 < len(s.all.List) {
		end = orgKey('i', s.org).u64(s.all.List[s.place+1].First)
	}
	names := orgKey('I', s.org).u64(first)
	var stale []key
	for _, span := range []struct{ lo, hi key }{{names, names.after()}, {orgKey('i', s.org).u64(first), end}} {
		for e, err := range tx.Scan(span.lo, span.hi, false) {
			if err != nil {
				return err
			}
			if len(stale) == limit {
				break
			}
			stale = append(stale, append(key(nil), e.Key...))
		}
	}
	for _, k := range stale {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	if len(stale) == limit {
		return nil
	}
	s.all.List = slices.Delete(slices.Clone(s.all.List), s.place, s.place+1)
	return put(tx, orgKey('I', s.org), s.all)
}

// seal makes a replay that is about to be written tell the customers that the transaction
// has shown. Nothing is left of an erased one that its answers could tell.
func (rep *replaysTxn) seal(r *replay, number uint64) error {
	var room [64]byte
	secrets := room[:0]
	for _, cust := range rep.t.seals.shown {
		s, err := rep.t.seals.sealing(cust)
		if err != nil {
			return err
		}
		if s.erased {
			continue
		}
		r.Customers = append(r.Customers, s.number)
		secrets = append(secrets, s.secret[:]...)
	}
	if len(r.Customers) == 0 {
		return nil
	}
	var err error
	r.stream, err = r.streamOf(secrets, number)
	return err
}

// unseal makes a sealed replay's body readable. The error is customer_erased if the answer
// showed a customer who was erased since.
func (rep *replaysTxn) unseal(r *replay, number uint64) error {
	if len(r.Customers) == 0 {
		return nil
	}
	var secrets []byte
	for _, n := range r.Customers {
		cust, err := rep.t.customers.idAt(n)
		if err != nil {
			return err
		}
		c, err := rep.t.customers.get(cust)
		if err != nil {
			return err
		}
		if c.Secret == (sealSecret{}) {
			return newError(codeCustomerErased)
		}
		rep.t.seals.reveal(cust)
		secrets = append(secrets, c.Secret[:]...)
	}
	stream, err := r.streamOf(secrets, number)
	if err != nil {
		return err
	}
	stream.XORKeyStream(r.sealed, r.sealed)
	if r.Body, err = packedWords.Unpack(r.sealed); err != nil {
		err = errRecord
	}
	return atKey(rep.replayKey(number), err)
}

// streamOf returns what seals the replay with a number, and opens it.
func (r *replay) streamOf(secrets []byte, number uint64) (cipher.Stream, error) {
	b := binary.BigEndian.AppendUint64(secrets, number)
	b = binary.BigEndian.AppendUint64(b, uint64(r.CreatedAt))
	sum := sha256.Sum256(append(b, r.Request[:]...))
	block, err := aes.NewCipher(sum[:16])
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, sum[16:]), nil
}

// packedWords are the pieces that answers often contain. Every answer to a POST is kept for a
// day, packed. A piece is stored as its index here: add pieces only at the end, and never move
// or change one.
var packedWords = pack.NewWords([]string{
	// What stands between quoted names and values.
	"{", ":", ",", "}\n", ":null,", ":true,", ":false,", ":null}\n", ":[],", ":[{", "}],", "},{", ":null},{", ":null}],", ":[]}\n", ":[]},{", ":{", "},",

	"id", "customerId", "loyaltyProgramId", "currencyId", "type", "category", "amount", "comment", "availableFrom", "expiresAt",
	"balance", "transactionId", "redemptionId", "createdAt", "lots", "movementId",
	"totalAmount", "source", "externalId", "customerName", "customerEmail", "customerPhone", "items", "sku", "price", "quantity",
	"pointsEarned", "pointsReversed", "pointsPending", "pointsShortfall", "appliedRules", "ruleId", "name", "points", "tierChange",
	"from", "to", "originalTransactionId",
	"code", "productId", "rewardName", "pointsSpent", "status", "cancelledAt",
	"firstName", "lastName", "email", "phoneNumber", "tierName", "nextTierName", "pointsToNextTier", "pendingBalance",
	"lifetimePoints", "expiringPoints", "segmentIds", "totalSpent", "transactionsCount", "lastTransactionAt", "updatedAt",

	"Credit", "Debit", "Purchase", "Bonus", "Referral", "Campaign", "Loyalty", "Refund", "Interest", "AdminBonus", "Adjustment",
	"Redemption", "Fee", "Penalty", "AdminDeduction", "Exchange", "Return", "Api", "Active", "Completed", "Cancelled",

	":null},", ":{},", ":{}}\n", ":201,", ":200,",

	"createdBy", "actor", "Key", "registeredAt", "programs", "mergedInto", "birthDate", "attributes",
	"effect", "percent", "usedAt", "usedBy", "results", "transaction", "error", "message", "field", "statusCode",
	"Issued", "Used", "Amount", "Percent", "Product", "Merge",

	"redemptions",

	"payment", "amountDue", "holdId",

	"labels", "issued", "reason", "givenBy",

	"explanation", "rules", "applied", "reasons", "steps", "step", "multiplier", "mode",
	"tierProgress", "metric", "value", "missing", "fallsAt", "fallsTo", "PointsEarned",

	"marketing", "marketingAt",
	"reference", "movement",
	"memberCode", "hasCard", "url",
})
