package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sello/internal/sheet"
)

// importCSV imports the text of a file of customers and returns how many are new, known
// and wrong, the opening balances, and the line and reason of each rejected row.
func (s *shop) importCSV(t *testing.T, text string, change ...func(*importRequest)) string {
	t.Helper()
	im := s.importer(t, importCustomers)
	for _, c := range change {
		c(&im.request)
	}
	s.ok(im.run(strings.NewReader(text)))
	r := im.report
	told := fmt.Sprintf("%d new, %d known, %d wrong", r.Added, r.Known, r.Wrong)
	if r.OpeningBalances > 0 {
		told += fmt.Sprintf(", %d opened with %s", r.OpeningBalances, r.OpeningPoints)
	}
	return told + toldIn(t, r.Errors, im.form.Separator)
}

// toldIn lists the lines and reasons of a file of errors, each after "; ".
func toldIn(t *testing.T, name string, separator rune) (told string) {
	t.Helper()
	if name == "" {
		return ""
	}
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(readFile(t, name)), sheet.MarkUTF8)))
	in.Comma = separator
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		told += "; " + row[0] + " " + row[1]
	}
	return told
}

// byEmail is the customer with an e-mail at example.com.
func (s *shop) byEmail(name string) *customer {
	s.Helper()
	c := ask(s, func(t *txn) (*customer, error) { return t.customers.identify(kindEmail, name+"@example.com") })
	if c == nil {
		s.Fatalf("no customer %s", name)
	}
	return c
}

const twoTiers = `"tiers":[{"name":"Bronce","threshold":0},{"name":"Oro","threshold":1000}]`

// TestOpeningBalanceAppliedTwice imports files with balances again and again: each member
// gets one opening balance in each program, ever.
func TestOpeningBalanceAppliedTwice(t *testing.T) {
	t.Parallel()
	with := setup{program: `"default":true,"expiry":{"days":30},"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]`}
	s := newShop(t, with)
	s.apply([]byte(strings.Replace(string(with.document()), `"programs":[`, `"programs":[{"key":"sellos","name":"Sellos"},`, 1)))
	const file = "correo;puntos;vencen\nana@example.com;100,5;31/12/2026\nbeto@example.com;7;nunca\ncarla@example.com;;\n"
	for _, test := range []struct{ reason, text, want string }{
		{"the first time", file, "3 new, 0 known, 0 wrong, 2 opened with 107.5"},
		{"again", file, "0 new, 3 known, 0 wrong"},
		{"another amount", "correo,puntos\nana@example.com,100\n", "0 new, 0 known, 1 wrong; 2 puntos: \"100\": el cliente ya tiene un saldo inicial de 100.5"},
		{"nothing is another amount too", "correo,puntos\nana@example.com,0\n", "0 new, 0 known, 1 wrong; 2 puntos: \"0\": el cliente ya tiene un saldo inicial de 100.5"},
		{"no amount", "correo,puntos\nana@example.com,\n", "0 new, 1 known, 0 wrong"},
		{"a balance that comes later", "correo,puntos\ncarla@example.com,3\n", "0 new, 1 known, 0 wrong, 1 opened with 3"},
		{"two rows of one member", "correo,puntos\ndora@example.com,3\ndora@example.com,4\n", "1 new, 0 known, 1 wrong, 1 opened with 3; 3 puntos: \"4\": el cliente ya tiene un saldo inicial de 3"},
		{"below zero", "correo,puntos\neva@example.com,-3\n", "0 new, 0 known, 1 wrong; 2 puntos: \"-3\": no puede ser menor a 0"},
		{"no number", "correo,puntos\neva@example.com,muchos\n", "0 new, 0 known, 1 wrong; 2 puntos: \"muchos\": debe ser un número"},
		{"too precise", "correo,puntos\neva@example.com,1.00001\n", "0 new, 0 known, 1 wrong; 2 puntos: \"1.00001\": admite como máximo 4 decimales"},
		{"expired", "correo,puntos,vencen\neva@example.com,3,01/03/2026\n", "0 new, 0 known, 1 wrong; 2 vencen: \"01/03/2026\": debe ser una fecha futura"},
		{"no date", "correo,puntos,vencen\neva@example.com,3,pronto\n", "0 new, 0 known, 1 wrong; 2 vencen: \"pronto\": debe ser una fecha con el año de cuatro cifras, como 2026-11-30 o 30/11/2026 (con -dates mdy, 11/30/2026)"},
	} {
		if got := s.importCSV(t, test.text); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.reason, got, test.want)
		}
	}
	s.wantStanding(s.byEmail("ana").ID, "105.5 0 5", "and welcome points")
	if got := s.importCSV(t, file, func(r *importRequest) { r.Program = "sellos" }); got != "0 new, 3 known, 0 wrong, 2 opened with 107.5" {
		t.Errorf("into another program: %s", got)
	}
	if got := s.importCSV(t, file, func(r *importRequest) { r.Program = "sellos" }); got != "0 new, 3 known, 0 wrong" {
		t.Errorf("into another program again: %s", got)
	}
	s.setClock("2027-01-02T10:00:00Z")
	s.swept()
	if got := s.importCSV(t, "correo;puntos;vencen\nana@example.com;100,5;31/12/2026\n"); got != "0 new, 1 known, 0 wrong" {
		t.Errorf("after it has expired: %s", got)
	}
	s.wantStanding(s.byEmail("beto").ID, "7 0 5", "they never expire")
	s.wantStanding(s.byEmail("ana").ID, "0 0 5", "expired at its own date")
}

