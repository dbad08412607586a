package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// How a document becomes the configuration of an organization, in one transaction: it is merged
// with the old one, checked against it, written as the next version, and told to the audit log and
// the feed. A document with a fault changes nothing.

type applied struct {
	Organization string   `json:"organization"` // slug
	Created      bool     `json:"created"`
	DryRun       bool     `json:"dryRun"`
	Changes      []change `json:"changes"`
	Warnings     []string `json:"warnings"`
	Version      uint64   `json:"version"`        // that the organization has now; 0: it is not there yet
	Made         string   `json:"made,omitempty"` // path of the data file, if the command made it

	warned []problem // the same, for pages
}

// applyDocument makes the organization's configuration what the document says, in a
// transaction that does nothing else. by is who applies it.
func applyDocument(tx Tx, raw []byte, m *mint, by creator, dryRun bool) (*applied, error) {
	t := bareTxn(tx, 0, m, by)
	result, err := applyIn(t, raw, dryRun)
	if err != nil || dryRun {
		return result, err
	}
	return result, t.commit()
}

// applyIn makes the organization's configuration what the document says. A wrong document
// changes nothing; the error is a documentError. Applying the same document again changes
// nothing. A transaction without an organization gets the document's organization.
func applyIn(t *txn, raw []byte, dryRun bool) (*applied, error) {
	doc, ck := checkedDocument(raw)
	if doc == nil {
		return nil, &documentError{ck.problems}
	}
	old, err := configBefore(t.Tx, doc)
	if err != nil {
		return nil, err
	}
	if t.org != 0 && t.org != old.Number { // another organization's document: its faults are not shown
		return nil, &documentError{[]problem{{"organization.slug", sentenceOf("es de otra organización")}}}
	}
	next := old.merge(doc, t.mint)
	if err := ck.against(t.Tx, doc, old, next); err != nil {
		return nil, err
	}
	if err := ownersChoice(t, ck, old, next); err != nil {
		return nil, err
	}
	if err := operatorsChoice(t, old, next); err != nil {
		return nil, err
	}
	if len(ck.problems) > 0 {
		return nil, &documentError{ck.problems}
	}
	result := &applied{Organization: doc.Organization.Slug, Created: old.Number == 0, DryRun: dryRun, Version: old.Version}
	if result.Changes, err = differences(old, next); err != nil {
		return nil, err
	}
	if result.warned, err = warnings(t.Tx, old, next, t.now); err != nil {
		return nil, err
	}
	result.Warnings = append([]string{}, toldProblems(result.warned)...) // never null
	same, err := sameDocument(old, next)
	if err != nil || dryRun || same {
		return result, err
	}
	result.Version = next.Version
	return result, replaceConfig(t, old, next, result.Changes)
}

// against checks what depends on the old configuration.
func (ck *checker) against(tx Tx, doc *document, old, next *config) error {
	ck.compare(doc, old, next)
	if old.Number == 0 || !ck.isSound("organization.settings.timezone") || old.Organization.Settings.Timezone == next.Organization.Settings.Timezone {
		return nil
	}
	customers, err := hasCustomers(tx, old.Number)
	if err != nil {
		return err
	}
	ck.require(!customers, "organization.settings.timezone", "no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella")
	return nil
}

// ownersChoice adds a problem if a member of the team who is not an owner changes which roles
// need a second factor.
func ownersChoice(t *txn, ck *checker, old, next *config) error {
	if t.by.Type != byUser || slices.Equal(old.Organization.Settings.SecondFactor, next.Organization.Settings.SecondFactor) {
		return nil
	}
	m, err := membershipIn(t.Tx, t.org, t.by.ID)
	ck.require(err == nil && m != nil && m.Role == roleOwner, "organization.settings.secondFactor", "solo lo cambia un propietario")
	return err
}

// errPlanAlone refuses a change of the plan by the team: the plan is what they pay for (contract
// §19).
var errPlanAlone = newPeopleError("plan_alone", "", "El plan solo lo cambia quien opera el servidor")

// operatorsChoice returns errPlanAlone if a user who is not an operator changes the plan.
func operatorsChoice(t *txn, old, next *config) error {
	if t.by.Type != byUser || old.Organization.Plan == next.Organization.Plan {
		return nil
	}
	u, err := userByID(t.Tx, t.by.ID)
	if err == nil && (u == nil || !u.Operator) {
		err = errPlanAlone
	}
	return err
}

