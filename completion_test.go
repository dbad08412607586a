package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestCompletion completes in bash what people type.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	text := s.ok("completion bash")
	file := s.file("copia.db", "")
	for line, want := range map[string]string{
		"sello ver":                                    "verify version",
		"sello key c":                                  "create change",
		"sello key create -max-p":                      "-max-points-per-day -max-points-per-operation",
		"sello serve -backup-a":                        "-backup-after",
		"sello serve -every -backup":                   "-backup-after -backup-dir -backup-every -backup-keep",
		"sello import ":                                "customers sales",
		"sello import customers -p":                    "-program",
		"sello completion ":                            "bash zsh fish -db",
		"sello serve -addr ":                           "",
		"sello nothing":                                "",
		"sello restore " + s.dir + "/co":               file,
		"sello verify -db " + s.dir + "/co":            file,
		"sello restore -json " + s.dir + "/co":         file,
		"sello key list -db " + s.dir + "/copia.db -o": "-org",
	} {
		words := strings.Split(line, " ")
		script := text + "\nCOMP_WORDS=(" + strings.Join(words, " ")
		if words[len(words)-1] == "" {
			script += "''"
		}
		script += ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_sello\nprintf '%s\\n' \"${COMPREPLY[@]}\""
		cmd := exec.Command(bash, "--norc", "-c", script)
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", line, got, want, err)
		}
	}
}

// TestCompletionWhole: each shell's completion names every command and flag, and the shell
// can read it.
func TestCompletionWhole(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	for _, shell := range completionShells {
		text := s.ok("completion " + shell)
		for _, c := range completions(commands()) {
			if words := strings.Fields(c.name); len(words) > 0 && !strings.Contains(text, words[len(words)-1]) {
				t.Errorf("%s: nothing about %s", shell, c.name)
			}
			for _, f := range c.flags {
				if !strings.Contains(text, f.Name) {
					t.Errorf("%s: nothing about -%s of %s", shell, f.Name, c.name)
				}
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s", shell)
			continue
		}
		if out, err := exec.Command(path, "-n", s.file("c."+shell, text)).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	if code, _, errs := s.run("completion csh"); code != 2 || !strings.Contains(errs, `no hay para "csh": bash, zsh, fish`) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if !slices.ContainsFunc(completions(commands()), func(c completed) bool { return c.name == "key" && len(c.flags) == 0 && len(c.next) == 5 }) {
		t.Error("sello key is followed by five words")
	}
}
