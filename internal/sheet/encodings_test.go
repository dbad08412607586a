package sheet

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestCharsets reads each letter of Spanish in each encoding of single bytes, with the
// bytes of the tables of Unicode.
func TestCharsets(t *testing.T) {
	t.Parallel()
	const letters = "áéíóúüñÁÉÍÓÚÜÑ¿¡ºª€ç"
	for e, bytes := range map[Encoding]string{
		Windows1252: "\xe1\xe9\xed\xf3\xfa\xfc\xf1\xc1\xc9\xcd\xd3\xda\xdc\xd1\xbf\xa1\xba\xaa\x80\xe7",
		IBM850:      "\xa0\x82\xa1\xa2\xa3\x81\xa4\xb5\x90\xd6\xe0\xe9\x9a\xa5\xa8\xad\xa7\xa6?\x87",
		IBM437:      "\xa0\x82\xa1\xa2\xa3\x81\xa4?\x90???\x9a\xa5\xa8\xad\xa7\xa6?\x87",
		Macintosh:   "\x87\x8e\x92\x97\x9c\x9f\x96\xe7\x83\xea\xee\xf2\x86\x84\xc0\xc1\xbc\xbb\xdb\x8d",
	} {
		for i, want := range []rune(letters) {
			if got := e.rune(bytes[i]); got != want && bytes[i] != '?' {
				t.Errorf("%s: %#x is %q, want %q", e, bytes[i], got, want)
			}
		}
		if len(upperHalves[e]) != 128 {
			t.Errorf("%s has %d characters", e, len(upperHalves[e]))
		}
		for b := range 256 {
			if r := e.rune(byte(b)); b >= 0x80 && r < 0xa0 {
				t.Errorf("%s: %#x is the control character %#x", e, b, r)
			}
		}
	}
	for _, b := range []byte{0x81, 0x8d, 0x8f, 0x90, 0x9d} {
		if r := Windows1252.rune(b); r != '\ufffd' {
			t.Errorf("%#x is %q", b, r)
		}
	}
}

// spell writes a text in an encoding of single bytes; ok is false if it has not all of its
// characters.
func spell(e Encoding, text string) (out string, ok bool) {
	var b []byte
	for _, r := range text {
		at := -1
		for c := range 256 {
			if e.rune(byte(c)) == r {
				at = c
			}
		}
		if at < 0 {
			return "", false
		}
		b = append(b, byte(at))
	}
	return string(b), true
}

// plainWords hold each letter of Spanish, and what else stands in sheets of Windows-1252.
var plainWords = []string{
	"María", "José", "Núñez", "Peña", "López", "Íñigo", "Güemes", "Ángel", "Érika", "Óscar", "Úrsula", "Ñandú", "Compró", "Mamá", "Así", "Perú",
	"MARÍA", "JOSÉ", "NÚÑEZ", "PEÑA", "LÓPEZ", "ÁNGEL", "GÜEMES", "Díaz", "País", "JESÚS", "CIGÜEÑA", "¿Qué?", "¡Hola!", "1º", "2ª", "Mª", "ó", "é", "5 €", "Nº",
}

// TestGuess: a file in MS-DOS's or Macintosh's encoding is refused by name, whatever single
// word it has. One in Windows-1252 is read.
func TestGuess(t *testing.T) {
	t.Parallel()
	check := func(e Encoding, text string) string {
		out, ok := spell(e, text)
		if !ok {
			return "?"
		}
		_, err := Decode(strings.NewReader("Nombre,Correo\n"+out+",ana@example.com\n"), Unknown)
		if err == nil {
			return "windows-1252"
		}
		guess, ok := err.(*GuessError)
		if !ok {
			t.Fatal(err)
		}
		return guess.Encoding.String()
	}
	for _, text := range append([]string{
		"O’Brien", "“Hola” dijo", "1\u00a0250,50", "«hola»", "São Paulo", "João Conceição", "Müller", "Köln", "François", "l’été", "Col·legi", "Año 2026 – fin", "½ kilo", "Çelik, €uro y María", "25 °C",
	}, plainWords...) {
		if got := check(Windows1252, text); got != "windows-1252" {
			t.Errorf("windows-1252: %s is taken for %s", text, got)
		}
	}
	for _, text := range plainWords {
		if text == "é" || text == "ó" { // one letter alone is no word
			continue
		}
		for _, e := range []Encoding{IBM850, Macintosh} {
			if e == IBM850 && text == "Íñigo" {
				continue // alone its bytes are UTF-8
			}
			if got := check(e, text); got != e.String() && got != "?" {
				t.Errorf("%s: %s is taken for %s", e, text, got)
			}
		}
		if got := check(IBM437, text); got == "windows-1252" {
			t.Errorf("ibm437: %s is taken for %s", text, got)
		}
	}
}

// TestNamedEncoding: the encoding that is named decides, but not against a mark.
func TestNamedEncoding(t *testing.T) {
	t.Parallel()
	const text = "correo,nombre\nana@example.com,Ñandú Peña ¿y María?\n"
	utf16 := func(mark string, first, second int) string {
		out := []byte(mark)
		for _, r := range text {
			pair := [2]byte{}
			pair[first], pair[second] = byte(r), byte(r>>8)
			out = append(out, pair[:]...)
		}
		return string(out)
	}
	files := map[string][]string{
		"utf-8":  {text, MarkUTF8 + text},
		"utf-16": {utf16("", 0, 1), utf16("", 1, 0), utf16(markUTF16LE, 0, 1), utf16(markUTF16BE, 1, 0)},
	}
	for _, e := range []Encoding{Windows1252, IBM850, IBM437, Macintosh} {
		out, ok := spell(e, text)
		if !ok {
			t.Fatal(e)
		}
		files[e.String()] = []string{out}
	}
	for name, e := range Encodings {
		for _, file := range files[name] {
			d, err := Decode(strings.NewReader(file), e)
			if err != nil {
				t.Fatal(name, err)
			}
			if got, err := io.ReadAll(d); string(got) != text || err != nil {
				t.Errorf("%s: %q %v", name, got, err)
			}
		}
		_, err := Decode(strings.NewReader(MarkUTF8+text), e)
		if mark := (*MarkError)(nil); errors.As(err, &mark) != (name != "utf-8") {
			t.Errorf("%s with a mark of UTF-8: %v", name, err)
		}
	}
}
