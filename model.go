package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// What sello keeps, as keys of the store. Numbers in keys are fixed width,
// most significant byte first, so that bytewise order is numeric order.
// Sequences count from 1 without holes: the last number given is the total, and
// any page of a list is one seek.
//
// What belongs to one customer lies together under `c org cust`, so that a
// write of points changes neighbouring keys; movements, sales and replays
// grow at their end.

// A table is the entries whose keys have one shape.
type table int

const (
	tableVersion table = iota
	tableWriter
	tableSandbox
	tableSandboxStart
	tableOrganizations
	tableConfigurations
	tableSlugs
	tableCodeSecrets
	tableAPIKeys
	tableKeyList
	tableUsage
	tablePurses
	tableProfiles
	tableAccounts
	tableLots
	tablePending
	tableExpiring
	tableBases
	tableRuleUses
	tableRewardUses
	tableHoldsOf
	tableIdentities
	tableMovements
	tableDue
	tableCustomersByExternalID
	tableBirthdayTurns
	tableBirthdays
	tableStatuses
	tableStatusCounts
	tableMerges
	tableSales
	tableRedemptions
	tableRewardCounts
	tableReplays
	tableReplaySlices
	tableReplayNames
	tableRecounts
	tableAudit
	tableAuditIndex
	tableEvents
	tableDueVouchers
	tableWebhooks
	tableCounters
	tableCustomers
	tablePurchases
	tableReturns
	tableSalesByID
	tableRedemptionsByID
	tableCodes
	tableRedemptionsOf
	tableRedemptionState
	tableRedeemedRewards
	tableVoucherExpiries
	tableRedemptionTimes
	tableExternalIDs
	tableIndexed
	tableSearch
	tableSalesByTime
	tableSlots
	tableSaleLog
	tableTallies
	tableActive
	tableTiers
	tableUsers
	tableSecondFactors
	tableUserSessions
	tableMembershipsOf
	tableDevices
	tableEmails
	tableMemberships
	tableSessions
	tableInvitations
	tableInvitationList
	tableHolds
	tableRuleLives
	tableRuleBudgets
	tableConfigVersions
	tableReferences
	tableHandouts
	tableUndoRequests
	tableCards
	tableCardOf
	tableJoins
	tableJoinCodes
	tableJoinTurns
	tableTickets
	tableTicketsByExternalID
	tableTicketTimes
	tableTicketCodes
	tableTicketSigners
	manyTables
)

// A trait is a property that a table has besides its keys.
type trait uint16

const (
	primary trait = 1 << iota // cannot be rebuilt; every other table follows from primary ones and is written with them
	dense                     // grows only at the end of each organization's part, or nearly so
	setting                   // all tables of its letter are settings, which engine_cache.go keeps between requests

	// How a verification compares the entries with the expected ones (verify_gather.go).
	byContent // by a sum over what the entries say: one entry may come from several records
	byEntry   // each entry is looked up: there are few
	byCount   // by the number of the entries, which are primary or compared where they are read
	scanned   // by scanTable, else its records are counted where they are read
	untold    // no problem names it
	shared    // compared once, for all organizations together
)

