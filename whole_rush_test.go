package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sello/internal/disk"
)

// Many clients at once must not get out more than there is. Each rush of
// TestRush is up to a thousand requests, sent together over 64 connections.

const rushConnections = 64

func rushSize() int {
	return sized(1000, 200)
}

// A rush is an API on a store, and many clients of it.
type rush struct {
	*testing.T
	wires   *wires
	engine  *engine
	admin   *admin
	size    int // requests at once
	clock   atomic.Int64
	arm     func(bool)        // turns the store's flaw, if any, on or off
	rewards map[string]string // ids, by key
	people  int
}

// rushShop gives 50 points at enrolment. The rules diaria and primera need a sku.
var rushShop = setup{
	program: `"payment":{"points":10,"amount":1},"rules":[{"key":"base","name":"base","per":{"amount":3,"points":1}},
		{"key":"diaria","name":"diaria","skus":["DIA"],"points":7,"maxPerCustomerPerDay":3},
		{"key":"primera","name":"primera","skus":["DIA"],"points":11,"firstPurchase":true},
		{"key":"meta","name":"meta","skus":["META"],"points":7,"budget":100},
		{"key":"una","name":"una","skus":["VIDA"],"points":13,"maxPerCustomer":1},
		{"key":"decima","name":"decima","skus":["VIDA"],"points":2,"every":10},
		{"key":"bienvenida","name":"bienvenida","on":"Signup","points":50}]`,
	also: `"rewards":[{"key":"pocas","program":"club","name":"Pocas","pointsCost":1,"stock":10},
		{"key":"tres","program":"club","name":"Tres","pointsCost":1,"limitPerCustomer":3},
		{"key":"cara","program":"club","name":"Cara","pointsCost":40,"stock":5},
		{"key":"vale","program":"club","name":"Vale","pointsCost":40,"fulfilment":"Voucher"}]`,
}

// newRush serves a store. With two apis, requests alternate between them; they
// share the engine, but each has its own rate limiter.
// others are stores of servers beside the first one, which answer requests by turns with it.
func newRush(t *testing.T, s Store, size, apis int, others ...Store) *rush {
	r := &rush{T: t, size: size, rewards: map[string]string{}}
	r.arm = func(bool) {}
	if flawed, ok := s.(interface{ arm(bool) }); ok {
		r.arm = flawed.arm
	}
	start, err := time.Parse(time.RFC3339, "2026-03-02T10:00:00Z")
	r.ok(err)
	r.clock.Store(start.UnixMilli())
	r.engine = newEngine(s, func() time.Time { return time.UnixMilli(r.clock.Load()) }, cryptoSeed)
	r.ok(r.engine.open(t.Context()))
	r.admin = &admin{engine: r.engine, flush: func(context.Context) error { return nil }}
	_, err = r.admin.apply(t.Context(), applyRequest{Document: rushShop.document()})
	r.ok(err)

	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	var handlers []http.Handler
	for range apis {
		handlers = append(handlers, newAPI(r.engine, nil, log))
	}
	for _, other := range others {
		e := newEngine(other, func() time.Time { return time.UnixMilli(r.clock.Load()) }, cryptoSeed)
		r.ok(e.open(t.Context()))
		handlers = append(handlers, newAPI(e, nil, log))
	}
	var turn atomic.Uint64
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handlers[turn.Add(1)%uint64(len(handlers))].ServeHTTP(w, req)
	}), log)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	r.ok(err)
	go server.Serve(listener)
	r.wires = newWires(listener.Addr().String(), r.key(keyRequest{}), rushConnections)
	t.Cleanup(func() {
		r.wires.close()
		server.Close()
		for _, s := range append(others, s) {
			r.ok(s.Close())
		}
	})
	for _, reward := range r.wires.get("/rewards").told().Data {
		r.rewards[strings.ToLower(reward.Name)] = reward.ID
	}
	return r
}

func (r *rush) ok(err error) {
	if err != nil {
		r.Helper()
		r.Fatal(err)
	}
}

// verified returns the problems that verify finds in the store.
func (r *rush) verified() error {
	report, err := r.admin.verify(r.Context(), verifyRequest{})
	if err != nil || len(report.Problems) == 0 {
		return err
	}
	return fmt.Errorf("verify: %q", report.Problems)
}

// key makes an API key of Café Luna and returns its text.
func (r *rush) key(with keyRequest) string {
	with.Org, with.Name = "cafe-luna", "prisa"
	if with.RateLimit == 0 {
		with.RateLimit = 10_000_000
	}
	k, err := r.admin.createKey(r.Context(), with)
	r.ok(err)
	return k.Key
}

