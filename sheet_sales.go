package main

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"sello/internal/contact"
	"sello/internal/tz"
)

// The rows of one externalId are one sale wherever they stand in a file (contract §31), except
// a purchase's returns, which share its externalId, and receipt numbers that begin anew on
// another day. All rows are gathered before any sale is written.

// importMemory is how many bytes of a file of sales are gathered at once. In memory a row takes
// about ten times its bytes. A larger file is read once for each share of this size, by the
// hash of the externalId. The rows of one externalId are always in memory together.
const importMemory = 8 << 20

// A csvRecord is one customer or sale and the lines it was read from.
type csvRecord struct {
	row    importRow
	lines  []csvLine
	items  []int      // of each item, the place of its line in lines
	faults []rowFault // found without the store
	at     int64      // bytes of the file up to its first line, about
}

// isReadable reports whether the record has a row that the store can look at.
func (r *csvRecord) isReadable() bool {
	return slices.ContainsFunc(r.lines, func(l csvLine) bool { return l.wrong == "" })
}

// lineOf returns the line of an item, or the first that can be read.
func (r *csvRecord) lineOf(item int) csvLine {
	if item < len(r.items) {
		return r.lines[r.items[item]]
	}
	return r.lines[max(slices.IndexFunc(r.lines, func(l csvLine) bool { return l.wrong == "" }), 0)]
}

