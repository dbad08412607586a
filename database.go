package main

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// What -db says if it names a database, and what a command asks of the backend for it.

// databaseOptions say how openPostgres opens a database.
type databaseOptions struct {
	mustExist bool // make no tables: without them, the error is fs.ErrNotExist
	readOnly  bool // write nothing; may run beside a server
	log       *slog.Logger
	conns     int                   // most connections to the database
	committed func(time.Duration)   // told how long each commit took; may be nil
	setting   func(key string) bool // reports whether readers keep what is there between requests; nil: no key is so
}

// errNoPostgres is openPostgres's in a binary without the backend.
var errNoPostgres = errors.New("built without PostgreSQL")

// What can be wrong with a database that a command is to open. words.go has them in Spanish.
var (
	errDatabaseAddress   = errors.New("database: not an address of PostgreSQL")
	errDatabaseSilent    = errors.New("database: no server answers there")
	errDatabasePassword  = errors.New("database: user or password refused")
	errDatabaseMissing   = errors.New("database: there is none of that name")
	errDatabaseForbidden = errors.New("database: the user may not make tables, or use them")
	errDatabaseOld       = errors.New("database: older than PostgreSQL 15")
	errDatabaseReadOnly  = errors.New("database: takes no writes")
	errDatabaseForeign   = errors.New("database: has tables named as those of sello, with other columns")
	errDatabaseEmpty     = errors.New("database: has no tables of sello")
	errDatabaseInUse     = errors.New("database: another sello writes to it")
)

// isDatabase reports whether -db names a database. If not, it is the path of a file.
func isDatabase(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// databaseName returns what may be shown of a database's address: hosts, ports and the
// name of the database, without user, password and parameters. ok is false if the address
// cannot be read for certain. So is one with @ after the hosts: where a password has / or ?
// unescaped, its beginning stands where a port does.
func databaseName(address string) (name string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return "", false
	}
	return "postgres://" + u.Host + u.EscapedPath(), true
}
