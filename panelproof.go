package main

// Some pages and forms need the password once more, unless it was given in the last ten
// minutes: a session that is left open must not be enough to make people, keys and secrets,
// to change the configuration, or to carry data away. A page with a form to fill in asks
// before it shows the form, except where the form is reviewed first. A form that comes without
// the password is kept, and shown once it is given.

// A proveView asks for the password.
type proveView struct {
	To    string // where it leads
	File  bool   // that is a file: browsers save it and stay on the page
	Ready bool   // the file can be had now
	Kept  *keptForm
}

// fileField says that what follows is a file.
const fileField = "archivo"

// needProof leads to the page that asks for the password, unless it was given lately: ok is
// false then. The page of a form that was sent is shown in any case, with what was typed.
func (v *panelRequest) needProof() (to redirection, ok bool) {
	if v.posted != nil || v.member.hasProved(v.request.now) {
		return to, true
	}
	return redirection{withQuery(provePath, []pair{{"ir", v.r.URL.RequestURI()}})}, false
}

// needProofOfFile is needProof of a page that is a file.
func (v *panelRequest) needProofOfFile() (to redirection, ok bool) {
	if to, ok = v.needProof(); !ok {
		to.to += "&" + fileField + "=1"
	}
	return to, ok
}

// askProof asks for the password in place of what a form would have done. It reports whether
// there was anything to keep.
func (v *panelRequest) askProof() bool {
	kept := v.keepForm(mostCarried)
	return kept != nil && v.showFirst(codeProofRequired, "prove", &proveView{Kept: kept})
}

var proofTexts = panelTexts{
	"title.prove":          {"Confirma que eres tú", "Confirm that it is you"},
	"prove.about":          {"Para esto hace falta tu contraseña otra vez.", "This needs your password once more."},
	"prove.go":             {"Seguir", "Go on"},
	"prove.ready":          {"Gracias. El archivo se puede descargar en los próximos 10 minutos.", "Thank you. The file can be downloaded in the next 10 minutes."},
	"prove.download":       {"Descargar", "Download"},
	"error.proof_required": {"Para esto hace falta tu contraseña otra vez: abre la página de nuevo.", "This needs your password once more: open the page again."},
}
