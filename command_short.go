package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"sello/internal/completion"
	"sello/internal/disk"
	"sello/internal/memory"
	"sello/internal/sheet"
	"sello/internal/wallclock"
)

// The commands of few lines each: apply, export of the document, verify, backup, migrate, audit,
// version and clock. Most run an operation of admin.go and print what came of it.

func verifyFlags(c *invocation) {
	jsonFlag(c)
	c.set.StringVar(&c.since, "since", "", "`archivo` con lo que escribió antes verify -json: comprueba que el libro de entonces es el principio del de hoy")
	c.set.StringVar(&c.statement, "statement", "", "`archivo` con un estado de cuenta de la API, o - para la entrada estándar: dice si es el del libro, y nada más")
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
	sampleFlag(c)
}

func runApply(ctx context.Context, c *invocation) error {
	if c.schema {
		_, err := c.stdout.Write(documentSchema)
		return err
	}
	if c.sample {
		_, err := c.stdout.Write(demoDocument)
		return err
	}
	raw, err := readInput(c.args[0], c.stdin)
	if err != nil {
		return err
	}
	problems, isJSON := problemsOf(raw) // a wrong document must not create the file
	if !isJSON {
		return &documentError{problems}
	}
	if c.dryRun {
		c.onlyReads()
	}
	err = c.withAdmin(ctx, len(problems) == 0, func(call adminCaller) error {
		var out applied
		if err := call(ctx, "apply", applyRequest{raw, c.dryRun}, &out); err != nil {
			return err
		}
		out.Made = c.made
		return c.print(out, func(w io.Writer) { showApplied(w, &out) })
	})
	if len(problems) > 0 && errors.Is(err, fs.ErrNotExist) {
		return &documentError{problems}
	}
	return err
}

func showApplied(w io.Writer, out *applied) {
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
	for _, warning := range out.Warnings {
		fmt.Fprintln(w, "aviso: "+warning)
	}
	if out.Made != "" {
		fmt.Fprintf(w, "%s: archivo nuevo\n", out.Made)
	}
	if out.Created {
		fmt.Fprintf(w, "%s: organización nueva\n", out.Organization)
	}
	switch {
	case len(out.Changes) == 0:
		fmt.Fprintf(w, "%s: sin cambios\n", out.Organization)
	case out.DryRun:
		fmt.Fprintf(w, "%s: %s por aplicar (no se aplicó nada)\n", out.Organization, plural(len(out.Changes), "cambio", "cambios"))
	default:
		fmt.Fprintf(w, "%s: %s\n", out.Organization, plural(len(out.Changes), "cambio aplicado", "cambios aplicados"))
		fmt.Fprintf(w, "%s: versión %d\n", out.Organization, out.Version)
	}
}

// readInput reads a text in UTF-8, without its byte order mark, from a file or, for "-",
// from standard input.
func readInput(name string, stdin io.Reader) (raw []byte, err error) {
	if name == "-" {
		raw, err = io.ReadAll(stdin)
	} else {
		raw, err = os.ReadFile(name)
	}
	return bytes.TrimPrefix(raw, []byte(sheet.MarkUTF8)), err
}

func exportDocumentFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.Uint64Var(&c.version, "version", 0, "`número` de la versión que se muestra, desde 1; sin ella, la de ahora")
	c.written = append(c.written, "version") // SELLO_VERSION may be anything else
}

func runExport(ctx context.Context, c *invocation) error {
	if c.given["version"] && c.version == 0 {
		return &usageError{"-version debe ser mayor a 0"}
	}
	c.onlyReads()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		var out json.RawMessage
		if err := call(ctx, "export", documentRequest{org, c.version}, &out); err != nil {
			return err
		}
		c.json = true // a document is always JSON
		return c.print(out, nil)
	})
}

