package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

func keyFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.StringVar(&c.key.Name, "name", "", "`nombre` de la clave")
	c.set.StringVar(&c.scopes, "scopes", "", "`lista` de scopes separados por comas; sin ella, acceso completo")
	c.set.IntVar(&c.key.RateLimit, "rate-limit", defaultRateLimit, "`solicitudes` por minuto")
	c.set.IntVar(&c.key.DailyLimit, "daily-limit", 0, "`solicitudes` por día (UTC); sin ella, sin límite")
	c.set.IntVar(&c.key.MonthlyLimit, "monthly-limit", 0, "`solicitudes` por mes (UTC); sin ella, sin límite")
	c.set.StringVar(&c.ips, "ip", "", "`lista` de direcciones o bloques CIDR permitidos, separados por comas")
	c.set.StringVar(&c.key.Expires, "expires", "", "`fecha` de expiración, como 2027-01-01")
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
		return c.print(out, func(w io.Writer) {
			fmt.Fprintf(w, "%s\n\nGuárdala ahora: no se puede volver a mostrar. Su id es %s\n", out.Key, out.ID)
		})
	})
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
		case "rate-limit", "daily-limit", "monthly-limit":
			if n, _ := strconv.Atoi(value); n <= 0 {
				err = usageErrorf("-%s debe ser mayor a 0", f.Name)
			}
		}
	})
	return err
}

func runKeyList(ctx context.Context, c *invocation) error {
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
			fmt.Fprintln(tab, "ID\tNOMBRE\tTERMINA EN\tSCOPES\tDIRECCIONES\tLÍMITES\tESTADO\tÚLTIMO USO")
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
