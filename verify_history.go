package main

// A saleHistory is what the sales of a customer and its stubs add up to.
type saleHistory struct {
	spent     decimal
	purchases uint64
	last      instant // of the last purchase that is not wholly returned
	owner     id
	limited   bool         // some purchase counted toward a daily limit
	counted   bool         // some purchase counts in a life or a budget of a rule
	uses      limitUses    // empty until somebody asks
	erased    bool         // the customer was
	all       []soldSale   // oldest first
	at        map[id]int   // in all
	bought    []programDay // buffer of countActive
}

// A soldSale is one of these sales.
type soldSale struct {
	*sale
	again *sale // a purchase with its returns counted again; nil: it has none
	whole bool  // a return: it left nothing of its purchase
	moved saleMovements
	other []saleMovements // of Others
	paid  bool            // the movement of its payment was found
}

// movedIn returns what a sale's movements in a program add up to; nil if the sale has no
// share there.
func (s *soldSale) movedIn(program uint32) *saleMovements {
	if program == s.Program {
		return &s.moved
	}
	for i := range s.Others {
		if s.Others[i].Program == program {
			return &s.other[i]
		}
	}
	return nil
}

// saleMovements are what a sale's movements in one program add up to.
type saleMovements struct {
	any             bool
	points, pending decimal
	expired         decimal
	issued          decimal // points of vouchers that redeemed themselves with the sale
	lots            []pendingRef
	balance         decimal // after the last
}

// begin starts on another customer. It reuses the memory of the last one.
func (h *saleHistory) begin() {
	all, at, bought := h.all[:0], h.at, h.bought[:0]
	if len(h.all) > 0 {
		clear(h.all)
		clear(at)
	}
	*h = saleHistory{all: all, at: at, bought: bought}
}

// stands reports whether a sale is a purchase that its returns, counted again, leave a part of.
func (s *soldSale) stands() bool {
	return s.Type == typePurchase && (s.again == nil || !s.again.whollyReturned())
}

// limitUses are the uses of daily limits, and latest is the last day of them by program.
type limitUses struct {
	by     map[limitedDay]usesRange
	latest map[uint32]day
}

// A limitedDay is a day on which a rule with a daily limit gave to the customer.
type limitedDay struct {
	program uint32
	day     day
	rule    id
}

// A usesRange is how often it may have: least are the purchases that say so. The rest may be
// of before the rule had a limit.
type usesRange struct{ least, most uint64 }

// find returns a sale by its id; nil if the customer has no such sale.
func (h *saleHistory) find(saleID id) *soldSale {
	if i, ok := h.at[saleID]; ok {
		return &h.all[i]
	}
	return nil
}

// cameExpired reports whether the points of a late purchase had expired when it came: they
// pay no debt.
func (h *saleHistory) cameExpired(m *movement) bool {
	s := h.find(m.Transaction)
	if s == nil {
		return false
	}
	v := s.shareIn(m.Program)
	return v != nil && v.ExpiredLate > 0 && m.Expires <= s.RegisteredAt
}

// redeemed holds a customer's redemptions, which are read when the first is asked for.
type redeemed struct {
	known  trail
	unread bool
	all    map[id]*redemption
}

func (x *redeemed) begin(known trail) {
	x.known, x.unread = known, true
	if len(x.all) > 0 {
		clear(x.all)
	}
}

// An idleAgain is what an account's movements say about its activity.
type idleAgain struct {
	credits  []instant // moments of what came, or became available; only where accounts lapse
	latest   instant   // anything that can have begun a new period
	standing []instant // debits of category Redemption that were not undone
	always   instant   // the last of standing that was an activity before schema 13 too
	back     *movement // that gave points back, until other ones follow
}

func (i *idleAgain) join(o idleAgain) {
	i.latest = max(i.latest, o.latest)
	i.standing = append(i.standing, o.standing...)
	i.credits = append(i.credits, o.credits...)
	i.always = max(i.always, o.always)
}
