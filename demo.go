package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"time"
)

func demoFlags(c *invocation) {
	serveFlags(c)
	jsonFlag(c)
	c.db = "sello-demo.db"
	c.set.Lookup("db").DefValue = c.db
}

//go:embed demo.json
var demoDocument []byte

// demoKeyDays is how many days a key that the demo prints is valid.
const demoKeyDays = 7

const (
	demoSlug     = "cafe-luna"
	demoOperator = "sello demo" // no user of a system has a name with a blank
)

// checkDemo refuses a file with an organization unless the sample is in it, made by the
// demo: any other may be real, and must not get a key.
func (c *invocation) checkDemo(ctx context.Context, e *engine) error {
	organizations, err := view(ctx, e.store, func(tx Tx) (uint64, error) {
		n, _, err := getUint(tx, newKey('o').byte('n'))
		return n, err
	})
	if err != nil || organizations == 0 {
		return err
	}
	org, err := view(ctx, e.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, demoSlug) })
	if err != nil {
		return err
	}
	own := false
	if org != 0 {
		own, err = read(ctx, e, org, instantOf(e.now()), func(t *txn) (bool, error) {
			n, err := t.count()
			if err != nil || n.Audit == 0 {
				return false, err
			}
			made, err := t.auditEntry(1)
			return err == nil && made.By == creator{Type: byCommand, Actor: demoOperator}, err
		})
	}
	if err == nil && !own {
		err = adminErrorf("%s: tiene datos que no hizo sello demo: elige otro archivo con -db", c.db)
	}
	return err
}

// runDemo serves a sample organization. Each start prints a new key, since keys
// are stored only as hashes. Earlier keys work until they expire.
func runDemo(ctx context.Context, c *invocation) error {
	ctx = withOperator(ctx, demoOperator)
	return c.serve(ctx, c.checkDemo, func(e *engine, addr net.Addr) error {
		a := &admin{engine: e}
		slugs, err := a.organizations(ctx, struct{}{})
		if err != nil {
			return err
		}
		isNew := len(slugs) == 0
		if isNew {
			if _, err := a.apply(ctx, applyRequest{Document: demoDocument}); err != nil {
				return err
			}
		}
		org, err := a.organization(ctx, demoSlug)
		if err != nil {
			return err
		}
		if isNew {
			if err := populate(ctx, e, org); err != nil {
				return err
			}
		}
		k, err := a.createKey(ctx, keyRequest{
			Org: demoSlug, Name: "demo", Expires: e.now().AddDate(0, 0, demoKeyDays).Format(time.RFC3339),
		})
		if err != nil {
			return err
		}
		customer, err := read(ctx, e, org, instantOf(e.now()), func(t *txn) (id, error) {
			n, err := t.count()
			if err != nil || n.Customers == 0 { // an earlier demo was killed before it made them
				return id{}, err
			}
			c, err := t.customerAt(1)
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
		if err != nil {
			return err
		}
		base := "http://" + addr.String() + "/api/v1"
		return c.print(demoStarted{k.Key, base, customer, k.ExpiresAt}, func(w io.Writer) {
			fmt.Fprintf(w, `Café Luna en %[1]s. Una API key, válida %[3]d días:

  export SELLO_KEY=%[2]s

  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/customers
  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/points/customers/%[4]s/balance
  curl -H "Authorization: Bearer $SELLO_KEY" -H "Content-Type: application/json" -d '{"customerId":"%[4]s","totalAmount":150}' %[1]s/transactions

Ctrl-C termina; los datos quedan en %[5]s
`, base, k.Key, demoKeyDays, customer, c.db)
		})
	})
}

// demoStarted is the demo's output.
type demoStarted struct {
	Key        string  `json:"key"`
	Base       string  `json:"base"`
	CustomerID id      `json:"customerId"`
	ExpiresAt  instant `json:"expiresAt"`
}

// populate gives a new sample organization a few customers and sales.
func populate(ctx context.Context, e *engine, org uint32) error {
	people := []enrolment{
		{FirstName: "María", LastName: "García", Email: "maria@example.com", Phone: "+525512345678"},
		{FirstName: "José", LastName: "Núñez", Email: "jose@example.com"},
		{FirstName: "Ana", LastName: "López", Phone: "+523312345678"},
	}
	_, err := write(ctx, e, org, instantOf(e.now()), func(t *txn) (any, error) {
		t.by = byOperator(ctx)
		for i, p := range people {
			c, _, err := t.enrol(p)
			if err != nil {
				return nil, err
			}
			_, _, err = t.registerSale(newSale{
				Customer: c.ID, Total: decimalOf(120 + 40*i), Type: typePurchase, Source: sourceAPI,
				Items: []item{{"GRANO-500", decimalOf(120 + 40*i), decimalOf(1)}},
			})
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return err
}
