package main

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// API keys: how they are made, changed, rotated and revoked, each with its entry in the audit
// log. A key is stored under the hash of its text, which is shown only once. The file also counts
// how many points a key or a member of the panel gives by hand, and refuses more (purse, budget).

type keyRequest struct {
	Org          string   `json:"org"`
	Name         string   `json:"name"`
	Scopes       []string `json:"scopes,omitempty"`
	RateLimit    int      `json:"rateLimit,omitempty"`
	DailyLimit   int      `json:"dailyLimit,omitempty"`
	MonthlyLimit int      `json:"monthlyLimit,omitempty"`
	IPWhitelist  []string `json:"ipWhitelist,omitempty"`
	Expires      string   `json:"expires,omitempty"`

	MaxPointsPerOperation decimal `json:"maxPointsPerOperation,omitzero"`
	MaxPointsPerDay       decimal `json:"maxPointsPerDay,omitzero"`

	NoProof bool `json:"noProof,omitempty"`
}

// A keyChange says what becomes of a key in the fields of keyRequest that are given. A
// field that is given and zero is cleared.
type keyChange struct {
	keyRequest
	ID    string   `json:"id"`
	Given []string `json:"given"`
}

// keyFields are the fields of a keyRequest that say what a key is like.
var keyFields = []string{
	"name", "rateLimit", "dailyLimit", "monthlyLimit", "scopes", "ipWhitelist", "expires", "maxPointsPerOperation", "maxPointsPerDay", "noProof",
}

// A keysTxn has the API keys, and the points that keys and people may give, in a transaction.
type keysTxn struct{ t *txn }

// nameOf is the name of an API key; "" if there is none. It is looked up once in a transaction.
func (ks *keysTxn) nameOf(keyID id) (string, error) {
	t := ks.t
	if t.byKey != nil && keyID == t.byKey.ID {
		return t.byKey.Name, nil
	}
	if name, known := t.keyNames[keyID]; known {
		return name, nil
	}
	k, err := keyWithID(t.Tx, t.org, keyID)
	if err != nil || k == nil {
		return "", err
	}
	if t.keyNames == nil {
		t.keyNames = map[id]string{}
	}
	t.keyNames[keyID] = k.Name
	return k.Name, nil
}

// create makes an API key and returns it with its text. The text is not stored
// and cannot be shown again.
func (ks *keysTxn) create(in keyRequest) (*apiKey, string, error) {
	if err := ks.planHasKeys(); err != nil {
		return nil, "", err
	}
	k := &apiKey{ID: ks.t.id(), Org: ks.t.org, CreatedAt: ks.t.now}
	for _, field := range keyFields {
		if err := ks.set(k, field, &in); err != nil {
			return nil, "", err
		}
	}
	k.Counted = k.counts()
	text, err := ks.issue(k)
	if err != nil {
		return nil, "", err
	}
	return k, text, ks.t.audit.note(auditKeyCreated, k.ID.String(), keyChanges(new(apiKey), k))
}

// planHasKeys refuses a new key where the organization's plan has none.
func (ks *keysTxn) planHasKeys() error {
	if !ks.t.cfg.Organization.Plan.APIAccess {
		return operatorErrorf("", "%s", codePlanWithoutAPI.message)
	}
	return nil
}

