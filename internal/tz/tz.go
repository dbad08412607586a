// Package tz holds the time zones of the world. The standard library would look for
// them on the machine first, and machines know different rules. What depends on a zone
// must come out the same everywhere.
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

// zoneinfo is a copy of GOROOT/lib/time/zoneinfo.zip.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// zoneFiles opens zoneinfo, once.
var zoneFiles = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
})

// Load returns the time zone of an IANA name such as "America/Mexico_City". Case
// counts. It refuses "" and "Local", which the standard library accepts.
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
