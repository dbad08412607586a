package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"sello/internal/webhook"
)

// Webhooks bring the feed of events to receivers (contract §17). The document says which
// webhooks there are; the store says how far each has come:
//
//	H org hook → the last event that the webhook got or did not ask for, its secrets, and since
//	             when it fails
//
// A webhook begins with the event of its first apply. Nothing is sent before it has a
// secret, which `sello webhook secret` makes and shows once.

// receiverShown is what may be shown of a webhook's URL: its scheme and host (contract §31, Audit).
// Whoever knows the rest of it can often send to the receiver.
func receiverShown(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "…"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// isReceiverPath reports whether a path in a document leads to a webhook's URL.
func isReceiverPath(path string) bool {
	return strings.HasPrefix(path, "webhooks[") && strings.HasSuffix(path, "].url")
}

const maxWebhooks = 10

func (w *webhookDoc) wants(k eventKind) bool {
	return slices.ContainsFunc(w.Events, func(p string) bool { return matchesEvent(p, eventKinds[k].name) })
}

type webhookState struct {
	Sent    uint64 // sequence of the last event that the receiver took, or did not ask for
	Secrets []webhookSecret
	Failing instant // since when the next event is refused; 0: it is not
	Failed  uint64  // attempts to deliver it
	Next    instant // when the next attempt is due
	Paused  instant // since when nothing is sent; 0: it is not paused
	Why     string  // what the last failure was
	Turn    uint64  // rises with all that the operator does: a delivery under way must not undo it
}

// A webhookSecret signs what is sent. The newest stands first.
type webhookSecret struct {
	Secret []byte
	Until  instant // never for the newest
}

func (s *webhookState) fields(c *coder) {
	c.uint(&s.Sent)
	listField(c, &s.Secrets, (*webhookSecret).fields)
	c.instant(&s.Failing)
	c.uint(&s.Failed)
	c.instant(&s.Next)
	c.instant(&s.Paused)
	c.text(&s.Why)
	c.uint(&s.Turn)
}

func (s *webhookSecret) fields(c *coder) { c.bytes(&s.Secret); c.instant(&s.Until) }

// isAt reports whether nobody has come on, failed or intervened since the state was other.
func (s *webhookState) isAt(other *webhookState) bool {
	return s.Turn == other.Turn && s.Sent == other.Sent && s.Failed == other.Failed && s.Next == other.Next
}

func (s *webhookState) secretsAt(at instant) (list [][]byte) {
	for _, secret := range s.Secrets {
		if at < secret.Until {
			list = append(list, secret.Secret)
		}
	}
	return list
}

func webhookKey(org uint32, hook string) key { return orgKey('H', org).text(hook) }

func (c *config) webhook(hook string) *webhookDoc {
	return find(c.Webhooks, func(w *webhookDoc) bool { return w.Key == hook })
}

type webhooksTxn struct{ t *txn }

// follow gives each webhook of a new configuration a state, and drops the states of others.
// Turn begins with the audit log, so that it is above the Turn of an earlier webhook with the key.
func (wh *webhooksTxn) follow(cfg *config) error {
	n, err := wh.t.count()
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for e, err := range scan(wh.t.Tx, orgKey('H', wh.t.org), false) {
		if err != nil {
			return err
		}
		gone[string(e.Key[5:])] = true
	}
	for _, w := range cfg.Webhooks {
		if gone[w.Key] {
			delete(gone, w.Key)
		} else if err := wh.t.put(webhookKey(wh.t.org, w.Key), &webhookState{Sent: n.Events, Turn: n.Audit}); err != nil {
			return err
		}
	}
	for _, hook := range slices.Sorted(maps.Keys(gone)) {
		if err := wh.t.Delete(webhookKey(wh.t.org, hook)); err != nil {
			return err
		}
	}
	return nil
}

// get returns a webhook and its state, for the operator.
func (wh *webhooksTxn) get(hook string) (*webhookDoc, *webhookState, error) {
	doc := wh.t.cfg.webhook(hook)
	if doc == nil {
		var keys []string
		for _, w := range wh.t.cfg.Webhooks {
			keys = append(keys, w.Key)
		}
		return nil, nil, operatorErrorf("", "no hay ningún webhook %q%s", hook, thereAre(keys))
	}
	state, err := existing[webhookState](wh.t.Tx, webhookKey(wh.t.org, hook))
	return doc, state, err
}

// secretOverlap is for how long a secret is valid after a new one took its place, in
// milliseconds.
const secretOverlap = 24 * 60 * 60 * 1000

// newSecret gives a webhook a new secret and returns it. The one before stays valid
// for secretOverlap; older ones end.
func (wh *webhooksTxn) newSecret(hook string) ([]byte, error) {
	_, s, err := wh.get(hook)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, webhook.SecretSize)
	wh.t.bytes(secret)
	before := s.Secrets[:min(len(s.Secrets), 1)]
	s.Secrets = []webhookSecret{{secret, never}}
	for _, old := range before {
		s.Secrets = append(s.Secrets, webhookSecret{old.Secret, wh.t.now + secretOverlap})
	}
	return secret, wh.operate(hook, s, auditWebhookSecret, nil)
}

