package main

import (
	"crypto/sha256"
	"encoding/hex"
)

// The movements of an account are a chain of hashes: each carries a hash of
// itself and of the account's movement before it, and the account that of its
// last one. So none can be changed, taken out or put in between without all that
// come after it being hashed anew. A movement's hash is the SHA-256 of
//
//	| hash of the movement before, or zeros (32) | org (4) | seq (8) | record of the movement, up to its hash |
//
// Whoever can write to the file can hash anew too. Against that, and against a
// file that was put back to an earlier state, helps what is kept elsewhere: the
// digest of an organization's ledger, the hashes of all its movements in the order
// of seq, each hashed with the digest of those before it.
type ledgerHash [sha256.Size]byte

// hashMovement is the hash of a movement: of its place and its record.
func hashMovement(before ledgerHash, org uint32, seq uint64, record []byte) ledgerHash {
	var space [512]byte
	b := key(append(space[:0], before[:]...)).u32(org).u64(seq)
	return sha256.Sum256(append(b, record...))
}

// with returns the digest of a ledger that goes on with a movement.
func (digest ledgerHash) with(m ledgerHash) ledgerHash {
	var both [2 * len(digest)]byte
	copy(both[copy(both[:], digest[:]):], m[:])
	return sha256.Sum256(both[:])
}

func (h ledgerHash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

func (h *ledgerHash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// A ledgerState is how far an organization's ledger had come at some time.
type ledgerState struct {
	Organization string     `json:"organization"`
	Movements    uint64     `json:"movements"`
	Digest       ledgerHash `json:"digest"`
}

func (w *writer) hash(v ledgerHash) { w.b = append(w.b, v[:]...) }

func (r *reader) hash() (v ledgerHash) {
	copy(v[:], r.take(uint64(len(v))))
	return v
}
