// Package pgtest gives tests a PostgreSQL server, and breaks it for them.
//
// DSN is for ordinary tests: an empty schema on one server that all tests of the process
// share. Start is for tests that stop the server, change its settings or read its log: a
// cluster of their own. Both use the programs in PATH or in /usr/lib/postgresql, on a port and
// in a folder of their own: a server that runs already is never touched. As root they run as
// user postgres, since PostgreSQL refuses root.
//
// Environment:
//
//	SELLO_TEST_POSTGRES       postgres://…: the server DSN uses instead of starting one
//	SELLO_TEST_POSTGRES_MUST  not empty: a test fails, instead of skipping, without a server
//
// Servers end with their test, the shared one with the process, however that ends: a shell
// beside the process waits for its end, so that no TestMain is needed and none can forget it.
package pgtest
