package main

import (
	"slices"
	"strings"
	"testing"
)

// TestWarnings shows the rules that can never fire, and those that only look like it.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const per = `{"key":"base","name":"Base","per":{"amount":10,"points":1}}`
	for _, test := range []struct {
		reason  string
		program string // members of the program
		rule    string // members of the last rule, beside key and name
		want    string
	}{
		{"a usual rule", ``, `"points":1`, ""},
		{"it ended yesterday", ``, `"points":1,"until":"2026-03-01"`, "until ya pasó"},
		{"it ends today", ``, `"points":1,"until":"2026-03-02"`, ""},
		{"it ended an hour ago", ``, `"points":1,"until":"2026-03-02T03:00"`, "until ya pasó"},
		{"a welcome that is over", ``, `"on":"Signup","points":1,"until":"2025-12-31"`, "until ya pasó"},
		{"a birthday rule", ``, `"on":"Birthday","points":1`, ""},
		{"a segment that is not active", ``, `"points":1,"segments":["off"]`, "sus segmentos están inactivos"},
		{"one of two is active", ``, `"points":1,"segments":["off","on"]`, ""},
		{"a blank sku", ``, `"perItem":1,"skus":[" "]`, "sus skus están en blanco o tienen caracteres de control"},
		{"a sku with a blank before it, which does not matter", ``, `"perItem":1,"skus":[" CAFE"]`, ""},
		{"one of two skus can be", ``, `"perItem":1,"skus":[" CAFE","CAFE"]`, ""},
		{"a sku with a tab in it", ``, `"perItem":1,"skus":["A\tB\u0000"]`, "sus skus están en blanco o tienen caracteres de control"},
		{"a Sunday between Tuesday and Thursday", ``, `"points":1,"days":["Sunday"],"from":"2026-03-03","until":"2026-03-05"`, "entre from y until no caen sus days y hours"},
		{"a Wednesday between them", ``, `"points":1,"days":["Wednesday"],"from":"2026-03-03","until":"2026-03-05"`, ""},
		{"a Wednesday that is over", ``, `"points":1,"days":["Sunday"],"from":"2026-02-22","until":"2026-03-05"`, "entre from y until no caen sus days y hours"},
		{"the morning of an evening", ``, `"points":1,"hours":{"from":"08:00","to":"10:00"},"from":"2026-03-03T18:00","until":"2026-03-03T22:00"`, "entre from y until no caen sus days y hours"},
		{"a morning of a year", ``, `"points":1,"hours":{"from":"08:00","to":"08:01"},"until":"2027-01-01"`, ""},
		{"Friday's night is on Saturday", ``, `"points":1,"days":["Friday"],"hours":{"from":"22:00","to":"02:00"},"from":"2026-03-07T00:00","until":"2026-03-07T12:00"`, ""},
		{"Saturday's night is not", ``, `"points":1,"days":["Saturday"],"hours":{"from":"22:00","to":"02:00"},"from":"2026-03-07T00:00","until":"2026-03-07T12:00"`, "entre from y until no caen sus days y hours"},
		{"times two on Friday's night of what gives on Saturdays", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"days":["Saturday"]},
			{"key":"last","name":"Last","multiplier":2,"days":["Friday"],"hours":{"from":"22:00","to":"02:00"}}],`, ``, ""},
		{"first purchases in a high tier, by amount", `"tierBasis":{"metric":"AmountSpent"},`, `"points":1,"firstPurchase":true,"tiers":["Plata"]`, "antes de la primera compra nadie está en sus niveles"},
		{"the same by points, which a birthday may give", ``, `"points":1,"firstPurchase":true,"tiers":["Plata"]`, ""},
		{"first purchases in the lowest tier", `"tierBasis":{"metric":"AmountSpent"},`, `"points":1,"firstPurchase":true,"tiers":["Bronce"]`, ""},
		{"times one", ``, `"multiplier":1`, "multiplica por 1"},
		{"times two", ``, `"multiplier":2,"days":["Tuesday"]`, ""},
		{"times two of nothing", `"rules":[{"key":"last","name":"Last","multiplier":2}],`, ``, "multiplica lo que dan las reglas per, y no hay ninguna"},
		{"times two of what gives on another day", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"days":["Monday"]},
			{"key":"last","name":"Last","multiplier":2,"days":["Tuesday"]}],`, ``, "multiplica lo que dan las reglas per, y ninguna vale a la vez"},
		{"times two of another item", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"skus":["TE"]},
			{"key":"last","name":"Last","multiplier":2,"skus":["CAFE"]}],`, ``, "multiplica lo que dan las reglas per, y ninguna vale a la vez"},
		{"times two of the same item, written otherwise", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"skus":["CAFÉ"]},
			{"key":"last","name":"Last","multiplier":2,"skus":[" café"]}],`, ``, ""},
		{"times two of what is over", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"until":"2026-03-31"},
			{"key":"last","name":"Last","multiplier":2,"from":"2026-04-01"}],`, ``, "multiplica lo que dan las reglas per, y ninguna vale a la vez"},
		{"times two of some items", `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1},"skus":["TE"]},
			{"key":"last","name":"Last","multiplier":2,"skus":["T*"]}],`, ``, ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newEmptyShop(t, "2026-03-02T10:00:00Z")
			program := test.program + `"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}]`
			if !strings.Contains(test.program, "rules") {
				program += `,"rules":[` + per + `,{"key":"last","name":"Last",` + test.rule + `}]`
			}
			done := s.apply(setup{program: program, also: `"segments":[
				{"key":"on","name":"On","isActive":true,"rule":{"field":"balance","op":">","value":1}},
				{"key":"off","name":"Off","rule":{"field":"balance","op":">","value":1}}]`}.document())
			var want []string
			if test.want != "" {
				want = []string{"programs[club].rules[last]: nunca dará puntos: " + test.want}
			}
			if !slices.Equal(done.Warnings, want) {
				t.Errorf("%q, want %q", done.Warnings, want)
			}
		})
	}
}

