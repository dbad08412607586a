package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPack packs every transcript, and texts made to mislead, and unpacks each to
// the same bytes.
func TestPack(t *testing.T) {
	t.Parallel()
	texts := [][]byte{
		nil, []byte(`"`), []byte(`""`), []byte(`{}`), []byte("{\"comment\":\"dijo \\\"sí\\\"\"}\n"),
		[]byte(`"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"`), // an id
		[]byte(`"0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"`), // capitals: not an id
		[]byte(`"00000000-0000-0000-0000-000000000000"`),
		[]byte(`"2026-13-45T99:99:99.999Z"`), []byte(`"2026-01-01t00:00:00.000Z"`), []byte(`"9999-99-99T99:99:99.999Z"`),
		{0, 1, 2, 3, '"', 4, 255, '"'}, bytes.Repeat([]byte("x"), 1000),
	}
	for _, word := range packedWords {
		texts = append(texts, []byte(word))
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, content)
	}
	for _, text := range texts {
		if got, err := unpack(pack(nil, text)); !bytes.Equal(got, text) || err != nil {
			t.Errorf("%.60q became %.60q (%v)", text, got, err)
		}
	}
	if len(packedPlaces) != len(packedWords) || packedWord+len(packedWords) > 256 {
		t.Error("two words are alike, or there are too many")
	}
	for _, damaged := range [][]byte{nil, {packedText, 5, 'x'}, {packedID, 1}, {packedMoment}, {255}} {
		if text, err := unpack(damaged); err == nil {
			t.Errorf("%x was read as %q", damaged, text)
		}
	}
}

// TestPackedMembers: every member of an answer to a POST is a word, so that keeping the
// answer costs a byte for it.
func TestPackedMembers(t *testing.T) {
	t.Parallel()
	for _, shape := range []any{movementShape{}, usedLot{}, saleShape{}, saleRedemption{}, redemptionShape{}, customerDetail{}, createdBy{}, item{}, ruleShare{}, effect{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(shape)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if _, ok := packedPlaces[name]; !ok && name != "" {
				t.Errorf("%T: %s is no word", shape, name)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	text := []byte(`{"id":"019cd8e7-dd00-72da-bd9e-adffd988eb98","customerId":"019cadfd-8900-7627-a5a1-aa830dbcfd32",` +
		`"loyaltyProgramId":"019cadfd-8900-7be5-98fb-5201a15efc6a","currencyId":"019cadfd-8900-7e81-b7e0-49f7831e2028","type":"Credit",` +
		`"category":"Bonus","amount":100,"comment":null,"availableFrom":null,"expiresAt":"2027-04-01T05:59:59.999Z","balance":420,` +
		`"transactionId":null,"redemptionId":null,"createdAt":"2026-03-10T18:00:00.000Z","lots":null}` + "\n")
	packed := make([]byte, 0, len(text))
	b.ReportAllocs()
	for b.Loop() {
		packed = pack(packed[:0], text)
	}
	b.ReportMetric(float64(len(text)), "text-B")
	b.ReportMetric(float64(len(packed)), "packed-B")
}

// FuzzPack packs any text and unpacks it to the same bytes. It also unpacks any
// bytes, which gives an error or a text that can be packed in turn.
func FuzzPack(f *testing.F) {
	f.Add([]byte{packedID, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, packedText, 1, 'x', packedMoment, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte("{\"id\":\"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b\",\"createdAt\":\"2026-01-01T00:00:00.000Z\",\"comment\":null}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := unpack(pack(nil, text)); !bytes.Equal(got, text) || err != nil {
			t.Fatalf("%q became %q (%v)", text, got, err)
		}
		read, err := unpack(text)
		if err != nil {
			return
		}
		if again, err := unpack(pack(nil, read)); !bytes.Equal(again, read) || err != nil {
			t.Fatalf("%x is %q, which became %q (%v)", text, read, again, err)
		}
	})
}
