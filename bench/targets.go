package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// connections is how many clients there are, except where a target asks for one.
const connections = 64

// measure measures the wanted targets, in an order in which one disturbs the next as
// little as possible.
func (b *bench) measure(ctx context.Context, wanted []string) error {
	has := func(targets ...string) bool {
		return slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(wanted, t) })
	}
	var needed []*dataset
	if has("1", "2", "3", "4", "4b", "5", "6", "7", "8", "9", "10", "10b", "11", "12", "14", "15", "16") {
		needed = append(needed, b.main)
	}
	if has("5") && b.small.customers < b.large.customers {
		needed = append(needed, b.small)
	}
	if has("5", "11") && b.large != b.main {
		needed = append(needed, b.large)
	}
	for _, d := range needed {
		if err := d.prepare(ctx); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		targets []string
		run     func(context.Context, func(...string) bool) error
	}{
		{[]string{"13"}, b.allocations},
		{[]string{"12"}, b.imports},
		{[]string{"10"}, b.memory},
		{[]string{"10b"}, b.copying},
		{[]string{"6"}, b.lists},
		{[]string{"7"}, b.search},
		{[]string{"8"}, b.salesSearch},
		{[]string{"14"}, b.panelLists},
		{[]string{"15"}, b.idlePanel},
		{[]string{"16"}, b.logIns},
		{[]string{"1", "2", "3"}, b.throughput},
		{[]string{"4"}, b.oneClient},
		{[]string{"4b", "9"}, b.sustain},
		{[]string{"5"}, b.growth},
		{[]string{"11"}, b.starts},
	} {
		if !has(step.targets...) {
			continue
		}
		names := strings.Join(slices.DeleteFunc(step.targets, func(t string) bool { return !has(t) }), ", ")
		b.say("measuring target %s …", names)
		before := len(b.report.Rows)
		if err := step.run(ctx, has); err != nil {
			return fmt.Errorf("target %s: %w", names, err)
		}
		for _, r := range b.report.Rows[before:] {
			b.say("  %-3s %s (target %s): %s", r.ID, r.Figure, r.Target, r.Met)
		}
	}
	for _, d := range needed {
		info, err := os.Stat(d.file())
		if err != nil {
			return err
		}
		b.report.Datasets = append(b.report.Datasets, datasetReport{d.customers, info.Size(), d.withoutKey()})
	}
	return nil
}

func (d *dataset) withoutKey() progress {
	p := d.progress
	p.Key = ""
	return p
}

func (b *bench) add(r row) { b.report.Rows = append(b.report.Rows, r) }

// round returns a load of one kind. The server gathers some seconds of writes before
// it brings them into its file, which takes about as long. So a round of writes is
// counted only once that has begun, and for as long as two such cycles take.
func (b *bench) round(w work) *load {
	l := &load{works: []work{w}, conns: connections, warm: b.warm, span: b.span, beside: b.cluster}
	if w.status == 201 && !b.short {
		l.warm, l.span = 2*b.span, 6*b.span
	}
	return l
}

// play runs a round on a process that serves the data. After writes it waits until
// the server has finished its deferred work.
func (b *bench) play(ctx context.Context, d *dataset, p *process, w work) (*outcome, error) {
	o, err := b.round(w).run(ctx, p)
	if err != nil || w.status != 201 || p.file == "" {
		return o, err
	}
	o.after = p.settle(ctx)
	return o, d.wrote(o)
}

// wrote adds the writes of a measurement to the data's progress.
func (d *dataset) wrote(o *outcome) error {
	d.progress.Measured += int64(o.all)
	return d.save()
}
