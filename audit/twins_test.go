package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTwinsAcrossKills sends the same requests with the same key many times at once, in two
// organizations. It kills the server meanwhile and sends them again to the next. Each
// organization must carry each request out once and answer all its twins with the same bytes.
func TestTwinsAcrossKills(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	v := newVictim(t, seed, builtBinary(t))
	v.ok("apply -", strings.Replace(victimDocument, "cafe-luna", "tienda", 1))
	shops := twinShops{{victim: v, apiKey: v.key}, {victim: v, apiKey: v.newKey("tienda", "-name b -rate-limit 1000000000")}}
	for _, s := range shops {
		s.customer = enrol(t, v.server.Base, s.apiKey, "ana@example.com")
	}
	if shops[0].customer == shops[1].customer {
		t.Error("two organizations have one customer")
	}
	for round := range 3 {
		shops.round(t, round)
	}
	t.Run("twins without a key, which is to be noticed", func(t *testing.T) {
		s := shops[0]
		before := s.entries()
		answers := s.twins(10, "", s.addPath(), twinBody, func() {})
		if n := s.entries() - before; n != 10 || oneAnswer(answers) == nil {
			t.Errorf("they were carried out %d times, and their answers are taken for one", n)
		}
	})
	v.wantStopped()
}

const (
	twins    = 200 // in each organization, before the kill and again after it
	twinBody = `{"amount":7.5}`
)

// twinShops are the organizations of one victim.
type twinShops []*twinShop

// A twinShop is one organization of a victim.
type twinShop struct {
	*victim
	apiKey, customer string

	adds, enrolments []twinAnswer // of the round
}

// round sends twins, kills the server, and sends them again.
func (shops twinShops) round(t *testing.T, round int) {
	t.Helper()
	v := shops[0].victim
	var before []int
	for _, s := range shops {
		before = append(before, s.entries())
		s.adds, s.enrolments = nil, nil
	}
	server := v.server
	last := 1 + v.rng.Int64N(twins) // the server is killed at this answer
	var answered atomic.Int64
	shops.all(round, func() {
		if answered.Add(1) == last {
			server.Process.Kill()
		}
	})
	if server.Kill(); answered.Load() < last {
		t.Errorf("%d answers came of %d", answered.Load(), last)
	}
	v.start()
	shops.all(round, func() {})
	t.Logf("killed at the answer %d of %d; %d came", last, 2*(twins+twins/4), answered.Load())
	for i, s := range shops {
		if err := errors.Join(oneAnswer(s.adds), oneAnswer(s.enrolments)); err != nil {
			t.Errorf("organization %d: %v", i+1, err)
		}
		if n := s.entries() - before[i]; n != 1 {
			t.Errorf("organization %d: %d twins were carried out %d times", i+1, 2*twins, n)
		}
	}
	if err := oneAnswer(append(shops[0].enrolments, shops[1].enrolments...)); err == nil {
		t.Error("two organizations share an answer")
	}
}

// all sends the twins of a round. The enrolments of the two organizations differ only in
// the API key.
func (shops twinShops) all(round int, whenAnswered func()) {
	key, newcomer := fmt.Sprint("round ", round), fmt.Sprintf(`{"email":"new%d@example.com"}`, round)
	var wait sync.WaitGroup
	for _, s := range shops {
		wait.Go(func() { s.adds = append(s.adds, s.twins(twins, key, s.addPath(), twinBody, whenAnswered)...) })
		wait.Go(func() {
			s.enrolments = append(s.enrolments, s.twins(twins/4, key+" new", "/customers", newcomer, whenAnswered)...)
		})
	}
	wait.Wait()
}

func (s *twinShop) addPath() string { return "/points/customers/" + s.customer + "/add" }

// entries returns how many entries the customer's ledger has.
func (s *twinShop) entries() int {
	s.Helper()
	n, err := newClient(s.server.Base, s.apiKey, 1).total("/points/customers/" + s.customer + "/movements")
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// A twinAnswer is the answer to one twin, or err if there was none.
type twinAnswer struct {
	status   int
	body     string
	replayed bool
	err      error
}

// twins sends one request many times at once, with an Idempotency-Key unless that is "".
func (s *twinShop) twins(n int, key, path, body string, whenAnswered func()) []twinAnswer {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	answers := make([]twinAnswer, n)
	base := s.server.Base
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			req, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
			if err != nil {
				answers[i].err = err
				return
			}
			req.GetBody = nil // or net/http would send it again by itself
			req.Header.Set("X-API-Key", s.apiKey)
			req.Header.Set("Content-Type", "application/json")
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			if answers[i] = askTwin(client, req); answers[i].err == nil {
				whenAnswered()
			}
		})
	}
	wait.Wait()
	return answers
}

func askTwin(client *http.Client, req *http.Request) (a twinAnswer) {
	res, err := client.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return twinAnswer{res.StatusCode, string(text), res.Header.Get("Idempotency-Replayed") == "true", err}
}

// oneAnswer returns an error unless all answers are the same 201 and at most one of them is
// no replay. Errors and 503s do not count as answers, but there must be an answer.
func oneAnswer(answers []twinAnswer) error {
	var first *twinAnswer
	fresh := 0
	for i := range answers {
		a := &answers[i]
		if a.err != nil || a.status == http.StatusServiceUnavailable {
			continue
		}
		if !a.replayed {
			fresh++
		}
		if first == nil {
			first = a
		}
		if a.status != http.StatusCreated || a.body != first.body {
			return fmt.Errorf("one got %d %s, another %d %s", first.status, first.body, a.status, a.body)
		}
	}
	if first == nil || fresh > 1 {
		return fmt.Errorf("%d answers of %d are the first", fresh, len(answers))
	}
	return nil
}
