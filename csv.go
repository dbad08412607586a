package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The commands that import CSV files.

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

// An importReport is the result of an import.
type importReport struct {
	Rows    int    `json:"rows"` // CSV records read, without the header
	Added   int    `json:"added"`
	Known   int    `json:"known"`  // customers, sales or movements that were there already
	Wrong   int    `json:"wrong"`  // those that were not imported
	Warned  int    `json:"warned"` // of Added and Known, those in the file of errors with a warning
	Errors  string `json:"errors,omitempty"`
	Seconds int    `json:"seconds"`

	OpeningBalances int     `json:"openingBalances"` // how many were given
	OpeningPoints   decimal `json:"openingPoints"`   // their sum
	DryRun          bool    `json:"dryRun"`          // nothing was stored
}

// A csvRecord is one customer or sale and the lines it was read from.
type csvRecord struct {
	row    importRow
	lines  []csvLine
	faults []rowFault // found without the store
}

// isReadable reports whether the record has a row that the store can look at.
func (r *csvRecord) isReadable() bool { return r.lines[0].wrong == "" }

// lineOf returns the line of an item.
func (r *csvRecord) lineOf(item int) csvLine {
	for _, l := range r.lines {
		if l.wrong != "" {
			continue
		}
		if item == 0 {
			return l
		}
		item--
	}
	return r.lines[0]
}

