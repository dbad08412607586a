package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A statedMonth is a statement as clients read it.
type statedMonth struct {
	CustomerID       id              `json:"customerId"`
	LoyaltyProgramID id              `json:"loyaltyProgramId"`
	Month            string          `json:"month"`
	From             instant         `json:"from"`
	To               instant         `json:"to"`
	Opening          pointSums       `json:"opening"`
	Closing          pointSums       `json:"closing"`
	Movements        []movementShape `json:"movements"`
	Digest           string          `json:"digest"`
}

// stated returns a statement as the API answers it.
func (s *shop) stated(cust id, month string) []byte {
	s.Helper()
	return ask(s, func(t *txn) (raw []byte, err error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		of := &statement{customer: c, program: t.cfg.programNumber(c.Program), month: month}
		for parts := bodyParts(&statementParts{statement: of}); parts != nil && err == nil; {
			raw, parts, err = parts.next(t, raw)
		}
		return raw, err
	})
}

// checked is what `sello verify -statement` says of a statement.
func (s *shop) checked(raw []byte) (*statementReport, error) {
	return s.admin().verifyStatement(s.Context(), statementRequest{raw})
}

// isLedgers checks that a statement is the ledger's, and how many movements came later.
func (s *shop) isLedgers(raw []byte, late uint64) {
	s.Helper()
	report, err := s.checked(raw)
	s.ok(err)
	if len(report.Problems) > 0 || report.Late != late {
		s.Errorf("%s\nproblems %q, %d later movements, want %d", raw, report.Problems, report.Late, late)
	}
}

// TestStatements plays random histories with late sales. Each month begins with what the month
// before it left, its movements lead from its opening to its closing, and each statement, also an
// earlier one, is the ledger's.
func TestStatements(t *testing.T) {
	t.Parallel()
	skipShort(t)
	histories(t, 60, func(t *testing.T, rnd *rand.Rand) {
		h := newHistory(t, rnd)
		var early []byte
		var sold []*sale
		for i := range 30 {
			h.shop.pass(time.Duration(rnd.Int64N(int64(8 * oneDay))))
			switch points := decimalOf(1 + rnd.IntN(40)); rnd.IntN(6) { // some are refused
			case 0:
				h.shop.add(h.cust, points.String(), h.shop.clock.add(time.Duration(1+rnd.Int64N(int64(50*oneDay)))))
			case 1:
				h.shop.deduct(h.cust, points.String())
			case 2:
				if len(sold) > 0 {
					h.shop.tryBring(pick(rnd, sold...), "1")
				}
			case 3:
				seconds := leastHold + rnd.IntN(mostHold-leastHold)
				do(h.shop, func(t *txn) (*hold, error) {
					return t.points.place(newHold{Customer: h.cust, Amount: points, Seconds: seconds})
				})
			default:
				s, err := h.shop.sell(newSale{Customer: h.cust, Type: typePurchase, Total: points, OccurredAt: h.shop.clock.add(-time.Duration(rnd.Int64N(int64(20 * oneDay))))})
				if err == nil {
					sold = append(sold, s)
				}
			}
			if i == 15 {
				early = h.shop.stated(h.cust, dayOf(h.shop.clock, h.zone).date().Format(monthForm))
			}
		}
		h.shop.swept()
		if report, err := h.shop.checked(early); err != nil || len(report.Problems) > 0 {
			t.Errorf("%s\n%v %q", early, err, report.Problems)
		}
		var before *pointSums
		first := dayOf(h.enrolled[0], h.zone).date()
		for d := first.AddDate(0, -1, 1-first.Day()); instantOf(d) <= h.shop.clock-instant(oneDay.Milliseconds()); d = d.AddDate(0, 1, 0) {
			raw := h.shop.stated(h.cust, d.Format(monthForm))
			h.shop.isLedgers(raw, 0)
			var s statedMonth
			h.shop.ok(json.Unmarshal(raw, &s))
			if before != nil && s.Opening != *before {
				t.Errorf("%s opens with %+v, after %+v", d.Format(monthForm), s.Opening, *before)
			}
			before = &s.Closing
			sum := s.Opening.Balance + s.Opening.Pending
			for _, m := range s.Movements {
				if m.Type == typeDebit {
					m.Amount = -m.Amount
				}
				sum += m.Amount
			}
			if sum != s.Closing.Balance+s.Closing.Pending {
				t.Errorf("%s\nleads to %s", raw, sum)
			}
		}
	})
}

