package main

import (
	"flag"
	"io"
	"strings"
	"testing"
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
			if !inside || len(words) < 2 || words[0] != "sello" {
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
