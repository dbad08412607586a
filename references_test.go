package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
