package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sello/internal/texts"
)

// Errors as the panel says them, in the member's language: an error of the API by its code, and by
// its field where that says more; if there is no such text, the API's own stands. Also the faults of
// documents, in words.

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

// sentenceTexts are the faults and warnings of documents and the faults of fields in English, by
// their formats in Spanish, with the same verbs in the same order.
var sentenceTexts = map[string]string{
	"no va con now":                  "it does not go with now",
	"es requerido, o now":            "it is required, or now",
	"no puede distar más de 10 años": "it must not be more than 10 years away",
	"debe ser una duración ISO 8601, como P90D o PT36H, de 10 años como máximo": "it must be an ISO 8601 duration, such as P90D or PT36H, of 10 years at most",
	"falta":      "it is missing",
	"está vacío": "it is empty",
	"falta %q; un programa no se puede quitar":                 "%q is missing, and a program cannot be removed",
	"campo desconocido":                                        "unknown field",
	"contiene caracteres no permitidos":                        "it has characters that are not allowed",
	"el primer nivel empieza en 0":                             "the first tier begins at 0",
	"demasiados niveles":                                       "it is nested too deeply",
	"se repite":                                                "it is there twice",
	"%q está repetida":                                         "%q is there twice",
	"%q está repetido":                                         "%q is there twice",
	"línea %d, columna %d: %s":                                 "line %d, column %d: %s",
	"no es JSON válido":                                        "it is not valid JSON",
	"el nombre está repetido en su objeto":                     "the name is twice in its object",
	"sobra lo que sigue al objeto":                             "nothing may follow the object",
	"no es UTF-8 válido":                                       "it is not valid UTF-8",
	"debe ser un objeto":                                       "it must be an object",
	"solo vale en una compra":                                  "it is for a purchase alone",
	"debe tener exactamente uno de points, amount, max o hold": "it must have exactly one of points, amount, max or hold",
	"debe ser una lista":                                       "it must be a list",
	"debe ser un texto":                                        "it must be a text",
	"debe ser un número":                                       "it must be a number",
	"debe ser un número entero":                                "it must be a whole number",
	"es un número demasiado grande":                            "the number is too large",
	"debe tener 4 decimales como máximo":                       "it must have 4 decimals at most",
	"debe tener a lo sumo %d decimales":                        "it must have %d decimals at most",
	"no puede pasar de 2000 bytes":                             "it cannot be longer than 2000 bytes",
	"no puede pasar de %d":                                     "it cannot be more than %d",
	"no puede pasar de %s":                                     "it cannot be more than %s",
	"no puede haber más de %d":                                 "there cannot be more than %d",
	"no puede estar vacío":                                     "it cannot be empty",
	"debe tener de 1 a 100 caracteres, sin espacios al principio ni al final":                             "it must have 1 to 100 characters, without blanks at its ends",
	"debe tener de 1 a 100 caracteres":                                                                    "it must have 1 to 100 characters",
	"debe tener de 1 a 50 letras minúsculas, cifras, - o _, y empezar con una letra o cifra":              "it must have 1 to 50 small letters, digits, - or _, and begin with a letter or digit",
	"debe tener de 1 a 50 letras minúsculas, cifras y guiones":                                            "it must have 1 to 50 small letters, digits and hyphens",
	"debe ser una URL http o https":                                                                       "it must be an http or https URL",
	"debe ser una URL https, sin usuario ni fragmento; http solo hacia localhost o una dirección privada": "it must be an https URL without user or fragment; http is only for localhost or a private address",
	"debe ser un código de país de dos letras":                                                            "it must be a country's code of two letters",
	"debe ser un texto, o un objeto con one y many":                                                       "it must be a text, or an object with one and many",
	"debe ser un código de moneda de tres letras":                                                         "it must be a currency's code of three letters",
	"debe ser un color como #5B3A29":                                                                      "it must be a colour such as #5B3A29",
	"debe ser una zona horaria IANA":                                                                      "it must be an IANA time zone",
	"debe ser es o en, con o sin una región, como es-MX":                                                  "it must be es or en, with or without a region, such as es-MX",
	"debe ser una fecha ISO 8601":                                                                         "it must be a date, such as 2027-12-31",
	"debe ser una hora como 08:30":                                                                        "it must be a time such as 08:30",
	"debe ser una hora como 18:30, distinta de from":                                                      "it must be a time such as 18:30, and another one than from",
	"debe ser posterior a %s":                                                                             "it must be after %s",
	"debe estar entre 0 y %d, o null":                                                                     "it must be between 0 and %d, or null",
	"debe estar entre 0 y %d":                                                                             "it must be between 0 and %d",
	"debe estar entre 0 y 4":                                                                              "it must be between 0 and 4",
	"debe estar entre 1 y %d":                                                                             "it must be between 1 and %d",
	"debe ser mayor a 0, hasta 100":                                                                       "it must be above 0, up to 100",
	"debe ser mayor o igual a 0, o null":                                                                  "it must be 0 or more, or null",
	"debe ser mayor o igual a 1":                                                                          "it must be 1 or more",
	"debe ser mayor al del nivel anterior":                                                                "it must be above that of the tier before",
	"0 no es un límite: quita el campo o la regla":                                                        "0 is no limit: remove the field or the rule",
	"debe ser mayor a 0":                                                                                  "it must be above 0",
	"debe ser mayor a pendingDays":                                                                        "it must be above pendingDays",
	"debe ser menor a los %d días en que los puntos del programa pueden vencer":                           "it must be less than the %d days in which points of the program may expire",
	"debe tener exactamente un efecto: per, perItem, points, multiplier o reward":                         "it must have exactly one effect: per, perItem, points, multiplier or reward",
	"debe tener days o months, mayor a 0, y no ambos, o inactiveMonths":                                   "it must have days or months, above 0, and not both, or inactiveMonths",
	"solo va con days o months":                                                                           "it goes only with days or months",
	"debe tener exactamente uno de all, any, not o field":                                                 "it must have exactly one of all, any, not or field",
	"op y value van con field":                                                                            "op and value go with field",
	"solo va con fulfilment: Voucher":                                                                     "it only goes with fulfilment: Voucher",
	"solo va con type: %s":                                                                                "it only goes with type: %s",
	"solo va con window: Rolling":                                                                         "it only goes with window: Rolling",
	"no hay {%s}; hay %s":                                                                                 "there is no {%s}; there are %s",
	"solo lo cambia un propietario":                                                                       "only an owner changes it",
	"no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella":           "it cannot change once there are customers: the days of the statistics depend on it",
	"una regla de %s da points o reward":                                                                  "a rule for %s gives points or a reward",
	"una regla de %s solo admite from y until como condiciones":                                           "a %s rule has no conditions but from and until",
	"hace falta al menos un programa":                                                                     "at least one program is needed",
	"hace falta al menos uno, como \"points.*\"":                                                          "at least one is needed, such as \"points.*\"",
	"exactamente uno debe tener default: true":                                                            "exactly one must have default: true",
	"es de otra organización":                                                                             "it is that of another organization",
	"no es ningún tipo de evento: %q":                                                                     "there is no type of event %q",
	"después de attributes. va un nombre de 1 a %d caracteres, sin espacios al principio ni al final": "after attributes. stands a name of 1 to %d characters, without blanks at its ends",
	"debe ser un texto, un número, true o false":                                                      "must be a text, a number, true or false",
	"debe ser un mes: un entero de 1 a 12":                                                            "must be a month: a whole number from 1 to 12",
	"solo vale con after":                                                                             "is only for requests with after",
	"solo lo dice quien puede deshacer canjes":                                                        "only who may undo redemptions can say that",
	"tickets requiere externalIds Unique":                                                             "tickets need externalIds Unique",
	"debe venir, o externalId, y no los dos":                                                          "must be given, or externalId, but not both",
	"no vale con joinCode":                                                                            "is not valid with joinCode",
	"solo vale con joinCode":                                                                          "is for requests with joinCode",
	"no vale con after":                                                                               "is not for requests with after",
	"debe ser el next de una respuesta, o estar vacío":                                                "must be the next of an answer, or empty",
	"con expiringWithin no estará casi nadie: en ningún programa vencen los puntos, salvo los que se dan con expiresAt": "with expiringWithin hardly anybody will be in it: points expire in no program, but for those given with expiresAt",
	"no hay ningún segmento %q": "there is no segment %q",
	"no hay ningún nivel %q":    "there is no tier %q",
	"no hay ningún programa %q": "there is no program %q",
	"debe ser %s":               "it must be %s",
	"nunca dará puntos: %s":     "it will never give points: %s",
	"ningún cliente gana en este programa, que no es default ni tiene join: All": "no customer earns in this program, which is not the default and does not have join: All",
	"nadie se da de alta en este programa, que no es default ni tiene join: All": "nobody is enrolled in this program, which is not the default and does not have join: All",
	"until ya pasó":                 "its until is over",
	"sus segmentos están inactivos": "its segments are inactive",
	"sus skus están en blanco o tienen caracteres de control": "its skus are blank or have control characters",
	"entre from y until no caen sus days y hours":             "its days and hours do not occur between from and until",
	"antes de la primera compra nadie está en sus niveles":    "before the first purchase nobody is in its tiers",
	"multiplica por 1": "it multiplies by 1",
	"multiplica lo que dan las reglas per, y no hay ninguna":                                             "it multiplies what per rules give, and there are none",
	"multiplica lo que dan las reglas per, y ninguna vale a la vez":                                      "it multiplies what per rules give, and none holds at the same time",
	"%q no excluye artículos: solo vale para los que empiezan así, con !; para excluir está excludeSkus": "%q leaves no items out: it only matches those that begin so, with !; to leave items out there is excludeSkus",
	"ya dio los %s puntos de su presupuesto: no da más, salvo lo que retire una devolución":              "it has given the %s points of its budget: it gives no more, but for what a return takes back",
	"con every y maxPerCustomer: 1 da una sola vez a cada cliente, en su compra %d":                      "with every and maxPerCustomer: 1 it gives each customer once, on purchase %d",
	"no hay ninguna recompensa %q":                                "there is no reward %q",
	"debe ser una recompensa con fulfilment: %s":                  "it must be a reward with fulfilment: %s",
	"con fulfilment: %s no se canjea sola: autoIssue vale con %s": "with fulfilment: %s it does not redeem itself: autoIssue is for %s",
	"su recompensa está inactiva":                                 "its reward is inactive",
	"nadie sube a esos niveles":                                   "nobody rises to those tiers",
	"una regla que da reward no admite maxPoints, budget, category, pendingDays ni expiresInDays": "a rule that gives a reward has no maxPoints, budget, category, pendingDays or expiresInDays",
	"una regla de %s da reward":                                                                         "a rule for %s gives a reward",
	"una regla de %s solo admite tiers, from y until como condiciones":                                  "a rule for %s has no other conditions than tiers, from and until",
	"con returns: Keep, quien devuelve una compra entera y compra otra vez vuelve a recibir lo que da":  "with returns: Keep, whoever returns a whole purchase and buys again gets once more what it gives",
	"no puede tener «: »":                                                                               "it cannot have “: ”",
	"se repite con otras mayúsculas":                                                                    "it is there again in other letter case",
	"solo va con skus":                                                                                  "it goes with skus alone",
	"no puede tener más de %d nombres":                                                                  "it cannot have more than %d names",
	"su nombre debe tener de 1 a %d caracteres, sin espacios al principio ni al final":                  "its name must have 1 to %d characters, without blanks at its ends",
	"hace falta al menos un valor":                                                                      "at least one value is needed",
	"debe tener de 1 a %d caracteres, sin espacios al principio ni al final":                            "it must have 1 to %d characters, without blanks at its ends",
	"con returns: Keep, quien devuelve su primera compra y compra otra vez vuelve a recibir los puntos": "with returns: Keep, whoever returns the first purchase and buys again gets the points again",
	"con join y sin privacyUrl, quien se da de alta no ve ningún aviso de privacidad":                   "with join and without privacyUrl, who joins sees no privacy notice",
	"con más de un programa, add y deduct necesitan loyaltyProgramId: las cajas que no lo envíen recibirán 400 program_required": "with more than one program, add and deduct need loyaltyProgramId: tills that do not send it will get 400 program_required",
	"es requerido":                         "it is missing",
	"debe ser ERASE":                       "it must be ERASE",
	"debe ser otro cliente":                "it must be another customer",
	"debe ser mayor o igual a 0":           "it must be 0 or more",
	"debe ser un entero mayor o igual a 0": "it must be a whole number, 0 or more",
	"debe ser un entero entre %d y %d":     "it must be a whole number between %d and %d",
	"debe ser un tipo de evento, como points.added, o un grupo, como points.*": "it must be a type of event, such as points.added, or a group, such as points.*",
	"debe ser sí o no":          "it must be yes or no",
	"debe ser una fecha futura": "it must be a date in the future",
	"debe ser una fecha con el año de cuatro cifras, como 2026-11-30 o 30/11/2026 (con -dates mdy, 11/30/2026)":                                        "it must be a date with a year of four digits, such as 2026-11-30 or 30/11/2026 (with -dates mdy, 11/30/2026)",
	"debe ser una fecha con el año de cuatro cifras, como 1990-05-14 o 14/05/1990, o sin año, como 05-14 o 14/05 (con -dates mdy, 05/14/1990 o 05/14)": "it must be a date with a year of four digits, such as 1990-05-14 or 14/05/1990, or without a year, such as 05-14 or 14/05 (with -dates mdy, 05/14/1990 or 05/14)",
	"debe tener de 1 a %d elementos":                                          "it must have 1 to %d elements",
	"debe tener de 1 a 255 caracteres ASCII imprimibles":                      "it must have 1 to 255 printable ASCII characters",
	"debe tener como máximo 100 caracteres UTF-8, sin caracteres de control":  "it must have 100 UTF-8 characters at most, without control characters",
	"no puede superar los %d caracteres":                                      "it cannot be longer than %d characters",
	"no puede superar los %d elementos":                                       "it cannot have more than %d elements",
	"no puede superar los %d elementos, el límite de solicitudes de la clave": "it cannot have more than %d elements, the limit of the key's requests",
	"debe ser un mes como 2026-11":                                            "it must be a month such as 2026-11",
	"no puede ser un mes futuro":                                              "it cannot be a month that is yet to come",
	"no puede ser posterior a to":                                             "it cannot be after to",
	"no puede ser posterior a to ni distar más de 100 años":                   "it cannot be after to, nor more than 100 years before it",
	"no puede ser una fecha futura":                                           "it cannot be a date in the future",
	"no puede ser anterior a 1970":                                            "it cannot be before 1970",
	"solo vale en un Credit":                                                  "it is for a Credit alone",
	"solo vale con puntos que se dan":                                         "it is for points that are given alone",
	"no puede ser 0":                                                          "it cannot be 0",
	"no es el del cliente":                                                    "it is not that of the customer",
	"el email o el teléfono no es del cliente":                                "the e-mail or the phone is not that of the customer",
	"no puede ser menor a 0":                                                  "it cannot be below 0",
	"no puede repetirse":                                                      "it cannot be there twice",
	"se envió dos veces":                                                      "it was sent twice",
	"La consulta no es válida":                                                "The query is not valid",
	"ya se registró con otros datos":                                          "it was already registered with other data",
	"la venta no puede tener más de 500 artículos":                            "the sale cannot have more than 500 items",
	"el cliente ya tiene un saldo inicial de %s":                              "the customer already has an opening balance of %s",
	"el cliente ya tiene puntos históricos: %s":                               "the customer already has historic points: %s",
	"debe ser Month":                                                          "it must be Month",
}

// sentenceText is a sentence in the page's language.
func sentenceText(lang texts.Language, why sentence) string {
	format, is := sentenceTexts[why.format]
	if lang.Code == "es" || !is {
		return why.String()
	}
	args := make([]any, len(why.args))
	for i, a := range why.args {
		switch a := a.(type) {
		case sentence:
			args[i] = sentenceText(lang, a)
		case anyOf:
			args[i] = listed(a, "or")
		default:
			args[i] = a
		}
	}
	return fmt.Sprintf(format, args...)
}
