package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The targets of -postgres. Sello's data and the peer's are databases of one cluster, which is made
// for the run. The peer is postgres/peer.

// peerFlags are the ways in which the peer is tried. The best one for each kind of request is what
// sello is measured against.
var peerFlags = []string{
	"-conns=16 -form=trips", "-conns=32 -form=trips", "-conns=64 -form=trips",
	"-conns=16 -form=batch", "-conns=32 -form=batch", "-conns=64 -form=batch",
	"-conns=8 -form=statement", "-conns=16 -form=statement", "-conns=32 -form=statement", "-conns=64 -form=statement",
}

func (b *bench) measurePostgres(ctx context.Context, wanted []string, servers, organizations int) error {
	has := func(targets ...string) bool {
		return slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(wanted, t) })
	}
	c, err := startCluster(clusterSettings...)
	if err != nil {
		return err
	}
	defer c.stop()
	b.cluster = c
	version, err := c.ask(`SELECT current_setting('server_version')`)
	if err != nil {
		return err
	}
	b.report.Machine["postgres"] = version
	b.say("PostgreSQL %s, with %s", version, strings.Join(clusterSettings, ", "))
	d := b.dataset(b.main.customers, b.main.Sales)
	d.dir = filepath.Join(b.dir, "postgres")
	if d.database, err = b.newDatabase("sello"); err != nil {
		return err
	}
	if err := b.main.prepare(ctx); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if has("p6") {
		if err := b.memoryBeside(ctx, d); err != nil {
			return err
		}
	}
	if has("p1", "p2", "p3", "p4", "p5") {
		if err := b.besidePeer(ctx, has, d); err != nil {
			return err
		}
	}
	if has("p7") {
		return b.severalServers(ctx, d, servers, organizations)
	}
	return nil
}

// newDatabase makes a database and returns its address.
func (b *bench) newDatabase(name string) (string, error) {
	_, err := b.cluster.ask("CREATE DATABASE " + name)
	return b.cluster.dsn(name), err
}

// startPeer starts the peer. Only the first one has to fill the tables.
func (b *bench) startPeer(ctx context.Context, binary, database, flags string, made peerSetup) (*process, error) {
	raw, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, strings.Fields(flags)...)
	cmd.Env = slices.Concat([]string{fmt.Sprint("GOGC=", gcPercent)}, os.Environ(), []string{"PEER_DSN=" + database})
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	go in.Write(append(raw, '\n'))
	p, err := start(ctx, cmd, "", cmd.StdoutPipe, func(line []byte) string { return string(line) })
	if err == nil {
		p.stdin = in
		b.running(p)
	}
	return p, err
}

// A peerSetup is what the peer reads first.
type peerSetup struct {
	Key       string   `json:"key"`
	Customers []string `json:"customers"`
}

// bestPeers tries the peer on the customers of a dataset, and starts those that are the fastest for
// adds and for reads. They may be one. Each try has a process of its own, so that idle connections of
// the others do not slow it down.
func (b *bench) bestPeers(ctx context.Context, d *dataset) (adds, reads *process, note string, err error) {
	binary, err := b.build(ctx, "peer", "postgres/peer", false)
	if err != nil {
		return nil, nil, "", err
	}
	database, err := b.newDatabase("peer")
	if err != nil {
		return nil, nil, "", err
	}
	made := peerSetup{Key: d.key}
	for _, u := range d.ids {
		made.Customers = append(made.Customers, string(appendID(nil, u)))
	}
	add, read := make([][]float64, len(peerFlags)), make([][]float64, len(peerFlags))
	for range b.rounds {
		for i, flags := range peerFlags {
			p, err := b.startPeer(ctx, binary, database, flags, made)
			if err != nil {
				return nil, nil, "", err
			}
			made.Customers = nil
			for _, trial := range []struct {
				rates *[]float64
				w     work
			}{{&add[i], d.add()}, {&read[i], d.balance()}} {
				l := &load{works: []work{trial.w}, conns: connections, warm: time.Second, span: b.span}
				o, err := l.run(ctx, p)
				if err != nil {
					return nil, nil, "", err
				}
				*trial.rates = append(*trial.rates, o.rate())
			}
			if err := p.stop(); err != nil {
				return nil, nil, "", err
			}
		}
	}
	bestAdd, bestRead := 0, 0
	var parts []string
	for i, flags := range peerFlags {
		if median(add[i]) > median(add[bestAdd]) {
			bestAdd = i
		}
		if median(read[i]) > median(read[bestRead]) {
			bestRead = i
		}
		parts = append(parts, fmt.Sprintf("%s %s adds/s, %s reads/s", flags, count(median(add[i])), count(median(read[i]))))
	}
	note = fmt.Sprintf("the peer as it was tried, of which the best is taken: %s", strings.Join(parts, "; "))
	b.say("%s", note)
	if adds, err = b.startPeer(ctx, binary, database, peerFlags[bestAdd], made); err != nil {
		return nil, nil, "", err
	}
	if reads = adds; bestRead != bestAdd {
		reads, err = b.startPeer(ctx, binary, database, peerFlags[bestRead], made)
	}
	return adds, reads, note, err
}

