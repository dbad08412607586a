package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/processtest"
)

const ticketSettings = `"externalIds":"Unique","tickets":{"days":30,"maxPerCustomerPerDay":3}`

func (s *shop) tryTicket(in newTicket) (*ticket, error) {
	return do(s, func(t *txn) (*ticket, error) {
		x, _, err := t.tickets.make(in)
		return x, err
	})
}

// ticket makes a ticket of 100.
func (s *shop) ticket(externalID string) *ticket {
	s.Helper()
	x, err := s.tryTicket(newTicket{ExternalID: externalID, Total: dec("100")})
	s.ok(err)
	return x
}

func (s *shop) claim(ticket string, cust id) (*sale, error) {
	return do(s, func(t *txn) (*sale, error) {
		sold, _, _, err := t.tickets.claim(ticketClaim{ticket, cust})
		return sold, err
	})
}

func (s *shop) claimed(ticket string, cust id) *sale {
	s.Helper()
	sold, err := s.claim(ticket, cust)
	s.ok(err)
	return sold
}

func (s *shop) cancelTicket(in ticketCancel) error {
	_, err := do(s, func(t *txn) (*ticket, error) { return t.tickets.cancel(in) })
	return err
}

// wantTickets checks how many tickets have each status.
func (s *shop) wantTickets(want string) {
	s.Helper()
	got := ask(s, func(t *txn) (text string, err error) {
		for _, status := range ticketStatuses {
			_, total, err := t.tickets.list(ticketFilter{status: status, to: never}, page{1, 1})
			if err != nil {
				return "", err
			}
			text += fmt.Sprintf(" %d %s", total, status)
		}
		return text, nil
	})
	if got[1:] != want {
		s.Errorf("tickets: %s, want %s", got[1:], want)
	}
}

// TestTickets follows tickets to all of their ends.
func TestTickets(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana, eva := s.customer("ana"), s.customer("eva")

	first := s.ticket("A-1")
	again, err := s.tryTicket(newTicket{ExternalID: "A-1", Total: dec("100"), OccurredAt: first.OccurredAt})
	if s.ok(err); again.ID != first.ID || again.Code != first.Code {
		t.Errorf("the same again: %v, want %v", again, first)
	}
	_, err = s.tryTicket(newTicket{ExternalID: "A-1", Total: dec("101")})
	s.want(err, "external_id_conflict")

	sold := s.claimed("https://club.test/c/"+strings.ToLower(first.Code), ana)
	s.wantStanding(ana, "100 0 100", "claimed")
	if sold.Source != sourceClaim || sold.ExternalID != "A-1" {
		t.Errorf("the sale is %+v", sold)
	}
	if same := s.claimed(first.Code, ana); same.ID != sold.ID {
		t.Errorf("claimed again: %v, want %v", same.ID, sold.ID)
	}
	_, err = s.claim(first.Code, eva)
	s.want(err, "ticket_claimed")
	s.want(s.cancelTicket(ticketCancel{ExternalID: "A-1"}), "ticket_claimed")

	s.bring(sold, "100") // the externalId is free, the ticket is not
	for _, who := range []id{ana, eva} {
		_, err = s.claim(first.Code, who)
		s.want(err, "ticket_claimed")
	}
	_, err = s.sell(newSale{Customer: eva, Total: dec("100"), ExternalID: "A-1"})
	s.ok(err)

	taken := s.ticket("A-2")
	_, err = s.sell(newSale{Customer: eva, Total: dec("90"), ExternalID: "A-2"})
	s.ok(err)
	_, err = s.claim(taken.Code, ana)
	s.want(err, "ticket_registered")
	_, err = s.sell(newSale{Customer: ana, Total: dec("5"), ExternalID: "A-3"})
	s.ok(err)
	_, err = s.tryTicket(newTicket{ExternalID: "A-3", Total: dec("5")})
	s.want(err, "ticket_registered")

	cancelled := s.ticket("A-4")
	s.ok(s.cancelTicket(ticketCancel{Ticket: cancelled.Code}))
	s.ok(s.cancelTicket(ticketCancel{ExternalID: "A-4"}))
	_, err = s.claim(cancelled.Code, ana)
	s.want(err, "ticket_cancelled")
	s.want(s.cancelTicket(ticketCancel{ExternalID: "A-99"}), "ticket_not_found")
	_, err = s.claim("T-0000-0000-00", ana)
	s.want(err, "ticket_not_found")
	for _, text := range []string{"", "T-0000-0000-0", "M-7K3Q-M4TX", "1.1.QQ.10000.1.xxxx", "2.1.QQ.10000.1.xxxx"} {
		_, err = s.claim(text, ana)
		s.want(err, "ticket_invalid")
	}

	late := s.ticket("A-5")
	s.wantTickets("1 Open 1 Claimed 1 Cancelled 1 Registered 0 Expired")
	s.setClock("2026-04-02T05:59:59Z") // the last second of the day 30 days later
	s.claimed(late.Code, eva)
	last := s.ticket("A-6")
	s.setClock("2026-05-03T06:00:00Z")
	s.wantTickets("0 Open 2 Claimed 1 Cancelled 1 Registered 1 Expired")
	_, err = s.claim(last.Code, ana)
	s.want(err, "ticket_expired")
	s.want(s.cancelTicket(ticketCancel{ExternalID: "A-6"}), "ticket_expired")
	_, err = s.sell(newSale{Customer: ana, Total: dec("100"), ExternalID: "A-6"})
	s.ok(err)
	s.wantTickets("0 Open 2 Claimed 1 Cancelled 2 Registered 0 Expired")

	s.pass(ticketLifeDays * oneDay)
	s.swept()
	s.wantTickets("0 Open 0 Claimed 0 Cancelled 0 Registered 0 Expired")
	s.ticket("A-5x")
}

