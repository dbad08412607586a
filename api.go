package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sello/internal/fold"
)

// The public API (spec and contract §7, as openapi.json describes it). A handler reads
// the client's input in the order of the specification's tables and returns the action
// to run in the transaction; request.go does the rest. A handler touches its request
// alone, and its action the txn alone, by the domain's methods: neither touches a key of
// the store, asks for the time or makes an id. An action may run twice.

func (a *api) routes() []route {
	return append([]route{
		{"GET /api/v1/customers", "customers:read", listCustomers},
		{"GET /api/v1/customers/lookup", "customers:read", lookupCustomer},
		{"GET /api/v1/customers/{customerId}", "customers:read", getCustomer},
		{"POST /api/v1/customers", "customers:write", createCustomer},
		{"PATCH /api/v1/customers/{customerId}", "customers:write", patchCustomer},
		{"POST /api/v1/customers/{customerId}/merge", "customers:erase", mergeCustomers},
		{"POST /api/v1/customers/{customerId}/erase", "customers:erase", eraseCustomer},
		{"POST /api/v1/customers/{customerId}/card", "customers:write", issueCard},
		{"POST /api/v1/customers/{customerId}/card/revoke", "customers:write", revokeCard},
		{"GET /api/v1/customers/{customerId}/export", "customers:read", exportCustomer},
		{"GET /api/v1/customers/{customerId}/statement", "points:read", getStatement},
		{"GET /api/v1/points/customers/{customerId}/balance", "points:read", getBalance},
		{"GET /api/v1/points/customers/{customerId}/movements", "points:read", listMovements},
		{"POST /api/v1/points/customers/{customerId}/add", "points:write", addPoints},
		{"POST /api/v1/points/customers/{customerId}/deduct", "points:write", deductPoints},
		{"POST /api/v1/points/batch", "points:write", movePointsBatch},
		{"GET /api/v1/points/customers/{customerId}/holds", "points:read", listHolds},
		{"POST /api/v1/points/customers/{customerId}/holds", "points:write", holdPoints},
		{"GET /api/v1/points/holds/{holdId}", "points:read", getHold},
		{"POST /api/v1/points/holds/{holdId}/capture", "points:write", captureHold},
		{"POST /api/v1/points/holds/{holdId}/release", "points:write", releaseHold},
		{"GET /api/v1/transactions", "transactions:read", listTransactions},
		{"GET /api/v1/transactions/{transactionId}", "transactions:read", getTransaction},
		{"POST /api/v1/transactions", "transactions:write", registerTransaction},
		{"POST /api/v1/transactions/batch", "transactions:write", registerBatch},
		{"GET /api/v1/tickets", "transactions:read", listTickets},
		{"GET /api/v1/tickets/{ticketId}", "transactions:read", getTicket},
		{"POST /api/v1/tickets", "transactions:write", makeTicket},
		{"POST /api/v1/tickets/claim", "transactions:write", claimTicket},
		{"POST /api/v1/tickets/cancel", "transactions:write", cancelTicket},
		{"GET /api/v1/rewards", "rewards:read", listRewards},
		{"GET /api/v1/rewards/{rewardId}", "rewards:read", getReward},
		{"POST /api/v1/rewards/redeem", "rewards:write", redeemReward},
		{"GET /api/v1/redemptions", "rewards:read", listRedemptions},
		{"GET /api/v1/redemptions/{redemptionId}", "rewards:read", getRedemption},
		{"POST /api/v1/redemptions/use", "rewards:write", useRedemption},
		{"POST /api/v1/redemptions/{redemptionId}/cancel", "rewards:write", cancelRedemption},
		{"GET /api/v1/segments", "segments:read", listSegments},
		{"GET /api/v1/segments/{segmentId}", "segments:read", getSegment},
		{"GET /api/v1/segments/{segmentId}/customers", "segments:read customers:read", listMembers},
		{"GET /api/v1/loyalty/programs", "loyalty:read", listPrograms},
		{"GET /api/v1/loyalty/programs/{programId}", "loyalty:read", getProgram},
		{"GET /api/v1/statistics", "statistics:read", getStatistics},
		{"GET /api/v1/organization", "organization:read", getOrganization},
		{"GET /api/v1/audit", "audit:read", listAudit},
		{"GET /api/v1/events", "events:read", listEvents},
		{"GET /api/v1/openapi.json", "", a.getOpenAPI},
		{"GET /docs", "", a.getDocs},
		{"GET /livez", "", isAlive},
		{"GET /readyz", "", a.isReady},
	}, a.more...)
}

