package main

import (
	"flag"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"

	"sello/internal/processtest"
)

// Some tests kill sello, or record what it writes. They run this test binary as another
// process, in which TestMain runs sello or a powerLoad instead of the tests.

// runsSello is the environment variable that makes this binary run as sello.
const runsSello = "SELLO_TEST_RUNS_SELLO"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(runsSello) != "":
		main() // which does not return
	case ranPowerLoad():
		return
	}
	// Many tests run commands in this process. The memory limit of a server would hold for all of
	// them, and collecting garbage take half of their time.
	os.Setenv("GOGC", "200")
	debug.SetGCPercent(200) // a tenth of the time, for 130 MiB
	os.Setenv("GOMEMLIMIT", "off")
	flag.Set("test.parallel", "8") // many tests wait more than they compute
	os.Exit(m.Run())
}

// selloCommand returns a command that runs sello as a process. With -short and under the
// race detector it skips the test.
func selloCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() || processtest.RaceDetector {
		t.Skip("runs sello as a process")
	}
	cmd := exec.Command(testBinary(t), args...)
	cmd.Env = append(os.Environ(), runsSello+"=1", "GOGC=", "GOMEMLIMIT=")
	return cmd
}

// skipUnderRace skips a long test of one goroutine under the race detector, which has nothing to
// find there. .ci/run runs it without.
func skipUnderRace(t testing.TB) {
	t.Helper()
	if processtest.RaceDetector {
		t.Skip("has one goroutine, and takes long")
	}
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
