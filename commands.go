package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sello/internal/disk"
)

// An environment is what a command sees of the process it runs in.
type environment struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// A command is one word of the command line, or two.
type command struct {
	name  string
	args  string // what follows the flags
	about string
	run   func(ctx context.Context, c *invocation) error
	flags func(c *invocation)
}

// An invocation is a command with its flags and arguments.
type invocation struct {
	environment
	set     *flag.FlagSet
	earlier map[string]string // names of flags by those they had before
	given   map[string]bool   // flags, on the command line or in the environment
	args    []string

	db   string
	json bool
	more string // what help says beyond the flags

	addr              string
	trusted           string
	maxConns          int
	maxConnsPerSource int
	backups           backupPlan
	memory            int64 // bytes; 0: by the machine

	org    string
	dryRun bool
	schema bool
	since  string
	ignore []string
	raw    bool
	key    keyRequest
	scopes string
	ips    string

	noCopy  bool // when the file is migrated
	memSize int  // for tests, as in disk.Options
}

// parse reads flags, before, between or after the arguments. A flag that is
// not given comes from its environment variable, if that is set.
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
	c.given = map[string]bool{}
	c.set.Visit(func(f *flag.Flag) { c.given[c.todaysName(f.Name)] = true })
	var err error
	c.set.VisitAll(func(f *flag.Flag) { // in the order of names, in which today's come before the earlier ones
		name, value := c.todaysName(f.Name), c.getenv(variable(f.Name))
		if c.given[name] || value == "" || err != nil {
			return
		}
		c.given[name] = true
		if setErr := c.set.Set(f.Name, value); setErr != nil {
			err = &usageError{badValue(variable(f.Name), strconv.Quote(value), f)}
		}
	})
	if err != nil {
		return err
	}
	want := len(strings.Fields(cmd.args))
	if c.schema {
		want = 0
	}
	if len(c.args) != want {
		if want == 0 {
			return usageErrorf("%s no lleva argumentos: %q", cmd.name, c.args)
		}
		return usageErrorf("uso: sello %s [opciones] %s", cmd.name, cmd.args)
	}
	return nil
}

// earlierName lets a flag be given by the name that it had before, which help does
// not tell.
func (c *invocation) earlierName(earlier, name string) {
	if c.earlier == nil {
		c.earlier = map[string]string{}
	}
	c.earlier[earlier] = name
	f := c.set.Lookup(name)
	c.set.Var(f.Value, earlier, f.Usage)
}

// todaysName is the name of a flag that may be given by an earlier one.
func (c *invocation) todaysName(name string) string { return cmp.Or(c.earlier[name], name) }

func variable(flagName string) string {
	return "SELLO_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func (c *invocation) help(cmd command) {
	fmt.Fprintf(c.stdout, "Uso: sello %s\n\n%s.\n\n", strings.TrimSpace(cmd.name+" [opciones] "+cmd.args), strings.ToUpper(cmd.about[:1])+cmd.about[1:])
	c.set.VisitAll(func(f *flag.Flag) {
		if c.earlier[f.Name] != "" {
			return
		}
		kind, about := flag.UnquoteUsage(f)
		fmt.Fprintf(c.stdout, "  %s\n        %s", strings.TrimSpace("-"+f.Name+" "+kind), about)
		if !slices.Contains([]string{"", "false", "0", "0s"}, f.DefValue) {
			fmt.Fprintf(c.stdout, " (por omisión %s)", f.DefValue)
		}
		fmt.Fprintf(c.stdout, " [%s]\n", variable(f.Name))
	})
	if c.more != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", c.more)
	}
}

func jsonFlag(c *invocation) {
	c.set.BoolVar(&c.json, "json", false, "escribe el resultado en JSON")
}

func orgJSONFlags(c *invocation) {
	orgFlag(c)
	jsonFlag(c)
}

func importFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.Func("ignore", "`columnas` que se dejan fuera, separadas por comas; sin ella, una columna desconocida es un error", func(list string) error {
		c.ignore = append(c.ignore, list) // also one whose name has commas
		for name := range strings.SplitSeq(list, ",") {
			c.ignore = append(c.ignore, trimBlanks(name))
		}
		return nil
	})
	c.set.BoolVar(&c.raw, "raw", false, "toma las celdas tal cual, como las escribe export -raw: no quita el apóstrofo ante =, +, - o @")
	c.more = `Lo que no se puede importar queda en ARCHIVO.csv.errors.csv, con su línea y su motivo;
lo demás entra. Código de salida: 0 si entró todo o ya estaba, 1 si algo no entró.`
}

