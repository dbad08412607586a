package pgtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// missing is the error of a machine that lacks what a test needs.
type missing string

func (m missing) Error() string { return string(m) }

const howToGet = "`apt-get install postgresql` as root installs it, or SELLO_TEST_POSTGRES=postgres://… names a server"

// give ends the test for want of a server: it skips where the machine lacks one, unless
// SELLO_TEST_POSTGRES_MUST says that this machine has to have one.
func give(t testing.TB, err error) {
	t.Helper()
	var lack missing
	if errors.As(err, &lack) && os.Getenv("SELLO_TEST_POSTGRES_MUST") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// A home is what the clusters of this process have in common.
type home struct {
	// dir holds a folder and a log for each cluster, and their sockets. Only the user that the
	// servers run as, and root, may enter it: who connects by socket needs no password.
	dir      string
	uid, gid int    // of the servers; 0: those of this process
	bin      string // the folder of their programs
	password string // of user postgres, over TCP
	clusters atomic.Int32
}

// house makes the home when the first test asks for a cluster. It includes a cluster that is
// never started: copying it takes a tenth of the time of initdb.
var house = sync.OnceValues(func() (*home, error) {
	h := &home{password: rand.Text()}
	for _, dir := range programDirs() {
		if isProgram(filepath.Join(dir, "postgres")) && isProgram(filepath.Join(dir, "initdb")) {
			h.bin = dir
			break
		}
	}
	if h.bin == "" || runtime.GOOS == "windows" {
		return nil, missing("PostgreSQL is not here: " + howToGet)
	}
	if os.Geteuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			return nil, missing(fmt.Sprintf("PostgreSQL does not run as root, and there is no user postgres: %v", err))
		}
		h.uid, _ = strconv.Atoi(owner.Uid)
		h.gid, _ = strconv.Atoi(owner.Gid)
	}
	dir, err := os.MkdirTemp("", "sellopg") // short: a socket's path has at most 103 bytes
	if err != nil {
		return nil, err
	}
	h.dir = dir
	if err := errors.Join(h.own(dir), guard(shell(endClusters, dir))); err != nil {
		return nil, err
	}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(h.password), 0o600); err != nil {
		return nil, err
	}
	if err := h.own(secret); err != nil {
		return nil, err
	}
	return h, h.run("initdb", "-D", h.template(), "--no-sync", "-U", "postgres", "-E", "UTF8", "--locale=C",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile", secret)
})

func (h *home) template() string { return filepath.Join(h.dir, "template") }

// own gives a file to the servers' user.
func (h *home) own(path string) error {
	if h.uid == 0 {
		return nil
	}
	return os.Chown(path, h.uid, h.gid)
}

// endClusters stops the servers in folder $1 and removes it. A server that is just ending may
// make rm fail.
const endClusters = `for file in "$1"/*/postmaster.pid "$1"/*.pid; do
	[ -f "$file" ] && kill -QUIT "$(head -n 1 "$file")"
done
tries=0
until rm -rf "$1" || [ "$tries" = 50 ]; do sleep 0.1; tries=$((tries + 1)); done`

// guards holds the guards' pipes open until this process ends.
var guards struct {
	sync.Mutex
	pipes []io.Closer
}

// shell returns a command that runs a script once its input ends.
func shell(script string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", "cat >/dev/null\n" + script, "sh"}, args...)...)
}

// guard runs what shell returned when this process ends, killed or not: then the pipe that the
// shell reads from closes.
func guard(cmd *exec.Cmd) error {
	detach(cmd, 0, 0)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	guards.Lock()
	defer guards.Unlock()
	guards.pipes = append(guards.pipes, pipe)
	return cmd.Start()
}

// programDirs lists the folders that may hold PostgreSQL's programs: what PATH says, then those of
// Debian's and Red Hat's packages, the newest version first.
func programDirs() []string {
	var packaged []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, _ := filepath.Glob(pattern)
		packaged = append(packaged, found...)
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "pgsql-"))
		return n
	}
	slices.SortStableFunc(packaged, func(a, b string) int { return version(b) - version(a) })
	return append(filepath.SplitList(os.Getenv("PATH")), packaged...)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// program finds one of PostgreSQL's programs: beside the server's, which are of its version, or
// anywhere. Some distributions of the server come without psql. /usr/sbin, which has pgbouncer, is
// not in every user's PATH.
func (h *home) program(name string) (string, error) {
	for _, dir := range slices.Concat([]string{h.bin}, programDirs(), []string{"/usr/sbin"}) {
		if path := filepath.Join(dir, name); dir != "" && isProgram(path) {
			return path, nil
		}
	}
	return "", missing(name + " is not here: " + howToGet)
}

// command returns a command that runs as the servers' user, in a folder that it may enter, and that
// knows nothing of the settings of whoever runs the tests.
func (h *home) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"TZ=UTC", "LC_ALL=C"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") && !strings.HasPrefix(variable, "TZ=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	detach(cmd, h.uid, h.gid)
	return cmd
}

// run runs one of PostgreSQL's programs to its end.
func (h *home) run(name string, args ...string) error {
	path, err := h.program(name)
	if err != nil {
		return err
	}
	return finish(h.command(path, args...))
}

// finish runs a command. Its error says what the command said.
func finish(cmd *exec.Cmd) error {
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, bytes.TrimSpace(said))
	}
	return nil
}

// psql runs SQL, each statement in a transaction of its own, and returns the rows: columns between
// bars, as psql -A prints them. The password does not become part of the command line.
func (h *home) psql(dsn, password, sql string) (string, error) {
	path, err := h.program("psql")
	if err != nil {
		return "", err
	}
	cmd := h.command(path, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", dsn)
	cmd.Env = append(cmd.Env, "PGPASSWORD="+password, "PGCONNECT_TIMEOUT=10")
	cmd.Stdin = strings.NewReader(sql)
	var rows, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &rows, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s\nin %.200s", err, bytes.TrimSpace(said.Bytes()), sql)
	}
	return strings.TrimRight(rows.String(), "\n"), nil
}
