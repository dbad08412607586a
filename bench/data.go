package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A dataset is a folder for a number of customers. It holds sello's file, their ids,
// and how far loading has come:
//
//	DIR/1000000/sello.db       the file that sello serves
//	DIR/1000000/ids            16 bytes for each customer, in order
//	DIR/1000000/progress.json
type dataset struct {
	audience
	bench     *bench
	dir       string
	customers int64
	slug      string // of the organization
	wanted
	database string // address of the database that holds it in place of the file; "": there is none
	progress progress
	imported bool // this run imported all of it
}

// progress says how much has been loaded, in how many seconds.
type progress struct {
	Begun     time.Time `json:"begun"` // sales are dated back from here
	Key       string    `json:"key"`   // an API key
	Wanted    wanted    `json:"wanted"`
	Customers loaded    `json:"customers"`
	Sales     loaded    `json:"sales"`
	Adds      loaded    `json:"adds"`
	Measured  int64     `json:"measured"` // writes that measurements have added since
}

// wanted is what a dataset must have beside its customers. It cannot change later,
// since the date of each sale depends on the number of sales.
type wanted struct {
	Sales int64 `json:"sales"` // imported, with their dates
	Adds  int64 `json:"adds"`  // of points, through the API; -movements for each customer, less the sales
}

type loaded struct {
	Rows    int64   `json:"rows"`
	Timed   int64   `json:"timed"` // how many rows Seconds covers
	Seconds float64 `json:"seconds"`
}

func (l loaded) rate() float64 { return float64(l.Timed) / l.Seconds }

func (l *loaded) add(rows int64, seconds float64) {
	l.Rows += rows
	l.Timed += rows
	l.Seconds += seconds
}

// A chunk is what is loaded between two saves of progress: the rows of about half a
// minute.
const (
	leastChunk   = 10_000
	mostChunk    = 400_000
	chunkSeconds = 30
)

// chunk returns the number of rows of the next chunk.
func (l *loaded) chunk(wanted int64) int64 {
	n := int64(leastChunk)
	if l.Timed > 0 {
		n = min(max(int64(l.rate()*chunkSeconds), leastChunk), mostChunk)
	}
	return min(n, wanted-l.Rows)
}

// After worn writes of measurements for each customer, a dataset of at most
// cheapToRun customers has changed too much and is made anew. A larger one is not.
const (
	worn       = 10
	cheapToRun = 20_000
)

func (b *bench) dataset(customers, sales int64) *dataset {
	return &dataset{
		bench: b, dir: filepath.Join(b.dir, strconv.FormatInt(customers, 10)), customers: customers, slug: "bench",
		wanted: wanted{Sales: sales, Adds: max(b.movements*customers-sales, 0)},
	}
}

func (d *dataset) file() string { return filepath.Join(d.dir, "sello.db") }

// db is what -db names.
func (d *dataset) db() string { return cmp.Or(d.database, d.file()) }

// prepare loads what the dataset still lacks. Databases are new in each run, and lack all.
func (d *dataset) prepare(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join(d.dir, "progress.json"))
	if err == nil {
		err = json.Unmarshal(raw, &d.progress)
	}
	if err == nil {
		_, err = os.Stat(d.file())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	isWorn := d.customers <= cheapToRun && d.progress.Measured > worn*d.customers
	if d.bench.fresh || isWorn || err != nil {
		d.bench.letGo(d.dir)
		if err := os.RemoveAll(d.dir); err != nil {
			return err
		}
		d.progress = progress{}
	}
	if had := d.progress.Wanted; d.progress.Key != "" && had != d.wanted {
		return fmt.Errorf("%s was made for %d sales and %d adds, not for %d and %d: another -sales or -movements needs another -data, or -fresh",
			d.dir, had.Sales, had.Adds, d.Sales, d.Adds)
	}
	d.imported = d.progress.Customers.Rows == 0
	if err := d.load(ctx); err != nil {
		return err
	}
	if err := d.readIDs(); err == nil && d.progress.Adds.Rows >= d.Adds {
		return nil
	}
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	if err = d.fetchIDs(ctx, p); err == nil {
		err = d.addAll(ctx, p)
	}
	return errors.Join(err, p.stop())
}

// load makes the organization, and imports what it still lacks.
func (d *dataset) load(ctx context.Context) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if d.progress.Key == "" {
		if err := d.found(ctx); err != nil {
			return err
		}
	}
	d.key = d.progress.Key
	err := d.importAll(ctx, "customers", "firstName,lastName,email,phoneNumber", d.customers, &d.progress.Customers, func(i int64) string {
		p := personOf(i, d.customers)
		return p.first + "," + p.last + "," + p.email + "," + p.phone
	})
	if err != nil {
		return err
	}
	return d.importAll(ctx, "sales", "externalId,createdAt,email,phoneNumber,type,totalAmount,sku,quantity,price,comment", d.Sales, &d.progress.Sales, func(i int64) string {
		return saleRow(i, d.Sales, d.customers, d.progress.Begun)
	})
}

