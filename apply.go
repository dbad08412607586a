package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sello/internal/tz"
)

// A document is what `sello apply` takes and `sello export` gives: all of an
// organization's configuration, without ids (contract §9). A list that is
// left out stays as it is; a list that is there is the whole list.
type document struct {
	Organization organization `json:"organization"`
	Programs     []programDoc `json:"programs"`
	Rewards      []rewardDoc  `json:"rewards"`
	Segments     []segmentDoc `json:"segments"`
}

// A change is one difference that applying a document makes.
type change struct {
	Path string `json:"path"`
	From any    `json:"from"` // nil: was not there
	To   any    `json:"to"`   // nil: is there no more
}

// applied is what applying a document did.
type applied struct {
	Organization string   `json:"organization"` // slug
	Created      bool     `json:"created"`
	DryRun       bool     `json:"dryRun"`
	Changes      []change `json:"changes"`
}

// applyDocument makes the organization's configuration what the document
// says, all of it or, with an error that lists what is wrong by its path,
// nothing. Applying the same document again changes nothing.
func applyDocument(tx Tx, raw []byte, m *mint, dryRun bool) (*applied, error) {
	doc, problems := readDocument(raw)
	if len(problems) > 0 {
		return nil, invalidDocument(problems)
	}
	number, err := organizationNumber(tx, doc.Organization.Slug)
	if err != nil {
		return nil, err
	}
	old := new(config)
	if number != 0 {
		value, _, err := tx.Get(newKey('o').byte('c').u32(number))
		if err != nil {
			return nil, err
		}
		if old, err = parseConfig(value); err != nil {
			return nil, err
		}
	}
	next, problems := old.merge(doc, m)
	if old.Number != 0 && old.Organization.Settings.Timezone != next.Organization.Settings.Timezone {
		customers, err := hasCustomers(tx, old.Number)
		if err != nil {
			return nil, err
		}
		if customers {
			problems = append(problems, "organization.settings.timezone: no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella")
		}
	}
	if len(problems) > 0 {
		return nil, invalidDocument(problems)
	}
	result := &applied{Organization: doc.Organization.Slug, Created: number == 0, DryRun: dryRun}
	if result.Changes, err = differences(old, next); err != nil {
		return nil, err
	}
	same, err := sameDocument(old, next)
	if err != nil || dryRun || same {
		return result, err
	}
	if number == 0 {
		count, _, err := getUint(tx, newKey('o').byte('n'))
		if err != nil {
			return nil, err
		}
		next.Number = uint32(count + 1)
		if err := putUint(tx, newKey('o').byte('n'), count+1); err != nil {
			return nil, err
		}
		if err := putUint(tx, newKey('o').byte('s').text(doc.Organization.Slug), count+1); err != nil {
			return nil, err
		}
	}
	if next.Recount = old.Recount; needsRecount(old, next) {
		next.Recount = true
		if err := startRecount(tx, number); err != nil {
			return nil, err
		}
	}
	if err := noteLatest(tx, next.Number, m.now); err != nil {
		return nil, err
	}
	return result, saveConfig(tx, next)
}

func invalidDocument(problems []string) error {
	return operatorErrorf("", "el documento no es válido:\n  %s", strings.Join(problems, "\n  "))
}

func hasCustomers(tx Tx, org uint32) (bool, error) {
	n, err := get[counters](tx, orgKey('n', org))
	return n != nil && n.Customers > 0, err
}

