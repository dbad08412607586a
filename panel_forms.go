package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sello/internal/sheet"
)

// How a form of the panel becomes a request of the API. A form's controls are named like the API's
// fields. Two more are in every form that needs a member:
//
//	_org    the organization that the page showed: a member of two has tabs of both.
//	        Forms for everyone lack it: an invitation is of the organization it leads to
//	_token  made when the page is opened. The answer is kept under it, so that a double
//	        click, a reload or a second try after a lost connection does nothing more
//
// The token stands in the page's query, so that a browser that goes back shows the form
// that was sent.

// maxForm bounds a form, in bytes, unless it says otherwise.
const maxForm = 64 << 10

// mostDocument bounds the form of a whole document, in bytes.
const mostDocument = 1 << 20

// mostCarried bounds a member's form that carries another one along (panel.go), in bytes.
const mostCarried = mostDocument + maxForm

func (v *panelRequest) submit(f *panelForm) error {
	if err := v.receive(cmp.Or(f.most, maxForm)); err != nil {
		return err
	}
	if f.run != nil {
		if err := v.proved(f); err != nil {
			return err
		}
		return f.run(v)
	}
	if !isToken(v.token) {
		return newError(codeFormStale)
	}
	v.kept = true
	v.labels = f.labels
	v.chooseReading()
	if f.prepare != nil {
		f.prepare(v)
	}
	req, act := v.read(f)
	if len(v.faults) > 0 {
		return v.refused()
	}
	if _, review := v.posted.get(reviewField); review {
		return v.review(f, act, nil)
	}
	if !f.isAsReviewed(v.posted) {
		return v.review(f, act, newError(codeShownChanged))
	}
	given, err := v.commit(f, req, act)
	if errors.Is(err, newError(codeShownChanged)) {
		return v.review(f, act, newError(codeShownChanged))
	}
	if err != nil {
		v.faults = append(v.faults, allFaults(err)...)
		return v.refused()
	}
	if given.view != nil {
		v.page = f.shown
		return v.render(f.shown.template, given.view)
	}
	return v.redirect(given.to)
}

// receive checks where a form comes from and reads it.
func (v *panelRequest) receive(most int64) (err error) {
	if v.request.now, err = v.api.engine.momentToWrite(); err != nil {
		return err
	}
	if !v.fromPanel() {
		return newError(codeOtherOrigin)
	}
	if v.posted, err = readForm(v.ResponseWriter, v.r, most); err != nil {
		return err
	}
	v.token, _ = v.posted.get(tokenField)
	if org, _ := v.posted.get(orgField); v.need != everyone && v.cfg != nil && !v.member.locked && org != v.cfg.Organization.Slug {
		return newError(codeOtherOrganization)
	}
	return nil
}

// fromPanel reports whether a form comes from a page of the panel. Where the panel's address
// is known, the form's origin is that address to the letter: a name that leads to the same
// server, or another port of it, is another site.
func (v *panelRequest) fromPanel() bool {
	site, origin := v.r.Header.Get("Sec-Fetch-Site"), v.r.Header.Values("Origin")
	if own := v.panel.address.origin(); own != "" {
		return len(origin) == 1 && origin[0] == own && (site == "" || site == "same-origin")
	}
	return v.panel.protect.Check(v.r) == nil && (site != "" || len(origin) > 0)
}

// readForm reads the form that a browser sends, of at most so many bytes.
func readForm(w http.ResponseWriter, r *http.Request, most int64) (object, error) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/x-www-form-urlencoded" {
		return nil, newError(codeUnsupportedMediaType)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, newError(codeBodyTooLarge)
	}
	if err != nil {
		return nil, newError(codeBadRequest)
	}
	return parseForm(string(text))
}

// parseForm reads application/x-www-form-urlencoded: fields in UTF-8, each name once. Browsers
// end lines with CR LF, which is stored as LF.
func parseForm(text string) (fields object, err error) {
	fields, ok := parseURLEncoded(text)
	if _, twice := fields.duplicate(); !ok || twice {
		return nil, newError(codeBadRequest)
	}
	for i := range fields {
		fields[i].value = strings.ReplaceAll(fields[i].value, "\r\n", "\n")
	}
	return fields, nil
}

