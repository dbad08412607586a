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
//   - the refused requests of each source (limits.go) and its connections (gate.go), as
//     SECURITY.md says;
//   - the semaphores of large requests (limits.go);
//   - the tries of passwords and of codes (throttle.go) and the requests of each session of the
//     panel in the last minute (panel.go), as SECURITY.md says;
//   - when sessions of the panel were last seen (users_sessions.go), which is written every 4 minutes:
//     the latest moment that any server writes counts;
//   - which imports are under way (leases.go): a lease has the sweeps of other servers wait;
//   - the tasks that the panel started, and what came of the last ones (panelserver.go), as the
//     panel says;
//   - how many customers a segment has, for ten minutes after the panel counted them
//     (panelhandouts.go);
//   - the last attempts of each webhook (webhooks.go); how far its receiver has come is stored,
//     and the server that has its lease delivers;
//   - the leases that it holds (leases.go): one for the sweep and the recount, and one for each webhook;
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
// # The order of the files
//
// A file uses only package-level names and methods that files above it in this
// list define. TestHouseOrder checks this. Files of one room of the domain may use
// each other's names, and tests are exempt; testdata/house.txt lists what does not keep
// to the order yet. Files that differ by build tag count as one, under the name without that
// ending. None differs by system: what does is in a library.
//
// The libraries under internal/ know nothing of sello: cert (a certificate renewed in its files),
// chart (pictures of figures, colours that can be read), contact (e-mail addresses and phone
// numbers), fold (texts that a search takes for equal), gate (how many connections there may be),
// tz (time zones), ordered (entries and merging), parallel (tasks on several goroutines), host
// (what is done differently on each operating system), metrics (counters, in the text format of
// Prometheus), qr (QR codes as SVG), reference (a page from an OpenAPI document), sheet (the text
// of a spreadsheet: encodings, records of CSV, cells), static (texts made once, with ETag and
// gzip), systemd (what a supervisor is told), throttle (how often something is done), unwatched
// (net/http without its background read), wallclock (whether the machine's clock is right),
// webhook (signed deliveries) and disk; processtest is for tests. Disk is the journaled bbolt
// file; its doc.go says how a write is stored, and what is done behind bbolt's back.
//
// Two files could be libraries and are not. decimal.go is the vocabulary of the domain:
// all rooms use its type, and its rounding and errors are the contract's. The limits and
// reasons of the parser in input_json.go are the API's, and the readers of lists share its stack, so
// that all items of a sale take one allocation.
//
// # Values
//
//	decimal.go           exact amounts of points and money
//	fraction.go          exact numbers before they are rounded
//	clock.go             moments, ids, and the randomness they are made from; what is done at intervals
//	calendar.go          days in a time zone; moments as clients write them
//	encode.go            JSON that is written without reflection
//
// # The seam
//
//	store.go             ordered keys with transactions: the contract of every backend
//	store_overlay.go           writes that are not committed yet
//	stoppable.go         a transaction that ends with a context
//	pacer.go             long work that yields to short work
//	store_queue.go       group commit
//	store_mem.go         a backend in memory, in pages
//	store_bolt.go        the backend in a file: an adapter for internal/disk
//	store_database.go          what -db says of a database, and how it is to be opened
//	store_postgres.go    the backend in PostgreSQL, with the tag postgres alone
//
// # Errors and input
//
//	errors.go            every error a client can get: code, status, text
//	input_json.go              the strict parser of bodies
//	input_strict.go            what a strict request is told: all faults, and unknown names
//	input_fields.go            readers of fields and of queries
//
// # The model
//
//	codec.go             how records are encoded
//	model.go             every table of the store, and its keys
//	model_ledger.go         the parts that a database orders commits by
//	ledger.go            hashes of movements
//	sets.go              sets of numbers in the store, of customers or redemptions
//
// # The domain
//
// Its files stand in rooms: the files of one room may use each other's names. Most rooms have a
// field in txn, which has their methods and what a transaction keeps for them (rooms.go); the
// customers have three: t.customers, t.merges for whose records are, and t.seals.
//
// Transactions of one organization, and its configuration:
//
//	engine.go            transactions of one organization at one moment
//	engine_cache.go             settings kept between requests; requests that wait for events
//	leases.go            which of several servers does what one has to do
//	noticetexts.go       texts that a shop sends by hand
//	engine_config.go            an organization's configuration
//	creator.go           who made a record
//	versions.go          the configurations that were applied
//
// Statistics:
//
//	stats.go             statistics
//
// The audit log:
//
//	audit.go             who changed what
//	auditlist.go         lists of its entries
//
// The search for customers:
//
//	customers_search.go            the search for customers
//	customers_grams.go             its n-gram index
//
// The feed of events:
//
//	events.go            the feed of what happened, for integrators
//	events_receivers.go          receivers of the feed, and how far each has come
//
// Customers:
//
//	customers.go         customers, and how they are identified
//	customers_merged.go          whose records they are, after merges
//	sealing.go           how an erasure makes stored answers unreadable
//	consent.go           whether they want notices
//	noticemarks.go       who wrote to them
//	customers_attributes.go        their attributes and dates of birth
//	customers_changes.go           changes of them, and the indexes that follow
//	customers_lists.go          lists of them, by status
//	walks.go             lists in the order of their enrolment, by cursor
//
// The panel's people:
//
//	roles.go             what people may do in the panel
//	users.go             the people who use it
//	users_invitations.go       links that lead them in
//	password.go          their passwords
//	users_sessions.go          the browsers that they have logged in with
//	users_passwords.go              PINs that lock sessions at the till
//	users_factors.go              their second factors
//
// Retries:
//
//	retries.go       answers to retries
//	retries_filter.go      a filter that recognizes most new requests as new
//
// Points:
//
//	vouchergiver.go      vouchers that points and purchases bring
//	points_accounts.go          a customer's points in one program, and when time changes them
//	points_lots.go              what is left of each credit
//	points_movements.go         the lines of the ledger
//	comments.go          the comments of movements, which can be erased
//	notices.go           points that will expire soon
//	idle.go              points that lapse when their customer is inactive
//	points.go            credits, debits and expiry (settle): the heart
//	references.go        points that are asked for by a reference, once
//	points_holds.go             points that are set aside for a while
//	points_references.go       opening balances and historic points from another system
//	points_tiers.go             the levels that customers reach
//	tierfall.go          when they fall from them
//
// Rules:
//
//	rules_segments.go          the groups that customers belong to
//	labels.go            labels of sales: what a till says of one, as how it was paid
//	rules.go             what a purchase earns
//
// Sales:
//
//	sales_log.go           the log of sales and slots of time, which count them for lists
//	sales.go             purchases
//	sales_programs.go            what a sale does in each program
//	sales_rules.go        how often rules were used, and what they gave of their budgets
//	explanation.go       why a purchase earned what it did
//	sales_payments.go           points that pay for a purchase
//	latesales.go         sales that come later than they happened
//	sales_late.go       sales that a till sends again
//	sales_returns.go           what a return takes back
//	undorequests.go      what somebody in charge is asked to undo
//	sales_undone.go            purchases that are returned whole
//
// Rewards:
//
//	rewards.go           rewards and redemptions
//	rewards_redemptions.go       vouchers, and redemptions by customer, reward, status and time
//	rewards_gifts.go             vouchers that nobody redeemed: by rules, and for full cards
//	vouchers.go          vouchers that expire
//	rewards_sales.go   vouchers that come back with the sale that they were used in
//	rewards_undo.go        who asks to undo a sale or redemption, and what came of it
//
// What changes with time, and files of other versions:
//
//	latest.go            the moment of the last write
//	sweep.go             changes that become due with time
//	sweep_recount.go           recounting customers after a change of configuration
//	sweep_birthdays.go         points on birthdays
//	schema.go            the schema's version and migrations
//	lastsello.go         which sello wrote a file last
//	sandboxmark.go       how the store of a sandbox is marked
//
// Merges and erasures:
//
//	merges.go            two customers become one
//	erasure.go           what erasing a customer leaves
//
// Lists of sales:
//
//	sales_lists.go          lists of sales
//	salesearch.go        sales of the customers that a search finds
//
// Accounts at other moments:
//
//	asof.go              an account as it was, and as it will be
//
// Notices that are sent by hand:
//
//	reminders.go         whom a shop may tell something
//	reminderpages.go     pages of them, by date
//
// The document that an organization is configured with:
//
//	document.go          the document that describes it
//	document_check.go    errors in a document
//	document_changes.go  how two documents differ
//	document_warnings.go          rules that can never fire, and other surprises in a document
//	document_apply.go             how a document becomes the configuration
//
// API keys:
//
//	auth.go              API keys
//	keys.go              how API keys are made, changed, rotated and revoked
//	purses.go            how many points a key or a person may give
//
// Points for everybody:
//
//	handouts.go          the same points for all customers in a segment
//
// All rooms together:
//
//	rooms.go             the parts of a transaction
//
// # Words
//
// What the API and the panel say of rules and numbers.
//
//	words_format.go            numbers, money and moments as people write them
//	texts.go             the tables of texts in Spanish and English (panel/*.txt)
//	words_rules.go         rules, segments and programs as sentences
//
// # The way of a request
//
//	limits.go            limits of API keys, of what a source may be refused, of large requests
//	shapes.go            the shapes of answers
//	shapes_points.go     those of movements and holds
//	shapes_reasons.go    why a purchase earned what it did
//	shapes_sales.go      those of sales
//	shapes_customers.go  those of customers
//	shapes_events.go     those of events
//	throttle.go          how often a password may be tried
//	users_logins.go            how users log in
//	acceptance.go        what links lead to
//	factors.go           how they change their second factors
//	request_counts.go            what is counted of requests
//	request_reference.go         openapi.json, and the page made from it
//	request_exchange.go          one request and its response; what actions return; bodies in parts
//	request.go           the way of a request, from ServeHTTP to the last byte
//	request_connections.go          requests that net/http refuses, in our words
//	gate.go              which connections are refused, and how
//	request_tls.go               TLS
//	api_inputs.go            readers of input that the API and imports share
//	api_statement.go      everything about one customer, in parts
//	statement.go         what became of an account in one month, in parts
//	batches.go           many of something in one request
//	api_customers.go     handlers of customers
//	api_sales.go         handlers of sales
//	api_holds.go         handlers of holds
//	api_points.go        handlers of points
//	api.go               routes, and the other handlers
//
// # Administration
//
//	webhooks.go        sending the feed to its receivers
//	words_errors.go             errors of the system, the store and the command line, in Spanish
//	build.go             how the binary was built
//	diskspace.go         how much room the disk has
//	backup.go            copies of the file, when they are made, and the command that gets each
//	verify_kinds.go      verify: which tables are compared, and how
//	verify_gather.go     records gathered by customer
//	verify_history.go    what a customer's records add up to
//	verify_run.go        one part of a verification, and its findings
//	verify_search.go     the search index
//	verify_tables.go     tables and what they hold; strays
//	verify_due.go        what changes by itself
//	verify_sales.go      lists, indexes and the log of sales; redemptions
//	verify_payments.go   payments with points
//	verify_holds.go      holds
//	verify_merges.go     customers who became part of others
//	verify_idle.go       points that lapse without activity
//	verify_accounts.go   movements replayed
//	verify_audit.go      the audit log
//	verify_versions.go   the configurations that were applied
//	verify_events.go     the feed of events
//	verify_logs.go     users of the panel
//	verify_reasons.go    why purchases earned what they did
//	verify_rules.go       uses of rules with a daily limit
//	verify_customers.go  customers, their sales and redemptions
//	verify.go            the order of the steps; an organization as a whole
//	admin.go             the operations behind the commands
//	admin_statement.go  whether a statement is the ledger's
//	admin_users.go        those on users
//	import_records.go  rows of imports, and importing customers
//	export.go           rows of exports
//	import_points.go     rows that give or take points
//	import.go            importing customers, sales and points
//	socket.go            how a command reaches the server that has the file open
//
// # The panel
//
//	amounts.go           amounts as people type them
//	panelassets.go       what pages load: stylesheet, script, colour
//	panel_server.go      the one address of the panel, and its cookie
//	documenttexts.go     faults and warnings of documents, and faults of fields, in English
//	panel_errors.go       what is wrong, in words for people
//	panelserver.go       what the panel knows of the server, and may start there
//	panel_request.go      one request of the panel
//	panelnav.go          which places a member may open
//	panel_render.go       how a page is made
//	panel_forms.go        how a form becomes a request of the API
//	panelkept.go         forms that are kept over a log-in
//	panelproof.go        what needs the password once more
//	panel.go             the steps of a request of the panel
//	panel_shared.go       what the till and the pages of customers and sales share
//	panelgifts.go        vouchers that nobody redeemed, in words
//	pages_notices.go      whether customers want notices
//	panelwhy.go          why a purchase earned what it did
//	panelpayment.go      paying with points: the till's control, and in words what a payment was
//	panel_undo.go         who may undo sales and redemptions, and requests to
//	paneltilltoday.go    what a member did at the till today
//	till_find.go     the till's one field
//	paneltillnext.go     who stands at the till, and what it offers next
//	till.go         the till
//	panelstatement.go    a customer's balance on a day, and the statement of a month
//	pages_customers.go    customers
//	panelsalesby.go      sales by who made them
//	pages_sales.go        sales
//	panelredemptions.go  redemptions
//	pages_edits.go        forms that change the configuration
//	paneldiff.go         what they would change
//	pages_rewards.go      rewards
//	pages_rules.go        programs, and their rules
//	pages_segments.go     segments
//	panelmembers.go      the customers in a segment
//	panelhandouts.go     points for all of them
//	panelsimulator.go    what a sale would earn, and why a rule would give nothing
//	pages_config.go     the configurations that were applied, and how they differ
//	panelconfig.go       the organization, and the whole document
//	paneldevelopment.go  the developers' area: what its pages share, and the reference
//	pages_keys.go         API keys
//	pages_keyforms.go     how they are made, changed, renewed and revoked by hand
//	panelkeyrequests.go  the last requests of keys
//	pages_webhooks.go     webhooks
//	panelwebhookforms.go how they are made, changed and removed
//	pages_login.go        logging in and out, and what invitations lead to
//	panelaccount.go      what members see and change of themselves
//	panellock.go         the till's lock
//	pages_team.go         the people of the organization
//	pages_figures.go      statistics as tiles, pictures and tables
//	pages_work.go         what people and API keys did, added up
//	pages_home.go         the home page and the statistics
//	pages_audit.go        the audit log
//	panelkeptfacts.go    what a form that is kept says
//	pages_activity.go     unusual activity
//	panelperson.go       what one person or API key did, beside the others
//	pages_operator.go     the operator's pages
//	pages.go       all pages, forms, places and texts
//
// # The command line
//
//	command.go        a command line and its flags
//	samples.go           samples of what commands read
//	progress.go          how far a long command has come
//	command_open.go           how a command opens the file, or reaches the server that has it open
//	command_access.go           the commands for API keys
//	webhookcommands.go   the commands for webhooks
//	usercommands.go      the commands for users
//	command_short.go          the short commands
//	compact.go           making the file anew
//	restore.go           putting a copy in the place of the file
//	command_files.go           moving everything to a database, or back
//	rejects.go           the file of an import's errors
//	sheet_headings.go          which column a heading names
//	presets.go           what the headings of other systems' exports mean
//	sheet.go             the rows of a file that is imported
//	sheet_sales.go          the rows of a file that are one sale
//	sheet_commands.go               the commands that import CSV
//	importflags.go       their flags
//	csvexport.go         the commands that export it
//	serve_metrics.go           figures for Prometheus
//	command_completion.go        what shells complete
//	panelflags.go        flags of the panel
//	serve.go             serving
//	doctor.go            what is wrong with a server, and what to do
//	madeup.go            the made-up year of a shop
//	demo.go              serving a sample organization
//	duration.go          durations of ISO 8601
//	testclock.go         a clock that is moved, and what becomes due then
//	sandbox.go           an organization to try out
//	sandbox_serve.go       the routes that only it has
//	sandboxcommand.go    serving it
//	main.go              the table of commands
package main
