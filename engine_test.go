package main

import (
	"bytes"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/disk"
)

// These benchmarks measure the engine on the most common writes of shops,
// without HTTP and without a disk. They report time, allocations and, per
// operation, the keys read (gets), ranges read (scans), keys written (puts)
// and the bytes of the written keys and values (written-B).

// A meteredTx counts the calls to the Tx below it. Later reads of the same
// operation see its writes, which are then dropped.
type meteredTx struct {
	*overlay
	gets, scans, puts, bytes int
	log                      func(key, value []byte) // called for each write, unless nil
}

func (c *meteredTx) Get(key []byte) ([]byte, bool, error) {
	c.gets++
	return c.overlay.Get(key)
}

func (c *meteredTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	c.scans++
	return c.overlay.Scan(lo, hi, reverse)
}

func (c *meteredTx) Put(key, value []byte) error {
	c.puts++
	c.bytes += len(key) + len(value)
	if c.log != nil {
		c.log(key, value)
	}
	return c.overlay.Put(key, value)
}

func (c *meteredTx) Delete(key []byte) error {
	c.puts++
	c.bytes += len(key)
	return c.overlay.Delete(key)
}

// A busyShop has customers who have bought and earned before, on a Tuesday at
// noon: all three of its purchase rules give points, and each sale decides
// the tier anew.
type busyShop struct {
	shop      *shop
	state     memTx
	customers []id
	rnd       *rand.Rand
}

const busyPrograms = `"pointsDecimals":0,"rounding":"Floor","expiry":{"months":12,"endOf":"Month"},
	"tierBasis":{"metric":"PointsEarned","window":"Rolling","months":12},
	"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":1000,"multiplier":1.25},{"name":"Oro","threshold":5000,"multiplier":1.5}],
	"rules":[{"key":"base","name":"1 punto por cada $10","per":{"amount":10,"points":1}},
		{"key":"martes","name":"Martes doble","multiplier":2,"days":["Tuesday"]},
		{"key":"grano","name":"5 puntos por bolsa de grano","skus":["GRANO-*"],"perItem":5}]`

var threeItems = []item{
	{"CAFE-250", 1850000, 10000},
	{"GRANO-500", 3200000, 20000},
	{"TAZA", 950000, 10000},
}

func newBusyShop(b *testing.B) *busyShop {
	store := newMemStore()
	b.Cleanup(func() { store.Close() })
	s := &busyShop{shop: &shop{TB: b, org: 1}, rnd: rand.New(rand.NewPCG(1, 1))}
	s.shop.engine = newEngine(store, func() time.Time { return s.shop.clock.time() }, func() seed {
		var random seed
		binary.BigEndian.PutUint64(random[:], s.shop.ids.Add(1))
		return random
	})
	s.shop.setClock("2026-03-02T10:00:00Z")
	s.shop.ok(s.shop.engine.open(b.Context()))
	s.shop.apply(setup{program: busyPrograms, also: `"segments":[{"key":"vip","name":"VIP","description":"Gasto alto","priority":10,
		"isActive":true,"rule":{"all":[{"field":"totalSpent","op":">=","value":5000}]}}]`}.document())
	const customers = 1000
	for range customers {
		s.customers = append(s.customers, id{})
	}
	s.customers = must(s.shop, func(t *txn) ([]id, error) {
		var all []id
		for n := range customers {
			name := string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n/676))
			c, _, err := t.customers.enrol(enrolment{FirstName: name, LastName: "Pérez", Email: name + "@example.com", Phone: ""})
			if err != nil {
				return nil, err
			}
			all = append(all, c.ID)
		}
		return all, nil
	})
	for round := range 4 { // the last on this day
		s.shop.pass(36 * time.Hour)
		if round == 3 {
			s.shop.setClock("2026-03-10T17:00:00Z")
		}
		must(s.shop, func(t *txn) (any, error) {
			for n, cust := range s.customers {
				if _, err := s.addOn(t, cust, s.retryKey()); err != nil {
					return nil, err
				}
				if n%2 == round%2 {
					if _, err := s.sellOn(t, cust, nil); err != nil {
						return nil, err
					}
				}
			}
			return nil, nil
		})
	}
	s.shop.setClock("2026-03-10T18:00:00Z")
	s.state = store.(*memStore).entries()
	b.Cleanup(s.shop.verified)
	return s
}

