package main

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/template/parse"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
	"sello/internal/texts"
)

// Names of texts that are put together, by what they begin with.
var madeNames = []string{
	"about.", "account.theme.", "action.", "clock.", "from.", "operator.hooks.", "operator.sweep.", "tab.",
	"by.", "category.", "field.", "error.", "gift.", "reason.", "redemption.", "role.", "sale.", "source.", "status.", "title.",
	"day.", "doc.", "list.", "op.", "organization.", "program.", "refusal.", "review.kind.", "reward.", "rule.", "segment.", "span.", "who.", "word.",
	"address.", "class.", "key.access.", "key.expires.", "key.overlap.", "keys.filter.", "mend.", "preset.", "requests.found.", "requests.times.", "resource.", "scope.", "permission.",
	"hook.why.", "webhook.", "audit.kind.", "figure.by.", "figure.none.", "figure.period.", "person.span.", "notices.tab.", "ticket.status.",
}

var verbs = regexp.MustCompile(`%(?:\[\d\])?[a-z]`)

// speaking returns the language that has a code.
func speaking(code string) texts.Language { return allTexts().In(code) }

func hasText(name string) bool { return speaking("es").Has(name) }

// TestTexts: no text is empty, both languages take the same arguments, and each is used.
func TestTexts(t *testing.T) {
	t.Parallel()
	said := usedTexts(t)
	for name, row := range allTexts() {
		if row.ES == "" || row.EN == "" {
			t.Errorf("%s: %q, %q", name, row.ES, row.EN)
		}
		if es, en := strings.Join(verbs.FindAllString(row.ES, -1), ""), strings.Join(verbs.FindAllString(row.EN, -1), ""); es != en {
			t.Errorf("%s: arguments %s and %s", name, es, en)
		}
		made := false
		for _, prefix := range madeNames {
			made = made || strings.HasPrefix(name, prefix)
		}
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".hint"), ".one")
		if !made && !said[name] && !said[base] {
			t.Errorf("nobody says %s", name)
		}
	}
	for name := range said {
		if !hasText(name) {
			t.Errorf("there is no text %s", name)
		}
	}
}

// plurals finds a figure beside a word that is in the plural because of it: an article, a noun
// or a verb. It takes some other words for such.
var plurals = regexp.MustCompile(`%(?:\[\d\])?[sd] (?:\pL+s|\pL{3,}[ae]n|are|have)\b|(?i)\b(?:\pL{3,}[ae]n (?:l[ao]s )?|l[ao]s )%`)

// notPlural are words that are the same with 1, and verbs in the singular.
var notPlural = regexp.MustCompile(`más$|menos$|less$|as$|is$|does$|becomes$|invites$|^between`)

// alwaysMany are texts that need no other one for 1.
var alwaysMany = map[string]string{
	"activity.cut":         "the figures are mostRecords",
	"activity.all":         "the first figure is activityRows",
	"activity.busy.none":   "the figure is manyADay",
	"audit.export.most":    "the figure is mostExported",
	"home.since":           "a time of day",
	"sales.by.cut":         "the figure is mostScanned",
	"undo.asked.today":     "a time of day",
	"work.cut":             "the figures are mostRead",
	"person.cut":           "the figures are mostRead",
	"person.out.returns":   "the figure is fewTimes or more",
	"person.out.cancelled": "the figure is fewTimes or more",
	"person.out.friend":    "the figure is fewGifts or more",
	"rule.days":            "names of days",
	"refusal.days":         "names of days",
	"refusal.nights":       "names of days",
	"refusal.hours":        "times of day",
	"rule.tiers":           "names of tiers",
	"refusal.tiers":        "names of tiers",
	"rule.double.items":    "names of items",
	"rule.triple.items":    "names of items",
}

// TestCountedTexts: a text with a figure and a plural has one for 1 beside it, and then is
// made by what chooses between the two.
func TestCountedTexts(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for name, row := range allTexts() {
		for _, text := range []string{row.ES, row.EN} {
			for _, found := range plurals.FindAllString(text, -1) {
				if !notPlural.MatchString(found) && !hasText(name+".one") && alwaysMany[name] == "" {
					t.Errorf("%s: %q has %q, and no text of 1", name, text, found)
				}
			}
		}
	}
	for name := range alwaysMany {
		if !plurals.MatchString(allTexts()[name].ES + "|" + allTexts()[name].EN) {
			t.Errorf("%s is no exception", name)
		}
	}
	sources, _ := filepath.Glob("*.go")
	pages, _ := filepath.Glob("panel/*.html")
	cards, _ := filepath.Glob("site/*.html")
	call := regexp.MustCompile(`\b(?:T|tr|say|add)[( ](?:[\w.]+, )?"([\w.]+)"`)
	for _, file := range slices.Concat(sources, pages, cards) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			if hasText(m[1] + ".one") {
				t.Errorf("%s: %s is not counted", file, m[1])
			}
		}
	}
}

