package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"slices"
	"sort"
	"strings"

	"sello/internal/blockset"
)

// The audit log says who changed what of an organization: its configuration and keys,
// its customers' data, its people, what was cancelled (contract §16). An entry is written in the
// transaction of the change. Entries are a hash chain as an account's movements are
// (model_ledger.go), all of an organization's in one chain.
//
//	A org seq                  → entry
//	B org field value(16) block → set of the entries that have a value in a field, by seq (internal/blockset)
//
// No entry holds a secret or a customer's data, nor a user's name or e-mail. Of a field with
// such data a change has the name only.

type auditEntry struct {
	Seq uint64 // from the key

	At        instant // never before the entry before it, unless the clock was accepted here
	By        creator
	Action    string
	Subject   string // the id of what was changed; "" without
	Changes   []auditChange
	RequestID string     // "" without
	Hash      ledgerHash // of the fields above and the entry before
}

// An auditChange is a field with its value before and after, both null
// where the values are a customer's data.
type auditChange struct {
	Field  string   `json:"field"`
	Before jsonText `json:"before"`
	After  jsonText `json:"after"`
}

// A jsonText is a JSON value as text; "" is null.
type jsonText string

func (v jsonText) MarshalJSON() ([]byte, error) {
	if v == "" {
		return []byte("null"), nil
	}
	return []byte(v), nil
}

func (v *jsonText) UnmarshalJSON(b []byte) error {
	if *v = jsonText(b); *v == "null" {
		*v = ""
	}
	return nil
}

func jsonTextOf(v any) (jsonText, error) {
	b, err := encode(v)
	if err != nil {
		return "", err
	}
	var text jsonText
	return text, text.UnmarshalJSON(bytes.TrimSpace(b))
}

// What entries are about.
const (
	auditConfigurationApplied = "configuration.applied"
	auditKeyCreated           = "key.created"
	auditKeyChanged           = "key.changed"
	auditKeyRotated           = "key.rotated"
	auditKeyRevoked           = "key.revoked"
	auditCustomerUpdated      = "customer.updated"
	auditCustomerMerged       = "customer.merged"
	auditCustomerErased       = "customer.erased"
	auditCardIssued           = "customer.card_issued"
	auditCardRevoked          = "customer.card_revoked"
	auditProofWaived          = "proof.waived"
	auditRedemptionCancelled  = "redemption.cancelled"
	auditTransactionAsked     = "transaction.asked"
	auditTransactionDeclined  = "transaction.declined"
	auditRedemptionAsked      = "redemption.asked"
	auditRedemptionDeclined   = "redemption.declined"
	auditClockAccepted        = "clock.accepted"
	auditWebhookSecret        = "webhook.secret"
	auditWebhookResumed       = "webhook.resumed"
	auditWebhookReplayed      = "webhook.replayed"
	auditWebhookTested        = "webhook.tested"
	auditDataExported         = "data.exported"
	auditBackupStarted        = "backup.started"
	auditUserInvited          = "user.invited"
	auditUserUninvited        = "user.uninvited"
	auditUserJoined           = "user.joined"
	auditUserChanged          = "user.changed"
	auditUserRemoved          = "user.removed"
	auditUserReset            = "user.reset"
	auditSessionStarted       = "session.started"
	auditSessionEnded         = "session.ended"
	auditSessionRefused       = "session.refused"
	auditSessionProved        = "session.proved"
	auditSegmentGiven         = "segment.given"
)

var auditActions = []string{
	auditConfigurationApplied, auditKeyCreated, auditKeyChanged, auditKeyRotated, auditKeyRevoked,
	auditCustomerUpdated, auditCustomerMerged, auditCustomerErased, auditRedemptionCancelled, auditClockAccepted,
	auditWebhookSecret, auditWebhookResumed, auditWebhookReplayed, auditWebhookTested, auditDataExported, auditBackupStarted,
	auditUserInvited, auditUserUninvited, auditUserJoined, auditUserChanged, auditUserRemoved, auditUserReset,
	auditSessionStarted, auditSessionEnded, auditSessionRefused, auditSessionProved, auditSegmentGiven,
	auditTransactionAsked, auditTransactionDeclined, auditRedemptionAsked, auditRedemptionDeclined,
	auditCardIssued, auditCardRevoked, auditProofWaived,
}

