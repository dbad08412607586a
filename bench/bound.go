package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"time"
)

// The bound is a server that does the least a net/http server can do for the same
// requests: it handles HTTP and decodes the body of a POST. It is this program
// again, in a process of its own.

// boundRole is the argument that makes this program the bound.
const boundRole = "-bound"

// A boundSetup holds the bound's answers.
type boundSetup struct {
	Body string       `json:"body"` // of any other GET; as long as sello's answer
	Page customerPage `json:"page"` // of GET /page, encoded anew each time
}

// A customerPage is a page of the customers' list, in the API's form.
type customerPage struct {
	Data []customerItem `json:"data"`
	Meta pageMeta       `json:"meta"`
}

type customerItem struct {
	ID               string  `json:"id"`
	Name             string  `json:"name"`
	Status           string  `json:"status"`
	LoyaltyProgramID string  `json:"loyaltyProgramId"`
	TierName         *string `json:"tierName"`
}

type pageMeta struct {
	CurrentPage     uint64 `json:"currentPage"`
	Total           uint64 `json:"total"`
	HasNextPage     bool   `json:"hasNextPage"`
	HasPreviousPage bool   `json:"hasPreviousPage"`
}

func startBound(ctx context.Context, s boundSetup) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	setup, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, boundRole)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	go in.Write(append(setup, '\n'))
	p, err := start(ctx, cmd, "", cmd.StdoutPipe, func(line []byte) string { return string(line) })
	if err == nil {
		p.stdin = in
	}
	return p, err
}

// gcPercent is the same as sello's.
const gcPercent = 200

// runBound serves until standard input ends.
func runBound() error {
	in := json.NewDecoder(os.Stdin)
	var s boundSetup
	if err := in.Decode(&s); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	server := &http.Server{ // with sello's limits
		Handler:           boundHandler(s),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	fmt.Println(listener.Addr())
	go func() {
		io.Copy(io.Discard, in.Buffered())
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return server.Serve(listener)
}

// likePath is answered with as many headers as sello sends. Their cost is net/http's,
// and no handler can avoid it.
const likePath = "/like"

var likeHeaders = map[string]string{
	"Cache-Control":         "no-store",
	"X-Request-Id":          "KZ4QW7T2JYV6M3SLXA5CPAAAAB",
	"Ratelimit-Policy":      `"minute";q=1000000000;w=60`,
	"Ratelimit":             `"minute";r=999999999;t=60`,
	"X-Ratelimit-Limit":     "1000000000",
	"X-Ratelimit-Remaining": "999999999",
	"X-Ratelimit-Reset":     "60",
}

func boundHandler(s boundSetup) http.Handler {
	body := []byte(s.Body)
	answer := func(w http.ResponseWriter, status int, body []byte) {
		h := w.Header()
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		w.WriteHeader(status)
		w.Write(body)
	}
	created := []byte(`{"status":"created"}` + "\n")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			raw, err := io.ReadAll(r.Body)
			var in struct {
				Amount   float64 `json:"amount"`
				Category string  `json:"category"`
				Comment  string  `json:"comment"`
			}
			if err == nil {
				err = json.Unmarshal(raw, &in)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer(w, http.StatusCreated, created)
		case r.URL.Path == likePath:
			h := w.Header()
			for name, value := range likeHeaders {
				h[name] = []string{value}
			}
			answer(w, http.StatusOK, body)
		case r.URL.Path == "/page":
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(&s.Page); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answer(w, http.StatusOK, b.Bytes())
		default:
			answer(w, http.StatusOK, body)
		}
	})
}
