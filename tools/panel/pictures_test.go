package panel

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
)

var pictures = flag.Bool("pictures", false, "TestPictures makes the pictures of the documentation anew")

// What a picture of the documentation is: of a computer's screen, or of a phone's.
const (
	pictureWidth = 1280
	phoneWidth   = 390
	pictureBytes = 100_000
)

// pictureDay is the moment of the demo that pictures are of, so that each time they show the
// same: a Friday evening in Mexico.
var pictureDay = time.Date(2026, 5, 30, 1, 30, 0, 0, time.UTC)

// documented are the pictures, by their names in docs/images.
var documented = []struct {
	name          string
	width, height int64
	open          func(*tab, *shop)
}{
	{"home", pictureWidth, 800, func(p *tab, _ *shop) { p.visit("/panel") }},
	{"till", pictureWidth, 800, func(p *tab, s *shop) { p.visit("/panel/caja/"+s.regular()).fill(amountField, "185") }},
	{"customer", pictureWidth, 800, func(p *tab, s *shop) { p.visit("/panel/clientes/" + s.regular()) }},
	{"rules", pictureWidth, 800, func(p *tab, _ *shop) { p.visit("/panel/programa") }},
	{"statistics", pictureWidth, 800, func(p *tab, _ *shop) { // below the dates, which Chromium writes in its own language
		p.visit("/panel/estadisticas")
		p.eval(`scrollTo(0, document.querySelector('.tile').getBoundingClientRect().top - 24)`, nil)
	}},
	{"activity", pictureWidth, 800, func(p *tab, _ *shop) { p.visit("/panel/actividad") }},
	{"card", phoneWidth, 844, func(p *tab, s *shop) { p.visit(s.cardOf(s.regular())) }},
	{"join", phoneWidth, 844, func(p *tab, s *shop) {
		s.letJoin()
		p.visit("/u/cafe-luna").fill("#c-firstName", "Sofía").fill("#c-lastName", "Ríos").fill("#c-phoneNumber", "55 8765 4321")
		p.eval(`document.querySelector('#c-birthDate').type = 'text'`, nil) // the form of a date is in Chromium's own language
	}},
	{"join-code", phoneWidth, 844, func(p *tab, _ *shop) { p.load(func() { p.click("form button") }) }},
	{"till-join", pictureWidth, 480, func(p *tab, _ *shop) {
		p.visit("/panel/caja/" + strings.ReplaceAll(p.text(".card .code"), "-", "") + "/alta")
	}},
}

func picturePath(name string) string { return filepath.Join(root, "docs", "images", name+".png") }

// TestPictures: the pictures of the documentation are there, none larger than it should be.
// With -pictures it makes them, of the demo on one day.
func TestPictures(t *testing.T) {
	if *pictures {
		takePictures(t)
	}
	for _, one := range documented {
		raw, err := os.ReadFile(picturePath(one.name))
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := png.DecodeConfig(bytes.NewReader(raw))
		if err != nil || int64(got.Width) != one.width || int64(got.Height) != one.height || len(raw) > pictureBytes {
			t.Errorf("%s: %d bytes, %d×%d, want at most %d and %d×%d, %v", one.name, len(raw), got.Width, got.Height, pictureBytes, one.width, one.height, err)
		}
	}
}

func takePictures(t *testing.T) {
	t.Helper()
	s := clockedShop(t, pictureDay)
	p := open(t, s.Panel, width(pictureWidth, 800))
	p.visit(s.entry)
	if p.has("main form button.primary") {
		p.load(func() { p.click("main form button.primary") })
	}
	p.settle("/panel/estadisticas")
	for _, one := range documented {
		width(one.width, one.height)(p)
		one.open(p, s)
		p.eval(`document.activeElement.blur()`, nil)
		shot := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		img, err := png.Decode(bytes.NewReader(shot.Data))
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(img)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(picturePath(one.name), small.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// letJoin serves the page to join by.
func (s *shop) letJoin() {
	s.t.Helper()
	s.configure(func(document map[string]any) {
		settings := document["organization"].(map[string]any)["settings"].(map[string]any)
		settings["cards"] = map[string]any{"join": true, "privacyUrl": "https://example.com/privacidad"}
	})
}

// settle waits until a page's figures stay as they are: a server that has just started first
// writes down what is due, such as points that expire and gifts for birthdays.
func (p *tab) settle(path string) {
	p.t.Helper()
	figures, since := "", time.Now()
	for time.Since(since) < 5*time.Second {
		p.visit(path)
		var now string
		p.eval(`Array.from(document.querySelectorAll('.tile')).map(e => e.innerText).join()`, &now)
		if now != figures {
			figures, since = now, time.Now()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// regular is the customer above the first tier with the most points.
func (s *shop) regular() (id string) {
	s.t.Helper()
	most := -1.0
	for page := range 4 {
		var list listed[struct{ ID, TierName string }]
		s.api("GET", fmt.Sprintf("/customers?limit=100&page=%d", page+1), "", &list)
		for _, c := range list.Data {
			var account struct{ Balance float64 }
			if c.TierName == "Bronce" {
				continue
			}
			if s.api("GET", "/points/customers/"+c.ID+"/balance", "", &account); account.Balance > most {
				id, most = c.ID, account.Balance
			}
		}
	}
	return id
}

// clockedShop is a shop whose server believes that it started at a moment.
func clockedShop(t *testing.T, at time.Time) *shop {
	t.Helper()
	dir := t.TempDir()
	s := &shop{t: t, binary: filepath.Join(dir, "sello"), db: filepath.Join(dir, "demo.db"), tokens: map[string]string{}, since: at}
	build := exec.Command("go", "build", "-tags", "clocktest", "-o", s.binary, ".")
	build.Dir = root
	if _, err := output(build); err != nil {
		t.Fatal(err)
	}
	clock := filepath.Join(dir, "clock.json")
	if err := os.WriteFile(clock, fmt.Appendf(nil, `{"offset": %q, "synchronized": true}`, time.Until(at).Round(time.Second)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"SELLO_TEST_CLOCK=" + clock}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// fewColours is a picture with its 256 most frequent colours: pages have few, and the rest are
// the edges of letters.
func fewColours(img image.Image) *image.Paletted {
	counts := map[color.RGBA]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	palette := color.Palette{}
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(b, palette)
	draw.Draw(few, b, img, b.Min, draw.Src)
	return few
}
