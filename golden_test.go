package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"sello/internal/disk"
)

var updateGolden = flag.Bool("update", false, "rewrite the responses in testdata/golden that changed")

// A goldenBackend is a kind of store that transcripts are played on.
type goldenBackend struct {
	name string
	open func(*testing.T) Store
}

// TestGolden plays every transcript on every backend.
func TestGolden(t *testing.T) {
	backends := []goldenBackend{
		{"mem", func(*testing.T) Store { return parted(newMemStore()) }},
		{"bolt twice", func(t *testing.T) Store {
			s, err := openBolt(filepath.Join(t.TempDir(), "sello.db"), disk.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return runTwice(s)
		}},
	}
	if testing.Short() {
		backends = backends[:1]
	}
	playGolden(t, backends)
}

// playGolden plays every transcript on each of the backends. It also checks what the transcripts
// leave out: openapi.json describes each whole response, and all backends give the same
// one.
func playGolden(t *testing.T, backends []goldenBackend) {
	described := readAPIDoc(t)
	all := agreement{first: map[string][]string{}}
	for _, file := range goldenFiles(t) {
		for i, backend := range backends {
			if t.Failed() && *updateGolden {
				return
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+backend.name, func(t *testing.T) {
				if !*updateGolden {
					t.Parallel()
				}
				w := newWorld(t, backend.open(t))
				var responses []string
				doc := apiDoc{Paths: described.Paths, Components: described.Components, used: map[string]bool{}}
				w.watch = func(s step, o outcome, body []byte) {
					responses = append(responses, fmt.Sprintln(s.text, o.status, o.headers, o.body))
					if i > 0 {
						return
					}
					if err := doc.describes(w.route(s), s.method, o.status, body); err != nil {
						t.Errorf("%s:\n%s\n%v", file, s.text, err)
					}
				}
				w.play(filepath.Join("testdata", "world", "world.txt"), *updateGolden && i == 0)
				w.play(file, *updateGolden && i == 0)
				w.verify()
				if d := all.differs(file, responses); d != "" {
					t.Errorf("%s: not what another backend answers:\n%s", file, d)
				}
			})
		}
	}
}

// An agreement compares the whole responses of the backends.
type agreement struct {
	mu    sync.Mutex
	first map[string][]string // by transcript: the responses of the first backend
}

func (a *agreement) differs(file string, responses []string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.first[file]
	if !ok {
		a.first[file] = responses
	} else if !slices.Equal(first, responses) {
		return diff.Diff(first, responses)
	}
	return ""
}

func goldenFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return files
}

// goldenResponses yields every step of every transcript that has a response, with its
// status and, for an error, its body.
func goldenResponses(t *testing.T) iter.Seq2[step, errorBody] {
	return func(yield func(step, errorBody) bool) {
		for _, file := range goldenFiles(t) {
			for _, s := range readSteps(t, file) {
				status, body := s.outcome()
				e := errorBody{StatusCode: status}
				if status >= 400 {
					json.Unmarshal([]byte(body), &e)
				}
				if s.want != "" && !yield(s, e) {
					return
				}
			}
		}
	}
}

// TestGoldenErrors compares the transcripts with errorTable. They show every row of it,
// and no error that differs from its row.
func TestGoldenErrors(t *testing.T) {
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		if e.StatusCode < 400 || e.Code == "" && s.method == "HEAD" {
			continue
		}
		seen[e.Code] = true
		row, ok := errorTable[e.Code]
		message := row.message
		switch e.Code {
		case "invalid_field":
			message = e.Message
		case "scope_required":
			message += strings.TrimPrefix(e.Message, message)
		case "events_gone":
			if e.Message == eventsToCome {
				message = e.Message
			}
		case "occurred_at_invalid": // the days are those of the settings
			if strings.HasPrefix(e.Message, "occurredAt no puede ser ") {
				message = e.Message
			}
		case "points_payment_too_small", "points_payment_too_large", "points_payment_step", "hold_exceeded": // N is a number
			if numberForm := regexp.MustCompile(` [0-9.]+`); numberForm.ReplaceAllString(e.Message, " N") == message {
				message = e.Message
			}
		case "too_precise", "too_large":
			message = e.Field + message
		case "unknown_field":
			message = e.Field + message
			if suggestion := strings.TrimPrefix(e.Message, message); regexp.MustCompile(`^ \(¿\w+\?\)$`).MatchString(suggestion) {
				message += suggestion
			}
		}
		if !ok || e.StatusCode != row.status || e.Message != message {
			t.Errorf("%s\n%s\nis not the row %v", s.text, s.want, row)
		}
	}
	for code := range errorTable {
		if !seen[code] && code != codeHTTPSRequired.name { // TestTLS shows that one
			t.Errorf("no transcript shows %s", code)
		}
	}
}

