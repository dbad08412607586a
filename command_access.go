package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sello/internal/progress"
)

// The commands for API keys, webhooks and users of the panel.

func keyFlags(c *invocation) {
	c.key.RateLimit = defaultRateLimit
	c.keySettings("; sin ella, acceso completo", "; sin ella, sin límite")
	c.more = scopesText()
}

func keyChangeFlags(c *invocation) {
	c.keySettings("", "")
	for _, f := range changeableFlags { // a variable meant for key create must not change a key
		c.written = append(c.written, f.flag)
	}
	c.more = "Lo que no se indica queda como está; none quita un límite, una lista o la fecha\n(-scopes none da acceso completo).\n" + scopesText()
}

func scopesText() string { return "Scopes: " + strings.Join(scopes, ", ") + "." }

// keySettings are the flags for what a key is like, with what it means to leave out
// -scopes or a limit.
func (c *invocation) keySettings(noScopes, unlimited string) {
	orgJSONFlags(c)
	c.set.StringVar(&c.key.Name, "name", "", "`nombre` de la clave")
	c.set.StringVar(&c.scopes, "scopes", "", "`lista` de scopes separados por comas"+noScopes)
	c.chooses("scopes", scopes...)
	c.set.Var(&countFlag{n: &c.key.RateLimit}, "rate-limit", "`solicitudes` por minuto")
	c.set.Var(&countFlag{n: &c.key.DailyLimit}, "daily-limit", "`solicitudes` por día (UTC)"+unlimited)
	c.set.Var(&countFlag{n: &c.key.MonthlyLimit}, "monthly-limit", "`solicitudes` por mes (UTC)"+unlimited)
	c.set.Var(pointsFlag{&c.key.MaxPointsPerOperation}, "max-points-per-operation", "`puntos` que puede dar un solo add, como 500 o 12.5"+unlimited)
	c.set.Var(pointsFlag{&c.key.MaxPointsPerDay}, "max-points-per-day", "`puntos` que pueden dar sus add por día (UTC) en todos los programas, como 500 o 12.5"+unlimited)
	c.set.BoolVar(&c.key.NoProof, "no-proof", false, "gasta puntos sin el código de la tarjeta, donde la organización lo pide: para una tienda en línea en la que el cliente entró con su cuenta")
	c.set.StringVar(&c.ips, "ip", "", "`lista` de direcciones o bloques CIDR permitidos, separados por comas")
	c.set.StringVar(&c.key.Expires, "expires", "", "`fecha` de expiración, como 2027-01-01")
}

// noLimit is the value of a flag that clears a limit, a list or the date of a key.
const noLimit = "none"

// A countFlag is a flag that takes a whole number, or none.
type countFlag struct {
	n    *int
	none bool
}

func (f *countFlag) String() string {
	switch {
	case f.n == nil: // package flag asks a zero one
		return ""
	case f.none:
		return noLimit
	}
	return strconv.Itoa(*f.n)
}

func (f *countFlag) Set(s string) (err error) {
	if f.none = s == noLimit; f.none {
		*f.n = 0
		return nil
	}
	*f.n, err = strconv.Atoi(s)
	return err
}

// A pointsFlag is a flag that takes points above zero, or none.
type pointsFlag struct{ points *decimal }

func (f pointsFlag) String() string {
	if f.points == nil {
		return ""
	}
	return f.points.String()
}

func (f pointsFlag) Set(s string) (err error) {
	if s == noLimit {
		*f.points = 0
		return nil
	}
	if *f.points, err = parseDecimal(s); err == nil && *f.points <= 0 {
		err = errNotNumber
	}
	return err
}

func runKeyCreate(ctx context.Context, c *invocation) error {
	if c.key.Name == "" {
		return &usageError{"falta -name"}
	}
	if err := c.checkKeyFlags(); err != nil {
		return err
	}
	c.key.Scopes, c.key.IPWhitelist = splitList(c.scopes), splitList(c.ips)
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		c.key.Org = org
		return callAndPrint(ctx, c, call, "key/create", c.key, func(w io.Writer, out *createdKey) {
			fmt.Fprintln(w, out.onceText())
		})
	})
}

