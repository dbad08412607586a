package main

// Customers whom a shop may tell something by hand (contract §23): that points expire soon, that it
// is their birthday, or that one purchase is missing to a tier or a full card. Only who said yes to
// notices is among them.

// A reminder is something to tell a customer.
type reminder struct {
	customer *customer
	own      *account
	program  *program // whose points or tier it is about
	points   decimal  // of noticeExpiring: what expires first
	at       instant  // of noticeExpiring: when
	goal     string   // of noticeAlmost: the tier or the reward
	birthday day      // of noticeBirthday
}

// A reminderQuery says what to tell, and within how many days it happens.
type reminderQuery struct {
	kind noticeKind
	days int
}

// remindersOf returns what to tell some customers, in the order of their ids in list: those who are
// active and said yes to notices. It stops after limit reminders and says how many ids it looked at.
func remindersOf(t *txn, q reminderQuery, list []id, limit int) (found []reminder, looked int, err error) {
	var (
		c    customer
		turn pacer
		read = func(u id) key { return t.scratchKey(u, partCustomer) }
		own  = func(u id) key { return t.scratchKey(u, partAccount).u32(t.cfg.defaultProgram().Number) }
	)
	for i, cust := range list {
		if i%readAtOnce == 0 {
			warm(t.Tx, list[i:min(i+readAtOnce, len(list))], read, own)
		}
		if err := t.customers.read(cust, &c); err != nil {
			return nil, 0, err
		}
		if c.Status == statusActive && c.Marketing.Answer == consentGiven {
			r, is, err := reminderOf(t, q, &c)
			if err != nil {
				return nil, 0, err
			}
			if is {
				if r.customer, err = t.customers.get(cust); err != nil { // c is used again
					return nil, 0, err
				}
				found = append(found, r)
			}
		}
		if looked = i + 1; len(found) == limit {
			break
		}
		turn.pause()
	}
	return found, looked, nil
}

// reminderOf is what to tell a customer; is is false if there is nothing.
func reminderOf(t *txn, q reminderQuery, c *customer) (r reminder, is bool, err error) {
	today := t.dayOf(t.now)
	if q.kind == noticeBirthday {
		r.birthday, is = c.birthdayWithin(today, q.days)
		if !is {
			return r, false, nil
		}
	}
	for i, p := range t.cfg.earnsIn(c) {
		a, err := t.points.account(c, p)
		if err != nil {
			return r, false, err
		}
		if i == 0 {
			r.own = &account{program: p, accountHead: a.accountHead}
		}
		switch {
		case q.kind == noticeExpiring: // of several programs, the one whose points expire first
			points, at, err := t.points.expiringOnFirstDay(a)
			if err != nil {
				return r, false, err
			}
			if points > 0 && t.dayOf(at) <= today+day(q.days) && (!is || at < r.at) {
				r.points, r.at, r.program, is = points, at, p, true
			}
		case is:
		case q.kind == noticeAlmost:
			if r.goal = t.points.almost(a, t.cfg); r.goal != "" {
				r.program, is = p, true
			}
		}
	}
	return r, is, nil
}

// expiringOnFirstDay is what expires of an account on the first day on which anything does, and when the
// first of it does; 0 if nothing expires.
func (pt *pointsTxn) expiringOnFirstDay(a *account) (points decimal, first instant, err error) {
	list, err := pt.expiringFrom(a, pt.t.now, maxExpiring)
	for _, e := range list {
		if first == 0 {
			first = e.ExpiresAt
		}
		if pt.t.dayOf(e.ExpiresAt) > pt.t.dayOf(first) {
			break
		}
		points += e.Amount
	}
	return points, first, err
}

// birthdayWithin is the customer's next birthday, if that is today or in fewer days than these.
func (c *customer) birthdayWithin(today day, days int) (day, bool) {
	if c.BirthDate == 0 {
		return 0, false
	}
	year := today.date().Year()
	next := c.BirthDate.in(year)
	if next < today {
		next = c.BirthDate.in(year + 1)
	}
	return next, next < today+day(days)
}

// almost is the tier or the reward to which one more purchase like those before is missing; "" if
// there is none.
func (pt *pointsTxn) almost(a *account, cfg *config) string {
	spent, purchases := a.sold()
	if purchases == 0 || spent <= 0 {
		return ""
	}
	n := decimal(purchases)
	if _, next := a.tier(); next != nil {
		typical := map[string]decimal{metricPurchases: decimalOne, metricSpent: spent / n, metricPoints: max(a.Lifetime, 0) / n}[a.program.TierBasis.Metric]
		if missing := next.Threshold - pt.growing(a); missing > 0 && missing <= typical {
			return next.Name
		}
	}
	for _, r := range cfg.Rewards {
		if !r.AutoIssue || r.Program != a.program.Key || r.Status != statusActive {
			continue
		}
		if missing := r.PointsCost - a.Balance; missing > 0 && missing <= max(decimalOne, a.Lifetime/n) {
			return r.Name
		}
	}
	return ""
}
