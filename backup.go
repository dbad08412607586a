package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A backup is a store's file as it was at one moment, whole without a journal.
// It is made under a temporary name, compared entry by entry with what it is a
// copy of, made durable and then put in place: whatever stops it leaves what was
// there before. To restore one is to copy it back.
//
// What is not yet in the file is brought into the copy, so the store itself is
// only read, and writes go on.

const (
	backupFlush = 16 << 20 // bytes copied between flushes, so that none holds up the journal's for long
	backupStep  = 8192     // entries brought into the copy at a time
	compareStep = 32       // entries compared between looks at the context
)

// A backedUp tells of a backup that was made.
type backedUp struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Entries int    `json:"entries"`
}

// backup puts a copy of the state that was committed last at path, or where the
// symbolic link there leads. It replaces nothing but another store's file that
// is not in use.
func (s *boltStore) backup(ctx context.Context, path string) (done *backedUp, err error) {
	defer func() {
		if isDamage(err) {
			err = s.named(err)
		} else if err != nil { // that it is about a temporary name is nobody's concern
			err = fmt.Errorf("%s: %w", path, openError(err))
		}
	}()
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("es un enlace simbólico a lo que no existe")
		}
		if err != nil {
			return nil, err
		}
		path = target
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no existe el directorio")
	}
	if err := s.mayReplace(path); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	entries, err := s.copyTo(ctx, f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := s.mayReplace(path); err != nil { // the copying may have taken long
		return nil, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		}
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("la copia está ahí, pero no se pudo asegurar su nombre en el disco: %w", openError(err))
	}
	return &backedUp{path, info.Size(), entries}, nil
}

