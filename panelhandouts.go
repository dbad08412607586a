package main

import (
	"strconv"
)

// Points for all customers in a segment (contract §23). The page counts the customers first; its
// form is rehearsed, so that the review says how many customers get how many points, and done with
// the password. From then on the task of the server gives them (handouts.go), and the page shows
// how far that has come. Managers may do it, as they may give points one by one: what they give is
// within the same limit a day.

const handoutPath = "/panel/segmentos/{segmentId}/dar"

func handoutArea() panelArea {
	return panelArea{[]panelPage{{handoutPath, "points:write", "handout", handoutPage}}, []panelForm{{
		path: handoutPath, need: "points:write", from: handoutPath, proof: true, handle: giveToSegment, prepare: countForForm,
		members: []formMember{{name: "amount", kind: amountMember}, {name: "category"}, {name: "comment", must: true}, {name: "expiresAt"}, {name: "loyaltyProgramId"}, {name: countedField}},
		shows: func(done any) any {
			h := done.(*handoutShape)
			return []any{h.Segment, h.Program, h.Points, h.Counted, h.Sum, h.Category, h.Expires}
		},
		done: func(v *panelRequest, _ string) string { return v.r.URL.EscapedPath() },
	}}}
}

// countedField is how many customers the server counts when the form comes.
const countedField = "customers"

// categoryCampaign is the category that the form offers first.
const categoryCampaign = "Campaign"

// giveToSegment reads the form as the API reads points that are given to one customer.
func giveToSegment(r *request) action {
	in := r.askedMovement(false)
	if _, present := r.fields.text("category", 100); !present {
		in.category = categoryCampaign
	}
	text, _ := r.fields.text(countedField, 20)
	counted, _ := strconv.ParseUint(text, 10, 64)
	return func(t *txn) (any, error) {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return nil, newError(codeSegmentNotFound)
		}
		p := t.cfg.Programs[0]
		if in.program != nil {
			var err error
			if p, err = t.program(*in.program); err != nil {
				return nil, err
			}
		}
		h, err := beginHandout(t, handout{Segment: s.ID, Program: p.Number, Points: in.amount, Category: in.category, Comment: in.comment, Expires: in.expires, Counted: counted})
		if err != nil {
			return nil, err
		}
		return newHandoutShape(t.cfg, h), nil
	}
}

// A handoutShape is a handout with its names.
type handoutShape struct {
	handout
	Name, Path string // of its segment; Path is "" if there is none any more
	Currency   currencyName
	Program    string // its key; "" if it is the only one
	Sum, Sent  decimal
}

func newHandoutShape(cfg *config, h *handout) *handoutShape {
	shape := &handoutShape{handout: *h}
	if s := cfg.segment(h.Segment); s != nil {
		shape.Name, shape.Path = s.Name, "/panel/segmentos/"+s.ID.String()+"/dar"
	}
	if p := cfg.programNumber(h.Program); p != nil {
		if shape.Currency = p.Currency; len(cfg.Programs) > 1 {
			shape.Program = p.Key
		}
	}
	shape.Sum, _ = h.times(h.Counted)
	shape.Sent, _ = h.times(h.Given)
	return shape
}

// countedAtOnce is how many pages of walkedAtOnce customers one request looks at.
const countedAtOnce = 20

// countSegment counts the customers in the segment of the path, or goes on with that. It reads
// them in several transactions, so that none takes long.
func (v *panelRequest) countSegment() (c segmentCount, err error) {
	s := v.cfg.segment(pathIDOf(v.r, "segmentId"))
	if s == nil {
		return c, newError(codeSegmentNotFound)
	}
	of := countOf{v.member.org, v.cfg.Version, s.ID}
	c = v.panel.counts.found(of, v.request.now)
	for n := 0; n < countedAtOnce && !c.Done && err == nil; n++ {
		err = v.fill(func(t *txn) error { return c.goOn(t, s) })
	}
	if err == nil {
		v.panel.counts.keep(of, c)
	}
	return c, err
}

// countForForm puts the number of customers into the form that was sent. It counts them anew:
// what is reviewed and confirmed is no count from before.
func countForForm(v *panelRequest) {
	c := segmentCount{}
	var err error
	if s := v.cfg.segment(pathIDOf(v.r, "segmentId")); s != nil {
		for !c.Done && err == nil {
			err = v.fill(func(t *txn) error { return c.goOn(t, s) })
		}
	} else {
		err = newError(codeSegmentNotFound)
	}
	if err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	v.drop(countedField)
	v.posted = append(v.posted, pair{countedField, strconv.FormatUint(c.Active, 10)})
}

// A handoutView is the form that gives points to everybody in a segment.
type handoutView struct {
	ID, Name, Sentence string
	Active             bool
	Count              segmentCount
	Categories         []choiceItem
	Programs           []choiceItem
	Limited            bool    // the member may give so many a day
	Left               decimal // of them today

	Last  *handoutShape // the organization's last one, if it is this segment's or under way; nil: none
	Under bool          // it is under way
	Own   bool          // it is this segment's
}

func (v *handoutView) title(f *pageData) string { return f.T("handout.give") }

// Polls reports whether the page is to be read again.
func (v *handoutView) Polls() bool { return v.Under || !v.Count.Done }

// Would is what the form that was reviewed would begin; nil: none was.
func (f *pageData) Would() *handoutShape {
	h, _ := f.request.reviewed.(*handoutShape)
	return h
}

func handoutPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &handoutView{ID: v.r.PathValue("segmentId")}
	var err error
	if view.Count, err = v.countSegment(); err != nil {
		return nil, func(*txn) error { return err }
	}
	for _, c := range earningCategories() {
		view.Categories = append(view.Categories, choiceItem{c, tr(v.lang, "category."+c)})
	}
	return view, func(t *txn) error {
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		view.Name, view.Sentence, view.Active = s.Name, wordingOf(v, t.cfg).segment(&s.Rule), s.IsActive
		if len(t.cfg.Programs) > 1 {
			for _, p := range t.cfg.Programs {
				view.Programs = append(view.Programs, choiceItem{p.ID.String(), p.Name})
			}
		}
		h, err := handoutIn(t.Tx, t.org)
		if err != nil {
			return err
		}
		if h != nil {
			view.Under, view.Own = h.Ended == 0, h.Segment == s.ID
			if view.Under || view.Own {
				view.Last = newHandoutShape(t.cfg, h)
			}
			if view.Under {
				v.api.engine.askForHandouts()
			}
		}
		view.Left, view.Limited, err = t.keys.leftToday(v.member.user.ID)
		return err
	}
}
