package metrics

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

// A family is what a server tells under one name.
type family struct {
	histogram bool
	labels    map[string]bool
}

// TestPrometheus serves the sample organization and compares what Prometheus makes of
// its figures with the alerts, the dashboard and the manual.
func TestPrometheus(t *testing.T) {
	text := scrape(t)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	families := familiesOf(t, text)
	t.Run("families", func(t *testing.T) { checkFamilies(t, families) })
	t.Run("alerts", func(t *testing.T) { checkAlerts(t, families) })
	t.Run("dashboard", func(t *testing.T) { checkDashboard(t, families) })
	t.Run("manual", func(t *testing.T) { checkManual(t, families) })
}

// scrape builds the server, sends it a few requests and returns its figures.
func scrape(t *testing.T) []byte {
	dir := t.TempDir()
	binary := filepath.Join(dir, "sello.exe")
	if out, err := exec.Command("go", "build", "-C", root, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	backups := filepath.Join(dir, "backups")
	if err := os.Mkdir(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := issue(t, dir)
	cmd := exec.Command(binary, "demo", "-json", "-db", filepath.Join(dir, "a.db"), "-addr", "127.0.0.1:0", "-metrics", "127.0.0.1:0",
		"-tls-cert", certFile, "-tls-key", keyFile, "-backup-every", "1h", "-backup-dir", backups, "-backup-after", "go version")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		cmd.Wait()
	})
	addr := make(chan string, 1)
	backedUp := make(chan bool, 1)
	go func() {
		defer close(ended)
		for log := bufio.NewScanner(errs); log.Scan(); {
			var line struct{ Msg, Addr string }
			json.Unmarshal(log.Bytes(), &line)
			switch line.Msg {
			case "metrics":
				addr <- line.Addr
			case "backup":
				backedUp <- true
			}
		}
	}()
	var demo struct{ Key, Base, CustomerID string }
	if err := json.NewDecoder(out).Decode(&demo); err != nil {
		t.Fatal(err)
	}
	_, base, _ := strings.Cut(demo.Base, "://")
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/customers", ""},
		{"GET", "/points/customers/" + demo.CustomerID + "/balance", ""},
		{"POST", "/transactions", `{"customerId":"` + demo.CustomerID + `","totalAmount":150}`},
		{"POST", "/transactions", `{`},
		{"BREW", "/coffee", ""},
	} {
		req, err := http.NewRequest(r.method, "https://"+base+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+demo.Key)
		req.Header.Set("Content-Type", "application/json")
		send(t, req)
	}
	select {
	case <-backedUp:
	case <-time.After(time.Minute):
		t.Fatal("no backup was made")
	}
	req, err := http.NewRequest("GET", "http://"+<-addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, text := send(t, req)
	if got := expfmt.ResponseFormat(res.Header); res.StatusCode != http.StatusOK || got.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("%d, %s", res.StatusCode, got)
	}
	return text
}

