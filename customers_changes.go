package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Changes of a customer's data (contract §12). The transaction of a change also updates all index
// entries of the customer.

// A customerPatch is a change of a customer. A nil field stays as it is; "" and 0 clear a
// field. Texts are normalized.
type customerPatch struct {
	Email, Phone, FirstName, LastName, Status, ExternalID *string

	BirthDate       *birthDate
	Attributes      []attribute // added by name; one without a value drops the name
	ClearAttributes bool
	Marketing       *consentAnswer
}

// patch changes a customer and returns it. If holds is not nil and false for the
// customer's ETag, the error is precondition_failed.
func (cu *customersTxn) patch(cust id, p customerPatch, holds func(etag string) bool) (*customer, error) {
	c, err := cu.get(cust)
	if err != nil {
		return nil, err
	}
	if err := c.mustBeShown(); err != nil {
		return nil, err
	}
	if holds != nil && !holds(c.etag()) {
		return nil, newError(codePreconditionFailed)
	}
	after := p.of(c, cu.t.dayOf(cu.t.now))
	if p.Marketing != nil {
		after.Marketing = c.Marketing.said(*p.Marketing, cu.t.now)
	}
	if err := cu.checkChange(c, after); err != nil {
		return nil, err
	}
	return after, cu.change(c, after)
}

