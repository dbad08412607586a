package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A session is a browser that a user has logged in with. The browser has a token of 256
// random bits; the store has the token's SHA-256. A token is made anew at each log-in, at
// the second factor and with each new password, and never by a timer, which would log out
// whoever has several tabs.
//
//	S hash(32)         → session
//	U user 2 hash(32)  → empty: the user's sessions
//	U user 4 hash(32)  → device that the user has logged in from, by its token
//
// Between two writes the moment when a session was last seen is in memory (seenSessions).

// A session is the record of one.
type session struct {
	User      id
	Org       uint32 // that it is in
	CreatedAt instant
	SeenAt    instant // at most seenEvery late
	ProvedAt  instant // when the user last gave the password
	Kind      sessionKind
	Tries     uint8 // of codes, in a half one; of PINs, in a full one
	Agent     string
	Source    string       // address; "" if it is not known
	PIN       passwordHash // that it locks with; the zero one: none
	LockedAt  instant      // by hand; 0: it is not
}

// A sessionKind says what a session is good for.
type sessionKind uint8

const (
	sessionFull sessionKind = 1 + iota
	sessionHalf             // for the code of the second factor alone
)

func (s *session) fields(c *coder) {
	c.id(&s.User)
	uintField(c, &s.Org)
	c.instant(&s.CreatedAt)
	c.instant(&s.SeenAt)
	c.instant(&s.ProvedAt)
	byteField(c, &s.Kind)
	byteField(c, &s.Tries)
	c.text(&s.Agent)
	c.text(&s.Source)
	if c.optional(1, s.hasPIN()) {
		s.PIN.fields(c)
	}
	optionalField(c, 2, &s.LockedAt, (*coder).instant)
}

const (
	halfSession  = 10 * time.Minute // how long the code of the second factor is waited for
	proofHolds   = 10 * time.Minute // how long the password need not be given again
	seenEvery    = 4 * time.Minute  // less than leastIdle: another server may judge by what is stored
	maxAgent     = 200              // characters
	deviceLife   = 90 * 24 * time.Hour
	maxDevices   = 10 // of one user
	maxSessions  = 50 // of one user and kind
	endedBatch   = 1000
	endedEvery   = 10 * time.Minute // how often ended sessions are looked for
	tokenDigits  = 43               // in base 62
	handleLength = 16               // hexadecimal digits
)

// sessionLimits say when a session ends: idle after it was last seen, or longest after it began.
// A session with a PIN does not end while it is idle, but locks (locked), and lasts pinLonger
// more than longest.
type sessionLimits struct {
	idle, longest time.Duration
	seen          *seenSessions // nil: only what the store has
}

// usualSessionLimits are the limits of a server without flags.
func usualSessionLimits() sessionLimits {
	return sessionLimits{2 * time.Hour, 12 * time.Hour, new(seenSessions)}
}

// over reports whether a session has ended.
func (l sessionLimits) over(s *session, hash [32]byte, now instant) bool {
	if s.Kind == sessionHalf {
		return now >= s.CreatedAt.add(halfSession)
	}
	if s.hasPIN() {
		return now >= s.CreatedAt.add(l.longest+pinLonger)
	}
	return now >= s.CreatedAt.add(l.longest) || now >= l.seen.last(hash, s.SeenAt).add(l.idle)
}

func sessionKey(hash [32]byte) key { return append(newKey('S'), hash[:]...) }

func sessionOfKey(user id, hash [32]byte) key { return append(userKey(user, partSession), hash[:]...) }

// newToken returns a token of 256 random bits.
func (p *peopleTxn) newToken() string {
	var random [32]byte
	p.t.bytes(random[:])
	return base62(new(big.Int).SetBytes(random[:]), tokenDigits)
}

// tokenHash is what is stored of a token.
func tokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// A member is who uses the panel: a user in the organization that its session is in.
type member struct {
	user    *user
	session *session
	hash    [32]byte // of the session's token
	role    role
	org     uint32

	lacksFactor bool // a second one, which it has to set up first
	locked      bool // the session waits for its PIN
}

// memberByToken returns whose session a token is of. It returns nil if the session is none or
// has ended, waits for the second factor, or if its user may not use the panel there now.
func memberByToken(tx Tx, token string, now instant, limits sessionLimits) (*member, error) {
	return memberByHash(tx, tokenHash(token), now, limits)
}

