package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

var (
	damageN    = flag.Int("damage.n", 0, "damaged files to try; 0: as many as a normal run has time for")
	damageSeed = flag.Uint64("damage.seed", 1, "what damage is chosen by")
)

// TestDamage damages files in every way that a disk or a person may, and runs
// the commands on them: each says in one line that it cannot, or answers what
// is right. Never a wrong balance, never a trace, never for ever.
//
// Another process does it, which a fault may take with it: this test binary
// again, as TestDamageHelper.

// A specimen is a file before its damage, and what is asked of it.
type specimen struct {
	Name      string
	Files     map[string][]byte // by what follows the file's name
	Key       string
	Customers []string
	Balances  map[string]string // balance by customer
	Answers   map[string]string // by path
}

// asked is what is asked of a specimen of each customer.
var asked = []string{"/points/customers/%s/balance", "/points/customers/%s/movements?limit=100", "/customers/%s", "/transactions?customerId=%s"}

// newSpecimens makes two files: one that was closed, and one as it is left when
// its server is killed.
func newSpecimens(t *testing.T) []*specimen {
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	var csv strings.Builder
	csv.WriteString("email,phoneNumber,firstName\n")
	const customers = 24
	for i := range customers {
		fmt.Fprintf(&csv, "c%d@example.com,,Cliente %d\n", i, i)
	}
	s.ok("import customers " + s.file("c.csv", csv.String()))
	key, _ := s.key("-name prueba -rate-limit 100000000")
	v := &specimen{Name: "closed", Key: key, Files: map[string][]byte{}}
	r, _ := s.start("serve")
	var list struct {
		Data []struct{ ID string }
	}
	_, body := r.get("/customers?limit=100", key)
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Data) != customers {
		t.Fatalf("%d customers, %v: %s", len(list.Data), err, body)
	}
	for _, c := range list.Data {
		v.Customers = append(v.Customers, c.ID)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	_, body = r.get("/rewards", key)
	reward := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(body)[1]
	post := func(path, body string) {
		t.Helper()
		if status, answer := r.send(http.MethodPost, path, key, body); status != http.StatusCreated {
			t.Fatalf("POST %s: %d %s", path, status, answer)
		}
	}
	sales := 0
	act := func(c string, i int) {
		points := "/points/customers/" + c
		post(points+"/add", fmt.Sprintf(`{"amount":%d,"category":"Bonus","comment":%q}`, 100+rng.IntN(900), strings.Repeat("palabra ", rng.IntN(60))))
		switch i % 4 {
		case 0:
			post(points+"/deduct", fmt.Sprintf(`{"amount":%d,"category":"Fee"}`, 1+rng.IntN(90)))
		case 1:
			sales++
			post("/transactions", fmt.Sprintf(`{"customerId":%q,"totalAmount":200,"externalId":"T-%d","items":[{"sku":"GRANO-500","price":100,"quantity":2}]}`, c, sales))
		case 2:
			post("/rewards/redeem", fmt.Sprintf(`{"customerId":%q,"productId":%q}`, c, reward))
		}
	}
	for i := range 16 {
		for _, c := range v.Customers {
			act(c, i)
		}
	}
	if code := r.stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.log)
	}
	db := s.env["SELLO_DB"]
	v.Files[""] = disktest.UsedPages(readFile(t, db))

	killed := *v
	killed.Name, killed.Files = "killed", map[string][]byte{}
	r, _ = s.start("serve")
	v.learn(r)
	for i := range 2 {
		for _, c := range v.Customers {
			act(c, i)
		}
	}
	killed.learn(r)
	time.Sleep(time.Second) // so that the journal is told of what is in it
	killed.Files[""] = disktest.UsedPages(readFile(t, db))
	for i, name := range disk.JournalNames("") {
		killed.Files[name] = readFile(t, disk.JournalNames(db)[i])
	}
	return []*specimen{v, &killed}
}

