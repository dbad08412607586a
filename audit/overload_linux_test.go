package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/processtest"
)

var longOverload = flag.Bool("overload", false, "run TestOverloadLong, which takes minutes and wants the machine for itself")

// What TestOverloadLong expects of the binary.
const (
	normalClients   = 64
	overloadFactor  = 10
	maxHealth       = 50 * time.Millisecond // at the 99th percentile
	maxAnonymous    = 256 << 20             // bytes; pages of files do not count
	maxRecovery     = 5 * time.Second
	slowOfEachKind  = 1000
	maxSlowdown     = 2
	measuredTime    = 8 * time.Second
	goodClients     = 8
	goodClientPause = 5 * time.Millisecond
)

// The server's own limits: copies of those in api_inputs.go, request.go, input_json.go and limits.go.
const (
	maxItems   = 500
	maxBody    = 1 << 20
	maxMembers = 10_000
	patience   = 2 * time.Second
)

// TestOverloadLong sends the binary far more requests than it can answer, and then runs
// thousands of slow clients.
func TestOverloadLong(t *testing.T) {
	if !*longOverload {
		t.Skip("only with -overload")
	}
	s := newOverloaded(t)
	t.Run("load", func(t *testing.T) {
		for _, load := range []struct {
			name     string
			requests []string
		}{
			{"small", []string{s.add(), s.sale(1), s.balance()}},
			{"large", []string{s.sale(maxItems), s.list(), s.add()}},
			{"huge", []string{s.padded(maxBody - 200)}},
			{"worst", []string{s.members()}},
		} {
			t.Run(load.name, func(t *testing.T) { s.on(t).overload(load.requests) })
		}
	})
	t.Run("slow", func(t *testing.T) { s.on(t).slow() })
}

// An overloaded server is a process that serves one customer.
type overloaded struct {
	*testing.T
	*processtest.Process
	host, key, customer string
}

func newOverloaded(t *testing.T) *overloaded {
	t.Helper()
	till := newTill(t)
	till.ok("apply -", demoDocument(t))
	key := till.newKey("cafe-luna", "-name load -rate-limit 1000000000")
	// With a higher priority than other processes, where that is allowed.
	p, err := processtest.Start(t, exec.Command("nice", "-n", "-10", till.binary, "serve", "-db", till.db))
	if err != nil {
		t.Fatal(err)
	}
	s := &overloaded{t, p, strings.TrimSuffix(strings.TrimPrefix(p.Base, "http://"), "/api/v1"), key, enrol(t, p.Base, key, "ana@example.com")}
	c := s.dial()
	defer c.Close()
	for range 20 { // so that a list is large
		if status, body := c.ask(s.sale(maxItems)); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	return s
}

func (s *overloaded) on(t *testing.T) *overloaded {
	c := *s
	c.T = t
	return &c
}

func (s *overloaded) get(path string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", path, s.key)
}

func (s *overloaded) post(path, body string) string {
	return fmt.Sprintf("POST /api/v1%s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, s.key, len(body), body)
}

func (s *overloaded) balance() string {
	return s.get("/api/v1/points/customers/" + s.customer + "/balance")
}
func (s *overloaded) list() string { return s.get("/api/v1/transactions?limit=100") }
func (s *overloaded) add() string {
	return s.post("/points/customers/"+s.customer+"/add", `{"amount":1}`)
}

func (s *overloaded) sale(items int) string {
	item := `{"sku":"GRANO-500","price":300,"quantity":5}`
	return s.post("/transactions", fmt.Sprintf(`{"customerId":%q,"totalAmount":1500,"items":[%s]}`, s.customer, strings.Repeat(item+",", items-1)+item))
}

// padded returns a request whose body is a little larger than size, nearly all one string.
func (s *overloaded) padded(size int) string {
	return s.post("/points/customers/"+s.customer+"/add", fmt.Sprintf(`{"amount":1,"x":%q}`, strings.Repeat("x", size)))
}

// members returns the request that takes longest to parse: it has maxMembers members.
func (s *overloaded) members() string {
	var b strings.Builder
	b.WriteString(`{"amount":1`)
	for i := range maxMembers - 1 {
		fmt.Fprintf(&b, `,"%s":1`, strconv.FormatInt(int64(i), 36)+strings.Repeat("x", 90))
	}
	return s.post("/points/customers/"+s.customer+"/add", b.String()+"}")
}

// A connection is a client's connection to a server.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func (s *overloaded) dial() *connection {
	conn, err := net.Dial("tcp", s.host)
	if err != nil {
		s.Fatal(err)
	}
	return &connection{conn, bufio.NewReader(conn)}
}

// ask sends a request and returns the answer; status 0 if there is none.
func (c *connection) ask(request string) (status int, body []byte) {
	c.SetDeadline(time.Now().Add(time.Minute))
	go io.WriteString(c, request) // the server may refuse before it has read all
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, nil
	}
	body, _ = io.ReadAll(res.Body)
	return res.StatusCode, body
}

