package main

import (
	"encoding/json"
	"flag"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
)

var updateGolden = flag.Bool("update", false, "rewrite the responses in testdata/golden that changed")

func TestGolden(t *testing.T) {
	backends := []struct {
		name string
		open func(*testing.T) Store
	}{
		{"mem", func(*testing.T) Store { return newMemStore() }},
		{"bolt", func(t *testing.T) Store {
			s, err := openBolt(filepath.Join(t.TempDir(), "sello.db"), disk.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}},
		{"twice", func(*testing.T) Store { return runTwice(newMemStore()) }},
	}
	for _, file := range goldenFiles(t) {
		for i, backend := range backends {
			if t.Failed() && *updateGolden {
				return
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+backend.name, func(t *testing.T) {
				if !*updateGolden {
					t.Parallel()
				}
				w := newWorld(t, backend.open(t))
				w.play(filepath.Join("testdata", "world", "world.txt"), *updateGolden && i == 0)
				w.play(file, *updateGolden && i == 0)
				w.verify()
			})
		}
	}
}

func goldenFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return files
}

// goldenResponses yields every step of every transcript that has a response,
// with its status and, of an error, its body.
func goldenResponses(t *testing.T) iter.Seq2[step, errorBody] {
	return func(yield func(step, errorBody) bool) {
		for _, file := range goldenFiles(t) {
			for _, s := range readSteps(t, file) {
				status, rest, _ := strings.Cut(strings.TrimPrefix(s.want, "=> "), "\n")
				var e errorBody
				if i := strings.Index("\n"+rest, "\n{"); i >= 0 {
					json.Unmarshal([]byte(rest[i:]), &e)
				}
				e.StatusCode, _ = strconv.Atoi(status)
				if s.want != "" && !yield(s, e) {
					return
				}
			}
		}
	}
}

// TestGoldenErrors holds the transcripts against errorTable: they show every
// row of it, and no error that differs from its row.
func TestGoldenErrors(t *testing.T) {
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		if e.StatusCode < 400 || e.Code == "" && s.method == "HEAD" {
			continue
		}
		seen[e.Code] = true
		row, ok := errorTable[e.Code]
		message := row.message
		switch e.Code {
		case "invalid_field":
			message = e.Message
		case "scope_required":
			message += strings.TrimPrefix(e.Message, message)
		case "too_precise", "too_large":
			message = e.Field + message
		}
		if !ok || e.StatusCode != row.status || e.Message != message {
			t.Errorf("%s\n%s\nis not the row %v", s.text, s.want, row)
		}
	}
	for code := range errorTable {
		if !seen[code] {
			t.Errorf("no transcript shows %s", code)
		}
	}
}

// TestGoldenRoutes finds every route in the transcripts, once with success
// and once refused for the scope it needs.
func TestGoldenRoutes(t *testing.T) {
	a := newAPI(nil, nil, nil)
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		target, err := url.Parse(s.target)
		if err != nil {
			continue
		}
		_, pattern := a.mux.Handler(&http.Request{Method: s.method, URL: target})
		if e.StatusCode < 300 {
			seen[pattern] = true
		} else if e.Code == "scope_required" {
			seen[pattern+" without "+strings.TrimPrefix(e.Message, errorTable[e.Code].message)] = true
		}
	}
	for _, r := range a.routes() {
		if !seen[r.pattern] {
			t.Errorf("no transcript shows success of %s", r.pattern)
		}
		if r.scope != "" && !seen[r.pattern+" without "+r.scope] {
			t.Errorf("no transcript shows that %s needs %s", r.pattern, r.scope)
		}
	}
}

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
| 413 | body_too_large | El cuerpo de la solicitud es demasiado grande (over 1 MiB) |
| 415 | unsupported_media_type | Content-Type debe ser application/json |
| 422 | idempotency_key_reused | La Idempotency-Key ya se usó con otra solicitud |
| 500 | internal | Error interno del servidor |
| 503 | unavailable | Servicio no disponible temporalmente (with Retry-After) |
`

func TestErrorTable(t *testing.T) {
	rows := map[string]bool{
		"too_precise": true, "too_large": true, // contract §1
		"bad_request": true, "expectation_failed": true, "headers_too_large": true, // refusals.go
		"clock_unsafe":      true, // contract §11
		"rate_limit_source": true, // of what comes before a key's own limits
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

// TestTwins sends a request many times at once: it is applied once, and all
// get the same answer.
func TestTwins(t *testing.T) {
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	clock := w.clock
	a := newAPI(newEngine(w.store, func() time.Time { return clock }, cryptoSeed), nil, slog.New(slog.DiscardHandler))
	for _, test := range []struct {
		reason, target, header, body string
		again                        int // status of a replay
	}{
		{"the same Idempotency-Key", "/api/v1/points/customers/$maria/add", "k-1", `{"amount": 10}`, http.StatusCreated},
		{"the same externalId", "/api/v1/transactions", "", `{"customerId": "$maria", "totalAmount": 100, "externalId": "P"}`, http.StatusOK},
	} {
		answers := make([]*httptest.ResponseRecorder, 50)
		var wg sync.WaitGroup
		for i := range answers {
			answers[i] = httptest.NewRecorder()
			r := httptest.NewRequest("POST", w.expand(test.target), strings.NewReader(w.expand(test.body)))
			r.Header.Set("X-API-Key", w.expand("$key.luna"))
			r.Header.Set("Content-Type", "application/json")
			if test.header != "" {
				r.Header.Set("Idempotency-Key", test.header)
			}
			wg.Go(func() { a.ServeHTTP(answers[i], r) })
		}
		wg.Wait()
		first := 0
		for _, answer := range answers {
			want := test.again
			if answer.Header().Get("Idempotency-Replayed") == "" {
				first++
				want = http.StatusCreated
			}
			if answer.Code != want || answer.Body.String() != answers[0].Body.String() {
				t.Errorf("%s: %d %s", test.reason, answer.Code, answer.Body)
			}
		}
		if first != 1 {
			t.Errorf("%s: applied %d times", test.reason, first)
		}
	}
	w.verify()
}
