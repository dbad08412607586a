package pgtest

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// A shared is the server that the ordinary tests of a process share.
type shared struct {
	home     *home
	cluster  *Cluster // nil: a server that SELLO_TEST_POSTGRES names
	dsn      *url.URL
	password string
	prefix   string // of the schemas

	mu   sync.Mutex
	made int
	free []string // schemas that no test has yet
	used []string // those that tests have left, to be dropped
}

// batch is how many schemas are made at once: one takes less time than it takes to start psql.
const batch = 50

// DSN returns the name of an empty schema on a server that the tests of this process share. It is
// dropped some time after the test. The server writes to disk as in production.
func DSN(t testing.TB) string {
	t.Helper()
	s, err := common()
	if err != nil {
		give(t, err)
	}
	name, err := s.take()
	if err != nil {
		give(t, err)
	}
	if s.cluster != nil {
		s.showLog(t)
	}
	t.Cleanup(func() { s.leave(name) })
	return s.name(name)
}

// name is the DSN of a schema. As options both pgx and psql understand it.
func (s *shared) name(schema string) string {
	dsn := *s.dsn
	values := dsn.Query()
	values.Set("options", strings.TrimSpace(values.Get("options")+" -csearch_path="+schema))
	dsn.RawQuery = strings.ReplaceAll(values.Encode(), "+", "%20") // libpq takes + as it is
	return dsn.String()
}

// showLog adds what the server says from now on to the log of a test that fails.
func (s *shared) showLog(t testing.TB) {
	var start int64
	if info, err := os.Stat(s.cluster.logFile()); err == nil {
		start = info.Size()
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if log, _ := s.cluster.logSince(start); len(log) > 0 {
			t.Logf("log of the server that tests share:\n%s", log)
		}
	})
}

// common starts the shared server when the first test asks for it.
var common = sync.OnceValues(func() (*shared, error) {
	s := &shared{prefix: "sello_test_" + strings.ToLower(rand.Text()[:8]) + "_"}
	if named := os.Getenv("SELLO_TEST_POSTGRES"); named != "" {
		return s, s.elsewhere(named)
	}
	h, err := house()
	if err != nil {
		return nil, err
	}
	c := &Cluster{home: h, dir: h.newDir()}
	if err := h.copyTemplate(c.dir); err != nil {
		return nil, err
	}
	if err := c.launchAnywhere(); err != nil {
		return nil, err
	}
	s.home, s.cluster, s.password = h, c, h.password
	s.dsn, err = url.Parse(c.DSN())
	return s, err
})

// elsewhere makes s use a server that runs already. Its schemas are dropped, at the latest, when
// this process ends.
func (s *shared) elsewhere(named string) error {
	var err error
	s.dsn, err = url.Parse(named)
	if err != nil || s.dsn.Scheme != "postgres" && s.dsn.Scheme != "postgresql" {
		return fmt.Errorf("SELLO_TEST_POSTGRES is no postgres://…")
	}
	s.home = &home{}
	if password, ok := s.dsn.User.Password(); ok {
		s.password = password
	} else {
		s.password = os.Getenv("PGPASSWORD")
	}
	psql, err := s.home.program("psql")
	if err != nil {
		return err
	}
	drop := fmt.Sprintf("SELECT format('DROP SCHEMA %%I CASCADE', nspname) FROM pg_namespace WHERE starts_with(nspname, '%s') \\gexec", s.prefix)
	cmd := shell(`printf '%s\n' "$3" | "$1" -X -q -d "$2"`, psql, s.connection(), drop)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+s.password)
	return guard(cmd)
}

// connection is what psql is told of the server: all but the password.
func (s *shared) connection() string {
	if s.cluster != nil {
		return s.cluster.socket()
	}
	dsn := *s.dsn
	if dsn.User != nil {
		dsn.User = url.User(dsn.User.Username())
	}
	return dsn.String()
}

// take returns an empty schema. Where none is left it makes some, and drops those that tests have
// left; one that a test still holds locks in stays.
func (s *shared) take() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		var sql strings.Builder
		fmt.Fprintln(&sql, "\\set ON_ERROR_STOP off\nSET lock_timeout = '1s'; SET synchronous_commit = off;")
		for _, name := range s.used {
			fmt.Fprintf(&sql, "DROP SCHEMA %s CASCADE;\n", name)
		}
		fmt.Fprintln(&sql, "\\set ON_ERROR_STOP on")
		var made []string
		for range batch {
			s.made++
			made = append(made, fmt.Sprint(s.prefix, s.made))
			fmt.Fprintf(&sql, "CREATE SCHEMA %s;\n", made[len(made)-1])
		}
		if _, err := s.home.psql(s.connection(), s.password, sql.String()); err != nil {
			return "", err
		}
		s.free, s.used = made, nil
	}
	name := s.free[0]
	s.free = s.free[1:]
	return name, nil
}

// leave gives back the schema of a test that has ended.
func (s *shared) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, name)
}
