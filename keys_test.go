package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCreateKey shows what keys cannot be.
func TestCreateKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	for _, test := range []struct {
		reason string
		in     keyRequest
		field  string // at fault; "": none
	}{
		{"a name is enough", keyRequest{Name: "POS"}, ""},
		{"every scope", keyRequest{Name: "POS", Scopes: scopes}, ""},
		{"limits and whitelist", keyRequest{Name: "POS", RateLimit: 1, DailyLimit: 1, MonthlyLimit: 1, IPWhitelist: []string{"10.0.0.0/8", "::1"}}, ""},
		{"a date that is not over", keyRequest{Name: "POS", Expires: "2026-03-02"}, ""},
		{"no name", keyRequest{}, "name"},
		{"a name of spaces", keyRequest{Name: "  "}, "name"},
		{"a name too long", keyRequest{Name: strings.Repeat("x", 101)}, "name"},
		{"a scope that is none", keyRequest{Name: "POS", Scopes: []string{"points:read", "points:all"}}, "scopes"},
		{"a limit below zero", keyRequest{Name: "POS", RateLimit: -1}, "rateLimit"},
		{"a daily limit below zero", keyRequest{Name: "POS", DailyLimit: -1}, "dailyLimit"},
		{"a monthly limit below zero", keyRequest{Name: "POS", MonthlyLimit: -1}, "monthlyLimit"},
		{"an address that is none", keyRequest{Name: "POS", IPWhitelist: []string{"10.0.0.0/8", "10.0.0"}}, "ipWhitelist"},
		{"a date that is over", keyRequest{Name: "POS", Expires: "2026-03-01"}, "expires"},
		{"now", keyRequest{Name: "POS", Expires: "2026-03-02T10:00:00Z"}, "expires"},
		{"a date that is none", keyRequest{Name: "POS", Expires: "soon"}, "expires"},
	} {
		_, err := do(s, func(t *txn) (any, error) {
			_, _, err := t.createKey(test.in)
			return nil, err
		})
		fault, refused := errors.AsType[*operatorError](err)
		if refused != (test.field != "") || refused && fault.field != test.field || !refused && err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	keys := ask(s, func(t *txn) ([]*apiKey, error) { return t.listKeys() })
	if len(keys) != 4 || !slices.IsSortedFunc(keys, func(a, b *apiKey) int { return strings.Compare(a.ID.String(), b.ID.String()) }) {
		t.Errorf("%d keys are listed, want 4, oldest first", len(keys))
	}

	k, text := s.newKey(keyRequest{})
	if k.Last4 != text[len(text)-4:] {
		t.Errorf("shows %s of %s", k.Last4, text)
	}
	for _, e := range s.entries() {
		if bytes.Contains(e.Value, []byte(text[len(keyPrefix):])) || bytes.Contains(e.Key, []byte(text[len(keyPrefix):])) {
			t.Errorf("the key's text is kept at %x", e.Key)
		}
	}
	first := must(s, func(t *txn) (*apiKey, error) { return t.revokeKey(k.ID.String()) })
	s.pass(time.Hour)
	if again := must(s, func(t *txn) (*apiKey, error) { return t.revokeKey(k.ID.String()) }); again.RevokedAt != first.RevokedAt {
		t.Errorf("revoked at %s, and again at %s", first.RevokedAt, again.RevokedAt)
	}
	for _, none := range []string{"", "x", (id{1}).String(), strings.ToUpper(k.ID.String())} {
		if _, err := do(s, func(t *txn) (*apiKey, error) { return t.revokeKey(none) }); err == nil {
			t.Errorf("revoked %q", none)
		}
	}
}
