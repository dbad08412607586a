package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sello/internal/wallclock"
	"sello/internal/webhook"

	"sello/internal/disk"
)

// The operations behind the commands. A server that has the file open runs them for
// commands that call over its socket; otherwise the command opens the file and runs
// them itself. The operation is the same either way (contract §10).

// admin runs operations on an engine.
type admin struct {
	engine *engine
	flush  func(context.Context) error // writes the usage counted in memory

	hooks      *deliverer                                                // in a server
	inServer   bool                                                      // runs in a server, beside requests
	settings   serverSettings                                            // in a server
	makeBackup func(ctx context.Context, path string) (*backedUp, error) // copies the store into a file; nil if it cannot
}

// serverSettings are the settings of a server, for commands. Paths are absolute: a command runs in
// another directory.
type serverSettings struct {
	Build       buildInfo     `json:"build"`
	Addr        string        `json:"addr"`    // that the API listens at
	TLSCert     string        `json:"tlsCert"` // path; "" without TLS
	TLSKey      string        `json:"tlsKey"`
	Proxies     bool          `json:"proxies"`  // -trusted-proxies names some
	Panel       string        `json:"panel"`    // its address, without a path; "": it is off
	PanelOff    bool          `json:"panelOff"` // by -panel off
	Cards       string        `json:"cards"`    // the address of customers' cards; "": there are none
	BackupEvery time.Duration `json:"backupEvery"`
	BackupDir   string        `json:"backupDir"`
	BackupName  string        `json:"backupName"` // the beginning of the names of backups
}

// describe answers sello doctor.
func (a *admin) describe(context.Context, struct{}) (serverSettings, error) { return a.settings, nil }

// operatorKey is the key of a context's operator.
type operatorKey struct{}

// withOperator names the system's user who runs a command.
func withOperator(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, operatorKey{}, user)
}

// operatorOf returns the user who runs a command; "" if it is not known.
func operatorOf(ctx context.Context) string {
	user, _ := ctx.Value(operatorKey{}).(string)
	return user
}

// byOperator is the creator of what a command writes.
func byOperator(ctx context.Context) creator { return creator{Type: byCommand, Actor: operatorOf(ctx)} }

type applyRequest struct {
	Document json.RawMessage `json:"document"`
	DryRun   bool            `json:"dryRun"`
}

func (a *admin) apply(ctx context.Context, in applyRequest) (*applied, error) {
	now, s, unsure := instantOf(a.engine.now()), a.engine.seed(), !a.engine.clock.IsSafe()
	done, err := updateStore(ctx, a.engine.store, func(tx Tx) (*applied, error) {
		m := newMint(now, s)
		m.unsure = unsure
		return applyDocument(tx, in.Document, m, byOperator(ctx), in.DryRun)
	})
	if err != nil {
		return nil, err
	}
	a.engine.clock.Wrote(now)
	return done, a.engine.recountBy(ctx, a.engine.commandTime)
}

type orgRequest struct {
	Org string `json:"org"`
}

func (a *admin) organization(ctx context.Context, slug string) (uint32, error) {
	return viewStore(ctx, a.engine.store, func(tx Tx) (uint32, error) {
		n, err := organizationNumber(tx, slug)
		if err != nil || n != 0 {
			return n, err
		}
		slugs, err := organizationSlugs(tx)
		if err == nil {
			err = adminErrorf("no hay ninguna organización %q%s", slug, thereAre(slugs))
		}
		return 0, err
	})
}

func (a *admin) organizations(ctx context.Context, _ struct{}) ([]string, error) {
	return viewStore(ctx, a.engine.store, organizationSlugs)
}

func organizationSlugs(tx Tx) ([]string, error) {
	slugs := []string{}
	prefix := newKey('o').byte('s')
	for e, err := range scan(tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		slugs = append(slugs, string(e.Key[len(prefix):]))
	}
	return slugs, nil
}