// learn asks a server with the whole file.
func (v *specimen) learn(r *running) {
	v.Answers, v.Balances = map[string]string{}, map[string]string{}
	for _, path := range v.paths() {
		status, body := r.get(path, v.Key)
		if status != http.StatusOK {
			r.Fatalf("GET %s: %d %s", path, status, body)
		}
		v.Answers[path] = timeless(body)
	}
	for _, c := range v.Customers {
		v.Balances[c] = balanceIn(v.Answers[fmt.Sprintf(asked[0], c)])
	}
}

func (v *specimen) paths() []string {
	paths := []string{"/customers?limit=100", "/redemptions?limit=100", "/customers?search=cliente"}
	for _, c := range v.Customers {
		for _, form := range asked {
			paths = append(paths, fmt.Sprintf(form, c))
		}
	}
	return paths
}

var (
	asOf      = regexp.MustCompile(`"asOf":"[^"]*"`)
	aBalance  = regexp.MustCompile(`"balance":([-0-9.]+)`)
	errorForm = regexp.MustCompile(`^\{"statusCode":50[03],"code":"(internal|unavailable)","message":"[^"]+","requestId":"[^"]+"\}\n$`)
)

// timeless is an answer without the moment that it was given at.
func timeless(body string) string { return asOf.ReplaceAllString(body, "") }

func balanceIn(body string) string {
	if m := aBalance.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return body
}

// plus adds to a balance.
func plus(balance string, points int) string {
	return (dec(balance) + decimalOf(points)).String()
}

// A trial is what became of one damaged file.
type trial struct {
	Damage   string
	Verdict  string   // "right", "errors" or "refused"
	Verified bool     // whether verify found nothing
	Wrong    []string // what must not be
}

// damaged damages the files of a specimen as the rng says.
func (v *specimen) damaged(rng *rand.Rand) (files map[string][]byte, said string) {
	files = map[string][]byte{}
	for name, b := range v.Files {
		files[name] = bytes.Clone(b)
	}
	names := slices.Sorted(maps.Keys(files))
	name := names[0]
	if rng.IntN(3) == 0 {
		name = names[rng.IntN(len(names))]
	}
	if len(files[name]) == 0 { // a journal that nothing was written to
		name = ""
	}
	b := files[name]
	switch n := rng.IntN(12); {
	case n == 0:
		b = b[:rng.IntN(len(b))]
		said = fmt.Sprintf("truncated to %d", len(b))
	case n == 1:
		more := make([]byte, rng.IntN(20_000))
		for i := range more {
			more[i] = byte(rng.Uint32())
		}
		b = append(b, more...)
		said = fmt.Sprintf("%d bytes added", len(more))
	case name == "":
		said = disktest.DamageFile(b, rng)
	case n == 2:
		at := rng.IntN(len(b)) / disktest.PageSize * disktest.PageSize
		clear(b[at:min(at+disktest.PageSize, len(b))])
		said = fmt.Sprintf("zeros at %d", at)
	default:
		used := len(bytes.TrimRight(b, "\x00")) // behind it nothing was written yet
		said = "flipped"
		for range 1 + rng.IntN(8) {
			at := rng.IntN(max(used, 1))
			b[at] ^= 1 << rng.IntN(8)
			said += fmt.Sprintf(" %d", at)
		}
	}
	files[name] = b
	return files, fmt.Sprintf("%s, sello.db%s: %s", v.Name, name, said)
}

// A damageRun runs commands on one damaged file.
type damageRun struct {
	specimen *specimen
	path     string
	trial    trial
}

func (d *damageRun) wrong(format string, args ...any) {
	if len(d.trial.Wrong) < 5 {
		d.trial.Wrong = append(d.trial.Wrong, fmt.Sprintf(format, args...))
	}
}

// forever is how long nothing here takes.
const forever = 30 * time.Second

// command runs a command that ends by itself.
func (d *damageRun) command(line string) (code int, stdout string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), strings.Fields(line+" -db "+d.path), environment{noEnv, strings.NewReader(""), &out, &errs})
	d.checkWords(line, code, errs.String())
	return code, out.String()
}

func noEnv(string) string { return "" }

