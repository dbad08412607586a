package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A row is a request to the API, written as in transcripts. Each {kind} is a place, to be
// filled with a value of that kind.
type row struct {
	text string
	want int    // status, if every place has a value of the caller's own
	code string // of that answer, if it is an error

	// The request is refused for a field, so no id is looked up: contract §3
	// checks fields before existence.
	fields bool
	once   bool // a second request gets another answer, or others do after it
	within bool // an error is within an answer of 200
}

var rows = []row{
	{text: `GET /api/v1/customers`, want: 200},
	{text: `GET /api/v1/customers?search={name}`, want: 200},
	{text: `GET /api/v1/customers?search={email}&limit=1`, want: 200},
	{text: `GET /api/v1/customers?search={phone}`, want: 200},
	{text: `GET /api/v1/customers?after=&limit=2`, want: 200},
	{text: `GET /api/v1/customers?after=AQAAAAAAAAAB&status=Active&updatedSince=2020-01-01`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}`, want: 200},
	{text: `GET /api/v1/customers/lookup?phone={phone}`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}&phone={phone2}`, want: 200},
	{text: `GET /api/v1/customers/{customer}`, want: 200},
	{text: `GET /api/v1/customers/{inactive}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"email": "{email}"}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"phoneNumber": "{phone}", "firstName": "Eva"}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"email": "{email}", "phoneNumber": "{phone}", "lastName": "Luz"}`, want: 200},
	{text: `POST /api/v1/customers
{"email": "{email}", "phoneNumber": "{phone2}"}`, want: 409, code: "identity_conflict"},
	{text: `POST /api/v1/customers
{"email": "neu@example.com", "externalId": "{member}"}`, want: 409, code: "external_id_taken"},
	{text: `GET /api/v1/customers?status=Inactive`, want: 200},
	{text: `GET /api/v1/customers?search={name}&status=Active`, want: 200},
	{text: `GET /api/v1/customers/lookup?externalId={member}`, want: 200},
	{text: `PATCH /api/v1/customers/{customer}
{"firstName": "Eva", "birthDate": "1990-02-28", "attributes": {"a": 1}}`, want: 200},
	{text: `PATCH /api/v1/customers/{inactive}
{"status": "Active"}`, want: 200},
	{text: `PATCH /api/v1/customers/{customer}
{"email": "{email}"}`, want: 409, code: "identity_conflict"},
	{text: `PATCH /api/v1/customers/{customer}
{"phoneNumber": "{phone}"}`, want: 409, code: "identity_conflict"},
	{text: `PATCH /api/v1/customers/{customer}
{"externalId": "{member}"}`, want: 409, code: "external_id_taken"},
	{text: `PATCH /api/v1/customers/{customer}
If-Match: "0"
{"firstName": "Eva"}`, want: 412, code: "precondition_failed"},
	{text: `POST /api/v1/customers/{customer}/merge
Idempotency-Key: {retry}
{"from": "{inactive}"}`, want: 200, once: true},
	{text: `POST /api/v1/customers/{customer}/merge?dryRun=true
{"from": "{solo}"}`, want: 200},
	{text: `POST /api/v1/customers/{pair}/merge
{"from": "{customer}"}`, want: 200, once: true},
	{text: `GET /api/v1/customers/{customer}/export`, want: 200},
	{text: `POST /api/v1/customers/{customer}/erase
{"confirm": "erase"}`, want: 400, code: "invalid_field", fields: true},
	{text: `POST /api/v1/customers/{customer}/erase
Idempotency-Key: {retry}
{"confirm": "ERASE"}`, want: 200, once: true},

	{text: `GET /api/v1/points/customers/{customer}/balance`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/balance?loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/balance?loyaltyProgramId={sellos}&asOf=2026-01-01`, want: 200},
	{text: `GET /api/v1/customers/{customer}/statement?month=2026-01&loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/movements`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/movements?loyaltyProgramId={club}&type=Credit`, want: 200},
	{text: `POST /api/v1/points/customers/{customer}/add
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5}`, want: 400, code: "program_required", fields: true},
	{text: `POST /api/v1/points/customers/{inactive}/add
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 400, code: "customer_inactive"},
	{text: `POST /api/v1/points/customers/{customer}/deduct
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{customer}/deduct
{"amount": 99999, "loyaltyProgramId": "{club}"}`, want: 400, code: "insufficient_balance"},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5, "loyaltyProgramId": "{club}", "reference": "R-1"}`, want: 201, once: true},
	{text: `POST /api/v1/points/batch
{"movements": [{"customerId": "{customer}", "type": "Credit", "amount": 5, "loyaltyProgramId": "{club}"}]}`, want: 200, within: true},
	{text: `POST /api/v1/points/batch
Idempotency-Key: {retry}
{"movements": []}`, want: 400, code: "invalid_field", fields: true},
	{text: `GET /api/v1/points/customers/{customer}/holds`, want: 200},
	{text: `POST /api/v1/points/customers/{customer}/holds
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{inactive}/holds
{"amount": 5}`, want: 400, code: "customer_inactive"},
	{text: `GET /api/v1/points/holds/{hold}`, want: 200},
	{text: `POST /api/v1/points/holds/{hold}/capture
Idempotency-Key: {retry}
{"amount": 2}`, want: 200, once: true},
	{text: `POST /api/v1/points/holds/{hold}/capture
{"amount": 6}`, want: 400, code: "hold_exceeded"},
	{text: `POST /api/v1/points/holds/{hold}/release
Idempotency-Key: {retry}`, want: 200, once: true},

	{text: `GET /api/v1/transactions`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}&externalId={external}`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}&search={name}`, want: 200},
	{text: `GET /api/v1/transactions?externalId={external}`, want: 200},
	{text: `GET /api/v1/transactions?search={email}`, want: 200},
	{text: `GET /api/v1/transactions?search={name}&type=Purchase&from=2026-11-01`, want: 200},
	{text: `GET /api/v1/transactions/{sale}`, want: 200},
	{text: `GET /api/v1/transactions/{return}`, want: 200},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 20, "items": [{"sku": "A", "price": 10, "quantity": 2}]}`, want: 201},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "pay": {"hold": "{hold}"}}`, want: 201, once: true},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 30, "externalId": "{external}"}`, want: 200}, // again: the same sale (contract §6)
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}`, want: 201},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "externalId": "{external}"}`, want: 201},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 99999, "type": "Return", "originalTransactionId": "{sale}"}`, want: 400, code: "return_exceeds_purchase"},
	{text: `POST /api/v1/transactions
{"customerId": "{inactive}", "totalAmount": 1}`, want: 400, code: "customer_inactive"},
	{text: `POST /api/v1/transactions/batch
{"transactions": [{"customerId": "{customer}", "totalAmount": 20}]}`, want: 200, within: true},
	{text: `POST /api/v1/transactions/batch
Idempotency-Key: {retry}
{"transactions": []}`, want: 400, code: "invalid_field", fields: true},
	{text: `POST /api/v1/transactions/batch
{"transactions": [{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}]}`, want: 200, within: true},
	{text: `POST /api/v1/transactions?dryRun=true
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}`, want: 200},

	{text: `GET /api/v1/rewards`, want: 200},
	{text: `GET /api/v1/rewards?customerId={customer}`, want: 200},
	{text: `GET /api/v1/rewards?search={name}`, want: 200},
	{text: `GET /api/v1/rewards/{espresso}`, want: 200},
	{text: `POST /api/v1/rewards/redeem
Idempotency-Key: {retry}
{"customerId": "{customer}", "productId": "{espresso}"}`, want: 201},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{termo}"}`, want: 409, code: "reward_out_of_stock"},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{yate}"}`, want: 400, code: "insufficient_balance"},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{inactive}", "productId": "{espresso}"}`, want: 400, code: "customer_inactive"},
	{text: `GET /api/v1/redemptions`, want: 200},
	{text: `GET /api/v1/redemptions?customerId={customer}&productId={espresso}`, want: 200},
	{text: `GET /api/v1/redemptions?productId={vale}&status=Issued&from=2026-11-01`, want: 200},
	{text: `GET /api/v1/redemptions?code={code}`, want: 200},
	{text: `GET /api/v1/redemptions/{redemption}`, want: 200},
	{text: `POST /api/v1/redemptions/use
Idempotency-Key: {retry}
{"code": "{code}", "transactionId": "{sale}"}`, want: 200, once: true},
	{text: `POST /api/v1/redemptions/use
{"code": "{done}"}`, want: 409, code: "redemption_already_used"},
	{text: `POST /api/v1/redemptions/{redemption}/cancel
Idempotency-Key: {retry}`, want: 200, once: true},
	{text: `POST /api/v1/redemptions/{cancelled}/cancel
Idempotency-Key: {retry}`, want: 409, code: "redemption_not_cancellable"},

	{text: `GET /api/v1/segments`, want: 200},
	{text: `GET /api/v1/segments/{vip}`, want: 200},
	{text: `GET /api/v1/segments/{vip}/customers?limit=1`, want: 200},
	{text: `GET /api/v1/segments/{vip}/customers?after=AQAAAAAAAAAB`, want: 200},
	{text: `GET /api/v1/loyalty/programs`, want: 200},
	{text: `GET /api/v1/loyalty/programs/{club}`, want: 200},
	{text: `GET /api/v1/statistics`, want: 200},
	{text: `GET /api/v1/statistics?loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/organization`, want: 200},
	{text: `GET /api/v1/audit`, want: 200},
	{text: `GET /api/v1/audit?subject={subject}&action=redemption.cancelled`, want: 200},
	{text: `GET /api/v1/audit?actor={name}`, want: 200},
	{text: `GET /api/v1/openapi.json`, want: 200},
	{text: `GET /docs`, want: 200},
	{text: `GET /api/v1/events`, want: 200},
	{text: `GET /api/v1/events?after=1&type=customer.*`, want: 200},
	{text: `GET /livez`, want: 200},
	{text: `GET /readyz`, want: 200},
}

