package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// A replay is the first answer to a POST, kept so that a retry gets it again,
// byte for byte, and changes nothing (contract §6). It is written in the
// transaction of what the POST did.
//
// An organization's replays are numbered as they come and lie in that order.
// The names under which they are looked for are random, and have to be asked
// for at every POST, to find nothing most of the time. So they lie in slices,
// of some hours and some ten thousand names each: of these only the newest is
// written to, which keeps what is written at one time together, and a slice that
// is too old is dropped as a whole. That none of them has a name is told by
// filters in most cases (replayfilter.go).
//
//	i org number         → replay
//	I org                → the slices
//	I org first name(16) → number of the replay less first, as a varint; first, the slice's first number, is 8 bytes
type replay struct {
	CreatedAt instant
	Request   [16]byte // what must be the same for it to be a retry
	Status    int
	Body      []byte
}

func (r *replay) encode(w *writer) {
	w.instant(r.CreatedAt)
	w.id(id(r.Request))
	w.uint(uint64(r.Status))
	w.b = pack(w.b, r.Body)
}

func (r *replay) decode(rd *reader) {
	r.CreatedAt = rd.instant()
	r.Request = rd.id()
	r.Status = int(rd.uint())
	body, err := unpack(rd.b)
	if err != nil {
		rd.fail()
	}
	r.Body, rd.b = body, nil
}

const (
	replayTime = 24 * 3600 * 1000 // milliseconds

	// A slice takes what comes within sliceTime, until it holds sliceNames
	// and a sixty-fourth of all that are kept.
	sliceTime  = 6 * 3600 * 1000
	sliceNames = 1 << 15
)

// isFresh tells whether a replay still answers. One from far ahead was
// written while the clock was wrong.
func isFresh(at, now instant) bool { return now-replayTime < at && at < now+replayTime }

// A replaySlice is where the names of some replays are: those from the number
// First up to the next slice's.
type replaySlice struct {
	First uint64
	Began instant
}

// isOpen tells whether a moment falls into the time of the slice.
func (s replaySlice) isOpen(now instant) bool {
	return s.Began-sliceTime < now && now < s.Began+sliceTime
}

// isStale tells whether nothing in the slice can be fresh.
func (s replaySlice) isStale(now instant) bool {
	return s.Began+sliceTime+replayTime <= now || now+sliceTime+replayTime <= s.Began
}

func (t *txn) nameKey(s replaySlice, name [16]byte) key {
	return t.hotOrgKey('I').u64(s.First).id(id(name))
}

func (t *txn) replayKey(number uint64) key { return t.hotOrgKey('i').u64(number) }

// replaySlices are all there are, oldest first.
type replaySlices struct{ List []replaySlice }

func (l *replaySlices) encode(w *writer) {
	w.uint(uint64(len(l.List)))
	for _, s := range l.List {
		w.uint(s.First)
		w.instant(s.Began)
	}
}

func (l *replaySlices) decode(r *reader) {
	l.List = make([]replaySlice, r.len())
	for i := range l.List {
		l.List[i] = replaySlice{r.uint(), r.instant()}
	}
}

// replaySlices gives the slices for reading and, by open, changing.
func (t *txn) replaySlices() (l *replaySlices, err error) {
	if t.replays == nil {
		t.replays, err = t.slices.of(t.Tx, t.org)
	}
	return t.replays, err
}

// knownSlices are those of organizations as they were read last, since every POST
// needs them, and few change them; and names of those that are being filled, for which
// there must be one knownSlices for all updates of a store.
type knownSlices struct {
	byOrg   sync.Map                                    // uint32 → readSlices
	filling [fillingSlices]atomic.Pointer[fillingSlice] // by the last bits of the organization
}

// A readSlices is a record and what it says. Nobody changes it.
type readSlices struct {
	record []byte
	list   []replaySlice
}

