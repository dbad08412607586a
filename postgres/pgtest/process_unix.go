//go:build unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// detach starts cmd in a session of its own, which an interrupt at the terminal does not reach,
// and as the given user, unless that is 0.
func detach(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}
