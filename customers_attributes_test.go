package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestEmailsThroughAPI sends the agreed cases of e-mails (internal/contact/testdata/emails.jsonl)
// to everything that reads one.
func TestEmailsThroughAPI(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("internal/contact/testdata/emails.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, setup{}).served()
	patched := "/api/v1/customers/" + s.shop.customer("ana").String()
	answer := func(method, path, body string, valid bool, normalized string) {
		t.Helper()
		w := answerTo(s.api, newRequest(method, path, s.key, body))
		var got struct{ Email, Code, Field string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case valid && (w.Code >= 300 || got.Email != normalized):
			t.Errorf("%s %s %s: %d %s, want %s", method, path, body, w.Code, w.Body, normalized)
		case !valid && (w.Code != http.StatusBadRequest || got.Code != "email_or_phone_required" && got.Field != "email"):
			t.Errorf("%s %s %s: %d %s, want a fault of email", method, path, body, w.Code, w.Body)
		}
	}
	for line := range bytes.Lines(data) {
		var c struct {
			Input      string
			Valid      bool
			Normalized string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]string{"email": c.Input})
		s.shop.ok(err)
		answer("POST", "/api/v1/customers", string(body), c.Valid, c.Normalized)
		answer("GET", "/api/v1/customers/lookup?email="+url.QueryEscape(c.Input), "", c.Valid, c.Normalized)
		if !c.Valid && strings.Trim(c.Input, " \t\n\f\r") == "" {
			continue // a blank e-mail takes it away
		}
		if c.Valid { // of nobody else
			body = bytes.Replace(body, []byte("@"), []byte("p@"), 1)
			c.Normalized = strings.Replace(c.Normalized, "@", "p@", 1)
			if local, _, _ := strings.Cut(c.Normalized, "@"); len(local) > 64 || len(c.Normalized) > 254 {
				continue
			}
		}
		answer("PATCH", patched, string(body), c.Valid, c.Normalized)
	}
}

func TestBirthDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		want  birthDate
		valid bool
	}{
		{"1990-02-28", 19900228, true},
		{"2000-02-29", 20000229, true},
		{"0001-01-01", 10101, true},
		{"9999-12-31", 99991231, true},
		{"--05-14", 514, true},
		{"--02-29", 229, true},
		{"--12-31", 1231, true},
		{text: "--02-30"},
		{text: "--13-01"},
		{text: "--00-01"},
		{text: "--5-14"},
		{text: "--0514"},
		{text: "--05-14 "},
		{text: "--"},
		{text: "---05-14"},
		{text: "----05-14"},
		{text: "05-14"},
		{text: "--2000-05-14"},
		{text: ""},
		{text: "1900-02-29"},
		{text: "2023-02-29"},
		{text: "0000-01-01"},
		{text: "1990-13-01"},
		{text: "1990-00-01"},
		{text: "1990-01-00"},
		{text: "1990-1-1"},
		{text: "19900101"},
		{text: "90-01-01"},
		{text: "+1990-01-01"},
		{text: "1990-01-01T00:00"},
		{text: "1990-01-01 "},
		{text: "１９９０-01-01"},
	} {
		got, valid := parseBirthDate(test.text)
		if got != test.want || valid != test.valid {
			t.Errorf("%q: %d, %t", test.text, got, valid)
		}
		if valid && (got.String() != test.text || got.hasYear() && got.day().String() != test.text) {
			t.Errorf("%q is written %s and is day %s", test.text, got, got.day())
		}
	}
}

// TestYearlessBirthDate: a date without a year agrees with those of its day, lends nothing to one that
// has a year, and gets that of one.
func TestYearlessBirthDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		known, other, filled string
		agree                bool
	}{
		{"", "", "", true},
		{"", "--05-14", "--05-14", true},
		{"", "1990-05-14", "1990-05-14", true},
		{"--05-14", "", "--05-14", true},
		{"--05-14", "--05-14", "--05-14", true},
		{"--05-14", "--05-15", "--05-14", false},
		{"--05-14", "1990-05-14", "1990-05-14", true},
		{"--05-14", "1990-06-14", "--05-14", false},
		{"1990-05-14", "--05-14", "1990-05-14", true},
		{"1990-05-14", "--05-15", "1990-05-14", false},
		{"1990-05-14", "1990-05-14", "1990-05-14", true},
		{"1990-05-14", "1991-05-14", "1990-05-14", false},
		{"1992-02-29", "--02-28", "1992-02-29", false},
	} {
		known, _ := parseBirthDate(test.known)
		other, _ := parseBirthDate(test.other)
		if known.agrees(other) != test.agree || other.agrees(known) != test.agree {
			t.Errorf("%q and %q agree: %t", test.known, test.other, !test.agree)
		}
		if got := known.filledBy(other).String(); got != test.filled {
			t.Errorf("%q filled by %q is %q, want %q", test.known, test.other, got, test.filled)
		}
	}
}