const ticketLifeDays = time.Duration(ticketLife / (24 * 60 * 60 * 1000))

// TestTicketsLimit: so many tickets of a day's purchases, of a customer and its stubs; undone ones do not
// count, and other days do not either.
func TestTicketsLimit(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana, twin := s.customer("ana"), s.customer("twin")
	var codes []string
	for i := range 6 {
		codes = append(codes, s.ticket(fmt.Sprint("A-", i)).Code)
	}
	s.pass(oneDay)
	next := s.ticket("B-0").Code
	s.claimed(codes[0], ana)
	s.claimed(codes[1], twin)
	s.merged(ana, twin)
	third := s.claimed(codes[2], ana)
	_, err := s.claim(codes[3], ana)
	s.want(err, "ticket_limit_reached")
	s.claimed(codes[2], ana) // known
	s.claimed(next, ana)
	s.bring(third, "100")
	s.claimed(codes[3], ana)
	_, err = s.claim(codes[4], ana)
	s.want(err, "ticket_limit_reached")
	s.claimed(codes[4], s.customer("eva"))
}

// TestTicketLate: Tuesday's ticket that is claimed on Wednesday earns what the same late sale earns by
// hand: three times its points, in the tier of the claim, and Tuesday's own points.
func TestTicketLate(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, at: "2026-03-03T18:00:00Z", program: `"tiers":[{"name":"Base","threshold":0},{"name":"Oro","threshold":500,"multiplier":3}],"tierBasis":{"metric":"PointsEarned"},
		"rules":[` + onePer1 + `,{"key":"martes","name":"Martes","days":["Tuesday"],"points":100}]`})
	ana, eva := s.customer("ana"), s.customer("eva")
	x, at := s.ticket("A-1"), s.clock
	s.pass(oneDay)
	s.add(ana, "600", never)
	s.add(eva, "600", never)
	claimed := s.claimed(x.Code, ana)
	byHand, err := s.sell(newSale{Customer: eva, Total: dec("100"), OccurredAt: at})
	s.ok(err)
	if claimed.Earned != byHand.Earned || claimed.Earned != dec("400") || claimed.CreatedAt != byHand.CreatedAt || claimed.CreatedAt != at {
		t.Errorf("a claim earned %v at %d, the late sale %v at %d, want 400 at %d", claimed.Earned, claimed.CreatedAt, byHand.Earned, byHand.CreatedAt, at)
	}
}

// A signer is a till without a network.
type signer struct {
	number uint16
	secret string
}

// signs gives a key a secret.
func (s *shop) signs(k *apiKey, again bool) signer {
	s.Helper()
	return must(s, func(t *txn) (signer, error) {
		k, secret, err := t.keys.ticketSecret(k.ID.String(), again)
		if err != nil {
			return signer{}, err
		}
		return signer{k.TicketNumber, secret}, nil
	})
}

