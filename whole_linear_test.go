package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/processtest"
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

// Random histories that go on across kill -9.

// A killable is a recorder with a server process that can be killed.
type killable struct {
	*recorder
	till   *till
	key    string
	server *processtest.Process
	wires  *wires
}

func newKillable(t *testing.T) *killable {
	t.Helper()
	k := &killable{till: newTill(t)}
	k.till.ok("apply -", string(rushShop.document()))
	k.key, _ = k.till.key("-name prisa -rate-limit 10000000")
	k.start()
	for _, reward := range k.wires.get("/rewards").told().Data {
		if reward.Name == "Cara" {
			k.recorder = newRecorder(reward.ID)
		}
	}
	for i := range linearCustomers {
		c := k.wires.post("/customers", fmt.Sprintf(`{"email":"cliente%d@example.com"}`, i)).told()
		k.customers = append(k.customers, c.ID)
	}
	return k
}

func (k *killable) file() string { return k.till.env["SELLO_DB"] }

func (k *killable) start() {
	k.till.Helper()
	var err error
	if k.server, err = processtest.Start(k.till, selloCommand(k.till, "serve", "-db", k.file())); err != nil {
		k.till.Fatal(err)
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(k.server.Base, "http://"), "/api/v1")
	k.wires = newWires(addr, k.key, linearClients)
}

func (k *killable) kill() {
	k.server.Kill()
	k.wires.close()
	k.died()
}

// playUntilKilled plays, and kills the server just before the operation numbered after.
func (k *killable) playUntilKilled(rnd *rand.Rand, after int64) {
	var sent atomic.Int64
	k.beforeSend = func() {
		if sent.Add(1) == after {
			k.server.Process.Kill()
		}
	}
	k.play(k.wires, rnd, linearEach)
	k.beforeSend = nil
	k.kill()
}

// TestLinearKill plays histories across kill -9. An answered operation survives. An
// unanswered one was done once or not at all, and takes no effect after the kill unless
// it is sent again.
func TestLinearKill(t *testing.T) {
	linearSeeds(t, max(*linearMany/12, 1), 1, func(t *testing.T) func(*rand.Rand) error {
		return newKillable(t).playAcrossKills
	})
}

func (k *killable) playAcrossKills(rnd *rand.Rand) error {
	lost := 0
	for range 3 {
		k.playUntilKilled(rnd, int64(linearClients+rnd.IntN(30)))
		lost += len(k.unanswered)
		k.start()
		k.retry(k.wires, rnd)
	}
	k.play(k.wires, rnd, linearEach/3)
	k.settle(k.wires)
	if code := k.server.Stop(); code != 0 {
		k.till.Errorf("exit code %d\n%s", code, k.server.Log)
	}
	k.wires.close()
	k.till.ok("verify")
	k.till.Logf("%d requests were not answered; of %d sent again %d had been carried out", lost, k.again, k.replayed)
	if lost == 0 {
		k.till.Error("nobody noticed that the server was killed")
	}
	return k.check()
}

// TestLinearKillControl checks that histories notice a change that is made again after a
// kill, and a file that is replaced by an earlier copy.
func TestLinearKillControl(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		k := newKillable(t)
		for _, retryKey := range []string{"k-1", ""} {
			add := k.attempt("add", 0, 10, 0)
			add.retryKey = retryKey
			k.send(k.wires, add)
			k.kill()
			k.start()
			k.send(k.wires, add)
			k.settle(k.wires)
			if err := k.check(); (err == nil) != (retryKey != "") {
				t.Errorf("sent again with the Idempotency-Key %q: %v", retryKey, err)
			}
		}
		k.kill()
	})
	t.Run("set back", func(t *testing.T) {
		k := newKillable(t)
		k.play(k.wires, rand.New(rand.NewPCG(1, 0)), 2)
		k.kill()
		copied := copyFiles(t, k.file())
		k.start()
		k.send(k.wires, k.attempt("add", 0, 10, 0))
		k.kill()
		if err := k.check(); err != nil {
			t.Fatal(err)
		}
		for path := range copyFiles(t, k.file()) {
			os.Remove(path)
		}
		for path, content := range copied {
			writeFile(t, path, content)
		}
		k.start()
		k.settle(k.wires)
		if err := k.check(); err == nil {
			t.Error("not noticed: an older file, with its journals")
		}
		k.kill()
	})
}

// copyFiles reads a file and its two journals, whose names begin with its name.
func copyFiles(t *testing.T, path string) map[string][]byte {
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			found[name] = readFile(t, name)
		}
	}
	if len(found) != 3 {
		t.Fatalf("%q are not a file and two journals", slices.Collect(maps.Keys(found)))
	}
	return found
}

