package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/webhook"
)

// Deliveries send events to the webhooks, each webhook on a goroutine of its own: a slow receiver
// delays neither other receivers nor writes. Progress is stored after each round, so after a crash
// a receiver may get the events of one round again (at least once), always in order. Of several
// servers on one database, the one that has a webhook's lease sends its events.

// A deliverer sends the events of all organizations.
type deliverer struct {
	engine *engine
	client *http.Client
	log    *slog.Logger

	// Each channel has an element for each round being sent. Receivers that did not take the last
	// event use again: however many of them hang, the others do not wait for them.
	turn, again chan struct{}

	delivered, refused atomic.Uint64 // attempts

	since           instant       // when it was made
	poll, hooksPoll time.Duration // deliveryPoll and hooksPoll, but in tests of days

	mu    sync.Mutex
	late  map[hookOf]hookLate   // webhooks that have not got all events
	tried map[hookOf][]delivery // the last keptAttempts of each, the newest last
}

// A delivery is an attempt to deliver and its result. It holds neither the URL nor what was sent.
type delivery struct {
	At     instant
	Type   string // of the event
	Seq    uint64 // of the event; 0: it was a test
	OK     bool
	Result string // as whyNot says it
	Took   time.Duration
}

// keptAttempts is how many attempts of a webhook are kept: 20 take 1.7 KB, less than its
// goroutine.
const keptAttempts = 20

// keep keeps an attempt in the place of the oldest one.
func (d *deliverer) keep(h hookOf, a delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.tried[h]
	if len(list) == keptAttempts {
		list = slices.Delete(list, 0, 1)
	}
	d.tried[h] = append(list, a)
}

// last returns the last attempts of a webhook, newest first.
func (d *deliverer) last(h hookOf) []delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.Clone(d.tried[h])
	slices.Reverse(list)
	return list
}

// kept are the webhooks with deliveries in memory, served or only tested.
func (d *deliverer) kept() []hookOf {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(d.late)), maps.Keys(d.tried))
}

// forget drops what is kept of a webhook that is not there any more.
func (d *deliverer) forget(h hookOf) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.late, h)
	delete(d.tried, h)
}

// attempt sends a message and keeps how it went, unless the process ends meanwhile.
func (d *deliverer) attempt(ctx context.Context, h hookOf, m *webhook.Message, a delivery) webhook.Outcome {
	began, signed := time.Now(), a.At.time()
	if d.engine.keepsEvents { // a sandbox's clock was moved, and receivers compare with their own (contract §31)
		signed = began
	}
	o := webhook.Send(ctx, d.client, m, signed)
	if a.OK, a.Result, a.Took = o.OK(), whyNot(&o), time.Since(began); a.OK || ctx.Err() == nil {
		d.keep(h, a)
	}
	return o
}

// A hookLate is why a webhook has not got all events.
type hookLate struct {
	oldest instant // when the first event that it has not got was written
	paused bool
}

const (
	manyDeliveries = 64              // rounds sent at once, and as many more to receivers that failed
	roundEvents    = 20              // of one round
	roundTime      = time.Second     // after which a round ends
	deliveryPoll   = 2 * time.Second // how often a webhook looks for what others wrote
	hooksPoll      = time.Second     // how often webhooks are looked for
	othersTurn     = -1              // in place of a wait: another server sends the events
	storeTime      = 5 * time.Second // for storing how far a webhook has come
)

func newDeliverer(e *engine, allow []netip.Prefix, log *slog.Logger) *deliverer {
	return &deliverer{engine: e, client: webhook.NewClient(allow), log: log, turn: make(chan struct{}, manyDeliveries), again: make(chan struct{}, manyDeliveries), since: instantOf(e.now()), poll: deliveryPoll, hooksPoll: hooksPoll, late: map[hookOf]hookLate{}, tried: map[hookOf][]delivery{}}
}

// note remembers how late a webhook is; a zero hookLate: not at all.
func (d *deliverer) note(h hookOf, late hookLate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late[h] = late; late == (hookLate{}) {
		delete(d.late, h)
	}
}

// lateness returns how many webhooks are paused, and the age of the oldest event that any other
// webhook has not got.
func (d *deliverer) lateness() (paused int, lag time.Duration) {
	now := instantOf(d.engine.now())
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.late {
		if l.paused {
			paused++
		} else {
			lag = max(lag, now.sub(l.oldest))
		}
	}
	return paused, lag
}

type hookOf struct {
	org  uint32
	hook string
}

// run delivers until ctx ends.
func (d *deliverer) run(ctx context.Context) {
	defer d.client.CloseIdleConnections()
	var workers sync.WaitGroup
	defer workers.Wait()
	running := map[hookOf]context.CancelFunc{}
	tick := time.NewTicker(d.hooksPoll)
	defer tick.Stop()
	for {
		kept := d.kept()
		hooks, err := d.hooks(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("background", "task", "webhooks", "cause", err.Error())
		}
		if err == nil {
			for _, h := range kept {
				if !hooks[h] {
					d.forget(h)
				}
			}
			for h, cancel := range running {
				if !hooks[h] {
					cancel()
					delete(running, h)
				}
			}
			for h := range hooks {
				if running[h] == nil {
					var each context.Context
					each, running[h] = context.WithCancel(ctx)
					workers.Go(func() { d.serve(each, h) })
				}
			}
		}
		select {
		case <-ctx.Done():
			for _, cancel := range running {
				cancel()
			}
			return
		case <-tick.C:
		}
	}
}

// hooks returns all webhooks that have a state.
func (d *deliverer) hooks(ctx context.Context) (map[hookOf]bool, error) {
	return viewStore(ctx, d.engine.store, func(tx Tx) (map[hookOf]bool, error) {
		all := map[hookOf]bool{}
		for e, err := range scan(tx, newKey('H'), false) {
			if err != nil {
				return nil, err
			}
			if tableWebhooks.has(e.Key) {
				all[hookOf{uint32In(e.Key[1:]), string(e.Key[5:])}] = true
			}
		}
		return all, nil
	})
}

// serve sends one webhook's events, round by round.
func (d *deliverer) serve(ctx context.Context, h hookOf) {
	turn := d.turnOf(h)
	defer turn.drop(ctx)
	for ctx.Err() == nil {
		woken := d.engine.store.eventWaiters.wait(h.org)
		wait, err := d.round(ctx, h, turn)
		if err != nil && ctx.Err() == nil {
			d.log.Error("background", "task", "webhook", "webhook", h.hook, "cause", err.Error())
			wait, woken = d.poll, nil
		}
		if wait == 0 {
			continue
		}
		if wait > d.poll || wait == othersTurn { // the operator may resume it before; the other server may end
			wait, woken = d.poll, nil
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-time.After(wait):
		}
	}
}

// turnOf returns the lease of a webhook.
func (d *deliverer) turnOf(h hookOf) *lease {
	return &lease{store: d.engine.store, name: fmt.Sprintf("webhook/%d/%s", h.org, h.hook)}
}

// A pendingEvent is an event that a webhook has to deliver.
type pendingEvent struct {
	seq  uint64
	at   instant
	id   string
	kind eventKind
	body []byte
}

type webhookEvent struct {
	Type      string  `json:"type"`
	Timestamp instant `json:"timestamp"`
	Sequence  uint64  `json:"sequence"`
	Data      any     `json:"data"`
}

// pendingEvents returns up to most of the next events of a webhook. upto is the sequence up to
// which list has all events that the webhook asks for.
func (wh *webhooksTxn) pendingEvents(w *webhookDoc, after uint64, most int) (list []pendingEvent, upto uint64, err error) {
	upto = after
	for e, err := range wh.t.feed.from(after + 1) {
		if err != nil {
			return nil, 0, err
		}
		if e.Seq > after+mostSkipped {
			break
		}
		if upto = e.Seq; !w.wants(e.Kind) {
			continue
		}
		data, err := newEventData(wh.t, &e)
		if err != nil {
			return nil, 0, err
		}
		body, err := encode(webhookEvent{eventKinds[e.Kind].name, e.At, e.Seq, data})
		if err != nil {
			return nil, 0, err
		}
		list = append(list, pendingEvent{e.Seq, e.At, wh.messageID(fmt.Sprint("event ", e.Seq, " ", int64(e.At))), e.Kind, body})
		if len(list) == most {
			break
		}
	}
	return list, upto, nil
}

// messageID is the webhook-id of a message with a name. The name of an event contains its moment:
// after a restore, new events get the sequences of lost ones.
func (wh *webhooksTxn) messageID(name string) string {
	return "evt_" + wh.t.cfg.ID.derive("webhook", name).String()
}

// A hookRound is what one webhook has to send now.
type hookRound struct {
	slug   string // of the organization
	url    string
	stored webhookState
	state  webhookState // stored, without the events that are lost
	list   []pendingEvent
	upto   uint64 // the last event looked at, also of types that the webhook does not ask for
	wait   time.Duration
	lost   uint64  // events that were dropped before they were sent
	oldest instant // when the first event of list was written
	paused bool
	silent bool // send nothing now; if wait is not 0, nothing until it is over
}

func (d *deliverer) look(ctx context.Context, h hookOf) (hookRound, error) {
	now := instantOf(d.engine.now())
	return read(ctx, d.engine, h.org, now, func(t *txn) (r hookRound, err error) {
		doc := t.cfg.webhook(h.hook)
		state, err := get[webhookState](t.Tx, webhookKey(h.org, h.hook))
		if err != nil || doc == nil || state == nil || doc.Status != statusActive || state.Paused != 0 || len(state.secretsAt(now)) == 0 {
			return hookRound{silent: true, paused: state != nil && state.Paused != 0}, err
		}
		n, err := t.count()
		if err != nil {
			return r, err
		}
		r.slug, r.url, r.stored, r.state = t.cfg.Organization.Slug, doc.URL, *state, *state
		if state.Sent < n.Dropped {
			r.lost, r.state.Sent = n.Dropped-state.Sent, n.Dropped
		}
		most := roundEvents
		if state.Next > now && state.Next.sub(now) <= longestWait { // else a wrong clock said so
			r.silent, r.wait, most = true, state.Next.sub(now), 1
		}
		if r.list, r.upto, err = t.webhooks.pendingEvents(doc, r.state.Sent, most); len(r.list) > 0 {
			r.oldest = r.list[0].at
		}
		return r, err
	})
}

// round sends a webhook's next events and stores how far it has come. It returns how long to
// wait for the next round; 0 if there is more to do. While the clock is unsafe it waits. turn is
// the webhook's lease: the result is othersTurn if another server has it.
func (d *deliverer) round(ctx context.Context, h hookOf, turn *lease) (time.Duration, error) {
	if !d.engine.clock.IsSafe() {
		return d.poll, nil
	}
	r, err := d.look(ctx, h)
	if err != nil {
		return 0, err
	}
	d.note(h, hookLate{r.oldest, r.paused})
	if r.silent || r.upto == r.state.Sent {
		return cmp.Or(r.wait, d.poll), nil
	}
	if !turn.held(ctx) {
		return othersTurn, nil
	}
	if r.lost > 0 {
		d.log.Warn("webhook lost events", "organization", r.slug, "webhook", h.hook, "events", r.lost)
	}
	var done delivered
	turn.during(ctx, func(ctx context.Context) { done = d.send(ctx, h, &r, turn) })
	return 0, d.store(ctx, h, &r, done)
}

// send sends the events of a round in order, until one fails, the round has taken long or turn is
// lost.
func (d *deliverer) send(ctx context.Context, h hookOf, r *hookRound, turn *lease) delivered {
	room := d.turn
	if r.state.Failing != 0 {
		room = d.again
	}
	select {
	case room <- struct{}{}:
		defer func() { <-room }()
	case <-ctx.Done():
		return delivered{upto: r.state.Sent}
	}
	began := time.Now()
	upto := r.state.Sent
	for _, e := range r.list {
		if time.Since(began) > roundTime || !turn.held(ctx) {
			return delivered{upto: upto}
		}
		now := instantOf(d.engine.now())
		m := &webhook.Message{URL: r.url, ID: e.id, Secrets: r.state.secretsAt(now), Body: e.body}
		o := d.attempt(ctx, h, m, delivery{At: now, Type: eventKinds[e.kind].name, Seq: e.seq})
		if !o.OK() {
			if ctx.Err() != nil { // it is not the receiver's fault; it may have got the event
				return delivered{upto: upto}
			}
			d.refused.Add(1)
			return delivered{upto, &o}
		}
		d.delivered.Add(1)
		upto = e.seq
	}
	return delivered{upto: r.upto}
}

