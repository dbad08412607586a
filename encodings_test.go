package main

import (
	"strings"
	"testing"
)

// TestEncodings imports one name in each encoding, with and without a byte order mark.
func TestEncodings(t *testing.T) {
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
		"Windows-1252, late": strings.Replace(ansi, "\n", "\n"+strings.Repeat("x@example.com;"+strings.Repeat("a", 90)+"\n", startLength/100), 1),
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
