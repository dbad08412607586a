package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnusual finds unusual activity in records.
func TestUnusual(t *testing.T) {
	t.Parallel()
	luis, ana := creator{Type: byUser, ID: id{1}}, creator{Type: byUser, ID: id{2}}
	till := creator{Type: byKey, ID: id{9}, Actor: "caja-2/Luis"}
	sold := func(cust byte, at day, kind string, by creator) *sale {
		return &sale{Customer: id{cust}, CreatedAt: instant(at), Type: kind, Total: decimalOf(10), By: by, ID: id{cust, byte(at)}}
	}
	many := func(n int, cust byte, at day, by creator) (list []*sale) {
		for range n {
			list = append(list, sold(cust, at, typePurchase, by))
		}
		return list
	}
	gave := func(by creator, cust byte, amount int, category string) *movement {
		return &movement{Customer: id{cust}, Amount: decimalOf(amount), Category: category, By: by, CreatedAt: 7}
	}
	ofSale := func(m *movement) *movement { m.Transaction = id{7}; return m }
	ofHold := func(m *movement) *movement { m.Hold = id{7}; return m }
	linked := sold(5, 2, typeReturn, luis)
	linked.Previous = id{3}
	for name, test := range map[string]struct {
		records activityRecords
		want    string
	}{
		"nothing": {activityRecords{}, "busy givers selves returns"},
		"four sales in a day, and four the next": {
			activityRecords{sales: append(many(4, 1, 10, luis), many(4, 1, 11, luis)...)}, "busy givers selves returns"},
		"five, and six of another customer": {
			activityRecords{sales: append(append(many(5, 1, 10, luis), many(3, 2, 9, luis)...), many(3, 2, 9, till)...)},
			"busy 2:9:6:60:2 1:10:5:50:1 givers selves returns"},
		"returns are no sales": {
			activityRecords{sales: append(many(4, 1, 10, luis), sold(1, 10, typeReturn, luis), linked)}, "busy givers selves returns 1:10"},
		"points by hand, not those of sales, merges and the system": {
			activityRecords{movements: []*movement{
				gave(luis, 1, 30, categoryBonus), gave(luis, 2, 50, "Campaign"), gave(till, 1, 60, categoryBonus), gave(ana, 1, -90, categoryAdjustment),
				ofHold(gave(ana, 1, -900, categoryHold)), ofHold(gave(ana, 1, 900, categoryRelease)), ofHold(gave(ana, 1, -900, categoryRedemption)),
				ofSale(gave(ana, 1, 900, categoryPurchase)), gave(ana, 1, 900, categoryMerge), gave(ana, 1, 900, categoryRefund), gave(creator{Type: bySystem}, 1, 900, categoryBonus)}},
			"busy givers 1:80:2:50:2 9:60:1:60:1 selves returns"},
		"by the same one in two programs": {
			activityRecords{movements: []*movement{gave(luis, 1, 30, categoryBonus), {Customer: id{1}, Program: 2, Amount: decimalOf(5), Category: categoryBonus, By: luis}}},
			"busy givers 1:30:1:30:1 1:5:1:5:1 selves returns"},
		"a member who is a customer": {
			activityRecords{own: map[id]id{luis.ID: {4}, ana.ID: {5}}, movements: []*movement{
				ofSale(gave(luis, 4, 20, categoryPurchase)), ofSale(gave(luis, 4, -80, categoryRedemption)), ofSale(gave(luis, 5, 20, categoryPurchase)), ofSale(gave(till, 4, 20, categoryPurchase)),
				ofHold(gave(luis, 4, 50, categoryRelease))}},
			"busy givers selves 1:4:2:20 returns"},
	} {
		test.records.zone = func(i instant) day { return day(i) }
		a := test.records.unusual()
		got := []string{"busy"}
		for _, d := range a.Busy.List {
			got = append(got, fmt.Sprintf("%d:%d:%d:%v:%d", d.Customer[0], d.Day, d.Sales, d.Amount, len(d.By)))
		}
		got = append(got, "givers")
		for _, g := range a.Givers.List {
			got = append(got, fmt.Sprintf("%d:%v:%d:%v:%d", g.By.ID[0], g.Points, g.Times, g.Most, g.Customers))
		}
		got = append(got, "selves")
		for _, s := range a.Selves.List {
			got = append(got, fmt.Sprintf("%d:%d:%d:%v", s.User[0], s.Customer[0], s.Times, s.Points))
		}
		got = append(got, "returns")
		for _, s := range a.Returns.List {
			got = append(got, fmt.Sprintf("%d:%d", s.Customer[0], s.CreatedAt))
		}
		if d := cmp.Diff(test.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestActivityBound: the newest records are read, up to the bound and back to the moment.
func TestActivityBound(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	c := s.shop.customer("ana")
	begin := s.shop.clock
	for range 6 {
		s.shop.pass(oneDay)
		s.shop.buy(c, "100")
	}
	for _, test := range []struct {
		since    instant
		most     int
		sales    int
		complete bool
	}{{begin, 100, 6, true}, {begin, 6, 6, true}, {begin, 5, 5, false}, {s.shop.clock - 2*86_400_000, 100, 3, true}, {s.shop.clock - 2*86_400_000, 2, 2, false}, {s.shop.clock + 1, 0, 0, true}} {
		r := ask(s.shop, func(t *txn) (*activityRecords, error) { return recentActivity(t, test.since, test.most, isDamaged) })
		if len(r.sales) != test.sales || r.complete != test.complete || len(r.movements) != test.sales {
			t.Errorf("%+v: %d sales, %d movements, complete %v", test, len(r.sales), len(r.movements), r.complete)
		}
	}
	since := s.shop.clock - 2*86_400_000
	if _, err := s.shop.sell(newSale{Customer: c, Total: dec("100"), OccurredAt: begin}); err != nil {
		t.Fatal(err)
	}
	r := ask(s.shop, func(t *txn) (*activityRecords, error) { return recentActivity(t, since, 100, isDamaged) })
	if len(r.sales) != 4 || len(r.movements) != 4 || !r.complete {
		t.Errorf("with a sale that came late: %d sales, %d movements, complete %v", len(r.sales), len(r.movements), r.complete)
	}
	if w := r.works(since); len(w) != 1 || w[0].Sales != 3 {
		t.Errorf("a sale that happened before counts: %+v", w)
	}

	s.shop.hold(c, "5", leastHold, "")
	s.shop.pass(3 * oneDay)
	s.shop.buy(s.shop.customer("luz"), "100")
	s.shop.pass(oneDay)
	s.shop.swept() // the release has the moment at which the hold expired
	if r := ask(s.shop, func(t *txn) (*activityRecords, error) {
		return recentActivity(t, s.shop.clock-2*86_400_000, 100, isDamaged)
	}); len(r.sales) != 1 || len(r.movements) != 2 || !r.complete {
		t.Errorf("with a hold that expired before: %d sales, %d movements, complete %v", len(r.sales), len(r.movements), r.complete)
	}
}

// TestActivityPage: the page tells of the whole shop, of merged customers as they are now.
func TestActivityPage(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	calm := mainOf(s.open(roleAdmin, activityPath).Body.String())
	if strings.Contains(calm, "<tbody>") || strings.Count(calm, "<h2>") != 5 {
		t.Error(calm)
	}
	me := must(s.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Yo", LastName: "Misma", Email: "manager@example.com"})
		return c.ID, err
	})
	other := s.shop.customer("ana")
	must(s.shop, func(t *txn) (any, error) {
		t.by = creator{Type: byUser, ID: s.users[roleManager]}
		for range manyADay {
			if _, _, err := t.sales.register(newSale{Customer: other, Total: dec("100"), Type: typePurchase}); err != nil {
				return nil, err
			}
		}
		p := t.cfg.Programs[0]
		if _, err := movePoints(t, me, &p.ID, &movement{Amount: dec("70"), Category: categoryBonus}, t.points.credit); err != nil {
			return nil, err
		}
		_, _, err := t.sales.register(newSale{Customer: other, Total: dec("5"), Type: typeReturn})
		return nil, err
	})
	body := mainOf(s.open(roleAdmin, activityPath).Body.String())
	for _, text := range []string{"Manager", "Yo Misma", "/panel/clientes/" + other.String(), "<small>ana@example.com</small>", "70 Lunas", "500.00", "−5.00", auditPath + "?actor=" + s.users[roleManager].String()} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q:\n%s", text, body)
		}
	}
	if n := strings.Count(body, `<a href="/panel/equipo/`+s.users[roleManager].String()+`/actividad">Manager</a>`); n != 3 {
		t.Errorf("who did it leads to their page %d times, want 3: in all, by hand and to themselves\n%s", n, body)
	}
	for row := range strings.SplitSeq(body, "<tr><td") {
		if row, _, is := strings.Cut(row, "</tr>"); is && strings.Contains(row, "<td") && !strings.Contains(row, "fig\"") {
			t.Errorf("a row without its figure beside the name: %s", row)
		}
	}
	if n := strings.Count(body, "scroll rows"); n != 5 {
		t.Errorf("%d lists of rows, want 5", n)
	}
	if strings.Count(body, "<tbody>") != 5 {
		t.Error(body)
	}
}