// TestCounted: one thing is in the singular, and whatever else is said stays where it belongs.
func TestCounted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, n string
		others  []any
		es, en  string
	}{
		{"requests.times", "1", nil, "1 vez", "once"},
		{"requests.times", "0", nil, "0 veces", "0 times"},
		{"requests.times", "1,001", nil, "1,001 veces", "1,001 times"},
		{"span.days", "11", nil, "11 días", "11 days"},
		{"backups.all", "1", []any{"4 MiB"}, "1 copia, 4 MiB", "1 backup, 4 MiB"},
		{"look.stock", "1", []any{"Taza"}, "Taza: queda 1", "Taza: 1 left"},
		{"look.stock", "2", []any{"Taza"}, "Taza: quedan 2", "Taza: 2 left"},
		{"change.since", "1", []any{"2% más"}, "2% más que el día antes", "2% más than the day before"},
		{"change.since", "30", []any{"2% más"}, "2% más que los 30 días antes", "2% más than the 30 days before"},
		{"till.tier.next", "1", []any{"Sellos", "Oro"}, "falta 1 Sellos para Oro", "1 Sellos to Oro"},
		{"program.basis.Rolling", "1", []any{"lo gastado"}, "El nivel depende de lo gastado en el último mes.", "The tier follows from lo gastado in the last month."},
		{"program.basis.Rolling", "12", []any{"lo gastado"}, "El nivel depende de lo gastado en los últimos 12 meses.", "The tier follows from lo gastado in the last 12 months."},
	} {
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			if got := counted(speaking(lang), test.name, test.n, test.others...); got != want {
				t.Errorf("%s of %s: %q, want %q", test.name, test.n, got, want)
			}
		}
	}
}