// tables declares every table: the shape of its keys, with parts as in keyWidths;
// its name, with which its row in docs/file-format.md begins; its name in Spanish; its traits. A key
// whose shape says org belongs to that organization's part. Identities are the
// exception: they are looked up across organizations.
var tables = [manyTables]struct {
	shape  string
	name   string
	words  string
	traits trait
}{
	tableVersion:               {"v", "schema version", "versión del esquema", primary | setting},              // schema.go
	tableWriter:                {"v 'w'", "sello that wrote the file last", "sello que lo escribió", setting},  // its version (schema.go)
	tableSandbox:               {"v 's'", "sandbox", "pruebas", primary | setting},                             // when its clock began, and its key (sandbox.go)
	tableSandboxStart:          {"v 's' key", "sandbox as it began", "pruebas, al empezar", primary | setting}, // the value of another key
	tableOrganizations:         {"o 'n'", "number of organizations", "número de organizaciones", primary | setting},
	tableConfigurations:        {"o 'c' org", "configuration", "configuraciones", primary | setting}, // JSON
	tableSlugs:                 {"o 's' slug", "organization by slug", "slugs", setting | shared | byEntry},
	tableCodeSecrets:           {"o 'k' org", "secret of codes", "secretos de códigos", primary | setting},      // of customers' codes (engine.go)
	tableAPIKeys:               {"a hash(32)", "API key", "API keys", primary | setting | shared | byCount},     // JSON, by the SHA-256 of the key
	tableKeyList:               {"k org keyID", "API key by id", "lista de API keys", scanned | byCount},        // its hash
	tableUsage:                 {"u keyID", "usage of a key", "uso de API keys", primary},                       // day, month, last used
	tablePurses:                {"P org purse day", "purse of a key or member", "puntos dados a mano", primary}, // what its adds gave on the day (keys.go)
	tableProfiles:              {"c org cust 0", "customer", "datos de clientes", primary},
	tableAccounts:              {"c org cust 1 prog", "account", "cuentas", 0},                                                                         // balance, pending, lifetime, lots while they are few, chain of movements
	tableLots:                  {"c org cust 2 prog expiry seq", "available lot", "lotes disponibles", 0},                                              // where the account has many; seq is its credit's
	tablePending:               {"c org cust 3 prog from seq", "pending lot", "lotes pendientes", 0},                                                   // where the account has many; available at from; seq is its credit's
	tableExpiring:              {"c org cust 4 prog expiry", "sum of the available lots", "sumas por vencimiento", 0},                                  // of the lots with that expiry, where the account has many
	tableBases:                 {"c org cust 5 prog day", "day of a rolling tier window", "días de niveles", 0},                                        // earned, spent and purchases while a rolling window holds it, where the account has many
	tableRuleUses:              {"c org cust 6 prog day rule", "use of a rule", "usos de reglas", 0},                                                   // how often a customer used it on a recent day
	tableRewardUses:            {"c org cust 7 reward", "customer's redemptions of a reward", "canjes de clientes por recompensa", untold | byContent}, // cancelled ones not counted
	tableHoldsOf:               {"c org cust 8 hold", "customer's holds", "retenciones de clientes", 0},                                                // empty; also of holds that have ended
	tableIdentities:            {"p kind value 0 org", "identity", "identidades", shared | byContent},                                                  // cust, person id; kind is 'e' e-mail, 'p' phone
	tableMovements:             {"m org seq", "movement", "movimientos", primary | dense | byCount},
	tableDue:                   {"d due org cust prog", "due account", "cambios por venir", shared | byContent},                          // empty; the account changes by itself at due
	tableCustomersByExternalID: {"E org hash(16)", "customer by externalId", "clientes por externalId", scanned | byContent},             // cust
	tableBirthdayTurns:         {"D org", "next birthdays", "próximos cumpleaños", primary},                                              // the day, and how far in it the sweep has come (sweep_birthdays.go)
	tableBirthdays:             {"D org month date cust", "customer by birthday", "clientes por cumpleaños", scanned | byContent},        // nothing
	tableStatuses:              {"K org 0 status block", "customers by status", "clientes por estado", scanned | byEntry},                // sets of their numbers, but for Active ones (customers_lists.go)
	tableStatusCounts:          {"K org 1 status group", "customers of a status", "recuentos de clientes por estado", scanned | byEntry}, // how many of a group of 65,536
	tableMerges:                {"J org n n", "merges", "fusiones", scanned | byContent},                                                 // the id of a Merged customer, by its survivor's number and its own (merges.go)
	tableSales:                 {"t org seq", "sale", "ventas de clientes", primary | dense | byCount},
	tableRedemptions:           {"r org seq", "redemption", "canjes", primary | dense | byCount},
	tableRewardCounts:          {"s org reward", "redemptions of a reward", "canjes por recompensa", scanned | byEntry},                     // cancelled ones not counted
	tableReplays:               {"i org number", "replay", "respuestas guardadas", primary | dense},                                         // the answer to a POST (retries.go)
	tableReplaySlices:          {"I org", "slices of replays", "tramos de respuestas guardadas", primary},                                   // where replays are, by name
	tableReplayNames:           {"I org slice name", "name of a replay", "nombres de respuestas guardadas", primary},                        // its number
	tableRecounts:              {"q org", "next customer to recount", "recuentos", primary},                                                 // by number (sweep_recount.go)
	tableAudit:                 {"A org seq", "audit log", "auditoría", primary | dense | byCount},                                          // who changed what (audit.go)
	tableAuditIndex:            {"B org field hash(16) block", "index of the audit log", "índice de la auditoría", scanned | byContent},     // which of the block's entries have the value in the field
	tableEvents:                {"F org seq", "events", "eventos", primary | dense | byCount},                                               // events of a transaction, by the first (events.go)
	tableDueVouchers:           {"W due org seq", "due voucher", "vales por vencer", shared | byContent},                                    // empty; the Issued one expires by itself at due
	tableWebhooks:              {"H org hook", "webhook", "webhooks", primary | byCount},                                                    // how far its receiver has come, and its secrets (events_receivers.go)
	tableCounters:              {"n org", "counters", "contadores", 0},                                                                      // the last of each sequence; the latest moment written, which is primary
	tableCustomers:             {"l org 'c' n", "list of customers", "clientes", dense | scanned | byContent},                               // cust, in the order they came
	tablePurchases:             {"l org 'p' n", "list of purchases", "compras", dense | scanned | byContent},                                // seq of the sale
	tableReturns:               {"l org 'r' n", "list of returns", "devoluciones", dense | scanned | byContent},                             // seq of the sale
	tableSalesByID:             {"T org id", "sale by id", "ventas por id", scanned | byContent},                                            // seq
	tableRedemptionsByID:       {"R org id", "redemption by id", "canjes por id", scanned | byContent},                                      // seq
	tableCodes:                 {"w org code", "redemption by code", "códigos", scanned | byContent},                                        // seq
	tableRedemptionsOf:         {"c org cust 9 block", "customer's redemptions", "canjes por cliente", untold | byContent},                  // seq of each, as a set, like the next three (rewards_redemptions.go)
	tableRedemptionState:       {"G org 's' state block", "redemptions by state", "canjes por estado", scanned | byContent},                 // an Issued one stays there when it expires
	tableRedeemedRewards:       {"G org 'p' reward block", "redeemed rewards", "recompensas canjeadas", scanned | byContent},                // cancelled ones counted
	tableVoucherExpiries:       {"G org 'x' block expiry", "vouchers by expiry", "vales por vencimiento", scanned | byContent},              // of Issued ones that expire
	tableRedemptionTimes:       {"G org 't' block", "times of redemptions", "fechas de canjes", scanned | byContent},                        // the first and the last in the block
	tableExternalIDs:           {"x org hash(16) seq", "sale by externalId", "externalIds", scanned | byContent},                            // empty
	tableIndexed:               {"g org", "size of the search index", "tamaño del índice de búsqueda", 0},                                   // how many customers are in it
	tableSearch:                {"g org block gram", "search index", "índice de búsqueda", scanned | byContent},                             // where in the texts of the block's customers the gram occurs (internal/ngram)
	tableSalesByTime:           {"h org time seq", "sale by time", "ventas por fecha", dense | scanned | byContent},                         // its kind, 'p' or 'r', and its customer's number (4)
	tableSlots:                 {"e org level slot", "slot of time", "tramos de tiempo", scanned | byContent},                               // how many purchases and returns were in it (sales_log.go)
	tableSaleLog:               {"j org block", "log of sales", "registro de ventas", dense | scanned | byContent},                          // their customers and moments, in blocks (sales_log.go)
	tableTallies:               {"y org prog day", "tally of a day", "estadísticas", scanned | byEntry},                                     // stats.go
	tableActive:                {"z org prog span day block", "active customers", "clientes activos", scanned | byContent},                  // customers who bought on the day or in the month (stats.go)
	tableTiers:                 {"b org prog tier", "customers in a tier", "niveles", scanned | byEntry},                                    // how many (stats.go)
	tableUsers:                 {"U user 0", "user", "usuarios", primary},                                                                   // of the panel (users.go)
	tableSecondFactors:         {"U user 1", "second factor of a user", "segundos factores", primary},                                       // users_factors.go
	tableUserSessions:          {"U user 2 hash(32)", "sessions of a user", "sesiones por usuario", shared | byContent},                     // empty
	tableMembershipsOf:         {"U user 3 org", "organizations of a user", "organizaciones por usuario", shared | byContent},               // empty
	tableDevices:               {"U user 4 hash(32)", "device of a user", "dispositivos de usuarios", primary},                              // by the SHA-256 of its token (users_sessions.go)
	tableEmails:                {"N email", "user by e-mail", "usuarios por email", shared | byContent},                                     // user
	tableMemberships:           {"M org user", "membership", "miembros de organizaciones", primary},                                         // what the user is in the organization
	tableSessions:              {"S hash(32)", "session", "sesiones", primary},                                                              // by the SHA-256 of its token (users_sessions.go)
	tableInvitations:           {"V hash(32)", "invitation", "invitaciones", primary},                                                       // by the SHA-256 of its token (users_invitations.go)
	tableInvitationList:        {"L org invitation", "invitations of an organization", "invitaciones por organización", shared | byContent}, // its hash
	tableHolds:                 {"O org hold", "hold", "retenciones", primary | scanned | byCount},                                          // points set aside (points_holds.go)
	tableRuleLives:             {"c org cust 10 prog rule", "rule in a customer's life", "usos de reglas en total", 0},                      // how often the customer used it in all (sales_rules.go)
	tableRuleBudgets:           {"C org prog rule", "budget of a rule", "presupuestos de reglas", scanned | byEntry},                        // what it gave (sales_rules.go)
	tableConfigVersions:        {"f org version", "version of the configuration", "versiones de la configuración", primary | byCount},       // each that was applied, compressed (engine.go)
	tableReferences:            {"X org hash(16) seq", "movement by reference", "movimientos por referencia", scanned | byContent},          // empty (points_movements.go)
	tableHandouts:              {"Q org", "points for a segment", "puntos para un segmento", primary},                                       // the last, and how far it has come (handouts.go)
	tableUndoRequests:          {"G org 'u' id", "request to undo", "peticiones de deshacer", primary},                                      // a sale or a redemption, by its id (sales_undone.go)
	tableCards:                 {"Y 'c' hash(32)", "card", "tarjetas", primary},                                                             // by the SHA-256 of its token (cards.go)
	tableCardOf:                {"c org cust 11", "card of a customer", "tarjetas por cliente", 0},                                          // its hash, and when it expires
	tableJoins:                 {"Y 'p' hash(32)", "pre-enrolment", "altas por terminar", primary},                                          // by the SHA-256 of its token (cards_joining.go)
	tableJoinCodes:             {"Y 'j' org code", "pre-enrolment by code", "códigos de alta", shared | byContent},                          // its hash
	tableJoinTurns:             {"Y 'q' org seq", "pre-enrolments in order", "altas por terminar, en orden", shared | byContent},            // its hash
	tableTickets:               {"G org 'k' id", "ticket", "tickets", primary | byCount},                                                    // a purchase without a customer (sales_tickets.go)
	tableTicketsByExternalID:   {"G org 'e' hash(16)", "ticket by externalId", "tickets por externalId", scanned | byContent},               // its id
	tableTicketTimes:           {"G org 'o' time id", "ticket by time", "tickets por fecha", scanned | byContent},                           // nothing
	tableTicketCodes:           {"Y 't' code", "ticket by code", "códigos de tickets", shared | byContent},                                  // its organization and id
	tableTicketSigners:         {"Y 'n' signer", "key that signs tickets", "claves que firman tickets", primary | shared | byCount},         // by its number (sales_signed.go)
}

