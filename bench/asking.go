package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// An asking is one kind of GET that is compared on one connection.
type asking struct {
	name string
	p    *process
	next func(r *rand.Rand) []byte
	most int       // requests in a round
	ms   []float64 // median of each round
	cpu  []float64 // µs of server CPU per request, of each round

	bytes int // of the last answer's body
}

func newAsking(name string, p *process, next func(*rand.Rand) []byte) *asking {
	return &asking{name: name, p: p, next: next, most: 2000}
}

// compare measures the askings in turn, in each round on a connection of their own.
func (b *bench) compare(ctx context.Context, askings []*asking) error {
	limit := b.span / 6
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for range b.rounds {
		for _, a := range askings {
			c, err := dial(a.p.addr)
			if err != nil {
				return err
			}
			stop := c.closeAfter(ctx)
			err = a.round(c, r, limit)
			stop()
			c.Close()
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}
	return nil
}

func (a *asking) round(c *client, r *rand.Rand, limit time.Duration) error {
	const least = 3
	var list []time.Duration
	var cpuBefore time.Duration
	var cpuErr error
	begin := time.Now()
	for i := -1; i < a.most && (i < least || time.Since(begin) < limit); i++ {
		if i == 0 { // the first answer is not counted
			cpuBefore, cpuErr = a.p.cpu()
		}
		request := a.next(r)
		sent := time.Now()
		body, err := c.expect(request, 200)
		if err != nil {
			return err
		}
		a.bytes = len(body)
		if i >= 0 {
			list = append(list, time.Since(sent))
		}
	}
	if cpuAfter, err := a.p.cpu(); err == nil && cpuErr == nil {
		a.cpu = append(a.cpu, float64((cpuAfter-cpuBefore).Nanoseconds())/1e3/float64(len(list)))
	} else {
		a.cpu = append(a.cpu, 0)
	}
	slices.Sort(list)
	a.ms = append(a.ms, quantile(list, 0.5).Seconds()*1000)
	return nil
}

func (a *asking) values() map[string]any {
	return map[string]any{"ms": figures(a.ms), "serverCPUMicroseconds": figures(a.cpu)}
}

// fixed asks for the same path each time.
func (d *dataset) fixed(name string, p *process, path string) *asking {
	request := d.get(path).next(nil, nil)
	return newAsking(name, p, func(*rand.Rand) []byte { return request })
}

// oneCustomer asks for a random customer.
func (d *dataset) oneCustomer(p *process) *asking {
	w := d.one()
	return newAsking("GET of one customer", p, func(r *rand.Rand) []byte { return w.next(nil, r) })
}
