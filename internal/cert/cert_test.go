package cert

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sello/internal/cert/certtest"
)

// TestTime renews a certificate with others, and lets time pass. Each step says
// what is served then, and what the log says.
func TestTime(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	start := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		reason string
		steps  []step
	}{
		{"expired from the start, and told daily", []step{
			{0, "a", -90 * day, -day, "a", "certificate expired"}, {23 * time.Hour, "", 0, 0, "a", ""}, {day, "", 0, 0, "a", "certificate expired"},
			{day, "b", 0, 90 * day, "b", "certificate renewed"},
		}},
		{"not valid yet, until it is", []step{
			{0, "a", day, 90 * day, "a", "certificate not valid yet"}, {2 * day, "", 0, 0, "a", ""},
		}},
		{"14 days before the end", []step{
			{0, "a", -60 * day, 30 * day, "a", ""}, {15 * day, "", 0, 0, "a", ""}, {16*day + 1, "", 0, 0, "a", "certificate expires soon"},
			{17 * day, "", 0, 0, "a", ""}, {17*day + 1, "", 0, 0, "a", "certificate expires soon"}, {30*day + 1, "", 0, 0, "a", "certificate expired"},
			{30*day + 1, "b", 0, 40 * day, "b", "certificate renewed, certificate expires soon"},
		}},
		{"one for six days", []step{
			{0, "a", 0, 6 * day, "a", ""}, {4 * day, "", 0, 0, "a", ""}, {4*day + 1, "", 0, 0, "a", "certificate expires soon"},
		}},
		{"a valid one is not given up for an expired one", []step{
			{0, "a", -day, 90 * day, "a", ""}, {day, "b", -90 * day, -day, "a", "certificate not renewed"}, {2 * day, "", 0, 0, "a", ""},
			{3 * day, "c", 0, 91 * day, "c", "certificate renewed"},
		}},
		{"nor for one that is not valid yet, until it is", []step{
			{0, "a", -day, 90 * day, "a", ""}, {day, "b", 2 * day, 91 * day, "a", "certificate not renewed"}, {2*day - 1, "", 0, 0, "a", ""},
			{2 * day, "", 0, 0, "b", "certificate renewed"},
		}},
		{"an expired one is, for another one that is not valid", []step{
			{0, "a", -90 * day, -day, "a", "certificate expired"}, {time.Minute, "b", -90 * day, -day / 2, "b", "certificate renewed, certificate expired"},
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			log := new(bytes.Buffer)
			var c *Pair
			for i, step := range test.steps {
				now := start.Add(step.at)
				if step.name != "" {
					certtest.Issue(t, certFile, keyFile, step.name, start.Add(step.from), start.Add(step.until))
					for _, name := range []string{certFile, keyFile} { // as if time had passed
						if err := os.Chtimes(name, now, now); err != nil {
							t.Fatal(err)
						}
					}
				}
				if c == nil {
					var err error
					if c, err = Open(certFile, keyFile, now, slog.New(slog.NewJSONHandler(log, nil))); err != nil {
						t.Fatal(err)
					}
				}
				served := c.Look(now).Leaf.Subject.CommonName
				var said []string
				for _, m := range msgLogged.FindAllStringSubmatch(log.String(), -1) {
					said = append(said, m[1])
				}
				log.Reset()
				if got := strings.Join(said, ", "); served != step.served || got != step.said {
					t.Errorf("step %d, %s: %s is served, want %s; the log says %q, want %q", i, step.at, served, step.served, got, step.said)
				}
			}
		})
	}
}

// A step looks at a certificate at a moment. If it has a name, it first renews the
// files by one of that name. All times are since the start.
type step struct {
	at           time.Duration
	name         string
	from, until  time.Duration
	served, said string
}

var msgLogged = regexp.MustCompile(`"msg":"([^"]+)"`)
