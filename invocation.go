package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An environment is what a command sees of the process it runs in.
type environment struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// A command is one word of the command line, or two.
type command struct {
	name  string
	args  string // what follows the flags
	about string
	run   func(ctx context.Context, c *invocation) error
	flags func(c *invocation)
}

// An invocation is a command with its flags and arguments.
type invocation struct {
	environment
	set     *flag.FlagSet
	earlier map[string]string // names of flags by those they had before
	given   map[string]bool   // flags, on the command line or in the environment
	args    []string

	db   string
	json bool
	more string // what help says beyond the flags

	addr              string
	trusted           string
	maxConns          int
	maxConnsPerSource int
	backups           backupPlan
	memory            int64 // bytes; 0: by the machine

	org    string
	dryRun bool
	schema bool
	since  string
	ignore []string
	raw    bool
	key    keyRequest
	scopes string
	ips    string

	noCopy  bool // when the file is migrated
	memSize int  // for tests, as in disk.Options
}

// parse reads flags, before, between or after the arguments. A flag that is
// not given comes from its environment variable, if that is set.
func (c *invocation) parse(cmd command, args []string) error {
	for {
		if err := c.set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				c.help(cmd)
				return err
			}
			return &usageError{flagFault(c.set, err)}
		}
		if args = c.set.Args(); len(args) == 0 {
			break
		}
		c.args, args = append(c.args, args[0]), args[1:]
	}
	c.given = map[string]bool{}
	c.set.Visit(func(f *flag.Flag) { c.given[c.todaysName(f.Name)] = true })
	var err error
	c.set.VisitAll(func(f *flag.Flag) { // in the order of names, in which today's come before the earlier ones
		name, value := c.todaysName(f.Name), c.getenv(variable(f.Name))
		if c.given[name] || value == "" || err != nil {
			return
		}
		c.given[name] = true
		if setErr := c.set.Set(f.Name, value); setErr != nil {
			err = &usageError{badValue(variable(f.Name), strconv.Quote(value), f)}
		}
	})
	if err != nil {
		return err
	}
	want := len(strings.Fields(cmd.args))
	if c.schema {
		want = 0
	}
	if len(c.args) != want {
		if want == 0 {
			return usageErrorf("%s no lleva argumentos: %q", cmd.name, c.args)
		}
		return usageErrorf("uso: sello %s [opciones] %s", cmd.name, cmd.args)
	}
	return nil
}

// earlierName lets a flag be given by the name that it had before, which help does
// not tell.
func (c *invocation) earlierName(earlier, name string) {
	if c.earlier == nil {
		c.earlier = map[string]string{}
	}
	c.earlier[earlier] = name
	f := c.set.Lookup(name)
	c.set.Var(f.Value, earlier, f.Usage)
}

// todaysName is the name of a flag that may be given by an earlier one.
func (c *invocation) todaysName(name string) string { return cmp.Or(c.earlier[name], name) }

func variable(flagName string) string {
	return "SELLO_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func (c *invocation) help(cmd command) {
	fmt.Fprintf(c.stdout, "Uso: sello %s\n\n%s.\n\n", strings.TrimSpace(cmd.name+" [opciones] "+cmd.args), strings.ToUpper(cmd.about[:1])+cmd.about[1:])
	c.set.VisitAll(func(f *flag.Flag) {
		if c.earlier[f.Name] != "" {
			return
		}
		kind, about := flag.UnquoteUsage(f)
		fmt.Fprintf(c.stdout, "  %s\n        %s", strings.TrimSpace("-"+f.Name+" "+kind), about)
		if !slices.Contains([]string{"", "false", "0", "0s"}, f.DefValue) {
			fmt.Fprintf(c.stdout, " (por omisión %s)", f.DefValue)
		}
		fmt.Fprintf(c.stdout, " [%s]\n", variable(f.Name))
	})
	if c.more != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", c.more)
	}
}

func jsonFlag(c *invocation) {
	c.set.BoolVar(&c.json, "json", false, "escribe el resultado en JSON")
}

func orgJSONFlags(c *invocation) {
	orgFlag(c)
	jsonFlag(c)
}

func orgFlag(c *invocation) {
	c.set.StringVar(&c.org, "org", "", "`slug` de la organización; puede faltar donde hay una sola")
}

func (c *invocation) print(v any, text func(io.Writer)) error {
	if !c.json {
		text(c.stdout)
		return nil
	}
	e := json.NewEncoder(c.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func splitList(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