func exportFlags(c *invocation) {
	orgFlag(c)
	c.set.BoolVar(&c.raw, "raw", false, "escribe las celdas tal cual, sin apóstrofo ante lo que una hoja de cálculo ejecutaría")
	c.more = `Ante una celda que una hoja de cálculo ejecutaría (=, +, -, @ y más) va un apóstrofo,
que la importación quita; ante números y teléfonos no. Con -raw no va ninguno.`
}

func orgFlag(c *invocation) {
	c.set.StringVar(&c.org, "org", "", "`slug` de la organización; puede faltar donde hay una sola")
}

func verifyFlags(c *invocation) {
	jsonFlag(c)
	c.set.StringVar(&c.since, "since", "", "`archivo` con lo que escribió antes verify -json: comprueba que el libro de entonces es el principio del de hoy")
}

func backupFlags(c *invocation) {
	jsonFlag(c)
	c.more = `ARCHIVO puede no existir o ser una copia anterior, que se reemplaza cuando la nueva está
completa; nunca el propio archivo, otro que esté en uso, ni lo que no sea de sello.
Si es un enlace simbólico, la copia queda donde lleva. Si hay un servidor, la escribe él.`
}

func applyFlags(c *invocation) {
	jsonFlag(c)
	c.set.BoolVar(&c.dryRun, "dry-run", false, "muestra los cambios sin aplicarlos")
	c.set.BoolVar(&c.schema, "schema", false, "muestra el JSON Schema del documento, para el editor; no lleva ARCHIVO")
}

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