// read makes the API's request of a form, and lets its handler read it. What is wrong with
// the fields is added to the faults.
func (v *panelRequest) read(f *panelForm) (*request, action) {
	req := v.request
	req.Request = v.r
	body := v.body(f.members, "")
	req.fields = newFields(body)
	req.fields.beStrict() // tells all faults at once
	req.query = query{input{new(fault), sent{}}}
	req.body = appendObject(nil, body)
	if etag, ok := v.posted.get(etagField); ok {
		req.Request = v.r.Clone(v.r.Context())
		req.Request.Header.Set("If-Match", etag)
	}
	act := f.handle(&req)
	for _, in := range []input{req.fields.input, req.query.input} {
		if in.err != nil {
			all := []*apiError{publicError(in.err)}
			if in.strict != nil {
				all = in.strict.faults
			}
			v.faults = append(v.faults, all...)
		}
	}
	return &req, act
}

// body makes the members of a body of the fields whose names begin with a prefix.
func (v *panelRequest) body(members []formMember, prefix string) (body object) {
	for _, m := range members {
		value, _ := v.posted.get(prefix + m.name)
		literal := ""
		switch m.kind {
		case pathMember:
			literal = string(appendJSONString(nil, v.r.PathValue(cmp.Or(m.value, m.name))))
		case fixedMember:
			literal = string(appendJSONString(nil, m.value))
		case checkMember:
			literal = strconv.FormatBool(value != "")
		case amountMember:
			literal = v.amount(prefix+m.name, value)
		case listMember:
			literal = v.list(m)
		case madeMember:
			literal = m.make(v, prefix+m.name)
		default:
			if value = trimBlanks(value); value != "" {
				literal = string(appendJSONString(nil, value))
			} else if m.kind == patchMember {
				literal = "null"
			}
		}
		if m.must && literal == "" {
			v.faults = append(v.faults, newError(codeRequired).on(prefix+m.name))
		}
		if literal != "" {
			body = append(body, pair{m.name, literal})
		}
	}
	return body
}

// amount reads a number as people write it. What is no number stays a text, so that the API
// says what is wrong; what can be read in two ways is asked back.
func (v *panelRequest) amount(name, text string) (literal string) {
	if text = trimBlanks(text); text == "" {
		return ""
	}
	literal, both, ok := v.format().readAmount(text)
	switch {
	case ok:
		return literal
	case len(both) > 0:
		v.faults = append(v.faults, newError(codeAmountAmbiguous).on(name).with("readings", both))
		return both[0]
	}
	return string(appendJSONString(nil, text))
}

// chooseReading puts the reading that a button says in the place of the ambiguous amount. A
// literal that is none of the two readings is ignored.
func (v *panelRequest) chooseReading() {
	for _, button := range []string{readingField, reviewField} {
		name, literal, _ := strings.Cut(v.typedText(button), "=")
		if _, both, _ := v.format().readAmount(trimBlanks(v.typedText(name))); slices.Contains(both, literal) {
			v.drop(name)
			v.posted = append(v.posted, pair{name, literal})
		}
	}
	v.drop(readingField)
}

// maxRows bounds the rows of a list in a form.
const maxRows = 100

// list makes an array of the rows of a list. It renumbers them, so that faults name the rows
// as the page shows them.
func (v *panelRequest) list(m formMember) string {
	b, n := []byte{'['}, 0
	for i := range maxRows {
		from := fmt.Sprintf("%s[%d].", m.name, i)
		row := slices.Collect(func(yield func(pair) bool) {
			for _, p := range v.posted {
				if name, of := strings.CutPrefix(p.name, from); of && trimBlanks(p.value) != "" && !yield(pair{name, p.value}) {
					return
				}
			}
		})
		v.posted = slices.DeleteFunc(v.posted, func(p pair) bool { return strings.HasPrefix(p.name, from) })
		if len(row) == 0 {
			continue
		}
		to := fmt.Sprintf("%s[%d].", m.name, n)
		for _, p := range row {
			v.posted = append(v.posted, pair{to + p.name, p.value})
		}
		if n > 0 {
			b = append(b, ',')
		}
		b = appendObject(b, v.body(m.of, to))
		n++
	}
	if n == 0 {
		return ""
	}
	return string(append(b, ']'))
}

