package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/sheet"
	"sello/internal/tz"
)

// Fuzz targets for the readers of moments, ids, keys, addresses, stored records and
// CSV. Each compares a reader with code that shares nothing with it. The comparison
// is a function that returns the fault, or "". TestFuzzFindsFaults also gives it
// broken readers.

var fuzzZones = []string{"UTC", "America/Mexico_City", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Chatham", "Africa/Cairo"}

var momentParts = regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d)(?:[Tt](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?([Zz]|[+-]\d\d:?\d\d)?)?$`)

// plainMoment reads a moment with a pattern and arithmetic. For a bare date it
// returns the date's midnight in UTC, and bare.
func plainMoment(s string, zone *time.Location) (at time.Time, bare, ok bool) {
	m := momentParts.FindStringSubmatch(s)
	if m == nil {
		return at, false, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v }
	date := time.Date(n(1), time.Month(n(2)), n(3), 0, 0, 0, 0, time.UTC)
	if n(1) == 0 || date.Year() != n(1) || int(date.Month()) != n(2) || date.Day() != n(3) {
		return at, false, false
	}
	if m[4] == "" {
		return date, true, true
	}
	if n(4) > 23 || n(5) > 59 || n(6) > 59 {
		return at, false, false
	}
	millis, _ := strconv.Atoi((m[7] + "000")[:3])
	switch offset := strings.Replace(m[8], ":", "", 1); {
	case strings.EqualFold(offset, "Z"):
		zone = time.UTC
	case offset != "":
		hours, _ := strconv.Atoi(offset[1:3])
		minutes, _ := strconv.Atoi(offset[3:])
		if hours > 23 || minutes > 59 {
			return at, false, false
		}
		seconds := 60 * (60*hours + minutes)
		if offset[0] == '-' {
			seconds = -seconds
		}
		zone = time.FixedZone("", seconds)
	}
	return time.Date(n(1), time.Month(n(2)), n(3), n(4), n(5), n(6), millis*1e6, zone), false, true
}

func momentFault(parse func(string, *time.Location, bool) (instant, bool), s string, zone *time.Location, endOfDay bool) string {
	const first, last = instant(-62135596800000), instant(253402300799999) // of years 1 to 9999
	got, ok := parse(s, zone, endOfDay)
	want, bare, wantOK := plainMoment(s, zone)
	switch {
	case ok != wantOK:
		return fmt.Sprintf("accepted %v, want %v", ok, wantOK)
	case !ok:
	case bare:
		inside, outside := got, got-1
		if endOfDay {
			outside = got + 1
		}
		date := dayOn(want.Date())
		if dayOf(inside, zone) != date || dayOf(outside, zone) == date && got != first && got != last {
			return fmt.Sprintf("%s is not the end of the day", got)
		}
	default:
		if plain := min(max(instant(want.UnixMilli()), first), last); got != plain {
			return fmt.Sprintf("%s, want %s", got, plain)
		}
	}
	if again, same := parse(got.String(), zone, endOfDay); ok && (again != got || !same) {
		return fmt.Sprintf("%s reads as %s, %v", got, again, same)
	}
	if !ok && got != 0 {
		return "refused, with a result"
	}
	return ""
}

var momentSeeds = []string{
	"2026-11-20T10:13:45.000Z", "2026-11-20T10:13:45+05:30", "2026-11-20T10:13:45", "2026-11-20T10:13", "2026-11-20", "2024-02-29", "2026-02-29",
	"2026-11-20T24:00:00Z", "2026-11-20T10:13:60Z", "2026-11-20t10:13:45z", "2026-11-20 10:13:45Z", "2026-11-20T10:13:45,5Z", "2026-11-20T1:13:45Z",
	"2026-11-20T10:13:45+24:00", "2026-11-20T10:13Z", "2026-11-20T10:13:45.123456789123Z", "0000-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31",
	"9999-12-31T23:59:59.999-23:59", "2018-11-04", "2018-11-04T00:30:00", "1969-12-31T23:59:59.9999Z", "+2026-11-20", "2026-11-20T10:13:45-00:00", "",
	"2026-11-20t07:08z", "2026-11-20T07:08+0530", "2026-11-20T07:08:09.5-0600", "2026-11-20T07:08-06", "9999-12-31T23:00", "0001-01-01", "0000-12-31T23:59:59-23:59",
}

// FuzzMoment compares parseMoment with plainMoment.
func FuzzMoment(f *testing.F) {
	for i, s := range momentSeeds {
		f.Add(s, uint8(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, s string, zone uint8, endOfDay bool) {
		z, err := tz.Load(fuzzZones[int(zone)%len(fuzzZones)])
		if err != nil {
			t.Fatal(err)
		}
		if fault := momentFault(parseMoment, s, z, endOfDay); fault != "" {
			t.Errorf("%q in %s, end of day %v: %s", s, z, endOfDay, fault)
		}
	})
}

var idForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func idFault(parse func(string) (id, bool), s string) string {
	u, ok := parse(s)
	bytes, _ := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	want := idForm.MatchString(s) && id(bytes) != id{}
	switch {
	case ok != want:
		return fmt.Sprintf("accepted %v, want %v", ok, want)
	case !ok && u != id{}:
		return "refused, with a result"
	case ok && (u != id(bytes) || u.String() != s):
		return "reads as " + u.String()
	}
	return ""
}

var idSeeds = []string{
	"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190A1B2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "00000000-0000-0000-0000-000000000000",
	"0190a1b2c3d47e5f8a9b0c1d2e3f4a5b", "{0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b}", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5\x00", "",
}

// FuzzID compares parseID with encoding/hex.
func FuzzID(f *testing.F) {
	for _, s := range idSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if fault := idFault(parseID[string], s); fault != "" {
			t.Errorf("%q: %s", s, fault)
		}
	})
}

// keyFault checks wellFormed with a new key and with changed ones, and sentKey with
// the two headers that may have a key.
func keyFault(wellFormed func(string) bool, random []byte, at, change uint8, authorization, direct string) string {
	var bits [32]byte
	copy(bits[:], random)
	text := newAPIKey(bits)
	if !regexp.MustCompile(`^sello_[0-9a-zA-Z]{49}$`).MatchString(text) || !wellFormed(text) {
		return "a new key is " + text
	}
	mistyped := []byte(text)
	mistyped[int(at)%len(text)] ^= change
	if change != 0 && wellFormed(string(mistyped)) {
		return fmt.Sprintf("%q passes for %q", mistyped, text)
	}
	if wellFormed(text+"0") || wellFormed(text[:len(text)-1]) || wellFormed(" "+text) {
		return "a key that is too long or short passes"
	}
	sent, err := sentKey(http.Header{"Authorization": {authorization}, "X-Api-Key": {direct}})
	fields := strings.SplitN(strings.TrimSpace(authorization), " ", 2)
	bearer := ""
	if len(fields) == 2 && strings.ToLower(fields[0]) == "bearer" {
		bearer = strings.TrimSpace(fields[1])
	}
	plain := strings.TrimSpace(direct)
	want := map[bool]string{true: plain, false: bearer}[bearer == ""]
	switch {
	case bearer == "" && plain == "":
		if err == nil || err.code != codeAPIKeyRequired {
			return fmt.Sprintf("no key: %v", err)
		}
	case bearer != "" && plain != "" && bearer != plain:
		if err == nil || err.code != codeAPIKeyInvalid {
			return fmt.Sprintf("two keys: %v", err)
		}
	case err != nil || sent != want:
		return fmt.Sprintf("sent %q, %v; want %q", sent, err, want)
	}
	return ""
}

// FuzzKey checks that a new key is well formed, that no key with a wrong character
// is, and that sentKey returns the key of the headers.
func FuzzKey(f *testing.F) {
	f.Add([]byte{}, uint8(0), uint8(1), "Bearer a", "a")
	f.Add(bytes.Repeat([]byte{255}, 32), uint8(54), uint8(32), "bearer  a ", "")
	f.Add([]byte("random"), uint8(10), uint8(0), "Basic a", "b")
	f.Add([]byte("x"), uint8(48), uint8(255), "Bearer", " ")
	f.Add([]byte("x"), uint8(48), uint8(255), "Bearer a", "b")
	f.Fuzz(func(t *testing.T, random []byte, at, change uint8, authorization, direct string) {
		if fault := keyFault(wellFormedKey, random, at, change, authorization, direct); fault != "" {
			t.Error(fault)
		}
	})
}

// networkFault compares with package net which addresses a whitelist's entry contains.
func networkFault(parse func(string) (netip.Prefix, error), s string, source netip.Addr) string {
	n, err := parse(s)
	text := strings.TrimSpace(s)
	if !strings.Contains(text, "/") { // an address is a network of one address
		text, _, _ = strings.Cut(text, "%") // without the zone
		if a := net.ParseIP(text); a == nil {
			text = ""
		} else if strings.Contains(text, ":") {
			text += "/128"
		} else {
			text += "/32"
		}
	}
	if _, bits, _ := strings.Cut(text, "/"); len(bits) > 1 && bits[0] == '0' {
		text = "" // net accepts zeros before the number
	}
	_, want, wantErr := net.ParseCIDR(text)
	if err != nil || wantErr != nil {
		if (err == nil) != (wantErr == nil) && !strings.Contains(s, "%") {
			return fmt.Sprintf("%v; want %v", err, wantErr)
		}
		return ""
	}
	for _, a := range []netip.Addr{source.Unmap(), n.Addr()} {
		if got := n.Contains(a); got != want.Contains(net.IP(a.AsSlice())) {
			return fmt.Sprintf("it holds %s: %v", a, got)
		}
	}
	return ""
}

// FuzzSource compares networks with package net. It also checks that sourceAddress
// believes trusted proxies only, and not what a client put before their addresses.
func FuzzSource(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "10.0.0.1", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "2001:db8::/32", "::/0", "0.0.0.0/0", "::ffff:0:0/90", "010.0.0.1", "fe80::1%eth0", "10.0.0.0/33", "::/00", " 10.0.0.1 "} {
		f.Add(s, []byte{10, 0, 0, 1}, "10.0.0.1:80", "192.0.2.1, 10.0.0.2")
		f.Add(s, []byte("\x20\x01\x0d\xb8............"), "[::ffff:10.0.0.1]:80", "[2001:db8::1]:443,, 192.0.2.1:8080 , 10.1.1.1")
	}
	f.Add("::1", make([]byte, 16), "nonsense", "nonsense")
	f.Add("::1", make([]byte, 16), "10.0.0.1:1", "1.1.1.1, nonsense")
	f.Fuzz(func(t *testing.T, network string, address []byte, peer, forwarded string) {
		source, ok := netip.AddrFromSlice(address)
		if !ok {
			source = netip.IPv4Unspecified()
		}
		if fault := networkFault(parseNetwork, network, source); fault != "" {
			t.Errorf("%q: %s", network, fault)
		}
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		trusted := netip.MustParsePrefix("10.0.0.0/8")
		got := sourceAddress(r, []netip.Prefix{trusted})
		alone := sourceAddress(r, nil)
		if got.IsValid() && (got.Is4In6() || got.Zone() != "") {
			t.Errorf("%q %q: %s", peer, forwarded, got)
		}
		if !trusted.Contains(alone) {
			if got != alone {
				t.Errorf("%q is no proxy, and yet %q makes it %s", peer, forwarded, got)
			}
			return
		}
		// A client can put made-up addresses first. They must not count if a
		// proxy has added an address.
		r.Header["X-Forwarded-For"] = []string{"10.9.9.9, 203.0.113.9, " + forwarded}
		if behind := sourceAddress(r, []netip.Prefix{trusted}); got.IsValid() && !trusted.Contains(got) && behind != got {
			t.Errorf("%q %q: %s, but %s with an address in front", peer, forwarded, got, behind)
		}
	})
}

// records are the recordFaults of all kinds of stored records.
var records = map[string]func([]byte) string{
	"customer": recordFault[customer], "identity": recordFault[identity], "replay": recordFault[replay], "replaySlices": recordFault[replaySlices],
	"usage": recordFault[savedUsage], "counters": recordFault[counters], "chain": recordFault[chain], "link": recordFault[link],
	"account": recordFault[account], "lot": recordFault[lot], "movement": recordFault[movement], "redemption": recordFault[redemption],
	"typeCount": recordFault[typeCount], "sale": recordFault[sale], "ruleUse": recordFault[ruleUse], "ruleLife": recordFault[ruleLife], "ruleBudget": recordFault[ruleBudget], "tally": recordFault[tally],
}

// recordFault reads a record. If it is accepted, it must be the same after it is
// written and read again, and must not be the same with a byte more.
func recordFault[T any, P recordPointer[T]](raw []byte) string {
	v, err := decodeRecord[T, P](raw)
	if err != nil {
		return ""
	}
	written := appendRecord(nil, P(v))
	again, err := decodeRecord[T, P](written)
	if err != nil || !reflect.DeepEqual(v, again) {
		return fmt.Sprintf("%+v is written as %x and read as %+v (%v)", v, written, again, err)
	}
	if more, err := decodeRecord[T, P](append(slices.Clip(written), 0)); err == nil && reflect.DeepEqual(v, more) {
		return "one byte more is ignored"
	}
	return ""
}

// FuzzRecord reads any bytes as a record of each kind.
func FuzzRecord(f *testing.F) {
	one := id{1: 1}
	for _, raw := range [][]byte{
		nil, {0}, {recordVersion}, appendRecord(nil, new(customer)), appendRecord(nil, new(account)), appendRecord(nil, new(savedUsage)),
		appendRecord(nil, &customer{ID: one, FirstName: "María", Email: "m@example.com", Status: "Active", CreatedAt: 1, Program: 1}),
		appendRecord(nil, &movement{Customer: one, Amount: -15000, Category: categoryBonus, Comment: "ñ", Expires: never}),
		appendRecord(nil, &sale{ID: one, Customer: one, Type: typePurchase, Total: 10000, Items: []item{{"A", 1, 2}}}),
		append([]byte{recordVersion}, bytes.Repeat([]byte{255}, 40)...),
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, fault := range records {
			if fault := fault(raw); fault != "" {
				t.Errorf("%x as %s: %s", raw, name, fault)
			}
		}
	})
}

// linesFault compares the line reader with encoding/csv on texts that the latter accepts.
func linesFault(records func(*bufio.Reader) func() (sheet.Record, error), text string) string {
	var got [][]string
	wrong, number := 0, 0
	for next := records(bufio.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))); ; {
		line, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err.Error()
		}
		if line.Number <= number || line.Number > strings.Count(text, "\n")+1 {
			return fmt.Sprintf("line %d comes after %d", line.Number, number)
		}
		if number = line.Number; line.Broken {
			wrong++
			continue
		}
		got = append(got, line.Fields)
	}
	whole := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	whole.FieldsPerRecord = -1
	want, err := whole.ReadAll()
	if err != nil || strings.Count(text, "\n") >= sheet.MaxLines {
		return ""
	}
	want = slices.DeleteFunc(want, func(fields []string) bool { // the line reader skips blank lines
		return len(fields) == 1 && strings.TrimSpace(fields[0]) == ""
	})
	got = slices.DeleteFunc(got, func(fields []string) bool { return len(fields) == 1 && strings.TrimSpace(fields[0]) == "" })
	if wrong > 0 || !slices.EqualFunc(got, want, slices.Equal) {
		return fmt.Sprintf("read %q and %d wrong; want %q", got, wrong, want)
	}
	return ""
}

func sheetRecords(in *bufio.Reader) func() (sheet.Record, error) { return sheet.NewReader(in).Record }

var csvSeeds = []string{
	"", "\ufeffemail,phoneNumber\na@b.c,\n", "a,b\r\n\r\n\"x\ny\",z\n", "a,b\n\"open,c\nd,e\n", "a\n\"q\"\"q\"\n", "a,\"b\"c\n", " \n\t\na\n", "a,b", "\"", "a\r", "\"\r\n\"\n",
}

// importFaults imports a file into a new shop, twice, and returns what is wrong.
func importFaults(t *testing.T, kind, text string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	s := newShop(t, setup{program: `"default":true,"currency":"P","rules":[{"key":"base","name":"b","per":{"amount":1,"points":1}}]`})
	if kind == importSales {
		s.customer("ana")
		s.customer("bob")
	}
	run := func() (importReport, [][]string, error) {
		im := s.importer(t, kind)
		err := im.run(strings.NewReader(text))
		raw, _ := os.ReadFile(im.report.Errors)
		in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte(sheet.MarkUTF8))))
		if in.FieldsPerRecord = -1; im.form.Separator != 0 {
			in.Comma = im.form.Separator
		}
		lines, csvErr := in.ReadAll()
		if csvErr != nil {
			fault("the file of errors is no CSV: %v", csvErr)
		}
		return im.report, lines[min(1, len(lines)):], err
	}
	first, rejected, err := run()
	var told *adminError
	if err != nil {
		if !errors.As(err, &told) {
			fault("import: %v", err)
		}
		return faults
	}
	second, _, err := run()
	switch {
	case err != nil:
		fault("the second time: %v", err)
	case first.Rows < first.Added+first.Known+first.Wrong, kind == importCustomers && first.Rows != first.Added+first.Known+first.Wrong:
		fault("rows do not add up: %+v", first)
	case len(rejected) < first.Wrong, kind == importCustomers && len(rejected) != first.Wrong+first.Warned:
		fault("%d lines of errors: %+v", len(rejected), first)
	case second.OpeningBalances > 0:
		fault("the second time a balance is given again: %+v, then %+v", first, second)
	case second.Added > 0 && (first.Wrong == 0 || kind == importCustomers):
		fault("the second time something is new: %+v, then %+v", first, second)
	}
	for _, line := range rejected {
		if n, err := strconv.Atoi(line[0]); err != nil || n < 2 || len(line) < 2 || line[1] == "" {
			fault("a line of errors is %q", line)
		}
	}
	n := ask(s, func(t *txn) (*counters, error) { return t.count() })
	if kind == importCustomers && n.Customers != uint64(first.Added) {
		fault("%d customers: %+v", n.Customers, first)
	}
	return faults
}

// FuzzImport imports any text as a file of customers or sales, twice. The report
// must add up and count the customers that are new. The second import may add
// nothing, except sales if the first refused some rows.
func FuzzImport(f *testing.F) {
	for _, s := range csvSeeds {
		f.Add(false, s)
	}
	for _, text := range []string{
		"Correo;Puntos;Vencen;Alta;Puntos históricos;Cumpleaños;No. de cliente\nana@example.com;1.250,5;31/12/2090;5/3/2019;12;28/02/1990;17\nana@example.com;3;;;;;\nbob@example.com;1.250;nunca;x;-1;;17\n",
		"sep=;\nCorreo;Puntos\nana@example.com;5\n", "Tel\xe9fono\tPuntos\n5512345678\t1\n", "\xff\xfea\x00\n\x00", "correo\tnombre\na@b.co\t12\" x\n",
	} {
		f.Add(false, text)
	}
	for _, rows := range []string{
		"Ana,Gil,ana@example.com,\n", "Ana,Gil,,55 1234 5678\n,,ana@example.com,55 1234 5678\n,,x,\n", ",,ana@example.com,\n,,bob@example.com,55 1234 5678\n,,ana@example.com,+525512345678\n",
		"\"a\nb\",,c@example.com,\n\"open,,d@example.com,\n,,e@example.com,\n", "\xff,,a@b.c,\n", "a,b,c\n",
	} {
		f.Add(false, "firstName,lastName,email,phoneNumber\n"+rows)
	}
	for _, rows := range []string{
		"1,2026-01-02T10:00:00Z,ana@example.com,,Purchase,10,A,1,10,\n1,2026-01-02T10:00:01Z,ana@example.com,,Purchase,10,B,2,0,hola\n",
		"1,2026-01-02,ana@example.com,,,10,,,,\n1,2026-01-03,ana@example.com,,Return,5,,,,\n1,2026-01-04,ana@example.com,,Return,50,,,,\n",
		"1,2026-01-02,ana@example.com,,,10,A,1,10,\n\"broken\n1,2026-01-02,ana@example.com,,,10,B,1,10,\n2,2026-01-02,bob@example.com,,,10,B,1,10,\n1,2026-01-02,ana@example.com,,,10,C,1,10,\n",
		"1,2026-01-02,eve@example.com,,,10,,,,\n,,,,,,,,,\n3,1969-01-01,ana@example.com,,,1e3,,,,\n4,2030-01-01,ana@example.com,,,1,,,,\n5,2026-01-01,bob@example.com,,,99999999999.9999,,,,\n",
	} {
		f.Add(true, "externalId,createdAt,email,phoneNumber,type,totalAmount,sku,quantity,price,comment\n"+rows)
	}
	f.Fuzz(func(t *testing.T, sales bool, text string) {
		if fault := linesFault(sheetRecords, text); fault != "" {
			t.Errorf("%q: %s", text, fault)
		}
		kind := map[bool]string{true: importSales, false: importCustomers}[sales]
		for _, fault := range importFaults(t, kind, text) {
			t.Errorf("%s %q: %s", kind, text, fault)
		}
	})
}

// TestFuzzFindsFaults gives each comparison a broken reader: a looser one, such as
// the standard library's, or one that leaves a check out.
func TestFuzzFindsFaults(t *testing.T) {
	t.Parallel()
	zone, err := tz.Load("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	moments := func(parse func(string, *time.Location, bool) (instant, bool)) int {
		return countFaults(momentSeeds, func(s string) string { return momentFault(parse, s, zone, false) })
	}
	ids := func(parse func(string) (id, bool)) int {
		return countFaults(idSeeds, func(s string) string { return idFault(parse, s) })
	}
	keys := func(wellFormed func(string) bool) int {
		return countFaults([]string{"x"}, func(s string) string { return keyFault(wellFormed, []byte(s), 10, 1, "", "a") })
	}
	networks := func(parse func(string) (netip.Prefix, error)) int {
		return countFaults([]string{"::ffff:10.0.0.0/104", "10.0.0.1/8"}, func(s string) string {
			return networkFault(parse, s, netip.MustParseAddr("10.0.0.9"))
		})
	}
	lines := func(records func(*bufio.Reader) func() (sheet.Record, error)) int {
		return countFaults(csvSeeds, func(s string) string { return linesFault(records, s) })
	}
	for _, test := range []struct {
		name          string
		sound, broken int // faults found
	}{
		{"time.Parse", moments(parseMoment), moments(standardMoment)},
		{"the zone", moments(parseMoment), moments(utcMoment)},
		{"upper case ids", ids(parseID[string]), ids(func(s string) (id, bool) { return parseID(strings.ToLower(s)) })},
		{"a key's checksum", keys(wellFormedKey), keys(func(s string) bool { return len(s) == 55 && strings.HasPrefix(s, keyPrefix) })},
		{"IPv4 in IPv6", networks(parseNetwork), networks(netip.ParsePrefix)},
		{"CSV by line", lines(sheetRecords), lines(recordByLine)},
	} {
		if test.sound > 0 || test.broken == 0 {
			t.Errorf("%s: %d faults, %d where there are some", test.name, test.sound, test.broken)
		}
	}
	if fault := recordFault[forgetful]([]byte{recordVersion, 7}); fault == "" {
		t.Error("a record that is not written as it is read is not found")
	}
	for _, body := range []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{} {}`, `null`} {
		if isStrictObject([]byte(body)) {
			t.Errorf("%s is strict", body)
		}
	}
	if len(records) != 18 || !slices.Contains(slices.Collect(maps.Keys(records)), "sale") {
		t.Error("records")
	}
}

