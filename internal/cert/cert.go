// Package cert serves a certificate from files that are renewed while a server runs.
package cert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"
	"time"

	"sello/internal/parallel"
)

// A Pair is a certificate and its key in PEM files. They are read anew when either changes: a
// renewal needs no restart. A pair that is valid now is never given up for one that is not.
type Pair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // that is served
	newest  *tls.Certificate // that the files had last
	read    pairState        // when newest was read, or could not be
	told    string           // what the log said last of current's time; "" for nothing
	toldAt  time.Time
}

const (
	lookPause  = time.Hour           // between looks at the files, where nobody connects
	warnPause  = 24 * time.Hour      // between two warnings
	warnBefore = 14 * 24 * time.Hour // before the end
)

// A pairState tells whether the files of a certificate have changed.
type pairState [2]struct {
	changed time.Time
	size    int64
}

// Open reads the files for the first time, and logs if their certificate is not
// valid at now, or not for long.
func Open(certFile, keyFile string, now time.Time, log *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, log: log}
	if err := p.renew(now); err != nil {
		return nil, err
	}
	p.warn(now)
	return p, nil
}

// renew reads the files if they have changed, and takes their pair, unless it is not valid
// and the current one is. Such a pair is taken once it is valid, or the current one is not.
func (p *Pair) renew(now time.Time) error {
	err := p.readFiles()
	if p.current == nil || OutOfDate(p.newest.Leaf, now) == "" || OutOfDate(p.current.Leaf, now) != "" {
		p.current = p.newest
	}
	return err
}

// readFiles sets newest if the files have changed. On an error newest stays.
func (p *Pair) readFiles() error {
	state, err := p.state()
	if state == p.read && p.newest != nil {
		return nil
	}
	p.read = state
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err == nil {
		p.newest = &pair
	}
	return err
}

// state is zero where the files cannot be looked at.
func (p *Pair) state() (pairState, error) {
	var state pairState
	for i, name := range [2]string{p.certFile, p.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return pairState{}, err
		}
		state[i].changed, state[i].size = info.ModTime(), info.Size()
	}
	return state, nil
}

// OutOfDate says why clients refuse a certificate at now; "" if its time is no reason to.
func OutOfDate(cert *x509.Certificate, now time.Time) string {
	switch {
	case now.Before(cert.NotBefore):
		return "certificate not valid yet"
	case now.After(cert.NotAfter):
		return "certificate expired"
	}
	return ""
}

// EndsSoon reports whether a certificate ends within warnBefore, or, of one that
// lasts for days only, within the last third of its time.
func EndsSoon(cert *x509.Certificate, now time.Time) bool {
	return now.After(cert.NotAfter.Add(-min(warnBefore, cert.NotAfter.Sub(cert.NotBefore)/3)))
}

// Look returns the pair to serve. While the files cannot be read, or do not fit together as
// halfway through a renewal, it is that of before. Look logs what has changed.
func (p *Pair) Look(now time.Time) *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, seen := p.current, p.newest
	err := p.renew(now)
	switch {
	case err != nil:
		p.log.Warn("certificate not renewed", "cause", err.Error())
	case p.current != was:
		p.log.Info("certificate renewed", "until", p.current.Leaf.NotAfter)
		p.told = ""
	case p.newest != seen:
		p.log.Warn("certificate not renewed", "cause", OutOfDate(p.newest.Leaf, now)+": the valid one of before stays",
			"from", p.newest.Leaf.NotBefore, "until", p.newest.Leaf.NotAfter)
	}
	p.warn(now)
	return p.current
}

// warn logs that the current certificate is not valid, or not for long: at once, and then
// every warnPause.
func (p *Pair) warn(now time.Time) {
	cert := p.current.Leaf
	text := OutOfDate(cert, now)
	if text == "" && EndsSoon(cert, now) {
		text = "certificate expires soon"
	}
	if text != "" && (text != p.told || now.Sub(p.toldAt) >= warnPause) {
		p.log.Warn(text, "file", p.certFile, "from", cert.NotBefore, "until", cert.NotAfter)
		p.toldAt = now
	}
	p.told = text
}

// Watch looks at the files until ctx ends.
func (p *Pair) Watch(ctx context.Context) {
	parallel.Every(ctx, lookPause, func() { p.Look(time.Now()) })
}
