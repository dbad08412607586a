package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sello/internal/sheet"
)

// Reading the rows of a file that is imported. What only the whole file tells is found out
// before any row is imported.

// An importSheet is a file that is imported.
type importSheet struct {
	headings *fileHeadings
	raw      bool             // cells have no guard
	decimal  rune             // of numbers; 0 if it is not known
	currency string           // of the organization
	form     sheet.NumberForm // of the file
	dates    sheet.DateForm   // of the file
	encoding sheet.Encoding   // of the file; unknown until it is found out
	plain    bool             // the file is UTF-8 without a byte order mark
	columns  []string         // of the file, as it names them
	taken    []string         // columns; "" is a column left out
}

// rows returns the rows of a file whose heading and survey have no fault.
func (s *importSheet) rows(file io.ReadSeeker) (*sheet.Reader, error) {
	in, err := s.heading(file)
	if err != nil {
		return nil, err
	}
	if s.taken, err = s.headings.columns(s.columns); err != nil {
		return nil, s.belowTitle(in, err)
	}
	if err = s.survey(in); err != nil {
		return nil, err
	}
	return s.heading(file)
}

// heading reads a file from its beginning to the end of its heading.
func (s *importSheet) heading(file io.ReadSeeker) (*sheet.Reader, error) {
	text, err := sheet.Decode(file, s.encoding)
	if err != nil {
		return nil, sheetFault(err)
	}
	in := sheet.NewReader(text.Reader)
	s.columns, err = in.Header(s.headings.score)
	if err == io.EOF {
		return nil, adminErrorf("el archivo está vacío")
	}
	if err != nil {
		return nil, err
	}
	if s.columns == nil {
		return nil, adminErrorf("la primera línea no es un encabezado CSV")
	}
	for i, name := range s.columns {
		s.columns[i] = trimBlanks(name)
	}
	s.encoding, s.plain, s.form = text.Encoding, text.Plain, sheet.NumberForm{Separator: in.Comma, Decimal: s.decimal, Currency: s.currency}
	return in, nil
}

// record reads the next row that has a cell. Cells without a column are cut off if they
// are empty.
func (s *importSheet) record(in *sheet.Reader) (csvLine, error) {
	read, err := in.Record()
	for err == nil && sheet.IsBlank(read.Fields) {
		read, err = in.Record()
	}
	if err != nil {
		return csvLine{}, err
	}
	line := csvLine{number: read.Number, fields: read.Fields}
	if n := len(s.columns); len(line.fields) > n && sheet.IsBlank(line.fields[n:]) {
		line.fields = line.fields[:n]
	}
	if !s.raw {
		sheet.Unguard(line.fields)
	}
	if line.wrong = s.malformed(line.fields); read.Broken {
		line.wrong = "no es CSV válido: hay comillas mal puestas"
	}
	return line, nil
}

// sheetTexts are the errors of internal/sheet that have a text each.
var sheetTexts = []wording{
	{sheet.ErrOpenDocument, "es un libro de LibreOffice: guárdalo como CSV"},
	{sheet.ErrWorkbook, "es un libro de Excel: guárdalo como CSV"},
	{sheet.ErrMarkup, "es una página web o XML: ábrelo en la hoja de cálculo y guárdalo como CSV"},
	{sheet.ErrNumber, "se puede leer de dos maneras; con -decimal coma o -decimal punto se decide"},
	{sheet.ErrDate, "se puede leer de dos maneras, porque otras fechas del archivo llevan primero el mes; con -dates dmy o -dates mdy se decide"},
	{sheet.ErrDashed, "se puede leer de dos maneras, porque otros cumpleaños del archivo llevan primero el día; con -dates dmy o -dates mdy se decide"},
}

// sheetText is the text of such an error; "" if it has none.
func sheetText(err error) string {
	for _, e := range sheetTexts {
		if errors.Is(err, e.err) {
			return e.words
		}
	}
	return ""
}