// replaceConfig writes a configuration in the place of the old one, and the changes that follow
// from it. The transaction itself goes on with the old one.
func replaceConfig(t *txn, old, next *config, changes []change) (err error) {
	if old.Number == 0 {
		if next.Number, err = addOrganization(t, next.Organization.Slug, t.mint); err != nil {
			return err
		}
	}
	t.org = next.Number
	if next.Recount = old.Recount; needsRecount(old, next) {
		next.Recount = true
		if err := startRecount(t, old.Number); err != nil {
			return err
		}
	}
	if err := saveConfig(t, next); err != nil {
		return err
	}
	if err := followBirthdays(t, next, t.mint); err != nil {
		return err
	}
	return noteApplied(t, next, changes)
}

func noteApplied(t *txn, cfg *config, changes []change) error {
	if err := t.webhooks.follow(cfg); err != nil {
		return err
	}
	n, err := t.count()
	if err != nil {
		return err
	}
	if err := keepVersion(t, cfg, n.Audit+1); err != nil {
		return err
	}
	if err := t.feed.emit(eventConfigurationApplied, n.Audit+1); err != nil {
		return err
	}
	return t.audit.note(auditConfigurationApplied, cfg.ID.String(), changes)
}

// configBefore returns the configuration of a document's organization, or an empty one if
// it is new.
func configBefore(tx Tx, doc *document) (*config, error) {
	number, err := organizationNumber(tx, doc.Organization.Slug)
	if err != nil || number == 0 {
		return new(config), err
	}
	value, _, err := tx.Get(newKey('o').byte('c').u32(number))
	if err != nil {
		return nil, err
	}
	return parseConfig(value)
}

// addOrganization stores what a new organization has before its configuration: its slug, and the
// secret of its codes. It returns its number.
func addOrganization(tx Tx, slug string, m *mint) (uint32, error) {
	count, err := organizationCount(tx)
	if err != nil {
		return 0, err
	}
	if err := putUint(tx, newKey('o').byte('n'), count+1); err != nil {
		return 0, err
	}
	if err := putUint(tx, newKey('o').byte('s').text(slug), count+1); err != nil {
		return 0, err
	}
	org := uint32(count + 1)
	return org, tx.Put(codeSecretKey(org), newCodeSecret(org, m))
}

type documentError struct{ problems []problem }

func (e *documentError) Error() string {
	return fmt.Sprintf("el documento no es válido:\n  %s", strings.Join(toldProblems(e.problems), "\n  "))
}

// Unwrap makes it an operator's error, which is told as it is.
func (e *documentError) Unwrap() error { return &operatorError{message: e.Error()} }

func hasCustomers(tx Tx, org uint32) (bool, error) {
	n, err := get[counters](tx, orgKey('n', org))
	return n != nil && n.Customers > 0, err
}

// problemsOf returns the problems of a document for a new organization, and whether it is
// JSON at all.
func problemsOf(raw []byte) (problems []problem, isJSON bool) {
	doc, ck := checkedDocument(raw)
	if doc == nil {
		return ck.problems, false
	}
	old := new(config)
	ck.compare(doc, old, old.merge(doc, newMint(0, seed{})))
	return ck.problems, true
}

// merge returns the configuration after a document. A program, reward or segment whose key is in
// the old configuration keeps its id; the others get new ids. The ids of rewards and segments are
// derived from the key: a reward that is taken out and put back keeps its stock and limits.
func (c *config) merge(doc *document, m *mint) *config {
	next := &config{Version: c.Version + 1, Number: c.Number, ID: c.ID, Organization: doc.Organization, NextProgram: max(c.NextProgram, 1)}
	if next.ID == (id{}) {
		next.ID = m.id()
	}
	if doc.Programs == nil {
		next.Programs = c.Programs
		next.NextProgram = c.NextProgram
	}
	for _, d := range doc.Programs {
		p := &program{programDoc: d}
		if old := c.programKey(d.Key); old != nil {
			p.ID, p.Number = old.ID, old.Number
		} else {
			p.ID, p.Number = m.id(), next.NextProgram
			next.NextProgram++
		}
		next.Programs = append(next.Programs, p)
	}
	if doc.Rewards == nil {
		next.Rewards = c.Rewards
	}
	for _, d := range doc.Rewards {
		r := &reward{rewardDoc: d, ID: next.ID.derive("reward", d.Key), CreatedAt: m.now, UpdatedAt: m.now}
		if i := slices.IndexFunc(c.Rewards, func(o *reward) bool { return o.Key == d.Key }); i >= 0 {
			old := c.Rewards[i]
			r.ID, r.CreatedAt = old.ID, old.CreatedAt
			if reflect.DeepEqual(old.rewardDoc, d) {
				r.UpdatedAt = old.UpdatedAt
			}
		}
		next.Rewards = append(next.Rewards, r)
	}
	if doc.Segments == nil {
		next.Segments = c.Segments
	}
	for _, d := range doc.Segments {
		s := &segment{segmentDoc: d, ID: next.ID.derive("segment", d.Key), CreatedAt: m.now}
		if old := c.segmentKey(d.Key); old != nil {
			s.ID, s.CreatedAt = old.ID, old.CreatedAt
		}
		next.Segments = append(next.Segments, s)
	}
	if doc.Webhooks == nil {
		next.Webhooks = c.Webhooks
	}
	for _, w := range doc.Webhooks {
		next.Webhooks = append(next.Webhooks, &w)
	}
	return next
}

