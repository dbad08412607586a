// Package disk is an ordered map of byte keys in one bbolt file with a journal in
// front of it. It has one writer and any number of readers.
//
// # How a write is stored
//
// Commit appends a batch of changes to the journal and flushes it: then the batch is
// stored. It goes into a memtable in memory, where reads find it above what the file
// holds. A checkpoint brings the memtable into the file some time later, in the order
// of the keys. So a write costs one flush of a few kilobytes, and what many writes
// change in one page of the file is written once. A read sees one state for its whole
// life: a read transaction of bbolt under the memtables as of a version.
//
// Between two steps of a checkpoint the file alone is not a consistent state;
// together with the frozen memtable, or with the journal, it is. Close brings everything
// into the file, which is then whole alone, and removes the journal. Leave, or a kill,
// leaves the journal, and Open takes it up.
//
// # Files
//
// The data file is named by its path, the journal's files by that and -journal1 and
// -journal2. Their forms are drawn where they are read and written:
//
//   - the data file's headers at checkHeader (datafile.go), its pages at pageTree (pages.go),
//   - its buckets and the stored form of a value at File (file.go), its inventory in inventory.go,
//   - what it says of itself and its journal at journalState (datafile.go),
//   - the journal at journal (journal.go), and that of earlier releases in journal_old.go.
//
// A data file is made under a temporary name, flushed and then linked into place. A
// backup is compared entry by entry with what it is a copy of before it is put in place.
//
// # Order of locks
//
//  1. The lock of the operating system on the data file: taken first, by bbolt in
//     Open, and released last, after the journal's files are closed or gone.
//  2. File.writing: to append to the journal and to write to the active memtable.
//  3. File.mu: to read or to change which journal, memtables and state there are. To
//     change these takes writing too.
//  4. bbolt's own locks, for one call at a time. A Snapshot holds a read transaction,
//     and no lock.
//
// A courtesy's lock is held alone.
//
// # What we do behind bbolt's back
//
// Four things reach into bbolt, which exports nothing for them. Each says what guards
// it; go.mod pins the release that they were written for.
//
//   - pages.go reads the pages through bbolt's memory map without bbolt, since bbolt
//     believes its pages: where a bit is flipped, entries that are there are not found.
//     It takes the map's address from DB.Info. Tests damage thousands of files and
//     compare every answer (TestPagesDamaged), and show that bbolt alone loses entries
//     (TestPagesDamagedControl).
//   - mapping.go reads and sets bbolt's datasz, where a file is as long as its map
//     (Windows): bbolt must not map anew while a transaction reads. Open fails where the field
//     is missing. TestMappedBytes holds it to a real map, and to bbolt's rule of growth.
//   - freelist.go empties bbolt's record of which transaction took which page: it
//     grows with the file otherwise. Where the field is missing nothing is done.
//     TestForgetTaken fails then, and where pages that are still read are taken again.
//   - commitError knows the text of bbolt's error when a file cannot be lengthened: the cause is
//     in it as text alone. TestFileCommitError holds both. An unknown text counts as a
//     failure, after which the process stops: the safe side.
//
// bbolt panics, or faults on its map, where a damaged file makes its pages contradict
// each other. catch makes an error of both; goroutines that read the map call
// debug.SetPanicOnFault. A panic inside bbolt may leave its locks held, so that after
// one in a commit the File has failed (see Failed).
package disk
