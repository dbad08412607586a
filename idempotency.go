package main

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
)

// A replay is the first answer to a POST, kept so that a retry gets it again,
// byte for byte, and changes nothing (contract §6). It is written in the
// transaction of what the POST did.
//
// Replays lie in slices of six hours, so that what is written at one time
// lies together and what is too old is a range at the table's beginning. A
// look-up tries each slice that can hold one of the last 24 hours, and the
// next one: of two twins the later may have been answered first.
type replay struct {
	Request   [16]byte // what must be the same for it to be a retry
	CreatedAt instant
	Status    int
	Body      []byte
}

func (r *replay) encode(w *writer) {
	w.id(id(r.Request))
	w.instant(r.CreatedAt)
	w.uint(uint64(r.Status))
	w.text(string(r.Body))
}

func (r *replay) decode(rd *reader) {
	r.Request = rd.id()
	r.CreatedAt = rd.instant()
	r.Status = int(rd.uint())
	r.Body = []byte(rd.text())
}

const (
	replayHours  = 24
	replaySlice  = 6 * 3600 * 1000 // milliseconds
	replaySlices = replayHours*3600*1000/replaySlice + 1
)

func replaySliceOf(at instant) uint32 { return uint32(at / replaySlice) }

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

func (t *txn) replayKey(slice uint32, k retryKey) key {
	return append(newKey('i').u32(slice).u32(t.org), k.name[:]...)
}

// replay returns the first answer of the last 24 hours under the key; nil if
// there is none, idempotency_key_reused if it was to another request.
func (t *txn) replay(k retryKey) (*replay, error) {
	newest := replaySliceOf(t.now) + 1
	for back := range uint32(replaySlices + 1) {
		r, err := get[replay](t.Tx, t.replayKey(newest-back, k))
		if err != nil {
			return nil, err
		}
		if r == nil || r.CreatedAt <= t.now-replayHours*3600*1000 {
			continue
		}
		if r.Request != k.request {
			return nil, newError("idempotency_key_reused")
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

// keepReplay keeps an answer under the key.
func (t *txn) keepReplay(k retryKey, status int, body []byte) error {
	return put(t.Tx, t.replayKey(replaySliceOf(t.now), k), &replay{k.request, t.now, status, body})
}

// staleReplays is the range of those that no retry can reach any more.
func staleReplays(now instant) (lo, hi key) {
	return newKey('i'), newKey('i').u32(replaySliceOf(now) - replaySlices + 1)
}

func hasStaleReplays(tx Tx, now instant) (bool, error) {
	lo, hi := staleReplays(now)
	for _, err := range tx.Scan(lo, hi, false) {
		return err == nil, err
	}
	return false, nil
}

// dropReplays deletes stale replays, up to limit.
func dropReplays(tx Tx, now instant, limit int) error {
	var stale []key
	lo, hi := staleReplays(now)
	for e, err := range tx.Scan(lo, hi, false) {
		if err != nil {
			return err
		}
		stale = append(stale, append(key(nil), e.Key...))
		if len(stale) == limit {
			break
		}
	}
	for _, k := range stale {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
