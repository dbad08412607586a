package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// panelLinkFlag names the address of the panel, which a server that has the file open knows
// better.
func panelLinkFlag(c *invocation) {
	c.set.StringVar(&c.panel, "panel", "", "`dirección` del panel, para el enlace, como https://puntos.example.mx; un servidor que tenga abierto el archivo dice la suya; sin él ni ella, "+usualPanel)
}

// linkAddress returns the address of the panel that a link begins with, if it is given.
func (c *invocation) linkAddress() (string, error) {
	at, on, err := parsePanelAddress(c.panel)
	if err == nil && !on {
		err = &usageError{"con -panel off no hay adónde invitar"}
	}
	return at.origin(), err
}

func userInviteFlags(c *invocation) {
	orgJSONFlags(c)
	panelLinkFlag(c)
	emailFlag(c)
	c.set.StringVar(&c.role, "role", "", "`rol` que tendrá: "+roleList())
	for _, r := range roles {
		c.chooses("role", append(c.choices["role"], string(r))...)
	}
	c.written = append(c.written, "role") // a variable must not choose who comes in
}

// emailFlag is of the command line alone: a variable must not choose who comes in.
func emailFlag(c *invocation) {
	c.set.StringVar(&c.email, "email", "", "`email` de la persona")
	c.written = append(c.written, "email")
}

func runUserInvite(ctx context.Context, c *invocation) error {
	switch {
	case c.email == "":
		return &usageError{"falta -email"}
	case c.role == "":
		return &usageError{"falta -role: " + roleList()}
	}
	address, err := c.linkAddress()
	if err != nil {
		return err
	}
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out invited
		if err := call(ctx, "user/invite", inviteRequest{org, c.email, role(c.role), address}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprint(w, out.text("la invitación"), c.startFirst()) })
	})
}

func userWithdrawFlags(c *invocation) {
	orgJSONFlags(c)
	emailFlag(c)
}

func runUserWithdraw(ctx context.Context, c *invocation) error {
	if c.email == "" {
		return &usageError{"falta -email"}
	}
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out listedInvite
		if err := call(ctx, "user/withdraw", inviteRequest{Org: org, Email: c.email}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			fmt.Fprintf(w, "%s: invitación a %s retirada; el enlace ya no vale\n", strings.TrimSpace(c.email), out.Org)
		})
	})
}

// text tells a link.
func (i *invited) text(what string) string {
	return fmt.Sprintf("%s\n\nDale este enlace: %s vale %d horas y un solo uso. No se puede volver a mostrar\n", i.Link, what, invitationHours)
}

// startFirst says that a link leads nowhere while no server has the file open.
func (c *invocation) startFirst() string {
	if _, served := overSocket(c.db); served {
		return ""
	}
	return "Se abrirá cuando haya un servidor: sello serve\n"
}

func runUserList(ctx context.Context, c *invocation) error {
	c.onlyReads()
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		var out []listedUser
		if err := call(ctx, "user/list", struct{}{}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			if len(out) == 0 {
				fmt.Fprintln(w, "ningún usuario: sello user invite invita al primero")
				return
			}
			tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "EMAIL\tNOMBRE\tROLES\tSEGUNDO FACTOR\tSESIONES\tÚLTIMO INGRESO\tESTADO")
			for i := range out {
				u := &out[i]
				factor := "no"
				if u.SecondFactor {
					factor = "sí"
				}
				fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", u.Email, u.Name, u.rolesText(), factor, u.Sessions, momentText(u.LoggedInAt), u.stateText())
			}
			tab.Flush()
		})
	})
}

func (u *listedUser) rolesText() string {
	var list []string
	for _, m := range u.Members {
		text := m.Org + ":" + string(m.Role)
		if m.DisabledAt != 0 {
			text += " (inhabilitado)"
		}
		list = append(list, text)
	}
	for _, i := range u.Invitations {
		list = append(list, fmt.Sprintf("%s:%s (invitado hasta %s)", i.Org, i.Role, momentText(i.Expires)))
	}
	if u.Operator {
		list = append(list, "opera el servidor")
	}
	return listText(list, "ninguno")
}

func (u *listedUser) stateText() string {
	switch {
	case u.ID == nil:
		return "invitado"
	case u.DisabledAt != 0:
		return "inhabilitado " + momentText(u.DisabledAt)
	case u.LockedAt != 0:
		return "bloqueado " + momentText(u.LockedAt) + ": sello user reset " + u.Email
	}
	return "activo"
}

// userCommand is a command that does one thing to the user that it names.
func userCommand(operation, done string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		return c.onUser(ctx, operation, userRequest{Email: c.args[0]}, done)
	}
}

func (c *invocation) onUser(ctx context.Context, operation string, in userRequest, done string) error {
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		var out struct{}
		if err := call(ctx, operation, in, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", strings.TrimSpace(in.Email), done) })
	})
}

func runUserOperator(ctx context.Context, c *invocation) error {
	on, ok := map[string]bool{"on": true, "off": false}[c.args[1]]
	if !ok {
		return usageErrorf("uso: sello user operator EMAIL on|off: %q", c.args[1])
	}
	done := "ya no opera el servidor"
	if on {
		done = "opera el servidor: ve sus páginas en el panel"
	}
	return c.onUser(ctx, "user/operator", userRequest{Email: c.args[0], On: on}, done)
}

func userResetFlags(c *invocation) {
	jsonFlag(c)
	panelLinkFlag(c)
	c.set.BoolVar(&c.noFactor, "totp", false, "el enlace quita también el segundo factor, de quien perdió el teléfono y los códigos")
	c.written = append(c.written, "totp")
}

func runUserReset(ctx context.Context, c *invocation) error {
	address, err := c.linkAddress()
	if err != nil {
		return err
	}
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		var out invited
		if err := call(ctx, "user/reset", userRequest{Email: c.args[0], NoFactor: c.noFactor, Panel: address}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprint(w, out.text("sirve para poner otra contraseña,"), c.startFirst()) })
	})
}

func (o *loggedOut) String() string {
	return plural(o.Sessions, "sesión terminada", "sesiones terminadas") + ", " + plural(o.Links, "enlace retirado", "enlaces retirados")
}

func userLogoutFlags(c *invocation) {
	jsonFlag(c)
	c.set.BoolVar(&c.everybody, "all", false, "termina las sesiones de todos y retira todos los enlaces abiertos; no lleva EMAIL")
	c.written = append(c.written, "all")
}

func runUserLogout(ctx context.Context, c *invocation) error {
	in := userRequest{}
	if !c.everybody {
		in.Email = c.args[0]
	}
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		var out loggedOut
		if err := call(ctx, "user/logout", in, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			fmt.Fprintln(w, &out)
		})
	})
}
