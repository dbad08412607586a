package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"sello/internal/host"
)

const (
	spaceInterval = 10 * time.Second
	mostReserve   = 1 << 30 // bytes that are enough on a large disk
)

// A diskSpace knows how much room is left on the disk of a directory, and says in the log
// when it becomes scarce: below a tenth of the disk or 1 GiB, whichever is less. A tenth of
// a large disk would warn of nothing, and 1 GiB may be all of a small one. Figures are in
// bytes; all is 0 where the system does not tell.
type diskSpace struct {
	free, all atomic.Uint64
	low       atomic.Bool
}

// watch looks at the disk until ctx ends.
func (d *diskSpace) watch(ctx context.Context, dir string, log *slog.Logger) {
	look := func() {
		if free, all, ok := host.Disk(dir); ok {
			d.note(free, all, dir, log)
		}
	}
	look()
	every(ctx, spaceInterval, look)
}

// leastFree returns how much room has to be left on a disk for it not to be scarce.
func leastFree(all uint64) uint64 { return min(all/10, mostReserve) }

// note takes figures. Once room is scarce, it is so until a quarter more is free, so that a
// disk at the limit is told once.
func (d *diskSpace) note(free, all uint64, dir string, log *slog.Logger) {
	d.free.Store(free)
	d.all.Store(all)
	least := leastFree(all)
	switch low := d.low.Load(); {
	case !low && free < least:
		d.low.Store(true)
		log.Warn("disk almost full", "dir", dir, "free", free, "of", all, "least", least)
	case low && free >= least+least/4:
		d.low.Store(false)
		log.Info("disk has room again", "dir", dir, "free", free, "of", all)
	}
}