// usedTexts are the names of texts in the templates and in the calls of T, Field and so on.
func usedTexts(t *testing.T) map[string]bool {
	said := map[string]bool{}
	for _, page := range slices.Concat(slices.Collect(maps.Values(parseTemplates())), slices.Collect(maps.Values(siteTemplates()))) {
		for _, each := range page.Templates() {
			walkTemplate(each, func(word string) {
				if hasText(word) {
					said[word] = true
				}
			})
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\b(?:T|tr|Field|AmountField|Select)\((?:[^()"]*, )?"([a-z][A-Za-z.]*)"[,)]`)
	quoted := regexp.MustCompile(`"([a-z][A-Za-z]*\.[A-Za-z.]+|[a-z]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if hasText(m[1]) {
					said[m[1]] = true
				}
			}
			if m := call.FindStringSubmatch(line); m != nil && strings.Contains(line, ".T(") {
				said[m[1]] = true
			}
		}
	}
	return said
}

// walkTemplate tells the words that a template quotes.
func walkTemplate(t *template.Template, tell func(string)) {
	if t.Tree == nil {
		return
	}
	var walk func(n parse.Node)
	list := func(l *parse.ListNode) {
		if l != nil {
			for _, n := range l.Nodes {
				walk(n)
			}
		}
	}
	pipe := func(p *parse.PipeNode) {
		if p != nil {
			for _, c := range p.Cmds {
				for _, a := range c.Args {
					walk(a)
				}
			}
		}
	}
	branch := func(b *parse.BranchNode) { pipe(b.Pipe); list(b.List); list(b.ElseList) }
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			list(n)
		case *parse.ActionNode:
			pipe(n.Pipe)
		case *parse.PipeNode:
			pipe(n)
		case *parse.TemplateNode:
			pipe(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.StringNode:
			tell(n.Text)
		}
	}
	walk(t.Tree.Root)
}

// TestAcceptedLanguage: the first language of the browser that the panel has.
func TestAcceptedLanguage(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "es", "en": "en", "en-US,es;q=0.5": "en", "fr-FR,en;q=0.8": "en", "es-MX": "es", "fr": "es", "EN-gb;q=0.1": "en", "*": "es", ",,": "es",
	} {
		r := httptest.NewRequest("GET", "/panel", nil)
		r.Header.Set("Accept-Language", header)
		if got := texts.Accepted(r.Header.Get("Accept-Language")); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// TestPermissionTexts: a page that a role may not open says what it takes.
func TestPermissionTexts(t *testing.T) {
	t.Parallel()
	for p := range permissions {
		if !hasText("permission." + string(p)) {
			t.Errorf("%s has no text", p)
		}
	}
}

// TestDiskInWords checks the Spanish text of the disk library's errors, with their names
// and figures.
func TestDiskInWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{disk.ErrForeign, "no es un archivo de sello"},
		{fmt.Errorf("a.db: %w", disk.ErrEmpty), "a.db: el archivo está vacío"},
		{fmt.Errorf("a.db: %w", disk.ErrLocked), "a.db: otro proceso lo tiene abierto"},
		{fmt.Errorf("a.db: %w", &disk.TruncatedError{Size: 4136, Least: 16384}), "a.db: archivo truncado: 4136 bytes de al menos 16384"},
		{
			fmt.Errorf("a.db: %w; %w", &disk.MissingJournalError{Name: "a.db-journal1"}, disk.ErrOneHeader),
			"a.db: falta a.db-journal1, sin el que el archivo no está completo; una de sus dos cabeceras está dañada",
		},
		{
			&disk.LeftJournalError{Name: "a.db-journal2", Err: disk.ErrFileOlder},
			"el archivo es anterior a su journal (a.db-journal2); si es una copia puesta a propósito en su lugar, quita ese journal",
		},
		{&disk.LeftJournalError{Name: "j", Err: syscall.EIO}, "el disco no se puede leer o escribir (j); si es una copia puesta a propósito en su lugar, quita ese journal"},
		{fmt.Errorf("b.db: %w: %w", disk.ErrExists, disk.ErrForeign), "b.db: ya existe y no se reemplaza: no es un archivo de sello"},
		{fmt.Errorf("b.db: %w: %w", disk.ErrNotSynced, syscall.EIO), "b.db: la copia está ahí, pero no se pudo asegurar su nombre en el disco: el disco no se puede leer o escribir"},
		{seamError(disk.ErrClosed), "se está cerrando"},
		{seamError(disk.ErrFailed), "ya no se puede escribir, tras un fallo"},
		{seamError(fmt.Errorf("%w: %w", disk.ErrUnavailable, disk.ErrFull)), "por ahora no se puede escribir: el archivo llegó a la longitud máxima en este sistema"},
		{fmt.Errorf("a.db: %w", seamError(&disk.DamageError{Page: 0, Table: -1, Err: disk.ErrDamaged})), "a.db: archivo dañado, página 0: restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", seamError(&disk.DamageError{Page: -1, Table: 'm', Err: disk.ErrDamaged})), "a.db: archivo dañado, tabla 'm': restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", seamError(disk.ErrDamaged)), "a.db: archivo dañado: restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", errRecord), "a.db: datos dañados: un registro no se puede leer: restaura una copia de seguridad"},
	} {
		if got := inWords(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
	for _, known := range diskWords {
		if got := inWords(fmt.Errorf("a.db: %w", known.err)); got != "a.db: "+known.words || englishWords.MatchString(got) {
			t.Errorf("%v: %q", known.err, got)
		}
	}
}

// TestDamagedInWords checks that commands describe the damage of real files in Spanish.
func TestDamagedInWords(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	path := s.env["SELLO_DB"]
	closed := readFile(t, path)
	left, err := openBolt(path, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, left, "zz", "in the journal")
	if err := left.leave(); err != nil {
		t.Fatal(err)
	}
	names := disk.JournalNames(path)
	needing, journals := readFile(t, path), [2][]byte{readFile(t, names[0]), readFile(t, names[1])}
	for _, test := range []struct {
		reason string
		make   func() error
		want   string
	}{
		{"both headers damaged", func() error {
			b := append([]byte{}, closed...)
			b[60] ^= 1
			b[disktest.PageSize+60] ^= 1
			return errors.Join(os.Remove(names[0]), os.Remove(names[1]), os.WriteFile(path, b, 0o600))
		}, "archivo dañado: ninguna de sus dos cabeceras está completa"},
		{"cut", func() error { return os.WriteFile(path, closed[:disktest.PageSize], 0o600) }, "archivo truncado: 4096 bytes de al menos "},
		{"no journal", func() error { return os.WriteFile(path, needing, 0o600) }, "falta sello.db-journal1, sin el que el archivo no está completo\n"},
		{"a journal cut off", func() error {
			return errors.Join(os.WriteFile(names[0], journals[0][:100], 0o600), os.WriteFile(names[1], journals[1], 0o600))
		}, "journal dañado: "},
		{"an older file beside its journal", func() error {
			return errors.Join(os.WriteFile(names[0], journals[0], 0o600), os.WriteFile(path, closed, 0o600))
		}, "el archivo es anterior a su journal (sello.db-journal1); si es una copia puesta a propósito en su lugar, quita ese journal\n"},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		code, out, errs := s.run("verify")
		if code != 1 || out != "" || !strings.Contains(errs, filepath.Base(path)+": "+test.want) || faultIn(code, errs) != "" {
			t.Errorf("%s: exit %d, %s%s", test.reason, code, out, errs)
		}
	}
}
