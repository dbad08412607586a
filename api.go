package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sello/internal/contact"
)

// The public API (spec.md and contract.md §7). Handlers read what the client
// sent, in the order of the specification's tables, and return what is to be
// done; request.go does the rest.

func (a *api) routes() []route {
	return []route{
		{"GET /api/v1/customers", "customers:read", listCustomers},
		{"GET /api/v1/customers/lookup", "customers:read", lookupCustomer},
		{"GET /api/v1/customers/{customerId}", "customers:read", getCustomer},
		{"POST /api/v1/customers", "customers:write", createCustomer},
		{"GET /api/v1/points/customers/{customerId}/balance", "points:read", getBalance},
		{"GET /api/v1/points/customers/{customerId}/movements", "points:read", listMovements},
		{"POST /api/v1/points/customers/{customerId}/add", "points:write", addPoints},
		{"POST /api/v1/points/customers/{customerId}/deduct", "points:write", deductPoints},
		{"GET /api/v1/transactions", "transactions:read", listTransactions},
		{"GET /api/v1/transactions/{transactionId}", "transactions:read", getTransaction},
		{"POST /api/v1/transactions", "transactions:write", registerTransaction},
		{"GET /api/v1/rewards", "rewards:read", listRewards},
		{"GET /api/v1/rewards/{rewardId}", "rewards:read", getReward},
		{"POST /api/v1/rewards/redeem", "rewards:write", redeemReward},
		{"GET /api/v1/redemptions", "rewards:read", listRedemptions},
		{"GET /api/v1/redemptions/{redemptionId}", "rewards:read", getRedemption},
		{"POST /api/v1/redemptions/{redemptionId}/cancel", "rewards:write", cancelRedemption},
		{"GET /api/v1/segments", "segments:read", listSegments},
		{"GET /api/v1/segments/{segmentId}", "segments:read", getSegment},
		{"GET /api/v1/loyalty/programs", "loyalty:read", listPrograms},
		{"GET /api/v1/loyalty/programs/{programId}", "loyalty:read", getProgram},
		{"GET /api/v1/statistics", "statistics:read", getStatistics},
		{"GET /api/v1/organization", "organization:read", getOrganization},
		{"GET /api/v1/openapi.json", "", getOpenAPI},
		{"GET /livez", "", isAlive},
		{"GET /readyz", "", a.isReady},
	}
}

func newAPI(e *engine, trusted []netip.Prefix, log *slog.Logger) *api {
	a := &api{
		engine: e, limiter: newLimiter(), trusted: trusted, log: log, mux: http.NewServeMux(),
		reading: newRoom(processors()), parsing: newRoom(processors()), bodies: newRoom(unitsOf(largeBodies)), answers: newRoom(unitsOf(largeAnswers)),
		idPrefix: rand.Text()[:16],
	}
	for _, r := range a.routes() {
		_, path, _ := strings.Cut(r.pattern, " ")
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			x := w.(*exchange)
			x.route = path
			x.serve(&r, req)
		})
	}
	return a
}

// Reading what the client sent.

// A list is the envelope of a paged list (spec: Pagination envelope).
type list[T any] struct {
	Data []T      `json:"data"`
	Meta listMeta `json:"meta"`
}

type listMeta struct {
	CurrentPage     uint64 `json:"currentPage"`
	Total           uint64 `json:"total"`
	HasNextPage     bool   `json:"hasNextPage"`
	HasPreviousPage bool   `json:"hasPreviousPage"`
}

func newListMeta(total uint64, p page) listMeta {
	return listMeta{p.number, total, p.skip()+p.limit < total, p.number > 1 && total > 0}
}

func newList[R, T any](records []R, total uint64, p page, shape func(R) (T, error)) (list[T], error) {
	l := list[T]{Data: make([]T, 0, len(records)), Meta: newListMeta(total, p)}
	var turn pacer
	for _, r := range records {
		v, err := shape(r)
		if err != nil {
			return l, err
		}
		l.Data = append(l.Data, v)
		turn.pause()
	}
	return l, nil
}

// An appendedList is a list that is written by hand.
type appendedList[T jsonAppender] list[T]

func newAppendedList[R any, T jsonAppender](records []R, total uint64, p page, shape func(R) (T, error)) (appendedList[T], error) {
	l, err := newList(records, total, p, shape)
	return appendedList[T](l), err
}

// Lengths of texts, in characters, and of lists (contract §1).
const (
	maxName       = 100
	maxComment    = 500
	maxSearch     = 100
	maxSKU        = 100
	maxExternalID = 255
	maxItems      = 500 // of one sale
)

const (
	defaultLimit = 20
	maxLimit     = 100
	maxPage      = 1<<53 - 1 // what JavaScript holds exactly; far beyond any list
)

// page reads page and limit. A limit above the maximum is served as the
// maximum (contract §2).
func (r *request) page() page {
	r.large = true
	p := page{1, defaultLimit}
	whole := func(name, code string, n *uint64) {
		text, ok := r.query.text(name, 100)
		if !ok {
			return
		}
		v, err := strconv.ParseInt(text, 10, 64) // one too large for an int64 becomes the largest
		if err != nil && !errors.Is(err, strconv.ErrRange) || v < 1 {
			r.query.fail(newError(code).on(name))
			return
		}
		*n = min(uint64(v), maxPage)
	}
	whole("page", "page_invalid", &p.number)
	whole("limit", "limit_invalid", &p.limit)
	p.limit = min(p.limit, maxLimit)
	return p
}

