package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sello/internal/texts"
)

// What is wrong, in words for people. An error of the API has its text here by its code, and
// by its field where that says more; without, the API's own text stands.

// Errors that only the panel has.
var (
	codeLogInRequired      = errorCode{"log_in_required", http.StatusUnauthorized, ""}
	codePermissionRequired = errorCode{"permission_required", http.StatusForbidden, ""}
	codeOtherOrigin        = errorCode{"other_origin", http.StatusForbidden, ""}
	codeOtherOrganization  = errorCode{"other_organization", http.StatusConflict, ""}
	codeFormUsed           = errorCode{"form_used", http.StatusConflict, ""} // with other fields
	codePlanAlone          = errorCode{"plan_alone", http.StatusForbidden, errPlanAlone.message}
	codeRequired           = errorCode{"required", http.StatusBadRequest, ""}
	codeFormStale          = errorCode{"form_stale", http.StatusBadRequest, ""}
	codeAmountAmbiguous    = errorCode{"amount_ambiguous", http.StatusBadRequest, ""}
	codeTooManyTries       = errorCode{"too_many_tries", http.StatusTooManyRequests, ""} // of a password or a code
	codeContactKnown       = errorCode{"contact_known", http.StatusConflict, ""}         // of an enrolment by hand: a customer has it
	codeAskedTooMuch       = errorCode{"asked_too_much", http.StatusTooManyRequests, ""} // by a session
	codeWrongHost          = errorCode{"wrong_host", http.StatusMisdirectedRequest, ""}
	codeDocumentFault      = errorCode{"document_fault", http.StatusBadRequest, ""} // of a form that changes the configuration
)

// faultText is an error in words.
func faultText(lang texts.Language, f *format, e *apiError) string {
	if e.code == codeDocumentFault {
		return documentFaultText(lang, e)
	}
	name := "error." + e.code.name
	if by := name + "." + e.field; lang.Has(by) {
		name = by
	}
	if by := "error.asked." + e.field; e.context[askedContext] != nil && lang.Has(by) {
		name = by
	}
	if !lang.Has(name) {
		return e.message
	}
	text := tr(lang, name)
	if !strings.Contains(text, "%s") {
		return labelled(lang, e, text)
	}
	switch e.code {
	case codeTooManyTries, codeAskedTooMuch:
		return counted(lang, name, f.Number(figure(e, "seconds")))
	case codeInsufficientBalance:
		return tr(lang, name, f.Number(figure(e, "required")), f.Number(figure(e, "available")))
	case codeRewardUnavailable:
		reasons, _ := e.context["reasons"].([]string)
		return tr(lang, name, reasonsText(lang, reasons))
	case codePriceChanged:
		return tr(lang, name, f.Number(figure(e, "pointsCost")))
	case codeHoldExceeded:
		return tr(lang, name, f.Number(figure(e, "amount")))
	case codePointsPaymentTooSmall:
		return tr(lang, name, f.Number(figure(e, "minPoints")))
	case codePointsPaymentTooLarge:
		if figure(e, "maxPoints") == 0 {
			return tr(lang, "error.points_payment.none")
		}
		return tr(lang, name, f.Number(figure(e, "maxPoints")), f.Money(figure(e, "maxAmount")))
	case codePointsPaymentStep:
		return tr(lang, name, f.Number(figure(e, "step")))
	case codePermissionRequired:
		needed, _ := e.context["permission"].(string)
		if permission(needed) == operates {
			return tr(lang, "error.operator_required")
		}
		return tr(lang, name, tr(lang, "permission."+needed))
	case codeContactKnown:
		whose, _ := e.context["whose"].(string)
		return tr(lang, name, whose)
	case codeAmountAmbiguous:
		return labelled(lang, e, tr(lang, name, strings.Join(f.readings(e), " / ")))
	case codePointsBudgetExceeded:
		again, _ := e.context["resetAt"].(instant)
		return tr(lang, name, f.Number(figure(e, "limit")), f.Number(figure(e, "used")), f.Moment(again))
	case codeInvalidField:
		return labelled(lang, e, wrongText(lang, e.why))
	}
	return text
}

// reasonsText is why a reward cannot be had, without the figures and names that the till's list
// of rewards has.
func reasonsText(lang texts.Language, reasons []string) string {
	var texts []string
	for _, reason := range reasons {
		name := "reason." + reason
		if lang.Has(name + ".any") {
			name += ".any"
		}
		texts = append(texts, tr(lang, name))
	}
	return strings.Join(texts, " · ")
}

