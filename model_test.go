package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"sello/internal/blockset"
	"sello/internal/ngram"
)

// TestTables checks that no two tables have the same name or Spanish words, and that
// tables of one letter agree on the traits that are looked up by letter alone.
func TestTables(t *testing.T) {
	t.Parallel()
	for at, declared := range tables {
		for _, other := range tables[at+1:] {
			if declared.name == other.name || declared.words == other.words {
				t.Errorf("%q and %q have one name", declared.shape, other.shape)
			}
			if differ := declared.traits ^ other.traits; declared.shape[0] == other.shape[0] && differ&(dense|setting) != 0 {
				t.Errorf("%q and %q: one is dense or of settings", declared.shape, other.shape)
			}
		}
		if compared := declared.traits & (byContent | byEntry | byCount); declared.words == "" || bits.OnesCount16(uint16(compared)) > 1 {
			t.Errorf("%q has no words, or is compared in two ways", declared.shape)
		}
	}
}

// TestUnreadable checks that the error for a record that cannot be read names its
// table and key, without text that clients sent.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key         key
		want, words string // what follows the text common to all
	}{
		{orgKey('m', 1).u64(7), ": movement 6d000000010000000000000007", `, tabla "movimientos", clave 6d000000010000000000000007`},
		{identityKey(kindEmail, "ana@example.com").u32(1), ": identity 7065…", `, tabla "identidades", clave 7065…`},
		{orgKey('g', 2).u32(1).text("ana"), ": search index 670000000200000001…", `, tabla "índice de búsqueda", clave 670000000200000001…`},
		{orgKey('m', 1).u32(7), "", ""},
	} {
		err := fmt.Errorf("a.db: %w", unreadable(test.key))
		if want := "a.db: a stored record cannot be read" + test.want; err.Error() != want || !errors.Is(err, errRecord) {
			t.Errorf("%v, want %s", err, want)
		}
		want := "a.db: datos dañados: un registro no se puede leer" + test.words + ": restaura una copia de seguridad"
		if got := inWords(err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnreadableRecords checks that verify names a record that cannot be read.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	all := s.entries()
	for i, e := range all {
		of, _ := tableOf(e.Key)
		if !slices.Contains([]table{tableProfiles, tableAccounts, tableMovements, tableSales, tableRedemptions, tableCounters}, of) {
			continue
		}
		damaged := slices.Clone(all)
		damaged[i].Value = []byte{recordVersion + 1}
		_, err := verifyWith(s.engine.sizes, damaged, s.clock, nil)
		if want := fmt.Sprintf("%s %x", tables[of].name, e.Key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is damaged: %v", want, err)
		}
	}
}

// TestChain appends to a chain and to a slice, and compares where they have each
// record. In a chain of n, finding one takes at most the square of log₂ n steps.
func TestChain(t *testing.T) {
	t.Parallel()
	var (
		c     chain
		seqs  []uint64 // record n is at seqs[n-1]
		links = map[uint64]link{}
		rnd   = rand.New(rand.NewPCG(1, 0))
		seq   uint64
	)
	if c.last() != 0 {
		t.Errorf("an empty chain ends at %d", c.last())
	}
	steps := 0
	linkAt := func(seq uint64) (link, error) {
		steps++
		l, ok := links[seq]
		if !ok {
			t.Fatalf("a link leads to %d, where there is no record", seq)
		}
		return l, nil
	}
	for n := uint64(1); n <= 5000; n++ {
		seq += 1 + rnd.Uint64N(9) // others' records lie between
		l := c.append(seq)
		seqs, links[seq] = append(seqs, seq), l
		switch {
		case c.N != n || l.N != n:
			t.Fatalf("record %d of %d has number %d", n, c.N, l.N)
		case c.last() != seq:
			t.Fatalf("the chain ends at %d, want %d", c.last(), seq)
		case n > 1 && l.Prev != seqs[n-2], n == 1 && l.Prev != 0:
			t.Fatalf("before record %d is %d", n, l.Prev)
		case n&(n-1) != 0 && l.Jump != seqs[n&(n-1)-1], n&(n-1) == 0 && l.Jump != 0:
			t.Fatalf("record %d jumps to %d", n, l.Jump)
		case len(c.Path) != bits.OnesCount64(n):
			t.Fatalf("a chain of %d remembers %d places", n, len(c.Path))
		}
		log := bits.Len64(n)
		targets := []uint64{1, n, n/2 + 1, 1 + rnd.Uint64N(n), 1 + rnd.Uint64N(n)}
		if n%1000 < 2 {
			for target := range n {
				targets = append(targets, target+1)
			}
		}
		for _, target := range targets {
			steps = 0
			got, err := c.seek(target, linkAt)
			if err != nil || got != seqs[target-1] {
				t.Fatalf("record %d of %d: found at %d (%v), want %d", target, n, got, err, seqs[target-1])
			}
			if steps > log*log {
				t.Fatalf("record %d of %d: %d steps, want at most %d", target, n, steps, log*log)
			}
		}
	}
	wantReadAgain(t, c, seq)
}

// wantReadAgain encodes a chain that ends at seq, decodes it, and appends to both.
func wantReadAgain(t *testing.T, c chain, seq uint64) {
	t.Helper()
	var again chain
	if err := decodeInto(appendRecord(nil, &c), &again); err != nil {
		t.Fatal(err)
	}
	same(t, "read again", again, c)
	if l := again.append(seq + 1); l != c.append(seq+1) {
		t.Error("a chain that was read again goes on differently")
	}
}

// TestPages shows which records a page of a list holds, counted from the
// oldest.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		page        page
		total       uint64
		first, last uint64
		ok          bool
	}{
		{page{1, 20}, 0, 0, 0, false},
		{page{1, 20}, 1, 1, 1, true},
		{page{1, 20}, 20, 20, 1, true},
		{page{1, 20}, 45, 45, 26, true},
		{page{2, 20}, 45, 25, 6, true},
		{page{3, 20}, 45, 5, 1, true},
		{page{4, 20}, 45, 0, 0, false},
		{page{45, 1}, 45, 1, 1, true},
		{page{46, 1}, 45, 0, 0, false},
		{page{1 << 40, 100}, 45, 0, 0, false},
		{page{1 << 62, 100}, 45, 0, 0, false}, // the product overflows
		{page{1<<63 - 1, 100}, 1 << 40, 0, 0, false},
	} {
		first, last, ok := test.page.span(test.total)
		if first != test.first || last != test.last || ok != test.ok {
			t.Errorf("page %+v of %d: %d to %d (%t), want %d to %d (%t)", test.page, test.total, first, last, ok, test.first, test.last, test.ok)
		}
	}
}

