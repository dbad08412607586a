package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestRoles holds the table of permissions against what each role is for: + is all, ~ is
// some.
// Panel check 51.
func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[role]string{
		roleOwner: "+audit:read +config:write +customers:edit +customers:erase +customers:find +customers:read +customers:write +data:export +data:import " +
			"+keys:manage +loyalty:read +points:write +redemptions:cancel +requests:read +rewards:read +rewards:write +segments:read +statistics:read +till " +
			"+transactions:read +transactions:return +transactions:write +users:manage +webhooks:manage",
		roleAdmin: "+audit:read +config:write +customers:edit +customers:erase +customers:find +customers:read +customers:write +data:export +data:import " +
			"+keys:manage +loyalty:read +points:write +redemptions:cancel +requests:read +rewards:read +rewards:write +segments:read +statistics:read +till " +
			"+transactions:read +transactions:return +transactions:write ~users:manage +webhooks:manage",
		roleManager: "~audit:read +customers:edit +customers:find +customers:read +customers:write +loyalty:read +points:write +redemptions:cancel " +
			"+rewards:read +rewards:write +segments:read +statistics:read +till +transactions:read +transactions:return +transactions:write",
		roleCashier: "~audit:read +customers:find ~customers:read +customers:write ~redemptions:cancel +rewards:read +rewards:write +till " +
			"~transactions:read ~transactions:return +transactions:write",
		roleViewer:    "~audit:read +customers:find +customers:read ~data:export +loyalty:read +rewards:read +segments:read +statistics:read +transactions:read",
		roleDeveloper: "~audit:read +keys:manage +requests:read +webhooks:manage",
	}
	for _, r := range append(roles, "", "boss") {
		var may []string
		for _, p := range slices.Sorted(maps.Keys(permissions)) {
			if g := r.may(p); g != grantNone {
				may = append(may, []string{"", "~", "+"}[g]+string(p))
			}
		}
		if got := strings.Join(may, " "); got != want[r] {
			t.Errorf("%s may\n%s, want\n%s", r, got, want[r])
		}
		if r.known() != (want[r] != "") {
			t.Errorf("%q is known: %t", r, r.known())
		}
	}
	if roleOwner.may("customers:sell") != grantNone {
		t.Error("an owner may what there is not")
	}
	for p, grants := range permissions {
		if len(grants) != len(roles) {
			t.Errorf("%s has %d grants", p, len(grants))
		}
	}
}

// TestMayManage tries every role on every change of every other one, and of its own.
func TestMayManage(t *testing.T) {
	t.Parallel()
	some := append([]role{""}, roles...)
	for _, by := range some {
		for _, from := range some {
			for _, to := range some {
				for _, self := range []bool{false, true} {
					if self && from != by {
						continue
					}
					err := by.mayManage(from, to, self)
					what := fmt.Sprintf("%q turns %q into %q, self %t: %v", by, from, to, self, err)
					if ok := err == nil; ok && by.may(usersManage) == grantNone {
						t.Error("not of those who manage:", what)
					} else if ok && by != roleOwner && (from == roleOwner || to == roleOwner) {
						t.Error("an owner is touched:", what)
					} else if ok && self && to != "" && !to.within(from) {
						t.Error("raised:", what)
					} else if !ok && by == roleOwner {
						t.Error("an owner may:", what)
					} else if !ok && by == roleAdmin && from != roleOwner && to != roleOwner {
						t.Error("an administrator may:", what)
					}
				}
			}
		}
	}
	// within orders some roles and not others.
	for _, test := range []struct {
		a, b role
		want bool
	}{
		{roleAdmin, roleOwner, true}, {roleOwner, roleAdmin, false}, {roleManager, roleAdmin, true}, {roleCashier, roleManager, true},
		{roleCashier, roleViewer, false}, {roleViewer, roleCashier, false}, {roleDeveloper, roleManager, false}, {roleDeveloper, roleAdmin, true},
	} {
		if got := test.a.within(test.b); got != test.want {
			t.Errorf("%s is within %s: %t", test.a, test.b, got)
		}
	}
	if err := roleAdmin.mayManage("", roleOwner, false); !errors.Is(err, errOwnersAlone) {
		t.Error(err)
	}
}