func (g signer) ticket(externalID, total string, at instant) string {
	text := fmt.Sprintf("1.%d.%s.%d.%d", g.number, base64.RawURLEncoding.EncodeToString([]byte(externalID)), int64(dec(total)), at/1000)
	return text + "." + ticketMAC(g.secret, text)
}

// TestTicketsSigned: tickets that a till signs count once, and nobody else can make one.
func TestTicketsSigned(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana, eva := s.customer("ana"), s.customer("eva")
	key, _ := s.newKey(keyRequest{})
	till := s.signs(key, false)

	text := till.ticket("Ñ-1", "12.5", s.clock)
	first := s.claimed(text, ana)
	if same := s.claimed(" "+text+"\n", ana); same.ID != first.ID || first.Total != dec("12.5") || first.ExternalID != "Ñ-1" {
		t.Errorf("claimed %+v, then %v", first, same.ID)
	}
	_, err := s.claim(text, eva)
	s.want(err, "ticket_claimed")
	_, err = s.claim(till.ticket("Ñ-1", "12500", s.clock), ana) // the same externalId with another amount
	s.want(err, "ticket_claimed")
	s.ok(s.cancelTicket(ticketCancel{Ticket: till.ticket("C-1", "1", s.clock)}))
	_, err = s.claim(till.ticket("C-1", "1", s.clock), ana)
	s.want(err, "ticket_cancelled")
	s.ticket("M-1")
	_, err = s.claim(till.ticket("M-1", "1", s.clock), ana)
	s.want(err, "external_id_conflict")
	sold, err := s.sell(newSale{Customer: eva, Total: dec("7"), ExternalID: "R-1"})
	s.ok(err)
	_, err = s.claim(till.ticket("R-1", "7", s.clock), ana)
	s.want(err, "ticket_registered")
	s.bring(sold, "7") // whose goods came back is not claimed
	_, err = s.claim(till.ticket("R-1", "7", s.clock), ana)
	s.want(err, "ticket_registered")
	s.pass(time.Hour)
	_, err = s.claim(till.ticket("R-1", "7", s.clock), ana) // also by a till whose clock is ahead
	s.want(err, "ticket_registered")
	s.claimed(till.ticket("R-1", "8", s.clock), ana) // another sale
	s.pass(oneDay)

	rnd := rand.New(rand.NewPCG(26, 1))
	good := till.ticket("X-1", "100", s.clock)
	for range 50 {
		changed := []byte(good)
		at := rnd.IntN(len(changed))
		for changed[at] == good[at] {
			changed[at] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."[rnd.IntN(65)]
		}
		_, err := s.claim(string(changed), ana)
		s.want(err, "ticket_invalid")
	}
	_, err = s.claim(signer{till.number, "tks_" + strings.Repeat("A", 32)}.ticket("X-1", "100", s.clock), ana)
	s.want(err, "ticket_invalid")
	_, err = s.claim(till.ticket("X-1", "100", s.clock.add(6*time.Minute)), ana)
	s.want(err, "ticket_invalid")
	_, err = s.claim(till.ticket("X-1", "100", s.clock.add(-31*oneDay)), ana)
	s.want(err, "ticket_expired")
	s.claimed(till.ticket("X-2", "100", s.clock.add(4*time.Minute)), ana)

	renewed := s.signs(key, true)
	if renewed.number != till.number || renewed.secret == till.secret {
		t.Errorf("renewed: %v of %v", renewed, till)
	}
	s.claimed(till.ticket("X-3", "100", s.clock), eva)
	s.claimed(renewed.ticket("X-4", "100", s.clock), eva)
	rotated := must(s, func(t *txn) (*apiKey, error) {
		next, _, _, err := t.keys.rotate(key.ID.String(), time.Hour)
		return next, err
	})
	s.pass(31 * oneDay)
	_, err = s.claim(till.ticket("X-5", "100", s.clock), eva)
	s.want(err, "ticket_invalid")
	s.claimed(renewed.ticket("X-6", "100", s.clock), eva) // by the key that it was rotated to
	other, _ := s.newKey(keyRequest{})
	if g := s.signs(other, false); g.number == renewed.number {
		t.Errorf("two keys sign as %d", g.number)
	}
	must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(rotated.ID.String()) })
	_, err = s.claim(renewed.ticket("X-7", "100", s.clock), eva)
	s.want(err, "ticket_invalid")
	s.claimed(renewed.ticket("X-6", "100", s.clock), eva) // known

	s.apply(slices.Concat([]byte(strings.Replace(string(setup{settings: ticketSettings}.document()), "cafe-luna", "te-sol", 1))))
	s.org = 2
	sol := s.customer("sol")
	for _, g := range []signer{renewed, till} { // of another organization
		_, err = s.claim(g.ticket("X-8", "100", s.clock), sol)
		s.want(err, "ticket_invalid")
	}
	_, err = s.claim(first.ID.String(), sol)
	s.want(err, "ticket_invalid")
}

