package contact

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

//go:generate go run -C ../../tools/phonedata . ../../internal/contact/phonedata.txt

// phoneData is the table of the world's numbering plans; parsePhonePlans
// describes its format.
//
//go:embed phonedata.txt
var phoneData string

// Phone returns the E.164 form ("+525512345678") of a phone number written as
// people write them, and whether it is a valid number. A number without a
// calling code belongs to country, an ISO 3166 code such as "MX"; when the
// country is unknown, only numbers with a + are accepted.
//
// It judges as Google's libphonenumber does when it parses a number for a region
// and asks whether it is valid: text before the number, punctuation, extensions,
// a second number after a slash and the parameters of tel: URIs are dropped; all
// scripts' digits count; three or more letters are read off a dial pad ("1 800
// FLOWERS"); international and trunk prefixes are removed. Two rules are our own:
//
//   - the prefixes that Mexico retired are dropped, see mexicanNumber;
//   - a valid number after a calling code keeps all its digits, so that a result
//     is its own normal form in every country. libphonenumber looks for a trunk
//     prefix even there, and finds one in some numbers of Belarus and Japan.
func Phone(text, country string) (e164 string, ok bool) {
	number := phoneText(text)
	if number == "" {
		return "", false
	}
	plans := phonePlans()
	plan, national, coded := plans.split(plans.byRegion[country], number)
	if plan == nil {
		return "", false
	}
	ok = coded && plans.valid(plan.code, national)
	if !ok {
		// A number without calling code has its trunk prefix removed even when
		// it looks valid with it.
		national = plan.withoutTrunk(national)
		ok = plans.valid(plan.code, national)
	}
	if !ok && plan.code == "52" {
		national = mexicanNumber(national, coded)
		ok = plans.valid(plan.code, national)
	}
	if !ok {
		return "", false
	}
	return "+" + plan.code + national, true
}

// mexicanNumber drops the prefixes that Mexico retired in 2019 and that people
// keep typing: the 1 of mobile phones after the calling code, and 01, 044 and 045
// before a number without calling code.
func mexicanNumber(national string, coded bool) string {
	if coded {
		return strings.TrimPrefix(national, "1")
	}
	for _, retired := range []string{"01", "044", "045"} {
		if number, found := strings.CutPrefix(national, retired); found {
			return number
		}
	}
	return national
}

// maxPhoneInput is how long a text that holds a number may be, in bytes.
const maxPhoneInput = 250

// The parts of the expressions below. A number is digits of any script among
// punctuation: hyphens and dashes, spaces, brackets, dots, slashes, tildes, the
// star of a dial pad, and the x that stands for a carrier code.
const (
	phonePlus  = `[+\x{FF0B}]`
	phonePunct = `\-\x{2010}-\x{2015}\x{2212}\x{30FC}` + // hyphen, dashes, minus, long vowel mark
		` \x{A0}\x{AD}\x{200B}\x{2060}\x{3000}` + // visible and invisible spaces
		`()\[\]\x{FF08}\x{FF09}\x{FF3B}\x{FF3D}` + // brackets
		`./\x{FF0D}-\x{FF0F}` + // full stop, slash; full-width hyphen, stop, slash
		`~\x{2053}\x{223C}\x{FF5E}*x`

	// An extension follows ";ext=", a word, a sign, or commas that make a phone
	// pause; the vaguer the mark, the fewer digits are accepted.
	phoneExtGap   = `[ \x{A0}\t]*`
	phoneExtStart = `[ \x{A0}\t,]*`
	phoneExtSep   = `[:.\x{FF0E}]?[ \x{A0}\t,\-]*`
	phoneExtWord  = `e?xt(?:ensi(?:o\x{301}?|ó))?n?|\x{FF45}?\x{FF58}\x{FF54}\x{FF4E}?|доб|anexo`
	phoneExtSign  = `[x\x{FF58}#\x{FF03}~\x{FF5E}]|int|\x{FF49}\x{FF4E}\x{FF54}`
	phoneExt      = `(?:;ext=\p{Nd}{1,20}` +
		`|` + phoneExtStart + `(?:` + phoneExtWord + `)` + phoneExtSep + `\p{Nd}{1,20}#?` +
		`|` + phoneExtStart + `(?:` + phoneExtSign + `)` + phoneExtSep + `\p{Nd}{1,9}#?` +
		`|[- ]+\p{Nd}{1,6}#` +
		`|` + phoneExtGap + `(?:,,|;)` + phoneExtSep + `\p{Nd}{1,15}#?` +
		`|` + phoneExtGap + `,+` + phoneExtSep + `\p{Nd}{1,9}#?)`
)

