package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sello/internal/contact"
)

// Readers of input that the API and imports share, and batches: requests with many rows. Each
// reader records a fault in the input that it reads; the first fault is the one reported.

const (
	defaultLimit = 20
	maxLimit     = 100
	maxPage      = 1<<53 - 1 // the largest integer JavaScript holds exactly; far beyond any list
)

// page reads page and limit. A limit above the maximum is served as the
// maximum (contract §2).
func (r *request) page() page {
	r.large = true
	number, ok := r.whole("page", 1, 1)
	if !ok {
		r.query.fail(newError(codePageInvalid).on("page"))
	}
	return page{number, r.limit()}
}

// limit reads limit, as page does.
func (r *request) limit() uint64 {
	limit, ok := r.whole("limit", 1, defaultLimit)
	if !ok {
		r.query.fail(newError(codeLimitInvalid).on("limit"))
	}
	return min(limit, maxLimit)
}

// whole reads a parameter that is a whole number, least or more; it is usual if it is absent.
// A number above maxPage is read as maxPage.
func (r *request) whole(name string, least int64, usual uint64) (n uint64, ok bool) {
	text, given := r.query.text(name, 100)
	if !given {
		return usual, true
	}
	// A number too large for int64 becomes the largest int64.
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || v < least {
		return usual, false
	}
	return min(uint64(v), maxPage), true
}

// choice returns text if it is one of words, and the first of words if the field or
// parameter is absent. Any other text is a fault with the given code.
func choice(in input, text string, present bool, name string, code errorCode, words []string) string {
	if !present {
		return words[0]
	}
	if slices.Contains(words, text) {
		return text
	}
	if code == codeInvalidField {
		named := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
		in.invalid(name, "debe ser %s", anyOf(named))
	} else {
		in.fail(newError(code).on(name))
	}
	return words[0]
}

// span reads the parameters from and to, which bound a list. An absent one leaves it open.
// A from after to is a fault (contract §19).
func (r *request) span() (from, to instant) {
	from, to = r.moment("from", 0, false), r.moment("to", never, true)
	if from > to {
		r.query.invalid("from", "no puede ser posterior a to")
	}
	return from, to
}

// moment reads a parameter that is a moment, or returns otherwise if it is absent or wrong.
func (r *request) moment(name string, otherwise instant, endOfDay bool) instant {
	text, present := r.query.text(name, 100)
	if !present {
		return otherwise
	}
	at, ok := parseMoment(text, r.cfg.zone, endOfDay)
	if !ok {
		r.query.invalid(name, "debe ser una fecha ISO 8601")
		return otherwise
	}
	return at
}

// accountAsked is the customer of the path, and the program that the request names, if it does.
func (r *request) accountAsked(t *txn, named *id) (*customer, *program, error) {
	c, err := t.customers.get(r.pathID("customerId"))
	if err != nil {
		return nil, nil, err
	}
	p, err := t.programOf(c, named)
	return c, p, err
}

// asOf reads the moment that a balance is asked for. A date is the last millisecond of that day,
// before what lapses at it (contract §31).
func (r *request) asOf() (at instant, ofDay, asked bool) {
	text, asked := r.query.text("asOf", 100)
	if !asked {
		return 0, false, false
	}
	at, ok := parseMoment(text, r.cfg.zone, true)
	if !ok {
		r.query.fail(newError(codeAsOfInvalid).on("asOf"))
	}
	return at, len(text) == len(time.DateOnly), ok
}

// flag reads a parameter that is true or false. An absent one is false.
func (r *request) flag(name string) bool {
	text, _ := r.query.text(name, 10)
	if text != "" && text != "true" && text != "false" {
		r.query.invalid(name, "debe ser %s", anyOf{"true", "false"})
	}
	return text == "true"
}

// mayRehearse says that the route has a dry run, and reads whether this is one.
func (r *request) mayRehearse() { r.rehearses, r.dryRun = true, r.flag("dryRun") }

// above0 reads a required number above zero.
func (r *request) above0(name string, code errorCode) decimal {
	d, present := r.fields.number(name)
	if !present || d <= 0 {
		r.fields.fail(newError(code).on(name))
	}
	return d
}

func (r *request) comment() string {
	text, _ := r.fields.textOr("comment", maxComment, codeCommentTooLong)
	return text
}

// checkCategory returns category_invalid unless category is one of allowed.
func checkCategory(category string, allowed []string) error {
	if slices.Contains(allowed, category) {
		return nil
	}
	return newError(codeCategoryInvalid).on("category").with("allowed", allowed)
}

