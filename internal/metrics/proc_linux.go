package metrics

import (
	"bytes"
	"math"
	"os"
	"strconv"
)

func residentMemory() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return math.NaN()
	}
	pages, err := strconv.ParseFloat(string(fields[1]), 64)
	if err != nil {
		return math.NaN()
	}
	return pages * float64(os.Getpagesize())
}

func openFiles() float64 {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return math.NaN()
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return math.NaN()
	}
	return float64(len(names) - 1) // without dir
}