// compare checks what depends on the old configuration, and references between parts of the
// document. References to lists with a wrong part are not reported.
func (ck *checker) compare(doc *document, old, next *config) {
	soundKeys := func(list string, n int) bool {
		for i := range n {
			if !ck.isSound(fmt.Sprintf("%s[%d].key", list, i)) || slices.Contains(ck.unread, fmt.Sprintf("%s[%d]", list, i)) {
				return false
			}
		}
		return !slices.Contains(ck.unread, list)
	}
	programs := soundKeys("programs", len(doc.Programs))
	for _, p := range old.Programs {
		if programs && next.programKey(p.Key) == nil {
			ck.problems = append(ck.problems, problem{"programs", sentenceOf("falta %q; un programa no se puede quitar", p.Key)})
		}
	}
	if programs && doc.Programs == nil && len(next.Programs) == 0 {
		ck.require(false, "programs", "hace falta al menos un programa")
	}
	ck.references(next, programs, soundKeys("segments", len(doc.Segments)), soundKeys("rewards", len(doc.Rewards)))
}

// references reports the keys and names in a configuration that refer to nothing. programs,
// segments and rewards say whether the keys of all programs, segments and rewards are right.
func (ck *checker) references(c *config, programs, segments, rewards bool) {
	checkSegments := func(path string, keys []string) {
		for i, k := range keys {
			if segments && c.segmentKey(k) == nil {
				ck.require(false, fmt.Sprintf("%s.segments[%d]", path, i), "no hay ningún segmento %q", k)
			}
		}
	}
	sound := map[*program]bool{} // programs whose tiers are
	for i, p := range c.Programs {
		sound[p] = ck.isSound(fmt.Sprintf("programs[%d].tiers", i)) && !slices.Contains(ck.unread, fmt.Sprintf("programs[%d]", i))
	}
	checkTiers := func(path string, p *program, names []string) {
		for i, name := range names {
			if sound[p] && !slices.ContainsFunc(p.Tiers, func(t tier) bool { return t.Name == name }) {
				ck.require(false, fmt.Sprintf("%s.tiers[%d]", path, i), "no hay ningún nivel %q", name)
			}
		}
	}
	for i, p := range c.Programs {
		for j, r := range p.Rules {
			path := fmt.Sprintf("programs[%d].rules[%d]", i, j)
			checkSegments(path, r.Segments)
			checkTiers(path, p, r.Tiers)
			if r.Reward == "" {
				continue
			}
			switch given := c.rewardKey(r.Reward); {
			case given != nil:
				ck.require(given.Fulfilment == fulfilVoucher, path+".reward", "debe ser una recompensa con fulfilment: %s", fulfilVoucher)
			case rewards:
				ck.require(false, path+".reward", "no hay ninguna recompensa %q", r.Reward)
			}
		}
	}
	for i, s := range c.Segments {
		for path, r := range s.Rule.comparisons(fmt.Sprintf("segments[%d].rule", i)) {
			if key, is := strings.CutPrefix(r.Field, pointsField); is && programs && c.programKey(key) == nil {
				ck.require(false, path+".field", "no hay ningún programa %q", key)
			}
		}
	}
	for i, r := range c.Rewards {
		path := fmt.Sprintf("rewards[%d]", i)
		checkSegments(path, r.Segments)
		switch p := c.programKey(r.Program); {
		case p != nil:
			checkTiers(path, p, r.Tiers)
		case programs && r.Program != "":
			ck.require(false, path+".program", "no hay ningún programa %q", r.Program)
		}
	}
}
