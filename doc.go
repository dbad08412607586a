// Sello is a customer-loyalty backend: an organization's shops and apps call
// its HTTP API to enrol customers, register sales, give and take points, and
// redeem rewards. It keeps everything in one file, or, built with the tag postgres, in a
// PostgreSQL database.
//
// # Commands
//
//	sello serve            serve the API on a file
//	sello demo             make a sample organization and serve the API
//	sello sandbox          serve an organization to try out, with a clock that is moved
//	sello apply            apply the configuration of an organization
//	sello export           show the configuration of an organization, or write customers, sales, movements or redemptions as CSV
//	sello import           import customers, sales or points from CSV
//	sello key              create, list, change, rotate or revoke API keys
//	sello audit            show who changed what
//	sello user             invite people to the panel, take invitations back, list, disable, log out or renew people
//	sello webhook          list webhooks, make their secrets, test, resume and replay them
//	sello backup           copy the file, also while it is served, and check the copy
//	sello copy             move everything from a file to a PostgreSQL database, or back
//	sello restore          put a checked copy in the place of the file, which is kept
//	sello compact          make the file anew, without what was deleted
//	sello migrate          bring a file of an earlier schema to this one
//	sello clock            show whether the machine's clock is trusted, or accept it
//	sello verify           recompute balances, counters and indexes, and show what differs
//	sello doctor           look at file, clock, disk, backups, certificate, panel, webhooks and server, and say what to do
//	sello completion       write what a shell completes
//	sello version          show the version
//
// If a server has the file open, a command reaches it over a socket beside the
// file. Otherwise the command opens the file itself. One process has a file open at a time:
// a second server ends with an error. A database in place of the file has no socket: commands
// open it themselves.
//
// # State that one process keeps
//
// Everything that must be exact is in the store. The following is kept in memory
// and is lost when the process ends. Of several servers on one database (store.go,
// sharedStore) each keeps its own, unless it says otherwise:
//
//   - the sliding minute of each key's limit (limits.go); counts by day and month
//     are written to the store once a second, to which each server adds its share;
//   - the last requests of each organization, for the panel, which says that they are lost with the
//     process (request_exchange.go);
//   - the refused requests of each source (limits.go) and its connections (request_connections.go), as
//     SECURITY.md says;
//   - the semaphores of large requests (limits.go);
//   - the forms to join of each source (site.go), and the wrong digits of each customer's card
//     (engine.go), as SECURITY.md says;
//   - the tries of passwords and of codes (users_passwords.go) and the requests of each session of the
//     panel in the last minute (panel.go), as SECURITY.md says;
//   - when sessions of the panel were last seen (users_sessions.go), which is written every 4 minutes:
//     the latest moment that any server writes counts;
//   - which imports are under way (engine_cache.go): a lease has the sweeps of other servers wait;
//   - the tasks that the panel started, and what came of the last ones (panel_server.go), as the
//     panel says;
//   - how many customers a segment has, for ten minutes after the panel counted them
//     (pages_segments.go);
//   - the last attempts of each webhook (webhooks.go); how far its receiver has come is stored,
//     and the server that has its lease delivers;
//   - the leases that it holds (engine_cache.go): one for the sweep and the recount, and one for each webhook;
//   - refused log-ins that are not in the audit log yet (users_logins.go): each server adds its own;
//   - when the last backups were made and passed on (backup.go): only of a file;
//   - the next moment when a birthday can be due (sweep_birthdays.go): only a change of settings makes it
//     earlier; when old
//     events and ended sessions were last looked for (sweep.go);
//   - who waits for events (engine_cache.go): a waiter also polls;
//   - the last verdict on the machine's clock (internal/wallclock);
//   - settings, keys and names of replays that were read before (engine_cache.go,
//     auth.go, retries.go, retries_filter.go). Each file says how its cache stays
//     current: one process has a file open at a time, and a database tells of other
//     servers' writes.
//
// # What a handler may touch
//
// A handler of the API touches its request and returns an action; the action touches the
// txn that it is given, by the methods of its rooms, as in t.sales.register, and may run
// twice. Neither touches a key of the store, asks for the time or makes an id (api.go). A new
// endpoint is a row of the routes in api.go, a handler, a description in openapi.json and a
// transcript in testdata/golden. What else may be added has a recipe in CONTRIBUTING.md.
//
// # When the disk fails
//
// After an I/O error of a flush nobody knows what is stored. internal/disk marks its file
// as failed (File.fail), the writeQueue breaks (judge in store_queue.go), and the process
// logs "store failed" and exits with 1, without waiting for anybody (service.wait in
// serve.go). A client that waits for a write gets 503 unavailable or is cut off; its write
// may be stored. A full disk is different: writes get 503 until there is room, reads go on,
// and nothing ends.
//
// # The house
//
// The product is one flat package, and its listing is the plan of the house. Each section below
// is a room; its title ends in the names of its files. No name is in two rooms, so the beginning
// of a file's name says where it stands. A file uses package-level names and methods of files
// that stand above it in the list; in the domain, from "Transactions" to "Operations across
// rooms", also of all files of its own room. testdata/house.txt lists what does not keep to that
// yet. Tests are exempt. Files that differ by build tag count as one, under the name without
// that ending. TestHouse holds the code to all of it.
//
// Most rooms of the domain are a field of txn, as t.points and t.sales: its type has the room's
// methods, and what the room keeps during one transaction (rooms.go). The customers have three:
// t.customers; t.merges, which finds the customer that has the records of a merged one; and
// t.seals, the keys of stored answers.
//
// The libraries know nothing of sello:
//
//	internal/blockset      sets of numbers, in blocks of bits
//	internal/cert          a certificate that is renewed in its files
//	internal/chart         pictures of figures, and colours that can be read on each other
//	internal/completion    what shells complete: scripts for bash, zsh and fish
//	internal/contact       e-mail addresses and phone numbers
//	internal/disk          the journaled bbolt file; its doc.go says how a write is stored,
//	                       when the journal's checkpoint comes, and what is done behind bbolt's
//	                       back
//	internal/fold          texts that a search takes for equal
//	internal/gate          how many connections there may be, of each source too
//	internal/handover      a command that is given each new file
//	internal/host          what is done differently on each operating system
//	internal/lastword      answers of our own where net/http would give its own
//	internal/localcall     calls of a server that has a file open, over a socket beside it
//	internal/locale        how countries write numbers, how people type amounts, words of dates
//	internal/logline       lines of a log that wait for others
//	internal/membercode    codes that people read out, of numbers or by chance
//	internal/memory        how much memory a process may use
//	internal/metrics       counters, in the text format of Prometheus
//	internal/nearest       which known name somebody meant
//	internal/ngram         the n-gram index of a search: its entries, and how they are joined
//	internal/ordered       entries in order, and merging them
//	internal/pack          short texts, compressed by a list of words
//	internal/parallel      tasks on several goroutines, and at intervals
//	internal/password      hashes of passwords, and which ones are guessed first
//	internal/processtest   for tests that start processes
//	internal/progress      how far something long has come, in one line of a terminal
//	internal/qr            QR codes as SVG
//	internal/reference     a page from an OpenAPI document
//	internal/ring          the last entries of each of many
//	internal/rotation      copies in a directory, of which the newest are kept
//	internal/semaphore     how much is held at one time
//	internal/sheet         a spreadsheet's text: its encoding, records of CSV, the numbers and
//	                       dates in its cells
//	internal/static        texts made once, with ETag and gzip
//	internal/systemd       what systemd is told
//	internal/texts         tables of texts in two languages
//	internal/throttle      how often something may be done, for each of many
//	internal/totp          codes of an authenticator
//	internal/tz            time zones
//	internal/unwatched     connections without net/http's background read
//	internal/wallclock     whether the machine's clock can be trusted
//	internal/webhook       signed deliveries
//
// Two files could be libraries and are not. decimal.go is the vocabulary of the domain:
// all rooms use its type, and its rounding and errors are the contract's. The limits and
// reasons of the parser in input_json.go are the API's, and the readers of lists share its
// stack, so that all items of a sale take one allocation.
//
// # The seam: store_*.go
//
//	store.go               ordered keys with transactions: the contract of every backend; long
//	                       work that yields to short work
//	store_overlay.go       the writes of a transaction before they are committed
//	store_queue.go         group commit: one writer, and the queue before it
//	store_mem.go           the backend in memory, of tests, sandboxes and dry runs
//	store_bolt.go          the backend in one file: an adapter for internal/disk
//	store_database.go      what -db says: a file, or a database and how it is opened
//	store_postgres.go      the backend in PostgreSQL, with the tag postgres alone
//
// # The vocabulary: decimal.go, clock.go, errors.go
//
//	decimal.go             exact amounts of points and money, and how they are rounded
//	clock.go               moments and ids; days in a time zone, and moments as clients write them
//	errors.go              every error a client can get: its code, status and Spanish text; the
//	                       panel's words are in panel/errors.txt
//
// # Input: input_*.go
//
//	input_json.go          the strict parser of JSON bodies; JSON that is written without
//	                       reflection
//	input_strict.go        Prefer: handling=strict: all faults of a request, and unknown names
//	input_fields.go        readers of a body's fields and of a query
//
// # The model: model_*.go, codec.go
//
//	codec.go               how records are encoded
//	model.go               every table of the store: its letter, keys and values, and how it is
//	                       verified
//	model_ledger.go        the hashes that chain movements; the partitions by which a database
//	                       orders commits; sets of customers' numbers
//
// # Transactions: engine_*.go, auth.go
//
//	engine.go              transactions of one organization at one moment; who made a record;
//	                       the configurations that were applied
//	engine_cache.go        settings kept between requests, and who waits for events; leases: a
//	                       task that only one of several servers may do at a time
//	engine_config.go       an organization's configuration: programs, rewards, tiers, rules,
//	                       segments, texts of notices
//	auth.go                API keys, their scopes and sources; the permissions of each role of
//	                       people
//
// # The audit log: audit_*.go
//
//	audit.go               who changed what, and lists of it
//
// # Events: events_*.go
//
//	events.go              the feed of events, for integrators
//	events_receivers.go    the webhooks of an organization, and how far each has come in the
//	                       feed
//
// # Customers and statistics: customers_*.go, stats.go
//
//	customers.go           enrolment, and how customers are identified
//	customers_attributes.go attributes and dates of birth; consent to notices, and who wrote to
//	                       a customer
//	customers_changes.go   a customer's data is changed, and the indexes follow
//	customers_merged.go    after a merge, which customer has the records; the keys that seal
//	                       stored answers until an erasure
//	customers_lists.go     lists of customers, by status and in the order of enrolment
//	customers_search.go    the search for customers by name, phone, e-mail or code; its index,
//	                       and how that is written
//	stats.go               statistics by day and program
//
// # People of the panel: users_*.go
//
//	users.go               who uses the panel, and in which organizations
//	users_invitations.go   invitations, and links to a new password
//	users_passwords.go     passwords, the till's PINs, and how often they may be tried
//	users_factors.go       second factors: how they are set up, and how a code is checked, of an
//	                       authenticator or for recovery
//	users_sessions.go      sessions: the browsers that people have logged in with
//	users_logins.go        logging in: password, second factor, known devices
//
// # Cards: cards_*.go
//
//	cards.go               secret addresses that show a customer what the customer has, and digits
//	                       that prove who shows one
//	cards_joining.go       who fills in a form on their phone, and gets a code for the counter
//
// # Retries: retries_*.go
//
//	retries.go             Idempotency-Key: a retry is recognized and gets the first answer
//	retries_filter.go      a filter that knows most new requests as new
//
// # Points: points_*.go
//
//	points.go              credits, debits and expiry: the heart; stamps are points too, of a
//	                       program of stamps
//	points_accounts.go     a customer's balance in one program; points that lapse without
//	                       activity
//	points_lots.go         lots: what is left of each credit, the soonest to expire first
//	points_movements.go    movements: the lines of the ledger, and their comments; points given
//	                       once for each reference; opening balances from another system
//	points_holds.go        holds: points set aside until they are captured or released
//	points_tiers.go        tiers: when a customer rises to one, keeps and loses it
//
// # Rules: rules_*.go
//
//	rules.go               what a purchase earns
//	rules_segments.go      what rules ask for: segments of customers, items and labels of sales
//
// # Sales: sales_*.go
//
//	sales.go               purchases are registered
//	sales_log.go           the log by which lists count sales without reading them
//	sales_programs.go      what a sale gives in each program, points, stamps and vouchers, and
//	                       what its return takes back there
//	sales_rules.go         how often a rule was used, and what is left of its budget; why a
//	                       purchase earned what it did
//	sales_payments.go      points that pay for a purchase
//	sales_late.go          sales that come late, and sales that a till sends again
//	sales_returns.go       returns: what they take back
//	sales_undone.go        a purchase that is returned whole, and what its undoing gives back;
//	                       the requests to undo that are stored
//	sales_tickets.go       tickets: purchases without a customer, and lists of them
//	sales_claims.go        a ticket becomes a customer's sale, once, or is cancelled
//	sales_signed.go        tickets that a till without a network signs
//	sales_lists.go         lists of sales, and of those of found customers
//
// # Rewards: rewards_*.go
//
//	rewards.go             rewards and their stock, and how they are redeemed
//	rewards_redemptions.go redemptions and vouchers, by customer, reward, status and time
//	rewards_gifts.go       vouchers that rules and full cards give, and their expiry
//	rewards_sales.go       vouchers used in a sale, given back when it is returned; asking somebody
//	                       in charge to undo a sale or a redemption
//
// # Time and versions: sweep_*.go, schema.go
//
//	sweep.go               the sweep writes down what has become due; the moment of the last
//	                       write
//	sweep_recount.go       customers are counted anew after a change of configuration
//	sweep_birthdays.go     points and vouchers on birthdays
//	schema.go              the schema's version and migrations; the sello that wrote a file
//	                       last, and this one
//
// # API keys: keys_*.go
//
//	keys.go                how keys are made, changed, rotated and revoked; how many points a
//	                       key or a person may give
//
// # The configuration as a document: document_*.go
//
//	document.go            the document of an organization, and how two differ
//	document_check.go      errors in a document
//	document_warnings.go   warnings: rules that can never fire, and other surprises
//	document_apply.go      how a document becomes the configuration
//
// # Operations across rooms: merges.go, erasure.go, asof.go, handouts.go, reminders.go, rooms.go
//
//	merges.go              two customers become one
//	erasure.go             what erasing a customer leaves
//	asof.go                the balance as of another day, past or to come
//	handouts.go            the same points for everybody in a segment
//	reminders.go           whom a shop may write to, by date: birthdays, points that expire
//	                       soon
//	rooms.go               the rooms of a transaction, as in t.points and t.sales
//
// # Words: words_*.go
//
//	words_operator.go      Spanish texts of errors that are not the API's: of the system, the
//	                       store and the command line
//	words_format.go        numbers, money and moments as people write and type them; reads the
//	                       texts of the panel (panel/*.txt)
//	words_rules.go         rules, segments and programs as sentences
//
// # The shapes of answers: shapes_*.go
//
//	shapes.go              balances, rewards, redemptions, statistics, the audit log
//	shapes_customers.go    customers
//	shapes_sales.go        sales, and why one earned what it did
//	shapes_points.go       movements, holds and events
//
// # The way of a request: limits.go, request_*.go
//
//	limits.go              how much may be asked: by a key, from a source, at one time
//	request_counts.go      what is counted of requests
//	request_reference.go   openapi.json, and the page made from it
//	request_exchange.go    one request and its response; what actions return, ETag and If-
//	                       Match, bodies in parts
//	request.go             the way of a request, from ServeHTTP to the last byte
//	request_connections.go how many connections there may be, and TLS; errors of net/http as
//	                       errors of the API
//
// # The API: api_*.go
//
//	api_inputs.go          readers of input that imports share; many of something in one
//	                       request
//	api_customers.go       handlers of customers
//	api_statement.go       everything about one customer, and the statement of a month
//	api_sales.go           handlers of sales
//	api_points.go          handlers of points and holds
//	api.go                 the routes, and the other handlers
//
// # Webhooks: webhooks_*.go
//
//	webhooks.go            delivery: each webhook gets its events, signed, with retries
//
// # Backups: backup_*.go
//
//	backup.go              copies of the file, when they are made, and what is done with each
//
// # Verify: verify_*.go
//
//	verify_gather.go       records gathered by customer, and what they add up to
//	verify_run.go          one part of a verification, and its findings
//	verify_tables.go       tables and strays; the search index; merged customers
//	verify_due.go          what changes by itself: expiry, idleness, holds
//	verify_sales.go        lists and log of sales, payments with points, redemptions
//	verify_accounts.go     movements replayed
//	verify_logs.go         the audit log, configurations, events, people
//	verify_rules.go        why purchases earned what they did; uses of rules
//	verify_customers.go    customers, their sales and redemptions
//	verify.go              the order of the steps; an organization as a whole
//
// # Administration: admin_*.go
//
//	admin.go               the operations behind the commands
//	admin_statement.go     a statement is checked against the ledger
//	admin_users.go         operations on users
//
// # Import and export: import_*.go, export.go
//
//	import_records.go      the records that an import takes: customers, points, sales
//	export.go              the records that an export writes
//	import.go              records become customers, sales and movements
//
// # The socket: socket.go
//
//	socket.go              how a command reaches the server that has the file open
//
// # The panel: panel_*.go
//
//	panel_server.go        the panel's address, stylesheet and script; what it knows of the
//	                       server, and may start there
//	panel_errors.go        errors as the panel says them, and faults of documents in English
//	panel_request.go       one request of the panel; which places a member may open
//	panel_render.go        how a page is made from its template
//	panel_forms.go         how a form becomes a request of the API
//	panel.go               the steps of a request of the panel; a form that comes after its session
//	                       ended is kept until its sender has logged in; what needs the password
//	                       once more
//	panel_shared.go        what pages share: choices, new customers, why a purchase earned what
//	                       it did
//	panel_undo.go          who may undo a sale or a redemption, and whom a cashier asks to
//
// # The till: till_*.go
//
//	till_find.go           the till's one field; who stands at the till, what it offers next,
//	                       paying with points; what a member did today
//	till.go                the till
//
// # The pages of the panel: pages_*.go
//
//	pages_notices.go       consent, and whom to write to
//	pages_customers.go     customers; a balance on a day, and a month's statement
//	pages_sales.go         sales, who made them, tickets
//	pages_edits.go         forms that change the configuration, and what they would change
//	pages_rewards.go       rewards and redemptions
//	pages_rules.go         programs and their rules; the simulator
//	pages_segments.go      segments, the customers in one, points for all of them
//	pages_config.go        the organization, the whole document, the configurations that were
//	                       applied
//	pages_keys.go          the developers' area, its reference, and API keys
//	pages_keyforms.go      how keys are made, changed, renewed and revoked by hand; the last
//	                       requests of keys
//	pages_webhooks.go      webhooks, and how they are made, changed and removed
//	pages_login.go         logging in and out, what invitations lead to, the till's lock
//	pages_team.go          the people of the organization, and what each sees and changes of
//	                       themselves
//	pages_figures.go       statistics as tiles, pictures and tables
//	pages_work.go          what people and API keys did, added up
//	pages_home.go          the home page, and the page of statistics
//	pages_audit.go         the audit log; what a form kept over a log-in would do
//	pages_activity.go      unusual activity, and what one person or key did beside the others
//	pages_operator.go      the operator's pages
//	pages.go               every page and form, and its place in the menu
//
// # The pages of customers: site_*.go
//
//	site_card.go           what a card shows
//	site.go                the customers' host: its headers, its stylesheet, and the one page for
//	                       all that opens nothing
//	site_page.go           its pages: a card, the statement of a month, and the form to join
//	site_ticket.go         a ticket, and the form to add it to a card; every page of the site
//
// # The command line: command_*.go
//
//	command.go             a command line and its flags
//	command_open.go        how a command opens the file, or reaches its server
//	command_short.go       the short commands: apply, audit, backup, clock, completion, migrate,
//	                       verify, version
//	command_access.go      the commands for API keys, webhooks and users
//	command_files.go       the commands that make a file anew, put a copy in its place, or move
//	                       everything to a database
//
// # Files that are imported: sheet_*.go
//
//	sheet_headings.go      which column a heading names, in exports of other systems too; the
//	                       file of an import's errors
//	sheet.go               the rows of a file: which cell is which field
//	sheet_sales.go         the rows that are one sale
//	sheet_commands.go      the commands import and export
//
// # Serving: serve_*.go, doctor.go
//
//	serve_metrics.go       figures for Prometheus
//	serve_listeners.go     at which addresses a server listens, and for what
//	serve.go               serving
//	doctor.go              what is wrong with a server, and what to do
//
// # Samples: demo_*.go, sandbox_*.go
//
//	demo.go                a sample organization with a made-up year, and serving it
//	sandbox.go             an organization to try out, and its clock that is moved
//	sandbox_serve.go       the routes that only a sandbox has, and serving it
//
// # The program: main.go
//
//	main.go                the table of commands
package main