// notFound is the error for an id that does not exist, by the kind of its place. The
// other kinds are not ids: they find something or nothing.
var notFound = map[string]string{
	"customer": "customer_not_found", "inactive": "customer_not_found", "solo": "customer_not_found", "pair": "customer_not_found",
	"sale": "transaction_not_found", "return": "transaction_not_found",
	"hold":       "hold_not_found",
	"redemption": "redemption_not_found", "cancelled": "redemption_not_found",
	"espresso": "reward_not_found", "termo": "reward_not_found", "yate": "reward_not_found", "vale": "reward_not_found",
	"vip": "segment_not_found", "club": "program_not_found", "sellos": "program_not_found",
}

// A place is a part of a request that names something.
type place struct {
	kind   string
	inPath bool
}

var placeForm = regexp.MustCompile(`\{(\w+)\}`)

func (r *row) places() (list []place) {
	query := strings.IndexAny(r.text+"?\n", "?\n")
	for _, at := range placeForm.FindAllStringSubmatchIndex(r.text, -1) {
		list = append(list, place{r.text[at[2]:at[3]], at[0] < query})
	}
	return list
}

// fill returns the request with a value in each place.
func (r *row) fill(values []string) step {
	head, rest, more := strings.Cut(r.text, "\n")
	next := func(string) string {
		v := values[0]
		values = values[1:]
		return v
	}
	head = placeForm.ReplaceAllStringFunc(head, func(m string) string {
		return strings.ReplaceAll(url.QueryEscape(next(m)), "+", "%20")
	})
	rest = placeForm.ReplaceAllStringFunc(rest, func(m string) string {
		literal, _ := json.Marshal(next(m))
		return string(literal[1 : len(literal)-1])
	})
	if more {
		head += "\n" + rest
	}
	return newStep(head)
}