// standardMoment accepts what parseMoment accepts and what time.Parse does.
func standardMoment(s string, zone *time.Location, endOfDay bool) (instant, bool) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return instantOf(at), true
	}
	return parseMoment(s, zone, endOfDay)
}

// utcMoment is parseMoment with UTC in place of the zone.
func utcMoment(s string, zone *time.Location, endOfDay bool) (instant, bool) {
	return parseMoment(s, time.UTC, endOfDay)
}

// recordByLine reads each line as a record, even if a field goes on in the next line.
func recordByLine(in *bufio.Reader) func() (sheet.Record, error) {
	number := 0
	return func() (sheet.Record, error) {
		text, err := in.ReadString('\n')
		if text == "" {
			return sheet.Record{}, err
		}
		number++
		return sheet.Record{Number: number, Fields: strings.Split(strings.TrimRight(text, "\r\n"), ",")}, nil
	}
}

// countFaults counts the seeds that have a fault.
func countFaults(seeds []string, fault func(string) string) (n int) {
	for _, s := range seeds {
		if fault(s) != "" {
			n++
		}
	}
	return n
}

// A forgetful record does not write what it has read.
type forgetful struct{ n byte }

func (f *forgetful) fields(c *coder) {
	n := f.n / 2
	if byteField(c, &n); c.reading {
		f.n = n
	}
}

