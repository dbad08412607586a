package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"sello/internal/completion"
)

// The table of commands, how a command line finds its command, and the help.

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal then kills the process at once
	os.Exit(run(ctx, os.Args[1:], environment{os.Getenv, variableNames, os.Stdin, os.Stdout, os.Stderr}))
}

// variableNames lists the variables of the process.
func variableNames() (names []string) {
	for _, assigned := range os.Environ() {
		name, _, _ := strings.Cut(assigned, "=")
		names = append(names, name)
	}
	return names
}

func commands() []command {
	return []command{
		{"serve", "", "sirve la API y el panel", runServe, serveFlags},
		{"demo", "", "inventa un año de una cafetería y sirve la API y el panel", runDemo, demoFlags},
		{"sandbox", "", "sirve una organización de pruebas, con un reloj que se adelanta", runSandbox, sandboxFlags},
		{"apply", "ARCHIVO", "aplica la configuración de una organización (- lee la entrada estándar)", runApply, applyFlags},
		{"export", "", "muestra la configuración de una organización", runExport, exportDocumentFlags},
		{"import customers", "ARCHIVO.csv", "importa clientes, con sus puntos", importCommand(importCustomers), importCustomersFlags},
		{"import sales", "ARCHIVO.csv", "importa ventas con su fecha; las filas de una venta comparten externalId", importCommand(importSales), importSalesFlags},
		{"import points", "ARCHIVO.csv", "da o quita puntos, una sola vez por referencia", importCommand(importPoints), importPointsFlags},
		{"export customers", "", "escribe los clientes en CSV", exportCommand(importCustomers), exportCustomersFlags},
		{"export sales", "", "escribe las ventas en CSV", exportCommand(importSales), exportFullFlags("id, id del cliente, puntos en el programa del cliente, origen, cuándo se registró, quién lo hizo, y los puntos que pagaron, su importe y lo cobrado")},
		{"export redemptions", "", "escribe los canjes en CSV", exportCommand(redemptionsFile), exportFlags},
		{"export movements", "", "escribe los movimientos de puntos en CSV", exportCommand(exportMovements), exportFullFlags("las reglas que dieron los puntos de una compra, quién hizo el movimiento y su referencia")},
		{"key create", "", "crea una API key y la muestra una única vez", runKeyCreate, keyFlags},
		{"key list", "", "lista las API keys de una organización", runKeyList, orgJSONFlags},
		{"key change", "ID", "cambia lo que se indica de una API key; none lo quita", runKeyChange, keyChangeFlags},
		{"key rotate", "ID", "crea una API key igual a otra; la otra expira después", runKeyRotate, keyRotateFlags},
		{"key ticket-secret", "ID", "muestra una única vez con qué firma tickets una caja sin red", runTicketSecret, ticketSecretFlags},
		{"key revoke", "ID", "revoca una API key", runKeyRevoke, orgJSONFlags},
		{"audit", "", "muestra quién cambió qué: configuración, claves, clientes, canjes", runAudit, auditFlags},
		{"webhook list", "", "lista los webhooks de una organización y cómo va cada uno", runWebhookList, orgJSONFlags},
		{"webhook secret", "WEBHOOK", "crea un secreto y lo muestra una única vez; el anterior vale 24 horas más", runWebhookSecret, orgJSONFlags},
		{"webhook test", "WEBHOOK", "envía un mensaje de prueba y dice qué respondió", runWebhookTest, orgJSONFlags},
		{"webhook resume", "WEBHOOK", "sigue con un webhook en pausa, desde el evento que no se entregó", runWebhookResume, orgJSONFlags},
		{"webhook replay", "WEBHOOK", "vuelve a enviar desde un evento", runWebhookReplay, webhookReplayFlags},
		{"user invite", "", "invita a una persona al panel y muestra el enlace una única vez", runUserInvite, userInviteFlags},
		{"user withdraw", "", "retira una invitación que todavía nadie aceptó", runUserWithdraw, userWithdrawFlags},
		{"user list", "", "lista las personas que usan el panel, de todas las organizaciones, y las invitaciones abiertas", runUserList, jsonFlag},
		{"user disable", "EMAIL", "inhabilita a una persona en todo el panel, termina sus sesiones y retira sus enlaces", userCommand("user/disable", "inhabilitado"), jsonFlag},
		{"user enable", "EMAIL", "vuelve a habilitar a una persona", userCommand("user/enable", "habilitado"), jsonFlag},
		{"user logout", "EMAIL", "termina las sesiones de una persona y retira sus enlaces, o con -all los de todas", runUserLogout, userLogoutFlags},
		{"user reset", "EMAIL", "muestra una única vez un enlace para poner otra contraseña", runUserReset, userResetFlags},
		{"user operator", "EMAIL on|off", "dice si una persona opera el servidor y ve sus páginas en el panel", runUserOperator, jsonFlag},
		{"backup", "ARCHIVO", "copia el archivo entero, también mientras se sirve, y comprueba la copia", runBackup, backupFlags},
		{"copy", "", "lleva todo de un archivo a una base de datos PostgreSQL, o de vuelta; sin servidor", runCopy, copyFlags},
		{"restore", "ARCHIVO", "pone una copia en lugar del archivo, que queda al lado; sin servidor", runRestore, restoreFlags},
		{"verify", "", "recalcula saldos, contadores e índices y dice qué difiere", runVerify, verifyFlags},
		{"doctor", "", "mira archivo, reloj, disco, copias, certificado, panel, webhooks y servidor, y dice qué arreglar", runDoctor, doctorFlags},
		{"compact", "", "hace el archivo de nuevo, sin espacio libre ni restos de lo borrado; sin servidor", runCompact, compactFlags},
		{"migrate", "", "convierte un archivo de un esquema anterior; serve y demo lo hacen solos", runMigrate, migrateFlags},
		{"clock", "", "dice qué hora es, cuál fue la última escrita y si el reloj es fiable", runClock, jsonFlag},
		{"clock accept", "", "da por bueno el reloj de la máquina, aunque contradiga lo ya escrito", runClockAccept, jsonFlag},
		{"completion", strings.Join(completion.Shells, "|"), "escribe lo que el shell completa", runCompletion, completionFlags},
		{"version", "", "muestra la versión", runVersion, jsonFlag},
	}
}