// appendObject appends a JSON object whose members' values are literals.
func appendObject(b []byte, o object) []byte {
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendJSONString(b, m.name), ':'), m.value...)
	}
	return append(b, '}')
}

// knownParam says on the page that a form leads to that the form did nothing: what it was to
// do had been done before.
const knownParam = "ya"

// doneParam says on the page that a form leads to that the form has just done what the page
// tells of.
const doneParam = "hecho"

// freshTime is for how long a page is that of what was just done, in milliseconds: later its
// address was kept, or is that of a browser's history.
const freshTime = 2 * 60 * 1000

// justDone reports whether what was done at a moment is what the form that led here did. A page
// that was opened in another way names nothing to take off or to hand over (contract §31).
func (v *panelRequest) justDone(at instant) bool {
	return v.param(doneParam) != "" && v.request.now-at <= freshTime
}

// afterDone is the address of a page that tells what was just done.
func afterDone(path string) string { return withQuery(path, []pair{{doneParam, "1"}}) }

// A givenAnswer is what came of a form: where it leads, or what is shown once.
type givenAnswer struct {
	to   string
	view any
}

// retry is the name that the answer to the form is kept under. Another form of the page has
// another one. A field that is empty counts as one that the form does not have: what the same page
// offers may have changed since.
func (v *panelRequest) retry() retryKey {
	parts := [][]byte{[]byte(v.r.URL.Path)}
	for _, p := range v.posted {
		if p.value != "" {
			parts = append(parts, []byte(p.name), []byte(p.value))
		}
	}
	return retryKey{
		name:    digest([]byte("panel"), v.member.user.ID[:], []byte(v.route), []byte(v.token)),
		request: digest(parts...),
	}
}

// commit runs the action of a form in one transaction, or finds where the form led before.
func (v *panelRequest) commit(f *panelForm, req *request, act action) (givenAnswer, error) {
	own, next := v.retry(), ""
	if f.forms {
		next = v.panel.random()
	}
	return write(v.context(), v.api.engine, v.member.org, v.request.now, func(t *txn) (givenAnswer, error) {
		if err := v.writesAs(t); err != nil {
			return givenAnswer{}, err
		}
		if err := t.inTime(); err != nil {
			return givenAnswer{}, err
		}
		if before, err := t.replays.find(own); err != nil || before != nil {
			return ledTo(t, own, before, err)
		}
		if err := v.guarded(t, f.need, f.guard); err != nil {
			return givenAnswer{}, err
		}
		if err := v.proved(f); err != nil {
			return givenAnswer{}, err
		}
		done, err := runOnce(t, req.retries, act) // looked up by the API's keys: the sale may have come that way before
		if err != nil {
			return givenAnswer{}, err
		}
		if !done.replayed && !f.isAsShown(v.posted, done.value) {
			return givenAnswer{}, newError(codeShownChanged)
		}
		made := madeID(done.body)
		if !done.replayed && f.action != "" {
			if err := t.audit.note(f.action, cmp.Or(v.r.PathValue(f.about), made), movedBy(done.value)); err != nil {
				return givenAnswer{}, err
			}
		}
		to := f.done(v, made)
		if done.replayed {
			to = withQuery(strings.TrimSuffix(to, afterDone("")), []pair{{knownParam, "1"}})
		}
		if next != "" {
			to = withToken(to, next)
		}
		if err := t.replays.keep([]retryKey{own}, http.StatusSeeOther, []byte(to)); err != nil {
			return givenAnswer{}, err
		}
		if f.shown != nil {
			return givenAnswer{to: to, view: done.value}, nil
		}
		return givenAnswer{to: to}, nil
	})
}

