package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sello/internal/disk"
	"sello/internal/nearest"
	"sello/internal/progress"
	"sello/internal/sheet"
	"sello/internal/wallclock"
)

// A command, its flags and their environment variables, the checks that several commands share, and
// the line that shows how far a long command has come.

// An environment is what a command uses of the process that it runs in.
type environment struct {
	getenv         func(string) string
	names          func() []string // of the variables that getenv knows
	stdin          io.Reader
	stdout, stderr io.Writer
}

// A command is an entry in the table of commands.
type command struct {
	name  string // one or two words
	args  string // the names of its arguments, which follow the flags
	about string
	run   func(ctx context.Context, c *invocation) error
	flags func(c *invocation)
}

// An invocation is a command with its flags and arguments.
type invocation struct {
	environment
	set     *flag.FlagSet
	given   map[string]bool     // the flags on the command line or in the environment
	fromEnv map[string]bool     // the flags in the environment
	written []string            // flags that are taken from the command line alone
	choices map[string][]string // values of flags, for completion; a list for a flag that takes several
	args    []string
	table   []command
	longer  string // the commands whose names go on after this one's

	db   string // path of the file, or address of the database; dbName is what may be shown
	from string // where sello copy takes everything from, likewise; "": db
	to   string // where sello copy puts it
	json bool
	more string // the end of the help text, after the flags

	addr              string
	trusted           string
	tlsCert, tlsKey   string
	redirect          string // address that sends browsers to HTTPS
	maxConns          int
	maxConnsPerSource int
	backups           backupPlan
	memory            int64 // bytes; 0: the machine decides
	pgConns           int   // most connections to the database
	metrics           string
	logLevel          slog.Level // of the lines that are not a request's
	loggedFrom        int        // lowest status of the requests that are logged

	org       string
	version   uint64 // of the configuration; 0: the current one
	dryRun    bool
	schema    bool
	sample    bool // the command writes a sample, and takes no file
	since     string
	statement string
	ignore    []string
	mapped    [][2]string // headings, and the columns that they name
	raw       bool
	full      bool
	segment   string // key of the segment of an export's customers; "": all

	separator rune // between the cells of an export; 0 if it is not told

	key    keyRequest
	scopes string
	ips    string

	decimal   rune            // of an import's numbers; 0 if it is not told
	dates     sheet.DateOrder // of an import
	encoding  sheet.Encoding  // of the file of an import
	program   string          // that an import's points come into
	noWelcome bool

	system     string // system whose export is imported; "": none is named
	samePerson bool   // of an import: one equal contact is enough

	panel        string   // address of the panel, as given
	unused       []string // variables that have no effect
	panelAt      panelAddress
	panelOn      bool
	cards        string // what -cards says
	cardsAt      panelAddress
	cardsAddr    string // where the pages of customers are listened to; "": at addr
	cardsBeside  bool   // they are beside the panel, at its address
	hsts         bool
	panelIdle    time.Duration
	panelLongest time.Duration

	email     string
	role      string
	everybody bool // the command concerns all users, and takes no e-mail
	noFactor  bool

	overlap   time.Duration // of a rotated key
	rotate    bool          // makes another secret for tickets
	fromEvent uint64        // first event of a replay

	document string            // of a sandbox; "": the sample
	startAt  string            // when its clock begins
	inMemory bool              // it has no file
	machine  wallclock.Machine // that the time is taken from; nil: the one that sello runs on

	webhookAllow string // networks that are not public and have receivers
	receivers    []netip.Prefix
	audit        auditRequest
	limit        int // entries of the audit log

	made        string // path of the data file, if the command made it
	hostUnknown bool   // nobody has found the host of -db
	readOnly    bool   // write nothing to the file, nor beside it
	noCopy      bool   // migrate without a copy of the file
	migrates    bool   // migrate a database too
	memSize     int    // size of the memtables, as in disk.Options
}