// keyWidths gives the width of each part of a key in bytes; 0 means text. Text ends
// with the key or before a zero byte. A part in brackets may be missing.
var keyWidths = map[string]int{
	"date": 1, "field": 1, "kind": 1, "level": 1, "month": 1, "part": 1, "span": 1, "state": 1, "status": 1,
	"block": 4, "day": 4, "group": 4, "org": 4, "prog": 4,
	"due": 8, "end": 8, "expiry": 8, "from": 8, "n": 8, "number": 8, "seq": 8, "slice": 8, "slot": 8, "time": 8, "version": 8, // times are milliseconds
	"signer": 2, "cust": 16, "hash(16)": 16, "id": 16, "keyID": 16, "name": 16, "purse": 16, "reward": 16, "user": 16, "hold": 16, "invitation": 16, "hash(32)": 32,
	"code": 0, "email": 0, "key": 0, "gram": 0, "hook": 0, "rule": 0, "slug": 0, "tier": 0, "value": 0,
}

type keyPart struct {
	name     string // "" where it is fixed
	fixed    byte
	width    int // 0: text
	optional bool
}

// keyParts are the shapes of tables, parsed.
var keyParts = func() (all [manyTables][]keyPart) {
	for t, declared := range tables {
		for i, word := range strings.Fields(declared.shape) {
			p := keyPart{width: 1}
			switch {
			case i == 0:
				p.fixed = word[0]
			case word[0] == '\'':
				p.fixed = word[1]
			case word[0] >= '0' && word[0] <= '9':
				n, err := strconv.ParseUint(word, 10, 8)
				if err != nil {
					panic(err)
				}
				p.fixed = byte(n)
			default:
				p.name = strings.Trim(word, "[]")
				p.optional = p.name != word
				known := false
				if p.width, known = keyWidths[p.name]; !known {
					panic("no width of " + word)
				}
			}
			all[t] = append(all[t], p)
		}
	}
	return all
}()

