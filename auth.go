package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math/big"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Who may do what: API keys with their scopes and sources, and the permissions of each role of people.

// An API key reads
//
//	sello_ + 43 base-62 digits of 256 random bits + 6 base-62 digits of a CRC-32
//
// so that secret scanners find it and a typo is rejected without a look-up
// (contract §4). It is shown once, when it is made; only its SHA-256 is stored.
const (
	keyPrefix   = "sello_"
	keyRandom   = 43
	keyChecksum = 6
)

type apiKey struct {
	ID           id       `json:"id"`
	Org          uint32   `json:"org"`
	Name         string   `json:"name"`
	Last4        string   `json:"last4"`
	Scopes       []string `json:"scopes,omitempty"` // none: full access
	RateLimit    int      `json:"rateLimit"`        // requests in any 60 seconds
	DailyLimit   int      `json:"dailyLimit,omitempty"`
	MonthlyLimit int      `json:"monthlyLimit,omitempty"`
	IPWhitelist  []string `json:"ipWhitelist,omitempty"` // addresses and CIDR blocks; none: any source
	CreatedAt    instant  `json:"createdAt"`
	ExpiresAt    instant  `json:"expiresAt"`
	RevokedAt    instant  `json:"revokedAt"`

	MaxPointsPerOperation decimal `json:"maxPointsPerOperation,omitzero"` // that one add gives; 0: any number
	MaxPointsPerDay       decimal `json:"maxPointsPerDay,omitzero"`       // that its adds give on a UTC day; 0: any number
	Purse                 id      `json:"purse,omitzero"`                 // of the key that it was rotated from; none: its own
	Counted               bool    `json:"counted,omitempty"`              // its purse counts, as one of the purse's keys has a limit by day, or had

	NoProof bool `json:"noProof,omitempty"` // it spends points without the digits of a card: a web shop's

	TicketNumber uint16 `json:"ticketNumber,omitempty"` // under which its till signs tickets (sales_signed.go); 0: none

	networks []netip.Prefix // IPWhitelist, parsed
	idText   string         // ID as text
}

// scopes lists every scope (spec: Authentication).
var scopes = []string{
	"customers:read", "customers:write", "points:read", "points:write", "transactions:read", "transactions:write",
	"rewards:read", "rewards:write", "segments:read", "loyalty:read", "statistics:read", "organization:read",
	"customers:erase", "audit:read", "events:read",
}

// defaultRateLimit is in requests per minute (spec: Limits).
const defaultRateLimit = 300

// mayUse returns scope_required if the key lacks a scope, or one of several with blanks between
// them.
func (k *apiKey) mayUse(scope string) error {
	if len(k.Scopes) == 0 || slices.Contains(k.Scopes, scope) {
		return nil
	}
	for one := range strings.FieldsSeq(scope) {
		if !slices.Contains(k.Scopes, one) {
			e := newError(codeScopeRequired)
			e.message += one
			return e
		}
	}
	return nil
}

// allowsSource reports whether the whitelist is empty or contains an address.
func (k *apiKey) allowsSource(ip netip.Addr) bool {
	return len(k.networks) == 0 || inNetworks(k.networks, ip)
}

// inNetworks reports whether one of the networks contains a plain address.
func inNetworks(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// plainAddr returns the one form that addresses are compared in: IPv4 instead of
// IPv4-mapped IPv6, and no zone.
func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// sourceOf is what counts as one source: an IPv4 address, or the /64 that one
// subscriber of IPv6 has.
func sourceOf(a netip.Addr) netip.Addr {
	a = plainAddr(a)
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().Addr()
	}
	return a
}

// newAPIKey returns the text of a key of 256 random bits.
func newAPIKey(random [32]byte) string {
	digits := base62(new(big.Int).SetBytes(random[:]), keyRandom)
	return keyPrefix + digits + keySum(digits)
}

func keySum(digits string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(digits)))), keyChecksum)
}

// wellFormedKey reports whether a text has the form and checksum of a key.
func wellFormedKey(s string) bool {
	digits, ok := strings.CutPrefix(s, keyPrefix)
	return ok && len(digits) == keyRandom+keyChecksum && keySum(digits[:keyRandom]) == digits[keyRandom:]
}

func keyHash(s string) [32]byte {
	var text [64]byte // any real key fits
	return sha256.Sum256(append(text[:0], s...))
}