// often sends a request again and again until done is closed, with a pause after each. After
// a 503 or no answer it takes a new connection. It calls answered for each answer.
func (s *overloaded) often(done <-chan struct{}, pause time.Duration, request string, answered func(status int, took time.Duration)) {
	c := s.dial()
	for {
		select {
		case <-done:
			c.Close()
			return
		default:
		}
		began := time.Now()
		status, _ := c.ask(request)
		answered(status, time.Since(began))
		if status == 0 || status == http.StatusServiceUnavailable {
			c.Close()
			c = s.dial()
		}
		time.Sleep(pause)
	}
}

// latencies are the times that answers took, and how many there are of each status.
type latencies struct {
	sync.Mutex
	all    []time.Duration
	status map[int]int
}

func (l *latencies) add(status int, took time.Duration) {
	l.Lock()
	defer l.Unlock()
	if l.status == nil {
		l.status = map[int]int{}
	}
	l.status[status]++
	l.all = append(l.all, took)
}

func (l *latencies) percentile(p int) time.Duration {
	l.Lock()
	defer l.Unlock()
	slices.Sort(l.all)
	return l.all[(len(l.all)-1)*p/100]
}

func (l *latencies) String() string {
	return fmt.Sprintf("%d answers %v, p50 %s, p99 %s, max %s", len(l.all), l.status, l.percentile(50), l.percentile(99), l.percentile(100))
}

var anonymous = regexp.MustCompile(`(?m)^RssAnon:\s*(\d+) kB$`)

// memory returns how many bytes of the server's resident memory are not pages of files.
func (s *overloaded) memory() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	m := anonymous.FindSubmatch(status)
	if m == nil {
		s.Skip("this kernel does not tell RssAnon")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n << 10
}

// overload sends the requests in turn on ten times as many connections as usual, from
// another process. Meanwhile it watches the server's health and memory, and afterwards its
// recovery.
func (s *overloaded) overload(requests []string) {
	load := s.mob(mob{Host: s.host, Clients: normalClients * overloadFactor, Requests: requests})
	time.Sleep(time.Second)
	done := make(chan struct{})
	var live, ready, idle latencies
	var most int
	var wait sync.WaitGroup
	wait.Go(func() { s.often(done, 20*time.Millisecond, s.get("/livez"), live.add) })
	wait.Go(func() { s.often(done, 20*time.Millisecond, s.get("/readyz"), ready.add) })
	wait.Go(func() { most = s.mostMemory(done) })
	wait.Go(func() { s.bystand(done, idle.add) })
	time.Sleep(measuredTime)
	close(done)
	wait.Wait()
	answers := load.end()
	recovery := s.recovery()
	s.Logf("load: %v\nlivez: %s\nreadyz: %s\nmemory: %d MiB\nrecovery: %s\nbystander: %s", answers, &live, &ready, most>>20, recovery, &idle)
	allowed := maxHealth + idle.percentile(99) // idle is the machine's own delay
	for _, l := range []*latencies{&live, &ready} {
		if l.percentile(99) > allowed || len(l.status) != 1 || l.status[200] == 0 {
			s.Errorf("health: %s", l)
		}
	}
	if most > maxAnonymous {
		s.Errorf("%d MiB of memory", most>>20)
	}
	if recovery > maxRecovery {
		s.Errorf("recovery took %s", recovery)
	}
	if answers[http.StatusInternalServerError] > 0 || answers[http.StatusOK]+answers[http.StatusCreated] == 0 {
		s.Errorf("answers: %v", answers)
	}
}

// bystand measures how busy the machine is: how late a server without work answers.
func (s *overloaded) bystand(done <-chan struct{}, late func(int, time.Duration)) {
	noop, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Error(err)
		return
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	defer server.Close()
	go server.Serve(noop)
	other := *s
	other.host = noop.Addr().String()
	other.often(done, 20*time.Millisecond, s.get("/livez"), late)
}

// mostMemory measures memory until done is closed and returns the most that it saw.
func (s *overloaded) mostMemory(done <-chan struct{}) (most int) {
	for {
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
			most = max(most, s.memory())
		}
	}
}

// recovery returns how long it takes until ten writes in a row succeed, each within maxHealth.
func (s *overloaded) recovery() time.Duration {
	began := time.Now()
	c := s.dial()
	defer c.Close()
	for good := 0; good < 10 && time.Since(began) < time.Minute; good++ {
		asked := time.Now()
		if status, _ := c.ask(s.add()); status != http.StatusCreated || time.Since(asked) > maxHealth {
			good = -1
		}
	}
	return time.Since(began)
}

