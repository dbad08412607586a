package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
)

// The schema is how everything is stored: the keys of model.go, the records and the sizes of
// blocks. This file has its version and the migrations, the version of sello that wrote a file
// last, and the mark of a sandbox's store. The schema's version is in the store:
//
//	v → schema version (8); during a migration to it also the version before (8), the part
//	    of the store that is under way (4) and the key that it has come to
//
// Version 11 is the first that is released. Since then:
//
//	12  payments with points: sales, tallies; holds: tables, accounts, movements; labels of sales;
//	    versions of the configuration
//	13  accounts whose points lapse without activity: every debit of category Redemption is one, and
//	    when a period ended
//	14  secrets of codes; cards, forms to join, tickets
//
// A change of a key, a record or a size comes with the next version:
//
//   - raise schemaVersion, and add to theMigrations the migration from the version before;
//   - go test -run 'TestSchemaFiles|TestLayout' -update . then adds files of the new version
//     to testdata/files, and writes testdata/layout.txt anew. The tests compare it with what
//     is written, and migrate the files of the versions before, which stay.
const schemaVersion = 14

const firstReleased = 11

// A migration brings a part of the store from the version before to the next: part 0 is what
// belongs to no organization, such as users; part n is organization n. In one transaction,
// which may run more than once, it does a bounded piece, from a key on (nil: the beginning),
// with m for what is random. It returns the key from which it is to go on, nil after the last
// piece. It works on keys and values as the version before had them: the decoders of model.go
// are today's. What it cannot read it returns as an error.
type migration func(tx Tx, m *mint, part uint32, from key) (next key, err error)

// theMigrations lists the migrations from each released version to the next, the last one
// to schemaVersion. So there are as many as versions before this one that can be opened.
func theMigrations() []migration { return []migration{firstVersions, moreActivity, codeSecrets} }

// firstVersions is the migration to version 12, which adds optional fields and tables. Records of
// version 11 stay as they are, except the configuration: it becomes the first version of its own.
// Where tiers can fall all customers are recounted.
func firstVersions(tx Tx, _ *mint, part uint32, _ key) (key, error) {
	k, raw, err := storedConfig(tx, part)
	if err == nil && raw != nil {
		raw, err = recountIf(tx, part, raw, `"window":"Rolling"`) // accounts note when their tiers fall
	}
	if err != nil || raw == nil {
		return nil, err
	}
	raw = slices.Concat([]byte(`{"version":1,`), raw[1:])
	v := configVersion{By: creator{Type: bySystem}, Packed: deflated(raw)}
	if err := tx.Put(versionKey(part, 1), appendRecord(nil, &v)); err != nil {
		return nil, err
	}
	return nil, tx.Put(k, raw)
}

// moreActivity is the migration to version 13. Where points lapse without activity all customers
// are recounted, so that each debit of category Redemption is one. The rest are optional fields.
func moreActivity(tx Tx, _ *mint, part uint32, _ key) (key, error) {
	k, raw, err := storedConfig(tx, part)
	if err != nil || raw == nil {
		return nil, err
	}
	if raw, err = recountIf(tx, part, raw, `"inactiveMonths":`); err != nil {
		return nil, err
	}
	return nil, tx.Put(k, raw)
}

// codeSecrets is the migration to version 14: each organization gets a secret of its codes, also in
// what a sandbox keeps for its resets.
func codeSecrets(tx Tx, m *mint, part uint32, _ key) (key, error) {
	if part == 0 {
		return nil, nil
	}
	secret := newCodeSecret(part, m)
	mark, err := readMark(tx)
	if err == nil && mark != nil {
		err = tx.Put(append(tableSandbox.fixed(), codeSecretKey(part)...), secret)
	}
	if err != nil {
		return nil, err
	}
	return nil, tx.Put(codeSecretKey(part), secret)
}

// storedConfig returns the configuration of an organization, as it is stored; nil in part 0, and
// where there is none.
func storedConfig(tx Tx, part uint32) (k key, raw []byte, err error) {
	if part == 0 {
		return nil, nil, nil
	}
	k = newKey('o').byte('c').u32(part)
	raw, ok, err := tx.Get(k)
	if err != nil || !ok {
		return k, nil, err
	}
	if len(raw) == 0 || raw[0] != '{' {
		return k, nil, unreadable(k)
	}
	return k, raw, nil
}

// recountIf begins a recount of an organization whose configuration contains a text, unless one is
// under way, and returns the configuration that says so.
func recountIf(tx Tx, part uint32, raw []byte, contains string) ([]byte, error) {
	if !bytes.Contains(raw, []byte(contains)) || bytes.Contains(raw, []byte(`"recount":true`)) {
		return raw, nil
	}
	return slices.Concat([]byte(`{"recount":true,`), raw[1:]), startRecount(tx, part)
}

