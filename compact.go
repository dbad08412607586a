package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sello/internal/disk"
	"sello/internal/wallclock"
)

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