// choice is a field or parameter that must be one of a few words; the first
// of them where it is absent. code is the fault's; "" for invalid_field.
func choice(in input, text string, present bool, name, code string, words []string) string {
	if !present {
		return words[0]
	}
	if slices.Contains(words, text) {
		return text
	}
	if code == "" {
		named := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
		in.invalid(name, "debe ser "+alternatives(named))
	} else {
		in.fail(newError(code).on(name))
	}
	return words[0]
}

// moment reads a parameter that is a moment; absent is otherwise.
func (r *request) moment(name string, otherwise instant, endOfDay bool) instant {
	text, present := r.query.text(name, 100)
	if !present {
		return otherwise
	}
	at, ok := parseMoment(text, r.cfg.zone, endOfDay)
	if !ok {
		r.query.invalid(name, "debe ser una fecha ISO 8601")
	}
	return at
}

// flag reads a parameter that is true or false; absent is false.
func (r *request) flag(name string) bool {
	text, _ := r.query.text(name, 10)
	if text != "" && text != "true" && text != "false" {
		r.query.invalid(name, "debe ser true o false")
	}
	return text == "true"
}

// above reads a number above zero, which must be there.
func (r *request) above0(name, code string) decimal {
	d, present := r.fields.number(name)
	if r.fields.err == nil && (!present || d <= 0) {
		r.fields.fail(newError(code).on(name))
	}
	return d
}

func (r *request) comment() string {
	text, _ := r.fields.textOr("comment", maxComment, "comment_too_long")
	return text
}

// requiredID reads an id of the body that must be there. Whether anything has
// it shows later.
func (r *request) requiredID(name, code string) id {
	u, present := r.fields.id(name)
	if !present {
		r.fields.fail(newError(code).on(name))
	}
	return u
}

// email and phone normalize what was sent; "" if nothing was.

func email(in input, text string, present bool, name string) string {
	if !present {
		return ""
	}
	address, ok := contact.Email(text)
	if !ok {
		in.fail(newError("email_invalid").on(name))
	}
	return address
}

func phone(in input, cfg *config, text string, present bool, name string) string {
	if !present {
		return ""
	}
	number, ok := contact.Phone(text, cfg.Organization.Profile.Country)
	if !ok {
		in.fail(newError("phone_invalid").on(name))
	}
	return number
}

// Shaping what the client gets. Absent values are null (contract §1).

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func idOrNull(u id) *id {
	if u == (id{}) {
		return nil
	}
	return &u
}

// Customers.

