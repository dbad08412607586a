module sello

go 1.26

require (
	github.com/google/go-cmp v0.7.0
	go.etcd.io/bbolt v1.5.0
)

require golang.org/x/sys v0.45.0 // indirect

// The store in PostgreSQL, in a binary built with -tags postgres alone.
require sello/postgres v0.0.0

replace sello/postgres => ./postgres

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
