package main

// The store of a sandbox says that it is one, and keeps what it began with:
//
//	v 's'      → when its clock began, and its API key
//	v 's' key  → the value that the key had when the organization began
//
// A reset puts these entries in the place of all others.

// A sandboxMark says that a store is a sandbox's.
type sandboxMark struct {
	Start instant // of the clock
	Key   string  // text of the key that it prints
}

// put writes the mark.
func (m *sandboxMark) put(tx Tx) error {
	return tx.Put(tableSandbox.fixed(), key(nil).instant(m.Start).text(m.Key))
}

// readMark returns the mark of a sandbox; nil if the store is none.
func readMark(tx Tx) (*sandboxMark, error) {
	value, ok, err := tx.Get(tableSandbox.fixed())
	if err != nil || !ok {
		return nil, err
	}
	if len(value) < 8 {
		return nil, unreadable(tableSandbox.fixed())
	}
	return &sandboxMark{instantIn(value), string(value[8:])}, nil
}
