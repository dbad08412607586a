package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"

	"sello/internal/blockset"
)

// Three things that several tables share: the parts by which a database orders commits, the hash
// chain of the ledger, and sets of numbers.

// A database orders commits by part (postgres/doc.go): commits of different parts do not wait for
// each other, and different servers can make them at once. A key's part is
//
//	n > 0   the part of organization n, if the key has an organization
//	n < 0   the part of a group of contacts, for identities, which all organizations share
//	0       the common part, for the rest: API keys, users, sessions
//
// What a server keeps of an organization's settings between requests is right for as long as the
// organization's part has not moved. So who changes an API key also uses something of its
// organization: keys by id are there.

const commonPart = 0

// contactGroups is how many parts the identities have.
const contactGroups = 1024

// partition is the storeParts of what sello keeps.
type partition struct{}

// orgAt is where keys have their organization, by their letter; 0 where tables of the letter have
// none.
var orgAt = func() (at [256]int) {
	for t := range manyTables {
		at[keyParts[t][0].fixed] = max(t.org(), 0)
	}
	for t := range manyTables {
		if letter := keyParts[t][0].fixed; at[letter] != max(t.org(), 0) {
			at[letter] = 0
		}
	}
	return at
}()

func (partition) PartOf(k []byte) int32 {
	if part, most := partAt(k); most <= len(k) {
		return part
	}
	return commonPart
}

func (partition) PartOfRange(lo, hi []byte) (part int32, ok bool) {
	if len(lo) == 0 || len(hi) == 0 {
		return commonPart, false
	}
	part, n := partAt(lo)
	if n > len(lo) {
		return commonPart, false
	}
	end := key(lo[:n]).after()
	return part, end == nil || bytes.Compare(hi, end) <= 0
}

// partAt returns the part of all keys that begin with the first n bytes of k. If n is more than k
// has, they are of several.
func partAt(k []byte) (part int32, n int) {
	if len(k) == 0 {
		return commonPart, 1
	}
	at := orgAt[k[0]]
	switch {
	case k[0] == tableIdentities.fixed()[0]:
		end := bytes.IndexByte(k, 0)
		if end < 0 {
			return commonPart, len(k) + 1
		}
		h := fnv.New32a()
		h.Write(k[:end])
		return -1 - int32(h.Sum32()%contactGroups), end + 1
	case bytes.HasPrefix(k, configurationPrefix), bytes.HasPrefix(k, codeSecretPrefix):
		at = len(configurationPrefix)
	case k[0] == configurationPrefix[0]:
		return commonPart, len(configurationPrefix)
	case at == 0:
		return commonPart, 1
	}
	if len(k) < at+4 {
		return commonPart, at + 4
	}
	return int32(uint32In(k[at:])), at + 4
}

// What keys of configurations and of secrets of codes begin with. Others of their letter have no
// organization.
var (
	configurationPrefix = tableConfigurations.fixed()
	codeSecretPrefix    = tableCodeSecrets.fixed()
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
// of all movements in the order of seq, each hashed with the digest before it.
type ledgerHash [sha256.Size]byte

// hashMovement is the hash of a movement, from its place and its record. Entries of the
// audit log are hashed in the same way.
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

// Sets of numbers, of customers or of redemptions, are kept in blocks (internal/blockset):
//
//	set block(4) → the numbers in the block

// putInSet puts a number into the set whose blocks lie under a key, or takes it
// out, and reports whether that changed the set.
func putInSet(tx Tx, set key, number uint64, member bool) (changed bool, err error) {
	return putInBlock(tx, set.u32(uint32(number/blockset.Block)), number, member)
}

// putInBlock is putInSet for the number's block, which is at k.
func putInBlock(tx Tx, k key, number uint64, member bool) (changed bool, err error) {
	value, _, err := tx.Get(k)
	if err != nil {
		return false, err
	}
	value, changed = blockset.Change(value, number%blockset.Block, member)
	switch {
	case !changed:
		return false, nil
	case len(value) == 0:
		return true, tx.Delete(k)
	}
	return true, tx.Put(k, value)
}
