package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/processtest"
)

// An issuedCard is a card as the test knows it.
type issuedCard struct {
	customer id
	token    string
}

// card gives a customer a card.
func (s *shop) card(cust id, days int) issuedCard {
	s.Helper()
	return issuedCard{cust, must(s, func(t *txn) (string, error) {
		_, _, token, err := t.cards.issue(cust, days)
		return token, err
	})}
}

// opens is whom a token's card shows; zero: it opens none.
func (s *shop) opens(token string) id {
	return ask(s, func(t *txn) (id, error) {
		d, err := cardByToken(t.Tx, token, t.now)
		if d == nil {
			return id{}, err
		}
		return d.Customer, err
	})
}

// TestCards follows cards through what happens to customers: at most one a customer, and none of
// whom nobody knows any more.
func TestCards(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	eva, luz, noe, sol := s.customer("eva"), s.customer("luz"), s.customer("noe"), s.customer("sol")
	first := s.card(eva, 0)
	again, of := s.card(eva, 0), map[id]issuedCard{}
	if s.opens(first.token) != (id{}) || s.opens(again.token) != eva {
		t.Error("a new card has not ended the one before")
	}
	for _, cust := range []id{luz, noe, sol} {
		of[cust] = s.card(cust, 0)
	}
	for _, wrong := range []string{"", strings.ToLower(again.token), again.token[:25], again.token + "A", again.token + "\n"} {
		if got := s.opens(wrong); got != (id{}) {
			t.Errorf("%q opens the card of %v", wrong, got)
		}
	}
	s.merged(eva, luz)
	must(s, func(t *txn) (any, error) { return t.merges.erase(noe) })
	must(s, func(t *txn) (any, error) { return t.cards.revoke(sol) })
	for cust, card := range of {
		if got := s.opens(card.token); got != (id{}) {
			t.Errorf("a card of %v that ended opens that of %v", cust, got)
		}
	}
	if s.opens(again.token) != eva {
		t.Error("the survivor has no card")
	}
	month := s.card(sol, 30)
	s.pass(31 * oneDay)
	if s.opens(month.token) != (id{}) {
		t.Error("a card of 30 days opens after 31")
	}
	s.verified()
	if n := len(s.cardsLeft()); n != 2 { // eva's, and sol's that expired
		t.Errorf("the store has %d cards", n)
	}
}

// cardsLeft are the entries of cards.
func (s *shop) cardsLeft() (list memTx) {
	for _, e := range s.entries() {
		if tableCards.has(e.Key) {
			list = append(list, e)
		}
	}
	return list
}

// TestCardsRandom gives, ends and takes along cards at random, seed 31: the store agrees with a map.
func TestCardsRandom(t *testing.T) {
	t.Parallel()
	s, rnd := newShop(t, setup{}), rand.New(rand.NewPCG(31, 54))
	var people []id
	for i := range 12 {
		people = append(people, s.customer(fmt.Sprint("c", i)))
	}
	good, all := map[id]string{}, []issuedCard{}
	for range 300 {
		cust := people[rnd.IntN(len(people))]
		switch rnd.IntN(5) {
		case 0:
			must(s, func(t *txn) (any, error) { return t.cards.revoke(cust) })
			delete(good, cust)
		case 1:
			if into := people[rnd.IntN(len(people))]; into != cust && len(people) > 4 && rnd.IntN(4) == 0 {
				s.merged(into, cust)
				delete(good, cust)
				people = without(people, cust)
			}
		case 2:
			if len(people) > 4 && rnd.IntN(8) == 0 {
				must(s, func(t *txn) (any, error) { return t.merges.erase(cust) })
				delete(good, cust)
				people = without(people, cust)
			}
		default:
			card := s.card(cust, 0)
			good[cust], all = card.token, append(all, card)
		}
	}
	for _, card := range all {
		want := id{}
		if good[card.customer] == card.token {
			want = card.customer
		}
		if got := s.opens(card.token); got != want {
			t.Errorf("the card of %v opens that of %v, want %v", card.customer, got, want)
		}
	}
	if n := len(s.cardsLeft()); n != len(good) {
		t.Errorf("the store has %d cards, want %d", n, len(good))
	}
	s.verified()
}

