package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Target 5: as much work with much data as with little.

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
	a, err := little.serve(ctx)
	if err != nil {
		return err
	}
	z, err := much.serve(ctx)
	if err != nil {
		return err
	}
	type kind struct {
		name         string
		few, many    work
		below, above []float64
	}
	kinds := []*kind{
		{name: "GET balance", few: little.balance(), many: much.balance()},
		{name: "POST add", few: little.add(), many: much.add()},
		{name: "POST transactions", few: little.sale(), many: much.sale()},
	}
	one := func(d *dataset, p *process, w work) (float64, error) {
		o, err := b.round(w).run(ctx, p)
		if err != nil {
			return 0, err
		}
		if w.status != 201 {
			return o.rate(), nil
		}
		p.settle(ctx)
		return o.rate(), d.wrote(o)
	}
	for range b.rounds {
		for _, k := range kinds {
			few, err := one(little, a, k.few)
			if err != nil {
				return err
			}
			many, err := one(much, z, k.many)
			if err != nil {
				return err
			}
			k.below, k.above = append(k.below, few), append(k.above, many)
		}
	}
	worst := 1e9
	var parts []string
	values := map[string]any{}
	for _, k := range kinds {
		ratio := median(ratios(k.above, k.below))
		worst = min(worst, ratio)
		parts = append(parts, fmt.Sprintf("%s %.2f (%s/s ÷ %s/s)", k.name, ratio, count(median(k.above)), count(median(k.below))))
		values[k.name] = map[string]any{"much": figures(k.above), "little": figures(k.below)}
	}
	x.Figure, x.Note, x.Values = fmt.Sprintf("%.2f", worst), strings.Join(parts, "; "), values
	x.Met = verdictOf(worst >= 0.7).only(much.customers >= 10_000_000 && little.customers == 10_000)
	if much.customers < 10_000_000 {
		x.Note += "; for the figure of the target: -large 10000000"
	}
	b.add(x)
	return errors.Join(a.stop(), z.stop())
}
