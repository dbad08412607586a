package main

// The encodings that spreadsheets have saved, and still save.

// An encoding says how the bytes of a file spell its text.
type encoding int

const (
	encodingUnknown encoding = iota // to be found out
	encodingUTF8
	encodingUTF16LE
	encodingUTF16BE
	encodingWindows1252
	encodingIBM850
	encodingIBM437
	encodingMacintosh
)

// encodingFlags are the encodings that the command line can name. UTF-16 with the other
// order of bytes has a mark or shows it.
var encodingFlags = map[string]encoding{
	"utf-8": encodingUTF8, "utf-16": encodingUTF16LE, "windows-1252": encodingWindows1252,
	"ibm850": encodingIBM850, "ibm437": encodingIBM437, "macintosh": encodingMacintosh,
}

// encodingNames are those of encodingFlags.
var encodingNames = [...]string{
	encodingUTF8: "utf-8", encodingUTF16LE: "utf-16", encodingUTF16BE: "utf-16", encodingWindows1252: "windows-1252",
	encodingIBM850: "ibm850", encodingIBM437: "ibm437", encodingMacintosh: "macintosh",
}

func (e encoding) String() string { return encodingNames[e] }

// rune returns the character of a byte in an encoding of single bytes. An undefined byte
// is the replacement character, not a control character.
func (e encoding) rune(b byte) rune {
	if b < 0x80 {
		return rune(b)
	}
	return upperHalves[e][b-0x80]
}

// text decodes bytes in an encoding of single bytes.
func (e encoding) text(b []byte) []rune {
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = e.rune(c)
	}
	return text
}

// upperHalves are the characters of the bytes from 0x80 to 0xff, by the tables of Unicode
// (www.unicode.org/Public/MAPPINGS/VENDORS). The apple of Macintosh is no character there.
var upperHalves = [...][]rune{
	encodingWindows1252: []rune("€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß" +
		"àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"),
	encodingIBM850: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ" +
		"áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐" +
		"└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀" +
		"ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0"),
	encodingIBM437: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ" +
		"áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"),
	encodingMacintosh: []rune("ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü" +
		"†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø" +
		"¿¡¬√ƒ≈∆«»…\u00a0ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ" +
		"‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\ufffdÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ"),
}
