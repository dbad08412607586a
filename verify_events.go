package main

// eventFeed checks the feed of an organization: that what is kept of it has no holes and ends
// with the last event that was told, and that its events refer to what there is.
func (v *verifier) eventFeed() error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	last := n.Dropped
	for e, err := range scan(v.txn.Tx, tableEvents.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableEvents].entries++
		if len(e.Key) != 13 {
			v.stray(e.Key)
			continue
		}
		v.want[tableEvents].entries++
		list, err := eventsIn(e)
		if err != nil {
			return err
		}
		if first := uintIn(e.Key[5:]); first != last+1 || len(list) == 0 {
			v.problem("eventos: tras el %d está el %d", last, first)
		}
		for i := range list {
			last = list[i].Seq
			known := list[i].refersTo(n, v.txn.cfg)
			if list[i].isOfHold() {
				if _, known, err = v.txn.Get(v.txn.points.holdKey(list[i].hold())); err != nil {
					return err
				}
			}
			if !known {
				v.problem("eventos: el %d (%s) es de algo que no existe", last, eventKinds[list[i].Kind].name)
			}
		}
	}
	equal(v, subject{kind: "contador de eventos"}, "", n.Events, last)
	return v.webhooks(n)
}

// webhooks checks that each webhook has a state, of an event that there is, and nothing else
// has one.
func (v *verifier) webhooks(n *counters) error {
	for e, err := range scan(v.txn.Tx, tableWebhooks.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableWebhooks].entries++
		s, err := decodeEntry[webhookState](e)
		if err != nil {
			return err
		}
		hook := string(e.Key[5:])
		if v.txn.cfg.webhook(hook) == nil {
			v.stray(e.Key)
			continue
		}
		if s.Sent > n.Events {
			v.problem("webhook %q: su último evento, %d, no existe", hook, s.Sent)
		}
	}
	v.want[tableWebhooks].entries = uint64(len(v.txn.cfg.Webhooks))
	return nil
}

// refersTo reports whether there is what the event is about.
func (e *event) refersTo(n *counters, cfg *config) bool {
	in := func(ref, total uint64) bool { return 0 < ref && ref <= total }
	program := func(ref uint64) bool { return ref <= 1<<32-1 && cfg.programNumber(uint32(ref)) != nil }
	switch e.Kind {
	case eventCustomerCreated, eventCustomerUpdated, eventCustomerErased:
		return in(e.Refs[0], n.Customers)
	case eventCustomerMerged:
		return in(e.Refs[0], n.Customers) && in(e.Refs[1], n.Customers)
	case eventPointsAvailable:
		return in(e.Refs[0], n.Movements) && in(e.Refs[1], n.Customers)
	case eventPointsExpiring, eventTierChanged, eventTierExpiring:
		return in(e.Refs[0], n.Customers) && program(e.Refs[1])
	case eventTransactionCreated:
		return in(e.Refs[0], n.Sales)
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		return in(e.Refs[0], n.Redemptions)
	case eventConfigurationApplied:
		return in(e.Refs[0], n.Audit)
	}
	return in(e.Refs[0], n.Movements)
}
