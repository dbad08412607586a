package main

import (
	"cmp"
	"slices"
	"strings"
)

// What a card shows: the customer's code, and what the customer has, can have and did. The figures
// are those of the API at the same moment. They have nothing of other customers, no comment, and
// of the customer the first name alone.

// A cardFigures is what a card says, as clients get it.
type cardFigures struct {
	Organization string         `json:"organization"`
	FirstName    *string        `json:"firstName"`
	MemberCode   *string        `json:"memberCode"`
	Programs     []cardProgram  `json:"programs"` // the customer's own first
	Vouchers     []cardVoucher  `json:"vouchers"`
	Rewards      []cardReward   `json:"rewards"` // what can be had now, then what points are missing for
	Movements    []cardMovement `json:"movements"`
	AsOf         instant        `json:"asOf"`

	moreVouchers int    // that are not shown
	digits       string // that prove who shows the card; "": none are asked for
}

type cardProgram struct {
	LoyaltyProgramID id            `json:"loyaltyProgramId"`
	Name             string        `json:"name"`
	CurrencyName     string        `json:"currencyName"`
	Balance          decimal       `json:"balance"`
	PendingBalance   decimal       `json:"pendingBalance"`
	TierName         *string       `json:"tierName"`
	TierProgress     *tierProgress `json:"tierProgress"`
	Stamps           *cardStamps   `json:"stamps"`
	ExpiringPoints   []expiring    `json:"expiringPoints"`

	currency currencyName
}

// cardStamps are points shown as circles: how many there are, and how many give the reward.
type cardStamps struct {
	Filled int `json:"filled"`
	Of     int `json:"of"`
}

type cardVoucher struct {
	Code       string  `json:"code"`
	RewardName string  `json:"rewardName"`
	ExpiresAt  instant `json:"expiresAt"`
}

type cardReward struct {
	ProductID        id      `json:"productId"`
	Name             string  `json:"name"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	PointsCost       decimal `json:"pointsCost"`
	Missing          decimal `json:"missing"` // points; 0: it can be had now

	currency currencyName
}

type cardMovement struct {
	CreatedAt        instant `json:"createdAt"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	Type             string  `json:"type"`
	Category         string  `json:"category"`
	Amount           decimal `json:"amount"`
	Name             *string `json:"name"` // of the reward, or of the rules of the purchase

	currency currencyName
	shape    movementShape
}

// A card shows at most so many of each.
const (
	cardExpiring  = 3
	cardVouchers  = 20 // the soonest to expire, of openVouchers
	openVouchers  = 1000
	cardMovements = 20
	cardRewards   = 30
	mostStamps    = 20
	cardRules     = 3 // of one purchase
)

