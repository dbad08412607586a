package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// panelRows is how many rows a list of the panel has.
const panelRows = 20

// panelLists is target 14: what a list of the panel costs, against the request of the API that
// has the same rows.
// Panel check 35.
func (b *bench) panelLists(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx)
	if err != nil {
		return err
	}
	pages := (d.customers + panelRows - 1) / panelRows
	lists := []struct{ name, query string }{
		{"first page", ""},
		{"page " + count(pages), fmt.Sprintf("page=%d", pages)},
		{"search with 1,000 hits", "search=" + urlEscape(strings.ToLower(rareSurname))},
	}
	var askings []*asking
	for _, l := range lists {
		api := d.fixed("API, "+l.name, p, fmt.Sprintf("/api/v1/customers?limit=%d&%s", panelRows, l.query))
		panel, err := d.panelAsking(ctx, p, "panel, "+l.name, "/panel/clientes?"+l.query)
		if err != nil {
			return err
		}
		askings = append(askings, api, panel)
	}
	if err := b.compare(ctx, askings); err != nil {
		return err
	}
	time, cpu, bytes := 0.0, 0.0, 0
	values := map[string]any{}
	var parts []string
	for i := 0; i < len(askings); i += 2 {
		api, panel := askings[i], askings[i+1]
		time, cpu = max(time, median(ratios(panel.ms, api.ms))), max(cpu, median(ratios(panel.cpu, api.cpu)))
		bytes = max(bytes, panel.bytes)
		for _, a := range []*asking{api, panel} {
			values[a.name] = a.values()
			parts = append(parts, fmt.Sprintf("%s %.3f ms, %.0f µs of server CPU, %s bytes", a.name, median(a.ms), median(a.cpu), count(int64(a.bytes))))
		}
	}
	figure, ok := fmt.Sprintf("time %.2f", time), time <= 2
	if askings[0].cpu[0] > 0 {
		figure, ok = figure+fmt.Sprintf(", CPU %.2f", cpu), ok && cpu <= 2
	}
	figure += fmt.Sprintf("; %.1f KB", float64(bytes)/1000)
	b.add(row{
		"14", fmt.Sprintf("panel's list of %d customers ÷ the API's; its page", panelRows), "≤ 2; ≤ 40 KB", figure,
		verdictOf(ok && bytes <= 40_000).only(!b.short && d.customers >= 1_000_000), strings.Join(parts, "; "), values,
	})
	return p.stop()
}

// sessionBurst is how many pages a session may open at once.
const sessionBurst = 300

// panelAsking asks for a page of the panel as a new owner of the organization, who came by
// an invitation.
func (d *dataset) panelAsking(ctx context.Context, p *process, name, path string) (*asking, error) {
	email := fmt.Sprintf("bench-%d@example.com", time.Now().UnixNano())
	out, err := d.sello(ctx, nil, "user", "invite", "-org", "bench", "-email", email, "-role", "owner", "-json")
	if err != nil {
		return nil, err
	}
	var invited struct{ Link string }
	if err := json.Unmarshal(out, &invited); err != nil {
		return nil, err
	}
	answer, err := postForm(ctx, invited.Link, url.Values{"username": {email}, "name": {"Ana"}, "password": {"doce nubes sobre el faro"}}, "")
	if err != nil {
		return nil, err
	}
	for _, c := range answer.Cookies() {
		if c.Name == "sello" {
			request := []byte("GET " + strings.TrimSuffix(path, "?") + " HTTP/1.1\r\nHost: " + p.addr + "\r\nCookie: sello=" + c.Value + "\r\n\r\n")
			a := newAsking(name, p, func(*rand.Rand) []byte { return request })
			a.most = max(sessionBurst/d.bench.rounds-1, 1) // the first answer of a round is not counted
			return a, nil
		}
	}
	return nil, fmt.Errorf("the invitation was answered with %s and no session", answer.Status)
}

// postForm sends a form as a browser would from a page of the same origin. The answer's
// body has been read. A source that is not "" stands in X-Forwarded-For.
func postForm(ctx context.Context, address string, form url.Values, source string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", request.URL.Scheme+"://"+request.URL.Host)
	if source != "" {
		request.Header.Set("X-Forwarded-For", source)
	}
	answer, err := http.DefaultTransport.RoundTrip(request) // no redirects
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer, errors.Join(err, answer.Body.Close())
}

