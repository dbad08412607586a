package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reminded shop has points that expire after a year, a tier by purchases, and a card of 3 stamps
// that redeems itself.
func newRemindedShop(t *testing.T) *shop {
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply([]byte(`{"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
		"profile":{"country":"MX"},"settings":{"timezone":"America/Mexico_City","currency":"MXN"}},
		"programs":[{"key":"club","name":"Club","default":true,"currency":"Lunas","expiry":{"days":60},
			"tierBasis":{"metric":"Purchases"},"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":4}],
			"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}]},
			{"key":"sellos","name":"Sellos","join":"All","rules":[{"key":"sello","name":"Sello","points":1}]}],
		"rewards":[{"key":"cafe","program":"sellos","name":"Café","pointsCost":3,"fulfilment":"Voucher","status":"Active","autoIssue":true}]}`))
	s.org = 1
	return s
}

func (s *shop) consents(cust id, a consentAnswer) {
	must(s, func(t *txn) (any, error) { return t.customers.patch(cust, customerPatch{Marketing: &a}, nil) })
}

// reminded lists who is told something, and what.
func (s *shop) reminded(kind noticeKind, days int) string {
	return ask(s, func(t *txn) (string, error) {
		list, next, err := remindersAfter(t, reminderQuery{kind, days}, reminderPlace{}, 20)
		if next != (reminderPlace{}) {
			err = fmt.Errorf("there are others after %v", next)
		}
		var all []string
		for _, r := range list {
			told := r.customer.name() + " " + r.goal
			switch kind {
			case noticeExpiring:
				told += fmt.Sprint(r.points, " on ", t.dayOf(r.at).date().Format(time.DateOnly))
			case noticeBirthday:
				told += r.birthday.date().Format(time.DateOnly)
			}
			all = append(all, told)
		}
		return strings.Join(all, "; "), err
	})
}

// TestReminders: who is among the customers to tell something, and only with a yes.
func TestReminders(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana, eva, noe := s.customer("ana"), s.customer("eva"), s.customer("noé")
	for _, cust := range []id{ana, noe} {
		s.consents(cust, consentGiven)
	}
	s.consents(eva, consentRefused)
	for _, cust := range []id{ana, eva} {
		s.buy(cust, "100")
	}
	same(t, "nothing yet", s.reminded(noticeExpiring, 30), "")
	s.pass(40 * 24 * time.Hour)
	same(t, "in a month", s.reminded(noticeExpiring, 30), "ana 10 on 2026-05-01")
	same(t, "not in a week", s.reminded(noticeExpiring, 7), "")
	same(t, "nothing is almost there", s.reminded(noticeAlmost, 0), "")
	s.buy(ana, "20") // 2 stamps of 3
	same(t, "a stamp is missing", s.reminded(noticeAlmost, 0), "ana Café")
	s.buy(ana, "20") // the card is full, and empty again; 3 purchases of 4
	same(t, "a purchase is missing", s.reminded(noticeAlmost, 0), "ana Oro")
	for cust, date := range map[id]string{ana: "1990-04-12", eva: "1990-04-12", noe: "2000-02-29"} {
		b, _ := parseBirthDate(date)
		must(s, func(t *txn) (any, error) { return t.customers.patch(cust, customerPatch{BirthDate: &b}, nil) })
	}
	same(t, "on the day after", s.reminded(noticeBirthday, 7), "ana 2026-04-12")
	s.setClock("2027-02-25T18:00:00Z")
	same(t, "of 29 February", s.reminded(noticeBirthday, 7), "noé 2027-02-28")
	s.consents(noe, consentUnknown)
	same(t, "without consent", s.reminded(noticeBirthday, 7), "")
}