// movedBy is what the audit log keeps of points that were moved by hand: their number and their program.
func movedBy(value any) []change {
	moved := func(amount decimal, program id) []change {
		return []change{{"amount", nil, amount}, {"loyaltyProgramId", nil, program}}
	}
	switch shape := bodyIn(value).(type) {
	case movementShape:
		return moved(shape.Amount, shape.LoyaltyProgramID)
	case holdShape:
		return moved(shape.Amount, shape.LoyaltyProgramID)
	}
	return nil
}

// codeShownChanged says that the form's page showed something else than what would be done.
var codeShownChanged = errorCode{"shown_changed", http.StatusConflict, ""}

// A form that says what it would do is confirmed as it was shown, or nothing is done (contract §31).
// Its page has two digests in reviewedField: of the fields that were reviewed, and of what they
// would do. The first is compared when the form comes, the second in its transaction.

// postedDigest stands for the fields of a form, without blank ones and fields that every form has.
func postedDigest(posted object) string {
	var fields []string
	for _, p := range posted {
		if p.value != "" && !slices.Contains([]string{tokenField, orgField, reviewField, reviewedField}, p.name) {
			fields = append(fields, p.name+"\x00"+p.value)
		}
	}
	slices.Sort(fields)
	sum := sha256.Sum256([]byte(strings.Join(fields, "\x01")))
	return hex.EncodeToString(sum[:12])
}

