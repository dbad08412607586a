// Package fold makes texts equal that people take for equal.
package fold

import (
	"unicode"
	"unicode/utf8"
)

// Text makes texts equal that differ only in letter case, accents, blanks or the form of
// apostrophes, quotes and dashes (contract §19). Letters of the Latin, Greek and Cyrillic
// scripts lose their marks. Combining marks and invisible characters are dropped. Any run
// of blanks is one blank. The search index holds folded texts: a change here makes it
// stale, and is a change of the schema.
func Text(s string) string {
	if isFolded(s) {
		return s
	}
	folded := make([]rune, 0, 64)
	for _, r := range s {
		r = foldRune(r)
		last := len(folded) - 1
		switch {
		case r == ' ' && last >= 0 && folded[last] == ' ':
		case r >= 0x300 && unicode.Is(unicode.Mn, r):
			if last >= 0 && composed[[2]rune{folded[last], r}] != 0 {
				folded[last] = composed[[2]rune{folded[last], r}]
			}
		case r >= 0x80 && unicode.Is(unicode.Cf, r):
		default:
			folded = append(folded, r)
		}
	}
	return string(folded)
}

// isFolded reports whether Text changes nothing, as in most e-mails.
func isFolded(s string) bool {
	last := byte(0)
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= utf8.RuneSelf || c == '`' || 'A' <= c && c <= 'Z' || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return true
}

// foldRune folds one character. It leaves marks as they are.
func foldRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case r == '`':
		return '\''
	case r < utf8.RuneSelf:
		return unicode.ToLower(r)
	}
	r = unicode.ToLower(r)
	if plain, ok := plainForms[r]; ok {
		return plain
	}
	if unicode.Is(unicode.Pd, r) {
		return '-'
	}
	return r
}

// composed maps a folded letter and a combining mark to a letter of its own, which Text
// keeps apart from the one without the mark: й is no accented и.
var composed = map[[2]rune]rune{
	{'и', '\u0306'}: 'й', {'у', '\u0306'}: 'ў', {'і', '\u0308'}: 'ї', {'г', '\u0301'}: 'ѓ', {'к', '\u0301'}: 'ќ',
}

// plainForms maps lower-case letters with a mark to the letter without it, and
// typographic signs to those of a keyboard.
var plainForms = func() map[rune]rune {
	m := map[rune]rune{}
	for plain, forms := range map[rune]string{
		'\'': "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u00b4\u02b9\u02bb\u02bc\u02bd\u02c8\u02ca\u02cb\u055a\ua78c\uff07\uff40",
		'"':  "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u02ba\u301d\u301e\u301f\uff02",
		'-':  "\u2212\u2043", // beside the dashes of Unicode
		'a':  "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ", 'b': "ḃḅḇ", 'c': "çćĉċčḉ", 'd': "ďḋḍḏḑḓđ", 'e': "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ",
		'f': "ḟ", 'g': "ĝğġģǧǵḡ", 'h': "ĥȟḣḥḧḩḫẖħ", 'i': "ìíîïĩīĭįǐȉȋḭḯỉịı", 'j': "ĵǰ", 'k': "ķǩḱḳḵ", 'l': "ĺļľḷḹḻḽłŀ",
		'm': "ḿṁṃ", 'n': "ñńņňǹṅṇṉṋ", 'o': "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợøǿ", 'p': "ṕṗ", 'r': "ŕŗřȑȓṙṛṝṟ",
		's': "śŝşšșṡṣṥṧṩ", 't': "ţťțṫṭṯṱẗŧ", 'u': "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự", 'v': "ṽṿ", 'w': "ŵẁẃẅẇẉẘ", 'x': "ẋẍ",
		'y': "ýÿŷȳẏẙỳỵỷỹ", 'z': "źżžẑẓẕ", 'æ': "ǣǽ", 'α': "άἀἁἂἃἄἅἆἇὰάᾀᾁᾂᾃᾄᾅᾆᾇᾰᾱᾲᾳᾴᾶᾷ", 'ε': "έἐἑἒἓἔἕὲέ",
		'η': "ήἠἡἢἣἤἥἦἧὴήᾐᾑᾒᾓᾔᾕᾖᾗῂῃῄῆῇ", 'ι': "ΐίϊἰἱἲἳἴἵἶἷὶίῐῑῒΐῖῗ", 'ο': "όὀὁὂὃὄὅὸό", 'ρ': "ῤῥ", 'σ': "ς",
		'υ': "ΰϋύὐὑὒὓὔὕὖὗὺύῠῡῢΰῦῧ", 'ω': "ώὠὡὢὣὤὥὦὧὼώᾠᾡᾢᾣᾤᾥᾦᾧῲῳῴῶῷ", 'а': "ӑӓ", 'е': "ѐёӗ", 'ж': "ӂӝ", 'з': "ӟ", 'и': "ѝӣӥ",
		'о': "ӧ", 'у': "ӯӱӳ", 'ч': "ӵ", 'ы': "ӹ", 'э': "ӭ", 'ѵ': "ѷ", 'ә': "ӛ", 'ө': "ӫ",
	} {
		for _, r := range forms {
			m[r] = plain
		}
	}
	return m
}()
