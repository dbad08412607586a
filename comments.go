package main

import (
	"bytes"
	"crypto/sha256"
)

// The comment of a movement is kept beside it: the ledger never changes, but a
// comment can be erased (contract §12). The movement holds the comment's hash, made with a
// secret salt, so that nobody can tell an erased comment by guessing it (erasure.go).
//
//	C org seq → hash (32) | salt (16) | comment; after an erasure the hash alone
const saltSize = 16

func (t *txn) commentKey(seq uint64) key { return t.hotOrgKey('C').u64(seq) }

// keepComment writes the comment of a movement that is about to be recorded, if it has one.
func (t *txn) keepComment(m *movement) error {
	if m.Comment == "" {
		return nil
	}
	secret := t.secret("comment", m.Seq)
	w := t.scratch()
	w.hash(m.CommentHash) // room for it
	w.b = append(append(w.b, secret[:saltSize]...), m.Comment...)
	m.CommentHash = sha256.Sum256(w.b[len(m.CommentHash):])
	copy(w.b, m.CommentHash[:])
	return t.Put(t.commentKey(m.Seq), w.b)
}

// readComment completes a movement that was read with its comment.
func (t *txn) readComment(m *movement) error {
	if m.CommentHash == (ledgerHash{}) || m.Comment != "" {
		return nil
	}
	k := t.commentKey(m.Seq)
	value, ok, err := t.Get(k)
	if err != nil {
		return err
	}
	if !ok || !bytes.HasPrefix(value, m.CommentHash[:]) {
		return unreadable(k)
	}
	comment, ok := commentIn(value)
	if !ok {
		return unreadable(k)
	}
	m.Comment = comment
	return nil
}

// commentIn reads an entry: "" where the comment was erased; ok is false where
// the entry contradicts its hash.
func commentIn(value []byte) (comment string, ok bool) {
	const salt, text = sha256.Size, sha256.Size + saltSize
	if len(value) == salt {
		return "", true
	}
	if len(value) <= text {
		return "", false
	}
	comment = string(value[text:])
	return comment, hashComment(value[salt:text], comment) == ledgerHash(value)
}

func hashComment(salt []byte, comment string) ledgerHash {
	return sha256.Sum256(append(salt[:saltSize:saltSize], comment...))
}
