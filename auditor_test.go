package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// The negative controls of what the auditor judges: each server here breaks
// its word in one way, and the auditor has to say so.

// TestAuditorSharesNothing: what judges the server can have no fault in common with it.
func TestAuditorSharesNothing(t *testing.T) {
	files, err := filepath.Glob("audit/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			first, _, _ := strings.Cut(path, "/")
			if err != nil || strings.Contains(first, ".") || first == "sello" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// wantFault audits with a base of one's own, or the server's, and wants one of
// the faults to contain a text.
func (v *victim) wantFault(t *testing.T, base, diary, text string) {
	t.Helper()
	cmd := v.auditor("check", "-all")
	for i, a := range cmd.Args {
		switch {
		case a == "-url" && base != "":
			cmd.Args[i+1] = base
		case a == "-log":
			cmd.Args[i+1] = diary
		}
	}
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), text) {
		t.Errorf("the auditor should have found %q: %v\n%s", text, err, out)
	}
}

// proxy stands between a server and whoever gets its base. spoil, if there is
// one, changes responses; before, if there is one, sees each request first and
// tells whether to go on.
func (v *victim) proxy(t *testing.T, before func(w http.ResponseWriter, r *http.Request, next http.Handler) bool, spoil func(r *http.Response, body []byte) []byte) (base string) {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(v.server.base, "/api/v1"))
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			if spoil != nil {
				body = spoil(r, body)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || before(w, r, next) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

// TestAuditorSeesWhatIsThere: on the way to the auditor one thing is changed
// in what the server has, a tenth of a point or a single record.
func TestAuditorSeesWhatIsThere(t *testing.T) {
	v := newVictim(t, newCrashSeed(t), builtBinary(t, "."))
	if out, err := v.load("-n", "100")(); err != nil {
		t.Fatal(err, out)
	}
	before := filepath.Join(v.dir, "before.jsonl")
	copyFile(t, before, v.diary)
	v.audit("-all") // and now it is clean

	type spoiler func(list []any) []any
	// ofList changes the data of the first page of one list that is long enough; total goes along.
	ofList := func(of string, change spoiler) func(*http.Response, []byte) []byte {
		var mu sync.Mutex
		var which string
		return func(r *http.Response, body []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			u := r.Request.URL
			if r.Request.Method != http.MethodGet || !strings.HasSuffix(u.Path, of) || u.Query().Get("limit") != "100" || which != "" && u.String() != which {
				return body
			}
			o := numbersKept(t, body)
			data, _ := o["data"].([]any)
			if len(data) < 3 {
				return body
			}
			before := len(data)
			changed := change(data)
			if changed == nil { // it has none of what is to be changed
				return body
			}
			which = u.String()
			meta := o["meta"].(map[string]any)
			total, _ := meta["total"].(json.Number).Int64()
			o["data"], meta["total"] = changed, int(total)+len(changed)-before
			body, err := json.Marshal(o)
			if err != nil {
				t.Error(err)
			}
			return body
		}
	}
	set := func(name string, to func(old any) any) spoiler {
		return func(l []any) []any {
			for _, e := range l {
				m := e.(map[string]any)
				comment, _ := m["comment"].(string)
				if (name == "comment" || name == "id") && (m["transactionId"] != nil || m["redemptionId"] != nil || !strings.HasPrefix(comment, "w-")) {
					continue // no answer told it
				}
				if name == "lots" && m["type"] != typeDebit {
					continue
				}
				m[name] = to(m[name])
				return l
			}
			return nil
		}
	}
	more := func(old any) any {
		f, _ := old.(json.Number).Float64()
		return json.Number(strconv.FormatFloat(f+0.1, 'f', 4, 64))
	}
	other := func(any) any { return "01a1ffb9-f5c3-791c-87d4-9d25e318a835" }
	again := func(newID bool) spoiler {
		return func(l []any) []any {
			twin := map[string]any{}
			for name, value := range l[0].(map[string]any) {
				twin[name] = value
			}
			if newID {
				twin["id"] = other(nil)
			}
			return append([]any{twin}, l...)
		}
	}
	without := func(l []any) []any { return l[1:] }
	swapped := func(l []any) []any {
		l[0], l[1] = l[1], l[0]
		return l
	}
	headerless := func(r *http.Response, body []byte) []byte {
		r.Header.Del("Idempotency-Replayed")
		return body
	}
	figure := func(path, name string) func(*http.Response, []byte) []byte {
		return func(r *http.Response, body []byte) []byte {
			if !strings.HasSuffix(r.Request.URL.Path, path) || r.Request.Method != http.MethodGet {
				return body
			}
			return regexp.MustCompile(`"`+name+`":(\d)`).ReplaceAll(body, []byte(`"`+name+`":7$1`))
		}
	}
	for _, lie := range []struct {
		name  string
		spoil func(*http.Response, []byte) []byte
		want  string
	}{
		{"the newest entry is lost", ofList("/movements", without), "and its last entry"},
		{"an entry is there twice", ofList("/movements", again(false)), "is there twice"},
		{"an entry is there again under another id", ofList("/movements", again(true)), "add up to"},
		{"an entry's amount", ofList("/movements", set("amount", more)), "add up to"},
		{"an entry's balance", ofList("/movements", set("balance", more)), "add up to"},
		{"an entry's id", ofList("/movements", set("id", other)), "was answered with"},
		{"an entry's comment", ofList("/movements", set("comment", func(any) any { return "w-0" })), "nobody sent it"},
		{"the points that an entry used", ofList("/movements", set("lots", func(any) any { return []any{} })), "from lots of 0"},
		{"the order of entries", ofList("/movements", swapped), "add up to"},
		{"the newest sale is lost", ofList("/transactions", without), "is there 0 times"},
		{"a sale is there twice", ofList("/transactions", again(false)), "is there twice"},
		{"a sale is there again under another id", ofList("/transactions", again(true)), "is there 2 times"},
		{"a sale's total", ofList("/transactions", set("totalAmount", more)), "spent"},
		{"a sale's balance", ofList("/transactions", set("balance", more)), "was answered with"},
		{"a sale that nobody sent", ofList("/transactions", set("comment", other)), "nobody sent it"},
		{"the newest redemption is lost", ofList("/redemptions", without), "is there 0 times"},
		{"a redemption's code", ofList("/redemptions", set("code", other)), "was answered with"},
		{"a redemption's points", ofList("/redemptions", set("pointsSpent", more)), "takes"},
		{"a customer's balance", figure("/balance", "balance"), "its balance says"},
		{"a customer too many", figure("/customers", "total"), "what was done makes"},
		{"the stock", figure("/rewards", "stock"), "what was done makes"},
		{"a retry that is no replay", headerless, "as a replay: false"},
		{"a retry with another answer", func(r *http.Response, body []byte) []byte {
			if r.Request.Method == http.MethodPost {
				return append(body, ' ')
			}
			return body
		}, "and a retry with"},
	} {
		t.Run(lie.name, func(t *testing.T) {
			diary := filepath.Join(t.TempDir(), "diary.jsonl")
			copyFile(t, diary, before)
			v.wantFault(t, v.proxy(t, nil, lie.spoil), diary, lie.want)
		})
	}
}

// numbersKept decodes JSON with its numbers as they are written.
func numbersKept(t *testing.T, text []byte) (o map[string]any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Error(err)
	}
	return o
}

