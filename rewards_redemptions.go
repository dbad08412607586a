package main

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"sello/internal/blockset"
)

// Lists of redemptions combine sets of their sequences (internal/blockset), block by block, newest
// first:
//
//	c org cust 9 block     → the customer's redemptions
//	G org 'p' reward block → the reward's redemptions
//	G org 's' state block  → redemptions by the status in their record, an index of redemptionStatuses
//	G org 'x' block expiry → Issued vouchers that expire at that moment
//	G org 't' block        → the earliest (8) and the latest (8) createdAt in the block
//
// An Issued voucher that expires has an entry by its moment, so that the sweep tells of it
// (rewards_gifts.go):
//
//	W expiry org seq → nothing
//
// Times mostly ascend with the sequence. Where requests overtook each other or the clock
// was set back, they do not, and blocks overlap in time. So a filter by dates takes a
// block inside the dates as it is, skips a block outside, and reads the records of other
// blocks.

// redemptionStatuses lists every status of a redemption. The file depends on their order.
var redemptionStatuses = []string{redemptionIssued, redemptionUsed, redemptionCancelled, redemptionExpired, redemptionCompleted}

func (rw *rewardsTxn) redemptionsOfKey(cust id) key {
	return customerKey(rw.t.org, cust, partRedemptions)
}
func (rw *rewardsTxn) redeemedRewardKey(reward id) key {
	return orgKey('G', rw.t.org).byte('p').id(reward)
}
func (rw *rewardsTxn) redemptionTimesKey(block uint64) key {
	return orgKey('G', rw.t.org).byte('t').u32(uint32(block))
}
func (rw *rewardsTxn) dueVoucherKey(x *redemption) key {
	return newKey('W').instant(x.Expires).u32(rw.t.org).u64(x.Seq)
}
func (rw *rewardsTxn) expiriesKey(block uint64) key {
	return orgKey('G', rw.t.org).byte('x').u32(uint32(block))
}

func (rw *rewardsTxn) redemptionStateKey(status string) key {
	return orgKey('G', rw.t.org).byte('s').byte(byte(slices.Index(redemptionStatuses, status)))
}

// setsOf yields the key of the redemption's block in each set that it is in, with the
// set's table.
func (rw *rewardsTxn) setsOf(x *redemption) iter.Seq2[table, key] {
	return func(yield func(table, key) bool) {
		block := x.Seq / blockset.Block
		status := x.recorded()
		_ = yield(tableRedemptionsOf, rw.redemptionsOfKey(x.Customer).u32(uint32(block))) &&
			yield(tableRedeemedRewards, rw.redeemedRewardKey(x.Reward).u32(uint32(block))) &&
			yield(tableRedemptionState, rw.redemptionStateKey(status).u32(uint32(block))) &&
			(!x.lapses() || yield(tableVoucherExpiries, rw.expiriesKey(block).instant(x.Expires)))
	}
}

