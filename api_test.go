package main

import (
	"strconv"
	"strings"
	"testing"
)

// contractErrors is the table of errors of the contract, §2, as it stands
// there: status, codes and message.
const contractErrors = `
| 401 | api_key_required | API key requerida |
| 401 | api_key_invalid | API key inválida |
| 401 | api_key_expired | API key expirada |
| 403 | plan_without_api | El acceso a la API no está incluido en tu plan |
| 403 | ip_not_allowed | IP no autorizada |
| 403 | scope_required | Scope requerido: customers:read (the scope that is missing) |
| 429 | rate_limit_minute, rate_limit_day, rate_limit_month | Límite de solicitudes excedido |
| 400 | email_or_phone_required | Se requiere email o número de teléfono |
| 400 | phone_invalid | El número de teléfono no es válido |
| 400 | email_invalid | El email no tiene un formato válido |
| 400 | insufficient_balance | Saldo insuficiente |
| 400 | customer_id_required | customerId requerido |
| 400 | product_id_required | productId requerido |
| 400 | total_amount_invalid | totalAmount debe ser mayor a 0 |
| 400 | amount_invalid | amount debe ser mayor a 0 |
| 400 | category_invalid | category no es válida |
| 400 | comment_too_long | comment no puede superar los 500 caracteres |
| 400 | as_of_invalid | asOf debe ser una fecha ISO 8601 |
| 400 | expires_at_invalid | expiresAt debe ser una fecha futura |
| 400 | program_required | loyaltyProgramId requerido |
| 400 | type_invalid | type debe ser Purchase o Return |
| 400 | page_invalid | page debe ser un entero mayor o igual a 1 |
| 400 | limit_invalid | limit debe ser un entero entre 1 y 100 (not an integer, or below 1; above 100 is served as 100) |
| 400 | return_exceeds_purchase | La devolución supera lo comprado |
| 400 | reward_unavailable | La recompensa no está disponible |
| 400 | customer_inactive | El cliente no está activo |
| 400 | invalid_json | El cuerpo no es JSON válido |
| 400 | invalid_field | names the field in Spanish |
| 404 | customer_not_found | Cliente no encontrado |
| 404 | segment_not_found | Segmento no encontrado |
| 404 | reward_not_found | Recompensa no encontrada |
| 404 | program_not_found | Programa de lealtad no encontrado |
| 404 | transaction_not_found | Venta no encontrada |
| 404 | redemption_not_found | Canje no encontrado |
| 404 | route_not_found | Ruta no encontrada |
| 405 | method_not_allowed | Método no permitido (with Allow) |
| 409 | identity_conflict | El email y el teléfono pertenecen a clientes distintos |
| 409 | reward_out_of_stock | Recompensa agotada |
| 409 | redemption_limit_reached | Límite de canjes alcanzado |
| 409 | redemption_not_cancellable | El canje no se puede cancelar |
| 409 | redemption_already_used | El canje ya se usó |
| 409 | redemption_cancelled | El canje está cancelado |
| 400 | redemption_expired | El canje está vencido |
| 413 | body_too_large | El cuerpo de la solicitud es demasiado grande (over 1 MiB) |
| 415 | unsupported_media_type | Content-Type debe ser application/json |
| 422 | idempotency_key_reused | La Idempotency-Key ya se usó con otra solicitud |
| 500 | internal | Error interno del servidor |
| 503 | unavailable | Servicio no disponible temporalmente (with Retry-After) |
`

func TestErrorTable(t *testing.T) {
	rows := map[string]bool{
		"too_precise": true, "too_large": true, // contract §1
		"bad_request": true, "expectation_failed": true, "headers_too_large": true, // request_connections.go
		"https_required": true, // request_connections.go
		"clock_unsafe":   true, // contract §11

		"occurred_at_invalid": true, "external_id_conflict": true, // contract §14

		"events_gone": true, // contract §17

		"points_budget_exceeded": true,                                                                                      // contract §16
		"external_id_taken":      true, "birth_date_invalid": true, "attributes_invalid": true, "precondition_failed": true, // contract §12
		"customer_merged": true, "merge_too_large": true, "customer_erased": true,
		"rate_limit_source": true, // checked before a key's own limits
		"unknown_field":     true, // contract §17

		"points_payment_unavailable": true, "points_payment_too_small": true, "points_payment_too_large": true, // contract §20
		"points_payment_step": true, "points_payment_late": true,
		"hold_not_found": true, "hold_closed": true, "hold_exceeded": true, "too_many_holds": true,

		"labels_invalid": true, // contract §21

		"dry_run_unavailable": true, // contract §31

		"reference_conflict": true, // contract §23

		"member_code_invalid": true, "cards_disabled": true, "join_code_not_found": true, "proof_required": true, "proof_invalid": true, "proof_locked": true, // contract §25

		"tickets_disabled": true, "external_id_required": true, "ticket_invalid": true, "ticket_expired": true, "ticket_not_found": true, "ticket_claimed": true, // contract §26
		"ticket_registered": true, "ticket_cancelled": true, "ticket_limit_reached": true,

		"item_not_purchased": true, "price_changed": true, "external_id_undone": true, "too_many_redemptions": true, // contract §19
	}
	for line := range strings.Lines(strings.TrimSpace(contractErrors)) {
		cells := strings.Split(line, " | ")
		status := strings.TrimPrefix(cells[0], "| ")
		message, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(cells[2]), " |"), " (")
		for code := range strings.SplitSeq(cells[1], ", ") {
			rows[code] = true
			row := errorTable[code]
			switch code {
			case "invalid_field":
				message = ""
			case "scope_required":
				message = strings.TrimSuffix(message, "customers:read")
			}
			if strconv.Itoa(row.status) != status || row.message != message {
				t.Errorf("%s is %d %q, not %s %q", code, row.status, row.message, status, message)
			}
		}
	}
	for code := range errorTable {
		if !rows[code] {
			t.Errorf("%s is not in the contract", code)
		}
	}
}
