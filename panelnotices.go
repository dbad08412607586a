package main

import "strconv"

// Whether customers want notices, in the panel.

// MarketingBox is the box that a new customer checks who wants notices. Unchecked it is no answer.
func (f *pageData) MarketingBox() boxView {
	return boxView{ID: controlID("marketing"), Name: "marketing", Value: "true", Label: f.T("field.marketing"), Checked: f.checked("marketing", false)}
}

// MarketingChoice is whether a customer wants notices.
func (f *pageData) MarketingChoice(now *bool) control {
	value := ""
	if now != nil {
		value = strconv.FormatBool(*now)
	}
	items := []choiceItem{{"", f.T("notices.unknown")}, {"true", f.T("yes")}, {"false", f.T("no")}}
	return f.Select("marketing", "field.marketing", value, items)
}

// MarketingWords says whether a customer wants notices, and since when.
func (f *pageData) MarketingWords(c *customerDetail) string {
	switch {
	case c.Marketing == nil:
		return f.T("notices.unknown")
	case *c.Marketing:
		return f.T("notices.yes", f.Date(c.MarketingAt))
	}
	return f.T("notices.no", f.Date(c.MarketingAt))
}

var noticeTexts = panelTexts{
	"field.marketing": {"Quiere avisos", "Wants notices"},
	"notices.unknown": {"no lo ha dicho", "not said"},
	"notices.yes":     {"sí, desde el %s", "yes, since %s"},
	"notices.no":      {"no, desde el %s", "no, since %s"},
}
