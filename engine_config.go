package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sello/internal/tz"
)

// A config is the configuration of one organization. It comes from the document
// of `sello apply` (contract §9). What has the same key in the next document
// keeps its id.
//
// The store holds it as one JSON value, so that it is applied whole or not at
// all. A config is never changed once it is built.
type config struct {
	Version      uint64       `json:"version"` // counts what was applied, from 1 (engine.go)
	Number       uint32       `json:"number"`  // stands for the organization in keys
	ID           id           `json:"id"`
	Organization organization `json:"organization"`
	Programs     []*program   `json:"programs"`
	Rewards      []*reward    `json:"rewards"`
	Segments     []*segment   `json:"segments"`

	Webhooks []*webhookDoc `json:"webhooks,omitempty"`

	NextProgram uint32 `json:"nextProgram"`       // the number that the next new program gets
	Recount     bool   `json:"recount,omitempty"` // customers are being recounted (sweep_recount.go)

	zone       *time.Location
	all        []*program // the programs with join: All
	codeSecret []byte     // of member codes; nil if it was lost (engine.go)
	alone      bool       // there is no other organization
}

type organization struct {
	Slug string `json:"slug"`
	Name string `json:"name"`
	Plan struct {
		Name      string `json:"name"`
		APIAccess bool   `json:"apiAccess"`
	} `json:"plan"`
	Profile struct {
		Country      string  `json:"country"`
		Industry     *string `json:"industry"`
		LogoURL      *string `json:"logoUrl"`
		PrimaryColor *string `json:"primaryColor"`
	} `json:"profile"`
	Settings struct {
		Timezone string `json:"timezone"`
		Currency string `json:"currency"`
		Language string `json:"language"`

		MaxLateDays *int   `json:"maxLateDays"` // how old a sale may be when it comes
		ExternalIDs string `json:"externalIds"` // of purchases: Free or Unique

		AmountDecimals *int `json:"amountDecimals,omitempty"` // of amounts that points pay; nil: usualAmountDecimals

		// Of the panel.
		CashierReturns bool   `json:"cashierReturns,omitempty"` // cashiers may return their own sales of the day
		SecondFactor   []role `json:"secondFactor,omitempty"`   // roles that need one

		Notices *noticesDoc `json:"notices,omitempty"` // texts that are sent by hand
		Cards   *cardsDoc   `json:"cards,omitempty"`   // nil: as an empty one
		Tickets *ticketsDoc `json:"tickets,omitempty"` // nil: there are none
	} `json:"settings"`
}

const (
	externalIDsFree   = "Free"
	externalIDsUnique = "Unique"

	usualLateDays = 30
	mostLateDays  = 366
)

// maxLateDays is how many days ago a sale that comes late may have happened.
func (c *config) maxLateDays() int { return *c.Organization.Settings.MaxLateDays }

// uniqueExternalIDs reports whether purchases with one externalId are one sale.
func (c *config) uniqueExternalIDs() bool {
	return c.Organization.Settings.ExternalIDs == externalIDsUnique
}

// fillIn sets the default values of settings that a document leaves out.
func (o *organization) fillIn() {
	s := &o.Settings
	s.Language = cmp.Or(s.Language, "es")
	s.ExternalIDs = cmp.Or(s.ExternalIDs, externalIDsFree)
	if s.Notices != nil && *s.Notices == (noticesDoc{}) {
		s.Notices = nil
	}
	if s.Cards != nil {
		if s.Cards.Proof = cmp.Or(s.Cards.Proof, proofNone); *s.Cards == (cardsDoc{Proof: proofNone}) {
			s.Cards = nil
		}
	}
	if s.MaxLateDays == nil {
		s.MaxLateDays = new(usualLateDays)
	}
}

// A program is a currency of points with the rules that give them.
type program struct {
	Number uint32 `json:"number"` // stands for the program in keys
	ID     id     `json:"id"`
	programDoc

	ids   map[string]id // of the currency, under "", and of the rules, by key; see deriveIDs
	text  string        // ID as text
	gives bool          // a balance or a tier of it can bring vouchers
}