// without is a list of ids without one of them.
func without(list []id, one id) (left []id) {
	for _, u := range list {
		if u != one {
			left = append(left, u)
		}
	}
	return left
}

// TestCardRetry: a retry shows the address that the first answer had, also after the card has
// ended, and no other; not after an erasure.
func TestCardRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{}).served()
	s.api.cards = "https://club.test"
	path := "/api/v1/customers/" + s.shop.customer("eva").String() + "/card"
	first := s.post(path, "one", "")
	if first.Code != http.StatusCreated || !strings.Contains(first.Body.String(), `"url":"https://club.test/t/`) {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	if other := s.post(path, "two", ""); other.Code != http.StatusCreated || other.Body.String() == first.Body.String() {
		t.Errorf("another request: %d %s", other.Code, other.Body)
	}
	if again := s.post(path, "one", ""); again.Code != http.StatusCreated || again.Body.String() != first.Body.String() {
		t.Errorf("the retry: %d %s", again.Code, again.Body)
	}
	for _, e := range s.shop.entries() {
		if token := first.Body.String()[strings.Index(first.Body.String(), "/t/")+3:][:tokenLength]; strings.Contains(string(e.Value), token) {
			t.Errorf("the entry %q has the token", e.Key)
		}
	}
	s.post(strings.TrimSuffix(path, "card")+"erase", "", `{"confirm": "ERASE"}`)
	if gone := s.post(path, "one", ""); gone.Code != http.StatusConflict || !strings.Contains(gone.Body.String(), "customer_erased") {
		t.Errorf("the retry after an erasure: %d %s", gone.Code, gone.Body)
	}
}

// joining keeps a pre-enrolment, and returns its token and code.
func (s *shop) joining(p preEnrolment) (token, code string) {
	s.Helper()
	both := must(s, func(t *txn) (both [2]string, err error) {
		both[0], both[1], err = t.cards.prepare(p)
		return both, err
	})
	return both[0], both[1]
}

// joined uses a code at the counter.
func (s *shop) joined(in joinRequest) (c *customer, created bool) {
	s.Helper()
	c = must(s, func(t *txn) (c *customer, err error) {
		c, created, err = t.cards.join(in)
		return c, err
	})
	return c, created
}

// tryJoin is the error of the use of a code.
func (s *shop) tryJoin(in joinRequest) error {
	_, err := write(s.Context(), s.engine, s.org, s.clock, func(t *txn) (any, error) {
		_, _, err := t.cards.join(in)
		return nil, err
	})
	return err
}

// TestJoining: who filled in the form is enrolled by its code, once, and its page is the card.
func TestJoining(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	sent := s.clock
	token, code := s.joining(preEnrolment{FirstName: "Nora", LastName: "Luz", Phone: "+525512349999", Email: "nora@example.com", BirthDate: 19900514, Marketing: true})
	if s.opens(token) != (id{}) || !isJoinCode(code) {
		t.Fatalf("code %q, and the card of %v", code, s.opens(token))
	}
	s.pass(oneDay / 2)
	nora, created := s.joined(joinRequest{Code: strings.ToLower(code[:3] + "-" + code[3:]), ExternalID: "M-1"})
	if !created || nora.FirstName != "Nora" || nora.Phone != "+525512349999" || nora.BirthDate != 19900514 || nora.ExternalID != "M-1" ||
		nora.Marketing.Answer != consentGiven || nora.Marketing.At != sent || nora.CreatedAt != s.clock {
		t.Errorf("created %t: %+v", created, nora)
	}
	if s.opens(token) != nora.ID {
		t.Error("the page is no card")
	}
	s.want(s.tryJoin(joinRequest{Code: code}), "join_code_not_found")
	for _, wrong := range []string{"", "J", "J000000", "J-0000-0", "M-RSDP-4135", code + "A"} {
		s.want(s.tryJoin(joinRequest{Code: wrong}), "join_code_not_found")
	}
	_, late := s.joining(preEnrolment{Phone: "+525512340001"})
	s.pass(oneDay - 1)
	s.want(s.tryJoin(joinRequest{Code: late}), "")
	_, late = s.joining(preEnrolment{Phone: "+525512340002"})
	s.pass(oneDay)
	s.want(s.tryJoin(joinRequest{Code: late}), "join_code_not_found")
}

