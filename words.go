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
	"strconv"
	"strings"
	"syscall"
)

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// flagFault puts into Spanish what package flag says of a command line.
func flagFault(set *flag.FlagSet, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return "opción desconocida: " + name
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "falta el valor de " + name
	}
	if text, ok := strings.CutPrefix(text, "bad flag syntax: "); ok {
		return "opción mal escrita: " + text
	}
	if m := badFlagValue.FindStringSubmatch(text); m != nil {
		return badValue(m[2], m[1], set.Lookup(m[2][1:]))
	}
	return text
}

// badValue says what a flag takes instead of a value.
func badValue(name, value string, f *flag.Flag) string {
	kind, about := flag.UnquoteUsage(f)
	if kind == "" {
		about = "true o false"
	}
	return fmt.Sprintf("valor no válido para %s: %s (%s)", name, value, about)
}

var badFlagValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?(-[^ ]+): `)

// onCommandLine makes of a fault of a field one of the command line, whose
// flags the fields are.
func onCommandLine(err error) error {
	if e, ok := errors.AsType[*operatorError](err); ok && e.field != "" {
		return &usageError{e.message}
	}
	return err
}

// An adminError is a fault in the words of whoever runs a command.
type adminError struct{ message string }

func (e *adminError) Error() string { return e.message }

func adminErrorf(format string, args ...any) error {
	return &adminError{fmt.Sprintf(format, args...)}
}

// inWords is an error as a person reads it.
func inWords(err error) string {
	text := err.Error()
	// What was tried says nothing more than on what.
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, e.Error(), e.Path+": "+e.Err.Error(), 1)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		text = strings.Replace(text, e.Error(), e.New+": "+e.Err.Error(), 1)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Addr != nil {
		text = strings.Replace(text, e.Error(), e.Addr.String()+": "+e.Err.Error(), 1)
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		text = strings.Replace(text, e.Error(), e.Err.Error(), 1)
	}
	cause, known := errors.AsType[syscall.Errno](err)
	for _, fault := range faultWords {
		said := fault.err.Error()
		if known && errors.Is(cause, fault.err) { // systems say it in their own ways
			said = cause.Error()
		}
		text = strings.Replace(text, said, fault.words, 1)
	}
	text = strings.Replace(text, "store: commit: ", "", 1)
	for _, known := range damageWords {
		if before, rest, ok := strings.Cut(text, known.err.Error()); ok {
			text = before + known.words + damagedPlace(rest) + ": restaura una copia de seguridad"
		}
	}
	return text
}

// damagedPlace is where the damage is, as far as the rest of an errCorrupt says.
func damagedPlace(rest string) string {
	if m := pageNamed.FindStringSubmatch(rest); m != nil {
		return ", página " + m[1]
	}
	if m := tableNamed.FindStringSubmatch(rest); m != nil {
		letter, _ := strconv.ParseUint(m[1], 16, 8)
		return fmt.Sprintf(", tabla %q", rune(letter)) // as README.md names them
	}
	return ""
}

var (
	pageNamed  = regexp.MustCompile(`^: page (\d+)`)
	tableNamed = regexp.MustCompile(`^ in table 0x([0-9a-f]{2})`)
)

// isDamage tells whether an error says that the file is damaged.
func isDamage(err error) bool {
	return slices.ContainsFunc(damageWords, func(known wording) bool { return errors.Is(err, known.err) })
}

type wording struct {
	err   error
	words string
}

// What the system and the store say in English, and in words. Some of it comes
// as text alone.
var faultWords = []wording{
	{fs.ErrNotExist, "no existe"},
	{fs.ErrPermission, "sin permiso"},
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
	{errFileRemoved, "el archivo se borró mientras estaba en uso"},
	{errFileReplaced, "el archivo se reemplazó mientras estaba en uso"},
	{errFileCut, "el archivo se acortó mientras estaba en uso"},
	{errFileFull, "el archivo llegó a la longitud máxima en este sistema"},
	{errFailed, "no se puede escribir tras un fallo del disco"},
	{errUnavailable, "por ahora no se puede escribir"},
	{errClosed, "el archivo se está cerrando"},
}

// What is said of a damaged file in the log, and in words.
var damageWords = []wording{
	{errCorrupt, "archivo dañado"},
	{errRecord, "archivo dañado: un registro no se puede leer"},
	{errLots, "archivo dañado: los lotes de una cuenta no suman su saldo"},
}
