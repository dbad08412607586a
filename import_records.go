package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sello/internal/contact"
	"sello/internal/fold"
)

// Rows of files that are imported, and what they say: how customers, and points given or taken, are
// read from a row (sales: import.go). All faults of a row are collected.

// An importRow is one customer, one sale or points of one customer, as text from the file.
type importRow struct {
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phoneNumber,omitempty"`

	BirthDate string `json:"birthDate,omitempty"`
	Marketing string `json:"marketing,omitempty"`
	Points    string `json:"points,omitempty"` // the opening balance; in a file of points, how many to give, or below zero to take
	Expires   string `json:"expiresAt,omitempty"`
	Historic  string `json:"historicPoints,omitempty"`

	MarketingAt string `json:"marketingAt,omitempty"`
	OtherPhone  string `json:"otherPhone,omitempty"` // of a second column: only compared

	ExternalID string       `json:"externalId,omitempty"`
	CreatedAt  string       `json:"createdAt,omitempty"`
	Type       string       `json:"type,omitempty"`
	Total      string       `json:"totalAmount,omitempty"`
	Comment    string       `json:"comment,omitempty"`
	Items      []importItem `json:"items,omitempty"`
	Labels     []label      `json:"labels,omitempty"`

	ID        string `json:"id,omitempty"`       // of a customer
	Customer  string `json:"customer,omitempty"` // of a sale: the customer's externalId
	Category  string `json:"category,omitempty"`
	Reference string `json:"reference,omitempty"`

	// Faulty are the paths of the fields in which the file itself shows a fault. Such a row is
	// not stored; it is only looked at for other faults.
	Faulty []string `json:"faulty,omitempty"`
}

type importItem struct {
	SKU      string `json:"sku"`
	Quantity string `json:"quantity"`
	Price    string `json:"price"`
}

// An importOutcome says whether one row was added, was there already, or was wrong.
type importOutcome struct {
	Added   bool       `json:"added,omitempty"`
	Number  uint64     `json:"number,omitempty"`  // of the customer that was added
	Opening decimal    `json:"opening,omitempty"` // the opening balance that it was given
	Faults  []rowFault `json:"faults,omitempty"`  // all that are known, except the faults in Faulty
	Warning rowFault   `json:"warning,omitzero"`  // the row was taken, but somebody should look at it
}

type rowFault struct {
	Field string `json:"field,omitempty"` // the name of a column; other names and "" are the row as a whole
	Item  int    `json:"item,omitempty"`  // place of the item, if the column is one of items
	Text  string `json:"text"`            // may begin with the field's path

	// Of the customer that Text names at its end.
	Number     uint64 `json:"number,omitempty"`
	ExternalID string `json:"externalId,omitempty"`
}

var itemColumns = []string{"sku", "quantity", "price"}

// labelColumn begins the name of a column with one label of a sale: label.pago.
const labelColumn = "label."

// path names the field at fault as errors of the API do: items[3].price.
func (f rowFault) path() string {
	if slices.Contains(itemColumns, f.Field) {
		return sent{list: "items", index: f.Item}.field(f.Field)
	}
	return f.Field
}

func rowFaultOf(e *apiError) rowFault {
	f := rowFault{Field: e.field, Text: e.message}
	if list, name, ok := strings.Cut(e.field, "]."); ok {
		f.Field = name
		f.Item, _ = strconv.Atoi(strings.TrimPrefix(list, "items["))
	}
	switch e.code { // whose texts are for who calls the API
	case codeEmailInvalid:
		f.Text = "no es un email válido"
	case codePhoneInvalid:
		f.Text = "no es un teléfono válido"
	case codeTypeInvalid:
		f.Text = "debe ser compra o devolución"
	case codeLabelsInvalid:
		f.Text = "una venta lleva hasta 10 etiquetas distintas, con nombres de hasta 40 caracteres y valores de hasta 100"
	case codeReturnExceedsPurchase:
		f.Text = "la devolución supera lo comprado"
	}
	return f
}

// A rowReader reads the fields of a row and gathers all faults.
type rowReader struct {
	input
	row   importRow
	known int // how many of the faults came from row.Faulty

	first    fault
	gathered strictness
}

