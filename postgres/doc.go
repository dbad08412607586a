// Package postgres keeps an ordered map of byte keys and values in PostgreSQL, for any
// number of servers at once. It knows nothing of what the keys mean.
//
//	sello_kv    (k, v)                              → the entries
//	sello_log   (part, n, id, prev, settings, at)   → one row for each commit, in order
//	sello_lease (name, holder, until)               → who does what only one needs to do
//
// # Who commits
//
// The log decides. It has parts, and each key belongs to one (Partition). A server knows the Head of
// a part: the number n and the random id of its last commit. A commit is one transaction that
// inserts row n+1, whose prev is the id of row n, in each part that it has read or changes, and
// changes entries. The primary key lets one such transaction commit. So a commit that succeeds
// proves that nobody else has committed in its parts since n: whatever its server read there while
// n was the head is still true, over any connection, absences too. Commits of a part are one after
// another, and each builds on the one before, under any isolation level of the database. Commits
// that have no part in common do not wait for each other.
// Servers that want the same part take turns in order: each commit waits in the line of its parts,
// and whoever has lost a turn does so before it reads again (line.go).
//
//   - Another server's insert of n+1 waits for the first transaction. It does nothing if that
//     commits, and goes ahead if that rolls back. Where it did nothing, nothing else is changed, and
//     what it has inserted in other parts is deleted again. Parts are locked in order, so that no two
//     wait for each other.
//   - After a failover that lost commits, row n is not there, or has another id. Then nothing is
//     inserted. A number alone would be given again; a random id is not.
//   - A server that slept or was cut off cannot commit late: its n+1 is taken.
//   - Where the answer to a COMMIT is lost, the same commit is sent again, with the same id. It
//     waits for the first one if that still runs. If row n+1 is there then, its id tells whose
//     it is. So nobody has to guess whether something was stored.
//   - A commit that has read a range of several parts, or is to be one of all parts, locks the log
//     and looks at all heads. That is rare, and takes two messages.
//
// A commit is one message and one answer, one wait for the disk. Nothing of it uses sessions:
// it works through a pooler that gives each transaction another connection.
//
// # Reads
//
// A Snapshot is a read-only REPEATABLE READ transaction. It reads the heads of parts with its
// entries, so that its reader knows which commits it sees.
//
// What a server has read it keeps, as of the last commit that it knows of in the part (chain). A
// State is read from there, once the database was asked whether that is still the last one, for all
// parts that the State has at one moment, and from a snapshot where something is missing. A Turn
// reads the same, without asking: its commit will tell. It may see parts as of different moments;
// then it is lost, and whatever was concluded from it is thrown away.
package postgres
