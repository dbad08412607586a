package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/membercode"
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
	s.api.engine.cardsAt = "https://club.test"
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
	token = must(s, func(t *txn) (string, error) { return t.cards.prepare(p) })
	return token, ask(s, func(t *txn) (string, error) {
		p, err := joinByToken(t.Tx, token, t.now)
		return p.Code, err
	})
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
	twin := must(s, func(t *txn) (*customer, error) {
		c, _, err := t.customers.enrol(enrolment{Phone: "+525512340004"})
		return c, err
	})
	s.joining(preEnrolment{Phone: "+525512340004"})
	s.merged(ana.ID, twin.ID)
	must(s, func(t *txn) (any, error) { return t.merges.erase(ana.ID) })
	if left() != 3 {
		t.Errorf("%d entries after an erasure", left())
	}
	s.pass(2 * oneDay)
	s.swept()
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
			token, err := t.cards.prepare(preEnrolment{Phone: fmt.Sprintf("+5255%08d", i)})
			if err != nil {
				return nil, err
			}
			p, err := joinByToken(t.Tx, token, t.now)
			if err != nil {
				return nil, err
			}
			codes = append(codes, p.Code)
		}
		return codes, nil
	})
	for i, want := range map[int]string{0: "join_code_not_found", more - 1: "join_code_not_found", more: "", mostJoins + more - 1: ""} {
		s.want(s.tryJoin(joinRequest{Code: codes[i]}), want)
	}
}

