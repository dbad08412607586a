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
)

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
	c.set.StringVar(&c.ips, "ip", "", "`lista` de direcciones o bloques CIDR permitidos, separados por comas")
	c.set.StringVar(&c.key.Expires, "expires", "", "`fecha` de expiración, como 2027-01-01")
}

// noLimit is the value of a flag that clears what a key has.
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
		var out createdKey
		if err := call(ctx, "key/create", c.key, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprint(w, out.onceText(), "\n") })
	})
}

// onceText tells a new key.
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
	{"max-points-per-operation", "maxPointsPerOperation"}, {"max-points-per-day", "maxPointsPerDay"}, {"ip", "ipWhitelist"}, {"expires", "expires"},
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
		var out listedKey
		if err := call(ctx, "key/change", in, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprintf(w, "%s (%s) cambiada\n", out.ID, out.Name) })
	})
}

func keyRotateFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.DurationVar(&c.overlap, "overlap", 24*time.Hour, "`tiempo` que la clave anterior sigue valiendo, como 24h; 0s: ninguno")
}

func runKeyRotate(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out rotatedKey
		if err := call(ctx, "key/rotate", rotateRequest{org, c.args[0], c.overlap}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			fmt.Fprintf(w, "%s\nLa anterior, %s, expira %s\n", out.onceText(), out.Previous.ID, momentText(out.Previous.ExpiresAt))
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
		var out listedKey
		if err := call(ctx, "key/revoke", revokeRequest{org, c.args[0]}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { fmt.Fprintf(w, "%s (%s) revocada\n", out.ID, out.Name) })
	})
}
