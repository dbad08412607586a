package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Random histories of concurrent clients, which must be linearizable.

var (
	linearSeed = flag.Uint64("linear.seed", 0, "seed of the first random concurrent history; 0: any")
	linearMany = flag.Int("linear.n", 12, "random concurrent histories on each store; one in twelve of them across kill -9")
)

// linearSeeds plays a history for each of n seeds. It calls open once for every group of
// seeds; each is the size of a group. A seed fixes what the clients send, not how their
// operations interleave.
func linearSeeds(t *testing.T, n, each int, open func(t *testing.T) (play func(rnd *rand.Rand) error)) {
	first := *linearSeed
	if first == 0 {
		first = rand.Uint64N(1_000_000_000)
	}
	for from, end := first, first+uint64(n); from < end; from += uint64(each) {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			play := open(t)
			for seed := from; seed < min(from+uint64(each), end); seed++ {
				if err := play(rand.New(rand.NewPCG(seed, 0))); err != nil {
					t.Fatalf("go test -run '^%s$' -linear.n 1 -linear.seed %d: %v", strings.Split(t.Name(), "/")[0], seed, err)
				}
			}
		})
	}
	t.Logf("seeds from %d, %d of them", first, n)
}

// The size of a random history. Each customer begins with the points that rushShop
// gives, and gets some forty operations.
const (
	linearClients   = 8
	linearCustomers = 3
	linearEach      = 15 // operations of a client
	linearStock     = 5  // of rushShop's reward
	linearCost      = 40
)

// A recorder sends operations and keeps what its clients see.
type recorder struct {
	reward     string
	customers  []string
	clock      atomic.Int64
	beforeSend func()
	resend     string // send each POST twice, as one operation: "with a key" or "without"

	mu          sync.Mutex
	accounts    map[int][]*observation // by customer
	stock       []*observation
	redemptions map[int][]string // by customer
	unanswered  []*attempt

	again, replayed int // operations answered when sent again; those of them already done before
}

// An attempt is an operation that may be sent again.
type attempt struct {
	*observation
	customer                     int
	method, path, retryKey, body string
}

func newRecorder(reward string) *recorder {
	return &recorder{reward: reward, accounts: map[int][]*observation{}, redemptions: map[int][]string{}}
}

// random returns a random operation.
func (h *recorder) random(rnd *rand.Rand) *attempt {
	c := rnd.IntN(linearCustomers)
	h.mu.Lock()
	defer h.mu.Unlock()
	kind := pick(rnd, "add", "add", "add", "deduct", "deduct", "deduct", "redeem", "redeem", "redeem", "cancel", "balance", "movements", "stock")
	amount, redemption := 5*(1+rnd.IntN(12)), 0
	if n := len(h.redemptions[c]); n > 0 {
		redemption = rnd.IntN(n)
	} else if kind == "cancel" {
		kind = "redeem"
	}
	a := h.attempt(kind, c, amount, redemption)
	if a.method == "POST" && rnd.IntN(2) == 0 {
		a.retryKey = fmt.Sprint("k-", rnd.Uint64())
	}
	return a
}

// attempt returns an operation to be sent. The caller holds mu.
func (h *recorder) attempt(kind string, c, amount, redemption int) *attempt {
	points := "/points/customers/" + h.customers[c] + "/"
	a := &attempt{observation: &observation{kind: kind, amount: amount, redemption: redemption}, customer: c}
	switch kind {
	case "add", "deduct":
		a.method, a.path, a.body = "POST", points+kind, fmt.Sprintf(`{"amount":%d}`, amount)
	case "redeem":
		a.amount = linearCost
		a.method, a.path, a.body = "POST", "/rewards/redeem", fmt.Sprintf(`{"customerId":%q,"productId":%q}`, h.customers[c], h.reward)
	case "cancel":
		a.amount = linearCost
		a.method, a.path, a.body = "POST", "/redemptions/"+h.redemptions[c][redemption]+"/cancel", `{}`
	case "balance":
		a.method, a.path = "GET", points+"balance"
	case "movements":
		a.method, a.path = "GET", points+"movements?limit=1"
	case "stock":
		a.method, a.path = "GET", "/rewards/"+h.reward
	}
	return a
}

// send sends an operation, for the first time or again, and records it. It reports
// whether there was an answer.
func (h *recorder) send(w *wires, a *attempt) bool {
	first := a.called == 0
	if first {
		a.called = h.clock.Add(1)
	}
	if h.beforeSend != nil {
		h.beforeSend()
	}
	if a.method == "POST" && h.resend != "" {
		if a.retryKey = ""; h.resend == "with a key" {
			a.retryKey = fmt.Sprint(h.customers[0], "-", a.called)
		}
		w.send(a.method, a.path, a.retryKey, a.body)
	}
	r := w.send(a.method, a.path, a.retryKey, a.body)
	a.returned = h.clock.Add(1)

	h.mu.Lock()
	defer h.mu.Unlock()
	if first && a.kind != "stock" {
		h.accounts[a.customer] = append(h.accounts[a.customer], a.observation)
	}
	if first && (a.kind == "stock" || a.kind == "redeem" || a.kind == "cancel") {
		h.stock = append(h.stock, a.observation)
	}
	if a.unknown = r.err != nil || r.status == 503; a.unknown {
		a.returned = notOver
		h.unanswered = append(h.unanswered, a)
		return r.err == nil
	}
	if !first {
		h.again++
	}
	if !first && r.replayed {
		h.replayed++
	}
	answer := r.told()
	a.code, a.balance = r.code(), answer.Balance
	switch {
	case r.status == 400:
		a.balance = answer.Context.Available
	case a.kind == "movements":
		a.count = answer.Meta.Total
		for _, newest := range answer.Data {
			a.balance = newest.Balance
		}
	case a.kind == "stock":
		a.count = answer.Stock
	case a.kind == "redeem" && r.status == 201:
		h.redemptions[a.customer] = append(h.redemptions[a.customer], answer.ID)
	}
	return true
}

