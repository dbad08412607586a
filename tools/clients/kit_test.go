package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// temp is for what all tests share: the binary, and the packages of npm.
var temp string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sello-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	temp = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// output runs a command and returns what it wrote to both outputs. An error has it too.
func output(cmd *exec.Cmd) (string, error) {
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, text)
	}
	return string(text), err
}

var buildSello = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(temp, "sello"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = root
	_, err = output(cmd)
	return path, err
})

// findChromium returns the path of Chromium. Debian's build without a window takes half the time;
// the long form uses the whole browser.
func findChromium(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil && os.Getenv("SELLO_TEST_LONG") == "" {
		return path
	}
	return need(t, "chromium", "chromium or chromium-headless-shell")
}

// need returns the path of a program, and skips the test where it is missing.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed (Debian: %s)", program, debian)
	}
	return path
}

var unreachable = regexp.MustCompile(`ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EAI_AGAIN|ERR_SOCKET_TIMEOUT|ENOTCACHED`)

var installPackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(temp, "npm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(name, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	_, err := output(cmd)
	return dir, err
})

// packages returns a directory with the packages of package-lock.json under node_modules.
func packages(t *testing.T) string {
	t.Helper()
	need(t, "node", "nodejs")
	need(t, "npm", "npm")
	dir, err := installPackages()
	if err != nil && unreachable.MatchString(err.Error()) {
		t.Skipf("the npm registry cannot be reached: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// node returns a command that runs a program of the packages.
func node(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(dir, "node_modules", ".bin", program), args...)
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	return cmd
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// A server is a `sello demo` of the test's own.
type server struct {
	Base string // ends with /api/v1
	Key  string
	db   string
}

// serve starts one. args are further flags.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	path, err := buildSello()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	s := &server{db: filepath.Join(t.TempDir(), "demo.db")}
	cmd := exec.Command(path, append([]string{"demo", "-addr", "127.0.0.1:0", "-json", "-db", s.db}, args...)...)
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("sello demo: %v\n%s", err, stderr.String())
		}
	})
	if err := json.NewDecoder(stdout).Decode(s); err != nil {
		t.Fatalf("sello demo: %v\n%s", err, stderr.String())
	}
	return s
}

// env returns the environment of a program that is a client of the server at base.
func (s *server) env(base string) []string {
	return append(os.Environ(), "SELLO_URL="+base, "SELLO_KEY="+s.Key, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
}

// get reads a path of the API.
func (s *server) get(t *testing.T, path string, into any) {
	t.Helper()
	r, err := http.NewRequest("GET", s.Base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	} else {
		err = json.NewDecoder(res.Body).Decode(into)
	}
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// A listed is a list of the API.
type listed[T any] struct{ Data []T }

// A day is what a till's day leaves in a server.
type day struct {
	customers, balance  int
	sales, vouchersUsed int
	movements           string // their categories, the last first
}

// dayOf returns what there is of the customer with a phone.
func (s *server) dayOf(t *testing.T, phone string) (d day) {
	t.Helper()
	var customers listed[struct{ ID string }]
	s.get(t, "/customers?search="+phone, &customers)
	if d.customers = len(customers.Data); d.customers != 1 {
		return d
	}
	id := customers.Data[0].ID
	var balance struct{ Balance int }
	s.get(t, "/points/customers/"+id+"/balance", &balance)
	d.balance = balance.Balance
	var sales listed[struct{ TotalAmount int }]
	s.get(t, "/transactions?customerId="+id, &sales)
	d.sales = len(sales.Data)
	var redemptions listed[struct{ Status string }]
	s.get(t, "/redemptions?status=Used&customerId="+id, &redemptions)
	d.vouchersUsed = len(redemptions.Data)
	var movements listed[struct{ Category string }]
	s.get(t, "/points/customers/"+id+"/movements", &movements)
	for _, m := range movements.Data {
		d.movements += m.Category + " "
	}
	return d
}
