package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load sends requests of one or several kinds over a number of connections, each
// as fast as the answers come.
type load struct {
	works []work // connection i sends works[i mod len]
	conns int
	warm  time.Duration // at first, not counted
	span  time.Duration // counted

	started, ended func()   // called at the start and end of the span; may be nil
	beside         *cluster // which the servers make work; may be nil
}

// An outcome is the measurement of a load.
type outcome struct {
	count     int // requests answered within the span
	all       int // with those before and after the span
	seconds   float64
	latencies []latency     // of count, sorted
	each      [][]latency   // of each second, sorted
	cpu       float64       // seconds of the server's CPU time per request; 0 if not known
	own       float64       // seconds of this process's CPU time per request
	beside    float64       // seconds of CPU time per request of the load's cluster
	after     time.Duration // how long the server was still busy after the load
}

func (o *outcome) rate() float64 { return float64(o.count) / o.seconds }

// lastAnswer is how long a load waits for its last answers.
const lastAnswer = time.Minute

// run puts the load on a process, or on several that do the same work. Connection i is to
// server i mod len.
func (l *load) run(ctx context.Context, servers ...*process) (*outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from, to := l.warm, l.warm+l.span
	ctx, stop := context.WithTimeoutCause(ctx, to+lastAnswer, errors.New("the server does not answer"))
	defer stop()
	begin := time.Now()
	tracks := make([]track, l.conns)
	var workers sync.WaitGroup
	for i := range tracks {
		c, err := dial(servers[i%len(servers)].addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		defer c.closeAfter(ctx)()
		workers.Go(func() {
			w := l.works[i%len(l.works)]
			if err := tracks[i].run(c, w, begin, from, to); err != nil {
				cancel(fmt.Errorf("%s: %w", w.name, err))
			}
		})
	}
	wait(ctx, time.Until(begin.Add(from)))
	if l.started != nil {
		l.started()
	}
	self := &process{pid: os.Getpid()}
	ownBefore, _ := self.cpu()
	besideBefore, _ := l.beside.cpu()
	cpuBefore, cpuErr := cpuOf(servers)
	wait(ctx, time.Until(begin.Add(to)))
	cpuAfter, err := cpuOf(servers)
	besideAfter, _ := l.beside.cpu()
	ownAfter, _ := self.cpu()
	if l.ended != nil {
		l.ended()
	}
	workers.Wait()
	if ctx.Err() != nil {
		faults := []error{context.Cause(ctx)}
		for _, p := range servers {
			faults = append(faults, p.fault())
		}
		return nil, errors.Join(faults...)
	}
	o := &outcome{seconds: l.span.Seconds(), each: make([][]latency, int(l.span.Seconds()+0.5))}
	for _, t := range tracks {
		o.all += t.answers
		o.latencies = append(o.latencies, t.latencies...)
		start := 0
		for second := range o.each {
			end := len(t.latencies)
			if second < len(t.seconds) {
				end = t.seconds[second]
			}
			o.each[second] = append(o.each[second], t.latencies[start:end]...)
			start = end
		}
	}
	o.count = len(o.latencies)
	if o.count == 0 {
		return nil, fmt.Errorf("%s: not one answer in %v", l.works[0].name, l.span)
	}
	slices.Sort(o.latencies)
	for _, s := range o.each {
		slices.Sort(s)
	}
	if err == nil && cpuErr == nil {
		o.cpu = (cpuAfter - cpuBefore).Seconds() / float64(o.count)
		o.own = (ownAfter - ownBefore).Seconds() / float64(o.count)
		o.beside = (besideAfter - besideBefore).Seconds() / float64(o.count)
	}
	return o, nil
}

func cpuOf(servers []*process) (sum time.Duration, err error) {
	for _, p := range servers {
		one, err := p.cpu()
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// A track is the measurement of one connection.
type track struct {
	answers   int       // also those outside the span
	latencies []latency // within the span
	seconds   []int     // len(latencies) at the end of each second
}

// run sends requests until the span is over. from and to count from begin.
func (t *track) run(c *client, w work, begin time.Time, from, to time.Duration) error {
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	t.latencies = make([]latency, 0, 1<<12)
	var request []byte
	before := time.Since(begin)
	for {
		request = w.next(request[:0], r)
		if _, err := c.expect(request, w.status); err != nil {
			return err
		}
		t.answers++
		now := time.Since(begin)
		if now >= to {
			return nil
		}
		if now >= from {
			for now-from >= time.Duration(len(t.seconds)+1)*time.Second {
				t.seconds = append(t.seconds, len(t.latencies))
			}
			t.latencies = append(t.latencies, latencyOf(now-before))
		}
		before = now
	}
}

// send sends n requests over conns connections and adds to done each one that is
// answered.
func send(ctx context.Context, p *process, w work, conns int, n int64, done *atomic.Int64) error {
	var (
		workers sync.WaitGroup
		left    atomic.Int64
		mu      sync.Mutex
		all     error
	)
	left.Store(n)
	for range conns {
		c, err := dial(p.addr)
		if err != nil {
			return err
		}
		defer c.Close()
		defer c.closeAfter(ctx)()
		workers.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			var request []byte
			for left.Add(-1) >= 0 {
				request = w.next(request[:0], r)
				if _, err := c.expect(request, w.status); err != nil {
					mu.Lock()
					defer mu.Unlock()
					all = errors.Join(all, err)
					left.Store(0)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	return errors.Join(ctx.Err(), all)
}

// wait sleeps, or returns early when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
