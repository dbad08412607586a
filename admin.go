package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Administration: what the commands do to a store. A server that has the file
// open takes them on a socket beside it; else the command opens the file
// itself. Either way it is the same operation (contract §10).

// An adminError is a fault in the words of whoever runs a command.
type adminError struct {
	message string
	damage  bool // of the file
}

func (e *adminError) Error() string { return e.message }

func adminErrorf(format string, args ...any) error {
	return &adminError{message: fmt.Sprintf(format, args...)}
}

// admin runs operations on an engine.
type admin struct {
	engine *engine
	flush  func(context.Context) error // writes usage that is counted in memory

	inServer   bool                                                      // which serves others meanwhile
	makeBackup func(ctx context.Context, path string) (*backedUp, error) // of the store's file
}

// operations are all there are, by name.
func (a *admin) operations() map[string]func(ctx context.Context, in []byte) (any, error) {
	return map[string]func(context.Context, []byte) (any, error){
		"apply":         operation(a.apply),
		"export":        operation(a.export),
		"key/create":    operation(a.createKey),
		"key/list":      operation(a.listKeys),
		"key/revoke":    operation(a.revokeKey),
		"verify":        operation(a.verify),
		"backup":        operation(a.backup),
		"import":        operation(a.importRows),
		"import/done":   operation(a.importDone),
		"export/rows":   operation(a.exportRows),
		"organizations": operation(a.organizations),
		"clock":         operation(a.clock),
		"clock/accept":  operation(a.acceptClock),
	}
}

func operation[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, raw []byte) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		return fn(ctx, in)
	}
}

type applyRequest struct {
	Document json.RawMessage `json:"document"`
	DryRun   bool            `json:"dryRun"`
}

func (a *admin) apply(ctx context.Context, in applyRequest) (*applied, error) {
	now, s := instantOf(a.engine.now()), a.engine.seed()
	done, err := update(ctx, a.engine.store, func(tx Tx) (*applied, error) {
		return applyDocument(tx, in.Document, newMint(now, s), in.DryRun)
	})
	if err != nil {
		return nil, err
	}
	a.engine.clock.wrote(now)
	return done, a.engine.recountBy(ctx, a.engine.commandTime)
}

type orgRequest struct {
	Org string `json:"org"`
}

// organization finds the number of an organization by its slug.
func (a *admin) organization(ctx context.Context, slug string) (uint32, error) {
	return view(ctx, a.engine.store, func(tx Tx) (uint32, error) {
		n, err := organizationNumber(tx, slug)
		if err == nil && n == 0 {
			err = adminErrorf("no hay ninguna organización %q", slug)
		}
		return n, err
	})
}

// organizations lists the slugs of all.
func (a *admin) organizations(ctx context.Context, _ struct{}) ([]string, error) {
	return view(ctx, a.engine.store, func(tx Tx) ([]string, error) {
		slugs := []string{}
		prefix := newKey('o').byte('s')
		for e, err := range scan(tx, prefix, false) {
			if err != nil {
				return nil, err
			}
			slugs = append(slugs, string(e.Key[len(prefix):]))
		}
		return slugs, nil
	})
}

func (a *admin) export(ctx context.Context, in orgRequest) (*document, error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, org, 0, func(t *txn) (*document, error) { return t.cfg.document(), nil })
}

// A createdKey is the only thing that ever holds the text of a key.
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
}

func newListedKey(k *apiKey, lastUsed instant) listedKey {
	limit := func(n int) *int {
		if n == 0 {
			return nil
		}
		return &n
	}
	return listedKey{
		k.ID, k.Name, k.Last4, append([]string{}, k.Scopes...), k.RateLimit, limit(k.DailyLimit), limit(k.MonthlyLimit),
		append([]string{}, k.IPWhitelist...), k.CreatedAt, k.ExpiresAt, k.RevokedAt, lastUsed,
	}
}