// withAdmin runs fn with whatever has the file: the server that has it open,
// or this process. mayCreate lets it make a file that is not there.
func (c *invocation) withAdmin(mayCreate bool, fn func(adminCaller) error) error {
	if call, ok := overSocket(c.db); ok {
		return fn(call)
	}
	store, err := c.open(mayCreate)
	if err != nil {
		return err
	}
	e := newEngineBy(newWallClock(theMachine()), store, cryptoSeed)
	e.log = slog.New(slog.NewJSONHandler(c.stderr, nil))
	file, _ := store.(*boltStore)
	if err := e.open(context.Background()); err != nil {
		if file != nil {
			return errors.Join(err, file.leave())
		}
		return errors.Join(err, store.Close())
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	if file != nil {
		a.makeBackup = file.backup
	}
	return errors.Join(fn(a.direct), store.Close())
}

// onlyOrg is the organization of -org, or the only one there is.
func (c *invocation) onlyOrg(ctx context.Context, call adminCaller) (string, error) {
	if c.org != "" {
		return c.org, nil
	}
	var slugs []string
	if err := call(ctx, "organizations", struct{}{}, &slugs); err != nil {
		return "", err
	}
	switch len(slugs) {
	case 0:
		return "", adminErrorf("no hay ninguna organización: sello apply hace la primera")
	case 1:
		return slugs[0], nil
	}
	return "", &usageError{"falta -org" + thereAre(slugs)}
}

// withOrg is withAdmin for what is done to one organization.
func (c *invocation) withOrg(ctx context.Context, fn func(call adminCaller, org string) error) error {
	return c.withAdmin(false, func(call adminCaller) error {
		org, err := c.onlyOrg(ctx, call)
		if err != nil {
			return err
		}
		return fn(call, org)
	})
}

// open opens the file. A dry run that finds none has an empty store in memory.
func (c *invocation) open(mayCreate bool) (Store, error) {
	if _, err := os.Stat(c.db); mayCreate && c.dryRun && errors.Is(err, fs.ErrNotExist) {
		return newMemStore(), nil
	}
	s, err := openBolt(c.db, disk.Options{MustExist: !mayCreate, Dense: denseTables, MemSize: memSizeFor(memoryFor(hereMemory()))})
	if err != nil {
		return nil, err // not s: a nil *boltStore is no nil Store
	}
	return s, nil
}

// cryptoSeed is the randomness of one operation.
func cryptoSeed() (s seed) {
	rand.Read(s[:])
	return s
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

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func runApply(ctx context.Context, c *invocation) error {
	if c.schema {
		_, err := c.stdout.Write(documentSchema)
		return err
	}
	raw, err := readInput(c.args[0], c.stdin)
	if err != nil {
		return err
	}
	if _, problems := readDocument(raw); len(problems) > 0 { // a file is not made for a document that is wrong
		return invalidDocument(problems)
	}
	return c.withAdmin(true, func(call adminCaller) error {
		var out applied
		if err := call(ctx, "apply", applyRequest{raw, c.dryRun}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			for _, ch := range out.Changes {
				switch {
				case ch.From == nil:
					fmt.Fprintf(w, "+ %s: %v\n", ch.Path, ch.To)
				case ch.To == nil:
					fmt.Fprintf(w, "- %s: %v\n", ch.Path, ch.From)
				default:
					fmt.Fprintf(w, "~ %s: %v → %v\n", ch.Path, ch.From, ch.To)
				}
			}
			switch {
			case len(out.Changes) == 0:
				fmt.Fprintf(w, "%s: sin cambios\n", out.Organization)
			case out.DryRun:
				fmt.Fprintf(w, "%s: %s por aplicar (no se aplicó nada)\n", out.Organization, plural(len(out.Changes), "cambio", "cambios"))
			default:
				fmt.Fprintf(w, "%s: %s\n", out.Organization, plural(len(out.Changes), "cambio aplicado", "cambios aplicados"))
			}
		})
	})
}

// readInput reads a file, or standard input for "-".
func readInput(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

func runExport(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out json.RawMessage
		if err := call(ctx, "export", orgRequest{org}, &out); err != nil {
			return err
		}
		c.json = true // a document is JSON in any case
		return c.print(out, nil)
	})
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

// checkKeyFlags refuses a limit or a list that is given but says nothing: who
// meant a restriction shall not get a key without it.
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

func splitList(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func runKeyList(ctx context.Context, c *invocation) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out []listedKey
		if err := call(ctx, "key/list", orgRequest{org}, &out); err != nil {
			return err
		}
		var clock clockReport // by which a key expires
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

// listText is a list as the flags of key create take it, or what its absence allows.
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

func runVerify(ctx context.Context, c *invocation) error {
	var in verifyRequest
	if c.since != "" {
		raw, err := os.ReadFile(c.since)
		if err != nil {
			return err
		}
		var earlier verification
		if err := json.Unmarshal(raw, &earlier); err != nil || len(earlier.Ledgers) == 0 {
			return adminErrorf("%s: no es lo que escribe sello verify -json", c.since)
		}
		in.Since = earlier.Ledgers
	}
	limitMemory(verifyMemory)
	var out verification
	err := c.withAdmin(false, func(call adminCaller) error { return call(ctx, "verify", in, &out) })
	if err != nil && c.json {
		return errors.Join(err, c.print(unverified{c.db, inWords(err)}, nil))
	}
	if err != nil {
		return err
	}
	err = c.print(out, func(w io.Writer) {
		for _, p := range out.Problems {
			fmt.Fprintln(w, p)
		}
		fmt.Fprintln(w, strings.Join([]string{
			plural(int(out.Organizations), "organización", "organizaciones"), plural(int(out.Customers), "cliente", "clientes"),
			plural(int(out.Movements), "movimiento", "movimientos"), plural(int(out.Sales), "venta", "ventas"),
			plural(int(out.Redemptions), "canje", "canjes"),
		}, ", "))
		for _, l := range out.Ledgers {
			fmt.Fprintf(w, "libro de %s: %s, huella %x\n", l.Organization, plural(int(l.Movements), "movimiento", "movimientos"), l.Digest)
		}
		if len(out.Problems) == 0 {
			fmt.Fprintln(w, "todo cuadra")
		}
	})
	if err == nil && len(out.Problems) > 0 {
		err = adminErrorf("%s", plural(len(out.Problems), "diferencia", "diferencias"))
	}
	return err
}

// unverified is what a verification prints of a file that it cannot read.
type unverified struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func runBackup(ctx context.Context, c *invocation) error {
	path, err := filepath.Abs(c.args[0])
	if err != nil {
		return fmt.Errorf("el directorio actual: %w", err)
	}
	if _, used := overSocket(path); used {
		return adminErrorf("%s: un servidor lo tiene abierto: no se reemplaza", path)
	}
	return c.withAdmin(false, func(call adminCaller) error {
		var out backedUp
		if err := call(ctx, "backup", backupRequest{path}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s, %d bytes, comprobada\n", out.File, plural(out.Entries, "entrada", "entradas"), out.Bytes)
		})
	})
}

func migrateFlags(c *invocation) {
	jsonFlag(c)
	noCopyFlag(c)
}

func noCopyFlag(c *invocation) {
	c.set.BoolVar(&c.noCopy, "no-copy", false, "al convertir un archivo de un esquema anterior, no guarda una copia de él")
}

func runMigrate(ctx context.Context, c *invocation) error {
	if _, used := overSocket(c.db); used {
		return adminErrorf("%s: un servidor lo tiene abierto: ya es del esquema %d", c.db, schemaVersion)
	}
	store, err := openBolt(c.db, disk.Options{MustExist: true, Dense: denseTables})
	if err != nil {
		return err
	}
	done, err := c.takeUp(ctx, newEngineBy(newWallClock(theMachine()), store, cryptoSeed), store)
	if err != nil {
		return errors.Join(err, store.leave())
	}
	if err := store.Close(); err != nil {
		return err
	}
	if done == nil {
		done = &migrated{From: schemaVersion, To: schemaVersion}
	}
	return c.print(done, func(w io.Writer) {
		switch {
		case done.From == done.To:
			fmt.Fprintf(w, "%s: ya es del esquema %d\n", c.db, done.To)
		case done.Copy == "":
			fmt.Fprintf(w, "%s: convertido del esquema %d al %d, sin copia\n", c.db, done.From, done.To)
		default:
			fmt.Fprintf(w, "%s: convertido del esquema %d al %d; el de antes está en %s\n", c.db, done.From, done.To, done.Copy)
		}
	})
}

// takeUp opens an engine on a file, which it migrates if it is of an older schema; nil
// if it is not.
func (c *invocation) takeUp(ctx context.Context, e *engine, store *boltStore) (*migrated, error) {
	err := e.open(ctx)
	if old, ok := errors.AsType[*schemaError](err); !ok || old.cause != "" {
		return nil, err
	}
	// Then the file is of an older schema.
	keep := func(from uint64) (string, error) {
		name := fmt.Sprintf("%s.schema%d", c.db, from)
		if _, err := os.Lstat(name); err == nil { // of another time: it stays
			name += "-" + time.Now().UTC().Format(backupStamp)
		}
		made, err := store.backup(ctx, name)
		if err != nil {
			return "", fmt.Errorf("copia de antes de convertir: %w", err)
		}
		return made.File, nil
	}
	if c.noCopy {
		keep = nil
	}
	done, err := e.migrate(ctx, keep)
	if err != nil {
		return nil, err
	}
	return done, e.open(ctx)
}

// A buildInfo is what a binary knows of how it was made.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // the commit; "" if it is not known
	Modified bool   `json:"modified"` // its tree had changes that are in no commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the file
}

