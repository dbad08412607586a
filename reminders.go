package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Customers whom a shop may tell something by hand (contract §23): that points expire soon, that
// it is their birthday, or that one more purchase reaches a tier or fills a card. Only customers
// who agreed to notices are listed.

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

// remindersOf returns what to tell the customers in list, in its order, who are active and said yes
// to notices. It stops after limit reminders and says how many ids it looked at.
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

// expiringOnFirstDay is how many points expire on the first day on which any do, and the moment when
// the first of them do; 0 if nothing expires.
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

// birthdayWithin is the customer's next birthday; false unless it is today or in fewer than days.
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

// almost is the tier or the reward that one more purchase of the usual size would reach; "" if there
// is none.
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

// Pages of reminders, each a bounded amount of work. Birthdays come in the order of their days from
// today on, which is the order of their index (sweep_birthdays.go).
//
// Points that expire come by their day. No index has that order, but the table of due accounts comes
// close: an account's entry there is no later than its first expiry. So the entries up to the end of
// the list's days lead to all who may be in the list, and they are sorted. More than dueAtOnce entries
// come in stretches, in the order of the table, each sorted in itself.
//
// A missing purchase has no date: such reminders come in the order of enrolment.

const (
	dueAtOnce   = walkedAtOnce      // entries of the organization in a stretch
	dueReadMost = 10 * walkedAtOnce // entries of all organizations, which share the table
)

// A reminderPlace is where a page begins: after what it names. The zero one is the beginning.
type reminderPlace struct {
	// Of birthdays, the last entry of the index, without letter and organization. Of what expires, the
	// entry with which the stretch begins, without letter.
	key    string
	day    day    // of the last customer
	number uint64 // the last customer's; not of birthdays
}

// widths of keys in a place.
const (
	bornWidth = 2 + 16
	dueWidth  = 8 + 4 + 16 + 4
)

// remindersAfter returns a page of reminders, and the place of the next one; the zero place at the end.
func remindersAfter(t *txn, q reminderQuery, after reminderPlace, limit int) (list []reminder, next reminderPlace, err error) {
	switch q.kind {
	case noticeBirthday:
		return birthdaysAfter(t, q, after, limit)
	case noticeExpiring:
		return expiringAfter(t, q, after, limit, dueAtOnce)
	}
	found := map[id]reminder{}
	w := walk{after: after.number, limit: limit, status: statusActive, member: func(c *customer) (bool, error) {
		if c.Marketing.Answer != consentGiven {
			return false, nil
		}
		r, is, err := reminderOf(t, q, c)
		if is {
			found[c.ID] = r
		}
		return is, err
	}}
	ids, last, err := t.customers.page(w)
	for _, cust := range ids {
		r := found[cust]
		if r.customer, err = t.customers.get(cust); err != nil { // the walk's own is used again
			return nil, next, err
		}
		list = append(list, r)
	}
	return list, reminderPlace{number: last}, err
}

// birthdaysAfter looks at the entries of the days one after the other; within a day they are in the
// order of the dates of birth (28 and 29 February may be one day) and of ids.
func birthdaysAfter(t *txn, q reminderQuery, after reminderPlace, limit int) (list []reminder, next reminderPlace, err error) {
	today := t.dayOf(t.now)
	var places []reminderPlace
	var born []id
	for on := max(today, after.day); on < today+day(q.days) && len(born) <= walkedAtOnce; on++ {
		lo, hi := t.rules.birthdaysOfDay(on)
		if last := append(orgKey('D', t.org), after.key...).byte(0); on == after.day && bytes.Compare(last, lo) > 0 {
			lo = last
		}
		if bytes.Compare(lo, hi) >= 0 {
			continue
		}
		for e, err := range t.Scan(lo, hi, false) {
			if err != nil {
				return nil, next, err
			}
			if len(e.Key) != 5+bornWidth {
				return nil, next, unreadable(e.Key)
			}
			places = append(places, reminderPlace{key: string(e.Key[5:]), day: on})
			if born = append(born, id(e.Key[7:])); len(born) > walkedAtOnce {
				break
			}
		}
	}
	list, looked, err := remindersOf(t, q, born[:min(len(born), walkedAtOnce)], limit)
	if err == nil && looked < len(born) {
		next = places[looked-1]
	}
	return list, next, err
}

