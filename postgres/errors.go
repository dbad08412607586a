package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A failure is one of the errors below. Errors wrap them, and the cause if there is one.
type failure string

func (f failure) Error() string { return "postgres: " + string(f) }

// Failures of Open, for each of which there is something to do.
const (
	ErrDSN        = failure("not a connection string")
	ErrUnreached  = failure("no server answers")
	ErrPassword   = failure("user or password refused")
	ErrNoDatabase = failure("there is no database of that name")
	ErrForbidden  = failure("the user may not do that")
	ErrUntrusted  = failure("the server's certificate is not to be trusted")
	ErrOld        = failure("the server is older than PostgreSQL 15")
	ErrReadOnly   = failure("the database takes no writes")
	ErrForeign    = failure("there are tables of these names that are not sello's")
	ErrNoTables   = failure("there are no tables of sello")
	ErrNoTLS      = failure("the server has no TLS, which sslmode asks for")
	ErrTarget     = failure("no server is as target_session_attrs asks")
	ErrParameter  = failure("the server does not know a parameter, or its value")
	ErrNoSchema   = failure("there is no schema of the search_path")
	ErrNotLetIn   = failure("pg_hba.conf does not let the user in from here")
	ErrNoHost     = failure("there is no host of that name")
)

// Failures of everything else.
const (
	// ErrTurnLost says that another server has committed since the head that a commit builds
	// on, or that the connection was lost over which that state was read. Nothing was stored.
	// Whatever was read before is to be read again.
	ErrTurnLost = failure("another server has committed")

	// ErrUnavailable says that the database could not be asked, or refused for a reason that
	// passes. Nothing was stored.
	ErrUnavailable = failure("unavailable")

	// errFull is an ErrUnavailable of who has waited for a connection for long.
	errFull = failure("all connections are in use")

	// errStandby is the answer of a server that takes no writes, and may lack what is acknowledged.
	errStandby = failure("the server is a standby")

	// ErrUnknown says that a commit was sent and that nobody could be asked what became of it.
	ErrUnknown = failure("it is not known whether the commit was stored")

	// ErrNotEmpty says that a database that is to be filled has entries.
	ErrNotEmpty = failure("there are entries already")

	// ErrClosed is the answer to calls after Close.
	ErrClosed = failure("closed")
)

// sqlState returns the SQLSTATE of an error of PostgreSQL; "" of others.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// An outcome is what an error tells of the transaction that it ended.
type outcome int

const (
	stored     outcome = iota
	lost               // ErrTurnLost
	again              // nothing was stored, and the same may succeed at once
	redial             // the connection is of no use; whether something was stored depends on what was sent
	elsewhere          // nothing was stored: this server takes no writes, another one may
	refused            // nothing was stored: no room, no memory, no connection
	unprepared         // a pooler has lost prepared statements, or has them already; nothing was stored
	wrong              // a fault of ours, or damage
)

// outcomeOf classifies an error of a transaction. The classes are PostgreSQL's (appendix A of its
// manual).
func outcomeOf(err error) outcome {
	if err == nil {
		return stored
	}
	switch {
	case errors.Is(err, ErrTurnLost):
		return lost
	case errors.Is(err, errStandby):
		return elsewhere
	}
	state := sqlState(err)
	if state == "" {
		if f, ok := errors.AsType[failure](err); ok && f != ErrUnreached && f != ErrUnavailable && f != errFull {
			return wrong
		}
		return redial // the connection, or the time
	}
	switch state {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return again
	case "40003": // statement_completion_unknown
		return redial
	case "25006": // read_only_sql_transaction
		return elsewhere
	case "25P03", "25P04": // idle and transaction timeouts
		return redial
	case "26000", "42P05": // invalid_sql_statement_name, duplicate_prepared_statement
		return unprepared
	case "57014": // query_canceled, by an operator or a statement_timeout
		return refused
	}
	switch state[:2] {
	case "08", "57": // connection exceptions; shutdown, crash, start-up
		return redial
	case "53", "54", "58": // insufficient resources, limits, errors of the system
		return refused
	}
	return wrong
}

// usedError returns an error of using the database as one of those above, if something can be done
// about it.
func usedError(err error) error {
	if sqlState(err) == "42501" { // insufficient_privilege
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return err
}

// isFull reports whether a connection was refused because there are too many: by PostgreSQL, also
// where a pooler tells it, or by a pooler. One of several hosts is enough.
func isFull(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"sqlstate 53300", "too many connections", "no more connections allowed", "max clients reached", "max_client_conn"},
		func(said string) bool { return strings.Contains(text, said) })
}

// isNoHost reports whether there is no address for the name of a host.
func isNoHost(err error) bool {
	dns, is := errors.AsType[*net.DNSError](err)
	return is && dns.IsNotFound
}

var parameterNamed = regexp.MustCompile(`parameter:? "?([\w.-]+)`)

// Parameter returns the name of the parameter that an ErrParameter is about; "" if it is not known. Its
// value may be a secret.
func Parameter(err error) string {
	e, _ := errors.AsType[*pgconn.PgError](err)
	if e == nil {
		return ""
	}
	return append(parameterNamed.FindStringSubmatch(e.Message), "", "")[1]
}

// openError returns an error of connecting as one of those above, with its cause, if it is one.
// Causes never have a password.
func openError(err error) error {
	if err == nil {
		return nil
	}
	known := failure("")
	switch state := sqlState(err); {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		known = ErrUntrusted
	case state == "28000" && strings.Contains(err.Error(), "pg_hba.conf"):
		known = ErrNotLetIn
	case state == "28P01" || state == "28000":
		known = ErrPassword
	case state == "3D000":
		known = ErrNoDatabase
	case state == "42501":
		known = ErrForbidden
	case state == "25006" || errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection):
		known = ErrReadOnly
	case errors.Is(err, pgconn.ErrReadWriteConnection) || errors.Is(err, pgconn.ErrPrimaryConnection):
		known = ErrTarget
	case state == "42704" || state == "22023" || state == "08P01":
		known = ErrParameter
	case state == "3F000":
		known = ErrNoSchema
	case state == "" && strings.Contains(err.Error(), "server refused TLS connection"): // which pgconn has no name for
		known = ErrNoTLS
	case isNoHost(err):
		known = ErrNoHost
	case isFull(err) || strings.HasPrefix(state, "53") || strings.HasPrefix(state, "57"):
		known = ErrUnavailable
	case state == "":
		if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, errSilent) {
			known = ErrUnreached
		}
	}
	if known == "" {
		return err
	}
	return fmt.Errorf("%w: %w", known, err)
}
