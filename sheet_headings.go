package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"sello/internal/fold"
	"sello/internal/sheet"
)

// The columns of a file that is imported, in exports of other systems too, and the file of an
// import's errors. A heading names a column by the name that exports and the API use, or by another
// one that people use, in Spanish or English, without regard to case, accents and punctuation. A
// name that may mean two things, such as "puntos acumulados", is in no list.

// A column is something that a row may tell.
type column struct {
	name  string
	names string // other names, separated by commas; the first is the one that messages show
}

// Columns that stand beside another one: the second surname, which files from Mexico often keep
// apart, a second phone, and the time of day of a date.
const (
	lastName2    = "lastName2"
	phoneNumber2 = "phoneNumber2"
	clockTime    = "time"
)

// importColumns lists the columns of each kind of import.
var importColumns = map[string][]column{
	importCustomers: {
		{"firstName", "nombre, nombres, nombre pila, nombre completo, nombre apellido, nombre apellidos, nombre cliente, cliente, name, given name, full name, customer, customer name"},
		{"lastName", "apellido, apellidos, apellido paterno, primer apellido, surname, family name"},
		{lastName2, "segundo apellido, apellido materno"},
		{"email", emailNames},
		{"phoneNumber", phoneNames},
		{phoneNumber2, "otro teléfono, segundo teléfono, teléfono 2, celular 2, other phone, second phone, phone 2"},
		{"externalId", externalNames},
		{"birthDate", "cumpleaños, fecha nacimiento, nacimiento, fecha cumpleaños, birthday, date birth, dob"},
		{"marketing", "avisos, acepta avisos, quiere avisos, promociones, acepta promociones, publicidad, acepta publicidad, consentimiento, boletín, newsletter, opt in, accepts marketing, marketing consent, consent"},
		{"marketingAt", "fecha avisos, fecha consentimiento, consent date"},
		{"createdAt", "alta, fecha alta, registro, fecha registro, cliente desde, miembro desde, socio desde, enrolled, enrolled at, enrollment date, signup date, joined, join date, member since, customer since, created"},
		{clockTime, "hora alta, hora registro"},
		{"points", "puntos, saldo, saldo inicial, saldo puntos, puntos disponibles, puntos actuales, points balance, available points, opening balance, current points"},
		{"expiresAt", expiryNames},
		{"historicPoints", "puntos históricos, histórico, histórico puntos, puntos por vida, historical points, lifetime points, lifetime"},
	},
	importSales: {
		{"externalId", "ticket, número ticket, folio, factura, número factura, número venta, venta, pedido, número pedido, recibo, id externo, receipt, receipt number, invoice, invoice number, order, order number, sale number, ticket number"},
		{"createdAt", "fecha, fecha hora, fecha venta, fecha compra, date, datetime, date time, sale date, order date, created"},
		{clockTime, "hora, hora venta, hora compra, sale time"},
		{"email", emailNames},
		{"phoneNumber", phoneNames},
		{"customerExternalId", "id externo cliente, número cliente, código cliente, clave cliente, número socio, número tarjeta, customer number, member id, member number, card number"},
		{"customerId", "id sello, id cliente"},
		{"type", "tipo, tipo movimiento, tipo operación"},
		{"totalAmount", "total, importe, importe total, monto, monto total, total venta, amount, grand total"},
		{"sku", "producto, código producto, clave producto, artículo, código artículo, product, product code, item"},
		{"quantity", "cantidad, unidades, piezas, qty, units"},
		{"price", "precio, precio unitario, unit price"},
		{"comment", commentNames},
		{"labels", "etiquetas"},
	},
	importPoints: {
		{"reference", "referencia, ref, reference number"},
		{"points", "puntos, cantidad puntos, puntos dar, amount"},
		{"email", emailNames},
		{"phoneNumber", phoneNames},
		{"externalId", externalNames},
		{"id", "id sello"},
		{"category", "categoría"},
		{"comment", commentNames},
		{"expiresAt", expiryNames},
	},
}

