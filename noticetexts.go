package main

import (
	"regexp"
	"strings"
)

// The texts that a shop sends to its customers by hand, from the panel's Avisos (contract §23). In
// a text {nombre} and the like stand for what is known of the customer.

// A noticesDoc has the texts; an empty one is the usual text.
type noticesDoc struct {
	Expiring string `json:"expiring,omitempty"` // points that expire soon
	Birthday string `json:"birthday,omitempty"` // of the week
	Almost   string `json:"almost,omitempty"`   // one purchase is missing to a tier or a full card
}

// maxNotice is in characters.
const maxNotice = 500

// A noticeKind is one of the texts.
type noticeKind string

const (
	noticeExpiring noticeKind = "expiring"
	noticeBirthday noticeKind = "birthday"
	noticeAlmost   noticeKind = "almost"
)

// A noticeRule says what may stand in braces in a text, and what is usually said.
type noticeRule struct {
	kind   noticeKind
	places []string
	es, en string
}

// known lists what may stand in braces.
func (r *noticeRule) known() string { return "{" + strings.Join(r.places, "}, {") + "}" }

var noticeRules = []noticeRule{
	{noticeExpiring, []string{"nombre", "negocio", "puntos", "moneda", "fecha", "saldo"},
		"Hola, {nombre}: el {fecha} vencen {puntos} {moneda}. Te esperamos en {negocio}.",
		"Hello {nombre}, {puntos} {moneda} expire on {fecha}. See you at {negocio}."},
	{noticeBirthday, []string{"nombre", "negocio", "saldo", "moneda"},
		"¡Feliz cumpleaños, {nombre}! Te esperamos en {negocio}.",
		"Happy birthday, {nombre}! See you at {negocio}."},
	{noticeAlmost, []string{"nombre", "negocio", "meta", "saldo", "moneda"},
		"Hola, {nombre}: con una compra más llegas a {meta}. Te esperamos en {negocio}.",
		"Hello {nombre}, one more purchase and you reach {meta}. See you at {negocio}."},
}

// texts are a document's texts, in the order of noticeRules.
func (d *noticesDoc) texts() []string {
	if d == nil {
		return make([]string, len(noticeRules))
	}
	return []string{d.Expiring, d.Birthday, d.Almost}
}

// notice is the organization's text of a kind.
func (o *organization) notice(kind noticeKind) string {
	for i, rule := range noticeRules {
		if rule.kind != kind {
			continue
		}
		text := o.Settings.Notices.texts()[i]
		if text == "" && strings.HasPrefix(o.Settings.Language, "en") {
			return rule.en
		} else if text == "" {
			return rule.es
		}
		return text
	}
	return ""
}

var noticePlace = regexp.MustCompile(`\{([^{}]*)\}`)

// filledNotice puts what is known in the places of a text.
func filledNotice(text string, known map[string]string) string {
	return noticePlace.ReplaceAllStringFunc(text, func(place string) string { return known[place[1:len(place)-1]] })
}
