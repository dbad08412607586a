package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWorks adds up records by who made them.
func TestWorks(t *testing.T) {
	t.Parallel()
	luis, till := creator{Type: byUser, ID: id{1}}, creator{Type: byKey, ID: id{9}, Actor: "caja-1"}
	other := till
	other.Actor = "caja-2"
	sold := func(by creator, cust byte, amount int, at instant) *sale {
		return &sale{Customer: id{cust}, Type: typePurchase, Total: decimalOf(amount), By: by, CreatedAt: at}
	}
	back := func(by creator, amount int) *sale {
		return &sale{Customer: id{1}, Type: typeReturn, Total: decimalOf(amount), By: by, CreatedAt: 50}
	}
	moved := func(by creator, cust byte, amount int, category string, change func(*movement)) *movement {
		m := &movement{Seq: 7, Customer: id{cust}, Amount: decimalOf(amount), Category: category, By: by, CreatedAt: 50}
		if change != nil {
			change(m)
		}
		return m
	}
	redeemed := func(m *movement) { m.Redemption = id{3} }
	givenBack := func(m *movement) { m.Redemption, m.Uses = id{3}, []use{{}} }
	ofSale := func(m *movement) { m.Transaction = id{3} }
	ofHold := func(m *movement) { m.Hold = id{3} }
	for reason, test := range map[string]struct {
		records activityRecords
		want    []string
	}{
		"nothing": {},
		"sales, customers and their sales by anybody": {activityRecords{sales: []*sale{sold(luis, 1, 10, 50), sold(luis, 2, 90, 50), sold(luis, 1, 10, 50), sold(till, 1, 5, 50)}},
			[]string{"1: 3 110 0 0 0 0 | 1:2/3:20 2:1/1:90", "9: 1 5 0 0 0 0 | 1:1/3:5"}},
		"what happened before, though it came late": {activityRecords{sales: []*sale{sold(luis, 1, 10, 49), sold(luis, 1, 20, 50)}}, []string{"1: 1 20 0 0 0 0 | 1:1/1:20"}},
		"the tills of a key":                        {activityRecords{sales: []*sale{sold(till, 1, 10, 50), sold(other, 1, 20, 50)}}, []string{"9: 2 30 0 0 0 0 | 1:2/2:30"}},
		"returns are of who registered them":        {activityRecords{sales: []*sale{sold(till, 1, 10, 50), back(luis, 4), back(luis, 5)}}, []string{"9: 1 10 0 0 0 0 | 1:1/1:10", "1: 0 0 2 9 0 0"}},
		"redemptions, and those that were cancelled": {activityRecords{movements: []*movement{
			moved(luis, 1, -80, categoryRedemption, redeemed), moved(luis, 1, -80, categoryRedemption, redeemed), moved(till, 1, 80, categoryRefund, givenBack)}},
			[]string{"9: 0 0 0 0 0 1", "1: 0 0 0 0 2 0"}},
		"points by hand, given and taken, by program and customer": {activityRecords{movements: []*movement{
			moved(luis, 1, 30, categoryBonus, nil), moved(luis, 2, 60, "Campaign", nil), moved(luis, 1, 20, categoryBonus, nil), moved(luis, 1, -5, categoryAdjustment, nil),
			moved(luis, 1, 3, categoryBonus, func(m *movement) { m.Program = 2 })}},
			[]string{"1: 0 0 0 0 0 0 | 0:110-5*3 2:3-0*1 | 2:0:60 1:0:50 1:2:3"}},
		"what a sale, a hold, the clock, a merge and a sign-up do is not by hand": {activityRecords{welcomes: map[uint64]bool{8: true}, movements: []*movement{
			moved(luis, 1, 30, categoryPurchase, ofSale), moved(luis, 1, -3, categoryReturn, ofSale), moved(creator{Type: bySystem}, 1, -3, categoryExpiration, nil),
			moved(till, 1, -9, categoryHold, ofHold), moved(luis, 1, 9, categoryRelease, ofHold), moved(luis, 1, -4, categoryRedemption, ofHold),
			moved(luis, 1, 3, categoryMerge, nil), moved(luis, 1, -3, categoryMerge, nil), moved(luis, 1, 50, categoryBonus, func(m *movement) { m.Seq = 8 })}}, nil},
	} {
		var got []string
		for _, w := range test.records.works(50) {
			words := []string{fmt.Sprintf("%d: %d %v %d %v %d %d", w.By.ID[0], w.Sales, w.Amount, w.Returns, w.Back, w.Redemptions, w.Cancelled)}
			list := func(each []string) {
				if len(each) > 0 {
					words = append(words, strings.Join(each, " "))
				}
			}
			var served, hand, friends []string
			for _, c := range w.Served {
				served = append(served, fmt.Sprintf("%d:%d/%d:%v", c.Customer[0], c.Sales, c.All, c.Amount))
			}
			for _, h := range w.Hand {
				hand = append(hand, fmt.Sprintf("%d:%v-%v*%d", h.Program, h.Given, h.Taken, h.Times))
			}
			for _, c := range w.Favoured {
				friends = append(friends, fmt.Sprintf("%d:%d:%v", c.Customer[0], c.Program, c.Points))
			}
			list(served)
			list(hand)
			list(friends)
			got = append(got, strings.Join(words, " | "))
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", reason, d)
		}
	}
}