// checkWords checks what a command has said of a failure.
func (d *damageRun) checkWords(line string, code int, errs string) {
	if fault := faultIn(code, errs); fault != "" {
		d.wrong("sello %s: %s: exit %d, %q", line, fault, code, errs)
	}
}

// faultIn is what is wrong with how a command failed: it is to say so in one
// line, in Spanish.
func faultIn(code int, errs string) string {
	switch {
	case code == 0 && errs == "":
		return ""
	case code != 1:
		return "another exit code"
	case strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "sello: ") || len(errs) > 400:
		return "not one line"
	case strings.Contains(errs, "goroutine ") || strings.Contains(errs, "runtime error"):
		return "a trace"
	case englishWords.MatchString(errs):
		return "English"
	}
	return ""
}

var englishWords = regexp.MustCompile(`(?i)\b(the|is|are|not|damaged|file|cannot|record|store|page|invalid|too many)\b`)

// all runs all of it.
func (d *damageRun) all() {
	code, out := d.command("verify")
	if d.trial.Verified = code == 0; d.trial.Verified != strings.Contains(out, "todo cuadra") {
		d.wrong("verify: exit %d with %q", code, out)
	}
	d.serve(func(r *damagedServer) {
		for _, path := range d.specimen.paths() {
			r.ask(path, d.specimen.Answers[path])
		}
	})
	if d.trial.Verdict == "refused" {
		if d.trial.Verified {
			d.wrong("verify finds nothing, and serve does not start")
		}
		return
	}
	before := d.trial.Verdict
	expected := map[string][]string{} // balances that may be
	d.serve(func(r *damagedServer) {
		for _, c := range d.specimen.Customers {
			expected[c] = r.change(c, []string{d.specimen.Balances[c]})
		}
		for _, c := range d.specimen.Customers {
			r.askBalance(c, expected[c])
		}
	})
	d.serve(func(r *damagedServer) { // what has come into the file
		for _, c := range d.specimen.Customers {
			if expected[c] != nil {
				r.askBalance(c, expected[c])
			}
		}
	})
	if before == "errors" || d.trial.Verdict == "" {
		d.trial.Verdict = before
	}
	if d.trial.Verified && d.trial.Verdict != "right" {
		d.wrong("verify finds nothing, and there are errors")
	}
}

// A damagedServer is a server on a damaged file.
type damagedServer struct {
	*damageRun
	base   string
	gone   bool // it does not answer any more
	failed bool // an answer was an error
}

// serve runs a server, asks it, and stops it.
func (d *damageRun) serve(ask func(*damagedServer)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reader, writer := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, strings.Fields("serve -addr 127.0.0.1:0 -db "+d.path), environment{noEnv, strings.NewReader(""), io.Discard, writer})
		writer.Close()
		exit <- code
	}()
	var mu sync.Mutex
	var log strings.Builder
	started, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadString('\n')
			mu.Lock()
			log.WriteString(line)
			mu.Unlock()
			if m := addrLogged.FindStringSubmatch(line); m != nil {
				started <- "http://" + m[1] + "/api/v1"
			}
			if err != nil {
				close(started)
				return
			}
		}
	}()
	r := &damagedServer{damageRun: d}
	if r.base = <-started; r.base != "" {
		ask(r)
	}
	cancel()
	code := <-exit
	<-ended
	var said []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "goroutine ") {
			d.wrong("serve: a trace: %.2000s", line)
		}
		if !json.Valid([]byte(line)) {
			said = append(said, line)
		}
	}
	d.checkWords("serve", code, strings.Join(said, ""))
	switch {
	case r.base == "":
		d.trial.Verdict = "refused"
	case r.failed || code != 0:
		d.trial.Verdict = "errors"
	case d.trial.Verdict == "":
		d.trial.Verdict = "right"
	}
	if r.gone && code == 0 {
		d.wrong("serve: it went away, and ended as if nothing were wrong\n%s", log.String())
	}
}

