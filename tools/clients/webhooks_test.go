package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStandardWebhooks sends webhooks to a receiver that checks them with the reference
// library, before and after a change of secret.
func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	modules := packages(t)
	s := serve(t, "-webhook-allow", "127.0.0.0/8")

	dir := t.TempDir()
	if err := copyFile("till/receiver.mjs", filepath.Join(dir, "receiver.mjs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	receiver := exec.Command("node", filepath.Join(dir, "receiver.mjs"))
	receiver.Stderr = os.Stderr
	stdin, err := receiver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := receiver.StdoutPipe()
	if err == nil {
		err = receiver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Wait()
	defer stdin.Close()
	lines := bufio.NewScanner(stdout)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the receiver ended: %v", lines.Err())
		}
		return lines.Text()
	}
	port := next()

	var document map[string]any
	if err := json.Unmarshal([]byte(s.command(t, "", "export")), &document); err != nil {
		t.Fatal(err)
	}
	document["webhooks"] = []any{map[string]any{"key": "crm", "url": "http://127.0.0.1:" + port + "/", "events": []string{"customer.*"}}}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	s.command(t, string(raw), "apply", "-")

	for i := range 2 { // the second time both secrets sign, and the receiver has the newer one
		var made struct{ Secret string }
		if err := json.Unmarshal([]byte(s.command(t, "", "webhook", "secret", "crm", "-json")), &made); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(stdin, made.Secret)
		for _, want := range []string{"ready", "webhook.test altered=refused", "customer.created altered=refused"} {
			switch {
			case strings.HasPrefix(want, "webhook.test"):
				s.command(t, "", "webhook", "test", "crm")
			case strings.HasPrefix(want, "customer"):
				s.post(t, "/customers", fmt.Sprintf(`{"phoneNumber": "558765432%d"}`, i))
			}
			if got := next(); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
}

// command runs a command on the server's file.
func (s *server) command(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	path, err := buildSello()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, "-db", s.db)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sello %v: %v", args, err)
	}
	return string(out)
}

// post writes to a path of the API and returns the answer.
func (s *server) post(t *testing.T, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequest("POST", s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("POST %s: %s %s %v", path, res.Status, text, err)
	}
	return text
}
