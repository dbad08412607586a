package main

import (
	"crypto/sha256"
	"encoding/hex"
)

// A ledgerHash is the hash of a movement, or the digest of a ledger.
//
// The movements of an account are a hash chain: each carries a hash of itself and
// of the account's movement before it, and the account carries the last one. After
// changing, removing or inserting a movement, all later ones must be hashed anew. A
// movement's hash is the SHA-256 of
//
//	| hash of the movement before, or zeros (32) | org (4) | seq (8) | record up to its hash |
//
// A writer of the file can hash anew too, or put back an earlier file. A digest of
// an organization's ledger, kept elsewhere, reveals that: it is made of the hashes
// of all movements in the order of seq, each hashed with the digest of those before.
type ledgerHash [sha256.Size]byte

// hashMovement is the hash of a movement, from its place and its record. Entries of the
// audit log have theirs in the same way.
func hashMovement(before ledgerHash, org uint32, seq uint64, record []byte) ledgerHash {
	var space [512]byte
	b := key(append(space[:0], before[:]...)).u32(org).u64(seq)
	return sha256.Sum256(append(b, record...))
}

// with returns the digest of the ledger with one more movement.
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

// A ledgerState is how far an organization's ledger and its audit log had come at some
// time.
type ledgerState struct {
	Organization string     `json:"organization"`
	Movements    uint64     `json:"movements"`
	Digest       ledgerHash `json:"digest"`
	AuditEntries uint64     `json:"auditEntries"`
	AuditDigest  ledgerHash `json:"auditDigest"` // the hash of the last entry
}

func (c *coder) hash(v *ledgerHash) { c.fixed(v[:]) }