func runStatement(ctx context.Context, c *invocation) error {
	raw, err := readInput(c.statement, c.stdin)
	if err != nil {
		return err
	}
	if !json.Valid(raw) {
		return adminErrorf("%s: %v", c.statement, errNoStatement)
	}
	c.readOnly = true
	var out statementReport
	err = c.withAdmin(ctx, false, func(call adminCaller) error { return call(ctx, "statement", statementRequest{raw}, &out) })
	if err != nil {
		return err
	}
	err = c.print(out, func(w io.Writer) {
		for _, p := range out.Problems {
			fmt.Fprintln(w, p)
		}
		if out.ErasedComments > 0 {
			fmt.Fprintf(w, "%s: no se puede comprobar\n", plural(out.ErasedComments, "comentario se eliminó después", "comentarios se eliminaron después"))
		}
		if len(out.Problems) > 0 {
			return
		}
		if out.Late > 0 {
			fmt.Fprintf(w, "%s con fecha de ese mes o de antes, que el estado de cuenta no tiene\n", plural(int(out.Late), "movimiento llegó después", "movimientos llegaron después"))
		}
		fmt.Fprintf(w, "%s, cliente %s, %s hasta %s: %s; es el del libro\n", out.Organization, out.CustomerID, out.Month, out.To, plural(out.Movements, "movimiento", "movimientos"))
	})
	if err == nil && len(out.Problems) > 0 {
		err = adminErrorf("el estado de cuenta no es el del libro: %s", plural(len(out.Problems), "diferencia", "diferencias"))
	}
	return err
}

func runVerify(ctx context.Context, c *invocation) error {
	if c.statement != "" {
		if c.since != "" {
			return usageErrorf("-statement no admite -since")
		}
		return runStatement(ctx, c)
	}
	var in verifyRequest
	if c.since != "" {
		raw, err := readInput(c.since, c.stdin)
		if err != nil {
			return err
		}
		var earlier verification
		if err := json.Unmarshal(raw, &earlier); err != nil || len(earlier.Ledgers) == 0 {
			return adminErrorf("%s: no es lo que escribe sello verify -json", c.since)
		}
		in.Since = earlier.Ledgers
	}
	memory.Limit(verifyMemory)
	c.readOnly = true
	var out verification
	err := c.withAdmin(ctx, false, func(call adminCaller) error {
		return c.telling(ctx, "comprobando", func(ctx context.Context) error { return call(ctx, "verify", in, &out) })
	})
	if err != nil {
		return err
	}
	err = c.print(out, func(w io.Writer) {
		for _, p := range out.Problems {
			fmt.Fprintln(w, p)
		}
		fmt.Fprintln(w, strings.Join([]string{
			plural(int(out.Organizations), "organización", "organizaciones"), out.customersText(),
			plural(int(out.Movements), "movimiento", "movimientos"), plural(int(out.Sales), "venta", "ventas"),
			plural(int(out.Redemptions), "canje", "canjes"),
		}, ", "))
		for _, l := range out.Ledgers {
			fmt.Fprintf(w, "libro de %s: %s, huella %x\n", l.Organization, plural(int(l.Movements), "movimiento", "movimientos"), l.Digest)
			if l.AuditEntries > 0 {
				fmt.Fprintf(w, "auditoría de %s: %s, huella %x\n", l.Organization, plural(int(l.AuditEntries), "entrada", "entradas"), l.AuditDigest)
			}
		}
		if len(out.Problems) == 0 {
			if c.since != "" {
				fmt.Fprintf(w, "continúa lo que dice %s: nada de entonces falta ni ha cambiado\n", c.since)
			}
			fmt.Fprintln(w, "todo cuadra")
		}
	})
	if err == nil && len(out.Problems) > 0 {
		err = adminErrorf("%s", plural(len(out.Problems), "diferencia", "diferencias"))
	}
	return err
}

// customersText counts customers as the statistics do, and the hidden ones apart.
func (report *verification) customersText() string {
	text := plural(int(report.Customers), "cliente", "clientes")
	if report.Hidden > 0 {
		text += " y " + plural(int(report.Hidden), "fusionado o eliminado", "fusionados o eliminados")
	}
	return text
}