type customerItem struct {
	ID               id      `json:"id"`
	Name             string  `json:"name"`
	Status           string  `json:"status"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	TierName         *string `json:"tierName"`
}

type customerDetail struct {
	ID                id         `json:"id"`
	Name              string     `json:"name"`
	FirstName         *string    `json:"firstName"`
	LastName          *string    `json:"lastName"`
	Email             *string    `json:"email"`
	PhoneNumber       *string    `json:"phoneNumber"`
	Status            string     `json:"status"`
	LoyaltyProgramID  id         `json:"loyaltyProgramId"`
	TierName          *string    `json:"tierName"`
	NextTierName      *string    `json:"nextTierName"`
	PointsToNextTier  *decimal   `json:"pointsToNextTier"`
	CurrencyID        id         `json:"currencyId"`
	Balance           decimal    `json:"balance"`
	PendingBalance    decimal    `json:"pendingBalance"`
	LifetimePoints    decimal    `json:"lifetimePoints"`
	ExpiringPoints    []expiring `json:"expiringPoints"`
	SegmentIDs        []id       `json:"segmentIds"`
	TotalSpent        decimal    `json:"totalSpent"`
	TransactionsCount uint64     `json:"transactionsCount"`
	LastTransactionAt instant    `json:"lastTransactionAt"`
	CreatedAt         instant    `json:"createdAt"`
	UpdatedAt         instant    `json:"updatedAt"`
}

// customerItems reads each customer with its account, and all of them in the order
// of their keys: so they lie close together.
func (t *txn) customerItems(ids []id) ([]customerItem, error) {
	inOrder := make([]int, len(ids))
	for i := range inOrder {
		inOrder[i] = i
	}
	slices.SortFunc(inOrder, func(i, j int) int { return bytes.Compare(ids[i][:], ids[j][:]) })
	items := make([]customerItem, len(ids))
	var (
		c    customer
		turn pacer
	)
	for _, i := range inOrder {
		err := t.readCustomer(ids[i], &c)
		if err == nil {
			items[i], err = t.customerItem(&c)
		}
		if err != nil {
			return nil, err
		}
		turn.pause()
	}
	return items, nil
}

func (t *txn) customerItem(c *customer) (customerItem, error) {
	current, err := t.ownTier(c)
	if err != nil {
		return customerItem{}, err
	}
	return customerItem{c.ID, c.name(), c.Status, t.cfg.programNumber(c.Program).ID, current.nameOrNull()}, nil
}

func (t *txn) customerDetail(c *customer) (customerDetail, error) {
	p := t.cfg.programNumber(c.Program)
	a, err := t.account(c, p)
	if err != nil {
		return customerDetail{}, err
	}
	expiring, err := t.expiring(a)
	if err != nil {
		return customerDetail{}, err
	}
	current, next := a.tier()
	d := customerDetail{
		ID: c.ID, Name: c.name(), FirstName: orNull(c.FirstName), LastName: orNull(c.LastName),
		Email: orNull(c.Email), PhoneNumber: orNull(c.Phone), Status: c.Status,
		LoyaltyProgramID: p.ID, TierName: current.nameOrNull(), NextTierName: next.nameOrNull(), CurrencyID: p.currencyID(),
		Balance: a.Balance, PendingBalance: a.Pending, LifetimePoints: a.Lifetime, ExpiringPoints: expiring,
		SegmentIDs: []id{}, TotalSpent: c.TotalSpent, TransactionsCount: c.Purchases, LastTransactionAt: c.LastSaleAt,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if next != nil && p.TierBasis.Metric == metricPoints {
		missing := next.Threshold - a.figure()
		d.PointsToNextTier = &missing
	}
	for _, s := range t.segmentsOf(a) {
		d.SegmentIDs = append(d.SegmentIDs, s.ID)
	}
	return d, nil
}

func listCustomers(r *request) (action, error) {
	p := r.page()
	search, searching := r.query.text("search", maxSearch)
	return func(t *txn) (any, error) {
		var (
			found []id
			total uint64
			err   error
		)
		if searching {
			found, total, err = t.searchCustomers(search, p)
		} else {
			found, total, err = t.listCustomers(p)
		}
		if err != nil {
			return nil, err
		}
		items, err := t.customerItems(found)
		return appendedList[customerItem]{items, newListMeta(total, p)}, err
	}, nil
}

func lookupCustomer(r *request) (action, error) {
	text, present := r.query.text("email", anyLength)
	address := email(r.query.input, text, present, "email")
	text, present = r.query.phone("phone")
	number := phone(r.query.input, r.cfg, text, present, "phone")
	if r.query.err == nil && address == "" && number == "" {
		return nil, newError("email_or_phone_required")
	}
	return func(t *txn) (any, error) {
		kind, value := byte(kindEmail), address
		if address == "" {
			kind, value = kindPhone, number
		}
		c, err := t.identify(kind, value)
		if err != nil || c == nil {
			return nil, err
		}
		return t.customerDetail(c)
	}, nil
}

func getCustomer(r *request) (action, error) {
	return func(t *txn) (any, error) {
		c, err := t.customer(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		return t.customerDetail(c)
	}, nil
}

func createCustomer(r *request) (action, error) {
	var e enrolment
	text, hasMail := r.fields.text("email", anyLength)
	e.Email = email(r.fields.input, text, hasMail, "email")
	text, hasNumber := r.fields.text("phoneNumber", anyLength)
	e.Phone = phone(r.fields.input, r.cfg, text, hasNumber, "phoneNumber")
	if r.fields.err == nil && !hasMail && !hasNumber {
		return nil, newError("email_or_phone_required")
	}
	e.FirstName, _ = r.fields.text("firstName", maxName)
	e.LastName, _ = r.fields.text("lastName", maxName)
	return func(t *txn) (any, error) {
		c, created, err := t.enrol(e)
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if created {
			status = http.StatusCreated
		}
		d, err := t.customerDetail(c)
		return reply{status, d}, err
	}, nil
}

// Points.

type balance struct {
	ID             id         `json:"id"`
	Balance        decimal    `json:"balance"`
	CustomerID     id         `json:"customerId"`
	CurrencyID     id         `json:"currencyId"`
	PendingBalance decimal    `json:"pendingBalance"`
	LifetimePoints decimal    `json:"lifetimePoints"`
	ExpiringPoints []expiring `json:"expiringPoints"`
	AsOf           instant    `json:"asOf"`
}

type movementShape struct {
	ID               id        `json:"id"`
	CustomerID       id        `json:"customerId"`
	LoyaltyProgramID id        `json:"loyaltyProgramId"`
	CurrencyID       id        `json:"currencyId"`
	Type             string    `json:"type"`
	Category         string    `json:"category"`
	Amount           decimal   `json:"amount"`
	Comment          *string   `json:"comment"`
	AvailableFrom    instant   `json:"availableFrom"` // null: at once
	ExpiresAt        instant   `json:"expiresAt"`
	Balance          decimal   `json:"balance"`
	TransactionID    *id       `json:"transactionId"`
	RedemptionID     *id       `json:"redemptionId"`
	CreatedAt        instant   `json:"createdAt"`
	Lots             []usedLot `json:"lots"` // which points a debit took, or a cancelled redemption gave back; null for any other credit
}

type usedLot struct {
	MovementID id      `json:"movementId"`
	Amount     decimal `json:"amount"`
	ExpiresAt  instant `json:"expiresAt"`
}

func (t *txn) movementShape(m *movement) (movementShape, error) {
	p := t.cfg.programNumber(m.Program)
	s := movementShape{
		ID: m.id(), CustomerID: m.Customer, LoyaltyProgramID: p.ID, CurrencyID: p.currencyID(),
		Type: m.movementType(), Category: m.Category, Amount: max(m.Amount, -m.Amount), Comment: orNull(m.Comment),
		AvailableFrom: m.AvailFrom, ExpiresAt: m.Expires, Balance: m.Balance,
		TransactionID: idOrNull(m.Transaction), RedemptionID: idOrNull(m.Redemption), CreatedAt: m.CreatedAt,
	}
	if s.Type == typeDebit {
		s.Lots = []usedLot{}
	}
	for _, u := range m.Uses {
		s.Lots = append(s.Lots, usedLot{movementID(m.Customer, u.Seq), u.Amount, u.Expires})
	}
	return s, nil
}

func getBalance(r *request) (action, error) {
	program, given := r.query.id("loyaltyProgramId")
	return func(t *txn) (any, error) {
		c, err := t.customer(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		p, err := t.programOf(c, program, given)
		if err != nil {
			return nil, err
		}
		a, err := t.account(c, p)
		if err != nil {
			return nil, err
		}
		expiring, err := t.expiring(a)
		return balance{a.id(), a.Balance, c.ID, p.currencyID(), a.Pending, a.Lifetime, expiring, t.now}, err
	}, nil
}

func listMovements(r *request) (action, error) {
	p := r.page()
	text, present := r.query.text("type", 20)
	kind := choice(r.query.input, text, present, "type", "", []string{"", typeCredit, typeDebit})
	category, _ := r.query.text("category", 20)
	categories := slices.Concat(addCategories, deductCategories, []string{categoryExpiration, categoryReturn, ""})
	if !slices.Contains(categories, category) {
		r.query.fail(newError("category_invalid").on("category"))
	}
	program, given := r.query.id("loyaltyProgramId")
	return func(t *txn) (any, error) {
		c, err := t.customer(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		prog, err := t.programOf(c, program, given)
		if err != nil {
			return nil, err
		}
		var keep func(*movement) bool
		if kind != "" || category != "" {
			keep = func(m *movement) bool {
				return (kind == "" || kind == m.movementType()) && (category == "" || category == m.Category)
			}
		}
		found, total, err := t.listMovements(c, prog, p, keep)
		if err != nil {
			return nil, err
		}
		return newAppendedList(found, total, p, t.movementShape)
	}, nil
}

// movementFields reads what adding and deducting have in common; program is
// nil where none is named.
func (r *request) movementFields(categories []string, usual string) (m *movement, program *id) {
	m = &movement{Amount: r.above0("amount", "amount_invalid")}
	text, present := r.fields.text("category", 100)
	m.Category = choice(r.fields.input, text, present, "category", "category_invalid", append([]string{usual}, categories...))
	m.Comment = r.comment()
	if u, given := r.fields.id("loyaltyProgramId"); given {
		program = &u
	} else if len(r.cfg.Programs) > 1 {
		r.fields.fail(newError("program_required").on("loyaltyProgramId"))
	}
	return m, program
}

// movePoints runs a change of a customer's points. An organization with more
// than one program must be told which.
func (t *txn) movePoints(cust id, program *id, m *movement, move func(*account, *movement) error) (any, error) {
	if program == nil && len(t.cfg.Programs) > 1 {
		return nil, newError("program_required").on("loyaltyProgramId")
	}
	c, err := t.customer(cust)
	if err != nil {
		return nil, err
	}
	p := t.cfg.Programs[0]
	if program != nil {
		if p, err = t.program(*program); err != nil {
			return nil, err
		}
	}
	if c.Status != statusActive {
		return nil, newError("customer_inactive")
	}
	a, err := t.account(c, p)
	if err != nil {
		return nil, err
	}
	done := *m // m is read again if the transaction runs again
	if err := move(a, &done); err != nil {
		return nil, err
	}
	if err := t.saveAccount(a); err != nil {
		return nil, err
	}
	return t.movementShape(&done)
}

func addPoints(r *request) (action, error) {
	m, program := r.movementFields(addCategories, categoryBonus)
	if text, present := r.fields.text("expiresAt", 100); present {
		at, ok := parseMoment(text, r.cfg.zone, true)
		if !ok {
			r.fields.invalid("expiresAt", "debe ser una fecha ISO 8601")
		} else if at <= r.now {
			r.fields.fail(newError("expires_at_invalid").on("expiresAt"))
		}
		m.Expires = at
	}
	return func(t *txn) (any, error) { return t.movePoints(r.pathID("customerId"), program, m, t.credit) }, nil
}

func deductPoints(r *request) (action, error) {
	m, program := r.movementFields(deductCategories, categoryAdjustment)
	return func(t *txn) (any, error) { return t.movePoints(r.pathID("customerId"), program, m, t.debit) }, nil
}

// Transactions.

type saleShape struct {
	ID                    *id         `json:"id"` // null in a dry run
	TotalAmount           decimal     `json:"totalAmount"`
	Type                  string      `json:"type"`
	Source                string      `json:"source"`
	Comment               *string     `json:"comment"`
	ExternalID            *string     `json:"externalId"`
	CreatedAt             instant     `json:"createdAt"`
	CustomerID            id          `json:"customerId"`
	CustomerName          string      `json:"customerName"`
	CustomerEmail         *string     `json:"customerEmail"`
	CustomerPhone         *string     `json:"customerPhone"`
	Items                 []item      `json:"items"`
	PointsEarned          decimal     `json:"pointsEarned"`
	PointsReversed        decimal     `json:"pointsReversed"`
	PointsPending         decimal     `json:"pointsPending"`
	PointsShortfall       decimal     `json:"pointsShortfall"`
	Balance               decimal     `json:"balance"`
	AppliedRules          []ruleShare `json:"appliedRules"`
	TierChange            *tierChange `json:"tierChange"`
	OriginalTransactionID *id         `json:"originalTransactionId"`
}

type tierChange struct {
	From *string `json:"from"`
	To   *string `json:"to"`
}

func newSaleShape(s *sale, c *customer) saleShape {
	shape := saleShape{
		ID: idOrNull(s.ID), TotalAmount: s.Total, Type: s.Type, Source: s.Source, Comment: orNull(s.Comment), ExternalID: orNull(s.ExternalID),
		CreatedAt: s.CreatedAt, CustomerID: c.ID, CustomerName: c.name(), CustomerEmail: orNull(c.Email), CustomerPhone: orNull(c.Phone),
		Items: s.Items, PointsEarned: s.Earned, PointsReversed: s.Reversed, PointsPending: s.Pending, PointsShortfall: s.Shortfall,
		Balance: s.Balance, AppliedRules: s.Rules, OriginalTransactionID: idOrNull(s.Previous),
	}
	if shape.Items == nil {
		shape.Items = []item{}
	}
	if shape.AppliedRules == nil {
		shape.AppliedRules = []ruleShare{}
	}
	if s.TierFrom != s.TierTo {
		shape.TierChange = &tierChange{orNull(s.TierFrom), orNull(s.TierTo)}
	}
	return shape
}

// saleShape is newSaleShape for a sale whose customer is not at hand.
func (t *txn) saleShape(s *sale) (saleShape, error) {
	c, err := t.customer(s.Customer)
	if err != nil {
		return saleShape{}, err
	}
	shape := newSaleShape(s, c)
	shape.PointsPending, err = t.stillPending(s)
	return shape, err
}

func listTransactions(r *request) (action, error) {
	p := r.page()
	var f saleFilter
	f.search, _ = r.query.text("search", maxSearch)
	text, present := r.query.text("type", 20)
	f.saleType = choice(r.query.input, text, present, "type", "type_invalid", []string{"", typePurchase, typeReturn})
	if u, given := r.query.id("customerId"); given {
		f.customer = &u
	}
	f.externalID, _ = r.query.text("externalId", maxExternalID)
	f.from = r.moment("from", 0, false)
	f.to = r.moment("to", never, true)
	return func(t *txn) (any, error) {
		found, total, err := t.findSales(f, p)
		if err != nil {
			return nil, err
		}
		return newAppendedList(found, total, p, t.saleShape)
	}, nil
}

func getTransaction(r *request) (action, error) {
	return func(t *txn) (any, error) {
		s, err := t.sale(r.pathID("transactionId"))
		if err != nil {
			return nil, err
		}
		return t.saleShape(s)
	}, nil
}

func registerTransaction(r *request) (action, error) {
	in := newSale{Source: sourceAPI}
	in.Customer = r.requiredID("customerId", "customer_id_required")
	in.Total = r.above0("totalAmount", "total_amount_invalid")
	text, present := r.fields.text("type", 100)
	in.Type = choice(r.fields.input, text, present, "type", "type_invalid", []string{typePurchase, typeReturn})
	for _, f := range r.fields.list("items", maxItems) {
		var it item
		it.SKU, present = f.text("sku", maxSKU)
		if !present {
			f.invalid("sku", "es requerido")
		}
		if it.Price, present = f.number("price"); !present || it.Price < 0 {
			f.invalid("price", "debe ser mayor o igual a 0")
		}
		if it.Quantity, present = f.number("quantity"); !present || it.Quantity <= 0 {
			f.invalid("quantity", "debe ser mayor a 0")
		}
		in.Items = append(in.Items, it)
	}
	in.ExternalID, _ = r.fields.text("externalId", maxExternalID)
	in.Comment = r.comment()
	if u, given := r.fields.id("originalTransactionId"); given {
		in.Original = &u
	}
	if r.dryRun = r.flag("dryRun"); in.Type == typePurchase && in.ExternalID != "" {
		r.retries = append(r.retries, externalRetryKey(in.ExternalID, r.body))
	}
	return func(t *txn) (any, error) {
		s, c, err := t.registerSale(in)
		if err != nil {
			return nil, err
		}
		shape := newSaleShape(s, c)
		if r.dryRun {
			shape.ID = nil
		}
		return shape, nil
	}, nil
}

// Rewards and redemptions.

type rewardShape struct {
	ID               id       `json:"id"`
	Name             string   `json:"name"`
	Description      *string  `json:"description"`
	ImageURL         *string  `json:"imageUrl"`
	Status           string   `json:"status"`
	PointsCost       decimal  `json:"pointsCost"`
	LoyaltyProgramID id       `json:"loyaltyProgramId"`
	Stock            *int     `json:"stock"`
	LimitPerCustomer *int     `json:"limitPerCustomer"`
	TierNames        []string `json:"tierNames"`
	SegmentIDs       []id     `json:"segmentIds"`
	ValidFrom        instant  `json:"validFrom"`
	ValidTo          instant  `json:"validTo"`
	CreatedAt        instant  `json:"createdAt"`
	UpdatedAt        instant  `json:"updatedAt"`

	// With customerId only.
	Available *bool     `json:"available,omitempty"`
	Reasons   *[]string `json:"unavailabilityReasons,omitempty"`
}

func (t *txn) rewardShape(r *reward) (rewardShape, error) {
	s := rewardShape{
		ID: r.ID, Name: r.Name, Description: r.Description, ImageURL: r.ImageURL, Status: r.Status, PointsCost: r.PointsCost,
		LoyaltyProgramID: t.cfg.programKey(r.Program).ID, LimitPerCustomer: r.LimitPerCustomer,
		TierNames: append([]string{}, r.Tiers...), SegmentIDs: t.segmentIDs(r.Segments), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	s.ValidFrom, _ = parseMoment(r.ValidFrom, t.cfg.zone, false)
	s.ValidTo, _ = parseMoment(r.ValidTo, t.cfg.zone, true)
	var err error
	s.Stock, err = t.stock(r)
	return s, err
}

// rewardShapeFor adds whether the customer can have it now.
func (t *txn) rewardShapeFor(r *reward, c *customer) (rewardShape, error) {
	s, err := t.rewardShape(r)
	if err != nil {
		return s, err
	}
	a, err := t.account(c, t.cfg.programKey(r.Program))
	if err != nil {
		return s, err
	}
	reasons, err := t.unavailable(r, c, a)
	if err != nil {
		return s, err
	}
	if c.Status != statusActive {
		reasons = append([]string{reasonCustomer}, reasons...)
	}
	available := len(reasons) == 0
	s.Available, s.Reasons = &available, &reasons
	return s, nil
}

func listRewards(r *request) (action, error) {
	p := r.page()
	text, present := r.query.text("status", 20)
	status := choice(r.query.input, text, present, "status", "", []string{"", statusActive, statusInactive})
	search, _ := r.query.text("search", maxSearch)
	cust, forCustomer := r.query.id("customerId")
	return func(t *txn) (any, error) {
		shape := t.rewardShape
		if forCustomer {
			c, err := t.customer(cust)
			if err != nil {
				return nil, err
			}
			shape = func(r *reward) (rewardShape, error) { return t.rewardShapeFor(r, c) }
		}
		all := slices.DeleteFunc(t.cfg.byCost(), func(r *reward) bool {
			return status != "" && r.Status != status || !strings.Contains(fold(r.Name), fold(search))
		})
		total := uint64(len(all))
		from := min(p.skip(), total)
		return newList(all[from:min(from+p.limit, total)], total, p, shape)
	}, nil
}

func getReward(r *request) (action, error) {
	return func(t *txn) (any, error) {
		found, err := t.reward(r.pathID("rewardId"))
		if err != nil {
			return nil, err
		}
		return t.rewardShape(found)
	}, nil
}

type redemptionShape struct {
	ID          id      `json:"id"`
	Code        string  `json:"code"`
	CustomerID  id      `json:"customerId"`
	ProductID   id      `json:"productId"`
	RewardName  string  `json:"rewardName"`
	PointsSpent decimal `json:"pointsSpent"`
	Balance     decimal `json:"balance"`
	Status      string  `json:"status"`
	Comment     *string `json:"comment"`
	MovementID  id      `json:"movementId"`
	CreatedAt   instant `json:"createdAt"`
	CancelledAt instant `json:"cancelledAt"`
}

func newRedemptionShape(x *redemption) (redemptionShape, error) {
	return redemptionShape{
		x.ID, x.Code, x.Customer, x.Reward, x.RewardName, x.Points, x.Balance, x.status(), orNull(x.Comment), movementID(x.Customer, x.Movement),
		x.CreatedAt, x.CancelledAt,
	}, nil
}

func redeemReward(r *request) (action, error) {
	cust := r.requiredID("customerId", "customer_id_required")
	product := r.requiredID("productId", "product_id_required")
	comment := r.comment()
	return func(t *txn) (any, error) {
		x, err := t.redeem(cust, product, comment)
		if err != nil {
			return nil, err
		}
		return newRedemptionShape(x)
	}, nil
}

func listRedemptions(r *request) (action, error) {
	p := r.page()
	return func(t *txn) (any, error) {
		found, total, err := t.listRedemptions(p)
		if err != nil {
			return nil, err
		}
		return newList(found, total, p, newRedemptionShape)
	}, nil
}

func getRedemption(r *request) (action, error) {
	return func(t *txn) (any, error) {
		x, err := t.redemption(r.pathID("redemptionId"))
		if err != nil {
			return nil, err
		}
		return newRedemptionShape(x)
	}, nil
}

func cancelRedemption(r *request) (action, error) {
	return func(t *txn) (any, error) {
		x, err := t.cancel(r.pathID("redemptionId"))
		if err != nil {
			return nil, err
		}
		shape, err := newRedemptionShape(x)
		return reply{http.StatusOK, shape}, err
	}, nil
}

// Segments, programs, organization.

type segmentShape struct {
	ID          id      `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Priority    int     `json:"priority"`
	IsActive    bool    `json:"isActive"`
	CreatedAt   instant `json:"createdAt"`
}

