package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"sello/internal/cert"
	"sello/internal/disk"
	"sello/internal/gate"
	"sello/internal/host"
	"sello/internal/localcall"
	"sello/internal/logline"
	"sello/internal/memory"
	"sello/internal/parallel"
	"sello/internal/systemd"
)

// sello serve: the settings of a server, its listeners, the order in which the parts of a service
// start and stop, and the tasks that run beside requests.

func serveFlags(c *invocation) {
	c.set.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`dirección` en la que escucha la API")
	c.set.StringVar(&c.tlsCert, "tls-cert", "", "`archivo` PEM del certificado, con los intermedios: la API va por HTTPS; va con -tls-key")
	c.set.StringVar(&c.tlsKey, "tls-key", "", "`archivo` PEM de la clave del certificado")
	c.set.StringVar(&c.redirect, "http-redirect", "", "`dirección` en la que HTTP remite a HTTPS; va con -tls-cert")
	c.set.StringVar(&c.trusted, "trusted-proxies", "", "`lista` de direcciones o bloques CIDR cuyo X-Forwarded-For se cree")
	c.set.IntVar(&c.maxConns, "max-conns", defaultMaxConns, "`conexiones` abiertas a la vez")
	c.set.IntVar(&c.maxConnsPerSource, "max-conns-per-source", defaultMaxConnsPerSource,
		"`conexiones` abiertas a la vez desde una dirección (en IPv6, un /64), salvo de la propia máquina y de -trusted-proxies")
	c.set.Func("memory", "`tamaño` de memoria del que el servidor procura no pasar, con su unidad (MB, GB, MiB o GiB), como 256MB o 1GB; 96MB como mínimo; sin ella, un cuarto de la memoria de la máquina, entre 96 y 240 MiB", func(text string) (err error) {
		c.memory, err = memory.Parse(text)
		return err
	})
	c.set.IntVar(&c.pgConns, "pg-conns", 24, "`conexiones` a la base de datos de -db, como máximo; al menos 5")
	logFlags(c)
	c.set.DurationVar(&c.backups.every, "backup-every", 0, "`tiempo` entre copias del archivo, como 90m o 24h, de al menos 1m; sin ella no se hacen")
	c.set.IntVar(&c.backups.keep, "backup-keep", 24, "`número` de copias que se conservan, las más nuevas")
	c.set.StringVar(&c.backups.dir, "backup-dir", "", "`directorio` de las copias, que ya existe")
	c.set.StringVar(&c.backups.after, "backup-after", "", "`orden` que recibe cada copia, con su ruta como último argumento, o en lugar de la palabra {}, como \"rclone copy {} remoto:copias\"; sin shell: los espacios separan las palabras")
	c.set.StringVar(&c.webhookAllow, "webhook-allow", "", "`lista` de direcciones o bloques CIDR, no públicos, a los que también se envían webhooks")
	panelFlags(c)
	cardsFlags(c)
	noCopyFlag(c)
}

// unlogged is above every status.
const unlogged = 1000

func logFlags(c *invocation) {
	c.set.StringVar(&c.metrics, "metrics", "", "`dirección` en la que se leen las métricas, para Prometheus, sin clave; :9464 o 9464 es 127.0.0.1:9464; sin ella no hay")
	c.set.Func("log-level", "`nivel` desde el que se escribe en el registro: info, warn o error; sin ella, info; las solicitudes van aparte, con -log-requests", func(text string) error {
		level, ok := map[string]slog.Level{"info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[text]
		if c.logLevel = level; !ok {
			return errBadChoice
		}
		return nil
	})
	c.chooses("log-level", "info", "warn", "error")
	c.chooses("log-requests", "all", "errors", "off")
	c.set.Func("log-requests", "`cuáles` solicitudes dejan una línea en el registro: all (todas), errors (las de estado 500 o mayor) u off (ninguna); sin ella, all", func(text string) error {
		from, ok := map[string]int{"all": 0, "errors": http.StatusInternalServerError, "off": unlogged}[text]
		if c.loggedFrom = from; !ok {
			return errBadChoice
		}
		return nil
	})
}

var errBadChoice = errors.New("not one of the choices")

// setProcessors gives Go's scheduler one processor more than its default, once, unless
// GOMAXPROCS is set. The store's flush holds one: the scheduler takes it from a system
// call only after the call has lasted for a while. Without it two cores do 7 % fewer
// adds a second and 4 % fewer sales.
var setProcessors = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})

