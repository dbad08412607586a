package main

import (
	"strings"
	"testing"
)

// TestCopyRefused: what sello copy cannot do is told before anything is opened.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	for line, want := range map[string]string{
		"copy":                        "falta -to",
		"copy -to " + s.dir + "/b.db": "de archivo a archivo copia sello backup",
		"copy -from postgres://a/x -to postgres://b/x": "de base de datos a base de datos, pg_dump",
		"copy -to postgres://ana:12/SECRETO@db/sello":  "-to debe tener la forma postgres://",
	} {
		code, out, errs := s.run(line)
		if code != 2 || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "SECRETO") {
			t.Errorf("sello %s: exit %d, %q, %q", line, code, out, errs)
		}
	}
	if code, _, errs := s.run("copy -to postgres://ana:SECRETO@db/sello"); code != 1 || !strings.Contains(errs, s.dir+"/sello.db: no existe") {
		t.Errorf("without a file: exit %d, %q", code, errs)
	}
}
