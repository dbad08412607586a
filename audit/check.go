package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"sync"
)

// A check compares the server's data with the diary. It then sends the unknown
// writes again to settle them, retries the successful ones, and compares a second
// time. Nobody else may write meanwhile.
//
// It finds a fault where
//
//   - a successful write is not there exactly once with the data of its answer;
//   - an unknown one is there more than once, or in part;
//   - a refused one, or one that nobody sent, is there;
//   - a retry does not get the first answer, byte for byte, or applies again;
//   - a customer's entries do not add up, one after the other, to its balance,
//     or a write that was answered before another was sent comes after it;
//   - counts of what is there differ from what was done;
//   - the feed of events has a gap, or what is there has not exactly one event.
type check struct {
	*job
	mu     sync.Mutex
	faults []string

	found       map[*operation]int    // how often each is there
	redemptions map[string]object     // all, by id
	cancels     map[string]*operation // by the redemption's id
}

func (j *job) check() error {
	if j.log.start == nil {
		return errors.New("the log is of no load")
	}
	c := &check{job: j}
	fresh := j.log.ops[j.log.settled:]
	if err := c.look(c.touched(fresh)); err != nil {
		return err
	}
	unknown, applied, refused := 0, 0, 0
	for _, o := range fresh {
		if o.refused() {
			refused++
		}
		if o.answer == nil {
			unknown++
			applied += min(c.found[o], 1)
			if err := c.settle(o); err != nil {
				return err
			}
		}
	}
	retried, err := c.retry(fresh)
	if err != nil {
		return err
	}
	if err := c.look(c.touched(fresh)); err != nil {
		return err
	}
	if err := c.count(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "writes %d new %d unknown %d applied %d refused %d retried %d\n", len(j.log.ops), len(fresh), unknown, applied, refused, retried)
	if len(c.faults) > 0 {
		for i, f := range c.faults {
			if i == 30 {
				fmt.Fprintf(os.Stdout, "… and %d more\n", len(c.faults)-i)
				break
			}
			fmt.Fprintln(os.Stdout, f)
		}
		return fmt.Errorf("%d faults", len(c.faults))
	}
	return j.log.write(line{Settled: true})
}

func (c *check) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := fmt.Sprintf(format, args...); !slices.Contains(c.faults, f) { // the second look finds them again
		c.faults = append(c.faults, f)
	}
}

// touched returns the customers to look at, with all their operations. Enrolments
// whose customer is not known are under "".
func (c *check) touched(fresh []*operation) map[string][]*operation {
	byCustomer := map[string][]*operation{}
	for _, o := range c.log.ops {
		byCustomer[o.Customer] = append(byCustomer[o.Customer], o)
	}
	if c.all {
		return byCustomer
	}
	some := map[string][]*operation{}
	for _, o := range fresh {
		some[o.Customer] = byCustomer[o.Customer]
	}
	return some
}

// look reads everything about the customers and compares it with the diary.
func (c *check) look(customers map[string][]*operation) error {
	c.found = map[*operation]int{}
	if err := c.feed(); err != nil {
		return err
	}
	if err := c.readRedemptions(); err != nil {
		return err
	}
	var work []func() error
	for id, ops := range customers {
		if id != "" {
			work = append(work, func() error { return c.customer(id, ops) })
			continue
		}
		for _, o := range ops {
			work = append(work, func() error { return c.nobody(o) })
		}
	}
	return c.each(work)
}