// TestTicketsAtOnce: of 200 claims at once of one ticket, by 100 customers, one is a sale; and of a sale at
// the till and a claim at once one alone counts, 1,000 times.
func TestTicketsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	var all []id
	for i := range 100 {
		all = append(all, s.customer(fmt.Sprint("c", i)))
	}
	code := s.ticket("A-1").Code
	sales := map[id]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			sold, err := s.claim(code, all[i%100])
			if err != nil {
				s.want(err, "ticket_claimed")
				return
			}
			mu.Lock()
			sales[sold.ID]++
			mu.Unlock()
		})
	}
	wait.Wait()
	if total := ask(s, func(t *txn) (uint64, error) { n, err := t.count(); return n.Sales, err }); len(sales) != 1 || total != 1 {
		t.Errorf("claims became %v, and there are %d sales", sales, total)
	}
	rounds := sized(1000, 50)
	won := 0
	for i := range rounds {
		externalID, cust := "B-"+strconv.Itoa(i), all[i%100]
		code := s.ticket(externalID).Code
		var claimed, sold error
		both := []func(){
			func() { _, claimed = s.claim(code, cust) },
			func() {
				_, sold = do(s, func(t *txn) (*sale, error) {
					in := newSale{Customer: all[(i+1)%100], Total: dec("100"), ExternalID: externalID, Type: typePurchase}
					known, err := t.sales.knownSale(in)
					if err != nil || known != nil {
						return known, err
					}
					made, _, err := t.sales.register(in)
					return made, err
				})
			},
		}
		wait.Go(both[i%2]) // the one that begins later often comes first
		wait.Go(both[1-i%2])
		if wait.Wait(); (claimed == nil) == (sold == nil) {
			t.Fatalf("%s: the claim: %v; the sale: %v", externalID, claimed, sold)
		}
		if claimed == nil {
			won++
			s.want(sold, "external_id_conflict")
		} else {
			s.want(claimed, "ticket_registered")
		}
		if i%100 == 99 { // not all tickets of a customer are of one day
			s.pass(oneDay)
		}
	}
	if total := ask(s, func(t *txn) (uint64, error) { n, err := t.count(); return n.Sales, err }); total != uint64(rounds)+1 {
		t.Errorf("%d sales, want %d", total, rounds+1)
	}
	t.Logf("%d of %d claims came first", won, rounds)
}

var ticketExample = regexp.MustCompile(`export TARJETAS=(\S+) NUMERO=(\S+) SECRETO=(\S+)
python3 qr\.py '([^']+)' (\S+) (\S+)
` + "```\n\n```\n" + `(\S+)`)

// TestTicketExample: the example of docs/integrar.md is what the server reads. That the programs there
// print it is tested in tools/clients.
func TestTicketExample(t *testing.T) {
	t.Parallel()
	m := ticketExample.FindStringSubmatch(readText(t, "docs/integrar.md"))
	if m == nil {
		t.Fatal("there is none")
	}
	text, ours := strings.CutPrefix(m[7], m[1]+"/c/")
	x, ok := readSigned(text)
	if !ours || !ok {
		t.Fatalf("%s is no address of a ticket", m[7])
	}
	got := []string{strconv.Itoa(int(x.number)), x.mac, x.externalID, x.total.String(), strconv.Itoa(int(x.at / 1000))}
	if want := []string{m[2], ticketMAC(m[3], x.text), m[4], m[5], m[6]}; !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// TestTicketsBrought: what was brought back before anybody claimed its ticket is not claimed.
func TestTicketsBrought(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	key, _ := s.newKey(keyRequest{})
	till := s.signs(key, false)
	made, signed := s.ticket("A-1"), till.ticket("A-2", "100", s.clock)
	for _, externalID := range []string{"A-1", "A-2"} {
		_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("100"), ExternalID: externalID})
		s.ok(err)
	}
	for _, text := range []string{made.Code, signed} {
		_, err := s.claim(text, ana)
		s.want(err, "ticket_cancelled")
	}
	s.wantTickets("0 Open 0 Claimed 1 Cancelled 0 Registered 0 Expired")
}

