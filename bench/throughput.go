package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// boundFor starts a bound whose answers are as long as sello's for the dataset.
func (b *bench) boundFor(ctx context.Context, d *dataset, p *process) (*process, error) {
	c, err := dial(p.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := rand.New(rand.NewPCG(1, 1))
	var bodies []string
	for range 101 {
		body, err := d.ask(c, "/api/v1/points/customers/"+string(appendID(nil, d.random(r)))+"/balance")
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, string(body))
	}
	slices.SortFunc(bodies, func(a, b string) int { return len(a) - len(b) })
	page, err := d.list(c, "/api/v1/customers?limit=100")
	if err != nil {
		return nil, err
	}
	bound, err := startBound(ctx, boundSetup{bodies[len(bodies)/2], *page})
	if err == nil {
		b.running(bound)
	}
	return bound, err
}

// A series is one kind of request to one server, measured once in each round.
type series struct {
	name   string
	p      *process
	w      work
	needed bool
	rates  []float64
	cpu    []float64 // µs per request
	own    []float64 // the same of the clients, that is, of this process
	beside []float64 // the same of the cluster, if the bench has one
	p50    []float64 // ms
	p99    []float64
	after  []float64 // seconds for which the server was still busy after the load
}

// take measures a round. d is what the server serves.
func (s *series) take(ctx context.Context, b *bench, d *dataset) error {
	o, err := b.play(ctx, d, s.p, s.w)
	if err != nil {
		return err
	}
	s.note(o)
	if s.w.status == 201 && s.p.file != "" {
		s.after = append(s.after, o.after.Seconds())
	}
	return nil
}

func (s *series) note(o *outcome) {
	s.rates = append(s.rates, o.rate())
	s.cpu, s.own, s.beside = append(s.cpu, 1e6*o.cpu), append(s.own, 1e6*o.own), append(s.beside, 1e6*o.beside)
	s.p50 = append(s.p50, quantile(o.latencies, 0.5).duration().Seconds()*1000)
	s.p99 = append(s.p99, quantile(o.latencies, 0.99).duration().Seconds()*1000)
}

func values(turns ...*series) map[string]any {
	m := map[string]any{}
	for _, t := range turns {
		m[t.name] = map[string]any{
			"perSecond": figures(t.rates), "serverCPUMicroseconds": figures(t.cpu), "p50ms": figures(t.p50), "p99ms": figures(t.p99),
			"clientCPUMicroseconds": figures(t.own), "clusterCPUMicroseconds": figures(t.beside), "busyAfterSeconds": figures(t.after),
		}
	}
	return m
}

func describe(turns ...*series) string {
	var parts []string
	for _, t := range turns {
		cpu := fmt.Sprintf("%.1f µs of server CPU", median(t.cpu))
		if beside := median(t.beside); beside > 0 {
			cpu += fmt.Sprintf(" and %.1f of PostgreSQL's", beside)
		}
		parts = append(parts, fmt.Sprintf("%s %s/s, %s, p50 %.2f ms, p99 %.2f ms", t.name, count(median(t.rates)), cpu, median(t.p50), median(t.p99)))
		if len(t.after) > 0 {
			parts[len(parts)-1] += fmt.Sprintf(", then busy for %.1f s", median(t.after))
		}
	}
	return strings.Join(parts, "; ")
}

// Targets 1, 2 and 3: throughput against the bound's.

func (b *bench) throughput(ctx context.Context, has func(...string) bool) error {
	d := b.main
	sello, err := d.serve(ctx)
	if err != nil {
		return err
	}
	bound, err := b.boundFor(ctx, d, sello)
	if err != nil {
		return err
	}
	if has("3") {
		if err := d.checkSale(sello); err != nil {
			return err
		}
	}
	boundGet := &series{name: "no-op GET", p: bound, w: d.balance(), needed: has("1")}
	get := &series{name: "GET balance", p: sello, w: d.balance(), needed: has("1")}
	likeGet := &series{name: "no-op GET with as many headers", p: bound, w: d.get(likePath), needed: has("1")}
	boundPost := &series{name: "no-op POST", p: bound, w: d.add(), needed: has("2")}
	add := &series{name: "POST add", p: sello, w: d.add(), needed: has("2", "3")}
	sale := &series{name: "POST transactions", p: sello, w: d.sale(), needed: has("3")}
	for range b.rounds {
		for _, t := range []*series{boundGet, get, likeGet, boundPost, add, sale} {
			if !t.needed {
				continue
			}
			if err := t.take(ctx, b, d); err != nil {
				return err
			}
		}
	}
	size := count(d.customers) + " customers: "
	asked := !b.short
	if has("1") {
		rate, cpu := median(ratios(get.rates, boundGet.rates)), median(ratios(get.cpu, boundGet.cpu))
		figure, ok := fmt.Sprintf("%.2f, CPU %.2f", rate, cpu), rate >= 0.80 && cpu <= 1.3
		if get.cpu[0] == 0 {
			figure, ok = fmt.Sprintf("%.2f, CPU not measured", rate), false
		}
		b.add(row{"1", "GET balance ÷ no-op GET", "≥ 0.80, CPU ≤ 1.3", figure, verdictOf(ok).only(asked), size + describe(boundGet, likeGet, get), values(boundGet, likeGet, get)})
	}
	if has("2") {
		rate := median(ratios(add.rates, boundPost.rates))
		b.add(row{"2", "POST add, durable ÷ no-op POST", "≥ 0.30", fmt.Sprintf("%.3f", rate), verdictOf(rate >= 0.30).only(asked && d.customers >= 1_000_000), size + describe(boundPost, add), values(boundPost, add)})
	}
	if has("3") {
		rate := median(ratios(sale.rates, add.rates))
		b.add(row{"3", "POST transactions ÷ POST add", "≥ 0.60", fmt.Sprintf("%.2f", rate), verdictOf(rate >= 0.6).only(asked && d.customers >= 1_000_000), size + describe(add, sale), values(add, sale)})
	}
	return errors.Join(bound.stop(), sello.stop())
}

// checkSale returns an error if a sale is not the work that the target names.
func (d *dataset) checkSale(p *process) error {
	c, err := dial(p.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	w := d.sale()
	body, err := c.expect(w.next(nil, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))), w.status)
	if err != nil {
		return err
	}
	var made struct{ AppliedRules, Items []any }
	if err := json.Unmarshal(body, &made); err != nil || len(made.AppliedRules) != 3 || len(made.Items) != 3 {
		return fmt.Errorf("a sale is not of three items and three rules: %s", body)
	}
	return nil
}