// TestJoinBlank: a blank field is none.
func TestJoinBlank(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	_, code := s.joining(preEnrolment{Phone: "+525512349999"})
	for _, body := range []string{`{"joinCode":"","email":"ana@example.com"}`, `{"joinCode":"` + code + `","email":"","firstName":null}`} {
		if w := s.served().post("/api/v1/customers", "", body); w.Code != http.StatusCreated {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
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

// proofSetup is a shop where spending needs the card, from 10 points on.
func proofSetup() setup {
	return setup{
		program:  `"payment":{"points":1,"amount":1},"rules":[` + onePer1 + `]`,
		also:     `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":20},{"key":"pan","program":"club","name":"Pan","pointsCost":9}]`,
		settings: `"cards":{"proof":"Spending","proofFrom":10}`,
	}
}

// scanned is what the page of a customer's card shows now.
func (s *shop) scanned(cust id) string {
	return ask(s, func(t *txn) (string, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return "", err
		}
		digits, err := t.cards.digitsOf(c)
		return membercode.Plain(*t.customers.memberCode(c)) + "." + digits, err
	})
}

// spender is a customer with a card and points to spend.
func (s *shop) spender(name string) id {
	cust := s.customer(name)
	s.add(cust, "1000", never)
	s.card(cust, 0)
	return cust
}

// TestProof spends points in each way, without the card's digits and with good and wrong ones.
func TestProof(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup()).served()
	ana, eva := s.shop.spender("ana"), s.shop.spender("eva")
	rewards := ask(s.shop, func(t *txn) (map[string]string, error) {
		return map[string]string{"cafe": t.cfg.Rewards[0].ID.String(), "pan": t.cfg.Rewards[1].ID.String()}, nil
	})
	of := `"customerId":"` + ana.String() + `",`
	spends := map[string][2]string{
		"redeem": {"/rewards/redeem", `{` + of + `"productId":"` + rewards["cafe"] + `"%s}`},
		"points": {"/transactions", `{` + of + `"totalAmount":50,"pay":{"points":10}%s}`},
		"amount": {"/transactions", `{` + of + `"totalAmount":50,"pay":{"amount":10}%s}`},
		"max":    {"/transactions", `{` + of + `"totalAmount":50,"pay":{"max":true}%s}`},
		"hold":   {"/points/customers/" + ana.String() + "/holds", `{"amount":10%s}`},
		"lacks":  {"/transactions", `{` + of + `"totalAmount":9000,"pay":{"points":2000}%s}`},
	}
	post := func(of [2]string, proof string) (int, string) {
		w := s.post("/api/v1"+of[0], "", fmt.Sprintf(of[1], proof))
		var e struct{ Code, Field string }
		json.Unmarshal(w.Body.Bytes(), &e)
		return w.Code, e.Code + " " + e.Field
	}
	good, others := s.shop.scanned(ana), s.shop.scanned(eva)
	for name, spend := range spends {
		if status, code := post(spend, ""); status != http.StatusBadRequest || code != "proof_required proof" {
			t.Errorf("%s without: %d %s", name, status, code)
		}
		if status, code := post(spend, `,"proof":"`+others+`"`); status != http.StatusBadRequest || code != "proof_invalid proof" {
			t.Errorf("%s with another's: %d %s", name, status, code)
		}
		want := http.StatusCreated
		if name == "lacks" {
			want = http.StatusBadRequest
		}
		if status, code := post(spend, `,"proof":"`+strings.ToLower(good[:4]+" "+good[4:9]+"-"+good[10:13]+" "+good[13:])+`"`); status != want || want != http.StatusCreated && code != "insufficient_balance " {
			t.Errorf("%s with the card's: %d %s", name, status, code)
		}
	}
	for name, few := range map[string][2]string{
		"a cheap reward": {"/rewards/redeem", `{` + of + `"productId":"` + rewards["pan"] + `"%s}`},
		"a few points":   {"/transactions", `{` + of + `"totalAmount":50,"pay":{"points":9}%s}`},
		"a dry run":      {"/transactions?dryRun=true", `{` + of + `"totalAmount":50,"pay":{"points":30}%s}`},
		"by hand":        {"/points/customers/" + ana.String() + "/deduct", `{"amount":30%s}`},
	} {
		if status, code := post(few, ""); status >= 300 {
			t.Errorf("%s: %d %s", name, status, code)
		}
	}
	hold := s.shop.hold0(ana)
	if status, code := post([2]string{"/transactions", `{` + of + `"totalAmount":50,"pay":{"hold":"` + hold + `"}%s}`}, ""); status != http.StatusCreated {
		t.Errorf("what is held: %d %s", status, code)
	}
	batch := s.post("/api/v1/transactions/batch", "", `{"transactions":[{`+of+`"totalAmount":50,"externalId":"A","pay":{"points":10}},{`+of+`"totalAmount":50,"externalId":"B","pay":{"points":10},"proof":"`+good+`"}]}`)
	if text := batch.Body.String(); !strings.Contains(text, `"status":400`) || !strings.Contains(text, `"status":201`) || !strings.Contains(text, "proof_required") {
		t.Errorf("a batch: %s", text)
	}
	_, web := s.shop.newKey(keyRequest{NoProof: true})
	s.key = web
	if status, code := post(spends["redeem"], ""); status != http.StatusCreated {
		t.Errorf("a web shop: %d %s", status, code)
	}
}

// hold0 is an open hold of a customer.
func (s *shop) hold0(cust id) string {
	return must(s, func(t *txn) (string, error) {
		h, err := t.points.place(newHold{Customer: cust, Amount: dec("12"), Seconds: usualHold})
		if err != nil {
			return "", err
		}
		return h.ID.String(), nil
	})
}

// TestProofSteps: digits are good for two steps of two minutes, to the second, and end with the card.
func TestProofSteps(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup())
	eva := s.customer("eva")
	s.card(eva, 0)
	s.clock = s.clock / proofStep * proofStep // a step begins
	first := s.scanned(eva)
	is := func(text string) bool {
		return ask(s, func(t *txn) (bool, error) {
			c, err := t.customers.get(eva)
			if err != nil {
				return false, err
			}
			return t.cards.isProof(c, text)
		})
	}
	begun := s.clock
	for seconds, want := range map[instant]bool{-1: false, 0: true, 119: true, 120: true, 239: true, 240: false, 241: false, 3600: false} {
		s.clock = begun + seconds*1000
		if is(first) != want {
			t.Errorf("after %d s: %t", seconds, !want)
		}
	}
	s.clock = begun
	for _, wrong := range []string{"", first[:9], first[:15], first + "1", first[:9] + first[10:15], "M0000000" + first[8:], first[10:], "hola"} {
		if is(wrong) {
			t.Errorf("%q is taken", wrong)
		}
	}
	s.card(eva, 0)
	if is(first) || !is(s.scanned(eva)) {
		t.Error("a new card has not ended the digits of the one before")
	}
	last := s.scanned(eva)
	must(s, func(t *txn) (any, error) { return t.cards.revoke(eva) })
	if is(last) {
		t.Error("digits without a card")
	}
}