// shownDigest stands for what the page of a form shows of what was done in its rehearsal.
func (f *panelForm) shownDigest(done any) string {
	text, err := json.Marshal(f.shows(bodyIn(done)))
	if err != nil { // no shape fails
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// shownOfPoints is what the page of points by hand shows of a movement.
func shownOfPoints(done any) any {
	m := done.(movementShape)
	return []any{m.LoyaltyProgramID, m.Amount, m.Balance}
}

// shownOfMerge is what the page of a merge shows of the customer that it makes.
func shownOfMerge(done any) any {
	m := done.(mergedShape)
	return []any{m.Name, m.Email, m.PhoneNumber, m.ExternalID, m.Programs, m.TransactionsCount, m.TotalSpent, m.Dropped}
}

// shownOfReturn is what the page of a return shows of it.
func shownOfReturn(done any) any {
	s := done.(saleShape)
	list := []any{s.TotalAmount, s.PointsReversed, s.PointsShortfall, s.AmountDue, s.Balance}
	for _, p := range s.Programs.Others {
		list = append(list, p.PointsReversed, p.PointsShortfall, p.Balance)
	}
	if y := s.Payment; y != nil {
		list = append(list, y.Points, y.Amount, y.PointsExpired)
	}
	for _, x := range s.Redemptions {
		list = append(list, x.ID, x.Status)
	}
	return list
}

// isAsReviewed reports whether a form has the fields that were reviewed, if they were.
func (f *panelForm) isAsReviewed(posted object) bool {
	sent, reviewed := posted.get(reviewedField)
	fields, _, _ := strings.Cut(sent, ".")
	return f.shows == nil || !reviewed && !f.proof || fields == postedDigest(posted)
}

// isAsShown reports whether a form does what its page showed, if it did.
func (f *panelForm) isAsShown(posted object, done any) bool {
	sent, reviewed := posted.get(reviewedField)
	_, shown, _ := strings.Cut(sent, ".")
	return f.shows == nil || !reviewed || shown == f.shownDigest(done)
}

// review rehearses the action of a form and shows the form's page with what it would do. If it was
// to be done and is not, why says so.
func (v *panelRequest) review(f *panelForm, act action, why *apiError) error {
	done, err := rehearse(v.context(), v.api.engine, v.member.org, v.request.now, func(t *txn) (any, error) {
		if err := v.writesAs(t); err != nil {
			return nil, err
		}
		if err := v.guarded(t, f.need, f.guard); err != nil {
			return nil, err
		}
		if err := t.inTime(); err != nil {
			return nil, err
		}
		return act(t)
	})
	if err != nil {
		v.faults = append(v.faults, allFaults(err)...)
		return v.refused()
	}
	v.reviewed = bodyIn(done)
	v.drop(reviewField)
	if f.shows != nil {
		v.confirms = postedDigest(v.posted) + "." + f.shownDigest(done)
	}
	if why != nil {
		v.faults = append(v.faults, why)
		return v.refused()
	}
	return v.showAgain()
}

// guarded checks what a member may do who has a permission in part.
func (v *panelRequest) guarded(t *txn, need permission, guard func(*panelRequest, *txn) error) error {
	if guard == nil || v.member.role.may(need) == grantAll {
		return nil
	}
	return guard(v, t)
}

// codePasswordRequired asks for the password once more.
var codePasswordRequired = errorCode{"password_required", http.StatusForbidden, ""}

// proved returns an error if a form needs the password and it was not given lately.
func (v *panelRequest) proved(f *panelForm) error {
	if f.proof && !v.member.hasProved(v.request.now) {
		return newError(codePasswordRequired)
	}
	return nil
}

// ledTo returns where the form led when it came before. If it came with other fields, the
// error says where those led.
func ledTo(t *txn, own retryKey, before *replay, err error) (givenAnswer, error) {
	if errors.Is(err, newError(codeIdempotencyKeyReused)) {
		own.request = own.name // whatever the fields were
		if before, err = t.replays.find(own); err == nil && before != nil {
			err = newError(codeFormUsed).with("to", string(before.Body))
		}
	}
	if err != nil {
		return givenAnswer{}, err
	}
	return givenAnswer{to: string(before.Body)}, nil
}

// change runs what a form of the member's own does in a transaction of its organization.
func (v *panelRequest) change(fn func(*txn) error) error {
	_, err := write(v.context(), v.api.engine, v.member.org, v.request.now, func(t *txn) (any, error) {
		if err := v.writesAs(t); err != nil {
			return nil, err
		}
		return nil, fn(t)
	})
	return err
}

// madeID is the id in an answer; "" without.
func madeID(body []byte) string {
	var made struct {
		ID string `json:"id"`
	}
	json.Unmarshal(body, &made) // an answer without an object has no id
	return made.ID
}

// writesAs names the member as who writes. The form may have taken long to come: it fails if
// the member may no longer send it.
func (v *panelRequest) writesAs(t *txn) error {
	now, err := memberByToken(t.Tx, v.panel.address.sentToken(v.r), t.now, v.panel.sessionLimits)
	if err != nil {
		return err
	}
	if v.member = now; now != nil && now.org != t.org {
		return newError(codeOtherOrganization)
	}
	if now != nil {
		if now.lacksFactor, err = lacksFactor(t.Tx, now, t.cfg); err != nil {
			return err
		}
	}
	t.by, t.requestID = creator{Type: byUser}, v.auditID()
	if now != nil {
		t.by.ID = now.user.ID
	}
	return v.allow()
}

// blankOr makes a member of a body that is null where the field is blank. Where the form does not
// have the field the member is left out.
func blankOr(literal func(v *panelRequest, name, text string) string) func(*panelRequest, string) string {
	return func(v *panelRequest, name string) string {
		text, sent := v.posted.get(name)
		if text = trimBlanks(text); text != "" {
			return literal(v, name, text)
		}
		if sent {
			return "null"
		}
		return ""
	}
}

// birthDateLiteral is a date of birth as the API has it: people put nothing where the year would be, or
// write 14/05/1990.
func birthDateLiteral(_ *panelRequest, _, text string) string {
	if strings.Contains(text, "/") {
		text, _ = sheet.DateForm{Order: sheet.DayMonth}.Birthday(text)
	}
	if _, ok := parseBirthDate(noYear + text); ok {
		text = noYear + text
	}
	return string(appendJSONString(nil, text))
}

// boolLiteral is true for a box that is checked, and for a choice what it says.
func boolLiteral(_ *panelRequest, _, text string) string { return strconv.FormatBool(text != "false") }
