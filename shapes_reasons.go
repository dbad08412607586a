package main

import "strings"

// An explanation says why a purchase earned what it did, in each program (contract §22). It is null
// for a return, and for a sale from before reasons were kept.
type explanation []explainedProgram

type explainedProgram struct {
	LoyaltyProgramID id              `json:"loyaltyProgramId"`
	Rules            []explainedRule `json:"rules"` // all, in the order of the configuration
	Steps            []explainedStep `json:"steps"` // they add up to what the purchase earned
}

type explainedRule struct {
	RuleID  id                `json:"ruleId"`
	Name    string            `json:"name"`
	Applied bool              `json:"applied"`
	Points  decimal           `json:"points"`
	Reasons []explainedReason `json:"reasons"` // why it gave nothing; empty if it applied
}

type explainedReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// An explainedStep is one of Rules, Tier and Rounding.
type explainedStep struct {
	Step       string   `json:"step"`
	Name       string   `json:"name,omitempty"`       // of the tier
	Multiplier *decimal `json:"multiplier,omitempty"` // of the tier
	Mode       rounding `json:"mode,omitempty"`
	Points     decimal  `json:"points"`
}

// apiLanguage is what the API says sentences in.
var apiLanguage = allTexts().In("es")

// apiWording is how the API writes the rules of a configuration.
func apiWording(cfg *config) *ruleWording {
	return wordingIn(cfg, formatOf(cfg, apiLanguage.Code), apiLanguage)
}

// newExplanation explains a purchase. The explanation of a sale is the same for ever: its sentences
// follow from the configuration that it was sold under.
func newExplanation(t *txn, s *sale) (*explanation, error) {
	list, cfg, err := t.sales.reasonsFor(s)
	if err != nil || list == nil {
		return new(explanation), err
	}
	e, w := make(explanation, 0, len(list)), apiWording(cfg)
	for i := range list {
		e = append(e, newExplainedProgram(w, &list[i]))
	}
	return &e, nil
}

func newExplainedProgram(w *ruleWording, p *programReasons) explainedProgram {
	shape := explainedProgram{LoyaltyProgramID: p.program.ID, Rules: []explainedRule{}}
	for i := range p.rules {
		r := &p.rules[i]
		row := explainedRule{RuleID: r.id, Name: r.rule.Name, Applied: r.applied(), Points: r.points, Reasons: []explainedReason{}}
		for _, why := range w.reasons(r) {
			row.Reasons = append(row.Reasons, explainedReason{why.code, strings.ReplaceAll(capital(why.text), nbsp, " ")})
		}
		shape.Rules = append(shape.Rules, row)
	}
	shape.Steps = append(shape.Steps, explainedStep{Step: "Rules", Points: p.earned - p.steps.Tier - p.steps.Rounding})
	if p.tier != nil {
		multiplier := decimalOf(1)
		if p.tier.Multiplier != nil {
			multiplier = *p.tier.Multiplier
		}
		shape.Steps = append(shape.Steps, explainedStep{Step: "Tier", Name: p.tier.Name, Multiplier: &multiplier, Points: p.steps.Tier})
	}
	shape.Steps = append(shape.Steps, explainedStep{Step: "Rounding", Mode: p.program.Rounding, Points: p.steps.Rounding})
	return shape
}
