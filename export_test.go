package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sello/internal/sheet"
)

var allIDs = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}(\.[0-9]+)?`)

// TestExportGolden shows each kind of export, full and not, with ids numbered in the order
// in which they are seen and codes left out.
func TestExportGolden(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{
		at:      "2026-03-02T10:00:00Z",
		program: `"payment":{"points":10,"amount":1},"rules":[` + onePer1 + `,{"key":"bonus","name":"Bonus","points":7},{"key":"hola","name":"Hola","on":"Signup","points":5}]`,
		also: `"rewards":[
			{"key":"cup","program":"club","name":"=Taza","pointsCost":10},
			{"key":"coffee","program":"club","name":"Café","pointsCost":20,"fulfilment":"Voucher","validDays":2},
			{"key":"card","program":"club","name":"Tarjeta","pointsCost":1,"fulfilment":"Voucher"}]`,
	})
	ana := s.customer("ana")
	eva := s.customer("eva")
	purchase, err := s.sell(newSale{Customer: ana, Total: dec("150"), ExternalID: "T-1", Source: sourceAPI, Items: []item{{"A", dec("50"), dec("2")}, {"B", dec("50"), dec("1")}}})
	s.ok(err)
	s.pass(time.Minute)
	s.bring(purchase, "50")
	key, _ := s.newKey(keyRequest{})
	must(s, func(t *txn) (any, error) {
		t.by = creator{Type: byKey, ID: key.ID, Actor: "caja-2/Luis"}
		c, err := t.customers.get(ana)
		if err != nil {
			return nil, err
		}
		a, err := t.points.account(c, t.cfg.defaultProgram())
		if err == nil {
			err = t.points.credit(a, &movement{Category: categoryBonus, Amount: dec("12.5"), Comment: "a mano"})
		}
		if err != nil {
			return nil, err
		}
		return nil, t.points.saveAccount(a)
	})
	codes := []string{}
	redeemed := func(reward string) *redemption {
		x, err := s.redeem(ana, reward)
		s.ok(err)
		codes = append(codes, x.Code)
		return x
	}
	redeemed("cup")
	used, cancelled := redeemed("coffee"), redeemed("coffee")
	redeemed("coffee")
	redeemed("card")
	s.pass(time.Minute)
	must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(used.Code, &purchase.ID) })
	_, err = s.cancel(cancelled)
	s.ok(err)
	paid, err := s.sell(newSale{Customer: ana, Total: dec("20"), Source: sourceAPI, Pay: &newPayment{Points: dec("30")}, Labels: saleLabels{{"pago", "efectivo"}}})
	s.ok(err)
	s.bring(paid, "10")
	s.pass(4 * oneDay)
	s.merged(eva, ana) // what was ana's is eva's
	var got strings.Builder
	for _, kind := range []string{importCustomers, importSales, exportMovements, redemptionsFile} {
		for _, full := range []bool{false, true} {
			if full && fullColumns[kind] == nil {
				continue
			}
			var out bytes.Buffer
			s.ok((csvForm{}).write(t.Context(), s.admin().direct, exportRequest{Org: "cafe-luna", Kind: kind, Full: full}, &out))
			text, marked := strings.CutPrefix(out.String(), sheet.MarkUTF8)
			if !marked {
				t.Errorf("%s: no byte order mark", kind)
			}
			fmt.Fprintf(&got, "# %s, full: %t\n%s", kind, full, text)
		}
	}
	seen := map[string]string{}
	text := allIDs.ReplaceAllStringFunc(got.String(), func(one string) string {
		if seen[one] == "" {
			seen[one] = fmt.Sprint("ID", len(seen)+1)
		}
		return seen[one]
	})
	for _, code := range codes {
		text = strings.ReplaceAll(text, code, "CODE")
	}
	const golden = "testdata/import/exports.golden.txt"
	if *updateGolden {
		s.ok(os.WriteFile(golden, []byte(text), 0o644))
	}
	if d := cmp.Diff(string(readFile(t, golden)), text); d != "" {
		t.Errorf("exports (-want +got):\n%s", d)
	}
}

// TestExportMark: an export with a byte order mark is imported as one without it, full or not.
func TestExportMark(t *testing.T) {
	t.Parallel()
	from := newOpenTill(t)
	from.ok("import customers " + from.file("c.csv", "nombre,correo\nÁñez Peña,ana@example.com\n"))
	from.ok("import sales " + from.file("s.csv", "ticket,fecha,correo,total,comentario\nÑ-1,2026-01-05,ana@example.com,10,Café\n"))
	for _, flags := range []string{"", " -raw"} {
		to := newOpenTill(t)
		for _, kind := range []string{importCustomers, importSales} {
			text := from.ok("export " + kind + flags)
			if strings.HasPrefix(text, sheet.MarkUTF8) == (flags == " -raw") {
				t.Errorf("export %s%s begins with %q", kind, flags, text[:3])
			}
			to.ok("import " + kind + flags + " " + to.file(kind+".csv", text))
			if again := to.ok("export " + kind + flags); again != text {
				t.Errorf("%s%s: %s\nwant %s", kind, flags, again, text)
			}
		}
	}
	full := from.file("full.csv", from.ok("export sales -full"))
	if code, _, told := from.run("import sales " + full); code != 1 || !strings.Contains(told, "-ignore id,points,source,registeredAt,createdBy,pointsPaid,amountPaid,amountDue ") {
		t.Errorf("%d %s", code, told)
	}
	if out := from.ok("import sales -ignore id,points,source,registeredAt,createdBy,pointsPaid,amountPaid,amountDue " + full); !strings.Contains(out, "0 nuevas, 1 que ya estaban, 0 con errores") {
		t.Error(out)
	}
}

// TestExportSegment: an export may have the customers of one segment, in pages, also while the file
// is served.
func TestExportSegment(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("apply -", string(setup{also: marchSegment}.document()))
	var rows strings.Builder
	rows.WriteString("nombre,correo,cumpleaños\n")
	const n = 3000
	for i := range n {
		fmt.Fprintf(&rows, "C%d,c%d@example.com,1990-%02d-02\n", i, i, 3+i%3)
	}
	s.ok("import customers " + s.file("c.csv", rows.String()))
	got := strings.Count(s.ok("export customers -raw -segment marzo"), "-03-02")
	if lines := strings.Count(s.ok("export customers -raw -full -segment marzo"), "\n"); got != n/3 || lines != 1+n/3 {
		t.Errorf("%d customers, in full %d lines", got, lines)
	}
	if code, _, told := s.run("export customers -segment nada"); code != 1 || !strings.Contains(told, `no hay ningún segmento "nada"; hay: marzo`) {
		t.Errorf("%d %s", code, told)
	}
	if code, _, told := s.run("export sales -segment marzo"); code != 2 {
		t.Errorf("sales of a segment: %d %s", code, told)
	}
}