// TestStandsOut: at least twice as often as the others, and not once by chance.
func TestStandsOut(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		own, others frequency
		want        bool
	}{
		"as often":                   {frequency{10, 100}, frequency{20, 200}, false},
		"a bit more":                 {frequency{19, 100}, frequency{20, 200}, false},
		"twice":                      {frequency{20, 100}, frequency{20, 200}, true},
		"the others never":           {frequency{3, 100}, frequency{0, 200}, true},
		"too few":                    {frequency{2, 4}, frequency{0, 200}, false},
		"returns and no sale at all": {frequency{3, 0}, frequency{5, 200}, true},
		"nobody else":                {frequency{9, 10}, frequency{0, 0}, false},
	} {
		if got := test.own.standsOut(test.others); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
	for reason, test := range map[string]struct {
		own    handPoints
		given  int
		others int
		want   bool
	}{
		"twice the average":    {handPoints{Given: decimalOf(100), Times: 2}, 100, 2, true},
		"less":                 {handPoints{Given: decimalOf(90), Times: 9}, 100, 2, false},
		"nobody else did":      {handPoints{Given: decimalOf(1), Times: 2}, 0, 2, true},
		"once":                 {handPoints{Given: decimalOf(900), Times: 1}, 0, 2, false},
		"there is nobody else": {handPoints{Given: decimalOf(900), Times: 5}, 0, 0, false},
		"only taken":           {handPoints{Taken: decimalOf(900)}, 0, 2, false},
	} {
		if got := test.own.standsOut(&handPoints{Given: decimalOf(test.given)}, test.others); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

// mainText is a page's main part without its markup.
func mainText(page string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(mainOf(page), " ")), " ")
}

// TestThievingManager: in the demo's year the manager who undoes sales and gives points to a
// friend stands out, and the others do not.
func TestThievingManager(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newPanelShopOn(madeUpShop(t, 1, demoCustomers, demoDays))
	team := ask(s.shop, func(t *txn) ([]*teammate, error) { return t.people.team() })
	for _, m := range team {
		if m.Role == roleOwner || !slices.Contains([]string{"Rosa Méndez", "Lucía Vega", "Diego Salas"}, m.Name) {
			continue
		}
		page := mainText(s.open(roleAdmin, "/panel/equipo/"+m.ID.String()+"/actividad").Body.String())
		out := strings.Contains(page, "Destaca frente a los demás")
		if out != (m.Name == "Diego Salas") {
			t.Errorf("%s stands out: %v\n%s", m.Name, out, page)
		}
		if out && !strings.Contains(page, "Sus devoluciones son el") {
			t.Error(page)
		}
	}
	activity := s.open(roleAdmin, activityPath).Body.String()
	if n := strings.Count(activity, ">destaca<"); n != 1 || !strings.Contains(activity, `Diego Salas</a> <span class="tag warn">destaca</span>`) {
		t.Errorf("%d stand out\n%s", n, mainText(activity))
	}
}

