package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestClockHistories plays random histories of customers with a clock that jumps
// anywhere and back. Whatever was done then, the store is whole, asked at any moment.
func TestClockHistories(t *testing.T) {
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		doc := randomProgram(rnd)
		s := newShop(t, setup{zone: pick(rnd, "America/Mexico_City", "UTC"), at: "2027-03-01T12:00:00Z", program: programMembers(doc),
			also: `"rewards":[{"key":"small","program":"club","name":"Small","pointsCost":3}]`})
		m := &testMachine{wall: s.clock.time(), notAwake: rnd.IntN(4) == 0}
		store, newSeed := s.store, s.seed
		restart := func() {
			s.engine = newEngineBy(newWallClock(m), store, newSeed)
			if rnd.IntN(2) == 0 {
				s.sizes.few = fewSizes{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
			}
			s.ok(s.open(s.Context()))
		}
		restart()
		few := s.sizes.few
		h := &clockHistory{shop: s, machine: m, rnd: rnd, cust: []id{}}
		for range 60 {
			h.act()
			if rnd.IntN(15) == 0 {
				restart()
				s.sizes.few = few
			}
		}
		for range 5 {
			s.clock = instantOf(time.Date(1970+rnd.IntN(120), 1, 1, 0, 0, 0, 0, time.UTC))
			if rnd.IntN(2) == 0 {
				s.clock = instantOf(m.wall.Add(randomSpan(rnd)).Add(-randomSpan(rnd)))
			}
			s.verified()
		}
		if t.Failed() {
			for i, did := range h.did {
				t.Log(i, did)
			}
		}
	})
}

type clockHistory struct {
	*shop
	machine     *testMachine
	rnd         *rand.Rand
	cust        []id
	sales       []*sale
	redemptions []id
	did         []string
}

// act does something to the clock, and, as far as that lets it, to a customer.
func (h *clockHistory) act() {
	rnd := h.rnd
	h.machine.meddle(rnd)
	if rnd.IntN(3) == 0 {
		h.ok(h.correctClock(h.Context()))
	}
	now, err := h.engine.clock.forWriting()
	if err != nil && rnd.IntN(2) == 0 {
		now, err = h.commandTime()
	}
	if err != nil && rnd.IntN(2) == 0 {
		_, err = h.admin().acceptClock(h.Context(), struct{}{})
		h.ok(err)
		h.did = append(h.did, fmt.Sprint("accept ", h.machine.wall))
		now, err = h.engine.clock.forWriting()
	}
	if err != nil {
		return
	}
	h.clock = now
	kind := pick(rnd, "enrol", "add", "add", "deduct", "buy", "buy", "return", "redeem", "cancel", "sweep", "recount")
	h.did = append(h.did, fmt.Sprint(kind, " ", now))
	if len(h.cust) == 0 {
		kind = "enrol"
	}
	h.do(kind)
}

func (h *clockHistory) do(kind string) {
	rnd, points := h.rnd, decimalOf(1+h.rnd.IntN(30))
	var cust id
	if len(h.cust) > 0 {
		cust = pick(rnd, h.cust...)
	}
	switch kind {
	case "enrol":
		h.cust = append(h.cust, h.customer(fmt.Sprint("c", len(h.cust))))
	case "add":
		given := &movement{Category: pick(rnd, addCategories...), Amount: points}
		if rnd.IntN(3) == 0 {
			given.AvailFrom = h.clock.add(randomSpan(rnd))
		}
		if rnd.IntN(2) == 0 {
			given.Expires = max(given.AvailFrom, h.clock).add(time.Second + randomSpan(rnd))
		}
		h.move(cust, given)
	case "deduct":
		h.move(cust, &movement{Category: categoryAdjustment, Amount: -points})
	case "buy":
		if sold, err := h.sell(newSale{Customer: cust, Total: points}); err == nil {
			h.sales = append(h.sales, sold)
		}
	case "return":
		if len(h.sales) > 0 {
			h.tryBring(pick(rnd, h.sales...), points.String())
		}
	case "redeem":
		x, err := do(h.shop, func(t *txn) (*redemption, error) { return t.redeem(cust, t.cfg.Rewards[0].ID, "") })
		if err == nil {
			h.redemptions = append(h.redemptions, x.ID)
		}
	case "cancel":
		if len(h.redemptions) > 0 {
			x := pick(rnd, h.redemptions...)
			do(h.shop, func(t *txn) (*redemption, error) { return t.cancel(x) })
		}
	case "sweep":
		h.swept()
	case "recount":
		h.ok(h.recount(h.Context()))
	}
}
