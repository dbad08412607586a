package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"

	"sello/internal/sheet"
)

// The commands that write CSV.

func exportCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		c.onlyReads()
		return c.withOrg(ctx, func(call adminCaller, org string) error {
			form := csvForm{raw: c.raw, separator: c.separator}
			return form.write(ctx, call, exportRequest{Org: org, Kind: kind, Full: c.full, Segment: c.segment}, c.stdout)
		})
	}
}

// A csvForm says how CSV is written. Unless raw is true it is for a spreadsheet: with a byte
// order mark, and cells guarded.
type csvForm struct {
	raw       bool
	separator rune // 0: a comma
}

// write writes an organization's records of one kind, oldest first.
func (f csvForm) write(ctx context.Context, call adminCaller, in exportRequest, w io.Writer) error {
	if !f.raw {
		if _, err := io.WriteString(w, sheet.MarkUTF8); err != nil {
			return err
		}
	}
	out := csv.NewWriter(w)
	out.Comma = cmp.Or(f.separator, out.Comma)
	if err := out.Write(columnsOf(in)); err != nil {
		return err
	}
	for {
		var page exportPage
		if err := call(ctx, "export/rows", in, &page); err != nil {
			return err
		}
		for _, row := range page.Rows {
			if !f.raw {
				sheet.Guard(row)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		if in.After = page.Next; in.After == 0 {
			out.Flush()
			return out.Error()
		}
	}
}

func exportFlags(c *invocation) {
	orgFlag(c)
	c.set.BoolVar(&c.raw, "raw", false, "para otro programa o para volver a importar: celdas tal cual, sin lo que una hoja de cálculo necesita")
	c.set.Func("separator", "`signo` entre las celdas: coma, punto-y-coma o tabulador; sin ella, coma", func(word string) error {
		if c.separator = separatorWords[word]; c.separator == 0 {
			return errors.New("coma, punto-y-coma o tabulador")
		}
		return nil
	})
	c.chooses("separator", slices.Sorted(maps.Keys(separatorWords))...)
	c.more = `Sin -raw, para hoja de cálculo: el archivo empieza con la marca de UTF-8, sin la que Excel
muestra mal los acentos; ante una celda que la hoja ejecutaría (=, +, -, @ y más) va un
apóstrofo, y un teléfono o un número como 0012 va como ="0012", para que no pierda nada.
La importación lo quita. Lo escrito con -raw se importa con -raw: así vuelve igual.`
}

// separatorWords are the signs between two cells, of which a spreadsheet expects one or another by
// its user's language.
var separatorWords = map[string]rune{"coma": ',', "punto-y-coma": ';', "tabulador": '\t'}

func exportCustomersFlags(c *invocation) {
	exportFullFlags("id, nivel, saldo, puntos pendientes, lo que vence en cada fecha, fecha de alta y estado; del programa del cliente")(c)
	c.set.StringVar(&c.segment, "segment", "", "solo los clientes del segmento con esta `clave`")
}

func exportFullFlags(more string) func(*invocation) {
	return func(c *invocation) {
		exportFlags(c)
		c.set.BoolVar(&c.full, "full", false, "añade "+more)
	}
}
