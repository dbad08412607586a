package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// Negative controls of the auditor: each server here is wrong in one way, and the auditor
// must report it.

// TestAuditorSharesNothing checks that the auditor shares no code with the server, and so
// none of its faults.
func TestAuditorSharesNothing(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		own++
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
	if own == 0 {
		t.Error("no files of the auditor's")
	}
}

// wantFault audits with another diary, and at another base unless that is "". One of the
// reported faults must contain text.
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

// A filter sees each request before the server does, and reports whether to pass it on.
type filter func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// A spoiler changes the body of a response.
type spoiler func(r *http.Response, body []byte) []byte

// proxy starts a proxy before the server and returns the proxy's base. Either function may
// be nil.
func (v *victim) proxy(t *testing.T, before filter, spoil spoiler) (base string) {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(v.server.Base, "/api/v1"))
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

// TestAuditorSeesWhatIsThere changes one thing in the server's answers on their way to
// the auditor: a tenth of a point, or a single record.
func TestAuditorSeesWhatIsThere(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newCrashSeed(t), builtBinary(t))
	if out, err := v.load("-n", "80")(); err != nil {
		t.Fatal(err, out)
	}
	before := filepath.Join(v.dir, "before.jsonl")
	copyFile(t, before, v.diary)
	v.audit("-all") // the server itself has no fault
	t.Run("lies", func(t *testing.T) {
		for _, lie := range lies {
			t.Run(lie.name, func(t *testing.T) {
				t.Parallel()
				diary := filepath.Join(t.TempDir(), "diary.jsonl")
				copyFile(t, diary, before)
				v.wantFault(t, v.proxy(t, nil, lie.spoil(t)), diary, lie.want)
			})
		}
	})
}

// lies are the changes, and what the auditor must say of each.
var lies = []struct {
	name  string
	spoil func(t *testing.T) spoiler
	want  string
}{
	{"the newest entry is lost", inList("/movements", withoutNewest), "and its last entry"},
	{"an entry is there twice", inList("/movements", again(false)), "is there twice"},
	{"an entry is there again under another id", inList("/movements", again(true)), "add up to"},
	{"an entry's amount", inList("/movements", set("amount", more)), "add up to"},
	{"an entry's balance", inList("/movements", set("balance", more)), "add up to"},
	{"an entry's id", inList("/movements", set("id", other)), "was answered with"},
	{"an entry's comment", inList("/movements", set("comment", func(any) any { return "w-0" })), "nobody sent it"},
	{"the points that an entry used", inList("/movements", set("lots", func(any) any { return []any{} })), "from lots of 0"},
	{"the order of entries", inList("/movements", swapped), "add up to"},
	{"the newest sale is lost", inList("/transactions", withoutNewest), "is there 0 times"},
	{"a sale is there twice", inList("/transactions", again(false)), "is there twice"},
	{"a sale is there again under another id", inList("/transactions", again(true)), "is there 2 times"},
	{"a sale's total", inList("/transactions", set("totalAmount", more)), "spent"},
	{"a sale's balance", inList("/transactions", set("balance", more)), "was answered with"},
	{"a sale that nobody sent", inList("/transactions", set("comment", other)), "nobody sent it"},
	{"the newest redemption is lost", inList("/redemptions", withoutNewest), "is there 0 times"},
	{"a redemption's code", inList("/redemptions", set("code", other)), "was answered with"},
	{"a redemption's points", inList("/redemptions", set("pointsSpent", more)), "takes"},
	{"a customer's balance", figure("/balance", "balance"), "its balance says"},
	{"a customer too many", figure("/customers", "total"), "what was done makes"},
	{"the stock", figure("/rewards", "stock"), "what was done makes"},
	{"an event is lost", inFeed(func(l []any) []any { return l[1:] }), "follows event"},
	{"an event comes again", inFeed(func(l []any) []any { return append([]any{l[0]}, l...) }), "follows event"},
	{"an event is of another type", inFeed(func(l []any) []any {
		l[len(l)-1].(map[string]any)["type"] = "points.sold"
		return l
	}), "is another one now"},
	{"events are about something else", func(*testing.T) spoiler {
		return func(r *http.Response, body []byte) []byte {
			if strings.HasSuffix(r.Request.URL.Path, "/events") {
				body = bytes.ReplaceAll(body, []byte(`"type":"transaction.created"`), []byte(`"type":"transaction.made"`))
			}
			return body
		}
	}, "is another one now"},
	{"a retry that is no replay", func(*testing.T) spoiler {
		return func(r *http.Response, body []byte) []byte {
			r.Header.Del("Idempotency-Replayed")
			return body
		}
	}, "as a replay: false"},
	{"a retry with another answer", func(*testing.T) spoiler {
		return func(r *http.Response, body []byte) []byte {
			if r.Request.Method == http.MethodPost {
				return append(body, ' ')
			}
			return body
		}
	}, "and a retry with"},
}

// inList changes the first page of one list whose path ends in path, and its total. It
// takes the first list of three items or more that change accepts. change returns nil for
// a page without the item that it changes.
func inList(path string, change func(data []any) []any) func(t *testing.T) spoiler {
	return func(t *testing.T) spoiler {
		var mu sync.Mutex
		var which string // the URL of the list that was chosen
		return func(r *http.Response, body []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			u := r.Request.URL
			if r.Request.Method != http.MethodGet || !strings.HasSuffix(u.Path, path) || u.Query().Get("limit") != "100" || which != "" && u.String() != which {
				return body
			}
			o, err := parseObject(body)
			if err != nil {
				t.Error(err)
			}
			data, _ := o["data"].([]any)
			if len(data) < 3 {
				return body
			}
			before := len(data)
			changed := change(data)
			if changed == nil {
				return body
			}
			which = u.String()
			meta := o["meta"].(map[string]any)
			o["data"], meta["total"] = changed, object(meta).int("total")+len(changed)-before
			return []byte(encode(o))
		}
	}
}