type webhookDoc struct {
	Key    string   `json:"key"`
	URL    string   `json:"url"`
	Events []string `json:"events"` // patterns, as matchesEvent takes them
	Status string   `json:"status"` // Active or Inactive
}

// The ids of a program's currency and rules are derived from the program's id and are
// not stored. parseConfig derives them once for all later calls.

func (p *program) currencyID() id {
	if u, ok := p.ids[""]; ok {
		return u
	}
	return p.ID.derive("currency")
}

func (p *program) ruleID(r *rule) id { return p.ruleIDOf(r.Key) }

// ruleIDOf is the id of a rule by its key. The rule need not be there any more.
func (p *program) ruleIDOf(key string) id {
	if u, ok := p.ids[key]; ok {
		return u
	}
	return p.ID.derive("rule", key)
}

func (p *program) deriveIDs() {
	p.text = p.ID.String()
	ids := map[string]id{"": p.currencyID()}
	for i := range p.Rules {
		ids[p.Rules[i].Key] = p.ruleID(&p.Rules[i])
	}
	p.ids = ids
}

type programDoc struct {
	Key             string       `json:"key"`
	Name            string       `json:"name"`
	Default         bool         `json:"default"`
	Join            string       `json:"join"` // Default or All
	Currency        currencyName `json:"currency"`
	PointsDecimals  int          `json:"pointsDecimals"`
	Rounding        rounding     `json:"rounding"`
	Expiry          *expiry      `json:"expiry"`
	Returns         string       `json:"returns"`         // Reverse or Keep
	NegativeBalance string       `json:"negativeBalance"` // Clamp or Debt
	TierBasis       tierBasis    `json:"tierBasis"`
	Tiers           []tier       `json:"tiers"`                 // lowest threshold first
	Payment         *paymentDoc  `json:"payment,omitempty"`     // nil: its points pay nothing (sales_payments.go)
	ExcludeSKUs     []string     `json:"excludeSkus,omitempty"` // of all its rules
	Rules           []rule       `json:"rules"`
}

// A currencyName is what a program's points are called: "1 Sello", "2 Sellos". A plain word of JSON
// is both; it is written so again, so that a configuration without One keeps its bytes.
type currencyName struct {
	One  string `json:"one"` // "": as Many
	Many string `json:"many"`
}

// Of is the word that stands beside a number: One beside 1 and −1 alone.
func (c currencyName) Of(n decimal) string {
	if c.One != "" && (n == decimalOne || n == -decimalOne) {
		return c.One
	}
	return c.Many
}

func (c currencyName) String() string { return c.Many }

func (c currencyName) MarshalJSON() ([]byte, error) {
	if c.One == "" || c.One == c.Many {
		return json.Marshal(c.Many)
	}
	type both currencyName
	return json.Marshal(both(c))
}

func (c *currencyName) UnmarshalJSON(raw []byte) error {
	*c = currencyName{}
	if raw[0] != '{' {
		return json.Unmarshal(raw, &c.Many)
	}
	type both currencyName
	return json.Unmarshal(raw, (*both)(c))
}

// Whose points a program holds: only of the customers who were enrolled in it while it was the
// default program, or of all customers.
const (
	joinDefault = "Default"
	joinAll     = "All"
)

// An expiry says how long points live from the moment they are given: a
// number of days or of months, stretched to the end of a month if EndOf is
// Month, in the organization's time zone. Beside or instead of that, all of a customer's
// points lapse after InactiveMonths without activity (points_accounts.go).
type expiry struct {
	Days           int    `json:"days,omitempty"`
	Months         int    `json:"months,omitempty"`
	EndOf          string `json:"endOf,omitempty"`
	InactiveMonths int    `json:"inactiveMonths,omitempty"`
}

