package main

// Besides tables of the store, a verification compares sums over data that two of
// its parts both read.
const (
	tableRecords  = manyTables + iota // all that is kept under customers
	tableSellers                      // the customer of each sale
	tableRedeemed                     // the debit of each redemption
	tableNoted                        // vouchers that are noted in the sale that they were used in
	manySums
)

// comparisons says which tables are compared, and how.
var comparisons = [manySums]struct {
	scanned bool // by scanTable; else its records are counted where they are read
	untold  bool // no problem names it
	compare comparison
}{
	tableSlugs:                 {compare: byEntry},
	tableIdentities:            {},
	tableDue:                   {},
	tableDueVouchers:           {},
	tableEvents:                {compare: byCount},
	tableHolds:                 {scanned: true, compare: byCount},
	tableRuleBudgets:           {scanned: true, compare: byEntry},
	tableConfigVersions:        {compare: byCount},
	tableWebhooks:              {compare: byCount},
	tableAPIKeys:               {compare: byCount},
	tableMovements:             {compare: byCount},
	tableCustomersByExternalID: {scanned: true},
	tableBirthdays:             {scanned: true}, // with tableBirthdayTurns
	tableStatuses:              {scanned: true, compare: byEntry},
	tableStatusCounts:          {scanned: true, compare: byEntry},
	tableMerges:                {scanned: true},
	tableSales:                 {compare: byCount},
	tableRedemptions:           {compare: byCount},
	tableCustomers:             {scanned: true},
	tablePurchases:             {scanned: true},
	tableReturns:               {scanned: true},
	tableSalesByID:             {scanned: true},
	tableRedemptionsByID:       {scanned: true},
	tableCodes:                 {scanned: true},
	tableRedemptionsOf:         {untold: true, compare: byContent},
	tableRedemptionState:       {scanned: true, compare: byContent},
	tableRedeemedRewards:       {scanned: true, compare: byContent},
	tableVoucherExpiries:       {scanned: true, compare: byContent},
	tableRedemptionTimes:       {scanned: true},
	tableExternalIDs:           {scanned: true},
	tableReferences:            {scanned: true},
	tableRewardCounts:          {scanned: true, compare: byEntry},
	tableSearch:                {scanned: true, compare: byContent}, // with tableIndexed
	tableKeyList:               {scanned: true, compare: byCount},
	tableSalesByTime:           {scanned: true},
	tableSlots:                 {scanned: true, compare: byContent},
	tableSaleLog:               {scanned: true},
	tableTallies:               {scanned: true, compare: byEntry},
	tableActive:                {scanned: true, compare: byContent},
	tableTiers:                 {scanned: true, compare: byEntry},
	tableAudit:                 {compare: byCount},
	tableAuditIndex:            {scanned: true, compare: byContent},
	tableEmails:                {},
	tableUserSessions:          {},
	tableMembershipsOf:         {},
	tableInvitationList:        {},
	tableRecords:               {compare: byCount},
	tableRewardUses:            {untold: true, compare: byContent},
	tableSellers:               {untold: true, compare: byContent},
	tableRedeemed:              {untold: true, compare: byContent},
	tableNoted:                 {untold: true, compare: byContent},
}

// inWords returns the name of what is compared.
func (t table) inWords() string {
	if t == tableRecords {
		return "registros de clientes"
	}
	return tableWords[t]
}

// A comparison is how the entries of a table are compared with those it should have.
type comparison int

const (
	bySum     comparison = iota // by a sum over its entries, each with its value
	byContent                   // by a sum over what its entries say: one entry may come from several records
	byEntry                     // each entry is looked up: there are few
	byCount                     // by the number of its entries, which are primary or compared where they are read
)

// Tables in the order in which problems are reported.
var (
	tablesOfAll = []table{tableIdentities, tableDue, tableDueVouchers, tableAPIKeys, tableSlugs, tableEmails, tableUserSessions, tableMembershipsOf, tableInvitationList}
	tablesOfOne = []table{
		tableMovements, tableSales, tableRedemptions, tableCustomers, tablePurchases, tableReturns, tableSalesByID,
		tableRedemptionsByID, tableCodes, tableRedemptionsOf, tableRedemptionState, tableRedeemedRewards, tableVoucherExpiries,
		tableRedemptionTimes, tableExternalIDs, tableRewardCounts, tableSearch, tableKeyList, tableSalesByTime,
		tableSlots, tableSaleLog, tableTallies, tableActive, tableTiers, tableCustomersByExternalID, tableBirthdays,
		tableStatuses, tableStatusCounts, tableMerges, tableAudit, tableAuditIndex, tableEvents, tableWebhooks, tableHolds, tableRuleBudgets, tableConfigVersions, tableReferences, tableRecords,
		tableRewardUses, tableSellers, tableRedeemed, tableNoted,
	}
)

type tableSet [manySums]bool

func (s *tableSet) join(o *tableSet) {
	for t := range s {
		s[t] = s[t] || o[t]
	}
}

// alwaysCareful returns the tables whose entries are looked up in every pass.
func alwaysCareful() (s tableSet) {
	for t, c := range comparisons {
		s[t] = c.compare == byEntry
	}
	return s
}

// A tableSum is how many entries there are, and the sum of their hashes. Two
// tables with the same sum have the same entries, except for a chance of one in
// 2^64: the hash has a new seed in each verification.
type tableSum struct{ entries, sum uint64 }

func (s *tableSum) add(hash uint64) { s.entries++; s.sum += hash }
func (s *tableSum) join(o tableSum) { s.entries += o.entries; s.sum += o.sum }
