package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/localcall"
	"sello/internal/processtest"
	"sello/internal/sheet"
)

// A till runs commands in a directory of its own, as a person would.
type till struct {
	*testing.T
	dir string
	env map[string]string
}

func newTill(t *testing.T) *till {
	dir := t.TempDir()
	return &till{t, dir, map[string]string{"SELLO_DB": filepath.Join(dir, "sello.db")}}
}

// run runs a command line and returns its exit code and what it wrote.
func (s *till) run(line string, stdin ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(s.Context(), strings.Fields(line), environment{s.getenv, s.names, strings.NewReader(strings.Join(stdin, "")), &out, &errs})
	return code, out.String(), errs.String()
}

func (s *till) getenv(name string) string { return s.env[name] }

func (s *till) names() []string { return slices.Collect(maps.Keys(s.env)) }

// ok runs a command that must succeed, and returns what it wrote.
func (s *till) ok(line string, stdin ...string) string {
	s.Helper()
	code, out, errs := s.run(line, stdin...)
	if code != 0 || errs != "" {
		s.Fatalf("sello %s: exit %d\n%s%s", line, code, out, errs)
	}
	return out
}

// file writes a file and returns its path.
func (s *till) file(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// A running is a server started by the command serve or demo.
type running struct {
	*till
	base    string
	metrics string     // address of -metrics; "" without
	cards   string     // address of -cards-addr; "" without
	stop    func() int // stops the server, waits, and returns the exit code
	log     *bytes.Buffer
}

var (
	addrLogged    = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)
	metricsLogged = regexp.MustCompile(`"msg":"metrics","addr":"([^"]+)"`)
	cardsLogged   = regexp.MustCompile(`"msg":"cards","addr":"([^"]+)"`)
)

// start runs serve or demo on a free port. It returns once the log says "serving".
func (s *till) start(line string) (*running, *bufio.Reader) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	outReader, out := io.Pipe()
	logReader, logWriter := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, strings.Fields(line+" -addr 127.0.0.1:0"), environment{s.getenv, s.names, strings.NewReader(""), out, logWriter})
		out.Close()
		logWriter.Close()
	}()
	r := &running{till: s, log: new(bytes.Buffer)}
	lines := bufio.NewReader(logReader)
	for r.base == "" {
		text, err := lines.ReadString('\n')
		if err != nil {
			s.Fatalf("sello %s: it ended: %s (exit %d)", line, r.log, <-exit)
		}
		r.log.WriteString(text)
		if m := metricsLogged.FindStringSubmatch(text); m != nil {
			r.metrics = m[1]
		}
		if m := cardsLogged.FindStringSubmatch(text); m != nil {
			r.cards = m[1]
		}
		if m := addrLogged.FindStringSubmatch(text); m != nil {
			r.base = "http://" + m[1] + "/api/v1"
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(r.log, lines)
	}()
	stopped := false
	r.stop = func() int {
		stopped = true
		cancel()
		code := <-exit
		<-drained
		return code
	}
	s.Cleanup(func() {
		if !stopped {
			r.stop()
		}
	})
	return r, bufio.NewReader(outReader)
}

// get sends a GET request with a key and returns the status and the body.
func (r *running) get(path, key string) (int, string) {
	r.Helper()
	return r.send(http.MethodGet, path, key, "")
}

