package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sello/internal/tz"
	"sello/internal/webhook"
)

// What is wrong with a document taken by itself. All faults are collected, each with the path at
// which it is. What depends on the configuration before is checked in document_apply.go.

// A checker collects the problems of a document. What follows from a value that could not
// be read is not reported.
type checker struct {
	problems []problem
	unread   []string // paths of values of another type
}

// A problem is a fault of a document, or a warning, at a path; "" is the whole document.
type problem struct {
	path string
	sentence
}

// toldProblems are problems as texts that begin with their paths.
func toldProblems(problems []problem) []string {
	var list []string
	for _, p := range problems {
		text := p.String()
		if p.path != "" {
			text = p.path + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// unreadable reports a value of another type.
func (ck *checker) unreadable(path string, why sentence) {
	ck.problems = append(ck.problems, problem{path, why})
	ck.unread = append(ck.unread, path)
}

func (ck *checker) require(ok bool, path, format string, args ...any) {
	if !ok {
		ck.fail(path, sentence{format, args})
	}
}

func (ck *checker) fail(path string, why sentence) {
	if !slices.ContainsFunc(ck.unread, func(p string) bool { return isPartOf(p, path) || isPartOf(path, p) }) {
		ck.problems = append(ck.problems, problem{path, why})
	}
}

// isSound reports whether nothing is wrong at a path or in what it holds, so that other
// values can be compared with it.
func (ck *checker) isSound(path string) bool {
	return !slices.ContainsFunc(ck.problems, func(p problem) bool { return isPartOf(p.path, path) })
}

// isPartOf reports whether a path is another one, or leads to a part of it.
func isPartOf(path, whole string) bool {
	rest, ok := strings.CutPrefix(path, whole)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// present reports a text that is missing.
func (ck *checker) present(path, value string) bool {
	ck.require(value != "", path, "falta")
	return value != ""
}

func (ck *checker) oneOf(path, value string, allowed ...string) {
	ck.require(slices.Contains(allowed, value), path, "debe ser %s", anyOf(allowed))
}

// name checks a text that people read.
func (ck *checker) name(path, value string) {
	if !ck.present(path, value) {
		return
	}
	n := len([]rune(value))
	ck.require(n <= 100 && trimBlanks(value) == value, path, "debe tener de 1 a 100 caracteres, sin espacios al principio ni al final")
	ck.require(!strings.ContainsFunc(value, forbidden), path, "contiene caracteres no permitidos")
}

// currency checks what a program's points are called.
func (ck *checker) currency(path string, c currencyName) {
	if c.One != "" {
		ck.name(path+".one", c.One)
		path += ".many"
	}
	ck.name(path, c.Many)
}

var keyForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,49}$`)

// keys checks the n keys of a list, which documents are matched by.
func (ck *checker) keys(path string, n int, key func(int) string) {
	seen := map[string]bool{}
	for i := range n {
		k, at := key(i), fmt.Sprintf("%s[%d].key", path, i)
		if !ck.present(at, k) {
			continue
		}
		ck.require(keyForm.MatchString(k), at, "debe tener de 1 a 50 letras minúsculas, cifras, - o _, y empezar con una letra o cifra")
		ck.require(!seen[k], at, "%q está repetida", k)
		seen[k] = true
	}
}

func (ck *checker) url(path string, value *string) {
	if value == nil {
		return
	}
	u, err := url.Parse(*value)
	ck.require(err == nil && slices.Contains([]string{"https", "http", ""}, u.Scheme), path, "debe ser una URL http o https")
	ck.require(len(*value) <= mostURL, path, "no puede pasar de 2000 bytes")
}

const mostURL = 2000 // bytes

// isAbsolute reports whether a text is an http or https URL with a host.
func isAbsolute(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != ""
}

// isSlug reports whether a text can be an organization's slug.
func isSlug(text string) bool { return len(text) <= 50 && slugForm.MatchString(text) }

var (
	slugForm     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	countryForm  = regexp.MustCompile(`^[A-Z]{2}$`)
	colorForm    = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	languageForm = regexp.MustCompile(`^(es|en)(-([A-Z]{2}|[0-9]{3}))?$`)
	clockForm    = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

func (ck *checker) document(d *document) {
	zone := ck.organization(&d.Organization)
	ck.keys("programs", len(d.Programs), func(i int) string { return d.Programs[i].Key })
	defaults, known := 0, ck.isSound("programs") || len(d.Programs) > 0
	for i := range d.Programs {
		p, path := &d.Programs[i], fmt.Sprintf("programs[%d]", i)
		if known = known && !slices.Contains(ck.unread, path) && ck.isSound(path+".default"); p.Default {
			defaults++
		}
		ck.program(path, p, zone)
	}
	switch {
	case d.Programs == nil || !known || defaults == 1:
	case len(d.Programs) == 0:
		ck.problems = append(ck.problems, problem{"programs", sentenceOf("hace falta al menos un programa")})
	default:
		ck.problems = append(ck.problems, problem{"programs", sentenceOf("exactamente uno debe tener default: true")})
	}

	ck.keys("rewards", len(d.Rewards), func(i int) string { return d.Rewards[i].Key })
	for i := range d.Rewards {
		ck.reward(fmt.Sprintf("rewards[%d]", i), &d.Rewards[i], zone)
	}

	ck.keys("segments", len(d.Segments), func(i int) string { return d.Segments[i].Key })
	for i := range d.Segments {
		s, path := &d.Segments[i], fmt.Sprintf("segments[%d]", i)
		ck.name(path+".name", s.Name)
		ck.segmentRule(path+".rule", &s.Rule, 0)
	}
	ck.webhooks(d.Webhooks)
}

// organization checks the organization and returns its time zone, UTC if that is wrong.
func (ck *checker) organization(o *organization) *time.Location {
	form := func(path, value string, ok bool, must string) {
		if path = "organization." + path; ck.present(path, value) && !ok {
			ck.fail(path, sentence{format: must})
		}
	}
	form("slug", o.Slug, isSlug(o.Slug), "debe tener de 1 a 50 letras minúsculas, cifras y guiones")
	ck.name("organization.name", o.Name)
	ck.name("organization.plan.name", o.Plan.Name)
	form("profile.country", o.Profile.Country, countryForm.MatchString(o.Profile.Country), "debe ser un código de país de dos letras")
	ck.url("organization.profile.logoUrl", o.Profile.LogoURL)
	ck.require(o.Profile.PrimaryColor == nil || colorForm.MatchString(*o.Profile.PrimaryColor), "organization.profile.primaryColor", "debe ser un color como #5B3A29")
	zone, err := tz.Load(o.Settings.Timezone)
	form("settings.timezone", o.Settings.Timezone, err == nil && o.Settings.Timezone != "Local", "debe ser una zona horaria IANA")
	form("settings.currency", o.Settings.Currency, currencyForm.MatchString(o.Settings.Currency), "debe ser un código de moneda de tres letras")
	ck.require(languageForm.MatchString(o.Settings.Language), "organization.settings.language", "debe ser es o en, con o sin una región, como es-MX")
	ck.oneOf("organization.settings.externalIds", o.Settings.ExternalIDs, externalIDsFree, externalIDsUnique)
	if n := o.Settings.AmountDecimals; n != nil {
		ck.require(*n >= 0 && *n <= decimalPlaces, "organization.settings.amountDecimals", "debe estar entre 0 y %d", decimalPlaces)
	}
	late := *o.Settings.MaxLateDays
	ck.require(late >= 0 && late <= mostLateDays, "organization.settings.maxLateDays", "debe estar entre 0 y %d", mostLateDays)
	for i, r := range o.Settings.SecondFactor {
		path := fmt.Sprintf("organization.settings.secondFactor[%d]", i)
		if ck.require(r.known(), path, "debe ser %s", anyOf(roleNames())); slices.Contains(o.Settings.SecondFactor[:i], r) {
			ck.require(false, path, "se repite")
		}
	}
	ck.notices(o.Settings.Notices)
	if d := o.Settings.Cards; d != nil {
		ck.cards(d)
	}
	if d := o.Settings.Tickets; d != nil {
		ck.tickets(d, o.Settings.ExternalIDs)
	}
	if err != nil {
		return time.UTC
	}
	return zone
}

func (ck *checker) cards(d *cardsDoc) {
	const path = "organization.settings.cards"
	ck.oneOf(path+".proof", d.Proof, proofNone, proofSpending)
	ck.require(d.ProofFrom >= 0, path+".proofFrom", "debe ser mayor o igual a 0")
	if d.PrivacyURL != nil {
		ck.require(isAbsolute(*d.PrivacyURL), path+".privacyUrl", "debe ser una URL http o https")
		ck.require(len(*d.PrivacyURL) <= mostURL, path+".privacyUrl", "no puede pasar de 2000 bytes")
	}
}

func (ck *checker) tickets(d *ticketsDoc, externalIDs string) {
	const path = "organization.settings.tickets"
	ck.require(externalIDs == externalIDsUnique, "organization.settings.externalIds", "tickets requiere externalIds Unique")
	ck.require(d.Days >= 1 && d.Days <= mostTicketDays, path+".days", "debe estar entre 1 y %d", mostTicketDays)
	ck.require(d.MaxPerCustomerPerDay >= 1 && d.MaxPerCustomerPerDay <= mostTicketsDay, path+".maxPerCustomerPerDay", "debe estar entre 1 y %d", mostTicketsDay)
}

// notices checks the texts that are sent by hand.
func (ck *checker) notices(d *noticesDoc) {
	for i, text := range d.texts() {
		rule := noticeRules[i]
		path := "organization.settings.notices." + string(rule.kind)
		ck.require(utf8.RuneCountInString(text) <= maxNotice, path, "no puede superar los %d caracteres", maxNotice)
		ck.require(!strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }), path, "contiene caracteres no permitidos")
		for _, m := range noticePlace.FindAllStringSubmatch(text, -1) {
			ck.require(slices.Contains(rule.places, m[1]), path, "no hay {%s}; hay %s", m[1], rule.known())
		}
	}
}

func (ck *checker) reward(path string, r *rewardDoc, zone *time.Location) {
	ck.name(path+".name", r.Name)
	ck.url(path+".imageUrl", r.ImageURL)
	ck.present(path+".program", r.Program)
	ck.oneOf(path+".status", r.Status, statusActive, statusInactive)
	ck.require(r.PointsCost > 0, path+".pointsCost", "debe ser mayor a 0")
	ck.require(r.Stock == nil || *r.Stock >= 0, path+".stock", "debe ser mayor o igual a 0, o null")
	ck.require(r.LimitPerCustomer == nil || *r.LimitPerCustomer >= 0, path+".limitPerCustomer", "debe ser mayor a 0")
	ck.dates(path, "validFrom", r.ValidFrom, "validTo", r.ValidTo, zone)
	ck.oneOf(path+".fulfilment", r.Fulfilment, fulfilImmediate, fulfilVoucher)
	if days := r.ValidDays; days != nil {
		ck.require(r.Fulfilment == fulfilVoucher || !ck.isSound(path+".fulfilment"), path+".validDays", "solo va con fulfilment: Voucher")
		ck.require(*days >= 0 && *days <= maxDays, path+".validDays", "debe estar entre 0 y %d, o null", maxDays)
	}
	if r.Effect != nil {
		ck.effect(path+".effect", r.Effect)
	}
}

func (ck *checker) effect(path string, e *effectDoc) {
	if ck.oneOf(path+".type", e.Type, effectAmount, effectPercent, effectProduct); !ck.isSound(path + ".type") {
		return
	}
	for _, member := range []struct {
		name, of string
		there    bool
	}{{"amount", effectAmount, e.Amount != nil}, {"percent", effectPercent, e.Percent != nil}, {"sku", effectProduct, e.SKU != nil}} {
		if e.Type == member.of {
			ck.require(member.there, path+"."+member.name, "falta")
		} else {
			ck.require(!member.there, path+"."+member.name, "solo va con type: %s", member.of)
		}
	}
	ck.require(e.Amount == nil || *e.Amount > 0, path+".amount", "debe ser mayor a 0")
	ck.require(e.Percent == nil || *e.Percent > 0 && *e.Percent <= decimalOf(100), path+".percent", "debe ser mayor a 0, hasta 100")
	if e.SKU != nil {
		n := len([]rune(*e.SKU))
		ck.require(n >= 1 && n <= 100 && trimBlanks(*e.SKU) == *e.SKU, path+".sku", "debe tener de 1 a 100 caracteres, sin espacios al principio ni al final")
		ck.require(!strings.ContainsFunc(*e.SKU, forbidden), path+".sku", "contiene caracteres no permitidos")
	}
}

func (ck *checker) dates(path, fromName, from, toName, to string, zone *time.Location) {
	start, ok1 := parseMoment(from, zone, false)
	end, ok2 := parseMoment(to, zone, true)
	ck.require(ok1 || from == "", path+"."+fromName, "debe ser una fecha ISO 8601")
	ck.require(ok2 || to == "", path+"."+toName, "debe ser una fecha ISO 8601")
	ck.require(!ok1 || !ok2 || start <= end, path+"."+toName, "debe ser posterior a %s", fromName)
}

func (ck *checker) program(path string, p *programDoc, zone *time.Location) {
	ck.name(path+".name", p.Name)
	ck.oneOf(path+".join", p.Join, joinDefault, joinAll)
	ck.currency(path+".currency", p.Currency)
	ck.require(p.PointsDecimals >= 0 && p.PointsDecimals <= 4, path+".pointsDecimals", "debe estar entre 0 y 4")
	ck.oneOf(path+".rounding", string(p.Rounding), string(roundFloor), string(roundCeil), string(roundHalfUp), string(roundHalfEven))
	ck.oneOf(path+".returns", p.Returns, returnsReverse, returnsKeep)
	ck.oneOf(path+".negativeBalance", p.NegativeBalance, negativeClamp, negativeDebt)
	if e := p.Expiry; e != nil {
		ck.require(min(e.Days, e.Months, e.InactiveMonths) >= 0 && (e.hasLife() || e.InactiveMonths > 0) && (e.Days == 0 || e.Months == 0), path+".expiry",
			"debe tener days o months, mayor a 0, y no ambos, o inactiveMonths")
		ck.require(e.Days <= maxDays, path+".expiry.days", "no puede pasar de %d", maxDays)
		ck.require(e.Months <= maxMonths, path+".expiry.months", "no puede pasar de %d", maxMonths)
		ck.require(e.InactiveMonths <= maxMonths, path+".expiry.inactiveMonths", "no puede pasar de %d", maxMonths)
		ck.require(e.EndOf == "" || e.EndOf == "Month", path+".expiry.endOf", "debe ser Month")
		ck.require(e.EndOf == "" || e.hasLife() || !ck.isSound(path+".expiry"), path+".expiry.endOf", "solo va con days o months")
	}
	ck.oneOf(path+".tierBasis.metric", p.TierBasis.Metric, metricPoints, metricSpent, metricPurchases)
	ck.oneOf(path+".tierBasis.window", p.TierBasis.Window, windowLifetime, windowRolling, windowCalendarYear)
	if months := p.TierBasis.Months; p.TierBasis.Window == windowRolling {
		ck.require(months > 0 && months <= maxMonths, path+".tierBasis.months", "debe estar entre 1 y %d", maxMonths)
	} else if ck.isSound(path + ".tierBasis.window") {
		ck.require(months <= 0, path+".tierBasis.months", "solo va con window: Rolling")
	}
	ck.tiers(path, p.Tiers)
	if p.Payment != nil {
		ck.payment(path+".payment", p)
	}
	ck.patterns(path+".excludeSkus", p.ExcludeSKUs)
	ck.rules(path, p, zone)
}

func (ck *checker) payment(path string, p *programDoc) {
	y := p.Payment
	ck.require(y.Points > 0, path+".points", "debe ser mayor a 0")
	ck.require(y.Amount > 0, path+".amount", "debe ser mayor a 0")
	ck.require(y.MinPoints >= 0, path+".minPoints", "debe ser mayor o igual a 0")
	ck.require(y.MaxPercent == nil || *y.MaxPercent > 0 && *y.MaxPercent <= decimalOf(100), path+".maxPercent", "debe ser mayor a 0, hasta 100")
	ck.require(y.Step >= 0, path+".step", "debe ser mayor a 0")
	if ck.isSound(path+".step") && ck.isSound(strings.TrimSuffix(path, ".payment")+".pointsDecimals") {
		ck.require(y.Step%unit(p.PointsDecimals) == 0, path+".step", "debe tener a lo sumo %d decimales", p.PointsDecimals)
	}
	ck.oneOf(path+".earnOn", y.EarnOn, earnOnPaid, earnOnTotal)
	ck.patterns(path+".excludeSkus", y.ExcludeSKUs)
}

func (ck *checker) tiers(path string, tiers []tier) {
	for i, t := range tiers {
		at := fmt.Sprintf("%s.tiers[%d]", path, i)
		ck.name(at+".name", t.Name)
		ck.require(!slices.ContainsFunc(tiers[:i], func(o tier) bool { return o.Name == t.Name }), at+".name", "%q está repetido", t.Name)
		ck.require(t.Multiplier == nil || *t.Multiplier >= decimalOf(1), at+".multiplier", "debe ser mayor o igual a 1")
		if i == 0 {
			ck.require(t.Threshold == 0, at+".threshold", "el primer nivel empieza en 0")
		} else if ck.isSound(fmt.Sprintf("%s.tiers[%d].threshold", path, i-1)) {
			ck.require(t.Threshold > tiers[i-1].Threshold, at+".threshold", "debe ser mayor al del nivel anterior")
		}
	}
}

func (ck *checker) rules(path string, p *programDoc, zone *time.Location) {
	ck.keys(path+".rules", len(p.Rules), func(i int) string { return p.Rules[i].Key })
	for i := range p.Rules {
		at, r := fmt.Sprintf("%s.rules[%d]", path, i), &p.Rules[i]
		ck.rule(at, r, zone)
		if p.Expiry.hasLife() && ck.isSound(path+".expiry") && r.ExpiresInDays == 0 && r.PendingDays > 0 {
			days := p.Expiry.leastDays()
			ck.require(r.PendingDays < days, at+".pendingDays", "debe ser menor a los %d días en que los puntos del programa pueden vencer", days)
		}
		if !ck.isSound(path + ".pointsDecimals") {
			continue
		}
		unrounded := func(name string, d *decimal) {
			if d != nil {
				ck.require(*d%unit(p.PointsDecimals) == 0, at+"."+name, "debe tener a lo sumo %d decimales", p.PointsDecimals)
			}
		}
		if r.On == onSignup || r.On == onBirthday {
			unrounded("points", r.Points)
		}
		unrounded("maxPoints", r.MaxPoints)
		unrounded("budget", r.Budget)
	}
}

// leastDays returns the fewest days after which points expire, over every day of
// four years on which they may be given.
func (e *expiry) leastDays() int {
	if e.Days+e.Months > maxDays {
		return maxDays // invalid; program reports it
	}
	least := maxDays
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 4*365 + 1 {
		from := instantOf(first.AddDate(0, 0, n))
		least = min(least, int(dayOf(e.endOfLife(from, time.UTC), time.UTC)-dayOf(from, time.UTC)))
	}
	return least
}

func (ck *checker) rule(path string, r *rule, zone *time.Location) {
	ck.name(path+".name", r.Name)
	ck.oneOf(path+".on", r.On, onPurchase, onSignup, onBirthday, onTier)
	ck.ruleEffect(path, r)
	ck.ruleOccasion(path, r)
	ck.ruleConditions(path, r, zone)
	if r.Category != "" {
		ck.oneOf(path+".category", r.Category, earningCategories()...)
	}
	ck.require(r.PendingDays >= 0 && r.PendingDays <= maxDays, path+".pendingDays", "debe estar entre 0 y %d", maxDays)
	ck.require(r.ExpiresInDays >= 0 && r.ExpiresInDays <= maxDays, path+".expiresInDays", "debe estar entre 0 y %d", maxDays)
	ck.require(r.ExpiresInDays == 0 || r.ExpiresInDays > r.PendingDays, path+".expiresInDays", "debe ser mayor a pendingDays")
}

// ruleEffect checks that a rule has one effect.
func (ck *checker) ruleEffect(path string, r *rule) {
	effects := 0
	positive := func(name string, d *decimal) {
		if d != nil {
			effects++
			ck.require(*d > 0, path+"."+name, "debe ser mayor a 0")
		}
	}
	positive("perItem", r.PerItem)
	positive("points", r.Points)
	if r.Per != nil {
		effects++
		ck.require(r.Per.Amount > 0, path+".per.amount", "debe ser mayor a 0")
		ck.require(r.Per.Points > 0, path+".per.points", "debe ser mayor a 0")
	}
	if r.Multiplier != nil {
		effects++
		ck.require(*r.Multiplier >= decimalOf(1), path+".multiplier", "debe ser mayor o igual a 1")
	}
	if r.Reward != "" {
		effects++
		ck.require(r.MaxPoints == nil && r.Budget == nil && r.Category == "" && r.PendingDays == 0 && r.ExpiresInDays == 0,
			path, "una regla que da reward no admite maxPoints, budget, category, pendingDays ni expiresInDays")
	}
	ck.require(effects == 1, path, "debe tener exactamente un efecto: per, perItem, points, multiplier o reward")
}

// ruleOccasion checks that a rule for another occasion than a purchase has no conditions about
// purchases.
func (ck *checker) ruleOccasion(path string, r *rule) {
	if slices.Contains([]string{onSignup, onBirthday, onTier}, r.On) {
		none := r.MinAmount == nil && len(r.SKUs)+len(r.ExcludeSKUs)+len(r.Segments)+len(r.Days)+len(r.Labels) == 0 && r.Hours == nil &&
			!r.FirstPurchase && r.MaxPerCustomerPerDay == 0 && r.MinQuantity == nil &&
			r.MaxPerCustomer == 0 && r.Every == 0 && r.MaxPoints == nil && r.Budget == nil
		if r.On == onTier {
			ck.require(r.Reward != "", path, "una regla de %s da reward", r.On)
			ck.require(none, path, "una regla de %s solo admite tiers, from y until como condiciones", r.On)
		} else {
			ck.require(r.Points != nil || r.Reward != "", path, "una regla de %s da points o reward", r.On)
			ck.require(none && len(r.Tiers) == 0, path, "una regla de %s solo admite from y until como condiciones", r.On)
		}
	}
}

func (ck *checker) ruleConditions(path string, r *rule, zone *time.Location) {
	ck.above("minAmount", path, r.MinAmount)
	ck.patterns(path+".skus", r.SKUs)
	ck.patterns(path+".excludeSkus", r.ExcludeSKUs)
	ck.above("minQuantity", path, r.MinQuantity)
	ck.require(r.MinQuantity == nil || len(r.SKUs) > 0 || !ck.isSound(path+".skus"), path+".minQuantity", "solo va con skus")
	ck.require(r.MaxPoints == nil || *r.MaxPoints >= 0, path+".maxPoints", "debe ser mayor a 0") // decode tells of 0
	ck.require(r.Budget == nil || *r.Budget >= 0, path+".budget", "debe ser mayor a 0")
	ck.require(r.MaxPerCustomer >= 0, path+".maxPerCustomer", "debe ser mayor a 0")
	ck.require(r.Every >= 0, path+".every", "debe ser mayor a 0")
	ck.ruleLabels(path+".labels", r.Labels)
	for i, d := range r.Days {
		ck.oneOf(fmt.Sprintf("%s.days[%d]", path, i), d, "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
	}
	if r.Hours != nil {
		ck.require(clockForm.MatchString(r.Hours.From), path+".hours.from", "debe ser una hora como 08:30")
		ck.require(clockForm.MatchString(r.Hours.To) && r.Hours.To != r.Hours.From, path+".hours.to", "debe ser una hora como 18:30, distinta de from")
	}
	ck.dates(path, "from", r.From, "until", r.Until, zone)
	ck.require(r.MaxPerCustomerPerDay >= 0, path+".maxPerCustomerPerDay", "debe ser mayor a 0")
}

// above checks a figure that may be missing.
func (ck *checker) above(name, path string, d *decimal) {
	ck.require(d == nil || *d > 0, path+"."+name, "debe ser mayor a 0")
}

func (ck *checker) patterns(path string, list []string) {
	for i, sku := range list {
		ck.require(sku != "" && len([]rune(sku)) <= 100, fmt.Sprintf("%s[%d]", path, i), "debe tener de 1 a 100 caracteres")
	}
}

// ruleLabels checks the labels that a rule asks for: as many as a sale can have.
func (ck *checker) ruleLabels(path string, asked map[string][]string) {
	ck.require(len(asked) <= maxLabels, path, "no puede tener más de %d nombres", maxLabels)
	names := slices.Sorted(maps.Keys(asked))
	for _, name := range names {
		at := path + "." + name
		ck.require(isLabelText(name, maxLabelName), at, "su nombre debe tener de 1 a %d caracteres, sin espacios al principio ni al final", maxLabelName)
		ck.require(!strings.Contains(name, labelMark), at, "no puede tener «: »")
		ck.require(name == names[slices.IndexFunc(names, func(o string) bool { return strings.EqualFold(o, name) })], at, "se repite con otras mayúsculas")
		ck.require(len(asked[name]) > 0, at, "hace falta al menos un valor")
		for i, value := range asked[name] {
			ck.require(isLabelText(value, maxLabelValue), fmt.Sprintf("%s[%d]", at, i), "debe tener de 1 a %d caracteres, sin espacios al principio ni al final", maxLabelValue)
		}
	}
}

const maxRuleDepth = 10

func (ck *checker) segmentRule(path string, r *segmentRule, depth int) {
	if depth > maxRuleDepth {
		ck.require(false, path, "demasiados niveles")
		return
	}
	forms := 0
	for _, is := range []bool{r.All != nil, r.Any != nil, r.Not != nil, r.Field != ""} {
		if is {
			forms++
		}
	}
	ck.require(forms == 1, path, "debe tener exactamente uno de all, any, not o field")
	for i := range r.All {
		ck.segmentRule(fmt.Sprintf("%s.all[%d]", path, i), &r.All[i], depth+1)
	}
	for i := range r.Any {
		ck.segmentRule(fmt.Sprintf("%s.any[%d]", path, i), &r.Any[i], depth+1)
	}
	ck.require(r.All == nil || len(r.All) > 0, path+".all", "no puede estar vacío")
	ck.require(r.Any == nil || len(r.Any) > 0, path+".any", "no puede estar vacío")
	if r.Not != nil {
		ck.segmentRule(path+".not", r.Not, depth+1)
	}
	if r.Field != "" {
		ck.comparison(path, r)
		return
	}
	ck.require(r.Op == "" && r.Value == nil, path, "op y value van con field")
}

// comparison checks a segment rule that has a field.
func (ck *checker) comparison(path string, r *segmentRule) {
	field, ok := segmentFieldOf(r.Field)
	if !ok && field.value != nil {
		ck.require(false, path+".field", "después de attributes. va un nombre de 1 a %d caracteres, sin espacios al principio ni al final", maxAttributeName)
		return
	}
	if !ok {
		ck.oneOf(path+".field", r.Field, append(slices.Sorted(maps.Keys(segmentFields)), attributeField+"NOMBRE", pointsField+"PROGRAMA")...)
		return
	}
	var kind byte // of an attribute's value
	if field.value != nil && len(r.Value) > 0 {
		kind = kindOfJSON(string(r.Value))
	}
	var want any = new(bool)
	switch {
	case field.number != nil, kind == '0':
		want = new(decimal)
	case field.text != nil, kind == '"':
		want = new(string)
	}
	number, ordered := want.(*decimal)
	ops := []string{"=", "!="}
	if ordered {
		ops = append(ops, "<", "<=", ">", ">=")
	}
	ck.oneOf(path+".op", r.Op, ops...)
	switch {
	case r.Value == nil:
		ck.require(false, path+".value", "falta")
		return
	case field.value != nil && strings.Contains("n[{", string(r.Value[:1])):
		ck.require(false, path+".value", "debe ser un texto, un número, true o false")
		return
	}
	if err := json.Unmarshal(r.Value, want); err != nil || string(r.Value) == "null" {
		ck.fail(path+".value", mustBe(reflect.ValueOf(want).Elem(), r.Value, err))
		return
	}
	if r.Field == "birthMonth" {
		ck.require(decimalOf(1) <= *number && *number <= decimalOf(12) && *number%decimalOne == 0, path+".value", "debe ser un mes: un entero de 1 a 12")
	}
}

func (ck *checker) webhooks(list []webhookDoc) {
	ck.keys("webhooks", len(list), func(i int) string { return list[i].Key })
	ck.require(len(list) <= maxWebhooks, "webhooks", "no puede haber más de %d", maxWebhooks)
	for i := range list {
		w, path := &list[i], fmt.Sprintf("webhooks[%d]", i)
		if ck.present(path+".url", w.URL) {
			ck.require(len(w.URL) <= 2000, path+".url", "no puede pasar de 2000 bytes")
			ck.require(isReceiver(w.URL), path+".url", "debe ser una URL https, sin usuario ni fragmento; http solo hacia localhost o una dirección privada")
		}
		ck.require(len(w.Events) > 0, path+".events", `hace falta al menos uno, como "points.*"`)
		ck.require(len(w.Events) <= len(eventTypes), path+".events", "no puede haber más de %d", len(eventTypes))
		for j, p := range w.Events {
			ck.require(isEventPattern(p), fmt.Sprintf("%s.events[%d]", path, j), "no es ningún tipo de evento: %q", p)
		}
		ck.oneOf(path+".status", w.Status, statusActive, statusInactive)
	}
}

// isReceiver reports whether a webhook may have a URL. Without TLS only this machine and
// private networks may, which `serve -webhook-allow` has to allow.
func isReceiver(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	near := u.Hostname() == "localhost" || err == nil && !webhook.IsPublic(addr)
	return u.Scheme == "https" || u.Scheme == "http" && near
}
