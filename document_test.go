package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// everything is a document in which each field is used once or more.
const everything = `{
"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
	"profile":{"country":"MX","industry":"Cafetería","logoUrl":"https://luna.example/logo.png","primaryColor":"#5B3A29"},
	"settings":{"timezone":"America/Mexico_City","currency":"MXN","language":"es","amountDecimals":2,"secondFactor":["owner"],"cards":{"join":true,"proof":"Spending","proofFrom":20,"privacyUrl":"https://cafe.example/aviso"}}},
"programs":[
	{"key":"club","name":"Club Luna","default":true,"currency":"Lunas","pointsDecimals":1,"rounding":"Floor","expiry":{"months":12,"endOf":"Month"},
		"returns":"Reverse","negativeBalance":"Clamp","tierBasis":{"metric":"PointsEarned","window":"Rolling","months":6},
		"payment":{"points":20,"amount":2,"minPoints":40,"maxPercent":50,"step":5,"earnOn":"Paid","excludeSkus":["VINO"]},"excludeSkus":["TABACO-*"],
		"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":1000,"multiplier":1.25}],
		"rules":[
			{"key":"base","name":"Base","per":{"amount":10,"points":1},"minAmount":5,"skus":["A*"],"tiers":["Plata"],"segments":["vip"],"days":["Monday"],
				"hours":{"from":"08:00","to":"10:30"},"from":"2026-01-01","until":"2026-12-31","firstPurchase":true,"maxPerCustomerPerDay":3,"excludeSkus":["AX*"],"minQuantity":2,"labels":{"pago":["efectivo","vale"]},
				"maxPerCustomer":30,"every":4,"maxPoints":70,"budget":900,"category":"Campaign"},
			{"key":"doble","name":"Doble","multiplier":2},
			{"key":"grano","name":"Grano","perItem":5,"pendingDays":7,"expiresInDays":90},
			{"key":"hola","name":"Hola","on":"Signup","points":50}]},
	{"key":"otro","name":"Otro","expiry":{"days":30}}],
"rewards":[{"key":"taza","program":"club","name":"Taza","description":"Una taza","imageUrl":"https://luna.example/taza.png","status":"Active",
	"pointsCost":80,"stock":10,"limitPerCustomer":2,"tiers":["Plata"],"segments":["vip"],"validFrom":"2026-02-01","validTo":"2026-11-30",
	"fulfilment":"Voucher","validDays":30,"effect":{"type":"Percent","percent":10}}],
"segments":[{"key":"vip","name":"VIP","description":"Gasto alto","priority":10,"isActive":true,"rule":{"all":[
	{"any":[{"field":"totalSpent","op":">=","value":5000},{"not":{"field":"tier","op":"=","value":"Bronce"}}]},{"field":"email","op":"=","value":true}]}}],
"webhooks":[{"key":"crm","url":"https://crm.example.com/","events":["points.*"],"status":"Active"}]}`

// longName is one character longer than a name may be.
var longName = strings.Repeat("x", 101)