func (r *running) send(method, path, key, body string) (int, string) {
	r.Helper()
	req, err := http.NewRequest(method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	return r.answer(http.DefaultClient.Do(req))
}

// answer is the status and the body of a response.
func (r *running) answer(res *http.Response, err error) (int, string) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (r *running) wantStatus(want int, path, key, why string) {
	r.Helper()
	if got, body := r.get(path, key); got != want {
		r.Errorf("GET %s: %d, want %d: %s\n%s", path, got, want, why, body)
	}
}

// key makes an API key and returns its text and id.
func (s *till) key(flags string) (text, keyID string) {
	s.Helper()
	var made createdKey
	if err := json.Unmarshal([]byte(s.ok("key create -json -org cafe-luna "+flags)), &made); err != nil {
		s.Fatal(err)
	}
	return made.Key, made.ID.String()
}

// TestCommandLine checks the exit code of each command, and that its output and its
// errors contain what a person should see.
func TestCommandLine(t *testing.T) {
	s := newTill(t)
	document := s.file("luna.json", string(demoDocument))
	changed := s.file("changed.json", strings.Replace(string(demoDocument), `"threshold": 1000`, `"threshold": 800`, 1))
	broken := s.file("broken.json", strings.Replace(string(demoDocument), `"amount": 10`, `"amount": "diez"`, 1))
	torn := s.file("torn.json", strings.Replace(string(demoDocument), `"Café Luna"`, `Café Luna`, 1))
	customers := s.file("customers.csv", "email,phoneNumber,firstName\nana@example.com,,Ana\nno,,Eva\n")
	sales := s.file("sales.csv", "externalId,createdAt,email,phoneNumber,type,totalAmount\nT-1,2026-01-05,ana@example.com,,Purchase,150\n")
	for _, step := range []struct {
		line   string
		code   int
		out    string // a part of standard output
		err    string // a part of standard error
		reason string
	}{
		{"", 2, "", "falta el comando", "nothing to do"},
		{"vender", 2, "", `comando desconocido: "vender" (sello -h los muestra)`, "no such command"},
		{"veriy", 2, "", `comando desconocido: "veriy" (¿verify?)`, "a letter is missing"},
		{"exprot -json", 2, "", `comando desconocido: "exprot -json" (¿export?)`, "two are swapped"},
		{"key crate", 2, "", `comando desconocido: "key crate" (¿key create?)`, "of two words"},
		{"kye create", 2, "", `comando desconocido: "kye create" (¿key create?)`, "the first of two words"},
		{"imprt", 2, "", `comando desconocido: "imprt" (¿import?)`, "the first word alone"},
		{"restor x.db", 2, "", `comando desconocido: "restor x.db" (¿restore?)`, "an argument follows"},
		{"help", 0, "movimientos de puntos en CSV\n  key create", "", "what belongs together stands together"},
		{"help", 0, "key revoke ID", "", "help is what was asked for"},
		{"serve -h", 0, "-trusted-proxies lista", "", "each command has its own"},
		{"help verify", 0, "Uso: sello verify", "", "and this is the other way to ask"},
		{"--version", 0, "esquema 14", "", "as other programs have it"},
		{"key", 2, "", "sello key create, sello key list, sello key change, sello key rotate, sello key ticket-secret, sello key revoke", "the first of two words"},
		{"key -h", 0, "key revoke ID", "", "what there is of it"},
		{"import --help", 0, "import sales ARCHIVO.csv", "", ""},
		{"help key", 0, "key list", "", ""},
		{"key vender", 2, "", "falta decir cuál", "no such one"},
		{"-db x verify", 2, "", "las opciones van después del comando: sello COMANDO -db", ""},
		{"serve -puerto 1", 2, "", "opción desconocida: -puerto\n", "no such flag"},
		{"serve -bakup-evry 1h", 2, "", "opción desconocida: -bakup-evry (¿-backup-every?)\n", "two letters are missing"},
		{"verify -jsn", 2, "", "opción desconocida: -jsn (¿-json?)\n", ""},
		{"serve -addr", 2, "", "falta el valor de -addr", "no value"},
		{"serve -json", 2, "", "opción desconocida: -json", "it prints nothing"},
		{"apply x -json=no", 2, "", `valor no válido para -json: "no" (true o false)`, "neither true nor false"},
		{"key create -org x -name y -rate-limit n", 2, "", `valor no válido para -rate-limit: "n"`, "no number"},
		{"serve -memory 95MB", 2, "", `valor no válido para -memory: "95MB" (tamaño de memoria`, "less than would do"},
		{"serve -memory mucha", 2, "", `valor no válido para -memory: "mucha"`, "no size"},
		{"serve -addr 256.0.0.1:1", 1, "", "no se puede escuchar en 256.0.0.1:1", "no such address, and no file is made"},
		{"serve -addr 127.0.0.1", 2, "", "-addr debe tener la forma 127.0.0.1:8080", "no port"},
		{"serve -trusted-proxies nadie", 2, "", `no válido: "nadie"`, "no such address"},
		{"verify de más", 2, "", "no lleva argumentos", "an argument too many"},
		{"apply", 2, "", "uso: sello apply", "an argument missing"},
		{"version", 0, "esquema 14", "", ""},
		{"version -json", 0, `"schema": 14`, "", "every command can print JSON"},
		{"verify", 1, "", "no existe", "only some commands make a file"},
		{"apply " + document + "x", 1, "", document + "x: no existe", "no such document"},
		{"apply -dry-run " + document, 0, "(no se aplicó nada)", "", "what it would make"},
		{"verify", 1, "", "no existe", "the dry run made no file"},
		{"apply " + broken, 1, "", "programs[0].rules[0].per.amount: debe ser un número", "the path of what is wrong"},
		{"apply " + torn, 1, "", "el documento no es válido:\n  línea 4, columna 13: no es JSON válido\n", "the place of what is wrong"},
		{"verify", 1, "", "no existe", "and no file is made for it"},
		{"apply " + document, 0, "+ programs[club].name: Club Luna", "", "a new organization"},
		{"apply -db " + s.dir + "/other.db " + document, 0, s.dir + "/other.db: archivo nuevo\n", "", "a new file is told"},
		{"apply -json -db " + s.dir + "/third.db " + document, 0, `"made": "` + s.dir + "/third.db\"", "", "in JSON too"},
		{"apply " + document, 0, "cafe-luna: sin cambios", "", "the same again"},
		{"apply -dry-run " + changed, 0, "~ programs[club].tiers[1].threshold: 1000 → 800", "", "the difference"},
		{changed + " apply", 2, "", "comando desconocido", "the command comes first"},
		{"apply " + changed + " -dry-run", 0, "1 cambio por aplicar (no se aplicó nada)", "", "flags may come last"},
		{"apply " + document + " -json", 0, `"changes": []`, "", "the dry run changed nothing"},
		{"export -org cafe-luna", 0, `"threshold": 1000`, "", ""},
		{"export", 0, `"threshold": 1000`, "", "the only organization needs no name"},
		{"export clientes", 2, "", "no lleva argumentos: clientes; hay también sello export customers, sello export sales, sello export redemptions, sello export movements\n", "a configuration takes no argument"},
		{"export customers x", 2, "", "sello export customers no lleva argumentos: x\n", "the longest name is the command"},
		{"export -org nadie", 1, "", `no hay ninguna organización "nadie"; hay: cafe-luna`, ""},
		{"key create -org cafe-luna", 2, "", "falta -name", ""},
		{"key create -org cafe-luna -name POS -scopes todo", 2, "", `scope desconocido: "todo"`, ""},
		{"key create -org cafe-luna -name POS -ip casa", 2, "", `no válido: "casa"`, ""},
		{"key create -org cafe-luna -name POS -expires 2001-01-01", 2, "", "debe ser futura", ""},
		{"key create -org cafe-luna -name POS -expires mañana", 2, "", "no es una fecha como 2027-01-01", "a date comes before whether it is past"},
		{"key create -org cafe-luna -name POS -rate-limit -1", 2, "", "-rate-limit debe ser mayor a 0", ""},
		{"key create -org cafe-luna -name POS -daily-limit 0", 2, "", "-daily-limit debe ser mayor a 0", "0 is no way to say without limit"},
		{"key create -org cafe-luna -name POS -scopes=", 2, "", "-scopes está vacía", "this would have full access"},
		{"key create -org cafe-luna -name POS -ip ,", 2, "", "-ip está vacía", "this would take any source"},
		{"key create -org cafe-luna -name POS -daily-limit 5 -monthly-limit 9", 0, "Guárdala ahora", "", ""},
		{"key create -org cafe-luna -name Caja -scopes points:read,points:write -ip 10.0.0.0/8,192.0.2.1", 0, "Guárdala ahora", "", ""},
		{"key list", 0, "points:read,points:write  10.0.0.0/8,192.0.2.1  300/min              activa  nunca", "", "scopes and addresses"},
		{"key list", 0, "todos                     todas                 300/min 5/día 9/mes", "", "where there are none"},
		{"key create -org cafe-luna -name " + strings.Repeat("é", 100), 0, "Guárdala ahora", "", "100 characters, however long in bytes"},
		{"key create -org cafe-luna -name " + strings.Repeat("é", 101), 2, "", "de 1 a 100 caracteres", ""},
		{"key create -org cafe-luna -name a\x1b[2Jb", 2, "", "sin caracteres de control", "a list of keys is shown on terminals"},
		{"key list", 0, "300/min 5/día 9/mes", "", ""},
		{"key create -h", 0, "Scopes: customers:read, customers:write, ", "", "which there are"},
		{"key create -name POS -max-points-per-day 0", 2, "", `valor no válido para -max-points-per-day: "0"`, ""},
		{"key create -name POS -max-points-per-day 0.00001", 2, "", `valor no válido para -max-points-per-day: "0.00001"`, "more decimals than points have"},
		{"key create -name POS -max-points-per-operation mil", 2, "", `"mil" (puntos que puede dar un solo add`, ""},
		{"key create -name Bolsa -max-points-per-day 12.5 -max-points-per-operation 5 -daily-limit none", 0, "Guárdala ahora", "", ""},
		{"key list", 0, "300/min 5 puntos/add 12.5 puntos/día", "", ""},
		{"key change -daily-limit 5", 2, "", "uso: sello key change [opciones] ID", "no key"},
		{"key change nada", 2, "", "falta decir qué cambia", ""},
		{"key change -json nada", 2, "", "falta decir qué cambia", "this is no change"},
		{"key change -daily-limit 5 nada", 1, "", `no hay ninguna API key "nada"`, ""},
		{"key change -daily-limit 5 sello_dBKzuQ", 1, "", "se cambia por su id", "its text is a secret"},
		{"key change -daily-limit 0 nada", 2, "", "-daily-limit debe ser mayor a 0", "none is the way to say without limit"},
		{"key change -scopes= nada", 2, "", "-scopes está vacía", ""},
		{"key change -expires= nada", 2, "", "-expires está vacía", "none clears it"},
		{"key change -name none nada", 2, "", "necesita un nombre", ""},
		{"key rotate nada", 1, "", `no hay ninguna API key "nada"`, ""},
		{"key rotate -overlap 1d nada", 2, "", `valor no válido para -overlap: "1d"`, "Go has no days"},
		{"key rotate sello_dBKzuQ", 1, "", "se rota por su id", "its text is a secret"},
		{"audit -limit 0", 2, "", "-limit debe ser mayor a 0", ""},
		{"audit -from 2027-01-02 -to 2027-01-01", 2, "", "-from no puede ser posterior a -to", ""},
		{"audit -from 2027-01-01 -to 2027-01-01", 0, "", "", "the same day"},
		{"audit -from ayer", 2, "", `-from no es una fecha como 2027-01-01: "ayer"`, ""},
		{"audit -to ayer", 2, "", `-to no es una fecha como 2027-01-01: "ayer"`, ""},
		{"audit -action configuration.applied", 0, "comando  configuration.applied", "", "who made the organization"},
		{"audit -action key.created -limit 1", 0, `name: – → "Bolsa", rateLimit: – → 300, maxPointsPerOperation: – → 5, maxPointsPerDay: – → 12.5`, "", "the newest"},
		{"audit -action key.made", 0, `ninguna entrada: ninguna acción se llama "key.made"; hay: configuration.applied, key.created, `, "", "no such action"},
		{"audit -subject nada", 0, "ninguna entrada\n", "", "no heading without entries"},
		{"audit -h", 0, "redemption.cancelled, clock.accepted", "", "which actions there are"},
		{"audit -limit 1", 0, "más, de antes: con -limit se muestran", "", ""},
		{"audit -json -subject nada", 0, `"data": [],`, "", ""},
		{"key revoke -org cafe-luna nada", 1, "", `no hay ninguna API key "nada"`, ""},
		{"key revoke -org cafe-luna sello_dBKzuQ", 1, "", "se revoca por su id", "its text is a secret, which is not repeated"},
		{"key revoke -org cafe-luna", 2, "", "uso: sello key revoke [opciones] ID", ""},
		{"import customers " + customers, 1, "2 filas: 1 nuevo, 0 que ya estaban, 1 con errores", "no se importó todo: 1 registro con errores", "who runs it unattended has to know"},
		{"import customers " + customers + " -json", 1, `"known": 1`, "1 registro", "again"},
		{"import sales -h", 0, "1 si algo no entró", "", ""},
		{"import sales " + customers, 1, "", "faltan columnas: externalId", "not a file of sales"},
		{"export customers", 0, "Ana,,ana@example.com,", "", "the only organization needs no name"},
		{"export movements", 0, "Credit,Bonus,50,50", "", ""},
		{"export sales", 0, "externalId,createdAt", "", ""},
		{"verify", 0, "1 organización, 1 cliente, 1 movimiento, 0 ventas, 0 canjes\nlibro de cafe-luna: 1 movimiento, huella ", "", ""},
		{"verify", 0, "\nauditoría de cafe-luna: ", "", ""},
		{"verify", 0, "\ntodo cuadra", "", ""},
		{"verify -since " + customers, 1, "", "no es lo que escribe sello verify -json", "no earlier verification"},
		{"backup -h", 0, "una copia anterior, que se reemplaza", "", "what it may overwrite"},
		{"backup", 2, "", "uso: sello backup", "an argument missing"},
		{"backup " + customers, 1, "", "ya existe y no se reemplaza", "not a backup of before"},
		{"backup " + s.dir + "/copy.db", 0, "entradas, ", "", ""},
		{"backup " + s.dir + "/copy.db", 0, " bytes, comprobada", "", "again"},
		{"verify -db " + s.dir + "/copy.db", 0, "todo cuadra", "", "a copy is a whole file"},
		{"compact -db " + s.dir + "/none.db", 1, "", "none.db: no existe", "it makes no file"},
		{"compact " + customers, 2, "", "no lleva argumentos", "an argument too many"},
		{"compact -db " + s.dir + "/copy.db", 0, "copy.db: de ", "", "its size before"},
		{"compact -db " + s.dir + "/copy.db", 0, " entradas, comprobado", "", "again"},
		{"compact -json -db " + s.dir + "/copy.db", 0, `"after": `, "", ""},
		{"verify -db " + s.dir + "/copy.db", 0, "todo cuadra", "", "it is the same"},
		{"compact -db " + customers, 1, "", "no es un archivo de sello", ""},
		{"compact -h", 0, "si se interrumpe, queda", "", "what it does with the file"},
		{"serve -backup-every 1h", 2, "", "-backup-every y -backup-dir van juntas", "where to?"},
		{"serve -backup-keep 3", 2, "", "-backup-keep va con -backup-every y -backup-dir", "of what?"},
		{"serve -backup-every 1s -backup-dir " + s.dir, 2, "", "-backup-every debe ser de al menos 1m", "it would do nothing else"},
		{"serve -backup-every 1d -backup-dir " + s.dir, 2, "", `-backup-every: "1d" (tiempo entre copias del archivo, como 90m o 24h, de al menos 1m`, "Go has no days"},
		{"serve -backup-every 1h -backup-keep 0 -backup-dir " + s.dir, 2, "", "-backup-keep debe ser mayor a 0", "none would be left"},
		{"serve -backup-every 1h -backup-dir " + customers, 1, "", "no es un directorio", ""},
		{"serve -backup-every 1h -backup-dir " + s.dir + "/none", 1, "", "none: no existe", ""},
		{"serve -backup-every 1h -db " + strings.Repeat("n", 250) + ".db -backup-dir " + s.dir, 1, "", s.dir + ": no se puede escribir en el directorio", "the names would be too long"},
		{"import sales " + sales, 0, "1 fila: 1 nueva, 0 que ya estaban, 0 con errores", "", "ventas are feminine"},
		{"import sales " + sales, 0, "1 fila: 0 nuevas, 1 que ya estaban, 0 con errores", "", "again"},
	} {
		code, out, errs := s.run(step.line)
		if code != step.code || !strings.Contains(out, step.out) || !strings.Contains(errs, step.err) || (step.err == "") != (errs == "") {
			if step.line != "" || code != 2 { // without a command, help comes before the fault
				t.Errorf("sello %s: %s\nexit %d, want %d with %q and %q\n%s%s", step.line, step.reason, code, step.code, step.out, step.err, out, errs)
			}
		}
	}
	if out := s.ok("apply -", string(demoDocument)); !strings.Contains(out, "sin cambios") {
		t.Errorf("from standard input: %s", out)
	}
	if out := s.ok("verify -since " + s.file("then.json", s.ok("verify -json"))); !strings.Contains(out, "then.json: nada de entonces falta ni ha cambiado\ntodo cuadra") {
		t.Errorf("an earlier verification: %s", out)
	}
	if out := s.ok("apply -", s.ok("export -org cafe-luna")); !strings.Contains(out, "sin cambios") {
		t.Errorf("an export applied again: %s", out)
	}
}

// TestApplyNotJSON: what is no JSON is told by its place in the text, whether or not there is a
// file or a server. A byte order mark is no fault, and counts as no column.
func TestApplyNotJSON(t *testing.T) {
	s := newTill(t)
	document := string(demoDocument)
	lines := strings.Count(document[:len(document)/2], "\n")
	check := func(where string) {
		t.Helper()
		for _, test := range []struct{ text, want, reason string }{
			{`{"a":1,}`, "línea 1, columna 8: no es JSON válido", "a comma too many"},
			{sheet.MarkUTF8 + `{"a":1,}`, "línea 1, columna 8: no es JSON válido", "after a mark"},
			{"", "está vacío", "an empty file"},
			{sheet.MarkUTF8 + " \r\n", "está vacío", "a mark and blanks"},
			{document[:len(document)/2], fmt.Sprintf("línea %d, columna ", lines+1), "cut off"},
			{document + "}", "sobra lo que sigue al objeto", "more than one value"},
			{"[]", "línea 1, columna 1: debe ser un objeto", "a list"},
			{"\xff\xfe{\x00}\x00", "línea 1, columna 1: no es UTF-8 válido", "UTF-16"},
			{sheet.MarkUTF8 + `{"a":1}`, "a: campo desconocido", "JSON, after a mark"},
		} {
			for _, flags := range []string{"", "-dry-run "} {
				code, out, errs := s.run("apply "+flags+"-", test.text)
				if code != 1 || out != "" || !strings.HasPrefix(errs, "sello: el documento no es válido:\n  ") || !strings.Contains(errs, test.want) || englishWords.MatchString(errs) {
					t.Errorf("%s: apply %s%s: exit %d, %q, %q", where, flags, test.reason, code, out, errs)
				}
			}
		}
	}
	check("no file")
	if _, err := os.Stat(s.env["SELLO_DB"]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	marked := s.file("marked.json", sheet.MarkUTF8+document)
	s.ok("apply " + marked)
	check("a file")
	s.start("serve")
	check("a server")
	if out := s.ok("apply " + marked); !strings.Contains(out, "sin cambios") {
		t.Errorf("a mark in a document: %s", out)
	}
	if out := s.ok("verify -since " + s.file("then.json", sheet.MarkUTF8+s.ok("verify -json"))); !strings.Contains(out, "todo cuadra") {
		t.Errorf("a mark in a verification: %s", out)
	}
}

// TestWrongDirectory: a command that finds no file says where it looked, in full, and which flag
// names the file. One that makes a file says which.
func TestWrongDirectory(t *testing.T) {
	s := newTill(t)
	s.env["SELLO_DB"] = ""
	t.Chdir(s.dir)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, customers := filepath.Join(dir, "sello.db"), s.file("c.csv", "email,phoneNumber\nana@example.com,\n")
	for _, line := range []string{
		"verify", "compact", "migrate", "export", "export customers", "key list", "key create -name x", "audit", "webhook list", "user list", "clock",
		"user invite -email ana@example.com -role owner -panel https://puntos.example.mx", "import customers " + customers, "import customers -dry-run " + customers, "backup " + s.dir + "/copy.db",
	} {
		if code, out, errs := s.run(line); code != 1 || out != "" || errs != "sello: "+file+": no existe; con -db se dice cuál es el archivo de datos\n" {
			t.Errorf("sello %s: exit %d, %q, %q", line, code, out, errs)
		}
	}
	if left, _ := filepath.Glob("*.db*"); left != nil {
		t.Errorf("there is now %s", left)
	}
	if out := s.ok("apply -dry-run -", string(demoDocument)); strings.Contains(out, "archivo nuevo") {
		t.Error(out)
	}
	if out := s.ok("apply -", string(demoDocument)); !strings.Contains(out, "\n"+file+": archivo nuevo\ncafe-luna: organización nueva\n") {
		t.Error(out)
	}
	if out := s.ok("apply -", strings.Replace(string(demoDocument), "cafe-luna", "bar-sol", 1)); strings.Contains(out, "archivo nuevo") {
		t.Error(out)
	}
	for _, want := range []bool{true, false} {
		server, _ := s.start("serve -db other.db")
		server.stop()
		if made := fmt.Sprintf(`"msg":"file made","file":%q`, filepath.Join(dir, "other.db")); strings.Contains(server.log.String(), made) != want {
			t.Errorf("%t: %s", want, server.log)
		}
	}
}

// TestUnknownVariable: a variable that looks like one of a flag and is none is an error, also
// of commands that do not have the flag.
func TestUnknownVariable(t *testing.T) {
	for _, test := range []struct{ name, value, want, reason string }{
		{"SELLO_BAKUP_EVERY", "1h", " (¿SELLO_BACKUP_EVERY?)", "a letter is missing"},
		{"SELLO_DBS", "x.db", " (¿SELLO_DB?)", "one too many"},
		{"SELLO_PUERTO", "80", "", "nothing is near"},
		{"SELLO_EMAIL", "ana@example.com", "", "of a flag that is taken from the command line alone"},
		{"SELLO_BAKUP_EVERY", "", "none", "an empty one counts as unset"},
		{"SELLO_BACKUP_EVERY", "1h", "none", "of another command's flag"},
		{"SELLO_KEY", "sello_x", "none", "as the documentation has it"},
		{"SELLO_PORT_8080_TCP", "tcp://10.0.0.1:8080", "none", "as containers get it"},
		{"SELLO_SERVICE_HOST", "10.0.0.1", "none", "as containers get it"},
		{"SELLOS", "x", "none", "another program's"},
		{"sello_bakup_every", "x", "none", "another program's"},
	} {
		s := newTill(t)
		s.env[test.name] = test.value
		for _, line := range []string{"version", "serve -addr 127.0.0.1", "verify"} {
			want := "sello: variable de entorno desconocida: " + test.name + test.want + "\n"
			if code, _, errs := s.run(line); (code == 2 && errs == want) != (test.want != "none") || strings.Contains(errs, "variable") != (test.want != "none") {
				t.Errorf("%s=%s sello %s: %s: exit %d, %q", test.name, test.value, line, test.reason, code, errs)
			}
		}
	}
}

// TestVariablesOfDocs: no text that comes with sello names a variable that it refuses.
func TestVariablesOfDocs(t *testing.T) {
	named := regexp.MustCompile(`\bSELLO_[A-Z_]+`)
	s := newTill(t)
	found := 0
	for _, root := range []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "packaging", "tools", "audit", ".ci"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			for _, name := range named.FindAllString(readText(t, path), -1) {
				found++
				s.env = map[string]string{name: "x"}
				if code, _, errs := s.run("version -json=true"); strings.Contains(errs, "desconocida") {
					t.Errorf("%s: exit %d, %s", path, code, errs)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if found < 30 {
		t.Errorf("only %d found", found)
	}
}

// TestErrorsAsJSON: with -json standard output has one JSON document, the result or else the
// error, whatever fails and wherever; standard error and the exit code are as without it.
func TestErrorsAsJSON(t *testing.T) {
	s := newTill(t)
	document := s.file("luna.json", string(demoDocument))
	customers := s.file("c.csv", "email,phoneNumber\nana@example.com,\nno,\n")
	check := func(line, stdin, code, reason string) {
		t.Helper()
		exit, out, errs := s.run(line, stdin)
		var told failure
		dec := json.NewDecoder(strings.NewReader(out))
		err := dec.Decode(&told)
		want := 1
		if code == "usage" {
			want = 2
		}
		if err != nil || dec.More() || exit != want || told.Code != code || told.Error == "" && code != "" || code != "" && errs != "sello: "+told.Error+"\n" {
			t.Errorf("sello %s: %s: exit %d, %q, %q, %v; want %s", line, reason, exit, out, errs, err, code)
		}
	}
	check("veriy -json", "", "usage", "no such command")
	check("-json", "", "usage", "no command")
	check("verify -json x", "", "usage", "an argument too many")
	check("verify --json=true -nope", "", "usage", "no such flag")
	check("verify -json=x", "", "usage", "a wrong value")
	check("export -json", "", "not_found", "no file")
	check("apply -json -", "{", "invalid_document", "no JSON, and no file")
	s.ok("apply " + document)
	everywhere := func() {
		t.Helper()
		check("apply -json -", "{}", "invalid_document", "a document with faults")
		check("apply -json "+document+"x", "", "not_found", "no such document")
		check("export -json -org nadie", "", "failed", "no such organization")
		check("key list -json -org nadie", "", "failed", "no such organization")
		check("key create -json -name a -scopes nada", "", "usage", "told by the operation")
		check("import customers -json "+customers, "", "", "the report itself: not everything went in")
	}
	everywhere()
	s.env["SELLO_JSON"] = "true"
	check("key list -org nadie", "", "failed", "by the variable")
	if exit, out, errs := s.run("serve -nope"); exit != 2 || out != "" || errs == "" {
		t.Errorf("a command without -json: exit %d, %q, %q", exit, out, errs)
	}
	check("verify -db "+customers, "", "not_a_data_file", "")
	delete(s.env, "SELLO_JSON")
	if exit, out, errs := s.run("key list -json=false -org nadie"); exit != 1 || out != "" || errs == "" {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	s.start("serve")
	everywhere()
	check("compact -json", "", "file_in_use", "a server has the file")
}

// TestOnlyOrganization checks that commands without -org take the only organization. If
// there are several they list them, and if there is none they say so.
func TestOnlyOrganization(t *testing.T) {
	s := newTill(t)
	lines := []string{
		"export", "key create -name POS", "key list", "key revoke 01a1f94d-3553-7001-b786-2a39172ca160", "export customers", "audit",
		"key change -daily-limit 5 01a1f94d-3553-7001-b786-2a39172ca160", "key rotate 01a1f94d-3553-7001-b786-2a39172ca160",
		"import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"),
	}
	check := func(why string, code int, want string) {
		t.Helper()
		for _, line := range lines {
			if got, out, errs := s.run(line); got != code || out != "" || errs != "sello: "+want+"\n" {
				t.Errorf("%s: sello %s: exit %d, %q, %q", why, line, got, out, errs)
			}
		}
	}
	s.ok("apply -", string(demoDocument))
	s.ok("key create -name POS")
	for _, line := range lines {
		if code, _, errs := s.run(line); code != 0 && !strings.Contains(errs, "no hay ninguna") {
			t.Errorf("one: sello %s: exit %d, %s", line, code, errs)
		}
	}
	s.ok("apply -", strings.Replace(string(demoDocument), "cafe-luna", "bar-sol", 1))
	check("two", 2, "falta -org; hay: bar-sol, cafe-luna")
	for i := range 9 {
		s.ok("apply -", strings.Replace(string(demoDocument), "cafe-luna", fmt.Sprintf("casa-%d", i), 1))
	}
	check("many", 2, "falta -org; hay 11: bar-sol, cafe-luna, casa-0, casa-1, casa-2, casa-3, casa-4, casa-5, casa-6, casa-7, …")

	s.env["SELLO_DB"] = filepath.Join(s.dir, "empty.db")
	server, _ := s.start("serve")
	server.stop()
	check("none", 1, "no hay ninguna organización: sello apply hace la primera")
}

// TestKeyChangeIgnoresVariables: variables that are meant for key create, or for another
// command, change nothing of a key.
func TestKeyChangeIgnoresVariables(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.ok("key create -name Caja -scopes points:read -expires 2099-01-01")
	id := firstWord(strings.Split(s.ok("key list"), "\n")[1])
	for name, value := range map[string]string{
		"SCOPES": "none", "EXPIRES": "none", "RATE_LIMIT": "9", "MAX_POINTS_PER_DAY": "7", "NAME": "Otra", "IP": "10.0.0.1",
	} {
		s.env["SELLO_"+name] = value
	}
	if code, _, errs := s.run("key change " + id); code != 2 || !strings.Contains(errs, "falta decir qué cambia") {
		t.Errorf("exit %d: %s", code, errs)
	}
	s.ok("key change -daily-limit 5 " + id)
	if list := s.ok("key list"); !strings.Contains(list, "points:read  todas        300/min 5/día  válida hasta 2099") || !strings.Contains(list, "Caja") {
		t.Error(list)
	}
	if help := s.ok("key change -h"); strings.Contains(help, "SELLO_SCOPES") || !strings.Contains(help, "[SELLO_ORG]") {
		t.Error(help)
	}
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
}

// TestKeyStates checks the text of a key's state: active, expiring, expired or revoked.
func TestKeyStates(t *testing.T) {
	const now = 1_800_000_000_000 // 2027-01-15T08:00Z
	for _, test := range []struct {
		key  listedKey
		want string
	}{
		{listedKey{}, "activa"},
		{listedKey{ExpiresAt: now + 1}, "válida hasta 2027-01-15T08:00Z"},
		{listedKey{ExpiresAt: now}, "expirada 2027-01-15T08:00Z"},
		{listedKey{ExpiresAt: now - 1}, "expirada 2027-01-15T07:59Z"},
		{listedKey{ExpiresAt: now - 1, RevokedAt: now - 60_000}, "revocada 2027-01-15T07:59Z"},
	} {
		if got := test.key.stateText(now); got != test.want {
			t.Errorf("%+v: %q, want %q", test.key, got, test.want)
		}
	}
}

// TestKeysBesideServer changes and rotates keys of a running server, where all changes
// take effect on the next request, and reads the audit log.
func TestKeysBesideServer(t *testing.T) {
	s := newTill(t)
	s.ok("apply testdata/world/luna.json")
	server, _ := s.start("serve")
	text, keyID := s.key("-name caja -scopes customers:read,customers:write,points:write")
	status, body := server.send(http.MethodPost, "/customers", text, `{"email":"ana@example.com"}`)
	var ana struct{ ID string }
	if err := json.Unmarshal([]byte(body), &ana); err != nil || status != 201 {
		t.Fatal(status, body, err)
	}
	add := func(key, amount string, want int) {
		t.Helper()
		if status, body := server.send(http.MethodPost, "/points/customers/"+ana.ID+"/add", key, `{"amount":`+amount+`}`); status != want {
			t.Errorf("%s points: %d %s, want %d", amount, status, body, want)
		}
	}
	add(text, "1000", 201)
	if out := s.ok("key change -max-points-per-day 100 -max-points-per-operation 60 " + keyID); !strings.Contains(out, "(caja) cambiada") {
		t.Error(out)
	}
	add(text, "61", 403)
	add(text, "60", 201)
	var next rotatedKey
	if err := json.Unmarshal([]byte(s.ok("key rotate -json -overlap 1h "+keyID)), &next); err != nil {
		t.Fatal(err)
	}
	add(next.Key, "41", 403)
	add(next.Key, "40", 201)
	add(text, "1", 403)
	s.ok("key change -max-points-per-day none -json " + keyID)
	add(text, "50", 201)
	s.ok("key change -scopes customers:read " + keyID)
	add(text, "50", 403)
	s.ok("key change -scopes none -ip 192.0.2.1 " + keyID)
	server.wantStatus(403, "/customers", text, "another address")
	s.ok("key change -ip none -expires 2099-01-01 " + keyID)
	server.wantStatus(200, "/organization", text, "full access")
	if out := s.ok("key rotate -overlap 0s " + keyID); !strings.Contains(out, "La anterior, "+keyID+", expira 20") {
		t.Error(out)
	}
	server.wantStatus(401, "/organization", text, "it was replaced at once")

	var list auditPage
	if err := json.Unmarshal([]byte(s.ok("audit -json -subject "+keyID)), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Data {
		if e.Source != "Command" || e.Actor.Type != "Command" || textOr(e.Actor.Actor, "") != thisUser() {
			t.Errorf("%+v was done by a command", e)
		}
		got = append(got, e.Action+" "+e.changesText())
	}
	want := []string{"key.rotated", "key.changed", "key.changed ipWhitelist: – → [\"192.0.2.1\"]", "key.changed", "key.changed maxPointsPerDay: 100 → –", "key.rotated", "key.changed", "key.created"}
	if len(got) != 8 || list.Total != 8 {
		t.Fatalf("%d entries: %q", list.Total, got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) && !strings.Contains(got[i], "ipWhitelist") {
			t.Errorf("entry %d is %s, want %s", i, got[i], want[i])
		}
	}
	if out := s.ok("audit -limit 3 -subject " + keyID); strings.Count(out, "\n") != 5 || !strings.Contains(out, "y 5 más") {
		t.Errorf("three of eight:\n%s", out)
	}
	if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
}

// TestServe runs the server as a shop does: commands work beside it and take
// effect on the next request, it stops when told to, and the data are there
// when it starts again.
func TestServe(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	before, _ := s.key("-name antes")
	server, _ := s.start("serve")
	server.wantStatus(200, "/customers", before, "a key made before")

	during, keyID := s.key("-name durante -scopes customers:read,customers:write")
	server.wantStatus(200, "/customers", during, "a key made beside the server")
	server.wantStatus(403, "/organization", during, "it lacks the scope")
	if status, body := server.send(http.MethodPost, "/customers", during, `{"email":"ana@example.com","firstName":"Ana"}`); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	if out := s.ok("key list -org cafe-luna"); !strings.Contains(out, "durante") || strings.Contains(out, during) || strings.Count(out, "nunca") != 0 {
		t.Errorf("both keys were used, and no key is told:\n%s", out)
	}
	if out := s.ok("key revoke -org cafe-luna " + keyID); !strings.Contains(out, "revocada") {
		t.Error(out)
	}
	server.wantStatus(401, "/customers", during, "revoked, from the next request on")
	if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	customers := s.file("more.csv", "email,phoneNumber\neva@example.com,\n")
	if out := s.ok("import customers " + customers); !strings.Contains(out, "1 nuevo,") {
		t.Error(out)
	}
	other := &till{t, s.dir, s.env}
	if code, _, errs := other.run("serve -addr 127.0.0.1:0"); code != 1 || !strings.Contains(errs, "otro proceso lo tiene abierto") {
		t.Errorf("a second server: exit %d, %s", code, errs)
	}

	if code := server.stop(); code != 0 {
		t.Errorf("stopped with exit code %d", code)
	}
	for _, secret := range []string{during, before, "ana@example.com", "Ana"} {
		if strings.Contains(server.log.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
	for line := range strings.Lines(server.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a log line that is no JSON: %s", line)
		}
	}
	socket, err := localcall.Path(s.env["SELLO_DB"])
	if _, statErr := os.Stat(socket); err != nil || !os.IsNotExist(statErr) {
		t.Errorf("the socket is left: %v, %v", err, statErr)
	}

	server, _ = s.start("serve")
	server.wantStatus(200, "/customers", before, "after a restart")
	if _, body := server.get("/customers", before); !strings.Contains(body, `"total":2`) {
		t.Errorf("the customers are gone: %s", body)
	}
	server.wantStatus(401, "/customers", during, "still revoked")
}

// TestSameWords checks that a command fails in the same words whether a server
// does the work or not.
func TestSameWords(t *testing.T) {
	s := newTill(t)
	document := s.file("luna.json", string(demoDocument))
	s.ok("apply " + document)
	occupied := s.file("occupied", "")
	lines := map[string]string{
		"backup " + filepath.Join(s.dir, "none", "copy.db"):     filepath.Join("none", "copy.db") + ": no existe el directorio\n",
		"backup " + filepath.Join(occupied, "copy.db"):          ": no es un directorio\n",
		"backup " + document:                                    "ya existe y no se reemplaza: no es un archivo de sello\n",
		"backup " + s.dir:                                       ": no es un archivo regular\n",
		"export -org nadie":                                     `no hay ninguna organización "nadie"; hay: cafe-luna`,
		"key revoke -org cafe-luna " + id{}.derive("").String(): "no hay ninguna API key",
		"import customers " + filepath.Join(s.dir, "none.csv"):  "none.csv: no existe\n",
	}
	alone := map[string]string{}
	for line, want := range lines {
		code, out, errs := s.run(line)
		if code != 1 || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, ".new-") || faultIn(code, errs) != "" {
			t.Errorf("sello %s: exit %d\n%s%s", line, code, out, errs)
		}
		alone[line] = errs
	}
	s.start("serve")
	for line, want := range alone {
		if code, out, errs := s.run(line); code != 1 || out != "" || errs != want {
			t.Errorf("sello %s, beside a server: exit %d\n%s%swant\n%s", line, code, out, errs, want)
		}
	}
}

// TestAdminLog checks that the server's log has the cause of each failed operation
// and the number of problems that a verification found.
func TestAdminLog(t *testing.T) {
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
	giveUnearned(t, s.env["SELLO_DB"])
	server, _ := s.start("serve")
	secret, _ := s.key("-name POS")
	if code, _, errs := s.run("key create -org cafe-luna -name x -ip casa"); code != 2 || !strings.Contains(errs, `no válido: "casa"`) {
		t.Errorf("a wrong command line, beside a server: exit %d, %s", code, errs)
	}
	s.run("verify")
	s.run("export -org nadie")
	s.run("key revoke -org cafe-luna " + secret)
	s.run("backup " + filepath.Join(s.dir, "none", "copy.db"))
	server.stop()
	for _, want := range []string{
		`"level":"INFO","msg":"admin","operation":"key/create","ok":true}`,
		`"level":"WARN","msg":"admin","operation":"verify","ok":true,"problems":1}`,
		`"level":"WARN","msg":"admin","operation":"export","ok":false,"cause":"no hay ninguna organización \"nadie\"; hay: cafe-luna"}`,
		`"level":"WARN","msg":"admin","operation":"key/revoke","ok":false,"cause":"una API key se revoca por su id`,
		`"level":"ERROR","msg":"admin","operation":"backup","ok":false,"cause":"`,
	} {
		if !strings.Contains(server.log.String(), want) {
			t.Errorf("nothing like %s in\n%s", want, server.log)
		}
	}
	if strings.Contains(server.log.String(), secret) {
		t.Error("the log tells a key")
	}
}

// TestVersion checks that version prints the release, the commit if it is known, the Go
// version, the platform and the schema.
func TestVersion(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	released := &debug.BuildInfo{GoVersion: "go1.26.4", Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "67a94df0"}, {Key: "vcs.modified", Value: "false"},
	}}
	released.Main.Version = "v1.2.0"
	changed := &debug.BuildInfo{GoVersion: "go1.26.4", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "67a94df0"}, {Key: "vcs.modified", Value: "true"}}}
	for want, info := range map[string]*debug.BuildInfo{
		"sello v1.2.0, commit 67a94df0, go1.26.4 " + platform + ", esquema 14":              released,
		"sello (devel), commit 67a94df0 con cambios, go1.26.4 " + platform + ", esquema 14": changed,
		"sello (devel), " + runtime.Version() + " " + platform + ", esquema 14":             new(debug.BuildInfo),
	} {
		if got := newBuildInfo(info).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s := newTill(t)
	var told buildInfo
	if err := json.Unmarshal([]byte(s.ok("version -json")), &told); err != nil || told.Go != runtime.Version() || told.Schema != schemaVersion {
		t.Errorf("%+v, %v", told, err)
	}
	if out := s.ok("version"); out != told.String()+"\n" {
		t.Errorf("%q, and in JSON %+v", out, told)
	}
}

// TestHelpDefaults checks that help shows a default unless it is zero or empty.
func TestHelpDefaults(t *testing.T) {
	out := newTill(t).ok("serve -h")
	for text, want := range map[string]bool{"por omisión 4096": true, "por omisión 0": false, "por omisión )": false} {
		if strings.Contains(out, text) != want {
			t.Errorf("%q is there: %t\n%s", text, !want, out)
		}
	}
}

// TestInWords checks the Spanish words for errors of the system and the store.
func TestInWords(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "a.db", Err: syscall.ENOENT}, "a.db: no existe"},
		{fmt.Errorf("b.db: %w", syscall.ENOSPC), "b.db: no queda espacio en el disco"},
		{seamError(fmt.Errorf("%w: %w", disk.ErrUnavailable, &fs.PathError{Op: "write", Path: "a.db", Err: syscall.ENOSPC})), "por ahora no se puede escribir: a.db: no queda espacio en el disco"},
		{fmt.Errorf("store: commit: %w", &fs.PathError{Op: "write", Path: "a.db", Err: syscall.EIO}), "a.db: el disco no se puede leer o escribir"},
		{&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EACCES}, "y: sin permiso para crearlo: hace falta el de escritura en su directorio"},
		{fmt.Errorf("el directorio actual: %w", os.NewSyscallError("getwd", syscall.ENOENT)), "el directorio actual: no existe"},
		{fmt.Errorf("socket de administración: %w", &net.OpError{
			Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: "a.db.sock"}, Err: os.NewSyscallError("bind", syscall.EACCES),
		}), "socket de administración: a.db.sock: sin permiso para crearlo: hace falta el de escritura en su directorio"},
		{&fs.PathError{Op: "open", Path: "main.go", Err: syscall.EACCES}, "main.go: sin permiso"},
		{fmt.Errorf("journal: %w", errors.Join(
			&fs.PathError{Op: "write", Path: "a.db-journal2", Err: syscall.ENOSPC}, &fs.PathError{Op: "write", Path: "a.db-journal1", Err: syscall.ENOSPC},
		)), "journal: a.db-journal2: no queda espacio en el disco; a.db-journal1: no queda espacio en el disco"},
		{errors.Join(errFailed, errFailed), "ya no se puede escribir, tras un fallo"},
		{errors.Join(adminErrorf("una línea\notra"), errClosed), "una línea\notra\nse está cerrando"},
		{fmt.Errorf("a.db: %w", disk.ErrCutShort), "a.db: el archivo se acortó mientras estaba en uso"},
		{fmt.Errorf("a.db-journal2: %w", disk.ErrRemoved), "a.db-journal2: el archivo se borró mientras estaba en uso"},
		{fmt.Errorf("a.db: %w", disk.ErrReplaced), "a.db: el archivo se reemplazó mientras estaba en uso"},
		{errFailed, "ya no se puede escribir, tras un fallo"},
		{context.Canceled, "se interrumpió"},
		{adminErrorf("se deja como está"), "se deja como está"},
	} {
		if got := inWords(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
}

// TestDemo starts the demo twice on the same file: each time it prints a key
// that works, and the lines it prints can be run.
func TestDemo(t *testing.T) {
	skipQuick(t)
	s := newTill(t)
	for i := range 2 {
		server, out := s.start("demo")
		var printed strings.Builder
		for !strings.Contains(printed.String(), "Ctrl-C") {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			printed.WriteString(line)
		}
		key := regexp.MustCompile(`sello_\w+`).FindString(printed.String())
		if n := strings.Count(printed.String(), "curl "); n != 3 {
			t.Errorf("%d curl lines", n)
		}
		_, body := server.get("/customers", key)
		if !madeUpTotal.MatchString(body) {
			t.Errorf("start %d: %s", i+1, body)
		}
		path := regexp.MustCompile(`/api/v1(/points/\S+/balance)`).FindStringSubmatch(printed.String())[1]
		server.wantStatus(200, path, key, "a line that was printed")
		if code := server.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// TestDemoLeavesRealFiles: the demo refuses a file with an organization that it did not
// make, even one that has the sample's document, and adds no key to it.
func TestDemoLeavesRealFiles(t *testing.T) {
	t.Parallel()
	for _, document := range []string{string(demoDocument), strings.Replace(string(demoDocument), "cafe-luna", "otra", 1)} {
		s := newTill(t)
		s.ok("apply -", document)
		code, out, errs := s.run("demo -addr 127.0.0.1:0")
		if code != 1 || out != "" || !strings.Contains(errs, "sello.db: tiene datos que no hizo sello demo") {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
		if list := s.ok("key list"); strings.Contains(list, "demo") {
			t.Error(list)
		}
	}
}

// TestOtherSchemaNamesFile: whoever has several files learns which of them another sello
// wrote.
func TestOtherSchemaNamesFile(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	store, err := openBolt(s.env["SELLO_DB"], disk.Options{Dense: denseTables})
	if err == nil {
		err = errors.Join(store.Update(t.Context(), func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion+1) }), store.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"migrate", "key list", "verify", "serve -addr 127.0.0.1:0"} {
		if code, _, errs := s.run(line); code != 1 || !strings.Contains(errs, "sello.db: el archivo es del esquema") {
			t.Errorf("sello %s: exit %d, %s", line, code, errs)
		}
	}
}

// TestVerifyTellsAndFails checks that verify reports a wrong balance and exits with 1.
func TestVerifyTellsAndFails(t *testing.T) {
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
	giveUnearned(t, s.env["SELLO_DB"])
	code, out, errs := s.run("verify")
	if code != 1 || !strings.Contains(out, "saldo: es 51 y debería ser 50") || !strings.Contains(errs, "1 diferencia\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// giveUnearned adds a point to an account's balance, and nothing to its ledger.
func giveUnearned(t *testing.T, path string) {
	t.Helper()
	store, err := openBolt(path, disk.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), func(tx Tx) error {
		for e, err := range scan(tx, orgKey('c', 1), false) {
			if err != nil {
				return err
			}
			if e.Key[21] == partAccount {
				a, err := decodeRecord[account](e.Value)
				if err != nil {
					return err
				}
				a.Balance += decimalOf(1)
				return put(tx, bytes.Clone(e.Key), a)
			}
		}
		return fmt.Errorf("no account")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyUnreadable checks that verify -json reports in JSON each kind of damage that
// keeps a file from being opened.
func TestVerifyUnreadable(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	path := s.env["SELLO_DB"]
	names := [2]string{"-journal1", "-journal2"}
	const block = 4096 // bytes of a page, and of a journal's header
	closed := map[string][]byte{"": readFile(t, path)}
	server, _ := s.start("serve")
	for range 5 {
		s.key("-name POS")
	}
	time.Sleep(time.Second) // until the journal's mark counts its records
	killed := map[string][]byte{"": readFile(t, path)}
	for _, name := range names {
		killed[name] = readFile(t, path+name)
	}
	server.stop()

	bothHeaders := func(files map[string][]byte) {
		files[""][40]++
		files[""][block+40]++
	}
	inJournals := func(do func(b []byte)) func(map[string][]byte) {
		return func(files map[string][]byte) {
			for _, name := range names {
				do(files[name])
			}
		}
	}
	for _, test := range []struct {
		reason string
		files  map[string][]byte
		damage func(files map[string][]byte)
		want   string
	}{
		{"both headers", closed, bothHeaders, "archivo dañado: ninguna de sus dos cabeceras está completa"},
		{"both headers, with a journal", killed, bothHeaders, "archivo dañado: ninguna de sus dos cabeceras está completa"},
		{"cut short", closed, func(files map[string][]byte) { files[""] = files[""][:3*block] }, "archivo truncado"},
		{"nothing left", closed, func(files map[string][]byte) { files[""] = nil }, "el archivo está vacío"},
		{"no sello's any more", closed, func(files map[string][]byte) { clear(files[""]) }, "no es un archivo de sello"},
		{"pages of zeros", closed, func(files map[string][]byte) { clear(files[""][2*block:]) }, "archivo dañado"},
		{"a journal is gone", killed, func(files map[string][]byte) { delete(files, names[0]) }, "falta sello.db-journal1"},
		{"headers of the journals", killed, inJournals(func(b []byte) { clear(b[:block]) }), "journal dañado"},
		{"records of the journals", killed, inJournals(func(b []byte) {
			for at := 3 * block; at < len(bytes.TrimRight(b, "\x00")); at += 100 {
				b[at]++
			}
		}), "journal dañado"},
		{"journals of another moment", killed, func(files map[string][]byte) { files[""] = bytes.Clone(closed[""]) }, "journal"},
	} {
		dir := t.TempDir()
		damaged := map[string][]byte{}
		for name, b := range test.files {
			damaged[name] = bytes.Clone(b)
		}
		test.damage(damaged)
		db := filepath.Join(dir, "sello.db")
		for name, b := range damaged {
			writeFile(t, db+name, b)
		}
		code, out, errs := s.run("verify -json -db " + db)
		var told failure
		err := json.Unmarshal([]byte(out), &told)
		if code != 1 || err != nil || told.Code != "damaged" && told.Code != "not_a_data_file" || errs != "sello: "+told.Error+"\n" || !strings.Contains(errs, test.want) || faultIn(code, errs) != "" {
			t.Errorf("%s: exit %d, %q, %q; want %s", test.reason, code, out, errs, test.want)
		}
	}
	code, out, errs := s.run("verify -json -db " + filepath.Join(s.dir, "none.db"))
	if code != 1 || !strings.Contains(out, `none.db: no existe; con -db`) || !strings.Contains(errs, "no existe") {
		t.Errorf("no file: exit %d, %q, %q", code, out, errs)
	}
}

// TestVerifyDamaged checks that verify says which file is damaged, where, and what to do.
func TestVerifyDamaged(t *testing.T) {
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
	path := s.env["SELLO_DB"]
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		at := bytes.Index(raw[i:], []byte("ana@example.com"))
		if at < 0 {
			break
		}
		i += at
		raw[i]++
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(where string) {
		t.Helper()
		want := regexp.MustCompile(`sello\.db: archivo dañado, (página \d+|tabla '.'): restaura una copia de seguridad`)
		code, out, errs := s.run("verify")
		if code != 1 || out != "" || !want.MatchString(errs) || faultIn(code, errs) != "" {
			t.Errorf("%s: exit %d, %q, %q", where, code, out, errs)
		}
		code, out, jsonErrs := s.run("verify -json")
		var told failure
		if err := json.Unmarshal([]byte(out), &told); err != nil || code != 1 || jsonErrs != errs || told.Code != "damaged" || "sello: "+told.Error+"\n" != errs {
			t.Errorf("%s: exit %d, %q, %q, %v", where, code, out, jsonErrs, err)
		}
	}
	check("no server")
	s.start("serve")
	check("beside a server")
}

// An Update writes everything or nothing, and may run more than once: update returns what the
// run that was committed gave. A View sees one committed state, in the order of the keys.
func ExampleStore() {
	ctx, s := context.Background(), newMemStore()
	defer s.Close()
	first, err := updateStore(ctx, s, func(tx Tx) (string, error) {
		return "Ana", errors.Join(tx.Put([]byte("c2"), []byte("Eva")), tx.Put([]byte("c1"), []byte("Ana")))
	})
	fmt.Println(first, err)
	fmt.Println(s.Update(ctx, func(tx Tx) error {
		return errors.Join(tx.Delete([]byte("c1")), errors.New("refused"))
	}))
	fmt.Println(s.View(ctx, func(tx Tx) error {
		for e, err := range tx.Scan([]byte("c"), []byte("d"), false) {
			fmt.Printf("%s=%s %v\n", e.Key, e.Value, err)
		}
		return tx.Put([]byte("c3"), nil)
	}))
	// Output:
	// Ana <nil>
	// refused
	// c1=Ana <nil>
	// c2=Eva <nil>
	// store: write in a read-only transaction
}

// Some tests kill sello, or record what it writes. They run this test binary as another
// process, in which TestMain runs sello or a powerLoad instead of the tests.

// runsSello is the environment variable that makes this binary run as sello.
const runsSello = "SELLO_TEST_RUNS_SELLO"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(runsSello) != "":
		main() // which does not return
	case ranPowerLoad():
		return
	}
	// Many tests run commands in this process. The memory limit of a server would hold for all of
	// them, and collecting garbage take half of their time.
	os.Setenv("GOGC", "200")
	debug.SetGCPercent(200) // a tenth of the time, for 130 MiB
	os.Setenv("GOMEMLIMIT", "off")
	flag.Set("test.parallel", "8") // many tests wait more than they compute
	os.Exit(m.Run())
}

// selloCommand returns a command that runs sello as a process. With -short and under the
// race detector it skips the test.
func selloCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() || processtest.RaceDetector {
		t.Skip("runs sello as a process")
	}
	cmd := exec.Command(testBinary(t), args...)
	cmd.Env = append(os.Environ(), runsSello+"=1", "GOGC=", "GOMEMLIMIT=")
	return cmd
}

// skipUnderRace skips a long test of one goroutine under the race detector, which has nothing to
// find there. .ci/run runs it without.
func skipUnderRace(t testing.TB) {
	t.Helper()
	if processtest.RaceDetector {
		t.Skip("has one goroutine, and takes long")
	}
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
