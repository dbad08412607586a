package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

// openapi.json is written by hand. These tests compare it with the code.

// An apiDoc is the part of openapi.json that the tests read.
type apiDoc struct {
	Info       struct{ Description string }
	Security   []map[string][]string
	Paths      map[string]map[string]*docOperation // by path, then method
	Webhooks   map[string]map[string]*docOperation // by type of event, then method
	Components struct {
		Schemas    map[string]*docSchema
		Responses  map[string]*docContent
		Parameters map[string]docParameter
	}

	used map[string]bool // schemas that were looked at
}

type docOperation struct {
	Security    []map[string][]string
	Scope       string `json:"x-scope"`
	Parameters  []docParameter
	RequestBody *docContent
	Responses   map[string]*docContent // by status
}

type docParameter struct {
	Ref      string `json:"$ref"`
	Name, In string
}

// A docContent is a request's body or a response.
type docContent struct {
	Ref     string `json:"$ref"`
	Content map[string]docMedia
}

type docMedia struct {
	Schema   *docSchema
	Example  any
	Examples map[string]struct{ Value any }
}

type docSchema struct {
	Ref        string `json:"$ref"`
	Type       any    // a word, or a word and "null"
	Properties map[string]*docSchema
	Required   []string
	Items      *docSchema
	OneOf      []*docSchema
	AllOf      []*docSchema
	Enum       []any

	Discriminator *struct {
		PropertyName string
		Mapping      map[string]string // value of the property → reference
	}
}

func readAPIDoc(t *testing.T) *apiDoc {
	d := &apiDoc{used: map[string]bool{}}
	if err := json.Unmarshal(openAPI, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// operations yields each operation as `GET /path`.
func (d *apiDoc) operations(yield func(string, *docOperation) bool) {
	for p, methods := range d.Paths {
		for method, op := range methods {
			if !yield(strings.ToUpper(method)+" "+p, op) {
				return
			}
		}
	}
}

func (d *apiDoc) response(r *docContent) *docContent {
	if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
		return d.Components.Responses[name]
	}
	return r
}

// plain follows references. It returns a schema's type, and apart from it whether null
// is allowed.
func (d *apiDoc) plain(s *docSchema) (kind string, null bool, plain *docSchema) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		d.used[name] = true
		return d.plain(d.Components.Schemas[name])
	}
	if len(s.OneOf) == 2 && s.OneOf[1].Type == "null" {
		kind, _, plain = d.plain(s.OneOf[0])
		return kind, true, plain
	}
	if len(s.AllOf) > 0 {
		return "object", false, d.joined(s)
	}
	if words, ok := s.Type.([]any); ok {
		return words[0].(string), words[1] == "null", s
	}
	kind, _ = s.Type.(string)
	return kind, false, s
}

// joined returns a schema with the properties of all objects that it consists of.
func (d *apiDoc) joined(s *docSchema) *docSchema {
	all := &docSchema{Type: "object", Properties: map[string]*docSchema{}}
	for _, part := range s.AllOf {
		_, _, plain := d.plain(part)
		maps.Copy(all.Properties, plain.Properties)
		all.Required = append(all.Required, plain.Required...)
	}
	return all
}

