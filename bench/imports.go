package main

import (
	"context"
	"fmt"
	"time"
)

// Target 12: the rate of the imports that made the data. If an earlier run made it,
// perhaps with another sello, the verdict is in brackets.

func (b *bench) imports(context.Context, func(...string) bool) error {
	p := b.main.progress
	x := row{ID: "12", Work: fmt.Sprintf("import of %s customers; of %s sales", count(p.Customers.Rows), count(p.Sales.Rows)), Target: "≥ 15 k/s; ≥ 10 k/s", Figure: "–", Met: notMeasured}
	if p.Customers.Timed > 0 && p.Sales.Timed > 0 {
		customers, sales := p.Customers.rate(), p.Sales.rate()
		x.Figure = fmt.Sprintf("%.1f k/s; %.1f k/s", customers/1000, sales/1000)
		x.Met = verdictOf(customers >= 15_000 && sales >= 10_000).only(!b.short && b.main.imported && p.Customers.Rows >= 1_000_000 && p.Sales.Rows >= 1_000_000)
		x.Note = fmt.Sprintf("as the data was made, on %s, up to %s rows to a file; sales of one item", p.Begun.Format(time.DateOnly), count(mostChunk))
		x.Values = map[string]any{"customersPerSecond": round(customers, 1), "salesPerSecond": round(sales, 1)}
	}
	b.add(x)
	return nil
}
