package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
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
