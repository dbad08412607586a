package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var saleDate = regexp.MustCompile(`<tr><td><a href="/panel/ventas/[^"]*"><time datetime="([^"]*)"`)

// comesBack starts a session of a member whose last one has ended.
func (s *panelShop) comesBack(as role) {
	s.tokens[as] = must(s.shop, func(t *txn) (string, error) { return t.people.startSession(s.users[as], sessionFull, &arrival{}) })
}

// TestPanelSalesByDate: the list of sales is in the order of the dates that it shows, also if
// some came late: with each filter, over all its pages, and of one maker.
func TestPanelSalesByDate(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{settings: `"maxLateDays":60`})
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	till := creator{Type: byUser, ID: s.users[roleCashier]}
	var all []string
	for n := range 45 {
		s.shop.pass(time.Hour)
		in := newSale{Customer: ana, Total: decimalOf(n + 1), Type: typePurchase, ExternalID: fmt.Sprint("T-", n%2)}
		if n%3 == 0 {
			in.Customer = luz
		}
		if n%4 == 3 { // it came late
			in.OccurredAt = s.shop.clock.add(-time.Duration(n) * 41 * time.Minute)
		}
		sold := must(s.shop, func(t *txn) (*sale, error) {
			t.by = till
			sold, _, err := t.sales.register(in)
			return sold, err
		})
		all = append(all, sold.CreatedAt.String())
	}
	s.comesBack(roleOwner)
	slices.Sort(all)
	slices.Reverse(all)
	dates := func(path string) (list []string) {
		for _, found := range saleDate.FindAllStringSubmatch(s.open(roleOwner, path).Body.String(), -1) {
			list = append(list, found[1])
		}
		return list
	}
	for path, want := range map[string]int{
		"/panel/ventas?": 45, "/panel/ventas?type=Purchase": 45, "/panel/ventas?search=ana": 30, "/panel/ventas?externalId=T-1": 22,
		"/panel/ventas?from=2000-01-01": 45, "/panel/ventas?search=luz&externalId=T-0": 8,
	} {
		var got []string
		for page := 1; page <= 3; page++ {
			got = append(got, dates(fmt.Sprint(path, "&page=", page))...)
		}
		if len(got) != want || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("%s: %d sales, want %d: %v", path, len(got), want, got)
		}
		if strings.HasSuffix(path, "?") {
			same(t, "all sales", got, all)
		}
		if page := mainText(s.open(roleOwner, path).Body.String()); !strings.Contains(page, fmt.Sprint(want, " ")) || strings.Contains(page, tr(speaking("es"), "sales.registered")) {
			t.Errorf("%s: %s", path, page)
		}
	}
	by := "/panel/ventas?quien=" + till.ID.String()
	same(t, "the sales of a maker", slices.Concat(dates(by), dates(by+"&antes=25"), dates(by+"&antes=5")), all)
}

// TestPanelSalesRegistered: where a search finds so many sales that they stay in the order of
// registration, the page says so.
func TestPanelSalesRegistered(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{settings: `"maxLateDays":60`})
	ana := s.shop.customer("ana")
	for range fewSales + 1 {
		s.shop.pass(time.Minute)
		s.shop.buy(ana, "5")
	}
	s.comesBack(roleOwner)
	const page = "/panel/ventas?search=ana"
	notice := map[string]string{"es": tr(speaking("es"), "sales.registered"), "en": tr(speaking("en"), "sales.registered")}
	if strings.Contains(s.open(roleOwner, page).Body.String(), notice["es"]) {
		t.Error("the notice stands where the dates are in order")
	}
	_, err := s.shop.sell(newSale{Customer: ana, Total: dec("7"), OccurredAt: s.shop.clock.add(-time.Hour)})
	s.shop.ok(err)
	s.comesBack(roleOwner)
	for lang, want := range notice {
		s.speaks(roleOwner, lang)
		if !strings.Contains(s.open(roleOwner, page).Body.String(), want) {
			t.Errorf("%s: no notice", lang)
		}
	}
	if strings.Contains(s.open(roleOwner, "/panel/ventas").Body.String(), notice["en"]) {
		t.Error("the notice stands without a search")
	}
}
