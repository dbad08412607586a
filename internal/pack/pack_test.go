package pack

import (
	"bytes"
	"strconv"
	"testing"
)

var some = NewWords([]string{"{", ":", ",", "}\n", ":null,", "id", "createdAt", "comment", ":null}\n"})

// TestPack packs texts made to mislead, and unpacks each to the same bytes.
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
	for _, word := range some.list {
		texts = append(texts, []byte(word))
	}
	for _, text := range texts {
		if got, err := some.Unpack(some.Pack(nil, text)); !bytes.Equal(got, text) || err != nil {
			t.Errorf("%.60q became %.60q (%v)", text, got, err)
		}
	}
	for _, damaged := range [][]byte{nil, {anyPiece, 5, 'x'}, {idPiece, 1}, {momentPiece}, {255}} {
		if text, err := some.Unpack(damaged); err == nil {
			t.Errorf("%x was read as %q", damaged, text)
		}
	}
}

// TestWords: words that would be taken for others panic.
func TestWords(t *testing.T) {
	t.Parallel()
	many := make([]string, 254)
	for n := range many {
		many[n] = strconv.Itoa(n)
	}
	NewWords(many[:253])
	for _, list := range [][]string{{"a", "b", "a"}, many} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d words were taken", len(list))
				}
			}()
			NewWords(list)
		}()
	}
}

// FuzzPack packs any text and unpacks it to the same bytes. It also unpacks any
// bytes, which gives an error or a text that can be packed in turn.
func FuzzPack(f *testing.F) {
	f.Add([]byte{idPiece, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, anyPiece, 1, 'x', momentPiece, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte("{\"id\":\"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b\",\"createdAt\":\"2026-01-01T00:00:00.000Z\",\"comment\":null}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := some.Unpack(some.Pack(nil, text)); !bytes.Equal(got, text) || err != nil {
			t.Fatalf("%q became %q (%v)", text, got, err)
		}
		read, err := some.Unpack(text)
		if err != nil {
			return
		}
		if again, err := some.Unpack(some.Pack(nil, read)); !bytes.Equal(again, read) || err != nil {
			t.Fatalf("%x is %q, which became %q (%v)", text, read, again, err)
		}
	})
}
