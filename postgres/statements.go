package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// A statement is everything that is sent to PostgreSQL again and again. Each connection prepares
// all of them, unless it is a pooler's. The name depends on the text, so that no other program's
// statement is taken for it.
type statement struct {
	name   string
	text   string
	params []uint32 // their types
}

// Types of parameters, as numbers of pg_type.
const (
	typeInt4   = 23
	typeInt8   = 20
	typeBytes  = 17
	typeBytes2 = 1001 // an array of them
	typeText   = 25
)

var statements []*statement // each with a name

func newStatement(text string, params ...uint32) *statement {
	sum := sha256.Sum256([]byte(text))
	s := &statement{"sello_" + hex.EncodeToString(sum[:8]), text, params}
	statements = append(statements, s)
	return s
}

// part is the part of the log that everything belongs to.
const part = 0

var (
	sqlBegin    = newStatement(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	sqlLook     = newStatement(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	sqlHold     = newStatement(`BEGIN ISOLATION LEVEL REPEATABLE READ`)
	sqlCommit   = newStatement(`COMMIT`)
	sqlRollback = newStatement(`ROLLBACK`)
	sqlHolding  = newStatement(`SET LOCAL application_name = '` + holding + `'`)

	// A commit that waits longer than this for another server's is told so, and asks again.
	sqlPatience = newStatement(`SET LOCAL lock_timeout = '3s'`)

	// With the head comes the id that commit $2 has now, the time, and whether the server is a standby.
	sqlHead = newStatement(`SELECT n, id, settings, (SELECT id FROM sello_log WHERE part = $1 AND n = $2), now(), pg_is_in_recovery()
FROM sello_log WHERE part = $1 ORDER BY n DESC LIMIT 1`, typeInt4, typeInt8)

	// A commit: $3 is the new id, $4 and $5 are the head that it builds on. It returns a row, unless
	// the turn is lost: n is there already, or that head is not. Then it changes nothing. An error
	// would do the same, and leave a line in the database's log each time.
	sqlTurn = newStatement(`WITH turn AS (
  INSERT INTO sello_log (part, n, id, prev, settings)
  SELECT $1, $2, $3, id, $6 FROM sello_log WHERE part = $1 AND n = $4 AND id = $5
  ON CONFLICT (part, n) DO NOTHING RETURNING n
), gone AS (
  DELETE FROM sello_kv WHERE k = ANY ($7::bytea[]) AND EXISTS (SELECT FROM turn)
), put AS (
  INSERT INTO sello_kv (k, v) SELECT * FROM unnest($8::bytea[], $9::bytea[]) WHERE EXISTS (SELECT FROM turn)
  ON CONFLICT (k) DO UPDATE SET v = excluded.v
)
SELECT n FROM turn`, typeInt4, typeInt8, typeBytes, typeInt8, typeBytes, typeInt8, typeBytes2, typeBytes2, typeBytes2)
	sqlCommitOf = newStatement(`SELECT id FROM sello_log WHERE part = $1 AND n = $2`, typeInt4, typeInt8)

	sqlGet       = newStatement(`SELECT v FROM sello_kv WHERE k = $1`, typeBytes)
	sqlUp        = newStatement(`SELECT k, v FROM sello_kv WHERE k >= $1 AND k < $2 ORDER BY k LIMIT $3`, typeBytes, typeBytes, typeInt8)
	sqlUpAll     = newStatement(`SELECT k, v FROM sello_kv WHERE k >= $1 ORDER BY k LIMIT $2`, typeBytes, typeInt8)
	sqlDown      = newStatement(`SELECT k, v FROM sello_kv WHERE k >= $1 AND k < $2 ORDER BY k DESC LIMIT $3`, typeBytes, typeBytes, typeInt8)
	sqlDownAll   = newStatement(`SELECT k, v FROM sello_kv WHERE k >= $1 ORDER BY k DESC LIMIT $2`, typeBytes, typeInt8)
	sqlTakeLease = newStatement(`INSERT INTO sello_lease (name, holder, until) VALUES ($1, $2, now() + '10s')
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE sello_lease.until < now() OR sello_lease.holder = excluded.holder RETURNING name`, typeText, typeBytes)
	sqlLeased  = newStatement(`SELECT name FROM sello_lease WHERE starts_with(name, $1) AND until >= now() LIMIT 1`, typeText)
	sqlBarrier = newStatement(`INSERT INTO sello_lease (name, holder, until) VALUES ($1, $2, now())
ON CONFLICT (name) DO UPDATE SET until = excluded.until`, typeText, typeBytes)
	sqlDropLease = newStatement(`DELETE FROM sello_lease WHERE name = $1 AND holder = $2`, typeText, typeBytes)
	sqlTrim      = newStatement(`DELETE FROM sello_log WHERE part = $1 AND at < now() - interval '1 hour'
AND n <= least($2, (SELECT min(n) FROM sello_log WHERE part = $1) + $3)`, typeInt4, typeInt8, typeInt8)
)

// Parameters, in PostgreSQL's binary format.

func int4(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func int8(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// bytesArray returns an array of one dimension, whose first index is 1.
func bytesArray(list [][]byte) []byte {
	size := 20
	for _, item := range list {
		size += 4 + len(item)
	}
	b := make([]byte, 0, size)
	dimensions := uint32(1)
	if len(list) == 0 {
		dimensions = 0
	}
	for _, v := range []uint32{dimensions, 0, typeBytes} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	if dimensions == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, item := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(len(item)))
		b = append(b, item...)
	}
	return b
}
