package main

import (
	"bytes"
	"hash/fnv"
)

// A database orders commits by part (postgres/doc.go): those of different parts do not wait for
// each other, and different servers can make them at once. A key's part is
//
//	n > 0   that of organization n, if the key has one
//	n < 0   that of a group of contacts, for identities, which all organizations share
//	0       the common one, for what is left: API keys, users, sessions
//
// What a server keeps of an organization's settings between requests is right for as long as the
// organization's part has not moved. So who changes an API key also uses something of its
// organization: keys by id are there.

// commonPart is part 0.
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
	case bytes.HasPrefix(k, configurationPrefix):
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

// configurationPrefix is what keys of configurations begin with. Others of their letter have no
// organization.
var configurationPrefix = tableConfigurations.fixed()