func runBackup(ctx context.Context, c *invocation) error {
	if !isPath(c.args[0]) {
		return errAddress
	}
	path, err := filepath.Abs(c.args[0])
	if err != nil {
		return fmt.Errorf("el directorio actual: %w", err)
	}
	if _, used := overSocket(path); used {
		return inUseErrorf("%s: un servidor lo tiene abierto: no se reemplaza", path)
	}
	c.onlyReads()
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		var out backedUp
		err := c.telling(ctx, "copiando", func(ctx context.Context) error { return call(ctx, "backup", backupRequest{File: path}, &out) })
		if err != nil {
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
		return inUseErrorf("%s: un servidor lo tiene abierto: ya es del esquema %d", c.db, schemaVersion)
	}
	c.migrates = true
	store, _, done, err := c.openMigrated(ctx, disk.Options{MustExist: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
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
			fmt.Fprintf(w, "%s: ya es del esquema %d\n", c.dbName(), done.To)
		case done.Copy == "":
			fmt.Fprintf(w, "%s: convertido del esquema %d al %d, sin copia\n", c.dbName(), done.From, done.To)
		default:
			fmt.Fprintf(w, "%s: convertido del esquema %d al %d; el de antes está en %s\n", c.dbName(), done.From, done.To, done.Copy)
		}
	})
}

func auditFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.StringVar(&c.audit.From, "from", "", "`fecha` desde la que se muestra, como 2027-01-01 o 2027-01-01T18:00")
	c.set.StringVar(&c.audit.To, "to", "", "`fecha` hasta la que se muestra, incluida")
	c.set.StringVar(&c.audit.Actor, "actor", "", "`quién`: id de una API key, lo que dijo X-Actor o usuario del sistema")
	c.set.StringVar(&c.audit.Action, "action", "", "`acción`: "+alternatives(auditActions))
	c.chooses("action", auditActions...)
	c.set.StringVar(&c.audit.Subject, "subject", "", "`id` de lo que cambió: cliente, API key, canje u organización")
	c.set.IntVar(&c.limit, "limit", 100, "`entradas` que se muestran como máximo, las últimas")
}

func runAudit(ctx context.Context, c *invocation) error {
	if c.limit <= 0 {
		return &usageError{"-limit debe ser mayor a 0"}
	}
	c.onlyReads()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		out := auditPage{Data: []auditShape{}}
		in := c.audit
		in.Org = org
		for len(out.Data) < c.limit {
			var part auditPage
			in.Limit = c.limit - len(out.Data)
			if err := call(ctx, "audit", in, &part); err != nil {
				return err
			}
			if out.Data = append(out.Data, part.Data...); in.Before == 0 {
				out.Total = part.Total
			}
			if uint64(len(part.Data)) == part.Total {
				break
			}
			in.Before = part.Data[len(part.Data)-1].Seq
		}
		return c.print(out, func(w io.Writer) {
			if len(out.Data) == 0 {
				fmt.Fprintln(w, "ninguna entrada"+unknownAction(in.Action))
				return
			}
			tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "N.º\tFECHA\tQUIÉN\tVÍA\tACCIÓN\tSUJETO\tCAMBIOS")
			for _, e := range out.Data {
				fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Seq, e.At, e.actorText(), cmp.Or(auditSourceWords[e.Source], e.Source), e.Action, textOr(e.Subject, "–"), e.changesText())
			}
			tab.Flush()
			if rest := out.Total - uint64(len(out.Data)); rest > 0 {
				fmt.Fprintf(w, "y %d más, de antes: con -limit se muestran\n", rest)
			}
		})
	})
}

// unknownAction lists the known actions if action is not one of them; else it returns "".
func unknownAction(action string) string {
	if action == "" || slices.Contains(auditActions, action) {
		return ""
	}
	return fmt.Sprintf(": ninguna acción se llama %q; hay: %s", action, strings.Join(auditActions, ", "))
}

