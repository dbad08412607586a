package processtest

import "os"

// Long reports whether tests run in their long forms (docs/reliability.md). It is an
// environment variable, since `go test ./...` takes no flag that a package does not have.
var Long = os.Getenv("SELLO_TEST_LONG") != ""
