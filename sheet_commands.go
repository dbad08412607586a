package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sello/internal/sheet"
)

// The commands import and export, and their flags.

func importCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		if c.sample {
			_, err := io.WriteString(c.stdout, sampleSheets[kind])
			return err
		}
		return c.importFile(ctx, kind, c.args[0])
	}
}

// importBatch is how many lines one request takes.
const importBatch = 4000

type importReport struct {
	Rows    int    `json:"rows"` // CSV records read, without the header
	Added   int    `json:"added"`
	Known   int    `json:"known"`  // customers, sales or movements that were there already
	Wrong   int    `json:"wrong"`  // records that were not imported
	Warned  int    `json:"warned"` // records of Added and Known that have a warning in the file of errors
	Errors  string `json:"errors,omitempty"`
	Seconds int    `json:"seconds"`

	Ignored []string `json:"ignored,omitempty"` // headings of a system's export that are not used

	OpeningBalances int     `json:"openingBalances"` // how many were given
	OpeningPoints   decimal `json:"openingPoints"`   // their sum
	DryRun          bool    `json:"dryRun"`          // nothing was stored
}

// A csvBatch is the records of one request.
type csvBatch struct {
	records []csvRecord
	lines   int   // of records
	rows    int   // read from the file so far
	at      int64 // bytes of the file so far, about
}

// importFile imports the records of a CSV file in batches. What cannot be imported
// is written to a file of errors with its line and the reason. A dry run imports into a
// copy of the store.
func (c *invocation) importFile(ctx context.Context, kind, name string) error {
	known, err := newHeadings(kind, c.mapped, c.ignore)
	if err != nil {
		return err
	}
	known.use(c.system)
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if c.dryRun {
		return c.onCopy(ctx, func(c *invocation) error { return c.importOpened(ctx, known, file) })
	}
	return c.importOpened(ctx, known, file)
}

func (c *invocation) importOpened(ctx context.Context, known *fileHeadings, file *os.File) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		im := &importer{
			ctx: ctx, call: call, started: time.Now(), rejects: rejects{of: file.Name()},
			importSheet: importSheet{headings: known, raw: c.raw, decimal: c.decimal, encoding: c.encoding, dates: sheet.DateForm{Order: c.dates}},
			request:     importRequest{Org: org, Kind: known.kind, Import: rand.Text(), Program: c.program, NoWelcome: c.noWelcome, SamePerson: c.samePerson},
		}
		line := c.progress("importando")
		err := withSeeker(file, func(file io.ReadSeeker) error {
			size, err := file.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			return line.During(func() float64 { return float64(im.sent.Load()) / float64(max(size, 1)) }, func() error { return im.run(file) })
		})
		if err != nil {
			return err
		}
		r := im.report
		r.Seconds, r.DryRun = int(time.Since(im.started).Seconds()), c.dryRun
		err = c.print(r, func(w io.Writer) { r.write(w, known.kind) })
		if err == nil && r.Wrong > 0 && r.DryRun {
			err = adminErrorf("no se importaría todo: %s", plural(r.Wrong, "registro con errores", "registros con errores"))
		} else if err == nil && r.Wrong > 0 {
			err = adminErrorf("no se importó todo: %s", plural(r.Wrong, "registro con errores", "registros con errores"))
		}
		return err
	})
}

func (r *importReport) write(w io.Writer, kind string) {
	added := plural(r.Added, "nuevo", "nuevos")
	if kind == importSales { // ventas
		added = plural(r.Added, "nueva", "nuevas")
	}
	fmt.Fprintf(w, "%s: %s, %d que ya estaban, %d con errores\n", plural(r.Rows, "fila", "filas"), added, r.Known, r.Wrong)
	if r.OpeningBalances > 0 {
		fmt.Fprintf(w, "%s: %s puntos en total\n", plural(r.OpeningBalances, "saldo inicial", "saldos iniciales"), r.OpeningPoints)
	}
	if r.Wrong > 0 {
		fmt.Fprintf(w, "los errores están en %s\n", r.Errors)
	}
	if r.Warned > 0 {
		fmt.Fprintf(w, "%s en %s\n", plural(r.Warned, "aviso, que está", "avisos, que están"), r.Errors)
	}
	if len(r.Ignored) > 0 {
		fmt.Fprintf(w, "no se usaron de la exportación: %s\n", strings.Join(r.Ignored, ", "))
	}
	if r.DryRun {
		fmt.Fprintln(w, "es un ensayo: no se guardó nada")
	}
}