// A schemaError says that a file has another schema than this sello's.
type schemaError struct {
	version  uint64
	cause    string // why it cannot be migrated; "" if it can
	database bool   // in place of a file
}

func (e *schemaError) Error() string {
	what, advice := "el archivo", "conviértelo con sello migrate, o inicia sello serve, que lo convierte"
	if e.database {
		what, advice = "la base de datos", "detén sus servidores y conviértela con sello migrate"
	}
	return fmt.Sprintf("%s es del esquema %d y este sello usa el %d: %s", what, e.version, schemaVersion, cmp.Or(e.cause, advice))
}

// A schemaState is what a store records about its schema.
type schemaState struct {
	version uint64 // 0: the store is new
	from    uint64 // the version that is migrated from; 0: no migration is under way
	part    uint32 // of the migration, that is under way
	at      key    // where it goes on in the part; nil: at its beginning
}

// readSchema looks up only v, which every store has unless it is new. A damaged page
// cannot show that a key is absent, and a server is to serve what can be read.
func readSchema(tx Tx) (s schemaState, err error) {
	value, ok, err := tx.Get(newKey('v'))
	if err != nil || !ok {
		return s, err
	}
	switch {
	case len(value) >= 20:
		s.from, s.part = uintIn(value[8:]), uint32In(value[16:])
		if len(value) > 20 {
			s.at = slices.Clone(value[20:])
		}
	case len(value) != 8:
		return s, unreadable(newKey('v'))
	}
	if s.version = uintIn(value); s.from >= s.version {
		return s, unreadable(newKey('v'))
	}
	return s, nil
}

func (s schemaState) put(tx Tx) error {
	if s.from == 0 {
		return putUint(tx, newKey('v'), s.version)
	}
	return tx.Put(newKey('v'), key(nil).u64(s.version).u64(s.from).u32(s.part).text(string(s.at)))
}

// oldest is the oldest version that the engine migrates.
func (e *engine) oldest() uint64 { return schemaVersion - uint64(len(e.migrations)) }

// check returns a schemaError if a store is neither new nor of this sello's schema.
func (e *engine) check(s schemaState) error {
	switch was := cmp.Or(s.from, s.version); {
	case s.version == 0 || s.version == schemaVersion && s.from == 0:
		return nil
	case s.version > schemaVersion:
		return &schemaError{version: s.version, cause: "lo escribió un sello más nuevo"}
	case was >= e.oldest():
		return &schemaError{version: was}
	case was < firstReleased:
		return &schemaError{version: was, cause: "es anterior a la primera publicación y no se convierte; CHANGELOG.md dice qué sello lo abre aún"}
	default:
		return &schemaError{version: was, cause: "ya no se convierte; CHANGELOG.md dice qué sello lo abre aún"}
	}
}

// open makes a new store ready for use. It refuses a store of another version with a
// schemaError and changes nothing in it. From then on the clock is judged by the
// store's latest moment.
func (e *engine) open(ctx context.Context) error {
	s, err := viewStore(ctx, e.store, readSchema)
	if err == nil {
		err = e.writtenBy(ctx, e.check(s))
	}
	if err == nil && s.version == 0 {
		err = e.store.Update(ctx, func(tx Tx) error {
			if s, err := readSchema(tx); err != nil || s.version != 0 { // another process was first
				return cmp.Or(err, e.check(s))
			}
			return schemaState{version: schemaVersion}.put(tx)
		})
		if errors.Is(err, errReadOnly) { // nothing is in it, which can be read as it is
			err = nil
		}
	}
	if err != nil {
		return err
	}
	latest, err := viewStore(ctx, e.store, latestWritten)
	if err != nil && !errors.Is(err, errCorrupt) && !errors.Is(err, errRecord) { // what can be read of a damaged file is served
		return err
	}
	e.clock.Start(latest)
	e.store.checkSchema = e.isCurrent
	return nil
}

// isCurrent fails if another process has brought the store to another schema, and ends the use of
// it by this one.
func (e *engine) isCurrent(tx Tx) error {
	s, err := readSchema(tx)
	if err == nil {
		err = e.check(s)
	}
	if refused, ok := errors.AsType[*schemaError](err); ok {
		refused.database = true
		e.store.shared.giveUp(refused)
		return fmt.Errorf("%w: %w", errUnavailable, refused)
	}
	return err
}

type migrated struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Copy string `json:"copy,omitempty"` // name of a copy of the file as it was; "" if there is none
}