func (s *busyShop) retryKey() *retryKey {
	k := new(retryKey)
	binary.BigEndian.PutUint64(k.name[:], s.rnd.Uint64())
	k.request[0] = 1
	return k
}

// answered runs act as the handler of a POST does: it skips act if the key
// already has an answer, and otherwise keeps the answer.
func answered(t *txn, k *retryKey, act func() (any, error)) (any, error) {
	if k == nil {
		return act()
	}
	if _, first, err := t.replays.first([]retryKey{*k}); first != nil || err != nil {
		return nil, err
	}
	v, err := act()
	status, body, err := encodeReply(v, 201, err)
	if err != nil {
		return nil, err
	}
	return nil, t.replays.keep([]retryKey{*k}, status, body)
}

func (s *busyShop) addOn(t *txn, cust id, k *retryKey) (any, error) {
	return answered(t, k, func() (any, error) {
		return movePoints(t, cust, nil, &movement{Amount: 100_0000, Category: categoryBonus, Comment: "mostrador"}, t.points.credit)
	})
}

func (s *busyShop) deductOn(t *txn, cust id, k *retryKey) (any, error) {
	return answered(t, k, func() (any, error) {
		return movePoints(t, cust, nil, &movement{Amount: 40_0000, Category: categoryAdjustment}, t.points.debit)
	})
}