// TestPersonPage: what a cashier did is told in words and lists, with links; who has left has a
// page, and who never was there has none.
func TestPersonPage(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	friend, other := s.shop.customer("paco"), s.shop.customer("ana")
	thief, honest := s.users[roleCashier], s.users[roleManager]
	as := func(user id, fn func(t *txn) error) {
		must(s.shop, func(t *txn) (any, error) {
			t.by = creator{Type: byUser, ID: user}
			return nil, fn(t)
		})
	}
	sell := func(user, cust id, undo bool) {
		as(user, func(t *txn) error {
			sold, _, err := t.sales.register(newSale{Customer: cust, Total: dec("200"), Type: typePurchase})
			if err == nil && undo {
				_, _, err = t.sales.register(newSale{Customer: cust, Total: dec("200"), Type: typeReturn, Original: &sold.ID})
			}
			return err
		})
	}
	give := func(user, cust id, points string) {
		as(user, func(t *txn) error {
			p := t.cfg.Programs[0]
			_, err := movePoints(t, cust, &p.ID, &movement{Amount: dec(points), Category: categoryBonus, Comment: "Cortesía"}, t.points.credit)
			return err
		})
	}
	sell(thief, friend, true) // long ago
	s.shop.pass(31 * oneDay)
	for _, r := range roles {
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) { return t.people.startSession(s.users[r], sessionFull, &arrival{}) })
	}
	for n := range 10 {
		sell(thief, friend, n < 4)
		sell(honest, other, n == 0)
	}
	give(thief, friend, "300")
	give(thief, friend, "100")
	give(honest, other, "20")
	path := "/panel/equipo/" + thief.String() + "/actividad"
	page := s.open(roleOwner, path).Body.String()
	for _, want := range []string{
		"Sus devoluciones son el 40% de sus ventas; las de los demás, el 10%.", "Dio a mano 400 Lunas; cada uno de los demás, 20 en promedio.",
		"De los puntos que dio a mano, 400 de 400 Lunas fueron para paco, en 2 veces.", "Ventas 10 2,000.00 MXN", "Devoluciones 4 800.00 MXN · 40% de sus ventas; los demás, 10%", "10 de 10", "Cortesía",
	} {
		if text := strings.ReplaceAll(mainText(page), nbsp, " "); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, link := range []string{`<p class="sub"><a href="` + activityPath, "/panel/clientes/" + friend.String(), "/panel/ventas?quien=" + thief.String(), auditPath + "?actor=" + thief.String()} {
		if !strings.Contains(page, link) {
			t.Errorf("no link %s", link)
		}
	}
	if n := strings.Count(page, "/panel/ventas/"); n != 4 {
		t.Errorf("%d returns are linked", n)
	}
	if calm := mainText(s.open(roleOwner, "/panel/equipo/"+honest.String()+"/actividad").Body.String()); strings.Contains(calm, "Destaca") {
		t.Error(calm)
	}
	if idle := mainText(s.open(roleOwner, "/panel/equipo/"+s.users[roleViewer].String()+"/actividad").Body.String()); !strings.Contains(idle, "No registró ventas.") || strings.Contains(idle, "Destaca") {
		t.Error(idle)
	}
	owner := must(s.shop, func(t *txn) (*member, error) { return memberNow(t, &member{user: &user{ID: s.users[roleOwner]}}) })
	must(s.shop, func(t *txn) (any, error) { return nil, t.people.removeMember(owner, thief) })
	if w := s.open(roleOwner, path); w.Code != 200 || !strings.Contains(w.Body.String(), "Alguien que ya no es del equipo") {
		t.Errorf("who has left: %d", w.Code)
	}
	if w := s.open(roleOwner, "/panel/equipo/"+id{7}.String()+"/actividad"); w.Code != 404 {
		t.Errorf("nobody: %d", w.Code)
	}
}