// labelledCodes are the codes whose texts say nothing of the field: its label stands before.
var labelledCodes = []errorCode{codeInvalidField, codeTooPrecise, codeTooLarge, codeUnknownField, codeAmountAmbiguous}

// labelled is what is wrong with a field, after the field's label.
func labelled(lang texts.Language, e *apiError, text string) string {
	label, own := fieldLabel(lang, e), "error."+e.code.name+"."+e.field
	if label != "" && slices.Contains(labelledCodes, e.code) && !lang.Has(own) && (e.context[askedContext] == nil || !lang.Has("error.asked."+e.field)) {
		return label + ": " + text
	}
	return text
}

// fieldLabel is the label of the field at fault; "" without one. A sale's externalId is its
// ticket, a customer's is a number in another system.
func fieldLabel(lang texts.Language, e *apiError) string {
	field := e.field[strings.LastIndex(e.field, ".")+1:]
	of, _ := e.context[labelsContext].(string)
	for _, name := range []string{"field." + of + "." + field, labelOf(lang, of, indexForm.ReplaceAllString(e.field, "")), "field." + field} {
		if lang.Has(name) {
			return tr(lang, name)
		}
	}
	return ""
}

// labelsContext says what a form is of, where fields of one name have several labels.
const labelsContext = "labels"

// fieldTexts are what pages say of fields in other Spanish than the API, by its formats.
var fieldTexts = map[string]string{
	"debe ser mayor a 0":                 "debe ser mayor que 0",
	"debe ser mayor o igual a 0":         "debe ser 0 o más",
	"es requerido":                       "falta",
	"debe ser una fecha ISO 8601":        "debe ser una fecha, como 2027-12-31",
	"contiene caracteres no permitidos":  "tiene caracteres que no se permiten",
	"no puede superar los %d caracteres": "no puede pasar de %d caracteres",
}

// wrongText is why a field is wrong, in the page's language. The API lists what a field may be
// by its own words; a form has a list with the words of people.
func wrongText(lang texts.Language, why sentence) string {
	if why.isChoice() {
		return tr(lang, "wrong.choice")
	}
	if format, is := fieldTexts[why.format]; is && lang.Code == "es" {
		why.format = format
	}
	return sentenceText(lang, why)
}

// readings are the two readings of an amount as the country writes them.
func (f *format) readings(e *apiError) (texts []string) {
	both, _ := e.context["readings"].([]string)
	for _, literal := range both {
		if d, err := parseDecimal(literal); err == nil {
			texts = append(texts, f.Money(d))
		}
	}
	return texts
}

// allFaults are all faults that an error tells of.
func allFaults(err error) []*apiError {
	e := publicError(err)
	if len(e.all) > 0 {
		return e.all
	}
	return []*apiError{e}
}

var indexForm = regexp.MustCompile(`\[\d+\]`)

// documentFaultText is a fault of a document in words: of a control, by its label.
func documentFaultText(lang texts.Language, e *apiError) string {
	text := sentenceText(lang, e.why)
	if e.field != "" {
		labels, _ := e.context["labels"].(string)
		if name := labelOf(lang, labels, indexForm.ReplaceAllString(e.field, "")); lang.Has(name) {
			if e.why.isChoice() {
				text = tr(lang, "wrong.choice")
			}
			return tr(lang, name) + ": " + text
		}
	}
	if path, _ := e.context["path"].(string); path != "" {
		return path + ": " + text
	}
	return text
}

// labelOf is the name of a control's label. Where a text is called as the control would be,
// it is "….field".
func labelOf(lang texts.Language, labels, name string) string {
	name = labels + "." + name
	if lang.Has(name + ".field") {
		return name + ".field"
	}
	return name
}

// askedContext marks an error of the query of a page, as against one of a form: the fields
// of some have one name and differ.
const askedContext = "asked"

// figure is a number that an error's context has.
func figure(e *apiError, name string) decimal {
	d, _ := e.context[name].(decimal)
	return d
}

// logInPath is the page for logging in, which leads to the page that was asked for.
func logInPath(asked *url.URL) string {
	if asked.Path == "/panel" {
		return "/panel/entrar"
	}
	return "/panel/entrar?" + url.Values{"ir": {asked.RequestURI()}}.Encode()
}
