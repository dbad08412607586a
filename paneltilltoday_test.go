package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestTillOpensAfterAll: whatever a member did today, and whatever it was about, the till opens and
// lists what was done there. A line whose record is damaged is left out and logged.
func TestTillOpensAfterAll(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	ana, log := s.shop.customer("ana"), new(strings.Builder)
	s.api.log = slog.New(slog.NewTextHandler(log, nil))
	at := "/panel/caja/" + ana.String()
	s.led(roleOwner, at+"/venta", "totalAmount", "70")
	broken, _, _ := strings.Cut(s.led(roleOwner, at+"/venta", "totalAmount", "90"), "?")
	actions := slices.Clone(auditActions)
	for _, f := range panelForms() {
		if f.action != "" && tillDone[f.action] == "" {
			actions = append(actions, f.action)
		}
	}
	for _, action := range actions {
		must(s.shop, func(t *txn) (any, error) {
			t.by = creator{Type: byUser, ID: s.users[roleOwner]}
			return nil, errors.Join(t.audit.note(action, ana.String(), nil), t.audit.note(action, id{9}.String(), nil), t.audit.note(action, "", nil))
		})
	}
	opens := func(reason string, left int, texts ...string) {
		t.Helper()
		log.Reset()
		for _, page := range []string{"/panel/caja", "/panel", activityPath, "/panel/auditoria", "/panel/equipo/" + s.users[roleOwner].String() + "/actividad"} {
			w := s.open(roleOwner, page)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %s: %d\n%s", reason, page, w.Code, mainOf(w.Body.String()))
			}
			if page == "/panel/caja" {
				s.wants(reason, w.Body.String(), texts...)
				if n := strings.Count(log.String(), "line left out"); n != left {
					t.Errorf("%s: %d lines left out\n%s", reason, n, log)
				}
			}
		}
	}
	opens("all actions", 2, "<b>70.00 MXN</b>", "<b>90.00 MXN</b>") // cancelled redemptions that are not there
	_, of, _ := strings.Cut(broken, "/venta/")
	sold, _ := parseID(of)
	store := func(value []byte) []byte {
		return must(s.shop, func(t *txn) ([]byte, error) {
			seq, _, err := getUint(t.Tx, orgKey('T', t.org).id(sold))
			was, _, missing := t.Get(t.sales.key(seq))
			return bytes.Clone(was), errors.Join(err, missing, t.Put(t.sales.key(seq), value))
		})
	}
	whole := store([]byte{0xff})
	opens("a damaged sale", 3, "<b>70.00 MXN</b>", "!90.00")
	store(whole)
}
