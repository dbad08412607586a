package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestNormalizeEmail runs the agreed cases (testdata/emails.jsonl).
func TestNormalizeEmail(t *testing.T) {
	data, err := os.ReadFile("testdata/emails.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(data) {
		var c struct {
			Input      string
			Valid      bool
			Normalized string // "" when null
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if got, ok := normalizeEmail(c.Input); ok != c.Valid || got != c.Normalized {
			t.Errorf("normalizeEmail(%q) = %q, %v; want %q, %v", c.Input, got, ok, c.Normalized, c.Valid)
		}
		cases++
	}
	if cases != 219 {
		t.Errorf("ran %d cases, want 219", cases)
	}
}

// FuzzEmail checks that no input panics, and that a stored address is already
// in its stored form.
func FuzzEmail(f *testing.F) {
	for _, seed := range []string{
		"", "@", " Ana@Example.COM\r\n", "a.b@c.d", ".a@b.c", "a@b..c", "a@1.2", "a@b@c.d", "\xff@b.c",
		strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 94) + "c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		email, ok := normalizeEmail(input)
		if !ok {
			if email != "" {
				t.Errorf("normalizeEmail(%q) refused and returned %q", input, email)
			}
			return
		}
		if again, ok := normalizeEmail(email); !ok || again != email {
			t.Errorf("normalizeEmail(%q) = %q, which normalizes to %q, %v", input, email, again, ok)
		}
	})
}
