// Package memory says how much memory a server on a file of package disk may use.
package memory

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

// The memory limit, which the process tries to stay within, in bytes. It has to hold
// the file's memory, what requests hold at one time, and connections, by estimate 20
// KiB each. If they need more, the garbage collector works harder, no more.
//
// The default is a quarter of the machine's memory, since the rest caches the file's
// pages. More than 240 MiB made nothing faster.
const (
	leastLimit      = 96 << 20
	usualLimit      = 240 << 20 // the most, and the default if the machine's memory is unknown
	besideMemtables = 48 << 20  // part of the limit for all but memtables
	leastMemtable   = 4 << 20
)

// limitFor returns the default limit on a machine with so much memory; 0: unknown.
func limitFor(machine int64) int64 {
	if machine == 0 {
		return usualLimit
	}
	return min(max(machine/4, leastLimit), usualLimit)
}

// memtableFor returns the size of a memtable within a limit. Two are in use, and for
// a moment Views still hold a third.
func memtableFor(limit int64) int {
	return int(min(max((limit-besideMemtables)/3, leastMemtable), disk.DefaultMemSize))
}

// ofMachine returns how many bytes of memory this process may have, as Linux
// shows it in files: the machine's memory, or less if its control groups say so.
// It is 0 where that is unknown.
func ofMachine(root fs.FS) int64 {
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
		// The limits of the groups around it hold too; in a container its own path is missing.
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

// here is ofMachine of this machine.
func here() int64 { return ofMachine(os.DirFS("/")) }

// Memtable returns the size of a memtable within the default limit.
func Memtable() int { return memtableFor(limitFor(here())) }

// ErrSize refuses what is no size, or too small.
var ErrSize = errors.New("no such size")

// Parse parses a size such as 256MB or 1GiB, of at least 96MB.
func Parse(text string) (int64, error) {
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
	return 0, ErrSize
}

// Tune tunes the garbage collector, unless GOGC and GOMEMLIMIT are set, and
// returns the size of memtables for the memory limit in force. The collector runs less
// often than by default, but more often as memory gets near the limit. A limit of 0 is
// the default.
func Tune(limit int64) (memtable int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit == 0 {
		limit = limitFor(here())
	}
	Limit(limit)
	return memtableFor(debug.SetMemoryLimit(-1))
}

// Limit sets the process's memory limit in bytes, unless GOMEMLIMIT is set.
func Limit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

const gcPercent = 200