// documentChanges are changes of the document everything, and the problems that each makes.
var documentChanges = []struct {
	reason   string
	old, new string
	paths    string // of the problems, in order
}{
	{"as it is", `"slug"`, `"slug"`, ""},

	// Form.
	{"not JSON", `{
"organization"`, `{organization`, "línea 1, columna 2"},
	{"a key twice", `"name":"Café Luna"`, `"name":"a","name":"b"`, "línea 2, columna 47"},
	{"a field that is none", `"slug"`, `"x":1,"slug"`, "organization.x"},
	{"a field in another letter case", `"slug"`, `"Slug"`, "organization.Slug organization.slug"},
	{"a field of a list that is none", `"key":"doble"`, `"x":1,"key":"doble"`, "programs[0].rules[1].x"},
	{"a field of an embedded thing that is none", `"months":12`, `"years":1`, "programs[0].expiry.years programs[0].expiry"},
	{"an id, which documents do not have", `"key":"taza"`, `"id":"x","key":"taza"`, "rewards[0].id"},
	{"a number for a text", `"name":"Café Luna"`, `"name":5`, "organization.name"},
	{"a text for a number", `"amount":10`, `"amount":"10"`, "programs[0].rules[0].per.amount"},
	{"five decimals", `"amount":10`, `"amount":10.00001`, "programs[0].rules[0].per.amount"},
	{"a number beyond all", `"threshold":1000`, `"threshold":1e12`, "programs[0].tiers[1].threshold"},
	{"a fraction for a whole number", `"stock":10`, `"stock":1.5`, "rewards[0].stock"},
	{"a text for a flag", `"default":true`, `"default":"true"`, "programs[0].default"},
	{"an object for a list", `"skus":["A*"]`, `"skus":{}`, "programs[0].rules[0].skus"},
	{"a list for an object", `"expiry":{"days":30}`, `"expiry":[]`, "programs[1].expiry"},
	{"several", `"name":"Doble"`, `"name":1,"a":2,"b":3`, "programs[0].rules[1].a programs[0].rules[1].b programs[0].rules[1].name"},

	// Organization.
	{"no slug", `"slug":"cafe-luna"`, `"slug":""`, "organization.slug"},
	{"a slug in upper case", `cafe-luna`, `Cafe-luna`, "organization.slug"},
	{"a slug that ends with a hyphen", `cafe-luna`, `cafe-`, "organization.slug"},
	{"a slug too long", `cafe-luna`, strings.Repeat("x", 51), "organization.slug"},
	{"no name", `"name":"Café Luna"`, `"name":""`, "organization.name"},
	{"a name too long", `"name":"Café Luna"`, `"name":"` + longName + `"`, "organization.name"},
	{"a name with spaces around", `"name":"Café Luna"`, `"name":" Café Luna"`, "organization.name"},
	{"a name with a bell in it", `"name":"Café Luna"`, `"name":"Café\u0007Luna"`, "organization.name"},
	{"a name with a vertical tab after it", `"name":"Taza"`, `"name":"Taza\u000b"`, "rewards[0].name"},
	{"no plan", `"plan":{"name":"Pro","apiAccess":true},`, ``, "organization.plan.name"},
	{"a country that is none", `"MX"`, `"México"`, "organization.profile.country"},
	{"a logo that is no URL", `https://luna.example/logo.png`, `javascript:alert(1)`, "organization.profile.logoUrl"},
	{"a colour that is none", `#5B3A29`, `brown`, "organization.profile.primaryColor"},
	{"a time zone that is none", `America/Mexico_City`, `America/Luna`, "organization.settings.timezone"},
	{"the machine's time zone", `America/Mexico_City`, `Local`, "organization.settings.timezone"},
	{"no time zone", `America/Mexico_City`, ``, "organization.settings.timezone"},
	{"a time zone that leads elsewhere", `America/Mexico_City`, `../America/Mexico_City`, "organization.settings.timezone"},
	{"a currency that is none", `"MXN"`, `"peso"`, "organization.settings.currency"},
	{"a language that is none", `"language":"es"`, `"language":"Spanish"`, "organization.settings.language"},
	{"a language that sello does not speak", `"language":"es"`, `"language":"pt-BR"`, "organization.settings.language"},
	{"a region in small letters", `"language":"es"`, `"language":"es-mx"`, "organization.settings.language"},

	// Programs.
	{"a key that is none", `"key":"otro"`, `"key":"Otro"`, "programs[1].key"},
	{"a key twice", `"key":"otro"`, `"key":"club"`, "programs[1].key"},
	{"no name", `"name":"Club Luna"`, `"name":""`, "programs[0].name"},
	{"a currency with one too long", `"Lunas"`, `{"one":"` + longName + `","many":"Lunas"}`, "programs[0].currency.one"},
	{"a currency with a word for one alone", `"Lunas"`, `{"one":"Luna"}`, "programs[0].currency.many"},
	{"a currency with another number", `"Lunas"`, `{"one":"Luna","many":"Lunas","few":"Lunas"}`, "programs[0].currency.few"},
	{"a currency that is a number", `"Lunas"`, `7`, "programs[0].currency"},
	{"a currency too long", `"Lunas"`, `"` + longName + `"`, "programs[0].currency"},
	{"none by default", `"default":true`, `"default":false`, "programs"},
	{"two by default", `"key":"otro"`, `"default":true,"key":"otro"`, "programs"},
	{"five decimals of points", `"pointsDecimals":1`, `"pointsDecimals":5`, "programs[0].pointsDecimals"},
	{"less than none", `"pointsDecimals":1`, `"pointsDecimals":-1`, "programs[0].pointsDecimals"},
	{"another way to join", `"Reverse"`, `"Reverse","join":"Some"`, "programs[0].join"},
	{"another rounding", `"Floor"`, `"floor"`, "programs[0].rounding"},
	{"another return policy", `"Reverse"`, `"Refund"`, "programs[0].returns"},
	{"another negative balance", `"Clamp"`, `"Allow"`, "programs[0].negativeBalance"},
	{"an expiry of nothing", `{"days":30}`, `{}`, "programs[1].expiry"},
	{"an expiry of days and months", `{"days":30}`, `{"days":30,"months":1}`, "programs[1].expiry"},
	{"an expiry of less than nothing", `{"days":30}`, `{"days":-30}`, "programs[1].expiry"},
	{"an expiry of less than no inactivity", `{"days":30}`, `{"days":30,"inactiveMonths":-1}`, "programs[1].expiry"},
	{"inactivity of more than a century", `{"days":30}`, `{"inactiveMonths":1201}`, "programs[1].expiry.inactiveMonths"},
	{"inactivity to the end of a month", `{"days":30}`, `{"inactiveMonths":12,"endOf":"Month"}`, "programs[1].expiry.endOf"},
	{"an expiry of more than a century", `{"days":30}`, `{"months":1201}`, "programs[1].expiry.months"},
	{"an expiry at the end of the year", `"endOf":"Month"`, `"endOf":"Year"`, "programs[0].expiry.endOf"},
	{"another metric", `"PointsEarned"`, `"Points"`, "programs[0].tierBasis.metric"},
	{"another window", `"Rolling"`, `"Yearly"`, "programs[0].tierBasis.window"},
	{"a rolling window of no months", `"Rolling","months":6`, `"Rolling"`, "programs[0].tierBasis.months"},
	{"a lifetime of months", `"Rolling"`, `"Lifetime"`, "programs[0].tierBasis.months"},
	{"a calendar year of months", `"Rolling"`, `"CalendarYear"`, "programs[0].tierBasis.months"},
	{"points that are worth nothing", `"amount":2,`, ``, "programs[0].payment.amount"},
	{"no points that pay", `"points":20,`, `"points":0,`, "programs[0].payment.points"},
	{"fewer than no points", `"minPoints":40`, `"minPoints":-1`, "programs[0].payment.minPoints"},
	{"points that may pay nothing", `"maxPercent":50`, `"maxPercent":0`, "programs[0].payment.maxPercent"},
	{"points that pay more than all", `"maxPercent":50`, `"maxPercent":100.1`, "programs[0].payment.maxPercent"},
	{"steps backwards", `"step":5`, `"step":-5`, "programs[0].payment.step"},
	{"steps that are no points", `"step":5`, `"step":0.25`, "programs[0].payment.step"},
	{"rules count nothing", `"Paid"`, `"Points"`, "programs[0].payment.earnOn"},
	{"whole amounts", `"amountDecimals":2`, `"amountDecimals":0`, ""},
	{"a text of notices", `"amountDecimals":2`, `"notices":{"birthday":"Felicidades, {nombre}"}`, ""},
	{"nothing that it may say", `"amountDecimals":2`, `"notices":{"birthday":"Felicidades, {puntos}"}`, "organization.settings.notices.birthday"},
	{"too long a text", `"amountDecimals":2`, `"notices":{"almost":"` + strings.Repeat("á", 501) + `"}`, "organization.settings.notices.almost"},
	{"too many decimals of amounts", `"amountDecimals":2`, `"amountDecimals":5`, "organization.settings.amountDecimals"},
	{"a tier that goes by another name", `"name":"Plata"`, `"name":"Oro"`, "programs[0].rules[0].tiers[0] rewards[0].tiers[0]"},
	{"a tier without a name", `"name":"Plata"`, `"name":""`, "programs[0].tiers[1].name"},
	{"two tiers of a name", `"name":"Bronce"`, `"name":"Plata"`, "programs[0].tiers[1].name"},
	{"a lowest tier above 0", `"threshold":0`, `"threshold":1`, "programs[0].tiers[0].threshold"},
	{"tiers out of order", `"threshold":1000`, `"threshold":0`, "programs[0].tiers[1].threshold"},
	{"a tier that gives less", `"multiplier":1.25`, `"multiplier":0.9999`, "programs[0].tiers[1].multiplier"},

	// Rules.
	{"a key that is none", `"key":"doble"`, `"key":""`, "programs[0].rules[1].key"},
	{"a key twice", `"key":"doble"`, `"key":"base"`, "programs[0].rules[1].key"},
	{"no name", `"name":"Doble"`, `"name":""`, "programs[0].rules[1].name"},
	{"another occasion", `"on":"Signup"`, `"on":"Wedding"`, "programs[0].rules[3].on"},
	{"a birthday with a multiplier", `"on":"Signup","points":50`, `"on":"Birthday","multiplier":2`, "programs[0].rules[3]"},
	{"a birthday on a day", `"on":"Signup"`, `"on":"Birthday","days":["Monday"]`, "programs[0].rules[3]"},
	{"no effect", `,"multiplier":2`, ``, "programs[0].rules[1]"},
	{"two effects", `"multiplier":2`, `"multiplier":2,"points":1`, "programs[0].rules[1]"},
	{"per no amount", `"amount":10`, `"amount":0`, "programs[0].rules[0].per.amount"},
	{"per an amount no points", `"points":1}`, `"points":-1}`, "programs[0].rules[0].per.points"},
	{"no points per item", `"perItem":5`, `"perItem":0`, "programs[0].rules[2].perItem"},
	{"less than no points", `"points":50`, `"points":-50`, "programs[0].rules[3].points"},
	{"a multiplier that gives less", `"multiplier":2`, `"multiplier":0.5`, "programs[0].rules[1].multiplier"},
	{"signing up with a multiplier", `"on":"Signup","points":50`, `"on":"Signup","multiplier":2`, "programs[0].rules[3]"},
	{"signing up on a day", `"on":"Signup"`, `"on":"Signup","days":["Monday"]`, "programs[0].rules[3]"},
	{"signing up for points that there are not", `"points":50`, `"points":50.05`, "programs[0].rules[3].points"},
	{"no least amount", `"minAmount":5`, `"minAmount":0`, "programs[0].rules[0].minAmount"},
	{"an empty sku", `"A*"`, `"A*",""`, "programs[0].rules[0].skus[1]"},
	{"a sku too long", `"A*"`, `"` + longName + `"`, "programs[0].rules[0].skus[0]"},
	{"a tier that is none", `"tiers":["Plata"],"segments":["vip"],"days"`, `"tiers":["Oro"],"segments":["vip"],"days"`, "programs[0].rules[0].tiers[0]"},
	{"a segment that is none", `"segments":["vip"],"days"`, `"segments":["vip","x"],"days"`, "programs[0].rules[0].segments[1]"},
	{"a day that is none", `"Monday"`, `"Lunes"`, "programs[0].rules[0].days[0]"},
	{"an hour that is none", `"08:00"`, `"8:00"`, "programs[0].rules[0].hours.from"},
	{"an hour of another day", `"10:30"`, `"24:00"`, "programs[0].rules[0].hours.to"},
	{"no hours at all", `"10:30"`, `"08:00"`, "programs[0].rules[0].hours.to"},
	{"a date that is none", `"2026-01-01"`, `"01/01/2026"`, "programs[0].rules[0].from"},
	{"a last date that is none", `"2026-12-31"`, `"2026-12-32"`, "programs[0].rules[0].until"},
	{"dates the wrong way round", `"2026-12-31"`, `"2025-12-31"`, "programs[0].rules[0].until"},
	{"less than no uses", `"maxPerCustomerPerDay":3`, `"maxPerCustomerPerDay":-3`, "programs[0].rules[0].maxPerCustomerPerDay"},
	{"less than no uses in all", `"maxPerCustomer":30`, `"maxPerCustomer":-1`, "programs[0].rules[0].maxPerCustomer"},
	{"on no purchase", `"every":4`, `"every":0`, "programs[0].rules[0].every"},
	{"no uses in all", `"maxPerCustomer":30`, `"maxPerCustomer":0`, "programs[0].rules[0].maxPerCustomer"},
	{"no points", `"maxPoints":70`, `"maxPoints":0.0`, "programs[0].rules[0].maxPoints"},
	{"on every purchase before", `"every":4`, `"every":-4`, "programs[0].rules[0].every"},
	{"no points at most", `"maxPoints":70`, `"maxPoints":0`, "programs[0].rules[0].maxPoints"},
	{"most points that there are not", `"maxPoints":70`, `"maxPoints":70.55`, "programs[0].rules[0].maxPoints"},
	{"no budget", `"budget":900`, `"budget":0`, "programs[0].rules[0].budget"},
	{"a budget that there is not", `"budget":900`, `"budget":900.01`, "programs[0].rules[0].budget"},
	{"no pieces", `"minQuantity":2`, `"minQuantity":0`, "programs[0].rules[0].minQuantity"},
	{"pieces of nothing", `"skus":["A*"],`, ``, "programs[0].rules[0].minQuantity"},
	{"an empty pattern of what is excluded", `["AX*"]`, `["AX*",""]`, "programs[0].rules[0].excludeSkus[1]"},
	{"the same for all rules", `["TABACO-*"]`, `[""]`, "programs[0].excludeSkus[0]"},
	{"a label without values", `["efectivo","vale"]`, `[]`, "programs[0].rules[0].labels.pago"},
	{"a label that is a text", `["efectivo","vale"]`, `"efectivo"`, "programs[0].rules[0].labels.pago"},
	{"labels that are a list", `{"pago":["efectivo","vale"]}`, `["efectivo"]`, "programs[0].rules[0].labels"},
	{"a label without a name", `"pago":`, `"":`, "programs[0].rules[0].labels."},
	{"a label whose name the panel cannot write", `"pago":`, `"a: b":`, "programs[0].rules[0].labels.a"},
	{"a label twice", `{"pago":`, `{"Pago":["x"],"pago":`, "programs[0].rules[0].labels.pago"},
	{"a value with blanks at its end", `"vale"`, `"vale "`, "programs[0].rules[0].labels.pago[1]"},
	{"a category of what was spent", `"Campaign"`, `"Refund"`, "programs[0].rules[0].category"},
	{"signing up at most so often", `"on":"Signup"`, `"on":"Signup","maxPerCustomer":1`, "programs[0].rules[3]"},
	{"signing up within a budget", `"on":"Signup"`, `"on":"Signup","budget":10`, "programs[0].rules[3]"},
	{"days of the past", `"pendingDays":7`, `"pendingDays":-7`, "programs[0].rules[2].pendingDays"},
	{"days without end", `"pendingDays":7,"expiresInDays":90`, `"pendingDays":36526`, "programs[0].rules[2].pendingDays programs[0].rules[2].pendingDays"},
	{"expiry in the past", `"expiresInDays":90`, `"expiresInDays":-1`, "programs[0].rules[2].expiresInDays programs[0].rules[2].expiresInDays"},
	{"points that expire when they come", `"expiresInDays":90`, `"expiresInDays":7`, "programs[0].rules[2].expiresInDays"},
	{"points that the program lets expire before they come", `"pendingDays":7,"expiresInDays":90`, `"pendingDays":400`, "programs[0].rules[2].pendingDays"},

	// Rewards.
	{"a key that is none", `"key":"taza"`, `"key":"taza!"`, "rewards[0].key"},
	{"no name", `"name":"Taza"`, `"name":""`, "rewards[0].name"},
	{"a program that is none", `"program":"club"`, `"program":"x"`, "rewards[0].program"},
	{"an image that is no URL", `https://luna.example/taza.png`, `ftp://luna.example/taza.png`, "rewards[0].imageUrl"},
	{"another status", `"status":"Active"`, `"status":"Draft"`, "rewards[0].status"},
	{"a gift", `"pointsCost":80`, `"pointsCost":0`, "rewards[0].pointsCost"},
	{"less than none", `"stock":10`, `"stock":-1`, "rewards[0].stock"},
	{"nothing for anybody", `"limitPerCustomer":2`, `"limitPerCustomer":0`, "rewards[0].limitPerCustomer"},
	{"a tier of another program", `"tiers":["Plata"],"segments":["vip"],"validFrom"`, `"tiers":["Oro"],"segments":["vip"],"validFrom"`, "rewards[0].tiers[0]"},
	{"a segment that is none", `"segments":["vip"],"validFrom"`, `"segments":["x"],"validFrom"`, "rewards[0].segments[0]"},
	{"a date that is none", `"2026-02-01"`, `"soon"`, "rewards[0].validFrom"},
	{"a last date that is none", `"2026-11-30"`, `"2026-11-31"`, "rewards[0].validTo"},
	{"dates the wrong way round", `"2026-11-30"`, `"2026-01-31"`, "rewards[0].validTo"},
	{"another way to get it", `"fulfilment":"Voucher"`, `"fulfilment":"Mail"`, "rewards[0].fulfilment"},
	{"valid days of what is given at once", `"fulfilment":"Voucher",`, ``, "rewards[0].validDays"},
	{"valid until yesterday", `"validDays":30`, `"validDays":-1`, "rewards[0].validDays"},
	{"valid for more than a century", `"validDays":30`, `"validDays":36526`, "rewards[0].validDays"},
	{"another effect", `"type":"Percent"`, `"type":"Gift"`, "rewards[0].effect.type"},
	{"an effect of no type", `"type":"Percent",`, ``, "rewards[0].effect.type"},
	{"an effect with another's member", `"percent":10}`, `"percent":10,"amount":5}`, "rewards[0].effect.amount"},
	{"an effect without its own", `{"type":"Percent","percent":10}`, `{"type":"Amount"}`, "rewards[0].effect.amount"},
	{"an effect of nothing", `{"type":"Percent","percent":10}`, `{"type":"Amount","amount":0}`, "rewards[0].effect.amount"},
	{"more than all", `"percent":10`, `"percent":100.0001`, "rewards[0].effect.percent"},
	{"a product without a name", `{"type":"Percent","percent":10}`, `{"type":"Product","sku":""}`, "rewards[0].effect.sku"},
	{"a product with a blank after it", `{"type":"Percent","percent":10}`, `{"type":"Product","sku":"A "}`, "rewards[0].effect.sku"},
	{"a member of an effect that is none", `"percent":10`, `"percent":10,"x":1`, "rewards[0].effect.x"},

	// Segments.
	{"a key that is none", `"segments":[{"key":"vip"`, `"segments":[{"key":"-vip"`, "segments[0].key"},
	{"a segment that has another key", `"segments":[{"key":"vip"`, `"segments":[{"key":"vap"`, "programs[0].rules[0].segments[0] rewards[0].segments[0]"},
	{"no name", `"name":"VIP"`, `"name":""`, "segments[0].name"},
	{"no rule", `"not":{"field":"tier","op":"=","value":"Bronce"}`, ``, "segments[0].rule.all[0].any[1]"},
	{"two rules in one", `"field":"email"`, `"any":[{"field":"phone","op":"=","value":true}],"field":"email"`, "segments[0].rule.all[1]"},
	{"all of nothing", `"rule":{"all":[`, `"rule":{"not":{"all":[]},"all":[`, "segments[0].rule segments[0].rule.not.all"},
	{"any of nothing", `"any":[{"field":"totalSpent","op":">=","value":5000},{"not":{"field":"tier","op":"=","value":"Bronce"}}]`, `"any":[]`, "segments[0].rule.all[0].any"},
	{"a field that is none", `"totalSpent"`, `"spent"`, "segments[0].rule.all[0].any[0].field"},
	{"an operator that is none", `">="`, `"=>"`, "segments[0].rule.all[0].any[0].op"},
	{"an operator that texts do not have", `"tier","op":"="`, `"tier","op":">"`, "segments[0].rule.all[0].any[1].not.op"},
	{"a text for a number", `"value":5000`, `"value":"5000"`, "segments[0].rule.all[0].any[0].value"},
	{"a number for a text", `"value":"Bronce"`, `"value":1`, "segments[0].rule.all[0].any[1].not.value"},
	{"a number for a flag", `"op":"=","value":true`, `"op":"=","value":1`, "segments[0].rule.all[1].value"},
	{"no value", `"op":"=","value":true`, `"op":"="`, "segments[0].rule.all[1].value"},
	{"an operator without a field", `"field":"email","op":"="`, `"op":"="`, "segments[0].rule.all[1] segments[0].rule.all[1]"},
	{"too deep", `{"field":"email","op":"=","value":true}`,
		strings.Repeat(`{"not":`, 11) + `{"field":"email","op":"=","value":true}` + strings.Repeat("}", 11),
		"segments[0].rule.all[1]" + strings.Repeat(".not", 10)},
}

