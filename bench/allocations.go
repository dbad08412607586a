package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Target 13: allocations, from a benchmark of sello's own.

var ownAllocations = regexp.MustCompile(`([0-9.]+) own-allocs/op`)

func (b *bench) allocations(ctx context.Context, _ func(...string) bool) error {
	x := row{ID: "13", Work: "allocations per GET balance beyond net/http's", Target: "≤ 15", Figure: "–", Met: notMeasured}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkGetBalance$", "-benchtime", "2000x", ".")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.Note = fmt.Sprintf("go test: %v: %.200s", err, strings.Join(strings.Fields(string(out)), " "))
	} else if m := ownAllocations.FindSubmatch(out); m == nil {
		x.Note = "no BenchmarkGetBalance that reports own-allocs/op"
	} else if n, err := strconv.ParseFloat(string(m[1]), 64); err == nil {
		x.Figure, x.Met = fmt.Sprintf("%g", n), verdictOf(n <= 15)
		x.Values = map[string]any{"allocations": n}
		x.Note = strings.Join(strings.Fields(strings.TrimSpace(string(m[0]))), " ") + " of " + runtime.Version()
	}
	b.add(x)
	return nil
}