// customer enrols a new customer, tops up the balance to points, and returns the id.
func (r *rush) customer(points int) string {
	r.people++
	c := r.wires.post("/customers", fmt.Sprintf(`{"email":"cliente%d@example.com"}`, r.people)).told()
	if points > c.Balance {
		r.wires.post("/points/customers/"+c.ID+"/add", fmt.Sprintf(`{"amount":%d}`, points-c.Balance))
	}
	if now := r.balance(c.ID); now != points {
		r.Fatalf("a new customer has %d points, not %d", now, points)
	}
	return c.ID
}

func (r *rush) balance(customer string) int {
	return r.wires.get("/points/customers/" + customer + "/balance").told().Balance
}

// all sends r.size requests at once.
func (r *rush) all(send func(i int) response) answers {
	r.arm(true)
	defer r.arm(false)
	got := make(answers, r.size)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range got {
		wait.Go(func() {
			<-start
			got[i] = send(i)
		})
	}
	close(start)
	wait.Wait()
	return got
}

// answers are the responses to one rush.
type answers []response

// want compares how often each answer came.
func (a answers) want(counts map[string]int) error {
	got := map[string]int{}
	for _, r := range a {
		got[r.code()]++
	}
	return expect("answers", got, counts)
}

// accepted returns the decoded bodies of the answers with a 2xx status.
func (a answers) accepted() []said {
	var list []said
	for _, r := range a {
		if r.status/100 == 2 {
			list = append(list, r.told())
		}
	}
	return list
}

func expect(what string, got, want any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s: (-want +got)\n%s", what, diff)
	}
	return nil
}

// distinct counts the different values of a member in list.
func distinct[V comparable](list []said, member func(said) V) int {
	values := map[V]bool{}
	for _, t := range list {
		values[member(t)] = true
	}
	return len(values)
}

