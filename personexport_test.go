package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

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
		must(s.shop, func(t *txn) (*redemption, error) { return t.rewards.redeem(ana, reward, "", nil) })
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