func newRowReader(row importRow) *rowReader {
	r := &rowReader{row: row}
	r.first.strict = &r.gathered
	r.input.fault = &r.first
	for _, path := range row.Faulty {
		r.fail(invalidField(path, ""))
	}
	r.known = len(r.strict.faults)
	return r
}

// isWrong reports whether one of some fields has a fault.
func (r *rowReader) isWrong(fields ...string) bool {
	return slices.ContainsFunc(r.strict.faults, func(e *apiError) bool { return slices.Contains(fields, e.field) })
}

// take records an error for clients as a fault, and returns any other.
func (r *rowReader) take(err error) error {
	if fault, ok := errors.AsType[*apiError](err); ok {
		r.fail(fault)
		return nil
	}
	return err
}

// told lists the faults that did not come from row.Faulty.
func (r *rowReader) told() (faults []rowFault) {
	for _, e := range r.strict.faults[r.known:] {
		faults = append(faults, rowFaultOf(e))
	}
	return faults
}

// Kinds of files. The first three are imported; all but points are exported.
const (
	importCustomers = "customers"
	importSales     = "sales"
	importPoints    = "points"
	exportMovements = "movements"
	redemptionsFile = "redemptions"
)

// Faults of a date in a file.
const (
	notDate = "debe ser una fecha con el año de cuatro cifras, como 2026-11-30 o 30/11/2026 (con -dates mdy, 11/30/2026)"
	notPast = "no puede ser una fecha futura"

	notBirthDate = "debe ser una fecha con el año de cuatro cifras, como 1990-05-14 o 14/05/1990, o sin año, como 05-14 o 14/05 (con -dates mdy, 05/14/1990 o 05/14)"
)

// programFor returns the program that points come into: the one with a key, or the
// default one.
func programFor(t *txn, key string) (*program, error) {
	if key == "" {
		return t.cfg.defaultProgram(), nil
	}
	if p := t.cfg.programKey(key); p != nil {
		return p, nil
	}
	var keys []string
	for _, p := range t.cfg.Programs {
		keys = append(keys, p.Key)
	}
	return nil, adminErrorf("no hay ningún programa %q; hay: %s", key, strings.Join(keys, ", "))
}

// identityOf normalizes a row's e-mail and phone. ok is false if one is at fault or both are
// absent: then nobody knows whose row it is.
func identityOf(t *txn, r *rowReader) (e enrolment, ok bool) {
	e.Email = readEmail(r.input, r.row.Email, "email")
	text, present := r.clean("phoneNumber", r.row.Phone, anyLength, codeInvalidField)
	e.Phone = phone(r.input, t.cfg, text, present, "phoneNumber")
	if r.isWrong("email", "phoneNumber") {
		return e, false
	}
	if e.Email == "" && e.Phone == "" {
		r.fail(newError(codeEmailOrPhoneRequired))
		return e, false
	}
	return e, true
}

// customerOfRow returns the customer with an e-mail or else a phone.
func customerOfRow(t *txn, e enrolment) (*customer, error) {
	c, err := t.customers.identify(kindEmail, e.Email)
	if err == nil && c == nil {
		c, err = t.customers.identify(kindPhone, e.Phone)
	}
	if err == nil && c == nil {
		err = newError(codeCustomerNotFound)
	}
	return c, err
}