func keyHashKey(hash [32]byte) key { return append(newKey('a'), hash[:]...) }

// sentKey returns the API key of a request's headers (contract §4).
func sentKey(h http.Header) (string, *apiError) {
	authorization, direct := h["Authorization"], h["X-Api-Key"]
	if len(authorization) > 1 || len(direct) > 1 {
		return "", newError(codeAPIKeyInvalid)
	}
	var bearer, plain string
	if len(authorization) == 1 {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(authorization[0]), " ")
		if strings.EqualFold(scheme, "Bearer") {
			bearer = strings.TrimSpace(rest)
		}
	}
	if len(direct) == 1 {
		plain = strings.TrimSpace(direct[0])
	}
	switch {
	case bearer != "" && plain != "" && bearer != plain:
		return "", newError(codeAPIKeyInvalid)
	case bearer == "" && plain == "":
		return "", newError(codeAPIKeyRequired)
	}
	return cmp.Or(bearer, plain), nil
}

// A caller is who makes a request, and the organization's configuration: an API key, or a
// user of the panel. A refused request may have one too, for the log.
type caller struct {
	key  *apiKey // nil: a user
	user *member // nil: a key
	cfg  *config
	hash [32]byte // of the key
}

// check makes the checks of a known key that come before the limits, in the order of
// contract §3.
func (c *caller) check(source func() netip.Addr, now instant) error {
	switch k := c.key; {
	case k.RevokedAt != 0:
		return newError(codeAPIKeyInvalid)
	case k.ExpiresAt != 0 && k.ExpiresAt <= now:
		return newError(codeAPIKeyExpired)
	case !c.cfg.Organization.Plan.APIAccess:
		return newError(codePlanWithoutAPI)
	case len(k.networks) > 0 && !k.allowsSource(source()):
		return newError(codeIPNotAllowed)
	}
	return nil
}

// authenticate finds the key that a request was sent with and makes all checks that
// come before the limits, in the order of contract §3. A changed or revoked key
// counts from the next request on.
func (e *engine) authenticate(ctx context.Context, sent string, source func() netip.Addr, now instant) (caller, error) {
	hash, v := keyHash(sent), e.store.version()
	c, err := e.callers.get(hash, v, func() (caller, error) {
		if !wellFormedKey(sent) {
			return caller{}, newError(codeAPIKeyInvalid)
		}
		if !e.store.mayHoldKey(ctx, hash) {
			return caller{}, newError(codeAPIKeyInvalid)
		}
		return viewStore(ctx, e.store, func(tx Tx) (caller, error) { return e.findCaller(v, tx, hash) })
	})
	if err != nil {
		return c, err
	}
	return c, c.check(source, now)
}

// likelyPart returns the part that a request with an API key will read, if the key was used before.
func (e *engine) likelyPart(sent string) []int32 {
	if !isShared(e.store) {
		return nil
	}
	if c, ok := e.callers.seen(keyHash(sent)); ok {
		return []int32{int32(c.key.Org)}
	}
	return nil
}

func (e *engine) findCaller(v version, tx Tx, hash [32]byte) (caller, error) {
	k, err := keyByHash(tx, hash)
	if err == nil && k == nil {
		err = newError(codeAPIKeyInvalid)
	}
	if err != nil {
		return caller{}, err
	}
	cfg, err := e.config(v, tx, k.Org)
	return caller{key: k, cfg: cfg, hash: hash}, err
}

// keyByHash reads a key, or returns nil if there is none.
func keyByHash(tx Tx, hash [32]byte) (*apiKey, error) {
	at := keyHashKey(hash)
	raw, ok, err := tx.Get(at)
	if err != nil || !ok {
		return nil, err
	}
	k, err := parseAPIKey(raw)
	return k, atKey(at, err)
}

// keyWithID reads an organization's key; nil if it has none with the id.
func keyWithID(tx Tx, org uint32, keyID id) (*apiKey, error) {
	hash, ok, err := tx.Get(orgKey('k', org).id(keyID))
	if err != nil || !ok || len(hash) != 32 {
		return nil, err
	}
	return keyByHash(tx, [32]byte(hash))
}