func (s *busyShop) sellOn(t *txn, cust id, k *retryKey) (any, error) {
	return answered(t, k, func() (any, error) {
		x, c, err := t.sales.register(newSale{Customer: cust, Total: 920_0000, Type: typePurchase, Items: threeItems, Source: sourceAPI})
		if err != nil {
			return nil, err
		}
		return newSaleShapeFor(t, x, c)
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, test := range []struct {
		name string
		op   func(*busyShop, *txn, id, *retryKey) (any, error)
	}{
		{"add", (*busyShop).addOn},
		{"deduct", (*busyShop).deductOn},
		{"sale", (*busyShop).sellOn},
	} {
		b.Run(test.name, func(b *testing.B) {
			s := newBusyShop(b)
			var total meteredTx
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				tx := &meteredTx{overlay: newOverlay(s.state)}
				if n == 0 && testing.Verbose() {
					tx.log = func(key, value []byte) { b.Logf("%q %x: %d + %d", key[0], key[1:], len(key), len(value)) }
				}
				k := s.retryKey()
				_, err := runTxn(s.shop.engine, tx, s.shop.org, s.shop.clock, s.shop.engine.seed(), func(t *txn) (any, error) {
					v, err := test.op(s, t, s.customers[s.rnd.IntN(len(s.customers))], k)
					if err != nil {
						return nil, err
					}
					return v, t.commit()
				})
				s.shop.ok(err)
				total.gets += tx.gets
				total.scans += tx.scans
				total.puts += tx.puts
				total.bytes += tx.bytes
			}
			per := func(n int, unit string) { b.ReportMetric(float64(n)/float64(b.N), unit) }
			per(total.gets, "gets/op")
			per(total.scans, "scans/op")
			per(total.puts, "puts/op")
			per(total.bytes, "written-B/op")
		})
	}
}

// BenchmarkRecord writes and reads the records that every change of points
// touches.
func BenchmarkRecord(b *testing.B) {
	a := &account{accountHead: accountHead{Balance: 1234_5000, Lifetime: 2000_0000, Window: basis{Points: 2000_0000}, Due: 1804140000000},
		Tier: "Bronce", Movements: chain{N: 13, Path: []uint64{8_400_123, 7_000_456, 3_100_789}}}
	m := &movement{Customer: id{2}, Program: 1, Category: categoryBonus, Amount: 100_0000, Balance: 1234_5000,
		Expires: 1804140000000, CreatedAt: 1772600000000, Link: link{14, 8_400_123, 7_000_456}}
	benchmarkRecord(b, "account", a)
	benchmarkRecord(b, "movement", m)
}

func benchmarkRecord[T any, P recordPointer[T]](b *testing.B, name string, v P) {
	var stored []byte
	b.Run(name+"/encode", func(b *testing.B) {
		b.ReportAllocs()
		tx := &keptTx{}
		for b.Loop() {
			if err := put(tx, nil, v); err != nil {
				b.Fatal(err)
			}
		}
		stored = append(stored, tx.value...)
		b.ReportMetric(float64(len(stored)), "B")
	})
	b.Run(name+"/decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeRecord[T, P](stored); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A keptTx holds the value that was put last.
type keptTx struct {
	Tx
	value []byte
}

func (k *keptTx) Put(_, value []byte) error { k.value = value; return nil }

// BenchmarkPost sends the same through the handler to a store in a file, from
// 64 clients; without the disk's part, which is the same for both.
func BenchmarkPost(b *testing.B) {
	store, err := openBolt(filepath.Join(b.TempDir(), "post.db"), disk.Options{NoSync: true, Dense: denseTables})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	s := &shop{TB: b, org: 1}
	s.engine = newEngine(store, time.Now, cryptoSeed)
	s.clock = instantOf(time.Now())
	s.ok(s.engine.open(b.Context()))
	s.apply(setup{program: busyPrograms}.document())
	var customers []string
	for n := range 20_000 {
		if n%1000 == 0 {
			customers = append(customers, must(s, func(t *txn) ([]string, error) {
				var some []string
				for i := range 1000 {
					c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Email: fmt.Sprintf("c%d@example.com", n+i)})
					if err != nil {
						return nil, err
					}
					some = append(some, c.ID.String())
				}
				return some, nil
			})...)
		}
	}
	text := must(s, func(t *txn) (string, error) {
		_, text, err := t.keys.create(keyRequest{Name: "bench", RateLimit: 1 << 30})
		return text, err
	})
	handler := newAPIOf(s.engine)
	for _, test := range []struct{ name, path, body string }{
		{"add", "/api/v1/points/customers/CUSTOMER/add", `{"amount":100,"category":"Bonus","comment":"mostrador"}`},
		{"sale", "/api/v1/transactions", `{"customerId":"CUSTOMER","totalAmount":385.5,"items":[{"sku":"CAFE-250","price":92.5,"quantity":1},
			{"sku":"GRANO-500","price":160,"quantity":2},{"sku":"TAZA","price":95,"quantity":1}]}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					to := strings.NewReplacer("CUSTOMER", customers[rand.IntN(len(customers))])
					r := httptest.NewRequest(http.MethodPost, to.Replace(test.path), strings.NewReader(to.Replace(test.body)))
					r.Header.Set("Authorization", "Bearer "+text)
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Idempotency-Key", crand.Text())
					w := httptest.NewRecorder()
					if handler.ServeHTTP(w, r); w.Code != http.StatusCreated {
						b.Error(w.Code, w.Body)
						return
					}
				}
			})
		})
	}
}

// TestConfigRolledBack reads a configuration in the transaction that writes it
// and rolls back: nobody may see it afterwards, nor after the next change.
func TestConfigRolledBack(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	named := func(name string) []byte {
		return []byte(strings.Replace(string(demoDocument), `"Café Luna"`, `"`+name+`"`, 1))
	}
	change := func(name string, outcome error) {
		t.Helper()
		now, ids := s.clock, s.engine.seed()
		err := s.engine.store.Update(t.Context(), func(tx Tx) error {
			if _, err := applyDocument(tx, named(name), newMint(now, ids), creator{}, false); err != nil {
				return err
			}
			cfg, err := s.engine.config(s.engine.store.version(), tx, 1)
			if err == nil && cfg.Organization.Name != name {
				t.Errorf("within: got %q, want %q", cfg.Organization.Name, name)
			}
			return errors.Join(err, outcome)
		})
		if (err == nil) != (outcome == nil) {
			t.Fatal(err)
		}
	}
	want := func(name string) {
		t.Helper()
		cfg, err := read(t.Context(), s.engine, 1, s.clock, func(t *txn) (*config, error) { return t.cfg, nil })
		if err != nil || cfg.Organization.Name != name {
			t.Fatalf("got %v, %v; want %q", cfg, err, name)
		}
	}
	change("Uno", nil)
	want("Uno")
	change("Dos", errUnavailable)
	want("Uno")
	change("Tres", nil)
	want("Tres")
}

// TestVersions shows which writes make a new version of the settings, and when.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := watch(newMemStore())
	defer s.Close()
	last := s.version()
	update := func(reason string, changes bool, fn func(Tx) error) {
		t.Helper()
		s.Update(t.Context(), fn)
		v := s.version()
		if v == unsettled || (v > last) != changes {
			t.Errorf("%s: version %d after %d", reason, v, last)
		}
		last = v
	}
	put := func(k key) func(Tx) error { return func(tx Tx) error { return tx.Put(k, []byte("x")) } }
	update("a movement", false, put(newKey('m')))
	update("a key", true, put(newKey('a')))
	update("a key is taken away", true, func(tx Tx) error { return tx.Delete(newKey('a')) })
	update("a configuration", true, put(newKey('o').byte('x')))
	update("one that is taken away", true, func(tx Tx) error { return tx.Delete(newKey('o').byte('x')) })
	update("one that is taken back", true, func(tx Tx) error { return errors.Join(put(newKey('a'))(tx), errUnavailable) })
	update("a movement", false, func(tx Tx) error { return tx.Delete(newKey('m')) })
	update("under way", true, func(tx Tx) error {
		before := s.version()
		err := put(newKey('a'))(tx)
		if v := s.version(); before == unsettled || v != unsettled {
			t.Errorf("version %d, then %d", before, v)
		}
		return errors.Join(err, tx.Delete(newKey('a')))
	})
}

// TestConfigOfView changes the configuration while a View is under way. The View
// still sees the old one.
func TestConfigOfView(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	name := func() string { return ask(s, func(t *txn) (string, error) { return t.cfg.Organization.Name, nil }) }
	name() // fills the cache
	before := s.engine.store.version()
	err := s.engine.store.View(t.Context(), func(tx Tx) error {
		s.apply([]byte(strings.Replace(string(setup{}.document()), "Café Luna", "Café Sol", 1)))
		if got := name(); got != "Café Sol" { // fills the cache for the new version
			t.Errorf("a later View sees %s", got)
		}
		for _, v := range []version{before, unsettled} {
			cfg, err := s.engine.config(v, tx, s.org)
			if err != nil || cfg.Organization.Name != "Café Luna" {
				t.Errorf("the View sees %v, %v", cfg, err)
			}
		}
		return nil
	})
	s.ok(err)
	if got := name(); got != "Café Sol" {
		t.Errorf("now it is %s", got)
	}
}

// TestKeysAmongChanges reads a key all the time while it changes: no read sees a
// state older than the last one acknowledged before it.
func TestKeysAmongChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	k, text := s.newKey(keyRequest{RateLimit: 1})
	var acknowledged atomic.Int64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acknowledged.Load()
				c, err := s.engine.authenticate(t.Context(), text, nil, s.clock)
				if err != nil || int64(c.key.RateLimit) < least {
					t.Errorf("got %v, %v after %d", c.key, err, least)
					return
				}
			}
		})
	}
	for i := range 500 {
		must(s, func(t *txn) (any, error) {
			changed := *k
			changed.RateLimit = 2 + i
			return nil, t.keys.save(keyHash(text), &changed)
		})
		acknowledged.Store(int64(2 + i))
	}
	close(stop)
	readers.Wait()
}

// TestNoticeTexts: the usual texts have only places that they may have, and filling in leaves none.
func TestNoticeTexts(t *testing.T) {
	t.Parallel()
	for i, rule := range noticeRules {
		if len(new(noticesDoc).texts()) <= i {
			t.Fatalf("%s has no text in a document", rule.kind)
		}
		known := map[string]string{}
		for _, place := range rule.places {
			known[place] = "«" + place + "»"
		}
		for _, text := range []string{rule.es, rule.en} {
			for _, m := range noticePlace.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(rule.places, m[1]) {
					t.Errorf("%s: no {%s}", rule.kind, m[1])
				}
			}
			if got := filledNotice(text, known); strings.ContainsAny(got, "{}") || !strings.Contains(got, "«nombre»") {
				t.Errorf("%s: %s", rule.kind, got)
			}
		}
	}
	var o organization
	if o.Settings.Language = "en-US"; !strings.HasPrefix(o.notice(noticeBirthday), "Happy") {
		t.Error(o.notice(noticeBirthday))
	}
	if o.Settings.Notices = (&noticesDoc{Birthday: "Felicidades, {nombre}."}); filledNotice(o.notice(noticeBirthday), map[string]string{"nombre": "Ana {saldo}"}) != "Felicidades, Ana {saldo}." {
		t.Error(o.notice(noticeBirthday))
	}
}

// versionedDocument is the n-th of several documents, each of which differs from all others.
func versionedDocument(n int) string {
	document := strings.Replace(string(demoDocument), `"threshold": 1000`, fmt.Sprintf(`"threshold": %d`, 1000+n), 1)
	if n%3 == 0 {
		document = strings.Replace(document, `"name": "Café Luna"`, fmt.Sprintf(`"name": "Café %d"`, n), 1)
	}
	return document
}

// TestVersionsExported: the export of each version is byte for byte what export gave after that
// document was applied, also through a server.
func TestVersionsExported(t *testing.T) {
	s := newTill(t)
	const most = 20
	var exports []string
	for n := range most {
		out := s.ok("apply -", versionedDocument(n))
		if want := fmt.Sprintf("cafe-luna: versión %d\n", n+1); !strings.HasSuffix(out, want) {
			t.Errorf("apply: %s, want %q at its end", out, want)
		}
		exports = append(exports, s.ok("export"))
	}
	if out := s.ok("apply -json -", versionedDocument(most-1)); !strings.Contains(out, fmt.Sprintf(`"version": %d`, most)) {
		t.Errorf("applied again: %s", out)
	}
	if out := s.ok("apply -dry-run -json -", versionedDocument(most)); !strings.Contains(out, fmt.Sprintf(`"version": %d`, most)) {
		t.Errorf("rehearsed: %s", out)
	}
	all := func(where string) {
		t.Helper()
		for i, want := range exports {
			same(t, fmt.Sprintf("version %d %s", i+1, where), s.ok(fmt.Sprintf("export -org cafe-luna -version %d", i+1)), want)
		}
		code, _, errs := s.run("export -version 21")
		if want := "sello: no hay versión 21 de la configuración de \"cafe-luna\": hay de la 1 a la 20\n"; code != 1 || errs != want {
			t.Errorf("%s: no such version: exit %d, %s", where, code, errs)
		}
	}
	all("of a file")
	server, _ := s.start("serve")
	all("through a server")
	server.stop()
	for line, want := range map[string]string{"export -version 0": "-version debe ser mayor a 0", "export -version -1": "valor no válido para -version", "export -version x": "valor no válido para -version"} {
		if code, _, errs := s.run(line); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
	if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	if out := s.ok("audit -action configuration.applied -limit 1"); !strings.Contains(out, "versión 20, ") {
		t.Errorf("the audit log: %s", out)
	}
	one := newTill(t)
	one.ok("apply -", versionedDocument(0))
	if code, _, errs := one.run("export -version 2"); code != 1 || !strings.HasSuffix(errs, `de "cafe-luna": solo hay la 1`+"\n") {
		t.Errorf("of one: exit %d, %s", code, errs)
	}
}

// TestVersionsKeep: what is kept of a version is its configuration, without secrets.
func TestVersionsKeep(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"webhooks":[{"key":"crm","url":"https://crm.example.com/x","events":["points.*"]}]`})
	secret := must(s, func(t *txn) ([]byte, error) { return t.webhooks.newSecret("crm") })
	s.apply(bytes.Replace(s.exportedDocument(), []byte("crm.example.com/x"), []byte("crm.example.com/y"), 1))
	for n := range s.config().Version {
		x := ask(s, func(t *txn) (*configVersion, error) { return versionAt(t.Tx, t.org, n+1) })
		cfg, err := x.config()
		s.ok(err)
		raw, err := cfg.stored()
		s.ok(err)
		for _, form := range []string{string(secret), base64.StdEncoding.EncodeToString(secret), "whsec_", "ecret"} {
			if strings.Contains(string(raw), form) {
				t.Errorf("version %d has a secret: %s", n+1, raw)
			}
		}
	}
}

// TestVersionsOfEntries: a document with many changes has several entries in the audit log, which
// all say its version; other entries say none.
func TestVersionsOfEntries(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	var rules []string
	for n := range 60 {
		rules = append(rules, fmt.Sprintf(`{"key":"r%d","name":"R%d","multiplier":2}`, n, n))
	}
	s.apply(setup{program: `"rules":[` + onePer1 + "," + strings.Join(rules, ",") + `]`}.document())
	s.apply(s.exportedDocument())
	found := map[uint64]int{}
	ask(s, func(t *txn) (any, error) {
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for seq := range n.Audit {
			e, err := t.audit.entry(seq + 1)
			if err != nil {
				return nil, err
			}
			shape, err := newAuditShape(t, e)
			if err != nil {
				return nil, err
			}
			if (shape.Version > 0) != (shape.Action == auditConfigurationApplied) {
				s.Errorf("entry %d, %s: version %d", e.Seq, e.Action, shape.Version)
			}
			found[shape.Version]++
		}
		return nil, nil
	})
	if len(found) < 2 || found[2] < 2 {
		t.Errorf("entries of each version: %v", found)
	}
}

// TestVerifyVersions checks what verify says of versions that are damaged, and of none that is right.
func TestVerifyVersions(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	document := s.exportedDocument()
	for n := range 3 {
		s.apply(bytes.Replace(document, []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
	}
	number := func(n uint64) func(*configVersion) bool { return func(x *configVersion) bool { return x.Number == n } }
	first := ask(s, func(t *txn) (*configVersion, error) { return versionAt(t.Tx, t.org, 1) })
	for _, test := range []struct {
		reason string
		of     func(*configVersion) bool
		change func(*configVersion) // nil: the version is taken away
		want   string
	}{
		{"a hole", number(2), nil, "versiones de la configuración: tras la 1 está la 3"},
		{"no last one", number(4), nil, "versiones de la configuración: "},
		{"what cannot be read", number(2), func(x *configVersion) { x.Packed = x.Packed[1:] }, "versión 2 de la configuración: no se puede leer, o es otra"},
		{"something behind it", number(2), func(x *configVersion) { x.Packed = append(x.Packed, 0) }, "versión 2 de la configuración: no se puede leer, o es otra"},
		{"another version", number(4), func(x *configVersion) { x.Packed = first.Packed }, "versión 4 de la configuración: no se puede leer, o es otra"},
		{"another configuration", number(4), func(x *configVersion) {
			cfg, err := x.config()
			s.ok(err)
			cfg.Organization.Name = "Otra"
			raw, err := cfg.stored()
			s.ok(err)
			x.Packed = deflated(raw)
		}, "versión 4 de la configuración: no es la configuración actual"},
		{"by another one", number(3), func(x *configVersion) { x.By.Actor = "otro" }, "versión 3 de la configuración: la entrada 3 de la auditoría no es la suya"},
		{"at another moment", number(3), func(x *configVersion) { x.AppliedAt++ }, "versión 3 de la configuración: la entrada 3 de la auditoría no es la suya"},
		{"the entry of another", number(3), func(x *configVersion) { x.AuditSeq-- }, "versión 3 de la configuración: la entrada 2 de la auditoría no es la suya"},
		{"without an entry", number(1), func(x *configVersion) { x.AuditSeq = 0 }, "versión 1 de la configuración: de antes de las versiones, y con fecha o autor"},
		{"nothing", func(*configVersion) bool { return false }, nil, ""},
	} {
		var changed memTx
		for _, e := range s.entries() {
			if tableConfigVersions.has(e.Key) {
				x, err := decodeEntry[configVersion](e)
				s.ok(err)
				if x.Number = uintIn(e.Key[5:]); test.of(x) {
					if test.change == nil {
						continue
					}
					test.change(x)
					e.Value = appendRecord(nil, x)
				}
			}
			changed = append(changed, e)
		}
		report, err := verify(changed, s.clock, nil)
		s.ok(err)
		if found := strings.Join(report.Problems, "\n"); !strings.Contains(found, test.want) || (found == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", test.reason, found, test.want)
		}
	}
}