func newSegmentShape(s *segment) segmentShape {
	return segmentShape{s.ID, s.Name, s.Description, s.Priority, s.IsActive, s.CreatedAt}
}

func listSegments(*request) (action, error) {
	return func(t *txn) (any, error) {
		all := []segmentShape{}
		for _, s := range t.cfg.bySegmentPriority() {
			all = append(all, newSegmentShape(s))
		}
		return all, nil
	}, nil
}

func getSegment(r *request) (action, error) {
	return func(t *txn) (any, error) {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return nil, newError("segment_not_found")
		}
		return newSegmentShape(s), nil
	}, nil
}

type programShape struct {
	ID              id             `json:"id"`
	Name            string         `json:"name"`
	CurrencyID      id             `json:"currencyId"`
	CurrencyName    string         `json:"currencyName"`
	IsDefault       bool           `json:"isDefault"`
	PointsDecimals  int            `json:"pointsDecimals"`
	TierBasis       tierBasisShape `json:"tierBasis"`
	Tiers           []tierShape    `json:"tiers"`
	Rules           []ruleShape    `json:"rules"`
	Expiry          *expiryShape   `json:"expiry"`
	Rounding        rounding       `json:"rounding"`
	Returns         string         `json:"returns"`
	NegativeBalance string         `json:"negativeBalance"`
}