// needCards are the organizations where nobody can spend points without a card.
func (a *admin) needCards(ctx context.Context, _ struct{}) ([]string, error) {
	slugs, err := a.organizations(ctx, struct{}{})
	need := []string{}
	for _, slug := range slugs {
		if err != nil {
			break
		}
		var asks bool
		asks, err = look(ctx, a, slug, func(t *txn) (bool, error) { return t.cfg.cards().Proof == proofSpending, nil })
		if asks {
			need = append(need, slug)
		}
	}
	return need, err
}

type documentRequest struct {
	Org     string `json:"org"`
	Version uint64 `json:"version,omitempty"` // 0: the current one
}

func (a *admin) export(ctx context.Context, in documentRequest) (*document, error) {
	doc, err := look(ctx, a, in.Org, func(t *txn) (*document, error) {
		cfg, err := configAt(t, cmp.Or(in.Version, t.cfg.Version))
		if err != nil {
			return nil, err
		}
		if cfg == nil {
			there := "hay de la 1 a la " + strconv.FormatUint(t.cfg.Version, 10)
			if t.cfg.Version == 1 {
				there = "solo hay la 1"
			}
			return nil, adminErrorf("no hay versión %d de la configuración de %q: %s", in.Version, in.Org, there)
		}
		return cfg.document(), nil
	})
	if err == nil {
		a.noteTaken(ctx, in.Org, auditDataExported, "document")
	}
	return doc, err
}

// noteTaken writes to an organization's audit log that the operator took data away. A store
// that takes no writes, as on a full disk, is no reason to keep the data from its operator.
func (a *admin) noteTaken(ctx context.Context, slug, action, what string) {
	_, err := operate(ctx, a, slug, func(t *txn) (any, error) { return nil, t.audit.note(action, what, nil) })
	if err != nil {
		a.engine.log.Warn("not in the audit log", "action", action, "subject", what, "cause", err.Error())
	}
}

// A createdKey is the only answer that contains the text of a key.
type createdKey struct {
	listedKey
	Key string `json:"key"`
}

type listedKey struct {
	ID           id       `json:"id"`
	Name         string   `json:"name"`
	Last4        string   `json:"last4"`
	Scopes       []string `json:"scopes"`
	RateLimit    int      `json:"rateLimit"`
	DailyLimit   *int     `json:"dailyLimit"`
	MonthlyLimit *int     `json:"monthlyLimit"`
	IPWhitelist  []string `json:"ipWhitelist"`
	CreatedAt    instant  `json:"createdAt"`
	ExpiresAt    instant  `json:"expiresAt"`
	RevokedAt    instant  `json:"revokedAt"`
	LastUsedAt   instant  `json:"lastUsedAt"`

	MaxPointsPerOperation *decimal `json:"maxPointsPerOperation"`
	MaxPointsPerDay       *decimal `json:"maxPointsPerDay"`

	NoProof bool `json:"noProof"`

	TicketNumber *int `json:"ticketNumber"` // under which its till signs tickets
}

func newListedKey(k *apiKey, lastUsed instant) listedKey {
	points := func(d decimal) *decimal {
		if d == 0 {
			return nil
		}
		return &d
	}
	return listedKey{
		k.ID, k.Name, k.Last4, append([]string{}, k.Scopes...), k.RateLimit, wholeOrNull(k.DailyLimit), wholeOrNull(k.MonthlyLimit),
		append([]string{}, k.IPWhitelist...), k.CreatedAt, k.ExpiresAt, k.RevokedAt, lastUsed,
		points(k.MaxPointsPerOperation), points(k.MaxPointsPerDay), k.NoProof, wholeOrNull(int(k.TicketNumber)),
	}
}

func (a *admin) createKey(ctx context.Context, in keyRequest) (createdKey, error) {
	return operate(ctx, a, in.Org, func(t *txn) (createdKey, error) {
		k, text, err := t.keys.create(in)
		if err != nil {
			return createdKey{}, err
		}
		return createdKey{newListedKey(k, 0), text}, nil
	})
}