func parseAPIKey(raw []byte) (*apiKey, error) {
	k := new(apiKey)
	if err := json.Unmarshal(raw, k); err != nil {
		return nil, err
	}
	k.idText = k.ID.String()
	for _, s := range k.IPWhitelist {
		n, err := parseNetwork(s)
		if err != nil {
			return nil, err
		}
		k.networks = append(k.networks, n)
	}
	return k, nil
}

// parseNetwork parses an address or a CIDR block. IPv4-mapped IPv6 becomes IPv4.
func parseNetwork(s string) (netip.Prefix, error) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		a = plainAddr(a)
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// sourceAddress returns the address that a request comes from. It is the peer's,
// unless the peer is a trusted proxy; then it is the right-most address of
// X-Forwarded-For that is no trusted proxy. If this address cannot be parsed, it
// is the zero address, which no whitelist contains.
func sourceAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	source := plainAddr(peer.Addr())
	if !inNetworks(trusted, source) {
		return source
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if hop == "" {
			continue
		}
		a, err := netip.ParseAddr(hop)
		if err != nil {
			ap, err := netip.ParseAddrPort(hop) // some proxies add the port
			if err != nil {
				return netip.Addr{}
			}
			a = ap.Addr()
		}
		if source = plainAddr(a); !inNetworks(trusted, source) {
			break
		}
	}
	return source
}

// A keyIndex holds the API keys that may exist, so that a made-up key costs no
// look-up in the store. A key is added before it is stored, and never removed; the
// store's look-up decides. The index holds the first 8 bytes of each hash.
type keyIndex struct {
	mu      sync.RWMutex
	whole   bool   // it held every key in the store
	since   uint64 // others when it did
	hashes  map[uint64]struct{}
	reading sync.Mutex // held while the index is filled from the store

	others atomic.Uint64 // how often other processes were found to have changed settings
}

// hashOfKey returns the hash in a store key, if that is an API key's.
func hashOfKey(k key) (hash [32]byte, ok bool) {
	if len(k) != 1+len(hash) || k[0] != 'a' {
		return hash, false
	}
	return [32]byte(k[1:]), true
}

func (x *keyIndex) add(hash [32]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.hashes == nil {
		x.hashes = map[uint64]struct{}{}
	}
	x.hashes[binary.BigEndian.Uint64(hash[:])] = struct{}{}
}

func (x *keyIndex) find(hash [32]byte) (found, whole bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, found = x.hashes[binary.BigEndian.Uint64(hash[:])]
	return found, x.whole && x.since == x.others.Load()
}

// mayHoldKey reports whether there may be an API key with a hash. The first call
// for an unknown hash reads all keys. Where that fails it returns true, so that the
// caller's look-up returns the error.
func (s *watchedStore) mayHoldKey(ctx context.Context, hash [32]byte) bool {
	found, whole := s.keys.find(hash)
	if found || whole {
		return found
	}
	s.keys.reading.Lock()
	defer s.keys.reading.Unlock()
	if found, whole = s.keys.find(hash); found || whole {
		return found
	}
	since := s.keys.others.Load()
	err := s.View(ctx, func(tx Tx) error {
		for entry, err := range scan(tx, newKey('a'), false) {
			if err != nil {
				return err
			}
			if hash, ok := hashOfKey(entry.Key); ok {
				s.keys.add(hash)
			}
		}
		return nil
	})
	if err != nil {
		return true
	}
	s.keys.mu.Lock()
	s.keys.whole, s.keys.since = true, since
	s.keys.mu.Unlock()
	found, _ = s.keys.find(hash)
	return found
}

// A role says what a user may do in an organization. Roles are fixed.
type role string

const (
	roleOwner     role = "owner"
	roleAdmin     role = "admin"
	roleManager   role = "manager"
	roleCashier   role = "cashier"
	roleViewer    role = "viewer"
	roleDeveloper role = "developer"
)

// roles lists them all, in the order of the columns of permissions.
var roles = []role{roleOwner, roleAdmin, roleManager, roleCashier, roleViewer, roleDeveloper}

// A permission is what a page or a form of the panel needs: a scope of API keys, or a word
// of the same kind for what the API does not have.
type permission string

// usersManage is the permission that the rules below are about.
const usersManage permission = "users:manage"

// Who may open a page that asks for no permission of a role.
const (
	anyone   permission = ""           // whoever is logged in
	everyone permission = "(guest)"    // others too
	operates permission = "(operator)" // whoever runs the server
)