// importCustomer imports a row. Unless samePerson is true, a row that may be of somebody
// else than the customer that has its contact is wrong, or gets a warning.
func importCustomer(t *txn, r *rowReader, into *program, samePerson bool) (o importOutcome, err error) {
	e, identified := identityOf(t, r)
	e.FirstName, _ = r.clean("firstName", r.row.FirstName, maxName, codeInvalidField)
	e.LastName, _ = r.clean("lastName", r.row.LastName, maxName, codeInvalidField)
	e.ExternalID, _ = r.clean("externalId", r.row.ExternalID, maxExternalID, codeInvalidField)
	e.BirthDate = birthDateOf(t, r)
	e.Marketing, e.Withdrawn = marketingOf(r), true
	if text := trimBlanks(r.row.MarketingAt); text != "" {
		e.MarketingAt = pastMoment(t, r.input, "marketingAt", text)
	}
	if text := trimBlanks(r.row.CreatedAt); text != "" {
		e.Since = pastMoment(t, r.input, "createdAt", text)
	}
	b := carriedOverIn(t, r, into)
	if !identified {
		return o, nil
	}
	known, err := t.customers.enrolled(e)
	if err != nil {
		return o, err
	}
	if known != nil && !samePerson {
		points := b.any() || r.isWrong("points", "historicPoints")
		if o, err = personDoubt(t, known, e, points); err != nil || len(o.Faults) > 0 {
			return o, err
		}
	}
	if err := o.warnDropped(t, r, known, e); err != nil {
		return o, err
	}
	c, err := t.customers.enrolAs(known, e)
	if errors.Is(err, newError(codeExternalIDTaken)) {
		r.fail(err)
		e.ExternalID = "" // nothing is written yet, and the points may be wrong, too
		c, err = t.customers.enrolAs(known, e)
	}
	if err == nil && known == nil {
		err = refuseMerged(t, e)
	}
	if err != nil {
		return o, err
	}
	if known == nil {
		o.Added, o.Number = true, c.Number
	}
	o.Opening, err = carryOverRow(t, r, c, b)
	return o, err
}

// warnDropped warns of what a row says and is not taken (contract §31): a second phone, and a birth
// date and a number other than the known customer's, which keeps its own. The number of a customer
// merged into it is its own, too.
func (o *importOutcome) warnDropped(t *txn, r *rowReader, known *customer, e enrolment) error {
	var dropped []string
	if known != nil && !e.BirthDate.agrees(known.BirthDate) {
		dropped = append(dropped, fmt.Sprintf("el cliente tiene otra fecha de nacimiento, %s, y la conserva", known.BirthDate))
	}
	if known != nil && e.ExternalID != "" && known.ExternalID != "" {
		all, err := t.merges.family(known)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(c *customer) bool { return c.ExternalID == e.ExternalID }) {
			dropped = append(dropped, fmt.Sprintf("el cliente tiene otro externalId, %s, y lo conserva", known.ExternalID))
		}
	}
	if other := trimBlanks(r.row.OtherPhone); other != "" {
		number, ok := contact.Phone(other, t.cfg.Organization.Profile.Country)
		if !ok || number != e.Phone {
			dropped = append(dropped, fmt.Sprintf("el otro teléfono, %s, es distinto y no se tomó", shownName(other)))
		}
	}
	if o.Warning.Text != "" {
		dropped = append(dropped, strings.TrimPrefix(o.Warning.Text, warned))
	}
	if len(dropped) > 0 {
		o.Warning.Text = warned + strings.Join(dropped, "; ")
	}
	return nil
}

// warned begins the text of a warning.
const warned = "aviso: "

// carryOverRow is carryOver for a row. If it fails, carryOverRow tries the points and the
// historic points separately, so that the row gets the faults of both.
func carryOverRow(t *txn, r *rowReader, c *customer, b carriedOver) (given decimal, err error) {
	given, err = t.points.carryOver(c, b)
	if fault, ok := errors.AsType[*apiError](err); !ok || fault.field == "" {
		return given, err
	}
	points, historic := b, b
	points.historic, historic.points = nil, nil
	for _, half := range []carriedOver{points, historic} {
		if _, err := t.points.carryOver(c, half); r.take(err) != nil {
			return 0, err
		}
	}
	return 0, err
}

func marketingOf(r *rowReader) consentAnswer {
	switch fold.Text(trimBlanks(r.row.Marketing)) {
	case "", "unknown":
		return consentUnknown
	case "si", "s", "yes", "y", "true", "verdadero", "1", "x", "acepta", "subscribed", "suscrito":
		return consentGiven
	case "no", "n", "false", "falso", "0", "unsubscribed", "no suscrito":
		return consentRefused
	}
	r.invalid("marketing", "debe ser sí o no")
	return consentUnknown
}

func birthDateOf(t *txn, r *rowReader) birthDate {
	text, present := r.clean("birthDate", r.row.BirthDate, anyLength, codeInvalidField)
	if !present {
		return 0
	}
	b, ok := parseBirthDate(text)
	switch {
	case !ok:
		r.invalid("birthDate", notBirthDate)
	case b.after(t.dayOf(t.now)):
		r.invalid("birthDate", notPast)
	default:
		return b
	}
	return 0
}