// set sets one field of a key to what a request says, unless the key cannot have it.
func (ks *keysTxn) set(k *apiKey, field string, in *keyRequest) (err error) {
	switch field {
	case "name":
		k.Name = trimBlanks(in.Name)
		if k.Name == "" || utf8.RuneCountInString(k.Name) > 100 || strings.ContainsFunc(k.Name, forbidden) {
			return operatorErrorf(field, "la API key necesita un nombre de 1 a 100 caracteres, sin caracteres de control")
		}
	case "rateLimit":
		k.RateLimit = cmp.Or(in.RateLimit, defaultRateLimit)
	case "dailyLimit":
		k.DailyLimit = in.DailyLimit
	case "monthlyLimit":
		k.MonthlyLimit = in.MonthlyLimit
	case "maxPointsPerOperation":
		k.MaxPointsPerOperation = in.MaxPointsPerOperation
	case "maxPointsPerDay":
		k.MaxPointsPerDay = in.MaxPointsPerDay
	case "noProof":
		k.NoProof = in.NoProof
	case "scopes":
		k.Scopes = in.Scopes
		for _, s := range k.Scopes {
			if !slices.Contains(scopes, s) {
				return operatorErrorf(field, "scope desconocido: %q (hay: %s)", s, strings.Join(scopes, ", "))
			}
		}
	case "ipWhitelist":
		k.IPWhitelist = in.IPWhitelist
		for _, s := range k.IPWhitelist {
			if _, err := parseNetwork(s); err != nil {
				return operatorErrorf(field, "dirección o bloque CIDR no válido: %q", s)
			}
		}
	case "expires":
		k.ExpiresAt, err = ks.expiryOf(in.Expires)
	default:
		return operatorErrorf(field, "una API key no tiene %q", field)
	}
	if min(k.RateLimit, k.DailyLimit, k.MonthlyLimit) < 0 || min(k.MaxPointsPerOperation, k.MaxPointsPerDay) < 0 {
		return operatorErrorf(field, "los límites deben ser mayores a 0")
	}
	return err
}

// expiryOf returns the moment at which a key that expires on a date ends; 0 without a date.
func (ks *keysTxn) expiryOf(date string) (instant, error) {
	if date == "" {
		return 0, nil
	}
	at, ok := parseMoment(date, ks.t.cfg.zone, true)
	if !ok {
		return 0, operatorErrorf("expires", "la expiración no es una fecha como 2027-01-01: %q", date)
	}
	if at <= ks.t.now {
		return 0, operatorErrorf("expires", "la fecha de expiración debe ser futura: %q", date)
	}
	return at, nil
}

func (ks *keysTxn) issue(k *apiKey) (text string, err error) {
	var random [32]byte
	ks.t.bytes(random[:])
	text = newAPIKey(random)
	k.Last4 = text[len(text)-4:]
	hash := keyHash(text)
	if err := ks.t.Put(orgKey('k', ks.t.org).id(k.ID), hash[:]); err != nil {
		return "", err
	}
	return text, ks.save(hash, k)
}

func (ks *keysTxn) save(hash [32]byte, k *apiKey) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return ks.t.Put(keyHashKey(hash), raw)
}

