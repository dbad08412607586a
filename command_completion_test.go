package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sello/internal/completion"
)

// TestCompletion completes in bash what people type.
func TestCompletion(t *testing.T) {
	t.Parallel()
	skipShort(t)
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
		"sello import ":                                "customers sales points",
		"sello import customers -p":                    "-program",
		"sello completion ":                            "bash zsh fish -db",
		"sello serve -addr ":                           "",
		"sello user invite -role ":                     "owner admin manager cashier viewer developer",
		"sello user invite -role c":                    "cashier",
		"sello key create -role c":                     "",
		"sello serve -log-level ":                      "info warn error",
		"sello demo -log-requests e":                   "errors",
		"sello import sales -dates ":                   "dmy mdy",
		"sello import customers -encoding i":           "ibm437 ibm850",
		"sello import customers -decimal p":            "punto",
		"sello audit -action key.c":                    "key.created key.changed",
		"sello key create -scopes cust":                "customers:read customers:write customers:erase",
		"sello key create -scopes customers : w":       "write",
		"sello key create -scopes customers : ":        "read write erase",
		"sello key create -scopes audit : read,cust":   "read,customers:read read,customers:write read,customers:erase",
		"sello key change -scopes x:read,points:w":     "write",
		"sello nothing":                                "",
		"sello restore " + s.dir + "/co":               file,
		"sello verify -db " + s.dir + "/co":            file,
		"sello restore -json " + s.dir + "/co":         file,
		"sello key list -db " + s.dir + "/copia.db -o": "-org",
	} {
		words := strings.Split(line, " ")
		script := text + "\nCOMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\nCOMP_WORDS=(" + strings.Join(words, " ")
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
	for _, shell := range completion.Shells {
		text := s.ok("completion " + shell)
		for _, c := range completions(commands()).Commands {
			if words := strings.Fields(c.Name); len(words) > 0 && !strings.Contains(text, words[len(words)-1]) {
				t.Errorf("%s: nothing about %s", shell, c.Name)
			}
			for _, f := range c.Flags {
				if !strings.Contains(text, f.Name) {
					t.Errorf("%s: nothing about -%s of %s", shell, f.Name, c.Name)
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
	if text := s.ok("completion zsh"); !strings.HasPrefix(text, "#compdef sello\n") || !strings.HasSuffix(text, "\tcompdef _sello sello\nfi\n") {
		t.Error("zsh: it is no function of $fpath, or completes nothing where it is sourced")
	}
	if code, _, errs := s.run("completion csh"); code != 2 || !strings.Contains(errs, `no hay para "csh": bash, zsh, fish`) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if !slices.ContainsFunc(completions(commands()).Commands, func(c *completion.Command) bool { return c.Name == "key" && len(c.Flags) == 0 && len(c.Next) == 6 }) {
		t.Error("sello key is followed by six words")
	}
}

// TestCompletionSourced: zsh takes the completion by source, and as a function of $fpath.
func TestCompletionSourced(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("no zsh")
	}
	file := s.file("_sello", s.ok("completion zsh"))
	const few = "fpath=(${^fpath}/compinit(N:h)); " // compinit reads all that is in $fpath
	for _, script := range []string{
		few + "autoload -Uz compinit && compinit -D; source <(cat " + file + "); print ${_comps[sello]}",
		few + "fpath=(" + s.dir + " $fpath); autoload -Uz compinit && compinit -D -u; print ${_comps[sello]}",
		"source " + file + "; print ${_comps[sello]}",
	}[sized(0, 1):] { // the first only in the long form
		cmd := exec.Command(zsh, "-f", "-c", script)
		cmd.Env = append(os.Environ(), "ZDOTDIR="+s.dir, "HOME="+s.dir)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "_sello\n" {
			t.Errorf("%s: %q, %v", script, out, err)
		}
	}
}
