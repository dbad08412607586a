package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	system "os/user"
	"strconv"

	"sello/internal/localcall"
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
		"key/ticket": operation(a.newTicketSecret),
		"audit":      operation(a.audit),
		"cards/need": operation(a.needCards),

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

// handler returns the HTTP handler that serves the operations over the socket.
func (a *admin) handler(log *slog.Logger) http.Handler {
	operations := a.operations()
	return localcall.Handler(func(ctx context.Context, user, name string, in []byte) (answer localcall.Reply, known bool) {
		run, known := operations[name]
		if !known {
			return answer, false
		}
		result, err := run(withOperator(ctx, user), in)
		if err == nil {
			answer.Result, err = encode(result)
		}
		if err != nil {
			answer.Code = failureCode(err)
			if answer.Error = inWords(err); errors.Is(err, fs.ErrPermission) {
				answer.Error += " para el usuario del servidor, que es quien lo hace"
			}
		}
		logOperation(ctx, log, name, result, err)
		return answer, true
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
	server := localcall.Reach(file)
	return func(ctx context.Context, name string, in, out any) error {
		answer, err := server.Call(ctx, thisUser(), name, in)
		switch {
		case errors.Is(err, localcall.ErrEnded):
			return adminErrorf("el servidor terminó antes de responder")
		case errors.Is(err, localcall.ErrUnknown):
			return adminErrorf("el servidor no conoce la operación %s", name)
		case err != nil:
			return err
		case answer.Code == "usage":
			return &usageError{answer.Error}
		case answer.Error != "":
			return &adminError{answer.Error, answer.Code}
		}
		return json.Unmarshal(answer.Result, out)
	}, server != nil
}
