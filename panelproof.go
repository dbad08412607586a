package main

// Some pages and forms need the password once more, unless it was given in the last ten
// minutes: a session that is left open must not be enough to make people, keys and secrets,
// to change the configuration, or to carry data away. A page with a form to fill in asks
// before it shows the form, except where the form is reviewed first. A form that comes without
// the password is kept, and shown once it is given.

// A proveView asks for the password.
type proveView struct {
	To    string // where it leads
	Ready bool   // that is a file, which can be had now: browsers save it and stay on the page
	Kept  *keptForm
}

// needProof leads to the page that asks for the password, unless it was given lately: ok is
// false then. The page of a form that was sent is shown in any case, with what was typed.
func (v *panelRequest) needProof() (to redirection, ok bool) {
	if v.posted != nil || v.member.hasProved(v.request.now) {
		return to, true
	}
	return redirection{withQuery(provePath, []pair{{"ir", v.r.URL.RequestURI()}})}, false
}

// askProof asks for the password in place of what a form would have done. It reports whether
// there was anything to keep.
func (v *panelRequest) askProof() bool {
	kept := v.keepForm(mostCarried)
	return kept != nil && v.showFirst(codeProofRequired, "prove", &proveView{Kept: kept})
}

// fileForm is a form that is answered by a file with data of the organization. Its fields are what a
// page's query is. It is no page, since it leaves an entry in the audit log, which a link on another
// site must not (contract §31).
func fileForm(path string, need permission, from string, show func(*panelRequest) (*download, fillFunc)) panelForm {
	return panelForm{path: path, need: need, from: from, proof: true, file: true, run: func(v *panelRequest) error {
		if v.carried {
			return v.offerFile()
		}
		v.request.Request, v.request.query = v.r, query{input{new(fault), sent{object: v.posted}}}
		v.posted = nil
		file, fill := show(v)
		if err := v.fill(fill); err != nil {
			return err
		}
		if err := v.change(func(t *txn) error { return t.audit.note(auditDataExported, file.data, nil) }); err != nil {
			return err
		}
		return v.sendFile(file)
	}}
}

// offerFile shows the form that has a file, where another form has carried it: browsers that save a file
// stay on the page that asked for something else.
func (v *panelRequest) offerFile() error {
	view := &proveView{Ready: true, Kept: v.keepForm(maxForm)}
	v.posted = nil
	return v.render("prove", view)
}