// rushes are the scenarios. Each returns what went wrong, and names the flaw that
// it must notice.
var rushes = []struct {
	name string
	flaw string
	run  func(r *rush) error
}{
	{"deduct", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		got := r.all(func(int) response { return r.wires.post("/points/customers/"+ana+"/deduct", `{"amount":10}`) })
		var after []int
		for _, t := range got.accepted() {
			after = append(after, t.Balance)
		}
		slices.Sort(after)
		return errors.Join(
			got.want(map[string]int{"201": 10, "400 insufficient_balance": r.size - 10}),
			expect("balances told", after, []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}),
			expect("balance", r.balance(ana), 0))
	}},
	{"stock", racyWrites, func(r *rush) error {
		buyers := []string{r.customer(5000), r.customer(5000), r.customer(5000)}
		got := r.all(func(i int) response { return r.redeem(buyers[i%3], r.rewards["pocas"]) })
		spent := 0
		for _, b := range buyers {
			spent += 5000 - r.balance(b)
		}
		return errors.Join(
			got.want(map[string]int{"201": 10, "409 reward_out_of_stock": r.size - 10}),
			expect("codes", distinct(got.accepted(), func(t said) string { return t.Code }), 10),
			expect("stock", r.wires.get("/rewards/"+r.rewards["pocas"]).told().Stock, 0),
			expect("points spent", spent, 10))
	}},
	{"limitPerCustomer", racyWrites, func(r *rush) error {
		ana := r.customer(5000)
		got := r.all(func(int) response { return r.redeem(ana, r.rewards["tres"]) })
		return errors.Join(
			got.want(map[string]int{"201": 3, "409 redemption_limit_reached": r.size - 3}),
			expect("balance", r.balance(ana), 4997))
	}},
	{"cancel", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		cup := r.redeem(ana, r.rewards["cara"]).told().ID
		got := r.all(func(int) response { return r.wires.post("/redemptions/"+cup+"/cancel", `{}`) })
		return errors.Join(
			got.want(map[string]int{"200": 1, "409 redemption_not_cancellable": r.size - 1}),
			expect("balance", r.balance(ana), 100))
	}},
	{"purse", racyWrites, func(r *rush) error {
		ana, eva := r.customer(50), r.customer(50)
		key := r.key(keyRequest{MaxPointsPerDay: dec("100")})
		got := r.all(func(i int) response {
			return r.wires.exchange(key, "POST", "/points/customers/"+[]string{ana, eva}[i%2]+"/add", "", `{"amount":9}`)
		})
		last := r.wires.exchange(key, "POST", "/points/customers/"+ana+"/add", "", `{"amount":1.0001}`)
		return errors.Join(
			got.want(map[string]int{"201": 11, "403 points_budget_exceeded": r.size - 11}),
			expect("one ten-thousandth more than is left", last.code(), "403 points_budget_exceeded"),
			expect("points given", r.balance(ana)+r.balance(eva), 50+50+99))
	}},
	{"pay with points", racyWrites, func(r *rush) error {
		ana := r.customer(1000)
		got := r.all(func(int) response { return r.sell(ana, `"totalAmount":100,"pay":{"points":200}`) })
		return errors.Join(
			got.want(map[string]int{"201": 5, "400 insufficient_balance": r.size - 5}),
			expect("balance", r.balance(ana), 5*26)) // of 80 each
	}},
	{"hold", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		got := r.all(func(int) response { return r.wires.post("/points/customers/"+ana+"/holds", `{"amount":10}`) })
		return errors.Join(
			got.want(map[string]int{"201": 10, "400 insufficient_balance": r.size - 10}),
			expect("balance", r.balance(ana), 0))
	}},
	{"capture", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		hold := r.wires.post("/points/customers/"+ana+"/holds", `{"amount":60}`).told().ID
		got := r.all(func(i int) response {
			if i%2 == 0 {
				return r.sell(ana, `"totalAmount":1000,"pay":{"hold":"`+hold+`"}`)
			}
			return r.wires.post("/points/holds/"+hold+"/"+[]string{"capture", "release"}[i/2%2], `{}`)
		})
		ended := len(got.accepted())
		return errors.Join(
			got.want(map[string]int{got[slices.IndexFunc(got, func(x response) bool { return x.status < 300 })].code(): 1, "409 hold_closed": r.size - 1}),
			expect("ends of the hold", ended, 1))
	}},
	{"reward code used at two tills", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		code := r.redeem(ana, r.rewards["vale"]).told().Code
		spelled := []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", " ")}
		got := r.all(func(i int) response { return r.wires.post("/redemptions/use", `{"code":"`+spelled[i%3]+`"}`) })
		return errors.Join(
			got.want(map[string]int{"200": 1, "409 redemption_already_used": r.size - 1}),
			expect("used ones listed", len(r.wires.get("/redemptions?status=Used&customerId="+ana).told().Data), 1),
			expect("balance", r.balance(ana), 60))
	}},
	// A request that one limit refuses must not count against the next. The next
	// limit is 1.5 times as large, so half the first is left for the second rush.
	{"minute", twoCounters, func(r *rush) error {
		limit := r.size / 10
		return r.limits(keyRequest{RateLimit: limit, DailyLimit: limit + limit/2}, limit, time.Minute, "minute", "day")
	}},
	{"day and month", twoCounters, func(r *rush) error {
		limit := r.size / 10
		return r.limits(keyRequest{DailyLimit: limit, MonthlyLimit: limit + limit/2}, limit, oneDay, "day", "month")
	}},
	{"returns", racyWrites, func(r *rush) error {
		ana := r.customer(50)
		bought := r.sell(ana, `"totalAmount":100`).told()
		got := r.all(func(int) response {
			return r.sell(ana, `"totalAmount":10,"type":"Return","originalTransactionId":"`+bought.ID+`"`)
		})
		reversed := 0
		for _, t := range got.accepted() {
			reversed += t.PointsReversed
		}
		return errors.Join(
			got.want(map[string]int{"201": 10, "400 return_exceeds_purchase": r.size - 10}),
			expect("points earned", bought.PointsEarned, 33),
			expect("points reversed by the returns", reversed, 33),
			expect("points reversed of the purchase", r.wires.get("/transactions/"+bought.ID).told().PointsReversed, 33),
			expect("balance", r.balance(ana), 50))
	}},
	{"first purchase, and thrice a day", racyWrites, func(r *rush) error {
		ana := r.customer(50)
		got := r.all(func(int) response {
			return r.sell(ana, `"totalAmount":1,"items":[{"sku":"DIA","price":1,"quantity":1}]`)
		})
		given, earned := map[string]int{}, 0
		for _, t := range got.accepted() {
			earned += t.PointsEarned
			for _, rule := range t.AppliedRules {
				given[rule.Name]++
			}
		}
		delete(given, "base") // it gave no points
		return errors.Join(
			got.want(map[string]int{"201": r.size}),
			expect("times a rule was used", given, map[string]int{"diaria": 3, "primera": 1}),
			expect("points earned", earned, 3*7+11),
			expect("balance", r.balance(ana), 50+3*7+11))
	}},
	{"budget of a rule", racyWrites, func(r *rush) error {
		var customers []string
		for range 5 {
			customers = append(customers, r.customer(50))
		}
		got := r.all(func(i int) response {
			return r.sell(customers[i%len(customers)], `"totalAmount":1,"items":[{"sku":"META","price":1,"quantity":1}]`)
		})
		earned := 0
		for _, t := range got.accepted() {
			earned += t.PointsEarned
		}
		return errors.Join(
			got.want(map[string]int{"201": r.size}),
			expect("points of a budget of 100, 7 at a time", earned, 100))
	}},
	{"once in a life, and every tenth", racyWrites, func(r *rush) error {
		ana := r.customer(50)
		got := r.all(func(int) response {
			return r.sell(ana, `"totalAmount":1,"items":[{"sku":"VIDA","price":1,"quantity":1}]`)
		})
		given := map[string]int{}
		for _, t := range got.accepted() {
			for _, rule := range t.AppliedRules {
				given[rule.Name]++
			}
		}
		return errors.Join(
			got.want(map[string]int{"201": r.size}),
			expect("times a rule was used", given, map[string]int{"una": 1, "decima": r.size / 10}))
	}},
	{"enrolment", racyWrites, func(r *rush) error {
		before := r.wires.get("/customers?limit=1").told().Meta.Total
		got := r.all(func(i int) response {
			// The requests differ in upper and lower case.
			email := []byte("gemela@example.com")
			for bit := range 6 {
				if i>>bit&1 == 1 {
					email[bit] -= 'a' - 'A'
				}
			}
			return r.wires.post("/customers", `{"email":"`+string(email)+`"}`)
		})
		people := got.accepted()
		return errors.Join(
			got.want(map[string]int{"201": 1, "200": r.size - 1}),
			expect("ids", distinct(people, func(t said) string { return t.ID }), 1),
			expect("customers more", r.wires.get("/customers?limit=1").told().Meta.Total-before, 1),
			expect("balance", r.balance(got[0].told().ID), 50))
	}},
	{"externalId", racyWrites, func(r *rush) error {
		ana := r.customer(50)
		got := r.all(func(int) response { return r.sell(ana, `"totalAmount":30,"externalId":"T-1"`) })
		return errors.Join(
			got.want(map[string]int{"201": 1, "200": r.size - 1}),
			got.twins(),
			expect("balance", r.balance(ana), 60))
	}},
	{"reference", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		got := r.all(func(int) response {
			return r.wires.post("/points/customers/"+ana+"/deduct", `{"amount":10,"reference":"R-1"}`)
		})
		return errors.Join(
			got.want(map[string]int{"201": 1, "200": r.size - 1}),
			got.twins(),
			expect("balance", r.balance(ana), 90))
	}},
	{"reference in batches", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		got := r.all(func(int) response {
			return r.wires.post("/points/batch", `{"movements":[{"customerId":"`+ana+`","type":"Credit","amount":10,"reference":"R-2"}]}`)
		})
		return errors.Join(
			got.want(map[string]int{"200": r.size}),
			expect("balance", r.balance(ana), 110))
	}},
	{"Idempotency-Key", racyWrites, func(r *rush) error {
		ana := r.customer(100)
		got := r.all(func(int) response {
			return r.wires.send("POST", "/points/customers/"+ana+"/deduct", "k-1", `{"amount":10}`)
		})
		return errors.Join(
			got.want(map[string]int{"201": r.size}),
			got.twins(),
			expect("balance", r.balance(ana), 90))
	}},
}