func newAPI(e *engine, trusted []netip.Prefix, log *slog.Logger) *api {
	a := &api{
		refused: newSourceLimits(maxRefusals, refusalEvery), probes: newSourceLimits(maxRefusals, refusalEvery),
		engine: e, limiter: newLimiter(), logins: newLogins(e), trusted: trusted, log: log, mux: http.NewServeMux(), stopping: make(chan struct{}),
		reading: newSemaphore(processors()), parsing: newSemaphore(processors()), bodies: newSemaphore(unitsOf(largeBodies)), answers: newSemaphore(unitsOf(largeAnswers)),
		idPrefix: rand.Text()[:16],
	}
	a.take(0)
	return a
}

// take registers the routes from a number on.
func (a *api) take(from int) {
	for i, r := range a.routes()[from:] {
		_, path, _ := strings.Cut(r.pattern, " ")
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			x := w.(*exchange)
			x.route, x.number = path, from+i
			x.serve(&r, req)
		})
	}
}

// Points.

func getBalance(r *request) action {
	program := givenID(r.query.id("loyaltyProgramId"))
	at, ofDay, asked := r.asOf()
	r.large = asked
	return func(t *txn) (any, error) {
		c, p, err := r.accountAsked(t, program)
		if err != nil {
			return nil, err
		}
		switch {
		case asked && (at < t.now || ofDay && at == t.now):
			a, then, err := recall(t, c, p, at, ofDay)
			if err != nil {
				return nil, err
			}
			return newBalanceAt(a, then, at), nil
		case asked:
			until := at
			if ofDay {
				until-- // what lapses at the end of the day is still there
			}
			a, err := foresee(t, c, p, until)
			if err != nil {
				return nil, err
			}
			b, err := newBalance(t, a)
			b.AsOf = at
			return b, err
		}
		return shaped(t, newBalance)(t.points.account(c, p))
	}
}

func listMovements(r *request) action {
	p := r.page()
	text, present := r.query.text("type", 20)
	kind := choice(r.query.input, text, present, "type", codeInvalidField, []string{"", typeCredit, typeDebit})
	category, _ := r.query.text("category", 20)
	if category != "" {
		r.query.fail(checkCategory(category, allCategories))
	}
	program := givenID(r.query.id("loyaltyProgramId"))
	return func(t *txn) (any, error) {
		c, prog, err := r.accountAsked(t, program)
		if err != nil {
			return nil, err
		}
		var keep func(*movement) bool
		if kind != "" || category != "" {
			keep = func(m *movement) bool {
				return (kind == "" || kind == m.movementType()) && (category == "" || category == m.Category)
			}
		}
		found, total, err := t.points.listMovements(c, prog, p, keep)
		if err != nil {
			return nil, err
		}
		return newAppendedList(t, found, total, p, newMovementShape)
	}
}

// Rewards and redemptions.

func listRewards(r *request) action {
	p := r.page()
	text, present := r.query.text("status", 20)
	status := choice(r.query.input, text, present, "status", codeInvalidField, []string{"", statusActive, statusInactive})
	search, _ := r.query.text("search", maxSearch)
	cust, forCustomer := r.query.id("customerId")
	return func(t *txn) (any, error) {
		shape := newRewardShape
		if forCustomer {
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			shape = func(t *txn, r *reward) (rewardShape, error) { return newRewardShapeFor(t, r, c) }
		}
		all := slices.DeleteFunc(t.cfg.byCost(), func(r *reward) bool {
			return status != "" && r.Status != status || !strings.Contains(fold.Text(r.Name), fold.Text(search))
		})
		total := uint64(len(all))
		from := min(p.skip(), total)
		return newList(t, all[from:min(from+p.limit, total)], total, p, shape)
	}
}

func getReward(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, newRewardShape)(t.rewards.get(r.pathID("rewardId")))
	}
}

