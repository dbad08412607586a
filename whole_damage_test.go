package main

import (
	"bufio"
	"bytes"
	"cmp"
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

// A specimen is a store before its damage, with the right answers.
type specimen struct {
	Name      string
	Files     map[string][]byte // by suffix of the name; "" is the data file
	Key       string
	Customers []string
	Balances  map[string]string // balance by customer
	Answers   map[string]string // by path
}

// asked are the paths that are read for each customer.
var asked = []string{"/points/customers/%s/balance", "/points/customers/%s/movements?limit=100", "/customers/%s", "/transactions?customerId=%s"}

// specimens are made once for all tests.
var specimens struct {
	sync.Once
	list []*specimen
}

// someSpecimens returns two stores: one that was closed, and one that a killed server
// left behind.
func someSpecimens(t *testing.T) []*specimen {
	t.Helper()
	specimens.Do(func() { specimens.list = newSpecimens(t) })
	if specimens.list == nil {
		t.Fatal("another test could not make them")
	}
	return specimens.list
}

func newSpecimens(t *testing.T) []*specimen {
	t.Helper()
	s := newTill(t)
	db := filepath.Join(disktest.MemoryDir(t), "sello.db")
	s.env["SELLO_DB"] = db
	s.ok("apply testdata/world/luna.json")
	var csv strings.Builder
	csv.WriteString("email,phoneNumber,firstName\n")
	const customers = 24
	for i := range customers {
		fmt.Fprintf(&csv, "c%d@example.com,,Cliente %d\n", i, i)
	}
	s.ok("import customers " + s.file("c.csv", csv.String()))
	v := &specimen{Name: "closed", Files: map[string][]byte{}}
	v.Key, _ = s.key("-name prueba -rate-limit 100000000")
	r, _ := s.start("serve")
	var list struct {
		Data []struct{ ID string }
	}
	_, body := r.get("/customers?limit=100", v.Key)
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Data) != customers {
		t.Fatalf("%d customers, %v: %s", len(list.Data), err, body)
	}
	for _, c := range list.Data {
		v.Customers = append(v.Customers, c.ID)
	}
	_, body = r.get("/rewards", v.Key)
	shop := &specimenShop{running: r, specimen: v, rng: rand.New(rand.NewPCG(1, 1)), reward: regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(body)[1]}
	shop.days(16)
	if code := r.stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.log)
	}
	v.Files[""] = disktest.UsedPages(readFile(t, db))

	killed := *v
	killed.Name, killed.Files = "killed", map[string][]byte{}
	shop.running, _ = s.start("serve")
	v.learn(shop.running)
	shop.days(2)
	killed.learn(shop.running)
	time.Sleep(time.Second) // so that the journal's mark counts the records
	killed.Files[""] = disktest.UsedPages(readFile(t, db))
	for i, name := range disk.JournalNames("") {
		killed.Files[name] = readFile(t, disk.JournalNames(db)[i])
	}
	return []*specimen{v, &killed}
}

// A specimenShop is a running server that fills a specimen.
type specimenShop struct {
	*running
	*specimen
	rng    *rand.Rand
	reward string
	sales  int
}

// days lets every customer visit the shop n times.
func (s *specimenShop) days(n int) {
	s.Helper()
	for i := range n {
		for _, c := range s.Customers {
			s.visit(c, i)
		}
	}
}

func (s *specimenShop) visit(c string, i int) {
	s.Helper()
	points := "/points/customers/" + c
	s.post(points+"/add", fmt.Sprintf(`{"amount":%d,"category":"Bonus","comment":%q}`, 100+s.rng.IntN(900), strings.Repeat("palabra ", s.rng.IntN(60))))
	switch i % 4 {
	case 0:
		s.post(points+"/deduct", fmt.Sprintf(`{"amount":%d,"category":"Fee"}`, 1+s.rng.IntN(90)))
	case 1:
		s.sales++
		s.post("/transactions", fmt.Sprintf(`{"customerId":%q,"totalAmount":200,"externalId":"T-%d","items":[{"sku":"GRANO-500","price":100,"quantity":2}]}`, c, s.sales))
	case 2:
		s.post("/rewards/redeem", fmt.Sprintf(`{"customerId":%q,"productId":%q}`, c, s.reward))
	}
}

func (s *specimenShop) post(path, body string) {
	s.Helper()
	if status, answer := s.send(http.MethodPost, path, s.Key, body); status != http.StatusCreated {
		s.Fatalf("POST %s: %d %s", path, status, answer)
	}
}

// learn takes the right answers from a server on the undamaged store.
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

// timeless removes asOf, the moment of the answer, from an answer.
func timeless(body string) string { return asOf.ReplaceAllString(body, "") }

func balanceIn(body string) string {
	if m := aBalance.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return body
}

// plus adds points to a balance.
func plus(balance string, points int) string {
	return (dec(balance) + decimalOf(points)).String()
}

// A trial is the outcome of running the commands on one damaged store.
type trial struct {
	Damage   string
	Verdict  string   // "right", "errors" or "refused"
	Verified bool     // whether verify found nothing
	Wrong    []string // faults of the commands
}

