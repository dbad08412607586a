package main

import (
	"io"
	"strings"
	"testing"
)

// TestEncodings imports one name in each encoding, with and without a byte order mark.
func TestEncodings(t *testing.T) {
	skipRace(t)
	t.Parallel()
	const text = "correo;nombre\nana@example.com;Ñandú €\n"
	units := func(mark string, first, second int) string {
		out := []byte(mark)
		for _, r := range text {
			pair := [2]byte{}
			pair[first], pair[second] = byte(r), byte(r>>8)
			out = append(out, pair[:]...)
		}
		return string(out)
	}
	ansi := strings.NewReplacer("Ñ", "\xd1", "ú", "\xfa", "€", "\x80").Replace(text)
	for name, file := range map[string]string{
		"UTF-8": text, "UTF-8 with a mark": markUTF8 + text, "Windows-1252": ansi,
		"UTF-16LE": units(markUTF16LE, 0, 1), "UTF-16BE": units(markUTF16BE, 1, 0),
		"UTF-16LE without a mark": units("", 0, 1), "UTF-16BE without a mark": units("", 1, 0),
		"sep=": "sep=;\r\n" + text,
		// The encoding shows only far beyond what is looked at first.
		"Windows-1252, late": strings.Replace(ansi, "\n", "\n"+strings.Repeat("x@example.com;"+strings.Repeat("a", 90)+"\n", chunkLength/100), 1),
	} {
		s := newShop(t, setup{})
		im := s.importer(t, importCustomers)
		s.ok(im.run(strings.NewReader(file)))
		if c := s.byEmail("ana"); c.FirstName != "Ñandú €" {
			t.Errorf("%s: %q, %+v", name, c.FirstName, im.report)
		}
	}
	// One broken character in a file of UTF-8 spoils its row only.
	s := newShop(t, setup{})
	if got := s.importCSV(t, "correo,nombre\nana@example.com,Núñez\nbeto@example.com,N\xfa\xf1ez é é é\n"); got != "1 new, 0 known, 1 wrong; 3 no es UTF-8 válido" {
		t.Error(got)
	}
}

// TestCharsets reads each letter of Spanish in each encoding of single bytes, with the
// bytes of the tables of Unicode.
func TestCharsets(t *testing.T) {
	t.Parallel()
	const letters = "áéíóúüñÁÉÍÓÚÜÑ¿¡ºª€ç"
	for e, bytes := range map[encoding]string{
		encodingWindows1252: "\xe1\xe9\xed\xf3\xfa\xfc\xf1\xc1\xc9\xcd\xd3\xda\xdc\xd1\xbf\xa1\xba\xaa\x80\xe7",
		encodingIBM850:      "\xa0\x82\xa1\xa2\xa3\x81\xa4\xb5\x90\xd6\xe0\xe9\x9a\xa5\xa8\xad\xa7\xa6?\x87",
		encodingIBM437:      "\xa0\x82\xa1\xa2\xa3\x81\xa4?\x90???\x9a\xa5\xa8\xad\xa7\xa6?\x87",
		encodingMacintosh:   "\x87\x8e\x92\x97\x9c\x9f\x96\xe7\x83\xea\xee\xf2\x86\x84\xc0\xc1\xbc\xbb\xdb\x8d",
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
		if r := encodingWindows1252.rune(b); r != '\ufffd' {
			t.Errorf("%#x is %q", b, r)
		}
	}
}

// spell writes a text in an encoding of single bytes; ok is false if it has not all of its
// characters.
func spell(e encoding, text string) (out string, ok bool) {
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
	skipRace(t)
	t.Parallel()
	check := func(e encoding, text string) string {
		out, ok := spell(e, text)
		if !ok {
			return "?"
		}
		_, err := newDecodedFile(strings.NewReader("Nombre,Correo\n"+out+",ana@example.com\n"), encodingUnknown)
		if err == nil {
			return "windows-1252"
		}
		if !strings.HasPrefix(err.Error(), "el archivo puede estar en ") {
			t.Fatal(err)
		}
		return strings.TrimSuffix(strings.Fields(err.Error())[5], ",")
	}
	for _, text := range append([]string{
		"O’Brien", "“Hola” dijo", "1\u00a0250,50", "«hola»", "São Paulo", "João Conceição", "Müller", "Köln", "François", "l’été", "Col·legi", "Año 2026 – fin", "½ kilo", "Çelik, €uro y María", "25 °C",
	}, plainWords...) {
		if got := check(encodingWindows1252, text); got != "windows-1252" {
			t.Errorf("windows-1252: %s is taken for %s", text, got)
		}
	}
	for _, text := range plainWords {
		if text == "é" || text == "ó" { // one letter alone is no word
			continue
		}
		for _, e := range []encoding{encodingIBM850, encodingMacintosh} {
			if e == encodingIBM850 && text == "Íñigo" {
				continue // alone its bytes are UTF-8
			}
			if got := check(e, text); got != e.String() && got != "?" {
				t.Errorf("%s: %s is taken for %s", e, text, got)
			}
		}
		if got := check(encodingIBM437, text); got == "windows-1252" {
			t.Errorf("ibm437: %s is taken for %s", text, got)
		}
	}
}

// TestEncodingFlag: -encoding decides, but not against a mark.
func TestEncodingFlag(t *testing.T) {
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
		"utf-8":  {text, markUTF8 + text},
		"utf-16": {utf16("", 0, 1), utf16("", 1, 0), utf16(markUTF16LE, 0, 1), utf16(markUTF16BE, 1, 0)},
	}
	for _, e := range []encoding{encodingWindows1252, encodingIBM850, encodingIBM437, encodingMacintosh} {
		out, ok := spell(e, text)
		if !ok {
			t.Fatal(e)
		}
		files[e.String()] = []string{out}
	}
	for name, e := range encodingFlags {
		for _, file := range files[name] {
			d, err := newDecodedFile(strings.NewReader(file), e)
			if err != nil {
				t.Fatal(name, err)
			}
			if got, err := io.ReadAll(d); string(got) != text || err != nil {
				t.Errorf("%s: %q %v", name, got, err)
			}
		}
		_, err := newDecodedFile(strings.NewReader(markUTF8+text), e)
		if (err != nil) != (name != "utf-8") {
			t.Errorf("%s with a mark of UTF-8: %v", name, err)
		}
	}
	s := newShop(t, setup{})
	for _, b := range []string{"\x81", "\x8d", "\x8f", "\x90", "\x9d"} {
		got := s.sheetTold(t, importCustomers, "correo,nombre\nana@example.com,Ana "+b+"\n", func(im *importer) { im.encoding = encodingWindows1252 })
		if !strings.HasPrefix(got, "1 rows, 0 new\nline,reason,correo,nombre\n2,tiene un carácter que no se puede leer,") {
			t.Errorf("%q: %s", b, got)
		}
	}
}
