package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Target 10: memory.

func (b *bench) memory(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	x := row{ID: "10", Work: fmt.Sprintf("memory with %s customers: at rest; under full load", count(d.customers)), Target: "≤ 64 MB; ≤ 256 MB", Figure: "–", Met: notMeasured}
	rest, most, span, err := b.memoryOf(ctx, d)
	if errors.Is(err, errNotHere) {
		x.Note = err.Error()
		b.add(x)
		return nil
	} else if err != nil {
		return err
	}
	x.Figure = megabytes(rest) + "; " + megabytes(most)
	x.Met = verdictOf(rest <= mostAtRest && most <= mostUnderLoad).only(!b.short && d.customers >= 1_000_000)
	x.Note = memoryNote(span)
	x.Values = map[string]any{"restBytes": rest, "loadBytes": most}
	b.add(x)
	return nil
}

const (
	mostAtRest    = 64 << 20
	mostUnderLoad = 256 << 20
)

func memoryNote(span time.Duration) string {
	return fmt.Sprintf("anonymous memory, which holds the heap and more, after a start and some reads; the most of anonymous and shared memory while %d connections add and %d read for %v",
		connections, connections, span.Round(time.Second/10))
}

// memoryOf starts a server and measures its memory: at rest, and the most of it under a load that
// lasts for a span.
func (b *bench) memoryOf(ctx context.Context, d *dataset) (rest, most int64, span time.Duration, err error) {
	p, err := d.serve(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	rest, most, span, err = b.memoryIn(ctx, d, p)
	return rest, most, span, errors.Join(err, p.stop())
}

// memoryIn is memoryOf for a server that has just been started.
func (b *bench) memoryIn(ctx context.Context, d *dataset, p *process) (rest, most int64, span time.Duration, err error) {
	if _, _, err := p.memory(); err != nil {
		return 0, 0, 0, err
	}
	reads := &load{works: []work{d.balance(), d.get("/api/v1/customers"), d.one()}, conns: 6, span: b.span}
	if _, err := reads.run(ctx, p); err != nil {
		return 0, 0, 0, err
	}
	p.settle(ctx)
	if rest, _, err = p.memory(); err != nil {
		return 0, 0, 0, err
	}
	highest := p.highestMemory(ctx)
	full := &load{works: []work{d.add(), d.balance()}, conns: 2 * connections, span: max(b.sustained/3, 2*b.span)}
	o, err := full.run(ctx, p)
	if err != nil {
		return 0, 0, 0, err
	}
	p.settle(ctx)
	return rest, highest(), full.span, d.wrote(&outcome{all: o.all / 2})
}

// highestMemory begins to sample the process's own memory. The function that it
// returns ends that and returns the highest sample.
func (p *process) highestMemory(ctx context.Context) func() int64 {
	sampling, stop := context.WithCancel(ctx)
	most := make(chan int64, 1)
	go func() {
		var highest int64
		for sampling.Err() == nil {
			if a, s, err := p.memory(); err == nil {
				highest = max(highest, a+s)
			}
			wait(sampling, 50*time.Millisecond)
		}
		most <- highest
	}()
	return func() int64 {
		stop()
		return <-most
	}
}

// Target 10b: adds beside a backup and a verification, each repeated while the adds
// last.

func (b *bench) copying(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	x := row{ID: "10b", Work: "adds beside backup and verify ÷ adds alone; memory", Target: "≥ 0.7; ≤ 256 MB", Figure: "–", Met: notMeasured}
	if _, _, err := p.memory(); err != nil {
		x.Note = err.Error()
		b.add(x)
		return p.stop()
	}
	copyFile := filepath.Join(d.dir, "copy.db")
	defer os.Remove(copyFile)
	var alone, beside []float64
	var most int64
	var runs atomic.Int64
	for range b.rounds {
		o, err := b.play(ctx, d, p, d.add())
		if err != nil {
			return err
		}
		alone = append(alone, o.rate())
		highest := p.highestMemory(ctx)
		both, stop := context.WithCancel(ctx)
		var commands sync.WaitGroup
		faults := make([]error, 2)
		for i, command := range [][]string{{"backup", copyFile}, {"verify"}} {
			commands.Go(func() {
				for both.Err() == nil && faults[i] == nil {
					cmd := exec.CommandContext(both, b.binary, command...)
					cmd.Env = environment(d.db())
					if out, err := cmd.CombinedOutput(); err == nil {
						runs.Add(1)
					} else if both.Err() == nil {
						faults[i] = fmt.Errorf("sello %s: %w: %s", command[0], err, out)
					}
				}
			})
		}
		o, err = b.play(ctx, d, p, d.add())
		stop()
		commands.Wait()
		most = max(most, highest())
		if err := errors.Join(append(faults, err)...); err != nil {
			return err
		}
		beside = append(beside, o.rate())
		p.settle(ctx)
	}
	ratio := median(ratios(beside, alone))
	x.Figure = fmt.Sprintf("%.2f; %s", ratio, megabytes(most))
	x.Met = verdictOf(ratio >= 0.7 && most <= 256<<20).only(!b.short && d.customers >= 1_000_000)
	x.Note = fmt.Sprintf("adds/s alone %s, beside %s; %d backups and verifications were done in %d rounds; the most of anonymous and shared memory",
		count(median(alone)), count(median(beside)), runs.Load(), b.rounds)
	x.Values = map[string]any{"alone": figures(alone), "beside": figures(beside), "memoryBytes": most}
	b.add(x)
	return p.stop()
}
