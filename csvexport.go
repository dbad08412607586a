package main

import (
	"context"
	"encoding/csv"
	"io"
	"slices"
)

// The commands that write CSV.

func exportCommand(kind string) func(context.Context, *invocation) error {
	return func(ctx context.Context, c *invocation) error {
		return c.withOrg(ctx, func(call adminCaller, org string) error {
			return writeCSV(ctx, call, exportRequest{Org: org, Kind: kind, Full: c.full}, c.raw, c.stdout)
		})
	}
}

// writeCSV writes an organization's records of one kind, oldest first. It guards
// their cells unless raw is true.
func writeCSV(ctx context.Context, call adminCaller, in exportRequest, raw bool, w io.Writer) error {
	out := csv.NewWriter(w)
	columns := exportColumns[in.Kind]
	if in.Full {
		columns = slices.Concat(columns, fullColumns)
	}
	if err := out.Write(columns); err != nil {
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
	c.set.BoolVar(&c.raw, "raw", false, "para volver a importar o para otro programa: escribe las celdas tal cual, sin apóstrofo ante lo que una hoja de cálculo ejecutaría")
	c.more = `Sin -raw, para hoja de cálculo: ante una celda que ella ejecutaría (=, +, -, @ y más) va un
apóstrofo, que la importación quita; ante números y teléfonos no. Lo escrito con -raw se
importa con -raw: así vuelve igual.`
}

func exportCustomersFlags(c *invocation) {
	exportFlags(c)
	c.set.BoolVar(&c.full, "full", false, "añade id, nivel, saldo, puntos pendientes, lo que vence en cada fecha, fecha de alta y estado; del programa del cliente")
}
