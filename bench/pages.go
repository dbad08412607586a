package main

import (
	"context"
	"errors"
	"fmt"
)

// Target 6: pages of the list.

func (b *bench) lists(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	bound, err := b.boundFor(ctx, d, p)
	if err != nil {
		return err
	}
	last := d.pages()
	page := func(name string, n int64) *asking {
		return d.fixed(name, p, pagePath(n))
	}
	pages := []*asking{page("page 1", 1), page("middle page", max(last/2, 1)), page("last page", last)}
	encoding := d.fixed("encoding", bound, "/page")
	if err := b.compare(ctx, append([]*asking{encoding}, pages...)); err != nil {
		return err
	}
	low, high, time, cpu := 1e9, 0.0, 0.0, 0.0
	values := map[string]any{"encoding": encoding.values()}
	note := fmt.Sprintf("%s customers, limit %d: ", count(d.customers), perPage)
	for _, a := range pages {
		low, high = min(low, median(a.ms)), max(high, median(a.ms))
		time = max(time, median(ratios(a.ms, encoding.ms)))
		cpu = max(cpu, median(ratios(a.cpu, encoding.cpu)))
		values[a.name] = a.values()
		note += fmt.Sprintf("%s %.3f ms, %.0f µs of server CPU; ", a.name, median(a.ms), median(a.cpu))
	}
	note += fmt.Sprintf("a page encoded by the bound %.3f ms, %.0f µs", median(encoding.ms), median(encoding.cpu))
	ok := high <= 3*low && time <= 2
	figure := fmt.Sprintf("%.1f×; time %.2f", high/low, time)
	if encoding.cpu[0] > 0 {
		ok = ok && cpu <= 2
		figure += fmt.Sprintf(", CPU %.2f", cpu)
	}
	b.add(row{
		"6", "customers list: pages ÷ each other; ÷ encoding", "≤ 3×; ≤ 2", figure,
		verdictOf(ok).only(!b.short && d.customers >= 1_000_000), note, values,
	})
	return errors.Join(bound.stop(), p.stop())
}
