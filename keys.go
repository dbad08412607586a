package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// A keyRequest describes a new key.
type keyRequest struct {
	Org          string   `json:"org"`
	Name         string   `json:"name"`
	Scopes       []string `json:"scopes,omitempty"`
	RateLimit    int      `json:"rateLimit,omitempty"`
	DailyLimit   int      `json:"dailyLimit,omitempty"`
	MonthlyLimit int      `json:"monthlyLimit,omitempty"`
	IPWhitelist  []string `json:"ipWhitelist,omitempty"`
	Expires      string   `json:"expires,omitempty"`
}

// createKey makes an API key and returns it with its text. The text is not stored
// and cannot be shown again.
func (t *txn) createKey(in keyRequest) (*apiKey, string, error) {
	k := &apiKey{
		ID: t.id(), Org: t.org, Name: trimBlanks(in.Name), Scopes: in.Scopes, CreatedAt: t.now,
		RateLimit: cmp.Or(in.RateLimit, defaultRateLimit), DailyLimit: in.DailyLimit, MonthlyLimit: in.MonthlyLimit,
		IPWhitelist: in.IPWhitelist,
	}
	switch {
	case !t.cfg.Organization.Plan.APIAccess:
		return nil, "", operatorErrorf("", "%s", codePlanWithoutAPI.message)
	case k.Name == "" || utf8.RuneCountInString(k.Name) > 100 || strings.ContainsFunc(k.Name, forbidden):
		return nil, "", operatorErrorf("name", "la API key necesita un nombre de 1 a 100 caracteres, sin caracteres de control")
	}
	for _, limit := range [...]struct {
		field string
		n     int
	}{{"rateLimit", k.RateLimit}, {"dailyLimit", k.DailyLimit}, {"monthlyLimit", k.MonthlyLimit}} {
		if limit.n < 0 {
			return nil, "", operatorErrorf(limit.field, "los límites deben ser mayores a 0")
		}
	}
	for _, s := range k.Scopes {
		if !slices.Contains(scopes, s) {
			return nil, "", operatorErrorf("scopes", "scope desconocido: %q (hay: %s)", s, strings.Join(scopes, ", "))
		}
	}
	for _, s := range k.IPWhitelist {
		if _, err := parseNetwork(s); err != nil {
			return nil, "", operatorErrorf("ipWhitelist", "dirección o bloque CIDR no válido: %q", s)
		}
	}
	if in.Expires != "" {
		at, ok := parseMoment(in.Expires, t.cfg.zone, true)
		if !ok {
			return nil, "", operatorErrorf("expires", "la expiración no es una fecha como 2027-01-01: %q", in.Expires)
		}
		if at <= t.now {
			return nil, "", operatorErrorf("expires", "la fecha de expiración debe ser futura: %q", in.Expires)
		}
		k.ExpiresAt = at
	}
	var random [32]byte
	t.bytes(random[:])
	text := newAPIKey(random)
	k.Last4 = text[len(text)-4:]
	hash := keyHash(text)
	if err := t.Put(orgKey('k', t.org).id(k.ID), hash[:]); err != nil {
		return nil, "", err
	}
	return k, text, t.saveKey(hash, k)
}

func (t *txn) saveKey(hash [32]byte, k *apiKey) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return t.Put(keyHashKey(hash), raw)
}

// listKeys returns the organization's keys, oldest first.
func (t *txn) listKeys() ([]*apiKey, error) {
	keys := []*apiKey{}
	for e, err := range scan(t.Tx, orgKey('k', t.org), false) {
		if err != nil {
			return nil, err
		}
		k, err := keyByHash(t.Tx, [32]byte(e.Value))
		if err == nil && k == nil {
			err = unreadable(keyHashKey([32]byte(e.Value)))
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// revokeKey ends a key for good. Revoking one again changes nothing.
func (t *txn) revokeKey(given string) (*apiKey, error) {
	keyID, ok := parseID(given)
	if strings.Contains(given, keyPrefix) { // the key itself, a secret: no error may repeat it
		return nil, operatorErrorf("", "una API key se revoca por su id, que muestra sello key list, no por su texto")
	}
	if !ok {
		return nil, operatorErrorf("", "no hay ninguna API key %q", given)
	}
	value, ok, err := t.Get(orgKey('k', t.org).id(keyID))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, operatorErrorf("", "no hay ninguna API key %q", given)
	}
	hash := [32]byte(value)
	k, err := keyByHash(t.Tx, hash)
	if err == nil && k == nil {
		err = unreadable(keyHashKey(hash))
	}
	if err != nil || k.RevokedAt != 0 {
		return k, err
	}
	k.RevokedAt = t.now
	return k, t.saveKey(hash, k)
}