// each runs the functions, at most as many at a time as there are connections.
func (c *check) each(work []func() error) error {
	errs := make([]error, len(work))
	turn := make(chan struct{}, c.conns)
	var wait sync.WaitGroup
	for i, do := range work {
		turn <- struct{}{}
		wait.Go(func() {
			errs[i] = do()
			<-turn
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (c *check) readRedemptions() error {
	list, err := c.client.list("/redemptions?")
	if err != nil {
		return err
	}
	c.redemptions, c.cancels = map[string]object{}, map[string]*operation{}
	for _, x := range list {
		id := x.text("id")
		if c.redemptions[id] != nil {
			c.fault("redemption %s is there twice", id)
		}
		c.redemptions[id] = x
		if o := c.owner(x.text("comment"), x.text("customerId"), kindRedeem); o == nil {
			c.fault("redemption %s: nobody sent it", id)
		}
	}
	for _, o := range c.log.ops {
		if o.Kind == kindCancel {
			c.cancels[o.Of] = o // the only one: a load tries to cancel each redemption once
		}
	}
	return nil
}

// owner returns the operation with a key, if it can have made a record of the customer
// and one of the kinds; otherwise nil.
func (c *check) owner(key, customer string, kinds ...string) *operation {
	o := c.log.byKey[key]
	if o == nil || o.Customer != customer || o.refused() || !slices.Contains(kinds, o.Kind) {
		return nil
	}
	return o
}

// nobody looks for the customer of an enrolment that is unknown or was refused.
func (c *check) nobody(o *operation) error {
	if o.Kind != kindEnrol {
		return fmt.Errorf("%v names no customer", o)
	}
	there, err := c.lookUp(o)
	if err != nil || there == nil {
		return err
	}
	if o.refused() {
		c.fault("%v was refused, and the customer is there", o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[o]++
	return nil
}

func (c *check) lookUp(o *operation) (object, error) {
	return c.client.get("/customers/lookup?email=" + url.QueryEscape(emailOf(o.Key)))
}

// A book holds the server's records of one customer.
type book struct {
	customer string
	entries  []object // oldest first
	sales    map[string]object
	returned map[string]points // amount returned, by purchase
	reversed map[string]points // points reversed, by purchase
	found    map[*operation]int
}

func (c *check) customer(id string, ops []*operation) error {
	b := &book{customer: id, sales: map[string]object{}, returned: map[string]points{}, reversed: map[string]points{}, found: map[*operation]int{}}
	detail, err := c.client.get("/customers/" + id)
	if errors.Is(err, errNotFound) {
		c.fault("customer %s is gone, and with it all that was answered of it: %v", id, ops)
		return nil
	}
	if err != nil {
		return err
	}
	if b.entries, err = c.client.list("/points/customers/" + id + "/movements?"); err != nil {
		return err
	}
	slices.Reverse(b.entries)
	sales, err := c.client.list("/transactions?customerId=" + id + "&")
	if err != nil {
		return err
	}
	balance, err := c.client.get("/points/customers/" + id + "/balance")
	if err != nil {
		return err
	}
	if o := c.log.enrolments[id]; o != nil {
		b.found[o]++ // a second customer would have another id, and count would find one too many
	}
	c.sales(b, sales)
	c.entries(b)
	last := points(0)
	if n := len(b.entries); n > 0 {
		last = b.entries[n-1].points("balance")
	}
	for what, o := range map[string]object{"balance": balance, "detail": detail} {
		if got := o.points("balance"); got != last {
			c.fault("customer %s: its %s says %v, and its last entry %v", id, what, got, last)
		}
	}
	c.spent(b, detail)
	c.told(b)
	for _, o := range ops {
		c.outcome(b, o, detail)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, n := range b.found {
		c.found[o] += n
	}
	return nil
}

// sales finds the operation of each sale.
func (c *check) sales(b *book, sales []object) {
	for _, s := range sales {
		id := s.text("id")
		kind := kindSale
		if s.text("type") == "Return" {
			kind = kindReturn
			b.returned[s.text("originalTransactionId")] += s.points("totalAmount")
			b.reversed[s.text("originalTransactionId")] += s.points("pointsReversed")
		}
		o := c.owner(s.text("comment"), b.customer, kind)
		switch {
		case b.sales[id] != nil:
			c.fault("sale %s is there twice", id)
		case o == nil:
			c.fault("sale %s (%s): nobody sent it", id, s.text("comment"))
		default:
			b.found[o]++
		}
		b.sales[id] = s
	}
	for id, s := range b.sales {
		if s.text("type") == "Purchase" && s.points("pointsReversed") != b.reversed[id] {
			c.fault("sale %s says that %v points went back, and its returns say %v", id, s.points("pointsReversed"), b.reversed[id])
		}
	}
}

// entries adds up the customer's ledger and finds the operation of each entry.
func (c *check) entries(b *book) {
	var sum points
	newest := 0 // highest diary line of a first attempt so far
	ids, sold, redeemed, cancelled := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	credited := map[string]points{} // what is left of each credit
	for i, e := range b.entries {
		id := e.text("id")
		if ids[id] {
			c.fault("entry %s is there twice", id)
		}
		ids[id] = true
		amount := e.points("amount")
		if e.text("type") == "Debit" {
			amount = -amount
		}
		sum += amount
		if e.points("balance") != sum || sum < 0 {
			c.fault("customer %s: entry %d, %s, says balance %v; the entries up to it add up to %v", b.customer, i+1, id, e.points("balance"), sum)
			sum = e.points("balance") // so that later entries are no faults too
		}
		c.lots(e, amount, credited)
		var o *operation
		mine := 1 // 0: the operation's other record is already counted in found
		switch sale, redemption := e.text("transactionId"), e.text("redemptionId"); {
		case sale != "":
			s := b.sales[sale]
			o, mine = c.owner(s.text("comment"), b.customer, kindSale, kindReturn), 0
			if o != nil && (sold[sale] || s.points("balance") != sum || amount != earned(s)) {
				c.fault("%v: sale %s earned %v, balance %v; the ledger has %v, balance %v, or has it twice", o, sale, earned(s), s.points("balance"), amount, sum)
			}
			sold[sale] = true
		case redemption != "" && amount > 0:
			if o = c.cancels[redemption]; o != nil && o.refused() {
				o = nil
			}
			x := c.redemptions[redemption]
			if x.text("status") != "Cancelled" || amount != x.points("pointsSpent") || cancelled[redemption] || x.points("balance") != sum {
				c.fault("redemption %s: an entry gives back %v, balance %v; it is %s, cost %v, balance %v", redemption, amount, sum, x.text("status"), x.points("pointsSpent"), x.points("balance"))
			}
			cancelled[redemption] = true
		case redemption != "":
			x := c.redemptions[redemption]
			o = c.owner(x.text("comment"), b.customer, kindRedeem)
			if x.text("movementId") != id || amount != -x.points("pointsSpent") {
				c.fault("redemption %s of %v: entry %s takes %v for it", redemption, x.points("pointsSpent"), id, amount)
			}
			redeemed[redemption] = true
		case c.log.byKey[e.text("comment")] != nil:
			o = c.owner(e.text("comment"), b.customer, kindAdd, kindDeduct)
		case i == 0: // points for signing up, if there are any
			o, mine = c.log.enrolments[b.customer], 0
		}
		if o == nil {
			c.fault("customer %s: entry %s of %v (%s): nobody sent it", b.customer, id, amount, e.text("comment"))
			continue
		}
		b.found[o] += mine
		if o.told > 0 && o.told < newest {
			c.fault("%v was answered before another was sent that the ledger has before it", o)
		}
		newest = max(newest, o.tried)
	}
	for id, s := range b.sales {
		if earned(s) != 0 && !sold[id] {
			c.fault("sale %s (%s) moved %v points, and the ledger has no entry of it", id, s.text("comment"), earned(s))
		}
	}
	for id, x := range c.redemptions {
		if x.text("customerId") != b.customer {
			continue
		}
		if !redeemed[id] || (x.text("status") == "Cancelled") != cancelled[id] {
			c.fault("redemption %s (%s) is %s; the ledger took points for it: %t, gave them back: %t", id, x.text("comment"), x.text("status"), redeemed[id], cancelled[id])
		}
	}
}

// lots takes the points that an entry used from the credits before it, or gives them
// back.
func (c *check) lots(e object, amount points, credited map[string]points) {
	lots, isList := e["lots"].([]any)
	if !isList && amount > 0 {
		credited[e.text("id")] = amount
		return
	}
	var used points
	for _, l := range lots {
		lot, _ := l.(map[string]any)
		part, from := object(lot).points("amount"), object(lot).text("movementId")
		used += part
		if amount > 0 {
			part = -part
		}
		left, known := credited[from]
		credited[from] = left - part
		if !known || left < part {
			c.fault("entry %s uses %v of credit %s, which has %v left", e.text("id"), part, from, left)
		}
	}
	if used != max(amount, -amount) {
		c.fault("entry %s moves %v, from lots of %v", e.text("id"), amount, used)
	}
}

// earned returns by how much a sale changed the balance.
func earned(s object) points {
	if s.text("type") == "Return" {
		return -s.points("pointsReversed")
	}
	return s.points("pointsEarned")
}

// spent compares the customer's totals with its sales.
func (c *check) spent(b *book, detail object) {
	var total points
	count := 0
	for id, s := range b.sales {
		amount := s.points("totalAmount")
		if s.text("type") == "Return" {
			total -= amount
			continue
		}
		total += amount
		if b.returned[id] != amount {
			count++
		}
	}
	if detail.points("totalSpent") != total || detail.int("transactionsCount") != count {
		c.fault("customer %s: spent %v in %d purchases; its sales say %v in %d", b.customer, detail.points("totalSpent"), detail.int("transactionsCount"), total, count)
	}
}

// outcome compares one operation with the records found of it.
func (c *check) outcome(b *book, o *operation, detail object) {
	n := b.found[o]
	switch {
	case o.done() && n != 1:
		c.fault("%v was answered with %d and is there %d times", o, o.answer.Status, n)
		return
	case n > 1:
		c.fault("%v is unknown and is there %d times", o, n)
		return
	case !o.done():
		return // owner returns no refused operation
	}
	asked, _ := parseObject([]byte(o.Body))
	there, said := c.record(b, o, detail), o.body
	switch o.Kind {
	case kindEnrol: // the other members change later
		there, said = pick(there, "id", "email", "createdAt"), pick(said, "id", "email", "createdAt")
		if there.text("email") != emailOf(o.Key) {
			c.fault("%v: the customer has another address", o)
		}
	case kindAdd, kindDeduct:
		if there.points("amount") != asked.points("amount") {
			c.fault("%v of %v: the ledger has %v", o, asked.points("amount"), there.points("amount"))
		}
	case kindSale:
		there, said = unreturned(there), unreturned(said)
		fallthrough
	case kindReturn:
		if there.points("totalAmount") != asked.points("totalAmount") || there.text("originalTransactionId") != o.Of {
			c.fault("%v of %v: there is one of %v", o, asked.points("totalAmount"), there.points("totalAmount"))
		}
	case kindRedeem:
		if there.text("status") == "Cancelled" {
			changes := []string{"status", "balance", "cancelledAt"}
			there, said = without(there, changes...), without(said, changes...)
		}
	}
	if !reflect.DeepEqual(map[string]any(there), map[string]any(said)) {
		c.fault("%v was answered with\n  %v and there is\n  %v", o, said, there)
	}
}

// unreturned is a purchase without what its returns change.
func unreturned(s object) object {
	s = without(s, "pointsReversed")
	programs, _ := s["programs"].([]any)
	list := make([]any, len(programs))
	for i, v := range programs {
		in, _ := v.(map[string]any)
		list[i] = map[string]any(without(object(in), "pointsReversed"))
	}
	s["programs"] = list
	return s
}

// record returns the record that an operation made, as the server has it now.
func (c *check) record(b *book, o *operation, detail object) object {
	switch o.Kind {
	case kindEnrol:
		return detail
	case kindSale, kindReturn:
		return b.sales[o.body.text("id")]
	case kindRedeem, kindCancel:
		x := c.redemptions[o.body.text("id")]
		if o.Kind == kindRedeem {
			for _, e := range b.entries {
				if e.text("id") == x.text("movementId") && e.points("balance") != o.body.points("balance") {
					c.fault("%v was answered with balance %v, and the ledger has %v", o, o.body.points("balance"), e.points("balance"))
				}
			}
		}
		return x
	}
	for _, e := range b.entries {
		if e.text("id") == o.body.text("id") {
			return e
		}
	}
	return nil
}

func pick(o object, names ...string) object {
	some := object{}
	for _, n := range names {
		some[n] = o[n]
	}
	return some
}

func without(o object, names ...string) object {
	some := object{}
	for n, v := range o {
		if !slices.Contains(names, n) {
			some[n] = v
		}
	}
	return some
}

// settle sends an unknown operation again. The answer must be a replay if and only if
// the operation was carried out.
func (c *check) settle(o *operation) error {
	if err := c.log.write(line{Try: &o.request}); err != nil {
		return err
	}
	a, err := c.client.post(&o.request)
	if err != nil {
		return err
	}
	if err := c.log.write(line{Answer: a}); err != nil {
		return err
	}
	was := c.found[o] > 0
	switch {
	case a.Status >= 500:
		c.fault("%v: a retry gets %d %s", o, a.Status, a.Body)
	case was && a.Status >= 300:
		c.fault("%v was carried out, and a retry is refused: %d %s", o, a.Status, a.Body)
	case a.Replayed != was:
		c.fault("%v was carried out: %t; a retry says that it is a replay: %t", o, was, a.Replayed)
	}
	return nil
}

// retry sends again the operations that succeeded. Each must get its first answer.
func (c *check) retry(fresh []*operation) (n int, err error) {
	var work []func() error
	for _, o := range fresh {
		if !o.done() {
			continue
		}
		n++
		work = append(work, func() error {
			a, err := c.client.post(&o.request)
			if err == nil && (!a.Replayed || a.Status != o.answer.Status || a.Body != o.answer.Body) {
				c.fault("%v was answered with %d %s and a retry with %d %s, as a replay: %t", o, o.answer.Status, o.answer.Body, a.Status, a.Body, a.Replayed)
			}
			return err
		})
	}
	return n, c.each(work)
}

// count compares the server's totals with the operations done.
func (c *check) count() error {
	got, err := c.client.totals()
	if err != nil {
		return err
	}
	want := *c.log.start
	want.Stock = map[string]int{}
	for id, n := range c.log.start.Stock {
		want.Stock[id] = n
	}
	for _, o := range c.log.ops {
		if !o.done() {
			continue
		}
		switch o.Kind {
		case kindEnrol:
			want.Customers++
		case kindSale, kindReturn:
			want.Sales++
		case kindRedeem, kindCancel:
			change := -1
			if o.Kind == kindRedeem {
				want.Redemptions++
			} else {
				change = +1
			}
			if product := o.body.text("productId"); c.log.start.Stock[product] > 0 {
				want.Stock[product] += change
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		c.fault("there is %+v, and what was done makes %+v", got, want)
	}
	return nil
}