// FuzzHandler sends any request to the API, and FuzzWire any bytes on a
// connection. Each input starts from the same image, so one input alone
// reproduces a failure.

// An image is the state of the transcripts' world at one moment.
type image struct {
	state  memTx
	now    time.Time
	names  map[string]string // values of a transcript's $name
	expand *strings.Replacer
}

func newImage(t *testing.T) *image {
	store := newMemStore()
	w := newWorld(t, store)
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	for _, request := range []string{
		"let sale = id\nPOST /api/v1/transactions as luna\n" +
			`{"customerId": "$maria", "totalAmount": 5000, "externalId": "T-1", "items": [{"sku": "A", "price": 2500, "quantity": 2}]}`,
		"let canje = id\nPOST /api/v1/rewards/redeem as luna\n" + `{"customerId": "$maria", "productId": "$espresso"}`,
	} {
		if shown := w.step(newStep(request)); !strings.HasPrefix(shown, "=> 201") {
			t.Fatal(shown)
		}
	}
	var pairs []string
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	for _, name := range slices.SortedFunc(maps.Keys(w.names), longestFirst) {
		pairs = append(pairs, "$"+name, w.names[name])
	}
	return &image{store.(*memStore).entries(), w.clock, w.names, strings.NewReplacer(pairs...)}
}

