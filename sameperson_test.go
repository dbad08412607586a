package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestImportSomebodyElse: a row that has one contact of a customer is not taken as that
// customer's if it may be of somebody else (contract §19).
func TestImportSomebodyElse(t *testing.T) {
	t.Parallel()
	const head = "nombre,apellido,correo,teléfono,externalId,puntos\n"
	for _, test := range []struct {
		reason, rows string
		want         string // the outcome, and what the file of errors says
		samePerson   string // the outcome with -same-person
	}{
		{"three people share a phone",
			"Ana,Rodríguez,ana@example.com,5512345678,,100\nLuis,Paz,luis@example.com,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,100\n",
			"1 new, 0 known, 2 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2; 4 el teléfono ya es de otra persona: Ana R…, fila 2",
			"1 new, 2 known, 0 wrong, 0 warned"},
		{"two share an e-mail, as couples do", "Ana,Rodríguez,ana@example.com,5512345678,,\nLuis,Paz,ana@example.com,5587654321,,\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el email ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before", "Luis,Paz,luis@example.com,5500000001,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona: Rosa M…, externalId R-1", "0 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before, without externalId", "Luis,Paz,luis@example.com,5500000002,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona: Juan C…", "0 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before, without a name", "Luis,Paz,luis@example.com,5500000003,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona", "0 new, 1 known, 0 wrong, 0 warned"},
		{"the same row again", "Ana,Rodríguez,ana@example.com,5512345678,,100\nAna,Rodríguez,ana@example.com,5512345678,,100\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name with the same contacts: she married", "Ana,Rodríguez,ana@example.com,5512345678,,1\nAna,Paz,ana@example.com,5512345678,,1\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name, one contact", "Ana,Rodríguez,,5512345678,,100\nLuis,Paz,,5512345678,,\n",
			"1 new, 1 known, 0 wrong, 1 warned; 3 aviso: el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name, one contact, points", "Ana,Rodríguez,,5512345678,,100\nLuis,Paz,,5512345678,,100\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no points are none", "Ana,Rodríguez,,5512345678,,\nLuis,Paz,,5512345678,,0\n",
			"1 new, 1 known, 0 wrong, 1 warned; 3 aviso: el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"the same name, as people write it", "Ana  María,Rodríguez,,5512345678,,100\n ANA MARIA rodriguez,,,5512345678,,100\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no name is not another", "Ana,Rodríguez,,5512345678,,100\n,,,5512345678,,100\n", "1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no name yet", "Luis,Paz,,5500000003,,100\n", "0 new, 1 known, 0 wrong, 0 warned", "0 new, 1 known, 0 wrong, 0 warned"},
		{"an empty contact is filled in", "Ana,Rodríguez,,5512345678,,100\nAna,Rodríguez,ana@example.com,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,\n",
			"1 new, 1 known, 1 wrong, 0 warned; 4 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 2 known, 0 wrong, 0 warned"},
		{"an empty contact, another name and points", "Ana,Rodríguez,,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,100\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"lines with an error before", "Zoe,,,,,\nLía,,mala,,,\nAna Rodríguez Paz,,,5512345678,,\nLuis,,l@example.com,5512345679,,\nEva,,,5512345678,,9\nLeo,,,5512345679,,9\n",
			"2 new, 0 known, 4 wrong, 0 warned; 2 Se requiere email o número de teléfono; 3 correo: \"mala\": no es un email válido; 6 el teléfono ya es de otra persona: Ana R…, fila 4; 7 el teléfono ya es de otra persona: Luis, fila 5", ""},
	} {
		for _, samePerson := range []bool{false, true} {
			want := test.want
			if samePerson {
				want = test.samePerson
			}
			if want == "" {
				continue
			}
			s := newShop(t, setup{})
			for i, e := range []enrolment{{FirstName: "Rosa", LastName: "Mora", ExternalID: "R-1"}, {FirstName: "Juan", LastName: "Cruz"}, {}} {
				e.Email, e.Phone = fmt.Sprintf("old%d@example.com", i), fmt.Sprintf("+52550000000%d", i+1)
				must(s, func(t *txn) (*customer, error) {
					c, _, err := t.customers.enrol(e)
					return c, err
				})
			}
			im := s.importer(t, importCustomers)
			im.request.SamePerson = samePerson
			s.ok(im.run(strings.NewReader(head + test.rows)))
			r := im.report
			if got := fmt.Sprintf("%d new, %d known, %d wrong, %d warned", r.Added, r.Known, r.Wrong, r.Warned) + toldIn(t, r.Errors, ','); got != want {
				t.Errorf("%s, -same-person %t:\n%s\nwant %s", test.reason, samePerson, got, want)
			}
			s.verified()
		}
	}
}

// TestImportSomebodyElseBatch: the row that a customer came from is told, however many batches
// and parts lie between.
func TestImportSomebodyElseBatch(t *testing.T) {
	t.Parallel()
	skipShort(t)
	var text strings.Builder
	text.WriteString("correo,teléfono\n")
	for i := range importBatch + importPartRows {
		fmt.Fprintf(&text, "c%d@example.com,55%08d\n", i, 10_000_000+i)
		if i%1000 == 0 {
			fmt.Fprint(&text, "mala,\n")
		}
	}
	text.WriteString("x@example.com,5510001001\n")
	s := newShop(t, setup{})
	im := s.importer(t, importCustomers)
	s.ok(im.run(strings.NewReader(text.String())))
	if got, want := toldIn(t, im.report.Errors, ','), "el teléfono ya es de otra persona, fila 1005"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if len(im.added) > 10 {
		t.Errorf("%d runs of new customers are kept", len(im.added))
	}
}

// TestImportSomebodyElseMerged: a row of somebody who became part of another customer is that
// customer's.
func TestImportSomebodyElseMerged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.importCSV(t, "nombre,correo,teléfono\nAna,ana@example.com,\nAnita,anita@example.com,5512345678\n")
	ana, twin := s.byEmail("ana").ID, s.byEmail("anita").ID
	s.merged(ana, twin)
	for _, test := range []struct{ row, want string }{
		{"Anita,anita@example.com,5512345678", "0 new, 1 known, 0 wrong"},
		{"Anita,,5512345678", "0 new, 1 known, 0 wrong"},
		{"Luis,luis@example.com,5512345678", "0 new, 0 known, 1 wrong; 2 el teléfono ya es de otra persona: Ana"},
	} {
		if got := s.importCSV(t, "nombre,correo,teléfono\n"+test.row+"\n"); got != test.want {
			t.Errorf("%s: %s, want %s", test.row, got, test.want)
		}
	}
}

