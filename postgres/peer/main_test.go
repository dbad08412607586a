package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"sello/postgres/pgtest"
)

// TestPeer checks that the peer does what it is compared for.
func TestPeer(t *testing.T) {
	for _, form := range []string{inTrips, inBatch, inStatement} {
		pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		customer, nobody := newID().String(), newID().String()
		if err := fill(t.Context(), pool, setup{"k", []string{customer}}); err != nil {
			t.Fatal(err)
		}
		h := (&server{pool: pool, form: form, keys: map[[32]byte]knownKey{}}).handler()
		first := ""
		for _, x := range []struct {
			key, customer, name, body string
			status                    int
			balance                   int64
			reason                    string
		}{
			{"k", customer, "a", `{"amount":5,"category":"Bonus"}`, 201, 5, "an add"},
			{"k", customer, "a", `{"amount":5,"category":"Bonus"}`, 201, 5, "the same again"},
			{"k", customer, "a", `{"amount":6,"category":"Bonus"}`, 422, 0, "another one of the same name"},
			{"k", customer, "b", `{"amount":5,"category":"Bonus"}`, 201, 10, "another name"},
			{"k", customer, "c", `{"amount":0}`, 400, 0, "nothing to add"},
			{"k", nobody, "d", `{"amount":5}`, 404, 0, "no such customer"},
			{"k", customer, "d", `{"amount":5}`, 201, 15, "a name that was refused"},
			{"l", customer, "e", `{"amount":5}`, 401, 0, "no such key"},
		} {
			r := httptest.NewRequest("POST", "/api/v1/points/customers/"+x.customer+"/add", strings.NewReader(x.body))
			r.Header.Set("Authorization", "Bearer "+x.key)
			r.Header.Set("Idempotency-Key", x.name)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var m movement
			if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != x.status || m.Balance != x.balance {
				t.Errorf("%s: %d %s", x.reason, w.Code, w.Body)
			}
			if x.name == "a" && x.status == 201 {
				if first != "" && first != w.Body.String() {
					t.Errorf("%s: %s, first %s", x.reason, w.Body, first)
				}
				first = w.Body.String()
			}
		}
		r := httptest.NewRequest("GET", "/api/v1/points/customers/"+customer+"/balance", nil)
		r.Header.Set("Authorization", "Bearer k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var b balance
		if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil || w.Code != 200 || b.Balance != 15 || b.LifetimePoints != 15 {
			t.Errorf("balance: %d %s", w.Code, w.Body)
		}
		var rows string
		err = pool.QueryRow(t.Context(), `SELECT concat_ws(' ', (SELECT count(*) FROM ledger), (SELECT count(*) FROM idempotency), (SELECT count(*) FROM event))`).Scan(&rows)
		if err != nil || rows != "3 3 3" {
			t.Errorf("rows %s, %v", rows, err)
		}
	}
}