// TestJoiningKnown: a customer who has the contact gets what the form says, and the card, only if
// whoever enrols says that the person is there.
func TestJoiningKnown(t *testing.T) {
	t.Parallel()
	for _, here := range []bool{false, true} {
		s := newShop(t, setup{})
		ana := must(s, func(t *txn) (*customer, error) {
			c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Phone: "+525512349999"})
			return c, err
		})
		old := s.card(ana.ID, 0)
		token, code := s.joining(preEnrolment{FirstName: "Eva", LastName: "Sol", Phone: "+525512349999", Email: "eva@example.com", Marketing: true})
		c, created := s.joined(joinRequest{Code: code, Here: here})
		want := *ana
		if here {
			want.LastName, want.Email, want.Marketing = "Sol", "eva@example.com", consent{consentGiven, s.clock}
		}
		if created || c.ID != ana.ID || c.FirstName != "Ana" || c.LastName != want.LastName || c.Email != want.Email || c.Marketing != want.Marketing {
			t.Errorf("there %t: created %t, %+v", here, created, c)
		}
		cards := map[bool]string{true: token, false: old.token}
		if s.opens(cards[here]) != ana.ID || s.opens(cards[!here]) != (id{}) {
			t.Errorf("there %t: the old card opens %v, the new one %v", here, s.opens(old.token), s.opens(token))
		}
		s.want(s.tryJoin(joinRequest{Code: code, Here: here}), "join_code_not_found")
	}
}

// TestJoiningTwo: a phone and an e-mail of two customers are a conflict, and the code is good still.
func TestJoiningTwo(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	for _, e := range []enrolment{{Phone: "+525512349999"}, {Email: "eva@example.com"}} {
		must(s, func(t *txn) (any, error) { _, _, err := t.customers.enrol(e); return nil, err })
	}
	_, code := s.joining(preEnrolment{Phone: "+525512349999", Email: "eva@example.com"})
	for range 2 {
		s.want(s.tryJoin(joinRequest{Code: code, Here: true}), "identity_conflict")
	}
}

// TestJoinsEnd: the sweep drops what is too old, an erasure what has the customer's contact, and the
// oldest goes where there are too many.
func TestJoinsEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	left := func() (n int) {
		for _, e := range s.entries() {
			if e.Key[0] == 'Y' {
				n++
			}
		}
		return n
	}
	s.joining(preEnrolment{Phone: "+525512340001"})
	s.pass(oneDay / 2)
	s.joining(preEnrolment{Phone: "+525512340002"})
	s.pass(oneDay/2 + time.Minute)
	if s.swept(); left() != 3 {
		t.Errorf("%d entries of one pre-enrolment", left())
	}
	ana := must(s, func(t *txn) (*customer, error) {
		c, _, err := t.customers.enrol(enrolment{Phone: "+525512340003", Email: "ana@example.com"})
		return c, err
	})
	s.joining(preEnrolment{Email: "ana@example.com"})
	s.joining(preEnrolment{Phone: "+525512340003"})
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana.ID) })
	if left() != 3 {
		t.Errorf("%d entries after an erasure", left())
	}
	if s.pass(2 * oneDay); true {
		s.swept()
	}
	if left() != 0 {
		t.Errorf("%d entries two days later", left())
	}
}

// TestJoinsMany: of more pre-enrolments than an organization may have the oldest are gone.
func TestJoinsMany(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newShop(t, setup{})
	const more = 7
	codes := must(s, func(t *txn) (codes []string, err error) {
		for i := range mostJoins + more {
			_, code, err := t.cards.prepare(preEnrolment{Phone: fmt.Sprintf("+5255%08d", i)})
			if err != nil {
				return nil, err
			}
			codes = append(codes, code)
		}
		return codes, nil
	})
	for i, want := range map[int]string{0: "join_code_not_found", more - 1: "join_code_not_found", more: "", mostJoins + more - 1: ""} {
		s.want(s.tryJoin(joinRequest{Code: codes[i]}), want)
	}
}

