package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestSign has the example of the reference library's documentation.
func TestSign(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Sign([][]byte{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text := SecretText(secret); text != "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" {
		t.Error(text)
	}
	two := Sign([][]byte{secret, []byte("other")}, "a", time.Unix(1, 0), nil)
	if parts := strings.Split(two, " "); len(parts) != 2 || parts[0] == parts[1] {
		t.Error("during a rotation: ", two)
	}
	for _, bad := range []string{"", "MfKQ9r8G", "whsec_*"} {
		if _, err := ParseSecret(bad); err == nil {
			t.Errorf("%q is a secret", bad)
		}
	}
}

func TestIsPublic(t *testing.T) {
	for _, text := range []string{"1.1.1.1", "187.141.5.9", "172.32.0.1", "2606:4700::1111", "2806:2f0::1", "::ffff:1.1.1.1"} {
		if !IsPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	for _, text := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.192",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0",
		"fd00:ec2::254", "fc00::1", "ff02::1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "2001::1", "::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "fec0::1", "4000::1", "168.63.129.16",
	} {
		if IsPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// TestSend looks at a delivery as its receiver gets it, and at what each answer means.
func TestSend(t *testing.T) {
	secret := []byte("0123456789abcdef01234567")
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		ok     bool
		after  time.Duration
	}{
		{"200", func(w http.ResponseWriter, r *http.Request) {}, 200, true, 0},
		{"204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, 204, true, 0},
		{"500", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, 500, false, 0},
		{"410", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(410) }, 410, false, 0},
		{"429", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "90"); w.WriteHeader(429) }, 429, false, 90 * time.Second},
		{"for ever", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(503)
		}, 503, false, 24 * time.Hour},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				body, _ := io.ReadAll(r.Body)
				want := Sign([][]byte{secret}, "evt_1", time.Unix(1_700_000_000, 0), body)
				if string(body) != `{"a":1}` || r.Method != "POST" || r.Header.Get("webhook-id") != "evt_1" || r.Header.Get("webhook-timestamp") != "1700000000" ||
					r.Header.Get("webhook-signature") != want || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, body)
				}
				test.answer(w, r)
			}))
			defer s.Close()
			c := NewClient(loopback)
			defer c.CloseIdleConnections()
			o := Send(t.Context(), c, &Message{s.URL + "/hook", "evt_1", [][]byte{secret}, []byte(`{"a":1}`)}, time.Unix(1_700_000_000, 0))
			if o.Status != test.status || o.OK() != test.ok || o.After != test.after || calls != 1 || o.Gone() != (test.status == 410) {
				t.Errorf("%+v after %d calls", o, calls)
			}
		})
	}
}

// TestSendFlood: a receiver that answers without end costs little.
func TestSendFlood(t *testing.T) {
	t.Parallel()
	sent := make(chan int, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, part := 0, make([]byte, 1<<20)
		for n < 1<<30 {
			m, err := w.Write(part)
			if n += m; err != nil {
				break
			}
		}
		sent <- n
	}))
	defer s.Close()
	c := NewClient(loopback)
	defer c.CloseIdleConnections()
	if o := Send(t.Context(), c, &Message{URL: s.URL}, time.Now()); !o.OK() {
		t.Error(o.Err)
	}
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestSendCancelled: a receiver that hangs is left when the context ends.
func TestSendCancelled(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-hung }))
	defer s.Close()
	defer close(hung)
	c := NewClient(loopback)
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if o := Send(ctx, c, &Message{URL: s.URL}, time.Now()); o.OK() || o.Status != 0 {
		t.Errorf("%+v", o)
	}
}

// TestSendAddress: an address that is not public is not dialled, by whatever name, also when
// a name led elsewhere before.
func TestSendAddress(t *testing.T) {
	t.Parallel()
	called := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	c := NewClient(nil)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1.2.3"} {
		o := Send(t.Context(), c, &Message{URL: "http://" + host + ":" + port}, time.Now())
		if e := (*AddressError)(nil); !errors.As(o.Err, &e) {
			t.Errorf("%s: %v", host, o.Err)
		}
	}
	if called {
		t.Error("the receiver was called")
	}
}

// TestSendUntrusted: a certificate that nobody vouches for is refused.
func TestSendUntrusted(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	if o := Send(t.Context(), NewClient(loopback), &Message{URL: s.URL}, time.Now()); o.OK() || o.Status != 0 {
		t.Errorf("%+v", o)
	}
}

func TestWait(t *testing.T) {
	var sum, before time.Duration
	for n := 1; n <= 9; n++ {
		if w := Wait(n); w <= before {
			t.Errorf("%d: %v", n, w)
		} else {
			sum, before = sum+w, w
		}
	}
	if Wait(1000) != Wait(9) || Wait(0) != Wait(1) {
		t.Error(Wait(1000), Wait(0))
	}
	if _, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(SecretText(make([]byte, SecretSize)), "whsec_")); err != nil || sum > 24*time.Hour {
		t.Error(err, sum)
	}
}

// TestSendErrors: errors tell neither the URL nor what came back.
func TestSendErrors(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing":        "",
		"no HTTP":        "SSH-2.0-whispered\r\n\r\n",
		"a bad redirect": "HTTP/1.1 302 Found\r\nLocation: http://[whispered\r\nContent-Length: 0\r\n\r\n",
		"a bad header":   "HTTP/1.1 200 OK\r\nwhispered\r\n\r\n",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 4096))
				io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		c := NewClient(loopback)
		defer c.CloseIdleConnections()
		o := Send(t.Context(), c, &Message{URL: "http://" + l.Addr().String() + "/?token=hidden"}, time.Now())
		if o.OK() || strings.Contains(o.Err.Error(), "hidden") || strings.Contains(o.Err.Error(), "whispered") {
			t.Errorf("%s: %v", name, o.Err)
		}
	}
}