// slow makes three comparisons and checks the median.
func (s *overloaded) slow() {
	var times []float64
	for range 3 {
		times = append(times, s.compare())
	}
	slices.Sort(times)
	if times[1] > maxSlowdown {
		s.Errorf("good clients' p99 became %.1f times what it was", times)
	}
}

// compare measures good clients alone, and beside three thousand that are slow in sending
// headers, in sending bodies and in reading answers. It returns how many times slower the
// good ones become.
func (s *overloaded) compare() float64 {
	alone := s.good()
	body := s.padded(1 << 19)
	load := s.mob(mob{Host: s.host, Clients: slowOfEachKind, Slow: true, Requests: []string{
		s.balance(), body[:strings.Index(body, "\r\n\r\n")+4], s.list(),
	}})
	time.Sleep(2*time.Second + 2*patience) // until they are all stuck
	done := make(chan struct{})
	most := make(chan int)
	go func() { most <- s.mostMemory(done) }()
	beside := s.good()
	close(done)
	memory := <-most
	cut := load.end()
	s.Logf("alone: %s\nbeside slow ones: %s\nmemory: %d MiB; slow ones: %v", alone, beside, memory>>20, cut)
	if len(alone.status) != 1 || len(beside.status) != 1 {
		s.Errorf("good clients got %v, and beside slow ones %v", alone.status, beside.status)
	}
	if memory > maxAnonymous {
		s.Errorf("%d MiB of memory", memory>>20)
	}
	return float64(beside.percentile(99)) / float64(alone.percentile(99))
}

// good measures clients that pause between requests.
func (s *overloaded) good() *latencies {
	l := new(latencies)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for range goodClients {
		wait.Go(func() { s.often(done, goodClientPause, s.balance(), l.add) })
	}
	time.Sleep(measuredTime)
	close(done)
	wait.Wait()
	return l
}

// A mob is the load that another process puts on the server until the process's standard
// input ends. Then the process writes how many answers of each status it got.
type mob struct {
	Host     string
	Clients  int
	Requests []string // dealt to the clients in turn; if Slow, each has Clients clients
	Slow     bool
}

type runningMob struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bytes.Buffer
}

// mobVariable is the environment variable that makes this test binary a mob.
const mobVariable = "SELLO_TEST_MOB"

// mob starts the process of a mob. It has a lower priority than the server, since real
// clients have processors of their own.
func (s *overloaded) mob(c mob) *runningMob {
	s.Helper()
	r := &runningMob{s.T, exec.Command("nice", "-n", "10", os.Args[0], "-test.run", "^TestMob$"), nil, new(bytes.Buffer)}
	r.cmd.Env = append(os.Environ(), mobVariable+"=1")
	r.cmd.Stdout, r.cmd.Stderr = r.out, os.Stderr
	stdin, err := r.cmd.StdinPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err == nil {
		err = json.NewEncoder(stdin).Encode(c)
	}
	if err != nil {
		s.Fatal(err)
	}
	r.stdin = stdin
	return r
}

func (r *runningMob) end() (answers map[int]int) {
	r.stdin.Close()
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("%v\n%s", err, r.out)
	}
	if err := json.NewDecoder(r.out).Decode(&answers); err != nil {
		r.t.Fatal(err)
	}
	return answers
}

// TestMob is not a test: it is what the process of a mob runs.
func TestMob(t *testing.T) {
	if os.Getenv(mobVariable) == "" {
		t.Skip("not a mob")
	}
	var c mob
	d := json.NewDecoder(os.Stdin)
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var l latencies
	s := &overloaded{T: t, host: c.Host}
	for i, request := range c.Requests {
		for n := range c.Clients {
			switch {
			case c.Slow:
				go s.slowly(done, i, request, l.add)
			case n%len(c.Requests) == i:
				go s.often(done, 0, request, l.add)
			}
		}
	}
	io.Copy(io.Discard, os.Stdin)
	close(done)
	l.Lock()
	json.NewEncoder(os.Stdout).Encode(l.status)
	os.Exit(0)
}

// slowly sends and reads slowly, and begins again when it is cut off. Kind 0 sends the
// header a byte a second. Kind 1 sends the header at once, then a byte of the body a second.
// Kind 2 sends all at once. All read 16 bytes a second.
func (s *overloaded) slowly(done <-chan struct{}, kind int, request string, answered func(int, time.Duration)) {
	for {
		began := time.Now()
		c := s.dial()
		slow := request // what is sent a byte a second
		if kind > 0 {
			c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			io.WriteString(c, request)
			slow = strings.Repeat(" ", 1000)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for buf := make([]byte, 16); ; {
				if _, err := c.Read(buf); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		for at := 0; at < len(slow)-1; at++ {
			select {
			case <-done:
				return
			case <-gone:
				at = len(slow)
			case <-time.After(time.Second):
				if kind < 2 {
					io.WriteString(c, slow[at:at+1])
				}
			}
		}
		answered(kind, time.Since(began))
		c.Close()
	}
}
