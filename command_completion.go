package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Completions for shells are made from the table of commands and their flags.

// A completed is what can be typed after the words of a command.
type completed struct {
	name   string // the words typed so far; "" for none
	next   []string
	abouts map[string]string
	flags  []*flag.Flag
	files  bool // its argument is a file

	choices map[string][]string // values of flags
}

// isList reports whether a flag takes several values, with commas between them.
func isList(f *flag.Flag) bool {
	kind, _ := flag.UnquoteUsage(f)
	return kind == "lista"
}

// completions returns an entry for each command, and for each first word of several.
func completions(table []command) []completed {
	byName := map[string]*completed{}
	var list []*completed
	entry := func(name string) *completed {
		if byName[name] == nil {
			byName[name] = &completed{name: name, abouts: map[string]string{}}
			list = append(list, byName[name])
		}
		return byName[name]
	}
	entry("")
	for _, cmd := range table {
		words := strings.Fields(cmd.name)
		for i, word := range words {
			before := entry(strings.Join(words[:i], " "))
			if !slices.Contains(before.next, word) {
				before.next = append(before.next, word)
			}
			if i == len(words)-1 {
				before.abouts[word] = cmd.about
			}
		}
		c := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		c.dbFlag()
		cmd.flags(c)
		e := entry(cmd.name)
		e.files, e.choices = strings.HasPrefix(cmd.args, "ARCHIVO"), c.choices
		c.set.VisitAll(func(f *flag.Flag) {
			e.flags = append(e.flags, f)
		})
		for argument := range strings.FieldsSeq(cmd.args) {
			if choices := strings.Split(argument, "|"); len(choices) > 1 {
				e.next = choices
			}
		}
	}
	var all []completed
	for _, e := range list {
		all = append(all, *e)
	}
	return all
}

