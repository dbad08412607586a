package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	system "os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sello/internal/host"
)

// How a command reaches the server that has the file open: over a socket beside the file, by
// operations that have a name, JSON in and JSON out. Only the user of the process may connect.

// operations returns every operation by its name.
func (a *admin) operations() map[string]func(ctx context.Context, in []byte) (any, error) {
	return map[string]func(context.Context, []byte) (any, error){
		"apply":      operation(a.apply),
		"export":     operation(a.export),
		"key/create": operation(a.createKey),
		"key/list":   operation(a.listKeys),
		"key/revoke": operation(a.revokeKey),
		"key/change": operation(a.changeKey),
		"key/rotate": operation(a.rotateKey),
		"audit":      operation(a.audit),

		"webhook/list":   operation(a.listWebhooks),
		"webhook/secret": operation(a.newWebhookSecret),
		"webhook/test":   operation(a.testWebhook),
		"webhook/resume": operation(a.resumeWebhook),
		"webhook/replay": operation(a.replayWebhook),

		"user/invite":   operation(a.inviteUser),
		"user/withdraw": operation(a.withdrawInvitation),
		"user/list":     operation(a.listUsers),
		"user/disable":  operation(a.disableUser),
		"user/enable":   operation(a.enableUser),
		"user/logout":   operation(a.logOutUser),
		"user/reset":    operation(a.resetUser),
		"user/operator": operation(a.makeOperator),

		"verify":        operation(a.verify),
		"statement":     operation(a.verifyStatement),
		"backup":        operation(a.backup),
		"import":        operation(a.importRows),
		"import/place":  operation(a.importPlace),
		"import/done":   operation(a.importDone),
		"export/rows":   operation(a.exportRows),
		"organizations": operation(a.organizations),
		"settings":      operation(a.describe),
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
		out, err := fn(ctx, in)
		return out, onCommandLine(err)
	}
}

// socketPath returns the path where a server that has the file open listens for
// commands. It is the same for every name of the file. A path too long for a socket
// is replaced by one in the user's own directory, which both sides find and where
// nobody else can listen.
func socketPath(file string) (string, error) {
	const longest = 100 // systems allow 104 to 108
	p, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(p); err == nil { // it fails while there is no file
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

// adminReply is the answer over the socket: a result or an error.
type adminReply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"` // the text in Spanish: the error's type is lost
	Code   string          `json:"code,omitempty"`  // of failureCode
}

// listenAdmin opens the socket for the owner of the process only. The caller holds
// the file's lock, so a socket that is already there belongs to no running server.
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
	// Some systems create the socket's file with the socket's own mode, so that it is
	// never open to others. On the rest it has the umask's mode until Chmod below.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(host.MakePrivate)
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

// handler returns the HTTP handler that serves the operations over the socket.
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
		result, err := run(withOperator(r.Context(), r.Header.Get("X-Actor")), raw)
		if err == nil {
			answer.Result, err = encode(result)
		}
		if err != nil {
			answer.Code = failureCode(err)
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

// logOperation logs the outcome of an operation. An operation that was refused or
// canceled and a verification that found problems are warnings.
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
		_, undone := errors.AsType[*operatorError](err)
		_, usage := errors.AsType[*usageError](err)
		if refused || undone || usage || ctx.Err() != nil {
			level = slog.LevelWarn
		}
	}
	log.Log(ctx, level, "admin", told...)
}

// An adminCaller runs an operation and decodes its result into out.
type adminCaller func(ctx context.Context, name string, in, out any) error

// direct runs operations in this process. It passes the many rows of an import
// without JSON.
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

// thisUser returns the name of the user who runs the command, or else the user's
// number.
func thisUser() string {
	if u, err := system.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// overSocket returns a caller of operations in the server that has the file open.
// ok is false if no server accepts on the socket. There is none beside a database.
func overSocket(file string) (call adminCaller, ok bool) {
	if isDatabase(file) {
		return nil, false
	}
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
		req.Header.Set("X-Actor", thisUser())
		res, err := client.Do(req)
		if err != nil {
			return cmp.Or(ctx.Err(), adminErrorf("el servidor terminó antes de responder"))
		}
		defer res.Body.Close()
		var answer adminReply
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return adminErrorf("el servidor no conoce la operación %s", name)
		}
		switch {
		case answer.Code == "usage":
			return &usageError{answer.Error}
		case answer.Error != "":
			return &adminError{answer.Error, answer.Code}
		}
		return json.Unmarshal(answer.Result, out)
	}, true
}