// sheetFault tells an administrator what internal/sheet says of a file.
func sheetFault(err error) error {
	var mark *sheet.MarkError
	var guess *sheet.GuessError
	switch text := sheetText(err); {
	case errors.As(err, &mark):
		return adminErrorf("el archivo tiene la marca de %s, y -encoding dice %s", mark.Marked, mark.Named)
	case errors.As(err, &guess):
		return adminErrorf("el archivo puede estar en %s, donde dice %q, o en windows-1252, donde dice %q; con -encoding %s o -encoding windows-1252 se decide",
			guess.Encoding, guess.Word, guess.Windows1252, guess.Encoding)
	case text != "":
		return adminErrorf("%s", text)
	}
	return err
}

// malformed returns what is wrong with a line as a whole, or "".
func (s *importSheet) malformed(fields []string) string {
	if len(fields) != len(s.columns) {
		return fmt.Sprintf("tiene %d columnas y debería tener %d", len(fields), len(s.columns))
	}
	if slices.ContainsFunc(fields, func(cell string) bool { return !utf8.ValidString(cell) }) {
		return "no es UTF-8 válido"
	}
	if slices.ContainsFunc(fields, func(cell string) bool { return strings.ContainsRune(cell, utf8.RuneError) }) {
		return "tiene un carácter que no se puede leer"
	}
	return ""
}

// A cellReader reads the cells of a row and gathers their faults.
type cellReader struct {
	*importSheet
	name, cell string
	faults     []rowFault
}

// at goes to the cell of a column.
func (r *cellReader) at(name, cell string) { r.name, r.cell = name, cell }

func (r *cellReader) fail(why string) {
	r.faults = append(r.faults, rowFault{Field: r.name, Text: why})
}

// read takes what internal/sheet has read in a cell.
func (r *cellReader) read(text string, err error) string {
	if err != nil {
		r.fail(sheetText(err))
	}
	return text
}

func (r *cellReader) number() string { return r.read(r.form.Plain(r.cell)) }

func (r *cellReader) date() string { return r.read(r.dates.Plain(r.cell)) }

func (r *cellReader) birthDate() string { return r.read(r.dates.Birthday(r.cell)) }