// migrate brings a store that check calls older to this schema, version by version, or goes
// on where a kill interrupted it: each transaction also says how far it has come. From the
// first one on an earlier sello refuses the store. keep, unless it is nil, copies the file
// before the first change and returns the copy's name.
func (e *engine) migrate(ctx context.Context, keep func(from uint64) (string, error)) (*migrated, error) {
	s, err := viewStore(ctx, e.store, readSchema)
	if err != nil {
		return nil, err
	}
	result := &migrated{From: cmp.Or(s.from, s.version), To: schemaVersion}
	if keep != nil && s.from == 0 {
		if result.Copy, err = keep(s.version); err != nil {
			return nil, err
		}
	}
	for s.from != 0 || s.version != schemaVersion {
		m := newMint(0, e.seed())
		next := func(tx Tx) (schemaState, error) { return e.migrateNext(tx, m) }
		if s, err = updateStore(ctx, e.store, next); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// migrateNext does the next piece of a migration, and ends it after the last part. Another
// process may be doing the same.
func (e *engine) migrateNext(tx Tx, m *mint) (schemaState, error) {
	s, err := readSchema(tx)
	if err != nil {
		return s, err
	}
	if s.from == 0 {
		if err := e.check(s); err == nil || s.version > schemaVersion {
			return s, err
		}
		s = schemaState{version: s.version + 1, from: s.version}
	}
	organizations, err := organizationCount(tx)
	if err != nil {
		return s, err
	}
	if uint64(s.part) > organizations {
		s = schemaState{version: s.version}
		return s, s.put(tx)
	}
	if s.at, err = e.migrations[s.from-e.oldest()](tx, m, s.part, s.at); err != nil {
		return s, err
	}
	if s.at == nil {
		s.part++
	}
	return s, s.put(tx)
}

// A file says which sello has served or migrated it last, so that an earlier one that
// refuses it can say which one reads it:
//
//	v 'w' → version, as sello version prints it
//
// It is missing where only builds without a version wrote the file.

func writerKey() key { return newKey('v').byte('w') }

// fileWriter returns the version of the sello that wrote the store last; "" if unknown.
func fileWriter(tx Tx) (string, error) {
	value, _, err := tx.Get(writerKey())
	return string(value), err
}

// sign writes this sello's version, unless it is there. A store that takes no writes now is
// signed another time.
func (e *engine) sign(ctx context.Context, version string) error {
	if version == "" || version == noVersion {
		return nil
	}
	now, err := viewStore(ctx, e.store, fileWriter)
	if err == nil && now != version {
		err = e.store.Update(ctx, func(tx Tx) error { return tx.Put(writerKey(), []byte(version)) })
	}
	if errors.Is(err, errUnavailable) || errors.Is(err, errCorrupt) { // what can be read is served
		return nil
	}
	return err
}

// noVersion stands for the version of a build without one.
const noVersion = "(devel)"

// writtenBy says, in the refusal of a later schema, which sello wrote the file.
func (e *engine) writtenBy(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*schemaError](err)
	if !ok || refused.version <= schemaVersion {
		return err
	}
	if by, err := viewStore(ctx, e.store, fileWriter); err == nil && by != "" {
		refused.cause = "lo escribió sello " + by
	}
	return refused
}

// The store of a sandbox says that it is one, and keeps what it began with:
//
//	v 's'      → when its clock began, and its API key
//	v 's' key  → the value that the key had when the organization began
//
// A reset puts these entries in the place of all others.

// A sandboxMark says that a store is a sandbox's.
type sandboxMark struct {
	Start instant // of the clock
	Key   string  // text of the key that it prints
}

func (m *sandboxMark) put(tx Tx) error {
	return tx.Put(tableSandbox.fixed(), key(nil).instant(m.Start).text(m.Key))
}

// readMark returns the mark of a sandbox; nil if the store is no sandbox's.
func readMark(tx Tx) (*sandboxMark, error) {
	value, ok, err := tx.Get(tableSandbox.fixed())
	if err != nil || !ok {
		return nil, err
	}
	if len(value) < 8 {
		return nil, unreadable(tableSandbox.fixed())
	}
	return &sandboxMark{instantIn(value), string(value[8:])}, nil
}

type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // the commit; "" if it is not known
	Modified bool   `json:"modified"` // the tree had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the files that it writes
}

func newBuildInfo(info *debug.BuildInfo) buildInfo {
	b := buildInfo{Version: cmp.Or(info.Main.Version, noVersion), Go: cmp.Or(info.GoVersion, runtime.Version()), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: schemaVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b buildInfo) String() string {
	text := "sello " + b.Version
	if b.Revision != "" {
		text += ", commit " + b.Revision
	}
	if b.Modified {
		text += " con cambios"
	}
	return fmt.Sprintf("%s, %s %s, esquema %d", text, b.Go, b.Platform, b.Schema)
}

// differs reports whether two builds are known to be of different sources. go run and a build
// without Git tell no commit, and a build of a commit may be called by a tag or not.
func (b buildInfo) differs(o buildInfo) bool {
	switch {
	case b.Revision != "" && o.Revision != "":
		return b.Revision != o.Revision || b.Modified != o.Modified
	case b.Version == noVersion || o.Version == noVersion:
		return b.Schema != o.Schema
	}
	return b.Version != o.Version
}

func thisBuild() buildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return newBuildInfo(info)
}
