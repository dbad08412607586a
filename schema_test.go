package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// The files of testdata/files, each as sello left it at a commit:
//
//	schema3           8e579cf, closed
//	schema3-killed    8e579cf, killed, with its journals
//	schema3-651d5f6   651d5f6, closed: version 3 too, but with another layout of movements
//	schema4           closed
//	schema4-killed    killed, with its journals
//	schema5           6f72221, closed
//	schema5-killed    6f72221, killed, with its journals
//	schema6           a51d9d1, closed
//	schema6-killed    a51d9d1, killed, with its journals
//	schema7           c370383, closed
//	schema7-killed    c370383, killed, with its journals
//	schema8           b10fe81, closed
//	schema8-killed    b10fe81, killed, with its journals
//	schema9           2d4a86a, closed
//	schema9-killed    2d4a86a, killed, with its journals
//	schema10          closed
//	schema10-killed   killed, with its journals
//
// The files from 8 on have people of the panel with an open session, from 10 on also one that is locked, an open invitation, the customers of
// peopleOf8, and 60 more. balances.txt has each customer's balance and pending points in the file.

// fileMoment is shortly after the last write to the files, before anything becomes due.
var fileMoment = time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)

// unpackFile puts a file of testdata/files, with its journals, into a new directory.
func unpackFile(t *testing.T, name string) (path string) {
	t.Helper()
	return filepath.Join(disktest.Unpack(t, filepath.Join("testdata", "files", name)), "sello.db")
}

// filesBeside returns the contents of all files in path's directory, by name.
func filesBeside(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = string(readFile(t, filepath.Join(filepath.Dir(path), e.Name())))
	}
	return files
}

// heldEngine opens a file and returns its engine, whose clock stands at fileMoment.
func heldEngine(t *testing.T, path string) (*engine, *boltStore) {
	t.Helper()
	s, err := openBolt(path, disk.Options{MustExist: true, Dense: denseTables})
	if err != nil {
		t.Fatal(err)
	}
	return newEngine(s, func() time.Time { return fileMoment }, cryptoSeed), s
}

// checkFileHolds verifies a file and compares its balances with balances.txt.
func checkFileHolds(t *testing.T, path, name string) {
	t.Helper()
	e, s := heldEngine(t, path)
	defer s.Close()
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	v, err := a.verify(t.Context(), verifyRequest{})
	if err != nil || len(v.Problems) > 0 {
		t.Fatalf("verify: %v, %v", v, err)
	}
	for line := range strings.Lines(string(readFile(t, filepath.Join("testdata", "files", name, "balances.txt")))) {
		f := strings.Fields(line)
		cust, _ := parseID(f[0])
		got, err := read(t.Context(), e, 1, instantOf(fileMoment), func(t *txn) (string, error) {
			c, err := t.customer(cust)
			if err != nil {
				return "", err
			}
			a, err := t.account(c, t.cfg.programNumber(c.Program))
			return fmt.Sprint(f[0], " ", a.Balance, " ", a.Pending), err
		})
		if err != nil || got != strings.TrimSpace(line) {
			t.Errorf("%s, %v, want %s", got, err, line)
		}
	}
	if version := schemaOf(t, name); version >= 8 {
		checkPeopleOf8(t, e)
		checkSessionsOf8(t, e, version)
	}
	// The latest moment is that of the last write, which came before fileMoment.
	n, err := view(t.Context(), e.store, func(tx Tx) (*counters, error) { return get[counters](tx, orgKey('n', 1)) })
	if err != nil || n.Latest > instantOf(fileMoment) || n.Latest < instantOf(fileMoment.Add(-24*time.Hour)) {
		t.Errorf("latest moment %v, %v", n.Latest, err)
	}
}

