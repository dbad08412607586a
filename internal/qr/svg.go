package qr

import (
	"fmt"
	"html"
	"strings"
)

// quietZone is the light border that a symbol has to have, in modules (6.3.8).
const quietZone = 4

// SVG returns the symbol with its quiet zone as an element of HTML, black on white whatever
// is around it. label is what it is called to those who do not see it. A module is a whole
// number of pixels wide, lest some be wider than others, and the picture at most as wide as
// most unless its modules have one pixel.
func (c *Code) SVG(label string, most int) string {
	side := c.size + 2*quietZone
	pixels := side * max(1, most/side)
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg role="img" aria-label="%s" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%[4]dv%[4]dh-%[4]dz"/><path fill="#000" d="`,
		html.EscapeString(label), pixels, pixels, side, side)
	for row := range c.size {
		for from := 0; from < c.size; from++ {
			to := from
			for to < c.size && c.at(row, to).dark {
				to++
			}
			if to > from {
				fmt.Fprintf(b, "M%d %dh%dv1h-%[3]dz", from+quietZone, row+quietZone, to-from)
				from = to
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.String()
}
