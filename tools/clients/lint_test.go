package clients

import (
	"path/filepath"
	"strings"
	"testing"
)

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSpectral checks openapi.json by the ruleset spectral:oas. A warning is a failure.
func TestSpectral(t *testing.T) {
	t.Parallel()
	cmd := node(packages(t), "spectral", "lint", "--ruleset", abs(t, "spectral.yaml"), "--fail-severity", "hint", abs(t, root+"/openapi.json"))
	text, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "No results with a severity of 'hint' or higher found!") {
		t.Error(text)
	}
}

// TestRedocly checks openapi.json by Redocly's recommended rules. A warning is a failure.
func TestRedocly(t *testing.T) {
	t.Parallel()
	cmd := node(packages(t), "redocly", "lint", "--config", abs(t, "redocly.yaml"), abs(t, root+"/openapi.json"))
	text, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "Your API description is valid.") || strings.Contains(text, "You have") {
		t.Error(text)
	}
}