// matches checks that a schema describes what encoding/json makes of a type,
// field by field.
func (d *apiDoc) matches(t *testing.T, at string, s *docSchema, typ reflect.Type, omitEmpty bool) {
	t.Helper()
	kind, null, s := d.plain(s)
	if s.Discriminator != nil {
		for _, one := range s.OneOf {
			d.matches(t, at, one, typ, omitEmpty)
		}
		return
	}
	pointer := typ.Kind() == reflect.Pointer
	if pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[salePrograms]() { // is encoded as a list
		typ = reflect.TypeFor[[]saleProgram]()
	}
	if typ == reflect.TypeFor[saleLabels]() { // are encoded as an object
		typ = reflect.TypeFor[map[string]string]()
	}
	mayBeNull := typ == reflect.TypeFor[instant]() || typ.Kind() == reflect.Slice
	if want := pointer && !omitEmpty; null != want && !mayBeNull {
		t.Errorf("%s: null is %v, and the code has %v", at, null, want)
	}
	if want := jsonKind(typ); kind != want {
		t.Errorf("%s: %q is described, and the code has %q (%v)", at, kind, want, typ)
		return
	}
	switch {
	case kind == "array":
		d.matches(t, at+"[]", s.Items, typ.Elem(), false)
	case typ.Kind() == reflect.Struct:
		described := maps.Clone(s.Properties)
		for _, f := range reflect.VisibleFields(typ) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			property := described[name]
			if property == nil {
				t.Errorf("%s.%s is not described", at, name)
				continue
			}
			delete(described, name)
			omitEmpty := options == "omitempty"
			if required := slices.Contains(s.Required, name); required == omitEmpty {
				t.Errorf("%s.%s: required is %v", at, name, required)
			}
			fieldType := f.Type
			if f.Type == reflect.TypeFor[any]() {
				fieldType = hiddenTypes[name]
			}
			d.matches(t, at+"."+name, property, fieldType, omitEmpty)
		}
		for name := range described {
			t.Errorf("%s.%s is described and does not exist", at, name)
		}
	}
}

// hiddenTypes are the types of the values in fields declared as any, by JSON name.
var hiddenTypes = map[string]reflect.Type{
	"data":    reflect.TypeFor[map[string]any](), // of an event; eventsMatch looks at each
	"profile": reflect.TypeOf(organization{}.Profile),
}

func jsonKind(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[decimal]():
		return "number"
	case reflect.TypeFor[id](), reflect.TypeFor[instant]():
		return "string"
	case reflect.TypeFor[jsonText]():
		return "" // any value
	}
	switch typ.Kind() {
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Uint64:
		return "integer"
	}
	return typ.Kind().String()
}

// accepts returns why a schema does not describe a value, or nil if it does.
func (d *apiDoc) accepts(s *docSchema, v any) error {
	kind, null, plain := d.plain(s)
	if v == nil && null {
		return nil
	}
	if plain.Discriminator != nil {
		o, _ := v.(map[string]any)
		word, _ := o[plain.Discriminator.PropertyName].(string)
		ref := plain.Discriminator.Mapping[word]
		if ref == "" {
			return fmt.Errorf(": there is no schema for %s %q", plain.Discriminator.PropertyName, word)
		}
		return d.accepts(&docSchema{Ref: ref}, v)
	}
	if v != nil && plain.Enum != nil && !slices.Contains(plain.Enum, v) {
		return fmt.Errorf("%v is none of %v", v, plain.Enum)
	}
	number, isNumber := v.(float64)
	switch {
	case kind == "":
		return nil
	case kind == "integer" && isNumber && number == math.Trunc(number), kind == "number" && isNumber:
		return nil
	case kind == "string" && reflect.TypeOf(v) == reflect.TypeFor[string](), kind == "boolean" && reflect.TypeOf(v) == reflect.TypeFor[bool]():
		return nil
	}
	switch v := v.(type) {
	case []any:
		if kind != "array" {
			break
		}
		for i, element := range v {
			if err := d.accepts(plain.Items, element); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
		return nil
	case map[string]any:
		if kind != "object" {
			break
		}
		for _, name := range plain.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf(".%s is missing", name)
			}
		}
		for name, member := range v {
			property := plain.Properties[name]
			if narrowed := s.Properties[name]; narrowed != nil && narrowed.Enum != nil && !slices.Contains(narrowed.Enum, member) {
				return fmt.Errorf(".%s: %v is none of %v", name, member, narrowed.Enum)
			}
			if property == nil && plain.Properties != nil {
				return fmt.Errorf(".%s is not described", name)
			} else if property == nil {
				continue
			}
			if err := d.accepts(property, member); err != nil {
				return fmt.Errorf(".%s: %w", name, err)
			}
		}
		return nil
	}
	return fmt.Errorf(" %v is no %s", v, kind)
}

func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	doc := readAPIDoc(t)
	if d := diff.Diff([]map[string][]string{{"bearer": {}}, {"apiKey": {}}}, doc.Security); d != "" {
		t.Errorf("what an operation without security of its own asks for:\n%s", d)
	}
	described, served := map[string]string{}, map[string]string{}
	for name, op := range doc.operations {
		if described[name] = op.Scope; op.Security != nil && len(op.Security) == 0 {
			described[name] += "no key"
		}
	}
	for _, r := range new(api).routes() {
		served[r.pattern] = cmp.Or(r.scope, "no key")
	}
	if d := diff.Diff(served, described); d != "" {
		t.Errorf("routes (-served +described):\n%s", d)
	}
}