const (
	externalNames = "id externo, número cliente, código cliente, clave cliente, id cliente, número socio, número tarjeta, external, customer id, customer number, member id, member number, card number"
	expiryNames   = "vencen, vence, vencimiento, fecha vencimiento, puntos vencen, caducan, caduca, caducidad, fecha caducidad, expiran, expira, expiración, fecha expiración, expires, expiry, expiry date, expiration, expiration date, points expire"
	commentNames  = "comentario, comentarios, nota, notas, observaciones, comments, note, notes"

	emailNames = "correo, correo electrónico, dirección correo, dirección correo electrónico, mail, e-mail, correo e, email address, email cliente, correo cliente, customer email"
	phoneNames = "teléfono, tel, teléfono móvil, teléfono celular, celular, cel, móvil, whatsapp, número teléfono, número celular, número móvil, teléfono cliente, phone, telephone, mobile, mobile phone, cell, cell phone, cellphone, mobile number, customer phone"
)

// String is the name of a column with the one that people use.
func (c column) String() string {
	first, _, _ := strings.Cut(c.names, ",")
	return fmt.Sprintf("%s (%s)", c.name, first)
}

// shown is what messages call a column; "" if there is none of that name.
func (h *fileHeadings) shown(name string) string {
	for _, c := range importColumns[h.kind] {
		if c.name == name {
			return c.String()
		}
	}
	if strings.HasPrefix(name, labelColumn) {
		return name
	}
	return ""
}

// headingKey makes equal what is the same heading.
func headingKey(heading string) string {
	words := strings.FieldsFunc(fold.Text(heading), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '#'
	})
	kept := words[:0]
	for _, w := range words {
		switch w {
		case "de", "del", "el", "la", "los", "of", "the", "y", "en", "and":
		case "no", "num", "nro", "n", "nº", "#":
			kept = append(kept, "numero")
		default:
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, "")
}

// A fileHeadings says which columns the headings of a kind of file name.
type fileHeadings struct {
	kind   string
	known  map[string]string // names of columns by the key of a heading
	mapped map[string]string // the same, of -map; each is used
	used   map[string]bool
	preset map[string]string // of -from, by exactKey; nil without it
	ignore []string          // keys, and headings that have no key
}

// newHeadings returns the headings of a kind of import, with -map and -ignore.
func newHeadings(kind string, mapped [][2]string, ignore []string) (*fileHeadings, error) {
	h := &fileHeadings{kind: kind, known: map[string]string{}, mapped: map[string]string{}, used: map[string]bool{}}
	for _, c := range importColumns[kind] {
		h.known[headingKey(c.name)] = c.name
		for name := range strings.SplitSeq(c.names, ",") {
			h.known[headingKey(name)] = c.name
		}
	}
	for _, m := range mapped {
		name, ok := h.named(m[1])
		if !ok {
			return nil, usageErrorf("-map %q=%s: no hay columna %s; hay: %s", m[0], m[1], m[1], columnList(kind))
		}
		h.mapped[exactKey(m[0])] = name
	}
	for _, name := range ignore {
		h.ignore = append(h.ignore, exactKey(name))
	}
	return h, nil
}

// exactKey is the key of a heading that a flag names: only case, accents and blanks at
// its ends do not matter.
func exactKey(heading string) string { return fold.Text(trimBlanks(heading)) }

func columnList(kind string) string {
	var list []string
	for _, c := range importColumns[kind] {
		if c.name != lastName2 && c.name != phoneNumber2 {
			list = append(list, c.String())
		}
	}
	if kind == importSales {
		list = append(list, labelColumn+"NOMBRE (una etiqueta)")
	}
	return strings.Join(list, ", ")
}

// column returns the column that a heading names; "" with true if it is left out.
func (h *fileHeadings) column(heading string) (name string, ok bool) {
	key := exactKey(heading)
	if name, ok = h.mapped[key]; ok {
		h.used[key] = true
		return name, true
	}
	if slices.Contains(h.ignore, key) {
		return "", true
	}
	if h.preset != nil {
		name = h.preset[key]
		for _, mapped := range h.mapped {
			if mapped == name { // -map gives the column to another heading
				return "", true
			}
		}
		return name, true
	}
	return h.named(heading)
}