// lettersOf returns the letters of the tables that have a trait.
func lettersOf(of trait) (letters string) {
	for _, declared := range tables {
		if letter := declared.shape[:1]; declared.traits&of != 0 && !strings.Contains(letters, letter) {
			letters += letter
		}
	}
	return letters
}

// denseTables is for disk.Options.
var denseTables = lettersOf(dense)

// fixed returns the bytes that all keys of the table begin with.
func (t table) fixed() (k key) {
	for _, p := range keyParts[t] {
		if p.name != "" {
			break
		}
		k = k.byte(p.fixed)
	}
	return k
}

// org returns the offset of the organization's number in keys of the table. A negative
// offset counts from the end of the key; 0 means that the keys have no such number.
func (t table) org() (at int) {
	for i, p := range keyParts[t] {
		switch {
		case p.name == "org":
			return at
		case p.width == 0 && i < len(keyParts[t])-1: // it ends with a zero and org
			return -4
		}
		at += p.width
	}
	return 0
}

// in returns what the table's keys in an organization begin with. The table is one
// whose letter is followed by org.
func (t table) in(org uint32) key {
	k := orgKey(keyParts[t][0].fixed, org)
	if p := keyParts[t]; len(p) > 2 && p[2].name == "" {
		k = k.byte(p[2].fixed)
	}
	return k
}

