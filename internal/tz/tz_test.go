package tz

import (
	"testing"
	"time"
)

// TestLoad loads zones from the program, not from the machine.
func TestLoad(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	for name, want := range map[string]int{"UTC": 0, "America/Mexico_City": -6 * 3600, "Asia/Kolkata": 5*3600 + 1800, "Europe/Madrid": 3600} {
		zone, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, got := time.Date(2026, 1, 15, 12, 0, 0, 0, zone).Zone(); got != want || zone.String() != name {
			t.Errorf("%s: %d seconds, want %d", zone, got, want)
		}
	}
	for _, name := range []string{"", "Local", "America", "america/mexico_city", "/etc/localtime", "../UTC", "Marte/Olimpo"} {
		if _, err := Load(name); err == nil {
			t.Errorf("%q is no zone", name)
		}
	}
}