// named returns the column with a name, or with another one that people use. Each name of a
// label is a column of sales: label.pago.
func (h *fileHeadings) named(heading string) (name string, ok bool) {
	start := min(len(labelColumn), len(heading))
	if h.kind == importSales && strings.EqualFold(heading[:start], labelColumn) {
		called := trimBlanks(heading[start:])
		_, err := newSaleLabels(label{called, "-"})
		return labelColumn + called, err == nil
	}
	name, ok = h.known[headingKey(heading)]
	return name, ok
}

// columns returns the column of each heading of a file, "" if it is left out, or an error
// that says which are missing, unknown or there twice. An unknown heading is an error since
// it may be misspelt, and the column's loss would be noticed only later.
func (h *fileHeadings) columns(list []string) ([]string, error) {
	clear(h.used)
	taken := make([]string, len(list))
	var unknown []string
	start := 0
	if startsRejects(list) {
		start = len(rejectColumns)
	}
	for i, heading := range list[start:] {
		name, ok := h.column(heading)
		if !ok && heading == "" {
			continue // as long as it has no cell
		}
		if !ok {
			unknown = append(unknown, heading)
			continue
		}
		if name == "phoneNumber" && h.kind == importCustomers && slices.Contains(taken, name) {
			name = phoneNumber2
		}
		if before := slices.Index(taken, name); name != "" && before >= 0 {
			return nil, adminErrorf("la columna %s está dos veces: %q y %q; con -ignore se deja fuera una, o con -map se toma por otra", name, list[before], heading)
		}
		taken[start+i] = name
	}
	for key := range h.mapped {
		if !h.used[key] {
			return nil, adminErrorf("-map %q: el archivo no tiene esa columna; tiene: %s", key, quoted(list))
		}
	}
	var faults []string
	if missing := h.missing(taken); missing != "" {
		faults = append(faults, fmt.Sprintf("faltan columnas: %s; el archivo tiene: %s", missing, quoted(list)))
	}
	if len(unknown) > 0 {
		faults = append(faults, fmt.Sprintf("columnas desconocidas: %s; con -ignore %s se dejan fuera", quoted(unknown), ignoreFlag(unknown)))
	}
	if len(faults) == 0 {
		return taken, nil
	}
	use := "COLUMNA"
	if len(unknown) > 0 {
		use = unknown[0]
	}
	return nil, adminErrorf("%s; con -map %q=campo se toma una por otra: %s", strings.Join(faults, "; "), use, columnList(h.kind))
}

// unnamed are the places of the columns without a heading that no flag leaves out.
func (h *fileHeadings) unnamed(list []string) (places []int) {
	for i, heading := range list {
		if _, ok := h.column(heading); heading == "" && !ok {
			places = append(places, i)
		}
	}
	return places
}