func (a *admin) createKey(ctx context.Context, in keyRequest) (createdKey, error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return createdKey{}, err
	}
	return write(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (createdKey, error) {
		k, text, err := t.createKey(in)
		if err != nil {
			return createdKey{}, err
		}
		return createdKey{newListedKey(k, 0), text}, nil
	})
}

func (a *admin) listKeys(ctx context.Context, in orgRequest) ([]listedKey, error) {
	if err := a.flush(ctx); err != nil {
		return nil, err
	}
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, org, 0, func(t *txn) ([]listedKey, error) {
		keys, err := t.listKeys()
		if err != nil {
			return nil, err
		}
		list := []listedKey{}
		for _, k := range keys {
			used, err := lastUsed(t.Tx, k.ID)
			if err != nil {
				return nil, err
			}
			list = append(list, newListedKey(k, used))
		}
		return list, nil
	})
}

type revokeRequest struct {
	Org string `json:"org"`
	ID  string `json:"id"`
}

func (a *admin) revokeKey(ctx context.Context, in revokeRequest) (listedKey, error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return listedKey{}, err
	}
	return write(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (listedKey, error) {
		k, err := t.revokeKey(in.ID)
		if err != nil {
			return listedKey{}, err
		}
		used, err := lastUsed(t.Tx, k.ID)
		return newListedKey(k, used), err
	})
}

type verifyRequest struct {
	Since []ledgerState `json:"since"` // as an earlier verification told them
}

func (a *admin) verify(ctx context.Context, in verifyRequest) (*verification, error) {
	if err := a.flush(ctx); err != nil {
		return nil, err
	}
	now, most := instantOf(a.engine.now()), verifyEffort(a.inServer)
	return viewLong(ctx, a.engine.store, func(tx Tx) (*verification, error) {
		if f, ok := tx.(checkedTx); ok {
			var err error
			if tx, err = f.checkFile(ctx, most.workers); err != nil {
				return nil, err
			}
		}
		return verifyBy(most, usualSizes(), &stoppableTx{Tx: tx, ctx: ctx}, now, in.Since)
	})
}

type backupRequest struct {
	File string `json:"file"` // an absolute path
}

func (a *admin) backup(ctx context.Context, in backupRequest) (*backedUp, error) {
	if err := a.flush(ctx); err != nil {
		return nil, err
	}
	return a.makeBackup(ctx, in.File)
}

// A clockReport is what `sello clock` tells.
type clockReport struct {
	Wall         instant `json:"wall"`
	Latest       instant `json:"latest"`       // of the store
	Synchronized *bool   `json:"synchronized"` // null: the system does not say
	State        verdict `json:"state"`
	Now          instant `json:"now"` // what reads and commands are as of
}

func (a *admin) clock(ctx context.Context, _ struct{}) (*clockReport, error) {
	latest, err := view(ctx, a.engine.store, latestWritten)
	if err != nil {
		return nil, err
	}
	c := a.engine.clock
	r, s := c.read()
	report := &clockReport{Wall: instantOf(r.wall), Latest: latest, State: s.verdict, Now: instantOf(s.moment(r))}
	if yes, known := c.machine.synchronized(); known {
		report.Synchronized = &yes
	}
	return report, nil
}

func (a *admin) acceptClock(ctx context.Context, in struct{}) (*clockReport, error) {
	if err := a.engine.acceptClock(ctx); err != nil {
		return nil, err
	}
	if err := a.engine.recountBy(ctx, a.engine.commandTime); err != nil {
		return nil, err
	}
	return a.clock(ctx, in)
}

// socketPath is where a server that has the file open listens for commands,
// by whichever name the file is called. A path too long for a socket is
// replaced by one in the user's own directory, which both sides find and where
// nobody else can listen.
func socketPath(file string) (string, error) {
	const longest = 100 // the system's limit is 104 to 108, by system
	p, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(p); err == nil { // else there is no file yet
		p = real
	}
	if p += ".sock"; len(p) <= longest {
		return p, nil
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return "", adminErrorf("la ruta es demasiado larga para el socket de administración: %s", p)
	}
	h := sha256.Sum256([]byte(p))
	return filepath.Join(home, "sello", hex.EncodeToString(h[:8])+".sock"), nil
}

