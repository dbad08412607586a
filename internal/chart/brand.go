package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The colour of a brand, as a stylesheet uses it. Text on it, and bars and
// lines in it, keep the contrast that WCAG 2.2 asks for (1.4.3: 4.5:1, 1.4.11: 3:1), whatever
// colour was chosen.

// A Color is a colour of sRGB: red, green and blue.
type Color [3]uint8

var (
	white = Color{255, 255, 255}
	black = Color{}
)

// The backgrounds of cards.
var (
	lightCard = white
	darkCard  = Color{0x1f, 0x1d, 0x1b}
)

const (
	textContrast    = 4.5 // of text
	graphicContrast = 3   // of bars, lines and borders of controls
)

// ParseColor reads six lower-case hexadecimal digits.
func ParseColor(hex string) (c Color, ok bool) {
	if len(hex) != 6 || strings.Trim(hex, "0123456789abcdef") != "" {
		return c, false
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	return Color{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err == nil
}

// String is c as stylesheets write it.
func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance is the relative luminance of WCAG 2.2: 0 for black, 1 for white.
func (c Color) luminance() float64 {
	var linear [3]float64
	for i, v := range c {
		s := float64(v) / 255
		if s <= 0.04045 {
			linear[i] = s / 12.92
		} else {
			linear[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}

// contrast is the contrast ratio of WCAG 2.2: from 1, the same luminance, to 21.
func contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// mix returns c with parts of 32 of another colour.
func (c Color) mix(other Color, parts int) Color {
	for i := range c {
		c[i] = uint8((int(c[i])*(32-parts) + int(other[i])*parts + 16) / 32)
	}
	return c
}

// seenOn returns c as much lighter or darker, in steps of 1/64, as gives it a contrast with a
// background. Its hue and saturation stay.
func (c Color) seenOn(background Color, step int, least float64) Color {
	hue, saturation, lightness := c.hsl()
	for i := 1; contrast(c, background) < least; i++ {
		c = colorOfHSL(hue, saturation, min(max(lightness+float64(i*step)/64, 0), 1))
	}
	return c
}

const (
	lighter = 1
	darker  = -1
)

// hsl returns the hue in sixths of the circle, the saturation and the lightness.
func (c Color) hsl() (hue, saturation, lightness float64) {
	r, g, b := float64(c[0])/255, float64(c[1])/255, float64(c[2])/255
	most, least := max(r, g, b), min(r, g, b)
	spread := most - least
	lightness = (most + least) / 2
	if spread == 0 {
		return 0, 0, lightness
	}
	switch most {
	case r:
		hue = math.Mod((g-b)/spread+6, 6)
	case g:
		hue = (b-r)/spread + 2
	default:
		hue = (r-g)/spread + 4
	}
	return hue, spread / (1 - math.Abs(2*lightness-1)), lightness
}

func colorOfHSL(hue, saturation, lightness float64) (c Color) {
	a := saturation * min(lightness, 1-lightness)
	for i, shift := range [3]float64{0, 8, 4} {
		k := math.Mod(shift+hue*2, 12)
		c[i] = uint8(math.Round(255 * (lightness - a*max(-1, min(k-3, 9-k, 1)))))
	}
	return c
}

// textOn returns the colour of text on c: white where that can be read, else black, which
// then can.
func textOn(c Color) Color {
	if contrast(c, white) >= textContrast {
		return white
	}
	return black
}

// brandRules are the custom properties of a theme in which brand is the colour of buttons and
// bar that of bars and lines on a card.
func brandRules(brand, bar, card Color) string {
	on := textOn(brand)
	away := white // from the text: the button that the pointer is on can be read no worse
	if on == white {
		away = black
	}
	return fmt.Sprintf("--brand:%v;--on-brand:%v;--brand-hover:%v;--bar:%v;--tint:%v", brand, on, brand.mix(away, 4), bar, bar.mix(card, 24))
}

// Stylesheet is the stylesheet of a brand's colour. In the dark theme buttons
// have the colour of bars, since a dark button on a dark card is not seen; and bars more contrast
// than they need, since thin ones look dimmer there.
func Stylesheet(c Color) []byte {
	light := brandRules(c, c.seenOn(lightCard, darker, graphicContrast), lightCard)
	bar := c.seenOn(darkCard, lighter, textContrast)
	dark := brandRules(bar, bar, darkCard)
	return []byte(":root{" + light + "}\n@media (prefers-Color-scheme:dark){:root:not([data-theme=light]){" + dark + "}}\n:root[data-theme=dark]{" + dark + "}\n")
}