// open returns a server that starts from the image. Its writes do not change
// the image.
func (im *image) open(t *testing.T) (*memStore, *api) {
	store := newMemStore().(*memStore)
	t.Cleanup(func() { store.Close() })
	store.state.Store(&memPages{im.state})
	seeds := 0
	e := newEngine(store, func() time.Time { return im.now }, func() seed {
		seeds++
		return sha256.Sum256(fmt.Append(nil, seeds))
	})
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	return store, newAPI(e, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, log)
}

// senders are the owners of the API key of a request; "" sends no key.
var senders = []string{"", "luna", "otra", "doble", "sinapi"}

// slugOf returns the slug of the organization that a named value belongs to.
func slugOf(name string) string {
	switch {
	case strings.HasPrefix(name, "key."):
		return "nobody's to see"
	case strings.HasPrefix(name, "otra"):
		return "otra"
	case strings.HasPrefix(name, "doble"), name == "marta":
		return "doble"
	case strings.HasPrefix(name, "sin-api"):
		return "sinapi"
	}
	return "luna"
}

// compose returns a request. It adds the headers that headers leaves out.
func (im *image) compose(sender uint8, method, target, headers, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: sello.test\r\n", method, target)
	if key := senders[int(sender)%len(senders)]; key != "" {
		fmt.Fprintf(&b, "X-API-Key: $key.%s\r\n", key)
	}
	for line := range strings.Lines(headers) {
		fmt.Fprintf(&b, "%s\r\n", strings.TrimRight(line, "\r\n"))
	}
	body = im.expand.Replace(body)
	given := strings.ToLower("\n" + headers)
	if body != "" && !strings.Contains(given, "\ncontent-type:") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if !strings.Contains(given, "\ncontent-length:") && !strings.Contains(given, "\ntransfer-encoding:") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return im.expand.Replace(b.String()) + "\r\n" + body
}