// send returns "" if the answer was an error that may be.
func (r *damagedServer) send(method, path, body string) (status int, answer string) {
	req, err := http.NewRequest(method, r.base+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("X-API-Key", r.specimen.Key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		defer res.Body.Close()
		var text []byte
		if text, err = io.ReadAll(res.Body); err == nil {
			if errorForm.Match(text) {
				r.failed = true
				return res.StatusCode, ""
			}
			return res.StatusCode, string(text)
		}
	}
	r.failed, r.gone = true, true
	return 0, ""
}

func (r *damagedServer) ask(path, want string) {
	if _, got := r.send(http.MethodGet, path, ""); got != "" && timeless(got) != want {
		r.wrong("GET %s: got %.300s, want %.300s", path, got, want)
	}
}

func (r *damagedServer) askBalance(c string, may []string) {
	if _, got := r.send(http.MethodGet, fmt.Sprintf(asked[0], c), ""); got != "" && !slices.Contains(may, balanceIn(got)) {
		r.wrong("balance of %s: got %.300s, want one of %s", c, got, may)
	}
}

// change adds 7 points, takes away 3, and returns what the balance may be then.
func (r *damagedServer) change(c string, may []string) []string {
	for _, step := range []struct {
		path, body string
		points     int
	}{{"/add", `{"amount":7,"category":"Bonus"}`, 7}, {"/deduct", `{"amount":3,"category":"Fee"}`, -3}} {
		after := make([]string, len(may))
		for i := range may {
			after[i] = plus(may[i], step.points)
		}
		switch status, got := r.send(http.MethodPost, "/points/customers/"+c+step.path, step.body); {
		case got == "" && status == http.StatusInternalServerError: // nothing was done
		case got == "":
			may = append(may, after...)
		case status != http.StatusCreated || !slices.Contains(after, balanceIn(got)):
			r.wrong("POST %s: %d, got %.300s, want one of %s", step.path, status, got, after)
		default:
			may = []string{balanceIn(got)}
		}
	}
	return may
}

// try runs everything on one damaged file.
func (v *specimen) try(dir string, seed uint64, image int) trial {
	rng := rand.New(rand.NewPCG(seed, uint64(image)))
	files, said := v.damaged(rng)
	return v.tryFiles(dir, files, said)
}

func (v *specimen) tryFiles(dir string, files map[string][]byte, said string) trial {
	dir, err := os.MkdirTemp(dir, "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	d := &damageRun{specimen: v, path: filepath.Join(dir, "sello.db"), trial: trial{Damage: said}}
	for name, b := range files {
		if err := os.WriteFile(d.path+name, b, 0o600); err != nil {
			panic(err)
		}
	}
	d.all()
	return d.trial
}

// helperDir names, in the environment, the directory of the helper.
const helperDir = "SELLO_DAMAGE_DIR"

// TestDamageHelper is the other process: it reads which specimen and which image,
// and writes what became of it.
func TestDamageHelper(t *testing.T) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		t.Skip("run by TestDamage")
	}
	var victims []*specimen
	raw, err := os.ReadFile(filepath.Join(dir, "victims"))
	if err == nil {
		err = json.Unmarshal(raw, &victims)
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		var image int
		if _, err := fmt.Scan(&image); err != nil {
			return
		}
		line, _ := json.Marshal(victims[image%len(victims)].try(dir, *damageSeed, image))
		fmt.Printf("trial %s\n", line)
	}
}

// A helper is the other process.
type helper struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  bytes.Buffer
	done  int // images
}

func startHelper(t *testing.T, dir string) *helper {
	h := &helper{lines: make(chan string, 1)}
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestDamageHelper$", "-test.timeout=0", fmt.Sprintf("-damage.seed=%d", *damageSeed))
	h.cmd.Env = append(os.Environ(), helperDir+"="+dir)
	h.cmd.Stderr = &h.errs
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if text, ok := strings.CutPrefix(line, "trial "); ok {
				h.lines <- text
			}
			if err != nil {
				close(h.lines)
				return
			}
		}
	}()
	return h
}

