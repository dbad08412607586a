// Audit checks that a server keeps what it has answered. It sends writes, and logs
// each write before it is sent and each answer when it has come. Later, after whatever
// happened to the server, it checks over HTTP that each successful write is there once,
// with the figures of its answer, and that nothing else is.
//
//	audit load  -url http://127.0.0.1:8080/api/v1 -key sello_… -log FILE
//	audit check -url http://127.0.0.1:8080/api/v1 -key sello_… -log FILE
//
// It knows only the server's API, and must not share code with the server.
// `go test ./audit -run Crash` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// A job holds the settings of the command line.
type job struct {
	client *client
	log    *diary

	seed  uint64
	conns int
	most  int           // attempts
	span  time.Duration // of the load

	all bool
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] != "load" && args[0] != "check" {
		return errors.New("load or check?")
	}
	var j job
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	url := set.String("url", "", "`base` of the API")
	key := set.String("key", "", "API `key`, of one who may do everything")
	file := set.String("log", "", "`file` of what was sent and answered; both roles add to it")
	set.IntVar(&j.conns, "conns", 8, "`number` of connections")
	set.Uint64Var(&j.seed, "seed", 1, "of a load: what is sent follows from this")
	set.IntVar(&j.most, "n", 1<<30, "of a load: end after so many `writes`")
	set.DurationVar(&j.span, "for", time.Hour, "of a load: end after this `time`, if the server has not before")
	set.BoolVar(&j.all, "all", false, "of a check: of all customers, not only of those touched since the last check")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	var err error
	if j.log, err = openDiary(*file); err != nil {
		return err
	}
	defer j.log.Close()
	j.client = newClient(*url, *key, j.conns)
	if args[0] == "load" {
		return j.load()
	}
	return j.check()
}