// store stores how far a webhook has come, unless the operator or another server has done
// something meanwhile.
func (d *deliverer) store(ctx context.Context, h hookOf, r *hookRound, done delivered) error {
	now := instantOf(d.engine.now())
	next := r.state.after(done, now)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	stored, err := updateStore(last, d.engine.store, func(tx Tx) (bool, error) {
		k := webhookKey(h.org, h.hook)
		state, err := get[webhookState](tx, k)
		if err != nil || state == nil || !state.isAt(&r.stored) {
			return false, err
		}
		return true, put(tx, k, &next)
	})
	if err != nil || !stored {
		return err
	}
	log := d.log.With("organization", r.slug, "webhook", h.hook)
	switch {
	case next.Paused != 0:
		log.Error("webhook paused", "failingSince", next.Failing, "cause", next.Why)
	case next.Failing != 0 && r.state.Failing == 0:
		log.Warn("webhook fails", "cause", next.Why)
	case next.Failing == 0 && r.state.Failing != 0:
		log.Info("webhook delivers again")
	}
	return nil
}

// testEvent is the type of a test message.
const testEvent = "webhook.test"

// test sends a webhook a message that is no event, and returns the result. Before anything is
// sent, a transaction notes the test in the audit log; in it, sign says who tests.
func (d *deliverer) test(ctx context.Context, org uint32, hook string, sign func(*txn) error) (result webhookTest, err error) {
	now, s := instantOf(d.engine.now()), d.engine.seed()
	m, err := write(ctx, d.engine, org, now, func(t *txn) (*webhook.Message, error) {
		if err := sign(t); err != nil {
			return nil, err
		}
		doc, state, err := t.webhooks.get(hook)
		if err != nil {
			return nil, err
		}
		secrets := state.secretsAt(now)
		if len(secrets) == 0 {
			return nil, operatorErrorf("", "el webhook %q no tiene secreto: sello webhook secret %s", hook, hook)
		}
		body, err := encode(webhookEvent{Type: testEvent, Timestamp: now, Data: struct{}{}})
		if err == nil {
			err = t.audit.note(auditWebhookTested, hook, nil)
		}
		return &webhook.Message{URL: doc.URL, ID: t.webhooks.messageID("test " + newMint(now, s).id().String()), Secrets: secrets, Body: body}, err
	})
	if err != nil {
		return result, err
	}
	o := d.attempt(ctx, hookOf{org, hook}, m, delivery{At: now, Type: testEvent})
	if result = (webhookTest{OK: o.OK(), Status: o.Status}); !o.OK() {
		result.Why = whyNot(&o)
	}
	return result, nil
}

type webhookTest struct {
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"` // of the answer; 0: there was none
	Why    string `json:"why,omitempty"`    // as whyNot says it
}

// A listedWebhook is a webhook as `sello webhook list` shows it, with scheme and host of its URL.
type listedWebhook struct {
	webhookDoc
	HasSecret bool    `json:"hasSecret"`
	Sent      uint64  `json:"sent"`
	Pending   uint64  `json:"pending"` // events after Sent; the webhook may not ask for the types of some
	Oldest    instant `json:"oldest"`  // when the first of them was written
	Failing   instant `json:"failingSince"`
	Failed    uint64  `json:"failedAttempts"`
	Next      instant `json:"nextAttempt"`
	Paused    instant `json:"pausedSince"`
	Why       string  `json:"lastFailure,omitempty"`
}

func (wh *webhooksTxn) list() ([]listedWebhook, error) {
	n, err := wh.t.count()
	if err != nil {
		return nil, err
	}
	list := []listedWebhook{}
	for _, w := range wh.t.cfg.Webhooks {
		_, s, err := wh.get(w.Key)
		if err != nil {
			return nil, err
		}
		l := listedWebhook{
			webhookDoc: *w, HasSecret: len(s.secretsAt(wh.t.now)) > 0, Sent: s.Sent, Pending: n.Events - max(s.Sent, n.Dropped),
			Failing: s.Failing, Failed: s.Failed, Next: s.Next, Paused: s.Paused, Why: s.Why,
		}
		l.URL = receiverShown(l.URL) // the document has it whole
		for e, err := range wh.t.feed.from(s.Sent + 1) {
			if err != nil {
				return nil, err
			}
			l.Oldest = e.At
			break
		}
		list = append(list, l)
	}
	return list, nil
}