// TestReadDocument shows every fault of a document with the path in its message.
// Each row replaces a part of the document that uses everything.
func TestReadDocument(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, test := range documentChanges {
		t.Run(test.reason, func(t *testing.T) {
			if !strings.Contains(everything, test.old) {
				t.Fatalf("%s is not in the document", test.old)
			}
			raw := []byte(strings.Replace(everything, test.old, test.new, 1))
			s := newEmptyShop(t, "2026-03-02T10:00:00Z")
			before := s.entries()
			_, err := s.admin().apply(t.Context(), applyRequest{Document: raw})
			var paths []string
			if err != nil {
				_, problems, ok := strings.Cut(err.Error(), "el documento no es válido:")
				if !ok {
					t.Fatal(err)
				}
				for line := range strings.SplitSeq(strings.TrimSpace(problems), "\n") {
					path, _, _ := strings.Cut(strings.TrimSpace(line), ": ")
					paths = append(paths, path)
				}
			}
			if got := strings.Join(paths, " "); got != test.paths {
				t.Errorf("got %q, want %q\n%v", got, test.paths, err)
			}
			if err != nil {
				same(t, "what is in the store after a fault", s.entries(), before)
			}
		})
	}
}

// TestDocumentWords: the message of a fault says what is wrong.
func TestDocumentWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		old, new string
		want     string
	}{
		{`"slug":"cafe-luna",`, ``, "organization.slug: falta"},
		{`"slug":"cafe-luna"`, `"slug":""`, "organization.slug: falta"},
		{`cafe-luna`, `Luna`, "organization.slug: debe tener de 1 a 50 letras minúsculas, cifras y guiones"},
		{`"Rolling","months":6`, `"Rolling"`, "programs[0].tierBasis.months: debe estar entre 1 y 1200"},
		{`"months":6`, `"months":1201`, "programs[0].tierBasis.months: debe estar entre 1 y 1200"},
		{`"Rolling"`, `"Lifetime"`, "programs[0].tierBasis.months: solo va con window: Rolling"},
		{`"threshold":1000`, `"threshold":0`, "programs[0].tiers[1].threshold: debe ser mayor al del nivel anterior"},
		{`"pendingDays":7,"expiresInDays":90`, `"pendingDays":400`, "programs[0].rules[2].pendingDays: debe ser menor a los 365 días en que los puntos del programa pueden vencer"},
		{`"expiresInDays":90`, `"expiresInDays":7`, "programs[0].rules[2].expiresInDays: debe ser mayor a pendingDays"},
		{`"value":5000`, `"value":"5000"`, "segments[0].rule.all[0].any[0].value: debe ser un número"},
		{`"value":5000`, `"value":0.00001`, "segments[0].rule.all[0].any[0].value: debe tener 4 decimales como máximo"},
		{`"value":"Bronce"`, `"value":1`, "segments[0].rule.all[0].any[1].not.value: debe ser un texto"},
		{`"value":true`, `"value":1`, "segments[0].rule.all[1].value: debe ser true o false"},
		{`"op":"=","value":true`, `"op":"="`, "segments[0].rule.all[1].value: falta"},
		{`"name":"Café Luna"`, `"name":""`, "organization.name: falta"},
		{`"country":"MX",`, ``, "organization.profile.country: falta"},
		{`"timezone":"America/Mexico_City",`, ``, "organization.settings.timezone: falta"},
		{`"amount":10`, `"amount":1e12`, "programs[0].rules[0].per.amount: no puede pasar de 99999999999.9999"},
		{`"amount":10`, `"amount":"10"`, "programs[0].rules[0].per.amount: debe ser un número"},
		{`"months":12`, `"months":1201`, "programs[0].expiry.months: no puede pasar de 1200"},
		{`"stock":10`, `"stock":99999999999999999999`, "rewards[0].stock: es un número demasiado grande"},
		{`"stock":10`, `"stock":1.5`, "rewards[0].stock: debe ser un número entero"},
		{`"program":"club"`, `"program":""`, "rewards[0].program: falta"},
		{`"https://luna.example/taza.png"`, `"/` + strings.Repeat("x", 2000) + `"`, "rewards[0].imageUrl: no puede pasar de 2000 bytes"},
		// What follows from a value that could not be read is not reported.
		{`"multiplier":2`, `"multiplier":"2"`, "programs[0].rules[1].multiplier: debe ser un número"},
		{`"threshold":0`, `"threshold":"0"`, "programs[0].tiers[0].threshold: debe ser un número"},
		{`"name":"Plata"`, `"name":7`, "programs[0].tiers[1].name: debe ser un texto"},
		{`"key":"vip"`, `"key":7`, "segments[0].key: debe ser un texto"},
		{`"key":"club"`, `"key":7`, "programs[0].key: debe ser un texto"},
		{`"default":true`, `"default":"true"`, "programs[0].default: debe ser true o false"},
		{`"months":12`, `"months":"12"`, "programs[0].expiry.months: debe ser un número entero"},
	} {
		_, problems := readDocument([]byte(strings.Replace(everything, test.old, test.new, 1)))
		if len(problems) != 1 || problems[0] != test.want {
			t.Errorf("%s: %q, want %q", test.new, problems, test.want)
		}
	}
}