// TestWelcomeIsNotByHand: the points of a sign-up rule are no gift of who enrols; those that are
// given afterwards are.
func TestWelcomeIsNotByHand(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":"Lunas","rules":[{"key":"hola","name":"Hola","on":"Signup","points":50}]`})
	var c id
	by := creator{Type: byUser, ID: s.users[roleManager]}
	must(s.shop, func(t *txn) (any, error) {
		t.by = by
		enrolled, _, err := t.customers.enrol(enrolment{FirstName: "Luz", Email: "luz@example.com"})
		c = enrolled.ID
		return nil, err
	})
	s.shop.pass(time.Second)
	must(s.shop, func(t *txn) (any, error) {
		t.by = by
		_, err := movePoints(t, c, &t.cfg.Programs[0].ID, &movement{Amount: dec("7"), Category: categoryBonus}, t.points.credit)
		return nil, err
	})
	r := ask(s.shop, func(t *txn) (*activityRecords, error) { return recentActivity(t, 0, 100, isDamaged) })
	if w := r.works(0); len(w) != 1 || len(w[0].byHand) != 1 || w[0].Hand[0].Given != dec("7") {
		t.Errorf("%+v", w)
	}
	if g := r.givers(); len(g) != 1 || g[0].Points != dec("7") {
		t.Errorf("%+v", g)
	}
}

// TestHomeToday: the day's figures are those of the statistics, and those by person add up to
// them. Each name leads to what the member may see.
func TestHomeToday(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	c := s.shop.customer("ana")
	s.shop.buy(c, "999") // yesterday
	s.shop.pass(oneDay)
	for _, r := range roles {
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) { return t.people.startSession(s.users[r], sessionFull, &arrival{}) })
	}
	k, _ := s.shop.newKey(keyRequest{})
	for n, by := range []creator{{Type: byUser, ID: s.users[roleCashier]}, {Type: byUser, ID: s.users[roleCashier]}, {Type: byKey, ID: k.ID}, {Type: byImport}} {
		must(s.shop, func(t *txn) (any, error) {
			t.by = by
			sold, _, err := t.sales.register(newSale{Customer: c, Total: decimalOf(1000 * (n + 1)), Type: typePurchase})
			if err == nil && n == 1 {
				_, _, err = t.sales.register(newSale{Customer: c, Total: dec("50"), Type: typeReturn, Original: &sold.ID})
			}
			if err == nil && n == 0 {
				_, err = t.rewards.redeem(c, t.cfg.Rewards[0].ID, "", nil, givenProof{})
			}
			return nil, err
		})
	}
	page := s.open(roleOwner, "/panel").Body.String()
	text := strings.ReplaceAll(mainText(page), nbsp, " ")
	day := s.statistics("?from=" + dayOf(s.shop.clock, s.shop.config().zone).String()).Total
	f := newFormat(t, "MX", "es", "MXN")
	for _, want := range []string{
		"Hoy Ventas " + f.Count(day.Purchases) + " " + f.Money(day.SalesAmount) + " MXN Devoluciones 1 50.00 MXN Canjes 1 Puntos dados, Lunas " + f.Number(day.PointsIssued),
		"Ventas 4 10,000.00", "Cashier 2 3,000.00 1 · 50% 1 0", "test 1 3,000.00 0 0 0", "Importación 1 4,000.00 0 0 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	cashier, till := s.users[roleCashier].String(), k.ID.String()
	for as, links := range map[role][]string{
		roleOwner: {"/panel/equipo/" + cashier + "/actividad", keysPath + "/" + till + "/actividad", "/panel/ventas?quien=import"}, roleManager: {"/panel/ventas?quien=" + cashier, "/panel/ventas?quien=" + till},
		roleViewer: {"/panel/ventas?quien=" + cashier},
	} {
		page := s.open(as, "/panel").Body.String()
		for _, link := range links {
			if !strings.Contains(page, `href="`+link+`"`) {
				t.Errorf("%s: no link %s", as, link)
			}
		}
	}
}