type tierBasis struct {
	Metric string `json:"metric"` // PointsEarned, AmountSpent or Purchases
	Window string `json:"window"` // Lifetime, Rolling or CalendarYear
	Months int    `json:"months,omitempty"`
}

type tier struct {
	Name       string   `json:"name"`
	Threshold  decimal  `json:"threshold"`
	Multiplier *decimal `json:"multiplier,omitempty"`
}

// A paymentDoc says what the points of a program pay (sales_payments.go).
type paymentDoc struct {
	Points     decimal  `json:"points"` // so many are worth Amount
	Amount     decimal  `json:"amount"`
	MinPoints  decimal  `json:"minPoints,omitempty"`
	MaxPercent *decimal `json:"maxPercent,omitempty"` // of a purchase's total; nil: all of it
	Step       decimal  `json:"step,omitempty"`       // 0: the smallest unit of the program's points
	EarnOn     string   `json:"earnOn"`               // what rules count: Paid or Total

	ExcludeSKUs []string `json:"excludeSkus,omitempty"` // points do not pay for these items
}

const (
	earnOnPaid  = "Paid" // the total less what points paid
	earnOnTotal = "Total"

	usualAmountDecimals = 2
)

// amountDecimals is how many decimals an amount has that points pay.
func (c *config) amountDecimals() int {
	if n := c.Organization.Settings.AmountDecimals; n != nil {
		return *n
	}
	return usualAmountDecimals
}

// A rule gives points. All its conditions must hold; it has one effect.
type rule struct {
	Key  string `json:"key"`
	Name string `json:"name"`

	// Conditions.
	On                   string     `json:"on,omitempty"` // Purchase (default), Signup, Birthday or Tier
	MinAmount            *decimal   `json:"minAmount,omitempty"`
	SKUs                 []string   `json:"skus,omitempty"`        // `*` stands for any run of characters
	ExcludeSKUs          []string   `json:"excludeSkus,omitempty"` // these items neither count nor are counted
	MinQuantity          *decimal   `json:"minQuantity,omitempty"` // of the items that match SKUs
	Tiers                []string   `json:"tiers,omitempty"`
	Segments             []string   `json:"segments,omitempty"` // keys
	Days                 []string   `json:"days,omitempty"`
	Hours                *hourRange `json:"hours,omitempty"`
	From                 string     `json:"from,omitempty"`
	Until                string     `json:"until,omitempty"`
	FirstPurchase        bool       `json:"firstPurchase,omitempty"`
	MaxPerCustomerPerDay int        `json:"maxPerCustomerPerDay,omitempty"`
	MaxPerCustomer       int        `json:"maxPerCustomer,omitempty"` // in a life; 0: no limit
	Every                int        `json:"every,omitempty"`          // 10: on the 10th, 20th … purchase that meets the rest; 0: on all

	// Labels are values by the name of a label: the sale has one of them of each name.
	Labels map[string][]string `json:"labels,omitempty"`

	// Most points: in a sale, and in all; nil: no limit.
	MaxPoints *decimal `json:"maxPoints,omitempty"`
	Budget    *decimal `json:"budget,omitempty"`

	// Effects.
	Per        *perRule `json:"per,omitempty"`
	PerItem    *decimal `json:"perItem,omitempty"`
	Points     *decimal `json:"points,omitempty"`
	Multiplier *decimal `json:"multiplier,omitempty"`
	Reward     string   `json:"reward,omitempty"` // key of one that is given as a voucher (rewards_gifts.go)

	PendingDays   int `json:"pendingDays,omitempty"`
	ExpiresInDays int `json:"expiresInDays,omitempty"`

	Category string `json:"category,omitempty"` // of its movements; "": the usual one
}

const (
	onPurchase = "Purchase"
	onSignup   = "Signup"
	onBirthday = "Birthday"
	onTier     = "Tier" // the customer reaches one
)

type perRule struct {
	Amount decimal `json:"amount"`
	Points decimal `json:"points"`
}