// TestDryRuns: a route that writes has a dry run if its description says so; of any other one it is
// refused, and nothing is done (contract §31).
func TestDryRuns(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	_, key := s.newKey(keyRequest{})
	a, doc := newAPI(s.engine, nil, slog.New(slog.DiscardHandler)), readAPIDoc(t)
	before := s.entries()
	for _, r := range a.routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if !writes(method) {
			continue
		}
		has := false
		for name, op := range doc.operations {
			has = has || name == r.pattern && slices.ContainsFunc(op.Parameters, func(p docParameter) bool { return p.Name == "dryRun" })
		}
		w := answerTo(a, newRequest(method, path+"?dryRun=true", key, "{}"))
		if refused := strings.Contains(w.Body.String(), `"dry_run_unavailable"`); refused == has || refused && w.Code != http.StatusBadRequest {
			t.Errorf("%s: has a dry run: %v, but %d %s", r.pattern, has, w.Code, w.Body)
		}
	}
	if !reflect.DeepEqual(before, s.entries()) {
		t.Error("something was done")
	}
}

// An exportedCustomer is the whole of what a personExport writes.
type exportedCustomer struct {
	ExportedAt      instant           `json:"exportedAt"`
	Customer        customerDetail    `json:"customer"`
	Notices         []writtenShape    `json:"notices"`
	UndoRequests    []askedShape      `json:"undoRequests"`
	Accounts        []exportedAccount `json:"accounts"`
	Transactions    []saleShape       `json:"transactions"`
	Redemptions     []redemptionShape `json:"redemptions"`
	AuditEntries    []auditShape      `json:"auditEntries"`
	MergedCustomers []map[string]any  `json:"mergedCustomers"`
}

type exportedAccount struct {
	balance
	LifetimePoints   decimal         `json:"lifetimePoints"` // always known
	LoyaltyProgramID id              `json:"loyaltyProgramId"`
	TierName         *string         `json:"tierName"`
	Holds            []holdShape     `json:"holds"`
	Movements        []movementShape `json:"movements"`
}

