package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"
)

// byReflection returns a value as encoding/json encodes it.
func byReflection(t *testing.T, v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAppendJSON compares the handwritten encoders with encoding/json on random values.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewSource(1))
	for _, empty := range []jsonAppender{balance{}, movementShape{}, saleShape{}, saleProgram{}, expiring{}, usedLot{}, item{}, ruleShare{}, saleRedemption{}, customerItem{}, appendedList[customerItem]{}} {
		check := func(v any) {
			t.Helper()
			got, err := encode(v)
			if want := byReflection(t, v); err != nil || string(got) != want {
				t.Fatalf("got %s, %v\nwant %s", got, err, want)
			}
		}
		check(empty)
		for range repeats(500, 200, 100) {
			v, ok := quick.Value(reflect.TypeOf(empty), rnd)
			if !ok {
				t.Fatalf("no value of %T", empty)
			}
			check(v.Interface())
		}
	}
}

// TestAppendJSONString quotes every character up to U+FFFF, alone and between
// others, and bytes that are not UTF-8.
func TestAppendJSONString(t *testing.T) {
	skipRace(t)
	t.Parallel()
	check := func(s string) {
		if got, want := string(appendJSONString([]byte("x"), s))+"\n", "x"+byReflection(t, s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
	for r := range rune(0x10000) {
		check(string(utf8.AppendRune(nil, r)))
		check("ñ" + string(utf8.AppendRune(nil, r)) + "z")
	}
	for _, s := range []string{"", "\xff", "a\xc3", "\xed\xa0\x80", "</script>&", "😀\u2028", "a\nb\"c\\d", "\x7f\u0080"} {
		check(s)
	}
}

// TestTextForms compares the texts of times and ids with those of the standard library.
func TestTextForms(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewSource(1))
	for i := range 20_000 {
		at := instant(rnd.Int63n(1<<49) - 1<<47) // from before year -2490 to after 15000
		if i%2 == 0 {
			at = instant(rnd.Int63n(4_102_444_800_000)) // from 1970 to 2100
		}
		if got, want := at.String(), time.UnixMilli(int64(at)).UTC().Format(layoutMillis); got != want {
			t.Fatalf("%d is written %s, want %s", at, got, want)
		}
		var u id
		rnd.Read(u[:])
		if got, want := u.String(), fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
