package main

import _ "embed"

// Samples of what the commands read, to begin with.

//go:embed demo.json
var demoDocument []byte

// sampleSheets are files to import, by their kind.
var sampleSheets = map[string]string{
	importCustomers: `Nombre,Apellido,Correo,Teléfono,Cumpleaños,Puntos
María,García,maria@example.com,55 1234 5678,14/05/1990,120
José,Núñez,jose@example.com,,,85
Ana,López,,33 1234 5678,02/11/1985,
`,
	importSales: `Ticket,Fecha,Correo,Teléfono,Tipo,Total,Producto,Cantidad,Precio
T-1,23/11/2025 10:15,maria@example.com,,Compra,318,GRANO-500,1,260
T-1,23/11/2025 10:15,maria@example.com,,Compra,318,CAFE-LATTE,1,58
T-2,23/11/2025 17:40,,33 1234 5678,Compra,84,CAFE-AMERICANO,2,42
T-2,24/11/2025 09:05,,33 1234 5678,Devolución,42,CAFE-AMERICANO,1,42
`,
	importPoints: `Referencia,Correo,Teléfono,Puntos,Categoría,Comentario,Vencen
NAVIDAD-1,maria@example.com,,50,Campaña,Regalo de Navidad,31/01/2030
NAVIDAD-2,,33 1234 5678,50,Campaña,Regalo de Navidad,31/01/2030
AJUSTE-7,jose@example.com,,-20,Ajuste,Se dieron dos veces,
`,
}

// sampleFlag is of commands that read a file.
func sampleFlag(c *invocation) {
	c.set.BoolVar(&c.sample, "sample", false, "escribe un archivo de ejemplo, para empezar; no lleva ARCHIVO")
}