func (k *createdKey) onceText() string {
	return fmt.Sprintf("%s\n\nGuárdala ahora: no se puede volver a mostrar. Su id es %s", k.Key, k.ID)
}

// checkKeyFlags refuses a limit or a list that is given but empty. It was meant as a
// restriction, and the key must not be made without one.
func (c *invocation) checkKeyFlags() (err error) {
	c.set.Visit(func(f *flag.Flag) {
		value := f.Value.String()
		switch f.Name {
		case "scopes", "ip":
			if len(splitList(value)) == 0 {
				err = usageErrorf("-%s está vacía", f.Name)
			}
		case "expires":
			if value == "" {
				err = usageErrorf("-%s está vacía", f.Name)
			}
		case "rate-limit", "daily-limit", "monthly-limit":
			if n, _ := strconv.Atoi(value); n <= 0 && value != noLimit {
				err = usageErrorf("-%s debe ser mayor a 0", f.Name)
			}
		}
	})
	return err
}

// changeableFlags are the flags of key change, with the fields of keyRequest.
var changeableFlags = [...]struct{ flag, field string }{
	{"name", "name"}, {"scopes", "scopes"}, {"rate-limit", "rateLimit"}, {"daily-limit", "dailyLimit"}, {"monthly-limit", "monthlyLimit"},
	{"max-points-per-operation", "maxPointsPerOperation"}, {"max-points-per-day", "maxPointsPerDay"}, {"ip", "ipWhitelist"}, {"expires", "expires"}, {"no-proof", "noProof"},
}

func runKeyChange(ctx context.Context, c *invocation) error {
	if err := c.checkKeyFlags(); err != nil {
		return err
	}
	in := keyChange{keyRequest: c.key, ID: c.args[0]}
	for _, f := range changeableFlags {
		if c.given[f.flag] {
			in.Given = append(in.Given, f.field)
		}
	}
	switch {
	case len(in.Given) == 0:
		return &usageError{"falta decir qué cambia, como -rate-limit 600 o -max-points-per-day 1000"}
	case in.Name == noLimit:
		return &usageError{"una API key necesita un nombre"}
	}
	if c.scopes != noLimit {
		in.Scopes = splitList(c.scopes)
	}
	if c.ips != noLimit {
		in.IPWhitelist = splitList(c.ips)
	}
	if in.Expires == noLimit {
		in.Expires = ""
	}
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		in.Org = org
		return callAndPrint(ctx, c, call, "key/change", in, func(w io.Writer, out *listedKey) {
			fmt.Fprintf(w, "%s (%s) cambiada\n", out.ID, out.Name)
		})
	})
}

func keyRotateFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.DurationVar(&c.overlap, "overlap", 24*time.Hour, "`tiempo` que la clave anterior sigue valiendo, como 24h; 0s: ninguno")
}

func runKeyRotate(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return callAndPrint(ctx, c, call, "key/rotate", rotateRequest{org, c.args[0], c.overlap}, func(w io.Writer, out *rotatedKey) {
			fmt.Fprintf(w, "%s\nLa anterior, %s, expira %s\n", out.onceText(), out.Previous.ID, momentText(out.Previous.ExpiresAt))
		})
	})
}

func ticketSecretFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.BoolVar(&c.rotate, "rotate", false, "hace otro secreto; el anterior vale mientras se puede reclamar lo que firmó")
}

func runTicketSecret(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return callAndPrint(ctx, c, call, "key/ticket", ticketSecretRequest{org, c.args[0], c.rotate}, func(w io.Writer, out *ticketSecret) {
			fmt.Fprintf(w, "%s\n\nGuárdalo ahora en la caja: no se puede volver a mostrar. Su número es %d\n", out.Secret, *out.TicketNumber)
		})
	})
}

