package tz

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// The time zones of the world, a copy of GOROOT/lib/time/zoneinfo.zip. The
// standard library would look at the machine's first, and another machine may
// know other rules: days, expiry and statistics must not depend on it.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

var zoneFiles = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
})

// Load finds a time zone by its IANA name, to the letter.
func Load(name string) (*time.Location, error) {
	files, err := zoneFiles()
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %w", name, err)
	}
	return time.LoadLocationFromTZData(name, data)
}