// TestImportSaleOfSomebodyElse: a sale with the contacts of two people is nobody's.
func TestImportSaleOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, contacts, want, samePerson string }{
		{"the phone of another", "ana@example.com,5500000002", "0 new, 0 known, 1 wrong; 2 El email y el teléfono pertenecen a clientes distintos", "1 new, 0 known, 0 wrong"},
		{"an unknown phone", "ana@example.com,5500000009", "0 new, 0 known, 1 wrong; 2 el email ya es de otra persona: Ana R…", "1 new, 0 known, 0 wrong"},
		{"an unknown e-mail", "luis@example.com,5500000001", "0 new, 0 known, 1 wrong; 2 el teléfono ya es de otra persona: Ana R…", "1 new, 0 known, 0 wrong"},
		{"both are hers", "ana@example.com,5500000001", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"one is hers", ",5500000001", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"she has no phone yet", "eva@example.com,5500000009", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"imported before, by her old phone", "old@example.com,5500000003", "0 new, 1 known, 0 wrong", "0 new, 1 known, 0 wrong"},
	} {
		for _, samePerson := range []bool{false, true} {
			s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
			s.importCSV(t, "nombre,apellido,correo,teléfono\nAna,Rodríguez,ana@example.com,5500000001\nLuz,Mar,luz@example.com,5500000002\nEva,Sol,eva@example.com,\nLía,Paz,old@example.com,5500000003\n")
			file := func(contacts string) string { return "A,2026-01-05T10:00:00Z," + contacts + ",Purchase,10,,,," }
			if strings.HasPrefix(test.contacts, "old@") {
				s.importText(t, file(test.contacts))
				lia := s.byEmail("old").ID
				must(s, func(t *txn) (*customer, error) {
					return t.customers.patch(lia, customerPatch{Email: new("lia@example.com")}, nil)
				})
			}
			im := s.importer(t, importSales)
			im.request.SamePerson = samePerson
			s.ok(im.run(strings.NewReader(strings.Join(exportColumns[importSales], ",") + "\n" + file(test.contacts))))
			want := test.want
			if samePerson {
				want = test.samePerson
			}
			if got := fmt.Sprintf("%d new, %d known, %d wrong", im.report.Added, im.report.Known, im.report.Wrong) + toldIn(t, im.report.Errors, ','); got != want {
				t.Errorf("%s, -same-person %t: %s, want %s", test.reason, samePerson, got, want)
			}
		}
	}
}

// TestImportOtherData: what a row says of a known customer and is not taken is a warning, not
// silence (contract §31).
func TestImportOtherData(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const head = "nombre,correo,teléfono,externalId,cumpleaños\n"
	s.importCSV(t, head+"Ana,ana@example.com,5512345678,A-1,1990-05-14\nEva,,5512345679,E-1,1991-05-14\nLuz,luz@example.com,,,\nNoé,noe@example.com,,,02-29\n")
	s.merged(s.byEmail("ana").ID, s.byEmail("luz").ID)
	for _, test := range []struct{ row, want string }{
		{"Ana,ana@example.com,5512345678,A-1,14/05/1990", ""},
		{"Ana,ana@example.com,5512345678,,", ""},
		{"Ana,ana@example.com,5512345678,A-1,15/05/1990", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva"},
		{"Ana,ana@example.com,,A-2,1990-05-15", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva; el cliente tiene otro externalId, A-1, y lo conserva"},
		{"Ana,ana@example.com,,,05-14", ""},
		{"Ana,ana@example.com,,,--05-14", ""},
		{"Ana,ana@example.com,,,14/05", ""},
		{"Ana,ana@example.com,,,15/05", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva"},
		{"Noé,noe@example.com,,,28/02", "aviso: el cliente tiene otra fecha de nacimiento, --02-29, y la conserva"},
		{"Noé,noe@example.com,,,28/02/1992", "aviso: el cliente tiene otra fecha de nacimiento, --02-29, y la conserva"},
		{"Noé,noe@example.com,,,29/02/1992", ""},
		{"Noé,noe@example.com,,,29/02/1996", "aviso: el cliente tiene otra fecha de nacimiento, 1992-02-29, y la conserva"},
		{"Noé,noe@example.com,,,02-29", ""},
		{"Eve,,5512345679,E-2,", "aviso: el cliente tiene otro externalId, E-1, y lo conserva; el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Eva, externalId E-1"},
	} {
		want := "0 new, 1 known, 0 wrong"
		if test.want != "" {
			want += "; 2 " + test.want
		}
		if got := s.importCSV(t, head+test.row+"\n"); got != want {
			t.Errorf("%s:\n%s\nwant %s", test.row, got, want)
		}
	}
	for email, want := range map[string]birthDate{"ana": 19900514, "noe": 19920229} {
		if got := s.byEmail(email).BirthDate; got != want {
			t.Errorf("%s was born %s, want %s", email, got, want)
		}
	}
	s.verified()
}