// auditSources say where an entry came from, by its creator's type. What is done for the
// operator comes from a command, and so does what the process does by itself: its actor
// says so.
var auditSources = map[string]string{byKey: "Api", byUser: "Panel", byImport: "Command", byCommand: "Command", bySystem: "Command"}

// Fields that entries are found by.
const (
	auditActor   = 'a' // the id of a key or user, or what the creator says of its actor
	auditAction  = 'c'
	auditSubject = 's'
)

// A change of much is written as several entries, each of at most so many changes and
// about so many bytes, so that a page of the list stays bounded.
const (
	maxAuditChanges = 100
	maxAuditBytes   = 32 << 10
)

func (e *auditEntry) fields(c *coder) {
	e.hashedFields(c)
	c.hash(&e.Hash)
}

func (e *auditEntry) hashedFields(c *coder) {
	c.instant(&e.At)
	e.By.fields(c)
	c.text(&e.Action)
	c.text(&e.Subject)
	listField(c, &e.Changes, (*auditChange).fields)
	c.text(&e.RequestID)
}

func (a *auditChange) fields(c *coder) {
	c.text(&a.Field)
	textField(c, &a.Before)
	textField(c, &a.After)
}

type auditTxn struct{ t *txn }

// note writes to the audit log that the transaction's creator did something to a
// subject. A change that names its field only is of customers' data; see unsaid.
func (a *auditTxn) note(action, subject string, changes []change) error {
	e := &auditEntry{At: a.t.began, By: a.t.by, Action: action, Subject: subject, RequestID: a.t.requestID}
	size := 0
	for _, c := range changes {
		var said auditChange
		var err error
		if said.Field = c.Path; c.From != nil || c.To != nil {
			if said.Before, err = jsonTextOf(c.From); err == nil {
				said.After, err = jsonTextOf(c.To)
			}
		}
		if err != nil {
			return err
		}
		length := len(said.Field) + len(said.Before) + len(said.After)
		if n := len(e.Changes); n == maxAuditChanges || n > 0 && size+length > maxAuditBytes {
			if err := a.append(e); err != nil {
				return err
			}
			e.Changes, size = nil, 0
		}
		e.Changes, size = append(e.Changes, said), size+length
	}
	return a.append(e)
}

// unsaid are changes of customers' data: the audit log has the names of the fields alone.
func unsaid(fields ...string) (changes []change) {
	for _, f := range fields {
		changes = append(changes, change{Path: f})
	}
	return changes
}

// append appends an entry to the chain. An entry is not before the last one; only
// whoever accepts a clock sets time back.
func (a *auditTxn) append(e *auditEntry) error {
	n, err := a.t.count()
	if err != nil {
		return err
	}
	var before ledgerHash
	if n.Audit > 0 {
		last, err := a.entry(n.Audit)
		if err != nil {
			return err
		}
		if before = last.Hash; e.Action != auditClockAccepted {
			e.At = max(e.At, last.At)
		}
	}
	n.Audit++
	e.Seq = n.Audit
	c := a.t.scratch()
	e.hashedFields(c)
	e.Hash = hashMovement(before, a.t.org, e.Seq, c.b)
	c.hash(&e.Hash)
	if err := a.t.Put(a.key(e.Seq), c.b); err != nil {
		return err
	}
	for set := range e.sets(a.t.org) {
		if _, err := putInSet(a.t, set, e.Seq, true); err != nil {
			return err
		}
	}
	return nil
}

func (a *auditTxn) key(seq uint64) key { return orgKey('A', a.t.org).u64(seq) }

// auditSet is the prefix of the set of entries with a value in a field.
func auditSet(org uint32, field byte, value string) key {
	h := sha256.Sum256([]byte(value))
	return append(orgKey('B', org).byte(field), h[:16]...)
}

// merged is the id of the customer that a merge made part of the entry's subject; "" for other
// actions. Entries are also indexed by it, because callers often know only the merged customer's
// id.
func (e *auditEntry) merged() string {
	if e.Action != auditCustomerMerged || len(e.Changes) == 0 {
		return ""
	}
	return strings.Trim(string(e.Changes[0].After), `"`)
}

