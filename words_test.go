package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

// TestDiskInWords checks the Spanish text of the disk library's errors, with their names
// and figures.
func TestDiskInWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{disk.ErrForeign, "no es un archivo de sello"},
		{fmt.Errorf("a.db: %w", disk.ErrEmpty), "a.db: el archivo está vacío"},
		{fmt.Errorf("a.db: %w", disk.ErrLocked), "a.db: otro proceso lo tiene abierto"},
		{fmt.Errorf("a.db: %w", &disk.TruncatedError{Size: 4136, Least: 16384}), "a.db: archivo truncado: 4136 bytes de al menos 16384"},
		{
			fmt.Errorf("a.db: %w; %w", &disk.MissingJournalError{Name: "a.db-journal1"}, disk.ErrOneHeader),
			"a.db: falta a.db-journal1, sin el que el archivo no está completo; una de sus dos cabeceras está dañada",
		},
		{
			&disk.LeftJournalError{Name: "a.db-journal2", Err: disk.ErrFileOlder},
			"el archivo es anterior a su journal (a.db-journal2); si es una copia puesta a propósito en su lugar, quita ese journal",
		},
		{&disk.LeftJournalError{Name: "j", Err: syscall.EIO}, "el disco no se puede leer o escribir (j); si es una copia puesta a propósito en su lugar, quita ese journal"},
		{fmt.Errorf("b.db: %w: %w", disk.ErrExists, disk.ErrForeign), "b.db: ya existe y no se reemplaza: no es un archivo de sello"},
		{fmt.Errorf("b.db: %w: %w", disk.ErrNotSynced, syscall.EIO), "b.db: la copia está ahí, pero no se pudo asegurar su nombre en el disco: el disco no se puede leer o escribir"},
		{seamError(disk.ErrClosed), "se está cerrando"},
		{seamError(disk.ErrFailed), "ya no se puede escribir, tras un fallo"},
		{seamError(fmt.Errorf("%w: %w", disk.ErrUnavailable, disk.ErrFull)), "por ahora no se puede escribir: el archivo llegó a la longitud máxima en este sistema"},
		{fmt.Errorf("a.db: %w", seamError(&disk.DamageError{Page: 0, Table: -1, Err: disk.ErrDamaged})), "a.db: archivo dañado, página 0: restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", seamError(&disk.DamageError{Page: -1, Table: 'm', Err: disk.ErrDamaged})), "a.db: archivo dañado, tabla 'm': restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", seamError(disk.ErrDamaged)), "a.db: archivo dañado: restaura una copia de seguridad"},
		{fmt.Errorf("a.db: %w", errRecord), "a.db: datos dañados: un registro no se puede leer: restaura una copia de seguridad"},
	} {
		if got := inWords(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
	for _, known := range diskWords {
		if got := inWords(fmt.Errorf("a.db: %w", known.err)); got != "a.db: "+known.words || englishWords.MatchString(got) {
			t.Errorf("%v: %q", known.err, got)
		}
	}
}

// TestDamagedInWords checks that commands describe the damage of real files in Spanish.
func TestDamagedInWords(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	path := s.env["SELLO_DB"]
	closed := readFile(t, path)
	left, err := openBolt(path, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, left, "zz", "in the journal")
	if err := left.leave(); err != nil {
		t.Fatal(err)
	}
	names := disk.JournalNames(path)
	needing, journals := readFile(t, path), [2][]byte{readFile(t, names[0]), readFile(t, names[1])}
	for _, test := range []struct {
		reason string
		make   func() error
		want   string
	}{
		{"both headers damaged", func() error {
			b := append([]byte{}, closed...)
			b[60] ^= 1
			b[disktest.PageSize+60] ^= 1
			return errors.Join(os.Remove(names[0]), os.Remove(names[1]), os.WriteFile(path, b, 0o600))
		}, "archivo dañado: ninguna de sus dos cabeceras está completa"},
		{"cut", func() error { return os.WriteFile(path, closed[:disktest.PageSize], 0o600) }, "archivo truncado: 4096 bytes de al menos "},
		{"no journal", func() error { return os.WriteFile(path, needing, 0o600) }, "falta sello.db-journal1, sin el que el archivo no está completo\n"},
		{"a journal cut off", func() error {
			return errors.Join(os.WriteFile(names[0], journals[0][:100], 0o600), os.WriteFile(names[1], journals[1], 0o600))
		}, "journal dañado: "},
		{"an older file beside its journal", func() error {
			return errors.Join(os.WriteFile(names[0], journals[0], 0o600), os.WriteFile(path, closed, 0o600))
		}, "el archivo es anterior a su journal (sello.db-journal1); si es una copia puesta a propósito en su lugar, quita ese journal\n"},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		code, out, errs := s.run("verify")
		if code != 1 || out != "" || !strings.Contains(errs, filepath.Base(path)+": "+test.want) || faultIn(code, errs) != "" {
			t.Errorf("%s: exit %d, %s%s", test.reason, code, out, errs)
		}
	}
}
