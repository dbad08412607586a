package chart

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBrand checks 1,000 random colours and the corners of the cube: in both themes the text
// of a button can be read, also under the pointer, and bars are seen on their card.
// Panel check 67.
func TestBrand(t *testing.T) {
	t.Parallel()
	colors := []Color{black, white, {255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 0}, {0, 255, 255}, {255, 0, 255}, {118, 118, 118}, {119, 119, 119}, darkCard}
	random := rand.New(rand.NewPCG(20, 67))
	for range 1000 {
		n := random.Uint32()
		colors = append(colors, Color{uint8(n), uint8(n >> 8), uint8(n >> 16)})
	}
	for _, c := range colors {
		if got := colorOfHSL(c.hsl()); got != c {
			t.Errorf("%v becomes %v as hue, saturation and lightness", c, got)
		}
		themes := readThemes(t, Stylesheet(c))
		if got := themes.light["brand"]; got != c {
			t.Errorf("%v: buttons of the light theme are %v", c, got)
		}
		for name, theme := range map[string]struct {
			colors map[string]Color
			card   Color
		}{"light": {themes.light, lightCard}, "dark": {themes.dark, darkCard}} {
			for _, pair := range []struct {
				what  string
				a, b  Color
				least float64
			}{
				{"text of buttons", theme.colors["on-brand"], theme.colors["brand"], 4.5},
				{"text of the button under the pointer", theme.colors["on-brand"], theme.colors["brand-hover"], 4.5},
				{"bars", theme.colors["bar"], theme.card, 3},
			} {
				if got := contrast(pair.a, pair.b); got < pair.least {
					t.Errorf("%v, %s: %s: %v on %v has a contrast of %.2f", c, name, pair.what, pair.a, pair.b, got)
				}
			}
			if theme.colors["tint"] == theme.colors["bar"] {
				t.Errorf("%v, %s: the second bars look like the first", c, name)
			}
		}
	}
}

// TestContrast checks luminance and contrast against WCAG 2.2's own figures.
func TestContrast(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want float64
	}{
		{"000000", "ffffff", 21},
		{"777777", "ffffff", 4.48}, // the best-known near miss
		{"767676", "ffffff", 4.54},
		{"ff0000", "ffffff", 4.00},
		{"5b3a29", "5b3a29", 1},
	} {
		a, _ := ParseColor(test.a)
		b, _ := ParseColor(test.b)
		if got := contrast(a, b); math.Abs(got-test.want) > 0.005 || contrast(b, a) != got {
			t.Errorf("%s on %s: %.3f, want %.2f", test.a, test.b, got, test.want)
		}
	}
}

// TestPanelContrast computes the contrast of pairs of colours, in both themes.
// Panel check 67.
func TestPanelContrast(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../panel/panel.css")
	if err != nil {
		t.Fatal(err)
	}
	themes := readThemes(t, text)
	for least, pairs := range map[float64]string{
		4.5: `ink/page ink/card ink/hover soft/page soft/card soft/hover good/card warn/card bad/card good/page warn/page bad/page
			good/good-bg warn/warn-bg bad/bad-bg ink/good-bg ink/warn-bg ink/bad-bg on-brand/brand on-brand/brand-hover on-bad/bad`,
		3: "edge/card edge/page focus/page focus/card focus/hover bar/card bar/page bad/bad-bg ink/tint",
	} {
		for pair := range strings.FieldsSeq(pairs) {
			a, b, _ := strings.Cut(pair, "/")
			for name, theme := range map[string]map[string]Color{"light": themes.light, "dark": themes.dark} {
				x, found := theme[a]
				y, alsoFound := theme[b]
				if got := contrast(x, y); !found || !alsoFound || got < least {
					t.Errorf("%s: --%s %v on --%s %v has a contrast of %.2f; at least %v", name, a, x, b, y, got, least)
				}
			}
		}
	}
	if themes.light["card"] != lightCard || themes.dark["card"] != darkCard {
		t.Errorf("cards are %v and %v in panel.css, %v and %v in brand.go", themes.light["card"], themes.dark["card"], lightCard, darkCard)
	}
	c, _ := ParseColor("5b3a29") // of those who have chosen none
	brand := readThemes(t, Stylesheet(c))
	for name := range brand.light {
		if themes.light[name] != brand.light[name] || themes.dark[name] != brand.dark[name] {
			t.Errorf("--%s of panel.css is %v and %v; brand.go makes %v and %v", name, themes.light[name], themes.dark[name], brand.light[name], brand.dark[name])
		}
	}
}

// themeColors are the custom properties of a stylesheet that are colours.
type themeColors struct{ light, dark map[string]Color }

// readThemes reads the blocks of both themes. The dark one stands in a stylesheet twice, for
// those whose system is dark and for those who chose it; both must say the same.
func readThemes(t *testing.T, text []byte) themeColors {
	t.Helper()
	block := func(start string) map[string]Color {
		_, rest, found := bytes.Cut(text, []byte(start))
		if !found {
			t.Fatalf("no block %q in\n%.200s", start, text)
		}
		rest, _, _ = bytes.Cut(rest, []byte("}"))
		colors := map[string]Color{}
		for _, m := range regexp.MustCompile(`--([\w-]+):\s*#([0-9a-f]{3,6})\b`).FindAllSubmatch(rest, -1) {
			hex := string(m[2])
			if len(hex) == 3 {
				hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
			}
			c, ok := ParseColor(hex)
			if !ok {
				t.Fatalf("--%s: %q is no colour", m[1], hex)
			}
			colors[string(m[1])] = c
		}
		return colors
	}
	spaced := bytes.ReplaceAll(text, []byte(" {"), []byte("{"))
	text = spaced
	themes := themeColors{block(":root{"), block(":root:not([data-theme=light]){")}
	chosen := block(":root[data-theme=dark]{")
	for name, c := range themes.dark {
		if chosen[name] != c || len(chosen) != len(themes.dark) {
			t.Errorf("--%s is %v in a system's dark theme, %v in the chosen one", name, c, chosen[name])
		}
	}
	return themes
}