// parse parses flags, which may stand before, between or after the arguments. A
// flag that is not given is taken from its environment variable, if it has one and that is
// set.
func (c *invocation) parse(cmd command, args []string) error {
	for {
		if err := c.set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				c.help(cmd)
				return err
			}
			return &usageError{flagFault(c.set, err)}
		}
		if args = c.set.Args(); len(args) == 0 {
			break
		}
		c.args, args = append(c.args, args[0]), args[1:]
	}
	c.given, c.fromEnv = map[string]bool{}, map[string]bool{}
	c.set.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	var err error
	c.set.VisitAll(func(f *flag.Flag) {
		value := c.getenv(variable(f.Name))
		if c.given[f.Name] || value == "" || err != nil || slices.Contains(c.written, f.Name) {
			return
		}
		c.given[f.Name], c.fromEnv[f.Name] = true, true
		if setErr := c.set.Set(f.Name, value); setErr != nil {
			err = &usageError{badValue(variable(f.Name), strconv.Quote(value), f)}
		}
	})
	if err != nil {
		return err
	}
	want := len(strings.Fields(cmd.args))
	if c.schema || c.sample || c.everybody {
		want = 0
	}
	if len(c.args) != want {
		if want == 0 {
			text := fmt.Sprintf("sello %s no lleva argumentos: %s", cmd.name, shownWord(strings.Join(c.args, " ")))
			if c.longer != "" {
				text += "; hay también " + c.longer
			}
			return &usageError{text}
		}
		return usageErrorf("uso: sello %s [opciones] %s", cmd.name, cmd.args)
	}
	return nil
}

func variable(flagName string) string {
	return "SELLO_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// otherVariables are variables of sello that no flag has: documentation and tests use them, and a
// container gets variables of ports and services where a service is called sello. A name that ends
// in _ is the beginning of names.
var otherVariables = []string{
	"SELLO_KEY", "SELLO_URL", "SELLO_ORIGIN", "SELLO_PORT", "SELLO_PORT_", "SELLO_SERVICE_",
	"SELLO_TEST_", "SELLO_SCREENSHOTS",
}

// checkVariables refuses a variable that is named like a flag's but is of no flag: a misspelt name
// would otherwise have no effect, and nobody would notice.
func (c *invocation) checkVariables() error {
	var known []string
	for _, cmd := range c.table {
		of := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		of.dbFlag()
		cmd.flags(of)
		of.set.VisitAll(func(f *flag.Flag) {
			if !slices.Contains(of.written, f.Name) {
				known = append(known, strings.TrimPrefix(variable(f.Name), "SELLO_"))
			}
		})
	}
	for _, name := range slices.Sorted(slices.Values(c.names())) {
		of, ours := strings.CutPrefix(name, "SELLO_")
		if !ours || c.getenv(name) == "" || slices.Contains(known, of) || isOther(name) {
			continue
		}
		text := "variable de entorno desconocida: " + name
		if near := nearest.Of(of, known); near != "" {
			text += " (¿SELLO_" + near + "?)"
		}
		return &usageError{text}
	}
	return nil
}

func isOther(name string) bool {
	return slices.ContainsFunc(otherVariables, func(other string) bool {
		return name == other || strings.HasSuffix(other, "_") && strings.HasPrefix(name, other)
	})
}

func (c *invocation) help(cmd command) {
	fmt.Fprintf(c.stdout, "Uso: sello %s\n\n%s.\n\n", strings.TrimSpace(cmd.name+" [opciones] "+cmd.args), strings.ToUpper(cmd.about[:1])+cmd.about[1:])
	c.set.VisitAll(func(f *flag.Flag) {
		kind, about := flag.UnquoteUsage(f)
		fmt.Fprintf(c.stdout, "  %s\n        %s", strings.TrimSpace("-"+f.Name+" "+kind), about)
		if !slices.Contains([]string{"", "false", "0", "0s"}, f.DefValue) {
			fmt.Fprintf(c.stdout, " (por omisión %s)", f.DefValue)
		}
		if !slices.Contains(c.written, f.Name) {
			fmt.Fprintf(c.stdout, " [%s]", variable(f.Name))
		}
		fmt.Fprintln(c.stdout)
	})
	if c.more != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", c.more)
	}
}

// chooses says which values a flag has, for completion.
func (c *invocation) chooses(name string, values ...string) {
	if c.choices == nil {
		c.choices = map[string][]string{}
	}
	c.choices[name] = values
}

func (c *invocation) dbFlag() {
	c.set.StringVar(&c.db, "db", "sello.db", "`archivo` de datos, o dirección de una base de datos PostgreSQL, como postgres://usuario@servidor/sello")
	c.pgConns = commandConns
}

