package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The commands that move CSV files in and out.

func importCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error { return c.importFile(ctx, kind, c.args[0]) }
}

func exportCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error { return c.exportFile(ctx, kind) }
}

// importBatch is how many lines one request takes.
const importBatch = 4000

// An importReport is the result of an import.
type importReport struct {
	Rows    int    `json:"rows"` // CSV records read, without the header
	Added   int    `json:"added"`
	Known   int    `json:"known"` // customers or sales that were there already
	Wrong   int    `json:"wrong"` // those that were not imported
	Errors  string `json:"errors,omitempty"`
	Seconds int    `json:"seconds"`
}

// A csvRecord is one customer or sale and the lines it was read from.
type csvRecord struct {
	row   importRow
	lines []csvLine
	wrong string // a fault found without the store; "": none
}

type csvLine struct {
	number int
	fields []string
	wrong  string // why it cannot be read; "": it can. If it is no CSV, fields holds the raw line
}

// A csvBatch is the records of one request, and those found wrong while they were
// read.
type csvBatch struct {
	records []csvRecord
	wrong   []csvRecord
	lines   int // of records and wrong
	rows    int // read from the file so far
}

// A lineReader reads CSV so that one stray quotation mark does not swallow the
// rest of the file. A quoted field may go on over a few lines; if it does not end
// there, only its first line is wrong.
type lineReader struct {
	in     *bufio.Reader
	ahead  []string // lines read and not yet used
	number int      // of the last line used
}

// maxFieldLines bounds the lines of one record.
const maxFieldLines = 20

func newLineReader(r io.Reader) *lineReader {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" { // byte order mark
		in.Discard(3)
	}
	return &lineReader{in: in}
}

// record reads the next record and skips blank lines before it.
func (l *lineReader) record() (csvLine, error) {
	for {
		text, err := l.peek(0)
		if err != nil {
			return csvLine{}, err
		}
		if strings.TrimSpace(text) != "" {
			break
		}
		l.use(1)
	}
	first := l.number + 1
	record, quotes := "", 0
	for n := range maxFieldLines {
		text, err := l.peek(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return csvLine{}, err
		}
		record += text
		if quotes += strings.Count(text, `"`); quotes%2 != 0 {
			continue
		}
		fields, err := csv.NewReader(strings.NewReader(record)).Read()
		if err != nil {
			break
		}
		l.use(n + 1)
		return csvLine{number: first, fields: fields}, nil
	}
	text := l.ahead[0]
	l.use(1)
	return csvLine{number: first, fields: []string{strings.TrimRight(text, "\r\n")}, wrong: "no es CSV válido: hay comillas mal puestas"}, nil
}

// peek returns line n of those not yet used, counted from 0.
func (l *lineReader) peek(n int) (string, error) {
	for len(l.ahead) <= n {
		text, err := l.in.ReadString('\n')
		if text == "" {
			return "", err
		}
		l.ahead = append(l.ahead, text)
	}
	return l.ahead[n], nil
}

func (l *lineReader) use(n int) {
	l.ahead = l.ahead[n:]
	l.number += n
}

// importFile imports the records of a CSV file in batches. What cannot be imported
// is written to FILE.errors.csv with its line and the reason.
func (c *invocation) importFile(ctx context.Context, kind, name string) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		im := &importer{ctx: ctx, id: rand.Text(), call: call, org: org, kind: kind, ignore: c.ignore, raw: c.raw, started: time.Now(), rejectsName: name + ".errors.csv"}
		if isTerminal(c.stderr) {
			im.progress = c.stderr
		}
		if err := im.run(file); err != nil {
			return err
		}
		r := im.report
		r.Seconds = int(time.Since(im.started).Seconds())
		err = c.print(r, func(w io.Writer) {
			added := plural(r.Added, "nuevo", "nuevos")
			if kind == importSales { // ventas
				added = plural(r.Added, "nueva", "nuevas")
			}
			fmt.Fprintf(w, "%s: %s, %d que ya estaban, %d con errores\n", plural(r.Rows, "fila", "filas"), added, r.Known, r.Wrong)
			if r.Wrong > 0 {
				fmt.Fprintf(w, "los errores están en %s\n", r.Errors)
			}
		})
		if err == nil && r.Wrong > 0 {
			err = adminErrorf("no se importó todo: %s", plural(r.Wrong, "registro con errores", "registros con errores"))
		}
		return err
	})
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// An importer is one import under way.
type importer struct {
	ctx      context.Context
	call     adminCaller
	id       string // distinguishes imports under way at the same time
	org      string
	kind     string
	started  time.Time
	progress io.Writer // nil: show none

	ignore      []string            // columns to leave out
	raw         bool                // cells have no guard
	columns     []string            // of the file
	taken       []string            // columns, with "" for those left out
	open        csvRecord           // the sale whose rows are being read
	held        []csvLine           // unreadable lines after it, which may be its rows
	closed      map[uint64]struct{} // purchases with items read so far, by the hash of what their rows share
	batch       csvBatch            // being filled
	batches     chan csvBatch       // to be sent
	stopped     chan struct{}       // closed when nothing more will be sent
	report      importReport
	rejectsName string
	rejects     *csv.Writer // nil until the first reject
	rejectsFile *os.File
}

