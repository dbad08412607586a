package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
	"sello/internal/wallclock"
)

// The directory testdata/files has a file of each released version, and one that was
// killed, with its journals: schema11, schema11-killed. In both are two organizations, and
// people of the panel with an open session, a locked one and an open invitation.
// balances.txt has the balance and the pending points of each customer.
//
// Those of this version are made by
//
//	rm -r testdata/files/schema11*; go test -run TestSchemaFiles -update .
//
// but never again once it is released: they are then what people have.

// schemaFiles lists the files.
func schemaFiles() (names []string) {
	for version := schemaVersion - len(theMigrations()); version <= schemaVersion; version++ {
		names = append(names, fmt.Sprint("schema", version), fmt.Sprint("schema", version, "-killed"))
	}
	return names
}

// thisSchema is a killed file of this version.
var thisSchema = fmt.Sprint("schema", schemaVersion, "-killed")

// fileMoment is shortly after the last write to the files, before anything becomes due.
var fileMoment = time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)

// unpackFile puts a file of testdata/files, with its journals, into a new directory.
func unpackFile(t *testing.T, name string) (path string) {
	t.Helper()
	return filepath.Join(disktest.Unpack(t, filepath.Join("testdata", "files", name)), "sello.db")
}

// makeSchemaFile makes a file of this version in testdata/files.
func makeSchemaFile(t *testing.T, name string) {
	path := filepath.Join(t.TempDir(), "sello.db")
	open := func(at time.Time) (*shop, *boltStore) {
		store, err := openBolt(path, disk.Options{Dense: denseTables})
		if err != nil {
			t.Fatal(err)
		}
		return newShopOn(t, store, at.Format(time.RFC3339)), store
	}
	s, store := open(fileMoment.Add(-3 * time.Hour))
	s.sample(40, 120)
	s.ok(store.Close())
	s, store = open(fileMoment.Add(-time.Hour)) // a killed one has the rest in its journals
	s.ids.Store(1 << 32)
	s.merged(s.customer("eva"), s.customer("lía"))
	gone := s.customer("noé")
	must(s, func(t *txn) (any, error) { return t.merges.erase(gone) })
	s.enters("ana@ejemplo.mx")
	locked, _ := s.enters("ana@ejemplo.mx")
	h, err := newPIN("135790", seed{})
	s.ok(err)
	must(s, func(t *txn) (any, error) { return nil, t.people.choosePIN(locked, s.engine.sessionLimits, h, true) })
	s.invited("luz@ejemplo.mx", roleViewer)
	s.card(s.customer("iris"), 0)
	s.joining(preEnrolment{FirstName: "Sol", Phone: "+525512349999"})
	s.apply(bytes.Replace(setup{program: `"rules":[` + onePer1 + `]`}.document(), []byte("cafe-luna"), []byte("te-sol"), 1))
	s.org = 2
	s.buy(s.customer("sol"), "12.50")
	end := store.Close
	if strings.HasSuffix(name, "-killed") {
		end = store.leave
	}
	text := balances(t, s.engine)
	s.ok(end())
	to := filepath.Join("testdata", "files", name)
	s.ok(os.MkdirAll(to, 0o755))
	writeFile(t, filepath.Join(to, "balances.txt"), []byte(text))
	for file, content := range filesBeside(t, path) {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		s.ok(err)
		_, err = z.Write([]byte(content))
		s.ok(errors.Join(err, z.Close()))
		writeFile(t, filepath.Join(to, file+".gz"), packed.Bytes())
	}
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

// heldEngine opens a file and returns its engine, whose clock stands at fileMoment, and for which
// nothing is random: it migrates each time alike.
func heldEngine(t *testing.T, path string) (*engine, *boltStore) {
	t.Helper()
	s, err := openBolt(path, disk.Options{MustExist: true, Dense: denseTables})
	if err != nil {
		t.Fatal(err)
	}
	return newEngine(s, func() time.Time { return fileMoment }, func() seed { return seed{} }), s
}

// balances returns what balances.txt has, a line for each customer.
func balances(t *testing.T, e *engine) (text string) {
	t.Helper()
	organizations, err := viewStore(t.Context(), e.store, func(tx Tx) (uint64, error) {
		n, _, err := getUint(tx, newKey('o').byte('n'))
		return n, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for org := range uint32(organizations) {
		_, err := read(t.Context(), e, org+1, instantOf(fileMoment), func(t *txn) (any, error) {
			n, err := t.count()
			if err != nil {
				return nil, err
			}
			for c, err := range t.customers.between(1, n.Customers) {
				if err != nil {
					return nil, err
				}
				a, err := t.points.account(c, t.cfg.programNumber(c.Program))
				if err != nil {
					return nil, err
				}
				text += fmt.Sprintln(t.org, c.ID, a.Balance, a.Pending)
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// checkFileHolds verifies a file, and looks for what it had when it was made.
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
	same(t, "balances", balances(t, e), string(readFile(t, filepath.Join("testdata", "files", name, "balances.txt"))))
	open, locked, invited := 0, 0, 0
	_, err = read(t.Context(), e, 1, instantOf(fileMoment), func(tx *txn) (any, error) {
		for entry, err := range scan(tx.Tx, newKey('S'), false) {
			if err != nil {
				return nil, err
			}
			m, err := memberByHash(tx.Tx, [32]byte(entry.Key[1:]), instantOf(fileMoment.Add(-time.Hour)), e.sessionLimits)
			switch {
			case err != nil:
				return nil, err
			case m != nil && m.locked:
				locked++
			case m != nil:
				open++
			}
		}
		list, err := tx.people.invitations()
		invited = len(list)
		return nil, err
	})
	if err != nil || open != 1 || locked != 1 || invited != 1 {
		t.Errorf("%d open sessions, %d locked, %d open invitations, %v", open, locked, invited, err)
	}
	cards, err := viewStore(t.Context(), s, func(tx Tx) (n int, err error) {
		for _, of := range []table{tableCards, tableJoins} {
			for _, err := range scan(tx, of.fixed(), false) {
				if err != nil {
					return 0, err
				}
				n++
			}
		}
		return n, nil
	})
	if want := map[bool]int{true: 2}[name >= "schema14"]; err != nil || cards != want {
		t.Errorf("%d cards and pre-enrolments, want %d, %v", cards, want, err)
	}
	// The latest moment is that of the last write, which came before fileMoment.
	n, err := viewStore(t.Context(), e.store, func(tx Tx) (*counters, error) { return get[counters](tx, orgKey('n', 1)) })
	if err != nil || n.Latest > instantOf(fileMoment) || n.Latest < instantOf(fileMoment.Add(-24*time.Hour)) {
		t.Errorf("latest moment %v, %v", n.Latest, err)
	}
}

// TestSchemaFiles opens a file of each released version, which is migrated if it is of an
// earlier one. With -update it makes those of this version that are missing.
func TestSchemaFiles(t *testing.T) {
	t.Parallel()
	for _, name := range schemaFiles() {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("testdata", "files", name)); err != nil && *updateGolden {
				makeSchemaFile(t, name)
			}
			path := unpackFile(t, name)
			before := filesBeside(t, path)
			e, s := heldEngine(t, path)
			state, err := viewStore(t.Context(), s, readSchema)
			if err != nil || !strings.HasPrefix(name+"-", fmt.Sprint("schema", state.version, "-")) {
				t.Fatal(state, err)
			}
			err = e.open(t.Context())
			if old, ok := errors.AsType[*schemaError](err); ok != (state.version < schemaVersion) || ok && old.cause != "" || !ok && err != nil {
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
			checkFileHolds(t, path, name)
			if state.version == 11 { // which kept no versions
				for _, org := range []string{"cafe-luna", "te-sol"} {
					same(t, "version 1 of "+org, shop.ok("export -version 1 -org "+org), shop.ok("export -org "+org))
				}
				same(t, "the first version", firstVersion(t, path), versionRow{Number: 1})
			}
			if _, err := os.Stat(fmt.Sprint(path, ".schema", state.version)); (err == nil) != (state.version < schemaVersion) {
				t.Errorf("copy: %v", err)
			}
		})
	}
}

// firstVersion is the first version in a file, as the panel lists it.
func firstVersion(t *testing.T, path string) versionRow {
	t.Helper()
	e, s := heldEngine(t, path)
	defer s.Close()
	row, err := read(t.Context(), e, 1, instantOf(fileMoment), func(tx *txn) (versionRow, error) { return newVersionRow(tx, 1) })
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// TestSchemaRefused runs every command, in the quick form only some on three of them, on files of
// versions that this sello does not open.
// Each refuses in one line and changes nothing.
func TestSchemaRefused(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const newer, older = "lo escribió un sello más nuevo", "es anterior a la primera publicación y no se convierte; CHANGELOG.md dice qué sello lo abre aún"
	first := newEngine(newMemStore(), time.Now, cryptoSeed).oldest()
	for _, test := range []struct {
		name  string
		state schemaState
		want  string
		whole bool // all commands are tried without SELLO_TEST_LONG too
	}{
		{"newer", schemaState{version: schemaVersion + 1}, newer, true},
		{"on the way to a newer one", schemaState{version: schemaVersion + 1, from: schemaVersion}, newer, false},
		{"older", schemaState{version: first - 1}, older, true},
		{"much older", schemaState{version: 3}, older, false},
		{"older, on the way to this one", schemaState{version: schemaVersion, from: first - 1, part: 1}, older, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := unpackFile(t, thisSchema)
			s, err := openBolt(path, disk.Options{})
			if err == nil {
				err = errors.Join(s.Update(t.Context(), test.state.put), s.leave())
			}
			if err != nil {
				t.Fatal(err)
			}
			before := filesBeside(t, path)
			shop := &till{t, filepath.Dir(path), map[string]string{"SELLO_DB": path}}
			document := filepath.Join(t.TempDir(), "luna.json")
			writeFile(t, document, demoDocument)
			lines := []string{
				"serve -addr 127.0.0.1:0", "demo -addr 127.0.0.1:0 -db " + path, "migrate", "verify", "export -org cafe-luna",
				"apply " + document, "key list -org cafe-luna", "compact", "backup " + filepath.Join(t.TempDir(), "copy.db"),
			}
			if !test.whole {
				lines = lines[:sized(len(lines), 4)]
			}
			for _, line := range lines {
				ctx, cancel := context.WithTimeout(t.Context(), forever) // stops a server that starts after all
				var stdout, stderr bytes.Buffer
				code := run(ctx, strings.Fields(line), environment{shop.getenv, shop.names, strings.NewReader(""), &stdout, &stderr})
				cancel()
				out, errs := stdout.String(), stderr.String()
				if code != 1 || out != "" || !strings.Contains(errs, test.want) || faultIn(code, errs) != "" {
					t.Errorf("sello %s: exit %d, %q, %q, want %s", line, code, out, errs, test.want)
				}
			}
			if !maps.Equal(filesBeside(t, path), before) {
				t.Errorf("changed: there is %s", listDir(t, path))
			}
		})
	}
}

// What follows migrates from made-up versions. Two versions before this one the records of
// customers and users end with BA, in the version before with B. Each migration cuts off its
// own letter, so that neither may come twice to a record, or before the other.

// cutsOff is the migration that cuts off a letter, three records in each transaction.
func cutsOff(letter byte) migration {
	return func(tx Tx, _ *mint, part uint32, from key) (next key, err error) {
		all, err := migratedIn(tx, part, from)
		if err != nil {
			return nil, err
		}
		for i, e := range all {
			if i == 3 {
				return e.Key, nil
			}
			rest, ok := bytes.CutSuffix(e.Value, []byte{letter})
			if !ok {
				return nil, fmt.Errorf("%x does not end with %c: %w", e.Key, letter, errRecord)
			}
			if err := tx.Put(e.Key, rest); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// migratedIn returns the records that the made-up migrations change in a part of the store.
func migratedIn(tx Tx, part uint32, from key) (all []Entry, err error) {
	prefix := newKey('U')
	if part > 0 {
		prefix = orgKey('c', part)
	}
	if from == nil {
		from = prefix
	}
	for e, err := range tx.Scan(from, prefix.after(), false) {
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
	}
	return all, nil
}

// makeOlder makes a file of this version one of an earlier one, as state says: the parts that
// are not done are of state.from, or else state.version. It leaves the file with journals.
func makeOlder(t *testing.T, path string, state schemaState) {
	t.Helper()
	s, err := openBolt(path, disk.Options{Dense: denseTables})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(putOlder(t, s, state), s.leave()); err != nil {
		t.Fatal(err)
	}
}

// putOlder is makeOlder for a store.
func putOlder(t *testing.T, s Store, state schemaState) error {
	return s.Update(t.Context(), func(tx Tx) error {
		for part := range uint32(3) {
			version := state.version
			if state.from != 0 && part >= state.part {
				version = state.from
			}
			all, err := migratedIn(tx, part, nil)
			if err != nil {
				return err
			}
			for _, e := range all {
				if err := tx.Put(e.Key, append(e.Value, "BA"[:schemaVersion-version]...)); err != nil {
					return err
				}
			}
		}
		return state.put(tx)
	})
}

// olderEngine is heldEngine with the migrations from two versions before.
func olderEngine(t *testing.T, path string) (*engine, *boltStore) {
	t.Helper()
	e, s := heldEngine(t, path)
	e.migrations = []migration{cutsOff('A'), cutsOff('B')}
	return e, s
}

// TestSchemaSteps kills a migration after each of its transactions. The next attempt goes on
// from there, and makes a copy only if none was begun. The result has what the file had.
func TestSchemaSteps(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const last, before = schemaVersion - 1, schemaVersion - 2
	for _, test := range []struct {
		name  string
		state schemaState
		least int // transactions
	}{
		{"the version before", schemaState{version: last}, 20},
		{"two versions before", schemaState{version: before}, 40},
		{"begun by the sello before", schemaState{version: last, from: before, part: 2}, 21},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := unpackFile(t, thisSchema)
			_, s := heldEngine(t, path)
			want, err := viewStore(t.Context(), s, allEntries)
			if err := errors.Join(err, s.leave()); err != nil {
				t.Fatal(err)
			}
			makeOlder(t, path, test.state)
			state, stopped, kills := test.state, errors.New("stopped"), 0
			for ; state.version != schemaVersion || state.from != 0; kills++ {
				e, s := olderEngine(t, path)
				if old, ok := errors.AsType[*schemaError](e.open(t.Context())); !ok || old.cause != "" || old.version != cmp.Or(state.from, state.version) {
					t.Errorf("%v: %v", state, old)
				}
				steps, copies := 0, 0
				e.store.Store = guardedStore{s, func() error {
					if steps++; steps > 1 {
						return stopped
					}
					return nil
				}}
				done, err := e.migrate(t.Context(), func(from uint64) (string, error) {
					if copies++; from != state.version {
						t.Errorf("%v: the copy is called %d", state, from)
					}
					return "copy", nil
				})
				if err != nil && !errors.Is(err, stopped) {
					t.Fatalf("%v: %+v, %v", state, done, err)
				}
				if (copies == 1) != (state.from == 0) {
					t.Errorf("%v: %d copies", state, copies)
				}
				was := state
				if state, err = viewStore(t.Context(), s, readSchema); err != nil || cmp.Or(
					cmp.Compare(state.version, was.version), -cmp.Compare(state.from, was.from), cmp.Compare(state.part, was.part), bytes.Compare(state.at, was.at)) == 0 {
					t.Fatalf("%v after %v, %v", state, was, err)
				}
				if err := s.leave(); err != nil {
					t.Fatal(err)
				}
			}
			if kills < test.least {
				t.Errorf("only %d transactions", kills)
			}
			_, s = heldEngine(t, path)
			got, err := viewStore(t.Context(), s, allEntries)
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			same(t, "what is kept", got, want)
			checkFileHolds(t, path, thisSchema)
		})
	}
}

// TestSchemaKilled kills the migrations of each earlier version's file after each of their
// transactions. In the end the file is as if nobody had killed them.
func TestSchemaKilled(t *testing.T) {
	t.Parallel()
	for _, name := range schemaFiles()[:2*len(theMigrations())] {
		var ends [2][]Entry
		for i, kill := range []bool{false, true} {
			path, stopped, kills := unpackFile(t, name), errors.New("stopped"), -1
			for err := stopped; errors.Is(err, stopped); kills++ {
				e, s := heldEngine(t, path)
				steps := 0
				e.store.Store = guardedStore{s, func() error {
					if steps++; kill && steps > 1 {
						return stopped
					}
					return nil
				}}
				if _, err = e.migrate(t.Context(), nil); err == nil {
					if err := e.open(t.Context()); err != nil {
						t.Fatal(err)
					}
					if ends[i], err = viewStore(t.Context(), s, allEntries); err != nil {
						t.Fatal(err)
					}
				} else if !errors.Is(err, stopped) {
					t.Fatal(err)
				}
				if err := s.leave(); err != nil {
					t.Fatal(err)
				}
			}
			if kill && kills < 3 { // a part of no organization, and two organizations
				t.Errorf("%s: killed only %d times", name, kills)
			}
		}
		same(t, name, ends[1], ends[0])
	}
}

// TestSchemaOfServers: a server whose database another one brings to another schema reads and
// writes nothing more of it. Two that migrate at once do each piece once.
func TestSchemaOfServers(t *testing.T) {
	t.Parallel()
	stores := newSharedMem(2)
	a, b := twoServers(t, stores[0], &frozenServer{stores[1].(*memServer)}, "2026-03-02T10:00:00Z")
	a.apply(setup{}.document())
	for i := range 20 {
		a.customer(fmt.Sprint("c", i))
	}
	before, err := b.engine.store.catchUp(t.Context())
	a.ok(err)
	want, err := viewStore(t.Context(), stores[0], allEntries)
	a.ok(err)
	a.ok(putOlder(t, stores[0], schemaState{version: schemaVersion - 2}))
	_, err = b.engine.store.catchUp(t.Context())
	a.ok(err)
	if err := b.engine.store.View(before, func(Tx) error { return nil }); err != nil { // it sees the state of before
		t.Fatal(err)
	}
	for _, use := range []func(context.Context, func(Tx) error) error{b.engine.store.View, b.engine.store.ViewLong, b.engine.store.ViewOnce, b.engine.store.Update} {
		err := use(t.Context(), func(Tx) error { t.Error("it is used"); return nil })
		if old, is := errors.AsType[*schemaError](err); !is || !errors.Is(err, errUnavailable) || !strings.Contains(old.Error(), fmt.Sprint("la base de datos es del esquema ", schemaVersion-2)) {
			t.Error(err)
		}
		select {
		case <-stores[1].(*memServer).failure:
		default:
			t.Error("nobody is told")
		}
	}
	var both sync.WaitGroup
	for _, s := range stores {
		e := newEngineBy(newWallClock(wallclock.System()), s, cryptoSeed)
		e.migrations = []migration{cutsOff('A'), cutsOff('B')}
		both.Go(func() {
			if done, err := e.migrate(t.Context(), nil); err != nil || done.To != schemaVersion {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
	both.Wait()
	got, err := viewStore(t.Context(), stores[1], allEntries)
	a.ok(err)
	same(t, "what is kept", got, want)
}

// allEntries returns all that a store holds.
func allEntries(tx Tx) (all []Entry, err error) {
	for e, err := range tx.Scan([]byte{0}, nil, false) {
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
	}
	return all, nil
}

// TestSchemaUnreadable: what a migration cannot read it tells, and leaves as it was, with the
// state of a migration that is to go on.
func TestSchemaUnreadable(t *testing.T) {
	t.Parallel()
	skipShort(t)
	path := unpackFile(t, thisSchema)
	makeOlder(t, path, schemaState{version: schemaVersion - 1})
	e, s := olderEngine(t, path)
	defer s.Close()
	whole := e.migrations[1]
	e.migrations[1] = func(tx Tx, m *mint, part uint32, from key) (key, error) {
		next, err := whole(tx, m, part, from)
		if err == nil && part == 2 {
			err = unreadable(orgKey('c', part))
		}
		return next, err
	}
	_, err := e.migrate(t.Context(), nil)
	state, stateErr := viewStore(t.Context(), s, readSchema)
	if !errors.Is(err, errRecord) || stateErr != nil || state.from != schemaVersion-1 || state.part != 2 || state.at != nil {
		t.Errorf("%v, %v, %v", err, state, stateErr)
	}
	e.migrations[1] = whole
	if _, err := e.migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkFileHolds(t, path, thisSchema)
}

// TestSchemaTakenUp: what serve, demo and migrate do with an older file. They log the migration
// and keep a copy of before, which does not replace an earlier one, unless none is asked for.
// The copy is restored as it is, and migrates as well.
func TestSchemaTakenUp(t *testing.T) {
	t.Parallel()
	skipShort(t)
	path := unpackFile(t, thisSchema)
	makeOlder(t, path, schemaState{version: schemaVersion - 2})
	kept := fmt.Sprint(path, ".schema", schemaVersion-2)
	writeFile(t, kept, []byte("of another time"))
	takeUp := func(path string, noCopy bool) (log string, done *migrated) {
		t.Helper()
		e, s := olderEngine(t, path)
		var lines bytes.Buffer
		e.log = slog.New(slog.NewJSONHandler(&lines, nil))
		done, err := (&invocation{db: path, noCopy: noCopy}).takeUp(t.Context(), e, s)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		checkFileHolds(t, path, thisSchema)
		return lines.String(), done
	}
	log, done := takeUp(path, false)
	if !strings.Contains(log, fmt.Sprintf(`"msg":"migrated","from":%d,"to":%d,"copy":"%s-2`, schemaVersion-2, schemaVersion, kept)) {
		t.Errorf("log:\n%s", log)
	}
	if got := string(readFile(t, kept)); got != "of another time" {
		t.Errorf("the copy of another time is now %d bytes", len(got))
	}
	restoring := filepath.Join(t.TempDir(), "sello.db")
	writeFile(t, restoring, readFile(t, done.Copy))
	e, s := olderEngine(t, restoring)
	r := restored{File: "sello.db", From: done.Copy}
	if err := r.checkStore(t.Context(), restoring, e, s); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if r.show(&out); !strings.Contains(out.String(), fmt.Sprintf(", que es del esquema %d: cada página está bien; sello serve lo convierte al %d\n", schemaVersion-2, schemaVersion)) {
		t.Error(out.String())
	}
	names := listDir(t, path)
	if _, again := takeUp(done.Copy, true); again.Copy != "" || again.From != schemaVersion-2 || listDir(t, path) != names {
		t.Errorf("%+v, and there is %s, where %s was", again, listDir(t, path), names)
	}
	if log, again := takeUp(path, false); again != nil || strings.Contains(log, "migrated") {
		t.Errorf("a second time: %+v, %s", again, log)
	}
	if !slices.Contains(strings.Fields(names), "sello.db") {
		t.Error(names)
	}
}

// TestWrittenBy: who refuses a later schema says which sello wrote the file, if the file
// tells it.
func TestWrittenBy(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.4.0":  ": lo escribió sello v1.4.0",
		noVersion: ": lo escribió un sello más nuevo",
		"":        ": lo escribió un sello más nuevo",
	} {
		mem := newMemStore()
		defer mem.Close()
		e := newEngine(mem, time.Now, cryptoSeed)
		if err := e.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		writes := 0
		counted := newEngine(guardedStore{mem, func() error { writes++; return nil }}, time.Now, cryptoSeed)
		for range 2 {
			if err := counted.sign(t.Context(), version); err != nil {
				t.Fatal(err)
			}
		}
		if signed := version == "v1.4.0"; signed != (writes == 1) {
			t.Errorf("%q: %d writes", version, writes)
		}
		report, err := viewStore(t.Context(), mem, func(tx Tx) (*verification, error) { return verify(tx, 0, nil) })
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
		if err := mem.Update(t.Context(), func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion+1) }); err != nil {
			t.Fatal(err)
		}
		before := stored(t, mem)
		if err := newEngine(mem, time.Now, cryptoSeed).open(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", version, err)
		}
		same(t, "the store", stored(t, mem), before)
	}
	full := newEngine(guardedStore{newMemStore(), func() error { return errUnavailable }}, time.Now, cryptoSeed)
	if err := full.sign(t.Context(), "v1.4.0"); err != nil {
		t.Errorf("a full disk: %v", err)
	}
}