// How often the sweep runs, and how often usage is written and the replay filters are
// updated.
const (
	sweepInterval = 10 * time.Second
	flushInterval = time.Second
	flushTimeout  = 5 * time.Second // of the last flush
)

func runServe(ctx context.Context, c *invocation) error { return c.serve(ctx, c.refuseSandbox, nil) }

// refuseSandbox refuses a store of a sandbox, whose clock was moved.
func (c *invocation) refuseSandbox(ctx context.Context, s *service) error {
	err := refuseMarked(ctx, s.api.engine.store, c.dbName())
	if errors.Is(err, errCorrupt) || errors.Is(err, errRecord) { // what can be read of a damaged file is served
		return nil
	}
	return err
}

// serve opens the store and serves the API on it until ctx ends. It calls check, if not
// nil, before that, and ready, if not nil, once the API answers.
func (c *invocation) serve(ctx context.Context, check func(context.Context, *service) error, ready func(*service) error) (err error) {
	c.tune()
	trusted, err := c.checkServing()
	if err != nil {
		return err
	}
	lines := logline.NewWriter(c.stderr)
	defer lines.Close()
	log := slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: c.logLevel}))
	var pair *cert.Pair
	if c.tlsCert != "" {
		if pair, err = cert.Open(c.tlsCert, c.tlsKey, time.Now(), log); err != nil {
			return fmt.Errorf("-tls-cert y -tls-key: %w", err)
		}
	}
	opts := disk.Options{MemSize: c.memSize}
	var figures *meter
	if c.metrics != "" {
		figures = newMeter()
		opts.Committed = figures.commits.Observe
	}
	store, e, listener, err := c.openAndListen(ctx, opts, log)
	if err != nil {
		return err
	}
	defer listener.Close() // a server that was started has closed it already
	s := &service{store: store, api: newAPI(e, trusted, log), listener: listener, pair: pair, figures: figures, log: log}
	s.file, _ = store.(*boltStore)
	s.supervisor = systemd.New(c.getenv, os.Getpid(), log)
	s.openPanel(c)
	s.openCards(c)
	s.api.lines, s.api.loggedFrom, s.api.secure = lines, c.loggedFrom, pair != nil
	defer func() {
		if !s.failed { // closing a failed store may never return; exiting frees the file
			err = errors.Join(err, store.Close())
		}
	}()
	e.now() // logs at once a clock that is wrong from the start
	if check != nil {
		if err := check(ctx, s); err != nil {
			return err
		}
	}
	if err := s.start(ctx, c); err != nil {
		return err
	}
	defer s.cancel()
	s.missCards(ctx)
	if ready != nil {
		err = ready(s)
	}
	if err == nil {
		s.supervisor.Say("READY=1")
		err = s.wait(ctx)
	}
	if s.failed {
		return err
	}
	return s.stop(ctx, err)
}

// missCards logs where nobody can spend points, as that needs cards and there are none.
func (s *service) missCards(ctx context.Context) {
	if s.api.engine.cardsAt != "" {
		return
	}
	need, err := (&admin{engine: s.api.engine}).needCards(ctx, struct{}{})
	if err == nil && len(need) > 0 { // what cannot be read is told elsewhere
		s.log.Warn("cards missing", "organizations", need, "cause", "settings.cards.proof asks for cards, and this server has none: nobody can spend points there", "help", "start with -cards https://…")
	}
}

// tune sets how the process uses memory and processors.
func (c *invocation) tune() {
	if !c.inMemory { // else what is kept would be over the limit
		c.memSize = memory.Tune(c.memory)
	}
	setProcessors()
}

