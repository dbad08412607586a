package panel

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
)

const root = "../.."

// temp is for what all tests share: the binary, and the packages of npm.
var temp string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sello-panel-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	temp = dir
	code := m.Run()
	if stocked.shop != nil {
		if err := stocked.shop.ended(); err != nil {
			fmt.Fprintf(os.Stderr, "sello demo: %v\n%s", err, stocked.shop.stderr)
			code = 1
		}
	}
	unsure.print()
	if chromium.close != nil {
		chromium.close()
	}
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

var unreachable = regexp.MustCompile(`ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EAI_AGAIN|ERR_SOCKET_TIMEOUT|ENOTCACHED`)

// readAxe returns the text of axe-core, from npm.
var readAxe = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(temp, "npm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	if _, err := output(cmd); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
})

// withAxe gives axe to each page that the tab opens: to send it to each costs more than to run
// it.
func withAxe(p *tab) {
	if text, err := readAxe(); err == nil { // else the test skips when it comes to it
		call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: text})
	}
}

// axeText is the text of axe; the test skips where there is none.
func axeText(t *testing.T) string {
	t.Helper()
	need(t, "npm", "npm")
	text, err := readAxe()
	if err != nil && unreachable.MatchString(err.Error()) {
		t.Skipf("the npm registry cannot be reached: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// axe returns what axe finds wrong on the page: WCAG 2.2 AA, best practice, and the size of
// targets, which axe leaves out unless it is named.
func (p *tab) axe() (wrong []string) {
	p.t.Helper()
	var there bool
	if p.eval(`typeof axe === 'object'`, &there); !there {
		p.eval(axeText(p.t)+"; 0", nil)
	}
	var found struct {
		Violations []struct {
			ID, Help string
			Nodes    []struct {
				HTML string
				Any  []struct{ Message string }
			}
		}
		Passes     int
		Incomplete []string
	}
	p.eval(`axe.run({resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], rules: {'target-size': {enabled: true}}})
		.then(r => ({violations: r.violations, passes: r.passes.length, incomplete: r.incomplete.map(i => i.id)}))`, &found)
	if found.Passes == 0 {
		p.t.Error("axe looked at nothing")
	}
	unsure.add(found.Incomplete)
	for _, v := range found.Violations {
		why := ""
		if any := v.Nodes[0].Any; len(any) > 0 {
			why = any[0].Message
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s: %d times, such as %.200s %s", v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, why))
	}
	return wrong
}

// unsure counts, by rule, the pages on which axe cannot tell.
var unsure rulesCounted

type rulesCounted struct {
	mu    sync.Mutex
	pages map[string]int
}

func (c *rulesCounted) add(rules []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[string]int{}
	}
	for _, rule := range rules {
		c.pages[rule]++
	}
}

func (c *rulesCounted) print() {
	for _, rule := range slices.Sorted(maps.Keys(c.pages)) {
		fmt.Printf("axe cannot tell: %s on %d pages\n", rule, c.pages[rule])
	}
}

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
