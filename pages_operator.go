package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sello/internal/wallclock"
)

// The pages of whoever runs the server: its state, backups, verifications, organizations and users.
// Nothing on them is about customers. Only a command makes a user an operator.

const operatorPath = "/panel/operador"

func operatorArea() panelArea {
	return panelArea{[]panelPage{
		{operatorPath, operates, "operator", operatorPage},
		{operatorPath + "/copias", operates, "backups", backupsPage},
		{operatorPath + "/verificacion", operates, "verify", verifyPage},
		{operatorPath + "/verificacion/huellas", operates, "", digestsFile},
		{operatorPath + "/organizaciones", operates, "organizations", organizationsPage},
		{operatorPath + "/usuarios", operates, "users", usersPage},
	}, []panelForm{
		{path: operatorPath + "/copias", need: operates, from: operatorPath + "/copias", proof: true, run: startBackup},
		{path: operatorPath + "/verificacion", need: operates, from: operatorPath + "/verificacion", proof: true, run: startVerify},
	}}
}

// fillNow is a fillFunc that needs no transaction: err is what went wrong.
func fillNow(err error) fillFunc { return func(*txn) error { return err } }

// backedUp is operated for what concerns backups: an error if the server makes none.
func (p *panel) backedUp() (*panelServer, error) {
	s, err := p.operated()
	if err == nil && s.plan == nil {
		err = newError(codeRouteNotFound)
	}
	return s, err
}

// operated returns the server; an error if there is none.
func (p *panel) operated() (*panelServer, error) {
	if p.server == nil {
		return nil, errUnavailable
	}
	return p.server, nil
}

type operatorView struct {
	Version, Commit, Go, Platform, Address, Name string // Name is the store's

	Modified bool
	Schema   int
	Started  instant

	Alerts []string // names of texts
	Now    serverFigures
	Source sourceView
}

// serverFigures are figures of one moment. A negative age is unknown.
type serverFigures struct {
	Up                       float64 // in seconds
	IsFile                   bool    // or else a database, without the figures up to Disk
	File, Journal, Unwritten int64   // bytes
	Checkpoints              int
	Lag                      float64 // in seconds, of the oldest write that is not in the data file
	Free, Disk               uint64  // bytes; Disk is 0 where the system does not tell
	Open, MostOpen           int
	Refused, Faults          uint64
	Waiting, MostWaiting     int
	Clock                    wallclock.Verdict
	ClockKnown, ClockInStep  bool // whether the system says that its clock is synchronized
	SweepLag                 float64
	HookLag                  float64
	HooksPaused              int
	Delivered, HooksRefused  uint64
}

func operatorPage(v *panelRequest) (any, fillFunc) {
	s, err := v.panel.operated()
	if err != nil {
		return nil, fillNow(err)
	}
	b := &s.build
	view := &operatorView{
		Version: b.Version, Commit: b.Revision, Go: b.Go, Platform: b.Platform, Address: s.address, Name: s.name,
		Modified: b.Modified, Schema: b.Schema, Started: s.started, Now: s.figures(v.api, v.request.now), Source: newSourceView(v),
	}
	view.Alerts = s.alerts(&view.Now, v.request.now)
	return view, nil
}

// figures are the figures of serve_metrics.go, now.
func (s *panelServer) figures(a *api, now instant) (f serverFigures) {
	f.Up = max(now.sub(s.started), 0).Seconds()
	if store, is := s.store.(*boltStore); is {
		stats := store.file.Stats()
		f.IsFile, f.File, f.Journal, f.Unwritten, f.Checkpoints = true, stats.FileBytes, stats.JournalFileBytes, stats.JournalBytes, stats.Checkpoints
		if !stats.Oldest.IsZero() {
			f.Lag = max(now.sub(instantOf(stats.Oldest)), 0).Seconds()
		}
	}
	f.Free, f.Disk = s.space.Free.Load(), s.space.All.Load()
	f.Open, f.Refused = s.gate.Counts()
	f.MostOpen, f.Faults = s.gate.Most, a.faults.Load()
	queue := s.store.writes()
	f.Waiting, f.MostWaiting = len(queue.waiting), cap(queue.waiting)
	_, clock := a.engine.clock.Read()
	f.Clock = clock.Verdict
	f.ClockInStep, f.ClockKnown = a.engine.clock.Machine.Synchronized()
	f.SweepLag = s.sweepLag()
	paused, lag := s.hooks.lateness()
	f.HooksPaused, f.HookLag = paused, lag.Seconds()
	f.Delivered, f.HooksRefused = s.hooks.delivered.Load(), s.hooks.refused.Load()
	return f
}

