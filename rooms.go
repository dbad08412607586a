package main

// rooms are the parts of a txn: each has the methods of one feature, and what one
// transaction keeps for them. So t.sales.register registers a sale, and t.points.credit
// gives points.
type rooms struct {
	// Rooms whose held records are written when the transaction is committed (held).
	stats   statsTxn
	saleLog saleLogTxn
	feed    feedTxn

	// Rooms that keep what they have read, or what the answer shows.
	replays replaysTxn
	seals   sealsTxn
	merges  mergesTxn
	recount recountTxn

	audit     auditTxn
	search    searchTxn
	people    peopleTxn
	keys      keysTxn
	customers customersTxn
	points    pointsTxn
	rules     rulesTxn
	sales     salesTxn
	saleLists saleListsTxn
	rewards   rewardsTxn
	giver     voucherGiver // the rewards
	cards     cardsTxn
	tickets   ticketsTxn
	webhooks  webhooksTxn
}

// bindRooms tells each room which transaction it belongs to.
func (r *rooms) bindRooms(t *txn) {
	r.stats.t, r.saleLog.t, r.feed.t, r.replays.t, r.seals.t, r.merges.t, r.recount.t = t, t, t, t, t, t, t
	r.audit.t, r.search.t, r.people.t, r.keys.t, r.customers.t, r.points.t = t, t, t, t, t, t
	r.rules.t, r.sales.t, r.saleLists.t, r.rewards.t, r.cards.t, r.tickets.t, r.webhooks.t = t, t, t, t, t, t, t
	r.giver = &r.rewards
}

// saveRooms gives what is still to be given, and writes what rooms hold.
func (r *rooms) saveRooms() error {
	if _, err := r.giver.giveRisen(id{}); err != nil {
		return err
	}
	if err := r.stats.save(); err != nil {
		return err
	}
	if err := r.saleLog.save(); err != nil {
		return err
	}
	return r.feed.save()
}

// A held is a copy of what a transaction writes only at its end, since more of its
// changes may add to it.
type held struct {
	counters *counters
	tallies  []dayTally
	logged   logged
	told     pendingEvents
	risen    []risenAccount
}

// copyFrom makes h a copy of what t holds.
func (h *held) copyFrom(t *txn) {
	h.counters = nil
	if t.counters != nil {
		h.counters = new(*t.counters)
	}
	h.tallies = append(h.tallies[:0], t.stats.tallies...)
	h.logged = t.saleLog.logged
	h.told.copyFrom(&t.feed.pending)
	h.risen = append(h.risen[:0], t.points.risen...)
}

// moveTo makes t hold what h has.
func (h *held) moveTo(t *txn) {
	t.counters, t.stats.tallies, t.saleLog.logged, t.feed.pending = h.counters, h.tallies, h.logged, h.told
	t.points.risen = h.risen
	*h = held{}
}
