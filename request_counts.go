package main

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sello/internal/metrics"
)

// What -metrics tells of requests. Every series is made before the first request, from the
// routes' patterns, the known methods and the statuses of the API. So counting a request
// takes a few atomic additions, and nothing that a client sends can add a series.

// requestCounts are the series of the public API.
type requestCounts struct {
	routes  []routeCounts // as in api.routes, then one for each of the methods, of requests without a route
	mapped  int           // how many of them are of api.routes
	numbers [600]uint8    // a status's place in routeCounts.statuses; 0 is of the unknown ones

	limits      [len(countedLimits)]*metrics.Counter
	unavailable [len(unavailableCauses)]*metrics.Counter
}

// routeCounts are the series of one route.
type routeCounts struct {
	statuses []*metrics.Counter
	seconds  *metrics.Histogram
}

// countedMethods are the methods by which requests without a route are counted.
var countedMethods = [...]string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace, "other",
}

// noRoute is the route of a request that has none.
const noRoute = "none"

// countedLimits are the limits that refuse requests.
var countedLimits = [...]struct {
	code errorCode
	name string
}{
	{codeRateLimitMinute, "minute"}, {codeRateLimitDay, "day"}, {codeRateLimitMonth, "month"},
	{codeRateLimitSource, "source"}, {codePointsBudgetExceeded, "points_budget"},
}

// unavailableCauses are the causes of a 503, as causeOf numbers them.
var unavailableCauses = [...]string{"other", "clock", "queue", "room", "store", "stopping", "not_ready"}

const (
	causeOther = iota
	causeClock
	causeQueue
	causeRoom
	causeStore
	causeStopping
	causeNotReady
)

// requestBounds are the buckets for durations of requests. A GET takes a fraction of a
// millisecond, a write a flush of the disk.
var requestBounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 25 * time.Second,
}

// newRequestCounts registers the series of requests to routes with these patterns, as
// http.ServeMux takes them.
func newRequestCounts(r *metrics.Registry, patterns []string) *requestCounts {
	c := &requestCounts{mapped: len(patterns)}
	known := map[int]bool{http.StatusOK: true, http.StatusCreated: true, http.StatusNotModified: true}
	for _, code := range errorTable {
		known[code.status] = true
	}
	statuses := slices.Sorted(maps.Keys(known))
	for i, status := range statuses {
		c.numbers[status] = uint8(i + 1)
	}
	for _, pattern := range patterns {
		method, path, _ := strings.Cut(pattern, " ")
		c.routes = append(c.routes, newRouteCounts(r, method, path, statuses))
	}
	for _, method := range countedMethods {
		c.routes = append(c.routes, newRouteCounts(r, method, noRoute, statuses))
	}
	for i, limit := range countedLimits {
		c.limits[i] = r.Counter("sello_limit_refusals_total",
			"Requests refused by a limit: of a key's requests in a minute, day or month, of refusals by source, or of the points that a key may give.",
			"limit", limit.name)
	}
	for i, cause := range unavailableCauses {
		c.unavailable[i] = r.Counter("sello_http_unavailable_total",
			"Requests answered with 503, by cause: an unsafe clock, a full write queue, no room for large requests, a store that takes no writes, a server that stops, a readiness probe of a server that is not ready.",
			"cause", cause)
	}
	return c
}

// newRouteCounts registers the series of one route. Statuses appear once they are
// answered. The server's own faults are there from the beginning: a series that began with
// the first fault would show no increase.
func newRouteCounts(r *metrics.Registry, method, path string, statuses []int) routeCounts {
	counter := func(status string) *metrics.Counter {
		return r.Counter("sello_http_requests_total", "Requests answered, by route and status. HEAD counts as GET where there is a route.",
			"method", method, "route", path, "status", status)
	}
	c := routeCounts{statuses: []*metrics.Counter{counter("other").WhenUsed()}}
	for _, status := range statuses {
		n := counter(strconv.Itoa(status))
		if path == noRoute || status != http.StatusInternalServerError && status != http.StatusServiceUnavailable {
			n.WhenUsed()
		}
		c.statuses = append(c.statuses, n)
	}
	c.seconds = r.Histogram("sello_http_request_duration_seconds",
		"Time from a request's head to the last byte of its answer, by route.", requestBounds, "method", method, "route", path).WhenUsed()
	return c
}

// answered counts a request. route is its place in api.routes; -1: it has none.
func (c *requestCounts) answered(route int, method string, status int, took time.Duration) {
	if route < 0 {
		route = c.mapped + slices.Index(countedMethods[:], knownMethod(method))
	}
	of, number := &c.routes[route], uint8(0)
	if 0 <= status && status < len(c.numbers) {
		number = c.numbers[status]
	}
	of.statuses[number].Inc()
	of.seconds.Observe(took)
}

// failed counts an error by its limit or its cause, if it has one.
func (c *requestCounts) failed(code errorCode, err error) {
	if code.status == http.StatusServiceUnavailable {
		c.unavailable[causeOf(code, err)].Inc()
		return
	}
	if code.status != http.StatusTooManyRequests && code.status != http.StatusForbidden {
		return
	}
	for i, limit := range countedLimits {
		if code == limit.code {
			c.limits[i].Inc()
		}
	}
}

// causeOf returns the cause of a 503.
func causeOf(code errorCode, err error) int {
	_, told := errors.AsType[*apiError](err)
	switch {
	case code == codeClockUnsafe:
		return causeClock
	case told:
		return causeNotReady
	case errors.Is(err, errBusy):
		return causeQueue
	case errors.Is(err, errNoRoom):
		return causeRoom
	case errors.Is(err, errUnavailable):
		return causeStore
	case errors.Is(err, errClosed):
		return causeStopping
	}
	return causeOther
}

// knownMethod returns m if it is a standard method, and "other" for an invented one.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "other"
}
