package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/wallclock/wallclocktest"
)

// A modelBirthday is a customer in a model that looks at every customer on every day.
type modelBirthday struct {
	cust   id
	birth  birthDate
	active bool
	since  day          // since when the birth date stands
	given  map[int]bool // years
	points int
}

// TestBirthdayPoints lets years go by, with customers whose dates are set, corrected and
// cleared, days on which the server is off, and rules that come and go, and compares what
// customers got with the model.
func TestBirthdayPoints(t *testing.T) {
	t.Parallel()
	const rule = `{"key":"day","name":"Feliz cumpleaños","on":"Birthday","points":10},{"key":"over","name":"Pasado","on":"Birthday","points":999,"until":"2026-01-31"}`
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		zone := pick(rnd, "America/Mexico_City", "Asia/Tokyo", "Pacific/Apia", "UTC")
		with, without := setup{zone: zone, program: `"rules":[` + rule + `]`}, setup{zone: zone, program: `"rules":[]`}
		s := newShop(t, setup{zone: zone, at: "2026-12-20T10:00:00Z", program: with.program})
		place, err := time.LoadLocation(zone)
		s.ok(err)
		today := func() day { return dayOf(s.clock, place) }
		dates := []birthDate{0, 19900101, 19991231, 20000228, 20000229, 20000301, 19800615, 19801225, 229, 615, 1225}
		var all []*modelBirthday
		ruled, next := true, today() // next is the first day whose birthdays are not done
		settle := func() {
			s.swept()
			if !ruled {
				return
			}
			for d := max(next, today()-7); d <= today(); d++ {
				year := d.date().Year()
				for _, m := range all {
					month, date := d.date().Month(), d.date().Day()
					is := m.birth.month() == month && m.birth.dayOfMonth() == date ||
						m.birth%10000 == 229 && month == 2 && date == 28 && (d+1).date().Day() == 1
					if m.birth != 0 && is && m.active && !m.given[year] && m.since < d {
						m.given[year] = true
						m.points += 10
					}
				}
			}
			next = max(next, today()+1)
		}
		for range 120 {
			switch rnd.IntN(12) {
			case 0, 1:
				m := &modelBirthday{birth: pick(rnd, dates...), active: true, since: today(), given: map[int]bool{}}
				m.cust = must(s, func(t *txn) (id, error) {
					c, _, err := t.customers.enrol(enrolment{Email: fmt.Sprintf("c%d@example.com", len(all)), BirthDate: m.birth})
					if err != nil {
						return id{}, err
					}
					return c.ID, nil
				})
				all = append(all, m)
			case 2, 3:
				if len(all) == 0 {
					continue
				}
				m, to := pick(rnd, all...), pick(rnd, dates...)
				must(s, func(t *txn) (*customer, error) { return t.customers.patch(m.cust, customerPatch{BirthDate: &to}, nil) })
				if m.birth%10000 != to%10000 || m.birth > 9999 && to > 9999 && m.birth != to {
					m.since = today()
				}
				m.birth = to
			case 4:
				if len(all) == 0 {
					continue
				}
				m := pick(rnd, all...)
				m.active = !m.active
				status := map[bool]string{true: statusActive, false: statusInactive}[m.active]
				must(s, func(t *txn) (*customer, error) { return t.customers.patch(m.cust, customerPatch{Status: &status}, nil) })
			case 5:
				if rnd.IntN(3) > 0 {
					continue
				}
				if ruled = !ruled; ruled {
					s.apply(with.document())
					next = today()
				} else {
					s.apply(without.document())
				}
			case 6: // a transaction of the sweep and no more
				most := 1 + rnd.IntN(2)
				must(s, func(t *txn) (bool, error) { return t.rules.giveBirthdays(most) })
				settle()
			case 7:
				s.pass(time.Duration(rnd.IntN(24)) * time.Hour)
			case 8:
				s.pass(time.Duration(rnd.IntN(20)) * oneDay)
				settle()
			case 9:
				s.pass(time.Duration(rnd.IntN(200)) * oneDay)
				settle()
			default:
				s.pass(oneDay)
				settle()
			}
		}
		settle()
		for _, m := range all {
			if got, want := s.standing(m.cust).Balance, decimalOf(m.points); got != want {
				t.Errorf("%s, born %s, has %v points, want %v", m.cust, m.birth, got, want)
			}
		}
	})
}

