package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Target 4: the latency of one client's adds, against an append and a sync on the
// same disk.

func (b *bench) oneClient(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	c, err := dial(p.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer c.closeAfter(ctx)()
	name := filepath.Join(d.dir, "append")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	defer f.Close()
	block := make([]byte, 4<<10)
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	w := d.add()
	var request []byte
	add := func() error {
		request = w.next(request[:0], r)
		_, err := c.expect(request, w.status)
		return err
	}
	flush := func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return syncData(f)
	}
	// For comparison, the same write over existing bytes of a file. The file's length
	// stays, which spares the file system its own journal.
	each, rounds := 60, 2*b.rounds
	place, err := os.Create(name + "-in-place")
	if err != nil {
		return err
	}
	defer os.Remove(place.Name())
	defer place.Close()
	if _, err = place.Write(make([]byte, each*len(block))); err == nil {
		err = syncData(place)
	}
	if err != nil {
		return err
	}
	offset := int64(0)
	overwrite := func() error {
		if _, err := place.WriteAt(block, offset); err != nil {
			return err
		}
		offset = (offset + int64(len(block))) % int64(each*len(block))
		return syncData(place)
	}
	times := func(n int, do func() error) (float64, error) {
		list := make([]time.Duration, n)
		for i := range list {
			begin := time.Now()
			if err := do(); err != nil {
				return 0, err
			}
			list[i] = time.Since(begin)
		}
		slices.Sort(list)
		return float64(quantile(list, 0.5).Microseconds()), nil
	}
	if _, err := times(2*each, add); err != nil { // to warm up
		return err
	}
	var adds, flushes, inPlace []float64
	for range rounds {
		t, err := times(each, add)
		if err != nil {
			return err
		}
		adds = append(adds, t)
		p.settle(ctx) // the adds' deferred work must not disturb the disk
		if t, err = times(each, flush); err != nil {
			return err
		}
		flushes = append(flushes, t)
		if t, err = times(each, overwrite); err != nil {
			return err
		}
		inPlace = append(inPlace, t)
	}
	if err := d.wrote(&outcome{all: (rounds + 2) * each}); err != nil {
		return err
	}
	ratio := median(ratios(adds, flushes))
	b.add(row{
		"4", "one client: durable add ÷ append + fdatasync", "≤ 2", fmt.Sprintf("%.2f", ratio), verdictOf(ratio <= 2).only(!b.short),
		fmt.Sprintf("medians: add %.0f µs, 4 KiB append and fdatasync %.0f µs (into a place that is there already %.0f µs); %d rounds of %d",
			median(adds), median(flushes), median(inPlace), rounds, each),
		map[string]any{"addMicroseconds": figures(adds), "appendMicroseconds": figures(flushes), "inPlaceMicroseconds": figures(inPlace)},
	})
	return p.stop()
}

// Targets 4b and 9: a minute of adds, their tail latency and the bytes they write.

func (b *bench) sustain(ctx context.Context, has func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	span := b.sustained
	if !has("4b") {
		span = max(span/2, time.Second)
	}
	var first, before, after int64 // bytes written
	var ioErr error
	l := &load{
		works: []work{d.add()}, conns: connections, warm: min(5*time.Second, span/4), span: span,
		started: func() { before, ioErr = p.written() },
		ended: func() {
			if ioErr == nil {
				after, ioErr = p.written()
			}
		},
	}
	size := fileSize(d.file())
	if first, ioErr = p.written(); ioErr != nil && !errors.Is(ioErr, errNotHere) {
		return ioErr
	}
	o, err := l.run(ctx, p)
	if err != nil {
		return err
	}
	if err := d.wrote(o); err != nil {
		return err
	}
	if err := p.stop(); err != nil {
		return err
	}
	if has("4b") {
		p50, p99, p999 := quantile(o.latencies, 0.5).duration(), quantile(o.latencies, 0.99).duration(), quantile(o.latencies, 0.999).duration()
		a, c := float64(p99)/float64(p50), float64(p999)/float64(p50)
		worst, slowest := 0, time.Duration(0)
		var perSecond []float64
		for i, second := range o.each {
			perSecond = append(perSecond, float64(len(second)))
			if q := quantile(second, 0.99).duration(); q > slowest {
				worst, slowest = i, q
			}
		}
		b.add(row{
			"4b", fmt.Sprintf("tail over %v of adds: p99 ÷ p50; p99.9 ÷ p50", span), "≤ 5; ≤ 25",
			fmt.Sprintf("%.1f; %.1f", a, c), verdictOf(a <= 5 && c <= 25).only(span >= time.Minute),
			fmt.Sprintf("%s adds/s sustained, %.1f µs of server CPU; p50 %s, p99 %s, p99.9 %s, longest %s; worst second: %s adds, p99 %s; fewest in a second: %s",
				count(o.rate()), 1e6*o.cpu, milliseconds(p50), milliseconds(p99), milliseconds(p999), milliseconds(o.latencies[len(o.latencies)-1].duration()),
				count(len(o.each[worst])), milliseconds(slowest), count(slices.Min(perSecond))),
			map[string]any{"perSecond": round(o.rate(), 1), "p50ms": p50.Seconds() * 1000, "p99ms": p99.Seconds() * 1000, "p999ms": p999.Seconds() * 1000, "eachSecond": figures(perSecond)},
		})
	}
	if has("9") {
		x := row{ID: "9", Work: "bytes written per durable add", Target: "≤ 6 KB", Figure: "–", Met: notMeasured}
		if ioErr != nil {
			x.Note = ioErr.Error()
		} else {
			within, whole := float64(after-before)/float64(o.count), float64(max(p.wrote-first, 0))/float64(o.all)
			each := max(within, whole)
			x.Figure, x.Met = fmt.Sprintf("%.1f KB", each/1000), verdictOf(each <= 6000).only(span >= 30*time.Second)
			x.Note = fmt.Sprintf("%.2f KB for each of %s adds within %v; %.2f KB for each of all %s until the server had stopped; the file grew by %s",
				within/1000, count(o.count), span, whole/1000, count(o.all), megabytes(fileSize(d.file())-size))
			x.Values = map[string]any{"bytesWithin": round(within, 0), "bytesUntilStopped": round(whole, 0), "adds": o.all}
		}
		b.add(x)
	}
	return nil
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
