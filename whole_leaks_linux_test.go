package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var leaksFull = flag.Bool("leaks", false, "look for leaks with many more requests")

// TestLeaks checks that many requests, and many connections that break at each stage,
// leave the server with no more goroutines and descriptors than before.
func TestLeaks(t *testing.T) {
	requests, broken := 2_000, 500
	if *leaksFull {
		requests, broken = 100_000, 10_000
	}
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	key, _ := s.key("-name prueba -rate-limit 1000000000")
	r, _ := s.start("serve")
	addr := strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1")
	status, body := r.send(http.MethodPost, "/customers", key, `{"email":"ana@example.com"}`)
	ana := between(body, `"id":"`, `"`)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	l := &leakLoad{addr: addr, head: "Host: x\r\nX-API-Key: " + key + "\r\n", customer: ana}
	l.ask(t, 200) // makes what the server makes only once
	l.breakOff(t, 50)
	http.DefaultClient.CloseIdleConnections()
	before := settledUse()

	l.ask(t, requests)
	l.breakOff(t, broken)
	began := time.Now()
	if after, ok := comesBackTo(before, 60*time.Second); !ok {
		t.Errorf("before: %s; after: %s\n%s", before, after, stacks())
	} else {
		t.Logf("%d requests, %d broken connections; before: %s; after: %s, %s later", requests, broken, before, after, time.Since(began).Round(time.Millisecond))
	}
	if n := int(l.answered.Load()); n < requests {
		t.Errorf("%d answers to %d requests", n, requests)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestLeaksControl has a handler leak on some of the connections that break. The
// leak must be noticed.
func TestLeaksControl(t *testing.T) {
	for name, leak := range map[string]func(release chan struct{}){
		"goroutine": func(release chan struct{}) { go func() { <-release }() },
		"descriptor": func(release chan struct{}) {
			f, err := os.Open(os.DevNull)
			if err != nil {
				panic(err)
			}
			go func() { <-release; f.Close() }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			var leaking atomic.Bool
			var n atomic.Int64
			_, addr := serveLocally(t, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); leaking.Load() && (n.Add(1)%20 == 0 || err != nil) {
					leak(release)
				}
			})
			l := &leakLoad{addr: addr, head: "Host: x\r\n", customer: "x"}
			l.breakOff(t, 30)
			before := settledUse()
			leaking.Store(true)
			l.breakOff(t, 60)
			if after, ok := comesBackTo(before, 100*time.Millisecond); ok {
				t.Errorf("not caught: before: %s; after: %s", before, after)
			}
		})
	}
}

// resources are what a process has in use.
type resources struct{ goroutines, descriptors int }

func (u resources) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors", u.goroutines, u.descriptors)
}

func inUse() resources {
	files, _ := os.ReadDir("/proc/self/fd")
	return resources{runtime.NumGoroutine(), len(files)}
}

// settledUse returns what is in use once that has not fallen for 150 ms.
func settledUse() resources {
	least := inUse()
	for calm := 0; calm < 15; calm++ {
		time.Sleep(10 * time.Millisecond)
		if now := inUse(); now.goroutines < least.goroutines || now.descriptors < least.descriptors {
			least, calm = resources{min(now.goroutines, least.goroutines), min(now.descriptors, least.descriptors)}, 0
		}
	}
	return least
}

// comesBackTo waits until no more is in use than before, but no longer than limit. ok
// reports whether that was reached.
func comesBackTo(before resources, limit time.Duration) (now resources, ok bool) {
	for until := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		now = inUse()
		ok = now.goroutines <= before.goroutines && now.descriptors <= before.descriptors
		if ok || time.Now().After(until) {
			return now, ok
		}
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 64<<10)
	return string(b[:runtime.Stack(b, true)])
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// A leakLoad is the load that clients put on a server.
type leakLoad struct {
	addr, head, customer string
	answered             atomic.Int64
}

const leakClients = 8

// request returns the request numbered i. Of fifty, 46 read a balance or search, one
// adds points, and three are refused.
func (l *leakLoad) request(i int) string {
	get := func(path string) string { return "GET /api/v1" + path + " HTTP/1.1\r\n" + l.head + "\r\n" }
	switch i % 50 {
	case 0:
		return l.post()
	case 1:
		return get("/customers/nadie")
	case 2:
		return get("/nada")
	case 3:
		return "GET /api/v1/customers HTTP/1.1\r\nHost: x\r\n\r\n" // without a key
	case 4:
		return get("/customers?search=ana")
	}
	return get("/points/customers/" + l.customer + "/balance")
}

func (l *leakLoad) post() string {
	body := `{"amount":1,"category":"Bonus"}`
	return fmt.Sprintf("POST /api/v1/points/customers/%s/add HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", l.customer, l.head, len(body), body)
}

// ask sends n requests over leakClients connections and reads the answers.
func (l *leakLoad) ask(t *testing.T, n int) {
	var wait sync.WaitGroup
	for c := range leakClients {
		wait.Go(func() {
			conn, err := l.dial()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			lines := bufio.NewReader(conn)
			for i := c; i < n; i += leakClients {
				io.WriteString(conn, l.request(i))
				if err := readWhole(lines); err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				l.answered.Add(1)
			}
		})
	}
	wait.Wait()
}

func readWhole(r *bufio.Reader) error {
	res, err := http.ReadResponse(r, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return err
}

func (l *leakLoad) dial() (*net.TCPConn, error) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return conn.(*net.TCPConn), nil
}

// breakOff opens n connections and breaks each at one of the stages.
func (l *leakLoad) breakOff(t *testing.T, n int) {
	get, post := l.request(5), l.post()
	stages := []func(*net.TCPConn){
		func(*net.TCPConn) {},
		func(c *net.TCPConn) { io.WriteString(c, get[:len(get)/2]) },
		func(c *net.TCPConn) { io.WriteString(c, get[:7]); c.SetLinger(0) },
		func(c *net.TCPConn) { io.WriteString(c, post[:len(post)-9]) },
		func(c *net.TCPConn) { io.WriteString(c, post[:len(post)-9]); c.SetLinger(0) },
		func(c *net.TCPConn) { io.WriteString(c, post); c.SetLinger(0) },
		func(c *net.TCPConn) { io.WriteString(c, strings.Repeat(get, 20)) }, // reads no answer
		func(c *net.TCPConn) { io.WriteString(c, get); readWhole(bufio.NewReader(c)) },
		func(c *net.TCPConn) { io.WriteString(c, get); readWhole(bufio.NewReader(c)); c.SetLinger(0) },
		func(c *net.TCPConn) { io.WriteString(c, get); c.Read(make([]byte, 10)) },
		func(c *net.TCPConn) { io.WriteString(c, get[:7]); c.CloseWrite(); io.Copy(io.Discard, c) },
		func(c *net.TCPConn) {
			io.WriteString(c, strings.Replace(post, "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1)[:len(post)-20])
		},
		func(c *net.TCPConn) {
			io.WriteString(c, strings.Replace(post, "Content-Length", "Transfer-Encoding: chunked\r\nX", 1)+"5\r\n")
		},
		func(c *net.TCPConn) { io.WriteString(c, "\x16\x03\x01\x00\n\n") },
	}
	var wait sync.WaitGroup
	for c := range leakClients {
		wait.Go(func() {
			for i := c; i < n; i += leakClients {
				conn, err := l.dial()
				if err != nil {
					t.Error(err)
					return
				}
				stages[i/leakClients%len(stages)](conn)
				conn.Close()
			}
		})
	}
	wait.Wait()
}
