package completion

import (
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func sample() *Program {
	p := &Program{Name: "tool", Lists: []string{"list"}, Paths: []string{"file"}, File: "file", Value: "value"}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.Bool("all", false, "take it's all; and more")
	set.String("db", "", "`file` [of] data")
	set.String("kind", "", "`word` that is one")
	set.String("many", "", "`list` of some")
	set.String("any", "", "`text`")
	c := p.Add("key make", "make a key: a new one")
	set.VisitAll(func(f *flag.Flag) { c.Flags = append(c.Flags, f) })
	c.Choices = map[string][]string{"kind": {"a", "b"}, "many": {"x:r", "y"}}
	p.Add("key list", "list keys")
	p.Add("load", "load a file").Files = true
	return p
}

// TestWrite: what each shell is told of commands, switches, paths, and values of one or several.
func TestWrite(t *testing.T) {
	for shell, lines := range map[string][]string{
		"bash": {
			`" key make") name=" key make" ;;`,
			`"") words="key load" valued="" pathed="" files="" ;;`,
			`" key") words="make list" valued="" pathed="" files="" ;;`,
			`" key make") words="-all -any -db -kind -many" valued="-any -kind -many" pathed="-db" files="" ;;`,
			`" load") words="" valued="" pathed="" files="1" ;;`,
			`" key make -kind") values="a b" listed="" ;;`,
			`" key make -many") values="x:r y" listed="1" ;;`,
			`complete -o filenames -F _tool tool`,
		},
		"zsh": {
			`#compdef tool`,
			`' key make') name=' key make' ;;`,
			`next=( 'make:make a key  a new one' 'list:list keys' )`,
			`'-all[take it’s all]' \`,
			`'-any[text]:value: ' \`,
			`'-db[file (of) data]:file:_files' \`,
			`'-kind[word that is one]: :(a b)' \`,
			`'-many[list of some]: :_sequence compadd - x\:r y' ;;`,
			`'*:file:_files' ;;`,
			`compdef _tool tool`,
		},
		"fish": {
			`complete -c tool -f`,
			`complete -c tool -n "__tool_at ''" -a load -d 'load a file'`,
			`complete -c tool -n "__tool_at 'key make'" -o all -d 'take it’s all'`,
			`complete -c tool -n "__tool_at 'key make'" -o db -r -F -d 'file (of) data'`,
			`complete -c tool -n "__tool_at 'key make'" -o kind -x -a 'a b' -d 'word that is one'`,
			`complete -c tool -n "__tool_at 'key make'" -o many -x -a "(string replace -rf '[^,]*\$' '' -- (commandline -ct)){x:r,y}" -d 'list of some'`,
			`complete -c tool -n "__tool_at 'load'" -F`,
		},
	} {
		var b strings.Builder
		if !sample().Write(&b, shell) || !slices.Contains(Shells, shell) {
			t.Errorf("%s is no shell", shell)
		}
		var written []string
		for line := range strings.Lines(b.String()) {
			written = append(written, strings.TrimSpace(line))
		}
		for _, line := range lines {
			if !slices.Contains(written, line) {
				t.Errorf("%s: no line %s in\n%s", shell, line, &b)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(b.String())
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", shell, err, out)
			}
		}
	}
	if sample().Write(nil, "csh") {
		t.Error("csh is one")
	}
}
