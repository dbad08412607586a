//go:build clocktest

package wallclock

import (
	"encoding/json"
	"os"
	"time"
)

// System, in the build for tests of the clock, returns a machine whose wall clock
// is wrong by the offset in a file, which SELLO_TEST_CLOCK names:
//
//	{"offset": "87600h", "synchronized": true}
//
// The file is read at each reading of the clock, so that a test can set the clock of
// a running server.
func System() Machine {
	m, file := newSystem(), os.Getenv("SELLO_TEST_CLOCK")
	if file == "" {
		return m
	}
	return setClock{m, file}
}

type setClock struct {
	Machine
	file string
}

type clockSetting struct {
	Offset       string `json:"offset"`
	Synchronized bool   `json:"synchronized"`
}

func (m setClock) setting() (s clockSetting) {
	raw, err := os.ReadFile(m.file)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

func (m setClock) Read() Reading {
	r := m.Machine.Read()
	offset, err := time.ParseDuration(m.setting().Offset)
	if err != nil {
		panic(err)
	}
	r.Wall = r.Wall.Round(0).Add(offset)
	return r
}

func (m setClock) Synchronized() (yes, known bool) { return m.setting().Synchronized, true }