var auditSourceWords = map[string]string{"Api": "API", "Panel": "panel", "Command": "comando"}

func (e *auditShape) actorText() string {
	by := e.Actor
	if by.ID == nil {
		return textOr(by.Actor, by.Type)
	}
	name := textOr(by.Name, by.ID.String())
	if by.Actor != nil {
		name += " (" + *by.Actor + ")"
	}
	return name
}

// changesText is what fits into a line of the table.
func (e *auditShape) changesText() string {
	const most = 8
	var list []string
	if e.Version > 0 {
		list = append(list, fmt.Sprintf("versión %d", e.Version))
	}
	for i, c := range e.Changes {
		if i == most {
			list = append(list, fmt.Sprintf("y %d más", len(e.Changes)-most))
			break
		}
		text := c.Field
		if c.Before != "" || c.After != "" {
			text = fmt.Sprintf("%s: %s → %s", c.Field, cmp.Or(c.Before, "–"), cmp.Or(c.After, "–"))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func runVersion(_ context.Context, c *invocation) error {
	b := thisBuild()
	return c.print(b, func(w io.Writer) { fmt.Fprintln(w, b) })
}

func runClock(ctx context.Context, c *invocation) error {
	c.onlyReads()
	return c.reportClock(ctx, "clock")
}

func runClockAccept(ctx context.Context, c *invocation) error {
	return c.reportClock(ctx, "clock/accept")
}

// reportClock runs an operation that answers with a clockReport.
func (c *invocation) reportClock(ctx context.Context, operation string) error {
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		return callAndPrint(ctx, c, call, operation, struct{}{}, func(w io.Writer, out *clockReport) { out.show(w) })
	})
}

func (r *clockReport) show(w io.Writer) {
	latest := "ninguno"
	if r.Latest != 0 {
		latest = r.Latest.String()
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "reloj de la máquina:\t%s, %s\núltimo momento escrito:\t%s\nse considera:\t%s\n",
		r.Wall, r.syncText(), latest, clockWords[r.State])
	if r.Now != r.Wall {
		fmt.Fprintf(tab, "hora con la que se sigue:\t%s\n", r.Now)
	}
	tab.Flush()
}

var clockWords = map[wallclock.Verdict]string{
	wallclock.Safe:   "fiable",
	wallclock.Behind: "atrasado: la API no escribe nada hasta que se corrija, o se acepte con sello clock accept",
	wallclock.Ahead:  "adelantado: la API no escribe nada hasta que se corrija, o se acepte con sello clock accept",
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

// completions is what shells complete of a table of commands.
func completions(table []command) *completion.Program {
	p := &completion.Program{Name: "sello", Lists: []string{"lista"}, Paths: []string{"archivo", "directorio"}, File: "archivo", Value: "valor"}
	for _, cmd := range table {
		c := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		c.dbFlag()
		cmd.flags(c)
		e := p.Add(cmd.name, cmd.about)
		e.Files, e.Choices = strings.HasPrefix(cmd.args, "ARCHIVO"), c.choices
		c.set.VisitAll(func(f *flag.Flag) { e.Flags = append(e.Flags, f) })
		for argument := range strings.FieldsSeq(cmd.args) {
			if choices := strings.Split(argument, "|"); len(choices) > 1 {
				e.Next = choices
			}
		}
	}
	return p
}

func completionFlags(c *invocation) {
	c.more = `bash: sello completion bash > /etc/bash_completion.d/sello
zsh:  sello completion zsh > un directorio de $fpath, con el nombre _sello,
      o source <(sello completion zsh) en ~/.zshrc
fish: sello completion fish > ~/.config/fish/completions/sello.fish`
}

func runCompletion(_ context.Context, c *invocation) error {
	if !completions(c.table).Write(c.stdout, c.args[0]) {
		return usageErrorf("no hay para %q: %s", c.args[0], strings.Join(completion.Shells, ", "))
	}
	return nil
}
