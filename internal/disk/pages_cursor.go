package disk

// A pageCursor is a place in a pageTree.
type pageCursor struct {
	*pageTree
	path [maxLevels]pagePlace // from the root to a leaf
	n    int                  // pages in path
}

type pagePlace struct {
	page rawPage
	at   int
}

func (c *pageCursor) leaf() *pagePlace { return &c.path[c.n-1] }

func (c *pageCursor) push(p rawPage, at int) error {
	if c.n == maxLevels {
		return ErrDamaged
	}
	c.path[c.n] = pagePlace{p, at}
	c.n++
	return nil
}

// descend goes down from a page to the leaf that choose leads to.
func (c *pageCursor) descend(p rawPage, choose func(*rawPage) int) (err error) {
	for {
		at := choose(&p)
		if err := c.push(p, at); err != nil || !p.branch {
			return err
		}
		if p, err = c.child(&p, at); err != nil {
			return err
		}
	}
}

func firstEntry(*rawPage) int  { return 0 }
func lastEntry(p *rawPage) int { return p.n - 1 }

// seek goes to the first entry that is not before key. That may be behind the end of a
// leaf.
func (c *pageCursor) seek(key []byte) error {
	c.n = 0
	err := c.descend(c.root, func(p *rawPage) int {
		if p.branch {
			return p.way(key)
		}
		i, _ := p.search(key)
		return i
	})
	if err != nil {
		return err
	}
	if err := c.believe(&c.leaf().page); err != nil || c.leaf().at < c.leaf().page.n {
		return err
	}
	for level := c.n - 2; level >= 0; level-- {
		if above := &c.path[level]; above.at+1 < above.page.n {
			_, err := c.child(&above.page, above.at+1)
			return err
		}
	}
	return nil
}

// last goes to the last entry.
func (c *pageCursor) last() error {
	c.n = 0
	return c.descend(c.root, lastEntry)
}

// entry returns the entry that the cursor is at; nil behind the end of a leaf.
func (c *pageCursor) entry() (key, stored []byte) {
	l := c.leaf()
	if l.at < 0 || l.at >= l.page.n {
		return nil, nil
	}
	return l.page.key(l.at), l.page.value(l.at)
}

// behind reports whether the cursor is behind the end of a leaf.
func (c *pageCursor) behind() bool { return c.leaf().at >= c.leaf().page.n }

// next goes to the next entry, prev to the one before; past the last, or before
// the first, there is none.

func (c *pageCursor) next() error {
	l := c.leaf()
	if l.at++; l.at < l.page.n {
		return nil
	}
	return c.turn(+1, firstEntry)
}

func (c *pageCursor) prev() error {
	l := c.leaf()
	if l.at--; l.at >= 0 {
		return nil
	}
	return c.turn(-1, lastEntry)
}

// turn goes on with the neighbouring leaf on one side.
func (c *pageCursor) turn(side int, choose func(*rawPage) int) error {
	for level := c.n - 2; level >= 0; level-- {
		above := &c.path[level]
		at := above.at + side
		if at < 0 || at >= above.page.n {
			continue
		}
		p, err := c.child(&above.page, at)
		if err != nil {
			return err
		}
		above.at, c.n = at, level+1
		return c.descend(p, choose)
	}
	return nil
}

// checkAround validates the pages that bbolt may merge with key's page when it deletes
// key.
func (t *pageTree) checkAround(key []byte) error {
	c := pageCursor{pageTree: t}
	if err := c.seek(key); err != nil {
		return err
	}
	for level := range c.n - 1 {
		above := &c.path[level]
		for _, at := range []int{above.at - 1, above.at + 1} {
			if at < 0 || at >= above.page.n {
				continue
			}
			p, err := t.child(&above.page, at)
			if err != nil {
				return err
			}
			if err := t.believe(&p); err != nil {
				return err
			}
		}
	}
	return nil
}
