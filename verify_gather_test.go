package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sello/internal/blockset"
	"sello/internal/ngram"
	"sello/internal/ordered/orderedtest"
)

// efforts are ways to verify that must find the same problems: with one goroutine or
// more, and room for all records, some or none.
var efforts = []effort{{1, gatherRoom}, {1, 2000}, {2, gatherRoom}, {3, 4000}, {5, 0}}

// TestVerifyEfforts damages a shop in many ways. The problems that verify reports, and
// their order, depend neither on the number of goroutines nor on their room.
func TestVerifyEfforts(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newRichShop(t)
	all := s.entries()
	told := func(state memTx, most effort) string {
		report, err := verifyBy(most, s.engine.sizes, state, s.clock, nil)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%+v", *report)
	}
	step, others := 96, efforts[1:]
	if orderedtest.Long() {
		step = max(1, 12 / *moreHistories)
	}
	if testing.Short() {
		step, others = 120, efforts[4:]
	}
	compare := func(name string, state memTx) {
		t.Helper()
		want := told(state, efforts[0])
		for _, most := range others {
			if got := told(state, most); got != want {
				t.Fatalf("%s: %+v\n%s", name, most, cmp.Diff(want, got))
			}
		}
	}
	compare("whole", all)
	for _, i := range someEntries(all, step) {
		compare(fmt.Sprintf("without %x", all[i].Key), slices.Delete(slices.Clone(all), i, i+1))
		changed := slices.Clone(all)
		changed[i].Value = append(slices.Clone(all[i].Value[:max(len(all[i].Value)-1, 0)]), 77)
		compare(fmt.Sprintf("changed %x", all[i].Key), changed)
	}
	compare("nothing counted", slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return strings.IndexByte("ysb", e.Key[0]) >= 0 }))
	compare("nothing of customers", slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Key[0] == 'c' }))
	compare("no index", slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return strings.IndexByte("lTRwxhez", e.Key[0]) >= 0 }))
}

// TestVerifyNames removes entries of each table that verify compares by a sum. verify
// names the record that misses its entry, and the table's wrong count.
func TestVerifyNames(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	all := s.entries()
	names := map[string]string{
		"p": "identidades", "d": "cambios por venir", "lc": "clientes", "lp": "compras", "lr": "devoluciones", "T": "ventas por id",
		"R": "canjes por id", "w": "códigos", "x": "externalIds", "h": "ventas por fecha", "e": "tramos de tiempo",
		"z": "clientes activos", "g": "índice de búsqueda", "c7": "registros de clientes",
	}
	left := maps.Clone(names)
	for _, i := range someEntries(all, entryStep()) {
		e := all[i]
		name, ok := names[tableName(e.Key)]
		if !ok || e.Key[0] == 'g' && len(e.Key) == 5 {
			continue
		}
		delete(left, tableName(e.Key))
		got := problems(t, s, slices.Delete(slices.Clone(all), i, i+1), nil)
		missing := func(p string) bool { return strings.Contains(p, "falta o difiere en "+name) }
		counted := func(p string) bool { return strings.Contains(p, "entradas de "+name+": es ") }
		if len(got) != 2 || !slices.ContainsFunc(got, missing) || !slices.ContainsFunc(got, counted) {
			t.Errorf("without %x: %q", e.Key, got)
		}
	}
	for table := range left {
		t.Errorf("no entry of table %s", table)
	}
}

// TestVerifyOnePass checks that verify doubts no table of a sound store, and so needs one
// pass.
func TestVerifyOnePass(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	for _, most := range efforts {
		r := newVerifyRun(most, s.engine.sizes, s.entries(), s.clock, nil)
		report, err := r.pass()
		s.ok(err)
		if len(report.Problems) > 0 {
			t.Errorf("%+v: %q", most, report.Problems)
		}
		for table, doubted := range r.doubted {
			if doubted {
				t.Errorf("%+v: table %d is doubted", most, table)
			}
		}
	}
}

// TestVerifySellers makes the log of sales and the list by time agree on a customer that
// is not the sale's own. verify reports both.
func TestVerifySellers(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	changed := 0
	for i, e := range s.entries() {
		if e.Key[0] != 'h' || uint32In(e.Key[1:]) != 1 {
			continue
		}
		all := slices.Clone(s.entries())
		seq, number := uintIn(e.Key[13:]), uint32In(e.Value[1:])%3+1
		all[i].Value = key{e.Value[0]}.u32(number)
		block, place := (seq-1)/logBlock, (seq-1)%logBlock
		at, ok := all.find(bareTestTxn(nil, 1).saleLog.logKey(block))
		if !ok {
			t.Fatalf("no block %d", block)
		}
		logged := slices.Clone(all[at].Value)
		word := logged[place*logEntry:]
		binary.LittleEndian.PutUint32(word, number<<1|binary.LittleEndian.Uint32(word)&1)
		all[at].Value = logged
		changed++
		got := problems(t, s, all, nil)
		for _, want := range []string{"falta o difiere en registro de ventas", "falta o difiere en ventas por fecha"} {
			if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
				t.Errorf("sale %d of another customer: %q", seq, got)
			}
		}
	}
	if changed < 10 {
		t.Errorf("only %d sales", changed)
	}
}