// TestScanSales: pages of sales by who made them have each of them once, whatever the other
// filters are and wherever the bound cuts.
func TestScanSales(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	luis := creator{Type: byUser, ID: s.users[roleCashier]}
	begin := s.shop.clock
	for n := range 30 {
		s.shop.pass(time.Hour)
		must(s.shop, func(t *txn) (any, error) {
			if n%3 == 0 {
				t.by = luis
			}
			who := ana
			if n%2 == 0 {
				who = luz
			}
			_, _, err := t.sales.register(newSale{Customer: who, Total: decimalOf(n + 1), Type: typePurchase})
			return nil, err
		})
	}
	made := func(c creator) bool { return c == luis }
	hour := func(n int) instant { return begin.add(time.Duration(n) * time.Hour) }
	for reason, test := range map[string]struct {
		filter saleFilter
		want   string
	}{
		"all":           {saleFilter{to: never}, "28 25 22 19 16 13 10 7 4 1"},
		"of a customer": {saleFilter{to: never, search: "luz"}, "25 19 13 7 1"},
		"of days":       {saleFilter{from: hour(4), to: hour(13)}, "13 10 7 4"},
		"of both":       {saleFilter{from: hour(4), to: hour(13), search: "luz"}, "13 7"},
		"returns":       {saleFilter{to: never, saleType: typeReturn}, ""},
	} {
		for _, limit := range []uint64{1, 3, 20} {
			for _, most := range []uint64{1, 7, 100} {
				var got []string
				for older, pages := uint64(maxPage), 0; older > 0; pages++ {
					found := ask(s.shop, func(t *txn) (*saleScan, error) { return scanSales(t, test.filter, made, older, limit, most) })
					for _, each := range found.sales {
						got = append(got, each.Total.String())
					}
					if uint64(len(found.sales)) > limit || found.looked > most || pages > 31 || found.begun != (pages > 0) {
						t.Fatalf("%s, %d of %d: %+v on page %d", reason, limit, most, found, pages)
					}
					if found.cut != (found.older > 0 && found.looked == most && uint64(len(found.sales)) < limit) {
						t.Errorf("%s, %d of %d: cut is %v", reason, limit, most, found.cut)
					}
					older = found.older
				}
				if strings.Join(got, " ") != test.want {
					t.Errorf("%s, %d of %d: %v, want %s", reason, limit, most, got, test.want)
				}
			}
		}
	}
	s.comesBack(roleViewer)
	page := mainText(s.open(roleViewer, "/panel/ventas?quien="+luis.ID.String()).Body.String())
	if !strings.Contains(page, "10 con este filtro") || strings.Contains(page, "Más antiguas") {
		t.Error(page)
	}
	if page := mainText(s.open(roleViewer, "/panel/ventas?quien="+luis.ID.String()+"&antes=3").Body.String()); !strings.Contains(page, "con este filtro no se cuentan todas") || !strings.Contains(page, "Las más nuevas") || strings.Contains(page, "Más antiguas") {
		t.Error(page)
	}
}

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