// TestNoticesPage: each row has links with the shop's text, filled in.
func TestNoticesPage(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	cust := s.customer("ana")
	s.consents(cust, consentGiven)
	must(s, func(t *txn) (any, error) {
		return t.customers.patch(cust, customerPatch{Phone: new("+525511112222"), Email: new("ana+x&y@example.com")}, nil)
	})
	s.buy(cust, "100")
	s.pass(55 * 24 * time.Hour)
	d := newPanelShopOn(s)
	page := html.UnescapeString(d.open(roleManager, noticesPath).Body.String())
	for _, want := range []string{
		"https://wa.me/525511112222?text=Hola%2C%20ana%3A%20el%201%20may%202026%20vencen%2010%20Lunas.%20Te%20esperamos%20en%20Caf%C3%A9%20Luna.",
		"mailto:ana+x%26y@example.com?subject=Caf%C3%A9%20Luna&body=Hola%2C%20ana", "hasta el 1 may 2026: 10 Lunas",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, mainOf(page))
		}
	}
	s.apply([]byte(strings.Replace(string(s.exportedDocument()), `"currency":"MXN"`, `"currency":"MXN","notices": {"expiring": "{nombre}, {saldo} y <b>{puntos}</b>\nHasta pronto"}`, 1)))
	if page := d.open(roleManager, noticesPath).Body.String(); !strings.Contains(page, "ana, 10 y &lt;b&gt;10&lt;/b&gt;") || !strings.Contains(page, "%3C%2Fb%3E%0D%0AHasta%20pronto") || !strings.Contains(page, "%3C%2Fb%3E%0AHasta%20pronto") {
		t.Error(mainOf(page))
	}
	if page := d.open(roleManager, noticesPath+"?que=cumpleanos").Body.String(); !strings.Contains(page, "No hay a quién escribir.") {
		t.Error(mainOf(page))
	}
}

// TestRemindersOfOneDay: what expires later on the day that is named belongs to it.
func TestRemindersOfOneDay(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana := s.customer("ana")
	s.consents(ana, consentGiven)
	s.buy(ana, "100")
	s.pass(time.Hour)
	s.buy(ana, "500")
	s.pass(24 * time.Hour)
	s.buy(ana, "20")
	s.pass(54 * 24 * time.Hour)
	same(t, "in a week", s.reminded(noticeExpiring, 7), "ana 60 on 2026-05-01")
}

// remindedBy reads a list page by page, each by the cursor of the one before.
func (s *shop) remindedBy(kind noticeKind, days, limit int) string {
	s.Helper()
	return s.remindedOn(kind, func(t *txn, after reminderPlace) ([]reminder, reminderPlace, error) {
		return remindersAfter(t, reminderQuery{kind, days}, after, limit)
	})
}

// remindedOn is remindedBy with the pages that a function makes.
func (s *shop) remindedOn(kind noticeKind, paged func(*txn, reminderPlace) ([]reminder, reminderPlace, error)) string {
	s.Helper()
	var all []string
	for cursor, pages := "", 0; ; pages++ {
		after, ok := parseReminderPlace(cursor, kind)
		if !ok || pages > 50 {
			s.Fatalf("page %d, at %q", pages, cursor)
		}
		page := ask(s, func(t *txn) ([]string, error) {
			list, next, err := paged(t, after)
			names := []string{next.cursor()}
			for _, r := range list {
				names = append(names, r.customer.name())
			}
			return names, err
		})
		cursor, all = page[0], append(all, page[1:]...)
		if cursor == "" {
			return strings.Join(all, " ")
		}
	}
}