// TestDocumentFaultsAtOnce: one run of apply tells every fault of a document, whatever kind
// they are of, also those that depend on the configuration before.
func TestDocumentFaultsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	raw := strings.NewReplacer(`"amount":10`, `"amount":"10"`, `"Floor"`, `"floor"`, `"skus":["A*"]`, `"skus":["A*"],"sku":"B"`,
		`"segments":["vip"],"validFrom"`, `"segments":["x"],"validFrom"`, `America/Mexico_City`, `America/Bogota`, `"key":"club"`, `"key":"luna"`).Replace(everything)
	_, err := s.admin().apply(t.Context(), applyRequest{Document: []byte(raw)})
	if want := `el documento no es válido:
  programs[0].rules[0].per.amount: debe ser un número
  programs[0].rules[0].sku: campo desconocido
  programs[0].rounding: debe ser Floor, Ceil, HalfUp o HalfEven
  programs: falta "club"; un programa no se puede quitar
  rewards[0].segments[0]: no hay ningún segmento "x"
  rewards[0].program: no hay ningún programa "club"
  organization.settings.timezone: no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella`; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestApplyRules shows the faults of a rule that depend on the settings of its
// program.
func TestApplyRules(t *testing.T) {
	t.Parallel()
	const told = "programs[0].rules[0]."
	for _, test := range []struct {
		program, rule string
		want          string // the member at fault, if the rule is refused
	}{
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":10`, "pendingDays"},
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":9`, ""},
		{`"expiry":{"days":10}`, `"points":1,"pendingDays":10,"expiresInDays":11`, ""},
		{`"expiry":{"days":10,"endOf":"Month"}`, `"points":1,"pendingDays":10`, "pendingDays"},
		{`"expiry":{"months":1}`, `"points":1,"pendingDays":28`, "pendingDays"},
		{`"expiry":{"months":1}`, `"points":1,"pendingDays":27`, ""},
		{`"expiry":{"months":12}`, `"points":1,"pendingDays":365`, "pendingDays"},
		{`"expiry":{"months":12}`, `"points":1,"pendingDays":364`, ""},
		{`"expiry":{"inactiveMonths":1}`, `"points":1,"pendingDays":364`, ""},
		{`"expiry":null`, `"points":1,"pendingDays":1000`, ""},
		{`"expiry":{"days":10}`, `"on":"Signup","points":1,"pendingDays":10`, "pendingDays"},
		{`"pointsDecimals":1`, `"on":"Signup","points":1.25`, "points"},
		{`"pointsDecimals":2`, `"on":"Signup","points":1.25`, ""},
		{`"expiry":{"days":10}`, `"on":"Birthday","points":1,"pendingDays":10`, "pendingDays"},
		{`"pointsDecimals":1`, `"on":"Birthday","points":1.25`, "points"},
		{`"pointsDecimals":0`, `"points":1.25`, ""},
	} {
		doc := setup{program: test.program + `,"rules":[{"key":"a","name":"a",` + test.rule + `}]`}.document()
		_, problems := readDocument(doc)
		got := strings.Join(problems, "\n")
		if test.want == "" && got != "" || test.want != "" && !strings.HasPrefix(got, told+test.want+": ") {
			t.Errorf("%s %s: %q, want one of %q", test.program, test.rule, got, test.want)
		}
	}
}