// TestGoldenRoutes checks that the transcripts show every route: with a success, with a
// whole response, and refused for lack of its scope.
func TestGoldenRoutes(t *testing.T) {
	a := newAPI(nil, nil, nil)
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		target, err := url.Parse(s.target)
		if err != nil {
			continue
		}
		_, pattern := a.mux.Handler(&http.Request{Method: s.method, URL: target})
		if e.StatusCode < 300 {
			_, body := s.outcome()
			seen[pattern] = true
			seen[pattern+" whole"] = seen[pattern+" whole"] || isWhole(body)
		} else if e.Code == "scope_required" {
			seen[pattern+" without "+strings.TrimPrefix(e.Message, errorTable[e.Code].message)] = true
		}
	}
	for _, r := range a.routes() {
		if r.pattern == "GET /api/v1/openapi.json" || r.pattern == "GET /docs" {
			continue // TestReference reads them; their ETags change with each word
		}
		if !seen[r.pattern] {
			t.Errorf("no transcript shows success of %s", r.pattern)
		}
		if !seen[r.pattern+" whole"] {
			t.Errorf("no transcript shows a whole response of %s", r.pattern)
		}
		for scope := range strings.FieldsSeq(r.scope) {
			if !seen[r.pattern+" without "+scope] {
				t.Errorf("no transcript shows that %s needs %s", r.pattern, scope)
			}
		}
	}
}

// isWhole reports whether a body shows a shape with all its members. A body with … is not
// JSON, and an empty list shows no shape.
func isWhole(body string) bool {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return false
	}
	if members, ok := v.(map[string]any); ok && members["data"] != nil {
		v = members["data"]
	}
	list, ok := v.([]any)
	return v != nil && (!ok || len(list) > 0)
}

// TestPart checks which members part leaves out, and that … stands in their place.
func TestPart(t *testing.T) {
	for _, test := range []struct{ reason, body, names, want string }{
		{"some of an object", `{"a":1,"b":"{,\"}","c":null}`, "c b", `{"b":"{,\"}","c":null,…}`},
		{"all of it", `{"a":1,"b":2}`, "a b", `{"a":1,"b":2}`},
		{"none of it", `{"a":1}`, "b", `{…}`},
		{"deeper, with what encloses it", `{"a":{"b":{"c":1,"d":2}},"e":[3]}`, "c", `{"a":{"b":{"c":1,…}},…}`},
		{"the whole of a named object", `{"a":{"b":1},"c":[{"b":2}]}`, "a", `{"a":{"b":1},…}`},
		{"each element of a list", `[{"a":1,"b":2},{"b":3}]`, "a", `[{"a":1,…},{…}]`},
		{"the rows of a list, always", `{"data":[{"a":1}],"meta":{"total":1}}`, "b", `{"data":[{…}],…}`},
		{"no rows", `{"data":[],"meta":{"total":0}}`, "total", `{"data":[],"meta":{"total":0}}`},
		{"what is not an object", `null`, "a", `null`},
	} {
		got, _ := part(test.body, func(name string) bool { return slices.Contains(strings.Fields(test.names), name) })
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.reason, got, test.want)
		}
		if whole := got == test.body && test.body != "null" && !strings.Contains(test.body, "[]"); isWhole(got) != whole {
			t.Errorf("%s: is %s whole? %v", test.reason, got, !whole)
		}
	}
}