// try has one image tried; an error says that the process died or hangs.
func (h *helper) try(image int) (result trial, err error) {
	h.done++
	fmt.Fprintln(h.in, image)
	select {
	case line, ok := <-h.lines:
		if !ok {
			h.cmd.Wait()
			return trial{}, fmt.Errorf("the process died:\n%.3000s", h.errs.String())
		}
		return result, json.Unmarshal([]byte(line), &result)
	case <-time.After(forever):
		h.cmd.Process.Signal(syscall.SIGQUIT) // it says where
		h.cmd.Wait()
		return trial{}, fmt.Errorf("it hangs:\n%.9000s", h.errs.String())
	}
}

func (h *helper) stop() {
	h.in.Close()
	h.cmd.Process.Kill()
	for range h.lines {
	}
	h.cmd.Wait()
}

// helperLife is how many images a helper tries: a store that has failed is
// never closed.
const helperLife = 100

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	victims := newSpecimens(t)
	raw, err := json.Marshal(victims)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "victims"), raw)
	for _, v := range victims {
		if whole := v.tryFiles(dir, v.Files, "nothing"); whole.Verdict != "right" || !whole.Verified || whole.Wrong != nil {
			t.Fatalf("undamaged: %+v", whole)
		}
	}
	until, n := time.Now().Add(3*time.Second), *damageN
	counts := map[string]int{}
	var h *helper
	image := 0
	for ; n > 0 && image < n || n == 0 && (image < 4 || time.Now().Before(until)); image++ {
		if h == nil {
			h = startHelper(t, dir)
		}
		result, err := h.try(image)
		if err != nil {
			t.Errorf("-damage.seed=%d, image %d: %v", *damageSeed, image, err)
			h, result.Verdict = nil, "died"
		}
		for _, wrong := range result.Wrong {
			t.Errorf("-damage.seed=%d, image %d: %s: %s", *damageSeed, image, result.Damage, wrong)
		}
		counts[result.Verdict]++
		if len(result.Wrong) > 0 {
			counts["wrong"]++
		}
		if !result.Verified {
			counts["told by verify"]++
		}
		if h != nil && h.done == helperLife {
			h.stop()
			h = nil
		}
	}
	if h != nil {
		h.stop()
	}
	t.Logf("seed %d, %d damaged files: %v", *damageSeed, image, counts)
}

// TestNotAFile: what is no file of sello's, or cannot be opened, is told in one
// line by each command, and is not touched.
func TestNotAFile(t *testing.T) {
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	ours := readFile(t, s.env["SELLO_DB"])
	random := make([]byte, 50_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	padded := func(start string) []byte { return append([]byte(start), make([]byte, 40_000)...) }
	document, customers := s.file("luna.json", string(demoDocument)), s.file("c.csv", "email,phoneNumber\nana@example.com,\n")
	for _, test := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"empty", holdingBytes(nil), "el archivo está vacío"},
		{"one byte", holdingBytes([]byte("S")), "no es un archivo de sello"},
		{"SQLite", holdingBytes(padded("SQLite format 3\x00\x10\x00\x01\x01\x00")), "no es un archivo de sello"},
		{"ZIP", holdingBytes(padded("PK\x03\x04\x14\x00")), "no es un archivo de sello"},
		{"text", holdingBytes(bytes.Repeat([]byte("fecha,importe\r\n2026-01-01,10\r\n"), 1000)), "no es un archivo de sello"},
		{"JSON", holdingBytes(demoDocument), "no es un archivo de sello"},
		{"random", holdingBytes(random), "no es un archivo de sello"},
		{"zeros", holdingBytes(make([]byte, 50_000)), "no es un archivo de sello"},
		{"shorter than its pages", holdingBytes(disktest.UsedPages(ours)[:len(disktest.UsedPages(ours))-1]), "archivo truncado"},
		{"its first page", holdingBytes(ours[:disktest.PageSize]), "archivo truncado"},
		{"half of its first page", holdingBytes(ours[:disktest.PageSize/2]), "archivo truncado"},
		{"its headers swapped", holdingBytes(slices.Concat(ours[100:], ours[:100])), "no es un archivo de sello"},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }, "es un directorio"},
		{"loop of links", func(path string) error { return os.Symlink(filepath.Base(path), path) }, "demasiados enlaces simbólicos"},
		{"device", func(path string) error { return os.Symlink(os.DevNull, path) }, "no es un archivo regular"},
		{"no permission", func(path string) error { return os.WriteFile(path, ours, 0) }, "sin permiso"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "no permission" && os.Geteuid() <= 0 {
				t.Skip("root, or Windows, may read it all the same")
			}
			s := newTill(t)
			path := s.env["SELLO_DB"]
			if err := test.make(path); err != nil {
				t.Skip(err) // links on Windows
			}
			before, _ := os.ReadFile(path)
			for _, line := range []string{
				"serve -addr 127.0.0.1:0", "demo -addr 127.0.0.1:0 -db " + path, "verify", "verify -json", "export -org cafe-luna", "export customers",
				"apply " + document, "apply -dry-run " + document, "key list -org cafe-luna", "key create -org cafe-luna -name x",
				"key revoke -org cafe-luna 01a1f94d-3553-7001-b786-2a39172ca160", "import customers " + customers,
			} {
				code, out, errs := s.run(line)
				if strings.HasSuffix(line, "-json") {
					var told unverified
					if err := json.Unmarshal([]byte(out), &told); err != nil || errs != "sello: "+told.Error+"\n" {
						t.Errorf("sello %s: %q, %q, %v", line, out, errs, err)
					}
					out = ""
				}
				if code != 1 || out != "" || !strings.Contains(errs, test.want) || faultIn(code, errs) != "" {
					t.Errorf("sello %s: %s: exit %d, %q, %q", line, faultIn(code, errs), code, out, errs)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
			if left, _ := filepath.Glob(path + "?*"); left != nil {
				t.Errorf("there is now %s", left)
			}
		})
	}
}

