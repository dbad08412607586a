package main

import (
	"errors"
	"fmt"
	"strings"

	"sello/internal/disk"
)

// diskWords is what the file's library says in English, and in words.
var diskWords = []wording{
	{disk.ErrDirectory, "es un directorio"},
	{disk.ErrNotRegular, "no es un archivo regular"},
	{disk.ErrPermission, "sin permiso: hace falta el de lectura y el de escritura"},
	{disk.ErrLocked, "otro proceso lo tiene abierto"},
	{disk.ErrEmpty, "el archivo está vacío"},
	{disk.ErrForeign, "no es un archivo de sello"},
	{disk.ErrNoHeader, "archivo dañado: ninguna de sus dos cabeceras está completa"},
	{disk.ErrHeaderOrJournal, "archivo dañado: una de sus cabeceras no está completa, y hay un journal"},
	{disk.ErrOneHeader, "una de sus dos cabeceras está dañada"},
	{disk.ErrJournalRecord, "journal dañado: un registro no se puede leer"},
	{disk.ErrJournalHeader, "journal dañado: falta la cabecera"},
	{disk.ErrJournalPart, "journal dañado: falta una parte"},
	{disk.ErrJournalGap, "journal dañado: falta un registro"},
	{disk.ErrJournalCut, "journal dañado: falta lo último"},
	{disk.ErrJournalForeign, "el journal es de otro archivo, o de otro momento de este"},
	{disk.ErrFileOlder, "el archivo es anterior a su journal"},
	{disk.ErrDanglingLink, "es un enlace simbólico a lo que no existe"},
	{disk.ErrNoDirectory, "no existe el directorio"},
	{disk.ErrOwnFile, "es el propio archivo de datos"},
	{disk.ErrInUse, "está en uso, o se usó y no se cerró: no se reemplaza"},
	{disk.ErrExists, "ya existe y no se reemplaza"},
	{disk.ErrCopyDiffers, "la copia no es igual a lo copiado"},
	{disk.ErrNotSynced, "la copia está ahí, pero no se pudo asegurar su nombre en el disco"},
	{disk.ErrRemoved, "el archivo se borró mientras estaba en uso"},
	{disk.ErrReplaced, "el archivo se reemplazó mientras estaba en uso"},
	{disk.ErrCutShort, "el archivo se acortó mientras estaba en uso"},
	{disk.ErrFull, "el archivo llegó a la longitud máxima en este sistema"},
}

// diskInWords is the text of an error with what the file's library says in words.
func diskInWords(err error) string {
	text := err.Error()
	put := func(said, format string, args ...any) {
		text = strings.Replace(text, said, fmt.Sprintf(format, args...), 1)
	}
	if e, ok := errors.AsType[*disk.TruncatedError](err); ok {
		put(e.Error(), "archivo truncado: %d bytes de al menos %d", e.Size, e.Least)
	}
	if e, ok := errors.AsType[*disk.MissingJournalError](err); ok {
		put(e.Error(), "falta %s, sin el que el archivo no está completo", e.Name)
	}
	if e, ok := errors.AsType[*disk.LeftJournalError](err); ok {
		put(e.Advice(), " (%s); si es una copia puesta a propósito en su lugar, quita ese journal", e.Name)
	}
	for _, known := range diskWords {
		if errors.Is(err, known.err) {
			put(known.err.Error(), "%s", known.words)
		}
	}
	return text
}

// damagedPlace is where the file is damaged, as far as an error says.
func damagedPlace(err error) string {
	e, ok := errors.AsType[*disk.DamageError](err)
	switch {
	case !ok:
	case e.Page >= 0:
		return fmt.Sprintf(", página %d", e.Page)
	case e.Table >= 0:
		return fmt.Sprintf(", tabla %q", rune(e.Table)) // as README.md names them
	}
	return ""
}
