package main

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"sello/internal/disk"
)

// How much memory the process tries to stay within. What requests hold at one
// time (room.go) has to fit in beside the store's own and what connections take,
// by estimate 20 KiB each; where it does not, the collector only works harder.
//
// By default it is a quarter of the machine's, since the rest serves the file's
// pages; from 240 MiB on more of it made nothing faster.
const (
	leastMemory     = 96 << 20
	usualMemory     = 240 << 20 // at most, and where the machine's is not known
	besideMemtables = 48 << 20  // of it
	leastMemSize    = 4 << 20
)

// memoryFor is the limit by default on a machine with so much memory; 0: not known.
func memoryFor(machine int64) int64 {
	if machine == 0 {
		return usualMemory
	}
	return min(max(machine/4, leastMemory), usualMemory)
}

// memSizeFor is how large memtables are within a limit: two are in use, and for a
// moment Views still hold a third one.
func memSizeFor(limit int64) int {
	return int(min(max((limit-besideMemtables)/3, leastMemSize), disk.DefaultMemSize))
}

// machineMemory is how much memory this process may have at most, in bytes, as
// Linux tells it in files: what the machine has, or less by its control groups.
// It is 0 where that is not known.
func machineMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	note := func(text []byte, unit int64) {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
		if err == nil && n > 0 && n <= math.MaxInt64/unit { // "max" is no number
			least = min(least, n*unit)
		}
	}
	info, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range bytes.Lines(info) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemTotal:")); ok {
			note(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")), 1<<10)
		}
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		dir, file := "sys/fs/cgroup", "memory.max" // version 2: 0::PATH
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		if parts[0] != "0" { // version 1: N:memory:PATH
			if parts[1] != "memory" {
				continue
			}
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// A group is bound by those around it; in a container its path is not there.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(dir, group, file))
			note(text, 1)
			if group == "/" {
				break
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// hereMemory is machineMemory of this machine.
func hereMemory() int64 { return machineMemory(os.DirFS("/")) }

// errMemory is returned for a size that -memory does not take.
var errMemory = errors.New("no such size")

// parseMemory reads a size such as 256MB or 1GiB.
func parseMemory(text string) (int64, error) {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"MiB", 1 << 20}, {"GiB", 1 << 30}, {"MB", 1e6}, {"GB", 1e9}} {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if size := int64(n) * unit.bytes; err == nil && size >= 96e6 {
			return size, nil
		}
	}
	return 0, errMemory
}

// setCollector sets how the garbage collector works, unless GOGC and GOMEMLIMIT say
// otherwise, and returns the size of memtables that goes with it. It waits longer than it would by
// itself while there is little to collect, and never so long that more memory is
// used than the limit; 0 is the one by default.
func setCollector(limit int64) (memSize int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit == 0 {
		limit = memoryFor(hereMemory())
	}
	limitMemory(limit)
	return memSizeFor(debug.SetMemoryLimit(-1))
}

// limitMemory sets how many bytes the process tries to stay within, unless GOMEMLIMIT
// says otherwise.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

const gcPercent = 200
