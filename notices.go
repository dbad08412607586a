package main

// The event points.expiring announces points noticeTime before they expire. There is one for all
// lots of an account that expire at one moment (contract §17). A notice is one of the moments at
// which an account changes by itself; the account's record has the first of these moments (Due).
// All notices from that moment until now are sent now. Lots that come or become available less
// than noticeTime before they expire are not announced.
//
// An old sale can make an account due, by points that have already expired, at a moment up to
// which notices were sent. Only then does the record keep how far they were sent (account.Told).

// noticeTime is how long before their expiry points are announced, in milliseconds.
const noticeTime = 7 * 24 * 60 * 60 * 1000

// noticeOf returns the next moment at which a lot that expires changes its account: the lot's
// notice, or its expiry if the notice is not after told.
func noticeOf(expires, told instant) instant {
	if expires-noticeTime > told {
		return expires - noticeTime
	}
	return expires
}

// firstNotice returns the first moment after a given one at which points are announced.
func (pt *pointsTxn) firstNotice(a *account, after instant) (instant, error) {
	list, err := pt.expiringFrom(a, after+noticeTime+1, 1)
	if err != nil || len(list) == 0 {
		return never, err
	}
	return list[0].ExpiresAt - noticeTime, nil
}

// tellExpiring announces the points with a notice after a.Told and up to now, except points that
// have expired since.
func (pt *pointsTxn) tellExpiring(a *account) error {
	for from := a.Told + noticeTime + 1; ; {
		list, err := pt.expiringFrom(a, from, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].ExpiresAt > pt.t.now+noticeTime {
			a.Told = max(a.Told, pt.t.now)
			return nil
		}
		e := list[0]
		if e.ExpiresAt > pt.t.began { // not long ago, as of an old sale that is imported
			if err := pt.tellOf(a, e); err != nil {
				return err
			}
		}
		from = e.ExpiresAt + 1
	}
}

// tellOf announces points.
func (pt *pointsTxn) tellOf(a *account, e expiring) error {
	return pt.t.feed.emit(eventPointsExpiring, a.customer.Number, uint64(a.program.Number), uint64(e.ExpiresAt), uint64(e.Amount))
}
