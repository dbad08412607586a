package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sello/internal/cert"
	"sello/internal/gate"
	"sello/internal/host"
	"sello/internal/lastword"
	"sello/internal/systemd"
	"sello/internal/unwatched"
)

// At which addresses a server listens, and for what: the API, the pages of customers, metrics, and the
// redirection to HTTPS.

// How long a client may take, and how long a stop waits for requests in flight.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 8 * time.Second // most supervisors kill after 10
	maxHeader     = 16 << 10        // bytes of request line and headers
)

// A service is the API on an open store, from start to stop.
type service struct {
	store    openedStore
	file     *boltStore // the store, if it is a file; else nil
	api      *api
	panel    *panel       // nil: it is not served
	site     *site        // nil: customers have no cards
	listener net.Listener // of the public API
	pair     *cert.Pair   // nil: plain HTTP
	figures  *meter       // nil without -metrics
	log      *slog.Logger

	public, local  *http.Server
	redirect       *http.Server   // of -http-redirect; nil without
	metrics        *http.Server   // of -metrics; nil without
	cards          *http.Server   // of -cards-addr; nil without
	ended          chan error     // one error from each server
	background     sync.WaitGroup // of keepHouse and the backups
	stopBackground func()
	endOperations  func() // cancels the operations of commands
	failed         bool   // the store has failed
	backups        backupState
	space          host.Space // for the file; not looked at without one
	supervisor     *systemd.Notifier
	hooks          *deliverer
	hide           func(context.Context) // gives back the lease of this server
}

// listen listens at the address that a flag gives.
func listen(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, cannotListen(flag, addr, err)
	}
	return l, nil
}

// cannotListen describes in Spanish why listening at an address failed.
func cannotListen(flag, addr string, err error) error {
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return usageErrorf("-%s debe tener la forma 127.0.0.1:8080, una dirección y un puerto: %q", flag, addr)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		err = errors.New("no se encuentra esa dirección")
	} else if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err // the text below has the rest
	}
	return fmt.Errorf("no se puede escuchar en %s: %w", addr, err)
}

// secured returns the listener of the public API with TLS, if that is asked for.
func (s *service) secured(l net.Listener) net.Listener {
	if s.pair == nil {
		return l
	}
	return s.api.encrypted(l, s.pair)
}

// listenBeside listens where the API is not.
func (s *service) listenBeside(c *invocation) error {
	if c.cardsAddr != "" {
		if err := s.startCards(c); err != nil {
			return err
		}
	}
	if c.redirect != "" {
		return s.startRedirect(c.redirect)
	}
	return nil
}

func (s *service) startRedirect(addr string) error {
	l, err := listen("http-redirect", addr)
	if err != nil {
		return err
	}
	tcp, _ := s.listener.Addr().(*net.TCPAddr)
	to := ""
	if s.panel != nil && s.panel.address.isSecure() {
		to = s.panel.address.origin()
	}
	redirects := s.api.redirects(tcp.Port, to)
	if s.site != nil && s.site.host != "" && strings.HasPrefix(s.api.engine.cardsAt, "https://") {
		redirects = s.site.byName(s.api.redirects(tcp.Port, s.api.engine.cardsAt), redirects)
	}
	s.redirect = newServer(redirects, s.log)
	within := newGate(l.(*net.TCPListener), redirectConns, redirectConnsPerSource, loopback[:], nil, s.log)
	go func() { s.ended <- s.redirect.Serve(s.api.connections(within)) }()
	s.log.Info("redirecting", "addr", l.Addr().String())
	return nil
}

// metricsConns bounds the connections to -metrics.
const metricsConns = 32

func (s *service) startMetrics(addr string, within *gate.Gate, plan *backupPlan) error {
	l, err := listen("metrics", addr)
	if err != nil {
		return err
	}
	m := s.figures
	m.ofRequests(s.api)
	m.ofConnections(within)
	m.ofStore(s.store, s.api.engine)
	m.ofTime(s.api.engine)
	m.ofWebhooks(s.hooks)
	if database, ok := s.store.(wholeStore); ok {
		m.ofDatabase(database)
	}
	if s.file != nil {
		m.ofFile(s.file, &s.space)
		m.ofBackups(plan, &s.backups)
	}
	if s.pair != nil {
		m.ofCertificate(s.pair)
	}
	m.Runtime()
	m.Process()
	s.metrics = newServer(m, s.log)
	bounded := newGate(l.(*net.TCPListener), metricsConns, metricsConns, nil, nil, s.log)
	go func() { s.ended <- s.metrics.Serve(bounded) }()
	s.log.Info("metrics", "addr", l.Addr().String())
	return nil
}