// damaged returns the files of a specimen with random damage, and describes the damage.
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
	if len(files[name]) == 0 { // an empty journal
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
		used := len(bytes.TrimRight(b, "\x00")) // nothing was written after it yet
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

// A damageRun runs commands on one damaged store.
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

// forever is longer than anything here takes.
const forever = 30 * time.Second

// command runs a command that ends by itself.
func (d *damageRun) command(line string) (code int, stdout string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), strings.Fields(line+" -db "+d.path), environment{noEnv, noNames, strings.NewReader(""), &out, &errs})
	d.checkWords(line, code, errs.String())
	return code, out.String()
}

func noEnv(string) string { return "" }

func noNames() []string { return nil }

// checkWords checks what a command wrote about a failure.
func (d *damageRun) checkWords(line string, code int, errs string) {
	if fault := faultIn(code, errs); fault != "" {
		d.wrong("sello %s: %s: exit %d, %q", line, fault, code, errs)
	}
}

// faultIn returns what is wrong with how a command failed, or "" if nothing. A command
// must say why it failed in one line of Spanish.
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

// all runs the commands of a trial.
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
	expected := map[string][]string{} // possible balances, by customer
	d.serve(func(r *damagedServer) {
		for _, c := range d.specimen.Customers {
			expected[c] = r.change(c, []string{d.specimen.Balances[c]})
		}
		for _, c := range d.specimen.Customers {
			r.askBalance(c, expected[c])
		}
	})
	d.serve(func(r *damagedServer) { // the changes must have come into the file
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

// A damagedServer is a server on a damaged store.
type damagedServer struct {
	*damageRun
	base   string
	gone   bool // it does not answer any more
	failed bool // an answer was an error
}

// serve runs a server, calls ask if the server has started, and stops it.
func (d *damageRun) serve(ask func(*damagedServer)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reader, writer := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, strings.Fields("serve -addr 127.0.0.1:0 -db "+d.path), environment{noEnv, noNames, strings.NewReader(""), io.Discard, writer})
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

// send returns no answer if there was none, or an error that damage may cause.
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

// change adds 7 points and deducts 3. Given the possible balances before, it returns
// those after.
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

// try damages the specimen as seed and image say, and runs the commands on it.
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

var (
	damageN    = flag.Int("damage.n", 0, "damaged files to try; 0: a few")
	damageSeed = flag.Uint64("damage.seed", 1, "what damage is chosen by")
)

// helperDir is the environment variable that names the helper's directory.
const helperDir = "SELLO_DAMAGE_DIR"

// TestDamageHelper is not a test: it is what the helper runs. It reads the numbers of
// images, which are damaged files, and writes a trial for each.
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

// A helper is a process that tries images.
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

// try lets the helper try one image. An error means that the process died or hangs.
func (h *helper) try(image int) (result trial, err error) {
	h.done++
	fmt.Fprintln(h.in, image)
	select {
	case line, ok := <-h.lines:
		if !ok {
			h.cmd.Wait()
			return trial{}, fmt.Errorf("the process died:\n%.3000s", h.errs.String())
		}
		err := json.Unmarshal([]byte(line), &result)
		return result, err
	case <-time.After(forever):
		h.cmd.Process.Signal(syscall.SIGQUIT) // it prints its stacks
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

// helperLife is how many images a helper tries before a new one takes its place. A store
// that has failed is never closed, so a helper leaks.
const helperLife = 100

// fewDamages is how many files the long form of TestDamage tries without -damage.n. The quick
// form tries half of them.
const fewDamages = 12

// TestDamage damages files as a disk or a person may, and runs the commands on them. Each
// command must give the right answer, or say in one line that it cannot. There must never
// be a wrong balance, a stack trace, or a command that does not end.
//
// A fault may kill its process, so another process runs the commands: this test binary
// again, with TestDamageHelper.
func TestDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and serves many files")
	}
	t.Parallel()
	dir := disktest.MemoryDir(t)
	victims := someSpecimens(t)
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
	counts := map[string]int{}
	var h *helper
	n := cmp.Or(*damageN, sized(fewDamages, fewDamages/2))
	for image := range n {
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
	t.Logf("seed %d, %d damaged files: %v", *damageSeed, n, counts)
}

// TestDamageControl checks that trials find a wrong balance, a missing account, a missing
// customer, and messages that break the rules.
func TestDamageControl(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and serves many files")
	}
	t.Parallel()
	v := someSpecimens(t)[0]
	change := func(fn func(*txn, *account) error) map[string][]byte {
		path := filepath.Join(t.TempDir(), "sello.db")
		writeFile(t, path, v.Files[""])
		store, err := openBolt(path, disk.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = write(t.Context(), newEngine(store, time.Now, cryptoSeed), 1, instantOf(time.Now()), func(t *txn) (any, error) {
			cust, _ := parseID([]byte(v.Customers[3]))
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			a, err := t.points.storedAccount(c, t.cfg.programNumber(c.Program))
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
			return t.put(t.points.partKey(a, partAccount), a)
		}),
		"account gone": change(func(t *txn, a *account) error { return t.Delete(t.points.partKey(a, partAccount)) }),
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