type grant int

const (
	grantNone grant = iota
	grantSome       // within bounds that the domain knows
	grantAll
)

// permissions has the grant of each role. Where it is grantSome, the bound stands beside it.
var permissions = func() map[permission][]grant {
	const no, half, yes = grantNone, grantSome, grantAll
	return map[permission][]grant{ //  owner admin manager cashier viewer developer
		"till":                {yes, yes, yes, yes, no, no},
		"customers:find":      {yes, yes, yes, yes, yes, no},      // by exact phone, e-mail or id
		"customers:read":      {yes, yes, yes, half, yes, no},     // cashier: search with 4 letters or more, 5 hits at a time, contact masked
		"customers:write":     {yes, yes, yes, yes, no, no},       // enrol
		"customers:edit":      {yes, yes, yes, no, no, no},        // contact, and status
		"customers:erase":     {yes, yes, no, no, no, no},         // merge, and erase
		"transactions:write":  {yes, yes, yes, yes, no, no},       // purchases
		"transactions:return": {yes, yes, yes, half, no, no},      // cashier: own sales of today, if the organization lets cashiers
		"transactions:read":   {yes, yes, yes, half, yes, no},     // cashier: own ones of today, and at the till any of 30 days, by the ticket
		"rewards:write":       {yes, yes, yes, yes, no, no},       // redeem
		"redemptions:cancel":  {yes, yes, yes, half, no, no},      // cashier: own ones, within 10 minutes
		"points:write":        {yes, yes, yes, no, no, no},        // by hand
		"statistics:read":     {yes, yes, yes, no, yes, no},       //
		"loyalty:read":        {yes, yes, yes, no, yes, no},       //
		"rewards:read":        {yes, yes, yes, yes, yes, no},      //
		"segments:read":       {yes, yes, yes, no, yes, no},       //
		"config:write":        {yes, yes, no, no, no, no},         //
		"data:export":         {yes, yes, no, no, half, no},       // viewer: if the organization lets viewers
		"data:import":         {yes, yes, no, no, no, no},         //
		"keys:manage":         {yes, yes, no, no, no, yes},        //
		"requests:read":       {yes, yes, no, no, no, yes},        //
		"webhooks:manage":     {yes, yes, no, no, no, yes},        //
		usersManage:           {yes, half, no, no, no, no},        // admin: not owners
		"audit:read":          {yes, yes, half, half, half, half}, // own entries; developer: also of keys
	}
}()

// may returns how far the role has a permission. What is no role has none.
func (r role) may(p permission) grant {
	grants, i := permissions[p], slices.Index(roles, r)
	if i < 0 || grants == nil {
		return grantNone
	}
	return grants[i]
}

func (r role) known() bool { return slices.Contains(roles, r) }

// within reports whether the role may do nothing that the other one may not.
func (r role) within(other role) bool {
	for p := range permissions {
		if r.may(p) > other.may(p) {
			return false
		}
	}
	return true
}

// mayManage returns an error unless a user with the role may turn a user with the role from
// into one with the role to. No role at all is "": to invite is to turn "" into a role, to
// remove is to turn one into "". self says that the two users are the same.
func (r role) mayManage(from, to role, self bool) error {
	switch grant := r.may(usersManage); {
	case grant == grantNone:
		return errMayNotManage
	case grant == grantSome && (from == roleOwner || to == roleOwner):
		return errOwnersAlone
	case self && from != "" && !to.within(from):
		return errOwnRole
	}
	return nil
}

var (
	errMayNotManage = newPeopleError("users_manage_required", "", "Solo quien administra el equipo puede hacer esto")
	errOwnersAlone  = newPeopleError("owners_alone", "role", "Solo un propietario puede cambiar a otro propietario")
	errOwnRole      = newPeopleError("own_role", "role", "Nadie puede ampliar su propio rol")
	errLastOwner    = newPeopleError("last_owner", "", "Es el último propietario activo de la organización: antes hace falta otro")
	errRoleUnknown  = newPeopleError("role_unknown", "role", "El rol no existe; hay: "+roleList())
)

func roleList() string { return alternatives(roleNames()) }

func roleNames() (names []string) {
	for _, r := range roles {
		names = append(names, string(r))
	}
	return names
}