// issue writes a certificate for nobody, with its key, into two files.
func issue(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func send(t *testing.T, req *http.Request) (*http.Response, []byte) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{ // the certificate is nobody's
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

func familiesOf(t *testing.T, text []byte) map[string]family {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]family{}
	for name, of := range parsed {
		f := family{labels: map[string]bool{"job": true, "instance": true}}
		for _, m := range of.Metric {
			if m.Histogram != nil {
				f.histogram, f.labels["le"] = true, true
			}
			for _, l := range m.Label {
				f.labels[l.GetName()] = true
			}
		}
		families[name] = f
	}
	return families
}

// checkFamilies checks that a server with backups tells all that it should.
func checkFamilies(t *testing.T, families map[string]family) {
	for _, name := range []string{
		"sello_http_requests_total", "sello_http_request_duration_seconds", "sello_http_unavailable_total", "sello_limit_refusals_total",
		"sello_connections_open", "sello_connections_max", "sello_connections_refused_total",
		"sello_write_queue_depth", "sello_write_queue_max", "sello_write_queue_wait_seconds",
		"sello_store_commit_duration_seconds", "sello_store_checkpoint_lag_seconds", "sello_store_checkpoints_total",
		"sello_store_memtable_bytes", "sello_store_journal_bytes", "sello_store_file_bytes", "sello_store_writes_refused", "sello_store_failed",
		"sello_sweep_lag_seconds", "sello_clock_state",
		"sello_tls_certificate_expiry_timestamp_seconds",
		"sello_backup_scheduled", "sello_backup_last_success_timestamp_seconds", "sello_backup_failures_total", "sello_backup_interval_seconds",
		"sello_backup_command_last_success_timestamp_seconds", "sello_backup_command_failures_total",
		"sello_build_info", "sello_schema_version", "process_start_time_seconds",
		"go_goroutines", "go_memory_classes_heap_objects_bytes", "go_sched_pauses_total_gc_seconds", "go_info",
	} {
		if _, ok := families[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

// checkExpression parses an expression, and checks that its names and labels are told.
func checkExpression(t *testing.T, families map[string]family, where, text string) {
	t.Helper()
	expr, err := parser.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	known := map[string]bool{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		f, ok := families[selector.Name]
		if base := histogramPart.ReplaceAllString(selector.Name, ""); !ok && families[base].histogram {
			f, ok = families[base], true
		}
		if selector.Name == "up" {
			f, ok = family{labels: map[string]bool{"job": true, "instance": true}}, true
		}
		if !ok {
			t.Errorf("%s: nobody tells %s", where, selector.Name)
		}
		for _, m := range selector.LabelMatchers {
			if m.Name != model.MetricNameLabel && !f.labels[m.Name] {
				t.Errorf("%s: %s has no label %s", where, selector.Name, m.Name)
			}
		}
		maps.Copy(known, f.labels)
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, label := range a.Grouping {
				if !known[label] {
					t.Errorf("%s: nothing has a label %s", where, label)
				}
			}
		}
		return nil
	})
}

var histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)

// checkAlerts reads the alerts as Prometheus does.
func checkAlerts(t *testing.T, families map[string]family) {
	groups, errs := rulefmt.ParseFile(filepath.Join(root, "docs/prometheus/alerts.yml"), false)
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		return
	}
	manual := read(t, "docs/operations.md")
	rules := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			rules++
			checkExpression(t, families, r.Alert, r.Expr)
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s has no summary, or no severity", r.Alert)
			}
			if !strings.Contains(manual, "`"+r.Alert+"`") {
				t.Errorf("docs/operations.md says nothing of %s", r.Alert)
			}
		}
	}
	if rules < 10 {
		t.Errorf("%d alerts", rules)
	}
}

// A dashboard is what is looked at of Grafana's model of one.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []struct {
		ID         int
		Type       string
		Title      string
		GridPos    struct{ X, Y, W, H int }
		Datasource struct{ Type, UID string }
		Targets    []struct {
			RefID, Expr, LegendFormat string
			Datasource                struct{ Type, UID string }
		}
	}
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
}

// checkDashboard checks what Grafana needs to load the dashboard, and its expressions.
func checkDashboard(t *testing.T, families map[string]family) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "docs/prometheus/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 || len(d.Panels) < 10 {
		t.Errorf("%q %q, schema %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			checkExpression(t, families, "variable "+v.Name, m[1])
		} else if v.Type == "query" {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || !slices.Contains([]string{"row", "stat", "timeseries", "table"}, p.Type) {
			t.Errorf("panel %d %q is a %s, or there twice", p.ID, p.Title, p.Type)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if taken[[2]int{x, y}] != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beside the grid", p.Title, taken[[2]int{x, y}])
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Datasource.Type != "prometheus" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: target %q of %v", p.Title, target.RefID, target.Datasource)
			}
			refs[target.RefID] = true
			expr := variable.ReplaceAllStringFunc(target.Expr, func(name string) string {
				if !variables[name[1:]] {
					t.Errorf("panel %q: there is no variable %s", p.Title, name)
				}
				return "5m" // a range, or the value of a label
			})
			checkExpression(t, families, "panel "+p.Title, expr)
		}
		if len(refs) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), \w+\)$`)
	variable    = regexp.MustCompile(`\$\w+`)
)

// checkManual compares the names in docs/operations.md with those that are told.
func checkManual(t *testing.T, families map[string]family) {
	_, section, _ := strings.Cut(read(t, "docs/operations.md"), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for _, m := range sellosName.FindAllStringSubmatch(section, -1) {
		named[m[1]] = true
		if m[2] != "" { // `sello_connections_open`, `_max`
			named[m[1][:strings.LastIndex(m[1], "_")]+m[2]] = true
		}
	}
	for name := range named {
		if _, ok := families[name]; !ok {
			t.Errorf("docs/operations.md has %s, which nobody tells", name)
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "sello_") && !named[name] {
			t.Errorf("docs/operations.md says nothing of %s", name)
		}
	}
}

var sellosName = regexp.MustCompile("`(sello_\\w+)`(?:, `(_\\w+)`)?")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