// A dealing is one request, its response, and the store on either side of it.
type dealing struct {
	raw           string
	request       *http.Request
	response      *http.Response
	body          []byte
	before, after memTx
}

// deal calls the handler without a network. It returns nil if net/http cannot
// read raw as a request.
func (im *image) deal(store *memStore, a *api, raw string) *dealing {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return nil
	}
	r.RemoteAddr = "192.0.2.1:1234"
	d := &dealing{raw: raw, request: r, before: store.entries()}
	recorder := httptest.NewRecorder()
	a.ServeHTTP(recorder, r)
	d.response, d.body, d.after = recorder.Result(), recorder.Body.Bytes(), store.entries()
	canonical := http.Header{} // as a client reads it
	for name, values := range d.response.Header {
		if name != "Connection" {
			canonical[http.CanonicalHeaderKey(name)] = values
		}
	}
	d.response.Header = canonical
	if d.response.ContentLength < 0 {
		d.response.ContentLength = int64(len(d.body)) // as net/http will set it
	}
	if r.Method == "HEAD" {
		d.body = nil
	}
	return d
}

// faults returns the faults of an answer that no request excuses.
func (im *image) faults(d *dealing) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	given := d.request.Header.Get("X-Request-Id")
	faults = faultsOf(step{method: d.request.Method, target: d.request.URL.Path}, d.response, d.body, given)
	status := d.response.StatusCode
	changed := !sameEntries(d.before, d.after)
	switch {
	case status >= 500:
		fault("status %d", status)
	case status >= 400:
		if changed {
			fault("%d, and the store has changed", status)
		}
		var e errorBody
		if json.Unmarshal(d.body, &e); len(d.body) > 0 && (errorTable[e.Code].status != status || !strings.Contains(e.Message, errorTable[e.Code].message)) {
			fault("%d is not the status or %q not the text of %q", status, e.Message, e.Code)
		}
	case changed && d.request.Method != "POST" && d.request.Method != "PATCH":
		fault("a %s has changed the store", d.request.Method)
	case changed && d.response.Header.Get("Idempotency-Replayed") != "" && len(d.after)-len(d.before) > 3:
		fault("a replay has written more than under which key it is known, too")
	case changed && d.request.URL.Query().Get("dryRun") == "true" && strings.HasSuffix(d.request.URL.Path, "/transactions"):
		fault("a dry run has changed the store")
	}
	return append(faults, im.leaks(d.raw, fmt.Sprint(d.response.Header, string(d.body)))...)
}