// takesFile reports whether the value of a flag is a path.
func takesFile(f *flag.Flag) bool {
	kind, _ := flag.UnquoteUsage(f)
	return kind == "archivo" || kind == "directorio"
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

var completionShells = []string{"bash", "zsh", "fish"}

func completionFlags(c *invocation) {
	c.more = `bash: sello completion bash > /etc/bash_completion.d/sello
zsh:  sello completion zsh > un directorio de $fpath, con el nombre _sello,
      o source <(sello completion zsh) en ~/.zshrc
fish: sello completion fish > ~/.config/fish/completions/sello.fish`
}

func runCompletion(_ context.Context, c *invocation) error {
	all := completions(c.table)
	switch c.args[0] {
	case "bash":
		completeBash(c.stdout, all)
	case "zsh":
		completeZsh(c.stdout, all)
	case "fish":
		completeFish(c.stdout, all)
	default:
		return usageErrorf("no hay para %q: %s", c.args[0], strings.Join(completionShells, ", "))
	}
	return nil
}

const bashHead = `# bash completion for sello
_sello() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} name= word
	local words= valued= pathed= files= values= listed= before= i
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in -*) break ;; esac
		case "$name $word" in
`

const bashTail = `	esac
	i=$COMP_CWORD word=$cur # bash splits words at colons
	while ((i > 2)) && [[ $word == :* || ${COMP_WORDS[i-1]} == *: ]]; do word=${COMP_WORDS[--i]}$word; done
	case "$name ${COMP_WORDS[i-1]}" in
%s	esac
	if [ -n "$values" ]; then
		[ -z "$listed" ] || before=${word%%"${word##*,}"}
		COMPREPLY=($(compgen -P "$before" -W "$values" -- "${word#"$before"}"))
		[[ $COMP_WORDBREAKS != *:* || $word != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${word%%"${word##*:}"}"}")
		return
	fi
	case " $pathed " in *" $prev "*) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
	case " $valued " in *" $prev "*) return ;; esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	[ -z "$files" ] || COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -o filenames -F _sello sello
`

func completeBash(w io.Writer, all []completed) {
	fmt.Fprint(w, bashHead)
	for _, c := range all {
		if c.name != "" {
			fmt.Fprintf(w, "\t\t\t%q) name=%q ;;\n", " "+c.name, " "+c.name)
		}
	}
	fmt.Fprint(w, "\t\tesac\n\tdone\n\tcase $name in\n")
	for _, c := range all {
		words, valued, pathed, files := slices.Clone(c.next), []string(nil), []string(nil), ""
		for _, f := range c.flags {
			words = append(words, "-"+f.Name)
			switch {
			case takesFile(f):
				pathed = append(pathed, "-"+f.Name)
			case !isSwitch(f):
				valued = append(valued, "-"+f.Name)
			}
		}
		if c.files {
			files = "1"
		}
		name := ""
		if c.name != "" {
			name = " " + c.name
		}
		fmt.Fprintf(w, "\t\t%q) words=%q valued=%q pathed=%q files=%q ;;\n", name, strings.Join(words, " "), strings.Join(valued, " "), strings.Join(pathed, " "), files)
	}
	fmt.Fprintf(w, bashTail, bashValues(all))
}

// bashValues are the cases of flags with some values.
func bashValues(all []completed) string {
	var values strings.Builder
	for _, c := range all {
		for _, f := range c.flags {
			if list := c.choices[f.Name]; list != nil {
				listed := ""
				if isList(f) {
					listed = "1"
				}
				fmt.Fprintf(&values, "\t\t%q) values=%q listed=%q ;;\n", " "+c.name+" -"+f.Name, strings.Join(list, " "), listed)
			}
		}
	}
	return values.String()
}

// shortAbout is the first part of a description, on one line and without quotes of shells.
func shortAbout(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	return strings.NewReplacer("'", "’", "`", "", `"`, "", "[", "(", "]", ")", ":", " ", "\\", "").Replace(text)
}

func aboutFlag(f *flag.Flag) string {
	_, about := flag.UnquoteUsage(f)
	return shortAbout(about)
}

func completeZsh(w io.Writer, all []completed) {
	fmt.Fprint(w, "#compdef sello\n_sello() {\n\tlocal name=\"\" word\n\tlocal -a next\n\tfor word in ${words[2,CURRENT-1]}; do\n\t\tcase \"$name $word\" in\n")
	for _, c := range all {
		if c.name != "" {
			fmt.Fprintf(w, "\t\t\t' %s') name=' %[1]s' ;;\n", c.name)
		}
	}
	fmt.Fprint(w, "\t\tesac\n\tdone\n\tcase $name in\n")
	for _, c := range all {
		name := ""
		if c.name != "" {
			name = " " + c.name
		}
		fmt.Fprintf(w, "\t\t'%s')\n\t\t\tnext=(", name)
		for _, word := range c.next {
			fmt.Fprintf(w, " '%s:%s'", word, shortAbout(c.abouts[word]))
		}
		fmt.Fprint(w, " )\n\t\t\t(( $#next )) && _describe -t commands sello next\n\t\t\t_arguments")
		for _, f := range c.flags {
			value := ":valor"
			switch {
			case takesFile(f):
				value = ":archivo:_files"
			case c.choices[f.Name] != nil:
				value = zshValues(f, c.choices[f.Name])
			case isSwitch(f):
				value = ""
			}
			fmt.Fprintf(w, " \\\n\t\t\t\t'-%s[%s]%s'", f.Name, aboutFlag(f), strings.Replace(value, ":valor", ":valor: ", 1))
		}
		if c.files {
			fmt.Fprint(w, " \\\n\t\t\t\t'*:archivo:_files'")
		}
		fmt.Fprint(w, " ;;\n")
	}
	fmt.Fprint(w, zshTail)
}

// The file is the function itself where zsh finds it in $fpath, and calls it then; sourced, it
// says what the function completes.
const zshTail = `	esac
}
if [[ ${funcstack[1]} = _sello ]]; then
	_sello "$@"
else
	(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
	compdef _sello sello
fi
`

// zshValues is the end of an argument of _arguments, for a flag with some values.
func zshValues(f *flag.Flag, values []string) string {
	text := strings.ReplaceAll(strings.Join(values, " "), ":", `\:`)
	if isList(f) {
		return ": :_sequence compadd - " + text
	}
	return ": :(" + text + ")"
}

func completeFish(w io.Writer, all []completed) {
	fmt.Fprint(w, `# fish completion for sello
function __sello_at
	set -l words (commandline -opc | string match -v -- '-*')
	test "$words[2..]" = "$argv[1]"
end
complete -c sello -f
`)
	for _, c := range all {
		at := fmt.Sprintf("complete -c sello -n \"__sello_at '%s'\"", c.name)
		for _, word := range c.next {
			fmt.Fprintf(w, "%s -a %s -d '%s'\n", at, word, shortAbout(c.abouts[word]))
		}
		for _, f := range c.flags {
			value := " -x"
			switch {
			case takesFile(f):
				value = " -r -F"
			case isSwitch(f):
				value = ""
			case c.choices[f.Name] != nil && !isList(f):
				value += " -a '" + strings.Join(c.choices[f.Name], " ") + "'"
			case c.choices[f.Name] != nil: // after what was typed before the last comma
				value += fmt.Sprintf(` -a "(string replace -rf '[^,]*\$' '' -- (commandline -ct)){%s}"`, strings.Join(c.choices[f.Name], ","))
			}
			fmt.Fprintf(w, "%s -o %s%s -d '%s'\n", at, f.Name, value, aboutFlag(f))
		}
		if c.files {
			fmt.Fprintf(w, "%s -F\n", at)
		}
	}
}
