package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
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
func faultText(lang language, f *format, e *apiError) string {
	if e.code == codeDocumentFault {
		return documentFaultText(lang, e)
	}
	name := "error." + e.code.name
	if by := name + "." + e.field; lang.has(by) {
		name = by
	}
	if by := "error.asked." + e.field; e.context[askedContext] != nil && lang.has(by) {
		name = by
	}
	if !lang.has(name) {
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
func reasonsText(lang language, reasons []string) string {
	var texts []string
	for _, reason := range reasons {
		name := "reason." + reason
		if lang.has(name + ".any") {
			name += ".any"
		}
		texts = append(texts, tr(lang, name))
	}
	return strings.Join(texts, " · ")
}

// labelledCodes are the codes whose texts say nothing of the field: its label stands before.
var labelledCodes = []errorCode{codeInvalidField, codeTooPrecise, codeTooLarge, codeUnknownField, codeAmountAmbiguous}

// labelled is what is wrong with a field, after the field's label.
func labelled(lang language, e *apiError, text string) string {
	label, own := fieldLabel(lang, e), "error."+e.code.name+"."+e.field
	if label != "" && slices.Contains(labelledCodes, e.code) && !lang.has(own) && (e.context[askedContext] == nil || !lang.has("error.asked."+e.field)) {
		return label + ": " + text
	}
	return text
}

// fieldLabel is the label of the field at fault; "" without one. A sale's externalId is its
// ticket, a customer's is a number in another system.
func fieldLabel(lang language, e *apiError) string {
	field := e.field[strings.LastIndex(e.field, ".")+1:]
	of, _ := e.context[labelsContext].(string)
	for _, name := range []string{"field." + of + "." + field, lang.labelOf(of, indexForm.ReplaceAllString(e.field, "")), "field." + field} {
		if lang.has(name) {
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
func wrongText(lang language, why sentence) string {
	if why.isChoice() {
		return tr(lang, "wrong.choice")
	}
	if format, is := fieldTexts[why.format]; is && lang.code == "es" {
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
func documentFaultText(lang language, e *apiError) string {
	text := sentenceText(lang, e.why)
	if e.field != "" {
		labels, _ := e.context["labels"].(string)
		if name := lang.labelOf(labels, indexForm.ReplaceAllString(e.field, "")); lang.has(name) {
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
func (lang language) labelOf(labels, name string) string {
	name = labels + "." + name
	if lang.has(name + ".field") {
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

var faultTexts = panelTexts{
	"error.request":    {"Número de solicitud:", "Request:"},
	"error.stored":     {"Ver lo que se guardó", "See what was stored"},
	"error.again":      {"Volver a enviar", "Send again"},
	"error.home":       {"Ir al inicio", "Go home"},
	"error.status.401": {"La sesión terminó", "The session has ended"},
	"error.status.403": {"No tienes permiso", "You do not have permission"},
	"error.status.404": {"No se encontró", "Not found"},
	"error.status.405": {"No se puede hacer así", "That cannot be done like this"},
	"error.status.409": {"Algo cambió mientras tanto", "Something has changed meanwhile"},
	"error.status.413": {"Es demasiado largo", "It is too long"},
	"error.status.415": {"No es un formulario", "It is not a form"},
	"error.status.421": {"Esta no es la dirección del panel", "This is not the panel's address"},
	"error.status.422": {"Hay un problema", "There is a problem"},
	"error.status.429": {"Demasiados intentos", "Too many attempts"},
	"error.status.500": {"Falló el servidor", "The server failed"},
	"error.status.503": {"El servidor no responde ahora", "The server does not answer now"},

	"error.asked.from": {"Debe ser una fecha y no pasar de la otra", "It must be a date, and not after the other one"},
	"error.asked.to":   {"Debe ser una fecha", "It must be a date"},

	"error.contact_known.phoneNumber": {"Este teléfono ya es de %s. No se guardó nada: abre a ese cliente o corrige el teléfono.", "This phone number is already that of %s. Nothing was stored: open that customer, or correct the number."},
	"error.contact_known.email":       {"Este email ya es de %s. No se guardó nada: abre a ese cliente o corrige el email.", "This e-mail is already that of %s. Nothing was stored: open that customer, or correct the e-mail."},
	"error.contact_known.open":        {"Abrir a este cliente", "Open this customer"},

	"error.asked_too_much":             {"Demasiadas páginas en un minuto. Vuelve a intentarlo en %s segundos.", "Too many pages in a minute. Try again in %s seconds."},
	"error.asked_too_much.one":         {"Demasiadas páginas en un minuto. Vuelve a intentarlo en 1 segundo.", "Too many pages in a minute. Try again in 1 second."},
	"error.required":                   {"Falta escribir esto", "This is missing"},
	"error.required.comment":           {"Escribe el motivo", "Write the reason"},
	"error.precondition_failed":        {"Otra persona cambió esto mientras lo editabas. Compara lo tuyo con lo de ahora y guarda otra vez.", "Somebody else changed this while you edited it. Compare yours with what is there now, and save again."},
	"error.log_in_required":            {"Entra otra vez para seguir.", "Log in again to go on."},
	"error.permission_required":        {"Tu rol no incluye esto: %s. Un administrador de la organización puede cambiarlo en Equipo.", "Your role does not include this: %s. An administrator of the organization can change that under Team."},
	"error.operator_required":          {"Esto es de quien opera el servidor.", "This is for whoever runs the server."},
	"error.other_origin":               {"El formulario no viene de esta página. Ábrela otra vez y vuelve a enviarlo.", "The form does not come from this page. Open it again and send it once more."},
	"error.other_organization":         {"El formulario es de otra organización que la que está en uso. No se cambió nada.", "The form is of another organization than the one in use. Nothing was changed."},
	"error.shown_changed":              {"Lo que revisaste ya cambió y no se hizo nada. Así es ahora: revísalo y confirma.", "What you reviewed has changed, and nothing was done. It is now as shown here: check it, and confirm."},
	"error.form_used":                  {"Este formulario ya se envió con otros datos. Lo de antes quedó guardado; esto no.", "This form was already sent with other data. What came first is stored; this is not."},
	"error.form_stale":                 {"El formulario ya no es válido. Ábrelo otra vez.", "The form is no longer valid. Open it again."},
	"error.amount_ambiguous":           {"Se puede leer de dos maneras: %s. Elige una, o escríbelo sin separador de miles.", "It can be read in two ways: %s. Choose one, or write it without a separator of thousands."},
	"error.wrong_host":                 {"Abre el panel por la dirección que dice `sello serve -panel`.", "Open the panel at the address that `sello serve -panel` names."},
	"error.route_not_found":            {"Esta página no existe.", "This page does not exist."},
	"error.method_not_allowed":         {"Esta página no se puede usar de esa manera.", "This page cannot be used that way."},
	"error.internal_error":             {"No es culpa tuya. Si vuelve a pasar, dale este número a quien administra el servidor.", "It is not your fault. If it happens again, give this number to whoever runs the server."},
	"error.full":                       {"Hay demasiadas conexiones, y lo que enviaste no se guardó. Espera unos segundos y carga la página de nuevo.", "There are too many connections, and what you sent was not stored. Wait some seconds and load the page again."},
	"error.unavailable":                {"No sabemos si se guardó. Vuelve a enviar: no se duplicará.", "We do not know whether it was stored. Send it again: it will not be doubled."},
	"error.clock_unsafe":               {"El reloj del servidor no es de fiar y no se puede escribir. Quien lo administra puede ver por qué con `sello clock`.", "The server's clock cannot be trusted, so nothing can be written. Whoever runs it can see why with `sello clock`."},
	"error.bad_request":                {"La solicitud no se entiende.", "The request cannot be understood."},
	"error.body_too_large":             {"Lo que se envió es demasiado largo.", "What was sent is too long."},
	"error.unsupported_media_type":     {"Lo que se envió no es un formulario.", "What was sent is not a form."},
	"error.customer_not_found":         {"No hay ningún cliente así.", "There is no such customer."},
	"error.transaction_not_found":      {"No hay ninguna venta así.", "There is no such sale."},
	"error.redemption_not_found":       {"No hay ningún canje así.", "There is no such redemption."},
	"error.reward_not_found":           {"No hay ninguna recompensa así.", "There is no such reward."},
	"error.program_not_found":          {"No hay ningún programa así.", "There is no such program."},
	"error.segment_not_found":          {"No hay ningún segmento así.", "There is no such segment."},
	"error.total_amount_invalid":       {"El importe debe ser un número mayor que 0", "The amount must be a number above 0"},
	"error.amount_invalid":             {"Los puntos deben ser un número mayor que 0", "The points must be a number above 0"},
	"error.insufficient_balance":       {"Puntos que hacen falta: %s. Hay: %s.", "Points needed: %s. Available: %s."},
	"error.points_budget_exceeded":     {"Puntos que puedes dar a mano al día: %s. Hoy ya diste: %s. Se vuelve a contar el %s. Quien administra el equipo puede cambiar tu límite.", "Points that you may give by hand a day: %s. Given today: %s. Counting starts again on %s. Whoever manages the team can change your limit."},
	"error.customer_inactive":          {"El cliente no está activo", "The customer is not active"},
	"error.phone_invalid":              {"El teléfono no es válido", "The phone number is not valid"},
	"error.email_invalid":              {"El email no es válido", "The e-mail is not valid"},
	"error.email_or_phone_required":    {"Hace falta un teléfono o un email", "A phone number or an e-mail is needed"},
	"error.comment_too_long":           {"El comentario no puede pasar de 500 caracteres", "The comment cannot be longer than 500 characters"},
	"error.invalid_field":              {"%s", "This is not valid: %s"},
	"error.too_precise":                {"admite como máximo 4 decimales", "it takes 4 decimals at most"},
	"error.too_large":                  {"es demasiado grande", "it is too large"},
	"error.reward_unavailable":         {"La recompensa no está disponible: %s", "The reward is not available: %s"},
	"error.reward_out_of_stock":        {"La recompensa se agotó", "The reward is out of stock"},
	"error.redemption_limit_reached":   {"El cliente ya la canjeó las veces que puede", "The customer has redeemed it as often as allowed"},
	"error.redemption_already_used":    {"El vale ya se usó", "The voucher was already used"},
	"error.redemption_cancelled":       {"El canje se canceló", "The redemption was cancelled"},
	"error.redemption_expired":         {"El vale venció", "The voucher has expired"},
	"error.return_exceeds_purchase":    {"La devolución supera lo que se compró", "The return is more than what was bought"},
	"error.item_not_purchased":         {"El artículo no está en la compra", "The item is not in the purchase"},
	"error.points_payment_unavailable": {"El programa no acepta puntos como pago", "The program does not take points as payment"},
	"error.points_payment_too_small":   {"Para pagar con puntos hacen falta al menos %s", "Paying with points takes at least %s"},
	"error.points_payment_too_large":   {"Los puntos pueden pagar de esta venta hasta %s (%s)", "Points can pay up to %s (%s) of this sale"},
	"error.points_payment.none":        {"Esta venta es muy pequeña para pagarla con puntos", "This sale is too small for paying with points"},
	"error.points_payment_step":        {"Los puntos para pagar se usan en múltiplos de %s", "Points for paying come in steps of %s"},
	"error.points_payment_late":        {"Una venta de antes no se puede pagar con puntos", "A sale of before cannot be paid with points"},
	"error.hold_exceeded":              {"La retención es de %s", "The hold is of %s"},
	"error.hold_not_found":             {"Retención no encontrada", "Hold not found"},
	"error.hold_closed":                {"La retención ya terminó", "The hold has ended"},
	"error.too_many_holds":             {"El cliente tiene demasiadas retenciones", "The customer has too many holds"},
	"error.price_changed":              {"El precio de la recompensa cambió: ahora cuesta %s", "The price of the reward has changed: now it costs %s"},
	"error.external_id_undone":         {"La venta de este ticket se deshizo. No se registró nada.", "The sale of this receipt was undone. Nothing was registered."},
	"error.birth_date_invalid":         {"La fecha de nacimiento debe ser AAAA-MM-DD o DD/MM/AAAA y no futura, o MM-DD o DD/MM sin año", "The date of birth must be YYYY-MM-DD or DD/MM/YYYY and not in the future, or MM-DD or DD/MM without a year"},
}