// sets yields the sets that an entry is in, each once.
func (e *auditEntry) sets(org uint32) iter.Seq[key] {
	return func(yield func(key) bool) {
		keyID := ""
		if e.By.ID != (id{}) {
			keyID = e.By.ID.String()
		}
		actor := e.By.Actor
		if actor == keyID {
			actor = ""
		}
		for _, by := range [...]auditValue{{auditActor, keyID}, {auditActor, actor}, {auditAction, e.Action}, {auditSubject, e.Subject}, {auditSubject, e.merged()}} {
			if by.value != "" && !yield(auditSet(org, by.field, by.value)) {
				return
			}
		}
	}
}

func (a *auditTxn) entry(seq uint64) (*auditEntry, error) {
	e, err := existing[auditEntry](a.t.Tx, a.key(seq))
	if err != nil {
		return nil, err
	}
	e.Seq = seq
	return e, nil
}

// A change is one difference: what an entry of the audit log tells, or applying a document makes.
type change struct {
	Path string `json:"path"`
	From any    `json:"from"` // nil: added
	To   any    `json:"to"`   // nil: removed
}

// UnmarshalJSON keeps numbers as they are written: a float64 would show 1000000 as 1e+06.
func (c *change) UnmarshalJSON(raw []byte) error {
	type plain change
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode((*plain)(c))
}

