package clients

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// runner writes a program to a file. What it returns runs it, with more variables of the environment.
func (l *language) runner(t *testing.T, program string, env ...string) func(args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), l.file)
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (string, error) {
		cmd := exec.Command(l.command[0], slices.Concat(l.command[1:], []string{file}, args)...)
		cmd.Env = append(os.Environ(), env...)
		return output(cmd)
	}
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
			s := serve(t)
			way := newLossy(t, s.Base)
			run := l.runner(t, block(t, string(document), l.heading, l.fence), s.env(way.base)...)

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

// balances are the programs of docs/integrar.md that read a customer's card. The page is opened by
// Chromium, from a site that is not the card's.
var balances = []language{
	{"saldo.html", "html", "saldo.html", nil, nil},
	{"saldo.sh", "shell", "saldo.sh", []string{"sh"}, [][2]string{{"curl", "curl"}, {"jq", "jq"}}},
	{"saldo.go", "go", "saldo.go", []string{"go", "run"}, nil},
	{"saldo.py", "python", "saldo.py", []string{"python3"}, [][2]string{{"python3", "python3"}}},
	{"saldo.php", "php", "saldo.php", []string{"php"}, [][2]string{{"php", "php-cli"}}},
}

// TestSaldo runs them: each shows what the card does, and says why when there is none.
func TestSaldo(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(root + "/docs/integrar.md")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	card := s.issueCard(t, `"firstName": "Ana", "phoneNumber": "+525587654329"`)
	nameless := s.issueCard(t, `"phoneNumber": "+525587654328"`)
	gone := strings.TrimSuffix(s.Base, "/api/v1") + "/t/AAAAAAAAAAAAAAAAAAAAAAAAAA"
	const (
		had  = "\nClub Luna: 50 Lunas\nTarjeta de sellos: 0 Sellos\nEspresso: faltan 30\nVale de $50: faltan 50\nBolsa de grano 500 g: faltan 350\n"
		none = "Esta tarjeta ya no vale\n"
	)
	for _, l := range balances {
		t.Run(l.heading, func(t *testing.T) {
			t.Parallel()
			for _, n := range l.needs {
				need(t, n[0], n[1])
			}
			program := block(t, string(document), l.heading, l.fence)
			run := func(card string) (string, bool) { return shownByPage(t, program, card) }
			if l.command != nil {
				run = l.reader(t, program)
			}
			if text, ok := run(card); !ok || text != "Ana"+had {
				t.Errorf("a card: %t\n%s", ok, text)
			}
			if text, ok := run(nameless); !ok || text != "Tu tarjeta"+had {
				t.Errorf("without a name: %t\n%s", ok, text)
			}
			if text, ok := run(gone); ok != (l.command == nil) || text != none && !strings.Contains(text, none) {
				t.Errorf("no card: %t\n%s", ok, text)
			}
			if text, ok := run("http://127.0.0.1:1/t/AAAAAAAAAAAAAAAAAAAAAAAAAA"); ok != (l.command == nil) || !strings.Contains(text, "Sin respuesta") {
				t.Errorf("no server: %t\n%s", ok, text)
			}
		})
	}
}

// issueCard enrols a customer and returns the address of the customer's card.
func (s *server) issueCard(t *testing.T, customer string) string {
	t.Helper()
	var made struct{ ID, URL string }
	err := json.Unmarshal(s.post(t, "/customers", "{"+customer+"}"), &made)
	if err == nil {
		err = json.Unmarshal(s.post(t, "/customers/"+made.ID+"/card", "{}"), &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made.URL
}

// reader runs a program with the address of a card, and tells whether it ended well.
func (l *language) reader(t *testing.T, program string) func(card string) (string, bool) {
	t.Helper()
	return func(card string) (string, bool) {
		text, err := l.runner(t, program, "TARJETA="+card, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")()
		return text, err == nil
	}
}

// cardsShown is where the page says that cards are.
const cardsShown = "https://club.tutienda.mx/t/"

var listItem = regexp.MustCompile(`<li>([^<]*)</li>`)

// shownByPage opens the page with a card's token after #, and returns the lines of its list.
func shownByPage(t *testing.T, page, card string) (string, bool) {
	t.Helper()
	i := strings.LastIndex(card, "/") + 1
	if !strings.Contains(page, cardsShown) {
		t.Error("the page does not say where the cards are")
	}
	page = strings.Replace(page, cardsShown, card[:i], 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}))
	defer site.Close()
	cmd := exec.Command(findChromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=10000", "--dump-dom", site.URL+"/saldo.html#"+card[i:])
	text, err := cmd.Output()
	var lines strings.Builder
	for _, found := range listItem.FindAllSubmatch(text, -1) {
		lines.WriteString(html.UnescapeString(string(found[1])) + "\n")
	}
	return lines.String(), err == nil
}
