package processtest

import "os"

// Long reports whether tests run in their long forms (docs/reliability.md). It is an
// environment variable, since `go test ./...` takes no flag that a package does not have; a
// test asks for it while it runs, so that Go does not take the result of a quick form from
// its cache.
func Long() bool { return os.Getenv("SELLO_TEST_LONG") != "" }