// A checker of linearizability, and the models of a customer and of a reward's stock.
//
// A history is what clients saw of each operation: when it was called, when it
// was answered, and the answer. It is linearizable if each operation can be given
// a moment between its call and its answer so that all get the same answers when
// they are carried out one by one at these moments.
//
// Customers do not depend on one another, so the history of each is checked by itself,
// and so is that of a reward's stock. A redemption is part of both. One that fails for
// lack of stock says nothing about the balance. One that fails for lack of points says
// that there was stock.

// An observation is an operation, as its client saw it.
type observation struct {
	kind       string // add, deduct, balance, movements, redeem, cancel or stock
	amount     int    // points; for redeem and cancel, what the reward costs
	redemption int    // which of the customer's redemptions cancel is about

	called, returned int64 // on one clock for all operations
	// The outcome is unknown: it was carried out once between called and returned, or
	// not at all.
	unknown bool

	code    string // 201, or "400 insufficient_balance"
	balance int    // the customer's, if the answer contains it
	count   int    // of movements, or of what is left in stock
}

// notOver stands in returned for an operation that may still take effect at any time.
const notOver = math.MaxInt64

func (o *observation) String() string {
	s := fmt.Sprintf("%6d-", o.called)
	if o.returned == notOver {
		s += "…     "
	} else {
		s += fmt.Sprintf("%-6d", o.returned)
	}
	s += " " + o.kind
	switch o.kind {
	case "add", "deduct":
		s += fmt.Sprint(" ", o.amount)
	case "cancel":
		s += fmt.Sprint(" #", o.redemption)
	}
	if o.unknown {
		return s + " => ?"
	}
	s += fmt.Sprint(" => ", o.code)
	if o.kind == "movements" || o.kind == "stock" {
		s += fmt.Sprintf(", %d there", o.count)
	}
	if o.kind != "stock" && !strings.HasPrefix(o.code, "409") {
		s += fmt.Sprintf(", balance %d", o.balance)
	}
	return s
}

// maxVisits bounds the search. An order that is not found by then counts as missing.
const maxVisits = 1_000_000

// linearizable returns nil if a history that begins in the state start is linearizable.
// step carries out an operation: it returns the state after it, and whether the operation
// fits there. One with an answer fits if the answer is right.
//
// It is Wing and Gong's search with Lowe's memory: depth first through the orders that the
// times permit, and never twice from the same state with the same operations done.
func linearizable[S comparable](history []*observation, start S, step func(S, *observation) (S, bool)) error {
	o := &orders[S]{
		history: slices.SortedFunc(slices.Values(history), func(a, b *observation) int { return cmp.Compare(a.called, b.called) }),
		step:    step, visited: map[considered[S]]bool{}, done: make([]byte, len(history)), after: start,
	}
	if o.search(start) {
		return nil
	}
	return o.failure(start)
}

// orders is a search for an order of a history.
type orders[S comparable] struct {
	history []*observation // sorted by called
	step    func(S, *observation) (S, bool)
	visited map[considered[S]]bool
	done    []byte         // 1 for each operation of history that is part of order
	order   []*observation // the order being tried
	longest []*observation // the longest order tried
	after   S              // the state after longest
}

type considered[S comparable] struct {
	done  string
	state S
}

// search reports whether there is an order for the operations not done, from state on.
func (o *orders[S]) search(state S) bool {
	if len(o.order) > len(o.longest) {
		o.longest, o.after = slices.Clone(o.order), state
	}
	deadline, latest, left := o.bounds()
	if !left {
		return true
	}
	v := considered[S]{string(o.done), state}
	if o.visited[v] || len(o.visited) > maxVisits {
		return false
	}
	o.visited[v] = true
	// Answered operations come first, so that an unknown one is done only where an
	// answer needs it.
	for _, unknown := range []bool{false, true} {
		for i, next := range o.history {
			if next.called > deadline {
				break
			}
			if o.done[i] == 1 || next.unknown != unknown || next.returned < latest {
				continue
			}
			after, ok := o.step(state, next)
			if !ok {
				continue
			}
			o.done[i] = 1
			o.order = append(o.order, next)
			if o.search(after) {
				return true
			}
			o.done[i] = 0
			o.order = o.order[:len(o.order)-1]
		}
	}
	return false
}

// bounds returns the bounds of the next operation. It was called by deadline, the first
// return of all operations that must still be done. It returned no earlier than latest,
// the last call of all operations that are done. left reports whether an operation must
// still be done.
func (o *orders[S]) bounds() (deadline, latest int64, left bool) {
	deadline, latest = notOver, -1
	for i, each := range o.history {
		switch {
		case o.done[i] == 1:
			latest = max(latest, each.called)
		case !each.unknown:
			deadline, left = min(deadline, each.returned), true
		}
	}
	return deadline, latest, left
}

