// Package orderedtest has what the tests of transactions on ordered keys share: it
// plays random operations and compares them with an obvious map, runs random
// histories, and fills and compares stores.
package orderedtest

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"sello/internal/ordered"
)

// A Tx is what a Model plays on.
type Tx interface {
	Get(key []byte) (value []byte, ok bool, err error)
	Put(key, value []byte) error
	Delete(key []byte) error
	Scan(lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error]
}

// A Model is the simplest Tx: a Go map. It plays random operations on a Tx and on
// itself and compares the results.
type Model struct {
	Rng     *rand.Rand
	Entries map[string]string
	Key     func(*rand.Rand) string // chooses a key
}

// Clone returns a Model with entries of its own and the same source of randomness.
func (m Model) Clone() Model {
	m.Entries = maps.Clone(m.Entries)
	return m
}

// Play plays n operations. The error is one of tx, or says where tx differs.
func (m Model) Play(tx Tx, n int) error {
	for range n {
		key := m.Key(m.Rng)
		switch m.Rng.IntN(10) {
		case 0, 1, 2, 3:
			value := strings.Repeat(key, m.Rng.IntN(100))
			if err := tx.Put([]byte(key), []byte(value)); err != nil {
				return err
			}
			m.Entries[key] = value
		case 4, 5:
			if err := tx.Delete([]byte(key)); err != nil {
				return err
			}
			delete(m.Entries, key)
		case 6: // a whole range, so that pages become empty
			lo, hi := key, m.Key(m.Rng)
			for key := range m.Entries {
				if key >= lo && key < hi {
					if err := tx.Delete([]byte(key)); err != nil {
						return err
					}
					delete(m.Entries, key)
				}
			}
		case 7:
			value, ok, err := tx.Get([]byte(key))
			if want, wantOK := m.Entries[key]; err != nil || string(value) != want || ok != wantOK {
				return fmt.Errorf("Get(%q) = %q, %v, %v; want %q, %v", key, value, ok, err, want, wantOK)
			}
		default:
			lo, hi := []string{"", key}[m.Rng.IntN(2)], []string{"", m.Key(m.Rng)}[m.Rng.IntN(2)]
			if err := m.Scan(tx, lo, hi, m.Rng.IntN(2) == 0, m.Rng.IntN(100)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Scan compares the first limit entries of a scan with those of the Model.
func (m Model) Scan(tx Tx, lo, hi string, reverse bool, limit int) error {
	var want, got []string
	for _, key := range slices.Sorted(maps.Keys(m.Entries)) {
		if key >= lo && (hi == "" || key < hi) {
			want = append(want, key+"="+m.Entries[key])
		}
	}
	if reverse {
		slices.Reverse(want)
	}
	want = want[:min(limit, len(want))]
	for e, err := range tx.Scan([]byte(lo), []byte(hi), reverse) {
		if err != nil {
			return err
		}
		if len(got) == limit {
			break
		}
		got = append(got, string(e.Key)+"="+string(e.Value))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("Scan(%q, %q, %v) up to %d:\n got %.200q\nwant %.200q", lo, hi, reverse, limit, got, want)
	}
	return nil
}