// fail records a fault, unless its field has one already.
func (r *csvRecord) fail(f rowFault) {
	if !slices.ContainsFunc(r.faults, func(g rowFault) bool { return g.Field == f.Field && g.Item == f.Item }) {
		r.faults = append(r.faults, f)
	}
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
			sheet:   sheet{headings: known, raw: c.raw, decimal: c.decimal, encoding: c.encoding, dates: dateForm{order: c.dates}},
			request: importRequest{Org: org, Kind: known.kind, Import: rand.Text(), Program: c.program, NoWelcome: c.noWelcome, SamePerson: c.samePerson},
		}
		line := c.progress("importando")
		err := withSeeker(file, func(file io.ReadSeeker) error {
			size, err := file.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			return line.during(func() float64 { return float64(im.sent.Load()) / float64(max(size, 1)) }, func() error { return im.run(file) })
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

// write writes the report in words.
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
	original.readOnly = isDatabase(c.db) // which may be read beside a server
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

// A readPart knows how far a file has been read.
type readPart struct {
	io.ReadSeeker
	at int64 // bytes from the beginning
}

func (r *readPart) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	r.at += int64(n)
	return n, err
}

func (r *readPart) Seek(offset int64, whence int) (int64, error) {
	at, err := r.ReadSeeker.Seek(offset, whence)
	r.at = at
	return at, err
}

// An importer is one import under way.
type importer struct {
	ctx     context.Context
	call    adminCaller
	request importRequest // without rows
	started time.Time

	sheet
	open    csvRecord           // the sale whose rows are being read
	held    []csvLine           // unreadable lines after it, which may be its rows
	closed  map[uint64]struct{} // purchases with items read so far, by the hash of what their rows share
	batch   csvBatch            // being filled
	batches chan csvBatch       // to be sent
	stopped chan struct{}       // closed when nothing more will be sent
	sent    atomic.Int64        // bytes of the file that are imported, about
	report  importReport
	rejects rejects
	added   newcomers
}

func (im *importer) run(file io.ReadSeeker) (err error) {
	defer func() {
		err = errors.Join(err, im.rejects.close())
		im.report.Errors = im.rejects.name
	}()
	part := &readPart{ReadSeeker: file}
	in, err := im.rows(part)
	if err != nil {
		return err
	}
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
func (im *importer) read(in *lineReader, file *readPart) error {
	for {
		line, err := im.record(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		im.batch.rows++
		im.batch.at = file.at - int64(in.in.Buffered())
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
	next := csvRecord{lines: []csvLine{line}}
	next.row, next.faults = im.toRow(line.fields)
	if im.request.Kind == importSales && sameSale(im.open.row, next.row) {
		if len(im.held) > 0 {
			im.open.fail(rowFault{Field: "items", Text: "una de las filas de la venta no es válida"})
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
		open.fail(rowFault{Field: "items", Text: "las filas de la venta no están juntas"})
	}
	if err := im.add(open); err != nil {
		return err
	}
	for _, line := range held {
		if err := im.add(csvRecord{lines: []csvLine{line}, faults: []rowFault{{Text: line.wrong}}}); err != nil {
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

// toRow reads the cells of a line. faults are what cannot be read in any organization.
func (im *importer) toRow(fields []string) (row importRow, faults []rowFault) {
	it, in := importItem{}, cellReader{sheet: &im.sheet}
	for i, name := range im.taken {
		cell := fields[i]
		in.at(name, cell)
		switch name {
		case "firstName":
			row.FirstName = cell
		case "lastName", lastName2:
			row.LastName = trimBlanks(row.LastName + " " + cell)
		case "email":
			row.Email = cell
		case "phoneNumber":
			row.Phone = in.key()
		case "externalId":
			row.ExternalID = in.key()
		case "birthDate":
			row.BirthDate = in.date()
		case "marketing":
			row.Marketing = cell
		case "createdAt":
			row.CreatedAt = in.date()
		case "points":
			row.Points = in.number()
		case "expiresAt":
			row.Expires = in.date()
		case "historicPoints":
			row.Historic = in.number()
		case "type":
			row.Type = saleType(cell)
		case "totalAmount":
			row.Total = in.number()
		case "sku":
			it.SKU = cell
		case "quantity":
			it.Quantity = in.number()
		case "price":
			it.Price = in.number()
		case "comment":
			row.Comment = cell
		case "id":
			row.ID = cell
		case "category":
			row.Category = cell
		case "reference":
			row.Reference = in.key()
		case "labels":
			row.Labels = append(row.Labels, in.labels()...)
		default:
			row.label(name, cell)
		}
	}
	if im.request.Kind == importSales {
		row.Type = cmp.Or(row.Type, typePurchase)
	}
	if it != (importItem{}) {
		row.Items = []importItem{it}
	}
	return row, in.faults
}

// label adds the label of a column of its own.
func (row *importRow) label(name, cell string) {
	if called, ok := strings.CutPrefix(name, labelColumn); ok && trimBlanks(cell) != "" {
		row.Labels = append(row.Labels, label{called, cell})
	}
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

// join adds a row to a sale. If its rows differ in the total or in a label, the whole sale is
// wrong. A label may be in some rows only.
func (r *csvRecord) join(next csvRecord) {
	for _, f := range next.faults {
		if slices.Contains(itemColumns, f.Field) {
			f.Item = len(r.row.Items)
		}
		r.fail(f)
	}
	if next.row.Total != r.row.Total {
		r.fail(rowFault{Field: "totalAmount", Text: unequalRows})
	}
	for _, l := range next.row.Labels {
		at := slices.IndexFunc(r.row.Labels, func(had label) bool { return had.Name == l.Name })
		if at < 0 {
			r.row.Labels = append(r.row.Labels, l)
		} else if trimBlanks(r.row.Labels[at].Value) != trimBlanks(l.Value) {
			r.fail(rowFault{Field: labelColumn + l.Name, Text: unequalRows})
		}
	}
	r.row.Items = append(r.row.Items, next.row.Items...)
	r.lines = append(r.lines, next.lines...)
}

const unequalRows = "no es igual en todas las filas de la venta"

func (im *importer) add(r csvRecord) error {
	if len(r.lines) == 0 {
		return nil
	}
	b := &im.batch
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

// send imports the records of a batch, and rejects those that cannot be read and those in
// which the file or the store finds a fault. The store looks at all that can be read, so that
// somebody who mends a row knows all of its faults.
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
		return im.reject(r.lines, im.told(r, faults))
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

func (im *importer) reject(lines []csvLine, reason string) error {
	im.report.Wrong++
	return im.list(lines, reason)
}

// list writes a record's lines, guarded as exports are, to the file of errors.
func (im *importer) list(lines []csvLine, reason string) error {
	if im.rejects.file == nil {
		if err := im.rejects.begin(im.form.separator, im.plain, im.columns); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if !im.raw {
			guardCells(l.fields)
		}
		if err := im.rejects.write(l, reason); err != nil {
			return err
		}
	}
	return nil
}