// personDoubt returns a fault or a warning if a row is not certainly of the customer that its
// e-mail or phone leads to (contract §19). points says that the row brings some: they would
// be gone, or be another's.
func personDoubt(t *txn, c *customer, e enrolment, points bool) (o importOutcome, err error) {
	d, err := t.customers.doubt(c, e)
	if err != nil {
		return o, err
	}
	what := "el email"
	if e.Phone != "" && e.Phone == c.Phone {
		what = "el teléfono"
	}
	named := ""
	if name := c.shortName(); name != "" {
		named = ": " + name
	}
	of := rowFault{Number: c.Number, ExternalID: c.ExternalID}
	switch {
	case d == otherContact, d == otherName && points:
		of.Text = what + " ya es de otra persona" + named
		o.Faults = []rowFault{of}
	case d == otherName && (e.Email == "" || e.Phone == ""):
		of.Text = warned + what + " es de un cliente con otro nombre, y se tomó por la misma persona" + named
		o.Warning = of
	}
	return o, nil
}

// refuseMerged refuses to make a customer of somebody who was merged: the survivor has the points
// of the first import.
func refuseMerged(t *txn, e enrolment) error {
	stub, err := t.merges.stubOf(e)
	if err != nil || stub == nil {
		return err
	}
	survivor, err := t.merges.owner(stub.ID)
	if err != nil {
		return err
	}
	fault := newError(codeCustomerMerged)
	fault.message = "ese email, teléfono o externalId era de un cliente que se fusionó con " + survivor.name()
	return fault
}

// carriedOverIn reads from a row what the customer carries over. An amount at fault is nil.
func carriedOverIn(t *txn, r *rowReader, into *program) carriedOver {
	b := carriedOver{program: into}
	amount := func(name, text string) *decimal {
		if trimBlanks(text) == "" {
			return nil
		}
		d := spelled(r.input, name, text)
		if d < 0 {
			r.invalid(name, "no puede ser menor a 0")
		}
		if r.isWrong(name) {
			return nil
		}
		return &d
	}
	b.points, b.historic = amount("points", r.row.Points), amount("historicPoints", r.row.Historic)
	b.expires = expiryOf(t, r)
	return b
}

// expiryOf reads until when the points of a row are there; 0 if it does not say.
func expiryOf(t *txn, r *rowReader) instant {
	switch text := trimBlanks(r.row.Expires); fold.Text(text) {
	case "":
	case "nunca", "never":
		return never
	default:
		if at, ok := parseMoment(text, t.cfg.zone, true); ok && at != 0 {
			return at
		}
		r.invalid("expiresAt", notDate)
	}
	return 0
}

// pastMoment reads a moment of a file that cannot be in the future.
func pastMoment(t *txn, in input, name, text string) instant {
	at, ok := parseMoment(trimBlanks(text), t.cfg.zone, false)
	switch {
	case !ok:
		in.invalid(name, notDate)
	case at <= 0:
		in.invalid(name, "no puede ser anterior a 1970")
	case at > t.now:
		in.invalid(name, notPast)
	default:
		return at
	}
	return 0
}

// Rows of files that give or take points (contract §23).

