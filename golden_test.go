package main

import (
	"encoding/json"
	"flag"
	"iter"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sello/internal/disk"
)

var updateGolden = flag.Bool("update", false, "rewrite the responses in testdata/golden that changed")

func TestGolden(t *testing.T) {
	backends := []struct {
		name string
		open func(*testing.T) Store
	}{
		{"mem", func(*testing.T) Store { return newMemStore() }},
		{"bolt", func(t *testing.T) Store {
			s, err := openBolt(filepath.Join(t.TempDir(), "sello.db"), disk.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}},
		{"twice", func(*testing.T) Store { return runTwice(newMemStore()) }},
	}
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
				w.play(filepath.Join("testdata", "world", "world.txt"), *updateGolden && i == 0)
				w.play(file, *updateGolden && i == 0)
				w.verify()
			})
		}
	}
}

func goldenFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return files
}

// goldenResponses yields every step of every transcript that has a response,
// with its status and, of an error, its body.
func goldenResponses(t *testing.T) iter.Seq2[step, errorBody] {
	return func(yield func(step, errorBody) bool) {
		for _, file := range goldenFiles(t) {
			for _, s := range readSteps(t, file) {
				status, rest, _ := strings.Cut(strings.TrimPrefix(s.want, "=> "), "\n")
				var e errorBody
				if i := strings.Index("\n"+rest, "\n{"); i >= 0 {
					json.Unmarshal([]byte(rest[i:]), &e)
				}
				e.StatusCode, _ = strconv.Atoi(status)
				if s.want != "" && !yield(s, e) {
					return
				}
			}
		}
	}
}

// TestGoldenErrors holds the transcripts against errorTable: they show every
// row of it, and no error that differs from its row.
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
		case "too_precise", "too_large":
			message = e.Field + message
		}
		if !ok || e.StatusCode != row.status || e.Message != message {
			t.Errorf("%s\n%s\nis not the row %v", s.text, s.want, row)
		}
	}
	for code := range errorTable {
		if !seen[code] {
			t.Errorf("no transcript shows %s", code)
		}
	}
}

// TestGoldenRoutes finds every route in the transcripts, once with success
// and once refused for the scope it needs.
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
			seen[pattern] = true
		} else if e.Code == "scope_required" {
			seen[pattern+" without "+strings.TrimPrefix(e.Message, errorTable[e.Code].message)] = true
		}
	}
	for _, r := range a.routes() {
		if !seen[r.pattern] {
			t.Errorf("no transcript shows success of %s", r.pattern)
		}
		if r.scope != "" && !seen[r.pattern+" without "+r.scope] {
			t.Errorf("no transcript shows that %s needs %s", r.pattern, r.scope)
		}
	}
}
