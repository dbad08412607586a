// Package completion writes what shells complete: scripts for bash, zsh and fish, made from a
// program's commands and their flags.
package completion

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Command is what can be typed after the words of a command.
type Command struct {
	Name   string // the words typed so far; "" for none
	Next   []string
	Abouts map[string]string // of the words in Next
	Flags  []*flag.Flag
	Files  bool // its argument is a file

	Choices map[string][]string // values of flags
}

// A Program is what is completed. The kinds of flags are the words that usages quote.
type Program struct {
	Name     string
	Commands []*Command // as Add adds them
	Lists    []string   // kinds of flags that take several values, with commas between them
	Paths    []string   // kinds of flags whose value is a path
	File     string     // what zsh calls a file
	Value    string     // and another value
}

// Add adds a command, and an entry for each of the words before its last one. What follows it may
// be set then.
func (p *Program) Add(name, about string) *Command {
	words := strings.Fields(name)
	for i, word := range words {
		before := p.entry(strings.Join(words[:i], " "))
		if !slices.Contains(before.Next, word) {
			before.Next = append(before.Next, word)
		}
		if i == len(words)-1 {
			before.Abouts[word] = about
		}
	}
	return p.entry(name)
}

func (p *Program) entry(name string) *Command {
	for _, c := range p.Commands {
		if c.Name == name {
			return c
		}
	}
	c := &Command{Name: name, Abouts: map[string]string{}}
	p.Commands = append(p.Commands, c)
	return c
}

// Shells are the shells that Write knows.
var Shells = []string{"bash", "zsh", "fish"}

// Write writes the script for a shell. It reports whether it knows the shell.
func (p *Program) Write(w io.Writer, shell string) bool {
	switch shell {
	case "bash":
		p.bash(w)
	case "zsh":
		p.zsh(w)
	case "fish":
		p.fish(w)
	default:
		return false
	}
	return true
}

// named puts the program's name into a part of a script.
func (p *Program) named(text string) string { return strings.ReplaceAll(text, "PROGRAM", p.Name) }

// path is the name of a command as the scripts gather it: each word after a blank.
func (c *Command) path() string {
	if c.Name == "" {
		return ""
	}
	return " " + c.Name
}

func (p *Program) isList(f *flag.Flag) bool    { return isKind(f, p.Lists) }
func (p *Program) takesFile(f *flag.Flag) bool { return isKind(f, p.Paths) }