func (im *importer) run(file io.Reader) (err error) {
	defer func() {
		if im.rejects != nil {
			im.rejects.Flush()
			err = errors.Join(err, im.rejects.Error(), im.rejectsFile.Close())
		}
		if im.progress != nil {
			fmt.Fprintln(im.progress)
		}
	}()
	in := newLineReader(file)
	header, err := in.record()
	if err != nil || header.wrong != "" {
		return adminErrorf("la primera línea no es un encabezado CSV")
	}
	im.columns = header.fields
	if err := im.checkColumns(); err != nil {
		return err
	}
	im.batches, im.stopped = make(chan csvBatch), make(chan struct{})
	go func() {
		defer close(im.stopped)
		err = im.sendAll()
	}()
	readErr := im.read(in)
	close(im.batches)
	<-im.stopped
	if err = cmp.Or(err, readErr); err != nil {
		return err
	}
	return im.call(im.ctx, "import/done", importEnd{im.org, im.id}, new(struct{}))
}

// read reads the records and hands them over in batches, so that one batch is read
// while another is being imported.
func (im *importer) read(in *lineReader) error {
	for {
		line, err := in.record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		im.batch.rows++
		if !im.raw {
			unguardCells(line.fields)
		}
		line.wrong = cmp.Or(line.wrong, im.malformed(line.fields))
		if err := im.take(line); err != nil {
			return err
		}
	}
	if err := im.close(); err != nil {
		return err
	}
	return im.handOver()
}

// take adds one line to the open record or begins the next. An unreadable line waits
// for the next readable one. Between two rows of one sale it is a row of that sale too.
// Then the sale is wrong, since it must not go in without one of its items.
func (im *importer) take(line csvLine) error {
	if line.wrong != "" {
		im.held = append(im.held, line)
		if len(im.open.row.Items) > 0 && len(im.held) < maxItems {
			return nil
		}
		return im.close()
	}
	next := csvRecord{row: im.toRow(line.fields), lines: []csvLine{line}}
	if im.kind == importSales && sameSale(im.open.row, next.row) {
		if len(im.held) > 0 {
			im.open.wrong = "una de las filas de la venta no es válida"
			im.open.lines = append(im.open.lines, im.held...)
			im.held = nil
		}
		im.open.join(next)
		return nil
	}
	if err := im.close(); err != nil {
		return err
	}
	im.open = next
	return nil
}

// close ends the open record. Held lines are not part of it, and each is wrong.
func (im *importer) close() error {
	open, held := im.open, im.held
	im.open, im.held = csvRecord{}, nil
	if im.reopens(open.row) {
		open.wrong = "las filas de la venta no están juntas"
	}
	if err := im.add(open); err != nil {
		return err
	}
	for _, line := range held {
		if err := im.add(csvRecord{lines: []csvLine{line}, wrong: line.wrong}); err != nil {
			return err
		}
	}
	return nil
}

// reopens reports whether other rows of the same purchase were read before, apart
// from these. Each group would become a sale of its own.
func (im *importer) reopens(r importRow) bool {
	if r.Type != typePurchase || len(r.Items) == 0 {
		return false
	}
	h := sha256.New()
	for _, s := range []string{r.ExternalID, r.Email, r.Phone, dateOf(r.CreatedAt)} {
		fmt.Fprintf(h, "%q", s)
	}
	sum := binary.BigEndian.Uint64(h.Sum(nil))
	_, reopened := im.closed[sum]
	if im.closed == nil {
		im.closed = map[uint64]struct{}{}
	}
	im.closed[sum] = struct{}{}
	return reopened
}

// rejectColumns are the first columns of a file of errors. An import ignores them, so
// that the file can be imported as it is once its rows are mended.
var rejectColumns = []string{"line", "reason"}