// onCopy runs fn with a copy of the store in its place, a file in a directory that only the
// user may read. It is beside the data file, or with the system's temporary files for a
// database, and is removed afterwards.
func (c *invocation) onCopy(ctx context.Context, fn func(*invocation) error) (err error) {
	if err := c.mustExist(); err != nil {
		return err
	}
	beside, name := filepath.Dir(c.db), filepath.Base(c.db)
	if isDatabase(c.db) {
		beside, name = "", "sello"
	}
	dir, err := os.MkdirTemp(beside, name+".dry-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := filepath.Abs(filepath.Join(dir, "copy.db"))
	if err != nil {
		return err
	}
	original := *c
	original.onlyReads()
	err = original.withAdmin(ctx, false, func(call adminCaller) error {
		return call(ctx, "backup", backupRequest{File: path, Scratch: true}, new(backedUp))
	})
	if err != nil {
		return err
	}
	onCopy := *c
	onCopy.db = path
	return fn(&onCopy)
}

type importer struct {
	ctx     context.Context
	call    adminCaller
	request importRequest // without rows
	started time.Time

	importSheet
	place   importPlace
	memory  int64         // bytes of a file of sales that are gathered at once; 0: importMemory
	batch   csvBatch      // being filled
	batches chan csvBatch // to be sent
	stopped chan struct{} // closed when nothing more will be sent
	sent    atomic.Int64  // bytes of the file that are imported, about
	report  importReport
	rejects rejects
	added   newcomers
}

func (im *importer) run(file io.ReadSeeker) (err error) {
	defer func() {
		err = errors.Join(err, im.rejects.close())
		im.report.Errors = im.rejects.name
	}()
	if err := im.call(im.ctx, "import/place", importEnd{Org: im.request.Org}, &im.place); err != nil {
		return err
	}
	im.currency = im.place.Currency
	part := &readPart{ReadSeeker: file}
	in, err := im.rows(part)
	if err != nil {
		return err
	}
	im.report.Ignored = im.headings.leftOut(im.columns, im.taken)
	im.batches, im.stopped = make(chan csvBatch), make(chan struct{})
	go func() {
		defer close(im.stopped)
		err = im.sendAll()
	}()
	readErr := im.read(in, part)
	close(im.batches)
	<-im.stopped
	if err = cmp.Or(err, readErr); err != nil {
		return err
	}
	return im.call(im.ctx, "import/done", importEnd{im.request.Org, im.request.Import}, new(struct{}))
}

// read reads the records and hands them over in batches, so that one batch is read
// while another is being imported.
func (im *importer) read(in *sheet.Reader, file *readPart) error {
	if im.request.Kind == importSales {
		return im.readSales(file)
	}
	for {
		line, err := im.record(in)
		if err == io.EOF {
			return im.handOver()
		}
		if err != nil {
			return err
		}
		im.batch.rows++
		r := csvRecord{lines: []csvLine{line}, at: file.at - int64(in.Buffered())}
		if line.wrong != "" {
			r.fail(rowFault{Text: line.wrong})
		} else {
			r.row, r.faults = im.toRow(line.fields)
		}
		if err := im.add(r); err != nil {
			return err
		}
	}
}

// readSales is read for sales, whose rows are gathered before anything is written.
func (im *importer) readSales(file *readPart) error {
	g := saleGatherer{sheet: &im.importSheet, memory: cmp.Or(im.memory, importMemory), place: im.place}
	err := g.gather(file, func(r csvRecord) error {
		im.batch.rows = g.rows
		return im.add(r)
	})
	return cmp.Or(err, im.handOver())
}

func (im *importer) add(r csvRecord) error {
	b := &im.batch
	b.at = max(b.at, r.at)
	b.records = append(b.records, r)
	if b.lines += len(r.lines); b.lines < importBatch {
		return nil
	}
	return im.handOver()
}

// errStopped ends the reading when the sending has failed.
var errStopped = errors.New("import: stopped")

// handOver passes the batch to sendAll.
func (im *importer) handOver() error {
	select {
	case im.batches <- im.batch:
		im.batch = csvBatch{rows: im.batch.rows, at: im.batch.at}
		return nil
	case <-im.stopped:
		return errStopped
	}
}

func (im *importer) sendAll() error {
	for b := range im.batches {
		if err := im.send(b); err != nil {
			return err
		}
		im.sent.Store(b.at)
	}
	return nil
}

// send imports the records of a batch. It rejects records that cannot be read, or in which the
// file or the store finds a fault. The store looks at all that can be read, so that somebody who
// mends a row knows all of its faults.
func (im *importer) send(b csvBatch) error {
	im.report.Rows = b.rows
	request := im.request
	for i := range b.records {
		r := &b.records[i]
		if !r.isReadable() {
			continue
		}
		for _, f := range r.faults {
			r.row.Faulty = append(r.row.Faulty, f.path())
		}
		request.Rows = append(request.Rows, r.row)
	}
	var outcomes []importOutcome
	if len(request.Rows) > 0 {
		if err := im.call(im.ctx, "import", request, &outcomes); err != nil {
			return err
		}
	}
	for i := range b.records {
		r := &b.records[i]
		var o importOutcome
		if r.isReadable() {
			o, outcomes = outcomes[0], outcomes[1:]
		}
		if err := im.count(r, o); err != nil {
			return err
		}
	}
	return nil
}

// count counts what came of a record, and tells what somebody should look at.
func (im *importer) count(r *csvRecord, o importOutcome) error {
	if o.Opening != 0 {
		im.report.OpeningBalances++
		im.report.OpeningPoints += o.Opening
	}
	faults := slices.Concat(r.faults, o.Faults)
	switch {
	case len(faults) > 0:
		im.report.Wrong++
		return im.list(r.lines, im.told(r, faults))
	case o.Added:
		im.report.Added++
		im.added.add(o.Number, r.lines[0].number)
	default:
		im.report.Known++
	}
	if o.Warning.Text == "" {
		return nil
	}
	im.report.Warned++
	return im.list(r.lines, o.Warning.Text+im.who(o.Warning))
}

// maxToldFaults bounds the faults that are told of a row.
const maxToldFaults = 10

// told says what is wrong with a record, in the order of its cells: each fault with the
// heading of its column and the cell, as the sheet has them.
func (im *importer) told(r *csvRecord, faults []rowFault) string {
	place := func(f rowFault) int {
		if im.headings.shown(f.Field) == "" {
			return math.MaxInt // the row as a whole comes last
		}
		return f.Item*len(im.taken) + slices.Index(im.taken, f.Field)
	}
	slices.SortStableFunc(faults, func(a, b rowFault) int { return cmp.Compare(place(a), place(b)) })
	texts := make([]string, 0, maxToldFaults+1)
	for i, f := range faults {
		if i == maxToldFaults {
			texts = append(texts, fmt.Sprintf("y %d más", len(faults)-i))
			break
		}
		texts = append(texts, im.named(r, f)+im.who(f))
	}
	return strings.Join(texts, "; ")
}

// named is a fault with the heading and the cell that it is of.
func (im *importer) named(r *csvRecord, f rowFault) string {
	heading := im.headings.shown(f.Field)
	if heading == "" {
		return f.Text
	}
	text := strings.TrimPrefix(f.Text, f.path()+" ")
	line := r.lineOf(f.Item)
	if at := slices.Index(im.taken, f.Field); at >= 0 {
		heading = im.columns[at]
		if cell := trimBlanks(line.fields[at]); cell != "" {
			text = `"` + shownName(cell) + `": ` + text
		}
	}
	if slices.Contains(itemColumns, f.Field) && len(r.lines) > 1 {
		return fmt.Sprintf("fila %d, %s: %s", line.number, heading, text)
	}
	return heading + ": " + text
}

// who leads to the customer that a fault names at its end: by the row of this file, or else
// by the externalId.
func (im *importer) who(f rowFault) string {
	if line := im.added.line(f.Number); line > 0 {
		return fmt.Sprint(", fila ", line)
	}
	if f.ExternalID != "" {
		return ", externalId " + f.ExternalID
	}
	return ""
}

// list writes a record's lines, guarded as exports are, to the file of errors.
func (im *importer) list(lines []csvLine, reason string) error {
	if im.rejects.file == nil {
		if err := im.rejects.begin(im.form.Separator, im.plain, im.columns); err != nil {
			return err
		}
	}
	slices.SortFunc(lines, func(a, b csvLine) int { return cmp.Compare(a.number, b.number) })
	for _, l := range lines {
		if !im.raw {
			sheet.Guard(l.fields)
		}
		if err := im.rejects.write(l, reason); err != nil {
			return err
		}
	}
	return nil
}

// The flags of the commands that import CSV.

func importFlags(c *invocation) {
	orgJSONFlags(c)
	sampleFlag(c)
	c.set.Func("ignore", "`columnas` que se dejan fuera, separadas por comas; se puede repetir; sin ella, una columna desconocida es un error", func(list string) error {
		c.ignore = append(c.ignore, list) // as a whole: a column's name may have commas
		for name := range strings.SplitSeq(list, ",") {
			c.ignore = append(c.ignore, trimBlanks(name))
		}
		return nil
	})
	c.set.Func("map", "`COLUMNA=campo`: qué es una columna que no se reconoce, como \"Correo 2\"=email; se puede repetir", func(text string) error {
		at := strings.LastIndex(text, "=")
		if at < 0 || trimBlanks(text[at+1:]) == "" {
			return errors.New("COLUMNA=campo")
		}
		c.mapped = append(c.mapped, [2]string{text[:at], trimBlanks(text[at+1:])})
		return nil
	})
	c.set.Func("decimal", "`signo` decimal, coma o punto, de los números que se pueden leer de dos maneras, como 1.250; sin ella son un error", func(word string) error {
		signs := map[string]rune{"coma": ',', "punto": '.'}
		if c.decimal = signs[word]; c.decimal == 0 {
			return errors.New("coma o punto")
		}
		return nil
	})
	c.set.Func("dates", "`orden` de las fechas: dmy (primero el día) o mdy (primero el mes); sin ella, primero el día, y si otras fechas del archivo llevan primero el mes son un error", func(word string) error {
		if c.dates = sheet.DateOrder(word); c.dates != sheet.DayMonth && c.dates != sheet.MonthDay {
			return errors.New("dmy o mdy")
		}
		return nil
	})
	c.set.Func("encoding", "`codificación` del archivo: utf-8, utf-16, windows-1252, ibm850, ibm437 o macintosh; sin ella se averigua", func(word string) error {
		if c.encoding = sheet.Encodings[word]; c.encoding == sheet.Unknown {
			return errors.New("utf-8, utf-16, windows-1252, ibm850, ibm437 o macintosh")
		}
		return nil
	})
	c.chooses("decimal", "coma", "punto")
	c.chooses("dates", string(sheet.DayMonth), string(sheet.MonthDay))
	c.chooses("encoding", slices.Sorted(maps.Keys(sheet.Encodings))...)
	c.set.BoolVar(&c.dryRun, "dry-run", false, "ensaya la importación en una copia del archivo y dice qué entraría, sin guardar nada")
	c.set.BoolVar(&c.samePerson, "same-person", false, "basta que coincida el correo o el teléfono para que una fila sea de un cliente, aunque lo demás sea otro")
	c.set.BoolVar(&c.raw, "raw", false, "toma las celdas tal cual, como las escribe export -raw: no quita el apóstrofo ante =, +, -, @ o una cifra")
	c.more = `El archivo puede venir de Excel, LibreOffice o Google Sheets: separado por comas, puntos y
coma o tabuladores, en UTF-8, UTF-16 o Windows-1252 (otras: -encoding). Fechas: 2026-11-30 o 30/11/2026.
Los encabezados pueden estar en español o en inglés.

Lo que no se puede importar queda en ARCHIVO.csv.errors.csv, con su línea y su motivo;
lo demás entra. También está ahí, con un aviso, lo que entró en un cliente con otro nombre.
Si ese archivo ya existe, se escribe otro (.errors-2.csv).
Código de salida: 0 si entró todo o ya estaba, 1 si algo no entró.`
}

func programFlag(c *invocation) {
	c.set.StringVar(&c.program, "program", "", "`clave` del programa al que van los puntos; sin ella, el predeterminado")
}

func importCustomersFlags(c *invocation) {
	importFlags(c)
	fromFlag(c, importCustomers)
	programFlag(c)
	c.set.BoolVar(&c.noWelcome, "no-welcome", false, "no da a los clientes nuevos los puntos de bienvenida (reglas Signup)")
	c.more = "Columnas: nombre, apellido, correo, teléfono, externalId, cumpleaños, alta, puntos, vencen,\n" +
		"puntos históricos. Los puntos entran como saldo inicial una sola vez por cliente y programa.\n\n" + c.more
}

func importPointsFlags(c *invocation) {
	importFlags(c)
	programFlag(c)
	c.more = "Columnas: referencia (única para siempre: lo que ya se dio con ella no se da otra vez), puntos\n" +
		"(con - se quitan), correo, teléfono, externalId o id del cliente, categoría, comentario, vencen.\n" +
		"Un archivo que se interrumpió se importa otra vez.\n\n" + c.more
}

func importSalesFlags(c *invocation) {
	importFlags(c)
	fromFlag(c, importSales)
	c.more = "Columnas: externalId (ticket), createdAt (fecha), correo, teléfono, customerExternalId o\n" +
		"customerId del cliente, tipo (compra o devolución), total, producto, cantidad, precio, comentario.\n" +
		"Las filas de un ticket son una venta, estén donde estén. Entra entera, o va entera a los errores.\n\n" + c.more
}

// The commands that write CSV.

func exportCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		c.onlyReads()
		return c.withOrg(ctx, func(call adminCaller, org string) error {
			form := csvForm{raw: c.raw, separator: c.separator}
			return form.write(ctx, call, exportRequest{Org: org, Kind: kind, Full: c.full, Segment: c.segment}, c.stdout)
		})
	}
}

