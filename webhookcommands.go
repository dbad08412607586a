package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

func webhookReplayFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.Uint64Var(&c.fromEvent, "from", 0, "`número` del primer evento que se vuelve a enviar")
}

// callWebhook runs an operation on the webhook that the command line names.
func callWebhook[T any](ctx context.Context, c *invocation, operation string, show func(io.Writer, *T)) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out T
		if err := call(ctx, operation, webhookRequest{org, c.args[0], c.fromEvent}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) { show(w, &out) })
	})
}

func runWebhookList(ctx context.Context, c *invocation) error {
	c.onlyReads()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out []listedWebhook
		if err := call(ctx, "webhook/list", orgRequest{org}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			tab, now := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), instantOf(time.Now())
			fmt.Fprintln(tab, "WEBHOOK\tEVENTOS\tENVIADO HASTA\tESTADO\tURL")
			for i := range out {
				fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\n", out[i].Key, strings.Join(out[i].Events, ","), out[i].Sent, out[i].stateText(now), out[i].URL)
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
	return "en " + timeText(d)
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