func (r *rush) redeem(customer, reward string) response {
	return r.wires.post("/rewards/redeem", fmt.Sprintf(`{"customerId":%q,"productId":%q}`, customer, reward))
}

func (r *rush) sell(customer, members string) response {
	return r.wires.post("/transactions", fmt.Sprintf(`{"customerId":%q,%s}`, customer, members))
}

// limits rushes a key's first limit, moves the clock past its period, and rushes
// for what is left of the second limit.
func (r *rush) limits(with keyRequest, limit int, wait time.Duration, first, second string) error {
	ana := r.customer(50)
	key := r.key(with)
	ask := func(int) response { return r.wires.exchange(key, "GET", "/points/customers/"+ana+"/balance", "", "") }
	got := r.all(ask)
	r.clock.Add(wait.Milliseconds())
	then := r.all(ask)
	return errors.Join(
		got.want(map[string]int{"200": limit, "429 rate_limit_" + first: r.size - limit}),
		then.want(map[string]int{"200": limit / 2, "429 rate_limit_" + second: r.size - limit/2}))
}

// twins checks that all answers have the same body, and that all but one are
// replays.
func (a answers) twins() error {
	first := 0
	for _, r := range a {
		if !r.replayed {
			first++
		}
		if string(r.body) != string(a[0].body) {
			return fmt.Errorf("%s is not %s", r.body, a[0].body)
		}
	}
	return expect("answers that are no replays", first, 1)
}

