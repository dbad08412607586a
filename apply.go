package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// applied reports what applying a document did.
type applied struct {
	Organization string   `json:"organization"` // slug
	Created      bool     `json:"created"`
	DryRun       bool     `json:"dryRun"`
	Changes      []change `json:"changes"`
}

// applyDocument makes the organization's configuration what the document says.
// A wrong document changes nothing; the error lists each problem with its path.
// Applying the same document again changes nothing. by is who applies it.
func applyDocument(tx Tx, raw []byte, m *mint, by creator, dryRun bool) (*applied, error) {
	doc, problems := readDocument(raw)
	if len(problems) > 0 {
		return nil, invalidDocument(problems)
	}
	number, err := organizationNumber(tx, doc.Organization.Slug)
	if err != nil {
		return nil, err
	}
	old, err := configBefore(tx, number)
	if err != nil {
		return nil, err
	}
	next, problems := old.merge(doc, m)
	if old.Number != 0 && old.Organization.Settings.Timezone != next.Organization.Settings.Timezone {
		customers, err := hasCustomers(tx, old.Number)
		if err != nil {
			return nil, err
		}
		if customers {
			problems = append(problems, "organization.settings.timezone: no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella")
		}
	}
	if len(problems) > 0 {
		return nil, invalidDocument(problems)
	}
	result := &applied{Organization: doc.Organization.Slug, Created: number == 0, DryRun: dryRun}
	if result.Changes, err = differences(old, next); err != nil {
		return nil, err
	}
	same, err := sameDocument(old, next)
	if err != nil || dryRun || same {
		return result, err
	}
	if number == 0 {
		if next.Number, err = addOrganization(tx, doc.Organization.Slug); err != nil {
			return nil, err
		}
	}
	if next.Recount = old.Recount; needsRecount(old, next) {
		next.Recount = true
		if err := startRecount(tx, number); err != nil {
			return nil, err
		}
	}
	if err := saveConfig(tx, next); err != nil {
		return nil, err
	}
	if err := followBirthdays(tx, next, m); err != nil {
		return nil, err
	}
	t := bareTxn(tx, next.Number, m, by)
	if err := t.audited(auditConfigurationApplied, next.ID.String(), result.Changes); err != nil {
		return nil, err
	}
	return result, t.commit()
}

// configBefore returns the configuration of an organization, or an empty one for
// number 0.
func configBefore(tx Tx, number uint32) (*config, error) {
	if number == 0 {
		return new(config), nil
	}
	value, _, err := tx.Get(newKey('o').byte('c').u32(number))
	if err != nil {
		return nil, err
	}
	return parseConfig(value)
}

// addOrganization stores the slug of a new organization and returns its number.
func addOrganization(tx Tx, slug string) (uint32, error) {
	count, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return 0, err
	}
	if err := putUint(tx, newKey('o').byte('n'), count+1); err != nil {
		return 0, err
	}
	return uint32(count + 1), putUint(tx, newKey('o').byte('s').text(slug), count+1)
}

func invalidDocument(problems []string) error {
	return operatorErrorf("", "el documento no es válido:\n  %s", strings.Join(problems, "\n  "))
}

func hasCustomers(tx Tx, org uint32) (bool, error) {
	n, err := get[counters](tx, orgKey('n', org))
	return n != nil && n.Customers > 0, err
}

// merge returns the configuration after a document, and the problems found. What has
// the same key keeps its id; what is new gets one. Ids of rewards and segments are
// derived from the key: a reward taken out and put back keeps its stock and limits.
func (c *config) merge(doc *document, m *mint) (*config, []string) {
	next := &config{Number: c.Number, ID: c.ID, Organization: doc.Organization, NextProgram: max(c.NextProgram, 1)}
	if next.ID == (id{}) {
		next.ID = m.id()
	}
	var problems []string
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
	for _, old := range c.Programs {
		if next.programKey(old.Key) == nil {
			problems = append(problems, fmt.Sprintf("programs: falta %q; un programa no se puede quitar", old.Key))
		}
	}
	if len(next.Programs) == 0 {
		problems = append(problems, "programs: hace falta al menos un programa")
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
	return next, append(problems, next.references()...)
}

// references lists the keys and names in a configuration that refer to nothing.
func (c *config) references() []string {
	var problems []string
	unknown := func(path, kind, name string) {
		problems = append(problems, fmt.Sprintf("%s: no hay %s %q", path, kind, name))
	}
	checkSegments := func(path string, keys []string) {
		for i, k := range keys {
			if c.segmentKey(k) == nil {
				unknown(fmt.Sprintf("%s.segments[%d]", path, i), "ningún segmento", k)
			}
		}
	}
	checkTiers := func(path string, p *program, names []string) {
		for i, name := range names {
			if !slices.ContainsFunc(p.Tiers, func(t tier) bool { return t.Name == name }) {
				unknown(fmt.Sprintf("%s.tiers[%d]", path, i), "ningún nivel", name)
			}
		}
	}
	for i, p := range c.Programs {
		for j, r := range p.Rules {
			path := fmt.Sprintf("programs[%d].rules[%d]", i, j)
			checkSegments(path, r.Segments)
			checkTiers(path, p, r.Tiers)
		}
	}
	for i, r := range c.Rewards {
		path := fmt.Sprintf("rewards[%d]", i)
		p := c.programKey(r.Program)
		if p == nil {
			unknown(path+".program", "ningún programa", r.Program)
			continue
		}
		checkSegments(path, r.Segments)
		checkTiers(path, p, r.Tiers)
	}
	return problems
}