// TestTenantRows checks that the rows have every route, and a place for every input by
// which the route finds something.
func TestTenantRows(t *testing.T) {
	t.Parallel()
	for _, missing := range missingRows(newAPI(nil, nil, nil).routes(), rows) {
		t.Error("no row has ", missing)
	}

	t.Run("control", func(t *testing.T) {
		routes := newAPI(nil, nil, nil).routes()
		also := append(slices.Clone(routes), route{pattern: "GET /api/v1/new/{newId}"})
		if got := missingRows(also, rows); !slices.Contains(got, "GET /api/v1/new/{newId}") {
			t.Error("a route without a row was not missed")
		}
		for _, gone := range []string{"{sale}", "{retry}", "customerId={", `"productId": "{`, "email={", "search={"} {
			less := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return strings.Contains(r.text, gone) })
			if len(missingRows(routes, less)) == 0 {
				t.Errorf("without %s nothing was missed", gone)
			}
		}
	})
}

func missingRows(routes []route, rows []row) (missing []string) {
	a := newAPI(nil, nil, nil)
	byPattern := map[string][]string{}
	for _, r := range rows {
		head, _, _ := strings.Cut(placeForm.ReplaceAllString(r.text, "x"), "\n")
		method, target, _ := strings.Cut(head, " ")
		u, _ := url.Parse(target)
		_, pattern := a.mux.Handler(&http.Request{Method: method, URL: u})
		byPattern[pattern] = append(byPattern[pattern], r.text)
	}
	names := func(text, name string) bool {
		return strings.Contains(text, name+"={") || strings.Contains(text, `"`+name+`": "{`) || strings.Contains(text, name+": {")
	}
	for _, r := range routes {
		texts := byPattern[r.pattern]
		if len(texts) == 0 {
			missing = append(missing, r.pattern)
			continue
		}
		inPath := strings.Count(r.pattern, "{")
		if !slices.ContainsFunc(texts, func(text string) bool {
			path, _, _ := strings.Cut(strings.SplitN(text, "\n", 2)[0], "?")
			return strings.Count(path, "{") == inPath
		}) {
			missing = append(missing, r.pattern+", its path")
		}
		for _, input := range inputsOf(r.pattern) {
			if !slices.ContainsFunc(texts, func(text string) bool { return names(text, input) }) {
				missing = append(missing, r.pattern+", "+input)
			}
		}
	}
	return missing
}

