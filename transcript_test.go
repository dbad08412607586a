package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Golden transcripts show what clients send and what they get:
// testdata/golden/*.txt. `go test -run TestGolden -update` rewrites the
// responses that changed, and nothing else.
//
// A transcript is a list of steps with a blank line between them. A step has a
// few comments and directives, and at most one request with its response:
//
//	# A purchase says what it earned.
//	let sale = id
//	POST /api/v1/transactions as pos
//	Idempotency-Key: k-1
//	{"customerId": "$maria", "totalAmount": 150}
//	=> 201
//	Idempotency-Replayed: true
//	{...}
//
// `as` names the API key to send; `nobody` sends none. Without it, the key is
// that of the last directive `as`. A request has the header X-Request-Id: req-1
// and, with a body, Content-Type: application/json, unless it gives them itself.
// The value `-` leaves a header out. Peer stands for the address that the request
// comes from.
//
// In a request $name stands for a value that has a name, $(a*9) for aaaaaaaaa
// and $(ff) for the byte ff. Responses show the names of such values, and a long
// body on several lines. On the wire a body is JSON without white space and ends
// in a newline; faultsOf checks every response, whole.
//
// After `show`, the body of a success has only the members that matter, with
// the objects and lists around them; … stands for those left out of an object.
// The list `data` always shows its rows. Errors are always whole.
//
// Requests that differ in one place are a table: a step in which $case marks the
// place, and one row for each request, with what stands there and the answer.
//
//	POST /api/v1/points/customers/$maria/add
//	{"amount": $case}
//	=> each
//	0 | 400 amount_invalid field=amount | amount debe ser mayor a 0
//	5 | 201 | {"balance":55,…}
//
// An answer begins with words, as in testdata/hostile: the status, the code of
// an error, field=, allow=, id=new, close, other headers in lower case. Then
// comes the body of a success, or the message of an error and its context.
//
// Directives:
//
//	as KEY                 send this key from here on
//	let NAME = MEMBER      name a member of the next response, or its ETag
//	repeat N               send the next request N times; all but the last must succeed
//	show MEMBER…           from here on show only these members; `show all` shows
//	                       all again, `show nothing` none
//	also MEMBER…           show these too in the responses of this step
//	whole                  show the responses of this step whole
//	headers limits         show the RateLimit headers from here on
//	clock TIME, clock +1h  let time pass; d, h, m, s and ms
//	machine TIME           set the machine's clock wrong, to this time
//	machine right          set it right
//	machine synchronized   let the kernel say that its clock is synchronized;
//	                       `machine unsynchronized` takes that back
//	suspend +10h           let the machine sleep
//	accept                 sello clock accept
//	verify                 sello verify, as after each transcript
//	apply FILE             apply a document; what it makes is then called
//	                       $espresso, $club, $club.currency, $club.base (a rule)
//	                       if it is Café Luna's, $otra.espresso if it is Otra's
//	change ORG PATH = JSON apply ORG's document with this change; PATH consists of
//	                       names, keys and places in lists; + appends
//	key NAME ORG {...}     make an API key with these settings
//	rekey NAME {...}       change these settings of an API key of Café Luna
//	rotate NAME NEW +24h   make NEW in the place of NAME, which ends so much later
//	revoke NAME            revoke an API key of Café Luna
//	status ORG ID STATUS   give a customer a status
//	refuse ADDRESS         refuse keys from an address until it may not try another
//	mergeable N            refuse to merge customers with more than N records
//	sweep                  run the sweep
//	restart                start the server anew on the same store
//	store FAULT            let the store fail from here on, as faultyStore says
//
// testdata/world/world.txt is run before each transcript; after it the whole
// store is verified. `show` and `headers` hold to the end of their file. New ids
// and keys depend on what the step does, not on the steps before it.

// A step is one paragraph of a transcript, or one row of a table.
type step struct {
	before         string // the file's text before the response
	text           string // the step without its response
	directives     []string
	method, target string // "" if there is no request
	key            string // "" for that of the last `as`
	headers        []string
	body           string
	isRow          bool
	want           string // the response
}

