package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkDay runs a program that lives a till's day with a server of its own, and looks at
// what it left there.
func checkDay(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	s := serve(t)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, s.env(s.Base)...)
	cmd.Env = append(cmd.Env, "SELLO_ORIGIN="+strings.TrimSuffix(s.Base, "/api/v1"))
	text, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	d := s.dayOf(t, "5587654321")
	if d.customers != 1 || d.sales != 1 || d.vouchersUsed != 1 || d.movements != text[:max(0, len(text)-1)]+" " {
		t.Errorf("the server has %+v, and the client saw %s", d, text)
	}
}

// TestOapiCodegen generates the Go client of oapi-codegen and runs till/main.go with it.
func TestOapiCodegen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := filepath.Join(dir, "api.go")
	if _, err := output(exec.Command("go", "tool", "oapi-codegen", "-config", "till/oapi-codegen.yaml", "-o", made, root+"/openapi.json")); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{abs(t, "till/api.go"): made}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "till")
	if _, err := output(exec.Command("go", "build", "-tags", "generated", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./till")); err != nil {
		t.Fatal(err)
	}
	checkDay(t, exec.Command(program))
}

// TestOpenapiTypescript generates the types of openapi-typescript, compiles till/till.ts with
// them and openapi-fetch, and runs it.
func TestOpenapiTypescript(t *testing.T) {
	t.Parallel()
	modules, dir := packages(t), t.TempDir()
	for _, name := range []string{"package.json", "till/till.ts", "till/tsconfig.json"} {
		if err := copyFile(name, filepath.Join(dir, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{
		node(dir, "openapi-typescript", abs(t, root+"/openapi.json"), "-o", "api.d.ts"),
		node(dir, "tsc"),
	} {
		cmd.Dir = dir
		if _, err := output(cmd); err != nil {
			t.Fatal(err)
		}
	}
	checkDay(t, exec.Command("node", filepath.Join(dir, "made", "till.js")))
}

// TestVersions: docs/integrar.md names the versions of the generators that are tested here.
func TestVersions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/docs/integrar.md")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var npm struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal(raw, &npm); err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"openapi-fetch", "openapi-typescript", "typescript"} {
		if want := " " + name + "@" + npm.DevDependencies[name]; !strings.Contains(string(text), want) {
			t.Errorf("docs/integrar.md does not name%s", want)
		}
	}
	for _, name := range []string{"github.com/oapi-codegen/runtime", "github.com/oapi-codegen/oapi-codegen/v2"} {
		_, version, _ := strings.Cut(string(module), name+" ")
		version = strings.Fields(version)[0]
		if want := regexp.MustCompile(regexp.QuoteMeta(name) + `(/\S+)?@` + regexp.QuoteMeta(version) + `\s`); !want.Match(text) {
			t.Errorf("docs/integrar.md does not name %s@%s", name, version)
		}
	}
}
