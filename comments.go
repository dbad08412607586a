package main

import "crypto/sha256"

// The comment of a movement can be erased, and the ledger never changes (contract §12). So
// the hash chain covers not the comment but its hash, which stays when the comment goes. The
// hash is salted in secret, so that nobody can tell an erased comment by guessing it.

const saltSize = 16

type commentSalt [saltSize]byte

// hashComment salts and hashes the comment of a movement that is about to be recorded.
func (pt *pointsTxn) hashComment(m *movement) {
	if m.Comment == "" {
		return
	}
	secret := pt.t.secret("comment", m.Seq)
	m.CommentSalt = commentSalt(secret[:saltSize])
	m.CommentHash = m.commentHash()
}

// commentHash is what CommentHash has to be while the comment is there.
func (m *movement) commentHash() ledgerHash {
	var room [256]byte
	return sha256.Sum256(append(append(room[:0], m.CommentSalt[:]...), m.Comment...))
}

// commentField is the comment in a movement's record: all that is left before the Hash.
func (m *movement) commentField(c *coder) {
	if c.reading && len(c.b) <= len(m.Hash) || !c.reading && m.Comment == "" {
		return
	}
	if c.fixed(m.CommentSalt[:]); !c.reading {
		c.b = append(c.b, m.Comment...)
	} else if m.Comment = c.textOf(uint64(max(len(c.b)-len(m.Hash), 0))); m.Comment == "" {
		c.fail()
	}
}

// eraseComment takes away the comment, and the salt that would let somebody guess it.
func (m *movement) eraseComment() { m.Comment, m.CommentSalt = "", commentSalt{} }