func (t table) block(k []byte) uint64 {
	at := 0
	for _, p := range keyParts[t] {
		if p.name == "block" {
			return uint64(uint32In(k[at:]))
		}
		at += p.width
	}
	return 0
}

// has reports whether k has the shape of the table's keys.
func (t table) has(k []byte) bool {
	for i, p := range keyParts[t] {
		switch {
		case p.width == 0 && i+1 < len(keyParts[t]):
			k = k[max(bytes.IndexByte(k, 0), 0):]
		case p.width == 0:
			return len(k) > 0
		case len(k) < p.width:
			return p.optional && len(k) == 0
		case p.name == "" && k[0] != p.fixed:
			return false
		default:
			k = k[p.width:]
		}
	}
	return len(k) == 0
}

func tableOf(k []byte) (table, bool) {
	for t := range manyTables {
		if t.has(k) {
			return t, true
		}
	}
	return manyTables, false
}

// A key is built from its parts in order.
type key []byte

func newKey(table byte) key             { return append(make(key, 0, 48), table) }
func orgKey(table byte, org uint32) key { return newKey(table).u32(org) }
func (k key) byte(v byte) key           { return append(k, v) }
func (k key) u32(v uint32) key          { return binary.BigEndian.AppendUint32(k, v) }
func (k key) u64(v uint64) key          { return binary.BigEndian.AppendUint64(k, v) }
func (k key) instant(v instant) key     { return k.u64(uint64(v) ^ 1<<63) } // so that negative ones sort first
func (k key) day(v day) key             { return k.u32(uint32(v) ^ 1<<31) }
func (k key) id(v id) key               { return append(k, v[:]...) }
func (k key) text(v string) key         { return append(k, v...) }

