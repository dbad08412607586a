package main

// Points that will expire are announced by points.expiring, noticeTime before: once for all
// lots of an account that expire at one moment (contract §17). That is one of the moments
// at which an account changes by itself; its record says the first of them. What has a notice
// between that moment and now is announced now. Lots that come or become available with less
// time than that left are not announced.
//
// An old sale can make an account due before what was announced, by points that have expired
// already. The record says then until when that was (account.Told).

// noticeTime is how long before their expiry points are announced, in milliseconds.
const noticeTime = 7 * 24 * 60 * 60 * 1000

// noticeOf returns when an account whose lot expires changes next because of it: at its
// notice, or at its expiry if the notice is not after told.
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

// tellExpiring announces the points whose notice was after a.Told, by now. What has expired
// meanwhile is not announced.
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
			if err := pt.t.feed.tell(eventPointsExpiring, a.customer.Number, uint64(a.program.Number), uint64(e.ExpiresAt), uint64(e.Amount)); err != nil {
				return err
			}
		}
		from = e.ExpiresAt + 1
	}
}