// TestJoiningOnce: of 100 uses of a code at the same time one enrols.
func TestJoiningOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	token, code := s.joining(preEnrolment{Phone: "+525512349999"})
	served := s.served()
	var wait sync.WaitGroup
	var created, gone atomic.Int32
	for range 100 {
		wait.Go(func() {
			switch w := served.post("/api/v1/customers", "", `{"joinCode":"`+code+`"}`); w.Code {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusNotFound:
				gone.Add(1)
			default:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wait.Wait()
	if created.Load() != 1 || gone.Load() != 99 || s.opens(token) == (id{}) {
		t.Errorf("%d created, %d not found", created.Load(), gone.Load())
	}
}

// A killedCards is a server that gives one customer cards until it is killed.
type killedCards struct {
	*till
	key, path string
	server    *processtest.Process
	tokens    []string // all that were told
}

func (s *killedCards) start() {
	s.Helper()
	var err error
	if s.server, err = processtest.Start(s, selloCommand(s, "serve", "-cards", cardsBase, "-db", s.env["SELLO_DB"])); err != nil {
		s.Fatal(err)
	}
}

// issue asks for a card, and returns its token; "" without an answer.
func (s *killedCards) issue(retryKey string) string {
	r, _ := http.NewRequest(http.MethodPost, s.server.Base+s.path, nil)
	r.Header.Set("X-API-Key", s.key)
	r.Header.Set("Idempotency-Key", retryKey)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var made struct{ URL string }
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil {
		return ""
	}
	return strings.TrimPrefix(made.URL, cardsBase+"/t/")
}

// wantOpen checks that of all tokens one opens.
func (s *killedCards) wantOpen(good string) {
	s.Helper()
	for _, token := range s.tokens {
		r, _ := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.server.Base, "/api/v1")+"/t/"+token, nil)
		r.Host = cardsHost
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[token == good]; res.StatusCode != want {
			s.Errorf("a card that ended or the one that is good: %d, want %d", res.StatusCode, want)
		}
	}
}

// TestCardKilled kills a server with kill -9 while it gives a card, at moments at random (seed 11).
// The retry tells the address that was told, if one was, and that one alone opens.
func TestCardKilled(t *testing.T) {
	t.Parallel()
	till := newTill(t)
	till.ok("apply -", string(demoDocument))
	key, _ := till.key("-name todas -rate-limit 1000000")
	first, _ := till.start("serve")
	s := &killedCards{till: till, key: key, path: first.enrolled(key, `{"email":"ana@example.com"}`) + "/card"}
	first.stop()
	s.start()
	rnd, answered := rand.New(rand.NewPCG(11, 0)), 0
	rounds := sized(50, 5)
	began := time.Now()
	s.tokens = append(s.tokens, s.issue("antes"))
	longest := time.Since(began)
	for i := range rounds {
		retryKey, told := fmt.Sprint("k-", i), make(chan string, 1)
		go func() { told <- s.issue(retryKey) }()
		time.Sleep(time.Duration(rnd.Int64N(int64(longest))))
		s.server.Kill()
		was := <-told
		s.start()
		again := s.issue(retryKey)
		if again == "" || was != "" && again != was {
			t.Fatalf("round %d: told %t, and the retry tells the same: %t, nothing: %t", i, was != "", again == was, again == "")
		}
		if longest = longest * 5 / 4; was != "" { // so that about half are answered
			answered++
			longest = longest * 16 / 25
		}
		s.tokens = append(s.tokens, again)
		s.wantOpen(again)
	}
	if rounds > 5 && (answered == rounds || answered == 0) {
		t.Errorf("%d of %d requests were answered before the end", answered, rounds)
	}
	if code := s.server.Stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, s.server.Log)
	}
	s.ok("verify")
	t.Logf("%d of %d requests were answered before the end", answered, rounds)
}