func TestOpenAPIShapes(t *testing.T) {
	t.Parallel()
	d := readAPIDoc(t)
	shapes := map[string]any{
		"GET /api/v1/customers": struct {
			Data []customerItem `json:"data"`
			Meta *listMeta      `json:"meta,omitempty"` // without after
			Next instant        `json:"next,omitempty"` // with it; a text that may be null, as moments are
		}{},
		"GET /api/v1/segments/{segmentId}/customers":          walkedCustomers{},
		"GET /api/v1/customers/lookup":                        new(customerDetail),
		"GET /api/v1/customers/{customerId}":                  customerDetail{},
		"POST /api/v1/customers":                              customerDetail{},
		"PATCH /api/v1/customers/{customerId}":                customerDetail{},
		"POST /api/v1/customers/{customerId}/merge":           mergedShape{},
		"POST /api/v1/customers/{customerId}/erase":           customerDetail{},
		"POST /api/v1/customers/{customerId}/card":            cardShape{},
		"POST /api/v1/customers/{customerId}/card/revoke":     cardShape{},
		"GET /api/v1/customers/{customerId}/export":           exportedCustomer{},
		"GET /api/v1/customers/{customerId}/statement":        statedMonth{},
		"GET /api/v1/points/customers/{customerId}/balance":   balance{},
		"GET /api/v1/points/customers/{customerId}/movements": listShape[movementShape]{},
		"POST /api/v1/points/customers/{customerId}/add":      movementShape{},
		"POST /api/v1/points/customers/{customerId}/deduct":   movementShape{},
		"GET /api/v1/points/customers/{customerId}/holds":     listShape[holdShape]{},
		"POST /api/v1/points/customers/{customerId}/holds":    holdShape{},
		"GET /api/v1/points/holds/{holdId}":                   holdShape{},
		"POST /api/v1/points/holds/{holdId}/capture":          holdShape{},
		"POST /api/v1/points/holds/{holdId}/release":          holdShape{},
		"GET /api/v1/transactions":                            listShape[saleShape]{},
		"GET /api/v1/transactions/{transactionId}":            saleShape{},
		"POST /api/v1/transactions":                           saleShape{},
		"POST /api/v1/transactions/batch":                     batchShape{},
		"POST /api/v1/points/batch":                           movementBatch{},
		"GET /api/v1/rewards":                                 listShape[rewardShape]{},
		"GET /api/v1/rewards/{rewardId}":                      rewardShape{},
		"POST /api/v1/rewards/redeem":                         redemptionShape{},
		"GET /api/v1/redemptions":                             listShape[redemptionShape]{},
		"GET /api/v1/redemptions/{redemptionId}":              redemptionShape{},
		"POST /api/v1/redemptions/use":                        redemptionShape{},
		"POST /api/v1/redemptions/{redemptionId}/cancel":      redemptionShape{},
		"GET /api/v1/segments":                                []segmentShape{},
		"GET /api/v1/segments/{segmentId}":                    segmentShape{},
		"GET /api/v1/loyalty/programs":                        listShape[programShape]{},
		"GET /api/v1/loyalty/programs/{programId}":            programShape{},
		"GET /api/v1/statistics":                              statisticsShape{},
		"GET /api/v1/tickets":                                 listShape[ticketShape]{},
		"GET /api/v1/tickets/{ticketId}":                      ticketShape{},
		"POST /api/v1/tickets":                                ticketShape{},
		"POST /api/v1/tickets/claim":                          saleShape{},
		"POST /api/v1/tickets/cancel":                         ticketShape{},
		"GET /api/v1/organization":                            organizationShape{},
		"GET /api/v1/audit":                                   listShape[auditShape]{},
		"GET /api/v1/events":                                  eventList{},
		"GET /api/v1/openapi.json":                            map[string]any{},
		"GET /livez":                                          health{},
		"GET /readyz":                                         health{},
	}
	for name, op := range d.operations {
		if name == "GET /docs" {
			continue // HTML
		}
		shape, ok := shapes[name]
		if !ok {
			t.Errorf("%s: what does it answer?", name)
			continue
		}
		if body := op.RequestBody; body != nil {
			_, _, input := d.plain(body.Content["application/json"].Schema)
			for _, member := range input.Properties {
				d.plain(member)
			}
		}
		for status, r := range op.Responses {
			typ := reflect.TypeOf(shape)
			if status >= "400" {
				typ = reflect.TypeFor[errorBody]()
			}
			d.matches(t, name+" "+status+" ", d.response(r).Content["application/json"].Schema, typ, false)
		}
	}
	d.eventsMatch(t)
	for name := range d.Components.Schemas {
		if !d.used[name] {
			t.Errorf("schema %s describes nothing", name)
		}
	}
}

// eventDataTypes are the types of the values that eventData returns. Shops check them too (feed).
var eventDataTypes = map[string]reflect.Type{
	"customer.created":      reflect.TypeFor[customerDetail](),
	"customer.updated":      reflect.TypeFor[customerDetail](),
	"customer.merged":       reflect.TypeFor[mergeEvent](),
	"customer.erased":       reflect.TypeFor[erasedEvent](),
	"customer.card_issued":  reflect.TypeFor[cardEvent](),
	"customer.card_revoked": reflect.TypeFor[cardEvent](),
	"points.added":          reflect.TypeFor[movementShape](),
	"points.deducted":       reflect.TypeFor[movementShape](),
	"points.available":      reflect.TypeFor[availableEvent](),
	"points.expired":        reflect.TypeFor[movementShape](),
	"points.reversed":       reflect.TypeFor[movementShape](),
	"points.expiring":       reflect.TypeFor[expiringEvent](),
	"ticket.created":        reflect.TypeFor[ticketShape](),
	"ticket.claimed":        reflect.TypeFor[ticketShape](),
	"ticket.cancelled":      reflect.TypeFor[ticketShape](),
	"points.held":           reflect.TypeFor[holdShape](),
	"points.released":       reflect.TypeFor[holdShape](),
	"transaction.created":   reflect.TypeFor[saleShape](),
	"redemption.created":    reflect.TypeFor[redemptionShape](),
	"redemption.used":       reflect.TypeFor[redemptionShape](),
	"redemption.cancelled":  reflect.TypeFor[redemptionShape](),
	"redemption.expired":    reflect.TypeFor[redemptionShape](),
	"tier.changed":          reflect.TypeFor[tierEvent](),
	"tier.expiring":         reflect.TypeFor[tierExpiringEvent](),
	"configuration.applied": reflect.TypeFor[appliedEvent](),
	"webhook.test":          reflect.TypeFor[struct{}](), // of webhooks alone
}