// checkColumns returns an error if the file's columns are wrong. An unknown column is
// wrong too: its name may be misspelt, and its loss would be noticed only later.
func (im *importer) checkColumns() error {
	known, required := exportColumns[im.kind], []string{"email", "phoneNumber"}
	if im.kind == importSales {
		required = []string{"externalId", "createdAt", "email", "phoneNumber", "type", "totalAmount"}
	}
	for i, name := range im.columns {
		im.columns[i] = trimBlanks(name)
	}
	im.taken = slices.Clone(im.columns)
	if len(im.taken) > len(rejectColumns) && slices.Equal(im.taken[:len(rejectColumns)], rejectColumns) {
		clear(im.taken[:len(rejectColumns)])
	}
	var unknown []string
	for i, name := range im.taken {
		switch {
		case im.taken[i] == "" && im.columns[i] != "": // one of rejectColumns
		case slices.Contains(im.ignore, name):
			im.taken[i] = ""
		case !slices.Contains(known, name):
			unknown = append(unknown, strconv.Quote(name))
		case slices.Contains(im.taken[:i], name):
			return adminErrorf("la columna %s está dos veces", name)
		}
	}
	if missing := slices.DeleteFunc(required, func(name string) bool { return slices.Contains(im.taken, name) }); len(missing) > 0 {
		return adminErrorf("faltan columnas: %s", strings.Join(missing, ", "))
	}
	if len(unknown) > 0 {
		return adminErrorf("columnas desconocidas: %s (con -ignore se dejan fuera)", strings.Join(unknown, ", "))
	}
	return nil
}

// malformed returns what is wrong with a line as a whole, or "".
func (im *importer) malformed(fields []string) string {
	if len(fields) != len(im.columns) {
		return fmt.Sprintf("tiene %d columnas y debería tener %d", len(fields), len(im.columns))
	}
	if slices.ContainsFunc(fields, func(s string) bool { return !utf8.ValidString(s) }) {
		return "no es UTF-8 válido"
	}
	return ""
}

func (im *importer) toRow(fields []string) importRow {
	get := func(name string) string {
		if i := slices.Index(im.taken, name); i >= 0 {
			return fields[i]
		}
		return ""
	}
	saleType := get("type")
	if im.kind == importSales {
		saleType = cmp.Or(trimBlanks(saleType), typePurchase)
	}
	row := importRow{
		FirstName: get("firstName"), LastName: get("lastName"), Email: get("email"), Phone: get("phoneNumber"),
		ExternalID: get("externalId"), CreatedAt: get("createdAt"), Type: saleType, Total: get("totalAmount"), Comment: get("comment"),
	}
	if it := (importItem{get("sku"), get("quantity"), get("price")}); it != (importItem{}) {
		row.Items = []importItem{it}
	}
	return row
}

// sameSale reports whether two adjacent rows are items of one sale. A row without
// an item is a sale of its own. Tills note a moment for each item of a purchase, so
// these may differ within a day; the first counts. All returns of a purchase have
// its externalId, so returns must have the same moment.
func sameSale(a, b importRow) bool {
	if len(a.Items) == 0 || len(b.Items) == 0 || a.ExternalID == "" ||
		a.ExternalID != b.ExternalID || a.Type != b.Type || a.Email != b.Email || a.Phone != b.Phone {
		return false
	}
	return a.CreatedAt == b.CreatedAt || a.Type == typePurchase && dateOf(a.CreatedAt) == dateOf(b.CreatedAt)
}

// dateOf returns the date as the file writes it. The organization's time zone is
// not known here.
func dateOf(moment string) string {
	moment = trimBlanks(moment)
	if at := strings.IndexAny(moment, "Tt"); at >= 0 {
		moment = moment[:at]
	}
	return moment
}

// join adds a row to a sale. If the totals of its rows differ, the whole sale is
// wrong.
func (r *csvRecord) join(next csvRecord) {
	if next.row.Total != r.row.Total {
		r.wrong = "las filas de la venta no coinciden en totalAmount"
	}
	r.row.Items = append(r.row.Items, next.row.Items...)
	r.lines = append(r.lines, next.lines...)
}

func (im *importer) add(r csvRecord) error {
	if len(r.lines) == 0 {
		return nil
	}
	b := &im.batch
	if r.wrong != "" {
		b.wrong = append(b.wrong, r)
	} else {
		b.records = append(b.records, r)
	}
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
		im.batch = csvBatch{rows: im.batch.rows}
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
	}
	return nil
}

