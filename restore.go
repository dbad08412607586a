package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sello/internal/disk"
	"sello/internal/memory"
	"sello/internal/wallclock"
)

// A restored describes what sello restore has done.
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

// endAccess ends all sessions of the panel in a store, and takes back all links. Those of a
// copy may have been ended since it was made: somebody was removed, or a link was used. It
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
