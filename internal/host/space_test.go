package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestDiskAlmostFull: the log tells once when room becomes scarce, and once when there is
// enough again.
func TestDiskAlmostFull(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, test := range []struct {
		reason string
		all    uint64
		free   []uint64
		want   string // of each figure: a line that begins, ends or neither
	}{
		{"a small disk: a tenth of it", 5 * gib, []uint64{gib, gib / 2, gib/2 - 1, gib / 2, gib/2 + gib/8 - 1, gib/2 + gib/8, gib/2 - 1}, "..b..eb"},
		{"a large disk: 1 GiB", 1000 * gib, []uint64{99 * gib, gib, gib - 1, 0, gib, gib + gib/4, gib}, "..b..e."},
		{"almost full from the start", 100 * gib, []uint64{5, 5}, "b."},
		{"a system that tells nothing", 0, []uint64{0, 0}, ".."},
	} {
		d, got := new(Space), ""
		for _, free := range test.free {
			log := new(bytes.Buffer)
			d.Note(free, test.all, "/data", slog.New(slog.NewTextHandler(log, nil)))
			switch text := log.String(); {
			case strings.Contains(text, `level=WARN msg="disk almost full" dir=/data free=`):
				got += "b"
			case strings.Contains(text, `level=INFO msg="disk has room again" dir=/data free=`):
				got += "e"
			case text == "":
				got += "."
			default:
				t.Error(text)
			}
			if d.Free.Load() != free || d.All.Load() != test.all {
				t.Errorf("%s: %d of %d", test.reason, d.Free.Load(), d.All.Load())
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.reason, got, test.want)
		}
	}
}
