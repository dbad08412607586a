//go:build !unix

package host

import (
	"math"
	"os/exec"
)

// MaxFiles returns how many files and connections the process may have open.
func MaxFiles() int { return math.MaxInt32 }

// EndGently does nothing here: when its context ends, a command is killed.
func EndGently(*exec.Cmd) (killAll func()) { return func() {} }

// MakePrivate does nothing here.
func MakePrivate(uintptr) {}