// TestBirthdayMovement shows what the ledger says of a birthday.
func TestBirthdayMovement(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: `"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}],"rules":[
		{"key":"day","name":"Feliz cumpleaños","on":"Birthday","points":100,"expiresInDays":30},
		{"key":"later","name":"Y algo más","on":"Birthday","points":5,"pendingDays":2},
		{"key":"early","name":"Aún no","on":"Birthday","points":500,"from":"2026-03-05"},
		{"key":"noon","name":"Hasta mediodía","on":"Birthday","points":1,"until":"2026-03-04T12:00"}]`})
	ana := must(s, func(t *txn) (*customer, error) {
		c, _, err := t.customers.enrol(enrolment{Email: "ana@example.com", BirthDate: 19900304})
		return c, err
	})
	s.setClock("2026-03-05T20:00:00Z") // a day late
	s.swept()
	s.wantStanding(ana.ID, "101 5 106", "the rules of her birthday")
	s.wantTier(ana.ID, "Plata", "birthday points are earned")
	for _, m := range s.ledger(ana.ID) {
		if m.Category != categoryBonus || m.By != (creator{Type: bySystem}) || m.CreatedAt != s.clock {
			t.Errorf("movement %+v", m)
		}
	}
	after := ask(s, func(t *txn) (*customer, error) { return t.customers.get(ana.ID) })
	if after.UpdatedAt != ana.UpdatedAt || after.etag() != ana.etag() {
		t.Error("points change the customer's profile")
	}
	s.pass(31 * oneDay)
	s.swept()
	s.wantStanding(ana.ID, "6 0 106", "the gift has expired")
}

// TestBirthdayYearTold: a year that becomes known, or is taken back, on the day itself takes nobody's
// points, and gives them to nobody twice.
func TestBirthdayYearTold(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2027-02-27T12:00:00Z", program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`})
	ana := must(s, func(t *txn) (*customer, error) {
		c, _, err := t.customers.enrol(enrolment{Email: "ana@example.com", BirthDate: 229})
		return c, err
	}).ID
	s.swept()
	s.wantStanding(ana, "0 0 0", "a day before")
	s.setClock("2027-02-28T18:00:00Z")
	for _, date := range []birthDate{19920229, 229, 20000229} {
		must(s, func(t *txn) (any, error) { return t.customers.patch(ana, customerPatch{BirthDate: &date}, nil) })
		s.swept()
		s.wantStanding(ana, "10 0 10", "on the 28th of a common year: "+date.String())
	}
	s.setClock("2028-02-28T18:00:00Z")
	s.swept()
	s.wantStanding(ana, "10 0 10", "not on the 28th of a leap year")
	s.setClock("2028-02-29T18:00:00Z")
	s.swept()
	s.wantStanding(ana, "20 0 20", "on the 29th")
	s.verified()
}