func newBuildInfo(info *debug.BuildInfo) buildInfo {
	b := buildInfo{Version: cmp.Or(info.Main.Version, "(devel)"), Go: cmp.Or(info.GoVersion, runtime.Version()), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: schemaVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b buildInfo) String() string {
	text := "sello " + b.Version
	if b.Revision != "" {
		text += ", commit " + b.Revision
	}
	if b.Modified {
		text += " con cambios"
	}
	return fmt.Sprintf("%s, %s %s, esquema %d", text, b.Go, b.Platform, b.Schema)
}

func runVersion(_ context.Context, c *invocation) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	b := newBuildInfo(info)
	return c.print(b, func(w io.Writer) { fmt.Fprintln(w, b) })
}

func runClock(ctx context.Context, c *invocation) error { return c.reportClock(ctx, "clock") }

func runClockAccept(ctx context.Context, c *invocation) error {
	return c.reportClock(ctx, "clock/accept")
}

// reportClock runs an operation that answers with a clockReport.
func (c *invocation) reportClock(ctx context.Context, operation string) error {
	return c.withAdmin(false, func(call adminCaller) error {
		var out clockReport
		if err := call(ctx, operation, struct{}{}, &out); err != nil {
			return err
		}
		return c.print(out, func(w io.Writer) {
			latest := "ninguno"
			if out.Latest != 0 {
				latest = out.Latest.String()
			}
			fmt.Fprintf(w, "reloj de la máquina:     %s, %s\núltimo momento escrito:  %s\nse considera:            %s\n",
				out.Wall, out.syncText(), latest, clockWords[out.State])
			if out.Now != out.Wall {
				fmt.Fprintf(w, "hora con la que se sigue: %s\n", out.Now)
			}
		})
	})
}

var clockWords = map[verdict]string{
	clockSafe:   "fiable",
	clockBehind: "atrasado: la API no escribe nada hasta que se corrija, o se acepte con sello clock accept",
	clockAhead:  "adelantado: la API no escribe nada hasta que se corrija, o se acepte con sello clock accept",
}

func (r *clockReport) syncText() string {
	switch {
	case r.Synchronized == nil:
		return "no se sabe si está sincronizado"
	case *r.Synchronized:
		return "sincronizado"
	}
	return "sin sincronizar"
}