// dbName is what may be shown of -db: a database has no password in it.
func (c *invocation) dbName() string {
	if !isDatabase(c.db) {
		return c.db
	}
	if c.hostUnknown && hasPassword(c.db) {
		return "postgres://…"
	}
	name, _ := databaseName(c.db) // checkDatabase has refused what has none
	return name
}

// errAddress refuses what names neither a data file nor a database. It does not repeat the text, in
// which there may be a password.
var errAddress = &usageError{"la dirección de la base de datos no se entiende: use postgres://usuario@servidor/base"}

// checkPaths returns errAddress if there is an address of a database where a file is to be. For a
// data file isPath decides; other files may have any name that is no address.
func (c *invocation) checkPaths() error {
	paths := slices.Clone(c.args)
	for _, name := range []string{"backup-dir", "document", "since", "statement", "tls-cert", "tls-key"} {
		if f := c.set.Lookup(name); f != nil {
			paths = append(paths, f.Value.String())
		}
	}
	if slices.ContainsFunc(paths, mayBeDatabase) {
		return errAddress
	}
	return nil
}

// checkDatabase returns an error if -db is neither a path nor the address of a database, or
// if -pg-conns is wrong. No text of it has the address, in which there may be a password.
func (c *invocation) checkDatabase() error {
	if !isDatabase(c.db) {
		if !isPath(c.db) {
			return errAddress
		}
		if c.given["pg-conns"] {
			return &usageError{"-pg-conns va con una base de datos en -db"}
		}
		return nil
	}
	if _, ok := databaseName(c.db); !ok {
		return &usageError{"-db debe tener la forma postgres://usuario:contraseña@servidor:5432/base, o servidor:5432,otro:5432 si son varios; en la contraseña, los signos % @ / ? # se escriben %25 %40 %2F %3F %23"}
	}
	if c.pgConns < commandConns {
		return &usageError{"-pg-conns debe ser al menos 5"}
	}
	return nil
}

func jsonFlag(c *invocation) {
	c.set.BoolVar(&c.json, "json", false, "escribe el resultado en JSON")
}

func orgJSONFlags(c *invocation) {
	orgFlag(c)
	jsonFlag(c)
}

func orgFlag(c *invocation) {
	c.set.StringVar(&c.org, "org", "", "`slug` de la organización; puede faltar donde hay una sola")
}

