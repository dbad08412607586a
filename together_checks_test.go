package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What must hold at any time in TestAllTogether.

// read gets an answer.
func (m *mixture) read(path string, v any) {
	m.t.Helper()
	w := m.servedShop.get("/api/v1" + path)
	if w.Code != http.StatusOK {
		m.t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	m.servedShop.shop.ok(json.Unmarshal(w.Body.Bytes(), v))
}

// listed reads all pages of a list, which must have as many elements as they say.
func (m *mixture) listed(path string, filter url.Values) (all []map[string]any) {
	m.t.Helper()
	query := url.Values{"limit": {strconv.Itoa(1 + m.rnd.IntN(40))}}
	maps.Copy(query, filter)
	for page := 1; ; page++ {
		query.Set("page", strconv.Itoa(page))
		var l listShape[map[string]any]
		m.read(path+"?"+query.Encode(), &l)
		all = append(all, l.Data...)
		if l.Meta.HasNextPage {
			continue
		}
		if uint64(len(all)) != l.Meta.Total {
			m.t.Errorf("%s %v has %d elements and says %d", path, filter, len(all), l.Meta.Total)
		}
		return all
	}
}

// check checks all that must hold at any time.
func (m *mixture) check() {
	m.note("check")
	for _, cust := range m.people {
		m.checkLots(cust)
	}
	m.checkSales()
	m.checkRedemptions()
	m.checkCustomers()
	m.servedShop.shop.verified()
	if m.rnd.IntN(2) == 0 {
		m.servedShop.shop.swept()
		m.servedShop.shop.verified()
		for _, cust := range m.people {
			m.checkMovements(cust)
		}
	}
}

// checkLots compares a customer's balances with the lots.
func (m *mixture) checkLots(cust id) {
	ask(m.servedShop.shop, func(t *txn) (any, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		for _, p := range t.cfg.Programs {
			a, err := t.points.account(c, p)
			if err != nil {
				return nil, err
			}
			sum := map[byte]decimal{}
			for _, part := range []byte{partLot, partPending} {
				for l, err := range t.points.lots(a, part) {
					if err != nil {
						return nil, err
					}
					sum[part] += l.Left
				}
			}
			if sum[partLot] != max(a.Balance, 0) || sum[partPending] != a.Pending {
				m.t.Errorf("%s in %s has %s and %s pending, lots of %s and %s", cust, p.Key, a.Balance, a.Pending, sum[partLot], sum[partPending])
			}
		}
		return nil, nil
	})
}

// checkMovements compares a customer's balances, of which all is written down, with the
// sum of movements.
func (m *mixture) checkMovements(cust id) {
	var d customerDetail
	m.read("/customers/"+cust.String(), &d)
	for _, p := range d.Programs {
		sum := 0.0
		path := "/points/customers/" + cust.String() + "/movements"
		all := m.listed(path, url.Values{"loyaltyProgramId": {p.LoyaltyProgramID.String()}})
		for _, v := range all {
			if sign := v["amount"].(float64); v["type"] == typeCredit {
				sum += sign
			} else {
				sum -= sign
			}
		}
		if got := fmt.Sprintf("%.4f", sum); dec(got) != p.Balance+p.PendingBalance {
			m.t.Errorf("%s has %s and %s pending, movements of %s", cust, p.Balance, p.PendingBalance, got)
		}
		m.filtered(path, all, url.Values{"loyaltyProgramId": {p.LoyaltyProgramID.String()}, "type": {typeCredit}}, func(v map[string]any) bool { return v["type"] == typeCredit })
	}
}

// filtered compares a list under a filter with the elements of the whole one that it keeps.
func (m *mixture) filtered(path string, all []map[string]any, filter url.Values, keep func(map[string]any) bool) {
	m.t.Helper()
	ids := func(l []map[string]any) (ids []any) {
		for _, v := range l {
			ids = append(ids, v["id"])
		}
		return ids
	}
	want := slices.DeleteFunc(slices.Clone(all), func(v map[string]any) bool { return !keep(v) })
	got := m.listed(path, filter)
	if filter.Has("to") { // newest first by another date than the whole list
		for _, l := range [][]map[string]any{got, want} {
			slices.SortFunc(l, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
		}
	}
	if got, want := ids(got), ids(want); !slices.Equal(got, want) {
		m.t.Errorf("%s %v: %v\nwant %v", path, filter, got, want)
	}
}

func (m *mixture) checkSales() {
	all := m.listed("/transactions", nil)
	is := func(name string, value string) func(map[string]any) bool {
		return func(v map[string]any) bool { return v[name] == value }
	}
	for _, cust := range m.people {
		m.filtered("/transactions", all, url.Values{"customerId": {cust.String()}}, is("customerId", cust.String()))
		m.filtered("/transactions", all, url.Values{"customerId": {cust.String()}, "type": {typePurchase}},
			func(v map[string]any) bool { return v["customerId"] == cust.String() && v["type"] == typePurchase })
	}
	m.filtered("/transactions", all, url.Values{"type": {typeReturn}}, is("type", typeReturn))
	code := fmt.Sprint("E", m.rnd.IntN(12))
	m.filtered("/transactions", all, url.Values{"externalId": {code}}, is("externalId", code))
	from, to := m.servedShop.shop.clock.add(-20*oneDay).String(), m.servedShop.shop.clock.add(-3*oneDay).String()
	m.filtered("/transactions", all, url.Values{"from": {from}, "to": {to}},
		func(v map[string]any) bool { at := v["createdAt"].(string); return from <= at && at <= to })
	m.filtered("/transactions", all, url.Values{"registeredFrom": {to}, "to": {to}, "type": {typePurchase}},
		func(v map[string]any) bool {
			return v["registeredAt"].(string) >= to && v["createdAt"].(string) <= to && v["type"] == typePurchase
		})
	m.filtered("/transactions", all, url.Values{"search": {"n1"}}, func(v map[string]any) bool {
		mail, _ := v["customerEmail"].(string)
		return strings.Contains(strings.ToLower(v["customerName"].(string)), "n1") || strings.Contains(mail, "n1")
	})
	for _, v := range pick(m.rnd, all, nil) {
		var one map[string]any
		m.read("/transactions/"+v["id"].(string), &one)
		same(m.t, "a sale, and in the list", one, v)
	}
}

func (m *mixture) checkRedemptions() {
	all := m.listed("/redemptions", nil)
	for _, cust := range m.people {
		m.filtered("/redemptions", all, url.Values{"customerId": {cust.String()}}, func(v map[string]any) bool { return v["customerId"] == cust.String() })
	}
	for _, status := range redemptionStatuses {
		m.filtered("/redemptions", all, url.Values{"status": {status}}, func(v map[string]any) bool { return v["status"] == status })
	}
}

func (m *mixture) checkCustomers() {
	all := m.listed("/customers", nil)
	shown := map[string]bool{}
	for _, v := range all {
		shown[v["id"].(string)] = true
	}
	searched := func(v map[string]any) bool {
		var d customerDetail
		m.read("/customers/"+v["id"].(string), &d)
		mail := ""
		if d.Email != nil {
			mail = *d.Email
		}
		return strings.Contains(strings.ToLower(d.Name)+" "+mail, "n1")
	}
	m.filtered("/customers", all, url.Values{"search": {"n1"}}, searched)
	for _, status := range []string{statusActive, statusInactive} {
		m.filtered("/customers", all, url.Values{"status": {status}}, func(v map[string]any) bool { return v["status"] == status })
	}
	for _, cust := range m.people {
		var d customerDetail
		m.read("/customers/"+cust.String(), &d)
		if hidden := d.Status == statusMerged || d.Status == statusErased; hidden == shown[cust.String()] {
			m.t.Errorf("%s is %s, and listed: %t", cust, d.Status, shown[cust.String()])
		}
		var kept struct{ Transactions, Redemptions []map[string]any }
		m.read("/customers/"+cust.String()+"/export", &kept)
	}
	var s statisticsShape
	m.read("/statistics?from=2018-01-01&to="+m.servedShop.shop.clock.time().Format(time.DateOnly)+"&groupBy=month", &s)
	if s.Total.Customers != uint64(len(all)) {
		m.t.Errorf("%d customers in the statistics, %d in the list", s.Total.Customers, len(all))
	}
}
