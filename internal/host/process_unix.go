//go:build unix

package host

import (
	"math"
	"os/exec"
	"syscall"
)

// MaxFiles returns how many files and connections the process may have open.
func MaxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// EndGently makes a command, with all that it starts, get SIGTERM when its context ends.
// killAll ends what is left of it then.
func EndGently(cmd *exec.Cmd) (killAll func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() {
		if cmd.Process != nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

// MakePrivate sets the mode of a socket that has no name yet to 0600, where the
// system can.
func MakePrivate(fd uintptr) { syscall.Fchmod(int(fd), 0o600) }