// schemaOf is the schema of a file of testdata/files.
func schemaOf(t *testing.T, name string) int {
	t.Helper()
	number, _, _ := strings.Cut(strings.TrimPrefix(name, "schema"), "-")
	version, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// checkSessionsOf8 checks that sessions are as good as they were: one without a PIN, and in the
// files from 10 on one that is locked.
func checkSessionsOf8(t *testing.T, e *engine, version int) {
	t.Helper()
	open, locked := 0, 0
	err := e.store.View(t.Context(), func(tx Tx) error {
		for entry, err := range scan(tx, newKey('S'), false) {
			if err != nil {
				return err
			}
			s, err := decodeEntry[session](entry)
			if err != nil {
				return err
			}
			m, err := memberByHash(tx, [32]byte(entry.Key[1:]), s.SeenAt.add(time.Hour), e.ends)
			switch {
			case err != nil:
				return err
			case m != nil && m.locked:
				locked++
			case m != nil:
				open++
			}
		}
		return nil
	})
	want := 0
	if version >= 10 {
		want = 1
	}
	if err != nil || open != 1 || locked != want {
		t.Errorf("%d open sessions, %d locked, %v", open, locked, err)
	}
}

// peopleOf8 are customers in the files from 8 on, by what each is found, and when the last
// purchase of each happened that stands.
var peopleOf8 = []struct{ reason, search, last string }{
	{"the second of two came back", "o'brien", "2026-11-20T15:00:00.000Z"},
	{"the same one, as the name was written", "O’BRIEN", "2026-11-20T15:00:00.000Z"},
	{"the last came back in part", "федор", "2026-11-21T16:00:00.000Z"},
	{"the first of two came back, and the name has two blanks", "ana maria", "2026-11-20T17:00:00.000Z"},
	{"both came back", "todo devuelto", ""},
	{"the last of the other came back before a merge", "gemela", "2026-11-18T18:00:00.000Z"},
	{"the last of the other came back after a merge", "par uno", "2026-11-16T18:00:00.000Z"},
}

// checkPeopleOf8 looks for peopleOf8 in an engine's file, and for who uses the panel.
func checkPeopleOf8(t *testing.T, e *engine) {
	t.Helper()
	_, err := read(t.Context(), e, 1, instantOf(fileMoment), func(tx *txn) (any, error) {
		for _, test := range peopleOf8 {
			numbers, total, err := tx.search(test.search, notHidden, page{1, 100})
			if err != nil || total != 1 {
				t.Errorf("%s: %q finds %d, %v", test.reason, test.search, total, err)
				continue
			}
			c, err := tx.customerAt(numbers[0])
			if err != nil {
				return nil, err
			}
			if last := string(c.LastSaleAt.appendJSON(nil)); last != `"`+test.last+`"` && (test.last != "" || c.LastSaleAt != 0) {
				t.Errorf("%s: the last purchase was at %s, want %s", test.reason, last, test.last)
			}
		}
		if indexed, err := tx.indexed(); err != nil || indexed != 64 {
			t.Errorf("%d customers are in the search index, %v", indexed, err)
		}
		users, err := usersAfter(tx.Tx, "", 10)
		if err != nil || len(users) != 1 {
			t.Errorf("%d users, %v", len(users), err)
		}
		open, err := tx.invitations()
		if err != nil || len(open) != 1 {
			t.Errorf("%d open invitations, %v", len(open), err)
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSchemaFiles opens a file of each schema.
func TestSchemaFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		from int
	}{{"schema3", 3}, {"schema3-killed", 3}, {"schema4", 4}, {"schema4-killed", 4}, {"schema5", 5}, {"schema5-killed", 5}, {"schema6", 6}, {"schema6-killed", 6}, {"schema7", 7}, {"schema7-killed", 7}, {"schema8", 8}, {"schema8-killed", 8}, {"schema9", 9}, {"schema9-killed", 9}, {"schema10", 10}, {"schema10-killed", 10}} {
		t.Run(test.name, func(t *testing.T) {
			path := unpackFile(t, test.name)
			before := filesBeside(t, path)
			e, s := heldEngine(t, path)
			err := e.open(t.Context())
			if old, ok := errors.AsType[*schemaError](err); ok != (test.from < schemaVersion) || ok && old.cause != "" || !ok && err != nil {
				t.Fatal(err)
			}
			if err := s.leave(); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(filesBeside(t, path), before) {
				t.Error("changed before it was migrated")
			}
			shop := &till{t, filepath.Dir(path), map[string]string{"SELLO_DB": path}}
			shop.ok("migrate")
			checkFileHolds(t, path, test.name)
			copied := fmt.Sprintf("%s.schema%d", path, test.from)
			if _, err := os.Stat(copied); (err == nil) != (test.from < schemaVersion) {
				t.Fatalf("copy: %v", err)
			}
			if test.from == schemaVersion {
				return
			}
			// The copy is of the old schema: it migrates as well.
			second := filepath.Join(t.TempDir(), "sello.db")
			writeFile(t, second, readFile(t, copied))
			again := &till{t, filepath.Dir(second), map[string]string{"SELLO_DB": second}}
			again.ok("migrate -no-copy")
			checkFileHolds(t, second, test.name)
			if left := listDir(t, second); left != "sello.db" {
				t.Errorf("without a copy there is %s", left)
			}
		})
	}
}

// TestSchemaServe lets a server migrate a file. The server logs the migration and does not
// overwrite an earlier copy.
func TestSchemaServe(t *testing.T) {
	t.Parallel()
	path := unpackFile(t, "schema3-killed")
	writeFile(t, path+".schema3", []byte("of another time"))
	s := &till{t, filepath.Dir(path), map[string]string{"SELLO_DB": path}}
	r, _ := s.start("serve")
	if code := r.stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.log)
	}
	if !strings.Contains(r.log.String(), `"msg":"migrated","from":3,"to":10,"copy":"`+path+`.schema3-2`) {
		t.Errorf("log:\n%s", r.log)
	}
	if got := string(readFile(t, path+".schema3")); got != "of another time" {
		t.Errorf("the copy of another time is now %d bytes", len(got))
	}
	checkFileHolds(t, path, "schema3-killed")
}

// TestSchemaRefused runs every command on files of unknown versions, and on files with a
// known version's number but another layout. Each refuses in one line and changes nothing.
func TestSchemaRefused(t *testing.T) {
	t.Parallel()
	numbered := func(version uint64) func(Tx) error {
		return func(tx Tx) error { return putUint(tx, newKey('v'), version) }
	}
	for _, test := range []struct {
		name, file string
		change     func(Tx) error
		want       string
	}{
		{"movements of 651d5f6", "schema3-651d5f6", nil, "con otra disposición de los datos"},
		{"sets of ee6a259, many", "schema3", oldSet(make([]byte, 512)), "con otra disposición de los datos"},
		{"sets of ee6a259, few", "schema3", oldSet([]byte{0, 3, 0x0f, 0xff}), "con otra disposición de los datos"},
		{"sets of ee6a259, that look like today's", "schema3", oldSet([]byte{0, 200}), "con otra disposición de los datos"},
		{"newer", "schema4", numbered(schemaVersion + 1), "lo escribió un sello más nuevo"},
		{"older", "schema3", numbered(2), "es anterior a la primera publicación"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := unpackFile(t, test.file)
			if test.change != nil {
				s, err := openBolt(path, disk.Options{})
				if err == nil {
					err = errors.Join(s.Update(t.Context(), test.change), s.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			before := filesBeside(t, path)
			s := &till{t, filepath.Dir(path), map[string]string{"SELLO_DB": path}}
			document := filepath.Join(t.TempDir(), "luna.json")
			writeFile(t, document, demoDocument)
			for _, line := range []string{
				"serve -addr 127.0.0.1:0", "demo -addr 127.0.0.1:0 -db " + path, "migrate", "verify", "export -org cafe-luna",
				"apply " + document, "key list -org cafe-luna", "backup " + filepath.Join(t.TempDir(), "copy.db"),
			} {
				want := test.want
				if before := strings.Fields(line)[0]; test.file != "schema4" && test.want[:3] == "con" &&
					!slices.Contains([]string{"serve", "demo", "migrate"}, before) {
					want = "conviértelo con sello migrate" // and sello migrate gives the cause
				}
				ctx, cancel := context.WithTimeout(t.Context(), forever) // stops a server that starts after all
				var stdout, stderr bytes.Buffer
				code := run(ctx, strings.Fields(line), environment{s.getenv, s.names, strings.NewReader(""), &stdout, &stderr})
				cancel()
				out, errs := stdout.String(), stderr.String()
				if code != 1 || out != "" || !strings.Contains(errs, want) || faultIn(code, errs) != "" {
					t.Errorf("sello %s: exit %d, %q, %q, want %s", line, code, out, errs, want)
				}
			}
			if !maps.Equal(filesBeside(t, path), before) {
				t.Errorf("changed: there is %s", listDir(t, path))
			}
		})
	}
}

// oldSet puts a block of the first customers who bought on a day, as larger blocks
// looked.
func oldSet(value []byte) func(Tx) error {
	if len(value) == 512 {
		value[1] = 0xff
	}
	return func(tx Tx) error {
		for e, err := range scan(tx, orgKey('z', 1), false) {
			if err != nil {
				return err
			}
			return tx.Put(slices.Clone(e.Key), value)
		}
		return errRecord
	}
}

// TestSchemaTells: after a migration the feed tells of vouchers and points that were there
// before, when they expire and before.
func TestSchemaTells(t *testing.T) {
	t.Parallel()
	path := unpackFile(t, "schema6")
	e, s := heldEngine(t, path)
	defer s.Close()
	if _, err := e.migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	now := fileMoment
	e.clock = heldClock(func() time.Time { return now })
	got := map[string]int{}
	for range 70 { // until 28 December
		if err := e.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(oneDay / 2)
	}
	_, err := read(t.Context(), e, 1, instantOf(now), func(t *txn) (any, error) {
		for e, err := range t.eventsFrom(1) {
			if err != nil {
				return nil, err
			}
			got[eventKinds[e.Kind].name]++
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A credit of each of 12 customers expires in December, also of the erased and the merged one.
	want := map[string]int{"points.expiring": 12, "points.expired": 12, "redemption.expired": 7, "points.available": 15}
	same(t, "events", got, want)
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	if v, err := a.verify(t.Context(), verifyRequest{}); err != nil || len(v.Problems) > 0 {
		t.Errorf("verify: %v, %v", v, err)
	}
}

// TestSchemaSteps stops after each transaction of a migration. From 3 these are its begin, a
// step of redemptions, one of sales, one of accounts, and each organization; from 8 its
// begin, a block of the search index, each of four customers, and its end; from 9 its begin
// and its end. The next attempt
// goes on from there and makes no other copy. The file is migrated once.
func TestSchemaSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		from  uint64
		stops int
	}{{"schema3-killed", 3, 5}, {"schema8-killed", 8, 6}, {"schema9-killed", 9, 1}} {
		t.Run(test.name, func(t *testing.T) {
			path := unpackFile(t, test.name)
			e, s := heldEngine(t, path)
			stopped := errors.New("stopped")
			for stops := 0; ; stops++ {
				copies := 0
				steps := 0
				e.store.Store = guardedStore{s, func() error {
					if steps++; steps > 1 {
						return stopped
					}
					return nil
				}}
				done, err := e.migrateBy(t.Context(), 1, func(uint64) (string, error) { copies++; return "copy", nil })
				if copies != 1 && stops == 0 || copies != 0 && stops > 0 {
					t.Errorf("stop %d: %d copies", stops, copies)
				}
				if err == nil {
					if stops != test.stops || done.From != test.from || done.To != schemaVersion {
						t.Errorf("done after %d stops: %+v", stops, done)
					}
					break
				}
				if !errors.Is(err, stopped) {
					t.Fatal(err)
				}
				if open, ok := errors.AsType[*schemaError](e.open(t.Context())); !ok || open.version != test.from || open.cause != "" {
					t.Errorf("half way: %v", open)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			checkFileHolds(t, path, test.name)
		})
	}
}

// TestSchemaBegunEarlier goes on with a migration that an earlier sello began. From then on
// that sello refuses the file.
func TestSchemaBegunEarlier(t *testing.T) {
	t.Parallel()
	path := unpackFile(t, "schema7")
	e, s := heldEngine(t, path)
	err := s.Update(t.Context(), func(tx Tx) error { return tx.Put(newKey('v'), key(nil).u64(8).u64(7).u32(0)) })
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	var state schemaState
	e.store.Store = guardedStore{s, func() error {
		var err error
		if state, err = view(t.Context(), e.store, readSchema); err != nil || state.version == schemaVersion {
			return errors.Join(stopped, err)
		}
		return nil
	}}
	copied := false
	_, err = e.migrate(t.Context(), func(uint64) (string, error) { copied = true; return "copy", nil })
	if !errors.Is(err, stopped) || copied || state.from != 7 {
		t.Errorf("%v, copied %t, %+v", err, copied, state)
	}
	e.store.Store = s
	if _, err = e.migrate(t.Context(), nil); err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	checkFileHolds(t, path, "schema7")
}

// TestSchemaUnreadable: a migration does not begin where it could not read what it needs.
func TestSchemaUnreadable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		prefix key // of an entry that is spoiled
	}{
		{"a sale", orgKey('t', 1)},
		{"a customer", orgKey('c', 1)},
		{"an entry of the list of customers", orgKey('l', 1).byte('c')},
		{"a merge", orgKey('J', 1)},
	} {
		t.Run(test.reason, func(t *testing.T) {
			path := unpackFile(t, "schema8")
			e, s := heldEngine(t, path)
			err := s.Update(t.Context(), func(tx Tx) error {
				for entry, err := range scan(tx, test.prefix, false) {
					if err != nil {
						return err
					}
					return tx.Put(slices.Clone(entry.Key), []byte{0xff})
				}
				return errRecord
			})
			if err != nil {
				t.Fatal(err)
			}
			copied := false
			_, err = e.migrate(t.Context(), func(uint64) (string, error) { copied = true; return "copy", nil })
			state, stateErr := view(t.Context(), e.store, readSchema)
			if !errors.Is(err, errRecord) || copied || stateErr != nil || state != (schemaState{version: 8}) {
				t.Errorf("%v, copied %t, %+v, %v", err, copied, state, stateErr)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			before := filesBeside(t, path)
			shop := &till{t, filepath.Dir(path), map[string]string{"SELLO_DB": path}}
			if code, out, told := shop.run("migrate"); code != 1 || out != "" || !strings.Contains(told, "archivo dañado: un registro no se puede leer, tabla ") {
				t.Errorf("sello migrate: exit %d, %q, %q", code, out, told)
			}
			if !maps.Equal(filesBeside(t, path), before) {
				t.Errorf("changed: there is %s", listDir(t, path))
			}
		})
	}
}

// TestSchemaKilled kills sello at random moments of a migration, until one ends.
func TestSchemaKilled(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := 0
	for i := range 4 * *moreHistories {
		from := []string{"3", "8"}[i%2]
		name := "schema" + from + "-killed"
		path := unpackFile(t, name)
		for wait := 1; ; wait++ {
			cmd := selloCommand(t, "migrate", "-db", path)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(wait) * int64(4*time.Millisecond))))
			cmd.Process.Kill()
			err := cmd.Wait()
			if err == nil {
				break
			}
			if cmd.ProcessState.Exited() {
				t.Fatalf("after %d kills: %v: %s", killed, err, &said)
			}
			killed++
		}
		checkFileHolds(t, path, name)
		if copies, _ := filepath.Glob(path + ".schema" + from + "*"); len(copies) == 0 {
			t.Error("there is no copy")
		}
	}
	t.Logf("killed %d times", killed)
}
