package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// errorTable is every error a client can get: code → status and Spanish text
// (contract §2; spec: Errors). The golden transcripts show each row.
var errorTable = map[string]struct {
	status  int
	message string
}{
	"api_key_required":           {http.StatusUnauthorized, "API key requerida"},
	"api_key_invalid":            {http.StatusUnauthorized, "API key inválida"},
	"api_key_expired":            {http.StatusUnauthorized, "API key expirada"},
	"plan_without_api":           {http.StatusForbidden, "El acceso a la API no está incluido en tu plan"},
	"ip_not_allowed":             {http.StatusForbidden, "IP no autorizada"},
	"scope_required":             {http.StatusForbidden, "Scope requerido: "}, // the missing scope follows
	"rate_limit_minute":          {http.StatusTooManyRequests, "Límite de solicitudes excedido"},
	"rate_limit_day":             {http.StatusTooManyRequests, "Límite de solicitudes excedido"},
	"rate_limit_month":           {http.StatusTooManyRequests, "Límite de solicitudes excedido"},
	"rate_limit_source":          {http.StatusTooManyRequests, "Límite de solicitudes excedido"},
	"email_or_phone_required":    {http.StatusBadRequest, "Se requiere email o número de teléfono"},
	"phone_invalid":              {http.StatusBadRequest, "El número de teléfono no es válido"},
	"email_invalid":              {http.StatusBadRequest, "El email no tiene un formato válido"},
	"insufficient_balance":       {http.StatusBadRequest, "Saldo insuficiente"},
	"customer_id_required":       {http.StatusBadRequest, "customerId requerido"},
	"product_id_required":        {http.StatusBadRequest, "productId requerido"},
	"total_amount_invalid":       {http.StatusBadRequest, "totalAmount debe ser mayor a 0"},
	"amount_invalid":             {http.StatusBadRequest, "amount debe ser mayor a 0"},
	"category_invalid":           {http.StatusBadRequest, "category no es válida"},
	"comment_too_long":           {http.StatusBadRequest, "comment no puede superar los 500 caracteres"},
	"expires_at_invalid":         {http.StatusBadRequest, "expiresAt debe ser una fecha futura"},
	"program_required":           {http.StatusBadRequest, "loyaltyProgramId requerido"},
	"type_invalid":               {http.StatusBadRequest, "type debe ser Purchase o Return"},
	"page_invalid":               {http.StatusBadRequest, "page debe ser un entero mayor o igual a 1"},
	"limit_invalid":              {http.StatusBadRequest, "limit debe ser un entero entre 1 y 100"},
	"return_exceeds_purchase":    {http.StatusBadRequest, "La devolución supera lo comprado"},
	"reward_unavailable":         {http.StatusBadRequest, "La recompensa no está disponible"},
	"customer_inactive":          {http.StatusBadRequest, "El cliente no está activo"},
	"invalid_json":               {http.StatusBadRequest, "El cuerpo no es JSON válido"},
	"invalid_field":              {http.StatusBadRequest, ""}, // the fault's own text
	"too_precise":                {http.StatusBadRequest, " admite como máximo 4 decimales"},
	"too_large":                  {http.StatusBadRequest, " supera el máximo permitido"},
	"customer_not_found":         {http.StatusNotFound, "Cliente no encontrado"},
	"segment_not_found":          {http.StatusNotFound, "Segmento no encontrado"},
	"reward_not_found":           {http.StatusNotFound, "Recompensa no encontrada"},
	"program_not_found":          {http.StatusNotFound, "Programa de lealtad no encontrado"},
	"transaction_not_found":      {http.StatusNotFound, "Venta no encontrada"},
	"redemption_not_found":       {http.StatusNotFound, "Canje no encontrado"},
	"route_not_found":            {http.StatusNotFound, "Ruta no encontrada"},
	"method_not_allowed":         {http.StatusMethodNotAllowed, "Método no permitido"},
	"identity_conflict":          {http.StatusConflict, "El email y el teléfono pertenecen a clientes distintos"},
	"reward_out_of_stock":        {http.StatusConflict, "Recompensa agotada"},
	"redemption_limit_reached":   {http.StatusConflict, "Límite de canjes alcanzado"},
	"redemption_not_cancellable": {http.StatusConflict, "El canje no se puede cancelar"},
	"body_too_large":             {http.StatusRequestEntityTooLarge, "El cuerpo de la solicitud es demasiado grande"},
	"unsupported_media_type":     {http.StatusUnsupportedMediaType, "Content-Type debe ser application/json"},
	"bad_request":                {http.StatusBadRequest, "La solicitud HTTP no es válida"},
	"expectation_failed":         {http.StatusExpectationFailed, "Expect solo admite 100-continue"},
	"headers_too_large":          {http.StatusRequestHeaderFieldsTooLarge, "Los encabezados de la solicitud son demasiado grandes"},
	"idempotency_key_reused":     {http.StatusUnprocessableEntity, "La Idempotency-Key ya se usó con otra solicitud"},
	"internal":                   {http.StatusInternalServerError, "Error interno del servidor"},
	"unavailable":                {http.StatusServiceUnavailable, "Servicio no disponible temporalmente"},
	"clock_unsafe":               {http.StatusServiceUnavailable, "El reloj del servidor no es fiable"},
}

// An apiError is an error in the client's words. Its text and context may be
// shown to whoever holds the key; nothing of the operator's goes into it.
type apiError struct {
	status  int
	code    string
	message string
	field   string         // the input field at fault, or ""
	context map[string]any // figures that a client can act on, or nil
	headers http.Header    // what the response carries beside the body, or nil
}

func (e *apiError) Error() string { return e.code }

// errorBody is what every error looks like (contract §2).
type errorBody struct {
	StatusCode int            `json:"statusCode"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	RequestID  string         `json:"requestId"`
	Field      string         `json:"field,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
}

// Is makes two errors of the same code alike to errors.Is.
func (e *apiError) Is(target error) bool {
	t, ok := target.(*apiError)
	return ok && t.code == e.code
}

// newError returns the error of one row of the table. A code without a row
// is a mistake of ours and comes out as internal.
func newError(code string) *apiError {
	row, ok := errorTable[code]
	if !ok {
		code, row = "internal", errorTable["internal"]
	}
	return &apiError{status: row.status, code: code, message: row.message}
}

// on names the input field at fault. The texts of too_precise and too_large
// begin with it.
func (e *apiError) on(field string) *apiError {
	c := *e
	c.field = field
	if c.code == "too_precise" || c.code == "too_large" {
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

// invalidField is 400 invalid_field with a text of its own.
func invalidField(field, message string) *apiError {
	e := newError("invalid_field")
	e.field, e.message = field, message
	return e
}

// An operatorError is why what an operator asked for is not done, in words for
// whoever asked. field is what of it is at fault, as keyRequest and the like
// call it; "" where nothing is, and it cannot be done as things are.
type operatorError struct{ field, message string }

func (e *operatorError) Error() string { return e.message }

func operatorErrorf(field, format string, args ...any) error {
	return &operatorError{field, fmt.Sprintf(format, args...)}
}

// publicError turns any error into the client's. What it does not know is
// internal; the caller logs the cause.
func publicError(err error) *apiError {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, errUnavailable), errors.Is(err, errClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return newError("unavailable").header("Retry-After", "1")
	}
	return newError("internal")
}

// alternatives lists words as Spanish does: a, b o c.
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " o " + words[last]
}