// TestTicketsOfEndedKey: the secret of a key that has ended is of no use for tickets that were made since;
// what it signed and somebody claimed before stays known.
func TestTicketsOfEndedKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	key, _ := s.newKey(keyRequest{})
	till := s.signs(key, false)
	before := till.ticket("A-0", "100", s.clock)
	sold := s.claimed(before, ana)
	must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(key.ID.String()) })
	s.ticket("A-1")
	forged := till.ticket("A-1", "100", s.clock)
	_, err := s.claim(forged, ana)
	s.want(err, "ticket_invalid")
	s.want(s.cancelTicket(ticketCancel{Ticket: forged}), "ticket_invalid")
	if again := s.claimed(before, ana); again.ID != sold.ID {
		t.Errorf("claimed again: %v, want %v", again.ID, sold.ID)
	}
}

// TestTicketsErased: neither a claimed ticket nor one whose purchase was registered keeps what an erasure
// takes from its sale.
func TestTicketsErased(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings})
	ana := s.customer("ana")
	for _, externalID := range []string{"A-1", "A-2"} {
		x, err := s.tryTicket(newTicket{ExternalID: externalID, Total: dec("100"), Comment: "algo de Ana", Labels: saleLabels{{"mesa", "la de Ana"}}})
		if s.ok(err); externalID == "A-1" {
			s.claimed(x.Code, ana)
			continue
		}
		_, err = s.sell(newSale{Customer: ana, Total: dec("100"), ExternalID: externalID})
		s.ok(err)
	}
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana) })
	for _, e := range s.entries() {
		if bytes.Contains(e.Value, []byte("de Ana")) {
			t.Errorf("%q is left in %q", e.Value, e.Key)
		}
	}
	s.wantTickets("0 Open 1 Claimed 0 Cancelled 1 Registered 0 Expired")
}

// TestTicketsClock: a clock that was ahead and is set back lets nobody claim more of a day than the limit,
// nor what was cancelled and swept.
func TestTicketsClock(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: ticketSettings, program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	key, _ := s.newKey(keyRequest{})
	till := s.signs(key, false)
	signed := till.ticket("C-1", "50", s.clock)
	s.ok(s.cancelTicket(ticketCancel{Ticket: signed}))
	s.claimed(s.ticket("B-0").Code, ana)
	back := func(d time.Duration) {
		s.pass(-d)
		s.ok(s.engine.acceptClock(s.Context(), creator{Type: bySystem}))
		s.ok(s.engine.recount(s.Context()))
	}
	s.pass(2 * oneDay)
	var codes []string
	for i := range 4 {
		codes = append(codes, s.ticket(fmt.Sprint("A-", i)).Code)
	}
	back(oneDay)
	for _, code := range codes[:3] {
		s.claimed(code, ana)
	}
	_, err := s.claim(codes[3], ana)
	s.want(err, "ticket_limit_reached")
	s.verified()
	s.pass(200 * oneDay)
	s.swept()
	back(200 * oneDay)
	_, err = s.claim(signed, ana)
	s.want(err, "ticket_expired")
}

// TestTicketsRuleUses: the daily uses of a rule are there as long as a ticket of that day may come, also
// after the days were made fewer.
func TestTicketsRuleUses(t *testing.T) {
	t.Parallel()
	in := setup{settings: strings.Replace(ticketSettings, "30", "90", 1), program: `"rules":[{"key":"one","name":"one","points":10,"maxPerCustomerPerDay":1}]`}
	s := newShop(t, in)
	ana := s.customer("ana")
	first, second := s.ticket("A-1"), s.ticket("A-2")
	s.claimed(first.Code, ana)
	in.settings = strings.Replace(ticketSettings, "30", "1", 1)
	s.apply(in.document())
	s.pass(40 * oneDay)
	s.buy(ana, "1")
	if got := s.claimed(second.Code, ana); got.Earned != 0 {
		t.Errorf("the second purchase of the day earned %v", got.Earned)
	}
}