// moment reads a date with its time, which may stand in a column of its own.
func (r *cellReader) moment(date, clock string) string {
	text := r.date()
	if sheet.PlainBlanks(clock) == "" || trimBlanks(date) == "" {
		return text
	}
	if !sheet.IsTime(clock) {
		r.at(clockTime, clock)
		r.fail("debe ser una hora, como 9:30, 21:30 o 9:30 p. m.")
		return text
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil { // it has a time, or is no date
		return text
	}
	return sheet.WithTime(text, clock)
}

// cellOf is the cell of a column in a row; "" if there is none.
func (s *importSheet) cellOf(name string, fields []string) string {
	if at := slices.Index(s.taken, name); at >= 0 {
		return fields[at]
	}
	return ""
}

// phone takes the first phone that is filled, and keeps another one to compare it with.
func (row *importRow) phone(cell, first string) {
	if cell == first || trimBlanks(first) == "" {
		row.Phone = cmp.Or(row.Phone, cell)
		return
	}
	row.OtherPhone = cell
}

// key reads a phone or the number of a customer.
func (r *cellReader) key() string {
	if sheet.HasLostDigits(r.cell) {
		r.fail("la hoja de cálculo perdió cifras; la columna debe tener formato de texto")
	}
	return r.cell
}

// labels reads the labels of a sale as an export writes them: a JSON object.
func (r *cellReader) labels() saleLabels {
	cell := trimBlanks(r.cell)
	if cell == "" {
		return nil
	}
	members, fault := parseObjectOf([]byte(cell), maxMembers)
	list, err := labelsIn(members)
	if fault != nil || err != nil {
		r.fail(`debe ser un objeto JSON de hasta 10 textos, como {"pago":"efectivo"}`)
		return nil
	}
	return list
}

// toRow reads the cells of a line. faults are what cannot be read in any organization.
func (s *importSheet) toRow(fields []string) (row importRow, faults []rowFault) {
	it, in := importItem{}, cellReader{importSheet: s}
	for i, name := range s.taken {
		cell := fields[i]
		in.at(name, cell)
		switch name {
		case "firstName":
			row.FirstName = cell
		case "lastName", lastName2:
			row.LastName = trimBlanks(row.LastName + " " + cell)
		case "email":
			row.Email = cell
		case "phoneNumber", phoneNumber2:
			row.phone(in.key(), s.cellOf("phoneNumber", fields))
		case "externalId":
			row.ExternalID = in.key()
		case "birthDate":
			row.BirthDate = in.birthDate()
		case "marketing":
			row.Marketing = cell
		case "marketingAt":
			row.MarketingAt = in.date()
		case "createdAt":
			row.CreatedAt = in.moment(fields[i], s.cellOf(clockTime, fields))
		case clockTime: // with createdAt
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
		case "comment":
			row.Comment = cell
		case "id", "customerId":
			row.ID = cell
		case "customerExternalId":
			row.Customer = in.key()
		case "category":
			row.Category = cell
		case "reference":
			row.Reference = in.key()
		case "labels":
			row.Labels = append(row.Labels, in.labels()...)
		default:
			in.item(&it)
			row.label(name, cell)
		}
	}
	if it != (importItem{}) {
		row.Items = []importItem{it}
	}
	return row, in.faults
}

func (r *cellReader) item(it *importItem) {
	switch r.name {
	case "sku":
		it.SKU = r.cell
	case "quantity":
		it.Quantity = r.number()
	case "price":
		it.Price = r.number()
	}
}

// label adds the label of a column of its own.
func (row *importRow) label(name, cell string) {
	if called, ok := strings.CutPrefix(name, labelColumn); ok && trimBlanks(cell) != "" {
		row.Labels = append(row.Labels, label{called, cell})
	}
}

// survey reads the rows for what only all of them tell: whether a column without a heading
// has a cell, which is an error, and in what order the numbers of dates are.
func (s *importSheet) survey(in *sheet.Reader) error {
	unnamed := s.headings.unnamed(s.columns)
	var dates []int // places of the columns with dates
	if s.dates.Order == sheet.Unordered {
		for i, name := range s.taken {
			if slices.Contains([]string{"birthDate", "marketingAt", "createdAt", "expiresAt"}, name) {
				dates = append(dates, i)
			}
		}
	}
	for len(unnamed)+len(dates) > 0 {
		line, err := s.record(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if line.wrong != "" {
			continue
		}
		for _, i := range unnamed {
			if trimBlanks(line.fields[i]) != "" {
				return adminErrorf("la columna %d no tiene encabezado y la línea %d tiene un valor en ella; con -ignore= se deja fuera", i+1, line.number)
			}
		}
		for _, i := range dates {
			s.dates.Learn(line.fields[i], s.taken[i] == "birthDate")
		}
	}
	return nil
}

// belowTitle returns the fault of a first line that is no heading: fault, or a fault that says
// which of the next lines looks like the heading.
func (s *importSheet) belowTitle(in *sheet.Reader, fault error) error {
	number, fields := in.HeaderBelow(max(s.headings.score(s.columns), 1), s.headings.score)
	if number == 0 {
		return fault
	}
	named := slices.DeleteFunc(fields, func(name string) bool { return trimBlanks(name) == "" })
	return adminErrorf("la línea %d parece el encabezado (%s); hay que quitar las líneas que están antes", number, quoted(named))
}

// withSeeker calls fn with a file that can be read twice: file itself or, if it is a pipe,
// a copy of it that only the user may read and that is removed afterwards.
func withSeeker(file *os.File, fn func(io.ReadSeeker) error) error {
	if _, err := file.Seek(0, io.SeekStart); err == nil {
		return fn(file)
	}
	spool, err := os.CreateTemp("", "sello-import-")
	if err != nil {
		return err
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	if _, err := io.Copy(spool, file); err != nil {
		return fmt.Errorf("%s: %w", spool.Name(), err)
	}
	return fn(spool)
}
