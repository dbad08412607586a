package main

import (
	"bytes"
	"sync"
)

// A cache keeps what was decoded from the store, so that a value that did
// not change is not decoded again. It is never the truth: each use brings
// the stamp that its transaction read (the stored bytes themselves, or a hash
// of them), and a value with another stamp is decoded anew. The zero cache is ready for use.
type cache[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]stamped[V]
}

type stamped[V any] struct {
	stamp []byte
	value V
}

// cacheSize bounds a cache: when it is full it is emptied.
const cacheSize = 4096

func (c *cache[K, V]) get(k K, stamp []byte, decode func() (V, error)) (V, error) {
	c.mu.RLock()
	s, ok := c.values[k]
	c.mu.RUnlock()
	if ok && bytes.Equal(s.stamp, stamp) {
		return s.value, nil
	}
	v, err := decode()
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= cacheSize {
		c.values = map[K]stamped[V]{}
	}
	c.values[k] = stamped[V]{bytes.Clone(stamp), v}
	return v, nil
}