// TestImportAfterMerge: the sheet of the move, imported again after two of its members turned
// out to be one, does not bring the second one and the points back.
func TestImportAfterMerge(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const file = "correo;puntos\nana@example.com;100\nana.perez@example.com;200\nbeto@example.com;7\n"
	s.importCSV(t, file)
	ana, twin := s.byEmail("ana").ID, s.byEmail("ana.perez").ID
	s.merged(ana, twin)
	want := "0 new, 2 known, 1 wrong; 3 ese email, teléfono o externalId era de un cliente que se fusionó con ana@example.com"
	if got := s.importCSV(t, file); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.wantStanding(ana, "300 0 0", "each balance once")
	if got := s.importCSV(t, "correo\neva@example.com\n"); got != "1 new, 0 known, 0 wrong" {
		t.Errorf("somebody else: %s", got)
	}
	const historic = "correo,puntos históricos\neva@example.com,10\nleo@example.com,20\n"
	s.importCSV(t, historic)
	s.merged(s.byEmail("eva").ID, s.byEmail("leo").ID)
	if got := s.importCSV(t, historic[:strings.Index(historic, "leo")]); got != "0 new, 1 known, 0 wrong" {
		t.Errorf("historic points of one of two: %s", got)
	}
}

// TestOpeningMovement shows the movement of an opening balance.
func TestOpeningMovement(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"pointsDecimals":0,"expiry":{"days":30}`})
	s.importCSV(t, "correo;puntos;vencen;alta\nana@example.com;12,345;2026-12-31;15/03/2019\n")
	s.importCSV(t, "correo;puntos\nbeto@example.com;1\n")
	ana := s.byEmail("ana")
	if got := ana.CreatedAt.String(); got != "2019-03-15T06:00:00.000Z" {
		t.Errorf("alta: %s", got)
	}
	list := ask(s, func(t *txn) ([]*movement, error) {
		var list []*movement
		for seq := range uint64(2) {
			m, err := t.points.movement(seq + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
		return list, nil
	})
	for i, want := range []string{
		"Adjustment 12.345 Saldo inicial 2027-01-01T05:59:59.999Z 2026-03-02T10:00:00.000Z Import",
		"Adjustment 1 Saldo inicial 2026-04-01T10:00:00.000Z 2026-03-02T10:00:00.000Z Import",
	} {
		m := list[i]
		if got := fmt.Sprint(m.Category, " ", m.Amount, " ", m.Comment, " ", m.Expires, " ", m.CreatedAt, " ", m.By.Type); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestHistoricPoints: points earned elsewhere count for the lifetime and for the tier, in
// a window for as long as if they had been earned on the day they came.
func TestHistoricPoints(t *testing.T) {
	t.Parallel()
	for _, window := range []string{`{"window":"Lifetime"}`, `{"window":"Rolling","months":12}`, `{"window":"CalendarYear"}`} {
		s := newShop(t, setup{program: `"tierBasis":` + window + `,` + twoTiers + `,"rules":[` + onePer1 + `]`})
		const file = "correo,puntos,puntos históricos\nana@example.com,20,1500\nbeto@example.com,,999.5\n"
		for _, want := range []string{"2 new, 0 known, 0 wrong, 1 opened with 20", "0 new, 2 known, 0 wrong"} {
			if got := s.importCSV(t, file); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if got := s.importCSV(t, "correo,puntos históricos\nana@example.com,1501\n"); got != "0 new, 0 known, 1 wrong; 2 puntos históricos: \"1501\": el cliente ya tiene puntos históricos: 1500" {
			t.Error(got)
		}
		ana, beto := s.byEmail("ana").ID, s.byEmail("beto").ID
		s.wantTier(ana, "Oro", window)
		s.wantTier(beto, "Bronce", window)
		s.wantStanding(ana, "20 0 1500", "an opening balance is not earned")
		s.buy(beto, "1")
		s.wantTier(ana, "Oro", window)
		s.wantTier(beto, "Oro", window)
		s.verified()
		s.apply(setup{program: `"tierBasis":` + window + `,"tiers":[{"name":"Bronce","threshold":0},{"name":"Oro","threshold":1001}],"rules":[` + onePer1 + `]`}.document())
		s.wantTier(ana, "Oro", window)
		s.wantTier(beto, "Bronce", window)
		s.setClock(map[bool]string{false: "2027-03-04T10:00:00Z", true: "2028-01-01T06:00:00Z"}[strings.Contains(window, windowCalendarYear)])
		s.swept()
		want := "Oro"
		if !strings.Contains(window, windowLifetime) {
			want = "Bronce"
		}
		s.wantTier(ana, want, "a year later")
		s.wantStanding(ana, "20 0 1500", "a year later")
	}
}

// TestHistoricElsewhere: historic points in a program that is not the customer's own
// survive a recount, in a program that the customer joins by a file and in one that all
// join.
func TestHistoricElsewhere(t *testing.T) {
	t.Parallel()
	for _, join := range []string{"Default", "All"} {
		s := newShop(t, setup{program: `"default":true`})
		with := func(threshold int) []byte {
			more := fmt.Sprintf(`"programs":[{"key":"sellos","name":"Sellos","join":%q,"tierBasis":{"window":"Rolling","months":12},
				"tiers":[{"name":"Uno","threshold":0},{"name":"Dos","threshold":%d}]},`, join, threshold)
			return []byte(strings.Replace(string(setup{program: `"default":true`}.document()), `"programs":[`, more, 1))
		}
		s.apply(with(10))
		s.importCSV(t, "correo,puntos históricos\nana@example.com,20\n", func(r *importRequest) { r.Program = "sellos" })
		tier := func() string {
			return ask(s, func(t *txn) (string, error) {
				c, err := t.customers.identify(kindEmail, "ana@example.com")
				if err != nil {
					return "", err
				}
				a, err := t.points.account(c, t.cfg.programKey("sellos"))
				if err != nil {
					return "", err
				}
				current, _ := a.tier()
				return current.name(), nil
			})
		}
		if got := tier(); got != "Dos" {
			t.Errorf("%s: %s", join, got)
		}
		s.apply(with(20))
		s.verified()
		if got := tier(); got != "Dos" {
			t.Errorf("%s: %s after a recount", join, got)
		}
		s.apply(with(21))
		if got := tier(); got != "Uno" {
			t.Errorf("%s: %s with a higher threshold", join, got)
		}
	}
}

// TestImportNoWelcome: -no-welcome holds back sign-up rules, of this import only.
func TestImportNoWelcome(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]`})
	s.importCSV(t, "correo,puntos\nana@example.com,10\n", func(r *importRequest) { r.NoWelcome = true })
	s.importCSV(t, "correo,puntos,alta\nbeto@example.com,10,2020-02-01\n")
	s.wantStanding(s.byEmail("ana").ID, "10 0 0", "no welcome")
	s.wantStanding(s.byEmail("beto").ID, "15 0 5", "welcome today, whenever the customer was enrolled")
}