// domainRest matches a label of a domain name behind its first character.
const domainRest = `(?:[a-zA-Z\p{Nd}\-]*[a-zA-Z\p{Nd}])?`

var (
	// phoneViable matches what may be a phone number: two digits, or three and
	// more among punctuation, with letters after them and perhaps an extension.
	phoneViable = regexp.MustCompile(`(?i)^(?:\p{Nd}{2}|` + phonePlus + `*(?:[` + phonePunct + `]*\p{Nd}){3}` +
		`[` + phonePunct + `a-z\p{Nd}]*` + phoneExt + `?)$`)

	phoneExtension = regexp.MustCompile(`(?i)` + phoneExt + `$`)

	// phoneSecond finds the second of two numbers or extensions, "x302/x2303".
	phoneSecond = regexp.MustCompile(`[\\/] *x`)

	// phoneContext matches the values that RFC 3966 allows for phone-context: a
	// number with its +, or a domain name.
	phoneContext = regexp.MustCompile(`^(?:\+[\p{Nd}\-.()]*\p{Nd}[\p{Nd}\-.()]*` +
		`|(?:[a-zA-Z\p{Nd}]` + domainRest + `\.)*[a-zA-Z]` + domainRest + `\.?)$`)
)

// phoneText cuts the number out of the text that holds it, without its extension,
// or returns "" when the text holds none. The text may be a tel: URI (RFC 3966);
// the calling code of its phone-context is put in front.
func phoneText(input string) string {
	if len(input) > maxPhoneInput {
		return ""
	}
	if isPlainNumber(input) {
		return input
	}
	return searchPhone(input)
}

// isPlainNumber reports whether text is like most: digits alone, perhaps after a plus.
// searchPhone finds all of such a text.
func isPlainNumber(text string) bool {
	digits := strings.TrimPrefix(text, "+")
	return len(digits) > 2 && strings.Trim(digits, "0123456789") == ""
}

// searchPhone is phoneText for any text.
func searchPhone(input string) string {
	before, params, isURI := strings.Cut(input, ";phone-context=")
	context, _, _ := strings.Cut(params, ";")
	if isURI && !phoneContext.MatchString(context) {
		return ""
	}
	number := before
	if isURI && before != "" {
		if _, after, found := strings.Cut(before, "tel:"); found {
			number = after
		}
		if strings.HasPrefix(context, "+") {
			number = context + number
		}
	} else {
		number = firstNumber(input)
	}
	if i := strings.Index(number, ";isub="); i > 0 {
		number = number[:i]
	}
	if !phoneViable.MatchString(number) {
		return ""
	}
	if ext := phoneExtension.FindStringIndex(number); ext != nil && phoneViable.MatchString(number[:ext[0]]) {
		number = number[:ext[0]]
	}
	return number
}

// firstNumber drops what stands before the first digit or plus, behind the last
// letter, digit or #, and from a second number on.
func firstNumber(text string) string {
	start := strings.IndexFunc(text, func(c rune) bool { return c == '+' || c == '＋' || unicode.IsDigit(c) })
	if start < 0 {
		return ""
	}
	text = strings.TrimRightFunc(text[start:], func(c rune) bool {
		return c != '#' && !unicode.IsLetter(c) && !unicode.IsNumber(c)
	})
	if second := phoneSecond.FindStringIndex(text); second != nil {
		text = text[:second[0]]
	}
	return text
}