// unsound returns what verify finds wrong in the state after a request.
func (im *image) unsound(state memTx) (faults []string) {
	if sameEntries(im.state, state) {
		return nil
	}
	report, err := verify(state, instantOf(im.now), nil)
	if err != nil {
		return []string{err.Error()}
	}
	return report.Problems
}

// leaks names the values of other organizations that an answer contains.
func (im *image) leaks(request, answer string) (faults []string) {
	for name, value := range im.names {
		key := "$key." + slugOf(name)
		if strings.Contains(answer, value) && !strings.Contains(request, value) && !strings.Contains(request, im.expand.Replace(key)) {
			faults = append(faults, "the answer has $"+name)
		}
	}
	return faults
}

func sameEntries(a, b memTx) bool {
	return slices.EqualFunc(a, b, func(a, b Entry) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) })
}

// twinFaults returns the forbidden differences between the first and second
// answers to a request.
func twinFaults(first, second *dealing) (faults []string) {
	one, two := first.response.StatusCode, second.response.StatusCode
	kept := len(first.request.Header["Idempotency-Key"]) > 0 && first.request.URL.Query().Get("dryRun") == ""
	switch {
	case two == http.StatusTooManyRequests:
	case one >= 400 && two != one:
		faults = append(faults, fmt.Sprintf("%d, and then %d", one, two))
	case one >= 400:
	case first.request.Header.Get("If-Match") != "" && two == http.StatusPreconditionFailed: // the first request changed the ETag
	case first.request.Method != "POST" && !bytes.Equal(first.body, second.body):
		faults = append(faults, "a read gives something else the second time")
	case first.request.Method != "POST" || !kept:
	case !bytes.Equal(first.body, second.body):
		faults = append(faults, "the same Idempotency-Key gets another answer")
	case second.response.Header.Get("Idempotency-Replayed") != "true" || !sameEntries(second.before, second.after):
		faults = append(faults, "the same Idempotency-Key is applied again")
	}
	return faults
}

// goldenSeeds calls add with each request of the transcripts.
func goldenSeeds(f *testing.F, add func(sender uint8, method, target, headers, body string)) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	seen := map[string]int{}
	for _, file := range files {
		as := "luna"
		for _, s := range readSteps(f, file) {
			for _, d := range s.directives {
				if name, ok := strings.CutPrefix(d, "as "); ok {
					as = name
				}
			}
			path, query, _ := strings.Cut(s.target, "?")
			kind := fmt.Sprint(s.method, path, len(strings.Split(query, "&")), strings.Count(s.body, `":`), len(s.headers))
			if seen[kind]++; s.method == "" || seen[kind] > 1 || len(s.body) > 1000 || strings.Contains(s.target+s.body, "$(") {
				continue
			}
			key := as
			if s.key != "" {
				key = s.key
			}
			sender := max(0, slices.Index(senders, key))
			add(uint8(sender), s.method, s.target, strings.Join(s.headers, "\n"), s.body)
		}
	}
}

