package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sello/internal/disk/disktest"
	"sello/internal/processtest"
)

// A powerRun makes recordings and opens images of them. A recording begins with what a
// power cut left of the one before, or with nothing.
type powerRun struct {
	*testing.T
	rng     *rand.Rand
	dir     string
	lazy    bool
	forget  func(*disktest.Recording) // removes syncs, for controls
	images  int
	kinds   map[string]int
	failure error // of the first bad image
	lost    int   // images that are not as they should be
}

func newPowerRun(t *testing.T, rng *rand.Rand) *powerRun {
	return &powerRun{T: t, rng: rng, dir: disktest.MemoryDir(t), kinds: map[string]int{}}
}

// record makes a recording that begins with what is in dir, or with nothing.
func (p *powerRun) record(told soldList, processes int) *disktest.Recording {
	p.Helper()
	dir := filepath.Join(p.dir, "live")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.Fatal(err)
	}
	r, err := disktest.NewRecording(dir, told)
	if err != nil {
		p.Fatal(err)
	}
	for range processes {
		l := powerLoad{
			path: filepath.Join(dir, "store"), seed: p.rng.Uint64(), sales: 20 + p.rng.IntN(80),
			end: []string{"kill", "stop"}[p.rng.IntN(2)], lazy: p.lazy,
		}
		r.Run(p.T, testBinary(p.T), l.environ(), l.end == "kill")
	}
	p.kinds["processes"] += processes
	if p.forget != nil {
		p.forget(r)
	}
	return r
}

// open opens images of a recording. A control ends with the first bad image.
func (p *powerRun) open(r *disktest.Recording, images int) {
	p.Helper()
	for i := range images {
		p.images++
		dir := filepath.Join(p.dir, "image")
		cut, chance := r.Cut(p.rng), p.rng.Uint64()
		for i == 0 && len(r.Told(1)) == 0 && len(r.Told(cut)) > 0 {
			cut = 1 + p.rng.IntN(cut) // one image at least is of the first start
		}
		tear := func(dir string) []string {
			kinds, err := r.Image(dir, cut, disktest.NewTearing(rand.New(rand.NewPCG(chance, 0))))
			if err != nil {
				p.Fatal(err)
			}
			return kinds
		}
		kinds, told := tear(dir), r.Told(cut)
		if len(told) == 0 {
			kinds = append(kinds, "first start")
		}
		for _, k := range kinds {
			p.kinds[k]++
		}
		_, err := powerCheck(p.Context(), filepath.Join(dir, "store"), told, i%8 == 0)
		os.RemoveAll(dir)
		if err == nil {
			continue
		}
		p.lost++
		if p.failure == nil {
			p.failure = fmt.Errorf("image %d, cut at line %d of %d: %w", p.images, cut, r.Lines, err)
		}
		if p.lazy || p.forget != nil {
			return
		}
		tear(filepath.Join(p.ArtifactDir(), fmt.Sprint("image", p.images))) // kept with -artifacts
	}
}

// proceed puts into the live directory what a power cut leaves of a recording, and
// returns the sales that it holds.
func (p *powerRun) proceed(r *disktest.Recording) soldList {
	p.Helper()
	live := filepath.Join(p.dir, "live")
	os.RemoveAll(live)
	cut, chance := r.Cut(p.rng), p.rng.Uint64()
	tear := func(dir string) {
		if _, err := r.Image(dir, cut, disktest.NewTearing(rand.New(rand.NewPCG(chance, 0)))); err != nil {
			p.Fatal(err)
		}
	}
	tear(live)
	copied := filepath.Join(p.dir, "copied")
	tear(copied)
	defer os.RemoveAll(copied)
	sold, err := powerCheck(p.Context(), filepath.Join(copied, "store"), r.Told(cut), false)
	if err != nil {
		p.Fatalf("cut at line %d of %d: %v", cut, r.Lines, err)
	}
	return sold
}

// TestPower cuts the power of the store at first starts, while its files grow, at
// checkpoints and stops, and at starts after a kill or another cut. Every image of
// its files must open, pass the audit, and have every sale that was acknowledged.
func TestPower(t *testing.T) {
	if testing.Short() {
		t.Skip("records processes")
	}
	t.Parallel()
	processtest.NeedStrace(t)
	rng := powerRandom(t)
	images, each, shards := sized(100, 50), sized(50, 25), 1
	if *powerImages > 0 {
		images, each, shards = *powerImages, 400, 4
	}
	var all []*powerRun
	t.Run("images", func(t *testing.T) {
		for i := range shards {
			chance, share := rng.Uint64(), images*(i+1)/shards-images*i/shards
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				p := newPowerRun(t, rand.New(rand.NewPCG(chance, 0)))
				all = append(all, p)
				t.Parallel()
				p.recordAndOpen(share, each)
			})
		}
	})
	total, lost, kinds := 0, 0, map[string]int{}
	for _, p := range all {
		total, lost = total+p.images, lost+p.lost
		for kind, n := range p.kinds {
			kinds[kind] += n
		}
	}
	t.Logf("%d images, %d not as they should be: %v", total, lost, kinds)
	for _, kind := range []string{"first start", "journal", "file", "names"} {
		if kinds[kind] == 0 && !t.Failed() {
			t.Errorf("of no image it can be said: %s", kind)
		}
	}
}

// recordAndOpen opens images, at most each of one recording. Every fourth recording
// begins with nothing.
func (p *powerRun) recordAndOpen(images, each int) {
	var told soldList
	for n := 0; p.images < images; n++ {
		if n%4 == 0 {
			told = nil
			os.RemoveAll(filepath.Join(p.dir, "live"))
		}
		r := p.record(told, 1+p.rng.IntN(3))
		p.open(r, min(each, images-p.images))
		if p.failure != nil {
			p.Fatalf("%d of %d images are not as they should be; first: %v", p.lost, p.images, p.failure)
		}
		told = p.proceed(r)
	}
}

// TestPowerControl cuts the power where syncs are left out. It must find a bad image.
func TestPowerControl(t *testing.T) {
	if testing.Short() {
		t.Skip("records processes")
	}
	t.Parallel()
	processtest.NeedStrace(t)
	rng := powerRandom(t)
	forget := func(part string) func(*disktest.Recording) {
		return func(r *disktest.Recording) {
			for _, c := range r.Names {
				for name, f := range c.Names {
					if f != nil && strings.HasSuffix(name, part) {
						f.Syncs = nil
					}
				}
			}
		}
	}
	for _, test := range []struct {
		name   string
		lazy   bool
		forget func(*disktest.Recording)
	}{
		{"NoSync", true, nil},
		{"JournalNotSynced", false, func(r *disktest.Recording) { forget("-journal1")(r); forget("-journal2")(r) }},
		{"FileNotSynced", false, forget("store")},
		{"DirectoryNotSynced", false, func(r *disktest.Recording) { r.Syncs = nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPowerRun(t, rng)
			p.lazy, p.forget = test.lazy, test.forget
			r := p.record(nil, 1)
			p.open(r, 400)
			if p.failure == nil {
				t.Fatalf("%d images are all as they should be", p.images)
			}
			t.Log(p.failure)
		})
	}
}
