package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A loader sends writes over several connections until the load ends or the server
// is gone.
type loader struct {
	*job
	deadline time.Time
	left     atomic.Int64
	first    sync.Once // announces the first answer

	mu        sync.Mutex
	next      int // number of the next key
	rewards   []string
	customers []string
	purchases []*operation // successful
	redeemed  []*operation // successful, with no attempt yet to cancel them
}

// known is how many existing customers a load goes on with. It bounds what one check
// reads, however many loads there were.
const known = 4

func (j *job) load() error {
	l := &loader{job: j, deadline: time.Now().Add(j.span), next: len(j.log.ops)}
	l.left.Store(int64(j.most))
	rewards, err := j.client.list("/rewards?")
	if err != nil {
		return err
	}
	for _, r := range rewards {
		l.rewards = append(l.rewards, r.text("id"))
	}
	if j.log.start == nil {
		t, err := j.client.totals()
		if err != nil {
			return err
		}
		if err := j.log.write(line{Start: &t}); err != nil {
			return err
		}
	}
	l.recall(rand.New(rand.NewPCG(j.seed, 0)))
	stop, followed := make(chan struct{}), make(chan error, 1)
	go func() { followed <- j.follow(stop) }()
	var wait sync.WaitGroup
	errs := make([]error, j.conns)
	for i := range j.conns {
		wait.Go(func() { errs[i] = l.connection(rand.New(rand.NewPCG(j.seed, uint64(i)+1))) })
	}
	wait.Wait()
	close(stop)
	return errors.Join(append(errs, <-followed)...)
}

// recall restores the customers, purchases and redemptions that earlier loads left.
func (l *loader) recall(rng *rand.Rand) {
	cancelled := map[string]bool{}
	for _, o := range l.log.ops {
		if o.Kind == kindCancel {
			cancelled[o.Of] = true
		}
		if o.Kind == kindEnrol && o.done() {
			l.customers = append(l.customers, o.Customer)
		}
	}
	rng.Shuffle(len(l.customers), func(i, k int) { l.customers[i], l.customers[k] = l.customers[k], l.customers[i] })
	l.customers = l.customers[:min(known, len(l.customers))]
	for _, o := range l.log.ops {
		if !o.done() || !slices.Contains(l.customers, o.Customer) {
			continue
		}
		switch {
		case o.Kind == kindSale:
			l.purchases = append(l.purchases, o)
		case o.Kind == kindRedeem && !cancelled[o.body.text("id")]:
			l.redeemed = append(l.redeemed, o)
		}
	}
}

// connection sends one request after another. It ends at the first request without an
// answer. That is no error, since a load runs until the server is killed.
func (l *loader) connection(rng *rand.Rand) error {
	for l.left.Add(-1) >= 0 && time.Now().Before(l.deadline) {
		r := l.choose(rng)
		if err := l.log.write(line{Try: r}); err != nil {
			return err
		}
		a, err := l.client.post(r)
		if err != nil {
			return nil
		}
		if err := l.log.write(line{Answer: a}); err != nil {
			return err
		}
		l.first.Do(func() { fmt.Fprintln(os.Stdout, "answered") }) // what a test waits for before it kills the server
		l.learn(r.Key)
		switch {
		case a.Status == 503: // the outcome is unknown; a check settles it
		case a.Status >= 500 || a.Status == 401 || a.Status == 403 || a.Status == 429:
			return fmt.Errorf("%s: %d %s", r.Key, a.Status, a.Body)
		}
	}
	return nil
}

// learn remembers what a successful request has made.
func (l *loader) learn(key string) {
	l.log.mu.Lock()
	o := l.log.byKey[key]
	done := o.done()
	l.log.mu.Unlock()
	if !done {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o.Kind {
	case kindEnrol:
		l.customers = append(l.customers, o.Customer)
	case kindSale:
		l.purchases = append(l.purchases, o)
	case kindRedeem:
		l.redeemed = append(l.redeemed, o)
	}
}

// choose makes the next request.
func (l *loader) choose(rng *rand.Rand) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	r := &request{Key: fmt.Sprintf("w-%d", l.next), Kind: kindEnrol, Path: "/customers"}
	n := rng.IntN(100)
	if len(l.customers) == 0 || n < 2 {
		r.Body = encode(object{"email": emailOf(r.Key), "firstName": "Ana"})
		return r
	}
	r.Customer = l.customers[rng.IntN(len(l.customers))]
	cents := func(most int) json.Number {
		return json.Number(points(100 * (1 + rng.Int64N(int64(most)*100))).String())
	}
	switch {
	case n < 12 && len(l.purchases) > 0:
		bought := l.purchases[rng.IntN(len(l.purchases))]
		part := max(bought.body.points("totalAmount")*points(1+rng.Int64N(60))/100, 1)
		r.Kind, r.Path, r.Customer, r.Of = kindReturn, "/transactions", bought.Customer, bought.body.text("id")
		r.Body = encode(object{
			"customerId": r.Customer, "type": "Return", "totalAmount": json.Number(part.String()),
			"originalTransactionId": r.Of, "comment": r.Key,
		})
	case n < 18 && len(l.redeemed) > 0:
		i := rng.IntN(len(l.redeemed))
		x := l.redeemed[i]
		l.redeemed = slices.Delete(l.redeemed, i, i+1)
		r.Kind, r.Customer, r.Of = kindCancel, x.Customer, x.body.text("id")
		r.Path, r.Body = "/redemptions/"+r.Of+"/cancel", "{}"
	case n < 30:
		r.Kind, r.Path = kindRedeem, "/rewards/redeem"
		r.Body = encode(object{"customerId": r.Customer, "productId": l.rewards[rng.IntN(len(l.rewards))], "comment": r.Key})
	case n < 55:
		r.Kind, r.Path = kindSale, "/transactions"
		r.Body = encode(object{
			"customerId": r.Customer, "totalAmount": cents(300), "externalId": "ticket " + r.Key, "comment": r.Key,
			"items": []object{{"sku": "GRANO-500", "price": cents(100), "quantity": json.Number("1")}},
		})
	case n < 80:
		r.Kind, r.Path = kindAdd, "/points/customers/"+r.Customer+"/add"
		r.Body = encode(object{"amount": cents(50), "comment": r.Key})
	default:
		r.Kind, r.Path = kindDeduct, "/points/customers/"+r.Customer+"/deduct"
		r.Body = encode(object{"amount": cents(80), "comment": r.Key})
	}
	return r
}

func emailOf(key string) string { return key + "@example.com" }

func encode(o object) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // cannot happen: all values are valid in JSON
	}
	return string(text)
}
