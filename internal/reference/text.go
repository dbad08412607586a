package reference

import (
	"html"
	"html/template"
	"regexp"
	"strings"
	"unicode"
)

// The descriptions of an OpenAPI document are CommonMark. These functions know what ours
// use: paragraphs, `code`, **strong**, lists of one level, tables and headings.

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	strongSpan = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// inline marks up a line of text.
func inline(text string) template.HTML {
	text = html.EscapeString(text)
	text = codeSpan.ReplaceAllString(text, "<code>$1</code>")
	return template.HTML(strongSpan.ReplaceAllString(text, "<strong>$1</strong>"))
}

// blocks marks up a text of several paragraphs. A heading gets the level that is given.
func blocks(text, heading string) template.HTML {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		switch {
		case strings.HasPrefix(lines[0], "## "):
			title := strings.TrimPrefix(lines[0], "## ")
			b.WriteString("<" + heading + ` id="` + slug(title) + `">` + string(inline(title)) + "</" + heading + ">\n")
		case strings.HasPrefix(lines[0], "- "):
			b.WriteString("<ul>")
			for _, line := range lines {
				b.WriteString("<li>" + string(inline(strings.TrimPrefix(line, "- "))) + "</li>\n")
			}
			b.WriteString("</ul>\n")
		case strings.HasPrefix(lines[0], "|"):
			b.WriteString(table(lines))
		default:
			b.WriteString("<p>" + string(inline(strings.Join(lines, " "))) + "</p>\n")
		}
	}
	return template.HTML(b.String())
}

// table marks up the lines of a table; the second one only divides.
func table(lines []string) string {
	var b strings.Builder
	b.WriteString("<div class=wide tabindex=0><table>")
	for i, line := range lines {
		if i == 1 {
			continue
		}
		cell := "td"
		if i == 0 {
			cell = "th"
		}
		b.WriteString("<tr>")
		for text := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			b.WriteString("<" + cell + ">" + string(inline(strings.TrimSpace(text))) + "</" + cell + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
	return b.String()
}

// slug is a text as an anchor.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-'
	}, strings.ToLower(text))
}
