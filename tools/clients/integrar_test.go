package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A language is one in which docs/integrar.md has a till.
type language struct {
	heading, fence, file string
	command              []string // runs the file
	needs                [][2]string
}

var languages = []language{
	{"curl", "shell", "caja.sh", []string{"sh"}, [][2]string{{"curl", "curl"}, {"jq", "jq"}}},
	{"Go", "go", "caja.go", []string{"go", "run"}, nil},
	{"JavaScript", "js", "caja.mjs", []string{"node"}, [][2]string{{"node", "nodejs"}}},
	{"Python", "python", "caja.py", []string{"python3"}, [][2]string{{"python3", "python3"}}},
	{"PHP", "php", "caja.php", []string{"php"}, [][2]string{{"php", "php-cli"}}},
}

// block returns the program under a heading of a document.
func block(t *testing.T, document, heading, fence string) string {
	t.Helper()
	_, text, _ := strings.Cut(document, "\n## "+heading+"\n")
	_, text, found := strings.Cut(text, "\n```"+fence+"\n")
	text, _, closed := strings.Cut(text, "\n```\n")
	if !found || !closed {
		t.Fatalf("docs/integrar.md has no program under %s", heading)
	}
	return text + "\n"
}

// The output of a till whose voucher could be redeemed.
var (
	newCustomer = "Cliente nuevo: \\+525587654321\n"
	soldAndUsed = regexp.MustCompile(`^(` + newCustomer + `)?Venta T-1001: (\d+) puntos, saldo (\d+)
Por cobrar: 1500
Vale de \$50: código ([A-Z0-9]{4}-[A-Z0-9]{4}), saldo (\d+)
Descontar 50
$`)
	paid    = regexp.MustCompile(`^Venta T-1004: 149 puntos, saldo \d+\nPor cobrar: 1494\nVale`)
	tooFew  = regexp.MustCompile(`^(?:Cliente nuevo: \S+\n)?Venta T-1002: 0 puntos, saldo \d+\nPor cobrar: 1\nFaltan puntos: 100 y hay \d+\n$`)
	refused = regexp.MustCompile(`El número de teléfono no es válido \(phone_invalid, solicitud [A-Z0-9]+\)`)
)

// TestIntegrar runs the programs of docs/integrar.md. Answers get lost on the way (see
// lossy); run again with the same ticket, a program applies nothing.
func TestIntegrar(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(root + "/docs/integrar.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages {
		t.Run(l.heading, func(t *testing.T) {
			t.Parallel()
			for _, n := range l.needs {
				need(t, n[0], n[1])
			}
			file := filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(file, []byte(block(t, string(document), l.heading, l.fence)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := serve(t)
			way := newLossy(t, s.Base)
			run := func(args ...string) (string, error) {
				cmd := exec.Command(l.command[0], append(append(l.command[1:len(l.command):len(l.command)], file), args...)...)
				cmd.Env = s.env(way.base)
				return output(cmd)
			}

			first, err := run("55 8765 4321", "1500", "T-1001")
			if err != nil || !soldAndUsed.MatchString(first) || !strings.HasPrefix(first, "Cliente nuevo") {
				t.Fatalf("%v\n%s", err, first)
			}
			way.check(t)
			once := s.dayOf(t, "5587654321")
			if once.customers != 1 || once.sales != 1 || once.vouchersUsed != 1 || len(strings.Fields(once.movements)) != 3 {
				t.Errorf("the server has %+v", once)
			}

			again, err := run("55 8765 4321", "1500", "T-1001")
			if err != nil || again != strings.TrimPrefix(first, "Cliente nuevo: +525587654321\n") {
				t.Errorf("again: %v\n%s", err, again)
			}
			if d := s.dayOf(t, "5587654321"); d != once {
				t.Errorf("the same ticket again left %+v, and before there was %+v", d, once)
			}

			with, err := run("5587654321", "1500", "T-1004", "60")
			if err != nil || !paid.MatchString(with) {
				t.Errorf("with 60 points: %v\n%s", err, with)
			}

			poor, err := run("3399990001", "1", "T-1002") // a new customer, with the points of the welcome
			if err != nil || !tooFew.MatchString(poor) {
				t.Errorf("with too few points: %v\n%s", err, poor)
			}
			if text, err := run("12", "1", "T-1003"); err == nil || !refused.MatchString(err.Error()) {
				t.Errorf("no phone: %v\n%s", err, text)
			}
		})
	}
}
