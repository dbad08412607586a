//go:build !postgres

package main

import "context"

// openPostgres, in a build without the tag postgres, opens nothing.
func openPostgres(context.Context, string, databaseOptions) (openedStore, error) {
	return nil, errNoPostgres
}