// adminReply is what goes back over the socket: a result or an error.
type adminReply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`  // in words: the types of errors go no further
	Usage  bool            `json:"usage,omitempty"`  // the command line is wrong
	Damage bool            `json:"damage,omitempty"` // the file is damaged
}

// listenAdmin opens the socket for the owner of the process alone. The caller
// holds the file's lock, so a socket left there is nobody's.
func listenAdmin(file string) (net.Listener, error) {
	p, err := socketPath(file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Some systems take a socket's mode for that of its name, which is then never
	// open to others; on the rest it is for a moment what the umask lets it be.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(makePrivate)
	}}
	l, err := private.Listen(context.Background(), "unix", p)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(p, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// handler serves the operations over the socket.
func (a *admin) handler(log *slog.Logger) http.Handler {
	operations := a.operations()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[1:]
		run, ok := operations[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var answer adminReply
		result, err := run(r.Context(), raw)
		if err == nil {
			answer.Result, err = encode(result)
		}
		if err != nil {
			_, answer.Usage = errors.AsType[*usageError](err)
			answer.Damage = isDamage(err)
			if answer.Error = inWords(err); errors.Is(err, fs.ErrPermission) {
				answer.Error += " para el usuario del servidor, que es quien lo hace"
			}
		}
		logOperation(r.Context(), log, name, result, err)
		if raw, err = encode(answer); err == nil {
			w.Write(raw)
		}
	})
}

// logOperation logs what a command did. It warns of what was refused, and of a
// verification that has found something.
func logOperation(ctx context.Context, log *slog.Logger, name string, result any, err error) {
	level, told := slog.LevelInfo, []any{"operation", name, "ok", err == nil}
	if v, ok := result.(*verification); ok && err == nil {
		told = append(told, "problems", len(v.Problems))
		if len(v.Problems) > 0 {
			level = slog.LevelWarn
		}
	}
	if err != nil {
		level, told = slog.LevelError, append(told, "cause", err.Error())
		_, refused := errors.AsType[*adminError](err)
		_, usage := errors.AsType[*usageError](err)
		if refused || usage || ctx.Err() != nil {
			level = slog.LevelWarn
		}
	}
	log.Log(ctx, level, "admin", told...)
}

// An adminCaller runs an operation and decodes its result into out.
type adminCaller func(ctx context.Context, name string, in, out any) error

// direct runs operations in this process. The rows of an import, which are many,
// need no JSON on the way.
func (a *admin) direct(ctx context.Context, name string, in, out any) error {
	if in, ok := in.(importRequest); ok {
		outcomes, err := a.importRows(ctx, in)
		*out.(*[]importOutcome) = outcomes
		return err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	result, err := a.operations()[name](ctx, raw)
	if err != nil {
		return err
	}
	if raw, err = encode(result); err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// overSocket runs operations in the server that has the file open. ok is
// false if none answers there.
func overSocket(file string) (call adminCaller, ok bool) {
	p, err := socketPath(file)
	if err != nil {
		return nil, false // a server could not listen either
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", p)
	}
	probe, err := dial(context.Background(), "", "")
	if err != nil {
		return nil, false
	}
	probe.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return func(ctx context.Context, name string, in, out any) error {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sello/"+name, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return cmp.Or(ctx.Err(), adminErrorf("el servidor terminó antes de responder"))
		}
		defer res.Body.Close()
		var answer adminReply
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return adminErrorf("el servidor no conoce la operación %s", name)
		}
		if answer.Usage {
			return &usageError{answer.Error}
		}
		if answer.Error != "" {
			return &adminError{answer.Error, answer.Damage}
		}
		return json.Unmarshal(answer.Result, out)
	}, true
}