func (d *dataset) save() error {
	raw, err := json.MarshalIndent(d.progress, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(d.dir, "progress.json")
	if err := os.WriteFile(name+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

//go:embed organization.json
var organization []byte

// found makes the organization and its key.
func (d *dataset) found(ctx context.Context) error {
	document := bytes.Replace(organization, []byte(`"slug": "bench"`), fmt.Appendf(nil, `"slug": %q`, d.slug), 1)
	if _, err := d.sello(ctx, bytes.NewReader(document), "apply", "-"); err != nil {
		return err
	}
	out, err := d.sello(ctx, nil, "key", "create", "-org", d.slug, "-name", "bench", "-rate-limit", "1000000000", "-json")
	if err != nil {
		return err
	}
	var made struct{ Key string }
	if err := json.Unmarshal(out, &made); err != nil {
		return err
	}
	d.progress = progress{Begun: time.Now().Truncate(time.Second), Key: made.Key, Wanted: d.wanted}
	return d.save()
}

const freshHint = " (data of another version of sello? -fresh makes it anew)"

// sello runs a command on the file and returns what it printed.
func (d *dataset) sello(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.bench.binary, args...)
	cmd.Env = environment(d.db())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	endWithParent(cmd)
	cmd.Stdin = in
	var fault bytes.Buffer
	cmd.Stderr = &fault
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("sello %s: %w: %.2000s%s", args[0], err, bytes.TrimSpace(fault.Bytes()), freshHint)
	}
	return out, err
}

// importAll imports rows in chunks until there are as many as rows says.
func (d *dataset) importAll(ctx context.Context, kind, header string, rows int64, done *loaded, row func(int64) string) error {
	watch := d.bench.watch(fmt.Sprintf("%s customers: import of %s", count(d.customers), kind), rows, done.Rows)
	for done.Rows < rows {
		from, to := done.Rows, done.Rows+done.chunk(rows)
		name := filepath.Join(d.dir, "chunk.csv")
		if err := writeLines(name, header, from, to, row); err != nil {
			return err
		}
		begin := time.Now()
		out, err := d.sello(ctx, nil, "import", kind, name, "-org", d.slug, "-json")
		if err != nil {
			return err
		}
		seconds := time.Since(begin).Seconds()
		var report struct{ Added, Known, Wrong int64 }
		if err := json.Unmarshal(out, &report); err != nil {
			return err
		}
		if report.Wrong > 0 || report.Added+report.Known != to-from {
			return fmt.Errorf("import of %s %d to %d: %s; see %s.errors.csv", kind, from, to, out, name)
		}
		if report.Known == 0 {
			done.add(to-from, seconds)
		} else { // an interrupted run had imported some, so this chunk does not show the rate
			done.Rows = to
		}
		if err := d.save(); err != nil {
			return err
		}
		watch.at(done.Rows)
	}
	return os.RemoveAll(filepath.Join(d.dir, "chunk.csv"))
}

func writeLines(name, header string, from, to int64, row func(int64) string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, header)
	for i := from; i < to; i++ {
		fmt.Fprintln(w, row(i))
	}
	return errors.Join(w.Flush(), f.Close())
}

// serve brings the data into the system's cache, starts sello on it, and waits until
// sello's first background work is done.
func (d *dataset) serve(ctx context.Context, flags ...string) (*process, error) {
	if d.database == "" {
		if err := d.cache(); err != nil {
			return nil, err
		}
	}
	p, err := d.start(ctx, flags...)
	if err == nil {
		p.settle(ctx)
	}
	return p, err
}

// cache brings the data into the system's cache, and locks it there if that is
// allowed. Some machines drop idle pages from the cache, and then the disk would be
// measured.
func (d *dataset) cache() error {
	f, err := os.Open(d.file())
	if err != nil {
		return err
	}
	defer f.Close()
	held, err := holdInMemory(f)
	if err != nil {
		if d.bench.report.Machine["heldInMemory"] == "" {
			d.bench.report.Machine["heldInMemory"] = "no"
			d.bench.say("The data cannot be kept in memory (%v): if the system takes it out, the disk is measured.", err)
		}
		_, err = io.Copy(io.Discard, f)
		return err
	}
	d.bench.letGo(d.dir)
	d.bench.held[d.dir] = held
	return nil
}