// of returns an organization's slices: a list that can be added to, and of which
// nothing is to be changed.
func (s *knownSlices) of(tx Tx, org uint32) (*replaySlices, error) {
	k := orgKey('I', org)
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

// full is how many replays a slice takes before the next one.
func (l *replaySlices) full(next uint64) uint64 {
	return max(sliceNames, (next-l.List[0].First)/64)
}

// open returns the slice that takes the replay with the next number. If that
// is a new one, it has become the last of the list.
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

// A retryKey is under which name a replay is kept, what it answers to, and
// the status of the answer if it is not the first one's.
type retryKey struct {
	name, request [16]byte
	status        int
}

// idempotencyKey is the retryKey of an Idempotency-Key header sent with a
// request.
func idempotencyKey(header string, r *http.Request, body []byte) retryKey {
	return retryKey{
		name:    digest([]byte("key"), []byte(header)),
		request: digest([]byte(r.Method), []byte(r.URL.RequestURI()), body),
	}
}

// externalRetryKey is the retryKey of a purchase sent again with the same
// externalId and body. Another body makes another name, so that it is never
// taken for a retry and never in the way of one.
func externalRetryKey(externalID string, body []byte) retryKey {
	name := digest([]byte("sale"), []byte(externalID), body)
	return retryKey{name: name, request: name, status: http.StatusOK}
}

// digest hashes parts so that no two lists of parts are alike.
func digest(parts ...[]byte) [16]byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return [16]byte(h.Sum(nil))
}

// replay returns the first answer of the last 24 hours under the key; nil if
// there is none, idempotency_key_reused if it was to another request.
func (t *txn) replay(k retryKey) (*replay, error) {
	l, err := t.replaySlices()
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(l.List) {
		if f := t.filter; f != nil && s.First < f.until && f.words.lacks(k.name) {
			break
		}
		if names := t.slices.fillingNames(t.org, s.First); names != nil && names.lacks(k.name) {
			continue
		}
		value, ok, err := t.Get(t.nameKey(s, k.name))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		place := reader{b: value}
		r, err := get[replay](t.Tx, t.replayKey(s.First+place.uint()))
		if err := cmp.Or(err, atKey(t.nameKey(s, k.name), place.done())); err != nil {
			return nil, err
		}
		if r == nil || !isFresh(r.CreatedAt, t.now) {
			continue
		}
		if k.request != k.name && k.request != r.Request {
			return nil, newError(codeIdempotencyKeyReused)
		}
		return r, nil
	}
	return nil, nil
}

// firstReplay finds the first of the keys that has a replay; nil if none has.
func (t *txn) firstReplay(keys []retryKey) (int, *replay, error) {
	for i, k := range keys {
		if r, err := t.replay(k); r != nil || err != nil {
			return i, r, err
		}
	}
	return 0, nil, nil
}

// keepReplay keeps an answer under the keys, of which at most the first may
// ask for a request.
func (t *txn) keepReplay(keys []retryKey, status int, body []byte) error {
	if len(keys) == 0 {
		return nil
	}
	n, err := t.count()
	if err != nil {
		return err
	}
	l, err := t.replaySlices()
	if err != nil {
		return err
	}
	n.Replays++
	s, isNew := l.open(n.Replays, t.now)
	if isNew {
		if err := t.put(orgKey('I', t.org), l); err != nil {
			return err
		}
		if last := len(l.List) - 1; last > 0 && l.List[last-1].isOpen(t.now) { // that one is full
			t.slices.beginFilling(t.org, s.First, l.full(n.Replays))
		}
	}
	filling := t.slices.fillingNames(t.org, s.First)
	for _, k := range keys {
		if filling != nil {
			filling.add(k.name[:])
		}
		t.buf.b = binary.AppendUvarint(t.buf.b[:0], n.Replays-s.First)
		if err := t.Put(t.nameKey(s, k.name), t.buf.b); err != nil {
			return err
		}
	}
	return t.put(t.replayKey(n.Replays), &replay{t.now, keys[0].request, status, body})
}

// A staleSlice is one that no retry can reach any more.
type staleSlice struct {
	org   uint32
	all   *replaySlices
	place int // in all
}

// findStaleSlice finds the first; nil if there is none.
func findStaleSlice(tx Tx, known *knownSlices, now instant) (*staleSlice, error) {
	n, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return nil, err
	}
	for org := uint32(1); org <= uint32(n); org++ {
		l, err := known.of(tx, org)
		if err != nil {
			return nil, err
		}
		if place := slices.IndexFunc(l.List, func(s replaySlice) bool { return s.isStale(now) }); place >= 0 {
			return &staleSlice{org, l, place}, nil
		}
	}
	return nil, nil
}

// drop deletes up to limit entries of the slice, its names first, and the
// slice itself when it has no more.
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