// merge is the configuration after a document: what has the same key keeps
// its id, what is new gets one. Those of rewards and segments follow from the
// key, so that one taken out and put back goes on with its stock and limits.
func (c *config) merge(doc *document, m *mint) (*config, []string) {
	next := &config{Number: c.Number, ID: c.ID, Organization: doc.Organization, NextProgram: max(c.NextProgram, 1)}
	if next.ID == (id{}) {
		next.ID = m.id()
	}
	var problems []string
	if doc.Programs == nil {
		next.Programs = c.Programs
		next.NextProgram = c.NextProgram
	}
	for _, d := range doc.Programs {
		p := &program{programDoc: d}
		if old := c.programKey(d.Key); old != nil {
			p.ID, p.Number = old.ID, old.Number
		} else {
			p.ID, p.Number = m.id(), next.NextProgram
			next.NextProgram++
		}
		next.Programs = append(next.Programs, p)
	}
	for _, old := range c.Programs {
		if next.programKey(old.Key) == nil {
			problems = append(problems, fmt.Sprintf("programs: falta %q; un programa no se puede quitar", old.Key))
		}
	}
	if len(next.Programs) == 0 {
		problems = append(problems, "programs: hace falta al menos un programa")
	}
	if doc.Rewards == nil {
		next.Rewards = c.Rewards
	}
	for _, d := range doc.Rewards {
		r := &reward{rewardDoc: d, ID: next.ID.derive("reward", d.Key), CreatedAt: m.now, UpdatedAt: m.now}
		if i := slices.IndexFunc(c.Rewards, func(o *reward) bool { return o.Key == d.Key }); i >= 0 {
			old := c.Rewards[i]
			r.ID, r.CreatedAt = old.ID, old.CreatedAt
			if reflect.DeepEqual(old.rewardDoc, d) {
				r.UpdatedAt = old.UpdatedAt
			}
		}
		next.Rewards = append(next.Rewards, r)
	}
	if doc.Segments == nil {
		next.Segments = c.Segments
	}
	for _, d := range doc.Segments {
		s := &segment{segmentDoc: d, ID: next.ID.derive("segment", d.Key), CreatedAt: m.now}
		if old := c.segmentKey(d.Key); old != nil {
			s.ID, s.CreatedAt = old.ID, old.CreatedAt
		}
		next.Segments = append(next.Segments, s)
	}
	return next, append(problems, next.references()...)
}

// document is the configuration as a document.
func (c *config) document() *document {
	d := &document{Organization: c.Organization, Programs: []programDoc{}, Rewards: []rewardDoc{}, Segments: []segmentDoc{}}
	for _, p := range c.Programs {
		d.Programs = append(d.Programs, p.programDoc)
	}
	for _, r := range c.Rewards {
		d.Rewards = append(d.Rewards, r.rewardDoc)
	}
	for _, s := range c.Segments {
		d.Segments = append(d.Segments, s.segmentDoc)
	}
	return d
}

// references are the names in a configuration that nothing has.
func (c *config) references() []string {
	var problems []string
	unknown := func(path, kind, name string) {
		problems = append(problems, fmt.Sprintf("%s: no hay %s %q", path, kind, name))
	}
	checkSegments := func(path string, keys []string) {
		for i, k := range keys {
			if c.segmentKey(k) == nil {
				unknown(fmt.Sprintf("%s.segments[%d]", path, i), "ningún segmento", k)
			}
		}
	}
	checkTiers := func(path string, p *program, names []string) {
		for i, name := range names {
			if !slices.ContainsFunc(p.Tiers, func(t tier) bool { return t.Name == name }) {
				unknown(fmt.Sprintf("%s.tiers[%d]", path, i), "ningún nivel", name)
			}
		}
	}
	for i, p := range c.Programs {
		for j, r := range p.Rules {
			path := fmt.Sprintf("programs[%d].rules[%d]", i, j)
			checkSegments(path, r.Segments)
			checkTiers(path, p, r.Tiers)
		}
	}
	for i, r := range c.Rewards {
		path := fmt.Sprintf("rewards[%d]", i)
		p := c.programKey(r.Program)
		if p == nil {
			unknown(path+".program", "ningún programa", r.Program)
			continue
		}
		checkSegments(path, r.Segments)
		checkTiers(path, p, r.Tiers)
	}
	return problems
}

// documentSchema is the JSON Schema of a document, for editors. Tests hold it against
// the code.
//
//go:embed document.schema.json
var documentSchema []byte

// readDocument decodes and checks a document by itself and fills in what may
// be left out. Each problem begins with the path of what is wrong.
func readDocument(raw []byte) (*document, []string) {
	doc := new(document)
	if _, fault := parseObjectOf(raw, math.MaxInt); fault != nil { // it is the operator's
		return nil, []string{fault.String()}
	}
	if problems := decodeStrict("", raw, reflect.ValueOf(doc).Elem()); len(problems) > 0 {
		return nil, problems
	}
	doc.fillIn()
	ck := new(checker)
	ck.document(doc)
	return doc, ck.problems
}

// String is the fault in Spanish.
func (f *jsonFault) String() string {
	return fmt.Sprintf("línea %d, columna %d: %s", f.line, f.column, map[string]string{
		reasonSyntax:    "no es JSON válido",
		reasonNotObject: "debe ser un objeto",
		reasonDuplicate: "el nombre está repetido en su objeto",
		reasonTrailing:  "sobra lo que sigue al objeto",
		reasonNotUTF8:   "no es UTF-8 válido",
	}[f.reason])
}

