package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestLayout holds how things are kept against testdata/layout.txt: the bytes of each
// kind of record, the sizes of blocks, and all keys, with a digest of each value, that
// a small shop leaves. If it fails the bytes in files have changed:
//
//   - If the layout has, raise schemaVersion, write a migration, and add a file of the
//     new schema to testdata/files. -update then writes layout.txt anew.
//   - If only a rule has, so that the same shop comes to other values, remove
//     layout.txt, run with -update, and look at what differs.
func TestLayout(t *testing.T) {
	path := filepath.Join("testdata", "layout.txt")
	got := layoutText(t)
	kept, err := os.ReadFile(path)
	number, _, _ := strings.Cut(string(kept), "\n")
	if *updateGolden && (err != nil || number != fmt.Sprint("schema ", schemaVersion)) {
		writeFile(t, path, []byte(got))
		return
	}
	if got == string(kept) {
		return
	}
	t.Errorf("the layout is not that of schema %d in %s (%v): see the comment on TestLayout", schemaVersion, path, err)
	was := strings.Split(string(kept), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(was) || was[i] != line {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

func layoutText(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema %d\n", schemaVersion)
	for _, v := range []interface {
		encode(*writer)
		decode(*reader)
	}{
		new(account), new(accountHead), new(basis), new(chain), new(counters), new(customer), new(identity), new(link), new(movement),
		new(redemption), new(replay), new(replaySlices), new(ruleUse), new(sale), new(savedUsage), new(tally), new(typeCount),
	} {
		n := 0
		fill(reflect.ValueOf(v).Elem(), &n)
		w := writer{b: []byte{recordVersion}}
		v.encode(&w)
		again := reflect.New(reflect.TypeOf(v).Elem()).Interface().(interface {
			encode(*writer)
			decode(*reader)
		})
		r, err := recordReader(w.b)
		if err != nil {
			t.Fatal(err)
		}
		again.decode(&r)
		if err := r.done(); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		second := writer{b: []byte{recordVersion}}
		again.encode(&second)
		same(t, fmt.Sprintf("%T written, read and written", v), second.b, w.b)
		fmt.Fprintf(&b, "%T %x\n", v, w.b)
	}
	s := usualSizes()
	fmt.Fprintf(&b, "sizes %+v, set %d, gram %d %d, log %d %d %d\n", s, setBlock, gramBlock, gramGroup, logPack, logEntry, zoneGroup)
	for e, err := range sampleShop(t).Scan(nil, nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(e.Value)
		fmt.Fprintf(&b, "%c %x %x\n", e.Key[0], e.Key[1:], sum[:4])
	}
	return b.String()
}

// fill gives every field another value, small ones first.
func fill(v reflect.Value, n *int) {
	if !v.CanSet() { // the tests may look into everything
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(false) // what lies apart is not in the record
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

// sampleShop returns what a shop leaves in which a little of everything has happened.
func sampleShop(t *testing.T) Tx {
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply(demoDocument)
	s.ok(populate(t.Context(), s.engine, 1))
	_, err := write(t.Context(), s.engine, 1, s.clock, func(t *txn) (any, error) {
		if _, _, err := t.createKey(keyRequest{Name: "prueba", DailyLimit: 5}); err != nil {
			return nil, err
		}
		return nil, t.keepReplay([]retryKey{{}}, 201, []byte(`{"id":"x"}`))
	})
	s.ok(err)
	var found memTx
	s.ok(s.store.View(t.Context(), func(tx Tx) error {
		for e, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			found = append(found, e)
		}
		return nil
	}))
	return found
}
