package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestUserCommands runs the commands for users without a server and beside one.
func TestUserCommands(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	step := func(line string, code int, out, errs, reason string) {
		t.Helper()
		gotCode, gotOut, gotErr := s.run(line)
		if gotCode != code || !strings.Contains(gotOut, out) || !strings.Contains(gotErr, errs) || (errs == "") != (gotErr == "") {
			t.Errorf("sello %s: %s\nexit %d, want %d with %q and %q\n%s%s", line, reason, gotCode, code, out, errs, gotOut, gotErr)
		}
	}
	step("user", 2, "", "sello user invite, sello user withdraw, sello user list, sello user disable", "the first of two words")
	step("user list", 0, "ningún usuario: sello user invite invita al primero", "", "nobody yet")
	step("user invite -email ana@ejemplo.mx", 2, "", "falta -role: owner, admin, manager, cashier, viewer o developer", "no role")
	step("user invite -role owner", 2, "", "falta -email", "no e-mail")
	step("user invite -email ana -role owner", 2, "", "El email no tiene un formato válido", "no e-mail")
	step("user invite -email ana@ejemplo.mx -role boss", 2, "", "El rol no existe; hay: owner, ", "no such role")
	step("user invite -email ana@ejemplo.mx -role owner -panel puntos.example.mx", 2, "", "-panel debe tener la forma https://puntos.example.mx", "no URL")
	step("user invite -email ana@ejemplo.mx -role owner -panel off", 2, "", "con -panel off no hay adónde invitar", "nowhere")
	step("user invite -email ana@ejemplo.mx -role owner", 0, "http://127.0.0.1:8080/panel/invitacion/", "", "the address of a server without flags")
	step("user invite -email ana@ejemplo.mx -role owner -panel https://puntos.example.mx", 0, "https://puntos.example.mx/panel/invitacion/", "", "another address")
	const startFirst = "Se abrirá cuando haya un servidor: sello serve"
	step("user invite -email ana@ejemplo.mx -role owner", 0, startFirst, "", "it leads nowhere yet")
	step("user list", 0, "cafe-luna:owner (invitado hasta 20", "", "who is invited, until when")
	for _, line := range []string{"user disable", "user enable", "user logout", "user reset"} {
		step(line+" ANA@ejemplo.mx", 1, "", "ana@ejemplo.mx todavía no aceptó la invitación: sello user invite hace otro enlace y sello user withdraw lo retira", "who is invited is no user yet")
	}
	step("user reset eva@ejemplo.mx", 1, "", "No hay ningún usuario con ese email", "nor is who is not")
	step("user withdraw", 2, "", "falta -email", "no e-mail")
	step("user withdraw -email eva@ejemplo.mx", 1, "", "no hay ninguna invitación abierta de eva@ejemplo.mx a cafe-luna", "who is not invited")
	step("user withdraw -email ANA@ejemplo.mx", 0, "ANA@ejemplo.mx: invitación a cafe-luna retirada; el enlace ya no vale", "", "in the form that it is typed in")
	step("user withdraw -email ana@ejemplo.mx", 1, "", "no hay ninguna invitación abierta", "again")
	step("user list", 0, "ningún usuario: sello user invite invita al primero", "", "nobody is left")
	step("user reset ana@ejemplo.mx", 1, "", "No hay ningún usuario con ese email", "who is invited no longer")
	step("user disable", 2, "", "uso: sello user disable [opciones] EMAIL", "an argument missing")
	step("user logout", 2, "", "uso: sello user logout [opciones] EMAIL", "an argument missing")
	step("user logout -all x@ejemplo.mx", 2, "", "no lleva argumentos", "an argument too many")
	step("user logout -all", 0, "0 sesiones terminadas", "", "nobody")
	step("user operator ana@ejemplo.mx yes", 2, "", "EMAIL on|off", "neither on nor off")

	server, _ := s.start("serve")
	base := strings.TrimSuffix(server.base, "/api/v1")
	var made invited
	if err := json.Unmarshal([]byte(s.ok("user invite -json -email ana@ejemplo.mx -role owner -panel https://otra.mx")), &made); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.Link, base+"/panel/invitacion/") {
		t.Errorf("the link is %s, and the server is at %s", made.Link, base)
	}
	if out := s.ok("user invite -email ana@ejemplo.mx -role owner"); strings.Contains(out, startFirst) {
		t.Errorf("the server is there: %s", out)
	}
	server.stop()
	public := strings.Fields("-panel off")
	other, _ := s.start("serve " + strings.Join(public, " "))
	step("user invite -email eva@ejemplo.mx -role owner", 1, "", "el servidor no sirve el panel: inícialo con -panel", "a link would lead nowhere")
	other.stop()
}