// mayReplace returns why a backup must not be put at path.
func (s *boltStore) mayReplace(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if own, err := os.Stat(s.path); err == nil && os.SameFile(own, info) {
		return errors.New("es el propio archivo de datos")
	}
	if !info.Mode().IsRegular() {
		return errors.New("no es un archivo regular")
	}
	for _, name := range journalNames(path) {
		if _, err := os.Stat(name); err == nil {
			return errors.New("está en uso, o se usó y no se cerró: no se reemplaza")
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := checkHeader(f); err != nil {
		return fmt.Errorf("ya existe y no se reemplaza: %w", err)
	}
	return nil
}

// copyTo writes the state that was committed last to f and returns how many
// entries it has.
func (s *boltStore) copyTo(ctx context.Context, f *os.File) (entries int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catch(&err)
	state, err := s.acquireInFile(ctx)
	if err != nil {
		return 0, err
	}
	ctx = courteousContext{ctx, newCourtesy(&s.written)}
	defer state.release()
	w := &flushingWriter{ctx: ctx, file: f}
	if _, err := state.file.tx.WriteTo(w); err != nil {
		return 0, cmp.Or(w.err, err) // of some, bbolt keeps only the text
	}
	db, err := bolt.Open(f.Name(), 0o600, &bolt.Options{
		PageSize: boltPageSize, FreelistType: bolt.FreelistArrayType, NoSync: true, NoStatistics: true,
	})
	if err != nil {
		return 0, err
	}
	if err = s.bringAll(ctx, state, db); err == nil {
		entries, err = compare(ctx, state, db)
	}
	return entries, errors.Join(err, db.Close())
}

// bringAll brings into db what is above the file in the state.
func (s *boltStore) bringAll(ctx context.Context, state *boltState, db *bolt.DB) error {
	var (
		checked pageSet
		found   = state.file.inventory.clone()
	)
	for range 2 { // bbolt has put the two headers in any order: both anew, so that they are neighbours
		if err := db.Update(func(tx *bolt.Tx) error { return state.file.state.put(tx) }); err != nil {
			return err
		}
	}
	for _, layer := range slices.Backward(state.layers) {
		at := checkpointPlace{table: layer.table, version: layer.version, dense: s.opts.dense}
		for at.start(); !at.end(); {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := db.Update(func(tx *bolt.Tx) error {
				checked = checked.with(uint64(tx.Size()) / boltPageSize)
				before, err := openTree(db, tx, boltBucket, checked)
				if err != nil {
					return err
				}
				if _, err = at.bring(tx, backupStep, before, found); err != nil {
					return err
				}
				return before.state.put(tx)
			})
			if err != nil {
				return err
			}
		}
	}
	whole := journalState{journalID: journalID{file: newFileID()}, old: state.file.state.old}
	return db.Update(func(tx *bolt.Tx) error { return whole.put(tx) })
}

var errBackup = errors.New("la copia no es igual a lo copiado")

// compare checks that db holds the entries of the state and no others, and
// returns how many they are.
func compare(ctx context.Context, state *boltState, db *bolt.DB) (entries int, err error) {
	tx, err := db.Begin(false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	tree, err := openTree(db, tx, boltBucket, pageSet(nil).with(uint64(tx.Size())/boltPageSize))
	if err != nil {
		return 0, err
	}
	least := []byte{0}
	c := &pageCursor{pageTree: tree}
	there, ok, err := c.enter(least, nil, false)
	for e, scanErr := range (&boltTx{boltState: state}).Scan(least, nil, false) {
		if err := errors.Join(scanErr, err); err != nil {
			return 0, err
		}
		if !ok || !bytes.Equal(e.Key, there.Key) || !bytes.Equal(e.Value, there.Value) {
			return 0, errBackup
		}
		if entries++; entries%compareStep == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		there, ok, err = c.step(least, nil, false)
	}
	if err == nil && ok {
		err = errBackup
	}
	return entries, err
}

// A flushingWriter writes to a file at the disk's own speed: it leaves no great
// amount to be flushed, which would hold up others' flushes.
type flushingWriter struct {
	ctx     context.Context
	file    *os.File
	pending int
	err     error // that has ended it
}

func (w *flushingWriter) Write(b []byte) (n int, err error) {
	defer func() { w.err = err }()
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = w.file.Write(b)
	if w.pending += n; err == nil && w.pending >= backupFlush {
		w.pending = 0
		err = fdatasync(w.file)
	}
	return n, err
}

// A backupPlan makes backups from time to time and keeps the newest.
type backupPlan struct {
	every time.Duration
	keep  int
	dir   string
	name  string // what their names begin with
	make  func(ctx context.Context, path string) (*backedUp, error)
	now   func() time.Time
	log   *slog.Logger
}

const (
	backupStamp    = "20060102T150405Z" // in the name, UTC
	backupRetry    = 5 * time.Minute    // after one that failed, if the next is not sooner
	leastBackupGap = time.Minute        // between two
)

// check finds fault with what the command line says of the plan.
func (p *backupPlan) check() error {
	if (p.every == 0) != (p.dir == "") {
		return &usageError{"-backup-every y -backup-dir van juntas"}
	}
	if p.every == 0 {
		return nil
	}
	if p.every < leastBackupGap {
		return &usageError{"-backup-every debe ser de al menos 1m, como 90m o 24h"}
	}
	if p.keep < 1 {
		return &usageError{"-backup-keep debe ser mayor a 0"}
	}
	info, err := os.Stat(p.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: no es un directorio", p.dir)
	}
	f, err := os.CreateTemp(p.dir, p.name+backupStamp+".db.new-*") // which clearAway knows
	if err != nil {
		return fmt.Errorf("%s: no se puede escribir en el directorio: %w", p.dir, openError(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// backupName is what the names of a file's backups begin with.
func backupName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-"
}

// run makes backups until ctx ends. The rhythm is that of the files that are
// there, so that a restart neither skips one nor makes one too many.
func (p *backupPlan) run(ctx context.Context) {
	p.clearAway()
	wait := p.untilNext()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		started := p.now()
		done, err := p.make(ctx, filepath.Join(p.dir, p.name+started.UTC().Format(backupStamp)+".db"))
		if err == nil {
			p.log.Info("backup", "file", done.File, "bytes", done.Bytes, "entries", done.Entries, "ms", p.now().Sub(started).Milliseconds())
			err = p.prune()
		}
		if err != nil && ctx.Err() == nil {
			p.log.Error("background", "task", "backup", "cause", err.Error())
		}
		if wait = max(p.untilNext(), leastBackupGap); err != nil {
			wait = min(p.every, backupRetry)
		}
	}
}

// clearAway removes what is left of a backup that a kill has cut off.
func (p *backupPlan) clearAway() {
	files, _ := os.ReadDir(p.dir)
	for _, f := range files {
		if _, rest, ok := p.moment(f.Name()); ok && strings.HasPrefix(rest, ".new-") {
			os.Remove(filepath.Join(p.dir, f.Name()))
		}
	}
}

// moment reads the moment in the name of one of the plan's backups, and what
// follows that name.
func (p *backupPlan) moment(name string) (at time.Time, rest string, ok bool) {
	const form = backupStamp + ".db"
	stamp, ok := strings.CutPrefix(name, p.name)
	if !ok || len(stamp) < len(form) {
		return at, "", false
	}
	at, err := time.Parse(form, stamp[:len(form)])
	return at, stamp[len(form):], err == nil
}

// untilNext is how long until the next backup is due.
func (p *backupPlan) untilNext() time.Duration {
	made, err := p.made()
	if err != nil || len(made) == 0 {
		return 0
	}
	return max(made[len(made)-1].at.Add(p.every).Sub(p.now()), 0)
}

type madeBackup struct {
	name string
	at   time.Time
}

// made lists the plan's backups, oldest first, but for those from the future: the
// clock was wrong, then or now, and they are nobody's to count or to remove. Nor
// is what is no file.
func (p *backupPlan) made() ([]madeBackup, error) {
	files, err := os.ReadDir(p.dir) // sorted by name
	var made []madeBackup
	for _, f := range files {
		if at, rest, ok := p.moment(f.Name()); ok && rest == "" && f.Type().IsRegular() && !at.After(p.now()) {
			made = append(made, madeBackup{f.Name(), at})
		}
	}
	return made, err
}

// prune removes the oldest backups but for those to keep.
func (p *backupPlan) prune() error {
	made, err := p.made()
	for _, old := range made[:max(len(made)-p.keep, 0)] {
		err = errors.Join(err, os.Remove(filepath.Join(p.dir, old.name)))
	}
	return err
}