// FuzzDocument applies any input, over the document that uses everything or on an
// empty store. Nothing may panic. Applying an accepted document again, or its
// export, must change nothing.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(everything))
	f.Add(demoDocument)
	f.Add(setup{}.document())
	f.Add([]byte(`{"organization":null,"programs":[null],"rewards":[{}],"segments":[{"rule":{"all":[{}]}}]}`))
	f.Add([]byte(strings.Replace(everything, "1000", "1e3", 1)))
	f.Add([]byte(strings.Replace(everything, `"value":5000`, `"value":{"a":[1e999]}`, 1)))
	f.Add(bytes.ReplaceAll([]byte(everything), []byte("cafe-luna"), []byte("x")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		readDocument(raw)
		for _, before := range [][]byte{nil, []byte(everything)} {
			tx := newOverlay(memTx{})
			if before != nil {
				if _, err := applyDocument(tx, before, newMint(1, seed{}), creator{}, false); err != nil {
					t.Fatal(err)
				}
			}
			done, err := applyDocument(tx, raw, newMint(2, seed{1}), creator{}, false)
			if err != nil {
				continue
			}
			number, err := organizationNumber(tx, done.Organization)
			if err != nil || number == 0 {
				t.Fatalf("organization %q was applied and is number %d (%v)", done.Organization, number, err)
			}
			cfg, err := new(engine).config(unsettled, tx, number)
			if err != nil {
				t.Fatal(err)
			}
			exported, err := json.Marshal(cfg.document())
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range [][]byte{raw, exported} {
				switch done, err := applyDocument(tx, again, newMint(3, seed{2}), creator{}, false); {
				case err != nil:
					t.Fatalf("%s is refused: %v", again, err)
				case len(done.Changes) > 0:
					t.Fatalf("%s changes %v", again, done.Changes)
				}
			}
			if report, err := verify(tx, 4, nil); err != nil || len(report.Problems) > 0 {
				t.Fatalf("verify: %v %v", report, err)
			}
			if !slices.ContainsFunc(cfg.Programs, func(p *program) bool { return p.Default }) {
				t.Fatal("no program is the default")
			}
		}
	})
}

