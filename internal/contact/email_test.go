package contact

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEmail runs the agreed cases (testdata/emails.jsonl).
func TestEmail(t *testing.T) {
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
		if got, ok := Email(c.Input); ok != c.Valid || got != c.Normalized {
			t.Errorf("Email(%q) = %q, %v; want %q, %v", c.Input, got, ok, c.Normalized, c.Valid)
		}
		cases++
	}
	if cases != 219 {
		t.Errorf("ran %d cases, want 219", cases)
	}
}

// htmlEmail is the HTML standard's definition of a valid e-mail address, but
// with a dotted domain.
var htmlEmail = regexp.MustCompile("^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)+$")

// isEmail is the contract's definition in terms of htmlEmail.
func isEmail(input string) bool {
	address := strings.Trim(input, " \t\n\f\r")
	local, domain, _ := strings.Cut(address, "@")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	return htmlEmail.MatchString(address) && len(address) <= 254 && len(local) <= 64 &&
		!strings.Contains("."+local+".", "..") && strings.Trim(last, "0123456789") != ""
}

// TestIsEmail shows that isEmail, which FuzzEmail compares with, finds faults.
func TestIsEmail(t *testing.T) {
	if isEmail("a@b") || isEmail("ana@example.123") || !isEmail(" Ana@Example.com ") {
		t.Error("isEmail")
	}
}

// FuzzEmail checks that Email accepts what the HTML standard and the contract do, and
// that a normal form is its own normal form.
func FuzzEmail(f *testing.F) {
	for _, seed := range []string{
		"", "@", " Ana@Example.COM\r\n", "a.b@c.d", ".a@b.c", "a@b..c", "a@1.2", "a@b@c.d", "\xff@b.c",
		strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 94) + "c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		email, ok := Email(input)
		if ok != isEmail(input) {
			t.Fatalf("Email(%q) = %q, %v", input, email, ok)
		}
		if !ok {
			if email != "" {
				t.Errorf("Email(%q) refused and returned %q", input, email)
			}
			return
		}
		if again, ok := Email(email); !ok || again != email {
			t.Errorf("Email(%q) = %q, which normalizes to %q, %v", input, email, again, ok)
		}
	})
}