// Targets p1 to p5: throughput against the peer's, and against sello's on a file.

func (b *bench) besidePeer(ctx context.Context, has func(...string) bool, d *dataset) error {
	b.say("measuring targets p1 to p5 …")
	file, err := b.main.serve(ctx)
	if err != nil {
		return err
	}
	sello, err := d.serve(ctx)
	if err != nil {
		return err
	}
	if err := d.checkSale(sello); err != nil {
		return err
	}
	peerAdds, peerReads, sizes, err := b.bestPeers(ctx, d)
	if err != nil {
		return err
	}
	peerAdd := &series{name: "the peer's adds", p: peerAdds, w: d.add(), needed: has("p1")}
	add := &series{name: "adds on PostgreSQL", p: sello, w: d.add(), needed: has("p1", "p3")}
	fileAdd := &series{name: "adds on a file", p: file, w: b.main.add(), needed: has("p3")}
	peerRead := &series{name: "the peer's reads", p: peerReads, w: d.balance(), needed: has("p2")}
	read := &series{name: "reads on PostgreSQL", p: sello, w: d.balance(), needed: has("p2", "p4")}
	fileRead := &series{name: "reads on a file", p: file, w: b.main.balance(), needed: has("p4")}
	sale := &series{name: "sales on PostgreSQL", p: sello, w: d.sale(), needed: has("p5")}
	fileSale := &series{name: "sales on a file", p: file, w: b.main.sale(), needed: has("p5")}
	if _, err := b.cluster.ask("CHECKPOINT"); err != nil {
		return err
	}
	for i := range b.rounds {
		for _, t := range []*series{peerAdd, add, fileAdd, peerRead, read, fileRead, sale, fileSale} {
			if !t.needed {
				continue
			}
			of := d
			if t.p == file {
				of = b.main
			}
			if err := t.take(ctx, b, of); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		b.say("  round %d of %d", i+1, b.rounds)
	}
	size := count(d.customers) + " customers: "
	compare := func(id, work, target string, above, below *series, verdict func(ratio float64) verdict, note string) {
		if !has(id) {
			return
		}
		list := ratios(above.rates, below.rates)
		b.add(row{id, work, target, withQuartiles(list), verdict(median(list)),
			size + describe(below, above) + note, values(below, above)})
	}
	least := func(bound float64) func(float64) verdict {
		return func(ratio float64) verdict { return verdictOf(ratio >= bound).only(!b.short) }
	}
	noTarget := func(float64) verdict { return told }
	compare("p1", "PostgreSQL: adds ÷ the peer's", "≥ 1.2", add, peerAdd, least(1.2), "; "+sizes)
	compare("p2", "PostgreSQL: balance reads ÷ the peer's", "≥ 0.8", read, peerRead, least(0.8), "")
	compare("p3", "adds on PostgreSQL ÷ on a file", "–", add, fileAdd, noTarget, "")
	compare("p4", "balance reads on PostgreSQL ÷ on a file", "–", read, fileRead, noTarget, "")
	compare("p5", "sales on PostgreSQL ÷ on a file", "–", sale, fileSale, noTarget, "")
	stops := []error{sello.stop(), file.stop(), peerAdds.stop()}
	if peerReads != peerAdds {
		stops = append(stops, peerReads.stop())
	}
	return errors.Join(stops...)
}

// Target p6: memory of a server on PostgreSQL, beside that of one on a file.

func (b *bench) memoryBeside(ctx context.Context, d *dataset) error {
	b.say("measuring target p6 …")
	x := row{ID: "p6", Work: "memory of a server on PostgreSQL: at rest; under full load", Target: "≤ 64 MB; ≤ 256 MB", Figure: "–", Met: notMeasured}
	var texts []string
	x.Values = map[string]any{}
	for _, of := range []*dataset{b.main, d} { // PostgreSQL's is the last
		rest, most, span, err := b.memoryOf(ctx, of)
		if errors.Is(err, errNotHere) {
			x.Note = err.Error()
			b.add(x)
			return nil
		} else if err != nil {
			return err
		}
		texts = append(texts, megabytes(rest)+"; "+megabytes(most))
		x.Met = verdictOf(rest <= mostAtRest && most <= mostUnderLoad).only(!b.short)
		x.Note = memoryNote(span)
		name := "file"
		if of.database != "" {
			name = "postgres"
		}
		x.Values[name] = map[string]any{"restBytes": rest, "loadBytes": most}
	}
	x.Figure = texts[1]
	x.Note = fmt.Sprintf("%s customers; on a file %s: %s", count(d.customers), texts[0], x.Note)
	b.add(x)
	return nil
}

// Target p7: several servers on many organizations, against one server on one.

// perOrganization is how many customers each of many organizations has.
const perOrganization = 100

func (b *bench) severalServers(ctx context.Context, d *dataset, servers, organizations int) error {
	b.say("measuring target p7 …")
	x := row{ID: "p7", Work: fmt.Sprintf("adds: %d servers on %d organizations ÷ 1 server on 1", servers, organizations), Target: "≥ 2", Figure: "–", Met: notMeasured}
	database, err := b.newDatabase("many")
	if err != nil {
		return err
	}
	all, err := b.organizations(ctx, database, organizations)
	if err != nil {
		return err
	}
	alone, err := d.serve(ctx)
	if err != nil {
		return err
	}
	many := &dataset{bench: b, database: database}
	var group []*process
	for len(group) < servers {
		p, err := many.serve(ctx)
		if err != nil && len(group) > 0 { // the second one is refused for as long as only one may write
			x.Note = fmt.Sprintf("server %d does not start: %.300v; ", len(group)+1, err)
			break
		} else if err != nil {
			return err
		}
		group = append(group, p)
	}
	one := &series{name: "1 server on 1 organization", p: alone, w: d.add()}
	several := &series{name: fmt.Sprintf("%d on %d", len(group), organizations), w: d.add()}
	l := b.round(several.w)
	l.works = spread(all, len(group))
	l.warm += time.Second // each organization's first requests read what later ones find in memory
	for range b.rounds {
		if err := one.take(ctx, b, d); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		o, err := l.run(ctx, group...)
		if err != nil {
			return fmt.Errorf("%s: %w", several.name, err)
		}
		several.note(o)
	}
	list := ratios(several.rates, one.rates)
	x.Figure = withQuartiles(list)
	if len(group) < servers {
		x.Figure += fmt.Sprintf(" with %d", len(group))
	} else {
		x.Met = verdictOf(median(list) >= 2).only(!b.short)
	}
	x.Note += describe(one, several) + "; the clients, the servers and PostgreSQL share " + b.report.Machine["cpus"] + " processors"
	x.Values = values(one, several)
	b.add(x)
	stops := []error{alone.stop()}
	for _, p := range group {
		stops = append(stops, p.stop())
	}
	return errors.Join(stops...)
}

// organizations makes organizations in a database.
func (b *bench) organizations(ctx context.Context, database string, n int) ([]*audience, error) {
	quiet := &bench{out: io.Discard, binary: b.binary}
	var list []*dataset
	watch := b.watch("organizations", int64(n), 0)
	for i := range n {
		d := &dataset{bench: quiet, database: database, slug: fmt.Sprintf("bench-%d", i+1), customers: perOrganization,
			dir: filepath.Join(b.dir, "many", strconv.Itoa(i+1))}
		if err := os.RemoveAll(d.dir); err != nil {
			return nil, err
		}
		if err := d.load(ctx); err != nil {
			return nil, err
		}
		list = append(list, d)
		watch.at(int64(i + 1))
	}
	p, err := list[0].serve(ctx)
	if err != nil {
		return nil, err
	}
	var all []*audience
	for _, d := range list {
		if err := d.fetchIDs(ctx, p); err != nil {
			return nil, err
		}
		all = append(all, &d.audience)
	}
	return all, p.stop()
}

// spread returns adds for each of n servers, to a random one of its organizations each time. All
// requests of an organization go to one server, as a balancer by key has them.
func spread(all []*audience, n int) []work {
	list := make([]work, n)
	for i := range list {
		var adds []work
		for at := i; at < len(all); at += n {
			adds = append(adds, all[at].add())
		}
		list[i] = adds[0]
		list[i].next = func(b []byte, r *rand.Rand) []byte { return adds[r.IntN(len(adds))].next(b, r) }
	}
	return list
}