// failure describes the longest order that was found, and the operations not in it.
func (o *orders[S]) failure(start S) error {
	var text strings.Builder
	if len(o.visited) > maxVisits {
		fmt.Fprintln(&text, "there are too many orders to try them all.")
	}
	fmt.Fprintf(&text, "no order was found that explains the answers. From %+v it gets as far as %+v by\n", start, o.after)
	for _, each := range o.longest {
		fmt.Fprintln(&text, each)
	}
	fmt.Fprintln(&text, "which leaves")
	for _, each := range o.history {
		if !slices.Contains(o.longest, each) {
			fmt.Fprintln(&text, each)
		}
	}
	return errors.New(text.String())
}

// An accountState is a customer's account, as far as the operations see it.
type accountState struct {
	Balance, Movements int
	Cancelled          uint64 // a bit for each redemption
}

// step carries out an operation on the account.
func (s accountState) step(o *observation) (accountState, bool) {
	code, next := "200", s
	switch o.kind {
	case "add":
		code = "201"
		next.Balance += o.amount
	case "deduct", "redeem":
		if code = "201"; s.Balance < o.amount {
			code = "400 insufficient_balance"
			break
		}
		next.Balance -= o.amount
	case "cancel":
		if next.Cancelled |= 1 << o.redemption; next.Cancelled == s.Cancelled {
			code = "409 redemption_not_cancellable"
			break
		}
		next.Balance += o.amount
	}
	if next.Balance != s.Balance {
		next.Movements++
	}
	switch {
	case o.unknown:
		return next, true
	case o.kind == "redeem" && o.code == "409 reward_out_of_stock":
		return s, true
	case o.code != code || o.kind == "movements" && o.count != next.Movements:
		return s, false
	}
	return next, strings.HasPrefix(code, "409") || o.balance == next.Balance
}

// stepStock carries out an operation on the stock. It does not tell redemptions apart:
// two unanswered cancellations of the same redemption may both count.
func stepStock(stock int, o *observation) (int, bool) {
	switch {
	case o.kind == "stock":
		return stock, o.count == stock
	case o.kind == "redeem" && (o.unknown || o.code == "201"):
		return stock - 1, stock > 0
	case o.kind == "redeem" && o.code == "409 reward_out_of_stock":
		return stock, stock == 0
	case o.kind == "redeem": // the stock is checked before the balance
		return stock, stock > 0
	case o.kind == "cancel" && (o.unknown || o.code == "200"):
		return stock + 1, true
	}
	return stock, true
}

