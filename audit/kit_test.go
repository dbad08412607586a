package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sello/internal/processtest"
)

// The tests of this package run sello's binary: they kill it, make its disk fail, set its
// clock, and send it more load than it can carry. They read its data over HTTP and with
// its commands.

// root is the module's folder.
const root = ".."

// runsAuditor is the environment variable that makes this test binary run the auditor.
const runsAuditor = "SELLO_TEST_RUNS_AUDITOR"

func TestMain(m *testing.M) {
	if os.Getenv(runsAuditor) != "" {
		main()
		return
	}
	code := m.Run()
	os.RemoveAll(binaries.dir) // does nothing for ""
	os.Exit(code)
}

// needBinary skips a test of the binary where it would take too long or show nothing.
func needBinary(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the binary")
	}
	if processtest.RaceDetector {
		t.Skip("the race detector does not watch the binary")
	}
}

// binaries are built once for all tests.
var binaries struct {
	sync.Mutex
	dir   string
	built map[string]func() (path string, err error) // by key of buildOnce
}

// builtBinary returns the path of the ordinary binary.
func builtBinary(t testing.TB) string {
	t.Helper()
	return buildOnce(t, "as it is", func(path string) error { return build(path) })
}

// An alteration replaces a text that occurs once in a source file.
type alteration struct{ file, old, new string }

// alteredBinary returns the path of a binary built from changed source. A test can set its
// wall clock (internal/wallclock/system_clocktest.go). The source files themselves are not changed.
func alteredBinary(t testing.TB, changes ...alteration) string {
	t.Helper()
	return buildOnce(t, fmt.Sprint(changes), func(path string) error {
		overlay := path + "-overlay"
		if err := writeOverlay(overlay, changes); err != nil {
			return err
		}
		return build(path, "-tags=clocktest", "-overlay", overlay, "-gcflags=-N -l") // it compiles in half the time
	})
}

// oftenBinary returns the path of a binary that is almost always in a checkpoint and keeps
// few retries in a slice. The ordinary binary needs half a minute to reach a checkpoint or
// the end of a slice.
func oftenBinary(t testing.TB) string {
	t.Helper()
	return alteredBinary(t, oftenCheckpoints...)
}

var oftenCheckpoints = []alteration{
	{"internal/disk/checkpoint.go", "DefaultMemSize = 64 << 20 ", "DefaultMemSize = 48 << 10 "},
	{"internal/disk/checkpoint.go", "defaultMemAge  = 30 * time.Second ", "defaultMemAge  = 30 * time.Millisecond "},
	{"internal/disk/checkpoint.go", "checkpointStep = 512 ", "checkpointStep = 32 "},
	{"internal/disk/checkpoint.go", "lookPause      = 250 * ", "lookPause      = 5 * "},
	{"retries.go", "sliceNames = 1 << 15", "sliceNames = 1 << 5"},
}

// buildOnce returns the path of the binary for a key. The first caller with the key builds it.
func buildOnce(t testing.TB, key string, build func(path string) error) string {
	t.Helper()
	b := &binaries
	b.Lock()
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "sello-built")
		if err != nil {
			t.Fatal(err)
		}
		b.dir, b.built = dir, map[string]func() (string, error){}
	}
	built := b.built[key]
	if built == nil {
		path := filepath.Join(b.dir, fmt.Sprintf("sello%d.exe", len(b.built)))
		built = sync.OnceValues(func() (string, error) { return path, build(path) })
		b.built[key] = built
	}
	b.Unlock()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(path string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-o", path}, flags...), ".")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// writeOverlay writes a file for go build's flag -overlay, and the altered sources beside it.
func writeOverlay(name string, changes []alteration) error {
	texts := map[string]string{} // by path
	for _, a := range changes {
		source, err := filepath.Abs(filepath.Join(root, a.file))
		if err != nil {
			return err
		}
		if texts[source] == "" {
			text, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			texts[source] = string(text)
		}
		if n := strings.Count(texts[source], a.old); n != 1 {
			return fmt.Errorf("%s has %d times: %s", a.file, n, a.old)
		}
		texts[source] = strings.Replace(texts[source], a.old, a.new, 1)
	}
	replace := map[string]string{}
	for source, text := range texts {
		replace[source] = fmt.Sprintf("%s%d.go", name, len(replace))
		if err := os.WriteFile(replace[source], []byte(text), 0o600); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(name, raw, 0o600)
}

// A till is a data file in a folder, and the binary that runs commands on it.
type till struct {
	*testing.T
	binary  string
	dir, db string
	env     []string // for commands, after the test's own
}

func newTill(t *testing.T) *till {
	t.Helper()
	needBinary(t)
	dir := t.TempDir()
	return &till{T: t, binary: builtBinary(t), dir: dir, db: filepath.Join(dir, "sello.db")}
}

func (s *till) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Env = append(append(os.Environ(), "SELLO_DB="+s.db), s.env...)
	return cmd
}

// ok runs a command line that must succeed, and returns what it wrote.
func (s *till) ok(line string, stdin ...string) string {
	s.Helper()
	cmd := s.command(strings.Fields(line)...)
	cmd.Stdin = strings.NewReader(strings.Join(stdin, ""))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		s.Fatalf("sello %s: %v\n%s%s", line, err, out, &errs)
	}
	return string(out)
}

// newKey makes an API key and returns its text.
func (s *till) newKey(org, flags string) string {
	s.Helper()
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(s.ok("key create -json -org "+org+" "+flags)), &made); err != nil {
		s.Fatal(err)
	}
	return made.Key
}

// serve runs `sello serve`.
func (s *till) serve() *processtest.Process {
	s.Helper()
	p, err := processtest.Start(s, s.command("serve"))
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// demoDocument returns a document of a café with one program.
func demoDocument(t testing.TB) string {
	t.Helper()
	return string(readFile(t, filepath.Join(root, "testdata", "world", "luna.json")))
}

// ask sends a request and returns the answer.
func ask(t testing.TB, method, url, key, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// enrol creates a customer and returns its id.
func enrol(t testing.TB, base, key, email string) string {
	t.Helper()
	status, text := ask(t, http.MethodPost, base+"/customers", key, `{"email":"`+email+`"}`)
	made, err := parseObject([]byte(text))
	if err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, text, err)
	}
	return made.text("id")
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, to, from string) {
	t.Helper()
	writeFile(t, to, readFile(t, from))
}