func isKind(f *flag.Flag, kinds []string) bool {
	kind, _ := flag.UnquoteUsage(f)
	return slices.Contains(kinds, kind)
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

const bashHead = `# bash completion for PROGRAM
_PROGRAM() {
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
complete -o filenames -F _PROGRAM PROGRAM
`

func (p *Program) bash(w io.Writer) {
	fmt.Fprint(w, p.named(bashHead))
	for _, c := range p.Commands {
		if c.Name != "" {
			fmt.Fprintf(w, "\t\t\t%q) name=%q ;;\n", " "+c.Name, " "+c.Name)
		}
	}
	fmt.Fprint(w, "\t\tesac\n\tdone\n\tcase $name in\n")
	for _, c := range p.Commands {
		words, valued, pathed, files := slices.Clone(c.Next), []string(nil), []string(nil), ""
		for _, f := range c.Flags {
			words = append(words, "-"+f.Name)
			switch {
			case p.takesFile(f):
				pathed = append(pathed, "-"+f.Name)
			case !isSwitch(f):
				valued = append(valued, "-"+f.Name)
			}
		}
		if c.Files {
			files = "1"
		}
		fmt.Fprintf(w, "\t\t%q) words=%q valued=%q pathed=%q files=%q ;;\n", c.path(), strings.Join(words, " "), strings.Join(valued, " "), strings.Join(pathed, " "), files)
	}
	fmt.Fprintf(w, p.named(bashTail), p.bashValues())
}

// bashValues are the cases of flags with some values.
func (p *Program) bashValues() string {
	var values strings.Builder
	for _, c := range p.Commands {
		for _, f := range c.Flags {
			if list := c.Choices[f.Name]; list != nil {
				listed := ""
				if p.isList(f) {
					listed = "1"
				}
				fmt.Fprintf(&values, "\t\t%q) values=%q listed=%q ;;\n", " "+c.Name+" -"+f.Name, strings.Join(list, " "), listed)
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

func (p *Program) zsh(w io.Writer) {
	fmt.Fprint(w, p.named("#compdef PROGRAM\n_PROGRAM() {\n\tlocal name=\"\" word\n\tlocal -a next\n\tfor word in ${words[2,CURRENT-1]}; do\n\t\tcase \"$name $word\" in\n"))
	for _, c := range p.Commands {
		if c.Name != "" {
			fmt.Fprintf(w, "\t\t\t' %s') name=' %[1]s' ;;\n", c.Name)
		}
	}
	fmt.Fprint(w, "\t\tesac\n\tdone\n\tcase $name in\n")
	for _, c := range p.Commands {
		fmt.Fprintf(w, "\t\t'%s')\n\t\t\tnext=(", c.path())
		for _, word := range c.Next {
			fmt.Fprintf(w, " '%s:%s'", word, shortAbout(c.Abouts[word]))
		}
		fmt.Fprint(w, p.named(" )\n\t\t\t(( $#next )) && _describe -t commands PROGRAM next\n\t\t\t_arguments"))
		for _, f := range c.Flags {
			value := ":" + p.Value + ": "
			switch {
			case p.takesFile(f):
				value = ":" + p.File + ":_files"
			case c.Choices[f.Name] != nil:
				value = p.zshValues(f, c.Choices[f.Name])
			case isSwitch(f):
				value = ""
			}
			fmt.Fprintf(w, " \\\n\t\t\t\t'-%s[%s]%s'", f.Name, aboutFlag(f), value)
		}
		if c.Files {
			fmt.Fprintf(w, " \\\n\t\t\t\t'*:%s:_files'", p.File)
		}
		fmt.Fprint(w, " ;;\n")
	}
	fmt.Fprint(w, p.named(zshTail))
}

// The file is the function itself where zsh finds it in $fpath, and calls it then; sourced, it
// says what the function completes.
const zshTail = `	esac
}
if [[ ${funcstack[1]} = _PROGRAM ]]; then
	_PROGRAM "$@"
else
	(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
	compdef _PROGRAM PROGRAM
fi
`

// zshValues is the end of an argument of _arguments, for a flag with some values.
func (p *Program) zshValues(f *flag.Flag, values []string) string {
	text := strings.ReplaceAll(strings.Join(values, " "), ":", `\:`)
	if p.isList(f) {
		return ": :_sequence compadd - " + text
	}
	return ": :(" + text + ")"
}

func (p *Program) fish(w io.Writer) {
	fmt.Fprint(w, p.named(`# fish completion for PROGRAM
function __PROGRAM_at
	set -l words (commandline -opc | string match -v -- '-*')
	test "$words[2..]" = "$argv[1]"
end
complete -c PROGRAM -f
`))
	for _, c := range p.Commands {
		at := p.named("complete -c PROGRAM -n \"__PROGRAM_at '") + c.Name + "'\""
		for _, word := range c.Next {
			fmt.Fprintf(w, "%s -a %s -d '%s'\n", at, word, shortAbout(c.Abouts[word]))
		}
		for _, f := range c.Flags {
			value := " -x"
			switch {
			case p.takesFile(f):
				value = " -r -F"
			case isSwitch(f):
				value = ""
			case c.Choices[f.Name] != nil && !p.isList(f):
				value += " -a '" + strings.Join(c.Choices[f.Name], " ") + "'"
			case c.Choices[f.Name] != nil: // after what was typed before the last comma
				value += fmt.Sprintf(` -a "(string replace -rf '[^,]*\$' '' -- (commandline -ct)){%s}"`, strings.Join(c.Choices[f.Name], ","))
			}
			fmt.Fprintf(w, "%s -o %s%s -d '%s'\n", at, f.Name, value, aboutFlag(f))
		}
		if c.Files {
			fmt.Fprintf(w, "%s -F\n", at)
		}
	}
}
