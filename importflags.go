package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"sello/internal/sheet"
)

// The flags of the commands that import CSV.

func importFlags(c *invocation) {
	orgJSONFlags(c)
	sampleFlag(c)
	c.set.Func("ignore", "`columnas` que se dejan fuera, separadas por comas; se puede repetir; sin ella, una columna desconocida es un error", func(list string) error {
		c.ignore = append(c.ignore, list) // as a whole: a column's name may have commas
		for name := range strings.SplitSeq(list, ",") {
			c.ignore = append(c.ignore, trimBlanks(name))
		}
		return nil
	})
	c.set.Func("map", "`COLUMNA=campo`: qué es una columna que no se reconoce, como \"Correo 2\"=email; se puede repetir", func(text string) error {
		at := strings.LastIndex(text, "=")
		if at < 0 || trimBlanks(text[at+1:]) == "" {
			return errors.New("COLUMNA=campo")
		}
		c.mapped = append(c.mapped, [2]string{text[:at], trimBlanks(text[at+1:])})
		return nil
	})
	c.set.Func("decimal", "`signo` decimal, coma o punto, de los números que se pueden leer de dos maneras, como 1.250; sin ella son un error", func(word string) error {
		signs := map[string]rune{"coma": ',', "punto": '.'}
		if c.decimal = signs[word]; c.decimal == 0 {
			return errors.New("coma o punto")
		}
		return nil
	})
	c.set.Func("dates", "`orden` de las fechas: dmy (primero el día) o mdy (primero el mes); sin ella, primero el día, y si otras fechas del archivo llevan primero el mes son un error", func(word string) error {
		if c.dates = sheet.DateOrder(word); c.dates != sheet.DayMonth && c.dates != sheet.MonthDay {
			return errors.New("dmy o mdy")
		}
		return nil
	})
	c.set.Func("encoding", "`codificación` del archivo: utf-8, utf-16, windows-1252, ibm850, ibm437 o macintosh; sin ella se averigua", func(word string) error {
		if c.encoding = sheet.Encodings[word]; c.encoding == sheet.Unknown {
			return errors.New("utf-8, utf-16, windows-1252, ibm850, ibm437 o macintosh")
		}
		return nil
	})
	c.chooses("decimal", "coma", "punto")
	c.chooses("dates", string(sheet.DayMonth), string(sheet.MonthDay))
	c.chooses("encoding", slices.Sorted(maps.Keys(sheet.Encodings))...)
	c.set.BoolVar(&c.dryRun, "dry-run", false, "ensaya la importación en una copia del archivo y dice qué entraría, sin guardar nada")
	c.set.BoolVar(&c.samePerson, "same-person", false, "basta que coincida el correo o el teléfono para que una fila sea de un cliente, aunque lo demás sea otro")
	c.set.BoolVar(&c.raw, "raw", false, "toma las celdas tal cual, como las escribe export -raw: no quita el apóstrofo ante =, +, -, @ o una cifra")
	c.more = `El archivo puede venir de Excel, LibreOffice o Google Sheets: separado por comas, puntos y
coma o tabuladores, en UTF-8, UTF-16 o Windows-1252 (otras: -encoding). Fechas: 2026-11-30 o 30/11/2026.
Los encabezados pueden estar en español o en inglés.

Lo que no se puede importar queda en ARCHIVO.csv.errors.csv, con su línea y su motivo;
lo demás entra. También está ahí, con un aviso, lo que entró en un cliente con otro nombre.
Si ese archivo ya existe, se escribe otro (.errors-2.csv).
Código de salida: 0 si entró todo o ya estaba, 1 si algo no entró.`
}

func programFlag(c *invocation) {
	c.set.StringVar(&c.program, "program", "", "`clave` del programa al que van los puntos; sin ella, el predeterminado")
}

func importCustomersFlags(c *invocation) {
	importFlags(c)
	fromFlag(c, importCustomers)
	programFlag(c)
	c.set.BoolVar(&c.noWelcome, "no-welcome", false, "no da a los clientes nuevos los puntos de bienvenida (reglas Signup)")
	c.more = "Columnas: nombre, apellido, correo, teléfono, externalId, cumpleaños, alta, puntos, vencen,\n" +
		"puntos históricos. Los puntos entran como saldo inicial una sola vez por cliente y programa.\n\n" + c.more
}

func importPointsFlags(c *invocation) {
	importFlags(c)
	programFlag(c)
	c.more = "Columnas: referencia (única para siempre: lo que ya se dio con ella no se da otra vez), puntos\n" +
		"(con - se quitan), correo, teléfono, externalId o id del cliente, categoría, comentario, vencen.\n" +
		"Un archivo que se interrumpió se importa otra vez.\n\n" + c.more
}

func importSalesFlags(c *invocation) {
	importFlags(c)
	fromFlag(c, importSales)
	c.more = "Columnas: externalId (ticket), createdAt (fecha), correo, teléfono, customerExternalId o\n" +
		"customerId del cliente, tipo (compra o devolución), total, producto, cantidad, precio, comentario.\n" +
		"Las filas de un ticket son una venta, estén donde estén. Entra entera, o va entera a los errores.\n\n" + c.more
}