// TestImportInactive: an inactive customer is given nothing.
func TestImportInactive(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	must(s, func(t *txn) (*customer, error) {
		return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
	})
	if got := s.importCSV(t, "correo,puntos\nana@example.com,10\n"); got != "0 new, 0 known, 1 wrong; 2 El cliente no está activo" {
		t.Error(got)
	}
	if got := s.importCSV(t, "correo,puntos\nana@example.com,\n"); got != "0 new, 1 known, 0 wrong" {
		t.Error(got)
	}
}

// TestImportStatistics: a customer counts as new on the day of its enrolment elsewhere.
func TestImportStatistics(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.importCSV(t, "correo,alta\nana@example.com,15/03/2019\nbeto@example.com,02/03/2026\ncarla@example.com,03/03/2026\ndora@example.com,15/03/1969\n")
	for day, want := range map[string]uint64{"2019-03-15": 1, "2026-03-02": 1, "2026-03-03": 0} {
		at, _ := parseMoment(day, ask(s, func(t *txn) (*config, error) { return t.cfg, nil }).zone, false)
		got := ask(s, func(t *txn) (uint64, error) {
			x, err := t.stats.tally(t.cfg.defaultProgram().Number, at)
			return x.NewCustomers, err
		})
		if got != want {
			t.Errorf("%s: %d new", day, got)
		}
	}
}

