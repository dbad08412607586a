//go:build !unix

package pgtest

import "os/exec"

// detach does nothing: no cluster is started here.
func detach(cmd *exec.Cmd, uid, gid int) {}