// FuzzHandler makes up requests and sends each twice. Nothing may end in a
// panic or a 5xx; an error has the body of the contract and changes nothing;
// reads change nothing; a retry gets the first answer again; no answer shows
// another organization's data; and the store verifies afterwards.
func FuzzHandler(f *testing.F) {
	goldenSeeds(f, func(sender uint8, method, target, headers, body string) { f.Add(sender, method, target, headers, body) })
	f.Add(uint8(1), "POST", "/api/v1/transactions", "Idempotency-Key: k", `{"customerId":"$maria","totalAmount":1e2,"type":"Return","originalTransactionId":"$sale"}`)
	f.Add(uint8(1), "POST", "/api/v1/transactions", "Idempotency-Key: k", `{"customerId":"$maria","totalAmount":10,"externalId":"T-2"}`)
	f.Add(uint8(1), "POST", "/api/v1/redemptions/$canje/cancel", "Idempotency-Key: k", "")
	f.Add(uint8(1), "POST", "/api/v1/redemptions/use", "Idempotency-Key: k", `{"code":"aaaa aaaa","transactionId":"$sale"}`)
	f.Add(uint8(1), "GET", "/api/v1/transactions/$sale", "", "")
	f.Add(uint8(2), "GET", "/api/v1/transactions/$sale", "", "")
	var im *image
	f.Fuzz(func(t *testing.T, sender uint8, method, target, headers, body string) {
		if im == nil {
			im = newImage(t)
		}
		raw := im.compose(sender, method, target, headers, body)
		store, a := im.open(t)
		first := im.deal(store, a, raw)
		if first == nil {
			return
		}
		second := im.deal(store, a, raw)
		if faults := slices.Concat(im.faults(first), im.faults(second), twinFaults(first, second), im.unsound(second.after)); len(faults) > 0 {
			t.Errorf("%q\nfaults %q\n%d %v %s\nthen %d %s", raw, faults,
				first.response.StatusCode, first.response.Header, first.body, second.response.StatusCode, second.body)
		}
	})
}

// TestHandlerFaults: FuzzHandler's checks find the faults that they look for.
func TestHandlerFaults(t *testing.T) {
	t.Parallel()
	im := newImage(t)
	get := im.compose(1, "GET", "/api/v1/customers/$maria", "X-Request-Id: r", "")
	post := im.compose(1, "POST", "/api/v1/points/customers/$maria/deduct", "X-Request-Id: r\nIdempotency-Key: k", `{"amount":1}`)
	refused := im.compose(1, "GET", "/api/v1/customers/$otraMaria", "X-Request-Id: r", "")
	entry := func(state memTx, key, value string) memTx {
		o := newOverlay(state)
		o.write([]byte(key), []byte(value))
		return slices.Collect(func(yield func(Entry) bool) {
			for e := range o.Scan(nil, nil, false) {
				yield(e)
			}
		})
	}
	for _, test := range []struct {
		reason, raw string
		spoil       func(d *dealing)
	}{
		{"", get, func(*dealing) {}},
		{"", post, func(*dealing) {}},
		{"", refused, func(*dealing) {}},
		{"a 5xx", get, func(d *dealing) { d.response.StatusCode = 500 }},
		{"another status than the code's", refused, func(d *dealing) { d.response.StatusCode = 400 }},
		{"no error body", refused, func(d *dealing) { d.body = []byte("404 page not found\n") }},
		{"no JSON", get, func(d *dealing) { d.body = []byte("hello") }},
		{"a header too many", get, func(d *dealing) { d.response.Header.Set("Server", "sello") }},
		{"an error with a trace", refused, func(d *dealing) { d.after = entry(d.after, "y", "1") }},
		{"a read that writes", get, func(d *dealing) { d.after = entry(d.after, "y", "1") }},
		{"a write that does not add up", post, func(d *dealing) { d.after = d.after[:len(d.after)-1] }},
		{"somebody else's customer", get, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte(im.names["maria"]), []byte(im.names["otraMaria"]))
		}},
		{"a key", get, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte("maria@example.com"), []byte(im.names["key.otra"]))
		}},
	} {
		store, a := im.open(t)
		d := im.deal(store, a, test.raw)
		test.spoil(d)
		d.response.ContentLength = int64(len(d.body))
		if faults := slices.Concat(im.faults(d), im.unsound(d.after)); (len(faults) == 0) != (test.reason == "") {
			t.Errorf("%q: faults %q\n%d %s", test.reason, faults, d.response.StatusCode, d.body)
		}
	}
	store, a := im.open(t)
	first := im.deal(store, a, post)
	if faults := twinFaults(first, im.deal(store, a, post)); len(faults) > 0 {
		t.Errorf("a replay: %q", faults)
	}
	other := im.deal(store, a, strings.Replace(post, "Idempotency-Key: k", "Idempotency-Key: l", 1))
	if faults := twinFaults(first, other); len(faults) == 0 {
		t.Error("a retry that was applied twice is not found")
	}
}