func readSteps(t testing.TB, file string) []step {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		if table, rows, ok := strings.Cut(paragraph, "\n=> each\n"); ok {
			steps = append(steps, newRows(table, strings.Split(rows, "\n"))...)
		} else {
			steps = append(steps, newStep(paragraph))
		}
	}
	return steps
}

// newRows returns the steps of a table. `also` and `whole` hold for all of them,
// the other directives belong to the first.
func newRows(table string, rows []string) (steps []step) {
	for i, row := range rows {
		here, want, _ := strings.Cut(row, " | ")
		s := newStep(strings.ReplaceAll(table, "$case", here))
		s.isRow, s.want = true, want
		s.before = "\n" + here + " | "
		if i == 0 {
			s.before = "\n\n" + table + "\n=> each" + s.before
		} else {
			s.directives = slices.DeleteFunc(s.directives, func(d string) bool { return d != "whole" && !strings.HasPrefix(d, "also ") })
		}
		steps = append(steps, s)
	}
	return steps
}

var (
	requestLine = regexp.MustCompile(`^([A-Z]+) (\S+)(?: as (\S+))?$`)
	headerLine  = regexp.MustCompile(`^[A-Za-z-]+: `)
)

func newStep(paragraph string) step {
	var s step
	var before, body []string
	lines := strings.Split(paragraph, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "=> ") {
			s.want = strings.Join(lines[i:], "\n")
			break
		}
		before = append(before, line)
		switch m := requestLine.FindStringSubmatch(line); {
		case s.method != "" && len(body) == 0 && headerLine.MatchString(line):
			s.headers = append(s.headers, line)
		case s.method != "":
			body = append(body, line)
		case m != nil:
			s.method, s.target, s.key = m[1], m[2], m[3]
		case line != "" && !strings.HasPrefix(line, "#"):
			s.directives = append(s.directives, line)
		}
	}
	s.text, s.body = strings.Join(before, "\n"), strings.Join(body, "\n")
	if s.before = "\n\n" + s.text; s.method != "" {
		s.before += "\n"
	}
	return s
}

// deed returns what a step does, without its comments and the directives that only
// choose what to show. New ids and keys derive from it, so they stay the same when a
// comment changes.
func (s step) deed() string {
	acts := slices.DeleteFunc(slices.Clone(s.directives), func(d string) bool {
		verb, _, _ := strings.Cut(d, " ")
		return slices.Contains([]string{"show", "also", "whole", "headers"}, verb)
	})
	return strings.Join(slices.Concat(acts, []string{s.method, s.target, s.key}, s.headers, []string{s.body}), "\n")
}

// outcome returns the status of the response in the transcript, and the part of the
// body that the transcript shows.
func (s step) outcome() (status int, body string) {
	if s.isRow {
		words, body, _ := strings.Cut(s.want, " | ")
		a := readAnswerWords(strings.Fields(words))
		status, _ := strconv.Atoi(a.status)
		if status >= 400 && a.code != "" {
			message, _, _ := strings.Cut(body, " | ")
			e, _ := json.Marshal(errorBody{StatusCode: status, Code: a.code, Message: message, Field: a.named["field"]})
			body = string(e)
		}
		return status, body
	}
	lines := strings.Split(s.want, "\n")
	status, _ = strconv.Atoi(strings.TrimPrefix(lines[0], "=> "))
	for lines = lines[1:]; len(lines) > 0 && headerLine.MatchString(lines[0]); {
		lines = lines[1:]
	}
	return status, strings.Join(lines, "\n")
}

// answerWords are the words that describe a response in a table, such as
// `400 invalid_field field=page`.
type answerWords struct {
	status, code string
	named        map[string]string
}

func readAnswerWords(words []string) answerWords {
	a := answerWords{status: words[0], named: map[string]string{}}
	for _, word := range words[1:] {
		if name, value, ok := strings.Cut(word, "="); ok {
			a.named[name] = value
		} else if word != "close" {
			a.code = word
		}
	}
	return a
}