// TestRemindersInOrder: what expires is in the order of the days, birthdays are from today on, across
// the end of a year, and pages cut neither list apart.
func TestRemindersInOrder(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	people := map[string]id{}
	for _, name := range []string{"ana", "eva", "luz", "mia", "noé"} {
		people[name] = s.customer(name)
		s.consents(people[name], consentGiven)
	}
	for _, name := range []string{"luz", "ana", "noé", "eva"} {
		s.buy(people[name], "100")
		s.pass(24 * time.Hour)
	}
	s.buy(people["mia"], "100")
	s.buy(people["luz"], "100") // later than what luz has
	s.buy(people["ana"], "100")
	s.pass(50 * 24 * time.Hour)
	for limit := 1; limit < 7; limit++ {
		same(t, fmt.Sprint("what expires, by ", limit), s.remindedBy(noticeExpiring, 30, limit), "luz ana noé eva mia")
	}
	for atOnce := 1; atOnce < 6; atOnce++ {
		got := s.remindedOn(noticeExpiring, func(t *txn, after reminderPlace) ([]reminder, reminderPlace, error) {
			return expiringAfter(t, reminderQuery{noticeExpiring, 30}, after, 2, atOnce)
		})
		same(t, fmt.Sprint("what expires, in stretches of ", atOnce), got, "luz ana noé eva mia")
	}
	same(t, "in a week", s.remindedBy(noticeExpiring, 7, 2), "luz ana")
	s.setClock("2026-12-29T18:00:00Z")
	for name, date := range map[string]string{"ana": "1990-01-02", "eva": "1980-12-31", "luz": "2001-12-29", "mia": "1990-01-05", "noé": "1999-12-31"} {
		b, _ := parseBirthDate(date)
		must(s, func(t *txn) (any, error) { return t.customers.patch(people[name], customerPatch{BirthDate: &b}, nil) })
	}
	for limit := 1; limit < 6; limit++ {
		same(t, fmt.Sprint("birthdays, by ", limit), s.remindedBy(noticeBirthday, 7, limit), "luz eva noé ana")
	}
	s.consents(people["noé"], consentRefused)
	same(t, "of who said yes", s.remindedBy(noticeBirthday, 7, 1), "luz eva ana")
}

// TestDueStretch: a stretch has the customers of this organization's entries from one on, each once,
// and a customer of an entry before it was in an earlier one.
func TestDueStretch(t *testing.T) {
	t.Parallel()
	s := newRemindedShop(t)
	ana, eva := s.customer("ana"), s.customer("eva")
	s.buy(ana, "100")
	s.pass(time.Hour)
	s.buy(eva, "100")
	ask(s, func(t *txn) (any, error) {
		list, end, err := dueStretch(t, "", t.now.add(90*24*time.Hour), dueAtOnce)
		same(s, "all", list, []id{ana, eva})
		same(s, "the end", end, "")
		if err != nil {
			return nil, err
		}
		c, err := t.customers.get(eva)
		if err != nil {
			return nil, err
		}
		a, err := t.points.storedAccount(c, t.cfg.Programs[0])
		if err != nil {
			return nil, err
		}
		from := string(t.points.dueKey(a, a.Due)[1:])
		if list, _, err = dueStretch(t, from, t.now.add(90*24*time.Hour), dueAtOnce); err != nil || !slices.Equal(list, []id{eva}) {
			s.Error("from eva's entry on", list, err)
		}
		for cust, want := range map[id]bool{ana: true, eva: false} {
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			if before, err := dueBefore(t, c, from); err != nil || before != want {
				s.Error(c.FirstName, before, err)
			}
		}
		return nil, nil
	})
}

// TestReminderCursor: each kind takes its own cursors alone, to the letter.
func TestReminderCursor(t *testing.T) {
	t.Parallel()
	born, due := strings.Repeat("b", bornWidth), strings.Repeat("d", dueWidth)
	for _, test := range []struct {
		kind noticeKind
		p    reminderPlace
		ok   bool
	}{
		{noticeBirthday, reminderPlace{born, 20000, 0}, true},
		{noticeBirthday, reminderPlace{due, 20000, 0}, false},
		{noticeExpiring, reminderPlace{"", 20000, 7}, true},
		{noticeExpiring, reminderPlace{due, 0, 0}, true},
		{noticeExpiring, reminderPlace{born, 0, 0}, false},
		{noticeAlmost, reminderPlace{"", 0, 7}, true},
		{noticeAlmost, reminderPlace{"", 20000, 7}, false},
	} {
		p, ok := parseReminderPlace(test.p.cursor(), test.kind)
		if ok != test.ok || ok && p != test.p {
			t.Errorf("%s %v: %v %v", test.kind, test.p, p, ok)
		}
	}
	for _, text := range []string{"x", "AgAA", *cursorOf(7)} {
		if _, ok := parseReminderPlace(text, noticeAlmost); ok {
			t.Errorf("%q is taken", text)
		}
	}
}
