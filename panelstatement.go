package main

// What a customer had on a day, or will have, and the statement of a month, to print.

func statementArea() panelArea {
	return panelArea{pages: []panelPage{{"/panel/clientes/{customerId}/estado", "customers:read", "statement", statementPage}}}
}

// A dayBalance is what a customer has on the day that the customer's page was asked about.
type dayBalance struct {
	Balance  balance
	Currency currencyName
	Future   bool
}

// onDay returns the balance of the day in the query; nil without one. It comes last in its
// transaction, which goes on to that day.
func (v *panelRequest) onDay(t *txn, p *program) (*dayBalance, error) {
	day, now := v.param("asOf"), t.now
	if day == "" || p == nil {
		return nil, nil
	}
	asked := v.ask(getBalance, pair{"asOf", day}, pair{"loyaltyProgramId", p.ID.String()})
	found, err := resultOf[balance](t, asked)
	if err != nil || len(v.faults) > 0 {
		return nil, err
	}
	return &dayBalance{found, p.Currency, found.AsOf > now}, nil
}

// A statementView is the statement of a month. It shows the first movements.
type statementView struct {
	TillHead
	Month            string
	Found            bool
	From, To, Made   instant // Made is now: the day of a print
	Opening, Closing pointSums
	Movements        []movementShape
	More             int // movements that are not shown
	Digest           string
	Currency         currencyName
	Programs         []choiceItem // if there are several
	ProgramID        string
}

// mostStated is how many movements the page shows. The API has all.
const mostStated = 1000

func statementPage(v *panelRequest) (any, fillFunc) {
	view := &statementView{Month: v.param("month"), ProgramID: v.param("loyaltyProgramId")}
	if view.Month == "" {
		view.Month = dayOf(v.request.now, v.cfg.zone).date().Format(monthForm)
	}
	head := v.head(&view.TillHead)
	asked := v.ask(getStatement, append(v.params("loyaltyProgramId"), pair{"month", view.Month})...)
	return view, func(t *txn) error {
		if err := v.mayAll("customers:read"); err != nil {
			return err
		}
		if err := head(t); err != nil {
			return err
		}
		if len(t.cfg.Programs) > 1 {
			for _, p := range t.cfg.Programs {
				view.Programs = append(view.Programs, choiceItem{p.ID.String(), p.Name})
			}
		}
		if view.ProgramID == "" {
			view.ProgramID = view.Customer.LoyaltyProgramID.String()
		}
		if len(v.faults) > 0 {
			return nil
		}
		of, err := resultOf[*statementParts](t, asked)
		if err != nil {
			return err
		}
		s, err := newStatement(t, of.customer, of.program, of.month)
		if err != nil {
			return err
		}
		return view.show(t, s)
	}
}

func (view *statementView) show(t *txn, s *statement) error {
	view.Found, view.From, view.To, view.Made, view.Opening, view.Closing = true, s.from, s.to, t.now, s.opening, s.closing
	view.Currency = s.program.Currency
	shown := s.movements[:min(len(s.movements), mostStated)]
	view.More = len(s.movements) - len(shown)
	for _, seq := range shown {
		m, err := t.points.movement(seq)
		if err != nil {
			return err
		}
		shape, err := newMovementShape(t, m)
		if err != nil {
			return err
		}
		view.Movements = append(view.Movements, shape)
	}
	digest, err := s.digest.MarshalText()
	view.Digest = string(digest)
	return err
}
