package disk

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"testing"

	"sello/internal/disk/disktest"
)

// TestDamageKinds damages the files of a store in each of the ways below. Each time,
// the store is refused, a check of the whole file finds the damage, or the store holds
// what it should. A store with an older state never passes for whole, unless all of its
// files are an older copy.

// A victimStore is a store to be damaged: its files as they were left, and as they were
// at some earlier time.
type victimStore struct {
	*diary
	files  [3][]byte
	state  int
	older  [3][]byte
	before int // the state of older
	rng    *rand.Rand
}

// newVictimStore leaves a store closed, running, or in the middle of a checkpoint.
func newVictimStore(t *testing.T, rng *rand.Rand) *victimStore {
	d := newDiary(t, rng)
	d.write(t, 30+rng.IntN(150))
	v := &victimStore{diary: d, rng: rng}
	reopen := func() {
		t.Helper()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		opts := d.opts
		d.store = testStore(t, d.path, opts)
	}
	if rng.IntN(3) == 0 {
		reopen()
	}
	v.older, v.before = d.image(t), d.last()
	d.write(t, 1+rng.IntN(150))
	if rng.IntN(3) == 0 {
		reopen()
	}
	v.files, v.state = d.image(t), d.last()
	return v
}

// A damageKind damages files in one way. It reports false if there is nothing of that
// kind to damage.
type damageKind struct {
	name string
	do   func(v *victimStore, files *[3][]byte) bool
}

// anyPage returns the offset of a random page of b that satisfies is.
func (v *victimStore) anyPage(b []byte, is func(page []byte) bool) (at int, ok bool) {
	n := len(b) / pageSize
	for _, page := range v.rng.Perm(max(n-2, 0)) {
		at := (page + 2) * pageSize
		if is(b[at:][:pageSize]) {
			return at, true
		}
	}
	return 0, false
}

func ofKind(kind uint16) func([]byte) bool {
	return func(page []byte) bool { return u16(page[8:]) == kind }
}

func anyOne([]byte) bool { return true }

// flip flips up to four bits between two places.
func (v *victimStore) flip(b []byte, from, to int) bool {
	to = min(to, len(b))
	if from >= to {
		return false
	}
	for range 1 + v.rng.IntN(4) {
		b[from+v.rng.IntN(to-from)] ^= 1 << v.rng.IntN(8)
	}
	return true
}

// inPage applies do to a page that satisfies is.
func inPage(is func([]byte) bool, do func(v *victimStore, page []byte)) func(*victimStore, *[3][]byte) bool {
	return func(v *victimStore, files *[3][]byte) bool {
		at, ok := v.anyPage(files[0], is)
		if ok {
			do(v, files[0][at:][:pageSize])
		}
		return ok
	}
}

func (v *victimStore) flipPage(page []byte) { v.flip(page, 0, len(page)) }

// putOlder copies bytes of an older state over those of b at the same offset.
func putOlder(b, older []byte, at, size int) bool {
	if at+size > len(b) || at+size > len(older) || bytes.Equal(b[at:][:size], older[at:][:size]) {
		return false
	}
	copy(b[at:][:size], older[at:][:size])
	return true
}

// inJournal applies do to the content of a file of the journal.
func inJournal(do func(v *victimStore, b []byte) []byte) func(*victimStore, *[3][]byte) bool {
	return func(v *victimStore, files *[3][]byte) bool {
		b := &files[1+v.rng.IntN(2)]
		if len(*b) == 0 {
			return false
		}
		*b = do(v, bytes.Clone(*b))
		return true
	}
}

// writtenTo returns the end of what was written to a file of the journal.
func writtenTo(b []byte) int { return max(len(bytes.TrimRight(b, "\x00")), 1) }