// TestAuditorSeesWhatIsDone: a server's front applies writes twice, forgets
// their keys, or answers what is not so.
func TestAuditorSeesWhatIsDone(t *testing.T) {
	seed := newCrashSeed(t)
	var adds atomic.Int64
	var lost atomic.Value // key of an add that is never answered, however often it is sent
	for _, front := range []struct {
		name   string
		before func(w http.ResponseWriter, r *http.Request, next http.Handler) bool
		spoil  func(*http.Response, []byte) []byte
		want   string
	}{
		{"a write is sent on twice, with another key", func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
			body, _ := io.ReadAll(r.Body)
			if strings.HasSuffix(r.URL.Path, "/add") {
				twin := r.Clone(r.Context())
				twin.Body = io.NopCloser(bytes.NewReader(body))
				twin.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key")+"-twin")
				next.ServeHTTP(httptest.NewRecorder(), twin)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return true
		}, nil, "is there 2 times"},
		{"keys are lost, and an answer", func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			key := r.Header.Get("Idempotency-Key")
			r.Header.Del("Idempotency-Key")
			if strings.HasSuffix(r.URL.Path, "/add") && adds.Add(1) == 5 {
				lost.Store(key)
			}
			if key == lost.Load() {
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			return true
		}, nil, "a retry says that it is a replay: false"},
		{"answers tell another balance", nil, func(r *http.Response, body []byte) []byte {
			if r.Request.Method == http.MethodPost && r.StatusCode < 300 {
				return bytes.Replace(body, []byte(`"balance":`), []byte(`"balance":1`), 1)
			}
			return body
		}, "was answered with"},
		{"a write is answered and never done", func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.HasSuffix(r.URL.Path, "/add") {
				return true
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintln(w, `{"id":"01a1ffb9-f5c3-791c-87d4-9d25e318a835","amount":1,"balance":1}`)
			return false
		}, nil, "was answered with 201 and is there 0 times"},
	} {
		t.Run(front.name, func(t *testing.T) {
			v := newVictim(t, seed, builtBinary(t, "."))
			direct := v.server.base
			v.server.base = v.proxy(t, front.before, front.spoil)
			if out, err := v.load("-n", "120")(); err != nil {
				t.Fatal(err, out)
			}
			v.server.base = direct
			v.wantFault(t, "", v.diary, front.want)
		})
	}
}

