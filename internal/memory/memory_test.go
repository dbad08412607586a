package memory

import (
	"strings"
	"testing"
	"testing/fstest"

	"sello/internal/disk"
)

// TestMemory checks the memory read from a machine's files, and the memory limit and
// memtable size chosen for it.
func TestMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, test := range []struct {
		files   string // a NAME=CONTENT per line; | ends a line of CONTENT
		machine int64  // MiB
		limit   int64  // MiB
		memSize int64  // MiB
		reason  string
	}{
		{"", 0, 240, 64, "no files: another system"},
		{"proc/meminfo=MemTotal:  251658240 kB|MemFree: 1 kB", 240 << 10, 240, 64, "a large machine"},
		{"proc/meminfo=MemTotal:  25165824 kB", 24 << 10, 240, 64, "24 GiB"},
		{"proc/meminfo=MemTotal:  4194304 kB", 4 << 10, 240, 64, "4 GiB"},
		{"proc/meminfo=MemTotal:  983040 kB", 960, 240, 64, "1 GB, as the kernel counts it"},
		{"proc/meminfo=MemTotal:  524288 kB", 512, 128, 26, "512 MiB"},
		{"proc/meminfo=MemTotal:  262144 kB", 256, 96, 16, "256 MiB: less would not do"},
		{"proc/meminfo=MemTotal:  4194304 kB\nproc/self/cgroup=0::/a/b\nsys/fs/cgroup/a/b/memory.max=max\nsys/fs/cgroup/a/memory.max=536870912", 512, 128, 26, "a group around the group"},
		{"proc/meminfo=MemTotal:  4194304 kB\nproc/self/cgroup=0::/\nsys/fs/cgroup/memory.max=419430400", 400, 100, 17, "a container"},
		{"proc/meminfo=MemTotal:  4194304 kB\nproc/self/cgroup=0::/../x\nsys/fs/cgroup/memory.max=max", 4096, 240, 64, "no limit"},
		{"proc/meminfo=MemTotal:  4194304 kB\nproc/self/cgroup=5:cpu:/x|4:memory:/docker/c|0::/x\nsys/fs/cgroup/memory/memory.limit_in_bytes=419430400", 400, 100, 17, "version 1, in a container"},
		{"proc/meminfo=MemTotal:  4194304 kB\nproc/self/cgroup=4:memory:/\nsys/fs/cgroup/memory/memory.limit_in_bytes=9223372036854771712", 4096, 240, 64, "version 1 without a limit"},
		{"proc/meminfo=nonsense|MemTotal: x kB\nproc/self/cgroup=0|::|0::", 0, 240, 64, "nothing that can be read"},
	} {
		root := fstest.MapFS{}
		for line := range strings.SplitSeq(test.files, "\n") {
			if name, text, ok := strings.Cut(line, "="); ok {
				root[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "|", "\n") + "\n")}
			}
		}
		machine := ofMachine(root)
		limit := limitFor(machine)
		if memSize := int64(memtableFor(limit)); machine/mib != test.machine || limit/mib != test.limit || memSize/mib != test.memSize {
			t.Errorf("%s: machine %d, limit %d, memtable %d MiB, want %d, %d, %d",
				test.reason, machine/mib, limit/mib, memSize/mib, test.machine, test.limit, test.memSize)
		}
	}
}

// TestMemtablesFit checks that at every limit two memtables in use, and one that a View
// still holds, leave besideMemtables free.
func TestMemtablesFit(t *testing.T) {
	t.Parallel()
	for limit := int64(leastLimit); limit < 2<<30; limit += 1 << 20 {
		if size := int64(memtableFor(limit)); 3*size+besideMemtables > limit || size > disk.DefaultMemSize || size < leastMemtable {
			t.Fatalf("within %d: memtables of %d", limit, size)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"96MB": 96e6, "256MB": 256e6, "256MiB": 256 << 20, "1GB": 1e9, "2GiB": 2 << 30,
		"": 0, "256": 0, "95MB": 0, "0GB": 0, "-1GB": 0, "+1GB": 0, "1.5GB": 0, "256mb": 0, "256 MB": 0, "1TB": 0, "99999999999999GB": 0, "MB": 0, "1_000MB": 0,
	} {
		if got, err := Parse(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}