func runKeyList(ctx context.Context, c *invocation) error {
	c.onlyReads()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out []listedKey
		if err := call(ctx, "key/list", orgRequest{org}, &out); err != nil {
			return err
		}
		var clock clockReport // decides which keys have expired
		if err := call(ctx, "clock", struct{}{}, &clock); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "ID\tNOMBRE\tÚLTIMOS 4\tSCOPES\tDIRECCIONES\tLÍMITES\tESTADO\tÚLTIMO USO")
			for _, k := range out {
				fmt.Fprintf(tab, "%s\t%s\t…%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Last4, listText(k.Scopes, "todos"), listText(k.IPWhitelist, "todas"),
					k.limitsText(), k.stateText(clock.Now), momentText(k.LastUsedAt))
			}
			tab.Flush()
		})
	})
}

// listText returns a list as the flags of key create take it, or all if it is empty.
func listText(list []string, all string) string {
	if len(list) == 0 {
		return all
	}
	return strings.Join(list, ",")
}

func (k *listedKey) limitsText() string {
	text := strconv.Itoa(k.RateLimit) + "/min"
	if k.DailyLimit != nil {
		text += fmt.Sprintf(" %d/día", *k.DailyLimit)
	}
	if k.MonthlyLimit != nil {
		text += fmt.Sprintf(" %d/mes", *k.MonthlyLimit)
	}
	if k.MaxPointsPerOperation != nil {
		text += fmt.Sprintf(" %v puntos/add", *k.MaxPointsPerOperation)
	}
	if k.MaxPointsPerDay != nil {
		text += fmt.Sprintf(" %v puntos/día", *k.MaxPointsPerDay)
	}
	if k.NoProof {
		text += " sin tarjeta"
	}
	if k.TicketNumber != nil {
		text += fmt.Sprintf(", firma tickets como %d", *k.TicketNumber)
	}
	return text
}

func (k *listedKey) stateText(now instant) string {
	switch {
	case k.RevokedAt != 0:
		return "revocada " + momentText(k.RevokedAt)
	case k.ExpiresAt != 0 && k.ExpiresAt <= now:
		return "expirada " + momentText(k.ExpiresAt)
	case k.ExpiresAt != 0:
		return "válida hasta " + momentText(k.ExpiresAt)
	}
	return "activa"
}

func momentText(at instant) string {
	if at == 0 {
		return "nunca"
	}
	return at.time().Format("2006-01-02T15:04Z")
}

func runKeyRevoke(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return callAndPrint(ctx, c, call, "key/revoke", revokeRequest{org, c.args[0]}, func(w io.Writer, out *listedKey) {
			fmt.Fprintf(w, "%s (%s) revocada\n", out.ID, out.Name)
		})
	})
}

func webhookReplayFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.Uint64Var(&c.fromEvent, "from", 0, "`número` del primer evento que se vuelve a enviar")
}

// callWebhook runs an operation on the webhook that the command line names.
func callWebhook[T any](ctx context.Context, c *invocation, operation string, show func(io.Writer, *T)) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return callAndPrint(ctx, c, call, operation, webhookRequest{org, c.args[0], c.fromEvent}, show)
	})
}

func runWebhookList(ctx context.Context, c *invocation) error {
	c.onlyReads()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return callAndPrint(ctx, c, call, "webhook/list", orgRequest{org}, func(w io.Writer, out *[]listedWebhook) {
			tab, now := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), instantOf(time.Now())
			fmt.Fprintln(tab, "WEBHOOK\tEVENTOS\tENVIADO HASTA\tESTADO\tURL")
			for _, l := range *out {
				fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\n", l.Key, strings.Join(l.Events, ","), l.Sent, l.stateText(now), l.URL)
			}
			tab.Flush()
		})
	})
}

