package main

import (
	"context"
	"encoding/csv"
	"io"
)

// The commands that write CSV.

func exportCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		return c.withOrg(ctx, func(call adminCaller, org string) error {
			return writeCSV(ctx, call, exportRequest{Org: org, Kind: kind, Full: c.full}, c.raw, c.stdout)
		})
	}
}

// writeCSV writes an organization's records of one kind, oldest first. Unless raw is
// true it is for a spreadsheet: with a byte order mark, and cells guarded.
func writeCSV(ctx context.Context, call adminCaller, in exportRequest, raw bool, w io.Writer) error {
	if !raw {
		if _, err := io.WriteString(w, markUTF8); err != nil {
			return err
		}
	}
	out := csv.NewWriter(w)
	if err := out.Write(columnsOf(in)); err != nil {
		return err
	}
	for {
		var page exportPage
		if err := call(ctx, "export/rows", in, &page); err != nil {
			return err
		}
		for _, row := range page.Rows {
			if !raw {
				guardCells(row)
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
	c.more = `Sin -raw, para hoja de cálculo: el archivo empieza con la marca de UTF-8, sin la que Excel
muestra mal los acentos, y ante una celda que la hoja ejecutaría (=, +, -, @ y más) va un
apóstrofo; ante números y teléfonos no. La importación quita ambos. Lo escrito con -raw se
importa con -raw: así vuelve igual.`
}

func exportFullFlags(more string) func(*invocation) {
	return func(c *invocation) {
		exportFlags(c)
		c.set.BoolVar(&c.full, "full", false, "añade "+more)
	}
}