// list returns the organization's keys, oldest first.
func (ks *keysTxn) list() ([]*apiKey, error) {
	keys := []*apiKey{}
	for e, err := range scan(ks.t.Tx, orgKey('k', ks.t.org), false) {
		if err != nil {
			return nil, err
		}
		k, err := keyByHash(ks.t.Tx, [32]byte(e.Value))
		if err == nil && k == nil {
			err = unreadable(keyHashKey([32]byte(e.Value)))
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// own finds a key of this organization by the id that an operator gives. done is the Spanish
// word for what is done to the key, for errors.
func (ks *keysTxn) own(given, done string) (k *apiKey, hash [32]byte, err error) {
	if strings.Contains(given, keyPrefix) { // the key itself, a secret: no error may repeat it
		return nil, hash, operatorErrorf("", "una API key se %s por su id, que muestra sello key list, no por su texto", done)
	}
	keyID, _ := parseID(given)
	value, ok, err := ks.t.Get(orgKey('k', ks.t.org).id(keyID))
	if err != nil {
		return nil, hash, err
	}
	if !ok {
		return nil, hash, operatorErrorf("", "no hay ninguna API key %q", given)
	}
	hash = [32]byte(value)
	k, err = keyByHash(ks.t.Tx, hash)
	if err == nil && k == nil {
		err = unreadable(keyHashKey(hash))
	}
	return k, hash, err
}

// live is own for a key that was not revoked.
func (ks *keysTxn) live(given, done string) (*apiKey, [32]byte, error) {
	k, hash, err := ks.own(given, done)
	if err == nil && k.RevokedAt != 0 {
		err = operatorErrorf("", "la API key %s está revocada: no se %s", k.ID, done)
	}
	return k, hash, err
}

// change changes the given fields of a key, from its next request on.
func (ks *keysTxn) change(in keyChange) (*apiKey, error) {
	k, hash, err := ks.live(in.ID, "cambia")
	if err != nil {
		return nil, err
	}
	before := *k
	for _, field := range in.Given {
		if err := ks.set(k, field, &in.keyRequest); err != nil {
			return nil, err
		}
	}
	changes := keyChanges(&before, k)
	if len(changes) == 0 {
		return k, nil
	}
	if k.Counted = before.counts() || k.counts(); k.Counted && !before.Counted {
		if err := ks.countWith(k); err != nil {
			return nil, err
		}
	}
	if err := ks.save(hash, k); err != nil {
		return nil, err
	}
	return k, ks.t.audit.note(auditKeyChanged, k.ID.String(), changes)
}

// rotate makes a key like an old one. The old one expires after overlap, or when it would
// have if that is earlier. The two share a purse; the new one signs tickets in the old one's place.
func (ks *keysTxn) rotate(given string, overlap time.Duration) (k *apiKey, text string, old *apiKey, err error) {
	old, hash, err := ks.live(given, "rota")
	if err == nil {
		err = ks.planHasKeys()
	}
	if err == nil && old.ExpiresAt != 0 && old.ExpiresAt <= ks.t.now {
		err = operatorErrorf("", "la API key %s ya expiró: sello key create hace una nueva", old.ID)
	}
	if err == nil && overlap < 0 {
		err = operatorErrorf("overlap", "el tiempo que la clave anterior sigue valiendo no puede ser negativo")
	}
	if err != nil {
		return nil, "", nil, err
	}
	next := *old
	next.ID, next.CreatedAt, next.Purse = ks.t.id(), ks.t.now, old.purse()
	if text, err = ks.issue(&next); err != nil {
		return nil, "", nil, err
	}
	before := *old
	if end := ks.t.now.add(overlap); old.ExpiresAt == 0 || end < old.ExpiresAt {
		old.ExpiresAt = end
	}
	old.TicketNumber = 0
	if err := ks.t.tickets.handOn(&next); err != nil {
		return nil, "", nil, err
	}
	if err := ks.save(hash, old); err != nil {
		return nil, "", nil, err
	}
	ended := append(keyChanges(&before, old), change{"rotatedTo", nil, next.ID})
	if err := ks.t.audit.note(auditKeyRotated, old.ID.String(), ended); err != nil {
		return nil, "", nil, err
	}
	made := append(keyChanges(new(apiKey), &next), change{"rotatedFrom", nil, old.ID})
	return &next, text, old, ks.t.audit.note(auditKeyCreated, next.ID.String(), made)
}

// revoke ends a key for good. Revoking one again changes nothing.
func (ks *keysTxn) revoke(given string) (*apiKey, error) {
	k, hash, err := ks.own(given, "revoca")
	if err != nil || k.RevokedAt != 0 {
		return k, err
	}
	before := *k
	k.RevokedAt = ks.t.now
	if err := ks.save(hash, k); err != nil {
		return nil, err
	}
	return k, ks.t.audit.note(auditKeyRevoked, k.ID.String(), keyChanges(&before, k))
}

// ticketSecret gives a key a number and a secret to sign tickets with, or, with again, another secret; the
// one before is good for as long as tickets are claimed. The secret cannot be shown again.
func (ks *keysTxn) ticketSecret(given string, again bool) (k *apiKey, secret string, err error) {
	k, hash, err := ks.live(given, "usa para firmar tickets")
	if err == nil && ks.t.cfg.tickets() == nil {
		err = operatorErrorf("", "%s: falta settings.tickets en su configuración", codeTicketsDisabled.message)
	}
	if err == nil && k.mayUse("transactions:write") != nil {
		err = operatorErrorf("", "la API key %s no tiene el scope transactions:write, con que se dan tickets", k.ID)
	}
	if err == nil && (k.TicketNumber != 0) != again {
		err = operatorErrorf("", "la API key %s ya tiene un secreto, que no se puede volver a mostrar: con -rotate se hace otro", k.ID)
		if again {
			err = operatorErrorf("rotate", "la API key %s todavía no tiene un secreto: pídelo sin -rotate", k.ID)
		}
	}
	if err != nil {
		return nil, "", err
	}
	before := *k
	secrets, secret, err := ks.t.tickets.newSecret(k)
	if err != nil {
		return nil, "", err
	}
	if err := ks.save(hash, k); err != nil {
		return nil, "", err
	}
	made := append(keyChanges(&before, k), change{"ticketSecrets", stated(secrets - 1), secrets})
	return k, secret, ks.t.audit.note(auditKeyChanged, k.ID.String(), made)
}

// keyChanges lists what differs between two states of a key, without what is secret.
func keyChanges(before, after *apiKey) (changes []change) {
	was := before.settings()
	for i, is := range after.settings() {
		if !reflect.DeepEqual(was[i].To, is.To) {
			changes = append(changes, change{is.Path, was[i].To, is.To})
		}
	}
	return changes
}

// settings lists the fields of a key that an operator sets, as clients see them.
func (k *apiKey) settings() []change {
	return []change{
		{"name", nil, stated(k.Name)},
		{"scopes", nil, statedList(k.Scopes)},
		{"rateLimit", nil, stated(k.RateLimit)},
		{"dailyLimit", nil, stated(k.DailyLimit)},
		{"monthlyLimit", nil, stated(k.MonthlyLimit)},
		{"ipWhitelist", nil, statedList(k.IPWhitelist)},
		{"expiresAt", nil, stated(k.ExpiresAt)},
		{"maxPointsPerOperation", nil, stated(k.MaxPointsPerOperation)},
		{"maxPointsPerDay", nil, stated(k.MaxPointsPerDay)},
		{"noProof", nil, stated(k.NoProof)},
		{"ticketNumber", nil, stated(k.TicketNumber)},
		{"revokedAt", nil, stated(k.RevokedAt)},
	}
}

// A purse counts the points that adds give by hand. A member of the panel has a purse; an API key
// shares one with the keys that rotations made of it. The transaction of the add counts its points,
// so a limit is never passed. Sales and replays do not count (contract §16), nor do movements whose
// reference is known (§23).
//
// A key's purse begins to count when one of its keys first gets a daily limit. From then on it
// counts the points that any of its keys gives, even a key without a limit, and even after the limit
// is gone. Points given earlier on that first day are not known. The purse of keys that never had a
// daily limit is not written. A member's purse always counts.
//
// Each day (UTC) has a count of its own: a clock that was ahead, or is set back and forward
// again, gives no fresh day.
type purse struct{ Given decimal }

func (p *purse) fields(c *coder) { c.decimal(&p.Given) }

// keptPurseDays is longer than a clock may be ahead unnoticed (internal/wallclock).
const keptPurseDays = 60

// A budget is how many points somebody may give by hand.
type budget struct {
	purse        id      // counts what it gives
	perOperation decimal // most points that one add gives; 0: any number
	perDay       decimal // most points that its adds give on a UTC day; 0: any number
	counted      bool    // its purse counts even without a daily limit
}

// budget returns the budget of the key or member that writes in the transaction. Commands and
// imports have none.
func (ks *keysTxn) budget() (budget, error) {
	switch {
	case ks.t.byKey != nil:
		return ks.t.byKey.budget(), nil
	case ks.t.by.Type == byUser:
		m, err := membershipIn(ks.t.Tx, ks.t.org, ks.t.by.ID)
		if err == nil && m == nil {
			err = errNotMember
		}
		if err != nil {
			return budget{}, err
		}
		return budget{purse: ks.t.by.ID, perDay: m.MaxPointsPerDay, counted: true}, nil
	}
	return budget{}, nil
}

func (k *apiKey) budget() budget {
	return budget{k.purse(), k.MaxPointsPerOperation, k.MaxPointsPerDay, k.counts()}
}

// give credits points by hand, within the budget of the key or member that gives them.
func (ks *keysTxn) give(a *account, m *movement) error {
	b, err := ks.budget()
	if err == nil {
		err = ks.spend(b, m.Amount)
	}
	if err != nil {
		return err
	}
	return ks.t.points.credit(a, m)
}

func (k *apiKey) purse() id { return cmp.Or(k.Purse, k.ID) }

// counts reports whether the points that the key's adds give are counted. A key made before
// Counted was stored is counted while it has a daily limit.
func (k *apiKey) counts() bool { return k.Counted || k.MaxPointsPerDay != 0 }

// countWith sets Counted in all other keys of a key's purse.
func (ks *keysTxn) countWith(k *apiKey) error {
	for e, err := range scan(ks.t.Tx, orgKey('k', ks.t.org), false) {
		if err != nil {
			return err
		}
		hash := [32]byte(e.Value)
		other, err := keyByHash(ks.t.Tx, hash)
		if err != nil {
			return err
		}
		if other == nil || other.ID == k.ID || other.purse() != k.purse() || other.Counted {
			continue
		}
		other.Counted = true
		if err := ks.save(hash, other); err != nil {
			return err
		}
	}
	return nil
}

// spend counts points that an add is about to give. It refuses them with
// points_budget_exceeded if they pass a limit of the budget.
func (ks *keysTxn) spend(b budget, points decimal) error {
	if most := b.perOperation; most != 0 && points > most {
		return overBudget(most, 0, 0) // waiting does not help
	}
	if !b.counted {
		return nil
	}
	p, err := ks.purseToday(b.purse)
	if err == nil && p == nil {
		p = new(purse)
		days := pursesKey(ks.t.org, b.purse)
		err = deleteRange(ks.t, days, slices.Clone(days).day(ks.utcDay()-keptPurseDays), droppedAtOnce)
	}
	if err != nil {
		return err
	}
	if most := b.perDay; most != 0 && points > most-p.Given {
		return overBudget(most, p.Given, (ks.utcDay() + 1).start(time.UTC))
	}
	var ok bool
	if p.Given, ok = p.Given.add(points); !ok {
		p.Given = maxDecimal // above every limit
	}
	return ks.t.put(pursesKey(ks.t.org, b.purse).day(ks.utcDay()), p)
}

func pursesKey(org uint32, purse id) key { return orgKey('P', org).id(purse) }

func (ks *keysTxn) utcDay() day { return dayOf(ks.t.now, time.UTC) }

// purseToday is how much a purse gave today; nil: nothing was counted.
func (ks *keysTxn) purseToday(of id) (*purse, error) {
	return get[purse](ks.t.Tx, pursesKey(ks.t.org, of).day(ks.utcDay()))
}

// givenToday is how many points a member gave by hand today.
func (ks *keysTxn) givenToday(user id) (decimal, error) {
	p, err := ks.purseToday(user)
	if err != nil || p == nil {
		return 0, err
	}
	return p.Given, nil
}

// leftToday is how many points a member may still give by hand today; ok is false without a
// limit.
func (ks *keysTxn) leftToday(user id) (left decimal, ok bool, err error) {
	m, err := membershipIn(ks.t.Tx, ks.t.org, user)
	if err != nil || m == nil || m.MaxPointsPerDay == 0 {
		return 0, false, err
	}
	given, err := ks.givenToday(user)
	return max(m.MaxPointsPerDay-given, 0), true, err
}

// limitPoints sets how many points a member may give by hand on a UTC day; 0: any number. It
// holds from the member's next add on. What was given earlier on the day counts.
func (ks *keysTxn) limitPoints(by *member, user id, perDay decimal) error {
	m, err := ks.t.people.teammate(user)
	if err != nil {
		return err
	}
	if err := by.mayManage(user, m.Role, m.Role); err != nil {
		return err
	}
	if by.is(user) {
		return errOwnLimit
	}
	before := m.MaxPointsPerDay
	if before == perDay {
		return nil
	}
	m.MaxPointsPerDay = perDay
	if err := ks.t.people.saveMembership(user, m.membership); err != nil {
		return err
	}
	return ks.t.audit.note(auditUserChanged, user.String(), []change{{"maxPointsPerDay", stated(before), stated(perDay)}})
}

var errOwnLimit = newPeopleError("own_limit", "maxPointsPerDay", "Nadie cambia su propio límite de puntos: lo hace otra persona que administre el equipo")

// dropPurse forgets how much a member gave.
func (ks *keysTxn) dropPurse(of id) error {
	days := pursesKey(ks.t.org, of)
	return deleteRange(ks.t, days, days.after(), 2*keptPurseDays)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
