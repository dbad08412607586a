package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// An errorCode is an error that a client can get. No literal converts to it, so
// that a misspelt code does not compile.
type errorCode struct {
	name    string
	status  int
	message string // in Spanish
}

// These are all errorCodes (contract §2; spec: Errors). Three tests want a new one to be
// whole: TestErrorTable its text, TestGoldenErrors a transcript that shows it, and
// TestOpenAPIErrors its row in openapi.json.
var (
	codeAPIKeyRequired           = newCode("api_key_required", http.StatusUnauthorized, "API key requerida")
	codeAPIKeyInvalid            = newCode("api_key_invalid", http.StatusUnauthorized, "API key inválida")
	codeAPIKeyExpired            = newCode("api_key_expired", http.StatusUnauthorized, "API key expirada")
	codePlanWithoutAPI           = newCode("plan_without_api", http.StatusForbidden, "El acceso a la API no está incluido en tu plan")
	codeIPNotAllowed             = newCode("ip_not_allowed", http.StatusForbidden, "IP no autorizada")
	codeScopeRequired            = newCode("scope_required", http.StatusForbidden, "Scope requerido: ") // the missing scope follows
	codePointsBudgetExceeded     = newCode("points_budget_exceeded", http.StatusForbidden, "La clave superó su límite de puntos")
	codeRateLimitMinute          = newCode("rate_limit_minute", http.StatusTooManyRequests, "Límite de solicitudes excedido")
	codeRateLimitDay             = newCode("rate_limit_day", http.StatusTooManyRequests, "Límite de solicitudes excedido")
	codeRateLimitMonth           = newCode("rate_limit_month", http.StatusTooManyRequests, "Límite de solicitudes excedido")
	codeRateLimitSource          = newCode("rate_limit_source", http.StatusTooManyRequests, "Límite de solicitudes excedido")
	codeEmailOrPhoneRequired     = newCode("email_or_phone_required", http.StatusBadRequest, "Se requiere email o número de teléfono")
	codeMemberCodeInvalid        = newCode("member_code_invalid", http.StatusBadRequest, "code no es un código de cliente")
	codeCardsDisabled            = newCode("cards_disabled", http.StatusBadRequest, "El servidor no sirve tarjetas")
	codeJoinCodeNotFound         = newCode("join_code_not_found", http.StatusNotFound, "El código de alta no existe o venció")
	codeProofRequired            = newCode("proof_required", http.StatusBadRequest, "Se requiere el código de la tarjeta del cliente")
	codeProofInvalid             = newCode("proof_invalid", http.StatusBadRequest, "El código de la tarjeta no es válido o ya cambió")
	codeProofLocked              = newCode("proof_locked", http.StatusTooManyRequests, "Demasiados códigos equivocados")
	codeTicketsDisabled          = newCode("tickets_disabled", http.StatusBadRequest, "La organización no usa tickets")
	codeExternalIDRequired       = newCode("external_id_required", http.StatusBadRequest, "externalId requerido")
	codeTicketInvalid            = newCode("ticket_invalid", http.StatusBadRequest, "El ticket no es válido")
	codeTicketExpired            = newCode("ticket_expired", http.StatusBadRequest, "El ticket venció")
	codeTicketNotFound           = newCode("ticket_not_found", http.StatusNotFound, "Ticket no encontrado")
	codeTicketClaimed            = newCode("ticket_claimed", http.StatusConflict, "El ticket ya se reclamó")
	codeTicketRegistered         = newCode("ticket_registered", http.StatusConflict, "La venta ya está registrada")
	codeTicketCancelled          = newCode("ticket_cancelled", http.StatusConflict, "El ticket se canceló")
	codeTicketLimitReached       = newCode("ticket_limit_reached", http.StatusBadRequest, "El cliente ya reclamó 3 tickets de ese día")
	codePhoneInvalid             = newCode("phone_invalid", http.StatusBadRequest, "El número de teléfono no es válido")
	codeEmailInvalid             = newCode("email_invalid", http.StatusBadRequest, "El email no tiene un formato válido")
	codeInsufficientBalance      = newCode("insufficient_balance", http.StatusBadRequest, "Saldo insuficiente")
	codeCustomerIDRequired       = newCode("customer_id_required", http.StatusBadRequest, "customerId requerido")
	codeProductIDRequired        = newCode("product_id_required", http.StatusBadRequest, "productId requerido")
	codeTotalAmountInvalid       = newCode("total_amount_invalid", http.StatusBadRequest, "totalAmount debe ser mayor a 0")
	codeAmountInvalid            = newCode("amount_invalid", http.StatusBadRequest, "amount debe ser mayor a 0")
	codeCategoryInvalid          = newCode("category_invalid", http.StatusBadRequest, "category no es válida")
	codeCommentTooLong           = newCode("comment_too_long", http.StatusBadRequest, "comment no puede superar los 500 caracteres")
	codeAsOfInvalid              = newCode("as_of_invalid", http.StatusBadRequest, "asOf debe ser una fecha ISO 8601")
	codeExpiresAtInvalid         = newCode("expires_at_invalid", http.StatusBadRequest, "expiresAt debe ser una fecha futura")
	codeOccurredAtInvalid        = newCode("occurred_at_invalid", http.StatusBadRequest, "occurredAt no puede ser futura ni anterior a 30 días")
	codeProgramRequired          = newCode("program_required", http.StatusBadRequest, "loyaltyProgramId requerido")
	codeTypeInvalid              = newCode("type_invalid", http.StatusBadRequest, "type debe ser Purchase o Return")
	codePageInvalid              = newCode("page_invalid", http.StatusBadRequest, "page debe ser un entero mayor o igual a 1")
	codeLimitInvalid             = newCode("limit_invalid", http.StatusBadRequest, "limit debe ser un entero entre 1 y 100")
	codeReturnExceedsPurchase    = newCode("return_exceeds_purchase", http.StatusBadRequest, "La devolución supera lo comprado")
	codeItemNotPurchased         = newCode("item_not_purchased", http.StatusBadRequest, "El artículo no está en la compra")
	codeRewardUnavailable        = newCode("reward_unavailable", http.StatusBadRequest, "La recompensa no está disponible")
	codePointsPaymentUnavailable = newCode("points_payment_unavailable", http.StatusBadRequest, "El programa no acepta puntos como pago")
	codePointsPaymentTooSmall    = newCode("points_payment_too_small", http.StatusBadRequest, "Se requieren al menos N puntos para pagar")
	codePointsPaymentTooLarge    = newCode("points_payment_too_large", http.StatusBadRequest, "Los puntos pueden pagar hasta N % de la venta")
	codePointsPaymentStep        = newCode("points_payment_step", http.StatusBadRequest, "Los puntos para pagar van de N en N")
	codePointsPaymentLate        = newCode("points_payment_late", http.StatusBadRequest, "Una venta de antes no se puede pagar con puntos")
	codeLabelsInvalid            = newCode("labels_invalid", http.StatusBadRequest, "labels no es válido")
	codeHoldExceeded             = newCode("hold_exceeded", http.StatusBadRequest, "La retención es de N puntos")
	codeCustomerInactive         = newCode("customer_inactive", http.StatusBadRequest, "El cliente no está activo")
	codeBirthDateInvalid         = newCode("birth_date_invalid", http.StatusBadRequest, "birthDate debe ser una fecha AAAA-MM-DD no futura, o --MM-DD sin año")
	codeAttributesInvalid        = newCode("attributes_invalid", http.StatusBadRequest, "attributes no es válido")
	codeDryRunUnavailable        = newCode("dry_run_unavailable", http.StatusBadRequest, "Esta operación no tiene ensayo")
	codeInvalidJSON              = newCode("invalid_json", http.StatusBadRequest, "El cuerpo no es JSON válido")
	codeInvalidField             = newCode("invalid_field", http.StatusBadRequest, "") // the fault's own text
	codeTooPrecise               = newCode("too_precise", http.StatusBadRequest, " admite como máximo 4 decimales")
	codeUnknownField             = newCode("unknown_field", http.StatusBadRequest, " no es un campo conocido")
	codeTooLarge                 = newCode("too_large", http.StatusBadRequest, " supera el máximo permitido")
	codeCustomerNotFound         = newCode("customer_not_found", http.StatusNotFound, "Cliente no encontrado")
	codeSegmentNotFound          = newCode("segment_not_found", http.StatusNotFound, "Segmento no encontrado")
	codeRewardNotFound           = newCode("reward_not_found", http.StatusNotFound, "Recompensa no encontrada")
	codeProgramNotFound          = newCode("program_not_found", http.StatusNotFound, "Programa de lealtad no encontrado")
	codeTransactionNotFound      = newCode("transaction_not_found", http.StatusNotFound, "Venta no encontrada")
	codeRedemptionNotFound       = newCode("redemption_not_found", http.StatusNotFound, "Canje no encontrado")
	codeHoldNotFound             = newCode("hold_not_found", http.StatusNotFound, "Retención no encontrada")
	codeRouteNotFound            = newCode("route_not_found", http.StatusNotFound, "Ruta no encontrada")
	codeMethodNotAllowed         = newCode("method_not_allowed", http.StatusMethodNotAllowed, "Método no permitido")
	codeIdentityConflict         = newCode("identity_conflict", http.StatusConflict, "El email y el teléfono pertenecen a clientes distintos")
	codeExternalIDTaken          = newCode("external_id_taken", http.StatusConflict, "externalId pertenece a otro cliente")
	codeReferenceConflict        = newCode("reference_conflict", http.StatusConflict, "reference ya se registró con otros datos")
	codeExternalIDConflict       = newCode("external_id_conflict", http.StatusConflict, "externalId ya se registró con otros datos")
	codeExternalIDUndone         = newCode("external_id_undone", http.StatusConflict, "La venta de ese externalId se devolvió")
	codeCustomerMerged           = newCode("customer_merged", http.StatusConflict, "El cliente se fusionó con otro")
	codeMergeTooLarge            = newCode("merge_too_large", http.StatusConflict, "El cliente tiene demasiados registros para fusionarlo")
	codeCustomerErased           = newCode("customer_erased", http.StatusConflict, "El cliente fue eliminado")
	codeRewardOutOfStock         = newCode("reward_out_of_stock", http.StatusConflict, "Recompensa agotada")
	codeRedemptionLimitReached   = newCode("redemption_limit_reached", http.StatusConflict, "Límite de canjes alcanzado")
	codePriceChanged             = newCode("price_changed", http.StatusConflict, "El precio de la recompensa cambió")
	codeRedemptionNotCancellable = newCode("redemption_not_cancellable", http.StatusConflict, "El canje no se puede cancelar")
	codeRedemptionAlreadyUsed    = newCode("redemption_already_used", http.StatusConflict, "El canje ya se usó")
	codeRedemptionCancelled      = newCode("redemption_cancelled", http.StatusConflict, "El canje está cancelado")
	codeTooManyRedemptions       = newCode("too_many_redemptions", http.StatusConflict, "La venta tiene demasiados canjes")
	codeHoldClosed               = newCode("hold_closed", http.StatusConflict, "La retención ya se cerró")
	codeTooManyHolds             = newCode("too_many_holds", http.StatusConflict, "El cliente tiene demasiadas retenciones")
	codeRedemptionExpired        = newCode("redemption_expired", http.StatusBadRequest, "El canje está vencido")
	codeEventsGone               = newCode("events_gone", http.StatusGone, "Los eventos anteriores ya no se guardan")
	codePreconditionFailed       = newCode("precondition_failed", http.StatusPreconditionFailed, "El recurso cambió desde que se leyó")
	codeBodyTooLarge             = newCode("body_too_large", http.StatusRequestEntityTooLarge, "El cuerpo de la solicitud es demasiado grande")
	codeUnsupportedMediaType     = newCode("unsupported_media_type", http.StatusUnsupportedMediaType, "Content-Type debe ser application/json")
	codeBadRequest               = newCode("bad_request", http.StatusBadRequest, "La solicitud HTTP no es válida")
	codeHTTPSRequired            = newCode("https_required", http.StatusForbidden, "Esta dirección solo admite HTTPS")
	codeExpectationFailed        = newCode("expectation_failed", http.StatusExpectationFailed, "Expect solo admite 100-continue")
	codeHeadersTooLarge          = newCode("headers_too_large", http.StatusRequestHeaderFieldsTooLarge, "Los encabezados de la solicitud son demasiado grandes")
	codeIdempotencyKeyReused     = newCode("idempotency_key_reused", http.StatusUnprocessableEntity, "La Idempotency-Key ya se usó con otra solicitud")
	codeInternal                 = newCode("internal", http.StatusInternalServerError, "Error interno del servidor")
	codeUnavailable              = newCode("unavailable", http.StatusServiceUnavailable, "Servicio no disponible temporalmente")
	codeClockUnsafe              = newCode("clock_unsafe", http.StatusServiceUnavailable, "El reloj del servidor no es fiable")
)

