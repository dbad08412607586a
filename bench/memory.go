package main

import (
	"context"
	"fmt"
	"time"
)

// Target 10: memory.

func (b *bench) memory(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	x := row{ID: "10", Work: fmt.Sprintf("memory with %s customers: at rest; under full load", count(d.customers)), Target: "≤ 64 MB; ≤ 256 MB", Figure: "–", Met: notMeasured}
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	if _, _, err := p.memory(); err != nil {
		x.Note = err.Error()
		b.add(x)
		return p.stop()
	}
	reads := &load{works: []work{d.balance(), d.get("/api/v1/customers"), d.one()}, conns: 6, span: b.span}
	if _, err := reads.run(ctx, p); err != nil {
		return err
	}
	p.settle(ctx)
	rest, _, err := p.memory()
	if err != nil {
		return err
	}
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	most := make(chan int64, 1)
	go func() {
		var highest int64
		for sampling.Err() == nil {
			if a, s, err := p.memory(); err == nil {
				highest = max(highest, a+s)
			}
			wait(sampling, 50*time.Millisecond)
		}
		most <- highest
	}()
	full := &load{works: []work{d.add(), d.balance()}, conns: 2 * connections, span: max(b.sustained/3, 2*b.span)}
	o, err := full.run(ctx, p)
	if err != nil {
		return err
	}
	p.settle(ctx)
	stop()
	highest := <-most
	if err := d.wrote(&outcome{all: o.all / 2}); err != nil {
		return err
	}
	x.Figure = megabytes(rest) + "; " + megabytes(highest)
	x.Met = verdictOf(rest <= 64<<20 && highest <= 256<<20).only(!b.short && d.customers >= 1_000_000)
	x.Note = fmt.Sprintf("anonymous memory, which holds the heap and more, after a start and some reads; the most of anonymous and shared memory while %d connections add and %d read for %v", connections, connections, full.span.Round(time.Second/10))
	x.Values = map[string]any{"restBytes": rest, "loadBytes": highest}
	b.add(x)
	return p.stop()
}