// dialled returns the ASCII digits one would dial for a number. Fewer than three
// letters are taken for noise; with more, the letters stand for the keys they are
// printed on, and only ASCII digits count.
func dialled(number string) string {
	const keys = "22233344455566677778889999" // A to Z
	letters := 0
	for _, c := range number {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			letters++
		}
	}
	var digits []byte
	for _, c := range number {
		if letters >= 3 {
			switch c = unicode.ToUpper(c); {
			case '0' <= c && c <= '9':
				digits = append(digits, byte(c))
			case 'A' <= c && c <= 'Z':
				digits = append(digits, keys[c-'A'])
			}
		} else if unicode.IsDigit(c) {
			digits = append(digits, '0'+digitValue(c))
		}
	}
	return string(digits)
}

// digitValue returns the value of a decimal digit of any script. Unicode keeps
// the ten digits of a script together in order, in runs of whole tens.
func digitValue(c rune) byte {
	n := 0
	for unicode.IsDigit(c - rune(n) - 1) {
		n++
	}
	return byte(n % 10)
}

// phonePlan is the numbering plan of one region under one calling code.
type phonePlan struct {
	region string // ISO 3166 code, or "001" for a code without a country
	code   string // calling code

	idd     lazyRegexp // what is dialled before a foreign number
	trunk   lazyRegexp // what may be dialled before a national number
	becomes string     // the rewriting of a trunk prefix whose last group matched
	leading lazyRegexp // first digits that tell the region from others of the code
	plan    lazyRegexp // all national numbers, roughly; decides whether to drop a prefix
	numbers lazyRegexp // the valid national numbers; plan must match them too
	lengths lengthSet  // of national numbers
	local   lengthSet  // of numbers dialled without area code
}

// lazyRegexp compiles an expression when it is first needed: a server meets few
// of the world's 250 plans. It is nil where the table gives no expression.
type lazyRegexp func() *regexp.Regexp