func (c *invocation) print(v any, text func(io.Writer)) error {
	if !c.json {
		text(c.stdout)
		return nil
	}
	e := json.NewEncoder(c.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func splitList(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// Samples of what the commands read, to begin with.

//go:embed demo.json
var demoDocument []byte

// sampleSheets are files to import, by their kind.
var sampleSheets = map[string]string{
	importCustomers: `Nombre,Apellido,Correo,Teléfono,Cumpleaños,Puntos
María,García,maria@example.com,55 1234 5678,14/05/1990,120
José,Núñez,jose@example.com,,,85
Ana,López,,33 1234 5678,02/11/1985,
`,
	importSales: `Ticket,Fecha,Correo,Teléfono,Tipo,Total,Producto,Cantidad,Precio
T-1,23/11/2025 10:15,maria@example.com,,Compra,318,GRANO-500,1,260
T-1,23/11/2025 10:15,maria@example.com,,Compra,318,CAFE-LATTE,1,58
T-2,23/11/2025 17:40,,33 1234 5678,Compra,84,CAFE-AMERICANO,2,42
T-2,24/11/2025 09:05,,33 1234 5678,Devolución,42,CAFE-AMERICANO,1,42
`,
	importPoints: `Referencia,Correo,Teléfono,Puntos,Categoría,Comentario,Vencen
NAVIDAD-1,maria@example.com,,50,Campaña,Regalo de Navidad,31/01/2030
NAVIDAD-2,,33 1234 5678,50,Campaña,Regalo de Navidad,31/01/2030
AJUSTE-7,jose@example.com,,-20,Ajuste,Se dieron dos veces,
`,
}

// sampleFlag is of commands that read a file.
func sampleFlag(c *invocation) {
	c.set.BoolVar(&c.sample, "sample", false, "escribe un archivo de ejemplo, para empezar; no lleva ARCHIVO")
}

// progress shows how far a long command has come, where standard error is a terminal.
func (c *invocation) progress(what string) *progress.Line {
	return progress.New(c.stderr, what, "faltan")
}

// telling runs fn with a context in which the operations of this process say how far they have
// come, and shows that.
func (c *invocation) telling(ctx context.Context, what string, fn func(context.Context) error) error {
	var done disk.Progress
	return c.progress(what).During(done.Done, func() error { return fn(disk.WithProgress(ctx, &done)) })
}

func panelFlags(c *invocation) {
	limits := usualSessionLimits()
	c.set.StringVar(&c.panel, "panel", "", "`dirección` con la que se abre el panel, como https://puntos.example.mx, u off, que no lo sirve; sin ella, la propia si es de esta máquina, y si no, off")
	c.set.BoolVar(&c.hsts, "hsts", true, "con -tls-cert, las páginas del panel dicen al navegador que use solo HTTPS con este nombre, durante un año")
	c.set.DurationVar(&c.panelIdle, "panel-idle", limits.idle, "`tiempo` sin uso tras el que termina una sesión del panel, de al menos 5m")
	c.set.DurationVar(&c.panelLongest, "panel-longest", limits.longest, "`tiempo` tras el que termina una sesión del panel en todo caso")
}

// leastIdle is the least that -panel-idle may be: whoever reads a page for longer would lose
// what is typed next.
const leastIdle = 5 * time.Minute

func (c *invocation) checkPanel() (err error) {
	c.panelAt, c.panelOn, err = parsePanelAddress(c.panel)
	switch {
	case err != nil:
		return err
	case c.panelIdle < leastIdle:
		return &usageError{"-panel-idle debe ser de al menos 5m"}
	case c.panelLongest < c.panelIdle:
		return &usageError{"-panel-longest no puede ser menor que -panel-idle"}
	}
	return nil
}

// panelServed returns the address of the panel of a server that listens at an address, and the
// text that its links begin with; "" if the server has no panel. Without -panel it has one only
// where nobody else can reach it.
func (c *invocation) panelServed(at net.Addr) (address panelAddress, link string) {
	switch listens, err := netip.ParseAddrPort(at.String()); {
	case !c.panelOn:
		return panelAddress{}, ""
	case c.panelAt.url != nil:
		return c.panelAt, c.panelAt.origin()
	case err != nil || !listens.Addr().Unmap().IsLoopback():
		return panelAddress{}, ""
	case c.tlsCert != "":
		address = panelAddress{&url.URL{Scheme: "https", Host: at.String()}}
		return address, address.origin()
	}
	return panelAddress{}, "http://" + at.String()
}

// The pages of customers are at the name that -cards says, on the API's address or on one of their
// own, and in demo and sandbox beside the panel.

func cardsFlags(c *invocation) {
	c.set.StringVar(&c.cards, "cards", "", "`dirección` de las tarjetas de los clientes, como https://club.example.mx, con un nombre que no es el del panel; sin ella no hay")
	c.set.StringVar(&c.cardsAddr, "cards-addr", "", "`dirección` en la que escuchan las tarjetas; sin ella, la de -addr, para lo que llega con el nombre de -cards")
}

func parseCardsAddress(text string) (panelAddress, error) {
	return addressFlag{"-cards", "https://club.example.mx", "las tarjetas están siempre en /t/"}.parse(text)
}

// checkCards returns an error if the flags of the cards are wrong. The name of their address is
// neither the panel's nor the API's: whatever has it is theirs.
func (c *invocation) checkCards() (err error) {
	if c.cards == "" {
		if c.cardsAddr != "" {
			err = &usageError{"-cards-addr va con -cards, que dice con qué dirección se abren"}
		}
		return err
	}
	if c.cardsAt, err = parseCardsAddress(c.cards); err != nil {
		return err
	}
	c.cardsBeside = false
	name := hostName(c.cardsAt.url.Host)
	switch {
	case c.panelAt.url != nil && hostName(c.panelAt.url.Host) == name:
		return usageErrorf("-cards no puede tener el nombre del panel, %s: usa otro, como club.%[1]s", name)
	case c.cardsAddr == "" && panelAddress{}.allows(c.cardsAt.url.Host):
		return usageErrorf("-cards con el nombre de esta máquina, %s, va con -cards-addr: en -addr están la API y el panel", name)
	}
	return nil
}
