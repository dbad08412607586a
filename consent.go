package main

// Whether customers want notices, such as that points expire soon (contract §23). The API calls it
// marketing: true, false, or null as long as nobody asked. Sello sends nothing; the panel lists only
// customers who said yes.

// A consent is what a customer said, and when.
type consent struct {
	Answer consentAnswer
	At     instant // 0 without an answer
}

// A consentAnswer is a byte in the file.
type consentAnswer uint8

const (
	consentUnknown consentAnswer = iota
	consentGiven
	consentRefused
)

func (v *consent) fields(c *coder) { byteField(c, &v.Answer); c.instant(&v.At) }

// said is the consent after an answer at a moment. The same answer again keeps the first moment.
func (v consent) said(a consentAnswer, at instant) consent {
	switch a {
	case v.Answer:
		return v
	case consentUnknown:
		return consent{}
	}
	return consent{a, at}
}

// later is the one of two consents of one person that was said later.
func (v consent) later(o consent) consent {
	if o.At > v.At {
		return o
	}
	return v
}

// orNull is the answer as the API has it.
func (a consentAnswer) orNull() *bool {
	if a == consentUnknown {
		return nil
	}
	return new(a == consentGiven)
}

// text is the answer in a file of customers; "" without one.
func (a consentAnswer) text() string {
	switch a {
	case consentGiven:
		return "true"
	case consentRefused:
		return "false"
	}
	return ""
}

// answerOf is a yes or a no.
func answerOf(yes bool) consentAnswer {
	if yes {
		return consentGiven
	}
	return consentRefused
}