// A pipeListener accepts one connection, the one in conns.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.done); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// FuzzWire sends any bytes to the real server and then waits until it hangs up.
// Time is simulated, so the server's timeouts take no time. Each answer is the
// API's; there are no more answers than requests; and the store verifies.
func FuzzWire(f *testing.F) {
	const get, key = "GET /api/v1/customers HTTP/1.1\r\nHost: h\r\n", "X-API-Key: $key.luna\r\n"
	const post = "POST /api/v1/points/customers/$maria/add HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" + key
	for _, seed := range []string{
		"", "\r\n", "GET", get, get + "\r\n", get + key + "\r\n", get + key + "\r\n" + get + key + "Connection: close\r\n\r\n" + get + "\r\n",
		post + "Content-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Content-Length: 13\r\n\r\n" + `{"amount":1}`, // one byte is missing
		post + "Content-Length: 11\r\n\r\n" + `{"amount":1}`, // one byte belongs to the next request
		post + "Transfer-Encoding: chunked\r\n\r\n" + "c\r\n" + `{"amount":1}` + "\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n" + "fffffffffffffffff\r\n" + `{"amount":1}`,
		post + "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n" + "c\r\n" + `{"amount":1}` + "\r\n0\r\n\r\n" + get + key + "\r\n",
		post + "Content-Length: 12\r\nContent-Length: 13\r\n\r\n" + `{"amount":1}`,
		post + "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Expect: wonders\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Idempotency-Key: k\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}` + post + "Idempotency-Key: k\r\nContent-Length: 12\r\n\r\n" + `{"amount":2}`,
		"HEAD /api/v1/customers HTTP/1.1\r\nHost: h\r\n" + key + "\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"0 * HTTP/1.1\nTransfer-Encoding:0\n\n", "GET /livez HTTP/1.0\r\n\r\n", "GET /livez HTTP/0.9\r\n\r\n", "GET /livez HTTP/1.1\r\n\r\n", "GET //livez HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://else/livez HTTP/1.1\r\nHost: h\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n",
		"GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /%00%2f..%2f HTTP/1.1\r\nHost: h\r\n\r\n", "\x16\x03\x01\x00\xa5\x01", strings.Repeat("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n", 10),
		"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 33<<10) + "\r\n\r\n",
	} {
		f.Add(seed)
	}
	var im *image
	f.Fuzz(func(t *testing.T, text string) {
		if im == nil {
			im = newImage(t)
		}
		raw := im.expand.Replace(text)
		synctest.Test(t, func(t *testing.T) {
			store, a := im.open(t)
			answers := onWire(newServer(a, a.log), a, raw)
			if faults := im.wireFaults(raw, answers, store.entries()); len(faults) > 0 {
				t.Errorf("%q\nfaults %q\n%s", raw, faults, answers)
			}
		})
	})
}

// refusalCodes are the error codes for input that net/http refuses as a request.
var refusalCodes = []string{"bad_request", "expectation_failed", "headers_too_large"}

// onWire sends raw to the server on one connection, and returns all that the
// server answers until it hangs up.
func onWire(server *http.Server, a *api, raw string) []byte {
	l := &pipeListener{make(chan net.Conn, 1), make(chan struct{})}
	client, far := net.Pipe()
	l.conns <- far
	go server.Serve(a.connections(l))
	go io.WriteString(client, raw)
	answers, _ := io.ReadAll(client)
	client.Close()
	server.Close()
	return answers
}

// wireFaults returns what is wrong with the answers to raw.
func (im *image) wireFaults(raw string, answers []byte, after memTx) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var requests []*http.Request // those that net/http can read
	whole := 0                   // how many of them have all of their body
	for in := bufio.NewReader(strings.NewReader(raw)); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			break
		}
		requests = append(requests, r)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			break
		}
		whole++
	}
	n := 0
	for in := bufio.NewReader(bytes.NewReader(answers)); ; n++ {
		if _, err := in.Peek(1); err != nil {
			break
		}
		asked := &http.Request{Method: "GET", URL: nil}
		if n < len(requests) {
			asked = requests[n]
		}
		res, err := http.ReadResponse(in, asked)
		if err != nil {
			fault("answer %d cannot be read: %v", n+1, err)
			return faults
		}
		body, err := io.ReadAll(res.Body)
		if !res.ProtoAtLeast(1, 1) || res.Close {
			res.Header.Del("Connection") // http.ReadResponse keeps it for HTTP/1.0
		}
		if asked.Method == http.MethodHead && res.Close {
			io.CopyN(io.Discard, in, res.ContentLength) // a refusal before the request is read ignores HEAD
		}
		var told errorBody
		json.Unmarshal(body, &told) // stays zero if the body is no error
		switch {
		case err != nil:
			fault("answer %d ends early: %v", n+1, err)
		case res.StatusCode == http.StatusContinue:
			n--
		case res.Close && slices.Contains(refusalCodes, told.Code):
			faults = append(faults, faultsOf(step{method: asked.Method, target: "/"}, res, body, "")...)
		case res.StatusCode >= 500:
			fault("answer %d is %d", n+1, res.StatusCode)
		case n >= len(requests):
			fault("an answer to no request")
		default:
			given := asked.Header.Get("X-Request-Id")
			faults = append(faults, faultsOf(step{method: asked.Method, target: asked.URL.Path}, res, body, given)...)
		}
	}
	if whole > 0 && n == 0 {
		fault("no answer")
	}
	if len(requests) == 0 && !sameEntries(im.state, after) {
		fault("no request, and the store has changed")
	}
	return slices.Concat(faults, im.unsound(after), im.leaks(raw, string(answers)))
}

// TestWireFaults: FuzzWire's checks find the faults that they look for.
func TestWireFaults(t *testing.T) {
	t.Parallel()
	im := newImage(t)
	raw := im.expand.Replace("GET /livez HTTP/1.1\r\nHost: h\r\n\r\nGET /api/v1/customers HTTP/1.1\r\nHost: h\r\nX-API-Key: $key.luna\r\n\r\n")
	for _, test := range []struct {
		reason string
		wrap   func(a http.Handler) http.HandlerFunc
	}{
		{"", func(a http.Handler) http.HandlerFunc { return a.ServeHTTP }},
		{"a panic", func(http.Handler) http.HandlerFunc { return func(http.ResponseWriter, *http.Request) { panic("oh") } }},
		{"text", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", "1") // without it, the answer would be replaced as net/http's own
				http.NotFound(w, r)
			}
		}},
		{"a 502", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "1")
				w.WriteHeader(502)
			}
		}},
		{"a leak", func(a http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-API-Key", im.names["key.otra"])
				a.ServeHTTP(w, r)
			}
		}},
		{"an answer cut off", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, a := im.open(t)
				answers := onWire(newServer(test.wrap(a), slog.New(slog.DiscardHandler)), a, raw)
				faults := im.wireFaults(raw, answers, store.entries())
				if (len(faults) == 0) != (test.reason == "") {
					t.Errorf("faults %q in %s", faults, answers)
				}
			})
		})
	}
}
