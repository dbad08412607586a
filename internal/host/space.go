package host

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"sello/internal/parallel"
)

const (
	spaceInterval = 10 * time.Second
	mostReserve   = 1 << 30 // bytes that are enough on a large disk
)

// A Space knows how much room is left on the disk of a directory, and says in the log
// when it becomes scarce: below a tenth of the disk or 1 GiB, whichever is less. A tenth of
// a large disk would warn of nothing, and 1 GiB may be all of a small one. Figures are in
// bytes; All is 0 where the system does not tell.
type Space struct {
	Free, All atomic.Uint64
	Low       atomic.Bool
}

// Watch looks at the disk until ctx ends.
func (s *Space) Watch(ctx context.Context, dir string, log *slog.Logger) {
	look := func() {
		if free, all, ok := Disk(dir); ok {
			s.Note(free, all, dir, log)
		}
	}
	look()
	parallel.Every(ctx, spaceInterval, look)
}

// LeastFree returns how much room has to be left on a disk for it not to be scarce.
func LeastFree(all uint64) uint64 { return min(all/10, mostReserve) }

// Note takes figures. Once room is scarce, it is so until a quarter more is free, so that a
// disk at the limit is told once.
func (s *Space) Note(free, all uint64, dir string, log *slog.Logger) {
	s.Free.Store(free)
	s.All.Store(all)
	least := LeastFree(all)
	switch low := s.Low.Load(); {
	case !low && free < least:
		s.Low.Store(true)
		log.Warn("disk almost full", "dir", dir, "free", free, "of", all, "least", least)
	case low && free >= least+least/4:
		s.Low.Store(false)
		log.Info("disk has room again", "dir", dir, "free", free, "of", all)
	}
}