// idlePanel is target 15: what a panel that nobody uses costs the API.
// Panel check 71.
func (b *bench) idlePanel(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	type side struct {
		name       string
		flags      []string
		gets, adds []float64 // per second
	}
	off, on := &side{name: "without a panel", flags: []string{"-panel", "off"}}, &side{name: "with one"}
	for n := range b.rounds {
		sides := []*side{off, on}
		if n%2 == 1 {
			sides = []*side{on, off}
		}
		for _, s := range sides {
			p, err := d.serve(ctx, s.flags...)
			if err != nil {
				return err
			}
			get, err := b.play(ctx, d, p, d.balance())
			if err != nil {
				return err
			}
			add, err := b.play(ctx, d, p, d.add())
			if err != nil {
				return err
			}
			s.gets, s.adds = append(s.gets, get.rate()), append(s.adds, add.rate())
			if err := p.stop(); err != nil {
				return err
			}
		}
	}
	gets, adds := ratios(on.gets, off.gets), ratios(on.adds, off.adds)
	values := map[string]any{}
	var parts []string
	for _, s := range []*side{off, on} {
		values[s.name] = map[string]any{"getsPerSecond": figures(s.gets), "addsPerSecond": figures(s.adds)}
		parts = append(parts, fmt.Sprintf("%s %s GET and %s adds a second", s.name, count(median(s.gets)), count(median(s.adds))))
	}
	values["ratios"] = map[string]any{"gets": figures(gets), "adds": figures(adds)}
	b.add(row{
		"15", "with a panel that nobody uses ÷ without one: GET balance; POST add", "≥ 0.95", fmt.Sprintf("%.3f; %.3f", median(gets), median(adds)),
		verdictOf(min(median(gets), median(adds)) >= 0.95).only(!b.short && d.customers >= 1_000_000), strings.Join(parts, "; "), values,
	})
	return nil
}

// logInsPerSecond come from as many sources, all believed, so that no throttle of one of
// them keeps the passwords from being looked at.
const logInsPerSecond = 50

// logIns is target 16: what log-ins cost others.
// Panel check 71.
func (b *bench) logIns(ctx context.Context, _ func(...string) bool) error {
	d := b.main
	p, err := d.serve(ctx, "-trusted-proxies", "127.0.0.1")
	if err != nil {
		return err
	}
	before, beside := d.fixed("GET /livez", p, "/livez"), d.fixed("GET /livez", p, "/livez")
	if err := b.compare(ctx, []*asking{before}); err != nil {
		return err
	}
	highest := p.highestMemory(ctx)
	answers, err := d.floodLogIns(ctx, p, func() error { return b.compare(ctx, []*asking{beside}) })
	most := highest()
	if err != nil {
		return err
	}
	rest, during := median(before.ms), median(beside.ms)
	b.add(row{
		"16", fmt.Sprintf("memory beside %d log-ins a second; GET /livez then ÷ before", logInsPerSecond), "≤ 256 MB; ≤ 2", fmt.Sprintf("%s; %.2f", megabytes(most), during/rest),
		verdictOf(most <= 256<<20 && during <= 2*rest).only(!b.short && d.customers >= 1_000_000),
		fmt.Sprintf("median of /livez %.3f ms, then %.3f ms; log-ins were answered %v", rest, during, answers),
		map[string]any{"before": figures(before.ms), "during": figures(beside.ms), "memoryBytes": most},
	})
	return p.stop()
}

// floodLogIns sends wrong log-ins while meanwhile runs, each of an account and a source of
// its own, and returns how many answers had which status.
func (d *dataset) floodLogIns(ctx context.Context, p *process, meanwhile func() error) (map[int]int, error) {
	answers := map[int]int{}
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		faults []error
	)
	tick := time.NewTicker(time.Second / logInsPerSecond)
	defer tick.Stop()
	done := make(chan error, 1)
	go func() { done <- meanwhile() }()
	for n := 0; ; n++ {
		select {
		case err := <-done:
			wait.Wait()
			return answers, errors.Join(append(faults, err)...)
		case <-tick.C:
		}
		wait.Go(func() {
			form := url.Values{"email": {fmt.Sprintf("nadie-%d@example.com", n)}, "password": {"ninguna de las mías"}}
			answer, err := postForm(ctx, "http://"+p.addr+"/panel/entrar", form, fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, err)
				return
			}
			answers[answer.StatusCode]++
		})
	}
}