// TestCarriedOverModel imports files of random rows and compares with a model of one map.
func TestCarriedOverModel(t *testing.T) {
	t.Parallel()
	histories(t, 60, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{program: `"tierBasis":{"window":"Rolling","months":1},` + twoTiers})
		type kept struct{ points, historic decimal }
		model := map[string]kept{}
		for range 4 {
			text := "correo;puntos;puntos historicos\n"
			wrong, given := 0, decimal(0)
			for range 8 {
				name := pick(rnd, "ana", "beto", "carla")
				points, historic := pick(rnd, "", "0", "5", "7,5"), pick(rnd, "", "0", "900", "1200")
				text += name + "@example.com;" + points + ";" + historic + "\n"
				next, ok := model[name], true
				was := next
				for _, f := range []struct {
					to   *decimal
					text string
				}{{&next.points, points}, {&next.historic, historic}} {
					if f.text == "" {
						continue
					}
					d := dec(strings.Replace(f.text, ",", ".", 1))
					ok = ok && (*f.to == 0 || *f.to == d)
					*f.to = d
				}
				if !ok {
					wrong++
					continue
				}
				given += next.points - was.points
				model[name] = next
			}
			im := s.importer(t, importCustomers)
			s.ok(im.run(strings.NewReader(text)))
			if im.report.Wrong != wrong || im.report.OpeningPoints != given {
				t.Fatalf("%+v, want %d wrong and %s given\n%s", im.report, wrong, given, text)
			}
			s.pass(12 * oneDay)
		}
		for name, want := range model {
			s.wantStanding(s.byEmail(name).ID, fmt.Sprint(want.points, " 0 ", want.historic), name)
		}
	})
}

// TestReferenceOutlives: a movement is known by its reference after a merge, under both ids, and
// after an erasure, whatever the comment.
func TestReferenceOutlives(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).served()
	ana, eva := s.shop.customer("ana"), s.shop.customer("eva")
	add := func(cust id, body, want, reason string) {
		t.Helper()
		w := s.post("/api/v1/points/customers/"+cust.String()+"/add", "", body)
		if got := fmt.Sprint(w.Code); got != want {
			t.Errorf("%s: %s %s", reason, got, w.Body)
		}
	}
	const body = `{"amount": 5, "comment": "para Ana", "reference": "R-1"}`
	add(ana, body, "201", "the first")
	add(eva, body, "409", "another customer")
	s.shop.merged(eva, ana)
	add(ana, body, "200", "the stub's own id")
	add(eva, body, "200", "the survivor's id")
	must(s.shop, func(t *txn) (*customer, error) { return t.merges.erase(eva) })
	add(eva, strings.Replace(body, "Ana", "Eva", 1), "200", "the comment is erased")
	add(eva, `{"amount": 6, "reference": "R-1"}`, "409", "other points")
	add(eva, `{"amount": 6, "reference": "R-2"}`, "409", "an erased customer gets none")
	m := ask(s.shop, func(t *txn) (*movement, error) { return t.points.referenced("R-1") })
	if m.Comment != "" || m.Reference != "R-1" {
		t.Errorf("an erased movement: comment %q, reference %q", m.Comment, m.Reference)
	}
	s.shop.verified()
}

// TestReferenceBytes: a movement without a reference has the bytes that it had before there were
// any.
func TestReferenceBytes(t *testing.T) {
	t.Parallel()
	plain, with := &movement{Amount: 1, Category: categoryBonus}, &movement{Amount: 1, Category: categoryBonus, Reference: "R"}
	short, long := appendRecord(nil, plain), appendRecord(nil, with)
	if len(long)-len(short) != len("\x03\x01R\x00") {
		t.Errorf("a reference takes %d bytes", len(long)-len(short))
	}
}