type tierBasisShape struct {
	Metric string `json:"metric"`
	Window string `json:"window"`
	Months *int   `json:"months"`
}

type tierShape struct {
	Name       string   `json:"name"`
	Threshold  decimal  `json:"threshold"`
	Multiplier *decimal `json:"multiplier"`
}

type expiryShape struct {
	Days   *int    `json:"days"`
	Months *int    `json:"months"`
	EndOf  *string `json:"endOf"`
}

type ruleShape struct {
	ID                   id         `json:"id"`
	Name                 string     `json:"name"`
	On                   string     `json:"on"`
	MinAmount            *decimal   `json:"minAmount"`
	SKUs                 []string   `json:"skus"`
	TierNames            []string   `json:"tierNames"`
	SegmentIDs           []id       `json:"segmentIds"`
	Days                 []string   `json:"days"`
	Hours                *hourRange `json:"hours"`
	From                 instant    `json:"from"`
	Until                instant    `json:"until"`
	FirstPurchase        bool       `json:"firstPurchase"`
	MaxPerCustomerPerDay *int       `json:"maxPerCustomerPerDay"`
	Per                  *perRule   `json:"per"`
	PerItem              *decimal   `json:"perItem"`
	Points               *decimal   `json:"points"`
	Multiplier           *decimal   `json:"multiplier"`
	PendingDays          *int       `json:"pendingDays"`
	ExpiresInDays        *int       `json:"expiresInDays"`
}

