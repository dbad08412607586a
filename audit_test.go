package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/blockset"
)

// audited returns the entries that a filter chooses as lines, oldest first.
func (s *shop) audited(f auditFilter) (lines []string) {
	s.Helper()
	if f.to == 0 {
		f.to = never
	}
	entries := ask(s, func(t *txn) ([]*auditEntry, error) {
		list, _, err := t.audit.entries(f, page{1, 1 << 20})
		return list, err
	})
	for _, e := range slices.Backward(entries) {
		changes, err := encode(append([]auditChange{}, e.Changes...))
		s.ok(err)
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.By.Type, e.By.Actor, e.Action, bytes.TrimSpace(changes)))
	}
	return lines
}

// TestAudited: each change has its entry, and what changes nothing has none.
func TestAudited(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":30}]`})
	a, ctx := s.admin(), withOperator(t.Context(), "luis")
	entry := func(reason, want string, subject any) {
		t.Helper()
		all := s.audited(auditFilter{})
		if want == "" {
			if len(all) > 0 {
				t.Errorf("%s: %s", reason, all)
			}
		} else if len(all) == 0 || all[len(all)-1] != want {
			t.Errorf("%s: %s, want %s", reason, all, want)
		} else if of := s.audited(auditFilter{subject: fmt.Sprint(subject)}); subject != "" && (len(of) == 0 || of[len(of)-1] != want) {
			t.Errorf("%s: not found by its subject", reason)
		}
	}
	count := func() uint64 {
		return ask(s, func(t *txn) (uint64, error) { n, err := t.count(); return n.Audit, err })
	}
	none := func(reason string, fn func()) {
		t.Helper()
		before := count()
		if fn(); count() != before {
			t.Errorf("%s: %s", reason, s.audited(auditFilter{}))
		}
	}
	org := ask(s, func(t *txn) (id, error) { return t.cfg.ID, nil })

	document := bytes.Replace(setup{also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":30}]`}.document(), []byte("Café Luna"), []byte("Café <Sol> & Mar"), 1)
	none("a dry run", func() {
		_, err := a.apply(ctx, applyRequest{document, true})
		s.ok(err)
	})
	_, err := a.apply(ctx, applyRequest{document, false})
	s.ok(err)
	entry("a document", `Command luis configuration.applied [{"field":"organization.name","before":"Café Luna","after":"Café <Sol> & Mar"}]`, org)
	none("the same document", func() {
		_, err := a.apply(ctx, applyRequest{document, false})
		s.ok(err)
	})

	k, err := a.createKey(ctx, keyRequest{Org: "cafe-luna", Name: "Caja", Scopes: []string{"points:write"}, MaxPointsPerDay: dec("12.5")})
	s.ok(err)
	entry("a key", `Command luis key.created [{"field":"name","before":null,"after":"Caja"},{"field":"scopes","before":null,"after":["points:write"]},{"field":"rateLimit","before":null,"after":300},{"field":"maxPointsPerDay","before":null,"after":12.5}]`, k.ID)
	change := keyChange{keyRequest{Org: "cafe-luna", RateLimit: 5}, k.ID.String(), []string{"rateLimit", "maxPointsPerDay"}}
	_, err = a.changeKey(ctx, change)
	s.ok(err)
	entry("a key changed", `Command luis key.changed [{"field":"rateLimit","before":300,"after":5},{"field":"maxPointsPerDay","before":12.5,"after":null}]`, k.ID)
	none("changed to what it is", func() { _, err := a.changeKey(ctx, change); s.ok(err) })
	next, err := a.rotateKey(ctx, rotateRequest{"cafe-luna", k.ID.String(), time.Hour})
	s.ok(err)
	entry("the key in its place", `Command luis key.created [{"field":"name","before":null,"after":"Caja"},{"field":"scopes","before":null,"after":["points:write"]},{"field":"rateLimit","before":null,"after":5},{"field":"rotatedFrom","before":null,"after":"`+k.ID.String()+`"}]`, next.ID)
	if got, want := s.audited(auditFilter{action: auditKeyRotated, subject: k.ID.String()}), `Command luis key.rotated [{"field":"expiresAt","before":null,"after":"2026-03-02T11:00:00.000Z"},{"field":"rotatedTo","before":null,"after":"`+next.ID.String()+`"}]`; len(got) != 1 || got[0] != want {
		t.Errorf("a key rotated: %s, want %s", got, want)
	}
	_, err = a.revokeKey(ctx, revokeRequest{"cafe-luna", next.ID.String()})
	s.ok(err)
	entry("a key revoked", `Command luis key.revoked [{"field":"revokedAt","before":null,"after":"2026-03-02T10:00:00.000Z"}]`, next.ID)
	none("revoked again", func() { _, err := a.revokeKey(ctx, revokeRequest{"cafe-luna", next.ID.String()}); s.ok(err) })

	var ana id
	none("a new customer", func() { ana = s.customer("ana") })
	fill := func() {
		must(s, func(t *txn) (any, error) {
			_, _, err := t.customers.enrol(enrolment{FirstName: "Otra", LastName: "Luna", Email: "ana@example.com", Phone: "+525512345678"})
			return nil, err
		})
	}
	fill()
	entry("a customer filled in", `System  customer.updated [{"field":"lastName","before":null,"after":null},{"field":"phoneNumber","before":null,"after":null}]`, ana)
	none("filled in already", fill)
	none("points and a redemption", func() {
		s.add(ana, "100", never)
		_, err := s.redeem(ana, "r")
		s.ok(err)
	})
	x, err := s.redeem(ana, "r")
	s.ok(err)
	_, err = s.cancel(x)
	s.ok(err)
	entry("a redemption cancelled", `System  redemption.cancelled [{"field":"status","before":"Completed","after":"Cancelled"}]`, x.ID)
	none("cancelled already", func() { s.cancel(x) })

	s.pass(-time.Hour)
	_, err = a.acceptClock(ctx, struct{}{})
	s.ok(err)
	entry("the clock", `Command luis clock.accepted [{"field":"latest","before":"2026-03-02T10:00:00.000Z","after":"2026-03-02T09:00:00.000Z"}]`, "")
}

// TestClockInEveryLog: an accepted clock is told in the log of each organization.
func TestClockInEveryLog(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.apply(bytes.Replace(setup{}.document(), []byte("cafe-luna"), []byte("tienda"), 1))
	_, err := s.admin().acceptClock(withOperator(t.Context(), "luis"), struct{}{})
	s.ok(err)
	for s.org = 1; s.org <= 2; s.org++ {
		if got := s.audited(auditFilter{action: auditClockAccepted, actor: "luis"}); len(got) != 1 {
			t.Errorf("organization %d has %s", s.org, got)
		}
	}
	s.org = 1
}

// TestAuditOfRequests: an entry says who used which key, and in which request.
func TestAuditOfRequests(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	c := s.counter()
	k, text := s.newKey(keyRequest{})
	if status, answer := c.ask(text, "POST", "/customers", `{"email":"ana@example.com"}`); status != 201 {
		t.Fatal(status, answer)
	}
	for range 2 { // the second is a replay
		status, answer := c.ask(text, "POST", "/customers", `{"email":"ana@example.com","phoneNumber":"5512345678","firstName":"Ana"}`,
			"X-Actor", "caja-2/Luis", "X-Request-Id", "req-7", "Idempotency-Key", "k-1")
		if status != 200 {
			t.Fatal(status, answer)
		}
	}
	status, answer := c.ask(text, "GET", "/audit?actor=caja-2/Luis", "")
	got, err := json.Marshal(answer)
	s.ok(err)
	entry := answer["data"].([]any)[0].(map[string]any)
	want := fmt.Sprintf(`{"action":"customer.updated","actor":{"actor":"caja-2/Luis","id":"%s","name":"test","type":"Key"},"at":"2026-03-02T10:00:00.000Z",`+
		`"changes":[{"after":null,"before":null,"field":"firstName"},{"after":null,"before":null,"field":"phoneNumber"}],"requestId":"client:req-7","seq":3,"source":"Api","subject":"%s"}`, k.ID, entry["subject"])
	if line, _ := json.Marshal(entry); status != 200 || string(line) != want || !strings.Contains(string(got), `"total":1`) {
		t.Errorf("%d %s, want one entry %s", status, got, want)
	}
	// No entry holds what is secret or personal.
	for _, e := range s.entries() {
		for _, secret := range []string{text, text[len(keyPrefix):], "ana@example.com", "+525512345678", "Ana"} {
			if (e.Key[0] == 'A' || e.Key[0] == 'B') && bytes.Contains(e.Value, []byte(secret)) {
				t.Errorf("entry %x holds %s", e.Key, secret)
			}
		}
	}
}

// TestAuditEntries holds the list against all entries, gone through one by one.
func TestAuditEntries(t *testing.T) {
	t.Parallel()
	histories(t, 8, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{})
		actors, actions, subjects := []string{"", "luis", (id{7}).String()}, []string{"key.created", "key.changed", auditSessionStarted, auditSessionEnded}, []string{"", "uno", "dos"}
		for range 20 {
			s.pass(time.Duration(rnd.Int64N(int64(oneDay))))
			if rnd.IntN(4) == 0 {
				s.pass(-time.Duration(rnd.Int64N(int64(9 * oneDay))))
				_, err := s.admin().acceptClock(t.Context(), struct{}{})
				s.ok(err)
			}
			var plan []auditEntry
			for range rnd.IntN(150) {
				by := creator{pick(rnd, byKey, byCommand), pick(rnd, id{}, id{7}), pick(rnd, actors...)}
				plan = append(plan, auditEntry{By: by, Action: pick(rnd, actions...), Subject: pick(rnd, subjects...)})
			}
			must(s, func(t *txn) (any, error) {
				for _, e := range plan {
					t.by = e.By
					if err := t.audit.note(e.Action, e.Subject, nil); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
		}
		all := ask(s, func(t *txn) ([]*auditEntry, error) {
			n, err := t.count()
			list := make([]*auditEntry, n.Audit)
			for i := range list {
				if err == nil {
					list[i], err = t.audit.entry(n.Audit - uint64(i))
				}
			}
			return list, err
		})
		for range 200 {
			f := auditFilter{to: never, before: pick(rnd, 0, rnd.Uint64N(uint64(len(all))+2))}
			moment := func() instant { return all[rnd.IntN(len(all))].At + instant(rnd.IntN(3)-1) }
			if rnd.IntN(2) == 0 {
				f.from = moment()
			}
			if rnd.IntN(2) == 0 {
				f.to = moment()
			}
			f.actor, f.action, f.subject = pick(rnd, append(actors, "nobody")...), pick(rnd, append(actions, "", "")...), pick(rnd, subjects...)
			f.kind = pick(rnd, auditKinds...)
			p := page{rnd.Uint64N(5) + 1, rnd.Uint64N(40) + 1}
			var want []uint64
			total := uint64(0)
			for _, e := range all {
				if e.At < f.from || e.At > f.to || f.before > 0 && e.Seq >= f.before || f.action != "" && e.Action != f.action || f.kind != "" && (f.kind == auditKindSession) != strings.HasPrefix(e.Action, "session.") ||
					f.subject != "" && e.Subject != f.subject || f.actor != "" && e.By.Actor != f.actor && (e.By.ID == id{} || e.By.ID.String() != f.actor) {
					continue
				}
				if total++; total > p.skip() && uint64(len(want)) < p.limit {
					want = append(want, e.Seq)
				}
			}
			type found struct {
				seqs  []uint64
				total uint64
			}
			got := ask(s, func(t *txn) (found, error) {
				list, total, err := t.audit.entries(f, p)
				got := found{total: total}
				for _, e := range list {
					got.seqs = append(got.seqs, e.Seq)
				}
				return got, err
			})
			if !slices.Equal(got.seqs, want) || got.total != total {
				t.Fatalf("%+v, page %+v: %v of %d, want %v of %d", f, p, got.seqs, got.total, want, total)
			}
		}
	})
}

// TestAuditOfLogIns: in a log that is nearly all log-ins the list of changes reads the sets of
// log-ins, four a block of 1,024 entries, and no entry but those that it shows.
func TestAuditOfLogIns(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const logIns = 20_000
	must(s, func(t *txn) (any, error) {
		for i := range logIns {
			if err := t.audit.note(auditSessionStarted, (id{7}).String(), nil); err != nil {
				return nil, err
			}
			if i == 5 {
				if err := t.audit.note(auditKeyCreated, "first", nil); err != nil {
					return nil, err
				}
			}
		}
		return nil, t.audit.note(auditKeyChanged, "last", nil)
	})
	for _, test := range []struct {
		kind  string
		total uint64
		most  int // entries that are read
	}{{auditKindChange, 3, 3}, {auditKindSession, logIns, 20}} {
		var counted *countedTx
		list := ask(s, func(x *txn) ([]*auditEntry, error) {
			counted = &countedTx{Tx: x.Tx}
			x.Tx = counted
			list, total, err := x.audit.entries(auditFilter{to: never, kind: test.kind}, page{1, 20})
			if total != test.total {
				t.Errorf("%s: %d, want %d", test.kind, total, test.total)
			}
			return list, err
		})
		if len(list) != int(min(test.total, 20)) || test.kind == auditKindChange && (list[0].Subject != "last" || list[1].Subject != "first") {
			t.Errorf("%s: %d entries", test.kind, len(list))
		}
		if blocks := logIns/blockset.Block + 1; counted.gets['A'] > test.most || counted.gets['B'] > 4*blocks || counted.scanned > 0 {
			t.Errorf("%s: %d entries, %d sets and %d scanned", test.kind, counted.gets['A'], counted.gets['B'], counted.scanned)
		}
	}
}

// TestAuditParts: what is too long for one entry is in several, and nothing is left out.
func TestAuditParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		changes, length int
		want            []int // changes of each entry
	}{
		{0, 0, []int{0}}, {1, 5, []int{1}}, {100, 5, []int{100}}, {101, 5, []int{100, 1}}, {250, 5, []int{100, 100, 50}},
		{3, maxAuditBytes / 2, []int{1, 1, 1}}, {3, 2 * maxAuditBytes, []int{1, 1, 1}}, {4, maxAuditBytes/2 - 100, []int{2, 2}},
	} {
		s := newShop(t, setup{})
		changes := []change{}
		for i := range test.changes {
			changes = append(changes, change{fmt.Sprint(i), nil, strings.Repeat("x", test.length)})
		}
		must(s, func(t *txn) (any, error) { return nil, t.audit.note("configuration.applied", "x", changes) })
		entries := ask(s, func(t *txn) ([]*auditEntry, error) {
			list, _, err := t.audit.entries(auditFilter{to: never, subject: "x"}, page{1, 100})
			return list, err
		})
		var parts []int
		n := 0
		for _, e := range slices.Backward(entries) {
			parts = append(parts, len(e.Changes))
			for _, c := range e.Changes {
				if c.Field != fmt.Sprint(n) || len(c.After) != test.length+2 {
					t.Errorf("change %d is %s with %d bytes", n, c.Field, len(c.After))
				}
				n++
			}
		}
		if !slices.Equal(parts, test.want) {
			t.Errorf("%d changes of %d bytes: %v, want %v", test.changes, test.length, parts, test.want)
		}
	}
}

// TestAuditSince: a log that was cut off at its end, or made anew, is no continuation.
func TestAuditSince(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.newKey(keyRequest{})
	short := s.entries()
	s.newKey(keyRequest{})
	long := s.entries()
	s.newKey(keyRequest{RateLimit: 3})
	states := func(all memTx) []ledgerState {
		report, err := verifyWith(s.engine.sizes, all, s.clock, nil)
		s.ok(err)
		return report.Ledgers
	}
	before, after := states(short), states(long)
	if len(problems(t, s, long, before)) > 0 || before[0].AuditEntries+1 != after[0].AuditEntries {
		t.Error("a log that goes on")
	}
	if got := problems(t, s, short, after); len(got) != 1 || !strings.Contains(got[0], "la auditoría tenía 3 entradas y ahora tiene 2") {
		t.Errorf("cut off: %q", got)
	}
	other := slices.Clone(after)
	other[0].AuditDigest[0] ^= 1
	if got := problems(t, s, s.entries(), other); len(got) != 1 || !strings.Contains(got[0], "no es la continuación") {
		t.Errorf("made anew: %q", got)
	}
}

// TestAuditChain: verify names the entry that was changed.
// Panel check 60.
func TestAuditChain(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	for range 3 {
		s.newKey(keyRequest{})
	}
	all := s.entries()
	i := slices.IndexFunc(all, func(e Entry) bool { return bytes.Equal(e.Key, orgKey('A', 1).u64(2)) })
	e, err := decodeRecord[auditEntry](all[i].Value)
	s.ok(err)
	e.By.Actor = "nadie"
	all[i].Value = appendRecord(nil, e)
	if got := problems(t, s, all, nil); len(got) == 0 || !strings.Contains(got[0], "la entrada 2 no es la que se escribió") {
		t.Errorf("%q", got)
	}
}

// TestAuditOfPatch: a correction of a customer is one entry, which names the fields that
// changed and tells of the status alone what it was and is.
func TestAuditOfPatch(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	for range 2 { // the second changes nothing
		must(s, func(t *txn) (*customer, error) {
			return t.customers.patch(ana, customerPatch{
				Phone: new("+525512345678"), LastName: new("Luna"), Status: new(statusInactive), ExternalID: new("A-1"),
				BirthDate: new(birthDate(19900314)), Attributes: []attribute{{"size", `"M"`}},
			}, nil)
		})
	}
	got := s.audited(auditFilter{subject: ana.String()})
	want := `System  customer.updated [`
	for _, field := range []string{"lastName", "phoneNumber", "externalId", "birthDate", "attributes"} {
		want += `{"field":"` + field + `","before":null,"after":null},`
	}
	want += `{"field":"status","before":"Active","after":"Inactive"}]`
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %s, want one entry %s", got, want)
	}
}