// alerts are what somebody should see to, the worst first.
func (s *panelServer) alerts(f *serverFigures, now instant) (list []string) {
	var every time.Duration // of backups
	var last time.Time
	if s.plan != nil {
		every, last = s.plan.every, s.plan.state.figures().Last
	}
	for _, each := range []struct {
		alert string
		holds bool
	}{
		{"alert.clock", f.Clock != wallclock.Safe},
		{"alert.disk", s.space.Low.Load()},
		{"alert.sweep", f.SweepLag > 600},
		{"alert.hooks", f.HooksPaused > 0},
		{"alert.backups.none", s.plan != nil && every == 0},
		{"alert.backups.late", every > 0 && (last.IsZero() || now.sub(instantOf(last)) > 2*every)},
	} {
		if each.holds {
			list = append(list, each.alert)
		}
	}
	return list
}

// A sourceView is where a request seems to come from. Text is the name of what is to be said.
type sourceView struct {
	Text, Source, Peer string
	Trusted            []string
}

func newSourceView(v *panelRequest) sourceView {
	s := sourceView{Text: "source.direct", Source: v.source().String()}
	if peer, err := netip.ParseAddrPort(v.r.RemoteAddr); err == nil {
		s.Peer = plainAddr(peer.Addr()).String()
	}
	switch {
	case s.Peer != "" && s.Source != s.Peer:
		s.Text = "source.proxy"
	case len(v.r.Header.Values("X-Forwarded-For")) > 0:
		s.Text = "source.doubted"
	}
	for _, n := range v.api.trusted {
		s.Trusted = append(s.Trusted, n.String())
	}
	return s
}

type backupsView struct {
	Dir      string
	Planned  bool // -backup-every
	Every    float64
	Keep     int
	Backups  []backupFile // newest first
	All      int
	Bytes    int64
	Unread   string // why the directory cannot be read; "" if it can
	Running  taskRun[struct{}, *backedUp]
	Last     taskRun[struct{}, *backedUp]
	Failed   string // why the last one failed; "" if it did not
	After    bool   // -backup-after
	Sent     instant
	Unsent   int
	Failures int
}

type backupFile struct {
	Name  string
	At    instant
	Bytes int64
}

const backupsShown = 50

func backupsPage(v *panelRequest) (any, fillFunc) {
	s, err := v.panel.backedUp()
	if err != nil {
		return nil, fillNow(err)
	}
	p, state := s.plan, s.plan.state.figures()
	view := &backupsView{
		Dir: p.dir, Planned: p.every > 0, Every: p.every.Seconds(), Keep: p.keep, Failures: state.Failures,
		After: p.afterBackup != nil, Unsent: state.Unsent,
	}
	if !state.Sent.IsZero() {
		view.Sent = instantOf(state.Sent)
	}
	if dir, err := filepath.Abs(p.dir); err == nil {
		view.Dir = dir
	}
	made, err := p.copies().Made(p.now())
	if err != nil {
		view.Unread = inWords(err)
	}
	view.All = len(made)
	for i, b := range slices.Backward(made) {
		info, err := os.Stat(filepath.Join(p.dir, b.Name))
		if err != nil { // it was removed meanwhile
			continue
		}
		view.Bytes += info.Size()
		if len(made)-i <= backupsShown {
			view.Backups = append(view.Backups, backupFile{b.Name, instantOf(b.At), info.Size()})
		}
	}
	view.Running, view.Last = s.copying.runs()
	if view.Last.Err != nil {
		view.Failed = inWords(view.Last.Err)
	}
	return view, nil
}

func startBackup(v *panelRequest) error {
	s, err := v.panel.backedUp()
	if err == nil {
		err = startTask(v, &s.copying, auditBackupStarted, func(ctx context.Context, _ *struct{}) (*backedUp, error) { return s.plan.makeOne(ctx) })
	}
	if err != nil {
		return err
	}
	return v.redirect(operatorPath + "/copias")
}

type verifyView struct {
	Running taskRun[verifyProgress, *verification]
	Last    taskRun[verifyProgress, *verification]
	Failed  string // why the last one could not be completed; "" if it was
	Wrong   []wrongIn
}

// wrongIn is how many problems an organization has. Their texts may hold what customers are
// found by, so only `sello verify` shows them.
type wrongIn struct {
	Organization string // "" of none
	Problems     int
}