// TestInvitationsListed: the list of users has the open invitations, of users and of others,
// and taking one back is in the audit log as in the panel.
func TestInvitationsListed(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("eva@ejemplo.mx", roleOwner)
	a, ctx := s.admin(), withOperator(t.Context(), "luis")
	shown := func() (list []string) {
		t.Helper()
		users, err := a.listUsers(ctx, struct{}{})
		s.ok(err)
		for i := range users {
			list = append(list, users[i].Email+" "+users[i].rolesText()+" "+users[i].stateText())
		}
		return list
	}
	invite := func(email string, r role) {
		t.Helper()
		_, err := a.inviteUser(ctx, inviteRequest{Org: "cafe-luna", Email: email, Role: r})
		s.ok(err)
	}
	invite("sol@ejemplo.mx", roleCashier)
	invite("ana@ejemplo.mx", roleAdmin)
	_, err := a.resetUser(ctx, userRequest{Email: "eva@ejemplo.mx"}) // no invitation
	s.ok(err)
	const end = "2026-03-05T10:00Z"
	eva := "eva@ejemplo.mx cafe-luna:owner activo"
	same(t, "users", shown(), []string{
		"ana@ejemplo.mx cafe-luna:admin (invitado hasta " + end + ") invitado", eva,
		"sol@ejemplo.mx cafe-luna:cashier (invitado hasta " + end + ") invitado",
	})
	users, err := a.listUsers(ctx, struct{}{})
	s.ok(err)
	raw, err := json.Marshal(users[0])
	s.ok(err)
	same(t, "JSON", string(raw), `{"id":null,"email":"ana@ejemplo.mx","name":"","organizations":[],"operator":false,"secondFactor":false,"sessions":0,`+
		`"createdAt":null,"lastLoginAt":null,"disabledAt":null,"lockedAt":null,"invitations":[{"organization":"cafe-luna","role":"admin",`+
		`"createdAt":"2026-03-02T10:00:00.000Z","expiresAt":"2026-03-05T10:00:00.000Z"}]}`)

	done, err := a.withdrawInvitation(ctx, inviteRequest{Org: "cafe-luna", Email: "sol@ejemplo.mx"})
	s.ok(err)
	all := s.audited(auditFilter{})
	if got := all[len(all)-1]; got != `Command luis user.uninvited [{"field":"role","before":"cashier","after":null}]` || done.Role != roleCashier {
		t.Errorf("%s, %+v", got, done)
	}
	_, err = a.logOutUser(ctx, userRequest{}) // everybody: it takes back what is left, and does not stumble over who is no user
	s.ok(err)
	same(t, "users after all", shown(), []string{eva})
	invite("sol@ejemplo.mx", roleCashier)
	s.clock = s.clock.add(invitationLife)
	same(t, "users when the end has come", shown(), []string{eva})
}

// TestUserOperations: what the commands do to users who are there.
func TestUserOperations(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, eva := s.person("ana@ejemplo.mx", roleOwner), s.person("eva@ejemplo.mx", roleCashier)
	a, ctx := s.admin(), withOperator(t.Context(), "luis")
	_, token := s.enters("eva@ejemplo.mx")
	last := func() string {
		all := s.audited(auditFilter{})
		return all[len(all)-1]
	}
	_, err := a.disableUser(ctx, userRequest{Email: " EVA@ejemplo.mx"})
	s.ok(err)
	if got := last(); got != `Command luis user.changed [{"field":"disabledAt","before":null,"after":"2026-03-02T10:00:00.000Z"}]` || s.member(token) != nil {
		t.Errorf("disabled: %s; still in: %t", got, s.member(token) != nil)
	}
	_, err = a.disableUser(ctx, userRequest{Email: "ana@ejemplo.mx"})
	wantPeople(t, err, errLastOwner, "the last owner is disabled")
	_, err = a.enableUser(ctx, userRequest{Email: "eva@ejemplo.mx"})
	s.ok(err)
	_, err = a.makeOperator(ctx, userRequest{Email: "eva@ejemplo.mx", On: true})
	s.ok(err)
	if got := last(); got != `Command luis user.changed [{"field":"operator","before":false,"after":true}]` {
		t.Error(got)
	}
	// An owner may not reset the password of who runs the server.
	owner, _ := s.enters("ana@ejemplo.mx")
	wantPeople(t, tryBy(s, owner, func(t *txn) error { _, _, err := t.people.resetLink(owner, eva); return err }), errElsewhere, "an operator's password")

	s.enters("eva@ejemplo.mx")
	s.enters("eva@ejemplo.mx")
	list, err := a.listUsers(ctx, struct{}{})
	s.ok(err)
	var shown []string
	for i := range list {
		shown = append(shown, fmt.Sprint(list[i].Email, " ", list[i].rolesText(), " ", list[i].Sessions, " ", list[i].stateText()))
	}
	same(t, "users", shown, []string{"ana@ejemplo.mx cafe-luna:owner 2 activo", "eva@ejemplo.mx cafe-luna:cashier,opera el servidor 2 activo"})
	raw, err := json.Marshal(list)
	s.ok(err)
	if bytes.Contains(raw, []byte("asswor")) {
		t.Errorf("%s", raw)
	}
	done, err := a.logOutUser(ctx, userRequest{Email: "eva@ejemplo.mx"})
	s.ok(err)
	if done.Sessions != 2 || last() != `Command luis session.ended [{"field":"sessions","before":null,"after":2}]` {
		t.Errorf("%+v, %s", done, last())
	}
	done, err = a.logOutUser(ctx, userRequest{})
	s.ok(err)
	if done.Sessions != 2 { // ana's own
		t.Errorf("%+v", done)
	}
	made, err := a.resetUser(ctx, userRequest{Email: "ana@ejemplo.mx", NoFactor: true, Panel: "https://puntos.example.mx"})
	s.ok(err)
	link, ok := strings.CutPrefix(made.Link, "https://puntos.example.mx/panel/invitacion/")
	if !ok || made.Expires != s.clock.add(invitationLife) {
		t.Error(made)
	}
	in, err := s.logins().accept(s.Context(), &acceptance{Token: link, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	if in.User != ana || in.Token != "" {
		t.Errorf("%+v", in)
	}
	_, err = s.logins().accept(s.Context(), &acceptance{Token: link, Password: "otro tren azul 9"}, s.clock)
	wantPeople(t, err, errInvitationSpent, "the link again")
}
