package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sello/internal/cert"
	"sello/internal/host"
	"sello/internal/rotation"
	"sello/internal/wallclock"
)

// sello doctor looks at a server, or at what a server would find, and writes nothing. A running
// server tells its settings; without one they come from the command line and the environment, as
// serve takes them.

func doctorFlags(c *invocation) {
	serveFlags(c)
	jsonFlag(c)
	c.more = `Mira sin escribir nada: archivo, reloj, disco, copias, certificado, dirección del panel, webhooks
y si el servidor responde. Cada línea dice ok, o mal y qué hacer; si algo está mal, termina con 1.
Si hay un servidor en marcha, vale su configuración; si no, la de las opciones y variables, que
son las de sello serve.`
}

// Names of the checks in JSON, in the order of the report, and in Spanish.
var doctorChecks = [][2]string{
	{"file", "archivo"}, {"database", "base de datos"}, {"clock", "reloj"}, {"disk", "disco"}, {"backups", "copias"}, {"certificate", "certificado"},
	{"panel", "panel"}, {"cards", "tarjetas"}, {"webhooks", "webhooks"}, {"server", "servidor"},
}

// A checkup is the report. What could not be looked at is not in it.
type checkup struct {
	OK     bool        `json:"ok"`
	Checks []diagnosis `json:"checks"`
}

// A diagnosis is what one check found. Text says how it is, and if it is not OK, what to do.
type diagnosis struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
}

type doctor struct {
	settings serverSettings
	file     string // absolute path; or the name of the database
	database bool
	now      time.Time
	served   bool // by a running server
	listens  bool // without one: the address was given, so that a server would listen there
	found    []diagnosis

	needCards []string // organizations where points are spent with cards alone
}

const (
	doctorPatience = 15 * time.Second // for all that a server answers
	serverPatience = 5 * time.Second  // for one answer of its API
)

func runDoctor(ctx context.Context, c *invocation) error {
	if err := c.checkPanel(); err != nil {
		return err
	}
	if err := c.checkCards(); err != nil {
		return err
	}
	at, err := net.ResolveTCPAddr("tcp", c.addr)
	if err != nil {
		return cannotListen("addr", c.addr, err)
	}
	d := &doctor{settings: c.settings(at), file: c.fullPath(), database: isDatabase(c.db), now: time.Now(), listens: c.given["addr"]}
	_, d.served = overSocket(c.db)
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	c.readOnly = true
	if err := c.withAdmin(ctx, false, func(call adminCaller) error { return d.throughStore(ctx, call) }); err != nil {
		if _, wrong := errors.AsType[*usageError](err); wrong {
			return err
		}
		d.file = c.fullPath() // which a host that is not found is not part of
		d.unreadable(err)
	}
	if !d.database { // PostgreSQL sees to its own disk and backups
		d.disks()
		d.backups()
	}
	d.certificate()
	d.panel()
	d.cards()
	d.server(ctx)
	report := d.report()
	if err := c.print(report, report.show); err != nil || report.OK {
		return err
	}
	wrong := len(slices.DeleteFunc(report.Checks, func(f diagnosis) bool { return f.OK }))
	return adminErrorf("%s", plural(wrong, "cosa por arreglar", "cosas por arreglar"))
}

func (d *doctor) note(check string, ok bool, format string, args ...any) {
	d.found = append(d.found, diagnosis{check, ok, fmt.Sprintf(format, args...)})
}

func (d *doctor) noted(check string) bool {
	return slices.ContainsFunc(d.found, func(f diagnosis) bool { return f.Check == check })
}

func (d *doctor) report() *checkup {
	place := func(f diagnosis) int {
		return slices.IndexFunc(doctorChecks, func(c [2]string) bool { return c[0] == f.Check })
	}
	slices.SortStableFunc(d.found, func(a, b diagnosis) int { return cmp.Compare(place(a), place(b)) })
	return &checkup{!slices.ContainsFunc(d.found, func(f diagnosis) bool { return !f.OK }), d.found}
}

