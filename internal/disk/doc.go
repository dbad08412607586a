// Package disk is an ordered map of byte keys in one bbolt file with a journal in front
// of it. It has one writer and any number of readers.
//
// # How a write is stored
//
// Commit appends a batch of changes to the journal and flushes it. Then the batch is
// stored. While it is flushed it goes into a memtable in memory. Once it is stored,
// reads find it there, above the file's entries. Some time later a checkpoint brings the
// memtable into the file, in key order. So a write costs one flush of a few kilobytes,
// and a page of the file that many writes change is written once. A read sees one state
// for its whole life: a read transaction of bbolt under the memtables as of a version.
//
// Between two steps of a checkpoint the file alone is not a consistent state; together
// with the frozen memtable, or with the journal, it is. Close brings everything into
// the file, which is then whole alone, and removes the journal. Leave, or a kill,
// leaves the journal, and Open replays it.
//
// # Files
//
// The data file is named by its path, the journal's files by that path and -journal1
// and -journal2. Their forms are drawn where they are read and written:
//
//   - the data file's headers at checkHeader (datafile.go), its pages at pageTree (pages.go),
//   - its buckets and the stored form of a value at File (file.go), its inventory in inventory.go,
//   - what it says of itself and its journal at journalState (datafile.go),
//   - the journal at journal (journal.go).
//
// A data file is made under a temporary name, flushed and then linked into place. A
// backup is compared with its original entry by entry before it is put in place, and so
// is the new file that Compact makes. Neither holds what was deleted or replaced; the
// data file's free pages do, and so does the journal until the next one.
//
// # Order of locks
//
//  1. The operating system's lock on the data file: bbolt takes it first, in Open, and
//     releases it last, after the journal's files are closed or gone.
//  2. File.writing: to append to the journal and to write to the active memtable.
//  3. File.mu: to read or to change which journal, memtables and state there are. To begin
//     a journal or a memtable takes writing too.
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
// TestBboltRelease fails when another release is linked. TestBboltShapes and
// TestBboltHistories fail when our reader refuses a file that bbolt's own check accepts,
// or reads it differently.
//
//   - pages.go reads the pages through bbolt's memory map without bbolt, because bbolt
//     trusts its pages: after a bit flip it does not find entries that are there. The map's
//     address comes from DB.Info. Tests damage thousands of files and compare every answer
//     (TestPagesDamaged), and show that bbolt alone loses entries (TestPagesDamagedControl).
//   - mapping.go reads and sets bbolt's datasz if a file is as long as its map (Windows):
//     bbolt must not map anew while a transaction reads. Open fails if the field is
//     missing. TestMappedBytes compares it with a real map, and with bbolt's rule of growth.
//   - freelist.go empties bbolt's record of which transaction took which page, which
//     otherwise grows with the file. If the field is missing it does nothing.
//     TestForgetTaken fails then, and also if pages that are still read are taken again.
//   - commitError knows the text of bbolt's error for a file that cannot be lengthened,
//     which has its cause as text alone. TestFileCommitError checks both. An unknown text
//     counts as a failure, after which the process stops: the safe side.
//
// bbolt panics, or faults on its map, if the pages of a damaged file contradict each
// other. catch turns both into an error; goroutines that read the map call
// debug.SetPanicOnFault. A panic inside bbolt may leave its locks held, so after one in
// a commit the File has failed (see Failed).
package disk