func redeemReward(r *request) action {
	cust := r.requiredID("customerId", codeCustomerIDRequired)
	product := r.requiredID("productId", codeProductIDRequired)
	comment := r.comment()
	var expected *decimal
	if points, given := r.fields.number("expectedPoints"); given {
		expected = &points
	}
	proof := r.proof()
	return func(t *txn) (any, error) {
		return shaped(t, newRedemptionShape)(t.rewards.redeem(cust, product, comment, expected, proof))
	}
}

func listRedemptions(r *request) action {
	p := r.page()
	var f redemptionFilter
	if text, given := r.query.text("code", anyLength); given {
		f.code = &text
	}
	f.customer = givenID(r.query.id("customerId"))
	f.reward = givenID(r.query.id("productId"))
	text, present := r.query.text("status", 20)
	f.status = choice(r.query.input, text, present, "status", codeInvalidField, append([]string{""}, redemptionStatuses...))
	f.from, f.to = r.span()
	return func(t *txn) (any, error) {
		found, total, err := t.rewards.findRedemptions(f, p)
		if err != nil {
			return nil, err
		}
		return newList(t, found, total, p, newRedemptionShape)
	}
}

func getRedemption(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, newRedemptionShape)(t.rewards.redemption(r.pathID("redemptionId")))
	}
}

func useRedemption(r *request) action {
	code := r.requiredText("code")
	sale := givenID(r.fields.id("transactionId"))
	return func(t *txn) (any, error) {
		return okReply(shaped(t, newRedemptionShape)(t.rewards.useCode(code, sale)))
	}
}

func cancelRedemption(r *request) action {
	return func(t *txn) (any, error) {
		return okReply(shaped(t, newRedemptionShape)(t.rewards.cancel(r.pathID("redemptionId"))))
	}
}

// Segments, programs, organization.

func listSegments(*request) action {
	return func(t *txn) (any, error) {
		all := []segmentShape{}
		for _, s := range t.cfg.bySegmentPriority() {
			all = append(all, newSegmentShape(s))
		}
		return all, nil
	}
}

func getSegment(r *request) action {
	return func(t *txn) (any, error) {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return nil, newError(codeSegmentNotFound)
		}
		return newSegmentShape(s), nil
	}
}

func listPrograms(r *request) action {
	p := r.page()
	return func(t *txn) (any, error) {
		total := uint64(len(t.cfg.Programs))
		from := min(p.skip(), total)
		return newList(t, t.cfg.Programs[from:min(from+p.limit, total)], total, p, newProgramShape)
	}
}

func getProgram(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, newProgramShape)(t.program(r.pathID("programId")))
	}
}

func getOrganization(*request) action {
	return func(t *txn) (any, error) {
		o := t.cfg.Organization
		s := settingsShape{o.Settings.Timezone, o.Settings.Currency, o.Settings.Language}
		return organizationShape{t.cfg.ID, o.Name, o.Slug, o.Profile, s}, nil
	}
}

// The audit log.

func listAudit(r *request) action {
	p := r.page()
	var f auditFilter
	f.from, f.to = r.span()
	f.actor, _ = r.query.text("actor", maxActor)
	f.action, _ = r.query.text("action", maxAction)
	f.subject, _ = r.query.text("subject", maxSubject)
	kind, present := r.query.text("kind", 20)
	f.kind = choice(r.query.input, kind, present, "kind", codeInvalidField, auditKinds)
	f.within = r.user.auditShare()
	return func(t *txn) (any, error) {
		found, total, err := t.audit.entries(f, p)
		if err != nil {
			return nil, err
		}
		return newList(t, found, total, p, newAuditShape)
	}
}

// Events.

// maxWait is for how many seconds a request may wait for events.
const maxWait = 20

func listEvents(r *request) action {
	r.large = true
	var q eventsAfter
	var ok bool
	if q.after, ok = r.whole("after", 0, 0); !ok {
		r.query.invalid("after", "debe ser un entero mayor o igual a 0")
	}
	_, q.given = r.query.text("after", 100)
	q.limit = int(r.limit())
	if text, given := r.query.text("type", 50); given {
		if q.types = []string{text}; !isEventPattern(text) {
			r.query.invalid("type", "debe ser un tipo de evento, como points.added, o un grupo, como points.*")
		}
	}
	wait, ok := r.whole("wait", 0, 0)
	if !ok || wait > maxWait {
		r.query.invalid("wait", "debe ser un entero entre %d y %d", 0, 20)
	}
	r.wait = uint8(min(wait, maxWait))
	return func(t *txn) (any, error) {
		list, next, err := t.feed.page(q)
		if err != nil {
			return nil, err
		}
		return newEventList(t, list, next)
	}
}

