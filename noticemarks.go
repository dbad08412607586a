package main

import "slices"

// Who wrote to a customer by hand, and about what (contract §31): the panel's Avisos marks it, so that
// two of the team do not write the same. The customer's record has the last time of each kind. It is
// no change of the customer: clients of the API do not see it, but for the export of all that is kept
// about a person, and it leaves no event and no entry in the audit log, which would keep it for longer.

// A writtenNotice says that a member of the team wrote to a customer.
type writtenNotice struct {
	Kind noticeKind
	At   instant
	User id
}

// noticeKinds are in the order that the file depends on.
var noticeKinds = []string{string(noticeExpiring), string(noticeBirthday), string(noticeAlmost)}

func (w *writtenNotice) fields(c *coder) {
	c.word(noticeKinds, (*string)(&w.Kind))
	c.instant(&w.At)
	c.id(&w.User)
}

// writtenTime is how long it is known, in milliseconds: 60 days.
const writtenTime = 60 * 24 * 60 * 60 * 1000

// isOld reports whether it is no longer known.
func (w *writtenNotice) isOld(now instant) bool { return w.At <= now-writtenTime }

// writtenOf is what is known of a kind; ok is false if nothing is.
func writtenOf(list []writtenNotice, kind noticeKind, now instant) (w writtenNotice, ok bool) {
	i := slices.IndexFunc(list, func(w writtenNotice) bool { return w.Kind == kind && !w.isOld(now) })
	if i < 0 {
		return w, false
	}
	return list[i], true
}

// withWritten returns a list without what is old and without a kind, and with more.
func withWritten(list []writtenNotice, kind noticeKind, now instant, more ...writtenNotice) []writtenNotice {
	var kept []writtenNotice
	for _, w := range list {
		if w.Kind != kind && !w.isOld(now) {
			kept = append(kept, w)
		}
	}
	return append(kept, more...)
}

// laterWritten joins the lists of two customers: the later one of each kind.
func laterWritten(a, b []writtenNotice) (list []writtenNotice) {
	for _, kind := range noticeKinds {
		var last writtenNotice
		for _, w := range slices.Concat(a, b) {
			if string(w.Kind) == kind && w.At > last.At {
				last = w
			}
		}
		if last.At > 0 {
			list = append(list, last)
		}
	}
	return list
}