// stated is nil for the zero value, which stands for none.
func stated[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

func statedList(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Lengths in characters of what is looked for.
const (
	maxAction  = 100
	maxSubject = 255
)

// An auditFilter chooses entries. An empty field does not restrict.
type auditFilter struct {
	from, to               instant // both included; 0 and never mean open
	actor, action, subject string
	kind                   string       // one of auditKinds
	before                 uint64       // entries before this one; 0: all
	within                 []auditValue // entries that have one of these; nil: all
}

// Kinds of entries: log-ins and log-outs, which are most, and changes, which are all others.
const (
	auditKindChange  = "Change"
	auditKindSession = "Session"
)

var auditKinds = []string{"", auditKindChange, auditKindSession}

func auditKindOf(action string) string {
	if strings.HasPrefix(action, "session.") {
		return auditKindSession
	}
	return auditKindChange
}

// An auditValue is a value in a field that entries are found by.
type auditValue struct {
	field byte
	value string
}

// entries returns a page of the entries that a filter chooses, newest first, and
// how many there are.
func (a *auditTxn) entries(f auditFilter, p page) (list []*auditEntry, total uint64, err error) {
	spans, err := a.spans(&f)
	if err != nil {
		return nil, 0, err
	}
	cut := seqPager{page: p}
	for _, s := range spans {
		if err := a.cut(&cut, s, f.sets(a.t.org)...); err != nil {
			return nil, 0, err
		}
	}
	warm(a.t.Tx, cut.found, a.key)
	for _, seq := range cut.found {
		e, err := a.entry(seq)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	return list, cut.total, nil
}

// An auditGroup holds the entries that are in one of its sets or, if none is true, the entries
// that are in none of them.
type auditGroup struct {
	sets []key
	none bool
}

// sets are the groups that the filter's entries are in, the group that is likely to be the
// smallest first.
func (f *auditFilter) sets(org uint32) (groups []auditGroup) {
	for _, by := range [...]auditValue{{auditSubject, f.subject}, {auditActor, f.actor}, {auditAction, f.action}} {
		if by.value != "" {
			groups = append(groups, auditGroup{sets: []key{auditSet(org, by.field, by.value)}})
		}
	}
	if f.within != nil {
		var any []key
		for _, by := range f.within {
			any = append(any, auditSet(org, by.field, by.value))
		}
		groups = append(groups, auditGroup{sets: any})
	}
	if f.kind != "" {
		var any []key
		for _, action := range auditActions {
			if auditKindOf(action) == auditKindSession {
				any = append(any, auditSet(org, auditAction, action))
			}
		}
		groups = append(groups, auditGroup{any, f.kind == auditKindChange})
	}
	return groups
}

// A seqSpan is a row of entries, both ends included.
type seqSpan struct{ first, last uint64 }

// spans returns the entries of the filter's span of time, newest first. Between
// two acceptances of a clock time only goes on, so that each such row has one span.
func (a *auditTxn) spans(f *auditFilter) (spans []seqSpan, err error) {
	n, err := a.t.count()
	if err != nil {
		return nil, err
	}
	last := n.Audit
	if f.before > 0 {
		last = min(last, f.before-1)
	}
	begins := []uint64{1}
	if f.from != 0 || f.to != never {
		var accepted seqPager
		accepted.page = page{1, last}
		if err := a.cut(&accepted, seqSpan{1, last}, auditGroup{sets: []key{auditSet(a.t.org, auditAction, auditClockAccepted)}}); err != nil {
			return nil, err
		}
		slices.Reverse(accepted.found)
		begins = append(begins, accepted.found...)
	}
	for _, first := range slices.Backward(begins) {
		s := seqSpan{first, last}
		if f.from != 0 {
			s.first, err = a.since(s, f.from)
		}
		if f.to != never && err == nil {
			s.last, err = a.since(s, f.to+1)
			s.last--
		}
		if err != nil {
			return nil, err
		}
		if s.first <= s.last {
			spans = append(spans, s)
		}
		last = first - 1
	}
	return spans, nil
}

// since returns the first entry of a row that is not before a moment; the one
// behind it if there is none. The row's entries are in the order of time.
func (a *auditTxn) since(s seqSpan, at instant) (seq uint64, err error) {
	length := int(s.last + 1 - s.first)
	n := sort.Search(length, func(i int) bool {
		if err != nil {
			return true
		}
		var e *auditEntry
		e, err = a.entry(s.first + uint64(i))
		return err != nil || e.At >= at
	})
	return s.first + uint64(n), err
}

// A seqPager collects a page of entries. It takes them from the last to the first.
type seqPager struct {
	page
	found []uint64
	total uint64
}

// cut takes the entries of a row that are in every group; without groups, all.
func (a *auditTxn) cut(cut *seqPager, s seqSpan, groups ...auditGroup) error {
	if len(groups) == 0 {
		cut.row(s)
		return nil
	}
	if s.first > s.last {
		return nil
	}
	if len(groups[0].sets) != 1 || groups[0].none { // their blocks are not in one row
		for block := s.last / blockset.Block; ; block-- {
			if err := a.cutBlock(cut, s, uint32(block), wholeBlock(), groups); err != nil || block == s.first/blockset.Block {
				return err
			}
		}
	}
	prefix := groups[0].sets[0]
	from, to := slices.Clone(prefix).u32(uint32(s.first/blockset.Block)), slices.Clone(prefix).u32(uint32(s.last/blockset.Block)).after()
	for e, err := range a.t.Scan(from, to, true) {
		if err != nil {
			return err
		}
		if err := a.cutBlock(cut, s, uint32In(e.Key[len(prefix):]), blockset.Decode(e.Value), groups[1:]); err != nil {
			return err
		}
	}
	return nil
}

// cutBlock takes the entries of a block that are in every group.
func (a *auditTxn) cutBlock(cut *seqPager, s seqSpan, block uint32, members *blockset.Bitmap, groups []auditGroup) error {
	for _, group := range groups {
		var any blockset.Bitmap
		for _, set := range group.sets {
			value, _, err := a.t.Get(slices.Clone(set).u32(block))
			if err != nil {
				return err
			}
			for i, b := range blockset.Decode(value) {
				any[i] |= b
			}
		}
		for i, b := range any {
			if group.none {
				b = ^b
			}
			members[i] &= b
		}
	}
	cut.block(uint64(block)*blockset.Block, members, s)
	return nil
}

// wholeBlock is a block that every number is in.
func wholeBlock() *blockset.Bitmap {
	return (*blockset.Bitmap)(bytes.Repeat([]byte{0xff}, blockset.Bytes))
}

func (c *seqPager) row(s seqSpan) {
	if s.first > s.last {
		return
	}
	n := s.last - s.first + 1
	for i := max(c.skip(), c.total) - c.total; i < n && uint64(len(c.found)) < c.limit; i++ {
		c.found = append(c.found, s.last-i)
	}
	c.total += n
}

// block takes the entries of a block that are in a row.
func (c *seqPager) block(begin uint64, members *blockset.Bitmap, s seqSpan) {
	for i := range members {
		for bit := range uint64(8) {
			if seq := begin + uint64(8*i) + bit; seq < s.first || seq > s.last {
				members[i] &^= 1 << bit
			}
		}
	}
	count := members.Count()
	if c.total+count <= c.skip() || uint64(len(c.found)) == c.limit {
		c.total += count
		return
	}
	for at := blockset.Block - 1; at >= 0; at-- {
		if members[at/8]&(1<<(at%8)) == 0 {
			continue
		}
		if c.total++; c.total > c.skip() && uint64(len(c.found)) < c.limit {
			c.found = append(c.found, begin+uint64(at))
		}
	}
}
