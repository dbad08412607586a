// Package webhook sends messages as Standard Webhooks describes
// (https://www.standardwebhooks.com): signed POSTs with an id that stays the same when a
// message is sent again. It sends to public addresses alone, and follows no redirect.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// SecretSize is the length of a secret, in bytes.
const SecretSize = 24

const secretPrefix = "whsec_"

// SecretText returns a secret as people and libraries write it.
func SecretText(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret is the opposite of SecretText.
func ParseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return nil, errors.New("a secret begins with " + secretPrefix)
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// Sign returns the value of webhook-signature: one signature for each secret.
func Sign(secrets [][]byte, id string, at time.Time, body []byte) string {
	var list []string
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
		mac.Write(body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(list, " ")
}

// Limits of one delivery.
const (
	Timeout    = 10 * time.Second // from the look-up of the name to the end of the answer
	mostAnswer = 64 << 10         // bytes of an answer that are read
)

// A Message is what is sent to one receiver.
type Message struct {
	URL     string
	ID      string // the same whenever it is sent again
	Secrets [][]byte
	Body    []byte
}

// An Outcome is what became of a delivery.
type Outcome struct {
	Status int           // of the answer; 0: there was none
	Err    error         // nil after a 2xx
	After  time.Duration // how long the receiver asked to be left alone; 0: it did not
}

// OK reports whether the receiver took the message.
func (o *Outcome) OK() bool { return o.Err == nil }

// Gone reports whether the receiver wants no more messages.
func (o *Outcome) Gone() bool { return o.Status == http.StatusGone }

// ErrAnswer says that a receiver answered something that is not HTTP, or names no place to
// redirect to.
var ErrAnswer = errors.New("not an HTTP answer")

// Send sends a message once. Any 2xx is success. Errors contain neither the URL, which may hold
// a token, nor what the receiver answered.
func Send(ctx context.Context, c *http.Client, m *Message, now time.Time) (o Outcome) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Outcome{Err: withoutURL(err)}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sello-webhook/1")
	r.Header.Set("webhook-id", m.ID)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", Sign(m.Secrets, m.ID, now, m.Body))
	var answered atomic.Bool
	res, err := c.Do(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { answered.Store(true) }})))
	switch {
	case err != nil && answered.Load() && ctx.Err() == nil:
		return Outcome{Err: ErrAnswer}
	case err != nil:
		return Outcome{Err: withoutURL(err)}
	}
	defer res.Body.Close()
	o.Status = res.StatusCode
	if o.Status < 200 || o.Status > 299 {
		o.Err = fmt.Errorf("status %d", o.Status)
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
			o.After = time.Duration(min(seconds, 24*60*60)) * time.Second
		}
	}
	io.CopyN(io.Discard, res.Body, mostAnswer) // a short rest, so that the connection can be used again
	return o
}

// withoutURL returns what an error of net/http says beside the URL.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// An AddressError says that a receiver's address is not public.
type AddressError struct{ Addr netip.Addr }

func (e *AddressError) Error() string { return e.Addr.String() + " is not a public address" }

// notPublic are addresses that are not of the public Internet, beside those that package
// netip knows: of this network, shared, for protocols, documentation, tests and the future;
// those that lead to IPv4 addresses behind a tunnel; and the metadata of Azure's machines.
var notPublic = func() (list []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

// publicIPv6 are the only addresses of IPv6 that are given to networks. Others may lead to IPv4
// addresses behind a translator.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

// IsPublic reports whether an address is one of the public Internet.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !publicIPv6.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// NewClient returns a client for Send. It connects to public addresses and to those in allow,
// and looks at the address that it dials: a name may lead elsewhere at each look-up.
func NewClient(allow []netip.Prefix) *http.Client {
	control := func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		addr := to.Addr().Unmap()
		for _, p := range allow {
			if p.Contains(addr.WithZone("")) {
				return nil
			}
		}
		if !IsPublic(addr) {
			return &AddressError{addr}
		}
		return nil
	}
	dialer := &net.Dialer{Timeout: Timeout, Control: control}
	return &http.Client{
		Transport: &http.Transport{ // no proxy: it would dial for us
			DialContext: dialer.DialContext, TLSHandshakeTimeout: Timeout, DisableCompression: true,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// waits are the times between the attempts of one delivery. The last one stays.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
}

// Wait returns how long to wait after so many failed attempts, 1 or more.
func Wait(failed int) time.Duration { return waits[min(max(failed, 1), len(waits))-1] }