// Statistics.

// statsDays is the default span of statistics: the 30 days that end with to.
const statsDays = 30

func getStatistics(r *request) action {
	r.large = true
	q := statsQuery{to: dayOf(r.moment("to", r.now, true), r.cfg.zone)}
	q.from = dayOf(r.moment("from", (q.to-statsDays+1).start(r.cfg.zone), false), r.cfg.zone)
	if r.query.err == nil && (q.from > q.to || q.to-q.from > maxStatsDays) {
		r.query.invalid("from", "no puede ser posterior a to ni distar más de 100 años")
	}
	text, present := r.query.text("groupBy", 20)
	q.groupBy = choice(r.query.input, text, present, "groupBy", codeInvalidField, []string{groupDay, groupWeek, groupMonth})
	q.program = givenID(r.query.id("loyaltyProgramId"))
	return func(t *txn) (any, error) {
		found, err := t.stats.answer(q)
		if err == nil && t.cfg.tickets() != nil {
			err = t.tickets.countOpen(found)
		}
		if err != nil {
			return nil, err
		}
		s := statisticsShape{
			q.from.String(), q.to.String(), q.groupBy, t.cfg.Organization.Settings.Timezone, q.program,
			newPeriodShape(t, &found.total), make([]periodShape, len(found.periods)),
		}
		s.Total.CustomersByTier = found.tiers
		for i := range found.periods {
			s.Periods[i] = newPeriodShape(t, &found.periods[i])
		}
		return s, nil
	}
}

// The reference of the API.

func (a *api) getOpenAPI(r *request) action {
	return func(*txn) (any, error) { return a.references.of(a.baseOf(r.Request)).openAPI, nil }
}

func (a *api) getDocs(r *request) action {
	return func(*txn) (any, error) { return a.references.of(a.baseOf(r.Request)).page, nil }
}

// baseOf is the URL of the server as the client called it. A proxy that is trusted says
// whether that was over TLS.
func (a *api) baseOf(r *http.Request) string {
	scheme := "http"
	if a.secure {
		scheme = "https"
	}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && inNetworks(a.trusted, plainAddr(peer.Addr())) {
		if given := r.Header.Get("X-Forwarded-Proto"); given == "http" || given == "https" {
			scheme = given
		}
	}
	host := r.Host
	if !isHost(host) {
		host = "localhost"
	}
	return scheme + "://" + host
}

// Health.

func isAlive(*request) action {
	return func(*txn) (any, error) { return health{"ok"}, nil }
}

// isReady answers /readyz. It reads the store for a second at most. A source that has
// spent its probes gets the result of the last probe, which is a fraction of a second
// old. isReady writes nothing: the store remembers whether it refused the last write,
// and after a refusal keepHouse tries one every so often.
func (a *api) isReady(r *request) action {
	return func(*txn) (any, error) {
		ready := !a.unready.Load()
		if a.probes.take(sourceAddress(r.Request, a.trusted), r.now) == 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Second)
			defer cancel()
			ready = a.probe(ctx) == nil
			a.unready.Store(!ready)
		}
		if !ready || a.engine.store.refusing.Load() || a.engine.store.away.Load() {
			return nil, newError(codeUnavailable).header("Retry-After", "1")
		}
		if !a.engine.clock.IsSafe() {
			return nil, errClockUnsafe()
		}
		return health{"ok"}, nil
	}
}

// storeAnswers reports whether the store answers within a time, if only with an error.
func (a *api) storeAnswers(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return !errors.Is(a.probe(ctx), context.DeadlineExceeded)
}

// probe reads the store, for as long as ctx lasts.
func (a *api) probe(ctx context.Context) error {
	read := make(chan error, 1)
	go func() { // a disk that hangs ignores the context
		_, err := viewStore(ctx, a.engine.store, readSchema)
		read <- err
	}()
	select {
	case err := <-read:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
