package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Target 5: throughput with much data against throughput with little.

func (b *bench) growth(ctx context.Context, _ func(...string) bool) error {
	little, much := b.small, b.large
	x := row{
		ID: "5", Work: fmt.Sprintf("the same with %s customers ÷ with %s", count(much.customers), count(little.customers)), Target: "≥ 0.70",
		Figure: "–", Met: notMeasured,
	}
	if little.customers >= much.customers {
		x.Note = "there is only little data"
		b.add(x)
		return nil
	}
	if much != b.main {
		b.letGo(b.main.dir) // memory may have no room for both
	}
	z, err := much.serve(ctx)
	if err != nil {
		return err
	}
	if err := much.readAll(ctx, z); err != nil {
		return err
	}
	type kind struct {
		name         string
		work         func(*dataset) work
		below, above []float64
		each         []float64 // writes for each customer of the little data
	}
	kinds := []*kind{
		{name: "GET balance", work: (*dataset).balance},
		{name: "POST add", work: (*dataset).add},
		{name: "POST transactions", work: (*dataset).sale},
	}
	for range b.rounds {
		for _, k := range kinds {
			few, err := little.fresh(ctx, k.work)
			if err != nil {
				return err
			}
			many, err := b.play(ctx, much, z, k.work(much))
			if err != nil {
				return err
			}
			k.below, k.above = append(k.below, few.rate()), append(k.above, many.rate())
			k.each = append(k.each, float64(few.all)/float64(little.customers))
		}
	}
	worst := 1e9
	var parts []string
	values := map[string]any{}
	for _, k := range kinds {
		ratio := median(ratios(k.above, k.below))
		worst = min(worst, ratio)
		parts = append(parts, fmt.Sprintf("%s %.3f (%s/s ÷ %s/s, %.0f for each of the few)", k.name, ratio, count(median(k.above)), count(median(k.below)), median(k.each)))
		values[k.name] = map[string]any{"much": figures(k.above), "little": figures(k.below), "forEachOfTheLittle": figures(k.each)}
	}
	x.Figure, x.Note, x.Values = fmt.Sprintf("%.3f", worst), strings.Join(parts, "; "), values
	x.Met = verdictOf(worst >= 0.7).only(much.customers >= 10_000_000 && little.customers == 10_000)
	if much.customers < 10_000_000 {
		x.Note += "; for the figure of the target: -large 10000000"
	}
	b.add(x)
	return z.stop()
}

// readAll lists all customers once, page by page, so that the server touches the
// pages of its file. The first touch of a page is a page fault of some 20 µs. With
// much data most requests of a round would have one; on a server that has run for
// some hours none has.
func (d *dataset) readAll(ctx context.Context, p *process) error {
	var page, had atomic.Int64
	list := work{"customers", 200, func(b []byte, _ *rand.Rand) []byte {
		b = append(append(b, "GET "...), pagePath(page.Add(1))...)
		return append(b, d.tail("")...)
	}}
	begin := time.Now()
	err := send(ctx, p, list, connections, d.pages(), &had)
	d.bench.say("%s customers listed in %v", count(d.customers), time.Since(begin).Round(time.Second))
	return err
}

// fresh plays a round on a copy of the data, since a round of writes changes few
// customers a lot.
func (d *dataset) fresh(ctx context.Context, kind func(*dataset) work) (*outcome, error) {
	c := *d
	c.dir = filepath.Join(d.dir, "copy")
	defer os.RemoveAll(c.dir)
	defer d.bench.letGo(c.dir)
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	if err := copyPages(c.file(), d.file()); err != nil {
		return nil, err
	}
	p, err := c.serve(ctx)
	if err != nil {
		return nil, err
	}
	o, err := d.bench.play(ctx, &c, p, kind(&c))
	return o, errors.Join(err, p.stop())
}

// copyPages copies a file page by page (see holdInMemory for the reason).
func copyPages(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 4096))
	return errors.Join(err, out.Close())
}
