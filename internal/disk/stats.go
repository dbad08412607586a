package disk

import (
	"os"
	"time"
)

// Stats are figures of an open File.
type Stats struct {
	FileBytes        int64     // length of the data file
	JournalFileBytes int64     // length of the journal's two files, most of which may be out of use
	JournalBytes     int64     // records in the journal that the data file lacks: Open would replay them
	MemtableBytes    int64     // memory that the same take
	Oldest           time.Time // when the oldest of them was written, or replayed; zero: there are none
	Checkpoints      int       // memtables that this process has brought into the data file
}

// Stats returns the figures as of the last commit or step of a checkpoint, and the files'
// lengths as they are now. After Close they are zero. It takes no lock, so it answers also
// while a disk hangs, or when the File has failed.
func (s *File) Stats() Stats {
	state := s.state.Load()
	if state == nil {
		return Stats{}
	}
	stats := state.stats
	stats.FileBytes = length(s.path)
	for _, name := range JournalNames(s.path) {
		stats.JournalFileBytes += length(name)
	}
	return stats
}

// length is 0 where there is no file.
func length(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// statsNow returns the figures without the lengths of files. The caller holds mu.
func (s *File) statsNow() Stats {
	stats := Stats{Checkpoints: s.brought}
	if s.active.newest > 0 {
		stats.JournalBytes, stats.MemtableBytes, stats.Oldest = s.active.logged, int64(s.fill), s.active.since
	}
	if s.frozen != nil {
		stats.JournalBytes += s.frozen.logged
		stats.MemtableBytes += int64(s.frozen.size())
		stats.Oldest = s.frozen.since
	}
	return stats
}
