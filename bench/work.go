package main

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"
)

// An id is a UUID, such as a customer's.
type id [16]byte

// appendID appends an id in the API's form.
func appendID(b []byte, u id) []byte {
	for i, group := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, group)
	}
	return b
}

func parseID(s string) (u id, ok bool) {
	if len(s) != 36 {
		return u, false
	}
	n, err := hex.Decode(u[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return u, err == nil && n == len(u)
}

// A work is a kind of request.
type work struct {
	name   string
	status int                                 // of every answer
	next   func(b []byte, r *rand.Rand) []byte // appends a request to b
}

// An audience is an organization's API key and the customers that requests are about.
type audience struct {
	key string
	ids []id
}

func (a *audience) random(r *rand.Rand) id { return a.ids[r.IntN(len(a.ids))] }

// tail returns the rest of a request after its path. The bound gets the same.
func (a *audience) tail(more string) []byte {
	return []byte(" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + a.key + "\r\n" + more + "\r\n")
}

// get returns a work that asks for one fixed path and query.
func (a *audience) get(path string) work {
	request := append([]byte("GET "+path), a.tail("")...)
	return work{path, 200, func(b []byte, _ *rand.Rand) []byte { return append(b, request...) }}
}

// customer returns a work that asks for a random customer, or for something of theirs.
// before and after are the parts of the path around the id.
func (a *audience) customer(before, after string) work {
	head, tail := []byte("GET "+before), a.tail("")
	return work{before + "{id}" + after, 200, func(b []byte, r *rand.Rand) []byte {
		b = appendID(append(b, head...), a.random(r))
		return append(append(b, after...), tail...)
	}}
}

func (a *audience) balance() work { return a.customer("/api/v1/points/customers/", "/balance") }
func (a *audience) one() work     { return a.customer("/api/v1/customers/", "") }

// addBody is the body of an add of points. The bound's POST gets the same.
const addBody = `{"amount":5,"category":"Bonus","comment":"mostrador"}`

// add adds points to a random customer, each time under a new Idempotency-Key.
func (a *audience) add() work {
	head := []byte("POST /api/v1/points/customers/")
	tail := a.tail(jsonHeader(len(addBody)) + "Idempotency-Key: ")
	tail = tail[:len(tail)-2] // the key comes before the header's end
	return work{"POST add", 201, func(b []byte, r *rand.Rand) []byte {
		b = appendID(append(b, head...), a.random(r))
		b = append(append(b, "/add"...), tail...)
		b = appendID(b, randomID(r))
		return append(append(b, "\r\n\r\n"...), addBody...)
	}}
}

// plainAdd is add without an Idempotency-Key, for the customers that next returns.
func (a *audience) plainAdd(next func() id) work {
	head := []byte("POST /api/v1/points/customers/")
	tail := a.tail(jsonHeader(len(addBody)))
	return work{"POST add", 201, func(b []byte, _ *rand.Rand) []byte {
		b = appendID(append(b, head...), next())
		b = append(append(b, "/add"...), tail...)
		return append(b, addBody...)
	}}
}

// sale registers a purchase of three items, to which the organization's three rules
// apply, each time under a new Idempotency-Key.
func (a *audience) sale() work {
	const (
		before = `{"customerId":"`
		after  = `","totalAmount":385.5,"items":[` +
			`{"sku":"GRANO-500","price":150,"quantity":2},` +
			`{"sku":"TAZA-1","price":60.5,"quantity":1},` +
			`{"sku":"PAN-7","price":25,"quantity":1}]}`
	)
	head := append([]byte("POST /api/v1/transactions"), a.tail(jsonHeader(len(before)+36+len(after))+"Idempotency-Key: ")...)
	head = head[:len(head)-2]
	return work{"POST transactions", 201, func(b []byte, r *rand.Rand) []byte {
		b = appendID(append(b, head...), randomID(r))
		b = append(append(b, "\r\n\r\n"...), before...)
		return append(appendID(b, a.random(r)), after...)
	}}
}

func jsonHeader(length int) string {
	return "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(length) + "\r\n"
}

// randomID returns a new id of 122 random bits, as clients use for Idempotency-Keys.
func randomID(r *rand.Rand) (u id) {
	for i := range u {
		if i%8 == 0 {
			v := r.Uint64()
			for j := range 8 {
				u[i+j] = byte(v >> (8 * j))
			}
		}
	}
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