// resume lets a paused webhook go on, with the event that its receiver did not take.
func (wh *webhooksTxn) resume(hook string) error {
	_, s, err := wh.get(hook)
	if err != nil {
		return err
	}
	s.goOn()
	return wh.operate(hook, s, auditWebhookResumed, nil)
}

// replay makes a webhook go on from an event that it has got before, or further on.
func (wh *webhooksTxn) replay(hook string, from uint64) error {
	_, s, err := wh.get(hook)
	if err != nil {
		return err
	}
	n, err := wh.t.count()
	if err != nil {
		return err
	}
	if from <= n.Dropped || from > n.Events+1 {
		return operatorErrorf("from", "-from debe ser de %d a %d: los anteriores ya no se guardan, los posteriores no existen", n.Dropped+1, n.Events+1)
	}
	before := s.Sent + 1
	s.Sent = from - 1
	s.goOn()
	return wh.operate(hook, s, auditWebhookReplayed, []change{{"from", before, from}})
}

// goOn forgets failures.
func (s *webhookState) goOn() { s.Failing, s.Failed, s.Next, s.Paused, s.Why = 0, 0, 0, 0, "" }

// operate writes a state that the operator has changed.
func (wh *webhooksTxn) operate(hook string, s *webhookState, action string, changes []change) error {
	s.Turn++
	if err := wh.t.put(webhookKey(wh.t.org, hook), s); err != nil {
		return err
	}
	return wh.t.audit.note(action, hook, changes)
}

// givesUp is for how long a webhook is tried before it is paused, in milliseconds.
const givesUp = 3 * 24 * 60 * 60 * 1000

// longestWait is how far ahead the next attempt can be.
const longestWait = 24 * time.Hour

// A delivered says what became of the events that a webhook was to get.
type delivered struct {
	upto    uint64 // the last one that the receiver took, or did not ask for
	outcome *webhook.Outcome
}

// after returns the state after what was sent at a moment.
func (s *webhookState) after(d delivered, now instant) webhookState {
	next := *s
	if d.upto > s.Sent {
		next.Sent = d.upto
		next.goOn()
	}
	if d.outcome == nil || d.outcome.OK() {
		return next
	}
	if next.Failing == 0 || now.sub(next.Next) > longestWait { // it was not tried meanwhile
		next.Failing, next.Failed = now, 0
	}
	next.Failed++
	next.Why = whyNot(d.outcome)
	wait := max(webhook.Wait(int(min(next.Failed, 1000))), d.outcome.After)
	next.Next = now.add(wait)
	if d.outcome.Gone() || now-next.Failing >= givesUp {
		next.Paused = now
	}
	return next
}

// Kinds of failures. They tell neither addresses nor resolvers: whoever may change a webhook's
// URL would otherwise look around in the server's network with it.
const (
	whyNotPublic    = "not_public"
	whyNoSuchName   = "no_such_name"
	whyTimeout      = "timeout"
	whyTLS          = "tls"
	whyNoAnswer     = "no_answer" // what came is not HTTP
	whyNoConnection = "no_connection"
)

// whyNot is the kind of a failure, or "HTTP 500".
func whyNot(o *webhook.Outcome) string {
	if o.Status != 0 {
		return fmt.Sprintf("HTTP %d", o.Status)
	}
	if _, is := errors.AsType[*webhook.AddressError](o.Err); is {
		return whyNotPublic
	}
	if e, is := errors.AsType[*net.DNSError](o.Err); is && !e.IsTimeout {
		return whyNoSuchName
	}
	if e, is := errors.AsType[net.Error](o.Err); is && e.Timeout() || errors.Is(o.Err, context.DeadlineExceeded) {
		return whyTimeout
	}
	_, record := errors.AsType[tls.RecordHeaderError](o.Err)
	_, alert := errors.AsType[tls.AlertError](o.Err)
	if _, certificate := errors.AsType[*tls.CertificateVerificationError](o.Err); certificate || record || alert {
		return whyTLS
	}
	if errors.Is(o.Err, webhook.ErrAnswer) {
		return whyNoAnswer
	}
	return whyNoConnection
}