// TestWarningOfNegation: a sku that begins with ! leaves nothing out, and the rule says so once.
func TestWarningOfNegation(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	done := s.apply(setup{program: `"rules":[{"key":"not","name":"Not","perItem":1,"skus":["CAFE","!TABACO-*"," !RON"]},{"key":"in","name":"In","perItem":1,"skus":["A!"]}]`}.document())
	want := []string{`programs[club].rules[not]: "!TABACO-*" no excluye artículos: solo vale para los que empiezan así, con !; para excluir está excludeSkus`}
	if !slices.Equal(done.Warnings, want) {
		t.Errorf("%q, want %q", done.Warnings, want)
	}
}

// TestWarningsOfLimits: a budget that is spent, until a return refills it, and a rule that gives
// once, whatever every says.
func TestWarningsOfLimits(t *testing.T) {
	t.Parallel()
	with := func(members string) []byte {
		return setup{program: `"excludeSkus":["! PAN"],"rules":[{"key":"a","name":"A","points":5,` + members + `}]`}.document()
	}
	const noNegation = `programs[club]: "! PAN" no excluye artículos: solo vale para los que empiezan así, con !; para excluir está excludeSkus`
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	want := func(done *applied, sentences ...string) {
		t.Helper()
		for i, text := range sentences {
			sentences[i] = "programs[club].rules[a]: " + text
		}
		if sentences = append(sentences, noNegation); !slices.Equal(done.Warnings, sentences) {
			t.Errorf("%q, want %q", done.Warnings, sentences)
		}
	}
	want(s.apply(with(`"budget":10`)))
	ana := s.customer("ana")
	s.buy(ana, "1")
	want(s.apply(with(`"budget":10`)))
	sold := s.buy(ana, "1")
	const spent = "ya dio los 10 puntos de su presupuesto: no da más, salvo lo que retire una devolución"
	want(s.apply(with(`"budget":10`)), spent)
	s.bring(sold, "1")
	want(s.apply(with(`"budget":10`)))
	want(s.apply(with(`"every":10,"maxPerCustomer":1`)), "con every y maxPerCustomer: 1 da una sola vez a cada cliente, en su compra 10")
	want(s.apply(with(`"every":10,"maxPerCustomer":2`)))
	kept := s.apply(setup{program: `"returns":"Keep","rules":[{"key":"a","name":"A","points":5,"maxPerCustomer":1}]`}.document()).Warnings
	if text := "programs[club].rules[a]: con returns: Keep, quien devuelve una compra entera y compra otra vez vuelve a recibir lo que da"; !slices.Equal(kept, []string{text}) {
		t.Errorf("%q", kept)
	}
}