// wholeOrNull is null for a number that stands for none.
func wholeOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (t *txn) programShape(p *program) (programShape, error) {
	s := programShape{
		ID: p.ID, Name: p.Name, CurrencyID: p.currencyID(), CurrencyName: p.Currency, IsDefault: p.Default,
		PointsDecimals: p.PointsDecimals,
		TierBasis:      tierBasisShape{p.TierBasis.Metric, p.TierBasis.Window, wholeOrNull(p.TierBasis.Months)},
		Tiers:          []tierShape{}, Rules: []ruleShape{},
		Rounding: p.Rounding, Returns: p.Returns, NegativeBalance: p.NegativeBalance,
	}
	for _, tier := range p.Tiers {
		s.Tiers = append(s.Tiers, tierShape(tier))
	}
	if e := p.Expiry; e != nil {
		s.Expiry = &expiryShape{wholeOrNull(e.Days), wholeOrNull(e.Months), orNull(e.EndOf)}
	}
	for i := range p.Rules {
		s.Rules = append(s.Rules, t.ruleShape(p, &p.Rules[i]))
	}
	return s, nil
}

func (t *txn) ruleShape(p *program, r *rule) ruleShape {
	s := ruleShape{
		ID: p.ruleID(r), Name: r.Name, On: r.On, MinAmount: r.MinAmount, SKUs: append([]string{}, r.SKUs...),
		TierNames: append([]string{}, r.Tiers...), SegmentIDs: t.segmentIDs(r.Segments), Days: append([]string{}, r.Days...),
		Hours: r.Hours, FirstPurchase: r.FirstPurchase, MaxPerCustomerPerDay: wholeOrNull(r.MaxPerCustomerPerDay),
		Per: r.Per, PerItem: r.PerItem, Points: r.Points, Multiplier: r.Multiplier,
		PendingDays: wholeOrNull(r.PendingDays), ExpiresInDays: wholeOrNull(r.ExpiresInDays),
	}
	s.From, _ = parseMoment(r.From, t.cfg.zone, false)
	s.Until, _ = parseMoment(r.Until, t.cfg.zone, true)
	return s
}