// start starts sello on the data, with flags of its serve.
func (d *dataset) start(ctx context.Context, flags ...string) (*process, error) {
	p, err := startSello(ctx, d.bench.binary, d.db(), flags...)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, freshHint)
	}
	d.bench.running(p)
	return p, nil
}

func (d *dataset) idFile() string { return filepath.Join(d.dir, "ids") }

func (d *dataset) readIDs() error {
	raw, err := os.ReadFile(d.idFile())
	if err != nil {
		return err
	}
	if int64(len(raw)) != d.customers*16 {
		return errors.New("not the ids of this dataset")
	}
	d.ids = make([]id, d.customers)
	for i := range d.ids {
		copy(d.ids[i][:], raw[16*i:])
	}
	return nil
}

// fetchIDs reads the ids of all customers from the list, which is newest first.
func (d *dataset) fetchIDs(ctx context.Context, p *process) error {
	if d.ids != nil {
		return nil
	}
	pages := d.pages()
	watch := d.bench.watch(fmt.Sprintf("%s customers: their ids", count(d.customers)), d.customers, 0)
	ids := make([]id, d.customers)
	var (
		next, had atomic.Int64
		wait      sync.WaitGroup
		faults    = make(chan error, 4)
	)
	for range cap(faults) {
		wait.Go(func() {
			faults <- func() error {
				c, err := dial(p.addr)
				if err != nil {
					return err
				}
				defer c.Close()
				defer c.closeAfter(ctx)()
				for page := next.Add(1); page <= pages; page = next.Add(1) {
					list, err := d.list(c, pagePath(page))
					if err != nil {
						return err
					}
					for i, item := range list.Data {
						at := d.customers - 1 - (page-1)*perPage - int64(i)
						u, ok := parseID(item.ID)
						if !ok || at < 0 {
							return fmt.Errorf("page %d of the customers: not what was loaded", page)
						}
						ids[at] = u
					}
					watch.at(had.Add(int64(len(list.Data))))
				}
				return nil
			}()
		})
	}
	wait.Wait()
	close(faults)
	for err := range faults {
		if err != nil {
			return err
		}
	}
	if had.Load() != d.customers {
		return fmt.Errorf("the list has %d customers instead of %d", had.Load(), d.customers)
	}
	raw := make([]byte, 0, 16*len(ids))
	for _, u := range ids {
		raw = append(raw, u[:]...)
	}
	d.ids = ids
	return os.WriteFile(d.idFile(), raw, 0o600)
}

const perPage = 100 // customers on a page of the list

// pages returns how many pages the list of customers has.
func (d *dataset) pages() int64 { return (d.customers + perPage - 1) / perPage }

// pagePath returns the path of a page of that list. The first page is 1.
func pagePath(page int64) string {
	return fmt.Sprintf("/api/v1/customers?limit=%d&page=%d", perPage, page)
}

// list returns a page of customers.
func (d *dataset) list(c *client, path string) (*customerPage, error) {
	body, err := d.ask(c, path)
	if err != nil {
		return nil, err
	}
	page := new(customerPage)
	return page, json.Unmarshal(body, page)
}

// ask sends a GET and returns the body.
func (d *dataset) ask(c *client, path string) ([]byte, error) {
	body, err := c.expect(d.get(path).next(nil, nil), 200)
	if err != nil {
		err = fmt.Errorf("GET %s: %w", path, err)
	}
	return body, err
}

// addAll adds points through the API. It sends no Idempotency-Key, so that there are
// no replays for the sweep to remove a day later. Adds of an interrupted chunk stay,
// and are not counted.
func (d *dataset) addAll(ctx context.Context, p *process) error {
	done := &d.progress.Adds
	watch := d.bench.watch(fmt.Sprintf("%s customers: adds", count(d.customers)), d.Adds, done.Rows)
	for done.Rows < d.Adds {
		n := done.chunk(d.Adds)
		var turns, had atomic.Int64
		turns.Store(done.Rows)
		w := d.plainAdd(func() id { return d.ids[turn(turns.Add(1)-1, d.customers)] })
		begin := time.Now()
		if err := send(ctx, p, w, 256, n, &had); err != nil {
			return err
		}
		done.add(n, time.Since(begin).Seconds())
		if err := d.save(); err != nil {
			return err
		}
		watch.at(done.Rows)
	}
	return nil
}

// emailOf returns the address of a random customer. No other customer has it, or one
// that contains it.
func (d *dataset) emailOf(r *rand.Rand) string {
	return personOf(r.Int64N(d.customers), d.customers).email
}
