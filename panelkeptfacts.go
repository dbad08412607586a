package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// What a form that is kept says, for the page that comes before it.

// keptSubjects are the fields, and the names in paths, whose values are ids, with the word of what
// they are of.
var keptSubjects = map[string]string{
	"customerId": "customer", "from": "customer", "userId": "user", "keyId": "key", "segmentId": "segment",
	"productId": "reward", "rewardId": "reward", "programId": "program", "loyaltyProgramId": "program",
}

// keptChoices begin the names of the texts of what can be chosen, where auditText does not know them.
var keptChoices = map[string]string{accessField: "key.access.", expiresField: "key.expires.", "overlap": "key.overlap.", "join": "segment."}

// madeBoxes are the madeMembers that are boxes or buttons. Others may be "1" because somebody typed it.
var madeBoxes = []string{"again", "apiAccess", payMember.name, "restoreRedemptions"}

// hasBox reports whether a field is a box of the form.
func (f *panelForm) hasBox(name string) bool {
	return slices.ContainsFunc(f.members, func(m formMember) bool {
		return m.name == name && (m.kind == checkMember || m.kind == madeMember && slices.Contains(madeBoxes, name))
	})
}

// Facts are the fields of a form that was kept, by their labels and in words: ids by the names of
// what they are of, for whoever is logged in and not locked out. What people did not see is left out.
func (k *keptForm) Facts(f *pageData) (facts []control, err error) {
	if k.form == nil {
		return nil, nil
	}
	var subjects []control
	at := strings.Split(k.Path, "/")
	for i, part := range strings.Split(k.form.path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is && i < len(at) {
			subjects = append(subjects, control{Name: strings.TrimSuffix(name, "}"), Value: at[i]})
		}
	}
	for _, c := range k.Fields {
		if _, is := parseID(c.Value); is {
			subjects = append(subjects, c)
		} else if fact := f.keptFact(k.form, c); fact.Name != "" && fact.Value != "" {
			facts = append(facts, fact)
		}
	}
	if !f.Member() || f.request.cfg == nil {
		return facts, nil
	}
	var named []control
	err = f.request.fill(func(t *txn) error {
		named, err = lines(f.request, subjects, func(c control) (control, error) { return f.keptSubject(t, c) })
		return err
	})
	named = slices.DeleteFunc(named, func(c control) bool { return c.Value == "" })
	return append(named, facts...), err
}

// keptFact is a field that people have typed or chosen; without a name if it has no label.
func (f prose) keptFact(form *panelForm, c control) control {
	if strings.HasPrefix(c.Name, "_") || trimBlanks(c.Value) == "" {
		return control{}
	}
	text := f.auditText(c.Name, c.Value)
	if name := keptChoices[c.Name]; name != "" && f.Lang.Has(name+c.Value) {
		text = f.T(name + c.Value)
	}
	if form.hasBox(c.Name) {
		text = f.T("yes") // one that is not checked is not sent
	}
	if utf8.RuneCountInString(text) > valueShown {
		text = string([]rune(text)[:valueShown]) + "…"
	}
	return control{Name: fieldLabel(f.Lang, newError(codeInvalidField).on(c.Name).with(labelsContext, form.labels)), Value: text}
}

// keptSubject is what an id is of, by its name; without a value if it has none.
func (f *pageData) keptSubject(t *txn, c control) (fact control, err error) {
	word := keptSubjects[c.Name]
	u, is := parseID(c.Value)
	if word == "" || !is {
		return fact, nil
	}
	fact.Name = f.T("about." + word)
	switch word {
	case "reward":
		if r := t.cfg.reward(u); r != nil {
			fact.Value = r.Name
		}
	case "program":
		if p := t.cfg.program(u); p != nil {
			fact.Value = p.Name
		}
	default:
		about, err := f.request.about(&actorNames{t}, word+".", c.Value)
		if about.Name != fact.Name {
			fact.Value = about.Name
		}
		return fact, err
	}
	return fact, nil
}