// ignoreFlag is the argument of -ignore that leaves out some columns.
func ignoreFlag(unknown []string) string {
	list := strings.Join(unknown, ",")
	if strings.ContainsFunc(list, func(r rune) bool { return r != ',' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return strconv.Quote(list)
	}
	return list
}

// missing names the columns without which no row can be imported; "" if all are there.
func (h *fileHeadings) missing(taken []string) string {
	var list []string
	for _, c := range importColumns[h.kind] {
		if slices.Contains(requiredColumns[h.kind], c.name) && !slices.Contains(taken, c.name) {
			list = append(list, c.String())
		}
	}
	who, named := []string{"email", "phoneNumber"}, "email (correo) o phoneNumber (teléfono)"
	switch h.kind {
	case importSales:
		who, named = append(who, "customerExternalId", "customerId"), "email (correo), phoneNumber (teléfono), customerExternalId (id externo cliente) o customerId (id sello)"
	case importPoints:
		who, named = append(who, "externalId", "id"), "email (correo), phoneNumber (teléfono), externalId o id"
	}
	if !slices.ContainsFunc(who, func(name string) bool { return slices.Contains(taken, name) }) {
		list = append(list, named)
	}
	return strings.Join(list, ", ")
}

// requiredColumns are needed to import any row. Which customer a row is of, other columns say.
var requiredColumns = map[string][]string{
	importSales:  {"externalId", "createdAt", "totalAmount"},
	importPoints: {"reference", "points"},
}

func quoted(list []string) string {
	texts := make([]string, len(list))
	for i, text := range list {
		texts[i] = strconv.Quote(text)
	}
	return strings.Join(texts, ", ")
}

// score says how well headings fit: how many of them are known.
func (h *fileHeadings) score(list []string) (n int) {
	for _, heading := range list {
		if _, ok := h.column(heading); ok && heading != "" {
			n++
		}
	}
	return n
}

// saleType reads the type of a sale, which may be in Spanish.
func saleType(cell string) string {
	switch fold.Text(trimBlanks(cell)) {
	case "compra", "venta", "sale", "payment":
		return typePurchase
	case "devolucion", "reembolso", "nota de credito", "refund":
		return typeReturn
	}
	return trimBlanks(cell)
}

// What the headings of other systems' exports mean (contract §31). testdata/presets has a file of
// each system, and its README says where the headings were seen. A system is here only with the
// headings of a real export.

// presets are, by kind of import and name of a system, the columns that its headings name. All
// other headings are left out, and the output lists them.
//
// Shopify: jdiaz-ops/test1234 src/lib/shopify-customers-csv.ts; laplace-live/shopify-csv-converter
// src/types/index.d.ts. Square: byesaw13/doveapp lib/square/csv-import.ts; aditya2kx/jarvis
// skills/square_api/export.py. WooCommerce: woocommerce/woocommerce
// plugins/woocommerce/src/Admin/API/Reports/Customers/Controller.php.
var presets = map[string]map[string]map[string]string{
	importCustomers: {
		"shopify": {
			"Customer ID": "externalId", "First Name": "firstName", "Last Name": "lastName", "Email": "email", "Accepts Email Marketing": "marketing",
			"Phone": "phoneNumber", "Default Address Phone": phoneNumber2,
		},
		"square": {
			"Square Customer ID": "externalId", "First Name": "firstName", "Last Name": "lastName", "Email Address": "email", "Phone Number": "phoneNumber",
			"Birthday": "birthDate", "Email Subscription Status": "marketing",
		},
		"woocommerce": {"Name": "firstName", "Sign Up": "createdAt", "Email": "email", "Billing Phone": "phoneNumber", "Shipping Phone": phoneNumber2},
	},
	importSales: {
		"shopify": {
			"Name": "externalId", "Created at": "createdAt", "Email": "email", "Total": "totalAmount",
			"Lineitem sku": "sku", "Lineitem quantity": "quantity", "Lineitem price": "price",
		},
		"square": {
			"Transaction ID": "externalId", "Date": "createdAt", "Time": clockTime, "Customer ID": "customerExternalId",
			"Event Type": "type", "Total Collected": "totalAmount",
		},
	},
}

// fromFlag is -from, of a kind of import.
func fromFlag(c *invocation, kind string) {
	names := slices.Sorted(maps.Keys(presets[kind]))
	list := strings.Join(names, ", ")
	c.set.Func("from", "`sistema` del que es la exportación: "+list+"; lo que no se usa de ella se dice al final", func(name string) error {
		if !slices.Contains(names, name) {
			return usageErrorf("%s", list)
		}
		c.system = name
		return nil
	})
	c.chooses("from", names...)
}

// use reads the headings as a named system means them; "" is no system.
func (h *fileHeadings) use(system string) {
	if system == "" {
		return
	}
	h.preset = map[string]string{}
	for heading, name := range presets[h.kind][system] {
		h.preset[exactKey(heading)] = name
	}
}

// leftOut lists the headings that a system's file has and that are not used.
func (h *fileHeadings) leftOut(list, taken []string) (names []string) {
	if h.preset == nil {
		return nil
	}
	start := 0
	if startsRejects(list) {
		start = len(rejectColumns)
	}
	for i := start; i < len(list); i++ {
		if taken[i] == "" && list[i] != "" {
			names = append(names, list[i])
		}
	}
	return names
}

// The file of errors of an import: what was not taken, with line and reason. Mended, it
// is imported as it is. A file that is there already is kept, since it may have been
// mended.

// rejectColumns are the first columns of a file of errors. An import ignores them.
var rejectColumns = []string{"line", "reason"}

// A csvLine is one record, which may go over several lines.
type csvLine struct {
	number int // of its first line
	fields []string
	wrong  string // why it cannot be read; "": it can. If it is no CSV, fields holds the raw line
}

// A rejects writes a file of errors.
type rejects struct {
	of   string // the file that is imported
	name string // "" until there is one

	file   *os.File
	out    *csv.Writer
	again  bool   // of is a file of errors itself, whose first columns are not written again
	before string // the newest of earlier ones; "" if there is none
}

// rejectsName matches the end of the name of a file of errors.
var rejectsName = regexp.MustCompile(`\.errors(-[0-9]+)?\.csv$`)

// mostRejects bounds how many files of errors of one file there may be.
const mostRejects = 1000

// begin makes the file and writes its header. Cells are separated as in the imported file,
// since the spelling of numbers depends on the separator.
func (r *rejects) begin(comma rune, plain bool, columns []string) error {
	base := rejectsName.ReplaceAllString(r.of, "")
	for n := 1; ; n++ {
		name := base + ".errors.csv"
		if n > 1 {
			name = fmt.Sprintf("%s.errors-%d.csv", base, n)
		}
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < mostRejects {
			r.before = name
			continue
		}
		if err != nil {
			return err
		}
		r.name, r.file, r.out = name, file, csv.NewWriter(file)
		break
	}
	r.out.Comma = comma
	if !plain { // a spreadsheet made it and needs the mark
		if _, err := r.file.WriteString(sheet.MarkUTF8); err != nil {
			return err
		}
	}
	r.again = startsRejects(columns)
	return r.out.Write(slices.Concat(rejectColumns, r.own(columns)))
}

func (r *rejects) write(line csvLine, reason string) error {
	return r.out.Write(slices.Concat([]string{strconv.Itoa(line.number), reason}, r.own(line.fields)))
}

// startsRejects reports whether columns begin as in a file of errors.
func startsRejects(columns []string) bool {
	return len(columns) > len(rejectColumns) && slices.Equal(columns[:len(rejectColumns)], rejectColumns)
}

// own is a row without the line and the reason of the file of errors that it came from. A line that
// is no CSV has one field.
func (r *rejects) own(row []string) []string {
	if r.again && len(row) > len(rejectColumns) {
		return row[len(rejectColumns):]
	}
	return row
}

// close ends the file. If it is the same as the one before, that one stands for both.
func (r *rejects) close() error {
	if r.file == nil {
		return nil
	}
	r.out.Flush()
	if err := errors.Join(r.out.Error(), r.file.Close()); err != nil || r.before == "" || r.before == r.of {
		return err
	}
	same, err := sameFiles(r.name, r.before)
	if err != nil || !same {
		return err
	}
	defer func() { r.name = r.before }()
	return os.Remove(r.name)
}

func sameFiles(a, b string) (bool, error) {
	texts := [2][]byte{}
	for i, name := range []string{a, b} {
		info, err := os.Stat(name)
		if err != nil {
			return false, err
		}
		if info.Size() > maxCompared {
			return false, nil
		}
		if texts[i], err = os.ReadFile(name); err != nil {
			return false, err
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}

// maxCompared bounds the files of errors that are compared.
const maxCompared = 64 << 20

// newcomers says, for each customer that an import added, from which line it came. Customers'
// numbers ascend with the lines. Mostly both go up by one, so runs are kept.
type newcomers []struct {
	number uint64 // of the first customer
	line   int    // that it came from
	n      int    // how many there are
}

// add notes that a customer came from a line; 0 is none.
func (c *newcomers) add(number uint64, line int) {
	if number == 0 {
		return
	}
	if at := len(*c) - 1; at >= 0 {
		r := &(*c)[at]
		if number == r.number+uint64(r.n) && line == r.line+r.n {
			r.n++
			return
		}
	}
	*c = append(*c, newcomers{{number, line, 1}}...)
}

// line returns the line that a customer came from; 0 if it is not of this import.
func (c newcomers) line(number uint64) int {
	at := sort.Search(len(c), func(i int) bool { return c[i].number > number }) - 1
	if at < 0 || number-c[at].number >= uint64(c[at].n) {
		return 0
	}
	return c[at].line + int(number-c[at].number)
}
