package panel

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

var shots = flag.String("shots", "", "the directory to which TestShots writes pictures of all pages")

// TestShots makes pictures of all pages, whole, in all looks and both languages: of the panel's,
// and of those that customers open.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots DIR makes pictures of all pages")
	}
	t.Run("panel", func(t *testing.T) {
		s := inStock(t)
		for _, lang := range []string{"es", "en"} {
			s.speak("owner", lang)
			for _, one := range looks {
				s.as("owner", width(one.width, one.height), media("prefers-color-scheme", one.theme)).saveAll(views(), lang, one)
			}
		}
		s.speak("owner", "es")
	})
	t.Run("cards", func(t *testing.T) {
		s := newShop(t)
		c := s.giveCards()
		for _, lang := range []string{"es", "en"} {
			s.show(lang)
			for _, one := range looks {
				open(t, s.Base, width(one.width, one.height), media("prefers-color-scheme", one.theme)).saveAll(c.views(), lang, one)
			}
		}
	})
}

// saveAll writes a picture of each page.
func (p *tab) saveAll(views []view, lang string, one look) {
	p.t.Helper()
	for _, v := range views {
		v.open(p)
		p.save(lang + "-" + one.String() + "-" + v.name)
	}
}

// speak sets the language of a person.
func (s *shop) speak(role, lang string) {
	s.t.Helper()
	f := s.formOf(role, "/panel/cuenta", "/panel/cuenta").with("language", lang, "theme", "")
	if a := s.post(role, f); a.Status >= 400 {
		s.t.Fatalf("%d\n%s", a.Status, a.Body)
	}
}

// save writes a picture of the whole page.
func (p *tab) save(name string) {
	p.t.Helper()
	path := filepath.Join(*shots, regexp.MustCompile(`[^\w.-]+`).ReplaceAllString(name, "_")+".png")
	size := call(p, page.GetLayoutMetrics, cdp.Empty{}).CSSContentSize
	got := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: yes,
		Clip: &page.Viewport{Width: size.Width, Height: min(size.Height, 4000), Scale: 1}})
	if err := os.WriteFile(path, got.Data, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