const pointsFile = "Referencia;Correo;Teléfono;externalId;id;Puntos;Categoría;Comentario;Vencen\n"

// TestImportPoints imports rows of every kind, and tells what is wrong with those that are.
func TestImportPoints(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Email: "ana@example.com", Phone: "+525512345678", ExternalID: "A-1"})
		return c.ID, err
	})
	s.customer("eva")
	in := func(row string) string { return s.sheetTold(t, importPoints, pointsFile+row+"\n", nil) }
	for _, test := range []struct{ row, fault string }{
		{"R-1;ana@example.com;;;;10;Campaña;Hola;31/12/2030", ""},
		{"R-2;;55 1234 5678;;;10,5;campaign;;nunca", ""},
		{"R-3;;;A-1;;-0,5;;;", ""},
		{"R-4;;;;" + ana.String() + ";-1;Penalización;;", ""},
		{"R-5;ana@example.com;55 1234 5678;A-1;" + ana.String() + ";1;;;", ""},
		{";ana@example.com;;;;10;;;", "Referencia: es requerido"},
		{strings.Repeat("r", 101) + ";ana@example.com;;;;10;;;", "no puede superar los 100 caracteres"},
		{"R-6;ana@example.com;;;;0;;;", `Puntos: ""0"": no puede ser 0`},
		{"R-6;ana@example.com;;;;;;;", "Puntos: debe ser un número"},
		{"R-6;ana@example.com;;;;10;Cuota;;", "Categoría: "},
		{"R-6;ana@example.com;;;;-10;Regalo;;", "Categoría: "},
		{"R-6;ana@example.com;;;;-10;;;31/12/2030", "Vencen: "},
		{"R-6;ana@example.com;;;;10;;;31/12/2020", "Vencen: "},
		{"R-6;ana@example.com;;;;10;;;ayer", "Vencen: "},
		{"R-6;ana@example.com;;;;-1000;;;", "Saldo insuficiente"},
		{"R-6;;;;;1;;;", "Se requiere email o número de teléfono"},
		{"R-6;nadie@example.com;;;;1;;;", "Cliente no encontrado"},
		{"R-6;;;nadie;;1;;;", "Cliente no encontrado"},
		{"R-6;;;;nadie;1;;;", "Cliente no encontrado"},
		{"R-6;;;A-2;" + ana.String() + ";1;;;", "externalId: "},
		{"R-6;eva@example.com;;A-1;;1;;;", "no es del cliente"},
		{"R-6;eva@example.com;55 1234 5678;;;1;;;", "clientes distintos"},
		{"R-6;otra@example.com;55 1234 5678;;;1;;;", "ya es de otra persona"},
		{"R-1;ana@example.com;;;;11;Campaña;Hola;31/12/2030", `Referencia: ""R-1"": ya se registró con otros datos`},
	} {
		told := in(test.row)
		switch {
		case test.fault == "" && told != "1 rows, 1 new":
			t.Errorf("%s: %s", test.row, told)
		case test.fault == "" && in(test.row) != "1 rows, 0 new":
			t.Errorf("%s again: %s", test.row, in(test.row))
		case test.fault != "" && !strings.Contains(told, test.fault):
			t.Errorf("%s: %s, want %s", test.row, told, test.fault)
		}
	}
	s.pass(8 * 365 * oneDay)
	if told := in("R-1;ana@example.com;;;;10;Campaña;Hola;31/12/2030"); told != "1 rows, 0 new" {
		t.Errorf("a date that has passed meanwhile: %s", told)
	}
	s.verified()
}