// TestProofLocked: after ten wrong ones within ten minutes a customer's good digits are refused too,
// with the time to wait; others' are not.
func TestProofLocked(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup()).served()
	ana, eva := s.shop.spender("ana"), s.shop.spender("eva")
	hold := func(cust id, proof string) *httptest.ResponseRecorder {
		return s.post("/api/v1/points/customers/"+cust.String()+"/holds", "", `{"amount":10,"proof":"`+proof+`"}`)
	}
	began := s.shop.clock
	for i := range mostWrongProofs {
		if w := hold(ana, s.shop.scanned(ana)[:10]+fmt.Sprintf("%06d", i)); w.Code != http.StatusBadRequest {
			t.Fatalf("wrong %d: %d %s", i, w.Code, w.Body)
		}
		s.shop.pass(time.Second)
	}
	w := hold(ana, s.shop.scanned(ana))
	if want := fmt.Sprint(int64(began+wrongProofsSpan-s.shop.clock) / 1000); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != want || !strings.Contains(w.Body.String(), "proof_locked") {
		t.Errorf("good ones: %d, Retry-After %q, want %s: %s", w.Code, w.Header().Get("Retry-After"), want, w.Body)
	}
	if w := hold(eva, s.shop.scanned(eva)); w.Code != http.StatusCreated {
		t.Errorf("somebody else: %d %s", w.Code, w.Body)
	}
	s.shop.clock = began + wrongProofsSpan
	if w := hold(ana, s.shop.scanned(ana)); w.Code != http.StatusCreated {
		t.Errorf("ten minutes later: %d %s", w.Code, w.Body)
	}
}

// TestProofRetry: a retry that is replayed needs no digits that are still good.
func TestProofRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup()).served()
	eva := s.shop.spender("eva")
	path, body := "/api/v1/points/customers/"+eva.String()+"/holds", `{"amount":10,"proof":"`+s.shop.scanned(eva)+`"}`
	first := s.post(path, "one", body)
	s.shop.pass(time.Hour)
	if again := s.post(path, "one", body); first.Code != http.StatusCreated || again.Body.String() != first.Body.String() {
		t.Errorf("%d %s, again %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if other := s.post(path, "two", body); other.Code != http.StatusBadRequest || !strings.Contains(other.Body.String(), "proof_invalid") {
		t.Errorf("another request: %d %s", other.Code, other.Body)
	}
}

// TestProofSaleAgain: a sale that is sent again with other digits is the known one.
func TestProofSaleAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup()).served()
	eva := s.shop.spender("eva")
	sell := func() *httptest.ResponseRecorder {
		return s.post("/api/v1/transactions", "", `{"customerId":"`+eva.String()+`","totalAmount":100,"externalId":"T-1","proof":"`+s.shop.scanned(eva)+`","pay":{"points":20}}`)
	}
	first := sell()
	s.shop.pass(time.Hour)
	if again := sell(); first.Code != http.StatusCreated || again.Code != http.StatusOK || again.Body.String() != first.Body.String() {
		t.Errorf("%d %s, again %d %s", first.Code, first.Body, again.Code, again.Body)
	}
}

// TestCutProof tells a scanned card from what else is as long.
func TestCutProof(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"M7K3QM4T2.482913": "M7K3QM4T2 482913", "m-7k3q-m4t2 482 913": "M7K3QM4T2 482913", "M7K3QM4T2": "M7K3QM4T2 ",
		"juan@example.com": "juan@example.com ", "M7K3QM4T2ABCDEF": "M7K3QM4T2ABCDEF ", "7K3QM4T2A482913": "7K3QM4T2A482913 ", "": " ",
	} {
		if code, digits := cutProof(text); code+" "+digits != want {
			t.Errorf("%q: %q %q", text, code, digits)
		}
	}
}

// TestProofPage: the page shows the digits that are taken, under the code and in it, and asks for
// itself again when they change; its JSON has none. Without the setting there are none.
func TestProofPage(t *testing.T) {
	t.Parallel()
	s := newShop(t, proofSetup()).withCards()
	eva := s.shop.customer("eva")
	path := "/t/" + s.shop.card(eva, 0).token
	s.shop.clock = s.shop.clock/proofStep*proofStep + 50_500
	w, scanned := s.visit("GET", path), s.shop.scanned(eva)
	if digits := scanned[10:13] + nbsp + scanned[13:]; !strings.Contains(w.Body.String(), digits) || w.Header().Get("Refresh") != "70" {
		t.Errorf("Refresh %q, no %q in\n%s", w.Header().Get("Refresh"), digits, w.Body)
	}
	if !strings.Contains(w.Body.String(), string(qrPicture(scanned, s.shop.codeOf(eva), qrPixels))) {
		t.Error("the QR code is not that of the code and the digits")
	}
	if page := s.opened(path + ".json"); strings.Contains(page, scanned[10:]) {
		t.Errorf("the JSON has the digits: %s", page)
	}
	plain := newShop(t, setup{}).withCards()
	if w := plain.visit("GET", "/t/"+plain.shop.card(plain.shop.customer("eva"), 0).token); w.Header().Get("Refresh") != "" {
		t.Error("digits that nobody asks for")
	}
}

