package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A needle is a text to search for.
type needle struct {
	name  string
	text  string // "" for the address of a random customer
	asked bool   // the target asks for it
}

func needles() []needle {
	return []needle{
		{"one hit", "", true},
		{"1,000 hits", strings.ToLower(rareSurname), true},
		{"no hit", noNeedle, true},
		{"no hit, common parts", noNeedleParts, true},
		{"3 characters", shortNeedle, true},
		{"common surname", "hernandez", false},
	}
}

// searching returns the asking that searches a list for a needle, and how many hits
// the needle has.
func (d *dataset) searching(ctx context.Context, p *process, list string, n needle) (*asking, uint64, error) {
	path := func(r *rand.Rand) string {
		text := n.text
		if text == "" {
			text = d.emailOf(r)
		}
		return list + "?search=" + urlEscape(text)
	}
	c, err := dial(p.addr)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	defer c.closeAfter(ctx)()
	body, err := d.ask(c, path(rand.New(rand.NewPCG(1, 1))))
	if err != nil {
		return nil, 0, err
	}
	var answer struct{ Meta pageMeta }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, 0, err
	}
	return newAsking("search: "+n.name, p, func(r *rand.Rand) []byte { return d.get(path(r)).next(nil, nil) }), answer.Meta.Total, nil
}

func urlEscape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._@", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Target 7: search of customers.

func (b *bench) search(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	one := d.oneCustomer(p)
	askings := []*asking{one}
	kinds := needles()
	totals := make([]uint64, len(kinds))
	for i, n := range kinds {
		a, total, err := d.searching(ctx, p, "/api/v1/customers", n)
		if err != nil {
			return err
		}
		totals[i], askings = total, append(askings, a)
	}
	if err := b.compare(ctx, askings); err != nil {
		return err
	}
	b.add(compared("7", fmt.Sprintf("customers search over %s ÷ GET of one customer", count(d.customers)), 25, one, askings[1:], totals, func(i int) bool { return kinds[i].asked }, !b.short && d.customers >= 1_000_000))
	return p.stop()
}

// compared returns the row of a target whose figure is the worst ratio of several
// askings to a GET of one customer.
func compared(target, work string, bound float64, one *asking, askings []*asking, totals []uint64, counts func(int) bool, asAsked bool) row {
	worst, worstName := 0.0, ""
	values := map[string]any{one.name: one.values()}
	parts := []string{fmt.Sprintf("%s %.3f ms", one.name, median(one.ms))}
	for i, a := range askings {
		ratio := median(ratios(a.ms, one.ms))
		text := fmt.Sprintf("%s (%s) %.3f ms = %.1f", a.name, count(int64(totals[i])), median(a.ms), ratio)
		if counts(i) {
			if ratio > worst {
				worst, worstName = ratio, a.name
			}
		} else {
			text += " (not asked for)"
		}
		parts = append(parts, text)
		v := a.values()
		v["total"], v["ratio"] = totals[i], round(ratio, 2)
		values[a.name] = v
	}
	return row{
		target, work, fmt.Sprintf("≤ %.0f", bound), fmt.Sprintf("%.1f (%s)", worst, worstName),
		verdictOf(worst <= bound).only(asAsked), strings.Join(parts, "; "), values,
	}
}

// Target 8: search and filters of sales.

func (b *bench) salesSearch(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	const list = "/api/v1/transactions"
	one := d.oneCustomer(p)
	askings := []*asking{one}
	var totals []uint64
	asked := map[int]bool{}
	for _, n := range needles() {
		a, total, err := d.searching(ctx, p, list, n)
		if err != nil {
			return err
		}
		asked[len(totals)] = n.asked
		totals, askings = append(totals, total), append(askings, a)
	}
	c, err := dial(p.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer c.closeAfter(ctx)()
	middle := d.progress.Begun.Add(-saleDays / 2 * 24 * time.Hour)
	dates := func(days int) string {
		return "from=" + middle.Format(time.DateOnly) + "&to=" + middle.AddDate(0, 0, days-1).Format(time.DateOnly)
	}
	moments := "from=" + urlEscape(middle.Format(time.RFC3339)) + "&to=" + urlEscape(middle.AddDate(0, 0, 30).Format(time.RFC3339))
	for _, f := range []struct{ name, query string }{
		{"no filter", ""},
		{"type Return", "type=Return"},
		{"type Purchase", "type=Purchase"},
		{"one customer", "customerId=" + string(appendID(nil, d.ids[turn(0, d.customers)]))},
		{"externalId", "externalId=" + saleName(d.Sales/2)},
		{"one day", dates(1)},
		{"30 days", dates(30)},
		{"30 days, not whole", moments},
		{"30 days of returns", dates(30) + "&type=Return"},
		{"all dates", "from=2000-01-01"},
		{"search: 1,000 hits, 30 days", "search=" + urlEscape(strings.ToLower(rareSurname)) + "&" + dates(30)},
		{"search: 1,000 hits, half of all days", "search=" + urlEscape(strings.ToLower(rareSurname)) + "&" + dates(saleDays/2)},
		{"search: 3 characters, half of all days", "search=" + shortNeedle + "&" + dates(saleDays/2)},
		{"search: 3 characters, half of all days, returns", "search=" + shortNeedle + "&type=Return&" + dates(saleDays/2)},
	} {
		path := strings.TrimSuffix(list+"?"+f.query, "?")
		body, err := d.ask(c, path)
		if err != nil {
			return err
		}
		var answer struct{ Meta pageMeta }
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		asked[len(totals)] = true
		totals, askings = append(totals, answer.Meta.Total), append(askings, d.fixed(f.name, p, path))
	}
	if err := b.compare(ctx, askings); err != nil {
		return err
	}
	r := compared("8", fmt.Sprintf("transactions: search and filters over %s sales, and ÷ GET of one customer", count(d.Sales)), 0, one, askings[1:], totals, func(i int) bool { return asked[i] }, false)
	bound, slowest := 0.1*max(1, float64(d.Sales)/1e6), 0.0 // seconds: a search may pass over a log of all sales
	for i, a := range askings[1:] {
		if asked[i] {
			slowest = max(slowest, median(a.ms)/1000)
		}
	}
	r.Target, r.Figure = fmt.Sprintf("≤ %.1f s", bound), fmt.Sprintf("%.3f s; %s", slowest, r.Figure)
	r.Met = verdictOf(slowest <= bound).only(!b.short && d.Sales >= 1_000_000)
	b.add(r)
	return p.stop()
}
