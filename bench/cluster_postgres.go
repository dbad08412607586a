//go:build postgres

package main

import (
	"net/url"

	"sello/postgres/pgtest"
)

func startCluster(settings ...string) (*cluster, error) {
	c, stop, err := pgtest.Serve(settings...)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(c.DSN())
	if err != nil {
		return nil, err
	}
	dsn := func(database string) string {
		named := *address
		named.Path = "/" + database
		return named.String()
	}
	return &cluster{pid: c.PID(), dsn: dsn, ask: c.Ask, stop: stop}, nil
}