// play runs all clients at once. A client ends after so many random operations, or when
// it gets no answer.
func (h *recorder) play(w *wires, rnd *rand.Rand, each int) {
	var wait sync.WaitGroup
	for range linearClients {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		wait.Go(func() {
			for range each {
				if !h.send(w, h.random(rnd)) {
					return
				}
			}
		})
	}
	wait.Wait()
}

// retry sends some unanswered operations again, all at once. It takes only those with an
// Idempotency-Key, which are not done twice.
func (h *recorder) retry(w *wires, rnd *rand.Rand) {
	lost := h.unanswered
	h.unanswered = nil
	var wait sync.WaitGroup
	for _, a := range lost {
		if a.retryKey != "" && rnd.IntN(3) > 0 {
			wait.Go(func() { h.send(w, a) })
		}
	}
	wait.Wait()
}

// died records that the server has ended: no unanswered operation takes effect later.
func (h *recorder) died() {
	now := h.clock.Add(1)
	for _, a := range h.unanswered {
		a.returned = min(a.returned, now)
	}
}

// settle reads everything, one request after another. It cancels every redemption, so
// that the next history begins with the whole stock.
func (h *recorder) settle(w *wires) {
	settle := func(kind string, c, redemption int) { h.send(w, h.attempt(kind, c, 1, redemption)) }
	for c := range h.customers {
		for i := range h.redemptions[c] {
			settle("cancel", c, i)
		}
		settle("add", c, 0)
		settle("balance", c, 0)
		settle("movements", c, 0)
	}
	settle("stock", 0, 0)
}

// check returns an error unless the recorded histories are linearizable.
func (h *recorder) check() error {
	for c, history := range h.accounts {
		if err := linearizable(history, accountState{Balance: 50, Movements: 1}, accountState.step); err != nil {
			return fmt.Errorf("customer %d: %w", c, err)
		}
	}
	if err := linearizable(h.stock, linearStock, stepStock); err != nil {
		return fmt.Errorf("stock: %w", err)
	}
	return nil
}

// record plays one history on an API and checks it.
func (r *rush) record(rnd *rand.Rand, resend string) error {
	h := newRecorder(r.rewards["cara"])
	h.resend = resend
	for range linearCustomers {
		h.customers = append(h.customers, r.customer(50))
	}
	r.arm(true)
	h.play(r.wires, rnd, linearEach)
	r.arm(false)
	h.settle(r.wires)
	return h.check()
}

// TestLinear checks that operations of concurrent clients are answered as if they had
// been done one by one.
func TestLinear(t *testing.T) {
	skipQuick(t)
	for name, open := range rushStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearSeeds(t, *linearMany, 12, func(t *testing.T) func(*rand.Rand) error {
				r := newRush(t, open(t), 0, 1)
				return func(rnd *rand.Rand) error {
					resend := pick(rnd, "", "", "", "with a key")
					return errors.Join(r.record(rnd, resend), r.verified())
				}
			})
		})
	}
}

// TestLinearControl checks that histories notice a flawed store and a flawed client.
func TestLinearControl(t *testing.T) {
	for _, flaw := range []struct {
		reason string
		resend string
		open   func() Store
	}{
		{racyWrites, "", func() Store { return &pairedStore{Store: newMemStore(), patience: 20 * time.Millisecond} }},
		{"reads are one write behind", "", func() Store { return &staleStore{memStore: newMemStore().(*memStore)} }},
		{"what is sent twice is done twice", "without", func() Store { return newMemStore() }},
	} {
		// Two writes overlap only by chance.
		linear := 0
		for seed := uint64(1); ; seed++ {
			r := newRush(t, flaw.open(), 0, 1)
			if r.record(rand.New(rand.NewPCG(seed, 0)), flaw.resend) != nil {
				break
			}
			if linear++; linear == 10 {
				t.Fatalf("not noticed: %s", flaw.reason)
			}
		}
		t.Logf("%s: noticed after %d histories", flaw.reason, linear)
	}
}

// A staleStore, once armed, shows each View the state before the last Update.
type staleStore struct {
	*memStore
	old atomic.Pointer[memPages] // nil: not armed
}

func (s *staleStore) arm(on bool) {
	if on {
		s.old.Store(s.state.Load())
	}
}

func (s *staleStore) View(ctx context.Context, fn func(Tx) error) error {
	if old := s.old.Load(); old != nil {
		return fn(*old)
	}
	return s.memStore.View(ctx, fn)
}

func (s *staleStore) Update(ctx context.Context, fn func(Tx) error) error {
	before := s.state.Load()
	err := s.memStore.Update(ctx, fn)
	if s.old.Load() != nil && s.state.Load() != before {
		s.old.Store(before)
	}
	return err
}
