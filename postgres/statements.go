package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// A statement is everything that is sent to PostgreSQL again and again. Each connection prepares
// them, unless it is a pooler's: those that write to the log when it first needs one. The name depends on the text, so that no other program's
// statement is taken for it.
type statement struct {
	name   string
	text   string
	params []uint32 // their types
	ofLog  bool     // it writes to the log
}

// Types of parameters, as numbers of pg_type.
const (
	typeInt4   = 23
	typeInt8   = 20
	typeBytes  = 17
	typeInt4s  = 1007
	typeInt8s  = 1016
	typeBytes2 = 1001 // arrays of them
	typeText   = 25
)

var statements []*statement // each with a name

func newStatement(text string, params ...uint32) *statement {
	sum := sha256.Sum256([]byte(text))
	s := &statement{name: "sello_" + hex.EncodeToString(sum[:8]), text: text, params: params}
	statements = append(statements, s)
	return s
}

func newLogStatement(text string, params ...uint32) *statement {
	s := newStatement(text, params...)
	s.ofLog = true
	return s
}

var (
	sqlBegin    = newStatement(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	sqlLook     = newStatement(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	sqlHold     = newStatement(`BEGIN ISOLATION LEVEL REPEATABLE READ`)
	sqlCommit   = newStatement(`COMMIT`)
	sqlRollback = newStatement(`ROLLBACK`)
	sqlHolding  = newStatement(`SET LOCAL application_name = '` + holding + `'`)

	// A commit that waits longer than this for another server's is told so, and asks again.
	sqlPatience = newStatement(`SET LOCAL lock_timeout = '3s'`)

	// The heads of parts $1. With each comes the id that its commit $2 has now, the time, and whether
	// the server is a standby. A part without commits has no head.
	sqlHeads = newStatement(`SELECT p.part, l.n, l.id, l.settings, (SELECT id FROM sello_log b WHERE b.part = p.part AND b.n = p.n), now(), pg_is_in_recovery()
FROM unnest($1::int4[], $2::int8[]) p (part, n)
LEFT JOIN LATERAL (SELECT n, id, settings FROM sello_log h WHERE h.part = p.part ORDER BY n DESC LIMIT 1) l ON true`, typeInt4s, typeInt8s)

	// All parts that have commits, and their heads.
	sqlAllHeads = newStatement(`WITH RECURSIVE p (part) AS (
  (SELECT part FROM sello_log ORDER BY part LIMIT 1)
  UNION ALL
  SELECT (SELECT part FROM sello_log l WHERE l.part > p.part ORDER BY part LIMIT 1) FROM p WHERE p.part IS NOT NULL
)
SELECT p.part, l.n, l.id, l.settings, NULL::bytea, now(), pg_is_in_recovery()
FROM p, LATERAL (SELECT n, id, settings FROM sello_log h WHERE h.part = p.part ORDER BY n DESC LIMIT 1) l`)

	// A commit in parts $1, on top of the heads $2 and $3, which gets id $5 in each. It returns its
	// parts, or fewer if the turn is lost: one has its next number already, or not that head. Then
	// no entry changes. An error would do the same, and leave a line in the database's log each time.
	// Parts are locked in order, so that nobody waits for one who waits for him.
	sqlTurn = newLogStatement(`WITH turn AS (
  INSERT INTO sello_log (part, n, id, prev, settings)
  SELECT part, n + 1, $5, id, settings FROM unnest($1::int4[], $2::int8[], $3::bytea[], $4::int8[]) base (part, n, id, settings)
  WHERE CASE WHEN id = '' THEN (SELECT n FROM sello_log l WHERE l.part = base.part ORDER BY n DESC LIMIT 1) IS NULL
    ELSE (SELECT id FROM sello_log l WHERE l.part = base.part AND l.n = base.n) = base.id END
  ORDER BY part
  ON CONFLICT (part, n) DO NOTHING RETURNING part
), gone AS (
  DELETE FROM sello_kv WHERE k = ANY ($6::bytea[]) AND (SELECT count(*) FROM turn) = cardinality($1)
), put AS (
  INSERT INTO sello_kv (k, v) SELECT * FROM unnest($7::bytea[], $8::bytea[]) WHERE (SELECT count(*) FROM turn) = cardinality($1)
  ON CONFLICT (k) DO UPDATE SET v = excluded.v
)
SELECT part FROM turn`, typeInt4s, typeInt8s, typeBytes2, typeInt8s, typeBytes, typeBytes2, typeBytes2, typeBytes2)

	// The places in the lines of parts $1. Whoever commits in very many does not wait in each.
	sqlLine = newStatement(`SELECT pg_advisory_xact_lock('sello_log'::regclass::oid::int4, part) FROM unnest($1::int4[]) WITH ORDINALITY p (part, i) WHERE i <= 64`, typeInt4s)

	// What is left of a commit in several parts $1, on top of the heads $2, if it got only some.
	sqlUndo = newLogStatement(`DELETE FROM sello_log l USING unnest($1::int4[], $2::int8[]) base (part, n)
WHERE l.part = base.part AND l.n = base.n + 1 AND l.id = $3
  AND (SELECT count(*) FROM sello_log m JOIN unnest($1::int4[], $2::int8[]) base (part, n) ON m.part = base.part AND m.n = base.n + 1
    WHERE m.id = $3) < cardinality($1)`, typeInt4s, typeInt8s, typeBytes)
	sqlCommitOf = newStatement(`SELECT id FROM sello_log WHERE part = $1 AND n = $2`, typeInt4, typeInt8)

	// Nobody else commits, or trims, until the transaction ends.
	sqlLock = newStatement(`LOCK TABLE sello_log IN SHARE ROW EXCLUSIVE MODE`)

	// Who waits between two messages has locked everything.
	sqlHurry = newStatement(`SET LOCAL idle_in_transaction_session_timeout = '2s'`)

	sqlGet       = newStatement(`SELECT v FROM sello_kv WHERE k = $1`, typeBytes)
	sqlGetMany   = newStatement(`SELECT k, v FROM sello_kv WHERE k = ANY ($1)`, typeBytes2)
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
	sqlTrim      = newLogStatement(`DELETE FROM sello_log WHERE part = $1 AND at < now() - interval '1 hour'
AND n <= least($2, (SELECT min(n) FROM sello_log WHERE part = $1) + $3)`, typeInt4, typeInt8, typeInt8)
)

// Parameters, in PostgreSQL's binary format.

func int4(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func int8(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func bytesArray(list [][]byte) []byte { return array(typeBytes, list) }

// array returns an array of one dimension, whose first index is 1.
func array(of uint32, list [][]byte) []byte {
	size := 20
	for _, item := range list {
		size += 4 + len(item)
	}
	b := make([]byte, 0, size)
	dimensions := uint32(1)
	if len(list) == 0 {
		dimensions = 0
	}
	for _, v := range []uint32{dimensions, 0, of} {
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
