package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Target 11: the time from start to the first answer.

func (b *bench) starts(ctx context.Context, _ func(...string) bool) error {
	d := b.large
	r := rand.New(rand.NewPCG(1, 1))
	path := "/api/v1/points/customers/" + string(appendID(nil, d.random(r))) + "/balance"
	start := func() (*process, float64, error) {
		if err := d.cache(); err != nil {
			return nil, 0, err
		}
		begin := time.Now()
		p, err := d.start(ctx)
		if err != nil {
			return nil, 0, err
		}
		c, err := dial(p.addr)
		if err != nil {
			return nil, 0, err
		}
		defer c.Close()
		_, err = d.ask(c, path)
		return p, time.Since(begin).Seconds(), err
	}
	p, _, err := start()
	if err != nil {
		return err
	}
	var clean, killed []float64
	for i := range b.rounds {
		load := b.round(d.add())
		o, err := load.run(ctx, p)
		if err != nil {
			return err
		}
		if err := d.wrote(o); err != nil {
			return err
		}
		if err := p.stop(); err != nil {
			return err
		}
		var t float64
		if p, t, err = start(); err != nil {
			return err
		}
		clean = append(clean, t)
		// Kill later in each round, so that the amount of unfinished work differs.
		after := time.Duration(i+1) * b.span / 2
		load.span = after + time.Minute
		time.AfterFunc(after, func() { p.cmd.Process.Kill() })
		_, err = load.run(ctx, p)
		if wrong := (*unexpected)(nil); err == nil || errors.As(err, &wrong) || ctx.Err() != nil {
			return errors.Join(errors.New("before the kill"), err)
		}
		<-p.ended
		if p, t, err = start(); err != nil {
			return err
		}
		killed = append(killed, t)
	}
	size := fileSize(d.file())
	a, c := slices.Max(clean), slices.Max(killed)
	b.add(row{
		"11", fmt.Sprintf("start to first answer with %.2f GB: after a clean stop; after kill -9 under load", float64(size)/1e9), "≤ 1 s; ≤ 3 s",
		fmt.Sprintf("%.3f s; %.3f s", a, c), verdictOf(a <= 1 && c <= 3).only(!b.short && size >= 5e9),
		fmt.Sprintf("the slowest of %d, the file in the system's cache; medians %.3f s and %.3f s", b.rounds, median(clean), median(killed)),
		map[string]any{"clean": figures(clean), "killed": figures(killed), "fileBytes": size},
	})
	return p.stop()
}