// A killedTickets is a server that is killed now and then, and the model of its tickets. Each request is
// sent again until it is answered, so what one that was cut did is done once.
type killedTickets struct {
	*till
	rnd     *rand.Rand
	key     string
	signs   signer
	since   instant // the moment of all signed tickets
	server  *processtest.Process
	between int // requests until the next kill
	kills   int

	customers []string
	balances  []int
	receipts  []*modelReceipt
	spent     int
}

// A modelReceipt is what became of one externalId. Customers are indexes; -1 is none.
type modelReceipt struct {
	externalID, ticket string // ticket: its code, or the signed text
	total              int
	seen               bool // the store has the ticket
	state              string
	claim              string       // the sale that it became
	standing           int          // whose the purchase that stands is
	sale               string       // that purchase
	undone             map[int]bool // whose purchases were returned
}

// call sends a request, again after each kill, and returns the code of its error, or what it made.
func (s *killedTickets) call(path, retryKey, body string) (fault string, made struct{ Code, ID string }) {
	s.Helper()
	for {
		if s.between--; s.between == 0 {
			s.between = 50 + s.rnd.IntN(300)
			s.kills++
			after := time.Duration(s.rnd.IntN(2000)) * time.Microsecond
			go func(p *processtest.Process) { time.Sleep(after); p.Kill() }(s.server)
		}
		r, _ := http.NewRequest(http.MethodPost, s.server.Base+path, strings.NewReader(body))
		r.Header.Set("X-API-Key", s.key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", retryKey)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			err = json.NewDecoder(res.Body).Decode(&made)
			res.Body.Close()
			if err == nil && res.StatusCode < 300 {
				return "", made
			}
			if err == nil && res.StatusCode < 500 {
				return made.Code, made
			}
		}
		s.server.Stop()
		s.start()
	}
}

func (s *killedTickets) start() {
	var err error
	if s.server, err = processtest.Start(s, selloCommand(s, "serve", "-db", s.env["SELLO_DB"])); err != nil {
		s.Fatal(err)
	}
}

func (s *killedTickets) receipt() *modelReceipt { return s.receipts[s.rnd.IntN(len(s.receipts))] }

// sold is what a purchase of a customer answers by the model, and does there.
func (m *modelReceipt) sold(s *killedTickets, who int) (code string) {
	switch {
	case m.standing == who:
		return ""
	case m.standing >= 0:
		return "external_id_conflict"
	case m.undone[who]:
		return "external_id_undone"
	}
	if m.seen && m.state == ticketOpen {
		m.state = ticketRegistered
	}
	m.standing = who
	s.balances[who] += m.total
	return ""
}

// closed is why a ticket can be neither claimed nor cancelled; "": it can.
func (m *modelReceipt) closed() string {
	switch {
	case m.state == ticketClaimed:
		return "ticket_claimed"
	case m.state == ticketCancelled:
		return "ticket_cancelled"
	case m.state == ticketRegistered, m.standing >= 0, len(m.undone) > 0:
		return "ticket_registered"
	}
	return ""
}