// memberByHash is memberByToken by what is stored of the token.
func memberByHash(tx Tx, hash [32]byte, now instant, limits sessionLimits) (*member, error) {
	s, err := liveSession(tx, hash, now, limits)
	if err != nil || s == nil || s.Kind != sessionFull {
		return nil, err
	}
	u, err := userByID(tx, s.User)
	if err != nil || u == nil || u.Disabled != 0 {
		return nil, err
	}
	m, err := membershipIn(tx, s.Org, s.User)
	if err != nil || m == nil || m.Disabled != 0 {
		return nil, err
	}
	return &member{user: u, session: s, hash: hash, role: m.Role, org: s.Org, locked: limits.locked(s, hash, now)}, nil
}

// liveSession returns a session that has not ended; nil if there is none.
func liveSession(tx Tx, hash [32]byte, now instant, limits sessionLimits) (*session, error) {
	s, err := get[session](tx, sessionKey(hash))
	if err != nil || s == nil || limits.over(s, hash, now) {
		return nil, err
	}
	return s, nil
}

var errLoggedOut = newPeopleError("logged_out", "", "La sesión terminó: vuelve a entrar")

// stillIn returns a member as the transaction sees it, or logged_out. A request that takes
// long, as when it hashes a password, must not revive a session that was ended meanwhile, or a
// user who was shut out.
func (p *peopleTxn) stillIn(m *member, limits sessionLimits) (*member, error) {
	again, err := memberByHash(p.t.Tx, m.hash, p.t.now, limits)
	if err == nil && (again == nil || again.org != m.org) {
		err = errLoggedOut
	}
	return again, err
}

// hasProved reports whether the user gave the password lately enough for what only the user
// itself may do.
func (m *member) hasProved(now instant) bool { return now < m.session.ProvedAt.add(proofHolds) }

// An arrival is where a user logs in from.
type arrival struct {
	Source netip.Addr
	Agent  string // User-Agent, as it came
	Device string // token that the browser keeps from earlier log-ins; "" without

	Session string // token of the session that the browser is in, which the log-in ends; "" without
}

// agent is the User-Agent as a session keeps it.
func (v *arrival) agent() string {
	text := strings.ToValidUTF8(v.Agent, "")
	text = strings.Map(func(r rune) rune {
		if forbidden(r) || r == '\n' || r == '\t' {
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxAgent {
		text = string([]rune(text)[:maxAgent])
	}
	return text
}

func (v *arrival) source() string {
	if !v.Source.IsValid() {
		return ""
	}
	return v.Source.String()
}

// startSession makes a session of a user in the organization and returns its token. It ends the
// session that the browser was in.
func (p *peopleTxn) startSession(user id, kind sessionKind, from *arrival) (token string, err error) {
	if err := p.endEarlier(from.Session, user); err != nil {
		return "", err
	}
	if err := p.dropOldest(user, kind); err != nil {
		return "", err
	}
	token = p.newToken()
	s := &session{
		User: user, Org: p.t.org, CreatedAt: p.t.now, SeenAt: p.t.now, ProvedAt: p.t.now, Kind: kind, Agent: from.agent(), Source: from.source(),
	}
	return token, p.addSession(tokenHash(token), s)
}

// endEarlier ends the session of a token, if there is one, for a log-in of user in its browser.
// Only the end of somebody else's has an entry in the audit log: the log-in has its own.
func (p *peopleTxn) endEarlier(token string, user id) error {
	if token == "" {
		return nil
	}
	hash := tokenHash(token)
	s, err := get[session](p.t.Tx, sessionKey(hash))
	if err != nil || s == nil {
		return err
	}
	if err := dropSession(p.t, s.User, hash); err != nil || s.User == user {
		return err
	}
	return p.noteEverywhere(s.User, auditSessionEnded, nil)
}

// dropOldest ends the oldest sessions of a user so that there is room for one more of a kind.
// Half ones have a bound of their own: who knows the password alone must not end the others.
func (p *peopleTxn) dropOldest(user id, kind sessionKind) error {
	hashes, err := sessionHashes(p.t.Tx, user)
	if err != nil || len(hashes) < maxSessions {
		return err
	}
	type aged struct {
		hash  [32]byte
		began instant
	}
	var list []aged
	for _, hash := range hashes {
		s, err := get[session](p.t.Tx, sessionKey(hash))
		if err != nil {
			return err
		}
		if s != nil && s.Kind == kind {
			list = append(list, aged{hash, s.CreatedAt})
		}
	}
	slices.SortStableFunc(list, func(a, b aged) int { return cmp.Compare(b.began, a.began) })
	for i := maxSessions - 1; i < len(list); i++ {
		if err := dropSession(p.t, user, list[i].hash); err != nil {
			return err
		}
	}
	return nil
}

func (p *peopleTxn) addSession(hash [32]byte, s *session) error {
	if err := p.t.Put(sessionOfKey(s.User, hash), nil); err != nil {
		return err
	}
	return p.t.put(sessionKey(hash), s)
}

func dropSession(tx Tx, user id, hash [32]byte) error {
	if err := tx.Delete(sessionKey(hash)); err != nil {
		return err
	}
	return tx.Delete(sessionOfKey(user, hash))
}

// renewSession gives a member's session another token. The password was given now.
func (p *peopleTxn) renewSession(m *member) (token string, err error) {
	if err := dropSession(p.t, m.user.ID, m.hash); err != nil {
		return "", err
	}
	s := *m.session
	s.SeenAt, s.ProvedAt = p.t.now, p.t.now
	token = p.newToken()
	return token, p.addSession(tokenHash(token), &s)
}

// An openSession is one of a user's sessions.
type openSession struct {
	*session
	hash   [32]byte
	Handle string  // names it among the user's
	Last   instant // when it was last seen
}

// sessionsOf returns the full sessions of a user that have not ended, the one seen last
// first.
func sessionsOf(tx Tx, user id, now instant, limits sessionLimits) (list []*openSession, err error) {
	hashes, err := sessionHashes(tx, user)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		s, err := liveSession(tx, hash, now, limits)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Kind == sessionFull {
			list = append(list, &openSession{s, hash, handleOf(hash), limits.seen.last(hash, s.SeenAt)})
		}
	}
	slices.SortFunc(list, func(a, b *openSession) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), bytes.Compare(a.hash[:], b.hash[:]))
	})
	return list, nil
}

