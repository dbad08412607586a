package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage looks at /docs in Chromium: WCAG AA by axe, light at 320 pixels and dark at 1280, the
// other way round too in the long form; no message of the console, no request, nothing wider than the window; links and
// details without scripts. SELLO_SCREENSHOTS is a directory for screenshots.
func TestPage(t *testing.T) {
	t.Parallel()
	chromium := findChromium(t)
	dir := packages(t)
	screenshots := os.Getenv("SELLO_SCREENSHOTS")
	if screenshots == "" {
		screenshots = t.TempDir()
	}
	if err := copyFile("page.mjs", filepath.Join(dir, "page.mjs")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join(dir, "page.mjs"), chromium, strings.TrimSuffix(serve(t).Base, "/api/v1")+"/docs", screenshots)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	var result struct{ Looked, Wrong []string }
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err != nil {
		t.Fatalf("page.mjs: %v\n%s", err, text)
	}
	for _, wrong := range result.Wrong {
		t.Error(wrong)
	}
	if len(result.Looked) < 3 {
		t.Errorf("only %v", result.Looked)
	}
	for _, looked := range result.Looked {
		t.Log(looked)
	}
}