func verifyPage(v *panelRequest) (any, fillFunc) {
	s, err := v.panel.operated()
	if err != nil {
		return nil, fillNow(err)
	}
	view := &verifyView{}
	view.Running, view.Last = s.checking.runs()
	if view.Last.Err != nil {
		view.Failed = inWords(view.Last.Err)
	}
	if done := view.Last.Result; done != nil {
		view.Wrong = problemsBy(done)
	}
	return view, nil
}

// problemsBy counts the problems by organization, whose slug they begin with.
func problemsBy(done *verification) (list []wrongIn) {
	for _, p := range done.Problems {
		slug, _, _ := strings.Cut(p, ": ")
		if !slices.ContainsFunc(done.Ledgers, func(l ledgerState) bool { return l.Organization == slug }) {
			slug = ""
		}
		i := slices.IndexFunc(list, func(w wrongIn) bool { return w.Organization == slug })
		if i < 0 {
			list, i = append(list, wrongIn{Organization: slug}), len(list)
		}
		list[i].Problems++
	}
	slices.SortStableFunc(list, func(a, b wrongIn) int { return cmp.Compare(b.Problems, a.Problems) })
	return list
}

func startVerify(v *panelRequest) error {
	s, err := v.panel.operated()
	if err == nil {
		err = startTask(v, &s.checking, auditVerifyStarted, func(ctx context.Context, p *verifyProgress) (*verification, error) {
			return s.check(ctx, verifyRequest{}, p)
		})
	}
	if err != nil {
		return err
	}
	return v.redirect(operatorPath + "/verificacion")
}

// startTask starts a task for a member, unless it runs already, and writes to the audit log of
// the member's organization that it did.
func startTask[P, R any](v *panelRequest, k *panelTask[P, R], action string, work func(context.Context, *P) (R, error)) error {
	progress, free := k.begin(v.request.now)
	if !free {
		return nil
	}
	if err := v.change(func(t *txn) error { return t.audit.note(action, "", nil) }); err != nil {
		k.drop()
		return err
	}
	now := v.api.engine.now
	v.panel.server.background(func(ctx context.Context) {
		result, err := work(ctx, progress)
		k.end(instantOf(now()), result, err)
	})
	return nil
}

// digestsFile is what `sello verify -since` takes: how far the ledgers and audit logs had come.
func digestsFile(v *panelRequest) (any, fillFunc) {
	s, err := v.panel.operated()
	if err != nil {
		return nil, fillNow(err)
	}
	_, last := s.checking.runs()
	if last.Result == nil {
		return nil, fillNow(newError(codeRouteNotFound))
	}
	text, err := json.MarshalIndent(struct {
		Ledgers []ledgerState `json:"ledgers"`
	}{last.Result.Ledgers}, "", "  ")
	name := "sello-huellas-" + last.Ended.time().UTC().Format(backupStamp) + ".json"
	return &download{name: name, media: "application/json", body: append(text, '\n')}, fillNow(err)
}

type organizationsView struct {
	Rows  []organizationRow
	Pager pagerView
	Total uint64
}

type organizationRow struct {
	Name, Slug, Plan string
	API              bool
	People           int
	counters
}

