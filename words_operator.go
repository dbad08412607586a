package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"sello/internal/disk"
	"sello/internal/nearest"
)

// Errors as the person who runs a command reads them: in Spanish, and with a code for programs.
// Errors of the system, the store and databases arrive in English and are translated here.

// A usageError is a fault of the command line: exit code 2.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// orNear asks whether a known name was meant in place of another one; "" if none is near.
func orNear(name string, known []string) string {
	if near := nearest.Of(name, known); near != "" {
		return " (¿" + near + "?)"
	}
	return ""
}

// flagFault returns an error of package flag in Spanish.
func flagFault(set *flag.FlagSet, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		var known []string
		set.VisitAll(func(f *flag.Flag) { known = append(known, "-"+f.Name) })
		return "opción desconocida: " + shownWord(name) + orNear(name, known)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "falta el valor de " + shownWord(name)
	}
	if text, ok := strings.CutPrefix(text, "bad flag syntax: "); ok {
		return "opción mal escrita: " + shownWord(text)
	}
	if m := badFlagValue.FindStringSubmatch(text); m != nil {
		return badValue(m[2], m[1], set.Lookup(m[2][1:]))
	}
	return text
}

// badValue describes a wrong value of a flag, and what the flag takes.
func badValue(name, value string, f *flag.Flag) string {
	kind, about := flag.UnquoteUsage(f)
	if kind == "" {
		about = "true o false"
	}
	return fmt.Sprintf("valor no válido para %s: %s (%s)", name, shownWord(value), about)
}

var badFlagValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?(-[^ ]+): `)

// onCommandLine turns an operator's error about a field into a usageError, since
// the fields are the flags of a command. Other errors stay as they are.
func onCommandLine(err error) error {
	if e, ok := errors.AsType[*operatorError](err); ok && e.field != "" {
		return &usageError{e.message}
	}
	return err
}

// An adminError is an error in Spanish for the person who runs a command.
type adminError struct {
	message string
	code    string // of failureCode; "" for "failed"
}

func (e *adminError) Error() string { return e.message }

func adminErrorf(format string, args ...any) error {
	return &adminError{message: fmt.Sprintf(format, args...)}
}

// failureCodes name the kinds of failures for programs, the more particular first.
var failureCodes = []struct {
	code string
	errs []error
}{
	{"interrupted", []error{context.Canceled}},
	{"file_in_use", []error{disk.ErrLocked}},
	{"not_found", []error{fs.ErrNotExist}},
	{"no_permission", []error{fs.ErrPermission, disk.ErrPermission, errDatabasePassword, errDatabaseForbidden, errDatabaseNotLetIn}},
	{"disk_full", []error{syscall.ENOSPC, syscall.EDQUOT}},
	{"not_a_data_file", []error{disk.ErrForeign, disk.ErrEmpty}},
	{"damaged", []error{
		disk.ErrDamaged, disk.ErrNoHeader, disk.ErrOneHeader, disk.ErrJournalRecord, disk.ErrJournalHeader, disk.ErrJournalPart,
		disk.ErrJournalGap, disk.ErrJournalCut, disk.ErrJournalForeign, disk.ErrFileOlder, errCorrupt, errRecord, errLots,
	}},
}

// failureCode names the kind of an error for programs. It is usage for a wrong command line,
// and failed for what has no kind of its own.
func failureCode(err error) string {
	if _, is := errors.AsType[*usageError](err); is {
		return "usage"
	}
	if _, is := errors.AsType[*documentError](err); is {
		return "invalid_document"
	}
	if e, is := errors.AsType[*adminError](err); is && e.code != "" {
		return e.code
	}
	_, truncated := errors.AsType[*disk.TruncatedError](err)
	_, noJournal := errors.AsType[*disk.MissingJournalError](err)
	if truncated || noJournal {
		return "damaged"
	}
	for _, known := range failureCodes {
		if slices.ContainsFunc(known.errs, func(one error) bool { return errors.Is(err, one) }) {
			return known.code
		}
	}
	return "failed"
}

// inUseErrorf is adminErrorf for a file that a server has open.
func inUseErrorf(format string, args ...any) error {
	return &adminError{fmt.Sprintf(format, args...), "file_in_use"}
}

// inWords returns the text of an error in Spanish, in one line unless a part of it has
// several.
func inWords(err error) string {
	text := diskInWords(err)
	// Keep the object of a failed call; its operation's name adds nothing.
	eachCause(err, func(cause error) {
		switch e := cause.(type) {
		case *fs.PathError:
			text = strings.Replace(text, e.Error(), e.Path+": "+failedAt(e.Path, e.Err), 1)
		case *os.LinkError:
			text = strings.Replace(text, e.Error(), e.New+": "+failedAt(e.New, e.Err), 1)
		case *net.OpError:
			if e.Addr != nil {
				text = strings.Replace(text, e.Error(), e.Addr.String()+": "+failedAt(e.Addr.String(), e.Err), 1)
			}
		case *os.SyscallError:
			text = strings.Replace(text, e.Error(), e.Err.Error(), 1)
		}
	})
	cause, known := errors.AsType[syscall.Errno](err)
	for _, fault := range faultWords {
		said := fault.err.Error()
		if known && errors.Is(cause, fault.err) { // systems word it differently
			said = cause.Error()
		}
		text = strings.ReplaceAll(text, said, fault.words)
	}
	text = strings.Replace(text, "store: commit: ", "", 1)
	for _, known := range damageWords {
		if before, _, ok := strings.Cut(text, known.err.Error()); ok {
			text = before + known.words + damagedPlace(err) + ": restaura una copia de seguridad"
		}
	}
	several := false
	eachCause(err, func(cause error) { several = several || isJoined(cause) })
	_, admin := errors.AsType[*adminError](err)
	_, operator := errors.AsType[*operatorError](err)
	if !several || admin || operator { // which have words for the person who runs a command
		return text
	}
	return strings.Join(slices.Compact(strings.Split(text, "\n")), "; ")
}

// eachCause calls visit with an error and all that it wraps.
func eachCause(err error, visit func(error)) {
	visit(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			eachCause(cause, visit)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			eachCause(cause, visit)
		}
	}
}

// isJoined reports whether an error is of errors.Join: the errors in it, one on a line.
func isJoined(err error) bool {
	e, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	var lines []string
	for _, cause := range e.Unwrap() {
		lines = append(lines, cause.Error())
	}
	return len(lines) > 1 && err.Error() == strings.Join(lines, "\n")
}

// errNoCreating is a lack of permission to make a file that is not there.
var errNoCreating = errors.New("no permission to create it")

// errNoProgram is the lack of a program that a flag names.
var errNoProgram = errors.New("no such program")

func failedAt(path string, err error) string {
	if errors.Is(err, fs.ErrPermission) {
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			return errNoCreating.Error()
		}
	}
	return err.Error()
}

// damagedPlace describes where the file is damaged, if the error says so.
func damagedPlace(err error) string {
	if e, ok := errors.AsType[*recordError](err); ok {
		if t, known := tableOf(e.key); known {
			return fmt.Sprintf(", tabla %q, clave %s", tables[t].words, t.inHex(e.key))
		}
	}
	e, ok := errors.AsType[*disk.DamageError](err)
	switch {
	case !ok:
	case e.Page >= 0:
		return fmt.Sprintf(", página %d", e.Page)
	case e.Table >= 0:
		return fmt.Sprintf(", tabla %q", rune(e.Table)) // the letter that docs/file-format.md uses
	}
	return ""
}

type wording struct {
	err   error
	words string
}

// faultWords translates errors of the system and the store. inWords replaces them in
// the text, since some arrive as text only.
var faultWords = []wording{
	{fs.ErrNotExist, "no existe"},
	{fs.ErrPermission, "sin permiso"},
	{errNoProgram, "no se encuentra ese programa"},
	{errNoCreating, "sin permiso para crearlo: hace falta el de escritura en su directorio"},
	{syscall.ETXTBSY, "es un programa que se está ejecutando"},
	{syscall.ELOOP, "demasiados enlaces simbólicos"},
	{syscall.ENOTDIR, "no es un directorio"},
	{syscall.EISDIR, "es un directorio"},
	{syscall.ENAMETOOLONG, "el nombre es demasiado largo"},
	{syscall.ENOSPC, "no queda espacio en el disco"},
	{syscall.EDQUOT, "se agotó la cuota de disco"},
	{syscall.EFBIG, "sería demasiado grande"},
	{syscall.EROFS, "el disco es de solo lectura"},
	{syscall.EIO, "el disco no se puede leer o escribir"},
	{syscall.EMFILE, "hay demasiados archivos abiertos"},
	{syscall.EADDRINUSE, "la dirección ya está en uso"},
	{syscall.EADDRNOTAVAIL, "no es una dirección de esta máquina"},
	{context.Canceled, "se interrumpió"},
	{errFailed, "ya no se puede escribir, tras un fallo"},
	{errUnavailable, "por ahora no se puede escribir"},
	{errClosed, "se está cerrando"},
}

// databaseWords translates what can be wrong with a database.
var databaseWords = []wording{
	{errDatabaseAddress, "no es una dirección de PostgreSQL, como postgres://usuario:contraseña@máquina:5432/base, o no vale uno de sus parámetros"},
	{errDatabaseSilent, "ahí no responde ningún servidor de PostgreSQL"},
	{errDatabasePassword, "PostgreSQL no acepta ese usuario o esa contraseña: en ella, los signos % @ : / ? # se escriben %25 %40 %3A %2F %3F %23"},
	{errDatabaseNoTLS, "ese servidor de PostgreSQL no tiene TLS, y sslmode lo exige: actívalo ahí (ssl = on), o quita sslmode si la red es de confianza"},
	{errDatabaseTarget, "sello escribe, y target_session_attrs pide un servidor que solo se lee: quítalo, o pon read-write"},
	{errDatabaseParameter, "PostgreSQL no conoce un parámetro de la dirección, o no admite su valor: corrígelo después del signo ?"},
	{errDatabaseNoSchema, "no existe ningún esquema de search_path: créalo con CREATE SCHEMA, o corrige el nombre"},
	{errDatabaseNotLetIn, "pg_hba.conf de PostgreSQL no deja entrar a ese usuario desde esta máquina: añade ahí una línea, o usa sslmode=require si solo admite TLS"},
	{errDatabaseNoHost, "no se encuentra ninguna máquina con ese nombre; si la contraseña tiene @ : / ? #, se escriben %40 %3A %2F %3F %23"},
	{errDatabaseMissing, "en ese servidor no hay una base de datos con ese nombre: créala con CREATE DATABASE, o corrige el nombre"},
	{errDatabaseForbidden, "a ese usuario le falta permiso para hacer las tablas de sello, o para usarlas"},
	{errDatabaseOld, "es un servidor anterior a PostgreSQL 15"},
	{errDatabaseReadOnly, "la base de datos no admite escrituras: ¿es una réplica?"},
	{errDatabaseForeign, "hay tablas con los nombres de las de sello (sello_kv, sello_log, sello_lease) y otras columnas: no es una base de datos suya"},
	{errDatabaseUntrusted, "el certificado de PostgreSQL no vale para esa dirección, o no es de quien dice sslrootcert"},
	{errDatabaseFile, "no se puede leer un archivo que nombra la dirección"},
	{errDatabaseUnready, "PostgreSQL no admite conexiones ahora: no le quedan, está arrancando o se está deteniendo"},
	{errDatabaseAway, "la base de datos no responde ahora como debe"},
	{errDatabaseUnknown, "no se sabe si se guardó: mira qué hay antes de repetirlo"},
	{errDatabaseServed, "la usa un servidor: detén todos; uno que se cortó cuenta 10 segundos más"},
	{errDatabaseEmpty, "la base de datos no tiene las tablas de sello"},
}

// damageWords translates the errors of a damaged file, which the log has in English.
var damageWords = []wording{
	{errCorrupt, "archivo dañado"},
	{errRecord, "datos dañados: un registro no se puede leer"},
	{errLots, "datos dañados: los lotes de una cuenta no suman su saldo"},
}

// diskWords translates the errors of package disk.
var diskWords = []wording{
	{disk.ErrDirectory, "es un directorio"},
	{disk.ErrNotRegular, "no es un archivo regular"},
	{disk.ErrPermission, "sin permiso: hace falta el de lectura y el de escritura"},
	{disk.ErrLocked, "otro proceso lo tiene abierto"},
	{disk.ErrReadOnly, "se abrió solo para leerlo"},
	{disk.ErrEmpty, "el archivo está vacío"},
	{disk.ErrForeign, "no es un archivo de sello"},
	{disk.ErrNoHeader, "archivo dañado: ninguna de sus dos cabeceras está completa"},
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

// diskInWords returns the text of an error, with what package disk or a database says in Spanish.
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
	for _, known := range slices.Concat(diskWords, databaseWords) {
		if errors.Is(err, known.err) {
			put(known.err.Error(), "%s", known.words)
		}
	}
	return text
}