// readDocument is checkedDocument with the problems as texts.
func readDocument(raw []byte) (*document, []string) {
	doc, ck := checkedDocument(raw)
	return doc, toldProblems(ck.problems)
}

// TestZeroLimits: 0 is told as no limit, wherever a limit can be; a configuration that was stored
// with one is opened, and shown again.
func TestZeroLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{`"maxPerCustomer":30`, `"every":4`, `"maxPoints":70`, `"budget":900`, `"limitPerCustomer":2`} {
		name, _, _ := strings.Cut(limit, ":")
		for _, zero := range []string{"0", "-0"} {
			_, problems := readDocument([]byte(strings.Replace(everything, limit, name+":"+zero, 1)))
			if len(problems) != 1 || !strings.HasSuffix(problems[0], strings.Trim(name, `"`)+": 0 no es un límite: quita el campo o la regla") {
				t.Errorf("%s: %q", name, problems)
			}
		}
	}
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","points":1,"every":2}]`})
	raw, err := viewStore(t.Context(), s.engine.store, func(tx Tx) (raw []byte, err error) { _, raw, err = storedConfig(tx, s.org); return })
	s.ok(err)
	cfg, err := parseConfig([]byte(strings.Replace(string(raw), `"every":2`, `"every":0,"maxPerCustomer":0`, 1)))
	s.ok(err)
	if r := cfg.Programs[0].Rules[0]; r.has(conditionEvery) || r.has(conditionLife) {
		t.Errorf("a stored 0 is a limit: %+v", r)
	}
}

