package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"sello/internal/tz"
	"sello/internal/webhook"
)

func sandboxFlags(c *invocation) {
	visible := c.set
	c.set = flag.NewFlagSet("", flag.ContinueOnError)
	serveFlags(c) // what a sandbox has no flags for is as usual
	c.set = visible
	c.db = ""
	db := c.set.Lookup("db")
	db.DefValue, db.Usage = "", "`archivo` de pruebas; sin ella, todo está en memoria y se pierde al terminar"
	c.written = append(c.written, "db") // SELLO_DB is the shop's
	c.set.StringVar(&c.addr, "addr", "127.0.0.1:8081", "`dirección` en la que escucha la API")
	c.set.StringVar(&c.document, "document", "", "`archivo` con el documento de la organización (- lee la entrada estándar); sin ella, el de ejemplo")
	c.set.StringVar(&c.startAt, "now", "", "`fecha` con la que empieza el reloj, como 2026-11-24T10:00-06:00; sin ella, la de la máquina, o la del archivo")
	c.written = append(c.written, "document", "now")
	c.set.StringVar(&c.webhookAllow, "webhook-allow", "127.0.0.0/8,::1/128", "`lista` de direcciones o bloques CIDR, no públicos, a los que también se envían webhooks")
	logFlags(c)
	jsonFlag(c)
}

// sandboxInput reads the document, and when the clock is to begin.
func (c *invocation) sandboxInput() (document []byte, now instant, err error) {
	if document, now = demoDocument, instantOf(time.Now()); c.document != "" {
		if document, err = readInput(c.document, c.stdin); err != nil {
			return nil, 0, err
		}
	}
	if c.startAt == "" {
		return document, now, nil
	}
	zone := time.UTC
	var in struct {
		Organization struct{ Settings struct{ Timezone string } }
	}
	if json.Unmarshal(document, &in) == nil {
		if own, err := tz.Load(in.Organization.Settings.Timezone); err == nil {
			zone = own
		}
	}
	now, ok := parseMoment(c.startAt, zone, false)
	if !ok {
		return nil, 0, usageErrorf("-now no es una fecha como 2026-11-24T10:00-06:00: %q", c.startAt)
	}
	if year := now.time().In(zone).Year(); year < 1970 || year > 9990 {
		return nil, 0, usageErrorf("-now debe ser una fecha entre 1970 y 9990: %q", c.startAt)
	}
	return document, now, nil
}

// runSandbox serves a sandbox.
func runSandbox(ctx context.Context, c *invocation) error {
	if isDatabase(c.db) {
		return usageErrorf("-db de sello sandbox es un archivo: una base de datos es de una tienda")
	}
	document, now, err := c.sandboxInput()
	if err != nil {
		return err
	}
	s := &sandbox{machine: newMovedMachine(now)}
	c.machine, c.inMemory = s.machine, c.db == ""
	c.panelIdle, c.panelLongest = sandboxSessions, sandboxSessions
	ctx = withOperator(ctx, sandboxOperator)
	check := func(ctx context.Context, served *service) error {
		s.engine = served.api.engine
		s.engine.keepsEvents = true
		served.api.mode, served.api.more, served.api.enter = testMode, s.routes(), s.enter
		served.api.references.own = referenceFrom(sandboxOpenAPI())
		served.api.take(len(served.api.routes()) - len(served.api.more))
		return s.open(ctx, c, document)
	}
	return c.serve(ctx, check, func(served *service) error {
		started, err := s.start(ctx, c, served)
		if err != nil {
			return err
		}
		if c.json { // a line, as what reads the output of a server goes on
			e := json.NewEncoder(c.stdout)
			e.SetEscapeHTML(false)
			return e.Encode(started)
		}
		started.tell(c.stdout)
		return nil
	})
}

// sandboxStarted is the command's output.
type sandboxStarted struct {
	panelEntry
	Key      string          `json:"key"`
	Base     string          `json:"base"`
	Now      instant         `json:"now"`
	Webhooks []sandboxSecret `json:"webhooks"`
	File     string          `json:"file,omitempty"` // "": it is in memory
}

type sandboxSecret struct {
	Key    string `json:"key"`
	Secret string `json:"secret"`
}

// start returns what whoever started it needs.
func (s *sandbox) start(ctx context.Context, c *invocation, served *service) (*sandboxStarted, error) {
	started := &sandboxStarted{Key: s.mark.Key, Base: "http://" + served.listener.Addr().String() + "/api/v1", Now: instantOf(s.engine.now()), Webhooks: []sandboxSecret{}}
	if !c.inMemory {
		started.File = c.fullPath()
	}
	_, link := c.panelServed(served.listener.Addr())
	var err error
	if started.panelEntry, err = enterPanel(ctx, s.engine, 1, served.api.logins, link); err != nil {
		return nil, err
	}
	started.Webhooks, err = read(ctx, s.engine, 1, started.Now, func(t *txn) ([]sandboxSecret, error) {
		list := []sandboxSecret{}
		for _, w := range t.cfg.Webhooks {
			_, state, err := t.webhooks.get(w.Key)
			if err != nil {
				return nil, err
			}
			if len(state.Secrets) > 0 {
				list = append(list, sandboxSecret{w.Key, webhook.SecretText(state.Secrets[0].Secret)})
			}
		}
		return list, nil
	})
	return started, err
}

func (s *sandboxStarted) tell(w io.Writer) {
	fmt.Fprintf(w, "Pruebas: el reloj va por %s y solo avanza cuando se le pide, y con el tiempo.\n\n", s.Now)
	if s.Panel != "" {
		fmt.Fprintf(w, "El panel, con la cuenta de %s:\n\n  %s\n\n", s.Email, s.Panel)
	}
	if s.Password != "" {
		fmt.Fprintf(w, "Si pide la contraseña: %s\n\n", s.Password)
	}
	for _, h := range s.Webhooks {
		fmt.Fprintf(w, "Secreto del webhook %s: %s\n\n", h.Key, h.Secret)
	}
	fmt.Fprintf(w, `La API, en %[1]s, con una clave que no expira:

  export SELLO_KEY=%[2]s

  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/test/clock
  curl -H "Authorization: Bearer $SELLO_KEY" -H "Content-Type: application/json" -d '{"advance":"P90D"}' %[1]s/test/clock
  curl -H "Authorization: Bearer $SELLO_KEY" -H "Content-Type: application/json" -d '{"customers":100,"days":90}' %[1]s/test/sales
  curl -H "Authorization: Bearer $SELLO_KEY" -X POST %[1]s/test/reset

Ctrl-C termina; `, s.Base, s.Key)
	if s.File == "" {
		fmt.Fprintln(w, "todo estaba en memoria y se pierde")
	} else {
		fmt.Fprintf(w, "los datos quedan en %s\n", s.File)
	}
}
