package main

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
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