// importMovement gives or takes the points of a row, unless that was done before under its
// reference. Unless samePerson is true, a row whose other contact differs from the
// customer's is wrong.
func importMovement(t *txn, r *rowReader, into *program, samePerson bool) (o importOutcome, err error) {
	in := askedMovement{program: &into.ID}
	if in.reference, _ = r.clean("reference", r.row.Reference, maxReference, codeInvalidField); in.reference == "" {
		r.invalid("reference", "es requerido")
	}
	if in.amount = spelled(r.input, "points", r.row.Points); in.amount == 0 && !r.isWrong("points") {
		r.invalid("points", "no puede ser 0")
	}
	in.category = categoryBonus
	categories := addCategories
	if in.amount < 0 {
		in.debit, in.amount, in.category, categories = true, -in.amount, categoryAdjustment, deductCategories
	}
	if text := trimBlanks(r.row.Category); text != "" {
		in.category = categoryNamed(text)
		r.fail(checkCategory(in.category, categories))
	}
	in.comment, _ = r.clean("comment", r.row.Comment, maxComment, codeCommentTooLong)
	in.expires = expiryOf(t, r)
	if in.debit && in.expires != 0 {
		r.invalid("expiresAt", "solo vale con puntos que se dan")
	} else if in.expires != 0 && in.expires <= t.now {
		in.late = newError(codeExpiresAtInvalid).on("expiresAt")
	}
	w := whose{id: [2]string{"id", r.row.ID}, external: [2]string{"externalId", r.row.ExternalID}}
	c, err := w.customer(t, r)
	if c != nil && err == nil && !samePerson {
		o.Faults, err = w.doubts(t, r, c)
	}
	if c == nil || err != nil || r.err != nil || len(o.Faults) > 0 {
		return o, err
	}
	in.customer = c.ID
	_, known, err := moveAsked(t, &in)
	o.Added = err == nil && !known
	return o, err
}

// categoryWords are categories as people write them in Spanish, folded.
var categoryWords = map[string]string{
	"compra": "Purchase", "regalo": "Bonus", "bono": "Bonus", "recomendacion": "Referral", "campana": "Campaign", "lealtad": "Loyalty",
	"reembolso": "Refund", "intereses": "Interest", "ajuste": "Adjustment", "canje": "Redemption", "cuota": "Fee",
	"penalizacion": "Penalty", "intercambio": "Exchange",
}

// categoryNamed returns the category that a cell names, in English or Spanish, or the cell.
func categoryNamed(cell string) string {
	word := fold.Text(cell)
	for _, c := range allCategories {
		if word == fold.Text(c) {
			return c
		}
	}
	return cmp.Or(categoryWords[word], cell)
}

// A whose is how a row names its customer: by id, externalId, e-mail or phone. The first that is
// given finds the customer; the others must be that customer's. id and external are a column and
// its cell.
type whose struct {
	id, external [2]string
	contact      enrolment
	byNumber     bool // id or external is given
}

// customer returns the customer. It returns nil if the row has a fault there.
func (w *whose) customer(t *txn, r *rowReader) (c *customer, err error) {
	text, byID := r.clean(w.id[0], w.id[1], anyLength, codeInvalidField)
	externalID, byExternal := r.clean(w.external[0], w.external[1], maxExternalID, codeInvalidField)
	w.byNumber = byID || byExternal
	if contact := trimBlanks(r.row.Email) != "" || trimBlanks(r.row.Phone) != ""; contact || !w.byNumber {
		var sound bool
		if w.contact, sound = identityOf(t, r); !sound {
			return nil, nil
		}
	}
	if r.isWrong(w.id[0], w.external[0]) {
		return nil, nil
	}
	if byID {
		cust, _ := parseID(text)
		c, err = t.customers.get(cust)
	} else if byExternal {
		c, err = t.customers.identifyExternal(externalID)
		if err == nil && c == nil {
			err = newError(codeCustomerNotFound)
		}
	} else {
		c, err = customerOfRow(t, w.contact)
	}
	if err != nil {
		return nil, err
	}
	if byID && byExternal && c.ExternalID != externalID {
		r.invalid(w.external[0], "no es el del cliente")
		return nil, nil
	}
	return c, nil
}

// doubts are the faults of a row whose contacts may be somebody else's.
func (w *whose) doubts(t *txn, r *rowReader, c *customer) ([]rowFault, error) {
	if w.contact.Email == "" && w.contact.Phone == "" {
		return nil, nil
	}
	if w.contact.Email != "" && w.contact.Phone != "" { // perhaps of two customers
		if _, err := t.customers.enrolled(w.contact); err != nil {
			return nil, err
		}
	}
	if w.byNumber {
		d, err := t.customers.doubt(c, w.contact)
		if d != noDoubt {
			r.fail(invalidField("", "el email o el teléfono no es del cliente"))
		}
		return nil, err
	}
	o, err := personDoubt(t, c, w.contact, true)
	return o.Faults, err
}