// after returns the end of the range of all keys that begin with k: the least key
// above them all. nil means that there is none.
func (k key) after() []byte {
	end := append(key(nil), k...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// scan yields the entries whose keys begin with prefix.
func scan(tx Tx, prefix key, reverse bool) iter.Seq2[Entry, error] {
	return tx.Scan(prefix, prefix.after(), reverse)
}

func hasAny(tx Tx, prefix key) (bool, error) {
	for _, err := range scan(tx, prefix, false) {
		return err == nil, err
	}
	return false, nil
}

// keyEnds reads what comes after prefix in the keys of a table that begin with it.
func keyEnds[T any](tx Tx, t table, prefix key, read func(end []byte) T) (list []T, err error) {
	for e, err := range scan(tx, prefix, false) {
		if err == nil && !t.has(e.Key) {
			err = unreadable(e.Key)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, read(e.Key[len(prefix):]))
	}
	return list, nil
}

// deleteRange deletes the first entries in [lo, hi), most of them at most.
func deleteRange(tx Tx, lo, hi key, most int) error {
	var old []key
	for e, err := range tx.Scan(lo, hi, false) {
		if err != nil {
			return err
		}
		if old = append(old, slices.Clone(e.Key)); len(old) == most {
			break
		}
	}
	for _, k := range old {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// A recordError says which record cannot be read, and why.
type recordError struct {
	key []byte
	err error
}

func unreadable(k []byte) error { return atKey(k, errRecord) }

// atKey adds the key k to an error of reading its record. nil stays nil.
func atKey(k []byte, err error) error {
	if err == nil {
		return nil
	}
	return &recordError{bytes.Clone(k), err}
}

func (e *recordError) Unwrap() error { return e.err }

// isDamaged reports whether an error is of what the store holds: other organizations may
// be whole.
func isDamaged(err error) bool {
	_, ok := errors.AsType[*recordError](err)
	return ok || saysDamaged(err)
}

func (e *recordError) Error() string {
	t, ok := tableOf(e.key)
	if !ok {
		return e.err.Error()
	}
	return fmt.Sprintf("%v: %s %s", e.err, tables[t].name, t.inHex(e.key))
}

// inHex returns a key of the table as errors show it. It ends before any text,
// which clients may have sent.
func (t table) inHex(k []byte) string {
	n := 0
	for _, p := range keyParts[t] {
		if p.width == 0 {
			return fmt.Sprintf("%x…", k[:n])
		}
		n += p.width
	}
	return fmt.Sprintf("%x", k)
}

// get reads the record at key; nil without an error where there is none.
func get[T any, P recordPointer[T]](tx Tx, key []byte) (*T, error) {
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	return decodeEntry[T, P](Entry{Key: key, Value: value})
}

// existing reads the record at a key that must have one.
func existing[T any, P recordPointer[T]](tx Tx, key []byte) (*T, error) {
	v, err := get[T, P](tx, key)
	if err == nil && v == nil {
		err = unreadable(key)
	}
	return v, err
}

// decodeEntry reads the record of an entry.
func decodeEntry[T any, P recordPointer[T]](e Entry) (*T, error) {
	v, err := decodeRecord[T, P](e.Value)
	return v, atKey(e.Key, err)
}

func put[T any, P recordPointer[T]](tx Tx, key []byte, v P) error {
	return tx.Put(key, appendRecord(make([]byte, 0, 256), v))
}

// Numbers and references kept alone are 8 bytes, most significant first.

func getUint(tx Tx, key []byte) (uint64, bool, error) {
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return 0, false, err
	}
	if len(value) != 8 {
		return 0, false, unreadable(key)
	}
	return uintIn(value), true, nil
}

func putUint(tx Tx, key []byte, v uint64) error {
	return tx.Put(key, numberValue(v))
}

func customerKey(org uint32, cust id, part byte) key { return orgKey('c', org).id(cust).byte(part) }

// Parts of what is kept under a customer.
const (
	partCustomer = iota
	partAccount
	partLot
	partPending
	partExpiring
	partBasis
	partRuleUse
	partRewardUse
	partHold
	partRedemptions
	partRuleLife
	partCard
)

// organizationCount returns how many organizations there are; they have the numbers from 1 on.
func organizationCount(tx Tx) (uint64, error) {
	n, _, err := getUint(tx, newKey('o').byte('n'))
	return n, err
}

// organizationNumber returns the number of the organization with a slug; 0 if there is none.
func organizationNumber(tx Tx, slug string) (uint32, error) {
	n, _, err := getUint(tx, newKey('o').byte('s').text(slug))
	return uint32(n), err
}

// A chain orders the records of one account (or customer) that lie scattered
// in a sequence of the whole organization. Its n-th record holds where record
// n-1 is and where the record is whose number is n with its lowest set bit
// cleared, so that any record is found from the last one in O(log² n) steps,
// and appending reads nothing: the chain remembers the records that the next
// ones will point to.
type chain struct {
	N    uint64   // how many records there are
	Path []uint64 // where record N is, then record N with its set bits cleared one by one, lowest first; never changed in place
}

// A link is the part of a chain that one of its records holds. Zero means no record.
type link struct{ N, Prev, Jump uint64 }

// last returns where the newest record is; 0 in an empty chain.
func (c *chain) last() uint64 {
	if len(c.Path) == 0 {
		return 0
	}
	return c.Path[0]
}

// chainFrom yields the record at seq and its predecessors in the chain, newest first. No record
// is at 0. A loop may change what it is given.
func chainFrom[T any](seq uint64, at func(seq uint64) (T, error), previous func(T) uint64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for seq != 0 {
			v, err := at(seq)
			if err == nil {
				seq = previous(v)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// append adds the record that will be at seq.
func (c *chain) append(seq uint64) link {
	l := link{N: c.N + 1, Prev: c.last()}
	keep := c.Path
	for n := c.N; n&l.N != n; n &= n - 1 { // drop numbers that clearing bits of N+1 no longer gives
		keep = keep[1:]
	}
	if len(keep) > 0 {
		l.Jump = keep[0]
	}
	c.N = l.N
	c.Path = append([]uint64{seq}, keep...)
	return l
}

// seek returns where record n of the chain is, 1 ≤ n ≤ c.N.
func (c *chain) seek(n uint64, linkAt func(seq uint64) (link, error)) (uint64, error) {
	at, seq := c.N, c.last()
	for at > n {
		l, err := linkAt(seq)
		if err != nil {
			return 0, err
		}
		if jump := at & (at - 1); jump >= n {
			at, seq = jump, l.Jump
		} else {
			at, seq = at-1, l.Prev
		}
	}
	return seq, nil
}

// lastUntil returns where the newest record at or before until is; 0 if there is
// none.
func (c *chain) lastUntil(until uint64, linkAt func(seq uint64) (link, error)) (uint64, error) {
	seq := c.last()
	for seq > until {
		l, err := linkAt(seq)
		if err != nil {
			return 0, err
		}
		if seq = l.Prev; l.Jump > until {
			seq = l.Jump
		}
	}
	return seq, nil
}

func (h *chain) fields(c *coder) { c.uint(&h.N); c.uints(&h.Path) }
func (l *link) fields(c *coder)  { c.uint(&l.N); c.uint(&l.Prev); c.uint(&l.Jump) }

// A page is a part of a list, as clients number them: from 1.
type page struct{ number, limit uint64 }

// span turns a page of a list of total records, newest first, into the
// numbers of its first and last record, first ≥ last ≥ 1; ok is false for a
// page beyond the end.
func (p page) span(total uint64) (first, last uint64, ok bool) {
	skip := p.skip()
	if skip >= total {
		return 0, 0, false
	}
	first = total - skip
	return first, first - min(first, p.limit) + 1, true
}

// skip returns how many records lie on the pages before this one. Where the product
// might not fit, it returns a number above every total.
func (p page) skip() uint64 {
	if p.number-1 > 1<<40 {
		return 1 << 50
	}
	return (p.number - 1) * p.limit
}

type typeCount struct{ purchases, returns uint64 }

func (n *typeCount) fields(c *coder) { c.uint(&n.purchases); c.uint(&n.returns) }

func (n *typeCount) count(purchase bool) {
	if purchase {
		n.purchases++
	} else {
		n.returns++
	}
}
