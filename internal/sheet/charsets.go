// Package sheet reads the text of a spreadsheet: its encoding, which it finds out where the
// file has no mark, the records of its CSV, and numbers, dates and formulas in its cells.
package sheet

// The encodings that spreadsheets have saved, and still save.

// An Encoding says how the bytes of a file spell its text.
type Encoding int

// The encodings, by the names that Encodings has for them.
const (
	Unknown Encoding = iota // to be found out
	UTF8
	UTF16LE
	UTF16BE
	Windows1252
	IBM850
	IBM437
	Macintosh
)

// Encodings are the encodings that a user can name. UTF-16 with the other
// order of bytes has a mark or shows it.
var Encodings = map[string]Encoding{
	"utf-8": UTF8, "utf-16": UTF16LE, "windows-1252": Windows1252,
	"ibm850": IBM850, "ibm437": IBM437, "macintosh": Macintosh,
}

// encodingNames are those of Encodings.
var encodingNames = [...]string{
	UTF8: "utf-8", UTF16LE: "utf-16", UTF16BE: "utf-16", Windows1252: "windows-1252",
	IBM850: "ibm850", IBM437: "ibm437", Macintosh: "macintosh",
}

// String is the name of e in Encodings.
func (e Encoding) String() string { return encodingNames[e] }

// rune returns the character of a byte in an encoding of single bytes. An undefined byte
// is the replacement character, not a control character.
func (e Encoding) rune(b byte) rune {
	if b < 0x80 {
		return rune(b)
	}
	return upperHalves[e][b-0x80]
}

// text decodes bytes in an encoding of single bytes.
func (e Encoding) text(b []byte) []rune {
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = e.rune(c)
	}
	return text
}

// upperHalves are the characters of the bytes from 0x80 to 0xff, by the tables of Unicode
// (www.unicode.org/Public/MAPPINGS/VENDORS). The apple of Macintosh is no character there.
var upperHalves = [...][]rune{
	Windows1252: []rune("€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß" +
		"àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"),
	IBM850: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ" +
		"áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐" +
		"└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀" +
		"ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0"),
	IBM437: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ" +
		"áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"),
	Macintosh: []rune("ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü" +
		"†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø" +
		"¿¡¬√ƒ≈∆«»…\u00a0ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ" +
		"‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\ufffdÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ"),
}
