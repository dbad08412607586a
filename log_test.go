package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/logline"
)

// TestLogLine compares the line of a request with what slog writes.
func TestLogLine(t *testing.T) {
	t.Parallel()
	histories(t, 300, func(t *testing.T, rnd *rand.Rand) {
		x := &exchange{
			status: 100 + rnd.IntN(500), route: pick(rnd, "", "/livez", "/api/v1/customers/{customerId}"), key: pick(rnd, "", id{1}.String()),
			organization: pick(rnd, "", "cafe-luna"), code: pick(rnd, "", "internal"),
		}
		var requestID []byte
		for range 1 + rnd.IntN(128) {
			requestID = append(requestID, byte(' '+rnd.IntN(95)))
		}
		x.requestID[0] = string(requestID)
		x.started = time.UnixMicro(rnd.Int64N(1 << 50))
		took := time.Duration(rnd.Int64N(pick[int64](rnd, 2, 1e4, 1e7, 1e11)))
		ended := x.started.Add(took)
		r := &http.Request{Method: pick(rnd, "GET", "POST", "SECRETO\n")}

		want := []slog.Attr{
			slog.String("requestId", x.requestID[0]), slog.String("method", knownMethod(r.Method)), slog.Int("status", x.status),
			slog.Float64("ms", float64(took.Microseconds())/1000),
		}
		for _, a := range []slog.Attr{
			slog.String("route", x.route), slog.String("key", x.key), slog.String("organization", x.organization), slog.String("code", x.code),
		} {
			if a.Value.String() != "" {
				want = append(want, a)
			}
		}
		record := slog.NewRecord(ended, slog.LevelInfo, "request", 0)
		record.AddAttrs(want...)
		var line bytes.Buffer
		if err := slog.NewJSONHandler(&line, nil).Handle(context.Background(), record); err != nil {
			t.Fatal(err)
		}
		if got := string(x.appendLogLine(nil, r, ended)); got != line.String() {
			t.Fatalf("got %swant %s", got, &line)
		}
	})
}

// TestLogFlags checks which lines are written.
func TestLogFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from   int
		status []int
	}{{0, []int{200, 404, 503}}, {http.StatusInternalServerError, []int{503}}, {unlogged, nil}} {
		var log strings.Builder
		lines := logline.NewWriter(&log)
		a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
		a.lines, a.loggedFrom = lines, test.from
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/livez", "", ""))
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/nada", "", ""))
		a.engine.store.refusing.Store(true)
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/readyz", "", ""))
		lines.Close()
		var got []int
		for line := range strings.Lines(log.String()) {
			var l struct{ Status int }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Status)
		}
		if !slices.Equal(got, test.status) {
			t.Errorf("from %d: lines of %v, want %v", test.from, got, test.status)
		}
	}
	s := newTill(t)
	for _, line := range []string{"serve -log-level debug", "serve -log-level INFO", "serve -log-requests no", "serve -log-requests=true"} {
		if code, _, errs := s.run(line); code != 2 || !strings.Contains(errs, "-"+strings.Fields(strings.ReplaceAll(line, "=", " "))[1][1:]) {
			t.Errorf("sello %s: exit %d, %s", line, code, errs)
		}
	}
}