var damageKinds = []damageKind{
	{"bits of a header", func(v *victimStore, f *[3][]byte) bool { return v.flip(f[0][v.rng.IntN(2)*pageSize:], 0, 80) }},
	{"bits of both headers", func(v *victimStore, f *[3][]byte) bool {
		return v.flip(f[0], 16, 80) && v.flip(f[0][pageSize:], 16, 80)
	}},
	{"bits of a leaf", inPage(ofKind(leafKind), (*victimStore).flipPage)},
	{"bits of a branch", inPage(ofKind(branchKind), (*victimStore).flipPage)},
	{"bits of a list of free pages", inPage(ofKind(freeKind), (*victimStore).flipPage)},
	{"bits anywhere", func(v *victimStore, f *[3][]byte) bool { return v.flip(f[0], 0, len(f[0])) }},
	{"a header of zeros", func(v *victimStore, f *[3][]byte) bool {
		clear(f[0][v.rng.IntN(2)*pageSize:][:pageSize])
		return true
	}},
	{"a page of zeros", inPage(anyOne, func(_ *victimStore, page []byte) { clear(page) })},
	{"a sector of zeros", inPage(anyOne, func(v *victimStore, page []byte) { clear(page[v.rng.IntN(8)*512:][:512]) })},
	{"a sector of noise", inPage(anyOne, func(v *victimStore, page []byte) {
		for i := range page[v.rng.IntN(8)*512:][:512] {
			page[i] = byte(v.rng.Uint32())
		}
	})},
	{"two pages exchanged", func(v *victimStore, f *[3][]byte) bool {
		a, _ := v.anyPage(f[0], anyOne)
		b, ok := v.anyPage(f[0], anyOne)
		held := bytes.Clone(f[0][a:][:pageSize])
		copy(f[0][a:], f[0][b:][:pageSize])
		copy(f[0][b:], held)
		return ok && a != b
	}},
	{"a page twice", func(v *victimStore, f *[3][]byte) bool {
		a, _ := v.anyPage(f[0], anyOne)
		b, ok := v.anyPage(f[0], anyOne)
		copy(f[0][a:], f[0][b:][:pageSize])
		return ok && a != b
	}},
	{"headers exchanged", func(_ *victimStore, f *[3][]byte) bool {
		held := bytes.Clone(f[0][:pageSize])
		copy(f[0], f[0][pageSize:][:pageSize])
		copy(f[0][pageSize:], held)
		return true
	}},
	{"the newer header in both places", func(_ *victimStore, f *[3][]byte) bool {
		copy(disktest.OlderHeader(f[0]), disktest.NewerHeader(f[0])[:pageSize])
		return true
	}},
	{"the older header in both places", func(_ *victimStore, f *[3][]byte) bool {
		copy(disktest.NewerHeader(f[0]), disktest.OlderHeader(f[0])[:pageSize])
		return true
	}},
	{"a header of an older state", func(v *victimStore, f *[3][]byte) bool {
		return putOlder(f[0], v.older[0], v.rng.IntN(2)*pageSize, pageSize)
	}},
	{"both headers of an older state", func(v *victimStore, f *[3][]byte) bool { return putOlder(f[0], v.older[0], 0, 2*pageSize) }},
	{"a page of an older state", func(v *victimStore, f *[3][]byte) bool {
		at, ok := v.anyPage(f[0], anyOne)
		return ok && putOlder(f[0], v.older[0], at, pageSize)
	}},
	{"a sector of an older state", func(v *victimStore, f *[3][]byte) bool {
		return putOlder(f[0], v.older[0], v.rng.IntN(len(f[0])/512)*512, 512)
	}},
	{"half of the pages of an older state", func(v *victimStore, f *[3][]byte) (did bool) {
		for at := 2 * pageSize; at < len(f[0]); at += pageSize {
			if v.rng.IntN(2) == 0 {
				did = putOlder(f[0], v.older[0], at, pageSize) || did
			}
		}
		return did
	}},
	{"all pages but the headers of an older state", func(v *victimStore, f *[3][]byte) bool {
		size := min(len(f[0]), len(v.older[0])) - 2*pageSize
		return putOlder(f[0], v.older[0], 2*pageSize, size)
	}},
	{"the file cut", func(v *victimStore, f *[3][]byte) bool { f[0] = f[0][:v.rng.IntN(len(f[0]))]; return true }},
	{"the file of an older state", func(v *victimStore, f *[3][]byte) bool {
		f[0] = v.older[0]
		return f[1] != nil && !bytes.Equal(f[0], v.files[0])
	}},
	{"bits of a journal", inJournal(func(v *victimStore, b []byte) []byte { v.flip(b, 0, writtenTo(b)); return b })},
	{"a block of a journal of zeros", inJournal(func(v *victimStore, b []byte) []byte {
		at := v.rng.IntN(writtenTo(b)) / 512 * 512
		clear(b[at:min(at+journalBlock, len(b))])
		return b
	})},
	{"a journal cut, empty or gone", func(v *victimStore, f *[3][]byte) bool {
		b := &f[1+v.rng.IntN(2)]
		if *b == nil {
			return false
		}
		switch v.rng.IntN(4) {
		case 0:
			*b = nil
		case 1:
			*b = []byte{}
		default:
			*b = (*b)[:v.rng.IntN(writtenTo(*b))]
		}
		return true
	}},
	{"journals exchanged", func(_ *victimStore, f *[3][]byte) bool { f[1], f[2] = f[2], f[1]; return f[1] != nil }},
	{"a journal of an older state", func(v *victimStore, f *[3][]byte) bool {
		i := 1 + v.rng.IntN(2)
		if f[i] == nil || v.older[i] == nil || bytes.Equal(f[i], v.older[i]) {
			return false
		}
		f[i] = v.older[i]
		return true
	}},
}

func TestDamageKinds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	n := cmp.Or(*damageN, smaller(6, 2)) // of each kind
	counts := map[string]int{}
	rng := rand.New(rand.NewPCG(*damageSeed, 0))
	var v *victimStore
	for image := range n {
		if image%5 == 0 || v == nil {
			v = newVictimStore(t, rng)
		}
		if state, err := v.open(t, v.files); err != nil || state != v.state {
			t.Fatalf("undamaged: state %d of %d, %v", state, v.state, err)
		}
		for _, kind := range damageKinds {
			files := [3][]byte{}
			for i := range files {
				files[i] = bytes.Clone(v.files[i])
			}
			if !kind.do(v, &files) {
				counts["nothing to damage"]++
				continue
			}
			state, err := v.open(t, files)
			switch {
			case err != nil:
				counts["refused or told"]++
			case state == v.state:
				counts["right"]++
			default:
				t.Errorf("-damage.seed=%d, image %d, %s: passes for whole with state %d of %d", *damageSeed, image, kind.name, state, v.state)
			}
		}
	}
	t.Logf("seed %d, %d kinds, %d of each: %v", *damageSeed, len(damageKinds), n, counts)
}