// holdingBytes makes a file with some bytes.
func holdingBytes(b []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path, b, 0o600) }
}

// TestDamageControl: the trials tell of a balance that is wrong, of an entry that
// is gone, and of words that are no words.
func TestDamageControl(t *testing.T) {
	v := newSpecimens(t)[0]
	change := func(fn func(*txn, *account) error) map[string][]byte {
		path := filepath.Join(t.TempDir(), "sello.db")
		writeFile(t, path, v.Files[""])
		store, err := openBolt(path, disk.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = write(t.Context(), newEngine(store, time.Now, cryptoSeed), 1, instantOf(time.Now()), func(t *txn) (any, error) {
			cust, _ := parseID([]byte(v.Customers[3]))
			c, err := t.customer(cust)
			if err != nil {
				return nil, err
			}
			a, err := t.storedAccount(c, t.cfg.programNumber(c.Program))
			if err != nil {
				return nil, err
			}
			return nil, fn(t, a)
		})
		if err == nil {
			err = store.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{"": disktest.UsedPages(readFile(t, path))}
	}
	for name, files := range map[string]map[string][]byte{
		"balance": change(func(t *txn, a *account) error {
			a.Balance += decimalOf(1)
			return t.put(t.key(a, partAccount), a)
		}),
		"account gone": change(func(t *txn, a *account) error { return t.Delete(t.key(a, partAccount)) }),
		"customer gone": change(func(t *txn, a *account) error {
			return t.Delete(customerKey(t.org, a.customer.ID, partCustomer))
		}),
	} {
		result := v.tryFiles(t.TempDir(), files, name)
		if result.Wrong == nil || result.Verified {
			t.Errorf("%s: %+v", name, result)
		}
	}
	for _, errs := range []string{
		"", "sello: no\nsello: no\n", "panic: runtime error\n\ngoroutine 1 [running]:\n", "sello: the file is damaged\n", "fatal error: fault\n",
	} {
		if faultIn(1, errs) == "" {
			t.Errorf("%q passes", errs)
		}
	}
	if faultIn(2, "sello: archivo dañado\n") == "" || faultIn(1, "sello: archivo dañado\n") != "" || faultIn(0, "") != "" {
		t.Error("words are not told apart")
	}
}
