package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestShownCommands parses every sello command that the documents show: its name, its flags
// and the number of its arguments.
func TestShownCommands(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, name := range []string{"README.md", "docs/first-half-hour.md", "docs/operations.md", "docs/es/guia.md", "docs/configuration.md", "SECURITY.md"} {
		inside := false
		for line := range strings.Lines(readText(t, name)) {
			text := strings.TrimPrefix(strings.TrimSpace(line), "$ ")
			if strings.HasPrefix(text, "```") {
				inside = !inside
			}
			words := shellWords(strings.TrimPrefix(text, "sudo -u sello "))
			if !inside || len(words) < 2 || strings.TrimPrefix(words[0], "./") != "sello" {
				continue
			}
			cmd, n := commandOf(words[1:])
			c := &invocation{environment: environment{getenv: func(string) string { return "" }, stdout: io.Discard}, set: flag.NewFlagSet("", flag.ContinueOnError)}
			c.set.SetOutput(io.Discard)
			c.dbFlag()
			if n == 0 {
				if strings.HasSuffix(words[1], ":") || strings.HasPrefix(words[1], "v") || strings.HasPrefix(words[1], "(") {
					continue // what a command prints
				}
				t.Errorf("%s: no command: %s", name, text)
				continue
			}
			cmd.flags(c)
			if err := c.parse(cmd, words[1+n:]); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
			shown++
		}
	}
	if shown < 40 {
		t.Errorf("%d commands found", shown)
	}
}

// shellWords splits a line as a shell does, up to a comment, a pipe or a redirection.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		case strings.ContainsRune("|>&;", r) || r == '#' && !begun:
			return words
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// shellBlocks are the blocks of a document that are there to be pasted into a shell. A script
// that goes into a file is marked as shell, and not as sh.
func shellBlocks(text string) (blocks []string) {
	for _, part := range strings.Split(text, "\n```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestPasteable: the shell of a Mac knows no comments where lines are typed. Of `mkdir x # in
// production` it makes four directories, and an apostrophe in a comment opens a quotation.
func TestPasteable(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{
		"README.md": 6, "docs/first-half-hour.md": 12, "docs/operations.md": 15, "docs/es/guia.md": 4, "docs/es/panel.md": 1, "docs/integrar.md": 4,
		"docs/configuration.md": 3, "docs/postgresql.md": 8, "docs/performance.md": 0, "docs/reliability.md": 0, "SECURITY.md": 0, "CONTRIBUTING.md": 2,
	} {
		if n := len(shellBlocks(readText(t, name))); n < least {
			t.Errorf("%s: %d blocks to paste", name, n)
		}
		for _, block := range shellBlocks(readText(t, name)) {
			for line := range strings.Lines(block) {
				if text := strings.TrimSpace(line); strings.HasPrefix(text, "#") || strings.Contains(text, " #") {
					t.Errorf("%s: a comment: %s", name, text)
				}
			}
		}
	}
}

// TestReadmePasted pastes the blocks of README's tour and first day into the shells that there
// are.
func TestReadmePasted(t *testing.T) {
	binary := selloCommand(t).Path
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	text := readText(t, "README.md")
	for _, shell := range []string{"bash --norc -i", "zsh -f -i"}[:sized(2, 1)] {
		words := strings.Fields(shell)
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Logf("there is no %s: left out", words[0])
			continue
		}
		t.Run(words[0], func(t *testing.T) {
			s := newTill(t)
			s.file("sello", "#!/bin/sh\n"+runsSello+"=1 exec "+binary+" \"$@\"\n")
			if err := os.Chmod(s.dir+"/sello", 0o755); err != nil {
				t.Fatal(err)
			}
			paste := func(blocks []string, port, first, last string) string {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, words[0], words[1:]...)
				cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "SELLO_ADDR=127.0.0.1:"+port, "HISTFILE=", "PS1=", "PS2=")
				cmd.Stdin = strings.NewReader(first + strings.ReplaceAll(strings.Join(blocks, ""), "127.0.0.1:8080", "127.0.0.1:"+port) + last)
				out, err := cmd.CombinedOutput()
				if ctx.Err() != nil {
					t.Errorf("it does not end: %v", err)
				}
				return string(out)
			}
			server, started := s.demo(" -db " + s.dir + "/demo.db")
			_, port, _ := strings.Cut(strings.TrimSuffix(server.base, "/api/v1"), "127.0.0.1:")
			tour := paste(shellBlocks(section(text, "Tour")), port, "export SELLO_KEY="+started.Key+"\n", "")
			for _, want := range []string{`"name":"José Núñez"`, `"name":"Lucía"`, `"balance":50`, `"pointsPending":25`, `"pointsReversed":`, `"status":"Issued"`, `"status":"Used"`, "redemption_already_used"} {
				if !strings.Contains(tour, want) {
					t.Errorf("the tour does not say %s:\n%s", want, tour)
				}
			}
			server.stop()
			day := paste(shellBlocks(section(text, "The first day")), port, "", "kill %1\nwait\n")
			for _, want := range []string{"cafe-luna: 126 cambios aplicados", `"slug":"cafe-luna"`, "/panel/invitacion/", "todo cuadra", "3 filas: 3 nuevos"} {
				if !strings.Contains(day, want) {
					t.Errorf("the first day does not say %s:\n%s", want, day)
				}
			}
		})
	}
}
