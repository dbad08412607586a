//go:build unix

package metrics

import (
	"math"
	"syscall"
)

func processTime() float64 {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return math.NaN()
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

func maxFiles() float64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.NaN()
	}
	return float64(limit.Cur)
}
