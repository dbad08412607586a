package main

import (
	"context"
	"net/http"
	"time"
)

// bodyParts are the body of a 200 that may be too long for memory. next appends the next part,
// in a View of its own, and reports whether there are more. So no View waits for a slow
// reader.
type bodyParts interface {
	next(t *txn, b []byte) (part []byte, more bool, err error)
}

// partTime is how long a client may take to read a part.
const partTime = 30 * time.Second

// A partedBody is a body in parts that is being sent.
type partedBody struct {
	bodyParts
	engine     *engine
	org        uint32
	now        instant
	processors *semaphore
	ended      bool // there are no more parts
}

// read returns the next part.
func (p *partedBody) read(ctx context.Context) ([]byte, error) {
	if _, err := p.processors.take(ctx, 1, semaphoreWait); err != nil {
		return nil, err
	}
	defer p.processors.give(1)
	return read(ctx, p.engine, p.org, p.now, func(t *txn) (part []byte, err error) {
		var more bool
		part, more, err = p.next(t, nil)
		p.ended = !more
		return part, err
	})
}

// write writes the parts that are left.
func (p *partedBody) write(ctx context.Context, w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	for !p.ended {
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