func prefixRegexp(pattern string) lazyRegexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)`) })
}

func fullRegexp(pattern string) lazyRegexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) })
}

// lengthSet has bit n set when a number may have n digits.
type lengthSet uint32

func (s lengthSet) has(n int) bool { return s>>n&1 != 0 }

// tooLong reports whether n is more digits than any number of the plan has.
func (p *phonePlan) tooLong(n int) bool { return p.lengths>>n == 0 && !p.local.has(n) }

// withoutTrunk is stripTrunk unless that leaves a number of digits which only an
// incomplete number has: then there was no trunk prefix after all.
func (p *phonePlan) withoutTrunk(national string) string {
	stripped := p.stripTrunk(national)
	if n := len(stripped); p.lengths.has(n) || p.tooLong(n) {
		return stripped
	}
	return national
}

// stripTrunk removes or rewrites the trunk prefix of a national number, unless
// that would spoil a number which fits the plan.
func (p *phonePlan) stripTrunk(national string) string {
	if p.trunk == nil {
		return national
	}
	match := p.trunk().FindStringSubmatchIndex(national)
	if match == nil {
		return national
	}
	stripped := national[match[1]:]
	if lastGroup := match[len(match)-2]; p.becomes != "" && lastGroup >= 0 {
		stripped = string(p.trunk().ExpandString(nil, p.becomes, national, match)) + stripped
	}
	if p.plan().MatchString(national) && !p.plan().MatchString(stripped) {
		return national
	}
	return stripped
}

// valid reports whether a national number is one that the region gives out.
func (p *phonePlan) valid(national string) bool {
	return p.plan().MatchString(national) && p.numbers().MatchString(national)
}

// worldPlan is the world's numbering plans, by region and by calling code. Among
// the regions that share a calling code, the main one comes first.
type worldPlan struct {
	byRegion map[string]*phonePlan
	byCode   map[string][]*phonePlan
}

// valid reports whether a national number is valid under a calling code: the
// first region that claims it by its leading digits decides, or accepts it when
// it has none.
func (w *worldPlan) valid(code, national string) bool {
	for _, p := range w.byCode[code] {
		switch {
		case p.leading == nil && p.valid(national):
			return true
		case p.leading != nil && p.leading().MatchString(national):
			return p.valid(national)
		}
	}
	return false
}

// split separates a number from its calling code and returns the plan it belongs
// to, its national digits, and whether the calling code was written. A number
// without calling code belongs to home, nil when the country is unknown. The plan
// is nil when there is no such calling code.
func (w *worldPlan) split(home *phonePlan, number string) (plan *phonePlan, national string, coded bool) {
	afterPlus := strings.TrimLeft(number, "+＋")
	digits := dialled(afterPlus)
	if afterPlus == number {
		return w.splitDigits(home, digits)
	}
	if plan, national = w.splitCode(digits); plan != nil {
		return plan, national, true
	}
	// "+0052…": the plus was one too many, if a calling code is found without it.
	if plan, national, coded = w.splitDigits(home, digits); !coded {
		return nil, "", false
	}
	return plan, national, true
}

// splitDigits is split for a number without a plus, dialled at home.
func (w *worldPlan) splitDigits(home *phonePlan, digits string) (plan *phonePlan, national string, coded bool) {
	if home == nil {
		return nil, "", false
	}
	if idd := home.idd().FindStringIndex(digits); idd != nil && !strings.HasPrefix(digits[idd[1]:], "0") {
		plan, national = w.splitCode(digits[idd[1]:])
		return plan, national, true
	}
	// The calling code without a plus counts when the number makes sense only
	// without it.
	if rest, found := strings.CutPrefix(digits, home.code); found {
		rest = home.stripTrunk(rest)
		if !home.plan().MatchString(digits) && home.plan().MatchString(rest) || home.tooLong(len(digits)) {
			return w.byCode[home.code][0], rest, true
		}
	}
	return home, digits, false
}

// splitCode splits digits that begin with a calling code, of one to three digits.
// No code begins with another.
func (w *worldPlan) splitCode(digits string) (plan *phonePlan, national string) {
	for n := 1; n <= min(3, len(digits)); n++ {
		if plans := w.byCode[digits[:n]]; plans != nil {
			return plans[0], digits[n:]
		}
	}
	return nil, ""
}

// phonePlans returns the table, read once.
var phonePlans = sync.OnceValue(func() *worldPlan { return parsePhonePlans(phoneData) })

// parsePhonePlans reads the table that tools/phonedata writes. A blank line
// separates the plans; each line of a plan is a key, a space and a value:
//
//	region   ISO 3166 code, or 001
//	code     calling code; its main region comes first in the file
//	idd      expression for the international prefixes
//	trunk    expression for the national prefixes
//	becomes  what replaces a national prefix whose last group matched
//	leading  expression for the first digits of a region that shares its code
//	lengths  numbers of digits, separated by spaces
//	local    the same, of numbers without area code
//	plan     expression for all national numbers
//	valid    expression for one kind of number, such as mobile; once per kind
//
// Lines are absent where they do not apply. A line that begins with # is a
// comment.
func parsePhonePlans(data string) *worldPlan {
	w := &worldPlan{byRegion: map[string]*phonePlan{}, byCode: map[string][]*phonePlan{}}
	for stanza := range strings.SplitSeq(data, "\n\n") {
		p := &phonePlan{}
		var kinds []string
		for line := range strings.SplitSeq(stanza, "\n") {
			switch key, value, _ := strings.Cut(line, " "); key {
			case "region":
				p.region = value
			case "code":
				p.code = value
			case "idd":
				p.idd = prefixRegexp(value)
			case "trunk":
				p.trunk = prefixRegexp(value)
			case "becomes":
				p.becomes = value
			case "leading":
				p.leading = prefixRegexp(value)
			case "lengths":
				p.lengths = parseLengths(value)
			case "local":
				p.local = parseLengths(value)
			case "plan":
				p.plan = fullRegexp(value)
			case "valid":
				kinds = append(kinds, value)
			}
		}
		p.numbers = fullRegexp(strings.Join(kinds, "|"))
		w.byCode[p.code] = append(w.byCode[p.code], p)
		if p.region != "001" {
			w.byRegion[p.region] = p
		}
	}
	return w
}

func parseLengths(list string) (s lengthSet) {
	for field := range strings.FieldsSeq(list) {
		n, _ := strconv.Atoi(field)
		s |= 1 << n
	}
	return s
}
