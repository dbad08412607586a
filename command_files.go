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
	"strings"

	"sello/internal/disk"
	"sello/internal/memory"
	"sello/internal/wallclock"
)

// Everything moves from a file to a database, or back: sello copy.

// A copied describes what sello copy has done.
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

// toDatabase copies a file into a database.
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

// toFile copies a database into a new file.
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

// same compares what is there with what was sent, and keeps what they have in common.
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