func organizationsPage(v *panelRequest) (any, fillFunc) {
	view := &organizationsView{}
	req := v.request
	req.Request = v.r
	req.query = query{input{new(fault), sent{object: givenParams(v.params("page"))}}}
	p := req.page()
	if err := req.query.err; err != nil {
		v.faults = append(v.faults, publicError(err))
		return view, nil
	}
	e := v.api.engine
	return view, func(t *txn) (err error) {
		if view.Total, err = organizationCount(t.Tx); err != nil {
			return err
		}
		for n := p.skip() + 1; n <= min(p.skip()+p.limit, view.Total); n++ {
			of, err := e.inTxn(t.Tx, uint32(n), t.now, seed{})
			if err != nil {
				return err
			}
			row, err := newOrganizationRow(of)
			if err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		view.Pager = pager(v, newListMeta(view.Total, p))
		return nil
	}
}

func newOrganizationRow(t *txn) (row organizationRow, err error) {
	o := &t.cfg.Organization
	row = organizationRow{Name: o.Name, Slug: o.Slug, Plan: o.Plan.Name, API: o.Plan.APIAccess}
	team, err := t.people.team()
	if err != nil {
		return row, err
	}
	row.People = len(team)
	n, err := t.count()
	if err == nil {
		row.counters = *n
	}
	return row, err
}

type usersView struct {
	Rows []userRow
	Next string // the address of the next page, which begins behind an e-mail; "" without one
}

type userRow struct {
	*user
	Factor bool // has a second one
	In     []userIn
}

type userIn struct {
	Organization string
	Role         role
	Disabled     bool
}

const usersShown = 50

func usersPage(v *panelRequest) (any, fillFunc) {
	view := &usersView{}
	e := v.api.engine
	return view, func(t *txn) error {
		list, err := usersAfter(t.Tx, v.param("after"), usersShown+1)
		if err != nil {
			return err
		}
		if len(list) > usersShown {
			list = list[:usersShown]
			view.Next = withQuery(operatorPath+"/usuarios", []pair{{"after", list[usersShown-1].Email}})
		}
		for _, u := range list {
			row, err := e.userRow(t, u)
			if err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		return nil
	}
}

func (e *engine) userRow(t *txn, u *user) (row userRow, err error) {
	row.user = u
	factor, err := factorOf(t.Tx, u.ID)
	if err != nil {
		return row, err
	}
	row.Factor = factor != nil
	orgs, err := organizationsOf(t.Tx, u.ID)
	if err != nil {
		return row, err
	}
	for _, org := range orgs {
		m, err := membershipIn(t.Tx, org, u.ID)
		if err != nil || m == nil {
			return row, cmp.Or(err, errors.New("a user without its membership"))
		}
		of, err := e.inTxn(t.Tx, org, t.now, seed{})
		if err != nil {
			return row, err
		}
		row.In = append(row.In, userIn{of.cfg.Organization.Name, m.Role, m.Disabled != 0})
	}
	return row, nil
}

// What the templates ask for.

// OperatorTabs are the operator's pages; without backups on a database.
func (f *pageData) OperatorTabs() (tabs []navItem) {
	server := f.request.panel.server
	for _, each := range operatorArea().pages {
		if each.template == "backups" && server != nil && server.plan == nil {
			continue
		}
		if each.template != "" {
			tabs = append(tabs, navItem{each.path, f.T("tab." + each.template), f.request.page != nil && f.request.page.path == each.path})
		}
	}
	return tabs
}

// Late says how late something is, by the name of its texts.
func (f prose) Late(name string, seconds float64) string {
	if seconds < 1 {
		return f.T(name + ".fine")
	}
	return f.T(name+".lag", f.format.Span(seconds))
}

// Words says where the request seems to come from.
func (s sourceView) Words(f *pageData) string {
	if s.Text == "source.direct" {
		return f.T(s.Text, s.Source)
	}
	return f.T(s.Text, s.Source, s.Peer)
}

func (f *pageData) Clock() instant { return f.now }

// Step says how far a verification has come.
func (p *verifyProgress) Step(f *pageData) string {
	if p.organizations.Load() == 0 {
		return f.T("verify.file")
	}
	return f.T("verify.step", f.Count(p.organization.Load()), f.Count(p.organizations.Load()), f.Count(p.checked.Load()), f.Count(p.customers.Load()))
}

// Done and All are a verification's progress among its organizations' customers.
func (p *verifyProgress) Done() uint64 {
	return min(p.checked.Load(), p.customers.Load())
}
func (p *verifyProgress) All() uint64 { return max(p.customers.Load(), 1) }

// Span writes how long something took or takes: "3 d 4 h". What is not known is a dash.
func (f *format) Span(seconds float64) string {
	if math.IsNaN(seconds) {
		return tr(allTexts().In(f.language), "none")
	}
	n := int64(seconds)
	for _, u := range []struct {
		length int64
		name   string
		next   int64
		then   string
	}{{86400, "d", 3600, "h"}, {3600, "h", 60, "min"}, {60, "min", 1, "s"}} {
		if n >= u.length {
			text := fmt.Sprintf("%d%s%s", n/u.length, nbsp, u.name)
			if rest := n % u.length / u.next; rest > 0 {
				text += fmt.Sprintf(" %d%s%s", rest, nbsp, u.then)
			}
			return text
		}
	}
	if n == 0 && seconds > 0 {
		return f.Number(decimal(math.Ceil(seconds*10))*decimalOne/10) + nbsp + "s"
	}
	return fmt.Sprintf("%d%ss", n, nbsp)
}

// Took is how long a task took.
func (f *format) Took(began, ended instant) string { return f.Span(ended.sub(began).Seconds()) }