// eventsMatch checks that each type of event has its schema in the feed and as a webhook, and
// that no other type has one.
func (d *apiDoc) eventsMatch(t *testing.T) {
	t.Helper()
	feed := d.Components.Schemas["Event"].Discriminator.Mapping
	if d := diff.Diff(slices.Sorted(slices.Values(eventTypes)), slices.Sorted(maps.Keys(feed))); d != "" {
		t.Errorf("types of events (-code +described):\n%s", d)
	}
	if d := diff.Diff(slices.Sorted(maps.Keys(eventDataTypes)), slices.Sorted(maps.Keys(d.Webhooks))); d != "" {
		t.Errorf("types of webhooks (-code +described):\n%s", d)
	}
	data := func(at, name string, s *docSchema) {
		_, _, whole := d.plain(s)
		if kinds := whole.Properties["type"].Enum; !slices.Contains(kinds, any(name)) {
			t.Errorf("%s: its type is one of %v", at, kinds)
		}
		d.matches(t, at+".data", whole.Properties["data"], eventDataTypes[name], false)
	}
	for name, ref := range feed {
		data("event "+name, name, &docSchema{Ref: ref})
	}
	for name, methods := range d.Webhooks {
		s := methods["post"].RequestBody.Content["application/json"].Schema
		d.matches(t, "webhook "+name, s, reflect.TypeFor[webhookEvent](), false)
		data("webhook "+name, name, s)
	}
}

func TestOpenAPIErrors(t *testing.T) {
	t.Parallel()
	d := readAPIDoc(t)
	inTable := slices.Sorted(maps.Keys(errorTable))
	var described []string
	for _, code := range d.Components.Schemas["Error"].Properties["code"].Enum {
		described = append(described, code.(string))
	}
	slices.Sort(described)
	if d := diff.Diff(inTable, described); d != "" {
		t.Errorf("codes (-served +described):\n%s", d)
	}
	for code, row := range errorTable {
		line := fmt.Sprintf("| `%s` | %d | ", code, row.status)
		_, text, found := strings.Cut(d.Info.Description, line)
		text, _, _ = strings.Cut(text, "\n")
		if !found || !strings.Contains(text, strings.TrimSpace(row.message)) {
			t.Errorf("the description has no line %s%s", line, row.message)
		}
	}
	// Some endpoint has each error code, under its own status. Those preset here need none.
	reached := map[string]bool{
		"route_not_found": true, "method_not_allowed": true, "bad_request": true, "expectation_failed": true, "headers_too_large": true, "https_required": true,
	}
	for name, op := range d.operations {
		for status, r := range op.Responses {
			if status < "400" {
				continue
			}
			for _, code := range d.response(r).Content["application/json"].Schema.Properties["code"].Enum {
				reached[code.(string)] = true
				if want := strconv.Itoa(errorTable[code.(string)].status); status != want {
					t.Errorf("%s: %v under %s, not %s", name, code, status, want)
				}
			}
		}
	}
	if d := diff.Diff(inTable, slices.Sorted(maps.Keys(reached))); d != "" {
		t.Errorf("codes at endpoints (-served +described):\n%s", d)
	}
}