// TestActivityTickets: customers near the limit of a day, and who makes tickets that few claim.
func TestActivityTickets(t *testing.T) {
	t.Parallel()
	luis, till := creator{Type: byUser, ID: id{1}}, creator{Type: byKey, ID: id{9}, Actor: "caja-2"}
	type claims struct {
		cust   byte
		at     day
		n      int
		by     creator
		undone bool
	}
	for name, test := range map[string]struct {
		limit int
		list  []claims
		want  string
	}{
		"no tickets":            {0, []claims{{1, 10, 30, luis, false}}, "days few 1:30/30:1"},
		"two of three":          {3, []claims{{1, 10, 2, luis, false}, {2, 10, 1, luis, false}, {3, 10, 3, luis, false}}, "days 3:10:3 1:10:2 few"},
		"one of two":            {2, []claims{{1, 10, 1, luis, false}, {2, 11, 2, luis, false}}, "days few"},
		"undone ones":           {3, []claims{{1, 10, 1, luis, false}, {1, 10, 2, luis, true}}, "days few"},
		"nine by one":           {50, []claims{{1, 10, 9, luis, false}}, "days few"},
		"half by two":           {50, []claims{{1, 1, 3, till, false}, {2, 2, 3, till, false}, {3, 3, 2, till, false}, {4, 4, 2, till, false}, {5, 5, 2, till, false}}, "days few"},
		"more than half by two": {50, []claims{{1, 1, 4, till, false}, {2, 2, 3, till, false}, {3, 3, 2, till, false}, {4, 4, 2, till, false}, {5, 5, 2, till, false}}, "days few 9:7/13:1,2"},
		"more than half by one": {50, []claims{{1, 1, 4, till, false}, {2, 2, 6, till, false}, {3, 3, 1, till, false}}, "days few 9:6/11:2"},
		"of two makers":         {50, []claims{{1, 1, 6, till, false}, {1, 2, 6, luis, false}}, "days few"},
	} {
		r := activityRecords{limit: test.limit, tickets: map[id]*ticket{}, zone: func(i instant) day { return day(i) }}
		for i, c := range test.list {
			for n := range c.n {
				s := &sale{ID: id{byte(i), byte(n), 1}, Customer: id{c.cust}, CreatedAt: instant(c.at), Type: typePurchase, Source: sourceClaim, Total: decimalOf(10)}
				if c.undone {
					s.Returned = s.Total
				}
				r.sales = append(r.sales, s)
				r.tickets[s.ID] = &ticket{By: c.by}
			}
		}
		a, got := r.unusual(), []string{"days"}
		for _, d := range a.Claims.List {
			got = append(got, fmt.Sprintf("%d:%d:%d", d.Customer[0], d.Day, d.Sales))
		}
		got = append(got, "few")
		for _, f := range a.Few.List {
			var customers []string
			for _, c := range f.Customers {
				customers = append(customers, fmt.Sprint(c[0]))
			}
			got = append(got, fmt.Sprintf("%d:%d/%d:%s", f.By.ID[0], f.Most, f.Claimed, strings.Join(customers, ",")))
		}
		same(t, name, strings.Join(got, " "), test.want)
	}
}

// TestActivityTicketsPage: the page names who it is about.
func TestActivityTicketsPage(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, ticketSetup)
	ana, eva := s.shop.customer("ana"), s.shop.customer("eva")
	for n := range fewestClaimed {
		number := fmt.Sprint("R-", n)
		s.givesTicket(roleCashier, number)
		x := ask(s.shop, func(t *txn) (*ticket, error) { return t.tickets.called(number) })
		who := ana
		if n%3 == 0 {
			who = eva
		}
		if n%3 == 2 {
			s.shop.pass(oneDay)
			s.comesBack(roleCashier)
		}
		s.shop.claimed(x.Code, who)
	}
	s.comesBack(roleOwner)
	s.wants("the page", s.open(roleOwner, activityPath).Body.String(),
		`<td data-name="Importe" class="n">200.00</td></tr>`, "6 de 10", "/panel/equipo/"+s.users[roleCashier].String()+"/actividad", "/panel/clientes/"+ana.String())
	s.speaks(roleOwner, "en")
	s.wants("the page", s.open(roleOwner, activityPath).Body.String(), "6 of 10", "The limit is 3 a day")
}