// grantsFile writes a file of points: so many for each of some customers, by turns.
func grantsFile(t testing.TB, dir string, customers, each int) string {
	var b strings.Builder
	b.WriteString("referencia,correo,puntos\n")
	for n := range each {
		for c := range customers {
			fmt.Fprintf(&b, "G-%d-%d,cliente%d@example.com,3\n", c, n, c)
		}
	}
	name := filepath.Join(dir, "grants.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestImportPointsResumed breaks an import off twice, each time after another part of the file
// is stored. Each of its grants is given once.
func TestImportPointsResumed(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const customers, each = 5, 400
	for c := range customers {
		s.customer(fmt.Sprint("cliente", c))
	}
	file := grantsFile(t, t.TempDir(), customers, each)
	cut := errors.New("cut off")
	known := 0
	for run, most := range []int{700, 1500, customers * each} {
		im, sent := s.importer(t, importPoints), 0
		direct := im.call
		im.call = func(ctx context.Context, name string, in, out any) error {
			if r, ok := in.(importRequest); ok {
				if sent+len(r.Rows) > most {
					r.Rows = r.Rows[:most-sent]
					sent = most
					if err := direct(ctx, name, r, out); err != nil {
						return err
					}
					return cut
				}
				sent += len(r.Rows)
			}
			return direct(ctx, name, in, out)
		}
		in, err := os.Open(file)
		s.ok(err)
		err = im.run(in)
		in.Close()
		if last := run == 2; last && err != nil || !last && !errors.Is(err, cut) {
			t.Fatalf("run %d: %v", run, err)
		}
		known = im.report.Known
	}
	if known != 1500 {
		t.Errorf("%d rows were known", known)
	}
	for c := range customers {
		cust := ask(s, func(t *txn) (*customer, error) {
			return t.customers.identify(kindEmail, fmt.Sprintf("cliente%d@example.com", c))
		})
		if got := s.standing(cust.ID).Balance; got != decimalOf(3*each) {
			t.Errorf("customer %d has %s points", c, got)
		}
	}
	s.verified()
}

// TestImportPointsKilled imports 10,000 grants through a server that is killed twice meanwhile.
func TestImportPointsKilled(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	const each = 3334
	file := grantsFile(t, k.till.dir, linearCustomers, each)
	balance := func() int { return k.wires.get("/points/customers/" + k.customers[0] + "/balance").told().Balance }
	began := balance()
	for _, part := range []int{each / 5, each / 2} {
		ended := make(chan int, 1)
		go func() {
			code, _, _ := k.till.run("import points " + file)
			ended <- code
		}()
		for until := time.Now().Add(time.Minute); balance() < began+3*part && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		k.kill()
		if code := <-ended; code == 0 {
			t.Error("the import did not notice that the server was killed")
		}
		k.start()
		if now := balance(); now < began+3*part || now >= began+3*each {
			t.Errorf("%d points after the kill: it was not in the middle", now-began)
		}
	}
	if out := k.till.ok("import points " + file); !strings.Contains(out, fmt.Sprintf("%d filas: ", linearCustomers*each)) || strings.Contains(out, " 0 que ya estaban") {
		t.Error(out)
	}
	for _, cust := range k.customers {
		if got := k.wires.get("/points/customers/" + cust + "/balance").told().Balance; got != began+3*each {
			t.Errorf("%d points, not %d", got-began, 3*each)
		}
	}
	if code := k.server.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, k.server.Log)
	}
	k.wires.close()
	k.till.ok("verify")
}

// TestReferenceShown: the panel's lists of movements, a statement and the feed show references.
func TestReferenceShown(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	s := c.panelShop.shop
	cust := s.customer("rita")
	m, err := s.move(cust, &movement{Amount: dec("5"), Category: categoryBonus, Reference: "NAVIDAD-<7>"})
	s.ok(err)
	if m.Reference == nil || *m.Reference != "NAVIDAD-<7>" {
		t.Errorf("the movement is %+v", m)
	}
	month := dayOf(s.clock, time.UTC).date().Format(monthForm)
	for _, path := range []string{"", "/estado?mes=" + month} {
		c.page("/panel/clientes/"+cust.String()+path, "<small>Referencia NAVIDAD-&lt;7&gt;</small>")
	}
	stated := s.stated(cust, month)
	s.isLedgers(stated, 0)
	changed := strings.Replace(string(stated), "NAVIDAD-<7>", "NAVIDAD-<8>", 1)
	if report, err := s.checked([]byte(changed)); err != nil || len(report.Problems) == 0 || changed == string(stated) {
		t.Errorf("another reference in a statement: %v, %v", report, err)
	}
}

// TestImportPointsSigns: points have a sign as people write it.
func TestImportPointsSigns(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("import customers -no-welcome " + s.file("c.csv", "correo\nana@example.com\n"))
	s.ok("import points " + s.file("p.csv", "correo;puntos;referencia\nana@example.com;+5;a\nana@example.com;−2;b\nana@example.com;-1;c\n"))
	if out := s.ok("export customers -full"); !strings.Contains(out, ",2,0,") {
		t.Error(out)
	}
}