// TestBirthdaysElsewhere: an organization without Birthday rules does not stand in the way
// of the next, and each has its own day.
func TestBirthdaysElsewhere(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z", program: `"rules":[` + onePer1 + `]`})
	enrol := func() id {
		return must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{Email: "ana@example.com", BirthDate: 19900615})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	enrol()
	rule := `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`
	west, east := setup{zone: "America/Tijuana", program: rule}, setup{zone: "Asia/Tokyo", program: rule}
	s.apply([]byte(strings.Replace(string(west.document()), "cafe-luna", "west", 1)))
	s.apply([]byte(strings.Replace(string(east.document()), "cafe-luna", "east", 1)))
	given := map[uint32]id{}
	for s.org = 2; s.org <= 3; s.org++ {
		given[s.org] = enrol()
	}
	check := func(at, inWest, inEast string) {
		s.setClock(at)
		s.swept()
		for s.org = 2; s.org <= 3; s.org++ {
			want := map[uint32]string{2: inWest, 3: inEast}[s.org]
			if got := s.standing(given[s.org]).Balance; got != dec(want) {
				t.Errorf("%s: organization %d: %v points, want %s", at, s.org, got, want)
			}
		}
	}
	check("2026-06-14T14:59:59Z", "0", "0")
	check("2026-06-14T15:00:00Z", "0", "10")
	check("2026-06-15T06:59:59Z", "0", "10")
	check("2026-06-15T07:00:00Z", "10", "10")
	s.org = 1
	s.verified()
}

// TestBirthdaysAfterWrongClock: a clock that was months ahead keeps nobody from a birthday
// once it is right again, and nobody gets another one in the same year.
func TestBirthdaysAfterWrongClock(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z", program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`})
	var early, late id
	for cust, birth := range map[*id]birthDate{&early: 19900615, &late: 19901224} {
		*cust = must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{Email: birth.String() + "@example.com", BirthDate: birth})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	s.setClock("2026-12-25T12:00:00Z")
	s.swept()
	s.wantStanding(late, "10 0 10", "it seems to be Christmas")
	s.setClock("2026-06-17T12:00:00Z")
	s.swept()
	s.wantStanding(early, "10 0 10", "it was two days ago, while the clock was wrong")
	s.setClock("2026-12-25T12:00:00Z")
	s.swept()
	s.wantStanding(late, "10 0 10", "that year's are given")
}

// TestBirthdaysOfMany: no transaction takes more than a few customers, and a customer
// whose account is full keeps nobody from theirs.
func TestBirthdaysOfMany(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T18:00:00Z", program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`})
	const many = 3*birthdayBatch + 5
	for i := range many {
		must(s, func(t *txn) (any, error) {
			c, _, err := t.customers.enrol(enrolment{Email: fmt.Sprintf("c%d@example.com", i), BirthDate: 19900615})
			if err != nil || i != 7 {
				return nil, err
			}
			a, err := t.points.account(c, t.cfg.Programs[0])
			if err != nil {
				return nil, err
			}
			if err := t.points.credit(a, &movement{Category: categoryAdjustment, Amount: dec("99999999999.9999")}); err != nil {
				return nil, err
			}
			return nil, t.points.saveAccount(a)
		})
	}
	s.pass(12 * time.Hour)
	movements := func() uint64 {
		return ask(s, func(t *txn) (uint64, error) {
			n, err := t.count()
			return n.Movements, err
		})
	}
	before := movements()
	for range 4 {
		was := movements()
		must(s, func(t *txn) (bool, error) { return t.rules.giveBirthdays(birthdayBatch) })
		if n := movements() - was; n > birthdayBatch {
			t.Errorf("one transaction gives %d customers points", n)
		}
		s.verified()
	}
	s.swept()
	if n := movements() - before; n != many-1 {
		t.Errorf("%d customers got points, want %d", n, many-1)
	}
}