// TestAuditorSeesWhatIsLost: after a kill the file is what it was some writes ago.
func TestAuditorSeesWhatIsLost(t *testing.T) {
	seed := newCrashSeed(t)
	for _, loss := range []struct {
		name string
		do   func(v *victim, earlier map[string][]byte)
	}{
		{"an earlier copy is put back", func(v *victim, earlier map[string][]byte) {
			for name, text := range earlier {
				if err := os.WriteFile(name, text, 0o600); err != nil {
					v.Fatal(err)
				}
			}
		}},
		{"the journal's tail is cut off", func(v *victim, _ map[string][]byte) {
			// The last of them need not be a client's: usage is counted too.
			if err := disktest.CutRecords(disk.JournalNames(v.db()), 3); err != nil {
				v.Fatal(err)
			}
		}},
	} {
		t.Run(loss.name, func(t *testing.T) {
			v := newVictim(t, seed, builtBinary(t, "."))
			loads := func() {
				t.Helper()
				if out, err := v.load("-n", "60")(); err != nil {
					t.Fatal(err, out)
				}
				v.server.kill()
			}
			loads()
			earlier := map[string][]byte{}
			for _, name := range []string{v.db(), v.db() + "-journal1", v.db() + "-journal2"} {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				earlier[name] = text
			}
			v.start()
			v.audit()
			loads()
			loss.do(v, earlier)
			v.start()
			v.wantFault(t, "", v.diary, "and is there 0 times")
		})
	}
}

// TestCrashMutants kills servers that differ from the real one in that they
// lose or double what only a kill at the wrong moment shows.
func TestCrashMutants(t *testing.T) {
	if !*crashMutants {
		t.Skip("without -crash.mutants")
	}
	seed := newCrashSeed(t)
	for _, mutant := range []struct {
		name    string
		changes []alteration
		want    string
	}{
		{"it answers one batch before that is written", []alteration{
			{"internal/disk/journal.go", "\tsync  bool\n", "\tsync  bool\n\theld  []ordered.Change\n"},
			{"internal/disk/journal.go", "\tb := append(j.buf[:0], make([]byte, recordHeader)...)\n", `
				changes, j.held = j.held, append([]ordered.Change(nil), changes...)
				for i, c := range j.held {
					if c.Value != nil {
						j.held[i].Value = append([]byte{}, c.Value...)
					}
				}
				b := append(j.buf[:0], make([]byte, recordHeader)...)
			`},
		}, "and is there 0 times"},
		{"it keeps the answer in another transaction than the effect", []alteration{
			{"request.go", "return answer{status, body, false}, t.keepReplay(req.retries, status, body)\n\t})\n", `return answer{status, body, false}, nil
				})
				if err == nil && !given.replayed {
					_, err = write(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (answer, error) {
						return given, t.keepReplay(req.retries, given.status, given.body)
					})
				}
			`},
		}, "a retry says that it is a replay: false"},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			v := newVictim(t, seed, alteredBinary(t, mutant.changes...))
			for kills := 1; ; kills++ {
				load := v.load()
				time.Sleep(time.Duration(v.rng.Int64N(int64(100 * time.Millisecond))))
				v.server.kill()
				if out, err := load(); err != nil {
					t.Fatal(err, out)
				}
				v.start()
				out, err := v.auditor("check").CombinedOutput()
				if err != nil && strings.Contains(string(out), mutant.want) {
					t.Logf("found after %d kills:\n%s", kills, out)
					return
				}
				if kills == 20 {
					t.Fatalf("not found by %d kills: %v\n%s", kills, err, out)
				}
			}
		})
	}
}