// openPanel gives the API its panel, if it is to have one.
func (s *service) openPanel(c *invocation) {
	e := s.api.engine
	e.sessionLimits.idle, e.sessionLimits.longest = c.panelIdle, c.panelLongest
	if address, link := c.panelServed(s.listener.Addr()); link != "" {
		s.panel = thePanel(s.api, address, e.sessionLimits)
		s.panel.hsts = c.tlsCert != "" && c.hsts && !panelAddress{}.allows(address.url.Host) // for localhost it would be other programs', too
		s.api.panel = s.panel
	} else if c.panelOn {
		s.log.Info("panel off", "cause", "-addr is not of this machine alone, and nobody has said at which address browsers open the panel",
			"help", "start with -panel https://…, or -panel off for a server without it")
	}
}

// checkServing returns an error if serve's flags are wrong or do not go together, else the
// networks of -trusted-proxies.
func (c *invocation) checkServing() (trusted []netip.Prefix, err error) {
	if trusted, err = parseNetworks(c.trusted); err != nil {
		return nil, err
	}
	if c.receivers, err = parseNetworks(c.webhookAllow); err != nil {
		return nil, err
	}
	if err := c.checkPanel(); err != nil {
		return nil, err
	}
	if err := c.checkCards(); err != nil {
		return nil, err
	}
	if err := c.leaveBackups(); err != nil {
		return nil, err
	}
	if c.given["backup-keep"] && c.backups.every == 0 {
		return nil, &usageError{"-backup-keep va con -backup-every y -backup-dir"}
	}
	c.backups.name = backupName(c.dbName())
	if err := c.backups.check(); err != nil {
		return nil, err
	}
	if c.metrics != "" {
		if c.metrics, err = metricsAddress(c.metrics); err != nil {
			return nil, err
		}
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return nil, &usageError{"-tls-cert y -tls-key van juntas"}
	}
	if c.redirect != "" && c.tlsCert == "" {
		return nil, &usageError{"-http-redirect va con -tls-cert y -tls-key"}
	}
	if c.maxConns < 1 || c.maxConnsPerSource < 1 {
		return nil, &usageError{"-max-conns y -max-conns-per-source deben ser mayores a 0"}
	}
	return trusted, nil
}

// leaveBackups refuses, with a database, the flags of a file's backups. The variables of these flags,
// which a unit or a container sets whatever is served, have no effect: the log says so.
func (c *invocation) leaveBackups() error {
	if !isDatabase(c.db) {
		return nil
	}
	for _, name := range []string{"backup-every", "backup-dir", "backup-keep", "backup-after"} {
		switch {
		case c.fromEnv[name]:
			c.unused = append(c.unused, variable(name))
			delete(c.given, name)
		case c.given[name]:
			return usageErrorf("-%s es para un archivo: las copias programadas de una base de datos las hace PostgreSQL, con pg_dump o pgBackRest; sello backup hace una cuando se le pide", name)
		}
	}
	c.backups = backupPlan{}
	return nil
}

// settings says what sello doctor asks of a server that listens at an address.
func (c *invocation) settings(at net.Addr) serverSettings {
	s := serverSettings{
		Build: thisBuild(), Addr: at.String(), TLSCert: absolute(c.tlsCert), TLSKey: absolute(c.tlsKey), Proxies: c.trusted != "", PanelOff: !c.panelOn,
		BackupEvery: c.backups.every, BackupDir: absolute(c.backups.dir), BackupName: backupName(c.dbName()),
	}
	_, s.Panel = c.panelServed(at)
	s.Cards = c.cardsAt.origin()
	return s
}

// absolute returns the absolute path of a file; "" of "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// openAndListen opens the store, migrates it if need be, and then listens. Where there
// is no file yet it listens first, so that an unusable address leaves no new file
// behind. A database may be another server's for a while: nobody is to connect meanwhile.
func (c *invocation) openAndListen(ctx context.Context, opts disk.Options, log *slog.Logger) (store openedStore, e *engine, l net.Listener, err error) {
	if _, err := os.Stat(c.db); errors.Is(err, fs.ErrNotExist) && !isDatabase(c.db) {
		if l, err = listen("addr", c.addr); err != nil {
			return nil, nil, nil, err
		}
	}
	store, e, _, err = c.openMigrated(ctx, opts, log)
	if err == nil && l == nil {
		if l, err = listen("addr", c.addr); err != nil {
			err = errors.Join(err, store.Close())
		}
	}
	if err != nil && l != nil {
		l.Close()
	}
	return store, e, l, err
}