// source is where a sale comes from that the request registers.
func (r *request) source() string {
	if r.user != nil {
		return sourcePanel
	}
	return sourceAPI
}

// wholeField reads a field that is a whole number; it is usual if it is absent.
func (r *request) wholeField(name string, usual, least, most int) int {
	d, given := r.fields.number(name)
	if !given {
		return usual
	}
	n := int(d / decimalOne)
	if decimalOf(n) != d || n < least || n > most {
		r.fields.invalid(name, "debe ser un entero entre %d y %d", least, most)
		return usual
	}
	return n
}

// maxProof bounds a proof, in characters; maxWaived why none was asked for.
const (
	maxProof  = 40
	maxWaived = 200
)

// mayWaive reports whether a member may spend a customer's points without the card.
func (m *member) mayWaive() bool { return m.role.may("redemptions:cancel") == grantAll }

// proof reads what proves that the customer is there, in the object that spends the points. A form of
// the panel may say why none is asked for.
func (r *request) proof() (given givenProof) {
	given.Text, _ = r.fields.text("proof", maxProof)
	if r.user != nil {
		if given.Waived, _ = r.fields.text("noCard", maxWaived); given.Waived != "" && !r.user.mayWaive() {
			r.fields.invalid("noCard", "solo lo dice quien puede deshacer canjes")
		}
	}
	return given
}

// requiredID reads a required id of the body. The transaction checks that something has
// that id.
func (r *request) requiredID(name string, code errorCode) id {
	u, present := r.fields.id(name)
	if !present {
		r.fields.fail(newError(code).on(name))
	}
	return u
}

// requiredText reads a required text of the body, which the transaction looks for.
func (r *request) requiredText(name string) string {
	text, present := r.fields.text(name, anyLength)
	if !present {
		r.fields.invalid(name, "es requerido")
	}
	return text
}

// readEmail and phone return the normalized text, "" if it is absent or invalid.

// readEmail reads text as it was sent. contact.Email trims it as the HTML standard does, so that a
// carriage return at an end is no control character of it, and other blanks are not trimmed.
func readEmail(in input, text, name string) string {
	text = contact.TrimEmail(text)
	if _, present := in.clean(name, text, anyLength, codeInvalidField); !present {
		return ""
	}
	address, ok := contact.Email(text)
	if !ok {
		in.fail(newError(codeEmailInvalid).on(name))
	}
	return address
}

func phone(in input, cfg *config, text string, present bool, name string) string {
	if !present {
		return ""
	}
	number, ok := contact.Phone(text, cfg.Organization.Profile.Country)
	if !ok {
		in.fail(newError(codePhoneInvalid).on(name))
	}
	return number
}

// parsedBirthDate reads a date of birth; 0 if nothing was sent.
func parsedBirthDate(in input, text string, present bool, name string, today day) birthDate {
	if !present {
		return 0
	}
	b, ok := parseBirthDate(text)
	if !ok || b.after(today) {
		in.fail(newError(codeBirthDateInvalid).on(name))
		return 0
	}
	return b
}

// marketing reads whether a customer wants notices; null is no answer.
func (r *request) marketing() consentAnswer {
	yes := r.fields.flag("marketing")
	if r.fields.literal("marketing") == "" {
		return consentUnknown
	}
	return answerOf(yes)
}

// attributes reads the attributes of a customer. A null or blank attribute has no value.
func (r *request) attributes() []attribute {
	members, ok := r.fields.members("attributes")
	list := make([]attribute, len(members))
	for i, m := range members {
		var valid bool
		list[i], valid = readAttribute(m)
		ok = ok && valid
	}
	if !ok {
		r.fields.fail(newError(codeAttributesInvalid).on("attributes"))
		return nil
	}
	return list
}

func (r *request) labels(saleType string) saleLabels {
	members, ok := r.fields.members("labels")
	switch {
	case !ok:
		r.fields.fail(newError(codeLabelsInvalid).on("labels"))
	case saleType == typeReturn && len(members) > 0:
		r.fields.invalid("labels", "solo vale en una compra")
	default:
		list, err := labelsIn(members)
		r.fields.fail(err)
		return list
	}
	return nil
}

func readAttribute(m pair) (a attribute, ok bool) {
	a.Name = m.name
	if !isAttributeName(m.name) {
		return a, false
	}
	switch m.value {
	case "null":
		return a, true
	case "true", "false":
		a.Value = m.value
		return a, true
	}
	text, _, isText := cutString(m.value)
	if !isText {
		a.Value, ok = attributeNumber(m.value)
		return a, ok
	}
	text = trimBlanks(text)
	if utf8.RuneCountInString(text) > maxAttributeText || strings.ContainsFunc(text, forbidden) {
		return a, false
	}
	if text != "" {
		a.Value = string(appendJSONString(nil, text))
	}
	return a, true
}