// TestProofTill: the till asks for the card, carries what was scanned to its forms, and lets somebody in
// charge go on without, who says why.
func TestProofTill(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, proofSetup())
	s.api.engine.cardsAt = cardsBase
	eva := s.shop.spender("eva")
	at := "/panel/caja/" + eva.String()
	reward := ask(s.shop, func(t *txn) (string, error) { return t.cfg.Rewards[0].ID.String(), nil })
	redeem := func(as role, fields ...string) *httptest.ResponseRecorder {
		form := url.Values{"productId": {reward}, "expectedPoints": {"20"}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return s.post(as, at+"/canje", form)
	}
	s.wants("asked", s.open(roleCashier, at).Body.String(), `action="`+at+`"`, `name="proof"`, "!"+`name="noCard"`)
	s.wants("in charge", s.open(roleManager, at).Body.String(), `name="noCard"`)
	w := redeem(roleCashier)
	s.wants("without", w.Body.String(), "Para gastar puntos hace falta la tarjeta del cliente.")
	s.wants("and asks for a scan", w.Body.String(), `<div class="faults" role="alert" tabindex="-1">`, `id="c-proof" name="proof" value="" autocomplete="off" type="text" autofocus`)
	w = redeem(roleCashier, "proof", s.shop.scanned(eva)[:10]+"000000")
	s.wants("wrong", w.Body.String(), "escanéala otra vez", "!"+`value="`+s.shop.scanned(eva)[:10]+`000000"`)

	scanned := s.shop.scanned(eva)
	found := s.get(roleCashier, "/panel/caja?"+url.Values{"q": {scanned}}.Encode()).Header().Get("Location")
	opened := s.open(roleCashier, found).Body.String()
	s.wants("scanned", opened, "Tarjeta leída", `<input type="hidden" name="proof" value="`+scanned+`">`)
	if w := redeem(roleCashier, "proof", scanned); w.Code != http.StatusSeeOther {
		t.Errorf("with the card: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
	if w := redeem(roleCashier, "noCard", "la olvidó"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a cashier without a card: %d", w.Code)
	}
	s.wants("waived", s.open(roleManager, at+"?noCard=la+olvid%C3%B3").Body.String(), "Sin tarjeta: la olvidó", `<input type="hidden" name="noCard" value="la olvidó">`)
	if w := redeem(roleManager, "noCard", "la olvidó"); w.Code != http.StatusSeeOther {
		t.Errorf("in charge, without a card: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
	s.wants("not for a cashier", s.open(roleCashier, at+"?noCard=no").Body.String(), `name="proof"`, "!Sin tarjeta", "!"+`name="noCard"`)
	s.wants("too long", s.open(roleManager, at+"?noCard="+strings.Repeat("o", maxWaived+1)).Body.String(), `name="proof"`, `<details open><summary>Sin tarjeta`, `value="ooo`, "200 caracteres", "!Sin tarjeta: ooo")
	s.wants("another's", s.open(roleCashier, at+"?proof=M00000000.000000").Body.String(), "escanéala otra vez", "!"+`type="hidden" name="proof"`)
	waived := ask(s.shop, func(t *txn) (list []*auditEntry, err error) {
		list, _, err = t.audit.entries(auditFilter{to: never, action: auditProofWaived}, page{1, 10})
		return list, err
	})
	if len(waived) != 1 || waived[0].Subject != eva.String() || waived[0].By.ID != s.users[roleManager] || waived[0].Changes[1].After != `"la olvidó"` {
		t.Errorf("the audit log says %+v", waived)
	}
	s.wants("in the audit log", s.open(roleOwner, "/panel/auditoria").Body.String(), `href="/panel/clientes/`+eva.String()+`"`)
}