// TestLinearizable checks small histories that can be judged by eye. Each is of one
// customer who begins with 100 points, or of a stock that begins with 1.
func TestLinearizable(t *testing.T) {
	type history = []*observation
	// op returns an answered operation, called at from and returned at to.
	op := func(kind string, amount int, from, to int64, code string, balance int) *observation {
		return &observation{kind: kind, amount: amount, called: from, returned: to, code: code, balance: balance}
	}
	lost := func(kind string, amount int, from, to int64) *observation {
		return &observation{kind: kind, amount: amount, called: from, returned: to, unknown: true}
	}
	cancel := func(redemption int, from, to int64, code string, balance int) *observation {
		return &observation{kind: "cancel", amount: 60, redemption: redemption, called: from, returned: to, code: code, balance: balance}
	}
	count := func(kind string, from, to int64, count, balance int) *observation {
		return &observation{kind: kind, called: from, returned: to, code: "200", count: count, balance: balance}
	}
	const poor, none, again = "400 insufficient_balance", "409 reward_out_of_stock", "409 redemption_not_cancellable"
	for _, test := range []struct {
		reason  string
		right   bool
		history history
	}{
		{"nothing", true, nil},
		{"one after another", true, history{op("deduct", 60, 1, 2, "201", 40), op("deduct", 60, 3, 4, poor, 40), op("add", 20, 5, 6, "201", 60), op("deduct", 60, 7, 8, "201", 0)}},
		{"spent twice", false, history{op("deduct", 60, 1, 3, "201", 40), op("deduct", 60, 2, 4, "201", 40)}},
		{"the second as if it had been first", false, history{op("deduct", 10, 1, 2, "201", 80), op("deduct", 10, 3, 4, "201", 90)}},
		{"the same, at once", true, history{op("deduct", 10, 1, 3, "201", 80), op("deduct", 10, 2, 4, "201", 90)}},
		{"refused though there was enough", false, history{op("deduct", 60, 1, 2, poor, 100)}},
		{"refused with a figure that never was", false, history{op("deduct", 150, 1, 3, poor, 90), op("add", 20, 2, 4, "201", 120)}},
		{"granted before what it needs was there", false, history{op("deduct", 150, 1, 2, "201", 0), op("add", 50, 3, 4, "201", 150)}},
		{"granted while what it needs was coming", true, history{op("deduct", 150, 1, 4, "201", 0), op("add", 50, 2, 3, "201", 150)}},
		{"a stale read", false, history{op("add", 10, 1, 2, "201", 110), op("balance", 0, 3, 4, "200", 100)}},
		{"a read of what is being written, or not yet", true, history{op("add", 10, 1, 6, "201", 110), op("balance", 0, 2, 3, "200", 100), op("balance", 0, 4, 5, "200", 110)}},
		{"a read of it, and then not any more", false, history{op("add", 10, 1, 6, "201", 110), op("balance", 0, 2, 3, "200", 110), op("balance", 0, 4, 5, "200", 100)}},
		{"a read before the write was called", false, history{op("balance", 0, 1, 2, "200", 110), op("add", 10, 3, 4, "201", 110)}},
		{"applied twice", false, history{op("add", 10, 1, 2, "201", 110), op("balance", 0, 3, 4, "200", 120)}},
		{"lost", false, history{op("add", 10, 1, 2, "201", 110), op("add", 10, 3, 4, "201", 110)}},
		{"movements as many as there were changes", true, history{op("add", 10, 1, 2, "201", 110), count("movements", 3, 4, 2, 110)}},
		{"a movement too many", false, history{op("add", 10, 1, 2, "201", 110), count("movements", 3, 4, 3, 110)}},
		{"a movement whose balance is not there yet", false, history{op("add", 10, 1, 4, "201", 110), count("movements", 2, 3, 2, 100)}},
		{"without an answer, and done", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 110)}},
		{"without an answer, and not done", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 100)}},
		{"without an answer, and done late", true, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 100), op("balance", 0, 4, 5, "200", 110)}},
		{"without an answer, and done twice", false, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 120)}},
		{"without an answer, done and undone", false, history{lost("add", 10, 1, notOver), op("balance", 0, 2, 3, "200", 110), op("balance", 0, 4, 5, "200", 100)}},
		{"without an answer, and seen before its call", false, history{op("balance", 0, 1, 2, "200", 110), lost("add", 10, 3, notOver)}},
		{"without an answer, and of no use where there is too little", true, history{lost("deduct", 150, 1, notOver), op("balance", 0, 2, 3, "200", 100)}},
		{"of a process that had died before it was done", false, history{lost("add", 10, 1, 4), op("balance", 0, 5, 6, "200", 100), op("balance", 0, 7, 8, "200", 110)}},
		{"of a process that died, and done before", true, history{lost("add", 10, 1, 4), op("balance", 0, 5, 6, "200", 110), op("balance", 0, 7, 8, "200", 110)}},
		{"redeemed and cancelled", true, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 4, "200", 100), cancel(0, 5, 6, again, 0)}},
		{"cancelled twice", false, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 5, "200", 100), cancel(0, 4, 6, "200", 160)}},
		{"cancelled not even once", false, history{op("redeem", 60, 1, 2, "201", 40), cancel(0, 3, 4, again, 0)}},
		{"no stock costs no points", true, history{op("redeem", 60, 1, 2, none, 0), op("balance", 0, 3, 4, "200", 100)}},

		{"the last one of the stock", true, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, none, 0), count("stock", 7, 8, 0, 0)}},
		{"the last one, given twice", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 5, "201", 40), op("redeem", 60, 4, 6, "201", 40)}},
		{"out of stock though one was left", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, none, 0)}},
		{"given again what was given back", true, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), cancel(0, 5, 8, "200", 100), op("redeem", 60, 6, 7, "201", 40)}},
		{"given before it was given back", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, "201", 40), cancel(0, 7, 8, "200", 100)}},
		{"too poor, and nothing there", false, history{count("stock", 1, 2, 1, 0), op("redeem", 60, 3, 4, "201", 40), op("redeem", 60, 5, 6, poor, 40)}},
		{"perhaps given, so perhaps none left", true, history{count("stock", 1, 2, 1, 0), lost("redeem", 60, 3, notOver), op("redeem", 60, 4, 5, none, 0)}},
	} {
		var err error
		if len(test.history) > 0 && test.history[0].kind == "stock" {
			err = linearizable(test.history, 1, stepStock)
		} else {
			err = linearizable(test.history, accountState{Balance: 100, Movements: 1}, accountState.step)
		}
		if (err == nil) != test.right {
			t.Errorf("%s: found right: %t\n%v", test.reason, err == nil, err)
		}
	}
}
