package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fault is what happens to a request on its way.
type fault string

const (
	hang  fault = "hang" // no answer ever
	lost  fault = "lost" // the request arrives, and the connection breaks before the answer
	half  fault = "half" // the connection breaks within the answer
	busy  fault = "503"  // refused, with Retry-After
	often fault = "429"  // the same
)

const retryAfter = 2 * time.Second

// A lossy is a bad network in front of a server. The first requests to each path meet its
// faults. It notes what a client must not do.
type lossy struct {
	base, server string // URLs

	mu     sync.Mutex
	faults map[string][]fault   // left, by method and path
	sent   map[string][2]string // the key and body of a POST, by path; nil after check
	until  map[string]time.Time // when a refused request may be sent again
	wrong  []string
}

func newLossy(t *testing.T, base string) *lossy {
	host, path, _ := strings.Cut(strings.TrimPrefix(base, "http://"), "/")
	l := &lossy{
		server: "http://" + host,
		faults: map[string][]fault{
			"GET /customers/lookup": {hang},
			"POST /customers":       {lost},
			"POST /transactions":    {lost, busy},
			"GET /rewards":          {half},
			"POST /rewards/redeem":  {often, half},
			"POST /redemptions/use": {half, lost},
		},
		sent:  map[string][2]string{},
		until: map[string]time.Time{},
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(t, w, r) }))
	t.Cleanup(proxy.Close)
	l.base = proxy.URL + "/" + path
	return l
}

func (l *lossy) serve(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f := l.next(r, string(body))
	switch f {
	case hang:
		<-r.Context().Done()
		return
	case busy, often:
		status, _ := strconv.Atoi(string(f))
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		w.WriteHeader(status)
		io.WriteString(w, `{"statusCode":`+string(f)+`,"code":"some","message":"Más tarde","requestId":"X"}`)
		return
	}
	out, err := http.NewRequest(r.Method, l.server+r.URL.RequestURI(), strings.NewReader(string(body)))
	if err != nil {
		t.Error(err)
		return
	}
	out.Header = r.Header.Clone()
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || f == lost {
		panic(http.ErrAbortHandler)
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	if f == half {
		w.Write(answer[:len(answer)/2])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(answer)
}

// next notes a request and returns its fault; "" is none.
func (l *lossy) next(r *http.Request, body string) (f fault) {
	path := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1")
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.until[path]) {
		l.wrong = append(l.wrong, path+" was sent again before Retry-After")
	}
	if r.Method == "POST" && l.sent != nil {
		first, again := l.sent[path]
		l.sent[path] = [2]string{r.Header.Get("Idempotency-Key"), body}
		if again && l.sent[path] != first || l.sent[path][0] == "" {
			l.wrong = append(l.wrong, path+" was sent without its Idempotency-Key and body")
		}
	}
	if left := l.faults[path]; len(left) > 0 {
		f, l.faults[path] = left[0], left[1:]
	}
	if f == busy || f == often {
		l.until[path] = time.Now().Add(retryAfter)
	}
	return f
}

// check fails if a client gave up, or did what it must not. Every POST until now was one
// operation; from now on there may be others.
func (l *lossy) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, left := range l.faults {
		if len(left) > 0 {
			t.Errorf("%s was not sent often enough: %v are left", path, left)
		}
	}
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
	l.sent = nil
}