// startAdmin serves the operations of commands, on a socket beside the file.
func (s *service) startAdmin(operations context.Context, c *invocation) error {
	socket, err := localcall.Listen(c.db)
	if long, is := errors.AsType[*localcall.TooLongError](err); is {
		err = adminErrorf("la ruta es demasiado larga para el socket de administración: %s", long.Path)
	}
	if err != nil {
		return fmt.Errorf("socket de administración: %w", err)
	}
	settings := c.settings(s.listener.Addr())
	commands := &admin{engine: s.api.engine, flush: flushOf(s.api), hooks: s.hooks, inServer: true, settings: settings, makeBackup: s.file.backup}
	s.local = &http.Server{
		Handler: commands.handler(s.log), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return operations },
	}
	go func() { s.ended <- s.local.Serve(socket) }()
	return nil
}

// start serves the public API and, beside a file, the operations of commands. It also
// starts the background work.
func (s *service) start(ctx context.Context, c *invocation) error {
	e := s.api.engine
	s.hooks = newDeliverer(e, c.receivers, s.log)
	if p, is := s.api.panel.(*panel); is {
		p.hooks = s.hooks
	}
	s.public = newServer(s.api, s.log)
	operations, endOperations := context.WithCancel(context.WithoutCancel(ctx))
	s.endOperations = endOperations
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	s.stopBackground = stopBackground
	within := s.bounded(c)
	s.tellPanel(c, within, background)
	s.ended = make(chan error, 5)
	if c.metrics != "" { // before the first request
		if err := s.startMetrics(c.metrics, within, &c.backups); err != nil {
			return err
		}
	}
	if s.file != nil {
		if err := s.startAdmin(operations, c); err != nil {
			return errors.Join(err, s.close())
		}
	}
	go func() { s.ended <- s.public.Serve(s.api.connections(s.secured(within))) }()
	if err := s.listenBeside(c); err != nil {
		return errors.Join(err, s.close())
	}
	s.background.Go(func() { s.hooks.run(background) })
	s.background.Go(func() {
		defer s.api.lines.Flush() // also if it panics, which ends the process
		s.api.keepHouse(background)
	})
	if s.file != nil {
		s.background.Go(func() { s.space.Watch(background, filepath.Dir(c.db), s.log) })
	}
	if database, ok := s.store.(wholeStore); ok { // after a failover it is another one
		s.background.Go(func() { parallel.Every(background, time.Minute, func() { database.tell(background, s.log) }) })
	}
	s.background.Go(func() { s.supervisor.Live(background, s.api.storeAnswers) })
	if s.pair != nil {
		s.background.Go(func() { s.pair.Watch(background) })
	}
	if plan := &c.backups; plan.every > 0 {
		s.background.Go(func() { plan.run(background) })
		s.background.Go(func() { new(host.Space).Watch(background, plan.dir, s.log) })
		if plan.afterBackup != nil {
			s.background.Go(func() { plan.passOn(background) })
		}
	}
	machine, _ := os.Hostname()
	s.hide = (&lease{store: e.store, name: serverLeases + machine + "/" + s.listener.Addr().String()}).show()
	s.log.Info("serving", "addr", s.listener.Addr().String(), "db", c.dbName())
	return nil
}