// run executes a command line and returns the exit code: 0, 1 for a failure, or
// 2 for a wrong command line.
func run(ctx context.Context, args []string, env environment) int {
	printed := &watchedWriter{Writer: env.stdout}
	env.stdout = printed
	err := dispatch(ctx, args, env)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	told, exit := failure{inWords(err), failureCode(err)}, 1
	if usage, is := errors.AsType[*usageError](err); is {
		told.Error, exit = usage.message, 2
	}
	if !printed.any && asksForJSON(args, env) {
		(&invocation{environment: env, json: true}).print(told, nil)
	}
	fmt.Fprintf(env.stderr, "sello: %s\n", told.Error)
	return exit
}

// A failure is what -json prints where there is no result.
type failure struct {
	Error string `json:"error"`
	Code  string `json:"code"` // of failureCode
}

// A watchedWriter knows whether anything was written.
type watchedWriter struct {
	io.Writer
	any bool
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.any = true
	return w.Writer.Write(p)
}

// asksForJSON reports whether a command line, which may be wrong, asks for JSON.
func asksForJSON(args []string, env environment) bool {
	for _, arg := range args {
		name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if name == "json" && name != arg {
			asked, err := strconv.ParseBool(value)
			return !given || asked || err != nil
		}
	}
	cmd, words := commandOf(args)
	asked, _ := strconv.ParseBool(env.getenv(variable("json")))
	if words == 0 || !asked {
		return false
	}
	c := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
	c.dbFlag()
	cmd.flags(c)
	return c.set.Lookup("json") != nil
}