// send rejects the wrong records of a batch, imports the others, and rejects those
// that the store refuses.
func (im *importer) send(b csvBatch) error {
	im.report.Rows = b.rows
	for _, r := range b.wrong {
		if err := im.reject(r.lines, r.wrong); err != nil {
			return err
		}
	}
	if len(b.records) == 0 {
		return nil
	}
	request := importRequest{Org: im.org, Kind: im.kind, Import: im.id}
	for _, r := range b.records {
		request.Rows = append(request.Rows, r.row)
	}
	var outcomes []importOutcome
	if err := im.call(im.ctx, "import", request, &outcomes); err != nil {
		return err
	}
	for i, o := range outcomes {
		switch {
		case o.Reason != "":
			if err := im.reject(b.records[i].lines, o.Reason); err != nil {
				return err
			}
		case o.Added:
			im.report.Added++
		default:
			im.report.Known++
		}
	}
	if im.progress != nil {
		rate := float64(im.report.Rows) / max(time.Since(im.started).Seconds(), 0.001)
		fmt.Fprintf(im.progress, "\r%d filas, %.0f por segundo, %d con errores ", im.report.Rows, rate, im.report.Wrong)
	}
	return nil
}

// reject writes a record's lines, guarded as exports are, to the file of errors.
func (im *importer) reject(lines []csvLine, reason string) error {
	im.report.Wrong++
	if im.rejects == nil {
		os.Remove(im.rejectsName) // an old file's mode may let others read the personal data in it
		file, err := os.OpenFile(im.rejectsName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		im.rejectsFile, im.rejects, im.report.Errors = file, csv.NewWriter(file), im.rejectsName
		if err := im.rejects.Write(append([]string{"line", "reason"}, im.columns...)); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if !im.raw {
			guardCells(l.fields)
		}
		if err := im.rejects.Write(append([]string{strconv.Itoa(l.number), reason}, l.fields...)); err != nil {
			return err
		}
	}
	return nil
}

func (c *invocation) exportFile(ctx context.Context, kind string) error {
	return c.withOrg(ctx, func(call adminCaller, org string) error {
		return writeCSV(ctx, call, org, kind, c.raw, c.stdout)
	})
}

// writeCSV writes an organization's records of one kind, oldest first. It guards
// their cells unless raw is true.
func writeCSV(ctx context.Context, call adminCaller, org, kind string, raw bool, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(exportColumns[kind]); err != nil {
		return err
	}
	for after := uint64(0); ; {
		var page exportPage
		if err := call(ctx, "export/rows", exportRequest{org, kind, after}, &page); err != nil {
			return err
		}
		for _, row := range page.Rows {
			if !raw {
				guardCells(row)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		if after = page.Next; after == 0 {
			out.Flush()
			return out.Error()
		}
	}
}

// A customer's name may be a formula, which a spreadsheet runs when it opens the
// file. The formula may send the rest of the sheet elsewhere, or start a program. So an
// export puts an apostrophe before such a cell, which marks it as text, and an import
// takes it away. A cell that has apostrophes before the formula gets one more, so that
// an import takes away only what an export has put there.

// plainNumber matches an amount or an E.164 phone number. It may begin with a sign
// but is no formula.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// isFormula reports whether a spreadsheet may run a cell, or would without the
// apostrophes before it. The last four characters of its list are wide forms of the
// first four.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	if strings.HasPrefix(cell, "\t") || strings.HasPrefix(cell, "\r") || strings.HasPrefix(cell, "\n") {
		return true
	}
	cell = strings.TrimSpace(cell)
	first, _ := utf8.DecodeRuneInString(cell)
	return strings.ContainsRune("=+-@＝＋－＠", first) && !plainNumber.MatchString(cell)
}

func guardCells(row []string) {
	for i, cell := range row {
		if isFormula(cell) {
			row[i] = "'" + cell
		}
	}
}

// unguardCells removes the apostrophes that guardCells adds.
func unguardCells(row []string) {
	for i, cell := range row {
		if isFormula(cell) {
			row[i] = strings.TrimPrefix(cell, "'")
		}
	}
}

func importFlags(c *invocation) {
	orgJSONFlags(c)
	c.set.Func("ignore", "`columnas` que se dejan fuera, separadas por comas; sin ella, una columna desconocida es un error", func(list string) error {
		c.ignore = append(c.ignore, list) // as a whole: a column's name may have commas
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