// TestRush: nothing is given more often than there is.
func TestRush(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	for name, open := range rushStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRush(t, open(t), rushSize(), 1)
			for _, rushed := range rushes {
				if err := rushed.run(r); err != nil {
					t.Errorf("%s: %v", rushed.name, err)
				}
			}
			if err := r.verified(); err != nil {
				t.Error(err)
			}
		})
	}
}

var rushStores = map[string]func(*testing.T) Store{
	"mem": func(*testing.T) Store { return newMemStore() },
	"bolt": func(t *testing.T) Store {
		return testBolt(t, filepath.Join(t.TempDir(), "sello.db"), disk.Options{Dense: denseTables})
	},
}

// Flaws that a rush must notice.
const (
	racyWrites  = "updates read before others have written"
	twoCounters = "limits are counted in two places"
)

// TestRushControl: every rush succeeds without its flaw and fails with it.
func TestRushControl(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const size = 20
	for _, rushed := range rushes {
		if err := rushed.run(newRush(t, newMemStore(), size, 1)); err != nil {
			t.Errorf("%s: %v", rushed.name, err)
		}
		var flawed *rush
		if rushed.flaw == racyWrites {
			flawed = newRush(t, &pairedStore{Store: newMemStore(), patience: 5 * time.Second}, size, 1)
		} else {
			flawed = newRush(t, newMemStore(), size, 2)
		}
		if err := rushed.run(flawed); err == nil {
			t.Errorf("%s: not noticed: %s", rushed.name, rushed.flaw)
		}
	}
}

// wires are connections to an API that many clients share. Unlike net/http's
// they never send a request again by themselves.
type wires struct {
	addr, key string
	free      chan *wire // nil: not connected yet
}

type wire struct {
	net.Conn
	answers *bufio.Reader
}

func newWires(addr, key string, n int) *wires {
	w := &wires{addr, key, make(chan *wire, n)}
	for range n {
		w.free <- nil
	}
	return w
}

// close waits until all are free, and closes them.
func (w *wires) close() {
	for range cap(w.free) {
		if c := <-w.free; c != nil {
			c.Close()
		}
	}
}

func (w *wires) get(path string) response { return w.send("GET", path, "", "") }

func (w *wires) post(path, body string) response { return w.send("POST", path, "", body) }

func (w *wires) send(method, path, retryKey, body string) response {
	return w.exchange(w.key, method, path, retryKey, body)
}

// A response is the answer to a request. If there was none, status is 0 and err
// says why.
type response struct {
	status   int
	replayed bool
	body     []byte
	err      error
}

func (w *wires) exchange(key, method, path, retryKey, body string) response {
	c := <-w.free
	r, err := w.over(&c, key, method, path, retryKey, body)
	if err != nil {
		r = response{err: err}
		if c != nil {
			c.Close()
			c = nil
		}
	}
	w.free <- c
	return r
}

func (w *wires) over(c **wire, key, method, path, retryKey, body string) (response, error) {
	if *c == nil {
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			return response{}, err
		}
		*c = &wire{conn, bufio.NewReader(conn)}
	}
	text := fmt.Sprintf("%s /api/v1%s HTTP/1.1\r\nHost: sello.test\r\nX-API-Key: %s\r\n", method, path, key)
	if retryKey != "" {
		text += "Idempotency-Key: " + retryKey + "\r\n"
	}
	if method == "POST" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	if _, err := (*c).Write([]byte(text + "\r\n" + body)); err != nil {
		return response{}, err
	}
	res, err := http.ReadResponse((*c).answers, &http.Request{Method: method})
	if err != nil {
		return response{}, err
	}
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.Close {
		(*c).Close()
		*c = nil
	}
	return response{res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", answer, nil}, err
}

// code is the status, followed by the error's code if there is one. Without a
// response it is the text of err.
func (r response) code() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.status >= 400 || !json.Valid(r.body):
		return strconv.Itoa(r.status) + " " + r.told().Code
	}
	return strconv.Itoa(r.status)
}

// said holds the members of a response body that matter here.
type said struct {
	ID, Name, Code               string
	Balance                      int
	PointsEarned, PointsReversed int
	AppliedRules                 []struct{ Name string }
	Stock                        int
	Context                      struct{ Available int }
	Meta                         struct{ Total int }
	Data                         []said
}

// told decodes the body. If that fails, Code says why.
func (r response) told() (t said) {
	if err := json.Unmarshal(r.body, &t); err != nil {
		t.Code = fmt.Sprintf("%v: %s", errors.Join(r.err, err), r.body)
	}
	return t
}
