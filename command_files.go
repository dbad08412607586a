package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sello/internal/disk"
	"sello/internal/memory"
	"sello/internal/wallclock"
)

// The commands that write everything anew: copy moves it from a file to a database or back, compact
// makes the file anew, and restore puts a checked copy in its place.

type copied struct {
	From     string        `json:"from"`
	To       string        `json:"to"`
	Entries  int           `json:"entries"`
	Digest   string        `json:"digest"` // of all of them, in hexadecimal: the same on both sides
	Verified *verification `json:"verified"`
}

func copyFlags(c *invocation) {
	jsonFlag(c)
	c.set.StringVar(&c.from, "from", "", "`archivo` o dirección de la base de datos de donde se copia; sin ella, lo que dice -db")
	c.set.StringVar(&c.to, "to", "", "`archivo`, que no existe todavía, o dirección de una base de datos vacía, adonde se copia")
	c.more = `Lleva todo lo que hay en un archivo a una base de datos PostgreSQL, o de vuelta, sin servidor
en ninguno de los dos lados. Se copia todo o nada: lo copiado se cuenta y se compara antes de
darlo por hecho, y después se comprueba como con sello verify. Lo de origen queda como está:
desde entonces hay que servir solo la copia, o cada lado seguiría por su cuenta.
Una contraseña que no deba verse en la lista de procesos va en SELLO_FROM, SELLO_TO o PGPASSWORD.`
}

