package main

import (
	"context"
	"net/http"
	"time"

	"sello/internal/semaphore"
)

// bodyParts are the body of a 200 that may be too long for memory. next appends the next part,
// in a View of its own, and returns what comes after it; nil if that was the last. So no View
// waits for a slow reader. It leaves its receiver as it was, since a View may run again.
type bodyParts interface {
	next(t *txn, b []byte) (part []byte, rest bodyParts, err error)
}

// partTime is how long a client may take to read a part.
const partTime = 30 * time.Second

// A partedBody is a body in parts that is being sent.
type partedBody struct {
	rest       bodyParts // nil: there are no more parts
	engine     *engine
	org        uint32
	now        instant
	processors *semaphore.Semaphore
}

// read returns the next part.
func (p *partedBody) read(ctx context.Context) ([]byte, error) {
	if _, err := p.processors.Take(ctx, 1, semaphoreWait); err != nil {
		return nil, err
	}
	defer p.processors.Give(1)
	type step struct {
		part []byte
		rest bodyParts
	}
	done, err := read(ctx, p.engine, p.org, p.now, func(t *txn) (s step, err error) {
		s.part, s.rest, err = p.rest.next(t, nil)
		return s, err
	})
	if err == nil {
		p.rest = done.rest
	}
	return done.part, err
}

// write writes the parts that are left.
func (p *partedBody) write(ctx context.Context, w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	for p.rest != nil {
		part, err := p.read(ctx)
		if err != nil {
			return err
		}
		c.SetWriteDeadline(time.Now().Add(partTime)) // a recorder of tests has none
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