func newCardFigures(t *txn, c *customer) (*cardFigures, error) {
	f := &cardFigures{
		Organization: t.cfg.Organization.Name, FirstName: orNull(c.FirstName), MemberCode: t.customers.memberCode(c),
		Programs: []cardProgram{}, Vouchers: []cardVoucher{}, Rewards: []cardReward{}, Movements: []cardMovement{}, AsOf: t.now,
	}
	d, err := newCustomerDetail(t, c)
	if err != nil {
		return nil, err
	}
	for _, in := range d.Programs {
		a, err := t.points.account(c, t.cfg.program(in.LoyaltyProgramID))
		if err == nil {
			err = f.addProgram(t, a, in)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.cfg.cards().Proof == proofSpending && c.Status == statusActive {
		if f.digits, err = t.cards.digitsOf(c); err != nil {
			return nil, err
		}
	}
	for _, add := range []func(*txn, *customer) error{f.addVouchers, f.addRewards, f.addMovements} {
		if err := add(t, c); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *cardFigures) addProgram(t *txn, a *account, in customerProgram) error {
	soon, err := t.points.expiringFrom(a, t.now, cardExpiring)
	if err != nil {
		return err
	}
	if soon == nil {
		soon = []expiring{}
	}
	f.Programs = append(f.Programs, cardProgram{
		LoyaltyProgramID: a.program.ID, Name: a.program.Name, CurrencyName: a.program.Currency.Many, Balance: a.Balance, PendingBalance: a.Pending,
		TierName: in.TierName, TierProgress: in.TierProgress, Stamps: stampsOf(t.cfg, a), ExpiringPoints: soon, currency: a.program.Currency,
	})
	return nil
}

// stampsOf is the account as a card of stamps; nil unless the cheapest voucher of its program gives
// itself, for few enough points.
func stampsOf(cfg *config, a *account) *cardStamps {
	for _, r := range cfg.byCost() {
		if r.Program != a.program.Key || r.Status != statusActive || r.Fulfilment != fulfilVoucher {
			continue
		}
		if !r.AutoIssue || r.PointsCost > mostStamps*decimalOne || r.PointsCost%decimalOne != 0 {
			return nil
		}
		return &cardStamps{int(min(max(a.Balance, 0), r.PointsCost) / decimalOne), int(r.PointsCost / decimalOne)}
	}
	return nil
}

func (f *cardFigures) addVouchers(t *txn, c *customer) error {
	open, all, err := t.rewards.findRedemptions(redemptionFilter{customer: &c.ID, status: redemptionIssued, to: never}, page{1, openVouchers})
	for _, x := range open {
		f.Vouchers = append(f.Vouchers, cardVoucher{x.Code, x.RewardName, x.Expires})
	}
	slices.SortStableFunc(f.Vouchers, func(a, b cardVoucher) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) })
	f.Vouchers = f.Vouchers[:min(len(f.Vouchers), cardVouchers)]
	f.moreVouchers = int(all) - len(f.Vouchers)
	return err
}

// addRewards adds the rewards that can be had now, the cheapest first, and then those for which
// nothing but points is missing, the fewest first. What gives itself is not to be asked for.
func (f *cardFigures) addRewards(t *txn, c *customer) error {
	if c.Status != statusActive {
		return nil
	}
	for _, r := range t.cfg.byCost() {
		if r.AutoIssue {
			continue
		}
		a, err := t.points.account(c, t.cfg.programKey(r.Program))
		if err != nil {
			return err
		}
		reasons, err := t.rewards.unavailable(r, c, a)
		if err != nil {
			return err
		}
		shown := cardReward{ProductID: r.ID, Name: r.Name, LoyaltyProgramID: a.program.ID, PointsCost: r.PointsCost, currency: a.program.Currency}
		switch {
		case len(reasons) == 0:
		case len(reasons) == 1 && reasons[0] == reasonNoBalance:
			shown.Missing = r.PointsCost - a.Balance
		default:
			continue
		}
		f.Rewards = append(f.Rewards, shown)
	}
	slices.SortStableFunc(f.Rewards, func(a, b cardReward) int { return cmp.Compare(a.Missing, b.Missing) })
	f.Rewards = f.Rewards[:min(len(f.Rewards), cardRewards)]
	return nil
}

// addMovements adds the last movements of all programs that the card shows, newest first.
func (f *cardFigures) addMovements(t *txn, c *customer) error {
	type entry struct {
		*movement
		program *program
	}
	var list []entry
	for _, shown := range f.Programs {
		p := t.cfg.program(shown.LoyaltyProgramID)
		found, _, err := t.points.listMovements(c, p, page{1, cardMovements}, nil)
		if err != nil {
			return err
		}
		for _, m := range found {
			list = append(list, entry{m, p})
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.Seq, a.Seq))
	})
	for _, e := range list[:min(len(list), cardMovements)] {
		shown, err := newCardMovement(t, e.movement, e.program)
		if err != nil {
			return err
		}
		f.Movements = append(f.Movements, shown)
	}
	return nil
}

func newCardMovement(t *txn, m *movement, p *program) (cardMovement, error) {
	name, err := nameOfMovement(t, m)
	return cardMovement{
		CreatedAt: m.CreatedAt, LoyaltyProgramID: p.ID, Type: m.movementType(), Category: m.Category, Amount: max(m.Amount, -m.Amount), Name: orNull(name),
		currency: p.Currency, shape: movementShape{Category: m.Category, TransactionID: idOrNull(m.Transaction), HoldID: idOrNull(m.Hold)},
	}, err
}

// nameOfMovement is the name of the reward that a movement paid for, or of the rules by which its
// purchase gave it; "" of others.
func nameOfMovement(t *txn, m *movement) (string, error) {
	switch {
	case m.Redemption != (id{}):
		x, err := t.rewards.redemption(m.Redemption)
		if err != nil {
			return "", err
		}
		return x.RewardName, nil
	case m.Transaction != (id{}) && m.Category == categoryPurchase:
		s, err := t.sales.get(m.Transaction)
		if err != nil {
			return "", err
		}
		var names []string
		if share := s.shareIn(m.Program); share != nil {
			for _, r := range share.Rules {
				if r.Points != 0 {
					names = append(names, r.Name)
				}
			}
		}
		if len(names) > cardRules {
			names = append(names[:cardRules], "…")
		}
		return strings.Join(names, " · "), nil
	}
	return "", nil
}