// until yields a customer's redemptions up to seq last, newest first. A loop may change what it
// is given.
func (rw *rewardsTxn) until(cust id, last uint64) iter.Seq2[*redemption, error] {
	return func(yield func(*redemption, error) bool) {
		sets := rw.redemptionsOfKey(cust)
		end := slices.Clone(sets).u32(uint32(min(last/blockset.Block, math.MaxUint32))).after()
		for e, err := range rw.t.Scan(sets, end, true) {
			if err == nil && !blockset.Valid(e.Value) {
				err = unreadable(e.Key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for seq := range blockset.Decode(e.Value).Newest(tableRedemptionsOf.block(e.Key)) {
				if seq > last {
					continue
				}
				x, err := rw.redemptionAt(seq)
				if !yield(x, err) || err != nil {
					return
				}
			}
		}
	}
}

// isActivity reports whether a redemption keeps points from lapsing: a reward that was redeemed, or
// that redeemed itself for points.
func (x *redemption) isActivity() bool { return x.Gift == (gift{}) || x.Points > 0 }

// lastRedeemed is when an account's customer and its stubs last redeemed a reward of the program or
// spent points, without what was undone; 0 if never.
func (rw *rewardsTxn) lastRedeemed(a *account) (last instant, err error) {
	family, err := rw.t.merges.family(a.customer)
	if err != nil {
		return 0, err
	}
	for _, member := range family {
		for x, err := range rw.until(member.ID, math.MaxUint64) {
			if err != nil {
				return 0, err
			}
			if x.CancelledAt == 0 && x.Program == a.program.Number && x.isActivity() {
				last = max(last, x.CreatedAt)
				break
			}
		}
		of := a
		if member.ID != a.customer.ID {
			if of, err = rw.t.points.storedAccount(member, a.program); err != nil {
				return 0, err
			}
		}
		if last, err = rw.lastSpent(of, last); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// lastSpent is when points of an account were last spent without a reward: by hand, by a capture, or
// in a purchase that stands; after if that was later.
func (rw *rewardsTxn) lastSpent(a *account, after instant) (instant, error) {
	for m, err := range rw.t.points.chainFrom(a.Movements.last()) {
		switch {
		case err != nil:
			return 0, err
		case m.CreatedAt <= after && m.isDatedNow():
			return after, nil
		case m.Category != categoryRedemption || m.Amount > 0 || m.Redemption != (id{}):
			continue
		case m.Transaction != (id{}):
			s, err := rw.t.sales.get(m.Transaction)
			if err != nil {
				return 0, err
			}
			if s.whollyReturned() {
				continue
			}
		}
		after = max(after, m.CreatedAt) // one that was written before may be dated later
	}
	return after, nil
}

// undoSpending is voucherGiver.undoSpending.
func (rw *rewardsTxn) undoSpending(a *account, at instant) (err error) {
	if a.Idle.Months == 0 {
		return nil
	}
	if at >= a.Idle.Redeemed {
		if a.Idle.Redeemed, err = rw.lastRedeemed(a); err != nil {
			return err
		}
	}
	return rw.t.sales.moveBack(a, at)
}

// fileRedemption puts a redemption into its sets and its time into its block's. A second
// call changes nothing.
func (rw *rewardsTxn) fileRedemption(x *redemption) error {
	for _, k := range rw.setsOf(x) {
		if _, err := putInBlock(rw.t, k, x.Seq, true); err != nil {
			return err
		}
	}
	k := rw.redemptionTimesKey(x.Seq / blockset.Block)
	value, ok, err := rw.t.Get(k)
	if err != nil {
		return err
	}
	s := span{x.CreatedAt, x.CreatedAt}
	if ok {
		if s, ok = spanIn(value); !ok {
			return unreadable(k)
		}
	}
	return rw.t.Put(k, s.with(x.CreatedAt).value())
}

// changeRedemption applies a change to a redemption, except of createdAt, and writes its
// record and its sets. After it a voucher is no longer Issued.
func (rw *rewardsTxn) changeRedemption(x *redemption, change func()) error {
	for _, k := range rw.setsOf(x) {
		if _, err := putInBlock(rw.t, k, x.Seq, false); err != nil {
			return err
		}
	}
	if x.lapses() {
		if err := rw.t.Delete(rw.dueVoucherKey(x)); err != nil {
			return err
		}
	}
	change()
	for _, k := range rw.setsOf(x) {
		if _, err := putInBlock(rw.t, k, x.Seq, true); err != nil {
			return err
		}
	}
	return rw.t.put(rw.redemptionKey(x.Seq), x)
}

// A span is from one moment to another, both included.
type span struct{ from, to instant }

func spanIn(value []byte) (span, bool) {
	if len(value) != 16 {
		return span{}, false
	}
	s := span{instant(uintIn(value)), instant(uintIn(value[8:]))}
	return s, s.from <= s.to
}

func (s span) value() []byte { return key(nil).u64(uint64(s.from)).u64(uint64(s.to)) }

func (s span) with(at instant) span { return span{min(s.from, at), max(s.to, at)} }
func (s span) has(at instant) bool  { return s.from <= at && at <= s.to }
func (s span) within(o span) bool   { return o.from <= s.from && s.to <= o.to }
func (s span) overlaps(o span) bool { return s.from <= o.to && o.from <= s.to }

// useCode marks a voucher as used (contract §15). saleID, if there is one, is the purchase
// that it was used in, of the voucher's customer.
func (rw *rewardsTxn) useCode(code string, saleID *id) (*redemption, error) {
	x, err := rw.redemptionCalled(code)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, newError(codeRedemptionNotFound)
	}
	var purchase *sale
	if saleID != nil {
		if purchase, err = rw.purchaseFor(x, *saleID); err != nil {
			return nil, err
		}
	}
	switch x.status(rw.t.now) {
	case redemptionUsed:
		return nil, newError(codeRedemptionAlreadyUsed).with("usedAt", x.UsedAt)
	case redemptionCompleted: // it was given when it was redeemed
		return nil, newError(codeRedemptionAlreadyUsed).with("usedAt", x.CreatedAt)
	case redemptionCancelled:
		return nil, newError(codeRedemptionCancelled).with("cancelledAt", x.CancelledAt)
	case redemptionExpired:
		return nil, newError(codeRedemptionExpired).with("expiresAt", x.Expires)
	}
	if err := rw.useVoucher(x, purchase); err != nil {
		return nil, err
	}
	return x, rw.t.feed.emit(eventRedemptionUsed, x.Seq)
}

// redemptionCalled finds a redemption by its code as people write it; nil if there
// is none.
func (rw *rewardsTxn) redemptionCalled(code string) (*redemption, error) {
	seq, ok, err := getUint(rw.t.Tx, orgKey('w', rw.t.org).text(spelledCode(code)))
	if err != nil || !ok {
		return nil, err
	}
	return rw.redemptionAt(seq)
}

// spelledCode returns a code as newCode spells it. text may have any letter case, dashes
// and blanks. The result is "" if text cannot be a code.
func spelledCode(text string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '\u2212' { // minus
			return -1
		}
		return unicode.ToUpper(r)
	}, text)
	if len(letters) != 8 {
		return ""
	}
	return letters[:4] + "-" + letters[4:]
}

// A redemptionFilter chooses redemptions. An empty field does not restrict.
type redemptionFilter struct {
	code             *string
	customer, reward *id
	of               []id // whose records are the customer's; set by findRedemptions
	status           string
	from, to         instant // both included; 0 and never mean open
}

func (f *redemptionFilter) dated() bool { return f.from != 0 || f.to != never }

func (f *redemptionFilter) keeps(x *redemption, now instant) bool {
	return (f.customer == nil || slices.Contains(f.of, x.Customer)) && (f.reward == nil || *f.reward == x.Reward) &&
		(f.status == "" || f.status == x.status(now)) && f.from <= x.CreatedAt && x.CreatedAt <= f.to
}

// findRedemptions returns a page of the redemptions that a filter chooses, newest
// first, and how many there are.
func (rw *rewardsTxn) findRedemptions(f redemptionFilter, p page) ([]*redemption, uint64, error) {
	if f.customer != nil {
		var err error
		if f.of, err = rw.t.merges.idsOf(*f.customer); err != nil {
			return nil, 0, err
		}
	}
	if f.reward != nil {
		if err := rw.knownReward(*f.reward); err != nil {
			return nil, 0, err
		}
	}
	n, err := rw.t.count()
	if err != nil {
		return nil, 0, err
	}
	c := redemptionPager{txn: rw.t, filter: f, page: p, last: n.Redemptions}
	switch {
	case f.code != nil:
		x, err := rw.redemptionCalled(*f.code)
		if err != nil {
			return nil, 0, err
		}
		if x != nil && f.keeps(x, rw.t.now) {
			c.take(x.Seq)
		}
	case f.customer == nil && f.reward == nil && f.status == "" && !f.dated():
		c.total = n.Redemptions
		if first, last, ok := p.span(n.Redemptions); ok {
			for seq := first; seq >= last; seq-- {
				c.found = append(c.found, seq)
			}
		}
	default:
		if err := c.pass(); err != nil {
			return nil, 0, err
		}
	}
	warm(rw.t.Tx, c.found, rw.redemptionKey)
	list := make([]*redemption, len(c.found))
	for i, seq := range c.found {
		if list[i], err = rw.redemptionAt(seq); err != nil {
			return nil, 0, err
		}
	}
	return list, c.total, nil
}

// knownReward returns reward_not_found unless this organization has the reward, or
// had it and it was redeemed.
func (rw *rewardsTxn) knownReward(rid id) error {
	if rw.t.cfg.reward(rid) != nil {
		return nil
	}
	redeemed, err := hasAny(rw.t.Tx, rw.redeemedRewardKey(rid))
	if err == nil && !redeemed {
		err = newError(codeRewardNotFound)
	}
	return err
}

// A redemptionPager counts the redemptions that a filter accepts and collects a page of them.
type redemptionPager struct {
	txn    *txn
	filter redemptionFilter
	page
	last  uint64 // the newest redemption
	found []uint64
	total uint64
}

func (c *redemptionPager) take(seq uint64) {
	if c.total >= c.skip() && uint64(len(c.found)) < c.limit {
		c.found = append(c.found, seq)
	}
	c.total++
}

// sets returns the sets that the filter asks for, usually the smallest first. The sets of
// a customer are left out if they are several.
func (c *redemptionPager) sets() (list []key) {
	if len(c.filter.of) == 1 {
		list = append(list, c.txn.rewards.redemptionsOfKey(c.filter.of[0]))
	}
	if c.filter.reward != nil {
		list = append(list, c.txn.rewards.redeemedRewardKey(*c.filter.reward))
	}
	switch c.filter.status {
	case "":
	case redemptionExpired:
		list = append(list, c.txn.rewards.redemptionStateKey(redemptionIssued))
	default:
		list = append(list, c.txn.rewards.redemptionStateKey(c.filter.status))
	}
	return list
}

// A redemptionBlock is some redemptions of a block.
type redemptionBlock struct {
	block   uint64
	members *blockset.Bitmap
}

// blocks yields the redemptions of the first set, newest block first. If the customer's
// redemptions are in several sets, it yields them; if there are only dates, all redemptions.
func (c *redemptionPager) blocks(sets []key) iter.Seq2[redemptionBlock, error] {
	if len(c.filter.of) > 1 {
		return c.familyBlocks()
	}
	prefix := c.txn.rewards.redemptionTimesKey(0)
	prefix = prefix[:len(prefix)-4]
	if len(sets) > 0 {
		prefix = sets[0]
	}
	return func(yield func(redemptionBlock, error) bool) {
		for e, err := range scan(c.txn.Tx, prefix, true) {
			var b redemptionBlock
			if err == nil {
				if b.block = uint64(uint32In(e.Key[len(prefix):])); len(sets) == 0 {
					b.members = c.wholeBlock(b.block)
				} else {
					b.members = blockset.Decode(e.Value)
				}
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// familyBlocks is blocks for a customer with stubs: each has a set of its own.
func (c *redemptionPager) familyBlocks() iter.Seq2[redemptionBlock, error] {
	return func(yield func(redemptionBlock, error) bool) {
		all := blockset.Set{}
		for _, cust := range c.filter.of {
			prefix := c.txn.rewards.redemptionsOfKey(cust)
			for e, err := range scan(c.txn.Tx, prefix, false) {
				if err != nil {
					yield(redemptionBlock{}, err)
					return
				}
				all.Join(uint32In(e.Key[len(prefix):]), e.Value)
			}
		}
		for _, block := range slices.Backward(slices.Sorted(maps.Keys(all))) {
			if !yield(redemptionBlock{uint64(block), all[block]}, nil) {
				return
			}
		}
	}
}

// pass goes through the blocks, newest first.
func (c *redemptionPager) pass() error {
	if c.filter.customer != nil && len(c.filter.of) == 0 {
		return nil
	}
	sets := c.sets()
	others := sets
	if len(c.filter.of) <= 1 && len(sets) > 0 { // blocks yields the first
		others = sets[1:]
	}
	var turn pacer
	for b, err := range c.blocks(sets) {
		if err != nil {
			return err
		}
		block, members := b.block, b.members
		if err := c.keepSets(block, members, others); err != nil {
			return err
		}
		if err := c.keepStatus(block, members); err != nil {
			return err
		}
		if err := c.keepTimes(block, members); err != nil {
			return err
		}
		c.takeBlock(block, members)
		turn.pause()
	}
	return nil
}

// wholeBlock returns all redemptions of a block, or none of a block that lies outside the
// dates.
func (c *redemptionPager) wholeBlock(block uint64) *blockset.Bitmap {
	members := new(blockset.Bitmap)
	value, _, _ := c.txn.Get(c.txn.rewards.redemptionTimesKey(block)) // an error comes again in keepTimes
	if times, ok := spanIn(value); ok && !times.overlaps(span{c.filter.from, c.filter.to}) {
		return members
	}
	for seq := max(block*blockset.Block, 1); seq <= min(block*blockset.Block+blockset.Block-1, c.last); seq++ {
		members[seq%blockset.Block/8] |= 1 << (seq % 8)
	}
	return members
}

func (c *redemptionPager) keepSets(block uint64, members *blockset.Bitmap, sets []key) error {
	for _, set := range sets {
		value, _, err := c.txn.Get(set.u32(uint32(block)))
		if err != nil {
			return err
		}
		other := blockset.Decode(value)
		for i := range members {
			members[i] &= other[i]
		}
	}
	return nil
}

// keepStatus drops the vouchers that have expired if the filter asks for Issued, and all
// others if it asks for Expired.
func (c *redemptionPager) keepStatus(block uint64, members *blockset.Bitmap) error {
	status := c.filter.status
	if status != redemptionIssued && status != redemptionExpired || *members == (blockset.Bitmap{}) {
		return nil
	}
	expired := new(blockset.Bitmap)
	from := c.txn.rewards.expiriesKey(block)
	for e, err := range c.txn.Scan(from, slices.Clone(from).instant(c.txn.now+1), false) {
		if err != nil {
			return err
		}
		for i, b := range blockset.Decode(e.Value) {
			expired[i] |= b
		}
	}
	for i := range members {
		if status == redemptionExpired {
			members[i] &= expired[i]
		} else {
			members[i] &^= expired[i]
		}
	}
	return nil
}

// keepTimes drops the members whose createdAt is not within the dates.
func (c *redemptionPager) keepTimes(block uint64, members *blockset.Bitmap) error {
	if !c.filter.dated() || *members == (blockset.Bitmap{}) {
		return nil
	}
	k := c.txn.rewards.redemptionTimesKey(block)
	value, _, err := c.txn.Get(k)
	if err != nil {
		return err
	}
	dates := span{c.filter.from, c.filter.to}
	times, ok := spanIn(value)
	switch {
	case !ok:
		return unreadable(k)
	case times.within(dates):
		return nil
	case !times.overlaps(dates):
		*members = blockset.Bitmap{}
		return nil
	}
	for seq := range members.Newest(block) {
		x, err := c.txn.rewards.redemptionAt(seq)
		if err != nil {
			return err
		}
		if !dates.has(x.CreatedAt) {
			members[seq%blockset.Block/8] &^= 1 << (seq % 8)
		}
	}
	return nil
}

func (c *redemptionPager) takeBlock(block uint64, members *blockset.Bitmap) {
	n := members.Count()
	if uint64(len(c.found)) == c.limit || c.total+n <= c.skip() {
		c.total += n
		return
	}
	for seq := range members.Newest(block) {
		c.take(seq)
	}
}