// A csvForm says how CSV is written. Unless raw is true it is for a spreadsheet: with a byte
// order mark, and cells guarded.
type csvForm struct {
	raw       bool
	separator rune // 0: a comma
}

// write writes an organization's records of one kind, oldest first.
func (f csvForm) write(ctx context.Context, call adminCaller, in exportRequest, w io.Writer) error {
	if !f.raw {
		if _, err := io.WriteString(w, sheet.MarkUTF8); err != nil {
			return err
		}
	}
	out := csv.NewWriter(w)
	out.Comma = cmp.Or(f.separator, out.Comma)
	if err := out.Write(columnsOf(in)); err != nil {
		return err
	}
	for {
		var page exportPage
		if err := call(ctx, "export/rows", in, &page); err != nil {
			return err
		}
		for _, row := range page.Rows {
			if !f.raw {
				sheet.Guard(row)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		if in.After = page.Next; in.After == 0 {
			out.Flush()
			return out.Error()
		}
	}
}

func exportFlags(c *invocation) {
	orgFlag(c)
	c.set.BoolVar(&c.raw, "raw", false, "para otro programa o para volver a importar: celdas tal cual, sin lo que una hoja de cálculo necesita")
	c.set.Func("separator", "`signo` entre las celdas: coma, punto-y-coma o tabulador; sin ella, coma", func(word string) error {
		if c.separator = separatorWords[word]; c.separator == 0 {
			return errors.New("coma, punto-y-coma o tabulador")
		}
		return nil
	})
	c.chooses("separator", slices.Sorted(maps.Keys(separatorWords))...)
	c.more = `Sin -raw, para hoja de cálculo: el archivo empieza con la marca de UTF-8, sin la que Excel
muestra mal los acentos; ante una celda que la hoja ejecutaría (=, +, -, @ y más) va un
apóstrofo, y un teléfono o un número como 0012 va como ="0012", para que no pierda nada.
La importación lo quita. Lo escrito con -raw se importa con -raw: así vuelve igual.`
}

// separatorWords are the signs between two cells. Which one a spreadsheet expects depends on its
// user's language.
var separatorWords = map[string]rune{"coma": ',', "punto-y-coma": ';', "tabulador": '\t'}

func exportCustomersFlags(c *invocation) {
	exportFullFlags("id, nivel, saldo, puntos pendientes, lo que vence en cada fecha, fecha de alta y estado; del programa del cliente")(c)
	c.set.StringVar(&c.segment, "segment", "", "solo los clientes del segmento con esta `clave`")
}

func exportFullFlags(more string) func(*invocation) {
	return func(c *invocation) {
		exportFlags(c)
		c.set.BoolVar(&c.full, "full", false, "añade "+more)
	}
}