// TestWarningsOfFirstPurchases: where a return takes back no points, a rule of first purchases
// can be had again, and says so.
func TestWarningsOfFirstPurchases(t *testing.T) {
	t.Parallel()
	const again = "programs[club].rules[first]: con returns: Keep, quien devuelve su primera compra y compra otra vez vuelve a recibir los puntos"
	for _, test := range []struct {
		reason, program, rule, balance string // after a first purchase that comes back, and another one
		want                           []string
	}{
		{"points that stay", `"returns":"Keep",`, `"points":7,"firstPurchase":true`, "14", []string{again}},
		{"in debt, too", `"returns":"Keep","negativeBalance":"Debt",`, `"points":7,"firstPurchase":true`, "14", []string{again}},
		{"a factor", `"returns":"Keep",`, `"multiplier":2,"firstPurchase":true`, "4", []string{again}},
		{"points that are taken back", ``, `"points":7,"firstPurchase":true`, "7", nil},
		{"or what is left of them", `"returns":"Reverse","negativeBalance":"Clamp",`, `"points":7,"firstPurchase":true`, "7", nil},
		{"any purchase", `"returns":"Keep",`, `"points":7`, "14", nil},
		{"a rule that is over", `"returns":"Keep",`, `"points":7,"firstPurchase":true,"until":"2026-01-01"`, "0", []string{"programs[club].rules[first]: nunca dará puntos: until ya pasó"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newEmptyShop(t, "2026-03-02T10:00:00Z")
			per := ""
			if strings.Contains(test.rule, "multiplier") {
				per = onePer1 + ","
			}
			done := s.apply(setup{program: `"default":true,` + test.program + `"rules":[` + per + `{"key":"first","name":"First",` + test.rule + `}]`}.document())
			if !slices.Equal(done.Warnings, test.want) {
				t.Errorf("%q, want %q", done.Warnings, test.want)
			}
			ana := s.customer("ana")
			s.bring(s.buy(ana, "1"), "1")
			s.buy(ana, "1")
			same(t, "the balance", s.standing(ana).Balance, dec(test.balance))
			s.verified()
		})
	}
}

// TestWarningsOfPrograms: what a second program means for tills, and rules in a program in
// which nobody earns.
func TestWarningsOfPrograms(t *testing.T) {
	t.Parallel()
	const (
		required = "con más de un programa, add y deduct necesitan loyaltyProgramId: las cajas que no lo envíen recibirán 400 program_required"
		nobody   = "programs[otro].rules[hola]: nunca dará puntos: ningún cliente gana en este programa, que no es default ni tiene join: All"
		noSignup = "programs[club].rules[hola]: nunca dará puntos: nadie se da de alta en este programa, que no es default ni tiene join: All"
	)
	with := func(club, otro string) []byte {
		doc := setup{program: club + `"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]`}.document()
		if otro == "" {
			return doc
		}
		second := `},{"key":"otro","name":"Otro",` + otro + `"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]}]`
		return []byte(strings.Replace(string(doc), "}]}]", "}]"+second, 1))
	}
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	for _, step := range []struct {
		reason     string
		club, otro string
		want       []string
	}{
		{"one program", ``, ``, nil},
		{"a second one for nobody", `"default":true,`, `"default":false,`, []string{required, nobody}},
		{"it is there already", `"default":true,`, `"default":false,`, []string{nobody}},
		{"for all", `"default":true,`, `"join":"All",`, nil},
		{"the first one keeps its customers, and gets no new ones", `"default":false,`, `"default":true,`, []string{noSignup}},
		{"and again, since it is for all", `"default":false,"join":"All",`, `"default":true,`, nil},
	} {
		dry, err := s.admin().apply(t.Context(), applyRequest{Document: with(step.club, step.otro), DryRun: true})
		s.ok(err)
		done := s.apply(with(step.club, step.otro))
		if !slices.Equal(done.Warnings, step.want) || !slices.Equal(dry.Warnings, step.want) {
			t.Errorf("%s: %q, dry %q, want %q", step.reason, done.Warnings, dry.Warnings, step.want)
		}
		s.customer("ana")
	}
	s.verified()
}

// TestWarningOfExpiry: a segment of those whose points expire, where none do.
func TestWarningOfExpiry(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]int{
		``:                              1,
		`"expiry":{"days":30}`:          0,
		`"expiry":{"inactiveMonths":6}`: 0,
		`"rules":[{"key":"a","name":"A","points":1,"expiresInDays":9}]`: 0,
	} {
		s := newEmptyShop(t, "2026-03-02T10:00:00Z")
		done := s.apply(setup{program: program, also: `"segments":[{"key":"pronto","name":"Pronto","rule":{"any":[{"field":"expiringWithin","op":"<=","value":7},{"not":{"field":"expiringWithin","op":"=","value":1}}]}}]`}.document())
		if len(done.Warnings) != want || want > 0 && !strings.HasPrefix(done.Warnings[0], "segments[pronto]: con expiringWithin") {
			t.Errorf("%s: %q", program, done.Warnings)
		}
	}
}
