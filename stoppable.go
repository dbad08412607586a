package main

import (
	"context"
	"iter"
)

// A stoppableTx fails its reads once a context ends, since a View does not watch its
// context.
type stoppableTx struct {
	Tx
	ctx   context.Context
	calls uint // of Get, and entries of Scan
}

// callsUnlooked is how many calls pass between two looks at the context.
const callsUnlooked = 64

func (t *stoppableTx) stopped() error {
	if t.calls++; t.calls%callsUnlooked != 1 {
		return nil
	}
	return t.ctx.Err()
}

func (t *stoppableTx) Get(key []byte) ([]byte, bool, error) {
	if err := t.stopped(); err != nil {
		return nil, false, err
	}
	return t.Tx.Get(key)
}

func (t *stoppableTx) below() Tx { return t.Tx }

func (t *stoppableTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range t.Tx.Scan(lo, hi, reverse) {
			if err == nil {
				err = t.stopped()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (t *stoppableTx) share() Tx {
	if shared := shares(t.Tx, 2); len(shared) == 2 {
		return &stoppableTx{Tx: shared[1], ctx: t.ctx}
	}
	return nil
}
