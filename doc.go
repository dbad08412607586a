// Sello is a customer-loyalty backend: an organization's shops and apps call
// its HTTP API to enrol customers, register sales, give and take points, and
// redeem rewards. It keeps everything in one file.
//
// # Commands
//
//	sello serve            serve the API on a file
//	sello demo             make a sample organization and serve the API
//	sello apply            apply the configuration of an organization
//	sello export           show that configuration, or write customers, sales or movements as CSV
//	sello import           take in customers or sales from CSV
//	sello key              create, list or revoke API keys
//	sello backup           copy the file and check the copy, also while it is served
//	sello migrate          bring a file of an earlier schema to this one
//	sello clock            tell whether the machine's clock is trusted, or accept it
//	sello verify           recompute balances, counters and indexes, and tell what differs
//	sello version          tell the version
//
// A command asks the server that has the file open, over a socket beside the
// file, or opens the file itself where there is none.
//
// # State that one process keeps
//
// Everything that must be exact is in the store. One process alone, and only
// until it ends, keeps:
//
//   - the sliding minute of each key's limit (limits.go); days and months are
//     written to the store once a second;
//   - the refused requests of each source (sources.go) and its connections (gate.go);
//   - room for large requests (room.go);
//   - which imports are under way (sweep.go);
//   - what was last thought of the machine's clock (wallclock.go);
//   - settings, keys and names of replays that were read before (cache.go,
//     auth.go, idempotency.go, replayfilter.go). Each says in its comment how it
//     learns of a change: today, because one process has a file open at a time.
//
// # The order of the files
//
// A file names only what files above it in this list define: package-level
// names and methods, in files that are not tests. TestHouseOrder holds the
// files to it. Those of the domain may name each other. Files that differ by
// system or build tag count as one, under the name without that ending.
//
// Under internal/ are libraries, which know nothing of sello: contact, tz, ordered
// (entries and merging), parallel (tasks on several goroutines) and disk (the journaled
// bbolt file; its doc.go says how a write is stored, and what is done behind bbolt's back).
//
// # Values
//
//	decimal.go           exact amounts of points and money
//	fraction.go          exact numbers before they are rounded
//	clock.go             moments, ids, and the randomness they are made from
//	calendar.go          days of a time zone; moments as clients write them
//	encode.go            JSON that is written without reflection
//
// # The seam
//
//	store.go             ordered keys with transactions: the contract of every backend
//	overlay.go           writes that are not committed yet
//	stoppable.go         a transaction that ends with a context
//	pacer.go             long work that lets short work go first
//	store_queue.go       group commit
//	store_mem.go         a backend in memory
//	store_bolt.go        the backend in a file: an adapter of internal/disk
//
// # Errors and input
//
//	errors.go            every error a client can get: code, status, text
//	json.go              the strict reader of bodies and queries
//
// # The clock
//
//	wallclock.go         whether the machine's clock is right
//	machine.go           where it is read from
//
// # The model
//
//	codec.go             how records are spelled
//	model.go             every table of the store, and its keys
//	ledger.go            hashes of movements
//	sets.go              sets of customers' numbers
//	pack.go              how answers are kept short
//
// # The domain
//
//	engine.go            transactions of one organization at one moment
//	cache.go             settings kept between requests
//	schema.go            the schema's version and migrations
//	latest.go            the moment of the last write
//	config.go            an organization's configuration
//	document.go          a document that says it
//	document_check.go    what is wrong with a document
//	document_changes.go  how two documents differ
//	apply.go             how a document becomes the configuration
//	auth.go              API keys
//	idempotency.go       answers to retries
//	replayfilter.go      how most new requests are known to be new
//	customers.go         who the customers are
//	search.go            how they are found
//	grams.go             the index for that
//	accounts.go          a customer's points in one program, and when they change by themselves
//	lots.go              what is left of each credit
//	movements.go         the lines of the ledger
//	points.go            credits, debits and expiry: the heart
//	tiers.go             the levels that customers reach
//	segments.go          the groups that they belong to
//	rules.go             what a purchase earns
//	sales.go             purchases
//	returns.go           what a return takes back
//	salelist.go          lists of sales
//	salesearch.go        sales of the customers that a search finds
//	salelog.go           the log that counts both
//	rewards.go           rewards and redemptions
//	stats.go             statistics
//	sweep.go             what becomes due by itself
//	recount.go           customers counted anew after a change of configuration
//
// # The way of a request
//
//	limits.go            limits of API keys
//	shapes.go            what clients get
//	room.go              room for large requests
//	log.go               lines of the log
//	sources.go           how often a source may be refused
//	files_unix.go        open files and sockets, by system
//	request.go           the way of a request, from route to log line
//	refusals.go          requests that net/http refuses, in our words
//	unwatched.go         connections that net/http does not watch
//	gate.go              how many connections there may be
//	inputs.go            readers of input that the API and imports share
//	api.go               routes and handlers
//
// # Administration
//
//	words.go             what the system, the store and the command line say, in Spanish
//	backup.go            copies of the file, and when they are made
//	verify_kinds.go      verify: which tables are compared, and how
//	verify_gather.go     records brought together by customer
//	verify_history.go    what a customer's records add up to
//	verify_run.go        a part of a verification, and what it finds
//	verify_search.go     the search index
//	verify_tables.go     tables and what they hold; strays
//	verify_sales.go      lists, indexes and the log of sales; redemptions
//	verify_accounts.go   movements played again
//	verify_customers.go  customers, their sales and redemptions
//	verify.go            what is done in which order; an organization as a whole
//	admin.go             what commands ask for
//	import.go            customers and sales taken in; rows of exports
//	socket.go            how a command reaches the server that has the file open
//
// # The command line
//
//	memory.go            how much memory a server takes
//	invocation.go        a command line and its flags
//	opening.go           how a command opens the file, or reaches the server that has it open
//	apikeys.go           the commands for API keys
//	commands.go          the commands that are short
//	csv.go               the commands that read and write CSV
//	serve.go             serving
//	demo.go              serving a sample organization
//	main.go              the table of commands
package main
