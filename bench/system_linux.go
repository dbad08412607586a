package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// cpu returns the CPU time that the process has taken, in nanoseconds, summed over its
// threads. None is missing, since threads of Go's runtime do not end.
func (p *process) cpu() (time.Duration, error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.pid))
	if len(files) == 0 {
		return 0, errNotHere
	}
	var sum time.Duration
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(raw), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// familyCPU returns the CPU time of a process and its children, also of those that have ended.
func familyCPU(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	var ticks int64 // of children that have ended, of 10 ms
	for _, f := range fields[13:15] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	sum := time.Duration(ticks) * 10 * time.Millisecond
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	for _, child := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			return 0, err
		}
		if one, err := (&process{pid: n}).cpu(); err == nil { // else it has just ended
			sum += one
		}
	}
	return sum, nil
}

// holdInMemory locks a file's present pages in memory until letGo. It brings them in
// page by page, as sello does. Data that the system reads ahead, or that was written
// at once, is in folios of up to megabytes; a write of one page into such a folio
// takes up to 20 µs, since the system looks at all its pages. A file of more than 7/8
// of the memory is refused: the system would soon have to kill a process.
func holdInMemory(f *os.File) (letGo func(), err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var system syscall.Sysinfo_t
	if err := syscall.Sysinfo(&system); err != nil {
		return nil, err
	}
	if all := int64(system.Totalram) * int64(system.Unit); info.Size() > all/8*7 {
		return nil, fmt.Errorf("its %s are more than 7/8 of %s", megabytes(info.Size()), megabytes(all))
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	letGo = func() { syscall.Munmap(data) }
	if err := syscall.Madvise(data, syscall.MADV_RANDOM); err != nil {
		letGo()
		return nil, err
	}
	const atOnce = 32 // each waits for one page at a time
	pieces := slices.Collect(slices.Chunk(data, 4<<20))
	var (
		next    atomic.Int64
		lockers sync.WaitGroup
		faults  [atOnce]error
	)
	for i := range atOnce {
		lockers.Go(func() {
			for n := next.Add(1); n <= int64(len(pieces)) && faults[i] == nil; n = next.Add(1) {
				faults[i] = syscall.Mlock(pieces[n-1])
			}
		})
	}
	lockers.Wait()
	if err := errors.Join(faults[:]...); err != nil {
		letGo()
		return nil, err
	}
	return letGo, nil
}

// written returns how many bytes all processes have written to the disk of the
// process's file since boot. The kernel's count for one process is no use: it counts
// whole folios of its cache, which may be megabytes for one page.
func (p *process) written() (int64, error) {
	info, err := os.Stat(filepath.Dir(p.file))
	if err != nil {
		return 0, err
	}
	dev := uint64(info.Sys().(*syscall.Stat_t).Dev)
	major, minor := dev>>8&0xfff, dev&0xff|dev>>12&0xfff00
	raw, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) > 9 && f[0] == fmt.Sprint(major) && f[1] == fmt.Sprint(minor) {
			sectors, err := strconv.ParseInt(f[9], 10, 64)
			return 512 * sectors, err
		}
	}
	return 0, errNotHere
}

// memory returns the process's anonymous and shared memory in bytes, without pages of
// files.
func (p *process) memory() (anonymous, shared int64, err error) {
	if anonymous, err = p.procField("status", "RssAnon:", 1<<10); err != nil {
		return 0, 0, err
	}
	shared, err = p.procField("status", "RssShmem:", 1<<10)
	return anonymous, shared, err
}

func (p *process) procField(file, name string, unit int64) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid, file))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(raw) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n * unit, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/PID/%s", name, file)
}

// syncData flushes the data and the length of a file to the disk.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// growPipe makes a pipe large enough for the log of a drainPause.
func growPipe(r io.Reader) {
	const setPipeSize = 1031 // F_SETPIPE_SZ
	if f, ok := r.(*os.File); ok {
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, 1<<20) })
		}
	}
}

// endWithParent makes the system kill the server if this program is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// machine describes the machine and the file system of dir.
func machine(dir string) map[string]string {
	m := map[string]string{}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m["cpu"] = strings.TrimSpace(value)
				break
			}
		}
	}
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(raw)); len(fields) > 1 {
			if kb, err := strconv.Atoi(fields[1]); err == nil {
				m["memory"] = fmt.Sprintf("%.1f GB", float64(kb)/(1<<20))
			}
		}
	}
	if raw, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["kernel"] = strings.TrimSpace(string(raw))
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		kinds := map[uint32]string{0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x794c7630: "overlay"}
		m["fileSystem"] = kinds[uint32(fs.Type)]
		if m["fileSystem"] == "" {
			m["fileSystem"] = fmt.Sprintf("%#x", uint32(fs.Type))
		}
	}
	return m
}
