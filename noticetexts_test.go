package main

import (
	"slices"
	"strings"
	"testing"
)

// TestNoticeTexts: the usual texts have only places that they may have, and filling in leaves none.
func TestNoticeTexts(t *testing.T) {
	t.Parallel()
	for i, rule := range noticeRules {
		if len(new(noticesDoc).texts()) <= i {
			t.Fatalf("%s has no text in a document", rule.kind)
		}
		known := map[string]string{}
		for _, place := range rule.places {
			known[place] = "«" + place + "»"
		}
		for _, text := range []string{rule.es, rule.en} {
			for _, m := range noticePlace.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(rule.places, m[1]) {
					t.Errorf("%s: no {%s}", rule.kind, m[1])
				}
			}
			if got := filledNotice(text, known); strings.ContainsAny(got, "{}") || !strings.Contains(got, "«nombre»") {
				t.Errorf("%s: %s", rule.kind, got)
			}
		}
	}
	var o organization
	if o.Settings.Language = "en-US"; !strings.HasPrefix(o.notice(noticeBirthday), "Happy") {
		t.Error(o.notice(noticeBirthday))
	}
	if o.Settings.Notices = (&noticesDoc{Birthday: "Felicidades, {nombre}."}); filledNotice(o.notice(noticeBirthday), map[string]string{"nombre": "Ana {saldo}"}) != "Felicidades, Ana {saldo}." {
		t.Error(o.notice(noticeBirthday))
	}
}