func (l *listedWebhook) stateText(now instant) string {
	switch {
	case l.Status != statusActive:
		return "inactivo"
	case !l.HasSecret:
		return "sin secreto: sello webhook secret " + l.Key
	case l.Paused != 0:
		return fmt.Sprintf("en pausa desde %s (%s): sello webhook resume %s", momentText(l.Paused), webhookWhy(allTexts().In("es"), l.Why), l.Key)
	case l.Failing != 0:
		return fmt.Sprintf("falla desde %s (%s); próximo intento %s", momentText(l.Failing), webhookWhy(allTexts().In("es"), l.Why), inTime(l.Next.time().Sub(now.time())))
	case l.Pending > 0:
		return fmt.Sprintf("%s por mirar, desde %s", plural(int(l.Pending), "evento", "eventos"), momentText(l.Oldest))
	}
	return "al día"
}

// inTime says how far away a moment is.
func inTime(d time.Duration) string {
	if d <= 0 {
		return "ahora"
	}
	return "en " + progress.Time(d)
}

func runWebhookSecret(ctx context.Context, c *invocation) error {
	return callWebhook(ctx, c, "webhook/secret", func(w io.Writer, out *shownSecret) {
		fmt.Fprintf(w, "%s\n\nGuárdalo ahora en quien recibe: no se puede volver a mostrar. El anterior, si había, vale 24 horas más\n", out.Secret)
	})
}

func runWebhookTest(ctx context.Context, c *invocation) error {
	failed := ""
	err := callWebhook(ctx, c, "webhook/test", func(w io.Writer, out *webhookTest) {
		if failed = webhookWhy(allTexts().In("es"), out.Why); out.OK {
			fmt.Fprintf(w, "entregado: HTTP %d\n", out.Status)
		}
	})
	if err == nil && failed != "" {
		return fmt.Errorf("no se entregó: %s", failed)
	}
	return err
}

func runWebhookResume(ctx context.Context, c *invocation) error {
	return callWebhook(ctx, c, "webhook/resume", func(w io.Writer, _ *struct{}) { fmt.Fprintf(w, "%s sigue\n", c.args[0]) })
}

func runWebhookReplay(ctx context.Context, c *invocation) error {
	if c.fromEvent == 0 {
		return &usageError{"falta -from, el número del primer evento que se vuelve a enviar"}
	}
	return callWebhook(ctx, c, "webhook/replay", func(w io.Writer, _ *struct{}) {
		fmt.Fprintf(w, "%s sigue desde el evento %d\n", c.args[0], c.fromEvent)
	})
}

// panelLinkFlag names the address of the panel. A server that has the file open knows it better.
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
		in := inviteRequest{org, c.email, role(c.role), address}
		return callAndPrint(ctx, c, call, "user/invite", in, func(w io.Writer, out *invited) {
			fmt.Fprint(w, out.text("la invitación"), c.startFirst())
		})
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
		return callAndPrint(ctx, c, call, "user/withdraw", inviteRequest{Org: org, Email: c.email}, func(w io.Writer, out *listedInvite) {
			fmt.Fprintf(w, "%s: invitación a %s retirada; el enlace ya no vale\n", strings.TrimSpace(c.email), out.Org)
		})
	})
}

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
		return callAndPrint(ctx, c, call, "user/list", struct{}{}, func(w io.Writer, out *[]listedUser) {
			if len(*out) == 0 {
				fmt.Fprintln(w, "ningún usuario: sello user invite invita al primero")
				return
			}
			tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "EMAIL\tNOMBRE\tROLES\tSEGUNDO FACTOR\tSESIONES\tÚLTIMO INGRESO\tESTADO")
			for _, u := range *out {
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
		return callAndPrint(ctx, c, call, operation, in, func(w io.Writer, _ *struct{}) {
			fmt.Fprintf(w, "%s: %s\n", strings.TrimSpace(in.Email), done)
		})
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
	in := userRequest{Email: c.args[0], NoFactor: c.noFactor, Panel: address}
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		return callAndPrint(ctx, c, call, "user/reset", in, func(w io.Writer, out *invited) {
			fmt.Fprint(w, out.text("sirve para poner otra contraseña,"), c.startFirst())
		})
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
		return callAndPrint(ctx, c, call, "user/logout", in, func(w io.Writer, out *loggedOut) {
			fmt.Fprintln(w, out)
		})
	})
}