// decodeStrict is json.Unmarshal that takes field names to the letter,
// refuses those it does not know and says where a fault is. raw is valid
// JSON without repeated keys.
func decodeStrict(path string, raw json.RawMessage, v reflect.Value) []string {
	raw = bytes.TrimSpace(raw)
	switch {
	case string(raw) == "null":
		return nil
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeStrict(path, raw, v.Elem())
	case v.Kind() == reflect.Struct && raw[0] == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return []string{path + ": " + err.Error()}
		}
		var problems []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if at == "$schema" { // the document's own, for editors
				continue
			}
			field := fieldNamed(v, name)
			if !field.IsValid() {
				problems = append(problems, at+": campo desconocido")
				continue
			}
			problems = append(problems, decodeStrict(at, members[name], field)...)
		}
		return problems
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]() && raw[0] == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return []string{path + ": " + err.Error()}
		}
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
		var problems []string
		for i, e := range elements {
			problems = append(problems, decodeStrict(fmt.Sprintf("%s[%d]", path, i), e, v.Index(i))...)
		}
		return problems
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return []string{path + ": debe ser " + kindName(v)}
	}
	return nil
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func kindName(v reflect.Value) string {
	if v.Type() == reflect.TypeFor[decimal]() {
		return "un número con 4 decimales como máximo"
	}
	switch v.Kind() {
	case reflect.String:
		return "un texto"
	case reflect.Bool:
		return "true o false"
	case reflect.Slice:
		return "una lista"
	case reflect.Struct:
		return "un objeto"
	}
	return "un número entero"
}

// fillIn gives what a document leaves out its usual value.
func (d *document) fillIn() {
	setDefault := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	setDefault(&d.Organization.Settings.Language, "es")
	if len(d.Programs) == 1 {
		d.Programs[0].Default = true
	}
	for i := range d.Programs {
		p := &d.Programs[i]
		setDefault(&p.Currency, "Puntos")
		setDefault((*string)(&p.Rounding), string(roundFloor))
		setDefault(&p.Returns, returnsReverse)
		setDefault(&p.NegativeBalance, negativeClamp)
		setDefault(&p.TierBasis.Metric, metricPoints)
		setDefault(&p.TierBasis.Window, windowLifetime)
		for j := range p.Rules {
			setDefault(&p.Rules[j].On, onPurchase)
		}
	}
	for i := range d.Rewards {
		setDefault(&d.Rewards[i].Status, statusActive)
	}
}

// A checker collects what is wrong with a document.
type checker struct{ problems []string }

func (ck *checker) require(ok bool, path, format string, args ...any) {
	if !ok {
		ck.problems = append(ck.problems, path+": "+fmt.Sprintf(format, args...))
	}
}

func (ck *checker) oneOf(path, value string, allowed ...string) {
	ck.require(slices.Contains(allowed, value), path, "debe ser %s", alternatives(allowed))
}

// name checks a text that people read; key one that documents match by.
func (ck *checker) name(path, value string) {
	n := len([]rune(value))
	ck.require(n >= 1 && n <= 100 && trimBlanks(value) == value, path, "debe tener de 1 a 100 caracteres, sin espacios al principio ni al final")
	ck.require(!strings.ContainsFunc(value, forbidden), path, "contiene caracteres no permitidos")
}

var keyForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,49}$`)

func (ck *checker) keys(path string, n int, key func(int) string) {
	seen := map[string]bool{}
	for i := range n {
		k, at := key(i), fmt.Sprintf("%s[%d].key", path, i)
		ck.require(keyForm.MatchString(k), at, "debe tener de 1 a 50 letras minúsculas, cifras, - o _")
		ck.require(!seen[k], at, "%q está repetida", k)
		seen[k] = true
	}
}

func (ck *checker) url(path string, value *string) {
	if value == nil {
		return
	}
	u, err := url.Parse(*value)
	ck.require(err == nil && slices.Contains([]string{"https", "http", ""}, u.Scheme) && len(*value) <= 2000, path, "debe ser una URL http o https")
}

var (
	slugForm     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	countryForm  = regexp.MustCompile(`^[A-Z]{2}$`)
	colorForm    = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	languageForm = regexp.MustCompile(`^[a-z]{2}(-[A-Z]{2})?$`)
	clockForm    = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

func (ck *checker) document(d *document) {
	o := d.Organization
	if o.Slug == "" {
		ck.require(false, "organization.slug", "falta")
	} else {
		ck.require(slugForm.MatchString(o.Slug) && len(o.Slug) <= 50, "organization.slug", "debe tener de 1 a 50 letras minúsculas, cifras y guiones")
	}
	ck.name("organization.name", o.Name)
	ck.name("organization.plan.name", o.Plan.Name)
	ck.require(countryForm.MatchString(o.Profile.Country), "organization.profile.country", "debe ser un código de país de dos letras")
	ck.url("organization.profile.logoUrl", o.Profile.LogoURL)
	ck.require(o.Profile.PrimaryColor == nil || colorForm.MatchString(*o.Profile.PrimaryColor), "organization.profile.primaryColor", "debe ser un color como #5B3A29")
	zone, err := tz.Load(o.Settings.Timezone)
	ck.require(err == nil && o.Settings.Timezone != "" && o.Settings.Timezone != "Local", "organization.settings.timezone", "debe ser una zona horaria IANA")
	ck.require(currencyForm.MatchString(o.Settings.Currency), "organization.settings.currency", "debe ser un código de moneda de tres letras")
	ck.require(languageForm.MatchString(o.Settings.Language), "organization.settings.language", "debe ser un código de idioma")
	if err != nil {
		zone = time.UTC
	}

	ck.keys("programs", len(d.Programs), func(i int) string { return d.Programs[i].Key })
	defaults := 0
	for i := range d.Programs {
		p := &d.Programs[i]
		if p.Default {
			defaults++
		}
		ck.program(fmt.Sprintf("programs[%d]", i), p, zone)
	}
	ck.require(defaults == 1 || d.Programs == nil, "programs", "exactamente uno debe tener default: true")

	ck.keys("rewards", len(d.Rewards), func(i int) string { return d.Rewards[i].Key })
	for i := range d.Rewards {
		r, path := &d.Rewards[i], fmt.Sprintf("rewards[%d]", i)
		ck.name(path+".name", r.Name)
		ck.url(path+".imageUrl", r.ImageURL)
		ck.oneOf(path+".status", r.Status, statusActive, statusInactive)
		ck.require(r.PointsCost > 0, path+".pointsCost", "debe ser mayor a 0")
		ck.require(r.Stock == nil || *r.Stock >= 0, path+".stock", "debe ser mayor o igual a 0, o null")
		ck.require(r.LimitPerCustomer == nil || *r.LimitPerCustomer > 0, path+".limitPerCustomer", "debe ser mayor a 0")
		ck.dates(path, "validFrom", r.ValidFrom, "validTo", r.ValidTo, zone)
	}

	ck.keys("segments", len(d.Segments), func(i int) string { return d.Segments[i].Key })
	for i := range d.Segments {
		s, path := &d.Segments[i], fmt.Sprintf("segments[%d]", i)
		ck.name(path+".name", s.Name)
		ck.segmentRule(path+".rule", &s.Rule, 0)
	}
}

func (ck *checker) dates(path, fromName, from, toName, to string, zone *time.Location) {
	start, ok1 := parseMoment(from, zone, false)
	end, ok2 := parseMoment(to, zone, true)
	ck.require(ok1 || from == "", path+"."+fromName, "debe ser una fecha ISO 8601")
	ck.require(ok2 || to == "", path+"."+toName, "debe ser una fecha ISO 8601")
	ck.require(!ok1 || !ok2 || start <= end, path+"."+toName, "debe ser posterior a %s", fromName)
}

// maxDays bounds spans of days, maxMonths those of months: a century.
const (
	maxDays   = 36_525
	maxMonths = 1_200
)

func (ck *checker) program(path string, p *programDoc, zone *time.Location) {
	ck.name(path+".name", p.Name)
	ck.name(path+".currency", p.Currency)
	ck.require(p.PointsDecimals >= 0 && p.PointsDecimals <= 4, path+".pointsDecimals", "debe estar entre 0 y 4")
	ck.oneOf(path+".rounding", string(p.Rounding), string(roundFloor), string(roundCeil), string(roundHalfUp), string(roundHalfEven))
	ck.oneOf(path+".returns", p.Returns, returnsReverse, returnsKeep)
	ck.oneOf(path+".negativeBalance", p.NegativeBalance, negativeClamp, negativeDebt)
	if e := p.Expiry; e != nil {
		ck.require(e.Days >= 0 && e.Months >= 0 && (e.Days > 0) != (e.Months > 0) && e.Days <= maxDays && e.Months <= maxMonths,
			path+".expiry", "debe tener days o months, mayor a 0")
		ck.require(e.EndOf == "" || e.EndOf == "Month", path+".expiry.endOf", "debe ser Month")
	}
	ck.oneOf(path+".tierBasis.metric", p.TierBasis.Metric, metricPoints, metricSpent, metricPurchases)
	ck.oneOf(path+".tierBasis.window", p.TierBasis.Window, windowLifetime, windowRolling)
	if months := p.TierBasis.Months; p.TierBasis.Window == windowRolling {
		ck.require(months > 0 && months <= maxMonths, path+".tierBasis.months", "debe estar entre 1 y %d", maxMonths)
	} else {
		ck.require(months <= 0, path+".tierBasis.months", "solo va con window: Rolling")
	}
	for i, t := range p.Tiers {
		at := fmt.Sprintf("%s.tiers[%d]", path, i)
		ck.name(at+".name", t.Name)
		ck.require(!slices.ContainsFunc(p.Tiers[:i], func(o tier) bool { return o.Name == t.Name }), at+".name", "%q está repetido", t.Name)
		ck.require(t.Multiplier == nil || *t.Multiplier >= decimalOf(1), at+".multiplier", "debe ser mayor o igual a 1")
		if i == 0 {
			ck.require(t.Threshold == 0, at+".threshold", "el primer nivel empieza en 0")
		} else {
			ck.require(t.Threshold > p.Tiers[i-1].Threshold, at+".threshold", "debe ser mayor al del nivel anterior")
		}
	}
	ck.keys(path+".rules", len(p.Rules), func(i int) string { return p.Rules[i].Key })
	for i := range p.Rules {
		at, r := fmt.Sprintf("%s.rules[%d]", path, i), &p.Rules[i]
		ck.rule(at, r, zone)
		if p.Expiry != nil && r.ExpiresInDays == 0 && r.PendingDays > 0 {
			days := p.Expiry.leastDays()
			ck.require(r.PendingDays < days, at+".pendingDays", "debe ser menor a los %d días en que los puntos del programa pueden vencer", days)
		}
		if r.On == onSignup && r.Points != nil && p.PointsDecimals >= 0 && p.PointsDecimals <= 4 { // given as they are, not rounded
			rounded, _ := roundRat(r.Points.rat(), p.PointsDecimals, roundFloor)
			ck.require(rounded == *r.Points, at+".points", "debe tener a lo sumo %d decimales", p.PointsDecimals)
		}
	}
}

// leastDays is the least number of days after which points expire, over all
// the days, in four years, on which they may be given.
func (e *expiry) leastDays() int {
	if e.Days+e.Months > maxDays {
		return maxDays // wrong, and told elsewhere
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
	ck.oneOf(path+".on", r.On, onPurchase, onSignup)
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
	ck.require(effects == 1, path, "debe tener exactamente un efecto: per, perItem, points o multiplier")
	if r.On == onSignup {
		ck.require(r.Points != nil, path, "una regla de Signup da points")
		ck.require(r.MinAmount == nil && r.SKUs == nil && r.Tiers == nil && r.Segments == nil && r.Days == nil && r.Hours == nil &&
			!r.FirstPurchase && r.MaxPerCustomerPerDay == 0, path, "una regla de Signup solo admite from y until como condiciones")
	}
	ck.require(r.MinAmount == nil || *r.MinAmount > 0, path+".minAmount", "debe ser mayor a 0")
	for i, sku := range r.SKUs {
		ck.require(sku != "" && len([]rune(sku)) <= 100, fmt.Sprintf("%s.skus[%d]", path, i), "debe tener de 1 a 100 caracteres")
	}
	for i, d := range r.Days {
		ck.oneOf(fmt.Sprintf("%s.days[%d]", path, i), d, "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
	}
	if r.Hours != nil {
		ck.require(clockForm.MatchString(r.Hours.From), path+".hours.from", "debe ser una hora como 08:30")
		ck.require(clockForm.MatchString(r.Hours.To) && r.Hours.To != r.Hours.From, path+".hours.to", "debe ser una hora como 18:30, distinta de from")
	}
	ck.dates(path, "from", r.From, "until", r.Until, zone)
	ck.require(r.MaxPerCustomerPerDay >= 0, path+".maxPerCustomerPerDay", "debe ser mayor a 0")
	ck.require(r.PendingDays >= 0 && r.PendingDays <= maxDays, path+".pendingDays", "debe estar entre 0 y %d", maxDays)
	ck.require(r.ExpiresInDays >= 0 && r.ExpiresInDays <= maxDays, path+".expiresInDays", "debe estar entre 0 y %d", maxDays)
	ck.require(r.ExpiresInDays == 0 || r.ExpiresInDays > r.PendingDays, path+".expiresInDays", "debe ser mayor a pendingDays")
}

// maxRuleDepth bounds the nesting of segment rules.
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
	if r.Field == "" {
		ck.require(r.Op == "" && r.Value == nil, path, "op y value van con field")
		return
	}
	field, ok := segmentFields[r.Field]
	if !ok {
		ck.oneOf(path+".field", r.Field, slices.Sorted(maps.Keys(segmentFields))...)
		return
	}
	ops := []string{"=", "!="}
	if field.number != nil {
		ops = append(ops, "<", "<=", ">", ">=")
	}
	ck.oneOf(path+".op", r.Op, ops...)
	var want any = new(bool)
	switch {
	case field.number != nil:
		want = new(decimal)
	case field.text != nil:
		want = new(string)
	}
	err := json.Unmarshal(r.Value, want) // of a value that is absent too
	ck.require(err == nil, path+".value", "debe ser %s", kindName(reflect.ValueOf(want).Elem()))
}

// sameDocument tells whether two configurations are the same to the byte.
func sameDocument(old, next *config) (bool, error) {
	if old.Number == 0 {
		return false, nil
	}
	before, err := json.Marshal(old.document())
	if err != nil {
		return false, err
	}
	after, err := json.Marshal(next.document())
	return bytes.Equal(before, after), err
}

// differences lists how two configurations differ, as documents, by path.
// Where what both have stands in another order, that is a difference too.
func differences(old, next *config) ([]change, error) {
	from, to := map[string]any{}, map[string]any{}
	if old.Number != 0 {
		if err := flatten(old.document(), from); err != nil {
			return nil, err
		}
	}
	if err := flatten(next.document(), to); err != nil {
		return nil, err
	}
	changes := []change{}
	for _, path := range slices.Sorted(maps.Keys(to)) {
		before, ok := from[path]
		if keys, listed := to[path].(keyOrder); listed {
			if earlier, _ := before.(keyOrder); !keys.reorders(earlier) {
				continue
			}
		}
		if !ok || !reflect.DeepEqual(before, to[path]) {
			changes = append(changes, change{path, from[path], to[path]})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(from)) {
		if _, ok := to[path]; !ok && reflect.TypeOf(from[path]) != reflect.TypeFor[keyOrder]() {
			changes = append(changes, change{path, from[path], nil})
		}
	}
	return changes, nil
}

// A keyOrder is the order of what has a key in a list.
type keyOrder []string

// reorders tells whether what is in both lists stands in another order.
func (o keyOrder) reorders(earlier keyOrder) bool {
	common := func(list, other keyOrder) keyOrder {
		return slices.DeleteFunc(slices.Clone(list), func(k string) bool { return !slices.Contains(other, k) })
	}
	return !slices.Equal(common(o, earlier), common(earlier, o))
}

func (o keyOrder) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }
func (o keyOrder) String() string               { return strings.Join(o, ", ") }

// flatten puts every value of a document into leaves under its path; what has
// a key is named by it instead of by its place.
func flatten(d *document, leaves map[string]any) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(strings.TrimPrefix(path+"."+name, "."), member)
			}
		case []any:
			var order keyOrder
			for i, element := range v {
				name := fmt.Sprint(i)
				if m, ok := element.(map[string]any); ok && m["key"] != nil {
					name = fmt.Sprint(m["key"])
					order = append(order, name)
				}
				walk(path+"["+name+"]", element)
			}
			if order != nil {
				leaves[path+".order"] = order
			}
		case nil:
		default:
			leaves[path] = v
		}
	}
	walk("", tree)
	return nil
}
