package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// sello verify -statement: a statement of a month is compared with what the ledger says today, up to
// the statement's digest.

// A statementReport says whether a statement is the ledger's (contract §22).
type statementReport struct {
	Organization     string   `json:"organization"`
	CustomerID       id       `json:"customerId"`
	LoyaltyProgramID id       `json:"loyaltyProgramId"`
	Month            string   `json:"month"`
	To               instant  `json:"to"`
	Movements        int      `json:"movements"`      // in the statement
	Late             uint64   `json:"laterMovements"` // that came after it, dated in its month or before
	ErasedComments   int      `json:"erasedComments"` // that the statement has and nobody can check any more
	Problems         []string `json:"problems"`
}

type statementRequest struct {
	Statement json.RawMessage `json:"statement"`
}

var errNoStatement = adminErrorf("no es un estado de cuenta de la API")

// verifyStatement compares a statement with what the movements up to its digest say.
func (a *admin) verifyStatement(ctx context.Context, in statementRequest) (*statementReport, error) {
	var said struct {
		statementHead
		Digest *ledgerHash `json:"digest"`
	}
	if _, err := jsonTree(in.Statement); err != nil || json.Unmarshal(in.Statement, &said) != nil || said.Digest == nil {
		return nil, errNoStatement
	}
	n, err := viewStore(ctx, a.engine.store, organizationCount)
	if err != nil {
		return nil, err
	}
	for org := range uint32(n) {
		report, err := read(ctx, a.engine, org+1, instantOf(a.engine.now()), func(t *txn) (*statementReport, error) {
			tree, err := jsonTree(in.Statement) // here, since it is changed, and a View may run again
			if err != nil {
				return nil, err
			}
			return checkStatement(t, said.statementHead, *said.Digest, tree)
		})
		if err != nil || report != nil {
			return report, err
		}
	}
	return nil, adminErrorf("no hay ningún cliente %s", said.CustomerID)
}

// checkStatement checks a statement of a customer of this organization; nil if it has none with
// that id.
func checkStatement(t *txn, said statementHead, digest ledgerHash, tree any) (*statementReport, error) {
	c, err := t.customers.byID(said.CustomerID)
	if err != nil || c == nil {
		return nil, err
	}
	report := &statementReport{
		Organization: t.cfg.Organization.Slug, CustomerID: c.ID, LoyaltyProgramID: said.LoyaltyProgramID, Month: said.Month, To: said.To, Problems: []string{},
	}
	p := t.cfg.program(said.LoyaltyProgramID)
	from, to, ok := monthOf(said.Month, t.cfg.zone)
	switch {
	case p == nil:
		return report.with("no hay ningún programa %s", said.LoyaltyProgramID), nil
	case !ok || from > t.now:
		return report.with("month: no es un mes que haya empezado: %q", said.Month), nil
	}
	a, err := t.points.storedAccount(c, p)
	if err != nil {
		return nil, err
	}
	last, err := report.checkChain(t, a, digest)
	if err != nil || len(report.Problems) > 0 {
		return report, err
	}
	is, err := statementUpTo(t, a, said.Month, last, said.To == to)
	if err != nil {
		return nil, err
	}
	if report.Late, err = lateOf(t, a, said.Month, last); err != nil {
		return nil, err
	}
	report.Movements = len(is.movements)
	return report, report.compare(t, is, tree)
}

func (r *statementReport) with(format string, args ...any) *statementReport {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
	return r
}

// checkChain checks the hashes of an account's chain, and returns the sequence of the movement that
// has a hash: 0 for zeros, the digest of a statement without any movement.
func (r *statementReport) checkChain(t *txn, a *account, digest ledgerHash) (found uint64, err error) {
	has, want := digest == ledgerHash{}, a.Hash
	for seq := a.Movements.last(); seq != 0; {
		k := t.points.movementKey(seq)
		record, ok, err := t.Get(k)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, unreadable(k)
		}
		record = bytes.Clone(record)
		m, err := decodeRecord[movement](record)
		if err != nil {
			return 0, atKey(k, err)
		}
		m.Seq = seq
		var before ledgerHash
		if m.Link.Prev != 0 {
			k := t.points.movementKey(m.Link.Prev)
			previous, ok, err := t.Get(k)
			if err != nil {
				return 0, err
			}
			if !ok || len(previous) < len(before) || m.Link.Prev >= seq {
				return 0, unreadable(k)
			}
			before = ledgerHash(previous[len(previous)-len(before):])
		}
		if m.Hash != want || m.Hash != hashMovement(before, t.org, seq, m.hashed(record)) {
			r.with("el libro no es el que se escribió: el movimiento %s (%d), o el anterior", m.id(), seq)
		}
		if m.Hash == digest {
			found, has = seq, true
		}
		seq, want = m.Link.Prev, before
	}
	if !has {
		r.with("digest: no es de ningún movimiento de esta cuenta")
	}
	return found, nil
}

// compare tells where the statement differs from what it should be. A comment that was erased
// meanwhile cannot be compared.
func (r *statementReport) compare(t *txn, is *statement, said any) error {
	var raw []byte
	for parts := bodyParts(&statementParts{statement: is, made: true}); parts != nil; {
		var err error
		if raw, parts, err = parts.next(t, raw); err != nil {
			return err
		}
	}
	should, err := jsonTree(raw)
	if err != nil {
		return err
	}
	says, _ := said.(map[string]any)
	list, _ := says["movements"].([]any)
	for i, seq := range is.movements {
		m, err := t.points.movement(seq)
		if err != nil {
			return err
		}
		if m.Comment != "" || m.CommentHash == (ledgerHash{}) || i >= len(list) {
			continue
		}
		if one, is := list[i].(map[string]any); is {
			if text, is := one["comment"].(string); is && text != "" {
				one["comment"] = nil
				r.ErasedComments++
			}
		}
	}
	r.differences("", said, should)
	return nil
}

// jsonTree reads JSON. Numbers keep their text.
func jsonTree(raw []byte) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&tree); err == nil {
		if _, err := d.Token(); err != io.EOF {
			return nil, errNoStatement
		}
	}
	return tree, err
}

// differences tells what differs in two trees.
func (r *statementReport) differences(path string, said, is any) {
	switch is := is.(type) {
	case map[string]any:
		said, ok := said.(map[string]any)
		if !ok {
			r.with("%s: no es un objeto", path)
			return
		}
		if path != "" {
			path += "."
		}
		for _, name := range slices.Sorted(maps.Keys(said)) {
			if _, known := is[name]; !known {
				r.with("%s%s: sobra", path, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if value, there := said[name]; there {
				r.differences(path+name, value, is[name])
			} else {
				r.with("%s%s: falta", path, name)
			}
		}
	case []any:
		said, ok := said.([]any)
		if !ok {
			r.with("%s: no es una lista", path)
			return
		}
		for i := range min(len(said), len(is)) {
			r.differences(fmt.Sprintf("%s[%d]", path, i), said[i], is[i])
		}
		if len(said) != len(is) {
			r.with("%s: son %d y deberían ser %d", path, len(said), len(is))
		}
	default:
		if !isScalar(said) || said != is && !sameNumber(said, is) {
			r.with("%s: dice %s y el libro, %s", path, inJSON(said), inJSON(is))
		}
	}
}

// sameNumber reports whether both are numbers of one value, as 5.0 and 5 are (contract §31).
func sameNumber(a, b any) bool {
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if !isX || !isY {
		return false
	}
	d, err := parseDecimal(x.String())
	e, fault := parseDecimal(y.String())
	return err == nil && fault == nil && d == e
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func inJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