// TestLayout compares the stored form of everything with testdata/layout.txt: the bytes
// of each kind of record and the fields left out of them, the sizes of blocks, and all
// keys of a small shop with a digest of each value. If it fails, the bytes in files have
// changed:
//
//   - If the layout changed, raise schemaVersion and write a migration. -update then
//     rewrites layout.txt.
//   - If only a rule changed, so that the same shop has other values, remove
//     layout.txt, run with -update, and look at what differs.
func TestLayout(t *testing.T) {
	path := filepath.Join("testdata", "layout.txt")
	got := layoutText(t)
	kept, err := os.ReadFile(path)
	number, _, _ := strings.Cut(string(kept), "\n")
	if *updateGolden && (err != nil || number != fmt.Sprint("schema ", schemaVersion)) {
		writeFile(t, path, []byte(got))
		return
	}
	if got == string(kept) {
		return
	}
	t.Errorf("the layout is not that of schema %d in %s (%v): see the comment on TestLayout", schemaVersion, path, err)
	was := strings.Split(string(kept), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(was) || was[i] != line {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

func allRecords() []fielded {
	return []fielded{
		new(account), new(accountHead), new(attribute), new(auditChange), new(auditEntry), new(basis), new(birthdayTurn), new(card), new(chain), new(configVersion), new(consent), new(counters),
		new(creator), new(customer), new(dayBasis), new(device), new(effect), new(event), new(eventRecord), new(expiring), new(gift), new(givenVoucher), new(handout), new(historicPoints), new(hold),
		new(identity), new(idleness), new(invitation), new(item), new(label), new(line), new(link), new(lot), new(membership), new(movement), new(openHold), new(otherShare),
		new(passwordHash), new(pendingRef), new(preEnrolment), new(purse), new(redemption), new(replay), new(replaySlice), new(replaySlices), new(ruleBudget), new(ruleCount), new(ruleLife), new(ruleShare), new(ruleUse),
		new(sale), new(salePayment), new(saleShare), new(savedUsage), new(secondFactor), new(session), new(shareReasons), new(tally), new(ticket), new(ticketSigner), new(typeCount), new(undoRequest), new(unmetRule), new(use), new(user),
		new(webhookSecret), new(webhookState), new(writtenNotice),
	}
}

// TestLayoutRecords checks that allRecords lists every type with a method fields.
func TestLayoutRecords(t *testing.T) {
	t.Parallel()
	var have, want []string
	for _, v := range allRecords() {
		have = append(have, reflect.TypeOf(v).Elem().Name())
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lister := regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)\) fields\(\w+ \*coder\)`)
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			for _, m := range lister.FindAllStringSubmatch(readText(t, name), -1) {
				want = append(want, m[1])
			}
		}
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the layout has records %v, and the source %v", have, want)
	}
}

func layoutText(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema %d\n", schemaVersion)
	for _, v := range allRecords() {
		kept := layoutOf(t, v, false)
		fmt.Fprintf(&b, "%T %s\n", v, kept)
		if apart := layoutOf(t, v, true); apart != kept {
			fmt.Fprintf(&b, "%T apart %s\n", v, apart)
		}
	}
	s := usualSizes()
	fmt.Fprintf(&b, "sizes {few:%+v merged:%d}, set %d, gram %d %d, log %d %d\n", s.inline, s.merged, blockset.Block, ngram.Block, gramGroup, logBlock, logEntry)
	for e, err := range sampleShop(t).Scan(nil, nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(e.Value)
		fmt.Fprintf(&b, "%c %x %x\n", e.Key[0], e.Key[1:], sum[:4])
	}
	return b.String()
}

// layoutOf fills a record, writes it and reads it back. It returns the record's bytes in
// hexadecimal and the fields left out of them. apart is the value of all its flags, such
// as account.LotsApart, which says that the lots have entries of their own.
func layoutOf(t *testing.T, v fielded, apart bool) string {
	n := 0
	fill(reflect.ValueOf(v).Elem(), &n, apart)
	written := appendRecord(nil, v)
	again := reflect.New(reflect.TypeOf(v).Elem()).Interface().(fielded)
	if err := decodeInto(written, again); err != nil {
		t.Errorf("%T: %v", v, err)
	}
	same(t, fmt.Sprintf("%T written, read and written", v), appendRecord(nil, again), written)
	return fmt.Sprintf("%x%s", written, leftOut(reflect.ValueOf(v).Elem(), reflect.ValueOf(again).Elem()))
}

// leftOut names the fields of a record that did not survive writing and reading.
func leftOut(was, read reflect.Value) (names string) {
	for i := range was.NumField() {
		if !reflect.DeepEqual(open(was.Field(i)).Interface(), open(read.Field(i)).Interface()) {
			names += " -" + was.Type().Field(i).Name
		}
	}
	return names
}

// open makes an unexported field readable and settable.
func open(v reflect.Value) reflect.Value {
	if v.CanSet() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// fill gives each field a different value, counting up from n, and each bool the value flags.
func fill(v reflect.Value, n *int, flags bool) {
	v = open(v)
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(flags)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
		if v.Type() == reflect.TypeFor[eventKind]() {
			v.SetUint(uint64(eventTierChanged)) // has texts
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*salePayment]() { // others are no part of a record
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), n, flags)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n, flags)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n, flags)
		}
		fillWords(v.Addr().Interface())
	}
}

// fillWords gives a record words where its file has a byte for each.
func fillWords(v any) {
	switch v := v.(type) {
	case *creator:
		v.Type = byCommand
	case *movement:
		v.Category = categoryMerge
	case *sale:
		v.Type, v.Source = typeReturn, sourceImport
	case *customer:
		v.Status = statusErased
	case *hold:
		v.State = holdExpired
	case *ticket:
		v.State = ticketRegistered
	case *writtenNotice:
		v.Kind = noticeAlmost
	}
}

// sampleShop returns all entries of a shop where a little of everything has happened.
func sampleShop(t *testing.T) Tx {
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.sample(5, 60)
	return s.entries()
}

// sample lets a little of everything happen in a shop without an organization, with so many
// customers in so many days.
func (s *shop) sample(customers, days int) {
	s.apply(demoDocument)
	_, err := write(s.Context(), s.engine, 1, s.clock, func(t *txn) (any, error) {
		if err := makeUp(1, customers, days, t.now, t.cfg.zone, []id{{1}}).write(t, func(float64) {}); err != nil {
			return nil, err
		}
		if _, _, err := t.keys.create(keyRequest{Name: "prueba", DailyLimit: 5}); err != nil {
			return nil, err
		}
		return nil, t.replays.keep([]retryKey{{}}, 201, []byte(`{"id":"x"}`))
	})
	s.ok(err)
	s.person("ana@ejemplo.mx", roleOwner)
	paid, err := s.sell(newSale{Customer: s.customer("paga"), Total: dec("350"), Pay: &newPayment{Points: dec("50")}})
	s.ok(err)
	s.bring(paid, "116.67")
	for _, end := range []string{holdHeld, holdCaptured, holdReleased} {
		must(s, func(t *txn) (any, error) {
			h, err := t.points.place(newHold{Customer: paid.Customer, Amount: dec("2"), Seconds: usualHold})
			switch {
			case err == nil && end == holdCaptured:
				h, err = t.points.capture(h.ID, dec("1.5"))
			case err == nil && end == holdReleased:
				h, err = t.points.release(h.ID)
			}
			return h, err
		})
	}
	s.useTickets(paid.Customer)
}