// expiringAfter sorts a stretch, of at most so many entries, of the customers to whom something may
// expire, and returns the reminders after a place.
func expiringAfter(t *txn, q reminderQuery, after reminderPlace, limit, atOnce int) (list []reminder, next reminderPlace, err error) {
	last := t.dayOf(t.now) + day(q.days)
	cust, end, err := dueStretch(t, after.key, last.end(t.cfg.zone), atOnce)
	if err != nil {
		return nil, next, err
	}
	all, _, err := remindersOf(t, q, cust, len(cust)+1)
	if err != nil {
		return nil, next, err
	}
	for _, r := range all {
		if cmp.Or(cmp.Compare(t.dayOf(r.at), after.day), cmp.Compare(r.customer.Number, after.number)) <= 0 && after.number > 0 {
			continue
		}
		before, err := dueBefore(t, r.customer, after.key)
		if err != nil {
			return nil, next, err
		}
		if !before {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b reminder) int {
		return cmp.Or(cmp.Compare(t.dayOf(a.at), t.dayOf(b.at)), cmp.Compare(a.customer.Number, b.customer.Number))
	})
	if len(list) > limit {
		r := list[limit-1]
		return list[:limit], reminderPlace{after.key, t.dayOf(r.at), r.customer.Number}, nil
	}
	return list, reminderPlace{key: end}, nil
}

// dueStretch lists the customers with accounts that are due up to a moment, from an entry on, each
// once. end is the entry with which the next stretch begins; "" if there is none.
func dueStretch(t *txn, from string, last instant, atOnce int) (list []id, end string, err error) {
	seen := map[id]bool{}
	read, own := 0, 0
	for e, err := range t.Scan(append(tableDue.fixed(), from...), tableDue.fixed().instant(last+1), false) {
		if err != nil {
			return nil, "", err
		}
		if len(e.Key) != 1+dueWidth {
			return nil, "", unreadable(e.Key)
		}
		if read++; own == atOnce || read > dueReadMost {
			return list, string(e.Key[1:]), nil
		}
		if uint32In(e.Key[dueOrg:]) != t.org {
			continue
		}
		own++
		if cust := id(e.Key[dueOrg+4:]); !seen[cust] {
			seen[cust] = true
			list = append(list, cust)
		}
	}
	return list, "", nil
}

// dueBefore reports whether an account of a customer is due before an entry: then the customer was in
// the stretch of that account.
func dueBefore(t *txn, c *customer, from string) (bool, error) {
	if from == "" {
		return false, nil
	}
	for _, p := range t.cfg.Programs {
		a, err := t.points.storedAccount(c, p)
		if err != nil {
			return false, err
		}
		if a.kept && a.Due != never && bytes.Compare(t.points.dueKey(a, a.Due)[1:], []byte(from)) < 0 {
			return true, nil
		}
	}
	return false, nil
}

// A place as a page's address has it. Its first byte differs from that of a walk's cursor.

const reminderCursor = 2

// cursor is "" for the zero place.
func (p reminderPlace) cursor() string {
	if p == (reminderPlace{}) {
		return ""
	}
	b := binary.BigEndian.AppendUint32([]byte{reminderCursor}, uint32(p.day))
	b = append(binary.BigEndian.AppendUint64(b, p.number), p.key...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseReminderPlace reads a cursor of a list; "" is where it begins.
func parseReminderPlace(text string, kind noticeKind) (p reminderPlace, ok bool) {
	if text == "" {
		return p, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 1+4+8 || b[0] != reminderCursor {
		return p, false
	}
	p = reminderPlace{string(b[13:]), day(binary.BigEndian.Uint32(b[1:])), binary.BigEndian.Uint64(b[5:])}
	switch kind {
	case noticeBirthday:
		ok = len(p.key) == bornWidth && p.number == 0
	case noticeExpiring:
		ok = len(p.key) == dueWidth || p.key == "" && p.number > 0
	default:
		ok = p.key == "" && p.day == 0 && p.number > 0
	}
	return p, ok && p.cursor() == text
}
