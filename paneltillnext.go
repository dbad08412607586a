package main

// Who stands at the till, and what it offers next: the customer stays until another one is looked for.

// A TillHead is who stands at the till, as all of its screens show it.
type TillHead struct {
	Customer customerDetail
	Contact  string
	Program  currencyName // the currency of the customer's own program
	units    map[id]currencyName
	holds    []openHold // of all programs
	held     map[id]decimal
}

// Unit is the currency of a program.
func (h TillHead) Unit(program id) currencyName { return h.units[program] }

// Held is how many points of a program are set aside.
func (h TillHead) Held(program id) decimal { return h.held[program] }

// balance is what the customer has in a program.
func (h *TillHead) balance(program id) decimal {
	for _, p := range h.Customer.Programs {
		if p.LoyaltyProgramID == program {
			return p.Balance
		}
	}
	return 0
}

func (v *panelRequest) head(h *TillHead) fillFunc {
	detail := v.ask(getCustomer)
	return func(t *txn) (err error) {
		if h.Customer, err = resultOf[customerDetail](t, detail); err != nil {
			return err
		}
		c, err := t.customers.get(h.Customer.ID)
		if err != nil {
			return err
		}
		h.Contact = v.contact(c)
		h.units, h.held = map[id]currencyName{}, map[id]decimal{}
		for _, p := range t.cfg.Programs {
			h.units[p.ID] = p.Currency
		}
		for _, in := range h.Customer.Programs {
			a, err := t.points.account(c, t.cfg.program(in.LoyaltyProgramID))
			if err != nil {
				return err
			}
			h.holds = append(h.holds, a.Holds...)
			h.held[in.LoyaltyProgramID] = a.held()
		}
		h.Program = h.Unit(h.Customer.LoyaltyProgramID)
		return nil
	}
}

// tillOffers are what can be done next with the customer, who stays until another one is looked for.
type tillOffers struct {
	Rewards []rewardShape // that can be had now
	Later   []rewardShape
	Pay     payOffer
	PayMost bool   // in place of what was too much for the purchase
	Undone  string // the page of the undone sale whose ticket was sent again; "": it was not
}

// headOffers fills in a customer's head and offers.
func (v *panelRequest) headOffers(h *TillHead, o *tillOffers) fillFunc {
	head := v.head(h)
	rewards := v.ask(listRewards, pair{"customerId", v.r.PathValue("customerId")}, pair{"status", statusActive}, pair{"limit", manyRewards})
	return func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		for _, e := range v.faults {
			if u, is := e.context["transactionId"].(id); is && e.code == codeExternalIDUndone {
				item, err := newDoneItem(t, "transaction.created", u.String())
				if err != nil {
					return err
				}
				o.Undone = item.Path
			}
		}
		o.Pay, o.PayMost = v.payOffer(t, &h.Customer), v.payTooMuch()
		all, err := resultOf[listShape[rewardShape]](t, rewards)
		for _, r := range all.Data {
			if *r.Available {
				o.Rewards = append(o.Rewards, r)
			} else {
				o.Later = append(o.Later, r)
			}
		}
		return err
	}
}

// manyRewards is how many rewards the till shows.
const manyRewards = "100"

// sellWithVoucher registers a sale and uses in it the voucher that the path of its form names, both
// or none. A sale that is known already uses nothing more.
func sellWithVoucher(r *request) action {
	sell := registerTransaction(r)
	return func(t *txn) (any, error) {
		x, err := t.rewards.redemption(r.pathID("redemptionId"))
		if err != nil {
			return nil, err
		}
		done, err := sell(t)
		shape, is := done.(saleShape)
		if err != nil || !is {
			return done, err
		}
		if _, err = t.rewards.useCode(x.Code, shape.ID); err != nil {
			return nil, err
		}
		if err = t.audit.note("redemption.used", x.ID.String(), nil); err != nil {
			return nil, err
		}
		s, err := t.sales.get(*shape.ID)
		if err != nil {
			return nil, err
		}
		return newSaleShape(t, s)
	}
}

// A sellView is the form of a sale. With a voucher it is used in the sale, unless another button
// says otherwise.
type sellView struct {
	Page    *pageData
	To      string // of a sale without a voucher
	Voucher string // the form's address with one; "": there is none
	First   bool   // it is the first thing that is done on its page
}

func (h TillHead) Sell(f *pageData, of ...redemptionShape) sellView {
	at := "/panel/caja/" + h.Customer.ID.String()
	s := sellView{Page: f, To: at + "/venta", First: len(of) == 0}
	for _, x := range of {
		if x.Status == redemptionIssued {
			s.Voucher = at + "/canje/" + x.ID.String() + "/venta"
		}
	}
	return s
}

// Called is what the customer is called by the people at the till.
func (h TillHead) Called() string { return textOr(h.Customer.FirstName, h.Customer.Name) }
