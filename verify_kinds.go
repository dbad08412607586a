package main

// A table is one of those that a verification compares. The last ones are none of
// the store's: they are sums of the same kind over something that two parts of a
// verification both see.
type table int

const (
	tableSlugs table = iota
	tableIdentities
	tableDue
	tableAPIKeys
	tableMovements
	tableSales
	tableRedemptions
	tableCustomers
	tablePurchases
	tableReturns
	tableSalesByID
	tableRedemptionsByID
	tableCodes
	tableExternalIDs
	tableRewardCounts
	tableSearch
	tableKeyList
	tableSalesByTime
	tableSlots
	tableSaleLog
	tableTotals
	tableTallies
	tableActive
	tableTiers
	tableRecords
	tableRewardUses // those records of customers that say how often they redeemed a reward
	tableSellers    // the customer of each sale
	tableRedeemed   // the debit of each redemption
	manyTables
)

// tables say how each is compared.
var tables = [manyTables]struct {
	name    string // in Spanish; "" where no problem names it
	letter  byte   // of an organization's table
	kind    string // what follows the organization in its keys
	scanned bool   // by scanTable; else its records are counted where they are read
	compare comparison
}{
	tableSlugs:           {name: "slugs", compare: byEntry},
	tableIdentities:      {name: "identidades"},
	tableDue:             {name: "cambios por venir"},
	tableAPIKeys:         {name: "API keys", compare: byCount},
	tableMovements:       {name: "movimientos", letter: 'm', compare: byCount},
	tableSales:           {name: "ventas de clientes", letter: 't', compare: byCount},
	tableRedemptions:     {name: "canjes", letter: 'r', compare: byCount},
	tableCustomers:       {name: "clientes", letter: 'l', kind: "c", scanned: true},
	tablePurchases:       {name: "compras", letter: 'l', kind: "p", scanned: true},
	tableReturns:         {name: "devoluciones", letter: 'l', kind: "r", scanned: true},
	tableSalesByID:       {name: "ventas por id", letter: 'T', scanned: true},
	tableRedemptionsByID: {name: "canjes por id", letter: 'R', scanned: true},
	tableCodes:           {name: "códigos", letter: 'w', scanned: true},
	tableExternalIDs:     {name: "externalIds", letter: 'x', scanned: true},
	tableRewardCounts:    {name: "canjes por recompensa", letter: 's', scanned: true, compare: byEntry},
	tableSearch:          {name: "índice de búsqueda", letter: 'g', scanned: true, compare: byContent},
	tableKeyList:         {name: "lista de API keys", letter: 'k', scanned: true, compare: byCount},
	tableSalesByTime:     {name: "ventas por fecha", letter: 'h', scanned: true},
	tableSlots:           {name: "tramos de tiempo", letter: 'e', scanned: true, compare: byContent},
	tableSaleLog:         {name: "registro de ventas", letter: 'j', scanned: true, compare: byEntry},
	tableTotals:          {name: "totales de clientes", letter: 'f', scanned: true, compare: byEntry},
	tableTallies:         {name: "estadísticas", letter: 'y', scanned: true, compare: byEntry},
	tableActive:          {name: "clientes activos", letter: 'z', scanned: true, compare: byContent},
	tableTiers:           {name: "niveles", letter: 'b', scanned: true, compare: byEntry},
	tableRecords:         {name: "registros de clientes", letter: 'c', compare: byCount},
	tableRewardUses:      {compare: byContent},
	tableSellers:         {compare: byContent},
	tableRedeemed:        {compare: byContent},
}

// A comparison is how what is in a table is compared with what should be.
type comparison int

const (
	bySum     comparison = iota // over its entries, each with its value
	byContent                   // by a sum over what its entries say: several records make one
	byEntry                     // each is looked up: there are few
	byCount                     // of its entries, which are primary or compared where they are read
)

// Tables in the order in which they are told of.
var (
	tablesOfAll = []table{tableIdentities, tableDue, tableAPIKeys, tableSlugs}
	tablesOfOne = []table{
		tableMovements, tableSales, tableRedemptions, tableCustomers, tablePurchases, tableReturns, tableSalesByID,
		tableRedemptionsByID, tableCodes, tableExternalIDs, tableRewardCounts, tableSearch, tableKeyList, tableSalesByTime,
		tableSlots, tableSaleLog, tableTotals, tableTallies, tableActive, tableTiers, tableRecords,
		tableRewardUses, tableSellers, tableRedeemed,
	}
)

type tableSet [manyTables]bool

func (s *tableSet) join(o *tableSet) {
	for t := range s {
		s[t] = s[t] || o[t]
	}
}

// alwaysCareful are the tables whose entries are looked up in any case.
func alwaysCareful() (s tableSet) {
	for t := range tables {
		s[t] = tables[t].compare == byEntry
	}
	return s
}

// A tableSum is how many entries there are, and the sum of their hashes. Two
// tables with the same sum have the same entries but for a chance of one in 2^64:
// the hash has a new seed in each verification.
type tableSum struct{ entries, sum uint64 }

func (s *tableSum) add(hash uint64) { s.entries++; s.sum += hash }
func (s *tableSum) join(o tableSum) { s.entries += o.entries; s.sum += o.sum }