// step does something at random, and compares what is answered with the model.
func (s *killedTickets) step(n int) {
	s.Helper()
	who, retryKey := s.rnd.IntN(len(s.customers)), fmt.Sprint("k-", n)
	var (
		what, fault, want string
		made              struct{ Code, ID string }
	)
	switch kind := s.rnd.IntN(100); {
	case kind < 20 || len(s.receipts) == 0:
		m := &modelReceipt{externalID: fmt.Sprint("R-", n), total: 1 + s.rnd.IntN(50), state: ticketOpen, standing: -1, undone: map[int]bool{}}
		s.receipts = append(s.receipts, m)
		if s.rnd.IntN(2) == 0 {
			m.ticket = s.signs.ticket(m.externalID, strconv.Itoa(m.total), s.since)
			return
		}
		what = "make " + m.externalID
		m.seen = true
		fault, made = s.call("/tickets", retryKey, fmt.Sprintf(`{"externalId":%q,"totalAmount":%d}`, m.externalID, m.total))
		m.ticket = made.Code
	case kind < 55:
		m := s.receipt()
		what = "claim " + m.externalID
		fault, made = s.call("/tickets/claim", retryKey, fmt.Sprintf(`{"ticket":%q,"customerId":%q}`, m.ticket, s.customers[who]))
		switch {
		case m.state == ticketClaimed && m.standing == who && m.sale == m.claim && made.ID == m.claim:
		case m.closed() != "":
			want = m.closed()
		default:
			m.seen, m.state, m.claim, m.standing, m.sale = true, ticketClaimed, made.ID, who, made.ID
			s.balances[who] += m.total
		}
	case kind < 70:
		m := s.receipt()
		what = "sell " + m.externalID
		fault, made = s.call("/transactions", retryKey, fmt.Sprintf(`{"externalId":%q,"totalAmount":%d,"customerId":%q}`, m.externalID, m.total, s.customers[who]))
		if want = m.sold(s, who); want == "" {
			m.sale = made.ID
		}
	case kind < 80:
		m := s.receipt()
		if what = "return " + m.externalID; m.standing < 0 {
			return
		}
		fault, _ = s.call("/transactions", retryKey, fmt.Sprintf(`{"type":"Return","originalTransactionId":%q,"totalAmount":%d,"customerId":%q}`, m.sale, m.total, s.customers[m.standing]))
		s.balances[m.standing] -= m.total
		m.undone[m.standing], m.standing = true, -1
	case kind < 85:
		m := s.receipt()
		what = "cancel " + m.externalID
		fault, _ = s.call("/tickets/cancel", retryKey, fmt.Sprintf(`{"ticket":%q}`, m.ticket))
		if want = m.closed(); want == "ticket_cancelled" {
			want = ""
		} else if want == "" {
			m.seen, m.state = true, ticketCancelled
		}
	default:
		if what = "spend"; s.balances[who] <= 0 {
			return
		}
		points := 1 + s.rnd.IntN(s.balances[who])
		fault, _ = s.call("/points/customers/"+s.customers[who]+"/deduct", retryKey, fmt.Sprintf(`{"amount":%d,"category":"Fee","reference":%q}`, points, retryKey))
		s.balances[who] -= points
		s.spent++
	}
	if fault != want {
		s.Fatalf("step %d, %s for customer %d: %q, want %q", n, what, who, fault, want)
	}
}

// TestTicketsKilled makes, signs, claims, cancels, sells, returns and spends in random order (seed 26), while
// the server is killed now and then: each answer and, at the end, each balance is the model's.
func TestTicketsKilled(t *testing.T) {
	t.Parallel()
	till := newTill(t)
	till.ok("apply -", string(setup{settings: `"externalIds":"Unique","tickets":{"days":30,"maxPerCustomerPerDay":100}`, program: `"negativeBalance":"Debt","rules":[` + onePer1 + `]`}.document()))
	s := &killedTickets{till: till, rnd: rand.New(rand.NewPCG(26, 0)), between: 100, since: instantOf(time.Now()) / 1000 * 1000}
	var keyID string
	s.key, keyID = till.key("-name todas -rate-limit 1000000")
	var told struct {
		Secret       string
		TicketNumber uint16
	}
	if err := json.Unmarshal([]byte(till.ok("key ticket-secret -json "+keyID)), &told); err != nil {
		t.Fatal(err)
	}
	s.signs = signer{told.TicketNumber, told.Secret}
	s.start()
	for i := range 60 {
		fault, made := s.call("/customers", fmt.Sprint("c-", i), fmt.Sprintf(`{"email":"c%d@example.com"}`, i))
		if fault != "" {
			t.Fatal(fault)
		}
		s.customers, s.balances = append(s.customers, made.ID), append(s.balances, 0)
	}
	for n := range sized(10_000, 500) {
		s.step(n)
	}
	for i, cust := range s.customers {
		r, _ := http.NewRequest(http.MethodGet, s.server.Base+"/points/customers/"+cust+"/balance", nil)
		r.Header.Set("X-API-Key", s.key)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var has struct{ Balance int }
		err = json.NewDecoder(res.Body).Decode(&has)
		if res.Body.Close(); err != nil || has.Balance != s.balances[i] {
			t.Errorf("customer %d has %d, want %d (%v)", i, has.Balance, s.balances[i], err)
		}
	}
	if code := s.server.Stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, s.server.Log)
	}
	s.ok("verify")
	states := map[string]int{}
	for _, m := range s.receipts {
		states[m.state]++
	}
	t.Logf("%d kills, %d spendings, tickets %v", s.kills, s.spent, states)
}