// inFeed changes the first page of the feed.
func inFeed(change func(data []any) []any) func(t *testing.T) spoiler {
	return func(t *testing.T) spoiler {
		return func(r *http.Response, body []byte) []byte {
			if !strings.HasSuffix(r.Request.URL.Path, "/events") || r.Request.URL.Query().Get("after") != "0" {
				return body
			}
			o, err := parseObject(body)
			if err != nil {
				t.Error(err)
			}
			if data, _ := o["data"].([]any); len(data) > 0 {
				o["data"] = change(data)
			}
			return []byte(encode(o))
		}
	}
}

// set changes a member of the first item in which the auditor can notice the change.
func set(name string, to func(old any) any) func([]any) []any {
	return func(l []any) []any {
		for _, e := range l {
			m := e.(map[string]any)
			comment, _ := m["comment"].(string)
			if (name == "comment" || name == "id") && (m["transactionId"] != nil || m["redemptionId"] != nil || !strings.HasPrefix(comment, "w-")) {
				continue // no client knows this item's id or comment
			}
			if name == "lots" && m["type"] != "Debit" {
				continue
			}
			m[name] = to(m[name])
			return l
		}
		return nil
	}
}

func more(old any) any {
	f, _ := old.(json.Number).Float64()
	return json.Number(strconv.FormatFloat(f+0.1, 'f', 4, 64))
}

// otherID is an id that the server has not given to anything.
const otherID = "01a1ffb9-f5c3-791c-87d4-9d25e318a835"

func other(any) any { return otherID }

// again repeats the newest item, with the same id or another.
func again(newID bool) func([]any) []any {
	return func(l []any) []any {
		twin := maps.Clone(l[0].(map[string]any))
		if newID {
			twin["id"] = otherID
		}
		return append([]any{twin}, l...)
	}
}

// withoutNewest removes the newest item.
func withoutNewest(l []any) []any { return l[1:] }

func swapped(l []any) []any {
	l[0], l[1] = l[1], l[0]
	return l
}

// figure puts the digit 7 before each number called name in the answers to a path.
func figure(path, name string) func(*testing.T) spoiler {
	return func(*testing.T) spoiler {
		return func(r *http.Response, body []byte) []byte {
			if !strings.HasSuffix(r.Request.URL.Path, path) || r.Request.Method != http.MethodGet {
				return body
			}
			return regexp.MustCompile(`"`+name+`":(\d)`).ReplaceAll(body, []byte(`"`+name+`":7$1`))
		}
	}
}

// TestAuditorSeesWhatIsDone puts a proxy before the server that sends writes twice, drops
// their keys, or gives false answers.
func TestAuditorSeesWhatIsDone(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	for _, front := range []struct {
		name   string
		before filter
		spoil  spoiler
		want   string
	}{
		{"a write is sent on twice, with another key", addTwice, nil, "is there 2 times"},
		{"keys are lost, and an answer", loseKeys(), nil, "a retry says that it is a replay: false"},
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
			fmt.Fprintf(w, `{"id":%q,"amount":1,"balance":1}`, otherID)
			return false
		}, nil, "was answered with 201 and is there 0 times"},
	} {
		t.Run(front.name, func(t *testing.T) {
			v := newVictim(t, seed, builtBinary(t))
			direct := v.server.Base
			v.server.Base = v.proxy(t, front.before, front.spoil)
			if out, err := v.load("-n", "60")(); err != nil {
				t.Fatal(err, out)
			}
			v.server.Base = direct
			v.wantFault(t, "", v.diary, front.want)
		})
	}
}

// addTwice passes each credit on twice, with two keys.
func addTwice(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/add") {
		twin := r.Clone(r.Context())
		twin.Body = io.NopCloser(bytes.NewReader(body))
		twin.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key")+"-twin")
		next.ServeHTTP(httptest.NewRecorder(), twin)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// loseKeys passes all writes on without their keys. One credit never gets an answer,
// however often it is sent.
func loseKeys() filter {
	var adds atomic.Int64
	var lost atomic.Value // its key
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
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
	}
}

// TestAuditorSeesWhatIsLost removes the last writes from the file after a kill.
func TestAuditorSeesWhatIsLost(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	for _, loss := range []struct {
		name string
		do   func(v *victim, earlier map[string][]byte)
	}{
		{"an earlier copy is put back", func(v *victim, earlier map[string][]byte) {
			for name, text := range earlier {
				writeFile(v, name, text)
			}
		}},
		{"the journal's tail is cut off", func(v *victim, _ map[string][]byte) {
			// More than one, since the last record may hold only the usage of keys.
			if err := disktest.CutRecords(disk.JournalNames(v.db), 3); err != nil {
				v.Fatal(err)
			}
		}},
	} {
		t.Run(loss.name, func(t *testing.T) {
			v := newVictim(t, seed, builtBinary(t))
			loads := func() {
				t.Helper()
				if out, err := v.load("-n", "60")(); err != nil {
					t.Fatal(err, out)
				}
				v.server.Kill()
			}
			loads()
			earlier := map[string][]byte{}
			journal := disk.JournalNames(v.db)
			for _, name := range append(journal[:], v.db) {
				earlier[name] = readFile(t, name)
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
