package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"slices"
	"strings"
)

// The tables. bytea is ordered by its bytes, whatever the collation of the database is.
const (
	sqlTables = `CREATE TABLE IF NOT EXISTS sello_kv (k bytea PRIMARY KEY, v bytea NOT NULL);
CREATE TABLE IF NOT EXISTS sello_log (part int4, n int8, id bytea NOT NULL, prev bytea NOT NULL,
	settings int8 NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (part, n));
CREATE TABLE IF NOT EXISTS sello_lease (name text PRIMARY KEY, holder bytea NOT NULL, until timestamptz NOT NULL);
INSERT INTO sello_log (part, n, id, prev, settings)
	SELECT 0, 0, decode(replace(gen_random_uuid()::text, '-', ''), 'hex'), '', 0
	WHERE NOT EXISTS (SELECT FROM sello_log WHERE part = 0)
	ON CONFLICT DO NOTHING`

	// What is only good for speed: room in each page for the next version of its rows, and values
	// that are not compressed once more. Databases that only speak PostgreSQL's language may refuse it.
	sqlTune = `ALTER TABLE sello_kv SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE sello_kv ALTER COLUMN v SET STORAGE EXTERNAL`

	sqlColumns = `SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
	|| CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
	|| CASE WHEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid AND a.attnum = ANY (i.indkey))
		THEN ' key' ELSE '' END
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.oid IN (to_regclass('sello_kv'), to_regclass('sello_log'), to_regclass('sello_lease'))
	AND a.attnum > 0 AND NOT a.attisdropped`
)

// columns are those of the tables, sorted. Everything rests on the key of the log.
var columns = []string{
	"sello_kv.k bytea not null key", "sello_kv.v bytea not null",
	"sello_lease.holder bytea not null", "sello_lease.name text not null key", "sello_lease.until timestamp with time zone not null",
	"sello_log.at timestamp with time zone not null", "sello_log.id bytea not null", "sello_log.n bigint not null key",
	"sello_log.part integer not null key", "sello_log.prev bytea not null", "sello_log.settings bigint not null",
}

// prepareTables checks the tables, and makes them if it may.
func (db *DB) prepareTables(ctx context.Context) error {
	for range 3 {
		var found []string
		err := db.over(ctx, &db.writers, func(c *conn) (err error) {
			found, err = c.columns()
			return err
		})
		if err != nil {
			return openError(err)
		}
		switch {
		case slices.Equal(found, columns):
			return db.checkRights(ctx)
		case len(found) > 0:
			return ErrForeign
		case !db.options.Create:
			return db.noTables(ctx)
		}
		err = db.over(ctx, &db.writers, func(c *conn) error {
			if err := c.exec(sqlTables); err != nil {
				// Two servers that make them at the same moment get in each other's way.
				if state := sqlState(err); state != "23505" && state != "42P07" && state != "42710" {
					return err
				}
				return nil
			}
			c.exec(sqlTune)
			return nil
		})
		if err != nil {
			return openError(err)
		}
	}
	return ErrForeign
}

// noTables returns why there are no tables.
func (db *DB) noTables(ctx context.Context) error {
	err := db.over(ctx, &db.writers, func(c *conn) error {
		rows, err := c.query(`SELECT current_schema() IS NULL`)
		if err == nil && string(rows[0][0]) == "t" {
			err = ErrNoSchema
		}
		return err
	})
	return cmp.Or(openError(err), error(ErrNoTables))
}

// checkRights fails unless the user may write here, or need not.
func (db *DB) checkRights(ctx context.Context) error {
	if db.options.Standby {
		return nil
	}
	return db.over(ctx, &db.writers, func(c *conn) error {
		rows, err := c.query(`SELECT bool_and(has_table_privilege(t, p)), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'
FROM unnest('{sello_kv,sello_log,sello_lease}'::text[]) t, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p`)
		switch {
		case err != nil:
			return err
		case string(rows[0][1]) == "t":
			return ErrReadOnly
		case string(rows[0][0]) != "t":
			return ErrForbidden
		}
		return nil
	})
}

func (c *conn) columns() ([]string, error) {
	rows, err := c.query(sqlColumns)
	var found []string
	for _, r := range rows {
		found = append(found, string(r[0]))
	}
	slices.Sort(found)
	return found, err
}

// exec runs statements in one transaction of their own.
func (c *conn) exec(text string) error {
	_, err := c.query(text)
	return err
}

// query runs statements in one transaction of their own, and returns the rows of all of them, in
// text.
func (c *conn) query(text string) ([]row, error) {
	if c.over {
		c.trip().run()
	}
	c.startTrip(c.db.trip)
	results, err := c.pg.Exec(context.Background(), text).ReadAll()
	var rows []row
	for _, r := range results {
		rows = append(rows, r.Rows...)
	}
	return rows, err
}

// Durability is what the database does before it acknowledges a commit.
type Durability struct {
	Version     string
	Synchronous string // synchronous_commit
	Standbys    string // synchronous_standby_names; "" if nobody waits for a standby
	Fsync       string
	TLS         string // its version, of this process's connection; "" if that is plain
}

// Durability asks the database what an acknowledged commit is worth.
func (db *DB) Durability(ctx context.Context) (d Durability, err error) {
	err = db.over(ctx, &db.writers, func(c *conn) error {
		d.Version, _, _ = strings.Cut(c.pg.ParameterStatus("server_version"), " ")
		d.TLS = ""
		if encrypted, is := c.pg.Conn().(*tls.Conn); is {
			d.TLS = tls.VersionName(encrypted.ConnectionState().Version)
		}
		rows, err := c.query(`SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('fsync')`)
		if err == nil && len(rows) == 1 {
			d.Synchronous, d.Standbys, d.Fsync = string(rows[0][0]), string(rows[0][1]), string(rows[0][2])
		}
		return err
	})
	return d, err
}