// inputsOf returns the parameters and fields by which a route finds something, as
// openapi.json has them.
func inputsOf(pattern string) (list []string) {
	for _, in := range documentedInputs()[pattern] {
		if in == "email" || in == "phone" || in == "phoneNumber" || in == "search" || in == "Idempotency-Key" || strings.HasSuffix(in, "Id") {
			list = append(list, in)
		}
	}
	return list
}

// documentedInputs returns the parameters and fields of each route, without those of the
// path and X-Request-Id.
var documentedInputs = sync.OnceValue(func() map[string][]string {
	type parameter struct {
		Ref      string `json:"$ref"`
		Name, In string
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []parameter
			RequestBody struct {
				Content map[string]struct{ Schema docSchema }
			}
		}
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]*docSchema
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		panic(err)
	}
	inputs := map[string][]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			var list []string
			for _, p := range op.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = doc.Components.Parameters[name]
				}
				if p.In != "path" && p.Name != "X-Request-Id" {
					list = append(list, p.Name)
				}
			}
			schema := op.RequestBody.Content["application/json"].Schema
			if name, ok := strings.CutPrefix(schema.Ref, "#/components/schemas/"); ok {
				schema = *doc.Components.Schemas[name]
			}
			inputs[strings.ToUpper(method)+" "+path] = append(list, slices.Sorted(maps.Keys(schema.Properties))...)
		}
	}
	return inputs
})
