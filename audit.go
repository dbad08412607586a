package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"strings"
)

// The audit log says who changed what of an organization: its configuration and keys,
// its customers' data, its people, what was cancelled (contract §16). An entry is written in the
// transaction of the change. Entries are a hash chain as an account's movements are
// (ledger.go), all of an organization's in one chain.
//
//	A org seq                  → entry
//	B org field value(16) block → set of the entries that have a value in a field, by seq (internal/blockset)
//
// No entry holds a secret or a customer's data, nor a user's name or e-mail. Of a field with
// such data a change has the name only.

// An auditEntry is one entry of the audit log.
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

// auditActions lists them all.
var auditActions = []string{
	auditConfigurationApplied, auditKeyCreated, auditKeyChanged, auditKeyRotated, auditKeyRevoked,
	auditCustomerUpdated, auditCustomerMerged, auditCustomerErased, auditRedemptionCancelled, auditClockAccepted,
	auditWebhookSecret, auditWebhookResumed, auditWebhookReplayed, auditWebhookTested, auditDataExported, auditBackupStarted,
	auditUserInvited, auditUserUninvited, auditUserJoined, auditUserChanged, auditUserRemoved, auditUserReset,
	auditSessionStarted, auditSessionEnded, auditSessionRefused, auditSessionProved, auditSegmentGiven,
	auditTransactionAsked, auditTransactionDeclined, auditRedemptionAsked, auditRedemptionDeclined,
}

// auditSources are where those came from who made an entry, by their type. What is done
// for the operator comes from a command, and so does what the process does by itself: its
// actor says so.
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

// An auditTxn is the audit log in a transaction.
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

// unsaid are changes of customers' data, of which the audit log has the fields' names.
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
		for _, by := range [...]struct {
			field byte
			value string
		}{{auditActor, keyID}, {auditActor, actor}, {auditAction, e.Action}, {auditSubject, e.Subject}, {auditSubject, e.merged()}} {
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