func (r *checkup) show(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Checks {
		at := slices.IndexFunc(doctorChecks, func(c [2]string) bool { return c[0] == f.Check })
		mark := "ok"
		if !f.OK {
			mark = "mal"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", doctorChecks[at][1], mark, f.Text)
	}
	tab.Flush()
}

// throughStore makes the checks that need the store. Its error says why it cannot be read.
func (d *doctor) throughStore(ctx context.Context, call adminCaller) error {
	if d.served {
		if err := call(ctx, "settings", struct{}{}, &d.settings); err != nil {
			if ctx.Err() != nil {
				return err
			}
			d.note("server", false, "%s: es de otra versión; reinícialo", inWords(err))
		}
	}
	var clock clockReport
	if err := call(ctx, "clock", struct{}{}, &clock); err != nil {
		return err
	}
	var slugs []string
	if err := call(ctx, "organizations", struct{}{}, &slugs); err != nil {
		return err
	}
	hooks := map[string][]listedWebhook{}
	for _, slug := range slugs {
		var list []listedWebhook
		if err := call(ctx, "webhook/list", orgRequest{slug}, &list); err != nil {
			return err
		}
		hooks[slug] = list
	}
	if err := call(ctx, "cards/need", struct{}{}, &d.needCards); err != nil {
		return err
	}
	d.note(d.kind(), true, "%s: esquema %d, %s; sello verify lo comprueba entero", d.file, schemaVersion, plural(len(slugs), "organización", "organizaciones"))
	d.clock(&clock)
	d.webhooks(slugs, hooks)
	return nil
}

func (d *doctor) kind() string {
	if d.database {
		return "database"
	}
	return "file"
}

func (d *doctor) unreadable(err error) {
	text := inWords(err)
	if !strings.Contains(text, filepath.Base(d.file)) {
		text = d.file + ": " + text
	}
	switch {
	case d.database && errors.Is(err, context.DeadlineExceeded):
		text = d.file + ": no responde"
	case d.database && errors.Is(err, fs.ErrNotExist):
		text = d.file + ": sello no tiene nada ahí: sello apply lo hace; si ya hay, dilo con -db"
	case errors.Is(err, context.DeadlineExceeded):
		text = d.file + ": el servidor que lo tiene abierto no responde: mira su registro y reinícialo"
	case errors.Is(err, fs.ErrNotExist):
		text = d.file + ": no existe: sello apply hace uno; si ya hay, dilo con -db"
	case errors.Is(err, fs.ErrPermission):
		text += "; repite con el usuario del servidor"
	}
	d.note(d.kind(), false, "%s", text)
}

func (d *doctor) clock(r *clockReport) {
	d.note("clock", r.State == wallclock.Safe, "%s, %s", clockWords[r.State], r.syncText())
}

// webhooks tells the receivers that get no events.
func (d *doctor) webhooks(slugs []string, hooks map[string][]listedWebhook) {
	var wrong []string
	all := 0
	for _, slug := range slugs {
		for i := range hooks[slug] {
			l := &hooks[slug][i]
			all++
			if l.Status == statusActive && (!l.HasSecret || l.Paused != 0 || l.Failing != 0) {
				wrong = append(wrong, slug+": "+l.Key+" "+l.stateText(instantOf(d.now)))
			}
		}
	}
	text := "todos reciben: " + fmt.Sprint(all)
	if all == 0 {
		text = "no hay"
	}
	d.note("webhooks", len(wrong) == 0, "%s", cmp.Or(strings.Join(wrong, "; "), text))
}

func (d *doctor) disks() {
	dirs := []string{filepath.Dir(d.file)}
	if d.settings.BackupEvery > 0 {
		dirs = append(dirs, d.settings.BackupDir)
	}
	for _, dir := range dirs {
		if free, all, ok := host.Disk(dir); ok {
			d.disk(dir, free, all)
		}
	}
}

// disk tells how much room a directory's disk has, in bytes. It is scarce where the log says so.
func (d *doctor) disk(dir string, free, all uint64) {
	text, more := fmt.Sprintf("%s: quedan %s de %s", dir, gigabytes(free), gigabytes(all)), ""
	if free < host.LeastFree(all) {
		more = ": borra lo que sobre, o pon un disco mayor; lleno, no se puede escribir"
	}
	d.note("disk", more == "", "%s%s", text, more)
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// backups tells the newest backup of -backup-dir. It is late once two are missed, as for the alert
// SelloBackupOld.
func (d *doctor) backups() {
	s := &d.settings
	if s.BackupEvery == 0 || s.BackupDir == "" {
		d.note("backups", false, "no hay copias programadas: sello serve las hace con -backup-every y -backup-dir")
		return
	}
	made, err := rotation.Copies{Dir: s.BackupDir, Name: s.BackupName}.Made(d.now)
	if err != nil {
		d.note("backups", false, "%s", inWords(err))
		return
	}
	if len(made) == 0 {
		d.note("backups", false, "%s: no hay ninguna; el servidor hace la primera al iniciar, y el registro dice por qué no pudo", s.BackupDir)
		return
	}
	last := made[len(made)-1]
	text := fmt.Sprintf("%s: la última es de %s", s.BackupDir, momentText(instantOf(last.At)))
	late := d.now.Sub(last.At) > 2*s.BackupEvery
	if late {
		text += fmt.Sprintf(", y debería haber una cada %s: el registro del servidor dice por qué no", shortSpan(s.BackupEvery))
	}
	d.note("backups", !late, "%s", text)
}

// shortSpan writes a length of time without zeros at its end: 1h, not 1h0m0s.
func shortSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// certificate looks at the files of -tls-cert and -tls-key.
func (d *doctor) certificate() {
	s := &d.settings
	if s.TLSCert == "" && s.TLSKey == "" {
		d.note("certificate", true, "no hay: la API va por HTTP")
		return
	}
	if s.TLSCert == "" || s.TLSKey == "" {
		d.note("certificate", false, "-tls-cert y -tls-key van juntas")
		return
	}
	pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		d.note("certificate", false, "%s y %s: %s", s.TLSCert, s.TLSKey, inWords(err))
		return
	}
	from, until := momentText(instantOf(pair.Leaf.NotBefore)), momentText(instantOf(pair.Leaf.NotAfter))
	const renew = ": pon uno nuevo en su lugar; no hace falta reiniciar"
	switch {
	case d.now.Before(pair.Leaf.NotBefore):
		d.note("certificate", false, "%s: no vale hasta %s: usa otro, o corrige el reloj", s.TLSCert, from)
	case d.now.After(pair.Leaf.NotAfter):
		d.note("certificate", false, "%s: venció %s%s", s.TLSCert, until, renew)
	case cert.EndsSoon(pair.Leaf, d.now):
		d.note("certificate", false, "%s: vence %s%s", s.TLSCert, until, renew)
	default:
		d.note("certificate", true, "%s: vence %s", s.TLSCert, until)
	}
}

func (d *doctor) panel() {
	s := &d.settings
	switch {
	case s.PanelOff:
		d.note("panel", true, "apagado con -panel off")
	case s.Panel == "":
		d.note("panel", false, "apagado: el servidor escucha para otras máquinas y nadie dijo con qué dirección se abre; -panel https://… lo enciende, -panel off lo deja así")
	case strings.HasPrefix(s.Panel, "https://") && s.TLSCert == "" && !s.Proxies:
		d.note("panel", false, "%s: sin -tls-cert hay un proxy delante, que -trusted-proxies no nombra: todas las solicitudes parecen suyas", s.Panel)
	default:
		d.note("panel", true, "%s/panel", s.Panel)
	}
}

// cards looks at the address of customers' cards, if the server has them.
func (d *doctor) cards() {
	switch at, err := parseCardsAddress(d.settings.Cards); {
	case d.settings.Cards == "" && len(d.needCards) > 0:
		d.note("cards", false, "%s: sin tarjeta nadie puede gastar puntos (settings.cards.proof), y el servidor no las sirve; arráncalo con -cards", strings.Join(d.needCards, ", "))
	case d.settings.Cards == "" || err != nil:
	case at.isPlain():
		d.note("cards", false, "%s: va sin cifrar, y quien esté en la misma red puede leer la dirección de una tarjeta; ponle https", d.settings.Cards)
	default:
		d.note("cards", true, "%s", d.settings.Cards)
	}
}

// server asks a running server's API whether it is ready. A database does not tell whether a server
// has it open: then the sello that listens at the address counts. Without a running server it looks
// whether another program has taken the address. That is a fault only if the address was given: a
// server may get its own from an environment that this command does not have.
func (d *doctor) server(ctx context.Context) {
	if d.noted("server") {
		return
	}
	at := reachable(d.settings.Addr)
	if d.served || d.database && isSello(ctx, at) {
		text, ok := d.ready(ctx, at)
		d.note("server", ok, "%s", text)
		return
	}
	conn, err := (&net.Dialer{Timeout: serverPatience}).DialContext(ctx, "tcp", at)
	if err != nil {
		text := "no está en marcha"
		if d.database {
			text = "en " + at + " no responde ninguno; otros que usen la base de datos no se buscan"
		}
		d.note("server", true, "%s", text)
		return
	}
	conn.Close()
	other, advice := "otro programa", ""
	if isSello(ctx, at) {
		other = "un sello con otro archivo"
	}
	if d.listens {
		advice = ": detenlo, o usa otra -addr"
	}
	with := " con este archivo"
	if d.database {
		with = ""
	}
	d.note("server", !d.listens, "no está en marcha%s, y %s escucha en %s%s", with, other, at, advice)
}

// isSello reports whether a sello answers at an address, with TLS or without.
func isSello(ctx context.Context, at string) bool {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	return slices.ContainsFunc([]string{"http://", "https://"}, func(scheme string) bool {
		res, err := getFrom(ctx, scheme+at+"/api/v1/openapi.json")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		var reference struct{ Info struct{ Title string } }
		err = json.NewDecoder(io.LimitReader(res.Body, int64(2*len(openAPI)))).Decode(&reference)
		return err == nil && reference.Info.Title == "sello"
	})
}

// ready says how a server answers /readyz.
func (d *doctor) ready(ctx context.Context, at string) (text string, ok bool) {
	scheme := "http"
	if d.settings.TLSCert != "" {
		scheme = "https"
	}
	res, err := getFrom(ctx, scheme+"://"+at+"/readyz")
	if err != nil {
		return fmt.Sprintf("no responde en %s: mira su registro, y si otro programa usa el puerto", at), false
	}
	res.Body.Close()
	running, this := d.settings.Build, thisBuild()
	switch {
	case res.StatusCode != http.StatusOK:
		return fmt.Sprintf("responde en %s que no está listo (HTTP %d): mira su registro, el reloj y el disco", at, res.StatusCode), false
	case res.TLS != nil && cert.OutOfDate(res.TLS.PeerCertificates[0], d.now) != "":
		return fmt.Sprintf("responde en %s con un certificado que no vale hoy", at), false
	case running.differs(this):
		return fmt.Sprintf("responde en %s, y es %s; este programa es %s: reinícialo", at, running, this), false
	}
	if d.database { // it was not asked
		return "responde en " + at, true
	}
	return fmt.Sprintf("responde en %s, sello %s", at, running.Version), true
}

// getFrom sends a GET to a server of this machine, and to no other that it redirects to.
func getFrom(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout:       serverPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is for a name, not for this address
		},
	}
	return client.Do(req)
}

// reachable returns where this machine reaches what listens at an address: one that stands for
// all addresses is reached at the loopback's.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && ip.Is4() && ip.IsUnspecified():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