func (p *customerPatch) of(c *customer, today day) *customer {
	after := *c
	for _, f := range []struct{ to, from *string }{
		{&after.Email, p.Email}, {&after.Phone, p.Phone}, {&after.FirstName, p.FirstName}, {&after.LastName, p.LastName},
		{&after.Status, p.Status}, {&after.ExternalID, p.ExternalID},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if p.BirthDate != nil {
		after.setBirthDate(*p.BirthDate, today)
	}
	if p.ClearAttributes {
		after.Attributes = nil
	}
	after.Attributes = mergeAttributes(after.Attributes, p.Attributes)
	return &after
}

// setBirthDate sets the date, or clears it. The next birthday after today is the first
// that counts, unless only the year has become known, or is no longer: that moves no birthday.
func (c *customer) setBirthDate(b birthDate, today day) {
	if b == c.BirthDate {
		return
	}
	if b != 0 && c.BirthDate != 0 && b.agrees(c.BirthDate) {
		c.BirthDate = b
		return
	}
	if c.BirthDate, c.BirthdayFrom = b, 0; b != 0 {
		c.BirthdayFrom = uint32(b.lastYear(today) + 1)
	}
}

// checkChange returns an error if the customer may not become what after is.
func (cu *customersTxn) checkChange(before, after *customer) error {
	if after.Email == "" && after.Phone == "" {
		return newError(codeEmailOrPhoneRequired)
	}
	for kind, value := range after.identities() {
		if value == before.identity(kind) {
			continue
		}
		other, err := cu.identify(kind, value)
		if err != nil {
			return err
		}
		if other != nil && other.ID != after.ID {
			field := map[byte]string{kindEmail: "email", kindPhone: "phoneNumber"}[kind]
			return newError(codeIdentityConflict).on(field).with("customerId", other.ID)
		}
	}
	if err := cu.externalIDFree(after.ExternalID, after.ID); err != nil {
		return err
	}
	return checkAttributes(after.Attributes)
}

// profile writes the fields that a PATCH can change.
func (c *customer) profile(to *coder) {
	for _, text := range []*string{&c.Email, &c.Phone, &c.FirstName, &c.LastName, &c.Status, &c.ExternalID} {
		to.text(text)
	}
	uintField(to, &c.BirthDate)
	listField(to, &c.Attributes, (*attribute).fields)
	if c.Marketing.Answer != consentUnknown {
		byteField(to, &c.Marketing.Answer)
	}
}

// etag is a hash of the fields that a PATCH can change.
func (c *customer) etag() string {
	var to coder
	to.id(&c.ID)
	c.profile(&to)
	sum := sha256.Sum256(to.b)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// change writes a changed customer and its index entries. It writes nothing if the
// fields that a PATCH can change are the same.
func (cu *customersTxn) change(before, after *customer) error {
	var was, is coder
	before.profile(&was)
	after.profile(&is)
	if bytes.Equal(was.b, is.b) {
		return nil
	}
	if err := cu.moveProfile(before, after); err != nil {
		return err
	}
	if err := cu.t.audit.note(auditCustomerUpdated, after.ID.String(), before.auditChanges(after)); err != nil {
		return err
	}
	if err := cu.t.feed.emit(eventCustomerUpdated, after.Number); err != nil {
		return err
	}
	return cu.save(after)
}

// markWritten notes that a member of the team wrote to a customer now, or that nobody did. What is
// old goes; where nobody marks anything again, it stays in the record, and nothing shows it.
func (cu *customersTxn) markWritten(cust id, kind noticeKind, by id, wrote bool) error {
	c, err := cu.get(cust)
	if err == nil {
		err = c.mustBeShown()
	}
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(c.Written), func(w writtenNotice) bool { return w.Kind == kind || w.isOld(cu.t.now) })
	if wrote {
		list = append(list, writtenNotice{kind, cu.t.now, by})
	}
	if slices.Equal(list, c.Written) {
		return nil
	}
	c.Written = list
	return cu.save(c)
}

func (cu *customersTxn) moveProfile(before, after *customer) error {
	after.UpdatedAt = cu.t.now
	if err := cu.moveIndexes(before, after); err != nil {
		return err
	}
	return cu.t.search.reindex(after.Number, before.searchTexts(), after.searchTexts())
}

// auditChanges returns what the audit log says of a change. It names the changed fields, as
// clients call them, and gives values of the status and of the consent to notices only.
func (c *customer) auditChanges(after *customer) []change {
	var names []string
	for _, f := range [...]struct {
		name    string
		changed bool
	}{
		{"firstName", c.FirstName != after.FirstName}, {"lastName", c.LastName != after.LastName},
		{"email", c.Email != after.Email}, {"phoneNumber", c.Phone != after.Phone},
		{"externalId", c.ExternalID != after.ExternalID}, {"birthDate", c.BirthDate != after.BirthDate},
		{"attributes", !slices.Equal(c.Attributes, after.Attributes)},
	} {
		if f.changed {
			names = append(names, f.name)
		}
	}
	changes := unsaid(names...)
	if c.Status != after.Status {
		changes = append(changes, change{"status", c.Status, after.Status})
	}
	if a, b := c.Marketing.Answer, after.Marketing.Answer; a != b {
		changes = append(changes, change{"marketing", a.orNull(), b.orNull()})
	}
	return changes
}

// moveIndexes replaces a customer's entries in all indexes but the search index, and counts
// a customer that becomes hidden. before is empty for a new customer.
func (cu *customersTxn) moveIndexes(before, after *customer) error {
	value := appendRecord(nil, &identity{after.ID, after.Person})
	for _, kind := range []byte{kindEmail, kindPhone} {
		if err := cu.rekey(cu.identityKey(before, kind), cu.identityKey(after, kind), value); err != nil {
			return err
		}
	}
	if err := cu.rekey(cu.customerExternalKey(before), cu.customerExternalKey(after), after.ID[:]); err != nil {
		return err
	}
	if err := cu.rekey(cu.t.rules.birthdayKey(before), cu.t.rules.birthdayKey(after), nil); err != nil {
		return err
	}
	if err := cu.countGone(before, after); err != nil {
		return err
	}
	return cu.moveStatus(after.Number, before.Status, after.Status)
}

// countGone counts a customer who is hidden from now on.
func (cu *customersTxn) countGone(before, after *customer) error {
	if before.hidden() || !after.hidden() {
		return nil
	}
	after.GoneAt = cu.t.now
	s, err := cu.t.stats.tally(after.Program, cu.t.now)
	if err != nil {
		return err
	}
	s.GoneCustomers++
	return nil
}

// rekey moves an index entry from one key to another. A nil key stands for no entry.
func (cu *customersTxn) rekey(from, to key, value []byte) error {
	if bytes.Equal(from, to) {
		return nil
	}
	if from != nil {
		if err := cu.t.Delete(from); err != nil {
			return err
		}
	}
	if to == nil {
		return nil
	}
	return cu.t.Put(to, value)
}

func (cu *customersTxn) identityKey(c *customer, kind byte) key {
	value := c.identity(kind)
	if value == "" {
		return nil
	}
	return identityKey(kind, value).u32(cu.t.org)
}

// Customers by externalId. The key holds a hash, since an externalId may be longer than a
// key.
//
//	E org hash(16) → cust

// customerExternalKey is nil for a customer without an entry.
func (cu *customersTxn) customerExternalKey(c *customer) key {
	if c.ExternalID == "" || c.hidden() {
		return nil
	}
	return cu.externalIDKey(c.ExternalID)
}

func (cu *customersTxn) externalIDKey(externalID string) key {
	sum := sha256.Sum256([]byte(externalID))
	return append(orgKey('E', cu.t.org), sum[:16]...)
}

// identifyExternal finds this organization's customer by its externalId; nil if that
// is empty or unknown.
func (cu *customersTxn) identifyExternal(externalID string) (*customer, error) {
	if externalID == "" {
		return nil, nil
	}
	k := cu.externalIDKey(externalID)
	value, ok, err := cu.t.Get(k)
	if err != nil || !ok {
		return nil, err
	}
	if len(value) != 16 {
		return nil, unreadable(k)
	}
	c, err := cu.byID(id(value))
	if err != nil || c == nil || c.ExternalID != externalID {
		return nil, err
	}
	return c, nil
}

// externalIDFree returns external_id_taken if a customer other than cust has the
// externalId.
func (cu *customersTxn) externalIDFree(externalID string, cust id) error {
	other, err := cu.identifyExternal(externalID)
	if err == nil && other != nil && other.ID != cust {
		err = newError(codeExternalIDTaken).on("externalId").with("customerId", other.ID)
	}
	return err
}
