package main

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sello/internal/disk"
)

// -db names a file or a database. This file tells them apart, keeps addresses, which may hold a
// password, out of errors, and says how a database is opened and what can be wrong with it.

// databaseOptions say how openPostgres opens a database.
type databaseOptions struct {
	mustExist bool // make no tables: without them, the error is fs.ErrNotExist
	readOnly  bool // write nothing; may run beside a server
	log       *slog.Logger
	dense     string                // of backups, as in disk.Options
	conns     int                   // most connections to the database
	committed func(time.Duration)   // told how long each commit took; may be nil
	setting   func(key string) bool // reports whether readers keep what is there between requests; nil: no key is so
	schema    string                // the key of the schema: who changes it has seen all that was written, and is seen by all who write
	parts     storeParts            // nil: there is one
}

// commandConns is how many connections to a database a command has that is no server: the fewest
// that there can be.
const commandConns = 5

// storeParts divide the keys of a store into parts, whose commits do not wait for each other. What
// is of several parts or of none is of part 0.
type storeParts interface {
	// PartOf returns the part of a key.
	PartOf(key []byte) int32

	// PartOfRange returns the part of all keys with lo <= key < hi; ok is false if they may have
	// several. An empty hi means no upper end.
	PartOfRange(lo, hi []byte) (part int32, ok bool)
}

// errNoPostgres is openPostgres's in a binary without the backend.
var errNoPostgres = errors.New("built without PostgreSQL")

// What can be wrong with a database that a command is to open. words_operator.go has them in Spanish.
var (
	errDatabaseAddress   = errors.New("database: not an address of PostgreSQL")
	errDatabaseSilent    = errors.New("database: no server answers there")
	errDatabasePassword  = errors.New("database: user or password refused")
	errDatabaseMissing   = errors.New("database: there is none of that name")
	errDatabaseForbidden = errors.New("database: the user may not make tables, or use them")
	errDatabaseOld       = errors.New("database: older than PostgreSQL 15")
	errDatabaseReadOnly  = errors.New("database: takes no writes")
	errDatabaseForeign   = errors.New("database: has tables named as those of sello, with other columns")
	errDatabaseUntrusted = errors.New("database: the server's certificate is not to be trusted")
	errDatabaseFile      = errors.New("database: a file that the address names cannot be read")
	errDatabaseUnready   = errors.New("database: takes no connections now")
	errDatabaseAway      = errors.New("database: does not serve now")
	errDatabaseUnknown   = errors.New("database: it is not known whether it was stored")
	errDatabaseServed    = errors.New("database: a server uses it")
	errDatabaseNoTLS     = errors.New("database: the server has no TLS")
	errDatabaseTarget    = errors.New("database: no server is as target_session_attrs asks")
	errDatabaseParameter = errors.New("database: a parameter of the address is not one, or its value")
	errDatabaseNoSchema  = errors.New("database: there is no schema of the search_path")
	errDatabaseNotLetIn  = errors.New("database: pg_hba.conf does not let the user in")
	errDatabaseNoHost    = errors.New("database: no host of that name")
	errDatabaseEmpty     = errors.New("database: has no tables of sello")
	errNotEmpty          = errors.New("database: has entries already")
)

// isDatabase reports whether -db names a database. If not, it is the path of a file.
func isDatabase(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// What tells an address from a path, in any letter case: a parameter of libpq's, a scheme, or
// user:password@ before any slash.
var (
	databaseParameter = regexp.MustCompile(`(?i)(?:host|hostaddr|password|dbname)\s*=`)
	databaseMark      = regexp.MustCompile(`(?i)://|^\W*postgres(?:ql)?:|(?:^|//)[^/\\]*:[^/\\]*@`)
)

// mayBeDatabase reports whether a text may be meant as the address of a database, rightly written
// or not: then it may hold a password.
func mayBeDatabase(text string) bool {
	return databaseParameter.MatchString(text) || databaseMark.MatchString(text)
}

// isPath reports whether what names a data file is a path on its face (contract §31). Nothing else
// is made into a file, or shown. A blank or a quotation mark stands before an address that was
// copied with it.
func isPath(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !mayBeDatabase(text) && first != '`' && !unicode.In(first, unicode.White_Space, unicode.Quotation_Mark, unicode.Cf)
}

// shownWord is a word of a command line as errors may show it. An address may stand behind a flag.
func shownWord(word string) string {
	if mayBeDatabase(word) || strings.Contains(strings.ToLower(word), "postgres") {
		return "…"
	}
	return word
}

// databaseName returns what may be shown of a database's address: hosts, ports and the
// name of the database, without user, password and parameters. ok is false if the address
// cannot be read for certain. That is so with an @ after the hosts, or two before: if a password has an
// unescaped / or ?, its beginning stands where a port does; if it has an @, its end is taken for a host.
// It is also so with parameters that follow no ?, and with a host of digits alone, which some systems
// take for a number of four bytes.
func databaseName(address string) (name string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") || strings.Count(address, "@") > 1 ||
		databaseParameter.MatchString(u.Host+u.Path) || u.Hostname() != "" && strings.Trim(u.Hostname(), "0123456789") == "" {
		return "", false
	}
	return "postgres://" + u.Host + u.EscapedPath(), true
}

// hasPassword reports whether the address of a database has a password. If the password has an @ and no
// host follows, its end stands where the host does: until a machine of that name is known, the host is
// not shown.
func hasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return err != nil
	}
	_, has := u.User.Password()
	return has
}

// databaseFigures are what a server tells of its use of a database.
type databaseFigures struct {
	won, lost uint64 // turns
	trips     uint64 // messages that were sent
	gone      uint64 // how often commits were not there any more that were known
	current   time.Time
	ahead     time.Duration // as in sharedStore

	conns, connsRoom, connsMax int // connections: in use, as many as the database lets there be, and -pg-conns
}

// A wholeStore is a database that everything can be put into, or read from, at once.
type wholeStore interface {
	openedStore

	// fill puts entries, which come in order, into a store that has none. Before they are
	// stored it calls same with what is there then, whose error stores nothing.
	fill(ctx context.Context, entries iter.Seq2[Entry, error], same func(there iter.Seq2[Entry, error]) error) error

	// hold runs fn in a View of the newest state, and lets nobody write meanwhile.
	hold(ctx context.Context, fn func(Tx) error) error

	// leased reports whether a process has a lease whose name begins with a prefix.
	leased(ctx context.Context, prefix string) (bool, error)

	// tell logs what the database is, and what an acknowledged write is worth there, unless that is
	// what it logged before.
	tell(ctx context.Context, log *slog.Logger)

	// figures returns the figures since it was opened.
	figures() databaseFigures

	// writeFile makes a data file of the newest state, as disk.Build does.
	writeFile(ctx context.Context, path string) (*disk.Copy, error)
}
