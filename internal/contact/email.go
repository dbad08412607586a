package contact

import "strings"

const (
	maxEmail     = 254 // bytes of a whole address
	maxLocalPart = 64  // bytes before the @
	maxLabel     = 63  // bytes between two dots of a domain
)

// Email returns the form in which an e-mail address is stored and compared, and
// whether input is an acceptable address.
//
// ASCII white space around the address is dropped. What remains must be a valid
// e-mail address of the HTML standard (what <input type=email> accepts), and:
//
//   - it is at most 254 bytes long, and its local part at most 64;
//   - its local part has no leading, trailing or doubled dot;
//   - its domain has at least one dot, and a last label that is not all digits,
//     so an IPv4 address is no domain.
//
// The result is lower-cased. Quoted local parts, comments, address literals and
// characters outside ASCII are not accepted; an internationalized domain is, in
// its xn-- form.
func Email(input string) (string, bool) {
	email := TrimEmail(input)
	local, domain, found := strings.Cut(email, "@")
	if !found || len(email) > maxEmail || !isLocalPart(local) || !isDottedDomain(domain) {
		return "", false
	}
	return strings.ToLower(email), true
}

// TrimEmail drops ASCII white space around an address, as the HTML standard does.
func TrimEmail(input string) string { return strings.Trim(input, " \t\n\f\r") }

// isLocalPart reports whether s can stand before the @ of an address: one or
// more atoms joined by dots.
func isLocalPart(s string) bool {
	if len(s) > maxLocalPart {
		return false
	}
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for _, c := range []byte(atom) {
			if !isLetterOrDigit(c) && strings.IndexByte("!#$%&'*+/=?^_`{|}~-", c) < 0 {
				return false
			}
		}
	}
	return true
}

// isDottedDomain reports whether s is two or more host name labels joined by
// dots, the last of them not a number.
func isDottedDomain(s string) bool {
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	return len(labels) > 1 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// isLabel reports whether s is one label of a host name: letters, digits and
// inner hyphens.
func isLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !isLetterOrDigit(c) && c != '-' {
			return false
		}
	}
	return true
}

// isLetterOrDigit reports whether c is an ASCII letter or digit.
func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