func runCopy(ctx context.Context, c *invocation) error {
	c.db = cmp.Or(c.from, c.db)
	to := *c
	to.db = c.to
	if c.to == "" {
		return &usageError{"falta -to"}
	}
	for flag, of := range map[string]*invocation{"from": c, "to": &to} {
		if err := of.checkDatabase(); err != nil {
			return &usageError{strings.Replace(err.Error(), "-db", "-"+flag, 1)}
		}
	}
	if isDatabase(c.db) == isDatabase(c.to) {
		return &usageError{"sello copy va de un archivo a una base de datos o al revés: de archivo a archivo copia sello backup, de base de datos a base de datos, pg_dump"}
	}
	for _, path := range []string{c.db, c.to} {
		if _, used := overSocket(path); used {
			return inUseErrorf("%s: un servidor lo tiene abierto: detenlo y repite sello copy", path)
		}
	}
	memory.Limit(verifyMemory)
	done := copied{From: c.dbName(), To: to.dbName()}
	err := c.telling(ctx, "copiando", func(ctx context.Context) (err error) {
		part := disk.PartOf(ctx, 0, 0.6)
		if isDatabase(c.to) {
			err = done.toDatabase(part, c, &to)
		} else {
			err = done.toFile(part, c, &to)
		}
		if err == nil {
			err = done.verify(disk.PartOf(ctx, 0.6, 1), &to)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.print(&done, done.show)
}

func (d *copied) toDatabase(ctx context.Context, from, to *invocation) error {
	from.readOnly = true
	return from.withWhole(ctx, true, func(source openedStore) error {
		if err := refuseMarked(ctx, source, from.dbName()); err != nil {
			return err
		}
		return to.withWhole(ctx, false, func(target openedStore) error {
			whole, length := target.(wholeStore), source.(*boltStore).file.Stats().FileBytes
			err := source.View(ctx, func(tx Tx) error {
				sum := newWholeSum()
				sent := sum.taking(tx.Scan(nil, nil, false), func(bytes int64) { disk.Tell(ctx, float64(bytes), float64(length)) })
				return whole.fill(ctx, sent, func(there iter.Seq2[Entry, error]) error { return d.same(sum, there) })
			})
			if errors.Is(err, errNotEmpty) {
				return adminErrorf("%s: ya tiene datos de sello: se copia a una base de datos vacía", to.dbName())
			}
			return to.ofFile(err)
		})
	})
}

func (d *copied) toFile(ctx context.Context, from, to *invocation) error {
	if _, err := os.Lstat(to.db); !errors.Is(err, fs.ErrNotExist) {
		return to.ofFile(disk.ErrExists)
	}
	from.readOnly = true
	return from.withWhole(ctx, true, func(source openedStore) error {
		if err := refuseMarked(ctx, source, from.dbName()); err != nil {
			return err
		}
		if err := unserved(ctx, source.(wholeStore)); err != nil {
			return from.ofFile(err)
		}
		return source.(wholeStore).hold(ctx, func(tx Tx) error {
			sum := newWholeSum()
			_, err := disk.Build(ctx, to.db, 0, func() iter.Seq2[Entry, error] {
				sum = newWholeSum() // it asks for all of them twice, to compare them with the file
				return sum.taking(tx.Scan(nil, nil, false), func(int64) {})
			}, denseTables)
			d.Entries, d.Digest = sum.entries, fmt.Sprintf("%x", sum.digest())
			return err
		})
	})
}

// withWhole opens a store for copying. filled says that it is one of this sello's schema.
func (c *invocation) withWhole(ctx context.Context, filled bool, fn func(openedStore) error) error {
	store, err := c.openStore(ctx, disk.Options{MustExist: filled, ReadOnly: c.readOnly, Dense: denseTables}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if filled {
		err = c.ofFile(newEngineBy(newWallClock(wallclock.System()), store, cryptoSeed).open(ctx))
	}
	if err == nil {
		err = fn(store)
	}
	return errors.Join(err, store.leave())
}

// verify checks the copy as sello verify does.
func (d *copied) verify(ctx context.Context, to *invocation) error {
	to.readOnly = true
	err := to.withAdmin(ctx, false, func(call adminCaller) error { return call(ctx, "verify", verifyRequest{}, &d.Verified) })
	if err == nil && len(d.Verified.Problems) > 0 {
		err = adminErrorf("%s: la copia es igual, y tiene %s: sello verify las muestra", d.To, plural(len(d.Verified.Problems), "diferencia", "diferencias"))
	}
	return err
}

// same compares what is there with what was sent, and keeps their count and digest if they agree.
func (d *copied) same(sent *wholeSum, there iter.Seq2[Entry, error]) error {
	found := newWholeSum()
	for _, err := range found.taking(there, func(int64) {}) {
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(found.digest(), sent.digest()) {
		return disk.ErrCopyDiffers
	}
	d.Entries, d.Digest = found.entries, fmt.Sprintf("%x", found.digest())
	return nil
}

func (d *copied) show(w io.Writer) {
	fmt.Fprintf(w, "%s: copiado de %s: %s, huella %s\n", d.To, d.From, plural(d.Entries, "entrada", "entradas"), d.Digest)
	fmt.Fprintf(w, "%s, %s, %s, todo cuadra\n", d.Verified.customersText(),
		plural(int(d.Verified.Movements), "movimiento", "movimientos"), plural(int(d.Verified.Sales), "venta", "ventas"))
	fmt.Fprintf(w, "%s queda como estaba: desde ahora sirve solo la copia\n", d.From)
}

// A wholeSum counts entries and hashes them: the lengths of key and value, in four bytes each,
// and then both.
type wholeSum struct {
	entries int
	hash    hash.Hash
	buf     []byte
}

func newWholeSum() *wholeSum { return &wholeSum{hash: sha256.New()} }

// taking passes entries on and takes them into the sum. It tells how many bytes they have so far.
func (s *wholeSum) taking(entries iter.Seq2[Entry, error], tell func(bytes int64)) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		size := int64(0)
		for e, err := range entries {
			if err == nil {
				s.entries++
				s.buf = binary.BigEndian.AppendUint32(s.buf[:0], uint32(len(e.Key)))
				s.buf = binary.BigEndian.AppendUint32(s.buf, uint32(len(e.Value)))
				s.buf = append(append(s.buf, e.Key...), e.Value...)
				s.hash.Write(s.buf)
				if size += int64(len(s.buf)); s.entries%1024 == 0 {
					tell(size)
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *wholeSum) digest() []byte { return s.hash.Sum(nil) }

// A compacted describes a file that was made anew. Sizes are in bytes.
type compacted struct {
	File    string `json:"file"`
	Before  int64  `json:"before"`
	After   int64  `json:"after"`
	Entries int    `json:"entries"`
	Kept    bool   `json:"kept"` // the file stayed: a new one would have been larger
}

// compact makes the file anew (see disk.File.Compact) and closes the store.
func (s *boltStore) compact(ctx context.Context) (*compacted, error) {
	var done *disk.Compacted
	err := s.close(func() (err error) {
		done, err = s.file.Compact(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &compacted{s.file.Path(), done.Before, done.After, done.Entries, done.Kept}, nil
}

func compactFlags(c *invocation) {
	jsonFlag(c)
	c.more = `Para cuando ningún servidor tiene el archivo abierto. Escribe al lado un archivo nuevo con
las mismas entradas, lo comprueba y lo pone en lugar del anterior; si se interrumpe, queda
el de antes. El archivo nuevo no conserva nada de lo borrado o cambiado, como los datos de
clientes eliminados, y no tiene espacio sin usar. Hace falta espacio en el disco para los dos.
Si el nuevo fuera mayor, queda el de antes, y se borra lo que tenía en el espacio sin usar.
Las copias de seguridad anteriores siguen como están.`
}

func runCompact(ctx context.Context, c *invocation) error {
	if isDatabase(c.db) {
		return usageErrorf("sello compact es para un archivo: en una base de datos, autovacuum de PostgreSQL libera el espacio de lo borrado")
	}
	if _, used := overSocket(c.db); used {
		return inUseErrorf("%s: un servidor lo tiene abierto: detenlo y repite sello compact", c.db)
	}
	store, err := c.openFile(disk.Options{MustExist: true, Dense: denseTables})
	if err != nil {
		return err
	}
	e := newEngineBy(newWallClock(wallclock.System()), store, cryptoSeed)
	if err := e.open(ctx); err != nil { // an older file is to be migrated first
		return errors.Join(err, store.leave())
	}
	var done *compacted
	err = c.telling(ctx, "haciendo el archivo de nuevo", func(ctx context.Context) (err error) {
		done, err = store.compact(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return c.print(done, func(w io.Writer) {
		if done.Kept {
			fmt.Fprintf(w, "%s: queda como está, de %d bytes: el nuevo sería mayor; sin restos de lo borrado, %s, comprobado\n",
				done.File, done.After, plural(done.Entries, "entrada", "entradas"))
			return
		}
		fmt.Fprintf(w, "%s: de %d a %d bytes, %s, comprobado\n", done.File, done.Before, done.After, plural(done.Entries, "entrada", "entradas"))
	})
}

type restored struct {
	File     string        `json:"file"`
	From     string        `json:"from"`
	Kept     string        `json:"kept,omitempty"` // what was there before; "" if nothing was
	Schema   uint64        `json:"schema"`
	Verified *verification `json:"verified,omitempty"` // nil for an earlier schema: its pages alone were checked
	Ended    loggedOut     `json:"ended"`              // sessions and links of the copy
}

func restoreFlags(c *invocation) {
	jsonFlag(c)
	c.more = `Para cuando ningún servidor tiene el archivo abierto. Copia ARCHIVO al lado del archivo de
datos, comprueba la copia entera como sello verify, guarda lo que había, con sus journals, con
el nombre ARCHIVO-DE-DATOS.before-restore-FECHA, y pone la copia en su lugar; si se interrumpe,
queda lo de antes o la copia, entera. ARCHIVO sigue donde está. Hace falta espacio para la copia.`
}

func runRestore(ctx context.Context, c *invocation) error {
	if isDatabase(c.db) {
		return usageErrorf("sello restore es para un archivo: una base de datos se restaura con las copias de PostgreSQL, las de pg_dump o pgBackRest")
	}
	from := c.args[0]
	if !isPath(from) {
		return errAddress
	}
	for _, path := range []string{c.db, from} {
		if _, used := overSocket(path); used {
			return inUseErrorf("%s: un servidor lo tiene abierto: detenlo y repite sello restore", path)
		}
	}
	memory.Limit(verifyMemory)
	done := restored{File: c.db, From: from}
	if err := c.telling(ctx, "restaurando", done.restore); err != nil {
		return err
	}
	return c.print(&done, done.show)
}

// restore copies From, checks the copy, and puts it in the place of File.
func (r *restored) restore(ctx context.Context) error {
	from := r.From
	staged, err := disk.Stage(disk.PartOf(ctx, 0, 0.2), from, r.File)
	if err != nil {
		return err
	}
	defer staged.Remove()
	if err := r.check(disk.PartOf(ctx, 0.2, 0.8), staged.Path()); err != nil {
		// The copy has a name that says nothing to anybody.
		text := strings.ReplaceAll(inWords(err), staged.Path(), from)
		text = strings.ReplaceAll(text, filepath.Base(staged.Path()), filepath.Base(from))
		if !strings.Contains(text, from) {
			text = from + ": " + text
		}
		return &adminError{text, failureCode(err)}
	}
	if r.Kept, err = staged.Place(ctx, time.Now().UTC().Format(backupStamp)); err != nil {
		return err
	}
	if err := checkPlaced(disk.PartOf(ctx, 0.8, 1), r.File); err != nil {
		return fmt.Errorf("%w: la copia ya está en su lugar, y lo de antes en %s", err, r.Kept)
	}
	return nil
}

// check checks the file at path wholly, and brings its journals into it.
func (r *restored) check(ctx context.Context, path string) error {
	store, err := openBolt(path, disk.Options{MustExist: true, Dense: denseTables})
	if err != nil {
		return err
	}
	e := newEngineBy(newWallClock(wallclock.System()), store, cryptoSeed)
	e.log = slog.New(slog.DiscardHandler)
	return r.checkStore(ctx, path, e, store)
}

// checkStore is check for an engine on the file's store, which it closes.
func (r *restored) checkStore(ctx context.Context, path string, e *engine, store *boltStore) error {
	err := refuseMarked(ctx, store, path)
	if err == nil {
		err = e.open(ctx)
	}
	old, isOld := errors.AsType[*schemaError](err)
	switch {
	case isOld && old.cause == "":
		r.Schema, err = old.version, checkPages(ctx, store)
	case err == nil:
		r.Schema = schemaVersion
		a := &admin{engine: e, flush: func(context.Context) error { return nil }}
		if r.Verified, err = a.verify(ctx, verifyRequest{}); err == nil && len(r.Verified.Problems) > 0 {
			err = adminErrorf("%s: %s: no se restaura; sello verify -db %[1]s las muestra", path,
				plural(len(r.Verified.Problems), "diferencia", "diferencias"))
		}
	}
	if err == nil {
		r.Ended, err = endAccess(ctx, store)
	}
	if err != nil {
		return errors.Join(err, store.leave())
	}
	return store.Close()
}

// endAccess ends all sessions of the panel in a store, and takes back all links. A session or a link
// in a copy may have ended since the copy was made: somebody was removed, or the link was used. It
// needs no schema of this sello: the tables are as they have been since there are users.
func endAccess(ctx context.Context, store Store) (done loggedOut, err error) {
	return updateStore(ctx, store, func(tx Tx) (done loggedOut, err error) {
		var gone []key
		for _, of := range []table{tableInvitations, tableInvitationList, tableSessions, tableUserSessions} {
			for e, err := range scan(tx, of.fixed(), false) {
				if err != nil {
					return done, err
				}
				if !of.has(e.Key) { // another table's that begins alike
					continue
				}
				gone = append(gone, slices.Clone(e.Key))
				switch of {
				case tableInvitations:
					done.Links++
				case tableSessions:
					done.Sessions++
				}
			}
		}
		for _, k := range gone {
			if err := tx.Delete(k); err != nil {
				return done, err
			}
		}
		return done, nil
	})
}

// checkPages checks every page of a file, and every value.
func checkPages(ctx context.Context, store *boltStore) error {
	return store.ViewLong(ctx, func(tx Tx) error {
		_, err := tx.(boltTx).checkFile(ctx, verifyEffort(false).workers)
		return err
	})
}

// checkPlaced checks every page of the restored file once more, where it is now, and writes
// nothing.
func checkPlaced(ctx context.Context, path string) error {
	store, err := openBolt(path, disk.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(checkPages(ctx, store), store.Close())
}

func (r *restored) show(w io.Writer) {
	fmt.Fprintf(w, "%s: restaurado de %s", r.File, r.From)
	if r.Verified != nil {
		fmt.Fprintf(w, ": %s, %s, %s, todo cuadra\n", r.Verified.customersText(),
			plural(int(r.Verified.Movements), "movimiento", "movimientos"), plural(int(r.Verified.Sales), "venta", "ventas"))
	} else {
		fmt.Fprintf(w, ", que es del esquema %d: cada página está bien; sello serve lo convierte al %d\n", r.Schema, schemaVersion)
	}
	if r.Ended != (loggedOut{}) {
		fmt.Fprintf(w, "todos vuelven a entrar al panel: %s\n", &r.Ended)
	}
	if r.Kept != "" {
		fmt.Fprintf(w, "lo de antes está en %s\n", r.Kept)
	}
}