// TestVerifySpelling writes entries with the same content in another encoding than
// sello's. verify reports each, although it compares their tables by content.
func TestVerifySpelling(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	all := s.entries()
	spelled := map[string]bool{}
	for i, e := range all {
		others := map[string][]byte{}
		switch table := tableName(e.Key); {
		case table == "e" && e.Value[1] < 0x80:
			others["a longer number"] = slices.Concat(e.Value[:1], []byte{e.Value[1] | 0x80, 0}, e.Value[2:])
		case table == "z" && len(e.Value) < blockset.Bytes:
			bitmap := blockset.Decode(e.Value)
			others["few as a bitmap"] = bitmap[:]
			if len(e.Value) >= 4 {
				others["out of order"] = slices.Concat(e.Value[2:4], e.Value[:2], e.Value[4:])
			}
		case table == "g" && len(e.Key) > 5:
			list, err := ngram.Decode(nil, e.Value)
			s.ok(err)
			if n := slices.IndexFunc(list, func(at ngram.Occurrence) bool { return at>>16 != list[0]>>16 }); n > 0 {
				others["places out of order"] = ngram.Encode(ngram.Encode(nil, list[n:]), list[:n])
			}
		}
		for name, value := range others {
			spelled[name] = true
			with := slices.Clone(all)
			with[i].Value = value
			if got := problems(t, s, with, nil); len(got) != 1 || !strings.Contains(got[0], "falta o difiere en") {
				t.Errorf("%x, %s: %q", e.Key, name, got)
			}
		}
	}
	if len(spelled) != 4 {
		t.Errorf("only %v", spelled)
	}
}

// crowdedShop returns a shop with many customers. Each has two movements and a sale, in
// another order than the customers came.
func crowdedShop(t *testing.T, customers int) *shop {
	s := newShop(t, setup{})
	made := must(s, func(x *txn) ([]id, error) {
		var made []id
		for i := range customers {
			c, _, err := x.customers.enrol(enrolment{FirstName: fmt.Sprint("c", i), Email: fmt.Sprintf("c%d@example.com", i)})
			if err != nil {
				return nil, err
			}
			made = append(made, c.ID)
		}
		return made, nil
	})
	for step := range 3 {
		must(s, func(x *txn) (any, error) {
			for i := range made {
				cust := made[(i*7+step*11)%len(made)]
				if step == 1 {
					if _, _, err := x.sales.register(newSale{Customer: cust, Type: typePurchase, Total: dec("20"), ExternalID: fmt.Sprint(i), Source: sourceAPI}); err != nil {
						return nil, err
					}
					continue
				}
				if _, err := movePoints(x, cust, nil, &movement{Amount: dec("5"), Category: categoryBonus}, x.points.credit); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	}
	return s
}

// TestVerifyRounds verifies customers in one round of gathering or more. The records have
// room, so no movement and no sale is looked up.
func TestVerifyRounds(t *testing.T) {
	skipRace(t)
	t.Parallel()
	s := crowdedShop(t, 1100)
	all := s.entries()
	for _, test := range []struct {
		most   effort
		rounds int
		reason string
	}{
		{effort{1, gatherRoom}, 1, "all at a time"},
		{effort{2, gatherRoom}, 1, "by two"},
		{effort{2, 1 << 18}, 4, "in rounds"},
		{effort{3, 1 << 17}, 7, "in more"},
	} {
		tx := &countedTx{Tx: all}
		r := newVerifyRun(test.most, s.engine.sizes, all, s.clock, nil)
		x, err := r.engine.inTxn(all, 1, s.clock, seed{})
		s.ok(err)
		rounds, err := r.verifier(x, newFindings()).rounds()
		s.ok(err)
		if len(rounds) != test.rounds {
			t.Errorf("%s: %d rounds, want %d", test.reason, len(rounds), test.rounds)
		}
		report, err := verifyBy(test.most, s.engine.sizes, tx, s.clock, nil)
		s.ok(err)
		if len(report.Problems) > 0 {
			t.Errorf("%s: %q", test.reason, report.Problems)
		}
		if n := tx.gets['m'] + tx.gets['t']; n > 0 {
			t.Errorf("%s: %d movements and sales were looked up", test.reason, n)
		}
	}
}

// TestGatherRoom checks that a gather takes no more than its room, and that the records
// found in it are those of the store.
func TestGatherRoom(t *testing.T) {
	t.Parallel()
	s := crowdedShop(t, 300)
	all := s.entries()
	const room = 20_000
	r := newVerifyRun(effort{1, room}, s.engine.sizes, all, s.clock, nil)
	x, err := r.engine.inTxn(all, 1, s.clock, seed{})
	s.ok(err)
	v := r.verifier(x, newFindings())
	g := &gather{parts: make([]gatherPart, 1)}
	s.ok(v.fill(g, 0, 1))
	p := g.parts[0]
	if size := len(p.bytes) + recordSize*len(p.records); size > room || size < room/2 {
		t.Errorf("%d bytes were gathered in a room of %d", size, room)
	}
	first := g.trail(id(all[slices.IndexFunc(all, func(e Entry) bool { return tableName(e.Key) == "c0" })].Key[5:21]), gatherMovements)
	for seq := uint64(1000); seq > 0; seq-- { // a trail goes from the newest to the oldest, and any may be missing
		if value := first.find(seq); value != nil {
			stored, _, err := all.Get(orgKey('m', 1).u64(seq))
			s.ok(err)
			if string(value) != string(stored) {
				t.Errorf("movement %d is another one", seq)
			}
		}
	}
}

// TestVerifyStops checks that a verification ends with its context.
func TestVerifyStops(t *testing.T) {
	t.Parallel()
	s := crowdedShop(t, 300)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, most := range efforts {
		_, err := verifyBy(most, s.engine.sizes, &stoppableTx{Tx: s.entries(), ctx: ctx}, s.clock, nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", most, err)
		}
	}
}