// errorTable holds every errorCode by its name.
var errorTable = map[string]errorCode{}

func newCode(name string, status int, message string) errorCode {
	c := errorCode{name, status, message}
	errorTable[name] = c
	return c
}

// An apiError is an error in words for the client. Its text and context may be
// shown to anyone who holds the key, so they tell nothing of the operator's.
type apiError struct {
	code    errorCode
	message string
	why     sentence       // what is wrong, if the code does not say it all
	field   string         // the input field at fault, or ""
	context map[string]any // figures that a client can act on, or nil
	headers http.Header    // what the response carries beside the body, or nil
	all     []*apiError    // all faults of a strict request, this one first; else nil
}

func (e *apiError) Error() string { return e.code.name }

// errorBody is the body of every error response (contract §2).
type errorBody struct {
	StatusCode int            `json:"statusCode"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	RequestID  string         `json:"requestId"`
	Field      string         `json:"field,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
	Errors     []faultShape   `json:"errors,omitempty"`
}

// A faultShape is one fault of a strict request.
type faultShape struct {
	Field   *string `json:"field"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
}

// body returns the body of a response to the request with that id.
func (e *apiError) body(requestID string) errorBody {
	b := errorBody{StatusCode: e.code.status, Code: e.code.name, Message: e.message, RequestID: requestID, Field: e.field, Context: e.context}
	for _, one := range e.all {
		shape := faultShape{Code: one.code.name, Message: one.message}
		if one.field != "" {
			shape.Field = &one.field
		}
		b.Errors = append(b.Errors, shape)
	}
	return b
}

// Is makes errors.Is treat two errors of the same code as equal.
func (e *apiError) Is(target error) bool {
	t, ok := target.(*apiError)
	return ok && t.code == e.code
}

func newError(code errorCode) *apiError { return &apiError{code: code, message: code.message} }

// number says what N stands for in the code's text.
func (e *apiError) number(n decimal) *apiError {
	c := *e
	c.message = strings.ReplaceAll(e.message, " N", " "+n.String())
	return &c
}

// on names the input field at fault. The texts of too_precise, too_large and
// unknown_field begin with it.
func (e *apiError) on(field string) *apiError {
	c := *e
	c.field = field
	switch c.code {
	case codeTooPrecise, codeTooLarge, codeUnknownField:
		c.message = field + c.message
	}
	return &c
}

// with adds a figure to the context.
func (e *apiError) with(name string, value any) *apiError {
	c := *e
	c.context = maps.Clone(e.context)
	if c.context == nil {
		c.context = map[string]any{}
	}
	c.context[name] = value
	return &c
}

// header adds a response header.
func (e *apiError) header(name, value string) *apiError {
	c := *e
	c.headers = e.headers.Clone()
	if c.headers == nil {
		c.headers = http.Header{}
	}
	c.headers.Set(name, value)
	return &c
}

// retryAfter says how long to wait.
func (e *apiError) retryAfter(wait instant) *apiError {
	return e.header("Retry-After", strconv.FormatInt(secondsOf(wait), 10))
}

// secondsOf rounds up, to at least 1: a client that waits so long is not early.
func secondsOf(wait instant) int64 { return max((int64(wait)+999)/1000, 1) }

// invalidField returns 400 invalid_field, which says why after the field's name.
func invalidField(field, format string, args ...any) *apiError {
	e := newError(codeInvalidField)
	e.field, e.why = field, sentence{format, args}
	if e.message = e.why.String(); field != "" {
		e.message = field + " " + e.message
	}
	return e
}

// A sentence says in Spanish what is wrong. It keeps its format, by which another language has
// its own, and what it is said of: sentences and anyOf among others.
type sentence struct {
	format string
	args   []any
}

func sentenceOf(format string, args ...any) sentence { return sentence{format, args} }

func (s sentence) String() string { return fmt.Sprintf(s.format, s.args...) }

// isChoice reports whether the sentence lists values to choose from.
func (s sentence) isChoice() bool {
	return slices.ContainsFunc(s.args, func(a any) bool { _, is := a.(anyOf); return is })
}

// anyOf are the values that a member may have.
type anyOf []string

func (a anyOf) String() string { return alternatives(a) }

// An operatorError says why an operator's request is refused, in words for the
// operator. field is the field at fault, by its name in keyRequest and the like;
// "" means that no field is, and the request cannot be met as things are.
type operatorError struct{ field, message string }

func (e *operatorError) Error() string { return e.message }

func operatorErrorf(field, format string, args ...any) error {
	return &operatorError{field, fmt.Sprintf(format, args...)}
}

// A peopleError says why something about users, their roles, passwords or sessions is
// refused. No answer of the API has such an error, so it has no errorCode. Its name finds its
// text in other languages than Spanish.
type peopleError struct {
	name  string
	field string // the input field at fault, or ""

	message string // in Spanish
}

func newPeopleError(name, field, message string) *peopleError {
	return &peopleError{name, field, message}
}

func (e *peopleError) Error() string { return e.message }

// Unwrap lets commands show it as they show any other error of the operator.
func (e *peopleError) Unwrap() error { return &operatorError{e.field, e.message} }

// Is makes errors.Is treat two errors of the same name as equal.
func (e *peopleError) Is(target error) bool {
	t, ok := target.(*peopleError)
	return ok && t.name == e.name
}

// publicError returns the client's error for any error. An unknown one becomes
// internal; the caller logs the cause.
func publicError(err error) *apiError {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, errUnavailable), errors.Is(err, errClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return newError(codeUnavailable).header("Retry-After", "1")
	}
	return newError(codeInternal)
}

// alternatives lists words as Spanish does: a, b o c.
func alternatives(words []string) string { return listed(words, "o") }

// listed lists words with another one before the last of them: a, b or c.
func listed(words []string, or string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + or + " " + words[last]
}

// thereAre lists what there is to choose from, for an error; of many, only the first.
func thereAre(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return fmt.Sprintf("; hay %d: %s, …", len(names), strings.Join(names[:most], ", "))
	}
	return "; hay: " + strings.Join(names, ", ")
}

// errNoRoom refuses a large request, and a log-in whose turn does not come.
var errNoRoom = fmt.Errorf("%w: no room for a large request", errUnavailable)