// TestCurrencyNames: a word is what one and many points are called; an object says both.
func TestCurrencyNames(t *testing.T) {
	t.Parallel()
	f := newFormat(t, "MX", "es", "MXN")
	for _, test := range []struct {
		literal, again string
		said           [6]string
	}{
		{`"Sellos"`, `"Sellos"`, [6]string{"0 Sellos", "1 Sellos", "-1 Sellos", "1.5 Sellos", "2 Sellos", "1,001 Sellos"}},
		{`{"one":"Sello","many":"Sellos"}`, `{"one":"Sello","many":"Sellos"}`, [6]string{"0 Sellos", "1 Sello", "-1 Sello", "1.5 Sellos", "2 Sellos", "1,001 Sellos"}},
		{`{"many":"Sellos","one":"Sello"}`, `{"one":"Sello","many":"Sellos"}`, [6]string{"0 Sellos", "1 Sello", "-1 Sello", "1.5 Sellos", "2 Sellos", "1,001 Sellos"}},
		{`{"many":"Kg"}`, `"Kg"`, [6]string{"0 Kg", "1 Kg", "-1 Kg", "1.5 Kg", "2 Kg", "1,001 Kg"}},
		{`{"one":"Kg","many":"Kg"}`, `"Kg"`, [6]string{"0 Kg", "1 Kg", "-1 Kg", "1.5 Kg", "2 Kg", "1,001 Kg"}},
		{`null`, `"Puntos"`, [6]string{"0 Puntos", "1 Puntos", "-1 Puntos", "1.5 Puntos", "2 Puntos", "1,001 Puntos"}},
	} {
		doc, problems := readDocument(setup{program: `"currency":` + test.literal}.document())
		if problems != nil {
			t.Errorf("%s: %q", test.literal, problems)
			continue
		}
		name := doc.Programs[0].Currency
		if raw, err := json.Marshal(name); err != nil || string(raw) != test.again {
			t.Errorf("%s is written again as %s, %v", test.literal, raw, err)
		}
		for i, n := range []string{"0", "1", "-1", "1.5", "2", "1001"} {
			d, _ := parseDecimal(n)
			if got := f.Points(d, name); got != test.said[i] {
				t.Errorf("%s: %q, want %q", test.literal, got, test.said[i])
			}
		}
	}
}
