package main

// Besides tables of the store, a verification compares sums over data that two of
// its parts both read.
const (
	tableRecords  = manyTables + iota // all that is kept under customers
	tableSellers                      // the customer of each sale
	tableRedeemed                     // the debit of each redemption
	tableNoted                        // vouchers that are noted in the sale that they were used in
	manySums
)

// sums are these sums, as tables has them.
var sums = [manySums - manyTables]struct {
	words  string
	traits trait
}{
	tableRecords - manyTables:  {"registros de clientes", byCount},
	tableSellers - manyTables:  {"", untold | byContent},
	tableRedeemed - manyTables: {"", untold | byContent},
	tableNoted - manyTables:    {"", untold | byContent},
}

// is reports whether a table or a sum has all of some traits.
func (t table) is(of trait) bool {
	if t < manyTables {
		return tables[t].traits&of == of
	}
	return sums[t-manyTables].traits&of == of
}

// inWords returns the name of what is compared.
func (t table) inWords() string {
	if t < manyTables {
		return tables[t].words
	}
	return sums[t-manyTables].words
}

// Tables that are compared, in the order in which problems are reported: of all organizations together,
// and of each.
var tablesOfAll, tablesOfOne = func() (all, one []table) {
	for t := range table(manySums) {
		switch compared := t.is(byContent) || t.is(byEntry) || t.is(byCount); {
		case compared && t.is(shared):
			all = append(all, t)
		case compared:
			one = append(one, t)
		}
	}
	return all, one
}()

type tableSet [manySums]bool

func (s *tableSet) join(o *tableSet) {
	for t := range s {
		s[t] = s[t] || o[t]
	}
}

// alwaysCareful returns the tables whose entries are looked up in every pass.
func alwaysCareful() (s tableSet) {
	for t := range s {
		s[t] = table(t).is(byEntry)
	}
	return s
}

// A tableSum is how many entries there are, and the sum of their hashes. Two
// tables with the same sum have the same entries, except for a chance of one in
// 2^64: the hash has a new seed in each verification.
type tableSum struct{ entries, sum uint64 }

func (s *tableSum) add(hash uint64) { s.entries++; s.sum += hash }
func (s *tableSum) join(o tableSum) { s.entries += o.entries; s.sum += o.sum }