// An hourRange is From ≤ time of day < To, each as "15:04". Where From is after
// To, it runs over midnight.
type hourRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (h *hourRange) contains(clock string) bool {
	if h.From <= h.To {
		return h.From <= clock && clock < h.To
	}
	return h.From <= clock || clock < h.To
}

// isOfNights reports whether the rule has days, and hours that pass midnight.
func (r *rule) isOfNights() bool {
	return len(r.Days) > 0 && r.Hours != nil && r.Hours.From > r.Hours.To
}

// dayOf is the day by which the rule's days and its daily limit take a moment: one after midnight
// belongs to the day on which hours that pass midnight began (contract §31).
func (r *rule) dayOf(at time.Time) day {
	d := dayOn(at.Date())
	if r.isOfNights() && at.Format("15:04") < r.Hours.To {
		d--
	}
	return d
}

// isOnDays reports whether a moment is on one of the rule's days.
func (r *rule) isOnDays(at time.Time) bool {
	return slices.Contains(r.Days, r.dayOf(at).date().Weekday().String())
}

// datesOfDays are the rule's days, and the days whose first hours belong to them.
func (r *rule) datesOfDays() []string {
	list := slices.Clone(r.Days)
	for d := range time.Saturday + 1 {
		if r.isOfNights() && slices.Contains(r.Days, d.String()) {
			list = append(list, ((d + 1) % 7).String())
		}
	}
	return list
}

type reward struct {
	ID        id      `json:"id"`
	CreatedAt instant `json:"createdAt"`
	UpdatedAt instant `json:"updatedAt"`
	rewardDoc
}

type rewardDoc struct {
	Key              string   `json:"key"`
	Program          string   `json:"program"` // key
	Name             string   `json:"name"`
	Description      *string  `json:"description,omitempty"`
	ImageURL         *string  `json:"imageUrl,omitempty"`
	Status           string   `json:"status"` // Active or Inactive
	PointsCost       decimal  `json:"pointsCost"`
	Stock            *int     `json:"stock"` // how many can be redeemed in all; null: no limit
	LimitPerCustomer *int     `json:"limitPerCustomer,omitempty"`
	Tiers            []string `json:"tiers,omitempty"`
	Segments         []string `json:"segments,omitempty"` // keys
	ValidFrom        string   `json:"validFrom,omitempty"`
	ValidTo          string   `json:"validTo,omitempty"`

	Fulfilment string     `json:"fulfilment"` // Immediate or Voucher
	ValidDays  *int       `json:"validDays,omitempty"`
	Effect     *effectDoc `json:"effect,omitempty"`
	AutoIssue  bool       `json:"autoIssue,omitempty"` // redeems itself when the balance reaches its cost (rewards_gifts.go)
}

// An effectDoc is what a till takes off for a redemption: what its type says,
// and only that.
type effectDoc struct {
	Type    string   `json:"type"` // Amount, Percent or Product
	Amount  *decimal `json:"amount,omitempty"`
	Percent *decimal `json:"percent,omitempty"`
	SKU     *string  `json:"sku,omitempty"`
}

const (
	fulfilImmediate = "Immediate"
	fulfilVoucher   = "Voucher"

	effectAmount  = "Amount"
	effectPercent = "Percent"
	effectProduct = "Product"
)

type segment struct {
	ID        id      `json:"id"`
	CreatedAt instant `json:"createdAt"`
	segmentDoc
}

type segmentDoc struct {
	Key         string      `json:"key"`
	Name        string      `json:"name"`
	Description *string     `json:"description,omitempty"`
	Priority    int         `json:"priority"`
	IsActive    bool        `json:"isActive"`
	Rule        segmentRule `json:"rule"`
}