// spelled reads a number from the text of a file's cell.
func spelled(in input, name, text string) decimal {
	d, err := parseDecimal(trimBlanks(text))
	switch {
	case errors.Is(err, errTooPrecise):
		in.fail(newError(codeTooPrecise).on(name))
	case errors.Is(err, errTooLarge):
		in.fail(newError(codeTooLarge).on(name))
	case err != nil:
		in.invalid(name, "debe ser un número")
	}
	return d
}

// Batches: many rows in one request. Each row is done whole or not at all.

const maxBatch = 100

type batchRow[T any] struct {
	in    T
	actor string
	fault error // of its fields
}

// readBatch reads the list of a batch by calling one with each row's own request and its JSON. A
// fault of a row is kept in the row. The rows count as requests of the key.
func readBatch[T any](r *request, list string, one func(row *request, literal string) T) []batchRow[T] {
	elements := r.batchElements(list)
	rows := make([]batchRow[T], len(elements))
	for i, element := range elements {
		literal := element.value
		own := r.ofRow(literal)
		if literal[0] != '{' {
			own.fields.invalid(fmt.Sprintf("%s[%d]", list, i), "debe ser un objeto")
		} else {
			rows[i].in = one(own, literal)
			rows[i].actor = own.rowActor()
		}
		rows[i].fault = own.firstFault(maxRowFaults)
	}
	r.more = int32(max(len(rows)-1, 0))
	return rows
}

func (r *request) batchElements(list string) []pair {
	literal := r.fields.literal(list)
	if literal != "" && literal[0] != '[' {
		r.fields.invalid(list, "debe ser una lista")
		return nil
	}
	p := splitter{left: len(literal)}
	if literal != "" {
		p.cutMembers(literal, 1) // parseObjectOf has found the array valid
	}
	if n := len(p.stack); n == 0 || n > maxBatch {
		r.fields.invalid(list, "debe tener de 1 a %d elementos", maxBatch)
		return nil
	} else if most := r.key.leastLimit(); n > most {
		r.fields.invalid(list, "no puede superar los %d elementos, el límite de solicitudes de la clave", most)
		return nil
	}
	return p.stack
}

// ofRow returns the request that a row of a batch is.
func (r *request) ofRow(literal string) *request {
	members := splitter{left: len(literal)}
	if literal[0] == '{' {
		members.cutMembers(literal, 1)
	}
	one := &request{caller: r.caller, now: r.now, strict: r.strict, fields: newFields(members.stack)}
	if r.strict {
		one.fields.beStrict()
	}
	return one
}

// rowActor reads who made a row of a batch; "" for whom the request names.
func (r *request) rowActor() string {
	text, _ := r.fields.text("actor", maxActor)
	if strings.ContainsFunc(text, unicode.IsControl) {
		r.fields.invalid("actor", "contiene caracteres no permitidos")
	}
	return text
}

// eachOfBatch does each row of a batch by calling one, and returns the results; failed makes the
// result of an error for clients. A row sees what the rows before it did.
func eachOfBatch[T, R any](t *txn, rows []batchRow[T], one func(*batchRow[T]) (R, error), failed func(status int, e *errorBody) R) ([]R, error) {
	results := make([]R, len(rows))
	err := t.eachRow(len(rows), func(i int) (keep bool, err error) {
		row := &rows[i]
		if row.actor != "" {
			t.by.Actor = row.actor
		}
		err = t.seals.separately(func() (err error) {
			results[i], err = one(row)
			return err
		})
		if err == nil {
			return true, nil
		}
		e := publicError(err)
		if e.code.status >= http.StatusInternalServerError {
			return false, err
		}
		results[i] = failed(e.code.status, new(e.body(unmarked(t.requestID))))
		return false, nil
	})
	return results, err
}

// appendRow begins the result of a row of a batch, which has the value of member next.
func appendRow(b []byte, status int, member string) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(status), 10)
	return append(append(append(b, `,"`...), member...), `":`...)
}

func appendFailedRow(b []byte, status int, e *errorBody) []byte {
	text, _ := encode(e) // texts and figures, which cannot fail
	return append(append(appendRow(b, status, "error"), bytes.TrimSpace(text)...), '}')
}