// segmentIDs are the ids of segments that the configuration names by key.
func (t *txn) segmentIDs(keys []string) []id {
	ids := []id{}
	for _, k := range keys {
		ids = append(ids, t.cfg.segmentKey(k).ID)
	}
	return ids
}

func listPrograms(r *request) (action, error) {
	p := r.page()
	return func(t *txn) (any, error) {
		total := uint64(len(t.cfg.Programs))
		from := min(p.skip(), total)
		return newList(t.cfg.Programs[from:min(from+p.limit, total)], total, p, t.programShape)
	}, nil
}

func getProgram(r *request) (action, error) {
	return func(t *txn) (any, error) {
		p, err := t.program(r.pathID("programId"))
		if err != nil {
			return nil, err
		}
		return t.programShape(p)
	}, nil
}

type organizationShape struct {
	ID       id     `json:"id"`
	Name     string `json:"name"`
	Slug     string `json:"slug"`
	Profile  any    `json:"profile"`
	Settings any    `json:"settings"`
}

func getOrganization(*request) (action, error) {
	return func(t *txn) (any, error) {
		o := t.cfg.Organization
		return organizationShape{t.cfg.ID, o.Name, o.Slug, o.Profile, o.Settings}, nil
	}, nil
}

// Statistics.

type statisticsShape struct {
	From             string        `json:"from"`
	To               string        `json:"to"`
	GroupBy          string        `json:"groupBy"`
	Timezone         string        `json:"timezone"`
	LoyaltyProgramID *id           `json:"loyaltyProgramId"`
	Total            periodShape   `json:"total"`
	Periods          []periodShape `json:"periods"`
}