// TestStatementChanged changes each byte of a statement in turn, and the statement as a whole.
func TestStatementChanged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.add(ana, "50", 0)
	s.hold(ana, "4", 3600, "pedido")
	s.pass(40 * oneDay)
	s.buy(ana, "30")
	_, err := s.deduct(ana, "7.5")
	s.ok(err)
	const month = "2026-04"
	partial := s.stated(ana, month)
	s.pass(40 * oneDay)
	s.swept()
	whole := s.stated(ana, month)
	for _, raw := range [][]byte{partial, whole} {
		s.isLedgers(raw, 0)
		is, err := jsonTree(raw)
		s.ok(err)
		for i, c := range raw {
			changed := bytes.Clone(raw)
			for _, to := range []byte{'1', 'b', ' ', c ^ 0x20} {
				if changed[i] = to; to == c {
					continue
				}
				if other, err := jsonTree(changed); err == nil && inJSON(other) == inJSON(is) {
					continue // only white space
				}
				if report, err := s.checked(changed); err == nil && len(report.Problems) == 0 {
					t.Fatalf("byte %d, %q in place of %q: nobody tells\n%s", i, to, c, changed)
				}
			}
		}
	}
	for _, test := range []struct{ from, to, told string }{
		{`"digest"`, `"resumen"`, "no es un estado"},
		{`"movements":[`, `"more":1,"movements":[`, "more: sobra"},
		{`"movements":[`, `"movements":{"a":[`, "no es un estado"},
		{`"type":"Debit",`, ``, "movements[1].type: falta"},
		{`"heldBalance":0`, `"heldBalance":{}`, ""},
		{`"amount":7.5`, `"amount":70.5`, "movements[1].amount: dice 70.5 y el libro, 7.5"},
		{month, "2026-05", ""},
		{month, "2036-05", "month"},
		{month, "mayo", "month"},
	} {
		report, err := s.checked([]byte(strings.Replace(string(whole), test.from, test.to, 1)))
		told := ""
		if err != nil {
			told = err.Error()
		} else {
			told = strings.Join(report.Problems, "\n")
		}
		if told == "" || !strings.Contains(told, test.told) {
			t.Errorf("%s for %s: %q, want %q", test.to, test.from, told, test.told)
		}
	}

	// What comes later does not make it false, but is told.
	_, err = s.sell(newSale{Customer: ana, Type: typePurchase, Total: decimalOf(9), OccurredAt: s.clock.add(-25 * oneDay)})
	s.ok(err)
	s.isLedgers(partial, 1)
	s.isLedgers(whole, 1)
	if next := s.stated(ana, month); bytes.Equal(next, whole) {
		t.Error("the late sale is not in the statement")
	} else {
		s.isLedgers(next, 0)
	}

	// A number that is written in another way is the same one.
	spelled := regexp.MustCompile(`"amount":(\d+),`).ReplaceAll(whole, []byte(`"amount":$1.0,`))
	if bytes.Equal(spelled, whole) {
		t.Error("no amount is written in another way")
	}
	s.isLedgers(spelled, 1)

	// The statement of a ledger that was edited is not the ledger's.
	m := s.ledger(ana)[0]
	m.Expires--
	s.ok(s.engine.store.Update(s.Context(), func(tx Tx) error { return put(tx, orgKey('m', s.org).u64(m.Seq), m) }))
	if report, err := s.checked(s.stated(ana, month)); err != nil || !anyContains(report.Problems, m.id().String()) {
		t.Errorf("of an edited ledger: %v %q", err, report.Problems)
	}
	m.Expires++
	s.ok(s.engine.store.Update(s.Context(), func(tx Tx) error { return put(tx, orgKey('m', s.org).u64(m.Seq), m) }))
}

