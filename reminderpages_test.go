package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

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
