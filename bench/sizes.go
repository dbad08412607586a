package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A sizeReport holds the figures of a dataset of one size.
type sizeReport struct {
	Customers int64              `json:"customers"`
	FileBytes int64              `json:"fileBytes"`
	PerSecond map[string]float64 `json:"perSecond"` // throughput at 64 connections
	Millis    map[string]float64 `json:"ms"`        // median latency on one connection
}

func (b *bench) measureSizes(ctx context.Context, list string) error {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("-sizes: %q is no number of customers", text)
		}
		d := b.dataset(n, n)
		if err := d.prepare(ctx); err != nil {
			return err
		}
		b.say("measuring %s customers …", count(n))
		s, err := b.measureSize(ctx, d)
		if err != nil {
			return err
		}
		b.report.Sizes = append(b.report.Sizes, *s)
	}
	return nil
}

func (b *bench) measureSize(ctx context.Context, d *dataset) (*sizeReport, error) {
	p, err := d.serve(ctx)
	if err != nil {
		return nil, err
	}
	s := &sizeReport{Customers: d.customers, PerSecond: map[string]float64{}, Millis: map[string]float64{}}
	askings := []*asking{d.oneCustomer(p), d.fixed("list, page 1", p, pagePath(1)), d.fixed("list, last page", p, pagePath(d.pages()))}
	for _, n := range needles() {
		a, _, err := d.searching(ctx, p, "/api/v1/customers", n)
		if err != nil {
			return nil, err
		}
		askings = append(askings, a)
	}
	askings = append(askings, d.fixed("sales, page 1", p, "/api/v1/transactions"))
	if err := b.compare(ctx, askings); err != nil {
		return nil, err
	}
	for _, a := range askings {
		s.Millis[a.name] = round(median(a.ms), 4)
	}
	for _, w := range []struct {
		name string
		work work
	}{{"GET balance", d.balance()}, {"POST add", d.add()}, {"POST transactions", d.sale()}} {
		var rates []float64
		for range b.rounds {
			o, err := b.play(ctx, d, p, w.work)
			if err != nil {
				return nil, err
			}
			rates = append(rates, o.rate())
		}
		s.PerSecond[w.name] = round(median(rates), 1)
	}
	err = p.stop()
	s.FileBytes = fileSize(d.file())
	return s, errors.Join(err, ctx.Err())
}