// TestStatementLong states a month with more movements than one part holds, whose comments are
// erased afterwards.
func TestStatementLong(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	for range 300 {
		_, err := s.move(ana, &movement{Category: categoryBonus, Amount: decimalOne, Comment: "gracias"})
		s.ok(err)
	}
	raw := s.stated(ana, dayOf(s.clock, time.UTC).date().Format(monthForm))
	if len(raw) < 2*exportPart {
		t.Errorf("%d bytes", len(raw))
	}
	s.isLedgers(raw, 0)
	_, err := write(s.Context(), s.engine, s.org, s.clock, func(t *txn) (any, error) { return t.merges.erase(ana) })
	s.ok(err)
	report, err := s.checked(raw)
	s.ok(err)
	if report.ErasedComments != 300 || anyContains(report.Problems, "comment") {
		t.Errorf("after the erasure: %+v", report)
	}
}

// TestExportParts: an export in several parts is one JSON object with everything, and
// nothing twice.
func TestExportParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newShop(t, setup{also: `"rewards": [{"key": "r", "program": "club", "name": "Café", "pointsCost": 1}]`}).served()
	ana := s.shop.customer("ana")
	const each = 700
	reward := ask(s.shop, func(t *txn) (id, error) { return t.cfg.Rewards[0].ID, nil })
	for i := range each {
		s.shop.add(ana, "1", never)
		s.shop.buy(ana, "5", item{SKU: fmt.Sprint("S-", i), Price: dec("5"), Quantity: dec("1")})
		must(s.shop, func(t *txn) (*redemption, error) { return t.rewards.redeem(ana, reward, "", nil, givenProof{}) })
		name := fmt.Sprint("Ana ", i)
		must(s.shop, func(t *txn) (*customer, error) { return t.customers.patch(ana, customerPatch{FirstName: &name}, nil) })
	}
	w := s.get("/api/v1/customers/" + ana.String() + "/export")
	type shown struct{ ID id }
	var all struct {
		Accounts                  []struct{ Movements []shown }
		Transactions, Redemptions []shown
		AuditEntries              []auditShape
	}
	s.shop.ok(json.Unmarshal(w.Body.Bytes(), &all))
	seen := map[id]bool{}
	for _, m := range all.Accounts[0].Movements {
		seen[m.ID] = true
	}
	for _, x := range all.Redemptions {
		seen[x.ID] = true
	}
	for _, sold := range all.Transactions {
		seen[sold.ID] = true
	}
	if w.Code != http.StatusOK || len(seen) != 4*each || len(all.Accounts[0].Movements) != 2*each || len(all.Transactions) != each || len(all.AuditEntries) != each {
		t.Errorf("%d: %d movements, %d sales, %d redemptions, %d entries; %d are different", w.Code,
			len(all.Accounts[0].Movements), len(all.Transactions), len(all.Redemptions), len(all.AuditEntries), len(seen))
	}
	if w.Body.Len() < 5*exportPart || w.Header().Get("Content-Length") != "" {
		t.Errorf("%d bytes, %v: this test shows nothing", w.Body.Len(), w.Header())
	}
}

// TestExportCutOff: where reading fails in the middle of an export, the client notices.
func TestExportCutOff(t *testing.T) {
	t.Parallel()
	skipShort(t)
	shop := newEmptyShop(t, "2026-03-02T10:00:00Z") // which is not verified
	shop.apply(setup{}.document())
	s := shop.served()
	ana := s.shop.customer("ana")
	for range 600 {
		s.shop.add(ana, "1", never)
	}
	s.shop.ok(s.shop.engine.store.Update(t.Context(), func(tx Tx) error { return tx.Delete(orgKey('m', s.shop.org).u64(50)) }))
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("the export did not end the connection")
		}
	}()
	s.get("/api/v1/customers/" + ana.String() + "/export")
}

// TestExportUnswept: movements that are due and not yet written down are in one part with
// their account, wherever the part ends.
func TestExportUnswept(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).served()
	ana := s.shop.customer("ana")
	const due = 400 // fill more than a part
	for i := range due {
		s.shop.add(ana, "1", s.shop.clock.add(oneDay+time.Duration(i)*time.Millisecond))
	}
	s.shop.pass(2 * oneDay)
	var all struct {
		Accounts []struct{ Movements []movementShape }
	}
	s.shop.ok(json.Unmarshal(s.get("/api/v1/customers/"+ana.String()+"/export").Body.Bytes(), &all))
	sum := map[string]int{}
	for _, m := range all.Accounts[0].Movements {
		sum[m.Type]++
	}
	same(t, "movements", sum, map[string]int{typeCredit: due, typeDebit: due})
}
