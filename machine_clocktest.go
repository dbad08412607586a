//go:build clocktest

package main

import (
	"encoding/json"
	"os"
	"time"
)

// theMachine, in the build for tests of the clock, returns a machine whose wall clock
// is wrong by the offset in a file, which SELLO_TEST_CLOCK names:
//
//	{"offset": "87600h", "synchronized": true}
//
// The file is read at each reading of the clock, so that a test can set the clock of
// a running server.
func theMachine() machine {
	m, file := newSystemClock(), os.Getenv("SELLO_TEST_CLOCK")
	if file == "" {
		return m
	}
	return setClock{m, file}
}

type setClock struct {
	machine
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

func (m setClock) read() reading {
	r := m.machine.read()
	offset, err := time.ParseDuration(m.setting().Offset)
	if err != nil {
		panic(err)
	}
	r.wall = r.wall.Round(0).Add(offset)
	return r
}

func (m setClock) synchronized() (yes, known bool) { return m.setting().Synchronized, true }
