package main

import "strings"

// The lock of the till. A locked session gets one page, whatever it asks for: who it is of, and
// a field for the PIN. That page keeps where the member was going, or the form that was sent.

func lockArea() panelArea {
	return panelArea{[]panelPage{
		{pinPath, "till", "pin", pinPage},
		{unlockPath, anyone, "lock", lockPage},
	}, []panelForm{
		{path: pinPath, need: "till", from: pinPath, run: runPIN},
		{path: pinPath + "/quitar", need: "till", from: pinPath, run: runDropPIN},
		{path: lockPath, need: "till", from: pinPath, run: runLock},
		{path: unlockPath, need: anyone, from: unlockPath, most: mostCarried, run: runUnlock},
	}}
}

func lockPage(v *panelRequest) (any, fillFunc) {
	switch {
	case !v.member.locked:
		return redirection{v.placeAfter(v.param("ir"))}, nil
	case v.posted != nil:
		return &lockView{To: v.typedText("ir"), Kept: v.keptForm()}, nil
	}
	return &lockView{To: v.param("ir")}, nil
}

// runLock locks the session, which goes on at the till. Without a PIN it asks for one first.
func runLock(v *panelRequest) error {
	if !v.member.session.hasPIN() {
		return v.redirect(withQuery(pinPath, []pair{{lockField, "1"}}))
	}
	if err := v.change(func(t *txn) error { return t.people.lock(v.member, v.panel.sessionLimits) }); err != nil {
		return err
	}
	return v.redirect("/panel/caja")
}

func runUnlock(v *panelRequest) error {
	if !v.member.locked { // another tab did
		return v.goOn()
	}
	got, err := v.tryPIN("pin", func(t *txn, s *session) error { return t.people.unlock(s) })
	if err != nil || got != pinRight {
		return err
	}
	v.member.locked = false
	return v.goOn()
}

// tryPIN tries the PIN in a field, and answers unless it is right. then changes the session.
func (v *panelRequest) tryPIN(field string, then func(*txn, *session) error) (got pinTry, err error) {
	m := v.member
	right, err := m.session.PIN.matches(strings.TrimSpace(v.typedText(field)))
	if err != nil {
		return got, err
	}
	err = v.change(func(t *txn) (err error) {
		got, err = t.people.tryPIN(m, v.panel.sessionLimits, right, func(s *session) error { return then(t, s) })
		return err
	})
	if err != nil || got == pinRight {
		return got, err
	}
	v.api.logins.noteRefused(&claim{user: m.user})
	if got == pinEnded {
		return got, v.endHere()
	}
	v.faults = append(v.faults, publicError(panelFault(errPINWrong)).on(field))
	return got, v.refused()
}

// endHere shows the page for logging in, as the session has ended. What the lock's page kept
// goes on with it, unless it is more than somebody who is not logged in may send.
func (v *panelRequest) endHere() error {
	view := &logInView{Ended: true, To: v.placeAfter(v.typedText("ir")), Kept: v.keptForm()}
	if v.r.ContentLength > maxForm {
		view.Kept, view.Lost = nil, true
	}
	v.member, v.cfg, v.shops = nil, nil, nil
	v.setCookie(v.panel.address.cookie(""))
	if !v.showFirst(codeLogInRequired, "login", view) {
		return newError(codeLogInRequired)
	}
	return nil
}

// A pinView is the page where a PIN is chosen, changed or taken away.
type pinView struct {
	There bool
	Lock  bool // the session locks at once
}

// lockField says that the session locks as soon as it has a PIN.
const lockField = "bloquear"

func pinPage(v *panelRequest) (any, fillFunc) {
	view := &pinView{v.member.session.hasPIN(), v.param(lockField) != ""}
	if v.posted != nil {
		view.Lock = v.typedText(lockField) != ""
	}
	return view, nil
}

func runPIN(v *panelRequest) error {
	pin, lock := strings.TrimSpace(v.typedText("pin")), v.typedText(lockField) != ""
	err := checkPIN(pin)
	if err == nil && strings.TrimSpace(v.typedText("pinAgain")) != pin {
		err = errPINDiffers
	}
	if err != nil {
		return v.told(err)
	}
	h, err := newPIN(pin, v.api.engine.seed())
	if err != nil {
		return err
	}
	if v.member.session.hasPIN() {
		got, err := v.tryPIN("oldPin", func(t *txn, s *session) error { return t.people.setPIN(s, h, lock) })
		if err != nil || got != pinRight {
			return err
		}
	} else if err := v.change(func(t *txn) error { return t.people.choosePIN(v.member, v.panel.sessionLimits, h, lock) }); err != nil {
		return v.told(err)
	}
	if lock {
		return v.redirect("/panel/caja")
	}
	return v.redirect("/panel/cuenta")
}

func runDropPIN(v *panelRequest) error {
	if !v.member.session.hasPIN() {
		return v.redirect("/panel/cuenta")
	}
	got, err := v.tryPIN("dropPin", func(t *txn, s *session) error { return t.people.setPIN(s, passwordHash{}, false) })
	if err != nil || got != pinRight {
		return err
	}
	return v.redirect("/panel/cuenta")
}
