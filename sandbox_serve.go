package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"sello/internal/tz"
	"sello/internal/webhook"
)

// The routes that only a sandbox has, and how it is served (contract §24). They take any key with
// organization:read; to begin anew deletes everything, and needs customers:erase (contract §31).
// Routes that write run in transactions of their own, and ignore an Idempotency-Key.

// codeClockBackwards is an error that no other server gives: openapi.json does not have it.
var codeClockBackwards = errorCode{"clock_backwards", http.StatusBadRequest, "El reloj de pruebas solo avanza"}

// testMode is the value of Sello-Mode.
var testMode = []string{"test"}

func (s *sandbox) routes() []route {
	const scope, erase = "organization:read", "customers:erase"
	return []route{
		{"GET /api/v1/test/clock", scope, s.getClock},
		{"POST /api/v1/test/clock", scope, s.moveClock},
		{"POST /api/v1/test/reset", erase, s.postReset},
		{"POST /api/v1/test/sales", erase, s.postSales},
	}
}

//go:embed openapi-sandbox.json
var sandboxPaths []byte

// sandboxOpenAPI is openapi.json with the sandbox's routes before the others.
func sandboxOpenAPI() []byte {
	paths := bytes.Trim(bytes.TrimSpace(sandboxPaths), "{}")
	text := bytes.Replace(openAPI, []byte(`"tags": [`), []byte(`"tags": [{"name": "Pruebas", "description": "El reloj y los datos de un servidor de pruebas."},`), 1)
	return bytes.Replace(text, []byte(`"paths": {`), append(append([]byte(`"paths": {`), paths...), ",\n"...), 1)
}

// A clockShape is what GET /test/clock answers.
type clockShape struct {
	Now     instant `json:"now"`
	NextDue instant `json:"nextDue"` // when something next changes by itself; null: never
}

func (s *sandbox) getClock(r *request) action {
	return func(t *txn) (any, error) { return s.clockAt(t) }
}

func (s *sandbox) clockAt(t *txn) (clockShape, error) {
	next, err := s.engine.nextDue(t.Tx, 0, t.now)
	return clockShape{t.now, next}, err
}

// A movedShape is what moving the clock answers.
type movedShape struct {
	clockShape
	Events     map[string]uint64 `json:"events"`     // how many of each type there were
	FirstEvent *uint64           `json:"firstEvent"` // null: none
	LastEvent  *uint64           `json:"lastEvent"`
}

// farthestMove is how far one request may move the clock, in years.
const farthestMove = 10

func (s *sandbox) moveClock(r *request) action {
	r.apart = true
	to, now := r.now, r.now.time().In(r.cfg.zone)
	text, given := r.fields.text("now", 100)
	duration, lasts := r.fields.text("advance", 100)
	switch most, ok := instantOf(now.AddDate(farthestMove, 0, 0)), false; {
	case given && lasts:
		r.fields.invalid("advance", "no va con now")
	case given:
		if to, ok = parseMoment(text, r.cfg.zone, false); !ok {
			r.fields.invalid("now", "debe ser una fecha ISO 8601")
		} else if to < r.now {
			r.fields.fail(newError(codeClockBackwards).on("now").with("now", r.now))
		} else if to > most {
			r.fields.invalid("now", "no puede distar más de 10 años")
		}
	case lasts:
		if to, ok = addDuration(r.now, duration, r.cfg.zone); !ok || to > most {
			r.fields.invalid("advance", "debe ser una duración ISO 8601, como P90D o PT36H, de 10 años como máximo")
		}
	default:
		r.fields.invalid("advance", "es requerido, o now")
	}
	org := r.cfg.Number
	return func(*txn) (any, error) {
		ctx := context.WithoutCancel(r.Context())
		first, err := s.move(ctx, org, to)
		if err != nil {
			return nil, err
		}
		return read(ctx, s.engine, org, max(to, instantOf(s.engine.now())), func(t *txn) (reply, error) {
			shape := movedShape{Events: map[string]uint64{}}
			var err error
			if shape.clockShape, err = s.clockAt(t); err != nil {
				return reply{}, err
			}
			for e, err := range t.feed.from(first + 1) {
				if err != nil {
					return reply{}, err
				}
				shape.Events[eventKinds[e.Kind].name]++
				if shape.FirstEvent == nil {
					shape.FirstEvent = &e.Seq
				}
				shape.LastEvent = &e.Seq
			}
			return reply{http.StatusOK, shape}, nil
		})
	}
}

// move moves the clock forward. It returns the last event before the move.
func (s *sandbox) move(ctx context.Context, org uint32, to instant) (last uint64, err error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	if now := instantOf(s.engine.now()); to < now { // another one has moved it meanwhile
		return 0, newError(codeClockBackwards).on("now").with("now", now)
	}
	last, err = read(ctx, s.engine, org, 0, func(t *txn) (uint64, error) {
		n, err := t.count()
		if err != nil {
			return 0, err
		}
		return n.Events, nil
	})
	if err != nil {
		return 0, err
	}
	return last, s.engine.passTime(ctx, s.machine, to)
}

func (s *sandbox) postReset(r *request) action {
	r.apart = true
	return func(*txn) (any, error) {
		ctx := context.WithoutCancel(r.Context())
		if err := s.reset(ctx); err != nil {
			return nil, err
		}
		// It answers as GET /test/clock does.
		return read(ctx, s.engine, 1, instantOf(s.engine.now()), func(t *txn) (reply, error) {
			shape, err := s.clockAt(t)
			return reply{http.StatusOK, shape}, err
		})
	}
}

// A salesShape is what POST /test/sales answers: how much there is now.
type salesShape struct {
	clockShape
	Customers uint64 `json:"customers"` // who have come; the others come later
	Sales     uint64 `json:"sales"`     // returns counted
}

const sandboxCustomers = 10_000 // made up at most

func (s *sandbox) postSales(r *request) action {
	r.apart = true
	customers := r.wholeField("customers", demoCustomers, 1, sandboxCustomers)
	days := r.wholeField("days", 90, 1, sandboxDays)
	seed := r.wholeField("seed", demoSeed, 0, 1_000_000_000)
	return func(*txn) (any, error) {
		ctx := context.WithoutCancel(r.Context())
		if err := s.makeSales(ctx, uint64(seed), customers, days); err != nil {
			return nil, err
		}
		return read(ctx, s.engine, 1, instantOf(s.engine.now()), func(t *txn) (reply, error) {
			n, err := t.count()
			if err != nil {
				return reply{}, err
			}
			shape := salesShape{Customers: n.Customers, Sales: n.Sales}
			shape.clockShape, err = s.clockAt(t)
			return reply{http.StatusOK, shape}, err
		})
	}
}

func sandboxFlags(c *invocation) {
	visible := c.set
	c.set = flag.NewFlagSet("", flag.ContinueOnError)
	serveFlags(c) // what a sandbox has no flags for is as usual
	c.set = visible
	c.cardsBeside = true
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

// sandboxInput reads the document, and the moment at which the clock begins.
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

// start returns what the person who started the sandbox needs.
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
