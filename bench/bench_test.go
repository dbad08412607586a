package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values []int
		q      float64
		want   int
		reason string
	}{
		{[]int{1, 2, 3, 4}, 0.5, 2, "half of them do not exceed it"},
		{[]int{1, 2, 3}, 0.5, 2, "the middle"},
		{[]int{1, 2, 3}, 1, 3, "the greatest"},
		{[]int{1, 2, 3}, 0, 1, "the least"},
		{nil, 0.5, 0, "of nothing"},
	} {
		if got := quantile(c.values, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, not %v: %s", c.values, c.q, got, c.want, c.reason)
		}
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median is %v", m)
	}
	for want, values := range map[string][]float64{
		"3.00 (2.00 to 4.00)": {5, 1, 4, 2, 3},
		"2.50 (1.50 to 3.50)": {4, 1, 3, 2},
		"7.00 (7.00 to 7.00)": {7},
	} {
		if got := withQuartiles(values); got != want {
			t.Errorf("%v: %s, not %s", values, got, want)
		}
	}
	if l := latencyOf(1234567 * time.Nanosecond); l.duration() != 1234500*time.Nanosecond {
		t.Errorf("latency is %v", l.duration())
	}
}

func TestParseHead(t *testing.T) {
	for _, c := range []struct {
		head           string
		status, length int
		ok             bool
	}{
		{"HTTP/1.1 201 Created\r\nContent-Length: 17\r\nDate: x\r\n", 201, 17, true},
		{"HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 0\r\n", 404, 0, true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", 200, 0, false},
		{"SSH-2.0-x\r\n", 0, 0, false},
	} {
		status, length, err := parseHead([]byte(c.head))
		if (err == nil) != c.ok || c.ok && (status != c.status || length != c.length) {
			t.Errorf("%q: %d, %d, %v", c.head, status, length, err)
		}
	}
}

// TestClient sends every kind of request to the bound, which reads requests as any
// server would and answers in pieces that the client has to join.
func TestClient(t *testing.T) {
	page := customerPage{Data: make([]customerItem, 100)}
	server := httptest.NewServer(boundHandler(boundSetup{strings.Repeat("x", 5000), page}))
	defer server.Close()
	a := &audience{key: "k", ids: []id{{1}, {2}}}
	r := rand.New(rand.NewPCG(1, 2))
	c, err := dial(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, w := range []work{a.balance(), a.add(), a.one(), a.plainAdd(func() id { return id{} }), a.get("/page"), a.add()} {
		status, body, err := c.do(w.next(nil, r))
		if err != nil || status != w.status {
			t.Fatalf("%s: %d, %v", w.name, status, err)
		}
		if w.name == "/page" {
			var got customerPage
			if err := json.Unmarshal(body, &got); err != nil || len(got.Data) != 100 {
				t.Errorf("the page: %v", err)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	server := httptest.NewServer(boundHandler(boundSetup{}))
	defer server.Close()
	a := &audience{key: "k", ids: []id{{1}}}
	sum := func(o *outcome) (n int) {
		for _, s := range o.each {
			n += len(s)
		}
		return n
	}
	p := &process{addr: server.Listener.Addr().String()}
	l := &load{works: []work{a.balance(), a.add()}, conns: 4, span: 50 * time.Millisecond}
	o, err := l.run(context.Background(), p)
	for err != nil && l.span < time.Minute { // a machine may be too busy to answer in time
		l.span *= 4
		o, err = l.run(context.Background(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.count == 0 || o.all < o.count || len(o.each) > 0 && sum(o) != o.count {
		t.Errorf("%d requests, %d in the span, %d in its seconds", o.all, o.count, sum(o))
	}
	wrong := a.balance()
	wrong.status = 204
	l.works = []work{wrong}
	if _, err := l.run(context.Background(), p); err == nil {
		t.Error("an answer with another status went unnoticed")
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	p.addr = nobody.Addr().String()
	if _, err := l.run(context.Background(), p); err == nil {
		t.Error("a server that is not there went unnoticed")
	}
}

// TestPeople checks that addresses and phones are unique, that every customer has a
// turn, and that a thousand have the rare surname.
func TestPeople(t *testing.T) {
	const customers = 20_000
	seen, turns, rare := map[string]bool{}, map[int64]bool{}, 0
	for i := range int64(customers) {
		p := personOf(i, customers)
		if seen[p.email] || seen[p.phone] {
			t.Fatalf("%v is there twice", p)
		}
		seen[p.email], seen[p.phone], turns[turn(i, customers)] = true, true, true
		if strings.Contains(p.last, rareSurname) {
			rare++
		}
	}
	if len(turns) != customers || rare != 1000 {
		t.Errorf("%d have a turn, %d the rare surname", len(turns), rare)
	}
}

func TestPlot(t *testing.T) {
	svg := string(drawSizes([]sizeReport{
		{Customers: 1000, PerSecond: map[string]float64{"a": 5, "b": 7}, Millis: map[string]float64{"c<d": 0.5}},
		{Customers: 100000, PerSecond: map[string]float64{"a": 4, "b": 7}, Millis: map[string]float64{"c<d": 20}},
	}))
	if !strings.HasSuffix(svg, "</svg>\n") || strings.Contains(svg, "NaN") || !strings.Contains(svg, "c&lt;d") {
		t.Error(svg)
	}
}
