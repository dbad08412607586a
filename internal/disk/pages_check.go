package disk

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"sello/internal/parallel"
)

// checkAll validates every page anew, and compares what is there with the inventory,
// unless want is nil. It returns a tree of the same pages that does not verify their
// values again.
func (t *pageTree) checkAll(ctx context.Context, want *inventory, workers int) (*pageTree, error) {
	afresh := *t
	afresh.checked = pageSet(nil).with(t.pages()) // none is validated yet
	afresh.proven = true
	found, err := afresh.walkAll(ctx, workers)
	if err != nil && workers > 1 && ctx.Err() == nil {
		// The error found first must not depend on which goroutine was faster.
		return t.checkAll(ctx, want, 1)
	}
	if err == nil && want != nil && found != *want {
		err = fmt.Errorf("%w: %d entries, and there should be %d, or others", ErrDamaged, found.entries, want.entries)
	}
	return &afresh, err
}

// walkAll validates every page of a tree in which none is validated yet.
func (t *pageTree) walkAll(ctx context.Context, workers int) (found inventory, err error) {
	defer catch(&err)
	w := pageWalk{pageTree: t, ctx: ctx, seen: pageSet(nil).with(t.pages())}
	for _, s := range append([]pageSpan{{0, 2}}, t.shell...) {
		if err := w.mark(s); err != nil {
			return found, err
		}
	}
	if t.root.id != 0 {
		t.root.clean = false
		if err := w.mark(t.root.span()); err != nil {
			return found, err
		}
	}
	if err := w.believe(&t.root); err != nil {
		return found, err
	}
	parts, err := w.split(t.root)
	if err != nil {
		return found, err
	}
	var walked atomic.Int64
	err = parallel.Do(workers, len(parts), func(_, i int) (err error) {
		defer catch(&err)
		defer func() { Tell(ctx, float64(walked.Add(1)), float64(len(parts))) }()
		root, err := parts[i].open()
		if err != nil {
			return err
		}
		return parts[i].walk(root, parts[i].depth)
	})
	if err != nil {
		return found, err
	}
	var last []byte
	for _, part := range parts {
		if part.first != nil && bytes.Compare(last, part.first) >= 0 {
			return found, fmt.Errorf("%w: keys are not in order", ErrDamaged)
		}
		last = part.last
		found.entries += part.found.entries
		found.sum += part.found.sum
	}
	for id := range t.pages() {
		if w.seen.has(id) == t.isFree(id) {
			return found, damagedPage(id, "is neither in use nor free, or both")
		}
	}
	return found.withEnds(t)
}

// A pageWalk is how far checkAll has come in a part of a tree.
type pageWalk struct {
	*pageTree
	ctx   context.Context
	seen  pageSet // of all parts
	root  rawPage // of this part
	depth int     // of root

	first, last []byte // keys; nil: none yet
	found       inventory
}

// fewParts is too few parts of a tree to share out.
const fewParts = 256

// split returns the parts of the tree below a page, in the order of their keys: at
// least fewParts if there are as many pages. The pages above them are validated.
func (w *pageWalk) split(root rawPage) ([]*pageWalk, error) {
	part := func(root rawPage, depth int) *pageWalk {
		if w.own && root.id != 0 {
			root.b = nil // there are many: each is read again when needed
		}
		return &pageWalk{pageTree: w.pageTree, ctx: w.ctx, seen: w.seen, root: root, depth: depth}
	}
	parts := []*pageWalk{part(root, 0)}
	for depth := 1; len(parts) < fewParts && depth <= maxLevels; depth++ {
		var below []*pageWalk
		for _, p := range parts {
			if !p.root.branch {
				below = append(below, p)
				continue
			}
			root, err := p.open()
			if err != nil {
				return nil, err
			}
			for i := range root.n {
				c, err := w.take(&root, i)
				if err != nil {
					return nil, err
				}
				below = append(below, part(c, depth))
			}
		}
		parts = below
	}
	return parts, nil
}

// open returns the root of the part.
func (w *pageWalk) open() (rawPage, error) {
	if w.root.b != nil {
		return w.root, nil
	}
	return w.page(w.root.id)
}

// take returns the page that an entry of a branch leads to, after validating and
// marking it.
func (w *pageWalk) take(p *rawPage, i int) (rawPage, error) {
	c, err := w.child(p, i)
	if err != nil {
		return c, err
	}
	if err := w.believe(&c); err != nil {
		return c, err
	}
	return c, w.mark(c.span())
}

func (w *pageWalk) mark(s pageSpan) error {
	for id := s.id; id < s.id+s.n; id++ {
		if bit := uint64(1) << (id % 64); w.seen[id/64].Or(bit)&bit != 0 {
			return damagedPage(id, "is used twice")
		}
	}
	return nil
}

func (w *pageWalk) walk(p rawPage, depth int) error {
	if depth > maxLevels {
		return ErrDamaged
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	for i := range p.n {
		if !p.branch {
			key, stored := p.key(i), p.value(i)
			if w.first == nil {
				w.first = key
			}
			if bytes.Compare(w.last, key) >= 0 {
				return fmt.Errorf("%w: keys are not in order", ErrDamaged)
			}
			w.last = key
			w.found.add(stored)
			continue
		}
		c, err := w.take(&p, i)
		if err != nil {
			return err
		}
		if err := w.walk(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkFree returns an error if a free page is of a transaction that the file does not
// know: then both of its headers are older than what was written to it. newest is the
// last committed transaction; the one after it may have been cut off, and is allowed.
func (t *pageTree) checkFree(ctx context.Context, newest *atomic.Uint64) (err error) {
	defer catch(&err)
	for i := range len(t.free) / 8 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, ok := t.rootOn(u64(t.free[8*i:]))
		if ok && s.file == t.state.file && s.tx > newest.Load()+1 {
			return damagedPage(0, "is an older header than it can be")
		}
	}
	return nil
}

// rootOn reads the journalState from a page that may once have held the buckets.
func (t *pageTree) rootOn(id uint64) (s journalState, ok bool) {
	defer func() {
		if recover() != nil { // it is being written to
			ok = false
		}
	}()
	b, err := t.bytes(id, 1)
	if err != nil || u32(b[12:]) != 0 { // the page of the buckets is a single one
		return s, false
	}
	p := newRawPage(b)
	p.id = id
	if p.branch || p.layout(1, pageSize) != nil {
		return s, false
	}
	i, found := p.search([]byte(journalBucket))
	if !found || len(p.value(i)) < bucketHeader+pageHeader {
		return s, false
	}
	inline := newRawPage(p.value(i)[bucketHeader:])
	if inline.branch || inline.layout(0, 1) != nil {
		return s, false
	}
	s, err = stateOn(&inline)
	return s, err == nil
}
