package texts

import (
	"fmt"
	"maps"
	"testing"
	"testing/fstest"
)

// TestRead: a table that cannot be read says where, and escapes are those of Go.
func TestRead(t *testing.T) {
	t.Parallel()
	for table, want := range map[string]string{
		"a\tuno\tone\nb\tdos\ttwo\n": "",
		"a\tuno\n":                   "panel/x.txt:1:1: a row is a name and two texts, with tabs between them",
		"a\tuno\tone\textra\n":       "panel/x.txt:1:1: a row is a name and two texts, with tabs between them",
		"a\tuno\tone\n\n":            "panel/x.txt:2:1: a row is a name and two texts, with tabs between them",
		"a\tuno\tone":                "panel/x.txt:1:1: a row is a name and two texts, with tabs between them",
		"b\tuno\tone\na\tdos\ttwo\n": "panel/x.txt:2:1: a is not in order, or is there twice",
		"a\tuno\tone\na\tdos\ttwo\n": "panel/x.txt:2:1: a is not in order, or is there twice",
		"ab\tuno\t\n":                "panel/x.txt:1:8: not a text",
		"ab\tuno \\d\tone\n":         "panel/x.txt:1:4: not a text",
	} {
		_, err := Read(fstest.MapFS{"panel/x.txt": {Data: []byte(table)}}, "panel/*.txt")
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%q: %s, want %s", table, got, want)
		}
	}
	all, err := Read(fstest.MapFS{"panel/x.txt": {Data: []byte("a\t\"5\\u00a0%%\"\tone\n")}}, "panel/*.txt")
	if want := (Table{"a": {"\"5\u00a0%%\"", "one"}}); err != nil || !maps.Equal(all, want) {
		t.Errorf("%q, %v", all, err)
	}
}