// openCards gives the API the pages of customers, if it is to have them.
func (s *service) openCards(c *invocation) {
	site := newSite(s.api)
	switch {
	case c.cardsAt.url != nil:
		s.api.engine.cardsAt, site.host = c.cardsAt.origin(), hostName(c.cardsAt.url.Host)
		if c.cardsAt.isPlain() {
			s.log.Warn("cards without TLS", "cards", s.api.engine.cardsAt, "cause", "whoever is in the same network can read the addresses of cards", "help", "start with -cards https://…")
		}
	case c.cardsBeside:
		s.api.engine.cardsAt, site.beside = c.besideAddress(s.listener.Addr().(*net.TCPAddr)), true
	default:
		return
	}
	if s.site = site; c.cardsAddr == "" {
		s.api.site = site
	}
}

// besideAddress is what browsers call the address of the pages beside the panel: as the panel is
// opened, or this machine's name where the server listens for all.
func (c *invocation) besideAddress(at *net.TCPAddr) string {
	scheme, host := "http://", at.String()
	if c.tlsCert != "" {
		scheme = "https://"
	}
	switch {
	case c.panelAt.url != nil:
		return c.panelAt.origin()
	case at.IP.IsUnspecified():
		host = net.JoinHostPort("localhost", strconv.Itoa(at.Port))
	}
	return scheme + host
}

// cardsConns bounds the connections to -cards-addr.
const cardsConns = 1000

func (s *service) startCards(c *invocation) error {
	l, err := listen("cards-addr", c.cardsAddr)
	if err != nil {
		return err
	}
	s.cards = newServer(s.site, s.log)
	within := newGate(l.(*net.TCPListener), max(1, min(cardsConns, host.MaxFiles()/4)), c.maxConnsPerSource, slices.Concat(s.api.trusted, loopback[:]), nil, s.log)
	go func() { s.ended <- s.cards.Serve(s.api.connections(s.secured(within))) }()
	s.log.Info("cards", "addr", l.Addr().String(), "cards", s.api.engine.cardsAt)
	return nil
}

// bounded returns the listener of the public API, which bounds its connections.
func (s *service) bounded(c *invocation) *gate.Gate {
	maxConns := max(min(c.maxConns, host.MaxFiles()-reservedFiles), 1)
	if maxConns < c.maxConns {
		s.log.Warn("fewer connections than asked for", "max", maxConns, "cause", "the limit of open files")
	}
	var page func(http.Header) []byte
	if s.api.panel != nil {
		page = fullPage(allTexts())
	}
	return newGate(s.listener.(*net.TCPListener), maxConns, c.maxConnsPerSource, slices.Concat(s.api.trusted, loopback[:]), page, s.log)
}

func (s *service) servers() []*http.Server {
	return slices.DeleteFunc([]*http.Server{s.public, s.local, s.redirect, s.metrics, s.cards}, func(h *http.Server) bool { return h == nil })
}

// close ends the servers at once.
func (s *service) close() (err error) {
	for _, h := range s.servers() {
		err = errors.Join(err, h.Close())
	}
	return err
}

// shutDown waits for requests in flight, for timeout in all. A client that takes
// longer or does not read its answer is cut off. That is no failure, since what the
// client wrote is on disk.
func shutDown(log *slog.Logger, timeout time.Duration, servers ...*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var wait sync.WaitGroup
	for _, s := range servers {
		wait.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				log.Warn("connections cut off", "cause", err.Error())
				s.Close()
			}
		})
	}
	wait.Wait()
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader - (4 << 10), // net/http adds 4 KiB for its read-ahead buffer
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // OPTIONS * gets our 404
	}
}

// connections wraps the listener of the public API for its server. What has begun is finished
// (exchange.context), so nobody needs to watch whether the client goes: watched, a GET of a balance
// takes 5 % more of the server's CPU, an add 4 % and a sale 3 %.
func (a *api) connections(l net.Listener) net.Listener {
	return lastword.Refusing(unwatched.New(l), a.refusalOf)
}