func handleOf(hash [32]byte) string { return hex.EncodeToString(hash[:])[:handleLength] }

func sessionHashes(tx Tx, user id) (list [][32]byte, err error) {
	return keyEnds(tx, tableUserSessions, userKey(user, partSession), func(end []byte) [32]byte { return [32]byte(end) })
}

// endSessions ends the sessions of a user in an organization; in all if org is 0. keep is the
// hash of a session that goes on; nil ends all. It returns how many ended.
func (p *peopleTxn) endSessions(user id, org uint32, keep *[32]byte) (n int, err error) {
	hashes, err := sessionHashes(p.t.Tx, user)
	if err != nil {
		return 0, err
	}
	for _, hash := range hashes {
		s, err := get[session](p.t.Tx, sessionKey(hash))
		if err != nil {
			return 0, err
		}
		if keep != nil && hash == *keep || s != nil && org != 0 && s.Org != org {
			continue
		}
		if err := dropSession(p.t, user, hash); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// logOut ends a member's own session.
func (p *peopleTxn) logOut(m *member) error {
	if err := dropSession(p.t, m.user.ID, m.hash); err != nil {
		return err
	}
	return p.t.audit.note(auditSessionEnded, m.user.ID.String(), nil)
}

// endOthers ends a member's other sessions: the one with a handle, or all where that is "".
func (p *peopleTxn) endOthers(m *member, handle string) (n int, err error) {
	hashes, err := sessionHashes(p.t.Tx, m.user.ID)
	if err != nil {
		return 0, err
	}
	for _, hash := range hashes {
		if hash == m.hash || handle != "" && handle != handleOf(hash) {
			continue
		}
		if err := dropSession(p.t, m.user.ID, hash); err != nil {
			return 0, err
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	return n, p.noteEverywhere(m.user.ID, auditSessionEnded, []change{{"sessions", nil, n}})
}

// endSessionsOf ends a member's sessions in the organization, for who manages the team.
func (p *peopleTxn) endSessionsOf(by *member, user id) (n int, err error) {
	m, err := p.teammate(user)
	if err == nil {
		err = by.mayManage(user, m.Role, m.Role)
	}
	if err == nil {
		n, err = p.endSessions(user, p.t.org, nil)
	}
	if err != nil || n == 0 {
		return 0, err
	}
	return n, p.t.audit.note(auditSessionEnded, user.String(), []change{{"sessions", nil, n}})
}

// enter puts a member's session into the organization, which the member is one of.
func (p *peopleTxn) enter(m *member, limits sessionLimits) error {
	again, err := p.stillIn(m, limits)
	if err != nil {
		return err
	}
	in, err := p.teammate(m.user.ID)
	if err == nil && !in.active() {
		err = errNotMember
	}
	if err != nil {
		return err
	}
	again.session.Org, in.user.Org = p.t.org, p.t.org
	if err := p.t.put(sessionKey(m.hash), again.session); err != nil {
		return err
	}
	if err := p.saveUser(in.user); err != nil {
		return err
	}
	return p.t.audit.note(auditSessionStarted, m.user.ID.String(), nil)
}

// A device is a browser that a user has logged in with.
type device struct{ Since, Until instant }

func (d *device) fields(c *coder) { c.instant(&d.Since); c.instant(&d.Until) }

func deviceKey(user id, hash [32]byte) key { return append(userKey(user, partDevice), hash[:]...) }

// isDevice reports whether a token is of a device that a user has logged in from.
func isDevice(tx Tx, user id, token string, now instant) (bool, error) {
	if token == "" {
		return false, nil
	}
	d, err := get[device](tx, deviceKey(user, tokenHash(token)))
	return d != nil && now < d.Until, err
}

// addDevice returns the token of the device that a user logs in from: the one it has, or a new
// one. It drops devices that are too old or too many.
func (p *peopleTxn) addDevice(user id, token string) (string, error) {
	known, err := isDevice(p.t.Tx, user, token, p.t.now)
	if err != nil {
		return "", err
	}
	if !known {
		token = p.newToken()
	}
	type kept struct {
		key key
		*device
	}
	var list []kept
	for e, err := range scan(p.t.Tx, userKey(user, partDevice), false) {
		if err != nil {
			return "", err
		}
		d, err := decodeEntry[device](e)
		if err != nil {
			return "", err
		}
		list = append(list, kept{slices.Clone(e.Key), d})
	}
	slices.SortStableFunc(list, func(a, b kept) int { return cmp.Compare(b.Until, a.Until) })
	for i, d := range list {
		if i >= maxDevices-1 && !known || d.Until <= p.t.now {
			if err := p.t.Delete(d.key); err != nil {
				return "", err
			}
		}
	}
	return token, p.t.put(deviceKey(user, tokenHash(token)), &device{p.t.now, p.t.now.add(deviceLife)})
}

// seenSessions are the moments when sessions were last seen. The moment of a session is written at
// most once in seenEvery, so that looking at a page costs no write. It is safe for concurrent use.
// A nil seenSessions knows only what is stored.
type seenSessions struct {
	mu sync.Mutex
	at map[[32]byte]seenSession
}

type seenSession struct{ last, saved instant }

// last returns when a session was last seen: the stored moment, or a later one held in memory.
func (s *seenSessions) last(hash [32]byte, saved instant) instant {
	if s == nil {
		return saved
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(saved, s.at[hash].last)
}

// see notes that a member is seen.
func (s *seenSessions) see(m *member, now instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[[32]byte]seenSession{}
	}
	if at := s.at[m.hash]; now > at.last {
		s.at[m.hash] = seenSession{now, max(at.saved, m.session.SeenAt)}
	}
}

// due returns the moments that should be written now, and forgets the moments that are stored
// already. With all, when the server stops, it returns every moment that is not stored.
func (s *seenSessions) due(now instant, all bool) map[[32]byte]instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[[32]byte]instant{}
	for hash, at := range s.at {
		switch waits := now < at.saved.add(seenEvery) && now < at.last.add(seenEvery) && !all; {
		case at.last <= at.saved:
			delete(s.at, hash)
		case !waits:
			list[hash] = at.last
		}
	}
	return list
}

// wrote notes that moments are written.
func (s *seenSessions) wrote(list map[[32]byte]instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, at := range list {
		if now := s.at[hash]; now.last != 0 {
			s.at[hash] = seenSession{now.last, max(now.saved, at)}
		}
	}
}

// flush writes the moments that have waited long enough.
func (s *seenSessions) flush(ctx context.Context, store Store, now instant, all bool) error {
	list := s.due(now, all)
	if len(list) == 0 {
		return nil
	}
	err := store.Update(ctx, func(tx Tx) error {
		for hash, at := range list {
			s, err := get[session](tx, sessionKey(hash))
			if err != nil {
				return err
			}
			if s == nil || s.SeenAt >= at { // ended meanwhile
				continue
			}
			s.SeenAt = at
			if err := put(tx, sessionKey(hash), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.wrote(list)
	}
	return err
}
