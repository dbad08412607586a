package fold

import "testing"

// TestText shows which texts a search treats as equal.
func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{
		{"Núñez", "nunez"}, {"JOSÉ", "jose"}, {"Nu\u0301n\u0303ez", "nunez"}, {"ÀÂÄ", "aaa"}, {"Łódź", "lodz"}, {"Ørsted", "orsted"},
		{"ABC+123@x", "abc+123@x"}, {"Ψ", "ψ"}, {"東京", "東京"}, {"", ""}, {"\u0301", ""},
		{"a \u00a0\t b", "a b"}, {"\u3000", " "}, {"a\u00adb\u200bc", "abc"}, {"O‘’ʼ´`'", "o''''''"}, {"“„«»″\"", `""""""`}, {"‐‑–—−－", "------"},
		{"ΆΈΊΌΎΏΉ", "αειουωη"}, {"ΐΰϊ", "ιυι"}, {"ΣΊΣΥΦΟΣ ς", "σισυφοσ σ"}, {"Ᾱͅ", "α"}, {"ЁлкаЙ", "елкай"}, {"и\u0306И\u0306", "йй"}, {"е\u0308", "е"},
		{"Їжак і\u0308", "їжак ї"}, {"ẞ", "ß"}, {"ǺḈḊ", "acd"}, {"İı", "ii"},
	} {
		if got := Text(test[0]); got != test[1] {
			t.Errorf("%q folds to %q, want %q", test[0], got, test[1])
		}
	}
}