func TestOpenAPIWords(t *testing.T) {
	t.Parallel()
	d := readAPIDoc(t)
	words := func(schema, property string) []any {
		s := d.Components.Schemas[schema].Properties[property]
		if s.Items != nil {
			s = s.Items
		}
		return s.Enum
	}
	for _, c := range []struct {
		schema, property string
		want             []string
	}{
		{"AddInput", "category", addCategories},
		{"DeductInput", "category", deductCategories},
		{"Movement", "category", allCategories},
		{"Redemption", "status", redemptionStatuses},
		{"Reward", "unavailabilityReasons", []string{
			reasonCustomer, reasonInactive, reasonNotYet, reasonOver, reasonTier, reasonSegment, reasonNoStock, reasonLimit, reasonNoBalance,
		}},
	} {
		var got []string
		for _, word := range words(c.schema, c.property) {
			got = append(got, word.(string))
		}
		if d := diff.Diff(c.want, got); d != "" {
			t.Errorf("%s.%s (-code +described):\n%s", c.schema, c.property, d)
		}
	}
}

func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d := readAPIDoc(t)
	check := func(at string, c *docContent) {
		media := d.response(c).Content["application/json"]
		examples := map[string]any{}
		if media.Example != nil {
			examples["example"] = media.Example
		}
		for name, e := range media.Examples {
			examples[name] = e.Value
		}
		for name, value := range examples {
			if err := d.accepts(media.Schema, value); err != nil {
				t.Errorf("%s: %s%v", at, name, err)
			}
		}
	}
	for name, op := range d.operations {
		if op.RequestBody != nil {
			check(name, op.RequestBody)
		}
		for status, r := range op.Responses {
			check(name+" "+status, r)
		}
	}
}

// describes returns why the document does not describe a response of a route, or nil
// if it does. It checks the status and the body. TestGolden calls it for every response
// of the transcripts.
func (d *apiDoc) describes(route, method string, status int, body []byte) error {
	verb, path, _ := strings.Cut(route, " ")
	op := d.Paths[path][strings.ToLower(verb)]
	if op == nil {
		return nil // not a route of the document
	}
	response := op.Responses[strconv.Itoa(status)]
	if response == nil {
		return fmt.Errorf("%s: %d is not described", route, status)
	}
	if method == http.MethodHead {
		return nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	if err := d.accepts(d.response(response).Content["application/json"].Schema, v); err != nil {
		return fmt.Errorf("%s %d: %w", route, status, err)
	}
	return nil
}

func TestOpenAPIServed(t *testing.T) {
	t.Parallel()
	s := newMemStore()
	defer s.Close()
	a := newAPIOf(newEngine(s, time.Now, cryptoSeed))
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/openapi.json", nil)) // no key
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatal(w.Code, w.Header(), w.Body)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, bytes.Replace(openAPI, []byte(`"url": "/"`), []byte(`"url": "http://example.com"`), 1)); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(w.Body.String(), "\n"); got != want.String() {
		t.Error("not the document")
	}
}

// TestOpenAPINumbers: every number is a double. Without a format, clients that are generated
// for Go have 32 bits, which hold no more than seven digits.
func TestOpenAPINumbers(t *testing.T) {
	t.Parallel()
	var look func(at string, v any)
	look = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for i, element := range v {
				look(fmt.Sprintf("%s[%d]", at, i), element)
			}
		case map[string]any:
			kinds, _ := v["type"].([]any)
			if (v["type"] == "number" || slices.Contains(kinds, any("number"))) && v["format"] != "double" {
				t.Errorf("%s has no \"format\": \"double\"", at)
			}
			for name, member := range v {
				look(at+"."+name, member)
			}
		}
	}
	var doc any
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	look("", doc)
}

// TestOpenAPIActor: every write takes X-Actor, and no other request does.
func TestOpenAPIActor(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Ref string `json:"$ref"`
			}
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			takes := false
			for _, p := range op.Parameters {
				takes = takes || p.Ref == "#/components/parameters/Actor"
			}
			if takes != (method != "get") {
				t.Errorf("%s %s takes X-Actor: %v", method, path, takes)
			}
		}
	}
}

// TestOpenAPIAuditActions: AuditEntry.action names every action.
func TestOpenAPIAuditActions(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas struct {
				AuditEntry struct {
					Properties struct{ Action struct{ Description string } }
				}
			}
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	for _, action := range auditActions {
		if text := doc.Components.Schemas.AuditEntry.Properties.Action.Description; !strings.Contains(text, "`"+action+"`") {
			t.Errorf("%s is not in %q", action, text)
		}
	}
}
