package panel

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"sello/internal/qr"
)

// qrCode is the picture on the page of the second factor.
const qrCode = `main svg[role=img]`

// around is how much of the page a photo shows on each side, in pixels.
const around = 12

// photo returns an element as the screen shows it.
func (p *tab) photo(selector string) image.Image {
	p.t.Helper()
	p.middle(selector) // scrolls there: the page's head covers what is below it
	var box []float64
	p.eval(`(r => [r.x + scrollX, r.y + scrollY, r.width, r.height])(document.querySelector(`+quoted(selector)+`).getBoundingClientRect())`, &box)
	got := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: yes,
		Clip: &page.Viewport{X: box[0] - around, Y: box[1] - around, Width: box[2] + 2*around, Height: box[3] + 2*around, Scale: 1}})
	img, err := png.Decode(bytes.NewReader(got.Data))
	if err != nil {
		p.t.Fatal(err)
	}
	return img
}

// read returns the text that the QR code in a photo has.
func (p *tab) read(photo image.Image) string {
	p.t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(photo)
	if err != nil {
		p.t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		p.t.Fatalf("no QR code is seen: %v", err)
	}
	return result.GetText()
}

// scanned returns the address that it has.
func (p *tab) scanned(photo image.Image) *url.URL {
	p.t.Helper()
	u, err := url.Parse(p.read(photo))
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// TestFactorQR: the QR code of the second factor has the key that the page shows as text. It
// is white around in every theme, and fits on the smallest screen.
func TestFactorQR(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.token("owner")
	for name, settings := range map[string][]setting{
		"light":         {media("prefers-color-scheme", "light")},
		"dark":          {media("prefers-color-scheme", "dark")},
		"forced colour": {media("forced-colors", "active")},
		"320 pixels":    {width(320, 640)},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.of(t).as("owner", settings...)
			p.visit("/panel/cuenta/segundo-factor")
			var label, link string
			p.eval(`document.querySelector(`+quoted(qrCode)+`).getAttribute('aria-label')`, &label)
			p.eval(`document.querySelector('main a[href^="otpauth:"]').href`, &link)
			var x []float64
			p.eval(`(e => { const code = e.getBoundingClientRect(), card = e.closest('.card').getBoundingClientRect(); return [card.left, code.left, code.right, card.right] })(document.querySelector(`+quoted(qrCode)+`))`, &x)
			if label == "" || !slices.IsSorted(x) {
				t.Errorf("label %q; card and code are at %v", label, x)
			}
			p.fits()
			photo := p.photo(qrCode)
			u := p.scanned(photo)
			if u.String() != link {
				t.Errorf("scanned %q, the link is %q", u, link)
			}
			secret := u.Query().Get("secret")
			if text := strings.ReplaceAll(p.text("main .facts code"), "-", ""); text != secret || len(secret) != 32 {
				t.Errorf("scanned the key %q, the page shows %q", secret, text)
			}
			white := color.RGBAModel.Convert(color.White)
			if got := color.RGBAModel.Convert(photo.At(around+1, around+1)); got != white {
				t.Errorf("the quiet zone is %v", got)
			}
			if got := color.RGBAModel.Convert(photo.At(0, 0)); name == "dark" && got == white {
				t.Error("the page is not dark")
			}
		})
	}
}

// TestFactorScanned: whoever scans the QR code gets the codes that turn the second factor on,
// and with which one logs in from then on.
func TestFactorScanned(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.as("owner")
	p.visit("/panel/cuenta/segundo-factor")
	for _, wrong := range p.axe() {
		t.Error(wrong)
	}
	secret := p.scanned(p.photo(qrCode)).Query().Get("secret")
	p.fill("input[name=factorCode]", codeOf(secret, 20))
	p.load(func() { p.typed("\r") })
	if again := p.scanned(p.photo(qrCode)).Query().Get("secret"); again != secret {
		t.Errorf("after a wrong code the page shows the key %q, not %q", again, secret)
	}
	p.fill("input[name=factorCode]", codeOf(secret, 0))
	p.load(func() { p.typed("\r") })
	if !p.has("main li code") {
		t.Fatalf("no recovery codes:\n%s", p.text("main"))
	}
	other := open(t, s.Panel)
	other.visit("/panel/entrar")
	other.fill("input[name=email]", "owner@example.com").fill("input[name=password]", password)
	other.load(func() { other.typed("\r") })
	other.fill("input[name=factorCode]", codeOf(secret, 1)) // the code of now is used up
	other.load(func() { other.typed("\r") })
	if at := other.address(); at != "/panel" {
		t.Errorf("the code leads to %s:\n%s", at, other.text("main"))
	}
}

var qrRuns = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1`)

// drawn is the picture of a QR code that internal/qr has made, with so many pixels a module.
func drawn(t *testing.T, svg string, pixels int) image.Image {
	var side int
	if _, err := fmt.Sscanf(svg[strings.Index(svg, `viewBox="0 0 `):], `viewBox="0 0 %d`, &side); err != nil {
		t.Fatal(err)
	}
	img := image.NewGray(image.Rect(0, 0, side*pixels, side*pixels))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	for _, m := range qrRuns.FindAllStringSubmatch(svg, -1) {
		var run [3]int // column, row and length
		for i := range run {
			run[i], _ = strconv.Atoi(m[1+i])
		}
		dark := image.Rect(run[0], run[1], run[0]+run[2], run[1]+1)
		draw.Draw(img, image.Rectangle{dark.Min.Mul(pixels), dark.Max.Mul(pixels)}, image.Black, image.Point{}, draw.Src)
	}
	return img
}

// TestQRTexts: another's decoder reads 2,000 texts at random (seed 25), of all lengths and so of all
// versions of the symbol.
func TestQRTexts(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHJKMNPQRSTVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#&=%+ ñáé"
	rnd, all := rand.New(rand.NewPCG(25, 0)), []rune(letters)
	sizes := map[int]int{}
	for range 2000 {
		text := make([]rune, 1+rnd.IntN(200))
		for i := range text {
			text[i] = all[rnd.IntN(len(all))]
		}
		code, ok := qr.Encode([]byte(string(text)))
		if !ok {
			continue // longer than the largest version, as UTF-8
		}
		img := drawn(t, code.SVG("", 1), 3)
		sizes[img.Bounds().Dx()/3]++
		bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
		if err != nil {
			t.Fatal(err)
		}
		hints := map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true, gozxing.DecodeHintType_CHARACTER_SET: "UTF-8"}
		result, err := qrcode.NewQRCodeReader().Decode(bitmap, hints)
		if err != nil || result.GetText() != string(text) {
			t.Fatalf("%q is read as %v (%v)", string(text), result, err)
		}
	}
	if len(sizes) != 10 {
		t.Errorf("sizes %v, want those of ten versions", sizes)
	}
	t.Log(sizes)
}