func dispatch(ctx context.Context, args []string, env environment) error {
	if len(args) == 0 {
		help(env.stderr)
		return &usageError{"falta el comando"}
	}
	switch strings.TrimLeft(args[0], "-") {
	case "h", "help":
		if len(args) == 1 {
			help(env.stdout)
			return nil
		}
		args = append(args[1:len(args):len(args)], "-h")
	case "version":
		args = append([]string{"version"}, args[1:]...)
	}
	if cmd, words := commandOf(args); words > 0 {
		c := &invocation{environment: env, set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		c.set.SetOutput(io.Discard)
		c.dbFlag()
		c.table = commands()
		c.longer = commandNames(longerCommands(cmd.name))
		cmd.flags(c)
		if err := c.parse(cmd, args[words:]); err != nil {
			return err
		}
		if err := cmp.Or(c.checkVariables(), c.checkDatabase(), c.checkPaths()); err != nil {
			return err
		}
		return cmd.run(ctx, c)
	}
	longer := longerCommands(args[0])
	words := strings.Join(args[:min(len(args), 2)], " ")
	switch {
	case len(longer) > 0 && slices.ContainsFunc(args[1:], asksForHelp):
		fmt.Fprint(env.stdout, "Uso: sello COMANDO [opciones]\n\n")
		listCommands(env.stdout, longer)
		fmt.Fprint(env.stdout, "\nsello COMANDO -h muestra las opciones de cada uno.\n")
		return nil
	case len(longer) > 0:
		if near := orNear(words, namesOf(longer)); near != "" && len(args) > 1 {
			return usageErrorf("comando desconocido: %q%s", shownWord(words), near)
		}
		return &usageError{"falta decir cuál: " + commandNames(longer)}
	case strings.HasPrefix(args[0], "-"):
		return usageErrorf("las opciones van después del comando: sello COMANDO %s", shownWord(args[0]))
	}
	known := namesOf(commands())
	for _, name := range known {
		if first, _, two := strings.Cut(name, " "); two && !slices.Contains(known, first) {
			known = append(known, first)
		}
	}
	return usageErrorf("comando desconocido: %q%s", shownWord(words), cmp.Or(orNear(words, known), orNear(args[0], known), " (sello -h los muestra)"))
}

// commandOf returns the command with the longest name that a command line begins with,
// and how many words that name has; 0 if there is none.
func commandOf(args []string) (found command, words int) {
	for _, cmd := range commands() {
		name := strings.Fields(cmd.name)
		if len(name) > words && len(args) >= len(name) && slices.Equal(args[:len(name)], name) {
			found, words = cmd, len(name)
		}
	}
	return found, words
}

// longerCommands returns the commands whose name begins with a word and goes on.
func longerCommands(word string) []command {
	return slices.DeleteFunc(commands(), func(cmd command) bool { return !strings.HasPrefix(cmd.name, word+" ") })
}

func namesOf(list []command) (names []string) {
	for _, cmd := range list {
		names = append(names, cmd.name)
	}
	return names
}

// commandNames lists commands as they are typed.
func commandNames(list []command) string {
	var names []string
	for _, cmd := range list {
		names = append(names, "sello "+cmd.name)
	}
	return strings.Join(names, ", ")
}

func asksForHelp(arg string) bool {
	return slices.Contains([]string{"-h", "-help", "--h", "--help"}, arg)
}

// listCommands writes a table of commands.
func listCommands(w io.Writer, commands []command) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cmd := range commands {
		fmt.Fprintf(tab, "  %s\t%s\n", strings.TrimSpace(cmd.name+" "+cmd.args), cmd.about)
	}
	tab.Flush()
}

func help(w io.Writer) {
	fmt.Fprint(w, "sello: programas de lealtad en un solo binario y un solo archivo\n\nUso: sello COMANDO [opciones]\n\n")
	listCommands(w, commands())
	fmt.Fprint(w, "\nsello COMANDO -h muestra las opciones de cada uno. Una opción también se toma de\nsu variable de entorno, que la ayuda pone entre corchetes: -db es SELLO_DB.\n")
}
