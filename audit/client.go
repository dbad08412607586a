package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A client sends requests with one API key.
type client struct {
	base, key string
	http      http.Client
}

func newClient(base, key string, conns int) *client {
	t := &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, DisableCompression: true}
	return &client{base, key, http.Client{Transport: t, Timeout: 20 * time.Second}}
}

// post sends a request once. After an error its outcome is unknown.
func (c *client) post(r *request) (*answer, error) {
	req, err := http.NewRequest(http.MethodPost, c.base+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // keeps net/http from sending it again when a connection breaks
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", r.Key)
	res, body, err := c.do(req)
	if err != nil {
		return nil, err
	}
	return &answer{r.Key, res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", string(body)}, nil
}

func (c *client) do(req *http.Request) (*http.Response, []byte, error) {
	req.Header.Set("X-API-Key", c.key)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

var errNotFound = errors.New("not found")

func (c *client) get(path string) (object, error) {
	req, err := http.NewRequest(http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	res, body, err := c.do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("GET %s: %w", path, errNotFound)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %d %s", path, res.StatusCode, body)
	}
	return parseObject(body)
}

// list gets all pages of a list, newest first.
func (c *client) list(path string) ([]object, error) {
	var all []object
	for page := 1; ; page++ {
		o, err := c.get(fmt.Sprintf("%slimit=100&page=%d", path, page))
		if err != nil {
			return nil, err
		}
		data, _ := o["data"].([]any)
		for _, e := range data {
			item, ok := e.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("GET %s: an item is no object", path)
			}
			all = append(all, item)
		}
		meta, _ := o["meta"].(map[string]any)
		if meta["hasNextPage"] == true {
			continue
		}
		if total := object(meta).int("total"); total != len(all) {
			return nil, fmt.Errorf("GET %s: total is %d, and there are %d", path, total, len(all))
		}
		return all, nil
	}
}

// total returns how many items a list has.
func (c *client) total(path string) (int, error) {
	o, err := c.get(path + "?limit=1")
	if err != nil {
		return 0, err
	}
	meta, _ := o["meta"].(map[string]any)
	return object(meta).int("total"), nil
}

// totals returns the counts that the server has now.
func (c *client) totals() (t totals, err error) {
	for path, n := range map[string]*int{"/customers": &t.Customers, "/transactions": &t.Sales, "/redemptions": &t.Redemptions} {
		if *n, err = c.total(path); err != nil {
			return t, err
		}
	}
	rewards, err := c.list("/rewards?")
	t.Stock = map[string]int{}
	for _, r := range rewards {
		if r["stock"] != nil {
			t.Stock[r.text("id")] = r.int("stock")
		}
	}
	return t, err
}

// An object is a JSON object. Its numbers are kept as text.
type object map[string]any

func parseObject(text []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("no JSON object: %w: %s", err, text)
	}
	return o, nil
}

// text returns a string member, or "" for anything else, such as null.
func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) int(name string) int {
	n, _ := o[name].(json.Number)
	v, err := strconv.Atoi(string(n))
	if err != nil {
		return -1
	}
	return v
}

// points returns an amount in ten-thousandths.
func (o object) points(name string) points {
	n, _ := o[name].(json.Number)
	p, err := parsePoints(string(n))
	if err != nil {
		return -1 << 63 // equals no real amount
	}
	return p
}

// points is an amount of points or money, in ten-thousandths.
type points int64

func parsePoints(text string) (points, error) {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) > 4 {
		return 0, fmt.Errorf("more than four decimal places: %s", text)
	}
	n, err := strconv.ParseInt(whole+part+"0000"[len(part):], 10, 64)
	return points(n), err
}

func (p points) String() string {
	sign, n := "", int64(p)
	if n < 0 {
		sign, n = "-", -n
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%s%d.%04d", sign, n/10000, n%10000), "0"), ".")
}