// operate runs what a command writes of an organization.
func operate[T any](ctx context.Context, a *admin, slug string, fn func(*txn) (T, error)) (result T, err error) {
	org, err := a.organization(ctx, slug)
	if err != nil {
		return result, err
	}
	return write(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (T, error) {
		t.by = byOperator(ctx)
		return fn(t)
	})
}

// look runs what a command reads of an organization.
func look[T any](ctx context.Context, a *admin, slug string, fn func(*txn) (T, error)) (result T, err error) {
	org, err := a.organization(ctx, slug)
	if err != nil {
		return result, err
	}
	return read(ctx, a.engine, org, instantOf(a.engine.now()), fn)
}

func (a *admin) listKeys(ctx context.Context, in orgRequest) ([]listedKey, error) {
	if err := a.flushIfPossible(ctx); err != nil {
		return nil, err
	}
	return look(ctx, a, in.Org, func(t *txn) ([]listedKey, error) {
		keys, err := t.keys.list()
		if err != nil {
			return nil, err
		}
		list := []listedKey{}
		for _, k := range keys {
			listed, err := listKey(t, k)
			if err != nil {
				return nil, err
			}
			list = append(list, listed)
		}
		return list, nil
	})
}

type revokeRequest struct {
	Org string `json:"org"`
	ID  string `json:"id"`
}

func (a *admin) revokeKey(ctx context.Context, in revokeRequest) (listedKey, error) {
	return a.operateKey(ctx, in.Org, func(t *txn) (*apiKey, error) { return t.keys.revoke(in.ID) })
}

func (a *admin) changeKey(ctx context.Context, in keyChange) (listedKey, error) {
	return a.operateKey(ctx, in.Org, func(t *txn) (*apiKey, error) { return t.keys.change(in) })
}

// operateKey is operate for what returns the key that it has changed.
func (a *admin) operateKey(ctx context.Context, slug string, fn func(*txn) (*apiKey, error)) (listedKey, error) {
	return operate(ctx, a, slug, func(t *txn) (listedKey, error) {
		k, err := fn(t)
		if err != nil {
			return listedKey{}, err
		}
		return listKey(t, k)
	})
}

func listKey(t *txn, k *apiKey) (listedKey, error) {
	used, err := lastUsed(t.Tx, k.ID)
	return newListedKey(k, used), err
}

type rotateRequest struct {
	Org     string        `json:"org"`
	ID      string        `json:"id"`
	Overlap time.Duration `json:"overlap"`
}

// A rotatedKey is a new key, with the key that it replaces.
type rotatedKey struct {
	createdKey
	Previous listedKey `json:"previous"`
}

func (a *admin) rotateKey(ctx context.Context, in rotateRequest) (rotatedKey, error) {
	return operate(ctx, a, in.Org, func(t *txn) (rotatedKey, error) {
		k, text, old, err := t.keys.rotate(in.ID, in.Overlap)
		if err != nil {
			return rotatedKey{}, err
		}
		previous, err := listKey(t, old)
		return rotatedKey{createdKey{newListedKey(k, 0), text}, previous}, err
	})
}

type ticketSecretRequest struct {
	Org    string `json:"org"`
	ID     string `json:"id"`
	Rotate bool   `json:"rotate"`
}

// A ticketSecret is the only answer that contains a key's secret for tickets.
type ticketSecret struct {
	listedKey
	Secret string `json:"secret"`
}

func (a *admin) newTicketSecret(ctx context.Context, in ticketSecretRequest) (ticketSecret, error) {
	return operate(ctx, a, in.Org, func(t *txn) (ticketSecret, error) {
		k, secret, err := t.keys.ticketSecret(in.ID, in.Rotate)
		if err != nil {
			return ticketSecret{}, err
		}
		listed, err := listKey(t, k)
		return ticketSecret{listed, secret}, err
	})
}