// tellPanel prepares the plan of backups, and gives the panel what it shows of the server and
// what it may start.
func (s *service) tellPanel(c *invocation, within *gate.Gate, background context.Context) {
	e := s.api.engine
	if c.unused != nil {
		s.log.Info("no scheduled backups", "unused", c.unused, "cause", "backups of a database are PostgreSQL's, with pg_dump or pgBackRest", "help", "docs/postgresql.md")
	}
	var plan *backupPlan
	if s.file != nil {
		plan = &c.backups
		plan.make, plan.now, plan.log, plan.state = s.file.backup, e.now, s.log, &s.backups
		if plan.every == 0 {
			plan.dir = filepath.Dir(c.db)
		}
	}
	if s.panel == nil {
		return
	}
	s.panel.server = &panelServer{
		store: s.store, gate: within, space: &s.space, hooks: s.hooks, plan: plan, build: thisBuild(),
		started: instantOf(e.now()), address: s.listener.Addr().String(), name: c.fullPath(),
		sweepLag:   (&sweepLag{engine: e}).value,
		check:      (&admin{engine: e, flush: flushOf(s.api), inServer: true}).verifyTelling,
		background: func(work func(context.Context)) { s.background.Go(func() { work(background) }) },
	}
}

// wait returns nil when ctx ends, or the error of a server or of a failed store.
func (s *service) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.ended:
		return err
	case err := <-s.store.Failed():
		// Going on after an I/O error has corrupted files; exiting never did.
		s.failed = true
		s.log.Error("store failed", "cause", err.Error())
		return err
	}
}

// stop ends what start began and writes the usage counted in memory. It returns cause,
// the reason for the stop, joined with its own errors.
func (s *service) stop(ctx context.Context, cause error) error {
	s.log.Info("stopping")
	s.supervisor.Say("STOPPING=1")
	close(s.api.stopping)
	s.stopBackground()
	defer time.AfterFunc(stopTimeout/2, s.endOperations).Stop() // a backup or verify would take too long
	shutDown(s.log, stopTimeout, s.servers()...)
	s.background.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	err := cause
	if e := s.api.engine; e.clock.IsSafe() {
		err = errors.Join(err, s.api.limiter.flush(last, e.store), s.api.logins.flush(last, instantOf(e.now()), true))
	}
	s.hide(last)
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}

// cancel cancels the background work and the operations of commands.
func (s *service) cancel() {
	s.stopBackground()
	s.endOperations()
}

func flushOf(a *api) func(context.Context) error {
	return func(ctx context.Context) error { return a.limiter.flush(ctx, a.engine.store) }
}

// keepHouse runs the periodic tasks until ctx ends: tasks for one of several servers, if this one
// has the lease, and tasks that each does for itself. While the store is away none can be done.
func (a *api) keepHouse(ctx context.Context) {
	house := &lease{store: a.engine.store, name: "house"}
	defer house.drop(ctx)
	sweep, flush := time.NewTicker(sweepInterval), time.NewTicker(flushInterval)
	defer sweep.Stop()
	defer flush.Stop()
	what, err := "retries", a.engine.filterReplays(ctx)
	for {
		if err != nil && ctx.Err() == nil {
			a.log.Error("background", "task", what, "cause", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			if err = nil; a.engine.store.away.Load() || !house.held(ctx) {
				continue
			}
			house.during(ctx, func(ctx context.Context) {
				if what, err = "sweep", a.engine.sweep(ctx); err == nil {
					what, err = "recount", a.engine.recount(ctx)
				}
			})
			a.engine.askForHandouts()
		case <-a.engine.handouts:
			if err = nil; a.engine.store.away.Load() || !house.held(ctx) {
				continue
			}
			house.during(ctx, func(ctx context.Context) { what, err = "handouts", a.engine.giveHandouts(ctx) })
		case <-flush.C:
			if what, err = "store", a.engine.store.keepUp(ctx); err != nil || a.engine.store.away.Load() {
				continue
			}
			a.engine.store.tryWrite(ctx)
			if what, err = "clock", a.engine.correctClock(ctx); err == nil && a.engine.clock.IsSafe() {
				what, err = "usage", a.limiter.flush(ctx, a.engine.store)
				if err == nil {
					what, err = "log-ins", a.logins.flush(ctx, instantOf(a.engine.now()), false)
				}
			}
			if err == nil {
				what, err = "retries", a.engine.filterReplays(ctx)
			}
		}
	}
}

func parseNetworks(s string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, part := range splitList(s) {
		n, err := parseNetwork(part)
		if err != nil {
			return nil, usageErrorf("dirección o bloque CIDR no válido: %q", part)
		}
		list = append(list, n)
	}
	return list, nil
}