// A segmentRule is a comparison of one customer field, or a combination.
type segmentRule struct {
	All   []segmentRule   `json:"all,omitempty"`
	Any   []segmentRule   `json:"any,omitempty"`
	Not   *segmentRule    `json:"not,omitempty"`
	Field string          `json:"field,omitempty"`
	Op    string          `json:"op,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// parseConfig decodes the stored form.
func parseConfig(raw []byte) (*config, error) {
	c := new(config)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("stored configuration: %w", err)
	}
	var err error
	if c.zone, err = tz.Load(c.Organization.Settings.Timezone); err != nil {
		return nil, fmt.Errorf("stored configuration: %w", err)
	}
	for _, p := range c.Programs {
		p.deriveIDs()
		p.gives = slices.ContainsFunc(c.Rewards, func(r *reward) bool { return r.AutoIssue && r.Program == p.Key }) ||
			slices.ContainsFunc(p.Rules, func(r rule) bool { return r.On == onTier })
		if p.Join == joinAll {
			c.all = append(c.all, p)
		}
	}
	return c, nil
}

func (c *config) stored() ([]byte, error) { return json.Marshal(c) }

func saveConfig(tx Tx, c *config) error {
	value, err := c.stored()
	if err != nil {
		return err
	}
	return tx.Put(newKey('o').byte('c').u32(c.Number), value)
}

// The finders return nil where the organization has no such thing. They do not
// find another organization's ids.

func (c *config) program(pid id) *program {
	return find(c.Programs, func(p *program) bool { return p.ID == pid })
}

func (c *config) programNumber(n uint32) *program {
	return find(c.Programs, func(p *program) bool { return p.Number == n })
}

func (c *config) programKey(key string) *program {
	return find(c.Programs, func(p *program) bool { return p.Key == key })
}

// defaultProgram returns the program that new customers are enrolled in. There
// is always one, since a document without exactly one is refused.
func (c *config) defaultProgram() *program {
	return find(c.Programs, func(p *program) bool { return p.Default })
}

// earnsIn lists the programs that give points to a customer: its own first.
func (c *config) earnsIn(cust *customer) []*program {
	list := []*program{c.programNumber(cust.Program)}
	for _, p := range c.all {
		if p.Number != cust.Program {
			list = append(list, p)
		}
	}
	return list
}

func (c *config) reward(rid id) *reward {
	return find(c.Rewards, func(r *reward) bool { return r.ID == rid })
}

func (c *config) rewardKey(key string) *reward {
	return find(c.Rewards, func(r *reward) bool { return r.Key == key })
}

func (c *config) segment(sid id) *segment {
	return find(c.Segments, func(s *segment) bool { return s.ID == sid })
}

func (c *config) segmentKey(key string) *segment {
	return find(c.Segments, func(s *segment) bool { return s.Key == key })
}

func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// hasLife reports whether points expire some time after they are given.
func (e *expiry) hasLife() bool { return e != nil && (e.Days > 0 || e.Months > 0) }

// endOfLife returns the moment when points given at from expire under e, and never
// if e says no such time. With EndOf it is the last moment of that month.
func (e *expiry) endOfLife(from instant, zone *time.Location) instant {
	if !e.hasLife() {
		return never
	}
	t := addMonths(from.time().In(zone), e.Months).AddDate(0, 0, e.Days)
	if e.EndOf == "Month" {
		return dayOn(t.Year(), t.Month()+1, 0).end(zone)
	}
	return instantOf(t)
}

// programOf returns the program that a request names, or else the customer's own.
func (t *txn) programOf(c *customer, named *id) (*program, error) {
	if named == nil {
		return t.cfg.programNumber(c.Program), nil
	}
	return t.program(*named)
}

// program returns a program of this organization. For any other id the error is
// program_not_found.
func (t *txn) program(pid id) (*program, error) {
	if p := t.cfg.program(pid); p != nil {
		return p, nil
	}
	return nil, newError(codeProgramNotFound)
}

// A cardsDoc says what customers do by themselves with the pages of their cards (contract §25).
type cardsDoc struct {
	Join       bool    `json:"join"`                 // there is a page to join by
	Proof      string  `json:"proof"`                // what needs the digits of the card
	ProofFrom  decimal `json:"proofFrom,omitempty"`  // points: what takes fewer needs none
	PrivacyURL *string `json:"privacyUrl,omitempty"` // of the privacy notice, which the pages lead to
}

// What needs the digits of a card.
const (
	proofNone     = "None"
	proofSpending = "Spending" // each redemption, payment and hold
)

// cards is what the organization's document says of cards.
func (c *config) cards() cardsDoc {
	if d := c.Organization.Settings.Cards; d != nil {
		return *d
	}
	return cardsDoc{Proof: proofNone}
}

// A ticketsDoc says until when tickets are claimed, and how many (contract §26).
type ticketsDoc struct {
	Days int `json:"days"` // after the day of the purchase

	// MaxPerCustomerPerDay bounds how many a customer claims of the purchases of one local day.
	MaxPerCustomerPerDay int `json:"maxPerCustomerPerDay"`
}

const (
	mostTicketDays = 90
	mostTicketsDay = 100
)

// tickets is what the organization's document says of tickets; nil: there are none.
func (c *config) tickets() *ticketsDoc { return c.Organization.Settings.Tickets }

// The texts that a shop sends to its customers by hand, from the panel's Avisos (contract §23). In
// a text {nombre} and the like stand for what is known of the customer.

// A noticesDoc has the texts; an empty one is the usual text.
type noticesDoc struct {
	Expiring string `json:"expiring,omitempty"` // points that expire soon
	Birthday string `json:"birthday,omitempty"` // of the week
	Almost   string `json:"almost,omitempty"`   // one purchase is missing to a tier or a full card
}

// maxNotice is in characters.
const maxNotice = 500

// A noticeKind is one of the texts.
type noticeKind string

const (
	noticeExpiring noticeKind = "expiring"
	noticeBirthday noticeKind = "birthday"
	noticeAlmost   noticeKind = "almost"
)

// A noticeRule says what may stand in braces in a text, and what is usually said.
type noticeRule struct {
	kind   noticeKind
	places []string
	es, en string
}

// known lists what may stand in braces.
func (r *noticeRule) known() string { return "{" + strings.Join(r.places, "}, {") + "}" }

var noticeRules = []noticeRule{
	{noticeExpiring, []string{"nombre", "negocio", "puntos", "moneda", "fecha", "saldo"},
		"Hola, {nombre}: el {fecha} vencen {puntos} {moneda}. Te esperamos en {negocio}.",
		"Hello {nombre}, {puntos} {moneda} expire on {fecha}. See you at {negocio}."},
	{noticeBirthday, []string{"nombre", "negocio", "saldo", "moneda"},
		"¡Feliz cumpleaños, {nombre}! Te esperamos en {negocio}.",
		"Happy birthday, {nombre}! See you at {negocio}."},
	{noticeAlmost, []string{"nombre", "negocio", "meta", "saldo", "moneda"},
		"Hola, {nombre}: con una compra más llegas a {meta}. Te esperamos en {negocio}.",
		"Hello {nombre}, one more purchase and you reach {meta}. See you at {negocio}."},
}

// texts are a document's texts, in the order of noticeRules.
func (d *noticesDoc) texts() []string {
	if d == nil {
		return make([]string, len(noticeRules))
	}
	return []string{d.Expiring, d.Birthday, d.Almost}
}

func (o *organization) notice(kind noticeKind) string {
	for i, rule := range noticeRules {
		if rule.kind != kind {
			continue
		}
		text := o.Settings.Notices.texts()[i]
		if text == "" && strings.HasPrefix(o.Settings.Language, "en") {
			return rule.en
		} else if text == "" {
			return rule.es
		}
		return text
	}
	return ""
}

var noticePlace = regexp.MustCompile(`\{([^{}]*)\}`)

func filledNotice(text string, known map[string]string) string {
	return noticePlace.ReplaceAllStringFunc(text, func(place string) string { return known[place[1:len(place)-1]] })
}
