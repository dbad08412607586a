package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// Batches: many of something in one request, each of which is done whole or not at all.

// maxBatch is how many rows a batch has at most.
const maxBatch = 100

// A batchRow is one row of a batch.
type batchRow[T any] struct {
	in    T
	actor string
	fault error // of its fields
}

// readBatch reads the list of a batch with one, which is given a row's own request and its JSON.
// A fault of a row is kept in it. The rows count as requests of the key.
func readBatch[T any](r *request, list string, one func(row *request, literal string) T) []batchRow[T] {
	elements := r.batchElements(list)
	rows := make([]batchRow[T], len(elements))
	for i, element := range elements {
		literal := element.value
		own := r.ofRow(literal)
		if literal[0] != '{' {
			own.fields.invalid(fmt.Sprintf("%s[%d]", list, i), "debe ser un objeto")
		} else {
			rows[i].in = one(own, literal)
			rows[i].actor = own.rowActor()
		}
		rows[i].fault = own.firstFault(maxRowFaults)
	}
	r.more = int32(max(len(rows)-1, 0))
	return rows
}

// batchElements cuts the list of a batch.
func (r *request) batchElements(list string) []pair {
	literal := r.fields.literal(list)
	if literal != "" && literal[0] != '[' {
		r.fields.invalid(list, "debe ser una lista")
		return nil
	}
	p := splitter{left: len(literal)}
	if literal != "" {
		p.cutMembers(literal, 1) // parseObjectOf has found the array valid
	}
	if n := len(p.stack); n == 0 || n > maxBatch {
		r.fields.invalid(list, "debe tener de 1 a %d elementos", maxBatch)
		return nil
	} else if most := r.key.leastLimit(); n > most {
		r.fields.invalid(list, "no puede superar los %d elementos, el límite de solicitudes de la clave", most)
		return nil
	}
	return p.stack
}

// ofRow returns the request that a row of a batch is.
func (r *request) ofRow(literal string) *request {
	members := splitter{left: len(literal)}
	if literal[0] == '{' {
		members.cutMembers(literal, 1)
	}
	one := &request{caller: r.caller, now: r.now, strict: r.strict, fields: newFields(members.stack)}
	if r.strict {
		one.fields.beStrict()
	}
	return one
}

// rowActor reads who made a row of a batch; "" for whom the request names.
func (r *request) rowActor() string {
	text, _ := r.fields.text("actor", maxActor)
	if strings.ContainsFunc(text, unicode.IsControl) {
		r.fields.invalid("actor", "contiene caracteres no permitidos")
	}
	return text
}

// eachOfBatch does each row of a batch with one, and returns what came of them; an error for
// clients is failed. A row sees what those before it did.
func eachOfBatch[T, R any](t *txn, rows []batchRow[T], one func(*batchRow[T]) (R, error), failed func(status int, e *errorBody) R) ([]R, error) {
	results := make([]R, len(rows))
	err := t.eachRow(len(rows), func(i int) (keep bool, err error) {
		row := &rows[i]
		if row.actor != "" {
			t.by.Actor = row.actor
		}
		err = t.seals.separately(func() (err error) {
			results[i], err = one(row)
			return err
		})
		if err == nil {
			return true, nil
		}
		e := publicError(err)
		if e.code.status >= http.StatusInternalServerError {
			return false, err
		}
		results[i] = failed(e.code.status, new(e.body(unmarked(t.requestID))))
		return false, nil
	})
	return results, err
}

// appendRow begins the result of a row of a batch, which has the value of member next.
func appendRow(b []byte, status int, member string) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(status), 10)
	return append(append(append(b, `,"`...), member...), `":`...)
}

func appendFailedRow(b []byte, status int, e *errorBody) []byte {
	text, _ := encode(e) // texts and figures, which cannot fail
	return append(append(appendRow(b, status, "error"), bytes.TrimSpace(text)...), '}')
}
