package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clone returns another copy of the repository, or skips the test.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", "../..", dir).CombinedOutput(); err != nil {
		t.Skipf("not in a repository of git: %s", out)
	}
	return dir
}

// TestReproducible makes a release twice, from two copies of the repository. Every file is
// the same to the byte, and tells the commit.
func TestReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles sello")
	}
	var sums [2]string
	var last *release
	for i := range sums {
		last = &release{out: filepath.Join(t.TempDir(), "dist"), repository: clone(t), commit: "HEAD", targets: []string{"linux/amd64"}}
		if err := last.make(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(last.out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(b)
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") != 3 {
		t.Errorf("once\n%s\nand then\n%s", sums[0], sums[1])
	}
	t.Log("\n" + sums[0])
	var list struct {
		BOMFormat  string
		Components []struct{ Name, PURL string }
	}
	b, err := os.ReadFile(filepath.Join(last.out, "sello-"+last.version+".cdx.json"))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil || list.BOMFormat != "CycloneDX" || !strings.Contains(string(b), `"pkg:golang/go.etcd.io/bbolt@`) || !strings.Contains(string(b), `"pkg:golang/std@1.`) {
		t.Errorf("%v\n%s", err, b)
	}
	packages, _ := filepath.Glob(filepath.Join(last.out, "*.deb"))
	if _, err := exec.LookPath("dpkg-deb"); err != nil || len(packages) != 1 {
		t.Logf("no dpkg-deb, or no package: %v, %v", packages, err)
		return
	}
	for _, args := range [][]string{{"--info"}, {"--contents"}} {
		out, err := exec.Command("dpkg-deb", append(args, packages[0])...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "sello") {
			t.Errorf("dpkg-deb %s: %v\n%s", args[0], err, out)
		}
	}
	out, err := exec.Command("dpkg-deb", "--fsys-tarfile", packages[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n#SELLO_ADDR=127.0.0.1:8080\n", "\n#SELLO_DB=/var/lib/sello/sello.db\n", "\n#SELLO_BACKUP_EVERY=1h\n", "\n#SELLO_TLS_CERT=\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("/etc/sello.env lacks%q", want)
		}
	}
	if listed, err := exec.Command("dpkg-deb", "--contents", packages[0]).Output(); err != nil || !regexp.MustCompile(`(?m)^-rw-------.* \./etc/sello\.env$`).Match(listed) {
		t.Errorf("others can read /etc/sello.env: %v\n%s", err, listed) // it may have the password of a database
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Log("no lintian")
	} else if out, err := exec.Command("lintian", "--allow-root", "--fail-on", "warning,error", packages[0]).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	if err := (&release{out: last.out}).make(); err == nil {
		t.Error("the directory is not empty")
	}
}

// TestArchives: the same files give the same bytes, whatever the time of day.
func TestArchives(t *testing.T) {
	files := []file{{"d/a", 0o755, []byte("a")}, {"d/b", 0o644, nil}}
	at := time.Unix(1e9, 0).UTC()
	if !bytes.Equal(tarred(files, at), tarred(files, at)) || !bytes.Equal(zipped(files, at), zipped(files, at)) {
		t.Error("they differ")
	}
	if bytes.Equal(tarred(files, at), tarred(files, at.Add(time.Minute))) {
		t.Error("the time is not in them")
	}
}

const packaging = "../../packaging"

// TestUnit: systemd takes the unit, and finds it hardened.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	unit, err := os.ReadFile(packaging + "/systemd/sello.service")
	if err != nil {
		t.Fatal(err)
	}
	// The program and the user are there once sello is installed.
	text := strings.Replace(string(unit), "ExecStart=sello serve", "ExecStart=/bin/sh", 1)
	path := filepath.Join(t.TempDir(), "sello.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput(); err != nil || strings.Contains(string(out), "sello.service:") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", path).CombinedOutput()
	if err != nil && strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd has no --offline")
	}
	m := regexp.MustCompile(`Overall exposure level for sello.service: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if level, _ := strconv.ParseFloat(string(m[1]), 64); level > 2 {
		t.Errorf("exposure %s, at most 2.0", m[1])
	}
}

// TestPlist: launchd's file is XML whose keys and values alternate.
func TestPlist(t *testing.T) {
	f, err := os.Open(packaging + "/launchd/sello.plist")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, key := xml.NewDecoder(f), false
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if key && e.Name.Local == "key" {
				t.Errorf("at byte %d: a key without a value", d.InputOffset())
			}
			key = e.Name.Local == "key"
		}
	}
}
