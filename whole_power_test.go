package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

var (
	powerImages = flag.Int("power.n", 0, "number of images after power cuts to open; 0: a few")
	powerSeed   = flag.Uint64("power.seed", 0, "seed of the tests of power cuts; 0: a random one")
)

// powerRandom returns a random source, and logs its seed.
func powerRandom(t *testing.T) *rand.Rand {
	s := cmp.Or(*powerSeed, rand.Uint64())
	t.Logf("-power.seed=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// Until the power is cut, a process stores the sales of a few tills. Each till has one
// customer and numbers its sales.

// A powerLoad is what one process stores.
type powerLoad struct {
	path  string
	seed  uint64
	sales int    // in all
	end   string // kill or stop
	lazy  bool   // nothing is synced
}

const powerTills = 4

func (l powerLoad) options() disk.Options {
	return disk.Options{
		NoSync: l.lazy, Dense: denseTables, MemAge: time.Hour,
		MemSize: 24<<10 + int(l.seed%8)*(16<<10),
	}
}

// environ returns the environment that passes the load to a process. powerLoadIn reads it.
func (l powerLoad) environ() []string {
	return append(os.Environ(), fmt.Sprintf("SELLO_POWER=%d %d %s %t %s", l.seed, l.sales, l.end, l.lazy, l.path))
}

func powerLoadIn(environ string) (l powerLoad, err error) {
	_, err = fmt.Sscanf(environ, "%d %d %s %t %s", &l.seed, &l.sales, &l.end, &l.lazy, &l.path)
	return l, err
}

// ranPowerLoad runs a load if the environment has one, and reports whether it did.
func ranPowerLoad() bool {
	environ := os.Getenv("SELLO_POWER")
	if environ == "" {
		return false
	}
	l, err := powerLoadIn(environ)
	if err == nil {
		err = l.run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func powerEngine(s Store) *engine { return newEngine(s, time.Now, cryptoSeed) }

// run makes sales. It writes a line "ack TILL-NUMBER SEQ" for each that is stored.
func (l powerLoad) run(ctx context.Context, acks io.Writer) error {
	s, err := openBolt(l.path, l.options())
	if err != nil {
		return err
	}
	e := powerEngine(s)
	if err := e.open(ctx); err != nil {
		return err
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	document := setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}],"expiry":{"months":12}`}.document()
	if _, err := a.apply(ctx, applyRequest{Document: document}); err != nil {
		return err
	}
	known, err := soldIn(ctx, e)
	if err != nil {
		return err
	}
	var tills sync.WaitGroup
	errs := make([]error, powerTills)
	left := make(chan struct{}, l.sales)
	for range l.sales {
		left <- struct{}{}
	}
	close(left)
	for till := range powerTills {
		tills.Go(func() {
			for n := known.last(till) + 1; ; n++ {
				if _, more := <-left; !more {
					return
				}
				if errs[till] = powerSale(ctx, e, acks, till, n); errs[till] != nil {
					return
				}
				if len(left) == 0 && l.end == "kill" {
					p, _ := os.FindProcess(os.Getpid())
					p.Kill()
				}
			}
		})
	}
	tills.Wait()
	return errors.Join(errors.Join(errs...), s.Close())
}

// powerSale makes one sale. Every third comes with a debit, every twentieth with 15 new
// customers.
func powerSale(ctx context.Context, e *engine, acks io.Writer, till, n int) error {
	name := fmt.Sprintf("%d-%d", till, n)
	seq, err := write(ctx, e, 1, instantOf(e.now()), func(t *txn) (uint64, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Till", Email: fmt.Sprintf("till%d@example.com", till)})
		if err != nil {
			return 0, err
		}
		s, _, err := t.sales.register(newSale{
			Customer: c.ID, Total: decimalOf(10 + n), Type: typePurchase, Source: sourceAPI,
			ExternalID: name, Comment: strings.Repeat("c", n*37%500),
		})
		if err != nil {
			return 0, err
		}
		if n%3 == 0 {
			m := &movement{Amount: decimalOf(1), Category: categoryAdjustment}
			if _, err := movePoints(t, c.ID, nil, m, t.points.debit); err != nil {
				return 0, err
			}
		}
		for i := range 15 {
			if n%20 == 0 {
				if _, _, err := t.customers.enrol(enrolment{FirstName: "More", Email: fmt.Sprintf("more%d-%s@example.com", i, name)}); err != nil {
					return 0, err
				}
			}
		}
		return s.Seq, nil
	})
	if err == nil {
		_, err = fmt.Fprintf(acks, "ack %s %d\n", name, seq)
	}
	return err
}

// A soldList names the sales that a store holds, in order.
type soldList []string

// last returns the number of a till's last sale, or 0.
func (l soldList) last(till int) (n int) {
	for _, name := range l {
		var of, number int
		if fmt.Sscanf(name, "%d-%d", &of, &number); of == till {
			n = number
		}
	}
	return n
}

func soldIn(ctx context.Context, e *engine) (soldList, error) {
	orgs, err := viewStore(ctx, e.store, func(tx Tx) (uint64, error) {
		n, err := organizationCount(tx)
		return n, err
	})
	if err != nil || orgs == 0 {
		return nil, err
	}
	return read(ctx, e, 1, instantOf(e.now()), func(t *txn) (list soldList, err error) {
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for seq := range n.Sales {
			s, err := t.sales.at(seq + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, s.ExternalID)
		}
		return list, nil
	})
}

// powerCheck opens a store that a power cut has left, verifies it, and checks that it has
// every acknowledged sale. If thorough, it also makes a sale, opens the store again, and
// has bbolt check the file.
func powerCheck(ctx context.Context, path string, told soldList, thorough bool) (sold soldList, err error) {
	for again := range 2 {
		s, err := openBolt(path, disk.Options{NoSync: true, Dense: denseTables, MemSize: 64 << 10, MustExist: len(told) > 0})
		if err != nil {
			return nil, err
		}
		sold, err = powerAudit(ctx, s, told)
		if err == nil && thorough && again == 0 && len(sold) > 0 {
			err = powerSale(ctx, powerEngine(s), io.Discard, 0, sold.last(0)+1)
			told = sold
		}
		if err = errors.Join(err, s.Close()); err != nil || !thorough {
			return sold, err
		}
	}
	return sold, disktest.BoltFaults(path)
}

func powerAudit(ctx context.Context, s *boltStore, told soldList) (soldList, error) {
	e := powerEngine(s)
	report, err := viewStore(ctx, s, func(tx Tx) (*verification, error) { return verify(tx, instantOf(e.now()), nil) })
	if err != nil {
		return nil, err
	}
	if len(report.Problems) > 0 {
		return nil, fmt.Errorf("audit: %s", strings.Join(report.Problems[:min(5, len(report.Problems))], "; "))
	}
	sold, err := soldIn(ctx, e)
	if err != nil {
		return nil, err
	}
	for i, name := range told {
		if name != "" && (i >= len(sold) || sold[i] != name) {
			return sold, fmt.Errorf("lost: sale %d, %s; %d sales are there", i+1, name, len(sold))
		}
	}
	numbers := make([]int, powerTills)
	for _, name := range sold {
		var till, number int
		fmt.Sscanf(name, "%d-%d", &till, &number)
		if number != numbers[till]+1 {
			return sold, fmt.Errorf("till %d: sale %d after %d", till, number, numbers[till])
		}
		numbers[till] = number
	}
	return sold, nil
}
