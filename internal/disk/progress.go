package disk

import (
	"context"
	"iter"
	"math"
	"sync/atomic"

	"sello/internal/ordered"
)

// A Progress says how much of something long is done, of 1. It may be asked while that goes
// on. Each of several steps fills a part of it, by PartOf.
type Progress struct{ done atomic.Uint64 } // bits of a float64

// Done returns how much is done, of 1.
func (p *Progress) Done() float64 { return math.Float64frombits(p.done.Load()) }

// Set says how much is done, of 1.
func (p *Progress) Set(done float64) { p.done.Store(math.Float64bits(done)) }

type progressKey struct{}

// A progressPart is the part of a Progress that something fills.
type progressPart struct {
	of       *Progress
	from, to float64
}

// WithProgress lets Backup, Compact, Stage and Check say in p how far they have come.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, progressPart{p, 0, 1})
}

// PartOf returns a context for what is a part of ctx's Progress, between two fractions of it.
func PartOf(ctx context.Context, from, to float64) context.Context {
	p := partIn(ctx)
	if p.of == nil {
		return ctx
	}
	length := p.to - p.from
	return context.WithValue(ctx, progressKey{}, progressPart{p.of, p.from + from*length, p.from + to*length})
}

// Tell says in ctx's Progress, if it has one, how much of the part that it is for is done.
func Tell(ctx context.Context, done, all float64) {
	if p := partIn(ctx); p.of != nil {
		p.tell(done, all)
	}
}

// telling passes on entries, and says in ctx's Progress how many of all have come.
func telling(ctx context.Context, entries iter.Seq2[ordered.Entry, error], all *inventory) iter.Seq2[ordered.Entry, error] {
	part := partIn(ctx)
	if part.of == nil {
		return entries
	}
	return func(yield func(ordered.Entry, error) bool) {
		n := 0
		for e, err := range entries {
			if n++; n%compareStep == 0 {
				part.tell(float64(n), float64(all.entries))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func partIn(ctx context.Context) progressPart {
	p, _ := ctx.Value(progressKey{}).(progressPart)
	return p
}

func (p progressPart) tell(done, all float64) {
	if p.of != nil && all > 0 {
		p.of.Set(p.from + min(done/all, 1)*(p.to-p.from))
	}
}