// An auditRequest chooses entries of the audit log, newest first.
type auditRequest struct {
	Org     string `json:"org"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Actor   string `json:"actor,omitempty"`
	Action  string `json:"action,omitempty"`
	Subject string `json:"subject,omitempty"`
	Before  uint64 `json:"before,omitempty"` // entries before this one; 0: all
	Limit   int    `json:"limit"`
}

type auditPage struct {
	Data  []auditShape `json:"data"`
	Total uint64       `json:"total"` // that are chosen
}

func (a *admin) audit(ctx context.Context, in auditRequest) (auditPage, error) {
	return look(ctx, a, in.Org, func(t *txn) (auditPage, error) {
		f := auditFilter{to: never, actor: trimBlanks(in.Actor), action: trimBlanks(in.Action), subject: trimBlanks(in.Subject), before: in.Before}
		var ok bool
		if in.From != "" {
			if f.from, ok = parseMoment(in.From, t.cfg.zone, false); !ok {
				return auditPage{}, operatorErrorf("from", "-from no es una fecha como 2027-01-01: %q", in.From)
			}
		}
		if in.To != "" {
			if f.to, ok = parseMoment(in.To, t.cfg.zone, true); !ok {
				return auditPage{}, operatorErrorf("to", "-to no es una fecha como 2027-01-01: %q", in.To)
			}
		}
		if f.from > f.to {
			return auditPage{}, operatorErrorf("from", "-from no puede ser posterior a -to")
		}
		found, total, err := t.audit.entries(f, page{1, uint64(min(max(in.Limit, 1), maxLimit))})
		if err != nil {
			return auditPage{}, err
		}
		list := auditPage{make([]auditShape, len(found)), total}
		for i, e := range found {
			if list.Data[i], err = newAuditShape(t, e); err != nil {
				return auditPage{}, err
			}
		}
		return list, nil
	})
}

// A webhookRequest names a webhook, and of a replay the event to go on from.
type webhookRequest struct {
	Org  string `json:"org"`
	Hook string `json:"webhook"`
	From uint64 `json:"from,omitempty"`
}

func (a *admin) listWebhooks(ctx context.Context, in orgRequest) ([]listedWebhook, error) {
	return look(ctx, a, in.Org, func(t *txn) ([]listedWebhook, error) { return t.webhooks.list() })
}

// A shownSecret is the only answer that contains a webhook's secret.
type shownSecret struct {
	Secret string `json:"secret"`
}

func (a *admin) newWebhookSecret(ctx context.Context, in webhookRequest) (shownSecret, error) {
	return operate(ctx, a, in.Org, func(t *txn) (shownSecret, error) {
		secret, err := t.webhooks.newSecret(in.Hook)
		return shownSecret{webhook.SecretText(secret)}, err
	})
}

func (a *admin) testWebhook(ctx context.Context, in webhookRequest) (result webhookTest, err error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return result, err
	}
	d := a.hooks
	if d == nil {
		d = newDeliverer(a.engine, nil, a.engine.log)
	}
	return d.test(ctx, org, in.Hook, func(t *txn) error { t.by = byOperator(ctx); return nil })
}

func (a *admin) resumeWebhook(ctx context.Context, in webhookRequest) (struct{}, error) {
	return operate(ctx, a, in.Org, func(t *txn) (struct{}, error) { return struct{}{}, t.webhooks.resume(in.Hook) })
}

func (a *admin) replayWebhook(ctx context.Context, in webhookRequest) (struct{}, error) {
	return operate(ctx, a, in.Org, func(t *txn) (struct{}, error) { return struct{}{}, t.webhooks.replay(in.Hook, in.From) })
}

type verifyRequest struct {
	Since []ledgerState `json:"since"` // from the output of an earlier verification
}

// flushIfPossible flushes, but succeeds if the store refuses writes: it can still be
// read.
func (a *admin) flushIfPossible(ctx context.Context) error {
	err := a.flush(ctx)
	if errors.Is(err, errUnavailable) {
		return nil
	}
	return err
}

func (a *admin) verify(ctx context.Context, in verifyRequest) (*verification, error) {
	return a.verifyTelling(ctx, in, new(verifyProgress))
}

// fileShare is about how much of a verification's time the check of the pages takes.
const fileShare = 0.2

// verifyTelling verifies, and says in p how far it has come.
func (a *admin) verifyTelling(ctx context.Context, in verifyRequest, p *verifyProgress) (*verification, error) {
	if err := a.flushIfPossible(ctx); err != nil {
		return nil, err
	}
	now, most := instantOf(a.engine.now()), verifyEffort(a.inServer)
	return viewLong(ctx, a.engine.store, func(tx Tx) (*verification, error) {
		if f, ok := tx.(checkedTx); ok {
			var err error
			if tx, err = f.checkFile(disk.PartOf(ctx, 0, fileShare), most.workers); err != nil {
				return nil, err
			}
		}
		r := newVerifyRun(most, usualSizes(), &stoppableTx{Tx: tx, ctx: ctx}, now, in.Since)
		r.progress = p
		rest := disk.PartOf(ctx, fileShare, 1)
		r.told = func() { disk.Tell(rest, p.done(), 1) }
		return r.verify()
	})
}

type backupRequest struct {
	File    string `json:"file"`              // an absolute path
	Scratch bool   `json:"scratch,omitempty"` // for a dry run, which throws it away
}

func (a *admin) backup(ctx context.Context, in backupRequest) (*backedUp, error) {
	if a.makeBackup == nil {
		return nil, adminErrorf("esta base de datos se copia con PostgreSQL: pg_dump o pgBackRest")
	}
	if err := a.flushIfPossible(ctx); err != nil {
		return nil, err
	}
	if !in.Scratch { // the copy has the entry, too: what is compared with it misses none
		slugs, err := viewStore(ctx, a.engine.store, slugsByNumber)
		if err != nil {
			return nil, err
		}
		for _, org := range slices.Sorted(maps.Keys(slugs)) {
			a.noteTaken(ctx, slugs[org], auditBackupStarted, filepath.Base(in.File))
		}
	}
	return a.makeBackup(ctx, in.File)
}

func slugsByNumber(tx Tx) (map[uint32]string, error) {
	slugs := map[uint32]string{}
	prefix := tableSlugs.fixed()
	for e, err := range scan(tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		slugs[uint32(uintIn(e.Value))] = string(e.Key[len(prefix):])
	}
	return slugs, nil
}

// A clockReport is the output of `sello clock`.
type clockReport struct {
	Wall         instant           `json:"wall"`
	Latest       instant           `json:"latest"`       // the latest moment written to the store
	Synchronized *bool             `json:"synchronized"` // null: the system does not say
	State        wallclock.Verdict `json:"state"`
	Now          instant           `json:"now"` // the moment that reads and commands take
}

func (a *admin) clock(ctx context.Context, _ struct{}) (*clockReport, error) {
	latest, err := viewStore(ctx, a.engine.store, latestWritten)
	if err != nil {
		return nil, err
	}
	c := a.engine.clock
	r, s := c.Read()
	report := &clockReport{Wall: instantOf(r.Wall), Latest: latest, State: s.Verdict, Now: instantOf(s.Moment(r))}
	if yes, known := c.Machine.Synchronized(); known {
		report.Synchronized = &yes
	}
	return report, nil
}

func (a *admin) acceptClock(ctx context.Context, in struct{}) (*clockReport, error) {
	if err := a.engine.acceptClock(ctx, byOperator(ctx)); err != nil {
		return nil, err
	}
	if err := a.engine.recountBy(ctx, a.engine.commandTime); err != nil {
		return nil, err
	}
	return a.clock(ctx, in)
}
