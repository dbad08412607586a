package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Golden transcripts: what clients send and what they get, in
// testdata/golden/*.txt. `go test -run TestGolden -update` rewrites the
// responses that changed, and nothing else.
//
// A transcript is a list of steps with a blank line between them. A step is a
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
// `as` names the API key that is sent, `nobody` none; without it, it is that
// of the last directive `as`. A request has the header X-Request-Id: req-1 and,
// with a body, Content-Type: application/json, unless it gives them itself; the
// value `-` sends none. Peer is no header but the address that it comes from.
//
// In a request $name is a value that has a name, $(a*9) stands for aaaaaaaaa
// and $(ff) for the byte of that number. Responses show named values by their
// names and a long body on several lines; what came was JSON without white
// space and ended in a newline, and faultsOf found nothing wrong with it.
//
// Directives:
//
//	as KEY                 send this key from here on
//	let NAME = MEMBER      name a member of the next response
//	repeat N               send the next request so often, all but the last get 2xx
//	show limits            show the RateLimit headers from here on
//	clock TIME, clock +1h  let time pass; d, h, m, s and ms
//	machine TIME           set the machine's clock to what it is not; machine right
//	                       sets it right, machine synchronized (unsynchronized) is
//	                       what its kernel says of it
//	suspend +10h           let the machine sleep
//	accept                 sello clock accept
//	verify                 sello verify, as after each transcript
//	apply FILE             apply a document; what it makes is then called
//	                       $espresso, $club, $club.currency, $club.base (a rule)
//	                       if it is Café Luna's, $otra.espresso if it is Otra's
//	change ORG PATH = JSON apply ORG's document with this change; PATH is of
//	                       names, keys and places in lists; + appends
//	key NAME ORG {...}     make an API key with these settings
//	revoke NAME            revoke an API key of Café Luna
//	status ORG ID STATUS   make a customer Active or Inactive
//	refuse ADDRESS         refuse an address's keys until it may not try another
//	sweep                  run the sweep
//	restart                start the server anew on the same store
//	store FAULT            let the store fail from here on, as faultyStore says
//
// testdata/world/world.txt is run before each transcript; after it the whole
// store is verified. New ids and keys depend on what the step does, not on the
// steps before it.

// A step is one paragraph of a transcript.
type step struct {
	text           string // all but the response
	directives     []string
	method, target string // "" if there is no request
	key            string // "" for that of the last `as`
	headers        []string
	body           string
	want           string // the response
}

func readSteps(t testing.TB, file string) []step {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		steps = append(steps, newStep(paragraph))
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
	return s
}

// deed is what a step does, without its comments. Its new ids and keys depend
// on it, so that they stay when a comment changes.
func (s step) deed() string {
	return strings.Join(slices.Concat(s.directives, []string{s.method, s.target, s.key}, s.headers, []string{s.body}), "\n")
}