// TestBirthdays counts the days of every year by hand.
func TestBirthdays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1990-01-01", "1990-12-31", "1992-02-28", "1992-02-29", "1992-03-01", "--02-29", "--12-31"} {
		b, _ := parseBirthDate(text)
		monthAndDay := text[len(text)-len("02-29"):]
		last := 2022 // the latest birthday so far
		for date := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC); date.Year() < 2033; date = date.AddDate(0, 0, 1) {
			tomorrow := date.AddDate(0, 0, 1)
			is := date.Format("01-02") == monthAndDay || monthAndDay == "02-29" && date.Format("01-02") == "02-28" && tomorrow.Day() == 1
			today := dayOn(date.Date())
			if is {
				last = date.Year()
			}
			if got := b.in(date.Year()) == today; got != is {
				t.Errorf("%s has a birthday on %s: %t", text, today, got)
			}
			if got := b.lastYear(today); got != last {
				t.Errorf("on %s the last birthday of %s was in %d, want %d", today, text, got, last)
			}
		}
	}
}

func TestMergeAttributes(t *testing.T) {
	t.Parallel()
	list := func(text string) (list []attribute) {
		for pair := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(pair, "=")
			list = append(list, attribute{name, value})
		}
		return list
	}
	for _, test := range []struct{ list, changes, want string }{
		{"", "", ""},
		{"a=1 b=2", "", "a=1 b=2"},
		{"", "b=2 a=1", "a=1 b=2"},
		{"a=1 c=3", "b=2 a=4", "a=4 b=2 c=3"},
		{"a=1 b=2", "a= c=", "b=2"},
	} {
		before, changes := list(test.list), list(test.changes)
		if got, want := mergeAttributes(before, changes), list(test.want); !slices.Equal(got, want) {
			t.Errorf("%q with %q is %v", test.list, test.changes, got)
		}
		if !slices.Equal(before, list(test.list)) || !slices.Equal(changes, list(test.changes)) {
			t.Errorf("%q with %q: one was changed", test.list, test.changes)
		}
	}
}

// TestAttributeNumber: numbers are kept exactly, in one spelling. What is a decimal is
// spelled as decimals are.
func TestAttributeNumber(t *testing.T) {
	t.Parallel()
	long := "0." + strings.Repeat("123456789", 20)
	for text, want := range map[string]string{
		"0": "0", "-0.0": "0", "0e999999": "0", "2.50": "2.5", "1e2": "100", "19.432608": "19.432608", "-99.13320900": "-99.133209",
		"0.00001": "0.00001", "1e-6": "0.000001", "1e-7": "1e-7", "0.000000125": "1.25e-7", "-12.5E-9": "-1.25e-8",
		"123456789012345678901": "123456789012345678901", "1234567890123456789012": "1.234567890123456789012e21", "1E21": "1e21",
		"1e20": "100000000000000000000", "100000000000000000000.5": "100000000000000000000.5", "10000000000000000000000": "1e22",
		"1.7e308": "1.7e308", "1e-400": "1e-400", long: long,
		"1.8e308": "", "-1e309": "", "1e99999999999999999999": "", "1e-99999999999999999999": "", "0." + strings.Repeat("1", 199): "",
		"01": "", "+1": "", "1.": "", ".5": "", "1 ": "", "1e": "", "NaN": "", "": "",
	} {
		got, ok := attributeNumber(text)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", text, got, ok)
		}
		if again, ok := attributeNumber(got); ok && again != got {
			t.Errorf("%s became %s, then %s", text, got, again)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := decimal(rnd.Int64N(2*int64(maxDecimal)) - int64(maxDecimal))
		if got, ok := attributeNumber(d.String()); !ok || got != d.String() {
			t.Fatalf("%s: got %q, %v", d, got, ok)
		}
		f := math.Float64frombits(rnd.Uint64())
		if text := strconv.FormatFloat(f, 'e', -1, 64); !math.IsInf(f, 0) && !math.IsNaN(f) {
			got, ok := attributeNumber(text)
			if back, err := strconv.ParseFloat(got, 64); !ok || err != nil || back != f {
				t.Fatalf("%s: got %q, %v", text, got, ok)
			}
		}
	}
}