type periodShape struct {
	From              string      `json:"from"`
	To                string      `json:"to"`
	Customers         uint64      `json:"customers"`
	NewCustomers      uint64      `json:"newCustomers"`
	ActiveCustomers   uint64      `json:"activeCustomers"`
	Purchases         uint64      `json:"purchases"`
	Returns           uint64      `json:"returns"`
	SalesAmount       decimal     `json:"salesAmount"`
	ReturnsAmount     decimal     `json:"returnsAmount"`
	PointsIssued      decimal     `json:"pointsIssued"`
	PointsRedeemed    decimal     `json:"pointsRedeemed"`
	PointsExpired     decimal     `json:"pointsExpired"`
	PointsReversed    decimal     `json:"pointsReversed"`
	PointsOutstanding decimal     `json:"pointsOutstanding"`
	RedemptionRate    *decimal    `json:"redemptionRate"`
	CustomersByTier   []tierCount `json:"customersByTier"` // as of now; null in periods
}

func newPeriodShape(p *period) periodShape {
	s := periodShape{
		p.from.String(), p.to.String(), p.customers, p.tally.NewCustomers, p.active, p.tally.Purchases, p.tally.Returns,
		p.tally.SalesAmount, p.tally.ReturnsAmount, p.tally.PointsIssued, p.tally.PointsRedeemed, p.tally.PointsExpired,
		p.tally.PointsReversed, p.outstanding, nil, nil,
	}
	if issued := p.tally.PointsIssued; issued > 0 {
		rate, ok := roundRat(new(big.Rat).Quo(p.tally.PointsRedeemed.rat(), issued.rat()), decimalPlaces, roundHalfUp)
		if ok {
			s.RedemptionRate = &rate
		}
	}
	return s
}

// statsDays is the span of statistics where the caller names none: the last
// 30 days.
const statsDays = 30

func getStatistics(r *request) (action, error) {
	r.large = true
	q := statsQuery{to: dayOf(r.moment("to", r.now, true), r.cfg.zone)}
	q.from = dayOf(r.moment("from", (q.to-statsDays+1).start(r.cfg.zone), false), r.cfg.zone)
	if r.query.err == nil && (q.from > q.to || q.to-q.from > maxStatsDays) {
		r.query.invalid("from", "debe ser anterior a to, a lo sumo 100 años")
	}
	text, present := r.query.text("groupBy", 20)
	q.groupBy = choice(r.query.input, text, present, "groupBy", "", []string{groupDay, groupWeek, groupMonth})
	if u, given := r.query.id("loyaltyProgramId"); given {
		q.program = &u
	}
	return func(t *txn) (any, error) {
		found, err := t.statistics(q)
		if err != nil {
			return nil, err
		}
		s := statisticsShape{
			q.from.String(), q.to.String(), q.groupBy, t.cfg.Organization.Settings.Timezone, q.program,
			newPeriodShape(&found.total), make([]periodShape, len(found.periods)),
		}
		s.Total.CustomersByTier = found.tiers
		for i := range found.periods {
			s.Periods[i] = newPeriodShape(&found.periods[i])
		}
		return s, nil
	}, nil
}

// The reference of this API.

//go:embed openapi.json
var openAPI []byte

func getOpenAPI(*request) (action, error) {
	return func(*txn) (any, error) { return compactOpenAPI(), nil }, nil
}

// compactOpenAPI is openAPI without white space, which is for those who edit it.
var compactOpenAPI = sync.OnceValue(func() json.RawMessage {
	var b bytes.Buffer
	json.Compact(&b, openAPI) // a test holds it to be JSON
	b.WriteByte('\n')
	return b.Bytes()
})

// Health.

type health struct {
	Status string `json:"status"`
}

func isAlive(*request) (action, error) {
	return func(*txn) (any, error) { return health{"ok"}, nil }, nil
}

// isReady reads the store, and no longer than a second. A source that asks all
// the time is told what was found last, which is a fraction of a second old. It
// writes nothing: what came of the last write is known, and keepHouse tries one
// now and then where that was refused.
func (a *api) isReady(r *request) (action, error) {
	ready := !a.unready.Load()
	if a.probes.take(sourceAddress(r.Request, a.trusted), r.now) == 0 {
		ready = a.canRead(context.WithoutCancel(r.Context()))
		a.unready.Store(!ready)
	}
	if !ready || a.engine.store.refusing.Load() {
		return nil, newError("unavailable").header("Retry-After", "1")
	}
	if !a.engine.clock.isSafe() {
		return nil, errClockUnsafe()
	}
	return func(*txn) (any, error) { return health{"ok"}, nil }, nil
}

func (a *api) canRead(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	read := make(chan error, 1)
	go func() { // a disk that hangs heeds no context
		read <- a.engine.store.View(ctx, func(tx Tx) error {
			_, _, err := tx.Get(newKey('v'))
			return err
		})
	}()
	select {
	case err := <-read:
		return err == nil
	case <-ctx.Done():
		return false
	}
}