// fail records a fault, unless its field has one already.
func (r *csvRecord) fail(f rowFault) {
	if !slices.ContainsFunc(r.faults, func(g rowFault) bool { return g.Field == f.Field && g.Item == f.Item }) {
		r.faults = append(r.faults, f)
	}
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

// A saleGatherer gathers the rows of each sale of a file.
type saleGatherer struct {
	sheet  *importSheet
	memory int64 // as importMemory
	place  importPlace
	zone   *time.Location
	rows   int // of the file, known after the first pass
}

// A receipt is the lines of one externalId. A line without fields stands for a line that cannot be
// read: by its fields it is another receipt's, by its place it may be this one's.
type receipt struct {
	lines []csvLine
	at    int64
}

// gather calls emit with each sale of a file, in the order of their first lines.
func (g *saleGatherer) gather(file *readPart, emit func(csvRecord) error) (err error) {
	if g.zone, err = tz.Load(g.place.Zone); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	passes := uint64(size/g.memory) + 1
	if passes == 1 {
		list, err := g.pass(file, 0, 1)
		for i := 0; err == nil && i < len(list); i++ {
			err = emit(list[i])
		}
		return err
	}
	spool, err := os.CreateTemp("", "sello-import-")
	if err != nil {
		return err
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	var ends []int64
	for n := range passes {
		list, err := g.pass(file, n, passes)
		if err == nil {
			err = writeRun(spool, list)
		}
		if err != nil {
			return err
		}
		end, err := spool.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		ends = append(ends, end)
	}
	return mergeRuns(spool, ends, emit)
}

// pass returns the sales of the receipts whose hash is n, of so many hashes.
func (g *saleGatherer) pass(file *readPart, n, of uint64) ([]csvRecord, error) {
	receipts := map[string]*receipt{}
	err := g.read(file, func(name string, line csvLine, at int64) {
		if name == "" { // whose it is cannot be known: it stands alone
			name = "\x00" + strconv.Itoa(line.number)
		}
		if of > 1 && maphash.String(receiptSeed, name)%of != n {
			return
		}
		if receipts[name] == nil {
			receipts[name] = &receipt{at: at}
		}
		receipts[name].lines = append(receipts[name].lines, line)
	})
	if err != nil {
		return nil, err
	}
	var list []csvRecord
	for _, t := range receipts {
		for _, r := range g.sales(t.lines) {
			r.at = t.at
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b csvRecord) int { return cmp.Compare(a.lines[0].number, b.lines[0].number) })
	return list, nil
}

// read calls put with each line of a file and the externalId that it is of; "" if none.
func (g *saleGatherer) read(file *readPart, put func(name string, line csvLine, at int64)) error {
	in, err := g.sheet.heading(file)
	if err != nil {
		return err
	}
	before, held, at := "", []csvLine(nil), int64(0)
	// release puts the lines that could not be read. Between two rows of one receipt they may be its own.
	release := func(next string) {
		for _, line := range held {
			own := g.receiptOf(line)
			if put(own, line, at); next != "" && next == before && next != own {
				put(next, csvLine{number: line.number, wrong: line.wrong}, at)
			}
		}
		held = held[:0]
	}
	for g.rows = 0; ; g.rows++ {
		line, err := g.sheet.record(in)
		if err == io.EOF {
			release("")
			return nil
		}
		if err != nil {
			return err
		}
		at = file.at - int64(in.Buffered())
		name := g.receiptOf(line)
		switch {
		case line.wrong != "":
			if held = append(held, line); len(held) == maxItems {
				release("")
			}
		case name == "" && before != "" && g.isItemOnly(line):
			line.wrong = "no lleva externalId"
			put(before, line, at)
		default:
			release(name)
			put(name, line, at)
			before = name
		}
	}
}

// receiptSeed is the seed of the hashes by which receipts are shared out among passes.
var receiptSeed = maphash.MakeSeed()

// receiptOf is the externalId of a line; "" if it has none.
func (g *saleGatherer) receiptOf(line csvLine) string {
	at := slices.Index(g.sheet.taken, "externalId")
	if at >= len(line.fields) || len(line.fields) < 2 {
		return ""
	}
	return trimBlanks(line.fields[at])
}

// isItemOnly reports whether a line has an item and nothing of its sale, as where the cells of
// several rows were merged.
func (g *saleGatherer) isItemOnly(line csvLine) bool {
	for i, name := range g.sheet.taken {
		if name != "" && !slices.Contains(itemColumns, name) && trimBlanks(line.fields[i]) != "" {
			return false
		}
	}
	return true
}

// sales returns the sales of a receipt's lines. A sale with a row that cannot be read is wrong, since
// it must not go in without one of its items; so are the returns of a wrong purchase.
func (g *saleGatherer) sales(lines []csvLine) (list []csvRecord) {
	var broken []csvLine
	for _, line := range lines {
		if line.wrong != "" {
			broken = append(broken, line)
			continue
		}
		next := csvRecord{lines: []csvLine{line}}
		next.row, next.faults = g.sheet.toRow(line.fields)
		at := len(list) - 1
		for at >= 0 && !g.fits(&list[at].row, &next.row) {
			at--
		}
		if at >= 0 {
			g.join(&list[at], next)
			continue
		}
		next.row.Type = cmp.Or(next.row.Type, typePurchase)
		next.items = make([]int, len(next.row.Items))
		list = append(list, next)
	}
	var alone []csvRecord
	for _, line := range broken {
		if len(list) == 0 && line.fields != nil {
			alone = append(alone, csvRecord{lines: []csvLine{line}, faults: []rowFault{{Text: line.wrong}}})
		}
		for i := range list {
			list[i].fail(rowFault{Field: "items", Text: fmt.Sprintf("una de las filas de la venta no es válida: la fila %d %s", line.number, line.wrong)})
		}
		if len(list) > 0 && line.fields != nil {
			of := len(list) - 1 // the sale before it
			for of > 0 && list[of].lines[0].number > line.number {
				of--
			}
			list[of].lines = append(list[of].lines, line) // at the end, since items has places
		}
	}
	if slices.ContainsFunc(list, func(r csvRecord) bool { return r.row.Type == typePurchase && len(r.faults) > 0 }) {
		for i := range list {
			if list[i].row.Type == typeReturn {
				list[i].fail(rowFault{Text: "la compra que se devuelve tiene errores en este archivo"})
			}
		}
	}
	return append(list, alone...)
}

// fits reports whether a row with the externalId of a sale is one of its rows, if only with a fault.
// Tills note a moment for each item of a purchase, so the moments may differ within a day; the first
// counts. All returns of a purchase have its externalId, so the rows of one return have one moment.
// Purchases without items are told apart by their moments, too, since exports have such purchases.
func (g *saleGatherer) fits(sale, row *importRow) bool {
	types := []string{typePurchase, typeReturn}
	if sale.Type != row.Type && slices.Contains(types, sale.Type) && slices.Contains(types, row.Type) {
		return false
	}
	a, known := parseMoment(trimBlanks(sale.CreatedAt), g.zone, false)
	b, knownToo := parseMoment(trimBlanks(row.CreatedAt), g.zone, false)
	switch {
	case !known, !knownToo, a == b:
		return true
	case sale.Type == typeReturn || row.Type == typeReturn:
		return false
	}
	return g.place.Unique || dayOf(a, g.zone) == dayOf(b, g.zone) && len(sale.Items)+len(row.Items) > 0
}

// A saleCell is a cell that all rows of a sale have in common.
type saleCell struct {
	name string
	of   func(*importRow) *string
}

var saleCells = []saleCell{
	{"email", func(r *importRow) *string { return &r.Email }},
	{"phoneNumber", func(r *importRow) *string { return &r.Phone }},
	{"customerId", func(r *importRow) *string { return &r.ID }},
	{"customerExternalId", func(r *importRow) *string { return &r.Customer }},
	{"createdAt", func(r *importRow) *string { return &r.CreatedAt }},
	{"type", func(r *importRow) *string { return &r.Type }},
	{"totalAmount", func(r *importRow) *string { return &r.Total }},
}

// value spells a cell so that equal values are equal texts: of a moment, its day.
func (g *saleGatherer) value(name, cell string) string {
	text := trimBlanks(cell)
	switch name {
	case "email":
		if address, ok := contact.Email(text); ok {
			return address
		}
	case "phoneNumber":
		if number, ok := contact.Phone(text, g.place.Country); ok {
			return number
		}
	case "createdAt":
		if at, ok := parseMoment(text, g.zone, false); ok {
			return fmt.Sprint(dayOf(at, g.zone))
		}
	case "totalAmount":
		if d, err := parseDecimal(text); err == nil {
			return d.String()
		}
	}
	return text
}

const unequalRows = "no es igual en todas las filas de la venta"

// join adds a row to a sale. An empty cell has the value of another row. If two rows differ in a
// cell of the sale or in a label, the whole sale is wrong. Of several comments the first counts.
func (g *saleGatherer) join(r *csvRecord, next csvRecord) {
	line := next.lines[0].number
	for _, f := range next.faults {
		if slices.Contains(itemColumns, f.Field) {
			f.Item = len(r.row.Items)
		}
		r.fail(f)
	}
	unequal := func(name, cell string) {
		r.fail(rowFault{Field: name, Text: fmt.Sprintf(`%s: la fila %d tiene "%s"`, unequalRows, line, shownName(cell))})
	}
	for _, c := range saleCells {
		had, cell := c.of(&r.row), *c.of(&next.row)
		switch {
		case trimBlanks(cell) == "":
		case trimBlanks(*had) == "":
			*had = cell
		case g.value(c.name, *had) != g.value(c.name, cell):
			unequal(c.name, cell)
		}
	}
	r.row.Comment = cmp.Or(r.row.Comment, next.row.Comment)
	for _, l := range next.row.Labels {
		at := slices.IndexFunc(r.row.Labels, func(had label) bool { return had.Name == l.Name })
		if at < 0 {
			r.row.Labels = append(r.row.Labels, l)
		} else if trimBlanks(r.row.Labels[at].Value) != trimBlanks(l.Value) {
			unequal(labelColumn+l.Name, l.Value)
		}
	}
	for range next.row.Items {
		r.items = append(r.items, len(r.lines))
	}
	r.row.Items = append(r.row.Items, next.row.Items...)
	r.lines = append(r.lines, next.lines...)
}

// A spooledRecord is a csvRecord between its pass and its import.
type spooledRecord struct {
	Row    importRow
	Lines  []spooledLine
	Items  []int
	Faults []rowFault
	At     int64
}

type spooledLine struct {
	Number int
	Fields []string
	Wrong  string
}

// writeRun appends the records of a pass to a spool.
func writeRun(spool io.Writer, list []csvRecord) error {
	out := bufio.NewWriter(spool)
	run := gob.NewEncoder(out)
	for _, r := range list {
		s := spooledRecord{Row: r.row, Items: r.items, Faults: r.faults, At: r.at}
		for _, l := range r.lines {
			s.Lines = append(s.Lines, spooledLine{l.number, l.fields, l.wrong})
		}
		if err := run.Encode(&s); err != nil {
			return err
		}
	}
	return out.Flush()
}

// mergeRuns calls emit with the records of all runs of a spool, in the order of their first
// lines. ends says where each run ends.
func mergeRuns(spool io.ReaderAt, ends []int64, emit func(csvRecord) error) error {
	type run struct {
		in    *gob.Decoder
		first csvRecord
	}
	var runs []*run
	advance := func(r *run) error {
		var s spooledRecord
		if err := r.in.Decode(&s); err != nil {
			return err
		}
		r.first = csvRecord{row: s.Row, items: s.Items, faults: s.Faults, at: s.At}
		for _, l := range s.Lines {
			r.first.lines = append(r.first.lines, csvLine{l.Number, l.Fields, l.Wrong})
		}
		return nil
	}
	begin := int64(0)
	for _, end := range ends {
		r := &run{in: gob.NewDecoder(bufio.NewReader(io.NewSectionReader(spool, begin, end-begin)))}
		if err := advance(r); err == nil {
			runs = append(runs, r)
		} else if !errors.Is(err, io.EOF) {
			return err
		}
		begin = end
	}
	for len(runs) > 0 {
		r := slices.MinFunc(runs, func(a, b *run) int { return cmp.Compare(a.first.lines[0].number, b.first.lines[0].number) })
		if err := emit(r.first); err != nil {
			return err
		}
		if err := advance(r); errors.Is(err, io.EOF) {
			runs = slices.DeleteFunc(runs, func(other *run) bool { return other == r })
		} else if err != nil {
			return err
		}
	}
	return nil
}