// TestBirthdayRuleWhileClockUnsafe: a rule that is applied while the clock is behind gives
// nothing for the days that the clock turns out to have missed.
func TestBirthdayRuleWhileClockUnsafe(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z"})
	born := func(b birthDate) id {
		return must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{Email: b.String() + "@example.com", BirthDate: b})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	past, next := born(19900616), born(19900619)
	m := &wallclocktest.Machine{Wall: moment(t, "2026-06-11T12:00:00Z")}
	s.engine = newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(s.engine.open(t.Context()))
	s.apply(setup{program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`}.document())
	if m.Pass(time.Minute); s.engine.clock.IsSafe() {
		t.Fatal("the clock is safe")
	}
	s.swept()
	m.Wall, m.Synced = moment(t, "2026-06-18T12:00:00Z"), true
	m.Pass(time.Hour)
	s.swept()
	m.Pass(24 * time.Hour)
	s.swept()
	s.clock = instantOf(m.Wall)
	s.wantStanding(past, "0 0 0", "the rule came later")
	s.wantStanding(next, "10 0 10", "it is their day")
}

// TestBirthdaysBesideDamage: a damaged organization keeps no other one from its birthdays,
// nor old replays from being dropped.
func TestBirthdaysBesideDamage(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z", program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`})
	document := string(setup{program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`}.document())
	s.apply([]byte(strings.Replace(document, "cafe-luna", "other", 1)))
	s.org = 2
	ana := must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{Email: "ana@example.com", BirthDate: 19900615})
		if err != nil {
			return id{}, err
		}
		return c.ID, t.replays.keep([]retryKey{{name: [16]byte{1}}}, 201, []byte("{}\n"))
	})
	set := func(k key, value []byte) (before []byte) {
		return must(s, func(t *txn) ([]byte, error) {
			before, _, err := t.Get(k)
			before = slices.Clone(before)
			if err == nil && value == nil {
				return before, t.Delete(k)
			}
			return before, errors.Join(err, t.Put(k, value))
		})
	}
	for _, k := range []key{orgKey('D', 1), orgKey('I', 1)} {
		before := set(k, []byte{0xff})
		s.pass(48 * time.Hour)
		if err := s.engine.sweep(t.Context()); !errors.Is(err, errRecord) {
			t.Errorf("%x is damaged: the sweep ended with %v", k, err)
		}
		if before == nil {
			s.ok(s.engine.store.Update(t.Context(), func(tx Tx) error { return tx.Delete(k) }))
		} else {
			set(k, before)
		}
	}
	s.wantStanding(ana, "10 0 10", "another organization is damaged")
	for _, e := range s.entries() {
		if e.Key[0] == 'i' {
			t.Errorf("a replay is left: %x", e.Key)
		}
	}
}

// TestBirthdaysAreQuiet: between two days, and changes of settings, a sweep looks for no
// birthdays.
func TestBirthdaysAreQuiet(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z", program: `"rules":[{"key":"day","name":"día","on":"Birthday","points":10}]`})
	quiet := func(want bool, reason string) {
		t.Helper()
		if got := s.engine.noBirthdayUntil.Load().has(s.engine.store.version(), s.clock); got != want {
			t.Errorf("%s: no birthday until is %v", reason, got)
		}
	}
	quiet(false, "no sweep yet")
	s.swept() // gives today's
	s.swept()
	quiet(true, "all are given")
	s.pass(time.Hour)
	quiet(true, "the same day")
	s.newKey(keyRequest{})
	quiet(false, "settings may have changed")
	s.swept()
	quiet(true, "they have not")
	s.pass(-2 * time.Hour)
	quiet(false, "the clock was set back")
	s.setClock("2026-06-15T05:59:59.999Z")
	quiet(true, "the last moment of the day in Mexico")
	s.pass(time.Millisecond)
	quiet(false, "another day")
}

// TestBirthdayRewards: a rule of birthdays that gives a voucher, once a year.
func TestBirthdayRewards(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"copa","program":"club","name":"Copa","pointsCost":10,"fulfilment":"Voucher"}]`,
		program: `"rules":[{"key":"cumple","name":"Cumple","on":"Birthday","reward":"copa"}]`})
	ana := must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "ana", Email: "ana@example.com", BirthDate: 19900310})
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	})
	for _, want := range []int{0, 1, 1} {
		s.swept()
		if got := len(s.vouchers(ana)); got != want {
			t.Errorf("%s: %d vouchers, want %d", s.clock, got, want)
		}
		s.pass(9 * oneDay)
	}
	s.pass(365*oneDay - 27*oneDay + 9*oneDay)
	s.swept()
	if got := len(s.vouchers(ana)); got != 2 {
		t.Errorf("%s: %d vouchers in the next year", s.clock, got)
	}
	s.verified()
}
