package main

import (
	"fmt"
	"strings"
	"time"
)

// Made-up customers and sales. Each is derived from its number, so that a load that
// was interrupted goes on with the same ones.

var firstNames = strings.Fields(`María José Guadalupe Juan Francisco Luis Juana Antonio Margarita Jesús Alejandra Miguel
	Verónica Pedro Leticia Manuel Rosa Carlos Elizabeth Jorge Patricia Ricardo Gabriela Eduardo Adriana Fernando Martha
	Roberto Araceli Javier Silvia Rafael Yolanda Sergio Claudia Óscar Lucía Arturo Mónica Daniel Teresa Raúl Josefina
	Alfredo Irma Héctor Norma Víctor Rocío Enrique Andrés Ángel Sofía Valentina Santiago Mateo Ximena Camila Emiliano`)

var surnames = strings.Fields(`Hernández García Martínez López González Pérez Rodríguez Sánchez Ramírez Cruz Flores Gómez
	Morales Vázquez Reyes Jiménez Torres Díaz Gutiérrez Ruiz Mendoza Aguilar Ortiz Moreno Castillo Romero Álvarez Méndez
	Chávez Rivera Juárez Ramos Domínguez Herrera Medina Castro Vargas Guzmán Velázquez Rojas Contreras Salazar Luna Ortega
	Santiago Guerrero Estrada Bautista Cortés Soto Alvarado Espinoza Lara Ávila Ríos Cervantes Silva Delgado Aguiar Nájera
	Núñez Peña Cárdenas Ibarra Zamora Valdez Pacheco Maldonado`)

// The texts that searches look for. A thousand customers have the surname. The last
// two match nobody, but every three characters of noNeedleParts match somebody.
const (
	rareSurname   = "Ixtlilxóchitl"
	shortNeedle   = "gar"
	noNeedle      = "wqxzkv"
	noNeedleParts = "garciarcia"
)

// A person is a customer of a dataset.
type person struct{ first, last, email, phone string }

// personOf makes customer i of so many, counted from 0.
func personOf(i, customers int64) person {
	h := mix(uint64(i))
	// The lower of two numbers makes the first of a list the most frequent.
	pick := func(list []string) string {
		a, b := h%uint64(len(list)), h>>24%uint64(len(list))
		h = mix(h)
		return list[min(a, b)]
	}
	p := person{first: pick(firstNames), last: pick(surnames)}
	local := p.first + "." + p.last
	if every := max(customers/1000, 10); i%every == 0 && i/every < 1000 {
		p.last = rareSurname
	} else {
		p.last += " " + pick(surnames)
	}
	domains := []string{"correo.example", "mail.example", "buzon.example", "empresa.example"}
	p.email = fmt.Sprintf("%s%d@%s", plain.Replace(strings.ToLower(local)), i, domains[h%4])
	const numbers = 89_999_999 // and 7919 have no common divisor
	p.phone = fmt.Sprintf("+5255%08d", 10_000_000+i*7919%numbers)
	return p
}

var plain = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ñ", "n")

// mix scatters a number over all 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Above inOrder customers, turns go in the order of customers. Scattered turns would
// each change a page of their own, and loading would take hours. But then sales by
// time are in the order of customers too, which is no fair data for target 8.
const inOrder = 2_000_000

// turn returns the customer of turn i. In as many turns as there are customers, each
// has one. Up to inOrder customers the turns are scattered.
func turn(i, customers int64) int64 {
	if customers > inOrder {
		return i % customers
	}
	step := customers*618/1000 | 1
	for gcd(step, customers) != 1 {
		step += 2
	}
	return i % customers * step % customers
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// The sales of a dataset lie in the saleDays days before it was begun.
const saleDays = 300

// The last of every returnEvery sales is a return of the sale before it.
const returnEvery = 50

// saleRow returns the CSV line, without its end, of sale i of so many, counted from
// 0.
func saleRow(i, sales, customers int64, begun time.Time) string {
	of, kind := i, "Purchase"
	if i%returnEvery == returnEvery-1 {
		of, kind = i-1, "Return"
	}
	p := personOf(turn(of, customers), customers)
	h := mix(^uint64(of))
	quantity, price := 1+h%3, 20+h>>8%180
	at := begun.Add(-time.Duration(float64(saleDays*24*time.Hour) * float64(sales-i) / float64(sales))).UTC()
	return fmt.Sprintf("%s,%s,%s,,%s,%d,%s,%d,%d,",
		saleName(of), at.Format("2006-01-02T15:04:05.000Z"), p.email, kind, quantity*price, []string{"GRANO-500", "TAZA-1", "PAN-7", "TE-3"}[h>>16%4], quantity, price)
}

// saleName returns the externalId of a sale.
func saleName(i int64) string { return fmt.Sprintf("T-%d", i) }
