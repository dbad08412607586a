// Package qr encodes bytes as a QR code (ISO/IEC 18004:2015) and draws it as SVG. It
// knows byte mode, error correction level M and versions 1 to 10, which hold up to 213
// bytes: enough for an address that a phone scans from a screen.
//
// Sections, tables and annexes in comments are the standard's, and so are the names:
// a symbol is the whole square, a module one of its cells, a function pattern what every
// symbol of a version has in the same place, and a codeword 8 bits of the rest.
//
//   - codewords.go: from bytes to codewords (7.4 to 7.6)
//   - symbol.go: from codewords to modules (7.7 to 7.10)
//   - mask.go: the mask patterns, and which one is taken (7.8)
//   - svg.go: the picture
//
// All functions are pure and may be called by several goroutines.
package qr
