// Bench measures sello against the simplest HTTP server in Go, and against its own
// targets:
//
//	go run ./bench -short     a quick check, in two minutes
//	go run ./bench            the table, with a million customers
//	go run ./bench -large 10000000
//	go run -tags postgres ./bench -postgres
//	go run ./bench -sizes 10000,100000,1000000 -json sizes.json
//	go run ./bench -plot growth.svg -from sizes.json
//
// It makes its data once and keeps it. A run after an interrupted one goes on loading
// where that one stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == boundRole {
		fail(runBound())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal then kills the process at once
	fail(run(ctx, os.Args[1:]))
}

func fail(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errNotHere is returned for what this system does not measure.
var errNotHere = errors.New("this system does not tell")

// A bench is one run.
type bench struct {
	out    io.Writer
	dir    string
	binary string // sello's
	short  bool
	fresh  bool
	rounds int
	span   time.Duration // of one round

	sustained time.Duration // of the long run of adds
	warm      time.Duration // before a round
	movements int64         // for each customer of a dataset

	main, small, large *dataset // large is main if there is no larger one
	cluster            *cluster // nil without -postgres

	mu       sync.Mutex
	children []*process
	report   report

	held map[string]func() // unlocks the data of a directory from memory
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	b := &bench{out: os.Stdout, held: map[string]func(){}}
	set.StringVar(&b.dir, "data", filepath.Join(os.TempDir(), "sello-bench"), "`directory` of the data; it should be on a disk")
	set.BoolVar(&b.short, "short", false, "small data and short rounds, under two minutes")
	set.BoolVar(&b.fresh, "fresh", false, "make the data anew, as after a change of the file's format")
	set.IntVar(&b.rounds, "rounds", 5, "`rounds` of what alternates")
	set.DurationVar(&b.span, "span", 3*time.Second, "`length` of a round")
	customers := set.Int64("customers", 1_000_000, "`number` of customers of the main data")
	sales := set.Int64("sales", -1, "`number` of sales imported with the main data; -1: as many as customers")
	largest := set.Int64("large", 0, "`number` of customers for targets 5 and 11; 0: the main data")
	largeSales := set.Int64("large-sales", -1, "`number` of sales imported with the large data; -1: as many as customers")
	set.Int64Var(&b.movements, "movements", 3, "`number` of movements for each customer, which adds of points make up to after the import")
	targets := set.String("targets", "", "`list` of targets to measure, such as 1,2,4b; all without it")
	sizes := set.String("sizes", "", "`list` of numbers of customers: how cost grows, instead of the targets")
	jsonName := set.String("json", "", "`file` for the figures; among the data, as bench-results.json or, of a part of the table, bench-part.json, without it")
	onPostgres := set.Bool("postgres", false, "measure sello on PostgreSQL, against a hand-written server and against a file, instead of the other targets")
	servers := set.Int("servers", 3, "`number` of servers on one PostgreSQL for target p7")
	organizations := set.Int("organizations", 100, "`number` of organizations that they serve")
	binary := set.String("sello", "", "`binary` to measure instead of building one")
	plotName := set.String("plot", "", "draw `file`.svg from the figures that -from names, and end")
	from := set.String("from", "", "`file` with the figures of a run with -sizes")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("what is %q?", set.Arg(0))
	}
	if *plotName != "" {
		return plot(*plotName, *from)
	}
	switch {
	case b.rounds < 1 || b.span <= 0 || *customers < 1 || b.movements < 0 || *servers < 1 || *organizations < *servers:
		return errors.New("-rounds, -span, -customers and -servers have to be above 0, -movements at least 0, -organizations at least -servers")
	case *largest != 0 && *largest <= *customers:
		return errors.New("-large has to be above -customers")
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	smallest := int64(10_000)
	b.sustained, b.warm = 60*time.Second, 500*time.Millisecond
	if b.short {
		smallest, b.sustained, b.warm = 1_000, 5*time.Second, 200*time.Millisecond
		if !given["customers"] {
			*customers = 10_000
		}
		if !given["span"] {
			b.span = 500 * time.Millisecond
		}
	}
	targetsThere := order
	if *onPostgres {
		targetsThere = postgresOrder
		if !given["customers"] {
			*customers = min(*customers, 100_000)
		}
	}
	wanted, err := parseTargets(*targets, targetsThere)
	if err != nil {
		return err
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if *jsonName == "" {
		*jsonName = filepath.Join(b.dir, "bench-results.json")
		if b.short || *targets != "" || *sizes != "" || *onPostgres { // keep the figures of the whole table
			*jsonName = filepath.Join(b.dir, "bench-part.json")
		}
	}
	if err := canWrite(*jsonName); err != nil { // fail now, not after hours of work
		return err
	}
	b.report = report{When: time.Now().UTC(), Command: "go run ./bench " + strings.Join(args, " "), Machine: machine(b.dir), Short: b.short, Rounds: b.rounds, Span: b.span.Seconds()}
	b.report.Machine["cpus"] = strconv.Itoa(runtime.NumCPU())
	b.report.Machine["go"] = runtime.Version()
	b.report.Machine["platform"] = runtime.GOOS + "/" + runtime.GOARCH
	if b.report.Machine["fileSystem"] == "tmpfs" {
		b.say("The data lies in memory (tmpfs), where nothing is durable: use -data to put it on a disk.")
	}
	defer b.stopAll()
	if b.binary = *binary; b.binary == "" {
		if b.binary, err = b.build(ctx, "sello", ".", *onPostgres); err != nil {
			return err
		}
	}
	switch {
	case *sizes != "":
		err = b.measureSizes(ctx, *sizes)
	default:
		if *sales < 0 {
			*sales = *customers
		}
		b.main = b.dataset(*customers, *sales)
		if *onPostgres {
			err = b.measurePostgres(ctx, wanted, *servers, *organizations)
			break
		}
		b.large = b.main
		if *largest > *customers {
			if *largeSales < 0 {
				*largeSales = *largest
			}
			b.large = b.dataset(*largest, *largeSales)
		}
		if b.small = b.main; *customers != smallest {
			b.small = b.dataset(smallest, smallest)
		}
		err = b.measure(ctx, wanted)
	}
	measured := len(b.report.Rows) > 0 || len(b.report.Sizes) > 0
	if measured {
		fmt.Fprintln(b.out)
		b.report.print(b.out)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted; the same command, without -fresh, goes on loading where it was")
	}
	if err != nil { // keep the figures of an earlier run
		*jsonName = strings.TrimSuffix(*jsonName, ".json") + "-interrupted.json"
	}
	if err == nil || measured {
		fault := b.report.write(*jsonName)
		if fault == nil {
			b.say("figures in %s", *jsonName)
		}
		err = errors.Join(err, fault)
	}
	return err
}

// canWrite returns an error if a file cannot be written. It changes nothing.
func canWrite(name string) error {
	_, missing := os.Stat(name)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if missing != nil {
		defer os.Remove(name)
	}
	return f.Close()
}

func parseTargets(list string, there []string) ([]string, error) {
	if list == "" {
		return there, nil
	}
	wanted := strings.Split(list, ",")
	for i, t := range wanted {
		wanted[i] = strings.TrimSpace(t)
		if !slices.Contains(there, wanted[i]) {
			return nil, fmt.Errorf("there is no target %q", t)
		}
	}
	return wanted, nil
}

// build builds a program of the module that this one is part of, or of a module inside it, into the
// folder of the data.
func (b *bench) build(ctx context.Context, name, dir string, withPostgres bool) (binary string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if withPostgres {
		name += "-postgres"
		args = append(args, "-tags", "postgres")
	}
	binary = filepath.Join(b.dir, name)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", binary, ".")...)
	cmd.Dir = filepath.Join(root, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// moduleRoot returns the directory of sello's source.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if raw, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(raw), "module sello\n") {
		return "", errors.New("run it in sello's source")
	}
	return filepath.Dir(file), nil
}

// running remembers a server, so that it is stopped however the run ends.
func (b *bench) running(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.children = append(b.children, p)
}

// letGo unlocks the data of a directory from memory.
func (b *bench) letGo(dir string) {
	if letGo := b.held[dir]; letGo != nil {
		letGo()
		delete(b.held, dir)
	}
}

func (b *bench) stopAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.children {
		select {
		case <-p.ended:
		default:
			p.stop()
		}
	}
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }
